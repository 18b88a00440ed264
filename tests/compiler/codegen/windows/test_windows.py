"""Compiled convolutions and pooling match eager code in all geometries, dtypes and orders of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.threads import has_threads
from pullback.compiler.target import MAX_ISA, list_isa_names

CLOSE = {"f4": 1e-4, "f8": 1e-12}


def R(size: tuple[int, ...]) -> Any:
    """Draw an array: the same one for a shape, whatever other tests have run."""
    return np.random.default_rng(size).normal(size=size)


def native(f: Callable[..., Any], *args: Any) -> Any:
    """Return what machine code gives; no op may run as a host op."""
    compiled = pb.compile(f, backend="llvm")
    assert not any("NumPy" in line for line in compiled.lower(*args).kernels)
    return compiled(*args)


def agree(f: Callable[..., Any], *args: Any, dtype: str = "f8") -> None:
    with np.errstate(all="ignore"):
        wanted = f(*args)
    for z, due in zip(native(f, *args), wanted, strict=True):
        assert z.dtype == due.dtype
        scale = np.max(np.abs(due), initial=1.0, where=np.isfinite(due))
        np.testing.assert_allclose(z, due, rtol=CLOSE[dtype], atol=CLOSE[dtype] * scale)


def orders(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the value, the gradients, and a gradient of the gradients."""

    def both(*xs: Any) -> Any:
        def slope(*xs: Any) -> Any:
            return sum(np.sum(np.sin(g)) for g in pb.grads(lambda *xs: np.sum(np.tanh(f(*xs))))(list(xs)))

        return f(*xs), *pb.grads(lambda *xs: np.sum(np.tanh(f(*xs))))(list(xs)), *pb.grads(slope)(list(xs))

    return both


GEOMETRIES: list[tuple[tuple[int, ...], tuple[int, ...], Any, Any, Any]] = [
    ((2, 9, 9, 3), (3, 3, 3, 8), 1, "same", 1), ((2, 9, 10, 3), (5, 3, 3, 20), 1, "valid", 1),
    ((3, 14, 14, 1), (5, 5, 1, 16), 1, "same", 1), ((2, 8, 8, 16), (3, 3, 16, 33), 2, "same", 1),
    ((2, 7, 8, 5), (3, 3, 5, 2), 2, "valid", 1), ((2, 9, 9, 4), (2, 2, 4, 40), 3, "same", 1),
    ((2, 9, 9, 4), (1, 1, 4, 7), 2, "same", 1), ((2, 9, 9, 4), (3, 3, 4, 7), 1, "same", 2),
    ((1, 6, 5, 2), (2, 2, 2, 2), 3, ((0, 1), (2, 0)), 1), ((3, 5, 5, 2), (1, 1, 2, 3), 1, "same", 1),
    ((2, 4, 4, 2), (4, 4, 2, 17), 1, "valid", 1), ((1, 5, 5, 70), (2, 2, 70, 1), 1, 3, 1),
    ((1, 5, 7, 3), (3, 2, 3, 4), (2, 1), "same", 1), ((2, 40, 40, 17), (3, 3, 17, 16), 1, "same", 1),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("x", "filter", "strides", "pad", "dilations"), GEOMETRIES)
def test_compiled_conv2d(x: Any, filter: Any, strides: Any, pad: Any, dilations: Any, dtype: str) -> None:
    f = orders(lambda x, filter: pb.conv2d(x, filter, strides, pad, "NHWC", dilations))
    agree(f, R(size=x).astype(dtype), R(size=filter).astype(dtype) / filter[-2], dtype=dtype)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("x", "filter", "strides", "pad", "dilations"), GEOMETRIES)
def test_depthwise_conv2d(x: Any, filter: Any, strides: Any, pad: Any, dilations: Any, dtype: str) -> None:
    f = orders(lambda x, filter: pb.depthwise_conv2d(x, filter, strides, pad, "NHWC", dilations))
    agree(f, R(size=x).astype(dtype), R(size=(*filter[:3], 1)).astype(dtype), dtype=dtype)


@pytest.mark.parametrize(
    ("f", "x", "filter"),
    [
        (lambda x, w: pb.conv1d(x, w, 2, "same"), (2, 11, 3), (4, 3, 5)),
        (lambda x, w: pb.conv1d(x, w), (1, 300, 2), (7, 2, 16)),
        (lambda x, w: pb.conv3d(x, w, 1, "same"), (2, 4, 5, 6, 2), (3, 2, 3, 2, 9)),
        (lambda x, w: pb.conv3d(x, w, 2, "valid"), (2, 5, 5, 6, 2), (2, 3, 2, 2, 4)),
        (lambda x, w: pb.conv2d(x, w, 1, "same", "NCHW"), (2, 3, 6, 7), (3, 3, 3, 8)),
        (lambda x, w: pb.conv2d(x, w), (6, 7, 3), (3, 3, 3, 8)),
        (lambda x, w: pb.conv2d_transpose(x, w, (2, 8, 8, 3), 2, "same"), (2, 4, 4, 5), (3, 3, 3, 5)),
        (lambda x, w: pb.conv2d_transpose(x, w, (2, 6, 6, 3)), (2, 4, 4, 5), (3, 3, 3, 5)),
        (lambda x, w: pb.separable_conv2d(x, w, np.ones((1, 1, 5, 7))), (2, 6, 6, 5), (3, 3, 5, 1)),
    ],
)
def test_conv1d_conv3d_transposed_and_separable(f: Any, x: Any, filter: Any) -> None:
    agree(orders(f), R(size=x), R(size=filter))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 33, 48, 65, 80, 113])
