"""trace: the recorded program as text."""

from __future__ import annotations

import numpy as np

import pullback as pb


def model(x, w, b):
    hidden = pb.tanh(pb.matmul(x, w) + b)
    return pb.mean(pb.square(hidden), axis=0)


X, W, B = np.ones((4, 3)), np.full((3, 2), 0.5), np.zeros(2)


def test_trace_steps_have_names_shapes_ranges_and_lines():
    steps = pb.trace(model)(X, W, B).steps
    assert [s.op for s in steps] == ["input"] * 3 + ["matmul", "add", "tanh", "square", "mean"]
    assert [s.name for s in steps] == ["x", "w", "b", "%3", "%4", "%5", "%6", "%7"]
    product, mean = steps[3], steps[-1]
    assert (product.inputs, product.shape, product.dtype) == (("x", "w"), (4, 2), "float64")
    assert (product.low, product.high) == (1.5, 1.5)
    assert mean.inputs == ("%6", "axis=0")
    first = model.__code__.co_firstlineno
    assert [s.where for s in steps[3:]] == [f"test_program.py:{first + 1}"] * 3 + [f"test_program.py:{first + 2}"] * 2


def test_trace_bytes_kept_for_backward_pass():
    program = pb.trace(model)(X, W, B)
    kept = {s.name: s.kept for s in program.steps if s.kept}
    assert kept == {"x": X.nbytes, "w": W.nbytes, "%5": 64}  # the rule of tanh reads its result, as that of square does
    assert program.total == sum(kept.values())
    assert pb.trace(lambda x: x + 1.0)(X).total == 0


def test_trace_counts_kept_constants_where_used():
    weights = np.ones(3)
    program = pb.trace(lambda x: (weights * x).sum())(np.ones(3))
    assert [(s.op, s.kept) for s in program.steps] == [("input", 0), ("mul", 24), ("sum", 0)]
    assert program.steps[1].inputs == ("float64[3]", "x")


def test_trace_text():
    text = str(pb.trace(model)(X, W, B)).splitlines()
    assert text[0].split() == ["x", "float64[4,", "3]", "1", "keeps", "96", "B"]
    assert text[3].startswith("%3 = matmul(x, w)")
    assert text[-1] == "kept for the backward pass: 208 B"
    assert repr(pb.trace(model)(X, W, B)) == "<8 steps of model, 208 B kept>"


def test_trace_gradients_trees_and_custom_gradients():
    ops = [s.op for s in pb.trace(pb.grad(lambda x: pb.sin(x)))(1.0).steps]
    assert "cos" in ops

    @pb.custom_grad
    def square(x, save):
        save([x])
        return x * x, lambda dy, saved: dy * 2.0 * saved[0]

    program = pb.trace(lambda p: square(p["a"]))({"a": 3.0})
    assert [s.op for s in program.steps] == ["input", "mul", "custom_grad(square)"]
    assert program.steps[1].inputs == ("p['a']", "p['a']")


def test_trace_under_vmap_reports_shape_of_one_example():
    steps = pb.trace(pb.vmap(lambda x: pb.exp(x)))(np.ones((5, 2))).steps
    assert next(s.shape for s in steps if s.op == "exp") == (2,)


def test_trace_of_program_without_gradient():
    def f(x):
        return np.sum(np.linalg.qr(x)[0])  # of dependent columns

    steps = pb.trace(f)(np.diag([1.0, 0.0, 2.0])).steps
    assert steps[0].op == "input"
    assert steps[-1].op == "sum"


def test_trace_of_text_arguments_and_empty_arrays():
    program = pb.trace(lambda x, how: getattr(np, how)(x[:0]))(np.ones(3), "sum")
    assert [(s.op, s.shape, s.low) for s in program.steps] == [
        ("input", (3,), 1.0),
        ("getitem", (0,), None),
        ("sum", (), 0.0),
    ]
    assert "float64[0]" in str(program)
    assert repr(pb.trace(model)) == "<trace of model>"
