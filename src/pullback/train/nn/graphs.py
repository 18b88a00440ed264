"""Graphs of symbolic tensors: their order, the names of their layers, and running them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pullback.errors import ArgumentError
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.symbolic import SelectOutput, SymbolicTensor

SymbolicTensors = SymbolicTensor | Sequence[SymbolicTensor] | Mapping[str, SymbolicTensor]


def list_tensors(tensors: SymbolicTensors) -> tuple[list[SymbolicTensor], list[str] | None]:
    """Return the inputs or outputs of a model in a list, and their keys if they are given as a dict."""
    if isinstance(tensors, SymbolicTensor):
        return [tensors], None
    return (list(tensors.values()), list(tensors)) if isinstance(tensors, Mapping) else (list(tensors), None)


def name_tensors(tensors: list[SymbolicTensor], keys: Sequence[str] | None) -> SymbolicTensors:
    """Return the tensors as a dict, if there are keys."""
    return tensors if keys is None else dict(zip(keys, tensors, strict=True))


def _fill_settings(settings: Mapping[str, Any], values: Mapping[int, Any]) -> dict[str, Any]:
    """Return the settings of a step with values in place of symbolic tensors."""
    return {key: values[id(x)] if isinstance(x, SymbolicTensor) else x for key, x in settings.items()}


def run_steps(steps: Sequence[SymbolicTensor], values: dict[int, Any]) -> None:
    """Compute the symbolic tensors, each after its inputs; ``values`` has those of the inputs, and gets theirs."""
    for step in steps:
        if step.layer is not None:
            inputs: list[Any] = [values[id(p)] for p in step.inputs]
            inputs = [inputs] if step.layer.takes_list_of(len(inputs)) else inputs
            settings = _fill_settings(step.settings, values) if step.settings else {}
            out = step.layer(*inputs, **settings)
            values[id(step)] = tuple(out.values()) if isinstance(out, dict) else out


def encode_settings(settings: Mapping[str, Any], number: Mapping[int, int]) -> dict[str, Any]:
    """Return the settings of a step as data: symbolic tensors by their numbers."""
    return {
        key: {"step": number[id(x)]} if isinstance(x, SymbolicTensor) else {"value": x} for key, x in settings.items()
    }


def decode_settings(settings: Mapping[str, Any], every: Sequence[SymbolicTensor]) -> dict[str, Any]:
    """Return the settings that ``encode_settings`` encoded."""
    return {key: every[x["step"]] if "step" in x else x["value"] for key, x in settings.items()}


def check_host_layers(name: str, front: Sequence[Layer]) -> None:
    """Raise an error if a layer in front of one that cannot be compiled has something to train."""
    for layer in front:
        if layer.trainable_variables:
            raise ArgumentError(
                f"{name}: layer '{layer.name}' trains, and is or has a layer that cannot be compiled, or comes before "
                "one. Put layers for text in front of the outermost model, or compile it with eager=True."
            )


def name_layers(layers: Sequence[Layer], name: str) -> dict[str, Layer]:
    """Return the layers by their names in the model: the given one, or the kind and a number."""
    counts: Counter[str] = Counter()
    found: dict[str, Layer] = {}
    taken = {layer.name for layer in layers if not layer.numbered}
    for layer in layers:
        counts[layer.kind] += 1
        while layer.numbered and f"{layer.kind}_{counts[layer.kind]}" in taken:
            counts[layer.kind] += 1
        called = f"{layer.kind}_{counts[layer.kind]}" if layer.numbered else layer.name
        if called in found:
            raise ArgumentError(f"{name}: two layers are called {called!r}. Give one another name.")
        found[called] = layer
    return found


def find_source(step: SymbolicTensor) -> SymbolicTensor:
    """Return the output of several that this one was selected from, or itself."""
    return step.inputs[0] if isinstance(step.layer, SelectOutput) else step


def sort_steps(inputs: list[SymbolicTensor], outputs: list[SymbolicTensor], name: str) -> list[SymbolicTensor]:
    """Return the symbolic tensors that outputs depend on, each after its inputs."""
    order: list[SymbolicTensor] = []
    done = {id(p) for p in inputs}
    todo = [(p, False) for p in reversed(outputs)]
    while todo:
        step, ready = todo.pop()
        if ready:
            order.append(step)
        elif id(step) not in done:
            done.add(id(step))
            if step.layer is None:
                raise ArgumentError(f"{name}: an output needs an input of shape {step.shape} that is not among inputs.")
            todo.append((step, True))
            todo.extend((p, False) for p in reversed(step.sources))
    return order


def sort_layers(order: list[SymbolicTensor], outputs: list[SymbolicTensor]) -> list[Layer]:
    """Return the layers as Keras and TensorFlow.js order them: by their distance from the outputs, then as found.

    The distance of a layer is that of its farthest application; so it is for the layers that it is applied to.
    """
    depths: dict[int, int] = {}  # of applications
    of_layers: dict[int, int] = {}
    for step in reversed(order):
        depth = depths.get(id(step), 0)
        if not isinstance(step.layer, SelectOutput):  # which is no layer there
            depth = of_layers[id(step.layer)] = max(depth, of_layers.get(id(step.layer), 0))
        below = depth if isinstance(step.layer, SelectOutput) else depth + 1
        for source in step.sources:
            depths[id(source)] = max(depths.get(id(source), 0), below)
    found: dict[int, Layer] = {}  # in the order of a walk from the outputs
    todo, known = list(reversed(outputs)), {id(step) for step in order}
    while todo:
        step = todo.pop()
        if id(step) in known and step.layer is not None:
            known.discard(id(step))
            found.setdefault(id(step.layer), step.layer)
            todo.extend(reversed(step.sources))
    return sorted(found.values(), key=lambda layer: -of_layers.get(id(layer), 0))
