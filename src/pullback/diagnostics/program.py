"""``trace``: the recorded program as readable text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.source import format_place
from pullback.core.tensor import all_values
from pullback.diagnostics.monitor import GIVEN, Note
from pullback.diagnostics.monitored_run import Examined, MonitoredRun
from pullback.diagnostics.page import Reported
from pullback.diagnostics.record import list_notes, make_record, skip_passed
from pullback.display.html import render_frame, render_table
from pullback.display.text import align_columns, format_bytes
from pullback.errors import PullbackError


class TraceStep(NamedTuple):
    """One line of a traced program; ``low`` and ``high`` are the least and the largest of its values.

    >>> import pullback as pb
    >>> x, square = pb.trace(lambda x: x * x)(3.0).steps
    >>> square.op, square.inputs, square.low, square.high
    ('mul', ('x', 'x'), 9.0, 9.0)
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    low: float | None
    high: float | None
    kept: int
    where: str
    file: str
    line: int


class Program(Reported):
    """The recorded program of a function: ``print`` it, or read its ``steps``, each with named fields.

    ``kept`` of a step is how many bytes of its values the backward pass reads, ``total`` the sum of that.

    >>> import numpy as np, pullback as pb
    >>> program = pb.trace(lambda x: pb.exp(x).sum())(np.array([0.0, 1.0]))
    >>> [step.op for step in program.steps], program.total
    (['input', 'exp', 'sum'], 16)
    """

    def __init__(self, ran: MonitoredRun, name: str) -> None:
        self.name = name
        kept = _count_kept(ran)
        names: dict[int, str] = {}
        self.steps: list[TraceStep] = []
        inputs = {r.note.number: r.name for r in ran.inputs if r.note is not None}
        for note in list_notes(ran, with_rules=True):
            names[note.number] = inputs.get(note.number) or f"%{len(self.steps)}"
            self.steps.append(_make_step(note, names, kept.get(note.number, 0)))
        self.total = sum(kept.values())
        self.record = make_record(ran, name)

    def _make_rows(self) -> list[tuple[str, ...]]:
        """Return the text of every step: what it computes, of what shape, its range, what is kept of it, and where."""
        return [
            (
                step.name if step.op == GIVEN else f"{step.name} = {step.op}({', '.join(step.inputs)})",
                f"{step.dtype}{list(step.shape)}",
                _format_range(step),
                f"keeps {format_bytes(step.kept)}" if step.kept else "",
                step.where,
            )
            for step in self.steps
        ]

    def _repr_html_(self) -> str:
        facts = [f"{len(self.steps)} steps", f"{format_bytes(self.total)} kept for the backward pass"]
        rows = [(*row[:3], row[3].removeprefix("keeps "), row[4]) for row in self._make_rows()]
        return render_frame(
            f"trace of {self.name}", facts, render_table(["step", "result", "range", "kept", "line"], rows, right=[3])
        )

    def summarize(self) -> str:
        return f"{len(self.steps)} steps; {format_bytes(self.total)} of their values are kept for the backward pass."

    def __str__(self) -> str:
        lines = [line.rstrip() for line in align_columns(self._make_rows())]
        return "\n".join([*lines, f"kept for the backward pass: {format_bytes(self.total)}"])

    def __repr__(self) -> str:
        return f"<{len(self.steps)} steps of {self.name}, {format_bytes(self.total)} kept>"


def _format_range(step: TraceStep) -> str:
    """Return the least and the largest value of a step, or the one value that it has."""
    if step.low is None:
        return ""
    return f"{step.low:.4g}" if step.low == step.high else f"{step.low:.4g}..{step.high:.4g}"


def _count_kept(ran: MonitoredRun) -> dict[int, int]:
    """Return the bytes that rules keep of each note, by its number; constants count where they are used."""
    kept: dict[int, int] = {}
    constants: set[int] = set()
    for note, _, values in ran.nodes:
        for v in values:
            of = ran.monitor.note_of(v)
            nbytes = int(np.asarray(all_values(v)).nbytes)
            if of is not None:
                kept[of.number] = nbytes
            elif note is not None and id(v) not in constants:
                constants.add(id(v))
                kept[note.number] = kept.get(note.number, 0) + nbytes
    return kept


def _make_step(note: Note, names: dict[int, str], kept: int) -> TraceStep:
    values = note.array
    low = high = None
    if values.size and values.dtype.kind in "fiub":
        low, high = float(values.min()), float(values.max())
    is_input = note.op is None and note.name == GIVEN
    inputs = [_format_operand(a, names) for a in note.args] + [f"{k}={v!r}" for k, v in _list_changed_params(note)]
    where = "" if is_input or not note.file else format_place(note.file, note.line)
    shape = values.shape[max(note.examples, 0) :]
    return TraceStep(
        names[note.number],
        note.name,
        tuple(inputs),
        shape,
        str(values.dtype),
        low,
        high,
        kept,
        where,
        note.file,
        note.line,
    )


def _list_changed_params(note: Note) -> Sequence[tuple[str, Any]]:
    """Return the parameters that are not what they are by default."""
    usual = getattr(note.op, "params", {})
    return [(k, v) for k, v in note.params.items() if not (k in usual and type(v) is type(usual[k]) and v == usual[k])]


def _format_operand(a: Any, names: dict[int, str]) -> str:
    if isinstance(a, Note):
        return names.get(skip_passed(a).number, "?")
    v = all_values(a)
    if isinstance(v, np.ndarray | np.generic):
        return (
            f"{v:.6g}" if not v.ndim and v.dtype.kind == "f" else str(v) if not v.ndim else f"{v.dtype}{list(v.shape)}"
        )
    return repr(v)


class TracedFunction(Examined):
    """The function that ``trace`` returns."""

    face = "trace"

    def __call__(self, *args: object, **kwargs: object) -> Program:
        try:
            ran = MonitoredRun(self.__wrapped__, args, kwargs)
        except PullbackError:  # a program without a gradient is a program too
            ran = MonitoredRun(self.__wrapped__, args, kwargs, back=False)
        return Program(ran, self.__name__)


def trace(f: Callable[..., Any]) -> TracedFunction:
    """Return a function of the same arguments that returns the recorded program, as text and as a list of steps.

    Each line has the op and its operands, the dtype and shape of the result, the range of its values, how many bytes of
    it are saved for the backward pass, and the line of the source.

    f: the function to record.

    >>> import numpy as np, pullback as pb
    >>> print(pb.trace(lambda x: pb.exp(x).sum())(np.array([0.0, 1.0])))
    x             float64[2]  0..1
    %1 = exp(x)   float64[2]  1..2.718  keeps 16 B  <doctest ...>:1
    %2 = sum(%1)  float64[]   3.718                 <doctest ...>:1
    kept for the backward pass: 16 B
    """
    return TracedFunction(f)
