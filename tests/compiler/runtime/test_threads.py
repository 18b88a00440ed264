"""Parallel kernels: the same results for any number of threads; fork, signals and exit of the interpreter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.threads import MAX_THREADS, count_usable_cpus, has_threads

pytestmark = pytest.mark.skipif(not has_threads(), reason="threads are for Linux")

R = np.random.default_rng(0).standard_normal


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = pb.get_num_threads()
    yield
    pb.set_num_threads(before)


def softmax(x: Any) -> Any:
    e = np.exp(x - pb.max(x, 1, keepdims=True))
    return pb.sum((e / pb.sum(e, 1, keepdims=True)) ** 2)


CASES = {
    "sum": (pb.value_and_grad(lambda x: pb.sum(np.exp(-x * x) * np.sin(x))), R(300_001)),
    "single": (pb.value_and_grad(lambda x: pb.sum(np.exp(-x * x) * np.sin(x))), R(300_001).astype("f4")),
    "rows": (pb.value_and_grad(softmax), R((700, 333))),
    "columns": (lambda x: pb.sum(np.exp(np.sin(x)), 0), R((5000, 77))),
    "elements": (lambda x: np.exp(np.sin(x)) + np.tanh(x), R((1000, 301))),
    "few": (pb.value_and_grad(lambda x: pb.sum(np.exp(-x * x) * np.sin(x) * np.tanh(x))), R(12_345)),
    "products": (lambda x: x @ W, R((7, 5, 64, 48))),
    "turned products": (lambda x: x @ np.swapaxes(x[::-1], -1, -2), R((5, 3, 60, 50))),
    "larger products": (lambda x: x @ WIDE, R((3, 2, 128, 48))),
    "panels": (lambda x: x @ LARGE, R((100, 200)).astype("f4")),
    "turned panels": (lambda x: x.T @ LARGE, R((200, 100)).astype("f4")),
    "scatter": (pb.grad(lambda x: pb.sum(pb.gather(x, PLACES) ** 2)), R((5_001, 37))),
}
W, WIDE, LARGE = R((7, 1, 48, 64)), R((3, 1, 48, 320)), R((200, 256)).astype("f4")
PLACES = np.random.default_rng(1).integers(0, 5_001, 9_000)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("f", "x"), CASES.values(), ids=CASES)
def test_compiled_results_do_not_depend_on_threads(f: Any, x: Any) -> None:
    alone = pb.compile(f, threads=1)(x)
    many = pb.compile(f, threads=5)
    shared = pb.compile(f)
    assert re.search(r"@parallel\(|@[sd]gemm\(", many.lower(x).ir)  # panels of short vectors are left to BLAS
    assert "@parallel(" not in pb.compile(f, threads=1).lower(x).ir
    results = []
    for n in (1, 2, 3, 8):
        pb.set_num_threads(n)
        results += [many(x), shared(x), shared(x)]
    for other in results:
        for a, b in zip(pb.core.tree.leaves(other), pb.core.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(a, b)


def test_worker_threads_are_started() -> None:
    """With more than one thread more than one does something: the work of the process goes on in several."""
    f = pb.compile(lambda x: pb.sum(np.sin(np.exp(np.sin(x)))), threads=3)
    f(R(2_000_000))
    assert len(os.listdir("/proc/self/task")) >= 3


def test_workers_are_woken_once_for_many_short_kernels() -> None:
    x = R((5, 64, 64)).astype("f4")
    ir = pb.compile(lambda x: x @ x @ x @ x @ x, threads=2).lower(x).ir
    assert ir.count("call void @parallel(") == 4
    assert ir.count("call void @rouse(") == 1
    assert "i1 true" not in ir  # none of them is worth it


def test_small_kernel_is_not_parallel() -> None:
    assert "@parallel(" not in pb.compile(lambda x: x + 1.0, threads=4).lower(np.ones(20_000)).ir


def test_concurrent_callers_of_parallel_program() -> None:
    f = pb.compile(pb.value_and_grad(lambda x: pb.sum(np.exp(-x * x) * np.sin(x))), threads=4)
    xs = [R(100_000) for _ in range(4)]
    expected = [f(x) for x in xs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(30):
            z = f(xs[i % 4])
            if z.value != expected[i % 4].value or not np.array_equal(z.grad, expected[i % 4].grad):
                wrong.append(i)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(32)]
    for t in callers:
        t.start()
    for t in callers:
        t.join(600)
    assert not wrong
    assert not any(t.is_alive() for t in callers)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, 256, None])
def test_set_num_threads_invalid_argument(n: Any) -> None:
    with pytest.raises(pb.errors.ArgumentError, match="from 1 to 255"):
        pb.set_num_threads(n)


@pytest.mark.parametrize("n", [0, -2, 1.5])
def test_compile_threads_invalid_argument(n: Any) -> None:
    with pytest.raises(pb.errors.ArgumentError, match=r"threads"):
        pb.compile(lambda x: x, threads=n)


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("value", "expected"), [("3", "3"), ("3,2", "3"), ("", None), ("0", None), ("none", None)])
def test_omp_num_threads_is_honoured(value: str, expected: str | None) -> None:
    printed = run("import pullback as pb; print(pb.get_num_threads())", OMP_NUM_THREADS=value)
    assert printed == (expected or str(len(os.sched_getaffinity(0))))


def test_affinity_is_honoured() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import pullback as pb; print(pb.get_num_threads())"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "1"


WORK = """
import os, signal, sys, threading, time, numpy as np, pullback as pb
f = pb.compile(pb.value_and_grad(lambda x: pb.sum(np.exp(-x * x) * np.sin(x))), threads=3)
x = np.linspace(-2, 3, 400_000)
one = f(x)
"""


def test_forked_process_starts_own_threads() -> None:
    code = WORK + (
        "for _ in range(5):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        ok = all(f(x).value == one.value for _ in range(20)) and len(os.listdir('/proc/self/task')) >= 3\n"
        "        os._exit(0 if ok else 1)\n"
        "    f(x)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "print(f(x).value == one.value)\n"
    )
    assert run(code) == "True"


def test_fork_during_parallel_kernel() -> None:
    code = WORK + (
        "stop = threading.Event()\n"
        "def busy():\n"
        "    while not stop.is_set(): f(x)\n"
        "t = threading.Thread(target=busy); t.start()\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "for _ in range(10):\n"
        "    pid = os.fork()\n"
        "    if not pid: os._exit(0 if f(x).value == one.value else 1)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "stop.set(); t.join(); print('fine')\n"
    )
    assert run(code) == "fine"


def test_keyboard_interrupt_during_parallel_kernel() -> None:
    code = WORK + (
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored\n"
        "try:\n"
        "    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "    while True: f(x)\n"
        "except KeyboardInterrupt:\n"
        "    print(f(x).value == one.value)\n"
    )
    assert run(code) == "True"


def test_interpreter_exit_while_threads_run() -> None:
    code = WORK + (
        "t = threading.Thread(target=lambda: [f(x) for _ in range(10**6)], daemon=True); t.start()\n"
        "time.sleep(0.2); print('ends')\n"
    )
    assert run(code) == "ends"


@pytest.mark.parametrize(("count", "expected"), [(3, 3), (None, 1), (10**6, MAX_THREADS)])
def test_usable_cpus_where_affinity_is_unknown(count: Any, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert count_usable_cpus() == expected
