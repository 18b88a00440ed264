"""custom_root and custom_fixed_point: implicit derivatives of the solutions of any solver."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

import pullback as pb
from pullback.errors import ArgumentError, CapturedError, ConvergenceError, MatrixError, ShapeError, UnconnectedError


def cubic(x, a):
    """x³ + x = a, so x' = 1 / (3x² + 1)."""
    return x**3 + x - a


def newton(f, x, a):
    for _ in range(60):
        slope = (f(x + 1e-6, a) - f(x - 1e-6, a)) / 2e-6
        x = x - f(x, a) / slope
    return x


SOLVERS = {
    "fsolve": lambda f, x0, a: optimize.fsolve(f, x0, (a,), xtol=1e-13),
    "root": lambda f, x0, a: optimize.root(f, x0, (a,)),
    "brentq": lambda f, x0, a: optimize.brentq(f, -9, 9, (a,), xtol=1e-14),
    "newton": lambda f, x0, a: optimize.newton(f, x0, args=(a,), tol=1e-13),
    "root_scalar": lambda f, x0, a: optimize.root_scalar(f, args=(a,), bracket=[-9, 9], xtol=1e-14),
    "a loop": newton,
}
X = np.array([1.0, 2.0, 3.0])
A = X**3 + X
FIRST = 1 / (3 * X**2 + 1)
SECOND = -6 * X * FIRST**3
THIRD = -6 * FIRST**4 + 108 * X**2 * FIRST**5
ONE = np.float64(1)


def along(f):
    return lambda a: pb.jvp(f, [a], [ONE])[1]


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_custom_root_with_scipy_solvers(solve):
    root = lambda a: pb.custom_root(cubic, solve)(np.float64(0.5), a)
    assert_allclose(root(A[0]), 1, rtol=1e-8)
    assert_allclose(pb.grad(root)(A[0]), FIRST[0], rtol=1e-6)
    assert_allclose(pb.grad(pb.grad(root))(A[0]), SECOND[0], rtol=1e-6)


ORDERS = {  # each of these as a function of one number, over all examples
    "grad": (pb.grad, FIRST),
    "jvp": (along, FIRST),
    "grad grad": (lambda f: pb.grad(pb.grad(f)), SECOND),
    "jvp grad": (lambda f: along(pb.grad(f)), SECOND),
    "grad jvp": (lambda f: pb.grad(along(f)), SECOND),
    "jvp jvp": (lambda f: along(along(f)), SECOND),
    "grad grad grad": (lambda f: pb.grad(pb.grad(pb.grad(f))), THIRD),
    "jvp grad jvp": (lambda f: along(pb.grad(along(f))), THIRD),
    "recompute": (lambda f: pb.grad(pb.grad(pb.recompute_grad(f))), SECOND),
}


@pytest.mark.parametrize(("derivative", "want"), ORDERS.values(), ids=ORDERS)
def test_custom_root_orders_modes_and_vmap(derivative, want):
    root = lambda a: pb.custom_root(cubic, SOLVERS["brentq"])(np.float64(0.5), a)
    assert_allclose([derivative(root)(a) for a in A], want)
    assert_allclose(pb.vmap(derivative(root))(A), want)
    if derivative is pb.grad:
        assert_allclose(pb.vmap(root)(A), X)
        assert_allclose(pb.grad(lambda a: pb.vmap(root)(a).sum())(A), want)
        assert_allclose(pb.grad(lambda a: pb.vmap(pb.grad(root))(a).sum())(A), SECOND)
        assert_allclose(pb.jvp(pb.vmap(root), [A], [A])[1], want * A)


def test_custom_root_returns_type_of_input():
    root = pb.custom_root(cubic, newton)
    assert type(root(1.0, 2.0)) is float
    assert type(root(1, 2)) is float
    assert type(root(np.float64(1), 2.0)) is np.float64
    assert type(root(1.0, pb.tensor(2.0))) is pb.Tensor
    assert root(np.ones(2, "f4"), np.ones(2, "f4")).dtype == np.float32
    slope = pb.grad(lambda a: root(np.float32(1), a))(np.float32(2))
    assert slope.dtype == np.float32
    assert pickle.loads(pickle.dumps(root))(1.0, 2.0) == pytest.approx(1)
    assert repr(root) == "<custom_root(cubic)>"


# ---- fixed points


W = np.random.default_rng(0).normal(size=(4, 4)) * 0.2
B = np.random.default_rng(1).normal(size=4)
U = np.array([0.3, -1.0, 0.5, 2.0])


def unroll(w, b):
    x = np.zeros(4)
    for _ in range(60):
        x = np.tanh(w @ x + b)
    return x


def iterate_damped(f, x, p):
    for _ in range(200):
        x = (x + f(x, p)) / 2
    return x


