"""The tape: the recorded steps, in order, and the backward pass over them.

A ``grad`` call opens a tape of its own and nothing is global: a tensor has its tape in its metadata, and an op
finds the tape through its operands.  So threads share nothing, nested gradients cannot confuse each other's variables,
and the hot path reads no context variable.

Nesting: the values of an inner tape are the tensors of the outer one.  The backward pass of an inner tape computes with
these values, which is recorded on the outer tape as any computation is.  There is one backward pass for all orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64, ndarray

from pullback import late_binding
from pullback.core import hooks, native
from pullback.core.capture import check_captured
from pullback.core.convert import as_value, has_tensors, join_tensors, unwrap_constant
from pullback.core.fitting import conjugate_rule, conjugate_rules, fit, keep_rule, widen_rule, widen_rules
from pullback.core.interpreter import dispatch, new_level
from pullback.core.memory import (
    IDLE,
    MAPPED,
    MAX_KEPT_BYTES,
    RECYCLED,
    BufferPool,
    Large,
    add_large,
    is_sole,
    keep,
    keep_freed_memory,
    node_of,
    use_scratch,
)
from pullback.core.rowsparse import RowSum
from pullback.core.source import LOOPS, find_user_place
from pullback.core.tensor import RAW, Tensor
from pullback.errors import GradientError

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Value

Rule = Callable[..., Any]  # computes the cotangent of an operand from that of the result and the saved values
CAUGHT = (ValueError, TypeError, IndexError, OverflowError)  # the errors that NumPy raises for invalid operands
FLOAT = ((), np.dtype(float))
MAX_KEPT_METAS = 128  # that a closed tape keeps for its next use; closing visits each of them
SCALARS = frozenset({np.dtype(c).type for c in "?bhilqBHILQfd"})  # NumPy's numbers that are real
COMPLEX = ()  # the pool in metas of complex values: empty, but not None, so that ``place`` selects the complex rules
MAX_NOTED_CUTS = 16  # ops without a derivative that are remembered for the error message


class Constants(dict[Any, Any]):
    """A cache of Python numbers converted by ``make``, because NumPy would convert them slowly each time.

    Numbers become 0-d arrays for use with arrays, and NumPy scalars for use with scalars.
    """

    make: Any

    def __missing__(self, c: float) -> Any:
        a = self.make(c)
        if c:  # 0.0 and -0.0 are the same key
            if len(self) > 2000:
                self.clear()
            self[c] = a
        return a


class Itself(dict[Any, Any]):
    """Takes the place of ``Constants`` where values are tensors of another level: numbers are not converted."""

    def __missing__(self, c: float) -> Any:
        return c


ITSELF = Itself()
CONSTANTS: dict[Any, Constants] = {}


class Meta:
    """Shape, dtype and tape, interned and compared by ``is``.  It is also the value of a node that no rule reads."""

    __slots__ = (
        "capacity", "complex", "constants", "direct", "dtype", "kind", "ndim", "note", "one", "other_record", "plain",
        "pool", "push", "raw", "record", "shape", "size", "small", "tape",
    )  # fmt: skip

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], tape: Tape, raw: bool) -> None:
        self.shape, self.dtype, self.tape, self.raw = shape, dtype, tape, raw
        self.ndim, self.size = len(shape), prod(shape)
        self.push = tape.push
        self.note = tape.views.append if tape.level else note_constant
        self.kind = ndarray if shape else dtype.type  # of plain values
        inexact = dtype.kind == "f"
        self.one = None if shape or not inexact else dtype.type(1)  # the seed of a scalar result
        nbytes = self.size * dtype.itemsize
        if nbytes >= MAPPED:
            keep_freed_memory()
        large = raw and inexact and nbytes >= RECYCLED and tape.level
        self.pool: Any = BufferPool() if large else COMPLEX if dtype.kind == "c" else None
        self.capacity = MAX_KEPT_BYTES // nbytes if large else 0
        self.small = inexact and not large  # results of elementwise ops have this same meta, and need no buffer
        self.plain = self.small and raw  # and NumPy may be called directly
        self.direct = inexact and raw  # the same, where a big result needs no buffer either
        self.complex = bool(raw and shape and dtype.kind == "c" and tape.level)  # recorded without a dispatch
        self.record: Any = None  # these fields for machine code, False if it does not handle them (see native.py)
        self.other_record: Any = None  # the same, once it is detached or attached again
        self.constants: dict[Any, Any] = ITSELF
        if raw and inexact:
            key = dtype, bool(shape)
            if key not in CONSTANTS:
                CONSTANTS[key] = Constants()
                CONSTANTS[key].make = partial(np.array, dtype=dtype) if shape else dtype.type
            self.constants = CONSTANTS[key]

    def detach(self) -> None:
        """Make the tensors that hold this meta constants."""
        self.tape, self.push, self.note, self.pool = NO_TAPE, forget, note_constant, None
        self.record, self.other_record, self.complex = self.other_record, self.record, False
        if not self.raw:
            self.small = False  # not the fast path: such a tensor is read as its value

    def attach(self, tape: Tape, push: Any, note: Any, pool: Any, small: bool) -> None:
        """Make the tensors that hold this meta those of a tape again."""
        self.tape, self.push, self.note, self.pool, self.small = tape, push, note, pool, small
        self.record, self.other_record = self.other_record, self.record
        self.complex = bool(self.raw and self.shape and self.dtype.kind == "c")


class Step:
    """One variant of an op's rules: which operands are on the tape, and whether to sum over broadcast axes.

    ``dx`` and ``dy`` are positional rules ``(g, z, x, y)``, which ``Tape.walk`` calls itself.  Where there is no
    ``dx``, the walk calls ``back(node)``, which adds the cotangents to those of the operands, in place where it can;
    the rules are then ``rule``, of the same form, or ``rules(g, z, values, params, live)`` for any number of inputs.
    All other code calls ``operands``, ``values`` and ``cotangents`` of a node.

    ``needs``: for each input, whether the rules read its value; ``needs_z``: the same for the result;
    ``blockwise``: whether they may be run on parts of the arrays; ``crossed``: whether the first operand is the op's
    second input, the other one being a constant.
    """

    __slots__ = (
        "_complex",
        "_floats",
        "_large",
        "back",
        "blockwise",
        "crossed",
        "dx",
        "dy",
        "loose",
        "makes_views",
        "needs",
        "needs_z",
        "op",
        "original",
        "programs",
        "rule",
        "rules",
        "step_record",
        "writing",
    )  # fmt: skip

    is_custom = False  # whether its cotangents are computed by a user's function

    def __init__(
        self, op: Op | None, dx: Rule | None = None, dy: Rule | None = None, *, rule: Rule | None = None,
        rules: Rule | None = None, back: Rule | None = None, needs: Iterable[bool] = (), needs_z: bool = True,
        blockwise: bool = False, crossed: bool = False,
    ) -> None:  # fmt: skip
        self.op: Any = op
        self.makes_views = op is not None and op.makes_views  # its results may be views of its operand
        self.dx: Any = dx
        self.dy: Any = dy
        self.rule: Any = dx or rule
        self.rules: Any = rules
        self.back = back or self.add_cotangents
        self.needs: Any = needs
        self.needs_z, self.blockwise, self.crossed = needs_z, blockwise, crossed
        self.step_record: Any = None  # the rules in the format of machine code
        self.programs: Any = None  # the same for nodes with big values
        self.original: Step = self  # of which this is a variant for big values or for a write
        self.loose: Step = self  # the same step without sums over broadcast axes
        self._large: Step | None = None
        self._complex: Step | None = None
        self._floats: Step | None = None
        self.writing: Step | None = None  # the same step for a node that is also a write; made in writes.py

    @property
    def positional_rules(self) -> tuple[Any, ...]:
        """The rules ``(g, z, x, y)``, one for each operand on the tape, for code that compiles them; often empty."""
        return tuple([rule for rule in (self.dx, self.dy) if rule is not None])

    @property
    def has_rules(self) -> bool:
        """Whether ``cotangents`` computes by rules, and not ``back`` alone."""
        return self.rule is not None or self.rules is not None

    @property
    def has_two_operands(self) -> bool:
        """Whether both inputs of its nodes are on the tape, in the slots ``x`` and ``y``."""
        return self.dy is not None

    @property
    def complex(self) -> Step:
        """The variant for nodes with complex values."""
        if self._complex is None:
            as_it_is = getattr(getattr(self.op, "d", None), "adjoint", False)
            self._complex = make_variant(
                self, *((keep_rule, keep_rule) if as_it_is else (conjugate_rule, conjugate_rules))
            )
        return self._complex

    @property
    def floats(self) -> Step:
        """The variant for integer operands of an elementwise op whose result is a float."""
        if self._floats is None:
            self._floats = make_variant(self, widen_rule, widen_rules(self.op))
        return self._floats

    @property
    def large(self) -> Step:
        """The variant for nodes with big values."""
        if self._large is None:
            otherwise = self.back if self.dx is None else self.add_cotangents
            step = Step(self.op, back=add_large(self.positional_rules, self.blockwise, otherwise))
            step.original = self
            self._large = step
        return self._large

    @property
    def has_two_inputs(self) -> bool:
        """Whether the slots ``x`` and ``y`` of its nodes hold the two inputs of an op."""
        return self.op is not None and self.op.arity == 2

    def operands(self, r: Tensor) -> list[Any]:
        """Return the nodes of the inputs of the op that made ``r``; None for an input that is not on the tape."""
        if type(r.x) is tuple:
            nodes, _, live = r.x
            return [node if on else None for node, on in zip(nodes, live, strict=True)]
        if type(r.x) is list:
            return r.x
        if self.dy is not None:
            return [r.x, r.y]
        if not self.has_two_inputs:
            return [r.x]
        return [None, r.x] if self.crossed else [r.x, None]

    def values(self, r: Tensor) -> list[Any]:
        """Return the values of the inputs of the op that made ``r``; the meta of an input that no rule reads."""
        if type(r.x) is tuple:
            return list(r.x[1])
        if type(r.x) is list:
            return [None if node is None else node.value for node in r.x]
        if self.dy is not None:
            return [r.x.value, r.y.value]
        if not self.has_two_inputs:
            return [r.x.value]
        return [r.y, r.x.value] if self.crossed else [r.x.value, r.y]

    def cotangents(self, r: Tensor) -> list[Any]:
        """Return what ``r.g`` contributes to the cotangent of each input of the op that made ``r``, or None."""
        if self.rules is not None:
            _, values, live = r.x
            ds = self.rules(r.g, r.value, values, r.y, live)
            return [fit(d, v) if on and d is not None else None for d, v, on in zip(ds, values, live, strict=True)]
        if self.dy is not None:
            g, z, x, y = r.g, r.value, r.x.value, r.y.value
            return [self.dx(g, z, x, y), self.dy(g, z, x, y)]
        d = self.rule(r.g, r.value, r.x.value, r.y)
        if not self.has_two_inputs:
            return [d]
        return [None, d] if self.crossed else [d, None]

    def add_cotangents(self, r: Tensor) -> None:
        """Add the contributions of a node to the cotangents of its inputs, for values of any kind."""
        for node, d in zip(self.operands(r), self.cotangents(r), strict=True):
            if node is not None and d is not None:
                add_cotangent(node, d)


class LooseStep(Step):
    """A step of an op of many inputs whose cotangents keep the shapes that the rules return."""

    __slots__ = ()

    def cotangents(self, r: Tensor) -> list[Any]:
        _, values, live = r.x
        ds = self.rules(r.g, r.value, values, r.y, live)
        return [d if on else None for d, on in zip(ds, live, strict=True)]


def make_writing(step: Step) -> Step | None:
    """Return the variant of a step for nodes that also write its result into its first operand; None if it has none."""
    dx, dy = step.dx, step.dy
    if dx is None:
        return None

    def undo(w: Tensor) -> None:
        """Restore the old value of the tensor that was written to, and add the cotangents of the step."""
        x = w.x
        g = x.g
        z = x.value
        m = w.meta
        written = m.tape.written
        if id(x) not in written:
            written[id(x)] = x, z, m
        v = x.value = w.value
        if g is None:
            return
        y = w.y
        if dy is None:
            x.g = dx(g, z, v, y)
            return
        u = y.value
        x.g = dx(g, z, v, u)
        d = dy(g, z, v, u)
        e = y.g
        y.g = d if e is None else e + d

    writing = step.writing = Step(step.op, back=undo)
    writing.original = step
    return writing


def copy_node(r: Tensor, g: Any, z: Value, change: Callable[..., Any]) -> Tensor:
    """Return a copy of the node ``r`` with other values, from which its step computes other cotangents.

    ``g`` is its cotangent, ``z`` its result, and ``change(node, value)`` returns the new value of each input.
    """

    def copy_operand(node: Tensor, value: Any) -> Tensor:
        copied = Tensor()
        copied.value = change(node, value)
        return copied

    step, copied = r.via.original, Tensor()
    copied.g, copied.value, copied.x, copied.y = g, z, r.x, r.y
    if type(r.x) is tuple:
        nodes, values, live = r.x
        copied.x = nodes, [change(n if on else None, v) for n, v, on in zip(nodes, values, live, strict=True)], live
    elif type(r.x) is not list:
        copied.x = copy_operand(r.x, r.x.value)
        if step.dy is not None:
            copied.y = copy_operand(r.y, r.y.value)
        elif step.has_two_inputs:
            copied.y = change(None, r.y)
    return copied


def make_node(g: Value, x: Value, params: tuple[Any, ...]) -> Tensor:
    """Return a node with the cotangent ``g`` for ``Step.cotangents`` of an op of one input, whose value is ``x``."""
    node, operand = Tensor(), Tensor()
    operand.value = x
    node.g, node.value, node.x, node.y = g, None, operand, params
    return node


SAME = Step(None, lambda g, z, x, y: g, needs=(False,), needs_z=False)  # the identity


def add_cotangent(node: Tensor, d: Value) -> None:
    """Add ``d`` to the cotangent of ``node``.  Loops over all nodes have this inlined."""
    node.g = d if node.g is None else node.g + d


def forget(node: Tensor) -> None:
    """Drop the operands of a tensor: the ``push`` of tensors that are on no tape."""
    node.x = node.y = None


def note_constant(node: Tensor) -> None:
    """Link a view to its base at once: the ``note`` of tensors that are on no tape."""
    late_binding.link_constant(node)


class Tape(dict[Any, Any]):
    """A dict of metas by (shape, dtype), and the list of nodes.  Tapes are reused with their metas."""

    __slots__ = (
        "above", "captured", "cuts", "has_writes", "level", "nodes", "push", "raw", "sorted", "viewed", "views",
        "written",
    )  # fmt: skip

    def __init__(self, level: int, raw: bool = True, twin: Tape | None = None) -> None:
        self.level, self.raw = level, raw
        self.nodes: list[Tensor] = [] if twin is None else twin.nodes
        self.cuts: list[tuple[str, str, int]] = [] if twin is None else twin.cuts
        self.captured: list[tuple[Any, bytes, str]] = [] if twin is None else twin.captured  # see capture.py
        self.views: list[Tensor] = [] if twin is None else twin.views  # what may be views; see writes.py
        self.viewed: dict[int, tuple[Any, list[Tensor]]] = {}  # those that are sorted by the id of their base
        self.sorted = 0  # how many of ``views`` are sorted
        self.written: dict[int, tuple[Any, Any, Any]] = {}  # undone writes: the newest value and meta
        self.has_writes = False  # whether some of its nodes are writes
        self.push = self.nodes.append if level else forget
        # metas of nodes whose values are tensors of a lower level
        self.above: Tape = Tape(level, False, self) if twin is None else twin

    def __missing__(self, key: tuple[tuple[int, ...], Any]) -> Meta:
        if not self.level and len(self) > 4096:  # constants of ever new shapes
            self.clear()
        m = self[key] = Meta(*key, self if self.raw else self.above, self.raw)
        return m

    @staticmethod
    def open() -> Tape:
        """Return an empty tape for a new level."""
        if hooks.blocks and (observer := hooks.find("open_tape")) is not None:
            observed: Tape = observer.open_tape()
            return observed
        try:
            tape = FREE.pop()  # not "if FREE": another thread may take the last one in between
        except IndexError:
            return Tape(new_level())
        tape.level = new_level()
        return tape

    def close(self) -> None:
        """Empty the tape; tensors that outlive it become constants, through the metas that they refer to."""
        nodes = self.nodes
        while nodes:
            forget(nodes.pop())  # so that a tensor that a user keeps does not keep the graph behind it
        if self.cuts:
            self.cuts.clear()
        if self.views or self.captured or self.has_writes:
            self.views.clear()
            self.viewed.clear()
            self.has_writes = False
            self.captured.clear()
            self.sorted = 0
        for m in self.values():  # release_used, written out: every gradient runs it
            if getrefcount(m) > IDLE:
                self.release()
                break
        else:
            if len(self) > MAX_KEPT_METAS:
                self.release()
        if self.above:
            self.above.release_used()
        if len(FREE) < 8:
            FREE.append(self)

    def release_used(self) -> None:
        """Release all metas if a tensor refers to one of them, or if they are too many to be kept for the next use."""
        for m in self.values():
            if getrefcount(m) > IDLE:
                break
        else:
            if len(self) <= MAX_KEPT_METAS:
                return
        self.release()

    def release(self) -> None:
        """Detach and drop all metas."""
        for m in self.values():
            m.detach()
        self.clear()

    def holds(self, t: Any) -> bool:
        """Return whether ``t`` is a tensor of this tape."""
        return type(t) in TAPED and t.meta.tape is self

    # ---- making nodes: the general path; the fast paths are generated in templates.py

    def get_meta(self, v: Value) -> Any:
        return self[v.shape, v.dtype] if isinstance(v, RAW) else self.above[v.shape, v.dtype]

    def make_leaf(self, value: Any) -> Any:
        """Return a new leaf of this tape with a value."""
        t = type(value)
        if t is ndarray and (shape := value.shape):
            m = self[shape, value.dtype]
        elif t is float or t is int:  # Python's numbers are float64, as they are in Python
            value = float64(value)
            m = self[FLOAT]
        else:
            value = unwrap_constant(value)
            m = self.get_meta(value)
        r = Tensor()
        r.meta = m
        r.value = value
        r.g = r.x = r.y = None
        if not m.small and m.dtype.kind not in "fiubc":
            if t is ndarray and has_tensors(value):
                return self.make_leaf(join_tensors(value))
            raise GradientError(f"an input of dtype {m.dtype} has no gradient; only numbers have.")
        return r

    def record(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Perform ``op`` on the values and put its node on the tape."""
        values = [self._find_saved_value(a) if isinstance(a, Tensor) else a for a in args]
        if op.custom:
            return op.record(self, args, values, params)
        if len(values) > 1:
            values = op.promote(values)  # here too, so that the rules see the dtypes that the kernel saw
        z = self._compute(op, args, values, params)
        if not self.level:
            return as_tensor(z)
        live = [self.holds(a) for a in args]
        m = self.get_meta(z)
        placed = op.select_step([node_of(a) for a in args], values, live, params, m)
        if placed is None:  # no derivative in the operands that are on the tape
            self.cut(op.name)
            return as_tensor(z)
        step, x, y = placed
        if op.elementwise and m.dtype.kind in "fc" and any(getattr(v, "dtype", m.dtype).kind in "iub" for v in values):
            step = step.floats
        for a, needed in zip(args, step.needs, strict=False):
            if needed and type(a) is Large:
                keep(a.x, a.value)
        return place(z, m, step, x, y)

    def _find_saved_value(self, a: Tensor) -> Any:
        """Return the value that this tape saves; a tensor of a lower level is replaced by one that no write changes."""
        if type(a) in TAPED and (a.meta.tape is self or not a.level):
            return a.value
        return late_binding.make_alias(a) if self.level else a

    def _compute(self, op: Op, args: tuple[Any, ...], values: list[Any], params: dict[str, Any]) -> Any:
        """Return the value of an op; a big elementwise result is written to a recycled buffer if there is one."""
        if op.elementwise and not params:
            big = next((a.meta for a in args if type(a) in TAPED and type(a.meta.pool) is BufferPool), None)
            if big is not None and all(
                v.dtype == big.dtype if isinstance(v, RAW) else type(v) in (float, int) for v in values
            ):
                return op.run_guarded(lambda: use_scratch(op.run, values, big), values, params)
        if all(isinstance(v, RAW) for v in values):
            return op.perform(values, params)
        return dispatch(op, values, params)

    def cut(self, name: str) -> None:
        """Remember an op without a derivative, for the error message about an input without a gradient."""
        if len(self.cuts) < MAX_NOTED_CUTS:
            self.cuts.append((name, *find_user_place()))

    # ---- the backward pass

    def list_steps(self) -> list[Tensor]:
        """Return the nodes in order, each with the operands that it saw before later in-place writes."""
        if self.has_writes:
            late_binding.resolve_writes(self)
        if self.captured:
            check_captured(self.captured)
        return self.nodes

    def walk(self) -> None:
        """Run the backward pass from the result, whose ``g`` is set, to the leaves, whose ``g`` becomes their gradient.

        A write is undone when it is passed, so that the steps before it see the old value.  This is faster than
        resolving the writes first: ``acc += x * y`` takes 1.1 times as long as ``acc = acc + x * y``, not 1.5 times.
        """
        if self.captured:
            check_captured(self.captured)
        if self.has_writes:
            self.has_writes = False
            try:
                self.walk()
            finally:
                self._redo_writes()
            return
        nodes = self.nodes
        if native.machine is not None:
            native.machine.walk(nodes)
            return
        native.count_nodes(len(nodes))
        pop = nodes.pop
        while nodes:
            r = pop()
            g = r.g
            x = r.x
            if g is None:
                r.x = r.y = None  # so that a tensor that a user keeps does not keep the graph behind it
                continue
            s = r.via
            dy = s.dy
            if dy is not None:
                y = r.y
                z = r.value
                v = x.value
                w = y.value
                d = s.dx(g, z, v, w)
                e = x.g
                x.g = d if e is None else e + d
                d = dy(g, z, v, w)
                e = y.g
                y.g = d if e is None else e + d
                r.x = r.y = None
                continue
            dx = s.dx
            if dx is not None:
                d = dx(g, r.value, x.value, r.y)
                e = x.g
                x.g = d if e is None else e + d
                r.x = r.y = None
                continue
            g = x = y = z = v = w = d = e = None  # stale locals would hide that an array has one holder
            s.back(r)
            r.x = r.y = None

    def _redo_writes(self) -> None:
        """Restore the newest values of written tensors after a backward pass: the user may still hold them."""
        for x, value, meta in self.written.values():
            x.value, x.meta = value, meta
        self.written.clear()


