"""Products with a vector, several rows at a time: rows and columns that are left over, and what follows the sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(4, 64), (7, 67), (33, 130), (18, 257)])
def test_matrix_vector_product_rows_at_once(shape: tuple[int, int], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, v, b = (rng.normal(size=s).astype(dtype) for s in (shape, shape[1:], shape[:1]))

    def f(a: Any, v: Any, b: Any) -> Any:
        z = a @ v
        return z, np.tanh(z + b) * b, np.max(np.abs(a - v), axis=1), np.sum(a.T @ b)

    for z, expected in zip(pb.compile(f)(a, v, b), f(a, v, b), strict=True):
        np.testing.assert_allclose(z, expected, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-4 * (dtype == "f4"))
