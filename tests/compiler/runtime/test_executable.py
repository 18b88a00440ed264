"""Calls of a compiled program: containers, layouts, reference counts, threads, exceptions and guard pages."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.abi.entry import is_layout_known
from pullback.compiler.runtime.guard_pages import Guards
from pullback.core.tensor import call_unfollowed
from pullback.settings import is_enabled

x10 = np.linspace(-1, 2, 10)
Pair = namedtuple("Pair", "first second")


class Typed(NamedTuple):
    a: Any
    b: Any


def memory() -> int:
    """Kilobytes that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def has_entry(f: Any) -> bool:
    return "built-in" in repr(f.__call__)


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: x * 2.0, (x10,)),
        (lambda x: pb.sum(x), (x10,)),
        (lambda x: (x + 1.0, pb.sum(x), x), (x10,)),
        (lambda x: Pair(x + 1.0, [pb.sum(x), {"k": x * x, "n": None}]), (x10,)),
        (lambda x: Typed(x + 1.0, "word"), (x10,)),
        (lambda x: {"a": x, "b": (x, x + 0.0)}, (x10,)),
        (lambda ps, x: [p * pb.sum(x) for p in ps], ([np.ones(2), np.ones((2, 3))], x10)),
        (lambda ps, x: {k: p * pb.sum(x) for k, p in ps.items()}, ({"w": np.ones(2), "b": np.ones(())}, x10)),
        (lambda p, x: p.first * x + p.second, (Pair(np.float64(2.0), 3.0), x10)),
        (lambda x, rate: x * rate, (x10, 0.5)),
        (lambda x, n: x * n, (x10, 3)),
        (lambda x, s: x * s, (x10, np.float64(0.5))),
        (lambda x, s: x * s, (x10.astype("f4"), np.float32(0.5))),
        (lambda x: x > 0, (x10,)),
        (lambda x: pb.sum(x) > 0, (x10,)),
        (lambda x: (np.ones(3), 1.5, x + 1.0), (x10,)),
        (lambda x: x + 1.0, (np.zeros((0, 3)),)),
        (lambda x: pb.linalg.inv(x) * 2.0, (np.eye(3),)),
        (lambda x: (pb.linalg.inv(x), x, pb.linalg.inv(x)), (np.eye(3) * 2,)),
    ],
)
def test_compiled_results_match_eager(f: Any, args: Any) -> None:
    compiled, expected = pb.compile(f), f(*args)
    for _ in range(2):  # the first call goes the long way
        found = compiled(*args)
        assert type(found) is type(expected)
        a, b = pb.core.tree.leaves(found), pb.core.tree.leaves(expected)
        assert len(a) == len(b)
        for u, v in zip(a, b, strict=True):
            assert type(u) is type(v)
            if isinstance(v, np.ndarray | np.generic):
                assert u.dtype == v.dtype
                np.testing.assert_allclose(u, np.asarray(v), rtol=1e-6)
            else:
                assert u == v


def test_compiled_results_are_new_arrays() -> None:
    f = pb.compile(lambda x: (x, x, x * 1.0, np.ones(10)))
    f(x10)
    first, second = f(x10), f(x10)
    everything = [*first, *second]
    for i, a in enumerate(everything):
        assert a.flags.writeable
        assert not np.shares_memory(a, x10)
        assert not any(np.shares_memory(a, b) for b in everything[:i])


def _unaligned(x: Any) -> Any:
    raw = np.empty(x.nbytes + 1, np.uint8)
    moved = raw[1:].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


def _read_only(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    "odd",
    [
        _unaligned, _read_only, np.asfortranarray, lambda x: x[::-1][::-1], lambda x: np.repeat(x, 2, 0)[::2],
        lambda x: x.astype(">f8"), lambda x: np.broadcast_to(x, x.shape),
    ],
)  # fmt: skip
@pytest.mark.parametrize("f", [lambda x: x * 2.0 + 1.0, lambda x: pb.linalg.inv(x) @ x + x])
def test_input_layouts_and_byte_order(odd: Any, f: Any) -> None:
    x = np.arange(16.0).reshape(4, 4) + np.eye(4) * 3
    compiled = pb.compile(f)
    expected = compiled(x)
    given = odd(x)
    np.testing.assert_allclose(compiled(given), expected, rtol=1e-12)
    np.testing.assert_array_equal(given, x)  # not written to


