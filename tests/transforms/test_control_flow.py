"""scan, while_loop, fori_loop, cond, switch, map: the same eagerly and compiled, under grad, jvp and vmap."""

from __future__ import annotations

import itertools
import os
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pullback as pb
from pullback.compiler.runtime.llvm import llvm_available
from pullback.core import tree
from pullback.errors import (
    ArgumentError,
    BatchedValueError,
    CapturedError,
    GradientError,
    ShapeError,
    SymbolValueError,
    VariableError,
)
from pullback.settings import SAFE

RNG = np.random.default_rng(0)
X = np.array([0.3, -0.7, 1.1])
XS = RNG.normal(size=(7, 3))
W = RNG.normal(size=(3, 3)) / 2
BACKENDS = ["numpy", "llvm"]


def check(f, *args, backends=BACKENDS, rtol=1e-9, atol=1e-12):
    """Compare a function eagerly and compiled."""
    wanted = tree.leaves(f(*args))
    for backend in backends:
        got = tree.leaves(pb.compile(f, backend=backend)(*args))
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)
            assert np.asarray(a).dtype == np.asarray(b).dtype


def count_loops(f, *args):
    """How many loops there are in the program of a function, and how many nodes besides."""
    nodes = pb.compile(f, backend="numpy").lower(*args).graph.nodes
    return sum(n.kind.has_bodies for n in nodes), len(nodes)


def recurrence(x, w=W, xs=XS, **options):
    def step(h, x):
        h = np.tanh(h @ w + x)
        return h, (h * x).sum()

    return pb.scan(step, x, xs, **options)


def loss(x, w=W, xs=XS, **options):
    h, ys = recurrence(x, w, xs, **options)
    return (h**3).sum() + (ys * np.arange(len(ys))).sum()


# ---- scan


def test_scan_matches_numpy_loop():
    h, ys = X, []
    for x in XS:
        h = np.tanh(h @ W + x)
        ys.append((h * x).sum())
    for f in (recurrence, pb.compile(recurrence), pb.compile(recurrence, backend="numpy")):
        last, rows = f(X)
        assert_allclose(last, h)
        assert_allclose(rows, ys)


def test_scan_reverse_stacks_results_in_input_order():
    total, ys = pb.scan(lambda c, x: (c + x, c), 0.0, np.arange(4.0), reverse=True)
    assert total == 6
    assert_allclose(ys, [6, 5, 3, 0])
    check(lambda x: recurrence(x, reverse=True), X)


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 3}, {"recompute": True}])
def test_scan_gradients_of_carry_xs_and_captured_value(options):
    check(lambda x, w, xs: pb.grads(lambda x, w, xs: loss(x, w, xs, **options))([x, w, xs]), X, W, XS)


def test_scan_gradient_matches_finite_differences():
    pb.check_grads(lambda x, w: loss(x, w), [X, W], order=2)
    compiled = pb.compile(pb.grad(lambda w: loss(X, w)))(W)
    step = 1e-6
    moved = (loss(X, W + step) - loss(X, W - step)) / (2 * step)
    assert_allclose(compiled.sum(), moved, rtol=1e-5)


def test_scan_second_order():
    check(lambda w: pb.grad(lambda w: (pb.grad(lambda w: loss(X, w))(w) ** 2).sum())(w), W)
    check(lambda x: pb.hessian(loss)(x), X)
    check(lambda x: pb.hvp(loss, x, np.ones(3)), X)


def test_scan_jvp_and_grad_of_jvp():
    check(lambda x: pb.jvp(loss, [x], [np.ones(3)]), X)
    check(lambda x: pb.grad(lambda x: pb.jvp(loss, [x], [np.ones(3)])[1])(x), X)
    check(lambda w: pb.jvp(lambda w: recurrence(X, w), [w], [np.ones((3, 3))]), W)


def test_scan_vmap_in_both_orders():
    many = RNG.normal(size=(4, 3))
    check(lambda xs: pb.vmap(recurrence)(xs), many)
    check(lambda xs: pb.vmap(pb.grad(loss))(xs), many)
    check(lambda xs: pb.grad(lambda xs: pb.vmap(loss)(xs).sum())(xs), many)
    check(lambda xs: pb.vmap(lambda xs: loss(X, xs=xs))(xs), RNG.normal(size=(4, 7, 3)))
    check(lambda w: pb.vmap(pb.vmap(lambda w: loss(X, w)))(w), RNG.normal(size=(2, 2, 3, 3)))


def test_scan_compiled_is_traced_once():
    runs = itertools.count()

    def step(c, x):
        next(runs)
        return c * x, None

    pb.compile(lambda xs: pb.scan(step, 1.0, xs)[0])(np.ones(50))
    assert next(runs) <= 2  # once more where the carry begins with a Python number


def test_scan_program_does_not_grow_with_steps():
    gradient = pb.grads(lambda x, xs: loss(x, xs=xs))
    few = count_loops(lambda x, xs: gradient([x, xs]), X, XS)
    many = count_loops(lambda x, xs: gradient([x, xs]), X, np.concatenate([XS] * 20))
    assert few[0] == many[0] == 2
    assert few == many


def test_scan_carry_python_number_takes_dtype_of_step():
    total, _ = pb.compile(lambda xs: pb.scan(lambda c, x: (c + x, None), 0.0, xs))(np.ones(3, np.float32))
    assert total == 3
    assert total.dtype == np.float32
    check(lambda xs: pb.scan(lambda n, x: (n + 1, n * x), 0, xs), XS)


def test_scan_integer_carry_and_dict_in_other_order():
    def step(c, x):
        return {"n": c["n"] + 1, "total": c["total"] + c["n"] * x.sum()}, c["n"]

    check(lambda xs: pb.scan(step, {"total": np.float64(0), "n": np.int32(0)}, xs), XS)
    fibonacci = lambda c, _: ({"b": c["a"] + c["b"], "a": c["b"]}, c["a"])
    check(lambda x: pb.scan(fibonacci, {"a": x[0], "b": x[1]}, length=9), X)


