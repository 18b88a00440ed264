"""Datasets: ``pb.data``."""

from __future__ import annotations

from pullback.train.data.dataset import Dataset as Dataset

__all__ = ["Dataset"]
