"""NumPy ufuncs that are compositions of ops, and functions that choose between real and complex results."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy._core.umath import clip  # type: ignore[attr-defined]
from numpy.lib import scimath

from pullback import late_binding
from pullback.core.convert import check_real
from pullback.core.tensor import call_unfollowed, may_hold, read_sizes, strip
from pullback.core.writes import mark_as_array
from pullback.errors import ShapeError
from pullback.interop.numpy_arguments import align_operands, wrap_constant
from pullback.ops.elementwise import reciprocal, sign

if TYPE_CHECKING:
    from pullback.typing import Operand, Value

# ---- compositions


def _float_power(x: Value, y: Operand) -> Any:
    return np.power(_as_float64(x), _as_float64(y))


def _as_float64(x: Any) -> Any:
    return np.astype(x, np.result_type(x.dtype, np.float64)) if hasattr(x, "dtype") else x


def _as_float(x: Any) -> Any:
    """Return integers and bools in the float dtype of NumPy's ufuncs, but at least float32; floats as they are."""
    if not hasattr(x, "dtype") or x.dtype.kind not in "iub":
        return x
    return np.astype(x, np.result_type(x.dtype, np.float32 if x.dtype.itemsize == 1 else np.float16))


def _fmax(x: Value, y: Value) -> Any:
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.maximum(x, y)))


def _fmin(x: Value, y: Value) -> Any:
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.minimum(x, y)))


def _sign(x: Value) -> Any:
    """Return the sign as NumPy does, NaN for NaN."""
    z = sign(x)
    lost = np.isnan(strip(x))
    return np.where(lost, x, z) if may_hold(lost) else z


def _heaviside(x: Value, h: Operand) -> Any:
    check_real("np.heaviside", x)
    x, h = _as_float(x), _as_float(h)
    return np.where(np.equal(x, 0), h, (np.sign(x) + 1) / 2)


def _reciprocal(x: Value) -> Any:
    """Return the reciprocal as NumPy does, of an integer an integer."""
    if x.dtype.kind in "fc":
        return reciprocal(x)
    return wrap_constant("np.reciprocal", call_unfollowed(np.reciprocal, x), x)


def _copysign(x: Value, y: Value) -> Any:
    if not hasattr(x, "dtype"):  # Python's numbers do not widen y
        return wrap_constant("np.copysign", call_unfollowed(lambda y: np.copysign(x, y), y), y)
    x = _as_float(x)
    return np.absolute(x) * call_unfollowed(lambda x, y: np.copysign(np.ones_like(x), y), x, y)


