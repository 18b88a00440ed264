"""Kernels of convolutions with 3 × 3 taps, and of the gradients of their filters, by tiles: Winograd's F(2 × 2, 3 × 3).

A tile of 2 × 2 results needs 4 × 4 pixels.  Sums and differences of these pixels are multiplied by 16 matrices, which
are sums of the filter's taps, and sums and differences of the 16 products are the results.  Infinities would
become NaN; where a result is not finite, the image is convolved tap by tap instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from pullback.compiler.builder import Value, Variable, vector
from pullback.compiler.codegen.kernel_code import Function, KernelCode, make_function, make_kernel
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
            self.code.clear_bytes("%scratch", plan.frame_bytes)
        names = ["%x", "%y"] if self.c.is_filter_gradient else ["%x", "%matrices", "%y", "%z"]
        self._emit_gradient() if self.c.is_filter_gradient else self._emit_convolution()
        kernel = make_kernel(code, *(f"ptr noalias {name}" for name in names), *RANGE)
        if not self.c.is_filter_gradient:
            return kernel
        return kernel._replace(finish=self._emit_finish(), declared=frozenset(code.declared))

    def _emit_convolution(self) -> None:
        code, plan, c = self.code, self.plan, self.c
        height, width = c.windows.out
        with code.loop("%lo", "%hi") as image:
            z = self.at("%z", code.times(image, height * width * c.depth))
            spoilt = self._clear_flag()
            with self._loop_over_strips(image) as (first, pixels, products):
                with code.loop("0", 16) as i:
                    self.product.emit_sums(
                        self.at(pixels, code.times(i, plan.pixels)),
                        self.at("%matrices", code.times(i, c.channels * c.depth)),
                        self.at(products, code.times(i, plan.products)),
                    )
                self._add_products(products, first, z, spoilt)
            with self._if_spoilt(spoilt):
                self.direct.emit_image(image)

    def _emit_gradient(self) -> None:
        """Emit the gradient of the filter, summed over a part of the images."""
        code, plan, c = self.code, self.plan, self.c
        height, width = c.windows.out
        sums = self.at("%scratch", str((plan.work.scratch - plan.sums) // plan.size))
        each = plan.product.work.partial // plan.size
        self.code.clear_bytes(sums, plan.sums)
        with code.loop("%lo", "%hi") as image:
            y = self.at("%y", code.times(image, height * width * c.depth))
            with self._loop_over_strips(image) as (first, pixels, weights):
                self._transform_results(y, first, weights)
                with code.loop("0", 16) as i:
                    self.product.emit_sums(
                        self.at(pixels, code.times(i, plan.pixels)),
                        self.at(weights, code.times(i, plan.products)),
                        self.at(sums, code.times(i, each)),
                    )
        spoilt = self._clear_flag()
        self._transform_sums(sums, each, spoilt)
        with code.loop("0", 9) as tap:
            there = self.at("%partial", code.times(tap, c.channels * c.depth))
            self.product.emit_results(there, self.at(sums, code.times(tap, each)))
        with self._if_spoilt(spoilt):
            self.code.clear_bytes(sums, plan.sums)
            with code.loop("%lo", "%hi") as image:
                self.direct.emit_image(image, sums)
            self.direct.emit_results("%partial", sums)

    def _emit_finish(self) -> Function:
        """Return the function that adds up the partial results of all parts, in order."""
        code, plan = self.code, self.plan
        code.lines, code.entry = [], []
        with code.loop("0", 9 * self.c.channels * self.c.depth, plan.width) as lane:
            parts = [
                self._load("%partial", lane, part * plan.work.partial // plan.size) for part in range(plan.work.parts)
            ]
            self._store(sum(parts[1:], parts[0]), "%z", lane, 0)
        return make_function(code.body, "ptr noalias %z", "ptr noalias %partial", "i64 %parts")

    @contextmanager
    def _loop_over_strips(self, image: str) -> Iterator[tuple[str, str, str]]:
        """Loop over strips of an image; yield the first row of tiles, the transformed pixels, and memory after them."""
        code, plan = self.code, self.plan
        x = self.at("%x", code.times(image, plan.image))
        if plan.framed:
            self.copy_image(x, "%scratch")
            x = "%scratch"
        x = self.at(x, str(plan.first))
        pixels = self.at("%scratch", str(plan.frame_bytes // plan.size))
        with code.loop("0", plan.strips) as strip:
            first = self._clip(code.times(strip, plan.high), plan.down - plan.high, plan.down % plan.high)
            self._transform_pixels(x, first, pixels)
            yield first, pixels, self.at(pixels, str(16 * plan.pixels))

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

    def _add_products(self, products: str, first: str, z: str, spoilt: Variable) -> None:
        """Emit the results of each tile in a strip."""
        code, plan, width = self.code, self.plan, self.c.windows.out[1]
        with self._loop_over_tiles(first) as (row, column, number), code.loop("0", self.c.depth, plan.width) as lane:
            here = code.add(code.times(number, self.c.depth), lane)
            m = [[self._load(products, here, (4 * i + j) * plan.products) for j in range(4)] for i in range(4)]
            rows = [_add_four(column) for column in zip(*m, strict=True)]
            there = code.add(code.times(code.add(code.times(row, width), column), self.c.depth), lane)
            results = [_add_four(several) for several in zip(*rows, strict=True)]
            for i, pair in enumerate(results):
                for j, v in enumerate(pair):
                    self._store(v, z, there, (i * width + j) * self.c.depth)
            self._flag([v for pair in results for v in pair], spoilt)

    def _transform_results(self, y: str, first: str, weights: str) -> None:
        """Emit the 16 sums of the cotangents of the results of each tile in a strip."""
        code, plan, width = self.code, self.plan, self.c.windows.out[1]
        with self._loop_over_tiles(first) as (row, column, number), code.loop("0", self.c.depth, plan.width) as lane:
            here = code.add(code.times(code.add(code.times(row, width), column), self.c.depth), lane)
            g = [[self._load(y, here, (i * width + j) * self.c.depth) for j in range(2)] for i in range(2)]
            rows = [_spread_two(column) for column in zip(*g, strict=True)]
            there = code.add(code.times(number, self.c.depth), lane)
            for i, several in enumerate(zip(*rows, strict=True)):
                for j, v in enumerate(_spread_two(several)):
                    self._store(v, weights, there, (4 * i + j) * plan.products)

    def _transform_sums(self, sums: str, each: int, spoilt: Variable) -> None:
        """Emit the gradients of the 9 taps, over the first 9 of the 16 sums."""
        code = self.code
        with code.loop("0", each, self.plan.width) as lane:
            s = [[self._load(sums, lane, (4 * i + j) * each) for j in range(4)] for i in range(4)]
            rows = [_halve_four(column) for column in zip(*s, strict=True)]
            taps = [tap for several in zip(*rows, strict=True) for tap in _halve_four(several)]
            for i, tap in enumerate(taps):
                self._store(tap, sums, lane, i * each)
            self._flag(taps, spoilt)

    def _clear_flag(self) -> Variable:
        """Return a vector of 0, which becomes NaN where a result is not finite."""
        return Variable(self._value("zeroinitializer"))

    def _flag(self, results: Sequence[Value], flag: Variable) -> None:
        total = flag.get()
        for v in results:
            total = total + v * 0.0
        flag.set(total)

    @contextmanager
    def _if_spoilt(self, flag: Variable) -> Iterator[None]:
        """Emit a block for the case that a result is not finite."""
        code, width = self.code, self.plan.width
        total = flag.get()
        bits = code.op(f"bitcast <{width} x i1> {total.compare('uno', total).name} to i{width}")
        with code.when(code.op(f"icmp ne i{width} {bits}, 0"), unlikely=True):
            yield

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
        return self.code.minimum(start, last)

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


def _spread_two(g: Sequence[Value]) -> list[Value]:
    """Return the cotangents of 4 products along an axis from those of the 2 results."""
    a, b = g
    return [a, a + b, a - b, b]


def _halve_four(s: Sequence[Value]) -> list[Value]:
    """Return the cotangents of 3 taps along an axis from those of their 4 sums."""
    a, b, c, d = s
    half = (b + c) * 0.5
    return [a + half, (b - c) * 0.5, half + d]
