"""Reports of a NaN or infinity: the op of the forward or backward pass that made it, and a suggestion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.op import Op
from pullback.diagnostics.backward_steps import is_finite
from pullback.diagnostics.causes import Origin, advise_backward, advise_forward
from pullback.diagnostics.monitor import GIVEN, PASSED, SEED, Note
from pullback.diagnostics.monitored_run import MonitoredResult
from pullback.diagnostics.origins import Index, Visit, get_values, list_bad_inputs, list_path, locate_operand, visit_bad
from pullback.diagnostics.page import Reported
from pullback.display.html import render_frame, render_table, render_text

SIGNS = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "pow": "{} ** {}"}
FORWARD, BACKWARD = "forward", "backward"
EARLIER_OPS = 6  # how far back a suggestion looks for a softmax


class Link(NamedTuple):
    """One op on the way of a NaN: its name, its phase, and the user's line."""

    op: str
    phase: str
    where: str

    def __str__(self) -> str:
        return f"{self.op}{' (back)' if self.phase == BACKWARD else ''} {self.where}"


class Event:
    """One op that made a NaN or infinity, and its line in the program."""

    def __init__(self, visit: Visit) -> None:
        note, index = visit.note, visit.index
        program_op, of, operands = note.program_op, note, note.args
        self.op: str = program_op.name
        if program_op is not note:
            of, operands = program_op, program_op.args
        elif note.tangent_of is not None:
            self.op, operands = note.tangent_of[0].name, note.tangent_of[1]
        self.note, self.chain = note, _make_links(list_path(visit))
        self.phase = BACKWARD if note.backward else FORWARD
        self.file, self.line, self.where = note.file, note.line, note.where
        split = max(note.examples, 0)
        example = (*note.example, *index[:split])
        self.example: Any = example[0] if len(example) == 1 else example or None
        self.index: Index = index[split:]
        self.output: Any = note.array[index]
        self.operands = [_locate_argument(a, note, note, index) for a in note.args]
        self.inputs: list[Any] = [_locate_argument(a, of, note, index) for a in operands]
        self.outside = any(not isinstance(a, Note) for a, _ in list_bad_inputs(note, index))

    @property
    def derivative(self) -> bool:
        """Whether it is the derivative of the op that is not finite, not the op."""
        return self.note.program_op is not self.note or self.note.tangent_of is not None

    def __repr__(self) -> str:
        return f"<{self.op} ({self.phase}) at {self.where}, index {self.index}: {_format_value(self.output)}>"

    def __str__(self) -> str:
        note = self.note
        text = f"{_format_call(note.name, self.operands)} = {_format_value(self.output)}"
        place = f"index {list(self.index)}" if self.index else "a scalar"
        if self.example is not None:
            place += f" of example {self.example}"
        if note.name in (GIVEN, SEED):
            named = f"the input itself{', ' * bool(note.label)}{note.label}"
            subject = named if note.name == GIVEN else "the cotangent to begin with"
            return f"{subject}: it holds {_format_value(self.output)} ({place})"
        if self.derivative:
            order = {1: "", 2: "second ", 3: "third "}.get(max(note.order, 1), "higher ")
            at = _format_call(self.op, self.inputs)
            return f"the {order}derivative of {self.op} at {self.where}, at {at}: {text} ({place})"
        within = f", in the gradient of {note.owner.name} ({note.owner.where})" if note.owner is not None else ""
        return f"{self.op} at {self.where}{within}: {text} ({place})"


def _locate_argument(a: object, of: Note, note: Note, index: Index) -> Any:
    """Return the number of an argument that belongs to an element of ``note``; all of them if that is not known."""
    values = get_values(a)
    if values is None:
        return a
    shape = note.array.shape
    own = of.array.shape  # there may be axes of examples in front, which the program does not have
    elementwise = isinstance(of.op, Op) and of.op.elementwise and shape[len(shape) - len(own) :] == own
    place = locate_operand(values, index, shape) if elementwise else None
    return values[place] if place is not None else values[()]


def _make_links(notes: Sequence[Note]) -> list[Link]:
    links: list[Link] = []
    for note in notes:
        link = Link(note.program_op.name, BACKWARD if note.backward else FORWARD, note.where)
        if note.name != PASSED and (not links or links[-1] != link):
            links.append(link)
    return links


def _format_value(v: Any) -> str:
    if np.ndim(v):
        return f"{np.dtype(v.dtype)}{list(np.shape(v))}"
    return f"{v:.6g}" if isinstance(v, int | float | np.number) and not isinstance(v, np.complexfloating) else str(v)


def _format_call(name: str, values: Sequence[Any]) -> str:
    texts = [_format_value(v) for v in values]
    return SIGNS[name].format(*texts) if name in SIGNS else f"{name}({', '.join(texts)})"


