"""Loops and branches as data of nodes: what their checks report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.ir.graph import Graph
from pullback.compiler.ir.structured import Structure, Switch, While
from pullback.errors import CompileError

X = np.arange(3.0)
FUNCTIONS: dict[str, Any] = {
    "scan": lambda x: pb.scan(lambda c, y: (c * y, c + y), x, np.ones((4, 3)))[1],
    "while_loop": lambda x: pb.while_loop(lambda c: c.sum() < 50.0, lambda c: c * 2.0 + x, x),
    "cond": lambda x: pb.cond(x[0] > 0.0, lambda y: y * 2.0, lambda y: y - 1.0, x),
}


def trace(name: str) -> Graph:
    return pb.compile(FUNCTIONS[name], backend="numpy").lower(X).traced


def find_structure(name: str) -> Any:
    return next(n.data for n in trace(name).nodes if isinstance(n.data, Structure))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_structure_is_valid(name: str) -> None:
    trace(name).verify()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graph_verify_reports_operands_of_structure(name: str) -> None:
    graph = trace(name)
    n = next(n for n in graph.nodes if isinstance(n.data, Structure))
    n.args = n.args[::-1][:1]
    with pytest.raises(CompileError, match=r"it takes \[.*its operands are \["):
        graph.verify()


def test_structure_reports_bodies_that_do_not_fit() -> None:
    loop, cond = find_structure("while_loop"), find_structure("cond")
    assert While(loop.body, loop.body, loop.constants).find_problem() == "its condition is not one bool."
    fewer = replace(loop.condition, inputs=loop.condition.inputs[:-1])
    assert While(fewer, loop.body, loop.constants).find_problem() == "its condition takes something else than its body."
    ended = replace(loop.body, outputs=[])
    assert While(loop.condition, ended, loop.constants).find_problem().endswith("becomes [].")
    other = replace(cond.branches[0], outputs=[])
    assert Switch((cond.branches[0], other)).find_problem() == "its branches take or give different things."
