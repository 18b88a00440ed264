"""Fourier transforms: a lane for each, and passes from one half of the scratch memory to the other.

The transforms are Stockham's: every pass reads and writes in an order that leaves the result sorted.  Two transforms of
real numbers are one of complex numbers, with one of them as the real and the other as the imaginary parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import cos, pi, sin
from typing import NamedTuple

from pullback.compiler.builder import FLOATS, Code, Value, code_of, constant, splat, vector
from pullback.compiler.codegen.kernel_code import KernelCode, make_function
from pullback.compiler.ir.fourier import Fourier, factorize
from pullback.compiler.schedule.fourier import FourierPlan

__all__ = ["emit_fourier"]

Pair = tuple[Value, Value]  # real and imaginary parts


def emit_fourier(plan: FourierPlan) -> KernelCode:
    """Return the kernel of a transform: its arrays are the parts of the input, the twiddle factors, and the result."""
    return FourierKernel(plan).write()


class Pass(NamedTuple):
    """One pass over all numbers: butterflies with so many sets of factors, each at ``stride`` places."""

    radix: int
    factors: int
    stride: int
    source: int  # which half of the scratch memory it reads


class FourierKernel:
    """Emits a kernel whose rows are blocks of transforms."""

    def __init__(self, plan: FourierPlan) -> None:
        self.plan, self.code = plan, Code()
        self.data: Fourier = plan.node.data
        x = plan.node.args[0]
        self.dtype, self.size = code_of(x.dtype), x.dtype.itemsize
        self.one, self.width = FLOATS[self.dtype], plan.width
        self.many = vector(self.one, self.width)
        self.given = x.shape[self.data.axis]
        self.half = plan.buffer  # elements of one half of the scratch memory

    def write(self) -> KernelCode:
        """Return the kernel."""
        code, data, plan = self.code, self.data, self.plan
        with code.loop("%lo", "%hi") as u:
            blocks = [self._find_rows(u, i) for i in range(2 if plan.is_paired else 1)]
            if data.is_real:
                self._load_bins(blocks)
            elif plan.is_paired:
                for i, rows in enumerate(blocks):
                    self._load(rows, "%x0", 0, i, self.data.n)
            else:
                for i, x in enumerate(self._swap(["%x0", "%x1"])):
                    self._load(blocks[0], x, 0, i, self.data.n)
            last = self._transform()
            self._store_all(blocks, last)
        arrays = [f"ptr noalias %x{i}" for i in range(len(plan.node.args) - 1)]
        params = *arrays, "ptr noalias %w", "ptr noalias %z", "i64 %lo", "i64 %hi", "ptr %partial"
        function = make_function(code, *params, "ptr noalias %scratch")
        return KernelCode(function, plan.work, frozenset(code.declared))

    def _swap(self, parts: list[str]) -> list[str]:
        """Return the parts, exchanged for an inverse transform: so it is the same as the other."""
        return parts[::-1] if self.data.inverse else parts

    # ---- where the transforms of a block are

    def _find_rows(self, u: str, part: int) -> list[str]:
        """Return the numbers of the transforms in the lanes; of neighbours only the first, as (outer, inner)."""
        code, plan, width = self.code, self.plan, self.width
        if plan.is_contiguous:
            blocks = -(-plan.inner // (width * (1 + plan.is_paired)))
            o, b = code.op(f"udiv i64 {u}, {blocks}"), code.op(f"urem i64 {u}, {blocks}")
            at = code.add(code.times(b, width * (1 + plan.is_paired)), str(part * width))
            return [o, self._least(at, plan.inner - width)]
        first = code.add(code.times(u, width * (1 + plan.is_paired)), str(part * width))
        # Beyond the last transform it is the last one again.
        return [self._least(code.add(first, str(i)), plan.outer * plan.inner - 1) for i in range(width)]

    def _least(self, a: str, most: int) -> str:
        return self.code.call("llvm.smin.i64", "i64", [("i64", a), ("i64", str(most))])

    def _find_starts(self, rows: list[str], base: str, length: int) -> list[str]:
        """Return the addresses of the first elements of transforms in an array that is so long along the axis."""
        code, inner = self.code, self.plan.inner
        if self.plan.is_contiguous:
            o, i = rows
            return [self._at(base, code.add(code.times(o, length * inner), i))]
        places = []
        for row in rows:
            if inner == 1:
                places.append(code.times(row, length))
            else:
                o, i = code.op(f"udiv i64 {row}, {inner}"), code.op(f"urem i64 {row}, {inner}")
                places.append(code.add(code.times(o, length * inner), i))
        return [self._at(base, place) for place in places]

    # ---- from and to arrays

    def _load(self, rows: list[str], base: str, buffer: int, part: int, wanted: int, first: int = 0) -> None:
        """Copy one part of the input into scratch memory, from place ``first`` on, filled up with zeros."""
        code, plan = self.code, self.plan
        starts, count = self._find_starts(rows, base, self.given), min(self.given, wanted)
        put = partial(self._put, buffer, part)
        if plan.is_contiguous:
            with code.loop("0", count) as k:
                put(code.add(k, str(first)), self._read(self._at(starts[0], code.times(k, plan.inner))))
        else:
            if plan.inner == 1 and count >= self.width > 1:
                with self._loop_over_tiles(count) as k:
                    loaded = [self._read(self._at(start, k)) for start in starts]
                    for j, v in enumerate(self._transpose(loaded)):
                        put(code.add(code.add(k, str(j)), str(first)), v)
            else:
                with code.loop("0", count) as k:
                    lanes = [code.op(f"load {self.one}, ptr {self._at(s, code.times(k, plan.inner))}") for s in starts]
                    put(code.add(k, str(first)), self._collect(lanes))
        if count < wanted:
            with code.loop(str(count), wanted) as k:
                put(code.add(k, str(first)), constant(code, 0.0, self.dtype, self.width))

    def _store(self, rows: list[str], base: str, buffer: int, part: int, first: int = 0) -> None:
        """Copy one part of the result from scratch memory."""
        code, plan, count = self.code, self.plan, self.data.out
        starts, get = self._find_starts(rows, base, count), partial(self._get_scaled, buffer, part)
        if plan.is_contiguous:
            with code.loop("0", count) as k:
                self._write(get(code.add(k, str(first))), self._at(starts[0], code.times(k, plan.inner)))
        elif plan.inner == 1 and count >= self.width > 1:
            with self._loop_over_tiles(count) as k:
                columns = [get(code.add(code.add(k, str(j)), str(first))) for j in range(self.width)]
                for start, v in zip(starts, self._transpose(columns), strict=True):
                    self._write(v, self._at(start, k))
        else:
            with code.loop("0", count) as k:
                v = get(code.add(k, str(first)))
                for i, start in enumerate(starts):
                    lane = v.name if self.width == 1 else code.op(f"extractelement {self.many} {v.name}, i64 {i}")
                    code.line(f"store {self.one} {lane}, ptr {self._at(start, code.times(k, plan.inner))}")

    @contextmanager
    def _loop_over_tiles(self, count: int) -> Iterator[str]:
        """Emit a loop over tiles of columns, of which the last may overlap the one before."""
        with self.code.loop("0", -(-count // self.width)) as t:
            yield self._least(self.code.times(t, self.width), count - self.width)

    def _transpose(self, rows: list[Value]) -> list[Value]:
        """Return the columns of a square of vectors."""
        rows, step = [*rows], 1
        while step < self.width:
            for i in range(self.width):
                if not i & step:
                    a, b = rows[i], rows[i + step]
                    low = [j if not j & step else self.width + j - step for j in range(self.width)]
                    high = [j + step if not j & step else self.width + j for j in range(self.width)]
                    rows[i], rows[i + step] = self._shuffle(a, b, low), self._shuffle(a, b, high)
            step *= 2
        return rows

    def _shuffle(self, a: Value, b: Value, lanes: list[int]) -> Value:
        order = ", ".join(f"i32 {i}" for i in lanes)
        return a.like(
            self.code.op(f"shufflevector {a.type} {a.name}, {b.type} {b.name}, <{self.width} x i32> <{order}>")
        )

    def _collect(self, lanes: list[str]) -> Value:
        made = lanes[0]
        if self.width > 1:
            made = "poison"
            for i, lane in enumerate(lanes):
                made = self.code.op(f"insertelement {self.many} {made}, {self.one} {lane}, i64 {i}")
        return self._value(made)

    # ---- transforms of real numbers, two at a time

    def _load_bins(self, blocks: list[list[str]]) -> None:
        """Load the bins of two real results, and put the bins of the complex transform together: a + ib."""
        code, n = self.code, self.data.n
        bins = n // 2 + 1
        for i, rows in enumerate(blocks):
            for part in range(2):
                self._load(rows, f"%x{part}", 1, part, bins, i * bins)

        def combine(k: str, mirror: str | None) -> None:
            a, b = ([self._get(1, part, code.add(k, str(i * bins))) for part in range(2)] for i in range(2))
            for place, sign in ((k, 1), (mirror, -1)):
                if place is not None:  # a mirror image is conjugated
                    re = a[0] - b[1] if sign > 0 else a[0] + b[1]
                    im = a[1] + b[0] if sign > 0 else b[0] - a[1]
                    for part, v in zip(self._swap_order(), (re, im), strict=True):
                        self._put(0, part, place, v)

        for alone in (0, *([n // 2] if n % 2 == 0 else [])):  # bins whose imaginary parts do not count
            for part, i in zip(self._swap_order(), (0, 1), strict=True):
                self._put(0, part, str(alone), self._get(1, 0, str(alone + i * bins)))
        if (n + 1) // 2 > 1:
            with code.loop("1", (n + 1) // 2) as k:
                combine(k, code.op(f"sub i64 {n}, {k}"))

    def _swap_order(self) -> list[int]:
        """Return where real and imaginary parts of the input are put, exchanged for an inverse transform."""
        return [1, 0] if self.data.inverse else [0, 1]

    def _separate(self, buffer: int) -> None:
        """Take the bins of two real inputs apart: half the sum with, and difference from, the mirror image.

        The inverse transform of real numbers is the conjugate of the other one.
        """
        code, data = self.code, self.data
        sign = -0.5 if data.inverse else 0.5

        def separate(k: str, mirror: str) -> None:
            z, m = ([self._get(buffer, part, at) for part in range(2)] for at in (k, mirror))
            first = (z[0] + m[0]) * 0.5, (z[1] - m[1]) * sign
            second = (z[1] + m[1]) * 0.5, (m[0] - z[0]) * sign
            for i, pair in enumerate((first, second)):
                for part, v in enumerate(pair):
                    self._put(1 - buffer, part, code.add(k, str(i * data.out)), v)

        separate("0", "0")
        if data.out > 1:
            with code.loop("1", data.out) as k:
                separate(k, code.op(f"sub i64 {data.n}, {k}"))

    def _store_all(self, blocks: list[list[str]], buffer: int) -> None:
        data, plan = self.data, self.plan
        results = [self._at("%z", str(part * plan.node.size // 2)) for part in range(2)]
        if data.is_real:
            for rows, part in zip(blocks, self._swap_order(), strict=True):
                self._store(rows, "%z", buffer, part)
        elif plan.is_paired:
            self._separate(buffer)
            for i, rows in enumerate(blocks):
                for part, z in enumerate(results):
                    self._store(rows, z, 1 - buffer, part, i * data.out)
        else:
            for part, z in enumerate(self._swap(results)):
                self._store(blocks[0], z, buffer, part)

    # ---- the passes

    def _transform(self) -> int:
        """Emit all passes, and return which half of the scratch memory has the result."""
        code, source, left, stride, table = self.code, 0, self.data.n, 1, 0
        for r in factorize(self.data.n):
            step = Pass(r, left // r, stride, source)
            if step.factors == 1:
                self._emit_places(step, "0", [])
            else:
                with code.loop("0", step.factors) as p:
                    row = self._at("%w", code.add(code.times(p, 2 * (r - 1)), str(table)))
                    numbers = [code.op(f"load {self.one}, ptr {self._at(row, str(i))}") for i in range(2 * (r - 1))]
                    spread = [self._value(splat(code, x, self.one, self.width)) for x in numbers]
                    self._emit_places(step, p, [*zip(spread[::2], spread[1::2], strict=True)])
                table += step.factors * 2 * (r - 1)
            left, stride, source = left // r, stride * r, 1 - source
        return source

    def _emit_places(self, step: Pass, p: str, twiddles: list[Pair]) -> None:
        """Emit the butterflies that have the same twiddle factors."""
        if step.stride == 1:
            self._emit_butterfly(step, p, "0", twiddles)
        else:
            with self.code.loop("0", step.stride) as q:
                self._emit_butterfly(step, p, q, twiddles)

    def _emit_butterfly(self, step: Pass, p: str, q: str, twiddles: list[Pair]) -> None:
        code, source = self.code, step.source
        start = code.add(code.times(p, step.stride), q)
        places = [code.add(start, str(k * step.factors * step.stride)) for k in range(step.radix)]
        legs: list[Pair] = [(self._get(source, 0, at), self._get(source, 1, at)) for at in places]
        to = code.add(code.times(p, step.radix * step.stride), q)
        for k, leg in enumerate(emit_butterfly(legs)):
            turned = multiply(leg, twiddles[k - 1]) if k and twiddles else leg
            for part, v in enumerate(turned):
                self._put(1 - source, part, code.add(to, str(k * step.stride)), v)

    # ---- memory

    def _value(self, name: str) -> Value:
        return Value(self.code, name, self.dtype, self.width)

    def _at(self, base: str, place: str) -> str:
        return base if place == "0" else self.code.op(f"getelementptr {self.one}, ptr {base}, i64 {place}")

    def _place(self, buffer: int, part: int, k: str) -> str:
        """Return the address of a vector in scratch memory."""
        place = self.code.add(self.code.times(k, 2 * self.width), str(buffer * self.half + part * self.width))
        return self._at("%scratch", place)

    def _get(self, buffer: int, part: int, k: str) -> Value:
        return self._value(self.code.op(f"load {self.many}, ptr {self._place(buffer, part, k)}"))

    def _get_scaled(self, buffer: int, part: int, k: str) -> Value:
        v = self._get(buffer, part, k)
        return v if self.data.factor == 1.0 else v * self.data.factor

    def _put(self, buffer: int, part: int, k: str, v: Value) -> None:
        self.code.line(f"store {self.many} {v.name}, ptr {self._place(buffer, part, k)}")

    def _read(self, pointer: str) -> Value:
        return self._value(self.code.op(f"load {self.many}, ptr {pointer}, align {self.size}"))

    def _write(self, v: Value, pointer: str) -> None:
        self.code.line(f"store {self.many} {v.name}, ptr {pointer}, align {self.size}")


def multiply(x: Pair, y: Pair) -> Pair:
    """Return the product of two complex numbers."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def emit_butterfly(legs: list[Pair]) -> list[Pair]:
    """Return the transform of a few numbers."""
    if len(legs) == 2:
        (a, b), (c, d) = legs
        return [(a + c, b + d), (a - c, b - d)]
    if len(legs) == 4:
        (even, odd), (other, turned) = emit_butterfly(legs[::2]), emit_butterfly(legs[1::2])
        turned = turned[1], -turned[0]  # times -i
        (z0, z2), (z1, z3) = emit_butterfly([even, other]), emit_butterfly([odd, turned])
        return [z0, z1, z2, z3]
    return _emit_odd_butterfly(legs)


def _emit_odd_butterfly(legs: list[Pair]) -> list[Pair]:
    """Return the transform of an odd number of numbers: pairs of them have the same cosines."""
    r = len(legs)
    half = range(1, (r + 1) // 2)
    sums = {j: (legs[j][0] + legs[r - j][0], legs[j][1] + legs[r - j][1]) for j in half}
    differences = {j: (legs[j][0] - legs[r - j][0], legs[j][1] - legs[r - j][1]) for j in half}
    made: dict[int, Pair] = {}
    for k in half:
        (re, im), turn_re, turn_im = legs[0], legs[0][0].lift(0.0), legs[0][0].lift(0.0)
        for j in half:
            c, s = cos(2 * pi * (j * k % r) / r), sin(2 * pi * (j * k % r) / r)
            re, im = re + sums[j][0] * c, im + sums[j][1] * c
            turn_re, turn_im = turn_re + differences[j][1] * s, turn_im + differences[j][0] * s
        made[k], made[r - k] = (re + turn_re, im - turn_im), (re - turn_re, im + turn_im)
    total_re, total_im = legs[0]
    for j in half:
        total_re, total_im = total_re + sums[j][0], total_im + sums[j][1]
    made[0] = total_re, total_im
    return [made[k] for k in range(r)]
