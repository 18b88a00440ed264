"""The monitor: an interpreter level that performs each op one level down and notes it with the user's line.

A tape above it computes with its tensors in both passes, so that the ops of derivative rules are noted too.  The
purpose of an op (a step of a backward pass, a tangent, one example of ``vmap``) is on a stack of the monitor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import hooks
from pullback.core.bundle import PICK
from pullback.core.convert import unwrap_constant
from pullback.core.interpreter import new_level
from pullback.core.op import Op
from pullback.core.source import NOT_THE_USER, format_place
from pullback.core.tape import add_cotangent
from pullback.core.tensor import RAW, Tensor, Wrapped, all_values, iterate_levels, stop_following
from pullback.diagnostics.backward_steps import list_cotangents
from pullback.diagnostics.pass_observers import PassObserver
from pullback.transforms.batch import Batched
from pullback.transforms.custom_op import BodyRun, WrappingOp

if TYPE_CHECKING:
    from pullback.transforms.custom_op import CustomOp
    from pullback.typing import Operand, Value

GIVEN, SEED, STOPPED, PASSED = "input", "cotangent", "stop_gradient", "passed on"


class Note:
    """One op that was performed: its arguments, its result, and the line of the program."""

    __slots__ = (
        "args", "example", "file", "inherited", "label", "line", "name", "number", "op", "outside", "owner", "params",
        "tangent_of", "turned", "value",
    )  # fmt: skip

    def __init__(
        self, number: int, name: str, op: Any, args: Sequence[Any], params: dict[str, Any], value: Value
    ) -> None:
        self.number, self.name, self.op, self.args, self.params, self.value = number, name, op, args, params, value
        self.file, self.line, self.inherited = "", 0, False  # whether the line is that of the owner
        self.label = ""  # the user's name of an input
        self.owner: Note | None = None  # the op of the program whose rule this one is a part of
        self.turned = False  # part of the transpose of a backward pass, which is no further derivative
        self.tangent_of: Any = None  # the op whose tangent this one is a part of, and what that was given
        self.outside = 0  # how many axes in front are examples of vmaps above this level
        self.example: tuple[
            int, ...
        ] = ()  # the number of the example that it was computed for, where vmap runs them one by one

    @property
    def examples(self) -> int:
        """How many axes in front of the plain value are examples."""
        return self.outside + count_vmaps(self.value)

    @property
    def backward(self) -> bool:
        return self.owner is not None

    @property
    def program_op(self) -> Note:
        """The op of the program that this one belongs to: itself, or the op whose rule, of any order, it is part of."""
        note = self
        while note.owner is not None and note.inherited:
            note = note.owner
        return note

    @property
    def order(self) -> int:
        """The order of the derivative of the program's op that it is part of; 0 for the op itself."""
        return 0 if self.owner is None or not self.inherited else (not self.turned) + self.owner.order

    @property
    def where(self) -> str:
        """The line of the program in words."""
        return format_place(self.file, self.line) if self.file else "an unknown place"

    @property
    def array(self) -> Any:
        """The plain value, of all examples."""
        return np.asarray(all_values(self.value))

    def locate(self, frame: FrameType | None, purposes: Sequence[Purpose]) -> None:
        """Find the user's line, and the purpose for which the op is performed."""
        inside, last = True, len(purposes) - 1
        while frame is not None and (inside or not self.file):
            while last >= 0 and purposes[last].frame is frame:
                kind, data = purposes[last].kind, purposes[last].data
                last -= 1
                if kind == "step" and inside:
                    self._belong_to(*data)
                    return
                if kind == "run":
                    inside = False  # the op around it is only needed for the line
                elif not self.file:
                    self._serve(kind, data)
            if not self.file:
                self._pass_frame(frame)
            frame = frame.f_back

    def _serve(self, kind: str, data: tuple[Any, ...]) -> None:
        """Note that it is performed for one example, or for a tangent."""
        if kind == "example":
            self.example = (*data, *self.example)
            self.outside -= 1
        elif kind == "tangent" and self.tangent_of is None:
            self.tangent_of = data

    def _pass_frame(self, frame: FrameType) -> None:
        """Note the user's line if the frame is in the user's code."""
        code = frame.f_code
        if code is BATCHED:
            self.outside += 1
        elif not code.co_filename.startswith(NOT_THE_USER):
            self.file, self.line = code.co_filename, frame.f_lineno

    def _belong_to(self, owner: Note | None, turned: bool) -> None:
        """Make it a part of the rule of another op."""
        self.owner, self.turned = owner, turned
        if owner is None:
            return
        if not self.file:
            self.file, self.line, self.inherited = owner.file, owner.line, True
        if not self.outside:
            self.outside, self.example = owner.outside, owner.example


