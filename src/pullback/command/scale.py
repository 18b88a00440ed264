"""Check a cluster: run a gradient on its workers and compare it with one process."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import __version__
from pullback.errors import PullbackError
from pullback.scale.pool import ENGINES, Pool
from pullback.scale.shards import Shards
from pullback.transforms.grad import value_and_grad

PARTS, ROWS, FEATURES = 8, 4096, 16


def compute_squared_error(weights: Any, shard: Any) -> Any:
    """Return the sum of squared errors of a linear model."""
    return np.sum((np.tanh(shard["x"] @ weights) - shard["y"]) ** 2)


def do_nothing(weights: Any, shard: Any) -> Any:
    """Return a number at once: what a step costs without any work."""
    return np.sum(weights)


def run(given: Sequence[str]) -> int:
    """Run ``pullback scale check`` and return the exit status: 0 if the workers give the same bits as one process."""
    parser = argparse.ArgumentParser(prog="pullback scale", description=__doc__)
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    check = commands.add_parser("check", help="run a gradient on the workers", description=__doc__)
    check.add_argument("--engine", choices=ENGINES, default="processes", help="what runs the workers (processes)")
    check.add_argument("--address", help="of a cluster of Ray or Dask that runs; without it one is started here")
    check.add_argument("--workers", type=int, default=2, help="how many (2)")
    check.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="until they must be there (60)")
    options = parser.parse_args(given)
    try:
        return check_pool(options)
    except PullbackError as error:
        print(f"failed: {error}")
        return 1


def check_pool(options: argparse.Namespace) -> int:
    """Print what is found of a pool, and whether its gradient is that of one process."""
    rng = np.random.default_rng(0)
    shards = Shards({"x": rng.normal(size=(ROWS, FEATURES)), "y": rng.normal(size=ROWS)}, parts=PARTS)
    weights = rng.normal(size=FEATURES)
    began = time.perf_counter()
    with Pool(options.engine, options.workers, address=options.address, start_timeout=options.timeout) as pool:
        print(f"pullback {__version__}, {pool!r}, started in {time.perf_counter() - began:.1f} s")
        for name, value in pool.engine.describe().items():
            print(f"{name}: {value}")
        found = value_and_grad(pool.sum(compute_squared_error, shards))(weights)
        print(f"empty step: {measure(pool.sum(do_nothing, shards), weights) * 1e3:.2f} ms")
        seconds = measure(pool.sum(compute_squared_error, shards), weights)
        print(f"gradient of {ROWS} rows in {PARTS} shards: {seconds * 1e3:.2f} ms")
    with Pool("serial") as one:
        wanted = value_and_grad(one.sum(compute_squared_error, shards))(weights)
    is_same = all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(found, wanted, strict=True))
    largest = float(np.max(np.abs(found.grad - wanted.grad) / np.abs(wanted.grad)))
    hint = f"no: relative difference {largest:.1e}. Set OMP_NUM_THREADS=1 for this process, too; other CPUs may differ."
    print(f"same bits as one process: {'yes' if is_same else hint}")
    return 0 if is_same else 1


def measure(total: Callable[[Any], Any], weights: Any) -> float:
    """Return the median time of a gradient in seconds, after a first call."""
    step = value_and_grad(total)
    step(weights)
    times = []
    for _ in range(10):
        began = time.perf_counter()
        step(weights)
        times.append(time.perf_counter() - began)
    return float(np.median(times))
