"""Random eager programs, for comparing machine code with Python: values, gradients, warnings and errors.

``python tests/core/eager_programs.py 0 20000`` prints a line for each of the programs 0 to 19,999; with
``PULLBACK_NATIVE_OPS=0`` in the environment it must print the same.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from hashlib import sha1
from typing import Any

import numpy as np

import pullback as pb
from pullback.core import native

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 1e-308, 5e-324, 1e38, 1e-40, 700.0]
DTYPES = ["f8"] * 10 + ["f4"] * 6 + ["f2", "g", "i8", "?", "c16", ">f8"]
SHAPES = [(4,), (3, 5), (7,), (17, 9), (1,), (2, 3, 4), (600,), (8, 130)]
BIG = (140_000,)
MODES = ["warn"] * 5 + ["ignore", "raise", "call"]


@pb.custom_grad
def halve_gradient(x: Any) -> Any:
    return np.sin(x) * 2.0, lambda g: g * 0.5


@pb.custom_grad
def refuse_gradient(x: Any) -> Any:
    def back(g: Any) -> Any:
        raise RuntimeError("no gradient today")

    return x * 2.0, back


UNARY: list[Callable[..., Any]] = [
    np.sin, np.exp, np.log, np.tanh, np.sqrt, np.abs, np.negative, np.square, np.log1p, np.arctan, np.reciprocal,
    np.sign, np.cbrt, pb.sigmoid, pb.relu, pb.softplus, np.arcsin, np.exp2, pb.gelu, halve_gradient, refuse_gradient,
    pb.stop_gradient, np.transpose, lambda x: x[0], lambda x: x[1:], lambda x: x[..., ::2], lambda x: x[::-1],
    lambda x: np.sum(x, axis=0), lambda x: np.mean(x, axis=-1, keepdims=True), np.max, pb.log_sum_exp,
    lambda x: np.reshape(x, (-1,)), lambda x: pb.grad(lambda y: pb.sum(np.sin(y) * x))(x),
    lambda x: pb.jvp(np.tanh, [x], [x])[1], pb.vmap(lambda x: x * np.cos(x)),
]  # fmt: skip
BINARY: list[Callable[..., Any]] = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x**y, np.maximum,
    np.arctan2, np.hypot, np.logaddexp, lambda x, y: x % y, np.copysign, lambda x, y: np.where(x > y, x, y),
]  # fmt: skip


def add_in_place(x: Any, y: Any) -> Any:
    x += y
    return x


def write_elements(x: Any, y: Any) -> Any:
    x[..., 1:] = y[..., :-1]
    return x


def make_value(random: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return an array or a number, some of them with unusual elements, dtypes and layouts."""
    if shape != BIG:
        others = [shape[-1:], (*shape[:-1], 1), (1, *shape[1:]), (), (*shape[:-1], 0)]
        shape = shape if random.random() < 0.6 else others[random.choice(5, p=[0.4, 0.2, 0.15, 0.2, 0.05])]
    x = np.array(random.normal(size=shape))
    if x.size and random.random() < 0.2:
        x.reshape(-1)[random.integers(0, x.size, 3)] = random.choice(SPECIAL, 3)
    if shape != BIG:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = x.astype(random.choice(DTYPES))
    if not x.shape:
        return x[()] if random.random() < 0.5 else x
    changed: list[Callable[[], Any]] = [
        lambda: np.asfortranarray(x), lambda: np.repeat(x, 2, -1)[..., ::2], lambda: x[::-1], lambda: x[..., ::-1],
        lambda: np.broadcast_to(x.reshape(-1)[:1].sum(), x.shape), lambda: shift_by_a_byte(x),
    ]  # fmt: skip
    return x if random.random() < 0.6 else changed[random.integers(6)]()


def shift_by_a_byte(x: Any) -> Any:
    y = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def make_program(random: np.random.Generator, shape: tuple[int, ...]) -> Callable[..., Any]:
    """Return a function of some values that runs a few steps on them and on what they give."""
    steps: list[tuple[Callable[..., Any], tuple[float, ...], Any]] = []
    for _ in range(random.integers(2, 14)):
        kind, places = random.random(), (*random.random(2),)
        if kind < 0.4:
            steps.append((UNARY[random.integers(len(UNARY) if shape != BIG else 19)], places[:1], None))
        elif kind < 0.7:
            steps.append((BINARY[random.choice([0, 1, 2, 3, random.integers(12)])], places, None))
        elif kind < 0.9:
            number = random.choice([2.0, 0.5, 3, 0, 1e300, 1e-300, -0.0])
            other = make_value(random, shape) if random.random() < 0.3 else number.item()
            steps.append((BINARY[random.integers(12)], places[:1], (other, bool(random.integers(2)))))
        else:
            steps.append(((add_in_place, write_elements)[random.integers(2)], places, None))

    def run(*xs: Any) -> Any:
        found = [*xs]
        for function, places, other in steps:
            operands = [found[int(len(found) * (1 - (1 - p) ** 2))] for p in places]
            if other is not None:
                operands.insert(1 - other[1], other[0])
            try:
                found.append(function(*operands))
            except FloatingPointError:
                raise
            except Exception as error:  # whatever it is, it must be the same
                ERRORS.append(f"{type(error).__name__}: {error}")
        return pb.sum(pb.stack([pb.sum(np.real(z)) * (0.5 + i) for i, z in enumerate(found)]))

    return run


ERRORS: list[str] = []


def run_program(seed: int) -> Any:
    """Return what a program gives: bits of numbers or the error, warnings, and errors on its way."""
    random = np.random.default_rng(seed)
    ERRORS.clear()
    shape = BIG if random.random() < 0.03 else SHAPES[random.integers(len(SHAPES))]
    xs = [make_value(random, shape) for _ in range(random.integers(1, 4))]
    f, mode, under = make_program(random, shape), random.choice(MODES), random.choice(["ignore", "ignore", "warn"])
    transforms: list[Callable[[], Any]] = [
        lambda: pb.value_and_grads(f)(xs),
        lambda: pb.grads(f)(xs),
        lambda: pb.grad(lambda x: pb.sum(pb.grad(lambda y: f(y, *xs[1:]))(x) * 1.5))(xs[0]),
        lambda: pb.jvp(f, xs, xs),
        lambda: f(*map(pb.tensor, xs)),
    ]
    transform = transforms[random.integers(5)]
    errors = dict.fromkeys(["divide", "over", "invalid"], mode) | {"under": under if mode == "warn" else "ignore"}
    with warnings.catch_warnings(record=True) as seen, np.errstate(**errors, call=lambda *a: ERRORS.append(str(a[0]))):
        warnings.simplefilter("always")
        try:
            outcome = as_bits(transform())
        except Exception as error:  # the same
            outcome = f"{type(error).__name__}: {error}"
    texts = [str(w.message) for w in seen]
    if shape == BIG:  # computed in blocks of other lengths
        return outcome, sorted({text.split(" encountered")[0] for text in texts}), sorted({*ERRORS})
    return outcome, texts, [*ERRORS]


def as_bits(x: Any) -> Any:
    """Return the bits of numbers, with those of any NaN alike."""
    if isinstance(x, list | tuple):
        return [as_bits(y) for y in x]
    x = np.array(x.numpy() if isinstance(x, pb.Tensor) else x)
    x[np.isnan(x)] = np.nan
    return x.dtype.str, x.shape, (x.astype("f8") if x.dtype.char == "g" else x).tobytes()


if __name__ == "__main__":
    native.start()
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        print(seed, sha1(repr(run_program(seed)).encode()).hexdigest())
