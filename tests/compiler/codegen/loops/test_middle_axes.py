"""Reductions over axes that are not the last ones: vectors lie along the axis that remains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


@pytest.mark.parametrize("shape", [(3, 5, 1), (3, 5, 4), (2, 9, 7), (1, 3, 33), (4, 6, 50), (2, 3, 130), (3, 2, 2, 19)])
def test_reduce_middle_axis(shape: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        s, m = np.sum(x * x, 1), np.max(x, 1)
        e = np.exp(x - m[:, None])
        return s, m * s, e / np.sum(e, 1, keepdims=True), np.sum(s * s), np.any(x > 1.0, 1), np.prod(x, 1)

    for dtype in ("f4", "f8"):
        x = np.random.default_rng(3).standard_normal(shape).astype(dtype)
        compiled = pb.compile(f, backend="llvm", cache=False, threads=2)
        for a, b in zip(compiled(x), f(x), strict=True):
            np.testing.assert_allclose(a, b, 1e-5 if dtype == "f4" else 1e-13)


def test_gradient_of_reductions_over_middle_axes() -> None:
    def f(x: Any) -> Any:
        y = x - np.mean(x, 1, keepdims=True)
        return np.sum(np.max(y, 2) * np.sum(y * y, (1, 2))[:, None])

    x = np.random.default_rng(4).standard_normal((3, 6, 5, 21))
    np.testing.assert_allclose(pb.compile(pb.grad(f), backend="llvm", cache=False)(x), pb.grad(f)(x), 1e-11)
