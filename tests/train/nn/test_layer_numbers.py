"""Layers against formulas that are written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers
from pullback.errors import ArgumentError, ShapeError
from pullback.train.nn.summary import format_summary

DRAWN = pb.initializers.random_normal(stddev=0.5, seed=3)
generator = np.random.default_rng(5)
SEQUENCE = generator.normal(size=(3, 4, 2))
IMAGE = generator.normal(size=(2, 5, 6, 3))


def close(y: Any, z: Any) -> None:
    np.testing.assert_allclose(np.asarray(y), z, rtol=1e-5, atol=1e-6)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def weights(layer: Any) -> list[Any]:
    return [np.asarray(v, np.float64) for v in layer.variables]


def convolved(x: Any, kernel: Any, step: tuple[int, int] = (1, 1), apart: tuple[int, int] = (1, 1)) -> Any:
    """Return each window, without padding."""
    height, width = kernel.shape[:2]
    tall, wide = (height - 1) * apart[0] + 1, (width - 1) * apart[1] + 1
    rows, columns = range(0, x.shape[1] - tall + 1, step[0]), range(0, x.shape[2] - wide + 1, step[1])
    out = np.zeros((len(x), len(rows), len(columns), kernel.shape[-1]))
    for i, top in enumerate(rows):
        for j, left in enumerate(columns):
            window = x[:, top : top + tall : apart[0], left : left + wide : apart[1]]
            out[:, i, j] = np.einsum("bhwc,hwcf->bf", window, kernel)
    return out


# ---- dense


def test_dense_with_activations() -> None:
    layer = layers.dense(3, "tanh", bias_initializer=DRAWN)
    y = layer(SEQUENCE)
    kernel, bias = weights(layer)
    close(y, np.tanh(SEQUENCE @ kernel + bias))
    close(layers.dense(3, lambda x: x * 2, kernel_initializer="ones")(np.ones((1, 2))), [[4.0] * 3])


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("softmax", softmax),
        ("hardSigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
        ("softsign", lambda x: x / (1 + abs(x))),
        ("relu6", lambda x: np.clip(x, 0, 6)),
        ("swish", lambda x: x * sigmoid(x)),
        (np.square, lambda x: x * x),
        (None, lambda x: x),
    ],
)
def test_activation_layer_numbers(name: Any, formula: Any) -> None:
    close(layers.activation(name)(3 * SEQUENCE), formula(3 * SEQUENCE))


def project(x: Any) -> Any:
    """Return the nearest probabilities along the last axis, by bisection."""
    low, high = (np.max(x, axis=-1, keepdims=True) - n for n in (1.0, 0.0))
    for _ in range(60):
        middle = (low + high) / 2
        is_low = np.sum(np.maximum(x - middle, 0), axis=-1, keepdims=True) > 1
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return np.maximum(x - high, 0)


ACTIVATIONS = {
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "hard_shrink": lambda x: x * (abs(x) > 0.5),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "soft_shrink": lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0),
    "sparse_plus": lambda x: np.select([x <= -1, x < 1], [0, (x + 1) ** 2 / 4], x),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "sparsemax": project,
    "tanh_shrink": lambda x: x - np.tanh(x),
    "threshold": lambda x: x * (x > 0),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_values_and_gradients(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(5, 4)) * 2
    close(layers.activation(name)(x), ACTIVATIONS[name](x))
    assert layers.activation(name)(x.astype(np.float32)).dtype == np.float32
    pb.check_grads(layers.activation(name), [x])


def test_activations_of_minus_infinity() -> None:
    x = np.array([[-np.inf, 2.0, 0.0]])
    for name, expected in (("sparse_plus", [0, 2, 0.25]), ("sparsemax", [0, 1, 0]), ("threshold", [0, 2, 0])):
        np.testing.assert_array_equal(layers.activation(name)(x), [expected])
    np.testing.assert_array_equal(layers.thresholded_relu(1.0)(x), [[0, 2, 0]])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_softmax_layer_leaves_out_masked_elements(dtype: str) -> None:
    x, mask = np.array([[1.0, 2.0, 3.0, 4.0]], dtype), np.array([[True, False, True, False]])
    found = layers.softmax(dtype=dtype)(x, mask=mask)
    np.testing.assert_allclose(found, [[sigmoid(-2.0), 0, sigmoid(2.0), 0]], rtol=1e-3)
    assert found.dtype == dtype


def test_glu_halves_last_axis() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 6))
    close(layers.activation("glu")(x), x[..., :3] * sigmoid(x[..., 3:]))
    with pytest.raises(ArgumentError, match=r"glu: the last axis is halved.* got shape \(2, 3, 5\)"):
        layers.activation("glu")(x[..., :5])


def test_flatten_reshape_permute_repeat() -> None:
    close(layers.flatten()(IMAGE), IMAGE.reshape(2, -1))
    close(layers.reshape([-1, 9])(IMAGE), IMAGE.reshape(2, 10, 9))
    close(layers.reshape(90)(IMAGE), IMAGE.reshape(2, 90))
    close(layers.permute([3, 1, 2])(IMAGE), IMAGE.transpose(0, 3, 1, 2))
    close(layers.repeat_vector(3)(SEQUENCE[:, 0]), np.stack([SEQUENCE[:, 0]] * 3, 1))


def test_embedding_of_integers_and_integral_floats() -> None:
    layer = layers.embedding(5, 3)
    at = np.array([[0, 4, 4], [2, 0, 1]])
    y = layer(at)
    (table,) = weights(layer)
    close(y, table[at])
    close(layer(at.astype(np.float32)), table[at])
    close(layer(at.tolist()), table[at])
    grads = pb.variable_grads(lambda: pb.sum(layer(at))).grads
    close(next(iter(grads.values())), np.bincount(at.ravel(), minlength=5)[:, None] * np.ones(3))


# ---- random layers


def test_dropout_in_training_only() -> None:
    x = np.ones((200, 50), np.float32)
    layer = layers.dropout(0.25, seed=4)
    assert layer(x) is x
    first, second = (np.asarray(layer(x, training=True)) for _ in range(2))
    assert sorted({*first.ravel().tolist()}) == pytest.approx([0.0, 4 / 3])
    assert np.mean(first == 0) == pytest.approx(0.25, abs=0.02)
    assert (first != second).any()  # drawn again, even with a seed
    again = layers.dropout(0.25, seed=4)
    np.testing.assert_array_equal(again(x, training=True), first)
    np.testing.assert_array_equal(again(x, training=True), second)
    third = layers.dropout(0.25, seed=4)
    compiled = pb.compile(lambda x: third(x, training=True))
    np.testing.assert_array_equal(compiled(x), first)
    np.testing.assert_array_equal(compiled(x), second)
    rows = np.asarray(layers.dropout(0.5, [None, 1])(x, training=True))
    assert np.all(rows == rows[:, :1])
    assert {*rows[:, 0].tolist()} == {0.0, 2.0}


def test_gaussian_noise_in_training_only() -> None:
    x = np.full((200, 50), 3.0, np.float32)
    layer = layers.gaussian_noise(0.5, seed=4)
    assert layer(x) is x
    noisy = np.asarray(layer(x, training=True))
    assert noisy.mean() == pytest.approx(3, abs=0.03)
    assert noisy.std() == pytest.approx(0.5, abs=0.02)


# ---- convolutions


@pytest.mark.parametrize(
    ("settings", "pads", "step", "apart"),
    [
        ({}, (0, 0, 0, 0), (1, 1), (1, 1)),
        ({"strides": [1, 2]}, (0, 0, 0, 0), (1, 2), (1, 1)),
        ({"dilation_rate": 2}, (0, 0, 0, 0), (1, 1), (2, 2)),
        ({"padding": "same"}, (0, 1, 1, 1), (1, 1), (1, 1)),
        ({"padding": "same", "strides": 2}, (0, 1, 0, 1), (2, 2), (1, 1)),
    ],
)
def test_conv2d_layer_numbers(settings: Any, pads: Any, step: Any, apart: Any) -> None:
    layer = layers.conv2d(4, [2, 3], bias_initializer=DRAWN, **settings)
    y = layer(IMAGE)
    kernel, bias = weights(layer)
    padded = np.pad(IMAGE, [(0, 0), pads[:2], pads[2:], (0, 0)])
    close(y, convolved(padded, kernel, step, apart) + bias)


def test_depthwise_and_separable_conv2d() -> None:
    layer = layers.depthwise_conv2d(2, depth_multiplier=2, use_bias=False)
    y = layer(IMAGE)
    (kernel,) = weights(layer)
    parts = [convolved(IMAGE[..., c : c + 1], kernel[:, :, c : c + 1]) for c in range(3)]
    close(y, np.concatenate(parts, -1))
    mixing = layers.separable_conv2d(4, 2, depth_multiplier=2, depthwise_initializer=pb.initializers.constant(kernel))
    y = mixing(IMAGE)
    _, pointwise, bias = weights(mixing)
    close(y, np.concatenate(parts, -1) @ pointwise[0, 0] + bias)


@pytest.mark.parametrize(("padding", "before", "apart"), [("valid", 0, 1), ("same", 1, 1), ("causal", 4, 2)])
def test_conv1d(padding: str, before: int, apart: int) -> None:
    layer = layers.conv1d(3, 3, padding=padding, dilation_rate=apart, activation="relu")
    y = layer(SEQUENCE)
    kernel, bias = weights(layer)
    after = 1 if padding == "same" else 0
    padded = np.pad(SEQUENCE, [(0, 0), (before, after), (0, 0)])
    close(y, np.maximum(convolved(padded[:, None], kernel[None], apart=(1, apart))[:, 0] + bias, 0))


@pytest.mark.parametrize(("padding", "size"), [("valid", (11, 13)), ("same", (10, 12))])
def test_conv2d_transpose(padding: str, size: Any) -> None:
    layer = layers.conv2d_transpose(4, 3, strides=2, padding=padding, bias_initializer=DRAWN)
    y = layer(IMAGE)
    kernel, bias = weights(layer)
    whole = np.zeros((2, 11, 13, 4))
    for i in range(5):
        for j in range(6):
            whole[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.einsum("bc,hwfc->bhwf", IMAGE[:, i, j], kernel)
    close(y, whole[:, : size[0], : size[1]] + bias)
    assert layers.conv2d_transpose(4, 1, strides=3, padding=padding)(IMAGE).shape == (2, 15, 18, 4)


def test_pooling_layer_numbers() -> None:
    windows = IMAGE[:, :4].reshape(2, 2, 2, 3, 2, 3)
    close(layers.max_pooling2d()(IMAGE), windows.max((2, 4)))
    close(layers.average_pooling2d(2)(IMAGE), windows.mean((2, 4)))
    close(layers.max_pooling2d([1, 2], 1)(IMAGE), np.maximum(IMAGE[:, :, :-1], IMAGE[:, :, 1:]))
    pairs = SEQUENCE.reshape(3, 2, 2, 2)
    close(layers.max_pooling1d()(SEQUENCE), pairs.max(2))
    close(layers.average_pooling1d()(SEQUENCE), pairs.mean(2))
    assert layers.max_pooling2d(2, padding="same")(IMAGE).shape == (2, 3, 3, 3)
    close(layers.global_max_pooling2d()(IMAGE), IMAGE.max((1, 2)))
    close(layers.global_average_pooling2d()(IMAGE), IMAGE.mean((1, 2)))
    close(layers.global_max_pooling1d()(SEQUENCE), SEQUENCE.max(1))
    close(layers.global_average_pooling1d()(SEQUENCE), SEQUENCE.mean(1))


def test_up_sampling_and_zero_padding() -> None:
    close(layers.up_sampling2d([2, 3])(IMAGE), IMAGE.repeat(2, 1).repeat(3, 2))
    line = np.array([0.0, 1.0]).reshape(1, 1, 2, 1)
    close(layers.up_sampling2d([1, 2], "bilinear")(line)[0, 0, :, 0], [0.0, 0.25, 0.75, 1.0])
    close(layers.zero_padding2d([1, 2])(IMAGE), np.pad(IMAGE, [(0, 0), (1, 1), (2, 2), (0, 0)]))
    close(layers.zero_padding2d([[1, 0], [2, 3]])(IMAGE), np.pad(IMAGE, [(0, 0), (1, 0), (2, 3), (0, 0)]))


# ---- normalization


def test_batch_normalization() -> None:
    layer = layers.batch_normalization(momentum=0.9, epsilon=0.01, gamma_initializer=DRAWN, beta_initializer=DRAWN)
    y = layer(IMAGE, training=True)
    gamma, beta, mean, variance = weights(layer)
    m, v = IMAGE.mean((0, 1, 2)), IMAGE.var((0, 1, 2))
    close(y, (IMAGE - m) / np.sqrt(v + 0.01) * gamma + beta)
    close(mean, 0.1 * m)
    close(variance, 0.9 + 0.1 * v)
    close(layer(IMAGE), (IMAGE - mean) / np.sqrt(variance + 0.01) * gamma + beta)
    close(layer.moving_mean, mean)  # updated in training only
    assert [v.name.split("/")[1] for v in layer.trainable_variables] == ["gamma", "beta"]
    along = layers.batch_normalization(axis=1, center=False, scale=False, epsilon=0.0)
    along_rows = (IMAGE - IMAGE.mean((0, 2, 3), keepdims=True)) / IMAGE.std((0, 2, 3), keepdims=True)
    close(along(IMAGE, training=True), along_rows)
    assert [v.shape for v in along.variables] == [(5,), (5,)]


def normalizing(momentum: float = 0.5) -> Any:
    begin = pb.initializers.glorot_uniform(seed=1)
    return pb.sequential(
        [
            layers.dense(4, kernel_initializer=begin, use_bias=False, input_shape=[2]),
            layers.batch_normalization(momentum=momentum),
            layers.dense(1, kernel_initializer=begin),
        ]
    )


def test_moving_averages_update_once_under_every_transform() -> None:
    x = SEQUENCE[:, 0].astype(np.float32)

    def after(step: Any) -> Any:
        model = normalizing()
        step(model, lambda: pb.mean(model(x, training=True) ** 2))
        return model.layers[1].get_weights()[2:]

    def applied(model: Any) -> Any:
        return lambda p: pb.mean(model.apply(p, x, training=True) ** 2)

    expected = after(lambda model, loss: loss())
    assert abs(expected[0]).min() > 0
    for step in (
        lambda model, loss: pb.variable_grads(loss),
        lambda model, loss: pb.compile(loss)(),
        lambda model, loss: pb.compile(lambda: pb.variable_grads(loss).value)(),
        lambda model, loss: pb.grad(applied(model))(model.params()),
        lambda model, loss: pb.compile(lambda p: pb.grad(applied(model))(p))(model.params()),
        lambda model, loss: pb.jvp(applied(model), [model.params()], [model.params()]),
        lambda model, loss: pb.hessian(applied(model))(model.params()),
    ):
        for got, due in zip(after(step), expected, strict=True):
            close(got, due)


def test_moving_averages_in_compiled_steps() -> None:
    x, found = SEQUENCE[:, 0].astype(np.float32), []
    for compiled in (False, True):
        model, optimizer = normalizing(), pb.train.momentum(0.05, 0.9)

        def step(model: Any = model, optimizer: Any = optimizer) -> Any:
            return optimizer.minimize(lambda: pb.mean((model(x, training=True) - 1) ** 2), return_cost=True)

        run = pb.compile(step) if compiled else step
        costs = [float(run()) for _ in range(6)]
        assert costs[-1] < costs[0]
        found.append([costs, *model.get_weights()])
    for eager, made in zip(*found, strict=True):
        np.testing.assert_allclose(made, eager, rtol=1e-4, atol=1e-5)


def test_layer_normalization() -> None:
    layer = layers.layer_normalization(axis=[1, 2], epsilon=0.01, gamma_initializer=DRAWN, beta_initializer=DRAWN)
    y = layer(SEQUENCE)
    gamma, beta = weights(layer)
    assert gamma.shape == (4, 2)
    m, v = SEQUENCE.mean((1, 2), keepdims=True), SEQUENCE.var((1, 2), keepdims=True)
    close(y, (SEQUENCE - m) / np.sqrt(v + 0.01) * gamma + beta)


# ---- recurrent


def remembered(layer: Any, x: Any, h: Any, c: Any = None) -> tuple[Any, Any]:
    """Return the states of every step, by Keras's formulas."""
    kernel, recurrent, bias = weights(layer)
    hs, u = [], layer.units
    for t in range(x.shape[1]):
        if layer.kind == "simple_rnn":
            h = np.tanh(x[:, t] @ kernel + h @ recurrent + bias)
        elif layer.kind == "lstm":
            i, f, n, o = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(n)
            h = sigmoid(o) * np.tanh(c)
        else:
            b, later = bias if layer.reset_after else (bias, np.zeros(3 * u))
            a, m = x[:, t] @ kernel + b, h @ recurrent + later
            z, r = sigmoid(a[:, :u] + m[:, :u]), sigmoid(a[:, u : 2 * u] + m[:, u : 2 * u])
            used = r * m[:, 2 * u :] if layer.reset_after else (r * h) @ recurrent[:, 2 * u :]
            h = z * h + (1 - z) * np.tanh(a[:, 2 * u :] + used)
        hs.append(h)
    return np.stack(hs, 1), c


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (layers.simple_rnn, {}),
        (layers.lstm, {}),
        (layers.lstm, {"unit_forget_bias": False}),
        (layers.gru, {}),
        (layers.gru, {"reset_after": True}),
    ],
)
def test_recurrent_layer_numbers(make: Any, settings: Any) -> None:
    shared = {"bias_initializer": DRAWN, **settings}
    layer = make(3, return_sequences=True, return_state=True, **shared)
    begin = [generator.normal(size=(3, 3)) for _ in range(layer.states)]
    y, *states = layer(SEQUENCE, initial_state=begin)
    hs, c = remembered(layer, SEQUENCE, *begin)
    close(y, hs)
    close(states[0], hs[:, -1])
    if layer.kind == "lstm":
        close(states[1], c)
        assert (weights(layer)[2][3:6] == 1).all() == ("unit_forget_bias" not in settings)
    last, backward = make(3, **shared), make(3, go_backwards=True, return_sequences=True, **shared)
    zeros = [np.zeros((3, 3))] * layer.states
    for other in (last, backward):
        other.build_for([SEQUENCE.shape[1:]])
        for v, w in zip(other.variables, layer.variables, strict=True):
            v.assign(w)
    close(last(SEQUENCE), remembered(layer, SEQUENCE, *zeros)[0][:, -1])
    close(last(SEQUENCE, *begin), hs[:, -1])
    close(last(SEQUENCE.tolist()), last(SEQUENCE))
    close(backward(SEQUENCE), remembered(layer, SEQUENCE[:, ::-1], *zeros)[0])


