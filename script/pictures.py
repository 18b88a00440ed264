"""Draw the pictures of the README, of the documentation and of the examples into docs/images, by ``pb.plot``."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images"
SETTINGS = {"svg.hashsalt": "pullback", "svg.fonttype": "none", "font.size": 9, "figure.figsize": (4.6, 3.0)}


def save(name: str, ax: Any) -> None:
    """Write the figure of some axes as SVG, the same bytes each time."""
    ax.figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None}, facecolor="white")
    plt.close(ax.figure)


def draw_function() -> None:
    def f(x: Any) -> Any:
        return np.sin(x) * np.exp(-x / 5)

    save("function", pb.plot.function(f, 0.0, 10.0, derivatives=2))


def draw_field() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.log1p((1 - x) ** 2 + 10 * (y - x**2) ** 2)

    v = pb.variable([-1.2, 1.2], name="path")
    adam, path = pb.train.adam(0.05), [v.numpy().copy()]
    for _ in range(120):
        adam.minimize(lambda: f(v[0], v[1]))
        path.append(v.numpy().copy())
    save("field", pb.plot.field(f, (-1.5, 1.5), (-0.5, 1.5), path=path))


def draw_training() -> None:
    pb.random.seed(0)
    x = np.random.default_rng(0).normal(size=(600, 2))
    labels = (x[:, 0] * x[:, 1] > 0).astype(int)
    model = pb.sequential([pb.layers.dense(16, activation="tanh", input_shape=[2]), pb.layers.dense(2)])
    model.compile(optimizer=pb.train.adam(0.02), loss="sparse_softmax_cross_entropy", metrics=["accuracy"])
    history = model.fit(x, labels, epochs=40, validation_split=0.2, verbose=0)
    save("history", pb.plot.history(history))
    save("weights", pb.plot.weights(model))
    found = np.argmax(np.asarray(model.predict(x)), axis=1)
    save("confusion", pb.plot.confusion(labels, found, ["different signs", "same sign"]))


def draw_graph() -> None:
    def loss(x: Any, w: Any, b: Any) -> Any:
        return np.sum(np.tanh(x @ w + b) ** 2)

    pb.plot.graph(loss, np.ones((2, 3)), np.full((3, 2), 0.1), np.zeros(2)).save(FOLDER / "graph.svg")


# ---- of what examples computed


def run_example(name: str, *options: str) -> dict[str, Any]:
    """Run an example and return its variables."""
    sys.argv = [name, *options]
    sys.path.insert(0, str(ROOT / "examples"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")


def draw_fit_curve(found: dict[str, Any]) -> Any:
    ax = plt.figure(layout="constrained").subplots()
    ax.plot(found["t"], found["seen"], ".", markersize=3, label="seen")
    ax.plot(found["t"], found["curve"](found["exact"].x, found["t"]), label="fitted")
    ax.legend()
    return ax


def draw_log1pexp(found: dict[str, Any]) -> Any:
    return pb.plot.function(found["stable"], -6.0, 6.0, derivatives=2)


def draw_logistic_regression(found: dict[str, Any]) -> Any:
    points, kind, (a, b) = found["points"], found["kind"], found["weights"].numpy()
    ax = plt.figure(layout="constrained").subplots()
    for value, label in enumerate(("first cluster", "second cluster")):
        ax.plot(*points[kind == value].T, ".", label=label)
    x = np.array([points[:, 0].min(), points[:, 0].max()])
    ax.plot(x, -(found["bias"].numpy() + a * x) / b, "k", label="boundary")
    ax.set_ylim(points[:, 1].min(), points[:, 1].max())
    ax.legend()
    return ax


def draw_nested_gradients(found: dict[str, Any]) -> Any:
    path, f = [np.array([0.8, 0.8])], found["f"]
    for _ in range(6):
        x = path[-1]
        hessian = np.stack([found["hessian_times"](x, e) for e in np.eye(2)])
        path.append(x - np.linalg.solve(hessian, pb.grad(f)(x)))
    return pb.plot.field(lambda x, y: f(np.stack([x, y])), (-1.0, 1.0), (-1.0, 1.0), path=path)


def draw_scipy_minimize(found: dict[str, Any]) -> Any:
    f, path = found["rosenbrock"], [np.array([-1.2, 1.2])]
    found["minimize"](pb.value_and_grad(f), path[0], jac=True, method="BFGS", callback=lambda x: path.append(x.copy()))
    return pb.plot.field(lambda x, y: np.log1p(f(np.stack([x, y]))), (-1.5, 1.5), (-0.5, 1.5), path=path)


def draw_scale_out() -> Any:
    """Draw what the example prints; its workers need it as a program of its own."""
    command = [sys.executable, str(ROOT / "examples" / "scale_out.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    steps = [(int(step), float(error)) for step, error in re.findall(r"step +(\d+): error ([\d.]+)", printed)]
    ax = plt.figure(layout="constrained").subplots()
    ax.semilogy(*zip(*steps, strict=True), "o-")
    ax.set_xlabel("step")
    ax.set_ylabel("mean squared error over all files")
    return ax


def draw_digits(found: dict[str, Any]) -> Any:
    return pb.plot.history(found["history"])


def draw_char_rnn(found: dict[str, Any]) -> Any:
    ax = plt.figure(layout="constrained").subplots()
    ax.plot(found["losses"])
    ax.set_xlabel("step")
    ax.set_ylabel("nats per letter")
    return ax


def draw_cartpole(found: dict[str, Any]) -> Any:
    ax = plt.figure(layout="constrained").subplots()
    ax.bar(np.arange(-len(found["recent"]), 0), found["recent"], width=1.0)
    ax.set_xlabel("the last episodes before it was solved")
    ax.set_ylabel("steps")
    return ax


def draw_maximal_activation(found: dict[str, Any]) -> Any:
    images = np.pad(found["found"][:24, :, :, 0], ((0, 0), (1, 1), (1, 1)), constant_values=1.0)
    ax = plt.figure(layout="constrained").subplots()
    ax.imshow(np.vstack([np.hstack(images[i : i + 8]) for i in (0, 8, 16)]), cmap="gray")
    ax.set_axis_off()
    return ax


def draw_examples() -> None:
    drawers: dict[str, Callable[[dict[str, Any]], Any]] = {
        "fit_curve": draw_fit_curve,
        "log1pexp": draw_log1pexp,
        "logistic_regression": draw_logistic_regression,
        "nested_gradients": draw_nested_gradients,
        "scipy_minimize": draw_scipy_minimize,
        "digits": draw_digits,
        "char_rnn": draw_char_rnn,
        "cartpole": draw_cartpole,
        "maximal_activation": draw_maximal_activation,
    }
    (FOLDER / "examples").mkdir(exist_ok=True)
    for name, draw in drawers.items():
        save(f"examples/{name}", draw(run_example(name)))
    save("examples/scale_out", draw_scale_out())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    plt.rcParams.update(SETTINGS)
    for draw in (draw_function, draw_field, draw_training, draw_graph, draw_examples):
        draw()
