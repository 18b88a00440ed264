"""Bodies of loops and branches: a function recorded as a list of ops, which can be run again on other values.

A body is traced once, on symbols of a trace of its own, whose level is higher than that of every existing tensor.
Captured values of lower levels, such as weights or variables, become inputs.  So a body depends on its inputs only, and
a transformed loop is a loop over a new body, recorded while the transform runs the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.frontend.host_ops import HostFunction
from pullback.compiler.frontend.symbol import Symbol
from pullback.compiler.frontend.trace import Trace
from pullback.compiler.ir.graph import Node, Shape
from pullback.compiler.ir.kinds import CONSTANT, OPAQUE
from pullback.core import hooks
from pullback.core.convert import join_array
from pullback.core.interpreter import dispatch, level_of
from pullback.core.op import perform_observed
from pullback.core.tensor import Tensor, call_unfollowed, stop_following, strip
from pullback.core.variable import Variable
from pullback.core.writes import INPUT, freeze, make_alias
from pullback.errors import ArgumentError, CapturedError, VariableError

__all__ = ["Body", "BodyTrace", "Equation", "ProgramTrace", "Ref"]

CAPTURED = (
    "was made outside of the branch, or of the step of a loop, which is traced once: nothing else would see what it "
    "writes. Make it a part of the carry, or copy it first: x = x.copy()."
)


class Ref(NamedTuple):
    """A reference to a value of a body, by its number."""

    number: int


class Like(NamedTuple):
    """Shape and dtype of a value, and the type of a Python number that it stands for."""

    shape: Shape
    dtype: np.dtype[Any]
    weak: Any = None


class Equation(NamedTuple):
    """One op of a body."""

    run: Callable[[Sequence[Any]], Any]  # performs the op on values of any level
    op: Any
    args: tuple[Any, ...]  # references, and constants
    results: tuple[int, ...]


class Body:
    """A function of its inputs, as ops in order."""

    def __init__(
        self,
        inputs: Sequence[int],
        equations: Sequence[Equation],
        outputs: Sequence[Any],
        likes: dict[int, Like],
        trace: Callable[[], BodyTrace],
    ) -> None:
        self.inputs, self.equations, self.outputs, self.likes = list(inputs), list(equations), list(outputs), likes
        self.open_trace = trace  # returns the trace of another body in the same program

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Run the body on tensors of any level."""
        env = dict(zip(self.inputs, values, strict=True))
        for e in self.equations:
            z = e.run([env[a.number] if type(a) is Ref else a for a in e.args])
            if len(e.results) == 1 and type(z) is not tuple:
                env[e.results[0]] = z
            else:
                env.update(zip(e.results, z, strict=True))
        return [env[o.number] if type(o) is Ref else o for o in self.outputs]

    @property
    def input_likes(self) -> list[Like]:
        return [self.likes[i] for i in self.inputs]

    @property
    def output_likes(self) -> list[Like]:
        return [
            self.likes[o.number] if type(o) is Ref else Like(np.shape(o), np.asarray(o).dtype) for o in self.outputs
        ]

    def follow(self, on: Sequence[bool], floats: bool = False) -> list[bool]:
        """Return which outputs depend on the inputs that ``on`` selects; with ``floats``, only through floats."""
        reached = {i for i, b in zip(self.inputs, on, strict=True) if b}
        for e in self.equations:
            if any(type(a) is Ref and a.number in reached for a in e.args):
                reached.update(z for z in e.results if not floats or self.likes[z].dtype.kind in "fc")
        return [type(o) is Ref and o.number in reached for o in self.outputs]

    def select(self, inputs: Sequence[int], outputs: Sequence[Any]) -> Body:
        """Return the part of the body that computes ``outputs`` from the values ``inputs``."""
        selected = {*inputs}
        needed = {o.number for o in outputs if type(o) is Ref} - selected
        kept = []
        for e in reversed(self.equations):
            if not needed.isdisjoint(e.results):
                kept.append(e)
                needed.update(a.number for a in e.args if type(a) is Ref and a.number not in selected)
        return Body(inputs, kept[::-1], outputs, self.likes, self.open_trace)

    @staticmethod
    def refer(number: int) -> Ref:
        return Ref(number)

    @staticmethod
    def list_refs(items: Iterable[Any]) -> list[int]:
        """Return the numbers of the values among values and constants."""
        return [a.number for a in items if type(a) is Ref]

    def list_used(self) -> set[int]:
        """Return the numbers of the values that an equation or output refers to."""
        used = {a.number for e in self.equations for a in e.args if type(a) is Ref}
        return used | {o.number for o in self.outputs if type(o) is Ref}

    def compute_constants(self, captured: dict[Any, Tensor]) -> tuple[Body, dict[Any, Tensor]]:
        """Return the body without what depends on captured values only, which is computed here and captured instead."""
        env: dict[int, Any] = dict(zip(self.inputs, captured.values(), strict=False))
        keys, kept = dict(zip(self.inputs, captured, strict=False)), []
        for e in self.equations:
            if not all(type(a) is not Ref or a.number in env for a in e.args):
                kept.append(e)
                continue
            z = e.run(hooks.capture_operands([env[a.number] if type(a) is Ref else a for a in e.args]))
            env.update(zip(e.results, z if type(z) is tuple else (z,), strict=True))
        body = Body(self.inputs[len(captured) :], kept, self.outputs, self.likes, self.open_trace)
        used = [number for number in env if number in body.list_used()]
        body.inputs = [*used, *body.inputs]
        return body, {keys.get(number, number): env[number] for number in used}

    def take_captured(self, own: dict[Any, Tensor], every: dict[Any, Tensor]) -> Body:
        """Return the body with the values that it and other bodies captured (``every``) as its first inputs."""
        numbers = dict(zip(own, self.inputs, strict=False))
        likes = dict(self.likes)
        for place, (key, t) in enumerate(every.items()):
            if key not in own:
                numbers[key] = -1 - place
                likes[-1 - place] = Like(t.shape, t.dtype, getattr(t, "weak", None))
        inputs = [numbers[key] for key in every] + self.inputs[len(own) :]
        return Body(inputs, self.equations, self.outputs, likes, self.open_trace)

    def bind(self, number: int, value: Any) -> Body:
        """Return the body with a constant instead of one input."""

        def place(a: Any) -> Any:
            return value if type(a) is Ref and a.number == number else a

        equations = [e._replace(args=tuple(map(place, e.args))) for e in self.equations]
        inputs = [i for i in self.inputs if i != number]
        return Body(inputs, equations, [place(o) for o in self.outputs], self.likes, self.open_trace)


