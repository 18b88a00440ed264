"""Linear algebra beyond what the generated tests see: other libraries' answers, conditions, errors, NumPy's face."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import tape
from pullback.errors import ArgumentError, MatrixError, NoRuleError, PullbackError, ShapeError

STORED = json.loads(Path(__file__).with_name("data").joinpath("linalg.json").read_text("utf-8"))
rng = np.random.default_rng(3)
A = rng.normal(size=(3, 3))
TALL, WIDE, BATCH = rng.normal(size=(4, 3)), rng.normal(size=(2, 4)), rng.normal(size=(2, 3, 3))
S = A @ A.T + np.eye(3)
close = np.testing.assert_allclose


def t(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def weighed(*xs: Any) -> Any:
    """Each element times a number of its own, added up (as the reference script does)."""
    total = 0.0
    for x in xs:
        total = total + np.sum(np.cos(np.arange(1.0, 1.0 + np.prod(x.shape))).reshape(x.shape) * x)
    return total


def slope(f: Callable[[Any], Any], x: Any, d: Any) -> Any:
    return (f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6


# ---- PyTorch's and JAX's answers (data/linalg_reference.py)


def qr(xp: Any, x: Any) -> Any:
    q, r = xp.qr(x)
    sign = np.sign(np.diagonal(r, 0, -2, -1))
    return weighed(q * sign[..., None, :], r * sign[..., :, None])


def eigh(xp: Any, x: Any) -> Any:
    w, v = xp.eigh((x + t(x)) / 2)
    return weighed(w, (v * np.exp(w)[..., None, :]) @ t(v), v * v)


def svd(xp: Any, x: Any) -> Any:
    u, s, v = xp.svd(x, full_matrices=False)
    return weighed(s, (u * np.sin(s)[..., None, :]) @ v, u * u, v * v)


def definite(x: Any) -> Any:
    return x @ t(x) + np.eye(x.shape[-1])


REFERENCE: dict[str, Callable[[Any, Any], Any]] = {
    "qr": qr,
    "eigh": eigh,
    "svd": svd,
    "cholesky": lambda xp, x: weighed(xp.cholesky(definite(x))),
    "inv": lambda xp, x: weighed(xp.inv(x)),
    "solve": lambda xp, x: weighed(xp.solve(x, x[..., :2] * x[..., 1:])),
    "det": lambda xp, x: weighed(xp.det(x)),
    "slogdet": lambda xp, x: weighed(xp.slogdet(x)[1]),
    "pinv": lambda xp, x: weighed(xp.pinv(x)),
    "lstsq": lambda xp, x: weighed(xp.lstsq(x, x[:, :2] ** 2)[0]),
    "matrix_power": lambda xp, x: weighed(xp.matrix_power(x, -3)),
    "nuclear norm": lambda xp, x: xp.matrix_norm(x, ord="nuc"),
    "spectral norm": lambda xp, x: xp.matrix_norm(x, ord=2),
    "det of a singular matrix": lambda xp, x: xp.det(x),
}


def h(x: Any) -> Any:
    return np.conj(t(x))


def real_parts(*xs: Any) -> Any:
    return weighed(*(part for x in xs for part in (np.real(x), np.imag(x))))


def sized(*xs: Any) -> Any:
    return weighed(*(np.abs(x) ** 2 for x in xs))


def complex_eigh(xp: Any, x: Any) -> Any:
    w, v = xp.eigh((x + h(x)) / 2)
    return weighed(w) + real_parts((v * np.exp(w)[..., None, :]) @ h(v)) + sized(v)


def complex_svd(xp: Any, x: Any) -> Any:
    u, s, v = xp.svd(x, full_matrices=False)
    return weighed(s) + real_parts((u * np.sin(s)[..., None, :]) @ v) + sized(u, v)


def complex_qr(xp: Any, x: Any) -> Any:
    q, r = xp.qr(x)
    d = np.diagonal(r, 0, -2, -1)
    sign = d / np.abs(d)
    return real_parts(q * sign[..., None, :], r * np.conj(sign)[..., :, None])


def eig(xp: Any, x: Any) -> Any:
    w, v = xp.eig(x)
    projected = (v * np.exp(w)[..., None, :]) @ xp.inv(v)
    return real_parts(projected) + np.sum(np.abs(w) ** 3) + np.sum(np.abs(v) ** 4)


def norm_of(name: str) -> Callable[[Any, Any], Any]:
    """The norm whose order is the last word of the name."""
    word = name.rsplit(" ", 1)[1]
    p = word if word in ("fro", "nuc") else float(word)
    return lambda xp, x: np.linalg.norm(x[0], p) if "vector" in name else xp.matrix_norm(x, ord=p)


REFERENCE |= {
    "eig": eig,
    "eigvals": lambda xp, x: np.sum(np.abs(xp.eigvals(x)) ** 3),
    "complex eigh": complex_eigh,
    "complex eigvalsh": lambda xp, x: weighed(xp.eigvalsh((x + h(x)) / 2) ** 2),
    "complex svd": complex_svd,
    "complex qr": complex_qr,
    "complex cholesky": lambda xp, x: real_parts(xp.cholesky(x @ h(x) + np.eye(x.shape[-1]))),
    "complex inv": lambda xp, x: real_parts(xp.inv(x)),
    "complex solve": lambda xp, x: real_parts(xp.solve(x, x[..., :2] * x[..., 1:])),
    "complex det": lambda xp, x: real_parts(xp.det(x)),
    "complex slogdet": lambda xp, x: real_parts(xp.slogdet(x)[0]) + weighed(xp.slogdet(x)[1]),
    "complex pinv": lambda xp, x: real_parts(xp.pinv(x)),
    "complex lstsq": lambda xp, x: real_parts(xp.lstsq(x, x[:, :2] ** 2)[0]),
    "complex matrix_power": lambda xp, x: real_parts(xp.matrix_power(x, -3)),
}
REFERENCE |= {name: norm_of(name) for name in STORED if "complex" in name and "norm" in name}


def array(stored: Any, complex_too: bool) -> Any:
    """Complex numbers are stored as their real parts and their imaginary parts."""
    made = np.array(stored)
    return made[0] + 1j * made[1] if complex_too else made


@pytest.mark.parametrize("face", [pb.linalg, np.linalg], ids=["pb.linalg", "np.linalg"])
@pytest.mark.parametrize("name", STORED)
def test_linalg_gradients_match_pytorch_and_jax(name: str, face: Any) -> None:
    case, f, is_complex = STORED[name], REFERENCE[name.split(",")[0]], "complex" in name
    x = array(case["x"], is_complex)
    value, grad = pb.value_and_grad(lambda x: f(face, x))(x)
    close(value, case["value"], 1e-9, 1e-12)
    close(grad, array(case["grad"], is_complex), 1e-7, 1e-9)
    assert grad.dtype == x.dtype
    if "second" in case:
        second = pb.grad(lambda x: np.sum(np.real(pb.grad(lambda y: f(face, y))(x) * np.cos(x))))(x)
        close(second, array(case["second"], is_complex), 1e-6, 1e-7)


def test_linalg_third_order() -> None:
    third = pb.grad(lambda a: pb.grad(pb.grad(lambda b: pb.linalg.slogdet(S * b).logabsdet))(a))
    close(third(2.0), 3 * 2 / 2.0**3)  # log det(b S) = 3 log b + log det S
    inverse = pb.grad(pb.grad(pb.grad(lambda b: pb.linalg.inv(S * b)[0, 1])))
    close(inverse(2.0), -6 / 2.0**4 * np.linalg.inv(S)[0, 1])


# ---- values


@pytest.mark.parametrize("x", [A, TALL, WIDE, BATCH, np.empty((0, 3, 3)), A.astype(np.float32)], ids=np.shape)
def test_decompositions_reconstruct(x: Any) -> None:
    kind, near = x.dtype, {"rtol": 1e-4, "atol": 1e-5} if x.dtype == np.float32 else {"atol": 1e-12}
    for full in (False, True):
        q, r = pb.linalg.qr(x, full)
        u, s, v = pb.linalg.svd(x, full)
        k, (m, n) = s.shape[-1], x.shape[-2:]
        close(q @ r, x, **near)
        close((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x, **near)
        for basis in (q, u, t(v)):
            close(
                t(basis) @ basis,
                np.broadcast_to(np.eye(basis.shape[-1]), (*x.shape[:-2], *[basis.shape[-1]] * 2)),
                **near,
            )
            assert basis.dtype == kind
        assert q.shape[-1] == (m if full else k)
        assert (u.shape[-1], v.shape[-2]) == ((m, n) if full else (k, k))
        assert not np.any(np.tril(r, -1))
    close(pb.linalg.svd(x, compute_uv=False), s, **near)
    if m == n:
        y = x @ t(x) + np.eye(n, dtype=kind)
        w, v = pb.linalg.eigh(y)
        close((v * w[..., None, :]) @ t(v), y, **near)
        close(pb.linalg.eigvalsh(y), w, **near)
        z = pb.linalg.cholesky(y)
        close(z @ t(z), y, **near)


def test_gram_schmidt() -> None:
    ys = pb.linalg.gram_schmidt(WIDE)
    first = WIDE[0] / np.linalg.norm(WIDE[0])
    second = WIDE[1] - first * (first @ WIDE[1])
    close(ys, [first, second / np.linalg.norm(second)])
    several = pb.linalg.gram_schmidt([pb.tensor(row) for row in WIDE])
    assert isinstance(several, list)
    close([y.numpy() for y in several], ys)
    close(pb.linalg.gram_schmidt(BATCH)[1], pb.linalg.gram_schmidt(BATCH[1]), atol=1e-12)


@pytest.mark.parametrize("n", [1, 32, 33, 130])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [True, False])
def test_triangular_solve_ignores_other_triangle(n: int, lower: bool, trans: bool) -> None:
    x = rng.normal(size=(n, n)) / n + 2 * np.eye(n)
    y = rng.normal(size=(n, 2))
    half = np.tril(x) if lower else np.triu(x)
    z = pb.linalg.triangular_solve(x, y, lower, trans)
    close((half.T if trans else half) @ z, y, atol=1e-12)
    close(pb.linalg.triangular_solve(x, y[:, 0], lower, trans), z[:, 0], atol=1e-13)


def test_lstsq() -> None:
    b = rng.normal(size=(4, 2))
    for right in (b, b[:, 0]):
        ours, theirs = pb.linalg.lstsq(TALL, right), np.linalg.lstsq(TALL, right)
        for got, want in zip(ours, theirs, strict=True):
            close(got, want if np.shape(got) else np.reshape(want, ()))
    stacked = pb.linalg.lstsq(np.stack([TALL, 2 * TALL]), np.stack([b, b]))
    close(stacked.x[1], np.linalg.lstsq(TALL, b)[0] / 2)
    assert stacked.rank.tolist() == [3, 3]
    low = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    close(pb.linalg.lstsq(low, np.ones(3)).x, np.linalg.lstsq(low, np.ones(3))[0])
    assert pb.linalg.lstsq(low, np.ones(3)).rank == 1


def test_linalg_rank_trace_cond_norm_match_numpy() -> None:
    assert pb.linalg.matrix_rank(np.stack([A, np.ones((3, 3))])).tolist() == [3, 1]
    close(pb.linalg.trace(BATCH), np.trace(BATCH, axis1=1, axis2=2))
    close(pb.linalg.trace(A, 1), np.trace(A, 1))
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        close(pb.linalg.cond(A, p), np.linalg.cond(A, p))
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        close(pb.linalg.matrix_norm(BATCH, ord, True), np.linalg.matrix_norm(BATCH, ord=ord, keepdims=True))
    for n in range(-3, 6):
        close(pb.linalg.matrix_power(A, n), np.linalg.matrix_power(A, n), atol=1e-10)
    chain = [A[0], TALL.T, rng.normal(size=(4, 7)), rng.normal(size=(7, 2)), np.ones(2)]
    close(pb.linalg.multi_dot(chain), np.linalg.multi_dot(chain))
    close(pb.linalg.tensor_diag_part(pb.diag(TALL)), TALL)
    assert isinstance(pb.linalg.inv([[2.0, 0.0], [0.0, 1.0]]), pb.Tensor)
    close(pb.variable(A.tolist()).inv().numpy(), np.linalg.inv(A), 1e-4)


# ---- where derivatives are delicate


def test_degenerate_singular_values_and_eigenvalues() -> None:
    """Values alone have first derivatives there; what depends on the vectors is not answered by a number."""
    eye, c = np.eye(3), np.array([1.0, 1.0, 1.0])
    for f in (lambda x: pb.linalg.eigh(x).eigenvalues @ c, lambda x: pb.linalg.svd(x).S @ c, pb.linalg.trace):
        close(pb.grad(f)(eye), eye, atol=1e-14)
        close(pb.jvp(f, [eye], [S])[1], np.trace(S))
    for f in (pb.linalg.eigvalsh, pb.linalg.svdvals):
        close(pb.grad(lambda x, f=f: np.sum(f(x) ** 2))(2 * eye), 4 * eye, atol=1e-14)
    root = lambda x: (lambda w, v: np.sum(((v * np.sqrt(w)) @ v.T)[0]))(*pb.linalg.eigh(x))
    assert not np.all(np.isfinite(pb.grad(root)(eye)))
    close(pb.grad(pb.linalg.matrix_norm)(np.zeros((2, 2))), np.zeros((2, 2)))


def test_singular_values_of_low_rank_matrix() -> None:
    x = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    close(pb.grad(lambda x: pb.linalg.svd(x).S[0])(x), np.outer([1, 2, 2], [3, 4]) / 15)
    close(pb.grad(lambda x: pb.linalg.matrix_norm(x, 2))(x), np.outer([1, 2, 2], [3, 4]) / 15)


@pytest.mark.parametrize("rank", [1, 2])
def test_pinv_of_fixed_rank(rank: int) -> None:
    """The rank stays what it is along products of narrow matrices."""
    left, right = rng.normal(size=(4, rank)), rng.normal(size=(rank, 3))
    f = lambda y: weighed(pb.linalg.pinv(y @ right), pb.linalg.lstsq(y @ right, np.arange(4.0)).x)
    d = rng.normal(size=left.shape)
    close(np.vdot(pb.grad(f)(left), d), slope(f, left, d), 1e-6)
    close(pb.jvp(f, [left], [d])[1], slope(f, left, d), 1e-6)


@pytest.mark.parametrize("f", [
    lambda x: (lambda u: weighed(u @ u.T))(pb.linalg.svd(x, full_matrices=True).U[:, 2:]),
    lambda x: (lambda v: weighed(v.T @ v))(pb.linalg.svd(x.T, full_matrices=True).Vh[2:]),
    lambda x: (lambda q: weighed(q @ q.T))(pb.linalg.qr(x, full_matrices=True).Q[:, 2:]),
    lambda x: weighed(*pb.linalg.svd(x.T)), lambda x: weighed(*pb.linalg.qr(x.T)),
    lambda x: weighed(pb.linalg.gram_schmidt(x.T)), lambda x: weighed(*pb.linalg.lstsq(x, np.arange(4.0))),
])  # fmt: skip
def test_full_qr_and_wide_matrices(f: Callable[[Any], Any]) -> None:
    x, d, e = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    want = slope(f, x, d)
    close(np.vdot(pb.grad(f)(x), d), want, 1e-6, 1e-8)
    close(pb.jvp(f, [x], [d])[1], want, 1e-6, 1e-8)
    first = lambda x: np.sum(pb.grad(f)(x) * d)
    close(np.vdot(pb.grad(first)(x), e), slope(first, x, e), 1e-5, 1e-7)


def test_gradients_of_symmetric_matrix_functions_are_symmetric() -> None:
    for f in (pb.linalg.cholesky, pb.linalg.eigvalsh, lambda x: pb.linalg.eigh(x).eigenvectors[:, :1] ** 2):
        g = pb.grad(lambda x, f=f: weighed(f(x)))(S)
        close(g, g.T, atol=1e-14)
        lower = {pb.linalg.cholesky: np.linalg.cholesky, pb.linalg.eigvalsh: np.linalg.eigvalsh}.get(f)
        if lower is not None:  # NumPy reads one triangle
            close(pb.grad(lambda x, f=lower: weighed(f(x)))(S), np.tril(2 * g) - np.diag(np.diag(g)), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linalg_large_matrices(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cotangents of large matrices live in recycled buffers."""
    n = 130 if dtype is np.float32 else 100
    monkeypatch.setattr(tape, "RECYCLED", 60_000)  # bytes, instead of 1 MiB
    x = (rng.normal(size=(n, n)) / n + np.eye(n) * np.linspace(1, 2, n)).astype(dtype)
    c, eye = rng.normal(size=(n, n)).astype(dtype), np.eye(n, dtype=dtype)
    inverse, triangle = np.linalg.inv(x.astype(float)), np.linalg.inv(np.tril(x.astype(float)))
    whole, half = -inverse.T @ c @ inverse.T, -np.tril(triangle.T @ c @ triangle.T)
    rough = dtype is np.float32  # and rougher where a gap between values is divided by
    for f, want, gaps in (
        (pb.linalg.inv, whole, 5e-3), (pb.linalg.inv, whole, 5e-3), (pb.linalg.pinv, whole, 5e-3),
        (lambda x: pb.linalg.solve(x, eye), whole, 5e-3), (lambda x: pb.linalg.triangular_solve(x, eye), half, 5e-3),
        (lambda x: (lambda q, r: q @ r)(*pb.linalg.qr(x)), c, 5e-3),
        (lambda x: (lambda u, s, v: (u * s) @ v)(*pb.linalg.svd(x)), c, 0.2),
        (lambda x: (lambda z: z @ z.T)(pb.linalg.cholesky(x)), (c + c.T) / 2, 5e-3),
        (lambda x: (lambda w, v: (v * w) @ v.T)(*pb.linalg.eigh(x)), (c + c.T) / 2, 0.2),
    ):  # fmt: skip
        got = pb.grad(lambda x, f=f: np.sum(f(x) * c))(x)
        assert got.dtype == dtype
        close(got, want, 1e-2 if rough else 1e-6, gaps if rough else 1e-6)


