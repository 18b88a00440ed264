"""The stages that a dataset goes through.  Each can begin in any epoch at any element: that is all resuming needs."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

import numpy as np

from pullback.core.convert import as_array
from pullback.core.tree import mapped, replaced
from pullback.errors import ArgumentError, DataError, ShapeError

FOREVER = 2**32  # more than the epochs that an endless repetition comes to
NUMBERS = {bool, int, float}


@dataclass(frozen=True)
class Rows:
    """Elements that can be had in any order: which ones, one of them, many of them as one block."""

    order: Any  # a range or an array of indices
    at: Callable[[int], Any]
    block: Callable[[Any], Any]


@dataclass(frozen=True)
class Stage:
    """What all stages can do.  Those with rows need say no more; streams say how their elements come."""

    def rows(self, epoch: int) -> Rows | None:
        """Access in any order; None for a stream."""
        return None

    def length(self) -> int | float | None:
        """How many elements an epoch has; None if nobody knows, infinite if it has no end."""
        rows = self.rows(0)
        return None if rows is None else len(rows.order)

    def elements(self, epoch: int, start: int) -> Iterator[Any]:
        """The elements of an epoch from number ``start`` on."""
        rows = self.rows(epoch)
        return self._stream(epoch, start) if rows is None else map(rows.at, rows.order[start:])

    def blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        """The same with ``size`` elements in one; only the last block may be smaller."""
        rows = self.rows(epoch)
        if rows is None:
            return self._stream_blocks(epoch, start, size)
        return (rows.block(rows.order[i : i + size]) for i in range(start, len(rows.order), size))

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        """The elements of what has no rows."""
        raise NotImplementedError

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        """The blocks of what has no rows."""
        elements = self._stream(epoch, start)
        while group := list(islice(elements, size)):
            yield stacked(group)

    def seeds(self) -> list[int]:
        """The seeds of all that is left to chance, from the source on."""
        return []

    def reseeded(self, seeds: list[int]) -> Stage:
        """The same with other seeds."""
        return self


@dataclass(frozen=True)
class Later(Stage):
    """A stage after another one."""

    source: Stage

    def length(self) -> int | float | None:
        return self.source.length()

    def seeds(self) -> list[int]:
        return self.source.seeds()

    def reseeded(self, seeds: list[int]) -> Stage:
        return replace(self, source=self.source.reseeded(seeds))


# ---- sources


class Arrays(Stage):
    """Trees of arrays of equal length; an element is one row of each."""

    def __init__(self, tree: Any) -> None:
        object.__setattr__(self, "tree", mapped(self._taken, tree, whole=is_plain_list))
        lengths = {len(x) for x in flat(self.tree)}
        if not lengths:
            raise DataError(f"from_arrays: expected arrays or a tree of arrays, got {tree!r}.")
        if len(lengths) > 1:
            shapes = ", ".join(str(x.shape) for x in flat(self.tree))
            raise ShapeError(f"from_arrays: the arrays must have the same number of rows, got shapes {shapes}.")
        object.__setattr__(self, "size", lengths.pop())

    tree: Any
    size: int

    @staticmethod
    def _taken(x: Any) -> Any:
        made = as_leaf(x, "from_arrays")
        if not made.ndim:
            raise ShapeError(f"from_arrays: expected arrays with rows, got a single number: {x!r}.")
        seen = made.view()
        seen.flags.writeable = False  # a batch in order is a part of the user's own array
        return seen

    def __repr__(self) -> str:
        return f"{self.size} rows"

    def rows(self, epoch: int) -> Rows:
        return Rows(range(self.size), self._at, self._block)

    def _at(self, i: int) -> Any:
        return mapped(lambda x: x[i], self.tree)

    def _block(self, indices: Any) -> Any:
        if isinstance(indices, range):  # in order, so that nothing need be copied
            return mapped(lambda x: x[indices.start : indices.stop], self.tree)
        return mapped(lambda x: x.take(indices, axis=0), self.tree)


@dataclass(frozen=True)
class Generated(Stage):
    """What a function's iterator gives; the function is called for every epoch."""

    function: Callable[[], Iterable[Any]]

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", "generator")

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        made = self.function()
        if not isinstance(made, Iterable):
            raise ArgumentError(
                f"from_generator: {self!r}() must return an iterator, got {type(made).__name__}. Write yield in it."
            )
        return islice(made, start, None)


# ---- in another order, in groups, changed