def test_scan_xs_none_and_y_none():
    check(lambda x: pb.scan(lambda c, _: (np.sin(c), None), x, length=5), X)
    check(lambda x: pb.grad(lambda x: pb.scan(lambda c, _: (np.sin(c), None), x, length=5)[0].sum())(x), X)


def test_scan_zero_length():
    f = lambda x, xs: recurrence(x, xs=xs)
    for run in (f, pb.compile(f)):
        h, ys = run(X, XS[:0])
        assert_allclose(h, X)
        assert ys.shape == (0,)
    check(lambda x: pb.grad(lambda x: loss(x, xs=XS[:0]))(x), X)


def test_scan_nested():
    def outer(x, xs):
        return pb.scan(lambda c, row: pb.scan(lambda d, y: (d * np.cos(y) + row, d.sum()), c, row), x, xs)

    check(outer, X, XS)
    check(lambda x, xs: pb.grads(lambda x, xs: sum(z.sum() for z in outer(x, xs)))([x, xs]), X, XS)


def test_scan_grad_inside_of_step():
    slope = pb.grad(lambda h: (h**3).sum())
    check(lambda x, xs: pb.scan(lambda h, x: (h - 0.1 * slope(h) + x, None), x, xs), X, XS)
    check(lambda x: pb.grad(lambda x: pb.scan(lambda h, x: (h - 0.1 * slope(h) + x, None), x, XS)[0].sum())(x), X)


def test_scan_variables_get_gradients():
    v = pb.variable(W, name="recurrent")

    def gradients(x):
        return pb.variable_grads(lambda: loss(x, v)).grads["recurrent"]

    assert_allclose(pb.compile(gradients)(X), gradients(X))


def test_scan_assignment_in_compiled_step_raises():
    v = pb.variable(0.0)

    def step(c, x):
        v.assign_add(1.0)
        return c + x, None

    with pytest.raises(VariableError, match="carry"):
        pb.compile(lambda xs: pb.scan(step, 0.0, xs)[0])(np.ones(3))
    pb.scan(step, 0.0, np.ones(3))
    assert float(v) == 3


def test_scan_stop_gradient_in_step():
    check(lambda x: pb.grad(lambda x: pb.scan(lambda c, y: (c * pb.stop_gradient(c) + y, None), x, XS)[0].sum())(x), X)


def test_scan_custom_gradient_in_step():
    @pb.custom_grad
    def clipped(x):
        return x * 1.0, lambda dy: pb.clip_by_value(dy, -0.1, 0.1)

    check(lambda x: pb.grad(lambda x: pb.scan(lambda c, y: (clipped(c) * y, None), x, XS)[0].sum())(x), X)
    check(
        lambda x: pb.grad(lambda x: pb.scan(lambda c, y: (pb.scale_gradient(c, 0.5) * y, None), x, XS)[0].sum())(x), X
    )


def test_scan_rejects_custom_gradient_with_captured_tensor():
    def f(w):
        @pb.custom_gradient
        def scaled(x):
            return x * w, lambda dy: dy * w

        return pb.scan(lambda c, y: (scaled(c) + y, None), X, XS)[0].sum()

    with pytest.raises(CapturedError, match="Pass it as an input"):
        pb.compile(f)(np.ones(3))


def test_scan_step_with_host_op():
    def step(c, y):
        return np.linalg.pinv(np.eye(3) * 2 + np.outer(c, c)) @ y, c

    check(lambda x: pb.scan(step, x, XS), X)
    check(lambda x: pb.grad(lambda x: pb.scan(step, x, XS[:2])[0].sum())(x), X)


def test_scan_draws_of_steps_differ():
    f = pb.compile(lambda x: pb.scan(lambda c, _: (c, pb.random.normal([2])), x, length=4)[1])
    rows = f(X)
    assert len(np.unique(rows)) == rows.size


def test_scan_same_result_twice_and_unchanged_carry():
    check(lambda x, xs: pb.scan(lambda c, y: ((c[0] + y, c[1]), (c[0], c[0], c[1])), (x, x * 2), xs), X, XS)
    check(lambda x, xs: pb.scan(lambda c, y: ((c[1], c[0]), y), (x, x * 2), xs), X, XS)


def test_scan_constant_and_captured_results():
    check(lambda x, xs: pb.scan(lambda c, y: (c + y, (np.ones(2), x)), x, xs), X, XS)


@pytest.mark.skipif(not llvm_available() or SAFE in os.environ, reason="there is no disk cache")
def test_scan_program_is_loaded_from_disk_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    wanted = pb.grad(loss)(X)
    for is_cached in (False, True):
        compiled = pb.compile(pb.grad(loss))
        assert_allclose(compiled(X), wanted)
        assert ("write" not in compiled.lower(X).stats) == is_cached  # the time in which LLVM text was written


def test_scan_carry_shape_change_names_leaf():
    for run in (lambda f: f(X), lambda f: pb.compile(f)(X)):
        with pytest.raises(ShapeError, match=r"carry\['h'\] changes in a step, from \(3,\) to \(3, 3\)"):
            run(lambda x: pb.scan(lambda c, _: ({"h": np.outer(c["h"], c["h"])}, None), {"h": x}, length=2))


def test_scan_carry_dtype_change_names_leaf():
    for run in (lambda f: f(X), lambda f: pb.compile(f)(X)):
        with pytest.raises(ArgumentError, match=r"dtype of carry\[1\] changes in a step, from int64 to float64"):
            run(lambda x: pb.scan(lambda c, _: ((c[0], c[1] + 0.5), None), (x, np.arange(2)), length=2))


