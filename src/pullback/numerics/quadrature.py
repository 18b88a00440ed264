"""Nodes and weights of integrals over an interval, as constants that rules and compositions multiply with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

STEP = 0.05
REACH = 3.9  # beyond, the weights are smaller than the rounding of their sum
MIN_DISTANCE = 1e-300  # what is nearer to an end than this adds nothing


@lru_cache
def tanh_sinh() -> tuple[Any, Any]:
    """Return nodes in ``(0, 1)`` and weights, crowded at both ends: singularities there do no harm.

    >>> nodes, weights = tanh_sinh()
    >>> float(np.round(np.sum(weights / np.sqrt(nodes)), 12))
    2.0
    """
    t = np.arange(-REACH, REACH + STEP / 2, STEP)
    u = np.pi * np.sinh(t)
    nodes = 1 / (1 + np.exp(-u))
    weights = STEP * np.pi * np.cosh(t) * nodes / (1 + np.exp(u))
    kept = (nodes > MIN_DISTANCE) & (nodes < 1)
    return nodes[kept], weights[kept]
