"""Datasets: ``pb.data``."""

from __future__ import annotations

from pullback.names.answers import install_answers
from pullback.train.data.dataset import Dataset as Dataset

__all__ = ["Dataset", "array", "csv", "generator", "zip"]

array, csv, generator, zip = Dataset.from_arrays, Dataset.from_csv, Dataset.from_generator, Dataset.zip
install_answers("pb.data")
