"""Regularizers: functions of a variable that are added to the loss, by TensorFlow.js's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pullback.core.convert import as_number
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers
from pullback.train.arguments import find_function
from pullback.train.io.structure import Configurable
from pullback.typing import Value

__all__ = [
    "L1", "L1L2", "L2", "OrthogonalRegularizer", "Regularizer", "l1", "l1_l2", "l2", "orthogonal_regularizer",
    "regularizer",
]  # fmt: skip


RegularizerLike = str | Callable[[Any], Any]  # a name, or a function of the variable


def scale_to_length_1(x: Any, axis: int | tuple[int, ...] | None) -> Any:
    """Return an array scaled to length 1 along axes; zeros stay zero, as in TensorFlow.

    >>> scale_to_length_1(np.array([[3.0, 4.0], [0.0, 0.0]]), 1)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return x / np.sqrt(np.maximum(np.sum(x * x, axis=axis, keepdims=True), 1e-12))


@dataclass(frozen=True)
class Regularizer(Configurable):
    """The base of regularizers: arguments as fields, and a function of a variable.

    >>> isinstance(pb.regularizers.l2(), pb.regularizers.Regularizer)
    True
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            as_number(f"regularizers.{type(self).__name__.lower()}", field.name, getattr(self, field.name), 0)

    def __call__(self, x: Value) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __call__(x).")


@dataclass(frozen=True)
class L1(Regularizer):
    """``l1`` times the sum of absolute values: many weights become zero.

    >>> pb.regularizers.l1(0.5)(np.array([1.0, -3.0]))
    np.float64(2.0)
    """

    l1: float = 0.01

    def __call__(self, x: Value) -> Any:
        return np.sum(np.abs(x)) * self.l1


@dataclass(frozen=True)
class L2(Regularizer):
    """``l2`` times the sum of squares: weights stay small.

    >>> pb.regularizers.l2(0.5)(np.array([1.0, -3.0]))
    np.float64(5.0)
    """

    l2: float = 0.01

    def __call__(self, x: Value) -> Any:
        squares: Any = x * x
        return np.sum(squares) * self.l2


@dataclass(frozen=True)
class L1L2(Regularizer):
    """The sum of ``l1`` and ``l2`` regularization.

    >>> pb.regularizers.l1_l2(l1=0.5, l2=0.5)(np.array([1.0, -3.0]))
    np.float64(7.0)
    """

    l1: float = 0.01
    l2: float = 0.01

    def __call__(self, x: Value) -> Any:
        first: Any = np.sum(np.abs(x)) * self.l1
        squares: Any = x * x
        return first + np.sum(squares) * self.l2


@dataclass(frozen=True)
class OrthogonalRegularizer(Regularizer):
    """``factor`` times the mean of the absolute cosines between the rows of a matrix, or between its columns.

    factor: the weight of the term.
    mode: "rows" or "columns".

    >>> pb.regularizers.orthogonal_regularizer(factor=0.5)(np.array([[1.0, 0.0], [1.0, 1.0]])).round(3)
    np.float64(0.354)
    """

    factor: float = 0.01
    mode: str = "rows"

    def __post_init__(self) -> None:
        as_number("regularizers.orthogonal_regularizer", "factor", self.factor, 0)
        if self.mode not in ("rows", "columns"):
            raise ArgumentError(
                f"regularizers.orthogonal_regularizer: mode must be 'rows' or 'columns', got {self.mode!r}."
            )

    def __call__(self, x: Value) -> Any:
        if len(x.shape) != 2:
            raise ShapeError(f"regularizers.orthogonal_regularizer: it takes a matrix, got shape {x.shape}.")
        rows = scale_to_length_1(x if self.mode == "rows" else np.transpose(x), 1)
        count = rows.shape[0]
        cosines = np.abs(rows @ np.transpose(rows)) * (1 - np.eye(count, dtype=x.dtype))
        return np.sum(cosines) * (self.factor / max(count * (count - 1), 1))


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
BY_NAME: dict[str, Callable[..., Regularizer]] = {
    "l1": l1, "l2": l2, "l1_l2": l1_l2, "l1l2": l1_l2, "orthogonal": orthogonal_regularizer,
    "orthogonal_regularizer": orthogonal_regularizer,
}  # fmt: skip


def regularizer(identifier: RegularizerLike, subject: str = "regularizer") -> Callable[[Any], Any]:
    """Return the regularizer of a name, a regularizer itself, or any function of a variable.

    identifier: a name, an object or None.
    subject: what it is for, in errors.

    >>> pb.regularizers.regularizer("l1l2")
    L1L2(l1=0.01, l2=0.01)
    """
    found: Callable[[Any], Any] = find_function(identifier, BY_NAME, subject, "regularizer", "the variable")
    return found


install_answers("pb.regularizers")
