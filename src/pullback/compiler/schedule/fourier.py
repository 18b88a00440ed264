"""Plans of Fourier transforms: how many are computed at once, scratch memory, and threads."""

from __future__ import annotations

from typing import NamedTuple

from pullback.compiler.ir.fourier import count_transforms, is_halved
from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.work import Work
from pullback.compiler.target import CONFLICT_BYTES, LINE_BYTES, Options, Target

MIN_VECTOR_BYTES = 16  # the narrowest vectors that are used
SCRATCH_SHARE = 1 / 4  # of the second-level cache that scratch memory may take; vectors are narrower where it is more
PART_NUMBERS = 16384  # about how many numbers a part transforms


class FourierPlan(NamedTuple):
    """How transforms along an axis are computed."""

    node: Node
    outer: int  # transforms along the axes before, and along those after, the axis
    inner: int
    width: int  # lanes, with a transform in each
    is_contiguous: bool  # whether lanes are neighbours in memory
    length: int  # of the complex transforms: half of the count of real numbers, where that is even
    buffer: int  # elements of one half of the scratch memory
    work: Work

    def __str__(self) -> str:
        return f"length {self.length}, width {self.width}, {self.work}"


def plan_fourier(n: Node, target: Target, options: Options) -> FourierPlan:
    """Return the plan of a node of transforms."""
    data, x = n.data, n.args[0]
    outer, inner = count_transforms(x.shape, data.axis)
    halved = is_halved(data, len(n.args) - 1)
    length = data.n // 2 if halved else data.n
    longest = max(length + halved, data.out if not data.is_real else 0)  # complex numbers in a lane
    collides = inner * x.dtype.itemsize % CONFLICT_BYTES == 0  # what is not used of a line is read once more then
    width = max(1, (LINE_BYTES if collides else target.vector_bytes) // x.dtype.itemsize)
    while (
        width * x.dtype.itemsize > MIN_VECTOR_BYTES
        and 4 * width * longest * x.dtype.itemsize > SCRATCH_SHARE * target.second_cache
        and not collides
    ):
        width //= 2
    is_contiguous = inner >= width
    blocks = outer * -(-inner // width) if is_contiguous else -(-outer * inner // width)
    buffer = 2 * width * longest
    scratch = 2 * buffer * x.dtype.itemsize
    work = Work(blocks, max(1, PART_NUMBERS // (width * data.n)), scratch=scratch)
    time = blocks * length * data.n.bit_length()
    return FourierPlan(n, outer, inner, width, is_contiguous, length, buffer, work.share(time, options.threads))
