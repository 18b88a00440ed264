"""SciPy's routines compute with plain numbers: on traced ones they say what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import pullback as pb
from pullback.errors import PullbackError

X = np.array([2.0, 3.0])

CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "brentq": (lambda x: optimize.brentq(lambda z: z**2 - x[0], 0, 5), "scipy.optimize.brentq.*pb.custom_root"),
    "bisect": (lambda x: optimize.bisect(lambda z: z**2 - x[0], 0, 5), "scipy.optimize.bisect.*pb.custom_root"),
    "fsolve": (lambda x: optimize.fsolve(lambda z: z**2 - x[:1], [1.0])[0], "fsolve.*pb.custom_root"),
    "root": (lambda x: optimize.root(lambda z: z**2 - x[:1], [1.0]).x[0], "root.*pb.custom_root"),
    "minimize": (lambda x: optimize.minimize(lambda z: np.sum((z - x) ** 2), X).fun, "minimize.*pb.custom_root"),
    "quad": (lambda x: integrate.quad(lambda z: z**2 * x[0], 0, 1)[0], "scipy.integrate.quad.*leggauss"),
    "odeint": (lambda x: integrate.odeint(lambda y, t: -y * x[:1], [1.0], [0, 1.0])[-1, 0], "odeint.*Runge-Kutta"),
    "solve_ivp": (
        lambda x: integrate.solve_ivp(lambda t, y: -y * x[0], (0, 1), [1.0]).y[0, -1],
        "scipy.integrate.solve_ivp.*Runge-Kutta",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_scipy_solver_of_traced_values_raises(name: str) -> None:
    f, message = CALLS[name]
    with pytest.raises(TypeError, match=message) as caught:
        pb.grad(f)(X)
    assert isinstance(caught.value, PullbackError)


def test_brentq_inside_custom_root() -> None:
    root = pb.custom_root(lambda z, a: z**2 - a, lambda f, z0, a: optimize.brentq(f, 0, 5, args=(a,)))
    np.testing.assert_allclose(pb.grad(lambda a: root(1.0, a))(2.0), 0.5 / np.sqrt(2.0))


def test_scipy_error_after_refusal() -> None:
    calls = 0

    def residual(z: float, x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:  # C code goes on with the refusal set, and then anything may fail
            raise AttributeError("'numpy.float64' object has no attribute 'shape'")
        return z**2 - x[0]

    with pytest.raises(TypeError, match=r"pb\.custom_root"):
        pb.grad(lambda x: x[0] * optimize.brentq(residual, 0, 5, args=(x,)))(X)
    assert calls > 1
