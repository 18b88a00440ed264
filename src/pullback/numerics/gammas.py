"""Derivatives of the gamma distribution by its shape parameter, to any order, from its power series.

With ``f`` the density and ``F`` the distribution function of Gamma(alpha, 1) at ``z``, the series is
``F / f = sum(z**(k+1) / (alpha * (alpha+1) * ... * (alpha+k)))``, of positive terms; each of them times ``f`` is the
exponential of ``(alpha+k) * log(z) - z - lgamma(alpha+k+1)``, whose derivatives by ``alpha`` are polygamma functions.
"""

from __future__ import annotations

from math import comb, factorial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pullback.typing import Array, Value

FAR = 16  # from here on the asymptotic series of the polygamma functions has all digits
# The Bernoulli numbers of even order, from the second.
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
DIGITS = 1e-17
BLOCK = 4096  # elements: as many as stay in cache
ROUND = 8  # terms between two convergence checks


def polygamma(n: int, x: Array) -> Any:
    """Return the derivative of order ``n`` of the digamma function for positive ``x``, as float64.

    >>> polygamma(0, np.array([1.0, 10.0]))
    array([-0.57721566,  2.25175259])
    """
    x = np.array(x, np.float64)
    z = np.zeros(x.shape)
    if (x < FAR).any():  # by the recurrence, to where the series holds
        for _ in range(FAR):
            z += _raise_inverse(x, n + 1)
            x += 1
    y = _raise_inverse(x, 1)
    square = y * y
    tail = np.zeros(x.shape)
    for i in range(len(BERNOULLI), 0, -1):
        tail += BERNOULLI[i - 1] * factorial(2 * i + n - 1) / factorial(2 * i)
        tail *= square
    tail += factorial(n) * y / 2
    if n:
        tail += factorial(n - 1)
        tail *= _raise_inverse(x, n)
    else:
        tail -= np.log(x)
    z = factorial(n) * z + tail
    return z if n % 2 else -z


def _raise_inverse(x: Value, n: int) -> Any:
    """Return ``1 / x**n`` by products, which are many times faster than ``power``."""
    y = 1 / x
    z = y
    for _ in range(n - 1):
        z = z * y
    return z


def differentiate_exponential(slopes: list[Any]) -> list[Any]:
    """Return the derivatives of ``exp(h)``, divided by it, from those of ``h``.

    These are the complete Bell polynomials from order 0.

    >>> differentiate_exponential([2.0, 5.0])
    [1.0, 2.0, 9.0]
    """
    slopes_of_exp: list[Any] = [1.0, *slopes[:1]]
    for n in range(1, len(slopes)):
        slopes_of_exp.append(sum(comb(n, i) * slopes_of_exp[n - i] * slopes[i] for i in range(n + 1)))
    return slopes_of_exp


def differentiate_density(alpha: Array, z: Array, n: int) -> Any:
    """Return the derivative of order ``n`` by ``alpha`` of the density at ``z``, divided by the density.

    >>> differentiate_density(np.array([1.0]), np.array([1.0]), 1)
    array([0.57721566])
    """
    slopes = [-polygamma(m, alpha) for m in range(n)]
    if n:
        slopes[0] = slopes[0] + np.log(np.asarray(z, np.float64))
    return differentiate_exponential(slopes)[n] + np.zeros(np.broadcast_shapes(np.shape(alpha), np.shape(z)))


def differentiate_cdf(alpha: Array, z: Array, n: int) -> Any:
    """Return the derivative of order ``n`` by ``alpha`` of the distribution function at ``z``, divided by the density.

    >>> differentiate_cdf(np.array([1.0]), np.array([1.0]), 0)
    array([1.71828183])
    """
    alpha, z = np.broadcast_arrays(np.asarray(alpha, np.float64), np.asarray(z, np.float64))
    a, x = alpha.ravel(), z.ravel()
    sums = [_sum_series(a[i : i + BLOCK], x[i : i + BLOCK], n) for i in range(0, a.size, BLOCK)]
    return np.concatenate(sums).reshape(z.shape) if sums else np.zeros(z.shape)


def _sum_series(alpha: Array, z: Array, n: int) -> Any:
    x, term, total = alpha + 1, z / alpha, np.zeros(z.shape)
    slopes = [-polygamma(m, x) for m in range(n)]
    if n:
        slopes[0] += np.log(z)
    while True:
        for _ in range(ROUND):
            factor = differentiate_exponential(slopes)[n]
            total += term * factor
            y = 1 / x
            term *= z
            term *= y
            if n:
                slopes[0] -= y
            for m in range(1, n):
                y = y * -m / x
                slopes[m] -= y
            x += 1
        if (term * np.maximum(np.abs(factor), 1.0) <= DIGITS * np.abs(total)).all() and (x > z).all():
            return total
