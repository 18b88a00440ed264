"""Gradients of Python loops in compiled functions: equal steps are differentiated once, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pullback as pb

STEPS = 30


def draw(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape) * 0.4


def list_loops(f: Callable[..., Any], args: tuple[Any, ...]) -> list[int]:
    """Return the lengths of the loops that the trace of a function has, before any pass."""
    return [n.data.length for n in pb.compile(f, backend="numpy").lower(*args).traced if n.name == "loop"]


def check(f: Callable[..., Any], *args: Any, loops: int, dtype: str = "f8") -> None:
    """Compare compiled gradients with eager ones; ``loops`` is how many loops the trace of the backward pass has."""
    args = tuple(np.asarray(a, dtype) for a in args)
    slope = pb.value_and_grad(f, argnums=tuple(range(len(args))))
    wanted, got = slope(*args), pb.compile(slope)(*args)
    tolerance = {"rtol": 1e-9, "atol": 1e-11} if dtype == "f8" else {"rtol": 2e-4, "atol": 2e-5}
    assert_allclose(got.value, wanted.value, **tolerance)
    for d, expected in zip(got.grad, wanted.grad, strict=True):
        assert d.dtype == expected.dtype
        assert_allclose(d, expected, **tolerance)
    assert len(list_loops(slope, args)) == loops


def rnn(w: Any, u: Any, xs: Any) -> Any:
    h = np.zeros_like(u[0])
    for x in xs:
        h = np.tanh(x @ w + h @ u)
    return np.sum(h**2)


def filter_twice(a: Any, x: Any) -> Any:
    out = np.zeros_like(x)
    out[0] = x[0]
    for i in range(2, len(x)):
        out[i] = a[0] * out[i - 1] + a[1] * out[i - 2] + x[i]
    return np.mean(np.tanh(out)) + out[3]


def fill_columns_backwards(a: Any, x: Any) -> Any:
    out = x * 0.5
    for t in range(x.shape[1] - 2, -1, -1):
        out[:, t] = np.sin(out[:, t + 1] * a[0]) + out[:, t] + a[1]
    return np.sum(out * x)


def orbit(p: Any, u: Any) -> Any:
    states = [u]
    for t in range(STEPS):
        u = u + 0.1 * np.array([p[0] * u[1] - u[0] ** 3, -p[1] * u[0] + 0.01 * t])
        states.append(u)
    return np.sum(np.stack(states)[::2]) + np.sum(states[3] * states[-2])


def solve_tridiagonal(a: Any, b: Any, d: Any) -> Any:
    n = len(b)
    c, e, x = np.zeros_like(b), np.zeros_like(b), np.zeros_like(b)
    c[0], e[0] = a[0] / (2.0 + b[0]), d[0] / (2.0 + b[0])
    for i in range(1, n):
        m = 2.0 + b[i] - a[i] * c[i - 1]
        c[i] = a[i] / m
        e[i] = (d[i] - a[i] * e[i - 1]) / m
    x[n - 1] = e[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = e[i] - c[i] * x[i + 1]
    return np.sum(x**2)


def delay(w: Any, x: Any) -> Any:
    old = older = h = w * 1.0
    total = np.sum(w) * 0.0
    for i in range(len(x)):
        new = np.where(h > 0.1, np.cos(h), 0.5 * h) + 0.3 * older + x[i]
        older, old, h = old, h, new / (1.0 + new * new)
        total = total + np.sum(h) * np.exp(w[0])
    return total


CASES = [
    (rnn, (draw(3, 4), draw(4, 4), draw(STEPS, 3)), 1),
    (filter_twice, (draw(2), draw(STEPS)), 1),
    (fill_columns_backwards, (draw(2), draw(3, STEPS)), 1),
    (orbit, (draw(2), draw(2)), 1),
    (solve_tridiagonal, (draw(40), draw(40), draw(40)), 2),
    (delay, (draw(3), draw(STEPS, 3)), 1),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("f", "args", "loops"), CASES, ids=[f.__name__ for f, _, _ in CASES])
def test_backward_pass_is_traced_as_loop(f: Callable[..., Any], args: tuple[Any, ...], loops: int, dtype: str) -> None:
    check(f, *args, loops=loops, dtype=dtype)


def write_older(w: Any, x: Any) -> Any:
    out, older, old, h = np.zeros((len(x), 3)) * w, w * 0.0, w * 0.5, w * 1.0
    for i in range(len(x)):
        out[i] = older
        older, old, h = old, h, np.tanh(h * 0.7 + x[i])
    return np.sum(out**2) + np.sum(h)


def write_parts(w: Any, x: Any) -> Any:
    parts = [np.sin(w * k) if k % 3 else np.cos(w * w) for k in range(len(x))]
    same, out, h = np.exp(w), np.zeros((len(x), 3)) * w, w * 1.0
    ends = np.zeros((len(x), 3)) * w
    for i in range(len(x)):
        out[i] = parts[i]
        ends[i] = same
        h = np.tanh(h + x[i])
    return np.sum(out**2 * x[:, None]) + np.sum(h) + np.sum(ends * x[:, None])


def scale_by_parts(w: Any, x: Any) -> Any:
    parts = [np.sin(w * k) if k % 3 else np.cos(w * w) for k in range(len(x))]
    h = w * 1.0
    for i in range(len(x)):
        h = np.tanh(h * parts[i] + x[i])
    return np.sum(h**2)


def repeat_constant(w: Any, x: Any) -> Any:
    h = w * 1.0
    for i in range(len(x)):
        same = np.exp(w)
        h = np.tanh(h * same + x[i])
    return np.sum(h) + np.sum(same)


def leak_by_parameter(w: Any, x: Any) -> Any:
    h = w * 1.0
    for i in range(len(x)):
        h = pb.leaky_relu(h * 0.9 + x[i], 0.3)
    return np.sum(h**2)


def fill_broadcast(w: Any, x: Any) -> Any:
    out, h = np.zeros((len(x), 3)) * w, np.sum(w)
    for i in range(len(x)):
        h = np.tanh(h + x[i])
        out[i] = h
    return np.sum(out * out * w)


def read_around(w: Any, x: Any) -> Any:
    h = w * 1.0
    for i in range(-5, len(x) - 5):
        h = np.tanh(h * x[i])
    return np.sum(h)


def read_uneven(w: Any, x: Any) -> Any:
    h = w * 1.0
    for i in range(len(x)):
        h = np.tanh(h * x[i if i < 8 else i // 2])
    return np.sum(h)


def write_slices(w: Any, x: Any) -> Any:
    out = x * np.sum(w)
    for i in range(1, len(x) - 1):
        out[i : i + 1] = np.tanh(out[i - 1 : i] + out[i])
    return np.sum(out**2)


def write_rows_and_columns(w: Any, x: Any) -> Any:
    out = np.outer(x, w)
    for i in range(1, len(x)):
        out[i] = out[i - 1] * 0.9
        out[:, 0] = out[i, 0] + x
    return np.sum(out**2)


def use_first_step(w: Any, x: Any) -> Any:
    first, h = None, w * 1.0
    for i in range(len(x)):
        h = np.tanh(h + x[i])
        first = h if first is None else first
        h = h * first
    return np.sum(h)


ELEMENTWISE = [
    (write_older, 70, 1), (write_parts, 70, 1), (scale_by_parts, 70, 1), (repeat_constant, 70, 1),
    (leak_by_parameter, 70, 1), (use_first_step, 70, 1), (fill_broadcast, 70, 0), (read_around, 70, 0),
    (read_uneven, 70, 0), (write_slices, 20, 0), (write_rows_and_columns, 20, 0),
]  # fmt: skip


@pytest.mark.parametrize(("f", "steps", "loops"), ELEMENTWISE, ids=[f.__name__ for f, _, _ in ELEMENTWISE])
def test_backward_pass_of_elementwise_steps(f: Callable[..., Any], steps: int, loops: int) -> None:
    check(f, draw(3), draw(steps), loops=loops)


@pytest.mark.parametrize(("f", "args"), [(orbit, (draw(2), draw(2))), (delay, (draw(3), draw(STEPS, 3)))])
def test_second_order_and_vmap_of_traced_backward_loops(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    def bend(*args: Any) -> Any:
        return pb.grad(lambda *xs: np.sum(np.sin(pb.grad(f, argnums=0)(*xs))), argnums=1)(*args)

    def push(*args: Any) -> Any:
        return pb.jvp(lambda x: pb.grad(f, argnums=1)(args[0], x), [args[1]], [np.ones_like(args[1])])[1]

    def spread(*args: Any) -> Any:
        return pb.vmap(lambda a: pb.grad(f, argnums=0)(a, args[1]))(np.stack([args[0], 2.0 * args[0]]))

    for transform in (bend, push, spread):
        assert_allclose(pb.compile(transform)(*args), transform(*args), rtol=1e-8, atol=1e-10)


def test_step_values_are_usable_after_traced_backward_loop() -> None:
    def f(w: Any, x: Any) -> Any:
        kept: list[Any] = []

        def loss(w: Any) -> Any:
            h = w * 1.0
            for i in range(len(x)):
                h = np.tanh(h * w + x[i])
                kept.append(h)
            return np.sum(h * kept[4])

        return pb.grad(loss)(w), kept[2] + kept[-1]

    args = draw(3), draw(STEPS, 3)
    for got, wanted in zip(pb.compile(f)(*args), f(*args), strict=True):
        assert_allclose(got, wanted, rtol=1e-10)


@pytest.mark.parametrize("kind", ["windows", "other steps", "whole array", "host op"])
def test_irregular_loops_are_differentiated_step_by_step(kind: str) -> None:
    def f(w: Any, x: Any) -> Any:
        out, h = np.zeros_like(x), w * 1.0
        for i in range(2, len(x)):
            if kind == "windows":
                h = np.tanh(h + np.sum(x[i - 2 : i]))
            elif kind == "other steps":
                h = np.tanh(h * x[i * i % len(x)])
            elif kind == "whole array":
                out[i] = np.sum(h) + 0.01 * np.sum(out)
                h = np.sin(h * 0.1 + 0.1 * out[i])
            else:
                h = np.tanh(np.linalg.solve(np.eye(3) + np.outer(h, h), h) + x[i])
        return np.sum(h) + np.sum(out * x)

    check(f, draw(3), draw(STEPS), loops=0)


def test_graph_of_backward_pass_does_not_grow_with_steps() -> None:
    def count(steps: int) -> int:
        forward, both = (
            len(pb.compile(g, backend="numpy").lower(draw(3, 4), draw(4, 4), draw(steps, 3)).traced.nodes)
            for g in (rnn, pb.grad(rnn, argnums=(0, 1, 2)))
        )
        return both - forward

    # What remains are the values that the backward pass reads, one view for each step.
    assert count(80) - count(40) <= 40 * 3
