"""sparse_jacobian and sparse_hessian: against dense ones, number of nonzeros, passes and memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import pullback as pb
from pullback.errors import ArgumentError, GradientError, ShapeError, TracedValueError

RNG = np.random.default_rng(0)
N = 12


@pb.custom_grad
def softplus(x: Any, save: Any) -> Any:
    e = np.exp(x)
    save([e])
    return np.log(1 + e), lambda dy, saved: dy * (1 - 1 / (1 + saved[0]))


def band(x: Any) -> Any:
    return x[1:-1] ** 2 - x[:-2] * x[2:]


def grid(x: Any) -> Any:
    u = np.pad(np.reshape(x, (3, 4)), 1)
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1] ** 2


def put(x: Any) -> Any:
    y = x * 2.0
    y[3] = x[0] * x[1]
    y[5:8] = 7.0
    return y


POSITIONS = np.array([3, 0, 3, 11, 5])
MATRIX = np.arange(1.0, 10.0).reshape(3, 3)
# the function, and how many places its jacobian has at most
CASES: dict[str, tuple[Any, int]] = {
    "band": (band, 3 * (N - 2)),
    "joined": (lambda x: pb.concat([x[:1] ** 2, band(x), x[-1:] * x[0]]), 3 * (N - 2) + 3),
    "rolled": (lambda x: np.roll(x, 1) * x + np.sin(x) * np.roll(x, -1), 3 * N),
    "grid": (grid, 5 * N),
    "elementwise": (lambda x: np.exp(x) / (1 + x**2), N),
    "a where": (lambda x: np.where(x > 0, x**2, np.roll(x, 1)), 2 * N),
    "the larger": (lambda x: np.maximum(x, np.roll(x, 1)), 2 * N),
    "turned": (lambda x: np.transpose(np.reshape(x, (3, 4)))[::-1] ** 2, N),
    "picked": (lambda x: x[POSITIONS] * x[:5], 2 * 5),
    "sums of rows": (lambda x: np.sum(np.reshape(x, (3, 4)) ** 2, axis=1), N),
    "rows scaled": (lambda x: np.reshape(x, (3, 4)) / np.max(np.reshape(x, (3, 4)), axis=1, keepdims=True), 4 * N),
    "rows times a matrix": (lambda x: np.reshape(x, (3, 4)) @ np.ones((4, 2)), 4 * 6),
    "a matrix times columns": (lambda x: np.ones((2, 3)) @ np.sin(np.reshape(x, (3, 4))), 3 * 8),
    "a vector times a matrix": (lambda x: np.sin(x[:3]) @ MATRIX, 9),
    "a matrix times a vector": (lambda x: np.reshape(x, (4, 3)) @ MATRIX[0], N),
    "a vector times matrices": (lambda x: MATRIX[0, :2] @ np.reshape(x, (2, 2, 3)), N),
    "both of x": (lambda x: x[9:] @ np.reshape(x[:9], (3, 3)), 9 + 9),
    "running sums of rows": (lambda x: np.cumsum(np.reshape(x, (3, 4)), axis=1), 4 * N),
    "stacked": (lambda x: np.stack([x, x**2], axis=1), 2 * N),
    "differences": (np.diff, 2 * (N - 1)),
    "put": (put, N),
    "one row": (lambda x: np.sum(x**2), N),
    "one row more": (lambda x: pb.concat([band(x), np.sum(x**2, keepdims=True)]), 3 * (N - 2) + N),
    "one column": (lambda x: x * x[0], 2 * N - 1),
    "a gradient of one's own": (lambda x: softplus(x) * np.roll(x, 1), 2 * N),
    "recomputed": (pb.recompute_grad(lambda x: np.sin(x) * x), N),
    "for each": (pb.vmap(lambda x: x**2), N),
    "a constant": (lambda x: np.ones(3), 0),
    "itself": (lambda x: x, N),
    "nothing": (lambda x: x[:0], 0),
    "sorted": (lambda x: np.sort(x), N),
    "convolved": (lambda x: np.convolve(x, np.array([1.0, -2.0, 1.0]), "same") * x, 3 * N),
    "filtered": (
        lambda x: pb.conv1d(np.reshape(x, (N, 1)), np.array([[[1.0]], [[-2.0]], [[1.0]]]), 1, "same") ** 2,
        3 * N,
    ),
    "averaged": (lambda x: pb.avg_pool(np.reshape(x, (1, 3, 4, 1)), 2, 1, "valid") ** 2, 4 * 6),
}


@pytest.mark.parametrize("case", CASES)
def test_sparse_jacobian_matches_dense_jacobian(case: str) -> None:
    f, places = CASES[case]
    x = RNG.normal(size=N)
    J = pb.sparse_jacobian(f)
    for at in (x, x[::-1].copy(), x + 1):  # the second time the pattern is known
        found, want = J(at), np.reshape(pb.jacobian(f)(at), (-1, N))
        assert isinstance(found, scipy.sparse.csr_array)
        assert found.nnz <= places
        assert found.shape == want.shape
        np.testing.assert_allclose(found.toarray(), want, rtol=1e-12, atol=1e-12)


HESSIANS: dict[str, tuple[Any, int]] = {
    "rosenbrock": (lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), 3 * N),
    "apart": (lambda x: np.sum(np.exp(x) * np.sin(x)), N),
    "in pairs": (lambda x: np.sum(x[::2] * x[1::2] ** 2), 2 * N),
    "linear": (lambda x: np.sum(3 * x), 0),
    "gradient of one's own": (lambda x: np.sum(softplus(x) ** 2), N),
    "dense": (lambda x: np.sum(x) ** 2 * x[0], N * N),
    "a quadratic form": (lambda x: x[:3] @ MATRIX @ x[:3], 9),
    "of both": (lambda x: np.sum(np.tanh(x[9:] @ np.reshape(x[:9], (3, 3)))), N * N),
}


@pytest.mark.parametrize("case", HESSIANS)
def test_sparse_hessian_matches_dense_hessian(case: str) -> None:
    f, places = HESSIANS[case]
    x = RNG.normal(size=N)
    H = pb.sparse_hessian(f)
    for at in (x, x + 1):
        found = H(at)
        assert found.nnz <= places
        np.testing.assert_allclose(found.toarray(), pb.hessian(f)(at), rtol=1e-10, atol=1e-10)


def test_sparse_jacobian_pattern_depends_on_values_and_branches() -> None:
    """A Python ``if``, positions that depend on values, lists of positions that are changed, other shapes."""
    chosen = np.array([0, 1, 2])

    def f(x: Any) -> Any:
        y = x * x if x[0] > 0 else np.roll(x, 1) * x
        return pb.concat([y, x[chosen] ** 2, np.sort(x)])

    J = pb.sparse_jacobian(f)
    for step in range(12):
        x = RNG.normal(size=6 + step % 2)
        if step == 6:
            chosen[:] = [5, 4, 3]  # the very same array
        np.testing.assert_allclose(J(x).toarray(), pb.jacobian(f)(x))


def test_sparse_jacobian_of_max_positions_in_backward_pass() -> None:
    J = pb.sparse_jacobian(lambda x: np.max(np.reshape(x, (3, 4)), axis=1))
    for _ in range(4):
        x = RNG.normal(size=N)
        np.testing.assert_allclose(J(x).toarray(), pb.jacobian(J.__wrapped__)(x))


def test_sparse_jacobian_of_zero_filter() -> None:
    """Where what is convolved with depends on ``x`` too, and is zero at first."""
    J = pb.sparse_jacobian(lambda x: pb.conv1d(np.reshape(x, (N, 1)), np.reshape(x[:3], (3, 1, 1)), 1, "same"))
    x = RNG.normal(size=N)
    for first in (0.0, 1.0, 2.0):
        x[0] = first
        np.testing.assert_allclose(J(x).toarray(), np.reshape(pb.jacobian(J.__wrapped__)(x), (-1, N)), atol=1e-12)


def passes(f: Any, x: Any) -> int:
    """How many times the backward rule of ``f``'s first step is run, for one sparse jacobian whose pattern is known."""
    gone: list[Any] = []

    @pb.custom_grad
    def mark(x: Any, save: Any) -> Any:
        return x * 1.0, lambda dy, saved: (gone.append(dy.shape), dy)[1]

    J = pb.sparse_jacobian(lambda x: f(mark(x)))
    J(x)
    return len(gone)


