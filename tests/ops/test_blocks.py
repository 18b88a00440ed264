"""Blocks, grids, and shapes that agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(7)


# ------------------------------------------------------------------ blocks


@pytest.mark.parametrize(
    ("shape", "blocks", "pairs"),
    [
        ((2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]),
        ((1, 3, 4, 2), (2, 2), [[1, 0], [1, 1]]),
        ((2, 5), [3], [[0, 1]]),
        ((2, 2, 3, 4, 1), np.array([2, 1, 2]), np.array([[0, 0], [2, 1], [0, 0]])),
    ],
)
def test_space_to_batch_roundtrip(shape: Any, blocks: Any, pairs: Any) -> None:
    x = RNG.normal(size=shape)
    m = len(blocks)
    padded = np.pad(x, [(0, 0), *pairs, *[(0, 0)] * (x.ndim - 1 - m)])
    z = pb.space_to_batch_nd(x, blocks, pairs)
    for number, place in enumerate(np.ndindex(*blocks)):
        strided = padded[(slice(None), *(slice(start, None, step) for start, step in zip(place, blocks, strict=True)))]
        np.testing.assert_array_equal(z[number * shape[0] : (number + 1) * shape[0]], strided)
    np.testing.assert_array_equal(pb.batch_to_space_nd(z, blocks, pairs), x)
    np.testing.assert_array_equal(pb.tensor(z).batch_to_space_nd(blocks, pairs).numpy(), x)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("block", [2, 3])
def test_space_to_depth_roundtrip(data_format: str, block: int) -> None:
    x = RNG.normal(size=(2, 2 * block, 3 * block, 2))
    z = np.concatenate([x[:, i::block, j::block] for i in range(block) for j in range(block)], axis=-1)
    if data_format == "NCHW":
        x, z = np.moveaxis(x, -1, 1), np.moveaxis(z, -1, 1)
    np.testing.assert_array_equal(pb.space_to_depth(x, block, data_format), z)
    np.testing.assert_array_equal(pb.depth_to_space(z, block, data_format), x)


# ------------------------------------------------------------------ shapes


@pytest.mark.parametrize(("a", "b"), [([2, 1], [1, 3]), ([4], [2, 3, 1]), ([], [5]), ([0, 1], [1, 7]), ([3], [3])])
def test_broadcast_args(a: Any, b: Any) -> None:
    for made in (pb.broadcast_args(np.array(a, int), np.array(b, int)), pb.broadcast_args(a, b)):
        assert made.dtype.kind == "i"
        assert tuple(made.tolist()) == np.broadcast_shapes(tuple(a), tuple(b))


def test_ensure_shape() -> None:
    x = np.ones((2, 3))
    assert pb.ensure_shape(x, (2, 3)) is x
    assert pb.ensure_shape(x, [None, 3]) is x
    np.testing.assert_array_equal(pb.grad(lambda x: pb.ensure_shape(x, [None, None]) * 2)(x), 2 * x)
    assert pb.ensure_shape(1.0, []) == 1.0


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("lengths", [(3,), (3, 2), (2, 0), (2, 3, 4), ()])
def test_meshgrid(indexing: Any, sparse: bool, lengths: Any) -> None:
    xs = [RNG.normal(size=n) for n in lengths]
    want = np.meshgrid(*xs, indexing=indexing, sparse=sparse)
    for given in (xs, [pb.tensor(x) for x in xs]):
        got = pb.meshgrid(*given, indexing=indexing, sparse=sparse)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)


def test_meshgrid_copies_and_gradients() -> None:
    x, y = np.ones(3), np.ones(2)
    grid, _ = pb.meshgrid(x, y)
    grid[0, 0] = 5
    assert grid.sum() == 10
    for meshgrid in (pb.meshgrid, np.meshgrid):
        f = lambda x, y, meshgrid=meshgrid: np.multiply(*meshgrid(x, y))
        assert [d.tolist() for d in pb.grads(f)([x, y])] == [[2, 2, 2], [3, 3]]
    assert [g.shape for g in pb.meshgrid([1.0, 2.0], 3.0)] == [(1, 2), (1, 2)]


# ------------------------------------------------------------------ refusals

X = np.ones((4, 2, 3, 1))
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "divide": (
        lambda: pb.space_to_batch_nd(X, [2, 2], [[0, 0], [0, 0]]),
        ShapeError,
        r"spatial lengths \(2, 3\); block",
    ),
    "batch": (lambda: pb.batch_to_space_nd(X, [3], [[0, 0]]), ShapeError, "its batch axis is not divisible by 3"),
    "crops": (
        lambda: pb.batch_to_space_nd(X, [2], [[3, 2]]),
        ShapeError,
        r"crops \[\(3, 2\)\] take more than there is",
    ),
    "number": (lambda: pb.space_to_batch_nd(X, [2], [[0, 0], [0, 0]]), ShapeError, "and paddings one pair for each"),
    "rank": (
        lambda: pb.batch_to_space_nd(np.ones(4), [2], [[0, 0]]),
        ShapeError,
        "x must have a batch axis and one for",
    ),
    "zero": (lambda: pb.space_to_batch_nd(X, [0], [[0, 0]]), ArgumentError, r"block_shape must be >= 1 .* got \(0,\)"),
    "negative": (lambda: pb.space_to_batch_nd(X, [1], [[-1, 0]]), ArgumentError, "paddings >= 0"),
    "pairs": (lambda: pb.space_to_batch_nd(X, [2], [1]), ArgumentError, r"a pair \[before, after\] for each"),
    "depth": (lambda: pb.depth_to_space(X, 2), ShapeError, r"its depth 1 is not divisible by 4 \(block_size 2\)"),
    "space": (lambda: pb.space_to_depth(X, 2), ShapeError, "height 2 and width 3 are not divisible by block_size 2"),
    "block": (lambda: pb.depth_to_space(X, 1), ArgumentError, "block_size must be an integer >= 2, got 1"),
    "format": (
        lambda: pb.depth_to_space(X, 2, "HWC"),
        ArgumentError,
        "data_format must be 'NHWC' or 'NCHW', got 'HWC'",
    ),
    "rank of depth": (lambda: pb.space_to_depth(X[0], 2), ShapeError, r"x must have rank 4, got shape \(2, 3, 1\)"),
    "broadcast": (
        lambda: pb.broadcast_args([2, 3], [2]),
        ShapeError,
        r"the shapes \[2.*\] and \[2.*\] do not broadcast",
    ),
    "vectors": (lambda: pb.broadcast_args([[2]], [2]), ShapeError, r"must be vectors, got shapes \(1, 1\) and \(1,\)"),
    "lengths": (lambda: pb.broadcast_args([2], [-1]), ArgumentError, "s1 must be a shape, lengths >= 0"),
    "shape": (lambda: pb.ensure_shape(X, [4, 2, 3]), ShapeError, r"x has shape \(4, 2, 3, 1\), expected \(4, 2, 3\)"),
    "length": (lambda: pb.ensure_shape(X[0], [None, 2, 1]), ShapeError, r"expected \(None, 2, 1\)"),
    "indexing": (lambda: pb.meshgrid([1.0], indexing="yx"), ArgumentError, "indexing must be 'xy' or 'ij', got 'yx'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_blocks_bad_input_raises(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
