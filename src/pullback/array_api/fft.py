"""Fourier transforms of the Array API: ``xp.fft``."""

# ruff: noqa: I001  # one import
# fmt: off
from pullback.interop.array_api.fourier import (
    fft as fft, fftfreq as fftfreq, fftn as fftn, fftshift as fftshift, hfft as hfft, ifft as ifft, ifftn as ifftn,
    ifftshift as ifftshift, ihfft as ihfft, irfft as irfft, irfftn as irfftn, rfft as rfft, rfftfreq as rfftfreq,
    rfftn as rfftn,
)
# fmt: on


def __dir__() -> list[str]:
    return sorted(name for name in globals() if not name.startswith("_"))
