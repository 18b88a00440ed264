"""Non-linear least squares with SciPy: exact derivatives of the residuals, and the parameters' errors from them."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

import pullback as pb

random = np.random.default_rng(1)
true = {"height": 2.0, "decay": 0.7, "pitch": 5.0, "phase": 0.4}
t = np.linspace(0.0, 4.0, 200)


def curve(p, t):
    height, decay, pitch, phase = p
    return height * np.exp(-decay * t) * np.cos(pitch * t + phase)


seen = curve(np.array([*true.values()]), t) + random.normal(scale=0.05, size=t.size)


def residuals(p):
    return curve(p, t) - seen


start = np.array([1.0, 0.3, 4.5, 0.0])
jacobian = pb.compile(pb.jacobian(residuals))
exact = least_squares(residuals, start, jac=jacobian)
guessed = least_squares(residuals, start)  # by finite differences
print(f"residuals computed: {exact.nfev} times with the jacobian, {guessed.nfev + 4 * guessed.njev} times without")

slopes = jacobian(exact.x)
spread = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) * 2 * exact.cost / (t.size - 4))
for (name, value), found, error in zip(true.items(), exact.x, spread, strict=True):
    print(f"{name:>7}: {found:7.4f} ± {error:.4f}   (true {value})")

assert exact.success
assert np.all(np.abs(exact.x - [*true.values()]) < 4 * spread)
assert exact.nfev < guessed.nfev + 4 * guessed.njev
assert np.allclose(exact.x, guessed.x, rtol=1e-3)
