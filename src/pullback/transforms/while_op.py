"""A ``while`` loop as an op, and its transforms: each is another such loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.convert import float_of
from pullback.errors import GradientError
from pullback.transforms.gates import Gate, open_gate
from pullback.transforms.scan_op import ScanOp, arrange_extra, reach_carry
from pullback.transforms.structured import (
    align_examples,
    close,
    get_array,
    hold_back_gradient,
    is_float,
    make_zeros,
    record_batch,
    record_jvp,
    repeat_for_examples,
    split_pushed,
)
from pullback.transforms.structured_op import StructuredOp
from pullback.transforms.switch_op import SwitchOp


class WhileOp(StructuredOp):
    """A loop: ``carry = body(constants, carry)`` while ``condition(constants, carry)`` holds.

    Its operands are the constants and the carry, its results the last carry.
    """

    name = "while_loop"

    def __init__(self, condition: Any, body: Any, constants: int, max_steps: int | None) -> None:
        self.condition, self.body, self.constants, self.max_steps = condition, body, constants, max_steps

    def infer(self) -> list[tuple[Any, Any]]:
        return [(like.shape, like.dtype) for like in self.body.output_likes]

    def run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        constants, carry = args[: self.constants], list(args[self.constants :])
        steps = 0
        while get_array(self.condition([*constants, *carry])[0]) and steps != self.max_steps:
            carry, steps = [get_array(z) for z in self.body([*constants, *carry])], steps + 1
        return tuple(carry)

    def lower(self, trace: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = trace.add_while(self.condition, self.body, self.constants, args)
        return found

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        likes = self.body.input_likes
        moving = [t is not None and is_float(x) for t, x in zip(tangents, likes, strict=True)]
        moving = reach_carry(self.body, moving, self.constants, floats=True)
        wanted = moving[self.constants :]
        ts = [make_zeros(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        moved = [t for t, on in zip(ts, moving, strict=True) if on]
        count = len(moving)
        places = arrange_extra(count, moving, ([*range(self.constants)], [*range(self.constants, count)]))
        order = [i for part in places for i in part]
        body = record_jvp(self.body, moving, wanted)
        body.inputs = [body.inputs[i] for i in order]
        condition = _take_more(self.condition, [likes[i] for i, on in enumerate(moving) if on], order)
        op = WhileOp(condition, body, len(places[0]), self.max_steps)
        operands = [*primals, *moved]
        results = op.apply([operands[i] for i in order])
        return split_pushed(results, wanted)

    def batch(self, arrays: Sequence[Any], on: Sequence[bool], size: int) -> tuple[Sequence[Any], Sequence[bool]]:
        reached = reach_carry(self.body, on, self.constants, floats=False)
        differs = self.condition.follow(reached)[0]
        if differs:  # examples end after different numbers of steps
            reached = [*reached[: self.constants], *(True for _ in reached[self.constants :])]
        wanted = reached[self.constants :]
        condition = record_batch(self.condition, reached, [differs], size)
        body = record_batch(self.body, reached, wanted, size)
        if differs:
            body = _keep_finished(condition, body, self.constants, reached)
            condition = _hold_for_any(condition)
        repeated = repeat_for_examples(arrays, on, reached, size)
        return WhileOp(condition, body, self.constants, self.max_steps).apply(repeated), wanted

    def differentiate(self, values: Sequence[Any], live: Sequence[bool]) -> tuple[Sequence[Any], Any]:
        if self.max_steps is None:
            raise GradientError(
                "while_loop: in a compiled function reverse mode stores the states of all steps, so it must know how "
                "many there can be: give max_steps. Forward mode (jvp) needs none."
            )
        with self.body.open_trace() as trace:
            xs = [trace.add_input(*like) for like in self.body.input_likes]
            go_on = self.condition(xs)[0].astype(np.int64)
            stay = self.body.select(self.body.inputs, [self.body.refer(i) for i in self.body.inputs[self.constants :]])
            step = close(trace, SwitchOp([stay, self.body]).apply([go_on, *xs]))
        loop = ScanOp(step, self.constants, len(values) - self.constants, self.max_steps)
        zs, back = loop.differentiate(values, live)
        begins = self.condition(values)[0]  # a loop of no steps uses no constant, and a carry only as its result

        def pull(gs: Sequence[Any]) -> list[Any]:
            used = [False] * self.constants + [g is not None for g in gs]
            ds = zip(back(gs), used, strict=True)
            return [d if d is None or on else Gate(open_gate(d), begins) for d, on in ds]

        return zs, pull


def _take_more(body: Any, likes: Sequence[Any], order: Sequence[int]) -> Any:
    """Return a body with more inputs, which it does not use; ``order`` is that of all inputs."""
    with body.open_trace() as trace:
        xs = [trace.add_input(*like) for like in body.input_likes]
        for like in likes:
            trace.add_input(like.shape, float_of(like.dtype))
        leaves = close(trace, body(xs))
    leaves.inputs = [leaves.inputs[i] for i in order]
    return leaves


def _hold_for_any(condition: Any) -> Any:
    """Return a condition on many examples, which holds if it holds for any of them."""
    with condition.open_trace() as trace:
        xs = [trace.add_input(*like) for like in condition.input_likes]
        return close(trace, [np.any(condition(xs)[0])])


def _keep_finished(condition: Any, body: Any, constants: int, on: Sequence[bool]) -> Any:
    """Return a body for many examples, which does not change the carry of those that have ended.

    ``on`` says which inputs have an array for each example.
    """
    with body.open_trace() as trace:
        xs = [trace.add_input(*like) for like in body.input_likes]
        go_on = condition(xs)[0]
        held = [
            hold_back_gradient(align_examples(go_on, x), x) if b and is_float(x) else x
            for x, b in zip(xs, on, strict=True)
        ]
        new = body(held)
        return close(
            trace, [np.where(align_examples(go_on, x), z, x) for x, z in zip(xs[constants:], new, strict=True)]
        )
