"""Split a loop: thin matrix products that the carry does not need are computed for all steps, before or after it.

One large product is much faster than many of a few rows.  The loop stacks their operands, such as the gradients of the
gates of a recurrent network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.interpreter import new_level
from pullback.core.lowering import call
from pullback.transforms.batch import Batched, take_out

if TYPE_CHECKING:
    from pullback.transforms.scan_op import ScanOp

FEW_ROWS = 16  # rows of a thin product; products with more are as quick one by one, while their operands are cached


class OutputPlaces(NamedTuple):
    """The positions of the outputs of a body, by where they are computed."""

    summed: list[int]  # parts of the carry that are sums, computed after the loop
    carried: list[int]  # the other parts of the carry
    kept: list[int]  # ys that the loop computes
    afterwards: list[int]  # ys that are computed after the loop


class SplitLoop:
    """Finds what can be computed before and after a loop, and runs the three parts.

    ``run`` is the function that runs the remaining loop, from its body, the numbers of constants and of the carry, and
    its operands.
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

    def _follow(self, sources: set[int], without: set[int]) -> set[int]:
        """Return the values that depend on the ``given`` ones only."""
        found = set(sources)
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
            return bool(len(left) < 2 or left[-2] < FEW_ROWS)
        if a in self.invariant:
            return bool(len(right) < 2 or right[-1] < FEW_ROWS)
        return bool(left[-1] < FEW_ROWS)

    def _find_early(self) -> list[int]:
        """Return the numbers of the values that are products of xs and constants."""
        known = self._follow({*self.constants, *self.xs}, set())
        found = []
        for e, refs in zip(self.body.equations, self.refs, strict=True):
            if self._is_thin(e) and refs <= known and refs & self.invariant and not refs <= self.invariant:
                found.append(e.results[0])
        return found

    def _find_sums(self) -> dict[int, tuple[int, Any]]:
        """Return the parts of the carry that steps only add to: the equation of the addition, and the value added."""
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
        """Return the equations that are computed after the loop."""
        free = self._find_free()
        late = self._find_late_products(free)
        if late:  # and other sums whose terms follow from values that are stacked anyway
            stacked = {n for i in late for n in self.refs[i]} | {*self.xs}
            makers = {n: i for i in free for n in self.body.equations[i].results}
            for _, number in self.sums.values():
                late |= self._find_cone(number, stacked, makers, late)
        return late

    def _find_free(self) -> list[int]:
        """Return the equations that the carry does not need, other than the parts that steps only add to."""
        equations, added = self.body.equations, {at for at, _ in self.sums.values()}
        carry = [output for k, output in enumerate(self.body.outputs[: self.op.carry]) if k not in self.sums]
        needed = {*self.body.list_refs(carry)}
        for e, refs in zip(reversed(equations), reversed(self.refs), strict=True):
            if not needed.isdisjoint(e.results):
                needed |= refs
        return [i for i, e in enumerate(equations) if needed.isdisjoint(e.results) and i not in added]

    def _find_late_products(self, free: list[int]) -> set[int]:
        """Return the thin products among free equations that are worth moving, and all that depends on them."""
        equations = self.body.equations
        ends = {number for _, number in self.sums.values()}  # the terms of sums
        for i in reversed(free):
            if not ends.isdisjoint(equations[i].results):
                ends |= self.refs[i]
        late: set[int] = set()
        products: set[int] = set()
        for i in free:
            e, refs = equations[i], self.refs[i]
            is_seed = self._is_thin(e) and (refs & self.invariant or not ends.isdisjoint(e.results))
            if refs & products or (is_seed and not refs <= self.invariant and e.results[0] not in self.early):
                late.add(i)
                products.update(e.results)
        return late

    def _find_cone(self, number: int, stacked: set[int], makers: dict[int, int], late: set[int]) -> set[int]:
        """Return the equations that compute a value from stacked ones; none if it needs any others."""
        cone, waiting = set[int](), [number]
        while waiting:
            n = waiting.pop()
            if n in stacked or n in self.invariant or makers.get(n, -1) in cone | late:
                continue
            if n not in makers:
                return set()
            cone.add(makers[n])
            waiting += self.refs[makers[n]]
        return cone

    def _find_sources(self, numbers: set[int]) -> set[int]:
        """Return the values with views replaced by the values that they are views of."""
        for e, refs in zip(reversed(self.body.equations), reversed(self.refs), strict=True):
            if not numbers.isdisjoint(e.results) and getattr(e.op, "makes_views", False):
                numbers = (numbers - {*e.results}) | (refs - {*self.constants})
        return numbers

    # ---- running it

    def run(self, args: Sequence[Any], run: Callable[[ScanOp, Sequence[Any]], Sequence[Any]]) -> Sequence[Any]:
        """Return the results of the loop."""
        op, body = self.op, self.body
        second = op.constants + op.carry
        constants, states, xs = list(args[: op.constants]), list(args[op.constants : second]), list(args[second:])
        number = new_level()
        known = {**dict(zip(self.xs, xs, strict=True)), **self._run_early(constants, xs, number)}
        made_late = {n for i in self.late for n in body.equations[i].results}
        parts = self._split_outputs(made_late)
        boundary = self._find_sources({n for i in self.late for n in self.refs[i]} - made_late - {*self.constants})
        stacked = [n for n in sorted(boundary) if n not in known and n not in self.invariant]
        loop, fixed, rows = self._make_loop(parts, stacked)
        values = dict(zip(self.constants, constants, strict=True))
        begin = [states[k] for k in parts.carried]
        outputs = iter(run(loop, [*(values[n] for n in fixed), *begin, *(known[n] for n in rows)]))
        results: dict[int, Any] = {i: next(outputs) for i in (*parts.carried, *parts.kept)}
        known.update(zip(stacked, outputs, strict=True))
        zs = self._run_late(parts, constants, {n: x for n, x in known.items() if n in boundary}, number)
        for k, z in zip(parts.summed, zs, strict=False):
            results[k] = states[k] + np.sum(z, axis=0)
        results.update(zip(parts.afterwards, zs[len(parts.summed) :], strict=True))
        return [results[i] for i in range(len(body.outputs))]

    def _run_early(self, constants: list[Any], xs: list[Any], number: int) -> dict[int, Any]:
        """Return the products that are computed before the loop, stacked over its steps, by number."""
        if not self.early:
            return {}
        before = self.body.select([*self.constants, *self.xs], [self.body.refer(n) for n in self.early])
        zs = before([*constants, *(Batched(number, x) for x in xs)])
        return dict(zip(self.early, (take_out(z, 0, number, self.op.length) for z in zs), strict=True))

    def _split_outputs(self, made_late: set[int]) -> OutputPlaces:
        """Return where each output of the body is computed, given the values that are made after the loop."""
        body, carry = self.body, self.op.carry
        summed = [k for k, (_, n) in self.sums.items() if n in made_late]
        ys = range(carry, len(body.outputs))
        afterwards = [i for i in ys if made_late.intersection(body.list_refs([body.outputs[i]]))]
        return OutputPlaces(
            summed, [k for k in range(carry) if k not in summed], [i for i in ys if i not in afterwards], afterwards
        )

    def _make_loop(self, parts: OutputPlaces, stacked: list[int]) -> tuple[ScanOp, list[int], list[int]]:
        """Return the remaining loop, which also stacks some values, and the numbers of its constants and of its xs."""
        body = self.body
        outputs = [body.outputs[i] for i in (*parts.carried, *parts.kept)] + [body.refer(n) for n in stacked]
        carry = [self.states[k] for k in parts.carried]
        inner = body.select([*self.constants, *carry, *self.xs, *self.early], outputs)
        used = inner.list_used()
        rows = [n for n in (*self.xs, *self.early) if n in used]
        fixed = [n for n in self.constants if n in used]
        inner.inputs = [*fixed, *carry, *rows]
        return self.op.replace(inner, len(fixed), len(carry)), fixed, rows

    def _run_late(self, parts: OutputPlaces, constants: list[Any], sources: dict[int, Any], number: int) -> list[Any]:
        """Return what is computed after the loop from stacked values: terms of sums, and outputs."""
        wanted = [self.body.refer(self.sums[k][1]) for k in parts.summed]
        wanted += [self.body.outputs[i] for i in parts.afterwards]
        after = self.body.select([*self.constants, *sources], wanted)
        zs = after([*constants, *(Batched(number, x) for x in sources.values())])
        return [take_out(z, 0, number, self.op.length) for z in zs]
