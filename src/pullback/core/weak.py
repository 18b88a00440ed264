"""Weak values: results of Python numbers alone, such as ``pb.maximum(1.0, 2.0)``, which do not widen other operands.

A number is a NumPy scalar of the class ``WeakFloat``, ``WeakInt`` or ``WeakComplex``; an array is a ``Weak`` tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import late_binding
from pullback.core.tensor import ARRAYS, PLAIN, Tensor, Wrapped

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Value

OWN_NUMBERS = frozenset({float, int, bool, complex, np.bool_})
NUMBERS, WHOLE = {float, int, bool, complex}, {"i", "u", "b"}


class Weak(Wrapped):
    """A float64 tensor that takes the dtype of the floats it is combined with, as a Python number does.

    >>> import pullback as pb
    >>> x = pb.tensor([1.0, -2.0])
    >>> signs = pb.where(x > 0, 1.0, -1.0)
    >>> (signs * x).dtype, (signs * np.array([1.0, -2.0])).dtype
    (dtype('float32'), dtype('float64'))
    """

    __slots__ = ()

    refers = True
    held: Tensor = vars(Tensor)["value"]

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @property
    def shape(self) -> tuple[int, ...]:
        return self.held.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.held.dtype

    @property
    def level(self) -> int:
        return self.held.level

    def read(self) -> Tensor:
        return self.held.read()

    def among(self, dtypes: list[Any]) -> Any:
        """Return the tensor to compute with, in the dtype that it takes among values of these dtypes."""
        held: Any = self.read()
        floats = [np.finfo(d).dtype for d in dtypes if d.kind in "fc"]
        wanted = np.result_type(*floats) if floats else held.dtype
        return held if held.dtype == wanted else np.astype(held, wanted)

    def __setitem__(self, index: Any, value: Any) -> None:
        held: Any = self.read()
        held[index] = value
        self.held = held

    def __repr__(self) -> str:
        return repr(self.held)


PLAIN.add(Weak)


class WeakFloat(np.float64):
    """A float64 that takes the dtype of the floats it is combined with.

    >>> WeakFloat(2.0) * np.ones(2, "float32")
    array([2., 2.], dtype=float32)
    """


class WeakInt(np.int64):
    """An int64 that takes the dtype of the values it is combined with."""


class WeakComplex(np.complex128):
    """A complex128 that takes the precision of the values it is combined with."""


WEAK_NUMBERS: dict[type, Any] = {np.float64: WeakFloat, np.int64: WeakInt, np.complex128: WeakComplex}
WEAK_TYPES = frozenset(WEAK_NUMBERS.values())


def as_python_number(x: Any) -> Any:
    """Return a weak number, or those in a list, as Python numbers; anything else unchanged."""
    if type(x) is list or type(x) is tuple:
        return type(x)(map(as_python_number, x))
    return x.item() if type(x) in WEAK_TYPES else x


def _call(function: Any, *args: object, **kwargs: object) -> Any:
    """Return a function of weak numbers as Python numbers.

    The results are weak again, if there are no arrays beside them.
    """
    plain = [as_python_number(a) for a in args]
    z = function(*plain, **{name: as_python_number(a) for name, a in kwargs.items()})
    if any(isinstance(a, ARRAYS) and type(a) is not np.bool_ for a in (*plain, *kwargs.values())):
        return z
    return type(z)(map(_weaken_number, z)) if type(z) in (list, tuple) else _weaken_number(z)


def _weaken_number(z: Value) -> Any:
    return weaken_value(np.asarray(z)[()] if type(z) in NUMBERS else z)


def _call_ufunc(self: Any, ufunc: Callable[..., Any], method: str, *args: object, **kwargs: object) -> Any:
    return _call(getattr(ufunc, method), *args, **kwargs)


def _call_function(self: Any, function: Any, types: tuple[Any, ...], args: Any, kwargs: dict[str, Any]) -> Any:
    is_ours = any(issubclass(t, Tensor) for t in types)
    return NotImplemented if is_ours else _call(function, *args, **kwargs)


def _define_methods(kind: Any, plain: type) -> None:
    """Define the methods of a class of weak numbers; NumPy does not dispatch on scalars with a second base class."""
    kind.__array_ufunc__, kind.__array_function__ = _call_ufunc, _call_function
    kind.__reduce__ = lambda self: (kind, (self.item(),))
    kind.__repr__ = lambda self: repr(plain(self))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        apply = getattr(operator, name)
        setattr(kind, f"__{name}__", lambda self, other, apply=apply: _call(apply, self, other))
        setattr(kind, f"__r{name}__", lambda self, other, apply=apply: _call(apply, other, self))
    for name in ("neg", "pos", "abs"):
        apply = getattr(operator, name)
        setattr(kind, f"__{name}__", lambda self, apply=apply: weaken_value(apply(plain(self))))


for _plain, _weak in WEAK_NUMBERS.items():
    _define_methods(_weak, _plain)


def stands_for_number(x: Any) -> bool:
    """Return whether ``x`` is a Python number, or stands for one while a function is compiled."""
    return _kind_of(x) in NUMBERS


def weaken_value(z: Value) -> Any:
    """Return a value that was computed from Python numbers only as a weak value."""
    if type(z) is np.ndarray:
        return weaken(late_binding.constant(z)) if z.dtype.kind == "f" else z
    weak_type = WEAK_NUMBERS.get(type(z))
    return z if weak_type is None else weak_type(z)


def are_numbers(args: Any) -> bool:
    """Return whether there are arguments and all are Python numbers, or NumPy bools that result from comparing them."""
    return bool(args) and type(args[0]) in OWN_NUMBERS and {*map(type, args)} <= OWN_NUMBERS


def weaken(z: Value) -> Any:
    """Return a result that was computed from Python's floats, integers and weak tensors only, as a weak tensor.

    A result that a transform follows is left unchanged, because transforms recognize their tensors by type.
    """
    if not isinstance(z, Tensor) or z.refers or z.has_derivative or z.dtype.kind != "f" or stands_for_number(z):
        return z
    if z.stands_for_numbers and z.shape:  # while a function is compiled
        z.note_weak()  # type: ignore[attr-defined]
    return Weak(z)


def is_weak(op: Op, args: Sequence[Any]) -> bool:
    """Return whether a result is a float only because of Python numbers: all other operands are integers or bools.

    The condition of ``where`` does not count.
    """
    are_all_numbers, has_float = True, False
    for a, mixes in zip(args, chain(op.mixing, repeat(False)), strict=False):
        kind = _kind_of(a)
        if kind in NUMBERS:
            has_float = has_float or (mixes and kind is float)
        elif not op.elementwise or (mixes and kind not in WHOLE):
            return False
        else:
            are_all_numbers = False
    return are_all_numbers or has_float


def _kind_of(a: Any) -> Any:
    """Return the type of a Python number, which a symbol of ``compile`` may stand for.

    For anything else it is the kind of its dtype.
    """
    if type(a) in NUMBERS:
        return type(a)
    return getattr(a, "weak", None) or getattr(getattr(a, "dtype", None), "kind", None)
