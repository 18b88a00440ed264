"""The stages of a dataset's pipeline; each can start at any element of any epoch, which is what resuming needs."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, ClassVar

import numpy as np

from pullback.core.convert import as_array
from pullback.core.tree import make_builder, map_leaves, replace_leaves
from pullback.errors import ArgumentError, DataError, ShapeError
from pullback.train.data.mapped import MappedPages
from pullback.typing import Array, TensorLike, Tree

ENDLESS = 2**32  # epochs that an endless repetition reserves; it never gets through them
NUMBERS = {bool, int, float}


@dataclass(frozen=True)
class RowAccess:
    """Random access to elements: their order, a function that gets one, and a function that gets many as one block."""

    order: Any  # a range or an array of indices
    at: Callable[[int], Any]
    block: Callable[[Any], Any]


def stack_rows(order: Any, at: Callable[[int], Any]) -> RowAccess:
    """Return random access whose blocks are elements that are got one by one and stacked."""
    return RowAccess(order, at, lambda indices: stack_elements([at(i) for i in indices]))


@dataclass(frozen=True)
class Stage:
    """The base of all stages.  One with random access defines ``access_rows``; a stream defines ``_stream``."""

    def access_rows(self, epoch: int) -> RowAccess | None:
        """Return random access to the elements of an epoch; None for a stream."""
        return None

    def find_length(self) -> int | float | None:
        """Return how many elements an epoch has; None if that is not known, infinity if it does not end."""
        rows = self.access_rows(0)
        return None if rows is None else len(rows.order)

    def iterate_elements(self, epoch: int, start: int) -> Iterator[Any]:
        """Return the elements of an epoch from index ``start``."""
        rows = self.access_rows(epoch)
        return self._stream(epoch, start) if rows is None else map(rows.at, rows.order[start:])

    def iterate_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        """Return the elements of an epoch in blocks of ``size``; only the last block may be smaller."""
        rows = self.access_rows(epoch)
        if rows is None:
            return self._stream_blocks(epoch, start, size)
        return (rows.block(rows.order[i : i + size]) for i in range(start, len(rows.order), size))

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        """Return the elements of a stream."""
        raise NotImplementedError

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        """Return the blocks of a stream."""
        elements = self._stream(epoch, start)
        while group := list(islice(elements, size)):
            yield stack_elements(group)

    def list_seeds(self) -> list[int]:
        """Return the seeds of all shuffles, from the source on."""
        return []

    def replace_seeds(self, seeds: list[int]) -> Stage:
        """Return the same stage with other seeds."""
        return self


@dataclass(frozen=True)
class DerivedStage(Stage):
    """A stage that changes the elements of another one."""

    source: Stage

    label: ClassVar[str]  # how it is shown, with fields in braces

    def __repr__(self) -> str:
        return f"{self.source!r} > {self.label.format(**vars(self))}"

    def find_length(self) -> int | float | None:
        return self.source.find_length()

    def list_seeds(self) -> list[int]:
        return self.source.list_seeds()

    def replace_seeds(self, seeds: list[int]) -> Stage:
        return replace(self, source=self.source.replace_seeds(seeds))


# ---- sources


class ArraySource(Stage):
    """A tree of arrays of equal length; an element is one row of each."""

    def __init__(self, tree: Tree) -> None:
        object.__setattr__(self, "tree", map_leaves(self._as_rows, tree, whole=is_python_number_list))
        lengths = {len(x) for x in flatten(self.tree)}
        if not lengths:
            raise DataError(f"from_arrays: expected arrays or a tree of arrays, got {tree!r}.")
        if len(lengths) > 1:
            shapes = ", ".join(str(x.shape) for x in flatten(self.tree))
            raise ShapeError(f"from_arrays: the arrays must have the same number of rows, got shapes {shapes}.")
        object.__setattr__(self, "size", lengths.pop())
        object.__setattr__(self, "arrays", flatten(self.tree))
        object.__setattr__(self, "build", make_builder(self.tree, lambda x: isinstance(x, np.ndarray)))
        object.__setattr__(self, "pages", MappedPages(self.arrays))

    tree: Any
    arrays: list[Array]
    build: Callable[[Iterator[Any]], Any]  # a tree of rows from its leaves
    size: int
    pages: MappedPages

    @staticmethod
    def _as_rows(x: TensorLike) -> Array:
        array = as_leaf_array(x, "from_arrays")
        if not array.ndim:
            raise ShapeError(f"from_arrays: expected arrays with rows, got a single number: {x!r}.")
        seen = array.view()
        seen.flags.writeable = False  # a batch in order is a view of the user's array
        return seen

    def __repr__(self) -> str:
        return f"{self.size} rows"

    def access_rows(self, epoch: int) -> RowAccess:
        return RowAccess(range(self.size), self._at, self._block)

    def _at(self, i: int) -> Any:
        return map_leaves(lambda x: x[i], self.tree)

    def _block(self, indices: range | Array) -> Any:
        self.pages.note(len(indices))
        if isinstance(indices, range):  # in order: views, no copies
            return self.build(iter([x[indices.start : indices.stop] for x in self.arrays]))
        return self.build(iter([x.take(indices, axis=0) for x in self.arrays]))


@dataclass(frozen=True)
class GeneratorSource(Stage):
    """The elements of the iterator that a function returns; the function is called once for every epoch."""

    function: Callable[[], Iterable[Any]]

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", "generator")

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        elements = self.function()
        if not isinstance(elements, Iterable):
            raise ArgumentError(
                f"from_generator: {self!r}() must return an iterator, got {type(elements).__name__}. Write yield in it."
            )
        return islice(elements, start, None)


# ---- shuffle, batch, map


@dataclass(frozen=True, repr=False)
class Shuffle(DerivedStage):
    """The elements in an order that depends on the seed and the epoch; a stream is shuffled within a buffer."""

    label = "shuffle"
    buffer: int | None
    seed: int
    reshuffle: bool

    def _make_generator(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, epoch if self.reshuffle else 0])

    def access_rows(self, epoch: int) -> RowAccess | None:
        rows = self.source.access_rows(epoch)
        if rows is None:
            return None
        return replace(rows, order=self._make_generator(epoch).permutation(np.asarray(rows.order, dtype=np.intp)))

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return islice(self._shuffle_stream(epoch), start, None)

    def _shuffle_stream(self, epoch: int) -> Iterator[Any]:
        generator = self._make_generator(epoch)
        source = self.source.iterate_elements(epoch, 0)
        buffered = list(islice(source, self.buffer))
        for element in source:
            i = int(generator.integers(len(buffered)))
            chosen, buffered[i] = buffered[i], element
            yield chosen
        for i in generator.permutation(len(buffered)):
            yield buffered[i]

    def list_seeds(self) -> list[int]:
        return [*self.source.list_seeds(), self.seed]

    def replace_seeds(self, seeds: list[int]) -> Stage:
        return replace(self, source=self.source.replace_seeds(seeds[:-1]), seed=seeds[-1])


def count_batches(elements: int, size: int, drops_remainder: bool) -> int:
    """Return how many batches so many elements make.

    >>> count_batches(5, 2, False), count_batches(5, 2, True)
    (3, 2)
    """
    return elements // size if drops_remainder else -(-elements // size)


@dataclass(frozen=True, repr=False)
class BatchStage(DerivedStage):
    """Batches of elements, stacked along a new first axis."""

    label = "batch({size})"
    size: int
    drop: bool

    def access_rows(self, epoch: int) -> RowAccess | None:
        rows = self.source.access_rows(epoch)
        if rows is None:
            return None

        def at(i: int) -> Any:
            return rows.block(rows.order[i * self.size : (i + 1) * self.size])

        return stack_rows(range(count_batches(len(rows.order), self.size, self.drop)), at)

    def find_length(self) -> int | float | None:
        n = self.source.find_length()
        return count_batches(n, self.size, self.drop) if isinstance(n, int) else n

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        for block in self.source.iterate_blocks(epoch, start * self.size, self.size):
            if not self.drop or len(flatten(block)[0]) == self.size:
                yield block


def apply_function(function: Callable[..., Any], element: Any) -> Any:
    """Call a function with an element; the parts of a tuple are its arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


