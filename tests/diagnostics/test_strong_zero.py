"""strong_zero: a zero cotangent times a nonfinite derivative is zero."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.array([0.0, 4.0])
INF = np.array([[1.0, np.inf], [2.0, 3.0]])
ROWS = np.array([[np.inf, 1.0], [3.0, 4.0]])
SECOND = np.array([False, True])


def root(x):
    return pb.where(x > 0, pb.sqrt(x), 0.0)


own_root = pb.custom_grad(lambda x, save: (np.sqrt(x), lambda dy, saved: dy / (2 * np.sqrt(x))))
own_product = pb.custom_grad(lambda x, save: (INF.T @ x, lambda dy, saved: INF @ dy))
both = pb.custom_gradient(lambda x: ((np.sqrt(x), np.log(x)), lambda dy, dz: dy / (2 * np.sqrt(x)) + dz / x))


def tape_gradient():
    v = pb.variable(X, dtype="float64")
    with pb.GradientTape() as tape:
        y = root(v)
    return tape.gradient(y, v).numpy()


def one_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the second element of ``f``, whatever the first one is."""
    return lambda *xs: pb.where(SECOND, f(*xs), 0.0).sum()


# what to compute, and what it is
RIGHT: dict[str, tuple[Callable[[], Any], Any]] = {
    "grad": (lambda: pb.grad(root)(X), [0, 0.25]),
    "float32": (lambda: pb.grad(root)(X.astype(np.float32)), [0, 0.25]),
    "grad of grad": (lambda: pb.grad(lambda x: pb.grad(root)(x).sum())(X), [0, -1 / 32]),
    "third order": (lambda: pb.grad(lambda x: pb.grad(lambda x: pb.grad(root)(x).sum())(x).sum())(X), [0, 3 / 256]),
    "jvp": (lambda: pb.jvp(root, [X], [np.ones(2)])[1], [0, 0.25]),
    "jvp of grad": (lambda: pb.jvp(pb.grad(root), [X], [np.ones(2)])[1], [0, -1 / 32]),
    "grad of jvp": (lambda: pb.grad(lambda x: pb.jvp(root, [x], [np.ones(2)])[1])(X), [0, -1 / 32]),
    "a tangent of zero": (lambda: pb.jvp(pb.sqrt, [X], [np.array([0.0, 1.0])])[1], [0, 0.25]),
    "tangents of a product": (
        lambda: pb.jvp(lambda x, y: x / y, [np.ones(2), X], [np.zeros(2), np.array([0.0, 1.0])])[1], [0, -1 / 16],
    ),
    "tangent of a matrix product": (
        lambda: pb.jvp(lambda v: pb.matmul(INF, v), [np.ones(2)], [np.array([1.0, 0.0])])[1], [1, 2],
    ),
    "vmap of grad": (lambda: pb.vmap(pb.grad(root))(X), [0, 0.25]),
    "grad of vmap": (lambda: pb.grad(lambda x: pb.vmap(root)(x))(X), [0, 0.25]),
    "vjp": (lambda: pb.vjp(root, X)[1](np.ones(2))[0], [0, 0.25]),
    "hessian": (lambda: pb.hessian(lambda x: root(x).sum())(X), [[0, 0], [0, -1 / 32]]),
    "GradientTape": (tape_gradient, [0, 0.25]),
    "recompute_grad": (lambda: pb.grad(pb.recompute_grad(root))(X), [0, 0.25]),
    "a gradient of one's own": (lambda: pb.grad(lambda x: pb.where(x > 0, own_root(x), 0.0))(X), [0, 0.25]),
    "its second order": (
        lambda: pb.hessian(lambda x: pb.where(x > 0, own_root(x), 0.0).sum())(X), [[0, 0], [0, -1 / 32]],
    ),
    "its tangent": (lambda: pb.jvp(own_root, [X], [np.array([0.0, 1.0])])[1], [0, 0.25]),
    "its vmap": (lambda: pb.grad(lambda x: pb.where(x > 0, pb.vmap(own_root)(x), 0.0))(X), [0, 0.25]),
    "a matrix in it": (lambda: pb.grad(lambda x: own_product(x)[0])(np.ones(2)), [1, 2]),
    "one of its results": (lambda: pb.grad(lambda x: pb.where(x > 0, both(x)[0], 0.0))(X), [0, 0.25]),
    "broadcast numerator": (lambda: pb.grad(one_of(lambda a: a / np.array([0.0, 2.0])))(1.0), 0.5),
    "broadcast factor": (lambda: pb.grad(one_of(lambda a: a * np.array([np.inf, 2.0])))(1.0), 2),
    "matrix product": (lambda: pb.grad(one_of(lambda v: pb.matmul(INF, v)))(np.ones(2)), [2, 3]),
    "a length of zero": (lambda: pb.grad(lambda x: pb.where(x.sum() > 1, pb.sqrt((x * x).sum()), 0.0))(X * 0), [0, 0]),
    "rows": (
        lambda: pb.grad(lambda x: pb.where(SECOND, pb.euclidean_norm(x, axis=1), 0.0).sum())(ROWS),
        [[0, 0], [0.6, 0.8]],
    ),
    "complex": (lambda: pb.grad(lambda z: pb.real(pb.where(SECOND, pb.sqrt(z), 0.0)))(X + 0j), [0, 0.25]),
}  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), RIGHT.values(), ids=RIGHT)
def test_strong_zero_times_nonfinite_is_zero(call, expected):
    with pb.strong_zero():
        np.testing.assert_allclose(call(), expected, rtol=1e-6)


