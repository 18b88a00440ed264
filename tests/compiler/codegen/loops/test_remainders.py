"""Remainders of rows: a masked store writes nothing beyond the row."""

from __future__ import annotations

import os
import subprocess
import sys

# A page that must not be touched follows every array; a store beyond the end ends the process.
PROGRAM = """
import numpy as np, pullback as pb
TARGETS = "?", "u1", "i2", "i4", "f4"
for source in ("i2", "i4", "i8", "f8"):
    for length in (1, 7, 9, 17, 33):
        x = np.arange(3 * length).reshape(3, length).astype(source)
        f = lambda x: ([x.astype(target) for target in TARGETS], np.all(x, axis=1))
        casts, every = pb.compile(f, backend="llvm", cache=False)(x)
        assert np.array_equal(every, x.all(axis=1)), (source, length)
        for target, cast in zip(TARGETS, casts, strict=True):
            assert np.array_equal(cast, x.astype(target)), (source, length, target)
"""


def test_narrowing_casts_store_only_their_lanes() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "PULLBACK_CANARY": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
