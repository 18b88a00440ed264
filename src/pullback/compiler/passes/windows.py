"""Lower convolutions and pooling to nodes that have machine code."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from pullback.compiler.builder import FLOATS, code_of
from pullback.compiler.ir.graph import Graph, Node, View, find_start, make_bytes_like, reshape, resolve_view
from pullback.compiler.ir.kinds import PRODUCT, VIEW, WINDOWS
from pullback.compiler.ir.windows import Convolution, Examples, Interleaved, Placement, Pooling, Winograd
from pullback.compiler.target import LINE_BYTES, Options
from pullback.numerics.windows import Windows

PANEL_BYTES = 128  # bytes of a row of a panel
LARGE_FILTER_BYTES = 256 * 1024  # bytes from which a filter is stored in panels
MIN_TILED = 1 << 24  # multiplications from which on transformed tiles are worth their code
MIN_TILED_CHANNELS = 16  # of images and results; fewer save less than the transformation takes
MAX_MATRIX_BYTES = 1 << 22  # of the transformed filter, which is read for every image
TRANSFORM = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])  # of 3 taps along an axis


def lower_windows(g: Graph, n: Node, args: list[Node], options: Options) -> Node | None:
    """Return a node with machine code for an op on windows; None if NumPy must run it."""
    op, params = n.data
    windows: Windows = params["windows"]
    rank = len(n.shape) - len(windows.size) - 2
    if code_of(n.dtype) not in FLOATS or any(a.dtype != n.dtype or len(a.shape) != len(n.shape) for a in args):
        return None
    if rank > ("convolve" in op.lower.symbol):  # more than an axis of examples
        return None
    if not all(a.size for a in args):
        return g.add_constant(np.zeros(n.shape, n.dtype))
    lower: Callable[..., Node | None] = RULES[op.lower.symbol]
    return lower(g, n, args, windows, options.is_enabled("Winograd convolutions"))


# ---- convolutions


def _add_windows(g: Graph, n: Node, args: list[Node], data: Any) -> Node:
    several = len(n.shape) > len(n.data[1]["windows"].size) + 2
    return g.add(WINDOWS, args, n.shape, n.dtype, Examples(data, n.shape[0]) if several else data, n.line)


def _describe_convolution(
    x: Node, filter: Node, windows: Windows, is_depthwise: bool, placement: Placement | None = None
) -> Convolution:
    images, *space, channels = x.shape[-len(windows.size) - 2 :]
    depth = channels if is_depthwise else filter.shape[-1]
    return Convolution(code_of(x.dtype), images, tuple(space), channels, depth, windows, False, is_depthwise, placement)


def _lower_convolution(is_depthwise: bool) -> Any:
    def lower(g: Graph, n: Node, args: list[Node], windows: Windows, tiles: bool) -> Node | None:
        x, filter = args
        if is_depthwise and filter.shape[-1] != 1:  # several results of each channel
            return None
        return _convolve(g, n, x, filter, _describe_convolution(x, filter, windows, is_depthwise), tiles)

    return lower


def _convolve(g: Graph, n: Node, x: Node, filter: Node, conv: Convolution, tiles: bool) -> Node:
    """Return a convolution by the method that takes the least time; not by transformed tiles without ``tiles``."""
    return (_convolve_by_tiles if tiles and _has_tiles(conv, filter) else _convolve_by_panels)(g, n, x, filter, conv)


def _has_tiles(conv: Convolution, filter: Node) -> bool:
    """Return whether a convolution is computed by transformed tiles, whose channels fill whole cache lines.

    ``filter`` is its filter, or the gradient of it.
    """
    w, (least, most) = conv.windows, sorted((conv.channels, conv.depth))
    if filter.shape[:-2] != (3, 3) or conv.is_depthwise or max(*w.strides, *w.dilations) > 1 or min(w.out) < 2:
        return False
    size = filter.dtype.itemsize
    in_lines = least * size % LINE_BYTES == most * size % LINE_BYTES == 0
    is_small = 16 * least * most * size <= MAX_MATRIX_BYTES
    large = least >= MIN_TILED_CHANNELS and conv.work >= MIN_TILED
    return in_lines and is_small and large


def _convolve_by_tiles(g: Graph, n: Node, x: Node, filter: Node, conv: Convolution) -> Node:
    """Return a convolution by tiles of 2 × 2 results, with the filter's matrices for them."""
    taps = g.add_constant(np.kron(TRANSFORM, TRANSFORM).astype(n.dtype))
    flat = reshape(g, filter, (9, conv.channels * conv.depth))
    matrices = g.add(PRODUCT, (taps, flat), (16, conv.channels * conv.depth), n.dtype, None, n.line)
    shaped = reshape(g, matrices, (16, conv.channels, conv.depth))
    return _add_windows(g, n, [x, shaped, filter], Winograd(conv))


