"""Trainings give the numbers of TensorFlow.js 4.22, recorded in Node.

The same models, data and settings there: ``tf.model`` with two outputs, ``tf.sequential`` with ``fitDataset``, weights
and data as below, ``shuffle: false``.  Its validation numbers of several outputs are shifted by one place and not
compared.
"""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

KERNELS = [[[0.1], [-0.2], [0.3]], [0.05], [[0.2, -0.1], [0.4, 0.3], [-0.2, 0.1]], [0.1, -0.1]]
X = np.sin(np.arange(30.0)).reshape(10, 3)
NUMBERS = np.cos(np.arange(10.0)).reshape(10, 1)
LABELS = np.array([0, 1, 0, 1, 1, 0, 1, 0, 0, 1])


def two_outputs(**settings):
    given = pb.input([3])
    a = pb.layers.dense(1, name="out_a")(given)
    b = pb.layers.dense(2, activation="softmax", name="out_b")(given)
    model = pb.model(given, [a, b])
    model.set_weights([np.asarray(w) for w in KERNELS])
    model.compile(pb.train.sgd(0.1), **settings)
    return model


def test_two_outputs_equal_tfjs():
    losses, metrics = ["meanSquaredError", "categoricalCrossentropy"], {"out_a": ["mae"], "out_b": ["acc"]}
    model = two_outputs(loss=losses, metrics=metrics)
    history = model.fit(X, [NUMBERS, np.eye(2)[LABELS]], epochs=2, batch_size=4, shuffle=False).history
    assert list(history) == ["loss", "out_a_loss", "out_b_loss", "out_a_mae", "out_b_acc"]
    assert history["loss"] == pytest.approx([1.3129442930221558, 1.2941956520080566], rel=1e-6)
    assert history["out_a_loss"] == pytest.approx([0.5536622405052185, 0.5588429570198059], rel=1e-6)


def test_class_weights_of_an_output_equal_tfjs():
    model = two_outputs(loss={"out_a": "meanSquaredError", "out_b": "categoricalCrossentropy"})
    y = {"out_a": NUMBERS, "out_b": np.eye(2)[LABELS]}
    how = {"epochs": 2, "batch_size": 4, "shuffle": False, "class_weight": {"out_b": {0: 2, 1: 0.5}}}
    history = model.fit(X, y, **how).history
    assert history["loss"] == pytest.approx([1.4054664373397827, 1.3258447647094727], rel=1e-6)
    assert history["out_b_loss"] == pytest.approx([0.851804256439209, 0.7670018672943115], rel=1e-6)


def test_fit_dataset_with_batches_per_epoch_equals_tfjs():
    model = pb.sequential([pb.layers.dense(1, input_shape=[3], activation="sigmoid")])
    model.set_weights([np.asarray(w) for w in KERNELS[:2]])
    model.compile(pb.train.adam(0.1), "binaryCrossentropy", metrics=["acc"])
    y = LABELS.reshape(-1, 1).astype(np.float32)
    data = pb.data.zip({"xs": pb.data.array(X), "ys": pb.data.array(y)}).batch(4)
    history = model.fit_dataset(data, epochs=2, batches_per_epoch=2, class_weight={0: 2, 1: 1}).history
    assert history["loss"] == pytest.approx([1.0954279899597168, 1.061203122138977], rel=2e-6)
    assert history["acc"] == [0.25, 0.5]


def test_fit_on_mapped_file_equals_array(tmp_path, monkeypatch):
    monkeypatch.setattr("pullback.train.data.mapped.RELEASE_AFTER", 1)  # after every batch
    rows = np.random.default_rng(0).normal(size=(64, 3))
    rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.float64, "r", shape=(64, 3))
    found = []
    for x in (rows, mapped):
        pb.random.seed(0)
        model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[3])])
        model.compile("sgd", "mse")
        found.append(model.fit(x, rows[:, :1], epochs=2, batch_size=16).history["loss"])
    assert found[0] == found[1]
