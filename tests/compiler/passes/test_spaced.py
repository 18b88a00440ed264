"""Elements at strides of zeros: gradients of strided slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

SLICES: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "halves": ((38,), lambda x: x[::2] * x[1::2]),
    "odd length": ((37,), lambda x: x[:-1:2] * x[1::2]),
    "second differences": ((64,), lambda x: x[2::2] - 2 * x[1:-1:2] + x[:-2:2]),
    "pooling": ((2, 20, 40, 3), lambda x: x[:, ::2, ::2] * x[:, 1::2, ::2] + x[:, 1::2, 1::2] ** 2),
    "columns of four": ((40, 4), lambda x: x[:, ::2] * x[:, 1::2]),
    "with a gap": ((60,), lambda x: x[::3] * x[2::3]),
    "overlapping": ((64,), lambda x: x[2::2] * x[:-2:2] + x[1:-1:2]),
    "two axes": ((20, 40), lambda x: x[::2, ::2] * x[1::2, 1::2] + x[::2, 1::2] ** 2),
    "rows": ((21, 17), lambda x: x[::2] ** 2),
    "columns and rows": ((33, 5), lambda x: x[1::2, ::2] ** 3),
    "two steps": ((48,), lambda x: np.sum(x[::2] ** 2) * np.sum(x[1::3] ** 3)),
    "a column": ((40, 3), lambda x: x[:, 1] ** 2),
    "large step": ((400,), lambda x: x[3::20] ** 2),
    "backwards": ((40,), lambda x: x[::-2] * x[::2]),
    "one element": ((4, 40), lambda x: x[1, ::2] * x[2, 5]),
    "a new axis": ((40,), lambda x: x[::2, None] * x[None, 1::2]),
    "diagonal": ((20, 20), lambda x: np.diag(x) ** 2),
    "cross product": ((50, 3), lambda x: np.cross(x, x[::-1] + 1)),
    "negative zeros": ((32,), lambda x: -0.0 * np.abs(x[::2]) + 0 * x[1::2]),
}


@pytest.mark.parametrize("name", SLICES)
def test_gradient_of_slices_equals_eager(name: str) -> None:
    shape, f = SLICES[name]
    x = np.random.default_rng(0).standard_normal(shape)
    gradient = pb.value_and_grad(lambda x: np.sum(f(x)))
    for found, due in zip(pb.compile(gradient)(x), gradient(x), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12, atol=1e-12)
        assert np.array_equal(np.signbit(found), np.signbit(due))