@dataclass(frozen=True)
class Shuffled(Later):
    """In an order that the seed and the epoch decide; a stream is mixed within a buffer."""

    buffer: int | None
    seed: int
    reshuffle: bool

    def __repr__(self) -> str:
        return f"{self.source!r} > shuffle"

    def _chance(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, epoch if self.reshuffle else 0])

    def rows(self, epoch: int) -> Rows | None:
        rows = self.source.rows(epoch)
        if rows is None:
            return None
        return replace(rows, order=self._chance(epoch).permutation(np.asarray(rows.order, dtype=np.intp)))

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return islice(self._mixed(epoch), start, None)

    def _mixed(self, epoch: int) -> Iterator[Any]:
        chance = self._chance(epoch)
        source = self.source.elements(epoch, 0)
        held = list(islice(source, self.buffer))
        for element in source:
            i = int(chance.integers(len(held)))
            chosen, held[i] = held[i], element
            yield chosen
        for i in chance.permutation(len(held)):
            yield held[i]

    def seeds(self) -> list[int]:
        return [*self.source.seeds(), self.seed]

    def reseeded(self, seeds: list[int]) -> Stage:
        return replace(self, source=self.source.reseeded(seeds[:-1]), seed=seeds[-1])


@dataclass(frozen=True)
class Batches(Later):
    """Groups of elements, stacked along a new first axis."""

    size: int
    drop: bool

    def __repr__(self) -> str:
        return f"{self.source!r} > batch({self.size})"

    def _number(self, n: int) -> int:
        return n // self.size if self.drop else -(-n // self.size)

    def rows(self, epoch: int) -> Rows | None:
        rows = self.source.rows(epoch)
        if rows is None:
            return None

        def at(i: int) -> Any:
            return rows.block(rows.order[i * self.size : (i + 1) * self.size])

        return Rows(range(self._number(len(rows.order))), at, lambda which: stacked([at(i) for i in which]))

    def length(self) -> int | float | None:
        n = self.source.length()
        return self._number(n) if isinstance(n, int) else n

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        for block in self.source.blocks(epoch, start * self.size, self.size):
            if not self.drop or len(flat(block)[0]) == self.size:
                yield block


@dataclass(frozen=True)
class Mapped(Later):
    """A function of each element; a tuple gives the function more arguments."""

    function: Callable[..., Any]

    def __repr__(self) -> str:
        return f"{self.source!r} > map"

    def _of(self, element: Any) -> Any:
        return self.function(*element) if isinstance(element, tuple) else self.function(element)

    def rows(self, epoch: int) -> Rows | None:
        rows = self.source.rows(epoch)
        if rows is None:
            return None

        def at(i: int) -> Any:
            return self._of(rows.at(i))

        return Rows(rows.order, at, lambda which: stacked([at(i) for i in which]))

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return map(self._of, self.source.elements(epoch, start))


# ---- a part, or several times


@dataclass(frozen=True)
class Taken(Later):
    """The first elements, up to a number of them."""

    count: int

    def __repr__(self) -> str:
        return f"{self.source!r} > take({self.count})"

    def rows(self, epoch: int) -> Rows | None:
        rows = self.source.rows(epoch)
        return None if rows is None else replace(rows, order=rows.order[: self.count])

    def length(self) -> int | float | None:
        n = self.source.length()
        return None if n is None else min(n, self.count)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return islice(self.source.elements(epoch, start), max(0, self.count - start))

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        left = self.count - start
        blocks = self.source.blocks(epoch, start, size)
        while left > 0 and (block := next(blocks, None)) is not None:
            yield mapped(lambda x, n=left: x[:n], block)
            left -= size


@dataclass(frozen=True)
class Skipped(Later):
    """All but the first elements."""

    count: int

    def __repr__(self) -> str:
        return f"{self.source!r} > skip({self.count})"

    def rows(self, epoch: int) -> Rows | None:
        rows = self.source.rows(epoch)
        return None if rows is None else replace(rows, order=rows.order[self.count :])

    def length(self) -> int | float | None:
        n = self.source.length()
        return None if n is None else max(0, n - self.count)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return self.source.elements(epoch, start + self.count)

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        return self.source.blocks(epoch, start + self.count, size)


