"""A loop with a known number of steps as an op, and its transforms: each is another such loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from pullback.transforms.gates import Gate, pull_gates
from pullback.transforms.split_loop import SplitLoop
from pullback.transforms.structured import (
    Joint,
    get_array,
    is_float,
    make_zeros,
    record_batch,
    record_jvp,
    repeat_for_examples,
    split_pushed,
    stack_values,
)
from pullback.transforms.structured_op import StructuredOp

# Elementwise kernels whose results are computed again in the backward pass rather than stored.
CHEAP = frozenset({
    np.add, np.subtract, np.multiply, np.negative, np.absolute, np.maximum, np.minimum, np.square, np.sign, np.copy,
    np.greater, np.less, np.greater_equal, np.less_equal, np.equal, np.not_equal, np.logical_not, np.logical_and,
    np.logical_or,
})  # fmt: skip


class ScanOp(StructuredOp):
    """A loop: ``carry, y = body(constants, carry, x)`` for each ``x`` along axis 0 of ``xs``.

    Its operands are the constants, the carry and the xs, its results the last carry and the ys.
    """

    name = "scan"

    def __init__(
        self, body: Any, constants: int, carry: int, length: int, reverse: bool = False, recompute: bool = False
    ) -> None:
        self.body, self.constants, self.carry, self.length = body, constants, carry, length
        self.reverse, self.recompute = reverse, recompute
        self.xs = len(body.inputs) - constants - carry
        self.ys = len(body.outputs) - carry

    def replace(self, body: Any, constants: int, carry: int) -> ScanOp:
        return ScanOp(body, constants, carry, self.length, self.reverse, self.recompute)

    def _split(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the parts of a list of operands: constants, carry, xs."""
        first, second = self.constants, self.constants + self.carry
        return list(items[:first]), list(items[first:second]), list(items[second:])

    def infer(self) -> list[tuple[Any, Any]]:
        likes = self.body.output_likes
        stacked = [((self.length, *like.shape), like.dtype) for like in likes[self.carry :]]
        return [*((like.shape, like.dtype) for like in likes[: self.carry]), *stacked]

    def run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(get_array(z) for z in self.run_unrolled(args))

    def run_unrolled(self, args: Sequence[Any]) -> list[Any]:
        """Return the results of the steps one after the other, on tensors of any level."""
        constants, carry, xs = self._split(args)
        rows: list[Any] = [None] * self.length
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            zs = self.body([*constants, *carry, *(x[t] for x in xs)])
            carry, rows[t] = zs[: self.carry], zs[self.carry :]
        return [*carry, *(stack_values(column) for column in zip(*rows, strict=True))]

    def lower(self, trace: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        def add(loop: ScanOp, operands: Sequence[Any]) -> Any:
            return trace.add_loop(loop.body, loop.constants, loop.carry, loop.length, loop.reverse, operands)

        return tuple(SplitLoop(self).run(args, add))

    def _reach(self, on: Sequence[bool], floats: bool) -> list[bool]:
        return reach_carry(self.body, on, self.constants, floats, self.carry)

    # ---- transforms

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        likes = self.body.input_likes
        moving = [t is not None and is_float(x) for t, x in zip(tangents, likes, strict=True)]
        moving = self._reach(moving, floats=True)
        wanted = self.body.follow(moving, floats=True)
        wanted[: self.carry] = self._split(moving)[1]
        body = record_jvp(self.body, moving, wanted)
        operands = self._arrange_operands(primals, tangents, moving)
        # Inputs in the order of a loop (constants, carry, xs), and outputs (carry, ys).
        places = arrange_extra(len(moving), moving, self._split([*range(len(moving))]))
        outputs = arrange_extra(len(wanted), wanted, ([*range(self.carry)], [*range(self.carry, len(wanted))]))
        body.inputs = [body.inputs[i] for part in places for i in part]
        body.outputs = [body.outputs[i] for part in outputs for i in part]
        op = self.replace(body, len(places[0]), len(places[1]))
        results = op.apply(operands)
        at = dict(zip((i for part in outputs for i in part), results, strict=True))
        return split_pushed([at[i] for i in range(len(at))], wanted)

    def _arrange_operands(self, primals: Sequence[Any], tangents: Sequence[Any], moving: Sequence[bool]) -> list[Any]:
        """Return the operands of the loop that also pushes tangents: each part followed by its tangents."""
        ts = [
            (make_zeros(p) if t is None else t) if on else None
            for p, t, on in zip(primals, tangents, moving, strict=True)
        ]
        parts = zip(self._split(primals), self._split(ts), strict=True)
        return [x for ps, moved in parts for x in (*ps, *(t for t in moved if t is not None))]

    def batch(self, arrays: Sequence[Any], on: Sequence[bool], size: int) -> tuple[Sequence[Any], Sequence[bool]]:
        reached = self._reach(on, floats=False)
        wanted = self.body.follow(reached)
        wanted[: self.carry] = self._split(reached)[1]
        body = record_batch(self.body, reached, wanted, size)
        repeated = repeat_for_examples(arrays, on, reached, size)
        first = self.constants + self.carry
        repeated[first:] = [np.moveaxis(x, 1, 0) if b else x for x, b in zip(repeated[first:], on[first:], strict=True)]
        zs = list(self.replace(body, self.constants, self.carry).apply(repeated))
        zs[self.carry :] = [
            np.moveaxis(z, 0, 1) if b else z for z, b in zip(zs[self.carry :], wanted[self.carry :], strict=True)
        ]
        return zs, wanted

    def differentiate(self, values: Sequence[Any], live: Sequence[bool]) -> tuple[Sequence[Any], Any]:
        likes = self.body.input_likes
        moving = self._reach([on and is_float(x) for on, x in zip(live, likes, strict=True)], floats=True)
        has_cotangent = self.body.follow(moving, floats=True)
        has_cotangent[: self.carry] = self._split(moving)[1]
        if not any(has_cotangent):
            return self.apply(values), lambda gs: [None] * len(values)
        joint = Joint(self.body, moving, has_cotangent, self.constants, self.carry)
        stored = choose_stored(joint, self.constants, self.carry, self.recompute)
        forward = joint.whole.select(joint.inputs, [*joint.values, *map(joint.whole.refer, stored)])
        zs = self.replace(forward, self.constants, self.carry).apply(values)
        count = len(joint.values)
        known = dict(zip(stored, zs[count:], strict=True))
        constants, _, xs = self._split(values)
        first, second = self.constants, self.constants + self.carry
        known.update(zip(joint.inputs[:first], constants, strict=True))
        known.update(zip(joint.inputs[second:], xs, strict=True))
        states = [i for i in range(first, second) if moving[i]]
        return zs[:count], partial(pull_gates, lambda gs: self._pull(joint, states, known, gs))

    def _pull(self, joint: Joint, states: list[int], known: dict[int, Any], gs: Sequence[Any]) -> list[Any]:
        """Run the backward pass: a loop in the other direction over the backward pass of a step.

        ``states`` are the inputs of a step that are carried and have cotangents, ``known`` the values of the steps.
        """
        whole, likes, first = joint.whole, joint.whole.likes, self.constants
        rows = [i for i in joint.pulled if i >= first + self.carry]
        targets = [*states, *joint.sums]
        outputs = _list_backward_outputs(joint, targets, rows)
        sums = [*joint.sums.values(), *joint.seen.values()]
        step = whole.select([*known, *joint.cotangents.values(), *sums], outputs)
        step, known = self._bind_cotangents(step, joint, known, gs)
        used = step.list_used()
        fixed = [i for i in joint.inputs[:first] if i in used]
        each = [i for i in known if i in used and i not in fixed]
        carried = {joint.cotangents[i - first]: gs[i - first] for i in states}
        carried.update(dict.fromkeys(sums))
        step.inputs = [*fixed, *carried, *each]
        carried.update(dict.fromkeys(joint.seen.values(), np.bool_(False)))
        begin = [make_zeros(likes[n]) if g is None else g for n, g in carried.items()]
        op = ScanOp(step, len(fixed), len(begin), self.length, not self.reverse, self.recompute)
        results = op.apply([*(known[i] for i in fixed), *begin, *(known[i] for i in each)])
        ds = dict(zip([*targets, *(-1 - i for i in joint.seen), *rows], results, strict=True))
        ds.update({i: Gate(ds[i], ds[-1 - i]) for i in joint.seen})
        return [ds.get(i) for i in range(len(joint.inputs))]

    def _bind_cotangents(
        self, step: Any, joint: Joint, known: dict[int, Any], gs: Sequence[Any]
    ) -> tuple[Any, dict[int, Any]]:
        """Return the backward step with zeros for stacked results without a cotangent, and ``known`` with the rest."""
        ys = {number: gs[i] for i, number in joint.cotangents.items() if i >= self.carry}
        step = _bind_zeros(step, joint.whole.likes, [number for number, g in ys.items() if g is None])
        return step, known | {number: g for number, g in ys.items() if g is not None}


def _list_backward_outputs(joint: Joint, targets: Sequence[int], rows: Sequence[int]) -> list[Any]:
    """Return the outputs of a backward step: cotangents of ``targets``, flags of the gated ones, cotangents of xs."""
    likes = joint.whole.likes
    pulled = [joint.pulled[i] if i in joint.pulled else make_zeros(likes[joint.inputs[i]]) for i in targets]
    return [*pulled, *(joint.taken[i] for i in joint.seen), *(joint.pulled[i] for i in rows)]


def reach_carry(body: Any, on: Sequence[bool], constants: int, floats: bool, carry: int | None = None) -> list[bool]:
    """Return which inputs of a loop depend on those that are ``on``, after any number of steps."""
    found = list(on)
    while True:
        reached = body.follow(found, floats)[:carry]
        more = list(found)
        for k, b in enumerate(reached, constants):
            more[k] = more[k] or b
        if more == found:
            return found
        found = more


def arrange_extra(count: int, extra: Sequence[bool], parts: Sequence[list[int]]) -> list[list[int]]:
    """Return the positions of each part of a list, followed by those of its extra items at the end of the list."""
    places, after = {}, count
    for i, on in enumerate(extra):
        if on:
            places[i], after = after, after + 1
    return [[*part, *(places[i] for i in part if i in places)] for part in parts]


def choose_stored(joint: Joint, constants: int, carry: int, recompute: bool) -> list[int]:
    """Return the values of a step that are stored for its backward pass.

    Values that a few cheap operations compute from stored ones are computed again; with ``recompute`` all values are,
    from the carry before the step.
    """
    whole = joint.whole
    free = {*joint.inputs[:constants], *joint.inputs[constants + carry :]}
    late = {*joint.cotangents.values(), *joint.sums.values(), *joint.seen.values()}  # values that depend on cotangents
    for e in whole.equations:
        if not late.isdisjoint(whole.list_refs(e.args)):
            late.update(e.results)
    results = [*joint.pulled.values(), *(joint.taken[i] for i in joint.seen)]
    backward = whole.select([*joint.inputs, *late.difference(*(e.results for e in whole.equations))], results)
    needed = {a for e in backward.equations if e.results[0] in late for a in whole.list_refs(e.args)}
    needed |= {*whole.list_refs(results)}
    needed -= late | free
    for e in reversed(whole.equations):
        if needed.isdisjoint(e.results) or not (recompute or _is_cheap(e, whole, needed, free)):
            continue
        needed -= {*e.results}
        needed |= {*whole.list_refs(e.args)} - free
    return sorted(needed)


def _is_cheap(e: Any, body: Any, needed: set[int], free: set[int]) -> bool:
    """Return whether an operation is done again rather than its result stored: its operands take no more memory."""
    if e.op is None or e.op.custom:
        return False
    new = {*body.list_refs(e.args)} - needed - free
    size, more = (sum(prod(body.likes[i].shape) for i in numbers) for numbers in (e.results, new))
    if e.op.makes_views:
        return bool(more <= 4 * size)
    is_cheap: bool = e.op.elementwise and e.op.kernel in CHEAP
    return is_cheap and (not more or (len(new) == 1 and more <= size))


def _bind_zeros(body: Any, likes: Any, numbers: list[int]) -> Any:
    """Return a body in which these inputs are zeros: the cotangents of results that were not used."""
    for number in numbers:
        body = body.bind(number, make_zeros(likes[number]))
    return body
