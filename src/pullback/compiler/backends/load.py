"""Find the array library of a backend by its name."""

from __future__ import annotations

from typing import Any

from pullback.compiler.backends.cupy import Cupy
from pullback.compiler.backends.jax import Jax
from pullback.compiler.backends.library import Library
from pullback.compiler.backends.torch import Torch
from pullback.errors import CompileError

__all__ = ["LIBRARIES", "load_library"]

LIBRARIES = {library.name: library for library in (Jax, Torch, Cupy)}


def load_library(name: str, device: Any) -> Library:
    """Return the library of a backend, on a device of its; raise CompileError if it is not installed."""
    try:
        return LIBRARIES[name](device)
    except ImportError as error:
        raise CompileError(
            f"compile: backend={name!r} needs the package {name}, which cannot be imported here ({error}). "
            "Install it, or leave the backend out."
        ) from error