@pytest.mark.parametrize(
    ("mode", "merged"),
    [
        ("concat", lambda x, y: np.concatenate([x, y], -1)),
        ("sum", np.add),
        ("mul", np.multiply),
        ("ave", lambda x, y: (x + y) / 2),
    ],
)
def test_bidirectional_layer_numbers(mode: str, merged: Any) -> None:
    layer = layers.bidirectional(layers.gru(2, return_sequences=True, return_state=True), mode)
    begin = [generator.normal(size=(3, 2)) for _ in range(2)]
    y, there, back = layer(SEQUENCE, initial_state=begin)
    assert list(layer.named_variables())[::3] == ["layer/kernel", "backward/kernel"]
    first = remembered(layer.layer, SEQUENCE, begin[0])[0]
    second = remembered(layer.backward, SEQUENCE[:, ::-1], begin[1])[0]
    close(y, merged(first, second[:, ::-1]))
    close(there, first[:, -1])
    close(back, second[:, -1])


@pytest.mark.parametrize("cells", [1, 2])
def test_bidirectional_of_cells_has_weights_of_its_own_in_each_direction(cells: int) -> None:
    made = [layers.lstm_cell(2), layers.gru_cell(3)][:cells]
    layer = layers.bidirectional(layers.rnn(made if cells > 1 else made[0]), merge_mode=None)
    forward, backward = layer(SEQUENCE)
    assert len(layer.variables) == 2 * len(layer.layer.variables) == 6 * cells
    close(backward, layer.backward(SEQUENCE))
    layer.backward.set_weights(layer.layer.get_weights())
    close(layer(SEQUENCE[:, ::-1])[1], forward)


