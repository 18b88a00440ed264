"""Regularizers: functions of a variable that are added to the loss, by TensorFlow.js's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pullback.core.convert import as_number
from pullback.train.arguments import find_function
from pullback.train.io.structure import Configurable
from pullback.typing import Value

__all__ = ["L1", "L1L2", "L2", "Regularizer", "l1", "l1_l2", "l2", "regularizer"]


RegularizerLike = str | Callable[[Any], Any]  # a name, or a function of the variable


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
        return np.sum(x * x) * self.l2


@dataclass(frozen=True)
class L1L2(Regularizer):
    """The sum of ``l1`` and ``l2`` regularization.

    >>> pb.regularizers.l1_l2(l1=0.5, l2=0.5)(np.array([1.0, -3.0]))
    np.float64(7.0)
    """

    l1: float = 0.01
    l2: float = 0.01

    def __call__(self, x: Value) -> Any:
        return np.sum(np.abs(x)) * self.l1 + np.sum(x * x) * self.l2


l1, l2, l1_l2 = L1, L2, L1L2
BY_NAME: dict[str, Callable[..., Regularizer]] = {"l1": l1, "l2": l2, "l1_l2": l1_l2, "l1l2": l1_l2}


def regularizer(given: RegularizerLike, what: str = "regularizer") -> Callable[[Any], Any]:
    """Return the regularizer of a name, a regularizer itself, or any function of a variable.

    given: a name, an object or None.
    what: what it is for, in errors.

    >>> pb.regularizers.regularizer("l1l2")
    L1L2(l1=0.01, l2=0.01)
    """
    made: Callable[[Any], Any] = find_function(given, BY_NAME, what, "regularizer", "the variable")
    return made