class Purpose:
    """A block in which ops are performed for a purpose: the purpose, and the frame of the block."""

    frame: FrameType

    def __init__(self, purposes: list[Purpose], kind: str, data: tuple[Any, ...]) -> None:
        self.purposes, self.kind, self.data = purposes, kind, data

    def __enter__(self) -> None:
        self.frame = sys._getframe(1)
        self.purposes.append(self)

    def __exit__(self, *_: object) -> None:
        self.purposes.pop()
        del self.frame


def count_vmaps(x: Value) -> int:
    """Return how many ``vmap`` levels a value has."""
    return sum(isinstance(t, Batched) for t in iterate_levels(x))


class Watched(Wrapped):
    """A value with the note of the op that made it."""

    __slots__ = ()
    differentiates = False

    array: Any = vars(Tensor)["value"]  # in the slots of any tensor, as for other transforms
    monitor: Any = vars(Tensor)["y"]
    note: Any = vars(Tensor)["via"]

    def twin(self) -> Watched:
        copy = Watched()
        copy.array, copy.monitor, copy.note = self.array, self.monitor, self.note
        return copy

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def level(self) -> int:
        level: int = self.monitor.level
        return level

    def beneath(self) -> Any:
        return self.array

    def stop_following(self) -> Any:
        if self.note.name == STOPPED:
            return self
        beneath = unwrap_constant(stop_following(self.array))
        return self.monitor.add_note(beneath, STOPPED, None, (self.note,), {})

    def _concrete(self, subject: str) -> Any:
        return self.array._concrete(subject) if isinstance(self.array, Tensor) else self.array

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        monitor = self.monitor
        on = [monitor.watches(a) for a in args]
        arrays = [a.array if b else a for a, b in zip(args, on, strict=True)]
        inputs = [a.note if b else a for a, b in zip(args, on, strict=True)]
        if op.custom:
            body = WatchedOp(op, monitor, inputs)
            zs = body.apply(arrays)
            origins = [[m] if m is not None else inputs for m in body.made or [None] * len(zs)]
            return tuple(
                monitor.add_note(unwrap_constant(z), op.name, op, a, {}) for z, a in zip(zs, origins, strict=True)
            )
        z = op.call(arrays, params)
        if type(z) is tuple:  # an op with several results
            return tuple(monitor.add_note(unwrap_constant(part), op.name, op, inputs, params) for part in z)
        return monitor.add_note(unwrap_constant(z), op.name, op, inputs, params)


