"""debug_nans without gradients: plain ops, vmap, functions with custom gradients."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import pullback as pb
from pullback.core.op import list_ops
from pullback.errors import NanError

ZERO = pb.tensor([1.0, 0.0])
V = pb.variable([0.0], name="debugged")


@pytest.mark.parametrize(
    ("call", "op", "named"),
    [
        (lambda: pb.log(ZERO), "log", "the argument x of log"),
        (lambda: ZERO.log(), "log", "the argument x of log"),
        (lambda: np.log(ZERO), "log", "the argument x of log"),
        (lambda: pb.log(np.array([1.0, 0.0])), "log", "the argument x of log"),
        (lambda: pb.log([1.0, 0.0]), "log", "the argument x of log"),
        (lambda: ZERO / 0.0, "div", "the arguments x and y of div"),
        (lambda: 1.0 / ZERO, "div", "the arguments x and y of div"),
        (lambda: np.divide(ZERO, 0.0), "div", "the arguments x and y of divide"),
        (lambda: (ZERO - 1.0).sqrt(), "sqrt", "the argument x of sqrt"),
        (lambda: pb.sum(pb.tensor([3e38, 3e38]), 0), "sum", "the argument x of sum"),
        (lambda: np.mean(pb.tensor([3e38, 3e38]), axis=0), "mean", "the argument a of mean"),
        (lambda: pb.norm(pb.tensor([1e30, 1e30])), "euclidean_norm", "the argument x of norm"),
        (lambda: pb.log(pb.concat([ZERO, ZERO])), "log", "the argument x of log"),
        (lambda: V / V, "div", "the arguments x and y of div"),
    ],
)
def test_debug_nans_plain_op_names_op_line_and_argument(call, op, named):
    with np.errstate(all="ignore"):
        assert call() is not None
    with pb.debug_nans(), pytest.raises(NanError) as caught:
        call()
    report = caught.value.report
    assert (report.op, report.phase) == (op, "forward")
    assert report.line == call.__code__.co_firstlineno
    assert f"It depends on {named}." in str(caught.value)


def test_debug_nans_names_nan_argument():
    x = pb.tensor([1.0, np.nan])
    with pb.debug_nans(), pytest.raises(NanError, match=r"the input itself, x: it holds nan \(index \[1\]\)"):
        x * 2.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: pb.exp(ZERO) + 1.0,
        lambda: pb.softmax(ZERO + np.array([0.0, -np.inf])),
        lambda: pb.tensor([np.nan]),
        lambda: pb.is_nan(pb.tensor([np.nan])),
        lambda: pb.where(pb.is_nan(pb.tensor([np.nan])), 0.0, pb.tensor([np.nan])),
        lambda: pb.special.xlogy(pb.tensor([0.0]), pb.tensor([0.0])),
        lambda: pb.max(pb.tensor([1.0, -np.inf])),
        lambda: pb.argmax(ZERO),
        lambda: np.stack([ZERO, ZERO]),
        lambda: ZERO[0] - ZERO,
        lambda: 2.0 - ZERO,
    ],
)
def test_debug_nans_accepts_finite_results_and_infinite_inputs(call):
    expected = call().numpy()
    with pb.debug_nans():
        np.testing.assert_array_equal(call().numpy(), expected)


def entropy(row, scale=1.0):
    return -pb.sum(row * pb.log(row)) * scale


def test_debug_nans_vmap_names_example_index_and_argument():
    rows = np.array([[0.5, 0.5], [1.0, 0.0]])
    with pb.debug_nans(), pytest.raises(NanError, match="It depends on the argument row of entropy") as caught:
        pb.vmap(entropy)(rows)
    report = caught.value.report
    assert (report.op, report.example, report.index, report.arguments) == ("log", 1, (1,), ["row"])
    with pb.debug_nans():
        assert pb.vmap(entropy)(rows[:1]).shape == (1,)


def test_debug_nans_vmap_ignores_branch_not_chosen():
    safe = lambda x: pb.where(x > 0, pb.log(x), 0.0)
    with pb.debug_nans():
        np.testing.assert_array_equal(pb.vmap(safe)(np.array([1.0, 0.0])), [0.0, 0.0])


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: pb.custom_grad(lambda x: (f(x), lambda dy: dy)),
        lambda f: pb.custom_gradient(lambda x: (f(x), lambda dy: dy)),
        lambda f: pb.custom_jvp(lambda x: f(x)),
        lambda f: pb.recompute_grad(lambda x: f(x)),
        lambda f: pb.straight_through(lambda x: f(x)),
    ],
)
def test_debug_nans_custom_gradient_functions(wrap):
    f = wrap(lambda x: pb.log(x))
    with pb.debug_nans():
        assert f(np.ones(2)).tolist() == [0, 0]
        with pytest.raises(NanError, match="It depends on the argument x of") as caught:
            f(np.array([1.0, 0.0]))
    assert (caught.value.report.op, caught.value.report.index) == ("log", (1,))


def test_debug_nans_names_nonfinite_gradient():
    with pb.debug_nans(), pytest.raises(NanError) as caught:
        pb.grad(lambda p: p["a"] * pb.sqrt(p["b"]))({"a": 1.0, "b": 0.0})
    assert str(caught.value).startswith("Not finite: the gradient of p['b'].")
    with pb.debug_nans(), pytest.raises(NanError, match=r"Not finite: .*the gradient of y\."):
        pb.grads(lambda x, y: x + pb.sqrt(y))([1.0, 0.0])


def test_debug_nans_gradient_function_of_custom_grad():
    f = pb.custom_grad(lambda x: (x * 2, lambda dy: dy / (x - x)))
    with pb.debug_nans(), pytest.raises(NanError, match="the gradient of x") as caught:
        pb.grad(f)(1.0)
    assert caught.value.report.op == "div"


def test_debug_nans_is_off_in_other_threads_and_after_block():
    pb.log(ZERO + 1.0)
    inside, seen = threading.Event(), []

    def other():
        inside.wait()
        with np.errstate(all="ignore"):
            seen.append(pb.log(ZERO).numpy()[1])

    thread = threading.Thread(target=other)
    thread.start()
    with pb.debug_nans():
        inside.set()
        thread.join()
        with pb.debug_nans(), pytest.raises(NanError):
            pb.log(ZERO)
        with pytest.raises(NanError):
            pb.log(ZERO)
    assert seen == [-np.inf]
    assert not any(op.is_observed for op in list_ops())


def test_debug_nans_and_override_gradient_in_any_order():
    straight = {"round": "debugged_straight", "log": "debugged_straight"}
    x = pb.tensor([1.2])
    slope = pb.grad(lambda x: pb.round(x) * 3)
    for _ in range(2):
        with pb.debug_nans(), pb.override_gradient(straight):
            assert slope(x).item() == 3.0
            with pytest.raises(NanError):
                pb.log(ZERO)
        with pb.override_gradient(straight), pb.debug_nans():
            assert slope(x).item() == 3.0
            with pytest.raises(NanError):
                pb.log(ZERO)
        with pb.debug_nans():
            pending = pb.override_gradient(straight)
            pending.__enter__()
        assert slope(x).item() == 3.0
        pending.__exit__(None, None, None)
        assert pb.grad(lambda x: pb.round(x) * 3, unconnected="zero")(x).item() == 0.0
        with np.errstate(all="ignore"):
            assert pb.log(ZERO).numpy()[1] == -np.inf


@pb.register_gradient("debugged_straight")
def straight(op, dy):
    return dy


def test_debug_nans_op_first_used_under_override():
    code = (
        "import numpy as np, pullback as pb\n"
        "pb.register_gradient('same')(lambda op, dy: dy)\n"
        "with pb.override_gradient({'log': 'same'}):\n"
        "    with pb.debug_nans():\n"
        "        try: pb.log(pb.tensor([0.0]))\n"
        "        except pb.errors.NanError: print('found')\n"
        "with np.errstate(all='ignore'): print(pb.log(pb.tensor([0.0])).numpy(), pb.grad(pb.log)(2.0))\n"
        "with pb.debug_nans():\n"
        "    try: pb.log(pb.tensor([0.0]))\n"
        "    except pb.errors.NanError: print('found')\n"
        "with np.errstate(all='ignore'): print(pb.log(pb.tensor([0.0])).numpy(), pb.grad(pb.log)(2.0))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n") == ["found", "[-inf] 0.5", "found", "[-inf] 0.5", ""]