@pytest.mark.parametrize("solve", [(), (iterate_damped,)], ids=["plain iteration", "a loop"])
def test_custom_fixed_point_with_tree_parameters(solve):
    point = pb.custom_fixed_point(lambda x, p: np.tanh(p["w"] @ x + p["rest"][0]), *solve)
    implicit = lambda w, b: point(np.zeros(4), {"w": w, "rest": [b]})
    assert_allclose(implicit(W, B), unroll(W, B))
    loss = lambda h: lambda w, b: (h(w, b) * U).sum()
    for d, want in zip(pb.grads(loss(implicit))([W, B]), pb.grads(loss(unroll))([W, B]), strict=True):
        assert_allclose(d, want, rtol=1e-6)
    product = lambda h: pb.jvp(pb.grad(lambda b: loss(h)(W, b)), [B], [U])[1]
    assert_allclose(product(implicit), product(unroll), rtol=1e-6)
    jacobian = pb.vmap(lambda t: pb.jvp(lambda b: implicit(W, b), [B], [t])[1], 0, -1)(np.eye(4))
    steep = np.diag(1 - unroll(W, B) ** 2)
    assert_allclose(jacobian, np.linalg.solve(np.eye(4) - steep @ W, steep))
    many = np.stack([B, -B, 2 * B])
    assert_allclose(pb.vmap(implicit, (None, 0))(W, many), [unroll(W, b) for b in many])
    shared = pb.grad(lambda w: pb.vmap(implicit, (None, 0))(w, many).sum())(W)
    assert_allclose(shared, sum(pb.grad(lambda w, b=b: unroll(w, b).sum())(W) for b in many), rtol=1e-6)


def test_custom_fixed_point_divergence_raises():
    with pytest.raises(ConvergenceError, match="after 1000 steps x still moves by 2"):
        pb.custom_fixed_point(lambda x: -x)(1.0)
    with np.errstate(over="ignore"), pytest.raises(ConvergenceError, match="reached NaN or infinity"):
        pb.custom_fixed_point(lambda x: x * x)(np.float64(2.0))


# ---- unknowns of any form


def test_custom_root_of_matrix_with_vector_solver():
    m = np.array([[4.0, 1.0], [1.0, 3.0]])
    root = pb.custom_root(lambda x, m: x @ x - m, lambda f, x0, m: optimize.fsolve(f, x0, (m,), xtol=1e-13))
    x = root(np.eye(2) * 1.5, m)
    assert x.shape == (2, 2)
    assert_allclose(x @ x, m)
    assert_allclose(pb.grad(lambda m: np.trace(root(np.eye(2) * 1.5, m)))(m), np.linalg.inv(x).T / 2)


def test_custom_root_of_tree():
    def f(x, a):
        return {"u": x["u"] ** 2 - a, "v": [x["v"][0] * x["u"] - np.ones((2, 2))]}

    def solve(f, x0, a):
        x = {"u": np.sqrt(a), "v": [np.full((2, 2), 1 / np.sqrt(a))]}
        rest = f(x, a)
        assert [type(rest["u"]), type(rest["v"][0])] == [np.float64, np.ndarray]
        assert_allclose(rest["v"][0], 0, atol=1e-12)
        return x

    x0 = {"u": 1.0, "v": [np.ones((2, 2))]}
    root = pb.custom_root(f, solve)
    assert_allclose(root(x0, np.float64(4.0))["v"][0], 0.5)
    assert_allclose(pb.grad(lambda a: root(x0, a)["v"][0].sum())(4.0), -2 * 4**-1.5)
    assert_allclose(pb.grad(pb.grad(lambda a: root(x0, a)["v"][0].sum()))(4.0), 3 * 4**-2.5)


def test_custom_root_jacobian_hessian_hvp_vjp_linearize():
    root = lambda a: pb.custom_root(cubic, SOLVERS["fsolve"])(np.ones(3), a)
    for mode in ("forward", "reverse"):
        assert_allclose(pb.jacobian(root, mode=mode)(A), np.diag(FIRST), atol=1e-12)
    assert_allclose(pb.hessian(lambda a: root(a).sum())(A), np.diag(SECOND), atol=1e-12)
    assert_allclose(pb.hvp(lambda a: root(a).sum(), A, X), SECOND * X)
    assert_allclose(pb.vjp(root, A)[1](X)[0], FIRST * X)
    assert_allclose(pb.linearize(root, A)[1](X), FIRST * X)


