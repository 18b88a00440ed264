"""Convolutions: a tile of results stays in registers during the loops over the elements of their windows.

The offset of an element in the image is the sum of that of its window and its own within the window.  So the result
and the gradient of the filter are emitted alike: one has tiles over windows and sums within them, the other the
reverse.  Padded images are copied, one at a time, into a frame of zeros.
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
from pullback.compiler.codegen.windows.padding import RANGE, WindowKernel
from pullback.compiler.ir.graph import contiguous
from pullback.compiler.ir.windows import Convolution
from pullback.compiler.target import Target

__all__ = ["emit_convolution"]

LONGEST = 120  # multiplications of vectors that are unrolled
WORTH_PARTS = 3_200_000  # multiplications from which on a sum over images is done in parts
PARTS = 4
LARGEST = 512 * 1024  # bytes of such a part
NEAR = 3 / 4  # of the first cache that the right matrix may take
IMAGE = 3 / 4  # of the second cache that an image may take, to be still there for the next columns
FILTER = 1 / 2  # of the second cache that a filter may take, to be still there for the next tile
LINE = 64  # bytes of a line of the cache
# Cycles, fitted to the times of some hundred tilings on AVX2 and AVX-512: of a read; of a step besides its sums and
# reads; more for a vector or a line from the second cache, and for a line from beyond it.
READ, STEP, FAR, FROM_MEMORY = 0.75, 1.5, 0.25, 4
STRIP = 3 / 16  # of the second cache that a strip of an image and its results may take, as all tiles use it
MANY = 24  # steps of a sum that are worth its overhead


class Axis(NamedTuple):
    """An axis of windows, or within a window."""

    length: int
    step: int  # elements of the image from one to the next
    rows: int  # the same in rows of the other two arrays


@lru_cache(256)
def emit_convolution(c: Convolution, target: Target) -> KernelCode:
    """Return the code of a convolution."""
    return ConvolutionWriter(c, target).write()


class Tiling(NamedTuple):
    """How many results are in registers, along each axis and as vectors of columns, and how many steps of the sums are
    unrolled because they use the same elements."""

    tile: tuple[int, ...]
    vectors: int
    steps: int


class ConvolutionWriter(WindowKernel):
    """Emits the kernel of one convolution."""

    def __init__(self, c: Convolution, target: Target) -> None:
        super().__init__(c.dtype, c.space, c.channels, c.windows)
        self.c, self.target = c, target
        self.width = target.vector_bytes // self.size
        while self.width > 4 and self.width // 2 >= c.depth:
            self.width //= 2
        self.vector = vector(self.type, self.width)
        self.pixels = prod(c.windows.out if c.laid is None else c.laid.space)  # of the image of results
        pixels, taps = self._list_axes()
        along, summed = (taps, pixels) if c.of_filter else (merge_axes(pixels), taps)
        self.along = [a for a in along if a.length > 1] or along[-1:]
        self.tile, self.vectors, steps = choose_tiling(self, summed, target)
        short = summed.pop(len(c.space) - 1)
        self.taken = [(i * short.step, i * short.rows) for i in range(steps)]  # at once
        summed.insert(len(c.space) - 1, Axis(short.length // steps, short.step * steps, short.rows * steps))
        self.summed = merge_axes(summed)
        self.counts = tuple(-(-a.length // t) for a, t in zip(self.along, self.tile, strict=True))
        self.blocks = -(-c.depth // (self.width * self.vectors))
        self.across = c.panel or c.depth  # from one row on the right to the next
        self.panel = prod(c.windows.size) * c.channels * c.panel
        self.rows = [*product(*map(range, self.tile))]

    def _list_axes(self) -> tuple[list[Axis], list[Axis]]:
        """Return the axes of windows, and those within a window."""
        c, w = self.c, self.c.windows
        places = contiguous(w.out)
        if c.laid is not None:
            places = tuple(s * u for s, u in zip(c.laid.steps, contiguous(c.laid.space), strict=True))
        rows = contiguous(w.size if c.apart else (*w.size, c.channels))
        pixels = [Axis(n, s * u, r) for n, s, u, r in zip(w.out, w.strides, self.units, places, strict=False)]
        taps = [Axis(n, d * u, r) for n, d, u, r in zip(w.size, w.dilations, self.units, rows, strict=False)]
        return pixels, taps if c.apart else [*taps, Axis(c.channels, 1, 1)]

    def write(self) -> KernelCode:
        c, code = self.c, self.code
        slots = self.blocks * prod(self.counts) * len(self.rows) * self.vectors * self.width * self.size
        partial = -(-slots // 64) * 64 if c.of_filter else 0
        for name, size in (("%partial", partial), ("%scratch", self.frame_bytes)):
            if size:
                self.fill_zeros(name, size)
        with code.loop("%lo", "%hi") as image:
            self._emit_image(image)
        arrays = ["%x", "%y"] if c.of_filter else ["%x", "%y", "%z"]
        function = make_function(code, *(f"ptr noalias {name}" for name in arrays), *RANGE)
        in_parts = c.work >= WORTH_PARTS and partial <= LARGEST
        part = 1 if not c.of_filter else -(-c.images // PARTS) if in_parts else c.images
        finish = self._emit_finish(partial, -(-c.images // part)) if c.of_filter else None
        return KernelCode(
            function, c.images, part, frozenset(code.declared), partial=partial, scratch=self.frame_bytes, finish=finish
        )

    def _emit_image(self, image: str) -> None:
        c, code = self.c, self.code
        x = self.at("%x", code.times(image, self.image))
        if self.framed:
            self.copy_image(x, "%scratch")
            x = "%scratch"
        x = self.at(x, str(self.first))
        here = code.times(image, self.pixels * c.depth)
        y, z = (self.at("%y", here), "%partial") if c.of_filter else ("%y", self.at("%z", here))
        if c.laid is not None:
            first = sum(i * u for i, u in zip(c.laid.first, contiguous(c.laid.space), strict=True))
            z = self.at(z, str(first * c.depth))
        with self._loop_over_strips(x, y) as (x, y):
            if self.keeps_filter():
                with self._loop_over_tiles() as (place, row, _):
                    for block, last in self._loop_over_blocks():
                        self._emit_tile(x, y, z, (place, row, ""), block, last)
            else:
                for block, last in self._loop_over_blocks():
                    with self._loop_over_tiles(block) as tile:
                        self._emit_tile(x, y, z, tile, block, last)

    def keeps_filter(self) -> bool:
        """Return whether all of the filter stays in the cache, so that a tile is done with all of its columns."""
        c = self.c
        filter = prod(c.windows.size) * c.channels * c.depth * self.size
        return not c.of_filter and not c.apart and filter <= FILTER * self.target.second_cache

    @contextmanager
    def _loop_over_strips(self, x: str, y: str) -> Iterator[tuple[str, str]]:
        """Loop over strips of an image that stay in the cache for all tiles, for the gradient of a filter."""
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

    def _loop_over_blocks(self) -> Iterator[tuple[str, int]]:
        """Loop over blocks of columns: the number of each, and the lanes of its last vector."""
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

    def _emit_tile(self, x: str, y: str, z: str, tile: tuple[str, str, str], block: str, last: int) -> None:
        """Emit a tile of a few columns."""
        code, (place, row, slot) = self.code, tile
        j = code.times(block, self.vectors * self.width)
        cells = [[code.allocate(self.vector) for _ in range(self.vectors)] for _ in self.rows]
        for cell in (r for several in cells for r in several):
            code.line(f"store {self.vector} zeroinitializer, ptr {cell}, align 64")
        self._emit_sums(
            self.at(x, code.add(place, j) if self.c.apart else place),
            self.at(y, self._column_offset(j)),
            cells,
            last,
        )
        totals = [[code.op(f"load {self.vector}, ptr {cell}, align 64") for cell in several] for several in cells]
        if self.c.of_filter:
            self._add_to_partial(z, slot, totals)
        else:
            self._store_tile(z, row, j, totals, last)

    def _column_offset(self, j: str) -> str:
        """Return where a column of the filter begins."""
        code, wide = self.code, self.c.panel
        if not wide or j == "0":
            return j
        return code.add(code.times(code.op(f"udiv i64 {j}, {wide}"), self.panel), code.op(f"urem i64 {j}, {wide}"))

    def _partial_place(self, base: str, slot: str, r: int, v: int) -> str:
        """Return the address of a tile's vector in the partial results; tiles may overlap, these do not."""
        here = self.code.times(slot, len(self.rows) * self.vectors * self.width)
        return self.at(self.at(base, here), str((r * self.vectors + v) * self.width))

    def _add_to_partial(self, base: str, slot: str, totals: list[list[str]]) -> None:
        code = self.code
        for r, several in enumerate(totals):
            for v, total in enumerate(several):
                to = self._partial_place(base, slot, r, v)
                before = code.op(f"load {self.vector}, ptr {to}, align {self.size}")
                new = code.op(f"fadd {self.vector} {before}, {total}")
                code.line(f"store {self.vector} {new}, ptr {to}, align {self.size}")

    def _store_tile(self, z: str, row: str, j: str, totals: list[list[str]], last: int) -> None:
        """Store a tile of results."""
        first = self.at(z, self.code.add(self.code.times(row, self.c.depth), j))
        for at, several in zip(self.rows, totals, strict=True):
            for v, total in enumerate(several):
                ahead = (
                    sum(a * axis.rows for a, axis in zip(at, self.along, strict=True)) * self.c.depth + v * self.width
                )
                mask = self._mask(v, last)
                self.code.write(total, self.at(first, str(ahead)), self.type, self.size, self.width, mask)

    @contextmanager
    def _loop_over_tiles(self, block: str = "0") -> Iterator[tuple[str, str, str]]:
        """Loop over tiles: the offset of the first element, the row of the first result, and the number of each.

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

    def _emit_sums(self, x: str, y: str, cells: list[list[str]], last: int) -> None:
        """Emit the loops over the axes that are summed over."""
        code = self.code
        with ExitStack() as loops:
            for length, step, rows in self.summed:
                if length > 1:
                    i = loops.enter_context(code.loop("0", length))
                    x, y = self.at(x, code.times(i, step)), self.at(y, code.times(i, rows * self.across))
            self._emit_steps(x, y, cells, last)

    def _emit_steps(self, x: str, y: str, cells: list[list[str]], last: int) -> None:
        """Emit a few steps of the sums: an element is loaded once for all results that it is part of."""
        code, t = self.code, self.vector
        fma = multiply_add(self.target, self.size, self.width)
        right = [
            [self._read(self.at(y, str(rows * self.across + v * self.width)), v, last) for v in range(self.vectors)]
            for _, rows in self.taken
        ]
        for place, pairs in find_shared_elements(self.rows, self.along, self.taken):
            here = self.at(x, str(place))
            left = [""] * self.vectors if self.c.apart else [self._broadcast(here)] * self.vectors
            for v in range(self.vectors):
                a = left[v] or self._read(self.at(here, str(v * self.width)), v, last)
                for r, i in pairs:
                    so_far = code.op(f"load {t}, ptr {cells[r][v]}, align 64")
                    new = code.call(fma, t, [(t, a), (t, right[i][v]), (t, so_far)])
                    code.line(f"store {t} {new}, ptr {cells[r][v]}, align 64")

    def _broadcast(self, pointer: str) -> str:
        return splat(
            self.code, self.code.op(f"load {self.type}, ptr {pointer}, align {self.size}"), self.type, self.width
        )

    def _emit_finish(self, partial: int, parts: int) -> Function:
        """Return the function that adds the results of parts, in order."""
        code = self.code
        code.lines, code.entry = [], []
        if parts > 1:
            with code.loop("0", partial // self.size, self.width) as i, code.loop("1", parts) as part:
                to = self.at("%partial", i)
                more = self.at(to, code.times(part, partial // self.size))
                both = [code.op(f"load {self.vector}, ptr {p}, align {self.size}") for p in (to, more)]
                total = code.op(f"fadd {self.vector} {both[0]}, {both[1]}")
                code.line(f"store {self.vector} {total}, ptr {to}, align {self.size}")
        for block, last in self._loop_over_blocks():
            with self._loop_over_tiles(block) as (_, row, slot):
                kept = [
                    [self._partial_place("%partial", slot, r, v) for v in range(self.vectors)]
                    for r in range(len(self.rows))
                ]
                totals = [[code.op(f"load {self.vector}, ptr {p}, align {self.size}") for p in ps] for ps in kept]
                self._store_tile("%z", row, code.times(block, self.vectors * self.width), totals, last)
        return make_function(code, "ptr noalias %z", "ptr noalias %partial", "i64 %parts")

    def _read(self, pointer: str, v: int, last: int) -> str:
        return self.code.read(pointer, self.type, self.size, self.width, self._mask(v, last))

    def _mask(self, v: int, last: int) -> str | None:
        return first_lanes(last, self.width) if v == self.vectors - 1 else None


def merge_axes(axes: list[Axis]) -> list[Axis]:
    """Return axes with those merged that can be one.

    >>> merge_axes([Axis(5, 30, 6), Axis(3, 2, 2), Axis(2, 1, 1)])
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


