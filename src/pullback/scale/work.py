"""Workers: they compute sums, gradients of sums to any order, steps of training, and calls, for shards."""

from __future__ import annotations

import cmath
import faulthandler
import os
import pickle
import platform
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pullback.compiler.api import compile as compile_function
from pullback.core import tree
from pullback.core.tensor import Tensor
from pullback.core.variable import Recorder
from pullback.diagnostics.nans import diagnose
from pullback.errors import CapturedError, DataError, PullbackError, WorkerError
from pullback.scale.node import Kind
from pullback.scale.replica import Replica, ReplicaStep, take_rows
from pullback.scale.shards import count_rows
from pullback.scale.sums import Failure, Terms, add_range, add_terms
from pullback.transforms.linear import vjp

Arrays = Sequence[Any]


@dataclass(frozen=True)
class Task:
    """A function of parameters and a shard, or a model, as it is sent to the workers once."""

    key: str
    code: bytes | tuple[Any, ...]  # the function or the model, and the function that loads a shard
    items: Sequence[Any]  # what shards are loaded from
    names: Sequence[str]  # of the shards
    structure: Any = None  # of the parameters: a tree of anything
    is_compiled: bool = False
    checks_nans: bool = False
    held: int = 1  # shards that stay in memory


class Worker:
    """A worker: the tasks that it was sent, its programs, and the shards that it holds."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.codes: dict[str, Any] = {}
        self.programs: dict[tuple[str, tuple[int, ...]], Callable[..., Any]] = {}
        self.replicas: dict[str, Replica] = {}
        self.shards: OrderedDict[tuple[str, int], Any] = OrderedDict()  # the latest ones

    def begin(self, crash_file: str | None = None) -> None:
        """Prepare for calls: a crash of this process is written to a file, if one is given."""
        if crash_file is not None:
            self.crash_file = open(crash_file, "w")  # noqa: SIM115  # it stays open
            faulthandler.enable(self.crash_file)

    def add(self, task: Task) -> None:
        """Store a task, unless the worker has it."""
        self.tasks.setdefault(task.key, task)

    def forget(self, key: str) -> None:
        """Remove a task, and what was made for it."""
        for table in (self.tasks, self.codes, self.replicas):
            table.pop(key, None)
        self.programs = {k: program for k, program in self.programs.items() if k[0] != key}
        self.shards = OrderedDict((k, data) for k, data in self.shards.items() if k[0] != key)

    # ---- calls

    def differentiate(self, key: str, start: int, stop: int, counts: tuple[int, ...], arrays: Arrays) -> Any:
        """Return what a range of shards adds to the sum, or to a derivative of it; a Failure if that fails."""
        return add_range(partial(self._try, key, self._differentiate, counts, arrays), start, stop)

    def differentiate_parts(self, key: str, shard: int, kinds: Sequence[Kind], own: Arrays, whole: Arrays) -> Any:
        """Return a derivative of what one shard gives, from arrays of its own and those of all shards."""
        mine, all_ = iter(own), iter(whole)
        arrays = [next(mine) if kind == "parts" else next(all_) for kind in kinds]
        return self._try(key, self._differentiate, list_orders(kinds), arrays, shard)

    def call(self, key: str, item: Any) -> Any:
        """Return what a function gives for an item; a Failure if it raises."""
        try:
            return self._get_code(self.tasks[key])[0](item)
        except Exception as error:
            return _make_failure(repr(item)[:200], error)

    def peek(self, key: str, shard: int) -> Any:
        """Return the number of rows of a shard, and the first one."""
        return self._try(key, self._peek, shard)

    def train(self, key: str, start: int, stop: int, step: ReplicaStep) -> Any:
        """Return what a range of shards adds to losses, statistics, gradients and states of a step of training."""
        return add_range(partial(self._try, key, self._train, step), start, stop)

    def evaluate(self, key: str, start: int, stop: int, step: ReplicaStep) -> Any:
        """Return what a range of shards adds to losses and statistics of an evaluation."""
        return add_range(partial(self._try, key, self._evaluate, step), start, stop)

    def explain_nan(self, key: str, shard: int, step: ReplicaStep) -> Any:
        """Return where a NaN or infinity came from in a step; None if this shard gives none."""
        return self._try(key, self._explain_nan, step, shard)

    @staticmethod
    def add_up(a: Terms, b: Terms) -> Any:
        """Return the sum of what two workers gave."""
        return add_terms(a, b)

    # ---- parts of them

    def _try(self, key: str, compute: Callable[..., Any], *args: Any) -> Any:
        """Return what is computed of a shard, whose number is the last argument; a Failure if that raises an error."""
        task, shard = self.tasks[key], args[-1]
        try:
            return compute(task, self._load(task, shard), *args)
        except _NanFound as found:
            return Failure(task.names[shard], f"a value is not finite.\n{found}", "", _find_place(), is_nan=True)
        except Exception as error:
            return _make_failure(task.names[shard], error)

    def _peek(self, task: Task, data: Any, shard: int) -> Any:
        return count_rows(data), take_rows(data, slice(0, 1))

    def _train(self, task: Task, data: Any, step: ReplicaStep, shard: int) -> Any:
        return self._get_replica(task).train(shard, data, step)

    def _evaluate(self, task: Task, data: Any, step: ReplicaStep, shard: int) -> Any:
        return self._get_replica(task).evaluate(data, step)

    def _explain_nan(self, task: Task, data: Any, step: ReplicaStep, shard: int) -> Any:
        return self._get_replica(task).explain_nan(shard, data, step)

    def _get_code(self, task: Task) -> Any:
        """Return the function or model of a task, and the function that loads its shards."""
        if task.key not in self.codes:
            try:
                self.codes[task.key] = pickle.loads(task.code) if isinstance(task.code, bytes) else task.code
            except ImportError as error:
                raise WorkerError(
                    f"the worker cannot import what the function needs: {error}. Install it where the workers run, or "
                    "define the function in the script itself."
                ) from None
        return self.codes[task.key]

    def _load(self, task: Task, shard: int) -> Any:
        """Return the data of a shard; the latest ones stay in memory."""
        key = task.key, shard
        if key not in self.shards:
            load = self._get_code(task)[1]
            while len(self.shards) >= task.held:
                self.shards.popitem(last=False)
            self.shards[key] = load(task.items[shard])
        self.shards.move_to_end(key)
        return self.shards[key]

    def _get_replica(self, task: Task) -> Replica:
        if task.key not in self.replicas:
            self.replicas[task.key] = Replica(self._get_code(task)[0])
        return self.replicas[task.key]

    def _differentiate(self, task: Task, data: Any, counts: tuple[int, ...], arrays: Arrays, shard: int) -> list[Any]:
        program = self.programs.get((task.key, counts)) or self._make_program(task, counts)
        results = [np.asarray(y.numpy() if isinstance(y, Tensor) else y) for y in program(data, *arrays)]
        if task.checks_nans and not all(map(_is_finite, results)):
            self._explain(task, data, arrays)
        return results

    def _make_program(self, task: Task, counts: tuple[int, ...]) -> Callable[..., Any]:
        """Return the function of a shard and arrays that gives a derivative, compiled where that can be."""
        derivative = make_derivative(self._get_code(task)[0], task.structure, counts)
        self.programs[task.key, counts] = _compile_if_possible(derivative) if task.is_compiled else derivative
        return self.programs[task.key, counts]

    def _explain(self, task: Task, data: Any, arrays: Arrays) -> None:
        """Raise an error that says where the first NaN or infinity came from."""
        f = self._get_code(task)[0]
        count = len(tree.leaves(task.structure))
        report = diagnose(lambda *xs: f(tree.replace_leaves(task.structure, list(xs)), data))(*arrays[:count])
        raise _NanFound(str(report))


class _NanFound(Exception):  # noqa: N818
    """Says where a NaN or infinity came from."""


def _find_place() -> str:
    return f"process {os.getpid()} on {platform.node()}"


def _make_failure(name: str, error: Exception) -> Failure:
    return Failure(name, f"{type(error).__name__}: {error}", traceback.format_exc(), _find_place())


def _is_finite(y: Any) -> bool:
    """Return whether all elements are finite: the sum of their squares is, if they are, unless it overflows."""
    if y.dtype.kind not in "fc":
        return True
    return cmath.isfinite(np.vdot(y, y) if y.ndim else y.item()) or bool(np.isfinite(y).all())


def run_function(f: Callable[..., Any], structure: Any, shard: Any, xs: Sequence[Any]) -> list[Any]:
    """Return the result of a function; an error if it reads a variable, whose gradient would be lost."""
    with Recorder() as seen:
        results = tree.leaves(f(tree.replace_leaves(structure, list(xs)), shard))
    names = sorted({v.name for v in seen.read.values() if v.trainable})
    if names:
        raise CapturedError(
            f"the function reads the variable{'s' * (len(names) > 1)} {', '.join(names)}, of which the worker has a "
            "copy: the gradient would be lost. Give variables as parameters, as in total(w)."
        )
    if len(results) != 1:
        raise DataError(f"the function must return one number or array, got {len(results) or 'none'}.")
    return results


def list_orders(kinds: Sequence[Kind]) -> tuple[int, ...]:
    """Return the numbers of arrays by order of a derivative, from the kinds of its arrays (see ``list_kinds``).

    >>> list_orders(["whole", "whole", "parts", "whole", "whole"])
    (2, 3, 5)
    """
    first = list(kinds).index("parts") if "parts" in kinds else len(kinds)
    counts = [first]
    results = 1
    while counts[-1] < len(kinds):
        counts.append(counts[-1] + results)
        results = counts[-2]
    return tuple(counts)


def make_derivative(f: Callable[..., Any], structure: Any, counts: tuple[int, ...]) -> Callable[..., list[Any]]:
    """Return the function of a shard and arrays: of order 0 the results, of each further one a vjp of the one before.

    ``counts`` has the number of arrays for each order; without any, it is the value with its gradients.  The arrays of
    order n + 1 are those of order n and a cotangent for each of its results.
    """
    if not counts:
        return _make_both(f, structure)
    *below, _ = counts
    if not below:

        def compute(shard: Any, *xs: Any) -> list[Any]:
            return run_function(f, structure, shard, xs)

        return compute
    lower = make_derivative(f, structure, tuple(below))

    def pull_back(shard: Any, *xs: Any) -> list[Any]:
        _, pull = vjp(lambda *ys: lower(shard, *ys), *xs[: below[-1]])
        return list(pull(list(xs[below[-1] :])))

    return pull_back


def _make_both(f: Callable[..., Any], structure: Any) -> Callable[..., list[Any]]:
    """Return the function that gives the result and, if that is a number, the gradients by all parameters."""

    def compute(shard: Any, *xs: Any) -> list[Any]:
        (value,), pull = vjp(lambda *ys: run_function(f, structure, shard, ys), *xs)
        return [value] if np.ndim(value) else [value, *pull([np.ones_like(value)])]

    return compute


def _compile_if_possible(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled; where tracing is refused it runs op by op from then on."""
    state: dict[str, Callable[..., Any]] = {"run": compile_function(f)}

    def run(*args: Any) -> Any:
        try:
            return state["run"](*args)
        except PullbackError:
            if state["run"] is f:
                raise
            state["run"] = f
            return f(*args)

    return run
