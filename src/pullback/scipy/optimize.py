"""``scipy.optimize`` over trees: solvers get exact derivatives, and their solutions are differentiable.

Parameters may be dicts, lists, tuples and dataclasses of arrays.  SciPy sees one vector of float64; the solution is a
tree of the dtypes of ``x0``.  It is differentiated implicitly, by the condition that it meets, not through the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import tree as trees
from pullback.core.tensor import Tensor, concrete, strip
from pullback.display.progress import Progress, report_progress
from pullback.errors import ArgumentError, ShapeError
from pullback.names.scipy import FUNCTIONS
from pullback.ops import linalg
from pullback.scipy.arguments import as_float, as_operand, is_traced, list_functions, load, make_fallback, unwrap
from pullback.transforms.grad import grad, value_and_grad
from pullback.transforms.implicit import custom_root
from pullback.transforms.jacobian import hessian, hvp, jacobian
from pullback.transforms.linear import vjp
from pullback.transforms.modifiers import stop_gradient
from pullback.transforms.ravel import ravel_tree
from pullback.transforms.sparse import sparse_jacobian

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pullback.typing import Array, Function, Nested, Operand, TensorLike, Tree, Value

NAMES = FUNCTIONS["optimize"]
WITH_HESSIAN = {"dogleg", "trust-exact", "trust-krylov", "trust-ncg", "trust-constr", "newton-cg"}
WITHOUT_GRADIENT = {"nelder-mead", "powell", "cobyla", "cobyqa"}


__getattr__ = partial(make_fallback, "optimize")
__dir__ = partial(list_functions, "optimize")


def _as_args(args: object) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def _solve_implicitly(condition: Function, solve: Function, start: Tree, args: tuple[Any, ...]) -> Any:
    """Return the solution of ``condition(x, *args) = 0`` that ``solve`` finds, with its derivatives.

    Numbers and arrays in ``args`` go through ``custom_root``, so that ``vmap`` solves for each example; other
    arguments are constants.
    """
    numeric = [i for i, a in enumerate(args) if isinstance(a, Tensor | np.ndarray | np.generic | float)]

    def fill(given: Sequence[object]) -> list[Any]:
        filled = [*args]
        for i, a in zip(numeric, given, strict=True):
            filled[i] = a
        return filled

    root = custom_root(lambda x, *given: condition(x, *fill(given)), lambda f, x, *given: solve(f, x, *fill(given)))
    return root(start, *(args[i] for i in numeric))


class SolverUnknowns:
    """The unknowns of a solver: a tree as one vector of float64."""

    def __init__(self, x0: Tree) -> None:
        plain = trees.map_leaves(lambda leaf: np.asarray(concrete(as_operand(leaf))), x0, whole=trees.is_number_list)
        self.whole = x0 if not isinstance(x0, Tensor | np.ndarray | np.generic | int | float) else None
        wide = trees.map_leaves(lambda leaf: leaf.astype(np.float64) if leaf.dtype.kind != "f" else leaf, plain)
        vector, self.restore = ravel_tree(wide)
        self.start = vector.astype(np.float64)
        self.inner = ravel_tree(trees.map_leaves(lambda leaf: leaf.astype(np.float64), wide))[1]

    def make(self, vector: Value) -> Any:
        """Return the tree in float64, which the user's function gets."""
        return self.inner(vector)

    def finish(self, vector: Value) -> Any:
        """Return the tree in the dtypes of ``x0``."""
        return self.restore(vector)

    def spread(self, bound: Any, missing: float) -> Any:
        """Return a bound for every number, from a number, a tree like ``x0`` or one of its upper parts."""
        like = self.make(self.start)
        if bound is None:
            return np.full(self.start.shape, missing)
        if np.ndim(bound) == 0 and not isinstance(bound, dict):
            return np.full(self.start.shape, float(bound))
        filled = trees.map_leaves(
            lambda leaf, b: np.broadcast_to(np.asarray(missing if b is None else b, float), np.shape(leaf)), like, bound
        )
        return ravel_tree(filled)[0]


