"""Loops and branches that stay what they are when they are compiled: ``scan``, ``while_loop``, ``cond`` and their kin.

Run eagerly they are Python's own loops and branches, step by step.  In a function that is being compiled they are traced
once and become loops and branches of the machine code, also under ``grad``, ``jvp`` and ``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.convert import as_value, bare, join_array
from pullback.core.tape import ARRAYS
from pullback.core.tensor import BY_KERNEL, Tensor
from pullback.core.variable import writer
from pullback.errors import ArgumentError, ShapeError
from pullback.transforms.arguments import paths
from pullback.transforms.grad import describe
from pullback.transforms.scan_op import ScanOp

__all__ = ["fori_loop", "map", "scan"]

NUMBERS = (bool, int, float, complex)


def scan(
    f: Callable[..., Any],
    carry: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    recompute: bool = False,
) -> tuple[Any, Any]:
    """Run ``carry, y = f(carry, x)`` for each ``x`` along axis 0 of ``xs``; return the last carry and all ``y``.

    f: takes the carry and one element of ``xs``, and returns the next carry and a result of this step.
    carry: what goes from step to step, a tree of arrays; its shapes and dtypes stay the same.
    xs: a tree of arrays of the same length along axis 0, or None.
    length: the number of steps; needed where ``xs`` is None.
    reverse: go from the last element to the first.  Results stay at the places of their elements.
    unroll: how many steps a compiled loop does in one go.
    recompute: store few states for the backward pass of a compiled loop, and compute the others again.

    The results of the steps are stacked along a new axis 0.  Run eagerly it is a Python loop.  Compiled it is traced
    once and stays a loop, and so does its gradient.

    >>> import numpy as np, pullback as pb
    >>> pb.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (6.0, array([0., 2., 9.]))
    >>> pb.grad(lambda w: pb.scan(lambda h, x: (w * h + x, None), 1.0, np.ones(3))[0])(2.0)
    17.0
    """
    return _scan("scan", f, carry, xs, length, reverse, _check_count("scan: unroll", unroll), recompute)


def _scan(
    name: str,
    f: Callable[..., Any],
    carry: Any,
    xs: Any,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    recompute: bool = False,
) -> tuple[Any, Any]:
    steps, program = Steps(name, f, carry, xs, length, reverse), writer()
    if program is not None:
        return steps.trace(program, unroll, recompute)
    return steps.run() if steps.length else steps.run_none()


def map(f: Callable[..., Any], xs: Any) -> Any:
    """Apply ``f`` to each element along axis 0 of ``xs``, one after the other, and stack the results.

    f: takes one element, and returns an array or a tree of them.
    xs: an array or a tree of them, of the same length along axis 0.

    ``vmap`` does all at once; this needs the memory of one.

    >>> import numpy as np, pullback as pb
    >>> pb.map(lambda x: x @ x, np.arange(6.0).reshape(3, 2))
    array([ 1., 13., 41.])
    """
    if xs is None or not tree.leaves(xs):
        raise ArgumentError("map: xs has no arrays in it; give what f is to be applied to.")
    return _scan("map", lambda _, x: (None, f(x)), None, xs)[1]


def fori_loop(lo: int, hi: int, body: Callable[..., Any], carry: Any) -> Any:
    """Return ``carry`` after ``carry = body(i, carry)`` for each ``i`` from ``lo`` up to, not including, ``hi``.

    lo: the first ``i``, an integer.
    hi: the end, an integer that is known while compiling.
    body: takes ``i`` and the carry, and returns the next carry.
    carry: what goes from step to step, a tree of arrays; its shapes and dtypes stay the same.

    >>> import pullback as pb
    >>> pb.fori_loop(0, 5, lambda i, x: x * 2.0 + i, 1.0)
    58.0
    """
    for name, bound in (("lo", lo), ("hi", hi)):
        if isinstance(bound, bool) or not hasattr(bound, "__index__"):
            raise ArgumentError(f"fori_loop: {name} must be an integer, got {bound!r}.")
    numbers = np.arange(int(lo), max(int(lo), int(hi)))
    return _scan("fori_loop", lambda state, i: (body(i, state), None), carry, numbers)[0]


def _check_count(what: str, count: Any) -> int:
    if isinstance(count, bool) or not hasattr(count, "__index__") or int(count) < 1:
        raise ArgumentError(f"{what} must be a positive integer, got {count!r}.")
    return int(count)


class Steps:
    """The steps of one call of ``scan``."""

    def __init__(
        self, name: str, f: Callable[..., Any], carry: Any, xs: Any, length: int | None, reverse: bool
    ) -> None:
        if not callable(f):
            raise ArgumentError(f"{name}: f must be a function, got {type(f).__name__}.")
        self.name, self.f, self.reverse = name, f, reverse
        self.carry = tree.map_leaves(as_operand, carry, whole=tree.is_number_list)
        self.xs = tree.map_leaves(as_array, xs, whole=tree.is_number_list)
        self.length = self._find_length(length)

    def _find_length(self, length: int | None) -> int:
        found: dict[int, str] = {}
        for path, x in paths("xs", self.xs):
            if x is not None and not np.ndim(x):
                raise ShapeError(f"{self.name}: {path} is a number; there is no axis to go along.")
            if x is not None:
                found.setdefault(x.shape[0], f"{path} has {x.shape[0]} elements along axis 0")
        if length is not None:
            if isinstance(length, bool) or not hasattr(length, "__index__") or int(length) < 0:
                raise ArgumentError(f"{self.name}: length must be an integer that is not negative, got {length!r}.")
            found.setdefault(int(length), f"length is {length}")
        if len(found) > 1:
            raise ShapeError(f"{self.name}: {' but '.join([*found.values()][:2])}; they must be equal.")
        if not found:
            raise ArgumentError(f"{self.name}: xs has no arrays in it, so length must say how many steps there are.")
        return next(iter(found))

    def step(self, carry: Any, x: Any) -> tuple[Any, Any]:
        """Run one step, and return its checked carry and its result."""
        made = self.f(carry, x)
        if not isinstance(made, tuple) or len(made) != 2:
            raise ArgumentError(f"{self.name}: f must return a pair (carry, y), got {describe(made)}.")
        return check_carry(self.name, carry, made[0]), made[1]

    # ---- eagerly

    def run(self) -> tuple[Any, Any]:
        """Run the steps in Python."""
        carry, rows = self.carry, [None] * self.length
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            carry, rows[t] = self.step(carry, tree.map_leaves(lambda x, t=t: x[t], self.xs))
        return carry, _stack_trees(rows)

    def run_none(self) -> tuple[Any, Any]:
        """Return what no steps give: the carry, and empty arrays of what a step would give for zeros."""
        zeros = tree.map_leaves(lambda x: np.zeros(x.shape, x.dtype)[()] if isinstance(x, ARRAYS) else x, self.carry)
        _, y = self.step(zeros, tree.map_leaves(lambda x: np.zeros(x.shape[1:], x.dtype)[()], self.xs))
        return self.carry, tree.map_leaves(lambda z: np.zeros((0, *np.shape(z)), as_array(z).dtype), y)

    # ---- in a program that is being compiled

    def trace(self, program: Any, unroll: int, recompute: bool) -> tuple[Any, Any]:
        """Record a step, and add the loop to the program."""
        recorded = self._record(program)
        if recorded is None:
            return self.run()
        body, captured, carry, y = recorded
        op = ScanOp(body, len(captured), len(carry), self.length, self.reverse)
        zs = run_loop(op, [*captured, *carry, *tree.leaves(self.xs)], unroll, recompute)
        count = len(carry)
        return tree.replace_leaves(self.carry, list(zs[:count])), tree.replace_leaves(y, list(zs[count:]))

    def _record(self, program: Any) -> Any:
        """Return the body, what it captured, the leaves of the carry, and the result of a step.

        None if there is something that must be done in turn, such as draws of random numbers.
        """
        carry = tree.leaves(self.carry)
        while True:
            with program.open_body() as trace:
                given = [trace.add_input(np.shape(x), *get_kind(x)) for x in carry]
                elements = [trace.add_input(x.shape[1:], x.dtype) for x in tree.leaves(self.xs)]
                new, y = self.step(tree.replace_leaves(self.carry, given), tree.replace_leaves(self.xs, elements))
                if trace.draws:
                    return None
                after = [as_array(z) for z in tree.leaves(new)]
                if all(get_kind(x) == get_kind(z) for x, z in zip(carry, after, strict=True)):
                    body, captured = trace.close([*after, *(as_array(z) for z in tree.leaves(y))])
                    return body, captured, carry, y
            # Python numbers get the dtype that a step makes of them
            carry = [_cast_number(x, z.dtype) for x, z in zip(carry, after, strict=True)]


def as_array(x: Any) -> Any:
    """Return a leaf as an array, or a tensor of some level."""
    return bare(join_array(x)) if isinstance(x, ARRAYS) else as_value(x)


def as_operand(x: Any) -> Any:
    """Return a leaf of the carry as an array; a Python number stays one."""
    return x if type(x) in NUMBERS else as_array(x)


def get_kind(x: Any) -> tuple[Any, Any]:
    """Return the dtype of a leaf, and the type of a Python number that it stands for."""
    return (np.asarray(x).dtype, type(x)) if type(x) in NUMBERS else (x.dtype, getattr(x, "weak", None))


def _cast_number(x: Any, dtype: Any) -> Any:
    if get_kind(x)[1] is None:
        return x
    return np.astype(x, dtype) if isinstance(x, Tensor) else np.asarray(x, dtype)[()]


def check_carry(name: str, before: Any, after: Any) -> Any:
    """Return the carry after a step, in the order of the one before; refuse one of other structure, shapes or dtypes."""
    after = _arrange_like(before, after)
    old, new = [*paths("carry", before)], [*paths("carry", after)]
    if _get_structure(before) != _get_structure(after):
        raise ArgumentError(f"{name}: the structure of the carry changes in a step, from {describe(before)} with "
                            f"{', '.join(p for p, _ in old)} to {describe(after)} with {', '.join(p for p, _ in new)}.")
    for (path, x), (_, z) in zip(old, new, strict=True):
        if x is None:
            continue
        if np.shape(x) != np.shape(z):
            raise ShapeError(f"{name}: the shape of {path} changes in a step, from {np.shape(x)} to {np.shape(z)}.")
        (dtype, weak), (other, _) = get_kind(x), get_kind(z if type(z) in NUMBERS else as_array(z))
        if weak is None and dtype != other and not _is_number(z):
            raise ArgumentError(
                f"{name}: the dtype of {path} changes in a step, from {dtype} to {other}. "
                f"Begin with {other}, or cast it back."
            )
    return after


def _is_number(z: Any) -> bool:
    return type(z) in NUMBERS or getattr(z, "weak", None) is not None


def _arrange_like(before: Any, after: Any) -> Any:
    """Return a tree with the keys of its dicts in the order that they have in another one."""
    if isinstance(before, dict) and isinstance(after, dict) and {*before} == {*after}:
        return tree.branches(before)[1]([_arrange_like(before[k], after[k]) for k in before])  # type: ignore[index]
    parts, others = (None if x is None else tree.branches(x) for x in (before, after))
    if parts is None or others is None or len(parts[0]) != len(others[0]) or type(before) is not type(after):
        return after
    return others[1]([_arrange_like(b, a) for b, a in zip(parts[0], others[0], strict=True)])


def _get_structure(x: Any) -> Any:
    parts = None if x is None else tree.branches(x)
    if parts is None:
        return x is None
    return (type(x), [*x] if isinstance(x, dict) else None, *[_get_structure(part) for part in parts[0]])


def _stack_trees(rows: Sequence[Any]) -> Any:
    """Return trees of the same structure as one, with their leaves stacked along a new axis 0."""
    columns = zip(*(tree.leaves(row) for row in rows), strict=True)
    return tree.replace_leaves(rows[0], [_stack(column) for column in columns])


def _stack(column: tuple[Any, ...]) -> Any:
    if any(isinstance(z, Tensor) for z in column):
        return BY_KERNEL[np.stack].function([*column])
    return np.stack([np.asarray(z) for z in column])


def run_loop(op: ScanOp, operands: Sequence[Any], unroll: int, recompute: bool) -> Sequence[Any]:
    """Return the results of a loop; of one without steps, the carry and empty arrays."""
    if op.length:
        return op.apply(operands)
    carry = operands[op.constants : op.constants + op.carry]
    return [*carry, *(np.zeros(shape, dtype) for shape, dtype in op.infer()[op.carry :])]
