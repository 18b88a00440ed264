"""Compiled products whose right matrix is copied panel by panel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA

SIZES = [
    (2, 500, 900),
    (11, 300, 299),
    (8, 128, 1000),
    (17, 330, 203),
    (64, 161, 128),
    (30, 29, 31),
    (9, 17, 5),
    (14, 350, 120),
    (703, 3, 431),
    (33, 1003, 48),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("turned", [False, True])
def test_panel_products_stay_inside_their_arrays(
    isa: str, dtype: str, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    random = np.random.default_rng(3)
    for m, k, n in SIZES:
        a, c = random.normal(size=(m, k)).astype(dtype), random.normal(size=(m, n)).astype(dtype)
        b = random.normal(size=(n, k) if turned else (k, n)).astype(dtype)

        def f(a: Any, b: Any, c: Any) -> Any:
            right = b.T if turned else b
            return a @ right, a @ right * 0.5 + c

        for found, expected in zip(pb.compile(f, backend="llvm")(a, b, c), f(a, b, c), strict=True):
            np.testing.assert_allclose(found, expected, 1e-4, 1e-3 if dtype == "f4" else 1e-10)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_products_with_few_columns_stay_inside_their_arrays(
    isa: str, dtype: str, left: bool, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    random = np.random.default_rng(6)
    for m, k, n in [(601, 803, 2), (300, 1001, 3), (203, 1700, 5), (104, 900, 11), (2, 3001, 301)]:
        a = random.normal(size=(k, m) if left else (m, k)).astype(dtype)
        b = random.normal(size=(n, k) if right else (k, n)).astype(dtype)
        c = random.normal(size=(m, n)).astype(dtype)

        def f(a: Any, b: Any, c: Any) -> Any:
            product = (a.T if left else a) @ (b.T if right else b)
            return product, c + product

        compiled = pb.compile(f, backend="llvm")
        for found, expected in zip(compiled(a, b, c), f(a, b, c), strict=True):
            np.testing.assert_allclose(found, expected, 1e-4, 1e-3 if dtype == "f4" else 1e-10)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_product_of_one_row_and_transposed_matrix_stays_inside_arrays(
    batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    random = np.random.default_rng(4)
    a, b = random.normal(size=(*batch, 1, 19)), random.normal(size=(*batch, 23, 19))
    f = pb.value_and_grad(lambda a, b: pb.sum(pb.tanh(a @ pb.swapaxes(b, -1, -2))), argnums=(0, 1))
    (value, found), (expected, gradients) = pb.compile(f, backend="llvm")(a, b), f(a, b)
    np.testing.assert_allclose(value, expected, 1e-12)
    for x, y in zip(found, gradients, strict=True):
        np.testing.assert_allclose(x, y, 1e-11, 1e-13)


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("columns", [2, 3])
def test_products_of_two_or_three_columns_call_no_library(
    isa: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    random = np.random.default_rng(5)
    p, q, r = (random.normal(size=shape) for shape in ((301, 3), (301, columns), (3, columns)))
    compiled = pb.compile(lambda p, q, r: (p.T @ q, p @ r), backend="llvm")
    for found, expected in zip(compiled(p, q, r), (p.T @ q, p @ r), strict=True):
        np.testing.assert_allclose(found, expected, 1e-10, 1e-12)
    assert "gemm" not in compiled.lower(p, q, r).ir
