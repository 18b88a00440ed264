"""Arrays that are made of pieces: concatenated, stacked, padded, rolled, and gradients of slices."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pullback as pb


def draw(*shape: int, dtype: str = "f8") -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def check(f: Any, *xs: Any) -> None:
    compiled = pb.compile(f, backend="llvm", cache=False, threads=1)
    for a, b in zip(pb.core.tree.leaves(compiled(*xs)), pb.core.tree.leaves(f(*xs)), strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "?"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenate_pieces_of_several_lengths(axis: int, dtype: str) -> None:
    shapes = [[3, 4, 5] for _ in range(4)]
    for i, shape in enumerate(shapes):
        shape[axis] = (1, 40, 7, 2)[i]
    xs = [draw(*shape) > 0 if dtype == "?" else (10 * draw(*shape)).astype(dtype) for shape in shapes]
    check(lambda *xs: np.concatenate(xs, axis), *xs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [2, 5, 6, 30])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (70,), (2, 9)])
def test_stack_of_few_and_many_rows_equals_numpy(shape: tuple[int, ...], count: int) -> None:
    for axis in range(len(shape) + 1):
        check(lambda x, axis=axis: np.stack([x[i] * float(i) for i in range(count)], axis), draw(count, *shape))


@pytest.mark.parametrize("widths", [((1, 1), (2, 0)), ((0, 3), (0, 0)), ((0, 0), (17, 40)), ((5, 5), (5, 5))])
def test_pad_with_constant_equals_numpy(widths: Any) -> None:
    check(lambda x: np.pad(x * 2.0, widths, constant_values=3.0) + 1.0, draw(6, 37))


@pytest.mark.parametrize("n", [3, 9, 40, 1000])
def test_gradient_of_shifted_sums(n: int) -> None:
    def f(x: Any) -> Any:
        y = sum(x[i : n - 2 + i] * (1.0 + i) for i in range(3))
        return np.sum(y * y) + np.sum((x[1:] - x[:-1]) ** 2)

    check(pb.grad(f), draw(n))
    check(pb.grad(lambda x: f(x[0]) + f(x[1])), draw(2, n))


@pytest.mark.parametrize("steps", [(0, 1, 2, 3, 4, 5, 6, 7), (7, 6, 5, 4, 3, 2, 1, 0), (1, 3, 5, 6, 7, 2), (4, 4, 4)])
def test_gradient_of_rows_read_in_any_order(steps: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        h = x[steps[0]]
        for t in steps[1:]:
            h = np.tanh(h + x[t])
        return np.sum(h)

    check(pb.grad(f), draw(8, 21))
    check(pb.grad(lambda x: np.sum(f(x.T))), draw(21, 8))


def test_roll_and_stencil() -> None:
    def f(x: Any) -> Any:
        lap = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4.0 * x[1:-1, 1:-1]
        return np.sum(lap**2) + np.sum((np.roll(x, 3, 1) - np.roll(x, -1, 0)) ** 2)

    check(pb.grad(f), draw(19, 45))


def test_reductions_of_pieces() -> None:
    def f(x: Any, y: Any) -> Any:
        z = np.concatenate([x, y[:, :1], x * x, y], 1)
        e = np.exp(z - np.max(z, 1, keepdims=True))
        return e / np.sum(e, 1, keepdims=True), np.sum(z, 0), np.sum(z * z), np.concatenate([z.T, z.T], 1)

    check(f, draw(7, 33), draw(7, 6))


# A page that must not be touched follows every array; a load beyond the end ends the process.
PROGRAM = """
import numpy as np, pullback as pb
for n in (1, 2, 3, 7, 33, 130):
    x = np.linspace(-1.0, 1.0, 5 * n).reshape(5, n)
    def f(x):
        y = np.concatenate([x[:2], np.pad(x, ((1, 1), (3, 2)))[:, 1 : n + 1], np.stack([x[i] for i in range(5)])])
        return np.sum(y * y * y)
    for g in (f, pb.grad(f)):
        assert np.allclose(pb.compile(g, backend="llvm", cache=False)(x), g(x)), n
"""


def test_pieces_are_not_read_outside_their_arrays() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "PULLBACK_CANARY": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("factor", [2.0, -2.0])
def test_padded_multiple_keeps_signed_zeros(factor: float) -> None:
    g = pb.grad(lambda x: np.sum(x[2:] * factor - x[2:] * x[2:]))
    x = draw(40)
    got, want = pb.compile(g, backend="llvm", cache=False)(x), g(x)
    assert np.array_equal(np.signbit(got), np.signbit(want))
    assert np.allclose(got, want)


def test_piece_computed_in_kernel_does_not_change_other_uses() -> None:
    def f(x: Any) -> Any:
        z = x * 1
        z[1:-1] = x[1:-1] * 2
        z[0, 3] = 7
        return np.sum(z**2)

    check(pb.grad(f), draw(40, 37))


@pytest.mark.parametrize("place", [0, 7, 19])
def test_stack_with_one_column_piece_uses_piece_table(place: int) -> None:
    """The pieces that lie in the same way are found by a table, whatever the others are."""

    def f(x: Any) -> Any:
        y = x * 2.0  # a matrix in memory, of which one piece is a column
        parts: list[Any] = [y[:, 0] + 1.0]
        for i in range(1, 20):
            parts.append(parts[-1] * 0.5 + y[:, i])
        parts[place] = y[:, place]
        return np.stack(parts, 1) * y, y

    x = draw(32, 20)
    check(lambda x: f(x)[0], x)
    text = str(pb.compile(f).lower(x).stages.module.text)
    assert text.count(" select ") < 10


def test_gradient_of_overlapping_slices_with_remainder() -> None:
    def f(w: Any, y: Any) -> Any:
        return sum((y[t] - w @ y[t - 3 : t]) ** 2 for t in range(3, len(y)))

    for n in (19, 20):
        check(pb.grad(f, argnums=(0, 1)), draw(3), draw(n))
