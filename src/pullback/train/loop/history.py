"""The result of ``fit``: the numbers of each epoch, and a plot of them; the only module that imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pullback.errors import DataError, MissingPackageError

__all__ = ["History"]


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
    history: dict[str, list[float]] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0
    stopped: str | None = None  # why training was stopped before the last epoch, if it was

    def add(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Add the numbers of one more epoch; a name without a number in some epoch is NaN there."""
        for name in logs:
            self.history.setdefault(name, [float("nan")] * len(self.epochs))
        self.epochs.append(epoch)
        for name, values in self.history.items():
            values.append(float(logs.get(name, float("nan"))))

    def __repr__(self) -> str:
        count = f"{len(self.epochs)} epoch{'s' * (len(self.epochs) != 1)}"
        numbers = ", ".join(f"{name} {_format_span(values)}" for name, values in self.history.items())
        parts = [f"{count}, {self.steps} steps, {self.seconds:.1f} s", numbers]
        parts.append(f"stopped: {self.stopped}" if self.stopped else "")
        return f"History({'; '.join(filter(None, parts))})"

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
        if ax is None:
            _, ax = _import_pyplot().subplots()
        names = self._list_curves()
        metrics = [name for name in names if name not in ("loss", "val_loss")]
        right = ax.twinx() if metrics and len(metrics) < len(names) else ax
        epochs = [epoch + 1 for epoch in self.epochs]
        lines = []
        for number, name in enumerate(names):
            on = right if name in metrics else ax
            colour = f"C{number % 10}"
            for key, style in ((name, "-"), (f"val_{name}", "--")):
                if key in self.history:
                    lines += on.plot(epochs, self.history[key], style, color=colour, label=key)
        ax.set_xlabel("epoch")
        ax.set_ylabel("loss" if right is not ax else ", ".join(names))
        if right is not ax:
            right.set_ylabel(", ".join(metrics))
        ax.legend(handles=lines)
        return ax


def _format_span(values: list[float]) -> str:
    return f"{values[0]:.4g}" if len(values) == 1 else f"{values[0]:.4g} → {values[-1]:.4g}"


def _import_pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingPackageError(
            "history.plot needs matplotlib, which is not installed. Install it with: pip install 'pullback[plot]'"
        ) from None
    return plt
