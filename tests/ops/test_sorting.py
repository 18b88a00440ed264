"""Sorting, searching and sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import expect_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, UnconnectedError

RNG = np.random.default_rng(5)
X = RNG.permutation(24).reshape(2, 3, 4) + 0.25


# ------------------------------------------------------------------ order


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1"])
@pytest.mark.parametrize("spread", [1.0, 1e3, 1e14])
def test_argsort_of_long_rows_keeps_the_order_of_equal_elements(dtype: str, spread: float) -> None:
    x = np.asarray(np.random.default_rng(1).normal(size=(3, 300)) * spread)
    if dtype[0] == "f":
        x[:, ::50], x[:, 7::50], x[:, 9::60], x[:, 11::70] = np.nan, -np.nan, 0.0, -0.0
        x[1, 20:23], x[2, 30::90] = np.inf, -np.inf
    else:
        x = np.round(np.clip(x, -(2**31), 2**31 - 1)) if dtype == "i4" else x
    x = x.astype(dtype) if dtype != "u1" else np.abs(x % 200).astype(dtype)
    np.testing.assert_array_equal(pb.argsort(x), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(pb.argsort(x.T, 0), np.argsort(x.T, 0, kind="stable"))
    down = x.shape[1] - 1 - np.argsort(x[:, ::-1], kind="stable")[:, ::-1]
    np.testing.assert_array_equal(pb.argsort(x, descending=True), down)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(axis: Any, descending: bool) -> None:
    want = np.sort(X, axis)
    want = np.flip(want, -1 if axis is None else axis) if descending else want
    np.testing.assert_array_equal(pb.sort(X, axis, descending), want)
    np.testing.assert_array_equal(pb.sort(pb.tensor(X), axis, descending).numpy(), want)
    w = RNG.normal(size=want.shape)
    expect_derivatives(lambda x: np.sum(pb.sort(x, axis, descending) ** 2 * w), X)
    if axis is not None:
        order = pb.argsort(X, axis, descending)
        np.testing.assert_array_equal(np.take_along_axis(X, order, axis), want)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable(descending: bool) -> None:
    x = np.array([2.0, 1.0, 2.0, 1.0, 2.0])
    want = [0, 2, 4, 1, 3] if descending else [1, 3, 0, 2, 4]
    assert pb.argsort(x, descending=descending).tolist() == want
    weights = np.arange(5.0)
    got = pb.grad(lambda x: np.sum(pb.sort(x, descending=descending) * weights))(x)
    np.testing.assert_array_equal(got[want], weights)


def test_sort_of_scalar_list_and_empty() -> None:
    assert pb.sort(3.0) == 3.0
    assert pb.sort([3.0, 1.0]).tolist() == [1.0, 3.0]
    assert pb.sort(np.zeros((2, 0))).shape == (2, 0)
    assert pb.argsort(np.float64(3.0)) == 0


def test_numpy_sort() -> None:
    assert np.sort(pb.tensor([3.0, 1.0])).tolist() == [1.0, 3.0]
    np.testing.assert_array_equal(pb.grad(lambda x: np.sort(x, axis=None)[-1])(X), X.max() == X)


# ------------------------------------------------------------------ searching


@pytest.mark.parametrize("side", ["left", "right"])
def test_search_sorted(side: Any) -> None:
    line, values = np.sort(RNG.integers(0, 5, 8)) * 1.0, RNG.integers(-1, 7, (3, 5)) * 1.0
    got = pb.search_sorted(line, values, side)
    np.testing.assert_array_equal(got, np.searchsorted(line, values, side))
    assert got.dtype == np.int32
    lines = np.sort(RNG.integers(0, 5, (3, 4)), axis=-1) * 1.0
    want = [np.searchsorted(row, some, side) for row, some in zip(lines, values, strict=True)]
    np.testing.assert_array_equal(pb.searchsorted(lines, values, side), want)
    bound = pb.lower_bound if side == "left" else pb.upper_bound
    np.testing.assert_array_equal(bound(lines, values), want)


def test_in_top_k() -> None:
    predictions = RNG.permutation(20).reshape(4, 5) * 1.0
    rank = np.argsort(np.argsort(-predictions))
    for k in (1, 3, 5):
        for target in range(5):
            np.testing.assert_array_equal(pb.in_top_k(predictions, [target] * 4, k).numpy(), rank[:, target] < k)
    equal = np.array([[1.0, 1.0, 0.0]])
    assert [bool(pb.in_top_k(equal, np.array([i]), 1)[0]) for i in range(3)] == [True, False, False]


# ------------------------------------------------------------------ sets


@pytest.mark.parametrize("axis", [0, 1, -1, [1]])
def test_unique(axis: Any) -> None:
    x = RNG.integers(0, 2, (6, 5)) * 1.0
    x[:, 3] = x[:, 0]
    values, indices = pb.unique(x, axis)
    at = axis[0] if isinstance(axis, list) else axis
    np.testing.assert_array_equal(np.take(values, indices, at), x)
    assert values.shape[at] == np.unique(x, axis=at).shape[at]
    first = [indices.tolist().index(i) for i in range(values.shape[at])]
    assert first == sorted(first)


def test_unique_gradient() -> None:
    values, indices = pb.unique(pb.tensor([5.0, 3.0, 5.0]))
    assert (values.tolist(), indices.tolist(), indices.dtype) == ([5.0, 3.0], [0, 1, 0], np.int32)
    got = pb.grad(lambda x: pb.unique(x).values * np.array([1.0, 2.0]))(np.array([5.0, 3.0, 5.0]))
    np.testing.assert_array_equal(got, [1, 2, 0])
    with pytest.raises(UnconnectedError, match="unique_indices"):
        pb.grad(lambda x: pb.unique(x).indices * 1.0)(np.ones(2))


A, B = np.array([4.0, 1.0, 3.0, 1.0, 7.0]), np.array([3.0, 9.0, 4.0, 0.0])


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setxor1d"])
def test_set_functions_match_numpy(name: str) -> None:
    ours, theirs = getattr(pb, name), getattr(np, name)
    want = theirs(A, B)
    np.testing.assert_array_equal(ours(A, B), want)
    np.testing.assert_array_equal(ours(pb.tensor(A), B).numpy(), want)
    weights = np.arange(1.0, len(want) + 1)
    for f in (ours, theirs):
        got = pb.grad(lambda x, f=f: np.sum(f(x, B) * weights))(A)
        by_value = dict(zip(want, weights, strict=True))
        first = [np.flatnonzero(a == A)[0] == i for i, a in enumerate(A)]
        np.testing.assert_array_equal(got, [by_value.get(a, 0) * on for a, on in zip(A, first, strict=True)])


def test_setdiff1d() -> None:
    values, indices = pb.setdiff1d(A, B)
    assert (values.tolist(), indices.tolist(), indices.dtype) == ([1.0, 1.0, 7.0], [1, 3, 4], np.int32)
    assert isinstance(pb.setdiff1d(pb.tensor(A), B).indices, pb.Tensor)
    np.testing.assert_array_equal(pb.grad(lambda x: pb.setdiff1d(x, B).values)(A), [0, 1, 0, 1, 1])
    np.testing.assert_array_equal(pb.grad(lambda x: np.setdiff1d(x, B))(A), [0, 1, 0, 0, 1])
    assert pb.isin(A, B).tolist() == [True, False, True, False, False]


# ------------------------------------------------------------------ refusals

REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "axis": (lambda: pb.sort(A, 1), ShapeError, "sort: axis 1 is out of range for rank 1"),
    "axis of argsort": (lambda: pb.argsort(A, 1), ShapeError, "argsort: axis 1 is out of range"),
    "side": (lambda: pb.search_sorted(A, B, "middle"), ArgumentError, "side must be 'left' or 'right', got 'middle'"),
    "rows": (
        lambda: pb.search_sorted(np.ones((2, 3)), np.ones((3, 3))),
        ShapeError,
        "all axes but the last must agree",
    ),
    "unique": (lambda: pb.unique(1.0), ShapeError, "unique: x must have at least one axis"),
    "unique axis": (lambda: pb.unique(A, 2), ShapeError, "unique: axis 2 is out of range"),
    "targets": (
        lambda: pb.in_top_k(np.ones((2, 3)), [0, 3]),
        ArgumentError,
        "targets must be whole numbers from 0 to 2, got 3",
    ),
    "shape of targets": (
        lambda: pb.in_top_k(np.ones((2, 3)), [0]),
        ShapeError,
        r"predictions have shape \(2, 3\) and targets",
    ),
    "k": (
        lambda: pb.in_top_k(np.ones((1, 3)), [0], 4),
        ArgumentError,
        "k must be from 1 to 3, the number of classes, got 4",
    ),
    "vectors": (
        lambda: pb.setdiff1d(A, np.ones((2, 2))),
        ShapeError,
        r"setdiff1d: y must be a vector, got shape \(2, 2\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sorting_bad_input_raises(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("distinct", [2, 40_000, None])
@pytest.mark.parametrize("descending", [False, True])
def test_argsort_of_long_rows_is_stable(distinct: int | None, descending: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.permutation(50_000) * 1.0 if distinct is None else rng.integers(0, distinct, 50_000).astype(float)
    found = pb.argsort(x, descending=descending)
    np.testing.assert_array_equal(found, np.argsort(-x if descending else x, kind="stable"))
