"""The progress of an epoch: a bar of one line that fits the terminal, a line, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any, Protocol, TextIO

import numpy as np

from pullback.errors import ArgumentError

__all__ = ["EpochLine", "NotebookBar", "Progress", "TextBar", "format_bar", "make_progress"]

FALLBACK_WIDTH = 100  # columns of a terminal of unknown size
WIDEST_BAR, NARROWEST_BAR = 24, 4
REDRAW_SECONDS = 0.1  # between two updates of the bar


class Results(Protocol):
    """What is shown: numbers by name, which are only computed when they are drawn."""

    def compute(self) -> Mapping[str, Any]:
        """Return the numbers up to now."""


class Progress:
    """Shows nothing; the base of bars and lines."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the terminal, also after an error."""

    def step(self, results: Results) -> None:
        """Note a step, with the results up to now."""

    def close(self, logs: Mapping[str, Any]) -> None:
        """Show the results at the end of the epoch."""


class TimedProgress(Progress):
    """The base of what shows times: counts steps; validation does not count as time of steps."""

    def __init__(self, title: str) -> None:
        self.title, self.steps = title, 0
        self.began = self.drawn = self.last_step = perf_counter()

    def step(self, results: Results) -> None:
        self.steps += 1
        self.last_step = perf_counter()

    def format_step_time(self) -> str:
        """Return the time of a step up to now."""
        return _format_time_per_step(self.last_step - self.began, self.steps)


class EpochLine(TimedProgress):
    """Prints a line of text at the end of each epoch."""

    def close(self, logs: Mapping[str, Any]) -> None:
        parts = [self.title, f"{perf_counter() - self.began:.1f} s", self.format_step_time()]
        numbers = [f"{name}: {_format_number(value)}" for name, value in logs.items()]
        print(" - ".join([*parts, *numbers]), file=sys.stderr)


class TextBar(TimedProgress):
    """Shows a bar of one line in a terminal, redrawn at intervals."""

    def __init__(self, title: str, total: int | None, stream: TextIO) -> None:
        super().__init__(title)
        self.total, self.stream = total, stream
        self._is_open = True

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self._is_open = False
            self.stream.write("\n")
            self.stream.flush()

    def step(self, results: Results) -> None:
        super().step(results)
        if self.last_step - self.drawn >= REDRAW_SECONDS:
            self.drawn = self.last_step
            self._draw(results.compute())

    def close(self, logs: Mapping[str, Any]) -> None:
        self._draw(logs)
        self.__exit__()

    def _draw(self, numbers: Mapping[str, Any]) -> None:
        times = [_format_seconds(perf_counter() - self.began), self.format_step_time()]
        width = _find_width(self.stream) - 1  # a full line would wrap in some terminals
        line = format_bar(self.title, self.steps, self.total, times, numbers, width)
        self.stream.write(f"\r{line.ljust(width)}")
        self.stream.flush()


class NotebookBar(TimedProgress):
    """Shows tqdm's bar in a notebook, redrawn at intervals."""

    def __init__(self, title: str, tqdm: Any) -> None:
        super().__init__(title)
        self.tqdm = tqdm

    def __exit__(self, *_: object) -> None:
        self.tqdm.close()

    def step(self, results: Results) -> None:
        super().step(results)
        if self.last_step - self.drawn >= REDRAW_SECONDS:
            self.drawn = self.last_step
            self._draw(results.compute())

    def close(self, logs: Mapping[str, Any]) -> None:
        self._draw(logs)
        self.tqdm.close()

    def _draw(self, numbers: Mapping[str, Any]) -> None:
        parts = [self.format_step_time(), *(f"{name}={_format_number(value)}" for name, value in numbers.items())]
        self.tqdm.set_postfix_str(", ".join(parts), refresh=False)
        self.tqdm.n = self.steps
        self.tqdm.refresh()


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
    count = f"{done}/{total}" if total else f"{done} steps"
    listed = sorted(numbers, key=lambda name: name not in ("loss", "val_loss"))  # which are kept longest
    shown = [f"{name}={_format_number(numbers[name])}" for name in numbers]
    for parts in ([count, *times, *shown], [count, times[-1], *shown], [count, *shown]):
        text = " ".join(parts)
        room = width - len(title) - len(text) - 2
        if total and room >= NARROWEST_BAR:
            bar = _draw_bar(done / total, min(room, WIDEST_BAR))
            return f"{title} {bar} {text}"
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


def make_progress(steps: int | None, epoch: int, epochs: int, verbose: int | str = "auto") -> Progress:
    """Return what shows the steps of an epoch; ``steps`` is ``None`` if their number is not known.

    ``verbose`` is ``"auto"`` (a bar in a terminal or notebook, else nothing), 0 (nothing), 1 (a bar, or a line for each
    epoch where there is no terminal) or 2 (a line for each epoch).  Bars in notebooks need tqdm.

    >>> with make_progress(100, 0, 5, verbose=0) as shown:
    ...     shown.close({"loss": 0.5})
    """
    if verbose not in ("auto", 0, 1, 2):
        raise ArgumentError(f'fit: verbose must be "auto", 0, 1 or 2, got {verbose!r}.')
    title = f"Epoch {epoch + 1}/{epochs}"
    if verbose == 2:
        return EpochLine(title)
    if not verbose:
        return Progress()
    if sys.stderr.isatty():
        return TextBar(title, steps, sys.stderr)
    tqdm = _import_tqdm() if "ipykernel" in sys.modules else None
    if tqdm is not None:
        return NotebookBar(title, tqdm(total=steps, desc=title))
    return EpochLine(title) if verbose == 1 else Progress()


@cache
def _import_tqdm() -> Any:
    """Return tqdm for notebooks; None where it is not installed."""
    try:
        import tqdm.auto
    except ImportError:
        return None
    return tqdm.auto.tqdm


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
