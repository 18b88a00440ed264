"""``compiled.profile(*args)``: the bytes that each step of a compiled program reads and writes, and its time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import OPAQUE
from pullback.compiler.pipeline import lower
from pullback.compiler.runtime.disk_cache import NO_CACHE
from pullback.compiler.runtime.executable import Executable
from pullback.compiler.runtime.link import link
from pullback.compiler.target import Options, Target
from pullback.core.source import name_file
from pullback.display.html import MONOSPACE, Markup, escape, render_frame, render_table
from pullback.display.text import format_bytes

if TYPE_CHECKING:
    from pullback.compiler.schedule.order import ScheduledStep

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{font:14px/1.45 system-ui,sans-serif;margin:1rem;max-width:110rem}}
main{{display:flex;flex-wrap:wrap;gap:2rem;align-items:flex-start}}</style></head>
<body><main><div>{source}</div><div>{steps}</div></main></body></html>
"""


@dataclass(frozen=True)
class ProfiledStep:
    """One step of a program: a kernel of several ops, a library call, or an op that NumPy runs."""

    description: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]  # of the user's program, as "file.py:3"
    bytes_read: int
    bytes_written: int
    seconds: float  # the median of several runs
    share: float  # of the time of all steps

    @property
    def bytes_moved(self) -> int:
        """Bytes that are read and written."""
        return self.bytes_read + self.bytes_written


class Profile:
    """The steps of a compiled program with their times; printed, it is a table."""

    def __init__(self, function: Callable[..., Any], steps: Sequence[ProfiledStep]) -> None:
        self.function, self.steps = function, list(steps)
        self.name: str = getattr(function, "__name__", type(function).__name__)

    @property
    def seconds(self) -> float:
        """The time of all steps."""
        return sum(step.seconds for step in self.steps)

    def __dir__(self) -> list[str]:
        return ["function", "name", "seconds", "steps", "to_html"]

    def __str__(self) -> str:
        head = f"{self.name}: {len(self.steps)} steps, {self.seconds * 1e6:.1f} µs"
        rows = [
            f"{s.share:6.1%} {s.seconds * 1e6:9.1f} µs {format_bytes(s.bytes_moved):>9}  {s.description}"
            for s in self.steps
        ]
        return "\n".join([head, f"{'share':>6} {'time':>12} {'moved':>9}  step", *rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (
                i,
                _draw_share(s.share),
                f"{s.seconds * 1e6:.1f}",
                format_bytes(s.bytes_read),
                format_bytes(s.bytes_written),
                s.description,
                ", ".join(s.lines),
            )
            for i, s in enumerate(self.steps, 1)
        ]
        header = ["step", "share of the time", "µs", "read", "written", "what it does", "lines"]
        facts = [f"{len(rows)} steps", f"{self.seconds * 1e6:.1f} µs"]
        return render_frame(f"profile of {self.name}", facts, render_table(header, rows, right=[0, 2, 3, 4]))

    def to_html(self, path: str | Path) -> Path:
        """Write a page with the function's source, each line with the steps it became, beside the table of steps.

        path: the file to write; it needs no other file and no network.

        >>> import tempfile, numpy as np, pullback as pb
        >>> profile = pb.compile(lambda x: np.sum(np.exp(x))).profile(np.ones(3))
        >>> "exp, sum" in profile.to_html(tempfile.mkdtemp() + "/profile.html").read_text("utf-8")
        True
        """
        page = PAGE.format(
            title=escape(f"profile of {self.name}"),
            source=_show_source(self.function, self.steps),
            steps=self._repr_html_(),
        )
        file = Path(path)
        file.write_text(page, "utf-8")
        return file


def profile_graph(
    traced: Graph, target: Target, options: Options, values: Sequence[Any], function: Callable[..., Any], rounds: int
) -> Profile:
    """Compile a graph with each step as a function of its own, run it, and return what each step took."""
    options = options._replace(separate_steps=True)
    stages = lower(traced, target, options)
    program = Executable(
        link(stages.module.text, stages.module.longest_block, stages.contents, target, NO_CACHE), traced
    )
    steps = [s for s in stages.scheduled if not isinstance(s.source, Node) or _is_timed(s.source)]
    taken: list[int] = []
    memory = program.prepare_segments(values)
    for _ in range(rounds + 1):
        program.call_segments(memory, lambda call: taken.append(_measure(call)))
    times = np.reshape(taken, (rounds + 1, len(steps)))[1:]  # the first run touches new memory
    seconds = [1e-9 * float(t) for t in np.median(times, axis=0)]
    total = sum(seconds) or 1.0
    profiled = [_make_step(s, t, t / total) for s, t in zip(steps, seconds, strict=True)]
    return Profile(function, profiled)


def _is_timed(node: Node) -> bool:
    return not node.kind.runs_on_host or node.kind is OPAQUE


def _measure(call: Callable[[], object]) -> int:
    begin = perf_counter_ns()
    call()
    return perf_counter_ns() - begin


def _make_step(step: ScheduledStep, seconds: float, share: float) -> ProfiledStep:
    nodes: list[Node] = getattr(step.source, "nodes", None) or [step.source]
    lines = tuple(dict.fromkeys(n.line for n in nodes if n.line))
    description = step.source.name if len(nodes) > 1 else f"{step.source.name} {list(nodes[0].shape)}"
    return ProfiledStep(
        description=description,
        ops=tuple(n.name for n in nodes),
        lines=lines,
        bytes_read=sum(n.nbytes for n in step.read),
        bytes_written=sum(n.nbytes for n in step.stored),
        seconds=seconds,
        share=share,
    )


def _draw_share(share: float) -> Markup:
    """Return a share as a bar with its number."""
    bar = f"background:rgba(214,96,40,.55);width:{100 * share:.1f}%;height:.7em"
    box = "display:inline-block;width:7em;background:rgba(128,128,128,.18);vertical-align:middle;margin-right:.5em"
    return Markup(f'<span style="{box}"><span style="display:block;{bar}"></span></span>{share:.1%}')


def _show_source(function: Callable[..., Any], steps: Sequence[ProfiledStep]) -> Markup:
    """Return the source of a function, each line with the numbers of the steps that compute it."""
    function = inspect.unwrap(function)
    try:
        text, first = inspect.getsourcelines(function)
        file = name_file(inspect.getsourcefile(function) or "")
    except (OSError, TypeError):  # made by exec, or no function of Python's
        return Markup("")
    rows = []
    for number, line in enumerate(text, max(first, 1)):
        found = [str(i) for i, s in enumerate(steps, 1) if f"{file}:{number}" in s.lines]
        code = Markup(f'<span style="white-space:pre;{MONOSPACE}">{escape(line.rstrip())}</span>')
        rows.append((number, code, ", ".join(found)))
    return render_frame(file, [], render_table(["line", "source", "steps"], rows, right=[0]))