def test_scan_carry_structure_change():
    with pytest.raises(ArgumentError, match="structure of the carry changes"):
        pb.scan(lambda c, x: ((c, c), None), X, XS)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: pb.scan(lambda c, x: c, X, XS), ArgumentError, r"pair \(carry, y\)"),
        (lambda: pb.scan(lambda c, x: (c, x), X), ArgumentError, "length must say"),
        (lambda: pb.scan(lambda c, x: (c, x), X, XS, length=3), ShapeError, "7 elements along axis 0 but length is 3"),
        (lambda: pb.scan(lambda c, x: (c, x), X, (XS, X)), ShapeError, r"xs\[0\] has 7 .* but xs\[1\] has 3"),
        (lambda: pb.scan(lambda c, x: (c, x), X, 1.0), ShapeError, "xs is a number"),
        (lambda: pb.scan(None, X, XS), ArgumentError, "f must be a function"),
        (lambda: pb.scan(lambda c, x: (c, x), X, XS, unroll=0), ArgumentError, "unroll must be a positive integer"),
        (lambda: pb.map(lambda x: x, None), ArgumentError, "no arrays"),
        (lambda: pb.fori_loop(0, 2.5, lambda i, c: c, X), ArgumentError, "hi must be one integer, got float"),
        (lambda: pb.while_loop(lambda c: c > 0, lambda c: c, X), ShapeError, "one bool"),
        (lambda: pb.cond(X > 0, np.sin, np.cos, X), ShapeError, "one bool"),
        (lambda: pb.switch(0.5, [np.sin], X), ArgumentError, "one integer"),
        (lambda: pb.switch(0, [], X), ArgumentError, "no branches"),
    ],
)
def test_control_flow_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


# ---- map and fori_loop


def test_map_stacks_trees():
    check(lambda xs: pb.map(lambda x: {"outer": np.outer(x, x), "sum": x.sum()}, xs), XS)
    check(lambda xs: pb.grad(lambda xs: pb.map(lambda x: np.sin(x).sum() ** 2, xs).sum())(xs), XS)


def test_fori_loop_matches_python_loop():
    def f(x):
        return pb.fori_loop(2, 6, lambda i, c: c * i + np.sin(x), x)

    h = X
    for i in range(2, 6):
        h = h * i + np.sin(X)
    assert_allclose(f(X), h)
    check(f, X)
    check(lambda x: pb.grad(lambda x: f(x).sum())(x), X)
    assert pb.fori_loop(3, 1, lambda i, c: c + 1, 5) == 5


def test_fori_loop_takes_limits_that_are_arguments_of_a_compiled_function():
    def f(x, n):
        return pb.fori_loop(1, n, lambda i, c: np.sin(c) * x + i, x, max_steps=9)

    slope = pb.grad(lambda x, n: f(x, n).sum(), argnums=0)
    tangent = lambda x, n: pb.jvp(lambda x: f(x, n), [x], [np.ones_like(x)])[1]
    for g in (f, slope, tangent):
        compiled, each = pb.compile(g), pb.vmap(g, in_axes=(None, 0))
        for n in (0, 2, 5, 30):  # the last one is more than max_steps
            assert_allclose(compiled(X, n), g(X, n))
        numbers = np.array([1, 4, 2])
        assert_allclose(each(X, numbers), np.stack([g(X, n) for n in numbers]))
        assert_allclose(pb.compile(each)(X, numbers), each(X, numbers))
    with pytest.raises(ShapeError, match="fori_loop: the shape of carry changes"):
        pb.compile(lambda n: pb.fori_loop(0, n, lambda i, c: c[:1], np.ones(2)))(2)
    with pytest.raises(ArgumentError, match="fori_loop: hi must be one integer, got float64"):
        pb.compile(lambda n: pb.fori_loop(0, n, lambda i, c: c, 0))(2.5)


# ---- while_loop


def grow(x, **options):
    return pb.while_loop(lambda x: (x * x).sum() < 100.0, lambda x: x * 1.5 + W[0], x, **options)


def test_while_loop_matches_python_loop():
    h = X
    while (h * h).sum() < 100:
        h = h * 1.5 + W[0]
    assert_allclose(grow(X), h)
    check(grow, X)
    check(lambda x: grow(x, max_steps=3), X)


def test_while_loop_forward_mode():
    check(lambda x: pb.jvp(grow, [x], [np.ones(3)]), X)


def test_while_loop_reverse_mode_needs_max_steps():
    gradient = pb.grad(lambda x: grow(x).sum())
    assert_allclose(gradient(X), pb.compile(pb.grad(lambda x: grow(x, max_steps=20).sum()))(X))
    with pytest.raises(GradientError, match="max_steps"):
        pb.compile(gradient)(X)


def test_while_loop_vmap_ends_for_each_example():
    single = lambda x: pb.while_loop(lambda c: c[0] < 50.0, lambda c: (c[0] * c[0], c[1] + 1), (x, 0), max_steps=9)
    many = np.array([1.5, 2.0, 60.0, 5.0])
    wanted = [single(x) for x in many]
    values, counts = pb.vmap(single)(many)
    assert_allclose(values, [v for v, _ in wanted])
    assert_allclose(counts, [n for _, n in wanted])
    check(lambda xs: pb.vmap(single)(xs), many)
    check(lambda xs: pb.vmap(pb.grad(lambda x: single(x)[0]))(xs), many)


def test_while_loop_counts_with_captured_limit():
    check(lambda n, x: pb.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1], np.int64(4), X)


# ---- cond and switch


def bend(x):
    return pb.cond(x.sum() > 0, lambda x: np.sin(x) * W[0], lambda x: x * x, x)


@pytest.mark.parametrize("x", [X, -X])
def test_cond_takes_one_branch(x):
    check(bend, x)
    check(lambda x: pb.grad(lambda x: bend(x).sum())(x), x)
    check(lambda x: pb.hessian(lambda x: bend(x).sum())(x), x)
    check(lambda x: pb.jvp(bend, [x], [np.ones(3)]), x)


