"""Import time, and peak memory of gradients of large arrays.

Import time is that of the statement in a fresh interpreter, ``import pullback`` against ``import numpy``, in turn.
Memory is the peak of what NumPy and Python allocate during one call, results included and inputs not.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from workloads import big, big_by_hand

import pullback as pb

MEGABYTE = 1e6


def time_import(module: str, cache: str) -> float:
    """Return how long ``import module`` takes in a fresh interpreter, with its bytecode kept in ``cache``."""
    code = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = cache
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def measure_import_ratio(rounds: int) -> dict[str, float]:
    with TemporaryDirectory() as cache:
        rows = [(time_import("numpy", cache), time_import("pullback", cache)) for _ in range(rounds + 1)]
    rows = rows[1:]  # the first writes the bytecode
    return {
        "import numpy, ms": median(numpy for numpy, _ in rows) * 1e3,
        "import pullback, ms": median(ours for _, ours in rows) * 1e3,
        "import pullback ÷ import numpy": median(ours / numpy for numpy, ours in rows),
    }


def measure_peak(call: Callable[[], Any]) -> int:
    """Return the most that is allocated at once while ``call`` runs, above what there was before."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def measure_chain() -> dict[str, float]:
    """Return the chain of 10 ops on 1e6 float32, first call (no buffers kept from earlier)."""
    random = np.random.default_rng(0)
    x, w = (random.uniform(0.1, 1, 10**6).astype("f4") for _ in range(2))
    ours = measure_peak(lambda: pb.value_and_grads(lambda x, w: big(pb, x, w))([x, w]))
    hand = measure_peak(lambda: big_by_hand(x, w))
    return {
        "10 ops on 1e6 float32: peak, MB": ours / MEGABYTE,
        "10 ops on 1e6 float32: peak by hand, MB": hand / MEGABYTE,
        "10 ops on 1e6 float32: peak ÷ by hand": ours / hand,
    }


def measure_additions() -> dict[str, float]:
    """20 additions of 8 MB: the backward pass needs none of their values."""
    x = np.ones(10**6)

    def additions(x: Any) -> Any:
        y = x
        for _ in range(20):
            y = y + x
        return pb.sum(y)

    peak = measure_peak(lambda: pb.grad(additions)(x))
    return {"20 additions of 8 MB: arrays alive at once": peak / x.nbytes}


def layer(x: Any) -> Any:
    """Some arithmetic that keeps half a dozen arrays for the backward pass."""
    return x + 0.1 * pb.tanh(pb.exp(-x * x) * pb.sin(x) + pb.log(1 + x * x) * pb.cos(x))


def repeat_layer(f: Callable[[Any], Any], times: int) -> Callable[[Any], Any]:
    def chain(x: Any) -> Any:
        for _ in range(times):
            x = f(x)
        return x

    return chain


def checkpoint_halves(times: int) -> Callable[[Any], Any]:
    """Return the chain of layers of which each half is computed again, and each half of that."""
    if times == 1:
        return layer
    first, second = (pb.recompute_grad(checkpoint_halves(n)) for n in (times // 2, times - times // 2))
    return lambda x: second(first(x))


def measure_recompute() -> dict[str, float]:
    """Return a chain of 100 layers of 0.8 MB, with intermediate values computed again in the backward pass."""
    x = np.linspace(0, 1, 10**5)
    chains = {
        "10 parts": repeat_layer(pb.recompute_grad(repeat_layer(layer, 10)), 10),
        "each layer": repeat_layer(pb.recompute_grad(layer), 100),
        "nested halves": checkpoint_halves(100),
    }

    def peak(chain: Callable[[Any], Any]) -> int:
        return measure_peak(lambda: pb.grad(lambda x: pb.sum(chain(x)))(x))

    plain = peak(repeat_layer(layer, 100))
    return {f"100 layers, recompute_grad of {name} ÷ plain": peak(chain) / plain for name, chain in chains.items()}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="footprint.py", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="imports of each kind (default 15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    given = parser.parse_args(argv)
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    found = measure_chain() | measure_additions() | measure_recompute() | measure_import_ratio(given.rounds)
    for name, figure in found.items():
        print(f"{name:<52}{figure:>8.2f}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
