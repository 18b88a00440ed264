"""Row-sparse gradients of gathered tables, against dense gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import tape
from pullback.errors import NanError

TABLE = np.random.default_rng(0).normal(size=(12, 3))
AT = np.array([3, 0, 3, -1])


def table(dtype: Any = np.float64) -> pb.Variable:
    return pb.variable(TABLE.astype(dtype))


def gradient(f: Callable[[], Any], v: pb.Variable, sparse: bool = True) -> Any:
    return pb.variable_grads(f, sparse=sparse).grads[v.name]


PICKS: dict[str, Callable[[Any], Any]] = {
    "gather": lambda t: pb.gather(t, AT),
    "gather of a matrix of indices": lambda t: pb.gather(t, [[1, 2], [2, -12]]),
    "gather by negative axis": lambda t: pb.gather(t, AT, axis=-2),
    "gather of one index": lambda t: pb.gather(t, np.array(5)),
    "gather of none": lambda t: pb.gather(t, np.array([], int)),
    "int8 indices": lambda t: pb.gather(t, AT.astype(np.int8)),
    "uint64 indices": lambda t: pb.gather(t, np.array([1, 1], np.uint64)),
    "tensor indices": lambda t: pb.gather(t, pb.tensor([1, 1], dtype="int32")),
    "take": lambda t: np.take(t, AT, axis=0),
    "list index": lambda t: t[[1, 1, 2]],
    "array index": lambda t: t[AT],
    "array index and whole rows": lambda t: t[AT, :],
    "array index and ellipsis": lambda t: t[AT, ...],
    "matrix index": lambda t: t[np.array([[1, 2], [2, 1]])],
    "integer": lambda t: t[-2],
    "integer and whole row": lambda t: t[4, :],
    "mask": lambda t: t[np.arange(12) % 5 == 0],
    "several gathers": lambda t: pb.gather(t, AT) * pb.gather(t, [0, 0, 1, 2]) + t[3],
    "rows in a loop": lambda t: sum(t[i] * i for i in range(6)),
    "gather of a gather": lambda t: pb.gather(pb.gather(t, AT), [0, 0, 2]),
}
DENSE: dict[str, Callable[[Any], Any]] = {
    "gather and dense": lambda t: pb.gather(t, AT).sum() + (t * t).sum(),
    "dense and gather": lambda t: (t * t).sum() + pb.gather(t, AT).sum(),
    "dense between": lambda t: pb.gather(t, AT).sum() * (t * t).sum() * t[3].sum(),
    "other axis": lambda t: pb.gather(t, [0, 2], axis=1),
    "batch axis": lambda t: pb.gather(t, np.zeros((12, 1), int), axis=1, batch_dims=1),
    "coordinates": lambda t: pb.gather_nd(t, [[1, 1], [2, 0]]),
    "elements": lambda t: t[[1, 2], [0, 0]],
    "one element": lambda t: t[3, 1],
    "matrix mask": lambda t: t[TABLE > 0],
    "slice": lambda t: t[2:4],
    "new axis": lambda t: t[None],
    "all": lambda t: t[...],
    "gather of a product": lambda t: pb.gather(t * 2.0, AT),
    "gather of a cast": lambda t: pb.gather(t.astype("float32"), AT),
    "other function": lambda t: np.exp(t),
}


def loss(pick: Any, t: Any) -> Callable[[], Any]:
    return lambda: (np.sin(pick(t)) * 1.5).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pick", PICKS.values(), ids=PICKS.keys())
def test_sparse_gradient_of_gathered_rows_equals_dense(pick: Any, dtype: Any):
    t = table(dtype)
    dense = pb.variable_grads(loss(pick, t))
    sparse = pb.variable_grads(loss(pick, t), sparse=True)
    assert isinstance(dense.grads[t.name], pb.Tensor)
    g = sparse.grads[t.name]
    assert isinstance(g, pb.RowSparse)
    assert isinstance(g.values, pb.Tensor)
    assert (g.shape, g.dtype) == (t.shape, t.dtype)
    assert sparse.value == dense.value
    np.testing.assert_allclose(g, dense.grads[t.name].numpy(), rtol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("pick", DENSE.values(), ids=DENSE.keys())
def test_sparse_gradient_of_use_other_than_gather_is_dense(pick: Any):
    t = table()
    dense = pb.variable_grads(loss(pick, t)).grads[t.name]
    g = pb.variable_grads(loss(pick, t), sparse=True).grads[t.name]
    assert isinstance(g, pb.Tensor)
    np.testing.assert_allclose(g.numpy(), dense.numpy(), rtol=1e-13)


@pytest.mark.parametrize("seed", range(40))
def test_sparse_gradient_of_random_sums_equals_dense(seed: int):
    random = np.random.default_rng(seed)
    t = table()
    chosen = [list(PICKS.values())[i] for i in random.integers(0, len(PICKS), random.integers(1, 4))]
    chosen += [list(DENSE.values())[i] for i in random.integers(0, len(DENSE), random.integers(0, 2))]
    order = random.permutation(len(chosen))

    def f() -> Any:
        terms = [np.sin(chosen[i](t)).sum() for i in order]
        return sum(terms[1:], terms[0]) * terms[-1]

    np.testing.assert_allclose(np.asarray(gradient(f, t)), gradient(f, t, False).numpy(), rtol=1e-7, atol=1e-12)


def test_sparse_gradients_of_several_variables_and_reads():
    t, w = table(), pb.variable(np.ones(3))

    def f() -> Any:
        first = (pb.gather(t, [1, 1]) * w).sum()
        t.assign(TABLE * 2.0)
        return first + (pb.gather(t, [1, 5]) * w).sum()

    _, dense = pb.variable_grads(f)
    t.assign(TABLE)
    _, sparse = pb.variable_grads(f, sparse=True)
    assert [type(sparse[n]) for n in (t.name, w.name)] == [pb.RowSparse, pb.Tensor]
    for name in (t.name, w.name):
        np.testing.assert_allclose(sparse[name].numpy(), dense[name].numpy())


def test_sparse_gradients_for_some_variables():
    t, w = table(), table()
    f = loss(lambda x: pb.gather(t, AT) * pb.gather(w, AT), None)
    grads = pb.variable_grads(f, sparse=lambda v: v is w).grads
    assert [type(grads[v.name]) for v in (t, w)] == [pb.Tensor, pb.RowSparse]


def test_sparse_gradient_of_unread_variables_is_absent():
    t, w = table(), pb.variable(1.0)
    grads = pb.variable_grads(lambda: pb.gather(t, [1]).sum(), [t, w], sparse=True).grads
    assert list(grads) == [t.name]


def test_sparse_gradient_of_big_table(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tape, "RECYCLED", 100_000)  # bytes, instead of 1 MiB
    t = pb.variable(np.ones((100_000, 8), np.float32))
    x = np.ones((5000, 8), np.float32)  # whose cotangents are recycled buffers
    at = np.arange(5000) % 700

    def f() -> Any:
        y = pb.gather(t, at) * x
        return (y * y + y).sum()

    g = pb.variable_grads(f, sparse=True).grads[t.name]
    np.testing.assert_allclose(g, pb.variable_grads(f).grads[t.name].numpy(), rtol=1e-6)


# ---- inside other transforms: exact, and dense where a transform follows the values


def test_sparse_gradient_inside_grad_is_exact():
    t = table()

    def f(s: Any) -> Any:
        g = pb.variable_grads(lambda: (pb.gather(t, AT) ** 3 * s).sum(), sparse=True).grads[t.name]
        return (g * g).sum()

    expected = np.zeros((12, 3))
    np.add.at(expected, AT, 3 * TABLE[AT] ** 2)
    assert pb.grad(f)(2.0) == pytest.approx(4.0 * (expected**2).sum())


def test_sparse_gradient_of_nested_variable_grads():
    t = table()

    def inner() -> Any:
        g = pb.variable_grads(lambda: (pb.gather(t, AT) ** 3).sum(), sparse=True).grads[t.name]
        return (g * g).sum()

    def dense() -> Any:
        g = pb.variable_grads(lambda: (pb.gather(t, AT) ** 3).sum()).grads[t.name]
        return (g * g).sum()

    first = pb.variable_grads(inner, sparse=True).grads[t.name]
    np.testing.assert_allclose(np.asarray(first), pb.variable_grads(dense).grads[t.name].numpy(), rtol=1e-12)


def test_sparse_gradient_of_hessian_vector_product():
    t, v = table(), np.ones((12, 3))

    def f() -> Any:
        g = pb.variable_grads(lambda: (pb.gather(t, AT) ** 3).sum()).grads[t.name]
        return (pb.gather(g, [3]) * v[3]).sum()

    g = pb.variable_grads(f, sparse=True).grads[t.name]
    np.testing.assert_allclose(np.asarray(g), pb.variable_grads(f).grads[t.name].numpy(), rtol=1e-12)


def test_sparse_gradient_inside_vmap_is_dense():
    t = table()

    def f(i: Any) -> Any:
        return pb.variable_grads(lambda: (pb.gather(t, i) ** 2).sum(), sparse=True).grads[t.name]

    made = np.asarray(pb.vmap(f)(np.array([[1, 1], [2, 0]])))
    for row, at in zip(made, ([1, 1], [2, 0]), strict=True):
        np.testing.assert_allclose(row, gradient(lambda at=at: (pb.gather(t, at) ** 2).sum(), t, False).numpy())


def test_sparse_gradient_inside_jvp_is_exact():
    t = table()

    def f(s: Any) -> Any:
        return gradient(lambda: (pb.gather(t, AT) * s).sum(), t).sum()

    assert pb.jvp(f, [2.0], [1.0]) == (24.0, 12.0)


def test_sparse_gradient_returned_by_compiled_function_is_dense():
    t = table()
    step = pb.compile(lambda at: pb.variable_grads(lambda: (pb.gather(t, at) ** 2).sum(), sparse=True).grads[t.name])
    expected = pb.variable_grads(lambda: (pb.gather(t, AT) ** 2).sum()).grads[t.name]
    np.testing.assert_allclose(np.asarray(step(AT)), expected.numpy())


def test_sparse_gradient_arithmetic_in_compiled_function():
    t = table()

    def f(at: Any) -> Any:
        g = pb.variable_grads(lambda: (pb.gather(t, at) ** 2).sum(), sparse=True).grads[t.name]
        return (g * 0.5 + g).to_dense(), np.exp(g)

    expected = pb.variable_grads(lambda: (pb.gather(t, AT) ** 2).sum()).grads[t.name].numpy()
    made = pb.compile(f)(AT)
    np.testing.assert_allclose(np.asarray(made[0]), 1.5 * expected)
    np.testing.assert_allclose(np.asarray(made[1]), np.exp(expected))


def test_sparse_gradient_through_recompute_grad():
    t = table()
    f = pb.recompute_grad(lambda x: (pb.gather(x, AT) ** 2).sum())
    g = pb.variable_grads(lambda: f(t), sparse=True).grads[t.name]
    np.testing.assert_allclose(np.asarray(g), pb.variable_grads(lambda: f(t)).grads[t.name].numpy())


def test_sparse_gradient_under_strong_zero_and_debug_nans():
    t = table()
    f = loss(PICKS["gather"], t)
    expected = gradient(f, t, False).numpy()
    with pb.strong_zero():
        np.testing.assert_allclose(np.asarray(gradient(f, t)), expected)
    with pb.debug_nans():
        np.testing.assert_allclose(np.asarray(gradient(f, t)), expected)


def test_debug_nans_checks_sparse_gradients():
    t = table()
    with pb.debug_nans(), pytest.raises(NanError):
        pb.variable_grads(lambda: np.sqrt(pb.gather(t, [0]) * 0.0).sum(), sparse=True)


# ---- GradientTape


@pytest.mark.parametrize("persistent", [False, True])
def test_tape_gradient_is_sparse_on_request(persistent: bool):
    t, x = table(), pb.tensor(TABLE)
    for sparse in (False, True):
        with pb.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = (pb.gather(t, AT) * pb.gather(x, AT)).sum() + x[2].sum()
        by_t, by_x = tape.gradient(y, [t, x], sparse=sparse)
        assert all(isinstance(g, pb.RowSparse if sparse else pb.Tensor) for g in (by_t, by_x))
        expected = np.zeros((12, 3))
        np.add.at(expected, AT, TABLE[AT])
        np.testing.assert_allclose(np.asarray(by_t), expected)
        expected[2] += 1
        np.testing.assert_allclose(np.asarray(by_x), expected)


def test_tape_gradient_of_computed_tensor_is_dense():
    t = table()
    with pb.GradientTape(persistent=True) as tape:
        z = t * 2.0
        y = pb.gather(z, AT).sum()
    assert isinstance(tape.gradient(y, z, sparse=True), pb.Tensor)
    assert isinstance(tape.gradient(y, t, sparse=True), pb.Tensor)
    assert tape.gradient(z, pb.variable(1.0), sparse=True) is None
