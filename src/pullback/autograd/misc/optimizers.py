"""Stochastic optimizers of functions of containers: ``sgd``, ``rmsprop`` and ``adam``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.autograd.misc.flatten import flatten
from pullback.autograd.wrap_util import wraps

if TYPE_CHECKING:
    from pullback.typing import Array, Function, Tree


def unflatten_optimizer(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """Return an optimizer of containers from one of vectors.

    optimize: takes ``(grad, x0, callback, ...)`` with a vector x0 and returns a vector.
    """

    @wraps(optimize)
    def optimize_container(
        grad: Callable[[Any, int], Any],
        x0: Tree,
        callback: Callable[..., Any] | None = None,
        *args: object,
        **kwargs: object,
    ) -> Any:
        x, unflatten = flatten(x0)

        def vector_grad(x: Array, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def vector_callback(x: Array, i: int, g: Function) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(vector_grad, x, vector_callback if callback else None, *args, **kwargs))

    return optimize_container


@unflatten_optimizer
def sgd(
    grad: Callable[[Any, int], Any],
    x: Array,
    callback: Callable[..., Any] | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Return the parameters after ``num_iters`` steps of stochastic gradient descent with momentum.

    grad: the gradient as a function of x and of the number of the step.
    x: where to begin, a container of arrays.
    callback: called with x, the number of the step and the gradient.
    num_iters: the number of steps.
    step_size: the learning rate.
    mass: how much of the velocity is kept.

    >>> abs(float(sgd(lambda x, i: 2 * x, 1.0))) < 0.1
    True
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Callable[[Any, int], Any],
    x: Array,
    callback: Callable[..., Any] | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Return the parameters after ``num_iters`` steps of RMSprop.

    grad: the gradient as a function of x and of the number of the step.
    x: where to begin, a container of arrays.
    callback: called with x, the number of the step and the gradient.
    num_iters: the number of steps.
    step_size: the learning rate.
    gamma: how much of the mean square is kept.
    eps: added to the root.

    >>> abs(float(rmsprop(lambda x, i: 2 * x, 1.0))) < 0.1
    True
    """
    mean_square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean_square = gamma * mean_square + (1 - gamma) * g**2
        x = x - step_size * g / (np.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Callable[[Any, int], Any],
    x: Array,
    callback: Callable[..., Any] | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Return the parameters after ``num_iters`` steps of Adam.

    grad: the gradient as a function of x and of the number of the step.
    x: where to begin, a container of arrays.
    callback: called with x, the number of the step and the gradient.
    num_iters: the number of steps.
    step_size: the learning rate.
    b1: how much of the mean of the gradients is kept.
    b2: how much of the mean of their squares is kept.
    eps: added to the root.

    >>> round(float(adam(lambda x, i: 2 * x, 1.0, step_size=0.01)), 1)
    0.2
    """
    mean, mean_square = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean = b1 * mean + (1 - b1) * g
        mean_square = b2 * mean_square + (1 - b2) * g**2
        corrected, square = mean / (1 - b1 ** (i + 1)), mean_square / (1 - b2 ** (i + 1))
        x = x - step_size * corrected / (np.sqrt(square) + eps)
    return x
