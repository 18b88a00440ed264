"""L-BFGS by SciPy with gradients from here: for smooth, deterministic functions of few parameters.

The only module that imports ``scipy.optimize``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from pullback.core.convert import as_number
from pullback.core.tape import constant
from pullback.core.variable import Variable, get_trace
from pullback.errors import ArgumentError, CompileError, GradientError
from pullback.names.packages import import_package
from pullback.train.optim.clipping import as_value
from pullback.train.optim.trees import match_leaves, rebuild_tree
from pullback.transforms.grad import ValueAndGrads, convert_back, kind_of, value_and_grad
from pullback.transforms.variables import differentiate_by_variables, variable_grads
from pullback.typing import Array

__all__ = ["LBFGS", "Solution", "lbfgs"]


P = TypeVar("P")  # a tree of parameters


class Solution(NamedTuple, Generic[P]):
    """The result of ``lbfgs``: parameters, the function's value there, and whether it converged.

    >>> pb.train.lbfgs().solve(lambda x: (x - 1.0) ** 2, 0.0).converged
    True
    """

    params: P
    value: float
    iterations: int
    converged: bool
    message: str


def lbfgs(
    max_iterations: int = 100, history: int = 10, gradient_tolerance: float = 1e-5, value_tolerance: float = 1e-9
) -> LBFGS:
    """Return an L-BFGS optimizer: quasi-Newton steps from the last ``history`` gradients, each with a line search.

    One ``minimize`` makes up to ``max_iterations`` steps and calls the function as often as it needs to.

    max_iterations: how many steps are made at most.
    history: how many gradients are kept.
    gradient_tolerance: the largest element of the gradient at which it stops.
    value_tolerance: the relative change of the value at which it stops.

    >>> x = pb.variable([-1.2, 1.0], dtype="float64", name="x")
    >>> rosenbrock = lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> float(pb.train.lbfgs().minimize(rosenbrock, return_cost=True)) < 1e-8
    True
    >>> np.round(x.numpy(), 3)
    array([1., 1.])
    """
    return LBFGS(max_iterations, history, gradient_tolerance, value_tolerance)


class LBFGS:
    """The L-BFGS optimizer.  It has no state from one call to the next, so there is none to save.

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
        """Minimize ``f()`` by the trainable variables it reads; ``return_cost`` returns its value at the minimum."""
        if get_trace() is not None:
            raise CompileError(
                "lbfgs.minimize cannot be compiled, as its next step depends on values; compile the function f instead."
            )
        value, grads = differentiate_by_variables(f, var_list, face="lbfgs.minimize")
        xs = [*grads]
        _check_floats(v.dtype for v in xs)
        begin = [v.numpy() for v in xs]

        def compute(values: list[Any]) -> tuple[float, list[Any]]:
            for v, x in zip(xs, values, strict=True):
                v.assign(x)
            cost, grads = differentiate_by_variables(f, xs)
            return float(cost), [grads.get(v, np.zeros(v.shape)) for v in xs]  # a branch may not read all of them

        try:
            result = self._minimize_flat(compute, begin)
        except BaseException:
            for v, x in zip(xs, begin, strict=True):
                v.assign(x)
            raise
        for v, x in zip(xs, result.params, strict=True):
            v.assign(x)
        return constant(value.dtype.type(result.value)) if return_cost else None

    def compute_gradients(self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None) -> ValueAndGrads:
        """Return the value of ``f()`` and its gradients by name, as ``variable_grads`` does."""
        return variable_grads(f, var_list)

    def solve(self, f: Callable[[P], Any], params: P) -> Solution[P]:
        """Minimize ``f(params)`` by a tree of parameters, starting from these."""
        leaves = match_leaves(params, params, "params")
        begin = [np.array(as_value(x, "lbfgs.solve")) for x, _ in leaves]
        _check_floats(x.dtype for x in begin)

        step = value_and_grad(f)

        def compute(values: list[Any]) -> tuple[float, list[Any]]:
            cost, grads = step(rebuild_tree(params, (x[()] for x in values)))
            return float(cost), [g for g, _ in match_leaves(params, grads, "grads")]

        result = self._minimize_flat(compute, begin)
        back = [convert_back(x[()], kind_of(was)) for x, (was, _) in zip(result.params, leaves, strict=True)]
        return result._replace(params=rebuild_tree(params, back))

    def _minimize_flat(
        self, compute: Callable[[list[Any]], tuple[float, list[Any]]], begin: list[Any]
    ) -> Solution[Any]:
        ends = np.cumsum([x.size for x in begin])

        def split(flat: Array) -> list[Any]:
            parts = np.split(flat, ends[:-1])
            return [part.reshape(x.shape).astype(x.dtype) for part, x in zip(parts, begin, strict=True)]

        def compute_flat(flat: Array) -> tuple[float, Any]:
            cost, grads = compute(split(flat))
            return cost, _concatenate(grads)

        found = import_package("scipy.optimize", "lbfgs needs SciPy", "pullback[scipy]").minimize(
            compute_flat, _concatenate(begin), jac=True, method="L-BFGS-B", options=self.options
        )
        return Solution(split(found.x), float(found.fun), int(found.nit), bool(found.success), str(found.message))


def _concatenate(values: list[Any]) -> Any:
    return np.concatenate([np.asarray(x, np.float64).reshape(-1) for x in values])


def _check_floats(dtypes: Iterable[np.dtype[Any]]) -> None:
    for dtype in dtypes:
        if dtype.kind != "f":
            raise GradientError(f"lbfgs: a parameter is {dtype}; only floats can be trained. Cast it first.")
