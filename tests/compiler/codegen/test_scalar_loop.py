"""Loops over numbers, whose carry stays in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

random = np.random.default_rng(5)


def filter_signal(b: Any, a: Any, x: Any, reverse: bool = False) -> Any:
    """A recursive filter, with the number of its large outputs, whether one was large, and a carry of shape (1,)."""

    def step(carry: Any, x: Any) -> Any:
        before, y, count, seen, total = carry
        new = b[0] * x + b[1] * before - a[0] * y + 0.1 * np.tanh(y)
        large = np.abs(new) > 1
        carry = x, new, count + large.astype("i4"), seen | large, total + new
        return carry, (new, y, count, seen)

    start = 0.0 * x[0], 0.0 * x[0], np.int32(0), np.bool_(False), np.zeros(1)
    carry, ys = pb.scan(step, start, x, reverse=reverse)
    return (*carry, *ys)


@pytest.mark.parametrize("reverse", [False, True])
def test_scalar_loop_matches_eager(reverse: bool) -> None:
    b, a, x = random.normal(size=2), random.normal(size=1) * 0.3, random.normal(size=50)
    program = pb.compile(lambda b, a, x: filter_signal(b, a, x, reverse), backend="llvm")
    assert any("in registers" in line for line in program.lower(b, a, x).kernels)
    for found, expected in zip(program(b, a, x), filter_signal(b, a, x, reverse), strict=True):
        expected = np.asarray(expected)
        assert (np.asarray(found).dtype, np.shape(found)) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, 1e-12)


def test_scalar_loop_gradient_matches_eager() -> None:
    b, a, x = random.normal(size=2), random.normal(size=1) * 0.3, random.normal(size=50)
    gradient = pb.grad(lambda b, a, x: np.sum(filter_signal(b, a, x)[5] ** 2), argnums=(0, 1, 2))
    program = pb.compile(gradient, backend="llvm")
    assert sum("in registers" in line for line in program.lower(b, a, x).kernels) == 2
    for found, expected in zip(program(b, a, x), gradient(b, a, x), strict=True):
        np.testing.assert_allclose(found, expected, 1e-10, 1e-12)
