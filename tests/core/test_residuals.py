"""What kernels keep for their rules: the same gradients, and nothing kept longer than the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import lapack, residuals

SHAPES = [((32, 10), -1), ((6, 5, 4), 1), ((5,), None), ((200, 200), 0), ((200, 200), -1)]
random = np.random.default_rng(0)


def count_kept() -> int:
    return len(residuals._kept)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_gradient_of_log_sum_exp_from_kept_exponentials(shape: Any, axis: Any, keepdims: bool) -> None:
    x = random.normal(size=shape) * 3
    before, during = count_kept(), []

    def f(x: Any) -> Any:
        z = pb.log_sum_exp(x, axis, keepdims)
        during.append(count_kept())
        return pb.sum(z * z)

    z = pb.log_sum_exp(x, axis, True)
    np.testing.assert_allclose(pb.grad(f)(x), 2 * z * np.exp(x - z), rtol=1e-12)
    assert during[0] == before + (axis is not None or keepdims)
    assert count_kept() == before


@pytest.mark.parametrize("shape", [(32, 10), (6, 5, 4), (200, 200)])
def test_gradient_of_log_softmax_from_kept_exponentials(shape: Any) -> None:
    x, w = random.normal(size=shape) * 3, random.normal(size=shape)
    before = count_kept()
    found = pb.grad(lambda x: pb.sum(pb.log_softmax(x) * w))(x)
    np.testing.assert_allclose(found, w - pb.softmax(x) * w.sum(-1, keepdims=True), rtol=1e-9, atol=1e-12)
    assert count_kept() == before


def test_gradient_of_non_finite_rows() -> None:
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf]])
    weights = pb.grad(lambda x: pb.sum(pb.log_sum_exp(x, 1)[:1]))(x)
    np.testing.assert_allclose(weights, [[0.0, 1 / (1 + np.e), np.e / (1 + np.e)], [0.0, 0.0, 0.0]])


def test_residuals_are_not_saved_without_tape() -> None:
    before = count_kept()
    kept = [pb.log_sum_exp(np.ones((3, 4)), 1), pb.log_softmax(pb.tensor(np.ones((3, 4))))]
    assert count_kept() == before
    assert len(kept) == 2


def test_gradients_of_gradients_with_kept_exponentials() -> None:
    x = random.normal(size=(4, 3))
    hessian = pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(pb.log_sum_exp(x, 1)))(x) ** 2))(x)
    p = pb.softmax(x)
    np.testing.assert_allclose(hessian, 2 * p * (p - (p * p).sum(1, keepdims=True)), rtol=1e-10)


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gradient_of_solve_from_kept_factors(columns: tuple[int, ...], dtype: str) -> None:
    n = 60
    x = (random.normal(size=(n, n)) + 8 * np.eye(n)).astype(dtype)
    y, weights = (random.normal(size=(n, *columns)).astype(dtype) for _ in range(2))
    before, during = count_kept(), []

    def f(x: Any, y: Any) -> Any:
        z = np.linalg.solve(x, y)
        during.append(count_kept())
        return np.sum(z * weights)

    dx, dy = pb.grads(f)([x, y])
    assert during == [before + (lapack.factor(x) is not None)]  # None without NumPy's own OpenBLAS
    assert count_kept() == before
    w, z = np.linalg.solve(x.T, weights), np.linalg.solve(x, y)
    close = {"rtol": 1e3 * float(np.finfo(dtype).eps), "atol": 1e2 * float(np.finfo(dtype).eps)}
    np.testing.assert_allclose(dy, w, **close)
    np.testing.assert_allclose(dx, -w.reshape(n, -1) @ z.reshape(n, -1).T, **close)
    np.testing.assert_allclose(pb.grad(lambda y: f(x, y))(y), dy, **close)


def test_gradient_of_gradient_of_solve_with_kept_factors() -> None:
    x, v = random.normal(size=(50, 50)) + 8 * np.eye(50), random.normal(size=(50, 50))
    slope = pb.grad(lambda x: np.sum(np.linalg.solve(x, np.ones(50)) ** 2))
    step = 1e-5 * v
    nearby = (np.sum(v * slope(x + step)) - np.sum(v * slope(x - step))) / 2e-5
    np.testing.assert_allclose(np.sum(v * pb.grad(lambda x: np.sum(v * slope(x)))(x)), nearby, rtol=1e-6)


def test_solve_of_large_singular_matrix_raises_under_a_gradient() -> None:
    with pytest.raises(pb.errors.MatrixError, match="a matrix is singular"):
        pb.grad(lambda x: np.sum(np.linalg.solve(x, np.ones(60))))(np.zeros((60, 60)))
