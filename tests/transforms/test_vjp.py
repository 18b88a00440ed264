"""``vjp`` and ``linearize``: types, trees, nesting, errors, has_aux."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from differences import slope

import pullback as pb
from pullback.errors import ArgumentError, DataError, GradientError, ShapeError


def wavy(x: Any) -> Any:
    return np.sin(x) * x[::-1] + x[0] * x


@pb.custom_grad
def triple(x: Any, save: Any) -> Any:
    """Return a square whose custom gradient is three times ``x``."""
    save([x])
    return x * x, lambda dy, saved: dy * 3 * saved[0]


class Pair(NamedTuple):
    a: Any
    b: Any


X = np.array([0.3, -1.2, 2.0])


@pytest.mark.parametrize("x", [2.0, np.float32(2), np.array([1.0, 2.0]), np.array([1.0, 2.0], "f4"), [1.0, 2.0]])
def test_vjp_and_linearize_return_type_of_input(x: Any) -> None:
    y, pull = pb.vjp(lambda x: x * x * x, x)
    (d,) = pull(y)
    _, push = pb.linearize(lambda x: x * x * x, x)
    t = push(x)
    assert type(y) is type(d) is type(t) is type(x)
    assert np.asarray(d).dtype == np.asarray(t).dtype == np.asarray(x).dtype
    np.testing.assert_allclose(d, 3 * np.asarray(x) ** 5)
    np.testing.assert_allclose(t, 3 * np.asarray(x) ** 3)


def test_vjp_of_tensors_returns_tensors() -> None:
    y, pull = pb.vjp(lambda x: x * x, pb.tensor([1.0, 2.0]))
    (d,) = pull(pb.tensor([1.0, 10.0]))
    assert isinstance(y, pb.Tensor)
    assert d.tolist() == [2.0, 40.0]


def test_vjp_and_linearize_trees() -> None:
    def f(p: Any, x: Any) -> Any:
        return {"product": p["w"] * x, "more": (np.sum(x), [p["b"].a, p["b"].b * x[0]])}

    p, x = {"w": np.array([1.0, 2.0]), "b": Pair(3.0, np.float64(4))}, np.array([5.0, 6.0])
    y, pull = pb.vjp(f, p, x)
    _, push = pb.linearize(f, p, x)
    np.testing.assert_allclose(y["product"], [5, 12])
    dy = {"more": (1.0, [2.0, 3.0]), "product": np.array([1.0, 10.0])}  # the order of keys does not matter
    dp, dx = pull(dy)
    np.testing.assert_allclose(dp["w"], [5, 60])
    assert dp["b"] == (2.0, 15.0)
    assert isinstance(dp["b"], Pair)
    np.testing.assert_allclose(dx, [1 + 1 + 12, 20 + 1])
    moved = push({"w": np.array([1.0, 0.0]), "b": Pair(1.0, 0.0)}, np.array([0.0, 1.0]))
    np.testing.assert_allclose(moved["product"], [5, 2])
    assert moved["more"] == (1.0, [1.0, 0.0])


def test_vjp_and_linearize_run_f_once() -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(1)
        return wavy(x)

    _, pull = pb.vjp(f, X)
    _, push = pb.linearize(f, X)
    for _ in range(3):
        pull(X)
        push(X)
    assert len(runs) == 2


@pytest.mark.parametrize("f", [wavy, np.cumsum, np.sort, lambda x: x[[0, 0, 2]], lambda x: np.sum(x * x), triple])
def test_vjp_and_linearize_agree(f: Any) -> None:
    y, pull = pb.vjp(f, X)
    _, push = pb.linearize(f, X)
    rng = np.random.default_rng(0)
    v, w = rng.normal(size=3), rng.normal(size=np.shape(y))
    np.testing.assert_allclose(np.sum(pull(w)[0] * v), np.sum(w * push(v)))
    if f is not triple:
        np.testing.assert_allclose(push(v), slope(f, X, v), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(push(v), pb.jvp(f, [X], [v])[1])


def test_vmap_and_grad_of_pull_and_push() -> None:
    _, pull = pb.vjp(wavy, X)
    _, push = pb.linearize(wavy, X)
    J = pb.jacobian(wavy)(X)
    np.testing.assert_allclose(pb.vmap(lambda g: pull(g)[0])(np.eye(3)), J)
    np.testing.assert_allclose(pb.vmap(push, out_axes=1)(np.eye(3)), J)
    np.testing.assert_allclose(pb.grad(lambda g: np.sum(pull(g)[0] ** 2))(X), 2 * J @ (X @ J))
    np.testing.assert_allclose(pb.grad(lambda t: np.sum(push(t) ** 2))(X), 2 * J.T @ (J @ X))
    np.testing.assert_allclose(pb.vmap(lambda g: pb.vjp(triple, X)[1](g)[0])(np.eye(3)), np.diag(3 * X))


def test_vjp_and_linearize_inside_grad() -> None:
    def total(x: Any) -> Any:
        _, pull = pb.vjp(lambda x: x**3, x)
        _, push = pb.linearize(lambda x: x**3, x)
        return np.sum(pull(x)[0] + push(x))  # 2 * 3 * x**3

    np.testing.assert_allclose(pb.grad(total)(X), 18 * X**2)


def test_vjp_and_linearize_of_unconnected_input_are_zero() -> None:
    _, pull = pb.vjp(lambda x, z: x * 2.0, np.ones(2), np.ones(3, "f4"))
    dx, dz = pull(np.ones(2))
    assert dz.tolist() == [0, 0, 0]
    assert dz.dtype == np.float32
    assert dx.tolist() == [2, 2]
    _, push = pb.linearize(lambda x: np.ones(2), 1.0)
    assert push(1.0) == [0.0, 0.0]


def test_vjp_results_do_not_alias_inputs() -> None:
    x, dy = np.ones(3), np.arange(3.0)
    y, pull = pb.vjp(lambda x: x, x)
    (d,) = pull(dy)
    y[0] = d[0] = 7
    assert x.tolist() == [1, 1, 1]
    assert dy.tolist() == [0, 1, 2]
    a, b = pb.vjp(lambda x, y: x + y, x, x)[1](dy)
    a[0] = 7
    assert b.tolist() == [0, 1, 2]


def test_vjp_of_variables_inside_variable_grads() -> None:
    v = pb.variable(3.0)
    _, pull = pb.vjp(lambda x: x * v, 2.0)
    assert pull(1.0) == (3.0,)
    found = pb.variable_grads(lambda: pb.vjp(lambda x: x * x * v, pb.tensor(2.0))[1](pb.tensor(1.0))[0])
    assert found.grads[v.name].item() == 4.0


def test_vjp_and_linearize_big_arrays_repeat_values() -> None:
    x = np.random.default_rng(0).normal(size=100_000)
    _, pull = pb.vjp(lambda x: np.exp(np.sin(x)) * x[::-1], x)
    first, second = pull(np.ones_like(x))[0], pull(np.ones_like(x))[0]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, np.exp(np.sin(x)) * np.cos(x) * x[::-1] + np.exp(np.sin(x))[::-1])
    _, push = pb.linearize(lambda x: np.exp(np.sin(x)) * x[::-1], x)
    first, second = push(np.ones_like(x)), push(np.ones_like(x))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, np.exp(np.sin(x)) * (np.cos(x) * x[::-1] + 1))


def test_vjp_pull_in_threads() -> None:
    _, pull = pb.vjp(lambda x: np.sin(x) * x, X)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: pull(np.full(3, float(k)))[0], range(200)))
    for k, d in enumerate(found):
        np.testing.assert_allclose(d, k * (np.cos(X) * X + np.sin(X)))


def test_vjp_after_exception_in_f() -> None:
    held: list[Any] = []

    def f(x: Any) -> Any:
        held.append(x * 2)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        pb.vjp(f, 1.0)
    assert held[0].item() == 2.0  # a constant now


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: pb.vjp(3, 1.0), ArgumentError, "vjp: f must be a function, got int"),
        (lambda: pb.linearize(3, 1.0), ArgumentError, "linearize: f must be a function, got int"),
        (lambda: pb.vjp(wavy), GradientError, "no input to differentiate by"),
        (lambda: pb.vjp(lambda x: None, 1.0), GradientError, "something to differentiate, got None"),
        (lambda: pb.vjp(lambda x: "text", 1.0), GradientError, "must return numbers.*got str"),
        (lambda: pb.vjp(wavy, "text"), DataError, "text"),
        (lambda: pb.vjp(wavy, np.array(["a"])), GradientError, "dtype <U1 has no derivative"),
        (lambda: pb.vjp(wavy, X)[1](np.ones(2)), ShapeError, r"y has shape \(3,\), but its cotangent has shape \(2,\)"),
        (lambda: pb.vjp(wavy, X)[1](X * 1j), GradientError, "cotangent of y must be real"),
        (lambda: pb.vjp(lambda x: (x, x), 1.0)[1](1.0), ArgumentError, "y is a tuple of 2, but its cotangent is float"),
        (lambda: pb.vjp(lambda x: {"a": x}, 1.0)[1]({"b": 1.0}), ArgumentError, "keys 'a', but.*keys 'b'"),
        (lambda: pb.vjp(wavy, X)[1]((X,)), ArgumentError, "y is one tensor, but its cotangent is tuple"),
        (lambda: pb.linearize(wavy, X)[1](), ArgumentError, "1 inputs but 0 tangents"),
        (lambda: pb.linearize(wavy, X)[1](np.ones(4)), ShapeError, r"input 1 has shape \(3,\).*\(4,\)"),
        (
            lambda: pb.linearize(lambda p: p["w"], {"w": X})[1]({"w": np.ones(2)}),
            ShapeError,
            r"input 1\['w'\] has shape",
        ),
    ],
)
def test_vjp_and_linearize_bad_arguments_raise(call: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: pb.vjp(np.multiply, 1.0, object()), r"vjp: argument .* \(input 2 of 2\): expected .*, got object"),
        (
            lambda: pb.vjp(lambda x, p: x, 1.0, {"a": object()}),
            r"vjp: argument p\['a'\] \(input 2 of 2\): .*, got object",
        ),
        (lambda: pb.jvp(lambda x, y: x, [1.0, "abc"], [1.0, 1.0]), r"jvp: argument y .*: expected numbers, got text"),
        (lambda: pb.jacobian(lambda x, y: x, argnums=1)(1.0, object()), r"jacobian: argument y: .*, got object"),
        (lambda: pb.hvp(lambda p: p["a"], {"a": object()}, {"a": 1.0}), r"hvp: argument .*\['a'\]: .*, got object"),
    ],
)
def test_non_numeric_input_error_names_argument(call: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        call()


# ---- has_aux


def test_has_aux_of_vjp_linearize_jvp_jacobian_hessian() -> None:
    f = lambda x: (x**3, {"square": x * x, "note": "kept"})
    x = np.array([1.0, 2.0])
    y, pull, aux = pb.vjp(f, x, has_aux=True)
    np.testing.assert_allclose(pull(np.ones(2))[0], 3 * x**2)
    np.testing.assert_allclose(y, x**3)
    y, push, aux_of_push = pb.linearize(f, x, has_aux=True)
    np.testing.assert_allclose(push(np.ones(2)), 3 * x**2)
    y, moved, aux_of_jvp = pb.jvp(f, [x], [np.ones(2)], has_aux=True)
    np.testing.assert_allclose(moved, 3 * x**2)
    J, aux_of_jacobian = pb.jacobian(f, has_aux=True)(x)
    np.testing.assert_allclose(J, np.diag(3 * x**2))
    J, aux_of_forward = pb.jacobian(f, "forward", has_aux=True)(x)
    np.testing.assert_allclose(J, np.diag(3 * x**2))
    H, aux_of_hessian = pb.hessian(lambda x: (np.sum(x**3), f(x)[1]), has_aux=True)(x)
    np.testing.assert_allclose(H, np.diag(6 * x))
    for got in (aux, aux_of_push, aux_of_jvp, aux_of_jacobian, aux_of_forward, aux_of_hessian):
        assert got["note"] == "kept"
        assert type(got["square"]) is np.ndarray
        np.testing.assert_allclose(got["square"], x * x)


def test_has_aux_of_inner_transforms_is_differentiated() -> None:
    def f(x: Any) -> Any:
        _, pull, aux = pb.vjp(lambda t: (t * t, t * x), x, has_aux=True)
        J, more = pb.jacobian(lambda t: (t * t, t * x), has_aux=True)(x)
        _, moved, last = pb.jvp(lambda t: (t * t, t * x), [x], [1.0], has_aux=True)
        return pull(1.0)[0] * aux + J * more + moved * last  # three times 2x x**2

    assert pb.grad(f)(2.0) == 72.0
    assert pb.compile(f)(2.0) == 48.0
    assert pb.vmap(pb.grad(f))(np.array([2.0])).tolist() == [72.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda f: pb.vjp(f, 1.0, has_aux=True),
        lambda f: pb.linearize(f, 1.0, has_aux=True),
        lambda f: pb.jvp(f, [1.0], [1.0], has_aux=True),
        lambda f: pb.jacobian(f, has_aux=True)(1.0),
        lambda f: pb.hessian(f, has_aux=True)(1.0),
    ],
)
def test_vjp_has_aux_without_pair_raises(call: Any) -> None:
    with pytest.raises(GradientError, match=r"has_aux=True\): f must return \(y, aux\), got"):
        call(lambda x: x * x)


def test_vjp_function_ignores_later_changes_of_inputs() -> None:
    x, tree = np.array([1.0, 2.0]), {"a": np.array([1.0, 2.0])}
    _, pull = pb.vjp(lambda x, t: x**2 + t["a"] ** 3, x, tree)
    x[:] = 100.0
    tree["a"][:] = 100.0
    slopes, slopes_of_tree = pull(np.ones(2))
    np.testing.assert_array_equal(slopes, [2.0, 4.0])
    np.testing.assert_array_equal(slopes_of_tree["a"], [3.0, 12.0])


def test_vjp_pull_takes_one_cotangent_for_several_results() -> None:
    _, pull = pb.vjp(lambda x: (x, x * x), 3.0)
    with pytest.raises(ArgumentError, match=r"one cotangent.*given 2 arguments.*pull\(\(dy0, dy1\)\)"):
        pull(1.0, 2.0)
    assert pull((1.0, 2.0)) == (13.0,)