def _as_plain_scalar(y: TensorLike) -> float:
    value = np.asarray(concrete(as_operand(y)))
    if value.size != 1:
        raise ShapeError(
            f"pb.scipy.optimize: the function to minimize must return one number, got shape {value.shape}."
        )
    return float(value.reshape(()))


def _as_plain_array(y: TensorLike) -> Any:
    return np.asarray(concrete(as_operand(y)), float)


def _find_bounds(unknowns: SolverUnknowns, bounds: Any) -> tuple[Any, Any] | None:
    """Return the lower and upper bounds as vectors: of SciPy's ``Bounds``, of pairs, or of a tree of pairs."""
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        return unknowns.spread(bounds.lb, -np.inf), unknowns.spread(bounds.ub, np.inf)
    if isinstance(bounds, tuple) and len(bounds) == 2 and isinstance(bounds[0], tuple | list) is not True:
        return unknowns.spread(bounds[0], -np.inf), unknowns.spread(bounds[1], np.inf)
    if isinstance(bounds, dict):
        lower = {k: pair[0] for k, pair in bounds.items()}
        upper = {k: pair[1] for k, pair in bounds.items()}
        return unknowns.spread(lower, -np.inf), unknowns.spread(upper, np.inf)
    pairs = [*bounds]
    low = np.array([-np.inf if p[0] is None else float(p[0]) for p in pairs])
    high = np.array([np.inf if p[1] is None else float(p[1]) for p in pairs])
    return low, high


class Constraints:
    """Constraints as numbers of the vector between two limits each, with exact derivatives."""

    def __init__(self, unknowns: SolverUnknowns, constraints: Any) -> None:
        listed = constraints if isinstance(constraints, list | tuple) else [] if constraints is None else [constraints]
        self.parts = [_read_constraint(unknowns, item) for item in listed]
        values = [f(unknowns.start) for f, *_ in self.parts]
        self.count = sum(v.size for v in values)
        self.limits = [
            np.concatenate([
                np.broadcast_to(as_operand(pair[i]), v.shape) for (_, *pair), v in zip(self.parts, values, strict=True)
            ] or [np.zeros(0)])
            for i in (0, 1)
        ]  # fmt: skip
        self.low, self.high = map(_as_plain_array, self.limits)
        self.is_traced = is_traced([*values, *self.limits])

    def measure(self, v: Value) -> Any:
        """Return the constrained numbers of all constraints."""
        return np.concatenate([f(v) for f, *_ in self.parts] or [np.zeros(0) * v[:0]])

    def as_scipy(self, has_hessians: bool) -> list[Any]:
        """Return the constraints as SciPy takes them, with exact Hessians for a method that uses these."""
        optimize = load("optimize")

        def derive(f: Function) -> dict[str, Any]:
            options: dict[str, Any] = {"jac": lambda v: np.asarray(concrete(jacobian(f)(v)))}
            if has_hessians:
                options["hess"] = lambda v, weights: _as_plain_array(hessian(lambda u: np.sum(f(u) * weights))(v))
            return options

        return [
            optimize.NonlinearConstraint(
                lambda v, f=f: _as_plain_array(f(v)), _as_plain_array(low), _as_plain_array(high), **derive(f)
            )
            for f, low, high in self.parts
        ]

    def residual(self, v: Value, multipliers: Value) -> Any:
        """Return the residuals, 0 at the solution: distances from active limits, multipliers of the others."""
        values, signs = self.measure(v), np.sign(strip(multipliers))
        at_low = (signs > 0) | (self.low == self.high)
        limit = np.where(at_low, *map(_replace_infinite, self.limits))
        return np.where(at_low | (signs < 0), values - limit, multipliers)

    def find_multipliers(self, v: Array, slope: Array, free: Array) -> Any:
        """Return the multipliers at a solution, which are 0 for inactive constraints."""
        if not self.parts:
            return np.zeros(0)
        values, rows = _as_plain_array(self.measure(v)), _as_plain_array(jacobian(self.measure)(v))
        equal = self.low == self.high
        at_low, at_high = (
            np.isfinite(limit)
            & (np.abs(values - _replace_infinite(limit)) <= 1e-5 * (1 + np.abs(_replace_infinite(limit))))
            for limit in (self.low, self.high)
        )
        active = equal | at_low | at_high
        least = 1e-6 * (1 + np.max(np.abs(slope), initial=0.0))
        while True:
            multipliers = np.zeros(self.count)
            multipliers[active] = np.linalg.lstsq(rows[active][:, free].T, slope[free], rcond=None)[0]
            pushed = equal | (at_low & (multipliers > least)) | (at_high & (multipliers < -least))
            if np.array_equal(active, pushed):
                return multipliers
            active &= pushed


