"""Which instruction sets tests compile for."""

from __future__ import annotations

from exhaustive import ALL

from pullback.compiler.target import list_targets

# Those that this CPU can run, itself the last; for a sample one of each width.
RUNNABLE = [t.isa for t in (list_targets() if ALL else {t.vector_bytes: t for t in reversed(list_targets())}.values())]
