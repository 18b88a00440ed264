"""Compiled Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA

random = np.random.default_rng(4)
LENGTHS = [1, 3, 8, 15, 77, 64]
LAYOUTS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((3,), ()), ((21,), ()), ((), (5,)), ((2,), (37,))]
WAYS = {
    "fft": np.fft.fft,
    "ifft": np.fft.ifft,
    "rfft": np.fft.rfft,
    "irfft": lambda x, axis: np.fft.irfft(x, 2 * x.shape[axis] - 1, axis, "ortho"),
    "irfft of even length": lambda x, axis: np.fft.irfft(x, 8, axis),
    "fft of real": lambda x, axis: np.fft.fft(x.real, axis=axis),
    "ifft of real": lambda x, axis: np.fft.ifft(x.real, 6, axis, "forward"),
}


def draw(shape: tuple[int, ...], way: str) -> Any:
    x = random.normal(size=shape) + 1j * random.normal(size=shape)
    return x.real.copy() if way == "rfft" else x


def _narrow(x: Any) -> Any:
    return x.astype(np.float32 if x.dtype.kind == "f" else np.complex64)


def check(f: Any, x: Any, tolerance: float) -> None:
    """Compare with NumPy; the transform may not run as a host op."""
    compiled: Any = pb.compile(f, backend="llvm")
    found, expected = compiled(x), f(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, 0, tolerance * np.abs(expected).max())
    assert not [k for k in compiled.lower(x).kernels if "NumPy" in k]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("way", WAYS)
def test_fft_of_every_length_and_layout_equals_numpy(isa: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    for i, n in enumerate(LENGTHS[:3] if way == "irfft" else LENGTHS[RUNNABLE.index(isa) % 2 :: 2]):
        before, after = LAYOUTS[(i + len(way)) % len(LAYOUTS)]
        is_single, axis = i % 2 == 0, len(before)
        x = draw((*before, n, *after), way)
        check(
            lambda x, axis=axis: WAYS[way](x, axis=axis), _narrow(x) if is_single else x, 1e-6 if is_single else 1e-14
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["fft", "ifft", "rfft", "fft of real", "irfft"])
def test_long_fft_uses_two_rounds(way: str) -> None:
    bins = {"irfft": lambda x: np.fft.irfft(x, 2 * x.shape[-1] - 2)}
    for shape in ((300,), (2, 256), (600,), (2, 20000)):
        f = bins.get(way) or (lambda x: WAYS[way](x, axis=-1))
        if way == "irfft":
            shape = (*shape[:-1], shape[-1] // 2 + 1)
        check(f, draw(shape, way), 1e-14)


@pytest.mark.parametrize("n", [480, 1000])
def test_long_fft_pads_and_crops_its_input(n: int) -> None:
    check(lambda x: np.fft.rfft(x, n), draw((2, 600), "rfft"), 1e-14)
    check(lambda x: np.fft.irfft(x, n), draw((2, 301), "irfft"), 1e-14)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["fft", "rfft", "irfft", "irfft of even length", "ifft of real"])
def test_fft_does_not_spread_nan_inf_and_rounding_to_other_rows(way: str) -> None:
    for i, shape in enumerate(((6, 33), (16, 64), (3, 600), (21, 5), (5, 10))):
        axis = i % 2
        x = np.moveaxis(draw(shape, way), 0, 1 - axis).copy()
        x = _narrow(x) if i % 3 == 0 else x
        f: Any = pb.compile(lambda x, axis=axis: WAYS[way](x, axis=axis), backend="llvm")
        expected = np.moveaxis(f(x), 1 - axis, 0)
        for value in (np.nan, np.inf, 1e12):
            rows = np.moveaxis(x.copy(), 1 - axis, 0)
            rows[2, 1:3] = value
            found = np.moveaxis(f(np.moveaxis(rows, 0, 1 - axis).copy()), 1 - axis, 0)
            np.testing.assert_array_equal(np.delete(found, 2, 0), np.delete(expected, 2, 0))
            assert not np.array_equal(found[2], expected[2])


def test_fft_of_length_with_large_prime_factor_is_host_op() -> None:
    x = random.normal(size=(3, 34))
    compiled = pb.compile(lambda x: np.abs(np.fft.fft(x)), backend="llvm")
    np.testing.assert_allclose(compiled(x), np.abs(np.fft.fft(x)), 1e-12)
    assert any("NumPy" in k for k in compiled.lower(x).kernels)


def test_fft_blur_and_its_gradient_need_no_host_op() -> None:
    x, kernel = random.normal(size=(12, 20)), random.normal(size=(12, 20))

    def blur(x: Any, kernel: Any) -> Any:
        return np.sum(np.fft.irfft2(np.fft.rfft2(x) * np.fft.rfft2(kernel), (12, 20)) ** 2)

    gradients = pb.value_and_grad(blur, argnums=(0, 1))
    compiled = pb.compile(gradients, backend="llvm")
    (value, found), (expected, exact) = compiled(x, kernel), gradients(x, kernel)
    np.testing.assert_allclose(value, expected, 1e-12)
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_allclose(a, b, 0, 1e-12 * np.abs(b).max())
    assert not [k for k in compiled.lower(x, kernel).kernels if "NumPy" in k]


def test_fft_results_do_not_depend_on_threads() -> None:
    x = random.normal(size=(300, 96))
    f = lambda x: np.fft.fft(np.fft.fft(x), axis=0).real
    np.testing.assert_array_equal(pb.compile(f, threads=2)(x), pb.compile(f, threads=1)(x))


@pytest.mark.parametrize(("columns", "dtype"), [(512, "f8"), (1024, "f4")])
def test_fft_along_axis_0_of_rows_of_whole_memory_pages(columns: int, dtype: str) -> None:
    f = lambda x: np.abs(np.fft.ifft(np.fft.fft(x, axis=0) * 2.0j, axis=0)[3])
    x = np.random.default_rng(0).standard_normal((6, columns)).astype(dtype)
    np.testing.assert_allclose(pb.compile(f, backend="llvm")(x), f(x), rtol=1e-4 if dtype == "f4" else 1e-9, atol=1e-5)


def test_fft2_needs_no_copy_between_its_transforms() -> None:
    x = np.random.default_rng(0).standard_normal((24, 40))
    f = lambda x: np.fft.fft2(x)
    compiled = pb.compile(f, backend="llvm")
    np.testing.assert_allclose(compiled(x), f(x), atol=1e-12)
    assert not [k for k in compiled.lower(x).kernels if k.startswith("kernel")]
