"""Comparisons, logic and ``where``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import broadcast, elementwise1, elementwise2
from pullback.core.calculus import no_derivative, partials
from pullback.core.lowering import scalar
from pullback.core.op import alias, op
from pullback.core.tensor import Tensor
from pullback.numerics.adjoints import select

if TYPE_CHECKING:
    from pullback.typing import TensorLike

__all__ = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "bitwise_not",
    "left_shift", "right_shift",
    "is_nan", "isnan", "is_inf", "isinf", "is_finite", "isfinite", "where",
]  # fmt: skip


# ---- comparisons


@op(np.equal, acts=elementwise2, d=no_derivative())
def equal(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where ``x`` and ``y`` are equal.

    >>> pb.equal(2.0, 1.0)
    np.False_
    """


@op(np.not_equal, acts=elementwise2, d=no_derivative())
def not_equal(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where ``x`` and ``y`` differ; NaN differs from everything.

    >>> pb.not_equal(2.0, 1.0)
    np.True_
    """


NUMBERS = (float, int, Tensor, np.ndarray, np.generic, complex, list, tuple)


def _compare_numbers(compare: Any) -> Any:
    """Return the comparison operator, which gives NotImplemented for what is no number."""
    return lambda x, y: compare(x, y) if isinstance(y, NUMBERS) or hasattr(y, "__array__") else NotImplemented


setattr(Tensor, "__eq__", _compare_numbers(equal))  # noqa: B010
setattr(Tensor, "__ne__", _compare_numbers(not_equal))  # noqa: B010


@op(np.less, acts=elementwise2, d=no_derivative())
def less(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where ``x < y``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.less(np.array([1.0, 2.0]), 2.0)
    array([ True, False])
    """


@op(np.less_equal, acts=elementwise2, d=no_derivative())
def less_equal(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where ``x <= y``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.less_equal(np.array([1.0, 2.0]), 1.0)
    array([ True, False])
    """


@op(np.greater, acts=elementwise2, d=no_derivative())
def greater(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where ``x > y``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.greater(2.0, 1.0)
    np.True_
    """


@op(np.greater_equal, acts=elementwise2, d=no_derivative())
def greater_equal(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where ``x >= y``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.greater_equal(np.array([1.0, 2.0]), 2.0)
    array([False,  True])
    """


# ---- logic


@op(np.logical_and, acts=elementwise2, d=no_derivative())
def logical_and(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where both are true, that is, not 0.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.logical_and(np.array([True, True]), np.array([True, False]))
    array([ True, False])
    """


@op(np.logical_or, acts=elementwise2, d=no_derivative())
def logical_or(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where at least one is true.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.logical_or(np.array([True, False]), False)
    array([ True, False])
    """


@op(np.logical_xor, acts=elementwise2, d=no_derivative())
def logical_xor(x: TensorLike, y: TensorLike, /) -> Any:
    """Return where exactly one is true.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.logical_xor(np.array([True, False]), True)
    array([False,  True])
    """


@op(np.logical_not, acts=elementwise1, d=no_derivative())
def logical_not(x: TensorLike, /) -> Any:
    """Return where ``x`` is false.

    >>> pb.logical_not(np.array([True, False]))
    array([False,  True])
    """


_WHOLE = broadcast("(),()->()", [
    ((np.array([0, 1, 6, -1], np.int32), np.array([3, 5, 12, 7], np.int32)), {}),
    ((np.array([[True], [False]]), np.array([True, False, True])), {}),
    ((np.int32(6), np.int32(3)), {}), ((np.zeros((0, 2), np.int32), np.ones(2, np.int32)), {}),
])  # fmt: skip


@op(np.bitwise_and, acts=_WHOLE, d=no_derivative())
def bitwise_and(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the bits that both integers have; of bools, where both are true.

    x: integers or bools.
    y: the same; broadcast against ``x``.

    >>> pb.bitwise_and(6, 3)
    np.int64(2)
    """


@op(np.bitwise_or, acts=_WHOLE, d=no_derivative())
def bitwise_or(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the bits that at least one integer has.

    x: integers or bools.
    y: the same; broadcast against ``x``.

    >>> pb.bitwise_or(6, 3)
    np.int64(7)
    """


@op(np.bitwise_xor, acts=_WHOLE, d=no_derivative())
def bitwise_xor(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the bits that exactly one integer has.

    x: integers or bools.
    y: the same; broadcast against ``x``.

    >>> pb.bitwise_xor(6, 3)
    np.int64(5)
    """


@op(
    np.invert,
    acts=broadcast("()->()", [
        ((np.array([[0, 1, -6]], np.int32),), {}), ((np.array([True, False]),), {}), ((np.int32(6),), {}),
        ((np.zeros(0, np.int32),), {}),
    ]),
    d=no_derivative(),
)  # fmt: skip
def invert(x: TensorLike, /) -> Any:
    """Return every bit inverted; for bools the logical negation.

    x: integers or bools.

    >>> pb.invert(np.array([True, False]))
    array([False,  True])
    """


_SHIFTED = broadcast("(),()->()", [
    ((np.array([0, 1, 6, -9], np.int32), np.array([3, 5, 1, 2], np.int32)), {}),
    ((np.array([[5], [9]], np.int32), np.array([0, 1, 2], np.int32)), {}),
    ((np.int32(6), np.int32(1)), {}), ((np.zeros((0, 2), np.int32), np.ones(2, np.int32)), {}),
])  # fmt: skip


@op(np.left_shift, acts=_SHIFTED, d=no_derivative())
def left_shift(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the bits of integers shifted left by ``y`` places: ``x << y``.

    x: integers.
    y: the same; broadcast against ``x``.

    >>> pb.left_shift(3, 2)
    np.int64(12)
    """


@op(np.right_shift, acts=_SHIFTED, d=no_derivative())
def right_shift(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the bits of integers shifted right by ``y`` places: ``x >> y``.

    x: integers.
    y: the same; broadcast against ``x``.

    >>> pb.right_shift(12, 2)
    np.int64(3)
    """


# ---- kinds of numbers


@op(np.isnan, acts=elementwise1, d=no_derivative())
def is_nan(x: TensorLike, /) -> Any:
    """Return where ``x`` is not a number.

    >>> pb.is_nan(np.array([1.0, np.nan]))
    array([False,  True])
    """


@op(np.isinf, acts=elementwise1, d=no_derivative())
def is_inf(x: TensorLike, /) -> Any:
    """Return where ``x`` is infinite, of either sign.

    >>> pb.is_inf(np.array([1.0, -np.inf]))
    array([False,  True])
    """


@op(np.isfinite, acts=elementwise1, d=no_derivative())
def is_finite(x: TensorLike, /) -> Any:
    """Return where ``x`` is neither infinite nor NaN.

    >>> pb.is_finite(np.array([1.0, np.inf, np.nan]))
    array([ True, False, False])
    """


# ---- choice


@op(
    np.where,
    acts=broadcast("(),(),()->()", [
        ((np.array([True, False, True]), (3,), (3,)), {}), ((np.array([[True], [False]]), (3,), (2, 1)), {}),
        ((np.array([True, False]), (), ()), {}), ((np.True_, (), ()), {}), ((np.False_, (2, 3), (3,)), {}),
        ((np.zeros((0, 2), bool), (2,), ()), {}),
    ]),
    d=partials(None, lambda g, condition: select(condition, g, 0), lambda g, condition: select(condition, 0, g)),
    run=select,
    lower=scalar(lambda s, condition, a, b: s.select(condition, a, b)),
)  # fmt: skip
def where(condition: TensorLike, a: TensorLike, b: TensorLike, /) -> Any:
    """Return ``a`` where the condition is true, else ``b``; only the selected elements get a gradient.

    condition: bools, broadcast against ``a`` and ``b``.
    a: the values where the condition is true.
    b: the values elsewhere.

    >>> pb.where(np.array([True, False]), np.array([1.0, 2.0]), 0.0)
    array([1., 0.])
    """


def _where(a: Tensor, condition: TensorLike, b: TensorLike) -> Any:
    """Return itself where the condition holds, else ``b``: TensorFlow.js's order for the method.

    >>> pb.tensor([1.0, 2.0]).where([True, False], 0.0)
    Tensor([1., 0.], dtype=float32)
    """
    return where(condition, a, b)


# ---- other names

alias("where", _where)
isnan = alias("isnan", is_nan)
isinf = alias("isinf", is_inf)
isfinite = alias("isfinite", is_finite)
bitwise_not = alias("bitwise_not", invert)
