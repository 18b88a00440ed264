"""Lines of the user's code in traced graphs."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

import pullback as pb


def trace_lines(f: Any, *args: Any) -> dict[str, set[int]]:
    """Return the lines of each op of the traced graph, counted from the first line of ``f``."""
    found: dict[str, set[int]] = {}
    for n in pb.compile(f, cache=False).lower(*args).traced.nodes:
        file, _, line = n.line.partition(":")
        if file == "test_user_lines.py":
            found.setdefault(n.name, set()).add(int(line) - f.__code__.co_firstlineno)
    return found


def test_lines_of_forward_and_backward_ops() -> None:
    def f(x: Any) -> Any:
        inner = lambda x: np.sum(np.sin(x))  # line 1
        first = pb.grad(inner)(x)  # line 2, where the backward pass computes cos
        second = pb.grad(lambda x: np.sum(np.exp(pb.grad(inner)(x))))(x)  # line 3, with a backward pass in another
        return first, second

    lines = trace_lines(f, np.ones(3))
    assert lines["sin"] == {1}  # equal ops are one, of the first line
    assert lines["cos"] == {2}
    assert lines["exp"] == {3}


def test_line_of_custom_gradient() -> None:
    def f(x: Any) -> Any:
        @pb.custom_gradient
        def g(x: Any) -> Any:
            return np.sin(x), lambda dy: dy * np.tan(x)  # line 3

        return pb.grad(lambda x: np.sum(np.exp(g(x))))(x)  # line 5

    lines = trace_lines(f, np.ones(3))
    assert lines["tan"] == {3}
    assert lines["exp"] == {5}


def test_tracing_releases_frames_of_user_function() -> None:
    class Held:
        pass

    def f(x: Any) -> Any:
        held = Held()
        seen.append(weakref.ref(held))
        return pb.grad(lambda x: np.sum(np.sin(x) * np.exp(x)))(x)

    seen: list[Any] = []
    compiled = pb.compile(f, cache=False)
    compiled(np.ones(3))
    assert seen[0]() is None
