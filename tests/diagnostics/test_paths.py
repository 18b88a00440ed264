"""explain: why a gradient is missing or zero, the op where the path ends, and its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pullback as pb

HERE = Path(__file__)
X = np.array([1.0, 2.0])
OUTSIDE = np.array([1.0, 2.0])


@pb.custom_gradient
def no_gradient(x):
    return x * 1.0, lambda dy: None


def line(mark: str) -> str:
    lines = HERE.read_text("utf-8").splitlines()
    return f"{HERE.name}:{1 + next(i for i, text in enumerate(lines) if text.endswith(f'# {mark}'))}"


def missing(x):
    return {
        "stopped": lambda: pb.stop_gradient(x),  # stopped
        "cast": lambda: pb.cast(pb.cast(x, "int32"), "float32"),  # cast
        "compared": lambda: pb.where(x > 1, 1.0, 2.0),  # compared
        "position": lambda: pb.cast(pb.argmax(x), "float32"),  # position
        "custom": lambda: no_gradient(x),  # custom
    }


def flat(x):
    return {
        "rounded": lambda: pb.floor(x),  # rounded
        "relu": lambda: pb.relu(x - 9.0),  # relu
        "clipped": lambda: pb.clip(x, 5.0, 6.0),  # clipped
        "times zero": lambda: x * 0.0,  # times zero
        "times a matrix of zeros": lambda: np.zeros((3, 2)) @ x,  # times a matrix of zeros
        "smaller": lambda: pb.maximum(x, 7.0),  # smaller
        "unchosen": lambda: pb.where(x < 0, x, 1.0),  # unchosen
        "flat": lambda: pb.square(x - x),  # flat
    }


@pytest.mark.parametrize(
    ("what", "op", "why"),
    [
        ("stopped", "stop_gradient", "stop_gradient"),
        ("cast", "cast", "integer cast"),
        ("compared", "greater", "comparison"),
        ("position", "arg_max", "no derivative"),
        ("custom", "custom_gradient(no_gradient)", "no gradient returned"),
    ],
)
def test_explain_cut_path(what, op, why):
    report = pb.explain(lambda x: missing(x)[what]().sum())(X)
    (x,) = report.inputs
    assert (x.name, x.status, x.op, x.why) == ("x", "missing", op, why)
    if what != "custom":  # it is known only in the backward pass that nothing was returned
        assert x.where == line(what)
        assert f"{op} at {line(what)}" in str(report)


@pytest.mark.parametrize(
    ("what", "op", "why"),
    [
        ("rounded", "floor", "rounding"),
        ("relu", "relu", "saturated"),
        ("clipped", "clip_by_value", "saturated"),
        ("times zero", "mul", "multiplied by zero"),
        ("times a matrix of zeros", "matmul", "multiplied by zero"),
        ("smaller", "maximum", "not chosen"),
        ("unchosen", "where", "not chosen"),
        ("flat", "square", "zero derivative"),
    ],
)
def test_explain_zero_gradient(what, op, why):
    report = pb.explain(lambda x: flat(x)[what]().sum())(X)
    (x,) = report.inputs
    assert (x.status, x.op, x.why, x.where) == ("zero", op, why, line(what))
    assert (report.status, report.op, report.where, report.ok) == ("zero", op, line(what), False)


def test_explain_unused_input():
    report = pb.explain(lambda x, y: (y * y).sum())(X, X + 1)
    assert (report["x"].status, report["y"].status) == ("not used", "connected")
    assert "nothing is computed with it" in str(report)


def test_explain_captured_value():
    report = pb.explain(lambda x: (OUTSIDE * pb.tensor(2.0)).sum())(X)
    assert report["x"].status == "not used"
    assert "'OUTSIDE' from outside" in report["x"].reason
    other = pb.tensor([5.0])
    assert "(other)" in pb.explain(lambda x: other * 2.0)(X)["x"].reason


def test_explain_discarded_result():
    def f(x, y):
        pb.exp(x)  # thrown away
        return y * 2.0

    report = pb.explain(f)(X, X)
    assert report["x"].status == "missing"
    assert f"exp at {line('thrown away')}" in report["x"].reason


def test_explain_cancelling_paths():
    report = pb.explain(lambda x: x - x)(X)
    assert (report["x"].status, report["x"].ends) == ("zero", [])
    assert "adds up to zero" in report["x"].reason


def test_explain_connected_inputs():
    report = pb.explain(lambda p, k: (p["a"] * k + pb.relu(p["b"])).sum())({"a": X, "b": np.array([-1.0, 1.0])}, 2.0)
    assert report.ok
    assert [i.name for i in report.inputs] == ["p['a']", "p['b']", "k"]
    assert report["p['b']"].reason == "zero at 1 of 2 elements"
    with pytest.raises(KeyError, match="there is no input 'z'"):
        report["z"]


def test_explain_variables_and_vmap():
    v = pb.variable([1.0, 2.0], name="v")
    report = pb.explain(lambda: pb.floor(v).sum())()
    assert (report["v"].status, report["v"].op) == ("zero", "floor")
    report = pb.explain(lambda x: pb.vmap(lambda r: pb.relu(r - 9.0))(x).sum())(X)
    assert (report["x"].status, report["x"].op) == ("zero", "relu")


def test_explain_input_without_elements():
    assert str(pb.explain(lambda x: np.sum(x))(np.zeros(0))) == "x: connected\n    it has no elements"


def test_explain_unused_input_of_callable_object():
    class Constant:
        def __call__(self, x):
            return np.sum(OUTSIDE)

    assert str(pb.explain(Constant())(X)) == "x: not used\n    nothing is computed with it"