def test_initial_state_of_stateful_layer_and_reset_state() -> None:
    stateful, state = layers.gru(2, stateful=True), np.full((len(SEQUENCE), 2), 0.5)
    begun = stateful(SEQUENCE, state)
    plain = layers.gru(2, weights=stateful.get_weights())
    close(begun, plain(SEQUENCE, state))
    close(stateful(SEQUENCE), plain(SEQUENCE, np.asarray(begun)))
    stateful.reset_state()
    close(stateful(SEQUENCE), plain(SEQUENCE))


def test_attention_mask_over_two_axes_equals_mask_of_flat_axes() -> None:
    rng = np.random.default_rng(0)
    x, mask = rng.normal(size=(2, 3, 4, 5)), rng.random((2, 3, 4, 3, 4)) < 0.6
    layer = layers.multi_head_attention(2, 3, attention_axes=(1, 2))
    found = layer(x, x, attention_mask=mask)
    flat = layers.multi_head_attention(2, 3, weights=layer.get_weights())
    rows = np.reshape(x, (2, 12, 5))
    close(found, np.reshape(flat(rows, rows, attention_mask=np.reshape(mask, (2, 12, 12))), (2, 3, 4, 5)))


def test_merge_layers_of_one_masked_input() -> None:
    x, y = np.ones((1, 3, 2)), np.full((1, 3, 2), 5.0)
    x[0, 2] = 0
    masked = layers.masking()(x)
    close(layers.multiply()([masked, y]), np.full((1, 3, 2), 5.0))
    joined = layers.concatenate(1)([masked, y])
    np.testing.assert_array_equal(
        pb.layers.concatenate(1).compute_mask([x, y], [np.array([[1, 1, 0]], bool), None]),
        [[True, True, False, True, True, True]],
    )
    close(joined, np.concatenate([x, y], 1))


