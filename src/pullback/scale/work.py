"""What a worker does: sums, gradients of sums to any order, and calls of functions, each for one item."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.compiler.api import compile as compile_function
from pullback.core import tree
from pullback.core.tensor import Tensor
from pullback.core.variable import Recorder
from pullback.diagnostics.nans import diagnose
from pullback.errors import CapturedError, PullbackError
from pullback.scale.shards import Shards
from pullback.transforms.linear import vjp

__all__: list[str] = []

Arrays = Sequence[Any]


@dataclass(frozen=True)
class Task:
    """A function of parameters and a shard, as it is sent to the workers once."""

    number: int
    function: Callable[..., Any]
    shards: Shards
    structure: Any  # of the parameters: a tree of anything
    is_compiled: bool


@dataclass(frozen=True)
class Failure:
    """What went wrong in a worker."""

    name: str  # of the shard or item
    error: str
    text: str  # the worker's traceback
    is_nan: bool = False


class Worker:
    """The tasks that a worker knows, its programs, and the shard that it holds."""

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self.programs: dict[tuple[int, tuple[int, ...]], Callable[..., Any]] = {}
        self.block: tuple[int, int, Any] | None = None  # a task, a shard of it, and its data: one block at a time

    def add(self, task: Task) -> None:
        """Learn a task."""
        self.tasks[task.number] = task

    def differentiate(self, number: int, shard: int, checks_nans: bool, counts: tuple[int, ...], arrays: Arrays) -> Any:
        """Return what a shard contributes to the sum, or to a derivative of it; a Failure if that fails."""
        task = self.tasks[number]
        try:
            data = self._load(task, shard)
            results = [_to_array(y) for y in self._get_program(task, counts)(data, *arrays)]
            return self._check_finite(task, data, shard, arrays, results) if checks_nans else results
        except Exception as error:
            return Failure(task.shards.names[shard], f"{type(error).__name__}: {error}", traceback.format_exc())

    def compute_both(self, number: int, shard: int, checks_nans: bool, arrays: Arrays) -> Any:
        """Return what a shard contributes to the value and, if that is one number, to the gradients after it."""
        return self.differentiate(number, shard, checks_nans, (), arrays)

    def _load(self, task: Task, shard: int) -> Any:
        """Return the data of a shard, which stays until another one is asked for."""
        if self.block is None or self.block[:2] != (task.number, shard):
            self.block = None
            self.block = task.number, shard, task.shards.load(shard)
        return self.block[2]

    def _get_program(self, task: Task, counts: tuple[int, ...]) -> Callable[..., Any]:
        """Return the function of a shard and arrays that gives a derivative, compiled where that can be."""
        key = task.number, counts
        if key not in self.programs:
            plain = make_derivative(task, counts)
            self.programs[key] = _compile_if_possible(plain) if task.is_compiled else plain
        return self.programs[key]

    @staticmethod
    def _check_finite(task: Task, data: Any, shard: int, arrays: Arrays, results: list[Any]) -> Any:
        """Return the results, or a Failure that says where the first NaN or infinity came from."""
        if all(np.isfinite(y).all() for y in results if y.dtype.kind in "fc"):
            return results
        count = len(tree.leaves(task.structure))
        report = diagnose(lambda *xs: task.function(tree.replace_leaves(task.structure, list(xs)), data))(
            *arrays[:count]
        )
        return Failure(task.shards.names[shard], f"a value is not finite.\n{report}", "", is_nan=True)

    @staticmethod
    def call(function: Callable[[Any], Any], item: Any) -> Any:
        """Return what a function gives for an item; a Failure if it raises."""
        try:
            return function(item)
        except Exception as error:
            return Failure(repr(item)[:200], f"{type(error).__name__}: {error}", traceback.format_exc())


def run_function(task: Task, shard: Any, xs: Sequence[Any]) -> list[Any]:
    """Return the results of a task's function; an error if it reads a variable, whose gradient would be lost."""
    with Recorder() as seen:
        results = tree.leaves(task.function(tree.replace_leaves(task.structure, list(xs)), shard))
    names = sorted({v.name for v in seen.read.values() if v.trainable})
    if names:
        raise CapturedError(
            f"the function reads the variable{'s' * (len(names) > 1)} {', '.join(names)}, of which the worker has a "
            "copy: the gradient would be lost. Give variables as parameters, as in total(w)."
        )
    return results


def make_derivative(task: Task, counts: tuple[int, ...]) -> Callable[..., list[Any]]:
    """Return the function of a shard and arrays: of order 0 the results, of each further one a vjp of the one before.

    ``counts`` has the number of arrays for each order; without any, it is the value with its gradients.  The arrays of
    order n + 1 are those of order n and a cotangent for each of its results.
    """
    if not counts:
        return _make_both(task)
    *below, _ = counts
    if not below:

        def compute(shard: Any, *xs: Any) -> list[Any]:
            return run_function(task, shard, xs)

        return compute
    lower = make_derivative(task, tuple(below))

    def pull_back(shard: Any, *xs: Any) -> list[Any]:
        _, pull = vjp(lambda *ys: lower(shard, *ys), *xs[: below[-1]])
        return list(pull(list(xs[below[-1] :])))

    return pull_back


def _make_both(task: Task) -> Callable[..., list[Any]]:
    """Return the function that gives the results and, if that is one number, the gradients by all parameters."""

    def compute(shard: Any, *xs: Any) -> list[Any]:
        values, pull = vjp(lambda *ys: run_function(task, shard, ys), *xs)
        is_number = len(values) == 1 and np.ndim(values[0]) == 0
        return [*values, *(pull([np.ones_like(values[0])]) if is_number else ())]

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


def _to_array(y: Any) -> Any:
    return np.asarray(y.numpy() if isinstance(y, Tensor) else y)
