"""Kernels of convolutions with 3 × 3 taps by transformed tiles: Winograd's F(2 × 2, 3 × 3).

A tile of 2 × 2 results needs 4 × 4 pixels.  Sums and differences of these pixels are multiplied by 16 matrices, which
are sums of the filter's taps, and sums and differences of the 16 products are the results.  NaN and infinities would
spread to all results of a tile; where a result is not finite, the image is convolved tap by tap instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from pullback.compiler.builder import Value, vector
from pullback.compiler.codegen.kernel_code import KernelCode, make_function
from pullback.compiler.codegen.windows.convolution import ConvolutionWriter
from pullback.compiler.codegen.windows.padding import RANGE, WindowKernel
from pullback.compiler.schedule.windows import WinogradPlan

Tile = tuple[str, str, str]  # the first row of its results, their first column, and its number in the strip


@lru_cache(256)
def emit_winograd(plan: WinogradPlan) -> KernelCode:
    """Return the kernel of a convolution by transformed tiles."""
    return WinogradWriter(plan).write()


class WinogradWriter(WindowKernel):
    """Emits the kernel of one convolution by transformed tiles."""

    plan: WinogradPlan

    def __init__(self, plan: WinogradPlan) -> None:
        super().__init__(plan)
        self.c, self.vector = plan.c, vector(self.type, plan.width)
        self.product = ConvolutionWriter(plan.product, self.code)
        self.direct = ConvolutionWriter(plan.direct, self.code)

    def write(self) -> KernelCode:
        code, plan = self.code, self.plan
        if plan.framed:
            self.fill_zeros("%scratch", plan.frame_bytes)
        with code.loop("%lo", "%hi") as image:
            self._emit_image(image)
        arrays = ("ptr noalias %x", "ptr noalias %matrices", "ptr noalias %y", "ptr noalias %z")
        return KernelCode(make_function(code.body, *arrays, *RANGE), plan.work, frozenset(code.declared))

    def _emit_image(self, image: str) -> None:
        code, plan, c = self.code, self.plan, self.c
        x = self.at("%x", code.times(image, plan.image))
        if plan.framed:
            self.copy_image(x, "%scratch")
            x = "%scratch"
        x = self.at(x, str(plan.first))
        height, width = c.windows.out
        z = self.at("%z", code.times(image, height * width * c.depth))
        pixels = self.at("%scratch", str(plan.frame_bytes // plan.size))
        products = self.at(pixels, str(16 * plan.pixels))
        spoilt = code.allocate(self.vector)  # 0, and NaN where a result is not finite
        code.line(f"store {self.vector} zeroinitializer, ptr {spoilt}, align 64")
        with code.loop("0", plan.strips) as strip:
            first = self._clip(code.times(strip, plan.high), plan.down - plan.high, plan.down % plan.high)
            self._transform_pixels(x, first, pixels)
            with code.loop("0", 16) as i:
                self.product.emit_sums(
                    self.at(pixels, code.times(i, plan.pixels)),
                    self.at("%matrices", code.times(i, c.channels * c.depth)),
                    self.at(products, code.times(i, plan.products)),
                )
            self._add_products(products, first, z, spoilt)
        self._mend(image, spoilt)

    def _transform_pixels(self, x: str, first: str, pixels: str) -> None:
        """Emit the 16 sums of the pixels of each tile in a strip."""
        code, plan, (down, right) = self.code, self.plan, self.plan.units[:2]
        with self._loop_over_tiles(first) as (row, column, number), code.loop("0", self.c.channels, plan.width) as lane:
            here = code.add(code.add(code.times(row, down), code.times(column, right)), lane)
            d = [[self._load(x, here, i * down + j * right) for j in range(4)] for i in range(4)]
            rows = [_subtract_four(column) for column in zip(*d, strict=True)]
            there = code.add(code.times(number, self.c.channels), lane)
            for i, several in enumerate(zip(*rows, strict=True)):
                for j, v in enumerate(_subtract_four(several)):
                    self._store(v, pixels, there, (4 * i + j) * plan.pixels)

    def _add_products(self, products: str, first: str, z: str, spoilt: str) -> None:
        """Emit the results of each tile in a strip."""
        code, plan, width = self.code, self.plan, self.c.windows.out[1]
        with self._loop_over_tiles(first) as (row, column, number), code.loop("0", self.c.depth, plan.width) as lane:
            here = code.add(code.times(number, self.c.depth), lane)
            m = [[self._load(products, here, (4 * i + j) * plan.products) for j in range(4)] for i in range(4)]
            rows = [_add_four(column) for column in zip(*m, strict=True)]
            there = code.add(code.times(code.add(code.times(row, width), column), self.c.depth), lane)
            flag = self._value(code.op(f"load {self.vector}, ptr {spoilt}, align 64"))
            for i, several in enumerate(zip(*rows, strict=True)):
                for j, v in enumerate(_add_four(several)):
                    self._store(v, z, there, (i * width + j) * self.c.depth)
                    flag = flag + v * 0.0
            code.line(f"store {self.vector} {flag.name}, ptr {spoilt}, align 64")

    def _mend(self, image: str, spoilt: str) -> None:
        """Emit the convolution of the image tap by tap, for the case that a result is not finite."""
        code, width = self.code, self.plan.width
        flag = self._value(code.op(f"load {self.vector}, ptr {spoilt}, align 64"))
        bits = code.op(f"bitcast <{width} x i1> {flag.compare('uno', flag).name} to i{width}")
        mend, after = code.block("mend"), code.block("after")
        code.branch(code.op(f"icmp ne i{width} {bits}, 0"), mend, after, unlikely=True)
        code.begin(mend)
        self.direct.emit_image(image)
        code.jump(after)
        code.begin(after)

    @contextmanager
    def _loop_over_tiles(self, first: str) -> Iterator[Tile]:
        """Loop over the tiles of the strip that begins with this row of tiles."""
        code, plan, (height, width) = self.code, self.plan, self.c.windows.out
        with code.loop("0", plan.high) as i, code.loop("0", plan.across) as j:
            row = self._clip(code.times(code.add(first, i), 2), height - 2, height % 2)
            column = self._clip(code.times(j, 2), width - 2, width % 2)
            yield row, column, code.add(code.times(i, plan.across), j)

    def _clip(self, start: str, last: int, needed: int) -> str:
        """Return where something begins that must not reach beyond the end."""
        if not needed:
            return start
        self.code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
        return self.code.op(f"call i64 @llvm.smin.i64(i64 {start}, i64 {last})")

    def _value(self, name: str) -> Value:
        return Value(self.code, name, self.plan.dtype, self.plan.width)

    def _load(self, base: str, here: str, ahead: int) -> Value:
        pointer = self.at(self.at(base, here), str(ahead))
        return self._value(self.code.op(f"load {self.vector}, ptr {pointer}, align {self.plan.size}"))

    def _store(self, v: Value, base: str, here: str, ahead: int) -> None:
        pointer = self.at(self.at(base, here), str(ahead))
        self.code.line(f"store {self.vector} {v.name}, ptr {pointer}, align {self.plan.size}")


def _subtract_four(x: Sequence[Value]) -> list[Value]:
    """Return the sums of 4 pixels along an axis that are multiplied by the sums of 3 taps."""
    a, b, c, d = x
    return [a - c, b + c, c - b, d - b]


def _add_four(m: Sequence[Value]) -> list[Value]:
    """Return the 2 results along an axis from 4 products."""
    a, b, c, d = m
    return [a + (b + c), (b - c) + d]
