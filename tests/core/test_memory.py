"""Memory of big arrays: values that no rule saves are freed, and buffers are reused only when unreferenced."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import tape
from pullback.settings import is_enabled

needs_recycling = pytest.mark.skipif(not is_enabled("buffer recycling"), reason="buffer recycling is off")

N = 200_000  # elements; 1.6 MB each
NBYTES = 8 * N
LAYERS = 25


@pytest.fixture(autouse=True)
def drop_kept_buffers() -> None:
    """Tapes keep buffers for the next call; a call that leaves a tensor behind makes its tape drop them."""
    kept: list[Any] = []
    pb.grad(lambda x: kept.append(x) or np.sum(x * 2.0))(np.ones(3))


def measure_memory(call: Callable[[], Any]) -> tuple[int, int]:
    """Bytes that a call allocates at its peak and still holds at its end; NumPy reports to tracemalloc."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        stays, peak = tracemalloc.get_traced_memory()
        del result
        return peak - before, stays - before
    finally:
        tracemalloc.stop()


def chain(x: Any, w: Any) -> Any:
    y = x
    for _ in range(LAYERS):
        y = np.sin(np.tanh(y) * w + x)
    return np.sum(y)


def chain_by_hand(x: Any, w: Any) -> tuple[Any, Any, Any]:
    y, kept = x, []
    for _ in range(LAYERS):
        t = np.tanh(y)
        a = t * w + x
        y = np.sin(a)
        kept.append((t, a))
    value = np.sum(y)
    del y
    g, gx, gw = np.ones_like(x), np.zeros_like(x), np.zeros_like(w)
    while kept:
        t, a = kept.pop()
        g = g * np.cos(a)
        gx += g
        gw += g * t
        g = g * w * (1 - t * t)
    return value, gx + g, gw


@needs_recycling
def test_peak_memory_of_long_chain_vs_handwritten_gradient() -> None:
    x, w = np.random.default_rng(0).uniform(0.2, 1, (2, N))
    ours = measure_memory(lambda: pb.value_and_grads(chain)([x, w]))[0]
    assert ours <= 1.2 * measure_memory(lambda: chain_by_hand(x, w))[0]
    value, grads = pb.value_and_grads(chain)([x, w])
    want, *by_hand = chain_by_hand(x, w)
    assert value == pytest.approx(want)
    for a, b in zip(grads, by_hand, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@needs_recycling
@pytest.mark.parametrize(
    "step",
    [
        lambda y, x: y + 1.0,
        lambda y, x: y + x,
        lambda y, x: x - y,
        lambda y, x: -y,
        lambda y, x: y * 0.5,
        lambda y, x: np.add(y, x),
        lambda y, x: y + np.ones(N),
    ],
)
def test_forward_pass_frees_values_that_no_rule_saves(step: Any) -> None:
    """Twenty additions keep at most four arrays alive, the input among them."""
    peaks = []

    def f(x: Any) -> Any:
        y = x
        for _ in range(20):
            y = step(y, x)
        peaks.append(tracemalloc.get_traced_memory()[1])
        return np.sum(y)

    peak, _ = measure_memory(lambda: pb.grad(f)(np.ones(N)))
    assert peaks[0] < 4.1 * NBYTES
    assert peak < 7.1 * NBYTES


@needs_recycling
def test_only_saved_values_of_rules_stay_allocated() -> None:
    """The rule of tanh reads its result, that of a product with a number nothing: one array a layer, not two."""
    peaks = []

    def f(x: Any) -> Any:
        for _ in range(10):
            x = np.tanh(x * 0.5)
        peaks.append(tracemalloc.get_traced_memory()[1])
        return np.sum(x)

    measure_memory(lambda: pb.grad(f)(np.ones(N)))
    assert peaks[0] < 13.1 * NBYTES


@needs_recycling
def test_buffers_are_reused_by_next_call() -> None:
    """The second call of a chain finds the buffers of the first, which only works if reference counts are trusted."""
    x = np.ones(N)
    call = lambda: pb.grad(lambda x: np.sum(np.sin(np.tanh(np.sin(x) * x))))(x)
    first, stays = measure_memory(call)
    second, _ = measure_memory(call)
    assert first > 2 * NBYTES
    assert second < first / 2
    assert stays < 12 * NBYTES


def test_buffers_kept_between_calls_are_bounded() -> None:
    def f(x: Any) -> Any:
        for _ in range(100):
            x = np.sin(x)
        return np.sum(x)

    _, stays = measure_memory(lambda: [pb.grad(f)(np.ones(N)), None][1])
    assert stays < 70_000_000


# ------------------------------------------------------------------ random programs


ROWS, COLUMNS, TILES = 4, 50, 100
STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, b, r: a + b,
    lambda a, b, r: a - b,
    lambda a, b, r: a * b,
    lambda a, b, r: a / (b * b + 1.0),
    lambda a, b, r: a + a,
    lambda a, b, r: a * a,
    lambda a, b, r: np.sin(a),
    lambda a, b, r: np.tanh(a) * 0.5,
    lambda a, b, r: np.exp(-(a * a)),
    lambda a, b, r: -a,
    lambda a, b, r: 2.0 - a,
    lambda a, b, r: a * r,
    lambda a, b, r: r - a,
    lambda a, b, r: a[:, ::-1] + b,
    lambda a, b, r: np.transpose(np.transpose(a)) * b,
    lambda a, b, r: np.reshape(a, a.shape) - b * 0.25,
    lambda a, b, r: a - np.mean(a, axis=0),
    lambda a, b, r: a * np.sum(b, axis=1, keepdims=True) * 0.01,
    lambda a, b, r: np.tanh(a),
    lambda a, b, r: a.reshape(-1).reshape(a.shape) + 0.0,
    lambda a, b, r: np.broadcast_to(r, a.shape) + a,
    lambda a, b, r: np.sqrt(a * a + 1.0),
]


