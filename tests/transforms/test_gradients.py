"""``gradients(ys, xs)``, as in TensorFlow 1: on a tape that is recording, to any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.view_programs import SIZE, load, program
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import ArgumentError, GradientError, UnconnectedError

X = np.array([0.3, -1.2, 2.0])


def wave(x: Any) -> Any:
    return np.sum(np.sin(x) * x[::-1] ** 2) + np.prod(np.cos(x)) + np.sum(np.concatenate([x, x * 2])[1:4] ** 3)


def test_gradients_inside_tape_block() -> None:
    x, w = pb.tensor(X), pb.tensor(2.0)
    with pb.GradientTape() as tape:
        tape.watch([x, w])
        hidden = x * w
        y = wave(hidden)
        first = pb.gradients(y, [x, w, hidden])
    exact = pb.grads(lambda x, w: wave(x * w))([X, 2.0])
    assert isinstance(first, list)
    assert_allclose(first[0].numpy(), exact[0])
    assert first[1].item() == pytest.approx(exact[1])
    assert_allclose(first[2].numpy(), pb.grad(wave)(2 * X))
    assert_allclose(tape.gradient(y, x).numpy(), exact[0])  # the tape is as it was


def test_gradients_higher_orders() -> None:
    x = pb.tensor(3.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x**4
        orders = [y]
        for _ in range(4):
            orders += pb.gradients(orders[-1], x)
        z = orders[1] * x
    assert [t.item() for t in orders] == [81.0, 108.0, 108.0, 72.0, 24.0]
    assert tape.gradient(z, x).item() == 432.0  # of 4 x**4


def test_gradients_inside_grad_hessian_vmap_and_compile() -> None:
    f = lambda x: np.sum(pb.gradients(wave(x), x)[0] ** 2)
    exact = lambda x: np.sum(pb.grad(wave)(x) ** 2)
    assert_allclose(pb.grad(f)(X), pb.grad(exact)(X))
    assert_allclose(pb.hessian(f)(X), pb.hessian(exact)(X))
    many = np.stack([X, X + 1])
    assert_allclose(pb.vmap(pb.grad(f))(many), pb.vmap(pb.grad(exact))(many))
    assert_allclose(pb.compile(pb.grad(f))(X), pb.grad(exact)(X))


def test_gradients_of_variables() -> None:
    v = pb.variable([1.0, 2.0])

    def f() -> Any:
        (g,) = pb.gradients(np.sum(v**3), v)
        return np.sum(g * v)

    assert pb.variable_grads(f).grads[v.name].tolist() == [9.0, 36.0]
    with pb.GradientTape():
        y = np.sum(v**3)
        (g,) = pb.gradients(y, [v])
    assert g.tolist() == [3.0, 12.0]


def test_gradients_of_several_ys_with_grad_ys_and_stop_gradients() -> None:
    x = pb.tensor([1.0, 2.0])
    with pb.GradientTape() as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
        (both,) = pb.gradients([y, z], x)
        (weighted,) = pb.gradients([y, z], x, [[10.0, 1.0], None])
        (without,) = pb.gradients(y * z, x, stop_gradients=[z])
        (own,) = pb.gradients(y, y)
    assert both.tolist() == [5.0, 7.0]
    assert weighted.tolist() == [23.0, 7.0]
    assert without.tolist() == [6.0, 24.0]
    assert own.tolist() == [1.0, 1.0]


def test_gradients_of_unconnected_sources() -> None:
    x, other = pb.tensor(1.0), pb.tensor([1.0, 2.0])
    with pb.GradientTape() as tape:
        tape.watch([x, other])
        y = x * 2.0
        assert pb.gradients(y, [x, other])[1] is None
        zero = pb.gradients(y, other, unconnected_gradients=pb.UnconnectedGradients.ZERO)[0]
        assert zero.tolist() == [0.0, 0.0]
        with pytest.raises(UnconnectedError, match="Cannot compute gradient"):
            pb.gradients(y, other, unconnected_gradients="raise")
        with pytest.raises(ArgumentError, match="unconnected_gradients must be 'raise', 'zero' or 'none', got 'no'"):
            pb.gradients(y, other, unconnected_gradients="no")


def test_gradients_second_order_of_custom_gradient_raises() -> None:
    @pb.custom_grad
    def square(x: Any, save: Any) -> Any:
        save([x])
        return x * x, lambda dy, saved: dy * 2 * saved[0]

    @pb.custom_gradient
    def both(x: Any) -> Any:
        return (x * 2.0, x * 3.0), lambda a, b: a * 2.0 + b * 3.0

    x = pb.tensor(3.0)
    with pb.GradientTape() as tape:
        tape.watch(x)
        a, b = both(x)
        (of_both,) = pb.gradients(a * b, x)
        (g,) = pb.gradients(np.exp(square(x)), x)
        with pytest.raises(GradientError, match="second derivative through a custom gradient is not known"):
            pb.gradients(g, x)
    assert of_both.item() == 36.0
    assert g.item() == pytest.approx(6 * np.exp(9), rel=1e-6)
    with pytest.raises(GradientError, match=r"Nest two tapes"):
        tape.gradient(g, x)


def test_gradients_big_arrays() -> None:
    x = pb.tensor(np.linspace(0, 1, 80_000))
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = np.sum((x + 1.0) * np.exp(x) + x)
        (first,) = pb.gradients(y, x)
        (second,) = pb.gradients(np.sum(first), x)
    t = np.linspace(0, 1, 80_000)
    assert_allclose(first.numpy(), (t + 2) * np.exp(t) + 1)
    assert_allclose(second.numpy(), (t + 3) * np.exp(t))


def test_gradients_through_complex_values() -> None:
    f = lambda x: np.sum(np.abs(np.fft.rfft(x * x)) ** 2)
    assert_allclose(pb.grad(lambda x: np.sum(pb.gradients(f(x), x)[0] ** 2))(X), _of_square(f))


def _of_square(f: Any) -> Any:
    return pb.grad(lambda x: np.sum(pb.grad(f)(x) ** 2))(X)


@pytest.mark.parametrize("where", ["nowhere", "after the block", "unwatched"])
def test_gradients_without_recording_tape_raises(where: str) -> None:
    x = pb.tensor(3.0)
    y = x * x
    if where == "after the block":
        with pb.GradientTape() as tape:
            tape.watch(x)
            y = x * x
    elif where == "unwatched":
        with pb.GradientTape():
            y = x * x
    with pytest.raises(GradientError, match=r"on no tape that is recording.*with pb\.GradientTape\(\).*pb\.grads\(f\)"):
        pb.gradients(y, x)


def test_gradients_bad_arguments_raise() -> None:
    with pytest.raises(ArgumentError, match=r"ys must be tensors or variables, got function.*pb\.grad"):
        pb.gradients(wave, pb.tensor(1.0))
    x = pb.tensor([1.0, 2.0])
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
        with pytest.raises(ArgumentError, match=r"xs must be tensors or variables, got float"):
            pb.gradients(y, 1.0)
        with pytest.raises(ArgumentError, match="1 ys but 2 grad_ys"):
            pb.gradients(y, x, [None, None])
        with pytest.raises(GradientError, match=r"grad_ys has shape \(3,\), but its y has shape \(2,\)"):
            pb.gradients(y, x, [np.ones(3)])
        with pytest.raises(GradientError, match="complex numbers"):
            pb.gradients(y * 1j, x)


def test_gradients_with_nested_tapes() -> None:
    x = pb.tensor(2.0)
    with pb.GradientTape() as outer:
        outer.watch(x)
        y = x * x
        z = y * x
        with pb.GradientTape() as inner:
            inner.watch(y)
            w = y**3
            (of_w,) = pb.gradients(w, y)
        (of_z,) = pb.gradients(z, x)
        (through,) = pb.gradients(of_w, x)
    assert (of_w.item(), of_z.item(), through.item()) == (48.0, 12.0, 96.0)  # 3 y**2, 3 x**2, 12 x**3


def test_gradients_of_unwatched_sources_raise() -> None:
    x, other, v = pb.tensor(2.0), pb.tensor(3.0), pb.variable(4.0)
    frozen = pb.variable(5.0, trainable=False)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * other * v * frozen
        for i, wrong in enumerate([other, frozen]):
            with pytest.raises(GradientError, match=rf"xs\[{i}\], of shape \(\), is not followed .*tape\.watch"):
                pb.gradients(y, [v] * i + [wrong])
        assert pb.gradients(x * 2.0, v)[0] is None  # followed, and not reached
    with pytest.raises(GradientError, match="make it an argument of the function"):
        pb.grad(lambda x: pb.gradients(x * v, v)[0])(2.0)


def in_place(x: Any) -> Any:
    y = x * 1.0
    z = y[1:]
    w = y * y
    z[0] = w[2] * 2.0
    y += np.sin(y)
    y.ravel()[::2] *= x[0]
    return np.sum(y * w)


def test_gradients_of_in_place_programs() -> None:
    exact = pb.grad(in_place)
    assert_allclose(pb.grad(lambda x: np.sum(pb.gradients(in_place(x), x)[0] ** 2))(X), _of_square(in_place))
    x = pb.tensor(X)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
        before = np.sum(y * y)
        y[0] = x[1] * 3.0
        after = np.sum(y * y)
        first, second = pb.gradients(before, x)[0], pb.gradients(after, x)[0]
        by_y = pb.gradients(after, y)[0]
        whole = pb.gradients(in_place(x), x)[0]
    _, b, c = X
    assert_allclose(first.numpy(), 8 * X)
    assert_allclose(second.numpy(), [0, 26 * b, 8 * c])
    assert_allclose(by_y.numpy(), 2 * np.array([3 * b, 2 * b, 2 * c]))
    assert_allclose(whole.numpy(), exact(X))
    assert_allclose(tape.gradient(after, x).numpy(), [0, 26 * b, 8 * c])


def test_has_aux_of_in_place_functions() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        view = y[:2]
        y[0] = 10.0
        return np.sum(y * y), {"view": view, "y": y}

    for aux in (
        pb.grad(f, has_aux=True)(X)[1],
        pb.vjp(f, X, has_aux=True)[2],
        pb.jvp(f, [X], [X], has_aux=True)[2],
        pb.jacobian(f, has_aux=True)(X)[1],
    ):
        assert_allclose(aux["view"], [10.0, X[1]])
        assert_allclose(aux["y"], [10.0, X[1], X[2]])


@pytest.mark.parametrize("seed", range(30))
def test_gradients_of_random_programs_with_views_and_writes(seed: int) -> None:
    f = load(program(seed), pb.zeros)
    x, weights = np.random.default_rng(seed).uniform(0.3, 1.5, SIZE), np.arange(1.0, SIZE + 1)

    def second(gradient: Any) -> Any:
        return pb.grad(lambda x: np.sum(gradient(x) * weights), unconnected="zero")(x)

    assert_allclose(second(lambda x: pb.gradients(f(x), x)[0]), second(pb.grad(f)), rtol=1e-9, atol=1e-12)
