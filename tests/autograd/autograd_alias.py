"""A plugin of pytest by which `import autograd` finds `pullback.autograd`; script/autograd_tests uses it."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import pullback.autograd

FACE = "pullback.autograd"


def alias_modules() -> None:
    """Enter every module of the package under autograd's own name."""
    for module in pkgutil.walk_packages(pullback.autograd.__path__, f"{FACE}."):
        importlib.import_module(module.name)
    for name in [n for n in sys.modules if n == FACE or n.startswith(f"{FACE}.")]:
        sys.modules[name.removeprefix("pullback.")] = sys.modules[name]


alias_modules()
