"""``scipy.fft``: Fourier transforms as ops, sine and cosine transforms as parts of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.names.scipy import FUNCTIONS
from pullback.ops.spectral import SAME_FACTOR, resize_axis
from pullback.scipy.arguments import as_float, as_operand, list_functions, make_fallback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Axis, Function, TensorLike, Value

NAMES = FUNCTIONS["fft"]

__getattr__ = partial(make_fallback, "fft")
__dir__ = partial(list_functions, "fft")


def _make_transform(name: str) -> Any:
    """Return the transform of one axis, which NumPy has under the same name."""
    by_numpy = getattr(np.fft, name)

    def transform(
        x: TensorLike, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False,
        workers: int | None = None, *, plan: object = None,
    ) -> Any:  # fmt: skip
        return by_numpy(as_operand(x), n=n, axis=axis, norm=norm)

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable."
    return transform


def _make_transform_of_axes(name: str, usual: tuple[int, ...] | None) -> Any:
    by_numpy = getattr(np.fft, name)

    def transform(
        x: TensorLike, s: Sequence[int] | None = None, axes: Axis = usual, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, *, plan: object = None,
    ) -> Any:  # fmt: skip
        x = as_operand(x)
        if axes is None:
            axes = tuple(range(x.ndim) if s is None else range(-len(s), 0))
        return by_numpy(x, s=s, axes=axes, norm=norm)

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable."
    return transform


fft, ifft, rfft, irfft = map(_make_transform, ("fft", "ifft", "rfft", "irfft"))
hfft, ihfft = map(_make_transform, ("hfft", "ihfft"))
fftn, ifftn = _make_transform_of_axes("fftn", None), _make_transform_of_axes("ifftn", None)
rfftn, irfftn = _make_transform_of_axes("rfftn", None), _make_transform_of_axes("irfftn", None)
fft2, ifft2 = _make_transform_of_axes("fft2", (-2, -1)), _make_transform_of_axes("ifft2", (-2, -1))
rfft2, irfft2 = _make_transform_of_axes("rfft2", (-2, -1)), _make_transform_of_axes("irfft2", (-2, -1))


def hfftn(
    x: TensorLike, s: int | Sequence[int] | None = None, axes: Axis = None, norm: str | None = None,
    overwrite_x: bool = False, workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return the transform of an array with Hermitian symmetry, which is real."""
    return irfftn(np.conj(as_float(x)), s, axes, SAME_FACTOR[norm])


