"""Write src/pullback/compiler/math/coefficients.py: the polynomials of the vector maths, fitted with mpmath.

What is fitted is what is left of a function when its first terms, which are exact, are taken away: so the error is
small beside the result wherever that is small.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-not-found, import-untyped, unused-ignore]

mp.mp.dps = 50
PAGE = Path(__file__).resolve().parent.parent / "src" / "pullback" / "compiler" / "math" / "coefficients.py"
HEAD = '''"""Coefficients of polynomials, highest power first, written by script/fit_coefficients.py."""

from __future__ import annotations

'''


def take_rest(f: Callable[[Any], Any], start: int, step: int = 1) -> Callable[[Any], Any]:
    """Return what f has from the power ``start`` of its series on, divided by that power; as a function of x**step."""
    series = mp.taylor(f, 0, start + 14 * step)

    def rest(z: Any) -> Any:
        x = z if step == 1 else mp.sqrt(z)
        if abs(x) < mp.mpf("1e-3"):  # the difference would lose everything
            return mp.polyval(series[start::step][::-1], z)
        return (f(x) - mp.polyval(series[:start][::-1], x)) / x**start

    return rest


half = mp.log(2) / 2 * mp.mpf("1.001")
low, high = mp.sqrt(0.5) - 1, mp.sqrt(2) - 1
near = (high / (high + 2)) ** 2 * mp.mpf("1.001")
quarter = (mp.pi / 4 * mp.mpf("1.005")) ** 2


def double_atanh(s: Any) -> Any:
    return 2 * mp.atanh(s)


exp_rest, log_rest = take_rest(mp.exp, 2), take_rest(lambda f: mp.log(1 + f), 3)
log_odd, log_odder = take_rest(double_atanh, 3, 2), take_rest(double_atanh, 5, 2)
sin_rest, cos_rest = take_rest(mp.sin, 3, 2), take_rest(mp.cos, 4, 2)
sinh_rest, cosh_rest, tanh_rest = take_rest(mp.sinh, 3, 2), take_rest(mp.cosh, 2, 2), take_rest(mp.tanh, 3, 2)
atan_rest, asin_rest = take_rest(mp.atan, 3, 2), take_rest(mp.asin, 3, 2)
erf_near = take_rest(mp.erf, 1, 2)
digamma_root, negative_root = mp.findroot(mp.digamma, 1.46), mp.findroot(mp.digamma, -0.504)


def lgamma_slope(t: Any) -> Any:
    """Return lgamma(2 + t) / t."""
    return mp.loggamma(2 + t).real / t if abs(t) > mp.mpf("1e-20") else mp.digamma(2)


def digamma_slope(t: Any) -> Any:
    """Return digamma at 1.5 + t, divided by the distance from its root."""
    apart = mp.mpf("1.5") + t - digamma_root
    return mp.digamma(mp.mpf("1.5") + t) / apart if apart else mp.polygamma(1, digamma_root)


def digamma_below(t: Any) -> Any:
    """Return digamma at its first negative root plus t, divided by t."""
    return mp.digamma(negative_root + t) / t if abs(t) > mp.mpf("1e-20") else mp.polygamma(1, negative_root)


def erfcx_rest(q: Any, middle: int) -> Any:
    """Return what is left of (1 + 2 * x) * exp(x * x) * erfc(x), where q is (x - middle) / (x + middle).

    It is 1 at 0; that is taken away, and the rest divided by q + 1.
    """
    if q + 1 < mp.mpf("1e-20"):
        return middle * (1 - 1 / mp.sqrt(mp.pi))
    if 1 - q < mp.mpf("1e-20"):
        return 1 / mp.sqrt(mp.pi) - mp.mpf("0.5")
    x = middle * (1 + q) / (1 - q)
    tail = mp.exp(x * x) * mp.erfc(x) if x < 50 else mp.fsum(_asymptotic_term(x, k) for k in range(20))
    return ((1 + 2 * x) * tail - 1) / (q + 1)


def _asymptotic_term(x: Any, k: int) -> Any:
    return (-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k / (x * mp.sqrt(mp.pi))


def bessel_near(z: Any, order: int) -> Any:
    """Return what is left of the series of besseli(order, x) / x**order after its first term, divided by z, or x**2."""
    terms = (z ** (k - 1) / (4**k * 2**order * mp.fac(k) * mp.fac(k + order)) for k in range(1, 60))
    return mp.fsum(terms)


def bessel_far(u: Any, order: int) -> Any:
    """Return sqrt(x) * exp(-x) * besseli(order, x), where u is 16 / x - 1."""
    if u + 1 < mp.mpf("1e-12"):
        return 1 / mp.sqrt(2 * mp.pi)
    x = 16 / (u + 1)
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)


def erfcinv(share: Any) -> Any:
    """Return the number whose erfc is ``share``, by Newton's method on the logarithm."""
    y = mp.sqrt(-mp.log(share)) if share < mp.mpf("0.01") else mp.mpf("0.5")
    for _ in range(60):
        step = mp.log(mp.erfc(y) / share) * mp.exp(y * y) * mp.erfc(y) * mp.sqrt(mp.pi) / 2
        y += step
        if abs(step) < mp.mpf("1e-40"):
            break
    return y


def erfinv_slope(u: Any) -> Any:
    """Return erfinv(x) / x, where u is -log(1 - x * x) - 2.5."""
    x = mp.sqrt(-mp.expm1(-u - mp.mpf("2.5")))
    return mp.erfinv(x) / x if x > mp.mpf("1e-15") else mp.sqrt(mp.pi) / 2


def erfcinv_ratio(u: Any, shift: str) -> Any:
    """Return erfcinv(x) / s, where s is sqrt(-log(x)) and u is 1 / s - shift."""
    over = u + mp.mpf(shift)
    return erfcinv(mp.exp(-1 / over**2)) * over


