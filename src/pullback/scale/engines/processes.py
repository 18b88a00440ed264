"""The engine of the standard library: a process for each worker, asked through a pipe."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from pullback.errors import WorkerError
from pullback.scale.work import Worker

__all__ = ["ProcessEngine"]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MOST_DEATHS = 3  # in a row, of workers that were asked the same


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


def _serve(pipe: Connection) -> None:
    """Answer calls until the other end is closed: the body of a worker's process."""
    worker = Worker()
    pipe.send_bytes(b"ready")
    while True:
        try:
            number, method, given = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        pipe.send_bytes(dump((number, getattr(worker, method)(*given))))


class ProcessEngine:
    """Processes of this machine, each with one thread for BLAS."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self.processes: list[Any] = []
        self.pipes: list[Connection] = []
        self.tasks: list[bytes] = []
        self.waiting: list[deque[tuple[int, bytes]]] = []  # what each worker was asked and has not answered
        self.deaths: list[int] = []  # of each worker since its last answer
        self.answers: dict[int, Any] = {}
        self.asked = 0
        self.timeout = 60.0

    def start(self, workers: int, timeout: float) -> None:
        self.timeout = timeout
        self.waiting = [deque() for _ in range(workers)]
        self.deaths = [0] * workers
        for _ in range(workers):
            process, pipe = self._spawn()
            self.processes.append(process)
            self.pipes.append(pipe)
        end = time.monotonic() + timeout
        for i, pipe in enumerate(self.pipes):
            self._await_ready(i, pipe, end)

    def _spawn(self) -> tuple[Any, Connection]:
        """Start a process whose BLAS has one thread: the number of threads changes the last bits of products."""
        here, there = self.context.Pipe()
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))
        try:
            process = self.context.Process(target=_serve, args=(there,), daemon=True)
            process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        there.close()
        return process, here

    def _await_ready(self, worker: int, pipe: Connection, end: float) -> None:
        if not pipe.poll(max(end - time.monotonic(), 0.0)):
            self.stop()
            raise WorkerError(f"Pool: worker {worker + 1} did not start within {self.timeout:g} s (start_timeout=).")
        try:
            pipe.recv_bytes()
        except EOFError:
            self.stop()
            raise WorkerError(
                f"Pool: the process of worker {worker + 1} ended while it started. In a script, make the pool below "
                "if __name__ == '__main__':, because the processes import the script."
            ) from None

    def learn(self, task: Any) -> None:
        text = dump((-1, "add", (task,)))
        self.tasks.append(text)
        for i in range(len(self.pipes)):
            self._send(i, text)

    def call(self, worker: int, method: str, *given: object) -> int:
        self.asked += 1
        text = dump((self.asked, method, given))
        self.waiting[worker].append((self.asked, text))
        self._send(worker, text)
        return self.asked

    def _send(self, worker: int, text: bytes) -> None:
        try:
            self.pipes[worker].send_bytes(text)
        except OSError:  # it died: it is replaced when its answers are waited for
            return

    def wait(self, calls: Sequence[int]) -> list[Any]:
        missing = {*calls} - self.answers.keys()
        while missing:
            for ready in wait(self.pipes):
                worker = self.pipes.index(ready)  # type: ignore[arg-type]
                try:
                    number, answer = pickle.loads(self.pipes[worker].recv_bytes())
                except (EOFError, OSError):
                    self._replace(worker)
                    continue
                if number >= 0:
                    self.waiting[worker].popleft()
                    self.deaths[worker] = 0
                    self.answers[number] = answer
                    missing.discard(number)
        return [self.answers.pop(number) for number in calls]

    def _replace(self, worker: int) -> None:
        """Start a new process for one that died, and ask it again what that one had not answered."""
        self.deaths[worker] += 1
        code = self.processes[worker].exitcode
        if self.deaths[worker] > MOST_DEATHS:
            self.stop()
            raise WorkerError(
                f"Pool: worker {worker + 1} died {self.deaths[worker]} times in a row at the same call (exit code "
                f"{code}). What it computes ends the process: run it with engine='serial' to see where."
            )
        self.pipes[worker].close()
        self.processes[worker].join()
        self.processes[worker], self.pipes[worker] = self._spawn()
        self._await_ready(worker, self.pipes[worker], time.monotonic() + self.timeout)
        for text in [*self.tasks, *(text for _, text in self.waiting[worker])]:
            self._send(worker, text)

    def stop(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(2.0)
            if process.is_alive():
                process.kill()
                process.join()
        self.processes, self.pipes, self.tasks = [], [], []