def _replace_infinite(limit: Value) -> Any:
    """Return limits with 0 in place of infinite ones."""
    return np.where(np.isfinite(limit), limit, 0.0)


def _hold_at_limits(v: Array, slope: Array, limits: tuple[Array, Array] | None, rows: Constraints) -> tuple[Any, Any]:
    """Return a solution, exactly at the bounds that hold it back, and the multipliers of its constraints.

    Methods that come from inside stop before a bound; a number near it is held where the slope pushes it outward.
    """
    low, high = limits if limits is not None else (np.full(v.shape, -np.inf), np.full(v.shape, np.inf))
    at_low, at_high = (
        np.isfinite(limit) & (np.abs(v - _replace_infinite(limit)) <= 1e-6 * (1 + np.abs(_replace_infinite(limit))))
        for limit in (low, high)
    )
    held = at_low | at_high
    least = 1e-6 * (1 + np.max(np.abs(slope), initial=0.0))
    across = _as_plain_array(jacobian(rows.measure)(v)) if rows.parts else np.zeros((0, v.size))
    while True:
        multipliers = rows.find_multipliers(v, slope, ~held)
        push = slope - across.T @ multipliers
        kept = held & ((at_low & (push > least)) | (at_high & (push < -least)) | (low == high))
        if np.array_equal(kept, held):
            return np.where(held, np.where(at_low, low, high), v), multipliers
        held = kept


def _read_constraint(unknowns: SolverUnknowns, item: Any) -> tuple[Function, Any, Any]:
    """Return the function of the vector and the limits of one constraint of SciPy's."""
    if isinstance(item, dict):
        high = {"eq": 0.0, "ineq": np.inf}.get(str(item.get("type")).lower())
        if high is None:
            raise ArgumentError(f"minimize: the type of a constraint is 'eq' or 'ineq', got {item.get('type')!r}.")
        return (
            lambda v: np.reshape(as_operand(item["fun"](unknowns.make(v), *_as_args(item.get("args", ())))), -1),
            0.0,
            high,
        )
    if hasattr(item, "fun"):
        return lambda v: np.reshape(as_operand(item.fun(unknowns.make(v))), -1), item.lb, item.ub
    return lambda v: np.matmul(item.A.toarray() if hasattr(item.A, "toarray") else item.A, v), item.lb, item.ub


