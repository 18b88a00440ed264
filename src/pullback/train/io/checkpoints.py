"""Write and read models and checkpoints: structure as JSON, variables, optimizer state, the position in a training."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from pullback.core.variable import Variable, index_by_name
from pullback.errors import CheckpointError, DataError
from pullback.train.io.saving import StrPath, assign_all, load, save
from pullback.train.io.structure import describe, rebuild
from pullback.train.io.training_config import CompileSettings
from pullback.train.optim import optimizers, schedules
from pullback.train.optim.step import Optimizer
from pullback.typing import Shape


class StoredModel(Protocol):
    """The interface of a model that is written to a file or read from one."""

    name: str

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of its inputs without the batch; empty before it has variables."""

    @property
    def variables(self) -> list[Variable]:
        """All variables."""

    def named_variables(self) -> dict[str, Variable]:
        """Return all variables by their places in the model."""

    def build_for(self, shapes: Sequence[Shape]) -> None:
        """Make the variables for inputs of these shapes."""


class OptimizerCopy(NamedTuple):
    """An optimizer without its variables: how it is made, and its state by places in the model."""

    make: Callable[..., Optimizer]
    config: dict[str, Any]
    state: dict[str, Any]


# ---- write


def write_model(
    path: StrPath, model: StoredModel, optimizer: Optimizer | None, arguments: Mapping[str, Any] | None
) -> None:
    """Write everything that ``read_model`` needs; ``arguments`` are those of ``compile``, if all have names."""
    content = {"model": json.dumps(describe(model, model.name)), **_collect_values(model, optimizer)}
    if optimizer is not None and arguments is not None:
        content |= _describe_training(optimizer, arguments)
    save(path, content)


def write_checkpoint(
    path: StrPath,
    model: StoredModel,
    optimizer: Optimizer | None,
    training: Mapping[str, Any] | None,
    callbacks: Mapping[str, Any] | None,
) -> None:
    """Write what resuming a training needs; the program that resumes makes the model itself."""
    save(path, {**_collect_values(model, optimizer), "training": json.dumps(training), "callbacks": callbacks})


def _collect_values(model: StoredModel, optimizer: Optimizer | None) -> dict[str, Any]:
    """Return the variables by their places, the shapes of the inputs, and the optimizer's state."""
    found: dict[str, Any] = {"weights": model.named_variables(), "shapes": json.dumps(model.shapes)}
    if optimizer is not None:
        found["optimizer"] = _collect_state(model, optimizer)
    return found


def _collect_state(model: StoredModel, optimizer: Optimizer) -> dict[str, Any]:
    """Return the optimizer's state of this model's variables, slots named by the places of their variables."""
    variables = model.named_variables()
    index_by_name(variables.values(), f"{model.name}.save")
    places = {v.name: place for place, v in variables.items()}
    state = optimizer.state_dict()  # may have slots of another model's variables too
    return {_rename_slot(k, places): x for k, x in state.items() if "/" not in k or _variable_name(k) in places}


