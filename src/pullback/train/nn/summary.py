"""The summary of a model: a table of its layers, their output shapes and their parameter counts."""

from __future__ import annotations

from collections.abc import Iterator

from pullback.display.html import render_frame, render_table
from pullback.display.text import UNKNOWN, align_columns, format_shape
from pullback.train.nn.layers.base import Layer

Row = tuple[str, ...]


def format_summary(model: Layer, expand_nested: bool = False, show_trainable: bool = False) -> str:
    """Return a table of a model's layers, their output shapes and their parameter counts.

    ``expand_nested`` lists the layers inside layers too, ``show_trainable`` says which are trained.

    >>> layers = [pb.layers.dense(4, input_shape=[3]), pb.layers.dense(1, use_bias=False)]
    >>> print(format_summary(pb.sequential(layers, name="small")))
    Model 'small' (sequential)
    Layer (kind)     Output shape  Parameters
    -----------------------------------------
    dense_1 (dense)  (batch, 4)            16
    dense_2 (dense)  (batch, 1)             4
    -----------------------------------------
    Parameters: 20, of which trainable 20, not trainable 0
    """
    head = ("Layer (kind)", "Output shape", "Parameters", *["Trainable"] * show_trainable)
    lines = align_columns([head, *_make_rows(model, expand_nested, show_trainable)], right=[2])
    rule = "-" * len(lines[0])
    return "\n".join([f"Model '{model.name}' ({model.kind})", lines[0], rule, *lines[1:], rule, _format_totals(model)])


def show_summary(model: Layer) -> str:
    """Return the summary as HTML, for notebooks.

    >>> "dense_1 (dense)" in show_summary(pb.sequential([pb.layers.dense(4, input_shape=[3], name="dense_1")]))
    True
    """
    rows = render_table(["layer (kind)", "output shape", "parameters"], _make_rows(model), right=[2])
    return render_frame(f"Model {model.name}", [model.kind], rows, _format_totals(model))


def _format_totals(model: Layer) -> str:
    if not model.is_built():
        return "Not built yet: parameters are made for the first input. Give input_shape, or call it once."
    sizes = [(v.size, v.trainable) for v in model.variables]
    total, trainable = sum(n for n, _ in sizes), sum(n for n, free in sizes if free)
    return f"Parameters: {total:,}, of which trainable {trainable:,}, not trainable {total - trainable:,}"


def _make_rows(
    model: Layer, expand_nested: bool = False, show_trainable: bool = False, indent: str = ""
) -> Iterator[Row]:
    """Iterate over the rows; variables that layers share are counted once."""
    seen: set[int] = set()
    for name, layer in model.parts():
        trained = [("yes" if layer.trainable else "no")] * show_trainable
        if not isinstance(layer, Layer):
            yield f"{indent}{name} (variable)", str(tuple(layer.shape)), f"{layer.size:,}", *trained
            continue
        sizes = {id(v): v.size for v in layer.variables if id(v) not in seen}
        seen |= sizes.keys()
        count = f"{sum(sizes.values()):,}" if layer.is_built() else UNKNOWN
        yield (
            f"{indent}{name} ({layer.kind})",
            format_shape(layer.output_shape(*layer.shapes) if layer.is_built() else None),
            count,
            *trained,
        )
        if expand_nested and any(isinstance(part, Layer) for _, part in layer.parts()):
            yield from _make_rows(layer, True, show_trainable, f"{indent}  ")
