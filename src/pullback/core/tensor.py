"""The class Tensor.  A tensor is its own tape node: it has a value, and the step and operands it was computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import late_binding
from pullback.core import hooks
from pullback.core.callers import (
    MEANS,
    SERIES,
    SERIES_FILES,
    arrange_coefficients,
    checks_values,
    explain_refusal,
    is_called_by,
    is_formatting,
    is_picking,
    leaves_product,
    takes_elements,
)
from pullback.core.conditions import note_refusal
from pullback.core.printing import tensor_repr, tensor_text
from pullback.core.source import OURS, find_user_line
from pullback.errors import ArgumentError, BatchedValueError, SymbolValueError, TracedValueError
from pullback.numerics.dtypes import make_dtype

if TYPE_CHECKING:
    from pullback.signatures.tensor_ops import TensorOps
    from pullback.typing import Array, DType, PythonNumber, TensorLike, Value
else:  # the ops are put on the class where they are defined, as methods and operators
    TensorOps = object

OBJECT = np.dtype(object)
WHERE = np.where  # gives an array without axes; as a step of this library's functions a number, as those give
BY_KERNEL: dict[Any, Any] = {}  # NumPy function -> op; filled by the definitions of the ops
NUMPY: dict[Any, Any] = {}  # NumPy function -> its implementation here; filled when a function is first called
UNARY: dict[Any, Callable[..., Any]] = {}  # the same for calls with one argument: ops themselves
STAY = "Stay with pullback or NumPy functions"
INSTEAD = {  # the advice of errors where a plain value is refused
    "np.asarray": f"{STAY} (x itself for np.asarray(x), x.copy() for np.array(x); np.stack joins arrays, np.array only "
    "numbers; np.dot(a, x) for a.dot(x))",
    "float": f"{STAY} (np.sin for math.sin; np.array without a dtype; x itself for float(x))",
    "item": f"{STAY} (x itself for x.item())",
}
STANDARDS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")  # versions of the Array API
VALUELESS = (BatchedValueError, SymbolValueError)  # errors of tensors that have no single value


class Tensor(TensorOps):
    """An array that gradients can be computed through; NumPy's functions accept it by NumPy's dispatch protocols.

    Make one with ``pb.tensor``.  There is no ``__init__``: the engine makes tensors by storing slots, which is the
    fastest way in Python.

    >>> import numpy as np, pullback as pb
    >>> x = pb.tensor([1.0, 2.0])
    >>> np.sin(x) * 2
    Tensor([1.682942, 1.8185948], dtype=float32)
    """

    __slots__ = (
        "__weakref__",  # by which a base refers to its views
        "g",  # the cotangent, during the backward pass
        "links",  # base and views, for tensors that share memory in NumPy; not set for others (see writes.py)
        "meta",  # interned shape, dtype and tape: two tensors alike in all three share one object
        "value",  # ndarray, NumPy scalar, or (under transforms) a Tensor of a lower level
        "via",  # the variant of the op that made it, with its positional rules
        "x",  # first operand (a node of this tape), or the tuple of all operands
        "y",  # second operand, or a constant, or the parameters
    )

    _internal: tuple[str, ...] = (  # attributes for the engine, not listed by dir(x)
        "all_values", "as_leaf", "as_result", "beneath", "call_unfollowed", "differentiates", "embed", "g",
        "has_derivative", "has_tangent", "interpret", "is_variable", "level", "links", "meta", "read", "refers",
        "result_kind",
        "stands_for_numbers", "stop_following", "stopped", "strip", "stripped", "unfollowed", "value", "via", "x", "y",
    )  # fmt: skip
    refers = False  # whether it must be read before an op computes with it, as a variable
    is_variable = False
    stands_for_numbers = False  # a symbol of a program that is being compiled may be a Python number
    has_tangent = False  # whether it is a dual number, of forward mode
    differentiates = True  # whether the transform that follows it takes derivatives: vmap and compile do not

    if TYPE_CHECKING:
        g: Any
        links: Any
        meta: Any
        via: Any
        value: Any
        x: Any
        y: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every axis."""
        shape: tuple[int, ...] = self.meta.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        m = self.meta
        if not m.shape and id(_getframe(1).f_code) in MEANS:
            raise AttributeError("dtype")  # which np.mean of an object array would cast the tensor to
        dtype: np.dtype[Any] = m.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def rank(self) -> int:
        """The number of axes, by TensorFlow's name."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        n = 1
        for length in self.shape:
            n *= length
        return n

    @property
    def level(self) -> int:
        """0 for a constant, else the number of the transform that follows this tensor."""
        level: int = self.meta.tape.level
        return level

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return np.transpose(self)  # type: ignore[return-value]

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The last two axes exchanged."""
        return np.swapaxes(self, -1, -2)  # type: ignore[return-value]

    # ---- what the engine calls

    def read(self) -> Tensor:
        """Return what an op computes with.

        This is the tensor itself, except for a variable and for a tensor that outlived an inner gradient's tape.
        """
        t = self
        while not t.level and not t.meta.raw:
            t = t.value
        return t

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Perform ``op``; this tensor is its argument of the highest level."""
        return self.meta.tape.record(op, args, params)

    @property
    def has_derivative(self) -> bool:
        """Whether this level differentiates this tensor."""
        return bool(self.level)

    @property
    def _value(self) -> Any:
        """The value without the innermost transform, as HIPS autograd calls it: its users print and test it."""
        return self.read().beneath()

    def beneath(self) -> Any:
        """Return what this level wraps: an array, a NumPy scalar, or a tensor of a lower level."""
        return self.value

    def embed(self, x: Any) -> Any:
        """Return a constant, such as a cotangent or zeros, in the form in which it can be combined with this tensor."""
        return x

    def stop_following(self) -> Any:
        """Return the value as a constant of this level; the tensor itself if this level does not follow it."""
        if not self.level:
            return self
        self.meta.tape.cut("stop_gradient")
        return self.value

    def strip(self) -> Any:
        """Return the values under this level, of which no transform follows the gradient."""
        return strip(self.beneath())

    def all_values(self) -> Any:
        """Return the values under this level, of all examples."""
        return self.beneath()

    __pandas_priority__ = 5000  # above a DataFrame's: pandas leaves its operators to ours, which take its values

    result_kind = 2  # the kind of a gradient by this input: a tensor (TENSOR in transforms.grad)

    def as_result(self, kind: int) -> Any:
        """Return a result of a transform as what its input was: a Python number, an array or a tensor."""
        return self

    def as_leaf(self) -> Any:
        """Return the value from which a tape makes a leaf.

        A tensor that another transform follows keeps its value there, even if it is written to later.
        """
        return late_binding.make_alias(self) if self.level else self

    def call_unfollowed(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Return ``f`` of what is beneath this level, which is the highest."""
        return call_unfollowed(
            f, *(a.beneath() if isinstance(a, Tensor) and a.level == self.level else a for a in args)
        )

    # ---- NumPy's protocols

    def __array_ufunc__(self, ufunc: Callable[..., Any], method: str, *args: TensorLike, **kwargs: object) -> Any:
        if hooks.blocks and (observer := hooks.find("run_call")) is not None:
            args = arrange_coefficients(_getframe(1), args)
            return observer.run_call("ufunc", Tensor.__array_ufunc__, self, ufunc, method, *args, **kwargs)
        op = BY_KERNEL.get(ufunc)
        first = type(args[0])
        if first is np.ndarray and _getframe(1).f_code.co_name in SERIES:
            args = arrange_coefficients(_getframe(1), args)
        if method == "__call__" and op is not None and not kwargs and first in PLAIN and type(args[-1]) in PLAIN:
            return op.function(*args)
        return late_binding.call_ufunc(ufunc, method, args, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if len(args) == 1 and not kwargs and not hooks.blocks and (call := UNARY.get(func)) is not None:
            return call(args[0])
        if func is WHERE and not _getframe(1).f_code.co_filename.startswith(OURS):  # the user calls it
            return late_binding.mark_as_array(Tensor.__array_function__(self, func, types, args, kwargs))
        if hooks.blocks and (observer := hooks.find("run_call")) is not None:
            return observer.run_call("numpy function", Tensor.__array_function__, self, func, types, args, kwargs)
        if len(types) > 1 and not all(issubclass(t, ARRAYS) for t in types):
            return NotImplemented  # another library's array may have an operator of its own
        stand_in = NUMPY.get(func)
        if stand_in is not None:
            return stand_in(*args, **kwargs)
        return late_binding.call_function(func, args, kwargs)

    def _choose_array(self) -> Callable[..., Any]:
        """Return the method by which NumPy makes an array; what it returns raises if a transform follows the values.

        A traced number has no such method, so ``np.array([x[0], x[1]])`` holds the tensors themselves, as objects.
        """
        t = self.read()
        if leaves_product():
            return t._as_object
        if not t.level:
            return t._values
        if takes_elements():
            return t._elements
        if not t.shape and t.dtype.kind in "iu" and is_picking():  # NumPy has dropped the error of __index__
            return t._as_index
        if not t.shape:
            raise AttributeError("__array__")
        return t._values

    if TYPE_CHECKING:  # which makes a tensor an ArrayLike of NumPy's stubs, and without a dtype none of ours

        def __array__(self) -> Array: ...

    else:
        __array__ = property(_choose_array)

    def _as_index(self, dtype: DType = None, copy: bool | None = None) -> Any:
        return np.asarray(self.__index__())

    def _as_object(self, dtype: DType = None, copy: bool | None = None) -> Any:
        """Return an object array of rank 0 with this tensor: SciPy's sparse arrays leave products with it to us."""
        array = np.empty((), object)
        array[()] = self
        return array

    def _elements(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Any:
        """Return an object array of the elements, which NumPy can index and join, in the same order in memory."""
        elements = np.empty_like(late_binding.get_layout(self.read()), object)
        x = self.astype(float) if self.dtype.kind in "biu" and is_called_by(SERIES_FILES) else self  # as NumPy does
        for index in np.ndindex(self.shape):
            elements[index] = x[index] if index else x
        return elements

    def _values(self, dtype: DType = None, copy: bool | None = None) -> Any:
        if dtype is not None and make_dtype(dtype) is OBJECT and self.level:
            return self._elements()
        values = np.asarray(self._concrete("np.asarray"))
        if copy or (dtype is not None and values.dtype != dtype):
            return values.astype(dtype or values.dtype, copy=True)
        view = values.view()
        view.flags.writeable = False  # a tensor never changes
        return view

    # ---- the Array API

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the module with the functions of the Array API standard for tensors."""
        if api_version not in STANDARDS:
            versions = ", ".join(str(version) for version in STANDARDS[1:])
            raise ArgumentError(f"__array_namespace__: api_version must be one of {versions}, got {api_version!r}.")
        if self.read().level:
            late_binding.keep_gradients()
        return late_binding.load_array_api()

    @property
    def device(self) -> str:
        """The device of the elements: always ``"cpu"``."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: None = None) -> Tensor:
        """Return the tensor on a device; the only device is ``"cpu"``.

        device: ``"cpu"``.
        stream: None.

        >>> import pullback as pb
        >>> pb.tensor([1.0]).to_device("cpu")
        Tensor([1.], dtype=float32)
        """
        if device != "cpu" or stream is not None:
            raise ArgumentError(
                f'to_device: all tensors are on the device "cpu", without streams, got device {device!r} and stream '
                f"{stream!r}. Compiled programs run on other devices: pb.compile(f, backend=...)."
            )
        return self

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        values = np.asarray(self._concrete("DLPack export"))
        if copy is not False:
            values = values.copy()
        elif tuple(max_version or ()) >= (1, 0):  # since then DLPack has a flag for read-only memory
            values = values.view()
            values.flags.writeable = False
        return values.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> Any:
        return np.empty(0).__dlpack_device__()

    # ---- out of the library

    def _concrete(self, subject: str) -> Any:
        """Return the plain value; raise an error while a transform follows this tensor."""
        t = self.read()
        if t.level and (t.dtype.kind in "iub" or checks_values()):  # integers carry no gradient, assertions give none
            with suppress(*VALUELESS):
                return concrete(t)
        if t.level:
            purpose, cure = explain_refusal(t.dtype)
            usual = INSTEAD.get(subject, STAY)
            call = subject if subject.endswith("=") else f"{subject}()"
            raise TracedValueError(
                f"{call} of a traced tensor of shape {t.shape} would lose its gradient{purpose}. "
                f"{cure or usual}, or call pb.stop_gradient(x) first if no gradient is wanted ({find_user_line()})."
            )
        return t.value

    def numpy(self) -> Array:
        """Return a new NumPy array with the values."""
        return np.array(self._concrete("numpy"))

    def item(self, *index: object) -> PythonNumber:
        """Return the one element, or that at an index, as a Python number."""
        number: PythonNumber = self._concrete("item").item(*index)
        return number

    def tolist(self) -> Any:
        """Return nested lists of Python numbers."""
        return self._concrete("tolist").tolist()

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def _number(self, subject: str) -> Any:
        """Return the plain value for ``float`` and ``int``; ``"%.3f" % x`` works for traced tensors too."""
        if not self.level or not is_formatting(depth=3):
            return self._concrete(subject)
        try:
            return concrete(self)
        except VALUELESS as error:
            cure = "An f-string, f'{x:.3f}', writes what is known of it."
            raise type(error)(f"text % x: {error} {cure}") from None

    def __complex__(self) -> complex:
        return complex(self._concrete("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise ArgumentError(f"only an integer tensor can be an index, got {self.dtype} of shape {self.shape}.")
        return int(concrete(self))  # integers carry no gradient

    def __bool__(self) -> bool:
        try:
            return bool(self._condition())
        except VALUELESS as error:
            note_refusal(error)
            raise

    def _condition(self) -> Any:
        """Return the plain value for ``if`` and ``while``."""
        return concrete(self)

    def __floor__(self) -> Any:
        return _as_integer(np.floor(self))

    def __ceil__(self) -> Any:
        return _as_integer(np.ceil(self))

    def __trunc__(self) -> Any:
        return _as_integer(np.trunc(self))

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len() of a tensor of rank 0, which has no axis.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(concrete(self) == concrete(item)))

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    __hash__ = object.__hash__

    # ---- copies stay on the tape: a detached copy would silently lose the gradient

    def __copy__(self) -> Tensor:
        return np.copy(self)  # type: ignore[return-value]

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return np.copy(self)  # type: ignore[return-value]

    def __reduce__(self) -> Any:
        return late_binding.constant, (np.array(self._concrete("pickle")),)

    # ---- printing

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        try:
            return tensor_repr(np.asarray(concrete(self)), type(self).__name__)
        except VALUELESS:  # many examples, or a program that is being compiled: show the value of the level below
            return f"{type(self).__name__}({self.read().beneath()!r})"

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None where there is no single value, so that it shows the ``repr``."""
        try:
            values = np.asarray(concrete(self))
        except VALUELESS:
            return None
        return late_binding.show_array(*self._describe(), values)

    def _describe(self) -> tuple[str, tuple[str, ...]]:
        """Return the title and the facts that a notebook shows."""
        return type(self).__name__, ()

    def to_string(self, verbose: bool = False) -> str:
        """Return the text of ``print``, with dtype, rank and shape when ``verbose``."""
        try:
            return tensor_text(np.asarray(concrete(self)), verbose)
        except VALUELESS:
            return repr(self)

    def print(self, verbose: bool = False) -> None:
        """Write the values to standard output, as TensorFlow.js does.

        verbose: whether dtype, rank and shape are written too.
        """
        print(self.to_string(verbose))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.shape:
            raise ArgumentError(
                f"f'{{x:{spec}}}': a tensor of shape {self.shape} has no one number to write. Write an element, x[i], "
                "or the whole as f'{x}'."
            )
        try:
            return format(concrete(self).item(), spec)
        except VALUELESS:
            return repr(self)


RAW = (np.ndarray, np.generic)  # values that NumPy computes with
ARRAYS = (Tensor, *RAW)
PLAIN: set[type] = {Tensor, np.ndarray, np.float64, np.float32, float, int}  # types of operands that need no conversion


def is_foreign(kind: type) -> bool:
    """Return whether values of this type are another library's arrays, with operators and ufuncs of their own.

    Those of pandas are not: they leave operators to a tensor, which computes with their values.
    """
    return (
        hasattr(kind, "__array_ufunc__") and not issubclass(kind, ARRAYS) and not hasattr(kind, "__pandas_priority__")
    )


def concrete(x: Any) -> Any:
    """Return the plain array under all levels, for uses without a gradient: indices, truth values, text."""
    while isinstance(x, Tensor):
        x = x.read().beneath()
    return x


def call_unfollowed(f: Callable[..., Any], *args: object) -> Any:
    """Return ``f`` of the plain arrays under all levels, example by example, for functions without a gradient.

    >>> import pullback as pb
    >>> call_unfollowed(np.argsort, pb.tensor([3.0, 1.0, 2.0]))
    array([1, 2, 0])
    """
    args = tuple(a.read() if isinstance(a, Tensor) else a for a in args)
    top = max((a for a in args if isinstance(a, Tensor)), key=lambda a: a.level, default=None)
    if top is None or not top.level:
        return f(*map(concrete, args))
    return top.call_unfollowed(f, args)


def iterate_levels(x: Any) -> Iterator[Any]:
    """Yield ``x`` as the tensor that each of its levels sees, from the highest down; nothing for a plain array."""
    while isinstance(x, Tensor):
        x = x.read()
        if x.level:
            yield x
        x = x.all_values()


def stop_following(x: Any) -> Any:
    """Return the value of ``x`` as a constant of all levels that differentiate it."""
    x = x.read() if isinstance(x, Tensor) else x
    while isinstance(x, Tensor) and (beneath := x.stop_following()) is not x:
        x = beneath.read() if isinstance(beneath, Tensor) else beneath
    return x


def strip(x: Any) -> Any:
    """Return a value without its gradient: a plain array, or one example of many, for NumPy to compute with.

    >>> import pullback as pb
    >>> strip(pb.tensor([3.0, 1.0])) > 2
    array([ True, False])
    """
    return x.read().strip() if isinstance(x, Tensor) else x


def all_values(x: Any) -> Any:
    """Return the plain array under all levels, with all examples of ``vmap`` along axes in front.

    While a program is being compiled there are no values: the array is empty, so checks of values pass.

    >>> import pullback as pb
    >>> all_values(pb.tensor([3.0, 1.0])).max()
    np.float32(3.0)
    """
    while isinstance(x, Tensor):
        x = x.read().all_values()
    return x


def _as_integer(x: Any) -> Any:
    """Return a rounded number as a Python integer, as ``math.floor`` does; a tensor if it has many examples."""
    values = strip(x)
    return x if isinstance(values, Tensor) else int(values)


def may_hold(condition: Value) -> bool:
    """Return whether a condition may hold somewhere.  While a program is being compiled nothing is known, so it may.

    >>> may_hold(np.array([False, True])), may_hold(np.array([False, False]))
    (True, False)
    """
    values = all_values(condition)
    return bool(np.any(values)) or np.size(values) < condition.size


def read_sizes(name: str, x: object, cure: str = "") -> Any:
    """Return the plain array on whose values the size of the result depends.

    Raise an error if it is different for each example of ``vmap``.

    >>> read_sizes("unique", np.array([1.0]))
    array([1.])
    """
    values = strip(x)
    if isinstance(values, Tensor):
        with suppress(BatchedValueError):  # while a program is being compiled, ``concrete`` raises another error
            values._concrete(f"{name}: how many elements there are in the result depends on the values. The value")
        raise BatchedValueError(
            f"{name}: how many elements there are in the result depends on values that are different for each example "
            f"of vmap, and all results must have one shape. {cure or 'Keep all elements and choose with where(), or'} "
            "do this outside of vmap."
        )
    return values


class Wrapped(Tensor):
    """Base of the tensors of other transforms (``Dual``, ``Batched``, …).  Their operators take the general path.

    A subclass has no slots of its own, holds the value of the level below in ``value``, and defines ``shape``,
    ``dtype``, ``level``, ``twin``, ``stop_following`` and ``interpret``; ``docs/how-it-works.md`` has a short one.
    """

    __slots__ = ()
