"""Distributions with a location and a scale: SciPy's methods, from the formulas of the standard distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import Tensor, call_unfollowed, may_hold, strip
from pullback.errors import ArgumentError, NoRuleError
from pullback.scipy.arguments import as_float, is_traced, keep_dtype, load, unwrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import ArrayOrNumber, Operand, TensorLike, Value

Formula = Callable[..., Any]


def split_parameters(
    name: str, shapes: tuple[str, ...], args: tuple[TensorLike, ...], kwargs: dict[str, Any], rest: dict[str, Any]
) -> Any:
    """Return the values of the shape parameters, then those of ``rest``, whose defaults it maps from names."""
    names = [*shapes, *rest]
    if len(args) > len(names):
        raise ArgumentError(f"pb.scipy.stats.{name}: expected {', '.join(names)}; got {len(args)} arguments.")
    named = dict(zip(names, args, strict=False))
    unknown = {*kwargs} - {*names}
    missing = [s for s in shapes if s not in named and s not in kwargs]
    if unknown or missing or {*named} & {*kwargs}:
        raise ArgumentError(
            f"pb.scipy.stats.{name} takes {', '.join(names)}; unknown: {sorted(unknown)}, missing: {missing}."
        )
    values = {**rest, **named, **kwargs}
    return [as_float(values[s]) for s in shapes], [values[s] for s in rest]


class Distribution:
    """The base of distributions: calling one with its parameters freezes it."""

    name: str

    def __call__(self, *args: TensorLike, **kwargs: TensorLike) -> FrozenDistribution:
        return FrozenDistribution(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return refuse_method(self.name, name)


class FormulaDistribution(Distribution):
    """The base of distributions of numbers, whose methods are computed from formulas; some have not every formula."""

    freeze = Distribution.__call__

    def _need(self, formula: Formula | None, method: str) -> Formula:
        if formula is None:
            raise NoRuleError(f"pb.scipy.stats.{self.name}.{method} has no differentiable formula here.")
        return formula

    def var(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the variance."""
        raise NotImplementedError(f"{type(self).__name__} has no var.")

    def std(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the standard deviation."""
        return np.sqrt(self.var(*args, **kwargs))


@dataclass(frozen=True)
class Continuous(FormulaDistribution):
    """A continuous distribution: formulas of the standard one, of ``x`` (or the probability ``q``) and the shapes."""

    name: str
    shapes: tuple[str, ...]
    logpdf_of: Formula
    cdf_of: Formula | None = None
    sf_of: Formula | None = None
    ppf_of: Formula | None = None
    isf_of: Formula | None = None
    mean_of: Formula | None = None
    var_of: Formula | None = None
    entropy_of: Formula | None = None
    logcdf_of: Formula | None = None
    logsf_of: Formula | None = None
    support: Formula = lambda *shapes: (-np.inf, np.inf)

    def _split(self, args: tuple[TensorLike, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        """Return the shapes, the location and the scale."""
        shapes, (loc, scale) = split_parameters(self.name, self.shapes, args, kwargs, {"loc": 0.0, "scale": 1.0})
        return shapes, as_float(loc), as_float(scale)

    def _place(self, x: TensorLike, args: tuple[TensorLike, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """Return ``x`` of the standard distribution, the shapes, and the scale."""
        shapes, loc, scale = self._split(args, kwargs)
        return (as_float(x) - loc) / scale, shapes, scale

    def _clip(self, x: Value, shapes: list[Any]) -> tuple[Any, Any, Any]:
        """Return ``x`` with what is outside the support moved into it, and where it was below and above."""
        low, high = self.support(*shapes)
        if _is_infinite(low) and _is_infinite(high):
            return x, None, None
        below, above = x < low, x > high
        at_low, at_high = x == low, x == high
        if may_hold(at_low | at_high):  # the logarithm of a density that ends in 0 has no derivative there
            with np.errstate(all="ignore"):
                vanishes = ~(strip(self.logpdf_of(strip(x), *map(strip, shapes))) > -np.inf)
            below, above = below | (at_low & vanishes), above | (at_high & vanishes)
        return np.where(below | above, call_unfollowed(_find_inside, low, high), x), below, above

    def logpdf(self, x: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the logarithm of the density at ``x``."""
        y, shapes, scale = self._place(x, args, kwargs)
        inside, below, above = self._clip(y, shapes)
        density = self.logpdf_of(inside, *shapes) - np.log(scale)
        return density if below is None else np.where(below | above, -np.inf, density)

    def pdf(self, x: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the density at ``x``."""
        y, shapes, scale = self._place(x, args, kwargs)
        inside, below, above = self._clip(y, shapes)
        density = np.exp(self.logpdf_of(inside, *shapes)) / scale
        return density if below is None else np.where(below | above, 0.0, density)

    def _share(
        self,
        formula: Formula,
        x: TensorLike,
        args: tuple[TensorLike, ...],
        kwargs: dict[str, Any],
        under: float,
        over: float,
    ) -> Any:
        y, shapes, _ = self._place(x, args, kwargs)
        inside, below, above = self._clip(y, shapes)
        share = formula(inside, *shapes)
        return share if below is None else np.where(below, under, np.where(above, over, share))

    def cdf(self, x: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the cumulative distribution function at ``x``."""
        return self._share(self._need(self.cdf_of, "cdf"), x, args, kwargs, 0.0, 1.0)

    def sf(self, x: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the survival function at ``x``: the probability of more."""
        if self.sf_of is None:
            return 1 - self.cdf(x, *args, **kwargs)
        return self._share(self.sf_of, x, args, kwargs, 1.0, 0.0)

    def logcdf(self, x: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the logarithm of the cumulative distribution function at ``x``."""
        if self.logcdf_of is None:
            return np.log(self.cdf(x, *args, **kwargs))
        return self._share(self.logcdf_of, x, args, kwargs, -np.inf, 0.0)

    def logsf(self, x: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the logarithm of the survival function at ``x``."""
        if self.logsf_of is None:
            return np.log(self.sf(x, *args, **kwargs))
        return self._share(self.logsf_of, x, args, kwargs, 0.0, -np.inf)

    def _quantile(self, formula: Formula, q: Value, args: tuple[TensorLike, ...], kwargs: dict[str, Any]) -> Any:
        shapes, loc, scale = self._split(args, kwargs)
        return formula(q, *shapes) * scale + loc

    def ppf(self, q: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the quantile of ``q``: the inverse of ``cdf``."""
        return self._quantile(self._need(self.ppf_of, "ppf"), as_float(q), args, kwargs)

    def isf(self, q: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the inverse of ``sf`` at ``q``."""
        if self.isf_of is not None:
            return self._quantile(self.isf_of, as_float(q), args, kwargs)
        return self.ppf(1 - as_float(q), *args, **kwargs)

    def mean(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the mean."""
        shapes, loc, scale = self._split(args, kwargs)
        return self._need(self.mean_of, "mean")(*shapes) * scale + loc

    def var(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the variance."""
        shapes, _, scale = self._split(args, kwargs)
        return self._need(self.var_of, "var")(*shapes) * scale * scale

    def median(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the median."""
        return self.ppf(0.5, *args, **kwargs)

    def entropy(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the differential entropy."""
        shapes, _, scale = self._split(args, kwargs)
        return self._need(self.entropy_of, "entropy")(*shapes) + np.log(scale)

    def interval(self, confidence: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the ends of the interval around the median that has this probability."""
        half = (1 - as_float(confidence)) / 2
        return self.ppf(half, *args, **kwargs), self.ppf(1 - half, *args, **kwargs)

    def nnlf(self, theta: Sequence[TensorLike], x: TensorLike) -> Any:
        """Return minus the log-likelihood of data ``x`` at the parameters ``(*shapes, loc, scale)``."""
        return -np.sum(self.logpdf(x, *theta))


def _find_inside(low: ArrayOrNumber, high: ArrayOrNumber) -> Any:
    """Return a number of the support."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    above, below = np.where(np.isfinite(low), low, high - 2), np.where(np.isfinite(high), high, low + 2)
    return np.where(np.isfinite(above) & np.isfinite(below), (above + below) / 2, 0.5)


def _is_infinite(end: Operand) -> bool:
    return isinstance(end, float) and end in (np.inf, -np.inf)


def refuse_method(distribution: str, method: str) -> Any:
    """Return a method of SciPy's own distribution, which refuses traced values by name."""
    original = getattr(getattr(load("stats"), distribution), method)
    if not callable(original):
        return original

    def call(*args: object, **kwargs: object) -> Any:
        if is_traced(args, kwargs):
            raise NoRuleError(f"pb.scipy.stats.{distribution}.{method} is not differentiable here.")
        return original(*unwrap(args), **unwrap(kwargs))

    return call


AT_POINTS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf", "interval")
OF_WHOLE = ("mean", "var", "std", "median", "entropy", "cov")


class FrozenDistribution:
    """A distribution with given parameters."""

    def __init__(self, distribution: Any, args: tuple[TensorLike, ...], kwargs: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = distribution, args, kwargs

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in (*AT_POINTS, *OF_WHOLE) or not hasattr(type(self.dist), name):
            if is_traced(self.args, self.kwds):
                raise NoRuleError(f"pb.scipy.stats.{self.dist.name}.{name} is not differentiable here.")
            theirs = getattr(load("stats"), self.dist.name)(*unwrap(self.args), **unwrap(self.kwds))
            return getattr(theirs, name)
        method = getattr(self.dist, name)
        if name in OF_WHOLE:
            return lambda: method(*self.args, **self.kwds)
        return lambda x, **more: method(x, *self.args, **self.kwds, **more)


@dataclass(frozen=True)
class Discrete(FormulaDistribution):
    """A distribution over whole numbers: formulas of ``k`` and the shapes."""

    name: str
    shapes: tuple[str, ...]
    logpmf_of: Formula
    cdf_of: Formula | None = None
    sf_of: Formula | None = None
    mean_of: Formula | None = None
    var_of: Formula | None = None
    entropy_of: Formula | None = None
    support: Formula = lambda *shapes: (0, np.inf)

    def _place(
        self, k: TensorLike, args: tuple[TensorLike, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, list[Any], Any, Any]:
        shapes, (loc,) = split_parameters(self.name, self.shapes, args, kwargs, {"loc": 0})
        k = as_float(k) - as_float(loc)
        if isinstance(k, Tensor):
            k = k.stop_following()
        low, high = self.support(*shapes)
        return k, shapes, k < low, k > high

    def logpmf(self, k: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the logarithm of the probability of ``k``."""
        k, shapes, below, above = self._place(k, args, kwargs)
        outside = below | above | (np.floor(k) != k)
        return np.where(outside, -np.inf, self.logpmf_of(np.where(outside, self.support(*shapes)[0], k), *shapes))

    def pmf(self, k: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the probability of ``k``."""
        k, shapes, below, above = self._place(k, args, kwargs)
        outside = below | above | (np.floor(k) != k)
        probability = np.exp(self.logpmf_of(np.where(outside, self.support(*shapes)[0], k), *shapes))
        return np.where(outside, 0.0, probability)

    def _share(
        self,
        formula: Formula | None,
        method: str,
        k: TensorLike,
        args: tuple[TensorLike, ...],
        kwargs: dict[str, Any],
        ends: Sequence[TensorLike],
    ) -> Any:
        formula = self._need(formula, method)
        k, shapes, below, _ = self._place(k, args, kwargs)
        _, high = self.support(*shapes)
        full = k >= high
        safe = np.where(below | full, self.support(*shapes)[0], np.floor(k))
        return np.where(below, ends[0], np.where(full, ends[1], formula(safe, *shapes)))

    def cdf(self, k: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the probability of ``k`` and less."""
        return self._share(self.cdf_of, "cdf", k, args, kwargs, (0.0, 1.0))

    def sf(self, k: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the probability of more than ``k``."""
        return self._share(self.sf_of, "sf", k, args, kwargs, (1.0, 0.0))

    def logcdf(self, k: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the logarithm of ``cdf``."""
        return np.log(self.cdf(k, *args, **kwargs))

    def logsf(self, k: TensorLike, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the logarithm of ``sf``."""
        return np.log(self.sf(k, *args, **kwargs))

    def _moment(
        self, formula: Formula | None, method: str, args: tuple[TensorLike, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        formula = self._need(formula, method)
        shapes, (loc,) = split_parameters(self.name, self.shapes, args, kwargs, {"loc": 0})
        return formula(*shapes), as_float(loc)

    def mean(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the mean."""
        mean, loc = self._moment(self.mean_of, "mean", args, kwargs)
        return mean + loc

    def var(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the variance."""
        return self._moment(self.var_of, "var", args, kwargs)[0]

    def entropy(self, *args: TensorLike, **kwargs: TensorLike) -> Any:
        """Return the entropy."""
        return self._moment(self.entropy_of, "entropy", args, kwargs)[0]


for _kind in (Continuous, Discrete):
    for _name in (*AT_POINTS, *OF_WHOLE):
        if _name in _kind.__dict__:
            setattr(_kind, _name, keep_dtype(_kind.__dict__[_name]))
