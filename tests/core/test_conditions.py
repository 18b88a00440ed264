"""Conditions without one value raise, also where the function catches the error and goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import BatchedValueError, SymbolValueError


def catching(x: Any) -> Any:
    try:
        return x * 2 if x[0] > 0 else x * 3
    except Exception:
        return x * 4


X = np.array([[1.0, 2.0], [-1.0, 3.0]])


def test_compile_raises_condition_despite_except() -> None:
    for f in (catching, pb.grad(catching), lambda x: pb.jvp(catching, [x], [x])):
        with pytest.raises(SymbolValueError, match=r"bool\(\)|the value"):
            pb.compile(f)(X[0])
    assert np.array_equal(pb.compile(lambda x: x * 2)(X[0]), X[0] * 2)  # nothing is left of it


def test_vmap_raises_condition_despite_except() -> None:
    for f in (catching, pb.grad(catching)):
        with pytest.raises(BatchedValueError, match="different for each"):
            pb.vmap(f)(X)
    assert np.array_equal(catching(X[0]), X[0] * 2)


def test_trace_method_of_tensor_in_compiled_function() -> None:
    assert pb.compile(lambda x: x.trace())(X) == 4.0