def _convolve_by_panels(g: Graph, n: Node, x: Node, filter: Node, conv: Convolution) -> Node:
    """Return a convolution whose filter, if it is large, is stored in panels of a few columns."""
    wide = PANEL_BYTES // n.dtype.itemsize
    if (
        filter.nbytes < LARGE_FILTER_BYTES
        or len(filter.shape) != len(conv.space) + 2
        or conv.depth % wide
        or conv.is_depthwise
    ):
        return _add_windows(g, n, [x, filter], conv)
    base, offset, steps = resolve_view(filter)
    view = View(offset, (wide * steps[-1], *steps))
    panels = g.add(VIEW, (base,), (conv.depth // wide, *filter.shape[:-1], wide), n.dtype, view, filter.line)
    return _add_windows(g, n, [x, panels], conv._replace(panel=wide))


def _lower_filter_gradient(is_depthwise: bool) -> Any:
    def lower(g: Graph, n: Node, args: list[Node], windows: Windows, tiles: bool) -> Node | None:
        x, y = args
        images, *space, channels = x.shape[-len(windows.size) - 2 :]
        if is_depthwise and y.shape[-1] != channels:
            return None
        conv = Convolution(code_of(n.dtype), images, tuple(space), channels, y.shape[-1], windows, True, is_depthwise)
        is_even = not any(length % 2 for length in windows.out)  # else a tile would overlap another
        return _add_windows(g, n, args, Winograd(conv) if tiles and is_even and _has_tiles(conv, n) else conv)

    return lower


def _lower_input_gradient(is_depthwise: bool) -> Any:
    """Return the rule for the gradient by the image: a pixel gathers from all windows that contain it.

    With a stride, neighbouring pixels are in windows at different taps: there is one convolution for each offset within
    the stride, with some taps of the filter, for the pixels at this offset.
    """

    def lower(g: Graph, n: Node, args: list[Node], windows: Windows, tiles: bool) -> Node | None:
        y, filter = args
        if is_depthwise and filter.shape[-1] != 1:
            return None
        if max(windows.strides) == 1:
            turned = _flip_filter(g, filter, [slice(None)] * len(windows.size), is_depthwise)
            space = n.shape[-len(windows.size) - 1 : -1]
            conv = _describe_convolution(y, turned, windows.adjoint(space), is_depthwise)
            return _convolve(g, n, y, turned, conv, tiles)
        if max(windows.dilations) > 1:
            return None
        return _interleave(g, n, y, filter, windows, is_depthwise)

    return lower


def _flip_filter(g: Graph, filter: Node, taps: list[slice], is_depthwise: bool) -> Node:
    """Return some taps of a filter as a view, flipped, with its last two axes exchanged."""
    whole, base = make_bytes_like(filter)
    begin = find_start(whole, filter if base is not filter else None)
    back = [slice(None, None, -1)] * len(taps)
    part = whole[..., *taps, :, :][..., *back, :, :]
    if not is_depthwise:
        part = part.swapaxes(-1, -2)
    view = View(part.__array_interface__["data"][0] - begin, part.strides)
    return g.add(VIEW, (base,), part.shape, filter.dtype, view, filter.line)


def _interleave(g: Graph, n: Node, y: Node, filter: Node, windows: Windows, is_depthwise: bool) -> Node:
    space, strides = n.shape[-len(windows.size) - 1 : -1], windows.strides
    filters, convolutions = [], []
    for first in product(*map(range, strides)):
        taps, before, out = [], [], []
        for p, s, b, k, length in zip(first, strides, windows.before, windows.size, space, strict=True):
            r = (p + b) % s
            taps.append(slice(r, None, s))
            before.append(len(range(r, k, s)) - 1 - (p + b - r) // s)
            out.append(len(range(p, length, s)))
        size = tuple(len(range(k)[t]) for k, t in zip(windows.size, taps, strict=True))
        if prod(size) and prod(out):
            ones = (1,) * len(space)
            w = Windows(size, ones, ones, tuple(before), tuple(out))
            filters.append(_flip_filter(g, filter, taps, is_depthwise))
            convolutions.append(
                _describe_convolution(y, filters[-1], w, is_depthwise, Placement(space, first, strides))
            )
    whole = sum(prod(c.windows.out) for c in convolutions) == prod(space)
    return _add_windows(g, n, [y, *filters], Interleaved(tuple(convolutions), whole))


# ---- pooling


def _lower_pooling(g: Graph, n: Node, args: list[Node], windows: Windows, tiles: bool) -> Node:
    symbol = n.data[0].lower.symbol
    images, *space, channels = {"give": args[1:2], "spread": [n]}.get(symbol, args)[0].shape
    return _add_windows(g, n, args, Pooling(symbol, code_of(n.dtype), images, tuple(space), channels, windows))


RULES: dict[str, Any] = {
    "convolve": _lower_convolution(False),
    "convolve_filter": _lower_filter_gradient(False),
    "convolve_input": _lower_input_gradient(False),
    "depthwise": _lower_convolution(True),
    "depthwise_filter": _lower_filter_gradient(True),
    "depthwise_input": _lower_input_gradient(True),
    **dict.fromkeys(("largest", "sums", "spread", "give", "take"), _lower_pooling),
}
