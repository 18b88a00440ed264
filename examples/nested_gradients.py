"""Gradients inside gradients: a Hessian-vector product, and Newton's method with it."""

from __future__ import annotations

import numpy as np

import pullback as pb

A = np.array([[3.0, 1.0], [1.0, 2.0]])


def f(x):
    """Return a bowl with a bump; its Hessian is A + diag(exp(x))."""
    return 0.5 * np.sum(x * (A @ x)) + np.sum(np.exp(x))


def hessian_times(x, v):
    return pb.grad(lambda x: np.sum(pb.grad(f)(x) * v))(x)


x, v = np.array([0.3, -0.2]), np.array([1.0, 2.0])
product = hessian_times(x, v)
print("H v =", product)
assert np.allclose(product, (A + np.diag(np.exp(x))) @ v)

for _ in range(6):
    hessian = np.stack([hessian_times(x, e) for e in np.eye(2)])
    x = x - np.linalg.solve(hessian, pb.grad(f)(x))
print("minimum at", x)
assert np.allclose(pb.grad(f)(x), 0.0, atol=1e-12)
