"""Dynamic loss scales against those recorded from Keras's LossScaleOptimizer, and a model in float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

# Keras 3.15, LossScaleOptimizer(Adam(0.1), initial_scale=8, dynamic_growth_steps=3): scale, steps since, iterations, x
RECORDED = [
    (8.0, 1, 1, [0.9000012874603271, -1.900001049041748]), (8.0, 2, 2, [0.803484320640564, -1.8000023365020752]),
    (4.0, 0, 2, [0.803484320640564, -1.8000023365020752]), (4.0, 1, 3, [0.711327850818634, -1.700002908706665]),
    (4.0, 2, 4, [0.6174873113632202, -1.6000040769577026]), (8.0, 0, 5, [0.5219419002532959, -1.5000051259994507]),
    (8.0, 1, 6, [0.424862265586853, -1.40000581741333]), (4.0, 0, 6, [0.424862265586853, -1.40000581741333]),
    (2.0, 0, 6, [0.424862265586853, -1.40000581741333]), (1.0, 0, 6, [0.424862265586853, -1.40000581741333]),
    (1.0, 1, 7, [0.3286597728729248, -1.3000067472457886]), (1.0, 2, 8, [0.23111721873283386, -1.2000075578689575]),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_dynamic_loss_scale_follows_keras(compiled: bool) -> None:
    x = pb.variable(np.array([1.0, -2.0], np.float32))
    optimizer = pb.train.loss_scale_optimizer(pb.train.adam(0.1), initial_scale=8.0, dynamic_growth_steps=3)
    step: Any = lambda g: optimizer.apply_gradients([(g, x)])
    step = pb.compile(step) if compiled else step
    for i, (scale, since, iterations, value) in enumerate(RECORDED):
        g = np.array([0.5 * (i + 1), -1.0], np.float32) * np.float32(RECORDED[i - 1][0] if i else 8.0)
        g[0] = np.inf if i in (2, 7, 8) else g[0]
        g[1] = np.nan if i == 9 else g[1]
        step(g)
        state = optimizer.state_dict()
        assert (state["loss_scale"], state["finite_steps"], state["iterations"]) == (scale, since, iterations)
        np.testing.assert_allclose(x.numpy(), value, atol=2e-5)
    again = pb.train.loss_scale_optimizer(pb.train.adam(0.1), initial_scale=8.0, dynamic_growth_steps=3)
    again.load_state_dict(optimizer.state_dict(), [x])
    assert again.state_dict()["loss_scale"] == 1.0


@pytest.mark.parametrize("eager", [False, True])
def test_float16_model_trains_with_loss_scale(eager: bool) -> None:
    x = np.linspace(-1, 1, 32, dtype=np.float16)[:, None]
    layer = pb.layers.dense(1, kernel_initializer="zeros", dtype="float16", input_shape=[1])
    model = pb.sequential([layer])
    # the cotangents of 1e-7 vanish in float16; at first, scaled ones overflow and steps are skipped
    optimizer = pb.train.loss_scale_optimizer(pb.train.sgd(2e4), initial_scale=2.0**40)
    model.compile(optimizer, lambda y, p: np.mean((y - p).astype(np.float32) ** 2) * np.float32(1e-5), eager=eager)
    history = model.fit(x, 3 * x, epochs=40, batch_size=32, verbose=0)
    assert 0 < optimizer.iterations < 40
    assert optimizer.state_dict()["loss_scale"] < 2.0**40
    assert history.history["loss"][-1] < 0.01 * history.history["loss"][0]
    np.testing.assert_allclose(layer.get_weights()[0], 3.0, rtol=0.02)


def test_dynamic_loss_scale_with_row_sparse_gradients_equals_dense() -> None:
    tables = []
    for optimizer in (pb.train.sgd(0.1), pb.train.loss_scale_optimizer(pb.train.sgd(0.1), 8.0)):
        pb.random.seed(0)
        stack = [pb.layers.embedding(50, 2, input_shape=[3]), pb.layers.flatten(), pb.layers.dense(1)]
        model = pb.sequential(stack)
        model.compile(optimizer, "mse", eager=True)
        for _ in range(3):
            model.train_on_batch(np.array([[1, 2, 3], [4, 5, 1]]), np.ones((2, 1)))
        tables.append(model.get_weights()[0])
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-5)