SharedElements = list[tuple[int, list[tuple[int, int]]]]


def find_shared_elements(
    rows: list[tuple[int, ...]], along: list[Axis], taken: list[tuple[int, int]]
) -> SharedElements:
    """Return offsets in the image, each with the rows of a tile and the steps that use it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for r, at in enumerate(rows):
        for i, (ahead, _) in enumerate(taken):
            place = ahead + sum(a * axis.step for a, axis in zip(at, along, strict=True))
            found.setdefault(place, []).append((r, i))
    return sorted(found.items())


def choose_tiling(s: ConvolutionWriter, summed: list[Axis], target: Target) -> Tiling:
    """Return the tiling of least estimated time: many sums at once, few of them twice, and few loads."""
    lengths, blocks = [a.length for a in s.along], -(-s.c.depth // s.width)
    short, all_steps = summed[len(s.c.space) - 1], prod(a.length for a in summed)
    image = 0 if s.c.of_filter or s.keeps_filter() else prod(s.frame) * s.channels * s.size
    again = image / LINE * FROM_MEMORY if image > IMAGE * target.second_cache else 0  # for each block of columns
    best, least = Tiling((1,) * len(lengths), 1, 1), float("inf")
    for vectors, steps, tile in _list_tilings(s, short.length, target):
        far = all_steps * max(vectors * s.width * s.size, LINE) > NEAR * target.first_cache
        rows = prod(tile)
        times = all_steps / steps * prod(-(-n // t) for n, t in zip(lengths, tile, strict=True)) * (blocks // vectors)
        busy = max(rows * vectors / 2, 4) * steps  # two sums begin in a cycle, and one takes four
        once = rows * vectors * 1.5 + 20 + _count_lines(s, tile) * FAR  # for a whole tile
        more = steps * (STEP + once / all_steps + far * vectors * FAR)
        fixed = again * (blocks // vectors)
        if times * (busy + more) + fixed < least:
            taken = [(i * short.step, 0) for i in range(steps)]
            places = [place for place, _ in find_shared_elements([*product(*map(range, tile))], s.along, taken)]
            reads = len(places) * (vectors if s.c.apart else 1) + vectors * steps
            if s.c.of_filter and far:
                more += len({place * s.size // LINE for place in places}) * FAR
            total = times * (max(busy, reads * READ) + more) + fixed
            if total < least:
                best, least = Tiling(tile, vectors, steps), total
    return best


def _count_lines(s: ConvolutionWriter, tile: tuple[int, ...]) -> float:
    """Return how many lines of the image the windows of a tile of results reach; 0 if axes are merged."""
    w = s.c.windows
    if s.c.of_filter or len(tile) != len(w.size):
        return 0
    reach = [(t - 1) * n + (k - 1) * d + 1 for t, n, k, d in zip(tile, w.strides, w.size, w.dilations, strict=True)]
    return prod(reach) * s.channels * s.size / LINE


def _list_tilings(s: ConvolutionWriter, length: int, target: Target) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield vectors, steps at once and tiles that fit the registers; ``length`` is that of the axis of the steps."""
    columns, lengths = -(-s.c.depth // s.width), [a.length for a in s.along]
    wide = s.c.panel // s.width or columns
    for vectors in (v for v in (2, 1, 3, 4, 5, 7) if columns % v == 0 == wide % v):
        for steps in (n for n in range(7, 0, -1) if length % n == 0):
            most = (target.registers - 2) // vectors - steps  # besides the elements on the right, and one on the left
            most = most if steps == 1 else min(most, LONGEST // (vectors * steps))
            for tile in _list_tiles(lengths, most):
                if 2 * prod(tile) >= min(most, prod(lengths)):  # else a larger one is better
                    yield vectors, steps, tile


def _list_tiles(lengths: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield tiles of at most ``most`` elements that divide the lengths evenly, the largest first."""
    if not lengths:
        yield ()
        return
    *before, length = lengths
    sizes = {-(-length // -(-length // size)) for size in range(1, min(most, length) + 1)}
    for size in sorted(sizes, reverse=True):
        for tile in _list_tiles(before, most // size):
            yield (*tile, size)