# ---- NumPy's face


FACES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "inv": (np.linalg.inv, A), "det": (np.linalg.det, BATCH), "slogdet": (np.linalg.slogdet, BATCH),
    "solve": (lambda x: np.linalg.solve(x, [1.0, 2.0, 3.0]), A),
    "solve, list": (lambda x: np.linalg.solve(A.tolist(), x), A),
    "cholesky": (
        lambda x: [np.linalg.cholesky(x), np.linalg.cholesky(x, upper=True)], np.triu(S) * 1.1 + np.tril(S, -1),
    ),
    "eigh": (lambda x: [*np.linalg.eigh(x), np.linalg.eigh(x, "U").eigenvalues], A),
    "eigvalsh": (lambda x: [np.linalg.eigvalsh(x), np.linalg.eigvalsh(x, UPLO="U")], A),
    "svd": (lambda x: [*np.linalg.svd(x), np.linalg.svd(x, compute_uv=False), np.linalg.svd(x, False).Vh], A),
    "svd, tall": (lambda x: np.linalg.svd(x).S, TALL), "svdvals": (np.linalg.svdvals, WIDE),
    "qr": (lambda x: [*np.linalg.qr(x), np.linalg.qr(x, mode="r"), np.linalg.qr(x, "complete").R], TALL),
    "pinv": (lambda x: [np.linalg.pinv(x), np.linalg.pinv(x, 0.01), np.linalg.pinv(x, rtol=0.01)], TALL),
    "lstsq": (lambda x: [*np.linalg.lstsq(x, x[:, :2] + 1)[:2]], TALL),
    "lstsq, wide": (lambda x: np.linalg.lstsq(x, x[:, 0] + 1)[0], WIDE),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, -2), A),
    "multi_dot": (lambda x: np.linalg.multi_dot([x, x, A]), A),
    "norm": (lambda x: [np.linalg.norm(x, o) for o in (2, -2, "nuc")], A),
    "matrix_norm": (lambda x: np.linalg.matrix_norm(x, ord=2, keepdims=True), BATCH),
    "cond": (lambda x: [np.linalg.cond(x), np.linalg.cond(x, "fro")], A),
}  # fmt: skip


