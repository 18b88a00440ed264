"""``scipy.linalg`` with gradients: ``pullback.scipy.linalg``."""

from __future__ import annotations

from typing import Any

from pullback.scipy import linalg as _module


def __getattr__(name: str) -> Any:
    return getattr(_module, name)
