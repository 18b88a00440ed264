"""Scalar functions on lanes, by NumPy's names: what the lowering of an op is written in."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.compiler.builder import Code, Value, known, literal
from pullback.compiler.math.powers import Powers
from pullback.compiler.math.trigonometry import Circular
from pullback.errors import CompileError

__all__ = ["Lanes", "emit_scalar"]


class Lanes(Powers, Circular):
    """The functions a lowering may use, for vectors of ``width`` lanes."""

    def __getattr__(self, name: str) -> Callable[..., Value]:
        raise CompileError(f"there is no machine code for {name}.")

    # ---- comparisons and logic

    def _compared(self, word: str, x: Any, y: Any) -> Value:
        x, y = self._both(x, y)
        made: Value = x.compare(word, y)
        self.compared[made.name] = x.dtype
        return made

    def equal(self, x: Any, y: Any) -> Value:
        return self._compared("oeq", x, y)

    def not_equal(self, x: Any, y: Any) -> Value:
        return self._compared("une", x, y)

    def less(self, x: Any, y: Any) -> Value:
        return self._compared("olt", x, y)

    def less_equal(self, x: Any, y: Any) -> Value:
        return self._compared("ole", x, y)

    def greater(self, x: Any, y: Any) -> Value:
        return self._compared("ogt", x, y)

    def greater_equal(self, x: Any, y: Any) -> Value:
        return self._compared("oge", x, y)

    def logical_and(self, x: Value, y: Value) -> Value:
        return x.cast("b1") & y.cast("b1")

    def logical_or(self, x: Value, y: Value) -> Value:
        return x.cast("b1") | y.cast("b1")

    def logical_xor(self, x: Value, y: Value) -> Value:
        return x.cast("b1") ^ y.cast("b1")

    def logical_not(self, x: Value) -> Value:
        return ~x.cast("b1")

    def bitwise_and(self, x: Any, y: Any) -> Value:
        a, b = self._wholes(x, y)
        return a & b

    def bitwise_or(self, x: Any, y: Any) -> Value:
        a, b = self._wholes(x, y)
        return a | b

    def bitwise_xor(self, x: Any, y: Any) -> Value:
        a, b = self._wholes(x, y)
        return a ^ b

    def invert(self, x: Value) -> Value:
        return ~self._wholes(x, x)[0]

    def _wholes(self, x: Any, y: Any) -> tuple[Value, Value]:
        x, y = self._both(x, y)
        if x.kind == "f":
            raise CompileError("there is machine code of this function for integers and bools only.")
        return x, y

    def isinf(self, x: Value) -> Value:
        return self.absolute(x).compare("oeq", math.inf) if x.kind == "f" else x.compare("une", x)

    def isfinite(self, x: Value) -> Value:
        return self.absolute(x).compare("one", math.inf) if x.kind == "f" else x.compare("oeq", x)

    # ---- order and rounding

    def maximum(self, x: Any, y: Any) -> Value:
        """NaN where either is one, and the second of two zeros, as NumPy has it."""
        return self._of_two(x, y, "gt", "or")

    def minimum(self, x: Any, y: Any) -> Value:
        return self._of_two(x, y, "lt", "and")

    def _of_two(self, one: Any, other: Any, word: str, logic: str) -> Value:
        x, y = self._both(one, other)
        if x.kind == "b":
            return x | y if logic == "or" else x & y
        bound = known(y)
        if bound is not None and bound == bound:
            if bound:  # no zero and no NaN: one instruction
                return self.select(y.compare("o" + word, x), y, x)
            return self.select(x.compare("u" + word, y), x, y)
        made = self.select(x.compare("o" + word, y), x, y)
        return self.select(x.compare("uno", x), x, made) if x.kind == "f" else made

    def floor(self, x: Value) -> Value:
        return self._intrinsic("floor", x) if x.kind == "f" else x

    def ceil(self, x: Value) -> Value:
        return self._intrinsic("ceil", x) if x.kind == "f" else x

    # ---- division with a remainder

    def fmod(self, x: Any, y: Any) -> Value:
        """The remainder with the sign of x; it is exact."""
        x, y = self._both(x, y)
        if x.kind != "f":
            return self._divided(x, y)[1]
        with self.code.exactly():
            quotient = x / y
            q = self._intrinsic("trunc", quotient)
            r = self.fma(-q, y, x)
            back = self.copysign(y, x)  # the quotient may have been rounded up
            over = (r.as_bits() ^ x.as_bits()).compare("olt", 0) & r.compare("une", 0.0)
            r = self.select(over, r + back, r)
            r = self.copysign(self.select(q.compare("oeq", 0.0), x, r), x)
            rare = self.absolute(quotient).compare("uge", 2.0**23 if x.dtype == "f4" else 2.0**52)
            return self.rarely(rare, r, "far_fmod", self.by_library("fmod"), x, y)

    def remainder(self, x: Any, y: Any) -> Value:
        x, y = self._both(x, y)
        if x.kind != "f":
            _, r = self._divided(x, y)
            return self.select(self._unlike(r, y), r + y, r)
        with self.code.exactly():
            return self._lifted(self.fmod(x, y), y)

    def _lifted(self, r: Value, y: Value) -> Value:
        """A remainder with the sign of y."""
        return self.select(r.compare("oeq", 0.0), self.copysign(0.0, y), self.select(self._unlike(r, y), r + y, r))

    def floor_divide(self, x: Any, y: Any) -> Value:
        x, y = self._both(x, y)
        if x.kind != "f":
            q, r = self._divided(x, y)
            return self.select(self._unlike(r, y), q - 1, q)
        with self.code.exactly():
            r = self.fmod(x, y)
            quotient = x / y
            q = (x - r) / y
            q = self.select(self._unlike(r, y) & r.compare("une", 0.0), q - 1.0, q)
            down = self._intrinsic("floor", q)
            down = self.select((q - down).compare("ogt", 0.5), down + 1.0, down)
            made = self.select(q.compare("oeq", 0.0), self.copysign(0.0, quotient), down)
            return self.select(y.compare("oeq", 0.0), quotient, made)

    def _unlike(self, r: Value, y: Value) -> Value:
        """Whether a remainder other than 0 has not the sign of y."""
        if r.kind == "f":
            return (r.as_bits() ^ y.as_bits()).compare("olt", 0)
        if r.kind == "u":
            return r.compare("une", r)
        return (r ^ y).compare("olt", 0) & r.compare("une", 0)

    def _divided(self, x: Value, y: Value) -> tuple[Value, Value]:
        """Quotient towards 0 and remainder of integers; by 0 both are 0, as NumPy has it."""
        if x.kind == "b":
            raise CompileError("there is no machine code for the division of bools.")
        none = y.compare("oeq", 0)
        if x.kind == "u":
            safe, opposite = self.select(none, 1, y), None
        else:  # the least number has no opposite
            opposite = y.compare("oeq", -1)
            safe = self.select(none | opposite, 1, y)
        q = self.select(none, 0, x / safe)
        r = self.select(none, 0, x - (x / safe) * safe)
        return (q, r) if opposite is None else (self.select(opposite, -x, q), r)


def emit_scalar(code: Code, op: Any, params: dict[str, Any], args: list[Value], width: int, dtype: str) -> Value:
    """Emit the lowering of a scalar op, and return its result in the dtype that is asked for."""
    formula = op.lower.emit
    names = formula.__code__.co_varnames[1 + len(args) : formula.__code__.co_argcount]
    made = formula(Lanes(code, width), *args, *(params[n] for n in names))
    if not isinstance(made, Value):  # a constant, whatever the arguments are
        made = Value(code, literal(made, dtype, width), dtype, width)
    return made.cast(dtype)
