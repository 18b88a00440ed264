"""Settings of the compiler's tests: a sample of them, for ``test_every_isa``."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep one of so many tests."""
    items[:] = items[:: int(os.environ.get("PULLBACK_TEST_SAMPLE", "1"))]
