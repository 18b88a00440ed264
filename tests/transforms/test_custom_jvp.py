"""custom_jvp, and forward mode of custom_grad: gradient functions that are linear in dy, or have a jvp rule."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pullback as pb
from pullback.errors import ArgumentError, CapturedError, CustomGradientError

X, Y = np.array([0.3, 0.5]), np.array([2.0, 3.0])


@pb.custom_jvp
def sine_times(x, y):
    """sin(x) · y."""
    return np.sin(x) * y


@sine_times.defjvp
def sine_times_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return sine_times(x, y), np.cos(x) * y * dx + np.sin(x) * dy


def of_x(x):
    return sine_times(x, Y)


def total(x):
    return np.sum(of_x(x))


# ---- custom_jvp


def test_custom_jvp_in_forward_and_reverse_mode():
    value, tangent = pb.jvp(sine_times, [X, Y], [np.ones(2), np.full(2, 10.0)])
    assert_allclose(value, np.sin(X) * Y)
    assert_allclose(tangent, np.cos(X) * Y + 10 * np.sin(X))
    dx, dy = pb.grads(sine_times)([X, Y])
    assert_allclose(dx, np.cos(X) * Y)
    assert_allclose(dy, np.sin(X))
    pb.check_grads(sine_times, [X, Y])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_custom_jvp_jacobian(mode):
    assert_allclose(pb.jacobian(of_x, mode)(X), np.diag(np.cos(X) * Y))


@pytest.mark.parametrize(
    "second",
    [
        lambda: pb.grad(lambda x: np.sum(pb.grad(total)(x)))(X),
        lambda: pb.hessian(total)(X).sum(0),
        lambda: pb.hvp(total, X, np.ones(2)),
        lambda: pb.jvp(pb.grad(total), [X], [np.ones(2)])[1],
        lambda: pb.grad(lambda x: np.sum(pb.jvp(of_x, [x], [np.ones(2)])[1]))(X),
        lambda: pb.jvp(lambda x: pb.jvp(of_x, [x], [np.ones(2)])[1], [X], [np.ones(2)])[1],
        lambda: pb.compile(lambda x: pb.hvp(total, x, np.ones(2)))(X),
        lambda: pb.vmap(lambda x, y: pb.grad(pb.grad(lambda x: sine_times(x, y)))(x))(X, Y),
    ],
)
def test_custom_jvp_second_derivative(second):
    assert_allclose(second(), -np.sin(X) * Y)


def test_custom_jvp_under_vmap_compile_linearize_and_tape():
    expected = np.cos(X) * Y
    assert_allclose(pb.vmap(lambda x, y: pb.grad(lambda x: sine_times(x, y))(x))(X, Y), expected)
    assert_allclose(pb.grad(lambda x: np.sum(pb.vmap(sine_times)(x, Y)))(X), expected)
    assert_allclose(pb.jvp(lambda x: pb.vmap(sine_times)(x, Y), [X], [np.ones(2)])[1], expected)
    assert_allclose(pb.compile(pb.grad(total))(X), expected)
    assert_allclose(pb.compile(lambda x: pb.jvp(of_x, [x], [np.ones(2)])[1])(X), expected)
    assert_allclose(pb.linearize(of_x, X)[1](np.ones(2)), expected)
    x = pb.tensor(X)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = of_x(x)
    assert_allclose(tape.gradient(y, x).numpy(), expected)


def test_custom_jvp_trees_keywords_and_non_tensors():
    @pb.custom_jvp
    def f(p, name, k=1.0):
        assert name == "text"
        return {"a": p["w"] * k, "b": (p["b"] * 2,)}

    @f.defjvp
    def rule(primals, tangents, k=1.0):
        (p, name), (dp, nothing) = primals, tangents
        assert (name, nothing) == ("text", None)
        return f(p, name, k=k), {"a": dp["w"] * k * 10, "b": (None,)}

    g = lambda p: f(p, "text", k=3.0)["a"] + f(p, "text")["b"][0]
    assert pb.grad(g, unconnected="zero")({"w": 2.0, "b": 5.0}) == {"w": 30.0, "b": 0.0}
    assert pb.jvp(g, [{"w": 2.0, "b": 5.0}], [{"w": 1.0, "b": 1.0}]) == (16.0, 30.0)


def test_custom_jvp_defjvps_and_jvp_argument():
    product = pb.custom_jvp(lambda x, y: x * y)
    product.defjvps(lambda dx, value, x, y: dx * y, None)
    assert pb.grads(product, unconnected="zero")([2.0, 5.0]) == [5.0, 0.0]
    square = pb.custom_jvp(lambda x: x * x, jvp=lambda primals, tangents: (primals[0] ** 2, 7 * tangents[0]))
    assert pb.grad(square)(2.0) == 7.0
    decorated = pb.custom_jvp(jvp=lambda p, t: (p[0], t[0] * 5))(lambda x: x)
    assert pb.grad(decorated)(2.0) == 5.0
    product.defjvps(None)
    with pytest.raises(ArgumentError, match=r"1 rules were given to defjvps, but there are 2 arguments"):
        pb.grad(lambda x: product(x, 2.0))(1.0)


def test_custom_jvp_keeps_name_and_docstring_and_pickles():
    assert (sine_times.__name__, sine_times.__doc__) == ("sine_times", "sin(x) · y.")
    assert pickle.loads(pickle.dumps(sine_times)) is sine_times
    again = pickle.loads(pickle.dumps(pb.custom_jvp(np.sin, jvp=sine_times_jvp)))
    assert again.rule is sine_times_jvp


def test_custom_jvp_without_rule_raises_when_differentiated():
    f = pb.custom_jvp(lambda x: x * 2)
    assert f(3.0) == 6.0
    for derivative in (lambda: pb.grad(f)(3.0), lambda: pb.jvp(f, [3.0], [1.0])):
        with pytest.raises(CustomGradientError, match=r"there is no rule for its tangent\. Write @<lambda>\.defjvp"):
            derivative()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda p, t: t[0], r"the rule of the tangent must return \(value, tangent\), got Tensor"),
        (lambda p, t: (p[0], (t[0], t[0])), r"must return 1 tangent, one for each result; got 2"),
        (lambda p, t: (p[0], np.sum(t[0])), r"the tangent of the value must have its shape \(2,\), got shape \(\)"),
        (lambda p, t: (p[0], t[0] > 0), r"the tangent of the value must be a float like float64, got bool"),
    ],
)
def test_custom_jvp_wrong_rule_result_raises(rule, message):
    f = pb.custom_jvp(lambda x: x * 2, jvp=rule)
    with pytest.raises(CustomGradientError, match=message + r".*\(test_custom_jvp\.py:\d+\)"):
        pb.jvp(f, [X], [X])


def test_custom_jvp_of_non_function_raises():
    for wrong in (lambda: pb.custom_jvp(5), lambda: pb.custom_jvp(np.sin, jvp=5), lambda: sine_times.defjvp(5)):
        with pytest.raises(ArgumentError, match="must be a function, got int"):
            wrong()
    with pytest.raises(ArgumentError, match="each rule must be a function or None, got int"):
        pb.custom_jvp(np.sin).defjvps(5)


def test_custom_jvp_captured_tensor_or_variable_raises():
    body = lambda w: pb.custom_jvp(lambda x: x * w, jvp=lambda p, t: (p[0], t[0]))(2.0)
    rule = lambda w: pb.custom_jvp(lambda x: x * 2, jvp=lambda p, t: (p[0], t[0] * w))(w)
    for f in (body, rule):
        for derivative in (lambda f=f: pb.grad(f)(3.0), lambda f=f: pb.jvp(f, [3.0], [1.0])):
            with pytest.raises(CapturedError, match="the traced tensor 'w'"):
                derivative()
    v = pb.variable(2.0, name="custom_jvp_speed")
    with pytest.raises(CapturedError, match=r"the variable 'custom_jvp_speed'.*Pass it as an input"):
        pb.variable_grads(lambda: pb.custom_jvp(lambda x: x * v, jvp=lambda p, t: (p[0], t[0]))(pb.tensor(1.0)))


def test_custom_jvp_nonlinear_rule_raises_in_reverse_mode():
    f = pb.custom_jvp(lambda x: x * 2, jvp=lambda p, t: (p[0], np.abs(t[0])))
    assert pb.jvp(f, [2.0], [-3.0])[1] == 3.0
    for derivative in (pb.grad(f), pb.compile(pb.grad(f)), pb.vmap(pb.grad(f))):
        with pytest.raises(CustomGradientError, match=r"not linear in the tangents.*Use custom_grad"):
            derivative(np.ones(2))


# ---- gradient functions that are not linear in dy


def make_clip(limit=1.0, **options):
    return pb.custom_grad(
        lambda x, save: (pb.clone(x), lambda dy, saved: pb.clip_by_value(dy, -limit, limit)), **options
    )


FORWARD = {
    "jvp": lambda f: pb.jvp(f, [X], [np.ones(2)])[1],
    "linearize": lambda f: pb.linearize(f, X)[1](np.ones(2)),
    "jacobian": lambda f: pb.jacobian(f, "forward")(X).sum(1),
    "jvp of vmap": lambda f: pb.jvp(pb.vmap(f), [X], [np.ones(2)])[1],
    "vmap of jvp": lambda f: pb.vmap(lambda x: pb.jvp(f, [x], [1.0])[1])(X),
    "linearize of vmap": lambda f: pb.linearize(pb.vmap(f), X)[1](np.ones(2)),
    "compile": lambda f: pb.compile(lambda x: pb.jvp(f, [x], [np.ones(2)])[1])(X),
    "recompute_grad": lambda f: pb.jvp(pb.recompute_grad(f), [X], [np.ones(2)])[1],
    "linearize of recompute_grad": lambda f: pb.linearize(pb.recompute_grad(f), X)[1](np.ones(2)),
}


@pytest.mark.parametrize("forward", FORWARD.values(), ids=FORWARD)
@pytest.mark.parametrize(
    "rule",
    [
        lambda dy: pb.clip_by_value(dy, -1.0, 1.0),
        lambda dy: pb.clip_by_value(dy, -1e3, 1e3),
        pb.relu,
        pb.abs,
        pb.sign,
        lambda dy: dy + 1.0,
        lambda dy: dy * dy,
        pb.exp,
        lambda dy: dy / pb.maximum(pb.norm(dy), 1.0),
    ],
)
def test_nonlinear_gradient_function_raises_in_forward_mode(forward, rule):
    f = pb.custom_grad(lambda x, save: (x * 1.0, lambda dy, saved: rule(dy)))
    with pytest.raises(
        CustomGradientError,
        match=r"custom_grad\(<lambda>\): the gradient function is not linear in dy: .*State the tangent: custom_grad\(",
    ):
        forward(f)


@pytest.mark.parametrize("forward", FORWARD.values(), ids=FORWARD)
def test_custom_grad_jvp_rule_is_used_in_forward_mode(forward):
    rule = lambda primals, tangents: (primals[0], tangents[0] * 3)
    stated = make_clip(jvp=rule)
    assert_array_equal(forward(stated), [3.0, 3.0])
    afterwards = make_clip()
    assert afterwards.defjvp(rule) is rule
    assert_array_equal(forward(afterwards), [3.0, 3.0])
    nested = pb.custom_gradient(lambda x: (x * 1.0, pb.abs), jvp=rule)
    assert_array_equal(forward(nested), [3.0, 3.0])
    assert pb.grad(lambda x: stated(x) * 5.0)(2.0) == 1.0  # reverse mode is as it was


@pytest.mark.parametrize("forward", FORWARD.values(), ids=FORWARD)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linear_gradient_function_is_transposed_in_forward_mode(forward, dtype):
    scale = np.asarray(1e6, dtype)
    f = pb.custom_grad(lambda x, save: (x * 2.0, lambda dy, saved: dy * 2.0 * scale / scale))
    assert_allclose(forward(f), [2.0, 2.0], rtol=1e-6)


def test_custom_grad_jvp_rule_under_straight_through_and_recompute_grad():
    f = pb.custom_grad(
        lambda x: (x * 2, lambda dy: dy * 2), jvp=lambda primals, tangents: (primals[0], tangents[0] * 9)
    )
    assert pb.jvp(pb.straight_through(f), [1.0], [1.0]) == (2.0, 1.0)
    assert pb.jvp(pb.recompute_grad(f), [1.0], [1.0]) == (2.0, 9.0)


def test_custom_jvp_integer_inputs_have_float_tangents():
    seen = []
    f = pb.custom_jvp(lambda x, n: x * n, jvp=lambda p, t: (p[0] * p[1], seen.append(t[1].dtype) or t[0] * p[1]))
    assert pb.jvp(lambda x: f(x, np.array(3)), [2.0], [1.0]) == (6.0, 3.0)
    assert pb.grad(lambda x: f(x, np.array(3)))(2.0) == 3.0
    assert {d.kind for d in seen} == {"f"}


def test_clip_gradient_tangents_in_jvp_and_linearize():
    f = lambda x: pb.clip_gradient(x, -0.1, 0.1) * 5.0
    assert_array_equal(pb.jvp(f, [X], [np.ones(2)])[1], [5.0, 5.0])
    assert_array_equal(pb.linearize(f, X)[1](np.ones(2)), [5.0, 5.0])


def test_nonlinear_overridden_gradient_raises_in_forward_mode():
    with pb.override_gradient({"relu": "guided_for_forward_mode"}):
        assert_array_equal(pb.grad(lambda x: np.sum(pb.relu(x) * [1.0, -1.0]))(X), [1.0, 0.0])
        with pytest.raises(CustomGradientError, match=r"not linear in dy.*Use reverse mode"):
            pb.jvp(pb.relu, [pb.tensor(X)], [pb.tensor(X)])


@pb.register_gradient("guided_for_forward_mode")
def guide(op, dy):
    return pb.relu(dy) * (op.inputs[0] > 0)


def test_custom_jvp_rule_that_calls_its_own_linear_function() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    f = pb.custom_jvp(lambda x: a @ x)
    f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    x = np.array([0.5, -1.0])
    loss = lambda x: np.sum(f(x) ** 2)
    want = 2 * a.T @ a @ x
    np.testing.assert_allclose(pb.grad(loss)(x), want)
    np.testing.assert_allclose(pb.compile(pb.grad(loss))(x), want)
    np.testing.assert_allclose(pb.vmap(pb.grad(loss))(x[None])[0], want)
    np.testing.assert_allclose(pb.hessian(loss)(x), 2 * a.T @ a)
