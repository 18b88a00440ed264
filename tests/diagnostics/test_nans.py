"""diagnose and debug_nans: the op, the user's line and the index where a NaN or infinity began."""

from __future__ import annotations

import importlib.util
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, NanError

HERE = Path(__file__)


def line(mark: str) -> str:
    """``file.py:12`` of the line that ends with a comment saying ``mark``."""
    for number, text in enumerate(HERE.read_text("utf-8").splitlines(), 1):
        if text.endswith(f"# {mark}"):
            return f"{HERE.name}:{number}"
    raise AssertionError(mark)


# ---- programs with something wrong in them


def log1pexp(x):
    e = pb.exp(x)  # overflow
    y = 1 + e
    return pb.log(y)


def unchosen_root(x):
    root = pb.sqrt(x)  # unchosen root
    return pb.where(x > 0, root, 0.0).sum()


def bad_distance(x):
    squares = (x * x).sum()
    return pb.sqrt(squares)  # distance


def three_halves(x):
    y = x**1.5  # three halves
    return y.sum()


def logs_in_vmap(x):
    def one(row):
        shifted = row - 1.0
        return pb.log(shifted).sum()  # logs in vmap

    return pb.vmap(one)(x).sum()


def roots_of_one(row):
    return (2.0 * pb.sqrt(row)).sum()  # roots of one


@pb.custom_grad
def body_divides(x, save):
    save([x])
    y = x / (x - 1.0)  # body divides
    return y, lambda dy, saved: dy


@pb.custom_grad
def gradient_divides(x, save):
    save([x])

    def back(dy, saved):
        (x,) = saved
        return dy * x / x  # gradient divides

    return x * x, back


@pb.custom_gradient
def nested_gradient(x):
    def back(dy):
        return dy * pb.log(x)  # nested gradient

    return pb.exp(x) * 1.0, back


def assign_infinity(x):
    y = x * 2.0
    y[2] = 1.0 / (y[2] - y[2])  # assigned
    return y.sum()


def square_repeatedly(x):
    for _ in range(12):
        x = x * x  # doubling
    return x.sum()


def power(x):
    return (x**0.5).sum()  # power


def through_a_mask(x):
    ratio = 1.0 / x  # through a mask
    return (pb.where(x == 0, 0.0, ratio) * 1.0).sum()


def stop_in_log(x):
    return (x * pb.log(pb.stop_gradient(x) - 1.0)).sum()  # stopped


def tangent(x):
    return pb.jvp(lambda x: pb.sqrt(x).sum(), [x], [np.ones(3)])[1]  # tangent


def recompute_root(x):
    @pb.recompute_grad
    def inner(x):
        return pb.sqrt(x)  # recomputed

    return inner(x).sum()


def on_a_tape(x):
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = pb.log(x)  # on a tape
    return tape.gradient(y, x).sum()


ONES = np.array([1.0, 2.0, 3.0])
AT_ZERO = np.array([4.0, 0.0, 9.0])
BIG = np.ones(200_000)
BIG[123_456] = 0.0

