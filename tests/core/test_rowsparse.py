"""RowSparse: an array that is zero but for some rows."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

VALUES = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def rows(values: Any = VALUES, indices: Any = (2, 0, 2), shape: Any = (4, 2)) -> pb.RowSparse:
    return pb.RowSparse(indices, values, shape)


DENSE = np.array([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0], [0.0, 0.0]])


def test_rowsparse_attributes():
    g = rows()
    assert (g.shape, g.ndim, g.dtype) == ((4, 2), 2, np.float64)
    assert g.indices.tolist() == [2, 0, 2]
    assert g.values.tolist() == VALUES.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rowsparse_to_dense_adds_repeated_rows(dtype: Any):
    g = rows(VALUES.astype(dtype))
    for dense in (g.to_dense(), np.asarray(g), g.numpy()):
        assert type(dense) is np.ndarray
        assert dense.dtype == dtype
        np.testing.assert_array_equal(dense, DENSE)


def test_rowsparse_with_tensor_values_returns_tensors():
    g = rows(pb.tensor(VALUES))
    assert isinstance(g.to_dense(), pb.Tensor)
    assert isinstance(g.coalesce().values, pb.Tensor)
    assert isinstance((g * 2).values, pb.Tensor)
    np.testing.assert_array_equal(g.numpy(), DENSE)
    np.testing.assert_array_equal((g * 2).numpy(), DENSE * 2)


def test_rowsparse_negative_indices():
    assert rows(indices=[-2, -4, 2]).indices.tolist() == [2, 0, 2]


def test_rowsparse_without_rows_is_zero():
    g = pb.RowSparse([], np.zeros((0, 2)), (4, 2))
    np.testing.assert_array_equal(g.to_dense(), np.zeros((4, 2)))
    assert g.coalesce().indices.tolist() == []
    np.testing.assert_array_equal((g + g) * 3, np.zeros((4, 2)))


def test_rowsparse_rank_1_and_rank_3():
    np.testing.assert_array_equal(pb.RowSparse([1, 1], [2.0, 3.0], (3,)).to_dense(), [0, 5, 0])
    values = np.arange(12.0).reshape(2, 2, 3)
    expected = np.zeros((5, 2, 3))
    expected[[4, 1]] = values
    np.testing.assert_array_equal(pb.RowSparse([4, 1], values, (5, 2, 3)).to_dense(), expected)


def test_rowsparse_coalesce_sorts_and_sums():
    g = rows().coalesce()
    assert g.indices.tolist() == [0, 2]
    assert g.values.tolist() == [[3, 4], [6, 8]]
    assert g.coalesce() is g


@pytest.mark.parametrize("count", [1, 7, 300, 5000])
def test_rowsparse_coalesce_equals_add_at(count: int):
    random = np.random.default_rng(count)
    at, values = random.integers(-40, 40, count), random.normal(size=(count, 3))
    expected = np.zeros((40, 3))
    np.add.at(expected, at, values)
    g = pb.RowSparse(at, values, (40, 3))
    np.testing.assert_allclose(g.to_dense(), expected, atol=1e-12)
    np.testing.assert_allclose(g.coalesce().to_dense(), expected, atol=1e-12)
    assert len(set(g.coalesce().indices.tolist())) == len(g.coalesce().indices)


def test_rowsparse_with_shape_larger_than_memory():
    g = pb.RowSparse([2**61, 5, 2**61], [1.0, 2.0, 3.0], (2**62,))
    assert g.coalesce().indices.tolist() == [5, 2**61]
    assert (g * 2).values.tolist() == [4, 8]


# ---- arithmetic


def test_rowsparse_sum_stays_row_sparse():
    other = pb.RowSparse([1, 2], np.ones((2, 2)), (4, 2))
    for made, expected in (
        (rows() + other, DENSE + np.asarray(other)),
        (rows() - other, DENSE - np.asarray(other)),
        (sum([rows(), other]), DENSE + np.asarray(other)),
        (-rows(), -DENSE),
        (np.add(rows(), other), DENSE + np.asarray(other)),
    ):
        assert isinstance(made, pb.RowSparse)
        np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 0.5,
        lambda x: 0.5 * x,
        lambda x: x / 4,
        lambda x: x**2,
        lambda x: abs(x),
        lambda x: np.maximum(x, 0),
        lambda x: np.float32(2) * x,
        np.square,
        np.sign,
        np.tanh,
    ],
)  # fmt: skip
def test_rowsparse_zero_preserving_functions_stay_sparse(f: Any):
    made = f(rows())
    assert isinstance(made, pb.RowSparse)
    np.testing.assert_array_equal(made, f(DENSE))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x * np.nan,
        lambda x: x * np.inf,
        lambda x: x / 0.0,
        lambda x: 2.0**x,
        lambda x: x > 1,
        lambda x: x == 0,
        lambda x: x * x,
        lambda x: x @ np.ones((2, 3)),
        lambda x: np.ones((4, 1)) * x,
        lambda x: x * np.arange(2.0),
        lambda x: np.arange(8.0).reshape(4, 2) + x,
        lambda x: x - np.arange(8.0).reshape(4, 2),
        lambda x: x + np.arange(2.0),
        np.exp,
        np.cos,
        np.isfinite,
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_rowsparse_other_functions_return_dense_array(f: Any):
    made = f(rows())
    assert type(made) is np.ndarray
    np.testing.assert_array_equal(made, f(DENSE))


def test_rowsparse_numpy_functions_densify():
    g = rows()
    assert np.sum(g) == DENSE.sum()
    assert np.linalg.norm(g) == np.linalg.norm(DENSE)
    np.testing.assert_array_equal(np.mean(g, axis=0), DENSE.mean(0))
    np.testing.assert_array_equal(np.concatenate([g, g]), np.concatenate([DENSE, DENSE]))
    np.testing.assert_array_equal(np.add.reduce(g, axis=1), DENSE.sum(1))
    np.testing.assert_array_equal(np.array(g, dtype=np.float32), DENSE.astype(np.float32))


def test_rowsparse_arithmetic_with_tensor_returns_tensor():
    t = pb.tensor(np.arange(8.0).reshape(4, 2))
    whole = t.numpy()
    pairs = [(rows() + t, DENSE + whole), (t - rows(), whole - DENSE), (t * rows(), whole * DENSE)]
    for made, expected in pairs:
        assert isinstance(made, pb.Tensor)
        np.testing.assert_array_equal(made.numpy(), expected)
    assert pb.sum(rows()) == DENSE.sum()


def test_rowsparse_is_constant_in_grad():
    x = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(pb.grad(lambda x: (x * rows()).sum())(x), DENSE)


def test_rowsparse_of_traced_values_is_differentiable():
    def f(s: Any) -> Any:
        return (pb.RowSparse([1, 1], s, (3,)) * 2.0).to_dense()[1] ** 2

    np.testing.assert_allclose(pb.grad(f)(np.array([1.0, 2.0])), [24.0, 24.0])


# ---- refusals


def test_rowsparse_rejects_in_place_writes():
    g = rows()
    with pytest.raises(
        ArgumentError, match=r"np.multiply: a RowSparse is not changed in place. Take the result, as in"
    ):
        g *= 2
    with pytest.raises(ArgumentError, match=r"np\.add: a RowSparse is not changed in place"):
        np.add.at(g, 0, 1.0)
    with pytest.raises(ArgumentError, match="not changed in place"):
        np.add(np.ones((4, 2)), 1, out=g)
    with pytest.raises(ValueError, match="has no array of its own"):
        np.array(g, copy=False)


def test_rowsparse_rejects_bad_indices_and_shapes():
    with pytest.raises(
        ShapeError, match=r"values have shape \(3, 2\); for 2 indices and shape \(4, 2\) they must have \(2, 2\)"
    ):
        rows(indices=[0, 1])
    with pytest.raises(ShapeError, match="the index 4 is out of range for 4 rows"):
        rows(indices=[0, 1, 4])
    with pytest.raises(ShapeError, match="the index -5 is out of range for 4 rows"):
        rows(indices=[0, 1, -5])
    with pytest.raises(ArgumentError, match="indices must be a vector of integers, got float64"):
        rows(indices=[0.0, 1.0, 2.0])
    with pytest.raises(ArgumentError, match="indices must be a vector of integers"):
        rows(indices=[[0, 1, 2]])
    with pytest.raises(ShapeError, match="shape must have an axis of rows"):
        pb.RowSparse([], [], ())
    with pytest.raises(ValueError, match="truth value"):
        bool(rows())


# ---- out of the library


def test_rowsparse_repr():
    assert repr(rows(VALUES[:1], [2])) == "RowSparse(indices=[2], values=array([[1., 2.]]), shape=(4, 2))"
    many = repr(pb.RowSparse(np.arange(1000), pb.tensor(np.zeros(1000)), (1000,)))
    assert many.startswith("RowSparse(indices=[  0,   1,   2, ..., 997, 998, 999], values=Tensor(")


@pytest.mark.parametrize("values", [VALUES, pb.tensor(VALUES)])
def test_rowsparse_pickles_and_copies(values: Any):
    for again in (pickle.loads(pickle.dumps(rows(values))), copy.copy(rows(values)), copy.deepcopy(rows(values))):
        assert type(again.values) is type(values)
        np.testing.assert_array_equal(again, DENSE)
