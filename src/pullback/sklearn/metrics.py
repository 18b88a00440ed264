"""Metrics of scikit-learn that end with ``float(...)``, which would lose a gradient: ``install`` lets them keep it."""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from typing import Any

from pullback.core.tensor import Tensor

__all__ = ["install", "uninstall"]

MODULES = ("sklearn.metrics._regression", "sklearn.metrics._classification", "sklearn.metrics._ranking")


class _FloatType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, builtins.float)


class _Float(builtins.float, metaclass=_FloatType):
    """``float`` that leaves traced tensors as they are."""

    def __new__(cls, x: Any = 0.0) -> Any:
        return x if isinstance(x, Tensor) and x.read().level else builtins.float(x)


def install() -> None:
    """Let the metrics of scikit-learn return traced tensors where they return Python floats.

    With namespace dispatch (``sklearn.config_context(array_api_dispatch=True)``) they have gradients then.
    ``uninstall`` undoes it.

    >>> import pullback as pb
    >>> pb.sklearn.install()
    >>> pb.sklearn.uninstall()
    """
    for name in MODULES:
        vars(import_module(name))["float"] = _Float


def uninstall() -> None:
    """Let the metrics of scikit-learn return Python floats again.

    >>> import pullback as pb
    >>> pb.sklearn.uninstall()
    """
    for name in MODULES:
        if name in sys.modules:
            vars(sys.modules[name]).pop("float", None)
