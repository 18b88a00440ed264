"""``Pool``: workers, sums over shards that they compute, training, and independent calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

import numpy as np

from pullback.core import tree
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.display.progress import make_progress
from pullback.errors import ArgumentError, NanError, WorkerError
from pullback.ops.joining import concat
from pullback.scale.engines.dask import DaskEngine
from pullback.scale.engines.processes import ProcessEngine
from pullback.scale.engines.protocol import Answer, CallDied, Engine, Shared
from pullback.scale.engines.ray import RayEngine
from pullback.scale.engines.serial import SerialEngine
from pullback.scale.node import compute_on_workers, list_kinds
from pullback.scale.shards import Shards
from pullback.scale.sums import Failure, add_range, plan_blocks
from pullback.scale.training import ShardSteps
from pullback.scale.work import Task
from pullback.train.loop.trainer import Trainer

ENGINES: dict[str, Callable[..., Engine]] = {
    "serial": SerialEngine,
    "processes": ProcessEngine,
    "ray": RayEngine,
    "dask": DaskEngine,
}
IN_FLIGHT = 2  # calls of map that a worker has: one that it runs, and the next


class Answers:
    """The answers of workers in one call of a sum, which the backward pass may need again.

    A sum that is differentiated is computed together with its gradient, so that workers read the data once.
    """

    def __init__(self, call_workers: Callable[..., Sequence[Any]], is_traced: bool) -> None:
        self.call_workers, self.is_traced = call_workers, is_traced
        self.known: list[tuple[tuple[int, ...], Sequence[Any], Sequence[Any]]] = []
        self.is_number = False  # the value, so that workers have computed the gradients with it
        self.gradients: Sequence[Any] | None = None
        self.place: Sequence[Any] = ()  # the arrays that they are the gradients at

    def get(self, counts: tuple[int, ...], arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results for arrays of some order; the caller may write into them."""
        if len(counts) == 2 and self.is_number:
            *xs, dy = arrays
            if self.gradients is None or not all(map(_is_same, xs, self.place)):  # as for vmap
                self.gradients, self.place = self.call_workers((), xs)[1:], xs
            gradients = self.gradients
            if dy.item() == 1:
                self.gradients = None  # these very arrays are given, once: a copy takes long
                return [_make_writable(g) for g in gradients]
            return [dy * g for g in gradients]
        return [np.array(y) if y.ndim else y[()] for y in self._find(counts, arrays)]

    def _find(self, counts: tuple[int, ...], arrays: Sequence[Any]) -> Sequence[Any]:
        for same, before, results in self.known:
            if same == counts and all(map(_is_same, arrays, before)):
                return results
        is_first = len(counts) == 1 and self.is_traced
        results = self.call_workers(() if is_first else counts, arrays)
        if is_first and len(results) > 1:
            self.is_number, self.gradients, self.place = True, results[1:], arrays
            results = results[:1]
        self.known.append((counts, arrays, results))
        return results


