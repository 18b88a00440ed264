"""Properties of every layer: gradients, compiled equals eager, independent examples, config, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers

DRAWN = pb.initializers.random_normal(stddev=0.5, seed=3)
SEQUENCE, IMAGE = (4, 2), (4, 5, 2)
KERNEL = {"kernel_initializer": DRAWN, "kernel_regularizer": "l2"}
BIAS = {"bias_initializer": DRAWN, "bias_regularizer": pb.regularizers.l1(0.1)}
DEPTHWISE = {"depthwise_initializer": DRAWN, "depthwise_regularizer": "l1"}
SMOOTH = {"activation": "tanh"}
SPACE = {"strides": [1, 2], "padding": "same"}
MEMORY = {"recurrent_initializer": DRAWN, "recurrent_regularizer": "l2", "go_backwards": True}
SCALED = {"beta_initializer": DRAWN, "gamma_initializer": DRAWN, "beta_regularizer": "l2", "gamma_regularizer": "l1"}
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
    "flatten": (lambda: layers.flatten(), [(2, 3)]),
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
}  # fmt: skip
every = pytest.mark.parametrize("case", CASES)


def given(case: str, batch: int = 3, dtype: Any = np.float32) -> tuple[Any, list[Any]]:
    """Return the built layer and inputs for it."""
    make, shapes = CASES[case]
    generator = np.random.default_rng(len(case))
    if case.startswith("embedding"):
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


def test_cases_cover_every_layer_and_argument() -> None:
    kinds = {name for name, value in vars(layers).items() if isinstance(value, type) and name.islower()}
    assert kinds == {case.split(",")[0] for case in CASES}
    common = {"name", "trainable", "input_shape"}
    changed: dict[str, set[str]] = {}
    takes: dict[str, set[str]] = {}
    for case in CASES:
        layer = given(case)[0]
        arguments = [f for f in fields(layer) if f.init and f.name not in common]
        takes.setdefault(layer.kind, {f.name for f in arguments})
        away = {f.name for f in arguments if not _is(getattr(layer, f.name), f.default)}
        changed.setdefault(layer.kind, set()).update(away)
    assert changed == takes


def _is(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default


@every
def test_layer_gradients(case: str) -> None:
    layer, xs = given(case, 2, np.float64)
    model = pb.model(inputs := [pb.input(x.shape[1:]) for x in xs], layer(*inputs))
    params = {name: np.asarray(v, np.float64) for name, v in model.params().items()}
    for training in (False, True) if case.startswith("batch_normalization") else (False,):
        pb.check_grads(lambda p, *xs, t=training: cost(model.apply(p, *xs, training=t)), [params, *xs], order=1)


@every
def test_layer_compiled_equals_eager(case: str) -> None:
    layer, xs = given(case)
    same(pb.compile(lambda *xs: layer(*xs))(*xs), layer(*xs))
    if layer.trainable_variables:

        def value_and_grads(*xs: Any) -> Any:
            value, grads = pb.variable_grads(lambda: cost(layer(*xs)) + (0.0 if penalties() is None else penalties()))
            return value, *[grads[v.name] for v in layer.trainable_variables]

        penalties = layer.penalties

        same(pb.compile(value_and_grads)(*xs), value_and_grads(*xs))
        assert len(value_and_grads(*xs)) == 1 + len(layer.trainable_variables)


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
        assert {v.dtype.name for v in layer.variables} <= {"float64"}
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
        assert v is not w or case.startswith(("bidirectional", "time_distributed"))  # which were given a layer
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
