"""The engine for Dask: tasks on the workers of a running cluster, or of one that is started here."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, NamedTuple

from pullback.errors import WorkerError
from pullback.names.packages import import_package
from pullback.scale.engines.folder import Folder
from pullback.scale.engines.protocol import (
    MOST_DEATHS,
    ONE_THREAD,
    Answer,
    CallDied,
    Shared,
    dump_by_value,
    find_bytes,
    forget_call,
)
from pullback.scale.work import Task, Worker

# Instead of what Dask sets itself: its MALLOC_TRIM_THRESHOLD_ doubles the time of a gradient.
ENVIRONMENT = {name: int(value) for name, value in ONE_THREAD.items()}
MAX_SENT_BYTES = 2**16  # that go with a call; more are sent to all workers first
CHECK_SECONDS = 2.0  # between looks at who is there, while answers are waited for
WORKER = Worker()  # of a process of Dask


def _import_dask() -> tuple[Any, Any]:
    need, extra = "Pool(engine='dask') needs dask with distributed", "pullback[dask]"
    return import_package("dask", need, extra), import_package("distributed", need, extra)


def run_method(method: str, task: Task | None, *args: object) -> Any:
    """Run a method of the worker of this process, after giving it the task if it does not have it."""
    if task is None:
        return getattr(WORKER, method)(*args)
    WORKER.add(task)
    return getattr(WORKER, method)(task.key, *args)


def begin_worker(folder: str) -> None:
    """Let a crash of this process be written to a file of its own."""
    WORKER.begin(os.path.join(folder, f"crash{os.getpid()}"))


def forget_tasks(keys: Sequence[str]) -> None:
    """Remove the tasks of a closed pool from the worker of this process."""
    for key in keys:
        WORKER.forget(key)


class DaskCall(NamedTuple):
    """A call of a method that was submitted to Dask."""

    method: str
    given: tuple[Any, ...]


class DaskEngine:
    """Tasks of Dask; without an address a cluster is started on this machine, for this program alone.

    Calls are tasks and not methods of actors, which die with their worker: Dask runs a task again elsewhere.  Data that
    was sent to all workers and lost with the last of them is sent again.
    """

    sends_answers = True

    def __init__(self, address: object = None) -> None:
        self.dask, self.distributed = _import_dask()
        self.address = address
        self.cluster: Any = None
        self.client: Any = None
        self.folder: Folder | None = None  # of a cluster of its own
        self.tasks: dict[str, Shared] = {}
        self.calls: dict[int, DaskCall] = {}
        self.futures: dict[int, Any] = {}
        self.call_count = 0
        self.timeout = 60.0

    def start(self, workers: int, timeout: float) -> None:
        self.timeout = timeout
        if self.address is None:
            self.folder = Folder("dask")
            with self.dask.config.set({"distributed.nanny.pre-spawn-environ": ENVIRONMENT}):
                self.cluster = self.distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    local_directory=self.folder.path,
                    silence_logs=logging.CRITICAL,  # errors are raised here
                )
        try:
            self.client = self.distributed.Client(self.cluster or self.address, set_as_default=False, timeout=timeout)
            self.client.wait_for_workers(workers, timeout=timeout)
            if self.folder is not None:
                self.client.register_worker_callbacks(partial(begin_worker, self.folder.path))
        except (TimeoutError, OSError) as error:
            found = 0 if self.client is None else len(self.client.nthreads())
            self.stop()
            raise WorkerError(
                f"Pool: {workers} workers were not there within {timeout:g} s (start_timeout=): the cluster has "
                f"{found}. {error}"
            ) from None

    def dump_code(self, *parts: Any) -> bytes:
        return dump_by_value(sys.modules["cloudpickle"], parts)

    def send_task(self, task: Any) -> None:
        self.tasks[task.key] = Shared(task)

    def call(self, worker: int, method: str, *args: Any) -> int:
        self.call_count += 1
        self.calls[self.call_count] = DaskCall(
            method, args
        )  # Dask finds a worker: one that it is told might never come back
        self._submit(self.call_count)
        return self.call_count

    def _submit(self, number: int) -> None:
        method, args = self.calls[number]
        takes_task = bool(args) and isinstance(args[0], str) and args[0] in self.tasks
        task = self.tasks[args[0]] if takes_task else None
        self.futures[number] = self.client.submit(
            run_method,
            method,
            *(self._place(x) for x in (task, *args[takes_task:])),
            pure=False,
        )

    def _place(self, x: Any) -> Any:
        """Return an argument as Dask takes it: what is shared and large is sent to all workers once."""
        if isinstance(x, Answer):
            return self.futures[x.call]
        if not isinstance(x, Shared):
            return x
        if "dask" not in x.places:
            is_small = find_bytes(getattr(x.value, "items", x.value)) < MAX_SENT_BYTES
            x.places["dask"] = x.value if is_small else self.client.scatter([x.value], broadcast=True, hash=False)[0]
        return x.places["dask"]

    def wait(self, calls: Sequence[int]) -> list[Any]:
        for losses in range(MOST_DEATHS + 1):
            try:
                self._await(calls, "ALL_COMPLETED")
                answers = self.client.gather([self.futures[number] for number in calls])
                break
            except self.distributed.KilledWorker as error:
                number = next((n for n, future in self.futures.items() if future.key == error.task), calls[0])
                crash = "" if self.folder is None else self.folder.read_crash()
                raise CallDied(number, None, error.allowed_failures + 1, f"{error}\n{crash}".rstrip()) from None
            except CancelledError as error:  # what it was given is lost
                if losses == MOST_DEATHS:
                    raise CallDied(calls[0], None, losses + 1, str(error)) from None
                self._send_again()
        for number in calls:
            forget_call(number, self.calls, self.futures)
        return list(answers)

    def wait_any(self, calls: Sequence[int]) -> int:
        found = self._await(calls, "FIRST_COMPLETED")
        return next(n for n in calls if self.futures[n] in found)

    def _await(self, calls: Sequence[int], when: str) -> Any:
        """Return the futures that are done; look at times whether there are workers."""
        empty_since: float | None = None
        while True:
            try:
                with self.client.as_current():
                    futures = [self.futures[n] for n in calls]
                    return self.distributed.wait(futures, timeout=CHECK_SECONDS, return_when=when).done
            except TimeoutError:
                found = len(self.client.nthreads())
            if found:
                empty_since = None
            elif empty_since is None:
                empty_since = time.monotonic()
            elif time.monotonic() - empty_since > self.timeout:
                raise WorkerError(
                    f"Pool: all workers died, and the cluster has had none for {self.timeout:g} s (start_timeout=)."
                )

    def _send_again(self) -> None:
        """Send tasks and arguments again, and submit the calls that were lost with them."""
        for shared in (*self.tasks.values(), *(x for c in self.calls.values() for x in c.given)):
            if isinstance(shared, Shared):
                shared.places.pop("dask", None)
        for number in self.calls:
            self._submit(number)

    def describe(self) -> Mapping[str, object]:
        hosts = {address.rpartition(":")[0].rpartition("/")[2] for address in self.client.nthreads()}
        return {"Dask": self.distributed.__version__, "nodes": len(hosts), "addresses": ", ".join(sorted(hosts))}

    def stop(self) -> None:
        if self.client is not None:
            if self.cluster is None and self.tasks:
                self.client.run(forget_tasks, list(self.tasks))
            self.calls, self.futures, self.tasks = {}, {}, {}
            self.client.close()
        if self.cluster is not None:
            self.cluster.close()
        if self.folder is not None:
            self.folder.remove()
            self.folder = None
