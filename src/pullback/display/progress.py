"""The progress of long work: a bar of one line that fits the terminal, the same in a notebook, lines, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol, TextIO, TypeVar

import numpy as np

from pullback.display.html import render_text
from pullback.errors import ArgumentError

FALLBACK_WIDTH = 100  # columns of a terminal of unknown size
WIDEST_BAR, NARROWEST_BAR = 24, 4
REDRAW_SECONDS = 0.1  # between two updates of the bar

Item = TypeVar("Item")
_is_shown: ContextVar[bool] = ContextVar("_is_shown", default=False)  # inside show_progress


class Results(Protocol):
    """The numbers that are shown, by name, which are only computed when they are drawn."""

    def compute(self) -> Mapping[str, Any]:
        """Return the numbers up to now."""


class Progress:
    """Shows nothing; the base of bars and lines."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the terminal, also after an error."""

    def step(self, results: Results | None = None) -> None:
        """Note a step, with the results up to now."""

    def close(self, numbers: Mapping[str, Any]) -> None:
        """Show the results at the end."""


class TimedProgress(Progress):
    """The base of bars and lines with times: counts steps; time after the last step is not counted."""

    def __init__(self, title: str) -> None:
        self.title, self.steps = title, 0
        self.began = self.drawn = self.last_step = perf_counter()

    def step(self, results: Results | None = None) -> None:
        self.steps += 1
        self.last_step = perf_counter()

    def format_step_time(self) -> str:
        """Return the time of a step up to now."""
        return _format_time_per_step(self.last_step - self.began, self.steps)


class ProgressLine(TimedProgress):
    """Prints a line of text at the end."""

    def close(self, numbers: Mapping[str, Any]) -> None:
        parts = [*filter(None, [self.title]), f"{perf_counter() - self.began:.1f} s", self.format_step_time()]
        shown = [f"{name}: {_format_number(value)}" for name, value in numbers.items()]
        print(" - ".join([*parts, *shown]), file=sys.stderr)


class Canvas(Protocol):
    """Where a bar is drawn: one line of text that can be replaced."""

    def find_width(self) -> int:
        """Return how many columns the line may have."""

    def draw(self, line: str) -> None:
        """Replace the line."""

    def close(self) -> None:
        """Leave the line as it is."""


class Terminal:
    """The current line of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def find_width(self) -> int:
        return _find_width(self.stream) - 1  # a full line would wrap in some terminals

    def draw(self, line: str) -> None:
        self.stream.write(f"\r{line.ljust(self.find_width())}")
        self.stream.flush()

    def close(self) -> None:
        self.stream.write("\n")
        self.stream.flush()


class NotebookCell:
    """A line below a cell of a notebook, by IPython's own display: no widgets are needed."""

    def __init__(self, display: Any) -> None:
        self.handle = display(self._render(""), raw=True, display_id=True)

    @staticmethod
    def _render(line: str) -> dict[str, str]:
        return {"text/plain": line, "text/html": render_text(line)}

    def find_width(self) -> int:
        return FALLBACK_WIDTH

    def draw(self, line: str) -> None:
        self.handle.update(self._render(line), raw=True)

    def close(self) -> None:
        """Leave the line as it is: it is the cell's output."""


class Bar(TimedProgress):
    """Shows a bar of one line, redrawn at intervals."""

    def __init__(self, title: str, total: int | None, canvas: Canvas) -> None:
        super().__init__(title)
        self.total, self.canvas = total, canvas
        self._is_open = True

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self._is_open = False
            self.canvas.close()

    def step(self, results: Results | None = None) -> None:
        super().step()
        if self.last_step - self.drawn >= REDRAW_SECONDS:
            self.drawn = self.last_step
            self._draw({} if results is None else results.compute())

    def close(self, numbers: Mapping[str, Any]) -> None:
        self._draw(numbers)
        self.__exit__()

    def _draw(self, numbers: Mapping[str, Any]) -> None:
        times = [_format_seconds(perf_counter() - self.began), self.format_step_time()]
        self.canvas.draw(format_bar(self.title, self.steps, self.total, times, numbers, self.canvas.find_width()))


