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
    is_filter_gradient: bool = False  # the gradient of the filter, from images and the gradient of the result
    is_depthwise: bool = False  # each channel has a filter of its own
    placement: Placement | None = None  # the places of the results, if they are not contiguous
    panel: int = 0  # columns of a panel, if the filter is stored panel by panel

    @property
    def work(self) -> int:
        """The number of multiplications."""
        taps = prod(self.windows.size) * (1 if self.is_depthwise else self.channels)
        return self.images * prod(self.windows.out) * taps * self.depth

    @property
    def result_shape(self) -> tuple[int, ...]:
        if self.is_filter_gradient:
            return *self.windows.size, self.channels, 1 if self.is_depthwise else self.depth
        return self.images, *(self.placement.space if self.placement else self.windows.out), self.depth

    @property
    def description(self) -> str:
        """One line about it, for the text of a program."""
        name = "filters" if self.is_filter_gradient else "convolution"
        channels = " of each channel" if self.is_depthwise else ""
        size = [*self.windows.size, self.channels, self.depth]
        return f"{name}{channels} {[self.images, *self.space, self.channels]} by {size} at {list(self.windows.out)}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        """The functions that are called one after the other, with their arguments."""
        return [(self, (0, 1))]


class Winograd(NamedTuple):
    """A convolution with 3 × 3 taps, or the gradient of its filter, by 16 multiplications for each 2 × 2 results.

    The arguments of a convolution are the images, the filter's 16 transformed matrices, and the filter.
    """

    convolution: Convolution

    @property
    def work(self) -> int:
        return self.convolution.work * 4 // 9

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.convolution.result_shape

    @property
    def description(self) -> str:
        return f"{self.convolution.description}, by transformed tiles"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        return [(self, (0, 1) if self.convolution.is_filter_gradient else (0, 1, 2))]


class Interleaved(NamedTuple):
    """Convolutions of one image with different filters, whose results together are the pixels of one image."""

    convolutions: tuple[Convolution, ...]
    writes_all: bool  # every pixel; those that are not written are 0

    @property
    def work(self) -> int:
        return sum(c.work for c in self.convolutions)

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.convolutions[0].result_shape

    @property
    def description(self) -> str:
        return f"{len(self.convolutions)} times {self.convolutions[0].description}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        return [(c, (0, i)) for i, c in enumerate(self.convolutions, 1)]


class Examples(NamedTuple):
    """A convolution, or interleaved ones, for each of several examples, which have filters of their own."""

    each: Convolution | Interleaved
    examples: int

    @property
    def work(self) -> int:
        return self.each.work * self.examples

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.examples, *self.each.result_shape

    @property
    def description(self) -> str:
        return f"{self.examples} times {self.each.description}"

    @property
    def calls(self) -> list[tuple[Any, tuple[int, ...]]]:
        return self.each.calls


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


WindowData = Convolution | Winograd | Interleaved | Examples | Pooling  # of nodes


def count_examples(data: WindowData) -> int:
    """Return the number of examples with filters of their own, for each of which the calls are made."""
    return data.examples if isinstance(data, Examples) else 1


def writes_all(data: WindowData) -> bool:
    """Return whether every pixel of the result is written; those that are not are 0."""
    each = data.each if isinstance(data, Examples) else data
    return not isinstance(each, Interleaved) or each.writes_all
