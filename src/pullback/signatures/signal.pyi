"""The functions of ``pb.signal``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable
from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, DType, TensorLike, TensorOrNested
from typing import Any, overload

@overload
def frame(
    signal: TensorOrNested, frame_length: int, frame_step: int, pad_end: bool = False, pad_value: float = 0
) -> Tensor:
    """Return the last axis divided into overlapping frames, which begin ``frame_step`` after each other."""

@overload
def frame(
    signal: ArrayLike, frame_length: int, frame_step: int, pad_end: bool = False, pad_value: float = 0
) -> Array: ...
def hamming_window(window_length: int, dtype: DType = None) -> Tensor:
    """Return the Hamming window; it is periodic if its length is even, and symmetric if it is odd."""

def hann_window(window_length: int, dtype: DType = None) -> Tensor:
    """Return the Hann window; it is periodic if its length is even, and symmetric if it is odd."""

@overload
def overlap_and_add(x: TensorOrNested, /, frame_step: int, length: int | None = None) -> Tensor:
    """Return the signal that is the sum of overlapping frames, ``frame_step`` apart."""

@overload
def overlap_and_add(x: ArrayLike, /, frame_step: int, length: int | None = None) -> Array: ...
@overload
def stft(
    signal: TensorOrNested,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[[int], Any] | None = ...,
) -> Tensor:
    """Return the short-time Fourier transform: ``rfft`` of each frame, times a window."""

@overload
def stft(
    signal: ArrayLike,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[[int], Any] | None = ...,
) -> Array: ...
