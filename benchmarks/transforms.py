"""Transformations: hessians and per-example gradients against torch.func, sparse jacobians against a gradient.

A ratio is the peer's time divided by ours: above 1, pullback is quicker.  All results are compared before anything is
timed.  One core, one thread, process CPU time, medians of the ratios within a round.
"""

from __future__ import annotations

import one_thread
from isa import add_isa_option

# isort: split
import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
from measure import compute_paired_ratio, time_interleaved

import pullback as pb

Call = Callable[[], Any]
OURS = "pullback"


def import_torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


# ---- second derivatives of functions of 50 parameters


def rosenbrock(n, x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def sums(n, x):
    return (n.exp(x) * n.sin(x)).sum() + n.sin((x * x).sum())


def network(n, p, x, y):
    hidden = n.tanh(x @ p[:30].reshape(5, 6) + p[30:36])
    return ((hidden @ p[36:48].reshape(6, 2) + p[48:50] - y) ** 2).mean()


def hessians(rng: Any, torch: Any) -> dict[str, dict[str, Call]]:
    x = rng.normal(size=50)
    data = rng.normal(size=(16, 5)), rng.normal(size=(16, 2))
    found = {}
    for title, f, constants in (
        ("hessian: Rosenbrock, 50 parameters", rosenbrock, ()),
        ("hessian: exp and sin, 50 parameters", sums, ()),
        ("hessian: small network, 50 parameters", network, data),
    ):
        ours = pb.hessian(lambda x, f=f, c=constants: f(pb, x, *c))
        calls: dict[str, Call] = {OURS: lambda ours=ours: ours(x)}
        if torch is not None:
            given = [torch.as_tensor(c) for c in constants]
            theirs, there = torch.func.hessian(lambda x, f=f, c=given: f(torch, x, *c)), torch.as_tensor(x)
            calls["torch"] = lambda theirs=theirs, there=there: theirs(there).numpy()
        found[title] = calls
    return found


# ---- gradients for each of 256 examples of a network with 64 inputs, 64 hidden units and 10 classes


def example_loss(n, p, x, label):
    w1, b1, w2, b2 = p
    scores = n.relu(x @ w1 + b1) @ w2 + b2
    return n.logsumexp(scores, 0) - (scores * label).sum()


def per_example(rng: Any, torch: Any) -> dict[str, dict[str, Call]]:
    def draw(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    params = [draw(64, 64) / 8, draw(64), draw(64, 10) / 8, draw(10)]
    x, labels = draw(256, 64), np.eye(10, dtype=np.float32)[rng.integers(0, 10, 256)]
    names = SimpleNamespace(relu=pb.relu, logsumexp=pb.log_sum_exp)
    one = lambda x, label: pb.grad(lambda p: example_loss(names, p, x, label))(params)
    every = pb.vmap(one)

    def loop() -> Any:
        rows = [one(a, b) for a, b in zip(x, labels, strict=True)]
        return [np.stack(part) for part in zip(*rows, strict=True)]

    calls: dict[str, Call] = {OURS: lambda: every(x, labels), "a loop": loop}
    if torch is not None:
        theirs = torch.func.vmap(
            torch.func.grad(lambda p, x, label: example_loss(torch, p, x, label)), in_dims=(None, 0, 0)
        )
        given = [torch.as_tensor(v) for v in params], torch.as_tensor(x), torch.as_tensor(labels)
        calls["torch"] = lambda: [d.numpy() for d in theirs(*given)]
    return {"per-example gradients, 64-64-10, batch 256": calls}


# ---- a tridiagonal jacobian against one gradient


def band(x):
    return x[1:-1] ** 2 - x[:-2] * x[2:]


def ring(x):
    return np.roll(x, 1) * x + np.sin(x) * np.roll(x, -1)


def sparse(rng: Any, size: int, rounds: int) -> None:
    print()
    print(f"{f'sparse jacobian, {size} × {size}; in gradients':<48}{'first call':>12}{'later':>12}{'later, µs':>12}")
    for title, f in (("slices: x[1:-1]**2 - x[:-2] * x[2:]", band), ("np.roll: neighbours on a ring", ring)):
        small = rng.normal(size=20)
        if not np.allclose(pb.sparse_jacobian(f)(small).toarray(), pb.jacobian(f)(small)):
            raise SystemExit(f"{title}: not the jacobian")
        x = rng.normal(size=size)
        gradient, jacobian = pb.grad(lambda x, f=f: pb.sum(f(x))), pb.sparse_jacobian(f)
        firsts = []
        for _ in range(5):
            start = process_time()
            pb.sparse_jacobian(f)(x)
            firsts.append(process_time() - start)
        times = time_interleaved({"gradient": partial(gradient, x), "jacobian": partial(jacobian, x)}, rounds)
        later = sorted(times["jacobian"])[rounds // 2]
        first = sorted(firsts)[2] / sorted(times["gradient"])[rounds // 2]
        ratio = compute_paired_ratio(times["jacobian"], times["gradient"])
        print(f"{title:<48}{first:>12.1f}{ratio:>12.1f}{later * 1e6:>12.0f}")


def is_close(a: Any, b: Any) -> bool:
    pairs = zip(a, b, strict=True) if isinstance(a, list | tuple) else [(a, b)]
    return all(
        x.shape == y.shape and x.dtype == y.dtype and np.abs(x - y).max() <= 1e-4 * np.abs(y).max() for x, y in pairs
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="transforms.py", description=__doc__)
    add_isa_option(parser)
    parser.add_argument("--rounds", type=int, default=30, help="rounds per program (default 30)")
    given = parser.parse_args(argv)
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    warnings.simplefilter("ignore")  # the peers'
    rng, torch = np.random.default_rng(0), import_torch()
    where = "one thread" if one_thread.CORE is None else f"one thread on core {one_thread.CORE}"
    print(f"numpy {np.__version__}{'' if torch is None else f', torch {torch.__version__}'}; {where}")
    if torch is None:
        print("torch is absent: pip install 'pullback[bench]' brings it")
    print()
    print(f"{'time ÷ ours; above 1 we win':<48}{'torch':>12}{'a loop':>12}{'ours, µs':>12}")
    for title, calls in (hessians(rng, torch) | per_example(rng, torch)).items():
        expected = calls[OURS]()
        for name, call in calls.items():
            if not is_close(call(), expected):
                raise SystemExit(f"{title}: {name} gives other numbers than pullback")
        times = time_interleaved(calls, given.rounds)
        cells = [
            f"{compute_paired_ratio(times[n], times[OURS]):.2f}" if n in times else "–" for n in ("torch", "a loop")
        ]
        ours = sorted(times[OURS])[given.rounds // 2] * 1e6
        print(f"{title:<48}" + "".join(f"{cell:>12}" for cell in cells) + f"{ours:>12.0f}", flush=True)
    sparse(rng, 10_000, given.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
