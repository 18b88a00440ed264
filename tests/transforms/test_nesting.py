"""Nested transforms: all pairs and triples, against closed forms and finite differences."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from differences import slope
from numpy.testing import assert_allclose

import pullback as pb

# ---- of one number: each transformation makes f or its derivative, so a nesting is the derivative of some order


def custom_grad(f: Any) -> Any:
    """``f`` with its own gradient, given as a custom one."""

    @pb.custom_grad
    def g(x, save):
        save([x])
        return f(x), lambda dy, saved: dy * pb.grad(f)(saved[0])

    return g


def custom_gradient(f: Any) -> Any:
    """Return a custom gradient with two results, of which one is half the other."""

    @pb.custom_gradient
    def g(tree):
        x = tree["x"]
        return (f(x) / 2, x), lambda dy, dx: {"x": dy / 2 * pb.grad(f)(x) + dx}

    return lambda x: g({"x": x})[0] * 2


SCALAR: dict[str, tuple[Any, int]] = {  # name: the transformation, and the orders that it adds
    "grad": (pb.grad, 1),
    "jvp": (lambda f: lambda x: pb.jvp(f, [x], [np.float64(1)])[1], 1),
    "vmap": (lambda f: lambda x: pb.vmap(f)(np.stack([x / 2, x, x * 2]))[1], 0),
    "columns": (lambda f: lambda x: pb.vmap(lambda t: pb.jvp(f, [x], [t])[1])(np.array([2.0, 1.0]))[1], 1),
    "recompute_grad": (pb.recompute_grad, 0),
    "custom_grad": (custom_grad, 0),
    "custom_gradient": (custom_gradient, 0),
}
POWERS = np.polynomial.Polynomial([0.0, 0.0, 1.0, 2.0, 0.5])  # x² + 2x³ + x⁴/2
M = np.array([[0.0, 1.0], [2.0, 0.5]])


def differentiate_exp(x: float, k: int, speed: complex) -> float:
    """Return the derivative of order ``k`` of the imaginary part of ``exp(speed · x)``."""
    return float((speed**k * np.exp(speed * x)).imag)


@pb.custom_grad
def own_sine(x, save):
    save([x])
    return pb.sin(x), lambda dy, saved: dy * pb.cos(saved[0])


FUNCTIONS = {  # name: f of a number, and its derivative of order k
    "polynomial": (lambda x: x**2 + 2 * x**3 + x**4 / 2, lambda x, k: POWERS.deriv(k)(x)),
    "indexing": (
        lambda x: np.sum(np.stack([x, x**2, x**3, x**4])[1:][np.array([0, 1, 1])]) + (x * np.ones(3) ** 2)[-1] ** 4 / 2,
        lambda x, k: POWERS.deriv(k)(x),
    ),
    "sin and exp": (lambda x: np.sin(x) * np.exp(x), lambda x, k: differentiate_exp(x, k, 1 + 1j)),
    "matmul": (
        lambda x: ((x * M) @ (np.sin(x) * np.ones(2)))[0],
        lambda x, k: x * differentiate_exp(x, k, 1j) + (k * differentiate_exp(x, k - 1, 1j) if k else 0.0),
    ),
    "custom gradient": (lambda x: own_sine(2 * x), lambda x, k: differentiate_exp(x, k, 2j)),
}


def expect_closed_form(names: tuple[str, ...], x: float) -> None:
    order = sum(SCALAR[name][1] for name in names)
    for title, (f, derivative) in FUNCTIONS.items():
        nested = f
        for name in reversed(names):
            nested = SCALAR[name][0](nested)
        assert_allclose(float(nested(np.float64(x))), derivative(x, order), rtol=1e-9, err_msg=title)


@pytest.mark.parametrize("names", [*product(SCALAR, repeat=2)], ids=" of ".join)
def test_transform_pairs_match_closed_form(names):
    expect_closed_form(names, 0.7)


@pytest.mark.sampled(3)  # neither 7 nor 4 names are a multiple: every pair occurs
@pytest.mark.parametrize("names", [*product(SCALAR, repeat=3)], ids=" of ".join)
def test_transform_triples_match_closed_form(names):
    expect_closed_form(names, 0.7)


# ---- of arrays: the outermost transformation against differences of what is inside


X = np.array([0.4, -0.9, 1.3])
V = np.array([1.0, -0.5, 2.0])
K = np.array([[0.5, -1.0, 0.3], [0.2, 0.8, -0.4], [1.0, 0.1, 0.6]])


def reverse(f: Any) -> Any:
    return lambda x: pb.grad(lambda x: (f(x) * V).sum())(x)


def reverse_by_differences(f: Any) -> Any:
    return lambda x: np.array([slope(lambda x: np.sum(f(x) * V), x, e) for e in np.eye(3)])


def forward_by_differences(f: Any) -> Any:
    return lambda x: slope(f, x, V)


def own_gradient(f: Any) -> Any:
    @pb.custom_grad
    def g(x, save):
        save([x])
        return f(x), lambda dy, saved: pb.grad(f)(saved[0], dy)

    return g


ARRAYS: dict[str, tuple[Any, Any]] = {  # name: the transformation, and what it should do, both from R³ to R³
    "grad": (reverse, reverse_by_differences),
    "jvp": (lambda f: lambda x: pb.jvp(f, [x], [V])[1], forward_by_differences),
    "vmap": (lambda f: lambda x: pb.vmap(f, 1, 1)(np.stack([x / 2, x], 1))[:, 1], lambda f: f),
    "jacobian": (
        lambda f: lambda x: pb.vmap(lambda t: pb.jvp(f, [x], [t])[1], 0, -1)(np.eye(3)) @ V,
        forward_by_differences,
    ),
    "rows": (
        lambda f: lambda x: pb.vmap(lambda t: pb.grad(f)(x, t))(np.eye(3)) @ V,
        forward_by_differences,
    ),
    "recompute_grad": (pb.recompute_grad, lambda f: f),
    "custom_grad": (own_gradient, lambda f: f),
}


@pb.custom_gradient
def both(x):
    return (pb.exp(x), pb.sin(x)), lambda de, ds: de * pb.exp(x) + ds * pb.cos(x)


@pb.custom_grad
def softplus(x, save):
    e = pb.exp(x)
    save([e])
    return pb.log(1 + e), lambda dy, saved: dy * (1 - 1 / (1 + saved[0]))


VECTORS = {
    "matmul": lambda x: np.tanh(K @ x) * x,
    "indexing": lambda x: x[np.array([2, 0, 1])] * np.sin(x[::-1]) + x[0] ** 3,
    "mixed": lambda x: np.exp(x * 0.5) / (1 + np.sum(x**2)),
    "custom": lambda x: softplus(x) * both(x)[0] * both(x)[1],
}


def nest(names: tuple[str, ...], f: Any) -> Any:
    for name in reversed(names):
        f = ARRAYS[name][0](f)
    return f


def expect_differences(names: tuple[str, ...]) -> None:
    for title, f in VECTORS.items():
        want = ARRAYS[names[0]][1](nest(names[1:], f))(X)
        assert_allclose(nest(names, f)(X), want, rtol=2e-6, atol=1e-8, err_msg=title)


@pytest.mark.parametrize("names", [*product(ARRAYS, repeat=1)], ids=" of ".join)
def test_transforms_match_finite_differences(names):
    expect_differences(names)


@pytest.mark.parametrize("names", [*product(ARRAYS, repeat=2)], ids=" of ".join)
def test_transform_pairs_match_finite_differences(names):
    expect_differences(names)


THREE = ["grad", "jvp", "vmap", "jacobian"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "names", [*product(THREE, repeat=3), *product(["vmap"], THREE, ["custom_grad"])], ids=" of ".join
)
def test_transform_triples_match_finite_differences(names):
    expect_differences(names)


# ---- the transformations themselves, where they are given by name


@pytest.mark.parametrize("f", VECTORS.values(), ids=VECTORS)
def test_jacobian_hessian_hvp_vjp_nested(f):
    jacobian = np.stack([slope(f, X, e) for e in np.eye(3)], -1)
    scalar = lambda x: (f(x) * V).sum()
    hessian = np.stack([slope(pb.grad(scalar), X, e) for e in np.eye(3)], -1)
    many = np.stack([X, X * 0.5])
    for mode in ("forward", "reverse", "auto"):
        assert_allclose(pb.jacobian(f, mode=mode)(X), jacobian, rtol=1e-6, atol=1e-8)
        assert_allclose(pb.vmap(pb.jacobian(f, mode=mode))(many)[0], jacobian, rtol=1e-6, atol=1e-8)
        assert_allclose(pb.jacobian(pb.recompute_grad(f), mode=mode)(X), jacobian, rtol=1e-6, atol=1e-8)
        assert_allclose(pb.jacobian(pb.grad(scalar), mode=mode)(X), hessian, rtol=1e-6, atol=1e-8)
    for g in (scalar, own_gradient(scalar), pb.recompute_grad(scalar)):
        assert_allclose(pb.hessian(g)(X), hessian, rtol=1e-6, atol=1e-8)
        assert_allclose(pb.vmap(pb.hessian(g))(many)[0], hessian, rtol=1e-6, atol=1e-8)
        assert_allclose(pb.hvp(g, X, V), hessian @ V, rtol=1e-6, atol=1e-8)
    third = slope(lambda x: pb.hessian(scalar)(x), X, V)
    assert_allclose(pb.jvp(pb.hessian(scalar), [X], [V])[1], third, rtol=1e-6, atol=1e-8)
    assert_allclose(pb.grad(lambda x: pb.hvp(scalar, x, V).sum())(X), third.sum(0), rtol=1e-6, atol=1e-8)
    _, pull = pb.vjp(f, X)
    assert_allclose(pull(V)[0], V @ jacobian, rtol=1e-6, atol=1e-8)
    assert_allclose(pb.vmap(lambda v: pull(v)[0])(np.eye(3)), jacobian, rtol=1e-6, atol=1e-8)


# ---- variables and tapes


@pytest.fixture
def v():
    return pb.variable(2.0, name="v", dtype="float64")


def make_readers(v):
    @pb.custom_gradient
    def scale(x):
        return x * v, lambda dy, variables=None: (dy * variables[0], [(dy * x).sum()])

    return {
        "plain": lambda x: pb.sin(x * v),
        "recompute_grad": pb.recompute_grad(lambda x: pb.sin(x * v)),
        "custom_gradient": lambda x: pb.sin(scale(x)),
    }


@pytest.mark.parametrize("kind", ["plain", "recompute_grad", "custom_gradient"])
def test_variable_grads_inside_and_outside_vmap(v, kind):
    f = make_readers(v)[kind]
    x = pb.tensor(X)
    want = X * np.cos(2 * X)
    assert_allclose(pb.vmap(lambda x: pb.variable_grads(lambda: f(x)).grads["v"])(x), want)
    assert_allclose(pb.variable_grads(lambda: pb.vmap(f)(x).sum()).grads["v"], want.sum())

    def by_tape(x):
        with pb.GradientTape() as tape:
            y = f(x)
        return tape.gradient(y, v)

    assert_allclose(pb.vmap(by_tape)(x), want)
    with pb.GradientTape() as tape:
        y = pb.vmap(f)(x).sum()
    assert_allclose(tape.gradient(y, v), want.sum())
    second = lambda x: pb.variable_grads(lambda: pb.variable_grads(lambda: f(x)).grads["v"]).grads["v"]
    assert_allclose(pb.vmap(second)(x), -(X**2) * np.sin(2 * X))
    mixed = np.cos(2 * X) - 2 * X * np.sin(2 * X)
    assert_allclose(pb.variable_grads(lambda: pb.jvp(f, [x], [pb.ones_like(x)])[1].sum()).grads["v"], mixed.sum())
    assert_allclose(pb.jvp(lambda x: pb.variable_grads(lambda: f(x).sum()).grads["v"], [X], [V])[1], mixed @ V)
    assert_allclose(pb.vmap(pb.grad(lambda x: pb.variable_grads(lambda: f(x)).grads["v"]))(X), mixed)


def by_two_tapes(x):
    """Return the second derivative of x³·sin(x)."""
    with pb.GradientTape() as outer:
        outer.watch(x)
        with pb.GradientTape() as inner:
            inner.watch(x)
            y = x**3 * pb.sin(x)
        slope = inner.gradient(y, x)
    return outer.gradient(slope, x)


def test_tapes_inside_vmap_jvp_and_grad():
    plain = lambda x: pb.grad(pb.grad(lambda x: x**3 * pb.sin(x)))(x)
    want = np.array([plain(x) for x in X])
    assert_allclose(pb.vmap(by_two_tapes)(X), want)
    third = np.array([pb.grad(plain)(x) for x in X])
    assert_allclose(pb.jvp(by_two_tapes, [X], [V])[1], third * V)
    assert_allclose(pb.vmap(pb.grad(by_two_tapes))(X), third)
    assert_allclose(pb.grad(lambda x: pb.vmap(by_two_tapes)(x).sum())(X), third)
    assert_allclose(pb.vmap(lambda x, t: pb.jvp(by_two_tapes, [x], [t])[1])(X, V), third * V)


def test_tape_inside_vmap_ends_recording(v):
    def f(x):
        with pb.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * v
        assert tape.gradient(x * 3, v) is None  # computed after the block
        assert tape.gradient(x * 3, v, unconnected_gradients="zero").item() == 0
        return tape.gradient(y, v) + x * 3

    assert_allclose(pb.vmap(f)(X), X * 4)
    assert_allclose(pb.vmap(pb.grad(f))(X), 4 + 0 * X)


def test_assigning_batched_value_to_variable_raises(v):
    for assign in (v.assign, v.assign_add, v.assign_sub):
        with pytest.raises(pb.errors.BatchedValueError, match=r"v\.assign.*: the value is different for each example"):
            pb.vmap(lambda x, assign=assign: assign(x))(X)
    assert v.numpy() == 2


@pb.register_gradient("twice the cosine")
def twice_the_cosine(op, dy):
    return dy * pb.cos(op.inputs[0]) * 2


def test_override_gradient_in_nested_transforms():
    sine = lambda x: pb.sin(x)
    with pb.override_gradient({"sin": "twice the cosine"}):
        assert_allclose(pb.vmap(pb.grad(sine))(X), 2 * np.cos(X))
        assert_allclose(pb.grad(lambda x: pb.vmap(sine)(x).sum())(X), 2 * np.cos(X))
        assert_allclose(pb.vmap(pb.grad(pb.grad(sine)))(X), -2 * np.sin(X))
        assert_allclose(pb.jvp(pb.vmap(sine), [X], [V])[1], 2 * np.cos(X) * V)
        assert_allclose(pb.vmap(lambda x, t: pb.jvp(sine, [x], [t])[1])(X, V), 2 * np.cos(X) * V)
        assert_allclose(pb.grad(lambda x: pb.recompute_grad(sine)(x).sum())(X), 2 * np.cos(X))


@pytest.mark.parametrize("unconnected", ["zero", "none"])
def test_result_of_outer_tensors_only_is_unconnected(unconnected):
    nothing = 0.0 if unconnected == "zero" else None

    def f(v):
        value, d = pb.value_and_grad(lambda x: v * 3.0, unconnected=unconnected)(1.0)
        return value * v, d

    def value(v):
        return f(v)[0]

    assert f(np.float64(2.0)) == (12.0, nothing)
    assert pb.grad(value)(2.0) == 12.0
    assert pb.grad(pb.grad(value))(2.0) == 6.0
    assert pb.jvp(value, [2.0], [1.0]) == (12.0, 12.0)
    assert_allclose(pb.vmap(value)(np.array([1.0, 2.0])), [3.0, 12.0])
    assert pb.compile(value)(2.0) == 12.0
    assert pb.compile(pb.grad(value))(2.0) == 12.0
    zeros = pb.vmap(lambda v: f(v)[1])(np.ones(3))
    assert zeros is None if nothing is None else zeros.tolist() == [0.0, 0.0, 0.0]


def test_unconnected_gradient_is_zero_under_every_transform():
    def g(v):
        return pb.grad(lambda x: v * 1.0, unconnected="zero")(1.0)

    assert pb.vmap(g)(np.ones(3)).tolist() == [0.0, 0.0, 0.0]
    assert pb.jvp(g, [1.0], [1.0]) == (0.0, 0.0)
    assert pb.compile(g)(1.0) == 0.0
    assert pb.grad(lambda v: g(v) * v)(1.0) == 0.0
    assert pb.vmap(lambda v: pb.hvp(lambda x: v * 1.0, 1.0, 1.0))(np.ones(2)).tolist() == [0.0, 0.0]
