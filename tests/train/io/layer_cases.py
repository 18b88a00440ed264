"""A small model around every layer of ``pb.layers``: arguments by their names, and the first inputs that fit."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

import pullback as pb

# Values of arguments without a default, by name.
NEEDED: dict[str, Any] = {
    "activation": "tanh", "axes": -1, "dims": [2, 1], "filters": 2, "input_dim": 7, "key_dim": 3, "kernel_size": 2,
    "n": 2, "num_heads": 2, "output_dim": 3, "rate": 0.25, "stddev": 0.1, "target_shape": [-1, 2], "units": 3,
    "height": 4, "width": 4, "scale": 0.5, "num_tokens": 7, "sequence_length": 4, "factor": 0.2, "groups": 2,
    "size": 2, "cropping": 1, "strength": 0.3, "output_size": 2, "equation": "abc,cd->abd", "head_dim": 2,
    "num_query_heads": 4, "num_key_value_heads": 2, "height_factor": 0.2, "width_factor": 0.2, "num_bins": 3,
}  # fmt: skip
SHAPES: list[list[tuple[int, ...]]] = [
    [(4, 6)], [(6,)], [(6, 6, 2)], [(4, 4, 4, 2)], [(3, 6, 6, 2)], [(4, 6), (4, 6)], [(6,), (6,)], [(3, 4, 4, 4, 2)],
]  # fmt: skip
WHOLE = ("Embedding", "CategoryEncoding", "TokenAndPositionEmbedding", "ReversibleEmbedding")  # take whole numbers
NO_FILE = (  # bases, what functional models are made of, cells, a function, and layers of text
    "Hashing", "IntegerLookup", "Lambda", "Layer", "RandomLayer", "RecurrentCell", "SelectOutput", "StringLookup",
    "TextVectorization", "Wrapper", "ConvLstm2dCell", "InputLayer", "GruCell", "LstmCell", "SimpleRnnCell",
    "StackedRnnCells",
)  # fmt: skip
FURTHER: dict[str, dict[str, Any]] = {  # arguments that have a default which fits no input
    "MelSpectrogram": {"fft_length": 4, "sequence_stride": 2, "num_mel_bins": 3}, "RandomPosterization": {"factor": 4},
    "EinsumDense": {"output_shape": [None, 4]}, "GroupNormalization": {"groups": 2},
    "Discretization": {"bin_boundaries": [0.0, 1.0]},
}  # fmt: skip


def list_layers() -> list[str]:
    """Return the names of all layer classes."""
    found = [x for x in vars(pb.layers).values() if inspect.isclass(x) and issubclass(x, pb.layers.Layer)]
    return sorted({x.__name__ for x in found} - set(NO_FILE))


def find_inner(name: str, argument: str) -> Any:
    """Return the layer or cell that a wrapper is given."""
    if argument == "cells":
        return [pb.layers.LstmCell(3), pb.layers.GruCell(2)]
    if argument == "cell":
        return pb.layers.LstmCell(3)
    return pb.layers.lstm(2) if name == "Bidirectional" else pb.layers.dense(3)


def make_layer(name: str) -> Any:
    """Return a layer of this class with few numbers."""
    kind = getattr(pb.layers, name)
    needed = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
    return kind(**{
        one: NEEDED[one] if one in NEEDED else find_inner(name, one) for one in needed
    } | FURTHER.get(name, {}))  # fmt: skip


def make_inputs(name: str, shapes: list[tuple[int, ...]], rng: np.random.Generator) -> list[Any]:
    if name in WHOLE:
        return [rng.integers(0, 7, (2, *shape)).astype(np.float32) for shape in shapes]
    return [rng.normal(size=(2, *shape)).astype(np.float32) for shape in shapes]


def make_model(name: str) -> tuple[Any, list[Any]]:
    """Return a functional model of the layer alone, with random weights, and inputs."""
    rng, errors = np.random.default_rng(3), []
    for shapes in SHAPES:
        inputs = make_inputs(name, shapes, rng)
        try:
            xs = [pb.input(shape) for shape in shapes]
            model = pb.model(xs, make_layer(name)(*xs))
            model.predict(inputs if len(inputs) > 1 else inputs[0])
        except Exception as error:
            errors.append(f"{shapes}: {error}")
            continue
        for v in model.variables:
            drawn = rng.uniform(0.2, 1.0, v.shape) if "variance" in v.name else rng.normal(size=v.shape) / 2
            v.assign(drawn.astype(v.dtype))
        return model, inputs
    raise AssertionError(f"{name}: no inputs fit. {errors}")


def as_list(outputs: Any) -> list[Any]:
    """Return the outputs of ``predict`` in a list."""
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def predict(model: Any, inputs: list[Any]) -> list[Any]:
    """Return the outputs of a model for inputs in a list."""
    return as_list(model.predict(inputs if len(inputs) > 1 else inputs[0]))


def iterate_models() -> Iterator[tuple[str, Any, list[Any]]]:
    """Iterate over names, models and inputs of every layer."""
    for name in list_layers():
        yield name, *make_model(name)
