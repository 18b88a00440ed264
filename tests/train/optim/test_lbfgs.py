"""L-BFGS: SciPy's steps with gradients from here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import train
from pullback.errors import ArgumentError, CompileError, GradientError, MissingPackageError, UnconnectedError


def rosenbrock(x: Any) -> Any:
    return pb.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_lbfgs_minimizes_variables() -> None:
    x, y = pb.variable(np.array([-1.2, 1.0, 0.5])), pb.variable(np.array(4.0))
    frozen = pb.variable(np.array(3.0), trainable=False)
    cost = train.lbfgs(200).minimize(lambda: rosenbrock(x) + (y - frozen) ** 2, return_cost=True)
    np.testing.assert_allclose(x.numpy(), 1.0, atol=1e-4)
    np.testing.assert_allclose(y.numpy(), 3.0, atol=1e-4)
    assert float(cost) < 1e-8
    assert float(frozen) == 3.0


def test_lbfgs_compute_gradients_equals_variable_grads() -> None:
    v = pb.variable(np.array([1.0, 2.0]), name="lbfgs_v")
    value, grads = pb.train.lbfgs().compute_gradients(lambda: np.sum(v**2))
    assert value == 5.0
    np.testing.assert_array_equal(grads["lbfgs_v"], [2.0, 4.0])


def test_lbfgs_var_list_and_float32() -> None:
    a, b = pb.variable([1.0, 2.0]), pb.variable(1.0)
    assert train.lbfgs().minimize(lambda: ((a - b) ** 2).sum(), [a]) is None
    np.testing.assert_allclose(a.numpy(), 1.0, atol=1e-5)
    assert (float(b), a.dtype) == (1.0, np.float32)


def test_lbfgs_solves_trees() -> None:
    params = {"x": np.array([-1.2, 1.0]), "y": [2.0, 3.0], "z": 1.0}
    found = train.lbfgs().solve(lambda p: rosenbrock(p["x"]) + (p["y"] ** 2).sum() + (p["z"] - 2.0) ** 2, params)
    np.testing.assert_allclose(found.params["x"], 1.0, atol=1e-4)
    np.testing.assert_allclose(found.params["y"], 0.0, atol=1e-4)
    assert [type(v) for v in found.params.values()] == [np.ndarray, list, float]
    assert found.converged
    assert 0 < found.iterations <= 100
    assert found.value < 1e-8
    assert params["z"] == 1.0


def test_lbfgs_max_iterations_does_not_converge() -> None:
    found = train.lbfgs(max_iterations=2).solve(rosenbrock, np.array([-1.2, 1.0]))
    assert not found.converged
    assert found.iterations == 2
    assert "ITERATIONS" in found.message.upper()


def test_lbfgs_exception_restores_variables() -> None:
    x, calls = pb.variable(np.array([-1.2, 1.0])), []

    def f() -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyError("stop")
        return rosenbrock(x)

    with pytest.raises(KeyError):
        train.lbfgs().minimize(f)
    assert x.tolist() == [-1.2, 1.0]


def test_lbfgs_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pb.variable(np.array([1.0]))
    with pytest.raises(ArgumentError, match="max_iterations must be a number of 1 or more, got 0"):
        train.lbfgs(0)
    with pytest.raises(ArgumentError, match=r"history must be a whole number, got 1\.5"):
        train.lbfgs(history=1.5)  # type: ignore[arg-type]
    with pytest.raises(UnconnectedError, match="read 0 trainable variables"):
        train.lbfgs().minimize(lambda: pb.tensor(1.0))
    with pytest.raises(GradientError, match="a parameter is int64; only floats can be trained"):
        train.lbfgs().solve(lambda n: n * 1.0, np.arange(3))
    with pytest.raises(CompileError, match="compile the function f instead"):
        pb.compile(lambda: train.lbfgs().minimize(lambda: pb.sum(x)))()
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pullback\[scipy\]'"):
        train.lbfgs().minimize(lambda: pb.sum(x * x))
