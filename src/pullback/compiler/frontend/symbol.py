"""Symbols: the tensors of a program that is being traced, and the strides that NumPy's arrays would have.

A kernel of NumPy's may give its result another order of axes than C order if its arguments have one.  Whether a reshape
of such a result is a view depends on it, so the strides are inferred where a program asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from sys import _getframe
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pullback.compiler.frontend.host_ops import HostFunction
from pullback.compiler.ir.graph import Node, Shape, compute_strides
from pullback.compiler.ir.kinds import VIEW
from pullback.core.accelerate import compile_nothing
from pullback.core.callers import HOW_TO_PICK, MEANS, arrange_coefficients, explain_refusal
from pullback.core.source import find_user_line
from pullback.core.tensor import INSTEAD, PLAIN, STAY, Tensor, Wrapped
from pullback.core.weak import Weak, stands_for_number
from pullback.core.writes import are_in_order
from pullback.errors import SymbolValueError

if TYPE_CHECKING:
    from pullback.compiler.frontend.trace import Trace

PYTHON_NUMBERS = (bool, int, float, complex)
PYTHON, ARRAY, TENSOR, GIVEN = 0, 1, 2, 3  # kinds of arguments and results; GIVEN is known at the call
BY_KIND = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
CHOOSE = "Choose with where(condition, x, y) or pb.cond, repeat with pb.while_loop"
CONVERSIONS = ("bool", "complex", "float", "int", "item", "np.asarray", "numpy", "tolist")


class Symbol(Wrapped):
    """A tensor of the program that is being traced: it represents a node of the graph."""

    __slots__ = ()
    differentiates = False

    stands_for_numbers = True
    has_derivative = False
    node: Any = vars(Tensor)["value"]  # in a slot of Tensor, so that a GradientTape can make it one of its handles
    traced_by: Any = vars(Tensor)["y"]
    weak: Any = vars(Tensor)["via"]  # the type of the Python number that it represents, which does not widen arrays
    source: Any = vars(Tensor)["g"]  # the call whose result has other strides in NumPy than the node, or these strides

    def __init__(self, trace: Trace, node: Node, weak: Any = None) -> None:
        self.traced_by, self.node, self.weak, self.source = trace, node, weak, None

    def twin(self) -> Symbol:
        copy = Symbol(self.traced_by, self.node, self.weak)
        copy.source = self.source
        return copy

    @property
    def is_in_order(self) -> bool:
        """Whether NumPy's array surely has its axes in C order."""
        if self.source is not None:
            return False
        return self.node.kind is not VIEW or are_in_order(self.node.shape, self.node.data.strides)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, in elements, of the array that NumPy would have here."""
        self.traced_by.reads_layout = True
        pending = [self]  # not by recursion: a chain of ops is as long as the program
        while pending:
            call = pending[-1].source
            unknown = (
                [a for a in call.args if type(a) is Symbol and type(a.source) is Source] if type(call) is Source else []
            )
            pending += unknown
            if not unknown:
                if type(call) is Source:
                    pending[-1].source = call.find_strides(pending[-1].shape)
                pending.pop()
        if self.source is not None:
            return cast("tuple[int, ...]", self.source)
        return (
            cast("tuple[int, ...]", self.node.data.strides) if self.node.kind is VIEW else compute_strides(self.shape)
        )

    def lay_out(self, strides: Sequence[int]) -> Symbol:
        """Return the symbol of an array with memory of its own, its axes in the order of these strides."""
        copy = self.twin()
        copy.source = close_gaps(self.shape, strides)
        if copy.source == compute_strides(self.shape) and self.node.kind is not VIEW:
            copy.source = None
        return copy

    @property
    def shape(self) -> Shape:
        shape: Shape = self.node.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        if not self.node.shape and id(_getframe(1).f_code) in MEANS:
            raise AttributeError("dtype")
        dtype: np.dtype[Any] = self.node.dtype
        return dtype

    @property
    def level(self) -> int:
        level: int = self.traced_by.level
        return level

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        trace = self.traced_by
        trace.line = trace.lines.find(3)  # outside this function and the one that calls it
        try:
            return trace.perform(op, args, params)
        finally:
            trace.line = ""

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return NumPy's result; it is strong for Python numbers, as ``np.exp(0.5)`` is a float64."""
        args = arrange_coefficients(_getframe(1), args)
        z = super().__array_ufunc__(ufunc, method, *args, **kwargs)
        return z.read() if type(z) is Weak and all(map(stands_for_number, args)) else z

    def embed(self, x: Any) -> Any:
        """Return a constant as a symbol, so that results computed from one number stay one number."""
        return self.traced_by.as_symbol(x)

    def call_unfollowed(self, f: Any, args: Sequence[Any]) -> Any:
        op = HostFunction(f)
        return note_source(self.traced_by.add_host_op(op, args, {}), op, args, {})

    def note_weak(self) -> None:
        """Note that it is a tensor even where the function is called with Python numbers only."""
        self.traced_by.weak_arrays.add(self.node.number)

    def stop_following(self) -> Any:
        return self.traced_by.stop(self)

    def strip(self) -> Any:
        return self.traced_by.strip(self)

    def all_values(self) -> Any:
        return np.empty(0, self.dtype)

    @property
    def result_kind(self) -> int:  # type: ignore[override]
        return PYTHON if self.weak or self.node.number in self.traced_by.lists else GIVEN

    def as_leaf(self) -> Symbol:
        """Return the value of a leaf of a tape; Python numbers become float64."""
        if self.result_kind != PYTHON:
            return self
        node = self.traced_by.lists.get(self.node.number, self.node)
        if node.dtype.kind not in "fc":
            node = self.traced_by.cast(node, np.dtype(np.float64))
        return Symbol(self.traced_by, node)

    def as_result(self, kind: int) -> Symbol:
        if kind == PYTHON and not self.shape:
            return Symbol(self.traced_by, self.node, BY_KIND[self.dtype.kind])
        if kind == PYTHON:
            self.traced_by.lists.setdefault(self.node.number, self.node)
        elif kind == GIVEN:
            self.traced_by.given_back.add(self.node.number)
        return self

    def beneath(self) -> Any:
        return self._concrete("the value")

    def _concrete(self, subject: str) -> Any:
        purpose, cure = explain_refusal(self.dtype)
        is_conversion = subject in CONVERSIONS
        usual = INSTEAD.get(subject, STAY) if is_conversion else CHOOSE
        picking = HOW_TO_PICK if self.dtype.kind in "iu" else ""
        raise SymbolValueError(
            f"{subject}{'()' * is_conversion} of a tensor of shape {self.shape} is needed while a function is being "
            f"compiled ({find_user_line()}){purpose}: only shapes and dtypes are known then. {picking}"
            f"{cure or usual}, or name the argument that decides in static_argnums."
        )

    def _condition(self) -> Any:
        return self._concrete("bool()")

    def __index__(self) -> int:
        return int(self._concrete("the index"))

    def __repr__(self) -> str:
        return f"<symbol {self.node!r}: {self.dtype}{list(self.shape)}>"

    __str__ = __repr__