def test_random_crop_of_smaller_images_and_noise_of_random_erasing() -> None:
    x = np.linspace(0, 1, 32, dtype=np.float32).reshape(2, 4, 4, 1)
    expected = layers.resizing(6, 6)(x)
    close(layers.random_crop(6, 6)(x, training=True), expected)
    y = np.asarray(layers.random_erasing([1.0, 1.0], scale=[0.5, 0.5], value_range=(2, 3))(x, training=True))
    changed = y[y != x]
    assert 0 < changed.size < x.size
    assert np.all((changed >= 2) & (changed <= 3))
    assert len(np.unique(changed)) == changed.size


class Fading(layers.RecurrentCell):
    """A cell of the user's with two states: the output, and how many steps there were."""

    state_size = (2, 1)

    def build(self, shape: Any, *_: Any) -> None:
        self.kernel = self.weight("kernel", (shape[-1], 2), "ones")

    def call(self, x: Any, h: Any, count: Any) -> Any:
        h = np.tanh(x @ self.kernel + 0.5 * h) / (count + 1)
        return h, [h, count + 1]


@pytest.mark.parametrize("flat", [False, True])
def test_rnn_of_own_cell(flat: bool) -> None:
    class Cell(Fading):
        def call(self, x: Any, h: Any, count: Any) -> Any:
            out, states = super().call(x, h, count)
            return (out, *states) if flat else (out, states)

    h, expected = np.zeros((len(SEQUENCE), 2)), []
    for t in range(SEQUENCE.shape[1]):
        h = np.tanh(SEQUENCE[:, t] @ np.ones((SEQUENCE.shape[2], 2)) + 0.5 * h) / (t + 1)
        expected.append(h)
    found, state, count = layers.rnn(Cell(), return_sequences=True, return_state=True)(SEQUENCE)
    close(found, np.stack(expected, 1))
    close(state, h)
    close(count, np.full((len(SEQUENCE), 1), SEQUENCE.shape[1]))


