"""Reductions and norms where they are hard: ties, zeros, infinities, empty arrays, every way to name axes."""

from __future__ import annotations

import numpy as np
import pytest
from differences import expect_derivatives
from scipy import special

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

INF, NAN = np.inf, np.nan
SMOOTH = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "var": np.var, "std": np.std,
    "log_sum_exp": special.logsumexp, "euclidean_norm": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
}  # fmt: skip
FLAT = {"all": np.all, "any": np.any, "count_nonzero": np.count_nonzero}
AXES = [None, 0, -1, (0, 2), [1], [-1, 0], ()]
X = np.random.default_rng(0).normal(size=(2, 3, 4))


def tuple_of(axis):
    return tuple(axis) if isinstance(axis, list) else axis


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", SMOOTH | FLAT)
def test_reductions_over_axes_match_numpy(name, axis, keepdims):
    f, numpys = getattr(pb, name), (SMOOTH | FLAT)[name]
    for x in (X, X.transpose(2, 0, 1), X[:, ::-2], np.asfortranarray(X)):
        want = numpys(x, axis=tuple_of(axis), keepdims=keepdims)
        for got in (
            f(x, axis, keepdims),
            f(pb.tensor(x), axis=axis, keepdims=keepdims),
            getattr(pb.tensor(x), name)(axis, keepdims),
        ):
            assert got.shape == np.shape(want)
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", SMOOTH)
def test_reduction_derivatives_over_axes(name, axis):
    f = getattr(pb, name)
    if name == "std" and axis == ():
        return  # zero everywhere, a kink
    expect_derivatives(lambda x: pb.sum(pb.square(f(x, axis)) + pb.sin(f(x, axis))), X)


@pytest.mark.parametrize("name", SMOOTH)
def test_reductions_of_read_only_array(name):
    x = X.copy()
    x.flags.writeable = False
    pb.grad(lambda x: pb.sum(getattr(pb, name)(x, 1)))(x)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
@pytest.mark.parametrize("name", SMOOTH)
def test_reduction_dtypes(name, dtype):
    x = np.array([[1, 2, 3], [3, 1, 1]]).astype(dtype)
    f = getattr(pb, name)
    z = f(pb.tensor(x), 1)
    want = SMOOTH[name](x.astype(float) if name in ("log_sum_exp", "euclidean_norm") else x, axis=1)
    np.testing.assert_allclose(z.numpy(), want, rtol=1e-6)
    gradient = pb.grad(lambda x: pb.sum(f(x, 1)))(x)
    if dtype in (np.float32, np.float64):
        assert z.dtype == dtype
        assert gradient.dtype == dtype
        assert pb.jvp(lambda x: f(x, 1), [x], [x])[1].dtype == dtype
    else:
        assert (z.dtype.kind == "f") is (name not in ("sum", "prod", "max", "min"))
        assert gradient.dtype == (z.dtype if z.dtype.kind == "f" else np.float32)
    exact = pb.grad(lambda x: pb.sum(f(x, 1)))(x.astype(float))
    np.testing.assert_allclose(gradient, exact, rtol=1e-5, atol=1e-7)


