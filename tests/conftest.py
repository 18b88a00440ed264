"""Settings of the tests: which files are not tests, and which tests share compiled code."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from pullback.compiler import target
from pullback.core import native

# What tests compile is of no use to anybody else; those of the cache have a directory of their own.
os.environ["PULLBACK_CACHE"] = "0"

# Code depends on the size of the second-level cache: the tests have the same on every CPU.
target.SECOND_CACHE = os.devnull

# The judge of the parity tests is a program, not a place for doctests.
collect_ignore = ["parity/check.py", "parity/api_cases.py", "parity/README.md"]
# These are read by type checkers, not run.
collect_ignore += ["typing/mistakes.py", "typing/ordinary.py"]
# These change the library for the test suite of another project, which they are plugins of.
collect_ignore += ["array_api/traced_array_api.py", "autograd/autograd_alias.py"]
# What made the stored answers needs the libraries that gave them.
collect_ignore_glob = ["ops/data/*.py", "train/io/peers/*.py", "train/nn/recorded/*.py"]

# Tests of training compile the same steps again and again, and those that start processes the same machine code of
# small ops (a quarter of a second in each): they share object code, among all processes of one run.
HERE = Path(__file__).parent
PLACES = """
    command parity scale test_docs.py test_examples.py test_site.py test_tracebacks.py train/loop/test_fit.py train/nn
    train/optim typing
"""
SHARING = tuple(HERE / place for place in PLACES.split())
SHARED = "PULLBACK_TEST_OBJECT_CODE"


def pytest_configure(config: pytest.Config) -> None:
    if SHARED not in os.environ:
        os.environ[SHARED] = tempfile.mkdtemp(prefix="pullback-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(SHARED), ignore_errors=True))


@cache
def use_machine_code() -> None:
    """Run small ops in machine code from the first test on, as a process does that has recorded many."""
    native.start()


@cache
def is_sharing(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SHARING)


# Hooks and not fixtures, which would take longer than most tests.
def pytest_runtest_setup(item: pytest.Item) -> None:
    use_machine_code()
    if is_sharing(item.path):
        os.environ |= {"PULLBACK_CACHE": "1", "PULLBACK_CACHE_DIR": os.environ[SHARED]}


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if is_sharing(item.path):
        os.environ["PULLBACK_CACHE"] = "0"
        os.environ.pop("PULLBACK_CACHE_DIR", None)