def test_rnn_of_cell_without_state_size_or_of_other_object_raises() -> None:
    class Cell(Fading):
        state_size = None

    with pytest.raises(ArgumentError, match="c: a cell needs state_size, a length or a list of them"):
        layers.rnn(Cell(name="c"))(SEQUENCE)
    for wrong in ([], [layers.dense(1)]):
        with pytest.raises(ArgumentError, match="cells must be a list of cells, got"):
            layers.stacked_rnn_cells(wrong)


def test_time_distributed_layer_numbers() -> None:
    layer = layers.time_distributed(layers.conv2d(2, 2))
    film = np.stack([IMAGE, 2 * IMAGE, -IMAGE], 1)
    y = layer(film)
    close(y, np.stack([layer.layer(film[:, t]) for t in range(3)], 1))


# ---- attention


def test_attention_layer_numbers() -> None:
    query, value, key = (generator.normal(size=(2, n, m)) for n, m in ((4, 3), (5, 2), (5, 3)))
    close(layers.attention()([query, value, key]), softmax(query @ key.transpose(0, 2, 1)) @ value)
    close(layers.attention()(query, key), softmax(query @ key.transpose(0, 2, 1)) @ key)
    scaled = layers.attention(use_scale=True, causal=True)
    scaled.build_for([query.shape[1:]])
    scaled.scale.assign(0.5)
    scores = np.where(np.tri(4, 5, dtype=bool), query @ key.transpose(0, 2, 1) / 2, -np.inf)
    close(scaled(query, value, key), softmax(scores) @ value)
    dropping = layers.attention(dropout=0.5, seed=1)
    assert not np.allclose(dropping(query, value, key, training=True), dropping(query, value, key))


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_attention(causal: bool) -> None:
    query, value, key = (generator.normal(size=(2, n, m)) for n, m in ((4, 6), (5, 2), (5, 3)))
    settings = {"value_dim": 2, "output_dim": 7, "bias_initializer": DRAWN, "causal": causal}
    layer = layers.multi_head_attention(3, 4, return_attention_scores=True, **settings)
    y, seen = layer(query, value, key)
    named = {name: np.asarray(v, np.float64) for name, v in layer.named_variables().items()}
    assert named["attention_output/kernel"].shape == (3, 2, 7)

    def heads(name: str, x: Any) -> Any:
        return np.einsum("btd,dhk->bhtk", x, named[f"{name}/kernel"]) + named[f"{name}/bias"][:, None]

    scores = heads("query", query) @ heads("key", key).transpose(0, 1, 3, 2) / 2
    due = softmax(np.where(np.tri(4, 5, dtype=bool), scores, -np.inf) if causal else scores)
    close(seen, due)
    mixed = np.einsum("bhtk,hkd->btd", due @ heads("value", value), named["attention_output/kernel"])
    close(y, mixed + named["attention_output/bias"])
    alone = layers.multi_head_attention(2, 3)
    close(alone(query), alone(query, query, query))


