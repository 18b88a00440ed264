"""Two revisions of pullback on the rows of eager.py and compiled.py: new ÷ old, below 1 is quicker.

    python benchmarks/revisions.py 1df9b26            # that revision against the working tree
    python benchmarks/revisions.py v0.2 main --only eager/mlp,compiled/chain
    python benchmarks/revisions.py 1df9b26 --first-call

The programs are those of this working tree; only the library comes from the revisions.  Each row runs in one process
per revision, and the two take turns: what slows the machine down slows both.  Several such pairs of processes are
started, because where a process has its arrays matters too; a figure is the median over the pairs of the median ratio.
Time is CPU time of the process, on one core.  The exit status is 1 where a row is slower by more than the bar.
"""

from __future__ import annotations

import isa
import one_thread  # noqa: F401

# isort: split
import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from time import process_time
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BURST = 0.01  # seconds of calls between two turns


# ---- one row, in a process whose library is that of a revision


def list_rows() -> dict[str, Callable[[], Callable[[], Any]]]:
    """Return the rows by key, each as a function that makes the call to be timed."""
    import numpy as np
    from libraries import Ours
    from peers import Pullback
    from programs import list_programs
    from workloads import list_workloads

    import pullback as pb

    if not hasattr(pb, "scan"):  # newer than some revisions; a row that uses it fails there
        pb.scan = None  # type: ignore[assignment]

    def compile_row(p: Any) -> Callable[[], Any]:
        Ours(pb.compile).compile(lambda x: np.sum(x * x))(np.ones(3, "f4"))  # loads the compiler
        return Ours(pb.compile).call(p, *p.data())

    eager = {f"eager/{w.key}": lambda w=w: Pullback().call(w.f, w.inputs, w.constants) for w in list_workloads()}
    return eager | {f"compiled/{p.key}": lambda p=p: compile_row(p) for p in list_programs()}


def run_child(key: str, first_call: bool) -> None:
    """Print seconds per call: of the first call, or of a burst of calls for each line that is read."""
    from measure import count_repetitions

    call = list_rows()[key]()
    begin = process_time()
    call()
    if first_call:
        print(process_time() - begin)
        return
    count = count_repetitions(call, BURST)
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = process_time()
        for _ in range(count):
            call()
        print((process_time() - begin) / count, flush=True)


# ---- two revisions


def unpack_source(revision: str, folder: Path) -> Path:
    """Return the directory with the package of a revision; that of a directory is used as it is."""
    if Path(revision).is_dir():
        return Path(revision).resolve() / "src"
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        sys.exit(f"{revision} is neither a directory nor a git revision: {packed.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


class Child:
    """A process of one row with the library of one revision, and an empty directory for object code."""

    def __init__(self, name: str, source: Path, key: str, first_call: bool) -> None:
        self.name, self.cache = name, tempfile.TemporaryDirectory()
        environment = {**os.environ, "PYTHONPATH": str(source), "PULLBACK_CACHE_DIR": self.cache.name}
        command = [sys.executable, __file__, "--child", json.dumps([key, first_call])]
        pipe = subprocess.PIPE
        self.process: Any = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def ask(self, line: str = "") -> str:
        """Send a line, and return the one that is answered."""
        self.process.stdin.write(line)
        self.process.stdin.flush()
        answer = str(self.process.stdout.readline()).strip()
        if not answer:
            why = (self.process.stderr.read().strip().splitlines() or ["ended"])[-1]
            raise ChildProcessError(f"{self.name}: {why}"[:120])
        return answer

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.cache.cleanup()


def time_calls(sources: dict[str, Path], key: str, given: Any) -> tuple[float, float]:
    """Return (old, new) seconds per call of one pair of processes, in the round with the median ratio."""
    children = [Child(name, source, key, False) for name, source in sources.items()]
    try:
        for child in children:
            child.ask()  # it has compiled, and knows how many calls make a burst
        rounds = []
        for number in range(given.rounds):
            order = children if number % 2 else children[::-1]
            taken = {child.name: float(child.ask("\n")) for child in order}
            rounds.append((taken["old"], taken["new"]))
    finally:
        for child in children:
            child.stop()
    return sorted(rounds, key=lambda pair: pair[1] / pair[0])[len(rounds) // 2]


def time_first_calls(sources: dict[str, Path], key: str, given: Any) -> tuple[float, float]:
    """Return (old, new) seconds of the first call, one process after the other."""
    taken = {}
    for name, source in sources.items():
        child = Child(name, source, key, True)
        try:
            taken[name] = float(child.ask())
        finally:
            child.stop()
    return taken["old"], taken["new"]


def compare_revisions(sources: dict[str, Path], keys: list[str], given: Any) -> bool:
    """Print a line per row; return whether none is slower than the bar allows or fails in the new revision."""
    scale, unit = (1e3, "ms") if given.first_call else (1e6, "µs")
    print(f"{'new ÷ old; below 1 is quicker':<36}{f'old, {unit}':>12}{f'new, {unit}':>12}{'new ÷ old':>12}")
    ratios, failed = [], 0
    for key in keys:
        try:
            pairs = [
                (time_first_calls if given.first_call else time_calls)(sources, key, given) for _ in range(given.pairs)
            ]
        except ChildProcessError as error:
            failed += str(error).startswith("new")
            print(f"{key:<36}{error}", flush=True)
            continue
        ratios.append(median(new / old for old, new in pairs))
        old, new = (median(side) * scale for side in zip(*pairs, strict=True))
        verdict = "   SLOWER" if ratios[-1] > 1 + given.bar / 100 else ""
        print(f"{key:<36}{old:>12.2f}{new:>12.2f}{ratios[-1]:>12.3f}{verdict}", flush=True)
    slower = sum(ratio > 1 + given.bar / 100 for ratio in ratios)
    mean = f"geometric mean {geometric_mean(ratios):.3f}; " if ratios else ""
    print(f"\n{mean}{slower} of {len(ratios)} rows slower by more than {given.bar:g} %, {failed} fail in the new one")
    return not slower and not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", nargs="?", help="a git revision or a directory")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="the same (default: the working tree)")
    parser.add_argument("--only", default="", metavar="KEYS", help="rows whose key begins so: eager/mlp,compiled/chain")
    parser.add_argument("--first-call", action="store_true", help="the first call, with an empty cache; compiled rows")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each pair of processes (default 15)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes (default 5)")
    parser.add_argument("--bar", type=float, default=3.0, help="percent that a row may be slower (default 3)")
    isa.add_isa_option(parser)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        run_child(*json.loads(given.child))
        return 0
    if not given.old:
        parser.error("give the old revision")
    rows = list_rows()
    keys = [key for key in rows if key.startswith(tuple(given.only.split(",")))]
    keys = [key for key in keys if key.startswith("compiled") or not given.first_call]
    if not keys:
        parser.error(f"--only: no row begins with {given.only!r}; there are {', '.join(rows)}")
    with tempfile.TemporaryDirectory() as folder:
        given_by_name = {"old": given.old, "new": given.new}
        sources = {name: unpack_source(tree, Path(folder, name)) for name, tree in given_by_name.items()}
        return 0 if compare_revisions(sources, keys, given) else 1


if __name__ == "__main__":
    sys.exit(main())
