"""Compilation of formulas: each rule of an op, written with names, becomes a positional function.

A formula's parameter names are what it needs: ``g`` the cotangent, ``z`` the result, ``x`` an input, ``x_shape`` only
its shape, ``axis`` a parameter.  Each becomes one positional function ``(g, z, x, y)``, the second operand of a
one-input op being its parameters.  Simple formulas are flattened: they are run once on an ``Expr``, which records
their expression, so that the hot path calls no formula but evaluates its arithmetic directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from pullback.core.accelerate import FUNCTIONS, run_elements, run_pairs
from pullback.core.source import compile_text
from pullback.errors import DefinitionError

Formula = Callable[..., Any]
_number = count()  # so that each rule has a file name of its own
UFUNCS = {f"np_{k}": v for k, v in vars(np).items() if isinstance(v, np.ufunc)}
QUICKER = {f"np_{u.__name__}": run_elements(u) if u.nin == 1 else run_pairs(u) for u in FUNCTIONS}


class Expr:
    """Stands for an array while a formula is converted to Python source."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __array_ufunc__(self, ufunc: Callable[..., Any], method: str, *args: object, **kwargs: object) -> Any:
        name = f"np_{ufunc.__name__}"
        if method != "__call__" or kwargs or UFUNCS.get(name) is not ufunc:
            raise TypeError("only calls of NumPy's own ufuncs can be recorded")
        return Expr(f"{name}({', '.join(map(write_operand, args))})")

    def __neg__(self) -> Expr:
        return Expr(f"(-{self.text})")

    def __array_function__(self, *args: object) -> Any:
        raise TypeError("only NumPy's ufuncs can be recorded")

    def __eq__(self, other: object) -> Any:
        raise TypeError("a formula that compares is called, not flattened")

    __ne__ = __eq__

    def __bool__(self) -> bool:
        raise TypeError("a formula that branches is called, not flattened")


def write_operand(e: object) -> str:
    """Return an operand as source text: an expression, or a number."""
    if isinstance(e, Expr):
        return e.text
    if type(e) in (int, float):
        return repr(e)
    raise TypeError("only numbers and operands can be recorded")


def _define_operator(name: str, sign: str) -> None:
    """Give ``Expr`` an operator and its reflected form."""
    setattr(Expr, f"__{name}__", lambda self, o: Expr(f"({self.text} {sign} {write_operand(o)})"))
    setattr(Expr, f"__r{name}__", lambda self, o: Expr(f"({write_operand(o)} {sign} {self.text})"))


for _name, _text in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "matmul": "@"}.items():
    _define_operator(_name, _text)


def halves_bytes(kernel: Callable[..., Any]) -> bool:
    """Return whether a ufunc of two inputs returns float16 for 8-bit integers, as ``divide`` and ``arctan2`` do."""
    return isinstance(kernel, np.ufunc) and "ee->e" in kernel.types and "bb->b" not in kernel.types


def get_parameters(formula: Formula) -> tuple[str, ...]:
    """Return the names of a formula's parameters.

    >>> get_parameters(lambda g, x: g * x)
    ('g', 'x')
    """
    code = formula.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class Names:
    """Where each name of a formula is found, in the positional call ``(g, z, x, y)`` or ``(g, z, args, p)``."""

    def __init__(
        self, op: str, inputs: tuple[str, ...], params: Sequence[str], variadic: bool, together: bool = False
    ) -> None:
        self.op, self.inputs, self.params, self.variadic = op, inputs, tuple(params), variadic
        shapes = {f"{x}_shapes" for x in inputs} if variadic else {f"{x}_shape" for x in inputs}
        self.known = frozenset({"g", "z", *inputs, *shapes, *params})
        if variadic:
            self.signature = "g, z, args, p"
        elif len(inputs) == 1:
            self.signature = "g, z, x, p"
        elif len(inputs) == 2 and not params and not together:
            self.signature = "g, z, x, y"
        else:
            self.signature = "g, z, args, p"

    def check(self, formula: object, also: frozenset[str] = frozenset()) -> None:
        """Raise an error if a formula has a parameter that is not known."""
        if callable(formula):
            for n in get_parameters(formula):
                if n not in self.known and n not in also:
                    known = ", ".join(sorted(self.known | also))
                    raise DefinitionError(f"{self.op}: a rule has a parameter '{n}', which is none of {known}.")

    def name_operand(self, i: int) -> str:
        """Return the expression of input number ``i`` in the positional call."""
        if self.signature == "g, z, args, p":
            return "args" if self.variadic else f"args[{i}]"
        return "xy"[i]

    def find_value(self, name: str) -> str:
        """Return the expression of what a formula's parameter names, in the positional call."""
        if name in ("g", "z"):
            return name
        if name in self.inputs:
            return self.name_operand(self.inputs.index(name))
        if name.endswith("_shapes"):
            return "[a.shape for a in args]"
        if name.endswith("_shape") and name not in self.params:
            return f"{self.name_operand(self.inputs.index(name[:-6]))}.shape"
        return f"p[{self.params.index(name)}]"

    def compile(self, formula: Formula | float, times: bool) -> Callable[..., Any]:
        """Return the formula as a positional function; ``times``: it is a partial, still to be multiplied by ``g``."""
        if not callable(formula):
            return compile_rule(
                self.op, self.signature, "g" if formula == 1 else "-g" if formula == -1 else f"g * {formula!r}", None
            )
        names = get_parameters(formula)
        if "g" in names:
            times = False
        call = f"formula({', '.join(map(self.find_value, names))})"
        body = f"g * {call}" if times else call
        if {*names} <= {"g", "z", *self.inputs} and not self.variadic:
            flat = flatten_formula(formula, *map(self.find_value, names))
            if flat is not None:
                body = flat if not times else f"g / {flat[5:-1]}" if flat.startswith("(1 / ") else f"g * {flat}"
        return compile_rule(self.op, self.signature, body, formula)


def flatten_formula(formula: Callable[..., Any] | None, *operands: str) -> str | None:
    """Return a formula as source; None if it branches, reads a shape or calls a function: then it must be called."""
    if formula is None or isinstance(formula, np.ufunc):
        return None
    try:
        return write_operand(formula(*map(Expr, operands)))
    except Exception:  # a formula may raise anything when its operands are not arrays
        return None


def is_product(kernel: Callable[..., Any], run: Any) -> bool:
    """Return whether a ufunc is run as plain arithmetic, which returns bools for bools where NumPy returns numbers."""
    return isinstance(kernel, np.ufunc) and flatten_formula(run, "x") is not None


def compile_rule(
    op: str, signature: str, body: str, formula: Callable[..., Any] | None, **more: object
) -> Callable[..., Any]:
    """Return a rule as a function with this signature that evaluates ``body``, an expression."""
    code = compile_text(f"lambda {signature}: {body}", f"<rule {op} {next(_number)}>", "eval")
    function: Callable[..., Any] = eval(code, {**UFUNCS, **QUICKER, "formula": formula, **more})
    function.source, function.formula = body, formula  # type: ignore[attr-defined]
    return function


def derive_rule(op: str, rule: Any, signature: str, fit: Any = None, to: str = "") -> Any:
    """Return a rule with its operands in another order, or with broadcasting undone, as one flat function."""
    if rule is None:
        return None
    return compile_rule(op, signature, f"fit({rule.source}, {to})" if fit else rule.source, rule.formula, fit=fit)
