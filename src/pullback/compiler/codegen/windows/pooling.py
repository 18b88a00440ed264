"""Kernels of pooling: the maximum or the sum of every window, and their gradients.

Lanes are channels.  The order of operations is that of the ops' NumPy kernels: of equal maxima the first one counts,
and NaN is larger than any number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from itertools import product
from math import inf, nan, prod

from pullback.compiler.builder import Value, Variable, constant, first_lanes, vector
from pullback.compiler.codegen.kernel_code import KernelCode, make_kernel
from pullback.compiler.codegen.windows.padding import RANGE, WindowKernel
from pullback.compiler.math.functions import VectorFunctions
from pullback.compiler.schedule.windows import PoolingPlan


@lru_cache(256)
def emit_pooling(plan: PoolingPlan) -> KernelCode:
    """Return the kernel of a pooling op or its gradient."""
    return PoolingWriter(plan).write()


class PoolingWriter(WindowKernel):
    """Emits the kernel of one pooling."""

    plan: PoolingPlan

    def __init__(self, plan: PoolingPlan) -> None:
        super().__init__(plan)
        self.p, self.vector = plan.p, vector(self.type, plan.width)

    def write(self) -> KernelCode:
        p, code, images = self.p, self.code, [f"%{name}" for name in self.plan.images]
        names = [*(("%x", "%s", "%y") if p.symbol in ("give", "take") else ("%x",)), "%z"]
        fills = {"%x": -inf if p.symbol == "largest" else 0.0, "%s": nan}  # NaN: nothing outside is the maximum
        frames = {name: self._find_frame(i) for i, name in enumerate([*images, "%z"])} if self.plan.framed else {}
        for name in images:
            if self.plan.framed:
                self.fill_frame(frames[name], fills[name])
        with code.loop("%lo", "%hi") as n:
            inputs, results = code.times(n, self.plan.image), code.times(n, prod(p.windows.out) * p.channels)
            at: dict[str, str] = {}
            for name in images:
                at[name] = self.at(name, inputs)
                if self.plan.framed:
                    self.copy_image(at[name], frames[name])
                    at[name] = frames[name]
            for name in (n for n in names if n not in images):
                at[name] = self.at(name, results)
            if p.symbol in ("give", "spread"):
                self._emit_gradient(at, self.at("%z", inputs), frames.get("%z"))
            else:
                self._emit_windows(at)
        return make_kernel(code, *(f"ptr noalias {name}" for name in names), *RANGE)

    def _find_frame(self, i: int) -> str:
        return self.code.at("i8", "%scratch", i * self.plan.frame_bytes)

    def _emit_gradient(self, at: dict[str, str], image: str, frame: str | None) -> None:
        """Emit a gradient with respect to the image, which begins as zeros."""
        whole = self.plan.image * self.plan.size
        if frame is None:
            if not self.plan.covers:
                self.code.clear_bytes(image, whole)
            self._emit_windows({**at, "%z": image})
            return
        if not self.plan.covers:
            self.code.clear_bytes(frame, self.plan.frame_bytes)
        self._emit_windows({**at, "%z": frame})
        if prod(i.stop - i.start for i in self.plan.inside) * self.plan.channels < self.plan.image:
            self.code.clear_bytes(image, whole)
        self.copy_image(image, frame, back=True)

    def _emit_windows(self, at: dict[str, str]) -> None:
        """Emit all windows, a vector of channels at a time."""
        p, code, w = self.p, self.code, self.p.windows
        emit_window = EMIT_WINDOW[p.symbol]
        place, row = str(self.plan.first), "0"
        with ExitStack() as loops:
            for length, stride, unit in zip(w.out, w.strides, self.plan.units, strict=False):
                i = loops.enter_context(code.loop("0", length))
                place = code.add(place, code.times(i, stride * unit))
                row = code.add(code.times(row, length), i)
            row = code.times(row, p.channels)
            whole = p.channels // self.plan.width * self.plan.width
            if whole:
                with code.loop("0", whole, self.plan.width) as c:
                    emit_window(self, at, code.add(place, c), code.add(row, c), None)
            if whole < p.channels:
                mask = first_lanes(p.channels - whole, self.plan.width)
                emit_window(self, at, code.add(place, str(whole)), code.add(row, str(whole)), mask)

    # ---- one window

    def _read(self, pointer: str, mask: str | None) -> Value:
        return self._value(self.code.read(pointer, self.type, self.plan.size, self.plan.width, mask))

    def _write(self, x: Value, pointer: str, mask: str | None) -> None:
        self.code.write(x.name, pointer, self.type, self.plan.size, self.plan.width, mask)

    def _value(self, name: str) -> Value:
        return Value(self.code, name, self.plan.dtype, self.plan.width)

    def _number(self, x: float) -> Value:
        return constant(self.code, x, self.plan.dtype, self.plan.width)

    def _visit_elements(self, first: str, visit: Callable[[str], None]) -> None:
        """Call ``visit`` with the offset of each element of a window."""
        size = self.p.windows.size
        if self.plan.is_unrolled:
            for at in product(*map(range, size)):
                visit(self.code.add(first, str(sum(i * t for i, t in zip(at, self.plan.taps, strict=True)))))
            return
        with ExitStack() as loops:
            for k, tap in zip(size, self.plan.taps, strict=True):
                first = self.code.add(first, self.code.times(loops.enter_context(self.code.loop("0", k)), tap))
            visit(first)

    def _reduce_window(
        self, first: str, take: Callable[[str], Value], join: Callable[..., Value], start: float
    ) -> Value:
        """Return the elements of a window combined axis by axis, the first one innermost."""
        size, code = self.p.windows.size, self.code

        def reduce_axes(axis: int, place: str) -> Value:
            if axis < 0:
                return take(place)
            k, tap = size[axis], self.plan.taps[axis]
            if self.plan.is_unrolled:
                total = reduce_axes(axis - 1, place)
                for ahead in range(tap, k * tap, tap):
                    total = join(total, reduce_axes(axis - 1, code.add(place, str(ahead))))
                return total
            so_far = Variable(self._number(start))
            with code.loop("0", k) as i:
                more = reduce_axes(axis - 1, code.add(place, code.times(i, tap)))
                so_far.set(join(so_far.get(), more))
            return so_far.get()

        return reduce_axes(len(size) - 1, first)

    def _emit_largest(self, at: dict[str, str], place: str, row: str, mask: str | None) -> None:
        lanes = VectorFunctions(self.code)
        z = self._reduce_window(place, lambda p: self._read(self.at(at["%x"], p), mask), lanes.maximum, -inf)
        self._write(z, self.at(at["%z"], row), mask)

    def _emit_sum(self, at: dict[str, str], place: str, row: str, mask: str | None) -> None:
        z = self._reduce_window(place, lambda p: self._read(self.at(at["%x"], p), mask), lambda a, b: a + b, -0.0)
        self._write(z, self.at(at["%z"], row), mask)

    def _accumulate(self, x: Value, pointer: str, mask: str | None) -> None:
        """Store a vector, added to what is there if windows overlap."""
        self._write(x if self.plan.apart else self._read(pointer, mask) + x, pointer, mask)

    def _emit_spread(self, at: dict[str, str], place: str, row: str, mask: str | None) -> None:
        """Emit the gradient of a sum: the cotangent of a window is added to each of its elements."""
        g = self._read(self.at(at["%x"], row), mask)
        g = g if not self.plan.apart else self._number(0.0) + g  # -0 becomes 0, as where it is added to 0
        self._visit_elements(place, lambda p: self._accumulate(g, self.at(at["%z"], p), mask))

    def _emit_give(self, at: dict[str, str], place: str, row: str, mask: str | None) -> None:
        """Emit the gradient of a maximum: the cotangent of a window goes to its first largest element."""
        g, largest = (self._read(self.at(at[name], row), mask) for name in ("%x", "%y"))
        lanes, zero = VectorFunctions(self.code), self._number(0.0)
        left = Variable(g)  # the cotangent, until an element has received it; then zeros

        def give(p: str) -> None:
            hit = self._read(self.at(at["%s"], p), mask).compare("oeq", largest)
            rest = left.get()
            self._accumulate(lanes.select(hit, rest, zero), self.at(at["%z"], p), mask)
            left.set(lanes.select(hit, zero, rest))

        self._visit_elements(place, give)

    def _emit_take(self, at: dict[str, str], place: str, row: str, mask: str | None) -> None:
        """Emit the transpose of ``_emit_give``: of each window, take the element where the maximum was first."""
        largest = self._read(self.at(at["%y"], row), mask)
        lanes, zero = VectorFunctions(self.code), self._number(0.0)
        total, left = Variable(zero), Variable(self._number(1.0))  # left: 0 once it is found

        def take(p: str) -> None:
            hit = self._read(self.at(at["%s"], p), mask).compare("oeq", largest)
            rest, x = left.get(), self._read(self.at(at["%x"], p), mask)
            total.set(total.get() + lanes.select(hit, x * rest, zero))
            left.set(lanes.select(hit, zero, rest))

        self._visit_elements(place, take)
        self._write(total.get(), self.at(at["%z"], row), mask)


# How a vector of channels of one window is computed, by the symbol in the lowering of the op.
EMIT_WINDOW: dict[str, Callable[[PoolingWriter, dict[str, str], str, str, str | None], None]] = {
    "largest": PoolingWriter._emit_largest,
    "sums": PoolingWriter._emit_sum,
    "spread": PoolingWriter._emit_spread,
    "give": PoolingWriter._emit_give,
    "take": PoolingWriter._emit_take,
}