def minimize(
    fun: Callable[..., Any], x0: Tree, args: object = (), method: str | Function | None = None,
    jac: Function | None = None, hess: Function | None = None, hessp: Function | None = None, bounds: Any = None,
    constraints: object = (), tol: float | None = None, callback: Function | None = None,
    options: Mapping[str, object] | None = None,
) -> Any:  # fmt: skip
    """Minimize ``fun(x, *args)``, a number, over a tree ``x``; the result is SciPy's with ``x`` and ``jac`` as trees.

    fun: the function; gradient, Hessian and its products are taken of it.
    x0: where to begin, a tree of arrays; the solution has its structure and dtypes.
    args: more arguments; the solution is differentiable by them and by values that ``fun`` captures.
    method: as in SciPy.
    jac, hess, hessp: not needed; functions of the tree are used where they are given.
    bounds: pairs, SciPy's ``Bounds``, a dict of pairs by name, or a pair of trees.
    constraints: SciPy's, whose functions get the tree; their Jacobians are filled in.
    callback: is called with the tree of each step, or with ``intermediate_result=`` as in SciPy.

    Unknowns at a bound do not change with the arguments.  With constraints, the solution is differentiated by the
    Karush-Kuhn-Tucker (KKT) conditions: active constraints stay active, others have no effect.

    >>> result = minimize(lambda p, a: (p["x"] - a) ** 2 + p["y"] ** 2, {"x": 0.0, "y": 1.0}, args=(3.0,))
    >>> round(float(result.x["x"]), 6)
    3.0
    >>> round(float(pb.grad(lambda a: minimize(lambda x, a: (x - a**2) ** 2, 0.0, args=(a,)).x)(3.0)), 5)
    6.0
    """
    unknowns, args = SolverUnknowns(x0), _as_args(args)
    limits = _find_bounds(unknowns, bounds)

    def loss(v: Value, *extra: object) -> Any:
        return as_operand(fun(unknowns.make(v), *extra))

    rows = Constraints(unknowns, constraints)
    kept: dict[str, Any] = {}

    def solve(f: Function | None, start: Tree, *extra: object) -> Any:
        kept["result"] = _run_minimize(
            lambda v: loss(v, *extra), unknowns, start, extra, method, (jac, hess, hessp), limits, rows, tol,
            callback, options,
        )  # fmt: skip
        return kept["result"].x

    def find_slope(v: Value, *extra: object) -> Any:
        return grad(lambda v: loss(v, *extra), unconnected="zero")(v)

    def find_fixed(v: Value) -> Any:
        return np.zeros(v.shape, bool) if limits is None else (v <= limits[0]) | (v >= limits[1])

    def hold(f: Function | None, start: Value, *extra: object) -> Any:
        found = solve(f, unknowns.start, *extra)
        return np.concatenate(_hold_at_limits(found, _as_plain_array(find_slope(found, *extra)), limits, rows))

    def condition_of_both(both: Value, *extra: object) -> Any:
        v, multipliers = both[: unknowns.start.size], both[unknowns.start.size :]
        slope = find_slope(v, *extra) - vjp(rows.measure, v)[1](multipliers)[0]
        slope = np.where(find_fixed(strip(v)), v - stop_gradient(v), slope)
        return np.concatenate([slope, rows.residual(v, multipliers)])

    if not is_traced(loss(unknowns.start, *args)) and not rows.is_traced:
        vector = solve(None, unknowns.start, *args)
    else:
        both = np.concatenate([unknowns.start, np.zeros(rows.count)])
        vector = _solve_implicitly(condition_of_both, hold, both, args)[: unknowns.start.size]
    result = kept["result"]
    result.x = unknowns.finish(vector)
    if getattr(result, "jac", None) is not None and np.shape(result.jac) == unknowns.start.shape:
        result.jac = unknowns.make(np.asarray(result.jac))
    if is_traced(result.x):
        result.fun = loss(vector, *args)
    return result


def _run_minimize(
    loss: Function, unknowns: SolverUnknowns, start: Tree, args: tuple[object, ...], method: str | Function | None,
    derivatives: tuple[Function | None, ...], limits: tuple[Array, Array] | None, rows: Constraints, tol: float | None,
    callback: Function | None, options: Mapping[str, object] | None,
) -> Any:  # fmt: skip
    jac, hess, hessp = derivatives
    name = method.lower() if isinstance(method, str) else ""
    more: dict[str, Any] = {}

    def flatten(tree: Tree) -> Any:
        return ravel_tree(trees.map_leaves(_as_plain_array, tree))[0]

    def function(v: Value) -> Any:
        if name in WITHOUT_GRADIENT:
            return _as_plain_scalar(loss(v))
        if callable(jac):
            return _as_plain_scalar(loss(v)), flatten(jac(unknowns.make(v), *args))
        value, slope = value_and_grad(loss, unconnected="zero")(v)
        return _as_plain_scalar(value), _as_plain_array(slope)

    if callable(hess):
        more["hess"] = lambda v: unwrap(hess(unknowns.make(v), *args))
    elif callable(hessp):
        more["hessp"] = lambda v, p: flatten(hessp(unknowns.make(v), unknowns.make(p), *args))
    elif name in ("newton-cg", "trust-krylov", "trust-ncg"):
        more["hessp"] = lambda v, p: _as_plain_array(hvp(loss, v, p))
    elif name in WITH_HESSIAN:
        more["hess"] = lambda v: _as_plain_array(hessian(loss)(v))
    if limits is not None:
        more["bounds"] = load("optimize").Bounds(*limits)
    if rows.parts:
        more["constraints"] = rows.as_scipy(str(method).lower() == "trust-constr")
    if callback is not None:
        more["callback"] = _adapt_callback(callback, unknowns)
    with report_progress("minimize") as shown:
        result = load("optimize").minimize(
            _count_calls(function, shown), start, method=method, jac=name not in WITHOUT_GRADIENT, tol=tol,
            options=options, **more,
        )  # fmt: skip
        shown.close({"value": result.fun})
    return result


