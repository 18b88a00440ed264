"""Comparisons, logic, rounding and division on vectors, with NumPy's special cases."""

from __future__ import annotations

import math
import struct

from pullback.compiler.builder import Value
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.errors import CompileError

ALL_SET = struct.unpack("<d", b"\xff" * 8)[0]  # a NaN that is selected by "or" where masks are vectors


# ---- comparisons and logic


def _compare(b: MathBuilder, word: str, x: Value, y: Value) -> Value:
    x, y = b.lift_both(x, y)
    result: Value = x.compare(word, y)
    b.compared[result.name] = x.dtype
    return result


def equal(b: MathBuilder, x: Value, y: Value) -> Value:
    return _compare(b, "oeq", x, y)


def not_equal(b: MathBuilder, x: Value, y: Value) -> Value:
    return _compare(b, "une", x, y)


def less(b: MathBuilder, x: Value, y: Value) -> Value:
    return _compare(b, "olt", x, y)


def less_equal(b: MathBuilder, x: Value, y: Value) -> Value:
    return _compare(b, "ole", x, y)


def greater(b: MathBuilder, x: Value, y: Value) -> Value:
    return _compare(b, "ogt", x, y)


def greater_equal(b: MathBuilder, x: Value, y: Value) -> Value:
    return _compare(b, "oge", x, y)


def logical_and(b: MathBuilder, x: Value, y: Value) -> Value:
    return x.cast("b1") & y.cast("b1")


def logical_or(b: MathBuilder, x: Value, y: Value) -> Value:
    return x.cast("b1") | y.cast("b1")


def logical_xor(b: MathBuilder, x: Value, y: Value) -> Value:
    return x.cast("b1") ^ y.cast("b1")


def logical_not(b: MathBuilder, x: Value) -> Value:
    return ~x.cast("b1")


def bitwise_and(b: MathBuilder, x: Value, y: Value) -> Value:
    i, j = _as_integers(b, x, y)
    return i & j


def bitwise_or(b: MathBuilder, x: Value, y: Value) -> Value:
    i, j = _as_integers(b, x, y)
    return i | j


def bitwise_xor(b: MathBuilder, x: Value, y: Value) -> Value:
    i, j = _as_integers(b, x, y)
    return i ^ j


def invert(b: MathBuilder, x: Value) -> Value:
    return ~_as_integers(b, x, x)[0]


def left_shift(b: MathBuilder, x: Value, y: Value) -> Value:
    i, j, fits = _find_shift(b, x, y)
    return b.select(fits, i << b.select(fits, j, j.lift(0)), i.lift(0))


def right_shift(b: MathBuilder, x: Value, y: Value) -> Value:
    i, j, fits = _find_shift(b, x, y)
    moved = i >> b.select(fits, j, j.lift(i.bits - 1))  # shifted by all bits but one, only the sign is left
    return moved if i.kind == "i" else b.select(fits, moved, i.lift(0))


def _find_shift(b: MathBuilder, x: Value, y: Value) -> tuple[Value, Value, Value]:
    """Return the integers, the number of bits to shift by, and the lanes where that is less than their width."""
    i, j = _as_integers(b, x, y)
    if i.kind == "b":
        raise CompileError("there is machine code of this function for integers only.")
    return i, j, j.compare("oge", 0) & j.compare("olt", i.bits)


