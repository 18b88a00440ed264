"""Fourier transforms (``pb.spectral``), along one axis or several.

``n`` is the length of the transform: a longer axis is truncated, a shorter one is padded with zeros.  ``norm`` says
which transform has the factor 1/n: the inverse (``"backward"``, the default), the forward one (``"forward"``), or both
its square root (``"ortho"``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Acts, Sample, Shape
from pullback.core.calculus import linear
from pullback.core.composition import check_numbers, rename_errors
from pullback.core.op import op
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers
from pullback.numerics.axis_arguments import resolve_axes
from pullback.settings import is_enabled

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Axis, TensorLike, Value

__all__ = [
    "fft", "fft2", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

# The adjoint of a transform is the inverse one with the same factor.
SAME_FACTOR: dict[Any, Any] = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def resolve_length(
    name: str, shape: Shape, n: int | None, axis: Axis, given: Callable[[int], int] = int
) -> tuple[int, int]:
    """Return the axis, counted from the front, and the length of the transform, checked."""
    if not shape:
        raise ShapeError(f"{name}: a scalar has no axis to transform along.")
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ArgumentError(f"{name}: axis must be an integer, got {axis!r}.")
    (axis,) = resolve_axes(len(shape), axis, name)
    if n is None:
        n = given(shape[axis])
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
        raise ArgumentError(f"{name}: the length n must be a positive integer, got {n!r} for shape {shape}.")
    return axis, int(n)


class Transform(Acts):
    """How a transform along one axis acts.

    ``out`` gives the length of the result for the length ``n`` of the transform, ``given`` the default of ``n`` for the
    length of the input.  With ``bins`` the input may be complex.
    """

    def __init__(self, out: Callable[[int], int] = int, given: Callable[[int], int] = int, bins: bool = True) -> None:
        self.out, self.given, self.bins = out, given, bins

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        (x,) = shapes
        axis, n = resolve_length(name, x, params["n"], params["axis"], self.given)
        check_norm(name, params["norm"])
        return (*x[:axis], self.out(n), *x[axis + 1 :])

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        (x,) = args
        axis, _ = resolve_length(op.name, x.shape[1:], params["n"], params["axis"], self.given)
        return op.call([x], {**params, "axis": axis + 1})

    def samples(self) -> list[Sample]:
        samples: list[tuple[Shape, dict[str, Any]]] = [
            ((4,), {}), ((5,), {}), ((2, 3), {"n": 5}), ((4, 2), {"n": 3, "axis": 0}), ((0, 3), {}),
            ((2, 4), {"norm": "ortho"}), ((2, 3), {"n": 4, "norm": "forward"}),
            ((2, 3, 2), {"axis": -2, "norm": "backward"}),
        ]  # fmt: skip
        numbers = [np.exp(np.arange(1.0, 1 + prod(x)) ** 2 * 1j).reshape(x) for x, _ in samples if self.bins]
        return [
            *(((x,), params) for x, params in samples),
            *(((z,), params) for z, (_, params) in zip(numbers, samples, strict=False)),
        ]


def check_norm(name: str, norm: str | None) -> Any:
    if norm not in SAME_FACTOR:
        raise ArgumentError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")
    return norm


def resize_axis(x: Value, axis: int, n: int) -> Any:
    """Return ``x`` cut or padded with zeros to the length ``n`` along an axis."""
    have = x.shape[axis]
    if n == have:
        return x
    axis %= x.ndim
    if n < have:
        return x[(slice(None),) * axis + (slice(n),)]
    return np.pad(x, [(0, n - have if i == axis else 0) for i in range(x.ndim)])


def weigh_bins(x: Value, n: int, axis: int, inner: float) -> Any:
    """Return the bins of a real transform of length ``n``, times ``inner`` where a bin is its mirror image too."""
    dtype: np.dtype[Any] = np.dtype(x.dtype.char.lower())
    weights = np.full(x.shape[axis], inner, dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return x * np.reshape(weights, (-1,) + (1,) * (x.ndim - axis % x.ndim - 1))


def refuse_complex(name: str, transform: Callable[..., Any]) -> Any:
    def run(x: Array, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        if x.dtype.kind == "c":
            raise ArgumentError(f"{name}: the input must be real numbers, got dtype {x.dtype}. Use fft, or pb.real(x).")
        return transform(x, n, axis, norm)

    return run


# ---- single precision

ONE = np.float32(1)
LOOPS: Any = getattr(getattr(np.fft, "_pocketfft", None), "pfu", None)  # NumPy's transforms without their factors
HAS_SINGLE = "Ff->F" in getattr(getattr(LOOPS, "fft", None), "types", ())
SINGLE: dict[str, tuple[str, str, Callable[[int], tuple[Any, int]]]] = {
    # the dtypes of inputs and results, and by the length of a transform its loop and the length of the result
    "fft": ("fF", "F", lambda n: (LOOPS.fft, n)),
    "ifft": ("fF", "F", lambda n: (LOOPS.ifft, n)),
    "rfft": ("f", "F", lambda n: (LOOPS.rfft_n_odd if n % 2 else LOOPS.rfft_n_even, n // 2 + 1)),
    "irfft": ("fF", "f", lambda n: (LOOPS.irfft, n)),
}


def transform_single(name: str) -> Any:
    """Return a transform of NumPy that computes with float32 where the input has it.

    NumPy gives a factor of 1 to its loops as a Python number, whereupon they convert every row to float64 and back:
    twice to eight times the time.
    """
    by_numpy, given, made, find_loop = getattr(np.fft, name), *SINGLE[name]
    factor_1 = ("forward",) if name.startswith("i") else (None, "backward")

    def run(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        if not HAS_SINGLE or not _is_single(x, n, axis, given) or norm not in factor_1:
            return by_numpy(x, n, axis, norm)
        axis %= x.ndim
        if n is None:
            n = 2 * (x.shape[axis] - 1) if name == "irfft" else x.shape[axis]
        if n < 1 or not is_enabled("eager kernels"):
            return by_numpy(x, n, axis, norm)
        loop, length = find_loop(n)
        z = np.empty((*x.shape[:axis], length, *x.shape[axis + 1 :]), made)
        return loop(x if name == "rfft" else x.astype("F", copy=False), ONE, axes=[(axis,), (), (axis,)], out=z)

    return run


def _is_single(x: Any, n: object, axis: object, dtypes: str) -> bool:
    """Return whether these are usual arguments of a transform, and the array has one of the dtypes."""
    if type(x) is not np.ndarray or x.dtype.char not in dtypes or not x.size:
        return False
    return type(axis) is int and -x.ndim <= axis < x.ndim and (n is None or type(n) is int)


run_fft, run_ifft, run_rfft, run_irfft = map(transform_single, ("fft", "ifft", "rfft", "irfft"))


# ---- along one axis


@op(
    np.fft.fft,
    acts=Transform(),
    d=linear(lambda g, x_shape, axis, norm: resize_axis(run_fft(g, None, axis, norm), axis, x_shape[axis])),
    run=run_fft,
)
def fft(x: TensorLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Any:
    """Return the discrete Fourier transform.

    x: an array.
    n: the length of the transformed axis, to which it is cut or filled up with zeros.
    axis: the axis that is transformed.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.fft(np.array([1.0, 0.0, 0.0, 0.0]))
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """


@op(
    np.fft.ifft,
    acts=Transform(),
    d=linear(lambda g, x_shape, axis, norm: resize_axis(run_ifft(g, None, axis, norm), axis, x_shape[axis])),
    run=run_ifft,
)
def ifft(x: TensorLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Any:
    """Return the inverse of ``fft``.

    x: an array.
    n: the length of the transformed axis, to which it is cut or filled up with zeros.
    axis: the axis that is transformed.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.ifft(np.array([1.0, 1.0, 1.0, 1.0]))
    array([1.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])
    """


def _pull_rfft(g: Value, x_shape: Shape, n: int | None, axis: int, norm: str | None) -> Any:
    n = x_shape[axis] if n is None else n
    z = run_irfft(weigh_bins(np.conjugate(g), n, axis, 0.5), n, axis, SAME_FACTOR[norm])
    return resize_axis(z, axis, x_shape[axis])


@op(
    np.fft.rfft,
    acts=Transform(lambda n: n // 2 + 1, bins=False),
    d=linear(_pull_rfft),
    run=refuse_complex("rfft", run_rfft),
)
def rfft(x: TensorLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Any:
    """Return the Fourier transform of real numbers at non-negative frequencies; the others are its conjugates.

    x: an array.
    n: the length of the transformed axis, to which it is cut or filled up with zeros.
    axis: the axis that is transformed.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.rfft(np.array([1.0, 0.0, 0.0, 0.0]))
    array([1.+0.j, 1.+0.j, 1.+0.j])
    """


def _pull_irfft(g: Value, x: Value, axis: int, norm: str | None) -> Any:
    n = g.shape[axis]
    d = resize_axis(weigh_bins(run_rfft(g, n, axis, SAME_FACTOR[norm]), n, axis, 2.0), axis, x.shape[axis])
    return d if x.dtype.kind == "c" else np.real(d)


@op(
    np.fft.irfft,
    acts=Transform(given=lambda bins: 2 * (bins - 1)),
    d=linear(_pull_irfft),
    run=run_irfft,
)
def irfft(x: TensorLike, /, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Any:
    """Return the inverse of ``rfft``; give ``n`` if its length is odd.

    x: an array.
    n: the length of the transformed axis, to which it is cut or filled up with zeros.
    axis: the axis that is transformed.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.irfft(np.array([1.0, 1.0, 1.0]))
    array([1., 0., 0., 0.])
    """


def hfft(x: TensorLike, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Any:
    """Return the real Fourier transform of a Hermitian-symmetric signal, of which the first half is given.

    x: an array.
    n: the length of the transformed axis, to which it is cut or filled up with zeros.
    axis: the axis that is transformed.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.hfft(np.array([1.0, 0.0, 0.0]))
    array([1., 1., 1., 1.])
    """
    x = check_numbers("hfft", "x", x)
    _, n = resolve_length("hfft", x.shape, n, axis, lambda bins: 2 * (bins - 1))
    return irfft(np.conjugate(x), n, axis, SAME_FACTOR[check_norm("hfft", norm)])


@rename_errors("ihfft")
def ihfft(x: TensorLike, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Any:
    """Return the inverse of ``hfft``.

    x: an array.
    n: the length of the transformed axis, to which it is cut or filled up with zeros.
    axis: the axis that is transformed.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.ihfft(np.array([1.0, 1.0, 1.0, 1.0]))
    array([1.-0.j, 0.-0.j, 0.-0.j])
    """
    x = check_numbers("ihfft", "x", x)
    _, n = resolve_length("ihfft", x.shape, n, axis)
    return np.conjugate(rfft(x, n, axis, SAME_FACTOR[check_norm("ihfft", norm)]))


# ---- along several


def _plan_axes(name: str, x: Any, s: Any, axes: Any, given: Callable[[int], int] = int) -> list[tuple[int, int]]:
    """Return pairs of an axis and its length; ``given`` is the default length of the last one."""
    shape = x.shape
    for argument, given_one in (("s", s), ("axes", axes)):
        if given_one is not None and not isinstance(given_one, list | tuple | range | np.ndarray):
            raise ArgumentError(f"{name}: {argument} must be a list of integers, got {given_one!r}.")
    if axes is None:
        axes = range(-len(shape), 0) if s is None else range(-len(s), 0)
    axes = list(axes)
    lengths: Sequence[Any] = [None] * len(axes) if s is None else s
    if len(lengths) != len(axes):
        raise ArgumentError(
            f"{name}: s has {len(lengths)} lengths, but there are {len(axes)} axes: {s!r} and {axes!r}."
        )
    if not axes:
        raise ArgumentError(f"{name}: no axis to transform along, for shape {shape}.")
    resolve_axes(len(shape), axes, name)
    kinds = [int] * (len(axes) - 1) + [given]
    return [resolve_length(name, shape, n, a, kind) for n, a, kind in zip(lengths, axes, kinds, strict=True)]


def fftn(x: TensorLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Any:
    """Return ``fft`` along several axes, all by default; ``s`` has the length of the transform along each.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.fftn(np.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    x = check_numbers("fftn", "x", x)
    for axis, n in reversed(_plan_axes("fftn", x, s, axes)):
        x = fft(x, n, axis, norm)
    return x


def ifftn(x: TensorLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Any:
    """Return the inverse of ``fftn``.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.ifftn(np.ones((2, 2)))
    array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    x = check_numbers("ifftn", "x", x)
    for axis, n in reversed(_plan_axes("ifftn", x, s, axes)):
        x = ifft(x, n, axis, norm)
    return x


@rename_errors("rfftn")
def rfftn(x: TensorLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Any:
    """Return ``rfft`` along the last of the axes, ``fft`` along the others.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.rfftn(np.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    x = check_numbers("rfftn", "x", x)
    *others, (last, n) = _plan_axes("rfftn", x, s, axes)
    x = rfft(x, n, last, norm)
    for axis, length_of_it in reversed(others):
        x = fft(x, length_of_it, axis, norm)
    return x


def irfftn(x: TensorLike, s: Sequence[int] | None = None, axes: Axis = None, norm: str | None = None) -> Any:
    """Return the inverse of ``rfftn``.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.irfftn(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    x = check_numbers("irfftn", "x", x)
    *others, (last, n) = _plan_axes("irfftn", x, s, axes, lambda bins: 2 * (bins - 1))
    for axis, length_of_it in others:
        x = ifft(x, length_of_it, axis, norm)
    return irfft(x, n, last, norm)


def check_axes(name: str, x: TensorLike, axes: Axis) -> Any:
    """Return ``x`` as numbers, checked to have the given axes, each of them once."""
    x = check_numbers(name, "x", x)
    if axes is not None and not isinstance(axes, str):
        resolve_axes(x.ndim, axes, name)
    return x


def fft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = (-2, -1), norm: str | None = None
) -> Any:
    """Return ``fftn`` along the last two axes.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.fft2(np.ones((1, 2, 2))).real
    array([[[4., 0.],
            [0., 0.]]])
    """
    return fftn(check_axes("fft2", x, axes), s, axes, norm)


def ifft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = (-2, -1), norm: str | None = None
) -> Any:
    """Return ``ifftn`` along the last two axes.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.ifft2(np.ones((1, 2, 2))).real
    array([[[1., 0.],
            [0., 0.]]])
    """
    return ifftn(check_axes("ifft2", x, axes), s, axes, norm)


def rfft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = (-2, -1), norm: str | None = None
) -> Any:
    """Return ``rfftn`` along the last two axes.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.rfft2(np.ones((1, 2, 2))).real
    array([[[4., 0.],
            [0., 0.]]])
    """
    return rfftn(check_axes("rfft2", x, axes), s, axes, norm)


def irfft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: int | Sequence[int] = (-2, -1), norm: str | None = None
) -> Any:
    """Return ``irfftn`` along the last two axes.

    x: an array.
    s: the length of each of these axes, to which it is cut or filled up with zeros.
    axes: the axes that are transformed; the last ones without it.
    norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as in NumPy.

    >>> pb.spectral.irfft2(np.array([[[4.0, 0.0], [0.0, 0.0]]]))
    array([[[1., 1.],
            [1., 1.]]])
    """
    return irfftn(check_axes("irfft2", x, axes), s, axes, norm)


# ---- order


def fftshift(x: TensorLike, axes: Axis = None) -> Any:
    """Return ``x`` with the zero frequency moved to the middle of the axes.

    x: an array.
    axes: the axes that are shifted; all of them without it.

    >>> pb.spectral.fftshift(np.array([0.0, 1.0, 2.0, -2.0, -1.0]))
    array([-2., -1.,  0.,  1.,  2.])
    """
    x = check_numbers("fftshift", "x", x)
    where = resolve_axes(x.ndim, axes, "fftshift")
    return np.roll(x, [x.shape[i] // 2 for i in where], where)


def ifftshift(x: TensorLike, axes: Axis = None) -> Any:
    """Return the inverse of ``fftshift``.

    x: an array.
    axes: the axes that are shifted; all of them without it.

    >>> pb.spectral.ifftshift(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
    array([ 0.,  1.,  2., -2., -1.])
    """
    x = check_numbers("ifftshift", "x", x)
    where = resolve_axes(x.ndim, axes, "ifftshift")
    return np.roll(x, [-(x.shape[i] // 2) for i in where], where)


install_answers("pb.spectral")
