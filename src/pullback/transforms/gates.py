"""Cotangents that exist only if a branch is taken: those of values that only branches use.

In eager code such a value has no cotangent unless its branch is taken, and its backward steps are not run.  A compiled
program runs them in any case; with a cotangent of zero, an infinite derivative would turn it into NaN.  So the
cotangent is a ``Gate``: an array, and whether the branch was taken.  What the backward pass computes from a gate is a
gate.  Where it is added to another cotangent or returned, it becomes an array, of zeros if the branch was not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pullback.core.interpreter import level_of, new_level
from pullback.core.tensor import PLAIN, Tensor, Wrapped
from pullback.transforms.structured_op import StructuredOp

__all__: list[str] = []


class Gate(Wrapped):
    """A cotangent ``array`` that counts only if ``taken``, one bool, is true; otherwise it stands for zero."""

    __slots__ = ()

    array: Any = vars(Tensor)["value"]
    taken: Any = vars(Tensor)["via"]
    number: int = vars(Tensor)["y"]
    has_derivative = False

    def __init__(self, array: Any, taken: Any, number: int | None = None) -> None:
        self.array, self.taken, self.number = array, taken, new_level() if number is None else number

    def twin(self) -> Gate:
        return Gate(self.array, self.taken, self.number)

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    level = property(lambda self: self.number)

    def beneath(self) -> Any:
        return self.array

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Perform an op of a backward pass; only sums have another cotangent as an operand."""
        gates = [a for a in args if isinstance(a, Gate)]
        is_sum = not op.custom and op.kernel is np.add
        if op.custom or (is_sum and len(gates) < len(args)):
            return op.call([open_gate(a) for a in args], params)
        if all(g.taken is self.taken for g in gates):
            return Gate(op.call([a.array if isinstance(a, Gate) else a for a in args], params), self.taken, self.number)
        return Gate(op.call([open_gate(a) for a in args], params), find_any(gates), self.number)


PLAIN.add(Gate)


class GateOp(StructuredOp):
    """Returns its second operand where the first, a bool, is true, and zeros otherwise."""

    name = "gate"

    def __init__(self, like: Any) -> None:
        self.shape, self.dtype = like.shape, like.dtype

    def infer(self) -> list[tuple[Any, Any]]:
        return [(self.shape, self.dtype)]

    def run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return (_select(*args),)

    def lower(self, trace: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        return (_select(*args),)

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        taken, t = primals[0], tangents[1]
        return self.apply(primals), [None if t is None else self.apply([taken, t])[0]]

    def batch(self, arrays: Sequence[Any], on: Sequence[bool], size: int) -> tuple[Sequence[Any], Sequence[bool]]:
        taken, x = arrays
        x = x if on[1] else np.broadcast_to(x, (size, *np.shape(x)))
        if not on[0]:
            return GateOp(x).apply([taken, x]), [True]
        return [_select(np.reshape(taken, (-1, *(1,) * (np.ndim(x) - 1))), x)], [True]

    def differentiate(self, values: Sequence[Any], live: Sequence[bool]) -> tuple[Sequence[Any], Any]:
        return self.apply(values), lambda gs: [None, None if gs[0] is None else Gate(gs[0], values[0])]


def _select(taken: Any, x: Any) -> Any:
    return np.where(taken, x, np.zeros((), x.dtype))


def open_gate(x: Any) -> Any:
    """Return a cotangent as an array that is zero if it is not there; anything else as it is."""
    if not isinstance(x, Gate):
        return x
    return GateOp(x.array).apply([x.taken, x.array])[0]


def find_any(gates: Sequence[Gate]) -> Any:
    """Return whether any of some cotangents is there."""
    return reduce(np.logical_or, [g.taken for g in gates])


def pull_gates(back: Callable[[list[Any]], Sequence[Any]], gs: Sequence[Any]) -> Sequence[Any]:
    """Return the cotangents that ``back`` computes from those of several results; none is there if none of them is."""
    gates = [g for g in gs if isinstance(g, Gate)]
    if not gates:
        return back(list(gs))
    ds = back([open_gate(g) for g in gs])
    if len(gates) < sum(g is not None for g in gs):
        return ds
    taken, number = find_any(gates), max(map(level_of, gates))
    return [None if d is None else join_gates(d, taken, number) for d in ds]


def join_gates(d: Any, taken: Any, number: int) -> Gate:
    """Return a cotangent, which may be a gate, that is there only if ``taken`` as well."""
    return Gate(d.array, np.logical_and(d.taken, taken), d.number) if isinstance(d, Gate) else Gate(d, taken, number)
