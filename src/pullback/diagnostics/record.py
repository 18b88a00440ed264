"""The record of one gradient: every op of the program with its values, its cotangent and the user's line.

Pictures and pages are made from it; it holds numbers and text, no arrays, so that it can be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.core.tensor import all_values
from pullback.diagnostics.formulas import describe_rules
from pullback.diagnostics.monitor import GIVEN, PASSED, STOPPED, Note
from pullback.diagnostics.monitored_run import MonitoredRun
from pullback.diagnostics.origins import list_path, visit_bad
from pullback.typing import Array

MAX_SHOWN = 12  # elements of an array


@dataclass(frozen=True)
class Summary:
    """A summary of an array: its range, its norm, the number of elements that are not finite, its first elements."""

    low: float | None
    high: float | None
    norm: float | None
    nans: int
    infinities: int
    first: tuple[str, ...]


@dataclass
class RecordedStep:
    """One op of the program, or an input: its operands, its result, and its cotangent."""

    number: int
    name: str  # of an input, as the user calls it
    op: str
    inputs: tuple[int, ...]
    constants: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    file: str
    line: int
    value: Summary
    cotangent: Summary | None = None
    rules: tuple[str, ...] = ()
    is_result: bool = False
    is_bad: bool = False  # on the way of the first value that is not finite


@dataclass
class Record:
    """The steps of a program in order, and facts about the whole program."""

    name: str
    steps: list[RecordedStep] = field(default_factory=list)
    first_bad: int | None = None  # the number of the step that made the first NaN or infinity


def summarize(x: Array) -> Summary:
    """Return the summary of an array.

    >>> summarize(np.array([3.0, 4.0, np.nan])).nans, summarize(np.array([3.0, 4.0])).norm
    (1, 5.0)
    """
    x = np.asarray(x)
    first = tuple(f"{v:.6g}" if x.dtype.kind in "fc" else str(v) for v in x.reshape(-1)[:MAX_SHOWN])
    if x.dtype.kind not in "fiubc":
        return Summary(None, None, None, 0, 0, first)
    size = np.abs(x) if x.dtype.kind == "c" else x
    finite = np.isfinite(size)
    good = size[finite].astype(np.float64)
    low = high = norm = None
    if good.size:
        low, high = float(good.min()), float(good.max())
        with np.errstate(over="ignore"):
            length = float(np.sqrt(np.sum(good * good)))
        norm = length if np.isfinite(length) else None  # too large for a float
    return Summary(low, high, norm, int(np.isnan(size).sum()), int(np.isinf(size).sum()), first)


def make_record(ran: MonitoredRun, name: str) -> Record:
    """Return the record of a monitored run."""
    record = Record(name)
    numbers: dict[int, int] = {}
    labels = {r.note.number: r.name for r in ran.inputs if r.note is not None}
    results = {skip_passed(r.note).number for r in ran.values if r.note is not None}
    gradients = {r.note.number: g.value for r, g in zip(ran.inputs, ran.gradients, strict=False) if r.note is not None}
    for note in list_notes(ran, with_rules=False):
        step = _make_step(note, len(record.steps), numbers, labels.get(note.number, ""))
        step.is_result = note.number in results
        cotangent = gradients.get(note.number, ran.monitor.cotangents.get(note.number))
        step.cotangent = None if cotangent is None else summarize(all_values(cotangent))
        numbers[note.number] = step.number
        record.steps.append(step)
    _mark_bad(ran, record, numbers)
    return record


def list_notes(ran: MonitoredRun, with_rules: bool) -> list[Note]:
    """Return the notes of the program in order, with or without those of derivative rules."""
    needed: dict[int, Note] = {}
    todo = [r.note for r in [*ran.inputs, *ran.values] if r.note is not None]
    todo += [note for note, _, _ in ran.nodes if note is not None]
    while todo:
        note = skip_passed(todo.pop())
        if note.number not in needed and (with_rules or not note.backward):
            needed[note.number] = note
            todo += [a for a in note.args if isinstance(a, Note)]
    return [needed[number] for number in sorted(needed)]


def skip_passed(note: Note) -> Note:
    """Return the note of the op that made a value, through those that only pass it on to a custom gradient."""
    while note.name == PASSED and isinstance(note.args[0], Note):
        note = note.args[0]
    return note


def _make_step(note: Note, number: int, numbers: dict[int, int], label: str) -> RecordedStep:
    sources = [skip_passed(a) if isinstance(a, Note) else a for a in note.args]
    values = note.array
    return RecordedStep(
        number=number,
        name=label,
        op=note.name,
        inputs=tuple(numbers[a.number] for a in sources if isinstance(a, Note) and a.number in numbers),
        constants=(
            *(_format_constant(a) for a in sources if not isinstance(a, Note)),
            *(f"{k}={v!r}" for k, v in note.params.items() if v is not None),
        ),
        shape=values.shape,
        dtype=str(values.dtype),
        file="" if note.name == GIVEN else note.file,
        line=note.line,
        value=summarize(values),
        rules=() if note.name in (GIVEN, STOPPED) else tuple(describe_rules(note.op)),
    )


def _format_constant(x: Any) -> str:
    shape = np.shape(all_values(x))
    return f"constant {list(shape)}" if shape else f"{np.asarray(all_values(x)).item():.6g}" if _is_real(x) else str(x)


def _is_real(x: Any) -> bool:
    return np.asarray(all_values(x)).dtype.kind in "fiu"


def _mark_bad(ran: MonitoredRun, record: Record, numbers: dict[int, int]) -> None:
    """Mark the step that made the first value that is not finite, and those on its way to the result."""
    visits = [v for r in [*ran.values, *ran.gradients] if r.note is not None for v in visit_bad(r.note)]
    begun = [v for v in visits if v.clean]
    if not begun:
        return
    first = min(begun, key=lambda v: v.note.number)
    for note in list_path(first):
        number = numbers.get(skip_passed(note.program_op).number)
        if number is not None:
            record.steps[number].is_bad = True
            if record.first_bad is None:
                record.first_bad = number