PLAIN.add(Symbol)


class Source(NamedTuple):
    """A call of an op on arrays that are not all in C order: its kernel decides on the order of the result."""

    op: Any
    args: Sequence[Any]
    params: dict[str, Any]

    def find_strides(self, shape: Shape) -> tuple[int, ...] | None:
        """Return the strides, in elements, of the kernel's result; None if it must not be run on any numbers."""
        if self.op.elementwise and self.op.kernel is not np.copy:
            return _combine_strides(tuple([_get_layout(a) for a in self.args]))
        # Small arrays have the same order, and a product of large ones would take long; a function may check the shape.
        if not self.op.makes_views and type(self.op) is not HostFunction:
            result = self._run([_make_small_model(a) for a in self.args])
            if result is not None and result.ndim == len(shape):
                return close_gaps(shape, result.strides)
        result = self._run([_make_model(a) for a in self.args])
        return None if result is None else tuple(step // result.itemsize for step in result.strides)

    def _run(self, models: list[Any]) -> Any:
        """Return the result of the kernel for example arrays; None if it fails, or if it is no array with axes."""
        try:
            with np.errstate(all="ignore"), compile_nothing():
                result = self.op.perform(models, self.params)
        except Exception:  # such as a matrix that has no factors: results of linear algebra are in C order
            return None
        return result if isinstance(result, np.ndarray) and result.ndim > 1 else None


def note_source(result: Any, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the result of a call, with the call as its source if an argument is not in C order."""
    if type(result) is Symbol and len(result.node.shape) > 1:
        picks = op.makes_views and _picks_after_slice(params.get("index"))
        for a in args:
            if picks or not (_is_in_order(a) if not (op.makes_views and type(a) is Symbol) else a.source is None):
                result = result.twin()  # a node may be that of an argument
                operands = [a.twin() if type(a) is Symbol else a for a in args]  # a write changes ``a`` itself
                result.source = Source(op, operands, params)
                break
    return result


def _picks_after_slice(index: Any) -> bool:
    """Return whether an index has positions or a mask after a slice: NumPy's copy is in another order, as of x[:, i].

    >>> _picks_after_slice((slice(2), np.array([1, 0]))), _picks_after_slice((np.array([1, 0]), slice(2)))
    (True, False)
    """
    if type(index) is not tuple:
        return False
    picks = [isinstance(i, np.ndarray) for i in index]
    return any(picks) and not picks[0]


def close_gaps(shape: Shape, strides: Sequence[int]) -> tuple[int, ...]:
    """Return strides, in elements, that leave no gaps, with the axes in the order of the given ones.

    >>> close_gaps((2, 3), (8, 64))
    (1, 2)
    """
    order = sorted(range(len(shape)), key=lambda i: -abs(strides[i]))
    steps = compute_strides(tuple(shape[i] for i in order))
    return tuple([steps[order.index(i)] for i in range(len(shape))])


def _is_in_order(a: Any) -> bool:
    """Return whether NumPy's array for an argument surely has its axes in C order."""
    if type(a) is Symbol:
        return a.is_in_order
    a = a.read().value if isinstance(a, Tensor) else a
    return not isinstance(a, np.ndarray) or a.flags.c_contiguous or are_in_order(a.shape, a.strides)


def _make_model(a: Any) -> Any:
    """Return an array of ones with the strides that NumPy's would have."""
    if type(a) is not Symbol:
        return a.read().value if isinstance(a, Tensor) else a
    ends = [step * (n - 1) for step, n in zip(a.strides, a.shape, strict=True)]
    low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
    memory = np.ones(high - low + 1 if a.size else 0, a.dtype)
    return as_strided(memory[-low:], a.shape, [step * memory.itemsize for step in a.strides])


def _make_small_model(a: Any) -> Any:
    """Return an array of ones with axes of length 1 and 2 in the order that NumPy's would have."""
    if type(a) is not Symbol:
        return a.read().value if isinstance(a, Tensor) else a
    order = sorted(range(len(a.shape)), key=lambda i: -abs(a.strides[i]))
    return np.ones([min(a.shape[i], 2) for i in order], a.dtype).transpose(np.argsort(order))


def _get_layout(a: Any) -> tuple[Shape, tuple[int, ...]]:
    """Return the shape and the strides, in elements, of the array that NumPy would have."""
    if type(a) is Symbol:
        return a.shape, a.strides
    a = np.asarray(a.read().value if isinstance(a, Tensor) else a)
    return a.shape, tuple([step // a.itemsize for step in a.strides])


@lru_cache(1024)
def _combine_strides(layouts: tuple[tuple[Shape, tuple[int, ...]], ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of the result of an elementwise op on arrays of these shapes and strides."""
    models = [as_strided(np.zeros(1, np.int8), *layout) for layout in layouts]  # bytes that are all the same one
    result = np.nditer([*models, None], ["zerosize_ok"], op_dtypes=[np.int8] * (len(models) + 1)).operands[-1]
    return result.strides


def separate(z: Any) -> Any:
    """Return the result of a formula as one that shares no memory with an argument and is in C order."""
    if type(z) is not Symbol:
        return z
    copy = z.twin()
    copy.source = compute_strides(copy.shape) if copy.node.kind is VIEW else None
    return copy
