"""What kernels keep for their rules: the same gradients, and nothing kept longer than the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import residuals

SHAPES = [((32, 10), -1), ((6, 5, 4), 1), ((5,), None), ((300, 300), 0), ((300, 300), -1)]
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


@pytest.mark.parametrize("shape", [(32, 10), (6, 5, 4), (300, 300)])
def test_gradient_of_log_softmax_from_kept_exponentials(shape: Any) -> None:
    x, w = random.normal(size=shape) * 3, random.normal(size=shape)
    before = count_kept()
    found = pb.grad(lambda x: pb.sum(pb.log_softmax(x) * w))(x)
    np.testing.assert_allclose(found, w - pb.softmax(x) * w.sum(-1, keepdims=True), rtol=1e-9, atol=1e-12)
    assert count_kept() == before


def test_rows_that_are_not_finite_have_gradients_as_before() -> None:
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf]])
    weights = pb.grad(lambda x: pb.sum(pb.log_sum_exp(x, 1)[:1]))(x)
    np.testing.assert_allclose(weights, [[0.0, 1 / (1 + np.e), np.e / (1 + np.e)], [0.0, 0.0, 0.0]])


def test_values_without_a_tape_keep_nothing() -> None:
    before = count_kept()
    kept = [pb.log_sum_exp(np.ones((3, 4)), 1), pb.log_softmax(pb.tensor(np.ones((3, 4))))]
    assert count_kept() == before
    assert len(kept) == 2


def test_gradients_of_gradients_with_kept_exponentials() -> None:
    x = random.normal(size=(4, 3))
    hessian = pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(pb.log_sum_exp(x, 1)))(x) ** 2))(x)
    p = pb.softmax(x)
    np.testing.assert_allclose(hessian, 2 * p * (p - (p * p).sum(1, keepdims=True)), rtol=1e-10)
