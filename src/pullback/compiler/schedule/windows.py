"""Plans of convolutions and pooling: frames for padding, tiles of results, parts and scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from math import isqrt, prod
from typing import Any, NamedTuple

from pullback.compiler.ir.graph import Node, compute_strides
from pullback.compiler.ir.windows import Convolution, Pooling, Winograd, count_examples
from pullback.compiler.schedule.arena import round_up
from pullback.compiler.schedule.work import Work, estimate_window_time
from pullback.compiler.target import LINE_BYTES, Options, Target
from pullback.numerics.windows import Windows, find_frame_slices

MAX_UNROLLED = 120  # vector multiplications in the unrolled body of the innermost loop
MIN_DIVIDED = 3_200_000  # multiplications from which on a sum over images is divided into parts
MAX_UNROLLED_WINDOW = 16  # elements of a pooling window up to which loops over it are unrolled
PARTS = 4
MAX_PART_BYTES = 512 * 1024  # bytes of the partial sum of such a part
RIGHT_SHARE = 3 / 4  # of the first-level cache that the right matrix may take
IMAGE_SHARE = 3 / 4  # of the second-level cache that an image may take, to be still there for the next columns
FILTER_SHARE = 1 / 2  # of the second-level cache that a filter may take, to be still there for the next tile
STRIP_SHARE = 3 / 16  # of the second-level cache that a strip of an image and its results may take
MIN_SUM_STEPS = 24  # steps of a sum from which on the overhead of its loop is small
TILED_SHARE = 1 / 2  # of the second-level cache that the transformed tiles of a strip and their products may take
# Cycles, fitted to the times of some hundred tilings on AVX2 and AVX-512: of a load; of a step besides its sums and
# loads; in addition for a vector or a line from the second-level cache, and for a line from beyond it.
READ, STEP, FAR, FROM_MEMORY = 0.75, 1.5, 0.25, 4


class WindowCall(NamedTuple):
    """One call of a convolution or pooling node: its plan, its arguments, and its work, which threads may share."""

    plan: ConvolutionPlan | PoolingPlan | WinogradPlan
    args: tuple[int, ...]
    work: Work

    def __str__(self) -> str:
        return f"{self.plan}, {self.work}"


def plan_windows(n: Node, target: Target, options: Options) -> tuple[WindowCall, ...]:
    """Return the calls that compute a convolution or pooling node."""
    return tuple(_plan_call(n, call, args, target, options) for call, args in n.data.calls)


def _plan_call(
    n: Node, call: Convolution | Pooling | Winograd, args: tuple[int, ...], target: Target, options: Options
) -> WindowCall:
    plan = PLANS[type(call)](call, target)
    is_shared = count_examples(n.data) == 1
    work = plan.work.share(estimate_window_time(n, int(call.work)), options.threads) if is_shared else plan.work
    return WindowCall(plan, args, work)


class FramePlan:
    """The frame of a kernel's images: larger memory into which an image is copied if its windows reach beyond it."""

    def __init__(self, dtype: str, space: tuple[int, ...], channels: int, windows: Windows) -> None:
        self.dtype, self.space, self.channels, self.windows = dtype, space, channels, windows
        self.size = int(dtype[1])
        before, reach = windows.before, windows.reach
        self.inside, self.outside = find_frame_slices(windows, space)
        self.framed = any(b > 0 or r - b > n for b, r, n in zip(before, reach, space, strict=True))
        self.frame = reach if self.framed else space
        self.units = compute_strides((*self.frame, channels))
        self.image = prod(space) * channels
        self.frame_bytes = round_up(prod(self.frame) * channels * self.size) if self.framed else 0
        self.first = 0 if self.framed else -sum(b * u for b, u in zip(before, self.units, strict=False))


@lru_cache(256)
def plan_pooling(p: Pooling, target: Target) -> PoolingPlan:
    """Return the plan of a pooling op or its gradient."""
    return PoolingPlan(p, target)


# By symbol of the op: the arrays that are images, which have frames if windows reach beyond them.
IMAGES = {"largest": ("x",), "sums": ("x",), "take": ("x", "s"), "give": ("s",), "spread": ()}