def test_cond_gradient_of_captured_value():
    f = lambda w, x: pb.cond(x[0] > 0, lambda: (w * x).sum(), lambda: (x * x).sum())
    for x in (X, -X):
        check(lambda w, x: pb.grads(f, unconnected="zero")([w, x]), W[0], x)


def test_cond_untaken_branch_gives_no_nan_gradient():
    f = lambda x: pb.cond(x > 0, lambda: np.log(x), lambda: x * 2)
    assert_allclose(pb.compile(pb.grad(f))(0.0), 2)


def test_cond_vmap_chooses_for_each_example():
    many = RNG.normal(size=(6, 3))
    wanted = [bend(x) for x in many]
    assert_allclose(pb.vmap(bend)(many), wanted)
    check(lambda xs: pb.vmap(bend)(xs), many)
    check(lambda xs: pb.vmap(pb.grad(lambda x: bend(x).sum()))(xs), many)


def test_cond_in_scan():
    f = lambda x, xs: pb.scan(lambda c, y: (pb.cond(y[0] > 0, lambda: c * 0.9, lambda: c + y), c), x, xs)
    check(f, X, XS)
    check(lambda x, xs: pb.grads(lambda x, xs: f(x, xs)[0].sum())([x, xs]), X, XS)


def test_cond_branches_of_different_shapes():
    with pytest.raises(ShapeError, match=r"\(3,\) in one branch and \(\) in another"):
        pb.compile(lambda x: pb.cond(x[0] > 0, lambda: x.sum(), lambda: x))(X)


BRANCHES = [lambda x: x, lambda x: x * x, lambda x: np.exp(x) + 1]


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_switch_takes_nearest_branch(index):
    assert_allclose(pb.switch(index, BRANCHES, X), BRANCHES[min(max(index, 0), 2)](X))
    check(lambda i, x: pb.switch(i, BRANCHES, x), np.int64(index), X)
    check(lambda i, x: pb.grad(lambda x: pb.switch(i, BRANCHES, x).sum())(x), np.int64(index), X)


def test_switch_vmap_by_index():
    f = lambda i, x: pb.vmap(lambda i, x: pb.switch(i, BRANCHES, x))(i, x)
    check(f, np.array([-1, 1, 7, 0]), RNG.normal(size=(4, 3)))


# ---- positions, and recurrent layers


def test_scan_index_out_of_range_raises():
    f = pb.compile(lambda i, x: pb.scan(lambda c, i: (c + x[i], None), 0.0, i)[0])
    assert_allclose(f(np.array([0, -1, 1]), X), X[0] + X[-1] + X[1])
    with pytest.raises(ShapeError, match="5 is out of range"):
        f(np.array([0, 5, 1]), X)


def test_scan_gathers_by_element():
    table = RNG.normal(size=(5, 3))
    f = lambda table, i: pb.grad(lambda t: (pb.scan(lambda c, i: (np.tanh(c + t[i]), None), X, i)[0] ** 2).sum())(table)
    check(f, table, np.array([0, 4, 4, 2]))


@pytest.mark.parametrize("make", [pb.layers.lstm, pb.layers.gru, pb.layers.simple_rnn])
@pytest.mark.parametrize("options", [{}, {"return_sequences": True, "go_backwards": True}])
def test_recurrent_layer_compiles_to_loops(make, options):
    layer = make(4, **options)
    x = RNG.normal(size=(2, 6, 3)).astype(np.float32)
    layer(x)
    gradients = lambda x: pb.variable_grads(lambda: (layer(x) ** 2).sum()).grads
    check(gradients, x, backends=["llvm"], rtol=2e-4, atol=1e-6)
    assert count_loops(gradients, x) == count_loops(gradients, np.concatenate([x] * 5, 1))


