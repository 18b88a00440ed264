"""Distributions of vectors, and the density of a sample."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import strip
from pullback.errors import ArgumentError, MatrixError, NoRuleError, ShapeError
from pullback.interop.numpy_linalg import mirror_triangle
from pullback.ops import linalg
from pullback.scipy.arguments import as_float, as_operand, is_traced
from pullback.scipy.special import call, logsumexp, multigammaln
from pullback.scipy.stats.distributions import Distribution

if TYPE_CHECKING:
    from pullback.typing import Array, Function, TensorLike, Value

LOG_TWO_PI = math.log(2 * math.pi)


def _as_matrix(cov: TensorLike, n: int) -> Any:
    """Return a covariance matrix: of a number or of variances, a diagonal one; SciPy reads the lower triangle."""
    cov = as_float(cov)
    if cov.ndim == 2:
        return mirror_triangle(cov)
    return np.eye(n) * (cov if cov.ndim == 0 else np.expand_dims(cov, 0))


def _count_dimensions(mean: TensorLike | None, cov: TensorLike) -> int:
    if mean is not None and as_operand(mean).ndim:
        return int(as_operand(mean).shape[0])
    cov = as_operand(cov)
    return int(cov.shape[0]) if cov.ndim else 1


def _as_rows(x: TensorLike, n: int) -> Any:
    """Return points along the last axis, as SciPy reads them."""
    x = as_float(x)
    if x.ndim == 0:
        return np.reshape(x, (1,))
    return np.expand_dims(x, -1) if x.ndim == 1 and n == 1 else x


def _whiten(rows: Value, mean: Value, cov: Value) -> tuple[Any, Any]:
    """Return the squared distance by a covariance matrix, and half the logarithm of its determinant."""
    lower = linalg.cholesky(cov)
    apart: Any = rows - mean
    apart = np.reshape(apart, (-1, cov.shape[0]))
    white = linalg.triangular_solve(lower, np.transpose(apart))
    squares = np.reshape(np.sum(white * white, 0), rows.shape[:-1])
    return squares, np.sum(np.log(np.diagonal(lower)))


def _measure_singular(rows: Value, mean: Value, cov: Array) -> Any:
    """Return the logarithm of the normal density on the subspace that a singular covariance spans, -inf off it."""
    scales, axes = np.linalg.eigh(cov)
    limit = 1e6 * np.finfo(float).eps * np.max(np.abs(scales))
    if np.min(scales) < -limit:
        raise MatrixError("multivariate_normal: the covariance has a negative eigenvalue; it must be semidefinite.")
    kept = scales > limit
    apart = rows - mean
    squares = np.sum(np.matmul(apart, axes[:, kept]) ** 2 / scales[kept], -1)
    inside = np.sqrt(np.sum(strip(np.matmul(apart, axes[:, ~kept])) ** 2, -1)) < limit
    density = -0.5 * (squares + np.sum(kept) * LOG_TWO_PI + np.sum(np.log(scales[kept])))
    return np.where(inside, density, -np.inf)


class MultivariateNormal(Distribution):
    """``scipy.stats.multivariate_normal``; a traced covariance must be positive definite."""

    name = "multivariate_normal"

    def logpdf(
        self, x: TensorLike, mean: TensorLike | None = None, cov: TensorLike = 1, allow_singular: bool = False
    ) -> Any:
        """Return the logarithm of the density at points ``x``, which lie along the last axis."""
        n = _count_dimensions(mean, cov)
        middle = np.zeros(n) if mean is None else np.broadcast_to(as_float(mean), (n,))
        matrix = _as_matrix(cov, n)
        if allow_singular and not is_traced(matrix):
            return _measure_singular(_as_rows(x, n), middle, matrix)
        squares, half = _whiten(_as_rows(x, n), middle, matrix)
        return -0.5 * (squares + n * LOG_TWO_PI) - half

    def pdf(
        self, x: TensorLike, mean: TensorLike | None = None, cov: TensorLike = 1, allow_singular: bool = False
    ) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: TensorLike | None = None, cov: TensorLike = 1) -> Any:
        """Return the differential entropy."""
        n = _count_dimensions(mean, cov)
        return 0.5 * linalg.slogdet(_as_matrix(cov, n))[1] + n / 2 * (LOG_TWO_PI + 1)


class MultivariateT(Distribution):
    """``scipy.stats.multivariate_t``; the shape matrix must be positive definite."""

    name = "multivariate_t"

    def logpdf(self, x: TensorLike, loc: TensorLike | None = None, shape: TensorLike = 1, df: TensorLike = 1) -> Any:
        """Return the logarithm of the density at points ``x``."""
        n = _count_dimensions(loc, shape)
        middle = np.zeros(n) if loc is None else np.broadcast_to(as_float(loc), (n,))
        squares, half = _whiten(_as_rows(x, n), middle, _as_matrix(shape, n))
        df = as_float(df)
        scale = call("gammaln", (df + n) / 2) - call("gammaln", df / 2) - n / 2 * np.log(df * math.pi) - half
        return scale - (df + n) / 2 * np.log1p(squares / df)

    def pdf(self, x: TensorLike, loc: TensorLike | None = None, shape: TensorLike = 1, df: TensorLike = 1) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, loc, shape, df))


class Dirichlet(Distribution):
    """``scipy.stats.dirichlet``: shares along the first axis."""

    name = "dirichlet"

    def logpdf(self, x: TensorLike, alpha: TensorLike) -> Any:
        """Return the logarithm of the density; the last share may be left out."""
        x, alpha = as_float(x), as_float(alpha)
        if x.shape[0] == alpha.shape[0] - 1:
            x = np.concatenate([x, np.expand_dims(1 - np.sum(x, 0), 0)])
        if x.shape[0] != alpha.shape[0]:
            raise ShapeError(
                f"dirichlet: alpha has {alpha.shape[0]} elements, so x must have as many or one less, got {x.shape[0]}."
            )
        log = np.sum(call("gammaln", alpha)) - call("gammaln", np.sum(alpha))
        powers = np.reshape(alpha - 1, (-1,) + (1,) * (x.ndim - 1))
        return np.sum(call("xlogy", powers, x), 0) - log

    def pdf(self, x: TensorLike, alpha: TensorLike) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, alpha))

    def mean(self, alpha: TensorLike) -> Any:
        """Return the mean."""
        alpha = as_float(alpha)
        return alpha / np.sum(alpha)

    def var(self, alpha: TensorLike) -> Any:
        """Return the variances."""
        alpha = as_float(alpha)
        total = np.sum(alpha)
        return alpha * (total - alpha) / (total * total * (total + 1))

    def cov(self, alpha: TensorLike) -> Any:
        """Return the covariance matrix."""
        alpha = as_float(alpha)
        total = np.sum(alpha)
        share = alpha / total
        return (np.diag(share) - np.outer(share, share)) / (total + 1)

    def entropy(self, alpha: TensorLike) -> Any:
        """Return the differential entropy."""
        alpha = as_float(alpha)
        total, count = np.sum(alpha), alpha.shape[0]
        log = np.sum(call("gammaln", alpha)) - call("gammaln", total)
        return log + (total - count) * call("digamma", total) - np.sum((alpha - 1) * call("digamma", alpha))


class Multinomial(Distribution):
    """``scipy.stats.multinomial``: counts along the last axis."""

    name = "multinomial"

    def logpmf(self, x: TensorLike, n: TensorLike, p: TensorLike) -> Any:
        """Return the logarithm of the probability of counts ``x``."""
        x, n, p = as_float(x), as_float(n), self._shares(p)
        fits = np.all((x >= 0) & (x == np.floor(x)), -1) & (np.sum(x, -1) == n)
        logarithm = call("gammaln", n + 1) + np.sum(call("xlogy", x, p) - call("gammaln", x + 1), -1)
        return np.where(fits, logarithm, -np.inf)

    @staticmethod
    def _shares(p: TensorLike) -> Any:
        """Return the probabilities with the last one adjusted, as SciPy does, so that they add up to 1."""
        p = as_float(p)
        return np.concatenate([p[..., :-1], 1 - np.sum(p[..., :-1], -1, keepdims=True)], -1)

    def pmf(self, x: TensorLike, n: TensorLike, p: TensorLike) -> Any:
        """Return the probability."""
        return np.exp(self.logpmf(x, n, p))

    def cov(self, n: TensorLike, p: TensorLike) -> Any:
        """Return the covariance matrix."""
        p = self._shares(p)
        return as_float(n) * (np.diag(p) - np.outer(p, p))


class Wishart(Distribution):
    """``scipy.stats.wishart`` of one matrix."""

    name = "wishart"

    def logpdf(self, x: TensorLike, df: TensorLike, scale: TensorLike) -> Any:
        """Return the logarithm of the density at a positive definite matrix ``x``."""
        x, df, scale = as_float(x), as_float(df), as_float(scale)
        if x.ndim != 2 or scale.ndim != 2:
            raise NoRuleError(
                f"pb.scipy.stats.wishart: x and scale must be matrices, got shapes {x.shape} and {scale.shape}."
            )
        n, scale = scale.shape[0], mirror_triangle(scale)
        logarithm = 0.5 * (df - n - 1) * linalg.slogdet(mirror_triangle(x))[1] - 0.5 * np.trace(linalg.solve(scale, x))
        return logarithm - 0.5 * df * (n * math.log(2) + linalg.slogdet(scale)[1]) - multigammaln(df / 2, n)

    def pdf(self, x: TensorLike, df: TensorLike, scale: TensorLike) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, df, scale))


class gaussian_kde:  # noqa: N801
    """The density of a sample, a sum of normal ones around its points: ``scipy.stats.gaussian_kde``.

    It is differentiable by the points at which it is evaluated, by the sample and by the weights.

    >>> density = gaussian_kde(np.array([0.0, 1.0, 3.0]))
    >>> pb.grad(density)(np.array([1.0])).round(4)
    array([-0.0...])
    """

    def __init__(
        self, dataset: TensorLike, bw_method: str | float | Function | None = None, weights: TensorLike | None = None
    ) -> None:
        self.dataset = np.atleast_2d(as_float(dataset))
        self.d, self.n = self.dataset.shape
        if weights is None:
            self.weights = np.full(self.n, 1 / self.n)
        else:
            shares = as_float(weights)
            self.weights = shares / np.sum(shares)
        self.neff = 1 / np.sum(self.weights**2)
        self.set_bandwidth(bw_method)

    def scotts_factor(self) -> Any:
        """Return Scott's factor of the bandwidth."""
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Return Silverman's factor of the bandwidth."""
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    def set_bandwidth(self, bw_method: str | float | Function | None = None) -> None:
        """Choose the bandwidth: ``"scott"``, ``"silverman"``, a number, or a function of this object."""
        if bw_method is None or bw_method == "scott":
            self.factor = self.scotts_factor()
        elif isinstance(bw_method, str):
            if bw_method != "silverman":
                raise ArgumentError(f"gaussian_kde: bw_method must be 'scott' or 'silverman', got {bw_method!r}.")
            self.factor = self.silverman_factor()
        else:
            self.factor = bw_method(self) if callable(bw_method) else bw_method
        middle = np.sum(self.dataset * self.weights, 1, keepdims=True)
        apart = self.dataset - middle
        self._data_covariance = np.matmul(apart * self.weights, np.transpose(apart)) / (1 - np.sum(self.weights**2))
        self.covariance = self._data_covariance * self.factor**2

    def logpdf(self, x: TensorLike) -> Any:
        """Return the logarithm of the density at points ``x``, one per column."""
        points = as_float(x)
        points = np.reshape(points, (self.d, -1)) if points.ndim < 2 else points
        lower = linalg.cholesky(self.covariance)
        apart = np.expand_dims(points, 2) - np.expand_dims(self.dataset, 1)
        white = linalg.triangular_solve(lower, np.reshape(apart, (self.d, -1)))
        squares = np.reshape(np.sum(white * white, 0), (points.shape[1], self.n))
        scale = np.sum(np.log(np.diagonal(lower))) + self.d / 2 * LOG_TWO_PI
        return logsumexp(-squares / 2, 1, np.broadcast_to(self.weights, squares.shape)) - scale

    def evaluate(self, points: TensorLike) -> Any:
        """Return the density at points, one per column."""
        return np.exp(self.logpdf(points))

    __call__ = pdf = evaluate


multivariate_normal = MultivariateNormal()
multivariate_t = MultivariateT()
dirichlet = Dirichlet()
multinomial = Multinomial()
wishart = Wishart()
