"""Equations, inverses and determinants of small matrices: compiled without LAPACK, with its results and errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import MatrixError

RNG = np.random.default_rng(0)
OPS = {
    "solve": lambda x: np.linalg.solve(x, x[..., :1] + 1),
    "solve vector": lambda x: np.linalg.solve(x, np.arange(1.0, 1.0 + x.shape[-1])),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": lambda x: np.linalg.slogdet(x)[1],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (4, 4), (5, 3, 3)])
def test_small_matrices_match_numpy(name, shape):
    x, f = RNG.normal(size=shape), OPS[name]
    program = pb.compile(lambda x: f(x))
    assert_allclose(program(x), f(x), rtol=1e-9, atol=1e-12)
    assert not any("NumPy" in line for line in program.lower(x).kernels)
    gradient = pb.grad(lambda x: np.sum(f(x) ** 2))
    assert_allclose(pb.compile(gradient)(x), gradient(x), rtol=1e-6)


def test_gradient_of_small_determinant_needs_no_lapack_call():
    x = RNG.normal(size=(5, 4, 4))
    x[0, 0] = x[0, 1]  # singular, but its determinant has a gradient
    gradient = pb.grad(lambda x: np.sum(np.linalg.det(x)))
    program = pb.compile(gradient)
    assert_allclose(program(x), gradient(x), rtol=1e-9, atol=1e-12)
    assert not any("matrices" in line for line in program.lower(x).kernels)


def test_small_matrix_solve_pivots_rows():
    x = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [4.0, 1.0, 0.0]])
    assert_allclose(pb.compile(np.linalg.inv)(x), np.linalg.inv(x))
    assert_allclose(pb.compile(np.linalg.det)(x), np.linalg.det(x))


@pytest.mark.parametrize("f", [np.linalg.inv, lambda x: np.linalg.solve(x, np.ones(2))])
def test_small_matrices_singular_raises(f):
    compiled = pb.compile(lambda x: f(x))
    for x in (np.zeros((2, 2)), np.array([[1.0, 2.0], [2.0, 4.0]])):
        with pytest.raises(MatrixError, match="singular"):
            compiled(x)
    assert_allclose(compiled(np.eye(2)), f(np.eye(2)))


def test_small_matrices_singular_determinant():
    sign, logarithm = pb.compile(lambda x: tuple(np.linalg.slogdet(x)))(np.zeros((2, 2)))
    assert (sign, logarithm) == (0, -np.inf)
    assert pb.compile(np.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]])) == 0


def test_small_matrices_singular_in_a_loop_raises():
    step = lambda c, x: (np.linalg.solve(x, c), None)
    f = pb.compile(lambda xs: pb.scan(step, np.ones(2), xs)[0])
    xs = np.stack([np.eye(2)] * 3)
    assert_allclose(f(xs), np.ones(2))
    xs[1] = 0
    with pytest.raises(MatrixError, match="singular"):
        f(xs)
