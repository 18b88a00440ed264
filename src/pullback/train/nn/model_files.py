"""Models from the files of TensorFlow.js and Keras."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from warnings import warn

from pullback.errors import PullbackError
from pullback.train.custom_objects import custom_object_scope
from pullback.train.io.checkpoints import read_model
from pullback.train.io.formats import find_format, read_layers_model
from pullback.train.io.model_json import read_topology
from pullback.train.io.saving import StrPath
from pullback.train.io.tfjs import parse_json
from pullback.train.io.topology import Builder
from pullback.train.io.training_config import make_training_error, restore_state
from pullback.train.nn.functional import Functional
from pullback.train.nn.layers.symbolic import input as make_input
from pullback.train.nn.models import Model
from pullback.train.nn.sequential import Sequential

BUILDER = Builder(make_input, Functional, Sequential)


def load_model(path: StrPath, custom_objects: Mapping[str, Any] | None = None, compile: bool = True) -> Model:
    """Return the model that ``model.save`` wrote, in any of its formats, or Keras or TensorFlow.js.

    Layers of your own are found by the names of their classes, which must be defined already or be given.

    path: the file.
    custom_objects: classes and functions of your own by their names in the file.
    compile: whether to compile the model with the optimizer, losses and metrics of the file, if it has them.

    >>> import os, tempfile
    >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.safetensors"))
    ...     again = pb.load_model(os.path.join(folder, "model.safetensors"))
    >>> again.predict([[1.0, 2.0]])
    array([[3.]], dtype=float32)
    """
    return _load(path, custom_objects, compile)


def _load(path: StrPath, custom_objects: Mapping[str, Any] | None, compile: bool) -> Model:
    with custom_object_scope(custom_objects):
        return _load_own(path, compile) if find_format(path) == "safetensors" else _load_layers(path, compile)


def _load_own(path: StrPath, compile: bool) -> Model:
    model: Model
    model, training = read_model(path)
    if training is not None and compile:
        model.compile(training.optimizer, **training.arguments)
    return model


def load_layers_model(path: StrPath, compile: bool = True, custom_objects: Mapping[str, Any] | None = None) -> Model:
    """Return the model of a file of TensorFlow.js or Keras, with its weights; files of ``model.save`` are read too.

    Nothing in a file is run.  An argument that is unknown here raises an error, unless it has no effect.

    path: a ``model.json`` of TensorFlow.js, or its folder; a ``.keras`` archive or an ``.h5`` file of Keras.
    compile: whether to compile the model with the optimizer, losses and metrics of the file, if it has them.
    custom_objects: classes and functions of your own by their names in the file.

    >>> import os, tempfile
    >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.json"))
    ...     sorted(os.listdir(folder))
    ...     again = pb.load_layers_model(os.path.join(folder, "model.json"))
    ['model.json', 'model.weights.bin']
    >>> again.predict([[1.0, 2.0]])
    array([[3.]], dtype=float32)
    """
    return _load(path, custom_objects, compile)


def _load_layers(path: StrPath, compile: bool) -> Model:
    model: Model
    model, settings, state = read_layers_model(path, BUILDER, compile)
    where = os.path.basename(os.fspath(path))
    if settings is not None:
        try:
            model.compile(settings.optimizer, **settings.arguments)
        except (PullbackError, TypeError) as error:
            raise make_training_error(where, error) from error
        if state is not None and not restore_state(model.optimizer, state, where):
            warn(
                f"load: the state of {model.optimizer.name} in {where} is left out, as its arrays are not those that "
                "Keras 3 lists for it: training goes on as from a new optimizer.",
                stacklevel=5,
            )
    return model


def model_from_json(text: str, custom_objects: Mapping[str, Any] | None = None) -> Model:
    """Return a model with the layers of JSON text from ``model.to_json`` of Keras, TensorFlow.js or here.

    text: the JSON; the weights, which it does not have, begin as the initializers say.
    custom_objects: classes and functions of your own by their names in the text.

    >>> text = pb.sequential([pb.layers.dense(3, input_shape=[2], name="first")]).to_json()
    >>> pb.model_from_json(text).get_layer("first").units
    3
    """
    data = parse_json(text, "model_from_json")
    with custom_object_scope(custom_objects):
        model: Model = read_topology(data, BUILDER, "model_from_json", in_browser=False)
    return model