def random_program(seed: int, held: list[tuple[Any, Any, Any]]) -> Callable[..., Any]:
    """Some thirty steps on values picked from those so far; some are held by the user, some through a view."""
    plan = np.random.default_rng(seed)
    length = int(plan.integers(10, 35))
    picks = plan.integers(0, 10**6, (length, 4))

    def f(x: Any, y: Any, row: Any) -> Any:
        values = [x, y, x * y]
        for kind, i, j, hold in picks:
            z = STEPS[kind % len(STEPS)](values[i % len(values)], values[j % len(values)], row)
            values.append(np.tanh(z) + z * 0.1)
            if hold % 4 == 0:
                seen = pb.stop_gradient(values[-1])
                view = np.asarray(seen)[::2] if hold % 8 == 0 else None
                held.append((values[-1] if view is None else None, view, seen.numpy()))
            if hold % 3 == 0:
                values.pop(int(hold) % len(values))
        return np.sum(values[-1] * values[len(values) // 2]) + np.sum(values[0])

    return f


@pytest.fixture
def recycled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recycle the buffers of the tiled arrays below, not only those from 1 MiB on."""
    if is_enabled("buffer recycling"):
        monkeypatch.setattr(tape, "RECYCLED", 4 * TILES * ROWS * COLUMNS)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("recycled")
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_on_big_arrays_match_small_tiles(seed: int) -> None:
    """What is held, or seen through a view, is never written over; gradients are those of the small tiles."""
    rng = np.random.default_rng(seed)
    dtype = (np.float64, np.float32)[seed % 4 == 3]
    x, y = rng.normal(size=(2, ROWS, COLUMNS)).astype(dtype)
    row = rng.normal(size=COLUMNS).astype(dtype)
    big = [np.tile(x, (TILES, 1)), np.tile(y, (TILES, 1)), row]
    before = [a.copy() for a in big]
    held: list[tuple[Any, Any, Any]] = []
    want = pb.grads(random_program(seed, []), unconnected="zero")([x, y, row])
    tol = {"rtol": 1e-9, "atol": 1e-9} if dtype is np.float64 else {"rtol": 2e-2, "atol": 2e-2}
    results = []
    for _ in range(3):  # later calls find used buffers
        got = pb.grads(random_program(seed, held), unconnected="zero")(big)
        results.append((got, [d.copy() for d in got]))
        for d, small in zip(got[:2], want[:2], strict=True):
            assert d.dtype == dtype
            np.testing.assert_allclose(d, np.tile(small, (TILES, 1)), **tol)
        scale = np.abs(want[2]).max() + 1
        np.testing.assert_allclose(got[2] / TILES / scale, want[2] / scale, **tol)
    for tensor, view, copy in held:
        if view is not None:
            np.testing.assert_array_equal(view, copy[::2])
        else:
            np.testing.assert_array_equal(tensor.numpy(), copy)
    for got, copies in results:
        for d, copy in zip(got, copies, strict=True):
            np.testing.assert_array_equal(d, copy)
    for a, b in zip(big, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("recycled")
@pytest.mark.parametrize("seed", range(100, 112))
def test_random_programs_second_derivatives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, ROWS, COLUMNS))
    row = rng.normal(size=COLUMNS)
    f = random_program(seed, [])

    def slope(x: Any, y: Any) -> Any:
        dx, dy = pb.grads(lambda x, y: f(x, y, row), unconnected="zero")([x, y])
        return np.sum(dx * dx) + np.sum(np.sin(dy))

    want = pb.grads(slope, unconnected="zero")([x, y])
    for _ in range(2):
        got = pb.grads(slope, unconnected="zero")([np.tile(x, (TILES, 1)), np.tile(y, (TILES, 1))])
        for d, small in zip(got, want, strict=True):
            scale = np.abs(small).max() + 1
            np.testing.assert_allclose(d / scale, np.tile(small, (TILES, 1)) / scale, rtol=1e-8, atol=1e-9)


@pytest.mark.usefixtures("recycled")
@pytest.mark.parametrize("seed", range(200, 206))
def test_random_programs_jvp(seed: int) -> None:
    rng = np.random.default_rng(seed)
    small = rng.normal(size=(4, ROWS, COLUMNS))
    row = rng.normal(size=COLUMNS)
    program = random_program(seed, [])
    f = lambda x, y: program(x, y, row)
    want = pb.jvp(f, [*small[:2]], [*small[2:]])[1]
    big = [np.tile(a, (TILES, 1)) for a in small]
    np.testing.assert_allclose(pb.jvp(f, big[:2], big[2:])[1] / TILES, want, rtol=1e-7, atol=1e-9)


W = np.linspace(-1.0, 1.0, N)


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: np.sum(x * W), W),
        (lambda x: np.sum(W * x), W),
        (lambda x: np.sum((x + W) * W), W),
        (lambda x: np.sum(np.tanh(x * 0.0) * W), 0 * W),
        (lambda x: np.sum((x + 1.0) * W + (x - 1.0) * W), 2 * W),
    ],
    ids=["left", "right", "through", "fresh", "twice"],
)
def test_gradient_does_not_alias_captured_factor(f: Any, want: Any) -> None:
    """The cotangent of ``x`` in ``sum(x * W)`` is ``W``; the caller gets an array of its own."""
    before = W.copy()
    for _ in range(2):
        got = pb.grad(f)(np.ones(N))
        np.testing.assert_array_equal(got, want)
        assert not np.shares_memory(got, W)
        got += 1
    np.testing.assert_array_equal(W, before)


COUNT_MAPPED = """
import ctypes
import numpy as np, pullback as pb
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd a b c d e".split()]
find = ctypes.CDLL(None).mallinfo2
find.restype = Info
pb.grad(np.sum)(np.ones(20_000))
before = find().hblks
x = np.empty(2_000_000)
print(find().hblks - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="no malloc of glibc, or an old one")
@pytest.mark.parametrize(("value", "mapped"), [("1", 0), ("0", 1)])
def test_kept_memory_serves_arrays_without_mapping_new_pages(value: str, mapped: int) -> None:
    environment = {name: v for name, v in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    environment["PULLBACK_KEPT_MEMORY"] = value
    run = subprocess.run(
        [sys.executable, "-c", COUNT_MAPPED], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == f"{mapped}\n", run.stderr
