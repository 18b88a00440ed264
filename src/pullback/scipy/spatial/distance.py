"""``scipy.spatial.distance``: distances of vectors, and of all pairs of two sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.names.scipy import FUNCTIONS
from pullback.ops import linalg
from pullback.scipy.arguments import as_float, list_functions, make_fallback
from pullback.scipy.special import call

if TYPE_CHECKING:
    from pullback.typing import Function, TensorLike, Value

NAMES = FUNCTIONS["spatial.distance"]


__getattr__ = partial(make_fallback, "spatial.distance")
__dir__ = partial(list_functions, "spatial.distance")


def _take_root(x: Value) -> Any:
    """Return the square root, with derivative 0 at 0."""
    near = x == 0
    return np.where(near, 0.0, np.sqrt(np.where(near, 1.0, x)))


def _weigh(terms: Value, w: TensorLike | None) -> Any:
    return np.sum(terms if w is None else terms * as_float(w), -1)


def _divide_or_zero(a: Value, b: Value) -> Any:
    none = b == 0
    return np.where(none, 0.0, a / np.where(none, 1.0, b))


# ---- of vectors along the last axis


def sqeuclidean(u: TensorLike, v: TensorLike, w: TensorLike | None = None) -> Any:
    """Return the squared distance."""
    return _weigh((as_float(u) - as_float(v)) ** 2, w)


def euclidean(u: TensorLike, v: TensorLike, w: TensorLike | None = None) -> Any:
    """Return the distance; its derivative is 0 where both are the same point."""
    return _take_root(sqeuclidean(u, v, w))


def cityblock(u: TensorLike, v: TensorLike, w: TensorLike | None = None) -> Any:
    """Return the sum of absolute differences."""
    return _weigh(np.abs(as_float(u) - as_float(v)), w)


def chebyshev(u: TensorLike, v: TensorLike, w: TensorLike | None = None) -> Any:
    """Return the largest absolute difference."""
    apart = np.abs(as_float(u) - as_float(v))
    return np.max(apart if w is None else apart * (as_float(w) > 0), -1)


def minkowski(u: TensorLike, v: TensorLike, p: float = 2, w: TensorLike | None = None) -> Any:
    """Return the ``p``-norm of the difference."""
    if p == np.inf:
        return chebyshev(u, v, w)
    total = _weigh(np.abs(as_float(u) - as_float(v)) ** p, w)
    none = total == 0
    return np.where(none, 0.0, np.where(none, 1.0, total) ** (1 / p))


def seuclidean(u: TensorLike, v: TensorLike, V: TensorLike) -> Any:
    """Return the distance with each component divided by its deviation."""
    return _take_root(np.sum((as_float(u) - as_float(v)) ** 2 / as_float(V), -1))


def mahalanobis(u: TensorLike, v: TensorLike, VI: TensorLike) -> Any:
    """Return the distance by the inverse of a covariance matrix."""
    apart = as_float(u) - as_float(v)
    return _take_root(np.sum(np.matmul(apart, as_float(VI)) * apart, -1))


def cosine(u: TensorLike, v: TensorLike, w: TensorLike | None = None) -> Any:
    """Return 1 minus the cosine of the angle."""
    u, v = as_float(u), as_float(v)
    return 1 - _weigh(u * v, w) / np.sqrt(_weigh(u * u, w) * _weigh(v * v, w))


def correlation(u: TensorLike, v: TensorLike, w: TensorLike | None = None, centered: bool = True) -> Any:
    """Return 1 minus the correlation."""
    u, v = as_float(u), as_float(v)
    if centered:
        share = np.full(u.shape[-1], 1 / u.shape[-1]) if w is None else as_float(w) / np.sum(as_float(w))
        u = u - np.sum(u * share, -1, keepdims=True)
        v = v - np.sum(v * share, -1, keepdims=True)
    return cosine(u, v, w)


def canberra(u: TensorLike, v: TensorLike, w: TensorLike | None = None) -> Any:
    """Return the sum of differences divided by sizes."""
    u, v = as_float(u), as_float(v)
    return _weigh(_divide_or_zero(np.abs(u - v), np.abs(u) + np.abs(v)), w)


def braycurtis(u: TensorLike, v: TensorLike, w: TensorLike | None = None) -> Any:
    """Return the sum of absolute differences divided by that of absolute sums."""
    u, v = as_float(u), as_float(v)
    return _weigh(np.abs(u - v), w) / _weigh(np.abs(u + v), w)


def jensenshannon(
    p: TensorLike, q: TensorLike, base: float | None = None, *, axis: int = 0, keepdims: bool = False
) -> Any:
    """Return the square root of the divergence of Jensen and Shannon."""
    p, q = as_float(p), as_float(q)
    p, q = p / np.sum(p, axis, keepdims=True), q / np.sum(q, axis, keepdims=True)
    middle = (p + q) / 2
    both = call("rel_entr", p, middle) + call("rel_entr", q, middle)
    total = np.sum(both, axis, keepdims=keepdims)
    return _take_root(total / 2 if base is None else total / (2 * math.log(base)))


def _jensenshannon_last(u: Value, v: Value, base: float | None = None) -> Any:
    return jensenshannon(u, v, base, axis=-1)


METRICS: dict[str, Callable[..., Any]] = {
    "euclidean": euclidean, "sqeuclidean": sqeuclidean, "cityblock": cityblock, "chebyshev": chebyshev,
    "minkowski": minkowski, "seuclidean": seuclidean, "mahalanobis": mahalanobis, "cosine": cosine,
    "correlation": correlation, "canberra": canberra, "braycurtis": braycurtis, "jensenshannon": _jensenshannon_last,
}  # fmt: skip
ALIASES = {"l2": "euclidean", "l1": "cityblock", "manhattan": "cityblock", "sqe": "sqeuclidean", "cos": "cosine"}


def _find_metric(
    metric: str | Function, points: list[Any], options: dict[str, Any]
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function of a metric, and its parameters with those filled in that SciPy takes from the data."""
    options = {k: v for k, v in options.items() if v is not None and k != "out"}
    if callable(metric):
        return metric, options
    name = ALIASES.get(str(metric).lower(), str(metric).lower())
    if name not in METRICS:
        raise ArgumentError(f"scipy.spatial.distance: metric {metric!r} is not differentiable; use {sorted(METRICS)}.")
    every = np.concatenate(points)
    if name == "seuclidean" and "V" not in options:
        options["V"] = np.var(every, 0, ddof=1)
    if name == "mahalanobis" and "VI" not in options:
        options["VI"] = np.transpose(linalg.inv(np.cov(np.transpose(every))))
    return METRICS[name], options


