"""NumPy functions for products, norms, polynomials and convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import late_binding
from pullback.core.convert import check_real
from pullback.core.tape import as_tensor, constant
from pullback.core.tensor import Tensor, call_unfollowed, strip
from pullback.core.writes import mark_as_array
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import align_operands, as_numpy_number
from pullback.numerics.axis_arguments import LETTERS, resolve_axes
from pullback.ops import contraction, norms
from pullback.ops.contraction import einsum
from pullback.ops.convolution import conv1d
from pullback.ops.diagonals import diagonal_part

if TYPE_CHECKING:
    from pullback.typing import Axis, TensorLike, Value

MIN_CONVOLVED = 1 << 14  # products of a convolution from which on the op for windows is quicker than their copies


# ---- products


def _accept_lists(product: Any) -> Any:
    """Adapt a product of two tensors to take lists and numbers."""

    def of(a: TensorLike, b: TensorLike, /) -> Any:
        return product(*align_operands((a, b)))

    return of


def _tensordot(a: Value, b: Any, /, axes: Any = 2) -> Any:
    a, b = align_operands((a, b))
    return mark_as_array(contraction.tensordot(a, b, axes))


def _kron(a: Value, b: Value, /) -> Any:
    a, b = align_operands((a, b))
    n = max(np.ndim(a), np.ndim(b))
    first, second = ((1,) * (n - np.ndim(x)) + np.shape(x) for x in (a, b))
    x = np.reshape(a, [k for length in first for k in (length, 1)])
    y = np.reshape(b, [k for length in second for k in (1, length)])
    return np.reshape(x * y, [k * m for k, m in zip(first, second, strict=True)])


def _cross(
    a: Value, b: TensorLike, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = align_operands((a, b))
    x, y = np.moveaxis(x, axisa, -1), np.moveaxis(y, axisb, -1)
    if not {x.shape[-1], y.shape[-1]} <= {2, 3}:
        raise ShapeError(f"np.cross: vectors have two or three components, got {x.shape[-1]} and {y.shape[-1]}.")
    if x.shape[-1] == y.shape[-1] == 2:
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    x, y = (np.concatenate([v, np.zeros_like(v[..., :1])], -1) if v.shape[-1] == 2 else v for v in (x, y))
    one, two = [1, 2, 0], [2, 0, 1]
    return np.moveaxis(x[..., one] * y[..., two] - x[..., two] * y[..., one], -1, axisc)


def _trace(a: Value, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    if a.ndim == 2 and a.shape[0] == a.shape[1] and not offset and (axis1, axis2) == (0, 1):
        return np.sum(diagonal_part(a, "ii->i"))
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


def _einsum(*operands: Any, optimize: Any = False) -> Any:
    """Evaluate either form of ``np.einsum``: subscripts and operands, or operands each with a list of axes."""
    if isinstance(operands[0], str):
        text, *arrays = operands
    else:
        arrays, lists = list(operands[: len(operands) // 2 * 2 : 2]), operands[1::2]
        text = ",".join(map(_write_subscripts, lists))
        if len(operands) % 2:
            text += "->" + _write_subscripts(operands[-1])
    arrays = align_operands(arrays)
    z = einsum(text, *arrays)
    z = z if z.dtype.kind in "fc" else np.astype(z, np.result_type(*(a.dtype for a in arrays)))
    if z.ndim:
        return z
    return (
        mark_as_array(z) if optimize is not False and _ends_in_tensordot(text, arrays, optimize) else as_numpy_number(z)
    )


def _ends_in_tensordot(text: str, arrays: list[Any], optimize: Any) -> bool:
    """Return whether the last step of ``np.einsum`` is ``np.tensordot``, which gives arrays without axes."""
    models = (np.zeros([min(n, 2) for n in a.shape]) for a in arrays)
    return isinstance(np.einsum(text, *models, optimize=optimize), np.ndarray)


def _write_subscripts(axes: Any) -> str:
    return "".join("..." if i is Ellipsis else LETTERS[i] for i in axes)


# ---- norms


def _norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = x if x.dtype.kind in "fc" else np.astype(x, float)
    if axis is None and ord in ("f", "fro") and x.ndim == 2:
        return norms.euclidean_norm(x, None, keepdims)
    of_vectors = 2 if ord is None else ord
    if axis is None and (ord is None or x.ndim < 2):
        return _vector_norm(x, keepdims=keepdims, ord=of_vectors)
    axes = resolve_axes(x.ndim, axis, "np.linalg.norm")
    if len(axes) == 1:
        return _vector_norm(x, axis=axes[0], keepdims=keepdims, ord=of_vectors)
    if len(axes) != 2:
        raise ArgumentError(
            f"np.linalg.norm: ord={ord!r} is for vectors and matrices, but axis={axis!r} of shape {x.shape} is neither."
        )
    rows, columns = axes if axis is None else (int(i) % x.ndim for i in axis)  # their order matters
    z = _matrix_norm(np.moveaxis(x, (rows, columns), (-2, -1)), ord="fro" if ord is None else ord)
    return np.expand_dims(z, axes) if keepdims else z


def _vector_norm(x: Value, /, *, axis: Axis = None, keepdims: bool = False, ord: str | float = 2) -> Any:
    if isinstance(ord, str):
        raise ArgumentError(f"np.linalg.norm: ord={ord!r} is for matrices; x has shape {x.shape} and axis={axis!r}.")
    over_several = isinstance(axis, list | tuple) and len(axis) > 1
    if not over_several:
        return norms.norm(x, ord, axis, keepdims)
    gone = resolve_axes(x.ndim, axis, "np.linalg.vector_norm")
    kept = tuple(i for i in range(x.ndim) if i not in gone)
    flat = np.reshape(np.transpose(x, kept + gone), (*(x.shape[i] for i in kept), -1))
    z = norms.norm(flat, ord, -1)
    return np.expand_dims(z, gone) if keepdims else z


def _matrix_norm(x: Value, /, *, keepdims: bool = False, ord: str | float = "fro") -> Any:
    if ord in ("f", "fro"):
        return norms.euclidean_norm(x, (-2, -1), keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        return late_binding.matrix_norm(x, ord, keepdims)
    first, second = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = np.sum(np.absolute(x), axis=first, keepdims=True)
    z = (np.max if ord > 0 else np.min)(sums, axis=second, keepdims=True)
    return z if keepdims else np.squeeze(z, (-2, -1))


# ---- polynomials, curves


def _polyval(p: Any, x: Any, /) -> Any:
    p, x = align_operands((p, x))
    y = np.zeros_like(x)
    for i in range(len(p)):
        y = y * x + p[i]
    return y


def _vander(x: Value, /, N: int | None = None, increasing: bool = False) -> Any:
    n = len(x) if N is None else N
    x = x.astype(np.promote_types(x.dtype, int)) if x.dtype.kind in "iub" else x  # as in NumPy
    powers = [np.ones_like(x)]
    for _ in range(n - 1):
        powers.append(powers[-1] * x)
    powers = powers[:n] if increasing else powers[:n][::-1]
    return np.stack(powers, axis=1) if powers else constant(np.empty((len(x), 0), x.dtype))


def _convolve(a: Value, v: Value, /, mode: str = "full") -> Any:
    a, v = map(np.atleast_1d, align_operands((a, v)))
    if len(v) > len(a):
        a, v = v, a
    n, k = len(a), len(v)
    if not k:
        raise ShapeError("np.convolve: an argument is empty.")
    outside = {"full": (k - 1, k - 1), "same": (k // 2, (k - 1) // 2), "valid": (0, 0)}
    if mode not in outside:
        raise ArgumentError(f"np.convolve: mode must be 'full', 'same' or 'valid', got {mode!r}.")
    x, weights = np.pad(as_tensor(a), outside[mode]), v[::-1]
    values = strip(weights)
    is_finite = not isinstance(values, Tensor) and bool(np.isfinite(values).all())
    is_large = n * k >= MIN_CONVOLVED and x.dtype.char in "fd" and x.dtype == weights.dtype
    if is_large and (is_finite or isinstance(values, Tensor)):
        return conv1d(x[None, :, None], as_tensor(weights)[:, None, None])[0, :, 0]
    places = np.arange(len(x) - k + 1)[:, None] + np.arange(k)
    if not is_finite and mode != "valid":  # an infinite weight beside the zeros outside would give NaN
        before = outside[mode][0]
        weights = np.where((places >= before) & (places < before + n), weights, np.zeros((), weights.dtype))
    z = np.sum(x[places] * weights, axis=1)
    return z if z.dtype.kind in "fc" else np.astype(z, np.result_type(a.dtype, v.dtype))


def _correlate(a: Value, v: Value, /, mode: str = "valid") -> Any:
    a, v = map(np.atleast_1d, align_operands((a, v)))
    v = np.conjugate(v) if v.dtype.kind == "c" else v
    if len(v) > len(a):
        return _convolve(a[::-1], v, mode)[::-1]
    return _convolve(a, v[::-1], mode)


def _repeat_period(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Return points within one period, and the known ones in order with one more at each end."""
    length = abs(period)
    xp = xp % length
    order = call_unfollowed(lambda values: np.argsort(values), xp)
    xp, fp = np.take(xp, order), np.take(fp, order)
    known = np.concatenate([xp[-1:] - length, xp, xp[:1] + length])
    return x % length, known, np.concatenate([fp[-1:], fp, fp[:1]])


