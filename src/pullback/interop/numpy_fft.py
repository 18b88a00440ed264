"""NumPy's Fourier transforms beyond those that are ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.interop.numpy_arguments import TABLES
from pullback.ops import spectral


def _adapt_several_axes(transform: Any) -> Any:
    return lambda a, /, s=None, axes=None, norm=None: transform(a, s, axes, norm)


def _adapt_two_axes(transform: Any) -> Any:
    return lambda a, /, s=None, axes=(-2, -1), norm=None: transform(a, s, axes, norm)


def _adapt_one_axis(transform: Any) -> Any:
    return lambda a, /, n=None, axis=-1, norm=None: transform(a, n, axis, norm)


FUNCTIONS = {
    np.fft.fftn: _adapt_several_axes(spectral.fftn), np.fft.ifftn: _adapt_several_axes(spectral.ifftn),
    np.fft.rfftn: _adapt_several_axes(spectral.rfftn), np.fft.irfftn: _adapt_several_axes(spectral.irfftn),
    np.fft.fft2: _adapt_two_axes(spectral.fftn), np.fft.ifft2: _adapt_two_axes(spectral.ifftn),
    np.fft.rfft2: _adapt_two_axes(spectral.rfftn), np.fft.irfft2: _adapt_two_axes(spectral.irfftn),
    np.fft.hfft: _adapt_one_axis(spectral.hfft), np.fft.ihfft: _adapt_one_axis(spectral.ihfft),
    np.fft.fftshift: lambda x, /, axes=None: spectral.fftshift(x, axes),
    np.fft.ifftshift: lambda x, /, axes=None: spectral.ifftshift(x, axes),
}  # fmt: skip
TABLES.append(FUNCTIONS)
