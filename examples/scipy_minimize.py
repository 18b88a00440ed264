"""SciPy's optimizers take value and gradient from one function: value_and_grad gives just that."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

import pullback as pb


def rosenbrock(x):
    a = x[:-1]
    return np.sum(100.0 * (x[1:] - a**2) ** 2 + (1.0 - a) ** 2)


start = np.zeros(20)
exact = minimize(pb.value_and_grad(rosenbrock), start, jac=True, method="BFGS")
guessed = minimize(rosenbrock, start, method="BFGS")  # by finite differences
print(f"calls of the function: {exact.nfev} with gradients, {guessed.nfev} without")

assert np.allclose(exact.x, 1.0)
assert exact.nfev * 5 < guessed.nfev
