"""Which values are stored and which are computed again, for every scalar op of the registry."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.llvm import llvm_available
from pullback.core.lowering import scalar
from pullback.core.op import list_ops

pytestmark = pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")
LENGTH = 1024  # a multiple of every vector, so that a loop has no remainder
DTYPE = "float32"
CHEAP = 5  # instructions that are rather repeated than their result stored
SCALAR = [op for op in list_ops() if isinstance(op.lower, scalar)]


def build_call(op: Any) -> tuple[Any, list[Any]]:
    """Return a function that calls an op with the parameters and the order of its first sample, and vectors for it."""
    samples, params = op.acts.samples()[0]
    random = np.random.default_rng(0)
    is_order = [isinstance(x, np.ndarray) and not x.ndim for x in samples]
    vectors = [
        random.uniform(*op.domain, LENGTH).astype(DTYPE) if isinstance(x, tuple | list) else np.resize(x, LENGTH)
        for x, fixed in zip(samples, is_order, strict=True)
        if not fixed
    ]

    def call(*xs: Any) -> Any:
        given = iter(xs)
        return op.function(*(int(x) if n else next(given) for x, n in zip(samples, is_order, strict=True)), **params)

    return call, vectors


def lower(f: Any, *inputs: Any) -> Any:
    return pb.compile(f, backend="llvm", cache=False, threads=1).lower(*inputs)


def count_lines(program: Any) -> int:
    """Return how many instructions that give a value there are in the program's first kernel."""
    if "@k0(" not in program.ir:
        return 0
    kernel = program.ir[program.ir.index("@k0(") :].partition("\n}")[0]
    return len(re.findall(r"^%\w+ = ", kernel, re.MULTILINE))


@lru_cache
def count_lines_of_one_instruction() -> int:
    return count_lines(lower(np.negative, np.ones(LENGTH, DTYPE)))


@pytest.mark.parametrize("op", SCALAR, ids=lambda op: op.name)
def test_costly_scalar_op_is_computed_once(op: Any) -> None:
    call, inputs = build_call(op)

    def use_twice(*xs: Any) -> Any:
        y = call(*xs)
        return (np.multiply if op.name == "sub" else np.subtract)(y, np.sum(y))

    alone = lower(call, *inputs)
    loads = 2 * len(inputs) - 2  # beyond those of the first argument: an address and a load each
    instructions = count_lines(alone) - count_lines_of_one_instruction() - loads + 1
    is_costly = instructions > CHEAP or bool(re.search(r"fdiv|[su]div|llvm\.sqrt", alone.ir))
    steps = [step for step in lower(use_twice, *inputs).kernels if re.search(rf"\b{op.name}\b", step)]
    is_stored = is_costly or len(inputs) > 2  # reading three arrays again costs more than reading one
    assert len(steps) == is_stored, (instructions, steps)


def test_tan_of_doubles_is_computed_once() -> None:
    def use_twice(x: Any) -> Any:
        y = np.tan(x)
        return y * y.sum()

    assert lower(use_twice, np.ones(LENGTH)).kernels == ["kernel [1024]: tan, sum", "kernel [1024]: mul"]


def test_cost_of_power_depends_on_the_constant_exponent() -> None:
    def use_twice(x: Any, n: float) -> Any:
        y = np.power(x, n)
        return y * np.sum(y)

    x = np.linspace(0.5, 2.0, LENGTH)
    assert not any("pow" in step for step in lower(lambda x: use_twice(x, 3.0), x).kernels)
    assert sum("pow" in step for step in lower(lambda x: use_twice(x, 0.3), x).kernels) == 1
