"""``grad`` and its family, with the API of TensorFlow.js."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from types import DynamicClassAttribute
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import float64, ndarray

from pullback.core import tree
from pullback.core.convert import as_array, float_of, join_array, refuse_matrix, unwrap_constant
from pullback.core.interpreter import level_of
from pullback.core.memory import node_of
from pullback.core.tape import Tape, constant
from pullback.core.tensor import RAW, Tensor
from pullback.core.variable import as_symbol
from pullback.errors import ArgumentError, DataError, GradientError, UnconnectedError
from pullback.transforms.argnums import BoundCall, Cotangent, Derivative, signature_of
from pullback.transforms.enclosing import DualLevel
from pullback.transforms.gates import open_gate
from pullback.transforms.leaf_names import list_names, list_parameter_names, name_input
from pullback.transforms.session import (
    UNREACHED,
    check_unconnected,
    cut_text,
    make_seed,
    roll_long_tape,
    run_session,
)

if TYPE_CHECKING:
    from pullback.typing import ArgNums, Array, Operand, TensorLike, Value

NO_RETURN = "Is a return missing?"
COMPUTE_IT = "Compute it from its inputs with pullback or NumPy functions; with has_aux=True f returns (y, anything)."
CONNECT_IT = (
    "It does not depend on the inputs: compute it from them with pullback or NumPy functions, or give "
    "unconnected='zero' for a gradient of zeros."
)
UNCONNECTED_CURE = " pb.explain(f)(x) says why; unconnected='zero' gives zeros instead of this error."
PYTHON, ARRAY, TENSOR = 0, 1, 2  # kinds of arguments, and so of results
KIND: dict[type, int] = {ndarray: ARRAY, float: PYTHON, float64: ARRAY, int: PYTHON}
new_tuple = tuple.__new__  # a named tuple's own constructor is slow


class ValueAndGrad(NamedTuple):
    """The result of ``value_and_grad``.

    >>> import pullback as pb
    >>> pb.value_and_grad(lambda x: x * x)(3.0)
    ValueAndGrad(value=9.0, grad=6.0)
    """

    value: Any
    grad: Any


class ValueAndGrads(NamedTuple):
    """The result of ``value_and_grads`` and ``variable_grads``.

    >>> import pullback as pb
    >>> pb.value_and_grads(lambda x, y: x * y)([3.0, 4.0]).grads
    [4.0, 3.0]
    """

    value: Any
    grads: Any


class Differentiated(Derivative):
    """A function that gives derivatives of ``f``."""

    has_dy = True

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: ArgNums = None,
        argnames: Any = None,
        has_aux: bool = False,
        unconnected: str = "raise",
    ) -> None:
        Derivative.__init__(self, f, argnums, argnames)
        check_unconnected(self.face, "unconnected", unconnected)
        self.has_aux, self.unconnected = has_aux, unconnected

    def options(self) -> dict[str, Any]:
        return {**super().options(), "has_aux": self.has_aux, "unconnected": self.unconnected}

    def pull_chosen(self, args: tuple[Any, ...], dy: Operand | None, kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Return value, gradients and aux of a call in which some arguments are not differentiated by."""
        args, dy = self.split_dy(args, dy)
        if len(args) == 1 and not kwargs and self.selection is None:
            value, out, aux = run_session("gradients", self._pull, args, dy)
            return value, out[0], aux
        call = self.bind(args, kwargs)
        value, out, aux = run_session("gradients", self._pull, call.xs, dy, call)
        return value, self.pack(out), aux

    def _pull(
        self, tape: Tape, xs: Sequence[Any], dy: Any, call: BoundCall | None = None
    ) -> tuple[Any, list[Any], Any]:
        """Return value, gradients and aux of one call, as the kind of the arguments."""
        # Not split further: every gradient runs it.  With the leaves made by a function of its own, that of a sum of 10
        # elements takes 1.02 times as long (3.6 µs).
        args: list[Any] = []
        leaves: list[Any] = []
        kind, are_leaves, has_numbers = PYTHON, True, False  # are_leaves: every x is one leaf
        try:
            for x in xs:
                input_type = type(x)
                if input_type is ndarray or input_type is float64:
                    kind = kind or ARRAY
                elif input_type is float or input_type is int:
                    has_numbers = True
                else:
                    are_leaves = False
                    kind = max(kind, self._enter(tape, x, args, leaves))
                    continue
                t = tape.make_leaf(x)
                args.append(t)
                leaves.append(t)
        except (DataError, GradientError) as error:
            raise name_input(error, self.face, self._parameters(xs, call), xs, len(leaves)) from None
        if call is None:
            y = self.__wrapped__(*args)
        else:
            are_leaves = False
            kind = max(kind, kind_of_passed(call))
            y = call(*args)
        aux = None
        if self.has_aux:
            y, aux = split_aux(self.face, y)
        if type(y) is not Tensor or y.meta.tape is not tape:
            y = self._on_tape(tape, y)
        value, m = y.value, y.meta
        seed = m.one if dy is None and m.one is not None else self._seed(dy, value)
        if not m.raw:
            seed = value.embed(seed)
            roll_long_tape(tape)
        if type(y) is Tensor:
            y.g = seed
        else:
            node_of(y).g = seed
        y = t = None
        args = []  # a reference to a large tensor would keep its buffer from being recycled
        tape.walk()
        out = self._collect(tape, leaves, xs, call, value, None if dy is None else seed)
        if kind and len(out) > 1:
            out = _copy_repeated(out)
        if aux is not None:
            aux = detach_aux(aux, tape, [t.value for t in leaves], kind)
        if type(value) is ndarray:
            value = copy_if_shared(value, [t.value for t in leaves])
        if not are_leaves:
            return convert_back(value, kind), self._restore_structure(xs, out), aux
        if has_numbers:
            value = convert_back(value, kind)
            for i, x in enumerate(xs):
                out[i] = convert_back(out[i], KIND[type(x)])
        return value, out, aux

    # ---- in

    def _enter(self, tape: Tape, x: TensorLike, args: list[Any], leaves: list[Any]) -> int:
        """Make leaves of ``x``, which may be a tree, and return its kind."""
        kinds = [PYTHON]

        def enter(leaf: TensorLike) -> Any:
            k = KIND.get(type(leaf))
            if k is None:
                k, leaf = kind_of(leaf), as_leaf(leaf, self.face)
            kinds.append(k)
            t = tape.make_leaf(leaf)
            leaves.append(t)
            return t

        args.append(tree.map_numbers(enter, x))
        return max(kinds)

    def _parameters(self, xs: Sequence[Any], call: BoundCall | None) -> list[str]:
        """Return the names, in the signature of ``f``, of the arguments to differentiate by."""
        return list_parameter_names(self.__wrapped__, len(xs)) if call is None else call.names

    # ---- the result of f

    def _on_tape(self, tape: Tape, y: Any) -> Any:
        """Return the result of ``f`` as a tensor of the tape; raise if it is none or does not depend on the inputs."""
        y = join_array(y)
        if isinstance(y, Tensor):
            y = y.read()
            if tape.holds(y):
                return y
        else:
            is_plain = isinstance(y, RAW) or type(y) in (float, int)
            if not is_plain or self.unconnected == "raise":
                cure = NO_RETURN if y is None else CONNECT_IT if is_plain else COMPUTE_IT
                raise GradientError(f"{self.face}(f): f must return one tensor, got {describe(y)}. {cure}")
        if self.unconnected == "raise":
            raise UnconnectedError(UNREACHED + cut_text(tape) + UNCONNECTED_CURE)
        return tape.make_leaf(unwrap_constant(y))  # no input, but outer tapes still follow its value

    def _seed(self, dy: Operand | None, value: Value) -> Any:
        """Return the cotangent of the result: ones, or ``dy``, which must have the shape of the result."""
        if value.dtype.kind not in "fiubc":
            raise GradientError(f"{self.face}(f): f returned dtype {value.dtype}; only numbers have gradients.")
        return make_seed(dy, value, self.face, "dy", "y = f(x)")

    # ---- out

    def _collect(
        self, tape: Tape, leaves: list[Any], xs: Sequence[Any], call: BoundCall | None, value: Value, dy: Any
    ) -> list[Any]:
        """Return the gradients of the leaves, each in its leaf's dtype and neither a view nor the array ``dy``."""
        out: list[Any] = []
        for t in leaves:
            d, m = t.g, t.meta
            if d is None:
                d = self._handle_missing(tape, leaves, len(out), xs, call, value)
            elif type(d) is not m.kind or (
                m.ndim
                and (
                    (d.dtype is not m.dtype and d.dtype != m.dtype)  # an array from pickle has a dtype of its own
                    or d.base is not None
                    or d is dy
                )
            ):
                d = _make_own(d, float_of(m.dtype, value.dtype))
            out.append(d)
        return out

    def _handle_missing(
        self, tape: Tape, leaves: list[Any], i: int, xs: Sequence[Any], call: BoundCall | None, value: Value
    ) -> Any:
        """Return the gradient of the leaf ``i``, which was not reached, or raise an error."""
        if self.unconnected == "raise":
            names = list_names(self._parameters(xs, call), xs)
            lost = [name for name, t in zip(names, leaves, strict=True) if node_of(t).g is None]
            which = f" Not reached: {', '.join(lost)} ({len(lost)} of {len(leaves)} inputs)." if len(leaves) > 1 else ""
            raise UnconnectedError(UNREACHED + which + cut_text(tape) + UNCONNECTED_CURE)
        if self.unconnected == "none":
            return None
        t = leaves[i]
        return np.zeros(t.shape, float_of(t.dtype, value.dtype))[()]

    def _restore_structure(self, xs: Sequence[Any], out: list[Any]) -> list[Any]:
        """Return the gradients in the structure of the inputs, each of the kind of its own input."""
        source = iter(out)

        def give(leaf: Any) -> Any:
            d, kind = next(source), KIND.get(type(leaf))
            if kind == ARRAY:
                return d
            if kind is None:
                kind = kind_of(leaf)
            if kind == TENSOR and leaf.dtype.kind in "iub" and d is not None:
                d = d.astype(gradient_dtype(leaf, [d]))
            return convert_back(d, kind)

        return [tree.map_numbers(give, x) for x in xs]


