"""Unrolled loops: kernels of equal steps are emitted once, and called from a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.codegen.call_table import ARENA, MIN_CALLS, STACK, Address, CallList, ConstantOperand, Local

STEPS = 60


@pytest.fixture(autouse=True)
def keep_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_LOOP_ROLLING", "0")


def draw(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype) / 2


def recurrent(w: Any, b: Any, xs: Any) -> Any:
    h = xs[0]
    for t in range(len(xs)):
        h = pb.tanh(xs[t] * 0.5 + h @ w + b)
    return pb.sum(h * h)


def grow(w: Any, b: Any, xs: Any) -> Any:
    """Steps that all differ."""
    total = pb.sum(b)
    for t in range(1, len(xs)):
        total = total + pb.sum(pb.exp(-xs[:t]) @ w)
    return total


def with_kernels(w: Any, b: Any, xs: Any) -> Any:
    """Calls before and after a host op, and a kernel in parts."""
    h = xs[0]
    for t in range(len(xs)):
        h = pb.tanh(h @ w + xs[t])
        if t % 25 == 24:
            h = pb.sort(h) / 8.0
    return pb.sum(h) + pb.sum(b)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", [recurrent, grow, with_kernels])
def test_unrolled_loop_matches_numpy_executor(f: Callable[..., Any], dtype: Any) -> None:
    args = [draw(5, 5, dtype=dtype), draw(5, dtype=dtype)], draw(STEPS, 3, 5, dtype=dtype)

    def step(params: Any, xs: Any) -> Any:
        return pb.value_and_grads(lambda w, b: f(w, b, xs))(params)

    program = pb.compile(step, backend="llvm")
    (value, grads), (expected, slopes) = program(*args), pb.compile(step, backend="numpy")(*args)
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(value, expected, rtol=rtol)
    for got, wanted in zip(grads, slopes, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)


def test_text_of_unrolled_loop_does_not_grow_with_steps() -> None:
    def text(steps: int) -> str:
        f = pb.compile(pb.grads(lambda w, b: recurrent(w, b, draw(steps, 3, 5))), backend="llvm")
        found: str = f.lower([draw(5, 5), draw(5)]).ir
        return found

    short, long = text(STEPS), text(2 * STEPS)
    for what in ("\ndefine ", "\ncall void "):
        assert short.count(what) == long.count(what) < STEPS


def add_calls(code: CallList, count: int, function: str = "k0") -> None:
    for i in range(count):
        code.call_void(function, [Address.of_slot(i % 3), ConstantOperand("i64", "7"), Address(ARENA, 64 * i)])


def test_run_of_equal_calls_becomes_call_table() -> None:
    code = CallList()
    add_calls(code, MIN_CALLS)
    lines, (function,) = code.render("many", False)
    assert lines == ["call void @many_0(ptr %slots, ptr %arena, ptr null)"]
    words = [0, 2, 0, 0, 3, 64 << 16, 0, 4, 128 << 16, 0, 2, 192 << 16]
    assert f"[{', '.join(f'i64 {w}' for w in words)}, " in function.text
    assert function.text.count("call void @k0(") == 1


def test_call_table_with_stack_and_rounded_addresses() -> None:
    code = CallList()
    for _ in range(MIN_CALLS):
        code.call_void("k", [Address.of_slot(0, 63, rounded=True), Address(STACK)])
    lines, (function,) = code.render("rounded", True)
    assert lines == ["call void @rounded_0(ptr %slots, ptr %arena, ptr %small)"]
    assert f"[i64 0, i64 {(63 << 16) + (1 << 15) + 2}, i64 1, " in function.text
    assert function.text.count("ptrmask") == 1


def test_few_calls_are_emitted_without_call_table() -> None:
    few, apart, kinds = CallList(), CallList(), CallList()
    add_calls(few, MIN_CALLS - 1)
    add_calls(apart, MIN_CALLS // 2)
    apart.op("add i64 1, 2")
    add_calls(apart, MIN_CALLS // 2, "k1")
    for i in range(MIN_CALLS):
        add_calls(kinds, 1, f"k{i}")
    for code, count in ((few, MIN_CALLS - 1), (apart, MIN_CALLS), (kinds, MIN_CALLS)):
        lines, functions = code.render("few", False)
        assert sum(line.startswith("call void @k") for line in lines) == count
        assert functions == []


def test_call_table_followed_by_single_calls() -> None:
    code = CallList()
    add_calls(code, MIN_CALLS)
    code.call_void("other", [Local("ptr", code.pointer(Address.of_slot(2))), Address(ARENA, 320)])
    code.call_void("further", [Address.of_slot(1, 63, rounded=True).further(8)])
    code.call_void("wake", [ConstantOperand("i64", "2")], first=True)
    lines, (function,) = code.render("mixed", False)
    assert "call void @wake(i64 2)" in function.text
    assert lines[0] == "call void @mixed_0(ptr %slots, ptr %arena, ptr null)"
    assert [line for line in lines if line.startswith("call void")] == [
        lines[0],
        "call void @other(ptr %v2, ptr %v3)",
        lines[-1],
    ]
    assert "@further" in lines[-1]


def test_unrolled_loop_with_shared_kernels_compiles() -> None:
    def f(h: Any) -> Any:
        outs = []
        for _ in range(16):
            o = h @ np.ones((2, 128))
            outs.append(o - pb.logsumexp(o, axis=1, keepdims=True))
            h = np.tanh(h @ np.ones((2, 2)))
        return outs

    h = draw(46, 2)
    for threads in (1, 2):
        for got, wanted in zip(pb.compile(f, backend="llvm", threads=threads)(h), f(h), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "step", [lambda x: np.sin(x) * 0.5 + 1.0, lambda x: x * 0.5 + 1.0, lambda x: -abs(x), lambda x: x - x.mean() * 0.1]
)
def test_long_unrolled_loop_is_split_into_several_kernels(step: Any) -> None:
    def loop(x: Any) -> Any:
        for _ in range(600):
            x = step(x)
        return x

    x = np.linspace(-1.0, 1.0, 7)
    np.testing.assert_allclose(pb.compile(loop, backend="llvm")(x), loop(x), rtol=1e-12, atol=1e-14)