class NanReport(Reported):
    """Where a NaN or infinity came from.  ``print`` it, or read its fields.

    ``found``: whether there is any.  ``op``, ``phase``, ``where`` (``file.py:12``), ``file``, ``line``, ``index``,
    ``example`` (under ``vmap``), ``inputs`` and ``output`` are those of the first op that made one; ``chain`` leads
    from there to the result; ``suggestion`` says what to change.  ``arguments`` are the names of the arguments on which
    that op depends.  ``forward`` and ``backward`` are the first such op of the
    program and of the backward pass, each with the same fields, or None.

    >>> import pullback as pb
    >>> report = pb.diagnose(lambda x: pb.log(x) * x)(0.0)
    >>> report.op, report.phase, report.inputs
    ('log', 'forward', [np.float64(0.0)])
    """

    def __init__(self, results: Sequence[MonitoredResult], notes: Sequence[Note], function: str = "") -> None:
        found = [(result, visit_bad(result.note)) for result in results if result.note is not None]
        self.bad = [result.name for result, seen in found if seen]
        self.bad += [r.name for r in results if r.note is None and r.value is not None and not is_finite(r.value)]
        seen = [v for _, visited in found for v in visited]
        self.forward = _find_earliest([v for v in seen if v.clean and not v.note.backward])
        self.backward = _find_earliest([v for v in seen if v.first_back])
        self.found = bool(self.bad)
        event = self.forward or self.backward
        self.op = event.op if event else ""
        self.phase = event.phase if event else ""
        self.where = event.where if event else ""
        self.file = event.file if event else ""
        self.line = event.line if event else 0
        self.index: Index = event.index if event else ()
        self.example = event.example if event else None
        self.inputs = event.inputs if event else []
        self.output = event.output if event else None
        self.chain: list[Link] = event.chain if event else []
        self.function = function
        self.arguments = _name_arguments(event.note) if event else []
        self.suggestion = _make_suggestion(event, notes) if event else ""

    def __bool__(self) -> bool:
        return self.found

    def __str__(self) -> str:
        if not self.found:
            return "No NaN and no infinity, neither in the value nor in the gradients."
        lines = [f"Not finite: {', '.join(dict.fromkeys(self.bad))}."]
        if self.forward is None and self.backward is None:
            return f"{lines[0]}\nIt was not computed from the arguments by ops that could be followed."
        again = "entered the backward pass" if self.forward is not None else "began in the backward pass,"
        for event, began in ((self.forward, "began in the program,"), (self.backward, again)):
            if event is not None:
                lines.append(f"It {began} with {event}.")
                if len(event.chain) > 1:
                    lines.append(f"From there: {' -> '.join(map(str, event.chain))}.")
        if self.function and self.arguments:
            several = "s" * (len(self.arguments) > 1)
            lines.append(f"It depends on the argument{several} {' and '.join(self.arguments)} of {self.function}.")
        return "\n".join([*lines, self.suggestion])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.found:
            return render_frame("no NaN, no infinity", [], str(self))
        facts = [f"{self.op} in the {self.phase} pass", self.where] if self.op else []
        rows = [(f"{link.op} ({link.phase})", link.where) for link in self.chain]
        path = render_table(["from the first to the result", "line"], rows) if len(rows) > 1 else ""
        return render_frame("NaN or infinity", facts, render_text(self), path)


def _name_arguments(note: Note) -> list[str]:
    """Return how the user calls the arguments that an op was computed from."""
    names: dict[str, None] = {}
    seen, waiting = set[int](), [note]
    while waiting:
        n = waiting.pop()
        if id(n) not in seen:
            seen.add(id(n))
            waiting += [a for a in [*n.args, n.owner] if isinstance(a, Note)]
            if n.label:
                names[n.label] = None
    return sorted(names)


def _find_earliest(seen: Sequence[Visit]) -> Event | None:
    """Return the first of these, on its longest way: to a gradient rather than to the value."""
    number = min((v.note.number for v in seen), default=None)
    same = [v for v in seen if v.note.number == number]
    return Event(max(same, key=lambda v: list_path(v)[-1].number)) if same else None


def _name_earlier(note: Note, depth: int) -> set[str]:
    """Return the names of the ops that led to one, through at most ``depth`` of them."""
    found = set[str]()
    notes = [note]
    for _ in range(depth):
        notes = [*{id(a): a for n in notes for a in n.args if isinstance(a, Note)}.values()]
        found |= {n.name for n in notes}
    return found


def _make_suggestion(event: Event, notes: Sequence[Note]) -> str:
    note, program_op = event.note, event.note.program_op
    after = {id(note)}
    names = set()
    for n in notes[note.number + 1 :]:
        if any(id(a) in after for a in n.args):
            after.add(id(n))
            names.add(n.name)
    before = {a.name for a in program_op.args if isinstance(a, Note)} if note.tangent_of is None else set()
    earlier = _name_earlier(program_op, EARLIER_OPS)
    trouble = Origin(event.op, event.inputs, event.output, note.array.dtype, names, before, earlier, event.outside)
    operands = [v for v in event.operands if not np.ndim(v)]
    return advise_backward(trouble, operands) if event.derivative else advise_forward(trouble)
