"""check_grads finds gradients that are wrong by 0.1 %, and names the argument and element."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, CustomGradientError, GradientError, GradientMismatchError

RANDOM = np.random.default_rng(3)
MODES = ["fwd", "rev", ("fwd", "rev")]


def product(factor=1.0, at=...):
    """``exp(x) * y`` with a gradient that is wrong by a factor, for ``x`` at the given place."""

    @pb.custom_grad
    def f(x, y, save):
        save([x, y])

        def back(dy, saved):
            x, y = saved
            wrong = np.ones(x.shape)
            wrong[at] = factor
            return [dy * np.exp(x) * y * wrong, dy * np.exp(x)]

        return np.exp(x) * y, back

    return f


@pytest.mark.sampled(2)
@pytest.mark.parametrize("modes", MODES, ids=str)
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x, y: np.sin(x) * y, [RANDOM.random(3), 2.0]),
        (product(), [RANDOM.random((2, 3)), RANDOM.random((2, 3))]),
        (lambda p: {"a": pb.tanh(p["w"] @ p["x"]), "b": p["w"].sum()}, [{"w": RANDOM.random((2, 3)), "x": np.ones(3)}]),
        (lambda x: [x[0] * 2, x[1] * x[2]], [RANDOM.random(3)]),
        (lambda x: x**3, [np.float32(0.3)]),
        (lambda z: z * z * (1 + 2j), [np.array([1 + 2j, -0.5j])]),
        (lambda z: pb.abs(z) ** 3, [np.array([1 + 2j, -0.5j])]),
        (lambda x, i: pb.gather(x, i), [RANDOM.random(4), np.array([0, 0, 3])]),
        (lambda x, how: x * 2.0 if how == "double" else x, [1.0, "double"]),
        (lambda x: 1e8 * pb.sin(x), [RANDOM.random(3)]),
        (lambda x: 1e-8 * pb.sin(x), [RANDOM.random(3)]),
        (lambda x: 1e-25 * pb.sin(x), [RANDOM.random(3)]),
        (lambda x: pb.sin(x) + 1e-12 * x**2 - pb.sin(x), [RANDOM.random(3)]),
        (lambda x: pb.log(x), [np.array([1e-3, 2.0])]),
        (lambda x: pb.relu(x), [np.array([5e-4, -5e-4, 1.0])]),
        (pb.grad(lambda x: pb.sum(x**4)), [RANDOM.random(3)]),
        (lambda x: pb.vmap(lambda r: pb.softmax(r))(x), [RANDOM.random((2, 3))]),
        (lambda x: x.sum(), [np.zeros((0, 2))]),
    ],
)
def test_check_grads_accepts_correct_gradients(f, args, modes):
    pb.check_grads(f, args, modes=modes)


@pytest.mark.parametrize("modes", MODES, ids=str)
@pytest.mark.parametrize(("factor", "at"), [(1.001, ...), (0.999, (1, 2)), (-1.0, (0, 0)), (1.001, (1, 0))])
def test_check_grads_finds_error_of_one_thousandth(factor, at, modes):
    x, y = RANDOM.random((2, 2, 3)) + 0.5
    with pytest.raises(GradientMismatchError) as caught:
        pb.check_grads(product(factor, at), [x, y], order=1, modes=modes)
    text = str(caught.value)
    assert f"ratio {factor:g}" in text
    assert "'y' agrees" in text
    if at is not ...:
        assert f"at {list(at)}" in text


@pytest.mark.parametrize("modes", MODES, ids=str)
@pytest.mark.parametrize("size", [1e-25, 1e-12, 1e-6, 1e12])
def test_check_grads_finds_error_at_any_scale(size, modes):
    f = pb.custom_grad(lambda x, save: (size * x**2, lambda dy, saved: dy * (2.002 * size) * x))
    with pytest.raises(GradientMismatchError, match=r"'x' is off by .* ratio 1\.001"):
        pb.check_grads(f, [np.array([1.0, -2.0])], modes=modes)


def test_check_grads_of_nan_value_raises():
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(GradientMismatchError, match=r"'x' cannot be compared: .* is nan"),
    ):
        pb.check_grads(np.log, [np.array([-1.0, 2.0])])


def test_check_grads_finds_one_wrong_element():
    x, y = RANDOM.random((2, 500)) + 0.5
    with pytest.raises(
        GradientMismatchError, match=r"'x' is off by .* at \[321\] \(analytic .*, numeric .*, ratio 2\)"
    ):
        pb.check_grads(product(2.0, (321,)), [x, y], order=1)


def test_check_grads_names_one_of_several_arguments():
    wrong = product(1.001)
    pb.check_grads(lambda *xs: product()(*xs), [1.5, 2.5], order=1)
    with pytest.raises(GradientMismatchError, match=r"'xs\[0\]' (is off|agrees)"):
        pb.check_grads(lambda *xs: wrong(*xs), [1.5, 2.5], order=1)


def test_check_grads_big_input():
    x, y = RANDOM.random((2, 3000))
    pb.check_grads(product(), [x, y], order=1, modes="rev")
    with pytest.raises(GradientMismatchError, match=r"ratio 1\.001"):
        pb.check_grads(product(1.001), [x, y], order=1, modes="rev")


def test_check_grads_finds_wrong_second_derivative():
    @pb.custom_grad
    def cube(x, save):
        save([x])
        return x**3, lambda dy, saved: dy * 3.0 * saved[0] * pb.stop_gradient(saved[0])

    pb.check_grads(cube, [2.0], order=1)
    with pytest.raises(GradientMismatchError, match="second derivative by reverse mode over reverse"):
        pb.check_grads(cube, [2.0], modes="rev")


def test_check_grads_names_forward_mode(monkeypatch: pytest.MonkeyPatch):
    op = pb.sin.op
    monkeypatch.setattr(op, "jvp", lambda z, primals, tangents, params: tangents[0] * np.cos(primals[0]) * 1.001)
    pb.check_grads(pb.sin, [0.5], order=1, modes="rev")
    with pytest.raises(GradientMismatchError, match=r"check_grads\(sin\): the derivative by forward mode"):
        pb.check_grads(pb.sin, [0.5], order=1, modes="fwd")


def test_check_grads_finds_wrong_complex_gradient():
    @pb.custom_grad
    def f(z, save):
        save([z])
        return pb.real(z) ** 2 + pb.imag(z) ** 2, lambda dy, saved: 2.0 * dy * np.conjugate(saved[0])

    with pytest.raises(GradientMismatchError, match="imaginary part"):
        pb.check_grads(f, [np.array([1 + 2j])], order=1)


def test_custom_grad_check_argument():
    @pb.custom_grad(check=True)
    def f(x, save):
        save([x])
        return pb.exp(x), lambda dy, saved: dy * pb.exp(saved[0]) * 1.001

    with pytest.raises(GradientMismatchError, match=r"custom_grad\(f\), check=True: .*'x' is off by .*ratio 1.001"):
        f(np.array([0.3, 0.7], np.float32))
    assert issubclass(GradientMismatchError, CustomGradientError)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.check_grads(3, [1.0]), ArgumentError, "f must be a function, got int"),
        (lambda: pb.check_grads(pb.sin, 1.0), ArgumentError, r"args must be a list .* got float. Write \[x\]"),
        (lambda: pb.check_grads(pb.sin, [1.0], order=0), ArgumentError, "order must be 1 or more, got 0"),
        (lambda: pb.check_grads(pb.sin, [1.0], modes="both"), ArgumentError, r"modes must be 'fwd' or 'rev'.*'both'"),
        (lambda: pb.check_grads(lambda i: i, [np.array([1])]), GradientError, "none of the arguments is a float"),
        (lambda: pb.check_grads(lambda x: None, [1.0]), GradientError, "f returned no float"),
    ],
)
def test_check_grads_rejects_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_check_grads_report():
    report = pb.check_grads(lambda x, y: np.sin(x) * y, [np.array([1.0, 2.0]), 3.0], modes="rev")
    assert [(row.derivative, row.argument, row.elements) for row in report.rows] == [
        ("derivative by reverse mode", "x", 2),
        ("derivative by reverse mode", "y", 1),
        ("second derivative by reverse mode over reverse", "x", 2),
        ("second derivative by reverse mode over reverse", "y", 1),
    ]
    assert report.difference == max(row.difference for row in report.rows) < 1e-6
    assert "4 derivatives agree" in repr(report)
    assert report._repr_html_().count("<tr") == 5
    assert "check_grads(&lt;lambda&gt;)" in report._repr_html_()


def test_check_grads_finds_wrong_element_among_many() -> None:
    factor = np.ones(5000)
    factor[3777] = 1.1
    wrong = pb.custom_gradient(lambda x: (np.sum(x * x), lambda dy: dy * 2 * x * factor))
    with pytest.raises(GradientMismatchError, match="'x' is off along a random direction, by elements that were not"):
        pb.check_grads(wrong, [np.ones(5000)], order=1, modes=["rev"])
