"""Complex numbers of compiled programs, computed as pairs of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

random = np.random.default_rng(6)
X = random.normal(size=(5, 7)) + 1j * random.normal(size=(5, 7))
Y = random.normal(size=(5, 7)) + 1j * random.normal(size=(5, 7))
R = random.normal(size=(7,))
FUNCTIONS = {
    "arithmetic": lambda x, y, r: (x + y * x - r) * r / 3.0 + 2j,
    "divide": lambda x, y, r: x / y + r / x + y / r + 1.0 / y,
    "conjugate": lambda x, y, r: np.conj(x) * y + np.conj(np.conj(y)) + np.conj(r),
    "parts": lambda x, y, r: np.real(x) + np.imag(y) * np.real(r) + np.angle(x * y) + np.imag(r),
    "absolute": lambda x, y, r: np.abs(x) * np.abs(y) ** 2 + np.abs(r),
    "exp": lambda x, y, r: np.exp(1j * r) * np.exp(x) + np.log(y),
    "sqrt": lambda x, y, r: np.sqrt(x) + np.sqrt(x * 1j),
    "trigonometry": lambda x, y, r: np.sin(x) * np.cos(y) + np.sinh(x) - np.cosh(y),
    "powers": lambda x, y, r: x**2 + y**-1 + np.square(x) * np.reciprocal(y),
    "sums": lambda x, y, r: np.sum(x * y, axis=0) + np.mean(y) + np.cumsum(x, axis=1)[0],
    "moves": lambda x, y, r: np.concatenate([x, y[::-1]], 0)[1:7, ::2].T.reshape(-1) * 2j,
    "choice": lambda x, y, r: np.where(r > 0, x, y) + np.where(x == y, 1.0, x),
    "comparisons": lambda x, y, r: (x != y) | (y.real.astype(y.dtype) == x.real.astype(x.dtype)) | (x == r),
    "choice of reals": lambda x, y, r: np.where(r > 0, x.real.astype(x.dtype), y.real.astype(y.dtype)) * 2.0,
    "indices": lambda x, y, r: x[np.array([0, 3, 3])] * y[1],
    "padding": lambda x, y, r: np.pad(x * y, 1) * 1j,
    "casts": lambda x, y, r: (x + y).astype(np.complex64) * r.astype(np.complex64),
    "matrix product": lambda x, y, r: x @ y.T @ (x @ np.conj(y.T)) + x @ r,
    "numbers that are none": lambda x, y, r: np.isnan(x * np.nan) | np.isinf(x) | np.isfinite(y * r),
    "parts to complex": lambda x, y, r: pb.complex(np.real(x), r) * y,
}
# what there are no formulas for
ON_HOST = {
    "prod": lambda x, y, r: np.prod(x, 0),
    "tan": lambda x, y, r: np.tan(x),
    "truth": lambda x, y, r: (x * np.where(r > 0, 0.0, 1.0)).astype(bool),
    "largest": lambda x, y, r: np.argmax(x, axis=1),
}


def compare(found: Any, expected: Any) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-5 if found.dtype in (np.complex64, np.float32) else 1e-13
    np.testing.assert_allclose(found, expected, tolerance, tolerance)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_arithmetic_matches_numpy(name: str, dtype: str) -> None:
    f, args = FUNCTIONS[name], (X.astype(dtype), Y.astype(dtype), R.astype(X.astype(dtype).real.dtype))
    compiled = pb.compile(f, backend="llvm")
    compare(compiled(*args), f(*args))
    assert not [k for k in compiled.lower(*args).kernels if "NumPy" in k]


@pytest.mark.parametrize("name", ON_HOST)
def test_complex_ops_without_formula_run_on_host(name: str) -> None:
    compare(pb.compile(ON_HOST[name])(X, Y, R), ON_HOST[name](X, Y, R))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("parts", "casts")])
def test_compiled_complex_gradients_match_eager(name: str) -> None:
    def f(x: Any, y: Any, r: Any) -> Any:
        return pb.sum(np.abs(FUNCTIONS[name](x, y, r)) ** 2)

    gradients = pb.grad(f, argnums=(0, 1, 2), unconnected="zero")
    for found, expected in zip(pb.compile(gradients)(X, Y, R), gradients(X, Y, R), strict=True):
        np.testing.assert_allclose(found, expected, 1e-9, 1e-9)


def test_double_conjugate_is_simplified() -> None:
    compiled = pb.compile(lambda x: np.conj(np.conj(np.conj(np.conj(x)))) * 2.0, backend="llvm")
    np.testing.assert_array_equal(compiled(X), X * 2.0)
    assert not any("neg" in k for k in compiled.lower(X).kernels)


@pytest.mark.parametrize("numerator", [0.0, 1.0, -2j, np.inf])
def test_complex_division_by_zero_is_not_finite(numerator: Any) -> None:
    x = np.array([numerator], np.complex128)
    assert not np.isfinite(pb.compile(lambda x: x / (x * 0.0))(x)).any()


def test_complex_roots_on_both_sides_of_branch_cut() -> None:
    x = np.array([complex(-4.0, 0.0), complex(-4.0, -0.0), complex(0.0, 0.0), complex(4.0, -0.0), -1e-300 + 0j])
    np.testing.assert_allclose(pb.compile(np.sqrt)(x), np.sqrt(x), 1e-14)


CUT = np.array([complex(a, b) for a in (-2.0, 3.0) for b in (0.0, -0.0)])
OFF_AND_ON = {
    "of a real array": lambda z: z.real.astype(z.dtype),
    "conjugate of a real array": lambda z: np.conj(z.real.astype(z.dtype)),
    "negative": lambda z: -(z.real + 0j),
    "real minus": lambda z: 1.0 - z,
    "real plus": lambda z: z + 1.0,
    "times a negative number": lambda z: -2.0 * z,
    "times a real array": lambda z: z * -z.real,
    "over a negative number": lambda z: z / -2.0,
    "over a real array": lambda z: z / z.real,
    "real over": lambda z: -2.0 / z,
    "real over a real array": lambda z: 1.0 / z.real.astype(z.dtype),
    "reciprocal": np.reciprocal,
    "constant with -0": lambda z: z + complex(-9.0, -0.0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("outer", [np.sqrt, np.log, np.angle, lambda z: z**0.5])
@pytest.mark.parametrize("name", OFF_AND_ON)
def test_complex_arithmetic_has_branch_cut_of_numpy(name: str, outer: Any) -> None:
    def f(z: Any) -> Any:
        return outer(OFF_AND_ON[name](z))

    np.testing.assert_allclose(pb.compile(f)(CUT), f(CUT), 1e-13, 1e-13)


def test_imaginary_part_of_real_infinities_is_zero() -> None:
    x = np.array([np.inf, -np.inf, -1.0])
    imag = pb.compile(lambda x: np.imag(x.astype(complex)))(x)
    np.testing.assert_array_equal(imag, np.zeros(3))
    assert not np.signbit(imag).any()
