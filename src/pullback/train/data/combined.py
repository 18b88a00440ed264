"""Stages that select, join, pad, keep or compute elements in processes: filter, zip, concatenate, cache, and more."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any

import numpy as np

from pullback.core.tree import map_leaves, replace_leaves
from pullback.errors import ArgumentError, DataError, ShapeError
from pullback.train.data.stages import (
    DerivedStage,
    RowAccess,
    Stage,
    apply_function,
    as_leaf_array,
    count_batches,
    flatten,
    is_python_number_list,
    stack_rows,
)
from pullback.typing import Array


@dataclass(frozen=True, repr=False)
class Filter(DerivedStage):
    """The elements for which a function is true."""

    label = "filter"
    function: Callable[..., Any]

    def find_length(self) -> int | float | None:
        return None

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        kept = (e for e in self.source.iterate_elements(epoch, 0) if apply_function(self.function, e))
        return islice(kept, start, None)


@dataclass(frozen=True)
class ConcatenateStage(DerivedStage):
    """The elements of one stage, then those of another."""

    second: Stage

    def __repr__(self) -> str:
        return f"({self.source!r}) + ({self.second!r})"

    def access_rows(self, epoch: int) -> RowAccess | None:
        first, second = self.source.access_rows(epoch), self.second.access_rows(epoch)
        if first is None or second is None:
            return None
        n = len(first.order)

        def at(i: int) -> Any:
            return first.at(first.order[i]) if i < n else second.at(second.order[i - n])

        return stack_rows(range(n + len(second.order)), at)

    def find_length(self) -> int | float | None:
        n, m = self.source.find_length(), self.second.find_length()
        return None if n is None or m is None else n + m

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        return islice(
            chain(self.source.iterate_elements(epoch, 0), self.second.iterate_elements(epoch, 0)), start, None
        )

    def list_seeds(self) -> list[int]:
        return [*self.source.list_seeds(), *self.second.list_seeds()]

    def replace_seeds(self, seeds: list[int]) -> Stage:
        n = len(self.source.list_seeds())
        return replace(self, source=self.source.replace_seeds(seeds[:n]), second=self.second.replace_seeds(seeds[n:]))


@dataclass(frozen=True)
class Zip(Stage):
    """One element of each of several stages as one element; it ends with the shortest."""

    sources: tuple[Stage, ...]
    structure: Any  # a tree with one leaf for each source

    def __repr__(self) -> str:
        return f"zip({', '.join(map(repr, self.sources))})"

    def access_rows(self, epoch: int) -> RowAccess | None:
        parts = [source.access_rows(epoch) for source in self.sources]
        if any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]

        def at(i: int) -> Any:
            return replace_leaves(self.structure, [part.at(part.order[i]) for part in known])

        length = min(len(part.order) for part in known)
        return stack_rows(range(length), at)

    def find_length(self) -> int | float | None:
        lengths = [source.find_length() for source in self.sources]
        known = [n for n in lengths if n is not None]
        return min(known) if len(known) == len(lengths) else None

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        readers = [source.iterate_elements(epoch, start) for source in self.sources]
        return (replace_leaves(self.structure, list(parts)) for parts in zip(*readers, strict=False))

    def list_seeds(self) -> list[int]:
        return [seed for source in self.sources for seed in source.list_seeds()]

    def replace_seeds(self, seeds: list[int]) -> Stage:
        left, replaced = list(seeds), []
        for source in self.sources:
            n = len(source.list_seeds())
            replaced.append(source.replace_seeds(left[:n]))
            left = left[n:]
        return replace(self, sources=tuple(replaced))


@dataclass(frozen=True, repr=False)
class PaddedBatch(DerivedStage):
    """Batches of elements of different shapes, padded to the largest of each batch or to given shapes."""

    label = "padded_batch({size})"
    size: int
    drop: bool
    shapes: Any  # None, a shape, or a list of one for each part of an element
    value: float

    def find_length(self) -> int | float | None:
        n = self.source.find_length()
        return count_batches(n, self.size, self.drop) if isinstance(n, int) else n

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        elements = self.source.iterate_elements(epoch, start * self.size)
        while group := list(islice(elements, self.size)):
            if not self.drop or len(group) == self.size:
                yield self._stack(group)

    def _stack(self, elements: list[Any]) -> Any:
        columns = [[as_leaf_array(x, "padded_batch") for x in flatten(element)] for element in elements]
        parts = list(zip(*columns, strict=True))
        shapes = self._list_shapes(len(parts))
        padded = [self._pad(part, shape) for part, shape in zip(parts, shapes, strict=True)]
        return replace_leaves(map_leaves(lambda _: 0, elements[0], whole=is_python_number_list), padded)

    def _list_shapes(self, count: int) -> list[Any]:
        if self.shapes is None:
            return [None] * count
        shapes = [self.shapes] if _is_shape(self.shapes) else list(self.shapes)
        if len(shapes) != count:
            raise ArgumentError(f"padded_batch: elements have {count} parts, padded_shapes {len(shapes)}.")
        return shapes

    def _pad(self, arrays: tuple[Array, ...], lengths: Any) -> Array:
        ranks = {x.ndim for x in arrays}
        if len(ranks) > 1:
            raise ShapeError(f"padded_batch: elements of one batch have ranks {sorted(ranks)}; one rank is needed.")
        largest = tuple(np.max([x.shape for x in arrays], axis=0)) if arrays[0].ndim else ()
        lengths = lengths or [None] * len(largest)
        if len(lengths) != len(largest):
            raise ShapeError(f"padded_batch: elements have rank {len(largest)}, padded_shapes {lengths!r}.")
        shape = tuple(int(n if w is None else w) for n, w in zip(largest, lengths, strict=True))
        if any(n > w for n, w in zip(largest, shape, strict=True)):
            raise ShapeError(f"padded_batch: an element has shape {largest}, larger than {shape}.")
        padded = np.full((len(arrays), *shape), self.value, np.result_type(*arrays))
        if padded.dtype.kind in "iub" and padded.size and padded.flat[0] != self.value:
            raise ArgumentError(
                f"padded_batch: padding_values={self.value!r} is no {padded.dtype}, as the elements are."
            )
        for i, x in enumerate(arrays):
            where: Any = (i, *[slice(n) for n in x.shape])
            padded[where] = x
        return padded


def _is_shape(x: object) -> bool:
    return isinstance(x, list | tuple) and all(n is None or isinstance(n, int) for n in x)


@dataclass(frozen=True, repr=False)
class CacheStage(DerivedStage):
    """The elements of the first epoch, kept in memory."""

    label = "cache"
    kept: dict[int, Any] = field(default_factory=dict)

    def access_rows(self, epoch: int) -> RowAccess | None:
        rows = self.source.access_rows(0)
        if rows is None:
            return None
        source_rows = rows

        def at(i: int) -> Any:
            if i not in self.kept:
                self.kept[i] = source_rows.at(source_rows.order[i])
            return self.kept[i]

        return stack_rows(range(len(rows.order)), at)

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        while start in self.kept:
            yield self.kept[start]
            start += 1
        first = len(self.kept)
        for i, element in enumerate(self.source.iterate_elements(0, first), first):
            self.kept[i] = element
            if i >= start:
                yield element


@dataclass(frozen=True, repr=False)
class ParallelMap(DerivedStage):
    """A function of each element, computed in processes; the order is kept."""

    label = "map(workers={workers})"
    function: Callable[..., Any]
    workers: int

    def _stream(self, epoch: int, start: int) -> Iterator[Any]:
        try:
            yield from self._stream_from_pool(epoch, start)
        except BrokenProcessPool as error:
            raise DataError(
                "map: a worker process ended before it had its results. A script that uses workers has its work under "
                "if __name__ == '__main__', as each worker imports it; else the worker was killed, perhaps for memory."
            ) from error

    def _stream_from_pool(self, epoch: int, start: int) -> Iterator[Any]:
        context = get_context("forkserver" if os.name == "posix" else "spawn")
        with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
            pending: deque[Future[Any]] = deque()
            try:
                for element in self.source.iterate_elements(epoch, start):
                    pending.append(pool.submit(apply_function, self.function, element))
                    if len(pending) > 2 * self.workers:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()


def check_picklable(function: Callable[..., Any]) -> None:
    """Raise an error for a function that cannot be sent to another process."""
    try:
        pickle.dumps(function)
    except Exception as error:
        raise ArgumentError(
            f"map: workers need a function that can be pickled: one that is defined at the top of a module, no lambda "
            f"and none inside a function. {error}"
        ) from None
