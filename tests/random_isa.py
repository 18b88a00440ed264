"""Random programs for the code of one instruction set, each compiled and compared with what NumPy gives.

    PULLBACK_MAX_ISA=sse2 PULLBACK_CANARY=1 python tests/random_isa.py 0 20000

runs those with the seeds from 0 to 19,999.  Each seed is printed before its program is run, so that after a crash the
last line names it.  Axes have 0 or 1 element, or about as many as one of the vectors of some CPU has lanes.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

import pullback as pb

LENGTHS = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65]
FAR = [4095, 4096, 4097, 16_400, 40_001]  # some arrays are done in parts
MOST, MOST_FAR = 6000, 50_000  # elements of a value
FLOATS = ["f4", "f8"]
DTYPES = ["f4", "f8", "f4", "f8", "f4", "f8", "i8", "i4", "i2", "u1", "?"]
SPECIAL = [np.nan, np.inf, -np.inf, -0.0]
BITS = 20  # of a value that is exact in float32 whatever the order of additions

# Where a step of rounding may be a leap of the result, only values are used that have none.
LEAPING: list[Callable[..., Any]] = [
    np.abs, pb.relu, np.sign, np.floor, lambda x: np.rint(x * 1.0), lambda x: np.maximum(x, 0.5),
    lambda x: pb.clip_by_value(x, -1.0, 1.0),
    lambda x: np.where(x > 0.25, x, -x), lambda x: x % 2.0, pb.elu, pb.selu, lambda x: np.logical_not(x), pb.leaky_relu,
]  # fmt: skip
SMOOTH: list[Callable[..., Any]] = [
    np.tanh, pb.sigmoid, lambda x: np.exp(-x * x), lambda x: np.log1p(x * x), lambda x: np.sqrt(x * x + 1.0), np.sin,
    np.cos, pb.erf, pb.softplus, np.arctan, pb.gelu, lambda x: np.expm1(np.tanh(x)), lambda x: np.arcsinh(x),
    lambda x: 1.0 / (x * x + 1.0), pb.log_sigmoid, lambda x: np.power(np.abs(x) + 1.0, 0.3),
    lambda x: np.cbrt(x * x + 1.0),
]  # fmt: skip
PLAIN: list[Callable[..., Any]] = [lambda x: -x, lambda x: x * 2.0, lambda x: x - 0.5, lambda x: x * x, lambda x: 1 + x]
BOTH: list[Callable[..., Any]] = [np.add, np.subtract, np.multiply]
BOTH_SMOOTH: list[Callable[..., Any]] = [
    lambda x, y: x / (y * y + 1.0),
    lambda x, y: np.hypot(x, y + 3.0),
    np.logaddexp,
]
BOTH_LEAPING: list[Callable[..., Any]] = [
    np.maximum, np.minimum, lambda x, y: np.where(x > y, x, y), np.greater, np.less_equal, np.equal, np.not_equal,
    lambda x, y: np.where(np.equal(x, y), x * 0.5, y), np.logical_and,
]  # fmt: skip
FOLDS: list[Callable[..., Any]] = [np.sum, np.sum, np.sum, np.mean, np.var, pb.logsumexp]
FOLDS_LEAPING: list[Callable[..., Any]] = [np.max, np.min, np.any, np.all, np.argmax, np.argmin]


class Known(NamedTuple):
    """What is known of a value: the values it had eagerly, and how much it differs from others."""

    value: Any
    grid: float  # it is a multiple of 2 ** -grid; infinite: it is rounded
    scale: float  # the largest number that it was computed from
    error: float  # of what was rounded on the way, as a part of that


class Step(NamedTuple):
    function: Callable[..., Any]
    args: tuple[int, ...]


class Program:
    """Steps over a growing list of values, the first of which are the inputs."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.leaps_allowed = self.random.random() < 0.65
        self.gradient = self.random.random() < 0.4
        self.far = self.number(0, 49) == 0
        self.most = MOST_FAR if self.far else MOST
        self.special = not self.gradient and self.random.random() < 0.1
        self.inputs: list[Any] = []
        self.constants: list[bool] = []  # of the values: whether they are captured
        self.steps: list[Step] = []
        self.known: list[Known] = []
        for _ in range(self.number(1, 2)):
            self.enter(self.array(self.shape(), self.choice(FLOATS if self.gradient else DTYPES)))
        for _ in range(self.number(1, 8)):
            self.extend()

    # ---- choices

    def number(self, least: int, most: int) -> int:
        return int(self.random.integers(least, most + 1))

    def choice(self, items: Any) -> Any:
        return items[self.number(0, len(items) - 1)]

    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for _ in range(self.number(0 if self.number(0, 9) == 0 else 1, 3)):
            length = self.choice(FAR if self.far and not self.number(0, 2) else LENGTHS)
            shape = (*shape, length if prod(shape) * length <= self.most else self.number(1, 3))
        return shape

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Eighths between -4 and 4, many of them equal; whole numbers for integers."""
        if dtype in FLOATS:
            x = (self.random.integers(-32, 33, shape) / 8).astype(dtype)
            if self.special:
                some = self.random.random(shape) < 0.15
                with np.errstate(all="ignore"):
                    x = np.where(some, self.random.choice(SPECIAL, shape).astype(dtype), x)
            return np.asarray(x, dtype)
        return np.asarray(
            self.random.integers(0 if dtype in ("u1", "?") else -4, 2 if dtype == "?" else 5, shape), dtype
        )

    # ---- values

    def enter(self, x: Any) -> int:
        self.inputs.append(x)
        self.steps.insert(len(self.inputs) - 1, Step(lambda: None, ()))
        self.known.insert(len(self.inputs) - 1, Known(x, 3, _largest(x), _error(x)))
        for i, s in enumerate(self.steps):
            at = len(self.inputs) - 1
            self.steps[i] = s._replace(args=tuple(a + (a >= at) for a in s.args)) if i > at else s
        return len(self.inputs) - 1

    def pick(self, want: Callable[[Known], bool] = lambda k: True) -> int:
        """Return one of the values, more often a late one."""
        found = [i for i, k in enumerate(self.known) if want(k)]
        if not found:
            raise LookupError
        return found[-1 - min(int(self.random.exponential(1.2)), len(found) - 1)]

    def add(self, function: Callable[..., Any], *args: int, grid: float = np.inf) -> None:
        given = [self.known[i] for i in args]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = np.asarray(function(*(pb.tensor(k.value) for k in given)))
        if made.size > self.most or made.dtype.kind not in "fiub":
            raise ValueError("of no use")
        scale = max([_largest(made), *(k.scale for k in given)])
        if made.dtype.kind in "iub" and scale > 100:
            raise ValueError("integers may wrap, which is tested elsewhere")
        if made.dtype.kind in "iub":
            grid = 0.0
        elif np.log2(scale + 1) + grid > BITS:
            grid = np.inf
        if scale > 1e6:
            raise ValueError("too large to tell what is wrong from what is rounded")
        self.steps.append(Step(function, args))
        self.known.append(Known(made, grid, scale, max([_error(made), *(k.error for k in given)])))

    def is_exact(self, k: Known) -> bool:
        return self.leaps_allowed and k.grid < np.inf

    # ---- steps

    def extend(self) -> None:
        kinds = [
            self.unary, self.unary, self.binary, self.binary, self.fold, self.fold, self.move, self.move, self.take,
            self.take, self.scan, self.segments, self.product, self.cast, self.join, self.normalize, self.neighbours,
            self.windows, self.outer,
        ]  # fmt: skip
        try:
            self.choice(kinds)()
        except (ValueError, TypeError, LookupError, OverflowError, ZeroDivisionError, pb.errors.PullbackError):
            return  # NumPy does not have it: an axis of length 0, shapes that do not fit

    def unary(self) -> None:
        kind = self.number(0, 5)
        i = self.pick(self.is_exact if kind < 2 else lambda k: True)
        grid = self.known[i].grid
        if kind < 2:
            f = self.choice(LEAPING)
            self.add(f, i, grid=np.inf if f in (pb.elu, pb.selu, pb.leaky_relu) else grid + 3)
        elif kind < 4:
            self.add(self.choice(SMOOTH), i)
        else:
            f = self.choice(PLAIN)
            self.add(f, i, grid=2 * grid if f is PLAIN[3] else grid + 1)

    def binary(self) -> None:
        kind = self.number(0, 5)
        want = self.is_exact if kind == 0 else lambda k: True
        i = self.pick(want)
        shape = self.known[i].value.shape
        if self.number(0, 2) == 0:  # something new that fits
            fits = tuple(n if self.number(0, 2) else 1 for n in shape)[self.number(0, len(shape)) :]
            x = self.array(fits, self.choice(FLOATS if self.gradient else DTYPES))
            function = self.choice([BOTH_LEAPING, BOTH_SMOOTH, BOTH][min(kind, 2)])
            grid = self.known[i].grid + 3 if function in BOTH or kind == 0 else np.inf
            self.add((lambda f, x: lambda y: f(y, x))(function, x), i, grid=grid)
            return
        j = self.pick(lambda k: want(k) and _fits(k.value.shape, shape))
        function = self.choice([BOTH_LEAPING, BOTH_SMOOTH, BOTH][min(kind, 2)])
        grid = self.known[i].grid + self.known[j].grid + 1 if function in BOTH or kind == 0 else np.inf
        self.add(function, *((i, j) if self.number(0, 1) else (j, i)), grid=grid)

    def axis(self, x: Any, whole: bool = True) -> Any:
        if not x.ndim or (whole and self.number(0, 4) == 0):
            return None
        if whole and x.ndim > 1 and self.number(0, 4) == 0:
            return tuple(sorted({self.number(0, x.ndim - 1) for _ in range(2)}))
        return self.number(-x.ndim, x.ndim - 1)

    def fold(self) -> None:
        leaps = self.number(0, 1)
        i = self.pick(self.is_exact if leaps else lambda k: True)
        k = self.known[i]
        f = self.choice(FOLDS_LEAPING if leaps else FOLDS)
        if f in (np.argmax, np.argmin):
            axis = self.choice([None, *range(k.value.ndim)])
            self.add(lambda x: f(x, axis), i)
            if axis is not None and self.number(0, 1):
                self.add(
                    lambda x, at: np.take_along_axis(x, np.expand_dims(at, axis), axis), i, len(self.known) - 1,
                    grid=k.grid,
                )  # fmt: skip
            return
        axis, keep = self.axis(k.value), bool(self.number(0, 1))
        grid = k.grid if leaps or f is np.sum else np.inf
        self.add(lambda x: f(x, axis=axis, keepdims=keep), i, grid=grid)

    def slices(self, shape: tuple[int, ...]) -> Any:
        found: list[Any] = []
        for n in shape:
            step = self.choice([1, 1, 1, 2, 3, -1, -2])
            begin, end = sorted((self.number(0, n), self.number(0, n)))
            found.append(slice(begin, end, step) if step > 0 else slice(end - 1 if end else None, None, step))
            if n and self.number(0, 4) == 0:
                found[-1] = self.number(-n, n - 1)
        return tuple(found[: self.number(1, len(found))]) if found else ()

    def move(self) -> None:
        i = self.pick()
        x, grid = self.known[i].value, self.known[i].grid
        shape, axis = x.shape, self.axis(x, whole=False)
        order = [int(a) for a in self.random.permutation(x.ndim)]
        index, wide = self.slices(shape), [(self.number(0, 2), self.number(0, 2)) for _ in shape]
        copies = [self.number(1, 3) for _ in shape]
        split = next((n for n in (2, 3, 4, 5) if x.size % n == 0), 1)
        chosen: list[Callable[..., Any]] = [
            lambda x: np.transpose(x, order), lambda x: x[index], lambda x: x[index], lambda x: np.reshape(x, (-1,)),
            lambda x: np.reshape(x, (split, -1)), lambda x: np.flip(x, axis), lambda x: np.expand_dims(x, axis or 0),
            lambda x: np.squeeze(x), lambda x: np.pad(x, wide), lambda x: np.pad(x, wide, constant_values=1.5),
            lambda x: np.broadcast_to(x, (3, *shape)), lambda x: np.tile(x, copies), lambda x: np.roll(x, 2, axis),
            lambda x: np.repeat(x, 2, axis), lambda x: np.stack([x, x[::-1]], axis or 0),
            lambda x: np.swapaxes(x, 0, -1),
            lambda x: np.pad(x, wide, mode="edge"), lambda x: np.diff(x, axis=axis), lambda x: np.tril(x, 1),
        ]  # fmt: skip
        self.add(self.choice(chosen), i, grid=grid)

    def take(self) -> None:
        """By positions that are captured, given, or computed."""
        i = self.pick(lambda k: bool(k.value.ndim))
        x, grid = self.known[i].value, self.known[i].grid
        axis = self.number(0, x.ndim - 1)
        n = x.shape[axis]
        some = [(), (1,), (2,), (5,), (2, 3), (self.choice(LENGTHS),)]
        at = self.random.integers(-n, n, self.choice(some))
        whole = (slice(None),) * axis
        kind = self.number(0, 6)
        if kind == 0:
            self.add(lambda x: np.take(x, at, axis), i, grid=grid)
        elif kind == 1:
            self.add(lambda x: x[(*whole, at)], i, grid=grid)
        elif kind == 2:
            at %= n
            self.add(lambda x: pb.gather(x, at, axis), i, grid=grid)
        elif kind == 3:  # positions that are an argument
            before = len(self.inputs)
            self.enter(np.asarray(at % n))
            self.add(lambda x, at: np.take(x, at, axis), i + (i >= before), before, grid=grid)
        elif kind == 4:
            places = self.random.integers(
                0, n, tuple(m if a != axis else self.choice([1, 3, n]) for a, m in enumerate(x.shape))
            )
            self.add(lambda x: np.take_along_axis(x, places, axis), i, grid=grid)
        elif kind == 5:
            places = np.stack([self.random.integers(0, m, 4) for m in x.shape[: self.number(1, x.ndim)]], -1)
            self.add(lambda x: pb.gather_nd(x, places), i, grid=grid)
        else:
            same = bool(self.number(0, 1))
            self.add(lambda x: x[at] if same else x[at, ..., self.number(0, 0)], i, grid=grid)

    def scan(self) -> None:
        i = self.pick(lambda k: bool(k.value.ndim))
        k = self.known[i]
        axis = self.axis(k.value, whole=False)
        exclusive, reverse = bool(self.number(0, 1)), bool(self.number(0, 1))
        if self.number(0, 3):
            self.add(lambda x: pb.cumsum(x, axis, exclusive, reverse), i, grid=k.grid)
        elif self.number(0, 1):
            self.add(lambda x: np.cumsum(x), i, grid=k.grid)
        else:
            self.add(lambda x: pb.cumprod(np.cos(x), axis, exclusive, reverse), i)

    def segments(self) -> None:
        i = self.pick(lambda k: bool(k.value.ndim))
        k = self.known[i]
        many = self.number(1, 6)
        ids = self.random.integers(0, many, k.value.shape[0])
        kind = self.number(0, 3)
        if kind == 0:
            ids = np.sort(ids)
            self.add(lambda x: pb.segment_sum(x, ids), i, grid=k.grid)
        elif kind == 1 and self.is_exact(k):
            self.add(lambda x: pb.unsorted_segment_max(x, ids, many), i, grid=k.grid)
        elif kind == 2:  # added one after the other
            shape = (many, *k.value.shape[1:])
            self.add(lambda x: pb.scatter_nd(ids[:, None], x, shape), i, grid=k.grid)
        else:
            self.add(lambda x: pb.unsorted_segment_sum(x, ids, many), i, grid=k.grid)

    def product(self) -> None:
        i = self.pick(lambda k: bool(k.value.ndim) and k.value.dtype.kind == "f")
        k = self.known[i]
        x = k.value
        if x.size * max(x.shape) > 40 * MOST_FAR:
            return
        kind = self.number(0, 4)
        grid = 2 * k.grid + 3
        n = self.choice(LENGTHS)
        if kind == 0:
            self.add(lambda x: x @ np.swapaxes(x, -1, -2), i, grid=grid)
        elif kind == 1:
            self.add(lambda x: np.swapaxes(x, -1, -2) @ x, i, grid=grid)
        elif kind == 2:
            w = self.array((x.shape[-1], n), x.dtype.str[1:])
            self.add(lambda x: x @ w, i, grid=grid)
        elif kind == 3:
            w = self.array((n, x.shape[0]), x.dtype.str[1:])
            self.add(lambda x: np.tensordot(w, x, 1), i, grid=grid)
        else:
            w = self.array((x.shape[-1],), x.dtype.str[1:])
            self.add(lambda x: x @ w, i, grid=grid)

    def outer(self) -> None:
        i = self.pick(lambda k: k.value.ndim == 1)
        j = self.pick(lambda k: k.value.ndim == 1 and k.value.size * self.known[i].value.size <= self.most)
        self.add(lambda x, y: x[:, None] * y, i, j, grid=self.known[i].grid + self.known[j].grid)

    def cast(self) -> None:
        i = self.pick(self.is_exact if self.number(0, 1) else lambda k: True)
        dtype = self.choice(FLOATS if self.gradient else ["f4", "f8", "f8", "i8", "i4", "?"])
        if dtype not in FLOATS and (not self.is_exact(self.known[i]) or self.special):
            return
        self.add(lambda x: x.astype(dtype), i, grid=self.known[i].grid)

    def join(self) -> None:
        i = self.pick(lambda k: bool(k.value.ndim))
        x = self.known[i].value
        axis = self.number(0, x.ndim - 1)
        j = self.pick(lambda k: _but(k.value.shape, axis) == _but(x.shape, axis) and k.value.ndim == x.ndim)
        grid = max(self.known[i].grid, self.known[j].grid)
        self.add(lambda x, y: np.concatenate([x, y, x * 2.0][: 2 + (axis % 2)], axis), i, j, grid=grid + 1)

    def normalize(self) -> None:
        i = self.pick(lambda k: bool(k.value.ndim) and k.value.dtype.kind == "f")
        axis = self.axis(self.known[i].value, whole=False)
        chosen: list[Callable[..., Any]] = [
            lambda x: pb.softmax(x, axis), lambda x: pb.log_softmax(x, axis),
            lambda x: x - np.mean(x, axis, keepdims=True),
            lambda x: x / np.sqrt(np.mean(x * x, axis, keepdims=True) + 1.0),
            lambda x: np.exp(x - np.max(x, axis, keepdims=True)) if self.leaps_allowed else np.tanh(x),
        ]  # fmt: skip
        f = self.choice(chosen)
        if f is chosen[4] and not self.is_exact(self.known[i]):
            return
        self.add(f, i)

    def neighbours(self) -> None:
        """Sorting, of what has no ties that rounding could break."""
        i = self.pick(lambda k: bool(k.value.ndim) and self.is_exact(k) and k.value.dtype.kind == "f")
        axis = self.axis(self.known[i].value, whole=False)
        if self.number(0, 1):
            self.add(lambda x: np.sort(x, axis), i, grid=self.known[i].grid)
        else:
            self.add(
                lambda x: np.take_along_axis(x, np.argsort(x, axis, kind="stable"), axis), i, grid=self.known[i].grid
            )

    def windows(self) -> None:
        i = self.pick(lambda k: k.value.ndim == 3 and k.value.dtype.kind == "f" and bool(k.value.size))
        k = self.known[i]
        n, pad, stride = self.number(1, 3), self.choice(["same", "valid"]), self.number(1, 2)
        kind = self.number(0, 2)
        if kind == 0:
            w = self.array((n, k.value.shape[2], self.choice(LENGTHS[1:])), k.value.dtype.str[1:])
            self.add(lambda x: pb.conv1d(x, w, stride, pad), i)
        elif kind == 1 and self.is_exact(k):
            self.add(lambda x: pb.max_pool(x[None], n, stride, pad), i, grid=k.grid)
        else:
            self.add(lambda x: pb.avg_pool(x[None], n, stride, pad), i)

    # ---- running

    def values(self, *xs: Any) -> list[Any]:
        values = list(xs)
        for s in self.steps[len(xs) :]:
            values.append(s.function(*(values[i] for i in s.args)))
        return values[len(xs) :] or [xs[0] + xs[0]]

    def total(self, *xs: Any) -> Any:
        made = [y for y in self.values(*xs) if y.dtype.kind == "f"]
        return sum((np.sum(np.tanh(0.5 * y)) for y in made), start=0.0 * np.sum(xs[0]))

    def gradients(self, *xs: Any) -> list[Any]:
        """Return the gradients of the total by the inputs that are floats."""
        floats = [i for i, x in enumerate(self.inputs) if x.dtype.kind == "f"]

        def f(*some: Any) -> Any:
            given = list(xs)
            for i, x in zip(floats, some, strict=True):
                given[i] = x
            return self.total(*given)

        return list(pb.grads(f, unconnected="zero")([xs[i] for i in floats]))

    def run(self, *xs: Any) -> tuple[list[Any], list[Any]]:
        return self.values(*xs), self.gradients(*xs) if self.gradient else []

    def check(self) -> str:
        """Compile and run it; what is wrong, or nothing."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values, gradients = self.run(*map(pb.tensor, self.inputs))
            made, pulled = pb.compile(self.run, backend="llvm", cache=False)(*self.inputs)
        about = self.known[len(self.inputs) :] or [self.known[0]._replace(grid=np.inf)]
        for at, (got, want, k) in enumerate(zip(made, values, about, strict=True)):
            if wrong := _differs(got, want, k.error * max(1.0, k.scale) if k.grid == np.inf else 0.0):
                return f"value {at} of {len(values)}, of {k.value.shape}: {wrong}"
        largest = max([1.0, *map(_largest, gradients)])
        if all(np.isfinite(g).all() for g in gradients) and largest < 1e6:
            loose = largest * max(k.scale + 1 for k in self.known) ** 2 * max(k.error for k in self.known)
            for got, want in zip(pulled, gradients, strict=True):
                if wrong := _differs(got, want, loose):
                    return f"gradient: {wrong}"
        return ""


