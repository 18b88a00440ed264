"""Properties of every layer: gradients, compiled equals eager, independent examples, config, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback import layers

DRAWN = pb.initializers.random_normal(stddev=0.5, seed=3)
SEQUENCE, IMAGE = (4, 2), (4, 5, 2)
COLORS = [-3, 3]
WARP = {"fill_mode": "constant", "interpolation": "nearest", "fill_value": 1.0, "seed": 1}
VOLUME, FIRST = (2, 3, 3, 2), {"data_format": "channels_first"}
KERNEL = {"kernel_initializer": DRAWN, "kernel_regularizer": "l2", "kernel_constraint": "max_norm"}
BIAS = {"bias_initializer": DRAWN, "bias_regularizer": pb.regularizers.l1(0.1), "bias_constraint": "non_neg"}
DEPTHWISE = {"depthwise_initializer": DRAWN, "depthwise_regularizer": "l1", "depthwise_constraint": "max_norm"}
SMOOTH = {"activation": "tanh"}
SPACE = {"strides": [1, 2], "padding": "same"}
RECURRENT = {
    "recurrent_initializer": DRAWN, "recurrent_regularizer": "l2", "recurrent_constraint": "unit_norm",
    "dropout": 0.25, "recurrent_dropout": 0.25, "seed": 1,
}  # fmt: skip
MEMORY = {**RECURRENT, "go_backwards": True, "zero_output_for_mask": True}
CONVOLVED = {
    "activation": "softsign", "recurrent_activation": "hardSigmoid", "unit_forget_bias": False, "padding": "same",
    **FIRST,
}  # fmt: skip
SCALED = {
    "beta_initializer": DRAWN, "gamma_initializer": DRAWN, "beta_regularizer": "l2", "gamma_regularizer": "l1",
    "beta_constraint": "non_neg", "gamma_constraint": "non_neg",
}  # fmt: skip
STATISTICS = {"moving_mean_initializer": DRAWN, "moving_variance_initializer": pb.initializers.constant(2.0)}
HEADS = {"dropout": 0.5, "use_bias": False, "output_dim": 5, "return_attention_scores": True, "causal": True, "seed": 1}

# For every layer: with few arguments and with many, each time with the shapes of examples.
CASES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "activation": (lambda: layers.activation("softplus"), [(3,)]),
    "add": (lambda: layers.add(), [(2, 3)] * 3),
    "attention": (lambda: layers.attention(), [(4, 3), (5, 3)]),
    "attention, with a key": (
        lambda: layers.attention(use_scale=True, dropout=0.5, causal=True, seed=1),
        [(4, 3), (5, 2), (5, 3)],
    ),
    "average": (lambda: layers.average(), [(2, 3), (2, 3)]),
    "average_pooling1d": (lambda: layers.average_pooling1d(), [SEQUENCE]),
    "average_pooling1d, all": (lambda: layers.average_pooling1d(3, 1, "same"), [SEQUENCE]),
    "average_pooling2d": (lambda: layers.average_pooling2d(), [IMAGE]),
    "average_pooling2d, all": (lambda: layers.average_pooling2d([3, 2], [1, 2], "same"), [IMAGE]),
    "batch_normalization": (lambda: layers.batch_normalization(), [IMAGE]),
    "batch_normalization, all": (
        lambda: layers.batch_normalization(1, momentum=0.5, epsilon=0.1, **SCALED, **STATISTICS),
        [IMAGE],
    ),
    "batch_normalization, less": (lambda: layers.batch_normalization(center=False, scale=False), [(3,)]),
    "bidirectional": (lambda: layers.bidirectional(layers.gru(2)), [SEQUENCE]),
    "bidirectional, all": (
        lambda: layers.bidirectional(layers.lstm(2, return_sequences=True, return_state=True), "sum"),
        [SEQUENCE, (2,), (2,), (2,), (2,)],
    ),
    "bidirectional, both": (
        lambda: layers.bidirectional(layers.gru(2), None, backward_layer=layers.gru(3, go_backwards=True)),
        [SEQUENCE],
    ),
    "bidirectional, mul": (lambda: layers.bidirectional(layers.simple_rnn(2), merge_mode="mul"), [SEQUENCE]),
    "bidirectional, ave": (lambda: layers.bidirectional(layers.simple_rnn(2), merge_mode="ave"), [SEQUENCE]),
    "concatenate": (lambda: layers.concatenate(), [(2, 3), (2, 1)]),
    "concatenate, axis": (lambda: layers.concatenate(axis=1), [(2, 3), (1, 3)]),
    "conv1d": (lambda: layers.conv1d(2, 3), [SEQUENCE]),
    "conv1d, all": (
        lambda: layers.conv1d(2, 2, padding="causal", dilation_rate=2, **SMOOTH, **KERNEL, **BIAS),
        [SEQUENCE],
    ),
    "conv1d, strides": (lambda: layers.conv1d(2, 3, strides=2, padding="same", use_bias=False), [SEQUENCE]),
    "conv2d": (lambda: layers.conv2d(2, 3), [IMAGE]),
    "conv2d, all": (lambda: layers.conv2d(3, [2, 3], **SPACE, **SMOOTH, **KERNEL, **BIAS), [IMAGE]),
    "conv2d, dilation": (lambda: layers.conv2d(3, 2, dilation_rate=[1, 2], use_bias=False), [IMAGE]),
    "conv2d_transpose": (lambda: layers.conv2d_transpose(2, 3), [IMAGE]),
    "conv2d_transpose, all": (
        lambda: layers.conv2d_transpose(3, [2, 3], **SPACE, **SMOOTH, **KERNEL, **BIAS),
        [IMAGE],
    ),
    "conv2d_transpose, short": (lambda: layers.conv2d_transpose(3, 2, 3, use_bias=False), [(2, 2, 2)]),
    "dense": (lambda: layers.dense(3), [(4,)]),
    "dense, all": (lambda: layers.dense(3, "sigmoid", **KERNEL, **BIAS), [(2, 4)]),
    "dense, no bias": (lambda: layers.dense(3, use_bias=False), [(4,)]),
    "dense, low rank": (lambda: layers.dense(3, lora_rank=2, lora_alpha=3.0), [(4,)]),
    "depthwise_conv2d": (lambda: layers.depthwise_conv2d(3), [IMAGE]),
    "depthwise_conv2d, all": (
        lambda: layers.depthwise_conv2d(3, 2, "same", 2, **SMOOTH, **DEPTHWISE, **BIAS),
        [IMAGE],
    ),
    "depthwise_conv2d, dilation": (lambda: layers.depthwise_conv2d(2, dilation_rate=2, use_bias=False), [IMAGE]),
    "dot": (lambda: layers.dot(-1), [(3,), (3,)]),
    "dot, all": (lambda: layers.dot([2, 1], normalize=True), [(4, 3), (3, 2)]),
    "dropout": (lambda: layers.dropout(0.5), [(3,)]),
    "dropout, all": (lambda: layers.dropout(0.5, [None, 1], seed=1), [(3,)]),
    "embedding": (lambda: layers.embedding(9, 2), [(4,)]),
    "embedding, all": (
        lambda: layers.embedding(9, 2, embeddings_initializer=DRAWN, embeddings_regularizer="l2"),
        [(4, 2)],
    ),
    "flatten": (lambda: layers.flatten("channels_first"), [(2, 3)]),
    "gaussian_noise": (lambda: layers.gaussian_noise(0.5, seed=1), [(3,)]),
    "global_average_pooling1d": (lambda: layers.global_average_pooling1d(), [SEQUENCE]),
    "global_average_pooling2d": (lambda: layers.global_average_pooling2d(), [IMAGE]),
    "global_max_pooling1d": (lambda: layers.global_max_pooling1d(), [SEQUENCE]),
    "global_max_pooling2d": (lambda: layers.global_max_pooling2d(), [IMAGE]),
    "gru": (lambda: layers.gru(2), [SEQUENCE]),
    "gru, all": (
        lambda: layers.gru(2, "softsign", "hardSigmoid", True, return_sequences=True, **KERNEL, **BIAS, **MEMORY),
        [SEQUENCE],
    ),
    "gru, state": (lambda: layers.gru(2, reset_after=True, return_state=True, use_bias=False), [SEQUENCE, (2,)]),
    "layer_normalization": (lambda: layers.layer_normalization(), [(2, 3)]),
    "layer_normalization, all": (lambda: layers.layer_normalization([1, 2], 0.1, **SCALED), [(4, 3)]),
    "layer_normalization, less": (lambda: layers.layer_normalization(1, center=False, scale=False), [(4, 3)]),
    "lstm": (lambda: layers.lstm(2), [SEQUENCE]),
    "lstm, all": (
        lambda: layers.lstm(
            2, "softsign", "hardSigmoid", False, return_sequences=True, return_state=True, **KERNEL, **BIAS, **MEMORY
        ),
        [SEQUENCE, (2,), (2,)],
    ),
    "lstm, no bias": (lambda: layers.lstm(2, use_bias=False), [SEQUENCE]),
    "max_pooling1d": (lambda: layers.max_pooling1d(), [SEQUENCE]),
    "max_pooling1d, all": (lambda: layers.max_pooling1d(3, 1, "same"), [SEQUENCE]),
    "max_pooling2d": (lambda: layers.max_pooling2d(), [IMAGE]),
    "max_pooling2d, all": (lambda: layers.max_pooling2d([3, 2], [1, 2], "same"), [IMAGE]),
    "maximum": (lambda: layers.maximum(), [(2, 3)] * 3),
    "minimum": (lambda: layers.minimum(), [(2, 3)] * 3),
    "multi_head_attention": (lambda: layers.multi_head_attention(2, 3), [(4, 3)]),
    "multi_head_attention, all": (
        lambda: layers.multi_head_attention(2, 3, 4, kernel_initializer=DRAWN, bias_initializer=DRAWN, **HEADS),
        [(4, 3), (5, 2), (5, 3)],
    ),
    "multi_head_attention, axes": (
        lambda: layers.multi_head_attention(2, 3, attention_axes=[2], output_shape=[4], use_gate=True),
        [(4, 3, 2), (4, 2, 2)],
    ),
    "multiply": (lambda: layers.multiply(), [(2, 3)] * 3),
    "permute": (lambda: layers.permute([2, 3, 1]), [(2, 3, 4)]),
    "positional_encoding": (lambda: layers.positional_encoding(), [(4, 3)]),
    "positional_encoding, all": (lambda: layers.positional_encoding(max_wavelength=50.0), [(4, 2)]),
    "repeat_vector": (lambda: layers.repeat_vector(3), [(2,)]),
    "reshape": (lambda: layers.reshape([3, -1]), [(2, 6)]),
    "separable_conv2d": (lambda: layers.separable_conv2d(2, 3), [IMAGE]),
    "separable_conv2d, all": (
        lambda: layers.separable_conv2d(
            3, 3, 2, "same", 2, pointwise_initializer=DRAWN, pointwise_regularizer="l2", **SMOOTH, **DEPTHWISE, **BIAS
        ),
        [IMAGE],
    ),
    "separable_conv2d, dilation": (lambda: layers.separable_conv2d(2, 2, dilation_rate=2, use_bias=False), [IMAGE]),
    "simple_rnn": (lambda: layers.simple_rnn(2), [SEQUENCE]),
    "simple_rnn, all": (
        lambda: layers.simple_rnn(2, "sigmoid", return_sequences=True, return_state=True, **KERNEL, **BIAS, **MEMORY),
        [SEQUENCE, (2,)],
    ),
    "simple_rnn, no bias": (lambda: layers.simple_rnn(2, use_bias=False), [SEQUENCE]),
    "subtract": (lambda: layers.subtract(), [(2, 3), (2, 3)]),
    "time_distributed": (lambda: layers.time_distributed(layers.dense(2)), [SEQUENCE]),
    "up_sampling2d": (lambda: layers.up_sampling2d(), [IMAGE]),
    "up_sampling2d, all": (lambda: layers.up_sampling2d([1, 3], "bilinear"), [IMAGE]),
    "zero_padding2d": (lambda: layers.zero_padding2d(), [IMAGE]),
    "zero_padding2d, all": (lambda: layers.zero_padding2d([[1, 0], [2, 3]]), [IMAGE]),
    "activity_regularization": (lambda: layers.activity_regularization(0.1, 0.2), [(3,)]),
    "adaptive_average_pooling1d": (lambda: layers.adaptive_average_pooling1d(3), [SEQUENCE]),
    "adaptive_average_pooling2d": (lambda: layers.adaptive_average_pooling2d([2, 3]), [IMAGE]),
    "adaptive_average_pooling3d": (lambda: layers.adaptive_average_pooling3d(2, **FIRST), [VOLUME]),
    "adaptive_max_pooling1d": (lambda: layers.adaptive_max_pooling1d(3, **FIRST), [SEQUENCE]),
    "adaptive_max_pooling2d": (lambda: layers.adaptive_max_pooling2d(2, **FIRST), [IMAGE]),
    "adaptive_max_pooling3d": (lambda: layers.adaptive_max_pooling3d([1, 2, 2]), [VOLUME]),
    "additive_attention": (lambda: layers.additive_attention(), [(4, 3), (5, 3)]),
    "additive_attention, all": (
        lambda: layers.additive_attention(False, 0.5, True, seed=1, score_mode="concat"),
        [(4, 3), (5, 3)],
    ),
    "alpha_dropout": (lambda: layers.alpha_dropout(0.5, [None, 1], seed=1), [(3,)]),
    "average_pooling3d": (lambda: layers.average_pooling3d(2, [1, 2, 1], "same", **FIRST), [VOLUME]),
    "conv1d_transpose": (
        lambda: layers.conv1d_transpose(2, 3, output_padding=1, strides=2, **SMOOTH, **KERNEL, **BIAS, **FIRST),
        [SEQUENCE],
    ),
    "conv1d_transpose, less": (
        lambda: layers.conv1d_transpose(2, 3, padding="same", use_bias=False, dilation_rate=2),
        [SEQUENCE],
    ),
    "conv3d": (
        lambda: layers.conv3d(4, 2, strides=[1, 2, 1], padding="same", groups=2, **SMOOTH, **KERNEL, **BIAS, **FIRST),
        [VOLUME],
    ),
    "conv3d, less": (lambda: layers.conv3d(2, 2, dilation_rate=[1, 1, 2], use_bias=False), [VOLUME]),
    "conv3d_transpose": (
        lambda: layers.conv3d_transpose(2, 2, output_padding=1, strides=2, **SMOOTH, **KERNEL, **BIAS, **FIRST),
        [(2, 2, 2, 1)],
    ),
    "conv3d_transpose, less": (
        lambda: layers.conv3d_transpose(2, 2, padding="same", use_bias=False, dilation_rate=2),
        [(2, 2, 2, 1)],
    ),
    "conv_lstm1d": (lambda: layers.conv_lstm1d(2, 2, **CONVOLVED, **KERNEL, **BIAS, **MEMORY), [(3, 2, 4)]),
    "conv_lstm1d, dilation": (lambda: layers.conv_lstm1d(2, 2, dilation_rate=2, use_bias=False), [(3, 4, 2)]),
    "conv_lstm2d": (
        lambda: layers.conv_lstm2d(2, 2, strides=2, return_sequences=True, return_state=True, go_backwards=True),
        [(3, 4, 4, 2)],
    ),
    "conv_lstm2d, all": (lambda: layers.conv_lstm2d(2, 2, **CONVOLVED, **KERNEL, **BIAS, **MEMORY), [(3, 2, 4, 4)]),
    "conv_lstm2d_cell": (
        lambda: layers.conv_lstm2d_cell(2, 2, strides=2, **CONVOLVED, **KERNEL, **BIAS, **RECURRENT),
        [(2, 4, 4), (2, 2, 2), (2, 2, 2)],
    ),
    "conv_lstm3d": (lambda: layers.conv_lstm3d(1, 2, **CONVOLVED, **KERNEL, **BIAS, **MEMORY), [(2, 2, 3, 2, 2)]),
    "cropping1d": (lambda: layers.cropping1d([1, 2], **FIRST), [(2, 4)]),
    "cropping2d": (lambda: layers.cropping2d([[1, 0], [2, 1]], **FIRST), [(2, 4, 5)]),
    "cropping3d": (lambda: layers.cropping3d([1, 0, 0], **FIRST), [(2, 3, 2, 2)]),
    "depthwise_conv1d": (
        lambda: layers.depthwise_conv1d(3, 2, "same", 2, **SMOOTH, **DEPTHWISE, **BIAS, **FIRST),
        [SEQUENCE],
    ),
    "depthwise_conv1d, less": (lambda: layers.depthwise_conv1d(2, dilation_rate=2, use_bias=False), [SEQUENCE]),
    "einsum_dense": (
        lambda: layers.einsum_dense(
            "abc,cd->abd", output_shape=[None, 4], bias_axes="d", **SMOOTH, **KERNEL, **BIAS
        ),
        [SEQUENCE],
    ),
    "elu": (lambda: layers.elu(0.5), [(3,)]),
    "gaussian_dropout": (lambda: layers.gaussian_dropout(0.5, seed=1), [(3,)]),
    "global_average_pooling3d": (lambda: layers.global_average_pooling3d(keepdims=True, **FIRST), [VOLUME]),
    "global_max_pooling3d": (lambda: layers.global_max_pooling3d(keepdims=True, **FIRST), [VOLUME]),
    "group_normalization": (lambda: layers.group_normalization(2, 1, 0.1, **SCALED), [IMAGE]),
    "group_normalization, less": (lambda: layers.group_normalization(-1, center=False, scale=False), [IMAGE]),
    "group_query_attention": (
        lambda: layers.group_query_attention(2, 4, 2, 0.5, False, use_gate=True, seed=1, **KERNEL, **BIAS),
        [(4, 3), (4, 3), (4, 2)],
    ),
    "group_query_attention, window": (lambda: layers.group_query_attention(2, 2, 1, sliding_window=2), [(4, 3)]),
    "gru_cell": (lambda: layers.gru_cell(2, "softsign", "hardSigmoid", True, **KERNEL, **BIAS, **RECURRENT), [(3,)]),
    "gru_cell, state": (lambda: layers.gru_cell(2, use_bias=False), [(3,), (2,)]),
    "identity": (lambda: layers.identity(), [(3,)]),
    "input_layer": (lambda: layers.input_layer(), [(3,)]),
    "leaky_relu": (lambda: layers.leaky_relu(0.1), [(3,)]),
    "leaky_relu, alpha": (lambda: layers.leaky_relu(alpha=0.1), [(3,)]),
    "lstm_cell": (
        lambda: layers.lstm_cell(2, "softsign", "hardSigmoid", False, **KERNEL, **BIAS, **RECURRENT),
        [(3,), (2,), (2,)],
    ),
    "lstm_cell, less": (lambda: layers.lstm_cell(2, use_bias=False), [(3,)]),
    "masking": (lambda: layers.masking(0.5), [SEQUENCE]),
    "max_pooling3d": (lambda: layers.max_pooling3d(2, [1, 2, 1], "same", **FIRST), [VOLUME]),
    "position_embedding": (
        lambda: layers.position_embedding(
            6, embeddings_initializer=DRAWN, embeddings_regularizer="l2", embeddings_constraint="non_neg"
        ),
        [SEQUENCE],
    ),
    "prelu": (
        lambda: layers.prelu(DRAWN, alpha_regularizer="l2", alpha_constraint="non_neg", shared_axes=[1]),
        [SEQUENCE],
    ),
    "relu": (lambda: layers.relu(0.8, 0.1, 0.2), [(3,)]),
    "reversible_embedding": (
        lambda: layers.reversible_embedding(
            9, 2, embeddings_initializer=DRAWN, embeddings_regularizer="l2", embeddings_constraint="non_neg",
            mask_zero=True, input_length=4, tie_weights=False, reverse_dtype="float32", logit_soft_cap=1.0,
        ),
        [(4,)],
    ),
    "rms_normalization": (lambda: layers.rms_normalization([1, 2], 0.1), [SEQUENCE]),
    "rnn": (
        lambda: layers.rnn(
            layers.stacked_rnn_cells([layers.gru_cell(2), layers.lstm_cell(3)]),
            return_sequences=True, return_state=True, go_backwards=True, zero_output_for_mask=True,
        ),
        [SEQUENCE],
    ),
    "separable_conv1d": (
        lambda: layers.separable_conv1d(
            3, 3, 2, "same", 2, pointwise_initializer=DRAWN, pointwise_regularizer="l2", pointwise_constraint="non_neg",
            **SMOOTH, **DEPTHWISE, **BIAS, **FIRST,
        ),
        [SEQUENCE],
    ),
    "separable_conv1d, less": (lambda: layers.separable_conv1d(2, 2, dilation_rate=2, use_bias=False), [SEQUENCE]),
    "simple_rnn_cell": (lambda: layers.simple_rnn_cell(2, "sigmoid", **KERNEL, **BIAS, **RECURRENT), [(3,)]),
    "simple_rnn_cell, less": (lambda: layers.simple_rnn_cell(2, use_bias=False), [(3,), (2,)]),
    "softmax": (lambda: layers.softmax([1, 2]), [SEQUENCE]),
    "spatial_dropout1d": (lambda: layers.spatial_dropout1d(0.5, seed=1, **FIRST), [SEQUENCE]),
    "spatial_dropout2d": (lambda: layers.spatial_dropout2d(0.5, seed=1, **FIRST), [IMAGE]),
    "spatial_dropout3d": (lambda: layers.spatial_dropout3d(0.5, seed=1, **FIRST), [VOLUME]),
    "spectral_normalization": (lambda: layers.spectral_normalization(layers.dense(2), 3), [(3,)]),
    "stacked_rnn_cells": (
        lambda: layers.stacked_rnn_cells([layers.gru_cell(2), layers.lstm_cell(3)], seed=1),
        [(3,), (2,), (3,), (3,)],
    ),
    "thresholded_relu": (lambda: layers.thresholded_relu(0.3), [(3,)]),
    "unit_normalization": (lambda: layers.unit_normalization([1, 2]), [SEQUENCE]),
    "up_sampling1d": (lambda: layers.up_sampling1d(3, **FIRST), [SEQUENCE]),
    "up_sampling3d": (lambda: layers.up_sampling3d([1, 2, 3], **FIRST), [VOLUME]),
    "wrapper": (lambda: layers.wrapper(layers.dense(2)), [(3,)]),
    "zero_padding1d": (lambda: layers.zero_padding1d([1, 2], **FIRST), [SEQUENCE]),
    "category_encoding": (lambda: layers.category_encoding(9, "count"), [(4,)]),
    "center_crop": (lambda: layers.center_crop(2, 3, **FIRST), [(2, 4, 5)]),
    "discretization": (lambda: layers.discretization([0.0, 0.5], output_mode="one_hot"), [(4,)]),
    "normalization": (lambda: layers.normalization(1, invert=True), [SEQUENCE]),
    "normalization, given": (lambda: layers.normalization(mean=0.5, variance=2.0), [SEQUENCE]),
    "auto_contrast": (lambda: layers.auto_contrast([0, 1], **FIRST), [IMAGE]),
    "random_color_degeneration": (lambda: layers.random_color_degeneration(0.5, COLORS, seed=1), [(4, 5, 3)]),
    "random_erasing": (lambda: layers.random_erasing(0.9, [0.1, 0.3], 0.5, COLORS, seed=1, **FIRST), [IMAGE]),
    "random_grayscale": (lambda: layers.random_grayscale(0.7, seed=1, **FIRST), [(3, 4, 5)]),
    "random_hue": (lambda: layers.random_hue(0.5, COLORS, seed=1), [(4, 5, 3)]),
    "random_invert": (lambda: layers.random_invert(0.5, COLORS, seed=1, **FIRST), [IMAGE]),
    "random_posterization": (lambda: layers.random_posterization(4, COLORS, seed=1, **FIRST), [IMAGE]),
    "random_saturation": (lambda: layers.random_saturation(0.5, COLORS, seed=1), [(4, 5, 3)]),
    "random_sharpness": (lambda: layers.random_sharpness(0.5, COLORS, seed=1, **FIRST), [IMAGE]),
    "solarization": (lambda: layers.solarization(0.1, 0.6, COLORS, seed=1, **FIRST), [IMAGE]),
    "mel_spectrogram": (
        lambda: layers.mel_spectrogram(16, 8, 12, "hamming", 1000, 4, 30.0, 400.0, False, 60.0, 1.0, 1e-8, 0.5),
        [(40,)],
    ),
    "random_shear": (lambda: layers.random_shear(0.2, 0.3, **WARP, **FIRST), [IMAGE]),
    "random_brightness": (lambda: layers.random_brightness(0.2, [0, 1], seed=1, **FIRST), [IMAGE]),
    "random_contrast": (lambda: layers.random_contrast(0.2, [0, 1], seed=1, **FIRST), [IMAGE]),
    "random_crop": (lambda: layers.random_crop(2, 3, seed=1, **FIRST), [(2, 4, 5)]),
    "random_flip": (lambda: layers.random_flip("vertical", seed=1, **FIRST), [IMAGE]),
    "random_rotation": (lambda: layers.random_rotation(0.2, **WARP, **FIRST), [IMAGE]),
    "random_translation": (lambda: layers.random_translation(0.2, [0.1, 0.2], **WARP, **FIRST), [IMAGE]),
    "random_zoom": (lambda: layers.random_zoom(0.2, 0.3, **WARP, **FIRST), [IMAGE]),
    "rescaling": (lambda: layers.rescaling(2.0, [0.5, 0.1]), [SEQUENCE]),
    "resizing": (lambda: layers.resizing(3, 4, "nearest", True, **FIRST), [(2, 4, 5)]),
    "resizing, padded": (lambda: layers.resizing(3, 4, pad_to_aspect_ratio=True, fill_value=1.0), [IMAGE]),
    "zero_padding3d": (lambda: layers.zero_padding3d([1, 0, 2], **FIRST), [VOLUME]),
}  # fmt: skip
WRAPPERS = ("bidirectional", "rnn", "spectral", "stacked", "time_distributed", "wrapper")  # which are given layers
every = pytest.mark.parametrize("case", CASES)
SIBLINGS = {  # whose code is that of another case, with another number of axes
    "adaptive_average_pooling1d", "adaptive_average_pooling3d", "adaptive_max_pooling2d", "adaptive_max_pooling3d",
    "conv3d, less", "conv3d_transpose, less", "conv_lstm1d", "conv_lstm1d, dilation", "conv_lstm3d", "cropping1d",
    "cropping3d", "depthwise_conv1d, less", "global_average_pooling3d", "global_max_pooling3d", "gru_cell",
    "separable_conv1d, less", "simple_rnn_cell", "spatial_dropout1d", "spatial_dropout2d", "spatial_dropout3d",
    "up_sampling1d", "zero_padding1d", "zero_padding3d", "wrapper", "identity", "input_layer", "random_zoom",
    "auto_contrast", "random_color_degeneration", "random_grayscale", "random_invert", "random_posterization",
    "random_saturation", "solarization", "random_shear",
    "random_translation",
}  # fmt: skip
DISTINCT = [case for case in CASES if case not in SIBLINGS]


def given(case: str, batch: int = 3, dtype: Any = np.float32) -> tuple[Any, list[Any]]:
    """Return the built layer and inputs for it."""
    make, shapes = CASES[case]
    generator = np.random.default_rng(len(case))
    if case.startswith(("embedding", "reversible", "category")):
        xs = [generator.integers(0, 9, (batch, *shapes[0]))]
    else:
        xs = [generator.normal(size=(batch, *shape)).astype(dtype) for shape in shapes]
    layer = make()
    layer.build_for(shapes)
    return layer, xs


def flat(y: Any) -> list[Any]:
    return [np.asarray(z) for z in (y if isinstance(y, tuple) else (y,))]


def same(y: Any, z: Any, **how: Any) -> None:
    one, other = flat(y), flat(z)
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, **({"rtol": 1e-4, "atol": 1e-5} | how))


def cost(y: Any) -> Any:
    """Return a scalar to which every output contributes differently."""
    total: Any = 0.0
    for z in y if isinstance(y, tuple) else (y,):
        total = total + pb.sum(z * np.cos(np.arange(z.size, dtype=z.dtype)).reshape(z.shape))
    return total


COMMON = {f.name for f in fields(layers.Layer)}  # which test_layer_arguments.py has
WITHOUT_EFFECT = {
    "num_bins",
    "epsilon",
    "unroll",
    "implementation",
    "flash_attention",
    "sparse",
    "shape",  # another name of input_shape
    "batch_shape",
    "input_dim",
    "input_length",
    "stateful",
}
APART = {  # a function cannot be saved, a random shape cannot be compiled, text is no input of compiled programs
    "hashing", "integer_lookup", "lambda_", "random_width", "string_lookup", "text_vectorization",
}  # fmt: skip


def test_cases_cover_every_layer_and_argument() -> None:
    kinds = {value for name, value in vars(layers).items() if isinstance(value, type) and name.islower()}
    covered = {CASES[case][0]().__class__ for case in CASES}
    assert {kind.__name__ for kind in kinds - covered} == {getattr(layers, name).__name__ for name in APART}
    every: set[tuple[str, str]] = set()
    changed: set[tuple[str, str]] = set()
    for case in CASES:
        layer = CASES[case][0]()
        for f in fields(layer):
            if f.init and f.name not in COMMON | WITHOUT_EFFECT:
                owner = next(
                    kind for kind in reversed(type(layer).__mro__) if f.name in vars(kind).get("__annotations__", ())
                )
                every.add((owner.__name__, f.name))
                if not _is(getattr(layer, f.name), f.default):
                    changed.add((owner.__name__, f.name))
    assert every - changed == set()


def _is(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default


@pytest.mark.parametrize("case", sample(DISTINCT, 2))
def test_layer_gradients(case: str) -> None:
    if case == "category_encoding":
        return  # of integers, without variables
    layer, xs = given(case, 2, np.float64)
    model = pb.model(inputs := [pb.input(x.shape[1:]) for x in xs], layer(*inputs))
    params = {name: np.asarray(v, np.float64) for name, v in model.params().items()}
    for training in (False, True) if case.startswith("batch_normalization") else (False,):
        f = lambda p, *xs, t=training: cost(model.apply(p, *xs, training=t))
        pb.check_grads(f, [params, *xs], order=1, modes="rev")
        # Forward mode along one direction, not by element, which takes twice as long as all of the above.
        flat, restore = pb.ravel_tree([params, *xs])
        along = np.random.default_rng(3).standard_normal(flat.shape)
        of_flat = lambda x, f=f, restore=restore: f(*restore(x))
        np.testing.assert_allclose(
            pb.jvp(of_flat, [flat], [along])[1], pb.grad(of_flat, unconnected="zero")(flat) @ along, rtol=1e-9
        )


@pytest.mark.parametrize("case", sample(DISTINCT, 2, first=1))
def test_layer_compiled_equals_eager(case: str) -> None:
    layer, xs = given(case)
    variables, penalties = layer.trainable_variables, layer.penalties

    def run(*xs: Any) -> Any:
        """Return outputs, the cost and its gradients: one program for all of them."""
        outputs = layer(*xs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if not variables:
            return outputs
        value, grads = pb.variable_grads(lambda: cost(layer(*xs)) + (0.0 if penalties() is None else penalties()))
        return *outputs, value, *[grads[v.name] for v in variables]

    same(pb.compile(run)(*xs), run(*xs))


@pytest.mark.parametrize("case", sample(DISTINCT, 18))
def test_layer_trains_to_same_losses_compiled_and_eager(case: str) -> None:
    def train(is_compiled: bool) -> list[float]:
        pb.random.seed(1)
        layer, xs = given(case)
        scale, optimizer = pb.variable(np.float32(1.0)), pb.train.adam(0.05)

        def loss() -> Any:
            y = layer(*[x * scale if x.dtype.kind == "f" else x for x in xs], training=True)
            penalty = layer.penalties()
            return cost(y) * scale + (0.0 if penalty is None else penalty)

        step: Any = lambda: optimizer.minimize(loss, return_cost=True)
        step = pb.compile(step) if is_compiled else step
        return [float(step()) for _ in range(3)]

    np.testing.assert_allclose(train(True), train(False), rtol=1e-3, atol=1e-4)


@every
def test_layer_examples_are_independent(case: str) -> None:
    layer, xs = given(case)

    def alone(*xs: Any) -> Any:
        y = layer(*[x[None] for x in xs])
        return tuple(z[0] for z in y) if isinstance(y, tuple) else y[0]

    same(pb.vmap(alone)(*xs), layer(*xs))


@every
def test_layer_empty_batch_and_output_shape(case: str) -> None:
    layer, xs = given(case, 0)
    shapes = layer.output_shape(*[x.shape[1:] for x in xs])
    several = isinstance(layer(*xs), tuple)
    for training in (False, True):
        made = flat(layer(*xs, training=training))
        assert [y.shape for y in made] == [(0, *shape) for shape in (shapes if several else [shapes])]
    for v in layer.variables:
        assert np.isfinite(v.numpy()).all()


@every
def test_layer_float64(case: str) -> None:
    with pb.default_dtype("float64"):
        layer, xs = given(case, 2, np.float64)
        assert {v.dtype.name for v in layer.variables if v.dtype.kind == "f"} <= {"float64"}
        assert {y.dtype.name for y in flat(layer(*xs))} == {"float64"}
        assert {y.dtype.name for y in flat(layer(*xs, training=True))} == {"float64"}
    single, xs = given(case, 2, np.float32)
    assert {y.dtype.name for y in flat(single(*xs, training=True))} == {"float32"}


@every
def test_layer_config_roundtrip(case: str) -> None:
    layer, xs = given(case)
    again = type(layer)(**layer.get_config())
    again.build_for([x.shape[1:] for x in xs])
    assert repr(again.get_config()) == repr(layer.get_config())
    for v, w in zip(again.variables, layer.variables, strict=True):
        assert v is not w or case.startswith(WRAPPERS)
        v.assign(w)
    same(again(*xs), layer(*xs))


@every
def test_frozen_layer_has_no_gradients(case: str) -> None:
    layer, xs = given(case)
    layer.trainable = False
    assert layer.trainable_variables == []
    before = layer.get_weights()
    probe = pb.variable(1.0)
    grads = pb.variable_grads(lambda: cost(layer(*xs, training=True)) * probe).grads
    assert list(grads) == [probe.name]
    for was, now in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(was, now)
    make, shapes = CASES[case]
    late = type(layer)(**make().get_config() | {"trainable": False})
    late.build_for(shapes)
    assert late.trainable_variables == []


@every
def test_layer_save_and_load(case: str, tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    layer, xs = given(case)
    made = layer(*(inputs := [pb.input(x.shape[1:]) for x in xs]))
    model = pb.model(inputs, list(made) if isinstance(made, tuple) else made)
    model.save(tmp_path / "model.safetensors")
    again = pb.load_model(tmp_path / "model.safetensors")
    assert list(again.named_variables()) == list(model.named_variables())
    same(again(*xs), model(*xs))
    assert (again.penalties() is None) == (model.penalties() is None)
