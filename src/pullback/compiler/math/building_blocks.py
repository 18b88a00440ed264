"""What the functions on lanes are made of: polynomials, choices, and ways for what is rare.

Here and in the functions nothing is fused that is not written as ``fma``: their precision is counted in roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.compiler.builder import Code, Value
from pullback.errors import CompileError

__all__ = ["BITS_OF_ONE", "LEAST", "LN2", "MANTISSA", "ROUND", "Pieces"]

MANTISSA = {"f4": 23, "f8": 52}
LEAST = {"f4": 2.0**-126, "f8": 2.0**-1022}  # of full precision
ROUND = {"f4": 1.5 * 2.0**23, "f8": 1.5 * 2.0**52}  # added and taken away again, these leave a whole number
BITS_OF_ONE = {"f4": 0x3F800000, "f8": 0x3FF0000000000000}
LN2 = {"f4": (0.693359375, -2.12194440e-4), "f8": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}

Written = tuple[dict[str, str], set[str]]
_written: dict[str, Written] = {}  # what is rare is the same text in every program


class Pieces:
    """The ground the functions stand on, for vectors of ``width`` lanes."""

    def __init__(self, code: Code, width: int) -> None:
        self.code, self.width = code, width
        self.compared: dict[str, str] = {}  # the dtype of what was compared, by the name of the result

    # ---- arguments

    def _real(self, x: Value) -> Value:
        if x.kind != "f":
            raise CompileError("there is machine code of this function for floats only.")
        return x

    def _both(self, x: Any, y: Any) -> tuple[Value, Value]:
        return (x.lift(x), x.lift(y)) if isinstance(x, Value) else (y.lift(x), y)

    def _reals(self, x: Any, y: Any) -> tuple[Value, Value]:
        x, y = self._both(x, y)
        return self._real(x), self._real(y)

    def _intrinsic(self, name: str, *xs: Value) -> Value:
        x = xs[0]
        return x.like(self.code.call(f"llvm.{name}.{x.suffix}", x.type, [(a.type, a.name) for a in xs]))

    # ---- arithmetic

    def fma(self, x: Value, y: Any, z: Any) -> Value:
        """x * y + z, rounded once."""
        return self._intrinsic("fma", x, x.lift(y), x.lift(z))

    def polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """By Horner's rule: the shortest way."""
        total = x.lift(coefficients[0])
        for c in coefficients[1:]:
            total = self.fma(total, x, c)
        return total

    def wide_polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """By pairs of pairs: more work, of which much is done at the same time."""
        level = [*reversed(coefficients)]
        terms: list[Value] = [
            self.fma(x.lift(level[i + 1]), x, level[i]) if i + 1 < len(level) else x.lift(level[i])
            for i in range(0, len(level), 2)
        ]
        power = x
        with self.code.exactly():
            while len(terms) > 1:
                power = power * power
                terms = [
                    self.fma(terms[i + 1], power, terms[i]) if i + 1 < len(terms) else terms[i]
                    for i in range(0, len(terms), 2)
                ]
        return terms[0]

    def fitted(self, coefficients: Sequence[float], x: Value) -> Value:
        """A polynomial by the way that suits its length."""
        return (self.polynomial if len(coefficients) < 6 else self.wide_polynomial)(coefficients, x)

    def nearest(self, x: Value, scale: float) -> tuple[Value, Value]:
        """The whole number nearest to x * scale, as a float and as the bits of a float that end in it."""
        shifted = self.fma(x, scale, ROUND[x.dtype])
        return shifted - ROUND[x.dtype], shifted.as_bits()

    def power_of_two(self, bits: Value, halved: int = 0) -> Value:
        """2 to the number these bits end in, halved so many times."""
        dtype = f"f{bits.dtype[1]}"
        return ((bits << MANTISSA[dtype]) + (BITS_OF_ONE[dtype] - (halved << MANTISSA[dtype]))).as_floats()

    def absolute(self, x: Value) -> Value:
        if x.kind == "f":
            return self._intrinsic("fabs", x)
        if x.kind in "ub":
            return x
        self.code.declared.add(f"declare {x.type} @llvm.abs.{x.suffix}({x.type}, i1)")
        return x.like(self.code.op(f"call {x.type} @llvm.abs.{x.suffix}({x.type} {x.name}, i1 false)"))

    def copysign(self, x: Any, y: Any) -> Value:
        return self._intrinsic("copysign", *self._reals(x, y))

    def sqrt(self, x: Value) -> Value:
        return self._intrinsic("sqrt", self._real(x))

    def rint(self, x: Value) -> Value:
        return self._intrinsic("rint", self._real(x))

    def at_most(self, x: Value, bound: float) -> Value:
        """The smaller of both; a NaN stays one."""
        return self.select(x.compare("ogt", bound), bound, x)

    def at_least(self, x: Value, bound: float) -> Value:
        return self.select(x.compare("olt", bound), bound, x)

    def isnan(self, x: Value) -> Value:
        return x.compare("uno" if x.kind == "f" else "une", x)

    def once(self, name: str, make: Callable[[Value], Any], x: Value) -> Any:
        """What was made of the same lanes before in this block, or is made now."""
        key = name, x.name, x.dtype
        if key not in self.code.shared:
            made = make(x)
            self.code.shared[key] = made
        return self.code.shared[key]

    # ---- choices

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        if not isinstance(x, Value) and not isinstance(y, Value):
            x = condition.like("", self.compared.get(condition.name, "f8")).lift(x)
        a, b = self._both(x, y)
        condition = condition.cast("b1")
        return a.like(self.code.op(f"select {condition.type} {condition.name}, {a.type} {a.name}, {b.type} {b.name}"))

    def rarely(self, rare: Value, y: Value, name: str, slow: Callable[..., Value], *xs: Value) -> Value:
        """``y``, and in lanes that are rare what ``slow`` makes of the arguments, in a function of its own."""
        code = self.code
        any_ = rare.name
        if rare.width > 1:
            any_ = code.call(f"llvm.vector.reduce.or.v{rare.width}i1", "i1", [(rare.type, rare.name)])
        here, cold, on = code.block("usual"), code.block("rare"), code.block("on")
        shared = dict(code.shared)
        code.jump(here)
        code.begin(here)
        code.branch(any_, cold, on, unlikely=True)
        code.begin(cold)
        other = self.select(rare, self._called(name, slow, xs), y)  # no lane depends on its neighbours
        code.jump(on)
        code.begin(on)
        code.shared.update(shared)  # it was made on the way to here
        return y.like(code.op(f"phi {y.type} [{y.name}, %{here}], [{other.name}, %{cold}]"))

    def _called(self, name: str, body: Callable[..., Value], xs: Sequence[Value]) -> Value:
        """A call of a function with this body; it is written once."""
        code, x = self.code, xs[0]
        full = f"{name}_{x.suffix}"
        code.add_helper(full, lambda: self._written_once(full, body, xs))
        args = ", ".join(f"{a.type} {a.name}" for a in xs)
        return x.like(code.op(f"call {x.type} @{full}({args})"))

    def _written_once(self, name: str, body: Callable[..., Value], xs: Sequence[Value]) -> Written:
        if name not in _written:
            _written[name] = self._function(name, body, xs)
        return _written[name]

    def _function(self, name: str, body: Callable[..., Value], xs: Sequence[Value]) -> Written:
        """Its text and that of those it calls, and what they declare."""
        inner = Code()
        inner.exact_depth = 1
        y = body(type(self)(inner, xs[0].width), *(Value(inner, f"%x{i}", a.dtype, a.width) for i, a in enumerate(xs)))
        params = ", ".join(f"{a.type} %x{i}" for i, a in enumerate(xs))
        head = f"define internal {y.type} @{name}({params}) noinline cold {{\nentry:"
        text = "\n".join([head, *inner.lines, f"ret {y.type} {y.name}", "}"])
        return {**inner.helpers, name: text}, inner.declared

    def each(self, name: str, *xs: Value) -> Value:
        """The C library's function, lane by lane."""
        code, x = self.code, xs[0]
        function = name + ("f" if x.dtype == "f4" else "")
        one = Value(code, "", x.dtype, 1).type
        if x.width == 1:
            return x.like(code.call(function, one, [(one, a.name) for a in xs]))
        made = "poison"
        for i in range(x.width):
            lanes = [(one, code.op(f"extractelement {a.type} {a.name}, i32 {i}")) for a in xs]
            y = code.call(function, one, lanes)
            made = code.op(f"insertelement {x.type} {made}, {one} {y}, i32 {i}")
        return x.like(made)

    def by_library(self, name: str) -> Callable[..., Value]:
        """What ``rarely`` may call for a function that the C library has."""
        return lambda s, *xs: s.each(name, *xs)

    def not_normal(self, x: Value) -> Value:
        """Whether x is no positive, finite number of full precision: one comparison of integers."""
        least, top = (0x00800000, 0x7F000000) if x.dtype == "f4" else (0x0010000000000000, 0x7FE0000000000000)
        bottom = -(1 << (x.bits - 1))
        return (x.as_bits() + (-least - bottom)).compare("oge", bottom + top)
