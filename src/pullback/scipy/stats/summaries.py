"""Numbers that sum up a sample: moments, scores, correlations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.errors import ArgumentError
from pullback.scipy.arguments import as_float, run_plain
from pullback.scipy.special import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Operand, TensorLike, Value

NAMES = (
    "boxcox_llf", "chisquare", "circmean", "circstd", "circvar", "differential_entropy", "energy_distance", "entropy",
    "f_oneway", "gmean", "gstd", "gzscore", "hmean", "iqr", "kstat", "kurtosis", "linregress", "median_abs_deviation",
    "moment", "pearsonr", "pmean", "power_divergence", "sem", "skew", "tmean", "trim_mean", "tsem", "tstd",
    "ttest_1samp", "ttest_ind", "ttest_rel", "tvar", "variation", "wasserstein_distance", "yeojohnson_llf", "zmap",
    "zscore",
)  # fmt: skip


class TestResult(NamedTuple):
    """A statistic, and the probability of one as far out if nothing is going on."""

    statistic: Any
    pvalue: Any


class LinregressResult(NamedTuple):
    """A line through points: slope, intercept, correlation, probability of no slope, and the standard error."""

    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


def _flatten(a: TensorLike, axis: int | None) -> tuple[Any, int]:
    a = as_float(a)
    return (np.reshape(a, -1), 0) if axis is None else (a, axis)


def moment(a: TensorLike, order: Any = 1, axis: int | None = 0, *, center: TensorLike | None = None) -> Any:
    """Return the mean of ``(a - center) ** order``; the center is the mean unless it is given."""
    a, axis = _flatten(a, axis)
    middle = np.mean(a, axis, keepdims=True) if center is None else as_float(center)
    orders = [order] if np.ndim(order) == 0 else [*order]
    made = [
        np.mean((a - middle) ** int(k), axis) if k != 1 or center is not None else np.mean(a - middle, axis)
        for k in orders
    ]
    return made[0] if np.ndim(order) == 0 else np.stack(made)


def skew(a: TensorLike, axis: int | None = 0, bias: bool = True) -> Any:
    """Return the skewness.

    >>> round(float(skew([1.0, 2.0, 5.0])), 6)
    0.528...
    """
    a, axis = _flatten(a, axis)
    n = a.shape[axis]
    apart = a - np.mean(a, axis, keepdims=True)
    made = np.mean(apart**3, axis) / np.mean(apart**2, axis) ** 1.5
    return made if bias else made * math.sqrt((n - 1.0) * n) / (n - 2.0)


def kurtosis(a: TensorLike, axis: int | None = 0, fisher: bool = True, bias: bool = True) -> Any:
    """Return the kurtosis, less 3 where ``fisher``."""
    a, axis = _flatten(a, axis)
    n = a.shape[axis]
    apart = a - np.mean(a, axis, keepdims=True)
    made = np.mean(apart**4, axis) / np.mean(apart**2, axis) ** 2
    if not bias:
        made = ((n * n - 1.0) * made - 3 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3
    return made - 3 if fisher else made


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
    a, axis = _flatten(a, axis)
    return np.std(a, axis, ddof=ddof) / math.sqrt(a.shape[axis])


def variation(a: TensorLike, axis: int | None = 0, ddof: int = 0) -> Any:
    """Return the standard deviation divided by the mean."""
    a, axis = _flatten(a, axis)
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
    a, axis = _flatten(a, axis)
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
    flat, along = _flatten(a, axis)
    count = np.sum(_limit(flat, limits, inclusive), along)
    return tstd(a, limits, inclusive, axis, ddof) / np.sqrt(count)


def gstd(a: TensorLike, axis: int | None = 0, ddof: int = 1) -> Any:
    """Return the geometric standard deviation."""
    return np.exp(np.std(np.log(as_float(a)), axis, ddof=ddof))


def gzscore(a: TensorLike, *, axis: int | None = 0, ddof: int = 0) -> Any:
    """Return the z scores of logarithms."""
    return zscore(np.log(as_float(a)), axis, ddof)


def trim_mean(a: TensorLike, proportiontocut: float, axis: int | None = 0) -> Any:
    """Return the mean without a share of the smallest and of the largest numbers."""
    a, axis = _flatten(a, axis)
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
    x, axis = _flatten(x, axis)
    return np.median(np.abs(x - np.median(x, axis, keepdims=True)), axis) / scale


def entropy(pk: TensorLike, qk: TensorLike | None = None, base: float | None = None, axis: int = 0) -> Any:
    """Return the entropy of shares, or the relative entropy of two, which need not add up to 1."""
    p = as_float(pk)
    p = p / np.sum(p, axis, keepdims=True)
    if qk is None:
        made = np.sum(call("entr", p), axis)
    else:
        q = as_float(qk)
        made = np.sum(call("rel_entr", p, q / np.sum(q, axis, keepdims=True)), axis)
    return made if base is None else made / math.log(base)


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


# ---- circles


def _mean_direction(samples: TensorLike, high: float, low: float, axis: int | None) -> tuple[Any, Any]:
    turned = (as_float(samples) - low) * (2 * math.pi / (high - low))
    return np.mean(np.sin(turned), axis), np.mean(np.cos(turned), axis)


def circmean(samples: TensorLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None) -> Any:
    """Return the mean of angles."""
    s, c = _mean_direction(samples, high, low, axis)
    angle = np.arctan2(s, c)
    angle = np.where(angle < 0, angle + 2 * math.pi, angle)
    return angle * ((high - low) / (2 * math.pi)) + low


def circvar(samples: TensorLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None) -> Any:
    """Return the variance of angles, between 0 and 1."""
    s, c = _mean_direction(samples, high, low, axis)
    return 1 - np.sqrt(s * s + c * c)


def circstd(
    samples: TensorLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None, *, normalize: bool = False
) -> Any:
    """Return the standard deviation of angles."""
    s, c = _mean_direction(samples, high, low, axis)
    made = np.sqrt(-np.log(s * s + c * c))
    return made if normalize else made * ((high - low) / (2 * math.pi))


# ---- two samples and more


def power_divergence(
    f_obs: TensorLike,
    f_exp: TensorLike | None = None,
    ddof: int = 0,
    axis: int | None = 0,
    lambda_: str | float | None = None,
) -> TestResult:
    """Return the divergence of counts from what is expected, and the probability of one as large by chance."""
    powers = {
        "pearson": 1, "log-likelihood": 0, "freeman-tukey": -0.5, "mod-log-likelihood": -1, "neyman": -2,
        "cressie-read": 2 / 3,
    }  # fmt: skip
    power = 1 if lambda_ is None else powers[lambda_] if isinstance(lambda_, str) else lambda_
    observed, axis = _flatten(f_obs, axis)
    expected = np.mean(observed, axis, keepdims=True) if f_exp is None else _flatten(f_exp, axis)[0]
    if power == 1:
        terms = (observed - expected) ** 2 / expected
    elif power == 0:
        terms = 2.0 * call("xlogy", observed, observed / expected)
    elif power == -1:
        terms = 2.0 * call("xlogy", expected + 0 * observed, expected / observed)
    else:
        terms = observed * ((observed / expected) ** power - 1) * (2 / (power * (power + 1)))
    total = np.sum(terms, axis)
    return TestResult(total, call("chdtrc", observed.shape[axis] - 1 - ddof + 0.0 * total, total))


def chisquare(f_obs: TensorLike, f_exp: TensorLike | None = None, ddof: int = 0, axis: int | None = 0) -> TestResult:
    """Return Pearson's test of counts against what is expected."""
    return power_divergence(f_obs, f_exp, ddof, axis)


