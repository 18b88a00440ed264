"""Padding for convolutions and pooling: an image whose windows reach beyond it is copied into a larger frame."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from pullback.compiler.builder import FLOATS, Code, literal
from pullback.compiler.ir.graph import compute_strides
from pullback.compiler.schedule.windows import FramePlan

RANGE = "i64 %lo", "i64 %hi", "ptr noalias %partial", "ptr noalias %scratch"  # the last parameters of a kernel


class WindowKernel:
    """The base of kernels over the windows of images; the rows of its work are the images."""

    def __init__(self, plan: FramePlan, code: Code | None = None) -> None:
        self.plan, self.code, self.type = plan, code or Code(), FLOATS[plan.dtype]

    def at(self, base: str, place: str) -> str:
        return base if place == "0" else self.code.op(f"getelementptr {self.type}, ptr {base}, i64 {place}")

    def fill_zeros(self, pointer: str, size: int) -> None:
        """Fill memory with zeros."""
        self.code.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.code.line(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")

    def fill_frame(self, pointer: str, number: float) -> None:
        """Fill a frame with one number."""
        if not number:
            self.fill_zeros(pointer, self.plan.frame_bytes)
            return
        with self.code.loop("0", self.plan.frame_bytes // self.plan.size) as i:
            self.code.line(f"store {self.type} {literal(number, self.plan.dtype, 1)}, ptr {self.at(pointer, i)}")

    def copy_image(self, image: str, frame: str, back: bool = False) -> None:
        """Copy an image into the middle of its frame, or back from there."""
        code, steps = self.code, compute_strides((*self.plan.space, self.plan.channels))
        lengths = [i.stop - i.start for i in self.plan.inside]
        if not prod(lengths):
            return
        code.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        axes = [*zip(self.plan.inside, self.plan.outside, steps, self.plan.units, strict=False)]
        there, here = str(sum(i.start * s for i, _, s, _ in axes)), str(sum(o.start * u for _, o, _, u in axes))
        with ExitStack() as loops:
            for length, (_, _, step, unit) in zip(lengths[:-1], axes, strict=False):
                i = loops.enter_context(code.loop("0", length))
                there, here = code.add(there, code.times(i, step)), code.add(here, code.times(i, unit))
            ends = [self.at(frame, here), self.at(image, there)]
            to, source = reversed(ends) if back else ends
            where = f"ptr align {self.plan.size} {to}, ptr align {self.plan.size} {source}"
            size = lengths[-1] * self.plan.channels * self.plan.size
            code.line(f"call void @llvm.memcpy.p0.p0.i64({where}, i64 {size}, i1 false)")