@dataclass(frozen=True, repr=False)
class Map(DerivedStage):
    """A function of each element; the parts of a tuple are its arguments."""

    label = "map"
    function: Callable[..., Any]

    def access_rows(self, epoch: int) -> RowAccess | None:
        rows = self.source.access_rows(epoch)
        if rows is None:
            return None

        def at(i: int) -> Any:
            return apply_function(self.function, rows.at(i))

        return stack_rows(rows.order, at)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return (apply_function(self.function, element) for element in self.source.iterate_elements(epoch, start))


# ---- take, skip, repeat


@dataclass(frozen=True, repr=False)
class Take(DerivedStage):
    """The first ``count`` elements."""

    label = "take({count})"
    count: int

    def access_rows(self, epoch: int) -> RowAccess | None:
        rows = self.source.access_rows(epoch)
        return None if rows is None else replace(rows, order=rows.order[: self.count])

    def find_length(self) -> int | float | None:
        n = self.source.find_length()
        return None if n is None else min(n, self.count)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return islice(self.source.iterate_elements(epoch, start), max(0, self.count - start))

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        left = self.count - start
        blocks = self.source.iterate_blocks(epoch, start, size)
        while left > 0 and (block := next(blocks, None)) is not None:
            yield map_leaves(lambda x, n=left: x[:n], block)
            left -= size


@dataclass(frozen=True, repr=False)
class Skip(DerivedStage):
    """All but the first ``count`` elements."""

    label = "skip({count})"
    count: int

    def access_rows(self, epoch: int) -> RowAccess | None:
        rows = self.source.access_rows(epoch)
        return None if rows is None else replace(rows, order=rows.order[self.count :])

    def find_length(self) -> int | float | None:
        n = self.source.find_length()
        return None if n is None else max(0, n - self.count)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return self.source.iterate_elements(epoch, start + self.count)

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        return self.source.iterate_blocks(epoch, start + self.count, size)


