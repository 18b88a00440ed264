"""Complex matrices against finite differences, and NumPy's own values under grad; other libraries' answers are in
test_linalg.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import GradientError

rng = np.random.default_rng(3)
A = rng.normal(size=(3, 3))
TALL, WIDE, BATCH = rng.normal(size=(4, 3)), rng.normal(size=(2, 4)), rng.normal(size=(2, 3, 3))
S = A @ A.T + np.eye(3)
close = np.testing.assert_allclose


def h(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def slope(f: Callable[[Any], Any], x: Any, d: Any) -> Any:
    return (f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6


# ---- complex matrices against differences, and NumPy's own values

Z, Z2, Z_TALL, Z_BATCH = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((3, 3), (3, 3), (4, 2), (2, 3, 3)))
ONE_VALUED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "eigh": (lambda x: (lambda w, v: (v * np.exp(w)) @ h(v))(*np.linalg.eigh(x)), Z),
    "eigh, U": (lambda x: np.abs(np.linalg.eigh(x, "U")[1]) ** 2, Z),
    "svd": (lambda x: (lambda u, s, v: (u * np.sin(s)) @ v)(*np.linalg.svd(x)), Z),
    "svd, thin": (lambda x: (lambda u, s, v: (u * np.sin(s)) @ v)(*np.linalg.svd(x, False)), Z_TALL),
    "svd, full": (lambda x: (lambda u: u[:, 2:] @ h(u[:, 2:]))(np.linalg.svd(x)[0]), Z_TALL),
    "svd, hermitian": (lambda x: np.abs(np.linalg.svd(x, hermitian=True)[2]) ** 2, Z),
    "pinv, hermitian": (lambda x: np.linalg.pinv(x, hermitian=True), Z),
    "qr, complete": (lambda x: (lambda q: q[:, 2:] @ h(q[:, 2:]))(np.linalg.qr(x, "complete")[0]), Z_TALL),
    "inv": (np.linalg.inv, Z_BATCH),
    "det": (np.linalg.det, Z_BATCH),
    "solve": (lambda x: np.linalg.solve(x, Z2), Z_BATCH),
    "slogdet": (lambda x: np.stack([np.linalg.slogdet(x)[0], np.linalg.slogdet(x)[1] + 0j]), Z),
    "pinv": (np.linalg.pinv, Z_TALL),
    "qr": (lambda x: np.concatenate(np.linalg.qr(x)), Z_TALL),
    "qr of a wide one": (lambda x: np.concatenate(np.linalg.qr(x.T), axis=1), Z_TALL),
    "cholesky": (lambda x: np.linalg.cholesky(x @ h(x) + np.eye(3)), Z_BATCH),
    "cholesky, upper": (lambda x: np.linalg.cholesky(x @ h(x) + np.eye(3), upper=True), Z),
    "eigvalsh, U": (lambda x: np.linalg.eigvalsh(x, "U"), Z),
    "svdvals": (np.linalg.svdvals, Z_TALL),
    "eig": (lambda x: np.concatenate(np.linalg.eig(x)[1:]), Z),
    "eigvals": (np.linalg.eigvals, Z),
    "eig of a real one": (lambda x: np.linalg.eig(x)[1], A),
    "eigvals of a real one": (np.linalg.eigvals, A),
    "lstsq": (lambda x: np.linalg.lstsq(x, Z_TALL * 2 + 1)[0], Z_TALL @ Z[:2, :2]),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 5), Z),
    "multi_dot": (lambda x: np.linalg.multi_dot([x, Z, x]), Z),
    "tensorinv": (lambda x: np.linalg.tensorinv(np.reshape(x, (3, 1, 3)), 2), Z),
    "tensorsolve": (lambda x: np.linalg.tensorsolve(np.reshape(x, (3, 1, 3)), Z2[:, :1]), Z),
    "cond": (np.linalg.cond, Z),
    "norms": (lambda x: np.linalg.norm(x, 3) if x.ndim == 1 else np.linalg.norm(x, "nuc"), Z),
    "vectors": (lambda x: np.linalg.norm(x, 2.5, axis=1), Z),
}


def random_like(x: Any) -> Any:
    draw = np.random.default_rng(4)
    y = draw.normal(size=np.shape(x))
    return y + 1j * draw.normal(size=y.shape) if np.iscomplexobj(x) else y


@pytest.mark.parametrize("name", ONE_VALUED)
def test_complex_matrices_under_all_transforms(name: str) -> None:
    f, x = ONE_VALUED[name]
    d, e = random_like(x), random_like(x) * 1j if np.iscomplexobj(x) else random_like(x)
    value, want = np.asarray(f(x)), slope(f, x, d)
    dy = random_like(value)
    np.testing.assert_array_equal(pb.jvp(f, [x], [d])[0], value)
    close(pb.jvp(f, [x], [d])[1], want, 1e-6, 1e-7)
    pulled = lambda x: pb.grad(f)(x, dy=dy)
    grad = pulled(x)
    close(np.vdot(grad, d).real, np.vdot(dy, want).real, 1e-6, 1e-7)
    first = lambda x: np.sum(np.real(pb.grad(f)(x, dy=dy) * d))
    close(np.vdot(pb.grad(first)(x), e).real, slope(first, x, e), 1e-5, 1e-6)
    close(pb.vmap(pulled)(np.stack([x, x * 1.1]))[0], grad, 1e-9, 1e-10)
    close(pb.compile(pulled)(x), grad, 1e-9, 1e-10)


FORMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{f"eigh {u}": (lambda x, u=u: np.linalg.eigh(x, u), [A, S, Z]) for u in "LU"},
    "eigh by keyword": (lambda x: np.linalg.eigh(x, UPLO="U"), [A, S, Z]),
    **{f"eigvalsh {u}": (lambda x, u=u: np.linalg.eigvalsh(x, UPLO=u), [A, S, Z]) for u in "LU"},
    "svd": (np.linalg.svd, [A, TALL, WIDE, Z, Z_TALL]),
    "svd, thin": (lambda x: np.linalg.svd(x, False), [TALL, WIDE, Z_TALL]),
    "svd, hermitian": (lambda x: np.linalg.svd(x, hermitian=True), [S, -S, S - 4 * np.eye(3), Z]),
    "svd, values": (lambda x: np.linalg.svd(x, compute_uv=False), [A, TALL, Z_TALL]),
    "svd, hermitian values": (lambda x: np.linalg.svd(x, compute_uv=False, hermitian=True), [S - 4 * np.eye(3), Z]),
    **{
        f"qr {m}": (lambda x, m=m: np.linalg.qr(x, mode=m), [A, TALL, WIDE, Z, Z_TALL])
        for m in ("reduced", "complete", "r")
    },
    "cholesky": (np.linalg.cholesky, [S, Z @ h(Z)]),
    "cholesky, upper": (lambda x: np.linalg.cholesky(x, upper=True), [S, Z @ h(Z)]),
    "eig": (np.linalg.eig, [A, S, Z, BATCH]),
    "eigvals": (np.linalg.eigvals, [A, S, Z]),
    "pinv": (np.linalg.pinv, [TALL, WIDE, Z_TALL]),
    "pinv, hermitian": (lambda x: np.linalg.pinv(x, hermitian=True), [S, Z + h(Z)]),
    "pinv, rtol": (lambda x: np.linalg.pinv(x, rtol=None), [TALL]),
    "pinv, rcond": (lambda x: np.linalg.pinv(x, 0.5), [TALL]),
    "lstsq": (lambda x: np.linalg.lstsq(x, np.arange(4.0)), [TALL, Z_TALL]),
    "slogdet": (np.linalg.slogdet, [A, Z]),
    **{f"matrix_power {n}": (lambda x, n=n: np.linalg.matrix_power(x, n), [A, Z]) for n in (-2, 2, 3, 5, 7, 12)},
    **{
        f"norm {p}": (lambda x, p=p: np.linalg.norm(x, p), [A, TALL, Z])
        for p in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
    },
    **{
        f"norm of vectors {p}": (lambda x, p=p: np.linalg.norm(x, p, axis=-1), [A, Z])
        for p in (None, 1, 2, 3, 2.5, np.inf, -np.inf)
    },
    "norm": (np.linalg.norm, [A, Z, BATCH]),
    "cond": (np.linalg.cond, [A, Z]),
    "cond 1": (lambda x: np.linalg.cond(x, 1), [A, Z]),
    "multi_dot": (lambda x: np.linalg.multi_dot([x, x, x]), [A, Z]),
    "inv": (np.linalg.inv, [A, Z]),
    "det": (np.linalg.det, [A, Z]),
}


@pytest.mark.parametrize("name", FORMS)
def test_linalg_values_under_grad_match_numpy(name: str) -> None:
    """To the last bit, and with the signs that NumPy's call of LAPACK gives."""
    f, xs = FORMS[name]
    for x in xs:
        found: list[Any] = []

        def seen(x: Any, found: list[Any] = found) -> Any:
            z = f(x)
            found[:] = [pb.stop_gradient(part) for part in (z if isinstance(z, tuple) else (z,))]
            return np.sum(np.abs(x))

        pb.grad(seen)(x)
        want = f(x)
        if isinstance(want, tuple):
            assert len(want) == len(found)
        for got, part in zip(found, want if isinstance(want, tuple) else (want,), strict=True):
            assert np.asarray(got).dtype == np.asarray(part).dtype or np.asarray(part).dtype.kind == "i"
            np.testing.assert_array_equal(np.asarray(got), part)