WRONG = {
    "cond of None": (lambda: pb.cond(None, lambda: 1.0, lambda: 2.0), "cond: pred must be one bool, got None"),
    "cond of text": (lambda: pb.cond("no", lambda: 1.0, lambda: 2.0), "cond: pred must be one bool, got str"),
    "cond of a function": (lambda: pb.cond(lambda: False, lambda: 1.0, lambda: 2.0), "one bool, got function"),
    "condition without return": (
        lambda: pb.while_loop(lambda x: None, lambda x: x + 1.0, 0.0),
        "while_loop: cond must return one bool, got None",
    ),
    "compiled condition without return": (
        lambda: pb.compile(lambda x: pb.while_loop(lambda x: None, lambda x: x + 1.0, x))(0.0),
        "while_loop: cond must return one bool, got None",
    ),
    "body of fori_loop": (lambda: pb.fori_loop(0, 1, 42, 0), "fori_loop: body must be a function, got int"),
    "limit of text": (lambda: pb.fori_loop("a", 3, lambda i, c: c, 1.0), "fori_loop: lo must be one integer, got str"),
    "negative length": (
        lambda: pb.scan(lambda c, x: (c, c), 1.0, None, length=-1),
        "scan: length must be an integer that is not negative, got -1",
    ),
    "branches of other structures": (
        lambda: pb.compile(lambda x: pb.cond(x > 0, lambda: (x, x), lambda: x))(1.0),
        r"cond: one branch returns one number or array, another a tuple with \[0\], \[1\] in it",
    ),
    "branch without return": (
        lambda: pb.compile(lambda x: pb.cond(x > 0, lambda: None, lambda: x))(1.0),
        "cond: one branch returns one number or array, another None",
    ),
    "f of map": (lambda: pb.map(42, np.ones(2)), "map: f must be a function, got int"),
    "branches": (lambda: pb.switch(0, lambda: 1.0), "switch: branches must be a list of functions, got function"),
    "list of numbers": (
        lambda: pb.scan(lambda c, x: ([c[0] + x, c[1]], None), [1.0, 2.0], np.ones(2)),
        r"from one number or array to a list with \[0\], \[1\] in it. A list of numbers is one array: begin",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_control_flow_rejects_predicate_without_truth_value(name: str) -> None:
    f, message = WRONG[name]
    with pytest.raises(ArgumentError, match=message):
        f()


def test_cond_takes_numbers_variables_and_tensors() -> None:
    for pred in (1, 2.5, np.bool_(True), np.array(3), pb.tensor(True), pb.variable(1.0)):
        assert pb.cond(pred, lambda: 1.0, lambda: 2.0) == 1.0


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop", "cond"])
def test_stop_gradient_in_a_compiled_loop_under_vmap(loop: str) -> None:
    def f(w: Any) -> Any:
        step = lambda c: pb.stop_gradient(c) * w + pb.stop_gradient(pb.stop_gradient(c) + w)
        if loop == "scan":
            return pb.scan(lambda c, x: (step(c) + x, c), np.ones(2), np.ones((3, 2)))[0]
        if loop == "fori_loop":
            return pb.fori_loop(0, 3, lambda i, c: step(c), np.ones(2))
        if loop == "while_loop":
            return pb.while_loop(lambda c: c[0] < 40.0, step, np.ones(2), max_steps=5)
        return pb.cond(w[0] > 1.0, step, lambda c: c * w, np.ones(2))

    ws = np.array([[1.0, 2.0], [1.5, -0.5]])
    for g in (f, pb.grad(lambda w: np.sum(f(w)))):
        np.testing.assert_allclose(pb.compile(pb.vmap(g))(ws), [g(w) for w in ws], 1e-12)


@pytest.mark.parametrize("index", [lambda i: i, lambda i: (i, 0), lambda i: (slice(None), i)])
def test_traced_integer_index_of_numpy_array_error(index: Any) -> None:
    table = np.ones((3, 3))
    with pytest.raises(SymbolValueError, match=r"To pick by it write pb.tensor\(a\)\[i\]"):
        pb.compile(lambda w: pb.fori_loop(0, 3, lambda i, c: c + np.sum(table[index(i)]) * w, 0.0))(2.0)
    with pytest.raises(BatchedValueError, match=r"To pick by it write pb.tensor\(a\)\[i\]"):
        pb.vmap(lambda i: table[index(i)])(np.arange(3))
    assert pb.compile(lambda i: pb.sum(np.array([i, i + 1])))(np.int64(3)) == 7  # an array of traced integers is made


def _root(x: Any) -> Any:
    return pb.cond(x < 1e-3, lambda x: 2.0 * x, np.sqrt, x)


def _root_by_switch(x: Any) -> Any:
    return pb.switch((x > 1e-3).astype(int), [lambda x: 2.0 * x, np.sqrt, np.log], x)


def _roots_until_small(x: Any) -> Any:
    return pb.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, np.sqrt(c[1])), ((x < 1.0) * 5, x), max_steps=9)[1]


def _root_of_captured(x: Any) -> Any:
    y = x * 1.0
    inner = lambda: pb.cond(x > 2.0, lambda: np.log(x), lambda: np.sqrt(y))
    return pb.cond(x < 1e-3, lambda: 2.0 * x, inner) + pb.cond(
        x < 1e-3, lambda: x, lambda: np.array([1.0, x]) @ [y, 1 / x]
    )


def _roots_of_captured_until_small(x: Any) -> Any:
    step = lambda c: (c[0] + 1, c[1] * np.sqrt(x + 0 * c[1]))
    return pb.while_loop(lambda c: c[0] < 2, step, ((x < 1.0) * 5, x), max_steps=9)[1]


def _write_to_captured(x: Any) -> Any:
    def change() -> Any:
        y = np.sqrt(x) * np.ones(2)
        y[0] = np.log(x)
        return y.sum()

    return pb.cond(x < 1e-3, lambda: 3.0 * x, change)


BRANCHING = [
    _root, _root_by_switch, _roots_until_small, _root_of_captured, _roots_of_captured_until_small, _write_to_captured,
]  # fmt: skip


@pytest.mark.parametrize("f", BRANCHING)
def test_branches_not_taken_under_vmap_give_no_nan_gradients(f: Any) -> None:
    x = np.array([0.0, 1.0, 4.0])
    want = [pb.grad(f)(e) for e in x]

    def total(x: Any) -> Any:
        return pb.vmap(f)(x).sum()

    with np.errstate(divide="ignore", invalid="ignore"):
        for found in (pb.grad(total)(x), pb.vmap(pb.grad(f))(x), pb.compile(pb.grad(total))(x)):
            np.testing.assert_allclose(found, want)


def test_branch_not_taken_under_vmap_gives_no_nan_to_shared_values() -> None:
    def f(w: Any, x: Any) -> Any:
        return pb.cond(x > 0, lambda: np.sqrt(w @ np.array([x, 0.0])) + np.sum(w) / x, lambda: np.sum(w))

    w, x = np.array([1.0, 2.0]), np.array([4.0, 0.0])
    want = sum(pb.grad(f, argnums=0)(w, e) for e in x)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_allclose(pb.grad(lambda w: pb.vmap(lambda e: f(w, e))(x).sum())(w), want)


def test_switch_of_one_branch_needs_no_index_when_compiled() -> None:
    assert pb.compile(lambda i, x: pb.switch(i, [lambda x: -x], x))(3, 7.0) == -7.0


def test_while_loop_function_with_unpacked_carry_raises() -> None:
    with pytest.raises(ArgumentError, match=r"while_loop: cond is given the carry as one argument, but takes i, x\."):
        pb.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), [1, 2.0])


def _write_between_uses(x: Any, u: Any) -> Any:
    z = x * 1.0
    before = z * u
    z[0] = x[1]
    return before + z * u


def _write_through_view(x: Any, u: Any) -> Any:
    z = x * 1.0
    part = z[1:]
    before = part * u[1:]
    part += u[:-1]
    return before + part * u[1:] + z[0]


