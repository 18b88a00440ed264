"""Scans: running sums and products along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.accelerate import MAX_NUMPY_ELEMENTS, run_compiled_if
from pullback.core.axes import Sample, moves, scans
from pullback.core.calculus import linear, rule
from pullback.core.lowering import made_of, scan
from pullback.core.op import alias, op
from pullback.numerics.axis_arguments import resolve_axis
from pullback.numerics.batching import batch_along_axis

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import Array, Axis, DType, TensorLike, Value

__all__ = ["cumprod", "cumsum"]


class Running(scans):
    """A scan that may leave each element out of its own result, and begin at the end."""

    def samples(self) -> list[Sample]:
        flags = ((True, False), (False, True), (True, True))
        more: list[Sample] = [(((2, 4),), {"axis": 1, "exclusive": e, "reverse": r}) for e, r in flags]
        return [*super().samples(), *more, (((0,),), {"exclusive": True})]


def slice_along(x: Any, axis: int, part: slice) -> Any:
    """Return a slice of ``x`` along one axis, counted from the front."""
    return x[(slice(None),) * axis + (part,)]


def delay_array(x: Array, axis: int, by: int, first: int = 0) -> Any:
    """Shift ``x`` by one element along an axis and fill the free element with ``first``."""
    axis = resolve_axis(x.ndim, axis, "delay")
    z = np.full(x.shape, first, x.dtype)
    if by > 0:
        slice_along(z, axis, slice(1, None))[...] = slice_along(x, axis, slice(None, -1))
    else:
        slice_along(z, axis, slice(None, -1))[...] = slice_along(x, axis, slice(1, None))
    return z


def has_many(x: Array, *more: object) -> bool:
    return x.size > MAX_NUMPY_ELEMENTS


def make_scan(accumulate: Any, first: Any, name: str) -> Any:
    """Return the ``run`` of a scan: ``accumulate`` along an axis, backwards if ``reverse``, later if ``exclusive``."""

    def run_numpy(x: Array, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Any:
        axis = resolve_axis(x.ndim, axis, name)
        back = slice(None, None, -1)
        z = accumulate(slice_along(x, axis, back) if reverse else x, axis)
        if exclusive:
            z = delay_array(z, axis, 1, first)
        return slice_along(z, axis, back) if reverse else z

    def ends_finite(z: Array, x: Array, axis: int, exclusive: bool, reverse: bool) -> bool:
        """Return whether the last results are finite, and so all of them."""
        axis = resolve_axis(x.ndim, axis, name)
        return bool(np.isfinite(slice_along(z, axis, slice(1) if reverse else slice(-1, None))).all())

    return run_compiled_if(has_many, accumulate, run_numpy, ends_finite)


def cumsum_vjp(g: Value, axis: int, exclusive: bool, reverse: bool) -> Any:
    return cumsum(g, axis, exclusive, not reverse)


@op(
    np.cumsum,
    acts=Running(),
    d=linear(cumsum_vjp),
    run=make_scan(np.cumsum, 0, "cumsum"),
    lower=scan(lambda s, acc, x: acc + x, start=0, regroups=True),
)
def cumsum(x: TensorLike, /, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Any:
    """Return the cumulative sum along ``axis``.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.
    exclusive: whether each element itself is left out.
    reverse: whether it runs from the end.

    >>> pb.cumsum(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    >>> pb.cumsum(np.array([1.0, 2.0, 3.0]), exclusive=True, reverse=True)
    array([5., 3., 0.])
    """


def delay_by_pieces(x: Tensor, axis: int, by: int) -> Any:
    at = resolve_axis(x.ndim, axis, "delay")
    if not x.shape[at]:
        return x
    nothing = np.zeros((*x.shape[:at], 1, *x.shape[at + 1 :]), x.dtype)
    kept = slice_along(x, at, slice(None, -1) if by > 0 else slice(1, None))
    return np.concatenate([nothing, kept] if by > 0 else [kept, nothing], axis=at)


def delay_vjp(g: Value, axis: int, by: int) -> Any:
    return delay(g, axis, -by)


@op(
    delay_array,
    acts=moves(
        lambda s, axis, by: s, [(((4,),), {"axis": 0, "by": 1}), (((2, 3),), {"axis": 1, "by": -1})], batch_along_axis
    ),
    d=linear(delay_vjp),
    lower=made_of(delay_by_pieces),
)
def delay(x: TensorLike, /, axis: Axis, by: int) -> Any:
    """Return ``x`` moved along ``axis`` by one place, later (``by=1``) or earlier (``by=-1``), and 0 in its place.

    >>> delay(np.array([1.0, 2.0, 3.0]), 0, 1)
    array([0., 1., 2.])
    """


def solve_recurrence(x: Array, y: Array, axis: int, reverse: bool, adjoint: bool) -> Any:
    """Solve a linear recurrence by doubling: each round covers twice as many earlier elements."""
    x, y = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    flip = reverse != adjoint
    if flip:
        x, y = x[::-1], y[::-1]
    a = delay_array(x, 0, 1) if adjoint else x
    z, w, step = np.array(y, np.result_type(x, y)), np.array(a), 1
    with np.errstate(over="ignore", invalid="ignore"):
        while step < len(z):
            before: Any = z[:-step]
            z[step:] += w[step:] * before
            w[step:] *= w[:-step].copy()
            step *= 2
    if not np.isfinite(w).all():  # the weights overflowed though the sum may not: step by step
        z = np.array(y, z.dtype)
        for i in range(1, len(z)):
            z[i] += a[i] * z[i - 1]
    return np.moveaxis(z[::-1] if flip else z, 0, axis)


def pull_recurrence_factors(g: Value, x: Value, z: Value, axis: int, reverse: bool, adjoint: bool) -> Any:
    e = recurrence(x, g, axis, reverse, not adjoint)
    by = -1 if reverse else 1
    return delay(e, axis, by) * z if adjoint else e * delay(z, axis, by)


def recurrence_jvp(dx: Array, dy: Array, x: Array, z: Array, axis: int, reverse: bool, adjoint: bool) -> Any:
    by = -1 if reverse else 1
    moved = delay(dx * z, axis, -by) if adjoint else dx * delay(z, axis, by)
    return recurrence(x, dy + moved, axis, reverse, adjoint)


def pull_recurrence_terms(g: Value, x: Value, axis: int, reverse: bool, adjoint: bool) -> Any:
    return recurrence(x, g, axis, reverse, not adjoint)


@op(
    solve_recurrence,
    acts=moves(
        lambda x, y, axis, reverse, adjoint: y,
        [
            (((5,), (5,)), {"axis": 0}),
            (((2, 3), (2, 3)), {"axis": 1, "reverse": True}),
            (((3, 2), (3, 2)), {"axis": 0, "adjoint": True}),
            (((4,), (4,)), {"axis": -1, "reverse": True, "adjoint": True}),
            (((0, 2), (0, 2)), {"axis": 0}),
        ],
        batch_along_axis,
    ),
    d=rule(pull_recurrence_factors, pull_recurrence_terms, jvp=recurrence_jvp),
    run=run_compiled_if(has_many, solve_recurrence),
    lower=scan(lambda s, acc, x, y: y + x * acc, start=0),
)
def recurrence(x: TensorLike, y: TensorLike, /, axis: Axis = 0, reverse: bool = False, adjoint: bool = False) -> Any:
    """Return the running value ``z[i] = y[i] + x[i] * z[i-1]`` along ``axis``, beginning with ``z[0] = y[0]``.

    ``reverse`` runs from the end.  ``adjoint`` is the transpose in ``y``, which is its own kind:
    ``z[i] = y[i] + x[i+1] * z[i+1]``.  So derivatives of any order are recurrences again, and nothing is divided.

    >>> recurrence(np.array([9.0, 2.0, 3.0]), np.ones(3))
    array([ 1.,  3., 10.])
    """


def is_far_from_limits(z: Array) -> bool:
    """Return whether no quotient of two of these numbers, nor the product of all three, overflows or underflows."""
    size, limit = np.abs(z), 2.0 ** (np.finfo(z.dtype).maxexp // 4)
    return bool(z.size and size.max() < limit and size.min() > 1 / limit)


def cumprod_vjp(g: Value, x: Value, z: Value, axis: int, exclusive: bool, reverse: bool) -> Any:
    if not exclusive and type(g) is type(x) is type(z) is ndarray and z.dtype.kind in "fc" and is_far_from_limits(z):
        return cumsum(g * z, axis, False, not reverse) / x  # no element is 0
    if exclusive:
        g = delay(g, axis, 1 if reverse else -1)
    return cumprod(x, axis, True, reverse) * recurrence(x, g, axis, reverse, True)


def cumprod_jvp(dx: Array, x: Array, axis: int, exclusive: bool, reverse: bool) -> Any:
    t = recurrence(x, dx * cumprod(x, axis, True, reverse), axis, reverse)
    return delay(t, axis, -1 if reverse else 1) if exclusive else t


@op(
    np.cumprod,
    acts=Running(),
    d=rule(cumprod_vjp, jvp=cumprod_jvp),
    run=make_scan(np.cumprod, 1, "cumprod"),
    lower=scan(lambda s, acc, x: acc * x, start=1),
)
def cumprod(x: TensorLike, /, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Any:
    """Return the cumulative product along ``axis``.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.
    exclusive: whether each element itself is left out.
    reverse: whether it runs from the end.

    >>> pb.cumprod(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 6.])
    >>> pb.grad(pb.cumprod)(np.array([0.0, 2.0, 0.0]))
    array([3., 0., 0.])
    """


def _cumsum_method(
    x: Tensor, axis: Axis = None, exclusive: Any = False, reverse: bool = False, *, dtype: DType = None
) -> Any:
    """Return the cumulative sum along ``axis``, or of the flattened array, as the method of NumPy's arrays.

    >>> pb.tensor([[1.0, 2.0], [3.0, 4.0]]).cumsum()
    Tensor([1., 3., 6., 10.], dtype=float32)
    """
    if type(exclusive) is not bool:  # NumPy has the dtype here
        exclusive, dtype = False, exclusive
    return cumsum(*_choose_axis(x, axis, dtype), exclusive, reverse)


def _cumprod_method(
    x: Tensor, axis: Axis = None, exclusive: Any = False, reverse: bool = False, *, dtype: DType = None
) -> Any:
    """Return the cumulative product along ``axis``, or of the flattened array, as the method of NumPy's arrays.

    >>> pb.tensor([[1.0, 2.0], [3.0, 4.0]]).cumprod()
    Tensor([1., 2., 6., 24.], dtype=float32)
    """
    if type(exclusive) is not bool:  # NumPy has the dtype here
        exclusive, dtype = False, exclusive
    return cumprod(*_choose_axis(x, axis, dtype), exclusive, reverse)


def _choose_axis(x: Tensor, axis: Axis, dtype: DType) -> tuple[Any, Any]:
    """Return the tensor and the axis that a method of NumPy's arrays means."""
    y: Any = x if dtype is None else x.astype(dtype)
    return (np.reshape(y, -1), 0) if axis is None else (y, axis)


alias("cumsum", _cumsum_method)
alias("cumprod", _cumprod_method)