def test_eigh_upper_triangle_matches_numpy() -> None:
    f = lambda x: np.sum(np.linalg.eigh(x, "U")[1] * np.arange(9.0).reshape(3, 3))
    value, grad = pb.value_and_grad(f)(A)
    assert value == f(A)
    close(np.vdot(grad, S), slope(f, A, S), 1e-6)
    assert not np.any(np.tril(grad, -1))


def test_eigh_and_svd_gradient_of_phase_dependent_functions_raise() -> None:
    for f, name in ((lambda x: np.linalg.eigh(x)[1], "eigh"), (lambda x: np.linalg.svd(x)[0], "svd")):
        with pytest.raises(GradientError, match=f"{name}: of complex matrices each vector may be multiplied"):
            pb.grad(lambda x, f=f: np.sum(np.real(f(x)) * np.arange(9.0).reshape(3, 3)))(Z)
        pb.grad(lambda x, f=f: np.sum(np.abs(f(x)) ** 2 * np.arange(9.0).reshape(3, 3)))(Z)


def test_eig_dtype_matches_numpy() -> None:
    assert pb.grad(lambda x: np.real(np.linalg.eigvals(x)[0]))(S).dtype == np.float64
    assert pb.linalg.eigvals(S).dtype == pb.linalg.eig(S).eigenvectors.dtype == np.complex128
    assert np.linalg.eig(pb.tensor(S)).eigenvalues.dtype == np.linalg.eig(S).eigenvalues.dtype
    assert pb.linalg.eigvals(S.astype(np.float32)).dtype == np.complex64
    assert pb.compile(np.linalg.eigvals)(S).dtype == np.complex128  # a dtype that does not depend on the numbers
