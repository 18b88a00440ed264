"""The batches of an epoch: of a dataset, or of any iterable; with a limit of steps if there is one."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from pullback.errors import DataError
from pullback.train.arguments import check_count
from pullback.train.data.dataset import Dataset


class Batches(Protocol):
    """What a training reads: batches of one epoch at a time, with a position that can be stored."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the batches of the next epoch, or the rest of one."""

    def state(self) -> Mapping[str, Any]:
        """Return the position."""

    def resume(self, state: Mapping[str, Any]) -> Any:
        """Continue at a position."""


class IterableBatches:
    """The batches of an iterable, such as a list, a torch ``DataLoader`` or a generator.

    A generator gives every batch once: an epoch continues where the one before ended.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        return iter(self.source)

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]  # TypeError where it has no length

    def state(self) -> dict[str, Any]:
        return {}

    def resume(self, state: Mapping[str, Any]) -> None:
        raise DataError("fit: an iterable of batches cannot be resumed; pb.data.Dataset can.")


class LimitedBatches:
    """Epochs of a number of batches: each continues where the one before ended.

    As in Keras and TensorFlow.js an epoch ends early where the data end; the next one begins anew.
    """

    def __init__(self, source: Batches, steps: int) -> None:
        self.source, self.steps = source, steps
        self._reader: Iterator[Any] | None = None

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Any]:
        continued = self._reader is not None
        read = yield from self._read()
        if not read and continued:  # the one before ended with the data
            yield from self._read()

    def _read(self) -> Generator[Any, None, int]:
        """Iterate over the next batches; return how many there were."""
        if self._reader is None:
            self._reader = iter(self.source)
        read = 0
        for read, batch in enumerate(islice(self._reader, self.steps), 1):  # noqa: B007
            yield batch
        if read < self.steps:
            self._reader = None
        return read

    def state(self) -> Mapping[str, Any]:
        return self.source.state()

    def resume(self, state: Mapping[str, Any]) -> None:
        self.source.resume(state)
        self._reader = None


def as_batches(source: Any, steps: int | None = None) -> Batches:
    """Return batches of a dataset or an iterable; ``steps`` of them make an epoch, if it is given."""
    if steps is not None:
        check_count("fit, evaluate and predict", "the number of steps", steps)
    batches: Batches = source if isinstance(source, Dataset) else IterableBatches(source)
    return batches if steps is None else LimitedBatches(batches, steps)


def find_length(batches: object) -> int | None:
    """Return how many batches there are; None if that is not known."""
    try:
        return len(batches)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return None
