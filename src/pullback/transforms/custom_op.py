"""A function with a custom gradient as an op, which is made for each call.

Its body is run on the *values* of its inputs, one level down.  At first order these are untraced tensors, so nothing
is recorded; at second order they are tensors of the outer tape, which records the body and what it saves.  If the body
captured a traced tensor, its result has a higher level than its inputs: so a lost gradient is found and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import warn

import numpy as np
from numpy import ndarray

from pullback.core import hooks
from pullback.core.bundle import place_all
from pullback.core.calculus import add_terms
from pullback.core.convert import float_of, unwrap_constant
from pullback.core.interpreter import level_of
from pullback.core.memory import node_of
from pullback.core.tape import Tape, constant
from pullback.core.tensor import ARRAYS, Tensor, iterate_levels
from pullback.core.variable import Variable, find_highest_watcher, is_watched, watch_below
from pullback.errors import CustomGradientError, PrecisionWarning
from pullback.numerics.adjoints import multiply_real
from pullback.transforms.enclosing import DualLevel, Scope, is_made_from, pause, scopes
from pullback.transforms.grad import grads
from pullback.transforms.linearity import has_values, is_linear, sample
from pullback.transforms.session import UNCHANGED

if TYPE_CHECKING:
    from pullback.typing import Operand, Value

Back = Callable[[list[Any]], Sequence[Any]]


class BodyRun(NamedTuple):
    """One run of a body: its results, the variables it read, and the backward rule to all of them."""

    values: tuple[Any, ...]
    back: Back
    variables: Sequence[Variable] = ()


class ArrayLikeness(NamedTuple):
    """The shape and dtype of an array that is not kept."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def like(x: Any) -> ArrayLikeness:
    return tuple.__new__(ArrayLikeness, (x.shape, x.dtype))  # a named tuple's own constructor is slow


def make_zero_gradient(x: Any) -> Any:
    """Return zeros in the shape of ``x`` and in the dtype of its gradient."""
    return np.zeros(x.shape, float_of(x.dtype))[()]


class HigherLevelError(Exception):
    """A body captured a value of a higher level than its inputs have: that level must perform the op."""

    def __init__(self, op: CustomOp, by: Any) -> None:
        super().__init__(op.name)
        self.op, self.by = op, by


def is_differentiated(x: Any, above: int) -> bool:
    """Return whether a transform of a higher level than ``above`` differentiates ``x``.

    ``vmap`` and ``compile`` do not.
    """
    return any(t.differentiates for t in iterate_levels(x) if t.level > above)


def levels_of(x: Value | None) -> set[int]:
    """Return the levels of all transforms that follow ``x``."""
    return {t.level for t in iterate_levels(x)}


def _at_level(x: Any, level: int) -> Any:
    """Return the tensor that ``x`` is at a level, or None."""
    return next((t for t in iterate_levels(x) if t.level == level), None)


