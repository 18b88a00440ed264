"""An exception inside a transform, tape, compiled function or block: the state afterwards is the one before."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.core.variable import is_watched


def fail(*_):
    raise RuntimeError("of the user's")


def in_tape():
    with pb.GradientTape() as tape:
        tape.watch(pb.tensor(1.0))
        fail()


def in_backward_pass(x):
    return pb.grad(pb.custom_grad(lambda x, save: (x * 1.0, lambda dy, saved: fail())))(x)


def blocks():
    with (
        pb.override_gradient({"sin": "test_after_errors"}),
        pb.default_dtype("float64"),
        pb.debug_nans(),
        pb.strong_zero(),
    ):
        pb.grad(lambda x: fail(pb.sin(x)))(1.0)


X = np.ones((2, 3))
V = pb.variable([1.0, 2.0], name="test_after_errors/v")
FAILING = {
    "grad": lambda: pb.grad(lambda x: fail(x * V.sum()))(X),
    "grad of grad": lambda: pb.grad(lambda x: pb.grad(lambda y: fail(x * y))(x))(2.0),
    "variable_grads": lambda: pb.variable_grads(lambda: fail(V * 2.0)),
    "minimize": lambda: pb.train.adam(0.1).minimize(lambda: fail(V * 2.0)),
    "GradientTape": in_tape,
    "backward pass": lambda: in_backward_pass(2.0),
    "jvp": lambda: pb.jvp(lambda x: fail(x * 2), [X], [X]),
    "vjp": lambda: pb.vjp(lambda x: fail(x * 2), X),
    "linearize": lambda: pb.linearize(lambda x: fail(x * 2), X),
    "vmap": lambda: pb.vmap(lambda x: fail(x * 2))(X),
    "jacobian": lambda: pb.jacobian(lambda x: fail(x * 2))(X[0]),
    "hessian": lambda: pb.hessian(lambda x: fail(x * 2))(X[0]),
    "compile": lambda: pb.compile(lambda x: fail(V.assign_add([1.0, 1.0]) * x[0, :2]))(X),
    "compiled grad": lambda: pb.compile(pb.grad(lambda x: fail(x * 2)))(X),
    "checkpoint": lambda: pb.grad(pb.checkpoint(lambda x: fail(x * 2)))(2.0),
    "blocks": blocks,
    "fit": lambda: pb.sequential([pb.layers.activation(fail, input_shape=[3])]).predict(X),
}


@pb.register_gradient("test_after_errors")
def tenfold(op, dy):
    return dy * 10


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING)
def test_exception_in_transform_restores_state(failing):
    with pytest.raises(RuntimeError, match="of the user's"):
        failing()
    assert not is_watched()
    assert V.level == 0
    assert V.tolist() == [1, 2]
    assert pb.tensor(1.0).dtype == np.float32
    assert pb.grad(lambda x: pb.sin(x))(0.0) == 1
    assert pb.grad(pb.grad(lambda x: x**3))(2.0) == 12
    with np.errstate(all="ignore"):  # debug_nans and strong_zero are off again
        assert np.isnan(pb.grad(lambda x: x * np.log(x * 0.0))(0.0))
    assert pb.variable_grads(lambda: (V * V).sum()).grads["test_after_errors/v"].tolist() == [2, 4]
    assert pb.compile(pb.grad(lambda x: (x * x).sum()))(X).tolist() == (2 * X).tolist()
    assert pb.vmap(lambda x: x.sum())(X).tolist() == [3, 3]
