"""A program that is loaded, and how it is called.

Most programs are one piece of machine code and are called through one entry.  Where ops run their NumPy kernels there
are pieces before and after them, each with an entry of its own; what is passed between them are arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.arena import ALIGN
from pullback.compiler.assembly import Assembler, Assembly
from pullback.compiler.cache import NOTHING, default_cache
from pullback.compiler.entry import Leaves, Result, entry, trusted
from pullback.compiler.fuse import work
from pullback.compiler.graph import Graph, Node
from pullback.compiler.guard import Guards
from pullback.compiler.machine import blas, host, library
from pullback.compiler.prepare import prepared
from pullback.compiler.threads import get_num_threads, pool, possible, usable
from pullback.errors import CompileError

__all__ = ["Native"]

LONG = 200_000  # work, in elements, from which on other threads of the interpreter may run meanwhile
HOLE = object()


class Step(NamedTuple):
    """One piece of a program that is in several: slots in, slots out, slots that nobody asks for any more."""

    call: Callable[..., Any]
    given: tuple[int, ...]
    made: tuple[int, ...]
    gone: tuple[int, ...]


class Native:
    """A graph as machine code."""

    def __init__(self, graph: Graph, cache: bool = True, threads: int | None = None) -> None:
        begin = perf_counter()
        self.graph = graph = prepared(graph)
        own = -threads if threads is not None else max(usable(), get_num_threads())
        guarded = Guards().on
        self.assembly: Assembly = Assembler(graph, host().lanes, own if possible() else 1, apart=guarded).run()
        self.stats = {"write": (perf_counter() - begin) * 1e3}
        names = [s.name for s in self.assembly.segments if s.name]
        self.addresses: dict[str, int] = {}
        self.library: Any = None
        if names:
            imports = {k: v for k, v in blas().items() if f"@{k}(" in self.assembly.text}
            if "@parallel(" in self.assembly.text:
                imports |= pool()
            kept = default_cache() if cache else NOTHING
            self.library, spent = library(self.assembly.text, names, imports, kept)
            self.addresses = self.library.addresses
            self.stats.update(spent)
        self.slots: list[Node] = list(self.assembly.slots)
        self.places = {n.number: i for i, n in enumerate(self.slots)}
        for o in graph.outputs:
            if o.number not in self.places:  # a number that is a result
                self.places[o.number] = len(self.slots)
                self.slots.append(o)
        self.inputs = [self.places[n.number] for n in graph.inputs]
        self.outputs = [self.places[o.number] for o in graph.outputs]
        constants = ((i, n) for i, n in enumerate(self.slots) if n.kind == "constant")
        self.constants = {i: fitted(n.data, n.shape, n.dtype.newbyteorder("=")) for i, n in constants}
        self.long = sum(map(_work, graph.nodes)) > LONG
        self.direct = trusted() and not guarded
        self.run = self._runner()

    def __call__(self, values: Sequence[Any]) -> Any:
        return self.run(*values)

    def _runner(self) -> Callable[..., Any]:
        if not self.direct:
            return self._by_hand
        if any(s.opaque for s in self.assembly.segments):
            pieces = Pieces(self)
            return pieces if pieces.complete else self._by_hand
        leaves = Leaves(HOLE, [HOLE] * len(self.inputs), self._kinds(self.inputs), (HOLE,) * len(self.outputs))
        found = self.entry(leaves, Fitting(self._kinds(self.inputs), self.entry(leaves, refused)))
        return found or self._by_hand

    def entry(
        self, leaves: Leaves, otherwise: Callable[..., Any], floats: Sequence[bool] | None = None
    ) -> Callable[..., Any] | None:
        """A way into the program for these trees of arguments and results; None if there can be none.

        ``floats`` are told for one that users come in by: which results are floats of Python's.
        """
        segments = self.assembly.segments
        if len(segments) > 1 or any(s.opaque for s in segments) or not self.direct:
            return None
        run = self.addresses[segments[0].name] if segments else 0
        results, taken = [], set(self.inputs) | set(self.constants)
        for i, place in enumerate(self.outputs):
            n, python = self.slots[place], floats is not None and floats[i]
            results.append(Result(*((-1, place) if place in taken else (place, -1)), n.shape, n.dtype, python))
            taken.add(place)
        return self.segment(
            run, leaves, self.inputs, results, otherwise, arena=self.assembly.arena, seen=floats is not None
        )

    def hand(
        self, leaves: Leaves, otherwise: Callable[..., Any], given: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """A function that looks at its arguments as an entry does, and gives their leaves to another function."""
        if not self.direct:
            return None
        return entry(0, [], [0] * len(leaves.inputs), [], leaves, otherwise, hand=given, seen=True)

    def segment(
        self, run: int, leaves: Leaves, inputs: Sequence[int], results: Sequence[Result], otherwise: Any, **how: Any
    ) -> Callable[..., Any] | None:
        """An entry for one piece; there is one slot more than the program knows of."""
        slots = [self.constants[i].ctypes.data if i in self.constants else 0 for i in range(len(self.slots) + 1)]
        held = self.library, self.constants
        return entry(run, slots, inputs, results, leaves, otherwise, held=held, release=self.long, **how)

    def _kinds(self, places: Sequence[int]) -> list[tuple[tuple[int, ...], Any, Any]]:
        return [(self.slots[i].shape, self.slots[i].dtype, None) for i in places]

    def _by_hand(self, *values: Any) -> list[Any]:
        """Without an entry: every piece is called through ctypes."""
        guards = Guards()
        arrays: list[Any] = [None] * len(self.slots)
        for place, v in zip(self.inputs, values, strict=True):
            arrays[place] = guards.copy(fitted(v, self.slots[place].shape, self.slots[place].dtype))
        for i, n in enumerate(self.slots):
            if i in self.constants:
                arrays[i] = guards.copy(self.constants[i])
            elif arrays[i] is None and n.kind not in ("opaque", "part"):
                arrays[i] = guards.empty(n.shape, n.dtype)
        arena = guards.arena(self.assembly.arena, self.assembly.blocks)
        start = -(-arena.ctypes.data // ALIGN) * ALIGN
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        for segment in self.assembly.segments:
            if segment.opaque is not None:
                for place, z in Opaque(self, segment.opaque).results(arrays):
                    arrays[place] = guards.copy(z)
            else:
                table = (ctypes.c_void_p * len(arrays))(*[0 if a is None else a.ctypes.data for a in arrays])
                kind(self.addresses[segment.name])(table, start)
            guards.check()
        return [np.array(arrays[place])[()] for place in self.outputs]


def _work(n: Node) -> int:
    """About how many vector instructions a node is."""
    if n.kind == "product":
        return n.size * n.args[0].shape[-1] // 4
    if n.kind == "scan":
        return n.args[0].size
    if n.kind == "windows":
        return int(n.data.work) // 4
    return n.size * work(n) if n.kind not in ("input", "constant") else 0


def refused(*values: Any) -> Any:
    raise CompileError(
        f"a program was called with {', '.join(f'{v.dtype}{list(v.shape)}' for v in values)}, not its own."
    )


def fitted(v: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array as a program takes it: of this dtype in the machine's order of bytes, aligned, its elements in order."""
    return np.require(np.asarray(v, dtype), None, ["C", "A"]).reshape(shape)


