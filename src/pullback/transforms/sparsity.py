"""Sparsity patterns: which results depend on which inputs, found from a recorded program.

The program is a backward pass, which is linear: sums, products with constants, and moved elements.  Which results of a
step depend on which elements of its input follows from how its op acts on axes; where that is not known, the op is run
on the numbers 1, 2, …, which shows where each element goes if the op only moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.axes import broadcast, reduces, scans
from pullback.core.calculus import linear
from pullback.core.tape import CAUGHT, copy_node
from pullback.core.tensor import RAW, Tensor
from pullback.errors import GradientError
from pullback.numerics.axis_arguments import resolve_axes
from pullback.transforms.colouring import color_columns
from pullback.transforms.linear import LinearRecord

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array

MAX_TRIALS = 64  # runs of an op, for each halving of its input
MAX_PLACES = 20_000_000  # elements of a pattern, above which a sparse derivative is not worth it


class Operand(NamedTuple):
    """One input of a step: its node if it is on the tape, and its value, or only its shape and dtype."""

    node: Tensor | None
    value: Any


class Spread(NamedTuple):
    """How a step spreads an input: its elements are gathered in groups (``into``), and results read one group each.

    ``None`` stands for every element by itself; -1 is an element that goes nowhere, a result that reads nothing.
    ``places``, where it is given, says it all: a sparse array of bools with a row for each result.
    """

    into: Any
    groups: int
    take: Any
    places: Any = None


def read_step(r: Tensor) -> tuple[Any, list[Operand], dict[str, Any]]:
    """Return the op of a step, or None for a gradient of the user's own, its inputs and its parameters."""
    step = r.via.original
    op = step.op
    found = [Operand(*pair) for pair in zip(step.operands(r), step.values(r), strict=True)]
    return op, found, {} if op is None or op.arity == 2 else dict(zip(op.params, r.y or (), strict=True))


# ---- what a program is like, so that two runs of one function can be compared


class Outline:
    """All that the pattern depends on: ops, operands, shapes, and the numbers that determine where elements go."""

    def __init__(self, record: LinearRecord) -> None:
        self.facts: list[Any] = []
        self.arrays: list[Any] = []
        self.steady = True  # whether the pattern of the derivative follows from the rest, whatever the values are
        numbers = {id(r): i for i, r in enumerate([*record.leaves, *record.nodes])}
        self._note(record.leaves[0].meta.shape)
        self._note(numbers.get(id(record.results[0])))
        for r in record.nodes:
            op, args, params = read_step(r)
            if op is None:
                self._note(object())  # unknown: no two runs are alike
                continue
            self.facts += (op, r.meta.shape)
            by_axes = isinstance(op.acts, broadcast)
            moving = sum(node is not None for node, _ in args)
            sure = op.variadic or by_axes or moving == 1  # of two that are multiplied, one may have zeros
            if not (op.elementwise or (type(op.d) is linear and sure)):  # a rule may go by what is largest, say
                self.steady = False
            for node, value in args:
                if node is not None:
                    self.facts += (value.shape, numbers[id(node)])
                else:
                    self._note(np.shape(value) if by_axes else value)
            for p in params.values():
                self._note(p)

    def _note(self, fact: object) -> None:
        if isinstance(fact, np.ndarray):
            self.arrays.append(fact)
        elif isinstance(fact, dict):
            self._note(list(fact.items()))
        elif isinstance(fact, tuple | list):
            self.facts.append(len(fact))
            for part in fact:
                self._note(part)
        else:
            self.facts.append(object() if isinstance(fact, Tensor) else fact)

    def is_same(self, other: Outline) -> bool:
        """Return whether two outlines are equal, so that their patterns are."""
        return (
            self.facts == other.facts
            and len(self.arrays) == len(other.arrays)
            and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(self.arrays, other.arrays, strict=True))
        )

    def freeze_arrays(self) -> Outline:
        """Replace the arrays by copies, which later writes to the arrays do not change, and return the outline."""
        self.arrays = [a.copy() for a in self.arrays]
        return self


# ---- the pattern


def find_pattern(record: LinearRecord, sparse: Any, face: str) -> Any:
    """Return a sparse array of bools: which elements of the first result depend on which of the first input."""
    leaf, result = record.leaves[0], record.results[0]
    n = leaf.meta.size
    if result is None:
        return sparse.csr_array((int(record.values[0].size), n), dtype=bool)
    found: dict[int, Any] = {id(leaf): sparse.csr_array(sparse.identity(n, bool, "csr"))}
    for r in record.nodes:
        op, args, params = read_step(r)
        size = r.meta.size
        total = None
        for k, (node, _) in enumerate(args):
            if node is None or id(node) not in found:
                continue
            spread = _spread_all(node.meta.size, size) if op is None else spread_input(sparse, r, op, args, params, k)
            part = _spread_rows(sparse, found[id(node)], spread, size, face, op)
            total = part if total is None else total + part
        if total is not None:
            found[id(r)] = total
    return found[id(result)]


