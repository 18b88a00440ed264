"""The backward pass over nodes with large values, several of them at once and block by block.

What limits such a pass is memory: each rule reads and writes arrays that the cache does not hold.  So a run of nodes is
done together for a few thousand elements, then for the next ones: cotangents between these nodes stay in the cache and
never become arrays, and what several rules read is read once.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.runtime.abi.eager_code import BLOCK, FLAGS
from pullback.core.memory import calls_function, is_sole, take
from pullback.core.tensor import Tensor

__all__ = ["Run", "find_run"]

MOST_NODES = 12  # of a run: their cotangents stay in the cache
NOTHING = (0, 0, 0)


class Place(NamedTuple):
    """Where elements are: an address, the stride, the bytes per element to go on by with the blocks, and the array."""

    at: int
    stride: int
    advance: int
    array: Any = None

    @property
    def words(self) -> tuple[int, int, int]:
        return self.at, self.stride, self.advance


def find_place(v: Any, meta: Any) -> Place | None:
    """Return the place of an array like a meta, or of one number; None for anything else."""
    if type(v) is np.ndarray and v.dtype == meta.dtype and v.flags.aligned:
        if v.shape == meta.shape and v.flags.c_contiguous:
            return Place(v.ctypes.data, v.itemsize, v.itemsize, v)
        if not v.ndim or (v.shape == meta.shape and not any(v.strides)):
            return Place(v.ctypes.data, 0, 0, v)
    if type(v) is meta.dtype.type:
        held = np.array(v)
        return Place(held.ctypes.data, 0, 0, held)
    return None


def view_place(at: int, count: int, stride: int, dtype: np.dtype[Any]) -> Any:
    """Return the elements at an address as an array, one number as an array without axes; None for no address."""
    if not at:
        return None
    memory: Any = (ctypes.c_char * (dtype.itemsize + (count - 1) * stride)).from_address(at)
    return np.ndarray((count,) if stride else (), dtype, memory, strides=(stride,) if stride else ())


class Rules(NamedTuple):
    """A node with large values, and the programs of its rules: addresses, and where each operand is."""

    node: Any
    programs: list[int]
    operands: list[Any]
    values: list[Any]  # places of the cotangent, the result and the operands, None for what no rule reads


def read_rules(r: Any, meta: Any) -> Rules | None:
    """Return the rules of a node; None if they are for Python."""
    step = r.via.plain
    if type(r) is not Tensor or r.meta is not meta or step.programs is None or not step.blockwise:
        return None
    if any(calls_function(rule, meta.dtype) for rule in step.operand_rules if rule is not None):
        return None  # there is quicker machine code than NumPy's
    programs, reads = step.programs["fd".index(meta.dtype.char)]
    operands = [r.x, r.y][: len(programs)]
    if any(type(a) is not Tensor or a.meta is not meta for a in operands):
        return None
    found: list[Any] = [None]
    for i, v in enumerate((r.value, r.x.value, r.y.value if len(operands) == 2 else r.y), 1):
        found.append(find_place(v, meta) if reads >> i & 1 else None)
        if reads >> i & 1 and found[-1] is None:
            return None
    if any(a.g is not None and find_place(a.g, meta) is None for a in operands):
        return None
    return Rules(r, programs, operands, found)


def find_run(r: Any) -> list[Rules]:
    """Return the rules of a node and of those before it on the tape that can be done together; those are taken off."""
    meta = r.meta
    if meta.dtype.char not in "fd" or not meta.dtype.isnative or find_place(r.g, meta) is None:
        return []
    first = read_rules(r, meta)
    if first is None:
        return []
    found, nodes = [first], meta.tape.nodes
    while nodes and len(found) < MOST_NODES:
        n = nodes[-1]
        more = read_rules(n, meta) if type(n) is Tensor and n.meta is meta else None
        if more is None or (n.g is not None and find_place(n.g, meta) is None):
            break
        found.append(more)
        nodes.pop()
    return found if len(found) > 1 else []  # one node alone gains nothing: a gather's gradient took 1.8 times as long


class Run:
    """The parts of a job: for each operand of each node of a run, a program and where it reads and writes."""

    def __init__(self, rules: list[Rules], copy: int, buffers: int, ignored: int) -> None:
        self.rules, self.copy, self.buffers = rules, copy, buffers  # the addresses of a program and of free memory
        self.ignored = ignored  # flags of floating-point arithmetic that are not told of
        self.meta = rules[0].node.meta
        self.item = self.meta.dtype.itemsize
        self.parts: list[tuple[int, ...]] = []
        self.formulas: list[Any] = []  # the rule of each part, in Python
        self.held: list[Any] = []  # arrays that parts read, which may have no other holder any more
        self.inside = {id(n.node) for n in rules}
        self.now: dict[int, tuple[Place, bool]] = {}  # cotangents as far as they are known, and whether they are ours

    def plan(self) -> None:
        """Write the parts; operands before the run get the arrays that their cotangents will be in."""
        for rule in self.rules:
            r = rule.node
            if id(r) not in self.now and r.g is None:
                continue  # not reached
            source = self.now[id(r)][0] if id(r) in self.now else find_place(r.g, self.meta)
            assert source is not None
            self.held.append(source)
            formulas = [f for f in r.via.plain.operand_rules if f is not None]
            for program, formula, a in zip(rule.programs, formulas, rule.operands, strict=True):
                self._add(program, formula, a, source, rule.values)

    def _add(self, program: int, formula: Any, a: Any, source: Place, values: list[Any]) -> None:
        passes, is_inside = not ctypes.c_int64.from_address(program).value, id(a) in self.inside
        if id(a) in self.now:
            before, is_ours = self.now[id(a)]
            out = before if is_ours else self._take(a, is_inside)
        elif a.g is None:
            if passes and (is_inside or source.array is not None):  # the very cotangent, which both share
                self.now[id(a)] = source, False
                a.g = None if is_inside else source.array
                return
            before, out = None, self._take(a, is_inside)
        elif is_inside:
            before, out = find_place(a.g, self.meta), self._take(a, True)
        else:
            e, a.g = a.g, None
            free = is_sole(e) and e.base is None and e.flags.writeable and any(e.strides)
            before = find_place(e, self.meta)
            if free:
                a.g = e
            out = before if free and before is not None else self._take(a, False)
        self.now[id(a)] = out, True
        inputs = [word for place in (source, *values[1:]) for word in (place.words if place else NOTHING)]
        first = NOTHING if before is None else before.words
        program = self.copy if passes and before is None else program
        self.parts.append((program, *inputs, *first, *out.words, self.ignored))
        self.formulas.append(formula)
        self.held.append(before)

    def warn(self, flags: int, number: int, block: int) -> None:
        """Let NumPy warn, or raise an error, of what a rule did in one block, by computing that block again."""
        start, dtype = block * BLOCK, self.meta.dtype
        size = min(BLOCK, self.meta.size - start)
        if flags & FLAGS:
            inputs = zip(*[iter(self.parts[number][1:13])] * 3, strict=True)
            self.formulas[number](*[view_place(at + start * go, size, step, dtype) for at, step, go in inputs])

    def _take(self, a: Any, is_inside: bool) -> Place:
        """Return a place for a cotangent: a buffer of one block for a node of the run, else an array."""
        if is_inside:
            self.buffers += 8 * BLOCK
            return Place(self.buffers - 8 * BLOCK, self.item, 0)
        out = take(self.meta.pool)
        a.g = out = np.empty(self.meta.shape, self.meta.dtype) if out is None else out
        return Place(out.ctypes.data, self.item, self.item, out)
