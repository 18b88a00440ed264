"""NumPy's Fourier transforms beyond those that are ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.interop.numpy_arguments import TABLES
from pullback.ops import spectral


def _several(transform: Any) -> Any:
    return lambda a, /, s=None, axes=None, norm=None: transform(a, s, axes, norm)


def _two(transform: Any) -> Any:
    return lambda a, /, s=None, axes=(-2, -1), norm=None: transform(a, s, axes, norm)


def _half(transform: Any) -> Any:
    return lambda a, /, n=None, axis=-1, norm=None: transform(a, n, axis, norm)


FUNCTIONS = {
    np.fft.fftn: _several(spectral.fftn), np.fft.ifftn: _several(spectral.ifftn),
    np.fft.rfftn: _several(spectral.rfftn), np.fft.irfftn: _several(spectral.irfftn),
    np.fft.fft2: _two(spectral.fftn), np.fft.ifft2: _two(spectral.ifftn),
    np.fft.rfft2: _two(spectral.rfftn), np.fft.irfft2: _two(spectral.irfftn),
    np.fft.hfft: _half(spectral.hfft), np.fft.ihfft: _half(spectral.ihfft),
    np.fft.fftshift: lambda x, /, axes=None: spectral.fftshift(x, axes),
    np.fft.ifftshift: lambda x, /, axes=None: spectral.ifftshift(x, axes),
}  # fmt: skip
TABLES.append(FUNCTIONS)
