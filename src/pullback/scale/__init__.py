"""``pb.scale``: sums over shards of data that workers compute, on one machine or many, with their gradients."""

from pullback.scale.pool import Pool as Pool
from pullback.scale.shards import Shards as Shards

__all__ = ["Pool", "Shards"]
