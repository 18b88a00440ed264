"""recompute_grad and grad_pass_through."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import ArgumentError, CapturedError, CustomGradientError


def f(x, k=3.0):
    """sin² scaled."""
    return pb.sin(x) ** 2 * k


# ---- recompute_grad


def test_value_and_gradient_are_those_of_f():
    g = pb.recompute_grad(f)
    x = np.array([0.5, 1.0])
    assert_allclose(g(x), f(x))
    assert_allclose(pb.grad(g)(x), pb.grad(f)(x))
    assert_allclose(pb.grad(lambda x: g(x * x, k=2.0) * x)(x), pb.grad(lambda x: f(x * x, k=2.0) * x)(x))
    assert pb.checkpoint is pb.recompute_grad


def test_f_runs_again_on_the_way_back():
    runs = []
    g = pb.recompute_grad(lambda x: runs.append(1) or x * x)
    g(pb.tensor(2.0))
    assert len(runs) == 1
    assert pb.grad(g)(2.0) == 4
    assert len(runs) == 3


def test_nothing_but_the_inputs_is_kept():
    layer = lambda x: pb.sin(pb.exp(pb.sin(pb.exp(pb.sin(x)))))

    def kept_by(layer):
        measured = []

        def chain(x):
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(4):
                x = layer(x)
            measured.append(tracemalloc.get_traced_memory()[0] - before)
            return x.sum()

        pb.grad(chain)(np.zeros(5000))
        return measured[0]

    tracemalloc.start()
    try:
        assert kept_by(pb.recompute_grad(layer)) < 0.4 * kept_by(layer)
    finally:
        tracemalloc.stop()


def test_any_order():
    g, h = pb.recompute_grad(f), f
    for _ in range(4):
        g, h = pb.grad(g), pb.grad(h)
        assert g(0.7) == pytest.approx(h(0.7))
    layer = pb.recompute_grad(lambda x: pb.tanh(x) * x)
    twice, plain = lambda x: layer(layer(x)), lambda x: pb.tanh(pb.tanh(x) * x) * (pb.tanh(x) * x)
    assert pb.grad(pb.grad(twice))(0.7) == pytest.approx(pb.grad(pb.grad(plain))(0.7))
    nested = pb.recompute_grad(lambda x: pb.recompute_grad(f)(x) * x)
    assert pb.grad(pb.grad(nested))(0.7) == pytest.approx(pb.grad(pb.grad(lambda x: f(x) * x))(0.7))


def test_forward_mode():
    x, t = np.array([0.5, 1.0]), np.array([1.0, 2.0])
    assert_allclose(pb.jvp(pb.recompute_grad(f), [x], [t])[1], pb.jvp(f, [x], [t])[1])
    one = np.float64(1)
    got = pb.jvp(pb.grad(pb.recompute_grad(f)), [np.float64(0.7)], [one])[1]
    assert got == pytest.approx(pb.grad(pb.grad(f))(0.7))


def test_trees_and_unreached_inputs():
    g = pb.recompute_grad(lambda p: {"a": p["x"] * p["y"], "b": [p["y"] * 2]})
    grads = pb.grads(lambda x, y: g({"x": x, "y": y})["b"][0], unconnected="zero")([2.0, 3.0])
    assert grads == [0.0, 2.0]
    grads = pb.grads(lambda x, y: g({"x": x, "y": y})["a"] * g({"x": x, "y": y})["b"][0])([2.0, 3.0])
    assert grads == [18.0, 24.0]


def test_big_arrays():
    x = np.linspace(0, 1, 80_000)
    assert_allclose(pb.grad(lambda x: pb.recompute_grad(f)(x * 2).sum())(x), 6 * np.sin(4 * x))


def test_variables_that_f_reads():
    v = pb.variable(2.0, name="v")
    g = pb.recompute_grad(lambda x: x * x * v * v)
    x = pb.tensor(3.0)
    assert pb.variable_grads(lambda: g(x)).grads["v"].item() == 36
    assert pb.grad(g)(3.0) == 24
    assert pb.variable_grads(lambda: g(v)).grads["v"].item() == 32  # v⁴
    assert pb.variable_grads(lambda: pb.variable_grads(lambda: g(x)).grads["v"]).grads["v"].item() == 18
    assert pb.variable_grads(lambda: pb.grad(g)(x)).grads["v"].item() == 24
    assert pb.grad(lambda x: pb.variable_grads(lambda: g(x)).grads["v"])(3.0) == 24


def test_variables_have_the_value_of_the_first_run():
    v = pb.variable(2.0, name="v")
    g = pb.recompute_grad(lambda x: x * v)

    def loss():
        y = g(pb.tensor(3.0)) * g(pb.tensor(1.0))
        v.assign(100.0)
        return y

    assert pb.variable_grads(loss).grads["v"].item() == 12  # d/dv 3v² at 2


def test_captured_tensors_are_reported():
    def outer(w):
        scale = w * 2
        return pb.recompute_grad(lambda x: x * scale)(w)

    with pytest.raises(CapturedError, match=r"recompute_grad\(<lambda>\): .* 'scale'"):
        pb.grad(outer)(3.0)


@pytest.mark.parametrize(
    ("wrap", "name"), [(pb.recompute_grad, "recompute_grad"), (pb.grad_pass_through, "grad_pass_through")]
)
def test_faces(wrap, name):
    with pytest.raises(ArgumentError, match=rf"{name}\(f\): f must be a function, got int"):
        wrap(3)
    with pytest.raises(CustomGradientError, match=rf"{name}\(<lambda>\): the value must be a tensor, got str"):
        wrap(lambda x: "text")(1.0)
    assert (wrap(f).__name__, wrap(f).__doc__, wrap(f).__wrapped__) == ("f", "sin² scaled.", f)
    assert pickle.loads(pickle.dumps(wrap(f))).__wrapped__ is f


# ---- grad_pass_through


def test_value_of_f_and_gradient_of_the_identity():
    g = pb.grad_pass_through(lambda x: pb.floor(x) * 5)
    assert pb.value_and_grad(g)(2.7) == (10.0, 1.0)
    assert pb.grad(lambda x: g(x * 3))(2.7) == 3.0
    assert pb.grad(pb.grad(lambda x: g(x) ** 3))(2.7) == 60.0
    assert pb.jvp(g, [np.float64(2.7)], [np.float64(4)])[1] == 4


def test_several_pass_through_side_by_side():
    g = pb.grad_pass_through(lambda x, y: (x * 10, y * y))
    assert pb.grads(lambda x, y: g(x, y)[0] * 3 + g(x, y)[1])([2.0, 5.0]) == [3.0, 1.0]


def test_variables_get_no_gradient_from_it():
    v, w = pb.variable(2.0, name="v"), pb.variable(3.0, name="w")
    g = pb.grad_pass_through(lambda x: x * v)
    grads = pb.variable_grads(lambda: g(w)).grads
    assert {k: d.item() for k, d in grads.items()} == {"w": 1.0}


def test_shapes_must_be_those_of_the_inputs():
    with pytest.raises(
        CustomGradientError, match=r"grad_pass_through\(<lambda>\): .*expected \[\(2,\)\], got \[\(\)\].*test_mod"
    ):
        pb.grad_pass_through(lambda x: x.sum())(np.ones(2))