def _as_integers(b: MathBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    x, y = b.lift_both(x, y)
    if x.kind == "f":
        raise CompileError("there is machine code of this function for integers and bools only.")
    return x, y


def isinf(b: MathBuilder, x: Value) -> Value:
    return b.absolute(x).compare("oeq", math.inf) if x.kind == "f" else x.compare("une", x)


def isfinite(b: MathBuilder, x: Value) -> Value:
    return b.absolute(x).compare("one", math.inf) if x.kind == "f" else x.compare("oeq", x)


# ---- order and rounding


def maximum(b: MathBuilder, x: Value, y: Value) -> Value:
    """Return NumPy's maximum: NaN if either argument is NaN, and the second of two zeros."""
    return _choose(b, x, y, "gt", "or")


def minimum(b: MathBuilder, x: Value, y: Value) -> Value:
    return _choose(b, x, y, "lt", "and")


def _choose(b: MathBuilder, one: Value, other: Value, word: str, logic: str) -> Value:
    x, y = b.lift_both(one, other)
    if x.kind == "b":
        return x | y if logic == "or" else x & y
    bound = y.number
    if bound is not None and bound == bound:
        if bound:  # a constant that is neither zero nor NaN: one instruction
            return b.select(y.compare("o" + word, x), y, x)
        return b.select(x.compare("u" + word, y), x, y)
    chosen = b.select(x.compare("o" + word, y), x, y)
    if x.kind != "f":
        return chosen
    return b.select(x.compare("uno", x), ALL_SET, chosen)


def floor(b: MathBuilder, x: Value) -> Value:
    return b.intrinsic("floor", x) if x.kind == "f" else x


def ceil(b: MathBuilder, x: Value) -> Value:
    return b.intrinsic("ceil", x) if x.kind == "f" else x


# ---- division with a remainder


def fmod(b: MathBuilder, x: Value, y: Value) -> Value:
    """Return the remainder with the sign of x, which is exact."""
    x, y = b.lift_both(x, y)
    if x.kind != "f":
        return _divide(b, x, y)[1]
    with b.code.exactly():
        quotient = x / y
        q = b.intrinsic("trunc", quotient)
        r = b.exact_fma(-q, y, x)
        back = b.copysign(y, x)  # correct a quotient that was rounded up
        over = (r.as_bits() ^ x.as_bits()).compare("olt", 0) & r.compare("une", 0.0)
        r = b.select(over, r + back, r)
        r = b.copysign(b.select(q.compare("oeq", 0.0), x, r), x)
        rare = b.absolute(quotient).compare("uge", 2.0**23 if x.dtype == "f4" else 2.0**52)
        if x.dtype == "f8" and not b.code.has_fma:  # a product of split numbers would overflow or not be exact
            rare = rare | b.absolute(x).compare("ogt", 1e290) | b.absolute(y).compare("olt", 1e-290)
        return b.rarely(rare, r, "far_fmod", b.by_library("fmod"), x, y)


def remainder(b: MathBuilder, x: Value, y: Value) -> Value:
    x, y = b.lift_both(x, y)
    if x.kind != "f":
        _, r = _divide(b, x, y)
        return b.select(_has_other_sign(r, y), r + y, r)
    with b.code.exactly():
        return _match_sign(b, fmod(b, x, y), y)


def _match_sign(b: MathBuilder, r: Value, y: Value) -> Value:
    """Return a remainder with the sign of y: y is added where the signs differ."""
    return b.select(r.compare("oeq", 0.0), b.copysign(0.0, y), b.select(_has_other_sign(r, y), r + y, r))


def floor_divide(b: MathBuilder, x: Value, y: Value) -> Value:
    """Return NumPy's quotient rounded down; for infinite quotients the quotient, as the op ``floor_div`` has it."""
    x, y = b.lift_both(x, y)
    if x.kind != "f":
        q, r = _divide(b, x, y)
        return b.select(_has_other_sign(r, y), q - 1, q)
    with b.code.exactly():
        r = fmod(b, x, y)
        quotient = x / y
        q = (x - r) / y
        q = b.select(_has_other_sign(r, y) & r.compare("une", 0.0), q - 1.0, q)
        down = b.intrinsic("floor", q)
        down = b.select((q - down).compare("ogt", 0.5), down + 1.0, down)
        result = b.select(q.compare("oeq", 0.0), b.copysign(0.0, quotient), down)
        by_quotient = y.compare("oeq", 0.0) | isinf(b, x) | isinf(b, y)
        return b.select(by_quotient, b.intrinsic("floor", quotient), result)


def _has_other_sign(r: Value, y: Value) -> Value:
    """Return whether a remainder other than 0 has the opposite sign of y."""
    if r.kind == "f":
        return (r.as_bits() ^ y.as_bits()).compare("olt", 0)
    if r.kind == "u":
        return r.compare("une", r)
    return (r ^ y).compare("olt", 0) & r.compare("une", 0)


def _divide(b: MathBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return the quotient of integers, rounded towards 0, and the remainder; divided by 0 both are 0, as in NumPy."""
    if x.kind == "b":
        raise CompileError("there is no machine code for the division of bools.")
    none = y.compare("oeq", 0)
    if x.kind == "u":
        safe, opposite = b.select(none, 1, y), None
    else:  # dividing the least number by -1 overflows
        opposite = y.compare("oeq", -1)
        safe = b.select(none | opposite, 1, y)
    q = b.select(none, 0, x / safe)
    r = b.select(none, 0, x - (x / safe) * safe)
    return (q, r) if opposite is None else (b.select(opposite, -x, q), r)
