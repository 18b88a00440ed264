"""Compiled log_sum_exp, softmax and log_softmax: one exponential for value and gradient, right at infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

INF, NAN = np.inf, np.nan
HARD_ROWS = np.array([[1.0, 2.0, 3.0], [INF, 1000.0, 1.0], [-INF, -INF, -INF], [1.0, NAN, 2.0], [-INF, 1e30, -INF],
                      [INF, -INF, INF], [-1e30, 1e30, 0.0], [2.0, 3.0, -800.0]])  # fmt: skip
LOSSES = {
    "log_sum_exp": lambda x: np.sum(pb.log_sum_exp(x, 1)),
    "log_softmax": lambda x: np.sum(pb.log_softmax(x) * np.arange(3.0, dtype=x.dtype)),
    "softmax": lambda x: np.sum(pb.softmax(x) * np.arange(3.0, dtype=x.dtype)),
    "labels": lambda x: pb.losses.sparse_softmax_cross_entropy(np.arange(8) % 3, x),
    "one-hot": lambda x: pb.losses.softmax_cross_entropy(np.eye(3, dtype=x.dtype)[np.arange(8) % 3], x),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", LOSSES)
def test_compiled_exp_gradient_at_infinity_matches_eager(name: str, dtype: str) -> None:
    x = HARD_ROWS.astype(dtype)
    slope = lambda x: pb.grad(LOSSES[name])(x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(pb.compile(slope)(x), slope(x), rtol=2e-6, atol=1e-6 if dtype == "f4" else 1e-15)


def test_log_sum_exp_at_infinities() -> None:
    with np.errstate(all="ignore"):
        want = pb.log_sum_exp(HARD_ROWS, 1)
    np.testing.assert_allclose(pb.compile(lambda x: pb.log_sum_exp(x, 1))(HARD_ROWS), want)


def count_exponentials(f: Any, x: Any) -> int:
    return str(pb.compile(pb.value_and_grad(f)).lower(x).stages.legalized).count("= exp(")


@pytest.mark.parametrize("name", [*LOSSES, "by hand"])
def test_value_and_gradient_compute_exp_once(name: str) -> None:
    def by_hand(x: Any) -> Any:
        top = x.max(axis=1, keepdims=True)
        return np.sum(np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0])

    assert count_exponentials(LOSSES.get(name, by_hand), HARD_ROWS) == 1


def test_log_sum_exp_of_every_order_and_axis() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    for axis in (None, 1, (0, 2), -1):
        f = lambda x, axis=axis: np.sum(pb.log_sum_exp(x, axis) ** 2)
        pb.check_grads(f, [x], order=2)
        np.testing.assert_allclose(pb.compile(lambda x, f=f: pb.hvp(f, x, x))(x), pb.hvp(f, x, x), rtol=1e-9)
        batched = pb.vmap(pb.grad(lambda x: pb.log_sum_exp(x)))
        np.testing.assert_allclose(pb.compile(batched)(x), batched(x), rtol=1e-9)
