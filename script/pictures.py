"""Draw the pictures of the README and of the documentation into docs/images, by ``pb.plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
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


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    plt.rcParams.update(SETTINGS)
    for draw in (draw_function, draw_field, draw_training, draw_graph):
        draw()
