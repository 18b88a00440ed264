"""The engine without workers: calls are run in this process, one after the other."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Any

from pullback.scale.engines.protocol import Shared
from pullback.scale.work import Worker


class SerialEngine:
    """Runs every call where it is made."""

    sends_answers = False

    def __init__(self) -> None:
        self.worker = Worker()
        self.answers: dict[int, Any] = {}
        self.call_count = 0

    def start(self, workers: int, timeout: float) -> None:
        """Do nothing: there is nothing to start."""

    def dump_code(self, *parts: Any) -> tuple[Any, ...]:
        """Return functions as they are, which need not be sent, and a copy of a model, which training changes."""
        return tuple(copy.deepcopy(part) if hasattr(part, "list_structure") else part for part in parts)

    def send_task(self, task: Any) -> None:
        self.worker.add(task)

    def call(self, worker: int, method: str, *args: object) -> int:
        # in a context of its own, as in a process: no transform that is under way follows what it computes
        self.call_count += 1
        values = [x.value if isinstance(x, Shared) else x for x in args]
        self.answers[self.call_count] = Context().run(getattr(self.worker, method), *values)
        return self.call_count

    def wait(self, calls: Sequence[int]) -> list[Any]:
        return [self.answers.pop(i) for i in calls]

    def wait_any(self, calls: Sequence[int]) -> int:
        return calls[0]

    def describe(self) -> Mapping[str, object]:
        return {"nodes": 1}

    def stop(self) -> None:
        self.worker, self.answers = Worker(), {}
