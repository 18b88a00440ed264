"""Ops that have no formula of scalars, by the functions of an array library.

What is not in the tables below, or is missing in a library, is run by NumPy on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from pullback.compiler.backends.library import Library
from pullback.compiler.ir.graph import Node
from pullback.core.lowering import scalar
from pullback.numerics.windows import Windows, find_lowest_value

Ints = tuple[int, ...]


# ---- along an axis


def _scan(name: str, start: int) -> Callable[..., Any]:
    def run(lib: Library, node: Node, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
        if reverse:
            x = lib.flip(x, (axis,))
        z = lib.scan(name, x, axis)
        if exclusive:
            index: list[Any] = [slice(None)] * len(node.shape)
            index[axis] = slice(0, -1)
            first = [*node.shape]
            first[axis] = min(1, first[axis])
            z = lib.concatenate([lib.full(tuple(first), start, node.dtype), z[tuple(index)]], axis)
        return lib.flip(z, (axis,)) if reverse else z

    return run


def _recurrence(lib: Library, node: Node, x: Any, y: Any, axis: int, reverse: bool, adjoint: bool) -> Any:
    x, y = lib.moveaxis(x, axis, 0), lib.moveaxis(y, axis, 0)
    if reverse != adjoint:
        x, y = lib.flip(x, (0,)), lib.flip(y, (0,))
    weights = x[:-1] if adjoint else x[1:]  # the adjoint has the weight of the element before
    z = lib.loop(lambda z, row: row[1] + row[0] * z, y[0], [weights, y[1:]])
    return lib.moveaxis(lib.flip(z, (0,)) if reverse != adjoint else z, 0, axis)


def _position(name: str) -> Callable[..., Any]:
    def run(lib: Library, node: Node, x: Any, axis: int | None, keepdims: bool) -> Any:
        if axis is None or not len(x.shape):
            z = getattr(lib.xp, name)(lib.reshape(x, (-1,)), 0)
        else:
            z = getattr(lib.xp, name)(x, axis)
        return lib.astype(lib.reshape(z, node.shape), node.dtype)

    return run


def _argsort(lib: Library, node: Node, x: Any, axis: int, descending: bool) -> Any:
    if not node.shape:
        return lib.full((), 0, node.dtype)
    return lib.astype(lib.sort_positions(x, axis, descending), node.dtype)


# ---- others


def _join_complex(lib: Library, node: Node, real: Any, imag: Any) -> Any:
    return lib.astype(real, node.dtype) + lib.astype(imag, node.dtype) * 1j


def _transform(name: str) -> Callable[..., Any]:
    def run(lib: Library, node: Node, x: Any, n: int | None, axis: int, norm: str | None) -> Any:
        return lib.astype(getattr(lib.fft, name)(x, n, axis, norm), node.dtype)

    return run


def _adjoint(lib: Library, x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return lib.conj(lib.swapaxes(x, -1, -2))


def _cholesky(lib: Library, node: Node, x: Any, upper: bool) -> Any:
    factor = lib.linalg.cholesky((x + _adjoint(lib, x)) / 2)  # as the op does: both triangles count
    return _adjoint(lib, factor) if upper else factor


def _cholesky_of_triangle(lib: Library, node: Node, x: Any, upper: bool) -> Any:
    below = lib.tril(_adjoint(lib, x) if upper else x)
    factor = lib.linalg.cholesky(below + _adjoint(lib, lib.tril(below, -1)))
    return _adjoint(lib, factor) if upper else factor


def _matmul(lib: Library, node: Node, x: Any, y: Any) -> Any:
    return lib.matmul(lib.astype(x, node.dtype), lib.astype(y, node.dtype))


# ---- windows of images (batch, *space, channels)


def _find_overlap(windows: Windows, space: Ints) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return where images and frames have their common elements: an index of images, and one of frames."""
    image: list[Any] = [slice(None)]
    frame: list[Any] = [slice(None)]
    for before, length, reach in zip(windows.before, space, windows.reach, strict=True):
        first, last = max(0, -before), max(0, min(length, reach - before))
        image.append(slice(first, last))
        frame.append(slice(first + before, max(first, last) + before))
    return tuple(image), tuple(frame)


def _frame(lib: Library, x: Any, windows: Windows, fill: Any = 0) -> Any:
    """Return images padded, or cut, to what the windows reach."""
    image, frame = _find_overlap(windows, x.shape[1:-1])
    return lib.put(lib.full((x.shape[0], *windows.reach, x.shape[-1]), fill, lib.get_dtype(x)), frame, x[image])


