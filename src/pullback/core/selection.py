"""``x[mask]`` where the mask has no values yet, or others for each example: under ``compile`` and ``vmap``.

How many elements such a selection has is not known, so it cannot be an array.  A ``Selection`` keeps all elements and
the mask.  Elementwise ops compute all elements, with a regular point of the op in place of those that are not selected,
so that these have neither NaN nor a gradient; reductions replace them by their neutral element; and a selection is
written by ``np.where``.  So ``x[mask] *= 3``, ``x[mask] = np.log(y[mask])`` and ``x[mask].mean()`` are NumPy's.  What
needs the number of elements raises an error.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.interpreter import new_level
from pullback.core.op import OPERATORS, REFLECTED
from pullback.core.tensor import PLAIN, Tensor, Wrapped, call_unfollowed, read_sizes
from pullback.core.writes import make_alias, write
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.axis_arguments import resolve_reduced_axes

if TYPE_CHECKING:
    from pullback.typing import Index, Value

CURE = (
    "Elementwise functions, sum, mean, max, min, any, all and x[mask] = ... need no number of elements; for anything "
    "else keep all elements: np.where(mask, x, 0), or"
)
ALL = slice(None)


class Selection(Wrapped):
    """The elements of ``whole`` at which ``mask`` holds, along one axis in place of those of the mask.

    ``axis`` is the first axis of ``whole`` that the mask is along.
    """

    __slots__ = ()
    differentiates = False
    has_derivative = False

    whole: Any = vars(Tensor)["value"]
    mask: Any = vars(Tensor)["x"]
    axis: Any = vars(Tensor)["y"]
    number: int = vars(Tensor)["meta"]

    def __init__(self, whole: Any, mask: Any, axis: int) -> None:
        self.whole, self.mask, self.axis, self.number = whole, mask, axis, new_level()

    @property
    def shape(self) -> tuple[int, ...]:
        read_sizes("x[mask]", self.mask, CURE)
        raise AssertionError("a mask with values selects an array")

    @property
    def ndim(self) -> int:
        return len(self.whole.shape) - len(self.mask.shape) + 1

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.whole.dtype
        return dtype

    @property
    def level(self) -> int:
        return self.number

    def twin(self) -> Selection:
        return Selection(self.whole, self.mask, self.axis)

    def strip(self) -> Any:
        return self

    def stop_following(self) -> Any:
        return self

    def beneath(self) -> Any:
        return self.shape

    def _condition(self) -> Any:
        return self.shape

    def __repr__(self) -> str:
        return f"<elements of {self.whole!r} where {self.mask!r}>"

    __str__ = __repr__

    # ---- ops

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not op.custom and op.elementwise:
            return self._compute_elements(op, args, params)
        if op.kernel in REDUCTIONS and len(args) == 1:
            return self._reduce(op, params)
        if op.kernel is np.matmul and all(isinstance(a, Selection) and a.ndim == 1 for a in args):
            return np.sum(np.multiply(*args))
        return self.shape  # which raises

    def _compute_elements(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Selection:
        """Return the result of an elementwise op on all elements, regular ones in place of those not selected."""
        wholes = [self._align(a, op.name) for a in args]
        mask = self.spread_mask()
        safe = [_replace(mask, a, op.regular_point) for a in wholes]
        return Selection(op.call(safe, params), self.mask, self.axis)

    def _align(self, a: Any, name: str) -> Any:
        """Return an operand so that it broadcasts with all elements."""
        if isinstance(a, Selection):
            if a.axis != self.axis or not is_same_mask(a.mask, self.mask):
                raise ArgumentError(
                    f"{name}: two selections x[mask] and y[other] can be combined under vmap and compile only if both "
                    "masks are the same. Choose with np.where(mask, x, y) instead."
                )
            return a.whole
        rank = np.ndim(a)
        behind = self.ndim - 1 - self.axis  # axes after the one of the selected elements
        if rank <= behind:
            return a
        shape = np.shape(a)
        at = rank - 1 - behind
        if shape[at] != 1:
            raise ShapeError(
                f"{name}: how many elements x[mask] has is not known here, and the other operand of shape {shape} has "
                f"{shape[at]}. Give one number for all of them, or choose with np.where(mask, x, y)."
            )
        return np.reshape(a, (*shape[:at], *(1,) * len(self.mask.shape), *shape[at + 1 :]))

    def spread_mask(self) -> Any:
        """Return the mask with axes for all that follow it."""
        return np.reshape(self.mask, self.mask.shape + (1,) * (self.ndim - 1 - self.axis))

    def _reduce(self, op: Any, params: dict[str, Any]) -> Any:
        gone = resolve_reduced_axes(self.ndim, params.get("axis"), op.name)
        rank = len(self.mask.shape)
        if self.axis not in gone:
            axes = tuple(i if i < self.axis else i + rank - 1 for i in gone)
            whole = op.call([_replace(self.spread_mask(), self.whole, op.regular_point)], {**params, "axis": axes})
            return Selection(
                whole, self.mask, self.axis if params.get("keepdims") else self.axis - sum(i < self.axis for i in gone)
            )
        axes = tuple(
            j
            for i in gone
            for j in ([i] if i < self.axis else range(i, i + rank) if i == self.axis else [i + rank - 1])
        )
        z = REDUCTIONS[op.kernel](self, op, axes, params)
        return np.expand_dims(z, gone) if params.get("keepdims") else z

    def fill(self, value: Any) -> Any:
        """Return all elements, with a number in place of those that are not selected."""
        return np.where(self.spread_mask(), self.whole, value)

    def count(self, axes: tuple[int, ...]) -> Any:
        """Return how many elements are selected, along axes of ``whole`` among which are those of the mask."""
        own = range(self.axis, self.axis + len(self.mask.shape))
        return np.sum(self.mask) * prod(self.whole.shape[i] for i in axes if i not in own)


PLAIN.add(Selection)


def _replace(mask: Any, a: Any, point: float) -> Any:
    """Return an operand with a regular point where the mask is false; Python's numbers as they are."""
    if not isinstance(a, Tensor | ndarray) or a.dtype.kind not in "iufc":
        return a
    return np.where(mask, a, point if a.dtype.kind in "fc" else 1)


