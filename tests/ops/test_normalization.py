"""Normalisation against its definition, its gradients against differences; what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ShapeError

RANDOM = np.random.default_rng(8)


def drawn(*shape: int) -> Any:
    return RANDOM.normal(size=shape)


def close(a: Any, b: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


def checked(f: Any, *inputs: Any) -> None:
    """First and second order along random directions, against central differences."""
    dy, h = drawn(*np.shape(f(*inputs))), 1e-6
    ts = [drawn(*x.shape) for x in inputs]
    moved = lambda s: [x + s * h * t for x, t in zip(inputs, ts, strict=True)]
    inner = lambda ds: sum(np.vdot(d, t) for d, t in zip(ds, ts, strict=True))
    grads = pb.grads(f)
    close(inner(grads(list(inputs), dy)), np.vdot(dy, f(*moved(1)) - f(*moved(-1))) / (2 * h), 1e-6)
    slope = lambda *xs: sum(np.sum(d * t) for d, t in zip(grads(list(xs), dy), ts, strict=True))
    close(
        inner(pb.grads(slope, unconnected="zero")(list(inputs))), (slope(*moved(1)) - slope(*moved(-1))) / (2 * h), 1e-5
    )


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_batch_norm(rank: int) -> None:
    x, mean, variance, offset, scale = drawn(*[4, 2, 3, 5][4 - rank :]), drawn(5), drawn(5) ** 2, drawn(5), drawn(5)
    want = (x - mean) / np.sqrt(variance + 0.1)
    close(pb.batch_norm(x, mean, variance, None, None, 0.1), want)
    close(pb.batch_norm(x, mean, variance, offset, None, 0.1), want + offset)
    close(pb.batch_norm(x, mean, variance, None, scale, 0.1), want * scale)
    close(pb.batch_norm(x, mean, variance, offset, scale, 0.1), want * scale + offset)
    close(getattr(pb, f"batch_norm{rank}d")(x, mean, variance, offset, scale, 0.1), want * scale + offset)
    close(pb.batch_norm(x, mean, variance), (x - mean) / np.sqrt(variance + 0.001))
    close(pb.batch_norm(x, mean, variance, variance_epsilon=None), (x - mean) / np.sqrt(variance + 0.001))
    checked(pb.batch_norm, x, mean, variance + 1, offset, scale)


def test_batch_norm_with_moments() -> None:
    """What a layer does while it learns: mean and variance are of ``x``, and the gradient knows."""
    x, scale = drawn(4, 2, 3), drawn(3)

    def layer(x: Any, scale: Any) -> Any:
        mean, variance = pb.moments(x, [0, 1])
        return pb.batch_norm(x, mean, variance, None, scale)

    close(np.mean(layer(x, np.ones(3)), (0, 1)), np.zeros(3))
    checked(layer, x, scale)
    close(pb.grad(lambda x: pb.sum(layer(x, scale)))(x), np.zeros(x.shape))


def test_layer_norm() -> None:
    x, offset, scale = drawn(3, 4, 5), drawn(5), drawn(5)
    for axis in (-1, (1, 2), [0, 2]):
        axes = tuple(axis) if isinstance(axis, list) else axis
        want = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
        close(pb.layer_norm(x, axis=axis), want)
        close(pb.layer_norm(x, offset, scale, axis), want * scale + offset)
        checked(lambda x, o, s, axis=axis: pb.layer_norm(x, o, s, axis), x, offset, scale)
    assert pb.layer_norm(x.astype("f4"), offset.astype("f4")).dtype == np.float32


@pytest.mark.parametrize("radius", [0, 1, 5])
def test_local_response_normalization(radius: int) -> None:
    x = drawn(2, 2, 3, 4)
    near = [(x[..., max(c - radius, 0) : c + radius + 1] ** 2).sum(-1) for c in range(4)]
    want = x / (2 + 0.3 * np.stack(near, -1)) ** 0.7
    close(pb.local_response_normalization(x, radius, 2, 0.3, 0.7), want)
    close(pb.local_response_normalization(x[0], radius, 2, 0.3, 0.7), want[0])
    checked(lambda x: pb.local_response_normalization(x, radius, 2, 0.3, 0.7), x)
    assert pb.local_response_normalization(x.astype("f4")).dtype == np.float32


X = np.ones((2, 3))


@pytest.mark.parametrize(("call", "words"), [
    (lambda: pb.batch_norm3d(X, np.ones(3), np.ones(3)), r"batch_norm3d: x must have rank 3, got shape \(2, 3\)"),
    (lambda: pb.batch_norm(X, np.ones(2), np.ones(3)), r"batch_norm: mean has shape \(2,\); for x of shape \(2, 3\)"),
    (lambda: pb.batch_norm(X, np.ones(3), np.ones(2)), r"batch_norm: variance has shape \(2,\)"),
    (lambda: pb.batch_norm(X, np.ones(3), np.ones((2, 3))), r"batch_norm: variance has shape .* the rank of mean"),
    (lambda: pb.batch_norm(X, np.ones(3), np.ones(3), np.ones(4)), r"batch_norm: offset has shape \(4,\)"),
    (lambda: pb.batch_norm(X, np.ones(3), np.ones(3), None, np.ones(4)), r"batch_norm: scale has shape \(4,\)"),
    (lambda: pb.batch_norm(X, np.ones(3), None), r"batch_norm: variance must be given"),
    (lambda: pb.layer_norm(X, axis=2), r"layer_norm: axis 2 is out of range"),
    (lambda: pb.local_response_normalization(X), r"local_response_normalization: x must have rank 4"),
    (lambda: pb.local_response_normalization(np.ones((1, 1, 2)), 0.5), r"depth_radius must be an integer >= 0"),
])  # fmt: skip
def test_normalization_bad_input_raises(call: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        call()
