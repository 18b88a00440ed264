"""The backward pass over several nodes with large values at once, block by block; ``Machine.pull_large`` calls it.

Memory limits such a pass: each rule reads and writes arrays that the cache does not hold.  So the rules of a run, nodes
that follow each other on the tape, are run for a few thousand elements, then for the next ones: cotangents between
these nodes stay in the cache and never become arrays, and what several rules read is read once.
``find_run`` finds the nodes, ``NodeRun.write_parts`` writes the parts of the job, which ``run_blocks`` of
``eager_backward`` runs.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.runtime.abi.eager_records import BLOCK, FLAGS, PROGRAM
from pullback.compiler.runtime.abi.layout import read_address
from pullback.core.memory import calls_function, is_sole, take_buffer
from pullback.core.tensor import Tensor

MOST_NODES = 12  # of a run: their cotangents stay in the cache
NOTHING = (0, 0, 0)  # the words of a place that is not used


class BlockPlace(NamedTuple):
    """Where the elements of a value are in memory."""

    at: int  # address of the first
    stride: int  # bytes from element to element, 0 for a single number
    advance: int  # bytes per element from block to block: the stride, but 0 for a buffer that every block uses again
    array: Any = None  # the array that they are in, if any

    @property
    def words(self) -> tuple[int, int, int]:
        """The three words that a part has of a place."""
        return self.at, self.stride, self.advance


def find_place(v: Any, meta: Any) -> BlockPlace | None:
    """Return the place of an array with a meta's shape and dtype, or of one number; None for anything else."""
    if type(v) is np.ndarray and (v.dtype is meta.dtype or v.dtype == meta.dtype):
        flags = v.flags
        if flags.aligned:
            if v.shape == meta.shape and flags.c_contiguous:
                item = v.itemsize
                return BlockPlace(read_address(v), item, item, v)
            if not v.ndim or (v.shape == meta.shape and not any(v.strides)):
                return BlockPlace(read_address(v), 0, 0, v)
    if type(v) is meta.dtype.type:
        held = np.array(v)
        return BlockPlace(read_address(held), 0, 0, held)
    return None


def view_place(at: int, count: int, stride: int, dtype: np.dtype[Any]) -> Any:
    """Return the elements at an address as an array, without axes if the stride is 0; None for the address 0."""
    if not at:
        return None
    memory: Any = (ctypes.c_char * (dtype.itemsize + (count - 1) * stride)).from_address(at)
    return np.ndarray((count,) if stride else (), dtype, memory, strides=(stride,) if stride else ())


class Rules(NamedTuple):
    """A node with large values, and the programs of its rules."""

    node: Any
    programs: list[int]  # addresses, one for each operand that has a rule
    formulas: tuple[Any, ...]  # the rules in Python
    operands: list[Any]  # the tensors whose cotangents these compute
    values: list[Any]  # places of the cotangent (always None here), the result and the operands, None if not read


def read_rules(r: Any, meta: Any) -> Rules | None:
    """Return the rules of a node; None if Python must run them."""
    step = r.via.original
    if type(r) is not Tensor or r.meta is not meta or step.programs is None or not step.blockwise:
        return None
    programs, reads, formulas = step.programs["fd".index(meta.dtype.char)]
    if any(calls_function(formula, meta.dtype) for formula in formulas):
        return None  # there is quicker machine code than NumPy's
    operands = [r.x, r.y][: len(programs)]
    if not all(_is_operand_known(a, meta) for a in operands):
        return None
    places: list[Any] = [None]
    for i, v in enumerate((r.value, r.x.value, r.y.value if len(operands) == 2 else r.y), 1):
        is_read = reads >> i & 1
        place = find_place(v, meta) if is_read else None
        if is_read and place is None:
            return None
        places.append(place)
    return Rules(r, programs, formulas, operands, places)


def _is_operand_known(a: Any, meta: Any) -> bool:
    """Return whether an operand has a node's meta, and no cotangent but one whose place is known."""
    return type(a) is Tensor and a.meta is meta and (a.g is None or find_place(a.g, meta) is not None)


def find_run(r: Any) -> list[Rules]:
    """Return the rules of a node, and of nodes before it that can be run together with it.

    These nodes are taken off the tape.  The list is empty if there is no second one.
    """
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


