"""Optional packages: imported when a function that needs one is called, or an error that says how to install it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pullback.errors import MissingPackageError


def import_package(module: str, need: str, install: str) -> Any:
    """Return a module of an optional package.

    module: its name, such as ``"scipy.optimize"``.
    need: the beginning of the error if it is not installed, such as ``"lbfgs needs SciPy"``.
    install: what pip installs, such as ``"pullback[scipy]"``.

    >>> import_package("nowhere", "pb.f needs nowhere", "pullback[nowhere]")
    Traceback (most recent call last):
    ...
    pullback.errors.MissingPackageError: pb.f needs nowhere, which is not installed. Install it with: ...
    """
    try:
        return import_module(module)
    except ImportError:
        quoted = f"'{install}'" if "[" in install else install
        raise MissingPackageError(f"{need}, which is not installed. Install it with: pip install {quoted}") from None
