"""Scatter-add of rows by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.numerics.rows import add_rows


@pytest.mark.parametrize("width", [(), (1,), (3,), (8,), (2, 4), (9,)])
@pytest.mark.parametrize("numbers", [4, 50, 5000])
@pytest.mark.parametrize("many", [60, 1500])
@pytest.mark.parametrize("fresh", [True, False])
def test_add_rows(width: Any, numbers: int, many: int, fresh: bool) -> None:
    rng = np.random.default_rng(numbers)
    rows = rng.integers(-50, 50, (many, 2))
    rows = rows % numbers if numbers != 50 else rows
    values = rng.normal(size=(many, 2, *width))
    into = np.zeros((numbers, *width)) if fresh else rng.normal(size=(numbers, *width))
    want = into.copy()
    np.add.at(want, rows, values)
    for layout in ("C", "F"):
        got = np.array(into, order=layout)
        add_rows(got, rows, values, fresh)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
@pytest.mark.parametrize("numbers", [4, 5000])
def test_add_rows_of_nan_and_infinities(wrong: float, numbers: int) -> None:
    values = np.ones((2000, 8))
    values[0, 3] = wrong
    got = np.zeros((numbers, 8))
    add_rows(got, np.arange(2000) % numbers, values, True)
    assert np.argwhere(~np.isfinite(got)).tolist() == [[0, 3]]
