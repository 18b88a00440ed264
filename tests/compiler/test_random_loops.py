"""Random programs of nested loops, branches and writes: compiled values and derivatives equal eager ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb

SIMPLE, ALL = 6, 13


def draw_function(random: np.random.Generator, depth: int, count: int) -> Any:
    """Return a function of a list of ``count`` vectors of one length, with loops and branches up to a depth."""
    kind = int(random.integers(ALL if depth else SIMPLE))
    i, j, length = int(random.integers(count)), int(random.integers(count)), int(random.integers(1, 4))
    c = float(random.choice([-0.5, 0.0, 0.4]))
    if kind < SIMPLE:
        return (
            lambda v: np.tanh(v[i]) * v[j],
            lambda v: v[i] + v[j] * c,
            lambda v: np.sin(v[i]) + np.sum(v[j]) * 0.1,
            lambda v: np.where(v[i] > v[j], v[i] * c, v[j]),
            lambda v: write_twice(v[i], v[j], c),
            lambda v: np.sqrt(v[i] * v[i]) + v[j],
        )[kind]
    first, second = draw_function(random, depth - 1, count), draw_function(random, depth - 1, count)
    step = draw_function(random, depth - 1, count + 1)
    return (
        lambda v: step([*v, first(v)]),
        lambda v: pb.cond(v[i][0] > c, lambda: first(v), lambda: second(v)),
        lambda v: pb.switch((v[i][0] * 3).astype(np.int64), [lambda: first(v), lambda: second(v), lambda: v[j]]),
        lambda v: pb.scan(lambda h, x: (step([*v, h]) * x, h), v[j] * 1.0, np.linspace(0.2, 0.9, length))[0],
        lambda v: pb.fori_loop(0, (v[i][0] * 2).astype(np.int64), lambda t, h: step([*v, h]) * 0.5, v[j], max_steps=3),
        lambda v: np.sum(pb.map(lambda x: step([*v, x]), np.stack([v[i], v[j] * c])), axis=0),
        lambda v: pb.while_loop(lambda h: np.sum(h) < c, lambda h: np.abs(step([*v, h])) + 0.3, v[j], max_steps=3),
    )[kind - SIMPLE]


def write_twice(x: Any, y: Any, c: float) -> Any:
    """Return a sum of an array as it was before and after writes, one of them through a view."""
    z = x * 1.0
    before = z * y
    z[0] = x[-1] * c
    part = z[1:]
    part += y[:-1]
    return before + z


@pytest.mark.parametrize("seed", [*sample(range(12), 4), 40, 73, 128, 152, 204, 271])
def test_random_loops_compiled_equal_eager(seed: int) -> None:
    random = np.random.default_rng(seed)
    f = draw_function(random, 2, 2)
    x, y = random.normal(size=(2, 3))
    x[0] = random.choice([0.0, x[0]])  # where the derivative of the root is not finite
    loss = lambda x, y: np.sum(np.tanh(f([x, y]))) + np.sum(x * y)
    pull = lambda x, y: pb.value_and_grads(loss)([x, y])
    push = lambda x, y: pb.jvp(lambda x: pb.grad(loss, argnums=1)(x, y), [x], [y])[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        value, slopes = pull(x, y)
        expected = [value, *slopes] + ([] if seed % 4 else [push(x, y)])
    found, slopes = pb.compile(pull)(x, y)
    for a, b in zip([found, *slopes] + ([] if seed % 4 else [pb.compile(push)(x, y)]), expected, strict=True):
        if np.isfinite(b).all():
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
