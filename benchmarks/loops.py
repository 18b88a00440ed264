"""Loops that stay loops: pb.scan compiled against jax.lax.scan under jax.jit, at 25, 100, 400 and 1,000 steps.

Read as the table of compiled.py.  ``--first-call`` shows that the first call does not take longer for more steps.
Every result is compared with that of pullback op by op in float64 before anything is timed.
"""

from __future__ import annotations

import sys

from comparison import JAX, Suite, main  # before NumPy: it says how many threads a BLAS may use

# isort: split
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from larger_programs import draw, draw_integers, hidden_markov, kalman, kalman_data
from libraries import VALUE, Program

STEPS = (25, 100, 400, 1000)
BAR = 1.2
Data = tuple[list[Any], list[Any]]


def runge_kutta(n, w1, b1, w2, y, times):
    """The classical method on y' = tanh(y w1 + b1) w2 + sin(t), the sum of all states squared."""
    h = 0.05
    slope = lambda y, t: n.tanh(y @ w1 + b1) @ w2 + n.sin(t)

    def step(y, t):
        k1 = slope(y, t)
        k2 = slope(y + 0.5 * h * k1, t + 0.5 * h)
        k3 = slope(y + 0.5 * h * k2, t + 0.5 * h)
        k4 = slope(y + h * k3, t + h)
        y = y + h / 6 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return y, n.mean(y * y)

    return n.mean(n.scan(step, y, times)[1])


def lstm(n, wx, wh, b, xs, target):
    """The output of each step is compared with a target: a gradient comes in at every step."""

    def step(state, x):
        h, c = state
        i, f, g, o = n.split(x @ wx + h @ wh + b, 4, -1)
        c = n.sigmoid(f) * c + n.sigmoid(i) * n.tanh(g)
        h = n.sigmoid(o) * n.tanh(c)
        return (h, c), n.mean((h - target) ** 2)

    start = n.zeros((xs.shape[1], wh.shape[0]), dtype="f4")
    return n.mean(n.scan(step, (start, start), xs)[1])


def gru(n, wx, wh, b, xs, target):
    size = wh.shape[0]

    def step(h, x):
        gx, gh = x @ wx + b, h @ wh
        r = n.sigmoid(gx[:, :size] + gh[:, :size])
        z = n.sigmoid(gx[:, size : 2 * size] + gh[:, size : 2 * size])
        new = n.tanh(gx[:, 2 * size :] + r * gh[:, 2 * size :])
        h = (1.0 - z) * new + z * h
        return h, n.mean((h - target) ** 2)

    return n.mean(n.scan(step, n.zeros((xs.shape[1], size), dtype="f4"), xs)[1])


def lstm_data(steps: int) -> Data:
    return draw((64, 256), (64, 256), (256,), scale=0.15), draw((steps, 32, 64), (32, 64))


def gru_data(steps: int) -> Data:
    return draw((64, 192), (64, 192), (192,), scale=0.15), draw((steps, 32, 64), (32, 64))


def kalman_steps(steps: int) -> Data:
    params, (h, _) = kalman_data()
    return params, [h, *draw((steps, 2), dtype="f8")]


def runge_kutta_data(steps: int) -> Data:
    w1, b1, w2 = draw((4, 32), (32,), (32, 4), scale=0.3)
    return [w1, b1, w2], draw((32, 4), (steps,))


def hidden_markov_data(steps: int) -> Data:
    return draw((32,), (32, 32), (32, 20)), [draw_integers(20, steps)]


def give_value(f, n, *args):
    """The value alone, as a list of results."""
    return (f(n, *args),)


def list_programs() -> Iterator[Program]:
    rows: list[tuple[str, str, Callable[..., Any], Callable[[int], Data]]] = [
        ("lstm", "LSTM, 32 x 64", lstm, lstm_data),
        ("gru", "GRU, 32 x 64", gru, gru_data),
        ("kalman", "Kalman filter, f8", kalman, kalman_steps),
        ("runge", "Runge-Kutta, 32 x 4", runge_kutta, runge_kutta_data),
        ("hmm", "hidden Markov model, 32", hidden_markov, hidden_markov_data),
    ]
    for key, title, f, data in rows:
        for steps in STEPS:
            given = partial(data, steps)
            yield Program(f"{key}/{steps}", f"{title}, {steps} steps", BAR, f, given, tolerance=2e-3)
            value = partial(give_value, f)
            yield Program(f"{key}-value/{steps}", f"{title}, {steps}, value", BAR, value, given, VALUE, tolerance=2e-3)


if __name__ == "__main__":
    sys.exit(main(Suite(__doc__, [*list_programs()], peers=(JAX,), cold=0.5)))
