"""Kernels of convolutions: a tile of results stays in registers during the loops over the elements of their windows.

The offset of an element in the image is the offset of its window plus its offset within the window.  So a convolution
and the gradient of its filter are emitted by the same code: one has tiles of windows and sums over the elements of
windows, the other tiles of these elements and sums over windows.  A padded image is copied into a frame of zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache

from pullback.compiler.builder import Code, first_lanes, splat, vector
from pullback.compiler.codegen.gemm.block import multiply_add
from pullback.compiler.codegen.kernel_code import Function, KernelCode, make_function, make_kernel
from pullback.compiler.codegen.windows.padding import RANGE, WindowKernel
from pullback.compiler.ir.graph import compute_strides
from pullback.compiler.schedule.windows import ConvolutionPlan, find_shared_elements


@lru_cache(256)
def emit_convolution(plan: ConvolutionPlan) -> KernelCode:
    """Return the kernel of a convolution or of the gradient of a filter."""
    return ConvolutionWriter(plan).write()


class ConvolutionWriter(WindowKernel):
    """Emits the kernel of one convolution."""

    plan: ConvolutionPlan

    def __init__(self, plan: ConvolutionPlan, code: Code | None = None) -> None:
        super().__init__(plan, code)
        self.c, self.vector = plan.c, vector(self.type, plan.width)

    def write(self) -> KernelCode:
        c, code, work = self.c, self.code, self.plan.work
        for name, size in (("%partial", work.partial), ("%scratch", work.scratch)):
            if size:
                self.code.clear_bytes(name, size)
        with code.loop("%lo", "%hi") as image:
            self.emit_image(image)
        arrays = ["%x", "%y"] if c.is_filter_gradient else ["%x", "%y", "%z"]
        kernel = make_kernel(code, *(f"ptr noalias {name}" for name in arrays), *RANGE)
        if not c.is_filter_gradient:
            return kernel
        return kernel._replace(finish=self._emit_finish(work.partial, work.parts), declared=frozenset(code.declared))

    def emit_image(self, image: str, sums: str = "%partial") -> None:
        """Emit the convolution of one image of ``%x`` with the filter ``%y``, or add to the sums of its gradient."""
        c, code = self.c, self.code
        x = self.at("%x", code.times(image, self.plan.image))
        if self.plan.framed:
            self.copy_image(x, "%scratch")
            x = "%scratch"
        x = self.at(x, str(self.plan.first))
        here = code.times(image, self.plan.pixels * c.depth)
        y, z = (self.at("%y", here), sums) if c.is_filter_gradient else ("%y", self.at("%z", here))
        if c.placement is not None:
            first = sum(i * u for i, u in zip(c.placement.first, compute_strides(c.placement.space), strict=True))
            z = self.at(z, str(first * c.depth))
        self.emit_sums(x, y, z)

    def emit_sums(self, x: str, y: str, z: str) -> None:
        """Emit all sums of one image, which is in its frame."""
        with self._loop_over_strips(x, y) as (x, y):
            if self.plan.keeps_filter:
                with self._loop_over_tiles() as tile:
                    for block, last in self._loop_over_blocks():
                        self._emit_tile(x, y, z, tile, block, last)
            else:
                for block, last in self._loop_over_blocks():
                    with self._loop_over_tiles(block) as tile:
                        self._emit_tile(x, y, z, tile, block, last)

    @contextmanager
    def _loop_over_strips(self, x: str, y: str) -> Iterator[tuple[str, str]]:
        """Loop, for the gradient of a filter, over strips of an image that stay in the cache for all tiles."""
        code, (high, step, rows) = self.code, self.plan.summed[0]
        if self.plan.strips == 1:
            yield x, y
            return
        with code.loop("0", self.plan.strips) as i:
            yield self.at(x, code.times(i, high * step)), self.at(y, code.times(i, high * rows * self.c.depth))

    def _loop_over_blocks(self) -> Iterator[tuple[str, int]]:
        """Loop over blocks of columns; yield the number of each, and the lanes of its last vector."""
        c, code = self.c, self.code
        last = c.depth - (self.plan.blocks * self.plan.vectors - 1) * self.plan.width
        whole = self.plan.blocks if last == self.plan.width else self.plan.blocks - 1
        if whole > 1:
            with code.loop("0", whole) as block:
                yield block, self.plan.width
        elif whole:
            yield "0", self.plan.width
        if whole < self.plan.blocks:
            yield str(whole), last

    def _emit_tile(self, x: str, y: str, z: str, tile: tuple[str, str, str], block: str, last: int) -> None:
        """Emit the sums of one tile for one block of columns."""
        code, (place, row, slot) = self.code, tile
        j = code.times(block, self.plan.vectors * self.plan.width)
        cells = [[code.allocate(self.vector) for _ in range(self.plan.vectors)] for _ in self.plan.rows]
        for cell in (r for several in cells for r in several):
            code.line(f"store {self.vector} zeroinitializer, ptr {cell}, align 64")
        self._emit_sums(
            self.at(x, code.add(place, j) if self.c.is_depthwise else place),
            self.at(y, self._column_offset(j)),
            cells,
            last,
        )
        totals = [[code.op(f"load {self.vector}, ptr {cell}, align 64") for cell in several] for several in cells]
        if self.c.is_filter_gradient:
            self._add_to_partial(z, slot, totals)
        else:
            self._store_tile(z, row, j, totals, last)

    def _column_offset(self, j: str) -> str:
        """Return the offset of a column of the filter."""
        code, wide = self.code, self.c.panel
        if not wide or j == "0":
            return j
        return code.add(code.times(code.op(f"udiv i64 {j}, {wide}"), self.plan.panel), code.op(f"urem i64 {j}, {wide}"))

    def _partial_place(self, base: str, slot: str, r: int, v: int) -> str:
        """Return the address of a tile's vector among the partial results, which do not overlap as tiles may."""
        here = self.code.times(slot, len(self.plan.rows) * self.plan.vectors * self.plan.width)
        return self.at(self.at(base, here), str((r * self.plan.vectors + v) * self.plan.width))

    def _add_to_partial(self, base: str, slot: str, totals: list[list[str]]) -> None:
        code = self.code
        for r, several in enumerate(totals):
            for v, total in enumerate(several):
                to = self._partial_place(base, slot, r, v)
                before = code.op(f"load {self.vector}, ptr {to}, align {self.plan.size}")
                new = code.op(f"fadd {self.vector} {before}, {total}")
                code.line(f"store {self.vector} {new}, ptr {to}, align {self.plan.size}")

    def _store_tile(self, z: str, row: str, j: str, totals: list[list[str]], last: int) -> None:
        """Store the sums of a tile in the result."""
        first = self.at(z, self.code.add(self.code.times(row, self.c.depth), j))
        for at, several in zip(self.plan.rows, totals, strict=True):
            for v, total in enumerate(several):
                ahead = (
                    sum(a * axis.rows for a, axis in zip(at, self.plan.along, strict=True)) * self.c.depth
                    + v * self.plan.width
                )
                mask = self._mask(v, last)
                self.code.write(total, self.at(first, str(ahead)), self.type, self.plan.size, self.plan.width, mask)

    @contextmanager
    def _loop_over_tiles(self, block: str = "0") -> Iterator[tuple[str, str, str]]:
        """Loop over tiles; yield the offset of the first element, the row of the first result, and the number of each.

        The last tile along an axis overlaps the one before, rather than reach beyond the end.
        """
        code = self.code
        place, row, slot = "0", "0", block
        with ExitStack() as loops:
            for (length, step, rows), tile, count in zip(
                self.plan.along, self.plan.tile, self.plan.counts, strict=True
            ):
                slot = code.times(slot, count)
                if count == 1:
                    continue
                i = loops.enter_context(code.loop("0", count))
                slot, start = code.add(slot, i), code.times(i, tile)
                if length % tile:
                    start = code.minimum(start, length - tile)
                place, row = code.add(place, code.times(start, step)), code.add(row, code.times(start, rows))
            yield place, row, slot

    def _emit_sums(self, x: str, y: str, cells: list[list[str]], last: int) -> None:
        """Emit the loops over the axes that are summed over."""
        code = self.code
        with ExitStack() as loops:
            for length, step, rows in self.plan.summed:
                if length > 1:
                    i = loops.enter_context(code.loop("0", length))
                    x, y = self.at(x, code.times(i, step)), self.at(y, code.times(i, rows * self.plan.across))
            self._emit_steps(x, y, cells, last)

    def _emit_steps(self, x: str, y: str, cells: list[list[str]], last: int) -> None:
        """Emit a few unrolled steps of the sums; an element is loaded once for all results that it is part of."""
        code, t = self.code, self.vector
        fma = multiply_add(self.plan.target, self.plan.size, self.plan.width)
        right = [
            [
                self._read(self.at(y, str(rows * self.plan.across + v * self.plan.width)), v, last)
                for v in range(self.plan.vectors)
            ]
            for _, rows in self.plan.taken
        ]
        for place, pairs in find_shared_elements(self.plan.rows, self.plan.along, self.plan.taken):
            here = self.at(x, str(place))
            left = [""] * self.plan.vectors if self.c.is_depthwise else [self._broadcast(here)] * self.plan.vectors
            for v in range(self.plan.vectors):
                a = left[v] or self._read(self.at(here, str(v * self.plan.width)), v, last)
                for r, i in pairs:
                    so_far = code.op(f"load {t}, ptr {cells[r][v]}, align 64")
                    new = code.call(fma, t, [(t, a), (t, right[i][v]), (t, so_far)])
                    code.line(f"store {t} {new}, ptr {cells[r][v]}, align 64")

    def _broadcast(self, pointer: str) -> str:
        return splat(
            self.code,
            self.code.op(f"load {self.type}, ptr {pointer}, align {self.plan.size}"),
            self.type,
            self.plan.width,
        )

    def _emit_finish(self, partial: int, parts: int) -> Function:
        """Return the function that adds up the partial results of all parts, in order."""
        code = self.code
        code.lines, code.entry = [], []
        if parts > 1:
            with code.loop("0", partial // self.plan.size, self.plan.width) as i, code.loop("1", parts) as part:
                to = self.at("%partial", i)
                more = self.at(to, code.times(part, partial // self.plan.size))
                both = [code.op(f"load {self.vector}, ptr {p}, align {self.plan.size}") for p in (to, more)]
                total = code.op(f"fadd {self.vector} {both[0]}, {both[1]}")
                code.line(f"store {self.vector} {total}, ptr {to}, align {self.plan.size}")
        self.emit_results("%z", "%partial")
        return make_function(code.body, "ptr noalias %z", "ptr noalias %partial", "i64 %parts")

    def emit_results(self, z: str, sums: str) -> None:
        """Emit the stores of the gradient of a filter, from its sums, which are in the order of tiles."""
        code = self.code
        for block, last in self._loop_over_blocks():
            with self._loop_over_tiles(block) as (_, row, slot):
                kept = [
                    [self._partial_place(sums, slot, r, v) for v in range(self.plan.vectors)]
                    for r in range(len(self.plan.rows))
                ]
                totals = [[code.op(f"load {self.vector}, ptr {p}, align {self.plan.size}") for p in ps] for ps in kept]
                self._store_tile(z, row, code.times(block, self.plan.vectors * self.plan.width), totals, last)

    def _read(self, pointer: str, v: int, last: int) -> str:
        return self.code.read(pointer, self.type, self.plan.size, self.plan.width, self._mask(v, last))

    def _mask(self, v: int, last: int) -> str | None:
        return first_lanes(last, self.plan.width) if v == self.plan.vectors - 1 else None
