"""Programs of workloads.py on images and tables: convolutions, pooling, gathering."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

# ---- convolutions by hand: all windows as the rows of one matrix


def _make_rows(x: Any, k: int) -> Any:
    padded = np.pad(x, ((0, 0), (k // 2, k // 2), (k // 2, k // 2), (0, 0)))
    windows = sliding_window_view(padded, (k, k), (1, 2))  # type: ignore[call-overload]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, k * k * x.shape[-1])


def _convolve(x: Any, w: Any) -> tuple[Any, Any]:
    rows = _make_rows(x, len(w))
    return (rows @ w.reshape(-1, w.shape[-1])).reshape(*x.shape[:3], -1), rows


def _image_cotangent(g: Any, w: Any) -> Any:
    return _convolve(g, w[::-1, ::-1].swapaxes(2, 3))[0]


def _filter_cotangent(g: Any, rows: Any, w: Any) -> Any:
    return (rows.T @ g.reshape(-1, g.shape[-1])).reshape(w.shape)


def _max_pool(x: Any) -> Any:
    top = np.maximum(x[:, ::2], x[:, 1::2])
    return np.maximum(top[:, :, ::2], top[:, :, 1::2])


def _pool_cotangent(g: Any, x: Any, z: Any) -> Any:
    d = np.empty_like(x)
    for i in (0, 1):
        for j in (0, 1):
            np.multiply(g, x[:, i::2, j::2] == z, out=d[:, i::2, j::2])
    return d * (x > 0)  # and through relu, which is 0 wherever two are equal


# ---- one convolution


def convolution(n, x, w):
    return n.sum(n.conv2d(x, w))


def convolution_by_hand(x, w):
    z, rows = _convolve(x, w)
    g = np.ones_like(z)
    return np.sum(z), [_image_cotangent(g, w), _filter_cotangent(g, rows, w)]


def convolution_data() -> list[Any]:
    random = np.random.default_rng(0)
    x = random.normal(size=(8, 56, 56, 64)).astype("f4")
    return [x, (random.normal(size=(3, 3, 64, 64)) / 24).astype("f4")]


# ---- a small network: two convolutions, each with relu and pooling, and a layer of ten


def network(n, w1, b1, w2, b2, w3, b3, images, labels):
    y = n.max_pool(n.relu(n.conv2d(images, w1) + b1))
    y = n.max_pool(n.relu(n.conv2d(y, w2) + b2))
    logits = y.reshape((len(labels), -1)) @ w3 + b3
    return n.mean(n.log_sum_exp(logits, 1) - n.sum(logits * labels, 1))


def network_by_hand(w1, b1, w2, b2, w3, b3, images, labels):
    y1, rows1 = _convolve(images, w1)
    y1 = np.maximum(y1 + b1, 0)
    p1 = _max_pool(y1)
    y2, rows2 = _convolve(p1, w2)
    y2 = np.maximum(y2 + b2, 0)
    p2 = _max_pool(y2)
    flat = p2.reshape(len(labels), -1)
    logits = flat @ w3 + b3
    top = logits.max(1, keepdims=True)
    weights = np.exp(logits - top)
    total = weights.sum(1, keepdims=True)
    value = np.mean(np.log(total[:, 0]) + top[:, 0] - (logits * labels).sum(1))
    g = (weights / total - labels) / len(labels)
    g2 = _pool_cotangent((g @ w3.T).reshape(p2.shape), y2, p2)
    g1 = _pool_cotangent(_image_cotangent(g2, w2), y1, p1)
    return value, [
        _filter_cotangent(g1, rows1, w1), g1.sum((0, 1, 2)), _filter_cotangent(g2, rows2, w2), g2.sum((0, 1, 2)),
        flat.T @ g, g.sum(0),
    ]  # fmt: skip


def network_data() -> tuple[list[Any], tuple[Any, ...]]:
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return (random.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype("f4")

    images = random.normal(size=(16, 28, 28, 1)).astype("f4")
    labels = np.eye(10, dtype="f4")[random.integers(0, 10, 16)]
    biases = [np.full(n, 0.01, "f4") for n in (16, 32, 10)]
    filters = [drawn(5, 5, 1, 16), drawn(5, 5, 16, 32), drawn(7 * 7 * 32, 10)]
    return [a for pair in zip(filters, biases, strict=True) for a in pair], (images, labels)


# ---- rows of a table


def gather_rows(n, table, positions, weights):
    return n.sum(n.gather(table, positions) * weights)


def gather_rows_by_hand(table, positions, weights):
    d = np.zeros_like(table)
    np.add.at(d, positions, weights)
    return np.sum(table[positions] * weights), [d]


def gather_rows_data() -> tuple[list[Any], tuple[Any, ...]]:
    random = np.random.default_rng(0)
    table = random.normal(size=(10000, 64)).astype("f4")
    return [table], (random.integers(0, 10000, 4096), random.normal(size=(4096, 64)).astype("f4"))
