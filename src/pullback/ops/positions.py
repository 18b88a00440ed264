"""Positions along an axis, of which negative ones count from its end, as compiled programs check and resolve them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, broadcast
from pullback.core.calculus import no_derivative
from pullback.core.lowering import scalar
from pullback.core.op import op

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike

__all__: list[str] = []  # ops that others are made of


def _list_samples() -> list[Sample]:
    """Return positions, of which some are out of range."""
    positions = np.int64(-2), np.array([0, 3, 4, -4, -5], np.int64), np.zeros((0, 2), np.int64), np.arange(-6, 6)[None]
    return [((at,), {"length": 4}) for at in positions]


def _is_wrong(at: Array, length: int) -> Any:
    return (at < -length) | (at >= length)


def _resolve(at: Array, length: int) -> Any:
    return np.where(_is_wrong(at, length), 0, np.where(at < 0, at + length, at))


@op(
    _is_wrong,
    acts=broadcast("()->()", _list_samples),
    d=no_derivative(mixes=False),
    lower=scalar(lambda s, at, length: s.logical_or(s.less(at, -length), s.greater_equal(at, length))),
)
def is_position_wrong(at: TensorLike, /, length: int) -> Any:
    """Return where positions are out of range for an axis of this length.

    >>> is_position_wrong(np.array([1, -1, 4, -5]), length=4)
    array([False, False,  True,  True])
    """


@op(
    _resolve,
    acts=broadcast("()->()", _list_samples),
    d=no_derivative(mixes=False),
    lower=scalar(
        lambda s, at, length: s.select(
            s.less(at, 0),
            s.select(s.less(at, -length), 0, at + length),
            s.select(s.less(at, length), at, 0),
        ),
        is_minor=True,  # whole rows are read or written at the positions
    ),
)
def resolve_position(at: TensorLike, /, length: int) -> Any:
    """Return positions as non-negative ones, with 0 for those out of range for an axis of this length.

    >>> resolve_position(np.array([1, -1, 4, -5]), length=4)
    array([1, 3, 0, 0])
    """
