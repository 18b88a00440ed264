"""Convolutions and pooling as data of nodes: everything that their code depends on except the target."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from pullback.numerics.windows import Windows


class Placement(NamedTuple):
    """Results that are some of the pixels of an image."""

    space: tuple[int, ...]
    first: tuple[int, ...]
    steps: tuple[int, ...]


class Convolution(NamedTuple):
    """Everything that the code of a convolution depends on except the target."""

    dtype: str
    images: int
    space: tuple[int, ...]
    channels: int
    depth: int  # channels of the result, which are contiguous
    windows: Windows
    of_filter: bool = False  # the gradient of the filter, from images and the gradient of the result
    is_depthwise: bool = False  # each channel has a filter of its own
    laid: Placement | None = None  # the places of the results, if they are not contiguous
    panel: int = 0  # columns of a panel, if the filter is stored panel by panel

    @property
    def work(self) -> int:
        """The number of multiplications."""
        taps = prod(self.windows.size) * (1 if self.is_depthwise else self.channels)
        return self.images * prod(self.windows.out) * taps * self.depth

    @property
    def result_shape(self) -> tuple[int, ...]:
        if self.of_filter:
            return *self.windows.size, self.channels, 1 if self.is_depthwise else self.depth
        return self.images, *(self.laid.space if self.laid else self.windows.out), self.depth

    @property
    def description(self) -> str:
        """One line about it, for the text of a program."""
        what = ("filters" if self.of_filter else "convolution") + (" of each channel" if self.is_depthwise else "")
        size = [*self.windows.size, self.channels, self.depth]
        return f"{what} {[self.images, *self.space, self.channels]} by {size} at {list(self.windows.out)}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        """The functions that are called one after the other, with their arguments."""
        return [(self, (0, 1))]


class Winograd(NamedTuple):
    """A convolution with 3 × 3 taps, or the gradient of its filter, by 16 multiplications for each 2 × 2 results.

    The arguments of a convolution are the images, the filter's 16 transformed matrices, and the filter.
    """

    of: Convolution

    @property
    def work(self) -> int:
        return self.of.work * 4 // 9

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.of.result_shape

    @property
    def description(self) -> str:
        return f"{self.of.description}, by transformed tiles"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        return [(self, (0, 1) if self.of.of_filter else (0, 1, 2))]


class Interleaved(NamedTuple):
    """Convolutions of one image with different filters, whose results together are the pixels of one image."""

    of: tuple[Convolution, ...]
    all: bool  # whether every pixel is written; those that are not are 0

    @property
    def work(self) -> int:
        return sum(c.work for c in self.of)

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.of[0].result_shape

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
    def result_shape(self) -> tuple[int, ...]:
        return self.examples, *self.of.result_shape

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
    """Everything that the code of a pooling op depends on except the target."""

    symbol: str  # the name in the op's lowering: largest, sums, spread, give or take
    dtype: str
    images: int
    space: tuple[int, ...]
    channels: int
    windows: Windows

    @property
    def work(self) -> int:
        """The approximate number of elements that are read."""
        return 2 * self.images * prod(self.windows.out) * prod(self.windows.size) * self.channels

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.images, *(self.space if self.symbol in ("give", "spread") else self.windows.out), self.channels

    @property
    def description(self) -> str:
        """One line about it, for the text of a program."""
        shape = [self.images, *self.space, self.channels]
        return f"{self.symbol} {shape} by {list(self.windows.size)} at {list(self.windows.out)}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        """The function that is called, with its arguments."""
        return [(self, (0, 1, 2) if self.symbol in ("give", "take") else (0,))]
