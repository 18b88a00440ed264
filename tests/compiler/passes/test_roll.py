"""Python loops whose steps repeat in the trace become loops, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exhaustive import ALL
from numpy.testing import assert_allclose

import pullback as pb
from pullback.compiler.ir.graph import Graph
from pullback.compiler.ir.kinds import LOOP
from pullback.compiler.ir.structured import run_graph
from pullback.compiler.passes import roll
from pullback.compiler.passes.roll import roll_loops
from pullback.compiler.passes.simplify import simplify
from pullback.compiler.target import Options, get_target
from pullback.numerics import periods

RNG = np.random.default_rng(0)
STEPS = 12


@pytest.fixture(autouse=True)
def roll_short_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periods, "MIN_STEPS", 6)
    monkeypatch.setattr(roll, "MIN_NODES", 0)


def draw(*shape: int) -> Any:
    return RNG.normal(size=shape) * 0.4


def roll_program(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Graph, Graph]:
    """Return the graph of a function, simplified, and the same with loops, which is verified."""
    traced = simplify(pb.compile(f, backend="numpy").lower(*args).traced)
    rolled = roll_loops(traced, get_target(), Options())
    rolled.verify()
    return traced, rolled


def list_loops(graph: Graph) -> list[int]:
    return [n.data.length for n in graph.nodes if n.kind is LOOP]


def check(f: Callable[..., Any], *args: Any, loops: int | None = None) -> None:
    """Compare the values of a graph with those of the graph with loops; ``loops`` is how many there should be."""
    traced, rolled = roll_program(f, args)
    for wanted, got in zip(run_graph(traced, args), run_graph(rolled, args), strict=True):
        assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
    if loops is not None:
        assert len(list_loops(rolled)) == loops, rolled


def check_both(f: Callable[..., Any], *args: Any, loops: tuple[int, int]) -> None:
    """Check a function and its gradient with respect to all arguments."""
    check(f, *args, loops=loops[0])
    check(pb.value_and_grad(f, argnums=tuple(range(len(args)))), *args, loops=loops[1])


# ---- programs


def rnn(w: Any, u: Any, b: Any, xs: Any) -> Any:
    h = np.zeros((2, 4))
    for t in range(len(xs)):
        h = np.tanh(xs[t] @ w + h @ u + b)
    return np.sum(h**2)


def rnn_of_rows(w: Any, u: Any, b: Any, xs: Any) -> Any:
    h, states = np.zeros((2, 4)), []
    for x in xs:
        h = np.tanh(x @ w + h @ u + b)
        states.append(h)
    return np.mean(np.stack(states) ** 2)


def rnn_of_losses(w: Any, u: Any, b: Any, xs: Any) -> Any:
    h, loss = np.zeros((2, 4)), 0.0
    for t in range(len(xs)):
        h = np.tanh(xs[t] @ w + h @ u + b)
        loss = loss + np.mean(h**2)
    return loss


def rnn_of_columns(w: Any, u: Any, b: Any, xs: Any) -> Any:
    h, states = np.zeros((len(xs), 4)), []
    for t in range(xs.shape[1]):
        h = np.tanh(xs[:, t] @ w + h @ u + b)
        states.append(h)
    return np.mean(np.stack(states, 1) ** 2)


def rnn_both_ways(w: Any, u: Any, b: Any, xs: Any) -> Any:
    g = h = np.zeros((2, 4))
    for t in range(len(xs)):
        h = np.tanh(xs[t] @ w + h @ u + b)
    for t in reversed(range(len(xs))):
        g = np.tanh(xs[t] @ w + g @ u + b)
    return np.sum(g * h)


WEIGHTS = draw(3, 4), draw(4, 4), draw(4)


@pytest.mark.parametrize(
    ("f", "shape", "loops"),
    [
        (rnn, (STEPS, 2, 3), (1, 2)),
        (rnn_of_rows, (STEPS, 2, 3), (1, 2)),
        (rnn_of_losses, (STEPS, 2, 3), (1, 2)),
        (rnn_of_columns, (2, STEPS, 3), (1, 2)),
        (rnn_both_ways, (STEPS, 2, 3), (2, 4)),
    ],
)
def test_recurrent_network_is_rolled(f: Any, shape: Any, loops: Any) -> None:
    check_both(f, *WEIGHTS, draw(*shape), loops=loops)


def runge_kutta(w: Any, y: Any) -> Any:
    slope = lambda y, t: np.tanh(y @ w) + np.sin(t)
    for i in range(STEPS):
        k1 = slope(y, 0.1 * i)
        k2 = slope(y + 0.1 * k1, 0.1 * i + 0.05)
        y = y + 0.05 * (k1 + k2)
    return np.sum(y**2)


def leapfrog(k: Any, y: Any) -> Any:
    before, y = y, 0.9 * y
    for _ in range(STEPS):
        before, y = y, 2 * y - before - 0.01 * k * np.sin(y)
    return np.sum(y * before)


def filter_smoothly(a: Any, xs: Any) -> Any:
    """The gain converges, the states are compared with the next element."""
    p, m, loss = np.ones(2), np.zeros(2), 0.0
    for t in range(len(xs) - 1):
        gain = p / (p + 0.5)
        m = a @ (m + gain * (xs[t] - m))
        p = (1 - gain) * p + 0.1
        loss = loss + np.sum((xs[t + 1] - m) ** 2)
    return loss


def descend(w: Any, x: Any) -> Any:
    for _ in range(STEPS):
        w = w - 0.1 * pb.grad(lambda w: np.mean(np.tanh(x @ w) ** 2))(w)
    return np.sum(w**2)


def predator_and_prey(p: Any, y: Any) -> Any:
    """Both are computed by the same ops, and the parameters are used in every step."""
    a, b = y[0], y[1]
    for _ in range(STEPS):
        a, b = a + 0.1 * (p[0] * a - p[1] * a * b), b + 0.1 * (p[2] * b - p[3] * b * a)
    return a * a + b


def begin_and_end_differently(x: Any) -> Any:
    y = x
    for t in range(STEPS + 2):
        y = np.exp(-y) if t == 0 else np.cos(y) * x
        if t == STEPS + 1:
            y = y / 2
    return np.sum(y)


@pytest.mark.parametrize(
    ("f", "args", "loops"),
    [
        (runge_kutta, (draw(3, 3), draw(2, 3)), (1, 2)),
        (leapfrog, (1.5, draw(3)), (1, 2)),
        (filter_smoothly, (draw(2, 2), draw(STEPS, 2)), (1, 2)),
        (descend, (draw(3), draw(5, 3)), (1, 2)),
        (predator_and_prey, (draw(4), draw(2)), (1, 2)),
        (begin_and_end_differently, (draw(3),), (1, 2)),
    ],
)
def test_roll_recurrence(f: Any, args: Any, loops: Any) -> None:
    check_both(f, *args, loops=loops)


def test_node_count_of_rolled_loop_does_not_grow_with_steps() -> None:
    f = pb.value_and_grad(rnn_of_losses, argnums=(0, 1, 2, 3))
    few, many = (roll_program(f, (*WEIGHTS, draw(n, 2, 3)))[1] for n in (20, 40))
    assert len(few.nodes) == len(many.nodes) < 100
    assert list_loops(few) == [20, 18]


def test_machine_code_of_a_rolled_loop() -> None:
    args = *WEIGHTS, draw(STEPS, 2, 3)
    f = pb.value_and_grad(rnn_of_losses, argnums=(0, 1, 2, 3))
    value, grads = pb.compile(f)(*args)
    wanted, slopes = f(*args)
    assert_allclose(value, wanted, rtol=1e-12)
    for got, slope in zip(grads, slopes, strict=True):
        assert_allclose(got, slope, rtol=1e-9)


def test_loop_that_sums_outer_products_becomes_one_matmul() -> None:
    """All that is left of the loop is one product."""

    def f(xs: Any, ys: Any) -> Any:
        total = np.zeros((3, 4))
        for x, y in zip(xs, ys, strict=True):
            total = total + x[:, None] @ y[None]
        return total

    check(f, draw(STEPS, 3), draw(STEPS, 4), loops=0)
    step = lambda total, row: (total + row[0][:, None] @ row[1][None], None)
    check(lambda xs, ys: pb.scan(step, np.zeros((3, 4)), (xs, ys))[0], draw(STEPS, 3), draw(STEPS, 4), loops=0)


# ---- what stays as it is


def test_loop_of_different_steps_stays_unrolled() -> None:
    f = lambda x: sum(np.sum(np.exp(x[: t + 1])) for t in range(STEPS))
    check(f, draw(STEPS), loops=0)


def test_loop_with_random_draws_stays_unrolled() -> None:
    def f(x: Any) -> Any:
        for _ in range(STEPS):
            x = np.tanh(x + pb.random_normal((3,)))
        return x

    assert list_loops(roll_program(f, (draw(3),))[1]) == []


def test_loop_with_weights_per_step_stays_unrolled() -> None:
    def f(ws: Any, x: Any) -> Any:
        for w in ws:
            x = np.tanh(x @ w)
        return np.sum(x)

    traced = simplify(pb.compile(f, backend="numpy").lower([draw(3, 3) for _ in range(STEPS)], draw(3)).traced)
    assert list_loops(roll_loops(traced, get_target(), Options())) == []


def test_roll_value_of_early_step_used_by_later_steps() -> None:
    def f(x: Any) -> Any:
        y, kept = x, x
        for t in range(STEPS + 3):
            y = np.sin(y) * kept
            if t == 2:
                kept = y
        return np.sum(y) + np.sum(kept)

    check_both(f, draw(3), loops=(1, 2))


def test_loop_of_few_nodes_stays_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roll, "MIN_NODES", 1000)
    check(leapfrog, 1.5, draw(3), loops=0)


def test_few_elementwise_steps_of_large_arrays_stay_one_kernel() -> None:
    check(leapfrog, 1.5, draw(10), loops=1)
    check(leapfrog, 1.5, draw(1000), loops=0)


# ---- random programs


class RandomLoop:
    """A loop whose step is drawn: what it computes, and what it takes of which arrays."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.steps = int(rng.integers(6, 16))
        self.kinds = rng.integers(0, 14, size=rng.integers(2, 7)).tolist()
        self.first, self.last, self.stacks, self.loss, self.delays = rng.random(5) < [0.3, 0.3, 0.5, 0.5, 0.3]
        self.args = [draw(3, 3), draw(3), draw(2, 3), draw(self.steps + 1, 2, 3), draw(2, self.steps, 3)]

    def __call__(self, w: Any, b: Any, h: Any, xs: Any, columns: Any) -> Any:
        state, before, loss, states = h, h * 0.5, 0.0, []
        for t in range(self.steps):
            z = state
            for kind in self.kinds:
                z = self.compute(kind, z, t, w, b, h, xs, columns)
            if self.delays:
                z = z + 0.1 * before
            if (self.first and t == 0) or (self.last and t == self.steps - 1):
                z = np.sin(z)
            before, state = state, z
            states.append(z)
            loss = loss + np.mean(z * z) if self.loss else loss
        total = np.sum(state * h) + loss
        return total + (np.mean(np.stack(states) ** 3) if self.stacks else 0.0)

    def compute(self, kind: int, z: Any, t: int, w: Any, b: Any, h: Any, xs: Any, columns: Any) -> Any:
        return (
            lambda: np.tanh(z @ w),
            lambda: z * 0.5 + xs[t],
            lambda: z - 0.3 * xs[self.steps - t],
            lambda: np.sin(z) + columns[:, t],
            lambda: z * np.cos(0.1 * t),
            lambda: np.concatenate([z[:, 1:], z[:, :1]], 1) * b,
            lambda: np.where(z > 0, z, 0.2 * z),
            lambda: z / (1.0 + np.sum(z * z, axis=-1, keepdims=True)),
            lambda: np.tanh(xs[t] @ w + z @ w.T),
            lambda: (z.T * 0.9).T + h,
            lambda: z * 0.5 + (xs[t + 1] - xs[t]),
            lambda: np.exp(-(z**2)) * np.maximum(b, 0.1),
            lambda: z + 0.1 * xs[t, :, :1] * columns[:, self.steps - 1 - t],
            lambda: np.stack([z[0] * z[1], z[0] - z[1]]),
        )[kind]()


@pytest.mark.parametrize("seed", range(300 if ALL else 5))
def test_roll_random_loops(seed: int) -> None:
    f = RandomLoop(seed)
    check(f, *f.args)
    check(pb.grad(f, argnums=(0, 1, 2, 3, 4), unconnected="zero"), *f.args)


def test_most_random_loops_are_rolled() -> None:
    programs = [RandomLoop(seed) for seed in range(12)]
    rolled = [bool(list_loops(roll_program(f, tuple(f.args))[1])) for f in programs if f.steps > 10]
    assert sum(rolled) >= 0.7 * len(rolled)