class Fitting:
    """Arguments that are not quite as a program takes them, made so."""

    def __init__(self, kinds: Sequence[tuple[tuple[int, ...], Any, Any]], call: Any) -> None:
        self.kinds, self.call = kinds, call

    def __call__(self, *values: Any) -> Any:
        return self.call(*(fitted(v, shape, dtype) for v, (shape, dtype, _) in zip(values, self.kinds, strict=True)))


class Opaque:
    """An op that runs its NumPy kernel."""

    def __init__(self, native: Native, n: Node) -> None:
        self.op, self.params = n.data
        self.constants = [None if a.kind != "constant" else a.data[()] for a in n.args]
        self.given = [native.places.get(a.number, -1) for a in n.args]
        parts = [m for m in native.slots if m.kind == "part" and m.args[0] is n]
        kinds = [(native.places[m.number], m.data, m.shape, m.dtype) for m in parts]
        self.parts = kinds if parts else [(native.places[n.number], None, n.shape, n.dtype)]

    def results(self, env: list[Any]) -> list[tuple[int, Any]]:
        xs = [
            c if c is not None else env[i][()] if not env[i].ndim else env[i]
            for c, i in zip(self.constants, self.given, strict=True)
        ]
        with np.errstate(all="ignore"):
            out = self.op.perform(xs, self.params)
        made = []
        for place, part, shape, dtype in self.parts:
            z = out if part is None else out[part]
            if type(z) is not np.ndarray or z.dtype != dtype or z.shape != shape:
                z = np.asarray(z, dtype).reshape(shape)
            made.append((place, z if z.flags.owndata and not any(z is x for x in xs) else z.copy()))
        return made


