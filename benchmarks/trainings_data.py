"""The data of the nine trainings, and what is measured of what was learned: the same for every library."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris

EFFORT = 1.0  # of the epochs and steps; less with --quick


def count(steps: int) -> int:
    """Return how many epochs or steps are made."""
    return max(1, round(steps * EFFORT))


def cut(x: Any, y: Any, seed: int, part: float = 0.8) -> tuple[Any, Any, Any, Any]:
    """Return what is trained on and what is held back."""
    order = np.random.default_rng(seed).permutation(len(x))
    most = int(part * len(x))
    return x[order[:most]], y[order[:most]], x[order[most:]], y[order[most:]]


def score(logits: Any, labels: Any) -> float:
    """Return the share of right labels."""
    return float(np.mean(np.argmax(logits, -1) == labels))


def lose(logits: Any, labels: Any) -> float:
    """Return the mean cross-entropy."""
    flat = np.asarray(logits, np.float64).reshape(-1, np.shape(logits)[-1])
    flat = flat - flat.max(-1, keepdims=True)
    picked = flat[np.arange(len(flat)), np.ravel(labels)]
    return float(np.mean(np.log(np.exp(flat).sum(-1)) - picked))


def iris(seed: int) -> tuple[Any, Any, Any, Any]:
    x, y = load_iris(return_X_y=True)
    return cut(((x - x.mean(0)) / x.std(0)).astype("f4"), y.astype("i4"), seed)


def digits(seed: int) -> tuple[Any, Any, Any, Any]:
    found = load_digits()
    return cut((found.images[..., None] / 16).astype("f4"), found.target.astype("i4"), seed)


def split_digits(seed: int) -> tuple[Any, Any]:
    x, y, held, labels = digits(seed)
    low, high = y < 5, y >= 5
    return (x[low], y[low]), (x[high], y[high] - 5, held[labels >= 5], labels[labels >= 5] - 5)


def sums(seed: int) -> tuple[Any, Any, Any, Any]:
    random = np.random.default_rng(seed)
    pairs = random.integers(0, 100, (4000, 2))
    code = lambda texts: np.array([["0123456789+ ".index(c) for c in t] for t in texts], "i4")
    x, y = code([f"{a}+{b}".ljust(5) for a, b in pairs]), code([f"{a + b}".ljust(3) for a, b in pairs])
    return cut(np.eye(12, dtype="f4")[x], y, seed)


@lru_cache(1)
def read_text() -> tuple[Any, int]:
    text = (Path(__file__).parent / "README.md").read_text("ascii", "ignore")
    letters = sorted({*text})
    return np.array([letters.index(c) for c in text], "i4"), len(letters)


def letters(seed: int, length: int = 40, many: int = 2000) -> tuple[Any, Any, Any, Any]:
    codes, _ = read_text()
    begins = np.random.default_rng(seed).integers(0, len(codes) - length - 1, many)
    windows = codes[begins[:, None] + np.arange(length + 1)]
    return cut(windows[:, :-1], windows[:, 1:], seed)


def draw_circle(random: Any, many: int) -> Any:
    angle = 2 * np.pi * random.integers(0, 8, many) / 8
    points = np.stack([np.cos(angle), np.sin(angle)], -1) * 2 + 0.05 * random.normal(size=(many, 2))
    return points.astype("f4")


def measure_points(points: Any) -> float:
    """Return the mean distance from the nearest of the eight points."""
    angle = 2 * np.pi * np.arange(8) / 8
    centres = np.stack([np.cos(angle), np.sin(angle)], -1) * 2
    return float(np.mean(np.linalg.norm(points[:, None] - centres, axis=-1).min(-1)))


class Pole:
    """The cart and its pole, as in Gymnasium's CartPole."""

    def __init__(self, random: Any) -> None:
        self.state = random.uniform(-0.05, 0.05, 4)

    def push(self, right: int) -> bool:
        """Move on by one step, and return whether the pole still stands."""
        x, v, angle, turn = self.state
        force, c, s = 10.0 if right else -10.0, np.cos(angle), np.sin(angle)
        t = (force + 0.05 * turn * turn * s) / 1.1
        bend = (9.8 * s - c * t) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        a = t - 0.05 * bend * c / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * a, angle + 0.02 * turn, turn + 0.02 * bend])
        return bool(abs(self.state[0]) < 2.4 and abs(self.state[2]) < 0.2095)


def balance(odds: Callable[[Any], Any], learn: Callable[..., Any], seed: int) -> float:
    """Play and learn, and return how many steps the last episodes lasted."""
    random, lasted = np.random.default_rng(seed), []
    for _ in range(count(40)):
        states, pushes, returns = [], [], []
        for _ in range(8):
            pole, begin = Pole(random), len(pushes)
            while len(pushes) - begin < 200:
                states.append(pole.state.astype("f4"))
                pushes.append(int(random.random() < float(odds(states[-1][None]))))
                if not pole.push(pushes[-1]):
                    break
            lasted.append(len(pushes) - begin)
            returns.append(np.cumsum(0.99 ** np.arange(lasted[-1]))[::-1])
        after = np.concatenate(returns)
        advantages = (after - after.mean()) / (after.std() + 1e-6)
        learn(np.array(states), np.array(pushes, "f4"), advantages.astype("f4"))
    return mean(lasted[-80:])