def test_one_program_per_signature() -> None:
    f = pb.compile(lambda x: x + 1)
    kinds: list[Any] = [np.ones(3), np.ones((3, 1)), np.ones(3, "f4"), np.ones(3, "i8"), 1.0, 1, np.float32(1)]
    for _ in range(2):
        for x in kinds:
            z = f(x)
            assert np.shape(z) == np.shape(x)
            assert np.asarray(z).dtype == np.asarray(x).dtype
    assert len(f.programs) == len(kinds)
    assert np.array_equal(f(x=np.ones(3)), [2, 2, 2])


def test_missing_argument_raises_type_error() -> None:
    f = pb.compile(lambda x, y: x + y)
    f(x10, x10)
    with pytest.raises(TypeError, match="missing 1 required"):
        f(x10)


def test_static_argument_is_compared_by_value() -> None:
    f = pb.compile(lambda x, n: x * float(n), static_argnums=1)
    scale = 1000  # two that are equal, and not the same
    assert [f(x10, n)[-1] for n in (2, 3, scale, int("1000"), 2)] == [4, 6, 2000, 2000, 4]


@pytest.mark.skipif(not is_enabled("native entry"), reason="the native entry is off")
@linux
@pytest.mark.skipif(not is_layout_known(), reason="there is no entry here")
def test_calls_do_not_leak_memory_or_references() -> None:
    f = pb.compile(lambda ps, x: Pair({"a": [p * pb.sum(x) for p in ps]}, (pb.sum(x), None)))
    ps = [np.ones(3), np.ones((2, 2))]
    for _ in range(1000):
        f(ps, x10)
    assert has_entry(f)
    gc.collect()
    watched = (x10, ps, ps[0], Pair, None.__class__)
    before, counts = memory(), [sys.getrefcount(o) for o in watched]
    for _ in range(100_000):
        f(ps, x10)
    assert [sys.getrefcount(o) for o in watched] == counts
    assert memory() - before < 2_000


@pytest.mark.parametrize("n", [4, 300])
@pytest.mark.parametrize(
    "f",
    [
        lambda xs, k: (xs[0], pb.sum(np.sin(np.exp(xs[0] * k)))),  # long enough, for 300, to let go of the lock
        lambda xs, k: (xs[0], pb.linalg.inv(xs[0] * k)),
    ],
)
def test_reference_counts_after_calls_and_errors(f: Any, n: int) -> None:
    compiled, xs, k = pb.compile(f), [np.eye(n) * 2.0], 1.5
    bad, other = [np.zeros((n, n))], [np.eye(n, dtype="f4")]
    for given in (xs, other):
        compiled(given, k)
    watched = (xs, xs[0], bad[0], other[0], k, compiled.__call__)
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(5):
        compiled(xs, k)
        compiled(other, k)  # goes through the entry of one to that of the other
        with suppress(pb.errors.PullbackError, np.linalg.LinAlgError):
            compiled(bad, k)
    assert [sys.getrefcount(o) for o in watched] == before


@linux
def test_unreferenced_program_frees_memory() -> None:
    def one(i: int) -> None:
        f = pb.compile(lambda x: x * float(i) + 1.0, cache=False)
        assert f(x10)[-1] == 2 * i + 1

    for i in range(20):
        one(i)
    gc.collect()
    before = memory()
    for i in range(20, 80):
        one(i)
    gc.collect()
    assert memory() - before < 12_000  # kB; stated in docs: not more than 200 kB for each


def test_out_of_memory_raises_memory_error() -> None:
    f = pb.compile(lambda x, y: x + y)
    assert f(np.ones((3, 1)), np.ones(3)).shape == (3, 3)
    code = (
        "import resource, numpy as np, pullback as pb\n"
        "f = pb.compile(lambda x, y: x + y)\n"
        "x = np.ones((20000, 1))\n"
        "g = f.lower(x, x.T)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20))\n"
        "try:\n    f(x, x.T)\nexcept MemoryError as e:\n    print('missing')\n"
    )
    if sys.platform == "linux":
        assert run(code) == "missing"


