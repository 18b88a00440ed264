"""Convolutions against plain loops, in every layout; what is refused, and in which words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

RANDOM = np.random.default_rng(5)


def drawn(*shape: int) -> Any:
    return RANDOM.normal(size=shape)


def padded(x: Any, pairs: Any) -> Any:
    return np.pad(x, ((0, 0), *pairs, (0, 0)))


def by_loops(x: Any, f: Any, strides: Any, pairs: Any, dilations: Any, depthwise: bool = False) -> Any:
    """The definition: for every position the sum over the window."""
    axes = f.ndim - 2
    x = padded(x, pairs)
    wide = [(k - 1) * d + 1 for k, d in zip(f.shape, dilations, strict=False)]
    out = [(n - w) // s + 1 for n, w, s in zip(x.shape[1:-1], wide, strides, strict=True)]
    z = np.zeros((x.shape[0], *out, f.shape[-2] * f.shape[-1] if depthwise else f.shape[-1]))
    for at in itertools.product(*map(range, out)):
        for tap in itertools.product(*map(range, f.shape[:axes])):
            pixel = x[(slice(None), *(a * s + t * d for a, s, t, d in zip(at, strides, tap, dilations, strict=True)))]
            product = (pixel[:, :, None] * f[tap]).reshape(len(x), -1) if depthwise else pixel @ f[tap]
            z[(slice(None), *at)] += product
    return z


def close(a: Any, b: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


def checked(f: Any, *inputs: Any) -> None:
    """The gradient by every input, along a random direction, against central differences."""
    dy = drawn(*np.shape(f(*inputs)))
    grads = pb.grads(f)(list(inputs), dy)
    for i, x in enumerate(inputs):
        t, h = drawn(*x.shape), 1e-6
        ahead, behind = (f(*inputs[:i], x + s * h * t, *inputs[i + 1 :]) for s in (1, -1))
        close(np.vdot(grads[i], t), np.vdot(dy, (ahead - behind) / (2 * h)), 1e-6)


# ---- values


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("strides", "dilations", "pad", "pairs"),
    [
        (1, 1, "valid", ((0, 0), (0, 0))),
        (2, 1, [[0, 0], [1, 0], [0, 2], [0, 0]], ((1, 0), (0, 2))),
        ((1, 3), 1, [[2, 1], [0, 1]], ((2, 1), (0, 1))),
        (1, (2, 1), "VALID", ((0, 0), (0, 0))),
        (1, 1, "same", ((1, 1), (0, 1))),
        (2, 1, "same", ((1, 1), (0, 0))),
        (1, 2, "same", ((2, 2), (1, 1))),
    ],
)
def test_conv2d_matches_definition(strides: Any, dilations: Any, pad: Any, pairs: Any, channels: int) -> None:
    x, f = drawn(2, 7, 6, channels), drawn(3, 2, channels, 4)
    both = [(n, n) if isinstance(n, int) else n for n in (strides, dilations)]
    want = by_loops(x, f, both[0], pairs, both[1])
    close(pb.conv2d(x, f, strides, pad, "NHWC", dilations), want)
    first = pb.conv2d(np.moveaxis(x, -1, 1), f, strides, pad if isinstance(pad, str) else pairs, "NCHW", dilations)
    close(np.moveaxis(first, 1, -1), want)
    close(pb.conv2d(x[0], f, strides, pad, "NHWC", dilations), want[0])
    deep = drawn(3, 2, channels, 2)
    want = by_loops(x, deep, both[0], pairs, both[1], depthwise=True)
    close(pb.depthwise_conv2d(x, deep, strides, pad, "NHWC", dilations), want)


@pytest.mark.parametrize(("size", "strides"), [((2, 3), (1, 2)), ((3, 2), (1, 1)), ((3, 2), (2, 1)), ((1, 4), (3, 1))])
def test_numeric_pad_with_unequal_filter_or_stride(size: Any, strides: Any) -> None:
    x, f, deep = drawn(2, 4, 5, 2), drawn(*size, 2, 3), drawn(*size, 2, 2)
    pairs, ones = ((1, 1), (1, 1)), (1, 1)
    for conv, kernel in ((pb.conv2d, f), (pb.depthwise_conv2d, deep)):
        call = lambda x, f, conv=conv: conv(x, f, strides, 1)
        want = by_loops(x, kernel, strides, pairs, ones, depthwise=conv is pb.depthwise_conv2d)
        close(call(x, kernel), want)
        close(pb.compile(call)(x, kernel), want)
        checked(call, x, kernel)
        grads = lambda x, f, call=call: pb.grads(call)([x, f])
        for a, b in zip(pb.compile(grads)(x, kernel), grads(x, kernel), strict=True):
            close(a, b)
    volume, g = drawn(1, 3, 4, 5, 1), drawn(2, *size, 1, 2)
    close(pb.conv3d(volume, g, (2, *strides), 1), by_loops(volume, g, (2, *strides), ((1, 1),) * 3, (1,) * 3))


def test_conv2d_transpose_numeric_pad_unequal_filter() -> None:
    y, f, x = drawn(1, 5, 3, 2), drawn(2, 3, 1, 2), drawn(1, 4, 5, 1)
    z = pb.conv2d_transpose(y, f, (1, 4, 5, 1), [1, 2], 1)
    close(np.vdot(z, x), np.vdot(y, pb.conv2d(x, f, [1, 2], 1)))


def test_numeric_pad_per_axis() -> None:
    assert pb.conv2d(np.ones((1, 4, 5, 1)), np.ones((2, 3, 1, 1)), [1, 2], 1).shape == (1, 5, 3, 1)


def test_conv3d_same_pad_stride_longer_than_filter() -> None:
    x, f = drawn(1, 3, 3, 2, 1), drawn(2, 2, 1, 1, 2)
    conv = lambda x, f: pb.conv3d(x, f, 2, "same")
    want = by_loops(x, f, (2, 2, 2), ((0, 1), (0, 1), (0, 0)), (1,) * 3)
    close(conv(x, f), want)
    close(pb.compile(conv)(x, f), want)
    checked(conv, x, f)


@pytest.mark.parametrize(("stride", "dilation", "pad", "pairs"), [
    (1, 1, "valid", (0, 0)), (2, 1, "same", (1, 1)), (1, 2, 2, (2, 2)), (3, 1, [[1, 0]], (1, 0)),
])  # fmt: skip
def test_conv1d_matches_definition(stride: int, dilation: int, pad: Any, pairs: Any) -> None:
    x, f = drawn(2, 9, 2), drawn(3, 2, 3)
    want = by_loops(x, f, (stride,), (pairs,), (dilation,))
    close(pb.conv1d(x, f, stride, pad, "NWC", dilation), want)
    close(pb.conv1d(np.swapaxes(x, 1, 2), f, stride, pad, "NCW", dilation), np.swapaxes(want, 1, 2))
    close(pb.conv1d(x[1], f, stride, pad, "NWC", dilation), want[1])


@pytest.mark.parametrize(("strides", "pad", "pairs"), [
    (1, "valid", ((0, 0),) * 3), ((1, 2, 1), "same", ((0, 1), (0, 1), (0, 0))), (2, 1, ((1, 1),) * 3),
])  # fmt: skip
def test_conv3d_matches_definition(strides: Any, pad: Any, pairs: Any) -> None:
    x, f = drawn(2, 4, 5, 3, 2), drawn(2, 2, 1, 2, 3)
    each = (strides,) * 3 if isinstance(strides, int) else strides
    want = by_loops(x, f, each, pairs, (1, 1, 1))
    close(pb.conv3d(x, f, strides, pad), want)
    close(np.moveaxis(pb.conv3d(np.moveaxis(x, -1, 1), f, strides, pad, "NCDHW"), 1, -1), want)


@pytest.mark.parametrize(("mode", "out"), [(None, 2), ("floor", 2), ("ceil", 3), ("round", 3)])
def test_dim_rounding_mode(mode: Any, out: int) -> None:
    """Between two and three windows fit; the third reaches over the edge, where zeros are."""
    x, f = drawn(1, 4, 4, 1), drawn(3, 3, 1, 1)
    want = by_loops(x, f, (2, 2), ((1, 2), (1, 2)), (1, 1))[:, :out, :out]
    close(pb.conv2d(x, f, 2, 1, "NHWC", 1, mode), want)
    checked(lambda x, f: pb.conv2d(x, f, 2, 1, "NHWC", 1, mode), x, f)


def test_conv2d_large_images() -> None:
    """More than fits the cache: several images at a time, one, or some of its rows; whole windows or their layers."""
    for n, size, channels in ((5, 24, 8), (2, 40, 32), (1, 9, 512), (2, 100, 3)):
        x, f = drawn(n, size, size, channels).astype("f4"), drawn(3, 3, channels, 2).astype("f4")
        z, (dx, df) = pb.value_and_grads(lambda x, f: pb.sum(pb.conv2d(x, f, 1, "same")))([x, f])
        shifted = [padded(x, ((1, 1), (1, 1)))[:, i : i + size, j : j + size] for i in range(3) for j in range(3)]
        want = np.stack([s.sum((0, 1, 2)) for s in shifted]).reshape(3, 3, channels, 1)
        close(df, np.broadcast_to(want, f.shape), 2e-3)
        close(z, np.sum(want * f), 5e-3)
        close(dx[:, 1:-1, 1:-1], np.broadcast_to(f.sum((0, 1, 3)), dx[:, 1:-1, 1:-1].shape), 1e-3)
        assert dx.dtype == df.dtype == np.float32


@pytest.mark.parametrize(("strides", "pad", "shape"), [
    (1, "valid", (2, 4, 4, 2)), (2, "same", (2, 6, 5, 2)), (2, 1, (2, 5, 5, 2)), (3, "valid", (2, 9, 9, 2)),
])  # fmt: skip
def test_conv2d_transpose_is_adjoint(strides: Any, pad: Any, shape: Any) -> None:
    x, f = drawn(*shape), drawn(2, 2, 2, 3)
    y = pb.conv2d(x, f, strides, pad)
    t = drawn(*y.shape)
    z = pb.conv2d_transpose(t, f, shape, strides, pad)
    close(np.vdot(z, x), np.vdot(t, y))
    first = pb.conv2d_transpose(np.moveaxis(t, -1, 1), f, [2, 2, *shape[1:3]], strides, pad, None, "NCHW")
    close(np.moveaxis(first, 1, -1), z)
    close(pb.conv2d_transpose(t[0], f, shape[1:], strides, pad), z[0])
    checked(lambda t, f: pb.conv2d_transpose(t, f, shape, strides, pad), t, f)


def test_conv3d_transpose() -> None:
    x, f = drawn(1, 3, 4, 2, 2), drawn(2, 2, 1, 2, 3)
    y = pb.conv3d(x, f, 2, "same")
    t = drawn(*y.shape)
    close(np.vdot(pb.conv3d_transpose(t, f, x.shape, 2, "same"), x), np.vdot(t, y))


def test_separable_conv2d_is_composition() -> None:
    x, deep, point = drawn(2, 5, 5, 2), drawn(3, 3, 2, 2), drawn(1, 1, 4, 3)
    want = pb.conv2d(pb.depthwise_conv2d(x, deep, 2, "same"), point, 1, "valid")
    close(pb.separable_conv2d(x, deep, point, 2, "same"), want)
    first = pb.separable_conv2d(np.moveaxis(x, -1, 1), deep, point, 2, "same", 1, "NCHW")
    close(np.moveaxis(first, 1, -1), want)


def test_conv2d_of_lists_tensors_variables_and_as_method() -> None:
    x, f = drawn(1, 3, 3, 1).astype("f4"), drawn(2, 2, 1, 1).astype("f4")
    want = pb.conv2d(x, f)
    assert isinstance(want, np.ndarray)
    close(pb.tensor(x).conv2d(f).numpy(), want)
    close(pb.conv2d(pb.variable(x), f).numpy(), want)
    close(pb.conv2d(x.tolist(), f.tolist()).numpy(), want, 1e-6)
    assert pb.conv2d((x * 9).astype(int), f).dtype == np.float32


# ---- gradients of what users call


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_conv2d_gradients_in_both_data_formats(form: str) -> None:
    x, f, deep, point = drawn(2, 5, 4, 2), drawn(3, 2, 2, 3), drawn(2, 2, 2, 2), drawn(1, 1, 4, 2)
    x = x if form == "NHWC" else np.moveaxis(x, -1, 1)
    checked(lambda x, f: pb.conv2d(x, f, (2, 1), "same", form), x, f)
    checked(lambda x, f: pb.depthwise_conv2d(x, f, 1, 1, form), x, deep)
    checked(lambda x, f, p: pb.separable_conv2d(x, f, p, 1, "valid", 1, form), x, deep, point)


def test_convolution_third_order() -> None:
    """The three products stay among themselves, to any order: x * x * f is cubic."""
    x, f = drawn(1, 4, 3, 2), drawn(2, 2, 2, 2)
    cube = lambda x: pb.sum(pb.conv2d(x, f, 1, "same") ** 3)
    t = drawn(*x.shape)
    along = lambda k: lambda x: pb.sum(k(x) * t)
    third = pb.grad(along(pb.grad(along(pb.grad(cube)))))(x)
    want = 6 * pb.grad(lambda x: pb.sum(pb.conv2d(x, f, 1, "same") * pb.conv2d(t, f, 1, "same") ** 2))(x)
    close(third, want)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (0, 3, 5), (2, 5000, 5), (5000, 2, 5), (3, 1, 2, 1)])
def test_fused_bias_gradient(shape: Any) -> None:
    x, bias, dy = drawn(*shape), drawn(shape[-1]), drawn(*shape)
    close(pb.grad(lambda b: x + b)(bias, dy), dy.sum(tuple(range(len(shape) - 1))))


# ---- fused


@pytest.mark.parametrize("activation", ["linear", "relu", "relu6", "elu", "sigmoid", "leakyrelu", "prelu", None])
def test_fused_products(activation: Any) -> None:
    x, f, bias, slope = drawn(1, 4, 4, 2), drawn(2, 2, 2, 3), drawn(3), np.full(3, 0.3)
    names = {"leakyrelu": lambda z: pb.leaky_relu(z, 0.1), "prelu": lambda z: pb.prelu(z, slope)}
    after = names.get(activation) or (getattr(pb, activation) if activation not in ("linear", None) else lambda z: z)
    more = {"activation": activation, "leakyrelu_alpha": 0.1, "prelu_activation_weights": slope}
    close(pb.fused.conv2d(x, f, 1, "same", bias=bias, **more), after(pb.conv2d(x, f, 1, "same") + bias))
    a, b = drawn(2, 4), drawn(3, 4)
    close(pb.fused.mat_mul(a, b, False, True, bias, **more), after(a @ b.T + bias))
    deep, three = drawn(2, 2, 3, 1), drawn(1, 4, 4, 3)
    close(pb.fused.depthwise_conv2d(three, deep, 1, "valid", **more), after(pb.depthwise_conv2d(three, deep)))
    checked(lambda a, b, bias: pb.fused.mat_mul(a, b, bias=bias, **more), a, b.T.copy(), bias)


def test_fused_bias_and_slopes_channel_axis() -> None:
    x, f, bias = drawn(1, 2, 4, 4), drawn(2, 2, 2, 3), drawn(3)
    want = pb.conv2d(x, f, 1, "valid", "NCHW") + bias[:, None, None]
    close(pb.fused.conv2d(x, f, 1, "valid", "NCHW", bias=bias), want)
    bent = pb.prelu(pb.conv2d(x, f, 1, "valid", "NCHW"), bias[:, None, None])
    more = {"activation": "prelu", "prelu_activation_weights": bias}
    close(pb.fused.conv2d(x, f, 1, "valid", "NCHW", **more), bent)


# ---- what is refused

X, F = np.ones((1, 4, 4, 2)), np.ones((2, 2, 2, 3))


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: pb.conv2d(np.ones((4, 4)), F), ShapeError, r"conv2d: x must have rank 4, or 3 .* shape \(4, 4\)"),
    (lambda: pb.conv2d(3.0, F), ShapeError, r"conv2d: x must have rank 4"),
    (lambda: pb.conv2d(X, np.ones((2, 2, 2))), ShapeError, r"conv2d: filter must have rank 4, got shape \(2, 2, 2\)"),
    (lambda: pb.conv2d(X, np.ones((2, 2, 5, 3))), ShapeError, r"conv2d: x has 2 channels but filter.*has 5"),
    (lambda: pb.conv2d(X, F, 1, "valid", "NCHW"), ShapeError, r"conv2d: x has 4 channels but filter.*has 2"),
    (lambda: pb.conv2d(X, F, 0), ArgumentError, r"conv2d: strides must be a positive integer, or 2 of them.*got 0"),
    (lambda: pb.conv2d(X, F, [1, -2]), ArgumentError, r"conv2d: strides .*got \(1, -2\)"),
    (lambda: pb.conv2d(X, F, [1, 1, 1]), ArgumentError, r"conv2d: strides .*got \(1, 1, 1\)"),
    (lambda: pb.conv2d(X, F, 1.5), ArgumentError, r"conv2d: strides .*got 1.5"),
    (lambda: pb.conv2d(X, F, 1, "valid", "NHWC", 0), ArgumentError, r"conv2d: dilations .*got 0"),
    (lambda: pb.conv2d(X, F, 2, "valid", "NHWC", 2), ArgumentError, r"conv2d: either strides or dilations must be 1"),
    (lambda: pb.conv2d(X, F, 1, "full"), ArgumentError, r"conv2d: pad must be 'same', 'valid', .*got 'full'"),
    (lambda: pb.conv2d(X, F, 1, -1), ArgumentError, r"conv2d: pad must be .*got -1"),
    (lambda: pb.conv2d(X, F, 1, [[0, 2.1], [1, 1]]), ArgumentError, r"conv2d: pad must be .*got .*2.1"),
    (lambda: pb.conv2d(X, F, 1, np.inf), ArgumentError, r"conv2d: pad must be .*got inf"),
    (lambda: pb.conv2d(X, F, 1, [[1, 1], [0, 0], [0, 0], [0, 0]]), ArgumentError, r"conv2d: pad must be .*batch"),
    (lambda: pb.conv2d(X, F, 1, "valid", "HWC"), ArgumentError, r"conv2d: data_format must be 'NHWC' or 'NCHW'"),
    (lambda: pb.conv2d(X, F, 1, "same", "NHWC", 1, "ceil"), ArgumentError, r"with dim_rounding_mode 'ceil' pad must"),
    (lambda: pb.conv2d(X, F, 1, 0, "NHWC", 1, "up"), ArgumentError, r"dim_rounding_mode must be 'floor', .*'up'"),
    (lambda: pb.conv2d(X, np.ones((5, 2, 2, 1))), ShapeError, r"a window of \(5, 2\) does not fit into \(4, 4\)"),
    (lambda: pb.conv1d(X, np.ones((2, 2, 1))), ShapeError, r"conv1d: x must have rank 3"),
    (lambda: pb.conv3d(X, np.ones((2, 2, 2, 2))), ShapeError, r"conv3d: filter must have rank 5"),
    (lambda: pb.depthwise_conv2d(X, np.ones((2, 2, 1, 3))), ShapeError, r"depthwise_conv2d: x has 2 channels"),
    (lambda: pb.separable_conv2d(X, np.ones((2, 2, 2, 1)), F), ShapeError, r"separable_conv2d: pointwise_filter"),
    (lambda: pb.conv2d_transpose(X, F, [1, 5, 5, 2]), ShapeError, r"conv2d_transpose: x has 2 channels but filter"),
    (lambda: pb.conv2d_transpose(X, np.ones((2, 2, 3, 2)), [1, 9, 5, 3]), ShapeError, r"comes from x of \(1, 8, 4"),
    (lambda: pb.conv2d_transpose(X, np.ones((2, 2, 3, 2)), [5, 5, 3]), ShapeError, r"output_shape must have as many"),
    (lambda: pb.conv2d_transpose(X, np.ones((2, 2, 3, 2)), 5), ArgumentError, r"output_shape must be a list"),
    (lambda: pb.fused.conv2d(X, F, activation="gelu"), ArgumentError, r"fused.conv2d: activation must be one of"),
    (lambda: pb.fused.mat_mul(np.eye(2), np.eye(2), activation="prelu"), ArgumentError, r"needs prelu_activation_w"),
])  # fmt: skip
def test_convolution_bad_input_raises(call: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(("count", "space"), [(0, 4), (2, 128)])
def test_vmap_over_images_and_filters(count: int, space: int) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(count, 1, space, space, 8)), rng.normal(size=(count, 3, 3, 8, 2))
    f = lambda x, w: pb.conv2d(x, w, 1, "same")
    made = pb.vmap(f)(x, w)
    assert made.shape == (count, 1, space, space, 2)
    for z, a, b in zip(made, x, w, strict=True):
        np.testing.assert_allclose(z, f(a, b), 1e-9, 1e-12)


def test_convolution_without_strides_has_strides_of_one() -> None:
    x, w = np.arange(32.0).reshape(1, 4, 4, 2), np.arange(16.0).reshape(2, 2, 2, 2)
    np.testing.assert_array_equal(pb.conv2d(x, w, None, "same"), pb.conv2d(x, w, 1, "same"))
