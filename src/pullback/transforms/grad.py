"""``grad`` and its family: the TensorFlow.js way of asking for derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os.path import basename
from typing import Any, NamedTuple

import numpy as np
from numpy import float64, ndarray

from pullback.core import tree
from pullback.core.convert import as_array, as_value, bare, float_of
from pullback.core.memory import node_of
from pullback.core.tape import RAW, Tape, constant
from pullback.core.tensor import Tensor
from pullback.core.variable import written
from pullback.errors import ArgumentError, DataError, GradientError, UnconnectedError

__all__ = [
    "ValueAndGrad",
    "ValueAndGrads",
    "grad",
    "grads",
    "value_and_grad",
    "value_and_grads",
]

UNREACHED = (
    "Cannot compute gradient of y=f(x) with respect to x. "
    "Make sure that the f you passed encloses all operations that lead from x to y."
)
PYTHON, ARRAY, TENSOR = 0, 1, 2  # what was given, and so what is given back
KIND: dict[type, int] = {ndarray: ARRAY, float: PYTHON, float64: ARRAY, int: PYTHON}
new_tuple = tuple.__new__  # a named tuple's own constructor is slow


class ValueAndGrad(NamedTuple):
    """What ``value_and_grad`` gives.

    >>> import pullback as pb
    >>> pb.value_and_grad(lambda x: x * x)(3.0)
    ValueAndGrad(value=9.0, grad=6.0)
    """

    value: Any
    grad: Any


class ValueAndGrads(NamedTuple):
    """What ``value_and_grads`` and ``variable_grads`` give.

    >>> import pullback as pb
    >>> pb.value_and_grads(lambda x, y: x * y)([3.0, 4.0]).grads
    [4.0, 3.0]
    """

    value: Any
    grads: Any


class Differentiated:
    """A function that gives derivatives of ``f``: keeps its name and docstring, and pickles when ``f`` does."""

    face = "grad"

    def __init__(self, f: Callable[..., Any], *, has_aux: bool = False, unconnected: str = "raise") -> None:
        if not callable(f):
            raise ArgumentError(f"{self.face}(f): f must be a function, got {type(f).__name__}.")
        if unconnected not in ("raise", "zero", "none"):
            raise ArgumentError(f"{self.face}: unconnected must be 'raise', 'zero' or 'none', got {unconnected!r}.")
        self.__wrapped__, self.has_aux, self.unconnected = f, has_aux, unconnected
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.__qualname__ = getattr(f, "__qualname__", self.__name__)
        self.__doc__ = getattr(f, "__doc__", None)

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.__wrapped__, self.has_aux, self.unconnected)

    def __repr__(self) -> str:
        return f"<{self.face} of {self.__name__}>"

    def pulled(self, xs: Sequence[Any], dy: Any) -> tuple[Any, list[Any], Any]:
        """Value, gradients and aux of one call, each in the form of what was given."""
        tape = Tape.open()
        try:
            return self._pulled(tape, xs, dy)
        finally:
            tape.close()

    def _pulled(self, tape: Tape, xs: Sequence[Any], dy: Any) -> tuple[Any, list[Any], Any]:
        """A function of its own, so that no local of it holds a tensor when the tape is closed."""
        args: list[Any] = []
        leaves: list[Any] = []
        kind, least, plain = PYTHON, TENSOR, True  # plain: every x is one leaf
        for x in xs:
            k = KIND.get(type(x))
            if k is None:
                plain = False
                k = self._enter(tape, x, args, leaves)
            else:
                t = tape.leaf(x)
                args.append(t)
                leaves.append(t)
            if k > kind:
                kind = k
            if k < least:
                least = k
        y = self.__wrapped__(*args)
        aux = None
        if self.has_aux:
            y, aux = self._split(y)
        if type(y) is not Tensor or y.meta.tape is not tape:
            y = self._on_tape(tape, y)
        value, m = y.value, y.meta
        seed = m.one if dy is None and m.one is not None else self._seed(dy, value)
        if type(y) is Tensor:
            y.g = seed
        else:
            node_of(y).g = seed
        y = t = None
        args = []  # whoever holds a big tensor keeps its buffer from being recycled
        if m.tape is tape:
            tape.walk()
        out: list[Any] = []
        for t in leaves:
            d = t.g if type(t) is Tensor else t.x.g
            m = t.meta
            if d is None:
                d = self._missing(tape, t, len(out), len(leaves))
            elif type(d) is not m.kind or (
                m.ndim and (d.dtype is not m.dtype or d.base is not None or (d is seed and dy is not None))
            ):
                d = _own(d, m.dtype)
            out.append(d)
        if kind and len(out) > 1 and len({*map(id, out)}) < len(out):
            out = [d.copy() if isinstance(d, ndarray) else d for d in out]  # one array, given twice
        if aux is not None:
            aux = tree.mapped(lambda t: given_back(_apart(t.value, leaves), kind) if tape.holds(t) else t, aux)
        if type(value) is ndarray:
            value = _apart(value, leaves)
        if not plain:
            return given_back(value, kind), self._in_form(xs, out), aux
        if least == ARRAY == kind:
            return value, out, aux
        for i, x in enumerate(xs):
            out[i] = given_back(out[i], KIND[type(x)])
        return given_back(value, kind), out, aux

    # ---- in

    def _enter(self, tape: Tape, x: Any, args: list[Any], leaves: list[Any]) -> int:
        """The tensors that stand for ``x``, which may be a tree, and what kind of thing it is."""
        kinds = [PYTHON]

        def enter(leaf: Any) -> Any:
            kinds.append(kind_of(leaf))
            t = tape.leaf(as_leaf(leaf, self.face))
            leaves.append(t)
            return t

        args.append(enter(x) if tree.is_tensor_data(x) else tree.mapped(enter, x, whole=tree.is_number_list))
        return max(kinds)

    def _split(self, y: Any) -> tuple[Any, Any]:
        if not isinstance(y, tuple | list) or len(y) != 2:
            raise GradientError(f"{self.face}(f, has_aux=True): f must return (y, aux), got {described(y)}.")
        return y[0], y[1]

    # ---- the result of f

    def _on_tape(self, tape: Tape, y: Any) -> Any:
        """The result as a tensor; an error where ``f`` gave none, or one that does not depend on the inputs."""
        if isinstance(y, Tensor):
            y = y.read()
            if tape.holds(y):
                return y
        else:
            if (not isinstance(y, RAW) and type(y) not in (float, int)) or self.unconnected == "raise":
                raise GradientError(
                    f"{self.face}(f): f must return one tensor, got {described(y)}. "
                    "Compute it from its inputs with pullback or NumPy functions; has_aux=True returns more beside it."
                )
        if self.unconnected == "raise":
            raise UnconnectedError(UNREACHED + cut_text(tape))
        return tape.leaf(bare(y))  # so that it is no input, and whoever follows its value still does

    def _seed(self, dy: Any, value: Any) -> Any:
        """The cotangent to begin with: ones, or ``dy`` if it has the shape of the result."""
        if value.dtype.kind not in "fiubc":
            raise GradientError(f"{self.face}(f): f returned dtype {value.dtype}; only numbers have gradients.")
        dtype = float_of(value.dtype)
        if dy is None:
            if dtype.kind == "c":
                raise GradientError(directionless(f"{self.face}(f): f returned", dtype, "dy"))
            return np.ones(value.shape, dtype)[()]
        seed = bare(dy, "dy")
        if seed.shape != value.shape:
            raise GradientError(
                f"{self.face}: dy has shape {seed.shape}, but y = f(x) has shape {value.shape}; they must be the same."
            )
        if seed.dtype.kind not in ("fiubc" if dtype.kind == "c" else "fiub"):
            raise GradientError(f"{self.face}: dy must be real numbers as y is, got dtype {seed.dtype}.")
        return seed if seed.dtype == dtype else seed.astype(dtype)

    # ---- out

    def _missing(self, tape: Tape, t: Any, i: int, n: int) -> Any:
        if self.unconnected == "raise":
            which = f" Input {i + 1} of {n} is not reached." if n > 1 else ""
            raise UnconnectedError(UNREACHED + which + cut_text(tape))
        if self.unconnected == "none":
            return None
        return np.zeros(t.shape, float_of(t.dtype))[()]

    def _in_form(self, xs: Sequence[Any], out: list[Any]) -> list[Any]:
        """The gradients in the structure of the inputs, each in the form of its own input."""
        source = iter(out)

        def give(leaf: Any) -> Any:
            return given_back(next(source), kind_of(leaf))

        return [give(x) if tree.is_tensor_data(x) else tree.mapped(give, x, whole=tree.is_number_list) for x in xs]


def _restored(cls: Any, f: Any, has_aux: bool, unconnected: str) -> Any:
    return cls(f, has_aux=has_aux, unconnected=unconnected)


def kind_of(x: Any) -> int:
    if isinstance(x, Tensor):
        return x.form
    return ARRAY if hasattr(x, "__array__") else PYTHON


def _own(d: Any, dtype: Any) -> Any:
    """A cotangent as an array of its own with its input's dtype; an integer's is float32."""
    wanted = float_of(dtype)
    if d.dtype != wanted:
        return d.astype(wanted)
    return d.copy() if type(d) is ndarray else d  # it was a view, or the caller's dy itself


def _apart(v: Any, leaves: list[Any]) -> Any:
    """A result as the caller's own array: neither an input itself nor a view."""
    return v.copy() if type(v) is ndarray and (v.base is not None or any(v is t.value for t in leaves)) else v


