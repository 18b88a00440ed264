"""Code for rare arguments is compiled when a program meets one: results are right, before and after."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler import pipeline
from pullback.compiler.runtime.llvm import llvm_available

pytestmark = pytest.mark.skipif(not llvm_available(), reason="needs llvmlite")
RARE = np.array([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e-40, 1e30])


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets an element for each program that is compiled: whether it has slow paths."""
    found: list[bool] = []
    build = pipeline.build

    def count(traced: Any, target: Any, options: Any, cache: Any) -> Any:
        found.append(options.has_slow_paths)
        return build(traced, target, options, cache)

    monkeypatch.setattr(pipeline, "build", count)
    monkeypatch.delenv("PULLBACK_SAFE", raising=False)
    monkeypatch.setenv("PULLBACK_DEFERRED_SLOW_PATHS", "1")
    return found


def normalize(x: Any) -> Any:
    return x - np.log(np.sum(np.exp(x), axis=1, keepdims=True))


def take_rows(x: Any) -> Any:
    y = np.log(x)
    return y[(y > 0).astype(np.int64) * 2 - 1]  # its positions are checked


PROGRAMS: list[tuple[Callable[..., Any], Any]] = [
    (np.log, np.linspace(0.5, 2.0, 100)),
    (lambda x: np.log(x) * np.sin(x), np.linspace(0.5, 2.0, 33, dtype="f4")),
    (lambda x: np.log(np.sum(x)), np.linspace(0.5, 2.0, 7)),  # one number
    (normalize, np.linspace(-1.0, 1.0, 21 * 40).reshape(21, 40)),  # the last block of rows is not full
    (normalize, np.linspace(-1.0, 1.0, 21 * 5).reshape(21, 5)),  # rows are transposed
    (take_rows, np.linspace(0.5, 2.0, 9)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("f", "x"), PROGRAMS)
@pytest.mark.parametrize("entry", ["1", "0"])
def test_slow_paths_are_compiled_at_first_rare_argument(
    f: Callable[..., Any], x: Any, entry: str, builds: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULLBACK_NATIVE_ENTRY", entry)
    program = pb.compile(f, cache=False, threads=1)
    rare = x.copy()
    rare.flat[-RARE.size :] = RARE[: x.size]
    with np.errstate(all="ignore"):
        expected, unusual = f(x), f(rare)
    for _ in range(2):
        np.testing.assert_allclose(program(x), expected, 1e-5)
    assert builds == [False]
    for _ in range(2):
        np.testing.assert_allclose(program(rare), unusual, 1e-5)
    np.testing.assert_allclose(program(x), expected, 1e-5)
    assert builds == [False, True]


def test_slow_paths_compiled_by_several_threads_at_once(builds: list[bool]) -> None:
    x = np.tile(RARE, 1000)
    program = pb.compile(np.log, cache=False)
    program(np.ones(x.size))
    with np.errstate(all="ignore"), ThreadPoolExecutor(4) as pool:
        for found in pool.map(program, [x] * 8):
            np.testing.assert_array_equal(found, np.log(x))
    assert True in builds


def test_while_loop_has_slow_paths_from_the_start(builds: list[bool]) -> None:
    halve = pb.compile(lambda x: pb.while_loop(lambda y: np.log(y) > -50.0, lambda y: y * 0.5, x), cache=False)
    assert 0.0 < halve(5e-324) <= 5e-324
    assert len(builds) == 1


def overwrite_last(x: Any) -> Any:
    y = np.log(x)
    y[-1] = 0
    return y


def take_by_logarithm(x: Any) -> Any:
    return pb.tensor(np.arange(8.0))[np.clip(np.nan_to_num(np.log(x)), 0, 7).astype(int)]


@pytest.mark.parametrize("f", [overwrite_last, take_by_logarithm])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_slow_path_of_values_read_through_index(f: Any, dtype: str) -> None:
    x = np.array([-1, 2, -3, 0, np.inf, np.nan, 1e-40, 5, -0.0, 800], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(pb.compile(f)(x), f(pb.tensor(x)), rtol=1e-6)
