"""Running sums and products: every direction and axis, and products through zeros to any order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from differences import expect_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

X = np.random.default_rng(0).normal(size=(3, 4, 2))
WAYS = list(product([False, True], repeat=2))


def by_hand(name, x, axis, exclusive, reverse):
    combine, first = (np.sum, 0) if name == "cumsum" else (np.prod, 1)
    x = np.moveaxis(x, axis, 0)
    x = x[::-1] if reverse else x
    out = np.stack([combine(x[: i if exclusive else i + 1], axis=0, initial=first) for i in range(len(x))])
    return np.moveaxis(out[::-1] if reverse else out, 0, axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scan_values_and_derivatives(name, axis, exclusive, reverse):
    f = getattr(pb, name)
    for x in (X, X[::-1, ::2], X.T):
        want = by_hand(name, x, axis, exclusive, reverse)
        np.testing.assert_allclose(f(x, axis, exclusive, reverse), want)
        np.testing.assert_allclose(getattr(pb.tensor(x), name)(axis, exclusive, reverse), want)
    w = np.random.default_rng(2).normal(size=X.shape)
    expect_derivatives(lambda x: pb.sum(f(x, axis, exclusive, reverse) * x * w), X, 2)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scan_default_axis_is_zero(name):
    np.testing.assert_allclose(getattr(pb, name)(X), getattr(np, name)(X, 0))


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("x", [[2.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 3.0, 0.0], [0.0, 0.0], [0.0], [5.0, 1.0, 0.0]])
def test_cumprod_with_zeros(x, exclusive, reverse):
    x = np.array(x)
    w = np.arange(1.0, 1 + x.size)
    jacobian = np.zeros((x.size, x.size))
    for i in range(x.size):  # the product is linear in each factor
        one, none = x.copy(), x.copy()
        one[i], none[i] = 1, 0
        jacobian[i] = by_hand("cumprod", one, 0, exclusive, reverse) - by_hand("cumprod", none, 0, exclusive, reverse)
    np.testing.assert_allclose(pb.grad(lambda x: pb.sum(pb.cumprod(x, 0, exclusive, reverse) * w))(x), jacobian @ w)
    expect_derivatives(lambda x: pb.sum(pb.cumprod(x, 0, exclusive, reverse) * w), x, 3)


def test_long_cumprod():
    x = np.random.default_rng(3).uniform(0.9, 1.1, size=(2, 1000))
    x[0, 500] = 0
    expect_derivatives(lambda x: pb.sum(pb.cumprod(x, 1)), x, 1)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_cumprod_gradient_with_overflow():
    x = np.full(8, 1e200)
    got = pb.grad(lambda x: pb.cumprod(x)[0])(x)
    np.testing.assert_array_equal(got[0], 1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
def test_scan_dtypes(name, dtype):
    x = np.array([1, 0, 1, 2]).astype(dtype)
    f = getattr(pb, name)
    for exclusive, reverse in WAYS:
        z = f(x, 0, exclusive, reverse)
        np.testing.assert_array_equal(z, by_hand(name, x.astype(int), 0, exclusive, reverse))
        assert z.dtype == (dtype if x.dtype.kind == "f" else np.int64)
        gradient = pb.grad(lambda x, e=exclusive, r=reverse: pb.sum(f(x, 0, e, r)))(x)
        assert gradient.dtype == (dtype if x.dtype.kind == "f" else np.float32)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_of_empty_and_read_only_arrays(name):
    f = getattr(pb, name)
    for shape in ((0,), (0, 2), (2, 0)):
        assert f(np.zeros(shape), exclusive=True).shape == shape
        assert pb.grad(lambda x: pb.sum(f(x)))(np.zeros(shape)).shape == shape
    x = np.arange(3.0)
    x.flags.writeable = False
    pb.grad(lambda x: pb.sum(f(x, 0, True, True)))(x)
    np.testing.assert_array_equal(x, [0, 1, 2])


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_over_bad_axes_raise(name):
    f = getattr(pb, name)
    with pytest.raises(ShapeError, match=f"{name}: axis 3 is out of range for rank 3; use -3 to 2"):
        f(X, 3)
    with pytest.raises(ShapeError, match=f"{name}: axis 0 is out of range for rank 0"):
        f(pb.tensor(1.0))
    for axis in (None, (0, 1), "rows"):
        with pytest.raises(ArgumentError, match=f"{name}: axis must be one integer, got"):
            f(pb.tensor(X), axis)
