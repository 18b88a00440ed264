"""NumPy functions for statistics, scans and differences."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.callers import find_numpy_caller, read_argument
from pullback.core.tape import as_tensor, constant
from pullback.core.tensor import BY_KERNEL, Tensor, all_values, call_unfollowed, may_hold, read_sizes, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import align_operands, wrap_constant
from pullback.interop.numpy_shapes import index_along
from pullback.numerics.adjoints import count_elements
from pullback.numerics.axis_arguments import resolve_axes, resolve_axis
from pullback.numerics.order import find_rank
from pullback.ops import segments

if TYPE_CHECKING:
    from pullback.typing import Axis, Operand, TensorLike, Value

Function = Callable[..., Any]


def take_root(s: Value) -> Any:
    """Return the square root with derivative 0 where ``s`` is 0."""
    nothing = np.equal(s, 0)
    return np.where(nothing, s, np.sqrt(np.where(nothing, s + 1, s)))


def resolve_ddof(ddof: float, correction: float | None) -> float:
    """Return the ``ddof`` of a variance, which may be given as ``correction`` instead."""
    if correction is not None and ddof != 0:
        raise ArgumentError(f"np.var: ddof={ddof} and correction={correction} are the same parameter; give one.")
    return ddof if correction is None else correction


# ---- statistics


def _make_var(kernel: Any) -> Function:
    def var(
        a: Value, /, axis: Axis = None, ddof: float = 0, keepdims: bool = False, *, correction: int | None = None
    ) -> Any:
        return BY_KERNEL[kernel].function(a, axis, keepdims, resolve_ddof(ddof, correction))

    return var


def _ptp(a: Value, /, axis: Axis = None, keepdims: bool = False) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def _average(
    a: Any, /, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    a, w = align_operands((a, weights))
    if w is not None and a.dtype.kind in "iub" and w.dtype.kind in "iub":  # products of small integers overflow
        w = np.astype(w, float)
    if w is None:
        mean = np.mean(a, axis=axis, keepdims=keepdims)
        total = constant(np.full(np.shape(mean), count_elements(a.shape, axis), mean.dtype))
    else:
        if np.shape(w) != np.shape(a):
            axes = resolve_axes(a.ndim, axis, "np.average")
            given = [i % a.ndim for i in (axis if isinstance(axis, tuple) else axes)]
            if axis is None or np.shape(w) != tuple(a.shape[i] for i in given):
                raise ShapeError(
                    f"np.average: weights of shape {np.shape(w)} do not fit a of shape {a.shape} along axis {axis}."
                )
            w = np.reshape(np.transpose(w, np.argsort(given)), [n if i in axes else 1 for i, n in enumerate(a.shape)])
        w = np.broadcast_to(w, a.shape)
        total = np.sum(w, axis=axis, keepdims=keepdims)
        nonzero: Any = np.all(strip(total) != 0)
        if not may_hold(nonzero):
            raise ZeroDivisionError("np.average: the weights sum to 0, so that they cannot be normalized.")
        mean = np.sum(a * w, axis=axis, keepdims=keepdims) / total
    return (mean, total.astype(mean.dtype)) if returned else mean


# How the position of a quantile among n sorted elements follows from q, by NumPy's names: n q + a + q (1 - a - b) - 1.
POSITIONS = {
    "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0), "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
# What of the elements around the position of the method "linear" is taken: how far it is to the upper one.
SHARES: dict[str, Function] = {
    "lower": lambda at: np.floor(at), "higher": lambda at: np.ceil(at), "nearest": lambda at: np.rint(at),
    "midpoint": lambda at: (np.floor(at) + np.ceil(at)) / 2,
}  # fmt: skip


NO_SHARES = ("lower", "higher", "nearest")  # methods that return elements


def _make_quantiles(name: str, most: int, skips_nan: bool = False) -> Function:
    def quantile(a: Value, q: TensorLike, /, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
        a, q = align_operands((a, q))
        return _interpolate_sorted(name, a, q, most, axis, keepdims, method, skips_nan)

    return quantile


def _median(a: Value, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the mean of the one or two elements in the middle, NaN where there is one."""
    x = _line_up("np.median", a, axis)
    values, n = strip(x), x.shape[-1]
    middle = range((n - 1) // 2, n // 2 + 1)
    missing = np.isnan(values).any(axis=-1) if x.dtype.kind in "fc" else None
    if type(values) is not np.ndarray:
        z = np.mean(np.sort(x, axis=-1)[..., middle.start : middle.stop], axis=-1)
    elif x.ndim == 1:
        z = np.mean(x[[int(find_rank(values, k)) for k in middle]])
    else:
        z = np.mean(np.take_along_axis(x, np.stack([find_rank(values, k) for k in middle], -1), -1), axis=-1)
    if missing is not None and may_hold(missing):
        z = np.where(missing, np.asarray(np.nan, z.dtype), z)
    return _keep_axes(z, a, axis, "np.median") if keepdims else z


def _nanmedian(a: Value, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the median of the elements that are not NaN; NaN where there are none."""
    if a.dtype.kind not in "fc":
        return _median(a, axis, keepdims)
    x = np.sort(_line_up("np.nanmedian", a, axis), axis=-1)  # NaN is sorted to the end
    n = np.maximum(np.sum(~np.isnan(strip(x)), axis=-1, keepdims=True), 1)
    z = np.mean(np.take_along_axis(x, np.concatenate([(n - 1) // 2, n // 2], axis=-1), -1), axis=-1)
    return _keep_axes(z, a, axis, "np.nanmedian") if keepdims else z


def _keep_axes(z: Value, a: Value, axis: Axis, name: str) -> Any:
    """Return a reduction of ``a`` with axes of length 1 where it was reduced."""
    gone = resolve_axes(a.ndim, axis, name)
    return np.reshape(z, tuple(1 if i in gone else k for i, k in enumerate(a.shape)))


def _interpolate_sorted(
    name: str, a: Value, q: Any, most: int, axis: Axis, keepdims: bool, method: str = "linear", skips_nan: bool = False
) -> Any:
    """Interpolate linearly between the two sorted elements around the position of the quantile ``q``."""
    _check_quantile(name, q, most, method)
    if a.dtype.kind == "c":
        raise ArgumentError(f"{name}: a must be real, got {a.dtype}; complex numbers have no order.")
    gone = resolve_axes(a.ndim, axis, name)
    x = as_tensor(np.sort(_line_up(name, a, axis), axis=-1))  # NaN is sorted to the end
    shape = x.shape[:-1]
    missing = np.isnan(strip(x)) if a.dtype.kind == "f" else None
    rank, wide = np.ndim(q), x.dtype if x.dtype.kind == "f" else np.dtype(float)
    n: Any = x.shape[-1]
    if skips_nan and missing is not None:
        n = np.maximum(np.sum(~missing, axis=-1, keepdims=True), 1)
        z = _interpolate_each(x, np.reshape(q / most, -1), n, method, wide)
        z = np.reshape(z, shape + np.shape(q))
        missing = np.expand_dims(np.all(missing, axis=-1), tuple(range(len(shape), len(shape) + rank)))
    else:
        at = _locate(q / most, n, method)
        low = np.clip(np.floor(strip(at)), 0, n - 1).astype(int)
        y = x[..., low]
        z = _move_between(y, x[..., np.minimum(low + 1, n - 1)], np.astype(at - low, wide), method)
        missing = None if missing is None else np.any(missing, axis=-1)
        missing = missing if missing is None else np.expand_dims(missing, tuple(range(len(shape), len(shape) + rank)))
    if missing is not None:
        z = np.where(missing, np.asarray(np.nan, z.dtype), z)
    if rank:
        z = np.moveaxis(z, range(len(shape), len(shape) + rank), range(rank)).copy()  # as NumPy's, in C order
    return np.reshape(z, np.shape(q) + tuple(1 if i in gone else k for i, k in enumerate(a.shape))) if keepdims else z


def _line_up(name: str, a: Value, axis: Axis) -> Any:
    """Return a tensor with all elements along some axes of ``a`` along the last, after the other axes."""
    gone = resolve_axes(a.ndim, axis, name)
    kept = tuple(i for i in range(a.ndim) if i not in gone)
    moved = a if kept + gone == tuple(range(a.ndim)) else np.transpose(a, kept + gone)
    # a tensor can be indexed by what is different for each example of vmap
    x = as_tensor(moved if len(gone) == 1 else np.reshape(moved, (*(a.shape[i] for i in kept), -1)))
    if not x.shape[-1]:
        raise ShapeError(f"{name}: there is nothing along axis {axis} of shape {a.shape}.")
    return x


def _check_quantile(name: str, q: Any, most: int, method: str) -> None:
    every = all_values(q)
    if not np.all((every >= 0) & (every <= most)):
        raise ArgumentError(f"{name}: q must be from 0 to {most}, got {every!r}.")
    if method not in POSITIONS and method not in SHARES:
        raise ArgumentError(f"{name}: method must be one of {', '.join((*POSITIONS, *SHARES))}, got {method!r}.")


def _locate(q: Any, n: Any, method: str) -> Any:
    """Return the position of a quantile among ``n`` sorted elements, from 0 to n - 1."""
    if method in SHARES:
        return SHARES[method](strip(q) * (n - 1))
    first, last = POSITIONS[method]
    return np.clip(q * (n + 1 - first - last) + (first - 1), 0, n - 1)


def _interpolate_each(x: Value, q: Value, n: Any, method: str, wide: np.dtype[Any]) -> Any:
    """Return quantiles along the last axis, of which each row has ``n`` elements of its own."""
    at = _locate(q, n, method)
    low = np.clip(np.floor(strip(at)), 0, n - 1).astype(int)
    y = np.take_along_axis(x, low, -1)
    return _move_between(y, np.take_along_axis(x, np.minimum(low + 1, n - 1), -1), np.astype(at - low, wide), method)


def _move_between(low: Value, high: Value, share: Value, method: str) -> Any:
    """Return ``low + share * (high - low)``, by NumPy's formula, so that infinities give what they give there."""
    if method in NO_SHARES:
        return low
    gap: Any = high - low
    from_low: Any = low + gap * share
    from_high: Any = high - gap * (1 - share)
    return np.where(strip(share) < 0.5, from_low, from_high)


def _cov(m: Value, y: Value | None = None, /, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    m, y = align_operands((m, y))
    observed = [_as_observations(m, rowvar or np.ndim(m) == 1)]
    observed += [] if y is None else [_as_observations(y, rowvar or np.atleast_2d(y).shape[0] == 1)]
    x = np.concatenate(observed, axis=0)
    x = x - np.mean(x, axis=1, keepdims=True)
    n = x.shape[1] - (ddof if ddof is not None else 0 if bias else 1)
    mirrored = np.conjugate(x) if x.dtype.kind == "c" else x
    return np.squeeze(np.matmul(x, np.transpose(mirrored)) / max(n, 0))


def _as_observations(m: Value, rowvar: bool) -> Any:
    """Return a variable in each row."""
    x = np.atleast_2d(m)
    return x if rowvar else np.transpose(x)


def _corrcoef(x: Value, y: Value | None = None, /, rowvar: bool = True) -> Any:
    c = _cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    s = np.sqrt(np.real(np.diag(c)))
    z = c / np.expand_dims(s, 1) / np.expand_dims(s, 0)
    return z if z.dtype.kind == "c" else np.clip(z, -1, 1)


# ---- histograms


def _histogram_bin_edges(a: Value, /, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of bins, which follow the smallest and the largest element if no range is given."""
    if isinstance(bins, str):
        raise ArgumentError(f"np.histogram: bins={bins!r} has no derivative; give a number of bins, or their edges.")
    if np.ndim(bins):
        (edges,) = align_operands((bins,))
        rises: Any = np.all(strip(edges)[1:] >= strip(edges)[:-1])
        if edges.ndim > 1 or not may_hold(rises):
            raise ArgumentError(f"np.histogram: edges of bins must be one axis of increasing numbers, got {bins!r}.")
        return edges
    if not hasattr(bins, "__index__") or index(bins) < 1:
        raise ArgumentError(f"np.histogram: bins must be a positive integer, or an array of edges, got {bins!r}.")
    if range is None and not a.size:
        range = (0.0, 1.0)
    low, high = (np.min(a), np.max(a)) if range is None else range
    if not may_hold(np.isfinite(strip(low)) & np.isfinite(strip(high)) & (strip(low) <= strip(high))):
        where = "range" if range is not None else "the range of the data"
        raise ArgumentError(f"np.histogram: {where} must be finite, and increase, got {low!r} to {high!r}.")
    same = np.equal(strip(low), strip(high))
    if may_hold(same):
        low, high = np.where(same, low - 0.5, low), np.where(same, high + 0.5, high)
    return np.linspace(low, high, int(bins) + 1)


def _find_bins(values: Any, edges: Any) -> Any:
    """Return the bin of each element; those outside come after the last."""
    count = len(edges) - 1
    found = np.searchsorted(edges, values.ravel(), "right") - 1
    found = np.where(values.ravel() == edges[-1], count - 1, found)
    return np.where((found < 0) | (found >= count), count, found)


def _histogram(a: Any, /, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> Any:
    a, bins, weights = (bins if i == 1 else x for i, x in enumerate(align_operands((a, 0, weights))))
    edges = as_tensor(_histogram_bin_edges(a, bins, range))
    count = len(edges) - 1
    at = call_unfollowed(_find_bins, as_tensor(a), edges)
    if weights is None:
        counted = call_unfollowed(lambda at: np.bincount(at, minlength=count + 1)[:count], at)
        totals = wrap_constant("np.histogram", counted, a)
    else:
        totals = segments.unsorted_segment_sum(np.reshape(weights, -1), at, count + 1)[:count]
    return (totals / np.diff(edges) / np.sum(totals) if density else totals), edges


def _histogramdd(
    sample: Any, /, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    """Count points in a grid of bins, or add up their weights."""
    points: Any = as_tensor(np.stack(align_operands([*sample]), -1) if isinstance(sample, list | tuple) else sample)
    points = np.reshape(points, (-1, 1)) if points.ndim == 1 else points
    count = points.shape[1]
    several = bins if isinstance(bins, list | tuple) else [bins] * count
    ranges = [None] * count if range is None else range
    axes = [points[:, i] for i in builtins.range(count)]
    edges = [as_tensor(_histogram_bin_edges(*facts)) for facts in zip(axes, several, ranges, strict=True)]
    lengths = [len(e) - 1 for e in edges]
    at = [call_unfollowed(_find_bins, x, e) for x, e in zip(axes, edges, strict=True)]
    flat = call_unfollowed(lambda *at: _number_cells(at, lengths), *at)
    size = int(np.prod(lengths))
    if weights is None:
        counted = call_unfollowed(lambda at: np.bincount(at, minlength=size + 1)[:size].astype(float), flat)
        totals = wrap_constant("np.histogramdd", counted, points)
    else:
        (w,) = align_operands((weights,))
        w = np.astype(w, float) if w.dtype.kind in "iub" else w
        totals = segments.unsorted_segment_sum(np.reshape(w, -1), flat, size + 1)[:size]
    totals = np.reshape(totals, lengths)
    if density:
        totals = totals / np.sum(totals)
        for i, e in enumerate(edges):
            totals = totals / np.reshape(np.diff(e), [-1 if k == i else 1 for k in builtins.range(count)])
    return totals, tuple(edges)


def _number_cells(at: Any, lengths: list[int]) -> Any:
    """Return the number of each point's cell in the flattened grid; points outside come after the last."""
    outside = np.any([a >= n for a, n in zip(at, lengths, strict=True)], axis=0)
    inside = [np.minimum(a, n - 1) for a, n in zip(at, lengths, strict=True)]
    return np.where(outside, int(np.prod(lengths)), np.ravel_multi_index(inside, lengths))


def _histogram2d(
    x: Any, y: Any, /, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    is_pair = isinstance(bins, list | tuple) and len(bins) == 2
    each = list(bins) if is_pair else [bins, bins]
    totals, edges = _histogramdd([x, y], each, range, density, weights)
    return totals, *edges


# ---- without NaN


def _ignore_nan(by: Function, instead: float) -> Function:
    def reduce(a: Value, /, axis: int | None = None, **kwargs: object) -> Any:
        return by(_fill_nan(a, instead), axis=axis, **kwargs)

    return reduce


def _fill_nan(a: Value, instead: float) -> Any:
    return np.where(np.isnan(strip(a)), np.asarray(instead, a.dtype), a) if a.dtype.kind in "fc" else a


def _make_nan_extreme(by: Function, instead: float) -> Function:
    def extreme(a: Value, /, axis: int | None = None, keepdims: bool = False) -> Any:
        z = by(_fill_nan(a, instead), axis=axis, keepdims=keepdims)
        if a.dtype.kind != "f":
            return z
        empty = np.all(np.isnan(strip(a)), axis=axis, keepdims=keepdims)
        return np.where(empty, np.asarray(np.nan, a.dtype), z)

    return extreme


def _count_present(a: Value, axis: int | None, keepdims: bool) -> Any:
    return np.sum((~np.isnan(strip(a))).astype(a.dtype), axis=axis, keepdims=keepdims)


def _nanmean(a: Value, /, axis: int | None = None, keepdims: bool = False) -> Any:
    if a.dtype.kind not in "fc":
        return np.mean(a, axis=axis, keepdims=keepdims)
    return np.sum(_fill_nan(a, 0), axis=axis, keepdims=keepdims) / _count_present(a, axis, keepdims)


def _nanvar(
    a: Value, /, axis: int | None = None, ddof: float = 0, keepdims: bool = False, *, correction: Any = None
) -> Any:
    if a.dtype.kind not in "fc":
        return np.var(a, axis=axis, ddof=resolve_ddof(ddof, correction), keepdims=keepdims)
    x = a - _nanmean(a, axis, True)
    x = np.where(np.isnan(strip(a)), np.asarray(0, x.dtype), x)
    n = np.real(_count_present(a, axis, keepdims)) - resolve_ddof(ddof, correction)
    squares = np.real(x * np.conjugate(x)) if x.dtype.kind == "c" else x * x
    return np.sum(squares, axis=axis, keepdims=keepdims) / np.where(n > 0, n, np.asarray(np.nan, n.dtype))


def _nanstd(
    a: Value, /, axis: int | None = None, ddof: float = 0, keepdims: bool = False, *, correction: Any = None
) -> Any:
    return take_root(_nanvar(a, axis, ddof, keepdims, correction=correction))


# ---- scans and differences


def _make_scan(kernel: Any) -> Function:
    def scan(a: Value, /, axis: int | None = None) -> Any:
        if axis is None or not np.ndim(a):  # a number has the axes 0 and -1 too
            axis = 0 if axis is None else axis
            a = np.reshape(a, -1)
        return BY_KERNEL[kernel].function(a, axis)

    return scan


def _make_cumulative(by: Function, start: float) -> Function:
    def cumulative(x: Value, /, axis: int | None = None, include_initial: bool = False) -> Any:
        if axis is None:
            if x.ndim > 1:
                raise ArgumentError(f"np.cumulative_sum or _prod: x has shape {x.shape}, so axis must be given.")
            axis = 0
        z = by(x, axis=axis)
        if not include_initial:
            return z
        shape = [1 if i == axis % z.ndim else n for i, n in enumerate(z.shape)]
        return np.concatenate([np.full(shape, start, z.dtype), z], axis=axis)

    return cumulative


def _make_arg_function(kernel: Any) -> Function:
    def arg(a: Value, /, axis: int | None = None, *, keepdims: bool = False) -> Any:
        z = BY_KERNEL[kernel].function(np.reshape(a, -1) if axis is None else a, 0 if axis is None else axis)
        if not (keepdims and a.ndim):
            return z
        return np.reshape(z, (1,) * a.ndim) if axis is None else np.expand_dims(z, axis)

    return arg


def _diff(a: Value, /, n: int = 1, axis: int = -1, prepend: Operand | None = None, append: Value | None = None) -> Any:
    if n < 0:
        raise ArgumentError(f"np.diff: n must not be negative, got {n}.")
    if not n:
        return a
    a, prepend, append = align_operands((a, prepend, append))
    axis = resolve_axis(a.ndim, axis, "np.diff")
    edge = [1 if i == axis else k for i, k in enumerate(a.shape)]
    ends = [x if np.ndim(x) else np.broadcast_to(x, edge) for x in (prepend, append) if x is not None]
    if ends:
        a = np.concatenate([*ends[: prepend is not None], a, *ends[prepend is not None :]], axis=axis)
    difference: Any = np.not_equal if a.dtype == np.bool_ else np.subtract
    for _ in range(n):
        a = difference(index_along(a, slice(1, None), axis), index_along(a, slice(None, -1), axis))
    return a


def _ediff1d(ary: Any, /, to_end: Any = None, to_begin: Any = None) -> Any:
    parts = align_operands((to_begin, _diff(np.reshape(ary, -1)), to_end))
    return np.concatenate([np.reshape(p, -1) for p in parts if p is not None])


def _unwrap(p: Value, /, discont: Any = None, axis: int = -1, *, period: Any = 6.283185307179586) -> Any:
    """Add the whole periods that NumPy finds; their number has no derivative."""
    limit, turn = strip(discont), strip(period)

    def count_turns(values: Any) -> Any:
        unwrapped = np.unwrap(values, limit, axis, period=turn)
        turns = np.where(unwrapped == values, 0, np.round((unwrapped - values) / turn))  # 0 of an infinite first
        return turns.astype(unwrapped.dtype)  # integers stay integers

    return p + call_unfollowed(count_turns, p) * period


def _trim_zeros(filt: Value, trim: str = "fb", axis: Axis = None) -> Any:
    if not filt.ndim:
        return filt
    present = np.nonzero(read_sizes("np.trim_zeros", filt))
    parts: list[slice] = [slice(None)] * filt.ndim
    for i in resolve_axes(filt.ndim, axis, "np.trim_zeros"):
        at = present[i]
        first = at.min(initial=filt.shape[i]) if "f" in trim.lower() else 0
        last = at.max(initial=-1) + 1 if "b" in trim.lower() else filt.shape[i]
        parts[i] = slice(int(first), max(int(first), int(last)))
    return filt[tuple(parts)]


def _trapezoid(y: Any, x: Value | None = None, /, dx: Any = 1.0, axis: int = -1) -> Any:
    y, x = align_operands((y, x))
    at = resolve_axis(np.ndim(y), axis, "np.trapezoid")
    if x is not None:
        dx = np.diff(x, axis=axis) if np.ndim(x) > 1 else np.diff(x)  # x may have more axes than y
        if np.ndim(x) == 1:
            dx = np.reshape(dx, [-1 if i == at else 1 for i in range(y.ndim)])
    y = as_tensor(y)
    return np.sum((index_along(y, slice(1, None), at) + index_along(y, slice(None, -1), at)) * dx / 2, axis=axis)


def _gradient(f: Value, /, *varargs: TensorLike, axis: Axis = None, edge_order: int = 1) -> Any:
    """Return central differences, one-sided at the ends: there of first or second order."""
    f, *spacings = align_operands((f, *(varargs or (1.0,))))
    f, *spacings = (1.0 * x if getattr(x, "dtype", f.dtype).kind in "iu" else x for x in (f, *spacings))  # no overflow
    axes = resolve_axes(f.ndim, axis, "np.gradient")
    if isinstance(axis, tuple | list):  # in the order given
        axes = tuple(resolve_axis(f.ndim, i, "np.gradient") for i in axis)
    if len(spacings) not in (1, len(axes)):
        raise ArgumentError(f"np.gradient: {len(spacings)} spacings for {len(axes)} axes.")
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    result = tuple(_differentiate_numerically(f, h, i, edge_order) for h, i in zip(spacings, axes, strict=True))
    return result[0] if len(result) == 1 else result


def _differentiate_numerically(f: Value, h: Any, axis: int, edge_order: int) -> Any:
    if edge_order not in (1, 2) or f.shape[axis] <= edge_order:
        raise ShapeError(
            f"np.gradient: edge_order must be 1 or 2, and less than the length of axis {axis}; got {edge_order} for "
            f"shape {f.shape}."
        )
    if np.ndim(h):
        h = np.diff(h)
        h = h[0] if not isinstance(h, Tensor) and np.all(h == h[0]) else h  # as NumPy does
    parts = (
        _differentiate_unevenly(f, h, axis, edge_order) if np.ndim(h) else _differentiate_evenly(f, h, axis, edge_order)
    )
    return np.astype(np.concatenate(parts, axis=axis), f.dtype)


def _differentiate_evenly(f: Value, h: Any, axis: int, edge_order: int) -> list[Any]:
    """Return the differences at the first point, those inside and that at the last, of points at equal distances."""

    def at(start: int | None, stop: int | None) -> Any:
        return index_along(f, slice(start, stop), axis)

    inner = (at(2, None) - at(None, -2)) / (2.0 * h)
    if edge_order == 1:
        return [(at(1, 2) - at(0, 1)) / h, inner, (at(-1, None) - at(-2, -1)) / h]
    first = (-1.5 / h) * at(0, 1) + (2.0 / h) * at(1, 2) + (-0.5 / h) * at(2, 3)
    last = (0.5 / h) * at(-3, -2) + (-2.0 / h) * at(-2, -1) + (1.5 / h) * at(-1, None)
    return [first, inner, last]


def _differentiate_unevenly(f: Value, h: Any, axis: int, edge_order: int) -> list[Any]:
    """Return the same of points at the distances ``h``."""
    h = np.reshape(h, [-1 if i == axis else 1 for i in range(f.ndim)])
    d = np.diff(f, axis=axis) / h
    a, b = index_along(h, slice(None, -1), axis), index_along(h, slice(1, None), axis)
    inner = (index_along(d, slice(None, -1), axis) * b + index_along(d, slice(1, None), axis) * a) / (a + b)
    first, last = index_along(d, slice(0, 1), axis), index_along(d, slice(-1, None), axis)
    if edge_order == 2:  # the parabola through the three points at the end
        h0, h1 = index_along(h, slice(0, 1), axis), index_along(h, slice(1, 2), axis)
        first = first - (index_along(d, slice(1, 2), axis) - first) * h0 / (h0 + h1)
        h0, h1 = index_along(h, slice(-1, None), axis), index_along(h, slice(-2, -1), axis)
        last = last + (last - index_along(d, slice(-2, -1), axis)) * h0 / (h0 + h1)
    return [first, inner, last]


def _prod(a: Any, /, axis: Axis = None, keepdims: bool = False) -> Any:
    caller = find_numpy_caller()
    if caller is not None and caller.f_code.co_name == "polyvalfromroots" and np.ndim(read_argument(caller, "x")):
        raise ArgumentError(
            "np.polynomial.polynomial.polyvalfromroots: NumPy arranges the roots only where x is an ndarray. "
            "Write the product: np.prod(x - r.reshape(r.shape + (1,) * x.ndim), axis=0)."
        )
    return BY_KERNEL[np.prod].function(a, axis, keepdims)


FUNCTIONS = {
    np.prod: _prod,
    np.var: _make_var(np.var), np.std: _make_var(np.std), np.ptp: _ptp, np.average: _average,
    np.quantile: _make_quantiles("np.quantile", 1), np.percentile: _make_quantiles("np.percentile", 100),
    np.median: _median,
    np.nanquantile: _make_quantiles("np.nanquantile", 1, True), np.nanmedian: _nanmedian,
    np.histogram: _histogram, np.histogram_bin_edges: _histogram_bin_edges, np.histogramdd: _histogramdd,
    np.histogram2d: _histogram2d,
    np.nanpercentile: _make_quantiles("np.nanpercentile", 100, True), np.unwrap: _unwrap, np.trim_zeros: _trim_zeros,
    np.cov: _cov, np.corrcoef: _corrcoef,
    np.nansum: _ignore_nan(np.sum, 0), np.nanprod: _ignore_nan(np.prod, 1),
    np.nancumsum: _ignore_nan(np.cumsum, 0), np.nancumprod: _ignore_nan(np.cumprod, 1),
    np.nanmax: _make_nan_extreme(np.max, -np.inf), np.nanmin: _make_nan_extreme(np.min, np.inf),
    np.nanmean: _nanmean, np.nanvar: _nanvar, np.nanstd: _nanstd,
    np.cumsum: _make_scan(np.cumsum), np.cumprod: _make_scan(np.cumprod),
    np.argmax: _make_arg_function(np.argmax), np.argmin: _make_arg_function(np.argmin),
    np.cumulative_sum: _make_cumulative(np.cumsum, 0), np.cumulative_prod: _make_cumulative(np.cumprod, 1),
    np.diff: _diff, np.ediff1d: _ediff1d, np.trapezoid: _trapezoid, np.gradient: _gradient,
}  # fmt: skip
