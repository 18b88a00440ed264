"""Repeated elements, whose functions are computed once for each element, and transposes of expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

REPEATED: dict[str, Callable[[Any], Any]] = {
    "mean of squares": lambda x: np.mean(np.repeat(x, 3) ** 2),
    "along an axis": lambda x: np.sum(np.sin(np.repeat(x, 2, axis=1)) * 2 + 1, 1),
    "along both axes": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1) ** 3,
    "tiled": lambda x: np.sum(np.tile(x, (3, 2)) ** 2),
    "largest": lambda x: np.max(np.repeat(x, 3, axis=1) * 2) - np.min(np.repeat(x, 2, axis=0)),
    "with others": lambda x: np.sum(np.repeat(x, 2, 0) * np.arange(40.0).reshape(8, 5) + np.repeat(x * x, 2, 0)),
    "of two kinds": lambda x: np.sum(np.repeat(x, 2, 0) * np.tile(x, (2, 1))),
    "comparisons": lambda x: np.sum(np.repeat(x, 2, 0) > 0.5) * np.sum(np.repeat(x, 2, 0)),
    "negative zeros": lambda x: np.sum(-0.0 * np.abs(np.repeat(x, 3))),
}


@pytest.mark.parametrize("name", REPEATED)
def test_simplified_repeats_of_elements_match_eager(name: str) -> None:
    x, f = np.random.default_rng(0).normal(size=(4, 5)), REPEATED[name]
    gradient = pb.value_and_grad(lambda x: np.sum(f(x)))
    np.testing.assert_allclose(pb.compile(f)(x), f(x), 1e-12, 1e-12)
    for found, due in zip(pb.compile(gradient)(x), gradient(x), strict=True):
        np.testing.assert_allclose(found, due, 1e-12, 1e-12)
        assert np.array_equal(np.signbit(found), np.signbit(due))


def test_cast_there_and_back_is_removed() -> None:
    x = np.linspace(-1.0, 1.0, 5, dtype="f4")
    compiled = pb.compile(lambda x: x.astype(np.float64).astype(np.float32) * 2, backend="llvm")
    np.testing.assert_array_equal(compiled(x), x * 2)
    assert "cast" not in str(compiled.lower(x).stages.simplified)
    narrow = pb.compile(lambda x: x.astype(np.int32).astype(np.float32) * 2, backend="llvm")
    np.testing.assert_array_equal(narrow(x * 3), np.trunc(x * 3) * 2)


def test_shared_expression_is_not_computed_again_for_sums_of_its_transpose() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(np.log(np.sum(np.exp(-((x[:, None] - y) ** 2)).T, 1)))

    x, y = np.linspace(0, 1, 30), np.linspace(-1, 1, 40)
    step = pb.compile(pb.value_and_grad(f, (0, 1)))
    value, gradients = step(x, y)
    expected, slopes = pb.value_and_grad(f, (0, 1))(x, y)
    np.testing.assert_allclose(value, expected, 1e-12)
    for a, b in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(a, b, 1e-12)
    assert sum(k.count("exp") for k in step.lower(x, y).kernels) == 1
    moved = pb.compile(lambda x, y: np.exp(x[:, None] - y).T * 2.0).lower(x, y)
    assert "float64[40, 30]" in str(moved.graph)
    assert "float64[30, 40]" not in str(moved.graph)
