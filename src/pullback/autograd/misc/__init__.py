"""Helpers of autograd's: flattening, optimizers and fixed points."""

from pullback.autograd.misc.flatten import flatten as flatten
from pullback.autograd.misc.tracers import const_graph as const_graph
