"""The engine of the standard library: a process for each worker, called through a pipe."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import pickle
import shutil
import struct
import time
from collections import deque
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import WorkerError
from pullback.scale.engines.protocol import (
    MOST_DEATHS,
    ONE_THREAD,
    CallDied,
    Shared,
    dump,
    make_folder,
    set_environment,
)
from pullback.scale.work import Worker

__all__ = ["ProcessEngine"]


# How a call is given what it shares with other calls: not at all, as the call before it had it, after its own bytes in
# the same message, or in a message that follows, which is not copied once more.
NOTHING, SAME, HERE, NEXT = range(4)
HEAD = struct.Struct("<BQ")  # of a message: one of these, and how many bytes its own are
MAX_COPIED_BYTES = 2**16  # into a message: less time than another message takes
PLAIN_TYPES = frozenset("?bBhHiIlLqQefdFD")


class Call(NamedTuple):
    """What a worker is asked: its own bytes, and what it shares with other calls."""

    number: int
    text: bytes
    shared: Shared | None


def dump_message(method: str, x: object) -> bytes:
    """Return a call or its answer as bytes: plain pickle is quicker, and enough for all but the objects of map."""
    return dump(x) if method == "call" else pickle.dumps(x, protocol=pickle.HIGHEST_PROTOCOL)


def pack(x: Any) -> tuple[bool, Any]:
    """Return whether ``x`` is a list of small arrays, and what to send: these as shapes, types and bytes.

    Pickle takes several times as long for an array as for the bytes in it.
    """
    if type(x) is list and all(map(_is_small_array, x)):
        return True, [(a.shape, a.dtype.char, bytearray(a.data)) for a in x]
    return False, x


def _is_small_array(x: Any) -> bool:
    """Return whether ``x`` is an array that its shape, the letter of its type and its bytes say all of."""
    if type(x) is not np.ndarray or x.nbytes > MAX_COPIED_BYTES or not x.flags.c_contiguous:
        return False
    return x.dtype.char in PLAIN_TYPES and x.dtype.isnative


def unpack(is_packed: bool, x: Any) -> Any:
    """Return what was packed.

    >>> unpack(*pack([np.ones(2), np.array(7), np.array(True)])), unpack(*pack("text"))
    ([array([1., 1.]), array(7), array(True)], 'text')
    """
    return [np.ndarray(*parts) for parts in x] if is_packed else x


def _serve(pipe: Connection, crash_file: str) -> None:
    """Answer calls until the other end is closed: the body of a worker's process."""
    faulthandler.enable(open(crash_file, "w"))  # noqa: SIM115  # it stays open: a crash writes its traceback there
    worker, shared = Worker(), None
    pipe.send_bytes(b"ready")
    while True:
        try:
            message = memoryview(pipe.recv_bytes())
            kind, size = HEAD.unpack_from(message)
            end = HEAD.size + size
            if kind >= HERE:
                shared = unpack(*pickle.loads(message[end:] if kind == HERE else pipe.recv_bytes()))
        except (EOFError, OSError):
            return
        number, method, given = pickle.loads(message[HEAD.size : end])
        answer = getattr(worker, method)(*given, *((shared,) if kind else ()))
        try:
            pipe.send_bytes(dump_message(method, (number, *pack(answer))))
        except OSError:  # the program that asked has ended
            return


