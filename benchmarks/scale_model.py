"""Steps per second of pb.scale on 1 to 1,024 workers, predicted from what was measured on one machine.

    python benchmarks/scale_model.py --parameters 1e6 --compute 1.0 --bandwidth 1e9 --call 0.3e-3 --add 2e9

This is a simulation and no measurement.  A step is: the driver sends a call to each worker, one after the other; the
parameters reach all of them (by the engine's own tree of copies); each computes its share of the gradient; results are
added.  With ``tree="driver"`` the driver receives and adds a gradient from each worker; with ``tree="workers"`` they
send theirs to each other in as many rounds as the logarithm of their number, and the driver receives one.

compute: seconds that one worker needs for the whole gradient; it is divided by the number of workers.
bandwidth: bytes per second of one machine's network; call: seconds that the driver needs for a call and its answer;
add: bytes per second at which gradients are added.
"""

from __future__ import annotations

import argparse
from math import ceil, log2

WORKERS = [2**k for k in range(11)]


def predict(workers: int, size: float, compute: float, bandwidth: float, call: float, add: float, tree: str) -> float:
    """Return the seconds of a step."""
    rounds = ceil(log2(workers)) if workers > 1 else 0
    send = size / bandwidth
    step = workers * call + (rounds + 1) * send + compute / workers  # parameters are passed on from worker to worker
    if tree == "driver":
        return step + workers * send + (workers - 1) * size / add
    return step + workers * call + rounds * (send + size / add) + send  # the calls that add, and the one sum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=float, default=1e6, help="float32 numbers (1e6)")
    parser.add_argument("--compute", type=float, default=1.0, help="seconds of the whole gradient on one worker (1)")
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes per second (1.25e9: 10 Gbit/s)")
    parser.add_argument("--call", type=float, default=0.5e-3, help="seconds of the driver for a call (0.5e-3)")
    parser.add_argument("--add", type=float, default=2e9, help="bytes per second of additions (2e9)")
    options = parser.parse_args()
    given = (options.parameters * 4, options.compute, options.bandwidth, options.call, options.add)
    print("predicted, not measured: steps per second")
    print(f"{'workers':>8} {'tree=driver':>12} {'tree=workers':>13}")
    best = {}
    for workers in WORKERS:
        rates = {tree: 1 / predict(workers, *given, tree) for tree in ("driver", "workers")}
        print(f"{workers:8} {rates['driver']:12.2f} {rates['workers']:13.2f}")
        for tree, rate in rates.items():
            best[tree] = max(best.get(tree, (0.0, 0)), (rate, workers))
    for tree, (rate, workers) in best.items():
        print(f'tree="{tree}" is quickest with {workers} workers: {rate:.2f} steps per second')


if __name__ == "__main__":
    main()
