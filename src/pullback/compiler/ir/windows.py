"""Convolutions and pooling as data of nodes: everything that their code depends on, but for the target."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from pullback.numerics.windows import Windows

__all__ = ["Convolution", "Examples", "Interleaved", "Placement", "Pooling"]


class Placement(NamedTuple):
    """Results that are some of the pixels of an image."""

    space: tuple[int, ...]
    first: tuple[int, ...]
    steps: tuple[int, ...]


class Convolution(NamedTuple):
    """Everything that the code of a convolution depends on, but for the target."""

    dtype: str
    images: int
    space: tuple[int, ...]
    channels: int
    depth: int  # elements of the result side by side
    windows: Windows
    of_filter: bool = False  # the gradient of the filter, from images and the gradient of the result
    apart: bool = False  # each channel has a filter of its own
    laid: Placement | None = None  # where the results lie, if not one after the other
    panel: int = 0  # columns of the filter that lie by themselves, panel after panel

    @property
    def work(self) -> int:
        """The number of multiplications."""
        taps = prod(self.windows.size) * (1 if self.apart else self.channels)
        return self.images * prod(self.windows.out) * taps * self.depth

    @property
    def description(self) -> str:
        """One line about it, for the text of a program."""
        what = ("filters" if self.of_filter else "convolution") + (" of each channel" if self.apart else "")
        size = [*self.windows.size, self.channels, self.depth]
        return f"{what} {[self.images, *self.space, self.channels]} by {size} at {list(self.windows.out)}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        """What is called one after the other, and with which arguments."""
        return [(self, (0, 1))]


class Interleaved(NamedTuple):
    """Convolutions of one image with different filters, whose results are the pixels of one image together."""

    of: tuple[Convolution, ...]
    all: bool  # none is left out: those that are would be 0

    @property
    def work(self) -> int:
        return sum(c.work for c in self.of)

    @property
    def description(self) -> str:
        return f"{len(self.of)} times {self.of[0].description}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        return [(c, (0, i)) for i, c in enumerate(self.of, 1)]


class Examples(NamedTuple):
    """The same for many images, or batches of them, each with a filter of its own."""

    of: Convolution | Interleaved
    examples: int

    @property
    def work(self) -> int:
        return self.of.work * self.examples

    @property
    def description(self) -> str:
        return f"{self.examples} times {self.of.description}"

    @property
    def all(self) -> bool:
        return isinstance(self.of, Convolution) or self.of.all

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        return self.of.calls


class Pooling(NamedTuple):
    """Everything that the code of a pooling op depends on, but for the target."""

    symbol: str  # largest, sums, spread, give, take: as the ops call it
    dtype: str
    images: int
    space: tuple[int, ...]
    channels: int
    windows: Windows

    @property
    def work(self) -> int:
        """About how many elements are looked at."""
        return 2 * self.images * prod(self.windows.out) * prod(self.windows.size) * self.channels

    @property
    def description(self) -> str:
        """One line about it, for the text of a program."""
        shape = [self.images, *self.space, self.channels]
        return f"{self.symbol} {shape} by {list(self.windows.size)} at {list(self.windows.out)}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        """What is called, and with which arguments."""
        return [(self, (0, 1, 2) if self.symbol in ("give", "take") else (0,))]
