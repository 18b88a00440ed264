"""custom_grad and custom_gradient: forms of the result, signatures, several values, variables, nesting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pullback as pb
from pullback.errors import ArgumentError, CapturedError, CustomGradientError, GradientMismatchError

X = np.array([0.3, 0.5])


# ---- what the body returns


@dataclass
class Outcome:
    value: Any
    grad_func: Any


class Swapped(NamedTuple):
    gradFunc: Any  # noqa: N815
    value: Any


def triple(dy, saved):
    return dy * 3


@pytest.mark.parametrize("wrap", [pb.custom_grad, pb.custom_gradient])
@pytest.mark.parametrize(
    "result",
    [
        lambda value, grad: (value, grad),
        lambda value, grad: [value, grad],
        lambda value, grad: SimpleNamespace(value=value, grad_func=grad),
        lambda value, grad: SimpleNamespace(value=value, gradFunc=grad),
        lambda value, grad: Outcome(value, grad),
        lambda value, grad: Swapped(grad, value),
        lambda value, grad: {"value": value, "gradFunc": grad},
        lambda value, grad: {"grad_func": grad, "value": value},
        lambda value, grad: {"value": value, "grad_fn": grad},
    ],
)
def test_custom_grad_result_forms(wrap, result):
    f = wrap(lambda x: result(x * x, lambda dy: dy * 3))
    assert pb.value_and_grad(f)(2.0) == (4.0, 3.0)


# ---- save and saved, by signature


class Squaring:
    def __call__(self, x, save):
        save([x])
        return x * x, self.gradient

    def gradient(self, dy, saved):
        return dy * 2 * saved[0]

    def plain(self, x):
        return x * x, lambda dy: dy * 2 * x

    @pb.custom_grad
    def square(self, x):
        return x * x, lambda dy: dy * 2 * x

    @pb.custom_grad
    def square_and_save(self, x, save):
        save({"x": x})
        return x * x, lambda dy, saved: dy * 2 * saved["x"]


def scale_square(scale, x, save):
    save([x])
    return x * x * scale, lambda dy, saved: dy * 2 * saved[0] * scale


def with_positional_only(x, save, /):
    save([x])
    return x * x, lambda dy, saved, /: dy * 2 * saved[0]


def with_save_before_a_default(x, save, scale=1.0):
    save([x])
    return x * x * scale, lambda dy, saved, factor=2.0: dy * factor * saved[0] * scale


def with_optional_save(x, save=None):
    save([x])
    return x * x, lambda dy, saved=None: dy * 2 * saved[0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x * x, lambda dy: dy * 2 * x),
        lambda x, k=2.0: (x * x, lambda dy, k=k: dy * k * x),
        lambda *xs: (xs[0] * xs[0], lambda *dys: dys[0] * 2 * xs[0]),
        lambda x, **options: (x * x, lambda dy, **options: dy * 2 * x),
        lambda x, keep: (keep([x]) or x * x, lambda dy, kept: dy * 2 * kept[0]),
        lambda x, *, save: (save([x]) or x * x, lambda dy, *, saved: dy * 2 * saved[0]),
        lambda *xs, save: (save(xs) or xs[0] * xs[0], lambda *dys, saved: dys[0] * 2 * saved[0]),
        lambda x, save: (save([x]) or x * x, lambda dy: dy * 2 * x),
        lambda x: (x * x, lambda dy, saved: dy * 2 * x if saved == [] else None),
        with_positional_only,
        with_save_before_a_default,
        with_optional_save,
        partial(scale_square, 1.0),
        partial(lambda x, k, save: (save([x]) or x * x, partial(lambda k, dy, saved: dy * k * saved[0], k)), k=2.0),
        Squaring(),
        Squaring().plain,
        Squaring().__call__,
    ],
)
def test_custom_grad_passes_save_and_saved_by_signature(f):
    g = pb.custom_grad(f)
    assert pb.value_and_grad(g)(3.0) == (9.0, 6.0)
    assert pb.grad(pb.grad(g))(3.0) == 2.0


def test_custom_grad_of_methods():
    for method in (Squaring().square, Squaring().square_and_save):
        assert pb.value_and_grad(method)(3.0) == (9.0, 6.0)


# ---- several values


@pytest.mark.parametrize(
    ("f", "pick"),
    [
        (lambda x, save: ([x * 2, x * 3], lambda dy, saved: dy[0] * 20 + dy[1] * 300), lambda r: r),
        (lambda x: ((x * 2, x * 3), lambda dy: dy[0] * 20 + dy[1] * 300), lambda r: r),
        (lambda x: ((x * 2, x * 3), lambda a, b: a * 20 + b * 300), lambda r: r),
        (lambda x: ((x * 2, x * 3), lambda *dys: dys[0] * 20 + dys[1] * 300), lambda r: r),
        (lambda x: ((x * 2, x * 3), lambda a, b, saved: a * 20 + b * 300), lambda r: r),
        (lambda x: ((x * 2, x * 3), lambda a, b, kept: a * 20 + b * 300), lambda r: r),
        (
            lambda x: ({"a": x * 2, "b": x * 3}, lambda dy: dy["a"] * 20 + dy["b"] * 300),
            lambda r: (r["a"], r["b"]),
        ),
    ],
)
def test_custom_grad_of_several_values(f, pick):
    g = pb.custom_grad(f)
    both = lambda x: (lambda a, b: a + b * 10)(*pick(g(x)))
    assert pb.value_and_grad(both)(1.0) == (32.0, 3020.0)
    assert pb.grad(lambda x: pick(g(x))[1])(1.0) == 300.0  # zeros for what is not used
    assert_array_equal(pb.vmap(pb.grad(both))(np.ones(2)), [3020.0, 3020.0])


# ---- keyword arguments, Python numbers


def test_custom_grad_passes_keyword_arguments_through():
    @pb.custom_grad
    def power(x, save, n=2, mode="fast"):
        assert mode == "slow"
        return x**n, lambda dy: dy * n * x ** (n - 1)

    assert pb.value_and_grad(lambda x: power(x, n=3, mode="slow"))(2.0) == (8.0, 12.0)
    with pytest.raises(CapturedError, match=r"the body uses the traced tensor 'n', not one of its inputs"):
        pb.grad(lambda w: power(w, n=w, mode="slow"))(2.0)
    with pytest.raises(ArgumentError, match=r"custom_grad\(power\): save is given to f, not by the caller"):
        power(2.0, save=list.append)


@pytest.mark.parametrize("wrap", [pb.custom_grad, pb.custom_gradient])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_custom_grad_python_numbers_as_value_and_gradient(wrap, dtype):
    f = wrap(lambda x: (3.0, lambda dy: 4))
    value, slope = pb.value_and_grad(f)(dtype(2.0))
    assert (value, slope) == (3.0, 4.0)
    assert value.dtype == slope.dtype == dtype
    assert pb.value_and_grad(f)(2.0) == (3.0, 4.0)
    with pytest.raises(CustomGradientError, match=r"gradient of 'x' must be a tensor of shape \(2,\), got int"):
        pb.grad(f)(np.ones(2))
    with pytest.raises(CustomGradientError, match=r"gradient of 'x' must be a tensor of shape \(\), got complex"):
        pb.grad(wrap(lambda x: (x * x, lambda dy: 4j)))(2.0)


# ---- variables


def with_variable(v, grad_func):
    return pb.custom_grad(lambda x, save: (x * v, grad_func))


def test_custom_grad_gradients_of_captured_variables():
    v = pb.variable(2.0, name="custom_speed")
    seen = []

    def grad_func(dy, saved, variables):
        seen.append(variables)
        return dy * 7, [dy * 11]

    f = with_variable(v, grad_func)
    x = pb.tensor(3.0)
    assert f(x).item() == 6.0
    assert pb.grad(f)(x).item() == 7.0
    assert pb.variable_grads(lambda: f(x)).grads["custom_speed"].item() == 11.0
    assert pb.variable_grads(lambda: pb.vmap(f)(np.ones(3, "float32")).sum()).grads["custom_speed"].item() == 33.0
    assert pb.compile(lambda: pb.variable_grads(lambda: f(x)).grads["custom_speed"])().item() == 11.0
    with pb.GradientTape() as tape:
        y = f(x)
    assert tape.gradient(y, v).item() == 11.0
    assert all(s == [v] for s in seen)


def test_custom_grad_variable_gradients_by_name_and_bare():
    v = pb.variable(2.0, name="custom_rate")
    for more in (lambda dy: {"custom_rate": dy * 5}, lambda dy: dy * 5, lambda dy: (dy * 5,)):
        f = with_variable(v, lambda dy, variables=None, more=more: (dy, more(dy)))
        assert pb.variable_grads(lambda f=f: f(pb.tensor(1.0))).grads["custom_rate"].item() == 5.0


def test_custom_grad_captured_variable_without_gradient_raises():
    v = pb.variable(2.0, name="custom_lost")
    f = with_variable(v, lambda dy, saved: dy)
    assert pb.grad(f)(3.0) == 1.0  # no transform follows it
    for call in (lambda: f(pb.tensor(3.0)), lambda: pb.vmap(f)(np.ones(3, "float32")).sum()):
        with pytest.raises(CapturedError, match=r"the variable 'custom_lost'.*Give grad_func a parameter 'variables'"):
            pb.variable_grads(call)


# ---- check=True for custom_gradient


def test_custom_gradient_check_reports_each_tree_leaf():
    def product(p):
        return p["a"] * p["b"], lambda dy: {"a": dy * p["b"], "b": dy * p["a"] * factor}

    factor = 1.0
    point = {"a": X, "b": X + 1}
    assert_allclose(pb.grad(pb.custom_gradient(product, check=True))(point)["a"], X + 1)
    factor = 2.0
    with pytest.raises(
        GradientMismatchError, match=r"custom_gradient\(product\), check=True: .*'p\['a'\]' agrees; 'p\['b'\]' is off"
    ):
        pb.custom_gradient(check=True)(product)(point)


def test_custom_gradient_check_of_variables_results_and_keywords():
    v = pb.variable(2.0, name="custom_checked")

    def f(x, k=1.0):
        return (x * v * k, x + v), lambda a, b, variables=None: (a * v * k + b, [a * x * k * factor + b])

    factor = 1.0
    pb.custom_gradient(f, check=True)(pb.tensor(3.0), k=5.0)
    factor = 2.0
    with pytest.raises(GradientMismatchError, match=r"'x' agrees; 'custom_checked' is off by"):
        pb.custom_gradient(f, check=True)(pb.tensor(3.0), k=5.0)


def test_custom_gradient_check_skips_missing_gradients():
    f = pb.custom_gradient(lambda x, y: (x * y, lambda dy: (dy * y, None)), check=True)
    assert f(2.0, 3.0) == 6.0


# ---- captured values of vmap and compile


def make_capturing(w):
    return pb.custom_grad(lambda x, save: (x * w, lambda dy, saved: dy * w))


WS = np.array([1.0, 2.0])


def test_custom_grad_captures_vmapped_value():
    assert_array_equal(pb.vmap(lambda w: make_capturing(w)(2.0))(WS), [2, 4])
    assert_array_equal(pb.vmap(lambda w: pb.grad(make_capturing(w))(2.0))(WS), WS)
    assert_array_equal(pb.vmap(lambda w: pb.jvp(make_capturing(w), [2.0], [3.0])[1])(WS), 3 * WS)
    assert_array_equal(pb.vmap(lambda w: pb.recompute_grad(lambda x: x * w)(2.0))(WS), [2, 4])
    assert_array_equal(pb.vmap(lambda w: pb.custom_gradient(lambda x: (x * w, lambda dy: dy))(w))(WS), WS**2)


def test_custom_grad_captures_vmapped_value_inside_grad_and_jvp():
    f = lambda x: pb.vmap(lambda w: make_capturing(w)(x))(WS)
    assert pb.grad(lambda x: np.sum(f(x)))(2.0) == 3.0
    assert_array_equal(pb.jvp(f, [np.float64(2)], [np.float64(1)])[1], WS)
    assert_array_equal(pb.jacobian(f, "forward")(2.0), WS)
    twice = lambda x: pb.vmap(lambda a: pb.vmap(lambda w: make_capturing(w * a)(x))(WS))(np.array([1.0, 10.0]))
    assert pb.grad(lambda x: np.sum(twice(x)))(2.0) == 33.0
    assert pb.grad(pb.grad(lambda x: np.sum(f(x) ** 2)))(2.0) == 10.0


def test_custom_grad_captures_value_inside_compile():
    doubled = pb.compile(lambda w: make_capturing(w)(2.0))(WS)
    assert isinstance(doubled, np.ndarray)
    assert_array_equal(doubled, [2, 4])
    assert pb.compile(lambda w: pb.grad(make_capturing(w[0]))(2.0))(WS) == 1.0
    assert_array_equal(pb.compile(lambda w: pb.vmap(lambda w: pb.grad(make_capturing(w))(2.0))(w))(WS), WS)


def test_custom_gradient_of_constant_inside_compile():
    square = pb.custom_gradient(lambda x: (x * x, lambda dy: dy * 2 * x))
    assert_array_equal(pb.compile(lambda x: square(2.0) * x)(WS), [4, 8])


def test_custom_grad_captured_differentiated_value_raises_under_vmap():
    with pytest.raises(CapturedError, match="the traced tensor 'w'"):
        pb.grad(lambda ws: np.sum(pb.vmap(lambda w: make_capturing(w)(2.0))(ws)))(WS)
    left_behind = lambda x: pb.vmap(lambda w: pb.custom_grad(lambda x: (x * 2, lambda dy: dy * w))(x))(WS)
    with pytest.raises(CapturedError, match="the gradient function uses the traced tensor 'w'"):
        pb.grad(lambda x: np.sum(left_behind(x)))(2.0)


# ---- a second derivative by a custom gradient inside the gradient function, as in TensorFlow


@pb.custom_gradient
def fused_cube(x):
    """x³, with a second derivative of 7 x instead of 6 x, to tell it."""
    y, slope = x**3, 3 * x**2

    def first_order(dy):
        @pb.custom_gradient
        def first_order_custom(unused_x):
            return slope, lambda ddy: ddy * 7 * x

        return dy * first_order_custom(x)

    return y, first_order


@pb.custom_grad
def saved_cube(x, save):
    save([x])

    def first_order(dy, saved):
        inner = pb.custom_grad(lambda t, save: (3 * saved[0] ** 2, lambda ddy, none: ddy * 7 * saved[0]))
        return dy * inner(saved[0])

    return x**3, first_order


@pytest.mark.parametrize("cube", [fused_cube, saved_cube])
def test_nested_custom_gradient_sets_second_derivative(cube):
    assert pb.grad(cube)(2.0) == 12.0
    assert pb.grad(pb.grad(cube))(2.0) == 14.0
    assert pb.grad(pb.grad(pb.grad(cube)))(2.0) == 7.0
    assert pb.grad(pb.grad(lambda x: cube(x) ** 2))(2.0) == 2 * 12**2 + 2 * 8 * 14
    total = lambda x: np.sum(cube(x))
    assert_allclose(pb.hessian(total)(X), np.diag(7 * X))
    assert_allclose(pb.hvp(total, X, np.ones(2)), 7 * X)
    assert pb.jvp(pb.grad(cube), [2.0], [1.0]) == (12.0, 14.0)
    assert pb.jvp(lambda x: pb.jvp(cube, [x], [1.0])[1], [2.0], [1.0]) == (12.0, 14.0)
    assert_allclose(pb.vmap(pb.grad(pb.grad(cube)))(X), 7 * X)
    assert_allclose(pb.grad(lambda x: np.sum(pb.vmap(pb.grad(cube))(x)))(X), 7 * X)
    assert_allclose(pb.compile(pb.grad(lambda x: np.sum(pb.grad(total)(x))))(X), 7 * X)


def test_nested_custom_gradient_with_gradient_tapes():
    x = pb.tensor(2.0)
    with pb.GradientTape() as outer:
        outer.watch(x)
        with pb.GradientTape() as inner:
            inner.watch(x)
            y = fused_cube(x)
        slope = inner.gradient(y, x)
    assert outer.gradient(slope, x).item() == 14.0


def test_nested_custom_gradient_capturing_dy_raises():
    @pb.custom_gradient
    def f(x):
        def first_order(dy):
            inner = pb.custom_gradient(lambda t: (dy * 3 * x**2, lambda ddy: ddy * dy * 6 * x))
            return inner(x)

        return x**3, first_order

    with pytest.raises(CapturedError, match="the body uses the traced tensor 'dy'"):
        pb.grad(pb.grad(lambda x: f(x) ** 2))(2.0)


def test_nested_custom_gradient_capturing_input_raises():
    @pb.custom_gradient
    def f(x):
        y = pb.sin(x)
        inner = lambda dy: pb.custom_gradient(lambda t: (t * x, lambda ddy: ddy * x))(y)
        return y, inner

    with pytest.raises(CapturedError, match="the traced tensor 'x'"):
        pb.grad(pb.grad(f))(2.0)


def test_nested_custom_gradient_capturing_input_with_tangent_raises():
    def f(x, w):
        @pb.custom_gradient
        def cube(x):
            inner = pb.custom_gradient(lambda t: (3 * w * x**2, lambda ddy: ddy * 6 * w * x))
            return w * x**3, lambda dy: dy * inner(x)

        return pb.grad(cube)(x)

    assert pb.jvp(lambda x: f(x, 2.0), [2.0], [1.0]) == (24.0, 24.0)
    with pytest.raises(CapturedError, match="the traced tensor 'w'"):
        pb.jvp(f, [2.0, 2.0], [1.0, 1.0])
