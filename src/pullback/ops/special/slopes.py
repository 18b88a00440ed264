"""Partial derivatives of special functions: of the result ``z`` and the arguments, None where there is no rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.ops.special.family import SLOPES, Slope
from pullback.ops.special.family import call_function as call
from pullback.ops.special.shares import beta_density, beta_share_by_shapes, gamma_density, gamma_share_by_shape

if TYPE_CHECKING:
    from pullback.typing import Operand, Value

__all__: list[str] = []

ROOT_PI = math.sqrt(math.pi)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
TURN = math.pi / 180
SMALL = 0.1  # below it, differences of near numbers are series


def _negate(*slopes: Slope | None) -> tuple[Slope | None, ...]:
    return tuple(None if s is None else (lambda *a, s=s: -s(*a)) for s in slopes)


def _sum_series(x: Value, coefficients: list[float]) -> Any:
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _choose(near: Any, series: Any, formula: Any, x: Value, safe: float) -> Any:
    """Return ``series(x)`` where ``near``, else ``formula(x)``, which is not computed where it would be NaN."""
    return np.where(near, series(np.where(near, x, 0.0)), formula(np.where(near, safe, x)))


def _exprel_slope(z: Value, x: Value) -> Any:
    terms = [(k + 1) / math.factorial(k + 2) for k in range(14)]
    near = np.abs(x) < 1
    return _choose(near, lambda x: _sum_series(x, terms), lambda x: (np.exp(x) * (x - 1) + 1) / (x * x), x, 1.0)


def _spence_slope(z: Value, x: Value) -> Any:
    terms = [(-1.0) ** (k + 1) / (k + 1) for k in range(16)]
    u = x - 1
    near = np.abs(u) < SMALL
    return _choose(near, lambda u: _sum_series(u, terms), lambda u: -np.log1p(u) / u, u, 1.0)


def _expn_slope(z: Value, n: Any, x: Value) -> Any:
    n = _as_order(n)
    return np.where(n > 0, -call("expn", np.maximum(n - 1, 0), x), -z * (1 + 1 / x))  # of order 0: exp(-x) / x


def _k_slope(m: Value) -> Any:
    near = np.abs(m) < 1e-4

    def formula(m: Value) -> Any:
        return (call("ellipe", m) / (1 - m) - call("ellipk", m)) / (2 * m)

    series = [1 / 8, 9 / 64, 75 / 512]
    return _choose(near, lambda m: _sum_series(m, series) * math.pi, formula, m, 0.5)


def _e_slope(z: Value, m: Value) -> Any:
    near = np.abs(m) < 1e-4
    series = [-1 / 8, -3 / 64, -15 / 512]
    return _choose(
        near,
        lambda m: _sum_series(m, series) * math.pi,
        lambda m: (call("ellipe", m) - call("ellipk", m)) / (2 * m),
        m,
        0.5,
    )


def _compute_delta(phi: Value, m: Value) -> Any:
    return np.sqrt(1 - m * np.sin(phi) ** 2)


def _f_by_m(z: Value, phi: Value, m: Value) -> Any:
    near = m == 0
    safe = np.where(near, 0.5, m)
    f = call("ellipeinc", phi, safe) / (2 * safe * (1 - safe)) - call("ellipkinc", phi, safe) / (2 * safe)
    twice: Any = 2 * phi
    f = f - np.sin(twice) / (4 * (1 - safe) * _compute_delta(phi, safe))
    return np.where(near, (phi - np.sin(phi) * np.cos(phi)) / 4, f)


def _e_by_m(z: Value, phi: Value, m: Value) -> Any:
    near = m == 0
    safe = np.where(near, 0.5, m)
    e = (call("ellipeinc", phi, safe) - call("ellipkinc", phi, safe)) / (2 * safe)
    return np.where(near, -(phi - np.sin(phi) * np.cos(phi)) / 4, e)


# ---- distributions


def _t_density(df: Value, t: Value) -> Any:
    log = call("gammaln", (df + 1) / 2) - call("gammaln", df / 2) - 0.5 * np.log(df * math.pi)
    return np.exp(log - (df + 1) / 2 * np.log1p(t * t / df))


def _t_by_df(z: Value, df: Value, t: Value) -> Any:
    squares: Any = t * t
    both: Any = df + squares
    half, place = df / 2, df / both
    zero: Any = 0 * t
    by_a, _ = beta_share_by_shapes(half, np.full_like(half, 0.5) + zero, place)
    by_place = np.exp(call("xlogy", half - 1, place) - call("betaln", half, 0.5 + 0 * half))
    # (1 - place)**-0.5 times the derivative of place by df, t² / (df + t²)²
    moved = by_place * np.abs(t) / both**1.5
    return -0.5 * np.sign(t) * (0.5 * by_a + moved)


def _find_f_place(dfn: Value, dfd: Value, x: Value) -> Any:
    moved: Any = dfn * x
    return moved / (dfd + moved)


def _add_f_degrees(dfn: Value, dfd: Value, x: Value) -> Any:
    moved: Any = dfn * x
    return dfd + moved


def _f_by_x(dfn: Value, dfd: Value, x: Value) -> Any:
    return beta_density(dfn / 2, dfd / 2, _find_f_place(dfn, dfd, x)) * dfn * dfd / _add_f_degrees(dfn, dfd, x) ** 2


def _f_by_degrees(i: int) -> Slope:
    def slope(z: Value, dfn: Value, dfd: Value, x: Value) -> Any:
        place = _find_f_place(dfn, dfd, x)
        moved = beta_density(dfn / 2, dfd / 2, place) * x / _add_f_degrees(dfn, dfd, x) ** 2 * (dfn if i else dfd)
        return 0.5 * beta_share_by_shapes(dfn / 2, dfd / 2, place)[i] + (-moved if i else moved)

    return slope


def _differentiate_f_quantile(slope: Slope) -> Slope:
    """Return the derivative of the quantile by a degree of freedom, from that of the distribution function."""
    return lambda z, dfn, dfd, p: -slope(None, dfn, dfd, z) / _f_by_x(dfn, dfd, z)


def _binomial_density(k: Value, n: Value, p: Value) -> Any:
    """Return minus the derivative of ``bdtr(k, n, p)`` by ``p``."""
    k = np.floor(k)
    return beta_density(k + 1, n - k, p)


# ---- powers


def _boxcox_by_lambda(z: Value, x: Value, y: Operand) -> Any:
    log = np.log(x)
    u = y * log
    # log² (u e^u - e^u + 1) / u² = log² * exprel's derivative
    return log * log * _exprel_slope(z, u)


def _inverse_boxcox_by_lambda(z: Value, y: Value, lmbda: Value) -> Any:
    """Return ``z * (y / (l (1 + l y)) - log1p(l y) / l²)``."""
    u = y * lmbda
    near = np.abs(u) < SMALL
    terms = [(-1.0) ** (k + 1) * (k + 1) / (k + 2) for k in range(18)]

    def formula(u: Value) -> Any:
        more: Any = 1 + u
        share: Any = u / more
        return (share - np.log1p(u)) / (u * u)

    return z * y * y * _choose(near, lambda u: _sum_series(u, terms), formula, u, 1.0)


def _as_order(n: Any) -> Any:
    return np.asarray(n) if isinstance(n, int | float) else n


def _list_polynomial_slopes(name: str, factor: Any, arguments: int, raised: int = 0) -> tuple[Slope | None, ...]:
    """Return the slopes of an orthogonal polynomial: one of lower order and raised parameters, times a factor."""

    def slope(z: Value, n: Any, *given: Any) -> Any:
        *parameters, x = given
        n = _as_order(n)
        up = [p + raised for p in parameters]
        return (n > 0) * factor(n, *parameters) * call(name, np.maximum(n - 1, 0), *up, x)

    return *[None] * (arguments - 1), slope


def _legendre_slope(z: Value, n: Any, x: Value) -> Any:
    n = _as_order(n)
    return (n > 0) * (n + 1) / 2 * call("eval_jacobi", np.maximum(n - 1, 0), 1.0, 1.0, x)


def _chebyu_slope(z: Value, n: Any, x: Value) -> Any:
    n = _as_order(n)
    return (n > 0) * 2 * call("eval_gegenbauer", np.maximum(n - 1, 0), 2.0, x)


def _laguerre_slope(z: Value, n: Any, x: Value) -> Any:
    n = _as_order(n)
    return (n > 0) * -1.0 * call("eval_genlaguerre", np.maximum(n - 1, 0), 1.0, x)


def _list_neighbour_slopes(name: str, sign: float, other: float, add: float = 0.0) -> tuple[Slope | None, Slope]:
    """Return the slopes of a function of an order and ``x``: half the neighbours, with signs, and ``add * z``."""

    def slope(z: Value, v: Any, x: Value) -> Any:
        v = _as_order(v)
        result = (sign * call(name, v - 1, x) + other * call(name, v + 1, x)) * 0.5
        return result + add * z if add else result

    return None, slope


def _is_pole(x: Any) -> Any:
    """Return where the gamma function has a pole: at 0, -1, -2, …"""
    return (x <= 0) & (np.floor(x) == x)


def _rgamma_slope(z: Any, x: Any) -> Any:
    """Return the derivative of 1 / gamma, which is smooth, by reflection on the left."""
    left = x <= 0
    under, over = np.where(left, x, 0.0), np.where(left, 1.0, x)
    reflected = call("gamma", 1 - under) * np.cos(np.pi * under) - z * call("digamma", 1 - under)
    return np.where(left, reflected, -z * call("digamma", over))


def _ratio_slope(z: Any, x: Any, m: Any, factor: Any) -> Any:
    """Return the derivative of ``z = factor * gamma(x + m) / gamma(x)`` by ``x``, with its limits at poles."""
    end = x + m
    below, above = _is_pole(x), _is_pole(end)
    difference = z * (call("digamma", np.where(above, 1.0, end)) - call("digamma", np.where(below, 1.0, x)))
    mirrored = z * (call("digamma", 1 - np.where(above, end, 0.0)) - call("digamma", 1 - np.where(below, x, 0.0)))
    only = below & ~above
    crossing = factor * call("gamma", np.where(only, end, 1.0)) * _rgamma_slope(0.0, np.where(only, x, 0.0))
    return np.where(only, crossing, np.where(below & above, mirrored, difference))


def _binom_slope_by_chosen(z: Any, n: Any, k: Any) -> Any:
    rest = n - k + 1
    pole = _is_pole(rest) & ~_is_pole(n + 1)
    difference = z * (call("digamma", np.where(pole, 1.0, rest)) - call("digamma", k + 1))
    at_pole = call("gamma", np.where(pole, n, 0.0) + 1) * call("rgamma", k + 1)
    return np.where(pole, -at_pole * _rgamma_slope(0.0, np.where(pole, rest, 0.0)), difference)


SLOPES.update({
    # gamma functions
    "rgamma": (_rgamma_slope,),
    "loggamma": (lambda z, x: call("digamma", x),),
    "gammasgn": (lambda z, x: np.zeros_like(z),),
    "binom": (
        lambda z, n, k: _ratio_slope(z, n - k + 1, k, call("rgamma", k + 1)),
        _binom_slope_by_chosen,
    ),
    "poch": (
        lambda z, x, m: _ratio_slope(z, x, m, 1.0),
        lambda z, x, m: z * call("digamma", x + m),
    ),
    "gammainc": (lambda z, a, x: gamma_share_by_shape(a, x), lambda z, a, x: gamma_density(a, x)),
    "gammaincc": (lambda z, a, x: -gamma_share_by_shape(a, x), lambda z, a, x: -gamma_density(a, x)),
    "gammaincinv": (
        lambda z, a, y: -gamma_share_by_shape(a, z) / gamma_density(a, z),
        lambda z, a, y: 1 / gamma_density(a, z),
    ),
    "gammainccinv": (
        lambda z, a, y: -gamma_share_by_shape(a, z) / gamma_density(a, z),
        lambda z, a, y: -1 / gamma_density(a, z),
    ),
    "betainc": (
        lambda z, a, b, x: beta_share_by_shapes(a, b, x)[0],
        lambda z, a, b, x: beta_share_by_shapes(a, b, x)[1],
        lambda z, a, b, x: beta_density(a, b, x),
    ),
    "betaincinv": (
        lambda z, a, b, y: -beta_share_by_shapes(a, b, z)[0] / beta_density(a, b, z),
        lambda z, a, b, y: -beta_share_by_shapes(a, b, z)[1] / beta_density(a, b, z),
        lambda z, a, b, y: 1 / beta_density(a, b, z),
    ),
    # distribution functions
    "chdtr": (
        lambda z, v, x: 0.5 * gamma_share_by_shape(v / 2, x / 2), lambda z, v, x: 0.5 * gamma_density(v / 2, x / 2)
    ),
    "chdtri": (
        lambda z, v, p: -gamma_share_by_shape(v / 2, z / 2) / gamma_density(v / 2, z / 2),
        lambda z, v, p: -2 / gamma_density(v / 2, z / 2),
    ),
    "gdtr": (
        lambda z, a, b, x: gamma_density(b, a * x) * x,
        lambda z, a, b, x: gamma_share_by_shape(b, a * x),
        lambda z, a, b, x: gamma_density(b, a * x) * a,
    ),
    "pdtr": (None, lambda z, k, m: -gamma_density(np.floor(k) + 1, m)),
    "bdtr": (None, None, lambda z, k, n, p: -_binomial_density(k, n, p)),
    "nbdtr": (None, None, lambda z, k, n, p: beta_density(n, np.floor(k) + 1, p)),
    "stdtr": (_t_by_df, lambda z, df, t: _t_density(df, t)),
    "stdtrit": (lambda z, df, p: -_t_by_df(z, df, z) / _t_density(df, z), lambda z, df, p: 1 / _t_density(df, z)),
    "fdtr": (_f_by_degrees(0), _f_by_degrees(1), lambda z, dfn, dfd, x: _f_by_x(dfn, dfd, x)),
    "fdtri": (
        _differentiate_f_quantile(_f_by_degrees(0)), _differentiate_f_quantile(_f_by_degrees(1)),
        lambda z, dfn, dfd, p: 1 / _f_by_x(dfn, dfd, z),
    ),
    "ndtri_exp": (lambda z, x: np.exp(x + z * z * 0.5) * ROOT_TWO_PI,),
    "owens_t": (
        lambda z, h, a: np.exp(-h * h / 2) * call("erf", a * h / math.sqrt(2)) / (-2 * ROOT_TWO_PI),
        lambda z, h, a: np.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)),
    ),
    # error functions, exponential integrals
    "erfi": (lambda z, x: np.exp(x * x) * (2 / ROOT_PI),),
    "dawsn": (lambda z, x: 1 - 2 * x * z,),
    "wofz": (lambda z, x: 2j / ROOT_PI - 2 * x * z,),
    "expn": (None, _expn_slope),
    "exprel": (_exprel_slope,),
    "spence": (_spence_slope,),
    "sici:0": (lambda z, x: np.sinc(x / math.pi),),
    "sici:1": (lambda z, x: np.cos(x) / x,),
    "shichi:0": (lambda z, x: np.sinh(x) / x,),
    "shichi:1": (lambda z, x: np.cosh(x) / x,),
    "fresnel:0": (lambda z, x: np.sin(x * x * (math.pi / 2)),),
    "fresnel:1": (lambda z, x: np.cos(x * x * (math.pi / 2)),),
    "airy:0": (lambda z, x: call("airy:1", x),),
    "airy:1": (lambda z, x: x * call("airy:0", x),),
    "airy:2": (lambda z, x: call("airy:3", x),),
    "airy:3": (lambda z, x: x * call("airy:2", x),),
    # powers, logarithms, angles
    "exp2": (lambda z, x: z * math.log(2),),
    "exp10": (lambda z, x: z * math.log(10),),
    "cosm1": (lambda z, x: -np.sin(x),),
    "sindg": (lambda z, x: call("cosdg", x) * TURN,),
    "cosdg": (lambda z, x: call("sindg", x) * -TURN,),
    "tandg": (lambda z, x: (1 + z * z) * TURN,),
    "cotdg": (lambda z, x: (1 + z * z) * -TURN,),
    "radian": (
        lambda z, d, m, s: np.full_like(z, TURN), lambda z, d, m, s: np.full_like(z, TURN / 60),
        lambda z, d, m, s: np.full_like(z, TURN / 3600),
    ),
    "powm1": (lambda z, x, y: y * x ** (y - 1), lambda z, x, y: (z + 1) * np.log(x)),
    "boxcox": (lambda z, x, y: x ** (y - 1), _boxcox_by_lambda),
    "boxcox1p": (lambda z, x, y: (1 + x) ** (y - 1), lambda z, x, y: _boxcox_by_lambda(z, 1 + x, y)),
    "inv_boxcox": (lambda z, y, k: z ** (1 - k), _inverse_boxcox_by_lambda),
    "inv_boxcox1p": (
        lambda z, y, k: (z + 1) ** (1 - k), lambda z, y, k: _inverse_boxcox_by_lambda(z + 1, y, k)
    ),
    "huber": (
        lambda z, delta, r: np.where(np.abs(r) <= delta, 0.0, np.abs(r) - delta),
        lambda z, delta, r: np.clip(r, -delta, delta),
    ),
    "pseudo_huber": (
        lambda z, delta, r: 2 * z / delta - r * r / (delta * np.sqrt(1 + (r / delta) ** 2)),
        lambda z, delta, r: r / np.sqrt(1 + (r / delta) ** 2),
    ),
    # elliptic integrals, hypergeometric functions
    "ellipk": (lambda z, m: _k_slope(m),),
    "ellipkm1": (lambda z, p: -_k_slope(1 - p),),
    "ellipe": (_e_slope,),
    "ellipkinc": (lambda z, phi, m: 1 / _compute_delta(phi, m), _f_by_m),
    "ellipeinc": (lambda z, phi, m: _compute_delta(phi, m), _e_by_m),
    "hyp0f1": (None, lambda z, v, x: call("hyp0f1", v + 1, x) / v),
    "hyp1f1": (None, None, lambda z, a, b, x: call("hyp1f1", a + 1, b + 1, x) * a / b),
    "hyperu": (None, None, lambda z, a, b, x: -a * call("hyperu", a + 1, b + 1, x)),
    "hyp2f1": (None, None, None, lambda z, a, b, c, x: call("hyp2f1", a + 1, b + 1, c + 1, x) * (a * b) / c),
    # Bessel functions
    "y0": (lambda z, x: -call("y1", x),),
    "y1": (lambda z, x: call("y0", x) - z / x,),
    "k0": (lambda z, x: -call("k1", x),),
    "k1": (lambda z, x: -call("k0", x) - z / x,),
    "k0e": (lambda z, x: z - call("k1e", x),),
    "k1e": (lambda z, x: z - call("k0e", x) - z / x,),
    "yv": _list_neighbour_slopes("yv", 1.0, -1.0),
    "yn": _list_neighbour_slopes("yv", 1.0, -1.0),
    "kv": _list_neighbour_slopes("kv", -1.0, -1.0),
    "kn": _list_neighbour_slopes("kv", -1.0, -1.0),
    "kve": _list_neighbour_slopes("kve", -1.0, -1.0, 1.0),
    "struve": (None, lambda z, v, x: call("struve", v - 1, x) - v / x * z),
    "modstruve": (None, lambda z, v, x: call("modstruve", v - 1, x) - v / x * z),
    # orthogonal polynomials
    "eval_legendre": (None, _legendre_slope),
    "eval_chebyt": _list_polynomial_slopes("eval_chebyu", lambda n: n, 2),
    "eval_chebyu": (None, _chebyu_slope),
    "eval_hermite": _list_polynomial_slopes("eval_hermite", lambda n: 2 * n, 2),
    "eval_hermitenorm": _list_polynomial_slopes("eval_hermitenorm", lambda n: n, 2),
    "eval_laguerre": (None, _laguerre_slope),
    "eval_genlaguerre": _list_polynomial_slopes("eval_genlaguerre", lambda n, a: -1.0, 3, 1),
    "eval_gegenbauer": _list_polynomial_slopes("eval_gegenbauer", lambda n, a: 2 * a, 3, 1),
    "eval_jacobi": _list_polynomial_slopes("eval_jacobi", lambda n, a, b: (n + a + b + 1) / 2, 4, 1),
})  # fmt: skip
for _name, _of in {
    "betaincc": "betainc", "chdtrc": "chdtr", "gdtrc": "gdtr", "pdtrc": "pdtr", "bdtrc": "bdtr", "nbdtrc": "nbdtr",
    "fdtrc": "fdtr",
}.items():  # fmt: skip
    SLOPES[_name] = _negate(*SLOPES[_of])
SLOPES["betainccinv"] = (
    SLOPES["betaincinv"][0], SLOPES["betaincinv"][1], lambda z, a, b, y: -1 / beta_density(a, b, z)
)  # fmt: skip
SLOPES["bdtri"] = (None, None, lambda z, k, n, y: -1 / _binomial_density(k, n, z))
SLOPES["nbdtri"] = (None, None, lambda z, k, n, y: 1 / beta_density(n, np.floor(k) + 1, z))
SLOPES["pdtri"] = (None, lambda z, k, y: -1 / gamma_density(np.floor(k) + 1, z))