def test_sparse_jacobian_of_band_takes_few_passes() -> None:
    x = RNG.normal(size=10_000)
    assert passes(band, x) <= 3 + 3  # three colours, and the passes that find out the program


@pytest.mark.parametrize("f", [band, lambda x: np.roll(x, 1) * x - np.roll(x, -1) ** 2])
def test_sparse_jacobian_allocates_no_dense_array(f: Any) -> None:
    x = RNG.normal(size=10_000)
    J = pb.sparse_jacobian(f)
    tracemalloc.start()
    found = J(x)
    again = J(x + 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
    assert found.nnz <= 3 * len(x)
    v = RNG.normal(size=len(x))
    np.testing.assert_allclose(found @ v, pb.jvp(f, [x], [v])[1])
    np.testing.assert_allclose(again @ v, pb.jvp(f, [x + 1], [v])[1])


def test_sparse_jacobian_of_100_000_inputs() -> None:
    f = lambda x: np.roll(x, 1) * x + np.exp(np.sin(x)) * pb.concat([x[1:], x[:1]])
    x, v = RNG.normal(size=(2, 100_000))
    J = pb.sparse_jacobian(f)
    for at in (x, x + 1):
        np.testing.assert_allclose(J(at) @ v, pb.jvp(f, [at], [v])[1])


def test_sparse_jacobian_of_dense_row_or_column() -> None:
    """A dense row is cheap by rows, a dense column by columns."""
    x = RNG.normal(size=2000)
    wide, tall = lambda x: pb.concat([x[:3] ** 2, np.sum(x**2, keepdims=True)]), lambda x: x[:1] * np.arange(2000.0)
    for f in (wide, tall):
        v = RNG.normal(size=len(x))
        np.testing.assert_allclose(pb.sparse_jacobian(f)(x) @ v, pb.jvp(f, [x], [v])[1])


def test_sparse_jacobian_input_types_and_dtypes() -> None:
    x = RNG.normal(size=N)
    assert pb.sparse_jacobian(band)(x.astype("f4")).dtype == np.float32
    assert pb.sparse_jacobian(band)(x.tolist()).dtype == np.float64
    J = pb.sparse_jacobian(band)
    for given in (x, x.astype("f4"), pb.tensor(x), x.tolist()):
        np.testing.assert_allclose(J(given).toarray(), pb.jacobian(band)(x), rtol=1e-5)
    first = J(x)
    first.data[:] = first.indices[:] = 0  # the caller's own
    np.testing.assert_allclose(J(x).toarray(), pb.jacobian(band)(x))
    assert pb.sparse_jacobian(lambda x: x * x)(3.0).toarray().tolist() == [[6.0]]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(J))(x).toarray(), J(x).toarray())
    assert repr(J) == "<sparse_jacobian of band>"
    assert repr(pb.sparse_hessian(band)) == "<sparse_hessian of band>"


