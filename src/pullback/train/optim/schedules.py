"""Learning-rate schedules: functions of the step number, in plain NumPy so that they compile.

The first step has the number 0.  Any function of that number can be a learning rate; these are the usual ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.core.convert import as_number
from pullback.errors import ArgumentError
from pullback.train.arguments import accept_names, describe_arguments
from pullback.typing import Value

__all__ = [
    "Schedule", "constant_rate", "cosine_decay", "cosine_decay_restarts", "exponential_decay", "inverse_time_decay",
    "one_cycle", "piecewise_constant_decay", "polynomial_decay", "step_decay", "warm_up",
]  # fmt: skip

Number: TypeAlias = "float | Value"  # a step number or a rate: a tensor in a compiled step
KERAS_NAMES = {
    "initial_learning_rate": "rate", "decay_steps": "steps", "first_decay_steps": "steps", "decay_rate": "factor",
    "end_learning_rate": "final",
}  # fmt: skip
LearningRate = float | Callable[[Any], Any]  # a number, or a function of the step number


class Schedule:
    """A learning rate as a function of the step's number, with a readable name.

    - name: how it is shown.
    - rate: a function from the step's number to the rate.

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
    _check_rates("constant_rate", rate=rate)
    return Schedule.of(constant_rate, (rate,), lambda step: rate)


def step_decay(rate: float, every: int, factor: float = 0.1) -> Schedule:
    """Return ``rate``, multiplied by ``factor`` after every ``every`` steps.

    >>> [pb.train.step_decay(1.0, every=10, factor=0.5)(n) for n in (0, 9, 10, 25)]
    [1.0, 1.0, 0.5, 0.25]
    """
    _check_rates("step_decay", rate=rate, factor=factor)
    _check_steps("step_decay", every=every)
    return Schedule.of(step_decay, (rate, every, factor), lambda step: rate * factor ** np.floor(step / every))


@accept_names(KERAS_NAMES)
def exponential_decay(rate: float, steps: int, factor: float, staircase: bool = False) -> Schedule:
    """Return ``rate * factor ** (step / steps)``; ``staircase`` rounds the quotient down.

    steps: how many steps until the rate has been multiplied once.

    >>> [pb.train.exponential_decay(1.0, steps=2, factor=0.25)(n) for n in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """
    _check_rates("exponential_decay", rate=rate, factor=factor)
    _check_steps("exponential_decay", steps=steps)
    arguments = (rate, steps, factor, True) if staircase else (rate, steps, factor)
    return Schedule.of(exponential_decay, arguments, lambda step: rate * factor ** _divide(step, steps, staircase))


@accept_names(KERAS_NAMES)
def inverse_time_decay(rate: float, steps: int, factor: float, staircase: bool = False) -> Schedule:
    """Return ``rate / (1 + factor * step / steps)``; ``staircase`` rounds the quotient down.

    factor: how quickly the rate falls.

    >>> [pb.train.inverse_time_decay(1.0, steps=2, factor=1.0)(n) for n in (0, 2, 6)]
    [1.0, 0.5, 0.25]
    """
    _check_rates("inverse_time_decay", rate=rate, factor=factor)
    _check_steps("inverse_time_decay", steps=steps)
    return Schedule.of(
        inverse_time_decay,
        (rate, steps, factor, staircase),
        lambda step: rate / (1.0 + factor * _divide(step, steps, staircase)),
    )


def _divide(step: Number, steps: int, staircase: bool) -> Any:
    return np.floor(step / steps) if staircase else step / steps


