"""Which instruction sets tests compile for."""

from __future__ import annotations

import os

from pullback.compiler.target import list_targets

# Everything there is, which takes an hour; else a sample.
LONG = os.environ.get("PULLBACK_LONG_TESTS", "0") != "0"

# Those that this CPU can run, itself the last; for a sample one of each width.
RUNNABLE = [t.isa for t in (list_targets() if LONG else {t.vector_bytes: t for t in reversed(list_targets())}.values())]
