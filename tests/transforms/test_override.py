"""register_gradient and override_gradient: another gradient for an op, in a block of code."""

from __future__ import annotations

import importlib
from itertools import count
from threading import Barrier, Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import ArgumentError, CapturedError, CustomGradientError, GradientError, UnconnectedError

_number = count()


def register_fresh(fn):
    """Return a fresh name for a gradient."""
    name = f"test_override_{next(_number)}"
    pb.register_gradient(name)(fn)
    return name


TEN = register_fresh(lambda op, dy: dy * 10)
HUNDRED = register_fresh(lambda op, dy: dy * 100)


def test_override_applies_in_block_only():
    f = pb.grad(lambda x: pb.sin(x))
    assert f(0.0) == 1
    with pb.override_gradient({"sin": TEN}):
        assert f(0.0) == 10
        assert pb.value_and_grad(lambda x: pb.sin(x))(0.5).value == np.sin(0.5)
    assert f(0.0) == 1


def test_override_guided_backpropagation():
    @pb.register_gradient("test_override guided relu")
    def guide(op, dy):
        return pb.where(pb.logical_and(op.inputs[0] > 0, dy > 0), dy, dy * 0)

    x, dy = np.array([-1.0, 1.0, 3.0]), np.array([1.0, -1.0, 2.0])
    with pb.override_gradient({"relu": "test_override guided relu"}):
        assert pb.grad(lambda x: pb.relu(x))(x, dy).tolist() == [0, 0, 2]
    assert pb.grad(lambda x: pb.relu(x))(x, dy).tolist() == [0, -1, 2]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: pb.mul(x, 3.0),
        lambda x: x * 3.0,
        lambda x: 3.0 * x,
        lambda x: x.mul(3.0),
        lambda x: np.multiply(x, 3.0),
        lambda x: np.full(2, 3.0) * x,
        lambda x: pb.multiply(x, 3.0),
    ],
)
def test_override_applies_to_functions_methods_and_operators(use):
    name = register_fresh(lambda op, dy: (dy * 10, dy * 100))
    x = np.ones(2)
    before = pb.grad(use)(x)
    for key in ("mul", "multiply"):
        with pb.override_gradient({key: name}):
            got = pb.grad(use)(x)
        assert set(got.tolist()) <= {10.0, 100.0}
        assert pb.grad(use)(x).tolist() == before.tolist() == [3, 3]


def test_override_gradient_receives_op_call():
    seen = []

    def record_call(op, dy):
        seen.append((op.name, [t.shape for t in op.inputs], [t.shape for t in op.outputs], op.attrs))
        return dy.sum() * pb.exp(op.inputs[0]) * 0 + 1

    name = register_fresh(record_call)
    with pb.override_gradient({"sum": name}):
        pb.grad(lambda x: pb.sum(x, axis=1, keepdims=True))(np.ones((2, 3)))
        pb.grad(lambda x: x.sum(0))(np.ones((2, 3)))
    assert seen == [
        ("sum", [(2, 3)], [(2, 1)], {"axis": 1, "keepdims": True}),
        ("sum", [(2, 3)], [(3,)], {"axis": 0, "keepdims": False}),
    ]


def test_override_variadic_op():
    name = register_fresh(lambda op, dy: [t * 0 + i for i, t in enumerate(op.inputs)])
    with pb.override_gradient({"concat": name}):
        got = pb.grads(lambda *xs: pb.concat(xs))([np.ones(1), np.ones(2), np.ones(3)])
    assert [g.tolist() for g in got] == [[0], [1, 1], [2, 2, 2]]


def test_override_op_without_derivative():
    with pb.override_gradient({"round": TEN}):
        assert pb.grad(lambda x: pb.round(x))(1.2) == 10


def test_override_keeps_results_of_plain_arrays():
    with pb.override_gradient({"exp": TEN, "add": register_fresh(lambda op, dy: [dy, dy])}):
        assert_allclose(pb.exp(np.ones(2)), np.e)
        assert pb.add(1.0, 2.0) == 3
        assert isinstance(pb.exp(np.ones(2)), np.ndarray)
        assert pb.exp(pb.tensor(0.0)).item() == 1


def test_override_blocks_nest():
    f = pb.grad(lambda x: pb.sin(x) + pb.cos(x))
    with pb.override_gradient({"sin": TEN}):
        with pb.override_gradient({"sin": HUNDRED, "cos": TEN}):
            assert f(0.0) == 110
        assert f(0.0) == 10
    assert f(0.0) == 1


def test_override_ends_after_error_in_block():
    with pytest.raises(RuntimeError, match="boom"), pb.override_gradient({"sin": TEN}):
        raise RuntimeError("boom")
    assert pb.grad(lambda x: pb.sin(x))(0.0) == 1


def test_override_higher_orders():
    name = register_fresh(lambda op, dy: dy * op.inputs[0] ** 3)
    second = register_fresh(lambda op, dy: dy * op.outputs[0])
    with pb.override_gradient({"sin": name, "exp": second}):
        assert pb.grad(pb.grad(lambda x: pb.sin(x)))(2.0) == 12
        assert pb.grad(pb.grad(pb.grad(lambda x: pb.sin(x))))(2.0) == 12
        assert pb.grad(pb.grad(pb.grad(lambda x: pb.exp(x))))(0.5) == pytest.approx(np.exp(0.5))


def test_override_forward_mode():
    with pb.override_gradient({"sin": TEN}):
        assert pb.jvp(lambda x: pb.sin(x), [np.float64(0)], [np.float64(3)])[1] == 30


def test_override_none_is_missing_gradient():
    name = register_fresh(lambda op, dy: (dy, None))
    with pb.override_gradient({"mul": name}):
        assert pb.grads(lambda x, y: x * y, unconnected="none")([2.0, 3.0]) == [1.0, None]
        with pytest.raises(UnconnectedError, match="Cannot compute gradient"):
            pb.grads(lambda x, y: x * y)([2.0, 3.0])


