"""Test whether a rule that a user wrote is linear in its cotangents or tangents: only then it can be transposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.convert import float_of
from pullback.core.tensor import Tensor, all_values

PROBE = np.array([0.75, -1.25, 1.0, -0.5, 1.5])  # numbers that rules are tested with
TOLERANCE = 1e-3  # relative; a rule with an iterative solver is linear to about this
Rule = Callable[[list[Any]], Sequence[Any]]


def has_values(x: object) -> bool:
    """Return whether the numbers of a tensor are known, which those of a function that is being compiled are not."""
    return not isinstance(x, Tensor) or np.size(all_values(x)) >= x.size


def sample(x: Any) -> Any:
    """Return numbers from 0.5 to 1.5 in the shape and dtype of ``x``; ones for an integer dtype."""
    if x.dtype.kind not in "fc":
        return np.ones(x.shape, x.dtype)[()]
    return np.random.default_rng(0).uniform(0.5, 1.5, x.shape).astype(x.dtype)[()]


def is_linear(rule: Rule, likes: Sequence[Any]) -> bool | None:
    """Return whether ``rule(-c * x)`` is ``-c * rule(x)`` for sample numbers ``x``; None if numbers are not known.

    ``likes`` have the shapes and dtypes of what it takes.  Factors that are powers of two leave no rounding errors.

    >>> is_linear(lambda ds: [3.0 * ds[0]], [np.ones(2)]), is_linear(lambda ds: [abs(ds[0])], [np.ones(2)])
    (True, False)
    """
    samples = [_make_signed(x) for x in likes]
    factor = -64.0 if any(d.dtype.itemsize <= 2 for d in samples) else -4096.0
    with np.errstate(all="ignore"):
        expected = list(rule(samples))
        if not all(map(has_values, expected)):
            return None
        got = rule([(d * factor).astype(d.dtype)[()] for d in samples])
        return all(_is_scaled(a, b, factor) for a, b in zip(got, expected, strict=True))


def _make_signed(x: Any) -> Any:
    """Return sample numbers of both signs in the shape of ``x`` and the dtype of its derivatives."""
    return np.resize(PROBE, x.shape).astype(float_of(x.dtype))[()]


def _is_scaled(got: Any, expected: Any, factor: float) -> bool:
    if got is None or expected is None:
        return got is expected
    got, expected = np.asarray(all_values(got)), np.asarray(all_values(expected))
    if got.shape != expected.shape:
        return False
    wanted = expected * expected.dtype.type(factor)
    if np.array_equal(got, wanted):
        return True
    known = np.isfinite(got) & np.isfinite(wanted)
    small = np.isfinite(wanted) & (np.abs(wanted) < np.sqrt(np.finfo(wanted.dtype).max))
    if np.any(small & ~known):  # a linear rule with small results does not overflow
        return False
    size = max(np.max(np.abs(got), where=known, initial=0.0), np.max(np.abs(wanted), where=known, initial=0.0))
    return bool(np.all(np.abs(got - wanted) <= TOLERANCE * size, where=known))
