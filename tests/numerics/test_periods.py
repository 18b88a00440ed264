"""Where a sequence of labels repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.numerics import periods
from pullback.numerics.periods import find_periods


@pytest.fixture(autouse=True)
def find_short_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periods, "MIN_STEPS", 6)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1] * 4, []),
        ([*range(30)], []),
        ([5, *[1, 2] * 9, 7], [(1, 2, 19)]),
        ([*[1, 2, 3] * 8, *[4, 5] * 9], [(0, 3, 24), (24, 2, 42)]),
        ([*[1, 2] * 12, *[1, 2, 3, 4] * 7], [(0, 2, 26), (26, 4, 52)]),
    ],
)
def test_find_periods_of_repeated_labels(labels: Any, expected: Any) -> None:
    found = find_periods(np.array(labels))
    assert [p.length for p in found] == [length for _, length, _ in expected]
    for p in found:
        part = labels[p.start : p.end]
        assert part[p.length :] == part[: -p.length]
