"""Branches as an op, and its transforms: each is such an op again, or a selection for each example."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core.interpreter import new_level
from pullback.transforms.batch import Batched, take_out
from pullback.transforms.gates import Gate, pull_gates
from pullback.transforms.structured import (
    Joint,
    align_examples,
    get_array,
    hold_back_gradient,
    is_float,
    make_zeros,
    record_batch,
    record_jvp,
    split_pushed,
)
from pullback.transforms.structured_op import StructuredOp


class SwitchOp(StructuredOp):
    """Branches that take the same operands and return results of the same shapes and dtypes.

    The first operand is the number of the branch that is taken, clipped to the numbers there are.
    """

    name = "switch"

    def __init__(self, branches: Sequence[Any]) -> None:
        self.branches = list(branches)

    def infer(self) -> list[tuple[Any, Any]]:
        return [(like.shape, like.dtype) for like in self.branches[0].output_likes]

    def run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        number = min(max(int(args[0]), 0), len(self.branches) - 1)
        return tuple(get_array(z) for z in self.branches[number](args[1:]))

    def lower(self, trace: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = trace.add_switch(self.branches, args)
        return found

    def _follow(self, on: Sequence[bool], floats: bool) -> list[bool]:
        """Return which results depend on the inputs that are ``on``, in any branch."""
        return [any(column) for column in zip(*(b.follow(on, floats) for b in self.branches), strict=True)]

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        moving = [t is not None and is_float(p) for p, t in zip(primals[1:], tangents[1:], strict=True)]
        wanted = self._follow(moving, floats=True)
        op = SwitchOp([record_jvp(b, moving, wanted) for b in self.branches])
        results = op.apply([*primals, *(t for t, on in zip(tangents[1:], moving, strict=True) if on)])
        return split_pushed(results, wanted)

    def batch(self, arrays: Sequence[Any], on: Sequence[bool], size: int) -> tuple[Sequence[Any], Sequence[bool]]:
        if on[0]:
            return self._choose(arrays, on, size), [True for _ in self.branches[0].outputs]
        wanted = self._follow(on[1:], floats=False)
        return SwitchOp([record_batch(b, on[1:], wanted, size) for b in self.branches]).apply(arrays), wanted

    def _choose(self, arrays: Sequence[Any], on: Sequence[bool], size: int) -> list[Any]:
        """Return the results where examples take different branches: all are run."""
        number, last = new_level(), len(self.branches) - 1
        chosen = np.clip(arrays[0], 0, last)

        def give(x: Any, i: int) -> Any:
            """Return an operand with an array for each example, as branch ``i`` takes it."""
            held = hold_back_gradient(align_examples(chosen == i, x), x) if is_float(x) else x
            return Batched(number, held)

        columns = []
        for i, branch in enumerate(self.branches):
            repeated = [give(x, i) if b else x for x, b in zip(arrays[1:], on[1:], strict=True)]
            columns.append([take_out(z, 0, number, size) for z in branch(repeated)])
        zs = columns[last]
        for i in reversed(range(last)):
            zs = [np.where(align_examples(chosen == i, z), y, z) for y, z in zip(columns[i], zs, strict=True)]
        return zs

    def differentiate(self, values: Sequence[Any], live: Sequence[bool]) -> tuple[Sequence[Any], Any]:
        likes = self.branches[0].input_likes
        moving = [on and is_float(x) for on, x in zip(live[1:], likes, strict=True)]
        has_cotangent = self._follow(moving, floats=True)
        if not any(has_cotangent):
            return self.apply(values), lambda gs: [None] * len(values)
        joints = [Joint(b, moving, has_cotangent) for b in self.branches]
        targets = [i for i in range(len(moving)) if any(i in joint.pulled for joint in joints)]
        gated = _find_gated(joints, targets)
        back = [_select_backward(joint, targets, gated, likes) for joint in joints]

        def pull(gs: Sequence[Any]) -> list[Any]:
            shapes = self.branches[0].output_likes
            dys = [
                make_zeros(like) if g is None else g
                for g, like, on in zip(gs, shapes, has_cotangent, strict=True)
                if on
            ]
            results = SwitchOp(back).apply([*values, *dys])
            taken = dict(zip(gated, results[len(targets) :], strict=True))
            ds: list[Any] = [None] * len(values)
            for i, d in zip(targets, results, strict=False):
                ds[i + 1] = Gate(d, taken[i]) if i in taken else d
            return ds

        return self.apply(values), partial(pull_gates, pull)


def _find_gated(joints: Sequence[Joint], targets: Sequence[int]) -> list[int]:
    """Return the targets to which some branch, or a branch inside it, gives no cotangent."""
    return [i for i in targets if any(i not in joint.pulled or i in joint.taken for joint in joints)]


def _select_backward(joint: Joint, targets: Sequence[int], gated: Sequence[int], likes: Sequence[Any]) -> Any:
    """Return the backward pass of a branch: cotangents of the targets, and whether it computes the gated ones."""
    pulled = [joint.pulled[i] if i in joint.pulled else make_zeros(likes[i]) for i in targets]
    taken = [joint.taken.get(i, np.bool_(i in joint.pulled)) for i in gated]
    return joint.whole.select([*joint.inputs, *joint.cotangents.values()], pulled + taken)
