"""Compiled searches in rows: the largest elements, and positions in a sorted row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA

DTYPES = ["f4", "f8", "i4", "i8", "u1", "u8", "b1"]
SHAPES = [((300,), 5), ((7, 33), 1), ((5, 130), 64), ((3, 4, 17), 8), ((2, 2), 1)]


def draw(shape: Any, dtype: str, spread: float) -> Any:
    """Return numbers of which many are equal if the spread is small; among floats there are special ones."""
    random = np.random.default_rng(3)
    x = random.normal(size=shape) * spread
    if dtype[0] != "f":
        return (np.abs(x) if dtype[0] in "ub" else x).astype(dtype)
    x = np.round(x).astype(dtype)
    for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
        x[random.random(shape) < 0.05] = special
    return x


def check(f: Any, *args: Any) -> None:
    """Compare with the op itself; it may not run as a host op."""
    compiled: Any = pb.compile(f, backend="llvm")
    np.testing.assert_array_equal(compiled(*args), f(*args))
    assert not [k for k in compiled.lower(*args).kernels if "NumPy" in k]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8"])
def test_compiled_topk_has_order_of_sort(isa: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    for i, (shape, k) in enumerate(SHAPES[1:4]):
        check(lambda x, k=k: pb.topk(x, k).indices, draw(shape, dtype, (2.0, 50.0)[i % 2]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_topk_matches_full_sort(dtype: str) -> None:
    for shape, k in SHAPES:
        x = draw(shape, dtype, 3.0)
        whole = pb.topk(x, shape[-1]).indices
        np.testing.assert_array_equal(pb.topk(x, k).indices, whole[..., :k])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_search_sorted_has_order_of_numpy(dtype: str, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    for length in (1, 7, 100):
        sequence, values = np.sort(draw((length,), dtype, 30.0)), draw((5, 11), dtype, 30.0)
        values[0, : min(length, 11)] = sequence[:11]
        check(lambda s, v: pb.search_sorted(s, v, side), sequence, values)
    rows = np.sort(draw((4, 9), dtype, 30.0), 1)
    check(lambda s, v: pb.search_sorted(s, v, side), rows, draw((4, 6), dtype, 30.0))


def test_compiled_numpy_searchsorted_needs_no_host_op() -> None:
    edges, x = np.linspace(-1.0, 1.0, 17), np.linspace(-2.0, 2.0, 40).astype("f4")
    check(np.searchsorted, edges, x)
    check(lambda e, x: np.interp(x, e, e * e), edges, x)
    assert pb.compile(np.searchsorted)(edges, x).dtype == np.intp


def test_compiled_topk_gradient() -> None:
    x = np.random.default_rng(0).normal(size=(6, 40))
    gradient = pb.grad(lambda x: pb.sum(pb.topk(x, 3).values ** 2))
    compiled = pb.compile(gradient, backend="llvm")
    np.testing.assert_allclose(compiled(x), gradient(x), 1e-12)
    assert not [k for k in compiled.lower(x).kernels if "NumPy" in k]
