"""Preprocessing layers for audio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import check_counts
from pullback.typing import Array, Value

__all__ = ["MelSpectrogram"]

WINDOWS = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46)}  # a - b cos(x)


@dataclass(eq=False)
class MelSpectrogram(Layer):
    """The mel spectrogram of audio: the strength of each mel band over time, of shape (batch, bands, times).

    - fft_length: how many samples are transformed at a time.
    - sequence_stride: how many samples are between the times.
    - sequence_length: how many samples the window has; ``fft_length`` unless given.
    - window: "hann", "hamming", or None.
    - sampling_rate: how many samples a second has.
    - num_mel_bins: how many bands there are.
    - min_freq, max_freq: the lowest and the highest frequency; half the sampling rate unless given.
    - power_to_db: whether the result is in decibels.
    - top_db: how far below the strongest the weakest may be, in decibels.
    - mag_exp: the power of the magnitudes: 1 for them, 2 for the energy.
    - min_power: the smallest power that has decibels.
    - ref_power: the power that has 0 decibels.

    >>> sound = np.sin(np.arange(2000, dtype=np.float32))[None]
    >>> pb.layers.mel_spectrogram(fft_length=256, sequence_stride=100, num_mel_bins=20)(sound).shape
    (1, 20, 21)
    """

    fft_length: int = 2048
    sequence_stride: int = 512
    sequence_length: int | None = None
    window: str | None = "hann"
    sampling_rate: int = 16000
    num_mel_bins: int = 128
    min_freq: float = 20.0
    max_freq: float | None = None
    power_to_db: bool = True
    top_db: float = 80.0
    mag_exp: float = 2.0
    min_power: float = 1e-10
    ref_power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "fft_length", "sequence_stride", "num_mel_bins")
        if self.sequence_length is not None:
            check_counts(self, "sequence_length")
            if self.sequence_length > self.fft_length:
                raise ArgumentError(
                    f"{self.name}: sequence_length must be at most fft_length, {self.fft_length}, "
                    f"got {self.sequence_length}."
                )
        if self.window is not None and self.window not in WINDOWS:
            raise ArgumentError(f"{self.name}: window must be 'hann', 'hamming' or None, got {self.window!r}.")

    def call(self, x: Value) -> Any:
        x = x if x.dtype.kind == "f" else x.astype(np.float32)
        length, half = x.shape[-1], self.fft_length // 2
        if length <= half:
            raise ShapeError(f"{self.name}: expected more than {half} samples, half of fft_length, got {length}.")
        x = np.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(half, half)], mode="reflect")
        count = 1 + (length + 2 * half - self.fft_length) // self.sequence_stride
        at = np.arange(count)[:, None] * self.sequence_stride + np.arange(self.fft_length)
        window = _make_window(self.window, self.sequence_length or self.fft_length, self.fft_length)
        waves = np.fft.rfft(x[..., at] * window.astype(x.dtype), axis=-1)
        power = (np.square(np.real(waves)) + np.square(np.imag(waves))) ** (self.mag_exp / 2)
        highest = self.max_freq or int(self.sampling_rate / 2)
        bands = _make_bands(self.num_mel_bins, half + 1, self.sampling_rate, self.min_freq, highest)
        y = (power @ bands.astype(power.dtype)).astype(x.dtype)
        if self.power_to_db:
            zero = 10.0 * math.log10(max(abs(self.ref_power), self.min_power))
            y = (10.0 / math.log(10.0)) * np.log(np.maximum(y, self.min_power)) - zero
            y = np.maximum(y, np.max(y) - self.top_db) if y.size else y
        return np.swapaxes(y, -1, -2)


@lru_cache(16)
def _make_window(name: str | None, length: int, size: int) -> Array:
    """Return a window that repeats after its length, in the middle of zeros."""
    window, start = np.zeros(size), (size - length) // 2
    a, b = (1.0, 0.0) if name is None else WINDOWS[name]
    window[start : start + length] = a - b * np.cos(2 * np.pi * np.arange(length) / length)
    return window


@lru_cache(16)
def _make_bands(bands: int, lines: int, sampling_rate: int, lowest: float, highest: float) -> Array:
    """Return the weight of each line of the spectrum but the first, in triangles that are equal on the mel scale."""
    mels = 1127.0 * np.log1p(np.linspace(0.0, sampling_rate / 2, lines)[:, None] / 700.0)
    edges = np.linspace(1127.0 * math.log1p(lowest / 700.0), 1127.0 * math.log1p(highest / 700.0), bands + 2)
    left, top, right = edges[:-2], edges[1:-1], edges[2:]
    weights: Array = np.maximum(0.0, np.minimum((mels - left) / (top - left), (right - mels) / (right - top)))
    weights[0] = 0.0
    return weights