# function, input, mark of the line, op, phase, index, example
PLANTED: dict[str, tuple[Callable[..., Any], Any, str, str, str, tuple[int, ...], Any]] = {
    "forward overflow": (log1pexp, 1000.0, "overflow", "exp", "forward", (), None),
    "in float32": (log1pexp, np.array([1, 100], np.float32), "overflow", "exp", "forward", (1,), None),
    "backward only": (unchosen_root, AT_ZERO, "unchosen root", "sqrt", "backward", (1,), None),
    "backward only, scalar": (bad_distance, np.zeros(3), "distance", "sqrt", "backward", (), None),
    "second order": (pb.grad(three_halves), AT_ZERO, "three halves", "pow", "backward", (1,), None),
    "second order, of the gradient of the gradient": (
        pb.grad(lambda x: pb.grad(three_halves)(x).sum()), AT_ZERO, "three halves", "pow", "backward", (1,), None,
    ),
    "inside vmap": (logs_in_vmap, np.array([[2.0, 3.0], [5.0, 1.0]]), "logs in vmap", "log", "forward", (1,), 1),
    "vmap of grad": (
        pb.vmap(pb.grad(roots_of_one)), np.array([[1.0, 4.0], [1.0, 9.0], [0.0, 1.0]]),
        "roots of one", "sqrt", "backward", (0,), 2,
    ),
    "grad of vmap": (
        lambda x: pb.vmap(roots_of_one)(x).sum(), np.array([[1.0, 4.0], [1.0, 0.0]]),
        "roots of one", "sqrt", "backward", (1,), 1,
    ),
    "body of custom_grad": (lambda x: body_divides(x).sum(), ONES, "body divides", "div", "forward", (0,), None),
    "gradient of custom_grad": (
        lambda x: gradient_divides(x).sum(), AT_ZERO, "gradient divides", "div", "backward", (1,), None,
    ),
    "gradient of custom_gradient": (
        lambda x: nested_gradient(x).sum(), AT_ZERO, "nested gradient", "log", "backward", (1,), None,
    ),
    "in place": (assign_infinity, ONES, "assigned", "div", "forward", (), None),
    "a loop": (square_repeatedly, np.array([1.0, 2.0]), "doubling", "mul", "forward", (1,), None),
    "a power": (power, AT_ZERO, "power", "sqrt", "backward", (1,), None),
    "masked in the program, NaN in the backward pass": (
        through_a_mask, AT_ZERO, "through a mask", "div", "forward", (1,), None,
    ),
    "after stop_gradient": (stop_in_log, ONES, "stopped", "log", "forward", (0,), None),
    "a tangent": (tangent, AT_ZERO, "tangent", "sqrt", "forward", (1,), None),
    "recomputed": (recompute_root, AT_ZERO, "recomputed", "sqrt", "backward", (1,), None),
    "a GradientTape inside": (on_a_tape, AT_ZERO, "on a tape", "log", "backward", (1,), None),
    "a big array": (unchosen_root, BIG, "unchosen root", "sqrt", "backward", (123_456,), None),
}  # fmt: skip


@pytest.mark.parametrize(("f", "x", "mark", "op", "phase", "index", "example"), PLANTED.values(), ids=PLANTED)
def test_diagnose_reports_op_line_and_index(f, x, mark, op, phase, index, example):
    report = pb.diagnose(f)(x)
    assert report.found
    assert (report.op, report.phase, report.where) == (op, phase, line(mark))
    assert (report.index, report.example) == (index, example)
    assert f"{report.file.rpartition('/')[2]}:{report.line}" == report.where
    assert not np.isfinite(report.output)
    assert report.where in str(report)
    assert report.suggestion in str(report)
    assert report.chain[0].where == report.where


def test_diagnose_log1pexp_forward_and_backward():
    report = pb.diagnose(log1pexp)(1000.0)
    assert (report.forward.op, report.forward.inputs, report.forward.output) == ("exp", [1000.0], np.inf)
    assert (report.backward.op, report.backward.where) == ("exp", line("overflow"))
    assert report.backward.operands == [0.0, np.inf]
    assert np.isnan(report.backward.output)
    assert "softplus" in report.suggestion
    assert "custom" in report.suggestion
    assert report.chain == [("exp", "forward", line("overflow")), ("exp", "backward", line("overflow"))]
    assert "0 * inf = nan" in str(report)


def test_diagnose_reports_line_in_user_library(tmp_path: Path):
    (tmp_path / "mylib.py").write_text("import numpy as np\n\n\ndef entropy(p):\n    return -np.sum(p * np.log(p))\n")
    spec = importlib.util.spec_from_file_location("mylib", tmp_path / "mylib.py")
    assert spec is not None
    assert spec.loader is not None
    mylib = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mylib)
    report = pb.diagnose(lambda p: mylib.entropy(p) * 2.0)(np.array([0.5, 0.5, 0.0]))
    assert (report.op, report.where, report.index) == ("log", "mylib.py:5", (2,))


def test_diagnose_variables():
    w = pb.variable([1.0, 0.0], name="w")
    loss = lambda: pb.sqrt(w).sum()  # a variable
    report = pb.diagnose(loss)()
    assert (report.op, report.where, report.index) == ("sqrt", line("a variable"), (1,))
    assert "the gradient of w" in str(report)
    report = pb.diagnose(lambda: pb.variable_grads(loss).grads["w"])()
    assert (report.op, report.where, report.index) == ("sqrt", line("a variable"), (1,))


def test_diagnose_trees_and_several_arguments():
    f = lambda p, k: {"loss": (pb.log(p["a"]) * k).sum(), "more": p["b"]}  # trees
    report = pb.diagnose(f)({"a": AT_ZERO, "b": 1.0}, 2.0)
    assert (report.op, report.where, report.index) == ("log", line("trees"), (1,))
    assert "the value[0]" in report.bad
    assert "the gradient of p['a']" in report.bad
    assert "the gradient of p['b']" not in report.bad


