"""``scipy.spatial``: distances and rotations."""

from typing import Any

from pullback.scipy.arguments import make_fallback
from pullback.scipy.spatial import distance as distance
from pullback.scipy.spatial import transform as transform


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return make_fallback("spatial", name)
