"""Positions that a compiled program is given: checked by machine code, and reported as eager ops report them."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ShapeError

X = np.arange(12.0).reshape(4, 3)
CASES = {
    "getitem": (lambda x, i: x[i] * 2.0, np.array([0, -4, 3]), np.array([0, 4, 1]), "4"),
    "negative": (lambda x, i: x[i] * 2.0, np.array([0, -4, 3]), np.array([0, -5, 1]), "-5"),
    "gather": (lambda x, i: pb.gather(x, i, 1), np.array([[2], [-3]]), np.array([[2], [3]]), "3"),
    "gather_nd": (pb.gather_nd, np.array([[3, -3], [0, 2]]), np.array([[3, -4], [0, 2]]), "-4"),
    "take_along_axis": (
        lambda x, i: np.take_along_axis(x, i, 1),
        np.array([[0], [1], [2], [-1]], np.int32),
        np.array([[0], [1], [9], [-1]], np.int32),
        "9",
    ),
    "host_op_between": (lambda x, i: np.sort(x[i], 0), np.array([3, 1]), np.array([3, 10**12]), str(10**12)),
    "gather_nd_in_range": (
        lambda x, i: pb.gather_nd(x, i[:, None] // 9) + x[i],
        np.array([3, 1]),
        np.array([3, 7]),
        "7",
    ),
    "two_checks": (lambda x, i: x[i] + x[::-1][i], np.array([3, 1]), np.array([3, 7]), "7"),
}


@pytest.mark.parametrize("guarded", ["0", "1"])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("case", CASES)
def test_index_out_of_range_raises_shape_error(
    case: str, backend: str, guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULLBACK_CANARY", guarded)
    f, good, bad, named = CASES[case]
    compiled: Any = pb.compile(f, backend=backend)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X, good), f(X, good))
        with pytest.raises(ShapeError):
            f(pb.tensor(X), bad)
        with pytest.raises(ShapeError, match=rf"positions of \w+: {named} is out of range for an axis of length"):
            compiled(X, bad)


def test_indexing_in_gradient_step_needs_no_host_op() -> None:
    logits, labels = np.linspace(-1.0, 2.0, 30).reshape(6, 5), np.array([0, 4, 2, 2, 1, 3])
    step = pb.value_and_grad(lambda x, y: pb.losses.sparse_softmax_cross_entropy(y, x), argnums=0)
    compiled = pb.compile(step, backend="llvm")
    for found, expected in zip(compiled(logits, labels), step(logits, labels), strict=True):
        np.testing.assert_allclose(found, expected, 1e-12)
    assert not [k for k in compiled.lower(logits, labels).kernels if "NumPy" in k]


def test_index_out_of_range_in_long_program_releases_arguments() -> None:
    x, good = np.ones((2000, 50)), np.arange(1000)
    bad = np.where(good == 500, 2000, good)
    compiled = pb.compile(lambda x, i: np.tanh(np.exp(x[i])) + np.sin(x[i]), backend="llvm")
    compiled(x, good)
    held = getrefcount(x), getrefcount(bad)
    for _ in range(3):
        with pytest.raises(ShapeError, match="2000 is out of range"):
            compiled(x, bad)
    assert (getrefcount(x), getrefcount(bad)) == held


def test_index_out_of_range_does_not_change_variables() -> None:
    v = pb.variable(np.arange(4.0))

    @pb.compile
    def step(i: Any) -> Any:
        v.assign(v + 1.0)
        return v[i]

    np.testing.assert_array_equal(step(np.array([0, 3])), [1.0, 4.0])
    with pytest.raises(ShapeError, match="4 is out of range"):
        step(np.array([0, 4]))
    np.testing.assert_array_equal(v.numpy(), [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("f", [np.sort, lambda x: pb.topk(x, 3).values, lambda x: pb.gather(x, np.argmax(x, 0), 0)])
def test_argmax_indices_skip_bounds_check(f: Any) -> None:
    x = np.sin(np.arange(40.0)).reshape(4, 10)
    compiled = pb.compile(f, backend="llvm")
    np.testing.assert_array_equal(compiled(x), np.asarray(f(x)))
    assert not [k for k in compiled.lower(x).kernels if "any" in k]


def test_index_out_of_range_next_to_right_integers_raises() -> None:
    f = pb.compile(lambda x, i, n: (n * n) * x[i])
    np.testing.assert_array_equal(f(X, np.array([1]), 3), X[[1]] * 9)
    with pytest.raises(ShapeError, match="4 is out of range for an axis of length 4"):
        f(X, np.array([4]), 3)