def cdist(XA: TensorLike, XB: TensorLike, metric: str | Function = "euclidean", **options: object) -> Any:
    """Return the distances of each row of ``XA`` from each row of ``XB``.

    >>> cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]])
    array([[5., 1.]])
    """
    a, b = as_float(XA), as_float(XB)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ShapeError(f"cdist: expected two matrices with as many columns, got {a.shape} and {b.shape}.")
    f, options = _find_metric(metric, [a, b], options)
    if callable(metric):
        return np.stack([np.stack([f(u, v, **options) for v in b]) for u in a])
    return f(np.expand_dims(a, 1), np.expand_dims(b, 0), **options)


def pdist(X: TensorLike, metric: str | Function = "euclidean", **options: object) -> Any:
    """Return the distances of all pairs of rows, as ``squareform`` reads them."""
    x = as_float(X)
    if x.ndim != 2:
        raise ShapeError(f"pdist: expected a matrix, got shape {x.shape}.")
    f, options = _find_metric(metric, [x], options)
    i, j = np.triu_indices(x.shape[0], 1)
    if callable(metric):
        return np.stack([f(x[k], x[m], **options) for k, m in zip(i, j, strict=True)])
    return f(x[i], x[j], **options)


def squareform(X: TensorLike, force: str = "no", checks: bool = True) -> Any:
    """Return the matrix of distances of all pairs, or the pairs of the matrix."""
    x = as_float(X)
    if x.ndim == 2 or force.lower() == "tovector":
        return x[np.triu_indices(x.shape[0], 1)]
    n = int((1 + math.isqrt(1 + 8 * x.shape[0])) // 2)
    if n * (n - 1) // 2 != x.shape[0]:
        raise ShapeError(
            f"squareform: the vector must have n (n - 1) / 2 elements for some n, as pdist returns, got {x.shape[0]}."
        )
    place = np.zeros((n, n), int)
    i, j = np.triu_indices(n, 1)
    place[i, j] = place[j, i] = 1 + np.arange(len(i))
    return np.concatenate([np.zeros(1, x.dtype), x])[place]