@dataclass(frozen=True)
class Repeated(Later):
    """Several epochs of the source as one; without a number, for ever."""

    count: int | None

    def __repr__(self) -> str:
        return f"{self.source!r} > repeat({'' if self.count is None else self.count})"

    def length(self) -> int | float | None:
        n = self.source.length()
        if n == 0 or self.count == 0:
            return 0
        if self.count is None:
            return np.inf
        return None if n is None else n * self.count

    def _epochs(self, epoch: int, start: int, begin: Callable[[int, int], Iterator[Any]]) -> Iterator[Any]:
        """The source's epochs, from where ``start`` falls if one can count that far, else from the first."""
        n = self.source.length()
        first, start = divmod(start, n) if isinstance(n, int) and n else (0, start)
        base = epoch * (FOREVER if self.count is None else self.count)
        for i in count(first) if self.count is None else range(first, self.count):
            seen = 0
            source = begin(base + i, start if isinstance(n, int) else 0)
            for seen, element in enumerate(source, 1):  # noqa: B007
                yield element
            if not seen and not start:
                return  # an empty source, of which for ever is never
            start = 0

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        given = self._epochs(epoch, start, self.source.elements)
        return given if isinstance(self.source.length(), int) else islice(given, start, None)

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        if not isinstance(self.source.length(), int):
            return super()._stream_blocks(epoch, start, size)
        return regrouped(self._epochs(epoch, start, lambda e, s: self.source.blocks(e, s, size)), size)


# ---- ahead of time


@dataclass(frozen=True)
class Ahead(Later):
    """The next elements are made in a thread while the present one is used."""

    size: int

    def __repr__(self) -> str:
        return f"{self.source!r} > prefetch({self.size})"

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return _ahead(lambda: self.source.elements(epoch, start), self.size)

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        return _ahead(lambda: self.source.blocks(epoch, start, size), self.size)


def _ahead(begin: Callable[[], Iterator[Any]], size: int) -> Iterator[Any]:
    """What the iterator gives, made in a thread that ends with this generator."""
    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(size)
    stop = threading.Event()

    def produce() -> None:
        try:
            for element in begin():
                ready.put((True, element))
                if stop.is_set():
                    return
            ready.put((False, None))
        except BaseException as error:
            ready.put((False, error))

    # The same settings as the reader's, such as the default dtype.
    thread = threading.Thread(target=copy_context().run, args=(produce,), name="pullback-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            good, element = ready.get()
            if good:
                yield element
            elif element is None:
                return
            else:
                raise element
    finally:
        stop.set()
        while not ready.empty():  # a producer that waits for room goes on, and sees that it should stop
            ready.get_nowait()
        if not sys.is_finalizing():  # at the end of the process the thread does not run any more
            thread.join()


# ---- trees of elements


def is_plain_list(tree: Any) -> bool:
    """Whether a part of an element is a list of nothing but Python's own numbers, and so one array."""
    return type(tree) is list and bool(tree) and all(type(x) in NUMBERS or is_plain_list(x) for x in tree)


def flat(tree: Any) -> list[Any]:
    """The leaves; a list of numbers is one leaf."""
    found: list[Any] = []
    mapped(found.append, tree, whole=is_plain_list)
    return found


def as_leaf(x: Any, what: str) -> Any:
    """An array of what was given: Python's floats get the default dtype, integers and bools stay what they are."""
    if isinstance(x, str):
        return np.asarray(x)
    made = as_array(x, what=what)
    if type(x) in NUMBERS or type(x) is list:
        its_own = np.asarray(x)
        return its_own if its_own.dtype.kind in "iub" else made
    return made


def stacked(elements: list[Any]) -> Any:
    """One block of many elements: each leaf with a new first axis."""
    columns = [flat(element) for element in elements]
    first = columns[0]
    for i, column in enumerate(columns):
        if len(column) != len(first):
            raise DataError(
                f"batch: element {i} has {len(column)} parts, element 0 has {len(first)}. "
                "All elements must have the same structure."
            )
    made = []
    for part in zip(*columns, strict=True):
        arrays = [as_leaf(x, "batch") for x in part]
        for i, x in enumerate(arrays):
            if x.shape != arrays[0].shape:
                raise ShapeError(
                    f"batch: element {i} of a batch has shape {x.shape}, element 0 has shape {arrays[0].shape}. "
                    "Elements of a batch are stacked: bring them to one shape with map first."
                )
        made.append(np.stack(arrays))
    whole = mapped(lambda _: 0, elements[0], whole=is_plain_list)
    return replaced(whole, made)


def regrouped(blocks: Iterator[Any], size: int) -> Iterator[Any]:
    """Blocks of any lengths as blocks of one length; only the last may be smaller."""
    held: list[Any] = []
    number = 0
    for block in blocks:
        held.append(block)
        number += len(flat(block)[0])
        while number >= size:
            whole = held[0] if len(held) == 1 else _joined(held)
            yield mapped(lambda x: x[:size], whole)
            held = [mapped(lambda x: x[size:], whole)]
            number -= size
    if number:
        yield _joined(held)


def _joined(blocks: list[Any]) -> Any:
    return mapped(lambda *parts: np.concatenate(parts), *blocks)
