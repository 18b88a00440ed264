"""Nine whole trainings, as users of each library write them: pullback, torch's eager loops, jitted steps of jax, Keras.

Each is run with several seeds; printed are the mean result of each library and its CPU time from the first line to the
last, compiling included.  A ratio is the peer's time divided by ours: above 1, pullback is quicker.  The last columns
are the lines of code of each.  ``--quick`` makes all of them short, to see that they run.  With ``--alone`` each is run
in a process of its own, in which nothing was called before; its time includes the import of the library.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
from isa import add_isa_option  # isort: skip
import argparse
import json
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import trainings_data as data
from code_lines import count_lines
from recording import record_figures
from trainings_once import run

TRAININGS = {  # and what is printed of the result
    "iris": "accuracy", "digits": "accuracy", "addition": "accuracy", "spelling": "loss", "cart_pole": "steps",
    "vae": "loss", "gpt": "loss", "transfer": "accuracy", "wgan": "distance",
}  # fmt: skip


def find_file(library: str) -> Path:
    return Path(__file__).parent / f"trainings_{library}.py"


def run_alone(library: str, name: str, seed: int) -> tuple[float, float]:
    """Return what ``run`` returns in a new process."""
    command = [sys.executable, Path(__file__).parent / "trainings_once.py", library, name, str(seed), str(data.EFFORT)]
    result, seconds = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return result, seconds


def measure(name: str, libraries: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Return results, seconds and the ratios of a training."""
    results: dict[str, list[float]] = {library: [] for library in libraries}
    times: dict[str, list[float]] = {library: [] for library in libraries}
    for seed in range(options.rounds):
        for library in libraries[seed % len(libraries) :] + libraries[: seed % len(libraries)]:
            result, seconds = (run_alone if options.alone else run)(library, name, seed)
            results[library].append(result)
            times[library].append(seconds)
    ratios = {
        library: median(b / a for a, b in zip(times["ours"], times[library], strict=True)) for library in libraries[1:]
    }
    return {"title": name.replace("_", "-"), "results": results, "seconds": times, "ratios": ratios}


def format_row(name: str, found: dict[str, Any]) -> str:
    """Return the line of a training: results, seconds, ratios and lines of code, each by library."""
    cells = [f"{mean(its):.3f} ±{np.std(its):.3f}" for its in found["results"].values()]
    cells += [f"{median(its):.2f} s" for its in found["seconds"].values()]
    cells += [f"{ratio:.2f}" for ratio in found["ratios"].values()]
    cells += [str(count_lines(find_file(library), name)) for library in found["results"]]
    return f"{found['title']:10}{TRAININGS[name]:10}" + "".join(f"{cell:>16}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_isa_option(parser)
    parser.add_argument("--rounds", type=int, default=3, help="seeds")
    parser.add_argument("--only", default="", help="names that begin so, separated by commas")
    parser.add_argument("--peers", default="torch,jax", help="of torch, jax and keras (on torch)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    parser.add_argument("--alone", action="store_true", help="each in a process of its own, imports included")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    data.EFFORT = 0.1 if options.quick else 1.0
    peers = options.peers.split(",")
    libraries, found = ["ours", *peers], {}
    for library in libraries if not options.alone else ():  # the first call loads what it needs
        run(library, "iris", 0)
    heads = [*libraries, *libraries, *(f"{peer} ÷ ours" for peer in peers), *(f"{its}: lines" for its in libraries)]
    print(f"{'':20}" + "".join(f"{head:>16}" for head in heads))
    for name in TRAININGS:
        if name.startswith(tuple(options.only.split(","))):
            found[name] = measure(name, libraries, options)
            print(format_row(name, found[name]), flush=True)
    if options.json:
        versions = {"python": platform.python_version(), **{its: version(its) for its in ("numpy", *peers)}}
        record_figures(options.json, versions, options.rounds, found)


if __name__ == "__main__":
    main()
