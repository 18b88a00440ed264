"""Errors of layers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers, regularizers
from pullback.errors import ArgumentError, CheckpointError, CompileError, DataError, ShapeError

ROWS, SEQUENCE, IMAGE = np.ones((2, 3)), np.ones((2, 4, 3)), np.ones((2, 5, 5, 3))


def _build(layer: Any, shape: tuple[int, ...]) -> Any:
    layer.build_for([shape])
    return layer


def _add_twice(layer: Any) -> None:
    pb.sequential([layer]).add(layer)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.constraints.min_max_norm(2.0, 1.0), "max_value must be a number of 2.0 or more, got 1.0."),
        (lambda: pb.metrics.AUC(thresholds=[2.0]), "auc: thresholds must be from 0 to 1, got [2.0]."),
        (lambda: layers.dense(0), "units must be a positive whole number, got 0."),
        (lambda: layers.dense(True), "units must be a positive whole number, got True."),
        (lambda: layers.dense(2, "rleu"), "activation must be a function or one of celu, elu,"),
        (lambda: layers.dense(2, name=3), "dense: the name must be text, got int."),
        (lambda: layers.activation(3), "activation must be a function or one of celu, elu"),
        (lambda: layers.conv2d(0, 3), "filters must be a positive whole number, got 0."),
        (lambda: layers.conv2d(2, [3, 3, 3]), "kernel_size must be a positive whole number, or 2 of them, got [3, 3"),
        (lambda: layers.conv1d(2, 3, strides=0), "strides must be a positive whole number, got 0."),
        (lambda: layers.conv2d(2, 3, padding="causal"), "padding must be 'valid' or 'same', got 'causal'."),
        (lambda: layers.conv2d(2, 3, 2, dilation_rate=2), "strides or dilation_rate must be 1, got 2 and 2."),
        (lambda: layers.conv2d_transpose(0, 3), "filters must be a positive whole number, got 0."),
        (
            lambda: layers.conv2d_transpose(1, 3, 2, output_padding=(1,)),
            "output_padding must be a whole number of 0",
        ),
        (
            lambda: layers.conv2d_transpose(1, 3, 2, output_padding=0.5),
            "a whole number of 0 or more, or 2 of them, g",
        ),
        (lambda: layers.relu(max_value=1.0, threshold=-1.0), "threshold must be a number of 0 or more, got -1.0."),
        (lambda: layers.random_contrast([0.2]), "factor must be a number, or the lowest and the highest, got [0.2]."),
        (
            lambda: layers.random_contrast(0.2, [1, 0]),
            "must be the lowest and the highest value, got [1, 0]",
        ),
        (lambda: layers.random_brightness(0.2, 5), "value_range must be the lowest and the highest value, got 5."),
        (
            lambda: layers.einsum_dense("ab,bc->ac", 4, bias_axes="z"),
            "bias_axes must be among the axes 'ac' of the",
        ),
        (lambda: layers.depthwise_conv2d(3, depth_multiplier=0), "depth_multiplier must be a positive whole number"),
        (lambda: layers.separable_conv2d(3, 3, depth_multiplier=0), "depth_multiplier must be a positive whole"),
        (lambda: layers.max_pooling2d([2, 0]), "pool_size must be a positive whole number, or 2 of them, got [2, 0]."),
        (lambda: layers.up_sampling2d(2, "cubic"), "or 'bicubic' or 'lanczos3' or 'lanczos5', got 'cubic'."),
        (lambda: layers.zero_padding2d(-1), "padding must be a whole number of 0 or more, one for each axis, or"),
        (lambda: layers.zero_padding2d([1, 2, 3]), "or one for each side; got [1, 2, 3]."),
        (lambda: layers.reshape([-1, -1]), "target_shape must be lengths, of which one may be -1, got [-1, -1]."),
        (lambda: layers.reshape("2"), "target_shape must be lengths"),
        (lambda: layers.permute([0, 1]), "dims must be each of 1, 2, ... once, got [0, 1]."),
        (lambda: layers.repeat_vector(0), "n must be a positive whole number, got 0."),
        (lambda: layers.dropout(1.0), "rate must be a number, at least 0 and less than 1, got 1.0."),
        (lambda: layers.dropout(0.5, seed="x"), "seed must be a whole number of 0 or more, or None, got 'x'."),
        (lambda: layers.gaussian_noise(-1), "stddev must be a number of 0 or more, got -1."),
        (lambda: layers.embedding(3, 0), "output_dim must be a positive whole number, got 0."),
        (lambda: layers.batch_normalization(momentum=2), "momentum must be a number from 0 to 1, got 2."),
        (lambda: layers.batch_normalization(epsilon=-1), "epsilon must be a number of 0 or more, got -1."),
        (
            lambda: layers.batch_normalization(axis=0)(ROWS),
            "axis 0 is the batch, over which is averaged; take another.",
        ),
        (lambda: layers.layer_normalization(axis=0)(ROWS), "axis 0 is the batch; take axes of the examples."),
        (lambda: layers.lstm(0), "units must be a positive whole number, got 0."),
        (lambda: layers.gru(2, recurrent_activation="gate"), "activation must be a function or one of"),
        (lambda: layers.bidirectional(layers.dense(2)), "expected a recurrent layer, got Dense."),
        (lambda: layers.bidirectional(layers.gru(2), "max"), "merge_mode must be 'concat' or 'sum' or 'mul' or 'ave'"),
        (lambda: layers.time_distributed(3), "expected a layer, got int."),
        (lambda: layers.multi_head_attention(2, 3, value_dim=0), "value_dim must be a positive whole number, got 0."),
        (lambda: layers.attention(dropout=-0.5), "dropout must be a number, at least 0 and less than 1, got -0.5."),
        (lambda: layers.dot(0), "axes must be one or two axes, not that of the batch, got 0."),
        (lambda: layers.dense(2, kernel_regularizer="l3")(ROWS), "kernel: there is no regularizer 'l3'; there are l1"),
        (lambda: layers.dense(2, bias_regularizer=3)(ROWS), "bias: a regularizer is a name, one of pb.regularizers,"),
        (lambda: regularizers.l2(-1), "regularizers.l2: l2 must be a number of 0 or more, got -1."),
        (lambda: layers.dense(2, kernel_initializer="one")(ROWS), "kernel: there is no initializer 'one'; there are"),
        (
            lambda: layers.resizing(2, 2, crop_to_aspect_ratio=True, pad_to_aspect_ratio=True),
            "give one of crop_to_aspect",
        ),
        (lambda: layers.random_posterization(9), "factor must be whole numbers from 1 to 8, got 9."),
        (lambda: layers.random_grayscale(2.0), "factor must be from 0 to 1, got 2.0."),
        (lambda: layers.mel_spectrogram(fft_length=8, sequence_length=9), "must be at most fft_length, 8, got 9."),
        (lambda: layers.mel_spectrogram(window="round"), "window must be 'hann', 'hamming' or None, got 'round'."),
        (lambda: layers.conv2d(4, 2, groups=2)(IMAGE), "3 channels are not a multiple of groups=2."),
        (
            lambda: layers.spectral_normalization(layers.flatten(name="f"))(ROWS),
            "layer 'f' has no kernel and no embedd",
        ),
        (
            lambda: layers.bidirectional(layers.gru(2), backward_layer=layers.gru(2)),
            "must be a recurrent layer that goes",
        ),
        (lambda: pb.model(ROWS, ROWS), "inputs and outputs are made by pb.input and by layers, got ndarray."),
        (
            lambda: pb.model(pb.input([2]), layers.dense(1)(pb.input([3]))),
            "an output needs an input of shape (3,) that is",
        ),
        (lambda: pb.clone_model(layers.dense(1)), "clone_model: expected a model, got"),
        (lambda: pb.input([2.5]), "input: shape: lengths must be whole numbers of 0 or more, or None, got"),
        (lambda: layers.lambda_(3), "expected a function, got int."),
        (lambda: pb.metrics.R2Score("mean"), "R2Score: class_aggregation must be None, 'uniform_average' or"),
        (lambda: pb.model_from_json("{}", custom_objects=[layers.Dense]), "custom_objects: expected a dict of classes"),
        (lambda: pb.sequential([], name="s").pop(), "s.pop: there are no layers."),
        (lambda: _add_twice(layers.dense(1, name="d")), "layer 'd' is in it already; use pb.model to share one."),
        (lambda: pb.train.losses.Huber(reduction="most"), "Huber: reduction must be one of ('sum_over_batch_size',"),
        (
            lambda: pb.train.losses.Huber(1, 2, 3, 4, 5),
            "Huber: it takes delta, reduction, name, dtype; got 5 arguments.",
        ),
        (lambda: pb.metrics.BinaryAccuracy(treshold=3), "it takes threshold, name, dtype; got 'treshold'."),
        (lambda: layers.dense(2, name="out")(ROWS, ROWS), "layer 'out': expected 1 input(s), got 2."),
        (lambda: layers.add(name="sum")(ROWS), "layer 'sum': expected 2 or more input(s), got 1."),
        (lambda: layers.subtract(name="less")([ROWS] * 3), "layer 'less': expected 2 input(s), got 3."),
        (lambda: layers.attention(name="look")(SEQUENCE), "layer 'look': expected 2 to 3 input(s), got 1."),
    ],
)
def test_layer_argument_errors(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("make", "inputs", "message"),
    [
        (lambda **n: layers.dense(2, **n), [np.ones(3)], "there is no axis of features; layers.reshape([1]) makes one"),
        (lambda **n: layers.conv2d(2, 3, **n), [ROWS], "expected rank 4, the batch included, got shape ('batch', 3)."),
        (lambda **n: layers.conv2d(2, 7, **n), [IMAGE], "a window of (7, 7) does not fit into (5, 5)"),
        (lambda **n: layers.max_pooling2d(9, **n), [IMAGE], "a window of (9, 9) does not fit into (5, 5)"),
        (lambda **n: layers.global_max_pooling1d(**n), [np.ones((2, 0, 3))], "zero-size array"),
        (lambda **n: layers.reshape([4], **n), [ROWS], "3 numbers do not fill the shape (4,)."),
        (lambda **n: layers.reshape([2, -1], **n), [ROWS], "3 numbers do not fill the shape (2, -1)."),
        (lambda **n: layers.permute([2, 1], **n), [ROWS], "expected rank 3, the batch included, for dims (2, 1)."),
        (lambda **n: layers.repeat_vector(2, **n), [SEQUENCE], "expected rank 2"),
        (lambda **n: layers.embedding(3, 2, **n), [[[0, 3]]], "expected whole numbers from 0 to 2, got 3."),
        (lambda **n: layers.embedding(3, 2, **n), [[[0, -1]]], "expected whole numbers from 0 to 2, got -1."),
        (lambda **n: layers.embedding(3, 2, **n), [[[0.5]]], "expected whole numbers from 0 to 2, got 0.5."),
        (lambda **n: layers.embedding(3, 2, **n), [[[np.nan]]], "expected whole numbers from 0 to 2, got nan."),
        (
            lambda **n: _build(layers.prelu(**n), (2,)),
            [np.ones((2, 1))],
            "slopes of shape (2,), which would be broadcast",
        ),
        (lambda **n: _build(layers.position_embedding(4, **n), (4, 1)), [SEQUENCE], "expected 1 features, got 3."),
        (lambda **n: layers.category_encoding(3, **n), [[[0.5]]], "expected whole numbers from 0 to 2, got 0.5."),
        (lambda **n: layers.einsum_dense("abc,cd->abd", [9, 4], **n), [SEQUENCE], "output_shape says 9 for axis 'b'"),
        (lambda **n: layers.einsum_dense("abc,cd->abd", [4], **n), [SEQUENCE], "output_shape=[4] must have 2 lengths"),
        (lambda **n: layers.multi_head_attention(1, 2, attention_axes=5, **n), [SEQUENCE], "axis 5 is out of range"),
        (lambda **n: layers.batch_normalization(7, **n), [ROWS], "axis 7 is out of range for rank 2"),
        (lambda **n: layers.layer_normalization(5, **n), [ROWS], "axis 5 is out of range for rank 2"),
        (lambda **n: layers.lstm(2, **n), [ROWS], "expected rank 3, the batch included"),
        (lambda **n: layers.lstm(2, **n), [SEQUENCE, np.ones((2, 2))], "expected 2 initial state(s) of shape (2, 2)"),
        (lambda **n: layers.gru(2, **n), [SEQUENCE, ROWS], "expected 1 initial state(s) of shape (2, 2), got (2, 3)."),
        (lambda **n: layers.simple_rnn(2, **n), [np.ones((2, 0, 3))], "there are no steps in the sequence."),
        (lambda **n: layers.time_distributed(layers.flatten(), **n), [np.ones(3)], "there is no axis of steps."),
        (lambda **n: layers.time_distributed(layers.conv1d(2, 3, **n)), [SEQUENCE], "expected rank 3"),
        (lambda **n: layers.attention(**n), [SEQUENCE, IMAGE], "query, value and key must have rank 3"),
        (lambda **n: layers.attention(**n), [SEQUENCE, SEQUENCE[:, :, :2]], "query has 3 features and key 2"),
        (lambda **n: layers.attention(**n), [SEQUENCE, SEQUENCE[:1]], "must have the same batch"),
        (
            lambda **n: layers.multi_head_attention(2, 3, **n),
            [SEQUENCE, SEQUENCE, SEQUENCE[:, :2]],
            "value as many steps as key",
        ),
        (lambda **n: layers.add(**n), [ROWS, np.ones((2, 4))], "shapes (2, 3) and (2, 4) do not broadcast"),
        (lambda **n: layers.concatenate(**n), [ROWS, SEQUENCE], "must be the same"),
        (lambda **n: layers.dot(1, **n), [ROWS, np.ones((2, 4))], "the lengths 3 along axis 1 and 4 along axis 1"),
        (lambda **n: layers.dot(3, **n), [ROWS, ROWS], "axis 3 is out of range for rank 2"),
        (lambda **n: layers.mel_spectrogram(fft_length=64, **n), [np.ones((1, 20))], "expected more than 32 samples"),
        (lambda **n: layers.multi_head_attention(1, 2, **n), [SEQUENCE, IMAGE], "must have the same rank, 3 or more"),
        (lambda **n: layers.position_embedding(3, **n), [SEQUENCE], "4 steps are more than sequence_length=3."),
        (lambda **n: layers.rnn(layers.gru_cell(2), **n), [ROWS], "expected sequences: (batch, steps, features)."),
        (
            lambda **n: layers.time_distributed(layers.dense(2), **n),
            [np.ones((2, 0, 3))],
            "there are no steps in the se",
        ),
        (lambda **n: layers.cropping1d(2, **n), [SEQUENCE], "cropping=2 leaves nothing of (4,)."),
        (lambda **n: layers.conv1d(2, 900, **n), [pb.input([None, 3])], "a window of (900,) does not fit into (512,)"),
        (lambda **n: layers.dot(-1, **n), [np.ones(3), np.ones(3)], "expected at least rank 2, the batch included."),
    ],
)
def test_layer_shape_errors_name_the_layer(make: Any, inputs: Any, message: str) -> None:
    with pytest.raises(ShapeError) as error:
        make(name="mine")(*inputs)
    assert "layer 'mine'" in str(error.value)
    assert message in str(error.value)


def test_layer_rejects_other_input_shape_than_built() -> None:
    layer = layers.dense(2, name="first")
    layer(ROWS)
    with pytest.raises(
        ShapeError, match=r"layer 'first', given shape \(2, 4\), built for \('batch', 3\): matmul: got shapes"
    ):
        layer(np.ones((2, 4)))
    model = pb.sequential([layers.dense(3, input_shape=[3])])
    with pytest.raises(ShapeError, match="layer 'second': expected rank 3"):
        model.add(layers.lstm(2, name="second"))
    with pytest.raises(DataError, match="layer 'first': expected numbers, got dtype <U1"):
        layer([["a"]])
    with pytest.raises(ShapeError, match=r"Examples of one channel or feature have the shape \(28, 28, 1\)"):
        pb.sequential([layers.conv2d(3, 3, input_shape=[28, 28])])


def test_layer_called_with_scalar_error() -> None:
    with pytest.raises(ShapeError, match="expected an array with the batch along axis 0, got one number"):
        layers.flatten()(3.0)


def test_layer_without_call_error() -> None:
    class Forward(layers.Layer):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.raises(NotImplementedError, match=r"Forward has no method call\(x\). Rename forward to call"):
        Forward()(ROWS)


def test_layer_whose_call_returns_nothing_error() -> None:
    class Doubled(layers.Layer):
        def call(self, x: Any) -> Any:
            x * 2

    with pytest.raises(ShapeError, match="call returned None, expected a tensor"):
        Doubled()(ROWS)


def test_sequential_of_single_layer_or_class_error() -> None:
    with pytest.raises(ArgumentError, match=r"layers must be a list, got Dense. Write sequential\(\[layer\]\)"):
        pb.sequential(layers.dense(2))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"expected a layer, got the class Dense; call it: Dense\("):
        pb.sequential([layers.Dense])  # type: ignore[list-item]


def test_layer_is_built_at_first_call_in_transforms() -> None:
    x = np.ones((4, 3), np.float32)
    for transform in (pb.compile, pb.vmap, lambda f: lambda x: pb.grad(lambda x: pb.sum(f(x)))(x)):
        model = pb.sequential([layers.reshape([1, 3]), layers.lstm(2), layers.batch_normalization(), layers.dense(1)])
        transform(lambda x, model=model: model(x[None] if x.ndim == 1 else x))(x)
        assert model(x).shape == (4, 1)
        assert len(pb.variable_grads(lambda model=model: pb.sum(model(x))).grads) == 7


def test_batch_normalization_in_vmap_raises() -> None:
    layer = layers.batch_normalization(name="normal")
    with pytest.raises(pb.errors.BatchedValueError, match=r"normal/moving_mean\.assign: .* different for each example"):
        pb.vmap(lambda x: layer(x[None], training=True)[0])(ROWS)


@pytest.mark.parametrize(
    ("make", "proposed"),
    [
        (lambda: layers.dense(2, "rleu"), "relu"),
        (lambda: layers.dense(2, activation="softMx"), "softmax"),
        (lambda: pb.initializers.initializer("glorot_unifrom"), "glorot_uniform"),
        (lambda: pb.initializers.initializer("zeroes"), "zeros"),
        (lambda: pb.initializers.variance_scaling(mode="fan_inn"), "fan_in"),
        (lambda: regularizers.regularizer("l1_l3"), "l1l2"),
        (lambda: pb.sequential([layers.dense(2)]).compile("adma", "mse"), "adam"),
        (lambda: pb.sequential([layers.dense(2)]).compile("adam", "mean_squared_eror"), "mean_squared_error"),
        (lambda: pb.sequential([layers.dense(2, name="hidden")]).get_layer("hiden"), "hidden"),
        (lambda: pb.train.sgd(0.1, weight_decy=0.1), "weight_decay"),
        (lambda: pb.callbacks.custom_callback({"onEpochEnds": print}), "on_epoch_end"),
        (lambda: pb.losses.mean_squared_error(ROWS, ROWS, reduction="summ"), "SUM"),
    ],
)
def test_misspelt_name_suggests_nearest(make: Any, proposed: str) -> None:
    with pytest.raises(ArgumentError, match=rf"Did you mean (.* or )?'{proposed}'"):
        make()


@pytest.mark.parametrize("groups", [0, -2, 2, 4])
def test_group_normalization_rejects_groups_that_do_not_divide_channels(groups: int) -> None:
    with pytest.raises(ArgumentError, match=f"3 channels cannot be divided into {groups} groups"):
        layers.group_normalization(groups)(ROWS)


def test_attention_axes_are_axes_of_steps() -> None:
    with pytest.raises(ArgumentError, match=r"attention_axes must be from 1 to 1, got \[0\]"):
        layers.multi_head_attention(1, 2, attention_axes=[0])(SEQUENCE)


def test_cells_name_the_states_they_expect() -> None:
    with pytest.raises(ShapeError, match=r"expected 2 state\(s\) of shape \(2, 3\), got \(2, 3\)\."):
        layers.lstm_cell(3)(ROWS, [np.zeros((2, 3))])
    with pytest.raises(ShapeError, match=r"expected 1 state\(s\) of shape \(2, 3\), got \(2, 4\)\."):
        layers.gru_cell(3)(ROWS, [np.zeros((2, 4))])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.initializers.constant([1.0, 2.0])((3,)), "expected one number or shape (3,), got (2,)."),
        (lambda: pb.initializers.identity()((2, 3)), "expected a square matrix, got shape (2, 3)."),
        (lambda: pb.initializers.orthogonal()((3,)), "expected at least rank 2, got shape (3,)."),
        (lambda: pb.sequential([], name="s").build([3]), "s has no layers yet; add some."),
    ],
)
def test_initializer_and_model_shape_errors(make: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        make()


def test_random_width_in_compiled_model_raises() -> None:
    stack = [
        layers.random_width(0.5, name="w", input_shape=[4, 4, 1]),
        layers.global_average_pooling2d(),
        layers.dense(1),
    ]
    model = pb.sequential(stack)
    model.compile("sgd", "mse")
    with pytest.raises(CompileError, match=r"layer 'w': a random width cannot be compiled. Train with eager=True"):
        model.fit(np.ones((2, 4, 4, 1)), np.ones((2, 1)), verbose=0)


def test_random_hue_of_images_without_three_colors_raises() -> None:
    with pytest.raises(ShapeError, match="expected images of 3 colors, got 4 channels"):
        layers.random_hue(0.5)(np.ones((1, 2, 2, 4)), training=True)


def test_set_weights_of_other_number_raises() -> None:
    layer = _build(layers.dense(2, name="d"), (3,))
    with pytest.raises(CheckpointError, match=r"d.set_weights: expected 2 arrays \(kernel, bias\), got 1"):
        layer.set_weights([np.ones((3, 2))])