def walk_node(r: Tensor) -> None:
    """Add the cotangents of the operands of one node, as ``Tape.walk`` does, where machine code cannot."""
    if r.g is not None:
        s = r.via
        if s.dx is None:
            s.back(r)
        else:
            s.add_cotangents(r)
    r.x = r.y = None


def walk_again(nodes: list[Tensor], keep: bool = True, transposed: bool = False) -> None:
    """Run the backward pass over nodes without consuming them; ``keep``: whether cotangents are read afterwards.

    ``transposed``: the nodes were recorded during a backward pass, so that this pass computes tangents.
    """
    if hooks.blocks and (observer := hooks.find("walk")) is not None:
        observer.walk(nodes, keep, transposed)
        return
    if native.machine is not None and keep:
        native.machine.walk_again(nodes)
        return
    native.count_nodes(len(nodes))
    for r in reversed(nodes):
        walk_node_again(r)
        if not keep:
            r.g = None


def walk_node_again(r: Tensor) -> None:
    """Give the operands of one node, which stays as it is, their cotangents."""
    g = r.g
    if g is None:
        return
    s = r.via.original
    dx, dy = s.dx, s.dy
    if dx is None:
        g = None  # it would hide that an array has one holder
        s.back(r)
        return
    x, y, z = r.x, r.y, r.value
    if dy is None:
        d = dx(g, z, x.value, y)
        e = x.g
        x.g = d if e is None else e + d
        return
    d = dx(g, z, x.value, y.value)
    e = x.g
    x.g = d if e is None else e + d
    d = dy(g, z, x.value, y.value)
    e = y.g
    y.g = d if e is None else e + d


