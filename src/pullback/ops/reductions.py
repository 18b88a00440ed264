"""Reductions over axes."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.accelerate import run_compiled_if, run_elements
from pullback.core.axes import Sample, Shape, moves, reduces
from pullback.core.calculus import linear, no_derivative, partials, rule
from pullback.core.composition import rename_errors
from pullback.core.convert import check_real
from pullback.core.lowering import fold, made_of, position
from pullback.core.op import alias, method, op
from pullback.core.residuals import find_residual, keep_residual
from pullback.core.tensor import RAW
from pullback.numerics.adjoints import (
    as_axes,
    count_elements,
    find_kept_shape,
    invert_or_zero,
    multiply_real,
    restore_axes,
    spread,
    sum_over,
)
from pullback.numerics.axis_arguments import resolve_reduced_axes
from pullback.numerics.small_arrays import add_reduce, has_short_rows, max_quickly, max_reduce, sum_quickly

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.core.tensor import Tensor
    from pullback.typing import Array, Axis, TensorLike, Value

__all__ = [
    "Moments", "all", "any", "arg_max", "arg_min", "argmax", "argmin", "count_nonzero", "log_sum_exp",
    "logsumexp", "max", "mean", "min", "moments", "prod", "std", "sum", "var", "variance",
]  # fmt: skip


def make_reduction(reduce: Any) -> Any:
    """Return a ufunc's ``reduce`` as a kernel, which is faster than the NumPy function; the axes may be a list."""

    def run(x: Array, axis: Axis = None, keepdims: bool = False) -> Any:
        return reduce(x, as_axes(axis), None, None, keepdims)

    return run