def is_same_mask(a: Any, b: Any) -> bool:
    """Return whether two masks surely select the same elements."""
    while isinstance(a, Tensor) and isinstance(b, Tensor):
        a, b = a.read(), b.read()
        if type(a) is not type(b) or a.level != b.level:
            return False
        a, b = a.value, b.value
    return a is b or (isinstance(a, ndarray) and isinstance(b, ndarray) and np.array_equal(a, b))


# ---- reductions


def _fill_with(neutral: Callable[[np.dtype[Any]], Any]) -> Any:
    def reduce(x: Selection, op: Any, axes: tuple[int, ...], params: dict[str, Any]) -> Any:
        return op.call([x.fill(neutral(x.dtype))], {**params, "axis": axes, "keepdims": False})

    return reduce


def _find_extreme(sign: int) -> Any:
    """Return the reduction by ``max`` for 1, by ``min`` for -1, which raise if nothing is selected, as NumPy's do."""

    def neutral(dtype: np.dtype[Any]) -> Any:
        if dtype.kind == "b":
            return sign < 0
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return limits.min if sign > 0 else limits.max
        return -sign * np.inf

    def reduce(x: Selection, op: Any, axes: tuple[int, ...], params: dict[str, Any]) -> Any:
        z = _fill_with(neutral)(x, op, axes, params)
        return np.where(call_unfollowed(_check_any, np.any(x.mask)), z, np.zeros((), z.dtype))

    return reduce


def _check_any(has_elements: Any) -> Any:
    if not np.all(has_elements):
        raise ArgumentError("x[mask]: the mask selects nothing, and nothing has no maximum or minimum.")
    return has_elements


def _average(x: Selection, op: Any, axes: tuple[int, ...], params: dict[str, Any]) -> Any:
    whole = x.fill(0)
    return np.sum(whole, axis=axes) / x.count(axes)


def _find_variance(x: Selection, op: Any, axes: tuple[int, ...], params: dict[str, Any]) -> Any:
    mean = np.expand_dims(_average(x, op, axes, params), axes)
    apart = np.where(x.spread_mask(), x.whole - mean, 0)
    squares = apart.real**2 + apart.imag**2 if x.dtype.kind == "c" else apart * apart
    return np.sum(squares, axis=axes) / (x.count(axes) - params.get("ddof", 0))


def _find_deviation(x: Selection, op: Any, axes: tuple[int, ...], params: dict[str, Any]) -> Any:
    variance = _find_variance(x, op, axes, params)
    return np.where(variance == 0, 0, np.sqrt(np.where(variance == 0, 1, variance)))  # its gradient is 0 where it is 0


