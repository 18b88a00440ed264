"""Preprocessing layers against answers recorded from Keras on TensorFlow, and layers for text in models that train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers
from pullback.errors import ArgumentError, DataError, ShapeError

CASES = json.loads((Path(__file__).parent / "recorded" / "keras_preprocessing.json").read_text())
NAMES = {name.replace("_", "").lower(): name for name in dir(layers)}
TEXTS = np.array(["the cat sat", "a dog ran away", "the dog sat", "cat and dog"] * 4)
LABELS = np.array([0, 1, 0, 1] * 4)


def make_array(given: Any) -> Any:
    if isinstance(given, list) and given[0] == "sin":
        _, shape, phase, scale, shift = given
        return (np.sin(np.arange(np.prod(shape)) * 0.7 + phase).reshape(shape) * scale + shift).astype(np.float32)
    return np.array(given)


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{i}-{c['layer']}") for i, c in enumerate(CASES)])
def test_preprocessing_layer_equals_keras_after_config_roundtrip(case: Any) -> None:
    layer = getattr(layers, NAMES[case["layer"].lower()])(**case["config"])
    trains = case["data"] == "train"
    if case["data"] is not None and not trains:
        layer.adapt(make_array(case["data"]))
    again = type(layer).from_config(layer.get_config())
    given = make_array(case["given"])
    if layer.variables:
        again.build_for([given.shape[1:]])
        again.set_weights(layer.get_weights())
    for one in (layer, again):
        y = np.asarray(one(given, training=trains))
        assert y.shape == tuple(case["shape"])
        if isinstance(case["values"][0], str):
            assert y.ravel().tolist() == case["values"]
        else:
            np.testing.assert_allclose(y.ravel(), case["values"], rtol=2e-5, atol=2e-4)
        if "vocabulary" in case:
            assert one.get_vocabulary() == case["vocabulary"]


@pytest.mark.parametrize("split", [
    lambda x: [x[:5], x[5:]], lambda x: ((part, 0) for part in (x[:5], x[5:])), lambda x: pb.data.array(x).batch(4),
])  # fmt: skip
def test_adapt_to_batches_equals_adapt_to_array(split: Any) -> None:
    x = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    whole, parts = layers.normalization(), layers.normalization()
    whole.adapt(x)
    parts.adapt(split(x))
    np.testing.assert_allclose(parts.adapted_mean, x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(parts(x), whole(x), rtol=1e-5, atol=1e-6)


def test_category_encoding_counts_by_weights() -> None:
    weights = np.array([[0.5, 2.0, 3.0]])
    found = layers.category_encoding(4, "count")(np.array([[0, 1, 1]]), count_weights=weights)
    np.testing.assert_array_equal(found, [[0.5, 5.0, 0.0, 0.0]])
    with pytest.raises(ArgumentError, match="count_weights are for output_mode='count'"):
        layers.category_encoding(4)(np.array([[0, 1, 1]]), count_weights=weights)


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count", "tf_idf"])
def test_output_shape_of_text_layers_equals_shape_of_output(mode: str) -> None:
    made: list[Any] = [layers.string_lookup(vocabulary=["a", "b"], idf_weights=[0.5, 2.0], output_mode=mode)]
    made += [] if mode == "tf_idf" else [layers.hashing(5, output_mode=mode)]
    for layer in made:
        assert layer.output_shape((4,)) == layer(np.array([["a", "b", "c", "a"]])).shape[1:]
    if mode not in ("int", "one_hot"):
        words = layers.text_vectorization(vocabulary=["a", "b"], idf_weights=[0.5, 2.0], output_mode=mode)
        assert words.output_shape(()) == words(np.array(["a b b c"])).shape[1:] == (3,)


@pytest.mark.parametrize("as_path", [str, Path])
@pytest.mark.parametrize("end", ["", "\n"])
def test_vocabulary_file_has_one_token_in_each_line(tmp_path: Path, as_path: Any, end: str) -> None:
    (tmp_path / "words.txt").write_text(f"b\na c\nd{end}", encoding="utf-8")
    layer = layers.string_lookup(vocabulary=as_path(tmp_path / "words.txt"))
    assert layer.get_vocabulary() == ["[UNK]", "b", "a c", "d"]
    np.testing.assert_array_equal(layer(np.array(["a c", "d", "", "x"])), [2, 3, 0, 0])


def test_text_vectorization_with_custom_standardization_and_vocabulary() -> None:
    layer = layers.text_vectorization(standardize=str.upper)
    layer.set_vocabulary(["A", "B"])
    np.testing.assert_array_equal(layer(np.array(["a b", "B c!"])), [[2, 3], [3, 1]])
    with pytest.raises(ShapeError, match="expected texts along one axis, or a last axis of length 1"):
        layer(np.array([["a", "b"]]))


@pytest.mark.parametrize(("act", "message"), [
    (lambda: layers.normalization(mean=1.0), "give both mean and variance, or neither"),
    (lambda: layers.normalization(axis=0)(np.ones((2, 3))), "axis 0 is the batch"),
    (lambda: layers.normalization(mean=1.0, variance=1.0).adapt(TEXTS), "mean and variance were given already"),
    (lambda: layers.normalization().adapt(iter([])), "adapt: there is no data"),
    (lambda: layers.discretization([0.0]).adapt(TEXTS), "bin_boundaries were given already"),
    (lambda: layers.discretization(num_bins=3).adapt(iter([])), "adapt: there is no data"),
    (lambda: layers.discretization(num_bins=3)(np.ones(2)), "call adapt\\(data\\) first"),
    (lambda: layers.hashing(3, salt=[1, 2, 3]), "salt must be a whole number, or two"),
    (lambda: layers.string_lookup(invert=True, output_mode="count"), "invert needs output_mode='int', got 'count'"),
    (lambda: layers.string_lookup(pad_to_max_tokens=True), "pad_to_max_tokens needs max_tokens"),
    (lambda: layers.string_lookup(vocabulary=["a", "a"]), "the vocabulary has 'a' twice"),
    (lambda: layers.string_lookup(vocabulary=["a", "b"], max_tokens=2), "2 tokens are more than max_tokens=2"),
    (lambda: layers.string_lookup(vocabulary=["a"], output_mode="tf_idf"), "needs idf_weights, one for each token"),
    (lambda: layers.string_lookup(vocabulary=["a"]).adapt(TEXTS), "the vocabulary was given already"),
])  # fmt: skip
def test_preprocessing_layer_rejects_arguments_and_data(act: Any, message: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=message):
        act()


def make_text_model(kind: str) -> Any:
    words = layers.text_vectorization(output_sequence_length=4)
    words.adapt(TEXTS)
    rest = [layers.embedding(words.vocabulary_size(), 3, mask_zero=True), layers.global_average_pooling1d()]
    if kind == "sequential":
        return pb.sequential([words, *rest, layers.dense(2)])
    text, size = pb.input([], dtype="string", name="text"), pb.input([1], name="size")
    h = words(text)
    for layer in rest:
        h = layer(h)
    return pb.model([text, size], layers.dense(2)(layers.concatenate()([h, size])))


@pytest.mark.parametrize("kind", ["sequential", "functional"])
def test_fit_accepts_text_inputs(kind: str, tmp_path: Path) -> None:
    losses = {}
    sizes = np.linspace(-1, 1, 16, dtype=np.float32)[:, None]
    x: Any = TEXTS if kind == "sequential" else {"text": TEXTS, "size": sizes}
    for eager in (False, True):
        pb.random.seed(3)
        model = make_text_model(kind)
        model.compile(pb.train.adam(0.1), "sparse_softmax_cross_entropy", metrics=["accuracy"], eager=eager)
        history = model.fit(x, LABELS, epochs=3, batch_size=4, shuffle=False, verbose=0, validation_split=0.25)
        losses[eager] = history.history["loss"]
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-5)
    assert losses[True][2] < losses[True][0]
    loss, accuracy = model.evaluate(x, LABELS)
    assert accuracy == 1.0
    np.testing.assert_allclose(model.test_on_batch(x, LABELS), [loss, accuracy], rtol=1e-5)
    expected = model.predict(x)
    for name in ("model.keras", "model.safetensors"):
        model.save(tmp_path / name)
        again = (
            pb.load_model(tmp_path / name) if name.endswith("safetensors") else pb.load_layers_model(tmp_path / name)
        )
        np.testing.assert_allclose(again.predict(x), expected, rtol=1e-6)


def test_text_layer_in_compiled_model_raises() -> None:
    class Inside(pb.Model):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.out = layers.string_lookup(vocabulary=["a", "b"], output_mode="one_hot"), layers.dense(1)

        def call(self, x: Any) -> Any:
            return self.out(self.words(x))

    x, y = np.array([["a"], ["b"]]), np.array([[0.0], [1.0]])
    model = Inside()
    model.compile("sgd", "mse", eager=True)
    assert len(model.fit(x, y, verbose=0).history["loss"]) == 1
    model.compile("sgd", "mse")
    with pytest.raises(pb.errors.PullbackError, match=r"text|Python"):
        model.fit(x, y, verbose=0)
    with pytest.raises(pb.errors.DataError, match="expected numbers"):
        pb.sequential([layers.dense(1)]).predict(x)
    nested = pb.sequential(
        [pb.sequential([layers.string_lookup(vocabulary=["a"], output_mode="count"), layers.dense(1)])]
    )
    nested.compile("sgd", "mse")
    nested.build_for([(1,)])
    with pytest.raises(pb.errors.ArgumentError, match="layers for text in front"):
        nested.fit(x, y, verbose=0)


def test_predict_takes_lists_of_texts() -> None:
    words = layers.text_vectorization(vocabulary=["a", "b"], output_mode="count")
    model = pb.sequential([words, layers.dense(1, kernel_initializer="ones")])
    np.testing.assert_array_equal(model.predict(["a a b", "b"]), [[3.0], [1.0]])