class WatchedOp(WrappingOp):
    """A function with a gradient of its own, whose body is watched; one level down it is such a function again."""

    def __init__(self, op: CustomOp, monitor: Monitor, given: Sequence[Any]) -> None:
        super().__init__(op.name)
        self.op, self.monitor, self.given = op, monitor, given
        self.follows, self.states_jvp = op.follows, op.states_jvp
        self.made: list[Note | None] = []  # how the results came about, inside

    def run(self, values: Sequence[Any]) -> BodyRun:
        inner = self.op.run_reduced([self._pass_on(v, note) for v, note in zip(values, self.given, strict=True)])
        self.made = [self.monitor.note_of(z) for z in inner.values]

        def back(dys: list[Any]) -> list[Any]:
            return [self._unwrap(d) for d in inner.back([self.monitor.lift(dy) for dy in dys])]

        return BodyRun(tuple(map(self._unwrap, inner.values)), back, inner.variables)

    def jvp(self, z: Any, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """Run the op's own jvp, which need not be the transpose of its backward rule."""
        xs = [self._pass_on(unwrap_constant(v), note) for v, note in zip(primals, self.given, strict=True)]
        ts = [None if t is None else self.monitor.lift(t) for t in tangents]
        moved = self.op.jvp([self.monitor.lift(y) for y in z], xs, ts, params)
        return [None if t is None else self._unwrap(unwrap_constant(t)) for t in moved]

    def _pass_on(self, v: Any, note: Any) -> Any:
        return self.monitor.add_note(v, PASSED, None, (note,), {}) if isinstance(note, Note) else v

    def _unwrap(self, x: Any) -> Any:
        return x.array if self.monitor.watches(x) else x


class Monitor(PassObserver):
    """The notes of all ops that were performed while a function ran."""

    events = PassObserver.events | {"note"}

    def __init__(self) -> None:
        self.level, self.monitor = new_level(), self
        self.purposes: list[Purpose] = []  # what ops are performed for just now, the outermost first
        self.notes: list[Note] = []
        self.ended: list[tuple[Note, Note, Any]] = []  # a step, one of its operands, and what it gave back: all zeros
        self.cotangents: dict[int, Any] = {}  # of the result of a step, by the number of its note

    def run(self, f: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Return the result of ``f`` and note every op on a watched value; NumPy's warnings are off meanwhile."""
        with hooks.observe(self, without=(Monitor, hooks.CallObserver)), np.errstate(all="ignore"), self.note("run"):
            return f(*args, **kwargs)

    def note(self, kind: str, *data: object) -> Purpose:
        """Return a block in which ops are performed for a purpose."""
        return Purpose(self.purposes, kind, data)

    def watches(self, x: Operand) -> bool:
        return type(x) is Watched and x.monitor is self

    def lift(self, x: Any, name: str = GIVEN) -> Any:
        """Return a value as a watched one; values of higher levels are left unchanged."""
        x = np.float64(x) if type(x) in (float, int) else unwrap_constant(x)
        level = 0 if isinstance(x, RAW) else x.level
        return x if level >= self.level or x.dtype.kind not in "fiubc" else self.add_note(x, name, None, (), {})

    def add_note(self, value: Value, name: str, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Watched:
        note = Note(len(self.notes), name, op, args, params, value)
        note.locate(sys._getframe(1), self.purposes)
        self.notes.append(note)
        watched = Watched()
        watched.array, watched.monitor, watched.note = value, self, note
        return watched

    def note_of(self, x: Operand | None) -> Note | None:
        """Return the note of a value, also of one under other levels; None if it has none."""
        return next((t.note for t in iterate_levels(x) if self.watches(t)), None)

    def walk_noted(self, nodes: Iterable[Any], strong: bool, turned: bool = False) -> None:
        """Run the backward pass over the nodes, latest first; the initial cotangents are set."""
        picked: dict[int, Any] = {}  # what a node with several results is, identified by the first of them
        for r in nodes:
            if r.g is None:
                continue
            if isinstance(r.g, RAW):
                r.g = self.lift(r.g, SEED)
            owner = self._find_owner(r) if isinstance(r.value, Tensor) else picked.get(id(r))
            if r.via is PICK:
                picked[id(r.x)] = owner
            if owner is not None and not owner.backward:
                self.cotangents[owner.number] = r.g
            with self.note("step", owner, turned):
                self._walk_step(r, owner, strong)

    def _walk_step(self, r: Tensor, owner: Note | None, strong: bool) -> None:
        for a, d in list_cotangents(r, strong):
            if owner is not None and not np.any(all_values(d)):
                note = self.note_of(getattr(a, "value", None))
                if note is not None:
                    self.ended.append((owner, note, r.g))
            add_cotangent(a, d)

    def _find_owner(self, r: Tensor) -> Note | None:
        """Return the op of the program that made a node.

        What made its value may be a part of how many examples are done.
        """
        note, op = self.note_of(r.value), r.via.original.op
        if note is None or not isinstance(op, Op) or note.op is op:
            return note
        args = [self.note_of(v) or v for v in r.via.original.values(r)]
        made = Note(note.number, op.name, op, args, {}, note.value)
        made.file, made.line, made.inherited, made.owner = note.file, note.line, note.inherited, note.owner
        made.outside, made.example, made.turned = note.outside, note.example, note.turned
        return made


BATCHED = Batched.interpret.__code__
