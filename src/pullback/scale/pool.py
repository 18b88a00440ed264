"""``Pool``: workers, sums over shards that they compute, and independent calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.errors import ArgumentError, NanError, WorkerError
from pullback.scale.engines.dask import DaskEngine
from pullback.scale.engines.processes import ProcessEngine
from pullback.scale.engines.protocol import Engine
from pullback.scale.engines.ray import RayEngine
from pullback.scale.engines.serial import SerialEngine
from pullback.scale.node import add_pairs, make_node
from pullback.scale.shards import Shards
from pullback.scale.work import Failure, Task

__all__ = ["Pool"]

ENGINES: dict[str, Callable[..., Engine]] = {
    "serial": SerialEngine,
    "processes": ProcessEngine,
    "ray": RayEngine,
    "dask": DaskEngine,
}


class Answers:
    """What the workers said within one call of a sum, which the backward pass may ask again.

    A sum that is differentiated is computed together with its gradient, so that workers go through the data once.
    """

    def __init__(self, ask: Callable[..., list[Any]], is_traced: bool) -> None:
        self.ask, self.is_traced = ask, is_traced
        self.known: list[tuple[tuple[int, ...], Sequence[Any], list[Any]]] = []
        self.gradients: list[Any] | None = None

    def get(self, counts: tuple[int, ...], arrays: Sequence[Any]) -> list[Any]:
        """Return the results for arrays of some order."""
        for same, before, results in self.known:
            if same == counts and all(
                a.shape == b.shape and np.array_equal(a, b) for a, b in zip(arrays, before, strict=True)
            ):
                return results
        results = self._compute(counts, list(arrays))
        self.known.append((counts, arrays, results))
        return results

    def _compute(self, counts: tuple[int, ...], arrays: list[Any]) -> list[Any]:
        if len(counts) == 1 and self.is_traced:
            value, *gradients = self.ask("compute_both", arrays)
            if gradients:  # the value is one number
                self.gradients = gradients
                return [value]
        if len(counts) == 2 and self.gradients is not None:
            return [arrays[-1] * g for g in self.gradients]
        return self.ask("differentiate", counts, arrays)


class Pool:
    """Workers that compute sums over shards, with their gradients.

    engine: ``"processes"``, processes of this machine; ``"ray"`` or ``"dask"``, a cluster of these; or ``"serial"``,
        this process itself, for tests.
    workers: how many; as many as there are cores if it is not given.
    address: of a cluster of Ray or Dask that runs; without it one is started on this machine, for this program alone.
    compile: whether workers compile functions; those that cannot be compiled are run op by op.
    check_nans: whether a NaN or infinity from a shard is an error that names the shard, the op and the line.
    start_timeout: seconds until workers must have started.

    Results are added in a fixed order, so that they do not depend on the number of workers or on who is first: bit for
    bit, as long as BLAS has one thread, as it has in the workers.  A worker that dies is replaced, and asked again.

    >>> import numpy as np, pullback as pb
    >>> shards = pb.scale.Shards({"x": np.arange(6.0), "y": 2 * np.arange(6.0)}, parts=3)
    >>> with pb.scale.Pool("serial") as pool:
    ...     total = pool.sum(lambda w, shard: np.sum((w * shard["x"] - shard["y"]) ** 2), shards)
    ...     pb.value_and_grad(total)(1.0)
    ValueAndGrad(value=55.0, grad=-110.0)
    """

    def __init__(
        self,
        engine: str = "processes",
        workers: int | None = None,
        *,
        address: str | None = None,
        compile: bool = True,
        check_nans: bool = True,
        start_timeout: float = 60.0,
    ) -> None:
        if engine not in ENGINES:
            raise ArgumentError(f"Pool: engine must be one of {', '.join(ENGINES)}, got {engine!r}.")
        self.workers = 1 if engine == "serial" else (os.cpu_count() or 1) if workers is None else workers
        if type(self.workers) is not int or self.workers < 1:
            raise ArgumentError(f"Pool: workers must be 1 or more, got {workers!r}.")
        self.engine_name, self.compiles, self.check_nans = engine, compile, check_nans
        if address is not None and engine not in ("ray", "dask"):
            raise ArgumentError(f"Pool: address= is for the engines ray and dask, not for {engine!r}.")
        self.engine = ENGINES[engine](**({} if address is None else {"address": address}))
        self.numbers = count()
        self.is_open = True
        self.engine.start(self.workers, start_timeout)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<pool of {self.workers} {self.engine_name} worker{'s' * (self.workers != 1)}>"

    def close(self) -> None:
        """End the workers."""
        if self.is_open:
            self.is_open = False
            self.engine.stop()

    def sum(self, f: Callable[[Any, Any], Any], shards: Shards) -> Callable[[Any], Any]:
        """Return a differentiable function of parameters: the sum of ``f(params, shard)`` over all shards.

        f: a function of parameters, which may be a tree, and the data of a shard; it returns a number or an array.
        shards: the data.

        >>> import numpy as np, pullback as pb
        >>> with pb.scale.Pool("serial") as pool:
        ...     total = pool.sum(lambda p, x: np.sum(p["a"] * x**2), pb.scale.Shards(np.arange(4.0), parts=2))
        ...     pb.grad(total)({"a": 3.0})
        {'a': 14.0}
        """
        return self._make_total("sum", f, shards, 1)

    def mean(self, f: Callable[[Any, Any], Any], shards: Shards) -> Callable[[Any], Any]:
        """Return a differentiable function of parameters: the mean of ``f(params, shard)`` over the shards.

        f: a function of parameters, which may be a tree, and the data of a shard; it returns a number or an array.
        shards: the data.

        >>> import numpy as np, pullback as pb
        >>> with pb.scale.Pool("serial") as pool:
        ...     pool.mean(lambda w, x: w * np.mean(x), pb.scale.Shards(np.arange(4.0), parts=2))(2.0)
        np.float64(3.0)
        """
        return self._make_total("mean", f, shards, len(shards))

    def map(self, f: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return ``f(item)`` for each item, in their order, computed by the workers.

        f: a function of an item.
        items: what it is called with.

        >>> import pullback as pb
        >>> with pb.scale.Pool("serial") as pool:
        ...     pool.map(lambda seed: seed * 2, [1, 2, 3])
        [2, 4, 6]
        """
        self._check_open("map")
        calls = [self.engine.call(i % self.workers, "call", f, item) for i, item in enumerate(items)]
        return [self._check(answer, "map") for answer in self.engine.wait(calls)]

    def _make_total(
        self, name: str, f: Callable[[Any, Any], Any], shards: Shards, divisor: int
    ) -> Callable[[Any], Any]:
        if not callable(f):
            raise ArgumentError(f"pool.{name}(f, shards): f must be a function, got {type(f).__name__}.")
        if not isinstance(shards, Shards):
            raise ArgumentError(f"pool.{name}(f, shards): shards must be pb.scale.Shards, got {type(shards).__name__}.")
        known: dict[Any, int] = {}  # the task for each structure of parameters

        def total(params: Any) -> Any:
            self._check_open(name)
            structure = tree.map_leaves(lambda _: 0, params)
            key = repr(structure)
            if key not in known:
                task = Task(next(self.numbers), f, shards, structure, self.compiles)
                self.engine.learn(task)
                known[key] = task.number
            xs = [x.read() if isinstance(x, Variable) else x for x in tree.leaves(params)]
            is_traced = any(isinstance(x, Tensor) and x.level for x in xs)
            answers = Answers(lambda *given: self._ask(name, known[key], shards, *given), is_traced)
            results = make_node(answers.get, (len(xs),))(*xs)
            value = results[0] if len(results) == 1 else results
            value = value if divisor == 1 else tree.map_leaves(lambda y: y / divisor, value)
            are_tensors = any(isinstance(x, Tensor) for x in xs)
            return value if are_tensors else tree.map_leaves(lambda y: np.asarray(y)[()], value)

        total.__name__ = getattr(f, "__name__", "f")
        return total

    def _ask(self, name: str, task: int, shards: Shards, method: str, *given: Any) -> list[Any]:
        """Return the sums over all shards; shard number i always goes to the same worker, which may hold it."""
        calls = [
            self.engine.call(i % self.workers, method, task, i, self.check_nans, *given) for i in range(len(shards))
        ]
        return add_pairs([self._check(answer, name) for answer in self.engine.wait(calls)])

    def _check(self, answer: Any, name: str) -> Any:
        """Return an answer, or raise the error that it tells of."""
        if not isinstance(answer, Failure):
            return answer
        kind = NanError if answer.is_nan else WorkerError
        what = "item" if name == "map" else "shard"
        raise kind(f"pool.{name}: {what} {answer.name}: {answer.error}\n{answer.text}".rstrip())

    def _check_open(self, name: str) -> None:
        if not self.is_open:
            raise WorkerError(f"pool.{name}: the pool is closed. Call it inside of the with block.")
