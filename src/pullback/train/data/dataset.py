"""Datasets: data in batches, in a seeded order, never more of it in memory than is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import index
from typing import Any

from pullback.core.convert import get_default_dtype
from pullback.errors import ArgumentError, DataError
from pullback.ops.random import uniform_int
from pullback.train.data.files import csv_rows, parquet_rows
from pullback.train.data.stages import (
    Ahead,
    Arrays,
    Batches,
    Generated,
    Mapped,
    Repeated,
    Shuffled,
    Skipped,
    Stage,
    Taken,
)

__all__ = ["Dataset"]


@dataclass
class Place:
    """Where a reader is: which epoch, how many elements of it were given, whether that were all."""

    epoch: int
    position: int
    ended: bool = False


class Dataset:
    """Elements to go through, once for each epoch; made by ``from_arrays``, ``from_generator``, ``from_csv`` and
    ``from_parquet``.

    Every method gives another dataset; nothing is read or computed before it is asked for.

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

    __slots__ = ("_continues", "_place", "_stage")

    def __init__(self, stage: Stage) -> None:
        if not isinstance(stage, Stage):  # what a user gives, who looks for from_arrays
            raise ArgumentError(
                f"Dataset: got {type(stage).__name__}. Use Dataset.from_arrays, from_generator, from_csv or "
                "from_parquet."
            )
        self._stage = stage
        self._place = Place(0, 0)
        self._continues = True  # the next reader begins at this place, not with the epoch after it

    # ---- from where

    @classmethod
    def from_arrays(cls, arrays: Any) -> Dataset:
        """The rows of an array, or of all arrays of a tuple, dict or other tree: one row of each makes an element.

        The arrays are not copied, so that one may be a ``np.memmap`` of a file larger than memory.
        Batches in their order are read-only views of them.

        >>> list(pb.data.Dataset.from_arrays({"x": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]}))[1]
        {'x': array([3., 4.], dtype=float32), 'y': np.int64(1)}
        """
        return cls(Arrays(arrays))

    @classmethod
    def from_generator(cls, function: Callable[[], Iterable[Any]]) -> Dataset:
        """What a generator function gives; it is called anew for every epoch.

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
        return cls(Generated(function))

    @classmethod
    def from_csv(
        cls,
        path: Any,
        columns: Any = None,
        label: Any = None,
        dtypes: Any = None,
        names: Any = None,
        delimiter: str = ",",
    ) -> Dataset:
        """The rows of a CSV file as dicts by column; with ``label``, as pairs of such a dict and the label.

        Columns are floats of the default dtype (an empty cell is NaN) unless ``dtypes``, one or a dict by column, says
        otherwise; ``names`` are for a file whose first line is data already.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "flowers.csv")
        ...     _ = path.write_text("length,width,kind\\n5.1,3.5,0\\n6.2,2.9,1\\n")
        ...     data = pb.data.Dataset.from_csv(path, label="kind", dtypes={"kind": int}).batch(2)
        ...     list(data.map(lambda x, kind: (np.stack(list(x.values()), axis=1), kind)))
        [(array([[5.1, 3.5],
               [6.2, 2.9]], dtype=float32), array([0, 1]))]
        """
        return cls(csv_rows(path, columns, label, dtypes, names, delimiter, get_default_dtype()))

    @classmethod
    def from_parquet(cls, path: Any, columns: Any = None, label: Any = None) -> Dataset:
        """The rows of a Parquet file, as of ``from_csv``, with the dtypes of the file.  Needs pyarrow.

        >>> import pathlib, tempfile
        >>> import pyarrow, pyarrow.parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "flowers.parquet")
        ...     pyarrow.parquet.write_table(pyarrow.table({"width": [3.5, 2.9], "kind": [0, 1]}), path)
        ...     list(pb.data.Dataset.from_parquet(path, label="kind").batch(2))
        [({'width': array([3.5, 2.9])}, array([0, 1]))]
        """
        return cls(parquet_rows(path, columns, label))

    # ---- made into others

    def shuffle(
        self, buffer_size: int | None = None, seed: int | None = None, reshuffle_each_iteration: bool = True
    ) -> Dataset:
        """The elements in an order that ``seed`` decides, another one in each epoch.

        Arrays are shuffled as a whole.  Of a generator or file ``buffer_size`` elements are held and mixed.
        Without a seed one is drawn as ``pb.random.seed`` says.

        >>> data = pb.data.Dataset.from_arrays(np.arange(5)).shuffle(seed=3)
        >>> [int(x) for x in data], [int(x) for x in data]
        ([4, 2, 1, 3, 0], [1, 4, 0, 2, 3])
        """
        if buffer_size is not None:
            buffer_size = _whole("shuffle", "buffer_size", buffer_size, 1)
        elif self._stage.rows(0) is None:
            raise ArgumentError(
                f"shuffle: {self!r} can only be read in order, so that elements are mixed in a buffer. Give its "
                "buffer_size, such as shuffle(1000, seed=0)."
            )
        seed = int(uniform_int([], 0, 2**31 - 1)) if seed is None else _whole("shuffle", "seed", seed, 0)
        return Dataset(Shuffled(self._stage, buffer_size, seed, bool(reshuffle_each_iteration)))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Groups of ``batch_size`` elements, stacked; the last may be smaller, or is left out by ``drop_remainder``.

        >>> list(pb.data.Dataset.from_arrays(np.arange(5)).batch(2))
        [array([0, 1]), array([2, 3]), array([4])]
        """
        return Dataset(Batches(self._stage, _whole("batch", "batch_size", batch_size, 1), bool(drop_remainder)))

    def map(self, function: Callable[..., Any]) -> Dataset:
        """``function`` of each element; an element that is a tuple gives it several arguments.

        What it gives should depend on nothing else, so that resuming is exact.

        >>> list(pb.data.Dataset.from_arrays((np.arange(3), np.ones(3))).map(lambda x, y: x + y))
        [np.float64(1.0), np.float64(2.0), np.float64(3.0)]
        """
        if not callable(function):
            raise ArgumentError(f"map: expected a function, got {type(function).__name__}.")
        return Dataset(Mapped(self._stage, function))

    def prefetch(self, buffer_size: int = 2) -> Dataset:
        """The same; up to ``buffer_size`` elements are made ahead in a thread, while the present one is used.

        >>> list(pb.data.Dataset.from_arrays(np.arange(5)).batch(2).prefetch())
        [array([0, 1]), array([2, 3]), array([4])]
        """
        return Dataset(Ahead(self._stage, _whole("prefetch", "buffer_size", buffer_size, 1)))

    def take(self, count: int) -> Dataset:
        """The first ``count`` elements of each epoch.

        >>> [int(x) for x in pb.data.Dataset.from_arrays(np.arange(5)).take(2)]
        [0, 1]
        """
        return Dataset(Taken(self._stage, _whole("take", "count", count, 0)))

    def skip(self, count: int) -> Dataset:
        """All but the first ``count`` elements of each epoch.

        >>> [int(x) for x in pb.data.Dataset.from_arrays(np.arange(5)).skip(3)]
        [3, 4]
        """
        return Dataset(Skipped(self._stage, _whole("skip", "count", count, 0)))

    def repeat(self, count: int | None = None) -> Dataset:
        """``count`` epochs as one, shuffled as epochs are; without a count they never end.

        >>> list(pb.data.Dataset.from_arrays(np.arange(3)).repeat(2).batch(4))
        [array([0, 1, 2, 0]), array([1, 2])]
        """
        return Dataset(Repeated(self._stage, None if count is None else _whole("repeat", "count", count, 0)))

    # ---- reading

    def __iter__(self) -> Iterator[Any]:
        if not self._continues:
            self._place = Place(self._place.epoch + 1, 0)
        self._continues = False
        return _read(self._stage, self._place)

    def __len__(self) -> int:
        n = self._stage.length()
        if isinstance(n, int):
            return n
        # A TypeError, which list() takes for an answer.
        raise ArgumentError(f"len: the length of {self!r} is {'not known before it was read' if n is None else n}.")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Dataset({self._stage!r})"

    # ---- where it is

    def state(self) -> dict[str, int]:
        """Where the latest reader is: a few integers, from which ``resume`` goes on exactly there.

        >>> data = pb.data.Dataset.from_arrays(np.arange(6)).batch(2)
        >>> for batch in data:
        ...     break
        >>> data.state()
        {'epoch': 0, 'position': 1, 'length': 3}
        """
        place = self._place
        made = {"epoch": place.epoch, "position": place.position}
        if place.ended:
            made = {"epoch": place.epoch + 1, "position": 0}
        n = self._stage.length()
        if isinstance(n, int):
            made["length"] = n
        return made | {f"seed_{i}": seed for i, seed in enumerate(self._stage.seeds())}

    def resume(self, state: Any) -> Dataset:
        """Go on where ``state`` was taken: the next reader gives the rest of that epoch.  Returns the dataset.

        The orders are those of the state's seeds.  Arrays and Parquet files are not read up to there; generators are.

        >>> data = pb.data.Dataset.from_arrays(np.arange(6)).shuffle(seed=0).batch(2)
        >>> reader = iter(data)
        >>> first, state, second = next(reader), data.state(), next(reader)
        >>> again = pb.data.Dataset.from_arrays(np.arange(6)).shuffle(seed=0).batch(2).resume(state)
        >>> bool((next(iter(again)) == second).all())
        True
        """
        mine = self.state()
        if not isinstance(state, dict) or not {"epoch", "position"} <= state.keys():
            raise ArgumentError(f"resume: expected what state() gave, a dict with epoch and position, got {state!r}.")
        if state.keys() != mine.keys() or state.get("length") != mine.get("length"):
            raise DataError(
                f"resume: the state is of another dataset: {state!r}, and that of this one is {mine!r}. "
                "Make the dataset with the same steps and as many elements."
            )
        numbers = {name: _whole("resume", name, value, 0) for name, value in state.items()}
        if numbers["position"] > numbers.get("length", numbers["position"]):
            raise DataError(f"resume: position {numbers['position']} is after the end, at {numbers['length']}.")
        seeds = [value for name, value in sorted(numbers.items(), key=_seed_number) if name.startswith("seed_")]
        self._stage = self._stage.reseeded(seeds)
        self._place = Place(numbers["epoch"], numbers["position"])
        self._continues = True
        return self


def _read(stage: Stage, place: Place) -> Iterator[Any]:
    for element in stage.elements(place.epoch, place.position):
        place.position += 1
        yield element
    place.ended = True


def _seed_number(item: tuple[str, int]) -> int:
    return int(item[0].removeprefix("seed_")) if item[0].startswith("seed_") else -1


def _whole(what: str, argument: str, value: Any, least: int) -> int:
    try:
        number = index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or number < least:
        raise ArgumentError(f"{what}: {argument} must be an integer of {least} or more, got {value!r}.")
    return number
