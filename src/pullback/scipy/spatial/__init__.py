"""``scipy.spatial``: distances and rotations."""

from functools import partial

from pullback.scipy.arguments import make_fallback
from pullback.scipy.spatial import distance as distance
from pullback.scipy.spatial import transform as transform

__getattr__ = partial(make_fallback, "spatial")


def __dir__() -> list[str]:
    return ["distance", "transform"]
