"""Kernels of Fourier transforms: one transform per lane, in passes from one half of scratch memory to the other.

The algorithm is Stockham's, whose passes need no bit reversal.  A transform of an even count of real numbers is made of
one of half as many complex numbers, whose parts are every other number: as they are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import cos, pi, sin

from pullback.compiler.builder import (
    FLOATS,
    Code,
    Helpers,
    Value,
    code_of,
    constant,
    define_function,
    join_lanes,
    literal,
    slice_lanes,
    splat,
    transpose_square,
    vector,
)
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.ir.fourier import Fourier, factorize, is_halved
from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.fourier import FourierPlan

BLOCK_BYTES = 32  # of a row that is transposed with other rows
LANES = "ptr noalias %from, i64 %apart, ptr noalias %to, i64 %step, i64 %count"
ROWS = "ptr noalias %rows, i64 %first, i64 %last, i64 %length, ptr noalias %scratch, i64 %step, i64 %count"

Pair = tuple[Value, Value]  # real and imaginary parts


def emit_fourier(plan: FourierPlan) -> KernelCode:
    """Return the kernel of transforms; its arrays are the parts of the input, the factors and the parts of the result.

    Parts are those of a forward transform, in the order of ``order_parts``.
    """
    return FourierKernel(plan).write()


def order_parts(n: Node) -> tuple[int, int]:
    """Return which parts real and imaginary ones are to the kernel; exchanged ones make it an inverse transform."""
    return (1, 0) if n.data.inverse and not is_halved(n.data, len(n.args) - 1) else (0, 1)


class PassWriter:
    """Emits the function of one pass over all numbers, which transforms of any length share.

    Its butterflies have ``%factors`` sets of twiddle factors, each for ``%stride`` butterflies; those of the last pass
    have none.
    """

    def __init__(self, radix: int, has_factors: bool, dtype: str, width: int) -> None:
        self.radix, self.has_factors, self.dtype, self.width = radix, has_factors, dtype, width
        self.code, self.one = Code(), FLOATS[dtype]
        self.many = vector(self.one, width)

    def emit(self, code: Code) -> str:
        """Add the function to the helpers of the caller, and return its name."""
        name = f"fourier_{self.one}x{self.width}_{self.radix}{'' if self.has_factors else '_last'}"
        code.add_helper(name, lambda: self._write(name))
        return name

    def _write(self, name: str) -> Helpers:
        code, count = self.code, 2 * (self.radix - 1)
        apart = code.op("mul i64 %factors, %stride")
        if self.has_factors:
            with code.loop("0", "%factors") as p:
                row = code.at(self.one, "%w", code.times(p, count))
                numbers = [code.load(self.one, row, i) for i in range(count)]
                spread = [self._value(splat(code, x, self.one, self.width)) for x in numbers]
                self._emit_places(apart, p, [*zip(spread[::2], spread[1::2], strict=True)])
        else:
            self._emit_places(apart, "0", [])
        params = "ptr noalias %from, ptr noalias %to, ptr noalias %w, i64 %factors, i64 %stride"
        head = f"define internal void @{name}({params}) noinline {{"
        return {name: define_function(head, code.body)}, code.declared

    def _emit_places(self, apart: str, p: str, twiddles: list[Pair]) -> None:
        """Emit the butterflies that have the same twiddle factors."""
        code = self.code
        start, step = code.op(f"mul i64 {p}, %stride"), code.times(apart, 2 * self.width)
        sources = [code.at(self.one, "%from", code.times(start, 2 * self.width))]
        targets = [code.at(self.one, "%to", code.times(start, 2 * self.width * self.radix))]
        onward = code.times("%stride", 2 * self.width)
        for _ in range(1, self.radix):  # computed before the loop
            sources.append(code.at(self.one, sources[-1], step))
            targets.append(code.at(self.one, targets[-1], onward))
        with code.loop("0", "%stride") as q:
            at = code.times(q, 2 * self.width)
            legs = [(self._get(source, at, 0), self._get(source, at, 1)) for source in sources]
            for k, leg in enumerate(emit_butterfly(legs)):
                turned = multiply(leg, twiddles[k - 1]) if k and twiddles else leg
                for part, v in enumerate(turned):
                    code.store(self.many, v.name, self._place(targets[k], at, part))

    def _get(self, base: str, at: str, part: int) -> Value:
        return self._value(self.code.load(self.many, self._place(base, at, part)))

    def _place(self, base: str, at: str, part: int) -> str:
        return self.code.at(self.one, base, self.code.add(at, str(part * self.width)))

    def _value(self, name: str) -> Value:
        return Value(self.code, name, self.dtype, self.width)


class CopyWriter:
    """Emits functions that copy numbers between arrays and scratch memory, where each transform is in one lane.

    In scratch memory the vectors of successive numbers are ``%step`` elements apart.
    """

    def __init__(self, dtype: str, width: int) -> None:
        self.dtype, self.width, self.code, self.one = dtype, width, Code(), FLOATS[dtype]
        self.many, self.size = vector(self.one, width), int(dtype[1])
        self.block = min(BLOCK_BYTES // self.size, width)  # the numbers of a row that are copied at once

    def emit_lanes(self, code: Code) -> str:
        """Return the name of the function that copies vectors, multiplied by a number, to other distances."""
        return self._emit(code, "lanes", self._write_lanes)

    def emit_load(self, code: Code) -> str:
        """Return the name of the function that copies ``%count`` columns of the rows to scratch memory."""
        return self._emit(code, "in", self._write_load)

    def emit_store(self, code: Code) -> str:
        """Return the name of the function that copies scratch memory, multiplied by a number, to the rows."""
        return self._emit(code, "out", self._write_store)

    def _emit(self, code: Code, purpose: str, write: Callable[[str], Helpers]) -> str:
        name = f"fourier_{purpose}_{self.one}x{self.width}"
        code.add_helper(name, lambda: write(name))
        return name

    def _write_lanes(self, name: str) -> Helpers:
        code, factor = self.code, self._splat_factor()
        with code.loop("0", "%count") as k:
            v = self._read(self.many, code.at(self.one, "%from", code.op(f"mul i64 {k}, %apart")))
            self._write(v * factor, code.at(self.one, "%to", code.op(f"mul i64 {k}, %step")))
        return self._make(name, f"{LANES}, {self.one} %factor")

    def _write_load(self, name: str) -> Helpers:
        starts, steps = self._find_starts(), self._list_steps()
        part = vector(self.one, self.block)
        with self._loop_over_blocks() as k:
            pieces = [self._read(part, self.code.at(self.one, start, k), self.block) for start in starts]
            rows = [join_lanes(pieces[i :: self.block]) for i in range(self.block)]
            for v, place in zip(transpose_square(rows), self._list_places(k, steps), strict=True):
                self._write(v, place)
        return self._make(name, ROWS)

    def _write_store(self, name: str) -> Helpers:
        starts, steps, factor = self._find_starts(), self._list_steps(), self._splat_factor()
        with self._loop_over_blocks() as k:
            columns = [self._read(self.many, place) * factor for place in self._list_places(k, steps)]
            rows = transpose_square(columns)
            for i, start in enumerate(starts):
                number, row = divmod(i, self.block)
                self._write(slice_lanes(rows[row], number * self.block, self.block), self.code.at(self.one, start, k))
        return self._make(name, f"{ROWS}, {self.one} %factor")

    def _make(self, name: str, params: str) -> Helpers:
        head = f"define internal void @{name}({params}) noinline {{"
        return {name: define_function(head, self.code.body)}, self.code.declared

    def _find_starts(self) -> list[str]:
        """Return the addresses of the lanes' rows; lanes beyond the last row have the address of the last one."""
        code = self.code
        numbers = [code.add("%first", str(i)) for i in range(self.width)]
        rows = [code.minimum(row, "%last") for row in numbers]
        return [code.at(self.one, "%rows", code.op(f"mul i64 {row}, %length")) for row in rows]

    def _list_steps(self) -> list[str]:
        """Return the first multiples of the step: computed before the loop, they are offsets of addresses in it."""
        return ["0", "%step", *(self.code.op(f"mul i64 %step, {i}") for i in (2, 3, 4))]

    def _list_places(self, k: str, steps: list[str]) -> list[str]:
        """Return the addresses of the columns of a block in scratch memory."""
        places = [self.code.at(self.one, "%scratch", self.code.op(f"mul i64 {k}, %step"))]
        for i in range(1, self.block):
            places.append(self.code.at(self.one, places[(i - 1) // 4 * 4], steps[(i - 1) % 4 + 1]))
        return places

    @contextmanager
    def _loop_over_blocks(self) -> Iterator[str]:
        """Emit a loop over blocks of columns; the last block may overlap the one before."""
        code = self.code
        over = code.op(f"add i64 %count, {self.block - 1}")
        blocks, most = code.op(f"udiv i64 {over}, {self.block}"), code.op(f"sub i64 %count, {self.block}")
        with code.loop("0", blocks) as t:
            at = code.times(t, self.block)
            yield code.minimum(at, most)

    def _splat_factor(self) -> Value:
        return Value(self.code, splat(self.code, "%factor", self.one, self.width), self.dtype, self.width)

    def _read(self, type_: str, pointer: str, width: int = 0) -> Value:
        loaded = self.code.op(f"load {type_}, ptr {pointer}, align {self.size}")
        return Value(self.code, loaded, self.dtype, width or self.width)

    def _write(self, v: Value, pointer: str) -> None:
        self.code.line(f"store {v.type} {v.name}, ptr {pointer}, align {self.size}")


class FourierKernel:
    """Emits the kernel of a node; a row of its work is a block of transforms, one per lane."""

    def __init__(self, plan: FourierPlan) -> None:
        self.plan, self.code = plan, Code()
        self.data: Fourier = plan.node.data
        x = plan.node.args[0]
        self.dtype, self.size = code_of(x.dtype), x.dtype.itemsize
        self.one, self.width = FLOATS[self.dtype], plan.width
        self.many = vector(self.one, self.width)
        self.given = x.shape[self.data.axis]
        self.is_halved = is_halved(self.data, len(plan.node.args) - 1)
        self.half = plan.buffer  # elements of one half of the scratch memory
        self.order = order_parts(plan.node)
        self.inputs = sorted(self.order[: len(plan.node.args) - 1])  # the parts that the input has

    def write(self) -> KernelCode:
        """Return the kernel."""
        code = self.code
        factor = code.load(self.one, "%w")
        with code.loop("%lo", "%hi") as u:
            rows = self._find_rows(u)
            self._load_all(rows)
            self._store_all(rows, self._transform(), factor)
        results = self.order[:1] if self.data.is_real else (0, 1)
        arrays = *(f"%x{part}" for part in self.inputs), "%w", *(f"%z{part}" for part in results)
        return make_kernel(code, *(f"ptr noalias {x}" for x in arrays), *RANGE)

    def _load_all(self, rows: list[str]) -> None:
        """Load the complex numbers to transform."""
        data = self.data
        if self.is_halved and not data.is_real:
            self._load(rows, "%x0", 0, data.n, step=1)
            return
        for part in range(2):
            x = f"%x{part}" if part in self.inputs else None
            self._load(rows, x, part, data.n // 2 + 1 if data.is_real else data.n)
        if self.is_halved:
            self._pack_bins()
        elif data.is_real:
            self._mirror_bins()

    def _store_all(self, rows: list[str], buffer: int, factor: str) -> None:
        """Store the result, from this half of scratch memory."""
        if self.data.is_real:
            part = self.order[0]
            self._store(rows, f"%z{part}", buffer, part, factor, step=1 if self.is_halved else 2)
            return
        if self.is_halved:
            self._unpack_bins(buffer)
        for part in range(2):
            self._store(rows, f"%z{part}", buffer, part, factor)

    # ---- where the transforms of a block are

    def _find_rows(self, u: str) -> list[str]:
        """Return the number of the transform in the first lane; where lanes are neighbours, as (outer, inner) index."""
        code, plan, width = self.code, self.plan, self.width
        if plan.is_contiguous:
            blocks = -(-plan.inner // width)
            o, b = code.op(f"udiv i64 {u}, {blocks}"), code.op(f"urem i64 {u}, {blocks}")
            return [o, self.code.minimum(code.times(b, width), plan.inner - width)]
        return [code.times(u, width)]

    def _find_starts(self, rows: list[str], base: str, length: int) -> list[str]:
        """Return the addresses of the first elements of transforms, in an array of this length along the axis."""
        code, inner = self.code, self.plan.inner
        if self.plan.is_contiguous:
            o, i = rows
            return [code.at(self.one, base, code.add(code.times(o, length * inner), i))]
        places = []
        last = self.plan.outer * inner - 1  # lanes beyond the last transform compute that one again
        for row in [self.code.minimum(code.add(rows[0], str(i)), last) for i in range(self.width)]:
            if inner == 1:
                places.append(code.times(row, length))
            else:
                o, i = code.op(f"udiv i64 {row}, {inner}"), code.op(f"urem i64 {row}, {inner}")
                places.append(code.add(code.times(o, length * inner), i))
        return [code.at(self.one, base, place) for place in places]

    # ---- from and to arrays

    def _load(self, rows: list[str], base: str | None, part: int, wanted: int, step: int = 2) -> None:
        """Copy real or imaginary parts of the input into scratch memory, padded with zeros."""
        code, plan, copies = self.code, self.plan, CopyWriter(self.dtype, self.width)
        count = min(self.given, wanted) if base is not None else 0
        to = f"ptr {self._place(0, part)}, i64 {step * self.width}, i64 {count}"
        if base is None:
            pass
        elif self._has_tiles(count):
            code.call_helper(copies.emit_load(code), f"{self._describe_rows(rows, base, self.given)}, {to}")
        elif plan.is_contiguous:
            start = self._find_starts(rows, base, self.given)[0]
            one = f"{self.one} {literal(1.0, self.dtype, 1)}"
            code.call_helper(copies.emit_lanes(code), f"ptr {start}, i64 {plan.inner}, {to}, {one}")
        else:
            starts = self._find_starts(rows, base, self.given)
            with code.loop("0", count) as k:
                at = [code.at(self.one, start, code.times(k, plan.inner)) for start in starts]
                self._put(self._collect(at), part, k, step)
        if count < wanted:
            with code.loop(str(count), wanted) as k:
                self._put(self._zero(), part, k, step)

    def _store(self, rows: list[str], base: str, buffer: int, part: int, factor: str, step: int = 2) -> None:
        """Copy real or imaginary parts of the result, times the factor, from scratch memory."""
        code, plan, count, copies = self.code, self.plan, self.data.out, CopyWriter(self.dtype, self.width)
        here, times = f"ptr {self._place(buffer, part)}, i64 {step * self.width}", f"{self.one} {factor}"
        if self._has_tiles(count):
            arguments = f"{self._describe_rows(rows, base, count)}, {here}, i64 {count}, {times}"
            code.call_helper(copies.emit_store(code), arguments)
        elif plan.is_contiguous:
            start = self._find_starts(rows, base, count)[0]
            arguments = f"{here}, ptr {start}, i64 {plan.inner}, i64 {count}, {times}"
            code.call_helper(copies.emit_lanes(code), arguments)
        else:
            starts, each = self._find_starts(rows, base, count), self._value(splat(code, factor, self.one, self.width))
            with code.loop("0", count) as k:
                v = self._get(buffer, part, k, step) * each
                for i, start in enumerate(starts):
                    lane = v.name if self.width == 1 else code.op(f"extractelement {self.many} {v.name}, i64 {i}")
                    code.store(self.one, lane, start, code.times(k, plan.inner))

    def _has_tiles(self, count: int) -> bool:
        """Return whether this number of columns is copied by the functions of ``CopyWriter`` for rows."""
        return not self.plan.is_contiguous and self.plan.inner == 1 and count >= self.width > 1

    def _describe_rows(self, rows: list[str], base: str, length: int) -> str:
        """Return the rows as arguments of a call of a function of ``CopyWriter``."""
        return f"ptr {base}, i64 {rows[0]}, i64 {self.plan.outer - 1}, i64 {length}"

    def _collect(self, pointers: list[str]) -> Value:
        """Return a vector of the elements at these addresses."""
        lanes = [self.code.load(self.one, pointer) for pointer in pointers]
        return self._value(self.code.pack(self.one, lanes, self.width))

    # ---- transforms of real numbers

    def _mirror_bins(self) -> None:
        """Make the bins of all frequencies of an odd number of real results: conjugates at mirrored frequencies."""
        code, n, (re, im) = self.code, self.data.n, self.order
        self._put(self._zero(), im, "0")  # does not count
        if n > 1:
            with code.loop("1", (n + 1) // 2) as k:
                mirror = code.op(f"sub i64 {n}, {k}")
                self._put(self._get(0, re, k), re, mirror)
                self._put(-self._get(0, im, k), im, mirror)

    def _pack_bins(self) -> None:
        """Make of the bins of real results those whose forward transform has every other result in its parts.

        They are e + io, where e is the conjugate of a bin plus its mirror image, and o is their difference, turned.
        """
        half = self.plan.length
        first, last = self._get(0, 0, "0"), self._get(0, 0, str(half))  # their imaginary parts do not count
        self._put_pair((first + last, first - last), 0, "0")
        if half > 1:
            with self._loop_over_bins() as (k, mirror, turn):
                (a, b), (c, d) = self._get_pair(0, k), self._get_pair(0, mirror)
                (re, im), (turned_re, turned_im) = (a + c, d - b), multiply((a - c, -b - d), turn)
                self._put_pair((re - turned_im, im + turned_re), 0, k)
                self._put_pair((re + turned_im, turned_re - im), 0, mirror)

    def _unpack_bins(self, buffer: int) -> None:
        """Make the bins of real numbers of those of the transform whose parts are every other number.

        A bin plus the conjugate of its mirror image is twice the bin of the first parts, their difference is twice that
        of the second ones.  The inverse transform of real numbers is the conjugate of the forward one.
        """
        half, data = self.plan.length, self.data

        def put(re: Value, im: Value, k: str) -> None:
            self._put_pair((re, -im if data.inverse else im), buffer, k)
            if data.out > half + 1:
                self._put_pair((re, im if data.inverse else -im), buffer, self.code.op(f"sub i64 {data.n}, {k}"))

        first, last = self._get_pair(buffer, "0")
        for v, k in ((first + last, "0"), (first - last, str(half))):
            self._put_pair((v, self._zero()), buffer, k)
        if half > 1:
            with self._loop_over_bins() as (k, mirror, turn):
                (a, b), (c, d) = self._get_pair(buffer, k), self._get_pair(buffer, mirror)
                re, im = (a + c) * 0.5, (b - d) * 0.5
                turned_re, turned_im = multiply(((b + d) * 0.5, (c - a) * 0.5), turn)
                put(re + turned_re, im + turned_im, k)
                put(re - turned_re, turned_im - im, mirror)

    @contextmanager
    def _loop_over_bins(self) -> Iterator[tuple[str, str, Pair]]:
        """Emit a loop over bins that have mirror images: gives their places and the factor of the first one."""
        code, half = self.code, self.plan.length
        with code.loop("1", half // 2 + 1) as k:
            at = [code.at(self.one, "%w", code.add(code.times(k, 2), str(1 + part))) for part in range(2)]
            re, im = (splat(code, code.load(self.one, x), self.one, self.width) for x in at)
            yield k, code.op(f"sub i64 {half}, {k}"), (self._value(re), self._value(im))

    # ---- the passes

    def _transform(self) -> int:
        """Emit the calls of all passes, and return the half of scratch memory that has the result, 0 or 1."""
        code, source, left, stride = self.code, 0, self.plan.length, 1
        table = 1 + (2 * (left // 2 + 1) if self.is_halved else 0)  # after the factor of the result
        halves = "%scratch", code.at(self.one, "%scratch", self.half)
        for r in factorize(left):
            factors = left // r
            name = PassWriter(r, factors > 1, self.dtype, self.width).emit(code)
            arguments = f"ptr {halves[source]}, ptr {halves[1 - source]}, ptr {code.at(self.one, '%w', str(table))}"
            code.line(f"call void @{name}({arguments}, i64 {factors}, i64 {stride})")
            table += factors * 2 * (r - 1) if factors > 1 else 0
            left, stride, source = factors, stride * r, 1 - source
        return source

    # ---- memory

    def _value(self, name: str) -> Value:
        return Value(self.code, name, self.dtype, self.width)

    def _place(self, buffer: int, part: int, k: str = "0", step: int = 2) -> str:
        """Return the address of a vector in scratch memory."""
        place = self.code.add(self.code.times(k, step * self.width), str(buffer * self.half + part * self.width))
        return self.code.at(self.one, "%scratch", place)

    def _get(self, buffer: int, part: int, k: str, step: int = 2) -> Value:
        return self._value(self.code.load(self.many, self._place(buffer, part, k, step)))

    def _get_pair(self, buffer: int, k: str) -> Pair:
        return self._get(buffer, 0, k), self._get(buffer, 1, k)

    def _put(self, v: Value, part: int, k: str, step: int = 2, buffer: int = 0) -> None:
        self.code.store(self.many, v.name, self._place(buffer, part, k, step))

    def _put_pair(self, pair: Pair, buffer: int, k: str) -> None:
        for part, v in enumerate(pair):
            self._put(v, part, k, buffer=buffer)

    def _zero(self) -> Value:
        return constant(self.code, 0.0, self.dtype, self.width)


def multiply(x: Pair, y: Pair) -> Pair:
    """Return the product of two complex numbers."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def emit_butterfly(legs: list[Pair]) -> list[Pair]:
    """Return the transform of the few numbers of a butterfly."""
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
    """Return the transform of an odd number of numbers; those at mirrored places share products with cosines."""
    r = len(legs)
    half = range(1, (r + 1) // 2)
    sums = {j: (legs[j][0] + legs[r - j][0], legs[j][1] + legs[r - j][1]) for j in half}
    differences = {j: (legs[j][0] - legs[r - j][0], legs[j][1] - legs[r - j][1]) for j in half}
    results: dict[int, Pair] = {}
    for k in half:
        (re, im), turn_re, turn_im = legs[0], legs[0][0].lift(0.0), legs[0][0].lift(0.0)
        for j in half:
            c, s = cos(2 * pi * (j * k % r) / r), sin(2 * pi * (j * k % r) / r)
            re, im = re + sums[j][0] * c, im + sums[j][1] * c
            turn_re, turn_im = turn_re + differences[j][1] * s, turn_im + differences[j][0] * s
        results[k], results[r - k] = (re + turn_re, im - turn_im), (re - turn_re, im + turn_im)
    total_re, total_im = legs[0]
    for j in half:
        total_re, total_im = total_re + sums[j][0], total_im + sums[j][1]
    results[0] = total_re, total_im
    return [results[k] for k in range(r)]
