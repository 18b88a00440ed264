"""Split a loop: thin matrix products that the carry does not need are done for all steps at once, before or after it.

One large product is much faster than many of a few rows.  What is needed for it, such as the gradients of the gates of
a recurrent network, is stacked by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.interpreter import new_level
from pullback.core.lowering import call
from pullback.transforms.batch import Batched, take_out

if TYPE_CHECKING:
    from pullback.transforms.scan_op import ScanOp

__all__: list[str] = []

FEW = 16  # rows of a product that is slow by itself; those with more are as quick one by one, while they are cached


class SplitLoop:
    """Finds what can be done before and after a loop, and runs the three parts.

    ``run`` takes body, numbers of constants and of the carry, and operands of the loop that is left, and runs it.
    """

    def __init__(self, op: ScanOp) -> None:
        self.op, self.body = op, op.body
        inputs, second = self.body.inputs, op.constants + op.carry
        self.constants, self.states, self.xs = inputs[: op.constants], inputs[op.constants : second], inputs[second:]
        self.refs = [{*self.body.list_refs(e.args)} for e in self.body.equations]
        self.invariant = self._follow({*self.constants}, {*self.states, *self.xs})
        self.early = self._find_early()
        self.sums = self._find_sums()
        self.late = self._find_late()

    def _follow(self, given: set[int], without: set[int]) -> set[int]:
        """Return the values that depend on these only."""
        found = set(given)
        for e, refs in zip(self.body.equations, self.refs, strict=True):
            if refs <= found:
                found.update(e.results)
        return found - without

    def _is_thin(self, e: Any) -> bool:
        """Return whether an equation is a product whose operand that is no constant has few rows, or columns."""
        lower = getattr(e.op, "lower", None)
        if not isinstance(lower, call) or lower.symbol != "gemm":
            return False
        shapes = [self.body.likes[a].shape for a in self.body.list_refs(e.args)]
        if len(shapes) < 2:
            return False
        a, b = self.body.list_refs(e.args)
        left, right = shapes
        if b in self.invariant:
            return bool(len(left) < 2 or left[-2] < FEW)
        if a in self.invariant:
            return bool(len(right) < 2 or right[-1] < FEW)
        return bool(left[-1] < FEW)

    def _find_early(self) -> list[int]:
        """Return the products of xs with constants: their results."""
        known = self._follow({*self.constants, *self.xs}, set())
        found = []
        for e, refs in zip(self.body.equations, self.refs, strict=True):
            if self._is_thin(e) and refs <= known and refs & self.invariant and not refs <= self.invariant:
                found.append(e.results[0])
        return found

    def _find_sums(self) -> dict[int, tuple[int, Any]]:
        """Return the parts of the carry that are only added to: the equation, and what is added."""
        makers = {z: i for i, e in enumerate(self.body.equations) for z in e.results}
        uses: dict[int, int] = {}
        for refs in (*self.refs, self.body.list_refs(self.body.outputs)):
            for number in refs:
                uses[number] = uses.get(number, 0) + 1
        found = {}
        for k, state in enumerate(self.states):
            out = next(iter(self.body.list_refs([self.body.outputs[k]])), -1)
            e = self.body.equations[makers[out]] if out in makers else None
            if e is None or getattr(e.op, "kernel", None) is not np.add or uses.get(state) != 1 or uses[out] != 1:
                continue
            added = [n for n in self.body.list_refs(e.args) if n != state]
            like = self.body.likes[state]
            if len(added) == 1 and like.dtype.kind == "f" and self.body.likes[added[0]][:2] == like[:2]:
                found[k] = makers[out], added[0]
        return found

    def _find_late(self) -> set[int]:
        """Return the equations that are done after the loop."""
        equations, op = self.body.equations, self.op
        added = {at for at, _ in self.sums.values()}
        needed = {n for k in range(op.carry) if k not in self.sums for n in self.body.list_refs([self.body.outputs[k]])}
        for e, refs in zip(reversed(equations), reversed(self.refs), strict=True):
            if not needed.isdisjoint(e.results):
                needed |= refs
        free = [i for i, e in enumerate(equations) if needed.isdisjoint(e.results) and i not in added]
        ends = {number for _, number in self.sums.values()}  # what is summed, and all that leads there
        for i in reversed(free):
            if not ends.isdisjoint(equations[i].results):
                ends |= self.refs[i]
        late: set[int] = set()
        made: set[int] = set()
        for i in free:
            e, refs = equations[i], self.refs[i]
            is_seed = self._is_thin(e) and (refs & self.invariant or not ends.isdisjoint(e.results))
            if refs & made or (is_seed and not refs <= self.invariant and e.results[0] not in self.early):
                late.add(i)
                made.update(e.results)
        if not late:
            return late
        stacked = {n for i in late for n in self.refs[i]} | {*self.xs}
        makers = {n: i for i in free for n in equations[i].results}
        for _, number in self.sums.values():  # other sums of what is stacked anyway
            cone, waiting = set[int](), [number]
            while waiting:
                n = waiting.pop()
                if n in stacked or n in self.invariant or makers.get(n, -1) in cone | late:
                    continue
                if n not in makers:
                    cone = set()
                    break
                cone.add(makers[n])
                waiting += self.refs[makers[n]]
            late |= cone
        return late

    def _find_sources(self, numbers: set[int]) -> set[int]:
        """Return values of which others are views, or these themselves."""
        for e, refs in zip(reversed(self.body.equations), reversed(self.refs), strict=True):
            if not numbers.isdisjoint(e.results) and getattr(e.op, "is_moving", False):
                numbers = (numbers - {*e.results}) | (refs - {*self.constants})
        return numbers

    # ---- running it

    def run(self, args: Sequence[Any], run: Callable[[ScanOp, Sequence[Any]], Sequence[Any]]) -> Sequence[Any]:
        """Return the results of the loop."""
        op, body = self.op, self.body
        second = op.constants + op.carry
        constants, states, xs = list(args[: op.constants]), list(args[op.constants : second]), list(args[second:])
        number = new_level()
        known = dict(zip(self.xs, xs, strict=True))
        if self.early:
            before = body.select([*self.constants, *self.xs], [body.refer(n) for n in self.early])
            zs = before([*constants, *(Batched(number, x) for x in xs)])
            known.update(zip(self.early, (take_out(z, 0, number, op.length) for z in zs), strict=True))
        equations = body.equations
        made_late = {n for i in self.late for n in equations[i].results}
        summed = [k for k, (_, n) in self.sums.items() if n in made_late]
        carried = [k for k in range(op.carry) if k not in summed]
        ys = range(op.carry, len(body.outputs))
        afterwards = [i for i in ys if made_late.intersection(body.list_refs([body.outputs[i]]))]
        kept = [i for i in ys if i not in afterwards]
        boundary = self._find_sources({n for i in self.late for n in self.refs[i]} - made_late - {*self.constants})
        stacked = [n for n in sorted(boundary) if n not in known and n not in self.invariant]
        outputs = [body.outputs[i] for i in (*carried, *kept)] + [body.refer(n) for n in stacked]
        inputs = [*self.constants, *(self.states[k] for k in carried), *self.xs, *self.early]
        inner = body.select(inputs, outputs)
        used = inner.list_used()
        rows = [n for n in (*self.xs, *self.early) if n in used]
        fixed = [n for n in self.constants if n in used]
        inner.inputs = [*fixed, *(self.states[k] for k in carried), *rows]
        given = dict(zip(self.constants, constants, strict=True))
        loop = op.replace(inner, len(fixed), len(carried))
        made = iter(run(loop, [*(given[n] for n in fixed), *(states[k] for k in carried), *(known[n] for n in rows)]))
        results: dict[int, Any] = {i: next(made) for i in (*carried, *kept)}
        known.update(zip(stacked, made, strict=True))
        # after the loop
        wanted = [body.refer(self.sums[k][1]) for k in summed] + [body.outputs[i] for i in afterwards]
        sources = [n for n in known if n in boundary]
        after = body.select([*self.constants, *sources], wanted)
        zs = [
            take_out(z, 0, number, op.length)
            for z in after([*constants, *(Batched(number, known[n]) for n in sources)])
        ]
        for k, z in zip(summed, zs, strict=False):
            results[k] = states[k] + np.sum(z, axis=0)
        results.update(zip(afterwards, zs[len(summed) :], strict=True))
        return [results[i] for i in range(len(body.outputs))]