def _write_base_of_view(x: Any, u: Any) -> Any:
    z = x * 1.0
    part = z[1:]
    before = part * u[1:]
    z[1] = x[0] * 3
    return before + part * u[1:]


@pytest.mark.parametrize("step", [_write_between_uses, _write_through_view, _write_base_of_view])
def test_compiled_step_writes_to_value_computed_from_captured_values_only(step: Any) -> None:
    f = lambda x: np.sum(pb.map(lambda u: step(x, u), np.stack([x, x * 2])))
    x = np.arange(3.0) + 1
    several = lambda x: np.stack([x, x + 1])
    for g in (
        f, pb.grad(f), pb.hessian(f), lambda x: pb.jvp(f, [x], [x])[1], lambda x: pb.vmap(pb.grad(f))(several(x)),
        pb.grad(lambda x: np.sum(pb.vmap(f)(several(x)))),
    ):  # fmt: skip
        np.testing.assert_allclose(pb.compile(g)(x), g(x), rtol=1e-12)


def _take_branch(x: Any) -> Any:
    y = np.sqrt(x)
    return pb.cond(x > 0, lambda: y, lambda: 0.0)


def _take_inner_branch(x: Any) -> Any:
    y = np.sqrt(x)
    return pb.cond(x > -1, lambda: pb.cond(x > 0, lambda: y, lambda: x), lambda: 0.0)


def _take_two_branches(x: Any) -> Any:
    y = np.sqrt(x)
    z = pb.cond(x > -1, lambda: y * 2, lambda: y)
    return pb.cond(x > 0, lambda: z, lambda: x * 3) + pb.cond(x > 1, lambda: y * y, lambda: x * x)


def _take_branch_in_scan(x: Any) -> Any:
    y = np.sqrt(x)
    return pb.scan(lambda c, u: (pb.cond(u * x > 1, lambda: c + y, lambda: c * 1.0), None), x, np.arange(4.0))[0]


def _take_no_steps(x: Any) -> Any:
    y = np.sqrt(x)
    step = lambda c: (c[0] + c[1] - y, c[1] * 1.5)
    return pb.while_loop(lambda c: (c[0] > 0) & (c[0] < 4), step, (x, y), max_steps=3)[0]


def _take_branch_of_matrix(x: Any) -> Any:
    v = np.sqrt(np.stack([x, x + 1, x + 2]))
    w = np.outer(v, v)
    w[0, 1] = x
    return pb.cond(x > 0, lambda: np.sum(w @ v) + v[0], lambda: x)


def _take_branch_beside_other_use(x: Any) -> Any:
    y = np.sqrt(x + 1)
    z = np.sqrt(y - 1)
    return y + pb.cond(x > 0, lambda a, b: a * b, lambda a, b: b, z, x)


@pytest.mark.parametrize(
    "f",
    [
        _take_branch, _take_inner_branch, _take_two_branches, _take_branch_in_scan, _take_no_steps,
        _take_branch_of_matrix, _take_branch_beside_other_use,
    ],
)  # fmt: skip
def test_value_used_only_by_untaken_branches_gives_no_nan(f: Any) -> None:
    whole = lambda x: x * x + f(x)
    pull = lambda x: pb.vjp(whole, x)[1](2.0)[0]
    ways = pb.grad(whole), pb.grad(pb.grad(whole)), lambda x: pb.jvp(pb.grad(whole), [x], [1.0])[1], pull
    compiled = pb.compile(lambda x: [g(x) for g in ways])
    for x in (0.0, 0.7, 1.5):
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = [g(x) for g in ways]
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(compiled(x), expected, rtol=1e-12)
    every = np.array([0.0, 0.7, 1.5])
    slopes = np.array([pb.grad(whole)(x) for x in every])
    np.testing.assert_allclose(pb.compile(pb.vmap(pb.grad(whole)))(every), slopes, rtol=1e-12)
    with pb.strong_zero():
        np.testing.assert_allclose(pb.compile(pb.grad(whole))(0.0), slopes[0], rtol=1e-12)


def test_fori_loop_of_no_steps_does_not_run_its_body() -> None:
    def fail(i: Any, c: Any) -> Any:
        raise AssertionError

    assert pb.fori_loop(3, 3, fail, 2.0) == 2.0


def _write_from_step(x: Any, z: Any, u: Any) -> Any:
    z[0] = z[0] + x[1]
    return z * u


def _add_from_step(x: Any, z: Any, u: Any) -> Any:
    z += u
    return z * u


def _write_view_from_step(x: Any, z: Any, u: Any) -> Any:
    part = z[1:]
    part[0] = u[0]
    return z * u


@pytest.mark.parametrize("step", [_write_from_step, _add_from_step, _write_view_from_step])
def test_compiled_step_that_writes_to_outer_array_raises(step: Any) -> None:
    def f(x: Any) -> Any:
        z = x * 1.0
        return np.sum(pb.map(lambda u: step(x, z, u), np.stack([x, x * 2])))

    for g in (f, pb.grad(f), pb.vmap(lambda x: f(np.stack([x, x])))):
        g(np.ones(3))
        with pytest.raises(ArgumentError, match="was made outside of the branch, or of the step of a loop"):
            pb.compile(g)(np.ones(3))


class Counter:
    """An object with state, whose method is a step."""

    def __init__(self) -> None:
        self.count, self.seen = 0, [0]

    def count_up(self, c: Any) -> Any:
        self.count += 1
        return c + self.count

    def note(self, c: Any) -> Any:
        self.seen[0] += 1
        return c + self.seen[0]


