"""``pb.signal``: window functions, overlapping frames, and the short-time Fourier transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, Shape, moves
from pullback.core.calculus import linear
from pullback.core.composition import check_numbers, rename_errors
from pullback.core.convert import as_dtype, as_number, get_default_dtype
from pullback.core.interpreter import level_of
from pullback.core.op import op
from pullback.core.tape import constant
from pullback.core.tensor import Tensor, concrete
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers
from pullback.numerics.batching import batch_leading_axes

if TYPE_CHECKING:
    from pullback.typing import Array, DType, TensorLike, Value

__all__ = ["frame", "hamming_window", "hann_window", "overlap_and_add", "stft"]


def check_positive(name: str, **numbers: Any) -> None:
    for argument, n in numbers.items():
        if isinstance(n, bool | np.ndarray) or not hasattr(n, "__index__") or n < 1:
            raise ArgumentError(f"{name}: {argument} must be a positive integer, got {n!r}.")


# ---- windows


def _make_cosine_window(name: str, window_length: Any, middle: float, dtype: DType) -> Tensor:
    check_positive(name, window_length=window_length)
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype, name)
    if wanted.kind != "f":
        raise ArgumentError(f"{name}: dtype must be a float, got {wanted}.")
    period = window_length if window_length % 2 == 0 else max(window_length - 1, 1)
    turn = np.arange(window_length) * (2 * np.pi / period) if window_length > 1 else np.full(1, np.pi)
    return constant((middle - (1 - middle) * np.cos(turn)).astype(wanted))


def hann_window(window_length: int, dtype: DType = None) -> Tensor:
    """Return the Hann window; it is periodic if its length is even, and symmetric if it is odd.

    window_length: how many samples it has.
    dtype: the dtype of the result.

    >>> pb.signal.hann_window(5)
    Tensor([0., 0.5, 1., 0.5, 0.], dtype=float32)
    """
    return _make_cosine_window("hann_window", window_length, 0.5, dtype)


def hamming_window(window_length: int, dtype: DType = None) -> Tensor:
    """Return the Hamming window; it is periodic if its length is even, and symmetric if it is odd.

    window_length: how many samples it has.
    dtype: the dtype of the result.

    >>> pb.signal.hamming_window(5)
    Tensor([0.08, 0.54, 1., 0.54, 0.08], dtype=float32)
    """
    return _make_cosine_window("hamming_window", window_length, 0.54, dtype)


# ---- frames


def _cut_frames(x: Array, frame_length: int, frame_step: int) -> Any:
    if x.shape[-1] < frame_length:
        return np.zeros((*x.shape[:-1], 0, frame_length), x.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(x, frame_length, -1)
    return windows[..., ::frame_step, :].copy()


def _infer_frames_shape(x: Shape, frame_length: int, frame_step: int) -> Shape:
    return (*x[:-1], max(0, (x[-1] - frame_length) // frame_step + 1), frame_length)


def _pull_frames(g: Value, x_shape: Shape, frame_step: int) -> Any:
    return overlap_and_add(g, frame_step, x_shape[-1]) if x_shape[-1] else np.zeros(x_shape, g.dtype)


FRAMES: list[Sample] = [
    (((6,),), {"frame_length": 3, "frame_step": 2}),
    (((2, 7),), {"frame_length": 2, "frame_step": 3}),
    (((5,),), {"frame_length": 4, "frame_step": 1}),
    (((0, 5),), {"frame_length": 2, "frame_step": 2}),
    (((2,),), {"frame_length": 3, "frame_step": 2}),
    (((0,),), {"frame_length": 1, "frame_step": 1}),
]


@op(
    _cut_frames,
    acts=moves(_infer_frames_shape, FRAMES, batch_leading_axes),
    d=linear(_pull_frames),
)
def frames(x: TensorLike, /, frame_length: int, frame_step: int) -> Any:
    """Return the whole frames of the last axis.

    >>> frames(np.arange(5.0), 3, 2)
    array([[0., 1., 2.],
           [2., 3., 4.]])
    """


def _sum_frames(x: Array, frame_step: int, length: int | None = None) -> Any:
    """Sum overlapping frames by frame or by offset, whichever needs fewer steps."""
    _infer_sum_shape(x.shape, frame_step, length)
    *batch, count, size = x.shape
    z = np.zeros((*batch, max(count - 1, 0) * frame_step + size), x.dtype)
    turns = -(-size // frame_step)
    if count <= turns:
        for i in range(count):
            z[..., i * frame_step : i * frame_step + size] += x[..., i, :]
    else:
        rows = np.zeros((*batch, count + turns - 1, frame_step), x.dtype)
        for k in range(turns):
            part = x[..., k * frame_step : (k + 1) * frame_step]
            rows[..., k : k + count, : part.shape[-1]] += part
        z = rows.reshape(*batch, (count + turns - 1) * frame_step)[..., : z.shape[-1]]
    if length is None or length == z.shape[-1]:
        return z
    if length < z.shape[-1]:
        return z[..., :length].copy()
    return np.pad(z, [(0, 0)] * len(batch) + [(0, length - z.shape[-1])])


def _infer_sum_shape(x: Shape, frame_step: int, length: int | None = None) -> Shape:
    if len(x) < 2:
        raise ShapeError(f"overlap_and_add: expected shape (..., frames, frame_length), got {x}.")
    check_positive("overlap_and_add", frame_step=frame_step, length=1 if length is None else length)
    return (*x[:-2], max(x[-2] - 1, 0) * frame_step + x[-1] if length is None else length)


def _pull_sum(g: Value, x_shape: Shape, frame_step: int) -> Any:
    count, size = x_shape[-2:]
    missing = max(count - 1, 0) * frame_step + size - g.shape[-1]
    if missing > 0:
        g = np.pad(g, [(0, 0)] * (len(x_shape) - 2) + [(0, missing)])
    return frames(g, size, frame_step)[..., :count, :]


@op(
    _sum_frames,
    acts=moves(
        _infer_sum_shape,
        [
            (((2, 3),), {"frame_step": 2}),
            (((2, 3, 5),), {"frame_step": 2}),
            (((9, 4),), {"frame_step": 2, "length": 30}),
            (((3, 2),), {"frame_step": 3, "length": 5}),
            (((9, 4),), {"frame_step": 1}),
            (((0, 2, 3),), {"frame_step": 2}),
        ],
        batch_leading_axes,
    ),
    d=linear(_pull_sum),
)
def overlap_and_add(x: TensorLike, /, frame_step: int, length: int | None = None) -> Any:
    """Return the signal that is the sum of overlapping frames, ``frame_step`` apart.

    The signal is truncated or padded with zeros to ``length``.

    x: a tensor, an array or a number.
    frame_step: samples from one frame to the next.
    length: how many samples the result has.

    >>> pb.signal.overlap_and_add(np.ones((2, 3)), 2)
    array([1., 1., 2., 1., 1.])
    """


def frame(signal: TensorLike, frame_length: int, frame_step: int, pad_end: bool = False, pad_value: float = 0) -> Any:
    """Return the last axis divided into overlapping frames, which begin ``frame_step`` after each other.

    With ``pad_end`` the last frames are padded with ``pad_value`` beyond the end of the signal.

    signal: samples along the last axis.
    frame_length: samples in a frame.
    frame_step: samples from one frame to the next.
    pad_end: whether the last frame is filled up.
    pad_value: what it is filled with.

    >>> pb.signal.frame(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 3, 2)
    array([[1., 2., 3.],
           [3., 4., 5.]])
    """
    signal = check_numbers("frame", "signal", signal)
    check_positive("frame", frame_length=frame_length, frame_step=frame_step)
    if not signal.shape:
        raise ShapeError("frame: a scalar has no axis to cut into frames.")
    n = signal.shape[-1]
    if pad_end and n:
        over = (n - 1) // frame_step * frame_step + frame_length - n
        if over > 0:
            widths = [(0, 0)] * (signal.ndim - 1) + [(0, over)]
            signal = np.pad(signal, widths, constant_values=as_number("frame", "pad_value", pad_value))
    return frames(signal, frame_length, frame_step)


@rename_errors("stft")
def stft(
    signal: TensorLike, frame_length: int, frame_step: int, fft_length: int | None = None,
    window_fn: Callable[[int], Any] | None = hann_window,
) -> Any:  # fmt: skip
    """Return the short-time Fourier transform: ``rfft`` of each frame, times a window.

    ``fft_length`` is the next power of two from ``frame_length`` on, unless given; ``window_fn`` makes the window from
    its length, ``None`` for none.

    signal: samples along the last axis.
    frame_length: samples in a frame.
    frame_step: samples from one frame to the next.
    fft_length: the length of the transform.
    window_fn: a function of the length of a frame that returns a window.

    >>> pb.signal.stft(np.ones(8), 4, 2).shape
    (3, 3)
    """
    signal = check_numbers("stft", "signal", signal)
    if signal.dtype.kind == "c" or not signal.shape:
        raise ShapeError(
            f"stft: signal must be real numbers along an axis, got {signal.dtype} of shape {signal.shape}."
        )
    if window_fn is not None and not callable(window_fn):
        raise ArgumentError(f"stft: window_fn must be a function of the length, or None, got {window_fn!r}.")
    if fft_length is None:
        check_positive("stft", frame_length=frame_length)
        fft_length = 1 << (int(frame_length) - 1).bit_length()
    check_positive("stft", frame_length=frame_length, frame_step=frame_step, fft_length=fft_length)
    cut = frame(signal, frame_length, frame_step)
    if window_fn is not None:
        own = window_fn in (hann_window, hamming_window) and cut.dtype.kind == "f"
        make: Any = window_fn
        window = check_numbers("stft", "window_fn", make(frame_length, cut.dtype) if own else make(frame_length))
        if window.shape not in ((), (1,), (frame_length,)):
            raise ShapeError(f"stft: window_fn({frame_length}) must have shape ({frame_length},), got {window.shape}.")
        cut = cut * (window if level_of(window) else np.asarray(concrete(window)))
    return np.fft.rfft(cut, fft_length)


install_answers("pb.signal")