def split_aux(face: str, out: TensorLike) -> tuple[Any, Any]:
    """Return the result of ``f`` and aux, for ``has_aux=True``."""
    if not isinstance(out, tuple | list) or len(out) != 2:
        count = f" of {len(out)}" if isinstance(out, tuple | list) else ""
        raise GradientError(f"{face}(f, has_aux=True): f must return (y, aux), got {describe(out)}{count}.")
    return out[0], out[1]


def kind_of(x: Any) -> int:
    if isinstance(x, Tensor):
        return x.result_kind
    return ARRAY if hasattr(x, "__array__") else PYTHON


def detach_aux(aux: object, tape: Tape | DualLevel, taken: Sequence[Any], kind: int, is_kept: bool = False) -> Any:
    """Return aux with the tensors of a tape, or the dual numbers of a level, replaced by their values.

    ``is_kept``: the tape still needs its own.
    """

    def detach(t: Any) -> Any:
        t = join_array(t)
        now = t.read() if isinstance(t, Tensor) and not t.is_variable else t  # a view may be stale
        if not tape.holds(now):
            return t
        v = unwrap_constant(now.value)
        return convert_back(v.copy() if is_kept and type(v) is ndarray else copy_if_shared(v, taken), kind)

    return tree.map_leaves(detach, aux)