def test_conv2d_channel_counts(depth: int) -> None:
    f = orders(lambda x, w: pb.conv2d(x, w, 1, "same"))
    agree(f, R(size=(2, 4, 5, 3)).astype("f4"), R(size=(3, 3, 3, depth)).astype("f4"), dtype="f4")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("channels", "dtype"), [(96, "f4"), (64, "f8")])
@pytest.mark.parametrize("strides", [1, 2])
def test_conv2d_large_filters(channels: int, dtype: str, strides: int) -> None:
    f = lambda x, w: (pb.conv2d(x, w), *pb.grads(lambda x, w: np.sum(pb.conv2d(x, w, strides) ** 2))([x, w]))
    agree(f, R(size=(2, 8, 9, channels)).astype(dtype), R(size=(3, 3, channels, channels)).astype(dtype), dtype=dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", list_isa_names())
def test_convolution_with_narrow_vectors(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    agree(
        orders(lambda x, w: pb.max_pool(pb.conv2d(x, w, 1, "same"), 2, 2)), R(size=(2, 6, 7, 3)), R(size=(3, 3, 3, 21))
    )


def test_convolution_of_strided_images() -> None:
    x, w = R(size=(8, 9, 3, 2)).transpose(3, 0, 1, 2)[:, ::-1], R(size=(3, 3, 16, 3)).swapaxes(2, 3)[::-1]
    f = lambda x, w: pb.conv2d(x, w, 1, "same")
    agree(orders(f), x, w)
    agree(orders(lambda x, w: f(np.swapaxes(x, 1, 2)[:, 1:], w[:, 1:])), x, w)  # nor inside
    agree(orders(lambda x: pb.max_pool(np.swapaxes(x, 1, 2)[:, 1:], 2, 2)), x)


@pytest.mark.parametrize(("strides", "pad"), [(1, "same"), (2, "same"), (3, "valid")])
def test_convolution_with_filter_per_example(strides: int, pad: str) -> None:
    f = pb.vmap(lambda x, w: pb.grads(lambda x, w: pb.sum(np.tanh(pb.conv2d(x, w, strides, pad))))([x, w]))
    agree(f, R(size=(3, 2, 7, 7, 4)), R(size=(3, 2, 2, 4, 5)))
    one = lambda w, x: pb.grad(lambda w: pb.sum(np.tanh(pb.conv2d(x, w, strides, pad))))(w)
    agree(lambda w, x: (pb.vmap(lambda x: one(w, x))(x),), R(size=(3, 3, 2, 5)), R(size=(40, 6, 7, 2)))


def test_convolution_of_empty_batch() -> None:
    x, w = np.zeros((0, 6, 6, 3)), R(size=(3, 3, 3, 4))
    z, dx, dw, *_ = native(orders(lambda x, w: pb.max_pool(pb.conv2d(x, w), 2, 2)), x, w)
    assert (z.shape, dx.shape, dw.shape) == ((0, 2, 2, 4), x.shape, w.shape)
    assert not dw.any()


def test_unsupported_convolutions_run_by_numpy() -> None:
    x, w = R(size=(2, 5, 5, 2)), R(size=(2, 2, 2, 3))
    for f, args in (
        (lambda x, w: pb.depthwise_conv2d(x, w), (x, w)),  # several results of each channel
        (lambda x, w: pb.conv2d(x, w), (x.astype(int), w.astype(int))),
        (lambda x: pb.max_pool(x, 2), (x.astype("i4"),)),
        (lambda x, w: pb.conv2d(x, w), (x.astype("f4"), w)),
    ):
        z, due = pb.compile(f)(*args), f(*args)
        assert z.dtype == due.dtype
        np.testing.assert_allclose(z, due, rtol=1e-5, atol=1e-5)


# ---- pooling

POOLS: list[tuple[tuple[int, ...], Any, Any, Any]] = [
    ((6, 6), 2, 2, "valid"), ((7, 7), 2, 2, "valid"), ((7, 6), 2, 2, "same"), ((9, 8), 3, 2, "same"),
    ((5, 5), 3, 1, "same"), ((7, 7), 7, 1, "valid"), ((8, 8), 2, 3, "valid"), ((6, 6), 2, 1, 1),
    ((7, 5), (3, 2), (2, 1), "valid"), ((6, 5), 1, 1, "valid"), ((6, 6), 5, 1, 3),
]  # fmt: skip


def hostile(shape: tuple[int, ...], dtype: str) -> Any:
    """Return images with many ties and with NaN."""
    x = np.round(R(size=shape) * 1.5).astype(dtype)
    x[0, 1, 1], x[1, 0, 2, 0], x[1, 3, 2, 0], x[2, 2:4, 2:4] = np.nan, np.inf, -np.inf, -0.0
    return x


def exactly(z: Any, due: Any) -> None:
    np.testing.assert_array_equal(z, due)
    numbers = ~np.isnan(due)
    np.testing.assert_array_equal(np.signbit(z)[numbers], np.signbit(due)[numbers])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("channels", "dtype"), [(1, "f8"), (3, "f4"), (16, "f8"), (20, "f4")])
@pytest.mark.parametrize(("space", "size", "strides", "pad"), POOLS)
def test_compiled_pooling(space: Any, size: Any, strides: Any, pad: Any, channels: int, dtype: str) -> None:
    x = hostile((3, *space, channels), dtype)
    along, weights = R(size=x.shape).astype(dtype), np.float64(1.5).astype(dtype)
    for pool in (pb.max_pool, pb.avg_pool):
        f = lambda x, pool=pool: pool(x, size, strides, pad)

        def every(x: Any, along: Any, weights: Any, f: Any = f) -> Any:
            first = pb.grad(lambda x: pb.sum(f(x) ** 3 * weights))
            return f(x), first(x), pb.jvp(f, [x], [along])[1], pb.grad(lambda x: pb.sum(first(x) * along))(x)

        agree(every, x, along, weights, dtype=dtype)
        with np.errstate(all="ignore"):
            exactly(native(f, x), f(x))


@pytest.mark.parametrize("strides", [1, 2, 3])
def test_max_pool_gradient_of_ties_matches_eager(strides: int) -> None:
    x = hostile((3, 6, 6, 4), "f8")
    g = pb.max_pool(hostile((3, 6, 6, 4), "f8"), 2, strides)
    f = lambda x, g: pb.vjp(lambda x: pb.max_pool(x, 2, strides), x)[1](g)[0]
    with np.errstate(all="ignore"):
        z, due = native(f, x, g), f(x, g)
    np.testing.assert_allclose(z, due, rtol=1e-15)
    if strides > 1:
        exactly(z, due)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: pb.pool(x, 2, "max", "same", 2),
        lambda x: pb.pool(x, 2, "avg", "valid", 2),
        lambda x: pb.max_pool1d(x[0], 3, 2, "same"),
        lambda x: pb.avg_pool3d(np.reshape(x, (*x.shape, 1)), 2),
    ],
)
def test_pool_1d_2d_3d(f: Any) -> None:
    agree(orders(f), R(size=(2, 5, 6, 3)))


