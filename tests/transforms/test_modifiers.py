"""grad_pass_through, straight_through, scale_gradient, reverse_gradient, clip_gradient, tap_gradient, stop_gradient."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from differences import slope
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import ArgumentError, CustomGradientError, ShapeError


def f(x, k=3.0):
    """sin² scaled."""
    return pb.sin(x) ** 2 * k


@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (pb.recompute_grad, "recompute_grad"),
        (pb.grad_pass_through, "grad_pass_through"),
        (pb.straight_through, "straight_through"),
    ],
)
def test_modifier_wrappers_keep_name_and_reject_non_functions(wrap, name):
    with pytest.raises(ArgumentError, match=rf"{name}\(f\): f must be a function, got int"):
        wrap(3)
    with pytest.raises(CustomGradientError, match=rf"{name}\(<lambda>\): the value must be a tensor, got str"):
        wrap(lambda x: "text")(1.0)
    assert (wrap(f).__name__, wrap(f).__doc__, wrap(f).__wrapped__) == ("f", "sin² scaled.", f)
    assert pickle.loads(pickle.dumps(wrap(f))).__wrapped__ is f


# ---- grad_pass_through


def test_grad_pass_through_has_identity_gradient():
    g = pb.grad_pass_through(lambda x: pb.floor(x) * 5)
    assert pb.value_and_grad(g)(2.7) == (10.0, 1.0)
    assert pb.grad(lambda x: g(x * 3))(2.7) == 3.0
    assert pb.grad(pb.grad(lambda x: g(x) ** 3))(2.7) == 60.0
    assert pb.jvp(g, [np.float64(2.7)], [np.float64(4)])[1] == 4


def test_grad_pass_through_of_several_inputs():
    g = pb.grad_pass_through(lambda x, y: (x * 10, y * y))
    assert pb.grads(lambda x, y: g(x, y)[0] * 3 + g(x, y)[1])([2.0, 5.0]) == [3.0, 1.0]


def test_grad_pass_through_has_no_variable_gradients():
    v, w = pb.variable(2.0, name="v"), pb.variable(3.0, name="w")
    g = pb.grad_pass_through(lambda x: x * v)
    grads = pb.variable_grads(lambda: g(w)).grads
    assert {k: d.item() for k, d in grads.items()} == {"w": 1.0}


def test_grad_pass_through_of_other_shape_raises():
    with pytest.raises(
        CustomGradientError, match=r"grad_pass_through\(<lambda>\): .*expected \[\(2,\)\], got \[\(\)\].*test_mod"
    ):
        pb.grad_pass_through(lambda x: x.sum())(np.ones(2))


def test_straight_through_of_round_floor_and_comparison():
    x = np.array([0.2, -1.7, 2.6])
    assert_allclose(pb.grad(lambda x: (pb.straight_through(np.round)(x) * x).sum())(x), x + np.round(x))
    assert_allclose(pb.grad(lambda x: (pb.straight_through(lambda x: x > 0)(x) * 3.0).sum())(x), 3)
    assert_allclose(pb.vmap(pb.grad(lambda x: pb.straight_through(pb.floor)(x) ** 2))(x), 2 * np.floor(x))
    assert_allclose(pb.jvp(pb.vmap(pb.straight_through(np.sign)), [x], [x])[1], x)


# ---- scaled, reversed, clipped


X, Y = np.array([0.3, -0.5, 2.0]), np.array([1.0, 2.0, 3.0])
NORM = np.sqrt(np.sum((2 * X) ** 2))
MODIFIERS = {  # the modifier, the changed gradient 2x of x² at X
    "scale": (lambda x: pb.scale_gradient(x, 0.5), X),
    "scale by array": (lambda x: pb.scale_gradient(x, Y), 2 * X * Y),
    "reverse": (lambda x: pb.reverse_gradient(x), -2 * X),
    "reverse by": (lambda x: pb.reverse_gradient(x, 3), -6 * X),
    "clip": (lambda x: pb.clip_gradient(x, -0.5, 1.0), [0.6, -0.5, 1.0]),
    "clip below": (lambda x: pb.clip_gradient(x, -0.5, None), [0.6, -0.5, 4.0]),
    "clip above": (lambda x: pb.clip_gradient(x, None, np.array([0.5, 1.0, 1.5])), [0.5, -1.0, 1.5]),
    "clip norm": (lambda x: pb.clip_gradient_norm(x, 1.0), 2 * X / NORM),
    "clip long norm": (lambda x: pb.clip_gradient_norm(x, 100.0), 2 * X),
    "clip to nothing": (lambda x: pb.clip_gradient_norm(x, 0), 0 * X),
    "tap": (lambda x: pb.tap_gradient(x, lambda g: None), 2 * X),
}


@pytest.mark.parametrize(("change", "want"), MODIFIERS.values(), ids=MODIFIERS)
def test_modifiers_keep_value_and_change_gradient(change, want):
    assert change(X) is X
    value, slope = pb.value_and_grad(lambda x: (change(x) ** 2).sum())(X)
    assert value == np.sum(X**2)
    assert_allclose(slope, want)
    slope = pb.grad(lambda x: (change(x) ** 2).sum())(X.astype("float32"))
    assert slope.dtype == np.float32
    assert_allclose(slope, want, rtol=1e-6)
    batch = np.stack([X, X * 0.01])
    each = pb.vmap(pb.grad(lambda x: (change(x) ** 2).sum()))(batch)
    assert_allclose(each, [pb.grad(lambda x: (change(x) ** 2).sum())(x) for x in batch])
    assert_allclose(pb.grad(lambda b: pb.vmap(lambda x: (change(x) ** 2).sum())(b).sum())(batch), each)


@pytest.mark.parametrize(
    ("dtype", "length"), [("float32", 1e30), ("float32", 1e-30), ("float64", 1e250), ("float64", 1e-250)]
)
def test_clip_gradient_norm_of_extreme_magnitudes(dtype, length):
    long = np.array([3, 4], dtype) * np.asarray(length, dtype)

    def clip(limit):
        return pb.grad(lambda x: (pb.clip_gradient_norm(x, limit) * long).sum())(np.zeros(2, dtype))

    assert_allclose(clip(length) / length, [0.6, 0.8], rtol=1e-6)
    assert clip(6 * length).tolist() == long.tolist()


@pytest.mark.parametrize("name", ["clip", "clip below", "clip above", "clip norm", "clip long norm", "tap"])
def test_modifiers_second_derivative_matches_finite_differences(name):
    change, _ = MODIFIERS[name]
    changed = pb.grad(lambda x: (change(pb.sin(x)) ** 3).sum())
    v = np.array([0.7, -0.2, 0.4])
    assert_allclose(pb.jvp(changed, [X], [v])[1], slope(changed, X, v), rtol=1e-6, atol=1e-8)


def test_modifiers_apply_at_each_order():
    assert pb.grad(pb.grad(lambda x: pb.scale_gradient(x, 0.5) ** 3))(2.0) == 3  # 6x · ½ · ½
    assert pb.grad(pb.grad(lambda x: pb.reverse_gradient(x) ** 3))(2.0) == 12
    assert pb.grad(pb.grad(lambda x: pb.clip_gradient(x, -100, 100) ** 3))(2.0) == 12
    assert pb.grad(pb.grad(lambda x: pb.clip_gradient(x, -1, 1) ** 3))(2.0) == 0
    at_zero = pb.grad(lambda x: pb.grad(lambda x: (pb.clip_gradient_norm(x, 9.0) ** 2).sum())(x).sum())(np.zeros(2))
    assert_allclose(at_zero, 2)


def test_modifiers_forward_mode():
    changes = [
        (lambda x: pb.scale_gradient(x, Y), Y),
        (pb.reverse_gradient, -1),
        (lambda x: pb.clip_gradient(x, -0.1, 0.1), 1),
        (lambda x: pb.clip_gradient_norm(x, 0.1), 1),
        (lambda x: pb.tap_gradient(x, lambda g: pytest.fail("forward mode does not go back")), 1),
    ]
    for change, factor in changes:
        square, want = lambda x, change=change: change(x) ** 2, 2 * X * Y * factor
        along = lambda x, y, square=square: pb.jvp(square, [x], [y])[1]
        assert_allclose(along(X, Y), want)
        assert_allclose(pb.vmap(along)(X[None], Y[None])[0], want)
        assert_allclose(along(X[None], Y[None], pb.vmap(square))[0], want)


def test_modifiers_of_trees_and_non_floats():
    tree = {"a": X, "b": [Y, np.arange(3)], "c": None, "d": 2.0}
    found = pb.scale_gradient(tree, 2.0)
    assert found["a"] is X
    assert found["d"] == 2.0
    f = lambda p: (p["a"] * p["b"][0] * p["b"][1]).sum()
    both = pb.grads(lambda a, b: f(pb.scale_gradient({"a": a, "b": [b, np.arange(3)]}, 2.0)))([X, Y])
    assert_allclose(both, [2 * Y * np.arange(3), 2 * X * np.arange(3)])
    both = pb.grads(lambda a, b: (lambda p: (p[0] * p[1]).sum())(pb.clip_gradient_norm((a, b), 1.0)))([X, Y])
    whole = np.sqrt(np.sum(X**2) + np.sum(Y**2))
    assert_allclose(both, [Y / whole, X / whole])


def test_modifiers_compose():
    both = lambda x: pb.scale_gradient(pb.clip_gradient(pb.reverse_gradient(x), -1.0, 1.0), 10.0)
    assert_allclose(pb.grad(lambda x: both(x).sum())(X), -1.0)
    inside = pb.recompute_grad(lambda x: both(x) * 3)
    assert_allclose(pb.grad(lambda x: inside(x).sum())(X), -1.0)


def test_modifiers_with_traced_or_batched_settings():
    through = lambda k: pb.grad(lambda x: pb.scale_gradient(x, k) ** 2)(np.float64(3.0))
    assert pb.grad(through)(2.0) == 6
    assert_allclose(pb.vmap(through)(Y), 6 * Y)
    limited = lambda limit: pb.grad(lambda x: (pb.clip_gradient_norm(x, limit) ** 2).sum())(X)
    assert_allclose(pb.vmap(limited)(np.array([1.0, 2.0])), np.outer([1, 2], 2 * X / NORM))
    assert_allclose(pb.grad(lambda limit: limited(limit).sum())(1.0), np.sum(2 * X / NORM))


def test_modifiers_of_variables():
    v = pb.variable(X, name="v")
    assert_allclose(pb.variable_grads(lambda: (pb.reverse_gradient(v) ** 2).sum()).grads["v"], -2 * X)
    with pb.GradientTape() as tape:
        y = (pb.clip_gradient(v, -0.5, 0.5) ** 2).sum()
    assert_allclose(tape.gradient(y, v), [0.5, -0.5, 0.5])


def test_modifiers_of_complex_gradients():
    z = np.array([3 + 4j])
    assert_allclose(pb.grad(lambda z: (np.abs(pb.scale_gradient(z, 2.0)) ** 2).sum())(z), 4 * z)
    assert_allclose(pb.grad(lambda z: (np.abs(pb.clip_gradient_norm(z, 1.0)) ** 2).sum())(z), z / 5)


def test_tap_gradient_callback_gets_plain_tensors():
    seen = []
    pb.grad(lambda x: (pb.tap_gradient(x, seen.append) ** 2).sum())(X)
    assert type(seen[0]) is pb.Tensor
    assert_allclose(seen.pop().numpy(), 2 * X)
    pb.vmap(pb.grad(lambda x: pb.tap_gradient(x, seen.append) ** 2))(X)
    assert_allclose([g.item() for g in seen], 2 * X)
    seen.clear()
    pb.grad(lambda a, b=Y: (lambda p: (p["a"] * p["b"]).sum())(pb.tap_gradient({"a": a, "b": b, "n": 1}, seen.append)))(
        X
    )
    assert {k: None if g is None else g.numpy().tolist() for k, g in seen.pop().items()} == {
        "a": Y.tolist(),
        "b": X.tolist(),
        "n": None,
    }
    pb.grad(pb.grad(lambda x: pb.tap_gradient(x, seen.append) ** 3))(2.0)
    assert [g.item() for g in seen] == [12, 12]  # 3x² in the first backward pass, 6x on the second


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_tap_gradient_in_compiled_function_runs_every_call(backend):
    seen = []
    f = pb.compile(pb.grad(lambda x: (pb.tap_gradient(x * 1.0, seen.append) ** 2).sum()), backend=backend)
    for x in (X, 2 * X, X):
        assert_allclose(f(x), 2 * x)
    assert_allclose([g.numpy() for g in seen], [2 * X, 4 * X, 2 * X])
    assert {type(g) for g in seen} == {pb.Tensor}
    seen.clear()
    value = pb.compile(lambda x: pb.value_and_grad(lambda x: pb.tap_gradient(x, seen.append) ** 2)(x).value)
    assert [value(2.0), value(3.0)] == [4.0, 9.0]  # the gradient is no result, and is seen all the same
    assert [g.item() for g in seen] == [4.0, 6.0]


def test_tap_gradient_order_in_compiled_transforms():
    seen = []

    def show(name):
        return lambda g: seen.append((name, g.item()))

    tapped = lambda x: pb.tap_gradient(pb.tap_gradient(x, show("inner")) * 3.0, show("outer")) ** 2
    for f, x in (
        (pb.grad(tapped), np.float64(2.0)),
        (pb.vmap(pb.grad(tapped)), X),
        (pb.grad(pb.grad(tapped)), np.float64(2.0)),
    ):
        f(x)
        wanted, seen[:] = seen[:], []
        compiled = pb.compile(f)
        for _ in range(2):
            assert_allclose(compiled(x), f(x))
        assert seen == wanted * 4
        seen.clear()


def test_tap_gradient_in_compiled_training_step():
    w, seen = pb.variable(2.0), []

    @pb.compile
    def step(rate):
        (d,) = pb.variable_grads(lambda: pb.tap_gradient(w * 1.0, seen.append) ** 2).grads.values()
        w.assign_sub(d * rate)

    step(0.25)
    step(0.25)
    assert [g.item() for g in seen] == [4.0, 2.0]
    assert w.numpy() == 0.5


def test_tap_gradient_callback_raises_in_compiled_function():
    def refuse(g):
        raise ValueError(f"got {g.item()}")

    f = pb.compile(pb.grad(lambda x: pb.tap_gradient(x, refuse) ** 2))
    for x in (1.0, 2.0):
        with pytest.raises(ValueError, match=f"got {2 * x}"):
            f(x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pb.clip_gradient(X, 1.0, -1.0),
            ArgumentError,
            r"clip_gradient: low must not be above high, got low=1",
        ),
        (lambda: pb.clip_gradient(X, -Y, np.array([0.0, -9.0, 0.0])), ArgumentError, "low must not be above high"),
        (lambda: pb.clip_gradient(X + 1j, -1.0, 1.0), ArgumentError, "no order; use clip_gradient_norm"),
        (lambda: pb.clip_gradient(X, float("nan"), 1.0), ArgumentError, "low must not be above high, got low=nan"),
        (lambda: pb.clip_gradient_norm(X, -1.0), ArgumentError, "limit must be 0 or more, got -1"),
        (lambda: pb.clip_gradient_norm(X, float("nan")), ArgumentError, "limit must be 0 or more, got nan"),
        (lambda: pb.clip_gradient_norm(X, Y), ShapeError, r"limit must be one number, got shape \(3,\)"),
        (lambda: pb.tap_gradient(X, 3), ArgumentError, "callback must be a function, got int"),
        (lambda: pb.scale_gradient(X, "2"), ArgumentError, "factor must be a number or an array of them, got str"),
        (lambda: pb.scale_gradient(X, True), ArgumentError, "factor must be a number or an array of them, got bool"),
        (lambda: pb.scale_gradient(X, np.ones(3, bool)), ArgumentError, "got dtype bool"),
        (lambda: pb.scale_gradient(X, np.ones(2)), ShapeError, r"scale_gradient: .*\(2,\).*\(3,\)"),
        (lambda: pb.scale_gradient(np.float64(1), Y), ShapeError, r"scale_gradient: .*\(3,\).*\(\)"),
    ],
)
def test_modifiers_bad_arguments_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "wrap", [lambda x: [x], lambda x: (x, 1.0), lambda x: {"w": x, "name": "text", "none": None}, lambda x: [[x], {}]]
)
def test_stop_gradient_of_tree_stops_every_tensor(wrap):
    def f(x):
        stopped = pb.stop_gradient(wrap(x))
        assert type(stopped) is type(wrap(x))
        leaf = next(t for t in pb.core.tree.leaves(stopped) if isinstance(t, pb.Tensor))
        return leaf * x

    assert pb.grad(f)(3.0) == 3.0
    assert pb.jvp(f, [3.0], [1.0]) == (9.0, 3.0)
    assert_allclose(pb.vmap(pb.grad(f))(np.array([1.0, 2.0])), [1.0, 2.0])


def test_stop_gradient_of_tree_keeps_non_tensors():
    given = {"n": 3, "rate": 0.1, "text": "a", "array": np.ones(2), "none": None}
    stopped = pb.stop_gradient(given)
    assert (stopped["n"], stopped["rate"], stopped["text"], stopped["none"]) == (3, 0.1, "a", None)
    assert stopped["array"] is given["array"]
