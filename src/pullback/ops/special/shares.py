"""Densities of the gamma and beta distributions, and the derivatives of their shares by the shape parameters.

The share below ``x`` is an integral of the density, so its derivative by a shape parameter is the integral of the
density's: a sum over fixed nodes, in plain NumPy, which has derivatives of every order itself.  The side of ``x`` with
the smaller share is integrated, over as many standard deviations as matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import call_unfollowed
from pullback.numerics.quadrature import tanh_sinh
from pullback.ops.special.family import call_function as call

if TYPE_CHECKING:
    from pullback.typing import Value

DEVIATIONS = 40.0  # so far from the middle, a density is 0 in float64


def gamma_density(a: Value, x: Value) -> Any:
    """Return the density of Gamma(a, 1) at ``x``, the derivative of ``gammainc(a, x)`` by ``x``."""
    return np.exp(call("xlogy", a - 1, x) - x - call("gammaln", a))


def gamma_share_by_shape(a: Value, x: Value) -> Any:
    """Return the derivative of ``gammainc(a, x)`` by ``a``."""
    nodes, weights = tanh_sinh()
    below = call_unfollowed(lambda a, x: np.asarray(x < a), a, x)
    spread = call_unfollowed(lambda a: np.asarray(DEVIATIONS * np.sqrt(a) + DEVIATIONS), a)
    start = np.where(below, call_unfollowed(lambda x, s: np.maximum(x - s, 0.0), x, spread), x)
    length = np.where(below, x - start, spread)
    t = np.expand_dims(start, -1) + np.expand_dims(length, -1) * nodes
    a, sign = np.expand_dims(a, -1), np.where(below, 1.0, -1.0)
    log = np.log(t)
    terms = np.exp((a - 1) * log - t - call("gammaln", a)) * (log - call("digamma", a))
    return sign * length * np.sum(terms * weights, -1)


def beta_density(a: Value, b: Value, x: Value) -> Any:
    """Return the density of Beta(a, b) at ``x``, the derivative of ``betainc(a, b, x)`` by ``x``."""
    return np.exp(call("xlogy", a - 1, x) + call("xlog1py", b - 1, -x) - call("betaln", a, b))


def beta_share_by_shapes(a: Value, b: Value, x: Value) -> tuple[Any, Any]:
    """Return the derivatives of ``betainc(a, b, x)`` by ``a`` and by ``b``."""
    nodes, weights = tanh_sinh()
    below = call_unfollowed(lambda a, b, x: np.asarray(x * (a + b) < a), a, b, x)
    spread = call_unfollowed(lambda a, b: DEVIATIONS * np.sqrt(a * b / (a + b + 1)) / (a + b), a, b)
    # the smaller side: [x - length, x], or seen from 1, [y - length, y] with y = 1 - x
    a, b, y = np.where(below, a, b), np.where(below, b, a), np.where(below, x, 1 - x)
    start = call_unfollowed(lambda y, s: np.maximum(y - s, 0.0), y, spread)
    length = y - start
    t = np.expand_dims(start, -1) + np.expand_dims(length, -1) * nodes
    a, b = np.expand_dims(a, -1), np.expand_dims(b, -1)
    log, log1m = np.log(t), np.log1p(-t)
    density = np.exp((a - 1) * log + (b - 1) * log1m - call("betaln", a, b)) * weights
    both = call("digamma", a + b)
    near = length * np.sum(density * (log - call("digamma", a) + both), -1)
    far = length * np.sum(density * (log1m - call("digamma", b) + both), -1)
    return np.where(below, near, -far), np.where(below, far, -near)
