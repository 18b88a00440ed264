"""Vectors of several registers: their last one overlaps the one before, and rare lanes are computed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

LENGTHS = [1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65, 100, 127, 129, 255, 257, 300]


def compile_once(f: Any) -> Any:
    return pb.compile(f, backend="llvm", cache=False, threads=1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_last_vector_stores_and_reduces_each_element_once(dtype: str) -> None:
    def f(x: Any) -> Any:
        y = x * x + 1.0
        return y, np.sum(y), np.sum(y, axis=-1), np.sum(y, axis=0), np.max(x, axis=0), np.max(x, axis=-1)

    for length in LENGTHS:
        x = np.random.default_rng(length).standard_normal((5, length)).astype(dtype)
        for a, b in zip(compile_once(f)(x), f(x), strict=True):
            np.testing.assert_allclose(a, b, 1e-5 if dtype == "f4" else 1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(6401,), (6463,), (35003,), (3, 6417), (2, 40001)])
def test_loop_of_a_costly_kernel_reduces_its_last_vector_once(shape: tuple[int, ...], dtype: str) -> None:
    def f(x: Any) -> Any:
        y = np.tanh(np.sin(x) * np.exp(x) + np.log(1.0 + x * x)) * pb.sigmoid(x) + pb.erf(x)
        return y, np.sum(y), np.sum(y, -1), np.max(y, -1), np.min(y), np.prod(1.0 + y * 1e-4), np.sum(y, 0)

    x = np.random.default_rng(5).uniform(-1, 1, shape).astype(dtype)
    x[..., 0], x[..., -1] = -2.0, 2.0  # the smallest and largest result are in the first and the last vector
    for threads in (1, 2):
        for a, b in zip(pb.compile(f, backend="llvm", cache=False, threads=threads)(x), f(x), strict=True):
            np.testing.assert_allclose(a, b, 1e-3 if dtype == "f4" else 1e-10, 1e-5 if dtype == "f4" else 1e-10)


def test_last_vector_of_kernel_that_overwrites_its_operand() -> None:
    def f(x: Any, w: Any) -> Any:
        y = x @ w  # in memory of the program, which the next value takes over
        return (np.tanh(y) * y - y) @ w

    for n in (9, 33, 65, 129):
        x, w = (np.random.default_rng(n).standard_normal((n, n)) / n for _ in range(2))
        np.testing.assert_allclose(compile_once(f)(x, w), f(x, w), 1e-12, 1e-15)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rare", [np.inf, -np.inf, np.nan, 0.0, -1.0, 1e-320, 1e30, -1e30, 95.0, -95.0])
def test_slow_path_changes_only_rare_lanes(rare: float, dtype: str) -> None:
    def f(x: Any) -> Any:
        return np.exp(x) * np.log(x) + x, np.sin(x) * x + x

    compiled = compile_once(f)
    x = np.random.default_rng(1).uniform(0.1, 3.0, 201).astype(dtype)
    usual = compiled(x)
    for place in (0, 7, 63, 150, 199, 200):
        y = x.copy()
        with np.errstate(all="ignore"):
            y[place] = rare
            expected = f(y)
        for a, b, c in zip(compiled(y), usual, expected, strict=True):
            others = np.arange(201) != place
            assert np.array_equal(a[others], b[others])
            np.testing.assert_allclose(a[place], c[place], 1e-5 if dtype == "f4" else 1e-13)
