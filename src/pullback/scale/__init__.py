"""``pb.scale``: data-parallel sums over shards of data, with gradients, computed by workers on one machine or many."""

from pullback.scale.pool import Pool as Pool
from pullback.scale.shards import Shards as Shards

__all__ = ["Pool", "Shards"]


def __dir__() -> list[str]:
    return sorted(__all__)