def ihfftn(
    x: TensorLike, s: int | Sequence[int] | None = None, axes: Axis = None, norm: str | None = None,
    overwrite_x: bool = False, workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return the inverse of ``hfftn``."""
    return np.conj(rfftn(as_float(x), s, axes, SAME_FACTOR[norm]))


def hfft2(
    x: TensorLike, s: int | Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None,
    overwrite_x: bool = False, workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return ``hfftn`` over two axes."""
    return hfftn(x, s, axes, norm)


def ihfft2(
    x: TensorLike, s: int | Sequence[int] | None = None, axes: Axis = (-2, -1), norm: str | None = None,
    overwrite_x: bool = False, workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return ``ihfftn`` over two axes."""
    return ihfftn(x, s, axes, norm)


def fftshift(x: TensorLike, axes: Axis = None) -> Any:
    """Return the array with the zero frequency in the middle."""
    return np.fft.fftshift(as_operand(x), axes)


def ifftshift(x: TensorLike, axes: Axis = None) -> Any:
    """Return the array with frequency 0 first: the inverse of ``fftshift``."""
    return np.fft.ifftshift(as_operand(x), axes)


# ---- cosine and sine transforms
#
# Each is the real or imaginary part of a Fourier transform of twice the length, with phases before and after it.

INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
ROOT_TWO = 2**0.5


def _transform_fourier(x: Value, length: int) -> Any:
    return np.fft.fft(x, length)


def _transform_cosines(x: Value, kind: int) -> Any:
    """Return the cosine transform of the last axis, without a factor."""
    n = x.shape[-1]
    k = np.arange(n)
    if kind == 1:
        return np.real(_transform_fourier(np.concatenate([x, x[..., -2:0:-1]], -1), 2 * n - 2)[..., :n])
    if kind == 2:
        return np.real(_transform_fourier(x, 2 * n)[..., :n] * (2 * np.exp(-0.5j * np.pi / n * k)))
    if kind == 3:
        return np.real(_transform_fourier(x * (np.where(k, 2, 1) * np.exp(-0.5j * np.pi / n * k)), 2 * n)[..., :n])
    turned = _transform_fourier(x * np.exp(-0.5j * np.pi / n * k), 2 * n)[..., :n]
    return np.real(turned * (2 * np.exp(-0.25j * np.pi / n * (2 * k + 1))))


def _transform_sines(x: Value, kind: int) -> Any:
    """Return the sine transform of the last axis, without a factor."""
    n = x.shape[-1]
    k = np.arange(n)
    nothing = np.zeros((*x.shape[:-1], 1), x.dtype)
    if kind == 1:
        return -2 * np.imag(_transform_fourier(np.concatenate([nothing, x], -1), 2 * n + 2)[..., 1 : n + 1])
    if kind == 2:
        return -np.imag(_transform_fourier(x, 2 * n)[..., 1 : n + 1] * (2 * np.exp(-0.5j * np.pi / n * (k + 1))))
    if kind == 3:
        turned = x * (np.where(k == n - 1, 1, 2) * np.exp(-0.5j * np.pi / n * (k + 1)))
        return -np.imag(_transform_fourier(np.concatenate([nothing, turned], -1), 2 * n)[..., :n])
    turned = _transform_fourier(x * np.exp(-0.5j * np.pi / n * k), 2 * n)[..., :n]
    return -np.imag(turned * (2 * np.exp(-0.25j * np.pi / n * (2 * k + 1))))


def _scale_ends(x: Value, ends: tuple[int, ...], factor: float) -> Any:
    """Return ``x`` with the numbers at some ends of the last axis multiplied."""
    factors = np.ones(x.shape[-1])
    for end in ends:
        factors[end] *= factor
    return x * factors.astype(x.dtype if x.dtype.kind == "f" else float)


# the ends that an orthogonal transform weighs: (of what goes in, of what comes out)
ENDS: dict[tuple[bool, int], tuple[tuple[int, ...], tuple[int, ...]]] = {
    (True, 1): ((0, -1), (0, -1)), (True, 2): ((), (0,)), (True, 3): ((0,), ()), (True, 4): ((), ()),
    (False, 1): ((), ()), (False, 2): ((), (-1,)), (False, 3): ((-1,), ()), (False, 4): ((), ()),
}  # fmt: skip


def _check_transform(n: int, cosine: bool, kind: int, norm: str | None) -> None:
    if kind not in INVERSE or norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(f"scipy.fft: type must be 1, 2, 3 or 4, and norm as in NumPy; got {kind!r} and {norm!r}.")
    if cosine and kind == 1 and n < 2:
        raise ArgumentError("scipy.fft: a cosine transform of type 1 needs at least two numbers.")


def _transform_real(x: Value, cosine: bool, kind: int, norm: str | None, back: bool, orthogonalize: bool | None) -> Any:
    n = x.shape[-1]
    _check_transform(n, cosine, kind, norm)
    kind = INVERSE[kind] if back else kind
    size = 2 * (n - 1 if cosine else n + 1) if kind == 1 else 2 * n
    into, out = ENDS[cosine, kind] if orthogonalize or (orthogonalize is None and norm == "ortho") else ((), ())
    y = (_transform_cosines if cosine else _transform_sines)(_scale_ends(x, into, ROOT_TWO) if into else x, kind)
    y = _scale_ends(y, out, 1 / ROOT_TWO) if out else y
    if norm == "ortho":
        return y * size**-0.5
    return y / size if (norm == "forward") != back else y


def _make_real_transform(name: str) -> Any:
    cosine, back = "c" in name, name.startswith("i")

    def transform(
        x: TensorLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, orthogonalize: bool | None = None,
    ) -> Any:  # fmt: skip
        x = as_float(x)
        if not x.ndim:
            raise ShapeError(f"scipy.fft.{name}: expected at least one axis, got a number.")
        if x.dtype.kind == "c":
            parts = [transform(p, type, n, axis, norm, orthogonalize=orthogonalize) for p in (np.real(x), np.imag(x))]
            return parts[0] + 1j * parts[1]
        rows = np.moveaxis(x if n is None else resize_axis(x, axis, n), axis, -1)
        y = np.moveaxis(_transform_real(rows, cosine, type, norm, back, orthogonalize), -1, axis)
        return y if y.dtype == x.dtype else y.astype(x.dtype)

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable; by Fourier transforms."
    return transform


dct, idct, dst, idst = map(_make_real_transform, ("dct", "idct", "dst", "idst"))


def _make_real_transform_of_axes(one: Function, name: str) -> Any:
    def transform(
        x: TensorLike, type: int = 2, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, orthogonalize: bool | None = None,
    ) -> Any:  # fmt: skip
        x = as_float(x)
        if axes is None:
            axes = range(x.ndim) if s is None else range(-len(np.atleast_1d(s)), 0)
        axes = [axes] if isinstance(axes, int) else [*axes]
        for i, axis in enumerate(axes):
            x = one(x, type, None if s is None else int(np.atleast_1d(s)[i]), axis, norm, orthogonalize=orthogonalize)
        return x

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable; by Fourier transforms."
    return transform


dctn, idctn = _make_real_transform_of_axes(dct, "dctn"), _make_real_transform_of_axes(idct, "idctn")
dstn, idstn = _make_real_transform_of_axes(dst, "dstn"), _make_real_transform_of_axes(idst, "idstn")
