"""``scipy.fft`` on tensors, through SciPy's protocol of backends; ``libraries`` registers it when SciPy is imported."""

from __future__ import annotations

from typing import Any

from pullback.core.tensor import LATER, Tensor

__all__ = ["Backend", "register"]


class Backend:
    """The backend of ``scipy.fft`` for calls with tensors; others are left to SciPy."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
            return NotImplemented
        function = getattr(LATER["scipy_fft"](), method.__name__, None)
        return NotImplemented if function is None else function(*args, **kwargs)


def register(module: Any) -> None:
    """Register the backend with the module ``scipy.fft``; SciPy's own is tried after it."""
    module.register_backend(Backend)
