"""``scipy.signal``: convolution by Fourier transforms, recursive filters as linear systems, spectra."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.names.scipy import FUNCTIONS
from pullback.ops import linalg
from pullback.scipy.arguments import apply_linear, as_float, is_traced, list_functions, load, make_fallback
from pullback.scipy.linalg import toeplitz

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Axis, Function, TensorLike, Value

NAMES = FUNCTIONS["signal"]


__getattr__ = partial(make_fallback, "signal")
__dir__ = partial(list_functions, "signal")


# ---- convolution


def _crop(full: Value, sizes: Sequence[int], others: Sequence[int], mode: str, axes: Sequence[int]) -> Any:
    """Return the part of a full convolution that a mode keeps along the axes."""
    if mode == "full":
        return full
    if mode not in ("same", "valid"):
        raise ArgumentError(f"scipy.signal: mode must be 'full', 'same' or 'valid', got {mode!r}.")
    cut = [slice(None)] * full.ndim
    for axis, n, m in zip(axes, sizes, others, strict=True):
        size = n if mode == "same" else n - m + 1
        start = (n + m - 1 - size) // 2
        cut[axis] = slice(start, start + size)
    return full[tuple(cut)]


def _swap_valid(a: Value, b: Value, mode: str, axes: Sequence[int]) -> tuple[Any, Any]:
    """Return both with the larger one first, which SciPy allows where only the valid part is kept."""
    if mode != "valid":
        return a, b
    if all(a.shape[i] >= b.shape[i] for i in axes):
        return a, b
    if all(b.shape[i] >= a.shape[i] for i in axes):
        return b, a
    raise ShapeError(f"scipy.signal: for mode='valid' one must be as long along each axis; got {a.shape}, {b.shape}.")


def fftconvolve(in1: TensorLike, in2: TensorLike, mode: str = "full", axes: Axis = None) -> Any:
    """Return the convolution over all axes, or those given.

    >>> fftconvolve([1.0, 2.0], [1.0, 1.0]).round(6)
    array([1., 3., 2.])
    """
    a, b = as_float(in1), as_float(in2)
    if a.ndim != b.ndim:
        raise ShapeError(f"scipy.signal.fftconvolve: got {a.ndim} and {b.ndim} axes; give both the same number.")
    if not a.ndim:
        return a * b
    axes = [*range(a.ndim)] if axes is None else [int(i) % a.ndim for i in np.atleast_1d(axes)]
    a, b = _swap_valid(a, b, mode, axes)
    sizes, others = [a.shape[i] for i in axes], [b.shape[i] for i in axes]
    lengths = [n + m - 1 for n, m in zip(sizes, others, strict=True)]
    if "c" in (a.dtype.kind, b.dtype.kind):
        full = np.fft.ifftn(np.fft.fftn(a, lengths, axes) * np.fft.fftn(b, lengths, axes), lengths, axes)
    else:
        full = np.fft.irfftn(np.fft.rfftn(a, lengths, axes) * np.fft.rfftn(b, lengths, axes), lengths, axes)
    return _crop(full, sizes, others, mode, axes)


def convolve(in1: TensorLike, in2: TensorLike, mode: str = "full", method: str = "auto") -> Any:
    """Return the convolution of two arrays of any number of axes."""
    return fftconvolve(in1, in2, mode)


def oaconvolve(in1: TensorLike, in2: TensorLike, mode: str = "full", axes: Axis = None) -> Any:
    """Return the convolution, as ``fftconvolve`` does."""
    return fftconvolve(in1, in2, mode, axes)


def _reverse(x: Value) -> Any:
    return np.flip(np.conj(x) if x.dtype.kind == "c" else x)


def correlate(in1: TensorLike, in2: TensorLike, mode: str = "full", method: str = "auto") -> Any:
    """Return the correlation of two arrays of any number of axes."""
    a, b = as_float(in1), as_float(in2)
    if mode == "valid" and any(n < m for n, m in zip(a.shape, b.shape, strict=True)):
        return _reverse(convolve(b, _reverse(a), mode))
    return convolve(a, _reverse(b), mode)


_BOUNDARIES: dict[str, Any] = {"wrap": "wrap", "symm": "symmetric"}


def convolve2d(
    in1: TensorLike, in2: TensorLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Any:
    """Return the convolution of two matrices, with ``boundary`` for what is outside the first."""
    a, b = as_float(in1), as_float(in2)
    if boundary == "fill" and fillvalue == 0:
        return fftconvolve(a, b, mode)
    pads = [(m - 1, m - 1) for m in b.shape]
    if boundary == "fill":
        padded = np.pad(a, pads, constant_values=fillvalue)
    else:
        padded = np.pad(a, pads, mode=_BOUNDARIES[boundary])
    full = fftconvolve(padded, b, "valid")
    return _crop(full, a.shape, b.shape, mode, range(2))


def correlate2d(
    in1: TensorLike, in2: TensorLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Any:
    """Return the correlation of two matrices, with ``boundary`` for what is outside the first."""
    a, b = as_float(in1), as_float(in2)
    if boundary == "fill" and fillvalue == 0:
        return correlate(a, b, mode)
    if mode == "same":  # the middle is another one if the second has an even length
        full = convolve2d(a, _reverse(b), "full", boundary, fillvalue)
        start = [m // 2 for m in b.shape]
        return full[start[0] : start[0] + a.shape[0], start[1] : start[1] + a.shape[1]]
    return convolve2d(a, _reverse(b), mode, boundary, fillvalue)


# ---- filters


def lfilter(b: TensorLike, a: TensorLike, x: TensorLike, axis: int = -1, zi: TensorLike | None = None) -> Any:
    """Return the data filtered by a rational transfer function: the solution of a triangular Toeplitz system.

    >>> lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0])
    array([1.  , 0.5 , 0.25])
    """
    b, a, x = (np.atleast_1d(as_float(v)) for v in (b, a, x))
    b, a = b / a[0], a / a[0]
    n, order = x.shape[axis], max(b.shape[0], a.shape[0]) - 1
    b, a = (np.pad(v, (0, order + 1 - v.shape[0])) for v in (b, a))
    rows = np.moveaxis(x, axis, 0)
    if n > WHOLE and order:
        return _filter_in_blocks(b, a, rows, axis, zi, _find_state_shape(x, axis, order))
    if n > WHOLE and zi is None:
        return b[0] * x
    flat = np.reshape(rows, (n, -1))
    y = np.matmul(_make_lower_toeplitz(b, n), flat)
    if zi is not None:
        start = np.reshape(
            np.moveaxis(np.broadcast_to(as_float(zi), _find_state_shape(x, axis, order)), axis, 0), (order, -1)
        )
        y = y + (np.pad(start, ((0, n - order), (0, 0))) if n >= order else start[:n])
    if order and not _is_constant_one(a):
        y = linalg.triangular_solve(_make_lower_toeplitz(a, n), y)
    filtered = np.moveaxis(np.reshape(y, rows.shape), 0, axis)
    if zi is None:
        return filtered
    end = _find_last_state(b, a, flat, y, start)
    return filtered, np.moveaxis(np.reshape(end, (order, *rows.shape[1:])), 0, axis)


WHOLE, BLOCK = 512, 64  # the matrix of a filter has the square of so many elements


def _filter_in_blocks(b: Value, a: Value, rows: Value, axis: int, zi: TensorLike | None, shape: tuple[int, ...]) -> Any:
    """Return long data filtered block by block, each from the state in which the one before left the filter."""
    state = np.moveaxis(np.zeros(shape) if zi is None else np.broadcast_to(as_float(zi), shape), axis, 0)
    parts: list[Any] = []
    for start in range(0, rows.shape[0], BLOCK):
        part, state = lfilter(b, a, rows[start : start + BLOCK], 0, state)
        parts.append(part)
    filtered = np.moveaxis(np.concatenate(parts), 0, axis)
    return filtered if zi is None else (filtered, np.moveaxis(state, 0, axis))


def _find_state_shape(x: Value, axis: int, order: int) -> tuple[int, ...]:
    shape = list(x.shape)
    shape[axis] = order
    return tuple(shape)


def _is_constant_one(a: Value) -> bool:
    return not is_traced(a) and not np.any(np.asarray(a)[1:])


def _make_lower_toeplitz(c: Value, n: int) -> Any:
    column = np.pad(c, (0, n - c.shape[0])) if c.shape[0] < n else c[:n]
    return toeplitz(column, np.zeros(n))


def _find_last_state(b: Value, a: Value, x: Value, y: Value, start: Value) -> Any:
    """Return the state of the filter after the data, in transposed direct form."""
    order, n = b.shape[0] - 1, x.shape[0]
    states = []
    for m in range(order):
        state = start[m + n] if m + n < order else np.zeros(x.shape[1])
        for j in range(m + 1, order + 1):
            at = n - j + m
            if at >= 0:
                back: Any = a[j] * y[at]
                ahead: Any = b[j] * x[at]
                state = state + ahead - back
        states.append(state)
    return np.stack(states) if states else np.zeros((0, x.shape[1]))


def lfilter_zi(b: TensorLike, a: TensorLike) -> Any:
    """Return the state of a filter whose input has been 1 forever."""
    b, a = np.atleast_1d(as_float(b)), np.atleast_1d(as_float(a))
    b, a = b / a[0], a / a[0]
    order = max(b.shape[0], a.shape[0]) - 1
    b, a = (np.pad(v, (0, order + 1 - v.shape[0])) for v in (b, a))
    companion = np.concatenate([np.expand_dims(-a[1:], 0), np.eye(order - 1, order)])
    return linalg.solve(np.eye(order) - np.transpose(companion), b[1:] - a[1:] * b[0])


def _extend(x: Any, count: int, axis: int, kind: str | None) -> Any:
    """Return the data continued at both ends."""
    if kind is None or count == 0:
        return x
    x = np.moveaxis(x, axis, 0)
    left, right = x[count:0:-1], x[-2 : -(count + 2) : -1]
    if kind == "odd":
        left, right = 2 * x[:1] - left, 2 * x[-1:] - right
    elif kind == "constant":
        left, right = np.broadcast_to(x[:1], left.shape), np.broadcast_to(x[-1:], right.shape)
    elif kind != "even":
        raise ArgumentError(f"scipy.signal.filtfilt: padtype must be 'odd', 'even', 'constant' or None, got {kind!r}.")
    return np.moveaxis(np.concatenate([left, x, right]), 0, axis)


def filtfilt(
    b: TensorLike, a: TensorLike, x: TensorLike, axis: int = -1, padtype: str | None = "odd",
    padlen: int | None = None, method: str = "pad", irlen: int | None = None,
) -> Any:  # fmt: skip
    """Return the data filtered forwards and then backwards."""
    b, a, x = np.atleast_1d(as_float(b)), np.atleast_1d(as_float(a)), as_float(x)
    if method != "pad":
        return make_fallback("signal", "filtfilt")(b, a, x, axis, method=method, irlen=irlen)
    count = 3 * max(a.shape[0], b.shape[0]) if padlen is None else padlen
    count = 0 if padtype is None else count
    if x.shape[axis] <= count:
        raise ShapeError(f"scipy.signal.filtfilt: the data must be longer than padlen, {count}; got {x.shape[axis]}.")
    wide = np.moveaxis(_extend(x, count, axis, padtype), axis, 0)
    zi = np.reshape(lfilter_zi(b, a), (-1,) + (1,) * (x.ndim - 1))
    y, _ = lfilter(b, a, wide, 0, zi * wide[:1])
    y, _ = lfilter(b, a, np.flip(y, 0), 0, zi * y[-1:])
    y = np.flip(y, 0)
    return np.moveaxis(y[count : y.shape[0] - count], 0, axis)


def sosfilt(sos: TensorLike, x: TensorLike, axis: int = -1, zi: TensorLike | None = None) -> Any:
    """Return the data filtered by sections of order 2, one after the other."""
    sos, x = as_float(sos), as_float(x)
    if zi is not None:
        return make_fallback("signal", "sosfilt")(sos, x, axis, zi)
    for k in range(sos.shape[0]):
        x = lfilter(sos[k, :3], sos[k, 3:], x, axis)
    return x


def sosfiltfilt(
    sos: TensorLike, x: TensorLike, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Any:
    """Return the data filtered forwards and backwards by constant sections."""
    x = as_float(x)
    return apply_linear(lambda e: load("signal").sosfiltfilt(np.asarray(sos), e, 0, padtype, padlen), x, axis)


def savgol_filter(
    x: TensorLike, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1,
    mode: str = "interp", cval: float = 0.0,
) -> Any:  # fmt: skip
    """Return the data smoothed by a Savitzky-Golay filter: least-squares polynomials in a sliding window."""
    x = as_float(x)

    def smooth(e: Value, cval: float = 0.0) -> Any:
        return load("signal").savgol_filter(e, window_length, polyorder, deriv, delta, 0, mode, cval)

    smoothed = apply_linear(smooth, x, axis)
    if mode == "constant" and cval:
        border = smooth(np.zeros(x.shape[axis]), cval)
        smoothed = smoothed + np.reshape(border, [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return smoothed


def detrend(
    data: TensorLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0, overwrite_data: bool = False
) -> Any:
    """Return the data minus their least-squares line, or minus their mean."""
    x = as_float(data)
    return apply_linear(lambda e: load("signal").detrend(e, 0, type, bp), x, axis)


def hilbert(x: TensorLike, N: int | None = None, axis: int = -1) -> Any:
    """Return the analytic signal."""
    x = as_float(x)
    n = x.shape[axis] if N is None else N
    h = np.zeros(n)
    h[0] = 1
    h[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        h[n // 2] = 1
    shape = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    return np.fft.ifft(np.fft.fft(x, n, axis=axis) * np.reshape(h, shape), axis=axis)


def resample(
    x: TensorLike,
    num: int,
    t: TensorLike | None = None,
    axis: int = 0,
    window: str | tuple[Any, ...] | TensorLike | None = None,
    domain: str = "time",
) -> Any:
    """Return the data at ``num`` places, by their Fourier series."""
    x = as_float(x)
    if t is not None or domain != "time":
        return make_fallback("signal", "resample")(x, num, t, axis, window, domain)
    return apply_linear(lambda e: load("signal").resample(e, num, axis=0, window=window), x, axis)


def resample_poly(x: TensorLike, up: int, down: int, axis: int = 0, **options: object) -> Any:
    """Return the data at a rate of ``up / down``, by a filter."""
    x = as_float(x)
    if options.get("padtype") in ("maximum", "median", "minimum") or options.get("cval"):  # not linear
        return make_fallback("signal", "resample_poly")(x, up, down, axis, **options)
    return apply_linear(lambda e: load("signal").resample_poly(e, up, down, axis=0, **options), x, axis)


def upfirdn(h: TensorLike, x: TensorLike, up: int = 1, down: int = 1, axis: int = -1, **options: object) -> Any:
    """Return the data with zeros between them, filtered, and every ``down``-th of that; differentiable by ``x``."""
    if is_traced(h) or options.get("cval"):
        return make_fallback("signal", "upfirdn")(h, x, up, down, axis, **options)
    x = as_float(x)
    return apply_linear(lambda e: load("signal").upfirdn(np.asarray(h), e, up, down, axis=0, **options), x, axis)


# ---- spectra


def freqz_zpk(
    z: TensorLike, p: TensorLike, k: TensorLike, worN: Any = 512, whole: bool = False,
    fs: float = 2 * np.pi,
) -> tuple[Any, Any]:  # fmt: skip
    """Return frequencies and the response at them of a filter with given zeros, poles and gain."""
    z, p = (np.atleast_1d(as_float(roots)) for roots in (z, p))
    has_frequencies = np.ndim(worN) > 0
    w = (
        as_float(worN) * (2 * np.pi / fs)
        if has_frequencies
        else np.linspace(0, np.pi * (1 + bool(whole)), int(worN), False)
    )
    at = np.expand_dims(np.exp(1j * w), -1)
    response = as_float(k) * np.prod(at - z, -1) / np.prod(at - p, -1)
    return w * (fs / (2 * np.pi)), response


def periodogram(
    x: TensorLike, fs: float = 1.0, window: str | tuple[Any, ...] | TensorLike = "boxcar", nfft: int | None = None,
    detrend: str | Function | bool = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1,
) -> Any:  # fmt: skip
    """Return frequencies and the power of the data at them."""
    x = as_float(x)
    n = x.shape[axis]
    if nfft is not None and nfft < n:
        x = np.moveaxis(np.moveaxis(x, axis, 0)[:nfft], 0, axis)
        n, nfft = nfft, None
    return welch(x, fs, window, n, 0, nfft, detrend, return_onesided, scaling, axis)


def _find_weights(window: str | tuple[Any, ...] | TensorLike, size: int) -> Any:
    """Return the weights of a segment: those given, or a window of SciPy's by name."""
    if isinstance(window, np.ndarray | list):
        return np.asarray(window, float)
    return np.asarray(load("signal").get_window("hann" if window == "hann_periodic" else window, size), float)