def test_diagnose_nan_in_input():
    report = pb.diagnose(lambda x: (x * 2.0).sum())(np.array([1.0, np.nan]))
    assert (report.op, report.index) == ("input", (1,))
    assert "input itself, x: it holds nan" in str(report)
    report = pb.diagnose(lambda p: p["a"] * p["b"])({"a": 1.0, "b": np.inf})
    assert "input itself, p['b']: it holds inf" in str(report)


def test_diagnose_nonfinite_constant():
    weights = np.array([1.0, np.inf])
    report = pb.diagnose(lambda x: (x * weights).sum())(np.ones(2))
    assert (report.op, report.index) == ("mul", (1,))
    assert "An operand was NaN or infinite before" in report.suggestion


def test_diagnose_nan_of_unknown_origin():
    report = pb.diagnose(lambda x: float("nan"))(1.0)
    assert (report.found, report.bad, report.op) == (True, ["the value"], "")
    assert "not computed from the arguments" in str(report)


def test_diagnose_complex_numbers():
    report = pb.diagnose(lambda z: pb.log(z))(np.array([1j, 0j]))
    assert (report.op, report.index) == ("log", (1,))
    assert "log of 0" in report.suggestion


def test_diagnose_finite_function():
    report = pb.diagnose(lambda x: pb.where(x > 0, pb.log(pb.where(x > 0, x, 1.0)), 0.0).sum())(AT_ZERO)
    assert not report
    assert (report.found, report.op, report.chain, report.forward) == (False, "", [], None)
    assert str(report) == "No NaN and no infinity, neither in the value nor in the gradients."


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (log1pexp, 1000.0, "softplus"),
        (lambda x: pb.exp(x) * 2.0, 1000.0, "overflows float64 above 709.8"),
        (lambda x: pb.log(x), 0.0, "log of 0"),
        (lambda x: pb.log(x), -1.0, "log of a number below 0"),
        (lambda x: np.log((np.exp(x) / np.sum(np.exp(x)))[0]), np.array([-800.0, 0.0]), "pb.log_softmax"),
        (lambda x: pb.sqrt(x), -1.0, "negative"),
        (lambda x: pb.sqrt(x), 0.0, "infinite"),
        (bad_distance, np.zeros(3), "pb.norm"),
        (lambda x: 1.0 / x, 0.0, "Division by zero"),
        (lambda x: x / 1e-300, 1e300, "too large"),
        (lambda x: x**1.5, -1.0, "integer power"),
        (lambda x: x**-1.5, 0.0, "infinite"),
        (lambda x: pb.asin(x), 2.0, "domain"),
        (lambda x: pb.asin(x), 1.0, "slope"),
        (unchosen_root, AT_ZERO, "strong_zero"),
        (
            square_repeatedly,
            np.array([2.0]),
            "too large for float64 (up to 1.8e+308): scale it down, or work with logarithms.",
        ),
        (lambda x: x * x, np.float32(1e30), "or use float64"),
        (lambda x: pb.rsqrt(x), 0.0, "Division by zero"),
        (lambda x: np.sum(np.where(x >= 0, 1 / x, x)), np.array([1.0, 0.0]), "Division by zero"),
        (lambda x: np.fmod(1.0, x), 0.0, "fmod has no finite value there: keep its input away from that point"),
        (lambda x: np.sum(np.linalg.eigh(np.diag(x))[1]), np.ones(3), "is not finite there: keep its input away"),
    ],
)
def test_diagnose_suggestions(f, x, message):
    assert message in pb.diagnose(f)(x).suggestion


def test_diagnose_rejects_non_functions():
    with pytest.raises(ArgumentError, match=r"diagnose\(f\): f must be a function, got int"):
        pb.diagnose(3)


def test_diagnose_is_off_after_error():
    def broken(x):
        raise RuntimeError("boom")

    for call in (pb.diagnose(broken), pb.grad(broken)):
        with pytest.raises(RuntimeError, match="boom"), pb.debug_nans(), pb.strong_zero():
            call(1.0)
    with np.errstate(all="ignore"):
        assert np.isnan(pb.grad(unchosen_root)(AT_ZERO)[1])


# ---- debug_nans