def _count_calls(f: Function, progress: Progress) -> Function:
    """Return ``f`` whose calls are steps of the progress."""

    def call(v: Value) -> Any:
        progress.step()
        return f(v)

    return call


def _adapt_callback(callback: Function, unknowns: SolverUnknowns) -> Any:
    code = getattr(callback, "__code__", None)
    if code is not None and code.co_varnames[: code.co_argcount] == ("intermediate_result",):

        def report(intermediate_result: Any) -> Any:
            intermediate_result.x = unknowns.finish(np.asarray(intermediate_result.x))
            return callback(intermediate_result=intermediate_result)

        return report
    return lambda v, *rest: callback(unknowns.finish(np.asarray(v)), *rest)


# ---- least squares

LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z, "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1), "cauchy": np.log1p, "arctan": np.arctan,
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
}  # fmt: skip


def least_squares(
    fun: Callable[..., Any], x0: Tree, jac: str | Function | None = None, bounds: Any = (-np.inf, np.inf),
    method: str = "trf", *, loss: str = "linear", f_scale: float = 1.0, args: object = (),
    callback: Function | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Minimize the sum of squares of ``fun(x, *args)`` over a tree ``x``, with exact Jacobians.

    fun: returns the residuals, an array or a tree of arrays.
    x0: where to begin, a tree; the solution has its structure and dtypes.
    jac: not needed; ``"sparse"`` makes Jacobians sparse, a function of the tree is used where it is given.
    bounds: a pair of numbers, arrays or trees, or a dict of pairs by name.

    The solution is differentiable by ``args`` and by values that ``fun`` captures.

    >>> line = lambda p, y: p["a"] + p["b"] * np.arange(3.0) - y
    >>> fit = least_squares(line, {"a": 0.0, "b": 0.0}, args=([1.0, 3.0, 5.0],))
    >>> {k: round(float(v), 6) for k, v in fit.x.items()}
    {'a': 1.0, 'b': 2.0}
    """
    unknowns, args = SolverUnknowns(x0), _as_args(args)
    limits = _find_bounds(unknowns, bounds)
    if loss not in LOSSES:
        raise ArgumentError(f"least_squares: loss must be one of {sorted(LOSSES)}, got {loss!r}.")
    args = tuple(as_operand(a) if isinstance(a, list) else a for a in args)

    def residuals(v: Value) -> Any:
        return ravel_tree(trees.map_leaves(as_operand, fun(unknowns.make(v), *args), whole=trees.is_number_list))[0]

    def plain_residuals(v: Value) -> Any:
        plain = trees.map_leaves(lambda a: concrete(a) if isinstance(a, Tensor) else a, args)
        return ravel_tree(trees.map_leaves(as_operand, fun(unknowns.make(v), *plain), whole=trees.is_number_list))[0]

    def cost(v: Value) -> Any:
        return 0.5 * f_scale**2 * np.sum(LOSSES[loss]((residuals(v) / f_scale) ** 2))

    def differentiate(v: Value) -> Any:
        if callable(jac):
            return np.asarray(concrete(jac(unknowns.make(v), *args)))
        if isinstance(jac, str) and jac == "sparse":
            return sparse_jacobian(plain_residuals)(v)
        return _as_plain_array(jacobian(residuals)(v))

    kept: dict[str, Any] = {}

    def solve(f: Function | None, start: Tree) -> Any:
        more = {} if callback is None else {"callback": _adapt_callback(callback, unknowns)}
        with report_progress("least_squares") as shown:
            compute = _count_calls(lambda v: _as_plain_array(residuals(v)), shown)
            kept["result"] = load("optimize").least_squares(
                compute, start, differentiate, limits or (-np.inf, np.inf), method, loss=loss, f_scale=f_scale,
                **more, **options,
            )  # fmt: skip
            shown.close({"cost": kept["result"].cost})
        return kept["result"].x

    def condition(v: Value) -> Any:
        slope = grad(cost, unconnected="zero")(v)
        values, mask = np.asarray(concrete(v)), kept["result"].active_mask
        return slope if not mask.any() else np.where(mask != 0, v - values, slope)

    if is_traced(cost(unknowns.start)):
        vector = _solve_implicitly(condition, solve, unknowns.start, ())
    else:
        vector = solve(None, unknowns.start)
    result = kept["result"]
    result.x = unknowns.finish(vector)
    if is_traced(vector):
        result.fun, result.cost = residuals(vector), cost(vector)
    return result


def curve_fit(
    f: Callable[..., Any], xdata: Any, ydata: TensorLike, p0: Any = None, sigma: TensorLike | None = None,
    absolute_sigma: bool = False, check_finite: bool = True, bounds: Any = (-np.inf, np.inf), method: str | None = None,
    jac: Function | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Return the parameters of ``f(x, *p)`` that fit data best, and their covariance matrix.

    Both are differentiable by the data and by ``sigma``.  A tree ``p0`` makes the parameters one argument,
    ``f(x, p)``, and the result a tree.

    >>> popt, pcov = curve_fit(lambda x, a, b: a * x + b, np.arange(4.0), np.array([1.0, 3.0, 5.0, 7.5]))
    >>> popt.round(3)
    array([2.15, 0.9 ])
    """
    if isinstance(xdata, list | tuple):
        xdata = as_float(xdata)
    y = as_float(ydata)
    whole = p0 is not None and not isinstance(p0, list | tuple | np.ndarray | Tensor | float | int)
    start = np.ones(_count_parameters(f) - 1) if p0 is None else p0 if whole else np.atleast_1d(as_float(p0))
    scale = None if sigma is None else as_float(sigma)

    def weigh(r: Value) -> Any:
        if scale is None:
            return r
        return r / scale if scale.ndim < 2 else linalg.triangular_solve(linalg.cholesky(scale), r)

    def residuals(p: Any) -> Any:
        return weigh(np.reshape(as_operand(f(xdata, p) if whole else f(xdata, *p)) - y, -1))

    limited = not (isinstance(bounds, tuple) and np.ndim(bounds[0]) == 0 and not np.isfinite(bounds[0]))
    found = least_squares(residuals, start, bounds=bounds, method=method or ("trf" if limited else "lm"), **options)
    vector, unravel = ravel_tree(found.x)
    J = jacobian(lambda v: residuals(unravel(v)))(vector)
    covariance = linalg.inv(np.matmul(np.transpose(J), J))
    if not absolute_sigma:
        count = y.size - vector.shape[0]
        rest = residuals(found.x)
        covariance = covariance * (np.sum(rest * rest) / count if count > 0 else np.inf)
    return found.x, covariance


def _count_parameters(f: Function) -> int:
    code = getattr(f, "__code__", None)
    if code is None or code.co_flags & 4:
        raise ArgumentError("curve_fit: give p0; the number of parameters cannot be inferred from f.")
    return int(code.co_argcount) - (1 if hasattr(f, "__self__") else 0)


# ---- roots


def root(
    fun: Callable[..., Any], x0: Tree, args: object = (), method: str = "hybr", jac: Function | None = None,
    tol: float | None = None, callback: Function | None = None, options: Mapping[str, object] | None = None,
) -> Any:  # fmt: skip
    """Solve ``fun(x, *args) = 0`` for a tree ``x``, with exact Jacobians; differentiable by ``args``.

    >>> round(float(pb.grad(lambda a: root(lambda x, a: x**2 - a, 1.0, args=(a,)).x)(4.0)), 6)
    0.25
    """
    unknowns, args = SolverUnknowns(x0), _as_args(args)

    def function(v: Value, *extra: object) -> Any:
        residuals = fun(unknowns.make(v), *extra)
        return ravel_tree(trees.map_leaves(as_operand, residuals, whole=trees.is_number_list))[0]

    kept: dict[str, Any] = {}

    def solve(f: Function | None, start: Tree, *extra: object) -> Any:
        def differentiate(v: Value) -> Any:
            return _as_plain_array(jacobian(lambda v: function(v, *extra))(v))

        with report_progress("root") as shown:
            compute = _count_calls(lambda v: _as_plain_array(function(v, *extra)), shown)
            kept["result"] = load("optimize").root(
                compute, start, method=method, tol=tol, callback=callback, options=options,
                jac=differentiate if method in ("hybr", "lm") else None,
            )  # fmt: skip
            shown.close({})
        return kept["result"].x

    if is_traced(function(unknowns.start, *args)):
        vector = _solve_implicitly(function, solve, unknowns.start, args)
    else:
        vector = solve(None, unknowns.start, *args)
    result = kept["result"]
    result.x = unknowns.finish(vector)
    return result


def fsolve(func: Callable[..., Any], x0: TensorLike, args: object = (), **options: Any) -> Any:
    """Return the solution of ``func(x, *args) = 0``; differentiable by ``args``."""
    if options.get("full_output"):
        return make_fallback("optimize", "fsolve")(func, x0, args, **options)
    return np.atleast_1d(root(func, np.atleast_1d(as_float(x0)), args, tol=options.get("xtol")).x)


def root_scalar(
    f: Callable[..., Any], args: object = (), method: str | None = None, bracket: Nested | None = None,
    fprime: Function | None = None, fprime2: Function | None = None, x0: TensorLike | None = None,
    x1: TensorLike | None = None, **options: object,
) -> Any:  # fmt: skip
    """Solve ``f(x, *args) = 0`` for a number; the result is SciPy's, with ``root`` differentiable by ``args``.

    >>> round(pb.grad(lambda a: root_scalar(lambda x, a: x**3 - a, args=(a,), bracket=[0.0, 9.0]).root)(8.0), 6)
    0.083333
    """
    args = _as_args(args)
    kept: dict[str, Any] = {}

    def function(x: Operand, *extra: object) -> Any:
        return np.reshape(as_operand(f(x, *extra)), ())

    def solve(g: Function | None, start: Tree, *extra: object) -> Any:
        slopes = {}
        if method in ("newton", "halley") or (method is None and bracket is None):
            slopes["fprime"] = lambda x: _as_plain_scalar(grad(lambda x: function(x, *extra))(float(x)))
        if method == "halley":
            slopes["fprime2"] = lambda x: _as_plain_scalar(grad(grad(lambda x: function(x, *extra)))(float(x)))
        kept["result"] = load("optimize").root_scalar(
            lambda x: _as_plain_scalar(function(x, *extra)), method=method, bracket=_as_plain_numbers(bracket),
            x0=_as_plain_numbers(x0), x1=_as_plain_numbers(x1), **slopes, **options,
        )  # fmt: skip
        return np.float64(kept["result"].root)

    start = (
        0.0
        if x0 is None and bracket is None
        else _as_plain_numbers(bracket)[0]
        if x0 is None
        else _as_plain_numbers(x0)
    )
    traced = is_traced(function(start, *args))
    solution = _solve_implicitly(function, solve, start, args) if traced else solve(None, start, *args)
    result = kept["result"]
    result.root = solution
    return result


def _as_plain_numbers(x: TensorLike | None) -> Any:
    return None if x is None else np.asarray(concrete(as_float(x)), float).tolist()


def _make_bracketing_solver(name: str) -> Any:
    def solve(
        f: Callable[..., Any], a: TensorLike, b: TensorLike, args: object = (), xtol: float = 2e-12,
        rtol: float = 8.881784197001252e-16, maxiter: int = 100, full_output: bool = False, disp: bool = True,
    ) -> Any:  # fmt: skip
        found = root_scalar(f, args, name, [a, b], xtol=xtol, rtol=rtol, maxiter=maxiter)
        return (found.root, found) if full_output else found.root

    solve.__name__, solve.__doc__ = name, f"Return a root between two numbers, as ``scipy.optimize.{name}``."
    return solve


brentq, brenth, bisect, ridder = map(_make_bracketing_solver, ("brentq", "brenth", "bisect", "ridder"))


def toms748(
    f: Callable[..., Any], a: TensorLike, b: TensorLike, args: object = (), k: int = 1, xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16, maxiter: int = 100, full_output: bool = False, disp: bool = True,
) -> Any:  # fmt: skip
    """Return a root between two numbers, as ``scipy.optimize.toms748``."""
    found = root_scalar(f, args, "toms748", [a, b], xtol=xtol, rtol=rtol, maxiter=maxiter, options={"k": k})
    return (found.root, found) if full_output else found.root


def newton(
    func: Callable[..., Any], x0: TensorLike, fprime: Function | None = None, args: object = (), tol: float = 1.48e-8,
    maxiter: int = 50, **options: object,
) -> Any:  # fmt: skip
    """Return a root near a number, by Newton's method; differentiable by ``args``."""
    return root_scalar(func, args, "newton", x0=x0, xtol=tol, maxiter=maxiter).root


def fixed_point(
    func: Callable[..., Any],
    x0: TensorLike,
    args: object = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """Return the solution of ``x = func(x, *args)``; differentiable by ``args``."""
    args, start = _as_args(args), np.asarray(concrete(as_float(x0)), float)

    def solve(f: Function | None, x: Any) -> Any:
        return load("optimize").fixed_point(lambda x: _as_plain_array(func(x, *args)), x, (), xtol, maxiter, method)

    if not is_traced(as_operand(func(start, *args))):
        return solve(None, start)
    return custom_root(lambda x: x - as_operand(func(x, *args)), solve)(start)


def minimize_scalar(
    fun: Callable[..., Any], bracket: Nested | None = None, bounds: Nested | None = None,
    args: object = (), method: str | Function | None = None, tol: float | None = None,
    options: Mapping[str, object] | None = None,
) -> Any:  # fmt: skip
    """Minimize a function of a number; the result is SciPy's, with ``x`` and ``fun`` differentiable by ``args``.

    >>> round(pb.grad(lambda a: minimize_scalar(lambda x, a: (x - a) ** 2 + x, args=(a,)).x)(3.0), 5)
    1.0
    """
    args = _as_args(args)
    kept: dict[str, Any] = {}

    def loss(x: Operand) -> Any:
        return np.reshape(as_operand(fun(x, *args)), ())

    def solve(f: Function | None, start: Tree) -> Any:
        kept["result"] = load("optimize").minimize_scalar(
            lambda x: _as_plain_scalar(loss(x)), _as_plain_numbers(bracket), _as_plain_numbers(bounds), method=method,
            tol=tol, options=options,
        )  # fmt: skip
        return np.float64(kept["result"].x)

    start = 0.0 if bounds is None and bracket is None else float(np.mean(_as_plain_numbers(bounds or bracket)))
    traced = is_traced(loss(start))
    solution = custom_root(lambda x: grad(loss)(x), solve)(start) if traced else solve(None, start)
    result = kept["result"]
    result.x = solution
    if traced:
        result.fun = loss(solution)
    return result


# ---- Rosenbrock's function


def rosen(x: TensorLike) -> Any:
    """Return Rosenbrock's function."""
    x = as_float(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2, 0)


def rosen_der(x: TensorLike) -> Any:
    """Return the gradient of Rosenbrock's function."""
    return grad(rosen)(as_float(x))


def rosen_hess(x: TensorLike) -> Any:
    """Return the Hessian of Rosenbrock's function."""
    return hessian(rosen)(as_float(x))


def rosen_hess_prod(x: TensorLike, p: TensorLike) -> Any:
    """Return the Hessian of Rosenbrock's function times a vector."""
    return np.matmul(rosen_hess(x), as_float(p))
