"""``scipy.special`` with gradients: ``pullback.scipy.special``."""

from __future__ import annotations

from typing import Any

from pullback.scipy import special as _module


def __getattr__(name: str) -> Any:
    return getattr(_module, name)