def parts(out: Any) -> list[Any]:
    return [*out] if isinstance(out, list | tuple) else [out]


@pytest.mark.parametrize("name", FACES)
def test_numpy_linalg_functions_of_tensors(name: str) -> None:
    f, x = FACES[name]
    want = f(x)
    got = f(pb.tensor(x))
    assert isinstance(got, pb.Tensor) if isinstance(want, np.ndarray | np.generic) else type(got) is type(want)
    for y, z in zip(parts(got), parts(want), strict=True):
        assert isinstance(y, pb.Tensor)
        close(y.numpy(), z, 1e-9, 1e-12)
    d = rng.normal(size=x.shape)
    scalar = lambda x: weighed(*parts(f(x)))
    close(np.vdot(pb.grad(scalar)(x), d), slope(scalar, x, d), 1e-5, 1e-7)
    close(pb.jvp(scalar, [x], [d])[1], slope(scalar, x, d), 1e-5, 1e-7)


def test_numpy_ranks_and_complex_matrices() -> None:
    assert pb.grad(lambda x: np.sum(x) * np.linalg.matrix_rank(x))(A)[0, 0] == 3
    assert np.linalg.lstsq(pb.tensor(TALL), np.ones(4))[2] == 3
    z = A + 1j * A.T
    close(np.linalg.inv(pb.tensor(z)).numpy(), np.linalg.inv(z))
    close(np.linalg.eigh(pb.tensor(z + z.conj().T)).eigenvalues.numpy(), np.linalg.eigvalsh(z + z.conj().T))
    with pytest.raises(NoRuleError, match=r"np.linalg.qr\(mode='raw'\)"):
        pb.grad(lambda x: np.linalg.qr(x, "raw")[0])(A)


