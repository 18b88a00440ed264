"""Arrays with a narrow last axis that are made of columns."""

from __future__ import annotations

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


@pytest.mark.parametrize("length", [16, 21, 37])
def test_stack_operand_is_not_overwritten_by_other_result(length: int) -> None:
    def f(x: Any) -> Any:
        total = np.cumsum(x)
        return np.stack([total, total * total], -1), np.cumsum(np.sin(total))

    x = draw(length)
    for found, due in zip(pb.compile(f)(x), f(x), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)


def test_stack_of_columns_written_in_part_or_not_at_all() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x[:, [0, 1, 2, 0]])
        y[5:30, 1], y[:, 2], y[7:, 2] = x[:25, 0], x[:, 1], 3.0
        return y, y * x[:, :1]

    x = draw(40, 3)
    for found, due in zip(pb.compile(f)(x), f(x), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)
