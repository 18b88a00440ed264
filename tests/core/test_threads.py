"""Threads: gradients taken in several threads at once do not affect each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import tape
from pullback.core.axes import elementwise1
from pullback.core.calculus import partials
from pullback.core.op import REGISTRY, op
from pullback.core.tensor import BY_KERNEL
from pullback.settings import is_enabled

RNG = np.random.default_rng(1)
SMALL, BIG = RNG.uniform(0.3, 1.2, 7), RNG.uniform(0.3, 1.2, 20_000)
THREADS = 8


def together(work: Callable[[int], Any], n: int = THREADS) -> list[Any]:
    """``work(0) … work(n - 1)``, begun at the same moment."""
    gate = threading.Barrier(n)

    def begin(i: int) -> Any:
        gate.wait()
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begin, range(n)))


def program(x: Any, k: int) -> Any:
    """Return a different program for each thread, all of the same shapes."""
    y = x
    for step in range(3 + k % 3):
        y = np.tanh(y * (k + 1.0)) + x if (k + step) % 2 else np.sin(y * x) - y * 0.5
    return y


def by_hand(x: Any, k: int) -> Any:
    y, d = x, np.ones_like(x)
    for step in range(3 + k % 3):
        if (k + step) % 2:
            y, d = np.tanh(y * (k + 1.0)) + x, (k + 1.0) * d / np.cosh(y * (k + 1.0)) ** 2 + 1
        else:
            y, d = np.sin(y * x) - y * 0.5, np.cos(y * x) * (d * x + y) - d * 0.5
    return d


@pytest.mark.parametrize(("x", "times"), [(SMALL, 60), (BIG, 15)], ids=["small", "big"])
def test_threads_take_different_gradients(x: Any, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_enabled("buffer recycling"):
        monkeypatch.setattr(tape, "RECYCLED", BIG.nbytes)

    def work(i: int) -> list[Any]:
        return [pb.grad(lambda x: np.sum(program(x, i)))(x) for _ in range(times)]

    for i, got in enumerate(together(work)):
        wanted = by_hand(x, i)
        for d in got:
            np.testing.assert_allclose(d, wanted, rtol=1e-9, atol=1e-10)


def test_nested_gradients_and_exceptions_in_threads() -> None:
    def work(i: int) -> list[Any]:
        out = []
        for n in range(40):
            if (n + i) % 4 == 0:
                with pytest.raises(ZeroDivisionError):
                    pb.grad(lambda x: x * (1 // 0))(float(i))
            out.append(pb.grad(pb.grad(lambda x: x * x * x * float(i)))(2.0))
            out.append(pb.jvp(pb.grad(lambda x: x * x * float(i)), [3.0], [1.0])[1] * 6)
        return out

    for i, got in enumerate(together(work)):
        assert got == [12.0 * i] * len(got)


def test_gradient_in_other_thread_inside_gradient() -> None:
    """Another thread may differentiate a function that captures our traced tensor."""
    seen = []

    def f(x: Any) -> Any:
        def work() -> None:
            seen.append(pb.grad(lambda w: np.sum(w * x))(SMALL * 2))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sum(x * x * seen[0])

    np.testing.assert_allclose(pb.grad(f)(SMALL), 3 * SMALL**2)


def test_watched_variables_are_local_to_thread() -> None:
    shared = pb.variable(3.0, dtype="float64", name="shared by threads")

    def work(i: int) -> list[Any]:
        own = pb.variable(float(i + 1), dtype="float64")
        out = []
        for _ in range(30):
            _, grads = pb.variable_grads(lambda: shared * own * float(i))
            assert {*grads} == {"shared by threads", own.name}
            out.append((grads["shared by threads"].item(), grads[own.name].item()))
        return out

    for i, got in enumerate(together(work)):
        assert got == [((i + 1.0) * i, 3.0 * i)] * 30


def test_default_dtype_block_is_local_to_thread() -> None:
    def work(i: int) -> list[Any]:
        dtype = ("float32", "float64")[i % 2]
        with pb.default_dtype(dtype):
            return [pb.tensor([1.0]).dtype == dtype for _ in range(50)]

    assert all(all(got) for got in together(work))


def test_op_built_by_several_threads_at_once() -> None:
    """An op's functions are written out when first used; all threads may come at that moment."""
    names = [f"first_use_{n}" for n in range(20)]
    made = []
    try:
        for name in names:
            space: dict[str, Any] = {}
            exec(f"def {name}(x, /): '''Made for a test.'''", space)
            made.append(op(lambda x: x * x, acts=elementwise1, d=partials(lambda x: x + x))(space[name]))
        for f in made:
            got = together(lambda i, f=f: pb.grad(lambda x: f(x) + f(x * 1.0))(float(i)))
            assert got == [4.0 * i for i in range(THREADS)]
    finally:
        for name in names:
            if name in REGISTRY:
                del BY_KERNEL[REGISTRY.pop(name).kernel]
                delattr(pb.Tensor, name)
