"""Small pictures as SVG inside HTML: the elements of an array as colours, and curves over steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np

from pullback.display.html import Markup, escape
from pullback.typing import Array

ROWS, COLUMNS = 8, 64  # cells of a picture of an array at most
CELL = 7  # pixels
POSITIVE, NEGATIVE, NOT_FINITE = "rgb(214,96,40)", "rgb(49,130,206)", "rgb(200,0,160)"
COLOURS = ("#3b82c4", "#d9772b", "#3fa34d", "#c2412d", "#8a63b8", "#7d6a55", "#c85fa3", "#808080")
WIDTH, HEIGHT, MARGIN = 420, 150, 48


def draw_elements(x: Array) -> Markup:
    """Return a picture of an array, a cell for each element or block of elements: the larger, the stronger the colour.

    Positive elements are orange, negative ones blue, NaN and infinities magenta.  Axes but the last are rows.

    >>> draw_elements(np.array([[0.0, 1.0], [np.nan, -1.0]])).count("<rect")
    3
    """
    cells = _shrink(_shrink(np.atleast_2d(x.reshape(-1, x.shape[-1] if x.ndim else 1)), 0, ROWS), 1, COLUMNS)
    finite = np.isfinite(cells)
    top = np.max(np.abs(cells), initial=0.0, where=finite) or 1.0
    rows, columns = cells.shape
    rects = [
        f'<rect x="{c * CELL}" y="{r * CELL}" width="{CELL}" height="{CELL}" {_fill(cells[r, c], top)}/>'
        for r in range(rows)
        for c in range(columns)
        if cells[r, c] != 0.0
    ]
    size = f'width="{columns * CELL}" height="{rows * CELL}" viewBox="0 0 {columns * CELL} {rows * CELL}"'
    border = 'style="outline:1px solid rgba(128,128,128,.35)" role="img" aria-label="elements of the array as colours"'
    return Markup(f"<svg {size} {border}>{''.join(rects)}</svg>")


def _shrink(x: Array, axis: int, length: int) -> Array:
    """Return means of equal blocks along an axis, at most so many; an array that is short enough as it is."""
    n = x.shape[axis]
    if n <= length:
        return x.astype(np.float64)
    edges = np.linspace(0, n, length + 1).astype(int)
    with np.errstate(all="ignore"):
        sums = np.add.reduceat(x.astype(np.float64), edges[:-1], axis=axis)
    counts = np.diff(edges)
    return sums / (counts[:, None] if axis == 0 else counts)


def _fill(value: float, top: float) -> str:
    if not isfinite(value):
        return f'fill="{NOT_FINITE}"'
    return f'fill="{POSITIVE if value > 0 else NEGATIVE}" fill-opacity="{max(abs(value) / top, 0.04):.2f}"'


def draw_curves(curves: Mapping[str, Mapping[float, float]], by: str, dashed: Sequence[str] = ()) -> Markup:
    """Return a picture of curves, each a dict from where to the number there; gaps where a number is not finite.

    ``by`` is what the horizontal axis has, such as epochs.

    >>> picture = draw_curves({"loss": {1: 1.0, 2: 0.5, 3: 0.25}}, "epoch")
    >>> picture.count("stroke-width"), "loss" in picture, "epoch 1" in picture
    (1, True, True)
    """
    numbers = [v for values in curves.values() for v in values.values() if isfinite(v)]
    if not numbers:
        return Markup("")
    places = [at for values in curves.values() for at in values]
    box = LayerBox(min(places), max(places), min(numbers), max(numbers))
    lines, legend = [], []
    for i, (name, values) in enumerate(curves.items()):
        style = f'stroke="{COLOURS[i % len(COLOURS)]}"' + (' stroke-dasharray="5 3"' if name in dashed else "")
        lines.append(f'<path d="{_trace(values, box)}" fill="none" stroke-width="1.6" {style}/>')
        legend.append(
            f'<span style="color:{COLOURS[i % len(COLOURS)]}">{"╌" if name in dashed else "─"}</span> {escape(name)}'
        )
    left = f'text-anchor="end" x="{MARGIN - 5}"'
    below = f'y="{HEIGHT + 12}"'
    labels = f'<text {left} y="12">{box.high:.3g}</text>'
    labels += f'<text {left} y="{HEIGHT - 4}">{box.low:.3g}</text>' if box.low < box.high else ""
    labels += f'<text x="{MARGIN}" {below}>{escape(by)} {box.first:.4g}</text>'
    labels += f'<text text-anchor="end" x="{WIDTH}" {below}>{box.last:.4g}</text>' if box.first < box.last else ""
    axis = f'<path d="M{MARGIN} 2V{HEIGHT - 2}H{WIDTH}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    if box.low < 0.0 < box.high:
        _, zero = box.locate(box.first, 0.0)
        labels += f'<text {left} y="{zero + 4:.1f}">0</text>' if 20 < zero < HEIGHT - 20 else ""
        axis += f'<path d="M{MARGIN} {zero:.1f}H{WIDTH}" fill="none" stroke="currentColor" stroke-opacity=".2"/>'
    view = f'viewBox="0 0 {WIDTH} {HEIGHT + 16}" style="max-width:{WIDTH}px;width:100%"'
    words = f'<g fill="currentColor" font-size="10" opacity=".8">{labels}</g>'
    about = f'role="img" aria-label="{escape(", ".join(curves))} by {escape(by)}"'
    return Markup(f"<svg {view} {about}>{axis}{words}{''.join(lines)}</svg><div>{' &nbsp; '.join(legend)}</div>")


class LayerBox(NamedTuple):
    """Where the curves of a picture begin and end, and their least and largest number."""

    first: float
    last: float
    low: float
    high: float

    def locate(self, at: float, number: float) -> tuple[float, float]:
        """Return the pixel of a number."""
        across = (at - self.first) / ((self.last - self.first) or 1.0)
        up = (number - self.low) / ((self.high - self.low) or 1.0)
        return MARGIN + 4 + (WIDTH - MARGIN - 8) * across, HEIGHT - 8 - (HEIGHT - 16) * up


def _trace(values: Mapping[float, float], box: LayerBox) -> str:
    """Return the path of a curve; one number alone is a short level line."""
    points = [box.locate(*at) if isfinite(at[1]) else None for at in sorted(values.items())]
    if len(points) == 1 and points[0] is not None:
        return f"M{points[0][0]:.1f} {points[0][1]:.1f}h6"
    return "".join(
        f"M{begin[0]:.1f} {begin[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
        for begin, end in pairwise(points)
        if begin is not None and end is not None
    )
