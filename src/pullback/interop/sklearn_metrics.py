"""A replacement of ``float`` in scikit-learn's metrics, which end with ``float(...)`` and would lose the gradient.

Python's ``float(x)`` always returns a plain float, so a tensor cannot keep its gradient there.  But scikit-learn's
namespace dispatch calls ``__array_namespace__`` of tensors; the first such call on a traced tensor sets the name
``float`` in the modules of the metrics.
"""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np

from pullback import late_binding
from pullback.core.tensor import Tensor

MODULES = ("sklearn.metrics._regression", "sklearn.metrics._classification", "sklearn.metrics._ranking")
enabled = True  # by the first dispatch; `uninstall` sets it to False


class _FloatType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, builtins.float)


class _Float(builtins.float, metaclass=_FloatType):
    """A ``float`` that returns traced tensors unchanged."""

    dtype = np.dtype(builtins.float)  # by which NumPy takes the class as a dtype, as it does Python's float

    def __new__(cls, x: Any = 0.0) -> Any:
        return x if isinstance(x, Tensor) and x.read().level else builtins.float(x)


def keep_gradients() -> None:
    """Let those metrics of scikit-learn that are imported return traced tensors, unless ``uninstall`` was called."""
    for name in MODULES if enabled else ():
        if name in sys.modules:
            vars(sys.modules[name]).setdefault("float", _Float)


def install() -> None:
    """Let the metrics of scikit-learn return traced tensors where they return Python floats.

    With namespace dispatch (``sklearn.config_context(array_api_dispatch=True)``) they have gradients then.  The first
    traced tensor that scikit-learn dispatches by does the same; ``uninstall`` undoes it.

    >>> import pullback as pb
    >>> pb.sklearn.install()
    """
    global enabled
    enabled = True
    keep_gradients()


def uninstall() -> None:
    """Let the metrics of scikit-learn return Python floats again, which for traced tensors is an error.

    >>> import pullback as pb
    >>> pb.sklearn.uninstall()
    >>> pb.sklearn.install()
    """
    global enabled
    enabled = False
    for name in MODULES:
        if name in sys.modules:
            vars(sys.modules[name]).pop("float", None)


late_binding.keep_gradients = keep_gradients
