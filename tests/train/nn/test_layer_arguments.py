"""Arguments that every layer has, states between calls, layers in Keras's style, and symbolic tensors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers
from pullback.errors import ArgumentError, CheckpointError, ShapeError


def values(shape: Any, k: float = 0.0, scale: float = 1.0) -> Any:
    return (np.sin(np.arange(int(np.prod(shape))) * 0.7 + k + 0.3) * scale).reshape(shape).astype(np.float32)


# ---- common arguments


def test_dtype_of_layer_casts_inputs_and_variables() -> None:
    layer = layers.dense(2, dtype="float64")
    y = layer(np.ones((1, 3), np.float32))
    assert y.dtype == layer.kernel.dtype == np.float64
    assert layers.lstm(2, dtype="float32")(np.ones((1, 3, 2), np.float64)).dtype == np.float32
    with pytest.raises(ArgumentError, match="dtype must be one of NumPy's"):
        layers.dense(2, dtype="floaty")


def test_weights_argument_gives_initial_values() -> None:
    kernel, bias = values((3, 2)), values((2,), 1)
    layer = layers.dense(2, weights=[kernel, bias])
    np.testing.assert_allclose(layer(np.eye(3, dtype=np.float32)), kernel + bias, rtol=1e-6)
    assert [v.shape for v in layer.weights] == [(3, 2), (2,)]


def test_batch_input_shape_arguments_build_model() -> None:
    for first in (
        layers.dense(2, batch_input_shape=[None, 3]), layers.dense(2, input_dim=3), layers.dense(2, input_shape=[3]),
    ):  # fmt: skip
        model = pb.sequential([first, layers.dense(1)])
        assert model.count_params() == 11
        assert model.outputs[0].shape == (1,)
    assert pb.sequential([layers.embedding(5, 2, input_length=4)]).outputs[0].shape == (4, 2)
    assert pb.sequential([layers.gru(2, input_dim=3, input_length=4)]).outputs[0].shape == (2,)
    assert pb.sequential([pb.input([3]), layers.dense(1)]).count_params() == 4


@pytest.mark.parametrize("eager", [True, False])
def test_stateful_layer_continues_and_is_reset(eager: bool) -> None:
    layer = layers.lstm(2, stateful=True)
    layer.build_for([(3, 2)])
    layer.set_weights([values(w.shape, 10 + i, 0.5) for i, w in enumerate(layer.get_weights())])
    x = values((2, 3, 2))
    run = layer if eager else pb.compile(lambda x: layer(x))
    first = [[0.1199578, 0.0469258], [0.1122311, -0.0056319]]  # of Keras
    second = [[0.1430486, 0.0670686], [0.1446756, 0.0004251]]
    np.testing.assert_allclose(np.asarray(run(x)), first, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.asarray(run(x)), second, rtol=1e-4, atol=1e-6)
    layer.reset_states()
    np.testing.assert_allclose(np.asarray(run(x)), first, rtol=1e-4, atol=1e-6)
    assert len(layer.get_weights()) == 3
    with pytest.raises(ShapeError, match="batches of one size"):
        layer(x[:1])


def test_stateful_layer_in_training() -> None:
    model = pb.sequential([layers.lstm(3, stateful=True), layers.dense(1)])
    model.compile("sgd", "mse")
    model.fit(values((8, 5, 3)), values((8, 1)), batch_size=4, shuffle=False, verbose=0)
    assert model.predict(values((4, 5, 3)), batch_size=4).shape == (4, 1)


def test_call_mask_and_output_masks() -> None:
    x, mask = values((2, 4, 3)), np.array([[1, 1, 0, 0], [1, 1, 1, 0]], bool)
    layer = layers.gru(2)
    layer(x)
    np.testing.assert_allclose(layer(x, mask=mask)[:1], layer(x[:1, :2]), rtol=1e-6)
    padded = np.where(mask[..., None], x, 9.0).astype(np.float32)
    np.testing.assert_allclose(layer(layers.masking(9.0)(padded)), layer(x, mask=mask), rtol=1e-6)
    model = pb.sequential([layers.masking(9.0), layers.dropout(0.5), layers.time_distributed(layers.dense(3)), layer])
    other = pb.sequential([model.layers[2], layer])
    model(padded)
    np.testing.assert_allclose(model(padded), other(padded, mask=mask), rtol=1e-5)


# ---- layers in Keras's style


class Projection(pb.layers.Layer):
    def __init__(self, units: int, activation: str = "tanh", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units, self.activation = units, activation
        self.inner = layers.activation(activation)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        assert input_shape[0] is None  # the batch, as in Keras
        self.w = self.add_weight(name="w", shape=(input_shape[-1], self.units), initializer="ones", regularizer="l2")

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        self.add_loss(0.1 * np.mean(inputs * inputs))
        scale = 2.0 if training else 1.0
        return self.inner(inputs @ self.w) * scale

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units, "activation": self.activation}


class JoinBoth(pb.layers.Layer):
    def call(self, inputs: Any) -> Any:
        return inputs[0] + inputs[1]


class Drop(pb.Model):
    def __init__(self) -> None:
        super().__init__()
        self.drop = layers.dropout(0.5, seed=1)

    def call(self, inputs: Any) -> Any:
        return self.drop(inputs)


def test_keras_style_layer_trains_saves_and_loads(tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    x = pb.input([3])
    model = pb.model(x, layers.dense(1)(Projection(4, name="mine")(x)))
    assert model.get_layer("mine").output.shape == (4,)
    model.compile("sgd", "mse")
    data = values((8, 3))
    before = model.get_layer("mine").get_weights()[0]
    assert model.fit(data, values((8, 1)), epochs=2, verbose=0).history["loss"][1] > 0
    assert not np.allclose(before, model.get_layer("mine").get_weights()[0])
    model.save(tmp_path / "model")
    again = pb.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    assert again.get_layer("mine").units == 4
    layer = Projection(2)
    layer(data)
    assert len(layer.losses) == 2
    again = Projection.from_config(layer.get_config())
    assert (again.units, again.activation) == (2, "tanh")


def test_keras_style_layer_of_a_list_and_inherited_training() -> None:
    a, b = values((2, 3)), values((2, 3), 1)
    np.testing.assert_allclose(JoinBoth()([a, b]), a + b)
    x, y = pb.input([3]), pb.input([3])
    np.testing.assert_allclose(pb.model([x, y], JoinBoth()([x, y]))(a, b), a + b)
    model = Drop()
    np.testing.assert_array_equal(model(a), a)
    assert (np.asarray(model(a, training=True)) == 0).any()


# ---- symbolic tensors


def test_functions_and_operators_on_symbolic_tensors(tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    x, z = pb.input([4, 3], name="left"), pb.input([4, 3])
    h = layers.dense(3, activation="tanh")(x)
    outputs = [
        h + z, 2.0 - h * 3.0, h[:, 0], h[:, ::2, 1:], np.tanh(h), pb.relu(h), pb.concat([h, z], axis=2),
        np.concatenate([h, z], axis=1), np.mean(h, axis=1), np.where(np.greater(h, 0.0), h, z),
        h @ np.ones((3, 2), np.float32),
        np.einsum("bij,bkj->bik", h, z), h.reshape(-1, 12), abs(h), layers.add()(h, -z),
    ]  # fmt: skip
    model = pb.model([x, z], outputs)
    a, b = values((2, 4, 3)), values((2, 4, 3), 1)
    v = np.tanh(a @ model.get_weights()[0] + model.get_weights()[1])
    wanted = [
        v + b, 2 - v * 3, v[:, 0], v[:, ::2, 1:], np.tanh(v), np.maximum(v, 0), np.concatenate([v, b], 2),
        np.concatenate([v, b], 1), v.mean(1), np.where(v > 0, v, b), v @ np.ones((3, 2)),
        np.einsum("bij,bkj->bik", v, b), v.reshape(2, 12), abs(v), v - b,
    ]  # fmt: skip
    model.save(tmp_path / "model")
    for made in (model(a, b), pb.compile(lambda a, b: model(a, b))(a, b), pb.load_model(tmp_path / "model")(a, b)):
        for y, expected, symbol in zip(made, wanted, outputs, strict=True):
            np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5, atol=1e-6)
            assert symbol.shape == expected.shape[1:]
    assert model.input_names == ["left", "input_2"]
    with pytest.raises(ArgumentError, match="used outside a layer"):
        h * pb.variable(np.ones(3, np.float32))
    with pytest.raises(ArgumentError, match="cannot be iterated over"):
        list(h)


def test_layers_with_unknown_sequence_length() -> None:
    x = pb.input([None, 3])
    h = layers.conv1d(4, 3, strides=2)(x)
    assert h.shape == (None, 4)
    y = layers.dense(2)(layers.global_max_pooling1d()(layers.bidirectional(layers.gru(2, return_sequences=True))(h)))
    model = pb.model(x, y)
    for steps in (5, 9):
        assert model(values((2, steps, 3))).shape == (2, 2)
    assert layers.conv1d(1, 50)(pb.input([None, 2])).shape == (None, 1)
    with pytest.raises(ShapeError, match="must be known"):
        layers.dense(3)(pb.input([None]))


def test_model_attributes_inputs_outputs_and_weights() -> None:
    model = pb.sequential([layers.dense(3, input_shape=[2], name="first"), layers.dense(1)])
    features = pb.model(model.inputs, model.get_layer("first").output)
    a = values((4, 2))
    np.testing.assert_allclose(features(a), model.layers[0](a))
    assert model.layers[1].input.shape == (3,)
    assert [len(v) for v in (model.weights, model.trainable_weights, model.non_trainable_weights)] == [4, 4, 0]
    assert model.pop().units == 1
    model.add(layers.dense(5))
    assert model(a).shape == (4, 5)
    assert model.compute_output_shape((None, 2)) == (None, 5)
    with pytest.raises(ArgumentError, match="has no input yet"):
        _ = pb.sequential([layers.dense(1)]).outputs
    with pytest.raises(ArgumentError, match="was not applied"):
        _ = layers.dense(1).output


# ---- preprocessing


def test_lookup_and_text_vectorization_layers() -> None:
    lookup = layers.string_lookup(mask_token="")
    lookup.adapt([["b", "a"], ["b", ""]])
    assert lookup.get_vocabulary() == ["", "[UNK]", "b", "a"]
    np.testing.assert_array_equal(lookup([["a", "x", ""]]), [[3, 1, 0]])
    inverse = layers.string_lookup(vocabulary=["b", "a"], mask_token="", invert=True)
    assert inverse([[3, 0]]).tolist() == [["a", ""]]
    numbers = layers.integer_lookup(vocabulary=[7, 9], output_mode="multi_hot")
    np.testing.assert_array_equal(numbers([[9, 1, 9]]), [[1, 0, 1]])
    text = layers.text_vectorization(output_mode="tf_idf", ngrams=2)
    text.adapt(["a b", "a c"])
    assert text.get_vocabulary()[:2] == ["[UNK]", "a"]
    np.testing.assert_allclose(text(["a a"])[0, 1], 2 * np.log(1 + 2 / 3), rtol=1e-6)
    again = layers.TextVectorization.from_config(text.get_config())
    np.testing.assert_array_equal(again(["a c"]), text(["a c"]))
    bins = layers.discretization(num_bins=4)
    bins.adapt(np.arange(100.0))
    np.testing.assert_array_equal(np.unique(bins(np.arange(100.0)), return_counts=True)[1], [24, 25, 25, 26])
    with pytest.raises(pb.errors.DataError, match="not in the vocabulary"):
        layers.string_lookup(vocabulary=["a"], num_oov_indices=0)(["b"])
    with pytest.raises(ArgumentError, match="there is no vocabulary yet"):
        layers.string_lookup()(["b"])


def test_random_layers_change_images_in_training_only() -> None:
    x = np.arange(2 * 6 * 6 * 1, dtype=np.float32).reshape(2, 6, 6, 1)
    for layer in (
        layers.random_flip(seed=2), layers.random_rotation(0.1, seed=2), layers.random_zoom(0.3, seed=2),
        layers.random_translation(0.3, 0.3, seed=2), layers.random_brightness(0.5, seed=2),
        layers.random_contrast(0.5, seed=2),
    ):  # fmt: skip
        np.testing.assert_array_equal(layer(x), x)
        changed = layer(x, training=True)
        assert changed.shape == x.shape
        assert not np.allclose(changed, x)
    crop = layers.random_crop(3, 4, seed=1)
    np.testing.assert_array_equal(crop(x), x[:, 1:4, 1:5])
    assert crop(x, training=True).shape == (2, 3, 4, 1)
    turned = layers.random_rotation([0.25, 0.25])(x, training=True)
    assert np.allclose(turned, np.rot90(x, 1, (1, 2)), atol=1e-3) or np.allclose(
        turned, np.rot90(x, 3, (1, 2)), atol=1e-3
    )


def test_gradient_penalty_through_layers() -> None:
    critic = pb.sequential([
        layers.conv2d(3, 3, strides=2, padding="same", input_shape=[4, 4, 1]), layers.leaky_relu(0.2),
        layers.layer_normalization(), layers.flatten(), layers.dense(1),
    ])  # fmt: skip
    x = values((2, 4, 4, 1)).astype(np.float64)
    params = {name: np.asarray(v, np.float64) for name, v in critic.params().items()}

    def penalty(params: Any) -> Any:
        slope = pb.grad(lambda x: pb.sum(critic.apply(params, x)))(x)
        return pb.mean((pb.sqrt(pb.sum(slope * slope, axis=(1, 2, 3))) - 1.0) ** 2)

    pb.check_grads(penalty, [params], order=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.conv2d(3, 3, groups=2), "filters=3 is not a multiple of groups=2"),
        (lambda: layers.conv2d(2, 3, data_format="last"), "data_format must be 'channels_last' or 'channels_first'"),
        (lambda: layers.conv1d_transpose(2, 3, strides=2, output_padding=2), "output_padding must be less than"),
        (lambda: layers.rnn(layers.dense(2)), "expected a cell"),
        (lambda: layers.group_query_attention(2, 3, 2), "num_query_heads=3 is not a multiple"),
        (lambda: layers.dense(2, kernel_constraint="max")(np.ones((1, 2))), "there is no constraint 'max'"),
        (lambda: layers.discretization(), "give either bin_boundaries, or num_bins"),
        (lambda: layers.dense(2)(np.ones((1, 2)), speed=3), "unexpected keyword argument 'speed'"),
        (lambda: layers.einsum_dense("ab->c"), "equation must be like"),
        (lambda: layers.prelu(shared_axes=[3])(np.ones((1, 2))), "shared_axes must be from 1 to 1"),
        (lambda: pb.input(), "give either shape"),
        (lambda: pb.constraints.max_norm(-1), "max_value must be a number of 0 or more"),
    ],
)
def test_keras_layer_argument_errors(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make()


def test_save_rejects_layer_without_constructor_argument(tmp_path: Any) -> None:
    class Forgetful(pb.layers.Layer):
        def __init__(self, factor: float) -> None:
            super().__init__()

        def call(self, x: Any) -> Any:
            return x

    pytest.importorskip("safetensors")
    with pytest.raises(CheckpointError, match="'factor' is not known"):
        pb.sequential([layers.dense(1, input_shape=[1]), Forgetful(2.0)]).save(tmp_path / "model")