class Supply(NamedTuple):
    """An input of a program that is made anew for every run, such as the place of the next random numbers."""

    place: int  # among the inputs
    make: Callable[[], Any]


class ProgramTrace(Trace):
    """The trace of a program whose loops and branches have bodies of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[BodyTrace] = []  # those that are being recorded, the innermost last
        self.supplies: list[Supply] = []

    def open_body(self, takes_all: bool = False, repeats: bool = False) -> BodyTrace:
        """Return a trace for the body of a loop or a branch in this program.

        With ``takes_all``, ops on captured values only are recorded too; otherwise they are performed before the body.
        ``repeats``: it is the step of a loop, and so must not write to what was made outside.
        """
        return BodyTrace(self, takes_all, repeats)

    def get_order_symbol(self) -> Symbol:
        return self.bodies[-1].get_order_symbol() if self.bodies else self.order

    def add_supply(self, make: Callable[[], Any], shape: Shape, dtype: Any) -> Symbol | None:
        if self.bodies or self.latest is not self.order.node:  # a loop draws in each step, and draws keep their order
            return None
        node = self.graph.add_input(shape, dtype)
        self.supplies.append(Supply(node.data, make))
        return Symbol(self, node)

    def assign(self, v: Variable, value: Any) -> None:
        self._check_assignable(v)
        super().assign(v, value)

    def assign_rows(self, v: Variable, at: Any, rows: Any) -> None:
        self._check_assignable(v)
        super().assign_rows(v, at, rows)

    def _check_assignable(self, v: Variable) -> None:
        if self.bodies:
            raise VariableError(
                f"{v.name}.assign: a variable cannot be assigned to in the body of a compiled loop or branch. "
                "Make its value a part of the carry, and assign what comes out."
            )


class CaptureOps(hooks.Observer):
    """Makes a body record ops whose operands are all captured; otherwise these are performed before the body."""

    events = frozenset({"capture"})
    ops = None

    def __init__(self, trace: BodyTrace) -> None:
        self.trace = trace

    def capture(self, args: Sequence[Any]) -> list[Any]:
        """Return operands of an op; those from outside become inputs of the body, unless a transform runs the op."""
        operands = [a.read() if isinstance(a, Tensor) else a for a in args]
        levels = [level_of(a) for a in operands]
        if not 0 < max(levels, default=0) < self.trace.level:
            return list(args)
        return [self.trace.capture(a) if level else a for a, level in zip(operands, levels, strict=True)]

    def perform(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return perform_observed(op, self.capture(args), params, CaptureOps)


class CaptureStepOps(CaptureOps):
    """Captures the operands of a step of a loop, and refuses writes that the next step would see in Python alone."""

    events = CaptureOps.events | {"check_write"}

    def check_write(self, x: Tensor, subject: str) -> None:
        """Raise an error if a tensor was made outside of the step."""
        if 0 < level_of(x) < self.trace.level:
            raise ArgumentError(f"{subject}: this tensor of shape {x.shape} {CAPTURED}")


class BodyTrace(Trace):
    """A function being recorded as a body."""

    def __init__(self, program: ProgramTrace, takes_all: bool = False, repeats: bool = False) -> None:
        self.takes_all, self.repeats = takes_all, repeats
        self.program = program  # the trace of the program that the body is part of
        self.equations: list[Equation] = []
        self.likes: dict[int, Like] = {}
        self.own_inputs: list[int] = []
        self.captured: dict[Any, tuple[Tensor, Symbol]] = {}
        self.seen: list[Tensor] = []  # the captured tensors, kept so that ids stay their own
        self.stopped: set[int] = set()
        self.stops: dict[Any, Symbol] = {}  # by the value and how it is not followed: a mask is one in both uses
        self.constants: dict[int, Any] = {}
        self.draws = False  # whether it draws random numbers, or has other effects whose order matters
        self.depth = 0  # of ops that are performed inside others
        super().__init__()

    def __enter__(self) -> BodyTrace:
        self.program.bodies.append(self)
        if self.takes_all:
            self.observed = hooks.observe(CaptureStepOps(self) if self.repeats else CaptureOps(self))
            self.observed.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.program.bodies.remove(self)
        if self.takes_all:
            self.observed.__exit__(None, None, None)

    def add_input(self, shape: Shape, dtype: Any, weak: Any = None) -> Symbol:
        symbol = self._add_input(shape, dtype, weak)
        self.own_inputs.append(symbol.node.number)
        return freeze(symbol, INPUT)  # type: ignore[no-any-return]

    def _add_input(self, shape: Shape, dtype: Any, weak: Any) -> Symbol:
        node = self.graph.add_input(shape, dtype)
        self.likes[node.number] = Like(node.shape, node.dtype, weak)
        return Symbol(self, node, weak)

    def close(self, outputs: Sequence[Any]) -> tuple[Body, dict[Any, Tensor]]:
        """Return the body with these outputs, and the captured values, which are its first inputs."""
        refs = [self._refer(self.capture(z)) for z in outputs]
        self.finish()
        captured = {key: t for key, (t, _) in self.captured.items()}
        inputs = [symbol.node.number for _, symbol in self.captured.values()] + self.own_inputs
        return Body(inputs, self.equations, refs, self.likes, self.program.open_body), captured

    @property
    def has_host_ops(self) -> bool:
        """Whether there may be no machine code for one of the ops."""
        return any(n.kind is OPAQUE for n in self.graph.nodes)

    def get_order_symbol(self) -> Symbol:
        self.draws = True
        return self.order

    # ---- captured values

    def capture(self, a: Any) -> Any:
        """Return an argument as a value of the body: a symbol of its trace, or a constant."""
        if not isinstance(a, Tensor):
            return a
        a = a.read()
        if isinstance(a, Symbol) and a.traced_by is self:
            return a
        if not a.level:
            return a.value
        if isinstance(a, Symbol) and a.node.kind is CONSTANT and not a.weak:
            return a.node.data
        # by what it holds now: the body may write to it, and use it again
        key = (id(a.traced_by), a.node.number, a.weak) if isinstance(a, Symbol) else (id(a), id(a.value))
        if key not in self.captured:
            weak = a.weak if isinstance(a, Symbol) else None
            self.captured[key] = make_alias(a), freeze(self._add_input(a.shape, a.dtype, weak), CAPTURED)
            self.seen.append(a)
        return self.captured[key][1]

    def _refer(self, a: Any) -> Any:
        if not isinstance(a, Symbol):
            return a
        known = self.constants.get(a.node.number)
        return Ref(a.node.number) if known is None else known

    # ---- recorded ops

    def perform(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        args = [self.capture(a) for a in args]
        if self.depth:
            return super().perform(op, args, params)
        if op.custom:
            return self._perform_custom(op, args)
        return self._record(
            lambda xs: dispatch(op, xs, params), op, args, lambda: Trace.perform(self, op, args, params)
        )

    def _perform_custom(self, op: Any, args: list[Any]) -> Any:
        if op.is_structured:
            return self._record(op.apply, op, args, lambda: tuple(self._add_unknown(*like) for like in op.infer()))
        before = len(self.captured)
        z = self._record(op.apply, op, args, lambda: Trace.perform(self, op, args, {}))
        if len(self.captured) > before:
            raise CapturedError(
                f"{op.name}: in the body of a loop or branch, a function with a gradient of its own uses a traced "
                "tensor or variable that is not one of its inputs. Pass it as an input."
            )
        return z

    def _add_unknown(self, shape: Shape, dtype: Any, weak: Any = None) -> Symbol:
        return Symbol(self, self.graph.add_input(shape, dtype), weak)

    def _record(self, run: Any, op: Any, args: Sequence[Any], perform: Callable[[], Any]) -> Any:
        self.depth += 1
        try:
            z = perform()
        finally:
            self.depth -= 1
        found = tuple(map(self._make_new, z if type(z) is tuple else (z,)))
        self.equations.append(Equation(run, op, tuple(map(self._refer, args)), tuple(s.node.number for s in found)))
        return found if type(z) is tuple else found[0]

    def _make_new(self, z: Symbol) -> Symbol:
        """Return a symbol with a node of its own: ops with equal values may differ in their derivatives."""
        if z.node.number in self.likes:
            z = self._add_unknown(z.node.shape, z.node.dtype, z.weak)
        self.likes[z.node.number] = Like(z.node.shape, z.node.dtype, z.weak)
        return z

    def add_host_op(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        args = [self.capture(a) for a in args]
        if self.depth or not isinstance(op, HostFunction):
            return super().add_host_op(op, args, params)
        return self._record(
            lambda xs: call_unfollowed(op.f, *xs), None, args, lambda: Trace.add_host_op(self, op, args, params)
        )

    def cast(self, x: Node, dtype: Any) -> Node:
        if self.depth or x.dtype == dtype:
            return super().cast(x, dtype)
        inputs = [Symbol(self, x)]
        result: Symbol = self._record(
            lambda xs: np.astype(join_array(xs[0]), dtype),
            None,
            inputs,
            lambda: Symbol(self, Trace.cast(self, x, dtype)),
        )
        node: Node = result.node
        return node

    def as_symbol(self, x: Any) -> Symbol:
        symbol = super().as_symbol(self.capture(x))
        if symbol.node.number not in self.likes and symbol.node.kind is CONSTANT:
            self.constants[symbol.node.number] = symbol.node.data
        return symbol

    def stop(self, x: Symbol) -> Symbol:
        """Record that transforms shall not follow a value; they apply when the body is run again."""
        return self._stop(x, stop_following)

    def strip(self, x: Symbol) -> Symbol:
        return self._stop(x, strip)

    def _stop(self, x: Symbol, how: Callable[[Any], Any]) -> Symbol:
        if x.node.number in self.stopped or self.depth:
            return x
        known = self.stops.get((x.node.number, x.weak, how))
        if known is None:
            node = self.graph.add(OPAQUE, (x.node,), x.shape, x.node.dtype, (how, {}))
            known = self._record(lambda xs: how(xs[0]), None, [x], lambda: Symbol(self, node, x.weak))
            self.stopped.add(known.node.number)
            self.stops[x.node.number, x.weak, how] = known
        return known.twin()  # the user may write to it