def test_mean_of_float16_does_not_overflow():
    assert pb.mean(np.full(70000, 2, np.float16)) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("sum", 0), ("prod", 1), ("euclidean_norm", 0), ("log_sum_exp", -INF), ("all", True), ("any", False)],
)
def test_empty_reductions(name, value):
    f = getattr(pb, name)
    assert f(np.zeros(0)) == value
    np.testing.assert_array_equal(f(np.zeros((0, 2)), 0), [value, value])
    assert f(np.zeros((0, 2)), 1).shape == (0,)
    if name not in ("all", "any"):
        assert pb.grad(f)(np.zeros(0)).shape == (0,)
        assert pb.grad(lambda x: f(x, 0))(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("name", ["max", "min"])
def test_empty_extremes_raise(name):
    with pytest.raises(ShapeError, match=rf"{name}: zero-size.*shapes \(0, 3\).*axis=0"):
        getattr(pb, name)(np.zeros((0, 3)), 0)


@pytest.mark.parametrize("name", SMOOTH)
def test_scalar_reductions(name):
    f, x = getattr(pb, name), 1.5
    slopes = {"var": 0, "std": 0}
    assert f(np.float64(x)) == SMOOTH[name](np.float64(x))
    assert pb.grad(f)(x) == slopes.get(name, 1)


def test_reductions_of_lists_and_python_numbers():
    assert pb.sum([[1, 2], [3, 4]], [0, 1]).numpy() == 10
    assert pb.norm([3, 4]).numpy() == 5
    assert pb.norm(-3.0) == 3


# ---- products with zeros


@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([2.0, 3.0, 4.0], [12, 8, 6]),
        ([2.0, 0.0, 4.0], [0, 8, 0]),
        ([0.0, 0.0, 4.0], [0, 0, 0]),
        ([0.0], [1]),
        ([3.0, 0.0], [0, 3]),
        ([1e-200, 1e-200, 1e300], [1e100, 1e100, 0]),
        ([1e200, 1e200, 1e-300], [1e-100, 1e-100, INF]),
        ([0.0, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0], [30030, 0, 0, 0, 0, 0, 0]),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_prod_gradient(x, want):
    np.testing.assert_allclose(pb.grad(pb.prod)(np.array(x)), want)


def test_prod_third_order_with_zeros():
    x = np.array([[0.0, 2.0, 0.0, 3.0, 0.5], [1.0, 2.0, 0.0, -1.0, 4.0]])
    expect_derivatives(lambda x: pb.sum(pb.prod(x, 1)), x, order=3)
    expect_derivatives(lambda x: pb.sum(pb.prod(x, [0]) * x[0]), x, order=3)


def test_prod_mixed_derivative_with_zeros():
    def hessian(x):
        return np.array([pb.grad(lambda x, i=i: pb.grad(pb.prod)(x)[i])(x) for i in range(3)])

    np.testing.assert_allclose(hessian(np.array([0.0, 0.0, 5.0])), [[0, 5, 0], [5, 0, 0], [0, 0, 0]])


# ---- extremes


@pytest.mark.parametrize(
    ("x", "axis", "want"),
    [
        ([1.0, 3.0, 3.0, 2.0], None, [0, 0.5, 0.5, 0]),
        ([4.0, 4.0, 4.0, 4.0], None, [0.25] * 4),
        ([[1.0, 1.0], [0.0, 2.0]], 1, [[0.5, 0.5], [0, 1]]),
        ([[1.0, 2.0], [2.0, 0.0]], [0, 1], [[0, 0.5], [0.5, 0]]),
        ([INF, 1.0, INF], None, [0.5, 0, 0.5]),
        ([0.0, -0.0], None, [0.5, 0.5]),
    ],
)
def test_max_ties(x, axis, want):
    x = np.array(x)
    for dtype in (np.float32, np.float64):
        got = pb.grad(lambda x: pb.sum(pb.max(x, axis)))(x.astype(dtype))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(pb.grad(lambda x: pb.sum(pb.min(x, axis)))(-x.astype(dtype)), want)
    slopes = pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(pb.square(pb.max(x, axis))))(x)))(
        np.nan_to_num(x, posinf=9)
    )
    np.testing.assert_array_equal(slopes, 2 * np.array(want))


def test_max_of_nan():
    x = np.array([[1.0, NAN], [2.0, 1.0]])
    np.testing.assert_array_equal(pb.max(x, 1), [NAN, 2])
    np.testing.assert_array_equal(pb.grad(lambda x: pb.sum(pb.max(x, 1)))(x), [[NAN, NAN], [1, 0]])


# ---- log-sum-exp