class PoolingPlan(FramePlan):
    """The plan of one pooling op, whose lanes are channels."""

    def __init__(self, p: Pooling, target: Target) -> None:
        super().__init__(p.dtype, p.space, p.channels, p.windows)
        self.p, self.target = p, target
        self.width = target.vector_bytes // self.size
        while self.width > 1 and self.width // 2 >= p.channels:
            self.width //= 2
        w = p.windows
        wide = [(k - 1) * d + 1 for k, d in zip(w.size, w.dilations, strict=True)]
        self.apart = all(s >= k for s, k in zip(w.strides, wide, strict=True))  # whether no element is in two windows
        self.covers = self.apart and w.strides == w.size and w.reach == self.frame  # whether each is in exactly one
        self.taps = [d * u for d, u in zip(w.dilations, self.units, strict=False)]
        self.images = IMAGES[p.symbol]
        self.is_unrolled = prod(w.size) <= MAX_UNROLLED_WINDOW  # whether there are no loops over a window
        part = max(1, min(p.images, 16384 // max(self.image, 1)))
        frames = len(self.images) + 1 if self.framed else 0
        self.work = Work(p.images, part, scratch=self.frame_bytes * frames)

    def __str__(self) -> str:
        return f"pooling {self.p.symbol}, width {self.width}"


class WindowAxis(NamedTuple):
    """An axis of windows, or within a window."""

    length: int
    step: int  # stride in the image, in elements
    rows: int  # stride in the other two arrays, in rows


class Tiling(NamedTuple):
    """How many results are in registers, along each axis and as vectors of columns, and how many steps of the sums are
    unrolled because they use the same elements."""

    tile: tuple[int, ...]
    vectors: int
    steps: int


@lru_cache(256)
def plan_convolution(c: Convolution, target: Target) -> ConvolutionPlan:
    """Return the plan of a convolution."""
    return ConvolutionPlan(c, target)


class ConvolutionPlan(FramePlan):
    """The plan of one convolution: a tile of results stays in registers during the loops over their windows."""

    def __init__(self, c: Convolution, target: Target) -> None:
        super().__init__(c.dtype, c.space, c.channels, c.windows)
        self.c, self.target = c, target
        self.width = target.vector_bytes // self.size
        while self.width > 4 and self.width // 2 >= c.depth:
            self.width //= 2
        self.pixels = prod(c.windows.out if c.placement is None else c.placement.space)  # pixels of the result
        pixels, taps = self._list_axes()
        along, summed = (taps, pixels) if c.is_filter_gradient else (merge_axes(pixels), taps)
        self.along = [a for a in along if a.length > 1] or along[-1:]
        filter = prod(c.windows.size) * c.channels * c.depth * self.size
        # Whether the whole filter stays in the cache, so that a tile is computed for all columns at once.
        self.keeps_filter = (
            not c.is_filter_gradient and not c.is_depthwise and filter <= FILTER_SHARE * target.second_cache
        )
        self.tile, self.vectors, steps = choose_tiling(self, summed, target)
        short = summed.pop(len(c.space) - 1)
        self.taken = [(i * short.step, i * short.rows) for i in range(steps)]  # offsets of the steps that are unrolled
        summed.insert(len(c.space) - 1, WindowAxis(short.length // steps, short.step * steps, short.rows * steps))
        self.summed = merge_axes(summed)
        # For the gradient of a filter, strips of an image that stay in the cache for all tiles.
        high = self._choose_strip() if c.is_filter_gradient else self.summed[0].length
        self.strips = self.summed[0].length // high
        self.summed[0] = self.summed[0]._replace(length=high)  # the sums of a strip
        self.counts = tuple(-(-a.length // t) for a, t in zip(self.along, self.tile, strict=True))
        self.blocks = -(-c.depth // (self.width * self.vectors))
        self.across = c.panel or c.depth  # elements from one row of the right matrix to the next
        self.panel = prod(c.windows.size) * c.channels * c.panel
        self.rows = [*product(*map(range, self.tile))]
        self.work = self._plan_work()

    def __str__(self) -> str:
        tile = " × ".join(map(str, self.tile))
        return f"convolution, tile {tile}, vectors {self.vectors}, width {self.width}"

    def _choose_strip(self) -> int:
        """Return how much of the first axis of the sums is a strip, which the caches hold with its results."""
        (length, step, rows), *rest = self.summed
        each = (step + rows * self.c.depth) * self.size
        divisors = [n for d in range(1, isqrt(length) + 1) if length % d == 0 for n in (d, length // d)]
        sizes = self.target.first_cache, STRIP_SHARE * self.target.second_cache
        fitting = [max((n for n in divisors if n * each <= most), default=1) for most in sizes]
        return next((n for n in fitting if n * prod(a.length for a in rest) >= MIN_SUM_STEPS), fitting[-1])

    def _plan_work(self) -> Work:
        """Return the work, whose rows are images; for the gradient of a filter, a part sums over its images."""
        c = self.c
        if not c.is_filter_gradient:
            return Work(c.images, 1, scratch=self.frame_bytes)
        slots = self.blocks * prod(self.counts) * len(self.rows) * self.vectors * self.width * self.size
        partial = round_up(slots)
        return Work(c.images, _choose_part(c, partial), partial, self.frame_bytes)

    def _list_axes(self) -> tuple[list[WindowAxis], list[WindowAxis]]:
        """Return the axes of windows, and those within a window."""
        c, w = self.c, self.c.windows
        places = compute_strides(w.out)
        if c.placement is not None:
            places = tuple(s * u for s, u in zip(c.placement.steps, compute_strides(c.placement.space), strict=True))
        rows = compute_strides(w.size if c.is_depthwise else (*w.size, c.channels))
        pixels = [WindowAxis(n, s * u, r) for n, s, u, r in zip(w.out, w.strides, self.units, places, strict=False)]
        taps = [WindowAxis(n, d * u, r) for n, d, u, r in zip(w.size, w.dilations, self.units, rows, strict=False)]
        return pixels, taps if c.is_depthwise else [*taps, WindowAxis(c.channels, 1, 1)]


def _choose_part(c: Convolution, partial: int) -> int:
    """Return how many images are a part of a sum over images, whose partial sums have so many bytes."""
    in_parts = c.work >= MIN_DIVIDED and partial <= MAX_PART_BYTES
    return -(-c.images // PARTS) if in_parts else c.images


def merge_axes(axes: list[WindowAxis]) -> list[WindowAxis]:
    """Return axes with neighbours merged where their strides allow it.

    >>> merge_axes([WindowAxis(5, 30, 6), WindowAxis(3, 2, 2), WindowAxis(2, 1, 1)])
    [WindowAxis(length=5, step=30, rows=6), WindowAxis(length=6, step=1, rows=1)]
    """
    merged: list[WindowAxis] = []
    for axis in axes:
        before = merged[-1] if merged else WindowAxis(1, 0, 0)
        if before.length == 1 or (before.step, before.rows) == (axis.step * axis.length, axis.rows * axis.length):
            merged[-1:] = [axis._replace(length=axis.length * before.length)]
        elif axis.length != 1:
            merged.append(axis)
    return merged


SharedElements = list[tuple[int, list[tuple[int, int]]]]


def find_shared_elements(
    rows: list[tuple[int, ...]], along: list[WindowAxis], taken: list[tuple[int, int]]
) -> SharedElements:
    """Return offsets in the image, each with the rows of a tile and the steps that use it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for r, at in enumerate(rows):
        for i, (ahead, _) in enumerate(taken):
            place = ahead + sum(a * axis.step for a, axis in zip(at, along, strict=True))
            found.setdefault(place, []).append((r, i))
    return sorted(found.items())


def _estimate_reload(s: ConvolutionPlan, target: Target) -> float:
    """Return the cycles of reading an image again, for each block of columns, that the cache does not hold."""
    image = 0 if s.c.is_filter_gradient or s.keeps_filter else prod(s.frame) * s.channels * s.size
    return image / LINE_BYTES * FROM_MEMORY if image > IMAGE_SHARE * target.second_cache else 0.0


def choose_tiling(s: ConvolutionPlan, summed: list[WindowAxis], target: Target) -> Tiling:
    """Return the tiling of least estimated time: enough sums at once, few of them computed twice, and few loads."""
    lengths, columns = [a.length for a in s.along], -(-s.c.depth // s.width)
    short, all_steps = summed[len(s.c.space) - 1], prod(a.length for a in summed)
    again = _estimate_reload(s, target)
    best, least = Tiling((1,) * len(lengths), 1, 1), float("inf")
    for vectors, steps, tile in _list_tilings(s, short.length, target):
        far = all_steps * max(vectors * s.width * s.size, LINE_BYTES) > RIGHT_SHARE * target.first_cache
        rows, blocks = prod(tile), columns // vectors
        times = all_steps / steps * prod(-(-n // t) for n, t in zip(lengths, tile, strict=True)) * blocks
        busy = max(rows * vectors / 2, 4) * steps  # two multiply-adds begin in a cycle, and one takes four
        more = steps * (STEP + (rows * vectors * 1.5 + 20) / all_steps + far * vectors * FAR)
        if times * (busy + more) + again * blocks <= least:
            places = {i * short.step for i in range(steps)}  # of the elements of the image, as in find_shared_elements
            for n, axis in zip(tile, s.along, strict=True):
                places = {place + i * axis.step for i in range(n) for place in places}
            reads = len(places) * (vectors if s.c.is_depthwise else 1) + vectors * steps
            more += far * s.c.is_filter_gradient * len({place * s.size // LINE_BYTES for place in places}) * FAR
            total = times * (max(busy, reads * READ) + more) + again * blocks
            if total < least or (total == least and vectors == best.vectors):  # of equal ones, the tile with more rows
                best, least = Tiling(tile, vectors, steps), total
    return best


def _list_tilings(s: ConvolutionPlan, length: int, target: Target) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield (vectors, unrolled steps, tile) that fit the registers; ``length`` is that of the axis of the steps."""
    columns, lengths = -(-s.c.depth // s.width), [a.length for a in s.along]
    wide = s.c.panel // s.width or columns
    for vectors in (v for v in (2, 1, 3, 4, 5, 7) if columns % v == 0 == wide % v):
        for steps in (n for n in range(7, 0, -1) if length % n == 0):
            # the right matrix takes registers, too, and an element of the left
            most = (target.registers - 2) // vectors - steps
            most = most if steps == 1 else min(most, MAX_UNROLLED // (vectors * steps))
            for tile in _list_tiles(lengths, most):
                if 2 * prod(tile) >= min(most, prod(lengths)):  # else a larger tile is better
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


@lru_cache(256)
def plan_winograd(w: Winograd, target: Target) -> WinogradPlan:
    """Return the plan of a convolution by transformed tiles."""
    return WinogradPlan(w, target)


class WinogradPlan(FramePlan):
    """The plan of a convolution by tiles of 2 × 2 results: strips of tiles are transformed, multiplied and added up.

    If the number of rows or columns is odd, the last tile overlaps the one before, as the last strip does; not for the
    gradient of a filter, in which nothing may count twice.
    """

    def __init__(self, w: Winograd, target: Target) -> None:
        c = w.convolution
        super().__init__(c.dtype, c.space, c.channels, c.windows)
        self.c, self.target = c, target
        self.width = target.vector_bytes // self.size
        self.down, self.across = (-(-n // 2) for n in c.windows.out)  # tiles along each axis
        row = 16 * self.across * (c.channels + c.depth) * self.size
        most = max(1, int(TILED_SHARE * target.second_cache) // row)
        fitting = (
            n for n in range(-(-self.down // most), self.down + 1) if not (c.is_filter_gradient and self.down % n)
        )
        self.strips = next(fitting)
        self.high = -(-self.down // self.strips)  # rows of tiles in a strip
        self.tiles = self.high * self.across
        # A cache line between one of the 16 matrices and the next, so that they are in different sets of the cache.
        line = LINE_BYTES // self.size
        self.pixels, self.products = self.tiles * c.channels + line, self.tiles * c.depth + line
        one = Windows((1,), (1,), (1,), (0,), (self.tiles,))
        tiles = Convolution(c.dtype, 1, (self.tiles,), c.channels, c.depth, one, c.is_filter_gradient)
        self.product, self.direct = plan_convolution(tiles, target), plan_convolution(c, target)
        scratch = self.frame_bytes + 16 * (self.pixels + self.products) * self.size
        if not c.is_filter_gradient:
            self.work = Work(c.images, 1, scratch=scratch)
            return
        self.sums = max(16 * self.product.work.partial, self.direct.work.partial)  # bytes
        partial = round_up(9 * c.channels * c.depth * self.size)
        self.work = Work(c.images, _choose_part(c, partial), partial, scratch + self.sums)

    def __str__(self) -> str:
        return f"convolution by transformed tiles, strips {self.strips}, rows {self.high}, width {self.width}"


PLANS: dict[type, Callable[[Any, Target], Any]] = {
    Convolution: plan_convolution,
    Pooling: plan_pooling,
    Winograd: plan_winograd,
}
