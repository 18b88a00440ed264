"""Run the benchmarks of the repository against the peers that are installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

KINDS = ("eager", "footprint")


def find_benchmarks() -> Path | None:
    """Return the ``benchmarks`` directory of the repository of this package or of the current directory, if any."""
    beside = Path(__file__).resolve().parents[3]
    here = Path.cwd()
    for root in (beside, here, *here.parents):
        if (root / "src" / "pullback").is_dir() and (root / "benchmarks" / f"{KINDS[0]}.py").is_file():
            return root / "benchmarks"
    return None


def run(argv: Sequence[str] = ()) -> int:
    """Run ``benchmarks/eager.py``, or the benchmark named first, with the other arguments; return the exit status."""
    kind, options = (argv[0], argv[1:]) if argv and argv[0] in KINDS else (KINDS[0], argv)
    benchmarks = find_benchmarks()
    if benchmarks is None:
        print(
            "pullback bench: there is no benchmarks/ here. It is part of pullback's repository, not of the installed "
            "package: run this in a clone of the repository.",
            file=sys.stderr,
        )
        return 1
    # In a subprocess, as it must limit threads before NumPy is imported.
    return subprocess.run([sys.executable, benchmarks / f"{kind}.py", *options], check=False).returncode
