"""``explain``: why the gradient of an input is missing or zero, and where its path ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.op import Op
from pullback.core.source import format_place
from pullback.core.tensor import ARRAYS, all_values
from pullback.diagnostics.monitor import STOPPED, Note
from pullback.diagnostics.monitored_run import Examined, MonitoredResult, MonitoredRun, is_number
from pullback.diagnostics.page import Reported
from pullback.diagnostics.record import make_record
from pullback.display.html import render_frame, render_table
from pullback.transforms.leaf_names import name_leaves

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import ArrayOrNumber, Value

ROUNDING = frozenset({"round", "floor", "ceil", "sign", "step", "floor_div"})
SATURATING = frozenset({
    "relu", "relu6", "clip_by_value", "elu", "selu", "sigmoid", "tanh", "softmax", "leaky_relu", "prelu", "erf",
    "softplus",
})  # fmt: skip
PRODUCTS = frozenset({"mul", "matmul", "contract"})
CHOOSING = frozenset({"maximum", "minimum", "max", "min", "where", "getitem", "gather", "largest_in_window"})
EXPLANATIONS = {
    "stop_gradient": "stop_gradient ends the path",
    "integer cast": "a cast to integers or bools has no derivative",
    "comparison": "a comparison has no derivative; pb.where keeps the path of what it chooses",
    "rounding": "rounding is flat: its derivative is zero wherever there is one",
    "saturated": "it is saturated there: its derivative is zero",
    "not chosen": "the other one was chosen there",
    "multiplied by zero": "it is multiplied by zero",
    "no derivative": "it has no derivative in that operand",
    "zero derivative": "its derivative is zero there",
    "no gradient returned": "the gradient function returned None for it",
}


class PathEnd(NamedTuple):
    """Where the path of an input ends: the op, why, and the user's line.

    >>> import pullback as pb
    >>> pb.explain(lambda x: pb.floor(x) * 2.0)(1.5).inputs[0].ends[0].why
    'rounding'
    """

    op: str
    why: str
    where: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.op} at {self.where}: {EXPLANATIONS.get(self.why, self.why)}"


class InputReport:
    """One input: its ``name``, its ``status`` (connected, zero, missing or not used) and where its paths end."""

    def __init__(self, name: str, status: str, ends: Sequence[PathEnd], reason: str) -> None:
        self.name, self.status, self.ends, self.reason = name, status, list(ends), reason
        first = ends[0] if ends else None
        self.op = first.op if first else ""
        self.why = first.why if first else reason
        self.where = first.where if first else ""
        self.file, self.line = (first.file, first.line) if first else ("", 0)

    def __str__(self) -> str:
        reasons = [self.reason] if self.reason else []
        return f"{self.name}: {self.status}" + "".join(f"\n    {line}" for line in [*reasons, *map(str, self.ends)])

    __repr__ = __str__


class Explanation(Reported):
    """Why gradients are missing or zero: ``inputs`` has one entry for each input, found by name with ``[...]`` too.

    ``op``, ``why``, ``where``, ``file``, ``line`` and ``status`` are those of the first input with no gradient.

    >>> import pullback as pb
    >>> report = pb.explain(lambda x, y: pb.stop_gradient(x) * y)(2.0, 3.0)
    >>> report["x"].op, report["y"].status
    ('stop_gradient', 'connected')
    """

    def __init__(self, inputs: Sequence[InputReport]) -> None:
        self.inputs = list(inputs)
        first = next((i for i in inputs if i.status != "connected"), None)
        self.ok = first is None
        self.status = first.status if first else "connected"
        self.op, self.why, self.where = (first.op, first.why, first.where) if first else ("", "", "")
        self.file, self.line = (first.file, first.line) if first else ("", 0)

    def __getitem__(self, name: str) -> InputReport:
        for i in self.inputs:
            if i.name == name:
                return i
        raise KeyError(f"there is no input {name!r}; there are {', '.join(i.name for i in self.inputs)}")

    def __str__(self) -> str:
        return "\n".join(map(str, self.inputs)) or "no inputs"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            row
            for i in self.inputs
            for row in [
                *((i.name, i.status, end.op, EXPLANATIONS.get(end.why, end.why), end.where) for end in i.ends),
                *([] if i.ends else [(i.name, i.status, "", i.reason, "")]),
            ]
        ]
        return render_frame(
            "paths of the gradient", [], render_table(["input", "gradient", "ends at", "because", "line"], rows)
        )


class Explained(Examined):
    """The function that ``explain`` returns."""

    face = "explain"

    def __call__(self, *args: object, **kwargs: object) -> Explanation:
        ran = MonitoredRun(self.__wrapped__, args, kwargs)
        leaves = [x for a in args for _, x in name_leaves("", a) if is_number(x)]
        values = [*leaves, *[None] * (len(ran.inputs) - len(leaves))]
        reports = [_report_input(ran, i, g, x) for i, g, x in zip(ran.inputs, ran.gradients, values, strict=True)]
        explanation = Explanation(reports)
        explanation.record = make_record(ran, self.__name__)
        return explanation


def explain(f: Callable[..., Any]) -> Explained:
    """Return a function of the same arguments that says for each input why its gradient is missing or zero.

    It names the op at which the path from the input to the result ends, and its line: ``stop_gradient``, a cast to
    integers, a comparison, rounding, a factor of zero, saturation; or it says that the input is not used at all.

    f: the function whose gradient is explained.

    >>> import pullback as pb
    >>> print(pb.explain(lambda x, y: pb.floor(x) + y)(1.5, 2.0))
    x: zero
        floor at <doctest ...>:1: rounding is flat: its derivative is zero wherever there is one
    y: connected
    """
    return Explained(f)


def _report_input(
    ran: MonitoredRun, given: MonitoredResult, gradient: MonitoredResult, leaf: ArrayOrNumber | None
) -> InputReport:
    note, name = given.note, given.name
    assert note is not None
    live, cuts = _follow_input(ran, note)
    if gradient.value is None:
        return _report_missing(ran, name, leaf, live, cuts)
    d = np.asarray(all_values(gradient.value))
    if not d.size:
        return InputReport(name, "connected", [], "it has no elements")
    if np.any(d):
        zeros = int(d.size - np.count_nonzero(d))
        return InputReport(name, "connected", [], f"zero at {zeros} of {d.size} elements" if zeros else "")
    ends = [
        _make_end(owner, _explain_zero(owner, operand))
        for owner, operand, g in ran.monitor.ended
        if _ends_path(owner, operand, g, live)
    ]
    ends = list(dict.fromkeys(ends))  # paths that are cut beside these are not why
    return InputReport(name, "zero", ends, "" if ends else "what comes back along its paths adds up to zero")


def _report_missing(
    ran: MonitoredRun, name: str, leaf: ArrayOrNumber | None, live: dict[int, Note], cuts: list[tuple[Note, str]]
) -> InputReport:
    """Report on an input that has no gradient."""
    if len(live) == 1 and not cuts:
        return InputReport(name, "not used", [], _describe_captured(ran.f, leaf))
    ends = [_make_end(n, why) for n, why in cuts] or [PathEnd(*cut) for cut in _list_unreturned(ran)]
    return InputReport(name, "missing", ends, "" if ends else _describe_unused(live))


def _follow_input(ran: MonitoredRun, begin: Note) -> tuple[dict[int, Note], list[tuple[Note, str]]]:
    """Return the notes that depend differentiably on an input, by number, and the ops where that ends."""
    live = {begin.number: begin}
    cuts = []
    for note in ran.monitor.notes[begin.number + 1 :]:
        if note.backward:
            continue
        for i, a in enumerate(note.args):
            if isinstance(a, Note) and a.number in live:
                why = _explain_cut(note, i)
                if why:
                    cuts.append((note, why))
                else:
                    live[note.number] = note
    return live, cuts


def _explain_cut(note: Note, i: int) -> str:
    """Return why no cotangent reaches operand ``i`` of an op; empty if one does."""
    if note.name == STOPPED:
        return "stop_gradient"
    if not isinstance(note.op, Op) or (note.op.d.differentiable(0 if note.op.variadic else i)):
        return ""
    if note.name == "cast_to_whole":
        return "integer cast"
    return "comparison" if note.array.dtype == bool else "rounding" if note.name in ROUNDING else "no derivative"


def _ends_path(owner: Note, operand: Note, g: Tensor, live: dict[int, Note]) -> bool:
    """Return whether a step on the path gave a zero cotangent to its operand for one that is not zero."""
    return owner.number in live and operand.number in live and bool(np.any(all_values(g)))


def _explain_zero(owner: Note, operand: Note) -> str:
    if owner.name in ROUNDING:
        return "rounding"
    if owner.name in SATURATING:
        return "saturated"
    if owner.name in CHOOSING:
        return "not chosen"
    others = [a.array if isinstance(a, Note) else np.asarray(all_values(a)) for a in owner.args if a is not operand]
    if owner.name in PRODUCTS and any(not np.any(v) for v in others):
        return "multiplied by zero"
    return "zero derivative"


def _make_end(note: Note, why: str) -> PathEnd:
    return PathEnd("cast" if note.name == "cast_to_whole" else note.name, why, note.where, note.file, note.line)


def _list_unreturned(ran: MonitoredRun) -> Iterator[tuple[str, str, str, str, int]]:
    """Yield the custom gradients that returned None."""
    for name, file, line in ran.cuts:
        if "(" in name:
            yield name, "no gradient returned", format_place(file, line), file, line


def _describe_unused(live: dict[int, Note]) -> str:
    last = live[max(live)]
    return f"it is last used by {last.name} at {last.where}, on which the result does not depend"


def _describe_captured(f: Callable[..., Any], leaf: Any) -> str:
    """Describe an input that is not used: maybe an equal value was captured instead."""
    try:
        found = inspect.getclosurevars(f)
        around = {**found.globals, **found.nonlocals}
    except TypeError:  # not a Python function
        around = {}
    for name, value in around.items():
        if value is leaf or (isinstance(value, ARRAYS) and _is_same(value, leaf)):
            return (
                f"nothing is computed with it; the function uses '{name}' from outside, which holds the same numbers "
                "but is another thing: use the argument"
            )
    names = [name for name, value in around.items() if isinstance(value, ARRAYS)]
    more = f"; values from outside ({', '.join(names)}) have no gradient here" if names else ""
    return f"nothing is computed with it{more}"


def _is_same(value: Any, leaf: Value) -> bool:
    if leaf is None:
        return False
    a, b = np.asarray(all_values(value)), np.asarray(all_values(leaf))
    return a.shape == b.shape and bool(np.array_equal(a, b))
