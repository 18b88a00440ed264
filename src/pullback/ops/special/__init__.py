"""Special functions, computed by SciPy, with derivatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.accelerate import run_elements
from pullback.core.axes import broadcast, elementwise1, elementwise2
from pullback.core.calculus import partials
from pullback.core.lowering import scalar
from pullback.core.op import alias, op
from pullback.errors import NoRuleError
from pullback.names.answers import install_answers as _install_answers
from pullback.numerics import stable_formulas
from pullback.numerics.adjoints import select
from pullback.ops.special.lazy_scipy import OfOrder, Polygamma, RealFunction, Through
from pullback.ops.special.lazy_scipy import find_scipy_op as find_scipy_op

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__ = [
    "beta", "betaln", "digamma", "entr", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi", "expit", "gamma",
    "gammaln", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jv", "kl_div", "lgamma", "log_expit", "log_ndtr",
    "logit", "ndtr", "ndtri", "polygamma", "psi", "rel_entr", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

ROOT_PI = math.sqrt(math.pi)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
POSITIVE = (0.5, 3.0)
DIGAMMA, ERFC, NDTR, LOG_NDTR = map(Through, ("digamma", "erfc", "ndtr", "log_ndtr"))
GAMMALN, EXPIT, LOG_EXPIT, LOGIT = map(RealFunction, ("gammaln", "expit", "log_expit", "logit"))
SHARE = (0.1, 0.9)


def _act_with_orders(*orders: int) -> broadcast:
    """Return the broadcasting of a function of ``x`` and an order, with these orders in its samples."""
    low, *_, high = orders
    return broadcast("(),()->()", [
        ((np.array(low), ()), {}), ((np.array(high), (3,)), {}), ((np.array(low), (0, 2)), {}),
        ((np.array(orders), (2, len(orders))), {}), ((np.array([[low], [high]]), (3,)), {}),
    ])  # fmt: skip


def _refuse_order(name: str, argument: str) -> Any:
    """Return a rule that raises: there is no derivative by an order."""

    def refuse(g: Array) -> Any:
        raise NoRuleError(
            f"{name} has no derivative in {argument} here. If no gradient is wanted, pass pb.stop_gradient({argument})."
        )

    return refuse


# ---- gamma functions


def _polygamma_dx(n: Value, x: Value) -> Any:
    return polygamma(n + 1, x)


@op(
    Polygamma("polygamma"),
    acts=_act_with_orders(1, 2, 3),
    d=partials(_refuse_order("polygamma", "n"), _polygamma_dx),
    domain=POSITIVE,
    lower=scalar(lambda s, n, x: s.polygamma(n, x), fits=lambda dtypes, numbers: numbers[0] == 1),
)
def polygamma(n: TensorLike, x: TensorLike, /) -> Any:
    """Return the derivative of order ``n`` of ``digamma``.

    n: the order.
    x: a tensor, an array or a number.

    >>> pb.special.polygamma(1, 1.0)
    np.float64(1.64493406684822...)
    """


@op(
    DIGAMMA,
    acts=elementwise1,
    run=run_elements(DIGAMMA),
    d=partials(lambda x: polygamma(1, x)),
    domain=POSITIVE,
    lower=scalar(lambda s, x: s.digamma(x)),
)
def digamma(x: TensorLike, /) -> Any:
    """Return the derivative of ``gammaln``.

    x: a tensor, an array or a number.

    >>> pb.special.digamma(1.0)
    np.float64(-0.5772156649015...)
    """


@op(
    GAMMALN,
    acts=elementwise1,
    run=run_elements(GAMMALN),
    d=partials(lambda x: digamma(x)),
    domain=POSITIVE,
    lower=scalar(lambda s, x: s.gammaln(x)),
)
def gammaln(x: TensorLike, /) -> Any:
    """Return the logarithm of the absolute value of the gamma function.

    x: a tensor, an array or a number.

    >>> pb.special.gammaln(np.array([1.0, 5.0]))
    array([0.        , 3.17805383])
    """


@op(Through("gamma"), acts=elementwise1, d=partials(lambda z, x: z * digamma(x)), domain=POSITIVE)
def gamma(x: TensorLike, /) -> Any:
    """Return the gamma function, ``(n - 1)!`` for positive integers ``n``.

    x: a tensor, an array or a number.

    >>> pb.special.gamma(5.0)
    np.float64(24.0)
    """


@op(
    RealFunction("betaln"),
    acts=elementwise2,
    d=partials(lambda x, y: digamma(x) - digamma(x + y), lambda x, y: digamma(y) - digamma(x + y)),
    domain=POSITIVE,
    lower=scalar(lambda s, x, y: s.betaln(x, y)),
)
def betaln(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the logarithm of the absolute value of the beta function.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.special.betaln(1.0, 1.0)
    np.float64(0.0)
    """


