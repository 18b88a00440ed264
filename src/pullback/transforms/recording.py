"""The tape of ``GradientTape``, which records a block of code for a later backward pass, and its watched tensors.

A watched tensor is the user's own object, made before the block.  While the block runs it is a handle for a node of
the tape; its former state is kept in its slot ``g`` and restored when the block ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sys import getrefcount
from typing import Any, NamedTuple

from pullback.core.convert import unwrap_constant
from pullback.core.interpreter import new_level
from pullback.core.memory import IDLE, Large, node_of
from pullback.core.tape import MAX_KEPT_METAS, Tape, forget
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, Watcher
from pullback.core.writes import make_twin

MAX_FREE = 8  # tapes that are kept for other blocks


class Recording(Tape):
    """A tape that can be paused: its tensors are then constants."""

    __slots__ = ("metas",)

    metas: list[tuple[Any, Any, bool]]

    @staticmethod
    def begin() -> Recording:
        """Return an empty tape for a new level; a recycled one has metas already, which take time to make."""
        try:
            tape = FREE.pop()  # not "if FREE": another thread may take the last one in between
        except IndexError:
            return Recording(new_level())
        tape.level = new_level()
        tape.resume()
        return tape

    def recycle(self) -> None:
        """Keep this tape, which is paused and not used any more, for another block, without metas that tensors hold."""
        before = {id(m): (pool, small) for m, pool, small in self.metas}
        self.metas = []
        _forget_operands(self.nodes)
        for kept in (self.nodes, self.cuts, self.captured, self.views, self.viewed, self.written):
            kept.clear()
        for metas in (self, self.above):
            # one with a capacity has a pool, which holds memory
            held = [(m.shape, m.dtype) for m in metas.values() if getrefcount(m) > IDLE or m.capacity]
            for key in held:
                del metas[key]
        self.sorted, self.has_writes = 0, False
        usual = self.push == self.nodes.append  # else it also remembers lines of the program
        if usual and len(self) + len(self.above) <= MAX_KEPT_METAS and len(FREE) < MAX_FREE:
            self.metas = [(m, *before[id(m)]) for m in [*self.values(), *self.above.values()]]
            FREE.append(self)

    def pause(self) -> None:
        for metas in (self, self.above):
            unused = [(m.shape, m.dtype) for m in metas.values() if getrefcount(m) <= IDLE]  # by nodes of this block
            for key in unused:
                del metas[key]
        self.metas = [(m, m.pool, m.small) for m in [*self.values(), *self.above.values()]]
        for m, _, _ in self.metas:
            m.detach()

    def resume(self) -> None:
        for m, pool, small in self.metas:
            m.attach(self, self.push, self.views.append, pool, small)
        self.metas = []


FREE: list[Recording] = []


def _forget_operands(nodes: Sequence[Tensor]) -> None:
    """Drop the operands of nodes, so that a tensor that a user keeps does not keep the graph behind it."""
    for r in nodes:
        if type(r) is Tensor:  # else it is watched by another tape
            forget(r)


class Follower(Watcher):
    """The observer that makes variables leaves of a GradientTape: watched ones, and trainable ones that are read."""

    def __init__(self, tape: Tape, accessed: bool) -> None:
        super().__init__(tape)
        self.accessed, self.recording = accessed, True
        self.watched: dict[int, Variable] = {}

    @property
    def level(self) -> int:
        return self.tape.level if self.recording else 0

    def wants(self, v: Variable) -> bool:
        return self.recording and (id(v) in self.watched or (self.accessed and v.trainable))


class UnwatchedState(NamedTuple):
    """What a tensor was before it was watched; kept in its slot ``g``."""

    kind: Any
    meta: Any
    value: Any
    x: Any
    g: Any


def state(t: Tensor) -> UnwatchedState:
    return UnwatchedState(type(t), *(getattr(t, slot, None) for slot in ("meta", "value", "x", "g")))


def become(t: Tensor, before: UnwatchedState) -> None:
    t.__class__, t.meta, t.value, t.x, t.g = before


def follow(tape: Recording, t: Tensor) -> Tensor:
    """Make a user's tensor a handle, as a large result is, and return its node, a new object on the tape."""
    if not t.level:
        value = unwrap_constant(t)
    else:
        value = make_twin(t)
    node = Tensor()
    node.value, node.meta = value, tape.get_meta(value)
    node.g = node.x = node.y = None
    become(t, UnwatchedState(Large, node.meta, value, node, state(t)))
    return node


def stages(t: Tensor) -> Iterator[Any]:
    """Yield the states of a tensor, one of which may be the node looked for: now, and before other tapes watched it."""
    yield node_of(t)
    before = getattr(t, "g", None)
    while isinstance(before, UnwatchedState):
        yield t if before.kind is Tensor else before.x
        before = before.g


@contextmanager
def unwatch(nodes: Sequence[Tensor]) -> Iterator[None]:
    """Restore, in this block, nodes that another tape is watching to their state before."""
    handles = [(r, state(r)) for r in nodes if type(r) is Large]
    for r, before in handles:
        while before.kind is Large:
            before = before.g
        become(r, before)
    try:
        yield
    finally:
        for r, now in handles:
            become(r, now)