def _ldexp(x: Any, n: Any) -> Any:
    """Return x * 2**n by three factors, each of which is a number although 2**n may be none (0 * inf is NaN)."""
    x = _as_float(x)
    most = 3 * (np.finfo(x.dtype).maxexp - 3)  # more than there is between the smallest and the largest number

    def raise_two(n: Any, part: Any) -> Any:
        return np.ldexp(np.ones((), x.dtype), part(np.clip(n, -most, most)))

    third = call_unfollowed(lambda n: raise_two(n, lambda n: n // 3), n)
    return x * third * third * call_unfollowed(lambda n: raise_two(n, lambda n: n - n // 3 * 2), n)


def _conjugate(x: Value) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _modf(x: Value) -> Any:
    x = _as_float(x)
    finite = np.where(np.isinf(x), np.zeros((), x.dtype), x)
    whole = np.trunc(finite)
    rest = np.where(np.signbit(x), -(whole - finite), finite - whole)  # -0 of negative numbers
    return rest, np.trunc(x)


def _frexp(x: Value) -> Any:
    x = _as_float(x)
    exponent = call_unfollowed(lambda x: np.frexp(x)[1], x)
    return _ldexp(x, -exponent), exponent


def _vecdot(x: Any, y: Any, axis: int = -1, keepdims: bool = False) -> Any:
    x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"np.vecdot: vectors of {x.shape[-1]} and {y.shape[-1]} elements have no dot product.")
    products = _conjugate(x) * y
    z = np.sum(products, axis=-1)
    z = z if z.dtype == products.dtype else np.astype(z, products.dtype)  # a sum of short integers is int64
    return np.expand_dims(z, axis) if keepdims else z


def _sinc(x: Value, /) -> Any:
    y = x * pi
    small = np.absolute(y) < 0.05  # the series, so that all derivatives are right at 0
    q = y * y
    series = 1 - q * (1 - q * (1 - q / 42) / 20) / 6
    safe = np.where(small, 1.0, y)
    return np.where(small, series, np.sin(safe) / safe)


CALLS = {
    np.exp2: lambda x: 2.0 ** _as_float(x),
    np.deg2rad: lambda x: _as_float(x) * (pi / 180), np.radians: lambda x: _as_float(x) * (pi / 180),
    np.rad2deg: lambda x: _as_float(x) * (180 / pi), np.degrees: lambda x: _as_float(x) * (180 / pi),
    np.fabs: lambda x: np.absolute(_as_float(x)), np.positive: lambda x: np.copy(x) if np.ndim(x) else np.copy(x)[()],
    np.float_power: _float_power, np.fmax: _fmax, np.fmin: _fmin,
    np.heaviside: _heaviside, np.copysign: _copysign, np.sign: _sign,
    np.ldexp: _ldexp, np.reciprocal: _reciprocal,
    np.divmod: lambda x, y: (x // y, x % y), np.modf: _modf, np.frexp: _frexp,
    np.rint: lambda x: np.round(_as_float(x)), np.trunc: lambda x: np.where(np.less(x, 0), np.ceil(x), np.floor(x)),
    np.vecdot: _vecdot, clip: np.clip,  # which a.clip(low, x) of an array calls
}  # fmt: skip
if hasattr(np, "matvec"):  # from NumPy 2.2 on
    CALLS[np.matvec] = lambda x, y: np.squeeze(np.matmul(x, np.expand_dims(y, -1)), -1)
    CALLS[np.vecmat] = lambda x, y: np.squeeze(np.matmul(np.expand_dims(_conjugate(x), -2), y), -2)
TAKES = {np.vecdot: ("axis", "keepdims")}  # parameters beside those that all ufuncs have


# ---- functions that give complex numbers where no real ones are


def _extend_domain(function: Callable[..., Any], is_outside: Callable[[Any], Any]) -> Any:
    """Return NumPy's function for all numbers: complex if an element is outside the domain of the real one."""

    def call(x: Any, /) -> Any:
        (x,) = align_operands((x,))
        if x.dtype.kind == "c":
            return function(x)
        x = _as_float(x)
        outside = np.any(is_outside(read_sizes(f"np.lib.scimath.{function.__name__}", x)))
        return function(np.astype(x, np.result_type(x.dtype, np.complex64)) if outside else x)

    return call


def _logn(n: Any, x: Any, /) -> Any:
    return _log(x) / _log(n)


def _power(x: Any, p: Any, /) -> Any:
    x, p = align_operands((x, p))
    values, exponents = (read_sizes("np.lib.scimath.power", a) for a in (x, p))
    if not np.iscomplexobj(values) and np.any(np.asarray(values) < 0):
        x = np.astype(x, np.result_type(x.dtype, np.complex64))
    p = np.astype(p, float) if p.dtype.kind in "iu" and np.any(np.asarray(exponents) < 0) else p
    return np.power(x, p)


_log = _extend_domain(np.log, lambda x: x < 0)
FUNCTIONS = {
    np.sinc: _sinc, np.i0: lambda x, /: mark_as_array(late_binding.i0(x)),
    scimath.sqrt: _extend_domain(np.sqrt, lambda x: x < 0), scimath.log: _log, scimath.logn: _logn,
    scimath.log2: _extend_domain(np.log2, lambda x: x < 0), scimath.log10: _extend_domain(np.log10, lambda x: x < 0),
    scimath.arccos: _extend_domain(np.arccos, lambda x: abs(x) > 1),
    scimath.arcsin: _extend_domain(np.arcsin, lambda x: abs(x) > 1),
    scimath.arctanh: _extend_domain(np.arctanh, lambda x: abs(x) > 1), scimath.power: _power,
    np.linalg.vecdot: lambda x1, x2, /, *, axis=-1: _vecdot(x1, x2, axis),
}  # fmt: skip
