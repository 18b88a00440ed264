"""Register tensors with einops, autoray and ``scipy.fft``: now if these are imported already, else when they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import numpy as np

from pullback import late_binding
from pullback.core.tensor import Tensor


def register_einops(module: ModuleType) -> None:
    """Define a backend of einops, which finds the subclasses of ``AbstractBackend``."""

    class PullbackBackend(module.AbstractBackend):  # type: ignore[name-defined, misc]
        framework_name = "pullback"

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, Tensor)

        def to_numpy(self, x: Any) -> Any:
            return np.asarray(x)

        def reshape(self, x: Any, shape: Any) -> Any:
            return np.reshape(x, shape)

        def transpose(self, x: Any, axes: Any) -> Any:
            return np.transpose(x, axes)

        def reduce(self, x: Any, operation: str, axes: Any) -> Any:
            return getattr(np, operation)(x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: Sequence[Any]) -> Any:
            return np.stack(tensors)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return np.expand_dims(x, new_position)

        def tile(self, x: Any, repeats: Any) -> Any:
            return np.tile(x, repeats)

        def concat(self, tensors: Sequence[Any], axis: int) -> Any:
            return np.concatenate(tensors, axis=axis)

        def is_float_type(self, x: Any) -> bool:
            return bool(x.dtype.kind == "f")

        def einsum(self, pattern: str, *x: Any) -> Any:
            return np.einsum(pattern, *x)

    vars(module)["PullbackBackend"] = PullbackBackend  # which is found as long as someone holds it


def register_autoray(module: ModuleType) -> None:
    """Let autoray call NumPy's functions with tensors: those of ``pb`` may have other defaults."""
    module.register_module_alias("pullback", "numpy")
    module.register_function("pullback", "to_numpy", np.asarray)


class FourierBackend:
    """The backend of ``scipy.fft`` for calls with tensors; others are left to SciPy."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
            return NotImplemented
        function = getattr(late_binding.load_scipy_fft(), method.__name__, None)
        return NotImplemented if function is None else function(*args, **kwargs)


def register_scipy_fft(module: Any) -> None:
    """Register the backend with the module ``scipy.fft``; SciPy's own is tried after it."""
    module.register_backend(FourierBackend)


WAITING: dict[str, Callable[[ModuleType], None]] = {
    "einops._backends": register_einops,
    "autoray.autoray": register_autoray,
    "scipy.fft": register_scipy_fft,
}


def _register(register: Callable[[ModuleType], None], module: ModuleType) -> None:
    with suppress(AttributeError, TypeError):  # a version without such a backend, which raises when it is used
        register(module)


class AfterImport:
    """A finder (of importlib's protocol) that calls a function after a module has been imported.

    It has no base class: importing ``importlib.abc`` would take a tenth of the time of importing this library.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is waited for, whose loader calls the function afterwards; else None."""
        register = WAITING.pop(fullname, None)
        spec = None if register is None else PathFinder.find_spec(fullname, path, target)
        loader: Any = None if spec is None else spec.loader
        if register is None or loader is None:
            return None
        run = loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            _register(register, module)

        loader.exec_module = run_and_register
        return spec


def wait_for_libraries() -> None:
    """Register tensors with the libraries that are imported already, and wait for the others."""
    for name in [name for name in WAITING if name in sys.modules]:
        _register(WAITING.pop(name), sys.modules[name])
    sys.meta_path.insert(0, AfterImport())


wait_for_libraries()