# ---- whole programs


def network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    y = pb.max_pool(pb.relu(pb.conv2d(x, w1, 1, "same") + b1), 2, 2)
    return pb.sum(pb.avg_pool(np.tanh(pb.conv2d(y, w2, 2, "same") + b2), 2, 2) ** 2)


def draw_arguments(dtype: str, images: int = 4) -> list[Any]:
    shapes = (images, 28, 28, 1), (5, 5, 1, 16), (16,), (3, 3, 16, 32), (32,)
    return [R(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_conv_network(backend: Any, dtype: str) -> None:
    args = draw_arguments(dtype)
    f = lambda *args: pb.value_and_grads(network)(list(args))
    value, slopes = pb.compile(f, backend=backend)(*args)
    due, wanted = f(*args)
    np.testing.assert_allclose(value, due, rtol=CLOSE[dtype])
    for g, d in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(g, d, rtol=0, atol=CLOSE[dtype] * np.abs(d).max())


@pytest.mark.skipif(not has_threads(), reason="threads are for Linux")
def test_convolution_results_do_not_depend_on_threads() -> None:
    args = draw_arguments("f4", 32)
    f = lambda *args: pb.value_and_grads(network)(list(args))
    alone, several = (pb.compile(f, threads=n)(*args) for n in (1, 3))
    for a, b in zip([alone[0], *alone[1]], [several[0], *several[1]], strict=True):
        np.testing.assert_array_equal(a, b)


def test_same_convolution_is_emitted_once() -> None:
    def f(x: Any, w: Any, v: Any) -> Any:
        return pb.conv2d(np.tanh(pb.conv2d(x, w, 1, "same")), v, 1, "same")

    text = pb.compile(f, backend="llvm").lower(R(size=(2, 5, 5, 4)), R(size=(3, 3, 4, 4)), R(size=(3, 3, 4, 4))).ir
    assert text.count("define internal") == 2  # the convolution, and tanh between them
