"""Write the table of instructions per element: how long the innermost loops of some kernels are, for several CPUs."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import instruction_counts  # noqa: E402

if __name__ == "__main__":
    instruction_counts.write_table()
