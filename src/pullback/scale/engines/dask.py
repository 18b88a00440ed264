"""The engine of Dask: tasks on the workers of a cluster that runs already or of one that is started here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from pullback.errors import MissingPackageError, WorkerError
from pullback.scale.engines.protocol import send_module_by_value
from pullback.scale.work import Task, Worker

__all__ = ["DaskEngine"]

# Without MALLOC_TRIM_THRESHOLD_, which Dask sets otherwise and which doubles the time of a gradient.
ENVIRONMENT = {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1, "MKL_NUM_THREADS": 1}
WORKER = Worker()  # of a process of Dask


def _import_dask() -> tuple[Any, Any]:
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingPackageError(
            "Pool(engine='dask') needs dask and distributed, which are not installed. Install them with: "
            "pip install 'pullback[dask]'"
        ) from None
    return dask, distributed


def run_method(method: str, task: Task | None, *given: object) -> Any:
    """Run a method of the worker of this process, which is told the task if it does not know it."""
    if task is None:
        return getattr(WORKER, method)(*given)
    if WORKER.tasks.get(task.number) is not task:
        WORKER.add(task)
    return getattr(WORKER, method)(task.number, *given)


def _give(x: object) -> object:
    return x


class DaskEngine:
    """Tasks of Dask; without an address a cluster is started on this machine, for this program alone.

    Calls are tasks and not methods of actors, which die with their worker: Dask runs a task again elsewhere.
    """

    def __init__(self, address: str | None = None) -> None:
        self.dask, self.distributed = _import_dask()
        self.address = address
        self.cluster: Any = None
        self.client: Any = None
        self.tasks: dict[int, Any] = {}
        self.futures: dict[int, Any] = {}
        self.asked = 0
        self.stored: tuple[Any, Any] | None = None

    def start(self, workers: int, timeout: float) -> None:
        with self.dask.config.set({"distributed.nanny.pre-spawn-environ": ENVIRONMENT}):
            if self.address is None:
                self.cluster = self.distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
                )
            self.client = self.distributed.Client(self.cluster or self.address, set_as_default=False)
        try:
            self.client.wait_for_workers(workers, timeout=timeout)
        except TimeoutError:
            self.stop()
            raise WorkerError(
                f"Pool: {workers} workers were not there within {timeout:g} s (start_timeout=). "
                "Has the cluster as many?"
            ) from None

    def learn(self, task: Any) -> None:
        send_module_by_value(sys.modules["cloudpickle"], task.function)
        self.tasks[task.number] = self.client.submit(_give, task, pure=False)

    def call(self, worker: int, method: str, *given: Any) -> int:
        self.asked += 1
        if method == "call":
            future = self.client.submit(run_method, method, None, *given, pure=False)
        else:
            number, *others, arrays = given
            future = self.client.submit(
                run_method, method, self.tasks[number], *others, self._store(arrays), pure=False
            )
        self.futures[self.asked] = future
        return self.asked

    def _store(self, x: Any) -> Any:
        """Return a task that gives an object; that of the call before is known, so that parameters go out once."""
        if self.stored is None or self.stored[0] is not x:
            self.stored = x, self.client.submit(_give, x, pure=False)
        return self.stored[1]

    def wait(self, calls: Sequence[int]) -> list[Any]:
        try:
            return [self.futures.pop(number).result() for number in calls]
        except self.distributed.KilledWorker as error:
            self.stop()
            raise WorkerError(
                f"Pool: workers died again and again at the same call ({error}). What it computes ends the process: "
                "run it with engine='serial' to see where."
            ) from None

    def stop(self) -> None:
        self.futures, self.tasks, self.stored = {}, {}, None
        if self.client is not None:
            self.client.close()
        if self.cluster is not None:
            self.cluster.close()
