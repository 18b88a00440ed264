"""The derivative rules of an op as text, for reports."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pullback.core.formula import Expr, get_parameters
from pullback.core.op import Op


def describe_rules(op: object) -> list[str]:
    """Return a line for each input of an op: the formula of its cotangent from that of the result, ``g``.

    >>> from pullback.core.op import REGISTRY
    >>> describe_rules(REGISTRY["sin"]), describe_rules(REGISTRY["mul"])
    (['dx = g * np.cos(x)'], ['dx = g * y', 'dy = g * x'])
    """
    if not isinstance(op, Op) or not op.flows:
        return []
    calculus = op.d
    if calculus.each is not None:
        return [f"each cotangent = {_strip_pair(_write(calculus.each))}"]
    return [
        f"d{name} = {_write_rule(formula, calculus.times)}"
        for name, formula in zip(op.inputs, calculus.formulas, strict=False)
        if formula is not None
    ]


def _write_rule(formula: Any, times: bool) -> str:
    if not callable(formula):
        return {1: "g", -1: "-g"}.get(formula, f"g * {formula!r}")
    text = _write(formula)
    return f"g * {text}" if times and "g" not in get_parameters(formula) else _strip_pair(text)


def _write(formula: Callable[..., Any]) -> str:
    """Return a formula as an expression; its source where it is more than arithmetic."""
    try:
        flat = formula(*[Expr(name) for name in get_parameters(formula)])
    except Exception:  # a formula that branches, or reads shapes
        flat = None
    if isinstance(flat, Expr):
        return flat.text.replace("np_", "np.")
    return _read_source(formula)


def _strip_pair(text: str) -> str:
    """Return what is within a pair of parentheses around the whole text; the text itself if there is none."""
    inner, depth = text[1:-1], 0
    if not text.startswith("(") or not text.endswith(")"):
        return text
    for c in inner:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return text
    return inner


def _read_source(formula: Callable[..., Any]) -> str:
    """Return the body of a lambda, or the name of a function with its parameters."""
    name = getattr(formula, "__name__", "<lambda>").lstrip("_")
    try:
        text = " ".join(inspect.getsource(formula).split())
    except (OSError, TypeError):
        text = ""
    head = f"lambda {', '.join(get_parameters(formula))}: "
    if name != "<lambda>" or text.count("lambda") != 1 or head not in text:
        return f"{'a function' if name == '<lambda>' else name} of {', '.join(get_parameters(formula))}"
    body, depth = text.partition(head)[2], 0
    for i, c in enumerate(body):
        depth += (c in "([{") - (c in ")]}")
        if depth < 0 or (c == "," and depth == 0):
            return body[:i]
    return body