def find_range(low: str, high: str, shift: str) -> tuple[Any, Any]:
    """Return the range of 1 / s - shift for s between two numbers."""
    return 1 / mp.mpf(high) - mp.mpf(shift), 1 / mp.mpf(low) - mp.mpf(shift)


# name: what, from, to, how many coefficients
FITS: dict[str, tuple[Callable[[Any], Any], Any, Any, int]] = {
    "EXP_F4": (exp_rest, -half, half, 5),
    "EXP_F8": (exp_rest, -half, half, 10),
    "LOG_F4": (log_rest, low, high, 9),
    "LOG_F8": (log_odd, mp.mpf(0), near, 7),
    "LOG_SHORT": (log_rest, low, high, 11),
    "LOG_LONG": (log_odder, mp.mpf(0), near, 8),
    "SIN_F4": (sin_rest, mp.mpf(0), quarter, 3),
    "SIN_F8": (sin_rest, mp.mpf(0), quarter, 6),
    "COS_F4": (cos_rest, mp.mpf(0), quarter, 3),
    "COS_F8": (cos_rest, mp.mpf(0), quarter, 6),
    "SINH_F4": (sinh_rest, mp.mpf(0), half**2, 3),
    "SINH_F8": (sinh_rest, mp.mpf(0), half**2, 5),
    "COSH_F4": (cosh_rest, mp.mpf(0), half**2, 3),
    "COSH_F8": (cosh_rest, mp.mpf(0), half**2, 6),
    "TANH_F4": (tanh_rest, mp.mpf(0), (half / 2) ** 2, 3),
    "TANH_F8": (tanh_rest, mp.mpf(0), (half * mp.mpf("0.75")) ** 2, 7),
    "ATAN_F4": (atan_rest, mp.mpf(0), mp.mpf(1), 9),
    "ATAN_F8": (atan_rest, mp.mpf(0), mp.mpf(1), 21),
    "ASIN_F4": (asin_rest, mp.mpf(0), mp.mpf("0.2501"), 5),
    "ASIN_F8": (asin_rest, mp.mpf(0), mp.mpf("0.2501"), 13),
    "CBRT": (lambda x: 1 / mp.root(x, 3), mp.mpf("0.35"), mp.mpf("2.83"), 6),
    "ERF_F8": (lambda z: erf_near(z) - 1, mp.mpf(0), mp.mpf(1), 15),
    "ERFC_F8": (lambda x: mp.log(mp.erfc(x)), mp.mpf("0.999"), mp.mpf(6), 27),
    "LGAMMA_F4": (lgamma_slope, mp.mpf("-0.5"), mp.mpf("0.5"), 9),
    "LGAMMA_F8": (lgamma_slope, mp.mpf("-0.5"), mp.mpf("0.5"), 19),
    "DIGAMMA_F4": (digamma_slope, mp.mpf("-0.5"), mp.mpf("0.5"), 11),
    "DIGAMMA_F8": (digamma_slope, mp.mpf("-0.5"), mp.mpf("0.5"), 22),
    "DIGAMMA_BELOW": (digamma_below, mp.mpf("-0.1"), mp.mpf("0.1"), 17),
    "ERFCX_F4": (lambda q: erfcx_rest(q, 2), mp.mpf(-1), mp.mpf(1), 11),
    "ERFCX_F8": (lambda q: erfcx_rest(q, 4), mp.mpf(-1), mp.mpf(1), 23),
    "I0_NEAR_F4": (lambda z: bessel_near(z, 0), mp.mpf(0), mp.mpf(64), 9),
    "I0_NEAR_F8": (lambda z: bessel_near(z, 0), mp.mpf(0), mp.mpf(64), 15),
    "I1_NEAR_F4": (lambda z: bessel_near(z, 1), mp.mpf(0), mp.mpf(64), 9),
    "I1_NEAR_F8": (lambda z: bessel_near(z, 1), mp.mpf(0), mp.mpf(64), 14),
    "I0_FAR_F4": (lambda u: bessel_far(u, 0), mp.mpf(-1), mp.mpf(1), 6),
    "I0_FAR_F8": (lambda u: bessel_far(u, 0), mp.mpf(-1), mp.mpf(1), 23),
    "I1_FAR_F4": (lambda u: bessel_far(u, 1), mp.mpf(-1), mp.mpf(1), 6),
    "I1_FAR_F8": (lambda u: bessel_far(u, 1), mp.mpf(-1), mp.mpf(1), 23),
    "ERFINV_F4": (erfinv_slope, mp.mpf("-2.5"), mp.mpf("2.5"), 10),
    "ERFINV_F8": (erfinv_slope, mp.mpf("-2.5"), mp.mpf("2.5"), 21),
    "ERFCINV_F4": (lambda u: erfcinv_ratio(u, "0.26"), *find_range("2.38", "10.3", "0.26"), 9),
    "ERFCINV_F8": (lambda u: erfcinv_ratio(u, "0.29"), *find_range("2.38", "6.11", "0.29"), 19),
    "ERFCINV_FAR_F8": (lambda u: erfcinv_ratio(u, "0.1"), *find_range("6.09", "27.5", "0.1"), 25),
}


def main() -> None:
    lines = []
    for name, (f, a, b, count) in FITS.items():
        coefficients, error = mp.chebyfit(f, [a, b], count, error=True)
        print(name, count, mp.nstr(error, 3))
        row = "".join(f"    {repr(float(c)).replace('e+', 'e')},\n" for c in coefficients)
        lines.append(f"{name} = (\n{row})\n")
    PAGE.write_text(HEAD + "".join(lines), "utf-8")


if __name__ == "__main__":
    main()