def _count_frequencies(length: int) -> Any:
    """Return how many frequencies of a whole spectrum each one of a one-sided spectrum stands for: 2, at the ends 1."""
    counts = np.full(length // 2 + 1, 2.0)
    counts[0] = 1.0
    if length % 2 == 0:
        counts[-1] = 1.0
    return counts


def welch(
    x: TensorLike, fs: float = 1.0, window: str | tuple[Any, ...] | TensorLike = "hann_periodic",
    nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    detrend: str | Function | bool = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> Any:  # fmt: skip
    """Return frequencies and the power at them, the mean over segments of the data."""
    x = as_float(x)
    if average != "mean" or x.dtype.kind == "c":
        window = "hann" if isinstance(window, str) and window == "hann_periodic" else window
        return make_fallback("signal", "welch")(
            x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
        )
    x = np.moveaxis(x, axis, -1)
    n = x.shape[-1]
    weights = _find_weights(window, min(256 if nperseg is None else int(nperseg), n))
    size = len(weights)
    step = size - (size // 2 if noverlap is None else int(noverlap))
    length = size if nfft is None else int(nfft)
    starts = np.arange(0, n - size + 1, step)
    parts = x[..., starts[:, None] + np.arange(size)]
    if callable(detrend):
        parts = detrend(parts)
    elif detrend:
        parts = apply_linear(lambda e: load("signal").detrend(e, 0, detrend), parts, -1)
    transform = np.fft.rfft if return_onesided else np.fft.fft
    spectrum = transform(parts * weights, length)
    power = np.real(spectrum) ** 2 + np.imag(spectrum) ** 2
    scale = 1 / (fs * np.sum(weights**2)) if scaling == "density" else 1 / np.sum(weights) ** 2
    power = np.mean(power, -2) * scale
    if return_onesided:
        power = power * _count_frequencies(length)
    frequencies = (np.fft.rfftfreq if return_onesided else np.fft.fftfreq)(length, 1 / fs)
    return frequencies, np.moveaxis(power, -1, axis)