@op(
    RealFunction("beta"),
    acts=elementwise2,
    d=partials(lambda z, x, y: z * (digamma(x) - digamma(x + y)), lambda z, x, y: z * (digamma(y) - digamma(x + y))),
    domain=POSITIVE,
)
def beta(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``gamma(x) * gamma(y) / gamma(x + y)``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.special.beta(1.0, 2.0)
    np.float64(0.5)
    """


def _zeta_dq(x: Value, q: Value) -> Any:
    return -(zeta(x + 1, q) * (x.astype(q.dtype) if hasattr(x, "astype") else x))


@op(
    RealFunction("zeta"),
    acts=_act_with_orders(2, 3, 4),
    d=partials(_refuse_order("zeta", "x"), _zeta_dq),
    domain=POSITIVE,
)
def zeta(x: TensorLike, q: TensorLike, /) -> Any:
    """Return the Hurwitz zeta function: the sum of ``(k + q) ** -x`` over all ``k`` from 0; no derivative in ``x``.

    x: the exponent.
    q: the second argument.

    >>> pb.special.zeta(2.0, 1.0)
    np.float64(1.64493406684822...)
    """


# ---- error functions and the normal distribution


@op(
    ERFC,
    acts=elementwise1,
    run=run_elements(ERFC),
    d=partials(lambda g, x: g * np.exp(-(x * x)) * (-2 / ROOT_PI)),
    lower=scalar(lambda s, x: s.erfc(x)),
)
def erfc(x: TensorLike, /) -> Any:
    """Return ``1 - erf(x)``, accurate where that is near 0.

    x: a tensor, an array or a number.

    >>> pb.special.erfc(10.0)
    np.float64(2.0884875837625...e-45)
    """


@op(Through("erfcx"), acts=elementwise1, d=partials(lambda g, z, x: g * (x + x) * z - g * (2 / ROOT_PI)))
def erfcx(x: TensorLike, /) -> Any:
    """Return ``exp(x * x) * erfc(x)``, without overflow.

    x: a tensor, an array or a number.

    >>> pb.special.erfcx(100.0)
    np.float64(0.0056416137829894...)
    """


@op(
    RealFunction("erfinv"),
    acts=elementwise1,
    d=partials(lambda g, z: g * np.exp(z * z) * (ROOT_PI / 2)),
    domain=SHARE,
    lower=scalar(lambda s, x: s.erfinv(x)),
)
def erfinv(x: TensorLike, /) -> Any:
    """Return the inverse of ``erf``.

    x: a tensor, an array or a number.

    >>> pb.special.erfinv(0.5)
    np.float64(0.476936276204...)
    """


@op(
    RealFunction("erfcinv"),
    acts=elementwise1,
    d=partials(lambda g, z: g * np.exp(z * z) * (-ROOT_PI / 2)),
    domain=SHARE,
)
def erfcinv(x: TensorLike, /) -> Any:
    """Return the inverse of ``erfc``.

    x: a tensor, an array or a number.

    >>> pb.special.erfcinv(0.5)
    np.float64(0.476936276204...)
    """


@op(
    NDTR,
    acts=elementwise1,
    run=run_elements(NDTR),
    d=partials(lambda g, x: g * np.exp(x * x * -0.5) * (1 / ROOT_TWO_PI)),
    lower=scalar(lambda s, x: s.ndtr(x)),
)
def ndtr(x: TensorLike, /) -> Any:
    """Return the cumulative distribution function of the standard normal distribution.

    x: a tensor, an array or a number.

    >>> pb.special.ndtr(np.array([-np.inf, 0.0]))
    array([0. , 0.5])
    """


@op(
    LOG_NDTR,
    acts=elementwise1,
    run=run_elements(LOG_NDTR),
    d=partials(lambda g, z, x: g * np.exp(x * x * -0.5 - z) / ROOT_TWO_PI),
    lower=scalar(lambda s, x: s.log_ndtr(x)),
)
def log_ndtr(x: TensorLike, /) -> Any:
    """Return the logarithm of ``ndtr``, accurate far to the left.

    x: a tensor, an array or a number.

    >>> pb.special.log_ndtr(-40.0)
    np.float64(-804.60844201375...)
    """


@op(
    RealFunction("ndtri"),
    acts=elementwise1,
    d=partials(lambda g, z: g * np.exp(z * z * 0.5) * ROOT_TWO_PI),
    domain=SHARE,
    lower=scalar(lambda s, x: s.ndtri(x)),
)
def ndtri(x: TensorLike, /) -> Any:
    """Return the quantile function of the standard normal distribution, the inverse of ``ndtr``.

    x: a tensor, an array or a number.

    >>> pb.special.ndtri(0.5)
    np.float64(0.0)
    """


# ---- logarithms and entropies


@op(
    EXPIT,
    acts=elementwise1,
    d=partials(lambda z: z - z * z),
    run=run_elements(EXPIT),
    lower=scalar(stable_formulas.expit),
)
def expit(x: TensorLike, /) -> Any:
    """Return ``1 / (1 + exp(-x))``, the inverse of ``logit``.

    x: a tensor, an array or a number.

    >>> pb.special.expit(np.array([-1000.0, 0.0]))
    array([0. , 0.5])
    """


@op(
    LOG_EXPIT,
    acts=elementwise1,
    run=run_elements(LOG_EXPIT),
    d=partials(lambda g, z: -(g * np.expm1(z))),
    lower=scalar(stable_formulas.log_expit),
)
def log_expit(x: TensorLike, /) -> Any:
    """Return the logarithm of ``expit``.

    x: a tensor, an array or a number.

    >>> pb.special.log_expit(-1000.0)
    np.float64(-1000.0)
    """


@op(
    LOGIT,
    acts=elementwise1,
    run=run_elements(LOGIT),
    d=partials(lambda g, x: g / (x - x * x)),
    domain=SHARE,
    lower=scalar(stable_formulas.logit),
)
def logit(x: TensorLike, /) -> Any:
    """Return ``log(x / (1 - x))``.

    x: a tensor, an array or a number.

    >>> pb.special.logit(np.array([0.0, 0.5, 1.0]))
    array([-inf,   0.,  inf])
    """


def _log_or_zero(x: Value, y: Value) -> Any:
    """Return ``log(y)``, and 0 where ``x`` is 0."""
    nought = (x == 0) & (y == 0 if np.result_type(y).kind == "c" else y <= 0)
    return np.log(select(nought, 1, y))


@op(
    Through("xlogy"),
    acts=elementwise2,
    d=partials(lambda g, x, y: g * _log_or_zero(x, y), lambda g, x, y: g * x / select(x == 0, 1, y)),
    domain=POSITIVE,
    lower=scalar(stable_formulas.xlogy),
)
def xlogy(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``x * log(y)``, and 0 where ``x`` is 0, even if ``y`` is 0; the derivatives are 0 there too.

    >>> pb.special.xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    array([0., 0.])
    """


@op(
    Through("xlog1py"),
    acts=elementwise2,
    d=partials(lambda g, x, y: g * _log_or_zero(x, y + 1), lambda g, x, y: g * x / select(x == 0, 1, y + 1)),
    domain=POSITIVE,
    lower=scalar(stable_formulas.xlog1py),
)
def xlog1py(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``x * log1p(y)``, and 0 where ``x`` is 0, even if ``y`` is -1; the derivatives are 0 there too.

    >>> pb.special.xlog1py(0.0, -1.0)
    np.float64(0.0)
    """


@op(
    RealFunction("entr"),
    acts=elementwise1,
    d=partials(lambda g, x: -(g * np.log(x)) - g),
    domain=POSITIVE,
    lower=scalar(stable_formulas.entr),
)
def entr(x: TensorLike, /) -> Any:
    """Return ``-x * log(x)``, and 0 at 0: a term of the entropy.

    x: a tensor, an array or a number.

    >>> pb.special.entr(np.array([0.0, 0.5]))
    array([0.        , 0.34657359])
    """


@op(
    RealFunction("rel_entr"),
    acts=elementwise2,
    d=partials(lambda g, x, y: g * np.log(x / y) + g, lambda g, x, y: -(g * x / y)),
    domain=POSITIVE,
    lower=scalar(stable_formulas.rel_entr),
)
def rel_entr(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``x * log(x / y)``, and 0 where ``x`` is 0: a term of the relative entropy.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.special.rel_entr(np.array([0.0, 1.0]), 1.0)
    array([0., 0.])
    """


@op(
    RealFunction("kl_div"),
    acts=elementwise2,
    d=partials(lambda g, x, y: g * np.log(x / y), lambda g, x, y: g - g * x / y),
    domain=POSITIVE,
)
def kl_div(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``x * log(x / y) - x + y``, which is never negative.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.special.kl_div(2.0, 2.0)
    np.float64(0.0)
    """


@op(Through("expi"), acts=elementwise1, d=partials(lambda g, x: g * np.exp(x) / x), domain=POSITIVE)
def expi(x: TensorLike, /) -> Any:
    """Return the exponential integral Ei: the integral of ``exp(t) / t`` from minus infinity to ``x``.

    >>> pb.special.expi(1.0)
    np.float64(1.8951178163559...)
    """


@op(Through("exp1"), acts=elementwise1, d=partials(lambda g, x: -(g * np.exp(-x)) / x), domain=POSITIVE)
def exp1(x: TensorLike, /) -> Any:
    """Return the exponential integral E1: the integral of ``exp(-t) / t`` from ``x`` to infinity.

    >>> pb.special.exp1(1.0)
    np.float64(0.2193839343955...)
    """


# ---- Bessel functions: the derivative of one is the difference or sum of its neighbours


def _iv_dx(v: Value, x: Value) -> Any:
    return (iv(v - 1, x) + iv(v + 1, x)) * 0.5


@op(
    OfOrder("iv"),
    acts=_act_with_orders(0, 1, 3),
    d=partials(_refuse_order("iv", "v"), _iv_dx),
)
def iv(v: TensorLike, x: TensorLike, /) -> Any:
    """Return the modified Bessel function of the first kind, of order ``v``; no derivative in ``v``.

    v: the order.
    x: a tensor, an array or a number.

    >>> pb.special.iv(0, 0.0)
    np.float64(1.0)
    """


def _ive_dx(v: Value, x: Value) -> Any:
    return (ive(v - 1, x) + ive(v + 1, x)) * 0.5 - np.sign(x) * ive(v, x)


@op(
    RealFunction("ive"),
    acts=_act_with_orders(0, 1, 3),
    d=partials(_refuse_order("ive", "v"), _ive_dx),
    domain=POSITIVE,
)
def ive(v: TensorLike, x: TensorLike, /) -> Any:
    """Return ``exp(-abs(x)) * iv(v, x)``, without overflow.

    v: the order.
    x: a tensor, an array or a number.

    >>> pb.special.ive(0, 0.0)
    np.float64(1.0)
    """


def _i0_dx(x: Value) -> Any:
    return i1(x)


@op(RealFunction("i0"), acts=elementwise1, d=partials(_i0_dx), lower=scalar(lambda s, x: s.i0(x)))
def i0(x: TensorLike, /) -> Any:
    """Return the modified Bessel function of order 0.

    x: a tensor, an array or a number.

    >>> pb.special.i0(0.0)
    np.float64(1.0)
    """


@op(
    RealFunction("i1"),
    acts=elementwise1,
    d=partials(lambda x: (i0(x) + iv(2, x)) * 0.5),
    lower=scalar(lambda s, x: s.i1(x)),
)
def i1(x: TensorLike, /) -> Any:
    """Return the modified Bessel function of order 1.

    x: a tensor, an array or a number.

    >>> pb.special.i1(0.0)
    np.float64(0.0)
    """


def _i0e_dx(z: Value, x: Value) -> Any:
    return i1e(x) - np.sign(x) * z


@op(
    RealFunction("i0e"),
    acts=elementwise1,
    d=partials(_i0e_dx),
    domain=POSITIVE,
    lower=scalar(lambda s, x: s.i0e(x)),
)
def i0e(x: TensorLike, /) -> Any:
    """Return ``exp(-abs(x)) * i0(x)``, without overflow.

    x: a tensor, an array or a number.

    >>> pb.special.i0e(1000.0)
    np.float64(0.012617240455891...)
    """


@op(
    RealFunction("i1e"),
    acts=elementwise1,
    d=partials(lambda z, x: (i0e(x) + ive(2, x)) * 0.5 - np.sign(x) * z),
    domain=POSITIVE,
    lower=scalar(lambda s, x: s.i1e(x)),
)
def i1e(x: TensorLike, /) -> Any:
    """Return ``exp(-abs(x)) * i1(x)``, without overflow.

    x: a tensor, an array or a number.

    >>> pb.special.i1e(0.0)
    np.float64(0.0)
    """


def _jv_dx(v: Value, x: Value) -> Any:
    return (jv(v - 1, x) - jv(v + 1, x)) * 0.5


@op(
    OfOrder("jv"),
    acts=_act_with_orders(0, 1, 3),
    d=partials(_refuse_order("jv", "v"), _jv_dx),
)
def jv(v: TensorLike, x: TensorLike, /) -> Any:
    """Return the Bessel function of the first kind, of order ``v``; no derivative in ``v``.

    v: the order.
    x: a tensor, an array or a number.

    >>> pb.special.jv(0, 0.0)
    np.float64(1.0)
    """


@op(RealFunction("j0"), acts=elementwise1, d=partials(lambda g, x: -(g * jv(1, x))))
def j0(x: TensorLike, /) -> Any:
    """Return the Bessel function of order 0.

    x: a tensor, an array or a number.

    >>> pb.special.j0(0.0)
    np.float64(1.0)
    """


@op(RealFunction("j1"), acts=elementwise1, d=partials(lambda x: (j0(x) - jv(2, x)) * 0.5))
def j1(x: TensorLike, /) -> Any:
    """Return the Bessel function of order 1.

    x: a tensor, an array or a number.

    >>> pb.special.j1(0.0)
    np.float64(0.0)
    """


# ---- other names

lgamma = alias("lgamma", gammaln)
psi = alias("psi", digamma)

_install_answers("pb.special")