def f_oneway(*samples: TensorLike, axis: int | None = 0) -> TestResult:
    """Return the analysis of variance of several samples: whether they have one mean."""
    groups = [_flatten(s, axis)[0] for s in samples]
    along = 0 if axis is None else axis
    every = np.concatenate(groups, along)
    middle = np.mean(every, along, keepdims=True)
    between: Any = 0.0
    within: Any = 0.0
    for g in groups:
        own = np.mean(g, along, keepdims=True)
        between = between + g.shape[along] * np.squeeze(own - middle, along) ** 2
        within = within + np.sum((g - own) ** 2, along)
    n, m = len(groups) - 1, every.shape[along] - len(groups)
    f = (between / n) / (within / m)
    return TestResult(f, call("fdtrc", n + 0.0 * f, m + 0.0 * f, f))


def _two_sided(t: Value, df: Value) -> Any:
    return 2 * call("stdtr", df, -np.abs(t))


def pearsonr(x: TensorLike, y: TensorLike, *, axis: int | None = 0) -> TestResult:
    """Return the correlation of two samples, and the probability of one as large if there is none."""
    x, axis = _flatten(x, axis)
    y, axis = _flatten(y, axis)
    a, b = x - np.mean(x, axis, keepdims=True), y - np.mean(y, axis, keepdims=True)
    r = np.sum(a * b, axis) / np.sqrt(np.sum(a * a, axis) * np.sum(b * b, axis))
    half = x.shape[axis] / 2 - 1
    share = call("betainc", half + 0 * r, half + 0 * r, (1 - np.abs(r)) / 2)
    return TestResult(r, 2 * share)