class CustomOp:
    """An op whose body and gradient are functions of the user's, in ``run``."""

    custom = True
    is_structured = False  # whether it is a loop or branches, of which every level makes another such op
    makes_views = False
    chooses = False
    follows = False  # whether the variables that the body reads are operands as well
    states_jvp = False  # whether ``jvp`` is the user's rule, and not the transpose of the backward rule
    limit: int | None = None  # while the op is applied: the highest level of its inputs

    def __init__(self, name: str) -> None:
        self.name = name
        # The tapes that are recording the op, and the levels of dual numbers it is run on, each with its operands.
        self.records: list[tuple[Tape | DualLevel, Sequence[Any]]] = []

    def run(self, values: Sequence[Any]) -> BodyRun:
        """Run the body on the values, and return results, backward rule and variables read."""
        raise NotImplementedError

    def make_lost_error(self, ds: Sequence[Any], level: int) -> Exception:
        """Return the error for gradients that are of the level being differentiated, or a higher one."""
        raise NotImplementedError

    def make_body_error(self, highest: int, read: Sequence[Variable]) -> Exception:
        """Return the error for results that are differentiated at a higher level than the inputs have."""
        return self.make_lost_error((), highest + 1)

    def advise(self) -> str:
        """Return, for a message, what the user can do if the backward rule cannot be transposed."""
        return "Use reverse mode."

    def check_variables(self, variables: Sequence[Variable]) -> None:
        """Raise if a variable that is differentiated gets no gradient from the gradient function."""

    def apply(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results, each an array or a tensor of the highest level there is."""
        args = hooks.capture_operands([unwrap_constant(a) for a in args])
        if self.limit is not None:
            return self._apply(args)
        self.limit = self.below(args)
        try:
            return self._apply(args)
        except HigherLevelError as found:
            if found.op is not self:
                raise
            self.limit, self.records = None, []
            results: tuple[Any, ...] = found.by.interpret(self, tuple(args), {})
            return results
        finally:
            self.limit = None

    def _apply(self, args: Sequence[Any]) -> tuple[Any, ...]:
        top: Any = args[0] if len(args) == 1 else max(args, key=level_of, default=None)
        level, watcher = level_of(top), find_highest_watcher() if self.follows else None
        if watcher is not None and watcher.level > level:
            return self.record(watcher.tape, args, args, {})
        if not level:
            return self.run_checked(args).values
        results: tuple[Any, ...] = top.interpret(self, tuple(args), {})
        return results

    def call(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return self.apply(args)

    def below(self, values: Sequence[Any]) -> int:
        """Return the highest level that results of these values may have."""
        watcher = find_highest_watcher() if self.follows else None
        return max(0 if watcher is None else watcher.level, *map(level_of, values), 0)

    def run_reduced(self, values: Sequence[Any]) -> BodyRun:
        """Return a run whose results are constants to the tapes on which an enclosing function made its operands."""
        run, within = self.run(values), scopes()
        if within:
            highest = self.below(values)
            zs = tuple(self.reduce_level(z, highest, self.records, within) for z in run.values)
            run = run._replace(values=zs)
        self.check_limit(run.values)
        return run

    def check_limit(self, results: Sequence[Any]) -> None:
        """Raise HigherLevelError if a result has a higher level than the inputs, at which nothing is differentiated."""
        if self.limit and [z for z in results if isinstance(z, Tensor)]:
            top = max(results, key=level_of, default=None)
            if level_of(top) > self.limit and not is_differentiated(top, self.limit):
                raise HigherLevelError(self, top)

    def push_duals(
        self, number: int, args: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Return the results and their tangents, None if these are zero, for arguments that are dual numbers."""
        self.records.append((DualLevel(number), args))
        try:
            z = self.call(primals, params)
            t = self.jvp(z, primals, tangents, params) if any(t is not None for t in tangents) else None
            return z, None if t is None else self.check_tangents(t, number)
        finally:
            self.records.pop()

    def check_tangents(self, tangents: Sequence[Any], number: int) -> Sequence[Any]:
        """Return tangents; raise if one has the level ``number`` or a higher one: the rule captured a traced tensor.

        What an enclosing function computed from the operands is a constant here.
        """
        if within := scopes():
            tangents = [self.reduce_level(t, number - 1, self.records, within) for t in tangents]
        if any(level_of(t) >= number for t in tangents):
            self.check_limit(tangents)
            raise self.make_lost_error(tangents, number)
        return tangents

    def run_checked(self, values: Sequence[Any]) -> BodyRun:
        """Return a run whose results depend on nothing that is differentiated but the inputs."""
        run = self.run_reduced(values)
        if [z for z in run.values if isinstance(z, Tensor)]:
            highest = self.below(values)
            if any(is_differentiated(z, highest) for z in run.values):
                raise self.make_body_error(highest, run.variables)
        return run

    def reduce_level(self, z: Value, highest: int, records: Sequence[Any], within: Sequence[Scope]) -> Any:
        """Return ``z`` without the levels of tapes on which it was made from the operands of this op alone."""
        while within and isinstance(z, Tensor) and is_differentiated(z, highest):
            z = z.read()
            operands = next((args for tape, args in records if tape.holds(z)), None)
            if operands is None or not is_made_from(z, operands, within):
                break
            z = unwrap_constant(z.value)
        return z

    def record(self, tape: Tape, args: Sequence[Any], values: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Perform the op one level down, and put its node on the tape."""
        values = [unwrap_constant(v) for v in values]
        zs, back, variables = self._run_below(tape, args, values)
        operands = [*args, *(v.read() for v in variables)] if variables else args
        nodes = [node_of(a) if tape.holds(a) else None for a in operands]
        if all(n is None for n in nodes):  # the level was that of a variable, and none was read
            return zs
        if variables:
            self.check_variables([v for v, n in zip(variables, nodes[len(args) :], strict=True) if n is not None])
        within = scopes()
        kept = values if self.states_jvp else [like(v) for v in values]
        # A function that saved no operand must not hold their memory.
        pull = CheckedPull(self, back, tape, nodes, args if within else (), within, kept, [like(z) for z in zs])
        return place_all(tape, zs, nodes, pull)

    def _run_below(self, tape: Tape, args: Sequence[Any], values: Sequence[Any]) -> BodyRun:
        """Run the op for a tape, on the values of its operands; only lower levels watch the variables that it reads."""
        self.records.append((tape, args))
        try:
            with watch_below(tape.level) if self.follows and is_watched() else UNCHANGED:
                return self.run_traced(values)
        finally:
            self.records.pop()

    def run_traced(self, values: Sequence[Any]) -> BodyRun:
        """Run the op such that lower levels see its gradient and not its body's."""
        run = self.run_checked(values)
        if not is_watched() and not [v for v in values if isinstance(v, Tensor)]:
            return run
        return run._replace(values=self.apply(values)) if self.below(values) else run

    # ---- forward mode

    def jvp(
        self, z: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Return the tangents of the results, by the transpose of the backward rule, which is linear."""
        back = self.run([unwrap_constant(p) for p in primals]).back
        self.check_linear(back, primals, z)
        return transpose(lambda dys: back(dys)[: len(tangents)], tangents, z)

    def transposable(self, back: Back, xs: Sequence[Any], zs: Sequence[ArrayLikeness], dys: list[Any]) -> Sequence[Any]:
        """Return cotangents by a rule that may be transposed: derived from the user's tangent rule, if there is one."""
        with set_transposing(False):
            if self.states_jvp:
                empty = [np.broadcast_to(np.zeros((), z.dtype), z.shape) for z in zs]
                return transpose(lambda ts: self.jvp(empty, xs, ts, {}), dys, xs)
            self.check_linear(back, xs, zs)
            return back(dys)

    def check_linear(self, back: Back, xs: Sequence[Any], zs: Sequence[Any]) -> None:
        """Raise if a backward rule is not linear in the cotangents, so that it cannot be transposed."""
        linear = is_linear(back, zs) if all(map(has_values, xs)) else None
        if linear is None:  # a program is being compiled: there are symbols, but no numbers
            with suppress(Exception), watch_below(0):
                run = self.run([sample(x) for x in xs])
                linear = is_linear(run.back, run.values)
        if linear is False:
            raise CustomGradientError(
                f"{self.name}: the gradient function is not linear in dy: for -c * dy it does not return -c times what "
                f"it returns for dy. So it cannot be transposed for forward mode (jvp, linearize, hvp). {self.advise()}"
            )

    def __repr__(self) -> str:
        return f"<op {self.name}>"


class CheckedPull:
    """The backward rule of one call of a custom gradient; it raises if a gradient would be lost."""

    __slots__ = ("args", "back", "kept", "likes", "nodes", "op", "tape", "within")

    def __init__(
        self,
        op: CustomOp,
        back: Back,
        tape: Tape,
        nodes: Sequence[Any],
        args: Sequence[Any],
        within: Sequence[Scope],
        kept: Sequence[Any],
        likes: Sequence[ArrayLikeness],
    ) -> None:
        self.op, self.back, self.tape, self.nodes = op, back, tape, nodes
        self.args, self.within, self.kept, self.likes = args, within, kept, likes

    def __call__(self, gs: list[Any]) -> Sequence[Any]:
        dys = gs
        if [g for g in gs if g is None]:  # lists are quicker than any() for one or two
            dys = [make_zero_gradient(z) if g is None else g for g, z in zip(gs, self.likes, strict=True)]
        since, level = len(self.tape.nodes), self.tape.level
        ds = self._run(dys)
        if [d for d in ds if level_of(d) >= level]:
            if self._is_made_from_operands(ds, since):
                with pause(self.tape):  # its tensors are constants in the backward pass
                    ds = self._run(dys)
            known = set[int]().union(*map(levels_of, dys))  # a cotangent may be of a transform that was begun later
            if any(n >= level for d in ds for n in levels_of(d) - known):
                raise self.op.make_lost_error(ds, level)
        if [d for d, n in zip(ds, self.nodes, strict=True) if d is None and n is not None]:
            self.tape.cut(self.op.name)
        return ds

    def _run(self, dys: list[Any]) -> Sequence[Any]:
        if not is_watched() and not is_transposing():
            return self.back(dys)
        with watch_below(self.tape.level):
            if is_transposing():
                return self.op.transposable(self.back, self.kept, self.likes, dys)
            return self.back(dys)

    def _is_made_from_operands(self, ds: Sequence[Any], since: int) -> bool:
        """Return whether an enclosing function computed these cotangents from its own operands."""
        own = [t for t in (_at_level(d, self.tape.level) for d in ds) if t is not None]
        holds = self.tape.holds
        return bool(self.within) and all(holds(t) and is_made_from(t, self.args, self.within, since) for t in own)


def transpose(rule: Back, along_these: Sequence[Any], likes: Sequence[Any]) -> list[Any]:
    """Return the transpose of a linear rule applied to ``along_these``; ``likes`` are like the rule's arguments."""

    def pair(*operands: Tensor) -> Any:
        terms = [
            np.sum(multiply_real(d, t))
            for d, t in zip(rule(list(operands)), along_these, strict=True)
            if not (d is None or t is None)
        ]
        return add_terms(terms) if terms else constant(0.0)

    ones = [np.ones(y.shape, float_of(y.dtype))[()] for y in likes]
    found: list[Any] = grads(pair, unconnected="zero")(ones) if ones else []
    return found


_transposing: ContextVar[bool] = ContextVar("transposing", default=False)
is_transposing = _transposing.get


@contextmanager
def set_transposing(on: bool = True) -> Iterator[None]:
    """Record the backward passes of this block, to be transposed."""
    token = _transposing.set(on)
    try:
        yield
    finally:
        _transposing.reset(token)


def is_python_number(x: Any) -> bool:
    """Return whether ``x`` is a Python number; a bool is none."""
    return isinstance(x, int | float | complex) and not isinstance(x, bool | np.generic | Tensor)


class WrappingOp(CustomOp):
    """An op that wraps another one; its errors are those of the other one."""

    op: CustomOp

    def make_lost_error(self, ds: Sequence[Any], level: int) -> Exception:
        return self.op.make_lost_error(ds, level)

    def make_body_error(self, highest: int, read: Sequence[Any]) -> Exception:
        return self.op.make_body_error(highest, read)

    def advise(self) -> str:
        return self.op.advise()

    def check_variables(self, variables: Sequence[Any]) -> None:
        self.op.check_variables(variables)


def find_fitting(d: Any, x: ArrayLikeness) -> Any:
    """Return a gradient as the engine takes it, if it has the shape and the float dtype of its input; else None."""
    if type(d) is not Tensor and type(d) is not ndarray:
        return None
    d = unwrap_constant(d)
    if d.dtype is not x.dtype or d.dtype.kind != "f" or d.shape != x.shape:
        return None
    return d.view() if type(d) is ndarray else d  # a view: it may be the user's own array


def gradient_for(
    d: Operand | None, x: object, face: str, name: Callable[[], str], line: Callable[[], str], dys: Sequence[Any] = ()
) -> Any:
    """Return a gradient that the user returned for input ``x``, checked, as the engine takes it.

    Warn if it is less precise than both its input and the cotangents ``dys``.
    """
    return _derivative(d, x, lambda: f"{face}: the gradient of '{name()}'", line, dys)


def tangent_for(t: Tensor, z: Value, face: str, line: Callable[[], str]) -> Any:
    """Return a tangent that the user returned for a result ``z``, checked, as the engine takes it."""
    return _derivative(t, z, lambda: f"{face}: the tangent of the value", line, ())


def _derivative(d: Any, x: Any, subject: Callable[[], str], line: Callable[[], str], dys: Sequence[Any]) -> Any:
    wanted = float_of(x.dtype)
    if is_python_number(d) and not x.shape and (wanted.kind == "c" or not isinstance(d, complex)):
        return wanted.type(d)
    if not isinstance(d, ARRAYS):
        got = "None" if d is None else type(d).__name__
        raise CustomGradientError(f"{subject()} must be a tensor of shape {x.shape}, got {got} ({line()}).")
    d = unwrap_constant(d)
    if d.shape != x.shape:
        raise CustomGradientError(
            f"{subject()} must have its shape {x.shape}, got shape {d.shape}; nothing is broadcast here ({line()})."
        )
    wanted = float_of(x.dtype, d.dtype)
    if d.dtype.kind not in ("fc" if wanted.kind == "c" else "f"):
        raise CustomGradientError(f"{subject()} must be a float like {wanted}, got {d.dtype}. Cast it ({line()}).")
    if d.dtype == wanted:
        return d.view() if type(d) is ndarray else d  # a view: it may be the user's own array
    widths = [wanted.itemsize, *(dy.dtype.itemsize for dy in dys)]
    if dys and d.dtype.kind == wanted.kind and d.dtype.itemsize < min(widths):
        warn(
            f"{subject()} is {d.dtype}, but the input is {wanted}: digits are lost. Compute it in {wanted} ({line()}).",
            PrecisionWarning,
            stacklevel=2,
        )
    return d.astype(wanted)
