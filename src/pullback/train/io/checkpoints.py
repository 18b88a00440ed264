"""Models in files: structure as JSON, numbers by their places, the optimizer's state, the place in a training."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pullback.core.variable import by_name
from pullback.errors import CheckpointError, DataError
from pullback.train.io.saving import load, put, save
from pullback.train.io.structure import built, described
from pullback.train.optim import optimizers, schedules

__all__ = [
    "read_checkpoint", "read_model", "with_variables", "without_variables", "write_checkpoint", "write_model",
]  # fmt: skip


def write_model(path: Any, model: Any) -> None:
    """Everything that ``read_model`` needs to make the model again."""
    save(path, {"model": json.dumps(described(model, model.name)), **_numbers(model), **_learning(model)})


def write_checkpoint(path: Any, model: Any, training: Any, callbacks: Any) -> None:
    """Everything that goes on from here needs; the model itself is made by the program that reads it."""
    save(path, {**_numbers(model), "training": json.dumps(training), "callbacks": callbacks})


def _numbers(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"weights": model.named_variables(), "shapes": json.dumps(model.shapes)}
    if model.optimizer is not None:
        by_name(found["weights"].values(), f"{model.name}.save")
        called = {v.name: place for place, v in found["weights"].items()}
        state = model.optimizer.state_dict()  # of which another model may have a part
        found["optimizer"] = {
            _renamed(k, called): x for k, x in state.items() if "/" not in k or _variable(k) in called
        }
    return found


def _learning(model: Any) -> dict[str, Any]:
    """What it learns with, if names say it all; else the program that reads it says it again."""
    if model.optimizer is None or not all(one.named for one in (*model._objectives, *model._metrics)):
        return {}
    try:
        config = described(model.optimizer.get_config(), "optimizer")
    except CheckpointError:  # a learning rate that is a function of the user's
        return {}
    losses, metrics = ([one.name for one in group] for group in (model._objectives, model._metrics))
    said = {"optimizer": model.optimizer.name, "config": config, "loss": losses, "metrics": metrics}
    return {"learning": json.dumps(said)}


def _renamed(key: str, called: Mapping[str, str]) -> str:
    """A slot's name with the name of its variable replaced."""
    variable, _, slot = key.rpartition("/")
    return f"{called[variable]}/{slot}" if variable in called else key


def _variable(key: str) -> str:
    """The name of the variable that a slot belongs to."""
    return key.rpartition("/")[0]


def read_checkpoint(path: Any, model: Any) -> Any:
    """Put what is in the file into the model and its optimizer; gives the place in training and what callbacks know."""
    found = _opened(path, model.name)
    where = os.path.basename(os.fspath(path))
    _build(model, found)
    before = [(v, v.held) for v in model.variables]
    put(f"load: {where}", found["weights"], model.named_variables(), casts=False)
    try:
        _put_state(model, found.get("optimizer"))
    except DataError as error:
        for v, held in before:
            v.hold(held.value)
        raise CheckpointError(
            f"load: {where} was written with another optimizer, so nothing was assigned. {error} "
            "For the variables alone: model.set_weights(pb.train.load(path)['weights'])."
        ) from error
    return (json.loads(found["training"]) if "training" in found else None), found.get("callbacks")


def _put_state(model: Any, state: Any) -> None:
    if model.optimizer is None or state is None:
        return
    optimizer, places = model.optimizer, model.named_variables()
    own = {v.name for v in places.values()}
    names = {place: v.name for place, v in places.items()}
    new = {_renamed(key, names): x for key, x in state.items()}
    told = {_variable(key) for key in new}
    # What is kept of variables of other models stays; what the file does not tell of begins anew.
    now = {k: x for k, x in optimizer.state_dict().items() if "/" in k and _variable(k) not in told}
    for key, x in now.items():
        new[key] = np.full_like(x, optimizer.start_of(key)) if _variable(key) in own else x
    optimizer.load_state_dict(new, [v for v in places.values() if v.name in told])


def read_model(path: Any) -> Any:
    """The model that ``write_model`` wrote, with its variables, and what it learns with if that was named."""
    found = _opened(path, "load_model")
    where = os.path.basename(os.fspath(path))
    if "model" not in found:
        raise CheckpointError(
            f"load_model: {where} holds variables, but not the model they are of. Make the model and use "
            "model.load_checkpoint(path)."
        )
    makers = {name: getattr(schedules, name) for name in schedules.__all__}
    model = built(json.loads(found["model"]), where, makers)
    _build(model, found)
    put(f"load_model: {where}", found["weights"], model.named_variables(), casts=False)
    if "learning" in found:
        said = json.loads(found["learning"])
        config = built(said["config"], where, makers)
        model.compile(getattr(optimizers, said["optimizer"])(**config), said["loss"], said["metrics"])
        _put_state(model, found.get("optimizer"))
    return model


def _build(model: Any, found: Mapping[str, Any]) -> None:
    """Make the variables of a model that has seen no input yet, for the shapes that the saved one had seen."""
    shapes = json.loads(found.get("shapes", "[]"))
    if shapes and not model.variables:
        model.built_for([tuple(shape) for shape in shapes])


def without_variables(model: Any) -> Any:
    """What a copy of a model learns with: the kind and arguments of its optimizer, and its state by places."""
    if model.optimizer is None:
        return None
    return model.optimizer.maker, model.optimizer.get_config(), _numbers(model)["optimizer"]


def with_variables(model: Any) -> None:
    """Make an optimizer of what ``without_variables`` gave, for the variables that the model has now."""
    if model.optimizer is not None:
        maker, config, state = model.optimizer
        model.optimizer = maker(**config)
        _put_state(model, state)


def _opened(path: Any, what: str) -> dict[str, Any]:
    found = load(path)
    if not isinstance(found, dict) or not isinstance(found.get("weights"), dict):
        raise CheckpointError(
            f"{what}: {os.path.basename(os.fspath(path))} was not written by model.save or a checkpoint. "
            "pb.train.load reads other safetensors files."
        )
    return found
