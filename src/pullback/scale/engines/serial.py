"""The engine without workers: calls are run in this process, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context
from typing import Any

from pullback.scale.work import Worker

__all__ = ["SerialEngine"]


class SerialEngine:
    """Runs every call where it is made."""

    def __init__(self) -> None:
        self.worker = Worker()
        self.answers: list[Any] = []

    def start(self, workers: int, timeout: float) -> None:
        """Do nothing: there is nothing to start."""

    def learn(self, task: Any) -> None:
        self.worker.add(task)

    def call(self, worker: int, method: str, *given: object) -> int:
        # in a context of its own, as in a process: no transform that is under way follows what it computes
        self.answers.append(Context().run(getattr(self.worker, method), *given))
        return len(self.answers) - 1

    def wait(self, calls: Sequence[int]) -> list[Any]:
        found = [self.answers[i] for i in calls]
        self.answers = []
        return found

    def stop(self) -> None:
        self.worker = Worker()
