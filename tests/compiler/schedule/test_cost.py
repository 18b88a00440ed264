"""Which values are stored and which are computed again, for every scalar op of the registry."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.codegen.module import Module
from pullback.compiler.pipeline import lower
from pullback.compiler.target import X86, Options
from pullback.core.lowering import scalar
from pullback.core.op import list_ops

TARGET = X86[-1]
LINE, ROWS = (1024,), (64, 256)  # lengths that are multiples of every vector, so that loops have no remainder
CHEAP = {LINE: 5, ROWS: 8}  # instructions that are rather repeated than their result stored, or kept for the row
SLOW = re.compile(r"fdiv|[su]div|llvm\.sqrt")  # as costly as many others
ARITHMETIC = re.compile(r"^%\w+ = (?!load|getelementptr|phi|shufflevector|insertelement|extractelement).*<\d+ x ")
SCALAR = [op for op in list_ops() if isinstance(op.lower, scalar)]


def build_call(op: Any, shape: tuple[int, ...], dtype: str) -> tuple[Any, list[Any]]:
    """Return a function that calls an op with the parameters and the order of its first sample, and arrays for it."""
    samples, params = op.acts.samples()[0]
    random = np.random.default_rng(0)
    is_order = [isinstance(x, np.ndarray) and not x.ndim for x in samples]
    arrays = [
        random.uniform(*op.domain, shape).astype(dtype) if isinstance(x, tuple | list) else np.resize(x, shape)
        for x, fixed in zip(samples, is_order, strict=True)
        if not fixed
    ]

    def call(*xs: Any) -> Any:
        given = iter(xs)
        return op.function(*(int(x) if n else next(given) for x, n in zip(samples, is_order, strict=True)), **params)

    return call, arrays


def emit(f: Any, *inputs: Any) -> Module:
    traced = pb.compile(f, backend="numpy").lower(*inputs).traced
    return lower(traced, TARGET, Options()).module


def count(module: Module) -> int:
    """Return how many instructions compute vectors."""
    return sum(map(bool, map(ARITHMETIC.match, module.text.splitlines())))


def sum_rows(x: Any) -> Any:
    return np.sum(x, axis=-1, keepdims=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [LINE, ROWS], ids=["line", "rows"])
@pytest.mark.parametrize("op", SCALAR, ids=lambda op: op.name)
def test_costly_scalar_op_is_computed_once(op: Any, shape: tuple[int, ...], dtype: str) -> None:
    call, inputs = build_call(op, shape, dtype)
    other = np.asarray(call(*inputs))

    def use_twice(z: Any, *xs: Any) -> Any:
        y = call(*xs)
        return (np.multiply if op.name == "sub" else np.subtract)(y, sum_rows(y))

    def use_once(z: Any, *xs: Any) -> Any:
        return (np.multiply if op.name == "sub" else np.subtract)(call(*xs), sum_rows(z))

    alone = emit(call, *inputs)
    is_costly = count(alone) > CHEAP[shape] or SLOW.search(alone.text) is not None
    repeated = count(emit(use_twice, other, *inputs)) - count(emit(use_once, other, *inputs))
    assert not is_costly or repeated <= 1, (count(alone), repeated)  # 1: where an instruction is merged with another


def test_cheap_op_is_counted_twice_if_it_is_computed_twice() -> None:
    for shape in (LINE, ROWS):
        x = np.ones(shape)
        once, twice = emit(lambda x: np.abs(x) - sum_rows(x), x), emit(lambda x: np.abs(x) - sum_rows(np.abs(x)), x)
        assert count(twice) == count(once) + 1


def test_division_is_counted_twice_if_it_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(ROWS)
    f = lambda x: np.reciprocal(x) - sum_rows(np.reciprocal(x))
    kept = count(emit(f, x))
    monkeypatch.setattr("pullback.compiler.schedule.loops.SLOW_COST", 99)
    assert count(emit(f, x)) == kept + 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", SCALAR, ids=lambda op: op.name)
def test_value_of_costly_op_is_stored_between_kernels(op: Any) -> None:
    call, inputs = build_call(op, LINE, "float32")

    def use_twice(*xs: Any) -> Any:
        y = call(*xs)
        return (np.multiply if op.name == "sub" else np.subtract)(y, np.sum(y))

    alone = emit(call, *inputs)
    is_costly = count(alone) > CHEAP[LINE] or SLOW.search(alone.text) is not None
    steps = [step for step in emit(use_twice, *inputs).described if re.search(rf"\b{op.name}\b", step)]
    is_stored = is_costly or len(inputs) > 2  # reading three arrays again costs more than reading one
    assert len(steps) == is_stored, (count(alone), steps)


def test_tan_of_doubles_is_computed_once() -> None:
    def use_twice(x: Any) -> Any:
        y = np.tan(x)
        return y * y.sum()

    assert [*emit(use_twice, np.ones(LINE)).described] == ["kernel [1024]: tan, sum", "kernel [1024]: mul"]


def test_cost_of_power_depends_on_the_constant_exponent() -> None:
    def use_twice(x: Any, n: float) -> Any:
        y = np.power(x, n)
        return y * np.sum(y)

    x = np.linspace(0.5, 2.0, 1024)
    assert not any("pow" in step for step in emit(lambda x: use_twice(x, 3.0), x).described)
    assert sum("pow" in step for step in emit(lambda x: use_twice(x, 0.3), x).described) == 1