def run(code: str, **environment: str) -> str:
    """Return what a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env={**os.environ, **environment},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


# ---- many at once


def _together(work: Any, count: int = 32) -> list[Any]:
    found: list[Any] = [None] * count
    ready = threading.Barrier(count)

    def one(i: int) -> None:
        ready.wait()
        try:
            found[i] = work(i)
        except Exception as problem:
            found[i] = problem

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
    return found


@pytest.mark.parametrize("n", [50, 50_000])
def test_32_threads_call_one_function(n: int) -> None:
    f = pb.compile(lambda x, s: pb.value_and_grad(lambda x: pb.sum(np.exp(-x * x) * np.sin(x)) * s)(x))
    x = np.linspace(-2, 3, n)
    one = f(x, 1.0)

    def work(i: int) -> bool:
        results = [f(x, float(i + 1)) for _ in range(20)]
        return all(
            np.allclose(r.value, one.value * (i + 1)) and np.allclose(r.grad, one.grad * (i + 1)) for r in results
        )

    assert _together(work) == [True] * 32


def test_32_threads_call_function_with_host_ops() -> None:
    f = pb.compile(lambda x: pb.sum(pb.linalg.inv(x * 2.0) * 3.0 + x))
    xs = [np.eye(5) * (i + 1) for i in range(32)]
    expected = [5 * 1.5 / (i + 1) + 5 * (i + 1) for i in range(32)]
    found = _together(lambda i: [f(xs[i]) for _ in range(20)][-1])
    np.testing.assert_allclose(found, expected)


def test_32_threads_compile_concurrently() -> None:
    f = pb.compile(lambda x: pb.sum(x * x))
    found = _together(lambda i: f(np.ones(i % 7 + 1)))
    assert found == [float(i % 7 + 1) for i in range(32)]


# ---- NumPy kernels between pieces of machine code


def test_host_op_calls_compiled_function_recursively() -> None:
    depth = 0

    def kernel(x: Any) -> Any:
        nonlocal depth
        depth += 1
        return outer(x) if depth < 5 else x * 100.0

    outer = pb.compile(lambda x: call_unfollowed(kernel, x * 2.0) + x)
    depth = 4  # while tracing, the kernel is run to infer its result
    outer(np.ones(5))
    depth = 0
    # 2x goes down five times: 100 * 2**5, and x, 2x, 4x, 8x, 16x are added on the way up
    np.testing.assert_array_equal(outer(np.ones(5)), np.full(5, 3200.0 + 31.0))


def test_exception_in_host_op_is_raised() -> None:
    f = pb.compile(lambda x: pb.linalg.inv(x * 2.0) + 1.0)
    good = f(np.eye(3))
    for _ in range(3):
        with pytest.raises((np.linalg.LinAlgError, pb.errors.PullbackError)):
            f(np.zeros((3, 3)))
        np.testing.assert_array_equal(f(np.eye(3)), good)


# ---- without an entry, and with walls around everything


PROGRAMS = """
import numpy as np, pullback as pb
R = np.random.default_rng(0).standard_normal
def softmax(x): e = np.exp(x - pb.max(x, 1, keepdims=True)); return e / pb.sum(e, 1, keepdims=True)
cases = [
    (lambda x: x * 2.0 + 1.0, [R(n) for n in (1, 3, 7, 8, 9, 31, 33, 1000)]),
    (pb.value_and_grad(lambda x: pb.sum(np.exp(x) * x)), [R(n) for n in (1, 5, 17, 20000)]),
    (lambda x: softmax(x), [R((3, n)).astype('f4') for n in (1, 5, 16, 17, 100)]),
    (pb.value_and_grad(lambda x: pb.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2)), [R(n) for n in (2, 9, 40)]),
    (lambda x: pb.sum(x, 0) + pb.transpose(x)[:3, 0], [R((3, 3)), R((9, 3))]),
    (lambda x: (x > 0) & (x < 1), [R(n) for n in (1, 9, 65)]),
    (lambda x: pb.linalg.inv(x @ x + 1.0) * 2.0, [R((4, 4)), R((7, 7))]),
    (lambda x: pb.concat([x, x * 2.0], 0)[1:], [R(5), R((6, 3))]),
]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are closed by mprotect")
def test_programs_write_only_inside_guard_pages() -> None:
    code = PROGRAMS + (
        "for f, xs in cases:\n"
        "    c = pb.compile(f)\n"
        "    for x in xs:\n"
        "        for a, b in zip(pb.core.tree.leaves(c(x)), pb.core.tree.leaves(f(x)), strict=True):\n"
        "            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-9)\n"
        "print('whole')\n"
    )
    assert run(code, PULLBACK_CANARY="1") == "whole"


