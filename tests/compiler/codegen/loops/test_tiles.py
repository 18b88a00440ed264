"""Arrays whose neighbours in memory are in neighbouring rows, as transposed matrices, which are read by tiles."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.typing import Array


def draw(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (17, 31), (9, 200), (130, 67), (70, 700)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_transposed_matrices_match_numpy(rows: int, columns: int, dtype: str) -> None:
    x, y = draw(rows, columns).astype(dtype), draw(columns, rows).astype(dtype)
    x[3, 5] = np.inf

    def f(x: Array, y: Array) -> tuple[Array, ...]:
        return x.T + y, np.log(np.abs(x)) * y.T, np.sum(np.tanh(x.T) * y), np.sum(np.tanh(x) * y.T, 0)

    for made, want in zip(pb.compile(f)(x, y), f(x, y), strict=True):
        np.testing.assert_allclose(made, want, rtol=1e-4 if dtype == "f4" else 1e-11, atol=1e-4)


def test_large_transposed_matrix_matches_numpy() -> None:
    x, y = draw(700, 610), draw(610, 700)
    np.testing.assert_array_equal(pb.compile(lambda x, y: x.T * y)(x, y), x.T * y)


def test_transposed_axes_of_batches_and_their_gradients() -> None:
    x, y = draw(3, 21, 40), draw(3, 40, 21)

    def f(x: Array, y: Array) -> Array:
        return np.sum(np.sin(np.swapaxes(x, 1, 2)) * y * np.float32(2))

    made, want = pb.compile(pb.grads(f))([x, y]), pb.grads(f)([x, y])
    for a, b in zip(made, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
