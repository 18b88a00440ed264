"""Value and gradients, op by op: pullback against torch, autograd, jax and hand-written NumPy.

A ratio is the peer's time divided by ours: above 1, pullback is quicker.  Every contestant's numbers are compared
with the hand-written ones before anything is timed.  One core, one thread, process CPU time, medians of the ratios
within a round.
"""

from __future__ import annotations

import one_thread
from isa import add_isa_option

# isort: split
import argparse
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measure import compute_paired_ratio, geometric_mean, is_close, time_interleaved
from peers import PEERS, Peer, Pullback, find_installed
from recording import record_figures
from workloads import Workload, list_workloads

OURS, BY_HAND = "pullback", "by hand"


def time_workload(workload: Workload, peers: list[Peer], rounds: int) -> dict[str, list[float]]:
    """Seconds per call of every contestant; refuses to time one that gives other numbers."""
    w = workload
    calls = {BY_HAND: lambda: w.by_hand(*w.inputs, *w.constants)}
    calls |= {peer.name: peer.call(w.f, w.inputs, w.constants) for peer in peers if peer.can(w.needs)}
    expected = calls[BY_HAND]()
    for name, call in calls.items():
        if not is_close(call(), expected, w.tolerance):
            raise SystemExit(f"{w.title}: {name} gives other numbers than the program written by hand")
    return time_interleaved(calls, rounds)


def compute_ratios(times: dict[str, list[float]]) -> dict[str, float]:
    """Return each peer's time over ours, and ours over the hand-written program's."""
    ours = times[OURS]
    found = {name: compute_paired_ratio(its, ours) for name, its in times.items() if name not in (OURS, BY_HAND)}
    return found | {BY_HAND: compute_paired_ratio(ours, times[BY_HAND])}


def format_row(title: str, cells: list[str]) -> str:
    return f"{title:<36}" + "".join(f"{cell:>12}" for cell in cells)


def format_ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def parse_arguments(argv: list[str] | None) -> Any:
    keys = [w.key for w in list_workloads()]
    parser = argparse.ArgumentParser(
        prog="eager.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="rounds per workload (default 30)")
    parser.add_argument("--only", metavar="KEYS", default=",".join(keys), help="which workloads: " + ",".join(keys))
    parser.add_argument("--peers", metavar="NAMES", default=",".join(PEERS), help="which peers: " + ",".join(PEERS))
    add_isa_option(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    given = parser.parse_args(argv)
    given.only = given.only.split(",")
    given.peers = [name for name in given.peers.split(",") if name]
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    for option, known in (("only", keys), ("peers", list(PEERS))):
        unknown = [name for name in getattr(given, option) if name not in known]
        if unknown:
            parser.error(f"--{option}: no {', '.join(unknown)} among {', '.join(known)}")
    return given


def main(argv: list[str] | None = None) -> int:
    given = parse_arguments(argv)
    warnings.simplefilter("ignore")  # the peers'
    present, absent = find_installed(given.peers)
    peers = [Pullback(), *present]
    versions = {"python": platform.python_version(), "numpy": np.__version__} | {p.name: p.version for p in peers}
    print(", ".join(f"{name} {its}" for name, its in versions.items()))
    where = "one thread" if one_thread.CORE is None else f"one thread on core {one_thread.CORE}"
    print(f"{where}, {given.rounds} rounds, process CPU time")
    for name in absent:
        print(f"{name} is absent: pip install 'pullback[bench]' brings it")
    print()
    print(format_row("peer's time ÷ ours; above 1 we win", [*(p.name for p in present), "ours ÷ hand", "ours, µs"]))
    names = [*(p.name for p in present), BY_HAND]
    found: dict[str, dict[str, Any]] = {}
    chosen = [w for w in list_workloads() if w.key in given.only]
    for table in dict.fromkeys(w.table for w in chosen):
        rows = []
        for workload in (w for w in chosen if w.table == table):
            times = time_workload(workload, peers, given.rounds)
            its = compute_ratios(times)
            found[workload.key] = {"title": workload.title, "ratios": its}
            rows.append(its)
            cells = [format_ratio(its[name]) if name in its else "–" for name in names]
            print(
                format_row(workload.title, [*cells, f"{sorted(times[OURS])[given.rounds // 2] * 1e6:.1f}"]), flush=True
            )
        means = [geometric_mean(its[name] for its in rows if name in its) for name in names]
        print(format_row(f"geometric mean: {table}", [*map(format_ratio, means)]), end="\n\n")
    if given.json:
        record_figures(given.json, versions, given.rounds, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