def format_bar(
    title: str, done: int, total: int | None, times: Sequence[str], numbers: Mapping[str, Any], width: int
) -> str:
    """Return a line of at most ``width`` columns: the bar shrinks first, then times go, then further metrics.

    The losses stay longest.

    >>> format_bar("Epoch 1/3", 5, 10, ["0:02", "3.1 ms/step"], {"loss": 0.5, "val_loss": 0.75}, 79)
    'Epoch 1/3 ████████████············ 5/10 0:02 3.1 ms/step loss=0.5 val_loss=0.75'
    >>> format_bar("Epoch 1/3", 5, 10, ["0:02", "3.1 ms/step"], {"loss": 0.5, "acc": 0.1, "val_loss": 0.75}, 40)
    'Epoch 1/3 5/10 loss=0.5 val_loss=0.75 …'
    """
    count = f"{done}/{total}" if total else f"{done} step{'s' * (done != 1)}"
    listed = sorted(numbers, key=lambda name: name not in ("loss", "val_loss"))  # which are kept longest
    shown = [f"{name}={_format_number(numbers[name])}" for name in numbers]
    for parts in ([count, *times, *shown], [count, times[-1], *shown], [count, *shown]):
        text = " ".join(parts)
        room = width - len(title) - len(text) - 2
        if total and room >= NARROWEST_BAR:
            bar = _draw_bar(done / total, min(room, WIDEST_BAR))
            return f"{title} {bar} {text}".lstrip()
        if len(title) + 1 + len(text) <= width:
            return f"{title} {text}"
    kept: list[str] = []
    for name in listed:
        more = [*kept, f"{name}={_format_number(numbers[name])}"]
        if len(" ".join([title, count, *more, "…"])) > width:
            break
        kept = more
    return " ".join([title, count, *kept, "…"])[:width]


def _draw_bar(share: float, width: int) -> str:
    full = int(min(share, 1.0) * width)
    return "█" * full + "·" * (width - full)


def make_progress(
    title: str, total: int | None = None, verbose: int | str = "auto", face: str = "progress"
) -> Progress:
    """Return what shows the steps of some work; ``total`` is ``None`` if their number is not known.

    ``verbose`` is ``"auto"`` or 1 (a bar in a terminal or notebook, a line at the end where there is neither), 0
    (nothing) or 2 (a line at the end).  ``face`` is the function to name in an error.

    >>> with make_progress("Epoch 1/5", 100, verbose=0) as shown:
    ...     shown.close({"loss": 0.5})
    """
    if verbose not in ("auto", 0, 1, 2):
        raise ArgumentError(f'{face}: verbose must be "auto", 0, 1 or 2, got {verbose!r}.')
    if not verbose:
        return Progress()
    canvas = None if verbose == 2 else _find_canvas()
    return ProgressLine(title) if canvas is None else Bar(title, total, canvas)


def _find_canvas() -> Canvas | None:
    """Return where a bar can be drawn, if anywhere."""
    if sys.stderr.isatty():
        return Terminal(sys.stderr)
    if "ipykernel" in sys.modules and (ipython := sys.modules.get("IPython")) is not None and ipython.get_ipython():
        return NotebookCell(ipython.display.display)
    return None


def progress(
    items: Iterable[Item], title: str = "", total: int | None = None, verbose: int | str = "auto"
) -> Iterator[Item]:
    """Iterate over items and show how many are done: a bar in a terminal or a notebook, else a line at the end.

    items: what to iterate over: a list, a ``pb.data`` dataset, a generator.
    title: a text before the bar.
    total: how many items there are, if ``items`` has no length and it is known.
    verbose: 0 to show nothing, 2 for the line only.

    >>> import pullback as pb
    >>> sum(x * x for x in pb.progress([1.0, 2.0, 3.0], "squares"))
    14.0
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with make_progress(title, total, verbose) as shown:
        for item in items:
            yield item
            shown.step()
        shown.close({})


@contextmanager
def show_progress() -> Iterator[None]:
    """Show a bar for long computations inside: ``check_grads``, jacobians and Hessians, solvers of ``pb.scipy``.

    Where there is neither a terminal nor a notebook, a line is printed at the end of each.

    >>> import numpy as np, pullback as pb
    >>> with pb.show_progress():
    ...     slopes = pb.jacobian(np.sin)(np.zeros(3))
    """
    before = _is_shown.set(True)
    try:
        yield
    finally:
        _is_shown.reset(before)


@contextmanager
def report_progress(title: str, total: int | None = None) -> Iterator[Progress]:
    """Show the steps of a long computation of the library inside ``show_progress``, not those of its parts."""
    if not _is_shown.get():
        yield Progress()
        return
    before = _is_shown.set(False)
    try:
        with make_progress(title, total, 1) as shown:
            yield shown
    finally:
        _is_shown.reset(before)


def _find_width(stream: TextIO) -> int:
    """Return the columns of the terminal of a stream."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError, AttributeError):
        columns = 0
    return columns or int(os.environ.get("COLUMNS", 0) or 0) or FALLBACK_WIDTH


def _format_number(value: Any) -> str:
    """Return a number for a line; of several, their mean."""
    return f"{float(np.mean(value)):.4g}"


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _format_time_per_step(seconds: float, steps: int) -> str:
    each = seconds / max(steps, 1)
    return (
        f"{each:.2f} s/step"
        if each >= 1
        else f"{each * 1e3:.1f} ms/step"
        if each >= 1e-3
        else f"{each * 1e6:.0f} µs/step"
    )
