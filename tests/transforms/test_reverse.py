"""GradientTape: recording, gradient, jacobian, batch_jacobian, persistent and nested tapes."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from leaks import leaves_objects
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import (
    ArgumentError,
    CustomGradientError,
    GradientError,
    ShapeError,
    UnconnectedError,
    UnrecordedGradientWarning,
)


class Pair(NamedTuple):
    a: Any
    b: Any


def values(tree):
    return [None if g is None else g.tolist() for g in tree]


# ---- recording


def test_tape_gradient_of_watched_tensor():
    x = pb.tensor([1.0, 2.0])
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    g = tape.gradient(y, x)
    assert isinstance(g, pb.Tensor)
    assert g.tolist() == [3, 12]


def test_tape_watches_trainable_variables():
    v, frozen = pb.variable(3.0, name="v"), pb.variable(2.0, trainable=False, name="frozen")
    with pb.GradientTape() as tape:
        y = v * v * frozen
    assert [w.name for w in tape.watched_variables()] == ["v"]
    assert values(tape.gradient(y, [v, frozen])) == [12, None]


def test_gradient_of_watched_variable_by_itself_is_one():
    v = pb.variable(3.0)
    with pb.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
    assert tape.gradient(v, v).numpy() == 1.0


def test_tape_watch_accessed_variables_false():
    v, w, frozen = pb.variable(3.0), pb.variable(4.0), pb.variable(5.0, trainable=False)
    with pb.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([v, frozen])
        y = v * w * frozen
    assert tape.watched_variables() == (v, frozen)
    assert values(tape.gradient(y, [v, w, frozen])) == [20, None, 12]


def test_tape_variable_assigned_in_block():
    v = pb.variable(2.0)
    with pb.GradientTape() as tape:
        y = v * v
        v.assign(10.0)
        z = y + v * v
    assert tape.gradient(z, v).item() == 24


def test_tape_tensors_are_constants_after_block():
    x, v = pb.tensor([3.0, 4.0]), pb.variable(2.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * v
        with pytest.raises(TypeError, match="would lose its gradient"):
            np.asarray(x)
        with pytest.raises(TypeError, match="would lose its gradient"):
            y.tolist()
    assert (x.tolist(), y.tolist(), float(v)) == ([3, 4], [6, 8], 2)
    assert type(x) is pb.Tensor
    later = y * 5 + x  # not recorded
    assert later.tolist() == [33, 44]
    assert pb.grad(lambda t: (t * y).sum())(np.ones(2)).tolist() == [6, 8]
    assert tape.gradient(later, x) is None


def test_tape_stops_recording_after_exception():
    x, v = pb.tensor(3.0), pb.variable(2.0)
    tape = pb.GradientTape()

    def broken():
        with tape:
            tape.watch(x)
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        broken()
    assert (float(x), float(v * x)) == (3, 6)
    assert tape.gradient(x * 2, x) is None


def test_tape_stop_recording():
    x, v = pb.tensor(3.0), pb.variable(2.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * v
        with tape.stop_recording():
            factor = x * v * y
            assert factor.item() == 36
        z = y * factor + x
    assert values(tape.gradient(z, [x, v, factor])) == [73, 108, None]


def test_tape_reset():
    x, v = pb.tensor(3.0), pb.variable(2.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * v
        tape.reset()
        assert float(x) == 3  # no longer watched
        z = x * v
    assert values(tape.gradient([y, z], [x, v])) == [None, 3]


def test_tape_reset_of_outer_tape():
    v = pb.variable(2.0)
    with pb.GradientTape() as outer:
        v * 2
        with pb.GradientTape() as inner:
            outer.reset()
            y = v * v * v
        d = inner.gradient(y, v)
    assert outer.gradient(d, v).item() == 12


def test_tape_resumes_recording():
    x = pb.tensor(3.0)
    tape = pb.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    with tape:
        z = y * 2
    assert tape.gradient(z, x).item() == 12
    with tape:  # begins anew
        tape.watch(x)
        z = x * 5
    assert tape.gradient(z, x).item() == 5


def test_tape_with_other_transforms_in_block():
    x = pb.tensor(3.0)
    f = pb.custom_grad(lambda x, save: (x * 2, lambda dy, saved: dy * 7))
    h = pb.custom_gradient(lambda x: ((x * 2, x * 3), lambda a, b: a * 10 + b * 100))
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = pb.grad(lambda t: t**3)(x) * f(x)  # 3x² · 2x
        u, w = h(x)
        r = pb.recompute_grad(lambda x: x * x)(x)
    assert tape.gradient(y, x).item() == 18 * 6 + 27 * 7
    assert values([tape.gradient(t, x) for t in (u, w, [u, w], r)]) == [10, 100, 110, 6]
    assert tape.gradient(y, x).item() == 18 * 6 + 27 * 7


@pytest.mark.filterwarnings("ignore::pullback.errors.UnrecordedGradientWarning")
def test_tape_custom_gradient_with_variables():
    v = pb.variable(2.0, name="v")

    def grad_fn(dy, variables=None):
        return dy * 7, [dy * variables[0] * 11]

    f = pb.custom_gradient(lambda x: (x * v, grad_fn))
    x = pb.tensor(3.0)
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        assert values(tape.gradient(y, [x, v])) == [7, 22]
    assert values(tape.gradient(y, [x, v])) == [7, 22]
    wrong = pb.custom_gradient(lambda x: (x * 1, lambda dy: dy.sum()))
    y2 = pb.tensor([1.0, 2.0])
    with pb.GradientTape() as tape:
        tape.watch(y2)
        z = wrong(y2)
    with pytest.raises(CustomGradientError, match="must have its shape"):
        tape.gradient(z, y2)


# ---- targets and sources


@pytest.mark.parametrize(
    "wrap",
    [lambda a, b: [a, b], lambda a, b: (a, b), lambda a, b: {"a": a, "b": b}, Pair, lambda a, b: [{"a": a}, (b,)]],
)
def test_tape_sources_and_targets_in_trees(wrap):
    x, v = pb.tensor(3.0), pb.variable(2.0)
    with pb.GradientTape() as tape:
        tape.watch({"x": x})
        targets = wrap(x * v, x * x)
    sources = wrap(x, v)
    got = tape.gradient(targets, sources, output_gradients=wrap(10, 1))
    assert type(got) is type(sources)
    flat = pb.core.tree.leaves(got)
    assert values(flat) == [20 + 6, 30]


def test_tape_gradient_sums_target():
    x = pb.tensor([1.0, 2.0])
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).tolist() == [2, 4]
    assert tape.gradient(y, x, output_gradients=[10, 100]).tolist() == [20, 400]
    assert tape.gradient([y, y], x).tolist() == [4, 8]


def test_tape_gradient_of_intermediate_tensors():
    x = pb.tensor(2.0)
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        tape.watch(y)  # it is followed already
        z = y * y + x
    assert values(tape.gradient(z, [x, y, z])) == [4 * 8 + 1, 8, 1]
    assert tape.gradient(x, x).item() == 1
    assert tape.gradient(y, z) is None


def test_tape_variable_as_target():
    v = pb.variable(3.0)
    with pb.GradientTape(persistent=True) as tape:
        v * 2
    assert tape.gradient(v, v).item() == 1


@pytest.mark.parametrize("persistent", [False, True])
def test_tape_variable_that_was_passed_on_but_not_read_as_target(persistent):
    chosen, other, frozen = pb.variable([2.0, 3.0]), pb.variable(4.0), pb.variable(1.0, trainable=False)
    with pb.GradientTape(persistent) as tape:
        y = {"chosen": chosen, "frozen": frozen}
    assert values(tape.gradient(y, [chosen, other, frozen])) == [[1, 1], None, None]
    with pb.GradientTape() as tape:
        y = chosen
    assert tape.jacobian(y, chosen).tolist() == [[1, 0], [0, 1]]
    with pb.GradientTape() as outer:
        with pb.GradientTape() as tape:
            y = chosen
        z = tape.gradient(y, chosen, output_gradients=pb.tensor([5.0, 6.0])) * chosen
    assert outer.gradient(z, chosen).tolist() == [5, 6]
    with pb.GradientTape(watch_accessed_variables=False) as tape:
        y = chosen
    assert tape.gradient(y, chosen) is None


@pytest.mark.parametrize(("how", "expected"), [("none", None), ("zero", [0, 0])])
def test_tape_unconnected_none_or_zero(how, expected):
    x, other = pb.tensor([1.0, 2.0]), pb.tensor(np.ones(2))
    with pb.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * x
    got = tape.gradient(y, [x, other], unconnected_gradients=how)
    assert values(got) == [[2, 4], expected]
    assert got[1] is None or got[1].dtype == np.float64
    constant = tape.gradient(pb.tensor(1.0), x, unconnected_gradients=how)
    assert (constant if constant is None else constant.tolist()) == expected


def test_tape_unconnected_raise_names_op_and_line():
    x = pb.tensor(1.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = pb.stop_gradient(x) * 2
    with pytest.raises(UnconnectedError, match=r"Cannot compute gradient.*stop_gradient \(test_reverse\.py:\d+\)"):
        tape.gradient(y, x, unconnected_gradients="raise")


def test_tape_gradient_dtypes():
    a, b, n = pb.tensor(np.ones(2)), pb.tensor(np.ones(2, np.float32)), pb.tensor(np.array([1, 2]))
    with pb.GradientTape() as tape:
        tape.watch([a, b, n])
        y = a * b * n
    assert [g.dtype for g in tape.gradient(y, [a, b, n])] == [np.float64, np.float32, np.float32]


def test_tape_gradient_of_no_target_is_none():
    x = pb.tensor(1.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
    assert tape.gradient([], x) is None


def test_tape_gradient_does_not_alias_output_gradients():
    x, dy = pb.tensor(np.ones(2)), np.full(2, 5.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x + 0.0
    g = tape.gradient(y, x, output_gradients=dy)
    dy[:] = 0
    assert g.tolist() == [5, 5]


def test_tape_gradient_big_arrays():
    x = pb.tensor(np.linspace(0, 1, 80_000))
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = (pb.exp(y) * y + x).sum()
    t = x.numpy()
    for _ in range(2):
        assert_allclose(tape.gradient(z, x).numpy(), 2 * t * np.exp(t**2) * (1 + t**2) + 1)
        assert_allclose(tape.gradient(z, y).numpy(), np.exp(t**2) * (1 + t**2))
    assert_allclose(y.numpy(), t**2)


def test_tape_watch_of_array_error():
    with pb.GradientTape() as tape, pytest.raises(ArgumentError, match=r"got ndarray. Write x = pb.tensor\(x\) before"):
        tape.watch(np.ones(2))


# ---- persistent or not


def test_tape_second_gradient_raises_unless_persistent():
    x = pb.tensor(3.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    for again in (tape.gradient, tape.jacobian):
        with pytest.raises(GradientError, match=r"a gradient was computed already.*GradientTape\(persistent=True\)"):
            again(y, x)


def test_tape_gradient_in_block_ends_recording():
    x = pb.tensor(3.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        assert tape.gradient(x * x, x).item() == 6
        assert float(x * 2) == 6  # not recorded any more


def test_persistent_tape_gradient_in_own_block_warns():
    x = pb.tensor(3.0)
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with pytest.warns(UnrecordedGradientWarning, match="Nest a second tape") as caught:
            assert tape.gradient(y, x).item() == 6
        z = y * x
    assert caught[0].filename == __file__
    assert tape.gradient(z, x).item() == 27
    assert tape.gradient(y, x).item() == 6


# ---- nested


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_tape_second_order(kind, inside):
    x = pb.tensor([1.0, 2.0]) if kind == "tensor" else pb.variable([1.0, 2.0])
    with pb.GradientTape() as outer:
        outer.watch(x)
        with pb.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
            if inside:
                dy = inner.gradient(y, x)
        if not inside:
            dy = inner.gradient(y, x)
    assert dy.tolist() == [3, 12]
    assert outer.gradient(dy, x).tolist() == [6, 12]
    assert (y.tolist(), x.tolist()) == ([1, 8], [1, 2])


def test_tape_third_order():
    x = pb.tensor(2.0)
    with pb.GradientTape() as t3:
        t3.watch(x)
        with pb.GradientTape() as t2:
            t2.watch(x)
            with pb.GradientTape() as t1:
                t1.watch(x)
                y = x**4
            d1 = t1.gradient(y, x)
        d2 = t2.gradient(d1, x)
    assert (d1.item(), d2.item(), t3.gradient(d2, x).item()) == (32, 48, 48)


def test_outer_tape_records_inner_tape_operations():
    x = pb.tensor(2.0)
    with pb.GradientTape(persistent=True) as outer:
        outer.watch(x)
        u = x * 3
        with pb.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = x * x * u
        d = inner.gradient(y, x)  # 2x · u
        z = y * d
    assert values([outer.gradient(t, x) for t in (y, d, z)]) == [36, 24, 24 * 24 + 24 * 36]
    assert outer.gradient(y, u).item() == 4
    assert inner.gradient(y, x).item() == 24  # the outer block is over, and the answer the same
    assert inner.gradient(u, x) is None


@pytest.mark.filterwarnings("ignore::pullback.errors.UnrecordedGradientWarning")
def test_inner_tape_watches_intermediate_of_outer_tape():
    x = pb.tensor(2.0)
    with pb.GradientTape(persistent=True) as outer:
        outer.watch(x)
        y = x * x
        with pb.GradientTape(persistent=True) as inner:
            inner.watch(y)
            z = y**3
            dz = inner.gradient(z, y)
            assert values([outer.gradient(t, x) for t in (y, z)]) == [4, 192]
            slopes = [inner.gradient(z, s) for s in (y, x)]
        w = y * 5
    assert values(slopes) == [48, None]
    assert values([outer.gradient(t, s) for t, s in [(dz, x), (w, x), (w, y), (z, y)]]) == [96, 20, 5, 48]


def test_tape_inside_and_outside_grad():
    def f(x):
        with pb.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x) * x  # 3x³

    assert pb.grad(f)(2.0) == 36
    assert pb.grad(pb.grad(f))(2.0) == 36
    assert pb.grad(lambda x: f(x * x) + x)(2.0) == 9 * 16 * 4 + 1
    x = pb.tensor(2.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = pb.grad(f)(x)
    assert tape.gradient(y, x).item() == 36
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = pb.variable_grads(lambda: x * x * V).grads["V"]
    assert tape.gradient(y, x).item() == 4


V = pb.variable(3.0, name="V")


def test_tape_second_order_big_arrays():
    x = pb.tensor(np.linspace(0, 1, 80_000))
    with pb.GradientTape() as outer:
        outer.watch(x)
        with pb.GradientTape() as inner:
            inner.watch(x)
            y = pb.sin(x) * x
        d = inner.gradient(y, x)
    t = x.numpy()
    assert_allclose(outer.gradient(d, x).numpy(), 2 * np.cos(t) - t * np.sin(t), rtol=1e-12, atol=1e-12)


# ---- jacobian


def test_tape_jacobian():
    x, v = pb.tensor(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])), pb.variable([1.0, 2.0])
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = (x * x).sum(axis=1) * v
    jacobian = tape.jacobian(y, {"x": x, "v": v, "none": pb.tensor(1.0)})
    assert jacobian["x"].shape == (2, 2, 3)
    expected = np.zeros((2, 2, 3))
    for i in range(2):
        expected[i, i] = 2 * x.numpy()[i] * [1, 2][i]
    assert_allclose(jacobian["x"].numpy(), expected)
    assert jacobian["v"].tolist() == [[14, 0], [0, 77]]
    assert jacobian["none"] is None


def test_tape_jacobian_of_scalar_and_empty_target():
    x = pb.tensor(3.0)
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        nothing = pb.tensor(np.zeros((0, 2))) * x
    assert tape.jacobian(y, x).item() == 6
    assert tape.jacobian(nothing, x).shape == (0, 2)
    assert tape.jacobian(y, pb.tensor([1.0]), unconnected_gradients="zero").tolist() == [0]


def test_tape_jacobian_of_gradient_is_hessian():
    x = pb.tensor(np.array([1.0, 2.0]))
    with pb.GradientTape() as outer:
        outer.watch(x)
        with pb.GradientTape() as inner:
            inner.watch(x)
            y = (x[0] * x[0] * x[1]).sum()
        d = inner.gradient(y, x)
    assert outer.jacobian(d, x).tolist() == [[4, 2], [2, 0]]


# ---- bad input


def test_tape_misuse_raises():
    x = pb.tensor([1.0, 2.0])
    tape = pb.GradientTape(persistent=True)
    with pytest.raises(GradientError, match=r"GradientTape\.gradient: nothing was recorded"):
        tape.gradient(x, x)
    with pytest.raises(GradientError, match=r"GradientTape\.watch: the tape is not recording\. Call it inside"):
        tape.watch(x)
    with pytest.raises(GradientError, match=r"stop_recording: the tape is not recording"), tape.stop_recording():
        pass
    with tape:
        with pytest.raises(GradientError, match="already recording"):
            tape.__enter__()
        for wrong in (3.0, np.ones(2), "x"):
            with pytest.raises(ArgumentError, match=r"watch: expected a tensor or variable, got (float|ndarray|str)"):
                tape.watch(wrong)
        with pytest.raises(GradientError, match="dtype <U1 has no gradient"):
            tape.watch(pb.tensor(np.array(["a"])))
        tape.watch(x)
        y = x * x
    with pytest.raises(ArgumentError, match="a source must be a tensor or a variable, got ndarray"):
        tape.gradient(y, np.ones(2))
    with pytest.raises(ArgumentError, match="a target must be a tensor, got float"):
        tape.gradient(3.0, x)
    with pytest.raises(ArgumentError, match="the target must be one tensor, got list"):
        tape.jacobian([y], x)
    with pytest.raises(
        GradientError,
        match=r"output_gradients has shape \(3,\), but its target has shape \(2,\); they must be",
    ):
        tape.gradient(y, x, output_gradients=np.ones(3))
    with pytest.raises(GradientError, match="must have the structure of the target; expected 2 of them, got 1"):
        tape.gradient([y, y], x, output_gradients=[y])
    with pytest.raises(ArgumentError, match="unconnected_gradients must be 'raise', 'zero' or 'none', got 'zeros'"):
        tape.gradient(y, x, unconnected_gradients="zeros")
    assert tape.gradient(y, x).tolist() == [2, 4]


def test_tape_inside_jvp():
    def f(x):
        with pb.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x)

    assert pb.jvp(f, [np.float64(2)], [np.float64(1)]) == (12, 12)


def test_tape_does_not_leak_objects():
    x, v = pb.tensor(2.0), pb.variable(3.0)

    def use():
        with pb.GradientTape() as outer:
            outer.watch(x)
            with pb.GradientTape() as inner:
                inner.watch(x)
                y = x * x * v
            d = inner.gradient(y, x)
        outer.gradient(d, [x, v])
        with pb.GradientTape() as tape:
            tape.watch(x)
            return x * v

    assert not leaves_objects(use, times=30, limit=30 * 4)  # each result and its metadata, not the graph behind it
    assert float(use()) == 6


# ---- TensorFlow's other names


def test_tape_unconnected_gradients_enum():
    x, y = pb.tensor(1.0), pb.tensor([1.0, 2.0])
    with pb.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = x * 2.0
    assert tape.gradient(z, y, unconnected_gradients=pb.UnconnectedGradients.NONE) is None
    assert tape.gradient(z, y, unconnected_gradients=pb.UnconnectedGradients.ZERO).tolist() == [0.0, 0.0]
    assert tape.jacobian(z, y, unconnected_gradients=pb.UnconnectedGradients.ZERO).tolist() == [0.0, 0.0]
    assert pb.grads(lambda x, y: x * x, unconnected=pb.UnconnectedGradients.NONE)([3.0, 5.0]) == [6.0, None]


def test_tape_jacobian_of_complex_target():
    x = pb.tensor(np.array([0.5, -1.0]))
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.exp(1j * x) * x[::-1]
        z = np.exp(1j * x) * np.exp(1j * x)
        w = z * z
    J = tape.jacobian(y, x)
    assert J.dtype == np.complex128
    assert_allclose(J.numpy(), pb.jacobian(lambda x: np.exp(1j * x) * x[::-1])(x.numpy()))
    assert_allclose(tape.jacobian(w, z).numpy(), np.diag(2 * z.numpy()))


def test_batch_jacobian_matches_vmap_of_jacobian():
    a = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.25]])
    x, w = pb.tensor(a), pb.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 1.0]], dtype="float64")
    f = lambda x: np.tanh(x @ w.numpy())
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.tanh(x @ w)
        cube = pb.reshape(y, (3, 3, 1)) * pb.reshape(x, (3, 1, 2))
        number = np.sum(x * x, axis=1)
    got = tape.batch_jacobian(y, x)
    assert isinstance(got, pb.Tensor)
    assert_allclose(got.numpy(), pb.vmap(pb.jacobian(f))(a))
    assert tape.batch_jacobian(cube, x).shape == (3, 3, 2, 2)
    assert_allclose(tape.batch_jacobian(number, x).numpy(), 2 * a)
    narrow = pb.tensor(a.astype("f4"))
    with pb.GradientTape() as tape:
        tape.watch(narrow)
        y = np.tanh(narrow @ w.astype("float32")) * np.float64(2.0)
    assert_allclose(tape.batch_jacobian(y, narrow).numpy(), 2 * pb.vmap(pb.jacobian(f))(a), atol=1e-5)


def test_batch_jacobian_bad_arguments_raise():
    x, other = pb.tensor([[1.0, 2.0], [3.0, 4.0]]), pb.tensor([[1.0], [1.0]])
    with pb.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        centred = x - np.mean(x, axis=0)
        total = np.sum(x)
        turned = x * 1j
        y = x * 2.0
    with pytest.raises(GradientError, match="an example of the target depends on other examples of the source"):
        tape.batch_jacobian(centred, x)
    with pytest.raises(ShapeError, match=r"got the shapes \(\) and \(2, 2\)"):
        tape.batch_jacobian(total, x)
    with pytest.raises(GradientError, match="the target has complex numbers"):
        tape.batch_jacobian(turned, x)
    with pytest.raises(ArgumentError, match="the source must be one tensor, got list"):
        tape.batch_jacobian(y, [x])
    assert tape.batch_jacobian(y, other) is None
    assert tape.batch_jacobian(y, other, unconnected_gradients="zero").shape == (2, 2, 1)


def test_batch_jacobian_of_zero_examples():
    x = pb.tensor(np.ones((0, 2)))
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
    assert tape.batch_jacobian(y, x).shape == (0, 2, 2)


def test_tensors_of_earlier_tape_are_constants() -> None:
    x, kept = pb.tensor([1.0, 2.0, 3.0]), []
    for n in range(4):  # the tape, and what it knows of shapes, is used again for the next block
        with pb.GradientTape() as tape:
            tape.watch(x)
            y = x * x if not kept else x * x + kept[-1] * x
            z = pb.sum(y)
        kept.append(y)
        slope = 2.0 * x.numpy() + (kept[-2].numpy() if n else 0.0)
        assert tape.gradient(z, x).numpy().tolist() == slope.tolist()
        assert not y.level
        assert (y + 1.0).numpy().tolist() == (y.numpy() + 1.0).tolist()


@pytest.mark.parametrize("n", [4, 100_000])
def test_tape_gradient_of_view_written_after_creation(n: int) -> None:
    x = pb.tensor(np.arange(1.0, n + 1))
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x.copy()
        v, unused = y[:2], y[:1]
        y[:2] = v * 3
        y[0] *= 5
        z = (y * y).sum()
    assert v.tolist() == [15, 6]
    assert tape.gradient(v, x)[:3].tolist() == [15, 3, 0]
    assert tape.jacobian(v, x)[:, :3].tolist() == [[15, 0, 0], [0, 3, 0]]
    assert tape.gradient(z, y)[:3].tolist() == [30, 12, 6]
    assert tape.gradient(z, unused) is None  # z was computed from y, not from this view of it


def test_tape_gradient_of_in_place_sum_with_watched_tensor() -> None:
    x = pb.tensor([1.0, 2.0])
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        y += x
        z = pb.sum(y * x)
    assert tape.gradient(z, x).numpy().tolist() == [8.0, 16.0]


def test_tape_watched_variables_lists_watched_and_read_variables() -> None:
    a, b, c = pb.variable(1.0), pb.variable(2.0), pb.variable(3.0, trainable=False)
    with pb.GradientTape() as tape:
        tape.watch(c)
        y = a * a
        assert list(map(id, tape.watched_variables())) == [id(c), id(a)]
    assert tape.gradient(y, a) == 2.0
    assert list(map(id, tape.watched_variables())) == [id(c), id(a)]  # after the tape was used up, too
    tape.reset()
    assert tape.watched_variables() == ()
    with tape:
        y = b * b
    assert list(map(id, tape.watched_variables())) == [id(b)]


def test_tape_gradients_share_no_memory() -> None:
    a, b = pb.variable(np.ones(5)), pb.variable(np.ones(5))
    dy, weights = np.full(5, 2.0), np.arange(5.0)
    with pb.GradientTape(persistent=True) as tape:
        y, z = a + b, ((a + b) * weights).sum()
    found = [
        *tape.gradient(y, [a, b], output_gradients=dy),
        *tape.gradient(z, [a, b]),
        *tape.gradient(z, [a, b]),
    ]
    arrays = [dy, weights, a.numpy(), b.numpy(), *(g.numpy() for g in found)]
    assert not any(np.shares_memory(u, v) for i, u in enumerate(arrays) for v in arrays[:i])


def test_tape_result_does_not_keep_graph_alive() -> None:
    v = pb.variable(np.ones(5))
    with pb.GradientTape() as tape:
        inner = v * 2.0
        y = inner.sum()
    tape.gradient(y, v)
    watched = weakref.ref(inner)
    del inner
    assert watched() is None
    assert float(y) == 10.0


@pytest.mark.parametrize("size", [4, 10_000])
def test_vjp_and_linearize_results_written_before_pull_and_push(size: int) -> None:
    x = np.linspace(0.1, 2.0, size)

    def f(x: Any) -> Any:
        y = np.exp(x)
        return {"y": y, "part": y[1:]}, y * y

    y, pull, aux = pb.vjp(f, x, has_aux=True)
    again, push, same = pb.linearize(f, x, has_aux=True)
    for z in (y["y"], y["part"], aux, again["y"], again["part"], same):
        z[:] = 0.0
    ones = {"y": np.ones(size), "part": np.zeros(size - 1)}
    np.testing.assert_allclose(pull(ones)[0], np.exp(x))
    np.testing.assert_allclose(push(np.ones(size))["y"], np.exp(x))
