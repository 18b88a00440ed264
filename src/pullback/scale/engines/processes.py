"""The engine of the standard library: a process for each worker, called through a pipe."""

from __future__ import annotations

import multiprocessing
import pickle
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import WorkerError
from pullback.scale.engines.folder import Folder
from pullback.scale.engines.pipe import Pipe, open_pipe
from pullback.scale.engines.protocol import (
    MOST_DEATHS,
    ONE_THREAD,
    CallDied,
    Shared,
    dump,
    set_environment,
)
from pullback.scale.work import Worker

MAX_PACKED_BYTES = 2**16  # of an array that is copied into a message
PLAIN_TYPES = frozenset("?bBhHiIlLqQefdFD")


class ProcessCall(NamedTuple):
    """A call of a method of a worker: its own bytes, and those that it shares with other calls."""

    number: int
    text: bytes
    shared: Shared | None


def dump_parts(x: object) -> list[Any]:
    """Return an object as the parts of a message: the bytes of pickle, and large arrays, which are not copied."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(pack(x), protocol=5, buffer_callback=buffers.append)
    return [text, *(buffer.raw() for buffer in buffers)]


def load_parts(parts: Sequence[Any]) -> Any:
    """Return the object of ``dump_parts``."""
    return unpack(*pickle.loads(parts[0], buffers=parts[1:]))


def pack(x: Any) -> tuple[bool, Any]:
    """Return whether ``x`` is a list of small arrays, and what to send: these as shapes, types and bytes.

    Pickle takes several times as long for an array as for the bytes in it.
    """
    if type(x) is list and all(map(_is_small_array, x)):
        return True, [(a.shape, a.dtype.char, bytearray(a.data)) for a in x]
    return False, x


def _is_small_array(x: Any) -> bool:
    """Return whether ``x`` is an array that its shape, the letter of its type and its bytes say all of."""
    if type(x) is not np.ndarray or x.nbytes > MAX_PACKED_BYTES or not x.flags.c_contiguous:
        return False
    return x.dtype.char in PLAIN_TYPES and x.dtype.isnative


def unpack(is_packed: bool, x: Any) -> Any:
    """Return what was packed.

    >>> unpack(*pack([np.ones(2), np.array(7), np.array(True)])), unpack(*pack("text"))
    ([array([1., 1.]), array(7), array(True)], 'text')
    """
    return [np.ndarray(*parts) for parts in x] if is_packed else x


def _serve(end: socket.socket, crash_file: str) -> None:
    """Answer calls until the other end is closed: the body of a worker's process."""
    pipe, worker, shared = Pipe(end), Worker(), None
    worker.begin(crash_file)
    parts: list[Any] = [b"ready"]
    while True:
        try:
            pipe.send(parts)
            text, *more = pipe.receive()
        except (EOFError, OSError):  # the program that asked has ended
            return
        method, args, last = pickle.loads(text)
        if more:
            shared = load_parts(more)
        if last is not None:
            args += (unpack(*last) if last[0] else shared,)
        answer = getattr(worker, method)(*args)
        # what a function of map returns may be of a class that only cloudpickle can send
        parts = [dump((False, answer))] if method == "call" else dump_parts(answer)