def perform_many(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Perform an op of any number of inputs, with a fast path for plain values of one tape and one float dtype."""
    plain = _read_plain_values(op, args)
    if plain is None:
        return dispatch(op, args, params)
    values, tape, has_tensors = plain
    run = op.run if op.saving is None or tape is None else op.saving
    try:
        z = run(values, *params.values()) if op.variadic else run(*values, *params.values())
    except CAUGHT as error:
        raise op.translate_error(op, error, args, params) from None
    if not z.shape and type(z) is ndarray:
        z = z[()]
    if tape is None:
        return constant(z) if has_tensors else z
    if op.flows:
        live = [type(a) is Tensor and a.meta.tape is tape for a in args]
        placed = op.select_step(list(args), values, live, params, m := tape[z.shape, z.dtype])
        if placed is not None:
            return place(z, m, *placed)
    tape.cut(op.name)
    return constant(z)


def _read_plain_values(op: Op, args: Sequence[Any]) -> tuple[list[Any], Tape | None, bool] | None:
    """Return the values of an op's inputs, the tape that they are on, if any, and whether some are tensors.

    None if these are not all plain values of one tape, and of one float dtype where ``op.mixing`` says that it matters.
    """
    values: list[Any] = []
    tape = dtype = None
    has_tensors = False
    for a, mixes in zip(args, op.mixing, strict=False):
        if type(a) is Tensor:
            m = a.meta
            v, value_dtype, has_tensors = a.value, m.dtype, True
            if not m.raw:
                return None
            if m.tape.level:
                if tape is None:
                    tape = m.tape
                elif tape is not m.tape:
                    return None
        elif type(a) is ndarray:
            v, value_dtype = a, a.dtype
        elif op.elementwise and (type(a) is float or type(a) is int):
            values.append(a)
            continue
        else:
            return None
        values.append(v)
        if mixes:
            if dtype is None:
                dtype = value_dtype
            elif value_dtype is not dtype:
                return None
    return None if dtype is None or dtype.kind != "f" else (values, tape, has_tensors)


def place(z: Value, m: Meta, step: Step, x: Any, y: object) -> Any:
    """Put a node with the value ``z`` on the tape and return it; for a big value, its handle."""
    r = Tensor()
    r.meta, r.x, r.y, r.g = m, x, y, None
    if m.pool is None:
        r.value, r.via = z, step
        m.push(r)
        return r
    if m.pool is COMPLEX:
        r.value, r.via = z, step.complex
        m.push(r)
        return r
    r.via = step.large
    r.value = z if step.needs_z else m
    h = Large()
    h.value, h.meta, h.x = z, m, r
    m.push(r)
    return h


def place_complex(op: Op, values: Sequence[Any], m: Meta, step: Step, x: Any, y: object) -> Any:
    """Put the node of an elementwise op of complex arrays of one shape, or of one and a number, on the tape."""
    try:
        z = op.run(*values)
    except CAUGHT as error:
        raise op.translate_error(op, error, values, {}) from None
    return place(z, m.tape[z.shape, z.dtype], step, x, y)


def perform_with_constant(op: Op, x: Any, y: Any) -> Any:
    """Perform an op of two inputs on a small tensor of a tape and a constant: an array, a number or a tensor.

    None if they are something else.
    """
    crossed = not _is_small_node(x)
    a, c = (y, x) if crossed else (x, y)
    if crossed and not _is_small_node(a):
        return None
    dtype = a.meta.dtype
    v = c.value if type(c) is Tensor and c.meta.raw and not c.meta.tape.level else c
    if type(v) in SCALARS:
        return _perform_with_number(op, a, v, crossed)
    if type(v) is not ndarray:
        return None
    if v.dtype is not dtype:
        if not v.ndim or v.dtype.kind not in "iub":
            return None
        v = v.astype(dtype)  # integers do not widen floats
    elif v is c:
        return None
    return op.function(v, a) if crossed else op.function(a, v)


def _is_small_node(x: Any) -> Any:
    return type(x) is Tensor and x.meta.plain and x.meta.tape.level


def _perform_with_number(op: Op, a: Tensor, v: Any, crossed: bool) -> Any:
    """Perform an op of two inputs on a tensor of a tape and a NumPy scalar; a float of another dtype may widen it."""
    m = a.meta
    if v.dtype is not m.dtype and v.dtype.kind == "f":
        values = (v, a.value) if crossed else (a.value, v)
        z = op.run_guarded(lambda: op.run(*values), values, {})
        return place(z, m.tape[z.shape, z.dtype], op.right_fit if crossed else op.left_fit, a, v)
    number = float(m.dtype.type(v))
    if not crossed:
        return op.function(a, number)
    return op.function(number, a) if op.reflected is None else op.reflected(a, number)


def add_into(rule: Callable[..., Any], into: Any, rows: Any = None) -> Any:
    """Return the ``back`` of an op that adds its cotangent in place to an existing one without other references.

    ``rows`` returns the rows of the operand that it picks, for a leaf that collects them.
    """

    def back(r: Tensor) -> None:
        x = r.x
        e, x.g = x.g, None
        if e is None:
            x.g = rule(r.g, r.value, x.value, r.y)
        elif type(e) is ndarray and is_sole(e) and e.base is None and isinstance(r.g, RAW):
            into(e, r.g, *r.y)
            x.g = e
        elif type(e) is RowSum and rows is not None and (part := rows(r.g, r.value, x.value, r.y)) is not None:
            e.add(*part)
            x.g = e
        else:
            x.g = e + rule(r.g, r.value, x.value, r.y)

    return back


def add_many(rules: Any) -> Any:
    """Return the ``back`` of an op of any number of inputs, from ``rules(g, z, values, params, live)``."""

    def back(r: Tensor) -> None:
        nodes, values, live = r.x
        for a, v, on, d in zip(nodes, values, live, rules(r.g, r.value, values, r.y, live), strict=True):
            if on and d is not None:
                d = fit(d, v)
                a.g = d if a.g is None else a.g + d

    return back


def make_variant(step: Step, change: Callable[..., Any], change_all: Callable[..., Any]) -> Step:
    """Return the step with changed rules, whose cotangents fit their operands; a custom step is returned unchanged."""
    if step.rule is None and step.rules is None:
        return step
    variant = Step(step.op, needs=step.needs, needs_z=step.needs_z, crossed=step.crossed)
    if step.rule is None:
        variant.rules = change_all(step.rules)
        variant.back = add_many(variant.rules)
        return variant
    first, second = change(step.rule), step.dy and change(step.dy)
    variant.dx = variant.rule = lambda g, z, x, y: fit(first(g, z, x, y), x)
    variant.dy = second and (lambda g, z, x, y: fit(second(g, z, x, y), y))
    return variant


# ---- tensors on no tape

TAPED = (Tensor, Large)  # exact types: subclasses belong to other transforms
FREE: list[Tape] = []
NO_TAPE = Tape(0)


def constant(x: Any) -> Tensor:
    """Return a Tensor on no tape.  Nothing is copied."""
    return make_constant(as_value(x))


def make_constant(x: Array) -> Tensor:
    """Return a Tensor on no tape with a value that is known to be an array or a NumPy scalar."""
    r = Tensor()
    r.value, r.meta, r.g, r.x, r.y = x, NO_TAPE[x.shape, x.dtype], None, None, None
    return r


def as_tensor(x: Any) -> Tensor:
    """Return a tensor as it is, anything else as a constant."""
    if isinstance(x, Tensor):
        return x
    if type(x) is ndarray and x.ndim and x.dtype.kind == "f":  # the usual case, without further calls
        return make_constant(x)
    x = unwrap_constant(x)
    return x if isinstance(x, Tensor) else make_constant(x)


late_binding.constant = constant
LOOPS.add(id(Tape.walk.__code__))
