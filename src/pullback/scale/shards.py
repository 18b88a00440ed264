"""``Shards``: parts of the data, each of which is loaded by the worker that uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.errors import ArgumentError, DataError
from pullback.train.data.dataset import Dataset


class Shards:
    """Parts of the data: files that are loaded where they are used, or arrays or a dataset that are split by rows.

    data: a list of paths; or arrays (also trees of arrays), whose first axis is split; or a ``pb.data.Dataset`` whose
        length is known, of which each worker reads its part.
    load: a function from a path to the data of a shard; without it, ``.npy`` files are mapped into memory, ``.csv``
        files are read as rows of numbers, and ``.parquet`` files as a dict of columns.
    parts: how many shards arrays or a dataset are split into; 8 unless it is given.

    >>> import numpy as np, pullback as pb
    >>> shards = pb.scale.Shards({"x": np.arange(6.0), "y": np.ones(6)}, parts=3)
    >>> len(shards), shards.load(1)
    (3, {'x': array([2., 3.]), 'y': array([1., 1.])})
    """

    def __init__(self, data: Any, load: Callable[[Any], Any] | None = None, parts: int | None = None) -> None:
        if load is not None and not callable(load):
            raise ArgumentError(f"Shards: load must be a function of a path, got {type(load).__name__}.")
        if _is_list_of_paths(data):
            if parts is not None:
                raise ArgumentError("Shards: parts= splits arrays; each file is a shard of its own.")
            self.loader = load or load_file
            self.items: list[Any] = [str(path) for path in data]
            self.names = [Path(path).name for path in self.items]
        else:
            if load is not None:
                raise ArgumentError("Shards: load= is for paths, but arrays were given.")
            is_dataset = isinstance(data, Dataset)
            self.loader = read_range if is_dataset else _give
            self.items = split_dataset(data, parts) if is_dataset else split_rows(data, parts)
            self.names = [f"rows {i + 1} of {len(self.items)}" for i in range(len(self.items))]
        if not self.items:
            raise DataError("Shards: there are no shards: the list of paths is empty.")

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return (self.load(i) for i in range(len(self)))

    def load(self, number: int) -> Any:
        """Return the data of one shard.

        number: of the shard, from 0.
        """
        return self.loader(self.items[number])

    def __repr__(self) -> str:
        return f"Shards({len(self)}: {', '.join(self.names[:3])}{', ...' * (len(self) > 3)})"


def _is_list_of_paths(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(p, str | Path) for p in data)


def _give(item: Any) -> Any:
    return item


def load_file(path: str) -> Any:
    """Return the data of a file: mapped into memory (``.npy``), rows (``.csv``), or columns (``.parquet``)."""
    if path.endswith(".npy"):
        return np.load(path, mmap_mode="r", allow_pickle=False)
    if path.endswith(".csv"):
        return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    if path.endswith(".parquet"):
        rows = Dataset.from_parquet(path)
        return next(iter(rows.batch(max(len(rows), 1))))
    raise ArgumentError(f"Shards: how to read {Path(path).name} is not known. Give load=, a function of the path.")


def read_range(item: tuple[Dataset, int, int]) -> Any:
    """Return some of the elements of a dataset as one batch."""
    dataset, start, count = item
    return next(iter(dataset.skip(start).take(count).batch(count)))


def split_dataset(dataset: Dataset, parts: int | None) -> list[tuple[Dataset, int, int]]:
    """Return a dataset with the first element and the number of elements of each part."""
    try:
        rows = len(dataset)
    except TypeError:
        raise DataError(
            "Shards: a dataset that is split must know its length; one of a generator does not. Give files, or arrays."
        ) from None
    return [(dataset, start, stop - start) for start, stop in split_range(rows, parts)]


def split_rows(data: Any, parts: int | None) -> list[Any]:
    """Return arrays in parts by their first axis; the first parts are longer by one row where they are not equal.

    >>> split_rows(np.arange(5), 2)
    [array([0, 1, 2]), array([3, 4])]
    """
    ranges = split_range(count_rows(data, "Shards: arrays"), parts)
    return [tree.map_leaves(lambda a, rows=slice(*ends): np.asarray(a)[rows], data) for ends in ranges]


def count_rows(data: Any, subject: str = "the arrays of a shard") -> int:
    """Return how many rows arrays have; raise an error that begins with ``subject`` if the numbers differ.

    >>> count_rows((np.zeros((5, 2)), np.zeros(5)))
    5
    """
    lengths = {len(leaf) if np.ndim(leaf) else -1 for leaf in tree.leaves(data)}
    if len(lengths) != 1 or -1 in lengths:
        raise DataError(f"{subject} must have one number of rows, got {sorted(lengths)}; -1 is a single number.")
    return lengths.pop()


def split_range(rows: int, parts: int | None) -> list[tuple[int, int]]:
    """Return where the parts of a number of rows begin and end.

    >>> split_range(5, 2)
    [(0, 3), (3, 5)]
    """
    count = min(rows, 8) if parts is None else parts
    if type(count) is not int or not 1 <= count <= max(rows, 1):
        raise ArgumentError(f"Shards: parts must be from 1 to {rows}, the number of rows, got {parts!r}.")
    return list(pairwise([0, *accumulate(rows // count + (i < rows % count) for i in range(count))]))
