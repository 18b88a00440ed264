"""Compiled products of batches of tiny matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA

SIZES = [(3, 3, 3), (3, 3, 1), (2, 2, 2), (4, 4, 4), (1, 3, 2), (3, 1, 3), (8, 7, 5), (5, 2, 8), (2, 8, 3)]
TRANSPOSED = [(False, False), (True, False), (False, True), (True, True)]


def turn(x: Any, is_turned: bool) -> Any:
    return np.swapaxes(x, -1, -2) if is_turned else x


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_batched_tiny_products_stay_inside_their_arrays(isa: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    random = np.random.default_rng(3)
    for i, (m, k, n) in enumerate(SIZES):
        turned_a, turned_b = TRANSPOSED[i % 4]
        a = random.normal(size=turn(np.empty((2, 3, m, k), "i1"), turned_a).shape).astype(dtype)
        b = random.normal(size=turn(np.empty((3, k, n), "i1"), turned_b).shape).astype(dtype)
        c = random.normal(size=(2, 3, m, n)).astype(dtype)

        def f(a: Any, b: Any, c: Any, ways: Any = (turned_a, turned_b)) -> Any:
            return turn(a, ways[0]) @ turn(b, ways[1]), turn(a, ways[0]) @ turn(b, ways[1]) + c

        for found, expected in zip(pb.compile(f, backend="llvm")(a, b, c), f(a, b, c), strict=True):
            np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_batched_tiny_products_gradients(m: int, k: int, n: int) -> None:
    random = np.random.default_rng(4)
    a, b = random.normal(size=(7, m, k)), random.normal(size=(7, k, n))
    f = pb.value_and_grad(lambda a, b: pb.sum(pb.tanh(a @ b) @ pb.swapaxes(b, 1, 2)), argnums=(0, 1))
    (value, found), (expected, gradients) = pb.compile(f, backend="llvm")(a, b), f(a, b)
    np.testing.assert_allclose(value, expected, 1e-12)
    for x, y in zip(found, gradients, strict=True):
        np.testing.assert_allclose(x, y, 1e-11, 1e-13)


def test_tiny_products_of_many_matrices_need_no_host_op() -> None:
    a, b = np.ones((50, 3, 3), "f4"), np.ones((50, 3, 1), "f4")
    assert pb.compile(lambda a, b: a @ b, backend="llvm").lower(a, b).kernels == ["product [50, 3, 3] @ [50, 3, 1]"]


def test_tiny_products_shared_by_threads() -> None:
    random = np.random.default_rng(5)
    a, b = random.normal(size=(5000, 4, 3, 3)), random.normal(size=(4, 3, 3))
    np.testing.assert_array_equal(
        pb.compile(lambda a, b: a @ b, threads=2)(a, b), pb.compile(lambda a, b: a @ b, threads=1)(a, b)
    )