def _unframe(lib: Library, e: Any, windows: Windows, space: Ints) -> Any:
    """Return the adjoint of ``_frame``: the part of the frame that is in the image."""
    image, frame = _find_overlap(windows, space)
    return lib.put(lib.full((e.shape[0], *space, e.shape[-1]), 0, lib.get_dtype(e)), image, e[frame])


def _convolve(lib: Library, node: Node, x: Any, filter: Any, windows: Windows) -> Any:
    if lib.correlate is not None:
        return lib.correlate(x, filter, windows)
    frame, z = _frame(lib, x, windows), lib.full(node.shape, 0, node.dtype)
    for at, index in windows.offsets():
        z = z + lib.matmul(frame[index], filter[at])
    return z


def _convolve_input(lib: Library, node: Node, y: Any, filter: Any, windows: Windows, shape: Ints) -> Any:
    if lib.pull_back is not None:
        return lib.pull_back(lambda x: lib.correlate(x, filter, windows), lib.full(shape, 0, node.dtype), y)
    e = lib.full((shape[0], *windows.reach, shape[-1]), 0, node.dtype)
    for at, index in windows.offsets():
        e = lib.put(e, index, e[index] + lib.matmul(y, lib.swapaxes(filter[at], 0, 1)))
    return _unframe(lib, e, windows, shape[1:-1])


def _convolve_filter(lib: Library, node: Node, x: Any, y: Any, windows: Windows) -> Any:
    if lib.pull_back is not None:
        return lib.pull_back(lambda f: lib.correlate(x, f, windows), lib.full(node.shape, 0, node.dtype), y)
    frame, columns = _frame(lib, x, windows), lib.reshape(y, (-1, y.shape[-1]))
    found = [
        lib.matmul(lib.swapaxes(lib.reshape(frame[index], (-1, x.shape[-1])), 0, 1), columns)
        for _, index in windows.offsets()
    ]
    return lib.reshape(lib.stack(found), node.shape)


def _depthwise(lib: Library, node: Node, x: Any, filter: Any, windows: Windows) -> Any:
    frame, z = _frame(lib, x, windows), None
    for at, index in windows.offsets():
        part = frame[index][..., None] * filter[at]
        z = part if z is None else z + part
    return lib.reshape(z, node.shape)


def _depthwise_input(lib: Library, node: Node, y: Any, filter: Any, windows: Windows, shape: Ints) -> Any:
    apart = lib.reshape(y, (*y.shape[:-1], *filter.shape[-2:]))
    e = lib.full((shape[0], *windows.reach, shape[-1]), 0, node.dtype)
    for at, index in windows.offsets():
        e = lib.put(e, index, e[index] + lib.reduce("sum", apart * filter[at], (len(apart.shape) - 1,)))
    return _unframe(lib, e, windows, shape[1:-1])


def _depthwise_filter(lib: Library, node: Node, x: Any, y: Any, windows: Windows) -> Any:
    frame, apart = _frame(lib, x, windows), lib.reshape(y, (*y.shape[:-1], *node.shape[-2:]))
    axes = tuple(range(len(windows.size) + 1))
    found = [lib.reduce("sum", frame[index][..., None] * apart, axes) for _, index in windows.offsets()]
    return lib.reshape(lib.stack(found), node.shape)


def _largest(lib: Library, node: Node, x: Any, windows: Windows) -> Any:
    frame, z = _frame(lib, x, windows, find_lowest_value(node.dtype)), None
    for _, index in windows.offsets():
        z = frame[index] if z is None else lib.maximum(z, frame[index])
    return z


def _find_largest(lib: Library, source: Any, largest: Any, windows: Windows) -> list[Any]:
    """Return for each position in a window where it is the first largest element."""
    frame, found, left = _frame(lib, source, windows, float("nan")), [], None
    for _, index in windows.offsets():
        hit = frame[index] == largest
        hit = hit if left is None else hit & left
        left = ~hit if left is None else left & ~hit
        found.append(hit)
    return found


def _give_to_largest(lib: Library, node: Node, x: Any, source: Any, largest: Any, windows: Windows) -> Any:
    e = lib.full((node.shape[0], *windows.reach, node.shape[-1]), 0, node.dtype)
    for hit, (_, index) in zip(_find_largest(lib, source, largest, windows), windows.offsets(), strict=True):
        e = lib.put(e, index, e[index] + lib.select(hit, x, 0))
    return _unframe(lib, e, windows, node.shape[1:-1])


def _take_from_largest(lib: Library, node: Node, x: Any, source: Any, largest: Any, windows: Windows) -> Any:
    frame, z = _frame(lib, x, windows), lib.full(node.shape, 0, node.dtype)
    for hit, (_, index) in zip(_find_largest(lib, source, largest, windows), windows.offsets(), strict=True):
        z = z + lib.select(hit, frame[index], 0)
    return z