def test_override_is_local_to_thread():
    barrier, seen = Barrier(2), []
    f = pb.grad(lambda x: pb.sin(x))

    def other():
        barrier.wait()
        seen.append(f(0.0))  # while the main thread overrides
        with pb.override_gradient({"sin": HUNDRED}):
            barrier.wait()
            barrier.wait()  # the main thread has left its block
            seen.append(f(0.0))
        seen.append(f(0.0))

    thread = Thread(target=other)
    thread.start()
    with pb.override_gradient({"sin": TEN}):
        barrier.wait()
        assert f(0.0) == 10
        barrier.wait()
        assert f(0.0) == 10
    assert f(0.0) == 1
    barrier.wait()
    thread.join()
    assert seen == [1, 100, 1]


def test_override_flags_its_op_in_block_only():
    with pb.override_gradient({"tan": TEN}):
        assert pb.tan.op.is_observed
        assert not pb.sin.op.is_observed
    assert not pb.tan.op.is_observed


# ---- cells that are run twice

CELL = """
@pb.register_gradient("{name}")
def {function}(op, dy):
    return dy * {factor}
"""


def run_cell(function, factor, module="__main__"):
    """Run a notebook's cell; each run has a file name of its own, and there is no such file."""
    text = CELL.format(name="test_override cell", function=function, factor=factor)
    code = compile(text, f"/tmp/ipykernel_1/{next(_number)}.py", "exec")
    exec(code, {"pb": pb, "__name__": module})


def derivative(name):
    with pb.override_gradient({"sin": name}):
        return pb.grad(lambda x: pb.sin(x))(0.0)


def test_register_gradient_replaces_one_from_edited_notebook_cell():
    for function, factor in (("first", 2), ("first", 2), ("first", 3), ("renamed", 4)):
        run_cell(function, factor)
        assert derivative("test_override cell") == factor
    with pytest.raises(GradientError, match=r"the name 'test_override cell' is taken \(\d+\.py:2\)\. Choose another"):
        run_cell("first", 5, module="elsewhere")
    assert derivative("test_override cell") == 4


def test_register_gradient_replaces_one_from_same_line():
    def register(factor):
        pb.register_gradient("test_override line")(lambda op, dy: dy * factor)

    for factor in (2, 3):
        register(factor)
        assert derivative("test_override line") == factor
    with pytest.raises(GradientError, match="the name 'test_override line' is taken"):
        pb.register_gradient("test_override line")(lambda op, dy: dy)


def test_register_gradient_from_reloaded_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "gradients_of_a_module.py"
    path.write_text("import pullback as pb\n" + CELL.format(name="test_override module", function="own", factor=2))
    module = importlib.import_module("gradients_of_a_module")
    path.write_text("import pullback as pb\n\n" + CELL.format(name="test_override module", function="own", factor=33))
    importlib.reload(module)
    assert derivative("test_override module") == 33


def test_override_flags_are_cleared_after_error():
    with pytest.raises(ZeroDivisionError), pb.override_gradient({"sin": TEN, "cos": TEN}):
        1 / 0
    assert (pb.grad(lambda x: pb.sin(x))(0.0), pb.grad(lambda x: pb.cos(x))(0.0)) == (1, 0)


# ---- bad input


def test_register_gradient_rejects_taken_name():
    with pytest.raises(GradientError, match=rf"the name '{TEN}' is taken \(test_override\.py:\d+\)"):
        pb.register_gradient(TEN)(lambda op, dy: dy)
    assert pb.grad(lambda x: pb.sin(x))(0.0) == 1
    with pytest.raises(ArgumentError, match="the name must be text, got int"):
        pb.register_gradient(3)
    with pytest.raises(ArgumentError, match="expected a function, got int"):
        pb.register_gradient("test_override number")(3)


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        ({"sinn": TEN}, r"no op named 'sinn'\. Did you mean .*'sin'"),
        ({"sin": "test_overide_0"}, r"no gradient named 'test_overide_0'\. Did you mean .*'test_override_0'"),
        ({"sin": "qqq"}, r"no gradient named 'qqq'\. Register it with pb\.register_gradient"),
        (["sin"], "expected a dict of op names to names of gradients, got list"),
    ],
)
def test_override_unknown_name_suggests_near_ones(gradients, message):
    with pytest.raises((GradientError, ArgumentError), match=message), pb.override_gradient(gradients):
        pass
    assert pb.grad(lambda x: pb.sin(x))(0.0) == 1


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda op, dy: dy, "expected 2 gradients, one for each input; got 1"),
        (lambda op, dy: (dy, dy.sum()), r"gradient of 'y' must have its shape \(2,\), got shape \(\)"),
        (lambda op, dy: (3, dy), r"gradient of 'x' must be a tensor of shape \(2,\), got int"),
        (lambda op, dy: (np.ones(2, int), dy), r"gradient of 'x' must be a float like float64, got int64"),
    ],
)
def test_override_checks_gradient_shape_and_dtype(fn, message):
    name = register_fresh(fn)
    match = rf"gradient '{name}' of mul: .*{message}.*test_override\.py"
    with pb.override_gradient({"mul": name}), pytest.raises(CustomGradientError, match=match):
        pb.grads(lambda x, y: x * y)([np.ones(2), np.ones(2)])


def test_override_reports_captured_tensors():
    def f(x):
        kept = x * 2
        with pb.override_gradient({"sin": register_fresh(lambda op, dy: dy * kept)}):
            return pb.sin(x)

    with pytest.raises(CapturedError, match="'kept'"):
        pb.grad(f)(1.0)
