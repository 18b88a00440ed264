"""Summary statistics of samples: moments, z-scores, quantiles, distances of samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.tensor import call_unfollowed
from pullback.errors import ArgumentError
from pullback.scipy.arguments import as_float
from pullback.scipy.special import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Operand, TensorLike, Value


class DescribeResult(NamedTuple):
    """The summary of a sample: how many numbers, the smallest and the largest, and four moments."""

    nobs: int
    minmax: tuple[Any, Any]
    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any


class DirectionalStats(NamedTuple):
    """The mean of directions: a unit vector, and how long the mean of the unit vectors is."""

    mean_direction: Any
    mean_resultant_length: Any


class SigmaclipResult(NamedTuple):
    """The numbers that are left, and the limits that they are within."""

    clipped: Any
    lower: Any
    upper: Any


def flatten(a: TensorLike, axis: int | None) -> tuple[Any, int]:
    """Return a sample and the axis of its numbers; with the axis None, all of them in a row."""
    a = as_float(a)
    return (np.reshape(a, -1), 0) if axis is None else (a, axis)


def moment(a: TensorLike, order: Any = 1, axis: int | None = 0, *, center: TensorLike | None = None) -> Any:
    """Return the mean of ``(a - center) ** order``; the center is the mean unless it is given."""
    a, axis = flatten(a, axis)
    middle = np.mean(a, axis, keepdims=True) if center is None else as_float(center)
    orders = [order] if np.ndim(order) == 0 else [*order]
    moments = [
        np.mean((a - middle) ** int(k), axis) if k != 1 or center is not None else np.mean(a - middle, axis)
        for k in orders
    ]
    return moments[0] if np.ndim(order) == 0 else np.stack(moments)


def skew(a: TensorLike, axis: int | None = 0, bias: bool = True) -> Any:
    """Return the skewness.

    >>> round(float(skew([1.0, 2.0, 5.0])), 6)
    0.528...
    """
    a, axis = flatten(a, axis)
    n = a.shape[axis]
    apart = a - np.mean(a, axis, keepdims=True)
    value = np.mean(apart**3, axis) / np.mean(apart**2, axis) ** 1.5
    return value if bias or n <= 2 else value * math.sqrt((n - 1.0) * n) / (n - 2.0)


def kurtosis(a: TensorLike, axis: int | None = 0, fisher: bool = True, bias: bool = True) -> Any:
    """Return the kurtosis, less 3 where ``fisher``."""
    a, axis = flatten(a, axis)
    n = a.shape[axis]
    apart = a - np.mean(a, axis, keepdims=True)
    value = np.mean(apart**4, axis) / np.mean(apart**2, axis) ** 2
    if not bias and n > 3:
        value = ((n * n - 1.0) * value - 3 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3
    return value - 3 if fisher else value


def zmap(scores: TensorLike, compare: TensorLike, axis: int | None = 0, ddof: int = 0) -> Any:
    """Return how many standard deviations of ``compare`` each score is from its mean."""
    compare = as_float(compare)
    middle = np.mean(compare, axis, keepdims=True)
    return (as_float(scores) - middle) / np.std(compare, axis, ddof=ddof, keepdims=True)


def zscore(a: TensorLike, axis: int | None = 0, ddof: int = 0) -> Any:
    """Return how many standard deviations each number is from the mean.

    >>> zscore([1.0, 3.0])
    array([-1.,  1.])
    """
    return zmap(a, a, axis, ddof)


def _average(a: Value, weights: TensorLike | None, axis: int | None) -> Any:
    if weights is None:
        return np.mean(a, axis)
    weights = np.broadcast_to(as_float(weights), a.shape)
    return np.sum(a * weights, axis) / np.sum(weights, axis)


def gmean(a: TensorLike, axis: int | None = 0, *, weights: TensorLike | None = None) -> Any:
    """Return the geometric mean."""
    return np.exp(_average(np.log(as_float(a)), weights, axis))


def hmean(a: TensorLike, axis: int | None = 0, *, weights: TensorLike | None = None) -> Any:
    """Return the harmonic mean."""
    return 1 / _average(1 / as_float(a), weights, axis)


def pmean(a: TensorLike, p: float, *, axis: int | None = 0, weights: TensorLike | None = None) -> Any:
    """Return the power mean."""
    return gmean(a, axis, weights=weights) if p == 0 else _average(as_float(a) ** p, weights, axis) ** (1 / p)


def sem(a: TensorLike, axis: int | None = 0, ddof: int = 1) -> Any:
    """Return the standard error of the mean."""
    a, axis = flatten(a, axis)
    return np.std(a, axis, ddof=ddof) / math.sqrt(a.shape[axis])


def variation(a: TensorLike, axis: int | None = 0, *, ddof: int = 0) -> Any:
    """Return the standard deviation divided by the mean."""
    a, axis = flatten(a, axis)
    return np.std(a, axis, ddof=ddof) / np.mean(a, axis)


def tmean(
    a: TensorLike,
    limits: Sequence[TensorLike | None] | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: int | None = None,
) -> Any:
    """Return the mean of the numbers within limits."""
    a = as_float(a)
    inside = _limit(a, limits, inclusive)
    return np.sum(np.where(inside, a, 0.0), axis) / np.sum(inside, axis)


def _limit(a: Value, limits: Sequence[TensorLike | None] | None, inclusive: tuple[bool, bool]) -> Any:
    """Return which numbers are within limits."""
    low, high = (None, None) if limits is None else limits
    inside: Any = np.full(a.shape, True)
    if low is not None:
        inside = inside & (a >= low if inclusive[0] else a > low)
    if high is not None:
        inside = inside & (a <= high if inclusive[1] else a < high)
    return inside


def tvar(
    a: TensorLike,
    limits: Sequence[TensorLike | None] | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: int | None = 0,
    ddof: int = 1,
) -> Any:
    """Return the variance of the numbers within limits."""
    a, axis = flatten(a, axis)
    inside = _limit(a, limits, inclusive)
    count = np.sum(inside, axis, keepdims=True)
    kept = np.where(inside, a, 0.0)
    apart = np.where(inside, a - np.sum(kept, axis, keepdims=True) / count, 0.0)
    return np.sum(apart * apart, axis) / (np.squeeze(count, axis) - ddof)


def tstd(
    a: TensorLike,
    limits: Sequence[TensorLike | None] | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: int | None = 0,
    ddof: int = 1,
) -> Any:
    """Return the standard deviation of the numbers within limits."""
    return np.sqrt(tvar(a, limits, inclusive, axis, ddof))


def tsem(
    a: TensorLike,
    limits: Sequence[TensorLike | None] | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: int | None = 0,
    ddof: int = 1,
) -> Any:
    """Return the standard error of the mean of the numbers within limits."""
    flat, along = flatten(a, axis)
    count = np.sum(_limit(flat, limits, inclusive), along)
    return tstd(a, limits, inclusive, axis, ddof) / np.sqrt(count)


def gstd(a: TensorLike, axis: int | None = 0, ddof: int = 1) -> Any:
    """Return the geometric standard deviation."""
    return np.exp(np.std(np.log(as_float(a)), axis, ddof=ddof))


def gzscore(a: TensorLike, *, axis: int | None = 0, ddof: int = 0) -> Any:
    """Return the z scores of logarithms."""
    return zscore(np.log(as_float(a)), axis, ddof)


def trim_mean(a: TensorLike, proportiontocut: float, axis: int | None = 0) -> Any:
    """Return the mean without a fraction of the smallest and of the largest numbers."""
    a, axis = flatten(a, axis)
    cut = int(proportiontocut * a.shape[axis])
    kept = np.moveaxis(np.sort(a, axis), axis, 0)[cut : a.shape[axis] - cut]
    return np.mean(kept, 0)


def iqr(x: TensorLike, axis: int | None = None, rng: tuple[float, float] = (25, 75)) -> Any:
    """Return the distance of two percentiles, usually the quartiles."""
    x = as_float(x)
    return np.percentile(x, rng[1], axis) - np.percentile(x, rng[0], axis)


def median_abs_deviation(x: TensorLike, axis: int | None = 0, *, scale: str | float = 1.0) -> Any:
    """Return the median of the distances from the median."""
    if scale == "normal":
        scale = 0.6744897501960817
    x, axis = flatten(x, axis)
    return np.median(np.abs(x - np.median(x, axis, keepdims=True)), axis) / scale


def entropy(pk: TensorLike, qk: TensorLike | None = None, base: float | None = None, axis: int = 0) -> Any:
    """Return the entropy of probabilities, or the relative entropy of two sets; they are normalized first."""
    p = as_float(pk)
    p = p / np.sum(p, axis, keepdims=True)
    if qk is None:
        total = np.sum(call("entr", p), axis)
    else:
        q = as_float(qk)
        total = np.sum(call("rel_entr", p, q / np.sum(q, axis, keepdims=True)), axis)
    return total if base is None else total / math.log(base)


def kstat(data: TensorLike, n: int = 2) -> Any:
    """Return the unique unbiased estimate of a cumulant of order 1 to 4."""
    x = np.reshape(as_float(data), -1)
    count = x.shape[0]
    s = [np.sum(x**k) for k in range(1, n + 1)]
    if n == 1:
        return s[0] / count
    if n == 2:
        return (count * s[1] - s[0] ** 2) / (count * (count - 1.0))
    if n == 3:
        return (2 * s[0] ** 3 - 3 * count * s[0] * s[1] + count**2 * s[2]) / (count * (count - 1.0) * (count - 2.0))
    if n != 4:
        raise ArgumentError(f"kstat: n must be 1, 2, 3 or 4, got {n}.")
    top = (
        -6 * s[0] ** 4 + 12 * count * s[0] ** 2 * s[1] - 3 * count * (count - 1.0) * s[1] ** 2
        - 4 * count * (count + 1) * s[0] * s[2] + count**2 * (count + 1) * s[3]
    )  # fmt: skip
    return top / (count * (count - 1.0) * (count - 2.0) * (count - 3.0))


def kstatvar(data: TensorLike, n: int = 2, *, axis: int | None = None) -> Any:
    """Return an unbiased estimate of the variance of ``kstat``, for ``n`` 1 or 2."""
    x, axis = flatten(data, axis)
    count = x.shape[axis]
    second = np.var(x, axis, ddof=1)
    if n == 1:
        return second / count
    if n != 2:
        raise ArgumentError(f"kstatvar: n must be 1 or 2, got {n}.")
    apart = x - np.mean(x, axis, keepdims=True)
    m2, m4 = np.mean(apart**2, axis), np.mean(apart**4, axis)
    fourth = (count**2 / ((count - 1.0) * (count - 2.0) * (count - 3.0))) * ((count + 1) * m4 - 3 * (count - 1) * m2**2)
    return (2 * count * second**2 + (count - 1) * fourth) / (count * (count + 1.0))


def describe(a: TensorLike, axis: int | None = 0, ddof: int = 1, bias: bool = True) -> DescribeResult:
    """Return the number of values, the smallest and the largest, and mean, variance, skewness and kurtosis."""
    a, axis = flatten(a, axis)
    limits = np.min(a, axis), np.max(a, axis)
    moments = np.mean(a, axis), np.var(a, axis, ddof=ddof), skew(a, axis, bias), kurtosis(a, axis, bias=bias)
    return DescribeResult(a.shape[axis], limits, *moments)


def lmoment(
    sample: TensorLike, order: Any = None, *, axis: int | None = 0, sorted: bool = False, standardize: bool = True
) -> Any:
    """Return L-moments, the expected differences of ordered samples: of orders 1 to 4, or of those given."""
    x, axis = flatten(sample, axis)
    x = np.moveaxis(x if sorted else np.sort(x, axis), axis, -1)
    n = x.shape[-1]
    orders = [1, 2, 3, 4] if order is None else np.atleast_1d(order).tolist()
    if max(orders) > n:
        raise ArgumentError(f"lmoment: an order must not be above the number of values, {n}, got {order!r}.")

    def weigh(r: int) -> Any:
        """Return the factors of the ordered numbers: shifted Legendre polynomials of their ranks."""
        terms = [
            (-1) ** (r - k) * math.comb(r, k) * math.comb(r + k, k) / math.comb(n - 1, k) / n
            * np.array([math.comb(j, k) for j in range(n)], float)
            for k in range(r + 1)
        ]  # fmt: skip
        return np.sum(np.stack(terms), 0)

    unscaled = {r: np.sum(x * weigh(r - 1), -1) for r in {*orders, 2}}
    moments = [unscaled[r] / unscaled[2] if standardize and r > 2 else unscaled[r] for r in orders]
    return moments[0] if order is not None and np.ndim(order) == 0 else np.stack(moments)


QUANTILES = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased",
)  # fmt: skip


def quantile(x: TensorLike, p: Any, *, method: str = "linear", axis: int | None = 0) -> Any:
    """Return quantiles along an axis for one probability ``p``, or of a flat sample for several."""
    x, axis = flatten(x, axis)
    if method not in QUANTILES:
        raise ArgumentError(f"quantile: method must be one of {', '.join(QUANTILES)}; got {method!r}.")
    if np.ndim(p) and (np.ndim(p) > 1 or x.ndim > 1):
        raise ArgumentError(f"quantile: p must be one number here, got shape {np.shape(p)} for x of shape {x.shape}.")
    return np.quantile(x, p, axis, method=method)  # type: ignore[call-overload]


def sigmaclip(a: TensorLike, low: float = 4.0, high: float = 4.0) -> SigmaclipResult:
    """Return the numbers within limits of so many standard deviations, found again until none is left out."""
    kept = np.reshape(as_float(a), -1)
    while True:
        middle, spread = np.mean(kept), np.std(kept)
        lower, upper = middle - spread * low, middle + spread * high
        inside = kept[(kept >= lower) & (kept <= upper)]
        if inside.shape == kept.shape:
            return SigmaclipResult(kept, lower, upper)
        kept = inside


# ---- circles and spheres


def directional_stats(samples: TensorLike, *, axis: int = 0, normalize: bool = True) -> DirectionalStats:
    """Return the mean direction of vectors, whose coordinates are along the last axis."""
    x = as_float(samples)
    if x.ndim < 2:
        raise ArgumentError(f"directional_stats: samples must have two axes or more, got shape {x.shape}.")
    x = np.moveaxis(x, axis, 0)
    middle = np.mean(x / np.linalg.norm(x, axis=-1, keepdims=True) if normalize else x, 0)
    length = np.linalg.norm(middle, axis=-1)
    return DirectionalStats(middle / np.expand_dims(length, -1), length)


def _average_direction(samples: TensorLike, high: float, low: float, axis: int | None) -> tuple[Any, Any]:
    turned = (as_float(samples) - low) * (2 * math.pi / (high - low))
    return np.mean(np.sin(turned), axis), np.mean(np.cos(turned), axis)


def circmean(samples: TensorLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None) -> Any:
    """Return the mean of angles."""
    s, c = _average_direction(samples, high, low, axis)
    angle = np.arctan2(s, c)
    angle = np.where(angle < 0, angle + 2 * math.pi, angle)
    return angle * ((high - low) / (2 * math.pi)) + low


def circvar(samples: TensorLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None) -> Any:
    """Return the variance of angles, between 0 and 1."""
    s, c = _average_direction(samples, high, low, axis)
    return 1 - np.sqrt(s * s + c * c)


def circstd(
    samples: TensorLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None, *, normalize: bool = False
) -> Any:
    """Return the standard deviation of angles."""
    s, c = _average_direction(samples, high, low, axis)
    deviation = np.sqrt(-np.log(s * s + c * c))
    return deviation if normalize else deviation * ((high - low) / (2 * math.pi))


# ---- distances of samples


def _share_differences(u: TensorLike, v: TensorLike, uw: TensorLike | None, vw: TensorLike | None) -> tuple[Any, Any]:
    """Return the distances between neighbours of both samples together, and the difference of their shares there."""
    u, v = as_float(u), as_float(v)
    every = np.concatenate([u, v])
    order = call_unfollowed(np.argsort, every)
    gaps = np.diff(every[order])
    shares = []
    for own, other, weights in ((u, 0, uw), (v, u.shape[0], vw)):
        w = (
            np.full(own.shape[0], 1 / own.shape[0])
            if weights is None
            else as_float(weights) / np.sum(as_float(weights))
        )
        pads = (other, every.shape[0] - other - own.shape[0])
        shares.append(np.cumsum(np.pad(w, pads)[order])[:-1])
    return gaps, shares[0] - shares[1]


def wasserstein_distance(
    u_values: TensorLike, v_values: TensorLike, u_weights: TensorLike | None = None, v_weights: TensorLike | None = None
) -> Any:
    """Return the Wasserstein (earth mover's) distance of two samples, by their values and weights."""
    gaps, apart = _share_differences(u_values, v_values, u_weights, v_weights)
    return np.sum(np.abs(apart) * gaps)


def energy_distance(
    u_values: TensorLike, v_values: TensorLike, u_weights: TensorLike | None = None, v_weights: TensorLike | None = None
) -> Any:
    """Return the energy distance of two samples."""
    gaps, apart = _share_differences(u_values, v_values, u_weights, v_weights)
    return math.sqrt(2) * np.sqrt(np.sum(apart * apart * gaps))


# ---- transforms to normality


def boxcox_llf(lmb: TensorLike, data: TensorLike) -> Any:
    """Return the log-likelihood of the parameter of the Box-Cox transform."""
    x, lmb = as_float(data), as_float(lmb)
    n, log = x.shape[0], np.log(x)
    return (lmb - 1) * np.sum(log, 0) - n / 2 * np.log(np.var(call("boxcox", x, lmb), 0))


def transform_yeojohnson(x: Value, lmb: Operand) -> Any:
    """Return the Yeo-Johnson transform with a given parameter."""
    positive = x >= 0
    up = call("boxcox1p", np.where(positive, x, 0.0), lmb)
    down = call("boxcox1p", np.where(positive, 0.0, -x), 2 - lmb)
    return np.where(positive, up, -down)


def yeojohnson_llf(lmb: TensorLike, data: TensorLike) -> Any:
    """Return the log-likelihood of the parameter of the Yeo-Johnson transform."""
    x, lmb = as_float(data), as_float(lmb)
    n = x.shape[0]
    likelihood = -n / 2 * np.log(np.var(transform_yeojohnson(x, lmb), 0))
    return likelihood + (lmb - 1) * np.sum(np.sign(x) * np.log1p(np.abs(x)), 0)


def differential_entropy(values: TensorLike, *, base: float | None = None, axis: int = 0) -> Any:
    """Return Vasicek's estimate of the differential entropy of a sample."""
    x = np.moveaxis(np.sort(as_float(values), axis), axis, -1)
    n = x.shape[-1]
    m = math.floor(math.sqrt(n) + 0.5)
    if not 2 <= 2 * m < n:
        raise ArgumentError(f"differential_entropy: too few values, {n}.")
    place = np.arange(n)
    gaps = x[..., np.minimum(place + m, n - 1)] - x[..., np.maximum(place - m, 0)]
    if n <= 10:  # as SciPy chooses
        return _van_es(x, n, m, base)
    estimate = _ebrahimi(gaps, n, m) if n <= 1000 else np.mean(np.log(n / (2 * m) * gaps), -1)
    return estimate if base is None else estimate / math.log(base)


def _van_es(x: Value, n: int, m: int, base: float | None) -> Any:
    apart: Any = x[..., m:] - x[..., : n - m]
    estimate = np.sum(np.log((n + 1) / m * apart), -1) / (n - m) + sum(1 / k for k in range(m, n + 1))
    estimate = estimate + math.log(m) - math.log(n + 1)
    return estimate if base is None else estimate / math.log(base)


def _ebrahimi(gaps: Value, n: int, m: int) -> Any:
    i = np.arange(1, n + 1).astype(float)
    c = np.where(i <= m, 1 + (i - 1) / m, np.where(i >= n - m + 1, 1 + (n - i) / m, 2.0))
    return np.mean(np.log(n * gaps / (c * m)), -1)
