"""Memory of compiled programs' results, which is kept for the next ones."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import pullback as pb
from pullback.compiler.runtime.abi import memory_pool
from pullback.compiler.runtime.abi.entry import is_entry_usable
from pullback.compiler.runtime.abi.memory_pool import HAS, LIMIT, STATE
from pullback.compiler.runtime.llvm import llvm_available
from pullback.settings import is_enabled

pytestmark = pytest.mark.skipif(
    not (llvm_available() and is_entry_usable() and is_enabled("memory pool")),
    reason="the memory pool is not used here",
)


@pytest.fixture
def double() -> Any:
    f = pb.compile(lambda x: x * 2.0)
    f(np.ones(10_000))
    return f


def _run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_result_owns_aligned_memory_of_the_pool(double: Any) -> None:
    for n in (512, 10_000, 1_000_000):
        double(np.full(n, 1.5))
        y = double(np.full(n, 1.5))
        assert get_handler_name(y) == "pullback"
        assert y.flags.owndata
        assert y.flags.writeable
        assert y.flags.c_contiguous
        assert y.flags.f_contiguous
        assert y.ctypes.data % 64 == 0
        np.testing.assert_array_equal(y, np.full(n, 3.0))
    double(np.ones(8))
    assert get_handler_name(double(np.ones(8))) == "default_allocator"


def test_buffer_is_recycled_only_without_references(double: Any) -> None:
    x = np.arange(10_000.0)
    y = double(x)
    place, view = y.ctypes.data, y[::2]
    del y
    others = [double(x + i) for i in range(5)]
    assert len({place, *(z.ctypes.data for z in others)}) == 6
    np.testing.assert_array_equal(view, x[::2] * 2.0)
    del view
    assert double(x).ctypes.data == place
    for i, z in enumerate(others):
        np.testing.assert_array_equal(z, (x + i) * 2.0)


def test_result_can_be_resized_and_pickled(double: Any) -> None:
    x = np.arange(10_000.0)
    y = double(x)
    for n in (20_000, 1_000, 500_000, 10):
        y.resize(n, refcheck=False)
        length = min(n, 1_000)
        np.testing.assert_array_equal(y[:length], x[:length] * 2.0)
        assert get_handler_name(y) == "pullback"
    y = double(x)
    y.__setstate__(double(x + 1.0).__reduce__()[2])
    np.testing.assert_array_equal(y, (x + 1.0) * 2.0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)), y)


def test_pool_keeps_no_more_than_its_limit(double: Any) -> None:
    limit = STATE[LIMIT]
    STATE[LIMIT] = 400_000
    try:
        for n in (10_000, 20_000, 40_000, 100_000, 15_000):
            held = [double(np.ones(n)) for _ in range(4)]
            del held
            assert 0 <= STATE[HAS] <= STATE[LIMIT]
        assert STATE[HAS] > 0
    finally:
        STATE[LIMIT] = limit


def test_memory_pool_can_be_emptied(double: Any) -> None:
    double(np.ones(100_000))
    assert STATE[HAS] >= 800_000
    memory_pool.clear()
    assert STATE[HAS] == 0
    assert not any(STATE[memory_pool.ABOUT :])
    np.testing.assert_array_equal(double(np.ones(100_000)), np.full(100_000, 2.0))


def test_tracemalloc_sees_results(double: Any) -> None:
    double(np.ones(100_000))  # compiles
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        y = double(np.ones(100_000))
        held = tracemalloc.get_traced_memory()[0] - before
        del y
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 800_000 <= held < 900_000
    assert left < 100_000


def test_threads_never_share_a_pooled_buffer(double: Any) -> None:
    f = pb.compile(lambda x: np.exp(np.sin(x)) * 2.0, threads=1)  # long enough to run without the interpreter's lock
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full(50_000, float(number))
        expected = np.exp(np.sin(x)) * 2.0
        held = []
        for _ in range(40):
            held = [*held[-2:], f(x)]
            if any(not np.allclose(y, expected) for y in held):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_pooled_arrays_stay_valid_after_fork_and_unload() -> None:
    code = (
        "import os, sys, numpy as np, pullback as pb\n"
        "f = pb.compile(lambda x: x * 2.0)\n"
        "sys.kept = np.kept = f(np.ones(100_000)), f(np.ones(1_000_000))\n"
        "f(np.ones(100_000))\n"
        "child = os.fork()\n"
        "assert (f(np.ones(100_000)) == 2.0).all() and (sys.kept[0] == 2.0).all()\n"
        "if not child: sys.exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    assert _run(code).split() == ["0"]


def test_results_own_numpy_memory_without_memory_pool() -> None:
    code = (
        "import numpy as np, pullback as pb\n"
        "from pullback.compiler.runtime.abi.memory_pool import HAS, STATE\n"
        "from numpy._core.multiarray import get_handler_name\n"
        "f = pb.compile(lambda x: np.sort(x * 2.0) @ x)\n"
        "g = pb.compile(lambda x: x * 2.0)\n"
        "g(np.ones(100_000))\n"
        "print(f(np.ones(1000)), get_handler_name(g(np.ones(100_000))), STATE[HAS])\n"
    )
    assert _run(code, PULLBACK_MEMORY_POOL="0").split() == ["2000.0", "default_allocator", "0"]


def test_memory_handler_layout_matches_numpy() -> None:
    assert ctypes.sizeof(memory_pool.Handler) == 128 + 5 * 8
    assert memory_pool.Handler.malloc.offset == 136
