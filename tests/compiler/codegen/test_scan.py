"""Compiled cumulative sums and products, argmax and argmin."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA

random = np.random.default_rng(5)
SHAPES = [(1,), (67,), (300,), (3, 5), (9, 70), (17, 1), (2, 131, 3), (4, 3, 300)]
EVERY = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324])


def natively(f: Any, *args: Any, **how: Any) -> Any:
    """Return what a compiled function gives; no op may run as a host op."""
    compiled = pb.compile(f, backend="llvm", **how)
    found = compiled(*args)
    assert not [k for k in compiled.lower(*args).kernels if "NumPy" in k]
    return found


def draw(shape: Any, dtype: str) -> Any:
    x = random.standard_normal(shape) * 10
    return x > 0 if dtype == "b1" else (np.abs(x) if dtype[0] == "u" else x).astype(dtype)


def close(found: Any, expected: Any, scale: Any, ulps: float) -> None:
    """Check a result within so many ulps of the sum of all magnitudes."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert np.all(np.abs(found - expected) <= ulps * np.finfo(expected.dtype).eps * scale)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("shape", "axis"), EVERY)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_compiled_scans_of_floats(shape: Any, axis: int, dtype: str) -> None:
    x, w = draw(shape, dtype), draw(shape, dtype)
    size = np.abs(x).sum(axis, keepdims=True)
    near = (x * x.dtype.type(0.1)).clip(-2, 2)
    small = (x * x.dtype.type(0.05)).clip(-0.9, 0.9)

    def scans(x: Any, near: Any, small: Any, w: Any, exclusive: bool) -> list[Any]:
        found = []
        for reverse in (False, True):
            way = axis, exclusive, reverse
            sums = pb.grad(lambda x, way=way: pb.sum(pb.cumsum(x, *way) * w))(x)
            products = pb.grad(lambda x, way=way: pb.sum(pb.cumprod(x, *way) * w))(small)
            found += [pb.cumsum(x, *way), pb.cumprod(near, *way), sums, products]
        return found

    for exclusive in (False, True):
        f = partial(scans, exclusive=exclusive)
        found, expected, weights = (
            natively(f, x, near, small, w),
            f(x, near, small, w),
            np.abs(w).sum(axis, keepdims=True),
        )
        for at in (0, 4):  # forward, and in reverse
            close(found[at], expected[at], size, 4)
            np.testing.assert_array_equal(found[at + 1], expected[at + 1])  # one after the other, as NumPy has it
            close(found[at + 2], expected[at + 2], weights, 4)
            close(found[at + 3], expected[at + 3], weights, 64)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["i1", "i4", "u2", "u8", "b1"])
@pytest.mark.parametrize(("shape", "axis"), EVERY[::3])
def test_compiled_scans_of_integers(shape: Any, axis: int, dtype: str) -> None:
    x = draw(shape, dtype)
    for f in (lambda x: pb.cumsum(x, axis), lambda x: pb.cumprod(x, axis, True, True)):
        found, expected = natively(f, x), f(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("length", [8, 200])
def test_scan_keeps_nan_inf_and_signed_zero(length: int) -> None:
    for f in (pb.cumsum, pb.cumprod, lambda x: pb.cumsum(x, 0, False, True)):
        compiled = pb.compile(f, backend="llvm")
        for first in SPECIAL:
            x = np.where(random.random(length) < 0.05, random.choice(SPECIAL, length), 0.5)
            x[0] = first
            with np.errstate(invalid="ignore"):
                found, expected = compiled(x), f(x)
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            known = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("shape", "axis"), [((), None), *EVERY, ((9, 70), None)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "i8", "u8", "b1"])
def test_compiled_argmax_and_argmin(shape: Any, axis: Any, dtype: str) -> None:
    x = np.asarray(draw(shape, dtype))
    same = np.asarray(x > 0).astype(dtype)
    given = [x, same]
    if dtype[0] == "f":
        lost = np.where(random.random(shape) < 0.1, random.choice(SPECIAL, shape), x).astype(dtype)
        given += [np.asarray(lost), np.asarray(np.copysign(same * 0, x))]
    for v in given:
        for f in (lambda x: pb.arg_max(x, axis), lambda x: pb.arg_min(x, axis, keepdims=True)):
            found, expected = natively(f, v), f(v)
            assert (np.shape(found), found.dtype) == (np.shape(expected), expected.dtype)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("inner", [2, 4, 8, 16, 32, 64])
def test_argmax_along_outer_axis(inner: int, dtype: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    x, y = draw((5, 3, inner), dtype), draw((3, inner), dtype)

    def f(x: Any, y: Any) -> Any:
        largest = np.expand_dims(np.argmax(x, 1), 1)
        return largest, np.take_along_axis(x, largest, 1), np.argmin(x, 1), np.argmax(y, 0), np.argmin(y, 0)

    for found, expected in zip(pb.compile(f, backend="llvm")(x, y), f(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(400, 3), (400, 16), (400, 17), (33, 6)])
def test_argmax_of_short_rows(shape: Any) -> None:
    for dtype in ("f4", "f8", "i4"):
        x = np.round(draw(shape, dtype) / 8)
        np.testing.assert_array_equal(natively(lambda x: pb.arg_max(x, 1), x), np.argmax(x, 1))


def test_scan_of_empty_array_and_of_view() -> None:
    assert pb.compile(pb.cumsum)(np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="empty"):
        pb.compile(lambda x: pb.arg_max(x, 0))(np.zeros((0, 3)))

    def program(x: Any) -> Any:
        turned = np.cumsum(np.transpose(np.exp(x))[::2], 1)
        best = pb.arg_max(turned, 0)
        return turned[:, ::-1] * 2 + best, pb.one_hot(best, 4)

    x = random.standard_normal((40, 9))
    for found, expected in zip(natively(program, x), program(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_scan_results_do_not_depend_on_threads(axis: int) -> None:
    x = random.standard_normal((700, 800))
    for f in (lambda x: pb.cumsum(x, axis), lambda x: pb.cumprod(x, axis), lambda x: pb.arg_max(x, axis)):
        np.testing.assert_array_equal(natively(f, x, threads=2), natively(f, x, threads=1))


def test_scan_is_listed_in_program_kernels() -> None:
    program = pb.compile(lambda x: np.cumsum(x, 1), backend="llvm").lower(np.ones((2, 3)))
    assert program.kernels == ["cumsum [2, 3] along 1"]
    program.graph.verify()


@pytest.mark.parametrize("f", [pb.arg_max, pb.arg_min])
def test_search_along_axis_in_list(f: Any) -> None:
    x = np.random.default_rng(0).normal(size=(3, 5))
    for axis in ([1], (0,), [-1]):
        np.testing.assert_array_equal(pb.compile(lambda x, axis=axis: f(x, axis))(x), f(x, axis[0]))
