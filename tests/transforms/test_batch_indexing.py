"""``vmap`` of indexing, gathering, sorting and joining, and its gradients, against a Python loop over the examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, BatchedValueError, ShapeError

N = 3
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 4, 5, 6))
I = RNG.integers(-4, 4, size=N)  # noqa: E741
J = RNG.integers(-5, 5, size=(N, 2))
K = RNG.integers(-4, 4, size=(N, 2))
MASK = RNG.uniform(size=(4, 5)) > 0.5
LAST = np.arange(6) % 2 == 0
SOME = [(0, 0, 0, 0), (None, 0, 0, 0), (0, None, None, None), (0, 0, None, 0), (0, None, 0, 0)]


def compare_with_loop(f: Any, args: Any, axes: Any) -> None:
    """``vmap`` of ``f``, of its gradient, and the gradient and tangent of ``vmap``, in the first argument."""
    args = [a if axis == 0 else a[0] for a, axis in zip(args, axes, strict=True)]
    each = [[a[n] if axis == 0 else a for a, axis in zip(args, axes, strict=True)] for n in range(N)]
    loss = lambda x, *rest: np.sum(np.sin(f(x, *rest)))
    slope = lambda x, *rest: pb.grad(lambda x: loss(x, *rest))(x)
    slopes = np.stack([slope(*a) for a in each])
    together = lambda x: np.sum(np.sin(pb.vmap(f, axes)(x, *args[1:])))
    wanted = slopes if axes[0] == 0 else slopes.sum(axis=0)
    direction = RNG.normal(size=wanted.shape)
    values = np.stack([np.asarray(f(pb.tensor(a[0]), *a[1:])) for a in each])
    close = 1e-5 if values.dtype == np.float32 else 1e-9
    got = pb.vmap(f, axes)(*args)
    assert (got.shape, got.dtype) == (values.shape, values.dtype)
    np.testing.assert_allclose(got, values, rtol=1e-12)
    np.testing.assert_allclose(pb.vmap(slope, axes)(*args), slopes, rtol=close, atol=1e-12)
    np.testing.assert_allclose(pb.grad(together)(args[0]), wanted, rtol=close, atol=1e-12)
    np.testing.assert_allclose(pb.jvp(together, [args[0]], [direction])[1], np.sum(wanted * direction), rtol=10 * close)


INDEXED = {
    "x[i]": lambda x, i, j, k: x[i],
    "x[k]": lambda x, i, j, k: x[k],
    "x[i, 1:]": lambda x, i, j, k: x[i, 1:],
    "x[:, j]": lambda x, i, j, k: x[:, j],
    "x[..., j]": lambda x, i, j, k: x[..., j],
    "x[None, i]": lambda x, i, j, k: x[None, i],
    "x[i, j]": lambda x, i, j, k: x[i, j],
    "x[k, j]": lambda x, i, j, k: x[k, j],
    "x[::-2, j, 1]": lambda x, i, j, k: x[::-2, j, 1],
    "x[k, :, j]": lambda x, i, j, k: x[k, :, j],
    "x[0, :, j]": lambda x, i, j, k: x[0, :, j],
    "x[i, None, ..., j]": lambda x, i, j, k: x[i, None, ..., j],
    "x[:, j, ..., 1]": lambda x, i, j, k: x[:, j, ..., 1],
    "x[[i, 0]]": lambda x, i, j, k: x[[i, 0]],
    "x[:, j, [0, 1]]": lambda x, i, j, k: x[:, j, [0, 1]],
    "outer": lambda x, i, j, k: x[k[:, None], j[None, :]],
    "twice": lambda x, i, j, k: x[k][:, i],
    "x[i, :, mask]": lambda x, i, j, k: x[i, :, LAST],
    "x[mask]": lambda x, i, j, k: x[MASK],
    "x[[0, 1], :, [0, 2]]": lambda x, i, j, k: x[[0, 1], :, [0, 2]],
    "x[1, :, [0, 2]]": lambda x, i, j, k: x[1, :, [0, 2]],
    "by argmax": lambda x, i, j, k: x[np.argmax(x[:, 0, 0])],
    "unpacked": lambda x, i, j, k: sum(row[i] for row in x),
}  # fmt: skip


@pytest.mark.parametrize("axes", SOME)
@pytest.mark.parametrize("form", INDEXED)
def test_vmap_of_indexing_matches_loop(form: str, axes: Any) -> None:
    compare_with_loop(INDEXED[form], (X, I, J, K), axes)


def put(index: Any, value: Any) -> Any:
    def f(x: Any, i: Any, j: Any, k: Any) -> Any:
        y = np.cos(x)
        y[index(i, j, k)] = value(x)
        return y

    return f


ASSIGNED = {
    "number": put(lambda i, j, k: i, lambda x: 0.0),
    "row": put(lambda i, j, k: i, lambda x: x[0] ** 2),
    "rows, the last of two stays": put(lambda i, j, k: k, lambda x: x[:2] ** 2),
    "elements": put(lambda i, j, k: (k, j), lambda x: x[0, 0] ** 2),
    "along another axis": put(lambda i, j, k: (slice(None), j), lambda x: x[:, :2] ** 2),
    "separated": put(lambda i, j, k: (k, slice(None), j), lambda x: x[:2, :, 0] ** 2),
    "one of both known": put(lambda i, j, k: (0, i), lambda x: x[1, 2] * 2),
    "more axes than there are": put(lambda i, j, k: i, lambda x: x[None, None, 0] ** 2),
    "slices": put(lambda i, j, k: slice(1, None), lambda x: x[:3] ** 2),
    "known places, one of them twice": put(lambda i, j, k: (..., [0, 0, 1]), lambda x: x[..., :3] ** 2),
    "mask": put(lambda i, j, k: MASK, lambda x: x[0, 0]),
}


@pytest.mark.parametrize("axes", SOME)
@pytest.mark.parametrize("form", ASSIGNED)
def test_vmap_of_index_assignment_matches_loop(form: str, axes: Any) -> None:
    compare_with_loop(ASSIGNED[form], (X, I, J, K), axes)


def test_vmap_of_assignment_by_batched_mask() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y[x > 0.5] = x[0, 0]
        return y

    want = np.stack([np.where(x > 0.5, x[0, 0], x * 2) for x in X[..., 0]])
    np.testing.assert_allclose(pb.vmap(f)(X[..., 0]), want)


def test_nested_vmap_of_indexing() -> None:
    rows, columns = np.array([0, 2, -1]), np.array([[1, 1], [4, 0], [2, 3]])
    table = RNG.normal(size=(4, 5))
    f = lambda r, c: pb.vmap(lambda one: pb.tensor(table)[r, one])(c)
    np.testing.assert_array_equal(pb.vmap(f)(rows, columns), table[rows[:, None], columns])
    loss = lambda table: pb.sum(pb.vmap(lambda r, c: pb.vmap(lambda one: table[r, one] ** 2)(c))(rows, columns))
    want = np.zeros_like(table)
    np.add.at(want, (rows[:, None], columns), 2 * table[rows[:, None], columns])
    np.testing.assert_allclose(pb.grad(loss)(table), want)


def test_vmap_of_second_derivative_with_batched_index() -> None:
    f = lambda x, i: pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(x[i] ** 3))(x)[i]))(x)
    want = np.zeros((N, 4))
    want[np.arange(N), I] = 6
    np.testing.assert_allclose(pb.vmap(f)(np.ones((N, 4)), I), want)


# ------------------------------------------------------------------ functions

Y = np.where(np.abs(X) < 0.1, np.nan, X)  # some are missing
A = X[:, :, :, 0]
ONE = {
    "take": lambda x, i, j, k: np.take(x, k, axis=0),
    "take of all": lambda x, i, j, k: np.take(x, k),
    "take, clipped": lambda x, i, j, k: np.take(x, k * 3, axis=1, mode="clip"),
    "take, wrapped": lambda x, i, j, k: np.take(x, k * 3, axis=1, mode="wrap"),
    "take_along_axis": lambda x, i, j, k: np.take_along_axis(x, np.argsort(x, axis=1), axis=1),
    "gather": lambda x, i, j, k: pb.gather(x, j, 1),
    "gather_nd": lambda x, i, j, k: pb.gather_nd(x, np.stack([k, j], -1)),
    "tensor_scatter_update": lambda x, i, j, k: pb.tensor_scatter_update(x, np.stack([k, j], -1), x[0, :2]),
    "scatter_nd": lambda x, i, j, k: pb.scatter_nd(np.stack([k, j], -1), x[0, :2], (4, 5)),
    "sort": lambda x, i, j, k: np.sort(x, axis=0),
    "sort of all": lambda x, i, j, k: np.sort(x, axis=None),
    "sort, descending": lambda x, i, j, k: pb.sort(x, 0, True),
    "argsort": lambda x, i, j, k: x * np.argsort(x, axis=0),
    "partition": lambda x, i, j, k: np.partition(x, 2, axis=1)[:, 2],
    "topk": lambda x, i, j, k: pb.topk(x, 2).values,
    "median": lambda x, i, j, k: np.median(x, axis=0),
    "median of all": lambda x, i, j, k: np.median(x),
    "percentile": lambda x, i, j, k: np.percentile(x, [10, 60], axis=1),
    "quantile of each": lambda x, i, j, k: np.quantile(x, (i + 5) / 10, axis=1, keepdims=True),
    "concatenate": lambda x, i, j, k: np.concatenate([x, np.ones((2, 5)), x[:1] * i], axis=0),
    "concatenate all": lambda x, i, j, k: np.concatenate([x, k], axis=None),
    "stack": lambda x, i, j, k: np.stack([x, np.ones((4, 5)), x * i], axis=-1),
    "stack of numbers": lambda x, i, j, k: pb.stack([x[0, 0], 1.0, x[1, 1]]),
    "hstack": lambda x, i, j, k: np.hstack([x, x[:, :1]]),
    "block": lambda x, i, j, k: np.block([[x, x], [x, np.zeros((4, 5))]]),
    "split": lambda x, i, j, k: np.split(x, [2], axis=1)[1],
    "unstack": lambda x, i, j, k: pb.unstack(x, 1)[2] * pb.unstack(x, -1)[0],
    "pad": lambda x, i, j, k: np.pad(x, ((1, 2), (0, 1)), constant_values=2.0),
    "pad, reflect": lambda x, i, j, k: np.pad(x, 2, mode="reflect"),
    "pb.pad": lambda x, i, j, k: pb.pad(x, [[1, 0], [2, 1]], 3.0),
    "mirror_pad": lambda x, i, j, k: pb.mirror_pad(x, [[1, 1], [2, 0]], "symmetric"),
    "where": lambda x, i, j, k: np.where(x > 0, x, i),
    "where by rows": lambda x, i, j, k: np.where(k[0] > 0, x, -x),
    "select": lambda x, i, j, k: np.select([x < 0, x < 0.5], [x * 2, x * i], x**2),
    "choose": lambda x, i, j, k: np.choose(np.abs(k) % 2, [x[0, :2], x[1, :2]]),
    "piecewise": lambda x, i, j, k: np.piecewise(x, [x < 0, x > 0.5], [lambda v: v * 2, lambda v: v**2, 0.5]),
    "clip": lambda x, i, j, k: np.clip(x, -0.5, np.abs(i)),
    "roll": lambda x, i, j, k: np.roll(x, 2) + np.roll(x, (1, 2), (0, 1)),
    "roll of each": lambda x, i, j, k: np.roll(x, i) + np.roll(x, i, 1) + np.roll(x, k, (1, 0)),
    "slice of each": lambda x, i, j, k: pb.slice(x, [i % 2, j[0] % 3], [2, 2]) + pb.slice(x, np.abs(k) % 2, [2, 2]),
    "flip": lambda x, i, j, k: np.flip(x) * np.flip(x, 1),
    "rot90": lambda x, i, j, k: np.rot90(x),
    "reshape": lambda x, i, j, k: np.reshape(x, (2, -1)) * np.ravel(x)[0],
    "transpose": lambda x, i, j, k: x.T @ np.swapaxes(x, 0, 1).T,
    "moveaxis": lambda x, i, j, k: np.moveaxis(x[None], (0, 1), (-1, 0)),
    "squeeze": lambda x, i, j, k: np.squeeze(np.expand_dims(x, (0, 3))) * np.squeeze(x[:1, :1]),
    "broadcast_to": lambda x, i, j, k: np.broadcast_to(x[0], (2, 3, 5)),
    "tile": lambda x, i, j, k: np.tile(x, (2, 1, 3)),
    "repeat": lambda x, i, j, k: np.repeat(x, 2, axis=1) + pb.repeat(x[0, 0], 10),
    "meshgrid": lambda x, i, j, k: np.meshgrid(x[0], k)[0],
    "diag": lambda x, i, j, k: np.diag(x) @ np.diag(x[0, :4]),
    "tril": lambda x, i, j, k: np.tril(x, -1) + np.triu(x, 1),
    "insert": lambda x, i, j, k: np.insert(x, 2, i, axis=0),
    "delete": lambda x, i, j, k: np.delete(x, [1], axis=0),
    "append": lambda x, i, j, k: np.append(x, x[:1], axis=0),
    "cumprod": lambda x, i, j, k: np.cumprod(x, axis=1),
    "cumsum": lambda x, i, j, k: np.cumsum(x),
    "diff": lambda x, i, j, k: np.diff(x, 2, axis=0),
    "gradient": lambda x, i, j, k: np.gradient(x, axis=1),
    "trapezoid": lambda x, i, j, k: np.trapezoid(x, axis=0),
    "average": lambda x, i, j, k: np.average(x, axis=0, weights=np.abs(k).sum() + np.arange(4)),
    "cov": lambda x, i, j, k: np.cov(x),
    "max": lambda x, i, j, k: np.max(x, axis=0) - np.min(x),
    "argmax": lambda x, i, j, k: x[0] * np.argmax(x, axis=0),
    "prod": lambda x, i, j, k: np.prod(x, axis=(0, 1)),
    "one_hot": lambda x, i, j, k: x[0, :4] * pb.one_hot(i % 4, 4),
    "segments": lambda x, i, j, k: pb.unsorted_segment_sum(x[:2], np.abs(k), 5),
    "segment_mean": lambda x, i, j, k: pb.unsorted_segment_mean(x[:2], k, 3),
    "segment_prod": lambda x, i, j, k: pb.unsorted_segment_prod(x[:2], k, 3),
    "segment_max": lambda x, i, j, k: pb.unsorted_segment_max(x, np.array([0, 1, 0, -1]), 2),
    "segment_max of each": lambda x, i, j, k: pb.unsorted_segment_max(x[:2], k * 0 + 1, 2)[1],
    "sorted segments": lambda x, i, j, k: pb.segment_sum(x, [0, 0, 1, 3]),
    "bincount": lambda x, i, j, k: pb.bincount(np.abs(k), x[0, :2], 6),
    "sparse_to_dense": lambda x, i, j, k: pb.sparse_to_dense(np.abs(k), x[0, :2], [5], x[1, 1]),
    "space_to_batch_nd": lambda x, i, j, k: pb.space_to_batch_nd(x, [5], [[0, 0]]),
    "space_to_depth": lambda x, i, j, k: pb.space_to_depth(np.reshape(x[:, :4], (2, 2, 2, 2)), 2),
    "cast": lambda x, i, j, k: pb.cast(x, "float32") * pb.cast(k[0], "float32"),
    "full_like": lambda x, i, j, k: x * np.full_like(x, 2.0) + np.ones_like(x),
    "linspace": lambda x, i, j, k: np.linspace(x[0], x[1], 3),
    "searchsorted": lambda x, i, j, k: x[0] * np.searchsorted(np.sort(x[0]), x[1]),
    "isin": lambda x, i, j, k: x[0, :2] * np.isin(k, j),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (None, 0, 0, 0), (0, None, None, None)])
@pytest.mark.parametrize("name", ONE)
def test_vmap_of_array_function_matches_loop(name: str, axes: Any) -> None:
    f = ONE[name]
    chosen = lambda x, i, j, k: np.where(i % 2 == 0, f(x, i, j, k), 1)  # something is different for each example
    compare_with_loop(f if axes[0] == 0 else chosen, (A, I, J, K), axes)


@pytest.mark.parametrize(
    "f",
    [np.nanmean, np.nansum, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.nanprod, np.nancumsum, np.nan_to_num],
    ids=lambda f: f.__name__,
)
def test_vmap_of_nan_ignoring_function_matches_loop(f: Any) -> None:
    compare_with_loop(f, (Y[..., 0],), (0,))
    if f is not np.nan_to_num:
        compare_with_loop(lambda x: f(x, axis=1), (Y[..., 0],), (0,))


@pytest.mark.parametrize("f", [np.isclose, np.digitize], ids=lambda f: f.__name__)
def test_vmap_without_batching_rule_runs_examples_in_loop(f: Any) -> None:
    bins = np.array([-1.0, 0.0, 1.0])
    g = lambda x: f(x, bins)
    np.testing.assert_array_equal(pb.vmap(g)(A[:, 0, :3]), np.stack([g(a) for a in A[:, 0, :3]]))


def test_vmap_of_dtype_predicates() -> None:
    f = lambda x: x * 2 if np.isrealobj(x) and not np.iscomplexobj(x) and np.result_type(x) == x.dtype else x
    np.testing.assert_array_equal(pb.vmap(f)(A), 2 * A)


# ------------------------------------------------------------------ what cannot be


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: x[x > 0], r"x\[mask\]: how many elements.*np.where\(mask, x, 0\)"),
        (lambda x: x[None, x > 0], r"x\[mask\]: how many elements"),
        (lambda x: pb.boolean_mask(x, x > 0), r"x\[mask\]: how many elements.*where\(mask, x, 0\)"),
        (pb.unique, "unique: how many elements"),
        (np.unique, "np.unique: how many elements"),
        (lambda x: pb.setdiff1d(x, np.ones(2)), "setdiff1d: how many elements"),
        (lambda x: pb.intersect1d(x, np.ones(2)), "intersect1d: how many elements"),
        (lambda x: pb.union1d(np.ones(2), x), "union1d: how many elements"),
        (lambda x: pb.setxor1d(x, np.ones(2)), "setxor1d: how many elements"),
        (lambda x: np.compress(x > 0, x), "np.compress: how many elements"),
        (lambda x: np.extract(x > 0, x), "np.extract: how many elements"),
        (lambda x: np.where(x > 0), r"np.where\(condition\): how many elements"),
        (np.nonzero, "np.nonzero under vmap or compiled: .*np.where"),
        (np.flatnonzero, "np.flatnonzero under vmap or compiled: .*np.where"),
        (np.array_str, "np.array_str under vmap or compiled: its results are several"),
        (lambda x: pb.repeat(np.ones(2), x[0].astype(int)), "repeat: how many elements"),
        (lambda x: pb.segment_sum(x, x.astype(int)), "segment_sum: how many.*unsorted_segment_sum"),
        (lambda x: pb.bincount(x.astype(int)), "bincount: how many elements.*Give the size"),
        (lambda x: np.bincount(x.astype(int)), "np.bincount: how many elements.*Give minlength"),
        (lambda x: x[x[0].astype(int) :], r"x\[i \+ np.arange\(n\)\] for x\[i : i \+ n\]"),
        (lambda x: pb.slice(x, [x[0].astype(int)]), r"int\(\) of a value that is different"),
        (lambda x: np.arange(3)[x.astype(int)], r"pb.tensor\(a\)\[i\] or pb.take\(a, i\)"),
    ],
)
def test_vmap_of_data_dependent_shape_raises(f: Any, words: str) -> None:
    with pytest.raises(BatchedValueError, match=words):
        pb.vmap(f)(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]]))


def test_vmap_of_masked_assignment_of_array_raises() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y[x > 0] = np.ones(2)
        return y

    with pytest.raises(ShapeError, match=r"x\[mask\] = value: how many elements.*shape \(2,\).*np.where"):
        pb.vmap(f)(np.array([[1.0, 1.0, 0.0]]))


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (
            lambda x: x.reshape(7),
            r"reshape: x has shape \(3, 4\), that is 12 elements; they do not fit shape \(7,\)\.$",
        ),
        (lambda x: np.concatenate([x, x.T]), r"concat: .*shape \(3, 4\) and .* shape \(4, 3\).*that of axis 0 must"),
        (lambda x: x[9], r"getitem: index 9 is out of bounds for axis 0 with size 3 \(given shapes .*, index=9\)\.$"),
        (lambda x: x @ x, r"matmul: got shapes \(3, 4\) and \(3, 4\)"),
        (lambda x: pb.pad(x, [[1]]), r"pad: paddings must be a pair .* for each axis of x, got \[\[1\]\]"),
    ],
)
def test_vmap_errors_report_shape_of_one_example(f: Any, words: str) -> None:
    with pytest.raises((ShapeError, ArgumentError), match=words):
        pb.vmap(f)(np.ones((2, 3, 4)))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (lambda i: i, r"the index 7 is out of range for axis 1 of length 4. \(Under vmap: the 2 examples are one"),
        (lambda i: (i, i), r"the index 7 is out of range for axis 1 of length 4. \(Under vmap: the 2 examples are one"),
        (lambda i: (0, 0, i), "x has shape .4, 5., and the index names 3 axes"),
    ],
)
def test_vmap_of_index_out_of_range_raises(index: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        pb.vmap(lambda x, i: x[index(i)])(np.ones((2, 4, 5)), np.array([1, 7]))
