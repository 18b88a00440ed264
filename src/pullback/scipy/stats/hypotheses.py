"""Hypothesis tests of samples: a statistic and its p-value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.errors import ArgumentError
from pullback.scipy.arguments import as_float
from pullback.scipy.special import call
from pullback.scipy.stats.summaries import flatten, kurtosis, skew, trim_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from pullback.typing import TensorLike, Value


class TestResult(NamedTuple):
    """A statistic and its p-value: the probability of one at least as extreme under the null hypothesis."""

    statistic: Any
    pvalue: Any


class LinregressResult(NamedTuple):
    """A regression line: slope, intercept, correlation, p-value of no slope, and the standard error."""

    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


def power_divergence(
    f_obs: TensorLike,
    f_exp: TensorLike | None = None,
    ddof: int = 0,
    axis: int | None = 0,
    lambda_: str | float | None = None,
) -> TestResult:
    """Return the divergence of counts from expected ones, and its p-value."""
    powers = {
        "pearson": 1, "log-likelihood": 0, "freeman-tukey": -0.5, "mod-log-likelihood": -1, "neyman": -2,
        "cressie-read": 2 / 3,
    }  # fmt: skip
    power = 1 if lambda_ is None else powers[lambda_] if isinstance(lambda_, str) else lambda_
    observed, axis = flatten(f_obs, axis)
    expected = np.mean(observed, axis, keepdims=True) if f_exp is None else flatten(f_exp, axis)[0]
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
    """Return Pearson's chi-squared test of counts against expected ones."""
    return power_divergence(f_obs, f_exp, ddof, axis)


def f_oneway(*samples: TensorLike, axis: int | None = 0) -> TestResult:
    """Return the analysis of variance of several samples: whether they have one mean."""
    groups = [flatten(s, axis)[0] for s in samples]
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


def _choose_sides(low: Any, high: Any, alternative: str) -> Any:
    """Return the p-value of an alternative, from the probabilities of a smaller and of a larger statistic."""
    if alternative == "two-sided":
        return 2 * np.minimum(low, high)
    if alternative not in ("less", "greater"):
        raise ArgumentError(f"scipy.stats: alternative must be 'two-sided', 'less' or 'greater', got {alternative!r}.")
    return low if alternative == "less" else high


def _judge_t(t: Value, df: Value, alternative: str = "two-sided") -> Any:
    """Return the probability of a value of Student's distribution that is as far out."""
    return _choose_sides(call("stdtr", df, t), call("stdtr", df, -t), alternative)


def _judge_normal(z: Value, alternative: str = "two-sided") -> Any:
    """Return the probability of a value of the normal distribution that is as far out."""
    return _choose_sides(call("ndtr", z), call("ndtr", -z), alternative)


def pearsonr(x: TensorLike, y: TensorLike, *, axis: int | None = 0) -> TestResult:
    """Return the correlation of two samples, and its p-value."""
    x, axis = flatten(x, axis)
    y, axis = flatten(y, axis)
    a, b = x - np.mean(x, axis, keepdims=True), y - np.mean(y, axis, keepdims=True)
    r = np.sum(a * b, axis) / np.sqrt(np.sum(a * a, axis) * np.sum(b * b, axis))
    half = x.shape[axis] / 2 - 1
    share = call("betainc", half + 0 * r, half + 0 * r, (1 - np.abs(r)) / 2)
    return TestResult(r, 2 * share)


def linregress(x: TensorLike, y: TensorLike) -> LinregressResult:
    """Return the least-squares line through points."""
    x, y = as_float(x), as_float(y)
    n = x.shape[0]
    a, b = x - np.mean(x), y - np.mean(y)
    xx, yy, xy = np.mean(a * a), np.mean(b * b), np.mean(a * b)
    slope, r = xy / xx, xy / np.sqrt(xx * yy)
    df = n - 2
    t = r * np.sqrt(df / ((1 - r) * (1 + r)))
    stderr = np.sqrt((1 - r * r) * yy / xx / df)
    return LinregressResult(slope, np.mean(y) - slope * np.mean(x), r, _judge_t(t, df + 0.0 * t), stderr)


def ttest_1samp(
    a: TensorLike, popmean: TensorLike, axis: int | None = 0, *, alternative: str = "two-sided"
) -> TestResult:
    """Return the t test of a mean."""
    a, axis = flatten(a, axis)
    n = a.shape[axis]
    t = (np.mean(a, axis) - as_float(popmean)) / np.sqrt(np.var(a, axis, ddof=1) / n)
    return TestResult(t, _judge_t(t, n - 1 + 0.0 * t, alternative))


def ttest_rel(a: TensorLike, b: TensorLike, axis: int | None = 0, *, alternative: str = "two-sided") -> TestResult:
    """Return the t test of pairs."""
    return ttest_1samp(as_float(a) - as_float(b), 0.0, axis, alternative=alternative)


def ttest_ind(
    a: TensorLike, b: TensorLike, *, axis: int | None = 0, equal_var: bool = True, alternative: str = "two-sided"
) -> TestResult:
    """Return the t test of two independent samples; Welch's if the variances may differ."""
    a, axis = flatten(a, axis)
    b, axis = flatten(b, axis)
    n, m = a.shape[axis], b.shape[axis]
    va, vb = np.var(a, axis, ddof=1), np.var(b, axis, ddof=1)
    apart = np.mean(a, axis) - np.mean(b, axis)
    if equal_var:
        df = n + m - 2.0
        t = apart / np.sqrt(((n - 1) * va + (m - 1) * vb) / df * (1 / n + 1 / m))
        return TestResult(t, _judge_t(t, df + 0.0 * t, alternative))
    va, vb = va / n, vb / m
    t = apart / np.sqrt(va + vb)
    return TestResult(t, _judge_t(t, (va + vb) ** 2 / (va * va / (n - 1) + vb * vb / (m - 1)), alternative))