class Process:
    """A worker: its process, its pipe, the calls it has not answered, and what it was sent last."""

    def __init__(self, number: int, folder: Folder) -> None:
        self.number, self.folder = number, folder
        self.calls: deque[ProcessCall] = deque()  # the first one was sent, the others are sent after its answer
        self.deaths = 0  # since its last answer
        self.spawn()

    def spawn(self) -> None:
        """Start a process whose BLAS has one thread."""
        self.pipe, worker_end = open_pipe()
        self.shared: Shared | None = None
        with set_environment(ONE_THREAD):
            context = multiprocessing.get_context("spawn")
            self.process = context.Process(
                target=_serve, args=(worker_end.end, self.folder.name_crash_file(self.number)), daemon=True
            )
            self.process.start()
        worker_end.close()

    def is_ready(self, timeout: float) -> bool:
        """Return whether the process began to listen within a time; False if it died at once."""
        if not self.pipe.has_message(max(timeout, 0.0)):
            raise TimeoutError
        try:
            self.pipe.receive()
        except (EOFError, OSError):
            return False
        return True

    def add(self, call: ProcessCall) -> None:
        """Give the process a call, which is sent now, or after those that it has not answered."""
        self.calls.append(call)
        if len(self.calls) == 1:
            self.send_first()

    def send_first(self) -> None:
        """Send the first call: one at a time, as two ends that both write a long message would wait for ever."""
        _, text, shared = self.calls[0]
        parts: list[Any] = [text]
        if shared is not None and shared is not self.shared:
            self.shared = shared
            parts += _dump_shared(shared)
        try:
            self.pipe.send(parts)
        except OSError:  # it died: it is replaced when its answers are waited for
            return

    def describe_death(self) -> str:
        """Return how the process ended: its exit code, and the traceback of a crash, if it wrote one."""
        self.process.join()
        return f"exit code {self.process.exitcode}\n{self.folder.read_crash(self.number)}".rstrip()

    def end(self) -> None:
        """End the process: it ends by itself when its pipe is closed and it does not compute."""
        self.pipe.close()
        self.process.join(2.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _make_call(number: int, method: str, args: tuple[Any, ...], shared: Shared) -> ProcessCall:
    """Return a call with plain arguments, and one that other calls share.

    That is in its own bytes if it is a list of small arrays, and follows them otherwise.
    """
    if "packed" not in shared.places:
        shared.places["packed"] = pack(shared.value)
    last = shared.places["packed"]
    if last[0]:
        return ProcessCall(number, pickle.dumps((method, args, last), protocol=5), None)
    return ProcessCall(number, pickle.dumps((method, args, (False, None)), protocol=5), shared)


def _dump_shared(shared: Shared) -> list[Any]:
    if "parts" not in shared.places:
        shared.places["parts"] = dump_parts(shared.value)
    parts: list[Any] = shared.places["parts"]
    return parts


class ProcessEngine:
    """Processes of this machine, each with one thread for BLAS."""

    sends_answers = False

    def __init__(self) -> None:
        self.workers: list[Process] = []
        self.tasks: list[ProcessCall] = []
        self.answers: dict[int, Any] = {}
        self.call_count = 0
        self.timeout = 60.0
        self.folder = Folder("processes")

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

    def send_task(self, task: Any) -> None:
        call = ProcessCall(-1, dump(("add", (task,), None)), None)
        self.tasks.append(call)
        for worker in self.workers:
            worker.add(call)

    def call(self, worker: int, method: str, *args: object) -> int:
        self.call_count += 1
        if args and isinstance(args[-1], Shared):
            call = _make_call(self.call_count, method, args[:-1], args[-1])
        else:
            call = ProcessCall(self.call_count, dump((method, args, None)), None)
        self.workers[worker].add(call)
        return self.call_count

    def wait(self, calls: Sequence[int]) -> list[Any]:
        while not self.answers.keys() >= {*calls}:
            if [worker for worker in self.workers if len(worker.calls) > 1]:
                self._receive()  # who is first gets its next call first
                continue
            for worker in self.workers:
                if worker.calls:
                    self._take(worker)
        return [self.answers.pop(number) for number in calls]

    def wait_any(self, calls: Sequence[int]) -> int:
        while not (found := self.answers.keys() & set(calls)):
            self._receive()
        return min(found)

    def _receive(self) -> None:
        """Take the answers that are there, and send the next calls."""
        ends = {worker.pipe.end: worker for worker in self.workers if worker.calls}
        for end in wait(list(ends)):
            self._take(ends[end])  # type: ignore[index]

    def _take(self, worker: Process) -> None:
        """Take the next answer of a worker, and send its next call."""
        try:
            parts = worker.pipe.receive()
        except (EOFError, OSError):
            self._replace(worker)
            return
        call = worker.calls.popleft()
        if call.number >= 0:
            worker.deaths = 0
            self.answers[call.number] = load_parts(parts)
        if worker.calls:
            worker.send_first()

    def _replace(self, worker: Process) -> None:
        """Start new processes for one that died and the others that did, and send them again what was not answered."""
        dead = [w for w in self.workers if w is worker or (w.calls and not w.process.is_alive())]
        started = dead
        while started:
            for w in started:
                self._count_death(w)
                w.pipe.close()
                w.spawn()
            end = time.monotonic() + self.timeout
            started = [w for w in started if not self._await(w, end)]
        for w in dead:
            pending = [call for call in w.calls if call.number >= 0]
            w.calls.clear()
            for call in (*self.tasks, *pending):
                w.add(call)

    def _count_death(self, worker: Process) -> None:
        """Note that a worker died; an error if it did so again and again."""
        worker.deaths += 1
        detail = worker.describe_death()
        if worker.deaths > MOST_DEATHS:
            first = next((call.number for call in worker.calls if call.number >= 0), -1)
            raise CallDied(first, worker.number, worker.deaths, detail)

    def describe(self) -> Mapping[str, object]:
        return {"nodes": 1}

    def stop(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers, self.tasks, self.answers = [], [], {}
        self.folder.remove()