def _interp(x: TensorLike, xp: Any, fp: Any, /, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = align_operands((x, xp, fp))
    if period is not None:
        return _interp(*_repeat_period(x, as_tensor(xp), as_tensor(fp), period))
    check_real("np.interp", x, "x")
    check_real("np.interp", xp, "xp")
    if np.ndim(xp) != 1 or np.shape(xp) != np.shape(fp) or not np.size(xp):
        raise ShapeError(f"np.interp: xp and fp must be vectors of one length, got {np.shape(xp)} and {np.shape(fp)}.")
    n = len(xp)
    here, known = strip(x), strip(xp)
    i = np.clip(np.searchsorted(known, here, side="right") - 1, 0, max(n - 2, 0))
    j = np.minimum(i + 1, n - 1)
    xp, fp = as_tensor(xp), as_tensor(fp)
    start, stop, low, high = xp[i], xp[j], fp[i], fp[j]
    low, high = (  # at a point only its own value counts, whether the next one is finite or not
        np.where((here >= strip(stop)) & ~np.isfinite(strip(low)), high, low),
        np.where((here <= strip(start)) & ~np.isfinite(strip(high)), low, high),
    )
    is_step = strip(start) == strip(stop)  # the last two points are at one place, or there is one point
    share = np.where(is_step, 1.0, (x - start) / np.where(is_step, 1.0, stop - start))
    y = low + (high - low) * share
    before, after = here < known[0], here > known[-1]
    y = np.where(before, fp[0] if left is None else left, y)
    return np.where(after, fp[-1] if right is None else right, y)


FUNCTIONS = {
    np.dot: _accept_lists(contraction.dot), np.inner: _accept_lists(contraction.inner),
    np.outer: _accept_lists(contraction.outer), np.vdot: _accept_lists(contraction.vdot), np.tensordot: _tensordot,
    np.kron: _kron, np.cross: _cross, np.trace: _trace, np.einsum: _einsum,
    np.linalg.trace: lambda x, /, *, offset=0: _trace(x, offset, -2, -1),
    np.linalg.matmul: lambda x1, x2, /: np.matmul(x1, x2),
    np.linalg.norm: _norm, np.linalg.vector_norm: _vector_norm, np.linalg.matrix_norm: _matrix_norm,
    np.polyval: _polyval, np.vander: _vander, np.convolve: _convolve, np.correlate: _correlate, np.interp: _interp,
}  # fmt: skip
