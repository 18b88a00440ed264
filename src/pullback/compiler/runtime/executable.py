"""Executables: linked programs, and how they are called.

Most programs are one segment of machine code and are called through one native entry.  Where there are host ops, there
are segments before and after them, each with an entry of its own; arrays are passed between them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph
from pullback.compiler.runtime.abi.entry import EntryResult, Leaves, is_entry_usable, make_entry
from pullback.compiler.runtime.guard_pages import Guards
from pullback.compiler.runtime.link import Linked
from pullback.compiler.runtime.manifest import ArraySlot, HostOpRecord
from pullback.compiler.runtime.numpy_executor import run_again
from pullback.compiler.target import LINE_BYTES
from pullback.errors import CompileError

HOLE = object()


class SegmentCall(NamedTuple):
    """The call of one segment of a program, or of a host op."""

    call: Callable[..., Any]
    reads: tuple[int, ...]  # slots of the arrays that it takes
    writes: tuple[int, ...]  # slots of the arrays that it returns
    released: tuple[int, ...]  # slots that nothing uses after it


class SegmentMemory(NamedTuple):
    """The memory of a run of a program whose segments are called one by one, by ctypes."""

    guards: Guards
    arrays: list[Any]  # by slot
    arena: Any


class Executable:
    """A program whose machine code is in memory."""

    def __init__(
        self, linked: Linked, traced: Graph, guarded: bool = False, complete: Callable[[], Linked] | None = None
    ) -> None:
        self.traced = traced
        self.complete = complete  # compiles the same program with slow paths; None if it has them or needs none
        self.manifest, arrays, self.host_ops = linked.contents
        self.loaded, self.addresses, self.stats = linked.loaded, linked.addresses, linked.stats
        self.slots: Sequence[ArraySlot] = self.manifest.slots
        self.inputs, self.outputs = self.manifest.inputs, self.manifest.outputs
        self.check = -1  # the slot of a truth value: whether a check failed; -1 without checks
        if traced.checks:
            self.outputs, self.check = self.outputs[:-1], self.outputs[-1]
        self.constants = {
            i: fit_array(x, self.slots[i].shape, self.slots[i].dtype.newbyteorder("=")) for i, x in arrays.items()
        }
        self.code = {name: ctypes.c_int64(address) for name, address in self.addresses.items()}  # what entries run
        self.kept: list[Any] = [self.loaded, self.constants]  # what code and entries refer to
        self.direct = is_entry_usable() and not guarded and self.check not in self.outputs
        self.run = self._choose_runner()

    def __call__(self, values: Sequence[Any]) -> Any:
        return self.run(*values)

    def _choose_runner(self) -> Callable[..., Any]:
        if not self.direct:
            return self._run_with_ctypes
        if any(s.host_op for s in self.manifest.segments):
            segments = SegmentedProgram(self)
            return segments if segments.complete else self._run_with_ctypes
        kinds = self.list_signatures(self.inputs)
        leaves = Leaves(HOLE, [HOLE] * len(self.inputs), kinds, (HOLE,) * len(self.outputs))
        found = self.make_program_entry(
            leaves, ArgumentFitter(kinds, partial(self.make_program_entry, leaves, self._refuse))
        )
        return found or self._run_with_ctypes

    def make_program_entry(
        self,
        leaves: Leaves,
        otherwise: Callable[..., Any],
        floats: Sequence[bool] | None = None,
        switch: int | None = None,
    ) -> Callable[..., Any] | None:
        """Return a native function for these trees of arguments and results; None if there can be none.

        ``otherwise`` is called with arguments that do not fit.  For a function that users call, ``floats`` says which
        results are returned as Python floats, and ``switch`` is the address of a word that is 0 while the environment
        is that of the program (``core.environment``).
        """
        segments = self.manifest.segments
        if len(segments) > 1 or any(s.host_op for s in segments) or not self.direct:
            return None
        run = self.code[segments[0].name] if segments else None
        results, taken = [], set(self.inputs) | set(self.constants)
        for i, place in enumerate(self.outputs):
            n, python = self.slots[place], floats is not None and floats[i]
            results.append(EntryResult(*((-1, place) if place in taken else (place, -1)), n.shape, n.dtype, python))
            taken.add(place)
        return self.make_segment_entry(
            run, leaves, self.inputs, results, otherwise, arena=self.manifest.arena, switch=switch, flag=self.check
        )

    def make_forwarder(
        self, leaves: Leaves, otherwise: Callable[..., Any], run: Callable[..., Any], switch: int
    ) -> Callable[..., Any] | None:
        """Return a native function that checks its arguments and passes their leaves to another function."""
        if not self.direct:
            return None
        return make_entry(None, [], [0] * len(leaves.inputs), [], leaves, otherwise, forward_to=run, switch=switch)

    def make_segment_entry(
        self,
        run: ctypes.c_int64 | None,
        leaves: Leaves,
        inputs: Sequence[int],
        results: Sequence[EntryResult],
        otherwise: Any,
        **options: Any,
    ) -> Callable[..., Any] | None:
        """Return a native function for one segment; the slot after the last is that of the arena."""
        options |= {"held": self.kept, "release": self.manifest.releases_gil}
        return make_entry(run, self.slot_addresses, inputs, results, leaves, otherwise, **options)

    @cached_property
    def slot_addresses(self) -> list[int]:
        """The addresses of the constants, and 0 for the other slots and the arena."""
        return [self.constants[i].ctypes.data if i in self.constants else 0 for i in range(len(self.slots) + 1)]

    def _refuse(self, *values: Any) -> Any:
        """Handle arguments that the entry passed on, although they fit.

        Either slow paths are needed: then the program is compiled with them and run again.  Or a check failed: then
        NumPy runs the traced graph, and raises the error.  Otherwise the arguments are wrong, which raises.
        """
        if self.complete is not None:
            self._add_slow_paths(self.complete)
            return self.run(*values)
        if self.check >= 0:
            return run_again(self.traced, values)
        return refuse(*values)

    def _add_slow_paths(self, complete: Callable[[], Linked]) -> None:
        """Compile the program with slow paths, and make all entries run that code; calls in progress are unaffected."""
        linked = complete()
        self.kept.append(linked.loaded)
        self.addresses = linked.addresses
        for name, address in linked.addresses.items():
            self.code[name].value = address
        self.complete = None

    def list_signatures(self, places: Sequence[int]) -> list[tuple[tuple[int, ...], Any, Any]]:
        """Return the shapes and dtypes of some slots, as those of arrays."""
        return [(self.slots[i].shape, self.slots[i].dtype, None) for i in places]

    def _run_with_ctypes(self, *values: Any) -> list[Any]:
        """Run the program without an entry: every segment is called through ctypes."""
        memory = self.prepare_segments(values)
        self.call_segments(memory, lambda call: call())
        arrays = memory.arrays
        if self.complete is not None and self.loaded is not None and self.loaded.rare.value:
            self._add_slow_paths(self.complete)
            return self._run_with_ctypes(*values)
        if self.check >= 0 and arrays[self.check]:
            return [z[()] for z in run_again(self.traced, values)]
        return [np.array(arrays[place])[()] for place in self.outputs]

    def prepare_segments(self, values: Sequence[Any]) -> SegmentMemory:
        """Return memory for a run of the program by ctypes, with copies of these arguments."""
        guards = Guards()
        arrays: list[Any] = [None] * len(self.slots)
        for place, v in zip(self.inputs, values, strict=True):
            arrays[place] = guards.copy(fit_array(v, self.slots[place].shape, self.slots[place].dtype))
        for i, n in enumerate(self.slots):
            if i in self.constants:
                arrays[i] = guards.copy(self.constants[i])
            elif arrays[i] is None and not n.kind.runs_on_host:
                arrays[i] = guards.empty(n.shape, n.dtype)
        return SegmentMemory(guards, arrays, guards.arena(self.manifest.arena, self.manifest.blocks))

    def call_segments(self, memory: SegmentMemory, run: Callable[[Callable[[], object]], object]) -> None:
        """Call the segments of the program in order; ``run`` is given the call of each."""
        guards, arrays, arena = memory
        start = -(-arena.ctypes.data // LINE_BYTES) * LINE_BYTES
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        ops = iter(self.host_ops)
        for segment in self.manifest.segments:
            if segment.host_op is not None:
                results: list[tuple[int, Any]] = []
                host_call = HostCall(self, segment.host_op, next(ops))
                run(lambda call=host_call, results=results: results.extend(call.run(arrays)))  # type: ignore[misc]
                for place, z in results:
                    arrays[place] = guards.copy(z)
            else:
                table = (ctypes.c_void_p * len(arrays))(*[0 if a is None else a.ctypes.data for a in arrays])
                run(partial(kind(self.addresses[segment.name]), table, start))
            guards.check()


def refuse(*values: Any) -> Any:
    """Raise the error for arguments that are not those of a program."""
    raise CompileError(
        f"a program was called with {', '.join(f'{v.dtype}{list(v.shape)}' for v in values)}, not its own."
    )


def fit_array(v: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array as programs take it: of this dtype in native byte order, aligned, in C order."""
    return np.require(np.asarray(v, dtype), None, ["C", "A"]).reshape(shape)


