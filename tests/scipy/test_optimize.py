"""SciPy's solvers over trees: exact derivatives inside, solutions that are differentiable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg

import pullback as pb
from pullback.errors import DataError, ShapeError
from pullback.scipy import optimize

X = np.linspace(0.0, 1.0, 8)


@dataclass
class Line:
    slope: Any
    offset: Any


def squares(line: Line, y: Any) -> Any:
    return np.sum((line.slope * X + line.offset - y) ** 2)


def fit(y: Any, method: str | None = None) -> Any:
    return optimize.minimize(squares, Line(np.float32(0.0), 0.0), args=(y,), method=method, tol=1e-10).x


@pytest.mark.parametrize("method", [None, "Newton-CG", "trust-exact", "L-BFGS-B", "Nelder-Mead"])
def test_minimize_over_a_dataclass(method: str | None) -> None:
    y = 3 * X - 1
    line = fit(y, method)
    assert isinstance(line, Line)
    assert line.slope.dtype == np.float32
    assert line.offset.dtype == np.float64
    np.testing.assert_allclose([line.slope, line.offset], [3.0, -1.0], atol=1e-4)


def test_minimize_solution_is_differentiable_to_second_order() -> None:
    y = np.sin(5 * X)
    by_data = pb.jacobian(lambda y: optimize.minimize(squares, Line(0.0, 0.0), args=(y,), tol=1e-10).x.slope)(y)
    np.testing.assert_allclose(by_data, np.linalg.pinv(np.stack([X, np.ones(8)], 1))[0], atol=1e-8)

    def root_of_cube(a: Any) -> Any:  # x**3 = a
        return optimize.minimize(lambda x: x**4 / 4 - a * x, 1.0, tol=1e-12).x

    np.testing.assert_allclose(pb.grad(root_of_cube)(8.0), 1 / 12, rtol=1e-6)
    np.testing.assert_allclose(pb.grad(pb.grad(root_of_cube))(8.0), -1 / 144, rtol=1e-5)


def test_minimize_bounds_by_name() -> None:
    def solve(a: Any) -> Any:
        loss = lambda p: (p["x"] - a) ** 2 + (p["y"] - a) ** 2
        start = {"x": np.zeros(2), "y": 0.0}
        return optimize.minimize(loss_sum(loss), start, bounds={"x": (None, 1.0), "y": (0.0, None)}, tol=1e-12).x

    def loss_sum(loss: Any) -> Any:
        return lambda p: np.sum(loss(p))

    found = solve(3.0)
    np.testing.assert_allclose(found["x"], [1.0, 1.0])
    np.testing.assert_allclose(found["y"], 3.0, rtol=1e-6)
    assert pb.grad(lambda a: np.sum(solve(a)["x"]), unconnected="zero")(3.0) == 0
    np.testing.assert_allclose(pb.grad(lambda a: solve(a)["y"])(3.0), 1.0)


def test_minimize_with_one_sided_bounds() -> None:
    found = optimize.minimize(lambda x: np.sum((x - np.array([-1.0, 2.0])) ** 2), np.ones(2), bounds=(0.5, None))
    np.testing.assert_allclose(found.x, [0.5, 2.0], rtol=1e-6)


def test_minimize_constraints_get_the_tree() -> None:
    constraint = {"type": "eq", "fun": lambda p: p["x"] + p["y"] - 1}
    found = optimize.minimize(
        lambda p: p["x"] ** 2 + 2 * p["y"] ** 2, {"x": 1.0, "y": 1.0}, constraints=constraint, tol=1e-12
    )
    np.testing.assert_allclose([found.x["x"], found.x["y"]], [2 / 3, 1 / 3], rtol=1e-6)


CONSTRAINED: dict[str, Any] = {
    "equality that uses the argument": lambda a: {"constraints": {"type": "eq", "fun": lambda x: np.sum(x) - a[0]}},
    "inequality that holds back": lambda a: {"constraints": {"type": "ineq", "fun": lambda x: 1 - a[1] * np.sum(x**2)}},
    "inequality without effect": lambda a: {"constraints": {"type": "ineq", "fun": lambda x: 9.0 - np.sum(x)}},
    "upper limit": lambda a: {"constraints": scipy.optimize.NonlinearConstraint(lambda x: x[0] * a[0], -np.inf, 0.5)},
    "limit that is an argument": lambda a: {
        "constraints": scipy.optimize.NonlinearConstraint(lambda x: x[:2], a[:2] + 1, np.inf)
    },
    "linear": lambda a: {"constraints": scipy.optimize.LinearConstraint(np.ones((1, 3)), 0.5, 0.5)},
    "bound near which the method stops": lambda a: {
        "constraints": {"type": "eq", "fun": lambda x: np.sum(x) - a[2]},
        "bounds": [(None, 0.3), (None, None), (None, None)],
    },
}


@pytest.mark.parametrize("name", CONSTRAINED)
def test_minimize_with_constraints_is_differentiable(name: str) -> None:
    def f(a: Any) -> Any:
        found = optimize.minimize(
            lambda x: np.sum((x - 2 * a) ** 2) + x[0] * x[1], np.full(3, 0.2), method="SLSQP", tol=1e-13,
            **CONSTRAINED[name](a),
        )  # fmt: skip
        return found.x @ np.array([1.0, 2.0, 3.0])

    # SLSQP ends within 1e-6 of the minimum, on some CPUs of 1e-9: differences of fourth order, over steps of 0.02
    a, h = np.array([1.3, 0.7, 0.4]), 0.02
    numeric = [(8 * (f(a + e) - f(a - e)) - f(a + 2 * e) + f(a - 2 * e)) / (12 * h) for e in h * np.eye(3)]
    np.testing.assert_allclose(pb.grad(f)(a), numeric, atol=1e-4)
    np.testing.assert_allclose(pb.jvp(f, [a], [np.ones(3)])[1], np.sum(numeric), atol=1e-4)


@pytest.mark.filterwarnings("error")
def test_minimize_of_linear_constraints_by_trust_constr_does_not_warn() -> None:
    constraint = scipy.optimize.LinearConstraint(np.ones((1, 2)), 1.0, 1.0)
    found = optimize.minimize(lambda x: np.sum(x**2), np.zeros(2), constraints=constraint, method="trust-constr").x
    np.testing.assert_allclose(found, [0.5, 0.5], rtol=1e-6)


def test_minimize_without_constraints_by_none() -> None:
    np.testing.assert_allclose(optimize.minimize(lambda x: (x - 1) ** 2, 0.0, constraints=None).x, 1, rtol=1e-6)


def test_minimize_rejects_unknown_type_of_constraint() -> None:
    with pytest.raises(TypeError, match="'eq' or 'ineq', got 'lt'"):
        optimize.minimize(lambda x: x**2, 0.0, constraints={"type": "lt", "fun": lambda x: x})


def test_minimize_callback_gets_the_tree() -> None:
    seen: list[Any] = []
    optimize.minimize(lambda p: p["x"] ** 2, {"x": 2.0}, callback=lambda p: seen.append(p["x"]))
    assert len(seen) > 0
    seen.clear()

    def report(intermediate_result: Any) -> None:
        seen.append(intermediate_result.x["x"])

    optimize.minimize(lambda p: p["x"] ** 2, {"x": 2.0}, callback=report)
    assert len(seen) > 0


@pytest.mark.parametrize("jac", [None, "sparse"])
def test_least_squares_with_exact_jacobians(jac: str | None) -> None:
    y = np.exp(-1.3 * X) + 0.1 * np.sin(40 * X)

    def residuals(p: Any, y: Any) -> Any:
        return p["a"] * np.exp(-p["k"] * X) - y

    def solve(y: Any) -> Any:
        exact = {"xtol": 1e-15, "gtol": 1e-15, "ftol": 1e-15}
        return optimize.least_squares(residuals, {"a": 1.0, "k": 1.0}, jac, args=(y,), **exact).x["k"]

    way = np.cos(7 * X)
    slope = (solve(y + 1e-4 * way) - solve(y - 1e-4 * way)) / 2e-4
    np.testing.assert_allclose(pb.grad(solve)(y) @ way, slope, rtol=1e-5)


def test_root_of_a_tree() -> None:
    def solve(a: Any) -> Any:
        return optimize.root(lambda p: {"u": p["x"] ** 2 - a, "v": p["x"] * p["y"] - 1}, {"x": 1.0, "y": 1.0}).x["y"]

    np.testing.assert_allclose(solve(4.0), 0.5)
    np.testing.assert_allclose(pb.grad(solve)(4.0), -0.5 * 4.0**-1.5, rtol=1e-6)


def test_curve_fit_with_named_parameters() -> None:
    def solve(y: Any) -> Any:
        return optimize.curve_fit(lambda x, p: p["a"] * x + p["b"], X, y, {"a": 0.0, "b": 0.0})[0]["a"]

    np.testing.assert_allclose(solve(2 * X + 1), 2.0)
    np.testing.assert_allclose(pb.grad(solve)(2 * X + 1), np.linalg.pinv(np.stack([X, np.ones(8)], 1))[0], atol=1e-9)


def test_solvers_under_vmap() -> None:
    a = np.array([1.0, 8.0])
    for solve in (
        lambda a: optimize.minimize(lambda x, a: x**4 / 4 - a * x, 1.0, args=(a,), tol=1e-12).x,
        lambda a: optimize.root(lambda x, a: x**3 - a, 1.0, args=(a,)).x,
        lambda a: optimize.brentq(lambda x, a: x**3 - a, 0, 5, args=(a,)),
    ):
        np.testing.assert_allclose(pb.vmap(solve)(a), np.cbrt(a), rtol=1e-6)
        np.testing.assert_allclose(pb.vmap(pb.grad(solve))(a), np.cbrt(a) / (3 * a), rtol=1e-5)


def test_linprog_of_traced_values_raises() -> None:
    with pytest.raises(TypeError, match=r"scipy\.optimize\.linprog has no differentiable version"):
        pb.grad(lambda c: optimize.linprog(c, bounds=(0, 1)).fun)(np.ones(2))
    assert optimize.linprog(np.ones(2), bounds=(0, 1)).fun == 0


def test_ravel_tree_is_differentiable() -> None:
    vector, unravel = pb.ravel_tree({"w": np.ones((2, 2), np.float32), "b": 2.0})
    assert unravel(vector)["w"].dtype == np.float32
    grads = pb.grad(lambda p: np.sum(pb.ravel_tree(p)[0] * np.arange(5.0)))({"w": np.ones((2, 2)), "b": 2.0})
    np.testing.assert_array_equal(grads["w"], [[0.0, 1.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match="expected a vector of 5 numbers"):
        unravel(vector[:4])


def test_linear_operator_in_a_solver() -> None:
    A = np.array([[3.0, 1.0], [1.0, 2.0]])
    J = pb.linear_operator(lambda x: A @ x + np.array([1.0, 2.0]), np.zeros(2))
    np.testing.assert_allclose(J @ np.eye(2), A)
    np.testing.assert_allclose(J.T @ np.array([1.0, 2.0]), A.T @ [1.0, 2.0])
    np.testing.assert_allclose(scipy.sparse.linalg.cg(J, A @ [1.0, 1.0])[0], [1.0, 1.0])


def test_install_and_uninstall_of_scipy_support() -> None:
    before = scipy.optimize.minimize
    with pb.scipy.install():
        assert pb.scipy.is_installed()
        assert scipy.optimize.minimize is not before
        with np.errstate(all="ignore"):
            plain = scipy.optimize.minimize(lambda x: float(np.sum((x - 1.0) ** 2)), np.zeros(2))
        np.testing.assert_allclose(plain.x, 1.0, atol=1e-5)
    assert scipy.optimize.minimize is before
    assert not pb.scipy.is_installed()


def test_minimize_of_function_without_return_raises() -> None:
    with pytest.raises(DataError, match=r"got None. Is a return missing"):
        optimize.minimize(lambda x: None, np.ones(3))


def test_minimize_of_function_with_several_results_raises() -> None:
    with pytest.raises(ShapeError, match=r"the function to minimize must return one number, got shape \(3,\)"):
        optimize.minimize(lambda x: x**2, np.ones(3))


def test_linear_operator_at_integers() -> None:
    J = pb.linear_operator(lambda x: x**2, np.array([1, 3]))
    np.testing.assert_allclose(J @ np.ones(2), [2.0, 6.0])
    np.testing.assert_allclose(J.T @ np.array([1.0, 0.5]), [2.0, 3.0])
