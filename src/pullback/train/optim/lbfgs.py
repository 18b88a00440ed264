"""L-BFGS: SciPy goes down, with gradients from here.  For few, smooth parameters and a function that does not change.

This is the only door to SciPy's optimizers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core import tree
from pullback.core.convert import as_number
from pullback.core.tape import constant
from pullback.core.variable import Variable, writer
from pullback.errors import ArgumentError, CompileError, GradientError, MissingPackageError
from pullback.train.optim.clipping import value_of
from pullback.train.optim.trees import in_order
from pullback.transforms.grad import ValueAndGrads, given_back, kind_of, value_and_grad
from pullback.transforms.variables import differentiate_by_variables, variable_grads

__all__ = ["LBFGS", "Solution", "lbfgs"]


def _door() -> Any:
    """SciPy's optimizers."""
    try:
        import scipy.optimize
    except ImportError:
        raise MissingPackageError(
            "lbfgs needs SciPy, which is not installed. Install it with: pip install 'pullback[scipy]'"
        ) from None
    return scipy.optimize


class Solution(NamedTuple):
    """Where ``lbfgs`` came to: parameters, the function's value there, and how it went.

    >>> pb.train.lbfgs().solve(lambda x: (x - 1.0) ** 2, 0.0).converged
    True
    """

    params: Any
    value: float
    iterations: int
    converged: bool
    message: str


def lbfgs(
    max_iterations: int = 100, history: int = 10, gradient_tolerance: float = 1e-5, value_tolerance: float = 1e-9
) -> LBFGS:
    """SciPy's L-BFGS-B: steps that learn the curvature from the last ``history`` gradients, with a search along each.

    One ``minimize`` makes up to ``max_iterations`` steps and calls the function as often as it needs to.

    >>> x = pb.variable([-1.2, 1.0], dtype="float64", name="x")
    >>> rosenbrock = lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> float(pb.train.lbfgs().minimize(rosenbrock, return_cost=True)) < 1e-8
    True
    >>> np.round(x.numpy(), 3)
    array([1., 1.])
    """
    return LBFGS(max_iterations, history, gradient_tolerance, value_tolerance)


class LBFGS:
    """What ``lbfgs`` makes.  It keeps nothing from one call to the next, so there is no state to save.

    >>> pb.train.lbfgs().solve(lambda p: ((p["w"] - 3.0) ** 2).sum(), {"w": np.zeros(2)}).params["w"].round(3)
    array([3., 3.])
    """

    def __init__(self, max_iterations: int, history: int, gradient_tolerance: float, value_tolerance: float) -> None:
        for name, n in (("max_iterations", max_iterations), ("history", history)):
            if as_number("lbfgs", name, n, 1) != int(n):
                raise ArgumentError(f"lbfgs: {name} must be a whole number, got {n!r}.")
        self.options = {
            "maxiter": int(max_iterations),
            "maxcor": int(history),
            "gtol": as_number("lbfgs", "gradient_tolerance", gradient_tolerance, 0),
            "ftol": as_number("lbfgs", "value_tolerance", value_tolerance, 0),
        }

    def minimize(
        self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None, return_cost: bool = False
    ) -> Any:
        """Go down to a minimum of ``f()`` by the trainable variables it reads; with ``return_cost`` its value there."""
        if writer() is not None:
            raise CompileError("lbfgs.minimize decides by values how to go on; compile the function f, not this call.")
        value, grads = differentiate_by_variables(f, var_list)
        xs = [*grads]
        _floats(v.dtype for v in xs)
        begin = [v.numpy() for v in xs]

        def at(values: list[Any]) -> tuple[float, list[Any]]:
            for v, x in zip(xs, values, strict=True):
                v.assign(x)
            cost, grads = differentiate_by_variables(f, xs)
            return float(cost), [grads.get(v, np.zeros(v.shape)) for v in xs]  # a branch may not read all

        try:
            made = self._run(at, begin)
        except BaseException:
            for v, x in zip(xs, begin, strict=True):
                v.assign(x)
            raise
        for v, x in zip(xs, made.params, strict=True):
            v.assign(x)
        return constant(value.dtype.type(made.value)) if return_cost else None

    def compute_gradients(self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None) -> ValueAndGrads:
        """The value of ``f()`` and its gradients by name, as ``variable_grads`` gives them."""
        return variable_grads(f, var_list)

    def solve(self, f: Callable[[Any], Any], params: Any) -> Solution:
        """A minimum of ``f(params)`` by a tree of parameters, from these on."""
        given = in_order(params, params, "params")
        begin = [np.array(value_of(x, "lbfgs.solve")) for x, _ in given]
        _floats(x.dtype for x in begin)

        def like(values: list[Any]) -> Any:
            source = iter(values)
            return tree.mapped(lambda _: next(source), params, whole=tree.is_number_list)

        step = value_and_grad(f)

        def at(values: list[Any]) -> tuple[float, list[Any]]:
            cost, grads = step(like([x[()] for x in values]))
            return float(cost), [g for g, _ in in_order(params, grads, "grads")]

        made = self._run(at, begin)
        back = [given_back(x[()], kind_of(was)) for x, (was, _) in zip(made.params, given, strict=True)]
        return made._replace(params=like(back))

    def _run(self, at: Callable[[list[Any]], tuple[float, list[Any]]], begin: list[Any]) -> Solution:
        ends = np.cumsum([x.size for x in begin])

        def apart(flat: Any) -> list[Any]:
            parts = np.split(flat, ends[:-1])
            return [part.reshape(x.shape).astype(x.dtype) for part, x in zip(parts, begin, strict=True)]

        def flat_at(flat: Any) -> tuple[float, Any]:
            cost, grads = at(apart(flat))
            return cost, _joined(grads)

        found = _door().minimize(flat_at, _joined(begin), jac=True, method="L-BFGS-B", options=self.options)
        return Solution(apart(found.x), float(found.fun), int(found.nit), bool(found.success), str(found.message))


def _joined(values: list[Any]) -> Any:
    return np.concatenate([np.asarray(x, np.float64).reshape(-1) for x in values])


def _floats(dtypes: Any) -> None:
    for dtype in dtypes:
        if dtype.kind != "f":
            raise GradientError(f"lbfgs: a parameter is {dtype}; only floats can be trained. Cast it first.")
