"""Training on workers: the bits of one process, with metrics, callbacks, checkpoints and states of layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError

rng = np.random.default_rng(0)
X = rng.normal(size=(41, 3)).astype(np.float32)
Y = (X[:, :1] * 2 + np.sin(X[:, 1:2])).astype(np.float32)
SHARDS = pb.scale.Shards((X, Y), parts=3)


def make_model(**options):
    pb.random.seed(3)
    layers = [
        pb.layers.dense(4, activation="relu", input_shape=[3], kernel_regularizer="l2"),
        pb.layers.batch_normalization(),
        pb.layers.dropout(0.2),
        pb.layers.dropout(0.1, seed=4),
        pb.layers.dense(1),
    ]
    model = pb.sequential(layers)
    model.compile(pb.train.adam(0.01), "mse", metrics=["mae"], **options)
    return model


def get_bits(model) -> bytes:
    return b"".join(v.numpy().tobytes() for v in model.variables)


def fit(pool: pb.scale.Pool, **options):
    model = make_model()
    return model, model.fit(SHARDS, pool=pool, epochs=3, batch_size=14, verbose=0, **options)


class SaveAndStop(pb.callbacks.Callback):
    """Writes a checkpoint after step 4 and stops after step 5."""

    def __init__(self, path: Path) -> None:
        self.path, self.steps = path, 0

    def on_batch_end(self, batch, logs):
        self.steps += 1
        if self.steps == 4:
            self.model.save_checkpoint(self.path)
        if self.steps == 5:
            self.stop("enough")


def test_fit_with_two_workers_equals_single_process_bitwise(tmp_path: Path) -> None:
    validation = pb.scale.Shards((X, Y), parts=2)
    with pb.scale.Pool("serial") as pool:
        one, wanted = fit(pool, validation_data=validation)
        _, stopped = fit(pool, validation_data=validation, callbacks=[SaveAndStop(tmp_path / "model.npz")])
    assert stopped.steps == 5
    assert [len(v) for v in wanted.history.values()] == [3] * 4
    loss, mae = one.evaluate(X, Y)
    np.testing.assert_allclose([wanted.history["val_loss"][-1], wanted.history["val_mae"][-1]], [loss, mae], rtol=1e-5)
    with pb.scale.Pool("processes", workers=2, start_timeout=600) as pool:
        two, history = fit(pool, validation_data=validation)
        resumed, rest = fit(pool, validation_data=validation, resume=tmp_path / "model.npz")
    assert history.history == wanted.history == rest.history
    assert get_bits(one) == get_bits(two) == get_bits(resumed)


def test_sharded_fit_losses_equal_single_process() -> None:
    def make(loss):
        pb.random.seed(1)
        model = pb.sequential([pb.layers.dense(2, input_shape=[3], kernel_regularizer="l2"), pb.layers.dense(1)])
        model.compile("sgd", loss, metrics=["mae"])
        return model

    weights = np.linspace(0.5, 2.0, 40, dtype=np.float32)
    for loss in ("mse", pb.train.losses.MeanSquaredError(reduction="sum")):
        alone, pooled = make(loss), make(loss)
        wanted = alone.fit(X[:40], Y[:40], epochs=2, batch_size=40, sample_weight=weights, shuffle=False).history
        with pb.scale.Pool("serial") as pool:
            shards = pb.scale.Shards((X[:40], Y[:40], weights), parts=4)
            found = pooled.fit(shards, pool=pool, epochs=2, batch_size=40, shuffle=False).history
        for name in wanted:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5)
        np.testing.assert_allclose(pooled.predict(X), alone.predict(X), rtol=1e-4, atol=1e-5)


def test_scale_fit_does_not_change_frozen_layers() -> None:
    model = make_model()
    model.layers[0].trainable = False
    before = [v.numpy().copy() for v in model.layers[0].variables]
    with pb.scale.Pool("serial") as pool:
        model.fit(SHARDS, pool=pool, epochs=1)
    assert all(np.array_equal(v.numpy(), old) for v, old in zip(model.layers[0].variables, before, strict=True))


def test_scale_fit_nan_error_names_shard_and_restores_model() -> None:
    y = Y.copy()
    y[20] = np.nan
    model = make_model()
    before = get_bits(model)
    with pb.scale.Pool("serial") as pool:
        shards = pb.scale.Shards((X, y), parts=3)
        with pytest.raises(pb.errors.NanError, match=r"epoch 1, batch 1(.|\n)*shard rows 2 of 3: "):
            model.fit(shards, pool=pool, batch_size=41)
        assert get_bits(model) == before
        history = model.fit(shards, pool=pool, batch_size=41, callbacks=[pb.callbacks.terminate_on_nan()])
    assert "terminate_on_nan" in history.stopped


@pytest.mark.parametrize(
    ("train", "answer"),
    [
        (lambda m, pool: m.fit(X, Y, pool=pool), "targets and weights are in the shards"),
        (lambda m, pool: m.fit(X, pool=pool), r"expected pb\.scale\.Shards"),
        (lambda m, pool: m.fit(SHARDS, pool=pool, batch_size=-1), "batch_size must be 1 or more"),
    ],
)
def test_scale_fit_bad_arguments(train, answer: str) -> None:
    with pb.scale.Pool("serial") as pool, pytest.raises(pb.errors.ArgumentError, match=answer):
        train(make_model(), pool)


def test_scale_fit_rejects_non_additive_loss() -> None:
    loss = pb.train.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    model = pb.sequential([pb.layers.dense(1, input_shape=[3])])
    with pb.scale.Pool("serial") as pool:
        model.compile("sgd", loss)
        with pytest.raises(pb.errors.WorkerError, match="is not the sum or the mean of the losses of parts"):
            model.fit(SHARDS, pool=pool)
        model.compile(pb.train.sgd(0.1, lazy=True), "mse")
        with pytest.raises(pb.errors.ArgumentError, match="lazy=True"):
            model.fit(SHARDS, pool=pool)


def test_fit_with_pool_rejects_batch_size_0() -> None:
    with pb.scale.Pool("serial") as pool, pytest.raises(ArgumentError, match="batch_size must be 1 or more, got 0"):
        make_model().fit(SHARDS, pool=pool, batch_size=0)
