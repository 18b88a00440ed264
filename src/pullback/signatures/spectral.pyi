"""The functions of ``pb.spectral``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from collections.abc import Sequence
from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, Axis, TensorLike, TensorOrNested
from typing import Any, overload

@overload
def fft(x: TensorOrNested, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform."""

@overload
def fft(x: ArrayLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Array: ...
@overload
def fft2(
    x: TensorOrNested, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Tensor:
    """Return ``fftn`` along the last two axes."""

@overload
def fft2(
    x: ArrayLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Array: ...
@overload
def fftn(x: TensorOrNested, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Tensor:
    """Return ``fft`` along several axes, all by default; ``s`` has the length of the transform along each."""

@overload
def fftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array: ...
@overload
def fftshift(x: TensorOrNested, axes: Axis = None) -> Tensor:
    """Return ``x`` with the zero frequency moved to the middle of the axes."""

@overload
def fftshift(x: ArrayLike, axes: Axis = None) -> Array: ...
@overload
def hfft(x: TensorOrNested, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
    """Return the real Fourier transform of a Hermitian-symmetric signal, of which the first half is given."""

@overload
def hfft(x: ArrayLike, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Array: ...
@overload
def ifft(x: TensorOrNested, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of ``fft``."""

@overload
def ifft(x: ArrayLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Array: ...
@overload
def ifft2(
    x: TensorOrNested, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Tensor:
    """Return ``ifftn`` along the last two axes."""

@overload
def ifft2(
    x: ArrayLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Array: ...
@overload
def ifftn(x: TensorOrNested, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Tensor:
    """Return the inverse of ``fftn``."""

@overload
def ifftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array: ...
@overload
def ifftshift(x: TensorOrNested, axes: Axis = None) -> Tensor:
    """Return the inverse of ``fftshift``."""

@overload
def ifftshift(x: ArrayLike, axes: Axis = None) -> Array: ...
@overload
def ihfft(x: TensorOrNested, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of ``hfft``."""

@overload
def ihfft(x: ArrayLike, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Array: ...
@overload
def irfft(x: TensorOrNested, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of ``rfft``; give ``n`` if its length is odd."""

@overload
def irfft(x: ArrayLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Array: ...
@overload
def irfft2(
    x: TensorOrNested, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Tensor:
    """Return ``irfftn`` along the last two axes."""

@overload
def irfft2(
    x: ArrayLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Array: ...
@overload
def irfftn(x: TensorOrNested, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Tensor:
    """Return the inverse of ``rfftn``."""

@overload
def irfftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array: ...
@overload
def rfft(x: TensorOrNested, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
    """Return the Fourier transform of real numbers at non-negative frequencies; the others are its conjugates."""

@overload
def rfft(x: ArrayLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Array: ...
@overload
def rfft2(
    x: TensorOrNested, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Tensor:
    """Return ``rfftn`` along the last two axes."""

@overload
def rfft2(
    x: ArrayLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = ..., norm: str | None = None
) -> Array: ...
@overload
def rfftn(x: TensorOrNested, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Tensor:
    """Return ``rfft`` along the last of the axes, ``fft`` along the others."""

@overload
def rfftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Array: ...