def _make_writable(y: Any) -> Any:
    """Return an array that may be written into: itself, or a copy of one that is not its own memory."""
    return y if y.base is None and y.flags.writeable else np.array(y)


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two arrays have the same values; those in the same memory are not read."""
    if a is b or a.shape != b.shape:
        return a is b
    where = [(x.ctypes.data, x.strides, x.dtype) for x in (a, b)]
    return where[0] == where[1] or np.array_equal(a, b)


def _deal_arrays(kinds: Sequence[str], arrays: Sequence[Any], size: int) -> tuple[list[list[Any]], Shared]:
    """Return the arrays of each of ``size`` shards, and those that all shards share, from a flat list by kinds."""
    remaining = iter(arrays)
    own: list[list[Any]] = [[] for _ in range(size)]
    whole: list[Any] = []
    for kind in kinds:
        for part in own if kind == "parts" else [whole]:
            part.append(next(remaining))
    return own, Shared(whole)


class Pool:
    """Workers that compute sums over shards, with their gradients.

    engine: ``"processes"``, processes of this machine; ``"ray"`` or ``"dask"``, a cluster of these; or ``"serial"``,
        this process itself, for tests.
    workers: how many; as many as there are cores if it is not given.
    address: of a cluster of Ray or Dask that runs, or Dask's object for one, such as a ``GatewayCluster``; without it
        one is started on this machine, for this program alone, unless the program has called ``ray.init`` itself.
    compile: whether workers compile functions; those that cannot be compiled are run op by op.
    check_nans: whether a NaN or infinity from a shard is an error that names the shard, the op and the line.
    start_timeout: seconds until workers must have started, also those that replace one.
    tree: where results are added: by the ``"driver"``, which is this program, or by the ``"workers"`` of Ray or Dask,
        which send them to each other, so that one sum comes back; each adds up its own shards in any case, and
        processes of this machine leave the rest to the driver.
    held: how many shards a worker keeps in memory.

    Results are added in a fixed order, so that they do not depend, bit by bit, on the number of workers or on which one
    answers first, if BLAS has one thread, as it has in the workers (set ``OMP_NUM_THREADS=1`` for this program itself,
    to compare it with them).  A worker that dies is replaced, and its calls are repeated.

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
        address: object = None,
        compile: bool = True,
        check_nans: bool = True,
        start_timeout: float = 60.0,
        tree: str = "driver",
        held: int = 1,
    ) -> None:
        if engine not in ENGINES:
            raise ArgumentError(f"Pool: engine must be one of {', '.join(ENGINES)}, got {engine!r}.")
        self.workers = 1 if engine == "serial" else (os.cpu_count() or 1) if workers is None else workers
        if type(self.workers) is not int or self.workers < 1:
            raise ArgumentError(f"Pool: workers must be 1 or more, got {workers!r}.")
        if tree not in ("driver", "workers"):
            raise ArgumentError(f"Pool: tree must be 'driver' or 'workers', got {tree!r}.")
        if type(held) is not int or held < 1:
            raise ArgumentError(f"Pool: held must be 1 or more shards, got {held!r}.")
        self.engine_name, self.compiles, self.check_nans, self.tree, self.held = engine, compile, check_nans, tree, held
        if address is not None and engine not in ("ray", "dask"):
            raise ArgumentError(f"Pool: address= is for the engines ray and dask, not for {engine!r}.")
        self.engine = ENGINES[engine](**({} if address is None else {"address": address}))
        self.names: dict[str, tuple[str, Sequence[str]]] = {}  # of each task: the function, and the shards
        # Of each call: the task, and which shards, or what else, in words.
        self.call_tasks: dict[int, tuple[str, slice | str]] = {}
        self.is_open = True
        self.engine.start(self.workers, start_timeout)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        plural = "s" * (self.workers != 1)
        return f"<pool of {self.workers} {self.engine_name} worker{plural}, one BLAS thread each>"

    def close(self) -> None:
        """End the workers."""
        if self.is_open:
            self.is_open = False
            self.engine.stop()

    # ---- functions of parameters

    def sum(self, f: Callable[[Any, Any], Any], shards: Shards) -> Callable[[Any], Any]:
        """Return a differentiable function of parameters: the sum of ``f(params, shard)`` over all shards.

        f: a function of parameters, which may be a tree, and the data of a shard; it returns one number or array.
        shards: the data.

        >>> import numpy as np, pullback as pb
        >>> with pb.scale.Pool("serial") as pool:
        ...     total = pool.sum(lambda p, x: np.sum(p["a"] * x**2), pb.scale.Shards(np.arange(4.0), parts=2))
        ...     pb.grad(total)({"a": 3.0})
        {'a': 14.0}
        """
        return self._make_total("sum", f, shards)

    def mean(self, f: Callable[[Any, Any], Any], shards: Shards) -> Callable[[Any], Any]:
        """Return a differentiable function of parameters: the mean of ``f(params, shard)`` over the shards.

        f: a function of parameters, which may be a tree, and the data of a shard; it returns one number or array.
        shards: the data.

        >>> import numpy as np, pullback as pb
        >>> with pb.scale.Pool("serial") as pool:
        ...     pool.mean(lambda w, x: w * np.mean(x), pb.scale.Shards(np.arange(4.0), parts=2))(2.0)
        np.float64(3.0)
        """
        return self._make_total("mean", f, shards)

    def concat(self, f: Callable[[Any, Any], Any], shards: Shards) -> Callable[[Any], Any]:
        """Return a differentiable function of parameters: the arrays ``f(params, shard)``, joined by their first axis.

        f: a function of parameters, which may be a tree, and the data of a shard; it returns an array.
        shards: the data.

        >>> import numpy as np, pullback as pb
        >>> with pb.scale.Pool("serial") as pool:
        ...     rows = pool.concat(lambda w, x: w * x, pb.scale.Shards(np.arange(5.0), parts=2))
        ...     rows(2.0), pb.grad(lambda w: np.sum(rows(w) ** 2))(2.0)
        (array([0., 2., 4., 6., 8.]), 120.0)
        """
        send = self._make_sender("concat", f, shards)

        def join_rows(params: Any) -> Any:
            key, xs = send(params)

            def call_workers(counts: tuple[int, ...], arrays: Sequence[Any]) -> list[Any]:
                return self._differentiate_parts(key, len(xs), counts, arrays)

            results = compute_on_workers("pool.concat", call_workers, xs)
            are_tensors = any(isinstance(x, Tensor) for x in xs)
            return concat(results) if are_tensors else np.concatenate([np.asarray(y) for y in results])

        join_rows.__name__ = getattr(f, "__name__", "f")
        return join_rows

    def _make_total(self, name: str, f: Callable[[Any, Any], Any], shards: Shards) -> Callable[[Any], Any]:
        send = self._make_sender(name, f, shards)
        count = len(shards)
        divisor = count if name == "mean" else 1

        def total(params: Any) -> Any:
            key, xs = send(params)
            levels = [x.level for x in xs if isinstance(x, Tensor)]

            def call_workers(counts: tuple[int, ...], arrays: list[Any]) -> Sequence[Any]:
                return self.add_up(name, key, count, "differentiate", arrays, counts)

            answers = Answers(call_workers, is_traced=any(levels))
            (value,) = compute_on_workers(f"pool.{name}", answers.get, xs)
            value = value if divisor == 1 else value / divisor
            return value if levels else np.asarray(value)[()]

        total.__name__ = getattr(f, "__name__", "f")
        return total

    def _make_sender(self, name: str, f: Callable[..., Any], shards: Any) -> Callable[[Any], tuple[str, list[Any]]]:
        """Return a function that sends a task for the structure of parameters once; it gives the key and the leaves."""
        if not callable(f):
            raise ArgumentError(f"pool.{name}(f, shards): f must be a function, got {type(f).__name__}.")
        if not isinstance(shards, Shards):
            raise ArgumentError(f"pool.{name}(f, shards): shards must be pb.scale.Shards, got {type(shards).__name__}.")
        tasks: dict[Any, str] = {}  # the task for each structure of parameters

        def send(params: Any) -> tuple[str, list[Any]]:
            is_array = isinstance(params, Tensor | np.ndarray)  # and no tree to look into
            structure = 0 if is_array else tree.map_leaves(lambda _: 0, params)
            shown = repr(structure)
            if shown not in tasks:
                tasks[shown] = self._send_task(name, f, shards, structure)
            if is_array and not isinstance(params, Variable):
                return tasks[shown], [params]
            return tasks[shown], [x.read() if isinstance(x, Variable) else x for x in tree.leaves(params)]

        return send

    def _differentiate_parts(self, key: str, leaves: int, counts: tuple[int, ...], arrays: Sequence[Any]) -> list[Any]:
        """Return a derivative of the arrays of all shards: one for each shard, or the sums over them."""
        argument_kinds, result_kinds = list_kinds(leaves, len(counts) - 1)
        size = len(self.names[key][1])
        own, whole = _deal_arrays(argument_kinds, arrays, size)
        calls = [
            self._call(i, (i, i + 1), "differentiate_parts", key, i, argument_kinds, own[i], whole) for i in range(size)
        ]
        found = [self._check(answer, "concat") for answer in self._wait(calls)]
        if any(len(row) != len(result_kinds) or (len(counts) == 1 and not np.ndim(row[0])) for row in found):
            raise WorkerError(f"pool.concat: {self.names[key][0]} must return one array with at least one axis.")
        results: list[Any] = []
        for j, kind in enumerate(result_kinds):
            column = [row[j] for row in found]
            results += column if kind == "parts" else add_range([[x] for x in column].__getitem__, 0, size)
        return results

    # ---- independent calls

    def map(self, f: Callable[[Any], Any], items: Iterable[Any], *, verbose: int | str = "auto") -> list[Any]:
        """Return ``f(item)`` for each item, in their order; a worker that is free takes the next item.

        f: a function of an item.
        items: what it is called with.
        verbose: 0 for nothing, 2 for a line at the end; else a bar in terminals and notebooks, a line elsewhere.

        >>> import pullback as pb
        >>> with pb.scale.Pool("serial") as pool:
        ...     pool.map(lambda seed: seed * 2, [1, 2, 3])
        [2, 4, 6]
        """
        if not callable(f):
            raise ArgumentError(f"pool.map(f, items): f must be a function, got {type(f).__name__}.")
        listed = list(items)
        key = self._send_task("map", f, None)
        answers: list[Any] = [None] * len(listed)
        left, running = count(), {}
        name = self.names[key][0]

        def send(worker: int) -> None:
            if (i := next(left)) < len(listed):
                call = self.engine.call(worker, "call", key, listed[i])
                self.call_tasks[call] = key, f"item {repr(listed[i])[:200]}"
                running[call] = worker, i

        with make_progress(f"map {name}", len(listed), verbose, "pool.map") as progress:
            for worker in list(range(self.workers)) * IN_FLIGHT:
                send(worker)
            while running:
                try:
                    call = self.engine.wait_any(list(running))
                except CallDied as died:
                    raise self._end(died) from None
                worker, i = running.pop(call)
                (answers[i],) = self._wait([call])
                progress.step()
                send(worker)
            progress.close({})
        return [self._check(answer, "map") for answer in answers]

    # ---- training

    def begin_training(
        self, trainer: Trainer, shards: Any, batch_size: int, shuffle: bool, class_weight: Any
    ) -> ShardSteps:
        """Return the steps of a training on shards, for ``model.fit(shards, pool=pool)``."""
        return ShardSteps(self, trainer, shards, batch_size, shuffle, class_weight)

    def send_model(self, model: Any, shards: Shards) -> str:
        """Send a model, or none, with shards to the workers; return the key of the task."""
        return self._send_task("fit", model, shards)

    # ---- tasks and calls

    def _send_task(self, name: str, f: Callable[..., Any], shards: Shards | None, structure: Any = None) -> str:
        """Send a function or a model to the workers; return the key of the task."""
        self._check_open(name)
        code = self.engine.dump_code(f, None if shards is None else shards.loader)
        items, names = ((), ()) if shards is None else (shards.items, shards.names)
        task = Task(uuid4().hex, code, items, names, structure, self.compiles, self.check_nans, self.held)
        self.names[task.key] = str(getattr(f, "__name__", getattr(f, "name", "f"))), names
        self.engine.send_task(task)
        return task.key

    def add_up(self, name: str, key: str, count: int, method: str, shared_data: object, *more: object) -> Sequence[Any]:
        """Return the sums over a number of shards of what a method of the workers gives, added in a fixed order."""
        self._check_open(name)
        shared, blocks = Shared(shared_data), plan_blocks(count, self.workers)
        calls = [self._call(i, block, method, key, *block, *more, shared) for i, block in enumerate(blocks)]
        if self.tree == "workers" and self.engine.sends_answers:
            places = {call: i % self.workers for i, call in enumerate(calls)}

            def add(a: int, b: int) -> int:
                both = self.engine.call(places[a], "add_up", Answer(a), Answer(b))
                places[both], self.call_tasks[both] = places[a], (key, "a sum over shards")
                return both

            answer = self._wait([add_range(lambda i: calls[i], 0, len(calls), add)])[0]
        else:
            answers = self._wait(calls)
            answer = add_range(answers.__getitem__, 0, len(answers))
        self.call_tasks = {}
        found: Sequence[Any] = self._check(answer, name)
        return found

    def call_each(self, name: str, key: str, count: int, method: str, *args: object) -> list[Any]:
        """Return what a method of the workers gives for each shard."""
        self._check_open(name)
        shared = [Shared(args[0])] if args else []
        calls = [self._call(i, (i, i + 1), method, key, i, *shared) for i in range(count)]
        return [self._check(answer, name) for answer in self._wait(calls)]

    def _call(self, number: int, block: tuple[int, int], method: str, key: str, *args: object) -> int:
        """Call a method of a worker for a block of shards, always of the same worker, which may hold their data."""
        call = self.engine.call(number % self.workers, method, key, *args)
        self.call_tasks[call] = key, slice(*block)
        return call

    def _describe(self, call: int) -> str:
        """Return the function of a call, and the shards or the item that it was given."""
        if call not in self.call_tasks:
            return "a function at unknown shards"
        key, part = self.call_tasks[call]
        name, names = self.names[key]
        if isinstance(part, str):
            return f"{name} at {part}"
        shards = names[part]
        return f"{name} at shard{'s' * (len(shards) > 1)} {', '.join(shards)}"

    def _wait(self, calls: Sequence[int]) -> list[Any]:
        try:
            answers = self.engine.wait(calls)
        except CallDied as died:
            raise self._end(died) from None
        for call in calls:
            del self.call_tasks[call]
        return answers

    def _end(self, died: CallDied) -> WorkerError:
        """End workers that died at a call again and again; return the error that names the call."""
        call = self._describe(died.call)
        worker = "workers" if died.worker is None else f"worker {died.worker + 1}"
        self.close()
        return WorkerError(
            f"Pool: {worker} died {died.deaths} times in a row in {call}. What it computes ends the "
            f"process: run it with engine='serial' to see where. {died.detail}"
        )

    def _check(self, answer: Any, name: str) -> Any:
        """Return an answer, or raise the error that it tells of."""
        if not isinstance(answer, Failure):
            return answer
        kind = NanError if answer.is_nan else WorkerError
        subject = "item" if name == "map" else "shard"
        text = f"pool.{name}: {subject} {answer.name}: {answer.error}\n(in {answer.place})\n{answer.text}"
        raise kind(text.rstrip())

    def _check_open(self, name: str) -> None:
        if not self.is_open:
            raise WorkerError(f"pool.{name}: the pool is closed. Call it inside the with block.")
