"""The namespace of the Array API in which every float is traced: what the official suite is run on a second time.

As a plugin of pytest it begins a new tape for every test.  Conversions to Python's numbers, which are refused of a
traced tensor, give its value here: the suite compares values.
"""

from __future__ import annotations

import functools
import sys
from types import FunctionType, ModuleType
from typing import Any

import pullback as pb
from pullback.core.tensor import Tensor, concrete

_tape: Any = None


def pytest_runtest_setup() -> None:
    """Begin a new tape."""
    global _tape
    if _tape is not None:
        _tape.__exit__(None, None, None)
    _tape = pb.GradientTape(persistent=True).__enter__()


def trace(x: Any) -> Any:
    """Return a result with its floats on the tape: as values in the middle of a program, not as inputs."""
    if isinstance(x, tuple):
        made = [trace(item) for item in x]
        return type(x)(*made) if hasattr(x, "_fields") else tuple(made)
    if not isinstance(x, Tensor) or x.level or x.dtype.kind not in "fc":
        return x
    _tape.watch(x)
    made = x.copy()
    assert made.level
    return made


def _trace_results(function: Any) -> Any:
    @functools.wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return trace(function(*args, **kwargs))

    return traced


def _fill(module: Any, source: ModuleType) -> Any:
    for name, value in vars(source).items():
        if isinstance(value, FunctionType) and name != "__array_namespace_info__":
            setattr(module, name, _trace_results(value))
        elif name in ("fft", "linalg"):
            setattr(module, name, _fill(ModuleType(f"{__name__}.{name}"), value))
        elif not name.startswith("__") or name in ("__array_api_version__", "__array_namespace_info__"):
            setattr(module, name, value)
    return module


pytest_runtest_setup()
_fill(sys.modules[__name__], pb.array_api)
Tensor._concrete = lambda self, what: concrete(self)  # type: ignore[method-assign]
