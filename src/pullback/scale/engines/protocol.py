"""What an engine is: workers that are called by number; and what engines share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Engine", "send_module_by_value"]


class Engine(Protocol):
    """Workers of :class:`pullback.scale.work.Worker`, wherever they are.

    A worker that dies is replaced by a new one that is told all tasks again, and what it was asked is asked again: a
    call may be run more than once, so that what workers do must not depend on how often.
    """

    def start(self, workers: int, timeout: float) -> None:
        """Start the workers, or raise an error if they are not there in time."""

    def learn(self, task: Any) -> None:
        """Tell a task to every worker, and to those that will replace one."""

    def call(self, worker: int, method: str, *given: object) -> int:
        """Ask a worker to run one of its methods; return the number of the call."""

    def wait(self, calls: Sequence[int]) -> list[Any]:
        """Return the answers of calls, in their order."""

    def stop(self) -> None:
        """End all workers."""


def send_module_by_value(cloudpickle: Any, function: Callable[..., Any]) -> None:
    """Let the module of a function be sent with it, unless it is installed where workers find it."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    if module is not None and file is not None and not any(part in file for part in ("site-packages", "lib/python")):
        cloudpickle.register_pickle_by_value(module)
