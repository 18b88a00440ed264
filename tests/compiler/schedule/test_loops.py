"""Plans of loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

pytest.importorskip("llvmlite")

from pullback.compiler.codegen.module import emit
from pullback.compiler.pipeline import lower
from pullback.compiler.schedule.fuse import Kernel
from pullback.compiler.schedule.schedule import schedule
from pullback.compiler.target import Options, get_target

X = np.linspace(0, 1, 600).reshape(20, 30)
PROGRAMS = {
    "elementwise": lambda x: np.tanh(x) * 2,
    "rows": lambda x: x / np.sqrt(np.sum(x * x, 1, keepdims=True)),
    "columns": lambda x: np.sum(np.exp(x), 0),
    "all": lambda x: np.sum(x * x),
    "transposed": lambda x: x.T + 1,
    "apart": lambda x: x[:, ::2] - x[:, 1::2],
    "strided": lambda x: x[::2, 1:] - x[::2, :-1],
    "pieces": lambda x: np.concatenate([x, x * 2, x[:, :3]], 1),
    "taken": lambda x: np.sum(x[np.argsort(x[:, 0])], 1),
    "product": lambda x: np.sum(x * x[0], 1),
    "softmax": pb.value_and_grad(lambda x: np.sum(pb.softmax(x) ** 2)),
    "empty": lambda x: x[:0] * 2,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_emit_does_not_change_loop_plans(name: str) -> None:
    target, options = get_target(), Options()
    program = pb.compile(PROGRAMS[name]).lower(X)
    stages = lower(program.traced, target, options)
    steps = schedule(stages.fused, stages.legalized.outputs, target, options)
    plans: list[Any] = [s.plan.loops.plan for s in steps if isinstance(s.source, Kernel)]
    before = [dict(vars(plan)) for plan in plans]
    emit(steps, stages.memory, target, options)
    assert [vars(plan) for plan in plans] == before
