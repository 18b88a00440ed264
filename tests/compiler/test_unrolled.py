"""Loops that are unrolled: what is the same in every step is written once, and called from a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.rolled import LEAST, rolled

STEPS = 60


def drawn(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype) / 2


def recurrent(w: Any, b: Any, xs: Any) -> Any:
    h = xs[0]
    for t in range(len(xs)):
        h = pb.tanh(xs[t] * 0.5 + h @ w + b)
    return pb.sum(h * h)


def growing(w: Any, b: Any, xs: Any) -> Any:
    """No step is quite like the one before it."""
    total = pb.sum(b)
    for t in range(1, len(xs)):
        total = total + pb.sum(pb.exp(-xs[:t]) @ w)
    return total


def with_kernels(w: Any, b: Any, xs: Any) -> Any:
    """Calls, then NumPy's kernel, then calls; and a number of parts."""
    h = xs[0]
    for t in range(len(xs)):
        h = pb.tanh(h @ w + xs[t])
        if t % 25 == 24:
            h = pb.sort(h) / 8.0
    return pb.sum(h) + pb.sum(b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", [recurrent, growing, with_kernels])
def test_an_unrolled_loop_gives_what_the_executor_gives(f: Callable[..., Any], dtype: Any) -> None:
    args = [drawn(5, 5, dtype=dtype), drawn(5, dtype=dtype)], drawn(STEPS, 3, 5, dtype=dtype)

    def step(params: Any, xs: Any) -> Any:
        return pb.value_and_grads(lambda w, b: f(w, b, xs))(params)

    program = pb.compile(step, backend="llvm")
    (value, grads), (expected, slopes) = program(*args), pb.compile(step, backend="numpy")(*args)
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(value, expected, rtol=rtol)
    for got, wanted in zip(grads, slopes, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)


def test_the_length_of_a_loop_is_not_that_of_its_text() -> None:
    def text(steps: int) -> str:
        f = pb.compile(pb.grads(lambda w, b: recurrent(w, b, drawn(steps, 3, 5))), backend="llvm")
        found: str = f.lower([drawn(5, 5), drawn(5)]).ir
        return found

    short, long = text(STEPS), text(2 * STEPS)
    for what in ("\ndefine ", "\ncall void "):
        assert short.count(what) == long.count(what) < STEPS


def slots(count: int, kind: str = "k0") -> list[str]:
    lines = []
    for i in range(count):
        lines += [
            f"%s{kind}{i} = getelementptr ptr, ptr %slots, i64 {i % 3}", f"%p{kind}{i} = load ptr, ptr %s{kind}{i}",
            f"%a{kind}{i} = getelementptr i8, ptr %arena, i64 {64 * i}",
            f"call void @{kind}(ptr %p{kind}{i}, i64 7, ptr %a{kind}{i})",
        ]  # fmt: skip
    return lines


def test_a_run_of_calls_is_a_table() -> None:
    lines, (function,) = rolled(slots(LEAST), "many")
    assert lines == ["call void @many_0(ptr %slots, ptr %arena, ptr null)"]
    words = [0, 2, 0, 0, 3, 64 << 16, 0, 4, 128 << 16, 0, 2, 192 << 16]
    assert f"[{', '.join(f'i64 {w}' for w in words)}, " in function
    assert function.count("call void @k0(") == 1


def test_addresses_may_be_on_the_stack_or_rounded_to_a_line() -> None:
    each = ["%s = getelementptr ptr, ptr %slots, i64 0", "%p = load ptr, ptr %s"]
    each += ["%q = getelementptr i8, ptr %p, i64 63", "%r = call ptr @llvm.ptrmask.p0.i64(ptr %q, i64 -64)"]
    lines, (function,) = rolled([*each, "call void @k(ptr %r, ptr %small)"] * LEAST, "lined", "%small")
    assert lines == ["call void @lined_0(ptr %slots, ptr %arena, ptr %small)"]
    assert f"[i64 0, i64 {(63 << 16) + (1 << 15) + 2}, i64 1, " in function
    assert function.count("ptrmask") == 1


def test_a_few_calls_are_left_as_they_are() -> None:
    few = slots(LEAST - 1)
    assert rolled(few, "few") == (few, [])
    apart = [*slots(LEAST // 2), "%x = add i64 1, 2", *slots(LEAST // 2, "k1")]
    assert rolled(apart, "apart") == (apart, [])
    kinds = [line for i in range(LEAST) for line in slots(1, f"k{i}")]
    assert rolled(kinds, "kinds") == (kinds, [])


def test_what_is_named_later_is_still_there() -> None:
    later = ["%y = load i64, ptr %ak05", "call void @other(ptr %pk02, i64 %y)"]
    lines, functions = rolled([*slots(LEAST), *later], "named")
    assert len(functions) == 1
    assert lines == [
        "call void @named_0(ptr %slots, ptr %arena, ptr null)", "%sk02 = getelementptr ptr, ptr %slots, i64 2",
        "%pk02 = load ptr, ptr %sk02", "%ak05 = getelementptr i8, ptr %arena, i64 320", *later,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "step", [lambda x: np.sin(x) * 0.5 + 1.0, lambda x: x * 0.5 + 1.0, lambda x: -abs(x), lambda x: x - x.mean() * 0.1]
)
def test_long_loops_are_several_kernels(step: Any) -> None:
    def loop(x: Any) -> Any:
        for _ in range(600):
            x = step(x)
        return x

    x = np.linspace(-1.0, 1.0, 7)
    np.testing.assert_allclose(pb.compile(loop, backend="llvm")(x), loop(x), rtol=1e-12, atol=1e-14)
