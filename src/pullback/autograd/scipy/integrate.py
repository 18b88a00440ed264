"""``scipy.integrate`` with gradients: ``pullback.scipy.integrate``."""

from __future__ import annotations

from typing import Any

from pullback.scipy import integrate as _module


def __getattr__(name: str) -> Any:
    return getattr(_module, name)
