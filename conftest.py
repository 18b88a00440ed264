"""Pytest's settings for tests and doctests alike."""

from __future__ import annotations

import gc
import os
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from _pytest.runner import runtestprotocol

import pullback

# Public functions carry the name of these modules; their examples run where they are defined.
collect_ignore = ["src/pullback/__init__.py", "src/pullback/train/__init__.py"]

# Examples that show what an optional package does, by a part of their names.
NEEDED = {"train.io.saving": "safetensors", "Dataset.from_parquet": "pyarrow", "save_onnx": "onnx"}


def pytest_addoption(parser: pytest.Parser) -> None:
    asked = os.environ.get("PULLBACK_ALL_TESTS", "0") != "0"  # by a test that runs tests
    parser.addoption("--all", action="store_true", default=asked, help="every test there is, not a sample: hours")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the modules of tests, which read it when they are imported."""
    gc.disable()  # until all tests are collected, which makes millions of objects and no garbage
    if config.getoption("--all"):
        os.environ["PULLBACK_ALL_TESTS"] = "1"


def is_in_sample(item: pytest.Item, places: dict[tuple[Any, str], list[Any]]) -> bool:
    """Tell whether a test is run that says ``sampled(n)``: one of n combinations of its parameters.

    Those whose positions in their lists add up to a multiple of n: every value of each parameter is among them, if
    another one has n values.  ``places`` has the values of each parameter that were met, in their order: pytest's own
    numbers are those of combinations, the same for every parameter.
    """
    marker = item.get_closest_marker("sampled")
    if marker is None or not isinstance(item, pytest.Function):
        return True
    first_names = [re.split(r"\W+", str(mark.args[0][0] if isinstance(mark.args[0], tuple | list) else mark.args[0]))[0]
                   for mark in item.iter_markers("parametrize")]  # fmt: skip
    total = 0
    for name in first_names:
        known, value = places.setdefault((item.function, name), []), item.callspec.params[name]
        if not any(other is value for other in known):
            known.append(value)
        total += next(i for i, other in enumerate(known) if other is value)
    return total % int(marker.args[0]) == 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only --all has, unless tests are named one by one."""
    if not config.getoption("--all") and not any("[" in str(argument) for argument in config.args):
        places: dict[tuple[Any, str], list[Any]] = {}
        items[:] = [item for item in items if is_in_sample(item, places)]


# The generators that modules of tests share among their tests, each with its state after the import.
generators: dict[ModuleType, list[tuple[np.random.BitGenerator, Any]]] = {}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember the generators of modules, and leave what was collected out of garbage collection."""
    for module in {item.module for item in session.items if isinstance(item, pytest.Function)}:
        found = [value.bit_generator for value in vars(module).values() if isinstance(value, np.random.Generator)]
        generators[module] = [(bits, bits.state) for bits in found]
    gc.freeze()  # to look at thousands of tests takes half a second
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Send one report of a test that passed to the process that prints: xdist's five messages take 0.4 ms more."""
    if not hasattr(item.config, "workerinput"):  # not a worker of xdist
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    is_passed = all(report.passed for report in reports)
    for report in reports:
        if report.when == "call" or not is_passed or report.duration > 0.1:  # which --durations may show
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(trylast=True)  # after the fixtures of the module
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Leave what the tests of a module made and keep out of garbage collection: many tests collect, some 100 times."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give each test the same random numbers, whatever ran before it, and docstrings their names.

    Examples in docstrings know `np` and `pb`; those of README and docs say their own imports.  This is a hook and not
    a fixture, which would take longer than most tests.
    """
    pullback.random.seed(0)
    if isinstance(item, pytest.Function):
        for bits, state in generators[item.module]:
            bits.state = state
    elif isinstance(item, pytest.DoctestItem) and item.path.suffix == ".py":
        item.dtest.globs.update(np=np, pb=pullback)
        for place, package in NEEDED.items():
            if place in item.name:
                pytest.importorskip(package)
