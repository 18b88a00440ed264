"""Random programs over axes of length 0, 1, 2 and 3: compiled, their values and gradients are those of eager code.

``--all`` runs thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exhaustive import ALL

import pullback as pb

PROGRAMS_PER_TEST = 12
TESTS = 400 if ALL else 5
LETTERS = "abcdefgh"
Step = Callable[[Any], Any]


class Draw:
    """A random program: each method draws one step for a value of a known shape."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = self.random.choice([np.float32, np.float64])
        self.inputs: list[Any] = []

    def below(self, n: int) -> int:
        return int(self.random.integers(n))

    def pick(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def length(self) -> int:
        return int(self.random.choice([0, 1, 2, 3], p=[0.04, 0.5, 0.26, 0.2]))

    def shape(self, most: int = 3) -> tuple[int, ...]:
        return tuple(self.length() for _ in range(self.below(most + 1)))

    def operand(self, shape: Any) -> Step:
        """Another value: a constant, or an input of the program."""
        made = np.asarray(self.random.normal(size=shape)).astype(self.dtype)
        if self.below(3) == 0:
            return lambda xs: made
        self.inputs.append(made)
        place = len(self.inputs) - 1
        return lambda xs: xs[place]

    def axes(self, rank: int) -> Any:
        if not rank or self.below(4) == 0:
            return None
        chosen = sorted(self.random.choice(rank, 1 + self.below(rank), replace=False).tolist())
        return chosen[0] if len(chosen) == 1 else tuple(a - rank * self.below(2) for a in chosen)

    # ---- steps: each gives a function of the inputs and a value

    def product(self, shape: Any) -> Any:
        if not shape:
            return None
        n = self.length()
        if len(shape) == 1:
            other = self.operand(self.pick([shape, (shape[0], n), (self.length(), shape[0], n)]))
            return lambda xs, x: x @ other(xs)
        batch = self.pick([(), shape[:-2], tuple(1 for _ in shape[:-2]), (self.length(), *shape[:-2])])
        if self.below(2):
            other = self.operand(self.pick([(shape[-1],), (*batch, shape[-1], n)]))
            return lambda xs, x: x @ other(xs)
        other = self.operand((*batch, n, shape[-2]))
        return lambda xs, x: other(xs) @ x

    def einsum(self, shape: Any) -> Any:
        mine = LETTERS[: len(shape)]
        size = dict(zip(mine, shape, strict=True))
        shared = [c for c in mine if self.below(2)]
        new = LETTERS[len(shape) : len(shape) + self.below(3)]
        size.update({c: self.length() for c in new})
        theirs = self.random.permutation([*shared, *new]).tolist()
        kept = [c for c in self.random.permutation([*mine, *new]).tolist() if self.below(3)]
        other = self.operand(tuple(size[c] for c in theirs))
        text = f"{mine},{''.join(theirs)}->{''.join(kept)}"
        return lambda xs, x: np.einsum(text, x, other(xs))

    def tensordot(self, shape: Any) -> Any:
        axes = [i for i in range(len(shape)) if self.below(2)]
        other = self.operand((*(shape[i] for i in axes), *self.shape(2)))
        places = list(range(len(axes)))
        return lambda xs, x: np.tensordot(x, other(xs), (axes, places))

    def reduction(self, shape: Any) -> Any:
        axis, keepdims = self.axes(len(shape)), bool(self.below(2))
        f = self.pick([pb.sum, pb.mean, pb.max, pb.min, pb.prod, pb.logsumexp, np.var, np.sum, np.mean])
        return lambda xs, x: f(x, axis=axis, keepdims=keepdims)

    def scan(self, shape: Any) -> Any:
        if not shape:
            return None
        axis, f = self.below(len(shape)), self.pick([np.cumsum, np.cumprod, pb.softmax, pb.log_softmax, np.sort])
        return lambda xs, x: f(x, axis=axis)

    def binary(self, shape: Any) -> Any:
        other = self.operand(tuple(self.pick([n, 1]) if n != 1 else self.pick([1, 2]) for n in shape[self.below(2) :]))
        f = self.pick([np.add, np.subtract, np.multiply, np.maximum, lambda x, y: pb.where(x > y, x, y * 0.5)])
        return lambda xs, x: f(x, other(xs))

    def unary(self, shape: Any) -> Any:
        f = self.pick([np.tanh, np.sin, np.square, np.abs, pb.relu, lambda x: x * 2.0, lambda x: 1.0 - x])
        return lambda xs, x: f(x)

    def move(self, shape: Any) -> Any:
        rank = len(shape)
        order = self.random.permutation(rank).tolist()
        at = self.below(rank + 1)
        longer = [*shape[:at], 1, *shape[at:]]
        flat = [n for n in shape if n != 1]
        moves: list[Any] = [
            lambda xs, x: np.transpose(x, order),
            lambda xs, x: np.reshape(x, longer),
            lambda xs, x: np.reshape(x, flat),
            lambda xs, x: np.reshape(x, -1),
            lambda xs, x: np.squeeze(x),
            lambda xs, x: np.expand_dims(x, at),
            lambda xs, x: np.broadcast_to(x, (2, *shape)),
            lambda xs, x: np.stack([x, x * 2.0], at),
            lambda xs, x: np.tile(x, 2),
        ]
        if rank:
            axis, count = self.below(rank), self.below(3)
            moves += [
                lambda xs, x: np.concatenate([x, x * 2.0], axis),
                lambda xs, x: np.flip(x, axis),
                lambda xs, x: np.roll(x, 1, axis),
                lambda xs, x: np.repeat(x, count, axis),
                lambda xs, x: np.swapaxes(x, axis, -1),
                lambda xs, x: x[::-1],
                lambda xs, x: x[1:],
                lambda xs, x: x[..., None],
                lambda xs, x: np.pad(x, [(1, 0)] * rank),
            ]
        return self.pick(moves)

    def gather(self, shape: Any) -> Any:
        if not shape:
            return None
        axis = self.below(len(shape))
        n = shape[axis]
        at = self.random.integers(-n, n, self.shape(2)) if n else np.zeros(0, int)
        mask = self.random.random(n) < 0.5
        along = self.random.integers(0, n, shape) if n else np.zeros(shape, int)
        before = (slice(None),) * axis
        parts = self.below(3)
        segments = self.random.integers(0, parts, shape[0]) if parts else np.zeros(shape[0], int)
        return self.pick([
            lambda xs, x: np.take(x, at, axis),
            lambda xs, x: x[(*before, at)],
            lambda xs, x: x[(*before, mask)],
            lambda xs, x: np.take_along_axis(x, along, axis),
            lambda xs, x: pb.gather(x, at % max(n, 1), axis),
            lambda xs, x: pb.unsorted_segment_sum(x, segments, max(parts, 1)),
            lambda xs, x: x * np.argmax(x, axis, keepdims=True),
        ])  # fmt: skip

    def program(self) -> Step:
        """Steps from the first input on; all values on the way are results."""
        x = np.asarray(self.random.normal(size=self.shape())).astype(self.dtype)
        self.inputs.append(x)
        start = len(self.inputs) - 1
        kinds = [self.product, self.einsum, self.tensordot, self.reduction, self.scan, self.binary, self.unary]
        kinds += [self.product, self.reduction, self.move, self.move, self.gather]
        steps: list[Any] = []
        for _ in range(1 + self.below(5)):
            kept = len(self.inputs)
            step = self.pick(kinds)(x.shape)
            made = attempt(step, self.inputs, x) if step is not None else None
            if made is None or made.size > 200:
                del self.inputs[kept:]
            else:
                steps.append(step)
                x = made

        def run(xs: Any) -> list[Any]:
            values = [xs[start]]
            for step in steps:
                values.append(step(xs, values[-1]))
            return values[-2:]

        return run


def attempt(step: Any, xs: Any, x: Any) -> Any:
    """Return what a step gives; None where there can be nothing, as the largest element of none."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(step([pb.tensor(v) for v in xs], pb.tensor(x)))
    except (ValueError, TypeError, IndexError):
        return None


def check(got: Any, want: Any, dtype: Any, what: str) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype), what
    loose = 3e-4 if dtype == np.float32 else 1e-10
    small = loose * (1.0 + min(np.max(np.abs(want[np.isfinite(want)]), initial=0), 1e30))
    np.testing.assert_allclose(got, want, rtol=loose, atol=small, err_msg=what)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("seed", range(TESTS))
def test_random_programs_with_short_axes(seed: int) -> None:
    draw = Draw(seed)
    programs = [draw.program() for _ in range(PROGRAMS_PER_TEST)]

    def total(*xs: Any) -> Any:
        values = [v for program in programs for v in program(xs)]
        return sum([pb.sum(v / (1.0 + np.square(v))) for v in values])

    def run(*xs: Any) -> Any:
        return [program(xs) for program in programs], pb.grads(total, unconnected="zero")(list(xs))

    with np.errstate(all="ignore"):
        values, gradients = run(*map(pb.tensor, draw.inputs))
        compiled_values, compiled_gradients = pb.compile(run)(*draw.inputs)
    for i, (got, want) in enumerate(zip(compiled_values, values, strict=True)):
        for a, b in zip(got, want, strict=True):
            check(a, b, draw.dtype, f"value of program {i}")
    for i, (a, b) in enumerate(zip(compiled_gradients, gradients, strict=True)):
        check(a, b, draw.dtype, f"gradient by input {i}")