# ---- errors


Z = np.zeros((2, 2))
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "singular inv": (lambda: pb.linalg.inv(Z), MatrixError, r"inv: a matrix is singular.*pinv.*\(2, 2\)"),
    "singular, traced": (lambda: pb.grad(pb.linalg.inv)(Z), MatrixError, r"inv: a matrix is singular.*\(2, 2\)"),
    "singular, by NumPy": (lambda: np.linalg.inv(pb.tensor(Z)), np.linalg.LinAlgError, "inv: a matrix is singular"),
    "singular solve": (lambda: pb.linalg.solve(Z, A[0, :2]), MatrixError, r"solve: .*not one.*\(2, 2\) and \(2,\)"),
    "singular slogdet": (lambda: pb.grad(lambda x: pb.linalg.slogdet(x)[1])(Z), MatrixError, "singular"),
    "singular triangle": (lambda: pb.linalg.triangular_solve(Z, np.ones(2)), MatrixError, "zero on the diagonal"),
    "singular power": (lambda: pb.linalg.matrix_power(Z, -1), MatrixError, "singular"),
    "not positive": (lambda: pb.linalg.cholesky(-np.eye(2)), MatrixError, r"cholesky: .*positive definite.*\(2, 2\)"),
    "dependent columns": (lambda: pb.grad(lambda x: pb.linalg.qr(x)[0])(Z), MatrixError, "qr: .*independent"),
    "dependent vectors": (lambda: pb.linalg.gram_schmidt(np.ones((2, 3))), MatrixError, r"dependent.*\(2, 3\)"),
    "nan": (lambda: pb.linalg.svd(Z * np.nan), MatrixError, "svd: .*did not converge.*NaN"),
    "not square": (lambda: pb.linalg.inv(TALL), ShapeError, r"inv: x must be square.*\(4, 3\)"),
    "not square, traced": (lambda: pb.grad(pb.linalg.det)(TALL), ShapeError, r"det: x must be square.*\(4, 3\)"),
    "not square, mirrored": (lambda: np.linalg.eigh(pb.tensor(TALL)), ShapeError, "^eigh: x must be square"),
    "not square, eig": (lambda: pb.linalg.eig(TALL), ShapeError, "^eig: x must be square"),
    "not square, slogdet": (lambda: pb.linalg.slogdet(TALL), ShapeError, "^slogdet: x must be square"),
    "not square, power": (lambda: pb.linalg.matrix_power(TALL, 2), ShapeError, "matrix_power: x must be square"),
    "no matrix": (lambda: pb.linalg.qr(np.ones(3)), ShapeError, r"qr: x must be a matrix.*\(3,\)"),
    "no matrix, op": (lambda: pb.linalg.svdvals(np.ones(3)), ShapeError, r"svdvals: x must be a matrix.*\(3,\)"),
    "solve, sides": (lambda: pb.linalg.solve(A, np.ones(4)), ShapeError, r"x has 3 .* y 4 .*\(3, 3\) and \(4,\)"),
    "solve, shape": (lambda: pb.linalg.solve(TALL, np.ones(4)), ShapeError, r"solve: x must be square"),
    "solve, batch": (lambda: pb.linalg.solve(BATCH, np.ones((5, 3, 1))), ShapeError, "do not broadcast"),
    "triangle, sides": (lambda: pb.linalg.triangular_solve(A, np.ones(4)), ShapeError, r"triangular_solve: x has 3"),
    "lstsq": (lambda: pb.linalg.lstsq(TALL, np.ones(3)), ShapeError, r"lstsq: .*\(4, 3\) and \(3,\)"),
    "lstsq, batch by NumPy": (lambda: np.linalg.lstsq(pb.tensor(BATCH), A), ShapeError, r"lstsq: expected a matrix"),
    "multi_dot": (lambda: pb.linalg.multi_dot([A, WIDE]), ShapeError, r"multi_dot: .*\(3, 3\), \(2, 4\)"),
    "multi_dot, one": (lambda: pb.linalg.multi_dot([A]), ArgumentError, "two arrays at least, got 1"),
    "power": (lambda: pb.linalg.matrix_power(A, 0.5), ArgumentError, "n must be an integer, got 0.5"),
    "band": (lambda: pb.linalg.band_part(A, 0.5, 1), ArgumentError, "num_lower must be an integer.*0.5"),
    "band of a vector": (lambda: pb.linalg.band_part(np.ones(3), 0, 1), ShapeError, r"band_part: x must be a matrix"),
    "norm": (lambda: pb.linalg.matrix_norm(A, 3), ArgumentError, "matrix_norm: ord must be .* got 3"),
    "too many vectors": (lambda: pb.linalg.gram_schmidt(TALL), ShapeError, "4 vectors of 3 components"),
    "unequal vectors": (lambda: pb.linalg.gram_schmidt([np.ones(2), np.ones(3)]), ArgumentError, r"\(2,\), \(3,\)"),
    "no vectors": (lambda: pb.linalg.gram_schmidt([]), ShapeError, "gram_schmidt"),
    "embedding": (lambda: pb.linalg.diag_embed(np.ones(3), 0, (2, 2)), ShapeError, r"diag_embed: .*\(2, 2\).*length 3"),
    "diagonal": (lambda: pb.linalg.tensor_diag_part(TALL), ShapeError, r"tensor_diag_part: .*\(4, 3\)"),
    "UPLO": (lambda: np.linalg.eigh(pb.tensor(A), "X"), ArgumentError, "UPLO must be 'L' or 'U', got 'X'"),
    "half precision": (lambda: pb.linalg.inv(A.astype(np.float16)), ArgumentError, "inv: .*float16"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_linalg_bad_input_raises(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, PullbackError)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_inverses_and_determinants_of_large_matrices(dtype: str, order: Any) -> None:
    rng = np.random.default_rng(3)
    x = np.array(rng.normal(size=(61, 61)) / 4 + np.eye(61), dtype, order=order)
    bound = {"rtol": {"f4": 1e-3, "f8": 1e-10}[dtype], "atol": {"f4": 1e-3, "f8": 1e-11}[dtype]}
    inverse, w = np.linalg.inv(x.astype("f8")), rng.normal(size=x.shape).astype(dtype)

    def log_det(x: Any) -> Any:
        return np.linalg.slogdet(x)[1]

    for y in (x, x[[1, 0, *range(2, 61)]]):  # two rows exchanged: the other sign
        sign, log = np.linalg.slogdet(y)
        value, g = pb.value_and_grad(log_det)(y)
        np.testing.assert_allclose(value, log, 1e-4 if dtype == "f4" else 1e-12)
        assert pb.linalg.slogdet(y).sign == sign
        np.testing.assert_allclose(g, np.linalg.inv(y.astype("f8")).T, **bound)
        np.testing.assert_allclose(pb.grad(np.linalg.det)(y) / np.linalg.det(y), g, **bound)
    assert (value.dtype, g.dtype) == (dtype, dtype)
    z = pb.linalg.inv(x)
    assert z.dtype == dtype
    np.testing.assert_allclose(z, inverse, **bound)
    second = pb.grad(lambda x: np.sum(pb.grad(log_det)(x) * w))(x)
    np.testing.assert_allclose(second, -inverse.T @ w.T @ inverse.T, bound["rtol"], 30 * bound["atol"])


def test_large_singular_matrix_slogdet_inv_and_gradients() -> None:
    x = np.random.default_rng(0).normal(size=(60, 60))
    x[7] = 0
    sign, log = pb.linalg.slogdet(x)
    assert (sign, log) == (0, -np.inf)
    for f in (pb.linalg.inv, pb.grad(lambda x: np.linalg.slogdet(x)[1])):
        with pytest.raises(MatrixError, match="inv: a matrix is singular"):
            f(x)
    g = pb.grad(np.linalg.det)(x)
    np.testing.assert_allclose(np.delete(g, 7, 0), 0, atol=1e-9 * np.abs(g).max())
    by = np.zeros_like(x)
    by[7, 3] = 1
    np.testing.assert_allclose(g[7, 3], np.linalg.det(x + by), 1e-9)


@pytest.mark.parametrize("part", ["eigenvalues", "R", "Q"])
def test_gradient_of_one_part_of_a_decomposition(part: str) -> None:
    rng = np.random.default_rng(5)
    x, w, by = rng.normal(size=(6, 4)), rng.normal(size=4), rng.normal(size=(6, 4)) * 1e-6

    def f(x: Any) -> Any:
        if part == "eigenvalues":
            return np.sum(pb.linalg.eigh(x.T @ x).eigenvalues * w)
        return np.sum(getattr(np.linalg.qr(x), part) ** 3 * w)

    np.testing.assert_allclose(np.sum(pb.grad(f)(x) * by), (f(x + by) - f(x - by)) / 2, 1e-7)


@pytest.mark.parametrize("values", [pb.linalg.eigvalsh, pb.linalg.svdvals])
def test_derivatives_of_eigvalsh_and_svdvals_of_large_matrices(values: Any) -> None:
    x = np.random.default_rng(0).normal(size=(2, 50, 50))
    x = x + np.swapaxes(x, -1, -2)
    first = pb.grad(lambda x: pb.sum(values(x) ** 2))
    np.testing.assert_allclose(first(x), 2 * x, atol=1e-10)
    second = pb.grad(lambda x: pb.sum(pb.grad(lambda y: pb.sum(values(y) ** 3))(x) ** 2))
    np.testing.assert_allclose(second(x), 36 * x @ x @ x, rtol=1e-6, atol=1e-4)


def test_least_squares_of_empty_matrices() -> None:
    for shape, right in (((0, 3), (0, 2)), ((3, 0), (3, 2)), ((0, 3), (0,))):
        x = pb.linalg.lstsq(np.zeros(shape), np.zeros(right)).x
        np.testing.assert_array_equal(x, np.zeros((shape[1], *right[1:])))


def test_diag_embed_of_scalar_raises() -> None:
    with pytest.raises(ShapeError, match="diag_embed: x must be a vector, or several over its last axis; got a scalar"):
        pb.linalg.diag_embed(1.0)


def test_triangular_solve_of_large_strided_matrix() -> None:
    rng = np.random.default_rng(0)
    a = (np.tril(rng.normal(size=(128, 128))) + 9 * np.eye(128))[::2, ::2]
    b, w = rng.normal(size=(2, 64, 3))
    np.testing.assert_allclose(pb.linalg.triangular_solve(a, b), np.linalg.solve(a, b))
    found = pb.grad(lambda a: np.sum(pb.linalg.triangular_solve(a, b) * w))(a)
    u = np.linalg.solve(a.T, w)
    np.testing.assert_allclose(found, np.tril(-u @ np.linalg.solve(a, b).T), atol=1e-12)
