"""Arrays with a narrow last axis that are made of columns, and elements at strides of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA


def draw(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("columns", range(2, 10))
def test_stack_of_columns_equals_numpy(columns: int, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    for dtype, length in (("f4", 16), ("f8", 37), ("f8", 101)):
        x = draw(columns, length).astype(dtype)
        stack = lambda x: np.stack([(i + 1) * np.sin(x[i]) for i in range(columns)], -1)
        np.testing.assert_allclose(pb.compile(stack)(x), stack(x), rtol=1e-5)
        swap = lambda x: np.tanh(np.stack([x[:, -1], x[:, 0] * x[:, 1]], -1)) * 2 - x[:, :2]
        np.testing.assert_allclose(pb.compile(swap)(x.T.copy()), swap(x.T), rtol=1e-5, atol=1e-6)


SLICES: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "halves": ((38,), lambda x: x[::2] * x[1::2]),
    "odd length": ((37,), lambda x: x[:-1:2] * x[1::2]),
    "with a gap": ((60,), lambda x: x[::3] * x[2::3]),
    "overlapping": ((64,), lambda x: x[2::2] * x[:-2:2] + x[1:-1:2]),
    "two axes": ((20, 40), lambda x: x[::2, ::2] * x[1::2, 1::2] + x[::2, 1::2] ** 2),
    "rows": ((21, 17), lambda x: x[::2] ** 2),
    "columns and rows": ((33, 5), lambda x: x[1::2, ::2] ** 3),
    "two steps": ((48,), lambda x: np.sum(x[::2] ** 2) * np.sum(x[1::3] ** 3)),
    "a column": ((40, 3), lambda x: x[:, 1] ** 2),
    "large step": ((400,), lambda x: x[3::20] ** 2),
    "backwards": ((40,), lambda x: x[::-2] * x[::2]),
    "one element": ((4, 40), lambda x: x[1, ::2] * x[2, 5]),
    "a new axis": ((40,), lambda x: x[::2, None] * x[None, 1::2]),
    "diagonal": ((20, 20), lambda x: np.diag(x) ** 2),
    "cross product": ((50, 3), lambda x: np.cross(x, x[::-1] + 1)),
    "negative zeros": ((32,), lambda x: -0.0 * np.abs(x[::2]) + 0 * x[1::2]),
}


@pytest.mark.parametrize("name", SLICES)
def test_gradient_of_slices_equals_eager(name: str) -> None:
    shape, f = SLICES[name]
    x = draw(*shape)
    gradient = pb.value_and_grad(lambda x: np.sum(f(x)))
    for found, due in zip(pb.compile(gradient)(x), gradient(x), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12, atol=1e-12)
        assert np.array_equal(np.signbit(found), np.signbit(due))