@pytest.mark.parametrize(
    ("x", "value", "want"),
    [
        ([1000.0, 1000.0], 1000 + np.log(2), [0.5, 0.5]),
        ([-1000.0, -1000.0], -1000 + np.log(2), [0.5, 0.5]),
        ([-INF, 2.0], 2, [0, 1]),
        ([-INF, -INF], -INF, [0, 0]),
        ([INF, 800.0], INF, [NAN, 0]),
        ([800.0, NAN], NAN, [NAN, NAN]),
        ([1.7e308, -1.7e308], 1.7e308, [1, 0]),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_log_sum_exp_extreme_values(x, value, want):
    x = np.array(x)
    np.testing.assert_allclose(pb.log_sum_exp(x), value, rtol=1e-15)
    np.testing.assert_allclose(pb.grad(pb.log_sum_exp)(x), want, rtol=1e-12)


def test_log_sum_exp_masked_row():
    x = np.array([[-INF, -INF], [0.0, -INF], [1.0, 1.0]])
    np.testing.assert_allclose(pb.logsumexp(x, 1), [-INF, 0, 1 + np.log(2)])
    np.testing.assert_allclose(pb.grad(lambda x: pb.sum(pb.log_sum_exp(x, 1)))(x), [[0, 0], [1, 0], [0.5, 0.5]])
    second = pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(pb.log_sum_exp(x, 1)))(x)[:, 0]))(x)
    np.testing.assert_allclose(second, [[0, 0], [0, 0], [0.25, -0.25]], atol=1e-15)


def test_log_sum_exp_keeps_float32():
    x = np.full((3, 4), 100, np.float32)
    assert pb.log_sum_exp(x, 1).dtype == np.float32
    assert pb.log_sum_exp(np.full((3, 4), -INF, np.float32), 1).dtype == np.float32


# ---- mean, variance, moments


def test_variance_ddof():
    np.testing.assert_allclose(pb.variance(X, [0, 1], ddof=1), np.var(X, (0, 1), ddof=1))
    np.testing.assert_allclose(pb.std(X, 2, True, 1), np.std(X, 2, ddof=1, keepdims=True))
    expect_derivatives(lambda x: pb.sum(pb.square(pb.var(x, [0, 1], ddof=1))), X)
    expect_derivatives(lambda x: pb.sum(pb.square(pb.std(x, 2, ddof=2))), X)


def test_std_gradient_of_equal_elements():
    np.testing.assert_array_equal(pb.grad(pb.std)(np.full(4, 3.0)), np.zeros(4))


def test_moments():
    m = pb.tensor(X).moments([0, 2], keepdims=True)
    np.testing.assert_allclose(m.mean, X.mean((0, 2), keepdims=True))
    np.testing.assert_allclose(m.variance, X.var((0, 2), keepdims=True))
    expect_derivatives(lambda x: pb.sum(pb.moments(x, 1).variance * pb.moments(x, 1)[0]), X)


# ---- norms


@pytest.mark.parametrize("ord", ["euclidean", "fro", None, 1, 2, 3, 1.5, 0.5, -1, INF, -INF])
def test_vector_norms(ord):
    numpys = 2 if ord in ("euclidean", "fro", None) else ord
    for axis in (None, 0, -1, [1], (1,)):
        along = axis[0] if isinstance(axis, list | tuple) else axis
        x = X if axis is not None else X.reshape(-1)
        want = np.linalg.norm(x, numpys, along)
        np.testing.assert_allclose(pb.norm(X, ord, axis), want)
        assert pb.norm(X, ord, axis, True).shape == np.sum(X, along, keepdims=True).shape
        expect_derivatives(lambda x, axis=axis: pb.sum(pb.square(pb.norm(x, ord, axis))), X)


@pytest.mark.parametrize("axis", [(0, 1), [1, 2], (-1, 0), (2, 0)])
@pytest.mark.parametrize("ord", ["fro", "euclidean", 1, INF, -INF])
def test_matrix_norms(ord, axis):
    want = np.linalg.norm(X, "fro" if ord == "euclidean" else ord, tuple(axis))
    np.testing.assert_allclose(pb.norm(X, ord, axis), want)
    assert pb.norm(X, ord, axis, True).shape == np.sum(X, tuple(axis), keepdims=True).shape
    expect_derivatives(lambda x: pb.sum(pb.square(pb.norm(x, ord, axis))), X)