def directionless(returned: str, dtype: Any, dy: str) -> str:
    """Why there is no gradient of complex numbers, unless the direction is given in which they are to go."""
    return (
        f"{returned} complex numbers ({dtype}), of which none is larger than another. "
        f"Return a real number, such as pb.abs(y) or pb.real(y), or give the direction {dy}."
    )


def described(y: Any) -> str:
    """What ``f`` gave, for messages."""
    return "None" if y is None else type(y).__name__


def as_leaf(x: Any, face: str) -> Any:
    """What a tape makes a leaf of; Python's numbers are float64, as they are in Python."""
    if isinstance(x, Tensor):
        return x.read().as_leaf()
    if hasattr(x, "__array__"):
        return as_value(x)
    try:
        return as_array(x, np.float64, what=face)[()]
    except DataError:
        if not any(isinstance(n, complex) for n in tree.leaves(x)):
            raise
        return as_array(x, np.complex128, what=face)[()]


def given_back(v: Any, kind: int) -> Any:
    """Tensors for Tensors, arrays for arrays, Python's numbers and lists for Python's."""
    if kind == ARRAY:
        return v
    if kind == PYTHON and type(v) is float64:
        return float(v)  # six times quicker than v.tolist()
    if isinstance(v, Tensor):
        return v.in_form(kind)
    if v is None:
        return v
    return v.tolist() if kind == PYTHON else constant(v) if kind == TENSOR else written(v)


