"""Elements at small strides, which are loaded by whole vectors and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA

LENGTHS = (5, 16, 37, 129)


def draw(dtype: str, *shape: int) -> Any:
    return (10 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("step", range(2, 10))
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_strided_slices_equal_numpy(dtype: str, step: int, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    slices = lambda x: (x[::step] * x[1::step] + x[step - 1 :: step], x[2::step] * 2, x[step::step] - x[:-step:step])
    program = pb.compile(slices)
    for length in LENGTHS:
        x = draw(dtype, length * step)
        for found, due in zip(program(x), slices(x), strict=True):
            np.testing.assert_allclose(found, due, rtol=1e-5)


@pytest.mark.parametrize("columns", [2, 3, 4, 7])
def test_columns_and_strided_rows_equal_numpy(columns: int) -> None:
    def pick(x: Any) -> Any:
        rolled = np.roll(x[..., 1], 1, axis=1) * x[..., 0]
        return x[..., 0] * x[..., -1], x[:, ::2, 1] + 1, x[1:, 1:, 1] * x[:-1, :-1, 0], rolled, np.sum(x[..., 0])

    x = draw("f8", 3, 37, columns)
    for found, due in zip(pb.compile(pick)(x), pick(x), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)
