"""Training: optimizers, losses, metrics, layers, models, datasets and files of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.names import answers as _answers
from pullback.train.custom_objects import custom_object_scope as custom_object_scope
from pullback.train.custom_objects import register_serializable as register_serializable
from pullback.train.optim.clipping import *
from pullback.train.optim.lbfgs import *
from pullback.train.optim.optimizers import *
from pullback.train.optim.schedules import *
from pullback.train.optim.step import Optimizer as Optimizer

if _TYPE_CHECKING:  # these are imported when first used: pullback/__init__.py names them
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

__all__ = [n for n, value in globals().items() if n[0] != "_" and callable(value)]
_answers.install_answers("pb.train")