# ---- one distribution, one variance, one mean


def skewtest(a: TensorLike, axis: int | None = 0, *, alternative: str = "two-sided") -> TestResult:
    """Return D'Agostino's test of the skewness of a normal sample."""
    a, axis = flatten(a, axis)
    n = float(a.shape[axis])
    if n < 8:
        raise ArgumentError(f"skewtest: expected 8 numbers or more, got {n:.0f}.")
    y = skew(a, axis) * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w = math.sqrt(2 * (beta - 1)) - 1
    z = np.arcsinh(y * math.sqrt((w - 1) / 2)) / math.sqrt(math.log(w) / 2)
    return TestResult(z, _judge_normal(z, alternative))


def kurtosistest(a: TensorLike, axis: int | None = 0, *, alternative: str = "two-sided") -> TestResult:
    """Return the test of Anscombe and Glynn of the kurtosis of a normal sample."""
    a, axis = flatten(a, axis)
    n = float(a.shape[axis])
    if n < 5:
        raise ArgumentError(f"kurtosistest: expected 5 numbers or more, got {n:.0f}.")
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (kurtosis(a, axis, fisher=False) - 3 * (n - 1) / (n + 1)) / math.sqrt(variance)
    root = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    degrees = 6 + 8 / root * (2 / root + math.sqrt(1 + 4 / root**2))
    below = 1 + x * math.sqrt(2 / (degrees - 4))
    z = (1 - 2 / (9 * degrees) - np.cbrt((1 - 2 / degrees) / below)) / math.sqrt(2 / (9 * degrees))
    return TestResult(z, _judge_normal(z, alternative))


def normaltest(a: TensorLike, axis: int | None = 0) -> TestResult:
    """Return the test of skewness and kurtosis of a normal sample together."""
    total = skewtest(a, axis).statistic ** 2 + kurtosistest(a, axis).statistic ** 2
    return TestResult(total, call("chdtrc", 2 + 0.0 * total, total))


def jarque_bera(x: TensorLike, *, axis: int | None = None) -> TestResult:
    """Return the test of Jarque and Bera of skewness and kurtosis of a normal sample."""
    x, axis = flatten(x, axis)
    total = x.shape[axis] / 6 * (skew(x, axis) ** 2 + kurtosis(x, axis) ** 2 / 4)
    return TestResult(total, call("chdtrc", 2 + 0.0 * total, total))


def _collect(name: str, samples: tuple[Any, ...], axis: int | None) -> list[Any]:
    """Return the samples with their numbers along the last axis."""
    if len(samples) < 2:
        raise ArgumentError(f"{name}: expected two samples or more, got {len(samples)}.")
    return [np.moveaxis(*flatten(s, axis), -1) for s in samples]


def bartlett(*samples: TensorLike, axis: int | None = 0) -> TestResult:
    """Return Bartlett's test whether samples have one variance."""
    groups = _collect("bartlett", samples, axis)
    k = len(groups)
    freedom = [g.shape[-1] - 1 for g in groups]
    total = sum(freedom)
    spreads = [np.var(g, -1, ddof=1) for g in groups]
    pooled = sum(n * s for n, s in zip(freedom, spreads, strict=True)) / total
    apart = total * np.log(pooled) - sum(n * np.log(s) for n, s in zip(freedom, spreads, strict=True))
    statistic = apart / (1 + (sum(1 / n for n in freedom) - 1 / total) / (3 * (k - 1)))
    return TestResult(statistic, call("chdtrc", k - 1 + 0.0 * statistic, statistic))


def levene(
    *samples: TensorLike, center: str = "median", proportiontocut: float = 0.05, axis: int | None = 0
) -> TestResult:
    """Return Levene's test whether samples have one variance: of the distances from their centers."""
    centers: dict[str, Callable[[Any], Any]] = {
        "mean": lambda g: np.mean(g, -1), "median": lambda g: np.median(g, -1),
        "trimmed": lambda g: trim_mean(g, proportiontocut, -1),
    }  # fmt: skip
    if center not in centers:
        raise ArgumentError(f"levene: center must be 'mean', 'median' or 'trimmed', got {center!r}.")
    groups = _collect("levene", samples, axis)
    return f_oneway(*(np.abs(g - np.expand_dims(centers[center](g), -1)) for g in groups), axis=-1)


def alexandergovern(*samples: TensorLike, axis: int | None = 0) -> TestResult:
    """Return the test of Alexander and Govern whether samples have one mean, though not one variance."""
    groups = _collect("alexandergovern", samples, axis)
    means = np.stack([np.mean(g, -1) for g in groups])
    errors = np.stack([np.var(g, -1, ddof=1) / g.shape[-1] for g in groups])
    middle = np.sum(means / errors, 0) / np.sum(1 / errors, 0)
    v = np.reshape(np.array([g.shape[-1] - 1.0 for g in groups]), (-1, *[1] * (means.ndim - 1)))
    a = v - 0.5
    b = 48 * a * a
    c = np.sqrt(a * np.log1p((means - middle) ** 2 / errors / v))
    z = c + (c**3 + 3 * c) / b - (4 * c**7 + 33 * c**5 + 240 * c**3 + 855 * c) / (10 * b * b + 8 * b * c**4 + 1000 * b)
    total = np.sum(z * z, 0)
    return TestResult(total, call("chdtrc", len(groups) - 1 + 0.0 * total, total))
