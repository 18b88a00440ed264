"""How much is tested: all that there is, or a sample in the usual run.

``script/test --all`` is the exhaustive run; it sets ``PULLBACK_ALL_TESTS=1``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

ALL = os.environ.get("PULLBACK_ALL_TESTS", "0") != "0"
# Whether tests may fetch what they need from the network: a usual run passes without one.
DOWNLOADS = ALL or os.environ.get("PULLBACK_TEST_DOWNLOADS", "0") != "0"

T = TypeVar("T")


def sample(items: Sequence[T], one_of: int, first: int = 0) -> list[T]:
    """Return every ``one_of``-th item, one at least; all of them in the exhaustive run."""
    return list(items if ALL else items[first::one_of] or items[:1])
