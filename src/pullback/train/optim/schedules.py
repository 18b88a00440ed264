"""Learning-rate schedules: functions of the step number, in plain NumPy so that they compile.

The first step has the number 0.  Any function of that number can be a learning rate; these are the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pullback.core.convert import as_number
from pullback.errors import ArgumentError
from pullback.typing import Value

__all__ = [
    "LearningRate",
    "Schedule",
    "constant_rate",
    "cosine_decay",
    "exponential_decay",
    "one_cycle",
    "step_decay",
    "warm_up",
]

Number: TypeAlias = "float | Value"  # a step number or a rate: a tensor in a compiled step
LearningRate = float | Callable[[Any], Any]  # a number, or a function of the step number


class Schedule:
    """A learning rate as a function of the step's number, with a readable name.

    >>> pb.train.Schedule("halved(0.1)", lambda step: 0.1 / (step + 1))(1)
    0.05
    """

    def __init__(self, name: str, rate: Callable[[Any], Any]) -> None:
        if not callable(rate):
            raise ArgumentError(f"Schedule(name, rate): rate must be a function of a step, got {type(rate).__name__}.")
        self.name, self.rate = name, rate
        self.constructor: tuple[Callable[..., Schedule], tuple[Any, ...]] | None = (
            None  # the function and its arguments, for files
        )

    @classmethod
    def of(cls, make: Callable[..., Schedule], arguments: tuple[Any, ...], rate: Callable[[Any], Any]) -> Schedule:
        """Return a schedule that remembers it was made by ``make(*arguments)``.

        >>> pb.train.constant_rate(0.5).constructor[1]
        (0.5,)
        """
        schedule = cls(f"{make.__name__}({', '.join(map(repr, arguments))})", rate)
        schedule.constructor = make, arguments
        return schedule

    def __reduce__(self) -> Any:
        return self.constructor or (Schedule, (self.name, self.rate))

    def __call__(self, step: Number) -> Any:
        rate = self.rate(step)
        return float(rate) if isinstance(rate, np.generic) else rate

    def __repr__(self) -> str:
        return self.name


def constant_rate(rate: float) -> Schedule:
    """Return the same learning rate at every step.

    >>> pb.train.constant_rate(0.1)(1000)
    0.1
    """
    _check_rate("constant_rate", "rate", rate)
    return Schedule.of(constant_rate, (rate,), lambda step: rate)


def step_decay(rate: float, every: int, factor: float = 0.1) -> Schedule:
    """Return ``rate``, multiplied by ``factor`` after every ``every`` steps.

    >>> [pb.train.step_decay(1.0, every=10, factor=0.5)(n) for n in (0, 9, 10, 25)]
    [1.0, 1.0, 0.5, 0.25]
    """
    _check_rate("step_decay", "rate", rate)
    _check_rate("step_decay", "factor", factor)
    _check_steps("step_decay", "every", every)
    return Schedule.of(step_decay, (rate, every, factor), lambda step: rate * factor ** np.floor(step / every))


def exponential_decay(rate: float, steps: int, factor: float) -> Schedule:
    """Return ``rate * factor ** (step / steps)``.

    >>> [pb.train.exponential_decay(1.0, steps=2, factor=0.25)(n) for n in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """
    _check_rate("exponential_decay", "rate", rate)
    _check_rate("exponential_decay", "factor", factor)
    _check_steps("exponential_decay", "steps", steps)
    return Schedule.of(exponential_decay, (rate, steps, factor), lambda step: rate * factor ** (step / steps))


def cosine_decay(rate: float, steps: int, final: float = 0.0) -> Schedule:
    """From ``rate`` down to ``final`` along half a cosine of ``steps`` steps, then constant.

    >>> [round(pb.train.cosine_decay(1.0, steps=4)(n), 3) for n in (0, 1, 2, 4, 9)]
    [1.0, 0.854, 0.5, 0.0, 0.0]
    """
    _check_rate("cosine_decay", "rate", rate)
    _check_rate("cosine_decay", "final", final)
    _check_steps("cosine_decay", "steps", steps)
    return Schedule.of(
        cosine_decay, (rate, steps, final), lambda step: _interpolate_cosine(rate, final, np.minimum(step / steps, 1.0))
    )


def warm_up(rate: LearningRate, steps: int, start: float = 0.0) -> Schedule:
    """Linearly from ``start`` to ``rate`` in ``steps`` steps; ``rate`` may be a schedule, which starts after them.

    >>> [pb.train.warm_up(1.0, steps=4)(n) for n in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    >>> after = pb.train.warm_up(pb.train.step_decay(1.0, every=5), steps=4)
    >>> [round(after(n), 3) for n in (2, 4, 8, 9)]
    [0.5, 1.0, 1.0, 0.1]
    """
    _check_rate("warm_up", "start", start)
    _check_steps("warm_up", "steps", steps)
    if callable(rate):
        then = rate
    else:
        _check_rate("warm_up", "rate", rate)
        then = constant_rate(rate)

    def at(step: Number) -> Any:
        part = np.minimum(step / steps, 1.0)
        return start + (then(np.maximum(step - steps, 0)) - start) * part

    return Schedule.of(warm_up, (rate, steps, start), at)


def one_cycle(peak: float, steps: int, warm: float = 0.3, start: float = 25.0, end: float = 1e4) -> Schedule:
    """From ``peak / start`` up to ``peak`` in the share ``warm`` of the steps, then down to ``peak / start / end``.

    Both along half a cosine, as super-convergence (Smith, 2018) is usually done.

    >>> cycle = pb.train.one_cycle(1.0, steps=100)
    >>> [round(cycle(n), 3) for n in (0, 15, 30, 65, 100)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    _check_rate("one_cycle", "peak", peak)
    _check_steps("one_cycle", "steps", steps)
    as_number("one_cycle", "warm", warm, 0, 1)
    if not 0 < warm < 1:
        raise ArgumentError(f"one_cycle: warm must be between 0 and 1, got {warm!r}.")
    for name, parts in (("start", start), ("end", end)):
        if as_number("one_cycle", name, parts, 0) == 0:
            raise ArgumentError(f"one_cycle: {name} divides the rate and must be more than 0.")
    low, top = peak / start, steps * warm

    def at(step: Number) -> Any:
        up = np.minimum(step / top, 1.0)
        down = np.minimum(np.maximum((step - top) / (steps - top), 0.0), 1.0)
        return np.where(step < top, _interpolate_cosine(low, peak, up), _interpolate_cosine(peak, low / end, down))[()]

    return Schedule.of(one_cycle, (peak, steps, warm, start, end), at)


def _interpolate_cosine(begin: float, end: float, part: Number) -> Any:
    return end + (begin - end) * 0.5 * (1.0 + np.cos(np.pi * part))


def _check_rate(name: str, argument: str, value: float) -> None:
    as_number(name, argument, value, 0)


def _check_steps(name: str, argument: str, value: float) -> None:
    if as_number(name, argument, value, 0) < 1:
        raise ArgumentError(f"{name}: {argument} must be 1 or more steps, got {value!r}.")