@op(np.sum, acts=reduces(), d=linear(spread), run=sum_quickly, lower=fold(lambda s, acc, x: acc + x, start=0))
def sum(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the sum of the elements of ``x`` over ``axis``.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([4., 6.])
    """


# ---- means


@lru_cache(4096)
def _count_cached(shape: tuple[int, ...], axis: Axis, char: str) -> Any:
    return np.dtype(char).type(count_elements(shape, axis))


def count_as_scalar(shape: tuple[int, ...], axis: Axis, char: str) -> Any:
    """Return the number of reduced elements as a NumPy scalar, which divides faster than a Python number."""
    return _count_cached(shape, as_axes(axis), char)


def mean_quickly(x: Array, axis: Axis = None, keepdims: bool = False) -> Any:
    char = x.dtype.char
    if char in "fd":
        return sum_quickly(x, axis, keepdims) / count_as_scalar(x.shape, axis, char)
    return np.mean(x, as_axes(axis), keepdims=keepdims)


def as_floats(x: Any) -> Any:
    """Return integers and bools as floats of the dtype of their mean."""
    return x if x.dtype.kind in "fc" else np.astype(x, np.float64)


@op(
    np.mean,
    acts=reduces(empty=False),
    d=linear(lambda g, x_shape, axis: spread(g / count_as_scalar(x_shape, axis, g.dtype.char), x_shape, axis)),
    run=mean_quickly,
    lower=made_of(
        lambda x, axis, keepdims: (
            np.sum(as_floats(x), axis=as_axes(axis), keepdims=keepdims) / count_elements(x.shape, axis)
        )
    ),
)
def mean(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the mean of the elements of ``x`` over ``axis``; it is a float for integers.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.mean(np.array([1.0, 2.0, 6.0]))
    np.float64(3.0)
    """


def center(x: Value, axis: Axis) -> Any:
    if type(x) is np.ndarray:
        return x - mean_quickly(x, axis, True)
    return x - np.mean(x, axis=as_axes(axis), keepdims=True)


def invert_freedom(x_shape: tuple[int, ...], axis: Axis, ddof: int, dtype: np.dtype[Any]) -> Any:
    """Return 1 divided by the degrees of freedom."""
    n = count_freedom(x_shape, axis, ddof)
    return dtype.type(1 / n if n else nan)


def count_freedom(shape: tuple[int, ...], axis: Axis, ddof: float) -> float:
    """Return the number of elements without ``ddof`` of them, at least 0, as NumPy counts the degrees of freedom."""
    return builtins.max(count_elements(shape, axis) - ddof, 0)


def var_quickly(x: Array, axis: Axis = None, keepdims: bool = False, ddof: int = 0) -> Any:
    axis = as_axes(axis)
    if x.dtype.char in "fd" and x.size:
        e = x - mean_quickly(x, axis, True)
        if x.ndim:
            np.multiply(e, e, e)  # a large array of its own would be fresh memory
        else:
            e = e * e
        return sum_quickly(e, axis, keepdims) / x.dtype.type(count_freedom(x.shape, axis, ddof))
    return np.var(x, axis, ddof=ddof, keepdims=keepdims)


def weigh_center(x: Value, axis: Axis, weights: Value) -> Any:
    """Return how far elements are from their mean, times weights that have the shape of the mean."""
    e, weight = center(x, axis), restore_axes(weights, x.shape, axis)
    if type(e) is np.ndarray and e.ndim and isinstance(weight, np.ndarray | np.generic) and weight.dtype == e.dtype:
        return np.multiply(e, weight, e)
    return e * weight


def compose_var(x: Tensor, axis: Axis, keepdims: bool, ddof: int) -> Any:
    e = center(as_floats(x), axis)
    return np.sum(multiply_real(e, e), axis=as_axes(axis), keepdims=keepdims) / count_freedom(x.shape, axis, ddof)


@op(
    np.var,
    acts=reduces(empty=False),
    d=rule(
        lambda g, x, axis, ddof: weigh_center(x, axis, (g + g) * invert_freedom(x.shape, axis, ddof, g.dtype)),
        jvp=lambda dx, x, z, axis, keepdims, ddof: (
            sum_over(multiply_real(center(x, axis), dx + dx), axis, keepdims)
            * invert_freedom(x.shape, axis, ddof, z.dtype)
        ),
    ),
    run=var_quickly,
    lower=made_of(compose_var),
)
def var(x: TensorLike, /, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Any:
    """Return the variance over ``axis``: the sum of squared differences from the mean, divided by ``n - ddof``.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.
    ddof: what is subtracted from the number of elements.

    >>> pb.var(np.array([1.0, 2.0, 6.0]), ddof=1)
    np.float64(7.0)
    """


@op(
    np.std,
    acts=reduces(empty=False),
    d=rule(
        lambda g, x, z, axis, ddof: weigh_center(
            x, axis, g * invert_or_zero(z) * invert_freedom(x.shape, axis, ddof, g.dtype)
        ),
        jvp=lambda dx, x, z, axis, keepdims, ddof: (
            sum_over(multiply_real(center(x, axis), dx), axis, keepdims)
            * invert_or_zero(z)
            * invert_freedom(x.shape, axis, ddof, z.dtype)
        ),
    ),
    run=lambda x, axis=None, keepdims=False, ddof=0: np.sqrt(var_quickly(x, axis, keepdims, ddof)),
    lower=made_of(lambda x, axis, keepdims, ddof: np.sqrt(compose_var(x, axis, keepdims, ddof))),
)
def std(x: TensorLike, /, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Any:
    """Return the standard deviation over ``axis``; its gradient is 0 where it is 0.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.
    ddof: what is subtracted from the number of elements.

    >>> pb.std(np.array([1.0, 3.0]))
    np.float64(1.0)
    """


class Moments(NamedTuple):
    """The result of ``moments``.

    >>> pb.moments(np.array([1.0, 3.0])).variance
    np.float64(1.0)
    """

    mean: Any
    variance: Any


@method
@rename_errors("moments")
def moments(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Moments:
    """Return the mean and the variance over ``axis``, as a named tuple.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.moments(np.array([1.0, 3.0]))
    Moments(mean=np.float64(2.0), variance=np.float64(1.0))
    """
    return Moments(mean(x, axis, keepdims), var(x, axis, keepdims))


variance = alias("variance", var)


# ---- products


def multiply_rest(x: Value) -> Any:
    """Return for each element of the last axis the product of all others, by halves and without division."""
    n = x.shape[-1]
    if n < 2:
        return np.ones(x.shape, x.dtype)
    h = n // 2
    a, b, odd = x[..., :h], x[..., h : 2 * h], x[..., 2 * h :]
    if n == 2:
        return np.concatenate([b, a], axis=-1)
    pairs: Any = a * b
    if n % 2 == 0:
        o = multiply_rest(pairs)
        return np.concatenate([o * b, o * a], axis=-1)
    o = multiply_rest(np.concatenate([pairs, odd], axis=-1))
    half = o[..., :h]
    return np.concatenate([half * b, half * a, o[..., h:]], axis=-1)


def multiply_others(x: Value, axis: Axis) -> Any:
    """Return the product of all elements that are multiplied with each one."""
    shape = x.shape
    gone = resolve_reduced_axes(len(shape), axis)
    stay = tuple(i for i in range(len(shape)) if i not in gone)
    order = stay + gone
    flat = np.reshape(np.transpose(x, order), (*(shape[i] for i in stay), count_elements(shape, gone)))
    back = np.reshape(multiply_rest(flat), tuple(shape[i] for i in order))
    return np.transpose(back, tuple(int(i) for i in np.argsort(order)))


def is_safe_divisor(z: Value) -> bool:
    """Return whether the products are far from 0 and from overflow, so that division is safe."""
    size = np.abs(z)
    return bool(np.logical_and(size > 1e-30, size < inf).all())


def prod_vjp(g: Value, x: Value, z: Value, axis: Axis) -> Any:
    raw: bool = isinstance(g, RAW) and isinstance(x, RAW)
    if raw and is_safe_divisor(z):
        return restore_axes(g * z, x.shape, axis) / x
    return restore_axes(g, x.shape, axis) * multiply_others(x, axis)


@op(
    np.prod,
    acts=reduces(),
    d=rule(
        prod_vjp,
        jvp=lambda dx, x, axis, keepdims: sum_over(dx * multiply_others(x, axis), axis, keepdims),
    ),
    run=make_reduction(np.multiply.reduce),
    lower=fold(lambda s, acc, x: acc * x, start=1),
)
def prod(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the product of the elements of ``x`` over ``axis``.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.prod(np.array([2.0, 3.0, 4.0]))
    np.float64(24.0)
    >>> pb.grad(pb.prod)(np.array([2.0, 0.0, 4.0]))
    array([0., 8., 0.])
    """


# ---- extremes


def share_among_ties(g: Value, x: Value, z: Value, axis: Axis) -> Any:
    """Return ``g`` where ``x`` equals its extreme ``z``, divided equally among ties."""
    hit = x == z
    if isinstance(hit, RAW):
        if np.count_nonzero(hit) == z.size:
            return g * hit
        count = add_reduce(hit, as_axes(axis), g.dtype, None, True)
    else:
        count = sum_over(hit.astype(g.dtype), axis, True)
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN equals nothing; its gradient is NaN
        return hit * (g / count)


def extreme_vjp(g: Value, x: Value, z: Value, axis: Axis) -> Any:
    return share_among_ties(restore_axes(g, x.shape, axis), x, restore_axes(z, x.shape, axis), axis)


def extreme_jvp(dx: Array, x: Array, z: Array, axis: Axis, keepdims: bool) -> Any:
    return sum_over(share_among_ties(dx, x, restore_axes(z, x.shape, axis), axis), axis, keepdims)


@op(
    np.max,
    acts=reduces(empty=False),
    d=rule(extreme_vjp, jvp=extreme_jvp),
    run=max_quickly,
    lower=fold(lambda s, acc, x: s.maximum(acc, x), start=-inf),
)
def max(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the maximum of ``x`` over ``axis``; equal maxima share the gradient.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.max(np.array([1.0, 5.0, 2.0]))
    np.float64(5.0)
    >>> pb.grad(pb.max)(np.array([1.0, 5.0, 5.0]))
    array([0. , 0.5, 0.5])
    """


@op(
    np.min,
    acts=reduces(empty=False),
    d=rule(extreme_vjp, jvp=extreme_jvp),
    run=make_reduction(np.minimum.reduce),
    lower=fold(lambda s, acc, x: s.minimum(acc, x), start=inf),
)
def min(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the minimum of ``x`` over ``axis``; equal minima share the gradient.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.min(np.array([1.0, 5.0, 2.0]))
    np.float64(1.0)
    """


# ---- log-sum-exp

quick_exp = run_elements(np.exp)
MIN_COMPILED = 1 << 16  # elements from which machine code is worth compiling


def has_only_finite(z: Array) -> bool:
    """Return whether all of ``z`` is finite."""
    return np.count_nonzero(np.isfinite(z)) == z.size if z.ndim else isfinite(z)


def compute_log_sum_exp(x: Array, axis: Axis = None, keepdims: bool = False, saves: bool = False) -> Any:
    """Return ``log(sum(exp(x)))``; the largest element is taken out first, so that nothing overflows.

    With ``saves`` the exponentials and their sums are kept for the rule, where all are finite.
    """
    axis = as_axes(axis)
    check_real("log_sum_exp", x)
    if x.dtype.kind != "f":
        x = x.astype(float)
    if has_short_rows(x, axis):  # everything down the columns
        columns = x.T.copy()
        top = max_reduce(columns, 0)
        if has_only_finite(top):
            e = quick_exp(columns - top)
            s = sum_quickly(e, 0)
            z = np.log(s) + top
            z = z.reshape(-1, 1) if keepdims else z
            if saves:
                keep_residual(z, (e, s, True))
            return z
    top = max_quickly(x, axis, True) if x.size else np.full(find_kept_shape(x.shape, axis), -inf, x.dtype)
    if has_only_finite(top):
        e = quick_exp(x - top)
        s = sum_quickly(e, axis, keepdims)
        z = np.log(s) + top.reshape(s.shape)
        if saves:
            keep_residual(z, (e, s, False))
        return z
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    with np.errstate(divide="ignore", over="ignore"):
        z = np.log(sum_quickly(np.exp(x - top), axis, keepdims))
    return z + top.reshape(z.shape)


def compose_exponentials(x: Any, axis: Axis) -> tuple[Any, Any, Any]:
    """Return ``exp(x - top)``, its sum and ``top``, the largest element; the sum is 1 where it would be 0 or NaN.

    So a row in which all elements are -inf has weights 0, and one with inf has NaN at inf only.
    """
    top = np.max(x, axis=as_axes(axis), keepdims=True)
    e = np.exp(x - np.where(top == -inf, np.zeros((), x.dtype), top))
    s = np.sum(e, axis=as_axes(axis), keepdims=True)
    return e, np.where(s > 0, s, np.ones((), x.dtype)), top


def compose_log_sum_exp(x: Any, axis: Axis, keepdims: bool) -> Any:
    check_real("log_sum_exp", x)
    x = x if x.dtype.kind == "f" else np.astype(x, np.float64)
    if not x.size:
        return np.sum(x, axis=as_axes(axis), keepdims=keepdims) - inf
    _, s, top = compose_exponentials(x, axis)
    z = np.log(s) + top
    return z if keepdims else np.squeeze(z, axis=resolve_reduced_axes(len(x.shape), as_axes(axis)))


def weigh(x: Array, axis: Axis = None) -> Any:
    z = compute_log_sum_exp(x, axis, True)
    if has_only_finite(z):
        return quick_exp(x - z)
    with np.errstate(invalid="ignore"):
        return np.exp(x - np.where(z == -inf, z.dtype.type(0), z))


def compose_weights(x: Any, axis: Axis) -> Any:
    check_real("log_sum_exp", x)
    x = x if x.dtype.kind == "f" else np.astype(x, np.float64)
    if not x.size:
        return np.exp(x)
    e, s, _ = compose_exponentials(x, axis)
    return e * (1.0 / s)


def pull_through_weights(g: Value, z: Value, axis: Axis) -> Any:
    g = g * z
    return g - z * np.sum(g, axis=as_axes(axis), keepdims=True)


def batch_weights(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    (x,) = args
    return op.call([x], {"axis": tuple([a + 1 for a in resolve_reduced_axes(x.ndim - 1, as_axes(params["axis"]))])})


@op(
    weigh,
    acts=moves(
        lambda s, axis=None: s,
        [(((),), {}), (((4,),), {}), (((0, 3),), {"axis": 1}), (((2, 3, 4),), {"axis": (0, 2)})],
        batch_weights,
    ),
    d=partials(pull_through_weights),
    lower=made_of(compose_weights),
)
def log_sum_exp_weights(x: TensorLike, /, axis: Axis = None) -> Any:
    """Return the gradient of ``log_sum_exp``: the softmax, which is 0 in a row in which all elements are -inf.

    >>> log_sum_exp_weights(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """


def compute_weights(x: Value, z: Value, axis: Axis) -> Any:
    """Return the gradient of ``log_sum_exp``, from the result; compiled, from the exponentials that are summed."""
    if not isinstance(z, RAW) and x.dtype.kind == "f":
        return log_sum_exp_weights(x, axis)
    z = restore_axes(z, x.shape, axis)
    if isinstance(z, RAW) and has_only_finite(z):
        return quick_exp(x - z)
    with np.errstate(invalid="ignore"):
        return np.exp(x - np.where(z == -inf, np.zeros((), z.dtype), z))


def has_many_terms(x: Array, axis: Axis = None, keepdims: bool = False) -> bool:
    return x.size >= MIN_COMPILED and type(axis) is not list


def is_all_finite(z: Array, x: Array, axis: Axis, keepdims: bool) -> bool:
    return has_only_finite(z)


def pull_weights(g: Value, x: Value, axis: Axis) -> Any:
    return restore_axes(g, x.shape, axis) * log_sum_exp_weights(x, axis)


pull_weights_quickly = run_compiled_if(lambda g, x, axis: True, pull_weights)


def pull_log_sum_exp(g: Value, x: Value, z: Value, axis: Axis) -> Any:
    """Return ``g`` times the weights: from the exponentials of the forward pass, where these were kept."""
    kept = find_residual(z)
    if kept is None or not isinstance(g, RAW):
        if type(x) is np.ndarray and isinstance(g, RAW) and g.dtype == x.dtype and has_many_terms(x, axis):
            return pull_weights_quickly(np.asarray(g), x, axis)
        return restore_axes(g, x.shape, axis) * compute_weights(x, z, axis)
    e, s, is_transposed = kept
    if is_transposed:
        return (e * (g.reshape(s.shape) / s)).T.copy()
    return e * restore_axes(g / s, x.shape, axis)


@op(
    compute_log_sum_exp,
    acts=reduces(empty=False),
    d=rule(
        lambda g, x, z, axis: pull_log_sum_exp(g, x, z, axis),
        jvp=lambda dx, x, z, axis, keepdims: sum_over(dx * compute_weights(x, z, axis), axis, keepdims),
    ),
    run=run_compiled_if(has_many_terms, compute_log_sum_exp, is_finite=is_all_finite),
    saving=run_compiled_if(
        has_many_terms,
        compute_log_sum_exp,
        lambda x, axis, keepdims: compute_log_sum_exp(x, axis, keepdims, saves=True),
        is_all_finite,
    ),
    lower=made_of(compose_log_sum_exp),
)
def log_sum_exp(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``log(sum(exp(x)))`` over ``axis``, without overflow.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.log_sum_exp(np.array([1000.0, 1000.0]))
    np.float64(1000.6931471805599)
    """


logsumexp = alias("logsumexp", log_sum_exp)


# ---- without a derivative


@op(
    np.all,
    acts=reduces(),
    d=no_derivative(),
    run=make_reduction(np.logical_and.reduce),
    lower=fold(lambda s, acc, x: s.logical_and(acc, x), start=1),
)
def all(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return whether all elements over ``axis`` are true.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.all(np.array([[True, False], [True, True]]), axis=1)
    array([False,  True])
    """


@op(
    np.any,
    acts=reduces(),
    d=no_derivative(),
    run=make_reduction(np.logical_or.reduce),
    lower=fold(lambda s, acc, x: s.logical_or(acc, x), start=0),
)
def any(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return whether some element over ``axis`` is true.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.any(np.array([False, True]))
    np.True_
    """


@op(
    np.count_nonzero,
    acts=reduces(),
    d=no_derivative(),
    run=lambda x, axis=None, keepdims=False: sum_quickly(x != 0, axis, keepdims),
    lower=made_of(lambda x, axis, keepdims: np.sum(x != 0, axis=axis, keepdims=keepdims)),
)
def count_nonzero(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return how many elements over ``axis`` are not 0.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.count_nonzero(np.array([0.0, 2.0, 3.0]))
    np.int64(2)
    """


def make_arg_function(name: str) -> Any:
    """Return ``argmax`` or ``argmin`` along one axis, which may be in a list."""
    find = getattr(np, name)

    def run(x: Array, axis: Axis = 0, keepdims: bool = False) -> Any:
        if isinstance(axis, list | tuple) and len(axis) == 1:
            (axis,) = axis
        return find(x, axis if x.ndim else None, keepdims=keepdims)

    return run


class OneAxis(reduces):
    """How a reduction along a single axis acts; a scalar is reduced to itself."""

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        return super().shape(name, shapes, params if shapes[0] else {**params, "axis": None})

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        return super().batch(op, args, on, params if np.ndim(args[0]) > 1 else {**params, "axis": None})

    def samples(self) -> list[Sample]:
        parameter_sets: list[dict[str, Any]] = [{}, {"axis": -1, "keepdims": True}, {"axis": None}]
        return [(((4,),), {}), (((),), {}), (((3, 0),), {}), *((((2, 3),), params) for params in parameter_sets)]


@op(np.argmax, acts=OneAxis(), d=no_derivative(), run=make_arg_function("argmax"), lower=position("gt"))
def arg_max(x: TensorLike, /, axis: Axis = 0, keepdims: bool = False) -> Any:
    """Return the index of the first maximum along ``axis``; with ``axis=None``, in the flattened array.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.arg_max(np.array([[1.0, 5.0], [4.0, 2.0]]))
    array([1, 0])
    """


@op(np.argmin, acts=OneAxis(), d=no_derivative(), run=make_arg_function("argmin"), lower=position("lt"))
def arg_min(x: TensorLike, /, axis: Axis = 0, keepdims: bool = False) -> Any:
    """Return the index of the first minimum along ``axis``; with ``axis=None``, in the flattened array.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.arg_min(np.array([[1.0, 5.0], [4.0, 2.0]]), 1)
    array([0, 1])
    """


argmax = alias("argmax", arg_max)
argmin = alias("argmin", arg_min)


def _argmax_method(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the maximum along ``axis``, or in the flattened array, as the method of NumPy's arrays.

    >>> pb.tensor([[1.0, 5.0], [4.0, 2.0]]).argmax().item()
    1
    """
    return np.argmax(x, axis=axis, keepdims=keepdims)


def _argmin_method(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the minimum along ``axis``, or in the flattened array, as the method of NumPy's arrays.

    >>> pb.tensor([[1.0, 5.0], [4.0, 2.0]]).argmin().item()
    0
    """
    return np.argmin(x, axis=axis, keepdims=keepdims)


alias("argmax", _argmax_method)
alias("argmin", _argmin_method)