def _sum_windows(lib: Library, node: Node, x: Any, windows: Windows) -> Any:
    frame, z = _frame(lib, x, windows), lib.full(node.shape, 0, node.dtype)
    for _, index in windows.offsets():
        z = z + frame[index]
    return z


def _spread_windows(lib: Library, node: Node, x: Any, windows: Windows, shape: Ints) -> Any:
    e = lib.full((shape[0], *windows.reach, shape[-1]), 0, node.dtype)
    for _, index in windows.offsets():
        e = lib.put(e, index, e[index] + x)
    return _unframe(lib, e, windows, shape[1:-1])


# By the op's name: a function of the library, the node, its arguments and the op's parameters.
OPS: dict[str, Callable[..., Any]] = {
    "cumsum": _scan("cumsum", 0), "cumprod": _scan("cumprod", 1), "recurrence": _recurrence,
    "arg_max": _position("argmax"), "arg_min": _position("argmin"), "argsort": _argsort, "complex": _join_complex,
    "fft": _transform("fft"), "ifft": _transform("ifft"), "rfft": _transform("rfft"), "irfft": _transform("irfft"),
    "cholesky": _cholesky, "cholesky_of_triangle": _cholesky_of_triangle, "matmul": _matmul,
    "convolve": _convolve, "convolve_input": _convolve_input, "convolve_filter": _convolve_filter,
    "depthwise": _depthwise, "depthwise_input": _depthwise_input, "depthwise_filter": _depthwise_filter,
    "largest_in_window": _largest, "give_to_largest": _give_to_largest, "take_from_largest": _take_from_largest,
    "sum_of_windows": _sum_windows, "spread_over_windows": _spread_windows,
}  # fmt: skip
# Elementwise ops that a library has a function of the same name for, or cannot evaluate.
SPECIAL = frozenset({
    "digamma", "gammaln", "gamma", "betaln", "beta", "zeta", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri",
    "i0", "i1", "i0e", "i1e",
})  # fmt: skip
# By the op's name: the name of the library's own function of the same arguments, where it has that.
FUNCTIONS = {
    **{name: f"linalg.{name}" for name in ("solve", "inv", "det")},
    **{name: name for name in ("real", "imag", "conj", "angle", "isin", *SPECIAL)},
}

# Elementwise ops whose formula holds for complex numbers too.
OF_COMPLEX = frozenset({
    "clone", "add", "sub", "mul", "div", "neg", "square", "cube", "reciprocal", "abs", "sqrt", "exp", "log", "sin",
    "cos", "tan", "sinh", "cosh", "tanh", "equal", "not_equal", "is_nan", "is_finite", "where",
})  # fmt: skip


def evaluate_scalar(lib: Library, node: Node) -> Callable[..., Any]:
    """Return an elementwise op as a function of the library's arrays, by the formula that is compiled as well."""
    op, params = node.data
    formula = op.lower.emit
    names = formula.__code__.co_varnames[1 + len(node.args) : formula.__code__.co_argcount]
    values = [params[name] for name in names]

    def run(*xs: object) -> Any:
        z = formula(lib, *xs, *values)
        return lib.astype(z, node.dtype) if lib.is_own(z) else lib.full(node.shape, z, node.dtype)

    return run


def find_map(lib: Library, node: Node) -> Callable[..., Any] | None:
    """Return how a library evaluates an elementwise op, as a function of its arrays; None if it cannot."""
    op = node.data[0]
    if isinstance(op.lower, scalar) and op.lower.draws:
        return None
    if op.name in SPECIAL or op.name == "polygamma":  # libraries take its order in different ways
        return find_op_evaluator(lib, node)
    has_complex = any(n.dtype.kind == "c" for n in (node, *node.args))
    return find_op_evaluator(lib, node) if has_complex else evaluate_scalar(lib, node)


def find_op_evaluator(lib: Library, node: Node) -> Callable[..., Any] | None:
    """Return how a library evaluates the op of a node, as a function of its arrays; None if it cannot."""
    op, params = node.data
    if op.name in OPS:
        return partial(OPS[op.name], lib, node, **params)
    if op.name in OF_COMPLEX and isinstance(op.lower, scalar):
        return evaluate_scalar(lib, node)
    if op.name not in FUNCTIONS or params:
        return None
    try:
        function = attrgetter(FUNCTIONS[op.name])(lib)
    except AttributeError:
        return None
    return lambda *xs: lib.astype(function(*xs), node.dtype)
