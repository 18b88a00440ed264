"""Kernels that do many rows at a time, for any number and length of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.pipeline import lower
from pullback.compiler.runtime.llvm import llvm_available
from pullback.compiler.runtime.threads import has_threads
from pullback.compiler.target import MAX_ISA, X86, Options, list_isa_names

pytestmark = pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")

SIZES = [(1, 3), (1, 100), (5, 3), (16, 10), (37, 2), (37, 3), (37, 10), (35, 20), (37, 100), (9, 2500)]


def log_sum_exp(x: Any, weights: Any, scale: Any) -> Any:
    return pb.value_and_grad(lambda x: pb.sum(pb.log_sum_exp(x, 1)))(x)


def labels(x: Any, weights: Any, scale: Any) -> Any:
    """Row values of 8 bytes, whatever the dtype of the rows."""
    at = np.arange(len(x))[:, None] % x.shape[1]
    return pb.value_and_grad(lambda x: pb.sum(np.take_along_axis(pb.log_softmax(x), at, 1)))(x)


def logistic(x: Any, weights: Any, scale: Any) -> Any:
    """Return a sum for each row, and one for each column of what is computed from it."""
    return pb.value_and_grad(lambda w: pb.sum(np.log1p(np.exp(-weights[:, 0] * (x @ w)))))(scale)


def linear(x: Any, weights: Any, scale: Any) -> Any:
    """Return the same without a function of the row that would take long, and a sum of all rows beside it."""
    return pb.value_and_grad(lambda w: pb.sum((x @ w - weights[:, 0]) ** 2))(scale), pb.sum(x * scale, 1)


def norm(*xs: Any) -> Any:
    """Several reductions over rows and over columns, and one over everything."""

    def loss(x: Any, weights: Any, scale: Any) -> Any:
        centred = x - pb.mean(x, 1, keepdims=True)
        return pb.sum(np.exp(centred / np.sqrt(pb.mean(centred**2, 1, keepdims=True) + 1e-3) * scale) * weights)

    return pb.value_and_grads(loss)(list(xs))


def of_rows(x: Any, weights: Any, scale: Any) -> Any:
    """Row values of several dtypes, and bools of all elements."""
    largest, smallest = pb.max(x, 1), pb.min(x, 1)
    spread = np.log1p(np.exp(largest - smallest))
    above = x * weights > spread[:, None] * 0.5
    return spread, above, pb.any(above, 1), pb.all(above, 1), pb.sum(above, 1), np.tanh(pb.prod(x, 1)), largest > 1.0


def two_kinds(x: Any, weights: Any, scale: Any) -> Any:
    wide = np.exp(x.astype("float64") * 0.5)
    return pb.softmax(x) * pb.log(pb.sum(wide, 1, keepdims=True)).astype("float32"), weights * 2.0


def transpose(x: Any, weights: Any, scale: Any) -> Any:
    """Return rows with a stride, and adjacent elements of different rows."""
    return pb.softmax(weights.reshape(x.shape[::-1]).T * x)


def steps(x: Any, weights: Any, scale: Any) -> Any:
    return pb.softmax(x[::-2, ::-1] * weights[::-2, :]) / scale


def nest_axes(x: Any, weights: Any, scale: Any) -> Any:
    """Return rows along two axes, with a value that is the same along one."""
    factors = np.array([[1.0], [2.0], [0.5]], x.dtype)
    return pb.log_softmax(x[:, None, :] * scale * factors) + pb.log_sum_exp(x, 1)[:, None, None]


def two_axes(x: Any, weights: Any, scale: Any) -> Any:
    """Return rows of two axes that cannot be merged, with values kept for a later pass."""
    e = np.exp(x[:, None, :] * np.array([[0.5], [0.25]], x.dtype) + scale)
    return e / np.log(pb.sum(e, (1, 2), keepdims=True))


CASES = [log_sum_exp, labels, logistic, linear, norm, of_rows, two_kinds, transpose, steps, nest_axes, two_axes]


def draw(count: int, length: int, dtype: str) -> list[Any]:
    random = np.random.default_rng(count * 1000 + length)
    shapes = (count, length), (count, length), (length,)
    return [random.uniform(-2, 2, shape).astype(dtype) for shape in shapes]


def compare(f: Any, xs: list[Any]) -> Any:
    with np.errstate(all="ignore"):
        expected = pb.core.tree.leaves(f(*xs))
    compiled = pb.compile(f, threads=1)
    found = pb.core.tree.leaves(compiled(*xs))
    tolerance = 3e-6 if xs[0].dtype == np.float32 else 1e-13
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        size = np.abs(b[np.isfinite(b)]).max(initial=1) if b.dtype.kind == "f" else 1
        np.testing.assert_allclose(a, b, rtol=10 * tolerance, atol=tolerance * size)
    return compiled.lower(*xs)


@pytest.fixture(autouse=True)
def walls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_CANARY", "1")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("f", CASES)
@pytest.mark.parametrize(("count", "length"), SIZES)
def test_row_blocks_of_any_shape(f: Any, count: int, length: int) -> None:
    compare(f, draw(count, length, "f4"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("f", [f for f in CASES if f is not two_kinds])
@pytest.mark.parametrize(("count", "length"), [(3, 4), (8, 3), (21, 10), (37, 100)])
def test_row_blocks_of_doubles(f: Any, count: int, length: int) -> None:
    compare(f, draw(count, length, "f8"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", list_isa_names())
@pytest.mark.parametrize("f", CASES)
def test_row_blocks_with_narrow_vectors(f: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    compare(f, draw(37, 5, "f4"))


@pytest.mark.parametrize("f", [log_sum_exp, logistic, linear, norm, of_rows])
def test_row_blocks_of_matrix_with_zero_rows(f: Any) -> None:
    xs = draw(0, 7, "f8")
    if f is norm:
        assert np.array_equal(pb.compile(f)(*xs)[1][2], np.zeros(7))
    elif f is of_rows:
        assert [a.shape for a in pb.compile(f)(*xs)] == [(0,), (0, 7), *[(0,)] * 5]
    else:
        compare(f, xs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [log_sum_exp, labels, logistic, linear, of_rows, transpose])
@pytest.mark.parametrize("length", [3, 10, 100])
def test_row_blocks_do_not_spread_nan_and_inf_to_other_rows(f: Any, length: int) -> None:
    x, weights, scale = draw(37, length, "f4")
    special = [np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0]
    for i, v in enumerate(special):
        x[5 * i, i % length] = v
    x[31] = np.inf
    x[33] = -np.inf
    x[36] = np.nan  # a row of the last block, which is not full
    if f is logistic:
        with np.errstate(all="ignore"):
            expected = np.log1p(np.exp(-weights[:, 0] * np.sum(x * scale, 1)))
        found = pb.compile(lambda x, w: np.log1p(np.exp(-weights[:, 0] * (x @ w))))(x, scale)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    else:
        compare(f, [x, weights, scale])


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_threads(), reason="threads are for Linux")
@pytest.mark.parametrize(
    ("f", "length", "dtype"),
    [(log_sum_exp, 3, "f4"), (logistic, 10, "f4"), (norm, 10, "f4"), (norm, 3, "f8"), (logistic, 100, "f8")],
)
def test_row_block_results_do_not_depend_on_threads(f: Any, length: int, dtype: str) -> None:
    xs = draw(200_000 // length + 5, length, dtype)
    alone, many = (pb.compile(f, threads=n) for n in (1, 3))
    assert "@parallel(" in many.lower(*xs).ir
    assert all(map(np.array_equal, *(pb.core.tree.leaves(g(*xs)) for g in (alone, many))))


def test_short_rows_are_transposed() -> None:
    (target,) = (t for t in X86 if t.isa == "avx2")
    for length, is_turned in ((10, True), (100, False)):
        program = pb.compile(log_sum_exp, backend="llvm").lower(*draw(37, length, "f4"))
        text = lower(program.traced, target, Options()).module.text
        assert ("@tile_in_" in text) == is_turned


def test_sums_over_rows_are_as_accurate_as_numpy() -> None:
    x, weights, _ = draw(200_000, 3, "f4")
    f = pb.compile(lambda x, w: pb.sum(np.exp(x) * pb.log_sum_exp(x + w, 1)[:, None], 0))
    wide = [a.astype("f8") for a in (x, weights)]
    exact = np.sum(np.exp(wide[0]) * np.asarray(pb.log_sum_exp(wide[0] + wide[1], 1))[:, None], 0)
    np.testing.assert_allclose(f(x, weights), exact, rtol=2e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("length", [2, 3, 5, 7, 12, 20, 33])
def test_column_sums_with_factor_per_group_of_columns(length: int) -> None:
    def f(x: Any, w: Any) -> Any:
        y = np.concatenate([w, w[:, :1]], 1)[:, : w.shape[1], None] * x
        return np.sum(w[:, :, None] * x, 0), np.max(y, 0), np.sum(w[:, :, None] * np.exp(-x * x), 0)

    random = np.random.default_rng(length)
    for dtype, tolerance in (("f4", 1e-5), ("f8", 1e-13)):
        x, w = (random.standard_normal(s).astype(dtype) for s in ((37, 6, length), (37, 6)))
        for a, b in zip(pb.compile(f, backend="llvm", cache=False)(x, w), f(x, w), strict=True):
            np.testing.assert_allclose(a, b, tolerance, tolerance)


@pytest.mark.parametrize("isa", ["sse2", "avx2", "avx512"])
@pytest.mark.parametrize("length", [2, 3, 5, 7, 12, 20, 33])
def test_partial_accumulators_do_not_overlap(length: int, isa: str) -> None:
    """Accumulators in memory are loaded right after those of other columns were stored: none may overlap."""
    x, w = np.ones((37, 6, length), "f4"), np.ones((37, 6), "f4")
    traced = pb.compile(lambda x, w: np.sum(w[:, :, None] * x, 0), backend="numpy").lower(x, w).traced
    target = next(t for t in X86 if t.isa == isa)
    stages = lower(traced, target, Options())
    (plan,) = [s.plan.loops.plan for s in stages.scheduled]
    partial = plan.lay_out_partial(plan.after[0])
    places = [p for _, count, at in partial.ranges for p in range(at, at + count)]
    assert sum(count for _, count, _ in partial.ranges) == partial.length == length
    assert len({*places}) == length
    assert max(places) < partial.stride
    assert "llvm.masked.store" not in str(stages.module.text)