def test_gradients_are_nan_without_strong_zero():
    with np.errstate(all="ignore"):
        fine = {name for name, (call, _) in RIGHT.items() if not np.isnan(call()).any()}
    assert fine == {"jvp"}  # what was not chosen is not looked at on the way forward


def test_strong_zero_big_arrays():
    x = np.zeros(200_000)
    x[::2] = 4.0
    with pb.strong_zero():
        d = pb.grad(lambda x: (root(x * 1.0) * 1.0).sum())(x)
    assert d[::2].tolist() == [0.25] * 100_000
    assert not d[1::2].any()


def test_strong_zero_keeps_other_nans():
    with pb.strong_zero():
        assert pb.grad(pb.sqrt)(0.0) == np.inf
        assert np.isnan(pb.grad(lambda v: pb.matmul(INF, v).sum())(np.array([1.0, np.nan]))).sum() == 0
        d = pb.grad(lambda v: pb.matmul(INF, v).sum())(np.ones(2))
    assert d.tolist() == [3, np.inf]


def test_strong_zero_variable_grads():
    v = pb.variable([0.0, 4.0], name="under strong zero")
    with pb.strong_zero():
        assert pb.variable_grads(lambda: root(v).sum()).grads["under strong zero"].tolist() == [0, 0.25]


def test_strong_zero_is_local_to_block_and_thread():
    seen = []

    def elsewhere():
        with np.errstate(all="ignore"):
            seen.append(np.isnan(pb.grad(root)(X)).tolist())

    with pb.strong_zero(), pb.strong_zero():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert pb.grad(root)(X)[0] == 0
    elsewhere()
    assert seen == [[True, False]] * 2


def test_diagnose_under_strong_zero():
    with pb.strong_zero():
        assert not pb.diagnose(root)(X)
    assert pb.diagnose(root)(X).op == "sqrt"


def test_strong_zero_in_compiled_function() -> None:
    def slope(x: Any) -> Any:
        with pb.strong_zero():
            return pb.grad(lambda x: pb.sum(pb.where(x > 0, pb.sqrt(x), 0.0)))(x)

    np.testing.assert_array_equal(pb.compile(slope)(np.array([0.0, 4.0])), [0.0, 0.25])


def test_strong_zero_keeps_nonlinear_custom_gradient():
    clipped = pb.custom_grad(lambda x: (x * 1.0, lambda dy: pb.clip_by_value(dy, -1.0, 1.0) / x))
    linear = pb.custom_grad(lambda x: (x * 1.0, lambda dy: dy / x))
    weights = np.array([0.0, 5.0])
    with pb.strong_zero():
        assert pb.grad(lambda x: pb.sum(clipped(x) * weights))(np.array([0.0, 1.0]))[1] == 1.0
        assert pb.grad(lambda x: pb.sum(linear(x) * weights))(np.array([0.0, 1.0])).tolist() == [0.0, 5.0]
