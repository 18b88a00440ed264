"""Factorizations and equations of matrices, compiled: with the results, gradients and errors of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE
from numpy.testing import assert_allclose

import pullback as pb
from pullback.compiler.target import find_blas
from pullback.errors import CompileError, MatrixError


def draw(*shape: int, dtype: str = "f8") -> Any:
    random = np.random.default_rng(len(shape))
    return (random.normal(size=shape) + (3 * np.eye(shape[-1]) if shape[-2:] == shape[-1:] * 2 else 0)).astype(dtype)


def draw_positive(*shape: int, dtype: str = "f8") -> Any:
    x = draw(*shape)
    return (x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def turn(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


FLAGS = [(lower, trans) for lower in (True, False) for trans in (True, False)]
OPS: dict[str, Callable[..., Any]] = {
    "cholesky": lambda x, y: pb.linalg.cholesky(x @ turn(x) + np.eye(x.shape[-1], dtype=x.dtype)),
    "upper cholesky": lambda x, y: pb.linalg.cholesky(x @ turn(x) + np.eye(x.shape[-1], dtype=x.dtype), upper=True),
    **{
        f"triangular {lower} {trans}": lambda x, y, lower=lower, trans=trans: pb.linalg.triangular_solve(
            x, y, lower=lower, trans=trans
        )
        for lower, trans in FLAGS
    },
    "triangular, rows": lambda x, y: turn(pb.linalg.triangular_solve(turn(x), turn(turn(y) * 1.0), lower=False)),
    "solve": pb.linalg.solve,
    "solve transposed": lambda x, y: pb.linalg.solve(turn(x), y),
    "solve vector": lambda x, y: pb.linalg.solve(x, y[(0,) * (y.ndim - 2)][:, 0]),
    "triangular vector": lambda x, y: pb.linalg.triangular_solve(x, y[(0,) * (y.ndim - 2)][:, 0]),
    "solve columns for all": lambda x, y: pb.linalg.solve(x, y[(0,) * (y.ndim - 2)]),
    "inv": lambda x, y: pb.linalg.inv(x),
    "inv transposed": lambda x, y: pb.linalg.inv(turn(x)),
    "det": lambda x, y: pb.linalg.det(x / 3),
    "slogdet": lambda x, y: pb.linalg.slogdet(x)[1] * pb.linalg.slogdet(x)[0],
}
SHAPES = [((6, 6), (6, 3)), ((5, 7, 7), (5, 7, 1)), ((2, 9, 9, 9), (9, 9, 4)), ((40, 40), (40, 40))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("name", OPS)
def test_compiled_matrix_functions_match_numpy(name: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_MAX_ISA", isa)
    f = OPS[name]
    for i, (x_shape, y_shape) in [*enumerate(SHAPES)][(RUNNABLE.index(isa) + len(name)) % 2 :: 2]:
        dtype, tolerance = ("f4", 2e-3) if (RUNNABLE.index(isa) + i // 2) % 2 else ("f8", 1e-9)
        x, y = draw(*x_shape, dtype=dtype) / np.sqrt(x_shape[-1]).astype(dtype), draw(*y_shape, dtype=dtype)
        x = (x + 3 * np.eye(x_shape[-1])).astype(dtype)
        program = pb.compile(lambda x, y: f(x, y), cache=False)
        expected = np.asarray(f(x, y))
        assert_allclose(program(x, y), expected, tolerance, tolerance)
        assert program(x, y).dtype == expected.dtype
        gradient = pb.grad(lambda x, y: np.sum(np.sin(f(x, y))) + np.sum(y), argnums=(0, 1))
        compiled = pb.compile(gradient, cache=False)
        for z, wanted in zip(compiled(x, y), gradient(x, y), strict=True):
            assert_allclose(z, wanted, tolerance, tolerance * max(1.0, np.abs(wanted).max()))
        assert not [step for p in (program, compiled) for step in p.lower(x, y).kernels if "NumPy" in step]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("batch", "count"), [((), 5), ((), 40), ((19,), 5), ((19,), 40), ((3,), 400)])
def test_right_hand_sides_that_are_rows(batch: tuple[int, ...], count: int) -> None:
    x, y = draw_positive(*batch, 6, 6), draw(*batch, count, 6)
    for f in (
        lambda x, y: pb.linalg.triangular_solve(x, turn(y)),
        lambda x, y: turn(pb.linalg.triangular_solve(turn(x), turn(y), lower=False)),
    ):
        both = pb.value_and_grad(lambda x, y, f=f: np.sum(np.sin(f(x, y))), argnums=(0, 1))
        compiled = pb.compile(both)
        assert_allclose(pb.compile(f)(x, y), f(x, y), 1e-9, 1e-9)
        for z, wanted in zip(compiled(x, y)[1], both(x, y)[1], strict=True):
            assert_allclose(z, wanted, 1e-9, 1e-9 * max(1.0, np.abs(wanted).max()))


def test_second_derivative_of_compiled_matrix_functions() -> None:
    x, y = draw(6, 6), draw(6, 2)
    for name in ("cholesky", "triangular True False", "solve", "slogdet"):
        f = pb.grad(lambda x, name=name: np.sum(pb.grad(lambda x: np.sum(np.sin(OPS[name](x, y))))(x) ** 2))
        assert_allclose(pb.compile(f)(x), f(x), 1e-7, 1e-7)


def list_factorizations(f: Callable[..., Any], *args: Any) -> list[str]:
    return [step for step in pb.compile(f).lower(*args).kernels if step.startswith("lu")]


def test_value_and_gradients_share_one_factorization() -> None:
    x, y = draw(9, 9), draw(9)
    for f in (
        lambda x: np.sum(np.linalg.solve(x, y) ** 2),
        lambda x: y @ np.linalg.solve(x, y) + np.linalg.slogdet(x)[1],
        lambda x: np.sum(np.linalg.inv(x) @ np.linalg.solve(x.T, y)) * np.linalg.det(x),
    ):
        assert len(list_factorizations(pb.value_and_grad(f), x)) == 1


@pytest.mark.parametrize("n", [6, 40])
@pytest.mark.parametrize("batch", [(), (19,)])
def test_matrices_without_a_factorization_raise(batch: tuple[int, ...], n: int) -> None:
    good, y = np.broadcast_to(draw_positive(n, n), (*batch, n, n)).copy(), draw(n, 2)
    singular, indefinite, diagonal = good.copy(), good.copy(), good.copy()
    last = (-1,) * len(batch)
    singular[(*last, 2)] = 0.0
    indefinite[(*last, 3, 3)] = -1.0
    diagonal[(*last, 4, 4)] = 0.0
    for f, bad, word in (
        (pb.linalg.cholesky, indefinite, "positive definite"),
        (lambda x: pb.linalg.triangular_solve(x, y), diagonal, "singular"),
        (lambda x: pb.linalg.solve(x, y), singular, "singular"),
        (pb.linalg.inv, singular, "singular"),
        (lambda x: pb.grad(lambda x: np.sum(np.linalg.slogdet(x)[1]))(x), singular, "singular"),
    ):
        compiled = pb.compile(lambda x, f=f: f(x))
        assert_allclose(compiled(good), f(good), 1e-9, 1e-9)
        with pytest.raises(MatrixError, match=word):
            compiled(bad)
        assert_allclose(compiled(good), f(good), 1e-9, 1e-9)


def test_singular_matrices_have_determinants() -> None:
    x = draw(6, 6)
    x[2] = x[1]
    gradient = pb.grad(np.linalg.det)
    assert pb.compile(np.linalg.det)(x * 0.0) == 0
    assert_allclose(pb.compile(gradient)(x), gradient(x), 1e-9, 1e-9)


def test_matrix_with_nan_does_not_raise() -> None:
    x = draw_positive(6, 6)
    x[3, 3] = np.nan
    for f in (pb.linalg.cholesky, np.linalg.inv, lambda x: np.linalg.solve(x, np.ones(6))):
        assert_allclose(pb.compile(lambda x, f=f: f(x))(x), f(x))


def test_matrix_functions_in_compiled_loops() -> None:
    xs = np.stack([draw_positive(6, 6) * k for k in range(1, 4)])
    step = lambda c, x: (pb.linalg.solve(x, c), pb.linalg.cholesky(x)[-1])
    f = lambda xs: pb.scan(step, np.ones(6), xs)
    gradient = pb.grad(lambda xs: np.sum(f(xs)[0]) + np.sum(f(xs)[1] ** 2))
    for z, wanted in zip(pb.compile(f)(xs), f(xs), strict=True):
        assert_allclose(z, wanted, 1e-9)
    assert_allclose(pb.compile(gradient)(xs), gradient(xs), 1e-8, 1e-10)
    xs[1] *= -1.0
    with pytest.raises(MatrixError, match="positive definite"):
        pb.compile(f)(xs)


def test_matrices_without_blas_are_run_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("target", "runtime.link"):
        monkeypatch.setattr(f"pullback.compiler.{place}.find_blas", dict)
    x, y = draw_positive(70, 70), draw(70, 3)
    f = lambda x, y: np.sum(pb.linalg.triangular_solve(pb.linalg.cholesky(x), y)) + np.sum(pb.linalg.solve(x, y))
    g = pb.grad(f, argnums=0)
    assert_allclose(pb.compile(g, backend="llvm", cache=False)(x, y), g(x, y), 1e-8, 1e-10)


def test_program_for_blas_that_is_not_there_is_run_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.compiler.runtime.link.find_blas", dict)
    x = draw_positive(70, 70)
    f = lambda x: np.sum(pb.linalg.cholesky(x))
    with pytest.raises(CompileError, match="this program has matrix products for OpenBLAS, which is not in NumPy's"):
        pb.compile(f, backend="llvm", cache=False)(x)
    assert_allclose(pb.compile(f, cache=False)(x), f(x), 1e-12)


@pytest.mark.parametrize("name", ["libopenblas.so", "libother.so"])
def test_blas_that_cannot_be_loaded_is_not_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.libs").mkdir()
    (tmp_path / "numpy.libs" / name).write_bytes(b"no library")
    monkeypatch.setattr(np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    assert find_blas.__wrapped__() == {}


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "svd": lambda x: tuple(pb.linalg.svd(x)),
    "qr": lambda x: tuple(pb.linalg.qr(x)),
    "eigvalsh": lambda x: (pb.linalg.eigvalsh(x[..., : x.shape[-1], :]),),
    "eigh": lambda x: tuple(pb.linalg.eigh(x[..., : x.shape[-1], :])),
    "upper eigh": lambda x: tuple(pb.linalg.eigh(x[..., : x.shape[-1], :], "U")),
    "pinv": lambda x: (pb.linalg.pinv(x),),
    "lstsq": lambda x: (pb.linalg.lstsq(x, x[..., :1] + 1.0).x,),
    "np.linalg.cholesky": lambda x: (np.linalg.cholesky(turn(x) @ x + np.eye(x.shape[-1], dtype=x.dtype)),),
}


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_decompositions_match_numpy(name: str) -> None:
    f = DECOMPOSITIONS[name]
    gradient = pb.grad(lambda x: sum(np.sum(np.sin(part)) for part in f(x)))
    for shape, dtype, tolerance in (((9, 5), "f8", 1e-8), ((3, 4, 4), "f4", 2e-3), ((1, 1), "f8", 1e-8)):
        x = draw(*shape, dtype=dtype)
        program, compiled = pb.compile(lambda x: f(x), cache=False), pb.compile(gradient, cache=False)
        for z, wanted in zip(program(x), f(x), strict=True):
            assert_allclose(z, wanted, tolerance, tolerance)
            assert z.dtype == wanted.dtype
        wanted = gradient(x)
        assert_allclose(compiled(x), wanted, tolerance, tolerance * max(1.0, np.abs(wanted).max()))
        if name not in ("lstsq", "pinv") or len(shape) == 2:
            assert not [s for s in compiled.lower(x).kernels if "NumPy" in s and "svdvals" not in s]


def test_decomposition_without_convergence_raises() -> None:
    x = np.full((5, 5), np.nan)
    for f in (pb.linalg.svd, pb.linalg.pinv):
        for run in (f, pb.compile(lambda x, f=f: f(x))):
            with pytest.raises(MatrixError, match="converge"):
                run(x)


def test_compiled_cholesky_reads_one_triangle() -> None:
    x = draw_positive(3, 6, 6)
    for upper in (False, True):
        junk = x + np.tril(np.ones((6, 6)), -1) * 7.0 if upper else x + np.triu(np.ones((6, 6)), 1) * 7.0
        f = lambda x, upper=upper: np.sum(np.sin(np.linalg.cholesky(x, upper=upper)))
        assert_allclose(pb.compile(f)(junk), f(x), 1e-12)
        assert_allclose(pb.compile(pb.grad(f))(junk), pb.grad(f)(x), 1e-9, 1e-12)
        step = 1e-5 * np.random.default_rng(1).normal(size=x.shape)
        assert_allclose(np.sum(pb.grad(f)(x) * step), (f(x + step) - f(x - step)) / 2, 1e-5, 1e-10)


def test_solve_with_constant_1x1_matrix() -> None:
    found = pb.compile(lambda b: np.linalg.solve(np.array([[2.0]]), b))(np.array([3.0]))
    np.testing.assert_array_equal(found, [1.5])


@pytest.mark.parametrize("name", ["eigvals", "eigvalsh", "svdvals"])
def test_eigenvalues_and_gradient_share_one_factorization(name: str) -> None:
    values = getattr(pb.linalg, name)
    f = pb.value_and_grad(lambda x: np.sum(np.abs(values(x)) ** 3))
    x = np.random.default_rng(0).normal(size=(2, 5, 5)) + np.diag(np.arange(5.0))
    compiled = pb.compile(f)
    for z, expected in zip(compiled(x), f(x), strict=True):
        np.testing.assert_allclose(z, expected, rtol=1e-9)
    names = [n.name for n in compiled.lower(x).stages.simplified.nodes]
    assert name not in names
    np.testing.assert_allclose(pb.compile(values)(x), values(x), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_with_large_cholesky_factor(dtype: str) -> None:
    x, y = draw_positive(300, 300).astype(dtype), draw(300, 280, dtype=dtype)
    for f in (lambda x, y: pb.linalg.cholesky(x) @ y, lambda x, y: pb.linalg.cholesky(x).T @ y):
        compiled, expected = pb.compile(f, cache=False), f(x, y)
        assert_allclose(compiled(x, y), expected, 0, np.finfo(dtype).eps * 100 * np.abs(expected).max())
        assert "multiply" in str(compiled.lower(x, y).kernels)


def test_eigh_of_unknown_triangle_raises_as_eager() -> None:
    for f in (lambda x: pb.linalg.eigh(x, "X").eigenvalues, pb.compile(lambda x: pb.linalg.eigh(x, "X").eigenvalues)):
        with pytest.raises(ValueError, match="UPLO argument must be 'L' or 'U'"):
            f(draw_positive(3, 3))


def test_complete_qr_is_run_by_numpy() -> None:
    x = draw(4, 2)
    f = pb.compile(lambda x: tuple(pb.linalg.qr(x, True)))
    for z, wanted in zip(f(x), np.linalg.qr(x, "complete"), strict=True):
        assert_allclose(np.abs(z), np.abs(wanted), 1e-9, 1e-12)
    assert any("qr_rows" in k and "NumPy" in k for k in f.lower(x).kernels)
