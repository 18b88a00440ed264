"""Constraints: projections that an optimizer applies to a variable after each step, by TensorFlow.js's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.core.convert import as_number
from pullback.names.answers import install_answers
from pullback.train.arguments import find_function
from pullback.train.io.structure import Configurable
from pullback.typing import Value

__all__ = [
    "Constraint", "ConstraintLike", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "constraint", "max_norm",
    "min_max_norm", "non_neg", "unit_norm",
]  # fmt: skip

ConstraintLike = str | Callable[[Any], Any]  # a name, or a function of the variable
AxisLike = int | Sequence[int] | None
EPSILON = 1e-7  # as in Keras


@dataclass(frozen=True)
class Constraint(Configurable):
    """The base of constraints: arguments as fields, and a function from a variable to its new value.

    >>> isinstance(pb.constraints.non_neg(), pb.constraints.Constraint)
    True
    """

    def __call__(self, w: Value) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __call__(w).")


def _compute_norms(w: Value, axis: AxisLike) -> Any:
    axes = tuple(axis) if isinstance(axis, list | tuple) else axis
    squares: Any = w * w
    return np.sqrt(np.sum(squares, axis=axes, keepdims=True))


@dataclass(frozen=True)
class MaxNorm(Constraint):
    """Scales weights down so that no norm along ``axis`` is larger than ``max_value``.

    - max_value: the largest norm.
    - axis: the axis, or axes, along which norms are computed: 0 for the kernel of ``dense``, [0, 1, 2] for ``conv2d``.

    >>> pb.constraints.max_norm(1.0)(np.array([[3.0, 0.0], [4.0, 0.5]])).round(3)
    array([[0.6, 0. ],
           [0.8, 0.5]])
    """

    max_value: float = 2.0
    axis: AxisLike = 0

    def __post_init__(self) -> None:
        as_number("constraints.max_norm", "max_value", self.max_value, 0)

    def __call__(self, w: Value) -> Any:
        norms = _compute_norms(w, self.axis)
        return w * (np.clip(norms, 0.0, self.max_value) / (norms + EPSILON))


@dataclass(frozen=True)
class UnitNorm(Constraint):
    """Scales weights to a norm of 1 along ``axis``.

    - axis: the axis, or axes, along which norms are computed.

    >>> pb.constraints.unit_norm()(np.array([[3.0], [4.0]])).round(3)
    array([[0.6],
           [0.8]])
    """

    axis: AxisLike = 0

    def __call__(self, w: Value) -> Any:
        return w / (_compute_norms(w, self.axis) + EPSILON)


@dataclass(frozen=True)
class NonNeg(Constraint):
    """Sets negative weights to zero.

    >>> pb.constraints.non_neg()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    def __call__(self, w: Value) -> Any:
        return np.maximum(w, 0.0)


@dataclass(frozen=True)
class MinMaxNorm(Constraint):
    """Scales weights so that norms along ``axis`` are between two numbers.

    - min_value, max_value: the smallest and the largest norm.
    - rate: how far weights go there in one step: 1.0 is all the way.
    - axis: the axis, or axes, along which norms are computed.

    >>> pb.constraints.min_max_norm(1.0, 2.0)(np.array([[0.3, 3.0], [0.4, 4.0]])).round(3)
    array([[0.6, 1.2],
           [0.8, 1.6]])
    """

    min_value: float = 0.0
    max_value: float = 1.0
    rate: float = 1.0
    axis: AxisLike = 0

    def __post_init__(self) -> None:
        as_number("constraints.min_max_norm", "min_value", self.min_value, 0)
        as_number("constraints.min_max_norm", "max_value", self.max_value, self.min_value)
        as_number("constraints.min_max_norm", "rate", self.rate, 0, 1)

    def __call__(self, w: Value) -> Any:
        norms = _compute_norms(w, self.axis)
        target = np.clip(norms, self.min_value, self.max_value) * self.rate + norms * (1.0 - self.rate)
        return w * (target / (norms + EPSILON))


max_norm, unit_norm, non_neg, min_max_norm = MaxNorm, UnitNorm, NonNeg, MinMaxNorm
BY_NAME: dict[str, Callable[..., Constraint]] = {
    "max_norm": max_norm, "unit_norm": unit_norm, "non_neg": non_neg, "min_max_norm": min_max_norm,
}  # fmt: skip


def constraint(identifier: ConstraintLike, subject: str = "constraint") -> Callable[[Any], Any]:
    """Return the constraint of a name, a constraint itself, or any function of a variable.

    - identifier: the name, also as TensorFlow.js spells it, or the function.
    - subject: what it is for, named in errors.

    >>> pb.constraints.constraint("maxNorm")
    MaxNorm(max_value=2.0, axis=0)
    """
    found: Callable[[Any], Any] = find_function(identifier, BY_NAME, subject, "constraint", "the variable")
    return found


install_answers("pb.constraints")
