"""Training: fit against torch's eager loop and a jitted step of jax, with the same network, weights, batches and rule.

A ratio is the peer's time divided by ours: above 1, pullback is quicker.  The weights of all are compared after some
steps, before anything is timed: WRONG fails the run.  Process CPU time on one core, medians of paired rounds.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
from isa import add_isa_option  # isort: skip
import argparse
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from measure import compute_paired_ratio

import pullback as pb

os.environ["PULLBACK_CACHE"] = "0"  # every library compiles for itself
BATCH = 128
SOME = 20  # steps after which the weights of all are compared


@dataclass
class Task:
    """What is trained: a network of dense and convolutional layers, as weights; data; a goal or a number of epochs."""

    name: str
    x: Any
    y: Any
    weights: list[Any]
    optimizer: str
    rate: float
    batch: int
    bars: dict[str, float]
    test: Any = None  # images and labels to reach the goal on
    goal: float = 0.0
    tolerance: float = 1e-3


def list_tasks() -> list[Task]:
    random = np.random.default_rng(0)

    def weights(*shapes: tuple[int, ...]) -> list[Any]:
        made = []
        for shape in shapes:
            made.append(random.normal(size=shape, scale=np.sqrt(2 / np.prod(shape[:-1]))).astype(np.float32))
            made.append(np.zeros(shape[-1], np.float32))
        return made

    rows = random.normal(size=(60_000, 784)).astype(np.float32), random.integers(0, 10, 60_000).astype(np.int32)
    mlp = weights((784, 256), (256, 10))
    bars = {"torch": 1.5, "jax": 1.1}
    found = [
        Task(f"MLP 784-256-10, 60,000 rows, {rule}", *rows, mlp, rule, rate, BATCH, bars)
        for rule, rate in (("sgd", 0.05), ("adam", 1e-3))
    ]
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        print("digits: scikit-learn is not installed")
        return found
    digits = load_digits()
    images, labels = (digits.images[..., None] / 16).astype(np.float32), digits.target.astype(np.int32)
    order = random.permutation(len(images))
    train, test = order[:1437], order[1437:]
    net = weights((3, 3, 1, 16), (3, 3, 16, 32), (128, 10))
    data = images[train], labels[train], net, "adam", 3e-3, 32, {"torch": 1.0, "jax": 1.0}
    held = (images[test], labels[test])
    return [
        *found,
        Task("digits conv net, an epoch, adam", *data, tolerance=2e-2),
        Task("digits conv net to 98 %, compiling included, adam", *data, held, 0.98, tolerance=2e-2),
    ]


# ---- the contestants: each gives a function that trains one epoch, and one that gives the weights and predictions


def ours(task: Task) -> tuple[Callable[[], Any], Callable[[Any], Any], Callable[[], list[Any]]]:
    layers: list[pb.layers.Layer] = []
    shape: Any = task.x.shape[1:]
    for i in range(0, len(task.weights), 2):
        kernel, last = task.weights[i], i + 2 == len(task.weights)
        if kernel.ndim == 4:
            layers.append(pb.layers.conv2d(kernel.shape[-1], 3, padding="same", activation="relu", input_shape=shape))
            layers.append(pb.layers.max_pooling2d(2))
        else:
            layers += [pb.layers.flatten()] * (task.x.ndim > 2)
            layers.append(pb.layers.dense(kernel.shape[1], activation=None if last else "relu", input_shape=shape))
        shape = None
    model = pb.sequential(layers)
    model.build_for([task.x.shape[1:]])
    model.set_weights(task.weights)
    model.compile(getattr(pb.train, task.optimizer)(task.rate), "sparse_softmax_cross_entropy")

    def epoch() -> None:
        model.fit(task.x, task.y, batch_size=task.batch, shuffle=False, verbose=0)

    return epoch, lambda x: model.predict(x, 360).argmax(1), model.get_weights


def torch_eager(task: Task) -> tuple[Callable[[], Any], Callable[[Any], Any], Callable[[], list[Any]]]:
    import torch

    torch.set_num_threads(1)
    nn = torch.nn
    parts: list[Any] = []
    for i in range(0, len(task.weights), 2):
        kernel, bias = (torch.tensor(w) for w in task.weights[i : i + 2])
        if kernel.ndim == 4:
            layer: Any = nn.Conv2d(kernel.shape[2], kernel.shape[3], 3, padding="same")
            layer.weight.data = kernel.permute(3, 2, 0, 1).contiguous()
            parts += [layer, nn.ReLU(), nn.MaxPool2d(2)]
        else:
            layer = nn.Linear(*kernel.shape)
            layer.weight.data = kernel.T.contiguous()
            parts += [nn.Flatten()] * (task.x.ndim > 2) + [layer] + [nn.ReLU()] * (i + 2 < len(task.weights))
        layer.bias.data = bias
    model = nn.Sequential(*parts)
    rules = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    optimizer = rules[task.optimizer](model.parameters(), lr=task.rate, **_epsilon(task, eps=1e-7))
    first = (0, 3, 1, 2) if task.x.ndim == 4 else (0, 1)
    x = torch.tensor(np.ascontiguousarray(task.x.transpose(first)))
    y = torch.tensor(task.y.astype(np.int64))
    lose = nn.CrossEntropyLoss()

    def epoch() -> None:
        for i in range(0, len(x), task.batch):
            optimizer.zero_grad()
            lose(model(x[i : i + task.batch]), y[i : i + task.batch]).backward()
            optimizer.step()

    def predict(x: Any) -> Any:
        with torch.no_grad():
            return model(torch.tensor(np.ascontiguousarray(x.transpose(first)))).argmax(1).numpy()

    def weights() -> list[Any]:
        found: list[Any] = []
        for p in model.parameters():
            w = p.detach().numpy()
            found.append(w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T if w.ndim == 2 else w)
        if task.x.ndim == 4:  # what torch flattens has the channels in front
            before = task.weights[-2].shape[0]
            side = int(np.sqrt(before // 32))
            found[-2] = found[-2].reshape(32, side, side, -1).transpose(1, 2, 0, 3).reshape(before, -1)
        return found

    if task.x.ndim == 4:
        kernel = model[-1].weight.data
        side = int(np.sqrt(kernel.shape[1] // 32))
        model[-1].weight.data = (
            kernel.reshape(-1, side, side, 32).permute(0, 3, 1, 2).reshape(kernel.shape).contiguous()
        )
    return epoch, predict, weights


def jax_jit(task: Task) -> tuple[Callable[[], Any], Callable[[Any], Any], Callable[[], list[Any]]]:
    import jax
    import jax.numpy as jnp

    def forward(params: Any, x: Any) -> Any:
        for i in range(0, len(params), 2):
            w, b = params[i], params[i + 1]
            if w.ndim == 4:
                x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b
                x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            else:
                x = x.reshape(x.shape[0], -1) @ w + b
                x = jax.nn.relu(x) if i + 2 < len(params) else x
        return x

    def loss(params: Any, x: Any, y: Any) -> Any:
        z = jax.nn.log_softmax(forward(params, x))
        return -jnp.mean(jnp.take_along_axis(z, y[:, None], 1))

    @jax.jit
    def step(params: Any, state: Any, count: Any, x: Any, y: Any) -> Any:
        grads = jax.grad(loss)(params, x, y)
        if task.optimizer == "sgd":
            return [p - task.rate * g for p, g in zip(params, grads, strict=True)], state
        ms = [0.9 * m + 0.1 * g for (m, _), g in zip(state, grads, strict=True)]
        vs = [0.999 * v + 0.001 * g * g for (_, v), g in zip(state, grads, strict=True)]
        a, b = 1 - 0.9**count, 1 - 0.999**count
        new = [p - task.rate * (m / a) / (jnp.sqrt(v / b) + 1e-7) for p, m, v in zip(params, ms, vs, strict=True)]
        return new, list(zip(ms, vs, strict=True))

    params: Any = [jnp.asarray(w) for w in task.weights]
    held = {"params": params, "state": [(jnp.zeros_like(p), jnp.zeros_like(p)) for p in params], "count": 0}
    batches = [
        (jnp.asarray(task.x[i : i + task.batch]), jnp.asarray(task.y[i : i + task.batch]))
        for i in range(0, len(task.x), task.batch)
    ]

    def epoch() -> None:
        for x, y in batches:
            held["count"] += 1
            held["params"], held["state"] = step(held["params"], held["state"], float(held["count"]), x, y)
        jax.block_until_ready(held["params"])

    predictions = jax.jit(lambda params, x: forward(params, x).argmax(1))
    return epoch, lambda x: np.asarray(predictions(held["params"], x)), lambda: [np.asarray(p) for p in held["params"]]


def _epsilon(task: Task, **options: float) -> dict[str, float]:
    return options if task.optimizer == "adam" else {}


CONTESTANTS = {"pullback": ours, "torch": torch_eager, "jax": jax_jit}


# ---- measuring


def time_training(task: Task, made: Any) -> tuple[float, int]:
    """Seconds and epochs: one epoch, or as many as it takes to reach the goal, which is looked at after each."""
    epoch, predict, _ = made
    begin, epochs, right = process_time(), 0, -1.0
    while right < task.goal:
        epoch()
        epochs += 1
        if task.test is None:
            break
        right = float(np.mean(predict(task.test[0]) == task.test[1]))
        if epochs > 100:
            raise RuntimeError(f"{task.name}: {right:.3f} after 100 epochs")
    return process_time() - begin, epochs


def measure_task(task: Task, names: list[str], rounds: int) -> bool:
    found: dict[str, list[float]] = {name: [] for name in names}
    epochs: dict[str, int] = {}
    after: dict[str, list[Any]] = {}
    few = SOME * task.batch  # later on the least significant digits of each go their own ways
    for name in names:
        made = CONTESTANTS[name](replace(task, x=task.x[:few], y=task.y[:few]))
        made[0]()
        after[name] = made[2]()
    good = True
    for name in names[1:]:
        pairs = zip(after[name], after["pullback"], strict=True)
        off = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
        if not off <= task.tolerance:
            print(f"{task.name}: WRONG: {name}'s weights differ by {off:.1e} of the largest after {SOME} steps")
            good = False
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            made = CONTESTANTS[name](task)
            made[0]()  # compiled and warm, as in the middle of a training
            made = _restart(name, task, made)
            seconds, epochs[name] = time_training(task, made)
            found[name].append(seconds)
    steps = {name: -(-len(task.x) // task.batch) * epochs[name] for name in names}
    print(f"\n{task.name}")
    for name in names:
        seconds = median(found[name])
        line = f"  {name:9} {seconds:7.3f} s, {epochs[name]} epoch{'s' * (epochs[name] > 1)}"
        line += f", {seconds / steps[name] * 1e6:7.0f} µs a step"
        if name != "pullback":
            ratio = compute_paired_ratio(found[name], found["pullback"])
            line += f"   {ratio:5.2f}  (bar {task.bars[name]})" + ("" if ratio >= task.bars[name] else "  below")
        print(line)
    return good


def _restart(name: str, task: Task, made: Any) -> Any:
    """From the first weights on, for a goal; otherwise it just goes on."""
    return made if task.test is None else CONTESTANTS[name](task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_isa_option(parser)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="tasks whose name begins so")
    parser.add_argument("--peers", default="torch,jax")
    options = parser.parse_args()
    names = ["pullback"]
    for name in options.peers.split(","):
        try:
            __import__(name)
            names.append(name)
        except ImportError:
            print(f"{name} is not installed")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one thread")
    chosen = [task for task in list_tasks() if task.name.lower().startswith(options.only.lower())]
    good = [measure_task(task, names, options.rounds) for task in chosen]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
