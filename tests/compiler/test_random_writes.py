"""Random programs of writes, strided slices, short rows and loops: compiled results equal eager ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


def draw_program(seed: int) -> tuple[Any, list[Any]]:
    """Return a function of two matrices and its arguments."""
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(2, 40)), int(random.choice([1, 2, 3, 4, 5, 7, 9]))
    steps = [(int(random.integers(12)), *map(int, random.integers(0, 100, 4))) for _ in range(random.integers(2, 8))]

    def f(x: Any, y: Any) -> Any:
        z, w = x * 1.0, x * y
        for kind, i, j, k, stride in steps:
            row, column, other, by = i % rows, j % columns, k % rows, 1 + stride % 3
            if kind == 0:
                z[row] = w[other] * 0.7
            elif kind == 1:
                z[row, column] = z[other, column] * 0.7 + w[row, column]
            elif kind == 2:
                z[::by] = np.tanh(w[::by])
            elif kind == 3:
                z[:, column] += w[:, column] * 0.7
            elif kind == 4:
                w = w / (1 + np.sum(w * w, 1, keepdims=True))
            elif kind == 5:
                for t in range(1, rows):
                    z[t] = 0.4 * z[t - 1] + w[t]
            elif kind == 6:
                every = z.ravel()[::by]
                w = w + np.sum(every * every[::-1]) * 0.01
            elif kind == 7:
                w = np.repeat(z[:, column], columns).reshape(rows, columns) * w
            elif kind == 8:
                z = np.stack([np.sin(z[:, c]) for c in range(columns)], 1)
            elif kind == 9:
                z = np.concatenate([z[row:], z[:row] * 0.7])
            elif kind == 10:
                for t in range(rows - 2, -1, -1):
                    w[t, column] = w[t + 1, column] * 0.3 + z[t, column]
            else:
                w = w + z.mean(0) - z[row]
        return np.sum(np.tanh(w) * z) + np.sum(z[::2]) - np.sum(w[1::2])

    return f, list(random.normal(size=(2, rows, columns)))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(30))
def test_random_writes_compiled_equal_eager(seed: int) -> None:
    f, args = draw_program(seed)
    g = lambda x, y: (f(x, y), *pb.grads(f)([x, y]))
    for found, expected in zip(pb.compile(g)(*args), g(*args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
