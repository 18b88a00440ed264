"""Building blocks of vector functions: polynomials, selection, and slow paths for rare arguments.

In all vector functions LLVM may not fuse multiplications and additions, only ``fma`` does: their precision depends on
where values are rounded.  On CPUs without FMA, products whose rounding error matters are computed from split factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.builder import Code, Helpers, Value, define_function, join_lanes, slice_lanes
from pullback.errors import CompileError

MANTISSA = {"f4": 23, "f8": 52}
LEAST = {"f4": 2.0**-126, "f8": 2.0**-1022}  # the smallest positive normal number
ROUND = {"f4": 1.5 * 2.0**23, "f8": 1.5 * 2.0**52}  # adding and subtracting it rounds to an integer
BITS_OF_ONE = {"f4": 0x3F800000, "f8": 0x3FF0000000000000}
LN2 = {"f4": (0.693359375, -2.12194440e-4), "f8": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}

RARE = "@rare = external global i64"  # a flag that is set where a slow path is needed and left out
_helpers: dict[tuple[str, bool], Helpers] = {}  # by name and whether there is FMA; the same in every program


class MathBuilder:
    """Emits the arithmetic that vector functions are made of; its methods return the vectors of their results."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.compared: dict[str, str] = {}  # by name of a comparison's result: the dtype of its operands

    # ---- arguments

    def as_real(self, x: Value) -> Value:
        if x.kind != "f":
            raise CompileError("there is machine code of this function for floats only.")
        return x

    def lift_both(self, x: Value | float, y: Value | float) -> tuple[Value, Value]:
        """Return two operands as vectors; one of them may be a Python number."""
        one = x if isinstance(x, Value) else y
        assert isinstance(one, Value)
        return one.lift(x), one.lift(y)

    def as_reals(self, x: Value | float, y: Value | float) -> tuple[Value, Value]:
        x, y = self.lift_both(x, y)
        return self.as_real(x), self.as_real(y)

    def intrinsic(self, name: str, *xs: Value) -> Value:
        x = xs[0]
        return x.like(self.code.call(f"llvm.{name}.{x.suffix}", x.type, [(a.type, a.name) for a in xs]))

    # ---- arithmetic

    def fma(self, x: Value, y: Value | float, z: Value | float) -> Value:
        """Return x * y + z, rounded once if the CPU has FMA, else twice; for where that matters little."""
        factor, term = x.lift(y), x.lift(z)
        if self.code.has_fma:
            return self.intrinsic("fma", x, factor, term)
        with self.code.exactly():
            return x * factor + term

    def exact_fma(self, x: Value, y: Value | float, z: Value | float) -> Value:
        """Return x * y + z as if rounded once, on any CPU; for where the rounding error of the product matters."""
        factor, term = x.lift(y), x.lift(z)
        if self.code.has_fma:
            return self.intrinsic("fma", x, factor, term)
        with self.code.exactly():
            if x.dtype == "f4":  # products of float32 are exact in float64
                return (x.cast("f8") * factor.cast("f8") + term.cast("f8")).cast("f4")
            product = x * factor
            (x1, x2), (y1, y2) = self._split(x), self._split(factor)
            lost = ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2
            total = product + term
            back = total - product
            more = ((product - (total - back)) + (term - back)) + lost
            # ``total`` alone for -0, and for numbers too large to split
            return self.select(more.compare("one", 0.0), total + more, total)

    def _split(self, x: Value) -> tuple[Value, Value]:
        """Return a float64 as a sum of two numbers with half as many bits, whose products are exact."""
        large = x * (2.0**27 + 1.0)
        high = large - (large - x)
        return high, x - high

    def polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """Return a polynomial by Horner's rule, which takes the fewest instructions."""
        total = x.lift(coefficients[0])
        for c in coefficients[1:]:
            total = self.fma(total, x, c)
        return total

    def wide_polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """Return a polynomial by Horner's rule for the terms of even and of odd degree, two chains of dependence."""
        even, odd = (coefficients[(len(coefficients) - degree) % 2 :: 2] for degree in (1, 2))
        with self.code.exactly():
            square = x * x
        low = self.polynomial(even, square)
        return self.fma(self.polynomial(odd, square), x, low)

    def fit_polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """Return a polynomial by one or two chains of Horner's rule, by its length."""
        return (self.polynomial if len(coefficients) < 6 else self.wide_polynomial)(coefficients, x)

    def nearest(self, x: Value, scale: float, ahead: int = 0) -> tuple[Value, Value]:
        """Return the integer nearest to x * scale, as a float, and with ``ahead`` added in the low bits of a float."""
        shifted = self.fma(x, scale, ROUND[x.dtype] + ahead)
        return shifted - (ROUND[x.dtype] + ahead), shifted.as_bits()

    def power_of_two(self, bits: Value) -> Value:
        """Return 2 ** n, for the integer n in the low bits."""
        dtype = f"f{bits.dtype[1]}"
        return ((bits << MANTISSA[dtype]) + BITS_OF_ONE[dtype]).as_floats()

    def absolute(self, x: Value) -> Value:
        if x.kind == "f":
            return self.intrinsic("fabs", x)
        if x.kind in "ub":
            return x
        self.code.declared.add(f"declare {x.type} @llvm.abs.{x.suffix}({x.type}, i1)")
        return x.like(self.code.op(f"call {x.type} @llvm.abs.{x.suffix}({x.type} {x.name}, i1 false)"))

    def copysign(self, x: Value | float, y: Value | float) -> Value:
        return self.intrinsic("copysign", *self.as_reals(x, y))

    def sqrt(self, x: Value) -> Value:
        return self.intrinsic("sqrt", self.as_real(x))

    def rint(self, x: Value) -> Value:
        return self.intrinsic("rint", self.as_real(x))

    def at_most(self, x: Value, bound: float) -> Value:
        """Return the smaller of both; NaN if x is NaN."""
        return self.select(x.compare("ogt", bound), bound, x)

    def at_least(self, x: Value, bound: float) -> Value:
        return self.select(x.compare("olt", bound), bound, x)

    def isnan(self, x: Value) -> Value:
        return x.compare("uno" if x.kind == "f" else "une", x)

    def once(self, name: str, make: Callable[[MathBuilder, Value], Any], x: Value) -> Any:
        """Return ``make()`` for these lanes; within a basic block it is called once."""
        key = name, x.name, x.dtype
        if key not in self.code.shared:
            result = make(self, x)
            self.code.shared[key] = result
        return self.code.shared[key]

    # ---- choices

    def select(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        if not isinstance(x, Value) and not isinstance(y, Value):
            x = condition.like("", self.compared.get(condition.name, "f8")).lift(x)
        a, b = self.lift_both(x, y)
        condition = condition.cast("b1")
        return a.like(self.code.op(f"select {condition.type} {condition.name}, {a.type} {a.name}, {b.type} {b.name}"))

    def rarely(self, rare: Value, y: Value, name: str, slow: Callable[..., Value], *xs: Value) -> Value:
        """Return ``y``, and in rare lanes the result of ``slow`` for the arguments.

        ``slow`` is emitted as a function of its own, which is called if any lane is rare.
        """
        code = self.code
        if code.rare is not None:
            code.rare.append(rare)
            return y
        if code.flags_rare:
            self.flag_rare(rare, code.existing)
            return y
        any_ = self.any_lane(rare)
        usual, cold, on = code.block("usual"), code.block("rare"), code.block("on")
        shared = dict(code.shared)
        code.jump(usual)
        code.begin(usual)
        code.branch(any_, cold, on, unlikely=True)
        code.begin(cold)
        # other lanes keep ``y``: a lane must not depend on its neighbours
        other = self.select(rare, self._call_helper(name, slow, xs), y)
        code.jump(on)
        code.begin(on)
        code.shared.update(shared)  # it is computed before the branch
        return y.like(code.op(f"phi {y.type} [{y.name}, %{usual}], [{other.name}, %{cold}]"))

    def flag_rare(self, rare: Value, counted: str | None) -> None:
        """Emit code that sets the module's flag ``rare`` if a lane of the mask ``counted`` needs a slow path."""
        code, shared = self.code, dict(self.code.shared)
        if counted is not None and rare.width > 1:
            rare = rare.like(code.op(f"and {rare!r}, {counted}"))
        code.declared.add(RARE)
        cold, on = code.block("rare"), code.block("on")
        code.branch(self.any_lane(rare), cold, on, unlikely=True)
        code.begin(cold)
        code.line("store i64 1, ptr @rare")
        code.jump(on)
        code.begin(on)
        code.shared.update(shared)  # it is computed before the branch

    def any_lane(self, condition: Value) -> str:
        """Return whether a condition is true in any lane, as an ``i1``."""
        if condition.width == 1:
            return condition.name
        inputs = [(condition.type, condition.name)]
        return self.code.call(f"llvm.vector.reduce.or.v{condition.width}i1", "i1", inputs)

    def _call_helper(self, name: str, body: Callable[..., Value], xs: Sequence[Value]) -> Value:
        """Call a helper function with this body, for each register of a vector; it is emitted once per module."""
        code, x = self.code, xs[0]
        lanes = code.register_bytes // int(x.dtype[1]) or x.width
        if x.width > lanes:
            parts = ([slice_lanes(a, i, lanes) for a in xs] for i in range(0, x.width, lanes))
            return join_lanes([self._call_helper(name, body, part) for part in parts])
        full = f"{name}_{x.suffix}"
        code.add_helper(full, lambda: self._get_helper(full, body, xs))
        args = ", ".join(f"{a.type} {a.name}" for a in xs)
        return x.like(code.op(f"call {x.type} @{full}({args})"))

    def _get_helper(self, name: str, body: Callable[..., Value], xs: Sequence[Value]) -> Helpers:
        key = name, self.code.has_fma
        if key not in _helpers:
            _helpers[key] = self._write_helper(name, body, xs)
        return _helpers[key]

    def _write_helper(self, name: str, body: Callable[..., Value], xs: Sequence[Value]) -> Helpers:
        """Return a helper function and those it calls, and their declarations."""
        inner = Code(self.code.has_fma)
        inner.exact_depth = 1
        y = body(MathBuilder(inner), *(Value(inner, f"%x{i}", a.dtype, a.width) for i, a in enumerate(xs)))
        params = ", ".join(f"{a.type} %x{i}" for i, a in enumerate(xs))
        head = f"define internal {y.type} @{name}({params}) noinline cold {{"
        return {**inner.helpers, name: define_function(head, inner.body, f"{y.type} {y.name}")}, inner.declared

    def each(self, name: str, *xs: Value) -> Value:
        """Return a function of the C library applied to each lane."""
        code, x = self.code, xs[0]
        function = name + ("f" if x.dtype == "f4" else "")
        one = Value(code, "", x.dtype, 1).type
        if x.width == 1:
            return x.like(code.call(function, one, [(one, a.name) for a in xs]))
        result = "poison"
        for i in range(x.width):
            lanes = [(one, code.op(f"extractelement {a.type} {a.name}, i32 {i}")) for a in xs]
            y = code.call(function, one, lanes)
            result = code.op(f"insertelement {x.type} {result}, {one} {y}, i32 {i}")
        return x.like(result)

    def by_library(self, name: str) -> Callable[..., Value]:
        """Return the slow path for ``rarely`` that calls a function of the C library."""
        return lambda b, *xs: b.each(name, *xs)

    def is_not_normal(self, x: Value, bound: float = math.inf) -> Value:
        """Return whether x is not a positive normal number below a bound, by one comparison of integers."""
        least, top = (int(np.array(n, x.dtype).view(f"i{x.dtype[1]}")) for n in (LEAST[x.dtype], bound))
        bottom = -(1 << (x.bits - 1))
        return (x.as_bits() + (-least - bottom)).compare("oge", bottom + top - least)
