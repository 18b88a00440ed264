"""Fixed points of functions, differentiable by their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pullback.autograd.core import make_vjp, vspace
from pullback.autograd.primitives import defvjp, primitive

if TYPE_CHECKING:
    from pullback.typing import Tree


@primitive
def fixed_point(f: Callable[..., Any], a: Tree, x0: Tree, distance: Callable[..., Any], tol: float) -> Any:
    """Return the fixed point of ``f(a)``, which is a function of ``x``, differentiable by ``a``.

    f: from parameters to the function that is iterated; what it captures is not differentiated.
    a: its parameters.
    x0: where to begin.
    distance: the distance of two iterates.
    tol: the distance at which to stop.

    >>> import numpy as np
    >>> newton = lambda a: lambda x: 0.5 * (x + a / x)
    >>> round(float(fixed_point(newton, 2.0, 1.0, lambda x, y: np.abs(x - y), 1e-9)), 6)
    1.414214
    """
    step = f(a)
    x, previous = step(x0), x0
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return x


def _make_fixed_point_vjp(
    ans: Tree, f: Callable[..., Any], a: Tree, x0: Tree, distance: Callable[..., Any], tol: float
) -> Callable[[Any], Any]:
    def step_back(args_and_cotangent: tuple[Any, ...]) -> Callable[[Any], Any]:
        parameters, at, cotangent = args_and_cotangent
        pull, _ = make_vjp(f(parameters), at)
        return lambda g: vspace(at).add(pull(g), cotangent)

    def vjp(g: Tree) -> Any:
        pull, _ = make_vjp(lambda p: f(p)(ans), a)
        return pull(fixed_point(step_back, (a, ans, g), vspace(x0).zeros(), distance, tol))

    return vjp


defvjp(fixed_point, None, _make_fixed_point_vjp, None)