@dataclass(frozen=True)
class Repeat(DerivedStage):
    """``count`` epochs of the source as one; without a count, endlessly many."""

    count: int | None

    def __repr__(self) -> str:
        return f"{self.source!r} > repeat({'' if self.count is None else self.count})"

    def find_length(self) -> int | float | None:
        n = self.source.find_length()
        if n == 0 or self.count == 0:
            return 0
        if self.count is None:
            return np.inf
        return None if n is None else n * self.count

    def _iterate_epochs(self, epoch: int, start: int, begin: Callable[[int, int], Iterator[Any]]) -> Iterator[Any]:
        """Iterate over the source's epochs: from the one with element ``start``, or all if its length is not known."""
        n = self.source.find_length()
        first, start = divmod(start, n) if isinstance(n, int) and n else (0, start)
        base = epoch * (ENDLESS if self.count is None else self.count)
        for i in count(first) if self.count is None else range(first, self.count):
            seen = 0
            source = begin(base + i, start if isinstance(n, int) else 0)
            for seen, element in enumerate(source, 1):  # noqa: B007
                yield element
            if not seen and not start:
                return  # an empty source stays empty however often it is repeated
            start = 0

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        elements = self._iterate_epochs(epoch, start, self.source.iterate_elements)
        return elements if isinstance(self.source.find_length(), int) else islice(elements, start, None)

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        if not isinstance(self.source.find_length(), int):
            return super()._stream_blocks(epoch, start, size)
        return regroup(self._iterate_epochs(epoch, start, lambda e, s: self.source.iterate_blocks(e, s, size)), size)


# ---- prefetch


@dataclass(frozen=True, repr=False)
class Prefetch(DerivedStage):
    """The same elements; the next ones are computed in a thread while the current one is used."""

    label = "prefetch({size})"
    size: int

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return _prefetch(lambda: self.source.iterate_elements(epoch, start), self.size)

    def _stream_blocks(self, epoch: int, start: int, size: int) -> Iterator[Any]:
        return _prefetch(lambda: self.source.iterate_blocks(epoch, start, size), self.size)


def _prefetch(begin: Callable[[], Iterator[Any]], size: int) -> Iterator[Any]:
    """Iterate over what a thread computes ahead; the thread ends with this generator."""
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

    # With the context variables of the reader, such as the default dtype.
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
        while not ready.empty():  # wakes a producer that waits for a free place, so that it sees the event
            ready.get_nowait()
        if not sys.is_finalizing():  # then daemon threads do not run any more
            thread.join()


# ---- trees of elements


def is_python_number_list(tree: object) -> bool:
    """Return whether a part of an element is a nested list of Python's own numbers, which counts as one array."""
    return type(tree) is list and bool(tree) and all(type(x) in NUMBERS or is_python_number_list(x) for x in tree)


def flatten(tree: Tree) -> list[Any]:
    """Return the leaves of a tree; a list of numbers is one leaf."""
    found: list[Any] = []
    map_leaves(found.append, tree, whole=is_python_number_list)
    return found


def as_leaf_array(x: TensorLike, subject: str) -> Array:
    """Return a leaf as an array: Python floats get the default dtype, integers and bools keep theirs."""
    if isinstance(x, str):
        return np.asarray(x)
    array: Array = as_array(x, subject=subject)
    if type(x) in NUMBERS or type(x) is list:
        its_own = np.asarray(x)
        return its_own if its_own.dtype.kind in "iub" else array
    return array


def stack_elements(elements: list[Any]) -> Any:
    """Return many elements as one block: each leaf with a new first axis."""
    columns = [flatten(element) for element in elements]
    first = columns[0]
    for i, column in enumerate(columns):
        if len(column) != len(first):
            raise DataError(
                f"batch: element {i} has {len(column)} parts, element 0 has {len(first)}. "
                "All elements must have the same structure."
            )
    stacked = []
    for part in zip(*columns, strict=True):
        arrays = [as_leaf_array(x, "batch") for x in part]
        for i, x in enumerate(arrays):
            if x.shape != arrays[0].shape:
                raise ShapeError(
                    f"batch: element {i} of a batch has shape {x.shape}, element 0 has shape {arrays[0].shape}. "
                    "Elements of a batch are stacked: bring them to one shape with map first."
                )
        stacked.append(np.stack(arrays))
    structure = map_leaves(lambda _: 0, elements[0], whole=is_python_number_list)
    return replace_leaves(structure, stacked)


def regroup(blocks: Iterator[Any], size: int) -> Iterator[Any]:
    """Return blocks of any lengths as blocks of one length; only the last may be smaller."""
    waiting: list[Any] = []
    number = 0
    for block in blocks:
        waiting.append(block)
        number += len(flatten(block)[0])
        while number >= size:
            joined = waiting[0] if len(waiting) == 1 else _concatenate(waiting)
            yield map_leaves(lambda x: x[:size], joined)
            waiting = [map_leaves(lambda x: x[size:], joined)]
            number -= size
    if number:
        yield _concatenate(waiting)


def _concatenate(blocks: list[Any]) -> Any:
    return map_leaves(lambda *parts: np.concatenate(parts), *blocks)
