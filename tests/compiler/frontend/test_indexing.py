"""Compiled indexing, gather, scatter and assignment match eager code, without host ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA
from pullback.errors import ShapeError

random = np.random.default_rng(6)
cube, matrix, row = random.standard_normal((7, 9, 5)), random.standard_normal((40, 37)), random.standard_normal(203)
some, pairs = np.array([3, 0, -1, 3]), np.array([[1, 1], [2, -3]])
mask = matrix > 0.5


def replace_elements(x: Any) -> Any:
    z = x * 1
    z[1:-1] = x[1:-1] * 2
    z[0, 3] = 7
    z[:, ::3] = x[:, :26:2]
    z[..., -1] = x[0, 0]
    z[mask] = -x[mask]
    z[[5, 2], [1, 3]] = x[0, :2]
    return z


def program(f: Any, *args: Any) -> Any:
    compiled = pb.compile(f, backend="llvm")
    return compiled(*args), compiled.lower(*args)


def same(f: Any, *args: Any, by_numpy: tuple[str, ...] = ()) -> None:
    """Compiled as without, in three dtypes and with gradients; only what is named runs a NumPy kernel."""
    for dtype in ("f8", "f4", "i4"):
        given = [a.astype(dtype) if a.dtype.kind == "f" else a for a in args]
        both: list[Any] = [(f, given)]
        expected = f(*given)
        if dtype[0] == "f" and expected.dtype.kind == "f":
            w = random.standard_normal(expected.shape).astype(dtype)
            both.append((lambda x, *more: pb.grad(lambda x: pb.sum(f(x, *more[:-1]) * more[-1]))(x), [*given, w]))
        for g, xs in both:
            expected, (found, made) = g(*xs), program(g, *xs)
            assert (np.shape(found), found.dtype) == (np.shape(expected), expected.dtype)
            tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == "f4" else {"rtol": 1e-12, "atol": 1e-13}
            np.testing.assert_allclose(found, expected, **tolerance)
            kernels = [k for k in made.kernels if "NumPy" in k]
            assert not [k for k in kernels if not k.startswith(by_numpy or "none")], kernels
            made.graph.verify()
            np.testing.assert_allclose(pb.compile(g, backend="numpy")(*xs), expected, **tolerance)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[some], lambda x: x[:, some], lambda x: x[some, :, some], lambda x: x[some, some],
        lambda x: x[..., pairs], lambda x: x[np.arange(7) % 2 == 0], lambda x: x[1, 2, 3] * x[-1, 0, -2],
        lambda x: np.transpose(x)[3, 4], lambda x: x[1::3, ::-2], lambda x: x[2, ::2, None], lambda x: x[..., 1::2],
        lambda x: x[-1, 1:8:3], lambda x: x[::-1, 3:4], lambda x: np.take(x, pairs, 1), lambda x: x[:, :, some][:, 2],
        lambda x: x[5:2:-2, 1:9:9], lambda x: x[:, 8::5, ::4],
    ],
)  # fmt: skip
def test_constant_index(f: Any) -> None:
    same(f, cube)


@pytest.mark.parametrize("index", [slice(None, None, 2), slice(1, None, 3), slice(200, 3, -7), slice(0, 203, 202)])
def test_slice_with_step(index: slice) -> None:
    same(lambda x: x[index], row)


def test_reshape_squeeze_flip_of_one_element() -> None:
    same(lambda x: np.reshape(np.sum(x, keepdims=True), ()) + np.squeeze(np.max(x, keepdims=True)), matrix)
    same(lambda x: np.sum(x)[()] + np.flip(np.sum(x)), matrix)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("f", "x", "at"),
    [
        *((lambda x, i, a=axis: pb.gather(x, i, a), cube, i) for axis in (0, 1, -1) for i in (some, pairs)),
        (lambda x, i: pb.gather(x, i, 2, 1), cube, random.integers(-5, 5, (7, 3))),
        (lambda x, i: pb.gather(x, i, 2, 2), cube, random.integers(-5, 5, (7, 9, 4))),
        (lambda x, i: pb.gather(x, i, 1, -1), matrix, random.integers(-5, 5, (40, 1))),
        (lambda x, i: np.take_along_axis(x, i, 1), matrix, random.integers(0, 37, (40, 5))),
        (lambda x, i: np.take_along_axis(x, i, 0), matrix, random.integers(0, 40, (5, 37))),
        (lambda x, i: pb.gather_nd(x, i), cube, np.array([[0, 1], [6, 8], [0, 1], [-1, 2]])),
        (lambda x, i: pb.gather_nd(x, i), cube, np.array([[[0, 1, 2]], [[6, 8, 4]]])),
        (lambda x, i: pb.scatter_nd(i, x, (4, 9, 5)), cube, np.array([[1], [1], [3], [0], [1], [2], [0]])),
    ],
)  # fmt: skip
def test_gather_scatter_with_index_arguments(f: Any, x: Any, at: Any) -> None:
    same(f, x, at)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", [3, 5, 9, 17, 33, 65, 100])
def test_gather_one_row_longer_than_vector(length: int, dtype: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    x, at = random.standard_normal((2, length)).astype(dtype), np.array([1])

    def f(x: Any, at: Any) -> Any:
        return (
            np.take(x, 0, 0), x[[1]], x[np.array(-1)], pb.gather(x, at), np.take(x, at[0], 0),
            pb.segment_sum(x, np.array([0, 0])), pb.unsorted_segment_sum(x, at - np.array([0, 1]), 2),
            pb.grad(lambda x: pb.sum(x[[1]] ** 2))(x),
        )  # fmt: skip

    for found, expected in zip(program(f, x, at)[0], f(x, at), strict=True):
        np.testing.assert_allclose(found, expected, 1e-6)


def test_argmax_cast_to_int8_wraps() -> None:
    x = np.zeros((300, 4))
    x[200] = 1.0  # as int8, -56
    f = lambda x: np.take(x[:, 0], np.argmax(x, 0).astype(np.int8))
    np.testing.assert_array_equal(program(f, x + np.arange(300.0)[:, None] * 1e-3)[0], [0.244] * 4)


def test_take_along_axis_of_length_one_at_constant_indices() -> None:
    at = np.zeros((3, 9), np.int64)
    f = lambda x: np.take_along_axis(x, at, 0)
    np.testing.assert_array_equal(program(f, matrix[:1, :9])[0], f(matrix[:1, :9]))


@pytest.mark.parametrize("ids", [np.array([0, 3, 3, -1, 9, 5, 0]), random.integers(-1, 7, (7, 9)).astype("i4")])
def test_unsorted_segment_sum(ids: Any) -> None:
    same(lambda x, i: pb.unsorted_segment_sum(x, i, 6), cube, ids)
    same(lambda x, i: pb.unsorted_segment_sum(x, i, 6), cube[..., 0].copy(), ids)


@pytest.mark.parametrize("extreme", [pb.unsorted_segment_max, pb.unsorted_segment_min])
def test_unsorted_segment_extremes(extreme: Any) -> None:
    ids, x = np.array([0, 5, 5, -1, 2, 0, 9]), cube.copy()
    x[1, 0] = x[2, 0]  # equal ones share the gradient
    f = lambda x, i: extreme(x, i, 6)[np.array([0, 2, 5])]  # the others are empty
    same(f, x, ids)
    same(f, x[:, 0, 0].copy(), ids)
    x[4, 0] = np.nan
    np.testing.assert_array_equal(program(lambda x, i: extreme(x, i, 6), x, ids)[0], extreme(x, ids, 6))


def test_gather_at_argmax_needs_no_bounds_check() -> None:
    same(lambda x: np.take_along_axis(x, pb.arg_max(x, 1, keepdims=True), 1), matrix)
    same(lambda x: pb.gather(x, pb.arg_max(x, 1), 1), matrix)


def test_index_assignment() -> None:
    same(replace_elements, matrix)

    def twice(x: Any, y: Any) -> Any:
        z = x * 1
        z[np.array([0, 2, 0])] = y  # the last one stays
        return z

    np.testing.assert_array_equal(pb.compile(twice)(np.zeros(3), np.array([1.0, 2.0, 3.0])), [3.0, 0.0, 2.0])


def test_index_gradient_keeps_signed_zero() -> None:
    def step(x: Any, g: Any) -> Any:
        return pb.grad(lambda x: pb.sum(x[::2] * g))(x)

    def by_mask(x: Any, g: Any) -> Any:
        return pb.grad(lambda x: pb.sum(x[np.arange(6) % 2 == 0] * g))(x)

    for f in (step, by_mask):
        found, expected = pb.compile(f)(np.ones(6), np.full(3, -0.0)), f(np.ones(6), np.full(3, -0.0))
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_index_out_of_range_error() -> None:
    x = np.ones((3, 4))
    for i, f in (
        (np.array([4]), lambda x, i: pb.gather(x, i, 1)),
        (np.array([[0], [-5], [1]]), lambda x, i: np.take_along_axis(x, i, 1)),
        (np.array([[1, 4]]), pb.gather_nd),
    ):
        with pytest.raises(ShapeError, match="out of range"):
            pb.compile(f)(x, i)
        with pytest.raises((ShapeError, IndexError), match="out of range"):
            pb.compile(lambda x, i=i, f=f: f(x, i))(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.einsum("ij,kj->ki", x, x), lambda x: np.einsum("ij,ij->i", x, x), lambda x: np.trace(x),
        lambda x: np.diag(x, 1), lambda x: np.diag(x[:, 0], -2), lambda x: pb.diag(x[:5, :3]), lambda x: np.tril(x, 1),
        lambda x: np.roll(x, 3), lambda x: np.roll(x, (1, -2), (0, 1)), lambda x: np.tile(x, (2, 3)),
        lambda x: np.tile(x[0], (9, 1)), lambda x: np.repeat(x, 3, 0), lambda x: np.linalg.norm(x),
        lambda x: pb.norm(x, 3, axis=1), lambda x: np.count_nonzero(x, 0), lambda x: np.zeros_like(x) - x,
        lambda x: np.full_like(x, 3) * x, lambda x: np.max(x, 0) - np.min(x), lambda x: np.einsum("ii->i", x[:37]) * 2,
    ],
)  # fmt: skip
def test_einsum_diag_roll_tile_norm(f: Any) -> None:
    same(f, matrix, by_numpy=("matmul", "pow", "diagonal_fill"))


def test_depth_to_space_and_space_to_batch() -> None:
    x = random.standard_normal((4, 6, 2, 8))
    same(lambda x: pb.depth_to_space(x, 2), x)
    same(lambda x: pb.space_to_depth(x, 2, "NCHW"), x[..., :4].copy())
    same(lambda x: pb.space_to_batch_nd(x, [2, 2], [[1, 1], [0, 2]]), x)
    same(lambda x: pb.batch_to_space_nd(x, [2], [[1, 0]]), x)


def test_special_functions_at_edge_values() -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 0.65, np.inf, -np.inf, np.nan, 5e-324, 1e300, 30.0, -800.0])
    for dtype in ("f4", "f8"):
        with np.errstate(all="ignore"):
            x = np.concatenate([special, random.random(99), random.standard_normal(99) * 3]).astype(dtype)
        y = x[:, None]
        for name in ("expit", "log_expit", "logit", "entr", "xlogy", "xlog1py", "rel_entr"):
            f = getattr(pb.special, name)
            args = (x, y) if name[0] in "xr" else (x,)
            with np.errstate(all="ignore"):
                expected = f(*args)
            found, made = program(f, *args)
            assert not [k for k in made.kernels if "NumPy" in k]
            np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps, err_msg=name)
            np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_along_axis_at_equal_constant_indices(axis: int) -> None:
    x, at = np.arange(8.0).reshape(2, 2, 2), np.zeros((2, 2, 2), int)
    np.testing.assert_array_equal(
        pb.compile(lambda x: np.take_along_axis(x, at, axis))(x), np.take_along_axis(x, at, axis)
    )


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("shape", [(14, 2, 33), (5, 3, 7), (3, 2, 9)])
def test_take_along_axis_that_overwrites_its_indices(
    isa: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last vector overlaps lanes where results are already; these are no positions any more."""
    monkeypatch.setenv(MAX_ISA, isa)
    x = random.standard_normal(shape) * 1e9
    at = random.integers(0, shape[0], shape)
    made = pb.compile(lambda x, at: np.take_along_axis(x, at, 0), cache=False)(x, at)
    np.testing.assert_array_equal(made, np.take_along_axis(x, at, 0))