def kind_of_passed(call: BoundCall) -> int:
    """Return the kind of the arguments that are not differentiated by, which the value of ``f`` is at least."""
    passed = call.other_arguments
    return max((kind_of(leaf) for leaf in tree.leaves(passed)), default=PYTHON) if passed else PYTHON


def gradient_dtype(x: Any, results: Sequence[Any]) -> Any:
    """Return the dtype of the gradient of ``results`` by ``x``.

    Of an integer Tensor it is float32, as in TensorFlow.js.
    """
    if isinstance(x, Tensor) and not level_of(x):
        return float_of(x.dtype)
    return np.result_type(float_of(x.dtype), *(float_of(x.dtype, z.dtype) for z in results))


def _copy_repeated(out: list[Any]) -> list[Any]:
    """Return gradients such that no two are one array, as those of an array that is given twice."""
    if len({*map(id, out)}) == len(out):
        return out
    return [d.copy() if isinstance(d, ndarray) else d for d in out]


def _make_own(d: Value, wanted: np.dtype[Any]) -> Any:
    """Return a cotangent as an array of its own, in the dtype of the gradient."""
    d = open_gate(d)
    if d.dtype != wanted:
        return d.astype(wanted)
    return d.copy() if type(d) is ndarray else d  # it may be a view, or the caller's dy itself


