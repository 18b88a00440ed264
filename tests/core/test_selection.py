"""``x[mask]`` under ``compile`` and ``vmap``, where the number of elements is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, BatchedValueError, ShapeError, SymbolValueError

X = np.array([[1.0, -2.0, 3.0], [0.0, 4.0, -1.0]])
MANY = np.stack([X, X * 1.3 + 0.1, 1.0 - X])


def scale_in_place(x: Any) -> Any:
    y = x * 1.0
    y[y > 0] *= 3
    y[y < -1] = 0.5
    return y


def write_logarithms(x: Any) -> Any:
    y = x * 1.0
    m = y > 0
    y[m] = np.log(y[m]) / np.sqrt(x[m])  # the others are zero and negative
    return y


def use_other_arrays(x: Any) -> Any:
    y, w = x * 1.0, np.sqrt(x * x + 1)
    m = x > 0
    y[m] /= w[m]
    y[~m] = np.exp(y[~m]) * w[~m]
    return y


def select_rows_and_columns(x: Any) -> Any:
    y = x * 1.0
    y[y[:, 0] > 0] += np.array([1.0, 2.0, 3.0])
    y[y[:, 1] < 0, 0] = 7.0
    y[:, y[0] > 0] -= 1.0
    y[..., y[0] > 1] **= 2
    y.T[x.T > 2] = 5.0 * x[0, 0]
    return y


def reduce_all(x: Any) -> Any:
    p, n = x[x > 0], x[x < 0]
    return p.mean() + np.sum(p**2) + n.max() * p.min() + np.var(p, ddof=1) + np.std(p) * p.prod() + n @ n


def reduce_rows(x: Any) -> Any:
    rows = x[x[:, 0] > 0]
    kept = rows.mean(axis=0, keepdims=True)[0] + x[:, x[0] > 0].mean(axis=1)[0]
    return rows.sum(axis=0) * kept * rows.sum(axis=1).max()


def change_selection(x: Any) -> Any:
    y = x[x > 0]
    z = y
    z *= 2  # a copy of the elements, with two names
    y[y > 3] = 3.0
    return y.copy().sum() + y[y < 3].sum() + np.where(y > 2, y, 0).sum() + np.any(y > 100) + x.sum()


PROGRAMS = [
    scale_in_place, write_logarithms, use_other_arrays, select_rows_and_columns, reduce_all, reduce_rows,
    change_selection,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_selection_by_mask_matches_numpy_under_every_transform(f: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.sin(f(x)))

    want = np.stack([f(x) for x in MANY])
    slopes, curves = np.stack([pb.grad(loss)(x) for x in MANY]), np.stack([pb.hessian(loss)(x) for x in MANY])
    assert np.all(np.isfinite(slopes))
    np.testing.assert_allclose(pb.vmap(f)(MANY), want)
    np.testing.assert_allclose(pb.compile(f)(X), want[0])
    np.testing.assert_allclose(pb.compile(pb.vmap(pb.grad(loss)))(MANY), slopes)
    np.testing.assert_allclose(pb.grad(lambda xs: pb.vmap(loss)(xs).sum())(MANY), slopes)
    np.testing.assert_allclose(pb.vmap(pb.hessian(loss))(MANY), curves, atol=1e-12)
    np.testing.assert_allclose(pb.compile(pb.hessian(loss))(X), curves[0], atol=1e-12)
    tangents = pb.vmap(lambda x: pb.jvp(loss, (x,), (X,))[1])(MANY)
    np.testing.assert_allclose(tangents, np.sum(slopes * X, axis=(1, 2)))


def test_selected_integers_and_bools() -> None:
    def f(n: Any) -> Any:
        n = n * 1
        n[n % 2 == 0] //= 2
        return n, n[n > 1].sum(), n[n > 1].mean(), n[n > 1].max(), np.all(n[n > 1] > 0)

    n = np.array([4, 3, 0, 8])
    for got, want in zip(pb.compile(f)(n), f(n), strict=True):
        np.testing.assert_array_equal(got, want)
        assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 0], lambda x: len(x[x > 0]), lambda x: np.sort(x[x > 0]), lambda x: x[x > 0][0],
        lambda x: np.concatenate([x[x > 0], x[x > 1]]), lambda x: list(x[x > 0]), lambda x: float(x[x > 0]),
    ],
)  # fmt: skip
def test_selection_by_traced_mask_rejects_shape_dependent_functions(f: Callable[..., Any]) -> None:
    with pytest.raises(SymbolValueError, match=r"x\[mask\]: how many elements.*where\(condition, x, y\)"):
        pb.compile(f)(X)
    with pytest.raises(BatchedValueError, match=r"x\[mask\]: how many elements.*np.where\(mask, x, 0\)"):
        pb.vmap(f)(MANY)


def test_selections_of_mismatched_masks_or_shapes_raise() -> None:
    with pytest.raises(ArgumentError, match="only if both masks are the same"):
        pb.vmap(lambda x: x[x > 0] + x[x > 1])(MANY)
    with pytest.raises(ShapeError, match=r"the other operand of shape \(3,\) has 3"):
        pb.compile(lambda x: x[x > 0] * np.arange(3.0))(X)
    with pytest.raises(ShapeError, match=r"the mask has shape \(3,\)"):
        pb.compile(lambda x: x[x[0] > 0].sum())(X)
    for run in (pb.compile(lambda x: x[x > 9].max()), lambda x: pb.vmap(lambda v: v[v > 9].min())(x[None])):
        with pytest.raises(ArgumentError, match="the mask selects nothing"):
            run(X)
    with pytest.raises(ArgumentError, match="cannot hold"):
        pb.compile(lambda n: _divide(n))(np.arange(3))


def _divide(n: Any) -> Any:
    n = n * 1
    n[n > 0] /= 2
    return n


def test_boolean_mask_of_traced_mask_is_a_selection() -> None:
    np.testing.assert_allclose(pb.compile(lambda x: pb.boolean_mask(x, x > 0).sum())(X), 8.0)


@pytest.mark.parametrize("name", ["max", "min", "any", "all"])
def test_extremes_of_selected_bools_are_bools(name: str) -> None:
    f = lambda x: getattr((x > 1)[x > 0], name)()
    want = np.stack([f(x) for x in MANY])
    np.testing.assert_array_equal(pb.vmap(f)(MANY), want, strict=True)
    for x in MANY:
        assert pb.compile(f)(x).dtype == bool
        assert pb.compile(f)(x) == f(x)


def test_selection_with_operand_of_one_element() -> None:
    f = lambda x: np.sum(x[x > 0] * np.array([2.0]) + np.array(1.0))
    np.testing.assert_allclose(pb.vmap(f)(MANY), [f(x) for x in MANY])
    np.testing.assert_allclose(pb.compile(f)(X), f(X))


def test_selection_repr_shows_array_and_mask() -> None:
    shown: list[str] = []
    pb.compile(lambda x: (shown.append(repr(x[x > 0])), x)[1])(X)
    assert shown[0].startswith("<elements of <symbol %")
    assert shown[0].endswith(": bool[2, 3]>>")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[0, None, x[0] > 0],
        lambda x: np.stack([x, x])[0, :, x[0] > 0],
        lambda x: bool(x[x > 0]),
        lambda x: float(x[x > 0]),
    ],
)
def test_selection_by_mask_that_needs_number_of_elements_raises(f: Callable[..., Any]) -> None:
    with pytest.raises(SymbolValueError, match=r"x\[mask\]: how many elements there are in the result depends on"):
        pb.compile(f)(X)
