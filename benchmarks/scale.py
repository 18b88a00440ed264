"""What a step of pb.scale costs: a gradient on two workers, beside the engine alone that moves the same bytes.

    python benchmarks/scale.py                     # processes, Ray and Dask, those that are installed
    python benchmarks/scale.py --engine ray --tree workers --rounds 30

The function does nothing but sum its parameters, so that a step is its cost: parameters go to the workers, a gradient
of as many numbers comes from each of them with a value, and the two are added.  The floor is the engine's own way to
send an array to two workers that return a number and an array of the same size, which are not added.  Both take turns
in the same cluster; a figure is the median time of a step, and the ratio the median over the pairs.  Times are of the
clock: other work on the machine shows in them.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import pullback as pb

SIZES = {"empty": 1, "1e3": 1_000, "1e6": 1_000_000, "1e7": 10_000_000}  # float32 parameters
PACKAGES = {"processes": "multiprocessing", "ray": "ray", "dask": "distributed"}
WORKERS = 2
SMALL = 2**16  # bytes that Ray and Dask take with a call


def add_parameters(w: Any, shard: Any) -> Any:
    """Return the sum of the parameters times the one number of a shard."""
    return np.sum(w) * shard[0]


def answer(x: Any) -> Any:
    """Return a number and an array of the same size, as a value and its gradient are."""
    return x[0], np.array(x)


def serve(pipe: Any) -> None:
    """Send back copies of arrays."""
    while True:
        try:
            pipe.send_bytes(pickle.dumps(answer(pickle.loads(pipe.recv_bytes())), protocol=5))
        except EOFError:
            return


@contextmanager
def open_processes(pool: pb.scale.Pool) -> Iterator[Callable[[Any], Any]]:
    """Give the floor of processes: pickled arrays in pipes."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(WORKERS):
        here, there = context.Pipe()
        process = context.Process(target=serve, args=(there,), daemon=True)
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)

    def step(x: Any) -> Any:
        text = pickle.dumps(x, protocol=5)
        for pipe in pipes:
            pipe.send_bytes(text)
        return [pickle.loads(pipe.recv_bytes()) for pipe in pipes]

    yield step
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.close()
        process.join()


@contextmanager
def open_ray(pool: pb.scale.Pool) -> Iterator[Callable[[Any], Any]]:
    """Give the floor of Ray: an array in its store, and a method of two actors."""
    import ray

    class Actor:
        def answer(self, x: Any) -> Any:
            return x[0], np.array(x)

    actors = [ray.remote(num_cpus=0)(Actor).remote() for _ in range(WORKERS)]

    def step(x: Any) -> Any:
        place = x if x.nbytes < SMALL else ray.put(x)
        return ray.get([actor.answer.remote(place) for actor in actors])

    yield step


@contextmanager
def open_dask(pool: pb.scale.Pool) -> Iterator[Callable[[Any], Any]]:
    """Give the floor of Dask: an array that is sent to all workers, and two tasks."""
    client = pool.engine.client

    def step(x: Any) -> Any:
        place = x if x.nbytes < SMALL else client.scatter([x], broadcast=True, hash=False)[0]
        return client.gather([client.submit(answer, place, pure=False) for _ in range(WORKERS)])

    yield step


OPENERS: dict[str, Any] = {"processes": open_processes, "ray": open_ray, "dask": open_dask}


def measure(engine: str, tree: str, rounds: int) -> None:
    """Print a line for each size."""
    with pb.scale.Pool(engine, workers=WORKERS, tree=tree, start_timeout=300.0) as pool, OPENERS[engine](pool) as floor:
        total = pool.sum(add_parameters, pb.scale.Shards(np.ones(WORKERS, np.float32), parts=WORKERS))
        step = pb.value_and_grad(total)
        for name, size in SIZES.items():
            w = np.ones(size, np.float32)
            assert step(w).grad[0] == WORKERS
            floor(w)
            ours, alone = [], []
            pair = [(step, ours), (floor, alone)]
            for _ in range(rounds * 10 if size < 1e6 else rounds if size < 1e7 else max(rounds // 3, 3)):
                pair.reverse()  # who is first
                for f, times in pair:
                    began = perf_counter()
                    f(w)
                    times.append(perf_counter() - began)
            ratio = median(a / b for a, b in zip(ours, alone, strict=True))
            print(
                f"{engine:10} {name:>5} parameters: {median(ours) * 1e3:8.2f} ms, the engine alone "
                f"{median(alone) * 1e3:8.2f} ms, ratio {ratio:.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=PACKAGES)
    parser.add_argument("--tree", choices=["driver", "workers"], default="driver")
    parser.add_argument("--rounds", type=int, default=30, help="with 1e6 parameters; ten times as many with less")
    options = parser.parse_args()
    for engine, package in PACKAGES.items():
        if options.engine in (None, engine) and find_spec(package):
            measure(engine, options.tree, options.rounds)


if __name__ == "__main__":
    main()
