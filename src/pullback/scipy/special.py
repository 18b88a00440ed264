"""``scipy.special``: ops by SciPy's names, and compositions of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import strip
from pullback.names.scipy import FUNCTIONS
from pullback.ops import activations
from pullback.ops.special.functions import get_function
from pullback.scipy.arguments import as_float, as_operand, list_functions, make_fallback

if TYPE_CHECKING:
    from pullback.typing import Axis, TensorLike

NAMES = FUNCTIONS["special"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return get_function(name) or make_fallback("special", name)


def __dir__() -> list[str]:
    return list_functions("special")


def call(name: str, *args: TensorLike) -> Any:
    """Return the value of the special function with this name at tensors or arrays."""
    function = get_function(name)
    if function is None:
        raise AttributeError(f"scipy.special.{name} has no differentiable version.")
    return function(*args)


# ---- sums of exponentials


def logsumexp(
    a: TensorLike, axis: Axis = None, b: TensorLike | None = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return ``log(sum(b * exp(a)))`` without overflow, and the sign of the sum if asked for.

    >>> round(float(logsumexp([1.0, 2.0], b=[1.0, -0.1])), 6)
    0.682782
    """
    a = as_float(a)
    weights = None if b is None else as_float(b)
    if weights is not None:
        a, weights = np.broadcast_arrays(a, weights)
        a = np.where(weights == 0, -np.inf, a)
    top = np.max(strip(a), axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    terms = np.exp(a - top)
    total = np.sum(terms if weights is None else terms * weights, axis=axis, keepdims=True)
    sign = np.sign(strip(total))
    result = np.log(np.abs(total)) + top
    if not return_sign:
        result = np.where(sign < 0, np.nan, result)
    if not keepdims:
        kept = tuple(i for i in range(a.ndim) if i not in _resolve_axes(axis, a.ndim))
        shape = tuple(a.shape[i] for i in kept)
        result, sign = np.reshape(result, shape), np.reshape(sign, shape)
    return (result, sign) if return_sign else result


def _resolve_axes(axis: Axis, ndim: int) -> set[int]:
    if axis is None:
        return set(range(ndim))
    return {int(i) % ndim for i in (axis if isinstance(axis, tuple | list) else (axis,))}


def softmax(x: TensorLike, axis: Axis = None) -> Any:
    """Return ``exp(x) / sum(exp(x))``.

    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    x = as_float(x)
    terms = np.exp(x - np.max(strip(x), axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


def log_softmax(x: TensorLike, axis: Axis = None) -> Any:
    """Return the logarithm of ``softmax``.

    >>> log_softmax([0.0, 0.0]).round(6)
    array([-0.693147, -0.693147])
    """
    x = as_float(x)
    return x - logsumexp(x, axis=axis, keepdims=True)


def softplus(x: TensorLike) -> Any:
    """Return ``log(1 + exp(x))``."""
    return activations.softplus(as_float(x))


# ---- gamma functions


def multigammaln(a: TensorLike, d: int) -> Any:
    """Return the logarithm of the multivariate gamma function of dimension ``d``.

    >>> round(float(multigammaln(3.0, 2)), 6)
    1.550195
    """
    a = as_float(a)
    total = d * (d - 1) * 0.25 * math.log(math.pi)
    for j in range(d):
        total = total + call("gammaln", a - 0.5 * j)
    return total


def polygamma(n: TensorLike, x: TensorLike) -> Any:
    """Return the derivative of order ``n`` of ``digamma``."""
    n, x = as_operand(n), as_float(x)
    if not np.any(n == 0):
        return call("polygamma", n, x)
    return np.where(n == 0, call("digamma", x), call("polygamma", np.where(n == 0, 1, n), x))


psi: Any = lambda z: call("digamma", as_float(z))  # noqa: E731


def zeta(x: TensorLike, q: TensorLike | None = None) -> Any:
    """Return the zeta function of Riemann, or of Hurwitz where ``q`` is given."""
    x = as_float(x)
    return call("zeta", x, np.ones_like(x) if q is None else as_float(q))


def poch(z: TensorLike, m: TensorLike) -> Any:
    """Return ``gamma(z + m) / gamma(z)``."""
    return call("poch", as_float(z), as_float(m))


def comb(N: TensorLike, k: TensorLike, *, exact: bool = False, repetition: bool = False) -> Any:
    """Return the number of combinations of ``N`` things taken ``k`` at a time.

    >>> float(comb(5.0, 2.0))
    10.0
    """
    if exact:
        return make_fallback("special", "comb")(N, k, exact=True, repetition=repetition)
    n, k = as_float(N), as_float(k)
    if repetition:
        n = n + k - 1
    inside = (k <= n) & (n >= 0) & (k >= 0)
    return np.where(inside, call("binom", np.where(inside, n, 1.0), np.where(inside, k, 1.0)), 0.0)


def perm(N: TensorLike, k: TensorLike, exact: bool = False) -> Any:
    """Return the number of permutations of ``N`` things taken ``k`` at a time."""
    if exact:
        return make_fallback("special", "perm")(N, k, exact=True)
    n, k = as_float(N), as_float(k)
    inside = (k <= n) & (n >= 0) & (k >= 0)
    return np.where(inside, call("poch", np.where(inside, n - k + 1, 1.0), np.where(inside, k, 1.0)), 0.0)


def factorial(n: TensorLike, exact: bool = False, extend: str = "zero") -> Any:
    """Return ``gamma(n + 1)``, 0 for negative ``n``.

    >>> float(factorial(4.0))
    24.0
    """
    if exact or extend != "zero":
        return make_fallback("special", "factorial")(n, exact=exact, extend=extend)
    n = as_float(n)
    return np.where(n < 0, 0.0, call("gamma", np.where(n < 0, 0.0, n) + 1))


def factorial2(n: TensorLike, exact: bool = False, extend: str = "zero") -> Any:
    """Return the double factorial; only of plain numbers."""
    return make_fallback("special", "factorial2")(n, exact=exact, extend=extend)


def lambertw(z: TensorLike, k: int = 0, tol: float = 1e-8) -> Any:
    """Return the ``k``-th branch of the solution of ``w * exp(w) = z``.

    >>> complex(lambertw(0.0))
    0j
    """
    return call("_lambertw", as_float(z), k, tol)


def sinc(x: TensorLike) -> Any:
    """Return ``sin(pi * x) / (pi * x)``."""
    return np.sinc(as_float(x))


def diric(x: TensorLike, n: int) -> Any:
    """Return ``sin(x * n / 2) / (n * sin(x / 2))``, the periodic sinc function."""
    x = as_float(x)
    turns = np.round(strip(x) / (2 * math.pi))
    rest = x - turns * (2 * math.pi)
    near = np.abs(rest) < 1e-4
    safe = np.where(near, 1.0, rest)
    middle = 1 - (n * n - 1) * rest**2 / 24
    sign = (-1.0) ** (turns * (n - 1))
    return sign * np.where(near, middle, np.sin(n * safe / 2) / (n * np.sin(safe / 2)))


# ---- Bessel functions


def _make_derivative(name: str, sign: float, phase: float) -> Any:
    def derivative(v: TensorLike, z: TensorLike, n: int = 1) -> Any:
        v, z = as_operand(v), as_float(z)
        total: Any = 0.0
        for i in range(n + 1):
            total = total + math.comb(n, i) * sign**i * call(name, v - n + 2 * i, z)
        return total * phase**n / 2**n

    derivative.__doc__ = f"Return the derivative of order ``n`` of ``{name}(v, z)`` by ``z``."
    return derivative


jvp, yvp = _make_derivative("jv", -1.0, 1.0), _make_derivative("yv", -1.0, 1.0)
ivp, kvp = _make_derivative("iv", 1.0, 1.0), _make_derivative("kv", 1.0, -1.0)


def _make_spherical(name: str, at_zero: float | None = None) -> Any:
    """Return a spherical Bessel function; ``at_zero`` is its second derivative there, for the order 0."""

    def compute(n: Any, z: Any, derivative: bool) -> Any:
        root = np.sqrt(math.pi / 2 / z)
        if not derivative:
            return root * call(name, n + 0.5, z)
        slope = {"jv": jvp, "yv": yvp, "iv": ivp, "kv": kvp}[name]
        return root * slope(n + 0.5, z) - 0.5 * root / z * call(name, n + 0.5, z)

    def near_zero(n: Any, z: Any, derivative: bool) -> Any:
        """Return the beginning of the series, with the first two derivatives."""
        if derivative:
            return np.where(n == 0, at_zero * z, np.where(n == 1, 1 / 3, np.where(n == 2, z * 2 / 15, 0.0)))
        return np.where(n == 0, 1 + at_zero * z * z / 2, np.where(n == 1, z / 3, np.where(n == 2, z * z / 15, 0.0)))

    def spherical(n: TensorLike, z: TensorLike, derivative: bool = False) -> Any:
        n, z = as_operand(n), as_float(z)
        if name == "kv":
            return compute(n, z, derivative)
        odd = np.remainder(n + (name == "yv") + derivative, 2) == 1
        sign = np.where((z < 0) & odd, -1.0, 1.0)
        if at_zero is None:
            return sign * compute(n, np.where(z < 0, -z, z), derivative)
        zero = z == 0
        y = sign * compute(n, np.where(zero, 1.0, np.where(z < 0, -z, z)), derivative)
        return np.where(zero, near_zero(n, z, derivative), y)

    kinds = "positive" if name == "kv" else "real"
    spherical.__doc__ = f"Return the spherical Bessel function that ``{name}`` belongs to, of {kinds} ``z``."
    return spherical


spherical_jn, spherical_yn = _make_spherical("jv", -1 / 3), _make_spherical("yv")
spherical_in, spherical_kn = _make_spherical("iv", 1 / 3), _make_spherical("kv")
