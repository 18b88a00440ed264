"""Code for every instruction set that this CPU can run: the tests of the compiler, and random programs.

In the usual run this is a sample; with ``--all`` it is every test and 20,000 programs each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import random_isa
from exhaustive import ALL, sample
from isas import RUNNABLE

from pullback.compiler.runtime.llvm import llvm_available
from pullback.compiler.target import MAX_ISA, get_own_target

HERE = Path(__file__)
PROGRAMS, AT_ONCE = (20_000, 500) if ALL else (15, 15)
FILES = sorted(HERE.parent.rglob("test_*.py"))

pytestmark = [
    pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed"),
    pytest.mark.skipif(MAX_ISA in os.environ, reason="these tests choose it themselves"),
]


def run(isa: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python process of its own, so that a crash is seen."""
    return subprocess.run(
        [sys.executable, *command], env={**os.environ, MAX_ISA: isa, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("first", range(0, PROGRAMS, AT_ONCE))
@pytest.mark.parametrize("isa", RUNNABLE)
def test_random_programs_on_every_isa(isa: str, first: int) -> None:
    done = run(isa, random_isa.__file__, str(first), str(AT_ONCE), PULLBACK_CANARY="1")
    assert done.returncode == 0, f"{isa}, seed {done.stdout.split()[-1:]}, exit {done.returncode}: {done.stderr}"


@pytest.mark.parametrize("isa", [isa for isa in RUNNABLE if isa != get_own_target().isa])
def test_compiler_tests_on_every_isa(isa: str) -> None:
    flags = ["-q", "-n", "0", "-p", "no:cacheprovider"]
    files = map(str, sample(FILES, 30, first=RUNNABLE.index(isa)))  # collecting takes as long as running
    done = run(isa, "-m", "pytest", *flags, *files, PULLBACK_TEST_SAMPLE="1" if ALL else "8")
    assert done.returncode == 0, f"{isa}, exit {done.returncode}: {done.stdout[-4000:]}{done.stderr[-1000:]}"


@pytest.mark.parametrize("seed", [5249])  # in a kernel, an array of padding only, which has no operands
def test_random_program_regressions(seed: int) -> None:
    assert [*random_isa.run(seed, 1)] == []
