"""Numerically stable elementwise formulas, from which ops that SciPy computes are compiled."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np


def expit(s: Any, x: Any) -> Any:
    e = s.exp(s.minimum(x, 40))  # from there on it is 1
    return e / (e + 1)


def log_expit(s: Any, x: Any) -> Any:
    return -(s.maximum(-x, 0) + s.log1p(s.exp(-s.absolute(x))))


def logit(s: Any, x: Any) -> Any:
    """Return the logit; near 1/2, where it is near 0, by the distance from 1/2."""
    t = (x - 0.5) * 2
    near = s.logical_and(s.greater_equal(x, 0.3), s.less_equal(x, 0.65))
    return s.select(near, s.log1p(t) - s.log1p(-t), s.log(x / (1 - x)))


def xlogy(s: Any, x: Any, y: Any) -> Any:
    return s.select(s.logical_and(s.equal(x, 0), s.equal(y, y)), 0, x * s.log(y))


def xlog1py(s: Any, x: Any, y: Any) -> Any:
    return s.select(s.logical_and(s.equal(x, 0), s.equal(y, y)), 0, x * s.log1p(y))


def entr(s: Any, x: Any) -> Any:
    return s.select(s.equal(x, 0), 0, s.select(s.less(x, 0), -inf, -x * s.log(x)))


def rel_entr(s: Any, x: Any, y: Any) -> Any:
    usual = s.logical_and(s.greater(x, 0), s.greater(y, 0))
    nought = s.logical_and(s.equal(x, 0), s.greater_equal(y, 0))
    known = s.logical_and(s.equal(x, x), s.equal(y, y))
    otherwise = s.select(nought, 0, s.select(known, inf, x + y))
    ratio = x / y
    near = s.logical_and(s.greater(ratio, 0.5), s.less(ratio, 2))
    tiny = float(np.finfo(str(x.dtype).rpartition(".")[2]).tiny)  # the dtype may be of another library
    far = s.logical_or(s.less(ratio, tiny), s.equal(ratio, inf))  # too small or too large to be represented
    log = s.select(near, s.log1p((x - y) / y), s.select(far, s.log(x) - s.log(y), s.log(ratio)))
    return s.select(usual, x * log, otherwise)
