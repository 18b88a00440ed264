"""``scipy.fft`` on tensors, through SciPy's protocol of backends: registered when SciPy's module is imported.

Importing this does not import SciPy: a finder that waits for ``scipy.fft`` takes a look at each new import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pullback.core.tensor import LATER, Tensor

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__: list[str] = []

MODULE = "scipy.fft"


class Backend:
    """The backend of ``scipy.fft`` for tensors; for all else it is not responsible."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
            return NotImplemented
        function = getattr(LATER["scipy_fft"](), method.__name__, None)
        return NotImplemented if function is None else function(*args, **kwargs)


class Waiting:
    """A finder and loader (of importlib's protocols) that calls a function once a module has been imported."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self.name, self.action = name, action
        self.loader: Any = None

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec: Any = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self
        found: ModuleSpec | None = spec
        return found

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.action(module)


def register(module: Any) -> None:
    """Register the backend; SciPy's own is tried after it."""
    module.register_backend(Backend)


if MODULE in sys.modules:
    register(sys.modules[MODULE])
else:
    sys.meta_path.insert(0, Waiting(MODULE, register))
