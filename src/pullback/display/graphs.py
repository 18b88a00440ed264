"""Pictures of graphs as SVG: boxes with two lines of text, joined by curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pullback.display.html import Markup, escape
from pullback.display.layout import GraphLayout, lay_out_graph

HEIGHT = 36.0
LETTER = 6.7  # pixels of a letter of the label
MARGIN = 8.0


@dataclass(frozen=True)
class GraphBox:
    """A node of a picture: its label, a line below it, its colour, and what the pointer shows."""

    label: str
    below: str
    inputs: Sequence[int]
    fill: str = "rgba(128,128,128,.12)"
    stroke: str = "rgba(128,128,128,.7)"
    title: str = ""
    is_input: bool = False


class Picture:
    """A picture that a notebook shows; ``svg`` is its text, ``save`` writes it to a file.

    >>> draw_graph([GraphBox("x", "[3]", [])]).svg.startswith("<svg")
    True
    """

    def __init__(self, svg: Markup) -> None:
        self.svg = svg

    def save(self, path: str | Path) -> None:
        """Write the picture to an SVG file.

        path: the file.
        """
        Path(path).write_text(self.svg, "utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<picture, {len(self.svg)} characters of SVG>"


def draw_graph(boxes: Sequence[GraphBox], label: str = "graph") -> Picture:
    """Return a picture of boxes, each with the numbers of those that it comes from.

    boxes: in an order in which inputs come first.
    label: what the picture shows, for readers who do not see it.

    >>> picture = draw_graph([GraphBox("x", "[3]", []), GraphBox("exp", "[3]", [0])])
    >>> picture.svg.count("<rect"), picture.svg.count("<path")
    (2, 1)
    """
    widths = [max(len(b.label), len(b.below), 4) * LETTER + 18 for b in boxes]
    layout = lay_out_graph([b.inputs for b in boxes], widths, HEIGHT)
    edges = "".join(f'<path data-edge="{a}-{b}" d="{path}"/>' for a, b, path in _draw_edges(layout))
    nodes = "".join(
        _draw_box(i, b, x, y, w) for i, (b, (x, y), w) in enumerate(zip(boxes, layout.nodes, widths, strict=True))
    )
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    view = f'viewBox="{-MARGIN} {-MARGIN} {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    font = 'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="11" text-anchor="middle"'
    return Picture(
        Markup(
            f'<svg xmlns="http://www.w3.org/2000/svg" {view} {font} role="img" aria-label="{escape(label)}">'
            f'<g fill="none" stroke="currentColor" stroke-opacity=".45">{edges}</g>{nodes}</svg>'
        )
    )


def _draw_edges(layout: GraphLayout) -> Iterator[tuple[int, int, str]]:
    """Iterate over the edges with their paths; where edges of a node run together, only the first is drawn."""
    drawn: dict[int, int] = {}
    for (a, b), points in layout.edges.items():
        begin = max(min(drawn.get(a, 1), len(points) - 1) - 1, 0)
        drawn[a] = max(drawn.get(a, 1), len(points) - 1)
        yield a, b, _draw_edge(points[begin:])


def _draw_edge(points: Sequence[tuple[float, float]]) -> str:
    """Return the path of an edge: from the lower side of a box, straight down through places it passes, to the next."""
    (x, y), *rest = points
    path, y = f"M{x:.1f} {y + HEIGHT / 2:.1f}", y + HEIGHT / 2
    for i, (x2, y2) in enumerate(rest):
        top = y2 - HEIGHT / 2
        middle = (y + top) / 2
        path += f"C{x:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {top:.1f}"
        x, y = x2, top
        if i < len(rest) - 1:
            y = y2 + HEIGHT / 2
            path += f"V{y:.1f}"
    return path


def _draw_box(number: int, box: GraphBox, x: float, y: float, width: float) -> str:
    corner = HEIGHT / 2 if box.is_input else 4
    title = f"<title>{escape(box.title)}</title>" if box.title else ""
    return (
        f'<g class="node" data-node="{number}" transform="translate({x:.1f} {y:.1f})">{title}'
        f'<rect x="{-width / 2:.1f}" y="{-HEIGHT / 2}" width="{width:.1f}" height="{HEIGHT}" rx="{corner}" '
        f'fill="{box.fill}" stroke="{box.stroke}"/>'
        f'<text y="-3" fill="currentColor" font-weight="600">{escape(box.label)}</text>'
        f'<text y="11" fill="currentColor" opacity=".7" font-size="9.5">{escape(box.below)}</text></g>'
    )
