"""The ``pullback`` command: a tour, the benchmarks, and what it runs on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pullback.command import bench, info, tour

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line, given without the program's name; the result is the exit status.

    >>> main(["info"])
    pullback ...
    0
    """
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["bench"]:
        return bench.run(given[1:])  # its options are those of the benchmark
    parser = argparse.ArgumentParser(prog="pullback", description="Gradients of NumPy programs.")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for room in (tour, bench, info):
        name, line = room.__name__.rpartition(".")[2], (room.__doc__ or "").partition("\n")[0]
        commands.add_parser(name, help=line, description=line).set_defaults(run=room.run)
    status: int = parser.parse_args(given).run()
    return status