def _largest(x: Any) -> float:
    x = np.asarray(x, "f8")
    return float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0))


def _error(x: Any) -> float:
    return 2e-4 if x.dtype == np.float32 else 1e-9


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return prod(np.broadcast_shapes(a, b)) <= MOST_FAR
    except ValueError:
        return False


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _differs(got: Any, want: Any, loose: float) -> str:
    got, want = np.asarray(got), np.asarray(want)
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return "" if np.array_equal(got, want) else f"{got.tolist()} instead of {want.tolist()}"
    usual = np.isfinite(want)
    if not np.array_equal(got[~usual], want[~usual], equal_nan=True) or not np.isfinite(got[usual]).all():
        return f"not finite elsewhere: {got.ravel()[:9]} instead of {want.ravel()[:9]}"
    apart = np.abs(got[usual].astype("f8") - want[usual])
    if (apart > loose).any():
        return f"{apart.max():.3g} apart, {loose:.3g} allowed: {got.ravel()[:9]} instead of {want.ravel()[:9]}"
    return ""


def run(first: int, count: int) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with the programs of these seeds."""
    for seed in range(first, first + count):
        os.write(1, f"{seed}\n".encode())
        program = Program(seed)
        try:
            wrong = program.check()
        except Exception:
            wrong = traceback.format_exc(limit=-4)
        if wrong:
            yield seed, wrong


if __name__ == "__main__":
    failed = [*run(int(sys.argv[1]), int(sys.argv[2]))]
    for seed, wrong in failed:
        print(f"seed {seed}: {wrong}", file=sys.stderr)
    sys.exit(bool(failed))