W = pb.variable([1.0, 0.0], name="watched weights")
CALLS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "grad": (lambda: pb.grad(unchosen_root)(AT_ZERO), "sqrt", "unchosen root"),
    "grads": (lambda: pb.grads(lambda x, y: unchosen_root(x) * y)([AT_ZERO, 2.0]), "sqrt", "unchosen root"),
    "value_and_grad": (lambda: pb.value_and_grad(log1pexp)(1000.0), "exp", "overflow"),
    "value_and_grads": (lambda: pb.value_and_grads(log1pexp)([1000.0]), "exp", "overflow"),
    "second order": (lambda: pb.grad(lambda x: pb.grad(three_halves)(x).sum())(AT_ZERO), "pow", "three halves"),
    "vmap": (lambda: pb.vmap(pb.grad(roots_of_one))(np.array([[1.0], [0.0]])), "sqrt", "roots of one"),
    "custom": (lambda: pb.grad(lambda x: gradient_divides(x).sum())(AT_ZERO), "div", "gradient divides"),
    "variable_grads": (lambda: pb.variable_grads(lambda: unchosen_root(W)), "sqrt", "unchosen root"),
    "jvp": (lambda: pb.jvp(bad_distance, [np.zeros(3)], [np.ones(3)]), "sqrt", "distance"),
    "vjp": (lambda: pb.vjp(unchosen_root, AT_ZERO)[1](1.0), "sqrt", "unchosen root"),
    "linearize": (lambda: pb.linearize(bad_distance, np.zeros(3))[1](np.ones(3)), "sqrt", "distance"),
    "jacobian": (lambda: pb.jacobian(roots_of_one)(AT_ZERO), "sqrt", "roots of one"),
    "hvp": (lambda: pb.hvp(three_halves, AT_ZERO, np.ones(3)), "pow", "three halves"),
    "hessian": (lambda: pb.hessian(three_halves)(AT_ZERO), "pow", "three halves"),
    "sparse_jacobian": (lambda: pb.sparse_jacobian(roots_of_one)(AT_ZERO), "sqrt", "roots of one"),
    "sparse_hessian": (lambda: pb.sparse_hessian(three_halves)(AT_ZERO), "pow", "three halves"),
}
ORDERS: dict[str, tuple[Callable[[], Any], str]] = {
    "grad": (lambda: pb.grad(unchosen_root)(AT_ZERO), "the derivative of sqrt"),
    "linearize": (lambda: pb.linearize(bad_distance, np.zeros(3))[1](np.ones(3)), "the derivative of sqrt"),
    "forward jacobian": (lambda: pb.jacobian(pb.sqrt, "forward")(AT_ZERO), "the derivative of sqrt"),
    "hvp": (lambda: pb.hvp(three_halves, AT_ZERO, np.ones(3)), "the second derivative of pow"),
    "hessian": (lambda: pb.hessian(three_halves)(AT_ZERO), "the second derivative of pow"),
}


@pytest.mark.parametrize(("call", "message"), ORDERS.values(), ids=ORDERS)
def test_debug_nans_reports_order_of_derivative(call, message):
    with pytest.raises(NanError, match=message) as caught, pb.debug_nans():
        call()
    assert caught.value.report.op == message.split()[-1]


@pytest.mark.parametrize(("call", "op", "mark"), CALLS.values(), ids=CALLS)
def test_debug_nans_error_names_op_and_line(call, op, mark):
    with pytest.raises(NanError, match=rf"{op} at {line(mark)}"), pb.debug_nans():
        call()


def root_on_tape():
    with pb.GradientTape() as tape:
        y = (pb.sqrt(W) * 2.0).sum()  # recorded root
    return tape.gradient(y, W)


def overflow_on_tape(x):
    with pb.GradientTape() as tape:
        tape.watch(x)
        e = pb.exp(x)  # recorded overflow
        y = pb.log(1 + e) + x * x
    return tape.gradient(y, x)


def weighted_root(a, b):
    return pb.sum(pb.sqrt(b) * a)


ZERO = np.array([0.0, 1.0])