def linregress(x: TensorLike, y: TensorLike) -> LinregressResult:
    """Return the line of least squares through points."""
    x, y = as_float(x), as_float(y)
    n = x.shape[0]
    a, b = x - np.mean(x), y - np.mean(y)
    xx, yy, xy = np.mean(a * a), np.mean(b * b), np.mean(a * b)
    slope, r = xy / xx, xy / np.sqrt(xx * yy)
    df = n - 2
    t = r * np.sqrt(df / ((1 - r) * (1 + r)))
    stderr = np.sqrt((1 - r * r) * yy / xx / df)
    return LinregressResult(slope, np.mean(y) - slope * np.mean(x), r, _two_sided(t, df + 0.0 * t), stderr)


def ttest_1samp(a: TensorLike, popmean: TensorLike, axis: int | None = 0) -> TestResult:
    """Return the t test of a mean."""
    a, axis = _flatten(a, axis)
    n = a.shape[axis]
    t = (np.mean(a, axis) - as_float(popmean)) / np.sqrt(np.var(a, axis, ddof=1) / n)
    return TestResult(t, _two_sided(t, n - 1 + 0.0 * t))


def ttest_rel(a: TensorLike, b: TensorLike, axis: int | None = 0) -> TestResult:
    """Return the t test of pairs."""
    return ttest_1samp(as_float(a) - as_float(b), 0.0, axis)


def ttest_ind(a: TensorLike, b: TensorLike, *, axis: int | None = 0, equal_var: bool = True) -> TestResult:
    """Return the t test of two independent samples; Welch's if the variances may differ."""
    a, axis = _flatten(a, axis)
    b, axis = _flatten(b, axis)
    n, m = a.shape[axis], b.shape[axis]
    va, vb = np.var(a, axis, ddof=1), np.var(b, axis, ddof=1)
    apart = np.mean(a, axis) - np.mean(b, axis)
    if equal_var:
        df = n + m - 2.0
        t = apart / np.sqrt(((n - 1) * va + (m - 1) * vb) / df * (1 / n + 1 / m))
        return TestResult(t, _two_sided(t, df + 0.0 * t))
    va, vb = va / n, vb / m
    t = apart / np.sqrt(va + vb)
    return TestResult(t, _two_sided(t, (va + vb) ** 2 / (va * va / (n - 1) + vb * vb / (m - 1))))


def _share_differences(u: TensorLike, v: TensorLike, uw: TensorLike | None, vw: TensorLike | None) -> tuple[Any, Any]:
    """Return the distances between neighbours of both samples together, and the difference of their shares there."""
    u, v = as_float(u), as_float(v)
    every = np.concatenate([u, v])
    order = run_plain(np.argsort, every)
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
    """Return the work to move one sample to another: by their values and weights."""
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


def _yeojohnson(x: Value, lmb: Operand) -> Any:
    positive = x >= 0
    up = call("boxcox1p", np.where(positive, x, 0.0), lmb)
    down = call("boxcox1p", np.where(positive, 0.0, -x), 2 - lmb)
    return np.where(positive, up, -down)


def yeojohnson_llf(lmb: TensorLike, data: TensorLike) -> Any:
    """Return the log-likelihood of the parameter of the Yeo-Johnson transform."""
    x, lmb = as_float(data), as_float(lmb)
    n = x.shape[0]
    made = -n / 2 * np.log(np.var(_yeojohnson(x, lmb), 0))
    return made + (lmb - 1) * np.sum(np.sign(x) * np.log1p(np.abs(x)), 0)


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
    made = _ebrahimi(gaps, n, m) if n <= 1000 else np.mean(np.log(n / (2 * m) * gaps), -1)
    return made if base is None else made / math.log(base)


def _van_es(x: Value, n: int, m: int, base: float | None) -> Any:
    apart = x[..., m:] - x[..., : n - m]
    made = np.sum(np.log((n + 1) / m * apart), -1) / (n - m) + sum(1 / k for k in range(m, n + 1))
    made = made + math.log(m) - math.log(n + 1)
    return made if base is None else made / math.log(base)


def _ebrahimi(gaps: Value, n: int, m: int) -> Any:
    i = np.arange(1, n + 1).astype(float)
    c = np.where(i <= m, 1 + (i - 1) / m, np.where(i >= n - m + 1, 1 + (n - i) / m, 2.0))
    return np.mean(np.log(n * gaps / (c * m)), -1)