def copy_if_shared(v: Value, taken: Sequence[Any]) -> Any:
    """Return an array, copied if it is a view or one of ``taken``, the arrays that belong to the caller."""
    return v.copy() if type(v) is ndarray and (v.base is not None or any(v is t for t in taken)) else v


def describe(y: object) -> str:
    """Return what ``f`` returned, for messages."""
    return "None" if y is None else type(y).__name__


def as_leaf(x: Any, face: str) -> Any:
    """Return an argument as the array or tensor that becomes a leaf; Python numbers become float64."""
    if isinstance(x, Tensor):
        return x.read().as_leaf()
    if hasattr(x, "__array__"):
        refuse_matrix(x, face)
        return unwrap_constant(x)
    try:
        return as_array(x, np.float64, subject=face)[()]
    except DataError:
        if not any(isinstance(n, complex) for n in tree.leaves(x)):
            raise
        return as_array(x, np.complex128, subject=face)[()]


def convert_back(v: Any, kind: int) -> Any:
    """Return a value as a kind: a Tensor, an array, or Python numbers and lists."""
    if kind == ARRAY:
        return v
    if kind == PYTHON and type(v) is float64:
        return float(v)  # six times quicker than v.tolist()
    if isinstance(v, Tensor):
        return v.as_result(kind)
    if v is None:
        return v
    return v.tolist() if kind == PYTHON else constant(v) if kind == TENSOR else as_symbol(v)


class Grad(Differentiated):
    face = "grad"

    def __call__(self, *args: object, dy: Array | None = None, **kwargs: object) -> Any:
        if len(args) == 1 and dy is None and not kwargs and self.selection is None:
            _, out, aux = run_session("gradients", self._pull, args, dy)
            return (out[0], aux) if self.has_aux else out[0]
        _, grad, aux = self.pull_chosen(args, dy, kwargs)
        return (grad, aux) if self.has_aux else grad


class ValueGrad(Differentiated):
    face = "value_and_grad"

    def __call__(self, *args: Operand, dy: Any = None, **kwargs: object) -> ValueAndGrad:
        if len(args) == 1 and dy is None and not kwargs and self.selection is None:
            value, out, aux = run_session("gradients", self._pull, args, dy)
            return new_tuple(ValueAndGrad, ((value, aux) if self.has_aux else value, out[0]))
        value, grad, aux = self.pull_chosen(args, dy, kwargs)
        return ValueAndGrad((value, aux) if self.has_aux else value, grad)


