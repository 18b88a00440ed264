"""The ``pullback`` command: ``tour``, ``report``, ``bench``, ``scale`` and ``info``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from pullback import __version__
from pullback.command import bench, info, report, scale, tour

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, without the program's name, and return the exit status.

    >>> main(["info"])
    pullback ...
    0
    """
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except BrokenPipeError:  # the reader of the output ended, as in ``pullback tour | head``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(given: list[str]) -> int:
    with_options: dict[str, Callable[[Sequence[str]], int]] = {
        "bench": bench.run,
        "report": report.run,
        "scale": scale.run,
    }  # each reads its own
    if given and given[0] in with_options:
        return with_options[given[0]](given[1:])
    parser = argparse.ArgumentParser(prog="pullback", description="Gradients of NumPy programs.")
    parser.add_argument("--version", action="version", version=f"pullback {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    for module in (tour, report, bench, scale, info):
        name, line = module.__name__.rpartition(".")[2], (module.__doc__ or "").partition("\n")[0]
        commands.add_parser(name, help=line, description=line).set_defaults(run=module.run)
    status: int = parser.parse_args(given).run()
    return status
