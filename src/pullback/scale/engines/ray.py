"""The engine of Ray: an actor for each worker, on a cluster that runs already or on one that is started here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pullback.errors import MissingPackageError, WorkerError
from pullback.scale.engines.protocol import send_module_by_value
from pullback.scale.work import Worker

__all__ = ["RayEngine"]

MOST_DEATHS = 3  # in a row, of actors that were asked the same
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # it warns of the future otherwise
    try:
        import ray
    except ImportError:
        raise MissingPackageError(
            "Pool(engine='ray') needs Ray, which is not installed. Install it with: pip install 'pullback[ray]'"
        ) from None
    return ray


class RayEngine:
    """Actors of Ray; without an address Ray is started on this machine, for this program alone."""

    def __init__(self, address: str | None = None) -> None:
        self.ray = _import_ray()
        self.address = address
        self.is_own = False
        self.actors: list[Any] = []
        self.tasks: list[Any] = []
        self.waiting: list[dict[int, tuple[str, tuple[object, ...]]]] = []  # what each actor has not answered
        self.references: dict[int, tuple[int, Any]] = {}  # of a call: its worker, and where the answer will be
        self.deaths: list[int] = []
        self.asked = 0
        self.stored: tuple[Any, Any] | None = None  # what was sent last, and where Ray keeps it

    def start(self, workers: int, timeout: float) -> None:
        if not self.ray.is_initialized():
            self.is_own = self.address is None
            options = {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            self.ray.init(address=self.address, log_to_driver=False, **(options if self.is_own else {}))
        self.waiting = [{} for _ in range(workers)]
        self.deaths = [0] * workers
        self.actors = [self._spawn() for _ in range(workers)]
        try:
            self.ray.get([actor.call.remote(abs, 1) for actor in self.actors], timeout=timeout)
        except self.ray.exceptions.GetTimeoutError:
            self.stop()
            raise WorkerError(
                f"Pool: {workers} workers were not there within {timeout:g} s (start_timeout=). "
                "Has the cluster as many free CPUs?"
            ) from None

    def _spawn(self) -> Any:
        """Start an actor; it is replaced here and not by Ray, which would not tell it the tasks again."""
        return self.ray.remote(num_cpus=1, max_restarts=0, runtime_env={"env_vars": ONE_THREAD})(Worker).remote()

    def learn(self, task: Any) -> None:
        send_module_by_value(self.ray.cloudpickle, task.function)
        kept = self.ray.put(task)
        self.tasks.append(kept)
        for actor in self.actors:
            actor.add.remote(kept)

    def call(self, worker: int, method: str, *given: object) -> int:
        self.asked += 1
        self.waiting[worker][self.asked] = method, (*given[:-1], self._store(given[-1]))
        self._send(worker, self.asked)
        return self.asked

    def _store(self, x: Any) -> Any:
        """Return where Ray keeps an object; that of the call before is known, so that parameters go out once."""
        if self.stored is None or self.stored[0] is not x:
            self.stored = x, self.ray.put(x)
        return self.stored[1]

    def _send(self, worker: int, number: int) -> None:
        method, given = self.waiting[worker][number]
        self.references[number] = worker, getattr(self.actors[worker], method).remote(*given)

    def wait(self, calls: Sequence[int]) -> list[Any]:
        answers: dict[int, Any] = {}
        while len(answers) < len(calls):
            number = next(i for i in calls if i not in answers)
            worker, reference = self.references[number]
            try:
                answers[number] = self.ray.get(reference)
            except self.ray.exceptions.RayActorError:
                self._replace(worker)
                continue
            self.deaths[worker] = 0
            del self.waiting[worker][number], self.references[number]
        return [answers[number] for number in calls]

    def _replace(self, worker: int) -> None:
        """Start a new actor for one that died, and ask it again what that one had not answered."""
        self.deaths[worker] += 1
        if self.deaths[worker] > MOST_DEATHS:
            self.stop()
            raise WorkerError(
                f"Pool: worker {worker + 1} died {MOST_DEATHS + 1} times in a row at the same call. "
                "What it computes ends the process: run it with engine='serial' to see where."
            )
        self.actors[worker] = self._spawn()
        for task in self.tasks:
            self.actors[worker].add.remote(task)
        for number in self.waiting[worker]:
            self._send(worker, number)

    def stop(self) -> None:
        for actor in self.actors:
            self.ray.kill(actor)
        self.actors, self.stored = [], None
        if self.is_own and self.ray.is_initialized():
            self.ray.shutdown()