def _make_outside_writers() -> dict[str, Any]:
    """Return steps that write to Python objects from outside, by the name of the object in the message."""
    out, results, known, names = np.zeros(3), [], {}, set()
    nested, table, rows = {"a": [np.zeros(2)]}, np.array([None, None]), pb.zeros([2])
    count, counter = 0, Counter()

    def rebind(c: Any) -> Any:
        nonlocal count
        count += 1
        return c + count

    def call_helper(c: Any) -> Any:
        return rebind(c)

    def add(c: Any) -> Any:
        rows[0] += 1
        return c + rows[0]

    return {
        "out": lambda c: (out.__iadd__(1), c + 1)[1],
        "results": lambda c: (results.append(c), c + 1)[1],
        "known": lambda c: (known.setdefault("first", 1), c + 1)[1],
        "names": lambda c: (names.add("first"), c + 1)[1],
        "nested['a'][0]": lambda c: (nested["a"][0].fill(2), c + 1)[1],
        "table": lambda c: (table.fill("x"), c + 1)[1],
        "count": rebind,
        "rebind is followed: count": call_helper,
        "rows": add,
        "self.count": counter.count_up,
        "self.seen": counter.note,
        "argument 0": partial(lambda held, c: (held.append(1), c + 1)[1], []),
    }


OUTSIDE_LOOPS = {
    "scan": lambda f, x: pb.scan(lambda c, _: (f(c), None), x, length=3)[0],
    "map": lambda f, x: pb.map(f, x * np.ones(3)),
    "fori_loop": lambda f, x: pb.fori_loop(0, 3, lambda i, c: f(c), x),
    "while_loop": lambda f, x: pb.while_loop(lambda c: c < 10, f, x),
    "cond": lambda f, x: pb.cond(x > 0, f, lambda c: c, x),
    "switch": lambda f, x: pb.switch((x > 0).astype(int), [f, lambda c: c], x),
}


@pytest.mark.parametrize("loop", OUTSIDE_LOOPS)
@pytest.mark.parametrize("written", _make_outside_writers())
def test_compiled_step_that_writes_to_outer_python_object_raises(written: str, loop: str) -> None:
    step, run = _make_outside_writers()[written], OUTSIDE_LOOPS[loop]
    path = re.escape(written.removeprefix("rebind is followed: "))
    with pytest.raises(ArgumentError, match=f"{loop}: .* writes to '{path}', which was made outside of it"):
        pb.compile(lambda x: run(step, x))(np.float64(1.0))


@pytest.mark.parametrize("loop", OUTSIDE_LOOPS)
def test_compiled_step_made_by_exec_has_no_module(loop: str) -> None:
    made: dict[str, Any] = {}
    exec("def step(c): return c * 2.0", made)
    step, run = made["step"], OUTSIDE_LOOPS[loop]
    assert step.__module__ is None
    assert_allclose(pb.compile(lambda x: run(step, x))(np.float64(1.0)), run(step, np.float64(1.0)))


def test_compiled_fori_loop_of_unknown_length_that_writes_to_outer_object_raises() -> None:
    seen: list[Any] = []
    with pytest.raises(ArgumentError, match="fori_loop: the step writes to 'seen'"):
        pb.compile(lambda x, n: pb.fori_loop(0, n, lambda i, c: (seen.append(i), c * 2)[1], x))(np.float64(1.0), 3)


def test_compiled_step_with_derivative_that_writes_to_outer_object_raises() -> None:
    seen: list[Any] = []

    def square(x: Any) -> Any:
        seen.append(x.shape)
        return x * x

    with pytest.raises(ArgumentError, match="map: the step writes to 'seen'"):
        pb.compile(lambda xs: pb.map(pb.grad(square), xs))(np.ones(3))


def test_compiled_step_writes_to_arrays_and_lists_made_in_it() -> None:
    table, names = np.arange(3.0), ["a", "b"]

    def step(c: Any, x: Any) -> Any:
        own, made = [c], np.zeros(2)
        own.append(x * table[1] * len(names))
        made[0] += 1
        return own[0] + own[1] * made[0], None

    xs = np.ones(4)
    assert pb.compile(lambda xs: pb.scan(step, np.float64(0), xs)[0])(xs) == 8


def test_compiled_branch_that_writes_through_view_of_outer_array_raises() -> None:
    def f(x: Any) -> Any:
        z = x * 1.0
        return pb.cond(x[0] > 0, lambda: _write_view_from_step(x, z, x), lambda: z)

    with pytest.raises(ArgumentError, match="was made outside of the branch, or of the step of a loop"):
        pb.compile(f)(np.ones(3))


def test_compiled_scan_hoists_loop_invariant_values() -> None:
    def f(w: Any, xs: Any) -> Any:
        return np.sum(pb.scan(lambda c, x: (np.tanh(c * np.exp(w) + x), None), w, xs)[0])

    w, xs = np.linspace(-1, 1, 5), np.ones((7, 5))
    program = pb.compile(f).lower(w, xs)
    loop = next(n for n in program.stages.simplified if n.name == "loop")
    assert "exp" not in str(loop.data.body)
    np.testing.assert_allclose(pb.compile(pb.grad(f, argnums=0))(w, xs), pb.grad(f, argnums=0)(w, xs), rtol=1e-12)


@pytest.mark.parametrize("g", [lambda y: np.argmax(y) + 0.5, lambda y: np.floor(y).astype(np.int32) * 1.5])
@pytest.mark.parametrize(
    "run", [lambda g, x: pb.scan(lambda c, _: (c, g(c)), x, x)[1], lambda g, x: pb.cond(x[0] > 2.0, g, g, x)]
)
def test_compiled_body_that_returns_integers_times_python_float(run: Any, g: Any) -> None:
    traced = []

    @pb.compile
    def f(x: Any) -> Any:
        traced.append(x)
        return run(g, x)

    for x in (np.array([3.0, 1.5, 2.0]), np.array([1.0, 4.5, 2.0])):
        expected = run(g, x)
        assert f(x).dtype == expected.dtype
        np.testing.assert_array_equal(f(x), expected)
    assert len(traced) == 1


