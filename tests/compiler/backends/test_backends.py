"""Programs run by other array libraries: what does not depend on the op; ops are in ``test_every_op``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.backends.executor import LibraryExecutor
from pullback.compiler.backends.library import Library
from pullback.errors import ArgumentError, CompileError, MatrixError, ShapeError


def run_by_names(f: Any, *xs: Any) -> Any:
    """Run a function by the names of NumPy's functions, as with CuPy."""
    program = pb.compile(f, backend="numpy").lower(*xs)
    (made,) = LibraryExecutor(program.graph, Library(), program.traced)(xs)
    return made


def test_conv_net_gradient_by_library_matches_eager() -> None:
    rng = np.random.default_rng(0)
    images, filters = rng.normal(size=(2, 8, 8, 1)), rng.normal(size=(3, 3, 1, 4))

    def loss(w: Any) -> Any:
        h = pb.max_pool(pb.relu(pb.conv2d(images, w, 1, "same")), 2, 2)
        return pb.sum(pb.avg_pool(h, 2, 1, "valid") ** 2)

    np.testing.assert_allclose(run_by_names(pb.grad(loss), filters), pb.grad(loss)(filters), 1e-10)


def test_index_out_of_range_raises_after_backend_run() -> None:
    x = np.arange(6.0).reshape(2, 3)

    def f(x: Any, i: Any) -> Any:
        return pb.gather(x, i)

    np.testing.assert_array_equal(run_by_names(f, x, np.array([1, -1])), x[[1, 1]])
    with pytest.raises(ShapeError, match="7 is out of range"):
        run_by_names(f, x, np.array([7]))


def test_backend_host_op_warning_names_op() -> None:
    x = np.array([[2.0, 1.0], [1.0, 3.0]])

    def f(x: Any) -> Any:
        return np.linalg.eigvalsh(x * 1.5) + 1.0

    with pytest.warns(UserWarning, match="has no eigvalsh: NumPy runs this on the host"):
        np.testing.assert_allclose(run_by_names(f, x), f(x))


def test_device_without_library_backend_raises() -> None:
    with pytest.raises(ArgumentError, match="device='gpu' is for the backends jax, torch, cupy"):
        pb.compile(np.sin, device="gpu")


def test_missing_backend_error_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(CompileError, match="backend='cupy' needs the package cupy"):
        pb.compile(np.sin, backend="cupy")


def test_jax_arrays_stay_on_their_device() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    g = pb.compile(pb.grad(lambda x: pb.sum(x**3)), backend="jax", device="cpu")
    made = g(g(np.arange(3.0)))
    assert isinstance(made, jax.Array)
    np.testing.assert_allclose(made, 3.0 * (3.0 * np.arange(3.0) ** 2) ** 2)


def test_torch_tensors_stay_on_their_device() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    g = pb.compile(pb.grad(lambda x: pb.sum(x**3)), backend="torch", device="cpu")
    made = g(g(np.arange(3.0)))
    assert isinstance(made, torch.Tensor)
    np.testing.assert_allclose(made, 3.0 * (3.0 * np.arange(3.0) ** 2) ** 2)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_variables_are_read_and_assigned_with_backend(backend: str) -> None:
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    w = pb.variable(np.array([1.0, 2.0]))

    @pb.compile(backend=backend)
    def step(x: Any) -> Any:
        value, grads = pb.variable_grads(lambda: pb.sum(w * w * x), [w])
        w.assign_sub(0.1 * grads[w.name])
        return value

    assert float(step(np.ones(2))) == 5.0
    np.testing.assert_allclose(w.numpy(), [0.8, 1.6])


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_host_op_error_is_unchanged_with_backend(backend: str) -> None:
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    f = pb.compile(lambda x, i: pb.gather(x, i + 1), backend=backend)
    with pytest.raises(ShapeError, match="5 is out of range for an axis of length 2"):
        f(np.ones((2, 3)), np.array([4]))
    g = pb.compile(lambda x: np.linalg.svd(x * np.nan)[1], backend=backend)
    with pytest.warns(UserWarning, match="has no svd_rows"), pytest.raises(MatrixError, match="svd"):
        g(np.ones((2, 2)))


LOOPS: dict[str, Any] = {
    "scan": lambda x: pb.grad(lambda x: pb.scan(lambda c, y: (np.tanh(c * x + y), c), x, np.ones((4, 3)))[1].sum())(x),
    "while_loop": lambda x: pb.while_loop(lambda c: c.sum() < 50.0, lambda c: c * 2.0, x),
    "cond": lambda x: pb.grad(lambda x: pb.cond(x[0] > 0.0, lambda: np.sin(x), lambda: x * x).sum())(x),
    "host op in a step": lambda x: pb.scan(lambda c, y: (c + np.linalg.eigvalsh(np.outer(c, c)), y), x, x)[0],
}


@pytest.mark.filterwarnings("ignore:compile.*eigvalsh")
@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_branches_by_library_match_eager(name: str) -> None:
    x = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(run_by_names(LOOPS[name], x), LOOPS[name](x), 1e-10)


OPS: dict[str, Any] = {
    "arg_max of all": lambda x: np.argmax(x),
    "arg_min of a number": lambda x: np.argmin(x[0, 0]),
    "descending order": lambda x: pb.argsort(np.round(x), 1, descending=True),
    "order of a number": lambda x: pb.argsort(x[0, 0]),
    "whole quotients": lambda x: np.floor(x * 5).astype(np.int64) // 3,
    "empty view": lambda x: x[:0].T * 2.0,
    "product of integers": lambda x: np.floor(x * 5).astype(np.int32) @ np.floor(x.T * 5).astype(np.int32),
    "function that is missing": lambda x: pb.special.zeta(x + 9.0, 2.0),
}


@pytest.mark.filterwarnings("ignore:compile.*zeta")
@pytest.mark.parametrize("name", OPS)
def test_ops_by_library_match_eager(name: str) -> None:
    x = np.random.default_rng(4).normal(size=(3, 4))
    found, expected = run_by_names(OPS[name], x), np.asarray(OPS[name](x))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, 1e-12)
