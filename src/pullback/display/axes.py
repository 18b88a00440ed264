"""The one module that imports matplotlib: axes to draw on."""

from __future__ import annotations

from typing import Any

from pullback.names.packages import import_package


def _import_pyplot(subject: str) -> Any:
    return import_package("matplotlib.pyplot", f"{subject} needs matplotlib", "pullback[plot]")


def get_axes(subject: str, ax: Any) -> Any:
    """Return the axes that were given, or those of a new figure."""
    return _import_pyplot(subject).subplots(layout="constrained")[1] if ax is None else ax


def make_grid(subject: str, count: int, columns: int) -> list[Any]:
    """Return that many axes without ticks, in rows, of a new figure."""
    rows = -(-count // columns)
    size = (1.1 * columns, 1.1 * rows)
    _, grid = _import_pyplot(subject).subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for ax in grid.flat:
        ax.axis("off")
    return list(grid.flat[:count])