@pytest.mark.parametrize("steps", [60, 1500], ids=["used twice at every step", "deeper than Python's stack"])
def test_roll_of_transposed_result_of_long_chain(steps: int) -> None:
    def f(x: Any) -> Any:
        y = x.T
        for _ in range(steps):
            y = y * 0.5 + y * 0.25 if steps < 100 else np.negative(y)
        return np.roll(y, 1)

    np.testing.assert_allclose(pb.compile(f)(matrix), f(matrix), rtol=1e-12)


@pytest.mark.parametrize("places", [[1, 2, 0], [2, -3], [0], [1, 1, 2], [0, 1, 2, 0]])
def test_indexing_of_short_last_axis_by_constant_positions(places: list[int]) -> None:
    points = random.standard_normal((6, 11, 3))
    for index in ((..., places), (slice(None), slice(None), np.array(places))):
        same(lambda x, index=index: np.sin(x[index]) * 2.0, points)


def test_cross_product_needs_no_index_arrays() -> None:
    f = pb.grad(lambda x, y: np.sum(np.cross(x, y) ** 3), argnums=0)
    x, y = random.standard_normal((2, 50, 3))
    compiled = pb.compile(f)
    np.testing.assert_allclose(compiled(x, y), f(x, y), rtol=1e-10)
    kinds = {n.kind.name for n in compiled.lower(x, y).stages.legalized}
    assert not kinds & {"take", "scatter"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_repeat_and_its_gradient_match_eager(axis: Any, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 4)).astype(dtype)
    weights = np.random.default_rng(1).standard_normal(np.repeat(x, 3, axis).shape).astype(dtype)

    def f(x: Any) -> Any:
        return np.sum(np.abs(np.repeat(x, 3, axis) * weights) ** 2)

    for found, expected in zip(pb.compile(pb.value_and_grad(f))(x), pb.value_and_grad(f)(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "f4" else 1e-12)


def test_repeat_of_integers_keeps_their_dtype() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    z = np.asarray(pb.compile(lambda x: np.repeat(x, 2, 1))(x))
    assert z.dtype == np.int32
    np.testing.assert_array_equal(z, np.repeat(x, 2, 1))


@pytest.mark.parametrize("index", [True, False, np.array(True), (True, None), (True, ...)], ids=str)
@pytest.mark.parametrize("x", [np.array(2.0), np.arange(3.0)], ids=["number", "vector"])
def test_index_of_one_truth_value(x: Any, index: Any) -> None:
    f = lambda x: x[index] * 2.0
    assert pb.compile(f)(x).shape == f(x).shape
    np.testing.assert_array_equal(pb.compile(f)(x), f(x))
    np.testing.assert_array_equal(pb.compile(pb.grad(f))(x), pb.grad(f)(x))
