"""Recurrent cells against their definition, and the running average."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

R = np.random.default_rng(5)
KERNEL, BIAS = R.normal(size=(5, 12)), R.normal(size=12)
DATA, C, H = R.normal(size=(2, 2)), R.normal(size=(2, 3)), R.normal(size=(2, 3))
SMALL = 1e-6


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def by_hand(forget: Any, kernel: Any, bias: Any, data: Any, c: Any, h: Any) -> tuple[Any, Any]:
    i, j, f, o = np.split(np.concatenate([data, h], 1) @ kernel + bias, 4, axis=1)
    c = sigmoid(i) * np.tanh(j) + c * sigmoid(forget + f)
    return c, np.tanh(c) * sigmoid(o)


def test_basic_lstm_cell() -> None:
    point = [np.float64(0.5), KERNEL, BIAS, DATA, C, H]
    state = pb.basic_lstm_cell(*point)
    assert isinstance(state.c, np.ndarray)
    for got, want in zip(state, by_hand(*point), strict=True):
        np.testing.assert_allclose(got, want)
    tensors = pb.basic_lstm_cell(0.5, *map(pb.tensor, point[1:]))
    assert all(isinstance(x, pb.Tensor) for x in tensors)
    np.testing.assert_allclose(tensors.h.numpy(), state.h)

    f = lambda *xs: (lambda s: np.sum(s.c * s.h))(pb.basic_lstm_cell(*xs))
    ts = [R.normal(size=np.shape(x)) for x in point]
    ahead, behind = (f(*[x + s * SMALL * t for x, t in zip(point, ts, strict=True)]) for s in (1, -1))
    got = sum(np.vdot(d, t) for d, t in zip(pb.grads(f)(point), ts, strict=True))
    np.testing.assert_allclose(got, (ahead - behind) / (2 * SMALL), rtol=1e-6)


def test_multi_rnn_cell() -> None:
    first = lambda data, c, h: pb.basic_lstm_cell(1.0, KERNEL, BIAS, data, c, h)
    kernel = R.normal(size=(6, 12))
    second = lambda data, c, h: pb.basic_lstm_cell(1.0, kernel, BIAS, data, c, h)
    state = pb.multi_rnn_cell([first, second], DATA, [C, C + 1], [H, H + 1])
    c1, h1 = by_hand(1.0, KERNEL, BIAS, DATA, C, H)
    c2, h2 = by_hand(1.0, kernel, BIAS, h1, C + 1, H + 1)
    for got, want in zip([*state.c, *state.h], [c1, c2, h1, h2], strict=True):
        np.testing.assert_allclose(got, want)
    g = pb.grad(lambda x: pb.sum(pb.multi_rnn_cell([first, second], x, [C, C], [H, H]).h[1]))(DATA)
    assert g.shape == DATA.shape
    assert np.all(g)


def test_moving_average() -> None:
    v, x = np.array([1.0, 2.0]), np.array([3.0, 0.0])
    np.testing.assert_allclose(pb.moving_average(v, x, 0.9, zero_debias=False), 0.9 * v + 0.1 * x)
    np.testing.assert_allclose(pb.moving_average(v, x, 0.9, 3), v + (x - v) * 0.1 / (1 - 0.9**3))
    kept = pb.variable([1.0, 2.0])
    z = pb.moving_average(kept, [3.0, 0.0], 0.5, zero_debias=False)
    np.testing.assert_array_equal(z.numpy(), [2, 1])
    np.testing.assert_array_equal(kept.numpy(), [1, 2])
    gv, gx = pb.grads(lambda v, x: pb.moving_average(v, x, 0.75, zero_debias=False))([v, x])
    np.testing.assert_array_equal([gv, gx], [[0.75, 0.75], [0.25, 0.25]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.basic_lstm_cell(1.0, KERNEL[:, :8], BIAS, DATA, C, H), ShapeError,
         r"lstm_kernel must have shape \(5, 12\): inputs \+ units, 4 \* units, got \(5, 8\)"),
        (lambda: pb.basic_lstm_cell(1.0, KERNEL, BIAS[:4], DATA, C, H), ShapeError, r"lstm_bias .* got \(4,\)"),
        (lambda: pb.basic_lstm_cell(1.0, KERNEL, BIAS, DATA[0], C, H), ShapeError,
         r"data must have .* rank 2, got \(2,\)"),
        (lambda: pb.basic_lstm_cell(1.0, KERNEL, BIAS, DATA[:1], C, H), ShapeError,
         r"data .* the batch of h, got \(1, 2\)"),
        (lambda: pb.basic_lstm_cell(1.0, KERNEL, BIAS, DATA, C[:, :2], H), ShapeError,
         r"c must .* that of h, got \(2, 2\)"),
        (lambda: pb.multi_rnn_cell([len], 1.0, [1.0, 2.0], [1.0]), ArgumentError,
         "each of the 1 lstm_cells, got 2 and 1"),
        (lambda: pb.moving_average(np.ones(2), np.ones(3), 0.5), ShapeError,
         r"v of shape \(2,\) and x of shape \(3,\)"),
        (lambda: pb.moving_average(np.ones(2), np.ones(2), 0.5), ArgumentError, "zero_debias needs step"),
    ],
)  # fmt: skip
def test_recurrent_bad_input_raises(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
