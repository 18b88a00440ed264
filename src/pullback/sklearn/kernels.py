"""Kernels of scikit-learn's estimators as functions of tensors: those with a name, and those of Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import NoRuleError

if TYPE_CHECKING:
    from pullback.typing import Function, Value


def square_distances(X: Value, Y: Value) -> Any:
    """Return the squared Euclidean distance of each row of ``X`` to each row of ``Y``."""
    return np.sum((X[:, None, :] - Y[None]) ** 2, axis=-1)


def compute_distances(X: Value, Y: Value) -> Any:
    """Return the Euclidean distances; the derivative where two rows are the same is 0."""
    squares = square_distances(X, Y)
    apart = squares > 0
    return np.where(apart, np.sqrt(np.where(apart, squares, 1.0)), 0.0)


def find_kernel(name: str | Function, gamma: float, degree: float, coef0: float) -> Callable[[Any, Any], Any]:
    """Return a kernel that is given by name, as support vector machines and kernel methods take it."""
    kernels: dict[Any, Callable[[Any, Any], Any]] = {
        "linear": lambda X, Y: X @ Y.T,
        "poly": lambda X, Y: (gamma * (X @ Y.T) + coef0) ** degree,
        "polynomial": lambda X, Y: (gamma * (X @ Y.T) + coef0) ** degree,
        "rbf": lambda X, Y: np.exp(-gamma * square_distances(X, Y)),
        "sigmoid": lambda X, Y: np.tanh(gamma * (X @ Y.T) + coef0),
        "laplacian": lambda X, Y: np.exp(-gamma * np.sum(np.abs(X[:, None, :] - Y[None]), axis=-1)),
    }
    if name not in kernels:
        raise NoRuleError(f"sklearn.differentiable: the kernel {name!r} has no rule; there are {', '.join(kernels)}.")
    return kernels[name]


def _matern(kernel: Any, X: Value, Y: Value) -> Any:
    d, nu = compute_distances(X / kernel.length_scale, Y / kernel.length_scale), kernel.nu
    if nu == 0.5:
        return np.exp(-d)
    if nu == 1.5:
        return (1.0 + np.sqrt(3.0) * d) * np.exp(-np.sqrt(3.0) * d)
    if nu == 2.5:
        return (1.0 + np.sqrt(5.0) * d + 5.0 / 3.0 * d**2) * np.exp(-np.sqrt(5.0) * d)
    if nu == np.inf:
        return np.exp(-(d**2) / 2.0)
    raise NoRuleError(f"sklearn.differentiable: Matern with nu={nu} has no rule; there are 0.5, 1.5, 2.5 and inf.")


KERNELS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "RBF": lambda k, X, Y: np.exp(-0.5 * square_distances(X / k.length_scale, Y / k.length_scale)),
    "Matern": _matern,
    "RationalQuadratic": lambda k, X, Y: (1 + square_distances(X, Y) / (2 * k.alpha * k.length_scale**2)) ** -k.alpha,
    "ExpSineSquared": lambda k, X, Y: np.exp(
        -2 * (np.sin(np.pi / k.periodicity * compute_distances(X, Y)) / k.length_scale) ** 2
    ),
    "DotProduct": lambda k, X, Y: X @ Y.T + k.sigma_0**2,
    "ConstantKernel": lambda k, X, Y: np.full((len(X), len(Y)), k.constant_value),
    "WhiteKernel": lambda k, X, Y: np.zeros((len(X), len(Y))),  # of rows of two different arrays
    "Sum": lambda k, X, Y: process_kernel(k.k1, X, Y) + process_kernel(k.k2, X, Y),
    "Product": lambda k, X, Y: process_kernel(k.k1, X, Y) * process_kernel(k.k2, X, Y),
    "Exponentiation": lambda k, X, Y: process_kernel(k.kernel, X, Y) ** k.exponent,
}


def process_kernel(kernel: Any, X: Value, Y: Value) -> Any:
    """Return the values of a kernel of a Gaussian process for each row of ``X`` with each row of ``Y``."""
    name = type(kernel).__name__
    if name not in KERNELS:
        raise NoRuleError(f"sklearn.differentiable: the kernel {name} has no rule; there are {', '.join(KERNELS)}.")
    return KERNELS[name](kernel, X, Y)
