"""``report.to_html``: an HTML page of a gradient, with the user's source, the graph, values and cotangents."""

from __future__ import annotations

import json
import linecache
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pullback.core.source import format_place, name_file
from pullback.diagnostics.monitor import GIVEN
from pullback.diagnostics.record import Record, RecordedStep
from pullback.display.graphs import GraphBox, Picture, draw_graph
from pullback.display.html import escape
from pullback.errors import ArgumentError

if TYPE_CHECKING:
    from pullback.compiler.profile import Profile

CONTEXT_LINES = 3  # lines of source that are shown before and after those with an op


class Reported:
    """A report that can be written as a page."""

    record: Record | None = None  # None for a report of a pass that was not run for it

    def to_html(self, path: str | Path, profile: Profile | None = None) -> Path:
        """Write a page that shows the program, its values and its gradients; it needs no other file and no network.

        path: the file to write.
        profile: of the compiled gradient, as ``pb.compile(pb.grad(f)).profile(x)`` gives it: the page shows which
            ops became which kernel, the bytes that this moves, and its share of the time.

        >>> import tempfile, numpy as np, pullback as pb
        >>> page = pb.trace(lambda x: np.sum(np.exp(x)))(np.ones(3)).to_html(tempfile.mkdtemp() + "/report.html")
        >>> "exp" in page.read_text("utf-8")
        True
        """
        if self.record is None:
            raise ArgumentError(
                "to_html: this report was made while a gradient was computed, so its values are gone. Call "
                "pb.diagnose(f) with the same arguments and write the page of what it returns."
            )
        file = Path(path)
        file.write_text(make_page(self.record, self.summarize(), profile), "utf-8")
        return file

    def summarize(self) -> str:
        """Return what stands at the top of the page."""
        return str(self)


def make_page(record: Record, summary: str, profile: Profile | None = None) -> str:
    """Return the page of a record; ``summary`` stands at the top."""
    data = {
        "steps": [asdict(step) | {"place": format_place(step.file, step.line)} for step in record.steps],
        "files": _list_files(record.steps),
        "first": record.first_bad,
        "kernels": [asdict(step) for step in profile.steps] if profile is not None else [],
    }
    finding, _, more = (summary if len(summary) < 2000 else f"{len(record.steps)} steps").partition("\n")
    parts = {
        "title": escape(f"gradient of {record.name}"),
        "state": "bad" if record.first_bad is not None else "good",
        "finding": escape(finding),
        "summary": escape(f"\n{more}" if more else ""),
        "graph": draw_steps(record.steps).svg,
        # what stands in a script element must not end it
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
    }
    page = Path(__file__).with_name("report_page.html").read_text("utf-8")
    head, *rest = page.split("{{")  # in one pass, so that nothing in the data is taken for a place
    return head + "".join(parts[name] + text for name, _, text in (part.partition("}}") for part in rest))


def draw_steps(steps: list[RecordedStep]) -> Picture:
    """Return a picture of the steps of a program, inputs at the top."""
    return draw_graph([_make_box(step) for step in steps], "the program as a graph")


def _make_box(step: RecordedStep) -> GraphBox:
    is_input = step.op == GIVEN
    return GraphBox(
        label=step.name or step.op,
        below=f"{step.dtype}{list(step.shape)}",
        inputs=step.inputs,
        fill="rgba(200,0,160,.35)" if step.value.nans or step.value.infinities else "rgba(128,128,128,.12)",
        stroke="rgb(200,0,160)" if step.is_bad else "rgba(128,128,128,.7)",
        title="; ".join(step.rules),
        is_input=is_input,
    )


def _list_files(steps: list[RecordedStep]) -> list[dict[str, object]]:
    """Return the files of the user's lines, with the lines that are shown, each with its number."""
    wanted: dict[str, set[int]] = {}
    for step in steps:
        if step.file and step.line:
            wanted.setdefault(step.file, set()).update(range(step.line - CONTEXT_LINES, step.line + CONTEXT_LINES + 1))
    found: list[dict[str, object]] = []
    for path, numbers in wanted.items():
        text = linecache.getlines(path)
        lines = [(n, text[n - 1].rstrip("\n")) for n in sorted(numbers) if 1 <= n <= len(text)]
        lines = lines or [(n, "") for n in sorted({s.line for s in steps if s.file == path})]
        found.append({"path": path, "name": name_file(path), "lines": lines})
    return found
