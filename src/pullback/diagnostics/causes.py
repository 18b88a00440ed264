"""Known causes of NaNs and infinities, and the suggestions for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pullback.typing import Array

LOGARITHMS = frozenset({"log", "log1p", "log2", "log10"})
SUMS = frozenset({"sum", "mean", "add", "cumsum", "add_n"})
GROWING = frozenset({
    "add", "sub", "mul", "div", "sum", "cumsum", "prod", "cumprod", "square", "cube", "pow", "matmul", "contract",
    "convolve", "squared_difference", "mean", "var", "std", "euclidean_norm", "p_norm", "det", "cast_to_float", "gamma",
})  # fmt: skip
STRONG = (
    "The cotangent there is 0: what was computed is not used, but 0 times infinity is NaN. "
    "Take the gradient under 'with pb.strong_zero():', or keep the bad value out of the op with a second where: "
    "where(ok, f(where(ok, x, 1)), 0)."
)


class Origin:
    """The op that made the first NaN or infinity."""

    __slots__ = ("after", "before", "dtype", "earlier", "inputs", "op", "output", "outside")

    def __init__(
        self, op: str, inputs: Sequence[Any], output: Array, dtype: np.dtype[Any], after: Collection[str],
        before: Collection[str], earlier: Collection[str], outside: bool,
    ) -> None:  # fmt: skip
        self.op, self.output, self.dtype = op, output, dtype
        self.inputs = inputs  # plain numbers, where the op is elementwise
        self.after = after  # the ops that came afterwards, on the way to the result
        self.before = before  # the ops that made its inputs
        self.earlier = earlier  # these, and some that came before them
        self.outside = outside  # an operand that no transform follows was bad already


def _get_number(t: Origin, i: int) -> float:
    try:
        v = complex(t.inputs[i])
    except (IndexError, TypeError, ValueError):
        return float("nan")
    return float("nan") if v.imag else v.real


def advise_forward(t: Origin) -> str:
    """Return a suggestion against a NaN or infinity in the forward pass."""
    if t.outside:
        return "An operand was NaN or infinite before: a constant, or data that has no gradient. Check that value."
    advise = next((advise for ops, advise in ADVICE.items() if t.op in ops), None)
    return (advise(t) if advise is not None else "") or _advise_any(t)


def _get_largest(t: Origin) -> float:
    return float(np.finfo(t.dtype).max) if t.dtype.kind in "fc" else 0.0


def _advise_exponential(t: Origin) -> str:
    limit = f"{t.op} overflows {t.dtype} above {np.log(_get_largest(t)):.1f}."
    if LOGARITHMS & {*t.after}:
        return (
            f"{limit} A logarithm follows it: use the stable form, pb.softplus(x) for log(1 + exp(x)) and "
            "pb.log_sum_exp(x) for log(sum(exp(x))), or give the function a gradient of its own with "
            "pb.custom_gradient."
        )
    return f"{limit} Subtract the largest x first, as pb.softmax does, use pb.sigmoid for 1 / (1 + exp(-x)), or clip x."


def _advise_logarithm(t: Origin) -> str:
    x, edge = _get_number(t, 0), -1.0 if t.op == "log1p" else 0.0
    if x < edge:
        return f"{t.op} of a number below {edge:g} is NaN: keep its input positive, with pb.clip or pb.softplus."
    if "softmax" in t.earlier or {"exp", "div"} <= {*t.earlier}:
        return f"{t.op} of {x:g} is -inf. For the logarithm of a softmax use pb.log_softmax(x), which cannot underflow."
    return f"{t.op} of {x:g} is -inf: add a small number to its input, clip it, or use pb.special.xlogy for x·log(y)."


def _advise_root(t: Origin) -> str:
    if _get_number(t, 0) < 0:
        return f"{t.op} of a negative number is NaN: clip its input at 0, or use pb.abs."
    return _advise_division(t) if t.op == "rsqrt" else ""


def _advise_division(t: Origin) -> str:
    if t.op == "div" and abs(_get_number(t, 1)) > 0:
        return ""
    return (
        "Division by zero: use pb.div_no_nan(x, y), which gives 0 there, add a small number to the denominator, or "
        "choose the denominator with pb.where before dividing."
    )


def _advise_power(t: Origin) -> str:
    x, y = _get_number(t, 0), _get_number(t, 1)
    if x < 0 and y != np.floor(y):
        return f"A negative number to the power {y:g} is NaN: use an integer power, or pb.sign(x) * pb.abs(x) ** {y:g}."
    return f"0 to the power {y:g} is infinite: keep the base away from 0." if x == 0 else ""


def _advise_domain(t: Origin) -> str:
    return f"{_get_number(t, 0):g} is outside the domain of {t.op}, or on its edge: clip its input."


def _advise_input(t: Origin) -> str:
    return "The input itself has a NaN or infinity: find out where it comes from."


def _advise_mean(t: Origin) -> str:
    return f"{t.op} of nothing is NaN: the axis is empty." if np.isnan(t.output) else ""


def _advise_any(t: Origin) -> str:
    if np.isnan(t.output) or t.op not in GROWING:
        return (
            f"{t.op} has no finite value there: keep its input away from that point, or choose with pb.where before it."
        )
    largest = _get_largest(t)
    wider = ", work with logarithms, or use float64" if largest < np.finfo(float).max else ", or work with logarithms"
    return f"The result is too large for {t.dtype} (up to {largest:.3g}): scale it down{wider}."


# Suggestions against NaNs and infinities of some ops; an empty text where there is no specific one.
ADVICE: dict[frozenset[str], Callable[[Origin], str]] = {
    frozenset({"exp", "expm1", "sinh", "cosh"}): _advise_exponential,
    LOGARITHMS: _advise_logarithm,
    frozenset({"sqrt", "rsqrt"}): _advise_root,
    frozenset({"div", "reciprocal", "floor_div", "mod"}): _advise_division,
    frozenset({"pow"}): _advise_power,
    frozenset({"acos", "asin", "atanh", "acosh", "erfinv", "logit"}): _advise_domain,
    frozenset({"input"}): _advise_input,
    frozenset({"mean", "std", "var"}): _advise_mean,
}


def _advise_root_slope(t: Origin) -> str:
    if t.op == "sqrt" and {*t.before} & SUMS:
        return (
            "The slope of sqrt at 0 is infinite. For the length of a vector use pb.norm, whose gradient at 0 is 0; "
            "else add a small number under the root."
        )
    at = f"{_get_number(t, 0):g}"
    return f"The slope of {t.op} at {at} is infinite: add a small number to its input, or clip it away from 0."


def _advise_quotient_slope(t: Origin) -> str:
    at = " / ".join([f"{_get_number(t, i):g}" for i in range(len(t.inputs[:2]))])
    return f"The slope of {t.op} at {at} is too large: keep its input away from 0, or use a stable form."


def _advise_slope_at_end(t: Origin) -> str:
    return f"The slope of {t.op} at {_get_number(t, 0):g} is infinite: clip its input inside the domain."


# Suggestions against infinite derivatives of some ops.
SLOPES: dict[frozenset[str], Callable[[Origin], str]] = {
    frozenset({"sqrt", "rsqrt", "cbrt", "pow", "hypot", "p_norm", "norm"}): _advise_root_slope,
    LOGARITHMS | {"div", "reciprocal", "xlogy"}: _advise_quotient_slope,
    frozenset({"acos", "asin", "atanh", "acosh"}): _advise_slope_at_end,
}


def advise_backward(t: Origin, operands: Sequence[Any]) -> str:
    """Return a suggestion against a derivative that is not finite although the value is."""
    if np.isnan(t.output) and any(v == 0 for v in operands):
        return STRONG
    advise = next((advise for ops, advise in SLOPES.items() if t.op in ops), None)
    if advise is not None:
        return advise(t)
    return (
        f"The derivative of {t.op} is not finite there: keep its input away from that point, or give it a gradient of "
        "its own with pb.custom_gradient."
    )
