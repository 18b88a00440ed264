"""From a function to machine code: a pipeline, named here in the order in which a program goes through it.

trace, results, graph, rewrite, prepare, fuse, plan, kernels, vectormath, products, assembly, recipe, question, machine,
cache, native, entry.  What comes between rewriting and the recipe is opened by ``making``, when it is needed.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pullback.compiler import making as making


def __getattr__(name: str) -> object:
    if name != "making":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.making")