@pytest.mark.parametrize("ord", ["euclidean", 1, 2, 3, 2.5, INF, -INF])
def test_norm_gradient_at_zero(ord):
    for dtype in (np.float32, np.float64):
        got = pb.grad(lambda x: pb.norm(x, ord))(np.zeros(3, dtype))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, np.zeros(3))
    rows = pb.grad(lambda x: pb.sum(pb.norm(x, ord, 1)))(np.array([[0.0, 0.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(rows[0], [0, 0])
    assert rows[1].any()


@pytest.mark.parametrize("f", [pb.norm, np.linalg.norm, lambda x: pb.norm(x, 3), pb.std, lambda x: pb.sum(pb.abs(x))])
def test_norm_and_std_second_derivative_at_zero(f):
    zeros, ones = np.zeros(2), np.ones(2)
    for second in (pb.hessian(f)(zeros), pb.compile(pb.hessian(f))(zeros), pb.hvp(f, zeros, ones)):
        np.testing.assert_array_equal(second, np.zeros_like(second))
    np.testing.assert_array_equal(pb.jvp(pb.grad(f), [zeros], [ones])[1], zeros)


def test_norm_of_integers_does_not_overflow():
    assert pb.norm(np.array([70000, 0], np.int32)) == 70000
    assert pb.norm(np.array([0, 3, 0, 4.0]), 0) == 2


@pytest.mark.parametrize(
    ("ord", "axis", "message"),
    [
        (
            "nuc",
            (0, 1),
            r"ord must be 'euclidean', 'fro', 1, inf or -inf for matrices, got 'nuc' for shape \(2, 3, 4\)",
        ),
        (2, [0, 1], "for matrices, got 2"),
        ("max", None, "ord must be 'euclidean', 'fro' or a number, got 'max'"),
        (1, (0, 1, 2), r"norm: axis must name one axis, or two for matrices, got \(0, 1, 2\)"),
    ],
)
def test_norm_bad_input_raises(ord, axis, message):
    with pytest.raises(ArgumentError, match=message):
        pb.norm(X, ord, axis)


# ---- positions


@pytest.mark.parametrize("name", ["arg_max", "arg_min"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_argmax_and_argmin(name, dtype):
    f, numpys = getattr(pb, name), getattr(np, name.replace("_", ""))
    x = (X * 3).astype(dtype)
    np.testing.assert_array_equal(f(x), numpys(x, 0))
    for axis in (0, 1, -1, None):
        for keepdims in (False, True):
            got = f(pb.tensor(x), axis, keepdims)
            assert got.dtype.kind == "i"
            np.testing.assert_array_equal(got, numpys(x, axis, keepdims=keepdims))
    np.testing.assert_array_equal(f(x, [1]), numpys(x, 1))
    assert f(np.float64(3.0)) == 0
    assert getattr(pb, name.replace("_", "")) is f
    assert f(np.array([2, 2, 2])) == 0


def test_argmax_and_any_have_no_gradient():
    for f in (pb.arg_max, pb.arg_min, pb.count_nonzero):
        with pytest.raises(pb.errors.UnconnectedError, match=f.__name__):
            pb.grad(lambda x, f=f: f(x) * 1.0)(np.ones(3))


# ---- axes that are refused


@pytest.mark.parametrize("name", [*SMOOTH, *FLAT, "arg_max", "arg_min"])
def test_reduction_axis_out_of_range_raises(name):
    for x in (X, pb.tensor(X)):
        with pytest.raises(ShapeError, match=rf"{name}: axis 3 is out of range for rank 3; use -3 to 2"):
            getattr(pb, name)(x, 3)


@pytest.mark.parametrize("name", [*SMOOTH, *FLAT])
def test_reductions_over_bad_axes_raise(name):
    f = getattr(pb, name)
    with pytest.raises(ShapeError, match=rf"{name}: an axis is named twice in \(0, -3\)"):
        f(X, (0, -3))
    with pytest.raises(ArgumentError, match=rf"{name}: axis must be an integer or a tuple of them, got 'rows'"):
        f(X, "rows")
