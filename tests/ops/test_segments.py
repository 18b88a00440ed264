"""Segments, counting, and dense tensors from coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import expect_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(3)
X = RNG.uniform(0.5, 2, (6, 2))
IDS = np.array([3, 0, 3, 1, 0, 3])
OF_NOTHING = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.finfo(float).max, "min": np.finfo(float).max}
names = pytest.mark.parametrize("name", OF_NOTHING)


def unsorted(name: str) -> Any:
    return getattr(pb, f"unsorted_segment_{name}")


def one_by_one(name: str, x: Any, ids: Any, n: int, empty: float) -> Any:
    parts = [x[ids == i] for i in range(n)]
    return np.array([getattr(np, name)(p, axis=0) if len(p) else np.full(x.shape[ids.ndim :], empty) for p in parts])


# ------------------------------------------------------------------ values


@names
@pytest.mark.parametrize(
    ("x", "ids", "n"),
    [
        (X, IDS, 5),
        (X[:, 0], IDS, 4),
        (X, np.array([0, -1, 9, 0, -7, 1]), 2),
        (X.reshape(2, 3, 2), IDS.reshape(2, 3), 4),
        (X[:0], IDS[:0], 3),
        (X, IDS, 0),
        (RNG.uniform(0.9, 1.1, 300), RNG.integers(0, 7, 300), 7),
    ],
)
def test_unsorted_segments(name: str, x: Any, ids: Any, n: int) -> None:
    want = one_by_one(name, x, ids, n, OF_NOTHING[name]).reshape(n, *x.shape[ids.ndim :])
    got = unsorted(name)(x, ids, n)
    np.testing.assert_allclose(got, want)
    assert got.dtype == x.dtype
    tensor = unsorted(name)(pb.tensor(x), ids.tolist() if ids.size else ids, n)
    assert isinstance(tensor, pb.Tensor)
    np.testing.assert_allclose(tensor.numpy(), want)


@names
def test_sorted_segments(name: str) -> None:
    got = getattr(pb, f"segment_{name}")(X, np.array([0, 0, 1, 3, 3, 3]))
    want = one_by_one(name, X, np.array([0, 0, 1, 3, 3, 3]), 4, 1.0 if name == "prod" else 0.0)
    np.testing.assert_allclose(got, want)
    assert getattr(pb, f"segment_{name}")(X[:0], []).shape == (0, 2)


@names
def test_segment_dtypes_of_integers(name: str) -> None:
    got = unsorted(name)(np.array([2, 3, 4], np.int32), np.array([0, 1, 1]), 2)
    assert got.dtype.kind == ("f" if name == "mean" else "i")
    assert got[0] == 2


def test_bool_segments() -> None:
    np.testing.assert_array_equal(pb.unsorted_segment_sum(np.array([True, True, False]), np.array([0, 0, 0]), 1), [2])


# ------------------------------------------------------------------ derivatives


@names
@pytest.mark.parametrize("ids", [IDS, np.array([0, -1, 5, 0, 0, 2])])
def test_segment_derivatives(name: str, ids: Any) -> None:
    weights = RNG.normal(size=(4, 2))
    within = np.isin(np.arange(4), ids)[:, None]  # the limits that stand for nothing are too big to be squared
    expect_derivatives(lambda x: np.sum(np.where(within, unsorted(name)(x, ids, 4), 0) ** 2 * weights), X)
    runs = np.sort(np.maximum(ids, 0))
    w = RNG.normal(size=(runs[-1] + 1, 2))
    expect_derivatives(lambda x: np.sum(getattr(pb, f"segment_{name}")(x, runs) ** 2 * w), X)


@pytest.mark.parametrize("zeros", [[0], [0, 2], [0, 2, 5], [1, 4, 0]])
def test_segment_prod_third_order_with_zeros(zeros: list[int]) -> None:
    x = X[:, 0].copy()
    x[zeros] = 0
    f = lambda x: np.sum(pb.unsorted_segment_prod(x, IDS, 4) * np.array([1.0, 2.0, 3.0, 4.0]))
    expect_derivatives(f, x, 3)


@pytest.mark.parametrize("name", ["max", "min"])
def test_segment_max_ties(name: str) -> None:
    got = pb.grad(lambda x: unsorted(name)(x, np.array([0, 0, 0, 1]), 2))(np.array([2.0, 2.0, 2.0, 7.0]))
    np.testing.assert_allclose(got, [1 / 3, 1 / 3, 1 / 3, 1])


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_segment_max_of_infinities(name: str, columns: tuple[int, ...]) -> None:
    x, ids = np.full((4, *columns), -np.inf if name == "max" else np.inf), np.array([0, 0, 2, -1])
    x[2] = 1
    f = lambda x, ids: unsorted(name)(x, ids, 3)
    limit = np.finfo(float).min if name == "max" else np.finfo(float).max
    np.testing.assert_array_equal(f(x, ids), np.stack([x[0], np.full(columns, limit), x[2]]))
    np.testing.assert_array_equal(pb.compile(f)(x, ids), f(x, ids))


def test_segment_sum_gradient_of_elements_in_no_segment_is_zero() -> None:
    dy = np.array([np.inf, 1.0])
    np.testing.assert_array_equal(pb.grad(lambda x: pb.unsorted_segment_sum(x, [-1, 1], 2))(np.ones(2), dy), [0, 1])


# ------------------------------------------------------------------ counting


def test_bincount() -> None:
    numbers, weights = np.array([[1, 1], [3, 0]]), np.array([[0.5, 1.0], [2.0, 4.0]])
    np.testing.assert_array_equal(pb.bincount(numbers), [1, 2, 0, 1])
    np.testing.assert_array_equal(pb.bincount([1, 1, 3], size=3), [0, 2, 0])
    np.testing.assert_array_equal(pb.bincount(numbers, weights, 3), [4.0, 1.5, 0.0])
    none = pb.bincount(numbers, np.zeros(0, np.float32), 2)
    np.testing.assert_array_equal(none, [1, 2])
    assert (none.dtype, pb.bincount(numbers).dtype) == (np.float32, np.int32)
    assert pb.bincount(np.zeros(0, int)).shape == (0,)
    got = pb.grad(lambda w: np.sum(pb.bincount(numbers, w, 3) ** 2))(weights)
    np.testing.assert_allclose(got, [[3.0, 3.0], [0.0, 8.0]])


def test_dense_bincount() -> None:
    numbers, weights = RNG.integers(0, 5, (3, 6)), RNG.normal(size=(3, 6))
    want = [np.bincount(n, w, 5)[:4] for n, w in zip(numbers, weights, strict=True)]
    np.testing.assert_allclose(pb.dense_bincount(numbers, weights, 4), want)
    np.testing.assert_array_equal(
        pb.dense_bincount(numbers, None, 4, True), [np.bincount(n, None, 5)[:4] > 0 for n in numbers]
    )
    np.testing.assert_allclose(pb.dense_bincount(numbers[0], weights[0], 4), want[0])
    expect_derivatives(lambda w: np.sum(pb.dense_bincount(numbers, w, 4) ** 2), weights)


def test_numpy_bincount_traced_weights() -> None:
    numbers, weights = np.array([0, 2, 2]), np.ones(3)
    f = lambda w: np.bincount(numbers, w, minlength=4)
    assert pb.jvp(f, [weights], [weights])[1].tolist() == [1, 0, 2, 0]
    assert pb.grad(f)(weights).tolist() == [1, 1, 1]
    assert np.bincount(pb.tensor(numbers)).tolist() == [1, 0, 2]


def test_confusion_matrix() -> None:
    labels, predictions = RNG.integers(0, 4, 50), RNG.integers(0, 4, 50)
    want = np.zeros((4, 4), int)
    np.add.at(want, (labels, predictions), 1)
    np.testing.assert_array_equal(pb.math.confusion_matrix(labels, predictions, 4), want)
    assert pb.math.confusion_matrix([0, 1], [1, 1], 2).tolist() == [[0, 1], [0, 1]]


# ------------------------------------------------------------------ from coordinates


def test_sparse_to_dense() -> None:
    at = np.array([[0, 1], [2, 0], [0, 1]])
    got = pb.sparse_to_dense(at, np.array([5.0, 6.0, 7.0]), [3, 2], -1.0)
    np.testing.assert_array_equal(got, [[-1, 7], [-1, -1], [6, -1]])  # of two values for one place the last
    np.testing.assert_array_equal(pb.sparse_to_dense([1, 3], 9.0, [4]).tolist(), [0, 9, 0, 9])
    np.testing.assert_array_equal(pb.sparse_to_dense(np.array(2), np.float32(4), (3,)), [0, 0, 4])
    assert pb.sparse_to_dense(at[:0], np.zeros(0, np.float32), [2, 2]).dtype == np.float32
    f = lambda values, default: np.sum(pb.sparse_to_dense(at, values, [3, 2], default) ** 2)
    gradients = pb.grads(f)([np.array([5.0, 6.0, 7.0]), np.float64(-1)])
    np.testing.assert_allclose(gradients[0], [0, 12, 14])
    assert gradients[1] == -8


# ------------------------------------------------------------------ refusals

REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "axes": (
        lambda: pb.unsorted_segment_sum(X, IDS[:2], 3),
        ShapeError,
        r"shape \(6, 2\) and segment_ids have shape \(2,\)",
    ),
    "axes of mean": (lambda: pb.unsorted_segment_mean(X, IDS[:2], 3), ShapeError, "unsorted_segment_mean: x has shape"),
    "floats": (
        lambda: pb.unsorted_segment_max(X, X[:, 0], 3),
        ArgumentError,
        "unsorted_segment_max: segment_ids must be int",
    ),
    "number": (
        lambda: pb.unsorted_segment_prod(X, IDS, -1),
        ArgumentError,
        "num_segments must be an integer >= 0, got -1",
    ),
    "order": (
        lambda: pb.segment_sum(X, IDS),
        ArgumentError,
        r"segment_ids must be sorted and >= 0.*use unsorted_segment_sum",
    ),
    "negative": (
        lambda: pb.segment_max(X[:1], [-1]),
        ArgumentError,
        "segment_max: segment_ids must be sorted and >= 0",
    ),
    "matrix": (lambda: pb.segment_mean(X, IDS.reshape(2, 3)), ShapeError, "segment_ids must be a vector"),
    "count of negative": (
        lambda: pb.bincount([1, -2], None, 3),
        ArgumentError,
        "bincount: x must not be negative, got -2",
    ),
    "weights": (lambda: pb.bincount([1, 2], np.ones(3), 3), ShapeError, r"weights have shape \(3,\)"),
    "size": (lambda: pb.bincount([1, 2], None, 2.5), ArgumentError, "size must be an integer >= 0, got 2.5"),
    "rank": (lambda: pb.dense_bincount(np.zeros((1, 1, 1), int), None, 2), ShapeError, "rank 1 or 2"),
    "outside": (
        lambda: pb.sparse_to_dense([[0, 2]], [1.0], [2, 2]),
        ShapeError,
        r"\[0, 2\] are outside of output_shape \(2, 2\)",
    ),
    "coordinates": (lambda: pb.sparse_to_dense([1], [1.0], [2, 2]), ShapeError, "must have as many axes"),
    "values": (lambda: pb.sparse_to_dense([1, 0], np.ones(3), [2]), ShapeError, r"sparse_values have shape \(3,\)"),
    "labels": (
        lambda: pb.math.confusion_matrix([0, 3], [0, 1], 3),
        ArgumentError,
        r"labels must be from 0 to 2 .*got 3",
    ),
    "predictions": (
        lambda: pb.math.confusion_matrix([0], [-1], 3),
        ArgumentError,
        r"predictions must be from 0 to 2 .*got -1",
    ),
    "halves": (
        lambda: pb.math.confusion_matrix([0.5], [1], 3),
        ArgumentError,
        "labels must be whole numbers, got float",
    ),
    "lengths": (lambda: pb.math.confusion_matrix([0], [0, 1], 3), ShapeError, r"got shapes \(1,\) and \(2,\)"),
    "classes": (
        lambda: pb.math.confusion_matrix([0], [0], None),
        ArgumentError,
        "num_classes must be an integer >= 1, got None",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_segments_bad_input_raises(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