class Process:
    """A worker: its process, its pipe, the calls it has not answered, and what it was sent last."""

    def __init__(self, number: int, folder: str) -> None:
        self.number, self.crash_file = number, os.path.join(folder, f"crash{number}")
        self.calls: deque[Call] = deque()  # the first one was sent, the others are sent after its answer
        self.deaths = 0  # since its last answer
        self.spawn()

    def spawn(self) -> None:
        """Start a process whose BLAS has one thread."""
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.shared: Shared | None = None
        with set_environment(ONE_THREAD):
            self.process = context.Process(target=_serve, args=(there, self.crash_file), daemon=True)
            self.process.start()
        there.close()

    def is_ready(self, timeout: float) -> bool:
        """Return whether the process began to listen within a time; False if it died at once."""
        if not self.pipe.poll(max(timeout, 0.0)):
            raise TimeoutError
        try:
            self.pipe.recv_bytes()
        except (EOFError, OSError):
            return False
        return True

    def add(self, call: Call) -> None:
        """Ask the process, now or after the calls that it has."""
        self.calls.append(call)
        if len(self.calls) == 1:
            self.send_first()

    def send_first(self) -> None:
        """Send the first call: one at a time, as two ends that both write a long message would wait for ever."""
        _, own, shared = self.calls[0]
        more = b"" if shared is None or shared is self.shared else _dump_shared(shared)
        kind = NOTHING if shared is None else SAME if not more else HERE if len(more) < MAX_COPIED_BYTES else NEXT
        self.shared = shared or self.shared
        try:
            self.pipe.send_bytes(b"".join((HEAD.pack(kind, len(own)), own, more if kind == HERE else b"")))
            if kind == NEXT:
                self.pipe.send_bytes(more)
        except OSError:  # it died: it is replaced when its answers are waited for
            return

    def describe_death(self) -> str:
        """Return how the process ended: its exit code, and the traceback of a crash, if it wrote one."""
        self.process.join()
        with open(self.crash_file) as file:
            text = file.read().strip()
        return f"exit code {self.process.exitcode}" + (f"\n{text}" if text else "")

    def end(self) -> None:
        """End the process: it ends by itself when its pipe is closed and it does not compute."""
        self.pipe.close()
        self.process.join(2.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _dump_shared(shared: Shared) -> bytes:
    if "text" not in shared.places:
        shared.places["text"] = pickle.dumps(pack(shared.value), protocol=pickle.HIGHEST_PROTOCOL)
    text: bytes = shared.places["text"]
    return text


class ProcessEngine:
    """Processes of this machine, each with one thread for BLAS."""

    sends_answers = False

    def __init__(self) -> None:
        self.workers: list[Process] = []
        self.tasks: list[Call] = []
        self.answers: dict[int, Any] = {}
        self.asked = 0
        self.timeout = 60.0
        self.folder = make_folder("processes")

    def start(self, workers: int, timeout: float) -> None:
        self.timeout = timeout
        self.workers = [Process(i, self.folder) for i in range(workers)]
        end = time.monotonic() + timeout
        for worker in self.workers:
            if not self._await(worker, end):
                self.stop()
                raise WorkerError(
                    f"Pool: the process of worker {worker.number + 1} ended while it started. In a script, make the "
                    "pool below if __name__ == '__main__':, because the processes import the script."
                )

    def _await(self, worker: Process, end: float) -> bool:
        try:
            return worker.is_ready(end - time.monotonic())
        except TimeoutError:
            self.stop()
            raise WorkerError(
                f"Pool: worker {worker.number + 1} did not start within {self.timeout:g} s (start_timeout=)."
            ) from None

    def dump_code(self, *parts: Any) -> bytes:
        return dump(parts)

    def learn(self, task: Any) -> None:
        call = Call(-1, dump((-1, "add", (task,))), None)
        self.tasks.append(call)
        for worker in self.workers:
            worker.add(call)

    def call(self, worker: int, method: str, *given: object) -> int:
        self.asked += 1
        shared = given[-1] if given and isinstance(given[-1], Shared) else None
        plain = given if shared is None else given[:-1]
        self.workers[worker].add(Call(self.asked, dump_message(method, (self.asked, method, plain)), shared))
        return self.asked

    def wait(self, calls: Sequence[int]) -> list[Any]:
        while any(number not in self.answers for number in calls):
            busy = [worker for worker in self.workers if worker.calls]
            if all(len(worker.calls) == 1 for worker in busy):  # no one waits for its next call
                for worker in busy:
                    self._take(worker)
            else:
                self._receive()
        return [self.answers.pop(number) for number in calls]

    def wait_any(self, calls: Sequence[int]) -> int:
        while not (found := self.answers.keys() & set(calls)):
            self._receive()
        return min(found)

    def _receive(self) -> None:
        """Take the answers that are there, and send the next calls."""
        pipes = {worker.pipe: worker for worker in self.workers if worker.calls}
        for pipe in wait(list(pipes)):
            self._take(pipes[pipe])  # type: ignore[index]

    def _take(self, worker: Process) -> None:
        """Take the next answer of a worker, and send its next call."""
        try:
            number, *answer = pickle.loads(worker.pipe.recv_bytes())
        except (EOFError, OSError):
            self._replace(worker)
            return
        worker.calls.popleft()
        if number >= 0:
            worker.deaths = 0
            self.answers[number] = unpack(*answer)
        if worker.calls:
            worker.send_first()

    def _replace(self, worker: Process) -> None:
        """Start a new process for one that died, and ask it again what that one had not answered."""
        asked = [call for call in worker.calls if call.number >= 0]
        while True:
            worker.deaths += 1
            detail = worker.describe_death()
            if worker.deaths > MOST_DEATHS:
                raise CallDied(asked[0].number if asked else -1, worker.number, worker.deaths, detail)
            worker.pipe.close()
            worker.spawn()
            if self._await(worker, time.monotonic() + self.timeout):
                break
        worker.calls.clear()
        for call in (*self.tasks, *asked):
            worker.add(call)

    def describe(self) -> Mapping[str, object]:
        return {"nodes": 1}

    def stop(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers, self.tasks, self.answers = [], [], {}
        shutil.rmtree(self.folder, ignore_errors=True)