def dense(x: Any) -> Any:
    return x * np.sum(x)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: pb.sparse_jacobian(3), ArgumentError, "f must be a function, got int"),
        (lambda: pb.sparse_hessian(3), ArgumentError, r"sparse_hessian\(f\): f must be a function"),
        (lambda: pb.sparse_jacobian(band)((np.ones(3), 1.0)), ArgumentError, "x must be one tensor, got a tree of 2"),
        (lambda: pb.sparse_jacobian(lambda x: (x, x))(np.ones(3)), ArgumentError, "result of f must be one tensor"),
        (lambda: pb.sparse_jacobian(lambda x: None)(np.ones(3)), GradientError, "something to differentiate"),
        (lambda: pb.sparse_jacobian(lambda x: x * 1j)(np.ones(3)), GradientError, "complex numbers"),
        (lambda: pb.sparse_hessian(band)(np.ones(3)), ShapeError, r"one number, got a tensor of shape \(1,\)"),
        (
            lambda: pb.grad(lambda x: pb.sparse_jacobian(band)(x).sum())(np.ones(3)),
            TracedValueError,
            "gives a SciPy array.*use jacobian there",
        ),
        (
            lambda: pb.sparse_jacobian(dense)(np.ones(10_000)),
            GradientError,
            "not sparse: by .* nearly everything depends on everything.*Use jacobian",
        ),
    ],
)
def test_sparse_jacobian_and_hessian_bad_arguments_raise(call: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_sparse_jacobian_without_scipy_raises() -> None:
    program = (
        "import sys; sys.modules['scipy'] = sys.modules['scipy.sparse'] = None\n"
        "import pullback as pb\n"
        "try: pb.sparse_jacobian(lambda x: x)(1.0)\n"
        "except pb.errors.MissingPackageError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'pullback[scipy]'" in run.stdout
