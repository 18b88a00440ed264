"""Concatenations and paddings of sums and multiples: the same numbers, signs of zeros included, and nothing stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.array([[0.5, -0.0, 0.0, np.nan, 3.0], [np.inf, -0.0, -0.0, 2.0, -1.0], [0.0, 0.0, -2.5, 1.0, -0.0]])


def pad_columns(x: Any) -> Any:
    return np.pad(x, ((0, 0), (0, 1)))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "difference": lambda x: np.concatenate([x[:, 1:] - x[:, :-1], x[:, :1]], 1),
    "difference of rows": lambda x: np.concatenate([x[:1], x[1:] - x[:-1]]),
    "sum": lambda x: np.concatenate([x[:, 1:] + x[:, :-1], x[:, :1]], 1),
    "padded sum": lambda x: np.pad(x[:, 2:] - 2.0 * x[:, 1:-1] + x[:, :-2], ((0, 0), (1, 1))),
    "padded with a number": lambda x: np.pad(x[1:] - 0.5 * x[:-1], ((0, 1), (0, 0)), constant_values=-0.0),
    "padded slices of a multiple": lambda x: pad_columns((-2.0 * x)[:, 1:]) + pad_columns((-2.0 * x)[:, :-1]),
    "two sums": lambda x: np.concatenate([x[:, 1:] - x[:, :-1], x[:, 1:] + x[:, :-1]], 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_slices_of_sums_and_multiples_equal_numpy(name: str) -> None:
    f = PROGRAMS[name]
    program = pb.compile(f, backend="llvm")
    made, expected = program(X), f(X)
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(np.signbit(made), np.signbit(expected))
    assert program.lower(X).temporaries == 0


def test_sum_that_is_partly_overwritten_equals_numpy() -> None:
    def f(x: Any) -> Any:
        y = x[:, 1:] + x[:, :-1]
        y[:, 0] = x[:, 0] * 3.0
        return y

    finite = np.nan_to_num(X, nan=7.0, posinf=8.0)
    np.testing.assert_array_equal(pb.compile(f, backend="llvm")(finite), f(finite))


@pytest.mark.parametrize("axis", [0, 1])
def test_gradient_of_a_concatenated_difference(axis: int) -> None:
    rows = np.random.default_rng(0).standard_normal((6, 9))

    def step(e: Any, h: Any) -> Any:
        first, last = (e[:1], e[-1:]) if axis == 0 else (e[:, :1], e[:, -1:])
        h = h - 0.5 * np.concatenate([np.diff(e, axis=axis), 0.0 * last], axis)
        return e + 0.5 * np.concatenate([0.0 * first, np.diff(h, axis=axis)], axis), h

    def f(e: Any) -> Any:
        h = e * 0.0
        for _ in range(3):
            e, h = step(e, h)
        return np.sum(e**2)

    np.testing.assert_allclose(pb.compile(pb.grad(f), backend="llvm")(rows), pb.grad(f)(rows), rtol=1e-12, atol=1e-14)


def test_padded_negative_constant() -> None:
    x, y = np.ones((4, 3)), np.full((4, 3), 1j)
    f = lambda x, y: np.sum(np.real(np.insert(x, 0, np.fmin(x, y)[0], axis=0)))
    for found, wanted in zip(pb.compile(lambda x, y: pb.grads(f)([x, y]))(x, y), pb.grads(f)([x, y]), strict=True):
        np.testing.assert_array_equal(found, wanted)
