"""Variants of derivative rules: summed over broadcast axes, for complex numbers, and for integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.memory import Scratch
from pullback.core.tensor import ARRAYS, RAW
from pullback.numerics.small_arrays import get_ones, sum_columns, sum_quickly

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Shape, Value


def keep_rule(rule: Callable[..., Any]) -> Any:
    return rule


def conjugate_rule(rule: Callable[..., Any]) -> Any:
    """Return the rule for a complex result: the adjoint ``conj(rule(conj(g)))``.

    So one rule, written for real numbers, serves both.  A rule that is arithmetic with real coefficients and reads a
    single value gets the conjugate of that value instead.
    """
    source = getattr(rule, "source", "formula(")
    read = [name for name in "zxy" if re.search(rf"\b{name}\b", source)]
    if len(read) > 1 or re.search(r"\w\(", source):
        return lambda g, *more: np.conjugate(rule(np.conjugate(g), *more))
    if not read:
        return rule
    at = rule.__code__.co_varnames.index(read[0])  # x and y are in either order
    if at == 1:
        return lambda g, z, x, y: rule(g, z.conjugate(), x, y)
    if at == 2:
        return lambda g, z, x, y: rule(g, z, x.conjugate(), y)
    return lambda g, z, x, y: rule(g, z, x, y.conjugate())


def conjugate_rules(rules: Callable[..., Any]) -> Any:
    """Return the rules of an op of any number of inputs for a complex result."""
    return lambda g, *more: [None if d is None else np.conjugate(d) for d in rules(np.conjugate(g), *more)]


def widen_rule(rule: Callable[..., Any]) -> Any:
    """Return the rule with integers converted to floats, as the kernel did: their own arithmetic would wrap around."""
    return lambda g, z, x, y: rule(g, z, as_float(x, z.dtype), as_float(y, z.dtype))


def widen_rules(op: Op) -> Any:
    """Return the rules of an op of any number of inputs with integers converted to floats, except conditions."""
    return lambda rules: lambda g, z, args, *more: rules(g, z, floats_of(op, z, args), *more)


def floats_of(op: Op, z: Value, args: Sequence[Any]) -> Any:
    """Return the inputs of an op with the result ``z``; if that is a float, with integers converted to floats."""
    dtype = z.dtype
    for x in args:
        if getattr(x, "dtype", dtype) is not dtype and x.dtype.kind in "iub" and dtype.kind in "fc":
            return [as_float(x, dtype) if op.d.differentiable(i) else x for i, x in enumerate(args)]
    return args


def as_float(x: object, dtype: np.dtype[Any]) -> Any:
    """Return integers and bools as numbers of ``dtype``, anything else as it is."""
    return x.astype(dtype) if isinstance(x, ARRAYS) and x.dtype.kind in "iub" else x


def fit(g: Any, x: Any) -> Any:
    """Return the cotangent ``g`` summed over broadcast axes and cast, so that it has the shape and dtype of ``x``."""
    # Without np.sum: every broadcast operand comes here; 8 × 4 elements take 1.0 µs, with np.sum 2.2.
    shape = x.shape
    have = g.shape
    if have != shape:
        if type(g) is Scratch:
            g = g.v
        if len(have) == 2 and len(shape) == 1 and shape[0] == have[1] and type(g) is ndarray and have[0] <= 4096:
            g = get_ones(have[0], g.dtype).dot(g)
        elif len(shape) == 1 and len(have) > 2 and shape[0] == have[-1] and type(g) is ndarray:
            g = sum_columns(g)
        else:
            g = _fit_shape(g, have, shape)
    return g if g.dtype == x.dtype else _fit_dtype(g, x.dtype)


def _fit_shape(g: Any, have: Shape, shape: Shape) -> Any:
    """Return a cotangent of the shape ``have`` summed over the axes that are missing or of length 1 in ``shape``."""
    extra = len(have) - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and have[i + extra] != 1))
    if len(axes) == 1 and type(g) is ndarray:
        g = sum_quickly(g, axes[0])
    elif axes:
        g = np.add.reduce(g, axes) if isinstance(g, ndarray) else np.sum(g, axis=axes)
    if g.shape != shape:
        g = np.reshape(g, shape) if len(shape) <= len(have) else np.broadcast_to(g, shape)
    return g


def _fit_dtype(g: Any, dtype: np.dtype[Any]) -> Any:
    """Return a cotangent cast to the dtype of a float or complex operand; its real part for one that is not complex."""
    if g.dtype.kind == "c" and dtype.kind != "c":
        g = np.real(g)  # a real input changes along the real axis only
    if isinstance(g, RAW) and (dtype.kind == "f" or g.dtype.kind == dtype.kind == "c"):
        g = g.astype(dtype)
    return g
