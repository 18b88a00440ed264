"""``scipy.ndimage``: filters as sums of shifted images, interpolation by splines."""

from __future__ import annotations

from functools import partial, wraps
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from pullback.core.tensor import concrete, strip
from pullback.errors import ArgumentError, NoRuleError, ShapeError
from pullback.names.scipy import FUNCTIONS
from pullback.numerics.dtypes import make_dtype
from pullback.scipy.arguments import apply_linear, as_float, is_traced, list_functions, load, make_fallback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pullback.typing import Array, ArrayLike, Axis, DType, Function, Nested, TensorLike, Value

F = TypeVar("F", bound="Callable[..., Any]")
NAMES = FUNCTIONS["ndimage"]
MODES: dict[str, Any] = {  # how NumPy's pad calls them
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


__getattr__ = partial(make_fallback, "ndimage")
__dir__ = partial(list_functions, "ndimage")


def store_output(function: F) -> F:
    """Return the filter with SciPy's ``output``: an array to write the result to, or the dtype of the result."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        result = function(*args, **kwargs)
        output = parameters.bind(*args, **kwargs).arguments.get("output")
        if output is None:
            return result
        if not isinstance(output, np.ndarray):
            return np.astype(result, make_dtype(output))
        if is_traced(result):
            raise NoRuleError(
                f"pb.scipy.ndimage.{function.__name__}: a result that is written to output= would lose its gradient. "
                "Leave output out, and use what the function returns."
            )
        output[...] = concrete(result)
        return output

    return cast("F", call)


def _repeat_per_axis(value: object, count: int) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value] * count


@store_output
def correlate(
    input: TensorLike,
    weights: TensorLike,
    output: Array | DType = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int | Sequence[int] = 0,
) -> Any:
    """Return the image with each pixel a weighted sum of its neighbours."""
    x, w = as_float(input), as_float(weights)
    if w.ndim != x.ndim:
        raise ShapeError(f"scipy.ndimage.correlate: an image of {x.ndim} axes, but weights of {w.ndim}.")
    padded = _pad_image(x, w.shape, mode, cval, origin)
    total: Any = 0.0
    for place in product(*map(range, w.shape)):
        part = padded[tuple(slice(p, p + n) for p, n in zip(place, x.shape, strict=True))]
        total = total + part * w[place]
    return total


def _pad_image(x: Value, shape: tuple[int, ...], mode: str, cval: float, origin: int | Sequence[int]) -> Any:
    """Return an image with a border, so that the window of this shape around each pixel is inside it."""
    if mode not in MODES:
        raise ArgumentError(f"scipy.ndimage: unknown mode {mode!r}, expected one of {', '.join(map(repr, MODES))}.")
    before = [n // 2 + o for n, o in zip(shape, _repeat_per_axis(origin, x.ndim), strict=True)]
    pads = [(b, n - 1 - b) for b, n in zip(before, shape, strict=True)]
    more = {"constant_values": cval} if MODES[mode] == "constant" else {}
    return np.pad(x, pads, mode=MODES[mode], **more)


@store_output
def convolve(
    input: TensorLike,
    weights: TensorLike,
    output: Array | DType = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int | Sequence[int] = 0,
) -> Any:
    """Return ``correlate`` with the weights reversed."""
    w = as_float(weights)
    origins = [-o - (1 if n % 2 == 0 else 0) for o, n in zip(_repeat_per_axis(origin, w.ndim), w.shape, strict=True)]
    return correlate(input, np.flip(w), None, mode, cval, origins)


def _orient_weights(x: Value, w: Value, axis: int) -> tuple[Any, int]:
    axis = axis % x.ndim
    return np.reshape(w, [-1 if i == axis else 1 for i in range(x.ndim)]), axis


@store_output
def correlate1d(
    input: TensorLike, weights: TensorLike, axis: int = -1, output: Array | DType = None, mode: str = "reflect",
    cval: float = 0.0, origin: int = 0,
) -> Any:  # fmt: skip
    """Return ``correlate`` along one axis."""
    x = as_float(input)
    w, axis = _orient_weights(x, as_float(weights), axis)
    return correlate(x, w, None, mode, cval, [origin if i == axis else 0 for i in range(x.ndim)])


@store_output
def convolve1d(
    input: TensorLike, weights: TensorLike, axis: int = -1, output: Array | DType = None, mode: str = "reflect",
    cval: float = 0.0, origin: int = 0,
) -> Any:  # fmt: skip
    """Return ``convolve`` along one axis."""
    x = as_float(input)
    w, axis = _orient_weights(x, as_float(weights), axis)
    return convolve(x, w, None, mode, cval, [origin if i == axis else 0 for i in range(x.ndim)])


# ---- Gaussian and uniform filters


def _make_gauss_weights(sigma: Value, order: int, radius: int) -> Any:
    """Return the weights of a Gauss filter and its derivative, which are differentiable by ``sigma``."""
    x = np.arange(-radius, radius + 1).astype(float)
    width: Any = sigma
    phi = np.exp(-0.5 / (width * width) * x**2)
    phi = phi / np.sum(phi)
    factor: list[Any] = [1.0]  # the polynomial beside the bell, which deriving changes
    for _ in range(order):
        up = [*(k * c for k, c in enumerate(factor) if k), 0.0, 0.0]
        down = [0.0, *(c * (-1 / (width * width)) for c in factor)]
        factor = [a + b for a, b in zip(up, down, strict=True)]
    total: Any = 0.0
    for k, c in enumerate(factor):
        total = total + c * x**k
    return total * phi


@store_output
def gaussian_filter1d(
    input: TensorLike, sigma: TensorLike, axis: int = -1, order: int = 0, output: Array | DType = None,
    mode: str = "reflect", cval: float = 0.0, truncate: float = 4.0, *, radius: int | None = None,
) -> Any:  # fmt: skip
    """Return the image smoothed along one axis; differentiable by ``sigma`` too, with the width of the window fixed."""
    reach = int(truncate * float(np.asarray(strip(as_float(sigma)))) + 0.5) if radius is None else radius
    weights = _make_gauss_weights(as_float(sigma), order, reach)
    return correlate1d(input, np.flip(weights), axis, None, mode, cval)


@store_output
def gaussian_filter(
    input: TensorLike, sigma: TensorLike, order: int | Sequence[int] = 0, output: Array | DType = None,
    mode: str | Sequence[str] = "reflect", cval: float = 0.0, truncate: float = 4.0, *,
    radius: int | Sequence[int] | None = None, axes: Axis = None,
) -> Any:  # fmt: skip
    """Return the image smoothed along all axes.

    >>> gaussian_filter(np.eye(3), 0.5).round(3)[0]
    array([0.809, 0.179, 0.012])
    """
    x = as_float(input)
    axes = [*range(x.ndim)] if axes is None else [int(a) % x.ndim for a in np.atleast_1d(axes)]
    sigmas = list(as_float(sigma)) if np.ndim(as_float(sigma)) else [sigma] * len(axes)
    repeated = [_repeat_per_axis(v, len(axes)) for v in (order, mode, radius)]
    for axis, s, o, m, r in zip(axes, sigmas, *repeated, strict=True):
        if float(np.asarray(strip(as_float(s)))) > 1e-15:
            x = gaussian_filter1d(x, s, axis, o, None, m, cval, truncate, radius=r)
    return x


@store_output
def gaussian_laplace(
    input: TensorLike,
    sigma: TensorLike,
    output: Array | DType = None,
    mode: str = "reflect",
    cval: float = 0.0,
    **options: Any,
) -> Any:
    """Return the sum of the second derivatives of the smoothed image."""
    first, *others = _differentiate_smoothed(input, sigma, 2, mode, cval, options)
    return sum(others, first)


@store_output
def gaussian_gradient_magnitude(
    input: TensorLike,
    sigma: TensorLike,
    output: Array | DType = None,
    mode: str = "reflect",
    cval: float = 0.0,
    **options: Any,
) -> Any:
    """Return the length of the gradient of the smoothed image."""
    first, *others = (d**2 for d in _differentiate_smoothed(input, sigma, 1, mode, cval, options))
    return np.sqrt(sum(others, first))


def _differentiate_smoothed(
    input: TensorLike, sigma: TensorLike, order: int, mode: str, cval: float, options: dict[str, Any]
) -> list[Any]:
    """Return the derivatives of this order of the smoothed image, along each axis."""
    x = as_float(input)
    orders = [[order if i == axis else 0 for i in range(x.ndim)] for axis in range(x.ndim)]
    return [gaussian_filter(x, sigma, each, None, mode, cval, **options) for each in orders]


@store_output
def uniform_filter1d(
    input: TensorLike, size: int, axis: int = -1, output: Array | DType = None, mode: str = "reflect",
    cval: float = 0.0, origin: int = 0,
) -> Any:  # fmt: skip
    """Return the mean of neighbours along one axis."""
    return correlate1d(input, np.full(size, 1 / size), axis, None, mode, cval, origin)


@store_output
def uniform_filter(
    input: TensorLike,
    size: int | Sequence[int] | None = 3,
    output: Array | DType = None,
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    origin: int | Sequence[int] = 0,
) -> Any:
    """Return the mean of neighbours along all axes."""
    x = as_float(input)
    repeated = [_repeat_per_axis(v, x.ndim) for v in (size, mode, origin)]
    for axis, (n, m, o) in enumerate(zip(*repeated, strict=True)):
        x = uniform_filter1d(x, int(n), axis, None, m, cval, o) if n > 1 else x
    return x


@store_output
def laplace(input: TensorLike, output: Array | DType = None, mode: str = "reflect", cval: float = 0.0) -> Any:
    """Return the sum of second differences."""
    x = as_float(input)
    parts = [correlate1d(x, np.array([1.0, -2.0, 1.0]), axis, None, mode, cval) for axis in range(x.ndim)]
    return sum(parts[1:], parts[0])


def _differentiate(x: Value, axis: int, side: Array, mode: str, cval: float) -> Any:
    x = correlate1d(x, np.array([-1.0, 0.0, 1.0]), axis, None, mode, cval)
    for other in range(x.ndim):
        if other != axis % x.ndim:
            x = correlate1d(x, side, other, None, mode, cval)
    return x


@store_output
def sobel(
    input: TensorLike, axis: int = -1, output: Array | DType = None, mode: str = "reflect", cval: float = 0.0
) -> Any:
    """Return Sobel's differences along one axis."""
    return _differentiate(as_float(input), axis, np.array([1.0, 2.0, 1.0]), mode, cval)


@store_output
def prewitt(
    input: TensorLike, axis: int = -1, output: Array | DType = None, mode: str = "reflect", cval: float = 0.0
) -> Any:
    """Return Prewitt's differences along one axis."""
    return _differentiate(as_float(input), axis, np.array([1.0, 1.0, 1.0]), mode, cval)


# ---- interpolation


@store_output
def spline_filter1d(
    input: TensorLike, order: int = 3, axis: int = -1, output: Array | DType = np.float64, mode: str = "mirror"
) -> Any:
    """Return the coefficients of a spline along one axis."""
    x = as_float(input)
    return apply_linear(lambda e: load("ndimage").spline_filter1d(e, order, 0, mode=mode), x, axis)


@store_output
def spline_filter(input: TensorLike, order: int = 3, output: Array | DType = np.float64, mode: str = "mirror") -> Any:
    """Return the coefficients of a spline over all axes."""
    x = as_float(input)
    for axis in range(x.ndim if order > 1 else 0):
        x = spline_filter1d(x, order, axis, mode=mode)
    return x


def _list_spline_weights(place: Value, order: int) -> list[Any]:
    """Return the weights of the neighbours at a place past the first one in the middle."""
    t: Any = place
    if order == 0:
        return [np.ones_like(t)]
    if order == 1:
        return [1 - t, t]
    if order == 2:
        return [0.5 * (0.5 - t) ** 2, 0.75 - t * t, 0.5 * (0.5 + t) ** 2]
    cube = t**3
    s = 1 - t
    return [s**3 / 6, (4 - 6 * t * t + 3 * cube) / 6, (4 - 6 * s**2 + 3 * s**3) / 6, cube / 6]


def _fold(index: Value, n: int, mode: str) -> Any:
    """Return positions within an axis for positions outside it."""
    if mode == "mirror" and n > 1:
        index = np.abs(index) % (2 * n - 2)
        return np.where(index >= n, 2 * n - 2 - index, index)
    if mode in ("reflect", "grid-mirror"):
        index = index % (2 * n)
        mirrored: Any = 2 * n - 1 - index
        return np.where(index >= n, mirrored, index)
    return index % n if mode == "grid-wrap" else np.clip(index, 0, n - 1)


def _list_neighbours(at: Value, n: int, order: int, mode: str) -> list[tuple[Any, Any]]:
    """Return the positions of the pixels around places along an axis, with the weight of each."""
    if mode == "nearest":
        at = np.clip(at, 0, n - 1)
    base = np.floor(strip(at) + 0.5) if order % 2 == 0 else np.floor(strip(at))
    weights = _list_spline_weights(at - base, order)
    first = base.astype(int) - (len(weights) - 1) // 2
    return [(_fold(first + k, n, mode), w) for k, w in enumerate(weights)]


@store_output
def map_coordinates(
    input: TensorLike, coordinates: TensorLike, output: Array | DType = None, order: int = 3, mode: str = "constant",
    cval: float = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """Return the image at arbitrary coordinates, by spline interpolation of order 0 to 3.

    It is differentiable by the image and, except for order 0, by the coordinates.  Orders 2 and 3 support the modes
    ``"mirror"``, ``"reflect"`` and ``"grid-wrap"``, and ``"constant"`` for coordinates inside the image.

    >>> map_coordinates(np.array([0.0, 1.0, 4.0]), [[0.5]], order=1)
    array([0.5])
    """
    x, places = as_float(input), as_float(coordinates)
    if not 0 <= order <= 3 or mode not in ("constant", "nearest", "mirror", "reflect", "grid-mirror", "grid-wrap"):
        return make_fallback("ndimage", "map_coordinates")(x, places, None, order, mode, cval, prefilter)
    if order > 1 and mode == "nearest" and is_traced(x, places):
        raise NoRuleError(f"pb.scipy.ndimage.map_coordinates: with mode='nearest' order must be 0 or 1, got {order}.")
    if places.shape[0] != x.ndim:
        raise ShapeError(
            f"map_coordinates: the image has {x.ndim} axes, so coordinates must have {x.ndim} rows, got shape "
            f"{places.shape}."
        )
    inner = "mirror" if mode in ("constant", "nearest") else mode
    if prefilter and order > 1:
        x = spline_filter(x, order, mode=inner)
    reads = "nearest" if mode == "nearest" else inner
    choices = [_list_neighbours(places[axis], n, order, reads) for axis, n in enumerate(x.shape)]
    total: Any = 0.0
    for parts in product(*choices):
        term = x[tuple(index for index, _ in parts)]
        for _, w in parts:
            term = term * w
        total = total + term
    if mode != "constant":
        return total
    at, last = strip(places), np.reshape(np.array(x.shape) - 1, (-1, *(1,) * (places.ndim - 1)))
    return np.where(((at < 0) | (at > last)).any(axis=0), cval, total)


def _call_swapped(function: Function, second: object, first: object) -> Any:
    return function(first, second)


def _apply_linear_by_axes(
    name: str, x: Value, repeat_per_axis: list[Any], order: int, mode: str, cval: float, options: Mapping[str, object]
) -> Any:
    if cval and mode in ("constant", "grid-constant"):
        raise NoRuleError(f"pb.scipy.ndimage.{name}: only cval=0 is differentiable here.")
    for axis, amount in enumerate(repeat_per_axis):
        by_axes = [amount, 0.0 if name == "shift" else 1.0]
        function = partial(getattr(load("ndimage"), name), order=order, mode=mode, **options)
        x = apply_linear(partial(_call_swapped, function, by_axes), x, axis)
    return x


@store_output
def shift(
    input: TensorLike, shift: TensorLike, output: Array | DType = None, order: int = 3, mode: str = "constant",
    cval: float = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """Return the image shifted by a constant distance."""
    x = as_float(input)
    if is_traced(shift):
        raise NoRuleError("pb.scipy.ndimage.shift: by the distance use map_coordinates, which is differentiable by it.")
    return _apply_linear_by_axes(
        "shift", x, _repeat_per_axis(shift, x.ndim), order, mode, cval, {"prefilter": prefilter}
    )


@store_output
def zoom(
    input: TensorLike, zoom: float | Sequence[float], output: Array | DType = None, order: int = 3,
    mode: str = "constant", cval: float = 0.0, prefilter: bool = True, *, grid_mode: bool = False,
) -> Any:  # fmt: skip
    """Return the image in another size."""
    x = as_float(input)
    options = {"prefilter": prefilter, "grid_mode": grid_mode}
    return _apply_linear_by_axes("zoom", x, _repeat_per_axis(zoom, x.ndim), order, mode, cval, options)


@store_output
def affine_transform(
    input: TensorLike, matrix: TensorLike, offset: TensorLike = 0.0, output_shape: Sequence[int] | None = None,
    output: Array | DType = None, order: int = 3, mode: str = "constant", cval: float = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """Return the image at places ``matrix @ o + offset``, for the places ``o`` of the result.

    It is differentiable by the image, the matrix and the offset; orders and modes are those of ``map_coordinates``.
    """
    x, matrix, offset = as_float(input), as_float(matrix), as_float(offset)
    if matrix.ndim == 1:
        matrix = np.diag(matrix)
    if matrix.shape[1] == x.ndim + 1:
        matrix, offset = matrix[: x.ndim, : x.ndim], matrix[: x.ndim, x.ndim]
    shape = x.shape if output_shape is None else tuple(int(n) for n in output_shape)
    grid = np.reshape(np.indices(shape).astype(float), (len(shape), -1))
    places = np.matmul(matrix, grid) + np.reshape(np.broadcast_to(offset, (x.ndim,)), (-1, 1))
    return np.reshape(map_coordinates(x, places, None, order, mode, cval, prefilter), shape)


# ---- order statistics of neighbours


def _stack_neighbours(
    x: Value,
    size: int | Sequence[int] | None,
    footprint: ArrayLike | Nested | None,
    mode: str,
    cval: float,
    origin: int | Sequence[int],
) -> Any:
    """Return the neighbours of each pixel along a new last axis."""
    if footprint is None:
        if size is None:
            raise ArgumentError("scipy.ndimage: give the size of a filter, or its footprint.")
        footprint = np.ones([int(n) for n in _repeat_per_axis(size, x.ndim)], bool)
    footprint = np.asarray(footprint, bool)
    padded = _pad_image(x, footprint.shape, mode, cval, origin)
    places = np.argwhere(footprint)
    return np.stack([padded[tuple(slice(p, p + n) for p, n in zip(at, x.shape, strict=True))] for at in places], -1)


@store_output
def maximum_filter(
    input: TensorLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | Nested | None = None,
    output: Array | DType = None, mode: str = "reflect", cval: float = 0.0, origin: int | Sequence[int] = 0,
) -> Any:  # fmt: skip
    """Return the largest of the neighbours of each pixel."""
    return np.max(_stack_neighbours(as_float(input), size, footprint, mode, cval, origin), -1)


@store_output
def minimum_filter(
    input: TensorLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | Nested | None = None,
    output: Array | DType = None, mode: str = "reflect", cval: float = 0.0, origin: int | Sequence[int] = 0,
) -> Any:  # fmt: skip
    """Return the smallest of the neighbours of each pixel."""
    return np.min(_stack_neighbours(as_float(input), size, footprint, mode, cval, origin), -1)


@store_output
def rank_filter(
    input: TensorLike, rank: int, size: int | Sequence[int] | None = None, footprint: ArrayLike | Nested | None = None,
    output: Array | DType = None, mode: str = "reflect", cval: float = 0.0, origin: int | Sequence[int] = 0,
) -> Any:  # fmt: skip
    """Return the neighbour of a given rank of each pixel, from the smallest on; negative ranks from the largest."""
    return np.sort(_stack_neighbours(as_float(input), size, footprint, mode, cval, origin), -1)[..., rank]


@store_output
def median_filter(
    input: TensorLike, size: int | Sequence[int] | None = None, footprint: ArrayLike | Nested | None = None,
    output: Array | DType = None, mode: str = "reflect", cval: float = 0.0, origin: int | Sequence[int] = 0,
) -> Any:  # fmt: skip
    """Return the median of the neighbours of each pixel; of an even number the upper one, as in SciPy."""
    around = _stack_neighbours(as_float(input), size, footprint, mode, cval, origin)
    return np.sort(around, -1)[..., around.shape[-1] // 2]


def center_of_mass(
    input: TensorLike, labels: ArrayLike | Nested | None = None, index: int | Sequence[int] | None = None
) -> Any:
    """Return the mean place, weighted by the image."""
    if labels is not None:
        return make_fallback("ndimage", "center_of_mass")(input, labels, index)
    x = as_float(input)
    total = np.sum(x)
    return tuple(np.sum(x * place) / total for place in np.indices(x.shape).astype(float))
