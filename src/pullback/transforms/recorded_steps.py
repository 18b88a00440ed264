"""Equal steps on a tape: where they are, and of which nodes their operands are.

A Python ``for`` puts the same nodes on the tape in each step.  ``RecordedSteps`` finds for each operand of such a node
which node of the same or an earlier step it is, or that it is one from before the loop.  An element that was written
into an array in one of the steps is the written value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.op import REGISTRY
from pullback.core.tape import SAME, LooseStep, Step
from pullback.core.tensor import Tensor
from pullback.numerics import periods
from pullback.numerics.periods import Period, find_outer_periods, find_periods
from pullback.transforms.session import MIN_ROLLED_NODES

LONG_LOOP, MANY_NODES = 32, 250  # steps and nodes from which on elementwise steps become a loop too
SMALL_STEP = 1024  # bytes of the values of elementwise steps that need no kernel in common
MAX_DELAY = 4  # steps after which a value may be used last
MAX_PERIODS_OF_STEP = 4  # periods that one step may have: x and y may be computed by the same ops
MAX_WRITES = 256  # writes that are passed to find the one of an element
STEPS = (Step, LooseStep)
ALL = slice(None)
READ, WRITE = "getitem", "set_item"  # the ops that loops over elements of arrays consist of
VALUE: Any = vars(Tensor)["value"]  # the slot in which every kind of tensor has what is beneath it
Index = tuple[Any, ...]


def find_repeated_steps(nodes: Sequence[Tensor]) -> list[RecordedSteps]:
    """Return the steps on a tape that can be loops, in order."""
    labels = _label_nodes(nodes)
    inner = find_periods(labels)
    found: list[RecordedSteps] = []
    for period in sorted([*find_outer_periods(labels, inner), *inner], key=lambda p: (p.start, -p.length)):
        steps = _find_steps(nodes, period) if not found or period.start >= found[-1].end else None
        if steps is not None:
            found.append(steps)
    return found


def _find_steps(nodes: Sequence[Tensor], period: Period) -> RecordedSteps | None:
    """Return the steps of a period that can be a loop; a step may be several periods, with other operands."""
    counts = [*range(1, MAX_PERIODS_OF_STEP + 1)]
    for count in counts:
        if (period.end - period.start) // (period.length * count) >= periods.MIN_STEPS:
            steps = RecordedSteps(nodes, period._replace(length=period.length * count))
            if steps.classify():
                return steps if steps.is_worthwhile() else None
            if count == 1:
                counts += steps.list_long_delays()
    return None


# ---- labels


def _label_nodes(nodes: Sequence[Tensor]) -> Any:
    """Return a label for each node; nodes with equal labels could be the same node of two steps."""
    known: dict[Any, int] = {}
    labels = np.empty(len(nodes), np.int64)
    for i, r in enumerate(nodes):
        labels[i] = known.setdefault(_make_label(r) or i, len(known))
    return labels


def _make_label(r: Tensor) -> Any:
    """Return what the same nodes of two steps have in common; None for a node that is of no step."""
    step, meta, x, y = r.via, r.meta, r.x, r.y
    if type(step) not in STEPS or step.original is not step or meta.dtype.char not in "fd":
        return None
    if step.has_two_operands:
        return step, meta, x.meta, y.meta
    if type(x) is tuple:
        nodes, values, live = x
        inputs: Any = tuple([n.meta if on else _describe(v) for n, v, on in zip(nodes, values, live, strict=True)])
    elif step.has_two_inputs:
        return step, meta, x.meta, _describe(y)
    else:
        inputs = x.meta
    if (step.op is None and step is not SAME) or not step.has_rules:
        return None
    if not y:
        return step, meta, inputs
    try:
        return step, meta, inputs, _find_pattern(y[0]) if _is_indexing(r) else _freeze(y)
    except TypeError:
        return None


def _is_indexing(r: Tensor) -> bool:
    return r.via.op is not None and r.via.op.name in (READ, WRITE)


def _describe(v: Any) -> Any:
    """Return shape and dtype of a value, or the type of a Python number."""
    return (v.shape, v.dtype, getattr(v, "weak", None)) if hasattr(v, "dtype") else type(v)


def _find_pattern(index: Any) -> Any:
    """Return the kinds of the parts of an index."""
    parts = index if type(index) is tuple else (index,)
    if not all(type(i) in (int, slice, type(None), type(...)) for i in parts):
        raise TypeError
    return tuple(map(type, parts))


def _freeze(p: Any) -> Any:
    """Return a key of parameters; raise TypeError for those that have none."""
    if type(p) is tuple:
        return tuple(map(_freeze, p))
    if type(p) is float:
        return p.hex()
    if p is None or type(p) in (int, bool, str) or isinstance(p, np.dtype | type):
        return type(p), p
    raise TypeError


# ---- classes of operands


class EarlierOperand(NamedTuple):
    """An operand from the same step, or from some steps earlier."""

    place: int
    delay: int


class Fixed(NamedTuple):
    """An operand that is the same in all steps."""

    node: Tensor


class Other(NamedTuple):
    """An operand that is another node from before the loop in each step."""


Operand = EarlierOperand | Fixed | Other | None  # None: not on the tape


class RecordedSteps:
    """Equal steps on a tape, from ``first`` to ``last``, and the classes of the operands of their nodes."""

    def __init__(self, nodes: Sequence[Tensor], period: Period) -> None:
        start = period.start + _choose_cut(nodes, period)
        self.start, self.length = start, period.length
        self.count = (period.end - start) // period.length
        self.nodes = nodes[start : start + self.count * self.length]
        self.at = {id(n): i for i, n in enumerate(self.nodes)}
        self.operand_nodes = [n.via.operands(n) for n in self.nodes]
        self.cells = {i: _find_cell(n.y[0], n.shape) for i, n in enumerate(self.nodes) if _is_write(n)}
        self.written: set[int] = set()  # reads of elements whose value was written in one of the steps
        for i, n in enumerate(self.nodes):
            if self.cells and _is_read(n) and self.at.get(id(n.x), -1) in self.cells:
                self._resolve_read(i, n)
        self.first, self.last, self.middle = 0, self.count, self.count // 2
        self.operands: dict[tuple[int, int], Operand] = {}

    @property
    def begin(self) -> int:
        return self.start + self.first * self.length

    @property
    def end(self) -> int:
        return self.start + self.last * self.length

    @property
    def steps(self) -> int:
        return self.last - self.first

    def get(self, place: int, step: int) -> Tensor:
        return self.nodes[step * self.length + place]

    def get_all(self, place: int) -> Sequence[Tensor]:
        """Return the nodes at a place of all steps of the loop."""
        return self.nodes[self.first * self.length + place : self.last * self.length : self.length]

    def get_operand(self, place: int, k: int, step: int) -> Any:
        return self.operand_nodes[step * self.length + place][k]

    def list_operands(self, place: int) -> list[Operand]:
        return [self.operands[place, k] for k in range(len(self.operand_nodes[place]))]

    def get_fixed(self, operand: Operand) -> Tensor:
        """Return the node of an operand that is the same in all steps: from before the loop, or of the first step."""
        assert isinstance(operand, EarlierOperand | Fixed)
        return operand.node if isinstance(operand, Fixed) else self.get(operand.place, self.first)

    def _resolve_read(self, i: int, r: Tensor) -> None:
        """Replace the operand of a read by the value that was written, or by the array before other elements were."""
        cell, node = _find_cell(r.y[0], r.x.shape), r.x
        for _ in range(MAX_WRITES):
            at = self.at.get(id(node), -1) if node is not None else -1
            if at not in self.cells:
                self.operand_nodes[i] = [node]
                return
            other = self.cells[at]
            if cell is None or other is None:
                return
            if cell == other:
                value = node.x[1][1]
                if np.shape(value) == r.shape and getattr(value, "dtype", None) == r.meta.dtype:
                    self.operand_nodes[i] = [self.operand_nodes[at][1]]
                    self.written.add(i)
                return
            if not any(type(a) is int and type(b) is int and a != b for a, b in zip(cell, other, strict=True)):
                return
            node = self.operand_nodes[at][0]

    # ---- classification

    def classify(self) -> bool:
        """Classify all operands and find the steps that agree; return whether these can be a loop."""
        places = [(j, k) for j in range(self.length) for k in range(len(self.operand_nodes[j]))]
        if any(len(self.operand_nodes[i]) != len(self.operand_nodes[i % self.length]) for i in range(len(self.nodes))):
            return False
        for j, k in places:
            self.operands[j, k] = self._classify_operand(j, k)
        for j, k in places:
            self._narrow(j, k)
            if self.steps < periods.MIN_STEPS:
                return False
        return self._find_roles()

    def _classify_operand(self, j: int, k: int) -> Operand:
        a, b = (self.get_operand(j, k, t) for t in (self.middle, self.middle + 1))
        if a is None:
            return None
        if a is b:
            return Fixed(a)
        i = self.at.get(id(a), -1)
        return EarlierOperand(i % self.length, self.middle - i // self.length) if i >= 0 else Other()

    def _narrow(self, j: int, k: int) -> None:
        """Leave out the steps at both ends in which an operand has another class."""
        operand, low, high = self.operands[j, k], self.middle, self.middle + 1
        while low > self.first and self._agrees(operand, j, k, low - 1):
            low -= 1
        while high < self.last and self._agrees(operand, j, k, high):
            high += 1
        if isinstance(operand, EarlierOperand) and operand.delay > MAX_DELAY:
            low = high
        if isinstance(operand, Fixed) and id(operand.node) in self.at:
            low = max(low, self.at[id(operand.node)] // self.length + 1)
        self.first, self.last = low, max(high, low)

    def _agrees(self, operand: Operand, j: int, k: int, t: int) -> bool:
        a, i = self.get_operand(j, k, t), t * self.length + j
        if (i in self.written) != (self.middle * self.length + j in self.written):
            return False
        if operand is None:
            return a is None
        if isinstance(operand, Fixed):
            return a is operand.node
        if isinstance(operand, EarlierOperand):
            return t >= operand.delay and a is self.get(operand.place, t - operand.delay)
        return a is not None and id(a) not in self.at

    def _find_roles(self) -> bool:
        """Find which nodes are not computed in the loop, and return whether the others can be."""
        at, places = self.middle * self.length, range(self.length)
        self.aliases = {j for j in places if at + j in self.written}
        indexing = {j for j in places if _is_indexing(self.get(j, 0))} - self.aliases
        varying = {j for j in indexing if not self._has_same_index(j)}
        self.sources = {j for j in varying if _is_read(self.get(j, 0))}  # elements of arrays from before the loop
        self.sinks = varying - self.sources  # writes to an array that is used after the loop only
        self.fixed: set[int] = set()  # nodes that are the same in all steps
        for j in places:
            if j not in varying | self.aliases and self._is_fixed(j):
                self.fixed.add(j)
        return all(map(self._is_line, self.sources)) and not self._reads_sinks()

    def _is_line(self, j: int) -> bool:
        """Return whether the elements that are read at a place are of one array, at equal distances."""
        return isinstance(self.operands[j, 0], Fixed) and find_line([n.y[0] for n in self.get_all(j)]) is not None

    def _reads_sinks(self) -> bool:
        """Return whether an array that is written to is used in the steps otherwise than by the next write."""
        return any(
            isinstance(x, EarlierOperand) and x.place in self.sinks and (j not in self.sinks or k != 0)
            for (j, k), x in self.operands.items()
        )

    def _has_same_index(self, j: int) -> bool:
        index = self.get(j, self.first).y
        return all(n.y == index for n in self.get_all(j))

    def _is_fixed(self, j: int) -> bool:
        found = self.list_operands(j)
        if not all(
            x is None
            or isinstance(x, Fixed)
            or (isinstance(x, EarlierOperand) and not x.delay and x.place in self.fixed)
            for x in found
        ):
            return False
        constants = [k for k, x in enumerate(found) if x is None]
        rows = [[n.via.values(n)[k] for n in self.get_all(j)] for k in constants]
        return all(map(are_same, rows))

    def list_long_delays(self) -> list[int]:
        """Return after how many steps values are used that are used later than a loop supports."""
        delays = {operand.delay for operand in self.operands.values() if isinstance(operand, EarlierOperand)}
        return sorted(d for d in delays if d > max(MAX_DELAY, MAX_PERIODS_OF_STEP))

    def is_worthwhile(self) -> bool:
        """Return whether there are many nodes, and the loop is about as quick as its steps.

        Few elementwise steps on larger arrays would be one kernel.
        """
        places = [j for j in range(self.length) if j not in self.fixed | self.sources | self.sinks]
        if len(places) * self.steps < MIN_ROLLED_NODES:
            return False
        if self.steps >= LONG_LOOP and len(self.nodes) >= MANY_NODES:
            return True
        nodes = [self.get(j, self.middle) for j in places]
        is_one_kernel = all(n.via.op is None or n.via.op.elementwise or n.via.op.makes_views for n in nodes)
        return not is_one_kernel or all(n.meta.size * n.meta.dtype.itemsize <= SMALL_STEP for n in nodes)


def _choose_cut(nodes: Sequence[Tensor], period: Period) -> int:
    """Return where in a period steps begin: where the fewest elements are carried from one to the next."""
    start, length, end = period
    begin = start + (end - start) // length // 2 * length
    at = {id(n): i for i, n in enumerate(nodes[start:end], start)}
    until: dict[int, int] = {}  # the last use of each value of one period
    for i in range(begin, min(begin + (MAX_DELAY + 1) * length, end)):
        for a in nodes[i].via.operands(nodes[i]):
            first = at.get(id(a), -1)
            if begin <= first < begin + length and i - first <= MAX_DELAY * length:
                until[first] = i
    crossed = [0] * length
    for first, used in until.items():
        for i in range(first + 1, used + 1):
            crossed[(i - start) % length] += nodes[first].meta.size
    return min(range(length), key=lambda cut: (crossed[cut], cut))


def _is_read(r: Tensor) -> bool:
    return r.via.op is not None and r.via.op.name == READ


def _is_write(r: Tensor) -> bool:
    return r.via.op is not None and r.via.op.name == WRITE


def _find_cell(index: Any, shape: tuple[int, ...]) -> Index | None:
    """Return an index of integers and whole axes in full; None for any other."""
    parts = index if type(index) is tuple else (index,)
    if len(parts) > len(shape) or not all(type(i) is int or (type(i) is slice and i == ALL) for i in parts):
        return None
    found = [i + n if type(i) is int and i < 0 else i for i, n in zip(parts, shape, strict=False)]
    return (*found, *[ALL] * (len(shape) - len(parts)))


def identify(v: Any) -> Any:
    """Return a key that is the same for values that are surely the same."""
    if not isinstance(v, Tensor):
        return (type(v), np.asarray(v).tobytes()) if np.shape(v) == () else id(v)
    while type(v) is Tensor and v.x is not None and v.via is SAME:  # saved for an inner tape
        v = v.x
    if type(v) is Tensor:
        return id(v)
    beneath = VALUE.__get__(v)
    if not v.level or getattr(v, "has_tangent", False):
        return id(v)
    return type(v), v.level, identify(beneath) if isinstance(beneath, Tensor) else id(beneath)


def are_same(values: Sequence[Any]) -> bool:
    """Return whether all values are surely the same."""
    key = identify(values[0])
    return all(identify(v) == key for v in values[1:])


# ---- elements of arrays


class Line(NamedTuple):
    """Elements of an array at equal distances, one for each step."""

    place: Index
    axis: int  # of the selected elements, along which they follow
    backwards: bool

    def select(self, x: Any) -> Any:
        """Return the elements of an array, stacked along axis 0 in the order of the steps."""
        z = np.moveaxis(REGISTRY[READ].function(x, self.place), self.axis, 0)
        return np.flip(z, 0) if self.backwards else z

    def arrange(self, rows: Any) -> Any:
        """Return stacked elements in the order of the array."""
        return np.moveaxis(np.flip(rows, 0) if self.backwards else rows, 0, self.axis)


def find_line(indices: Sequence[Any]) -> Line | None:
    """Return the elements that several indices select, each another one, if they are at equal distances."""
    rows = [i if type(i) is tuple else (i,) for i in indices]
    moving = [k for k, i in enumerate(rows[0]) if i != rows[1][k]]
    if len(moving) != 1 or not all(type(i) in (int, slice) for i in rows[0]) or type(rows[0][moving[0]]) is not int:
        return None
    (k,) = moving
    low, step = rows[0][k], rows[1][k] - rows[0][k]
    if any(row != (*rows[0][:k], low + t * step, *rows[0][k + 1 :]) for t, row in enumerate(rows)):
        return None
    high = rows[-1][k]
    if (low < 0) != (high < 0):
        return None
    low, high = min(low, high), max(low, high)
    part = slice(low, high + 1 if high != -1 else None, abs(step))
    axis = sum(type(i) is slice for i in rows[0][:k])
    return Line((*rows[0][:k], part, *rows[0][k + 1 :]), axis, step < 0)
