"""Plots of functions: of one variable with derivatives, of two with gradient arrows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.display.axes import get_axes
from pullback.errors import ArgumentError
from pullback.transforms.batch import vmap
from pullback.transforms.grad import grad
from pullback.typing import Array

PRIMES = ("", "′", "″", "‴")


def function(
    f: Callable[..., Any], low: float, high: float, derivatives: int = 1, points: int = 400, ax: Any = None
) -> Any:
    """Plot a function of one number and its derivatives, and return the axes.

    f: takes a number and returns one.
    low: the lower end of the range.
    high: the upper end of the range.
    derivatives: the number of derivatives that are drawn besides the function.
    points: the number of points at which it is computed.
    ax: matplotlib's axes to draw on; without it, those of a new figure.

    >>> import numpy as np, pullback as pb
    >>> ax = pb.plot.function(np.sin, 0.0, 6.28, derivatives=2)
    >>> [line.get_label() for line in ax.get_lines()]
    ['sin', 'sin′', 'sin″']
    """
    if type(derivatives) is not int or derivatives < 0:
        raise ArgumentError(f"plot.function: derivatives must be 0 or more, got {derivatives!r}.")
    ax = get_axes("plot.function", ax)
    x = np.linspace(low, high, points)
    name = getattr(f, "__name__", "f").replace("<lambda>", "f")
    for order in range(derivatives + 1):
        with np.errstate(all="ignore"):
            y = np.asarray(vmap(f)(x), np.float64)
        prime = PRIMES[order] if order < len(PRIMES) else f"⁽{order}⁾"
        ax.plot(x, np.where(np.isfinite(y), y, np.nan), label=f"{name}{prime}")
        f = grad(f, unconnected="zero")
    ax.grid(alpha=0.3)
    ax.legend()
    return ax


def field(
    f: Callable[..., Any],
    x: tuple[float, float],
    y: tuple[float, float],
    path: Sequence[Sequence[float]] | Array | None = None,
    points: int = 80,
    arrows: int = 16,
    ax: Any = None,
) -> Any:
    """Plot contours of a function of two numbers with arrows along its gradient, and return the axes.

    f: takes two numbers and returns one.
    x: the range of the first.
    y: the range of the second.
    path: points that an optimizer went through, as rows of two numbers, which are joined by a line.
    points: along each side, for the contours.
    arrows: along each side.
    ax: matplotlib's axes to draw on; without it, those of a new figure.

    >>> import numpy as np, pullback as pb
    >>> ax = pb.plot.field(lambda x, y: x**2 + 3 * y**2, (-1, 1), (-1, 1), path=[[1, 1], [0.5, 0.2], [0, 0]])
    >>> len(ax.get_lines())
    1
    """
    ax = get_axes("plot.field", ax)
    a, b = np.meshgrid(np.linspace(*x, points), np.linspace(*y, points))
    with np.errstate(all="ignore"):
        z = np.asarray(vmap(f)(a.ravel(), b.ravel()), np.float64).reshape(a.shape)
    ax.contour(a, b, np.where(np.isfinite(z), z, np.nan), levels=20, linewidths=0.8, alpha=0.7)
    p, q = np.meshgrid(np.linspace(*x, arrows), np.linspace(*y, arrows))
    with np.errstate(all="ignore"):
        slopes = vmap(grad(f, argnums=(0, 1), unconnected="zero"))(p.ravel(), q.ravel())
    u, v = (np.where(np.isfinite(d), d, 0.0) for d in map(np.asarray, slopes))
    length = np.hypot(u, v)
    length[length == 0.0] = 1.0
    # of one length: they show the direction
    ax.quiver(p.ravel(), q.ravel(), u / length, v / length, alpha=0.45, width=0.003)
    if path is not None:
        way = np.asarray(path, np.float64)
        if way.ndim != 2 or way.shape[1] != 2:
            raise ArgumentError(f"plot.field: path must be rows of two numbers, got an array of shape {way.shape}.")
        ax.plot(way[:, 0], way[:, 1], "o-", color="crimson", markersize=3, linewidth=1.2)
    ax.set_xlim(*x)
    ax.set_ylim(*y)
    return ax