class ByList(Differentiated):
    """A function of a list of the arguments of ``f``, which differentiates by all of them."""

    def pull_list(self, xs: Any, dy: Any, more: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        if more:
            raise ArgumentError(
                f"{self.face}(f)(xs, dy=None): {2 + len(more)} arguments were given by position. "
                f"Give those of f in one list, {self.face}(f)([x, y, z]), or use {self.face[:-1]}(f, argnums=(0, 1))."
            )
        if not isinstance(xs, list | tuple):
            got = type(xs).__name__
            raise ArgumentError(
                f"{self.face}(f)(xs): xs must be a list of inputs, got {got}. Write {self.face}(f)([x])."
            )
        if not xs:
            raise GradientError(
                f"{self.face}(f)(xs): the list of inputs is empty; there is nothing to differentiate by."
            )
        if dy is not None:
            self.check_dy(len(xs))
        if not kwargs:
            return run_session("gradients", self._pull, xs, dy)
        return run_session(
            "gradients", self._pull, xs, dy, BoundCall(self.__wrapped__, tuple(xs), kwargs, range(len(xs)))
        )

    @DynamicClassAttribute
    def __signature__(self) -> Signature:
        taken = signature_of(self.__wrapped__)
        named = [] if taken is None else [p for p in taken.parameters.values() if p.kind >= p.KEYWORD_ONLY]
        xs = Parameter("xs", Parameter.POSITIONAL_ONLY)
        return Signature([xs, Cotangent("dy", Parameter.POSITIONAL_OR_KEYWORD, default=None), *named])


class Grads(ByList):
    face = "grads"

    def __call__(self, xs: Any = None, /, dy: Any = None, *more: Any, **kwargs: Any) -> Any:
        _, out, aux = self.pull_list(xs, dy, more, kwargs)
        return (out, aux) if self.has_aux else out


class ValueGrads(ByList):
    face = "value_and_grads"

    def __call__(
        self, xs: TensorLike | None = None, /, dy: TensorLike | None = None, *more: Any, **kwargs: object
    ) -> ValueAndGrads:
        value, out, aux = self.pull_list(xs, dy, more, kwargs)
        return new_tuple(ValueAndGrads, ((value, aux) if self.has_aux else value, out))


def grad(
    f: Callable[..., Any],
    argnums: ArgNums = None,
    *,
    argnames: Any = None,
    has_aux: bool = False,
    unconnected: str = "raise",
) -> Grad:
    """Return the gradient of ``f(x)``, as a function ``g(x, dy=None, **kwargs)``.

    ``f`` gets Tensors and returns one tensor; without ``dy`` the gradient is that of ``sum(f(x))``.
    ``argnums`` and ``argnames`` choose the arguments to differentiate by, by number and by name; then ``g`` is called
    as ``f`` is, with ``dy=`` besides, and passes the other arguments on.  One gives its gradient, a tuple of them a
    tuple.  Without them ``g`` takes one argument, and passes keywords on to ``f``.
    ``has_aux=True``: ``f`` returns ``(y, aux)`` and the result is ``(gradient, aux)``.
    ``unconnected``: what to do if ``f`` does not reach ``x``: ``"raise"``, ``"zero"`` or ``"none"``.

    >>> import numpy as np, pullback as pb
    >>> pb.grad(lambda x: x**3)(2.0)
    12.0
    >>> pb.grad(lambda x: np.sin(x) * x)(np.array([0.0, 1.0]))
    array([0.        , 1.38177329])
    >>> pb.grad(lambda w, x, y: (w * x - y) ** 2, argnums=0)(2.0, 3.0, 5.0)
    6.0
    """
    return Grad(f, argnums, argnames, has_aux, unconnected)


def grads(f: Callable[..., Any], *, has_aux: bool = False, unconnected: str = "raise") -> Grads:
    """Return the gradients of ``f(x1, x2, ...)``, as a function ``g([x1, x2, ...], dy=None, **kwargs)``.

    Keywords are passed on to ``f``; ``has_aux`` and ``unconnected`` are those of ``grad``.

    >>> import pullback as pb
    >>> pb.grads(lambda x, y: x * y)([2.0, 5.0])
    [5.0, 2.0]
    """
    return Grads(f, has_aux=has_aux, unconnected=unconnected)


def value_and_grad(
    f: Callable[..., Any],
    argnums: ArgNums = None,
    *,
    argnames: Any = None,
    has_aux: bool = False,
    unconnected: str = "raise",
) -> ValueGrad:
    """Return the value and gradient of ``f(x)`` as a named tuple, by a function ``g(x, dy=None, **kwargs)``.

    The arguments are those of ``grad``; with ``has_aux`` the result is ``((y, aux), grad)``.

    f: a function.
    argnums: which arguments to differentiate by, by position.
    argnames: the same by name.
    has_aux: whether ``f`` returns ``(y, aux)``.
    unconnected: ``"raise"``, ``"zero"`` or ``"none"`` for an input that ``f`` does not reach.

    >>> import pullback as pb
    >>> value, grad = pb.value_and_grad(lambda x: x**2)(3.0)
    >>> value, grad
    (9.0, 6.0)
    >>> pb.value_and_grad(lambda w, x: w * x, argnums=(0, 1))(2.0, 3.0)
    ValueAndGrad(value=6.0, grad=(3.0, 2.0))
    """
    return ValueGrad(f, argnums, argnames, has_aux, unconnected)


def value_and_grads(f: Callable[..., Any], *, has_aux: bool = False, unconnected: str = "raise") -> ValueGrads:
    """Return value and gradients of ``f(x1, x2, ...)``, by a function ``g([x1, x2, ...], dy=None, **kwargs)``.

    Keywords are passed on to ``f``; ``has_aux`` and ``unconnected`` are those of ``grad``.

    >>> import pullback as pb
    >>> pb.value_and_grads(lambda a, b: a * b)([2.0, 3.0])
    ValueAndGrads(value=6.0, grads=[3.0, 2.0])
    """
    return ValueGrads(f, has_aux=has_aux, unconnected=unconnected)
