"""Windows, frames and the short-time Fourier transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

X = np.random.default_rng(3).normal(size=(2, 11))


@pytest.mark.parametrize("name", ["hann", "hamming"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_hann_and_hamming_windows(name: str, n: int) -> None:
    """Of odd length NumPy's symmetric one, of even length a period of the one that is one longer."""
    window = getattr(pb.signal, f"{name}_window")
    want = getattr(np, name.replace("hann", "hanning"))(n if n % 2 else n + 1)[:n]
    assert isinstance(window(n), pb.Tensor)
    assert window(n).dtype == np.float32
    np.testing.assert_allclose(window(n).numpy(), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(window(n, "float64").numpy(), want, rtol=1e-14, atol=1e-15)


def framed(x: Any, length: int, step: int, pad_end: bool = False, pad_value: float = 0) -> Any:
    """As TensorFlow.js does it, frame by frame."""
    start, out = 0, []
    while start + length <= x.size:
        out.append(x[start : start + length])
        start += step
    while pad_end and start < x.size:
        part = x[start : start + length]
        out.append(np.concatenate([part, np.full(length - len(part), pad_value)]))
        start += step
    return np.reshape(out, (-1, length))


@pytest.mark.parametrize("pad", [(), (True,), (True, 7.0)], ids=str)
@pytest.mark.parametrize("step", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 3, 4, 12])
def test_signal_frames(length: int, step: int, pad: Any) -> None:
    got = pb.signal.frame(X, length, step, *pad)
    want = np.stack([framed(x, length, step, *pad) for x in X])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(pb.signal.frame(pb.tensor(X), length, step, *pad).numpy(), want)
    if want.size:
        g = pb.grad(lambda x: np.sum(pb.signal.frame(x, length, step, *pad)))(X)
        count = framed(np.arange(11), length, step, bool(pad), -1)
        np.testing.assert_array_equal(g[0], np.bincount(count[count >= 0].astype(int), minlength=11))


@pytest.mark.parametrize("length", [None, 4, 30])
@pytest.mark.parametrize("step", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_overlap_add(count: int, step: int, length: Any) -> None:
    x = np.random.default_rng(count).normal(size=(2, count, 3))
    want = np.zeros((2, max(count - 1, 0) * step + 3))
    for i in range(count):
        want[:, i * step : i * step + 3] += x[:, i]
    if length is not None:
        want = np.pad(want, [(0, 0), (0, 30)])[:, :length]
    np.testing.assert_allclose(pb.signal.overlap_and_add(x, step, length), want, atol=1e-14)


def test_stft() -> None:
    window = 0.5 - 0.5 * np.cos(np.arange(6) * np.pi / 3)
    want = np.fft.rfft(np.stack([X[:, i : i + 6] for i in (0, 2, 4)], 1) * window, 8)
    got = pb.signal.stft(X, 6, 2)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    for wider in (
        pb.signal.stft(pb.tensor(X), 6, 2, 8),
        pb.signal.stft(pb.tensor(X), 6, 2, window_fn=lambda n: window),
    ):
        assert isinstance(wider, pb.Tensor)
        np.testing.assert_allclose(wider.numpy(), want, rtol=1e-12, atol=1e-14)
    plain = pb.signal.stft(X, 6, 2, 8, None)
    np.testing.assert_allclose(plain[:, 0], np.fft.rfft(X[:, :6], 8))
    narrow = pb.signal.stft(pb.tensor(X.astype(np.float32)), 6, 2, window_fn=pb.signal.hamming_window)
    assert narrow.dtype == np.complex64


def test_stft_gradient() -> None:
    size = lambda x, h=0.0, t=0.0: np.sum(np.abs(pb.signal.stft(x + h * t, 6, 2)) ** 3)
    t, h = np.cos(np.arange(22.0)).reshape(X.shape), 1e-6
    np.testing.assert_allclose(np.sum(pb.grad(size)(X) * t), (size(X, h, t) - size(X, -h, t)) / (2 * h), rtol=1e-6)
    w = pb.grad(lambda w: np.sum(np.abs(pb.signal.stft(X, 6, 2, window_fn=lambda n: w)) ** 2))(np.ones(6))
    energy = np.sum(np.abs(pb.signal.stft(X, 6, 2, window_fn=None)) ** 2)
    np.testing.assert_allclose(np.sum(w), 2 * energy)  # of a square, at 1


REFUSED: dict[str, Any] = {
    "length": (lambda: pb.signal.frame(X, 0, 1), ArgumentError, "frame_length must be a positive integer, got 0"),
    "step": (lambda: pb.signal.frame(X, 2, 1.5), ArgumentError, "frame_step must be a positive integer, got 1.5"),
    "scalar": (lambda: pb.signal.frame(1.0, 2, 1), ShapeError, "frame: a scalar has no axis"),
    "window": (lambda: pb.signal.hann_window(-1), ArgumentError, "window_length must be a positive integer, got -1"),
    "dtype": (lambda: pb.signal.hamming_window(3, int), ArgumentError, "hamming_window: dtype must be a float"),
    "stft": (lambda: pb.signal.stft(X, 4, 2, 0), ArgumentError, "stft: fft_length must be a positive integer, got 0"),
    "stft's frames": (lambda: pb.signal.stft(X, 0, 2), ArgumentError, "stft: frame_length must be a positive"),
    "frames": (
        lambda: pb.signal.overlap_and_add(np.ones(3), 2), ShapeError, r"expected shape \(..., frames, frame_length\)",
    ),
    "signal": (lambda: pb.signal.overlap_and_add(X, 1, 0), ArgumentError, "length must be a positive integer, got 0"),
    "frames apart": (lambda: pb.signal.overlap_and_add(X, 0), ArgumentError, "overlap_and_add: frame_step must be"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_signal_bad_input_raises(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