class NodeRun:
    """The parts of a job (``PART`` of ``eager_records``): one for each operand of each node of a run."""

    def __init__(self, rules: list[Rules], copy: int, buffers: int, ignored: int) -> None:
        self.rules = rules
        self.copy = copy  # address of the program that copies its input
        self.buffers = buffers  # address of free memory, which ``_allocate`` gives away block by block
        self.ignored = ignored  # floating-point flags that are not reported
        self.meta = rules[0].node.meta
        self.item = self.meta.dtype.itemsize
        self.parts: list[tuple[int, ...]] = []
        self.formulas: list[Any] = []  # the rule of each part, in Python
        self.held: list[Any] = []  # places of arrays that parts read, to which there may be no other reference
        self.inside = {id(n.node) for n in rules}
        # By the id of a tensor, the place of its cotangent so far, and whether that may be written to: it may not if it
        # is the cotangent of another node as well.
        self.cotangents: dict[int, tuple[BlockPlace, bool]] = {}

    def write_parts(self) -> None:
        """Write the parts; operands that are no nodes of the run get the arrays of their cotangents (``g``) now."""
        for rule in self.rules:
            r = rule.node
            if id(r) not in self.cotangents and r.g is None:
                continue  # the node has no cotangent
            source = self.cotangents[id(r)][0] if id(r) in self.cotangents else find_place(r.g, self.meta)
            assert source is not None
            self.held.append(source)
            for program, formula, a in zip(rule.programs, rule.formulas, rule.operands, strict=True):
                self._add_part(program, formula, a, source, rule.values)

    def _add_part(self, program: int, formula: Any, a: Any, source: BlockPlace, values: list[Any]) -> None:
        """Write the part that adds the result of a rule to the cotangent of an operand ``a``.

        ``source`` is the place of the node's cotangent.  Where a rule passes that on unchanged to an operand that has
        none yet, both share it, and there is no part.
        """
        passes = not ctypes.c_int64.from_address(program + 8 * PROGRAM["length"]).value
        if passes and id(a) not in self.cotangents and a.g is None and self._share(a, source):
            return
        before, out = self._find_cotangent(a)
        self.cotangents[id(a)] = out, True
        inputs = [word for place in (source, *values[1:]) for word in (place.words if place else NOTHING)]
        first = NOTHING if before is None else before.words
        program = self.copy if passes and before is None else program
        self.parts.append((program, *inputs, *first, *out.words, self.ignored))
        self.formulas.append(formula)
        self.held.append(before)

    def _share(self, a: Any, source: BlockPlace) -> bool:
        """Make the cotangent of a node that of ``a`` as well; False if that is in a buffer, which ``a`` outlasts."""
        if id(a) not in self.inside:
            if source.array is None:
                return False
            a.g = source.array
        self.cotangents[id(a)] = source, False
        return True

    def _find_cotangent(self, a: Any) -> tuple[BlockPlace | None, BlockPlace]:
        """Return where the cotangent of ``a`` is so far, None if it has none, and where the sum is written."""
        if id(a) in self.cotangents:
            before, is_writeable = self.cotangents[id(a)]
            return before, before if is_writeable else self._allocate(a)
        if a.g is None:
            return None, self._allocate(a)
        if id(a) in self.inside:
            return find_place(a.g, self.meta), self._allocate(a)
        e, a.g = a.g, None
        is_free = is_sole(e) and e.base is None and e.flags.writeable and any(e.strides)
        place = find_place(e, self.meta)
        if is_free:
            a.g = e
        return place, place if is_free and place is not None else self._allocate(a)

    def warn(self, flags: int, number: int, block: int) -> None:
        """Compute one block of a part again in Python, so that NumPy warns of it or raises an error."""
        start, dtype = block * BLOCK, self.meta.dtype
        size = min(BLOCK, self.meta.size - start)
        if flags & FLAGS:
            inputs = zip(*[iter(self.parts[number][1:13])] * 3, strict=True)
            self.formulas[number](*[view_place(at + start * go, size, step, dtype) for at, step, go in inputs])

    def _allocate(self, a: Any) -> BlockPlace:
        """Return a new place for the cotangent of ``a``: a buffer of one block for a node of the run, else an array."""
        if id(a) in self.inside:
            self.buffers += 8 * BLOCK
            return BlockPlace(self.buffers - 8 * BLOCK, self.item, 0)
        out = take_buffer(self.meta.pool)
        a.g = out = np.empty(self.meta.shape, self.meta.dtype) if out is None else out
        return BlockPlace(read_address(out), self.item, self.item, out)
