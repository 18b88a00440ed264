"""The interface of engines: workers that are called by number; and helpers that engines share."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pullback.errors import WorkerError

# The number of threads of BLAS changes the last bits of products.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
MOST_DEATHS = 3  # in a row, of workers that ran the same call


@dataclass(eq=False)
class Shared:
    """An argument of several calls, as parameters are: it is sent to each worker once."""

    value: Any
    places: dict[object, Any] = field(default_factory=dict)  # where an engine keeps it


@dataclass(frozen=True)
class Answer:
    """The answer of an earlier call as an argument of a later one: it goes from worker to worker."""

    call: int


class CallDied(Exception):  # noqa: N818
    """Workers died again and again at the same call."""

    def __init__(self, call: int, worker: int | None, deaths: int, detail: str) -> None:
        super().__init__(detail)
        self.call, self.worker, self.deaths, self.detail = call, worker, deaths, detail


class Engine(Protocol):
    """Workers of :class:`pullback.scale.work.Worker`, wherever they are.

    A worker that dies is replaced by a new one, to which all tasks and its unanswered calls are sent again: a call may
    be run more than once, so its result must not depend on earlier calls.
    """

    sends_answers: bool  # whether an Answer may be an argument: workers send to each other

    def start(self, workers: int, timeout: float) -> None:
        """Start the workers, or raise an error if they are not there in time."""

    def dump_code(self, *parts: Any) -> bytes | tuple[Any, ...]:
        """Return functions and objects as bytes that a worker can load, or as they are."""

    def send_task(self, task: Any) -> None:
        """Send a task to every worker, and later to those that replace one."""

    def call(self, worker: int, method: str, *args: object) -> int:
        """Ask a worker to run one of its methods; return the number of the call.  A Shared may be the last argument."""

    def wait(self, calls: Sequence[int]) -> list[Any]:
        """Return the answers of calls, in their order; raise CallDied for one that workers do not survive."""

    def wait_any(self, calls: Sequence[int]) -> int:
        """Return one of several calls that has its answer."""

    def describe(self) -> Mapping[str, object]:
        """Return what is known of the cluster: versions and nodes."""

    def stop(self) -> None:
        """End all workers."""


def forget_call(number: int, calls: dict[int, Any], answers: dict[int, Any]) -> None:
    """Let go of a call and of those whose answers it was given."""
    for x in calls.pop(number).given:
        if isinstance(x, Answer):
            forget_call(x.call, calls, answers)
    del answers[number]


def dump(x: object) -> bytes:
    """Return an object as bytes: by cloudpickle, where it is installed, also functions of a script or a notebook."""
    cloudpickle = sys.modules.get("cloudpickle") or _import_cloudpickle()
    try:
        text: bytes = (cloudpickle or pickle).dumps(x, protocol=pickle.HIGHEST_PROTOCOL)
        return text
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise WorkerError(
            f"Pool: the function or its data cannot be sent to a process: {error}. Define the function in a module, "
            "or install cloudpickle, which sends functions of a script or a notebook, too."
        ) from None


def _import_cloudpickle() -> Any:
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def dump_by_value(cloudpickle: Any, parts: Sequence[Any]) -> bytes:
    """Return functions and objects as bytes, with their modules, unless these are installed where workers find them."""
    for part in parts:
        for one in (part, *(part.list_structure() if hasattr(part, "list_structure") else ())):
            name = one.__module__ if hasattr(one, "__module__") else type(one).__module__
            module = sys.modules.get(name or "")
            file = getattr(module, "__file__", None) or "lib/python"
            is_installed = name.partition(".")[0] == "pullback" or "site-packages" in file or "lib/python" in file
            if not is_installed:
                cloudpickle.register_pickle_by_value(module)
    text: bytes = cloudpickle.dumps(tuple(parts))
    return text


@contextmanager
def set_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within a ``with`` block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def find_bytes(x: object) -> int:
    """Return how many bytes the arrays in lists and tuples have.

    >>> import numpy as np
    >>> find_bytes(([np.zeros(4), 1.0], np.zeros(2)))
    48
    """
    if isinstance(x, list | tuple):
        return sum(find_bytes(part) for part in x)
    return int(getattr(x, "nbytes", 0))
