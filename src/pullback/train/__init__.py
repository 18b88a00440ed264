"""Training: optimizers, losses, metrics, layers, models, datasets and files of weights."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.names import answers as _answers
from pullback.train.custom_objects import custom_object_scope as custom_object_scope
from pullback.train.custom_objects import register_serializable as register_serializable
from pullback.train.optim.clipping import *
from pullback.train.optim.lbfgs import *
from pullback.train.optim.optimizers import *
from pullback.train.optim.schedules import Schedule as Schedule
from pullback.train.optim.schedules import constant_rate as constant_rate
from pullback.train.optim.schedules import cosine_decay as cosine_decay
from pullback.train.optim.schedules import cosine_decay_restarts as cosine_decay_restarts
from pullback.train.optim.schedules import exponential_decay as exponential_decay
from pullback.train.optim.schedules import inverse_time_decay as inverse_time_decay
from pullback.train.optim.schedules import one_cycle as one_cycle
from pullback.train.optim.schedules import piecewise_constant_decay as piecewise_constant_decay
from pullback.train.optim.schedules import polynomial_decay as polynomial_decay
from pullback.train.optim.schedules import step_decay as step_decay
from pullback.train.optim.schedules import warm_up as warm_up
from pullback.train.optim.step import Optimizer as Optimizer

if _TYPE_CHECKING:
    from pullback.train import data as data
    from pullback.train.io.saving import *
    from pullback.train.loop import callbacks as callbacks
    from pullback.train.loop import losses as losses
    from pullback.train.loop import metrics as metrics
    from pullback.train.loop.metrics.ctc import ctc_decode as ctc_decode
    from pullback.train.loop.metrics.ctc import ctc_loss as ctc_loss
    from pullback.train.nn import constraints as constraints
    from pullback.train.nn import initializers as initializers
    from pullback.train.nn import layers as layers
    from pullback.train.nn import regularizers as regularizers
    from pullback.train.nn.policies import global_policy as global_policy
    from pullback.train.nn.policies import set_global_policy as set_global_policy
    from pullback.train.nn.serialization import *

# A training loop of the user's own needs an optimizer, which takes 5 ms to import; all of it takes 300.
_LATER = {  # modules that are imported when first used, with their names here
    "data": ["data"],
    "io.saving": ["load", "load_weights", "save"],
    "loop.callbacks": ["callbacks"],
    "loop.losses": ["losses"],
    "loop.metrics": ["metrics"],
    "loop.metrics.ctc": ["ctc_decode", "ctc_loss"],
    "nn.constraints": ["constraints"],
    "nn.initializers": ["initializers"],
    "nn.layers": ["layers"],
    "nn.policies": ["global_policy", "set_global_policy"],
    "nn.regularizers": ["regularizers"],
    "nn.serialization": ["deserialize", "serialize"],
}
_PATHS = {name: path for path, names in _LATER.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PATHS:
        raise _answers.make_name_error("pb.train", name)
    module = _import_module(f"pullback.train.{_PATHS[name]}")
    is_module = module.__name__.endswith(f".{name}")
    value = module if is_module else _answers.check_keywords(getattr(module, name), __name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [n for n, value in globals().items() if n[0] != "_" and callable(value)] + [*_PATHS]  # noqa: PLE0604  # they are strings
_answers.install_answers("pb.train")
