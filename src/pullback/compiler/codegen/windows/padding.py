"""Padding for convolutions and pooling: an image whose windows reach beyond it is copied into a larger frame."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from pullback.compiler.builder import FLOATS, Code, literal
from pullback.compiler.ir.graph import compute_strides
from pullback.compiler.schedule.windows import FramePlan

RANGE = "i64 %lo", "i64 %hi", "ptr noalias %partial", "ptr noalias %scratch"  # the last parameters of these kernels


class WindowKernel:
    """The base of kernels over the windows of images; the rows of its work are the images."""

    def __init__(self, plan: FramePlan, code: Code | None = None) -> None:
        self.plan, self.code, self.type = plan, code or Code(), FLOATS[plan.dtype]

    def at(self, base: str, place: str) -> str:
        return self.code.at(self.type, base, place)

    def fill_frame(self, pointer: str, number: float) -> None:
        """Fill a frame with one number."""
        if not number:
            self.code.clear_bytes(pointer, self.plan.frame_bytes)
            return
        with self.code.loop("0", self.plan.frame_bytes // self.plan.size) as i:
            self.code.store(self.type, literal(number, self.plan.dtype, 1), pointer, i)

    def copy_image(self, image: str, frame: str, back: bool = False) -> None:
        """Copy an image into the middle of its frame, or back from there."""
        code, steps = self.code, compute_strides((*self.plan.space, self.plan.channels))
        lengths = [i.stop - i.start for i in self.plan.inside]
        if not prod(lengths):
            return
        axes = [*zip(self.plan.inside, self.plan.outside, steps, self.plan.units, strict=False)]
        there, here = str(sum(i.start * s for i, _, s, _ in axes)), str(sum(o.start * u for _, o, _, u in axes))
        with ExitStack() as loops:
            for length, (_, _, step, unit) in zip(lengths[:-1], axes, strict=False):
                i = loops.enter_context(code.loop("0", length))
                there, here = code.add(there, code.times(i, step)), code.add(here, code.times(i, unit))
            ends = [self.at(frame, here), self.at(image, there)]
            to, source = reversed(ends) if back else ends
            code.copy_bytes(to, source, lengths[-1] * self.plan.channels * self.plan.size, self.plan.size)