class ArgumentFitter:
    """Calls a program, which is made by ``make_call``, with arguments that are converted to what it takes."""

    def __init__(self, kinds: Sequence[tuple[tuple[int, ...], Any, Any]], make_call: Callable[[], Any]) -> None:
        self.kinds, self.make_call = kinds, make_call

    @cached_property
    def call(self) -> Any:
        return self.make_call()

    def __call__(self, *values: Any) -> Any:
        # A number stays the object that it is: a segment writes its result over one that a segment before made.
        return self.call(
            *(
                v if not shape and isinstance(v, np.generic) and v.dtype == dtype else fit_array(v, shape, dtype)
                for v, (shape, dtype, _) in zip(values, self.kinds, strict=True)
            )
        )


class HostCall:
    """The call of an op that NumPy runs."""

    def __init__(self, native: Executable, host_op: HostOpRecord, op: tuple[Any, dict[str, Any]]) -> None:
        self.op, self.params = op
        self.reads = host_op.reads
        parts = host_op.parts
        self.parts = [(place, part, native.slots[place].shape, native.slots[place].dtype) for place, part in parts]

    def run(self, env: list[Any]) -> list[tuple[int, Any]]:
        """Run the op on the arrays of its slots, and return the slots and arrays of its results."""
        xs = [env[i][()] if not env[i].ndim else env[i] for i in self.reads]
        with np.errstate(all="ignore"):
            out = self.op.perform(xs, self.params)
        results = []
        for place, part, shape, dtype in self.parts:
            z = out if part < 0 else out[part]
            if type(z) is not np.ndarray or z.dtype != dtype or z.shape != shape:
                z = np.asarray(z, dtype).reshape(shape)
            results.append((place, z if z.flags.owndata and not any(z is x for x in xs) else z.copy()))
        return results


