"""A layered layout of a directed graph without cycles: nodes in rows, edges from top to bottom with few crossings.

Sugiyama's method: rows by the longest path, long edges through a place in each row that they pass (one for all edges of
a node), orders by the mean of the neighbours, then positions by the same mean as far as the row allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 8
GAP_X, GAP_Y = 24.0, 34.0  # between boxes, in pixels
PASSING = 10.0  # the width of a place that an edge passes


@dataclass(frozen=True)
class GraphLayout:
    """Where everything is: the middle of each node, the points of each edge, and the size of the whole."""

    nodes: Sequence[tuple[float, float]]
    edges: Mapping[tuple[int, int], Sequence[tuple[float, float]]]
    width: float
    height: float


def lay_out_graph(inputs: Sequence[Sequence[int]], widths: Sequence[float], height: float) -> GraphLayout:
    """Return the layout of nodes, of which each has the numbers of its inputs, all smaller than its own.

    inputs: for each node those that edges come from.
    widths: of the boxes.
    height: of every box.

    >>> layout = lay_out_graph([[], [], [0, 1]], [40.0, 40.0, 40.0], 20.0)
    >>> [y for _, y in layout.nodes]
    [10.0, 10.0, 64.0]
    >>> layout.nodes[0][0] < layout.nodes[2][0] < layout.nodes[1][0]
    True
    """
    rows, chains, count = _route_edges(inputs, _find_layers(inputs))
    spans = [*widths, *[PASSING] * (count - len(inputs))]
    above: list[list[int]] = [[] for _ in spans]
    below: list[list[int]] = [[] for _ in spans]
    for a, b in dict.fromkeys(pair for chain in chains.values() for pair in pairwise(chain)):
        above[b].append(a)
        below[a].append(b)
    _order_rows(rows, above, below)
    xs = _place_rows(rows, spans, above, below)
    ys = {place: height / 2 + layer * (height + GAP_Y) for layer, row in enumerate(rows) for place in row}
    points = [(x, ys[place]) for place, x in enumerate(xs)]
    wide = max((x + w / 2 for x, w in zip(xs, spans, strict=True)), default=0.0)
    tall = len(rows) * (height + GAP_Y) - GAP_Y if rows else 0.0
    return GraphLayout(
        points[: len(inputs)], {edge: [points[p] for p in chain] for edge, chain in chains.items()}, wide, tall
    )


def _route_edges(
    inputs: Sequence[Sequence[int]], layers: Sequence[int]
) -> tuple[list[list[int]], dict[tuple[int, int], list[int]], int]:
    """Return the rows of places, the places that each edge goes through, ends included, and the number of places.

    A place is a node, by its number, or a point where an edge passes a row; edges from one node share theirs.
    """
    count = len(inputs)
    chains: dict[tuple[int, int], list[int]] = {}
    trunks = [[node] for node in range(count)]  # a node and the places below it that its edges go through
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for node, layer in enumerate(layers):
        rows[layer].append(node)
    for node, sources in enumerate(inputs):
        for source in dict.fromkeys(sources):
            trunk = trunks[source]
            for layer in range(layers[source] + len(trunk), layers[node]):
                trunk.append(count)
                rows[layer].append(count)
                count += 1
            chains[source, node] = [*trunk[: layers[node] - layers[source]], node]
    return rows, chains, count


def _find_layers(inputs: Sequence[Sequence[int]]) -> list[int]:
    """Return the row of each node: one below its lowest input; a node without inputs just above its first use."""
    layers: list[int] = []
    for sources in inputs:
        layers.append(1 + max((layers[s] for s in sources), default=-1))
    first_use: dict[int, int] = {}
    for node, sources in enumerate(inputs):
        for source in sources:
            first_use[source] = min(first_use.get(source, layers[node]), layers[node])
    return [
        max(layer, first_use[node] - 1) if not inputs[node] and node in first_use else layer
        for node, layer in enumerate(layers)
    ]


def _order_rows(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Order each row by the mean position of the neighbours, downwards and upwards in turn."""
    position = {place: float(i) for row in rows for i, place in enumerate(row)}

    def arrange(row: list[int], near: list[list[int]]) -> None:
        row.sort(key=lambda p: sum(position[q] for q in near[p]) / len(near[p]) if near[p] else position[p])
        for i, place in enumerate(row):
            position[place] = float(i)

    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            arrange(row, above if sweep % 2 == 0 else below)


def _place_rows(
    rows: list[list[int]], widths: Sequence[float], above: list[list[int]], below: list[list[int]]
) -> list[float]:
    """Return the middle of each place: near the mean of its neighbours, without overlaps, beginning at 0."""
    xs = [0.0] * len(widths)
    for row in rows:
        _spread_row(row, [0.0] * len(row), widths, xs)
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [sum(xs[q] for q in near[p]) / len(near[p]) if near[p] else xs[p] for p in row]
            _spread_row(row, wanted, widths, xs)
    left = min((x - w / 2 for x, w in zip(xs, widths, strict=True)), default=0.0)
    return [x - left for x in xs]


def _spread_row(row: list[int], wanted: Sequence[float], widths: Sequence[float], xs: list[float]) -> None:
    """Place a row as near to what is wanted as its order and its gaps allow: the mean of pushing right and left."""

    def push(order: Sequence[int], sign: int) -> list[float]:
        found = [0.0] * len(row)
        edge = float("-inf")
        for i in order:
            half = widths[row[i]] / 2
            found[i] = sign * max(sign * wanted[i], edge + half)
            edge = sign * found[i] + half + GAP_X
        return found

    right, left = push(range(len(row)), 1), push(range(len(row) - 1, -1, -1), -1)
    for i, place in enumerate(row):
        xs[place] = (right[i] + left[i]) / 2
