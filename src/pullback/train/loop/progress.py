"""How far an epoch is: a bar, a line, or nothing.  This is the one door by which tqdm comes in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from time import perf_counter
from typing import Any

from pullback.errors import ArgumentError

__all__ = ["Bar", "Line", "Progress", "bar"]

SIZE = 100, 24
REDRAWN = 0.1  # seconds from one picture of the bar to the next
KNOWN = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
UNKNOWN = "{desc}: {n_fmt} steps [{elapsed}{postfix}]"  # how many there will be


class Progress:
    """Nothing is shown: what bars and lines are made of."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal in order, whatever happened."""

    def step(self, loss: Any, metrics: Mapping[str, Any]) -> None:
        """One step was made; the numbers are not looked at before they are drawn."""

    def close(self, logs: Mapping[str, Any]) -> None:
        """The epoch is over, with these results."""


class Line(Progress):
    """A line of text for each epoch, when it is over."""

    def __init__(self, title: str) -> None:
        self.title, self.made = title, 0
        self.began = self.stepped = perf_counter()

    def step(self, loss: Any, metrics: Mapping[str, Any]) -> None:
        self.made += 1
        self.stepped = perf_counter()

    def close(self, logs: Mapping[str, Any]) -> None:
        said = [self.title, f"{perf_counter() - self.began:.1f} s", _each(self.stepped - self.began, self.made)]
        print(" - ".join([*said, *(f"{name}: {_short(value)}" for name, value in logs.items())]), file=sys.stderr)


class Bar(Progress):
    """Tqdm's bar, drawn now and then."""

    def __init__(self, tqdm: Any) -> None:
        self.tqdm, self.made = tqdm, 0
        self.began = self.drawn = self.stepped = perf_counter()  # validation is no part of a step's time

    def __exit__(self, *_: object) -> None:
        self.tqdm.close()

    def step(self, loss: Any, metrics: Mapping[str, Any]) -> None:
        self.made += 1
        self.stepped = now = perf_counter()
        if now - self.drawn >= REDRAWN:
            self.drawn = now
            self._draw({"loss": loss, **metrics})

    def close(self, logs: Mapping[str, Any]) -> None:
        self._draw(logs)
        self.tqdm.close()

    def _draw(self, numbers: Mapping[str, Any]) -> None:
        said = [_each(self.stepped - self.began, self.made)]
        said += [f"{name}={_short(value)}" for name, value in numbers.items()]
        self.tqdm.set_postfix_str(", ".join(said), refresh=False)
        self.tqdm.n = self.made
        self.tqdm.refresh()


def bar(steps: int | None, epoch: int, epochs: int, verbose: Any = "auto") -> Progress:
    """What shows the steps of an epoch; ``steps`` is ``None`` if nobody knows how many there will be.

    ``verbose`` is ``"auto"`` (a bar, if there is a terminal or notebook to show it), 0 (nothing), 1 (a bar, or a line
    for each epoch where there is no terminal) or 2 (a line for each epoch).  Without tqdm there are no bars.

    >>> with bar(100, 0, 5, verbose=0) as shown:
    ...     shown.step(0.5, {})
    ...     shown.close({"loss": 0.5})
    """
    if verbose not in ("auto", 0, 1, 2):
        raise ArgumentError(f'fit: verbose must be "auto", 0, 1 or 2, got {verbose!r}.')
    title = f"Epoch {epoch + 1}/{epochs}"
    if verbose == 2:
        return Line(title)
    tqdm = _door() if verbose else None
    if tqdm is not None:
        made = tqdm(
            total=steps,
            desc=title,
            disable=None,  # where there is no terminal; notebooks show it
            dynamic_ncols=True,
            bar_format=UNKNOWN if steps is None else KNOWN,
        )
        if not made.disable:
            if min(made.ncols or 1, made.nrows or 1) < 1:  # a terminal that does not say how big it is
                made.ncols, made.nrows, made.dynamic_ncols = *SIZE, None
            return Bar(made)
    return Line(title) if verbose == 1 else Progress()


@cache
def _door() -> Any:
    """Tqdm, for terminals and notebooks; None where it is not installed."""
    try:
        import tqdm.auto
    except ImportError:
        return None
    return tqdm.auto.tqdm


def _short(value: Any) -> str:
    return f"{float(value):.4g}"


def _each(seconds: float, steps: int) -> str:
    each = seconds / max(steps, 1)
    return (
        f"{each:.2f} s/step"
        if each >= 1
        else f"{each * 1e3:.1f} ms/step"
        if each >= 1e-3
        else f"{each * 1e6:.0f} µs/step"
    )
