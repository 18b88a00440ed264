"""Reads of what was written into an array: the values are those of eager code, and loops of writes are rolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exhaustive import ALL
from numpy.testing import assert_allclose, assert_array_equal

import pullback as pb
from pullback.compiler.ir.kinds import LOOP, PIECES
from pullback.compiler.ir.structured import run_graph
from pullback.compiler.passes import roll
from pullback.compiler.passes.roll import roll_loops
from pullback.compiler.passes.simplify import simplify
from pullback.compiler.target import Options, get_target
from pullback.numerics import periods

STEPS = 14


@pytest.fixture(autouse=True)
def roll_short_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periods, "MIN_STEPS", 6)
    monkeypatch.setattr(roll, "MIN_NODES", 0)


def draw(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape) * 0.4


def check(f: Callable[..., Any], *args: Any, loops: int | None = None, dtype: str = "f8") -> None:
    """Compare the simplified and rolled graph with eager results; ``loops`` is how many there should be."""
    args = tuple(np.asarray(a, dtype) for a in args)
    rolled = roll_loops(simplify(pb.compile(f, backend="numpy").lower(*args).traced), get_target(), Options())
    rolled.verify()
    for wanted, got in zip(pb.core.tree.leaves(f(*args)), run_graph(rolled, args), strict=True):
        assert got.dtype == wanted.dtype
        assert_allclose(got, wanted, rtol=1e-9 if dtype == "f8" else 2e-5, atol=1e-12 if dtype == "f8" else 1e-6)
    if loops is not None:
        assert sum(n.kind is LOOP for n in rolled.nodes) == loops, rolled


def check_both(f: Callable[..., Any], *args: Any, loops: tuple[int | None, int | None]) -> None:
    """Check a function and its gradient with respect to all arguments."""
    check(f, *args, loops=loops[0])
    for dtype in ("f8", "f4"):
        check(pb.value_and_grad(f, argnums=tuple(range(len(args)))), *args, loops=loops[1], dtype=dtype)


# ---- recurrences in an array


def filter_once(a: Any, x: Any) -> Any:
    out = np.zeros_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = a * out[i - 1] + x[i]
    return np.sum(out**2)


def filter_twice(a: Any, x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(2, len(x)):
        out[i] = a[0] * out[i - 1] + a[1] * out[i - 2] + x[i] - x[i - 1]
    return np.mean(np.tanh(out))


def filter_windows(a: Any, x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(2, len(x)):
        out[i] = a @ out[i - 2 : i] + x[i]
    return np.sum(np.sin(out))


def solve_tridiagonal(a: Any, b: Any, c: Any, d: Any) -> Any:
    n = len(b)
    cp, dp, x = np.zeros_like(b), np.zeros_like(b), np.zeros_like(b)
    cp[0], dp[0] = c[0] / (b[0] + 3.0), d[0] / (b[0] + 3.0)
    for i in range(1, n):
        m = b[i] + 3.0 - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return np.sum(x**2)


def fill_rows(w: Any, xs: Any) -> Any:
    states = np.zeros_like(xs)
    h = xs[0] * 0.0
    for t in range(len(xs)):
        h = np.tanh(w @ h + xs[t])
        states[t] = h
    return np.sum(states**2)


def fill_columns(s: Any, xs: Any) -> Any:
    paths = np.ones_like(xs)
    for t in range(xs.shape[1] - 1):
        paths[:, t + 1] = paths[:, t] * np.exp(s * xs[:, t])
    return np.mean(paths)


def fill_backwards_by_negative_positions(a: Any, x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(2, len(x) + 1):
        out[-i] = a * out[-i + 1] + x[-i]
    return np.sum(out**2)


def overwrite_one_place(a: Any, x: Any) -> Any:
    state = np.zeros_like(x[:2])
    for t in range(len(x)):
        state[0] = a * state[0] + x[t]
        state[1] = np.sin(state[0]) + 0.5 * state[1]
    return state[0] * state[1]


def fill_rows_from_elements(p: Any, u: Any) -> Any:
    path = np.zeros_like(u, shape=(STEPS, 2))
    path[0] = u
    for i in range(STEPS - 1):
        x, y = path[i]
        path[i + 1] = path[i] + 0.1 * np.stack([p * x - x * y, x * y - y])
    return np.sum(path**2)


LOOPS: list[Any] = [
    (filter_once, (draw(), draw(STEPS)), (1, 2)),
    (filter_twice, (draw(2), draw(STEPS)), (1, 2)),
    (filter_windows, (draw(2), draw(STEPS)), (1, 2)),
    (solve_tridiagonal, (draw(STEPS), draw(STEPS), draw(STEPS), draw(STEPS)), (2, 4)),
    (fill_rows, (draw(3, 3), draw(STEPS, 3)), (1, 2)),
    (fill_rows_from_elements, (draw(), draw(2)), (1, 2)),
    (fill_columns, (draw(), draw(3, STEPS)), (1, 2)),
    (fill_backwards_by_negative_positions, (draw(), draw(STEPS)), (1, 2)),
    (overwrite_one_place, (draw(), draw(STEPS)), (1, 2)),
]


@pytest.mark.parametrize(("f", "args", "loops"), LOOPS, ids=[f.__name__ for f, *_ in LOOPS])
def test_loop_of_writes_is_rolled(f: Any, args: Any, loops: Any) -> None:
    check_both(f, *args, loops=loops)


@pytest.mark.parametrize("f", [filter_once, filter_windows])
def test_loop_of_writes_under_vmap_and_to_second_order(f: Any) -> None:
    a, x = draw(2) if f is filter_windows else draw(), draw(STEPS)
    check(pb.vmap(pb.grad(f, argnums=1), in_axes=(None, 0)), a, draw(3, STEPS))
    check(lambda a, x: pb.hvp(lambda x: f(a, x), x, x), a, x)
    check(lambda a, x: pb.jvp(f, [a, x], [a, x]), a, x)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_loop_of_few_writes_stays_unrolled(n: int) -> None:
    slopes = pb.value_and_grad(filter_once, argnums=(0, 1), unconnected="zero")
    check(slopes, draw(), draw(n), loops=0)
    check(filter_twice, draw(2), draw(n), loops=0)


def test_machine_code_of_a_loop_of_writes() -> None:
    for f, args, _ in (LOOPS[0], LOOPS[3]):
        g = pb.value_and_grad(f, argnums=tuple(range(len(args))))
        value, slopes = pb.compile(g, cache=False)(*args)
        wanted, others = g(*args)
        assert_allclose(value, wanted, rtol=1e-12)
        for got, slope in zip(slopes, others, strict=True):
            assert_allclose(got, slope, rtol=1e-9, atol=1e-12)


def test_node_count_of_loop_of_writes_does_not_grow_with_steps() -> None:
    programs = [pb.compile(pb.grad(filter_once, argnums=(0, 1)), cache=False).lower(0.5, draw(n)) for n in (40, 90)]
    few, many = (len(program.stages.simplified.nodes) for program in programs)
    assert few == many


# ---- hard cases


def test_loop_of_writes_with_one_different_step() -> None:
    def f(a: Any, x: Any) -> Any:
        out = np.zeros_like(x)
        for i in range(1, len(x)):
            out[i] = (np.sin(out[i - 1]) if i == 9 else a * out[i - 1]) + x[i]
        return np.sum(out**2)

    check_both(f, draw(), draw(STEPS + 6), loops=(None, None))


def test_reads_of_values_before_and_after_overwriting() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        kept = y.copy()
        before = y[2] * 2.0
        y[2] = y[1] * y[0]
        after = y[2] + before
        y[2] = y[2] ** 2 + kept[2]
        z = y.copy()
        z[1] = 5.0 * y[2]
        y[1] = z[1] + z[2]
        y[1:3] = y[1:3] * 3.0 + z[0:2]
        return np.sum(y * kept) + after * z[1] + np.sum(z[::-1] * y) + y[-1] + y[1:3] @ z[1:3]

    check_both(f, draw(5), loops=(0, 0))


def test_writes_through_views_match_eager() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        row = y[1]
        row[0] = y[0, 1] * 2.0
        y[1, 2] = row[0] * row[1]
        y.T[0, 2] = row[2]
        return np.sum(y * y) + np.sum(row)

    check_both(f, draw(3, 3), loops=(0, 0))


def test_loop_of_writes_that_reads_whole_array_in_every_step() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        for i in range(1, len(x)):
            y[i] = np.sin(np.mean(y)) + 0.5 * y[i - 1]
        return np.sum(y**2)

    check_both(f, draw(STEPS), loops=(None, None))


def find_nearest(x: Any, y: Any) -> Any:
    r = np.zeros_like(x, shape=(len(x) + 1, len(y) + 1))
    r[0, 1:], r[1:, 0] = 9.0, 9.0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            near = np.minimum(r[i - 1, j], np.minimum(r[i, j - 1], r[i - 1, j - 1]))
            r[i, j] = (x[i - 1] - y[j - 1]) ** 2 + near
    return r[-1, -1]


def find_softly(x: Any, y: Any) -> Any:
    above = [1.0 * j for j in range(len(y) + 1)]
    for i in range(len(x)):
        row = [1.0 * i]
        for j in range(len(y)):
            row.append(np.logaddexp(np.tanh(above[j + 1] + row[j]), above[j] + np.sin(x[i] - y[j])))
        above = row
    return above[-1] + np.sum(np.stack(above[1:]) ** 2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [find_nearest, find_softly])
@pytest.mark.parametrize(("rows", "columns"), [(12, 7), (3, 4), (1, 1)])
def test_nested_loops_of_writes(f: Any, rows: int, columns: int) -> None:
    slopes = pb.value_and_grad(f, argnums=(0, 1))
    check(slopes, draw(rows), draw(columns), loops=2 if rows > 3 else 0)


def test_forwarded_write_keeps_negative_zero() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[0] = x[1]
        return np.stack([y[0], y[1], y[2]])

    x = np.array([1.0, -0.0, -0.0])
    assert_array_equal(np.signbit(pb.compile(f, cache=False)(x)), [True, True, True])
    slope = pb.grad(lambda x: np.sum(f(x)))
    assert_array_equal(np.signbit(pb.compile(lambda x, dy: slope(x, dy=dy))(x, -0.0)), np.signbit(slope(x, dy=-0.0)))


def test_unrolled_writes_merge_into_one_concatenation() -> None:
    def f(x: Any) -> Any:
        out = np.zeros_like(x)
        for i in range(5):
            out[i] = np.sin(x[i])
        return out * 2.0

    graph = simplify(pb.compile(f, backend="numpy").lower(draw(5)).traced)
    assert sum(n.kind is PIECES for n in graph.nodes) == 1, graph


# ---- random programs


class RandomWrites:
    """A program of writes at drawn blocks of two arrays, and of reads of drawn blocks of any of their versions."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, x: Any) -> Any:
        rng = np.random.default_rng(self.seed)
        arrays, total = [x * 1.0, np.zeros_like(x)], 0.0
        for _ in range(rng.integers(3, 12)):
            y = arrays[rng.integers(len(arrays))]
            if rng.random() < 0.2:
                y = y.copy()
                arrays.append(y)
            source = arrays[rng.integers(len(arrays))]
            (rows, columns), (start, left) = rng.integers(1, 3, size=2), rng.integers(0, 3, size=2)
            at = slice(start, start + rows), slice(left, left + columns)
            (i, j), by = rng.integers(0, 3, size=2), rng.choice([1.0, 0.5, -2.0])
            value = np.sin(source[i : i + rows, j : j + columns]) * by
            if rng.random() < 0.3:
                y[at] += value
            else:
                y[at] = value
            total = total + source[i, j] * y[start, left] + np.sum(y[:, j] * source[i, :])
        return total + sum(np.sum(y**2) for y in arrays)


@pytest.mark.parametrize("seed", range(300 if ALL else 9))
def test_random_loops_of_writes_match_eager(seed: int) -> None:
    f = RandomWrites(seed)
    check(pb.value_and_grad(f), draw(4, 4))
