"""The differentiable sum: a function of parameters whose value and derivatives of any order come from workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from pullback.core import hooks
from pullback.core.bundle import place_all
from pullback.core.convert import unwrap_constant
from pullback.core.interpreter import level_of
from pullback.core.memory import node_of
from pullback.core.tape import TAPED, Tape
from pullback.transforms.arguments import Arguments
from pullback.transforms.batch import Batched
from pullback.transforms.custom_op import Back, BodyRun, CustomOp, like, make_zero_gradient

CallWorkers = Callable[[tuple[int, ...], list[Any]], Sequence[Any]]  # (counts of arrays by order, arrays) -> results
Kind = Literal["whole", "parts"]  # of an array: the same for all shards, or one for each of them


class WorkersOp(CustomOp):
    """A function of arrays that workers compute; its backward pass is such a function of the next order.

    ``counts`` has the number of arrays for each order (see ``scale.work.make_derivative``).
    """

    def __init__(self, name: str, call_workers: CallWorkers, counts: tuple[int, ...]) -> None:
        super().__init__(name)
        self.call_workers, self.counts = call_workers, counts

    def apply(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results of the workers; no transform can trace them, as their function captures no tensor."""
        return self._apply(hooks.capture_operands([unwrap_constant(a) for a in args]))

    def run(self, values: Sequence[Any]) -> BodyRun:
        level = max(map(level_of, values), default=0)
        is_traced = bool(level)  # a further transform follows them
        if any(type(x) is Batched and x.level == level for x in values):
            return BodyRun(self._run_examples(level, values), self._make_back(values))
        if is_traced:
            return BodyRun(WorkersOp(self.name, self.call_workers, self.counts).apply(values), self._make_back(values))
        return BodyRun(self._compute(self.counts, values), self._make_back(values))

    def _make_back(self, values: Sequence[Any]) -> Back:
        def back(dys: list[Any]) -> Sequence[Any]:
            counts = (*self.counts, len(values) + len(dys))
            if any(map(level_of, [*values, *dys])):
                return WorkersOp(self.name, self.call_workers, counts).apply([*values, *dys])
            return self._compute(counts, [*values, *dys])

        return back

    def _run_examples(self, level: int, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results for all examples of a ``vmap``, which workers compute one after the other."""
        on = [type(x) is Batched and x.level == level for x in values]
        size = next(len(x.array) for x, b in zip(values, on, strict=True) if b)
        rows = [self.apply([x.array[i] if b else x for x, b in zip(values, on, strict=True)]) for i in range(size)]
        return tuple(Batched(level, np.stack(column)) for column in zip(*rows, strict=True))

    def _compute(self, counts: tuple[int, ...], values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(map(unwrap_constant, self.call_workers(counts, [np.asarray(x) for x in values])))

    run_checked = run_traced = run

    def record(self, tape: Tape, args: Sequence[Any], values: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Perform the op one level down, and put its node on the tape."""
        values = [unwrap_constant(v) for v in values]
        return self.place(tape, args, *self.run(values)[:2])

    def place(self, tape: Tape, args: Sequence[Any], zs: Sequence[Any], back: Back) -> tuple[Any, ...]:
        """Put results and their backward pass on the tape."""
        nodes = [node_of(a) if tape.holds(a) else None for a in args]
        if len(zs) == 1:
            return place_all(tape, zs, nodes, back)
        likes = [like(z) for z in zs]

        def pull(gs: list[Any]) -> Sequence[Any]:
            return back([make_zero_gradient(z) if g is None else g for g, z in zip(gs, likes, strict=True)])

        return place_all(tape, zs, nodes, pull)

    def check_linear(self, back: Any, xs: Sequence[Any], zs: Sequence[Any]) -> None:
        """Do nothing: what workers compute as a backward pass is linear, and so there is nothing to check."""


def compute_on_workers(name: str, call_workers: CallWorkers, xs: Sequence[Any]) -> Sequence[Any]:
    """Return what workers compute from arrays: Tensors if there is one among these, and arrays otherwise."""
    op = WorkersOp(name, call_workers, (len(xs),))
    if (tape := _find_only_tape(xs)) is not None:
        return op.place(tape, xs, *op.run([x.value if type(x) in TAPED else x for x in xs])[:2])
    arguments = Arguments(xs)
    return [arguments.convert_back(z) for z in op.apply(arguments.flat)]


def _find_only_tape(xs: Sequence[Any]) -> Tape | None:
    """Return the tape of some of the arrays, if nothing else follows any of them: the usual case, and the quick way."""
    tape: Tape | None = None
    for x in xs:
        if type(x) in TAPED:
            m = x.meta
            if not m.raw or not m.tape.level or (tape is not None and tape is not m.tape):
                return None
            tape = m.tape
        elif type(x) is not np.ndarray or x.dtype.kind not in "fiubc":
            return None
    return None if hooks.blocks else tape


def list_kinds(leaves: int, order: int) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds of the arrays and of the results of a derivative of a function with a result for each shard.

    The arrays of the next order are these arrays and a cotangent for each result; its results are cotangents of these
    arrays.

    >>> list_kinds(2, 1)
    (['whole', 'whole', 'parts'], ['whole', 'whole'])
    """
    arrays: list[Kind] = ["whole"] * leaves
    results: list[Kind] = ["parts"]
    for _ in range(order):
        arrays, results = arrays + results, arrays
    return arrays, results