@pytest.mark.parametrize("kind", ["multi_head_attention", "group_query_attention"])
def test_attention_query_mask_argument_is_the_mask_of_the_first_input(kind: str) -> None:
    layer = getattr(layers, kind)(2, 4, *[2] * (kind == "group_query_attention"))
    x, seen = generator.normal(size=(2, 3, 4)), np.array([[True, True, False], [True, False, True]])
    by_name = layer(x, x, query_mask=seen, return_attention_scores=True)[1]
    by_input = layer(x, x, mask=[seen, None], return_attention_scores=True)[1]
    assert np.array_equal(by_name, by_input)
    assert not by_name[0, :, 2].any()


def test_positional_encoding() -> None:
    y = layers.positional_encoding(100.0)(np.zeros((1, 3, 5)))[0]
    for step in range(3):
        for feature in range(5):
            angle = step / 100.0 ** ((feature // 2) / 3)
            close(y[step, feature], np.cos(angle) if feature % 2 else np.sin(angle))


# ---- several inputs


@pytest.mark.parametrize(
    ("make", "formula"),
    [
        (layers.add, lambda x, y, z: x + y + z),
        (layers.multiply, lambda x, y, z: x * y * z),
        (layers.average, lambda x, y, z: (x + y + z) / 3),
        (layers.maximum, lambda x, y, z: np.maximum(np.maximum(x, y), z)),
        (layers.minimum, lambda x, y, z: np.minimum(np.minimum(x, y), z)),
        (layers.concatenate, lambda x, y, z: np.concatenate([x, y, z], -1)),
    ],
)
def test_merge_layers(make: Any, formula: Any) -> None:
    xs = [generator.normal(size=(2, 3)) for _ in range(3)]
    close(make()(*xs), formula(*xs))
    close(make()(xs), formula(*xs))


def test_subtract_and_dot() -> None:
    x, y = generator.normal(size=(2, 4, 3)), generator.normal(size=(2, 3, 5))
    close(layers.subtract()(x, x[:, ::-1]), x - x[:, ::-1])
    close(layers.concatenate(axis=1)(x, x[:, :1]), np.concatenate([x, x[:, :1]], 1))
    close(layers.dot([2, 1])(x, y), x @ y)
    a, b = x[:, 0], x[:, 1]
    close(layers.dot(1)(a, b), (a * b).sum(1, keepdims=True))
    lengths = np.sqrt((a * a).sum(1) * (b * b).sum(1))[:, None]
    close(layers.dot(-1, normalize=True)(a, b), (a * b).sum(1, keepdims=True) / lengths)


# ---- regularizers


def test_penalties_count_shared_layers_once() -> None:
    shared = layers.dense(2, kernel_initializer="ones", kernel_regularizer=pb.regularizers.l2(0.5))
    other = layers.dense(
        2, kernel_initializer="ones", kernel_regularizer=lambda w: pb.sum(w) * 3, bias_regularizer="l1"
    )
    x = pb.input([2])
    model = pb.model(x, other(layers.bidirectional(layers.simple_rnn(1))(layers.reshape([1, 2])(shared(shared(x))))))
    assert float(model.penalties()) == pytest.approx(2 + 12)
    grads = pb.variable_grads(model.penalties).grads
    close(grads[shared.kernel.name], np.ones((2, 2)))
    close(grads[other.kernel.name], np.full((2, 2), 3.0))
    twice = pb.Model()
    twice.here = twice.there = shared
    assert float(twice.penalties()) == pytest.approx(2)
    assert layers.dense(2).penalties() is None
    for name, due in (("l1", 0.06), ("l2", 0.18), ("l1l2", 0.24), (pb.regularizers.l1_l2(1, 0), 6.0)):
        one = layers.dense(2, kernel_initializer=pb.initializers.constant(-3.0), kernel_regularizer=name)
        one.build_for([(1,)])
        assert float(one.penalties()) == pytest.approx(due)


# ---- in models


def test_functional_model_with_layer_of_several_outputs() -> None:
    x = pb.input([4, 2])
    y, h, c = layers.lstm(3, return_sequences=True, return_state=True)(x)
    assert (y.shape, h.shape, c.shape) == ((4, 3), (3,), (3,))
    decoded = layers.lstm(3)(y, initial_state=[h, c])
    model = pb.model(x, [decoded, layers.add()([h, c])])
    last, total = model(SEQUENCE)
    encoder, decoder = (part for part in model.layers if part.kind == "lstm")
    hs, cs = remembered(encoder, SEQUENCE, np.zeros((3, 3)), np.zeros((3, 3)))
    close(total, hs[:, -1] + cs)
    close(last, remembered(decoder, hs, hs[:, -1], cs)[0][:, -1])
    assert "(batch, 4, 3), (batch, 3), (batch, 3)" in format_summary(model)


def test_model_of_two_inputs_is_built_for_both() -> None:
    class Compared(pb.Model):
        def __init__(self) -> None:
            super().__init__()
            self.seen = layers.dense(3, use_bias=False)
            self.similar = layers.dot(-1, normalize=True)

        def call(self, x: Any, y: Any) -> Any:
            return self.similar(self.seen(x), self.seen(y))

    model = Compared()
    close(model(SEQUENCE[:, 0], 2 * SEQUENCE[:, 0]), np.ones((3, 1)))
    assert list(model.named_variables()) == ["seen/kernel"]


def test_sequential_build_keeps_input_shape() -> None:
    model = pb.sequential([layers.dense(3), layers.dense(1)])
    model.build([2])
    assert model.shapes == ((2,),)
    assert model.is_built()


def test_orthogonal_regularizer_equals_keras() -> None:
    x = np.sin(np.arange(12) * 0.7).reshape(4, 3).astype(np.float32)
    made = [float(pb.regularizers.orthogonal_regularizer(0.5, mode=mode)(x)) for mode in ("rows", "columns")]
    assert made == pytest.approx([0.2730550467967987, 0.27271655201911926], rel=1e-6)
    with pytest.raises(ShapeError, match="it takes a matrix, got shape"):
        pb.regularizers.orthogonal_regularizer()(x[0])
    with pytest.raises(ArgumentError, match="mode must be 'rows' or 'columns', got 'row'"):
        pb.regularizers.orthogonal_regularizer(mode="row")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("interpolation", "size", "expected"),
    [("bicubic", (8, 15), 0.66493952), ("bicubic", (3, 7), -1.3035459), ("bicubic", (9, 3), -0.6462704),
     ("lanczos3", (8, 15), 0.0006886), ("lanczos3", (3, 7), -0.8812594), ("lanczos5", (8, 15), -0.1700774),
     ("lanczos5", (3, 7), -0.7009681)],
)  # fmt: skip
def test_interpolations_equal_those_of_keras_on_torch_and_jax(interpolation: str, size: Any, expected: float) -> None:
    x = np.sin(np.arange(40) * 0.7).reshape(1, 4, 5, 2).astype(np.float32)
    resize = layers.resizing(*size, interpolation=interpolation)
    for run in (resize, pb.compile(resize)):
        y = np.asarray(run(x)).ravel()
        assert float(y @ np.cos(np.arange(y.size))) == pytest.approx(expected, abs=1e-5)
    if size == (8, 15):
        enlarge = layers.up_sampling2d((2, 3), interpolation=interpolation)
        np.testing.assert_array_equal(enlarge(x), resize(x))
        pb.check_grads(lambda x: np.sum(np.sin(enlarge(x))), [x.astype(np.float64)])


def test_spectral_normalization_orders_its_weights_as_keras() -> None:
    layer = pb.layers.spectral_normalization(pb.layers.dense(3))
    layer.build_for([(4,)])
    assert list(layer.named_variables()) == ["layer/kernel", "vector_u", "layer/bias"]
    assert [w.shape for w in layer.get_weights()] == [(4, 3), (1, 3), (3,)]


@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "untruncated_normal", "uniform"])
def test_variance_scaling_has_the_variance_of_its_mode(distribution: str) -> None:
    drawn = pb.initializers.variance_scaling(2.0, "fan_in", distribution, seed=0)([50, 400])
    assert np.std(np.asarray(drawn)) == pytest.approx(0.2, rel=0.02)
