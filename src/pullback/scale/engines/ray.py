"""The engine for Ray: an actor for each worker, on a running cluster or on one that is started here."""

from __future__ import annotations

import os
import secrets
import socket
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pullback.errors import ArgumentError, WorkerError
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
    set_environment,
)
from pullback.scale.work import Worker

MAX_SENT_BYTES = 2**16  # that go with a call; more are put into Ray's store once
LOOPBACK = "127.0.0.1"
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # of this process's own clusters


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # it warns of the future otherwise
    return import_package("ray", "Pool(engine='ray') needs Ray", "pullback[ray]")


def _is_same_address(a: str, b: str) -> bool:
    """Return whether two addresses, host:port, are the same; hosts may be names.

    >>> _is_same_address("localhost:6379", "127.0.0.1:6379"), _is_same_address("127.0.0.1:6379", "127.0.0.1:6380")
    (True, False)
    """
    if a == b:
        return True
    (host, _, port), (other, _, its) = a.rpartition(":"), b.rpartition(":")
    try:
        return port == its and socket.gethostbyname(host) == socket.gethostbyname(other)
    except OSError:  # a name that is not known
        return False


class RayCall(NamedTuple):
    """A call of a method of an actor."""

    worker: int
    method: str
    given: tuple[Any, ...]


