"""A function with a gradient of its own, as the engine sees it: an op made on the spot.

Its body is run on the *values* of its inputs, one level down.  So at first order it sees untraced tensors and costs
nothing extra; at second order it sees the tensors of the outer tape, and what it kept has its path to the inputs.  For
the same reason a traced tensor that it captured shows at once: a result has a higher level than the inputs have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from pullback.core.adjoints import along
from pullback.core.bundle import place_all
from pullback.core.calculus import total
from pullback.core.convert import bare, float_of
from pullback.core.interpreter import level_of
from pullback.core.memory import node_of
from pullback.core.tape import ARRAYS, Tape, constant
from pullback.core.variable import Variable, highest_watcher, watched_below
from pullback.errors import CustomGradientError
from pullback.transforms.grad import grads

__all__: list[str] = []


class Run(NamedTuple):
    """One run of a body: its results, the variables it read, and the way back to all of them."""

    values: tuple[Any, ...]
    back: Callable[[list[Any]], list[Any]]
    variables: Sequence[Variable] = ()


class Like(NamedTuple):
    """Shape and dtype of an array that need not be kept."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def like(x: Any) -> Like:
    return Like(x.shape, x.dtype)


class CustomOp:
    """What the engine asks of any op, and ``run``, which is what makes one."""

    custom = True
    is_moving = False
    chooses = False
    follows = False  # whether the variables that the body reads are operands as well

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, values: Sequence[Any]) -> Run:
        """Perform the body on the values, and say what it captured."""
        raise NotImplementedError

    def lost(self, ds: Sequence[Any], level: int) -> Exception:
        """The error for gradients that are of the level being differentiated, or a higher one."""
        raise NotImplementedError

    def check_levels(self, zs: Sequence[Any], highest: int, read: Sequence[Variable]) -> None:
        """Refuse results of a higher level than the inputs have: the body captured a traced tensor."""
        if any(level_of(z) > highest for z in zs):
            raise self.lost(zs, highest + 1)

    def apply(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The results, each an array or a tensor of the highest level there is."""
        args = [bare(a) for a in args]
        top: Any = max(args, key=level_of, default=None)
        watcher = highest_watcher() if self.follows else None
        if watcher is not None and watcher.level > level_of(top):
            return self.record(watcher.tape, args, args, {})
        if not level_of(top):
            return self.run(args).values
        results: tuple[Any, ...] = top.interpret(self, tuple(args), {})
        return results

    def call(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return self.apply(args)

    def below(self, values: Sequence[Any]) -> int:
        """The highest level that results of these values may have."""
        watcher = highest_watcher() if self.follows else None
        return max([*map(level_of, values), watcher.level if watcher is not None else 0])

    def record(self, tape: Tape, args: Sequence[Any], values: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Perform the op one level down, and put its node on the tape."""
        values = [bare(v) for v in values]
        if not tape.level:
            return self.apply(values)
        with watched_below(tape.level) if self.follows else nullcontext():
            zs, back, variables = self.traced(values)
        operands = [*args, *(v.read() for v in variables)]
        nodes = [node_of(a) if tape.holds(a) else None for a in operands]
        if all(n is None for n in nodes):  # only a variable could have brought it here, and none was read
            return zs
        level, likes = tape.level, [like(z) for z in zs]

        def checked_back(gs: list[Any]) -> list[Any]:
            dys = [np.zeros(z.shape, float_of(z.dtype))[()] if g is None else g for g, z in zip(gs, likes, strict=True)]
            with watched_below(level):
                ds = back(dys)
            highest = max([level - 1, *map(level_of, dys)])  # a cotangent may be of a transform that was begun later
            if any(level_of(d) > highest for d in ds):
                raise self.lost(ds, level)
            if any(d is None and n is not None for d, n in zip(ds, nodes, strict=True)):
                tape.cut(self.name)
            return ds

        checked_back.back = back  # type: ignore[attr-defined]
        return place_all(tape, zs, nodes, checked_back)

    def traced(self, values: Sequence[Any]) -> Run:
        """A run whose results come from the op itself, so that lower levels see its gradient and not its body's."""
        run = self.run(values)
        return run._replace(values=self.apply(values)) if self.below(values) else run

    def jvp(self, z: Any, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """The way back is linear in the cotangents: its transpose, applied to the tangents, is the way forward."""
        back = self.run([bare(p) for p in primals]).back

        def paired(*dys: Any) -> Any:
            terms = [
                np.sum(along(d, t))
                for d, t in zip(back(list(dys)), tangents, strict=False)
                if not (d is None or t is None)
            ]
            return total(terms) if terms else constant(0.0)

        moved: list[Any] = grads(paired, unconnected="zero")([np.ones(y.shape, float_of(y.dtype)) for y in z])
        highest = max([self.below(primals), *map(level_of, tangents)])
        if any(level_of(m) > highest for m in moved):
            raise self.lost(moved, highest + 1)
        return moved

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def gradient_for(d: Any, x: Any, face: str, name: Callable[[], str], line: Callable[[], str]) -> Any:
    """A gradient that the user returned for input ``x``, checked, as the engine takes it."""
    if not isinstance(d, ARRAYS):
        got = "None" if d is None else type(d).__name__
        raise CustomGradientError(
            f"{face}: the gradient of '{name()}' must be a tensor of shape {x.shape}, got {got} ({line()})."
        )
    d = bare(d)
    if d.shape != x.shape:
        raise CustomGradientError(
            f"{face}: the gradient of '{name()}' must have its shape {x.shape}, got shape {d.shape}; "
            f"nothing is broadcast here ({line()})."
        )
    wanted = float_of(x.dtype, d.dtype)
    if d.dtype.kind not in ("fc" if wanted.kind == "c" else "f"):
        raise CustomGradientError(
            f"{face}: the gradient of '{name()}' must be a float like {wanted}, got {d.dtype}. Cast it ({line()})."
        )
    if d.dtype != wanted:
        return d.astype(wanted)
    return d.view() if type(d) is ndarray else d  # a view: it may be the user's own array
