"""The progress of an epoch: a bar, a line, or nothing.  The only module that imports tqdm."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from time import perf_counter
from typing import Any

from pullback.errors import ArgumentError

__all__ = ["ProgressBar", "EpochLine", "Progress", "make_progress"]

FALLBACK_SIZE = 100, 24
REDRAW_SECONDS = 0.1  # between two updates of the bar
BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
COUNTER_FORMAT = "{desc}: {n_fmt} steps [{elapsed}{postfix}]"  # where the number of steps is not known


class Progress:
    """Shows nothing; the base of bars and lines."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the terminal, also after an error."""

    def step(self, loss: float, metrics: Mapping[str, float]) -> None:
        """Note a step; its numbers are only converted when they are drawn."""

    def close(self, logs: Mapping[str, float]) -> None:
        """Show the results at the end of the epoch."""


class EpochLine(Progress):
    """Prints a line of text at the end of each epoch."""

    def __init__(self, title: str) -> None:
        self.title, self.steps = title, 0
        self.began = self.last_step = perf_counter()

    def step(self, loss: float, metrics: Mapping[str, float]) -> None:
        self.steps += 1
        self.last_step = perf_counter()

    def close(self, logs: Mapping[str, float]) -> None:
        parts = [
            self.title,
            f"{perf_counter() - self.began:.1f} s",
            _format_time_per_step(self.last_step - self.began, self.steps),
        ]
        print(
            " - ".join([*parts, *(f"{name}: {_format_number(value)}" for name, value in logs.items())]), file=sys.stderr
        )


class ProgressBar(Progress):
    """Shows tqdm's bar, redrawn at intervals."""

    def __init__(self, tqdm: Any) -> None:
        self.tqdm, self.steps = tqdm, 0
        self.began = self.drawn = self.last_step = perf_counter()  # validation does not count as time of steps

    def __exit__(self, *_: object) -> None:
        self.tqdm.close()

    def step(self, loss: float, metrics: Mapping[str, float]) -> None:
        self.steps += 1
        self.last_step = now = perf_counter()
        if now - self.drawn >= REDRAW_SECONDS:
            self.drawn = now
            self._draw({"loss": loss, **metrics})

    def close(self, logs: Mapping[str, float]) -> None:
        self._draw(logs)
        self.tqdm.close()

    def _draw(self, numbers: Mapping[str, float]) -> None:
        parts = [_format_time_per_step(self.last_step - self.began, self.steps)]
        parts += [f"{name}={_format_number(value)}" for name, value in numbers.items()]
        self.tqdm.set_postfix_str(", ".join(parts), refresh=False)
        self.tqdm.n = self.steps
        self.tqdm.refresh()


def make_progress(steps: int | None, epoch: int, epochs: int, verbose: int | str = "auto") -> Progress:
    """Return what shows the steps of an epoch; ``steps`` is ``None`` if their number is not known.

    ``verbose`` is ``"auto"`` (a bar in a terminal or notebook, else nothing), 0 (nothing), 1 (a bar, or a line for each
    epoch where there is no terminal) or 2 (a line for each epoch).  Without tqdm there are no bars.

    >>> with make_progress(100, 0, 5, verbose=0) as shown:
    ...     shown.step(0.5, {})
    ...     shown.close({"loss": 0.5})
    """
    if verbose not in ("auto", 0, 1, 2):
        raise ArgumentError(f'fit: verbose must be "auto", 0, 1 or 2, got {verbose!r}.')
    title = f"Epoch {epoch + 1}/{epochs}"
    if verbose == 2:
        return EpochLine(title)
    tqdm = _import_tqdm() if verbose else None
    if tqdm is not None:
        made = tqdm(
            total=steps,
            desc=title,
            disable=None,  # off where there is no terminal; notebooks show it
            dynamic_ncols=True,
            bar_format=COUNTER_FORMAT if steps is None else BAR_FORMAT,
        )
        if not made.disable:
            if min(made.ncols or 1, made.nrows or 1) < 1:  # a terminal of unknown size
                made.ncols, made.nrows, made.dynamic_ncols = *FALLBACK_SIZE, None
            return ProgressBar(made)
    return EpochLine(title) if verbose == 1 else Progress()


@cache
def _import_tqdm() -> Any:
    """Return tqdm for terminals and notebooks; None where it is not installed."""
    try:
        import tqdm.auto
    except ImportError:
        return None
    return tqdm.auto.tqdm


def _format_number(value: float) -> str:
    return f"{float(value):.4g}"


def _format_time_per_step(seconds: float, steps: int) -> str:
    each = seconds / max(steps, 1)
    return (
        f"{each:.2f} s/step"
        if each >= 1
        else f"{each * 1e3:.1f} ms/step"
        if each >= 1e-3
        else f"{each * 1e6:.0f} µs/step"
    )
