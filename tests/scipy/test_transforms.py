"""The functions of pb.scipy are compositions of ops: other transforms follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.scipy import fft, integrate, linalg, ndimage, signal, spatial, special, stats

A = np.array([[2.0, 0.3], [0.1, 1.0]])
V = np.array([0.4, 1.2, 2.5, 0.7])
FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "norm.logpdf": (lambda x: stats.norm.logpdf(x, loc=0.3, scale=1.7), V),
    "gamma.cdf": (lambda x: stats.gamma.cdf(x, 1.7), V),
    "beta.ppf": (lambda x: stats.beta.ppf(x / 4, 1.7, 2.2), V),
    "logsumexp": (lambda x: special.logsumexp(x), V),
    "expm": (linalg.expm, A),
    "solve_sylvester": (lambda a: linalg.solve_sylvester(a, A, A), A),
    "dct": (fft.dct, V),
    "fftconvolve": (lambda x: signal.fftconvolve(x, V), V),
    "gaussian_filter": (lambda x: ndimage.gaussian_filter(x, 0.8), A),
    "cdist": (lambda x: spatial.distance.cdist(x, A + 1.0), A),
    "simpson": (lambda x: integrate.simpson(x), V),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scipy_functions_under_transforms(name: str) -> None:
    f, x = FUNCTIONS[name]
    way = np.cos(np.arange(x.size)).reshape(x.shape)
    y, tangent = pb.jvp(f, [x], [way])
    np.testing.assert_allclose(y, f(x), rtol=1e-12)
    weights = np.sin(1 + np.arange(np.size(y))).reshape(np.shape(y))
    back = pb.grad(lambda x: np.sum(f(x) * weights))(x)
    np.testing.assert_allclose(np.sum(back * way), np.sum(tangent * weights), rtol=1e-9)
    many = np.stack([x, x * 1.1])
    np.testing.assert_allclose(pb.vmap(f)(many), np.stack([f(m) for m in many]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pb.compile(f)(x), f(x), rtol=1e-9, atol=1e-12)

    def directional(x: Any) -> Any:
        return np.sum(pb.grad(lambda x: np.sum(f(x) * weights))(x) * way)

    h = 1e-5
    second = (directional(x + h * way) - directional(x - h * way)) / (2 * h)
    np.testing.assert_allclose(np.sum(pb.grad(directional, unconnected="zero")(x) * way), second, rtol=1e-4, atol=1e-6)


def test_compiled_expm_squares_as_often_as_each_matrix_needs() -> None:
    f = pb.grad(lambda a: np.sum(np.log(1.0 + linalg.expm(a) ** 2)))
    many = np.stack([A / 1e3, A, 20.0 * A])
    expected = np.stack([f(a) for a in many])
    gradient = pb.compile(f)
    np.testing.assert_allclose(np.stack([gradient(a) for a in many]), expected, rtol=1e-9)
    np.testing.assert_allclose(pb.compile(pb.vmap(f))(many), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_of_scipy_functions(dtype: Any) -> None:
    x = pb.tensor(np.array([0.5, 1.5], dtype))
    for f in (stats.norm.logpdf, special.erfi, fft.dct, linalg.toeplitz, lambda x: signal.fftconvolve(x, x)):
        assert f(x).dtype == dtype
