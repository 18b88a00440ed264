"""Learning-rate schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import train
from pullback.errors import ArgumentError

SCHEDULES = {
    "constant": (train.constant_rate(0.5), {0: 0.5, 99: 0.5}),
    "step": (train.step_decay(1.0, 3, 0.1), {0: 1.0, 2: 1.0, 3: 0.1, 6: 0.01}),
    "exponential": (train.exponential_decay(1.0, 2, 0.25), {0: 1.0, 1: 0.5, 4: 0.0625}),
    "cosine": (train.cosine_decay(1.0, 10, 0.2), {0: 1.0, 5: 0.6, 10: 0.2, 50: 0.2}),
    "warm-up": (train.warm_up(1.0, 4, 0.2), {0: 0.2, 2: 0.6, 4: 1.0, 9: 1.0}),
    "warm-up, then cosine": (train.warm_up(train.cosine_decay(1.0, 10), 4), {0: 0.0, 2: 0.5, 4: 1.0, 9: 0.5, 14: 0.0}),
    "restarts of one length": (
        train.cosine_decay_restarts(1.0, 4, t_mul=1.0, m_mul=0.5),
        {0: 1.0, 2: 0.5, 4: 0.5, 6: 0.25},
    ),
    "one cycle": (train.one_cycle(1.0, 10, 0.5, 10, 100), {0: 0.1, 5: 1.0, 10: 0.001, 30: 0.001}),
}


@pytest.mark.parametrize(("schedule", "rates"), SCHEDULES.values(), ids=SCHEDULES)
def test_schedule_rate_at_step(schedule: Any, rates: dict[int, float]) -> None:
    steps = np.array([*rates], np.float64)
    made = [schedule(step) for step in rates]
    np.testing.assert_allclose(made, [*rates.values()], atol=1e-12)
    assert {type(rate) for rate in made} == {float}
    compiled = pb.compile(lambda step: schedule(step) + 0.0 * step)
    np.testing.assert_allclose([compiled(step) for step in steps], made, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train.constant_rate(-1), "constant_rate: rate must be a number of 0 or more, got -1."),
        (lambda: train.step_decay(1.0, 0), "step_decay: every must be 1 or more steps, got 0."),
        (lambda: train.exponential_decay(1.0, 2, "half"), "exponential_decay: factor must be a number of 0 or more"),
        (lambda: train.cosine_decay(1.0, None), "cosine_decay: steps must be a number of 0 or more, got None."),
        (lambda: train.warm_up("fast", 3), "warm_up: rate must be a number of 0 or more, got 'fast'."),
        (lambda: train.one_cycle(1.0, 10, warm=1.0), "one_cycle: warm must be between 0 and 1, got 1.0."),
        (lambda: train.one_cycle(1.0, 10, start=0), "one_cycle: start divides the rate and must be more than 0."),
        (lambda: train.piecewise_constant_decay([1, 2], [1.0]), "2 boundaries have 3 values, got 1."),
        (lambda: train.Schedule("s", 3), "rate must be a function of a step, got int."),
    ],
)
def test_schedule_errors(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        make()
    assert message in str(error.value)
