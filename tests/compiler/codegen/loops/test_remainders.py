"""Remainders of rows: a masked store writes nothing beyond the row."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# A page that must not be touched follows every array; a store beyond the end ends the process.
PROGRAM = """
import numpy as np, pullback as pb
target = {target!r}
for source in ("i2", "i4", "i8", "f8"):
    for length in (1, 7, 9, 17, 33):
        x = np.arange(3 * length).reshape(3, length).astype(source)
        cast, every = pb.compile(lambda x: (x.astype(target), np.all(x, axis=1)), backend="llvm", cache=False)(x)
        assert np.array_equal(cast, x.astype(target)) and np.array_equal(every, x.all(axis=1)), (source, length)
"""


@pytest.mark.parametrize("target", ["?", "u1", "i2", "i4", "f4"])
def test_narrowing_cast_stores_only_its_lanes(target: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(target=target)], env={**os.environ, "PULLBACK_CANARY": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
