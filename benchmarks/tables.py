"""A training step on an embedding table: its cost on a short one and on a long one, of which as many rows are read.

A ratio is the time on the long table divided by that on the short one: it should stay near 1, as both steps read and
change the same number of rows.  The tables of all ways are compared after some steps: WRONG fails the run.  Process CPU
time on one core, medians of paired rounds.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
from isa import add_isa_option  # isort: skip
import argparse
import platform
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
from measure import compute_paired_ratio, time_interleaved

import pullback as pb

LENGTHS, WIDTH = (10_000, 1_000_000), 64
BAR = 2.0
OPTIMIZERS: dict[str, Callable[[], pb.train.Optimizer]] = {
    "sgd": lambda: pb.train.sgd(0.1),
    "adagrad": lambda: pb.train.adagrad(0.1),
    "adam, lazy": lambda: pb.train.adam(0.001, lazy=True),
}


def draw_batches(length: int, rows: int) -> Iterator[Any]:
    random = np.random.default_rng(0)
    return cycle([random.integers(0, length, rows) for _ in range(50)])


def make_step(way: str, optimizer: pb.train.Optimizer, table: pb.Variable) -> Callable[[Any], Any]:
    """Return a step that takes row numbers."""

    def step(at: Any) -> Any:
        return optimizer.minimize(lambda: pb.mean(pb.gather(table, at) ** 2), return_cost=True)

    def dense(at: Any) -> None:
        optimizer.apply_gradients(pb.variable_grads(lambda: pb.mean(pb.gather(table, at) ** 2)).grads)

    return {"eager": step, "compiled": pb.compile(step), "dense": dense}[way]


def is_right(name: str) -> bool:
    """Return whether some steps by rows give the same table as with dense gradients.

    A lazy rule has none to compare with.
    """
    start = np.random.default_rng(1).normal(size=(LENGTHS[0], WIDTH)).astype(np.float32)
    found = {}
    for way in ("eager", "compiled") if "lazy" in name else ("eager", "compiled", "dense"):
        table = pb.variable(start)
        step = make_step(way, OPTIMIZERS[name](), table)
        for at, _ in zip(draw_batches(50, 64), range(5), strict=False):
            step(at)
        found[way] = table.numpy()
    good = all(np.allclose(x, found["eager"], rtol=1e-5, atol=1e-6) for x in found.values())
    if not good:
        print(f"{name}: WRONG: the tables differ after 5 steps")
    return good


def measure(name: str, way: str, rows: int, rounds: int) -> None:
    calls = {}
    for length in LENGTHS:
        table = pb.variable(np.ones((length, WIDTH), np.float32))
        step, source = make_step(way, OPTIMIZERS[name](), table), draw_batches(length, rows)
        calls[str(length)] = lambda step=step, source=source: step(next(source))
    times = time_interleaved(calls, rounds)
    short, long = (times[str(length)] for length in LENGTHS)
    ratio = compute_paired_ratio(long, short)
    figures = "  ".join(f"{median(seconds) * 1e3:8.3f} ms" for seconds in (short, long))
    print(f"{name + ', ' + way:24}{rows:6} rows  {figures}   {ratio:5.2f}" + ("" if ratio <= BAR else "  above"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_isa_option(parser)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", default="256,2048", help="how many rows a step reads")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one thread")
    print(f"tables of {' and '.join(f'{n:,} × {WIDTH}' for n in LENGTHS)}; the bar is {BAR}")
    good = [is_right(name) for name in OPTIMIZERS]
    for rows in map(int, options.rows.split(",")):
        for name in OPTIMIZERS:
            for way in ("eager", "compiled"):
                measure(name, way, rows, options.rounds)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