def _describe_training(optimizer: Optimizer, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        config = describe(optimizer.get_config(), "optimizer")
    except CheckpointError:  # a learning rate that is a function of the user's
        return {}
    return {"learning": json.dumps({"optimizer": optimizer.name, "config": config, **arguments})}


def _rename_slot(key: str, names: Mapping[str, str]) -> str:
    """Return a slot's name with the name of its variable replaced."""
    variable, _, slot = key.rpartition("/")
    return f"{names[variable]}/{slot}" if variable in names else key


def _variable_name(key: str) -> str:
    """Return the name of the variable that a slot belongs to."""
    return key.rpartition("/")[0]


# ---- read


def read_checkpoint(path: StrPath, model: StoredModel, optimizer: Optimizer | None) -> tuple[Any, Any]:
    """Load a file into the model and its optimizer; return the position in training and the callbacks' state."""
    found = _load_values(path, model.name)
    where = os.path.basename(os.fspath(path))
    _build(model, found)
    before = [(v, v.held) for v in model.variables]
    assign_all(f"load: {where}", found["weights"], model.named_variables(), casts=False)
    try:
        _load_state(model, optimizer, found.get("optimizer"))
    except DataError as error:
        for v, value in before:
            v.hold(value.value)
        raise CheckpointError(
            f"load: {where} was written with another optimizer, so nothing was assigned. {error} "
            "For the variables alone: model.set_weights(pb.train.load(path)['weights'])."
        ) from error
    return (json.loads(found["training"]) if "training" in found else None), found.get("callbacks")


def read_model(path: StrPath) -> tuple[Any, CompileSettings | None]:
    """Return the model that ``write_model`` wrote, and what it was compiled with if the file has that."""
    found = _load_values(path, "load_model")
    where = os.path.basename(os.fspath(path))
    if "model" not in found:
        raise CheckpointError(
            f"load_model: {where} holds variables, but not the model they are of. Make the model and use "
            "model.load_checkpoint(path)."
        )
    makers = {name: getattr(schedules, name) for name in schedules.__all__}
    model = rebuild(json.loads(found["model"]), where, makers)
    _build(model, found)
    assign_all(f"load_model: {where}", found["weights"], model.named_variables(), casts=False)
    if "learning" not in found:
        return model, None
    training = json.loads(found["learning"])
    optimizer = getattr(optimizers, training["optimizer"])(**rebuild(training["config"], where, makers))
    _load_state(model, optimizer, found.get("optimizer"))
    arguments = {key: value for key, value in training.items() if key not in ("optimizer", "config")}
    return model, CompileSettings(optimizer, arguments)


def _load_values(path: StrPath, subject: str) -> dict[str, Any]:
    found = load(path)
    if not isinstance(found, dict) or not isinstance(found.get("weights"), dict):
        raise CheckpointError(
            f"{subject}: {os.path.basename(os.fspath(path))} was not written by model.save or a checkpoint. "
            "pb.train.load reads other safetensors files."
        )
    return found


def _build(model: StoredModel, found: Mapping[str, Any]) -> None:
    """Make the variables of a model without any, for the input shapes of the saved one."""
    shapes = json.loads(found.get("shapes", "[]"))
    if shapes and not model.variables:
        model.build_for([tuple(shape) for shape in shapes])


def _load_state(model: StoredModel, optimizer: Optimizer | None, state: Mapping[str, Any] | None) -> None:
    """Load an optimizer's state, in which slots are named by places in the model."""
    if optimizer is None or state is None:
        return
    variables = model.named_variables()
    own = {v.name for v in variables.values()}
    names = {place: v.name for place, v in variables.items()}
    new = {_rename_slot(key, names): x for key, x in state.items()}
    stored = {_variable_name(key) for key in new}
    # Slots of other models' variables stay; those of this model that the file does not have start anew.
    now = {k: x for k, x in optimizer.state_dict().items() if "/" in k and _variable_name(k) not in stored}
    for key, x in now.items():
        new[key] = np.full_like(x, optimizer.get_initial_value(key)) if _variable_name(key) in own else x
    optimizer.load_state_dict(new, [v for v in variables.values() if v.name in stored])


# ---- copies of models


def copy_optimizer(model: StoredModel, optimizer: Optimizer) -> OptimizerCopy:
    """Return what ``restore_optimizer`` needs to make the same optimizer for a copy of the model."""
    return OptimizerCopy(optimizer.maker, optimizer.get_config(), _collect_state(model, optimizer))


def restore_optimizer(model: StoredModel, copy: OptimizerCopy) -> Optimizer:
    """Return the optimizer that ``copy_optimizer`` was given, for the variables of this model."""
    optimizer = copy.make(**copy.config)
    _load_state(model, optimizer, copy.state)
    return optimizer