def piecewise_constant_decay(boundaries: Sequence[float], values: Sequence[float]) -> Schedule:
    """Return the first value up to the first boundary, the boundary included, then the second, and so on.

    boundaries: step numbers.
    values: a rate for each part, one more than boundaries.

    >>> [pb.train.piecewise_constant_decay([2, 5], [1.0, 0.5, 0.1])(n) for n in (0, 2, 3, 5, 6)]
    [1.0, 1.0, 0.5, 0.5, 0.1]
    """
    if len(values) != len(boundaries) + 1:
        raise ArgumentError(
            f"piecewise_constant_decay: {len(boundaries)} boundaries have {len(boundaries) + 1} values, got "
            f"{len(values)}."
        )
    if list(boundaries) != sorted(boundaries):
        raise ArgumentError(f"piecewise_constant_decay: boundaries must be in increasing order, got {boundaries!r}.")

    def at(step: Number) -> Any:
        rate: Any = values[0]
        for boundary, value in zip(boundaries, values[1:], strict=True):
            rate = np.where(step > boundary, value, rate)[()]
        return rate

    return Schedule.of(piecewise_constant_decay, (list(boundaries), list(values)), at)


@accept_names(KERAS_NAMES)
def polynomial_decay(rate: float, steps: int, final: float = 1e-4, power: float = 1.0, cycle: bool = False) -> Schedule:
    """Return decay from ``rate`` to ``final`` in ``steps`` steps, along a power; ``cycle`` restarts with more steps.

    power: the exponent.
    cycle: whether it begins again after ``steps``.

    >>> [pb.train.polynomial_decay(1.0, steps=4, final=0.0)(n) for n in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    _check_rates("polynomial_decay", rate=rate, final=final)
    _check_steps("polynomial_decay", steps=steps)

    def at(step: Number) -> Any:
        rounds = np.maximum(np.ceil(step / steps), 1.0) if cycle else 1.0
        part = np.minimum(step / (steps * rounds), 1.0)
        return (rate - final) * (1.0 - part) ** power + final

    return Schedule.of(polynomial_decay, (rate, steps, final, power, cycle), at)


@accept_names(KERAS_NAMES)
def cosine_decay_restarts(
    rate: float, steps: int, t_mul: float = 2.0, m_mul: float = 1.0, alpha: float = 0.0
) -> Schedule:
    """Return cosine decay that begins again, each time with ``t_mul`` times the steps and ``m_mul`` times the rate.

    ``alpha`` is the fraction of the rate that each ends with (Loshchilov and Hutter, 2016).

    t_mul: how much longer each restart is.
    m_mul: what the rate is multiplied by at each restart.
    alpha: the fraction of the rate that each ends with.

    >>> [round(pb.train.cosine_decay_restarts(1.0, steps=2, m_mul=0.5)(n), 3) for n in (0, 1, 2, 4, 6)]
    [1.0, 0.5, 0.5, 0.25, 0.25]
    """
    _check_rates("cosine_decay_restarts", rate=rate)
    _check_steps("cosine_decay_restarts", steps=steps)
    if as_number("cosine_decay_restarts", "t_mul", t_mul, 0) == 0:
        raise ArgumentError(f"cosine_decay_restarts: t_mul must be more than 0, got {t_mul!r}.")

    def at(step: Number) -> Any:
        done = step / steps
        if t_mul == 1.0:
            number = np.floor(done)
            part = done - number
        else:
            number = np.floor(np.log(1.0 - done * (1.0 - t_mul)) / math.log(t_mul))
            part = (done - (1.0 - t_mul**number) / (1.0 - t_mul)) / t_mul**number
        cosine = 0.5 * m_mul**number * (1.0 + np.cos(np.pi * part))
        return rate * ((1.0 - alpha) * cosine + alpha)

    return Schedule.of(cosine_decay_restarts, (rate, steps, t_mul, m_mul, alpha), at)


@accept_names(KERAS_NAMES)
def cosine_decay(
    rate: float,
    steps: int,
    final: float = 0.0,
    alpha: float | None = None,
    warmup_target: float | None = None,
    warmup_steps: int = 0,
) -> Schedule:
    """Return decay from ``rate`` to ``final`` along half a cosine of ``steps`` steps, then constant.

    steps: how many steps the cosine takes.
    final: the learning rate at the end.
    alpha: the same as a share of the rate that the cosine begins with, as in Keras.
    warmup_target: the rate that the cosine begins with, to which the rate grows first.
    warmup_steps: in how many steps it does.

    >>> [round(pb.train.cosine_decay(1.0, steps=4)(n), 3) for n in (0, 1, 2, 4, 9)]
    [1.0, 0.854, 0.5, 0.0, 0.0]
    """
    _check_rates("cosine_decay", rate=rate)
    _check_steps("cosine_decay", steps=steps)
    top = rate if warmup_target is None else warmup_target
    _check_rates("cosine_decay", warmup_target=top)
    if warmup_target is not None:
        _check_steps("cosine_decay", warmup_steps=warmup_steps)
    if alpha is not None:
        final = top * alpha
    _check_rates("cosine_decay", final=final)
    further = () if warmup_target is None else (None, top, warmup_steps)

    def at(step: Number) -> Any:
        if warmup_target is None:
            return _interpolate_cosine(rate, final, np.minimum(step / steps, 1.0))
        after = _interpolate_cosine(top, final, np.clip((step - warmup_steps) / steps, 0.0, 1.0))
        return np.where(step < warmup_steps, rate + (top - rate) * step / warmup_steps, after)[()]

    return Schedule.of(cosine_decay, (rate, steps, final, *further), at)


def warm_up(rate: LearningRate, steps: int, start: float = 0.0) -> Schedule:
    """Return a linear warm-up from ``start`` to ``rate`` in ``steps`` steps; ``rate`` may be a schedule, which follows.

    rate: the learning rate after the warm-up, or a schedule.

    >>> [pb.train.warm_up(1.0, steps=4)(n) for n in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    >>> after = pb.train.warm_up(pb.train.step_decay(1.0, every=5), steps=4)
    >>> [round(after(n), 3) for n in (2, 4, 8, 9)]
    [0.5, 1.0, 1.0, 0.1]
    """
    _check_rates("warm_up", start=start)
    _check_steps("warm_up", steps=steps)
    if callable(rate):
        then = rate
    else:
        _check_rates("warm_up", rate=rate)
        then = constant_rate(rate)

    def at(step: Number) -> Any:
        part = np.minimum(step / steps, 1.0)
        return start + (then(np.maximum(step - steps, 0)) - start) * part

    return Schedule.of(warm_up, (rate, steps, start), at)


def one_cycle(peak: float, steps: int, warm: float = 0.3, start: float = 25.0, end: float = 1e4) -> Schedule:
    """Return one cycle: ``peak / start`` up to ``peak`` in the share ``warm`` of steps, down to ``peak / start / end``.

    Both along half a cosine, as super-convergence (Smith, 2018) is usually done.

    peak: the largest rate.
    warm: the fraction of the steps in which the rate rises.
    start: ``peak`` over the rate at the beginning.
    end: the rate at the beginning over that at the end.

    >>> cycle = pb.train.one_cycle(1.0, steps=100)
    >>> [round(cycle(n), 3) for n in (0, 15, 30, 65, 100)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    _check_rates("one_cycle", peak=peak)
    _check_steps("one_cycle", steps=steps)
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
    angle: Any = np.pi * part
    return end + (begin - end) * 0.5 * (1.0 + np.cos(angle))


def _check_rates(name: str, **rates: float) -> None:
    """Raise an error unless these arguments are numbers of 0 or more."""
    for argument, value in rates.items():
        as_number(name, argument, value, 0)


def _check_steps(name: str, **steps: float) -> None:
    """Raise an error unless these arguments are 1 or more."""
    for argument, value in steps.items():
        if as_number(name, argument, value, 0) < 1:
            raise ArgumentError(f"{name}: {argument} must be 1 or more steps, got {value!r}.")


describe_arguments(
    [globals()[name] for name in __all__],
    {
        "rate": "the learning rate at the beginning.",
        "steps": "how many steps.",
        "factor": "what the rate is multiplied by.",
        "final": "the rate at the end.",
        "staircase": "whether the rate falls in steps.",
    },
)
