"""Training: optimizers and what they take, from a gradient to parameters that fit."""

from __future__ import annotations

from pullback.names.answers import install_answers as _install_answers
from pullback.names.table import MODULES as _MODULES
from pullback.train import callbacks as callbacks
from pullback.train import data as data
from pullback.train import initializers as initializers
from pullback.train import layers as layers
from pullback.train import metrics as metrics
from pullback.train import regularizers as regularizers
from pullback.train.clipping import clip_global_norm as clip_global_norm
from pullback.train.clipping import clip_norms as clip_norms
from pullback.train.clipping import clip_values as clip_values
from pullback.train.clipping import global_norm as global_norm
from pullback.train.lbfgs import LBFGS as LBFGS
from pullback.train.lbfgs import Solution as Solution
from pullback.train.lbfgs import lbfgs as lbfgs
from pullback.train.optimizers import adadelta as adadelta
from pullback.train.optimizers import adagrad as adagrad
from pullback.train.optimizers import adam as adam
from pullback.train.optimizers import adamax as adamax
from pullback.train.optimizers import adamw as adamw
from pullback.train.optimizers import lion as lion
from pullback.train.optimizers import momentum as momentum
from pullback.train.optimizers import rmsprop as rmsprop
from pullback.train.optimizers import sgd as sgd
from pullback.train.saving import load as load
from pullback.train.saving import load_weights as load_weights
from pullback.train.saving import save as save
from pullback.train.schedules import Schedule as Schedule
from pullback.train.schedules import constant_rate as constant_rate
from pullback.train.schedules import cosine_decay as cosine_decay
from pullback.train.schedules import exponential_decay as exponential_decay
from pullback.train.schedules import one_cycle as one_cycle
from pullback.train.schedules import step_decay as step_decay
from pullback.train.schedules import warm_up as warm_up
from pullback.train.stepping import Optimizer as Optimizer

_install_answers(*[name for name, module in _MODULES.items() if module.startswith("pullback.train")])