def test_custom_root_nested():
    inner = pb.custom_root(cubic, SOLVERS["brentq"])
    outer = pb.custom_root(lambda z, a: z * z - inner(np.float64(1.0), a), SOLVERS["a loop"])
    f = lambda a: outer(np.float64(1.0), a)  # √x, where x³ + x = a
    assert_allclose(f(A[1]), np.sqrt(2))
    assert_allclose(pb.grad(f)(A[1]), FIRST[1] / np.sqrt(8))
    second = SECOND[1] / np.sqrt(8) - FIRST[1] ** 2 / (4 * 2**1.5)
    assert_allclose(pb.grad(pb.grad(f))(A[1]), second)
    assert_allclose(pb.vmap(pb.grad(pb.grad(f)))(A)[1], second)


# ---- what else f uses


def test_custom_root_gradients_of_variables_and_captured_tensors():
    v = pb.variable(2.0, name="v", dtype="float64")
    x0 = pb.tensor(1.0, dtype="float64")
    by_variable = pb.custom_root(lambda x: cubic(x, v), lambda f, x0: optimize.brentq(f, -9, 9))
    assert_allclose(pb.variable_grads(lambda: by_variable(x0)).grads["v"], 0.25)
    with pb.GradientTape() as outer:
        with pb.GradientTape() as tape:
            y = by_variable(x0)
        slope = tape.gradient(y, v)
    assert_allclose(slope, 0.25)
    assert_allclose(outer.gradient(slope, v), SECOND[0])
    captured = lambda w: pb.custom_root(lambda x, a: x * x - a * w, _positive)(1.0, 2.0)
    assert_allclose(pb.grad(captured)(2.0), 0.5)
    with pytest.raises(CapturedError, match=r"custom_root\(<lambda>\): f uses the traced tensor 'w'.*test_implicit"):
        pb.vmap(captured)(np.array([1.0, 2.0]))


def _positive(f, x0, a):
    return optimize.brentq(f, 0, 9, (a,))


def test_custom_root_initial_guess_has_no_gradient():
    root = pb.custom_root(cubic, newton)
    assert pb.grads(root, unconnected="zero")([0.9, 2.0]) == pytest.approx([0.0, 0.25])
    with pytest.raises(UnconnectedError, match="stop_gradient"):
        pb.grad(lambda x0: root(x0, 2.0))(0.9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.custom_root(3, newton), ArgumentError, r"custom_root\(f, solve\): f must be a function, got int"),
        (lambda: pb.custom_root(cubic, None), ArgumentError, "solve must be a function, got NoneType"),
        (
            lambda: pb.grad(lambda a: pb.custom_root(lambda x, a: x * x - a, lambda f, x0, a: 0 * a)(1.0, a))(0.0),
            MatrixError,
            r"custom_root\(<lambda>\): the derivative .* of shape \(1, 1\), is singular at the solution",
        ),
        (
            lambda: pb.grad(lambda a: pb.custom_fixed_point(lambda x, a: x + 0 * a)(np.ones(2), a).sum())(1.0),
            MatrixError,
            r"custom_fixed_point\(<lambda>\): the derivative .* \(2, 2\), is singular",
        ),
        (
            lambda: pb.custom_root(cubic, lambda f, x0, a: np.ones(3))(np.ones(2), 1.0),
            ShapeError,
            r"solve must return a solution like x0, shape \(2,\), got \[\(3,\)\] \(test_implicit",
        ),
        (
            lambda: pb.grad(lambda a: pb.custom_root(lambda x, a: x[:1] - a, lambda f, x, a: x)(np.ones(2), a))(1.0),
            ShapeError,
            r"f must return as many numbers as x has, shape \(2,\), got \[\(1,\)\]",
        ),
        (
            lambda: pb.custom_root(lambda x, a: x * x + a, lambda f, x, a: optimize.root(f, x, (a,)))(1.0, 1.0),
            ConvergenceError,
            "solve reports that it did not converge: The iteration .*return the solution alone",
        ),
        (lambda: pb.custom_root(cubic, newton)(1j, 1.0), ArgumentError, "complex numbers"),
    ],
)
def test_custom_root_bad_arguments_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_custom_root_and_fixed_point_are_compiled(backend: str) -> None:
    root = pb.custom_root(lambda x, a: x * x - a, lambda f, x0, a: np.sqrt(a))
    point = pb.custom_fixed_point(lambda x, a: (x + a / x) / 2)
    for solve in (lambda a: root(1.0, a), lambda a: point(1.0, a)):
        many = pb.vmap(pb.grad(solve))
        for f, x in (
            (solve, 4.0),
            (pb.grad(solve), 4.0),
            (pb.grad(pb.grad(solve)), 4.0),
            (lambda a, solve=solve: pb.jvp(solve, [a], [1.0])[1], 4.0),
            (many, np.array([4.0, 9.0])),
        ):
            np.testing.assert_allclose(pb.compile(f, backend=backend)(x), f(x), rtol=1e-12)
