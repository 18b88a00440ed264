"""Arrays of a few elements in the steps of loops become numbers, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pullback as pb


def spiral(p: Any, u: Any, forces: Any) -> Any:
    def step(u: Any, force: Any) -> Any:
        u = u + 0.1 * np.array([p[0] * u[1] - u[0] ** 3, -p[1] * u[0] + force[1]])
        return u, u * force[0] + np.sum(u)

    return pb.scan(step, u, forces)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_loop_over_small_arrays_is_split_into_scalars(dtype: str) -> None:
    random = np.random.default_rng(0)
    args = [random.normal(size=shape).astype(dtype) for shape in ((2,), (2,), (20, 2))]
    program = pb.compile(spiral)
    for got, wanted in zip(program(*args), spiral(*args), strict=True):
        assert got.dtype == wanted.dtype
        assert_allclose(got, wanted, rtol=1e-12 if dtype == "f8" else 1e-5)
    (loop,) = (n.data for n in program.lower(*args).stages.simplified if n.name == "loop")
    assert all(n.size == 1 for n in loop.body.nodes if n not in loop.body.inputs[: loop.constants])


def test_gradients_of_loops_over_small_matrices() -> None:
    def f(a: Any, xs: Any) -> Any:
        step = lambda m, x: (np.array([[m[1, 0] * x[0], m[0, 1]], [np.sin(m[1, 1]), m[0, 0] + x[1]]]), np.sum(m, 0))
        last, rows = pb.scan(step, a, xs)
        return np.sum(last[0]) + np.sum(rows * xs)

    args = np.random.default_rng(1).normal(size=(2, 2)), np.random.default_rng(2).normal(size=(15, 2))
    slope = pb.grad(f, argnums=(0, 1))
    for got, wanted in zip(pb.compile(slope)(*args), slope(*args), strict=True):
        assert_allclose(got, wanted, rtol=1e-11)


def test_split_small_arrays_with_nan_inf_and_integers() -> None:
    def f(x: Any, k: Any) -> Any:
        step = lambda c, y: (
            (np.stack([c[0][1], c[0][0] * y]), np.stack([c[1][1], c[1][0] + 1])),
            np.sum(np.stack([y, y])),
        )
        return pb.scan(step, (x, k), np.array([-0.0, np.inf, np.nan, 1e-310]))

    args = np.array([-0.0, 2.0]), np.array([1, 5])
    (got, got_sums), (wanted, wanted_sums) = pb.compile(f)(*args), f(*args)
    assert_array_equal(got[0], wanted[0])
    assert_array_equal(got[1], wanted[1])
    assert got[1].dtype == wanted[1].dtype
    assert_array_equal(got_sums, wanted_sums)