REDUCTIONS: dict[Any, Any] = {
    np.sum: _fill_with(lambda _: 0), np.prod: _fill_with(lambda _: 1), np.count_nonzero: _fill_with(lambda _: 0),
    np.any: _fill_with(lambda _: False), np.all: _fill_with(lambda _: True), np.max: _find_extreme(1),
    np.min: _find_extreme(-1), np.mean: _average, np.var: _find_variance, np.std: _find_deviation,
}  # fmt: skip


# ---- x[mask] += y


def _define_in_place(word: str, sign: str) -> None:
    """Define the operator ``+=`` of selections, which are copies: the tensor that they are taken from stays."""

    def in_place(x: Selection, y: Any) -> Any:
        new = getattr(x, f"__{word}__")(y)
        if new is NotImplemented:
            return new
        if not np.can_cast(new.dtype, x.dtype, "same_kind"):
            raise ArgumentError(
                f"x[mask] {sign}= value: the result has dtype {new.dtype}, which x of dtype {x.dtype} cannot hold. "
                "Cast x first."
            )
        x.whole = np.astype(new.whole, x.dtype)
        return x

    in_place.__name__ = f"__i{word}__"
    setattr(Selection, in_place.__name__, in_place)


for _word, _sign in OPERATORS.values():
    if _word in REFLECTED:
        _define_in_place(_word, str(_sign))


# ---- indexing


def find_selection(index: Index, rank: int) -> tuple[Any, Any, int] | None:
    """Return an index without its mask, the mask, and the axis it is along; None for an index of another kind.

    ``rank`` is that of the indexed tensor.  Only positions beside the mask and slices may stand with it.
    """
    parts: list[Any] = list(index) if type(index) is tuple else [index]
    at = _find_mask(parts)
    if at is None:
        return None
    mask = parts[at]
    rest = next((n for n, i in enumerate(parts) if i is ...), None)
    if rest is not None:
        missing = rank - (sum(i is not ... for i in parts) - 1 + mask.ndim)
        parts[rest : rest + 1] = [ALL] * missing
        at += missing - 1 if rest < at else 0
    cut = (*parts[:at], *[ALL] * mask.ndim, *parts[at + 1 :])
    return cut, mask, sum(not isinstance(i, int) for i in parts[:at])


def _find_mask(parts: list[Any]) -> int | None:
    """Return where in an index its only tensor is, if that is a mask; None if what stands with it does not fit."""
    masks = [n for n, i in enumerate(parts) if isinstance(i, Tensor)]
    if len(masks) != 1 or parts[masks[0]].dtype.kind != "b" or not parts[masks[0]].ndim:
        return None
    others = parts[: masks[0]] + parts[masks[0] + 1 :]
    if any(type(i) is bool or not (isinstance(i, int | slice) or i is ...) for i in others):
        return None
    advanced = [n for n, i in enumerate(parts) if n == masks[0] or isinstance(i, int)]
    if advanced[-1] - advanced[0] + 1 != len(advanced):
        return None  # NumPy moves the selected axis to the front
    return masks[0]


def check_mask(x: Value, mask: Any, axis: int) -> None:
    """Raise an error if a mask does not have the lengths of the axes of ``x`` that it is along."""
    lengths = tuple(x.shape[axis : axis + len(mask.shape)])
    if lengths != mask.shape:
        raise ShapeError(
            f"x[mask]: the mask has shape {mask.shape}, and the axes of x that it is along have {lengths}."
        )


def select(x: Any, mask: Any, axis: int) -> Selection:
    """Return ``x[mask]``; later writes to either do not change it."""
    if isinstance(x, Selection):
        return Selection(x.whole, x.mask & x._align(mask, "x[mask]"), x.axis)
    check_mask(x, mask, axis)
    return Selection(make_alias(x.read()), make_alias(mask.read()), axis)


def write_selection(x: Any, value: Any, mask: Any, axis: int) -> None:
    """Write a value, one for all places or a selection by the same mask, into ``x`` where the mask holds."""
    if isinstance(x, Selection):
        within = select(x, mask, axis)
        x.whole = _choose(within.mask, within.axis, value, x.whole)
    else:
        check_mask(x, mask, axis)
        write(x, lambda old: _choose(mask, axis, value, old))


def _choose(mask: Any, axis: int, value: Any, x: Any) -> Any:
    place = Selection(x, mask, axis)
    return np.where(place.spread_mask(), place._align(value, "x[mask] = value").astype(x.dtype), x)
