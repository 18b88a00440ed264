"""Training: optimizers, losses, metrics, layers, models, datasets and files of weights."""

from __future__ import annotations

from pullback.names.answers import install_answers as _install_answers
from pullback.names.table import MODULES as _MODULES
from pullback.train import data as data
from pullback.train.custom_objects import custom_object_scope as custom_object_scope
from pullback.train.custom_objects import register_serializable as register_serializable
from pullback.train.io.saving import load as load
from pullback.train.io.saving import load_weights as load_weights
from pullback.train.io.saving import save as save
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
from pullback.train.nn.serialization import deserialize as deserialize
from pullback.train.nn.serialization import serialize as serialize
from pullback.train.optim.clipping import clip_global_norm as clip_global_norm
from pullback.train.optim.clipping import clip_norms as clip_norms
from pullback.train.optim.clipping import clip_values as clip_values
from pullback.train.optim.clipping import global_norm as global_norm
from pullback.train.optim.lbfgs import LBFGS as LBFGS
from pullback.train.optim.lbfgs import Solution as Solution
from pullback.train.optim.lbfgs import lbfgs as lbfgs
from pullback.train.optim.optimizers import adadelta as adadelta
from pullback.train.optim.optimizers import adafactor as adafactor
from pullback.train.optim.optimizers import adagrad as adagrad
from pullback.train.optim.optimizers import adam as adam
from pullback.train.optim.optimizers import adamax as adamax
from pullback.train.optim.optimizers import adamw as adamw
from pullback.train.optim.optimizers import ftrl as ftrl
from pullback.train.optim.optimizers import lamb as lamb
from pullback.train.optim.optimizers import lion as lion
from pullback.train.optim.optimizers import loss_scale_optimizer as loss_scale_optimizer
from pullback.train.optim.optimizers import momentum as momentum
from pullback.train.optim.optimizers import muon as muon
from pullback.train.optim.optimizers import nadam as nadam
from pullback.train.optim.optimizers import rmsprop as rmsprop
from pullback.train.optim.optimizers import schedule_free_adamw as schedule_free_adamw
from pullback.train.optim.optimizers import sgd as sgd
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

_install_answers(*[name for name, module in _MODULES.items() if module.startswith("pullback.train")])
