"""Run a graph by the functions of another array library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from warnings import warn

import numpy as np

from pullback.compiler.backends.cupy import Cupy
from pullback.compiler.backends.jax import Jax
from pullback.compiler.backends.library import Library
from pullback.compiler.backends.nodes import GraphRunner
from pullback.compiler.backends.torch import Torch
from pullback.compiler.ir.graph import Graph
from pullback.compiler.runtime.numpy_executor import run_again
from pullback.errors import CompileError

LIBRARIES = {library.name: library for library in (Jax, Torch, Cupy)}


def load_library(name: str, device: object) -> Library:
    """Return the library of a backend, on a device of its; raise CompileError if it is not installed."""
    try:
        return LIBRARIES[name](device)
    except ImportError as error:
        raise CompileError(
            f"compile: backend={name!r} needs the package {name}, which cannot be imported here ({error}). "
            "Install it, or leave the backend out."
        ) from error


class LibraryExecutor:
    """Evaluates the nodes of a graph in order, on the library's arrays; host ops copy theirs to the host and back."""

    def __init__(self, graph: Graph, library: Library, traced: Graph | None = None) -> None:
        self.library, self.stats = library, dict[str, float]()
        self.checked = traced if traced is not None and traced.checks else None
        run = GraphRunner(library, graph)
        self.host_ops = run.host_ops
        if self.host_ops:
            warn(
                f"compile: backend={library.name!r} has no {', '.join(dict.fromkeys(self.host_ops))}: NumPy runs this "
                "on the host, and its arguments and results are copied in every call.", stacklevel=6,
            )  # fmt: skip
        self.run = library.prepare(run)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        library = self.library
        results = self.run([x if library.is_own(x) else library.enter(x) for x in values])
        if self.checked is not None and library.leave(results.pop()):
            results = run_again(self.checked, [library.leave(x) if library.is_own(x) else x for x in values])
            return [library.enter(x) for x in results] if library.device is not None else results
        return results if library.device is not None else [np.array(library.leave(x)) for x in results]
