"""Run a graph by NumPy: where there is no llvmlite, and as the reference for machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Graph
from pullback.compiler.ir.kinds import CONSTANT
from pullback.errors import CompileError, IndexRangeError, IntegerRangeError

Step = tuple[int, Callable[..., Any], tuple[int, ...], tuple[int, ...]]


class Executor:
    """Runs a graph node by node; a value is freed after its last use."""

    def __init__(self, graph: Graph, traced: Graph | None = None) -> None:
        self.checked = traced if traced is not None and traced.checks else None
        self.stats: dict[str, float] = {}  # nothing is compiled
        last = {a.number: n.number for n in graph.nodes for a in n.args}
        kept = {o.number for o in graph.outputs}
        self.steps: list[Step] = []
        self.start: list[Any] = [n.data if n.kind is CONSTANT else None for n in graph.nodes]
        self.inputs = [n.number for n in graph.inputs]
        self.outputs = [o.number for o in graph.outputs]
        for n in graph.nodes:
            if not n.kind.is_leaf:
                spent = {a.number for a in n.args if last[a.number] == n.number and a.number not in kept}
                gone = tuple(i for i in spent if not graph.nodes[i].kind.is_leaf)
                self.steps.append((n.number, partial(n.kind.evaluate, n), tuple(a.number for a in n.args), gone))

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        env = list(self.start)
        for place, v in zip(self.inputs, values, strict=True):
            env[place] = v
        with np.errstate(all="ignore"):
            for place, perform, args, gone in self.steps:
                env[place] = perform(*[env[i] for i in args])
                for i in gone:
                    env[i] = None
        if self.checked is not None and env[self.outputs[-1]]:
            return run_again(self.checked, values)
        return [np.array(env[i]) for i in (self.outputs if self.checked is None else self.outputs[:-1])]


def run_again(traced: Graph, values: Sequence[Any]) -> list[Any]:
    """Run a traced graph by NumPy, with its checks, one of which a program has found to fail.

    Raise the error of the first check that fails.  Return NumPy's results if none does, which only checks that
    ``may_pass`` may do, such as that of a factorization that failed in machine code.
    """
    count = len(traced.outputs) - 1
    checked = [*traced.outputs[:count], *(n for n, _ in traced.checks)]
    found = Executor(replace(traced, outputs=checked))(values)
    for at, (n, op) in zip(found[count:], traced.checks, strict=True):
        try:
            op.perform([at], {})
        except (IndexRangeError, IntegerRangeError, ZeroDivisionError) as error:
            raise type(error)(f"{error} ({n.line})" if n.line else str(error)) from None
    if not any(getattr(op, "may_pass", False) for _, op in traced.checks):
        raise CompileError("machine code found a position out of range, but NumPy did not. Please report this.")
    return found[:count]
