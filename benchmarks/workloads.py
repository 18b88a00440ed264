"""The programs that are timed: each written once over a namespace of functions, and once by hand.

A program is ``f(n, *inputs, *constants)``; ``n`` has the functions of one library under common names (see peers.py).
Its twin ``by_hand(*inputs, *constants)`` gives the value and the gradients in plain NumPy: the same program forward,
then its backward pass as one would write it without a library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from images import (
    convolution,
    convolution_by_hand,
    convolution_data,
    gather_rows,
    gather_rows_by_hand,
    gather_rows_data,
    network,
    network_by_hand,
    network_data,
)


@dataclass(frozen=True)
class Workload:
    key: str
    title: str
    f: Callable[..., Any]
    by_hand: Callable[..., tuple[Any, list[Any]]]
    inputs: list[Any]
    constants: tuple[Any, ...] = ()
    tolerance: float = 1e-9  # relative to the largest element
    needs: tuple[str, ...] = ()  # functions that not every library has
    table: str = "programs"  # each table has a mean of its own


# ---- a chain of small ops


def chain(n, x):
    y = x
    for _ in range(25):
        y = n.tanh(y)
        y = y * x
        y = y + x
        y = n.sin(y)
    return n.sum(y)


def chain_by_hand(x):
    y, steps = x, []
    for _ in range(25):
        t = np.tanh(y)
        s = t * x + x
        y = np.sin(s)
        steps.append((t, s))
    g, dx = np.ones_like(x), np.zeros_like(x)
    for t, s in reversed(steps):
        g = g * np.cos(s)
        dx += g
        dx += g * t
        g = g * x
        g -= g * (t * t)
    return np.sum(y), [dx + g]


def constant_chain(n, x):
    y = x
    for _ in range(25):
        y = n.tanh(y)
        y = y * 1.5
        y = y + 0.25
        y = n.sin(y)
    return n.sum(y)


def constant_chain_by_hand(x):
    y, steps = x, []
    for _ in range(25):
        t = np.tanh(y)
        s = t * 1.5 + 0.25
        y = np.sin(s)
        steps.append((t, s))
    g = np.ones_like(x)
    for t, s in reversed(steps):
        g = g * np.cos(s) * 1.5
        g -= g * (t * t)
    return np.sum(y), [g]


# ---- Rosenbrock's valley


def rosenbrock(n, x):
    a = x[:-1]
    return n.sum(100.0 * (x[1:] - a**2) ** 2 + (1.0 - a) ** 2)


def rosenbrock_by_hand(x):
    a = x[:-1]
    r, q = x[1:] - a**2, 1.0 - a
    dx = np.zeros_like(x)
    dx[1:] = 200.0 * r
    dx[:-1] -= 400.0 * a * r + 2.0 * q
    return np.sum(100.0 * r**2 + q**2), [dx]


def rosenbrock_of_two(n, x, y):
    return (1.0 - x) ** 2 + 100.0 * (y - x * x) ** 2


def rosenbrock_of_two_by_hand(x, y):
    q, r = 1.0 - x, y - x * x
    return q**2 + 100.0 * r**2, [-2.0 * q - 400.0 * r * x, 200.0 * r]


# ---- a network of two layers, cross-entropy on one-hot labels


def mlp(n, w1, b1, w2, b2, images, labels):
    hidden = n.relu(images @ w1 + b1)
    logits = hidden @ w2 + b2
    return n.mean(n.log_sum_exp(logits, 1) - n.sum(logits * labels, 1))


def mlp_by_hand(w1, b1, w2, b2, images, labels):
    hidden = np.maximum(images @ w1 + b1, 0)
    logits = hidden @ w2 + b2
    top = logits.max(1, keepdims=True)
    weights = np.exp(logits - top)
    total = weights.sum(1, keepdims=True)
    value = np.mean(np.log(total[:, 0]) + top[:, 0] - (logits * labels).sum(1))
    d_logits = (weights / total - labels) / len(images)
    d_hidden = (d_logits @ w2.T) * (hidden > 0)
    return value, [images.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_logits, d_logits.sum(0)]


# ---- a recurrent network


def lstm(n, wx, wh, b, xs, h, c):
    size = h.shape[1]
    for x in xs:
        z = x @ wx + h @ wh + b
        gates, u = n.sigmoid(z[:, : 3 * size]), n.tanh(z[:, 3 * size :])
        c = gates[:, size : 2 * size] * c + gates[:, :size] * u
        h = gates[:, 2 * size :] * n.tanh(c)
    return n.mean(h * h)


def lstm_by_hand(wx, wh, b, xs, h, c):
    size, steps = h.shape[1], []
    for x in xs:
        z = x @ wx + h @ wh + b
        gates, u = 1 / (1 + np.exp(-z[:, : 3 * size])), np.tanh(z[:, 3 * size :])
        previous_h, previous_c = h, c
        c = gates[:, size : 2 * size] * c + gates[:, :size] * u
        t = np.tanh(c)
        h = gates[:, 2 * size :] * t
        steps.append((x, previous_h, previous_c, gates, u, t))
    dwx, dwh, db = np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b)
    dh, dc = h * np.float32(2 / h.size), np.zeros_like(c)
    for x, previous_h, previous_c, gates, u, t in reversed(steps):
        dc += dh * gates[:, 2 * size :] * (1 - t * t)
        dz = np.empty((len(x), 4 * size), h.dtype)
        dz[:, :size] = dc * u
        dz[:, size : 2 * size] = dc * previous_c
        dz[:, 2 * size : 3 * size] = dh * t
        dz[:, : 3 * size] *= gates - gates * gates
        dz[:, 3 * size :] = dc * gates[:, :size] * (1 - u * u)
        dwx += x.T @ dz
        dwh += previous_h.T @ dz
        db += dz.sum(0)
        dh = dz @ wh.T
        dc *= gates[:, size : 2 * size]
    return np.mean(h * h), [dwx, dwh, db]


# ---- a gradient of a gradient


def tower(n, x):
    for _ in range(10):
        x = n.tanh(x)
    return n.sum(x)


def second_order(n, x):
    return n.sum(n.grad(lambda x: tower(n, x))(x))


def second_order_by_hand(x):
    y, first, second = x, np.ones_like(x), np.zeros_like(x)
    for _ in range(10):
        y = np.tanh(y)
        slope = 1 - y * y
        second = slope * second - 2 * y * slope * first**2
        first = slope * first
    return np.sum(first), [second]


# ---- big arrays


def big(n, x, w):
    y = x * w
    y = y + x
    y = y * x
    y = y - w
    y = y * w
    y = y + x
    y = y * y
    y = y - x
    y = y * w
    y = y + w
    return n.sum(y)


def big_by_hand(x, w):
    y2 = x * w + x
    y4 = y2 * x - w
    y6 = y4 * w + x
    y8 = y6 * y6 - x
    value = np.sum(y8 * w + w)
    y8 += 1
    dw, g = y8, w * y6
    g += g
    dx = g - w
    y4 *= g
    dw += y4
    g *= w
    dw -= g
    y2 *= g
    dx += y2
    g *= x
    dx += g
    dw += g * x
    g *= w
    dx += g
    return value, [dx, dw]


def _mlp_data(sizes: tuple[int, int, int], batch: int) -> tuple[list[Any], tuple[Any, ...]]:
    random = np.random.default_rng(0)
    inputs, hidden, outputs = sizes
    images = random.normal(size=(batch, inputs)).astype("f4")
    labels = np.eye(outputs, dtype="f4")[random.integers(0, outputs, batch)]
    w1 = (random.normal(size=(inputs, hidden)) / np.sqrt(inputs)).astype("f4")
    w2 = (random.normal(size=(hidden, outputs)) / np.sqrt(hidden)).astype("f4")
    return [w1, np.full(hidden, 0.01, "f4"), w2, np.zeros(outputs, "f4")], (images, labels)


def _lstm_data(steps: int, size: int, batch: int) -> tuple[list[Any], tuple[Any, ...]]:
    random = np.random.default_rng(0)
    xs = [random.normal(size=(batch, size)).astype("f4") for _ in range(steps)]
    wx, wh = ((random.normal(size=(size, 4 * size)) * 0.2).astype("f4") for _ in range(2))
    start = np.zeros((batch, size), "f4")
    return [wx, wh, np.zeros(4 * size, "f4")], (xs, start, start)


IMAGES = "images and tables"


def list_workloads() -> list[Workload]:
    """Return all of them, with their data."""
    random = np.random.default_rng(0)
    ten, hundred = random.uniform(0.1, 1, 10), random.uniform(0.1, 1, 100)
    million = [random.uniform(0.1, 1, 10**6).astype("f4") for _ in range(2)]
    single = 1e-3
    return [
        Workload("chain", "100 elementwise ops, n = 10", chain, chain_by_hand, [ten]),
        Workload("constants", "the same with Python constants", constant_chain, constant_chain_by_hand, [ten]),
        Workload("rosenbrock", "Rosenbrock, 100-vector", rosenbrock, rosenbrock_by_hand, [hundred]),
        Workload("scalars", "Rosenbrock, 2 scalars", rosenbrock_of_two, rosenbrock_of_two_by_hand, [0.5, 0.7]),
        Workload("mlp", "MLP 64-64-10, batch 32", mlp, mlp_by_hand, *_mlp_data((64, 64, 10), 32), single),
        Workload("mnist", "MLP 784-256-10, batch 256", mlp, mlp_by_hand, *_mlp_data((784, 256, 10), 256), single),
        Workload("lstm", "LSTM 50 steps, hidden 32, batch 16", lstm, lstm_by_hand, *_lstm_data(50, 32, 16), single),
        Workload("second", "grad of grad, 10 tanh, n = 10", second_order, second_order_by_hand, [ten]),
        Workload("big", "10 ops on 1e6 float32", big, big_by_hand, million, (), single),
        Workload(
            "convnet", "conv net 28×28×1-16-32-10, batch 16", network, network_by_hand, *network_data(), single,
            ("conv2d", "max_pool"), IMAGES,
        ),
        Workload(
            "conv", "conv2d 8×56×56×64 → 64, 3×3", convolution, convolution_by_hand, convolution_data(), (), single,
            ("conv2d",), IMAGES,
        ),
        Workload(
            "gather", "gather 4096 of 10000×64", gather_rows, gather_rows_by_hand, *gather_rows_data(), single, (),
            IMAGES,
        ),
    ]  # fmt: skip