class RayEngine:
    """Actors of Ray; without an address Ray is started on this machine, for this program alone."""

    sends_answers = True

    def __init__(self, address: str | None = None) -> None:
        self.ray = _import_ray()
        self.address = address
        self.is_connected = False  # by this engine, and not by the program before
        self.folder: Folder | None = None  # of a cluster of its own
        self.actors: list[Any] = []
        self.tasks: list[Any] = []
        self.calls: dict[int, RayCall] = {}  # those whose answers were not taken
        self.references: dict[int, Any] = {}  # where the answers will be
        self.deaths: list[int] = []
        self.call_count = 0
        self.timeout = 60.0
        errors = self.ray.exceptions
        self.losses = (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError, errors.WorkerCrashedError)

    def start(self, workers: int, timeout: float) -> None:
        self.timeout = timeout
        if self.ray.is_initialized():
            self._check_address()
        else:
            self.is_connected = True
            if self.address is None:
                self._start_cluster(workers)
            else:
                self.ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        self.deaths = [0] * workers
        self.actors = [self._spawn() for _ in range(workers)]
        try:
            self.ray.get([self._begin(worker) for worker in range(workers)], timeout=timeout)
        except self.ray.exceptions.GetTimeoutError:
            free = self.ray.cluster_resources().get("CPU", 0)
            self.stop()
            raise WorkerError(
                f"Pool: {workers} workers were not there within {timeout:g} s (start_timeout=): the cluster has "
                f"{free:g} CPUs, and each worker needs a free one."
            ) from None

    def _check_address(self) -> None:
        """Refuse an address other than that of the cluster that the program is connected to: Ray has one at a time."""
        found = self.ray.get_runtime_context().gcs_address
        if self.address in (None, "auto") or _is_same_address(str(self.address), found):
            return
        raise ArgumentError(
            f"Pool: address={self.address!r} was given, but this program is connected to the Ray at {found}. Call "
            "ray.shutdown() first, or leave address= out to use that one."
        )

    def _start_cluster(self, workers: int) -> None:
        """Start Ray on this machine: on the loopback interface, with a token, its files where they are removed."""
        self.folder = Folder("ray")
        token = {} if "RAY_AUTH_MODE" in os.environ else TOKEN
        with set_environment({**ONE_THREAD, **token}), self._stay_on_loopback():
            self._read_token()
            self.ray.init(
                num_cpus=workers,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                _node_ip_address=LOOPBACK,
                _temp_dir=self.folder.path,
            )
        address = self.ray.util.get_node_ip_address()
        if address != LOOPBACK:
            warnings.warn(f"Pool: this version of Ray listens at {address}, not only at {LOOPBACK}.", stacklevel=5)

    def _read_token(self) -> None:
        """Let Ray read the variables of its token again: otherwise this process keeps those that it read first."""
        raylet = self.ray._raylet
        if hasattr(raylet, "AuthenticationTokenLoader"):
            raylet.Config.initialize("")  # before the token: a thread of Ray's that still ends may ask for it
            raylet.AuthenticationTokenLoader.instance().reset_cache()

    @contextmanager
    def _stay_on_loopback(self) -> Iterator[None]:
        """Make Ray keep the loopback address, which it replaces otherwise by that of the network."""
        constants = self.ray._private.ray_constants
        before = getattr(constants, "ENABLE_RAY_CLUSTER", True)
        constants.ENABLE_RAY_CLUSTER = False
        try:
            yield
        finally:
            constants.ENABLE_RAY_CLUSTER = before

    def _spawn(self) -> Any:
        """Start an actor; it is replaced here and not by Ray, which would not send it the tasks again.

        In a cluster of its own all processes have one thread for BLAS: those that Ray has ready are taken at once.
        """
        options = {"runtime_env": {"env_vars": ONE_THREAD}} if self.folder is None else {}
        return self.ray.remote(num_cpus=1, max_restarts=0, **options)(Worker).remote()

    def _begin(self, worker: int) -> Any:
        """Let an actor begin; return the reference of its answer."""
        crash_file = None if self.folder is None else self.folder.name_crash_file(worker)
        return self.actors[worker].begin.remote(crash_file)

    def dump_code(self, *parts: Any) -> bytes:
        return dump_by_value(self.ray.cloudpickle, parts)

    def send_task(self, task: Any) -> None:
        reference = self.ray.put(task)
        self.tasks.append(reference)
        for actor in self.actors:
            actor.add.remote(reference)

    def call(self, worker: int, method: str, *args: object) -> int:
        self.call_count += 1
        self.calls[self.call_count] = RayCall(worker, method, args)
        self._send(self.call_count)
        return self.call_count

    def _send(self, number: int) -> None:
        worker, method, args = self.calls[number]
        self.references[number] = getattr(self.actors[worker], method).remote(*map(self._place, args))

    def _place(self, x: Any) -> Any:
        """Return an argument as Ray takes it: what is shared and large is put into its store once."""
        if isinstance(x, Answer):
            return self.references[x.call]
        if not isinstance(x, Shared):
            return x
        if "ray" not in x.places:
            x.places["ray"] = x.value if find_bytes(x.value) < MAX_SENT_BYTES else self.ray.put(x.value)
        return x.places["ray"]

    def wait(self, calls: Sequence[int]) -> list[Any]:
        try:
            answers = self.ray.get([self.references[number] for number in calls])  # quicker than one by one
        except self.ray.exceptions.RayError:
            answers = [self._get(number) for number in calls]
        for number in calls:
            forget_call(number, self.calls, self.references)
        return list(answers)

    def wait_any(self, calls: Sequence[int]) -> int:
        by_reference = {self.references[number]: number for number in calls}
        ready, _ = self.ray.wait(list(by_reference), num_returns=1)
        return by_reference[ready[0]]

    def _get(self, number: int) -> Any:
        while True:
            try:
                answer = self.ray.get(self.references[number])
                self.deaths[self.calls[number].worker] = 0
                return answer
            except self.losses as error:
                self._recover(number, error)
            except self.ray.exceptions.RayTaskError as error:
                if not isinstance(error.cause, self.losses):
                    raise WorkerError(f"Pool: a worker cannot run what it was sent.\n{error}") from None
                self._recover(number, error.cause)

    def _recover(self, number: int, error: Any) -> None:
        """Replace the actor that died, and ask again what was lost with it."""
        dead = getattr(error, "actor_id", None)
        found = [i for i, actor in enumerate(self.actors) if actor._actor_id.hex() == dead]
        worker = found[0] if found else self.calls[number].worker
        self.deaths[worker] += 1
        if self.deaths[worker] > MOST_DEATHS:
            first = min((n for n, call in self.calls.items() if call.worker == worker), default=number)
            crash = "" if self.folder is None else self.folder.read_crash(worker)
            raise CallDied(first, worker, self.deaths[worker], f"{error}\n{crash}".rstrip())
        if found or not isinstance(error, self.ray.exceptions.RayActorError):
            self._replace(worker)
        lost: set[int] = set()
        for n, call in self.calls.items():  # in their order: those that are given answers come after these
            if call.worker == worker or any(isinstance(x, Answer) and x.call in lost for x in call.given):
                lost.add(n)
                self._send(n)

    def _replace(self, worker: int) -> None:
        self.ray.kill(self.actors[worker])
        self.actors[worker] = self._spawn()
        try:
            self.ray.get(self._begin(worker), timeout=self.timeout)
        except self.ray.exceptions.GetTimeoutError:
            raise WorkerError(
                f"Pool: worker {worker + 1} died and could not be replaced within {self.timeout:g} s (start_timeout=). "
                "The cluster has no free CPU for it."
            ) from None
        except self.losses:  # it died, too: the calls that are sent to it say so
            return
        for task in self.tasks:
            self.actors[worker].add.remote(task)

    def describe(self) -> Mapping[str, object]:
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        return {
            "Ray": self.ray.__version__,
            "nodes": len(nodes),
            "addresses": ", ".join(sorted({node["NodeManagerAddress"] for node in nodes})),
            "CPUs": f"{self.ray.cluster_resources().get('CPU', 0):g}",
        }

    def stop(self) -> None:
        if self.ray.is_initialized():
            for actor in self.actors:
                self.ray.kill(actor)
        self.actors, self.tasks, self.calls, self.references = [], [], {}, {}
        if self.is_connected:
            self.ray.shutdown()
            self._read_token()  # another cluster has none, or its own
            self.is_connected = False
        if self.folder is not None:
            self.folder.remove()
            self.folder = None