@pytest.mark.parametrize(
    ("call", "result"),
    {
        "grad": (lambda: pb.grad(weighted_root, argnums=1)(ZERO, ZERO), "the gradient of b"),
        "grad by name": (lambda: pb.grad(weighted_root, argnames="b")(ZERO, b=ZERO), "the gradient of b"),
        "grad by both": (lambda: pb.grad(weighted_root, argnums=(0, 1))(ZERO, ZERO), "the gradient of b"),
        "jacobian": (lambda: pb.jacobian(weighted_root, argnums=1)(ZERO, ZERO), "the derivative by b"),
        "jacobian of one argument": (lambda: pb.jacobian(lambda b: pb.sqrt(b))(ZERO), "the derivative by b"),
        "hessian": (lambda: pb.hessian(weighted_root, argnums=1)(ZERO, ZERO), "the derivative by b"),
        "jvp": (lambda: pb.jvp(weighted_root, [ZERO, ZERO], [ZERO, ZERO + 1]), "the tangent"),
        "jvp argnums": (lambda: pb.jvp(weighted_root, [ZERO, ZERO], [ZERO + 1], argnums=1), "the tangent"),
        "hvp": (lambda: pb.hvp(weighted_root, (ZERO, ZERO), ZERO + 1, argnums=1), "the product for b"),
        "vjp": (lambda: pb.vjp(weighted_root, ZERO, ZERO)[1](1.0), "the gradient of b"),
        "linearize": (lambda: pb.linearize(weighted_root, ZERO, ZERO)[1](ZERO, ZERO + 1), "the result"),
    }.values(),
)
def test_debug_nans_names_argument(call, result):
    with pytest.raises(NanError) as caught, pb.debug_nans():
        call()
    assert str(caught.value).startswith(f"Not finite: {result}.")
    assert re.search(r"depends on the arguments? .*\bb\b.* of ", str(caught.value))


def test_debug_nans_gradient_tape():
    with np.errstate(all="ignore"), pb.debug_nans():
        with pytest.raises(NanError, match=rf"sqrt at {line('recorded root')}, at sqrt\(0\): .*\(index \[1\]\)"):
            root_on_tape()
        with pytest.raises(NanError, match=rf"(?s)program, with exp at {line('recorded overflow')}.*softplus"):
            overflow_on_tape(pb.tensor([1.0, 1000.0]))
        assert overflow_on_tape(pb.tensor([0.0])).tolist() == [0.5]
    with np.errstate(all="ignore"):
        assert root_on_tape().tolist() == [1.0, np.inf]


def test_debug_nans_accepts_finite_gradients():
    with pb.debug_nans():
        assert pb.grad(lambda x: x * x)(3.0) == 6.0
        assert pb.grads(lambda x, y: x * y)([3.0, np.float32(2)]) == [2.0, 3.0]
        assert pb.jvp(pb.square, [3.0], [1.0]) == (9.0, 6.0)


def test_debug_nans_is_local_to_thread_and_block():
    seen = []

    def elsewhere():
        with np.errstate(all="ignore"):
            seen.append(pb.grad(pb.sqrt)(0.0))

    with pb.debug_nans():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    elsewhere()
    assert seen == [np.inf, np.inf]


def test_debug_nans_nan_not_reproduced_in_second_run():
    values = iter([0.0, 1.0])
    f = lambda x: x / next(values)
    with pytest.raises(NanError, match="a second run"), pb.debug_nans():
        pb.grad(f)(1.0)


def test_report_parts_repr():
    report = pb.diagnose(np.log)(np.array([1.0, 0.0]))
    assert re.fullmatch(r"<log \(forward\) at test_nans.py:\d+, index \(1,\): -inf>", repr(report.forward))
    assert re.fullmatch(r"<log \(backward\) at test_nans.py:\d+, index \(1,\): inf>", repr(report.backward))
    assert repr(pb.diagnose(log1pexp)) == "<diagnose of log1pexp>"


def test_debug_nans_of_compiled_function_that_a_transform_follows():
    f = pb.compile(lambda x: np.log(x) * 2)
    with pb.debug_nans(), np.errstate(divide="ignore"):
        with pytest.raises(NanError, match=r"with log at test_nans.py:\d+: log\(0\) = -inf \(a scalar of example 0\)"):
            pb.vmap(f)(np.array([0.0, 1.0]))
        with pb.GradientTape() as tape:
            x = pb.tensor(np.array([0.0]))
            tape.watch(x)
            y = f(x)
        with pytest.raises(NanError, match=r"derivative of log at test_nans.py:\d+"):
            tape.gradient(y, x)


def test_debug_nans_ends_for_pullback_that_is_called_after_its_block():
    with pb.debug_nans():
        _, back = pb.vjp(np.log, np.array([1.0]))
        with pytest.raises(NanError):
            back(np.array([np.nan]))
    assert np.isnan(back(np.array([np.nan]))[0])