def _spread_rows(sparse: Any, rows: Any, spread: Spread, size: int, face: str, op: Any) -> Any:
    """Return the rows of the results of a step from those of one of its inputs."""
    if spread.places is not None:
        return spread.places @ rows
    if spread.into is not None:
        is_used = spread.into >= 0
        which = spread.into[is_used], np.flatnonzero(is_used)
        chosen = sparse.csr_array((np.ones(len(which[0]), bool), which), shape=(spread.groups, rows.shape[0]))
        rows = chosen @ rows
    if spread.take is None:
        return rows
    is_used = spread.take >= 0
    take = spread.take[is_used]
    if int(np.diff(rows.indptr)[take].sum()) > MAX_PLACES:
        name = "a gradient of your own" if op is None else op.name
        raise GradientError(
            f"{face}: the derivative is not sparse: by {name} nearly everything depends on everything, in more than "
            f"{MAX_PLACES} places. Use {face.removeprefix('sparse_')}, or vjp and jvp, which make no matrix."
        )
    starts = np.concatenate([[0], np.cumsum(is_used)])
    return sparse.csr_array((np.ones(len(take), bool), take, starts), shape=(size, rows.shape[0])) @ rows


def _spread_all(n: int, size: int) -> Spread:
    return Spread(np.zeros(n, np.intp), 1, np.zeros(size, np.intp))


def spread_input(sparse: object, r: Tensor, op: Op, args: Sequence[Operand], params: dict[str, Any], k: int) -> Spread:
    """Return how the step ``r`` spreads its input ``k``."""
    acts, shape, out = op.acts, np.shape(args[k].value), r.meta.shape
    if isinstance(acts, broadcast):
        short = [len(np.shape(a.value)) < len(core) for a, core in zip(args, acts.core, strict=True)]
        if short[k]:  # a vector in the place of a matrix: a row or a column, and all of it goes everywhere
            return _spread_all(prod(shape), prod(out))
        core, left = acts.core[k], acts.out if not any(short) else [d for d in acts.out if d in acts.core[k]]
        return _find_by_signature(core, left, shape, out)
    if isinstance(acts, reduces):
        gone = resolve_axes(len(shape), params["axis"])
        return Spread(
            _number_elements(tuple(1 if i in gone else n for i, n in enumerate(shape)), shape), prod(out), None
        )
    if isinstance(acts, scans):
        along = resolve_axes(len(shape), params["axis"])
        lines = tuple(1 if i in along else n for i, n in enumerate(shape))
        return Spread(_number_elements(lines, shape), prod(lines), _number_elements(lines, out))
    return _find_by_trial(sparse, r, op, args, params, k) or _spread_all(prod(shape), prod(out))


def _number_elements(few: Sequence[int], shape: Sequence[int]) -> Any:
    """Return the numbers of the elements of a small array, repeated as broadcasting to ``shape`` does."""
    return np.broadcast_to(np.arange(prod(few)).reshape(few), shape).ravel()


def _find_by_signature(
    core: Sequence[str], left: Sequence[str], shape: tuple[int, ...], out: tuple[int, ...]
) -> Spread:
    """Return the dependencies of an op by its signature: along core axes that the result has, places stay apart."""
    if not core and not left:
        return Spread(None, 0, None if shape == out else _number_elements(shape, out))
    loop, length = shape[: len(shape) - len(core)], dict(zip(core, shape[len(shape) - len(core) :], strict=True))
    clear = len({*core}) == len(core) and len({*left}) == len(left)
    stay = [d for d in core if d in left] if clear else []
    few = loop + tuple(length[d] if d in stay else 1 for d in core)
    ordered = np.arange(prod(few)).reshape(loop + tuple(length[d] for d in stay))
    kept_out = [d for d in left if d in stay]
    ordered = ordered.transpose([*range(len(loop)), *(len(loop) + stay.index(d) for d in kept_out)])
    ordered = ordered.reshape(loop + tuple(length[d] if d in stay else 1 for d in left))
    return Spread(_number_elements(few, shape), prod(few), np.broadcast_to(ordered, out).ravel())


