"""``x[np.arange(n), i]`` and its gradient, compiled: nothing whole is copied, rows are added in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

random = np.random.default_rng(3)
matrix, cube = random.standard_normal((12, 37)), random.standard_normal((6, 5, 23))
labels, several = random.integers(-37, 37, 12), random.integers(0, 37, (12, 4))
LINES = {
    "rows": (matrix, labels, lambda x, i: x[np.arange(12), i]),
    "columns": (matrix, random.integers(0, 12, 37), lambda x, i: x[i, np.arange(37)]),
    "several of each row": (matrix, several, lambda x, i: x[np.arange(12)[:, None], i]),
    "several of each row, transposed": (matrix, several.T.copy(), lambda x, i: x[np.arange(12), i]),
    "two counted axes": (cube, random.integers(0, 23, (6, 5)), lambda x, i: x[np.arange(6)[:, None], np.arange(5), i]),
    "counted axes in another order": (
        cube, random.integers(0, 23, (5, 6)), lambda x, i: x[np.arange(6), np.arange(5)[:, None], i]
    ),
    "middle axis": (cube, random.integers(0, 5, 6), lambda x, i: x[np.arange(6), i]),
    "rows beside a slice": (cube, random.integers(0, 23, 6), lambda x, i: x[np.arange(6), :, i]),
    "rows that are not counted": (matrix, labels, lambda x, i: x[np.arange(12)[::-1].copy(), i]),
    "diagonal": (matrix, labels, lambda x, i: x[np.arange(12), np.arange(12)]),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_compiled_index_arrays_beside_arange_match_numpy(name: str, dtype: str) -> None:
    x, i, f = LINES[name]
    x = (x * 9).astype(dtype)
    np.testing.assert_array_equal(pb.compile(f)(x, i), f(x, i))
    np.testing.assert_array_equal(pb.compile(lambda x: f(x, i))(x), f(x, i))
    if dtype != "i4":
        loss = lambda x, i: np.sum(np.sin(f(np.tanh(x), i))) + np.sum(x * x)
        slope = lambda x, i: pb.grad(loss, argnums=0)(x, i)
        tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == "f4" else {"rtol": 1e-12}
        np.testing.assert_allclose(pb.compile(slope)(x, i), slope(x, i), **tolerance)
        np.testing.assert_allclose(pb.compile(lambda x: slope(x, i))(x), slope(x, i), **tolerance)


def test_integer_index_out_of_bounds_raises() -> None:
    f = pb.compile(lambda x, i: x[np.arange(12), i])
    f(matrix, labels)
    with pytest.raises(pb.errors.ShapeError, match="out of range"):
        f(matrix, labels + 37)


def count_temporaries(f: Any, *args: Any) -> int:
    return int(pb.compile(f).lower(*args).temporaries)


def test_indexing_large_input_does_not_copy() -> None:
    random = np.random.default_rng(4)  # its own, so that the numbers do not depend on which tests ran before
    x, i = random.standard_normal((500, 400)), random.integers(0, 400, 500)
    assert count_temporaries(lambda x, i: np.sum(x[np.arange(500), i]), x, i) < x.nbytes // 10
    assert count_temporaries(lambda x, i: np.sum(x.reshape(-1)[i]), x, i) < x.nbytes // 10


def test_gathered_rows_are_added_to_dense_gradient_in_place() -> None:
    random = np.random.default_rng(5)
    table, i = random.standard_normal((300, 64)), random.integers(0, 300, (40, 7))
    f = lambda x, i: pb.grad(lambda x: np.sum(np.tanh(x[i].sum(1))) + np.sum(x * x), argnums=0)(x)
    np.testing.assert_allclose(pb.compile(f)(table, i), f(table, i), rtol=1e-12, atol=1e-14)  # sums may cancel
    assert count_temporaries(f, table, i) < table.nbytes + 40 * 64 * 8 + 40 * 7 * 72 * 8
    keep = lambda x, i: (x * 2, pb.grad(lambda x: np.sum(np.sin(x[i])) + np.sum(x * x), argnums=0)(x))
    for a, b in zip(pb.compile(keep)(table, i), keep(table, i), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