class Pieces:
    """A program in several pieces."""

    def __init__(self, native: Native) -> None:
        self.start = [native.constants.get(i) for i in range(len(native.slots))]
        self.inputs, self.outputs = native.inputs, native.outputs
        there = {*native.inputs, *native.constants}
        self.copied = [i in there or i in self.outputs[:at] for at, i in enumerate(self.outputs)]
        self.size = native.assembly.arena + ALIGN
        self.complete = True  # every piece has an entry
        self.spare: list[Any] = []  # memory for the pieces to use, one for each call that is under way
        steps: list[Step] = []
        for s in native.assembly.segments:
            if s.opaque is not None:
                opaque = Opaque(native, s.opaque)
                places = tuple(p[0] for p in opaque.parts)
                steps.append(Step(opaque.results, tuple(i for i in opaque.given if i >= 0), places, ()))
            else:
                given = tuple(sorted(s.slots & there - {*native.constants}))
                places = tuple(sorted(s.slots - there))
                steps.append(Step(self._entry(native, s.name, given, places), given, places, ()))
            there.update(places)
        last = {i: at for at, s in enumerate(steps) for i in (*s.given, *s.made)}
        kept = {*self.outputs, *native.constants}
        self.steps = [
            s._replace(gone=tuple(i for i, at in last.items() if at == number and i not in kept))
            for number, s in enumerate(steps)
        ]
        self.opaque = [s.opaque is not None for s in native.assembly.segments]

    def _entry(self, native: Native, name: str, given: tuple[int, ...], places: tuple[int, ...]) -> Any:
        arena = len(native.slots)
        kinds = [*native._kinds(given), ((self.size,), np.dtype(np.uint8), None)]
        leaves = Leaves(HOLE, [HOLE] * len(kinds), kinds, (HOLE,) * len(places))
        results = [Result(i, -1, native.slots[i].shape, native.slots[i].dtype) for i in places]

        def make(otherwise: Callable[..., Any]) -> Any:
            inputs = [*given, arena]
            return native.segment(native.addresses[name], leaves, inputs, results, otherwise, arena_from=arena)

        found = make(Fitting(kinds, make(refused)))
        self.complete &= found is not None
        return found

    def __call__(self, *values: Any) -> list[Any]:
        env = list(self.start)
        for place, v in zip(self.inputs, values, strict=True):
            env[place] = np.asarray(v)
        try:
            arena = self.spare.pop()
        except IndexError:  # all are in use
            arena = np.empty(self.size, np.uint8)
        try:
            for step, opaque in zip(self.steps, self.opaque, strict=True):
                if opaque:
                    for place, z in step.call(env):
                        env[place] = z
                else:
                    for place, z in zip(step.made, step.call(*[env[i] for i in step.given], arena), strict=True):
                        env[place] = z
                for i in step.gone:
                    env[i] = None
        finally:
            self.spare.append(arena)
        return [np.array(env[i])[()] if copied else env[i] for i, copied in zip(self.outputs, self.copied, strict=True)]
