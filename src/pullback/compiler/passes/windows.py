"""Ops on windows as nodes that there is machine code for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from pullback.compiler.builder import FLOATS, code_of
from pullback.compiler.frontend.result_inference import laid_out, laid_out_at
from pullback.compiler.ir.graph import Graph, Node, View, resolve_view
from pullback.compiler.ir.kinds import VIEW, WINDOWS
from pullback.compiler.ir.windows import Convolution, Examples, Interleaved, Laid, Pooling
from pullback.numerics.windows import Windows

__all__ = ["windowed"]

PANEL = 128  # bytes of a row of a panel
LARGE = 256 * 1024  # bytes of a filter that is laid out by panels


def windowed(g: Graph, n: Node, args: list[Node]) -> Node | None:
    """The same by machine code; None if its kernel must do it."""
    op, params = n.data
    windows: Windows = params["windows"]
    rank = len(n.shape) - len(windows.size) - 2
    if code_of(n.dtype) not in FLOATS or any(a.dtype != n.dtype or len(a.shape) != len(n.shape) for a in args):
        return None
    if rank > ("convolve" in op.lower.symbol):  # more than an axis of examples
        return None
    if not all(a.size for a in args):
        return g.constant(np.zeros(n.shape, n.dtype))
    way: Callable[..., Node | None] = WAYS[op.lower.symbol]
    return way(g, n, args, windows)


# ---- convolutions


def _called(g: Graph, n: Node, args: list[Node], data: Any) -> Node:
    several = len(n.shape) > len(n.data[1]["windows"].size) + 2
    return g.add(WINDOWS, args, n.shape, n.dtype, Examples(data, n.shape[0]) if several else data, n.line)


def _convolution(x: Node, filter: Node, windows: Windows, apart: bool, laid: Laid | None = None) -> Convolution:
    images, *space, channels = x.shape[-len(windows.size) - 2 :]
    depth = channels if apart else filter.shape[-1]
    return Convolution(code_of(x.dtype), images, tuple(space), channels, depth, windows, False, apart, laid)


def _convolve(apart: bool) -> Any:
    def way(g: Graph, n: Node, args: list[Node], windows: Windows) -> Node | None:
        x, filter = args
        if apart and filter.shape[-1] != 1:  # several results of each channel
            return None
        return _by_panels(g, n, x, filter, _convolution(x, filter, windows, apart))

    return way


def _by_panels(g: Graph, n: Node, x: Node, filter: Node, how: Convolution) -> Node:
    """A large filter is laid out a few columns at a time: its rows are too far from each other."""
    wide = PANEL // n.dtype.itemsize
    if filter.nbytes < LARGE or len(filter.shape) != len(how.space) + 2 or how.depth % wide or how.apart:
        return _called(g, n, [x, filter], how)
    base, offset, steps = resolve_view(filter)
    view = View(offset, (wide * steps[-1], *steps))
    panels = g.add(VIEW, (base,), (how.depth // wide, *filter.shape[:-1], wide), n.dtype, view, filter.line)
    return _called(g, n, [x, panels], how._replace(panel=wide))


def _filter(apart: bool) -> Any:
    def way(g: Graph, n: Node, args: list[Node], windows: Windows) -> Node | None:
        x, y = args
        images, *space, channels = x.shape[-len(windows.size) - 2 :]
        if apart and y.shape[-1] != channels:
            return None
        how = Convolution(code_of(n.dtype), images, tuple(space), channels, y.shape[-1], windows, True, apart)
        return _called(g, n, args, how)

    return way


def _input(apart: bool) -> Any:
    """Every pixel of the image gathers from the results of all windows that it is in.

    With strides these are others for one pixel than for its neighbour: there are as many convolutions as strides, each
    with some of the filter, for pixels that are so far from each other.
    """

    def way(g: Graph, n: Node, args: list[Node], windows: Windows) -> Node | None:
        y, filter = args
        if apart and filter.shape[-1] != 1:
            return None
        if max(windows.strides) == 1:
            turned = _seen(g, filter, [slice(None)] * len(windows.size), apart)
            space = n.shape[-len(windows.size) - 1 : -1]
            return _by_panels(g, n, y, turned, _convolution(y, turned, windows.adjoint(space), apart))
        if max(windows.dilations) > 1:
            return None
        return _interleaved(g, n, y, filter, windows, apart)

    return way


def _seen(g: Graph, filter: Node, taps: list[slice], apart: bool) -> Node:
    """Some of a filter, turned around, and for its results to be read."""
    whole, base = laid_out(filter)
    begin = laid_out_at(whole, filter if base is not filter else None)
    back = [slice(None, None, -1)] * len(taps)
    part = whole[..., *taps, :, :][..., *back, :, :]
    if not apart:
        part = part.swapaxes(-1, -2)
    view = View(part.__array_interface__["data"][0] - begin, part.strides)
    return g.add(VIEW, (base,), part.shape, filter.dtype, view, filter.line)


def _interleaved(g: Graph, n: Node, y: Node, filter: Node, windows: Windows, apart: bool) -> Node:
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
            filters.append(_seen(g, filter, taps, apart))
            convolutions.append(_convolution(y, filters[-1], w, apart, Laid(space, first, strides)))
    whole = sum(prod(c.windows.out) for c in convolutions) == prod(space)
    return _called(g, n, [y, *filters], Interleaved(tuple(convolutions), whole))


# ---- pooling


def _pool(g: Graph, n: Node, args: list[Node], windows: Windows) -> Node:
    symbol = n.data[0].lower.symbol
    images, *space, channels = {"give": args[1:2], "spread": [n]}.get(symbol, args)[0].shape
    return _called(g, n, args, Pooling(symbol, code_of(n.dtype), images, tuple(space), channels, windows))


WAYS: dict[str, Any] = {
    "convolve": _convolve(False), "convolve_filter": _filter(False), "convolve_input": _input(False),
    "depthwise": _convolve(True), "depthwise_filter": _filter(True), "depthwise_input": _input(True),
    **dict.fromkeys(("largest", "sums", "spread", "give", "take"), _pool),
}  # fmt: skip
