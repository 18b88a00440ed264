"""custom_grad, custom_gradient and custom_jvp in random stacks of transforms, against plain functions."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import CapturedError

WS, SCALES, X = np.array([1.0, 2.0, -1.0]), np.array([0.5, 1.5]), np.array([0.3, 0.7])


def by_gradient(w):
    """w x³, where ``w`` is captured."""
    return pb.custom_grad(lambda x, save: (save([x]) or w * x**3, lambda dy, saved: dy * 3 * w * saved[0] ** 2))


def by_tangent(w):
    return pb.custom_jvp(lambda x: w * x**3, jvp=lambda p, t: (w * p[0] ** 3, 3 * w * p[0] ** 2 * t[0]))


def by_nested_gradient(w):
    @pb.custom_gradient
    def f(x):
        y, slope = w * x**3, 3 * w * x**2

        def first_order(dy):
            return dy * pb.custom_gradient(lambda again: (slope, lambda ddy: ddy * 6 * w * x))(x)

        return y, first_order

    return f


def by_nested_gradient_with_saved(w):
    @pb.custom_grad
    def f(x, save):
        save([x])

        def first_order(dy, saved):
            return dy * pb.custom_grad(lambda t: (3 * w * saved[0] ** 2, lambda ddy: ddy * 6 * w * t))(saved[0])

        return w * x**3, first_order

    return f


def plain(w):
    return lambda x: w * x**3


def in_rule_only(w):
    """x², of which only the gradient uses ``w``."""
    return pb.custom_gradient(lambda x: (x * x, lambda dy: dy * w * x))


def in_rule_only_given(w):
    return lambda x: pb.custom_gradient(lambda x, w: (x * x, lambda dy: (dy * w * x, None)))(x, w)


BASES = [
    lambda make: lambda x: pb.sum(pb.vmap(lambda w: make(w)(x))(WS)),
    lambda make: lambda x: pb.sum(pb.vmap(lambda a: pb.vmap(lambda w: make(w * a)(x))(WS))(SCALES)),
    lambda make: lambda x: pb.sum(make(2.0)(x)),
]
ONE = np.float64(1.0)
LAYERS = {
    "grad": lambda f: lambda x: pb.sum(pb.grad(f, unconnected="zero")(x)),
    "jvp": lambda f: lambda x: pb.jvp(f, [x], [x * 0 + 1.0])[1],
    "hvp": lambda f: lambda x: pb.sum(pb.hvp(f, x, x * 0 + 1.0)),
    "forward": lambda f: lambda x: pb.sum(pb.jacobian(f, "forward")(x)),
    "reverse": lambda f: lambda x: pb.sum(pb.jacobian(f, "reverse")(x)),
    "linearize": lambda f: lambda x: pb.linearize(f, x)[1](x * 0 + 1.0),
    "vjp": lambda f: lambda x: pb.sum(pb.vjp(f, x)[1](ONE)[0]),
    "recompute": lambda f: pb.recompute_grad(f),
    "vmap": lambda f: lambda x: pb.sum(pb.vmap(f)(pb.stack([x, x * 2.0]))),
}


def stack(seed):
    """Return a random stack of transformations, as a function of the one with a gradient of its own."""
    choose = random.Random(seed)
    base, names = choose.choice(BASES), [choose.choice([*LAYERS]) for _ in range(choose.choice([1, 2, 2, 3]))]
    mapped, compiled = choose.random() < 0.3, choose.random() < 0.2

    def build(make):
        f = base(make)
        for name in names:
            f = LAYERS[name](f)
        return f

    def whole(make):
        g = build(make)
        if mapped:
            g = lambda x: pb.vmap(lambda s: build(lambda w: make(w * s))(x))(SCALES)
        return pb.compile(g) if compiled else g

    return whole, names


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_custom_gradients_in_random_stacks_match_plain_functions(seed):
    whole, names = stack(seed)
    expected = whole(plain)(X)
    for make in (by_gradient, by_tangent, by_nested_gradient, by_nested_gradient_with_saved):
        assert_allclose(whole(make)(X), expected, atol=1e-12, err_msg=f"{make.__name__}: {names}")


@pytest.mark.parametrize("seed", range(40, 60))
def test_vmapped_value_captured_by_gradient_function_is_correct_or_raises(seed):
    whole, names = stack(seed)
    expected = whole(in_rule_only_given)(X)
    try:
        got = whole(in_rule_only)(X)
    except CapturedError:
        return
    assert_allclose(got, expected, atol=1e-12, err_msg=str(names))
