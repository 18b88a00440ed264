"""The result of ``fit``: the numbers of each epoch, and a plot of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.display.axes import get_axes
from pullback.display.html import render_frame, render_table
from pullback.display.pictures import draw_curves
from pullback.display.text import align_columns
from pullback.errors import DataError
from pullback.names.answers import list_attributes


@dataclass(repr=False)
class History:
    """What ``fit`` returns: the numbers of each epoch by name, as in ``history.history["val_loss"]``.

    >>> history = History()
    >>> history.add(0, {"loss": 0.5, "val_loss": 0.75})
    >>> history.add(1, {"loss": 0.25, "val_loss": 0.5})
    >>> history.history
    {'loss': [0.5, 0.25], 'val_loss': [0.75, 0.5]}
    >>> history
    History(2 epochs, 0 steps, 0.0 s; loss 0.5 → 0.25, val_loss 0.75 → 0.5)
    """

    epochs: list[int] = field(default_factory=list)
    history: dict[str, list[Any]] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)  # the epochs of each of these numbers
    steps: int = 0
    seconds: float = 0.0
    stopped: str | None = None  # why training was stopped before the last epoch, if it was
    params: dict[str, Any] = field(default_factory=dict)  # epochs, steps of an epoch, verbose

    __dir__ = list_attributes

    def add(self, epoch: int, logs: Mapping[str, Any]) -> None:
        """Add the numbers of one more epoch; ``places`` has the epochs of each, as not every epoch is validated."""
        self.epochs.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value if np.ndim(value) else float(value))
            self.places.setdefault(name, []).append(epoch)

    @property
    def epoch(self) -> list[int]:
        """The numbers of the epochs, as Keras and TensorFlow.js name them."""
        return self.epochs

    def __repr__(self) -> str:
        count = f"{len(self.epochs)} epoch{'s' * (len(self.epochs) != 1)}"
        numbers = ", ".join(f"{name} {_format_span(values)}" for name, values in self.history.items())
        parts = [f"{count}, {self.steps} steps, {self.seconds:.1f} s", numbers]
        parts.append(f"stopped: {self.stopped}" if self.stopped else "")
        return f"History({'; '.join(filter(None, parts))})"

    def __str__(self) -> str:
        """Return a table with a row for each epoch.

        >>> history = History()
        >>> history.add(0, {"loss": 0.5, "val_loss": 0.75})
        >>> history.add(1, {"loss": 0.25})
        >>> print(history)
        epoch  loss  val_loss
            1   0.5      0.75
            2  0.25         -
        """
        columns = {"epoch": [str(epoch + 1) for epoch in self.epochs]}
        for name, values in self.history.items():
            cells = dict(zip(self.places[name], (f"{float(np.mean(v)):.4g}" for v in values), strict=True))
            columns[name] = [cells.get(epoch, "-") for epoch in self.epochs]
        rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
        lines = align_columns(rows, right=range(len(columns)))
        return "\n".join([*lines, *([f"stopped: {self.stopped}"] if self.stopped else [])])

    def _repr_html_(self) -> str:
        facts = [f"{len(self.epochs)} epochs", f"{self.steps} steps", f"{self.seconds:.1f} s", self.stopped or ""]
        numbered = {name: [float(np.mean(value)) for value in values] for name, values in self.history.items()}
        dashed = [name for name in numbered if name.startswith("val_")]
        curves: dict[str, dict[float, float]] = {
            name: {epoch + 1: value for epoch, value in zip(self.places[name], values, strict=True)}
            for name, values in numbered.items()
        }
        losses = {name: curve for name, curve in curves.items() if name in ("loss", "val_loss")}
        others = {name: curve for name, curve in curves.items() if name not in losses}
        last = [(name, f"{values[0]:.4g}", f"{values[-1]:.4g}") for name, values in numbered.items() if values]
        numbers = render_table(["", "first", "last"], last, right=[1, 2])
        pictures = [draw_curves(its, "epoch", dashed) for its in (losses, others) if its]
        return render_frame("History", filter(None, facts), *pictures, numbers)

    def _list_curves(self) -> list[str]:
        """Return the names to plot: each number once, and those that only the validation has."""
        names = [name for name in self.history if not name.startswith("val_")]
        return names + [name for name in self.history if name.startswith("val_") and name[4:] not in names]

    def plot(self, ax: Any = None) -> Any:
        """Plot every number over the epochs, those of the validation dashed; return matplotlib's axes.

        Losses use the left axis, metrics the right one.  Needs matplotlib: extra ``plot``.
        """
        if not self.epochs:
            raise DataError("history.plot: there is no epoch to draw yet.")
        ax = get_axes("history.plot", ax)
        names = self._list_curves()
        metrics = [name for name in names if name not in ("loss", "val_loss")]
        right = ax.twinx() if metrics and len(metrics) < len(names) else ax
        lines = []
        for number, name in enumerate(names):
            on = right if name in metrics else ax
            colour = f"C{number % 10}"
            for key, style in ((name, "-"), (f"val_{name}", "--")):
                if key in self.history:
                    epochs = [epoch + 1 for epoch in self.places[key]]
                    lines += on.plot(epochs, self.history[key], style, color=colour, label=key)
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylabel("loss" if right is not ax else ", ".join(names))
        if right is not ax:
            right.set_ylabel(", ".join(metrics))
        ax.legend(handles=lines, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
        return ax


def _format_span(values: list[Any]) -> str:
    means = [float(np.mean(value)) for value in values]
    return f"{means[0]:.4g}" if len(means) == 1 else f"{means[0]:.4g} → {means[-1]:.4g}"
