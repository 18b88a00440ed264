"""NumPy's functions of polynomials, whose coefficients are given from the highest power down."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import numpy as np
from numpy.polynomial import polynomial as series

from pullback.core.tape import as_tensor
from pullback.core.tensor import Tensor, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import TABLES, align_operands, wrap_constant


def _as_coefficients(*polynomials: object) -> list[Any]:
    return [np.reshape(p, -1) if np.ndim(p) == 0 else p for p in align_operands(polynomials)]


def _polyadd(a1: Any, a2: Any, /) -> Any:
    a, b = _as_coefficients(a1, a2)
    length = max(len(a), len(b))
    return np.pad(a, (length - len(a), 0)) + np.pad(b, (length - len(b), 0))


def _polymul(a1: Any, a2: Any, /) -> Any:
    return np.convolve(*map(_trim, _as_coefficients(a1, a2)))


def _trim(p: Any) -> Any:
    """Return a polynomial from its first coefficient on that is not 0, as NumPy multiplies; as it is if not known."""
    if isinstance(strip(p), Tensor):
        return p
    present = np.flatnonzero(strip(p))
    return p[int(present[0]) if len(present) else -1 :]


def _polyder(p: Any, /, m: int = 1) -> Any:
    (p,) = _as_coefficients(p)
    for _ in range(_check_order("np.polyder", m)):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


def _polyint(p: Any, /, m: int = 1, k: Any = None) -> Any:
    (p,) = _as_coefficients(p)
    count = _check_order("np.polyint", m)
    constants = _as_coefficients(0.0 if k is None else k)[0]
    if len(constants) not in (1, count):
        raise ArgumentError(f"np.polyint: k has {len(constants)} constants for m={m} integrations.")
    for i in range(count):
        constant = constants[i if len(constants) > 1 else 0]
        p = p / np.arange(len(p), 0, -1)
        p = np.concatenate([p, np.reshape(constant, (1,)).astype(p.dtype)])
    return p


def _check_order(name: str, m: int) -> int:
    if int(m) < 0:
        raise ArgumentError(f"{name}: m must not be negative, got {m}.")
    return int(m)


def _polydiv(u: Any, v: Any, /) -> Any:
    """Return quotient and remainder by long division."""
    u, v = _as_coefficients(u, v)
    count = len(u) - len(v) + 1
    if count < 1:
        return np.zeros_like(u[:1]), u
    rest, quotient = as_tensor(u), []
    for k in range(count):
        factor = rest[k] / v[0]
        quotient.append(factor)
        rest = rest - np.pad(factor * v, (k, count - 1 - k))
    left = rest[count:] if len(v) > 1 else np.zeros_like(rest[:1])
    return np.stack(quotient), _drop_leading_zeros(left)


def _drop_leading_zeros(p: Any) -> Any:
    """Return a polynomial from its first coefficient on that is not negligible, or its last one."""
    large = np.flatnonzero(np.abs(strip(p)) > 1e-8)
    return p[int(large[0]) if len(large) else len(p) - 1 :]


def _poly(seq_of_zeros: Any, /) -> Any:
    zeros = seq_of_zeros
    if np.ndim(zeros) == 2:
        coefficients = _poly(np.linalg.eigvals(zeros))
        return (
            coefficients if zeros.dtype.kind == "c" else np.real(coefficients)
        )  # eigenvalues of real matrices are conjugate pairs
    if np.ndim(zeros) > 2:
        raise ShapeError(f"np.poly: roots or a square matrix are expected, got shape {np.shape(zeros)}.")
    (zeros,) = _as_coefficients(zeros)
    zeros = zeros * 1.0  # integers would overflow
    coefficients = np.ones_like(zeros[:1])
    for i in range(len(zeros)):
        coefficients = np.pad(coefficients, (0, 1)) - zeros[i] * np.pad(coefficients, (1, 0))
    return coefficients


def _roots(p: Any, /) -> Any:
    """Return the eigenvalues of the companion matrix, and 0 for each trailing coefficient that is 0."""
    present = np.flatnonzero(strip(p))
    zeros = len(p) - 1 - int(present[-1]) if len(present) else 0
    if len(present) < 2:
        return wrap_constant("np.roots", np.zeros(zeros), p)
    p = p[int(present[0]) : int(present[-1]) + 1]
    p = p if p.dtype.kind in "fc" else np.astype(p, float)  # the negative of an unsigned integer is none
    n = len(p) - 1
    top = np.reshape(-p[1:] / p[0], (1, n))
    found = np.linalg.eigvals(np.concatenate([top, np.eye(n, dtype=p.dtype)[:-1]]))
    return np.pad(found, (0, zeros)) if zeros else found


def _polyfit(
    x: Any, y: Any, deg: int, /, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """Return the coefficients of the least-squares fit, by columns of the same norm, as NumPy does."""
    if np.ndim(deg):
        raise ArgumentError(f"np.polyfit: deg must be one degree, got {deg!r}.")
    x, y, w = align_operands((x, y, w))
    x = x + 0.0  # integers become floats, as in NumPy
    powers = np.vander(x, int(deg) + 1)
    if w is not None:
        powers = powers * np.expand_dims(w, 1)
        y = y * (np.expand_dims(w, 1) if np.ndim(y) == 2 else w)
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    rcond = len(x) * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    found, residuals, rank, singular = np.linalg.lstsq(powers / scale, y, rcond)
    found = found / (np.expand_dims(scale, 1) if np.ndim(y) == 2 else scale)
    if full:
        return found, residuals, rank, singular, rcond
    if not cov:
        return found
    covariance = np.linalg.inv(np.transpose(powers) @ powers)
    if cov != "unscaled":
        covariance = (np.expand_dims(covariance, 2) if np.ndim(y) == 2 else covariance) * (
            residuals / (len(x) - int(deg) - 1)
        )
    return found, covariance


FUNCTIONS = {
    np.polyadd: _polyadd, np.polysub: lambda a1, a2, /: _polyadd(a1, -as_tensor(_as_coefficients(a2)[0])),
    np.polymul: _polymul, np.polyder: _polyder, np.polyint: _polyint, np.polydiv: _polydiv, np.poly: _poly,
    np.roots: _roots, np.polyfit: _polyfit,
    # NumPy's own code, on objects
    series.polyval2d: unwrap(series.polyval2d), series.polygrid2d: unwrap(series.polygrid2d),
}  # fmt: skip
TABLES.append(FUNCTIONS)
