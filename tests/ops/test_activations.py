"""Activations: stable for large arguments, right at their kinks, to second order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import pullback as pb
from pullback.errors import ArgumentError

INF, NAN = np.inf, np.nan
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
FLOATS = [np.float32, np.float64]
SMOOTH = {
    "sigmoid": special.expit,
    "log_sigmoid": special.log_expit,
    "softplus": lambda x: np.logaddexp(x, 0),
    "swish": lambda x: x * special.expit(x),
    "gelu": lambda x: x * special.ndtr(x),
}
BENT = {  # value, derivative
    "relu": (lambda x: np.maximum(x, 0), lambda x: x > 0),
    "relu6": (lambda x: np.clip(x, 0, 6), lambda x: (x > 0) & (x <= 6)),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.2 * x), lambda x: np.where(x > 0, 1, 0.2)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), lambda x: np.where(x > 0, 1, np.exp(x))),
    "selu": (
        lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x)),
        lambda x: SCALE * np.where(x > 0, 1, ALPHA * np.exp(x)),
    ),
    "step": (lambda x: x > 0, lambda x: 0 * x),
}


def tolerance(dtype):
    return {"rtol": 3e-6 if dtype == np.float32 else 1e-12, "atol": 1e-6 if dtype == np.float32 else 1e-14}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BENT)
def test_piecewise_linear_activations(name, dtype):
    f, (reference, derivative) = getattr(pb, name), BENT[name]
    x = np.linspace(-8, 8, 34, dtype=dtype)
    frozen = x.copy()
    frozen.flags.writeable = False
    big = np.linspace(-8, 8, 70_000, dtype=dtype)
    for v in (x, x[::-3], x.reshape(2, 17).T, frozen, x[:0].reshape(0, 2), x[3], x[30], big):
        value, grad = pb.value_and_grad(f)(v)
        wide = np.asarray(v, float)
        np.testing.assert_allclose(value, reference(wide), **tolerance(dtype))
        np.testing.assert_allclose(grad, derivative(wide), **tolerance(dtype))
        assert value.dtype == grad.dtype == f(v).dtype == dtype
        assert value.shape == grad.shape == v.shape


@pytest.mark.parametrize(
    ("name", "at", "value", "grad"),
    [
        ("relu", [0.0, -0.0, INF, -INF, NAN], [0, 0, INF, 0, NAN], [0, 0, 1, 0, NAN]),
        ("relu6", [0.0, 6.0, INF, -INF], [0, 6, 6, 0], [0, 1, 0, 0]),
        ("leaky_relu", [0.0, INF, -INF, NAN], [0, INF, -INF, NAN], [0.2, 1, 0.2, 0.2]),
        ("elu", [0.0, INF, -INF, NAN], [0, INF, -1, NAN], [1, 1, 0, NAN]),
        ("selu", [INF, -INF, NAN], [INF, -SCALE * ALPHA, NAN], [SCALE, 0, NAN]),
        ("step", [0.0, INF, -INF, NAN], [0, 1, 0, NAN], [0, 0, 0, 0]),
        ("sigmoid", [0.0, 1e4, -1e4, INF, -INF, NAN], [0.5, 1, 0, 1, 0, NAN], [0.25, 0, 0, 0, 0, NAN]),
        ("softplus", [0.0, 1e4, -1e4, INF, -INF], [math.log(2), 1e4, 0, INF, 0], [0.5, 1, 0, 1, 0]),
        ("log_sigmoid", [0.0, 1e4, -1e4, INF, -INF], [-math.log(2), 0, -1e4, 0, -INF], [0.5, 0, 1, 0, 1]),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_at_extreme_points(name, at, value, grad, dtype):
    f, x = getattr(pb, name), np.array(at, dtype)
    got = pb.value_and_grad(f)(x)
    np.testing.assert_allclose(got.value, value, rtol=1e-6)
    np.testing.assert_allclose(got.grad, grad, rtol=1e-6)
    np.testing.assert_allclose([pb.grad(f)(v) for v in x], grad, rtol=1e-6)
    large = pb.grad(f)(np.tile(x, 10_000))  # computed in other ways than small arrays
    np.testing.assert_allclose(large, np.tile(np.float64(grad), 10_000), rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_activations_second_order(name, dtype):
    f, x = getattr(pb, name), np.linspace(-30, 30, 41, dtype=dtype)
    wide, h = x.astype(float), 1e-4
    ref = SMOOTH[name]
    value, grad = pb.value_and_grad(f)(x)
    second = pb.grad(lambda x: pb.grad(f)(x).sum())(x)
    np.testing.assert_allclose(
        value, ref(wide), rtol=3e-5 if name == "gelu" else 2e-6, atol=1e-6 if name == "gelu" else 0
    )
    np.testing.assert_allclose(grad, (ref(wide + h) - ref(wide - h)) / (2 * h), atol=2e-6)
    np.testing.assert_allclose(second, (ref(wide + h) - 2 * ref(wide) + ref(wide - h)) / h**2, atol=3e-6)
    assert value.dtype == grad.dtype == second.dtype == dtype


@pytest.mark.parametrize("name", [*SMOOTH, "relu", "elu", "selu", "leaky_relu", "softmax", "log_softmax"])
def test_activations_of_lists_numbers_and_integers(name):
    f = getattr(pb, name)
    want = f(np.array([1.0, -2.0]))
    assert isinstance(f([1, -2]), pb.Tensor)
    for got in (f([1, -2]), f(np.array([1, -2], np.int32)), getattr(pb.tensor([1.0, -2.0]), name)()):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    integers = np.array([1, -2], np.int32)
    grad = pb.grad(f)(integers)
    assert grad.dtype == (f(integers).dtype if f(integers).dtype.kind == "f" else np.float32)
    np.testing.assert_allclose(grad, pb.grad(f)(np.array([1.0, -2.0])), rtol=1e-5, atol=1e-7)


def test_sigmoid_of_integers_and_complex_numbers():
    y = pb.tensor(np.array([12, 20, 50]))
    want = special.expit([12.0, 20.0, 50.0])
    for x in (y, y + 0 * y, np.array([12, 20, 50])):
        np.testing.assert_allclose(np.asarray(pb.sigmoid(x)), want, rtol=1e-14)
    z = np.array([12 + 0.2j, -3 + 0.5j, 800 + 1j, -800 - 1j])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(pb.sigmoid(z), [*1 / (1 + np.exp(-z[:2])), 1, 0], rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "elu", "selu", "step", "softplus", "log_sigmoid"])
def test_relu_rejects_complex_numbers(name):
    with pytest.raises(ArgumentError, match=f"{name}: complex numbers have no order; take x.real or pb.abs"):
        getattr(pb, name)(np.array([1j]))
    with pytest.raises(ArgumentError, match="prelu: complex numbers have no order"):
        pb.prelu(np.array([1j]), 0.5)


def test_sigmoid_keeps_small_values():
    x = np.array([-700.0, -40.0])
    np.testing.assert_allclose(pb.sigmoid(x), np.exp(x), rtol=1e-14)


@pytest.mark.parametrize("alpha", [0, 0.01, 1, 2.5, -0.5])
def test_leaky_relu_slopes(alpha):
    x = np.array([-2.0, 0.0, 3.0, INF])
    with np.errstate(invalid="ignore"):
        value, grad = pb.value_and_grad(lambda x: pb.leaky_relu(x, alpha))(x)
    np.testing.assert_allclose(value, [-2 * alpha, 0, 3, INF])
    np.testing.assert_allclose(grad, [alpha, alpha, 1, 1])
    np.testing.assert_allclose(pb.step(x, alpha), [alpha, alpha, 1, 1])


def test_activation_parameter_none_means_default():
    x = np.array([-1.0, 2.0])
    for f in (pb.leaky_relu, pb.step, pb.softmax, pb.log_softmax):
        np.testing.assert_array_equal(f(x, None), f(x))
    assert pb.leaky_relu(x.astype(np.float32), np.float64(0.1)).dtype == np.float32


def test_prelu_gradient_of_slope():
    x, alpha = np.array([[-2.0, 0.0, 3.0], [1.0, -1.0, -4.0]]), np.array([0.5, 0.1, 2.0])
    value, (dx, da) = pb.value_and_grads(pb.prelu)([x, alpha])
    np.testing.assert_allclose(value, [[-1, 0, 3], [1, -0.1, -8]])
    np.testing.assert_allclose(dx, [[0.5, 0.1, 1], [1, 0.1, 2]])
    np.testing.assert_allclose(da, [-2, -1, -4])
    with np.errstate(invalid="ignore"):
        assert pb.prelu(np.array([0.0]), np.array([np.inf])) == 0


def test_gelu_approximate_by_name_raises():
    with pytest.raises(pb.errors.ArgumentError, match="gelu: approximate must be True"):
        pb.gelu(np.ones(2), approximate="none")


def test_gelu_approximate():
    x = np.linspace(-4, 4, 9)
    want = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(pb.gelu(x, approximate=True), want)
    np.testing.assert_allclose(pb.gelu(x, True), pb.gelu(x), atol=5e-4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), -1), ((2, 3), -1), ((2, 3), 0), ((2, 3, 4), 1), ((), -1), ((0, 3), -1)]
)
def test_softmax_and_log_softmax(shape, axis, dtype):
    generator = np.random.default_rng(0)
    x, dy = generator.normal(size=shape).astype(dtype), generator.normal(size=shape).astype(dtype)
    for f, reference in ((pb.softmax, special.softmax), (pb.log_softmax, special.log_softmax)):
        value, grad = pb.value_and_grad(lambda x: f(x, axis))(x, dy)  # noqa: B023
        want = reference(np.asarray(x, float), axis=axis) if x.size else x
        np.testing.assert_allclose(value, want, rtol=2e-5, atol=1e-6)
        p, g = np.exp(want) if f is pb.log_softmax else want, np.asarray(dy, float)
        jacobian = p * (g - (p * g).sum(axis, keepdims=True)) if shape else 0 * g
        if f is pb.log_softmax:
            jacobian = g - p * g.sum(axis, keepdims=True) if shape else 0 * g
        np.testing.assert_allclose(grad, jacobian, rtol=2e-5, atol=1e-6)
        tangent = pb.jvp(lambda x: f(x, axis), [x], [dy])[1]  # noqa: B023
        np.testing.assert_allclose((tangent * dy).sum(), (grad * dy).sum(), rtol=1e-4, atol=1e-5)
        assert value.dtype == grad.dtype == dtype


@pytest.mark.parametrize("f", [pb.softmax, pb.log_softmax])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8"])
def test_softmax_of_integers(f, dtype):
    x = np.array([1, 0, 1, 0], bool) if dtype == "bool" else np.array([100, 1, 99, 3], dtype)
    np.testing.assert_allclose(f(x), f(x.astype(float)))


@pytest.mark.parametrize("f", [pb.softmax, pb.log_softmax])
def test_softmax_overflow_and_second_order(f):
    np.testing.assert_allclose(pb.softmax(np.array([1e4, 1e4, -1e4])), [0.5, 0.5, 0])
    np.testing.assert_allclose(pb.log_softmax(np.array([1e4, -1e4])), [0, -2e4])
    x, v, h = np.array([0.3, -0.8, 1.1]), np.array([1.0, 2.0, -1.0]), 1e-5
    slope = pb.grad(lambda x: (f(x) ** 2).sum())
    second = pb.grad(lambda x: (slope(x) * v).sum())(x)
    steps = [(slope(x + e) - slope(x - e)) @ v / (2 * h) for e in h * np.eye(3)]
    np.testing.assert_allclose(second, steps, rtol=1e-6)


def test_softmax_axis_out_of_range():
    x = np.ones((2, 3))
    np.testing.assert_allclose(pb.softmax(x, axis=0), np.full((2, 3), 0.5))
    for f in (pb.softmax, pb.log_softmax):
        with pytest.raises(pb.errors.ShapeError, match=f"{f.__name__}: axis 2 is out of range for rank 2"):
            f(x, 2)


def test_activations_large_arrays():
    x = np.linspace(-5, 5, 60_000, dtype=np.float32).reshape(300, 200)
    for f in (pb.softmax, pb.log_softmax, pb.gelu, pb.swish, pb.softplus, pb.prelu):
        more = [np.float32(0.25)] if f is pb.prelu else []
        value, grad = pb.value_and_grad(lambda x: f(x, *more))(x)  # noqa: B023
        part = pb.value_and_grad(lambda x: f(x, *more))(x[:2])  # noqa: B023
        np.testing.assert_allclose(value[:2], part.value, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(grad[:2], part.grad, rtol=1e-4, atol=1e-6)
        assert value.dtype == grad.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_gradient_at_infinity(dtype: type) -> None:
    slope = pb.grad(lambda x: np.sum(pb.gelu(x)))
    x = np.array([np.inf, -np.inf, 1e30, -1e30, 0], dtype)
    with np.errstate(invalid="ignore"):
        for f in (slope, pb.compile(slope), pb.vmap(pb.grad(pb.gelu))):
            np.testing.assert_array_equal(f(x), [1, 0, 1, 0, 0.5])
