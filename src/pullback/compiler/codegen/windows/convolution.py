"""Convolutions: a tile of results stays in registers while the elements of their windows go by.

Where an element of a window lies is the sum of two places: that of its window, and its own within any window.  So the
result and the gradient of the filter are the same text: along one of the two there are tiles, along the other sums.
What lies around an image is zeros, in a frame into which one image at a time is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import product
from math import isqrt, prod
from typing import NamedTuple

from pullback.compiler.builder import first_lanes, splat, vector
from pullback.compiler.codegen.gemm.small import multiply_add
from pullback.compiler.codegen.kernel_code import Function, KernelCode, make_function
from pullback.compiler.codegen.windows.padding import RANGE, Framed
from pullback.compiler.ir.graph import contiguous
from pullback.compiler.ir.windows import Convolution
from pullback.compiler.target import Target

__all__ = ["emit_convolution"]

LONGEST = 120  # multiplications of vectors that are written one after the other
WORTH_PARTS = 3_200_000  # multiplications from which on a sum over images is made in parts
PARTS = 4
LARGEST = 512 * 1024  # bytes of such a part
NEAR = 3 / 4  # of the first cache that the right matrix may take
STRIP = 3 / 16  # of the second cache that an image and its results may take which are gone through again and again
MANY = 64  # steps of a sum for which it is worth to begin


class Axis(NamedTuple):
    """An axis of windows, or within windows."""

    length: int
    step: int  # elements of the image from one to the next
    rows: int  # the same in rows of the other two arrays


@lru_cache(256)
def emit_convolution(c: Convolution, target: Target) -> KernelCode:
    """Return the code of a convolution."""
    return Sliding(c, target).write()


class Tiling(NamedTuple):
    """How many results are in registers, along each axis and as vectors side by side; and how many steps of the sums
    along an image are taken at once, as they meet the same elements."""

    tile: tuple[int, ...]
    vectors: int
    steps: int


class Sliding(Framed):
    """Writes one convolution."""

    def __init__(self, c: Convolution, target: Target) -> None:
        super().__init__(c.dtype, c.space, c.channels, c.windows)
        self.c, self.target = c, target
        self.width = target.vector_bytes // self.size
        while self.width > 4 and self.width // 2 >= c.depth:
            self.width //= 2
        self.vector = vector(self.type, self.width)
        w = c.windows
        self.pixels = prod(w.out) if c.laid is None else prod(c.laid.space)  # of an image of results
        places = contiguous(w.out) if c.laid is None else contiguous(c.laid.space)
        if c.laid is not None:
            places = tuple(s * u for s, u in zip(c.laid.steps, places, strict=True))
        rows = places, contiguous(w.size if c.apart else (*w.size, c.channels))
        pixels = [Axis(n, s * u, r) for n, s, u, r in zip(w.out, w.strides, self.units, rows[0], strict=False)]
        taps = [Axis(n, d * u, r) for n, d, u, r in zip(w.size, w.dilations, self.units, rows[1], strict=False)]
        if not c.apart:
            taps.append(Axis(c.channels, 1, 1))
        along, summed = (taps, pixels) if c.of_filter else (joined(pixels), taps)
        self.along = [a for a in along if a.length > 1] or along[-1:]
        self.tile, self.vectors, steps = tiling(self, summed, target)
        short = summed.pop(len(c.space) - 1)
        self.taken = [(i * short.step, i * short.rows) for i in range(steps)]  # at once
        summed.insert(len(c.space) - 1, Axis(short.length // steps, short.step * steps, short.rows * steps))
        self.summed = joined(summed)
        self.counts = tuple(-(-a.length // t) for a, t in zip(self.along, self.tile, strict=True))
        self.blocks = -(-c.depth // (self.width * self.vectors))
        self.across = c.panel or c.depth  # from one row on the right to the next
        self.panel = prod(w.size) * c.channels * c.panel
        self.rows = [*product(*map(range, self.tile))]

    def write(self) -> KernelCode:
        c, code = self.c, self.code
        slots = self.blocks * prod(self.counts) * len(self.rows) * self.vectors * self.width * self.size
        partial = -(-slots // 64) * 64 if c.of_filter else 0
        for name, size in (("%partial", partial), ("%scratch", self.room)):
            if size:
                self.zeros(name, size)
        with code.loop("%lo", "%hi") as image:
            self._image(image)
        arrays = ["%x", "%y"] if c.of_filter else ["%x", "%y", "%z"]
        function = make_function(code, *(f"ptr noalias {name}" for name in arrays), *RANGE)
        in_parts = c.work >= WORTH_PARTS and partial <= LARGEST
        part = 1 if not c.of_filter else -(-c.images // PARTS) if in_parts else c.images
        finish = self._finish(partial, -(-c.images // part)) if c.of_filter else None
        return KernelCode(
            function, c.images, part, frozenset(code.declared), partial=partial, scratch=self.room, finish=finish
        )

    def _image(self, image: str) -> None:
        c, code = self.c, self.code
        x = self.at("%x", code.times(image, self.image))
        if self.framed:
            self.copied(x, "%scratch")
            x = "%scratch"
        x = self.at(x, str(self.first))
        here = code.times(image, self.pixels * c.depth)
        y, z = (self.at("%y", here), "%partial") if c.of_filter else ("%y", self.at("%z", here))
        if c.laid is not None:
            first = sum(i * u for i, u in zip(c.laid.first, contiguous(c.laid.space), strict=True))
            z = self.at(z, str(first * c.depth))
        with self._strips(x, y) as (x, y):
            for block, last in self._blocks():
                self._columns(x, y, z, block, last)

    @contextmanager
    def _strips(self, x: str, y: str) -> Iterator[tuple[str, str]]:
        """For the gradient of a filter, strips of an image that stay in the cache while all tiles go over them."""
        c, code = self.c, self.code
        (length, step, rows), *rest = self.summed
        down = rows * c.depth
        some = [n for d in range(1, isqrt(length) + 1) if length % d == 0 for n in (d, length // d)]
        sizes = self.target.first_cache, STRIP * self.target.second_cache
        fitting = [max((n for n in some if n * (step + down) * self.size <= most), default=1) for most in sizes]
        high = next((n for n in fitting if n * prod(a.length for a in rest) >= MANY), fitting[-1])
        if not c.of_filter or high == length:
            yield x, y
            return
        self.summed[0] = Axis(high, step, rows)
        with code.loop("0", length // high) as i:
            yield self.at(x, code.times(i, high * step)), self.at(y, code.times(i, high * down))

    def _blocks(self) -> Iterator[tuple[str, int]]:
        """Vectors of columns side by side, and how many lanes of the last one there are."""
        c, code = self.c, self.code
        last = c.depth - (self.blocks * self.vectors - 1) * self.width
        whole = self.blocks if last == self.width else self.blocks - 1
        if whole > 1:
            with code.loop("0", whole) as block:
                yield block, self.width
        elif whole:
            yield "0", self.width
        if whole < self.blocks:
            yield str(whole), last

    def _columns(self, x: str, y: str, z: str, block: str, last: int) -> None:
        """All tiles of a few columns."""
        code = self.code
        j = code.times(block, self.vectors * self.width)
        with self._tiles(block) as (place, row, slot):
            rooms = [[code.room(self.vector) for _ in range(self.vectors)] for _ in self.rows]
            for room in (r for several in rooms for r in several):
                code.line(f"store {self.vector} zeroinitializer, ptr {room}, align 64")
            self._sum(
                self.at(x, code.add(place, j) if self.c.apart else place), self.at(y, self._column(j)), rooms, last
            )
            totals = [[code.op(f"load {self.vector}, ptr {room}, align 64") for room in several] for several in rooms]
            if self.c.of_filter:
                self._add_to(z, slot, totals)
            else:
                self._put(z, row, j, totals, last)

    def _column(self, j: str) -> str:
        """Where a column begins on the right."""
        code, wide = self.code, self.c.panel
        if not wide or j == "0":
            return j
        return code.add(code.times(code.op(f"udiv i64 {j}, {wide}"), self.panel), code.op(f"urem i64 {j}, {wide}"))

    def _slot(self, base: str, slot: str, r: int, v: int) -> str:
        """Where a vector of a tile is kept; tiles may overlap, these do not."""
        here = self.code.times(slot, len(self.rows) * self.vectors * self.width)
        return self.at(self.at(base, here), str((r * self.vectors + v) * self.width))

    def _add_to(self, base: str, slot: str, totals: list[list[str]]) -> None:
        code = self.code
        for r, several in enumerate(totals):
            for v, total in enumerate(several):
                to = self._slot(base, slot, r, v)
                before = code.op(f"load {self.vector}, ptr {to}, align {self.size}")
                new = code.op(f"fadd {self.vector} {before}, {total}")
                code.line(f"store {self.vector} {new}, ptr {to}, align {self.size}")

    def _put(self, z: str, row: str, j: str, totals: list[list[str]], last: int) -> None:
        """A tile where it belongs."""
        first = self.at(z, self.code.add(self.code.times(row, self.c.depth), j))
        for at, several in zip(self.rows, totals, strict=True):
            for v, total in enumerate(several):
                ahead = (
                    sum(a * axis.rows for a, axis in zip(at, self.along, strict=True)) * self.c.depth + v * self.width
                )
                mask = self._mask(v, last)
                self.code.write(total, self.at(first, str(ahead)), self.type, self.size, self.width, mask)

    @contextmanager
    def _tiles(self, block: str) -> Iterator[tuple[str, str, str]]:
        """For each tile the place of its first element, the row of its first result, and its number.

        The last ones reach back over those before them rather than beyond the end.
        """
        code = self.code
        place, row, slot = "0", "0", block
        with ExitStack() as loops:
            for (length, step, rows), tile, count in zip(self.along, self.tile, self.counts, strict=True):
                slot = code.times(slot, count)
                if count == 1:
                    continue
                i = loops.enter_context(code.loop("0", count))
                slot, start = code.add(slot, i), code.times(i, tile)
                if length % tile:
                    code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
                    start = code.op(f"call i64 @llvm.smin.i64(i64 {start}, i64 {length - tile})")
                place, row = code.add(place, code.times(start, step)), code.add(row, code.times(start, rows))
            yield place, row, slot

    def _sum(self, x: str, y: str, rooms: list[list[str]], last: int) -> None:
        """Along the axes that are summed over."""
        code = self.code
        with ExitStack() as loops:
            for length, step, rows in self.summed:
                if length > 1:
                    i = loops.enter_context(code.loop("0", length))
                    x, y = self.at(x, code.times(i, step)), self.at(y, code.times(i, rows * self.across))
            self._multiply(x, y, rooms, last)

    def _multiply(self, x: str, y: str, rooms: list[list[str]], last: int) -> None:
        """A few steps at once: what is at a place is read once, and goes to all results that it is part of."""
        code, t = self.code, self.vector
        fma = multiply_add(self.target, self.size, self.width)
        right = [
            [self._read(self.at(y, str(rows * self.across + v * self.width)), v, last) for v in range(self.vectors)]
            for _, rows in self.taken
        ]
        for place, pairs in meeting(self.rows, self.along, self.taken):
            here = self.at(x, str(place))
            left = [""] * self.vectors if self.c.apart else [self._one(here)] * self.vectors
            for v in range(self.vectors):
                a = left[v] or self._read(self.at(here, str(v * self.width)), v, last)
                for r, i in pairs:
                    so_far = code.op(f"load {t}, ptr {rooms[r][v]}, align 64")
                    new = code.call(fma, t, [(t, a), (t, right[i][v]), (t, so_far)])
                    code.line(f"store {t} {new}, ptr {rooms[r][v]}, align 64")

    def _one(self, pointer: str) -> str:
        return splat(
            self.code, self.code.op(f"load {self.type}, ptr {pointer}, align {self.size}"), self.type, self.width
        )

    def _finish(self, partial: int, parts: int) -> Function:
        """The sums of all parts, in their order, where they belong."""
        code = self.code
        code.lines, code.entry = [], []
        if parts > 1:
            with code.loop("0", partial // self.size, self.width) as i, code.loop("1", parts) as part:
                to = self.at("%partial", i)
                more = self.at(to, code.times(part, partial // self.size))
                both = [code.op(f"load {self.vector}, ptr {p}, align {self.size}") for p in (to, more)]
                total = code.op(f"fadd {self.vector} {both[0]}, {both[1]}")
                code.line(f"store {self.vector} {total}, ptr {to}, align {self.size}")
        for block, last in self._blocks():
            with self._tiles(block) as (_, row, slot):
                kept = [
                    [self._slot("%partial", slot, r, v) for v in range(self.vectors)] for r in range(len(self.rows))
                ]
                totals = [[code.op(f"load {self.vector}, ptr {p}, align {self.size}") for p in ps] for ps in kept]
                self._put("%z", row, code.times(block, self.vectors * self.width), totals, last)
        return make_function(code, "ptr noalias %z", "ptr noalias %partial", "i64 %parts")

    def _read(self, pointer: str, v: int, last: int) -> str:
        return self.code.read(pointer, self.type, self.size, self.width, self._mask(v, last))

    def _mask(self, v: int, last: int) -> str | None:
        return first_lanes(last, self.width) if v == self.vectors - 1 else None


def joined(axes: list[Axis]) -> list[Axis]:
    """Axes that go on as one, as one.

    >>> joined([Axis(5, 30, 6), Axis(3, 2, 2), Axis(2, 1, 1)])
    [Axis(length=5, step=30, rows=6), Axis(length=6, step=1, rows=1)]
    """
    made: list[Axis] = []
    for axis in axes:
        before = made[-1] if made else Axis(1, 0, 0)
        if before.length == 1 or (before.step, before.rows) == (axis.step * axis.length, axis.rows * axis.length):
            made[-1:] = [axis._replace(length=axis.length * before.length)]
        elif axis.length != 1:
            made.append(axis)
    return made


Meeting = list[tuple[int, list[tuple[int, int]]]]


def meeting(rows: list[tuple[int, ...]], along: list[Axis], taken: list[tuple[int, int]]) -> Meeting:
    """Places in the image, with the rows of a tile and the steps that meet there."""
    found: dict[int, list[tuple[int, int]]] = {}
    for r, at in enumerate(rows):
        for i, (ahead, _) in enumerate(taken):
            place = ahead + sum(a * axis.step for a, axis in zip(at, along, strict=True))
            found.setdefault(place, []).append((r, i))
    return sorted(found.items())


def tiling(s: Sliding, summed: list[Axis], target: Target) -> Tiling:
    """The tiles that should take the least time: many sums at once, few of them twice, and little to be read."""
    columns, lengths = -(-s.c.depth // s.width), [a.length for a in s.along]
    short, all_steps = summed[len(s.c.space) - 1], prod(a.length for a in summed)
    best, least = Tiling((1,) * len(lengths), 1, 1), float("inf")
    wide = s.c.panel // s.width or columns
    for vectors in (v for v in (2, 1, 3, 4, 5, 7) if columns % v == 0 == wide % v):
        far = all_steps * vectors * s.width * s.size > NEAR * target.first_cache
        for steps in (n for n in range(7, 0, -1) if short.length % n == 0):
            most = (target.registers - 2) // vectors - steps  # what is on the right, and one on the left, is there too
            most = most if steps == 1 else min(most, LONGEST // (vectors * steps))
            taken = [(i * short.step, 0) for i in range(steps)]
            for tile in _even(lengths, most):
                rows = prod(tile)
                if 2 * rows < min(most, prod(lengths)):  # there is a better one
                    continue
                tiles = prod(-(-n // t) for n, t in zip(lengths, tile, strict=True)) * columns // vectors
                busy = max(rows * vectors * steps / 2, 4 * steps)
                more = (vectors * steps / 2 if far else 0) + (rows * vectors * 1.5 + 20) * steps / all_steps
                times = all_steps / steps * tiles
                if times * (busy + more) < least:
                    places = len(meeting([*product(*map(range, tile))], s.along, taken))
                    reads = places * (vectors if s.c.apart else 1) + vectors * steps
                    if times * (max(busy, reads) + more) < least:
                        best, least = Tiling(tile, vectors, steps), times * (max(busy, reads) + more)
    return best


def _even(lengths: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Tiles of not more than ``most`` elements, about as large as each other; the largest first."""
    if not lengths:
        yield ()
        return
    *before, length = lengths
    sizes = {-(-length // -(-length // size)) for size in range(1, min(most, length) + 1)}
    for size in sorted(sizes, reverse=True):
        for tile in _even(before, most // size):
            yield (*tile, size)