def cut_text(tape: Tape) -> str:
    """Where paths ended while ``f`` ran."""
    if not tape.cuts:
        return ""
    places = ", ".join(dict.fromkeys(f"{name} ({basename(file)}:{line})" for name, file, line in tape.cuts))
    return f" The path was cut where the derivative is zero or stopped: {places}."


class Grad(Differentiated):
    face = "grad"

    def __call__(self, x: Any, dy: Any = None) -> Any:
        _, out, aux = self.pulled((x,), dy)
        return (out[0], aux) if self.has_aux else out[0]


class Grads(Differentiated):
    face = "grads"

    def __call__(self, xs: Sequence[Any], dy: Any = None) -> Any:
        _, out, aux = self.pulled(_listed(xs, self.face), dy)
        return (out, aux) if self.has_aux else out


class ValueGrad(Differentiated):
    face = "value_and_grad"

    def __call__(self, x: Any, dy: Any = None) -> ValueAndGrad:
        value, out, aux = self.pulled((x,), dy)
        return new_tuple(ValueAndGrad, ((value, aux) if self.has_aux else value, out[0]))


class ValueGrads(Differentiated):
    face = "value_and_grads"

    def __call__(self, xs: Sequence[Any], dy: Any = None) -> ValueAndGrads:
        value, out, aux = self.pulled(_listed(xs, self.face), dy)
        return new_tuple(ValueAndGrads, ((value, aux) if self.has_aux else value, out))


def grad(f: Callable[..., Any], *, has_aux: bool = False, unconnected: str = "raise") -> Grad:
    """``f(x)`` to ``g(x, dy=None)``, its gradient.

    ``f`` gets Tensors and returns one tensor; without ``dy`` the gradient is that of ``sum(f(x))``.
    ``has_aux=True``: ``f`` returns ``(y, aux)`` and the result is ``(gradient, aux)``.
    ``unconnected`` says what to do if ``f`` does not reach ``x``: ``"raise"``, ``"zero"`` or ``"none"``.

    >>> import numpy as np, pullback as pb
    >>> pb.grad(lambda x: x**3)(2.0)
    12.0
    >>> pb.grad(lambda x: np.sin(x) * x)(np.array([0.0, 1.0]))
    array([0.        , 1.38177329])
    """
    return Grad(f, has_aux=has_aux, unconnected=unconnected)


def grads(f: Callable[..., Any], *, has_aux: bool = False, unconnected: str = "raise") -> Grads:
    """``f(x1, x2, ...)`` to ``g([x1, x2, ...], dy=None)``, the list of gradients.

    >>> import pullback as pb
    >>> pb.grads(lambda x, y: x * y)([2.0, 5.0])
    [5.0, 2.0]
    """
    return Grads(f, has_aux=has_aux, unconnected=unconnected)


def value_and_grad(f: Callable[..., Any], *, has_aux: bool = False, unconnected: str = "raise") -> ValueGrad:
    """``f(x)`` to ``g(x, dy=None)``, its value and gradient as a named tuple; ``has_aux``: ``((y, aux), grad)``.

    >>> import pullback as pb
    >>> value, grad = pb.value_and_grad(lambda x: x**2)(3.0)
    >>> value, grad
    (9.0, 6.0)
    """
    return ValueGrad(f, has_aux=has_aux, unconnected=unconnected)


def value_and_grads(f: Callable[..., Any], *, has_aux: bool = False, unconnected: str = "raise") -> ValueGrads:
    """``f(x1, x2, ...)`` to ``g([x1, x2, ...], dy=None)``, its value and the list of gradients as a named tuple.

    >>> import pullback as pb
    >>> pb.value_and_grads(lambda a, b: a * b)([2.0, 3.0])
    ValueAndGrads(value=6.0, grads=[3.0, 2.0])
    """
    return ValueGrads(f, has_aux=has_aux, unconnected=unconnected)


def _listed(xs: Any, face: str) -> Any:
    if not isinstance(xs, list | tuple):
        got = type(xs).__name__
        raise ArgumentError(f"{face}(f)(xs): xs must be a list of inputs, got {got}. Write {face}(f)([x]).")
    if not xs:
        raise GradientError(f"{face}(f)(xs): the list of inputs is empty; there is nothing to differentiate by.")
    return xs