@pytest.mark.skipif(sys.platform != "linux", reason="pages are closed by mprotect")
def test_guard_pages_detect_write_outside_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    guards = Guards()
    x = guards.empty((5,), np.dtype("f4"))
    x[...] = 1
    guards.check()
    np.lib.stride_tricks.as_strided(x, (6,), (-4,))[5] = 0
    with pytest.raises(pb.errors.CompileError, match="outside of an array: before"):
        guards.check()
    code = (
        "import numpy as np\nfrom pullback.compiler.runtime.guard_pages import Guards\n"
        "x = Guards().empty((5,), np.dtype('f4'))\nnp.lib.stride_tricks.as_strided(x, (6,), (4,))[5] = 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ}, timeout=600, check=False)
    assert done.returncode < 0  # stopped by the system


def test_programs_run_without_native_entry() -> None:
    code = (
        "import pullback.compiler.runtime.executable as n\nn.is_entry_usable = lambda: False\n"
        + PROGRAMS
        + (
            "for f, xs in cases:\n"
            "    c = pb.compile(f)\n"
            "    for x in xs:\n"
            "        assert 'built-in' not in repr(c.__call__)\n"
            "        for a, b in zip(pb.core.tree.leaves(c(x)), pb.core.tree.leaves(f(x)), strict=True):\n"
            "            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-9)\n"
            "print('right')\n"
        )
    )
    assert run(code) == "right"


@pytest.fixture
def no_switches() -> Iterator[None]:
    """Let another thread run only where the one that runs gives the interpreter's lock away."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100.0)  # seconds
    yield
    sys.setswitchinterval(interval)


def runs_beside(call: Callable[[], object], action: Callable[[], object]) -> bool:
    """Call a function while another thread waits to perform an action; return whether it did so during the call."""
    done: list[int] = []
    begin = threading.Event()
    other = threading.Thread(target=lambda: (begin.wait(), action(), done.append(1)))
    other.start()
    begin.set()
    call()
    is_done = bool(done)
    other.join()
    return is_done


MANY_TRIES = 50  # a busy machine may start the other thread too late


@pytest.mark.usefixtures("no_switches")
def test_long_program_releases_gil() -> None:
    f = pb.compile(lambda x: pb.sum(np.sin(np.exp(np.sin(x)))), threads=1)
    x = np.linspace(0, 1, 3_000_000)
    f(x)
    assert not runs_beside(lambda: sum(range(1_000_000)), lambda: None)
    assert any(runs_beside(lambda: f(x), lambda: None) for _ in range(MANY_TRIES))


# ---- what an entry must not be mistaken about


@pytest.mark.usefixtures("no_switches")
def test_argument_removed_during_call_is_kept_alive() -> None:
    """Another thread empties the list while the program runs without the lock; its array is still copied afterwards."""
    x = np.linspace(0, 1, 1_500_000)
    f = pb.compile(lambda xs: (xs[0], pb.sum(np.sin(np.exp(np.sin(xs[1]))))), threads=1)
    f([x, x])

    def is_emptied() -> bool:
        given, results = [np.full(x.shape, 7.0), x], []
        is_during = runs_beside(lambda: results.append(f(given)[0]), given.clear)
        assert (results[0] == 7.0).all()
        return is_during

    assert any(is_emptied() for _ in range(MANY_TRIES))


@pytest.mark.parametrize("given", [np.clongdouble(3), np.full(2, 3, "g"), np.full(2, 3, "G"), np.full(2, 3, "e")])
def test_longdouble_and_float16_results(given: Any) -> None:
    f = pb.compile(lambda x: (x, x + x))
    for _ in range(2):
        same, twice = f(given)
        assert same.dtype == twice.dtype == given.dtype
        np.testing.assert_array_equal(same, given)
        np.testing.assert_array_equal(twice, given + given)
    assert not (has_entry(f) and given.dtype.itemsize > 16)  # it would be written past its place on the stack


def test_constant_layouts_and_byte_order() -> None:
    constants = [_unaligned(np.arange(3.0)), np.arange(3.0).astype(">f8"), np.arange(6.0)[::2] / 2]
    f = pb.compile(lambda x: [(x + c, c) for c in constants])
    for _ in range(2):
        for (moved, same), c in zip(f(np.ones(3)), constants, strict=True):
            np.testing.assert_array_equal(same, c)
            np.testing.assert_array_equal(moved, c + 1)


def test_equivalent_dtypes_share_program() -> None:
    f = pb.compile(lambda x: x * 2)
    for dtype in (np.int64, np.longlong, np.dtype(np.int64, metadata={"unit": "m"})):
        np.testing.assert_array_equal(f(np.arange(3).astype(dtype)), [0, 2, 4])
    assert len(f.programs) == 1


class Key:
    """Equal to another that is not the same, as found by running Python."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.name == self.name


def test_dict_argument_with_custom_or_reordered_keys() -> None:
    f = pb.compile(lambda d: sum(d.values()))
    for _ in range(2):
        np.testing.assert_array_equal(f({Key("a"): x10, Key("b"): x10}), 2 * x10)
    assert not has_entry(f)
    g = pb.compile(lambda d: d["a"] - d["b"])
    g({"a": x10, "b": 2 * x10})
    np.testing.assert_array_equal(g({"b": 2 * x10, "a": x10}), -x10)  # in another order
    with pytest.raises(KeyError):
        g({"a": x10, "c": x10})
    assert len(g.programs) == 2


def test_dict_argument_has_key_order_of_each_call() -> None:
    f = pb.compile(lambda d: [d["p"][0][k] * (i + 1) for i, k in enumerate(d["p"][0])])
    letters = ["a", "ab", 3, 70_000, b"c"]
    for keys in (letters, letters[::-1], [*letters[2:], *letters[:2]], letters):
        given = {type(k)(str(k)) if isinstance(k, str | int) else k: float(i) * x10 for i, k in enumerate(keys)}
        given["extra"] = x10
        del given["extra"]
        for _ in range(2):
            np.testing.assert_array_equal(f({"p": (given,)}), [i * (i + 1) * x10 for i in range(len(keys))])
    assert len(f.programs) == 3


def test_native_entry_takes_more_arguments_than_fit_on_the_stack() -> None:
    f = pb.compile(lambda xs: xs[0] + xs[-1])
    xs = [np.full(1, float(i)) for i in range(20_000)]
    for _ in range(2):
        assert f(xs) == 19_999.0
    assert not has_entry(f)


def test_python_number_as_host_op_argument() -> None:
    f = pb.compile(lambda x, k: call_unfollowed(np.multiply, x, k) + 1.0)
    assert [f(np.ones(2), k)[0] for k in (2.0, 3.0, 4.0)] == [3.0, 4.0, 5.0]


def test_python_integer_beyond_int64_is_not_truncated() -> None:
    f = pb.compile(lambda x, n: x * n)
    f(x10, 3)
    for n in (-1, 2**62, -(2**63)):
        np.testing.assert_array_equal(f(x10, n), x10 * n)
    np.testing.assert_array_equal(f(x10, 2**63), x10 * 2.0**63)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strided_argument_is_read_by_kernel_and_host_op(dtype: Any) -> None:
    f = lambda x: (np.sum(x) / 5, np.sort(x.reshape(-1))[1])
    x = np.linspace(0, 1, 20).astype(dtype).reshape(1, 20)
    for given in (x[:, ::4], x[:, 4::-1], x[:, :5]):
        np.testing.assert_allclose(pb.compile(f)(given), f(given), rtol=1e-6)
