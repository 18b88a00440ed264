"""Fourier transforms by the names of the Array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from pullback.core.tape import constant
from pullback.interop.array_api.arguments import call, check_device, name_function

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import DType, Value

Norm = Literal["backward", "ortho", "forward"]


NORM = 'norm: which direction is divided by the length: "backward", "forward", or both by its root, "ortho".'


class AlongAxis(Protocol):
    """A transform along one axis."""

    def __call__(self, x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor: ...


class AlongAxes(Protocol):
    """A transform along several axes."""

    def __call__(
        self, x: Value, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Tensor: ...


def _transform_axis(name: str, summary: str, sized: str = "argument") -> AlongAxis:
    """Return the transform of NumPy of this name; ``sized`` says what has the length ``n``."""
    f = getattr(np.fft, name)

    def transform(x: Value, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
        return call(f, x, n=n, axis=axis, norm=norm)

    lines = ["x: the array.", f"n: the length of the {sized}, by cutting off or zeros at the end.", "axis: the axis."]
    return name_function(transform, name, summary, *lines, NORM)


def _transform_axes(name: str, summary: str, sized: str = "argument") -> AlongAxes:
    """Return the transform of NumPy of this name; ``sized`` says what has the lengths ``s``."""
    f = getattr(np.fft, name)

    def transform(
        x: Value, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Tensor:
        last = tuple(range(-len(s), 0)) if axes is None and s is not None else axes
        return call(f, x, s=s, axes=last, norm=norm)

    lines = [
        "x: the array.",
        f"s: the lengths of the {sized} along the axes.",
        "axes: the axes; the last ones, as many as there are lengths, or all.",
    ]
    return name_function(transform, name, summary, *lines, NORM)


fft = _transform_axis("fft", "Return the Fourier transform along an axis.")
ifft = _transform_axis("ifft", "Return the inverse Fourier transform along an axis.")
rfft = _transform_axis("rfft", "Return the Fourier transform of real numbers, without the half that mirrors the other.")
irfft = _transform_axis("irfft", "Return the inverse of ``rfft``, which is real.", "result")
hfft = _transform_axis(
    "hfft", "Return the Fourier transform, which is real, of numbers with Hermitian symmetry.", "result"
)
ihfft = _transform_axis("ihfft", "Return the inverse of ``hfft``.")
fftn = _transform_axes("fftn", "Return the Fourier transform along several axes.")
ifftn = _transform_axes("ifftn", "Return the inverse Fourier transform along several axes.")
rfftn = _transform_axes(
    "rfftn",
    "Return the Fourier transform of real numbers along several axes, without the half that mirrors the other.",
)
irfftn = _transform_axes("irfftn", "Return the inverse of ``rfftn``, which is real.", "result")


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
