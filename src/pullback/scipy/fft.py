"""``scipy.fft``: Fourier transforms as ops, sine and cosine transforms by their matrices."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ShapeError
from pullback.names.scipy import FUNCTIONS
from pullback.scipy.arguments import apply_matrix, as_float, as_operand, load, make_fallback

if TYPE_CHECKING:
    from pullback.typing import TensorLike

NAMES = FUNCTIONS["fft"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return make_fallback("fft", name)


def _transform(name: str) -> Any:
    """Return the transform of one axis, which NumPy has under the same name."""
    by_numpy = getattr(np.fft, name)

    def transform(
        x: TensorLike, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False,
        workers: int | None = None, *, plan: object = None,
    ) -> Any:  # fmt: skip
        return by_numpy(as_operand(x), n=n, axis=axis, norm=norm)

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable."
    return transform


def _transform_several(name: str, usual: tuple[int, ...] | None) -> Any:
    by_numpy = getattr(np.fft, name)

    def transform(
        x: TensorLike, s: Any = None, axes: Any = usual, norm: str | None = None, overwrite_x: bool = False,
        workers: int | None = None, *, plan: object = None,
    ) -> Any:  # fmt: skip
        x = as_operand(x)
        if axes is None:
            axes = tuple(range(x.ndim) if s is None else range(-len(s), 0))
        return by_numpy(x, s=s, axes=axes, norm=norm)

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable."
    return transform


fft, ifft, rfft, irfft = map(_transform, ("fft", "ifft", "rfft", "irfft"))
hfft, ihfft = map(_transform, ("hfft", "ihfft"))
fftn, ifftn = _transform_several("fftn", None), _transform_several("ifftn", None)
rfftn, irfftn = _transform_several("rfftn", None), _transform_several("irfftn", None)
fft2, ifft2 = _transform_several("fft2", (-2, -1)), _transform_several("ifft2", (-2, -1))
rfft2, irfft2 = _transform_several("rfft2", (-2, -1)), _transform_several("irfft2", (-2, -1))


_OTHER_NORM = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfftn(
    x: TensorLike, s: Any = None, axes: Any = None, norm: str | None = None, overwrite_x: bool = False,
    workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return the transform of an array with Hermitian symmetry, which is real."""
    return irfftn(np.conj(as_float(x)), s, axes, _OTHER_NORM[norm])


def ihfftn(
    x: TensorLike, s: Any = None, axes: Any = None, norm: str | None = None, overwrite_x: bool = False,
    workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return the inverse of ``hfftn``."""
    return np.conj(rfftn(as_float(x), s, axes, _OTHER_NORM[norm]))


def hfft2(
    x: TensorLike, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, overwrite_x: bool = False,
    workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return ``hfftn`` over two axes."""
    return hfftn(x, s, axes, norm)


def ihfft2(
    x: TensorLike, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, overwrite_x: bool = False,
    workers: int | None = None, *, plan: object = None,
) -> Any:  # fmt: skip
    """Return ``ihfftn`` over two axes."""
    return ihfftn(x, s, axes, norm)


def fftshift(x: TensorLike, axes: Any = None) -> Any:
    """Return the array with frequency 0 in the middle."""
    return np.fft.fftshift(as_operand(x), axes)


def ifftshift(x: TensorLike, axes: Any = None) -> Any:
    """Return the array with frequency 0 first: the inverse of ``fftshift``."""
    return np.fft.ifftshift(as_operand(x), axes)


# ---- cosine and sine transforms


@lru_cache(64)
def _matrix(name: str, kind: int, n: int, length: int, norm: str | None, orthogonalize: bool | None) -> Any:
    """Return the matrix of a transform of ``length`` numbers, padded or cut to ``n``."""
    made = getattr(load("fft"), name)(np.eye(length), kind, n, 0, norm, orthogonalize=orthogonalize)
    made.flags.writeable = False
    return made


def _real_transform(name: str) -> Any:
    def transform(
        x: TensorLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, orthogonalize: bool | None = None,
    ) -> Any:  # fmt: skip
        x = as_float(x)
        if not x.ndim:
            raise ShapeError(f"scipy.fft.{name}: expected at least one axis, got a number.")
        length = x.shape[axis]
        matrix = _matrix(name, type, length if n is None else n, length, norm, orthogonalize)
        return apply_matrix(matrix.astype(np.real(np.empty(0, x.dtype)).dtype, copy=False), x, axis)

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable; by its matrix."
    return transform


dct, idct, dst, idst = map(_real_transform, ("dct", "idct", "dst", "idst"))


def _real_transform_several(one: Any, name: str) -> Any:
    def transform(
        x: TensorLike, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, orthogonalize: bool | None = None,
    ) -> Any:  # fmt: skip
        x = as_float(x)
        if axes is None:
            axes = range(x.ndim) if s is None else range(-len(np.atleast_1d(s)), 0)
        axes = [axes] if isinstance(axes, int) else [*axes]
        for i, axis in enumerate(axes):
            x = one(x, type, None if s is None else int(np.atleast_1d(s)[i]), axis, norm, orthogonalize=orthogonalize)
        return x

    transform.__name__, transform.__doc__ = name, f"Return ``scipy.fft.{name}``, differentiable; by matrices."
    return transform


dctn, idctn = _real_transform_several(dct, "dctn"), _real_transform_several(idct, "idctn")
dstn, idstn = _real_transform_several(dst, "dstn"), _real_transform_several(idst, "idstn")
