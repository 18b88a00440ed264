"""Comparisons, logic and choice: dtypes, NaN, and gradients of what was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

INF, NAN = np.inf, np.nan
COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
PREDICATES = {"is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite, "logical_not": np.logical_not}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
@pytest.mark.parametrize("name", COMPARISONS)
def test_binary_comparisons(name, dtype):
    f, numpys = getattr(pb, name), COMPARISONS[name]
    x, y = np.array([[0], [1], [2]]).astype(dtype), np.array([0, 1, 1, 2]).astype(dtype)
    for a, b in ((x, y), (x[::-2], y[::-1]), (x[:0], y), (x[1, 0], y[2])):
        got = f(pb.tensor(a), b)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, numpys(a, b))
        np.testing.assert_array_equal(f(a, b), numpys(a, b))


@pytest.mark.parametrize("name", COMPARISONS)
def test_infinities_nan_and_signed_zeros(name):
    x = np.array([0.0, -0.0, INF, -INF, NAN, 1.0])
    np.testing.assert_array_equal(getattr(pb.tensor(x), name)(x[:, None]), COMPARISONS[name](x, x[:, None]))


@pytest.mark.parametrize("name", PREDICATES)
def test_unary_predicates(name):
    for x in (
        np.array([0.0, -0.0, INF, -INF, NAN, 1.0]),
        np.array([0, 3], np.int32),
        np.array([], bool),
        np.float32(NAN),
    ):
        got = getattr(pb.tensor(x), name)()
        assert got.dtype == bool
        np.testing.assert_array_equal(got, PREDICATES[name](x))


@pytest.mark.parametrize("name", [*COMPARISONS, *PREDICATES])
def test_comparisons_have_no_derivative(name):
    f = getattr(pb, name)
    more = [0.5] if name in COMPARISONS else []
    with pytest.raises(pb.errors.UnconnectedError, match=f"The path was cut .*{name}"):
        pb.grad(lambda x: pb.cast(f(x, *more), "float32"))(np.ones(2))
    assert (
        pb.grad(lambda x: x * f(x, *more))(np.array([0.25, 2.0])).tolist() == f(np.array([0.25, 2.0]), *more).tolist()
    )


def test_comparison_operators():
    x = pb.tensor([1.0, 2.0, 3.0])
    got = [
        x < 2,
        x <= 2,
        x > 2,
        x >= 2,
        x == 2,
        x != 2,
        np.float64(2) < x,
        np.array([2.0]) < x,
        x == np.array([1.0, 0.0, 3.0]),
    ]
    want = ["100", "110", "001", "011", "010", "101", "001", "001", "101"]
    assert ["".join(str(int(v)) for v in t.tolist()) for t in got] == want
    mask = (x > 1) & ~(x > 2) | (x == 1) ^ (x == 1)
    assert mask.tolist() == [False, True, False]
    assert (np.array([True, True, False]) & mask).tolist() == [False, True, False]


def test_bitwise_ops():
    x, y = np.array([6, -1], np.int32), np.array([3, 5], np.int32)
    for name, numpys in {
        "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor,
    }.items():
        got = getattr(pb, name)(pb.tensor(x), pb.tensor(y))
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, numpys(x, y))
    assert (pb.tensor(x) & 3).dtype == np.int32
    assert pb.bitwise_not is pb.invert
    with pytest.raises(pb.errors.ArgumentError, match=r"bitwise_or: .*float64"):
        pb.bitwise_or(1.0, np.float64(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_where_gradient(dtype):
    c = np.array([[True], [False]])
    a, b = np.array([1.0, 2.0, 3.0], dtype), np.array([[4.0], [5.0]], dtype)
    value, (da, db) = pb.value_and_grads(lambda a, b: pb.where(c, a, b))([a, b])
    np.testing.assert_array_equal(value, np.where(c, a, b))
    np.testing.assert_array_equal(da, [1, 1, 1])
    np.testing.assert_array_equal(db, [[0], [3]])
    assert value.dtype == da.dtype == db.dtype == dtype
    assert pb.where(c, a, 0).dtype == pb.where(c, 0.5, b).dtype == dtype


@pytest.mark.parametrize("condition", [True, False])
def test_where_of_scalars_and_empty_arrays(condition):
    x = np.float64(3.0)
    value, grads = pb.value_and_grads(lambda a, b: pb.where(condition, a, b))([x, x + 1])
    assert value == (3 if condition else 4)
    assert grads == [condition, not condition]
    assert type(grads[0]) is np.float64
    assert pb.where(np.zeros((0, 2), bool), 1.0, np.ones(2)).shape == (0, 2)


def test_where_masks_infinite_gradients():
    with np.errstate(divide="ignore"):
        grad = pb.grad(lambda x: pb.where(x > 0, x, 1.0) ** -0.5 + pb.sqrt(pb.where(x > 0, x, 0.0)))(
            np.array([4.0, -1.0])
        )
    np.testing.assert_allclose(grad, [-0.0625 + 0.25, 0])


def test_where_traced_and_numeric_conditions():
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(pb.grad(lambda x: pb.where(x, x * x, 0.0))(x), [-2, 0, 4])
    np.testing.assert_array_equal(pb.grad(lambda x: np.where(x > 0, x * x, -x))(x), [-1, -1, 4])
    np.testing.assert_array_equal(pb.tensor(x).where(x > 0, 0.0), [0, 0, 2])
    second = pb.grad(lambda x: pb.grad(lambda x: pb.where(x > 0, x**3, x**2))(x).sum())(x)
    np.testing.assert_array_equal(second, [2, 2, 12])


def test_where_dtype_promotion():
    c, whole = np.array([True, False]), np.array([1, 2], np.int32)
    value, grads = pb.value_and_grads(lambda a, b: pb.where(c, a, b))([whole, np.ones(2, np.float32)])
    assert value.dtype == np.float32
    assert [g.dtype for g in grads] == [np.float32, np.float32]
    assert pb.where(c, whole, whole).dtype == np.int32


def test_where_shape_error():
    with pytest.raises(pb.errors.ShapeError, match=r"where: shapes \(2,\) and \(3,\) and \(\) do not broadcast"):
        pb.where(np.array([True, False]), np.ones(3), np.float64(0))


@pytest.mark.parametrize(("name", "other"), [("is_nan", "isnan"), ("is_inf", "isinf"), ("is_finite", "isfinite")])
def test_comparison_numpy_aliases(name, other):
    assert getattr(pb, other) is getattr(pb, name)
    assert getattr(np, other)(pb.tensor([1.0, NAN])).tolist() == getattr(np, other)([1.0, NAN]).tolist()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("b", ["array", "number", 0, 0.0, -0.0, 2.5, "wider"])
def test_where_of_many_elements_equals_numpy(dtype: str, b: object) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(90, 100)).astype(dtype)
    x[0, :5] = np.nan, np.inf, -np.inf, -0.0, 0.0
    named: dict[object, object] = {"array": x[::-1], "number": x.dtype.type(3), "wider": x.astype("f8")}
    other: Any = named.get(b, b)
    for condition in (x > 0.3, (x > 0.3)[:, ::-1], x[:, :1] > 0):
        for args in ((condition, x, other), (condition, other, x)):
            got, want = pb.where(*args), np.where(*args)
            assert got.dtype == want.dtype
            assert np.ascontiguousarray(got).tobytes() == want.tobytes()
