"""The functions of ``pb.special``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, TensorLike, TensorOrNested
from typing import Any, overload

@overload
def beta(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``gamma(x) * gamma(y) / gamma(x + y)``."""

@overload
def beta(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``gamma(x) * gamma(y) / gamma(x + y)``."""

@overload
def beta(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def betaln(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the logarithm of the absolute value of the beta function."""

@overload
def betaln(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the logarithm of the absolute value of the beta function."""

@overload
def betaln(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def digamma(x: TensorOrNested, /) -> Tensor:
    """Return the derivative of ``gammaln``."""

@overload
def digamma(x: ArrayLike, /) -> Array: ...
@overload
def entr(x: TensorOrNested, /) -> Tensor:
    """Return ``-x * log(x)``, and 0 at 0: a term of the entropy."""

@overload
def entr(x: ArrayLike, /) -> Array: ...
@overload
def erfc(x: TensorOrNested, /) -> Tensor:
    """Return ``1 - erf(x)``, accurate where that is near 0."""

@overload
def erfc(x: ArrayLike, /) -> Array: ...
@overload
def erfcinv(x: TensorOrNested, /) -> Tensor:
    """Return the inverse of ``erfc``."""

@overload
def erfcinv(x: ArrayLike, /) -> Array: ...
@overload
def erfcx(x: TensorOrNested, /) -> Tensor:
    """Return ``exp(x * x) * erfc(x)``, without overflow."""

@overload
def erfcx(x: ArrayLike, /) -> Array: ...
@overload
def erfinv(x: TensorOrNested, /) -> Tensor:
    """Return the inverse of ``erf``."""

@overload
def erfinv(x: ArrayLike, /) -> Array: ...
@overload
def exp1(x: TensorOrNested, /) -> Tensor:
    """Return the exponential integral E1: the integral of ``exp(-t) / t`` from ``x`` to infinity."""

@overload
def exp1(x: ArrayLike, /) -> Array: ...
@overload
def expi(x: TensorOrNested, /) -> Tensor:
    """Return the exponential integral Ei: the integral of ``exp(t) / t`` from minus infinity to ``x``."""

@overload
def expi(x: ArrayLike, /) -> Array: ...
@overload
def expit(x: TensorOrNested, /) -> Tensor:
    """Return ``1 / (1 + exp(-x))``, the inverse of ``logit``."""

@overload
def expit(x: ArrayLike, /) -> Array: ...
@overload
def gamma(x: TensorOrNested, /) -> Tensor:
    """Return the gamma function, ``(n - 1)!`` for positive integers ``n``."""

@overload
def gamma(x: ArrayLike, /) -> Array: ...
@overload
def gammaln(x: TensorOrNested, /) -> Tensor:
    """Return the logarithm of the absolute value of the gamma function."""

@overload
def gammaln(x: ArrayLike, /) -> Array: ...
@overload
def i0(x: TensorOrNested, /) -> Tensor:
    """Return the modified Bessel function of order 0."""

@overload
def i0(x: ArrayLike, /) -> Array: ...
@overload
def i0e(x: TensorOrNested, /) -> Tensor:
    """Return ``exp(-abs(x)) * i0(x)``, without overflow."""

@overload
def i0e(x: ArrayLike, /) -> Array: ...
@overload
def i1(x: TensorOrNested, /) -> Tensor:
    """Return the modified Bessel function of order 1."""

@overload
def i1(x: ArrayLike, /) -> Array: ...
@overload
def i1e(x: TensorOrNested, /) -> Tensor:
    """Return ``exp(-abs(x)) * i1(x)``, without overflow."""

@overload
def i1e(x: ArrayLike, /) -> Array: ...
@overload
def iv(v: TensorOrNested, x: TensorLike, /) -> Tensor:
    """Return the modified Bessel function of the first kind, of order ``v``; no derivative in ``v``."""

@overload
def iv(v: TensorLike, x: TensorOrNested, /) -> Tensor:
    """Return the modified Bessel function of the first kind, of order ``v``; no derivative in ``v``."""

@overload
def iv(v: ArrayLike, x: ArrayLike, /) -> Array: ...
@overload
def ive(v: TensorOrNested, x: TensorLike, /) -> Tensor:
    """Return ``exp(-abs(x)) * iv(v, x)``, without overflow."""

@overload
def ive(v: TensorLike, x: TensorOrNested, /) -> Tensor:
    """Return ``exp(-abs(x)) * iv(v, x)``, without overflow."""

@overload
def ive(v: ArrayLike, x: ArrayLike, /) -> Array: ...
@overload
def j0(x: TensorOrNested, /) -> Tensor:
    """Return the Bessel function of order 0."""

@overload
def j0(x: ArrayLike, /) -> Array: ...
@overload
def j1(x: TensorOrNested, /) -> Tensor:
    """Return the Bessel function of order 1."""

@overload
def j1(x: ArrayLike, /) -> Array: ...
@overload
def jv(v: TensorOrNested, x: TensorLike, /) -> Tensor:
    """Return the Bessel function of the first kind, of order ``v``; no derivative in ``v``."""

@overload
def jv(v: TensorLike, x: TensorOrNested, /) -> Tensor:
    """Return the Bessel function of the first kind, of order ``v``; no derivative in ``v``."""

@overload
def jv(v: ArrayLike, x: ArrayLike, /) -> Array: ...
@overload
def kl_div(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``x * log(x / y) - x + y``, which is never negative."""

@overload
def kl_div(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``x * log(x / y) - x + y``, which is never negative."""

@overload
def kl_div(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def log_expit(x: TensorOrNested, /) -> Tensor:
    """Return the logarithm of ``expit``."""

@overload
def log_expit(x: ArrayLike, /) -> Array: ...
@overload
def log_ndtr(x: TensorOrNested, /) -> Tensor:
    """Return the logarithm of ``ndtr``, accurate far to the left."""

@overload
def log_ndtr(x: ArrayLike, /) -> Array: ...
@overload
def logit(x: TensorOrNested, /) -> Tensor:
    """Return ``log(x / (1 - x))``."""

@overload
def logit(x: ArrayLike, /) -> Array: ...
@overload
def ndtr(x: TensorOrNested, /) -> Tensor:
    """Return the cumulative distribution function of the standard normal distribution."""

@overload
def ndtr(x: ArrayLike, /) -> Array: ...
@overload
def ndtri(x: TensorOrNested, /) -> Tensor:
    """Return the quantile function of the standard normal distribution, the inverse of ``ndtr``."""

@overload
def ndtri(x: ArrayLike, /) -> Array: ...
@overload
def polygamma(n: TensorOrNested, x: TensorLike, /) -> Tensor:
    """Return the derivative of order ``n`` of ``digamma``."""

@overload
def polygamma(n: TensorLike, x: TensorOrNested, /) -> Tensor:
    """Return the derivative of order ``n`` of ``digamma``."""

@overload
def polygamma(n: ArrayLike, x: ArrayLike, /) -> Array: ...
@overload
def rel_entr(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``x * log(x / y)``, and 0 where ``x`` is 0: a term of the relative entropy."""

@overload
def rel_entr(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``x * log(x / y)``, and 0 where ``x`` is 0: a term of the relative entropy."""

@overload
def rel_entr(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def xlog1py(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``x * log1p(y)``, and 0 where ``x`` is 0, even if ``y`` is -1; the derivatives are 0 there too."""

@overload
def xlog1py(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``x * log1p(y)``, and 0 where ``x`` is 0, even if ``y`` is -1; the derivatives are 0 there too."""

@overload
def xlog1py(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def xlogy(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``x * log(y)``, and 0 where ``x`` is 0, even if ``y`` is 0; the derivatives are 0 there too."""

@overload
def xlogy(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``x * log(y)``, and 0 where ``x`` is 0, even if ``y`` is 0; the derivatives are 0 there too."""

@overload
def xlogy(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def zeta(x: TensorOrNested, q: TensorLike, /) -> Tensor:
    """Return the Hurwitz zeta function: the sum of ``(k + q) ** -x`` over all ``k`` from 0; no derivative in ``x``."""

@overload
def zeta(x: TensorLike, q: TensorOrNested, /) -> Tensor:
    """Return the Hurwitz zeta function: the sum of ``(k + q) ** -x`` over all ``k`` from 0; no derivative in ``x``."""

@overload
def zeta(x: ArrayLike, q: ArrayLike, /) -> Array: ...

lgamma = gammaln
psi = digamma
