"""One training of one library: ``python trainings_once.py torch iris 0`` prints its result and its CPU time."""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import json
import os
import sys
from importlib import import_module
from time import process_time

import trainings_data as data

os.environ["PULLBACK_CACHE"] = "0"  # every library compiles for itself
SEEDERS = {
    "ours": lambda seed: import_module("pullback").random.seed(seed),
    "torch": lambda seed: import_module("torch").manual_seed(seed),
    "jax": lambda seed: None,  # draws by NumPy's generators, which the trainings make
    "keras": lambda seed: import_module("keras").utils.set_random_seed(seed),
}


def run(library: str, name: str, seed: int) -> tuple[float, float]:
    """Return the result of a training and its seconds, from the import of the library on if it is not loaded yet."""
    begin = process_time()
    training = getattr(import_module(f"trainings_{library}"), name)
    SEEDERS[library](seed)
    return training(seed), process_time() - begin


if __name__ == "__main__":
    library, name, seed, *effort = sys.argv[1:]
    data.EFFORT = float(effort[0]) if effort else 1.0
    data.iris(0)  # reads data, which is no part of a training
    print(json.dumps(run(library, name, int(seed))))
