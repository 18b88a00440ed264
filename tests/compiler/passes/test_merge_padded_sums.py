"""Gradients of slices: padded sums merged into one kernel, and kernels that differ only in an offset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


def rows(x: Any) -> Any:
    return sum(pb.sum(np.sin(x[i]) * (i + 1.0)) for i in range(len(x)))


def gates(x: Any) -> Any:
    n = x.shape[-1] // 3
    a, b, c = x[..., :n], x[..., n : 2 * n], x[..., 2 * n :]
    return pb.sum(np.tanh(a) * pb.sigmoid(b) + c * c)


def some_rows(x: Any) -> Any:
    return pb.sum(x[0] * x[2]) + pb.sum(np.exp(x[4]))


def rows_and_all(x: Any) -> Any:
    return rows(x) + pb.sum(x * x)


def overlap(x: Any) -> Any:
    return pb.sum(x[1:] * x[:-1]) + pb.sum(x[2:5] ** 3)


def all_twice(x: Any) -> Any:
    return pb.sum(np.cos(x)) + rows(x) + pb.sum(x**3)


def same_rows_often(x: Any) -> Any:
    y = x[0]
    for _ in range(3):
        y = np.sin(x[1] * y) + x[2] * x[0] + pb.sum(x[1:3], axis=0)
    return pb.sum(y) + pb.sum(x[0] + x[0])


def overwritten(x: Any) -> Any:
    """A block of zeros is written over another block in the gradient of ``y[1] = …``."""
    y = x.copy()
    y[1] = 5.0 * x[0]
    return pb.sum(y[1:3] * x[2])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [rows, gates, some_rows, rows_and_all, overlap, all_twice, same_rows_often, overwritten])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_slices_match_eager(f: Any, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(7, 4, 6)).astype(dtype)
    expected = pb.grad(f)(x)
    found = pb.compile(pb.grad(f), backend="llvm")(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-13)
    assert np.array_equal(found, pb.compile(pb.grad(f), backend="llvm")(np.asfortranarray(x)))


def test_padded_sums_merge_into_one_kernel() -> None:
    x = np.ones((50, 4, 6))
    program = pb.compile(pb.grad(rows), backend="llvm").lower(x)
    assert sum("pieces" in kernel for kernel in program.kernels) == 1
    assert len(program.kernels) < 60


def test_kernels_with_other_offsets_share_function() -> None:
    w = np.random.default_rng(1).normal(size=(8, 8)) / 4

    def loop(xs: Any) -> Any:
        h = np.zeros((3, 8))
        for i in range(len(xs)):
            h = np.tanh(xs[i, 1] + h @ w) * xs[i, 0]
        return h

    texts = []
    for steps in (30, 60):
        xs = np.random.default_rng(2).normal(size=(steps, 2, 3, 8))
        compiled = pb.compile(loop, backend="llvm")
        np.testing.assert_allclose(compiled(xs), loop(xs), rtol=1e-12)
        texts.append(compiled.lower(xs).ir)
    assert texts[0].count("define internal") == texts[1].count("define internal") < 6


def test_shared_kernel_with_several_views_of_one_array() -> None:
    def f(x: Any) -> Any:
        return [np.exp(x[i + 1] - x[i]) + x[i + 3] for i in range(10)]

    x = np.random.default_rng(2).normal(size=(13, 40))
    program = pb.compile(f, backend="llvm")
    for found, expected in zip(program(x), f(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("ahead", [1, 64, 300])
def test_shared_kernel_does_not_overwrite_later_reads(ahead: int) -> None:
    count = 400

    def f(x: Any, s: Any) -> Any:
        y, sums = pb.cumsum(x), []
        for at in (0, ahead):  # one kernel for both, and the second is the last to read y
            s = pb.cumsum(np.sin(y[at : at + count] + s))
            sums.append(s)
        return sums

    random = np.random.default_rng(3)
    x, s = random.normal(size=count + ahead), random.normal(size=count)
    for found, expected in zip(pb.compile(f, backend="llvm")(x, s), f(x, s), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("f", [gates, some_rows, rows_and_all, all_twice])
def test_gradients_of_empty_slices(f: Any, backend: Any) -> None:
    x = np.ones((7, 0, 6))
    found = pb.compile(pb.value_and_grads(f), backend=backend)([x])
    assert found[0] == 0.0
    assert found[1][0].shape == x.shape


def windows(x: Any, count: int = 60) -> Any:
    return sum((np.tanh(np.sum(x[i : i + 5])) * (i + 1.0) for i in range(count)), np.sum(x * x))


def test_gradient_of_overlapping_windows_is_a_sum_of_a_few_arrays() -> None:
    x = np.random.default_rng(2).normal(size=70)
    slope = pb.compile(pb.grad(windows), backend="llvm")
    np.testing.assert_allclose(slope(x), pb.grad(windows)(x), rtol=1e-12)
    assert str(slope.lower(x).stages.simplified).count("= pieces(") == 5


def test_padded_sum_blocks_overlapping_in_one_axis() -> None:
    f = lambda x: sum(np.sum(np.sin(x[i % 3 : i % 3 + 2, 2 * i : 2 * i + 2])) for i in range(4))
    x = np.random.default_rng(3).normal(size=(5, 9))
    slope = pb.compile(pb.grad(f), backend="llvm")
    np.testing.assert_allclose(slope(x), pb.grad(f)(x), rtol=1e-12)
    assert str(slope.lower(x).stages.simplified).count("= pieces(") == 1