# ---- ops without a rule for axes: whether they merely move elements


def _find_by_trial(
    sparse: object, r: Tensor, op: Op, args: Sequence[Operand], params: dict[str, Any], k: int
) -> Spread | None:
    """Return where each element goes, by the op itself or by its rule; None if that cannot be found out cheaply."""
    shape, out = np.shape(args[k].value), r.meta.shape
    if not prod(shape) or not prod(out):
        return Spread(np.full(prod(shape), -1), prod(out), None)
    values = [_make_trial(a) for a in args]

    def perform(x: Array) -> Any:
        return op.call([*values[:k], x, *values[k + 1 :]], params)

    try:
        rest = perform(np.zeros(shape)[()])
        take = _find_sources(lambda x: perform(x) - rest, shape, out)
        if take is not None:
            return Spread(None, 0, take)
        into = _find_sources(lambda g: _pull_input(r, k, g), out, shape)
        if into is not None:
            return Spread(into, prod(out), None)
        places = _find_by_halves(sparse, lambda x: perform(x) - rest, shape, prod(out))
        return None if places is None else Spread(None, 0, None, places)
    except (*CAUGHT, AttributeError):  # it needs more than numbers of the right shape
        return None


def _find_by_halves(sparse: Any, f: Any, shape: tuple[int, ...], size: int) -> Any:
    """Return which results depend on which elements, for any linear ``f``.

    It is found for blocks of elements first, then for their halves.

    Blocks that reach nothing in common are tried together, so if every element reaches only a few results it takes few
    trials.  None if it takes many.
    """
    n = prod(shape)
    values = np.random.default_rng(n).random(n) + 0.5  # no two of them cancel
    width = 1 << (n - 1).bit_length()
    reach = sparse.csr_array(np.ones((1, size), bool))  # a row for each block
    while True:
        colours = color_columns(reach.indices, reach.indptr, size)
        if int(colours.max(initial=-1)) >= MAX_TRIALS:
            return None
        block = np.arange(n) // width
        met = [
            np.asarray(f(np.where(colours[block] == c, values, 0).reshape(shape)[()])).ravel() != 0
            for c in range(int(colours.max(initial=-1)) + 1)
        ]
        of_each = np.repeat(np.arange(reach.shape[0]), np.diff(reach.indptr))
        hit = np.array(met)[colours[of_each], reach.indices]
        rows, columns = of_each[hit], reach.indices[hit]
        if width == 1:
            return sparse.csr_array((np.ones(len(rows), bool), (columns, rows)), shape=(size, n))
        width //= 2
        halves = np.concatenate([2 * rows, 2 * rows + 1]), np.concatenate([columns, columns])
        inside = halves[0] * width < n
        halves = halves[0][inside], halves[1][inside]
        reach = sparse.csr_array((np.ones(len(halves[0]), bool), halves), shape=(-(-n // width), size))


def _make_trial(a: Operand) -> Any:
    """Return a trial input: zeros for one that varies, or whose value no rule reads."""
    if a.node is None and isinstance(a.value, RAW):
        return a.value
    return np.zeros(a.value.shape)[()]


def _pull_input(r: Tensor, k: int, g: Array) -> Any:
    """Return the cotangent of input ``k`` of a step for the cotangent ``g`` of its result, in the dtype of ``g``."""
    return r.via.original.cotangents(copy_node(r, g, r.value, lambda _, v: _widen(v, g.dtype)))[k]


def _widen(v: Any, dtype: np.dtype[Any]) -> Any:
    """Return an input of a step in another precision; zeros for one of which only shape and dtype are kept."""
    if getattr(v, "dtype", np.dtype(bool)).kind != "f" or isinstance(v, Tensor):
        return v
    return v.astype(dtype) if isinstance(v, RAW) else np.broadcast_to(np.zeros((), dtype), v.shape)


def _find_sources(f: Callable[..., Any], shape: tuple[int, ...], out: tuple[int, ...]) -> Any:
    """Return where in ``x`` each element of ``f(x)`` comes from, -1 for none; None if ``f`` does more than move."""
    n = prod(shape)
    values = np.random.default_rng(n).random(n + 1) + 1
    values[0] = 0
    places = np.asarray(f(np.arange(1.0, n + 1).reshape(shape)[()]))
    other = np.asarray(f(values[1:].reshape(shape)[()]))
    if places.shape != out or not np.all((places >= 0) & (places <= n) & (places == np.floor(places))):
        return None
    numbers = places.astype(np.intp).ravel()
    return numbers - 1 if np.array_equal(values[numbers], other.ravel()) else None
