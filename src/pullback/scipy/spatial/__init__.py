"""``scipy.spatial``: distances."""

from typing import Any

from pullback.scipy.arguments import make_fallback
from pullback.scipy.spatial import distance as distance


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return make_fallback("spatial", name)
