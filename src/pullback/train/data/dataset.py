"""Datasets: elements from arrays, generators and files, shuffled, batched and mapped without holding all in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pullback.core.convert import get_default_dtype
from pullback.core.tree import map_leaves
from pullback.errors import ArgumentError, DataError
from pullback.ops.random import uniform_int
from pullback.train.arguments import as_whole_number
from pullback.train.data.combined import (
    CacheStage,
    ConcatenateStage,
    Filter,
    PaddedBatch,
    ParallelMap,
    Zip,
    check_picklable,
)
from pullback.train.data.files import open_csv, open_parquet
from pullback.train.data.stages import (
    ArraySource,
    BatchStage,
    GeneratorSource,
    Map,
    Prefetch,
    Repeat,
    Shuffle,
    Skip,
    Stage,
    Take,
    apply_function,
)
from pullback.typing import DType, Tree


@dataclass
class Position:
    """The position of a reader: the epoch, how many of its elements were read, and whether those were all."""

    epoch: int
    position: int
    ended: bool = False


class Dataset:
    """Elements to iterate over, once for each epoch; made by ``from_arrays``, ``from_generator``, ``from_csv`` and
    ``from_parquet``.

    Every method returns another dataset; elements are read and computed when they are iterated over.

    >>> x, y = np.arange(10.0).reshape(5, 2), np.arange(5)
    >>> data = pb.data.Dataset.from_arrays((x, y)).shuffle(seed=1).batch(2)
    >>> len(data)
    3
    >>> for xs, ys in data:
    ...     print(xs.shape, ys.shape)
    (2, 2) (2,)
    (2, 2) (2,)
    (1, 2) (1,)
    """

    __slots__ = ("_continues", "_position", "_stage")

    def __init__(self, stage: Stage) -> None:
        if not isinstance(stage, Stage):  # a user who wants from_arrays
            raise ArgumentError(
                f"Dataset: got {type(stage).__name__}. Use Dataset.from_arrays, from_generator, from_csv or "
                "from_parquet."
            )
        self._stage = stage
        self._position = Position(0, 0)
        self._continues = True  # whether the next reader starts at this position, not with the next epoch

    # ---- sources

    @classmethod
    def from_arrays(cls, arrays: Tree) -> Dataset:
        """Return a dataset of the rows of an array, or of a tree of arrays: an element is one row of each.

        The arrays are not copied: one may be a ``np.memmap`` of a file larger than memory.
        Batches that are not shuffled are read-only views of them.

        arrays: an array, or a tree of arrays with the same first axis.

        >>> list(pb.data.Dataset.from_arrays({"x": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]}))[1]
        {'x': array([3., 4.], dtype=float32), 'y': np.int64(1)}
        """
        return cls(ArraySource(arrays))

    @classmethod
    def from_generator(cls, function: Callable[[], Iterable[Any]]) -> Dataset:
        """Return a dataset of what a generator function yields; it is called once for every epoch.

        function: a function that returns an iterator.

        >>> def squares():
        ...     for i in range(5):
        ...         yield float(i), i * i
        >>> list(pb.data.Dataset.from_generator(squares).batch(3))[0]
        (array([0., 1., 2.], dtype=float32), array([0, 1, 4]))
        """
        if not callable(function):
            raise ArgumentError(
                f"from_generator: expected a function that returns an iterator, got {type(function).__name__}. "
                "An iterator serves one epoch only: give the generator function itself, without calling it."
            )
        return cls(GeneratorSource(function))

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        columns: Iterable[str] | None = None,
        label: str | Iterable[str] | None = None,
        dtypes: DType | Mapping[str, DType] | None = None,
        names: Iterable[str] | None = None,
        delimiter: str = ",",
    ) -> Dataset:
        """Return a dataset of the rows of a CSV file: dicts by column; with ``label``, pairs of a dict and the label.

        Columns are floats of the default dtype (an empty cell is NaN) unless ``dtypes``, one or a dict by column, says
        otherwise; ``names`` gives the column names of a file without a header line.

        path: the file.
        columns: which columns, by name.
        label: the column of labels.
        dtypes: the dtype of each column.
        names: the names of the columns, for a file without a first line of them.
        delimiter: the text between two columns.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "flowers.csv")
        ...     _ = path.write_text("length,width,kind\\n5.1,3.5,0\\n6.2,2.9,1\\n")
        ...     data = pb.data.Dataset.from_csv(path, label="kind", dtypes={"kind": int}).batch(2)
        ...     list(data.map(lambda x, kind: (np.stack(list(x.values()), axis=1), kind)))
        [(array([[5.1, 3.5],
               [6.2, 2.9]], dtype=float32), array([0, 1]))]
        """
        return cls(open_csv(path, columns, label, dtypes, names, delimiter, get_default_dtype()))

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        columns: Iterable[str] | None = None,
        label: str | Iterable[str] | None = None,
    ) -> Dataset:
        """Return a dataset of the rows of a Parquet file, like ``from_csv``, with the file's dtypes.  Needs pyarrow.

        path: the file.
        columns: the columns to read; all without it.
        label: the column that is the target.

        >>> import pathlib, tempfile
        >>> import pyarrow, pyarrow.parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "flowers.parquet")
        ...     pyarrow.parquet.write_table(pyarrow.table({"width": [3.5, 2.9], "kind": [0, 1]}), path)
        ...     list(pb.data.Dataset.from_parquet(path, label="kind").batch(2))
        [({'width': array([3.5, 2.9])}, array([0, 1]))]
        """
        return cls(open_parquet(path, columns, label))

    # ---- stages

    def shuffle(
        self, buffer_size: int | None = None, seed: int | None = None, reshuffle_each_iteration: bool = True
    ) -> Dataset:
        """Shuffle the elements, in another order in each epoch.

        Arrays are shuffled as a whole; elements of a generator or file are shuffled in a buffer of ``buffer_size``.
        Without a ``seed`` one is drawn from the generator that ``pb.random.seed`` seeds.

        reshuffle_each_iteration: whether each epoch has an order of its own.

        >>> data = pb.data.Dataset.from_arrays(np.arange(5)).shuffle(seed=3)
        >>> [int(x) for x in data], [int(x) for x in data]
        ([4, 2, 1, 3, 0], [1, 4, 0, 2, 3])
        """
        if buffer_size is not None:
            buffer_size = as_whole_number("shuffle", "buffer_size", buffer_size, 1)
        elif self._stage.access_rows(0) is None:
            raise ArgumentError(
                f"shuffle: {self!r} can only be read in order, so that it is shuffled in a buffer. Give its "
                "buffer_size, such as shuffle(1000, seed=0)."
            )
        seed = int(uniform_int([], 0, 2**31 - 1)) if seed is None else as_whole_number("shuffle", "seed", seed, 0)
        return Dataset(Shuffle(self._stage, buffer_size, seed, bool(reshuffle_each_iteration)))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Stack every ``batch_size`` elements to a batch; the last may be smaller, or is dropped by ``drop_remainder``.

        >>> list(pb.data.Dataset.from_arrays(np.arange(5)).batch(2))
        [array([0, 1]), array([2, 3]), array([4])]
        """
        return Dataset(
            BatchStage(self._stage, as_whole_number("batch", "batch_size", batch_size, 1), bool(drop_remainder))
        )

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Tree = None,
        padding_values: float = 0,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Stack elements of different shapes, padded to the largest of their batch, or to ``padded_shapes``.

        batch_size: how many elements make a batch.
        padding_values: the values with which shorter elements are padded.
        drop_remainder: whether a smaller last batch is left out.

        >>> data = pb.data.Dataset.from_generator(lambda: [np.array([1, 2]), np.array([3]), np.array([4, 5, 6])])
        >>> [batch.tolist() for batch in data.padded_batch(2)]
        [[[1, 2], [3, 0]], [[4, 5, 6]]]
        """
        size = as_whole_number("padded_batch", "batch_size", batch_size, 1)
        return Dataset(PaddedBatch(self._stage, size, bool(drop_remainder), padded_shapes, padding_values))

    def filter(self, function: Callable[..., Any]) -> Dataset:
        """Keep the elements for which ``function`` is true; the parts of a tuple are its arguments.

        >>> [int(x) for x in pb.data.Dataset.from_arrays(np.arange(6)).filter(lambda x: x % 2 == 0)]
        [0, 2, 4]
        """
        if not callable(function):
            raise ArgumentError(f"filter: expected a function, got {type(function).__name__}.")
        return Dataset(Filter(self._stage, function))

    def concatenate(self, other: Dataset) -> Dataset:
        """Continue with the elements of another dataset.

        other: the dataset that follows.

        >>> one, two = (pb.data.Dataset.from_arrays(np.arange(n)) for n in (2, 3))
        >>> [int(x) for x in one.concatenate(two)]
        [0, 1, 0, 1, 2]
        """
        if not isinstance(other, Dataset):
            raise ArgumentError(f"concatenate: expected a dataset, got {type(other).__name__}.")
        return Dataset(ConcatenateStage(self._stage, other._stage))

    @classmethod
    def zip(cls, datasets: Tree) -> Dataset:
        """Return a dataset whose elements are one of each dataset of a tuple, list or dict; the shortest ends it.

        datasets: datasets, whose elements are taken together.

        >>> x, y = pb.data.Dataset.from_arrays(np.arange(3)), pb.data.Dataset.from_arrays(np.arange(3) * 10)
        >>> [(int(a), int(b)) for a, b in pb.data.Dataset.zip((x, y))]
        [(0, 0), (1, 10), (2, 20)]
        """
        found: list[Any] = []
        map_leaves(found.append, datasets, whole=is_dataset)
        if not found or not all(map(is_dataset, found)):
            raise ArgumentError(f"zip: expected datasets in a tuple, list or dict, got {datasets!r}.")
        return cls(Zip(tuple(one._stage for one in found), map_leaves(lambda _: 0, datasets, whole=is_dataset)))

    def cache(self) -> Dataset:
        """Keep the elements of the first epoch in memory; later ones read them from there, in the same order.

        >>> calls = []
        >>> data = pb.data.Dataset.from_arrays(np.arange(2)).map(lambda x: calls.append(1) or x).cache()
        >>> _ = list(data), list(data)
        >>> len(calls)
        2
        """
        return Dataset(CacheStage(self._stage))

    def to_array(self) -> list[Any]:
        """Return the elements of one epoch as a list.

        >>> pb.data.Dataset.from_arrays(np.arange(5)).batch(3).to_array()
        [array([0, 1, 2]), array([3, 4])]
        """
        return list(self)

    def for_each(self, function: Callable[..., Any]) -> None:
        """Call ``function`` with each element of one epoch; the parts of a tuple are its arguments.

        >>> pb.data.Dataset.from_arrays(np.arange(2)).for_each(print)
        0
        1
        """
        for element in self:
            apply_function(function, element)

    def column_names(self) -> list[str]:
        """Return the names of the parts of an element: the columns of a file, labels included.

        >>> pb.data.Dataset.from_arrays(({"x": np.ones(2), "y": np.ones(2)}, {"z": np.ones(2)})).column_names()
        ['x', 'y', 'z']
        """
        first = next(self._stage.iterate_elements(0, 0), None)
        parts = first if isinstance(first, tuple) else (first,)
        return [name for part in parts if isinstance(part, dict) for name in part]

    def map(self, function: Callable[..., Any], workers: int = 0) -> Dataset:
        """Apply ``function`` to each element; the parts of a tuple are its arguments.

        Its result should depend on nothing else, so that resuming is exact.  ``workers`` processes compute it ahead
        and keep the order; the function is then one that can be pickled.

        >>> list(pb.data.Dataset.from_arrays((np.arange(3), np.ones(3))).map(lambda x, y: x + y))
        [np.float64(1.0), np.float64(2.0), np.float64(3.0)]
        """
        if not callable(function):
            raise ArgumentError(f"map: expected a function, got {type(function).__name__}.")
        if as_whole_number("map", "workers", workers, 0):
            check_picklable(function)
            return Dataset(ParallelMap(self._stage, function, workers))
        return Dataset(Map(self._stage, function))

    def prefetch(self, buffer_size: int = 2) -> Dataset:
        """Compute up to ``buffer_size`` elements ahead, in a thread, while the current one is used.

        >>> list(pb.data.Dataset.from_arrays(np.arange(5)).batch(2).prefetch())
        [array([0, 1]), array([2, 3]), array([4])]
        """
        return Dataset(Prefetch(self._stage, as_whole_number("prefetch", "buffer_size", buffer_size, 1)))

    def take(self, count: int) -> Dataset:
        """Keep the first ``count`` elements of each epoch.

        >>> [int(x) for x in pb.data.Dataset.from_arrays(np.arange(5)).take(2)]
        [0, 1]
        """
        return Dataset(Take(self._stage, as_whole_number("take", "count", count, 0)))

    def skip(self, count: int) -> Dataset:
        """Leave out the first ``count`` elements of each epoch.

        >>> [int(x) for x in pb.data.Dataset.from_arrays(np.arange(5)).skip(3)]
        [3, 4]
        """
        return Dataset(Skip(self._stage, as_whole_number("skip", "count", count, 0)))

    def repeat(self, count: int | None = None) -> Dataset:
        """Make ``count`` epochs one, each shuffled in its own order; without a count it never ends.

        >>> list(pb.data.Dataset.from_arrays(np.arange(3)).repeat(2).batch(4))
        [array([0, 1, 2, 0]), array([1, 2])]
        """
        return Dataset(Repeat(self._stage, None if count is None else as_whole_number("repeat", "count", count, 0)))

    # ---- reading

    def __iter__(self) -> Iterator[Any]:
        if not self._continues:
            self._position = Position(self._position.epoch + 1, 0)
        self._continues = False
        return _iterate(self._stage, self._position)

    def __len__(self) -> int:
        n = self._stage.find_length()
        if isinstance(n, int):
            return n
        # ArgumentError is a TypeError, which list() takes as "no length hint".
        raise ArgumentError(f"len: the length of {self!r} is {'not known before it was read' if n is None else n}.")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Dataset({self._stage!r})"

    # ---- position

    def state(self) -> dict[str, int]:
        """Return the position of the latest reader, as a dict of integers that ``resume`` takes.

        >>> data = pb.data.Dataset.from_arrays(np.arange(6)).batch(2)
        >>> for batch in data:
        ...     break
        >>> data.state()
        {'epoch': 0, 'position': 1, 'length': 3}
        """
        position = self._position
        state = {"epoch": position.epoch, "position": position.position}
        if position.ended:
            state = {"epoch": position.epoch + 1, "position": 0}
        n = self._stage.find_length()
        if isinstance(n, int):
            state["length"] = n
        return state | {f"seed_{i}": seed for i, seed in enumerate(self._stage.list_seeds())}

    def resume(self, state: Mapping[str, int]) -> Dataset:
        """Continue where ``state`` was taken: the next reader gives the rest of that epoch.  Returns the dataset.

        Shuffles use the state's seeds.  Arrays and Parquet files skip to the position; generators are run up to it.

        >>> data = pb.data.Dataset.from_arrays(np.arange(6)).shuffle(seed=0).batch(2)
        >>> reader = iter(data)
        >>> first, state, second = next(reader), data.state(), next(reader)
        >>> again = pb.data.Dataset.from_arrays(np.arange(6)).shuffle(seed=0).batch(2).resume(state)
        >>> bool((next(iter(again)) == second).all())
        True
        """
        current = self.state()
        if not isinstance(state, dict) or not {"epoch", "position"} <= state.keys():
            raise ArgumentError(f"resume: expected a dict with epoch and position, from state(), got {state!r}.")
        if state.keys() != current.keys() or state.get("length") != current.get("length"):
            raise DataError(
                f"resume: the state is of another dataset: {state!r}, and that of this one is {current!r}. "
                "Make the dataset with the same stages and as many elements."
            )
        numbers = {name: as_whole_number("resume", name, value, 0) for name, value in state.items()}
        if numbers["position"] > numbers.get("length", numbers["position"]):
            raise DataError(f"resume: position {numbers['position']} is after the end, at {numbers['length']}.")
        seeds = [value for name, value in sorted(numbers.items(), key=_seed_number) if name.startswith("seed_")]
        self._stage = self._stage.replace_seeds(seeds)
        self._position = Position(numbers["epoch"], numbers["position"])
        self._continues = True
        return self


def is_dataset(part: object) -> bool:
    """Return whether a part of a tree is a dataset."""
    return isinstance(part, Dataset)


def _iterate(stage: Stage, position: Position) -> Iterator[Any]:
    for element in stage.iterate_elements(position.epoch, position.position):
        position.position += 1
        yield element
    position.ended = True


def _seed_number(item: tuple[str, int]) -> int:
    return int(item[0].removeprefix("seed_")) if item[0].startswith("seed_") else -1
