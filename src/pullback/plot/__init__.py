"""``pb.plot``: plots of functions, derivatives, programs, models and training; needs matplotlib (extra ``plot``)."""

from pullback.plot.functions import field as field
from pullback.plot.functions import function as function
from pullback.plot.graphs import graph as graph
from pullback.plot.graphs import model as model
from pullback.plot.training import confusion as confusion
from pullback.plot.training import filters as filters
from pullback.plot.training import gradients as gradients
from pullback.plot.training import history as history
from pullback.plot.training import weights as weights

__all__ = ["confusion", "field", "filters", "function", "gradients", "graph", "history", "model", "weights"]


def __dir__() -> list[str]:
    return sorted(__all__)
