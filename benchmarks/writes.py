"""What an in-place write costs under a gradient: ``acc += x * y`` in a loop against ``acc = acc + x * y``.

A ratio is the time of the loop that writes divided by that of the one that makes new tensors: the bar is 1.2.
One core, one thread, process CPU time, medians of the ratios within a round.
"""

from __future__ import annotations

import one_thread
from isa import add_isa_option

# isort: split
import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import compute_paired_ratio, time_interleaved

import pullback as pb

STEPS = 50
RNG = np.random.default_rng(0)

PROGRAM = """
def written(x, y):
    acc = x * y
    for _ in range({steps}):
        acc {sign}= {value}
    return acc.sum()

def made(x, y):
    acc = x * y
    for _ in range({steps}):
        acc = acc {sign} {value}
    return acc.sum()
"""


def make_pair(sign: str, value: str) -> list[Any]:
    """Return the program that writes and the one that makes new tensors."""
    space: dict[str, Any] = {}
    exec(PROGRAM.format(steps=STEPS, sign=sign, value=value), space)
    return [space["written"], space["made"]]


def use_grads(f: Callable[..., Any], x: Any, y: Any) -> Callable[[], Any]:
    g = pb.grads(f)
    return lambda: g([x, y])


def use_constant(f: Callable[..., Any], x: Any, y: Any) -> Callable[[], Any]:
    g = pb.grad(lambda x: f(x, y))
    return lambda: g(x)


def use_value_and_grad(f: Callable[..., Any], x: Any, y: Any) -> Callable[[], Any]:
    g = pb.value_and_grad(f, argnums=0)
    return lambda: g(x, y)


def use_variables(f: Callable[..., Any], x: Any, y: Any) -> Callable[[], Any]:
    v, w = pb.variable(x), pb.variable(y)
    return lambda: pb.variable_grads(lambda: f(v, w))


VECTOR, SHORT, MATRIX = (RNG.normal(1, 0.01, (2, *shape)) for shape in [(1000,), (10,), (8, 8)])
ROWS: list[tuple[str, str, str, Any, Any, Any]] = [
    *((f"acc {sign}= x * y, n = 10", sign, "x * y", use_grads, *SHORT) for sign in "+-*/"),
    *((f"acc {sign}= x * y, n = 1000", sign, "x * y", use_grads, *VECTOR) for sign in "+-*"),
    *((f"acc {sign}= x * y, 8×8", sign, "x * y", use_grads, *MATRIX) for sign in "+-*"),
    *((f"acc {sign}= x * y, numbers", sign, "x * y", use_grads, 1.01, 0.99) for sign in "+-*"),
    ("acc += x * y, y a NumPy array", "+", "x * y", use_constant, *SHORT),
    ("acc += y, y a NumPy array", "+", "y", use_constant, *SHORT),
    ("acc *= 1.01, n = 10", "*", "1.01", use_constant, *SHORT),
    ("acc += x * 1.5, numbers", "+", "x * 1.5", use_constant, 1.01, 0.99),
    ("acc += x[0] * y, 8×8", "+", "x[0] * y", use_grads, MATRIX[0], MATRIX[1]),
    ("acc += x[0], a number", "+", "x[0]", use_grads, *SHORT),
    ("value_and_grad, n = 10", "+", "x * y", use_value_and_grad, *SHORT),
    ("value_and_grad, a number", "+", "x * y", use_value_and_grad, 1.01, 0.99),
    ("variable_grads, n = 10", "+", "x * y", use_variables, *SHORT),
    ("variable_grads, 8×8", "+", "x * y", use_variables, *MATRIX),
]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="writes.py", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="rounds per row (default 30)")
    parser.add_argument("--only", default="", help="rows whose title has this in it")
    add_isa_option(parser)
    given = parser.parse_args(argv)
    print(f"core {one_thread.CORE}, {given.rounds} rounds, loops of {STEPS} steps, process CPU time\n")
    print(f"{'':<36}{'written ÷ made':>16}{'µs a step':>12}")
    for title, sign, value, use, x, y in ROWS:
        if given.only not in title:
            continue
        calls = dict(zip(("written", "made"), (use(f, x, y) for f in make_pair(sign, value)), strict=True))
        times = time_interleaved(calls, given.rounds)
        ratio = compute_paired_ratio(times["written"], times["made"])
        print(f"{title:<36}{ratio:>16.2f}{min(times['written']) / STEPS * 1e6:>12.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