class SegmentedProgram:
    """Runs a program of several segments, with host ops between them."""

    def __init__(self, native: Executable) -> None:
        self.start = [native.constants.get(i) for i in range(len(native.slots))]
        self.inputs, self.outputs = native.inputs, native.outputs
        self.check, self.traced = native.check, native.traced
        known = {*native.inputs, *native.constants}
        self.copied = [i in known or i in self.outputs[:at] for at, i in enumerate(self.outputs)]
        self.size = native.manifest.arena + LINE_BYTES
        self.complete = True  # every segment has an entry
        self.spare: list[Any] = []  # memory for the segments to use, one for each call that is under way
        self.steps = self._free_after_last_use(self._list_calls(native), {*native.constants})
        self.are_host_ops = [s.host_op is not None for s in native.manifest.segments]

    def _list_calls(self, native: Executable) -> list[SegmentCall]:
        """Return the calls of the segments of a program, in order."""
        calls: list[SegmentCall] = []
        known = {*native.inputs, *native.constants}  # slots whose arrays exist before a segment runs
        ops = iter(native.host_ops)
        for s in native.manifest.segments:
            if s.host_op is not None:
                host_call = HostCall(native, s.host_op, next(ops))
                writes = tuple(part[0] for part in host_call.parts)
                calls.append(SegmentCall(host_call.run, tuple(host_call.reads), writes, ()))
            else:
                reads = tuple(i for i in s.slots if i in known and i not in native.constants)
                writes = tuple(i for i in s.slots if i not in known)
                calls.append(SegmentCall(self._make_entry(native, s.name, reads, writes), reads, writes, ()))
            known.update(writes)
        return calls

    def _free_after_last_use(self, calls: list[SegmentCall], constants: set[int]) -> list[SegmentCall]:
        """Return the calls, each with the slots that no later call uses and that are no results."""
        last = {i: at for at, call in enumerate(calls) for i in (*call.reads, *call.writes)}
        kept = {*self.outputs, self.check, *constants}
        released: list[list[int]] = [[] for _ in calls]
        for i, at in last.items():
            if i not in kept:
                released[at].append(i)
        return [call._replace(released=tuple(slots)) for call, slots in zip(calls, released, strict=True)]

    def _make_entry(self, native: Executable, name: str, reads: tuple[int, ...], writes: tuple[int, ...]) -> Any:
        arena = len(native.slots)
        kinds = [*native.list_signatures(reads), ((self.size,), np.dtype(np.uint8), None)]
        leaves = Leaves(HOLE, [HOLE] * len(kinds), kinds, (HOLE,) * len(writes))
        results = [EntryResult(i, -1, native.slots[i].shape, native.slots[i].dtype) for i in writes]

        def make(otherwise: Callable[..., Any]) -> Any:
            inputs = [*reads, arena]
            return native.make_segment_entry(native.code[name], leaves, inputs, results, otherwise, arena_from=arena)

        found = make(ArgumentFitter(kinds, partial(make, refuse)))
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
            for step, is_host_op in zip(self.steps, self.are_host_ops, strict=True):
                if is_host_op:
                    for place, z in step.call(env):
                        env[place] = z
                else:
                    for place, z in zip(step.writes, step.call(*[env[i] for i in step.reads], arena), strict=True):
                        env[place] = z
                for i in step.released:
                    env[i] = None
        finally:
            self.spare.append(arena)
        if self.check >= 0 and env[self.check]:
            return [z[()] for z in run_again(self.traced, values)]
        return [np.array(env[i])[()] if copied else env[i] for i, copied in zip(self.outputs, self.copied, strict=True)]
