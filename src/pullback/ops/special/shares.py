"""Densities of the gamma and beta distributions, and the derivatives of their CDFs by the shape parameters.

The CDF at ``x`` is an integral of the density, so its derivative by a shape parameter is the integral of that of the
density: a sum over fixed nodes, in plain NumPy, which can be differentiated again.  The smaller of both tails is
integrated, over as many standard deviations as matter.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import call_unfollowed
from pullback.ops.special.family import call_function as call

if TYPE_CHECKING:
    from pullback.typing import Value

DEVIATIONS = 40.0  # so far from the middle, a density is 0 in float64
STEP = 0.05
REACH = 3.9  # beyond, the weights are smaller than the rounding of their sum
MIN_DISTANCE = 1e-300  # what is nearer to an end than this adds nothing


@lru_cache
def _tanh_sinh() -> tuple[Any, Any]:
    """Return nodes in ``(0, 1)`` and weights, crowded at both ends: singularities there do no harm.

    >>> nodes, weights = _tanh_sinh()
    >>> float(np.round(np.sum(weights / np.sqrt(nodes)), 12))
    2.0
    """
    t = np.arange(-REACH, REACH + STEP / 2, STEP)
    u = np.pi * np.sinh(t)
    nodes = 1 / (1 + np.exp(-u))
    weights = STEP * np.pi * np.cosh(t) * nodes / (1 + np.exp(u))
    kept = (nodes > MIN_DISTANCE) & (nodes < 1)
    return nodes[kept], weights[kept]


def gamma_density(a: Value, x: Value) -> Any:
    """Return the density of Gamma(a, 1) at ``x``, the derivative of ``gammainc(a, x)`` by ``x``."""
    return np.exp(call("xlogy", a - 1, x) - x - call("gammaln", a))


def _spread_nodes(start: Value, length: Value, shape: Value) -> tuple[Any, Any, Any]:
    """Return numbers from ``start`` on, their logarithms, and those of ``t ** (shape - 1)`` times their weights.

    From 0 on, ``t`` is a power of the nodes if ``shape`` is below 1: most of the integral of ``t ** (shape - 1)`` lies
    nearer to 0 than floats reach.
    """
    nodes, weights = _tanh_sinh()
    start, length, shape = (np.expand_dims(v, -1) for v in (start, length, shape))
    power = call_unfollowed(lambda shape, start: np.where(start > 0, 1.0, np.minimum(shape, 1.0)), shape, start)
    log_node = np.log(nodes) / power
    near = np.log(length) + log_node
    t = start + length * np.exp(log_node)
    at_zero = call_unfollowed(lambda start: np.asarray(start == 0), start)
    log = np.where(at_zero, near, np.log(np.where(at_zero, 1.0, t)))
    steep = (shape - 1) * log + (1 - power) * log_node  # the second is the derivative of the power
    return t, log, steep + np.log(length * weights / power)


def gamma_share_by_shape(a: Value, x: Value) -> Any:
    """Return the derivative of ``gammainc(a, x)`` by ``a``."""
    inside = call_unfollowed(lambda x: np.asarray((x > 0) & (x < np.inf)), x)
    x = np.where(inside, x, 1.0)
    below = call_unfollowed(lambda a, x: np.asarray(x < a + 1), a, x)
    spread = call_unfollowed(lambda a: np.asarray(DEVIATIONS * np.sqrt(a) + DEVIATIONS), a)
    start = np.where(below, call_unfollowed(lambda x, s: np.maximum(x - s, 0.0), x, spread), x)
    length = np.where(below, x - start, spread)
    t, log, terms = _spread_nodes(start, length, a + 0 * x)
    a = np.expand_dims(a, -1)
    total = np.sum(np.exp(terms - t - call("gammaln", a)) * (log - call("digamma", a)), -1)
    return np.where(inside, np.where(below, total, -total), 0.0)


def beta_density(a: Value, b: Value, x: Value) -> Any:
    """Return the density of Beta(a, b) at ``x``, the derivative of ``betainc(a, b, x)`` by ``x``."""
    return np.exp(call("xlogy", a - 1, x) + call("xlog1py", b - 1, -x) - call("betaln", a, b))


def _find_beta_start(a: Value, b: Value, y: Value) -> Any:
    """Return where to begin below ``y``, so that nothing of Beta(a, b) is lost: it falls as a bell or as a power."""
    total: Any = a + b
    deviation = np.sqrt(a * b / (total + 1)) / total
    return np.maximum(y - DEVIATIONS * (deviation + 1 / a), 0.0)


def beta_share_by_shapes(a: Value, b: Value, x: Value) -> tuple[Any, Any]:
    """Return the derivatives of ``betainc(a, b, x)`` by ``a`` and by ``b``."""
    inside = call_unfollowed(lambda x: np.asarray((x > 0) & (x < 1)), x)
    x = np.where(inside, x, 0.5)
    below = call_unfollowed(lambda a, b, x: np.asarray(x * (a + b) < a), a, b, x)
    # the smaller side: [y - length, y] with y = x, or seen from 1, with y = 1 - x
    a, b, y = np.where(below, a, b), np.where(below, b, a), np.where(below, x, 1 - x)
    start = call_unfollowed(_find_beta_start, a, b, y)
    t, log, terms = _spread_nodes(start, y - start, a + 0 * y)
    a, b = np.expand_dims(a, -1), np.expand_dims(b, -1)
    log1m = np.log1p(-t)
    density = np.exp(terms + (b - 1) * log1m - call("betaln", a, b))
    both = call("digamma", a + b)
    near = np.sum(density * (log - call("digamma", a) + both), -1)
    far = np.sum(density * (log1m - call("digamma", b) + both), -1)
    by_a, by_b = np.where(below, near, -far), np.where(below, far, -near)
    return np.where(inside, by_a, 0.0), np.where(inside, by_b, 0.0)
