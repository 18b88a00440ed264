"""The error function ``erf`` and the activation ``gelu``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.accelerate import run_elements
from pullback.core.axes import elementwise1
from pullback.core.calculus import partials
from pullback.core.composition import check_numbers
from pullback.core.convert import join_array, unwrap_constant
from pullback.core.lowering import scalar
from pullback.core.memory import unwrap_scratch
from pullback.core.op import method, op
from pullback.core.tape import as_tensor
from pullback.core.tensor import ARRAYS
from pullback.errors import ArgumentError

if TYPE_CHECKING:
    from pullback.typing import Array, DType, TensorLike

__all__ = ["erf", "gelu"]

SMALL, BLOCK = 256, 8192  # elements: one by one up to here, machine code beyond; as many as stay in cache
GELU_END = 30.0  # beyond, the tanh in it is 1
PEAK = 2 / math.sqrt(math.pi)
SLOPE_END = 40.0  # beyond, the normal density is 0
ROOT_OF_HALF, DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)


def _make_coefficients(dtype: DType, *numbers: float) -> list[Any]:
    return [np.array(c, dtype) for c in numbers]  # quicker than Python's numbers


# Rational approximations of the Cephes library: of erf(x) / x in x*x up to 1, of erfc(x) * exp(x*x) beyond.
NEAR = (
    _make_coefficients("f8", 9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                  7.00332514112805075473e3, 5.55923013010394962768e4),
    _make_coefficients("f8", 1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
                  2.26290000613890934246e4, 4.92673942608635921086e4),
)  # fmt: skip
FAR = (
    _make_coefficients("f8", 2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                  4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
                  9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2),
    _make_coefficients("f8", 1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
                  9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
                  1.65666309194161350182e3, 5.57535340817727675546e2),
)  # fmt: skip
# The same for single precision, of erf(x) / x in x*x up to 16: good to 4 units in the last place.
SINGLE = (
    _make_coefficients("f4", -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
                  -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
    _make_coefficients("f4", -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
                  -1.42647390514189e-02),
)  # fmt: skip


def _evaluate_polynomial(coefficients: list[Any], x: Array) -> Any:
    v = x * coefficients[0]
    for c in coefficients[1:-1]:
        v += c
        v *= x
    v += coefficients[-1]
    return v


def _evaluate_odd(ratio: tuple[Any, ...], x: Array) -> Any:
    square = x * x
    v = _evaluate_polynomial(ratio[0], square)
    v *= x
    v /= _evaluate_polynomial(ratio[1], square)
    return v


def _clip(x: Array, low: float, high: float) -> Any:
    return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))


def _erf_single(x: Array) -> Any:
    return _clip(_evaluate_odd(SINGLE, _clip(x, -4, 4)), -1, 1)


def _erf_double(x: Array) -> Any:
    size = np.absolute(x)
    near = size < 1
    if near.all():
        return _evaluate_odd(NEAR, x)
    size = _clip(size, 1, 6)  # from 6 on it is 1 to the last digit
    v = np.exp(-size * size)
    v *= _evaluate_polynomial(FAR[0], size)
    v /= _evaluate_polynomial(FAR[1], size)
    np.subtract(1.0, v, v)
    np.copysign(v, x, v)
    if near.any():
        np.copyto(v, _evaluate_odd(NEAR, _clip(x, -1, 1)), where=near)
    return v


def _erf(x: Array) -> Any:
    x = unwrap_scratch(x)
    dtype = x.dtype if x.dtype.kind == "f" else np.dtype(float)
    if x.dtype.kind == "c":
        raise ArgumentError("erf: expected real numbers; of complex ones use 1 - pb.special.erfc(x).")
    if type(x) is not ndarray:
        return dtype.type(math.erf(x))
    flat = x.reshape(-1)
    if flat.size <= SMALL:
        return np.array([*map(math.erf, flat.tolist())], dtype).reshape(x.shape)
    z = np.empty(flat.shape, dtype)
    block, computed = (_erf_double, np.float64) if dtype.itemsize > 4 else (_erf_single, np.float32)
    for i in range(0, flat.size, BLOCK):
        z[i : i + BLOCK] = block(flat[i : i + BLOCK].astype(computed, copy=False))
    return z.reshape(x.shape)


@op(
    _erf,
    acts=elementwise1,
    d=partials(lambda g, x: g * np.exp(-(x * x)) * PEAK),
    run=run_elements(_erf, SMALL),
    lower=scalar(lambda s, x: s.erf(x)),
)
def erf(x: TensorLike, /) -> Any:
    """Return the error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``x``.

    >>> pb.erf(np.array([0.0, 0.5, np.inf]))
    array([0.        , 0.52049988, 1.        ])
    """


def _gelu(x: Array) -> Any:
    half = x * 0.5
    return half + half * erf(x * ROOT_OF_HALF)


def _gelu_slope(x: Array) -> Any:
    near = np.minimum(np.maximum(x, -SLOPE_END), SLOPE_END)
    return erf(x * ROOT_OF_HALF) * 0.5 + near * np.exp(near * near * -0.5) * DENSITY + 0.5


@op(
    _gelu_slope,
    acts=elementwise1,
    d=partials(lambda x: (2 - x * x) * np.exp(x * x * -0.5) * DENSITY),
    run=run_elements(_gelu_slope, SMALL),
    lower=scalar(
        lambda s, x: (
            s.erf(x * ROOT_OF_HALF) * 0.5
            + s.minimum(s.maximum(x, -SLOPE_END), SLOPE_END) * s.exp(x * x * -0.5) * DENSITY
            + 0.5
        )
    ),
)
def gelu_slope(x: TensorLike, /) -> Any:
    """Return the derivative of ``gelu``.

    >>> gelu_slope(np.array([0.0, np.inf]))
    array([0.5, 1. ])
    """


@op(
    _gelu,
    acts=elementwise1,
    d=partials(lambda x: gelu_slope(x)),
    run=run_elements(_gelu, SMALL),
    lower=scalar(lambda s, x: x * 0.5 + x * 0.5 * s.erf(x * ROOT_OF_HALF)),
)
def exact_gelu(x: TensorLike, /) -> Any:
    """Return ``gelu`` of floats in one pass; compiled code has it as a formula, whose error function its slope reuses.

    >>> exact_gelu(np.array([0.0, 1.0]))
    array([0.        , 0.84134475])
    """


@method
def gelu(x: TensorLike, approximate: bool = False) -> Any:
    """Return the Gaussian error linear unit: ``x`` times the normal CDF at ``x``, with ``approximate`` by a tanh.

    >>> pb.gelu(np.array([-1.0, 0.0, 1.0]))
    array([-0.15865525,  0.        ,  0.84134475])
    """
    x = check_numbers("gelu", "x", join_array(x) if isinstance(x, ARRAYS) else as_tensor(unwrap_constant(x, "gelu")))
    if isinstance(approximate, str):  # 'none' would count as true
        raise ArgumentError(f"gelu: approximate must be True (PyTorch's 'tanh') or False, got {approximate!r}.")
    if not approximate and x.dtype.kind == "f":
        return exact_gelu(x)
    half = x * 0.5
    if approximate:
        near: Any = x if x.dtype.kind == "c" else np.clip(x, -GELU_END, GELU_END)  # so that a cube is finite
        cube = near * near * near
        return half + half * np.tanh((near + cube * 0.044715) * math.sqrt(2 / math.pi))
    return half + half * erf(x * ROOT_OF_HALF)
