"""Special functions of vectors: against SciPy, and against values that are known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.llvm import llvm_available

pytestmark = pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")
scipy_special = pytest.importorskip("scipy.special")
POSITIVE = np.concatenate([np.linspace(1e-3, 9.5, 400), np.geomspace(1e-30, 1e30, 60), [1.0, 1.5, 2.0, 2.5, 7.5, 8.0]])
AROUND = np.concatenate([np.linspace(-9.0, 9.0, 400), [0.0, -0.0, 40.0, -40.0]])
WIDE = np.concatenate([np.linspace(-30.0, 30.0, 400), np.geomspace(1e-30, 80.0, 60), [0.0, -0.0, 8.0]])
SHARES = np.concatenate([np.linspace(0.001, 0.999, 400), np.geomspace(1e-37, 0.4, 60), 1 - np.geomspace(1e-6, 0.4, 20)])
NEGATIVE = np.linspace(-6.3, -0.1, 57)
EDGES = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 1e300, 1.0])
FUNCTIONS = {
    "gammaln": POSITIVE, "digamma": POSITIVE, "erfc": AROUND, "ndtr": AROUND, "log_ndtr": AROUND,
    "i0": WIDE, "i0e": WIDE, "i1": WIDE, "i1e": WIDE, "erfinv": np.concatenate([SHARES, -SHARES]), "ndtri": SHARES,
}  # fmt: skip


def compute(name: str, *xs: Any) -> Any:
    compiled = pb.compile(getattr(pb.special, name))
    assert not any("NumPy" in step for step in compiled.lower(*xs).kernels)
    return compiled(*xs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_function_matches_scipy(name: str, dtype: str) -> None:
    x = FUNCTIONS[name].astype(dtype)
    with np.errstate(all="ignore"):
        want = getattr(scipy_special, name)(x.astype("f8"))
    least = {"f4": np.finfo("f4").tiny, "f8": 1e-14}[dtype]  # SciPy itself has no more digits beside a zero
    np.testing.assert_allclose(compute(name, x), want, {"f4": 6e-7, "f8": 2e-14}[dtype], least)


@pytest.mark.parametrize("name", ["gammaln", "digamma"])
def test_special_functions_of_negative_arguments_match_scipy(name: str) -> None:
    want = getattr(scipy_special, name)(NEGATIVE)
    np.testing.assert_allclose(compute(name, NEGATIVE), want, 1e-12, 1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_functions_at_domain_edges_match_scipy(name: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = EDGES.astype(dtype)
        want = getattr(scipy_special, name)(x)
    np.testing.assert_allclose(compute(name, x), want, 1e-6)


def test_gammaln_is_precise_beside_its_zeros() -> None:
    """Near 1 and 2 the first terms of the series are all digits."""
    h = np.array([1e-9, -1e-9, 1e-12])
    np.testing.assert_allclose(compute("gammaln", 1 + h), -np.euler_gamma * ((1 + h) - 1), 1e-8)
    np.testing.assert_allclose(compute("gammaln", 2 + h), (1 - np.euler_gamma) * ((2 + h) - 2), 1e-8)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_digamma_is_precise_beside_its_first_negative_root(dtype: str) -> None:
    """Values of mpmath: a term of the reflection formula is some 1e7 times as large as the result."""
    x = np.array([-0.504082977771759, -0.5040000081062317, -0.550000011920929, -11.698951721191406])  # also in f4
    want = [2.7259856236381175686e-7, 7.419991377107875829e-4, -0.41535693656327297241, 0.23489877233011912341]
    tolerance = np.finfo(dtype).eps * np.array([4, 4, 4, 100])
    np.testing.assert_array_less(np.abs(compute("digamma", x.astype(dtype)) / want - 1), tolerance)


def test_normal_distribution_tails_are_accurate() -> None:
    """From the asymptotic series of erfc at 20, of which eight terms are enough."""
    x, series, term = 20.0, 0.0, 1.0
    for k in range(8):
        series += term
        term *= -(2 * k + 1) / (2 * x * x)
    tail = np.exp(-x * x) / (x * np.sqrt(np.pi)) * series
    np.testing.assert_allclose(compute("erfc", np.full(3, x)), tail, 1e-13)
    np.testing.assert_allclose(compute("log_ndtr", np.full(3, -x * np.sqrt(2))), np.log(tail / 2), 1e-14)


def test_bessel_functions_are_finite_where_exp_is_not() -> None:
    x = np.array([711.0, -712.0, 713.0])
    np.testing.assert_allclose(compute("i0", x), scipy_special.i0e(x) * np.exp(np.abs(x) - 20) * np.exp(20), 1e-12)
    np.testing.assert_allclose(compute("i1", x) / compute("i0", x), scipy_special.i1e(x) / scipy_special.i0e(x), 1e-14)


def test_quantiles_of_smallest_probabilities_match_scipy() -> None:
    p = np.array([1e-16, 1e-17, 1e-40, 1e-200, 1e-307, 5e-324, 0.0, 1.0])
    np.testing.assert_allclose(compute("ndtri", p), scipy_special.ndtri(p), 1e-14)
    edges = np.array([1.0, -1.0, 1.5, -1.5, np.nan, 1 - 2.0**-53])
    np.testing.assert_allclose(compute("erfinv", edges), scipy_special.erfinv(edges), 1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_betaln_matches_scipy(dtype: str) -> None:
    low, high = (v.ravel().astype(dtype) for v in np.meshgrid(np.geomspace(1e-25, 40, 40), np.geomspace(1e-25, 60, 43)))
    want = scipy_special.betaln(low.astype("f8"), high.astype("f8"))
    close = {"f4": 1e-6, "f8": 1e-13}[dtype]  # beside 0 as beside 1
    np.testing.assert_allclose(compute("betaln", low, high), want, close, close)
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid([*EDGES[:-2], -1.5, 0.5, 3.0], [*EDGES[:-2], -2.7, 7.5, 2.0]))
    np.testing.assert_allclose(compute("betaln", x, y), scipy_special.betaln(x, y), 1e-5, 1e-6)


def test_betaln_is_precise_where_logarithms_of_gamma_are_large() -> None:
    """Of 2 and of 3 it is known: 1 / (y * (y + 1)), and twice that divided by y + 2."""
    y = np.geomspace(1.0, 1e100, 50)
    np.testing.assert_allclose(compute("betaln", np.full(50, 2.0), y), -np.log(y) - np.log1p(y), 1e-14)
    want = np.log(2) - np.log(y) - np.log1p(y) - np.log(y + 2)
    np.testing.assert_allclose(compute("betaln", y, np.full(50, 3.0)), want, 1e-14)
    np.testing.assert_allclose(
        compute("betaln", np.full(3, -1.5), np.full(3, 1e300)), 1.5 * np.log(1e300) + 0.86004701537648
    )


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_polygamma_of_order_1_matches_scipy(dtype: str) -> None:
    with np.errstate(over="ignore"):
        x = np.concatenate([POSITIVE, NEGATIVE, EDGES]).astype(dtype)
    compiled = pb.compile(lambda x: pb.special.polygamma(1, x))
    assert not any("NumPy" in step for step in compiled.lower(x).kernels)
    with np.errstate(all="ignore"):
        want = scipy_special.polygamma(1, x.astype("f8")).astype(dtype)
    np.testing.assert_allclose(compiled(x), want, {"f4": 1e-5, "f8": 1e-13}[dtype])
    orders = pb.compile(lambda n, x: pb.special.polygamma(n, x) + pb.special.polygamma(2, x))
    np.testing.assert_allclose(
        orders(np.array([1, 3]), x[:2]),
        scipy_special.polygamma([1, 3], x[:2]) + scipy_special.polygamma(2, x[:2]),
        1e-5,
    )


def test_special_function_gradients_match_eager() -> None:
    x = np.linspace(0.2, 12.0, 50)
    total = lambda x: pb.sum(pb.special.gammaln(x) + pb.special.log_ndtr(x) + pb.special.ndtr(-x) + pb.special.erfc(x))
    np.testing.assert_allclose(pb.compile(pb.grad(total))(x), pb.grad(total)(x), 1e-12)
    total = lambda x: pb.sum(pb.special.betaln(x, x + 2) + pb.special.digamma(x) * x)
    np.testing.assert_allclose(pb.compile(pb.grad(total))(x), pb.grad(total)(x), 1e-12)
    share = np.linspace(0.001, 0.999, 50)
    total = lambda x: pb.sum(pb.special.ndtri(x) + pb.special.erfinv(x) * x)
    np.testing.assert_allclose(pb.compile(pb.grad(total))(share), pb.grad(total)(share), 1e-12)
    total = lambda x: pb.sum(pb.special.i0(x) + pb.special.i1(-x) + pb.special.i0e(x) * pb.special.i1e(x - 5))
    np.testing.assert_allclose(pb.compile(pb.grad(total))(x), pb.grad(total)(x), 1e-12)
