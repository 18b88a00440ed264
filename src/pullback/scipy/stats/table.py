"""The formulas of distributions with location 0 and scale 1: one entry, one distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.scipy.special import call
from pullback.scipy.stats.distributions import Continuous, Discrete

if TYPE_CHECKING:
    from pullback.typing import Value

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
EULER = float(np.euler_gamma)


def _gammaln(x: Value) -> Any:
    return call("gammaln", x)


def _psi(x: Value) -> Any:
    return call("digamma", x)


def _xlogy(x: Value, y: Value) -> Any:
    return call("xlogy", x, y)


def _xlog1py(x: Value, y: Value) -> Any:
    return call("xlog1py", x, y)


def _invgauss_log_share(x: Any, mu: Any, sign: int) -> Any:
    """Return the logarithm of the share below (1) or above (-1) ``x``, without the cancellation of the share itself."""
    main = call("log_ndtr", sign * (x / mu - 1) / np.sqrt(x))
    return main + np.log1p(sign * np.exp(2 / mu + call("log_ndtr", -(x / mu + 1) / np.sqrt(x)) - main))


def _span_positive(*_: object) -> Any:
    return 0.0, np.inf


def _span_unit(*_: object) -> Any:
    return 0.0, 1.0


def _t_logpdf(x: Value, df: Value) -> Any:
    scale = _gammaln((df + 1) / 2) - _gammaln(df / 2) - 0.5 * np.log(df * math.pi)
    return scale - (df + 1) / 2 * np.log1p(x * x / df)


def _t_entropy(df: Value) -> Any:
    half = (df + 1) / 2
    return half * (_psi(half) - _psi(df / 2)) + 0.5 * np.log(df) + call("betaln", df / 2, 0.5)


def _f_logpdf(x: Value, n: Value, m: Value) -> Any:
    a: Any = n / 2
    b: Any = m / 2
    scaled: Any = n * x
    return b * np.log(m) + a * np.log(n) + _xlogy(a - 1, x) - (a + b) * np.log(m + scaled) - call("betaln", a, b)


def _beta_entropy(a: Value, b: Value) -> Any:
    both = a + b
    return call("betaln", a, b) - (a - 1) * _psi(a) - (b - 1) * _psi(b) + (both - 2) * _psi(both)


def _gamma_entropy(a: Value) -> Any:
    return a + _gammaln(a) + (1 - a) * _psi(a)


def _truncnorm_logpdf(x: Value, a: Value, b: Value) -> Any:
    return -(x * x) / 2 - HALF_LOG_TWO_PI - np.log(_between(a, b))


def _between(a: Value, b: Value) -> Any:
    """Return the share of the normal distribution between two numbers, precise in both tails."""
    flip = a > 0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    return call("ndtr", high) - call("ndtr", low)


def _triangle_cdf(x: Value, c: Value) -> Any:
    left = x < c
    squares: Any = x * x
    return np.where(left, squares / np.where(left, c, 1.0), (squares - 2 * x + c) / np.where(left, -1.0, c - 1))


def _triangle_logpdf(x: Value, c: Value) -> Any:
    left = x < c
    twice: Any = 2 * x
    return np.log(np.where(left, twice / np.where(left, c, 1.0), (2 - twice) / np.where(left, 1.0, 1 - c)))


def _normal_quantile(q: Value) -> Any:
    return call("ndtri", q)


def _extreme(x: Value, c: Value) -> Any:
    """Return ``log(1 - c x) / -c``, which is ``x`` where ``c`` is 0."""
    near = c == 0
    safe = np.where(near, 1.0, c)
    return np.where(near, x, -np.log1p(-safe * np.where(near, 0.0, x)) / safe)


def _pareto_tail(x: Value, c: Value) -> Any:
    """Return ``log1p(c x) / c``, which is ``x`` where ``c`` is 0."""
    return _extreme(x, -c)


def _skew_cdf(x: Value, a: Value) -> Any:
    return call("ndtr", x) - 2 * call("owens_t", x, a)


def _one_tail(x: Value, beta: Value) -> Any:
    """Return the share of the generalized normal distribution above ``x``, precise far to the right."""
    tail = 0.5 * call("gammaincc", 1 / beta, np.abs(x) ** beta)
    return np.where(x > 0, tail, 1 - tail)


_CONTINUOUS: tuple[Continuous, ...] = (
    Continuous(
        "norm", (), lambda x: -(x * x) / 2 - HALF_LOG_TWO_PI, lambda x: call("ndtr", x), lambda x: call("ndtr", -x),
        _normal_quantile, lambda q: -_normal_quantile(q), lambda: np.float64(0), lambda: np.float64(1),
        lambda: np.float64(HALF_LOG_TWO_PI + 0.5), lambda x: call("log_ndtr", x), lambda x: call("log_ndtr", -x),
    ),
    Continuous(
        "t", ("df",), _t_logpdf, lambda x, df: call("stdtr", df, x), lambda x, df: call("stdtr", df, -x),
        lambda q, df: call("stdtrit", df, q), lambda q, df: -call("stdtrit", df, q),
        lambda df: np.where(df > 1, 0.0 * df, np.inf),
        lambda df: np.where(df > 2, df / (np.where(df > 2, df, 3.0) - 2), np.where(df > 1, np.inf, np.nan)), _t_entropy,
    ),
    Continuous(
        "chi2", ("df",), lambda x, df: _xlogy(df / 2 - 1, x) - x / 2 - _gammaln(df / 2) - math.log(2) * df / 2,
        lambda x, df: call("chdtr", df, x), lambda x, df: call("chdtrc", df, x),
        lambda q, df: 2 * call("gammaincinv", df / 2, q), lambda q, df: call("chdtri", df, q),
        lambda df: df, lambda df: 2 * df,
        lambda df: df / 2 + math.log(2) + _gammaln(df / 2) + (1 - df / 2) * _psi(df / 2), support=_span_positive,
    ),
    Continuous(
        "f", ("dfn", "dfd"), _f_logpdf, lambda x, n, m: call("fdtr", n, m, x), lambda x, n, m: call("fdtrc", n, m, x),
        lambda q, n, m: call("fdtri", n, m, q), lambda q, n, m: call("fdtri", n, m, 1 - q),
        lambda n, m: np.where(m > 2, m / (np.where(m > 2, m, 3.0) - 2), np.inf),
        lambda n, m: 2 * m * m * (n + m - 2) / (n * (m - 2) ** 2 * (m - 4)), support=_span_positive,
    ),
    Continuous(
        "beta", ("a", "b"), lambda x, a, b: _xlogy(a - 1, x) + _xlog1py(b - 1, -x) - call("betaln", a, b),
        lambda x, a, b: call("betainc", a, b, x), lambda x, a, b: call("betaincc", a, b, x),
        lambda q, a, b: call("betaincinv", a, b, q), lambda q, a, b: call("betainccinv", a, b, q),
        lambda a, b: a / (a + b), lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)), _beta_entropy, support=_span_unit,
    ),
    *(Continuous(
        name, ("a",), lambda x, a: _xlogy(a - 1, x) - x - _gammaln(a),
        lambda x, a: call("gammainc", a, x), lambda x, a: call("gammaincc", a, x),
        lambda q, a: call("gammaincinv", a, q), lambda q, a: call("gammainccinv", a, q),
        lambda a: a, lambda a: a, _gamma_entropy, support=_span_positive,
    ) for name in ("gamma", "erlang")),
    Continuous(
        "invgamma", ("a",), lambda x, a: -(a + 1) * np.log(x) - _gammaln(a) - 1 / x,
        lambda x, a: call("gammaincc", a, 1 / x), lambda x, a: call("gammainc", a, 1 / x),
        lambda q, a: 1 / call("gammainccinv", a, q), lambda q, a: 1 / call("gammaincinv", a, q),
        lambda a: 1 / (a - 1), lambda a: 1 / ((a - 1) ** 2 * (a - 2)),
        lambda a: a - (a + 1) * _psi(a) + _gammaln(a), support=_span_positive,
    ),
    Continuous(
        "expon", (), lambda x: -x, lambda x: -np.expm1(-x), lambda x: np.exp(-x), lambda q: -np.log1p(-q),
        lambda q: -np.log(q), lambda: np.float64(1), lambda: np.float64(1), lambda: np.float64(1),
        logsf_of=lambda x: -x, support=_span_positive,
    ),
    Continuous(
        "lognorm", ("s",), lambda x, s: -np.log(x) ** 2 / (2 * s * s) - np.log(s * x) - HALF_LOG_TWO_PI,
        lambda x, s: call("ndtr", np.log(x) / s), lambda x, s: call("ndtr", -np.log(x) / s),
        lambda q, s: np.exp(s * _normal_quantile(q)), lambda q, s: np.exp(-s * _normal_quantile(q)),
        lambda s: np.exp(s * s / 2), lambda s: np.exp(s * s) * np.expm1(s * s),
        lambda s: 0.5 + HALF_LOG_TWO_PI + np.log(s),
        lambda x, s: call("log_ndtr", np.log(x) / s), lambda x, s: call("log_ndtr", -np.log(x) / s),
        support=_span_positive,
    ),
    Continuous(
        "laplace", (), lambda x: -np.abs(x) - math.log(2),
        lambda x: np.where(x > 0, 1 - 0.5 * np.exp(np.where(x > 0, -x, x)), 0.5 * np.exp(np.where(x > 0, -x, x))),
        lambda x: np.where(x > 0, 0.5 * np.exp(np.where(x > 0, -x, x)), 1 - 0.5 * np.exp(np.where(x > 0, -x, x))),
        lambda q: np.where(
            q > 0.5, -np.log(2 * (1 - np.where(q > 0.5, q, 0.5))), np.log(2 * np.where(q > 0.5, 0.5, q))
        ),
        mean_of=lambda: np.float64(0), var_of=lambda: np.float64(2), entropy_of=lambda: np.float64(math.log(2) + 1),
    ),
    Continuous(
        "logistic", (), lambda x: -np.abs(x) - 2 * np.log1p(np.exp(-np.abs(x))),
        lambda x: call("expit", x), lambda x: call("expit", -x), lambda q: call("logit", q),
        lambda q: -call("logit", q), lambda: np.float64(0), lambda: np.float64(math.pi**2 / 3),
        lambda: np.float64(2), lambda x: call("log_expit", x), lambda x: call("log_expit", -x),
    ),
    Continuous(
        "cauchy", (), lambda x: -np.log(math.pi * (1 + x * x)),
        lambda x: 0.5 + np.arctan(x) / math.pi, lambda x: 0.5 - np.arctan(x) / math.pi,
        lambda q: np.tan(math.pi * (q - 0.5)), lambda q: np.tan(math.pi * (0.5 - q)),
        entropy_of=lambda: np.float64(math.log(4 * math.pi)),
    ),
    Continuous(
        "uniform", (), lambda x: 0.0 * x, lambda x: x, lambda x: 1 - x, lambda q: q, lambda q: 1 - q,
        lambda: np.float64(0.5), lambda: np.float64(1 / 12), lambda: np.float64(0), support=_span_unit,
    ),
    Continuous(
        "weibull_min", ("c",), lambda x, c: np.log(c) + _xlogy(c - 1, x) - x**c,
        lambda x, c: -np.expm1(-(x**c)), lambda x, c: np.exp(-(x**c)), lambda q, c: (-np.log1p(-q)) ** (1 / c),
        lambda q, c: (-np.log(q)) ** (1 / c), lambda c: call("gamma", 1 + 1 / c),
        lambda c: call("gamma", 1 + 2 / c) - call("gamma", 1 + 1 / c) ** 2,
        lambda c: EULER * (1 - 1 / c) - np.log(c) + 1, logsf_of=lambda x, c: -(x**c), support=_span_positive,
    ),
    Continuous(
        "weibull_max", ("c",), lambda x, c: np.log(c) + _xlogy(c - 1, -x) - (-x) ** c,
        lambda x, c: np.exp(-((-x) ** c)), lambda x, c: -np.expm1(-((-x) ** c)),
        lambda q, c: -((-np.log(q)) ** (1 / c)),
        None, lambda c: -call("gamma", 1 + 1 / c), lambda c: call("gamma", 1 + 2 / c) - call("gamma", 1 + 1 / c) ** 2,
        lambda c: EULER * (1 - 1 / c) - np.log(c) + 1, support=lambda *_: (-np.inf, 0.0),
    ),
    Continuous(
        "pareto", ("b",), lambda x, b: np.log(b) - (b + 1) * np.log(x), lambda x, b: 1 - x**-b, lambda x, b: x**-b,
        lambda q, b: (1 - q) ** (-1 / b), lambda q, b: q ** (-1 / b), lambda b: b / (b - 1),
        lambda b: b / ((b - 2) * (b - 1) ** 2), lambda b: 1 + 1 / b - np.log(b),
        logsf_of=lambda x, b: -b * np.log(x), support=lambda *_: (1.0, np.inf),
    ),
    Continuous(
        "lomax", ("c",), lambda x, c: np.log(c) - (c + 1) * np.log1p(x), lambda x, c: -np.expm1(-c * np.log1p(x)),
        lambda x, c: np.exp(-c * np.log1p(x)), lambda q, c: np.expm1(-np.log1p(-q) / c),
        lambda q, c: q ** (-1 / c) - 1, lambda c: 1 / (c - 1), lambda c: c / ((c - 2) * (c - 1) ** 2),
        lambda c: 1 + 1 / c - np.log(c), support=_span_positive,
    ),
    Continuous(
        "genpareto", ("c",), lambda x, c: -(c + 1) * _pareto_tail(x, c), lambda x, c: -np.expm1(-_pareto_tail(x, c)),
        lambda x, c: np.exp(-_pareto_tail(x, c)), lambda q, c: _genpareto_quantile(-np.log1p(-q), c),
        lambda q, c: _genpareto_quantile(-np.log(q), c), lambda c: 1 / (1 - c),
        lambda c: 1 / ((1 - c) ** 2 * (1 - 2 * c)),
        lambda c: 1 + c, logsf_of=lambda x, c: -_pareto_tail(x, c),
        support=lambda c: (0.0, np.where(c < 0, -1 / np.where(c < 0, c, -1.0), np.inf)),
    ),
    Continuous(
        "genextreme", ("c",), lambda x, c: -_extreme(x, c) * (1 - c) - np.exp(-_extreme(x, c)),
        lambda x, c: np.exp(-np.exp(-_extreme(x, c))), lambda x, c: -np.expm1(-np.exp(-_extreme(x, c))),
        lambda q, c: _extreme_quantile(-np.log(-np.log(q)), c),
        lambda q, c: _extreme_quantile(-np.log(-np.log1p(-q)), c),
        logcdf_of=lambda x, c: -np.exp(-_extreme(x, c)),
        support=lambda c: (
            np.where(c < 0, 1 / np.where(c < 0, c, -1.0), -np.inf), np.where(c > 0, 1 / np.where(c > 0, c, 1.0), np.inf)
        ),
    ),
    Continuous(
        "halfnorm", (), lambda x: 0.5 * math.log(2 / math.pi) - x * x / 2, lambda x: call("erf", x / math.sqrt(2)),
        lambda x: 2 * call("ndtr", -x), lambda q: _normal_quantile((1 + q) / 2), lambda q: -_normal_quantile(q / 2),
        lambda: np.float64(math.sqrt(2 / math.pi)), lambda: np.float64(1 - 2 / math.pi),
        lambda: np.float64(0.5 * math.log(math.pi / 2) + 0.5), support=_span_positive,
    ),
    Continuous(
        "halfcauchy", (), lambda x: math.log(2 / math.pi) - np.log1p(x * x), lambda x: 2 / math.pi * np.arctan(x),
        lambda x: 1 - 2 / math.pi * np.arctan(x), lambda q: np.tan(math.pi / 2 * q),
        entropy_of=lambda: np.float64(math.log(2 * math.pi)), support=_span_positive,
    ),
    Continuous(
        "gumbel_r", (), lambda x: -x - np.exp(-x), lambda x: np.exp(-np.exp(-x)), lambda x: -np.expm1(-np.exp(-x)),
        lambda q: -np.log(-np.log(q)), lambda q: -np.log(-np.log1p(-q)), lambda: np.float64(EULER),
        lambda: np.float64(math.pi**2 / 6), lambda: np.float64(EULER + 1), lambda x: -np.exp(-x),
    ),
    Continuous(
        "gumbel_l", (), lambda x: x - np.exp(x), lambda x: -np.expm1(-np.exp(x)), lambda x: np.exp(-np.exp(x)),
        lambda q: np.log(-np.log1p(-q)), lambda q: np.log(-np.log(q)), lambda: np.float64(-EULER),
        lambda: np.float64(math.pi**2 / 6), lambda: np.float64(EULER + 1), logsf_of=lambda x: -np.exp(x),
    ),
    Continuous(
        "rayleigh", (), lambda x: np.log(x) - x * x / 2, lambda x: -np.expm1(-x * x / 2), lambda x: np.exp(-x * x / 2),
        lambda q: np.sqrt(-2 * np.log1p(-q)), lambda q: np.sqrt(-2 * np.log(q)),
        lambda: np.float64(math.sqrt(math.pi / 2)), lambda: np.float64((4 - math.pi) / 2),
        lambda: np.float64(EULER / 2 + 1 - 0.5 * math.log(2)), logsf_of=lambda x: -x * x / 2, support=_span_positive,
    ),
    Continuous(
        "maxwell", (), lambda x: 0.5 * math.log(2 / math.pi) + 2 * np.log(x) - x * x / 2,
        lambda x: call("gammainc", 1.5 + 0 * x, x * x / 2), lambda x: call("gammaincc", 1.5 + 0 * x, x * x / 2),
        lambda q: np.sqrt(2 * call("gammaincinv", 1.5 + 0 * q, q)),
        lambda q: np.sqrt(2 * call("gammainccinv", 1.5 + 0 * q, q)),
        lambda: np.float64(2 * math.sqrt(2 / math.pi)), lambda: np.float64(3 - 8 / math.pi),
        lambda: np.float64(EULER + 0.5 * math.log(2 * math.pi) - 0.5), support=_span_positive,
    ),
    Continuous(
        "chi", ("df",), lambda x, df: _xlogy(df - 1, x) - x * x / 2 - (df / 2 - 1) * math.log(2) - _gammaln(df / 2),
        lambda x, df: call("gammainc", df / 2, x * x / 2), lambda x, df: call("gammaincc", df / 2, x * x / 2),
        lambda q, df: np.sqrt(2 * call("gammaincinv", df / 2, q)),
        lambda q, df: np.sqrt(2 * call("gammainccinv", df / 2, q)),
        lambda df: math.sqrt(2) * call("poch", df / 2, 0.5 + 0 * df),
        lambda df: df - 2 * call("poch", df / 2, 0.5 + 0 * df) ** 2, support=_span_positive,
    ),
    Continuous(
        "triang", ("c",), _triangle_logpdf, _triangle_cdf, None,
        lambda q, c: np.where(q < c, np.sqrt(c * q), 1 - np.sqrt((1 - c) * (1 - q))), None, lambda c: (c + 1) / 3,
        lambda c: (1 - c + c * c) / 18, lambda c: 0.5 - math.log(2) + 0 * c, support=_span_unit,
    ),
    Continuous(
        "truncnorm", ("a", "b"), _truncnorm_logpdf, lambda x, a, b: _between(a, x) / _between(a, b),
        lambda x, a, b: _between(x, b) / _between(a, b),
        lambda q, a, b: _normal_quantile(call("ndtr", a) + q * _between(a, b)), None,
        lambda a, b: (np.exp(-a * a / 2) - np.exp(-b * b / 2)) / math.sqrt(2 * math.pi) / _between(a, b),
        support=lambda a, b: (a, b),
    ),
    Continuous(
        "invgauss", ("mu",), lambda x, mu: -HALF_LOG_TWO_PI - 1.5 * np.log(x) - ((x - mu) / mu) ** 2 / (2 * x),
        lambda x, mu: call("ndtr", (x / mu - 1) / np.sqrt(x))
        + np.exp(2 / mu + call("log_ndtr", -(x / mu + 1) / np.sqrt(x))),
        mean_of=lambda mu: mu, var_of=lambda mu: mu**3, support=_span_positive,
        logcdf_of=lambda x, mu: _invgauss_log_share(x, mu, 1), logsf_of=lambda x, mu: _invgauss_log_share(x, mu, -1),
    ),
    Continuous(
        "loguniform", ("a", "b"), lambda x, a, b: -np.log(x) - np.log(np.log(b / a)),
        lambda x, a, b: np.log(x / a) / np.log(b / a), None, lambda q, a, b: a * (b / a) ** q, None,
        lambda a, b: (b - a) / np.log(b / a),
        lambda a, b: (b * b - a * a) / 2 / np.log(b / a) - ((b - a) / np.log(b / a)) ** 2,
        lambda a, b: 0.5 * np.log(a * b) + np.log(np.log(b / a)), support=lambda a, b: (a, b),
    ),
    Continuous(
        "powerlaw", ("a",), lambda x, a: np.log(a) + _xlogy(a - 1, x), lambda x, a: x**a, None,
        lambda q, a: q ** (1 / a), None, lambda a: a / (a + 1), lambda a: a / ((a + 2) * (a + 1) ** 2),
        lambda a: 1 - 1 / a - np.log(a), support=_span_unit,
    ),
    Continuous(
        "fisk", ("c",), lambda x, c: np.log(c) - (c + 1) * np.log(x) - 2 * np.log1p(x**-c),
        lambda x, c: 1 / (1 + x**-c), lambda x, c: 1 / (1 + x**c), lambda q, c: (q / (1 - q)) ** (1 / c),
        lambda q, c: ((1 - q) / q) ** (1 / c), lambda c: math.pi / c / np.sin(math.pi / c),
        lambda c: 2 * math.pi / c / np.sin(2 * math.pi / c) - (math.pi / c / np.sin(math.pi / c)) ** 2,
        lambda c: 2 - np.log(c), support=_span_positive,
    ),
    Continuous(
        "burr12", ("c", "d"), lambda x, c, d: np.log(c) + np.log(d) + _xlogy(c - 1, x) - (d + 1) * np.log1p(x**c),
        lambda x, c, d: -np.expm1(-d * np.log1p(x**c)), lambda x, c, d: np.exp(-d * np.log1p(x**c)),
        lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1 / c), support=_span_positive,
    ),
    Continuous(
        "gompertz", ("c",), lambda x, c: np.log(c) + x - c * np.expm1(x), lambda x, c: -np.expm1(-c * np.expm1(x)),
        lambda x, c: np.exp(-c * np.expm1(x)), lambda q, c: np.log1p(-np.log1p(-q) / c),
        lambda q, c: np.log1p(-np.log(q) / c), support=_span_positive,
    ),
    Continuous(
        "hypsecant", (), lambda x: -np.log(math.pi * np.cosh(x)), lambda x: 2 / math.pi * np.arctan(np.exp(x)),
        lambda x: 2 / math.pi * np.arctan(np.exp(-x)), lambda q: np.log(np.tan(math.pi * q / 2)),
        mean_of=lambda: np.float64(0), var_of=lambda: np.float64(math.pi**2 / 4),
        entropy_of=lambda: np.float64(math.log(2 * math.pi)),
    ),
    Continuous(
        "vonmises", ("kappa",), lambda x, k: k * (np.cos(x) - 1) - math.log(2 * math.pi) - np.log(call("i0e", k)),
        entropy_of=lambda k: -k * call("i1e", k) / call("i0e", k) + math.log(2 * math.pi) + np.log(call("i0e", k)) + k,
    ),
    Continuous(
        "skewnorm", ("a",), lambda x, a: math.log(2) - x * x / 2 - HALF_LOG_TWO_PI + call("log_ndtr", a * x), _skew_cdf,
        lambda x, a: call("ndtr", -x) + 2 * call("owens_t", x, a),
        mean_of=lambda a: math.sqrt(2 / math.pi) * a / np.sqrt(1 + a * a),
        var_of=lambda a: 1 - 2 / math.pi * a * a / (1 + a * a),
    ),
    Continuous(
        "exponnorm", ("K",),
        lambda x, k: 1 / (2 * k * k) - x / k - np.log(k) + call("log_ndtr", x - 1 / k),
        lambda x, k: call("ndtr", x) - np.exp(1 / (2 * k * k) - x / k + call("log_ndtr", x - 1 / k)),
        lambda x, k: call("ndtr", -x) + np.exp(1 / (2 * k * k) - x / k + call("log_ndtr", x - 1 / k)),
        logsf_of=lambda x, k: np.logaddexp(
            call("log_ndtr", -x), 1 / (2 * k * k) - x / k + call("log_ndtr", x - 1 / k)
        ),
        mean_of=lambda k: k, var_of=lambda k: 1 + k * k,
    ),
    Continuous(
        "nakagami", ("nu",),
        lambda x, v: math.log(2) + _xlogy(v, v) + _xlogy(2 * v - 1, x) - _gammaln(v) - v * x * x,
        lambda x, v: call("gammainc", v, v * x * x), lambda x, v: call("gammaincc", v, v * x * x),
        lambda q, v: np.sqrt(call("gammaincinv", v, q) / v), lambda q, v: np.sqrt(call("gammainccinv", v, q) / v),
        support=_span_positive,
    ),
    Continuous(
        "gennorm", ("beta",), lambda x, b: np.log(b / 2) - _gammaln(1 / b) - np.abs(x) ** b,
        lambda x, b: _one_tail(-x, b), _one_tail,
        mean_of=lambda b: 0 * b, var_of=lambda b: np.exp(_gammaln(3 / b) - _gammaln(1 / b)),
        entropy_of=lambda b: 1 / b - np.log(b / 2) + _gammaln(1 / b),
    ),
    Continuous(
        "arcsine", (), lambda x: -np.log(math.pi * np.sqrt(x * (1 - x))), lambda x: 2 / math.pi * np.arcsin(np.sqrt(x)),
        None, lambda q: np.sin(math.pi / 2 * q) ** 2, mean_of=lambda: np.float64(0.5), var_of=lambda: np.float64(0.125),
        support=_span_unit,
    ),
)  # fmt: skip
CONTINUOUS = {d.name: d for d in _CONTINUOUS}


def _genpareto_quantile(tail: Value, c: Value) -> Any:
    """Return ``expm1(c * tail) / c``, which is ``tail`` where ``c`` is 0."""
    near = c == 0
    safe = np.where(near, 1.0, c)
    return np.where(near, tail, np.expm1(safe * tail) / safe)


def _extreme_quantile(y: Value, c: Value) -> Any:
    return _genpareto_quantile(y, -c)


def _log_choose(n: Value, k: Value) -> Any:
    return _gammaln(n + 1) - _gammaln(k + 1) - _gammaln(n - k + 1)


DISCRETE = {d.name: d for d in (
    Discrete(
        "poisson", ("mu",), lambda k, mu: _xlogy(k, mu) - _gammaln(k + 1) - mu,
        lambda k, mu: call("gammaincc", k + 1, mu), lambda k, mu: call("gammainc", k + 1, mu),
        lambda mu: mu, lambda mu: mu,
    ),
    Discrete(
        "binom", ("n", "p"), lambda k, n, p: _log_choose(n, k) + _xlogy(k, p) + _xlog1py(n - k, -p),
        lambda k, n, p: call("betaincc", k + 1, n - k, p), lambda k, n, p: call("betainc", k + 1, n - k, p),
        lambda n, p: n * p, lambda n, p: n * p * (1 - p), support=lambda n, p: (0, n),
    ),
    Discrete(
        "bernoulli", ("p",), lambda k, p: _xlogy(k, p) + _xlog1py(1 - k, -p), lambda k, p: 1 - p + 0 * k,
        lambda k, p: p + 0 * k, lambda p: p, lambda p: p * (1 - p), lambda p: call("entr", p) + call("entr", 1 - p),
        support=lambda p: (0, 1),
    ),
    Discrete(
        "nbinom", ("n", "p"),
        lambda k, n, p: _gammaln(n + k) - _gammaln(k + 1) - _gammaln(n) + n * np.log(p) + _xlog1py(k, -p),
        lambda k, n, p: call("betainc", n, k + 1, p), lambda k, n, p: call("betaincc", n, k + 1, p),
        lambda n, p: n * (1 - p) / p, lambda n, p: n * (1 - p) / (p * p),
    ),
    Discrete(
        "geom", ("p",), lambda k, p: _xlog1py(k - 1, -p) + np.log(p), lambda k, p: -np.expm1(np.log1p(-p) * k),
        lambda k, p: np.exp(np.log1p(-p) * k), lambda p: 1 / p, lambda p: (1 - p) / (p * p),
        lambda p: (call("entr", p) + call("entr", 1 - p)) / p, support=lambda p: (1, np.inf),
    ),
    Discrete(
        "logser", ("p",), lambda k, p: _xlogy(k, p) - np.log(k) - np.log(-np.log1p(-p)), support=lambda p: (1, np.inf),
        mean_of=lambda p: p / (p - 1) / np.log1p(-p),
    ),
    Discrete(
        "planck", ("lambda_",), lambda k, v: np.log(-np.expm1(-v)) - v * k, lambda k, v: -np.expm1(-v * (k + 1)),
        lambda k, v: np.exp(-v * (k + 1)), lambda v: 1 / np.expm1(v), lambda v: np.exp(-v) / np.expm1(-v) ** 2,
    ),
    Discrete(
        "betabinom", ("n", "a", "b"),
        lambda k, n, a, b: -np.log(n + 1) - call("betaln", n - k + 1, k + 1) + call("betaln", k + a, n - k + b)
        - call("betaln", a, b),
        mean_of=lambda n, a, b: n * a / (a + b),
        var_of=lambda n, a, b: n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1)), support=lambda n, a, b: (0, n),
    ),
    Discrete(
        "skellam", ("mu1", "mu2"),
        lambda k, m, n: -((np.sqrt(m) - np.sqrt(n)) ** 2) + k / 2 * np.log(m / n)
        + np.log(call("ive", np.abs(k), 2 * np.sqrt(m * n))),
        mean_of=lambda m, n: m - n, var_of=lambda m, n: m + n, support=lambda m, n: (-np.inf, np.inf),
    ),
)}  # fmt: skip
