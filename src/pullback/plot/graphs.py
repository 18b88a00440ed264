"""Pictures of programs and models as graphs, in SVG; they need no other package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from typing import Any

from pullback.diagnostics.monitor import GIVEN
from pullback.diagnostics.monitored_run import MonitoredRun
from pullback.diagnostics.record import RecordedStep, make_record
from pullback.display.graphs import GraphBox, Picture, draw_graph
from pullback.display.text import format_shape
from pullback.errors import ArgumentError


def graph(f: Callable[..., Any], *args: object, **kwargs: object) -> Picture:
    """Return a picture of a program: its ops, shapes, and the norms of gradients as colours.

    f: the function.
    args: its arguments.
    kwargs: its keyword arguments.

    A notebook shows the picture; ``picture.save("graph.svg")`` writes it.

    >>> import numpy as np, pullback as pb
    >>> picture = pb.plot.graph(lambda x: np.sum(np.tanh(x)), np.ones(3))
    >>> "tanh" in picture.svg and "float64[3]" in picture.svg
    True
    """
    if not callable(f):
        raise ArgumentError(f"plot.graph(f, *args): f must be a function, got {type(f).__name__}.")
    steps = make_record(MonitoredRun(f, args, kwargs), getattr(f, "__name__", "f")).steps
    norms = [s.cotangent.norm for s in steps if s.cotangent is not None and s.cotangent.norm]
    low, high = (log10(min(norms)), log10(max(norms))) if norms else (0.0, 0.0)
    return draw_graph([_make_box(step, low, high) for step in steps], "the program as a graph")


def _make_box(step: RecordedStep, low: float, high: float) -> GraphBox:
    """Return the box of a step; blue is stronger for larger gradients, magenta means not finite."""
    fill, gradient = "rgba(128,128,128,.1)", "no gradient"
    if step.cotangent is not None and step.cotangent.norm is not None:
        gradient = f"|g| {step.cotangent.norm:.3g}"
        if step.cotangent.norm:
            share = (log10(step.cotangent.norm) - low) / (high - low) if high > low else 1.0
            fill = f"rgba(49,130,206,{0.12 + 0.5 * share:.2f})"
    if step.value.nans or step.value.infinities or (step.cotangent and step.cotangent.nans):
        fill, gradient = "rgba(200,0,160,.35)", "not finite"
    below = f"{step.dtype}{list(step.shape)} {gradient}"
    title = "\n".join(step.rules)
    return GraphBox(step.name or step.op, below, step.inputs, fill=fill, title=title, is_input=step.op == GIVEN)


def model(model: Any) -> Picture:
    """Return a picture of a model: its layers in order, with their output shapes and parameter counts.

    model: a model of ``pb.sequential`` or ``pb.model``.

    >>> import pullback as pb
    >>> layers = [pb.layers.dense(4, input_shape=[3], name="first"), pb.layers.dense(1, name="last")]
    >>> "first" in pb.plot.model(pb.sequential(layers)).svg
    True
    """
    if not hasattr(model, "parts") or not hasattr(model, "get_config"):
        raise ArgumentError(f"plot.model: expected a model of pb.sequential or pb.model, got {type(model).__name__}.")
    names = {id(layer): name for name, layer in model.parts()}
    config = model.get_config()
    if "steps" not in config:  # one layer after the other
        layers = list(config["layers"])
        inputs: list[list[int]] = [[i] for i in range(len(layers))]
        boxes = [GraphBox("input", format_shape(model.shapes) if model.is_built() else "", [], is_input=True)]
    else:
        layers = [config["layers"][layer] for layer, _ in config["steps"]]
        inputs = [numbers for _, numbers in config["steps"]]
        boxes = [GraphBox(f"input {i}", format_shape(s), [], is_input=True) for i, s in enumerate(config["inputs"], 1)]
    boxes += [_make_layer_box(layer, names[id(layer)], numbers) for layer, numbers in zip(layers, inputs, strict=True)]
    return draw_graph(boxes, "the model as a graph")


def _make_layer_box(layer: Any, name: str, inputs: Sequence[int]) -> GraphBox:
    if not layer.is_built():
        return GraphBox(f"{name} ({layer.kind})", "not built yet", inputs)
    count = sum(v.size for v in layer.variables)
    shape = format_shape(layer.output_shape(*layer.shapes))
    return GraphBox(f"{name} ({layer.kind})", f"{shape} · {count:,} parameters" if count else shape, inputs)
