"""Random programs: compiled values and gradients match eager code, with NaN and infinity at the same places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exhaustive import ALL

import pullback as pb

SHAPES = [
    (),
    (1,),
    (5,),
    (17,),
    (3, 5),
    (3, 1),
    (1, 5),
    (5, 3),
    (2, 3, 5),
    (2, 1, 5),
    (0, 5),
    (33, 5),
    (70, 17),
    (4, 4),
]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, -1e-40, 1e300, -1.0, 0.5, 710.0, -750.0]

UNARY: list[Any] = [
    lambda x: -x, np.abs, np.sin, np.cos, np.tanh, np.exp, lambda x: np.log(np.abs(x) + 1.0),
    lambda x: np.sqrt(np.abs(x)), pb.relu, pb.sigmoid, np.square, lambda x: x * 2.5, lambda x: 1.0 - x,
    lambda x: x / 3.0, pb.softplus, np.arctan,
    lambda x: np.maximum(x, 0.25), lambda x: pb.clip_by_value(x, -1.0, 1.0), lambda x: x**2, lambda x: x**3,
]  # fmt: skip
BINARY: list[Any] = [
    np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, lambda x, y: pb.where(x > y, x, y * 0.5),
    lambda x, y: pb.where(np.isnan(x) | (y == 0), y, x), np.hypot,
]  # fmt: skip
FOLDS: list[Any] = [pb.sum, pb.max, pb.min, pb.mean, pb.log_sum_exp]
MOVES: list[Any] = [
    lambda x: pb.transpose(x), lambda x: pb.reshape(x, (-1,)), lambda x: x[::-1], lambda x: x[1:],
    lambda x: x[..., ::2], lambda x: pb.expand_dims(x, 0), lambda x: pb.concat([x, x * 2.0], 0),
    lambda x: pb.pad(x, [(1, 1)] * x.ndim),
    lambda x: pb.softmax(x), lambda x: pb.cumsum(x, 0), lambda x: pb.sum(x, 0, keepdims=True) + x,
    lambda x: pb.stack([x, x]), lambda x: x - pb.mean(x, -1, keepdims=True),
    lambda x: pb.broadcast_to(x, (2, *x.shape)), lambda x: pb.reverse(x, -1),
]  # fmt: skip


def make_program(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function, as a list of steps over a growing list of values, and its inputs."""
    random = np.random.default_rng(seed)
    dtype = random.choice([np.float32, np.float64])
    inputs = []
    for k in random.integers(len(SHAPES), size=random.integers(1, 4)):
        x = np.asarray(random.normal(size=SHAPES[k]))
        if random.random() < 0.5:
            x = np.where(random.random(x.shape) < 0.2, random.choice(SPECIAL, x.shape), x)
        with np.errstate(over="ignore"):
            inputs.append(np.asarray(x, dtype))
    steps = random.integers([4, 100, 100, 100], size=(random.integers(1, 13), 4)).tolist()

    def f(*xs: Any) -> Any:
        values = list(xs)
        for kind, which, i, j in steps:
            x, y = values[-1 - i % len(values)], values[j % len(values)]
            if kind == 0:
                values.append(UNARY[which % len(UNARY)](x))
            elif kind == 1 and _broadcast(x.shape, y.shape):
                values.append(BINARY[which % len(BINARY)](x, y))
            elif kind == 2 and x.size:
                axis = None if j % 3 == 0 or not x.ndim else j % x.ndim
                values.append(FOLDS[which % len(FOLDS)](x, axis))
            elif kind == 3 and x.ndim and x.size and x.size < 20000:
                values.append(MOVES[which % len(MOVES)](x))
        return values[len(xs) :] or [xs[0] + 0.0]

    return f, inputs


def _broadcast(a: Any, b: Any) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def agree(got: Any, want: Any, dtype: Any, floor: float = 0.0) -> None:
    """Equal up to rounding; below ``floor`` sums of ones may have cancelled."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    usual = np.isfinite(want)
    scale = np.max(np.abs(want[usual]), initial=0) if want.ndim else 0  # sums cancel
    loose = 2e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(
        got, want, rtol=loose, atol=loose * min(float(scale) + floor, 1e30) + np.finfo(dtype).tiny
    )


@pytest.mark.parametrize("seed", range(400 if ALL else 30))
def test_random_program_values(seed: int) -> None:
    f, inputs = make_program(seed)
    with np.errstate(all="ignore"):
        want = f(*map(pb.tensor, inputs))
    for got, wanted in zip(pb.compile(f)(*inputs), want, strict=True):
        agree(np.asarray(got), np.asarray(wanted), inputs[0].dtype)


@pytest.mark.parametrize("seed", range(1000, 1300 if ALL else 1020))
def test_random_program_gradients(seed: int) -> None:
    f, inputs = make_program(seed)
    inputs = [
        np.asarray(np.nan_to_num(x, nan=0.5, posinf=1.5, neginf=-2.5)).clip(-3, 3).astype(x.dtype) for x in inputs
    ]
    total = lambda *xs: sum([pb.sum(np.tanh(y)) for y in f(*xs)])
    pulled = lambda *xs: pb.grads(total, unconnected="zero")(list(xs))
    with np.errstate(all="ignore"):
        want = pulled(*inputs)
    if not all(np.isfinite(d).all() and np.max(np.abs(d), initial=0) < 1e6 for d in want):
        return  # where a derivative explodes, so does what is rounded
    for got, wanted in zip(pb.compile(pulled)(*inputs), want, strict=True):
        agree(np.asarray(got), np.asarray(wanted), inputs[0].dtype, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_arithmetic_keeps_signed_zero(dtype: Any) -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0], dtype)
    for f in (
        lambda x: x * 1.0,
        lambda x: x - 0.0,
        lambda x: x + 0.0,
        lambda x: -x,
        np.sin,
        np.tanh,
        lambda x: x * x[::-1],
    ):
        got, want = pb.compile(f)(x), f(pb.tensor(x)).numpy()
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps)
