"""custom_grad and custom_gradient: checks of the given gradient, captured tensors, higher orders, variables."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from leaks import leaves_objects
from numpy.testing import assert_allclose, assert_array_equal

import pullback as pb
from pullback.errors import (
    ArgumentError,
    CapturedError,
    CustomGradientError,
    DataError,
    PrecisionWarning,
    UnconnectedError,
)


@pb.custom_grad
def x_exp_x(x, save):
    """x · exp(x), with the exponential saved."""
    e = pb.exp(x)
    save({"x": x, "e": e})
    return x * e, lambda dy, saved: dy * (saved["x"] + 1.0) * saved["e"]


@pb.custom_gradient
def product_and_sum(x, y):
    return (x * y, x + y), lambda d1, d2: (d1 * y + d2, d1 * x + d2)


def triple(x, save):
    return x * 2, lambda dy, saved: dy * 3


def with_gradient(grad_func, count=1):
    """Return a function of ``count`` inputs with this gradient function."""
    if count == 1:
        return pb.custom_grad(lambda x, save: (x * x, grad_func))
    return pb.custom_grad(lambda x, y, save: (x * y, grad_func))


# ---- custom_grad


def test_custom_grad_uses_given_gradient():
    f = pb.custom_grad(triple)
    assert pb.value_and_grad(f)(5.0) == (10.0, 3.0)
    assert_array_equal(pb.grad(f)(np.ones(2), [10, 100]), [30, 300])
    assert f(np.ones(2)).tolist() == [2, 2]
    assert isinstance(f(np.ones(2)), np.ndarray)
    assert isinstance(f(pb.tensor(1.0)), pb.Tensor)
    assert isinstance(f(3.0), np.floating)


def test_custom_grad_inside_larger_function():
    f = pb.custom_grad(triple)
    assert pb.grad(lambda x: (f(x * x) * x).sum())(2.0) == 3 * 4 * 2 + 8
    assert pb.grads(lambda x, y: f(x) * f(y))([2.0, 5.0]) == [30.0, 12.0]


def test_custom_grad_single_gradient_bare_or_in_list():
    for out in (lambda d: d, lambda d: [d], lambda d: (d,)):
        assert pb.grad(with_gradient(lambda dy, saved, out=out: out(dy * 9)))(3.0) == 9.0


@pytest.mark.parametrize(
    ("kept", "first"),
    [
        (lambda x: [x, x * 2], lambda s: s[0]),
        (lambda x: (x, x * 2), lambda s: s[0]),
        (lambda x: {"a": x, "b": [x]}, lambda s: s["a"]),
    ],
)
def test_custom_grad_saved_keeps_structure(kept, first):
    seen = []

    @pb.custom_grad
    def f(x, save):
        save([x * 100])
        save(kept(x))  # the last call wins
        return x * x, lambda dy, saved: seen.append(saved) or dy * first(saved) * 2

    assert pb.grad(f)(3.0) == 6.0
    assert type(seen[0]) is type(kept(1.0))


def test_custom_grad_save_copies_and_is_optional():
    @pb.custom_grad
    def f(x, save):
        mine = [x]
        save(mine)
        mine.clear()
        return x * x, lambda dy, saved: dy * 2 * saved[0]

    assert pb.grad(f)(3.0) == 6.0
    assert pb.grad(with_gradient(lambda dy, saved: dy if saved == [] else None))(3.0) == 1.0


def test_custom_grad_save_of_bare_tensor_raises():
    f = pb.custom_grad(lambda x, save: (save(x), lambda dy, saved: dy))
    with pytest.raises(
        ArgumentError, match=r"save takes a list, tuple or dict of tensors, got Tensor\. Write save\(\[x\]\)"
    ):
        f(1.0)


def test_custom_grad_save_as_keyword_parameter():
    @pb.custom_grad
    def total(*xs, save):
        save(xs)
        return sum(xs[1:], xs[0]), lambda dy, saved: [dy * i for i in range(len(saved))]

    assert pb.grads(total)([1.0, 1.0, 1.0]) == [0.0, 1.0, 2.0]


def test_custom_grad_runs_gradient_function_in_backward_pass_only():
    calls = []
    f = with_gradient(lambda dy, saved: calls.append(1) or dy)
    f(pb.tensor(2.0))
    assert calls == []
    pb.grad(f)(2.0)
    assert calls == [1]


def test_custom_grad_without_inputs():
    assert pb.custom_grad(lambda save: (pb.tensor(1.0), lambda dy, saved: []))().item() == 1.0


def test_custom_grad_integer_inputs_have_float_gradients():
    f = pb.custom_grad(lambda x, save: (x * 1.0, lambda dy, saved: dy / 3))
    got = pb.grad(f)(np.array([1, 2]))
    assert got.dtype == np.float64
    assert got.tolist() == [1 / 3, 1 / 3]
    g = pb.custom_grad(lambda x, save: (pb.cast(x, "float32"), lambda dy, saved: dy * 3))
    assert pb.grad(g)(np.array([1, 2])).dtype == np.float32


@pytest.mark.parametrize("width", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_custom_grad_casts_gradient_and_warns_if_narrower(width, dtype):
    f = pb.custom_grad(lambda x, save: (x * x, lambda dy, saved: np.full(2, 7, width)))
    narrower = np.dtype(width).itemsize < np.dtype(dtype).itemsize
    message = rf"custom_grad\(<lambda>\): the gradient of 'x' is {np.dtype(width)}, but the input is {np.dtype(dtype)}"
    with pytest.warns(PrecisionWarning, match=message) if narrower else nullcontext():
        got = pb.grad(f)(np.ones(2, dtype))
    assert got.dtype == dtype
    assert got.tolist() == [7, 7]


def test_custom_grad_float32_gradient_of_float32_value_does_not_warn():
    narrow = pb.custom_grad(lambda x: (pb.cast(x, "float32"), lambda dy: dy * 2))
    assert pb.grad(lambda x: narrow(x).sum())(np.ones(2)).tolist() == [2, 2]
    weak = pb.custom_gradient(lambda x: (x * 2.0, lambda dy: dy * 2.0))
    assert pb.grad(weak)(1.0) == 2.0


def test_custom_grad_python_numbers_do_not_widen_dtype():
    f = pb.custom_grad(lambda x, k, save: (x * k, lambda dy, saved: [dy, dy * 0]))
    assert pb.value_and_grad(lambda x: f(x, 2.5))(np.float32(2)).value.dtype == np.float32


def test_custom_grad_copies_returned_arrays():
    mine, x = np.full(2, 5.0), np.full(2, 3.0)
    got = pb.grad(with_gradient(lambda dy, saved: mine))(x)
    got += 1
    assert mine.tolist() == [5, 5]

    @pb.custom_grad
    def f(x, save):
        save([x])
        return x * x, lambda dy, saved: saved[0]

    got = pb.grad(f)(x)
    got += 1
    assert x.tolist() == [3, 3]


def test_custom_grad_big_arrays():
    x = np.linspace(0, 1, 80_000)
    assert_allclose(pb.grad(lambda x: (x_exp_x(x * 2) * x).sum())(x), 2 * x * np.exp(2 * x) * (2 + 2 * x))
    a, b = pb.grads(lambda x, y: (product_and_sum(x * 2, y)[0] * product_and_sum(x * 2, y)[1]).sum())([x, x + 1])
    y = x + 1
    assert_allclose(a, 2 * (y * (2 * x + y) + 2 * x * y))
    assert_allclose(b, 2 * x * (2 * x + y) + 2 * x * y)


# ---- what is checked


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (with_gradient(lambda dy, saved: dy, 2), r"must return 2 gradients, one for each input \(x, y\); got 1"),
        (with_gradient(lambda dy, saved: [dy] * 3, 2), r"must return 2 gradients, one for each input \(x, y\); got 3"),
        (with_gradient(lambda dy, saved: [], 2), r"must return 2 gradients, one for each input \(x, y\); got 0"),
        (with_gradient(lambda dy, saved: [dy, None], 2), r"gradient of 'y' must be a tensor of shape \(2,\), got None"),
        (with_gradient(lambda dy, saved: [3, dy], 2), r"gradient of 'x' must be a tensor of shape \(2,\), got int"),
        (
            with_gradient(lambda dy, saved: [dy.sum(), dy], 2),
            r"gradient of 'x' must have its shape \(2,\), got shape \(\)",
        ),
        (
            with_gradient(lambda dy, saved: [dy, pb.reshape(dy, (1, 2))], 2),
            r"gradient of 'y' must have its shape \(2,\), got shape \(1, 2\); nothing is broadcast",
        ),
        (
            with_gradient(lambda dy, saved: [np.ones(2, np.int32), dy], 2),
            r"gradient of 'x' must be a float like float64, got int32\. Cast it",
        ),
        (
            with_gradient(lambda dy, saved: [dy, np.ones(2) * 1j], 2),
            r"gradient of 'y' must be a float .* got complex128",
        ),
        (with_gradient(lambda dy, saved: [dy, np.ones(2) > 0], 2), r"gradient of 'y' must be a float .* got bool"),
    ],
)
def test_custom_grad_wrong_gradient_error_names_argument_and_line(f, message):
    with pytest.raises(CustomGradientError, match=rf"custom_grad\(<lambda>\): .*{message}.*\(test_custom\.py:\d+\)"):
        pb.grads(f)([np.ones(2), np.ones(2)])


def test_custom_grad_error_has_line_of_gradient_function():
    def grad_func(dy, saved):
        return dy.sum()

    @pb.custom_grad
    def area(side, save):
        return side * side, grad_func

    with pytest.raises(CustomGradientError) as caught:
        pb.grad(area)(np.ones(3))
    assert "custom_grad(area)" in str(caught.value)
    assert "'side'" in str(caught.value)
    assert f"(test_custom.py:{grad_func.__code__.co_firstlineno})" in str(caught.value)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (lambda x: x, r"f must return \(value, grad_func\), got Tensor"),
        (lambda x: None, r"f must return \(value, grad_func\), got NoneType"),
        (lambda x: (x, x), r"f must return \(value, grad_func\), got tuple of \(Tensor, Tensor\)"),
        (lambda x: ("text", lambda dy, saved: dy), r"the value must be a tensor, got str"),
        (lambda x: (True, lambda dy, saved: dy), r"the value must be a tensor, got bool"),
        (lambda x: {"value": x}, r"f must return \(value, grad_func\), got dict with 'value'"),
        (
            lambda x: {"value": x, "gradFunc": x},
            r"f must return \(value, grad_func\), got dict with 'value', 'gradFunc'",
        ),
        (lambda x: (None, lambda dy, saved: dy), r"the value must be a tensor, got NoneType"),
    ],
)
def test_custom_grad_bad_body_result_raises(out, message):
    with pytest.raises(CustomGradientError, match=message + r" \(test_custom\.py:\d+\)"):
        pb.custom_grad(lambda x, save: out(x))(1.0)


def test_custom_grad_text_input_raises():
    with pytest.raises(DataError, match=r"custom_grad\(triple\): the inputs must be tensors or numbers, got text"):
        pb.custom_grad(triple)("abc")


def test_custom_grad_of_non_function_raises():
    for wrap, name in ((pb.custom_grad, "custom_grad"), (pb.custom_gradient, "custom_gradient")):
        with pytest.raises(ArgumentError, match=rf"{name}\(f\): f must be a function, got int"):
            wrap(5)


# ---- what is captured


def test_custom_grad_captured_tensor_raises_with_name():
    def outer(w):
        weights = w * 2
        f = pb.custom_grad(lambda x, save: (x * weights, lambda dy, saved: dy))
        return f(w)

    with pytest.raises(
        CapturedError, match=r"custom_grad\(<lambda>\): the body uses the traced tensor 'weights', not one"
    ):
        pb.grad(outer)(3.0)
    with pytest.raises(CapturedError, match="'weights'"):
        pb.grad(lambda w: pb.grad(lambda x: outer(w) * x)(w))(3.0)


@pytest.mark.parametrize("wrap", [lambda w: {"a": [w]}, lambda w: Holder(w)])
def test_custom_gradient_captured_tensor_in_container_or_object_raises(wrap):
    def outer(w):
        params = wrap(w)
        read = (lambda p: p["a"][0]) if isinstance(params, dict) else (lambda p: p.w)
        return pb.custom_gradient(lambda x: (x * read(params), lambda dy: dy))(pb.tensor(1.0))

    with pytest.raises(CapturedError, match=r"'params(\['a'\]\[0\]|\.w)'.*Pass it as an input, or use stop_gradient"):
        pb.grad(outer)(3.0)


@dataclass
class Holder:
    w: Any


def test_custom_grad_tensor_captured_by_gradient_function_raises():
    def outer(w):
        scale = w * 2
        f = pb.custom_grad(lambda x, save: (x * 1.0, lambda dy, saved: dy * scale))
        return f(w)

    with pytest.raises(CapturedError, match=r"the gradient function uses the traced tensor 'scale', not one"):
        pb.grad(outer)(3.0)


def test_custom_grad_captured_tensor_of_outer_transform_raises():
    f = lambda w: pb.custom_grad(lambda x, save: (x * w, lambda dy, saved: dy))
    with pytest.raises(CapturedError, match="'w'"):
        pb.grad(lambda w: pb.grad(lambda x: f(w)(x))(2.0))(3.0)


def test_custom_grad_captured_variable_raises_with_name():
    v = pb.variable(2.0, name="speed")
    f = pb.custom_grad(lambda x, save: (x * v, lambda dy, saved: dy))
    assert pb.grad(f)(3.0) == 1.0  # no transform follows it
    for body in (lambda: f(pb.tensor(3.0)), lambda: f(v * 1.0)):
        with pytest.raises(CapturedError, match="the variable 'speed'"):
            pb.variable_grads(body)


def test_custom_grad_captured_stop_gradient_is_allowed():
    v = pb.variable(2.0)

    def outer(w):
        k = pb.stop_gradient(w)
        f = pb.custom_grad(lambda x, save: (x * k * pb.stop_gradient(v), lambda dy, saved: dy * k))
        g = pb.custom_gradient(lambda x: (x * k * pb.stop_gradient(v), lambda dy: dy * k))
        return f(w) + g(w)

    assert pb.grad(outer)(3.0) == 6.0
    v2 = pb.variable(3.0, name="v2")
    assert pb.variable_grads(lambda: outer(v2)).grads["v2"].item() == 6.0


def test_custom_gradient_traced_keyword_raises():
    f = pb.custom_gradient(lambda x, scale=1.0: (x * scale, lambda dy: dy))
    with pytest.raises(CapturedError, match="'scale'"):
        pb.grad(lambda w: f(2.0, scale=w))(3.0)


# ---- higher order


def test_custom_grad_higher_orders_with_saved_value():
    x = 0.7
    f = x_exp_x
    for order in range(1, 5):
        f = pb.grad(f)
        assert f(x) == pytest.approx((x + order) * np.exp(x))


def test_custom_gradient_higher_orders_with_captured_locals():
    @pb.custom_gradient
    def f(x):
        e = pb.exp(x)
        y = x * e
        return y, lambda dy: dy * (y + e)

    g = f
    for order in range(1, 4):
        g = pb.grad(g)
        assert g(0.3) == pytest.approx((0.3 + order) * np.exp(0.3))


def test_custom_grad_second_order_differentiates_given_gradient():
    f = pb.custom_grad(lambda x, save: (save([x]) or x * x, lambda dy, saved: dy * saved[0] ** 3))
    assert pb.grad(pb.grad(f))(2.0) == 12.0
    assert pb.grad(pb.grad(pb.grad(f)))(2.0) == 12.0
    straight = pb.custom_grad(lambda x, save: (pb.round(x), lambda dy, saved: dy))
    assert pb.grad(lambda x: straight(x) ** 3)(2.2) == 12.0
    assert pb.grad(pb.grad(lambda x: straight(x) ** 3))(2.2) == 12.0
    assert pb.grad(pb.grad(pb.grad(lambda x: straight(x) ** 3)))(2.2) == 6.0


def test_custom_gradient_second_order_of_several_results():
    f = lambda x: product_and_sum(x, x * x)
    g = lambda x: f(x)[0] * f(x)[1]  # x³ (x + x²)
    assert pb.grad(g)(2.0) == 4 * 8 + 5 * 16
    assert pb.grad(pb.grad(g))(2.0) == 12 * 4 + 20 * 8


def test_custom_grad_mixed_derivative():
    got = pb.grad(lambda y: pb.grad(lambda x: x_exp_x(x * y))(1.0))(0.5)
    x, y = 1.0, 0.5
    t = x * y
    assert got == pytest.approx((1 + t) * np.exp(t) + y * x * (2 + t) * np.exp(t))


def test_custom_grad_with_grad_inside_body_and_gradient_function():
    @pb.custom_grad
    def f(x, save):
        slope = pb.grad(lambda t: t * t * t)(x)  # 3x²
        save([x])
        return slope, lambda dy, saved: dy * pb.grad(lambda t: t * t * t * 2)(saved[0])  # 6x²

    assert pb.value_and_grad(f)(2.0) == (12.0, 24.0)
    assert pb.grad(pb.grad(f))(2.0) == 24.0


def test_custom_gradient_inside_custom_gradient():
    @pb.custom_gradient
    def outer(x):
        return x_exp_x(x) * 2, lambda dy: dy * 2 * pb.grad(x_exp_x)(x)

    for order, f in enumerate([pb.grad(outer), pb.grad(pb.grad(outer))], 1):
        assert f(0.5) == pytest.approx(2 * (0.5 + order) * np.exp(0.5))


# ---- forward mode


def test_custom_grad_forward_mode_transposes_gradient_function():
    value, tangent = pb.jvp(x_exp_x, [np.array([0.5, 1.0])], [np.array([1.0, 2.0])])
    x = np.array([0.5, 1.0])
    assert_allclose(value, x * np.exp(x))
    assert_allclose(tangent, (1 + x) * np.exp(x) * [1, 2])


def test_custom_gradient_forward_mode_of_several_results():
    value, tangent = pb.jvp(
        lambda x: product_and_sum(x, 3.0)[0] + product_and_sum(2.0, x)[1], [np.float64(5)], [np.float64(1)]
    )
    assert (value, tangent) == (22.0, 4.0)


def test_custom_grad_forward_over_reverse_and_reverse_over_forward():
    expected = (0.5 + 2) * np.exp(0.5)
    one = np.float64(1)
    assert pb.jvp(pb.grad(x_exp_x), [np.float64(0.5)], [one])[1] == pytest.approx(expected)
    assert pb.grad(lambda x: pb.jvp(x_exp_x, [x], [one])[1])(0.5) == pytest.approx(expected)


def test_custom_grad_forward_mode_captured_tensor_raises():
    one = np.float64(1)
    body = lambda w: pb.custom_grad(lambda x, save: (x * w, lambda dy, saved: dy))(2.0)
    back = lambda w: pb.custom_grad(lambda x, save: (x * 2, lambda dy, saved: dy * w))(w)
    for f in (body, back):
        with pytest.raises(CapturedError, match="'w'"):
            pb.jvp(f, [one], [one])


# ---- custom_gradient


def test_custom_gradient_unused_result_has_zero_cotangent():
    seen = []

    @pb.custom_gradient
    def f(x):
        def grad_fn(d1, d2):
            seen.append((d1.tolist(), d2.tolist()))
            return d1 + d2.sum()

        return (x, pb.concat([x, x])), grad_fn

    assert pb.grad(lambda x: f(x)[0].sum())(np.ones(2)).tolist() == [1, 1]
    assert seen == [([1, 1], [0, 0, 0, 0])]
    assert pb.grad(lambda x: f(x)[1].sum())(np.ones(2)).tolist() == [4, 4]


@dataclass
class Point:
    x: Any
    y: Any


def test_custom_gradient_trees():
    @pb.custom_gradient
    def f(p, pair):
        value = {"a": p.x * pair["u"], "b": [p.y, pair["v"][0]]}
        return value, lambda da, dy, dv: (Point(da * 2, dy * 3), {"v": [dv * 5], "u": da * 4})

    def g(x, y, u, v):
        out = f(Point(x, y), {"u": u, "v": (v,)})
        return out["a"] + out["b"][0] * 10 + out["b"][1] * 100

    assert pb.grads(g)([1.0, 1.0, 1.0, 1.0]) == [2.0, 30.0, 4.0, 500.0]
    out = f(Point(pb.tensor(2.0), pb.tensor(3.0)), {"u": pb.tensor(4.0), "v": (pb.tensor(5.0),)})
    assert (out["a"].item(), out["b"][0].item(), out["b"][1].item()) == (8, 3, 5)


def test_custom_gradient_flat_gradients_of_tree():
    f = pb.custom_gradient(lambda pair, z: (pair[0] * pair[1] * z, lambda dy: (dy, dy * 2, dy * 3)))
    assert pb.grads(lambda x, y, z: f((x, y), z))([1.0, 1.0, 1.0]) == [1.0, 2.0, 3.0]


def test_custom_gradient_passes_non_tensor_arguments():
    class Scaled:
        @pb.custom_gradient
        def times(self, x, mode, k=2.0):
            assert isinstance(self, Scaled)
            assert mode == "fast"
            return x * k, lambda dy: dy * 7

    assert pb.value_and_grad(lambda x: Scaled().times(x, "fast", k=3.0))(2.0) == (6.0, 7.0)


def test_custom_gradient_none_is_missing_gradient():
    f = pb.custom_gradient(lambda x, y: (x * y, lambda dy: (dy * 3, None)))
    assert pb.grads(f, unconnected="none")([2.0, 5.0]) == [3.0, None]
    with pytest.raises(UnconnectedError, match=r"path was cut .*custom_gradient\(<lambda>\)"):
        pb.grad(lambda y: f(2.0, y))(5.0)
    whole = pb.custom_gradient(lambda p: (p["a"] * p["b"], lambda dy: None))
    assert pb.grad(whole, unconnected="none")({"a": 1.0, "b": 2.0}) == {"a": None, "b": None}


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda p: (p["a"] * p["b"], lambda dy: dy), r"2 gradients, one for each input \(p\['a'\], p\['b'\]\); got 1"),
        (lambda p: (p["a"] * p["b"], lambda dy: {"a": dy, "c": dy}), r"one for each input .*; got a dict of other"),
        (
            lambda p: (p["a"] * p["b"], lambda dy: {"a": dy, "b": dy.sum()}),
            r"gradient of 'p\['b'\]' must have its shape",
        ),
    ],
)
def test_custom_gradient_wrong_tree_gradient_error_names_leaf(f, message):
    with pytest.raises(CustomGradientError, match=rf"custom_gradient\(<lambda>\): .*{message}.*test_custom\.py"):
        pb.grad(pb.custom_gradient(f))({"a": np.ones(2), "b": np.ones(2)})


# ---- variables


def linear(grad_fn, v):
    return pb.custom_gradient(lambda x: (x * v, grad_fn))


def test_custom_gradient_of_variables():
    v = pb.variable([2.0, 3.0], name="v")
    seen = []

    def grad_fn(dy, variables=None):
        seen.append(variables)
        return dy * 7, [dy * 11]

    f = linear(grad_fn, v)
    x = pb.tensor([1.0, 1.0])
    assert f(x).tolist() == [2, 3]
    assert pb.grad(f)(x).tolist() == [7, 7]
    assert pb.variable_grads(lambda: f(x).sum()).grads["v"].tolist() == [11, 11]
    assert pb.variable_grads(lambda: f(v).sum()).grads["v"].tolist() == [18, 18]  # as input and as variable
    assert all(s == [v] for s in seen)


def test_custom_gradient_of_variables_second_order():
    v = pb.variable(2.0, name="v")

    @pb.custom_gradient
    def f(x):
        return x * x * v, lambda dy, variables=None: (dy * 2 * x * v, [dy * x * x])

    # d/dv d/dx x² v = 2x;  d/dx d/dv = 2x;  d²/dx² = 2v
    assert pb.variable_grads(lambda: pb.grad(f)(pb.tensor(3.0))).grads["v"].item() == 6.0
    assert pb.grad(lambda x: pb.variable_grads(lambda: f(x)).grads["v"])(3.0) == 6.0
    assert pb.grad(pb.grad(f))(3.0) == 4.0


def test_custom_gradient_of_variable_may_be_none():
    v, w = pb.variable(2.0, name="v"), pb.variable(3.0, name="w")
    f = pb.custom_gradient(lambda x: (x * v * w, lambda dy, **more: (dy, [None, dy * 5])))
    assert pb.variable_grads(lambda: f(pb.tensor(1.0))).grads.keys() == {"w"}


def test_custom_gradient_without_variables_parameter_raises():
    v = pb.variable(2.0, name="speed")
    f = linear(lambda dy: dy, v)
    for call in (
        lambda: f(pb.tensor(1.0)),
        lambda: pb.grad(f)(1.0),
        lambda: pb.variable_grads(lambda: f(pb.tensor(1.0))),
    ):
        with pytest.raises(
            ArgumentError, match=r"reads the trainable variable 'speed', so grad_fn must accept .*'variables'"
        ):
            call()
    v.trainable = False
    assert pb.grad(f)(1.0) == 1.0


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (lambda dy: dy, r"must return \(input_grads, variable_grads\); got Tensor"),
        (lambda dy: (dy, []), r"one gradient for each of 1 variables \(speed\); got 0"),
        (lambda dy: (dy, [dy, dy]), r"one gradient for each of 1 variables \(speed\); got 2"),
        (lambda dy: (dy, [pb.tensor([1.0])]), r"gradient of 'speed' must have its shape \(\), got shape \(1,\)"),
    ],
)
def test_custom_gradient_wrong_variable_gradients_raise(out, message):
    v = pb.variable(2.0, name="speed")
    with pytest.raises(CustomGradientError, match=message):
        pb.grad(linear(lambda dy, variables=None: out(dy), v))(1.0)


# ---- check=True


def test_custom_grad_check_runs_once_per_signature():
    runs = []

    def f(x, y, save):
        runs.append(x.dtype)
        save([x, y])
        return (x * x * y).sum(), lambda dy, saved: [dy * 2 * saved[0] * saved[1], dy * (saved[0] ** 2)]

    checked = pb.custom_grad(f, check=True)
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    assert pb.grads(checked)([x, y])[0].tolist() == [6, 16]
    assert runs.count(np.float64) > 1
    count = len(runs)
    pb.grads(checked)([x * 2, y])
    assert len(runs) == count + 1
    pb.grads(checked)([x[:1], y[:1]])
    assert len(runs) > count + 2


def test_custom_grad_check_reports_each_argument():
    @pb.custom_grad(check=True)
    def f(x, y, save):
        save([x, y])
        return x * y, lambda dy, saved: [dy * saved[1], dy * saved[0] * 2]

    with pytest.raises(
        CustomGradientError, match=r"custom_grad\(f\), check=True: .*'x' agrees; 'y' is off by .* at \[1\]"
    ):
        f(np.array([1.0, 2.0]), np.array([3.0, 3.0]))


def test_custom_grad_check_under_vmap_and_compile():
    def make_cube(factor):
        return pb.custom_grad(lambda x, save: (x**3, lambda dy, saved: dy * factor * x**2), check=True)

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_allclose(pb.vmap(pb.grad(lambda x: make_cube(3.0)(x).sum()))(x), 3 * x**2)
    assert_allclose(pb.grad(lambda x: pb.vmap(make_cube(3.0))(x).sum())(x), 3 * x**2)
    assert_allclose(pb.compile(pb.grad(lambda x: make_cube(3.0)(x).sum()))(x), 3 * x**2)
    with pytest.raises(CustomGradientError, match=r"check=True: .*'x' is off by .* at \[1\]"):
        pb.vmap(make_cube(3.003))(x)
    wrong = pb.compile(pb.grad(lambda x: make_cube(3.003)(x).sum()))
    with pytest.raises(CustomGradientError, match=r"check=True: .*'x' is off by"):
        wrong(x)


# ---- the function itself


def test_custom_grad_keeps_name_and_docstring_and_pickles():
    assert (x_exp_x.__name__, x_exp_x.__doc__) == ("x_exp_x", "x · exp(x), with the exponential saved.")
    assert pickle.loads(pickle.dumps(x_exp_x)) is x_exp_x  # by name, as functions are
    again = pickle.loads(pickle.dumps(pb.custom_grad(triple, check=True)))
    assert (again.__wrapped__, again.check) == (triple, True)
    assert pb.grad(pickle.loads(pickle.dumps(pb.custom_grad(triple))))(1.0) == 3.0


def test_custom_grad_exceptions_do_not_leak_objects():
    def broken(dy, saved):
        raise RuntimeError("boom")

    f = with_gradient(broken)

    def misuse():
        with pytest.raises(RuntimeError, match="boom"):
            pb.grad(f)(1.0)
        with pytest.raises(CapturedError):
            pb.grad(lambda w: pb.custom_grad(lambda x, save: (x * w, lambda dy, saved: dy))(2.0))(1.0)
        pb.grad(pb.grad(x_exp_x))(1.0)

    assert not leaves_objects(misuse, times=30, limit=30)
    assert pb.grad(x_exp_x)(0.0) == 1.0


def test_custom_functions_repr() -> None:
    def f(x: Any) -> Any:
        return x, lambda dy: dy

    assert repr(pb.custom_gradient(f)) == "<custom_gradient f>"
    assert repr(pb.custom_jvp(f)) == "<custom_jvp f>"


def test_variable_gradients_beside_custom_gradient_of_constants() -> None:
    v, twice = pb.variable([1.0, 2.0]), pb.custom_gradient(lambda x: (x * 2, lambda dy: dy * 2))
    value, grads = pb.variable_grads(lambda: np.sum(v * v) + np.sum(twice(np.ones(3))))
    assert value.item() == 11.0
    assert_array_equal(grads[v.name], [2.0, 4.0])


def test_jvp_of_custom_gradient_with_integer_argument() -> None:
    f = pb.custom_gradient(lambda x, n: (x * n, lambda dy: (dy * n, None)))
    assert pb.jvp(lambda x: f(x, np.array(3)), [2.0], [1.0]) == (6.0, 3.0)
