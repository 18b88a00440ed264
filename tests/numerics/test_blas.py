"""Sums of matrix products, with and without NumPy's BLAS, for every memory layout of the operands."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.numerics import blas


def by_taps(x: Any, filter: Any) -> Any:
    """A "valid" convolution with stride 1, one element of the filter after the other."""
    height, width = x.shape[1] - filter.shape[0] + 1, x.shape[2] - filter.shape[1] + 1
    taps = product(*map(range, filter.shape[:2]))
    return sum(x[:, i : i + height, j : j + width] @ filter[i, j] for i, j in taps)


@pytest.fixture(params=[True, False], ids=["blas", "numpy"])
def has_blas(request: Any, monkeypatch: Any) -> bool:
    if not request.param:
        monkeypatch.setattr(blas, "gemm", lambda char: None)
    return bool(request.param)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("x", "filter"),
    [((2, 20, 23, 64), (3, 3, 64, 64)), ((5, 12, 11, 16), (5, 4, 16, 8)), ((1, 70, 66, 40), (3, 2, 40, 36))],
)
def test_conv2d_and_gradients_with_and_without_blas(has_blas: bool, x: Any, filter: Any, dtype: str) -> None:
    random = np.random.default_rng(0)
    x, filter = (random.normal(size=shape).astype(dtype) for shape in (x, filter))
    z = by_taps(x, filter)
    g = random.normal(size=z.shape).astype(dtype)
    dx, df = pb.grads(lambda x, f: np.sum(pb.conv2d(x, f) * g))([x, filter])
    padded = np.pad(g, [(0, 0), *[(n - 1, n - 1) for n in filter.shape[:2]], (0, 0)])
    turned = filter[::-1, ::-1].swapaxes(2, 3)
    flat = by_taps(x.transpose(3, 1, 2, 0), g.transpose(1, 2, 0, 3))  # images and channels change places
    near = 1e-4 if dtype == "f4" else 1e-12
    for ours, theirs in ((pb.conv2d(x, filter), z), (dx, by_taps(padded, turned)), (df, flat.transpose(1, 2, 0, 3))):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=near * np.abs(theirs).max())


@pytest.mark.parametrize("lies", ["C", "F"])
@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("depth", [2, 50])
def test_sum_of_products_memory_layouts(has_blas: bool, lies: str, images: int, depth: int) -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(images, 320, 200))
    matrices, weights = random.normal(size=(3, 200, depth)), random.normal(size=(images, 300, depth))
    rows = np.asfortranarray(rows) if lies == "F" else rows
    layers = [rows[:, 10 * k : 10 * k + 300] for k in range(3)]
    z, totals = np.empty((images, 300, depth)), np.ones((3, 200, depth))
    blas.sum_of_products(rows, 10, matrices, z)
    blas.add_transposed_products(rows, 10, weights, totals)
    np.testing.assert_allclose(
        z, sum(layer @ matrix for layer, matrix in zip(layers, matrices, strict=True)), 1e-9, 1e-9
    )
    np.testing.assert_allclose(totals - 1, [np.einsum("nrl,nrd->ld", layer, weights) for layer in layers], 1e-9, 1e-9)


def test_sum_of_products_refuses_rows_beyond_end(has_blas: bool) -> None:
    with pytest.raises(ValueError, match="size"):
        blas.sum_of_products(np.ones((1, 300, 100)), 10, np.ones((3, 100, 50)), np.empty((1, 300, 50)))
