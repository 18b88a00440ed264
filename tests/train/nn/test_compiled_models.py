"""Models train to the same loss compiled and eager: recommenders, whose products have short shared axes, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

layers = pb.layers
Loss = Callable[[], Any]


def make_recommender(random: Any) -> Loss:
    """Ratings by a product of rows of two tables of length 1, and biases."""
    users, items = random.integers(0, 7, 16), random.integers(0, 5, 16)
    rated = random.normal(size=16).astype("f4")
    tables = [layers.embedding(7, 1), layers.embedding(5, 1), layers.embedding(7, 1), layers.embedding(5, 1)]

    def loss() -> Any:
        u, v, a, b = (table(i) for table, i in zip(tables, (users, items, users, items), strict=True))
        return np.mean((np.sum(u * v + a + b, -1) - rated) ** 2)

    return loss


def make_two_towers(random: Any) -> Loss:
    """All pairs of queries and items of a batch; those of the same row belong together."""
    queries, items = random.normal(size=(6, 3)).astype("f4"), random.normal(size=(6, 1)).astype("f4")
    left = pb.sequential([layers.dense(4, activation="relu", input_shape=[3]), layers.dense(1)])
    right = pb.sequential([layers.dense(4, activation="relu", input_shape=[1]), layers.dense(1)])
    labels = np.arange(6, dtype="i4")
    return lambda: pb.losses.sparse_softmax_cross_entropy(labels, left(queries) @ np.transpose(right(items)))


def make_layer(random: Any) -> Any:
    units = int(random.integers(1, 4))
    kinds = [
        lambda: layers.dense(units, activation="tanh"),
        lambda: layers.gru(units, return_sequences=True),
        lambda: layers.conv1d(units, 2, padding="same", activation="sigmoid"),
        lambda: layers.lstm(units, return_sequences=True),
        lambda: layers.time_distributed(layers.dense(units)),
    ]
    return kinds[int(random.integers(len(kinds)))]()


def make_small_net(random: Any) -> Loss:
    """Some layers of random kinds and lengths from 1 to 3."""
    batch, steps, size = (int(n) for n in random.integers(1, 4, 3))
    made = [make_layer(random) for _ in range(3)]
    model = pb.sequential([*made, layers.layer_normalization(), layers.flatten(), layers.dense(1)])
    x, y = random.normal(size=(batch, steps, size)).astype("f4"), random.normal(size=(batch, 1)).astype("f4")
    return lambda: np.mean((model(x) - y) ** 2)


def train(make: Callable[[Any], Loss], seed: int, is_compiled: bool) -> list[float]:
    pb.random.seed(seed)
    loss, optimizer = make(np.random.default_rng(seed)), pb.train.adam(0.05)
    loss()  # makes the variables
    step = lambda: optimizer.minimize(loss, return_cost=True)
    step = pb.compile(step) if is_compiled else step
    return [float(step()) for _ in range(8)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("make", "seed"),
    [(make_recommender, 0), (make_two_towers, 1), *((make_small_net, seed) for seed in range(2, 8))],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_model_trains_to_same_loss_compiled_and_eager(make: Callable[[Any], Loss], seed: int) -> None:
    eager, compiled = (train(make, seed, is_compiled) for is_compiled in (False, True))
    np.testing.assert_allclose(compiled, eager, rtol=2e-4, atol=1e-5)
    assert eager[-1] < eager[0]
