"""Arithmetic, powers, rounding, trigonometry and erf at the points where they are hard."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import pullback as pb

INF, NAN = np.inf, np.nan
FLOATS = [np.float32, np.float64]
UNARY = {  # op: (the same in NumPy, its derivative, where it is defined)
    "neg": (np.negative, lambda x: -np.ones_like(x), (-2, 2)),
    "abs": (np.abs, np.sign, (-2, 2)),
    "square": (np.square, lambda x: 2 * x, (-2, 2)),
    "cube": (lambda x: x**3, lambda x: 3 * x**2, (-2, 2)),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x), (0.1, 3)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: -0.5 * x**-1.5, (0.1, 3)),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x**2, (0.1, 3)),
    "exp": (np.exp, np.exp, (-2, 2)),
    "expm1": (np.expm1, np.exp, (-2, 2)),
    "log": (np.log, lambda x: 1 / x, (0.1, 3)),
    "log1p": (np.log1p, lambda x: 1 / (1 + x), (-0.5, 3)),
    "sin": (np.sin, np.cos, (-4, 4)),
    "cos": (np.cos, lambda x: -np.sin(x), (-4, 4)),
    "tan": (np.tan, lambda x: 1 / np.cos(x) ** 2, (-1, 1)),
    "asin": (np.arcsin, lambda x: 1 / np.sqrt(1 - x**2), (-0.9, 0.9)),
    "acos": (np.arccos, lambda x: -1 / np.sqrt(1 - x**2), (-0.9, 0.9)),
    "atan": (np.arctan, lambda x: 1 / (1 + x**2), (-4, 4)),
    "sinh": (np.sinh, np.cosh, (-2, 2)),
    "cosh": (np.cosh, np.sinh, (-2, 2)),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, (-2, 2)),
    "asinh": (np.arcsinh, lambda x: 1 / np.sqrt(1 + x**2), (-4, 4)),
    "acosh": (np.arccosh, lambda x: 1 / np.sqrt(x**2 - 1), (1.1, 4)),
    "atanh": (np.arctanh, lambda x: 1 / (1 - x**2), (-0.9, 0.9)),
    "erf": (special.erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)), (-3, 3)),
    "clone": (np.copy, np.ones_like, (-2, 2)),
    "sign": (np.sign, np.zeros_like, (-2, 2)),
    "round": (np.rint, np.zeros_like, (-3, 3)),
    "ceil": (np.ceil, np.zeros_like, (-3, 3)),
    "floor": (np.floor, np.zeros_like, (-3, 3)),
}
BINARY = {
    "add": (np.add, lambda x, y: (1 + 0 * x, 1 + 0 * y)),
    "sub": (np.subtract, lambda x, y: (1 + 0 * x, -1 + 0 * y)),
    "mul": (np.multiply, lambda x, y: (y, x)),
    "div": (np.divide, lambda x, y: (1 / y, -x / y**2)),
    "div_no_nan": (np.divide, lambda x, y: (1 / y, -x / y**2)),
    "pow": (np.power, lambda x, y: (y * x ** (y - 1), x**y * np.log(x))),
    "squared_difference": (lambda x, y: (x - y) ** 2, lambda x, y: (2 * (x - y), 2 * (y - x))),
    "mod": (np.mod, lambda x, y: (1 + 0 * x, -np.floor(x / y))),
    "floor_div": (np.floor_divide, lambda x, y: (0 * x, 0 * y)),
    "maximum": (np.maximum, lambda x, y: (1.0 * (x > y), 1.0 * (y > x))),
    "minimum": (np.minimum, lambda x, y: (1.0 * (x < y), 1.0 * (y < x))),
    "atan2": (np.arctan2, lambda x, y: (y / (x**2 + y**2), -x / (x**2 + y**2))),
}


def close(dtype):
    return {"rtol": 3e-6 if dtype == np.float32 else 1e-12, "atol": 1e-6 if dtype == np.float32 else 1e-13}


def arrangements(low, high, dtype):
    """The same kind of numbers in memory laid out in every way."""
    x = np.linspace(low, high, 24, dtype=dtype)
    frozen = x.copy()
    frozen.flags.writeable = False
    big = np.linspace(low, high, 70_000, dtype=dtype)
    return [x, x[::-2], x.reshape(4, 6).T, frozen, x[:0].reshape(0, 3), x[5], np.array(x[7]), big]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_unary_values_and_derivatives(name, dtype):
    reference, derivative, (low, high) = UNARY[name]
    f = getattr(pb, name)
    for x in arrangements(low, high, dtype):
        before = np.array(x)
        value, grad = pb.value_and_grad(f)(x)
        wide = np.asarray(x, np.float64)
        for got, want in ((value, reference(wide)), (f(x), reference(wide)), (grad, derivative(wide))):
            assert got.dtype == dtype
            assert got.shape == x.shape
            np.testing.assert_allclose(got, want, **close(dtype))
        np.testing.assert_array_equal(x, before)
        assert isinstance(f(pb.tensor(x)), pb.Tensor)
        assert getattr(pb.tensor(x), name)().dtype == dtype


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_binary_values_and_derivatives(name, dtype):
    reference, derivative = BINARY[name]
    f = getattr(pb, name)
    for x, y in zip(arrangements(0.5, 2, dtype), arrangements(1.9, 0.6, dtype), strict=True):
        want = reference(np.asarray(x, np.float64), np.asarray(y, np.float64))
        dx, dy = derivative(np.asarray(x, np.float64), np.asarray(y, np.float64))
        value, grads = pb.value_and_grads(f)([x, y])
        (left,) = pb.grads(lambda x: f(x, y))([x])  # noqa: B023
        (right,) = pb.grads(lambda y: f(x, y))([y])  # noqa: B023
        for got, wanted in ((value, want), (f(x, y), want), *zip((*grads, left, right), (dx, dy, dx, dy), strict=True)):
            assert got.dtype == dtype
            assert got.shape == x.shape
            np.testing.assert_allclose(got, wanted, **close(dtype))


@pytest.mark.parametrize("name", BINARY)
def test_broadcast_gradients(name):
    x, y = np.linspace(0.55, 1.9, 6).reshape(2, 1, 3), np.linspace(0.6, 2.0, 4).reshape(4, 1)
    dx, dy = pb.grads(getattr(pb, name))([x, y])
    want = BINARY[name][1](*np.broadcast_arrays(x, y))
    np.testing.assert_allclose(dx, want[0].sum(1, keepdims=True), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dy, want[1].sum((0, 2))[:, None], rtol=1e-12, atol=1e-13)
    with pytest.raises(pb.errors.ShapeError, match=rf"{name}: shapes \(2,\) and \(3,\) do not broadcast"):
        getattr(pb, name)(np.ones(2), np.ones(3))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("other", [np.int32, np.bool_, np.int64])
def test_integers_do_not_widen_floats(name, other):
    f = getattr(pb, name)
    x, y = np.array([1.5, 2.5], np.float32), np.array([1, 1]).astype(other)
    for first, second in ((x, y), (y, x)):
        value, grads = pb.value_and_grads(f)([first, second])
        assert value.dtype == np.float32
        assert [g.dtype for g in grads] == [np.float32, np.float32]
        wide = [np.asarray(v, np.float64) for v in (first, second)]
        np.testing.assert_allclose(value, BINARY[name][0](*wide), rtol=1e-6)
        for got, want in zip(grads, BINARY[name][1](*wide), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", BINARY)
def test_python_numbers_are_weak_on_both_sides(name):
    f, x = getattr(pb, name), np.array([1.5, 0.7], np.float32)
    for g in (lambda x: f(x, 1.2), lambda x: f(1.2, x)):
        value, grad = pb.value_and_grad(g)(x)
        assert value.dtype == grad.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "x", "value", "grad"),
    [
        ("abs", [0.0, -0.0, -INF, NAN], [0, 0, INF, NAN], [0, 0, -1, NAN]),
        ("sign", [0.0, -3.0, INF, NAN], [0, -1, 1, 0], [0, 0, 0, 0]),
        ("sqrt", [0.0, INF, 4.0], [0, INF, 2], [INF, 0, 0.25]),
        ("square", [0.0, -INF], [0, INF], [0, -INF]),
        ("exp", [-INF, 0.0, INF], [0, 1, INF], [0, 1, INF]),
        ("log", [0.0, INF], [-INF, INF], [INF, 0]),
        ("log1p", [-1.0, 1e-30], [-INF, 1e-30], [INF, 1]),
        ("expm1", [-INF, 1e-30], [-1, 1e-30], [0, 1]),
        ("tanh", [-INF, 0.0, INF], [-1, 0, 1], [0, 1, 0]),
        ("asin", [-1.0, 0.0, 1.0], [-math.pi / 2, 0, math.pi / 2], [INF, 1, INF]),
        ("acos", [-1.0, 0.0, 1.0], [math.pi, math.pi / 2, 0], [-INF, -1, -INF]),
        ("acosh", [1.0, 1e100, -1.0], [0, 230.95165647, NAN], [INF, 1e-100, INF]),
        ("asinh", [0.0, 1e300], [0, 691.468675079], [1, 1e-300]),
        ("atanh", [-1.0, 1.0], [-INF, INF], [INF, INF]),
        ("atan", [INF, 0.0], [math.pi / 2, 0], [0, 1]),
        ("reciprocal", [INF, -2.0], [0, -0.5], [0, -0.25]),
        ("rsqrt", [INF, 4.0], [0, 0.5], [0, -0.0625]),
        ("round", [0.5, 1.5, 2.5, -0.5, -1.5, INF, NAN], [0, 2, 2, 0, -2, INF, NAN], [0] * 7),
        ("floor", [-0.5, 1.0, INF], [-1, 1, INF], [0, 0, 0]),
        ("ceil", [-0.5, 1.0, -INF], [0, 1, -INF], [0, 0, 0]),
        ("erf", [0.0, 6.0, INF, -INF, NAN], [0, 1, 1, -1, NAN], [2 / math.sqrt(math.pi), 2.617e-16, 0, 0, NAN]),
    ],
)
def test_unary_extreme_points(name, x, value, grad):
    with np.errstate(all="ignore"):
        got = pb.value_and_grad(getattr(pb, name))(np.array(x))
        lone = [pb.value_and_grad(getattr(pb, name))(v) for v in x]
    np.testing.assert_allclose(got.value, value, rtol=1e-9)
    np.testing.assert_allclose(got.grad, grad, rtol=1e-3, atol=1e-300)
    np.testing.assert_allclose(lone, np.stack([value, grad], 1), rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "x", "y", "value", "dx", "dy"),
    [
        ("maximum", [1.0, 2.0, INF], [1.0, 3.0, INF], [1, 3, INF], [0.5, 0, 0.5], [0.5, 1, 0.5]),
        ("minimum", [1.0, 2.0, -INF], [1.0, 3.0, -INF], [1, 2, -INF], [0.5, 1, 0.5], [0.5, 0, 0.5]),
        ("div_no_nan", [1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [0, 0, 1.5], [0, 0, 0.5], [0, 0, -0.75]),
        ("mod", [5.0, -5.0, 5.0, -5.0], [3.0, 3.0, -3.0, -3.0], [2, 1, -1, -2], [1, 1, 1, 1], [-1, 2, 2, -1]),
        ("floor_div", [5.0, -5.0], [3.0, 3.0], [1, -2], [0, 0], [0, 0]),
        ("squared_difference", [3.0, 1.0], [3.0, 2.0], [0, 1], [0, -2], [0, 2]),
        ("atan2", [1e-200, -1e200, 0.0], [1e-200, 1e200, -1.0], [math.pi / 4, -math.pi / 4, math.pi],
         [5e199, 5e-201, -1], [-5e199, 5e-201, 0]),
        # powers: the slope of x**0 is 0 even at 0; the exponent of a base that is not positive gets 0
        ("pow", [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.5], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]),
        ("pow", [-2.0, -2.0, -2.0], [2.0, 3.0, 0.0], [4, -8, 1], [-4, 12, 0], [0, 0, 0]),
        ("pow", [INF, INF, 2.0], [0.0, 1.0, -1.0], [1, INF, 0.5], [0, 1, -0.25], [INF, INF, 0.5 * math.log(2)]),
    ],
)  # fmt: skip
def test_binary_extreme_points(name, x, y, value, dx, dy):
    f, x, y = getattr(pb, name), np.array(x), np.array(y)
    with np.errstate(invalid="ignore"):
        got = pb.value_and_grads(f)([x, y])
        lone = [pb.value_and_grads(f)([a, b]) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(got.value, value)
    np.testing.assert_allclose(got.grads, [dx, dy])
    np.testing.assert_allclose([v for v, _ in lone], value)
    np.testing.assert_allclose([g for _, g in lone], np.stack([dx, dy], 1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 0.5, -1, -2, 2.5, True])
def test_power_second_order(n, dtype):
    x = np.array([0.5, 1.0, 2.0], dtype)
    first = pb.grad(lambda x: x**n)
    second = pb.grad(lambda x: first(x).sum(), unconnected="zero")
    wide = x.astype(float)
    np.testing.assert_allclose(pb.pow(x, n), wide**n, rtol=1e-6)
    np.testing.assert_allclose(first(x), n * wide ** (n - 1), rtol=1e-6)
    np.testing.assert_allclose(second(x), n * (n - 1) * wide ** (n - 2.0), rtol=1e-6, atol=1e-12)
    assert first(x).dtype == second(x).dtype == dtype


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_power_of_zero_derivatives(n):
    f, values = lambda x: x**n, []
    for _ in range(4):
        values.append(float(f(pb.tensor(np.float64(0)))))
        f = pb.grad(f, unconnected="zero")
    assert values == [math.factorial(n) if k == n else 0 for k in range(4)]


def test_power_of_zero_mixed_derivative():
    x, y = np.array([2.0, 0.5]), np.zeros(2)
    slope = pb.grad(lambda y: pb.sum(pb.grads(pb.pow)([pb.tensor(x), y])[0]))  # d/dy of y * x ** (y - 1)
    np.testing.assert_allclose(slope(y), 1 / x)


def test_power_negative_base_gradient():
    dx, dn = pb.grads(lambda x, n: (x**n).sum())([np.array([-2.0, 3.0]), np.float64(3)])
    np.testing.assert_allclose(dx, [12, 27])
    np.testing.assert_allclose(dn, 27 * math.log(3))
    assert pb.grad(lambda n: 2.0**n)(3.0) == pytest.approx(8 * math.log(2))


def test_power_of_integers():
    x = np.array([2, 3], np.int32)
    assert pb.pow(x, np.array([3, 2], np.int32)).dtype == np.int32
    np.testing.assert_array_equal(pb.grad(lambda x: pb.pow(x, np.array([3, 0], np.int32)))(x), [12, 0])
    with pytest.raises(ValueError, match=r"pow: .*negative integer powers.*int32 and int32"):
        pb.pow(x, np.array([-1, 2], np.int32))


@pytest.mark.parametrize("name", ["neg", "abs", "square", "cube", "sign", "round", "ceil", "floor", "clone"])
def test_elementwise_ops_of_integers_that_return_integers(name):
    x = np.array([-2, 0, 3], np.int32)
    value, grad = pb.value_and_grad(getattr(pb, name))(x)
    assert value.dtype == np.int32
    np.testing.assert_array_equal(value, UNARY[name][0](x))
    assert grad.dtype == np.float32


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "reciprocal", "rsqrt", "erf"])
def test_elementwise_ops_of_integers_that_return_floats(name):
    x = np.array([1, 4], np.int32)
    value, grad = pb.value_and_grad(getattr(pb, name))(x)
    np.testing.assert_allclose(value, UNARY[name][0](x.astype(float)))
    np.testing.assert_allclose(grad, UNARY[name][1](x.astype(float)), rtol=1e-6)


def test_operators_of_tensors():
    x, y = pb.tensor(np.array([5, 6], np.int32)), np.array([3, 4], np.int32)
    assert [(x & y).tolist(), (x | y).tolist(), (x ^ y).tolist(), (~x).tolist()] == [[1, 4], [7, 6], [6, 2], [-6, -7]]
    assert [(y & x).tolist(), (7 & x).tolist(), (y % x).tolist(), (11 // x).tolist()] == [
        [1, 4],
        [5, 6],
        [3, 4],
        [2, 1],
    ]
    assert [(-x).tolist(), (+x).tolist(), abs(-x).tolist(), round(x / 4).tolist()] == [[-5, -6], [5, 6], [5, 6], [1, 2]]
    with pytest.raises(pb.errors.ArgumentError, match=r"bitwise_and: .*float32"):
        pb.tensor([1.0]) & 3


@pytest.mark.parametrize(
    "x", [np.linspace(-7, 7, 50_001), np.geomspace(1e-300, 10, 5_001), np.linspace(-0.9, 0.9, 999)]
)
def test_erf_precision(x):
    exact = np.array([*map(math.erf, x.tolist())])
    # Machine code is compared with the exact value, NumPy with SciPy, whose rational function it evaluates.
    error = np.minimum(abs(pb.erf(x) - exact), abs(pb.erf(x) - special.erf(x)))
    assert np.all(error <= 3e-16 * abs(exact))
    single = x.astype(np.float32)
    got, want = pb.erf(single), special.erf(single.astype(float))
    assert got.dtype == np.float32
    normal = np.abs(want) > 1e-37
    np.testing.assert_allclose(got[normal], want[normal], rtol=5e-7)
    assert np.abs(got).max() <= 1
    assert np.all(np.diff(pb.erf(np.array([0.999999, 1.0, 1.000001] * 100).reshape(100, 3)), axis=1) > 0)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.int64, 1e-15), (np.float16, 2e-3), (np.longdouble, 1e-15), (">f8", 1e-15)]
)
@pytest.mark.parametrize("end", [7.0, 0.9])
def test_erf_of_dtypes_without_machine_code(dtype, tolerance, end):
    x = np.linspace(-end, end, 20_001).reshape(3, -1).astype(dtype)
    z = pb.erf(x)
    assert z.dtype == (float if dtype is np.int64 else np.dtype(dtype))
    np.testing.assert_allclose(z.astype(float), special.erf(x.astype(float)), tolerance, 1e-300)
    assert np.abs(z).max() <= 1


def test_rounding_to_decimals():
    np.testing.assert_allclose(pb.round(np.array([1.26, 2.34]), 1), [1.3, 2.3])
    assert round(pb.tensor(np.float64(1.26)), 1).item() == 1.3


@pytest.mark.parametrize("dtype", FLOATS)
def test_clip(dtype):
    x = np.array([-2.0, -1.0, 0.5, 1.0, 3.0], dtype)
    value, grad = pb.value_and_grad(lambda x: pb.clip_by_value(x, -1, 1))(x)
    np.testing.assert_array_equal(value, [-1, -1, 0.5, 1, 1])
    np.testing.assert_array_equal(grad, [0, 1, 1, 1, 0])  # at a bound it still follows x
    assert value.dtype == grad.dtype == dtype
    np.testing.assert_array_equal(pb.grad(lambda x: x.clip(max=0.5))(x), [1, 1, 1, 0, 0])
    np.testing.assert_array_equal(pb.grad(lambda x: np.clip(x, 0, None))(x), [0, 0, 1, 1, 1])


def test_clip_gradients_of_bounds():
    x = np.array([-2.0, 0.5, 3.0])
    low, high = np.full(3, -1.0), np.float64(1.0)
    dx, dlow, dhigh = pb.grads(pb.clip_by_value)([x, low, high])
    np.testing.assert_array_equal(dx, [0, 1, 0])
    np.testing.assert_array_equal(dlow, [1, 0, 0])
    assert dhigh == 1
    crossed = pb.value_and_grads(pb.clip_by_value)([0.0, 2.0, 1.0])
    assert crossed == (1.0, [0.0, 0.0, 1.0])
    whole = pb.clip(np.array([-5, 5], np.int32), min=0)
    assert whole.tolist() == [0, 5]
    assert whole.dtype == np.int32


def test_clone():
    x = np.array([1.0, 2.0])
    assert pb.clone(x) is not x
    t = pb.tensor(x)
    assert t.clone() is not t
    np.testing.assert_array_equal(pb.grad(lambda x: pb.clone(x) * pb.identity(x))(x), 2 * x)
    assert pb.clone([True, False]).dtype == bool


def test_cast_gradient_dtype():
    seen = []

    def f(x):
        wide = pb.cast(x, "float64")
        seen.append(wide.dtype)
        return (wide * wide).sum()

    x = np.array([1.0, 2.0], np.float32)
    grad = pb.grad(f)(x)
    assert seen == [np.float64]
    assert grad.dtype == np.float32
    np.testing.assert_array_equal(grad, 2 * x)
    assert pb.grad(lambda x: pb.grad(f)(x).sum())(x).tolist() == [2, 2]
    assert pb.grad(lambda x: x.astype(np.float32) ** 2)(np.array([3, 4])).tolist() == [6, 8]
    assert np.astype(pb.tensor(x), np.float64).dtype == np.float64


@pytest.mark.parametrize("dtype", ["int32", "bool", np.int64])
def test_cast_to_integers_has_no_derivative(dtype):
    assert pb.cast(pb.tensor([0.0, 1.7, -1.7]), dtype).dtype == np.dtype(dtype)
    with pytest.raises(pb.errors.UnconnectedError, match=r"The path was cut .*cast"):
        pb.grad(lambda x: pb.cast(pb.cast(x, dtype), "float32").sum())(np.ones(2, np.float32))


def test_cast_bad_dtype_raises():
    with pytest.raises(pb.errors.ArgumentError, match="cast: 'float33' is not a dtype; try 'float32'"):
        pb.cast([1.0], "float33")
    assert pb.cast([1, 2], "int32").tolist() == [1, 2]
    assert [t.dtype for t in (pb.to_float([True]), pb.to_int([1.5]), pb.to_bool([1.5]))] == [np.float32, np.int32, bool]


def test_add_n():
    xs = [np.array([1.0, 2.0]), np.array([[3.0], [4.0]]), np.float64(5)]
    value, grads = pb.value_and_grads(lambda *x: pb.add_n(x))(xs)
    np.testing.assert_array_equal(value, xs[0] + xs[1] + xs[2])
    assert [np.asarray(g).tolist() for g in grads] == [[2, 2], [[2], [2]], 4]
    assert pb.add_n([[1, 2]]).tolist() == [1, 2]
    with pytest.raises(pb.errors.ArgumentError, match="add_n: tensors must be a list of tensors, got Tensor"):
        pb.add_n(pb.tensor([1.0]))
    with pytest.raises(pb.errors.ArgumentError, match="add_n: tensors is an empty list"):
        pb.add_n([])


@pytest.mark.parametrize(
    ("name", "other"),
    [("sub", "subtract"), ("mul", "multiply"), ("div", "divide"), ("div", "true_divide"), ("pow", "power"),
     ("neg", "negative"), ("abs", "absolute"), ("mod", "remainder"), ("floor_div", "floor_divide"), ("asin", "arcsin"),
     ("acos", "arccos"), ("atan", "arctan"), ("atan2", "arctan2"), ("asinh", "arcsinh"), ("acosh", "arccosh"),
     ("atanh", "arctanh"), ("clone", "identity"), ("cast", "astype")],
)  # fmt: skip
def test_elementwise_numpy_aliases(name, other):
    assert getattr(pb, other) is getattr(pb, name)
    assert hasattr(pb.Tensor, other)


@pytest.mark.parametrize("f", [pb.maximum, pb.pow, pb.atan2, pb.div_no_nan, pb.clip_by_value])
def test_jvp_with_plain_operands(f):
    x, more = np.array([0.3, 0.8, 1.6]), [0.5] if f is not pb.clip_by_value else [0.5, 1.0]
    value, tangent = pb.jvp(lambda x: f(x, *more), [x], [np.ones(3)])
    want = pb.value_and_grad(lambda x: f(x, *more))(x)
    np.testing.assert_allclose(value, want.value)
    np.testing.assert_allclose(tangent, want.grad)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [0, 1, 4, 5, -3, -4, 7.0, 2.0**30, 2.5, np.inf])
def test_power_of_negative_and_positive_bases_matches_numpy(n: float, dtype: str) -> None:
    x = np.concatenate([[0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1], np.linspace(-3, 3, 50)]).astype(dtype)
    with np.errstate(all="ignore"):
        got, want = pb.pow(x, n), np.power(x, n)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("n", [2, 3, 0.5, -1, 4, 2.5])
def test_power_of_large_result_and_its_gradient(n: float) -> None:
    x = np.linspace(0.5, 2.0, 140_000)
    value, grad = pb.value_and_grad(lambda x: np.sum((x * 2.0) ** n))(x)
    np.testing.assert_allclose(value, np.sum((2 * x) ** n), rtol=1e-12)
    np.testing.assert_allclose(grad, 2 * n * (2 * x) ** (n - 1), rtol=1e-12)


@pytest.mark.parametrize("exponent", [2, np.array(2.0), np.float64(3.0)])
def test_power_of_large_array_matches_numpy(exponent):
    x = np.linspace(-2.0, 2.0, 100_000)
    np.testing.assert_allclose(np.power(pb.tensor(x), exponent), np.power(x, exponent), rtol=1e-14)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(np.power(x, exponent)))(x), exponent * x ** (exponent - 1))
