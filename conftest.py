"""Pytest's settings for tests and doctests alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback

# Examples that show what an optional package does, by a part of their names.
NEEDED = {"train.io.saving": "safetensors", "Dataset.from_parquet": "pyarrow"}


@pytest.fixture(autouse=True)
def names_in_docstrings(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """Examples in docstrings know `np` and `pb`; those of README and docs say their own imports."""
    doctest_namespace.clear()
    if isinstance(request.node, pytest.DoctestItem) and request.path.suffix == ".py":
        doctest_namespace.update(np=np, pb=pullback)
        for place, package in NEEDED.items():
            if place in request.node.name:
                pytest.importorskip(package)