ROOTS = {
    "custom_gradient": pb.custom_gradient(lambda x: (np.sqrt(x), lambda dy: dy * 0.5 / np.sqrt(x))),
    "recompute_grad": pb.recompute_grad(np.sqrt),
}


@pytest.mark.parametrize("kind", ROOTS)
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: pb.vmap(pb.grad(f)),
        lambda f: pb.grad(lambda x: np.sum(pb.vmap(f)(x))),
        lambda f: lambda x: pb.jvp(pb.vmap(f), [x], [np.ones_like(x)])[1],
        lambda f: pb.vmap(lambda x: pb.jvp(f, [x], [np.ones_like(x)])[1]),
        lambda f: lambda x: np.diagonal(pb.jacobian(pb.vmap(f))(x)),
        lambda f: pb.compile(pb.grad(lambda x: np.sum(pb.vmap(f)(x)))),
    ],
    ids=["vmap of grad", "grad of vmap", "jvp of vmap", "vmap of jvp", "jacobian of vmap", "compiled"],
)
def test_functions_with_own_gradient_in_branches_of_vmap(kind: str, transform: Any) -> None:
    root = ROOTS[kind]
    f = lambda x: pb.cond(x > 0, lambda: root(x) * 2.0, lambda: x * 3.0)
    with np.errstate(all="ignore"):
        assert_allclose(transform(f)(np.array([0.0, 4.0, 9.0])), [3.0, 0.5, 1 / 3])


def test_captured_value_in_function_with_own_gradient_in_branch_of_vmap() -> None:
    root, x = ROOTS["custom_gradient"], np.array([0.0, 4.0, 9.0])
    total = lambda w: np.sum(pb.vmap(lambda x: pb.cond(x > 0, lambda: root(w / x), lambda: x))(x))
    with np.errstate(all="ignore"):
        assert_allclose(pb.grad(total)(2.0), np.sum(0.5 / np.sqrt(2.0 * x[1:])))


@pytest.mark.parametrize("number", [0.0, 1, True])
@pytest.mark.parametrize("run", [pb.compile, lambda f: pb.compile(lambda x: f(x, 2.5)), lambda f: f])
def test_python_number_of_branch_takes_dtype_of_other_branch(number: Any, run: Any) -> None:
    def f(x: Any, n: Any = number) -> Any:
        return pb.cond(x[0] > 0, lambda: x.sum(), lambda: n)

    x = np.array([2.0, 1.0], np.float32)
    assert run(f)(x).dtype == np.float32
    assert pb.vmap(run(f))(np.stack([x, -x])).dtype == np.float32


def test_branches_with_none_in_their_results() -> None:
    f = lambda x: pb.cond(x > 0, lambda: (x, None), lambda: (x * 2, None))
    assert pb.compile(f)(3.0) == f(3.0) == (3.0, None)
    assert pb.compile(f)(-3.0) == (-6.0, None)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: pb.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + pb.random.normal([2])), (0, x))[1],
        lambda x: pb.scan(lambda c, _: (c + pb.random.normal([2]), None), x, None, length=3)[0],
    ],
    ids=["while_loop", "scan"],
)
def test_compiled_loops_that_draw_numbers_match_eager_loops(f: Any) -> None:
    pb.random.seed(3)
    wanted = f(np.ones(2))
    pb.random.seed(3)
    assert_allclose(pb.compile(f)(np.ones(2)), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: pb.while_loop(lambda c: np.sum(c + pb.random.uniform([2])) < 9.0, lambda c: c + 1, x),
        lambda x: pb.cond(np.sum(x) > 0, lambda: x + pb.random.normal([2]), lambda: x),
    ],
    ids=["while_loop", "cond"],
)
def test_compiled_conditions_and_branches_that_draw_numbers_raise(f: Any) -> None:
    with pytest.raises(SymbolValueError, match="is needed while a function is being compiled"):
        pb.compile(f)(np.ones(2))


@pytest.mark.parametrize("steps", [2, 5, 8])
def test_compiled_scan_unrolled_by_more_than_its_steps(steps: int) -> None:
    f = lambda xs: pb.scan(lambda c, x: (c * x, c + x), 1.0, xs, unroll=5)
    for got, wanted in zip(pb.compile(f)(np.arange(1.0, steps + 1)), f(np.arange(1.0, steps + 1)), strict=True):
        assert_allclose(got, wanted)


def test_compiled_scan_of_integers_from_floats_has_no_gradient() -> None:
    f = lambda x: x * pb.scan(lambda c, i: (c + np.astype(np.floor(x), int) + i, None), 0, np.arange(3))[0]
    assert pb.compile(pb.grad(f))(2.5) == pb.grad(f)(2.5) == 9.0


def change_where_negative(x: Any) -> Any:
    y = x * 1.5
    y[y < 0] *= -0.5
    mask = y > 0.5
    y[mask] = np.sin(y[mask]) - y[mask].mean()
    return y


@pytest.mark.parametrize(
    "f",
    [
        lambda x: pb.fori_loop(0, 3, lambda _, x: change_where_negative(x), x),
        lambda x: pb.scan(lambda c, _: (change_where_negative(c), c), x, np.arange(3)),
        lambda x: pb.while_loop(lambda c: np.sum(c * c) > 1.0, change_where_negative, x),
        lambda x: pb.cond(x[0] > 0, change_where_negative, lambda x: x, x),
    ],
    ids=["fori_loop", "scan", "while_loop", "cond"],
)
def test_compiled_bodies_change_elements_chosen_by_a_mask(f: Any) -> None:
    check(f, X)


@pytest.mark.parametrize("steps", [1, 3])
def test_compiled_gradient_of_loop_that_changes_elements_chosen_by_a_mask(steps: int) -> None:
    check(pb.grad(lambda x: np.sum(pb.fori_loop(0, steps, lambda _, x: change_where_negative(x), x) ** 2)), X)
