"""A model in a table: its layers, what comes out of them, and how many numbers are in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.train.nn.layers.base import Layer

__all__ = ["summary"]

Row = tuple[str, str, str]
UNKNOWN = "?"


def summary(model: Layer) -> str:
    """The layers of a model, the shapes that come out of them, and their parameters.

    >>> layers = [pb.layers.dense(4, input_shape=[3]), pb.layers.dense(1, use_bias=False)]
    >>> print(summary(pb.sequential(layers, name="small")))
    Model 'small' (sequential)
    Layer (kind)     Output shape  Parameters
    -----------------------------------------
    dense_1 (dense)  (batch, 4)            16
    dense_2 (dense)  (batch, 1)             4
    -----------------------------------------
    Parameters: 20, of which trainable 20, not trainable 0
    """
    rows = list(_rows(model))
    head: Row = ("Layer (kind)", "Output shape", "Parameters")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(3)]
    lines = [f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {count:>{widths[2]}}" for name, shape, count in [head, *rows]]
    rule = "-" * len(lines[0])
    return "\n".join([f"Model '{model.name}' ({model.kind})", lines[0], rule, *lines[1:], rule, _totals(model)])


def _totals(model: Layer) -> str:
    if not _is_built(model):
        return "Not built yet: parameters are made for the first input. Give input_shape, or call it once."
    sizes = [(v.size, v.trainable) for v in model.variables]
    total, trainable = sum(n for n, _ in sizes), sum(n for n, free in sizes if free)
    return f"Parameters: {total:,}, of which trainable {trainable:,}, not trainable {total - trainable:,}"


def _is_built(model: Layer) -> bool:
    return model._built and all(part._built for _, part in model.parts() if isinstance(part, Layer))


def _rows(model: Layer) -> Iterator[Row]:
    """What is counted once is not counted where it is used again."""
    seen: set[int] = set()
    for name, layer in model.parts():
        if not isinstance(layer, Layer):
            yield f"{name} (variable)", str(tuple(layer.shape)), f"{layer.size:,}"
            continue
        own = {id(v): v.size for v in layer.variables if id(v) not in seen}
        seen |= own.keys()
        count = f"{sum(own.values()):,}" if _is_built(layer) else UNKNOWN
        yield f"{name} ({layer.kind})", _said(layer.output_shape(*layer.shapes) if _is_built(layer) else None), count


def _said(shape: Any) -> str:
    if shape and isinstance(shape[0], tuple):  # of several results
        return ", ".join(map(_said, shape))
    return UNKNOWN if shape is None else f"({', '.join(['batch', *map(str, shape)])})"
