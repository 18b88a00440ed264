"""The scalar functions that the lowering of an op is written in, by NumPy's names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pullback.compiler.builder import Code, Value, constant
from pullback.compiler.math import arithmetic, bessel, beta, exp_log, philox, powers, quantiles, special, trigonometry
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.errors import CompileError

FUNCTIONS: dict[str, Callable[..., Value]] = {
    f.__name__: f
    for f in (
        MathBuilder.absolute, MathBuilder.copysign, MathBuilder.isnan, MathBuilder.rint, MathBuilder.select,
        MathBuilder.sqrt,
        arithmetic.equal, arithmetic.not_equal, arithmetic.less, arithmetic.less_equal, arithmetic.greater,
        arithmetic.greater_equal, arithmetic.logical_and, arithmetic.logical_or, arithmetic.logical_xor,
        arithmetic.logical_not, arithmetic.bitwise_and, arithmetic.bitwise_or, arithmetic.bitwise_xor,
        arithmetic.invert, arithmetic.left_shift, arithmetic.right_shift, arithmetic.isinf, arithmetic.isfinite,
        arithmetic.maximum, arithmetic.minimum,
        arithmetic.floor, arithmetic.ceil, arithmetic.fmod, arithmetic.remainder, arithmetic.floor_divide,
        exp_log.exp, exp_log.expm1, exp_log.exp2, exp_log.log, exp_log.log2, exp_log.log10, exp_log.log1p,
        exp_log.logaddexp, exp_log.logaddexp2, exp_log.tanh, exp_log.sinh, exp_log.cosh, exp_log.arcsinh,
        exp_log.arccosh, exp_log.arctanh,
        beta.betaln,
        bessel.i0, bessel.i0e, bessel.i1, bessel.i1e,
        philox.philox,
        powers.power, powers.cbrt, powers.hypot, powers.erf,
        quantiles.erfinv, quantiles.ndtri,
        special.gammaln, special.digamma, special.polygamma, special.erfc, special.ndtr, special.log_ndtr,
        trigonometry.sin, trigonometry.cos, trigonometry.tan, trigonometry.arctan, trigonometry.arctan2,
        trigonometry.arcsin, trigonometry.arccos,
    )
}  # fmt: skip


class VectorFunctions:
    """The argument ``s`` of an op's lowering: ``s.exp(x)`` emits exp of the lanes of x."""

    def __init__(self, code: Code) -> None:
        self.builder = MathBuilder(code)

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name not in FUNCTIONS:
            raise CompileError(f"there is no machine code for {name}.")
        return partial(FUNCTIONS[name], self.builder)


def emit_scalar(code: Code, op: Any, params: dict[str, Any], args: list[Value], width: int, dtype: str) -> Value:
    """Emit the lowering of a scalar op, and return its result in the given dtype."""
    formula = op.lower.emit
    names = formula.__code__.co_varnames[1 + len(args) : formula.__code__.co_argcount]
    result = formula(VectorFunctions(code), *args, *(params[n] for n in names))
    if not isinstance(result, Value):  # the lowering returned a constant
        result = constant(code, result, dtype, width)
    return result.cast(dtype)
