"""Pooling and morphology against plain loops; ties, padding, layouts; what is refused, and in which words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

RANDOM = np.random.default_rng(6)


def drawn(*shape: int) -> Any:
    return RANDOM.permutation(np.arange(float(np.prod(shape)))).reshape(shape) / 7


def by_loops(x: Any, size: Any, strides: Any, pairs: Any, dilations: Any, of: Any) -> Any:
    """The definition: for every position ``of`` the elements of the window that are in the image."""
    out = [
        (n + a + b - (k - 1) * d - 1) // s + 1
        for n, (a, b), k, d, s in zip(x.shape[1:-1], pairs, size, dilations, strides, strict=True)
    ]
    z = np.empty((x.shape[0], *out, x.shape[-1]))
    for at in itertools.product(*map(range, out)):
        found = []
        for tap in itertools.product(*map(range, size)):
            i = [a * s + t * d - p for a, s, t, d, (p, _) in zip(at, strides, tap, dilations, pairs, strict=True)]
            if all(0 <= j < n for j, n in zip(i, x.shape[1:-1], strict=True)):
                found.append(x[(slice(None), *i)])
        z[(slice(None), *at)] = of(np.stack(found), axis=0)
    return z


def close(a: Any, b: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


def checked(f: Any, *inputs: Any) -> None:
    dy = RANDOM.normal(size=np.shape(f(*inputs)))
    grads = pb.grads(f)(list(inputs), dy)
    for i, x in enumerate(inputs):
        t, h = RANDOM.normal(size=x.shape), 1e-6
        ahead, behind = (f(*inputs[:i], x + s * h * t, *inputs[i + 1 :]) for s in (1, -1))
        close(np.vdot(grads[i], t), np.vdot(dy, (ahead - behind) / (2 * h)), 1e-5)


@pytest.mark.parametrize(("kind", "of"), [("max", np.max), ("avg", np.mean)])
@pytest.mark.parametrize(("size", "strides", "pad", "pairs"), [
    (2, 2, "valid", ((0, 0), (0, 0))), (3, 1, "same", ((1, 1), (1, 1))), ((2, 3), (1, 2), "same", ((0, 1), (0, 1))),
    (2, 2, [[0, 0], [1, 0], [0, 1], [0, 0]], ((1, 0), (0, 1))), (3, 2, 1, ((1, 1), (1, 1))),
    (1, 1, "same", ((0, 0), (0, 0))),
])  # fmt: skip
def test_pool2d(kind: str, of: Any, size: Any, strides: Any, pad: Any, pairs: Any) -> None:
    x = drawn(2, 5, 6, 2)
    pool = getattr(pb, f"{kind}_pool")
    pair = lambda n: (n, n) if isinstance(n, int) else n
    want = by_loops(x, pair(size), pair(strides), pairs, (1, 1), of)
    close(pool(x, size, strides, pad), want)
    close(pb.pool(x, size, kind, pad, 1, strides), want)
    close(pool(x[0], size, strides, pad), want[0])
    first = pool(np.moveaxis(x, -1, 1), size, strides, pad if isinstance(pad, str | int) else pairs, None, "NCHW")
    close(np.moveaxis(first, 1, -1), want)
    checked(lambda x: pool(x, size, strides, pad), x)


@pytest.mark.parametrize(("kind", "of"), [("max", np.max), ("avg", np.mean)])
def test_pool1d_and_pool3d(kind: str, of: Any) -> None:
    x = drawn(2, 7, 3)
    line = getattr(pb, f"{kind}_pool1d")
    close(line(x, 3, 2, "same"), by_loops(x, (3,), (2,), ((1, 1),), (1,), of))
    close(line(np.swapaxes(x, 1, 2), 3, 2, "same", None, "NCW"), np.swapaxes(line(x, 3, 2, "same"), 1, 2))
    x = drawn(1, 3, 4, 3, 2)
    volume = getattr(pb, f"{kind}_pool3d")
    close(volume(x, (2, 2, 1), 1, "same"), by_loops(x, (2, 2, 1), (1,) * 3, ((0, 1), (0, 1), (0, 0)), (1,) * 3, of))
    close(volume(x[0], 2, 1, "valid"), by_loops(x, (2,) * 3, (1,) * 3, ((0, 0),) * 3, (1,) * 3, of)[0])
    close(np.moveaxis(volume(np.moveaxis(x, -1, 1), 2, 2, 1, "floor", "NCDHW"), 1, -1), volume(x, 2, 2, 1, "floor"))


def test_avg_pool_ignores_padding() -> None:
    close(pb.avg_pool(np.ones((1, 3, 3, 1)), 2, 1, "same").ravel(), np.ones(9))
    close(pb.grad(lambda x: pb.avg_pool(x, 2, 2, "same"))(np.ones((1, 3, 3, 1)))[0, :, :, 0],
          [[0.25, 0.25, 0.5], [0.25, 0.25, 0.5], [0.5, 0.5, 1.0]])  # fmt: skip


@pytest.mark.parametrize(("kind", "of"), [("max", np.max), ("avg", np.mean)])
def test_pool_dilations(kind: str, of: Any) -> None:
    x = drawn(1, 5, 4, 2)
    close(pb.pool(x, 2, kind, "valid", 2), by_loops(x, (2, 2), (1, 1), ((0, 0),) * 2, (2, 2), of))
    around = np.pad(x - 9, ((0, 0), (1, 1), (1, 1), (0, 0)))  # zeros, which are elements then
    close(pb.pool(x - 9, 2, kind, "same", 2), by_loops(around, (2, 2), (1, 1), ((0, 0),) * 2, (2, 2), of))


@pytest.mark.parametrize("wrap", [lambda f: f, pb.compile, lambda f: lambda x: pb.vmap(f)(x[None])[0]],
                         ids=["eager", "compiled", "vmap"])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pool_ties(wrap: Any, dtype: str) -> None:
    first = lambda f, x: wrap(pb.grad(f))(x).ravel()
    x = np.array([1.0, 1.0, 0.0, 1.0], dtype).reshape(1, 2, 2, 1)
    pool = lambda x: pb.max_pool(x, 2)
    close(first(pool, x), [1, 0, 0, 0])
    moved = lambda t: pb.jvp(pool, [x], [t])[1]
    close(wrap(moved)(np.arange(5.0, 9.0, dtype=dtype).reshape(x.shape)).ravel(), [5])
    many = np.zeros((1, 20, 20, 1), dtype)
    close(first(lambda x: pb.max_pool(x, 20), many), [1, *[0] * 399])
    close(first(lambda x: pb.max_pool1d(x, 2, 2, "same"), np.ones((1, 5, 1), dtype)), [1, 0, 1, 0, 1])
    close(first(lambda x: pb.max_pool1d(x, 2), np.ones((1, 4, 1), dtype)), [1, 1, 1, 0])
    close(first(lambda x: pb.max_pool3d(x, 2, 2), np.ones((1, 2, 2, 4, 1), dtype)), [1, 0, 1, *[0] * 13])
    close(first(lambda x: pb.max_pool(x, 2, 1, 1), np.full((1, 1, 1, 1), -np.inf, dtype)), [4])  # not to the padding
    close(first(lambda x: pb.pool(x, 2, "max", "valid", 2), np.ones((1, 3, 3, 1), dtype)), [1, *[0] * 8])


@pytest.mark.parametrize(("kind", "of"), [("max", np.max), ("avg", np.mean)])
@pytest.mark.parametrize(("size", "strides", "pad"), [((2, 3), (1, 2), 1), ((3, 2), (2, 1), 1), ((4, 2), (1, 3), 1)])
def test_pool_numeric_pad_unequal_windows(kind: str, of: Any, size: Any, strides: Any, pad: int) -> None:
    x = drawn(2, 4, 5, 2)
    pool = lambda x: getattr(pb, f"{kind}_pool")(x, size, strides, pad)
    want = by_loops(x, size, strides, ((pad, pad),) * 2, (1, 1), of)
    close(pool(x), want)
    close(pb.compile(pool)(x), want)
    close(pb.max_pool_with_argmax(x, size, strides, pad).result, pb.max_pool(x, size, strides, pad))
    checked(pool, x)
    close(pb.compile(pb.grad(pool))(x), pb.grad(pool)(x))
    volume = drawn(1, 4, 3, 5, 1)
    close(
        getattr(pb, f"{kind}_pool3d")(volume, (2, *size), (1, *strides), 1),
        by_loops(volume, (2, *size), (1, *strides), ((1, 1),) * 3, (1,) * 3, of),
    )


@pytest.mark.parametrize(("kind", "of"), [("max", np.max), ("avg", np.mean)])
def test_pool3d_same_pad_stride_longer_than_window(kind: str, of: Any) -> None:
    x = drawn(1, 3, 3, 2, 1)
    pool = lambda x: getattr(pb, f"{kind}_pool3d")(x, (2, 2, 1), 2, "same")
    want = by_loops(x, (2, 2, 1), (2, 2, 2), ((0, 1), (0, 1), (0, 0)), (1,) * 3, of)
    close(pool(x), want)
    close(pb.compile(pool)(x), want)
    checked(pool, x)


@pytest.mark.parametrize("pool", [pb.max_pool, pb.avg_pool, pb.max_pool_with_argmax])
def test_window_of_padding_raises(pool: Any) -> None:
    with pytest.raises(ArgumentError, match=r"with pad=2 a window of \(2, 2\) over \(3, 3\) covers padding only"):
        pool(np.ones((1, 3, 3, 1)), 2, 1, 2)


def test_max_pool_of_integers_and_negatives() -> None:
    whole = -np.arange(1, 10).reshape(1, 3, 3, 1)
    z = pb.max_pool(whole, 2, 2, 1)
    assert z.dtype == whole.dtype
    np.testing.assert_array_equal(z.ravel(), [-1, -2, -4, -5])
    assert pb.max_pool(-np.ones((1, 2, 2, 1)), 2, 1, "same").max() == -1


def test_pool_dim_rounding_mode() -> None:
    x = drawn(1, 4, 4, 1)
    assert [pb.max_pool(x, 3, 2, 0, mode).shape[1] for mode in (None, "floor", "ceil")] == [1, 1, 2]
    close(pb.avg_pool(x, 3, 2, 0, "ceil")[0, 1, 1, 0], x[0, 2:, 2:].mean())
    checked(lambda x: pb.avg_pool(x, 3, 2, 0, "ceil"), x)
    checked(lambda x: pb.max_pool(x, 3, 2, 0, "ceil"), x)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("size", "strides", "pad"), [(2, 1, "valid"), (3, 2, "same"), (2, 2, 1)])
def test_max_pool_with_argmax(size: int, strides: int, pad: Any, batch: bool) -> None:
    x = drawn(2, 5, 4, 3)
    z, places = pb.max_pool_with_argmax(x, size, strides, pad, batch)
    close(z, pb.max_pool(x, size, strides, pad))
    assert places.dtype == np.int32
    flat = np.broadcast_to(x.ravel(), (2, x.size)) if batch else x.reshape(2, -1)
    close(np.take_along_axis(flat, places.reshape(2, -1), 1).reshape(z.shape), z)
    checked(lambda x: pb.max_pool_with_argmax(x, size, strides, pad, batch).result, x)


def test_pool_second_order() -> None:
    x = drawn(1, 4, 4, 1)
    hessian_of_cubes = pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(pb.max_pool(x, 2, 2) ** 3))(x)))(x)
    at_top = np.repeat(np.repeat(pb.max_pool(x, 2, 2), 2, 1), 2, 2)
    close(hessian_of_cubes, np.where(x == at_top, 6 * x, 0))


# ---- dilation


@pytest.mark.parametrize(("strides", "pad", "pairs", "dilations"), [
    (1, "valid", ((0, 0), (0, 0)), 1), (2, "same", ((0, 1), (0, 0)), 1), (1, "valid", ((0, 0), (0, 0)), 2),
    (2, 1, ((1, 1), (1, 1)), 2),
])  # fmt: skip
def test_dilation2d_matches_definition(strides: int, pad: Any, pairs: Any, dilations: int) -> None:
    x, f = drawn(2, 5, 6, 2), RANDOM.normal(size=(2, 2, 2))
    x = x[:, :, : 6 if pad != 1 else 5]
    frame = np.pad(x, ((0, 0), *pairs, (0, 0)), constant_values=-np.inf)
    wide = dilations + 1
    out = [(n - wide) // strides + 1 for n in frame.shape[1:3]]
    taps = [
        frame[:, i * dilations :, j * dilations :][:, ::strides, ::strides][:, : out[0], : out[1]] + f[i, j]
        for i in range(2) for j in range(2)
    ]  # fmt: skip
    close(pb.dilation2d(x, f, strides, pad, dilations), np.max(taps, axis=0))
    close(pb.dilation2d(x[1], f, strides, pad, dilations), np.max(taps, axis=0)[1])
    first = pb.dilation2d(np.moveaxis(x, -1, 1), f, strides, pad, dilations, "NCHW")
    close(np.moveaxis(first, 1, -1), np.max(taps, axis=0))
    checked(lambda x, f: pb.dilation2d(x, f, strides, pad, dilations), x, f)


# ---- what is refused

X = np.ones((1, 4, 4, 2))


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: pb.max_pool(np.ones(4), 2), ShapeError, r"max_pool: x must have rank 4, or 3 .*shape \(4,\)"),
    (lambda: pb.avg_pool3d(np.ones((2, 2)), 2), ShapeError, r"avg_pool3d: x must have rank 5"),
    (lambda: pb.max_pool(X, 0), ArgumentError, r"max_pool: filter_size must be a positive integer.*got 0"),
    (lambda: pb.max_pool(X, [2, 2, 2]), ArgumentError, r"max_pool: filter_size .*got \[2, 2, 2\]"),
    (lambda: pb.max_pool(X, 2, -1), ArgumentError, r"max_pool: strides must be .*got -1"),
    (lambda: pb.avg_pool(X, 5), ShapeError, r"avg_pool: a window of \(5, 5\) does not fit into \(4, 4\)"),
    (lambda: pb.avg_pool(X, 2, 1, "same", "ceil"), ArgumentError, r"avg_pool: with dim_rounding_mode 'ceil'"),
    (lambda: pb.avg_pool(X, 2, 1, "around"), ArgumentError, r"avg_pool: pad must be .*got 'around'"),
    (lambda: pb.max_pool(X, 2, 1, "valid", None, "NWC"), ArgumentError, r"max_pool: data_format must be 'NHWC'"),
    (lambda: pb.pool(X, 2, "median"), ArgumentError, r"pool: pooling_type must be 'max' or 'avg', got 'median'"),
    (lambda: pb.pool(X, 2, "max", "valid", 2, 2), ArgumentError, r"pool: either strides or dilations must be 1"),
    (lambda: pb.max_pool_with_argmax(X[0], 2), ShapeError, r"max_pool_with_argmax: x must have rank 4"),
    (lambda: pb.dilation2d(X, np.ones((2, 2, 3))), ShapeError, r"dilation2d: x has 2 channels, so filter"),
    (lambda: pb.dilation2d(np.ones(3), np.ones((2, 2, 3))), ShapeError, r"dilation2d: x must have rank 4"),
])  # fmt: skip
def test_pooling_bad_input_raises(call: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_pool_sizes_and_conv_strides_of_length_4_as_in_tensorflow() -> None:
    x = np.arange(96.0).reshape(1, 6, 4, 4)
    short, whole = pb.max_pool(x, [3, 2], [2, 1], "same"), pb.max_pool(x, [1, 3, 2, 1], [1, 2, 1, 1], "same")
    np.testing.assert_array_equal(short, whole)
    y, k = np.moveaxis(x, -1, 1), np.ones((2, 2, 4, 3))
    first = pb.conv2d(y, k, [1, 1, 2, 1], "valid", data_format="NCHW")
    np.testing.assert_array_equal(first, np.moveaxis(pb.conv2d(x, k, [2, 1], "valid"), -1, 1))
    with pytest.raises(ValueError, match="strides must be a positive integer, or 2 of them"):
        pb.conv2d(x, k, [1, 2, 2, 2], "valid")
