"""Fourier transforms by the names of the Array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from pullback.core.tape import constant
from pullback.interop.array_api.arguments import call, check_device

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import DType, Value

Norm = Literal["backward", "ortho", "forward"]


def fft(x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the Fourier transform along an axis.

    x: the array.
    n: the length of the argument, by cutting off or zeros at the end.
    axis: the axis.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.fft, x, n=n, axis=axis, norm=norm)


def ifft(x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse Fourier transform along an axis.

    x: the array.
    n: the length of the argument, by cutting off or zeros at the end.
    axis: the axis.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.ifft, x, n=n, axis=axis, norm=norm)


def rfft(x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the Fourier transform of real numbers, without the half that mirrors the other.

    x: the array.
    n: the length of the argument, by cutting off or zeros at the end.
    axis: the axis.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.rfft, x, n=n, axis=axis, norm=norm)


def irfft(x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse of ``rfft``, which is real.

    x: the array.
    n: the length of the result, by cutting off or zeros at the end.
    axis: the axis.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.irfft, x, n=n, axis=axis, norm=norm)


def hfft(x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the Fourier transform, which is real, of numbers with Hermitian symmetry.

    x: the array.
    n: the length of the result, by cutting off or zeros at the end.
    axis: the axis.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.hfft, x, n=n, axis=axis, norm=norm)


def ihfft(x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Return the inverse of ``hfft``.

    x: the array.
    n: the length of the argument, by cutting off or zeros at the end.
    axis: the axis.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.ihfft, x, n=n, axis=axis, norm=norm)


def fftn(
    x: Value, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Return the Fourier transform along several axes.

    x: the array.
    s: the lengths of the argument along the axes.
    axes: the axes; the last ones, as many as there are lengths, or all.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.fftn, x, s=s, axes=_list_axes(s, axes), norm=norm)


def ifftn(
    x: Value, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse Fourier transform along several axes.

    x: the array.
    s: the lengths of the argument along the axes.
    axes: the axes; the last ones, as many as there are lengths, or all.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.ifftn, x, s=s, axes=_list_axes(s, axes), norm=norm)


def rfftn(
    x: Value, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Return the Fourier transform of real numbers along several axes, without the half that mirrors the other.

    x: the array.
    s: the lengths of the argument along the axes.
    axes: the axes; the last ones, as many as there are lengths, or all.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.rfftn, x, s=s, axes=_list_axes(s, axes), norm=norm)


def irfftn(
    x: Value, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse of ``rfftn``, which is real.

    x: the array.
    s: the lengths of the result along the axes.
    axes: the axes; the last ones, as many as there are lengths, or all.
    norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".
    """
    return call(np.fft.irfftn, x, s=s, axes=_list_axes(s, axes), norm=norm)


def _list_axes(s: Sequence[int] | None, axes: Sequence[int] | None) -> Sequence[int] | None:
    """Return the axes of a transform, the last ones if only their lengths are given."""
    return tuple(range(-len(s), 0)) if axes is None and s is not None else axes


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: object = None) -> Tensor:
    """Return the frequencies of ``fft``.

    n: the length of the transform.
    d: the distance of samples.
    dtype: the dtype, float64 without it.
    device: ``"cpu"`` or None.
    """
    check_device("fftfreq", device)
    return constant(np.fft.fftfreq(n, d).astype(dtype or np.float64))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: object = None) -> Tensor:
    """Return the frequencies of ``rfft``.

    n: the length of the transform.
    d: the distance of samples.
    dtype: the dtype, float64 without it.
    device: ``"cpu"`` or None.
    """
    check_device("rfftfreq", device)
    return constant(np.fft.rfftfreq(n, d).astype(dtype or np.float64))


def fftshift(x: Value, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return a spectrum with the frequency 0 in the middle.

    x: the spectrum.
    axes: the axes; None for all.
    """
    return call(np.fft.fftshift, x, axes=axes)


def ifftshift(x: Value, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return a spectrum with the frequency 0 first, the inverse of ``fftshift``.

    x: the spectrum.
    axes: the axes; None for all.
    """
    return call(np.fft.ifftshift, x, axes=axes)
