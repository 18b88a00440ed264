"""``scipy.linalg``: compositions of the ops of ``pb.linalg``, with SciPy's parameters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import all_values, call_unfollowed
from pullback.errors import ArgumentError, NoRuleError, ShapeError
from pullback.interop.numpy_linalg import mirror_triangle
from pullback.names.scipy import FUNCTIONS
from pullback.ops import linalg
from pullback.scipy.arguments import as_float, as_operand, is_traced, list_functions, load, make_fallback
from pullback.transforms.control_flow import fori_loop
from pullback.transforms.implicit import custom_root
from pullback.transforms.modifiers import stop_gradient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Array, Function, TensorLike, Value

NAMES = FUNCTIONS["linalg"]


__getattr__ = partial(make_fallback, "linalg")
__dir__ = partial(list_functions, "linalg")


def _conjugate_transpose(a: Value) -> Any:
    return np.conj(np.swapaxes(a, -1, -2)) if a.dtype.kind == "c" else np.swapaxes(a, -1, -2)


def _transpose_by(a: Value, trans: int | str) -> Any:
    """Return the matrix, its transpose (1, "T") or its adjoint (2, "C")."""
    if trans in (0, "N"):
        return a
    if trans in (1, "T"):
        return np.swapaxes(a, -1, -2)
    if trans in (2, "C"):
        return _conjugate_transpose(a)
    raise ArgumentError(f"scipy.linalg: trans must be 0, 1 or 2, 'N', 'T' or 'C'; got {trans!r}.")


# ---- equations


def solve(
    a: TensorLike, b: TensorLike, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, assume_a: str | None = None, transposed: bool = False,
) -> Any:  # fmt: skip
    """Return the solution of ``a @ x = b``; of a symmetric ``a`` one triangle is read, by ``lower``.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0])
    array([1., 1.])
    """
    a, b = as_float(a), as_float(b)
    kind = {None: "gen", "general": "gen"}.get(assume_a, assume_a)
    if kind in ("sym", "symmetric", "her", "hermitian", "pos", "positive definite"):
        a = mirror_triangle(a, "L" if lower else "U")
    elif kind in ("upper triangular", "lower triangular"):
        return solve_triangular(a, b, 1 if transposed else 0, kind == "lower triangular")
    elif kind == "diagonal":
        a = a * np.eye(a.shape[-1])
    elif kind == "tridiagonal":
        a = np.triu(np.tril(a, 1), -1)
    elif kind not in ("gen", "banded"):
        raise ArgumentError(f"scipy.linalg.solve: unknown assume_a={assume_a!r}.")
    return linalg.solve(np.swapaxes(a, -1, -2) if transposed else a, b)


def solve_triangular(
    a: TensorLike, b: TensorLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, check_finite: bool = True,
) -> Any:  # fmt: skip
    """Return the solution of ``a @ x = b`` for a triangular ``a``; the other triangle is not read."""
    a, b = as_float(a), as_float(b)
    half = np.tril(a, -1 if unit_diagonal else 0) if lower else np.triu(a, 1 if unit_diagonal else 0)
    if unit_diagonal:
        half = half + np.eye(a.shape[-1], dtype=a.dtype)
    vector = b.ndim == 1
    x = linalg.triangular_solve(
        _transpose_by(half, trans), np.expand_dims(b, -1) if vector else b, lower=lower == (trans in (0, "N"))
    )
    return np.squeeze(x, -1) if vector else x


def cho_factor(a: TensorLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the Cholesky factor and whether it is the lower one, for ``cho_solve``."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, Any], b: TensorLike, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Return the solution of ``a @ x = b`` from the factor of ``cho_factor``."""
    c, lower = c_and_lower
    c = as_float(c)
    if lower:
        return solve_triangular(c, solve_triangular(c, b, lower=True), "C", lower=True)
    return solve_triangular(c, solve_triangular(c, b, "C"))


def _eliminate(a: Value) -> tuple[Any, Any, Any]:
    """Return the order of the rows, and the factors of the matrix with its rows in that order."""
    if a.ndim != 2:
        raise ShapeError(f"scipy.linalg.lu: expected a matrix, got shape {a.shape}.")
    rows, columns = a.shape
    order = call_unfollowed(lambda values: np.argmax(load("linalg").lu(values, permute_l=False)[0], axis=0), a)
    rest, count = np.take(a, order, 0), min(rows, columns)
    lower, upper = [], []
    for k in range(count):
        row = rest[0]
        column = rest[:, 0] / row[0]
        lower.append(np.concatenate([np.zeros(k, a.dtype), column]))
        upper.append(np.concatenate([np.zeros(k, a.dtype), row]))
        rest = rest[1:, 1:] - np.expand_dims(column[1:], 1) * np.expand_dims(row[1:], 0)
    return order, np.stack(lower, 1), np.stack(upper)


def lu(
    a: TensorLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """Return a permutation, a lower and an upper triangular matrix whose product is ``a``."""
    a = as_float(a)
    order, lower, upper = _eliminate(a)
    back = call_unfollowed(np.argsort, order)
    if permute_l:
        return np.take(lower, back, 0), upper
    return (back if p_indices else np.eye(a.shape[0], dtype=a.dtype)[back]), lower, upper


def lu_factor(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return both triangular factors in one matrix, and the exchanges of rows, for ``lu_solve``."""
    a = as_float(a)
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"scipy.linalg.lu_factor: expected a square matrix, got shape {a.shape}.")
    _, lower, upper = _eliminate(a)
    exchanges = call_unfollowed(lambda values: load("linalg").lu_factor(values)[1], a)
    return lower + upper - np.eye(a.shape[0], dtype=a.dtype), exchanges


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: TensorLike,
    trans: int | str = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the solution of ``a @ x = b`` from the factors of ``lu_factor``."""
    both, exchanges = lu_and_piv
    both, b = as_float(both), as_float(b)
    order = np.arange(both.shape[0])
    for i, k in enumerate(np.asarray(exchanges)):
        order[[i, k]] = order[[k, i]]
    if trans in (0, "N"):
        return solve_triangular(both, solve_triangular(both, np.take(b, order, 0), lower=True, unit_diagonal=True))
    x = solve_triangular(both, solve_triangular(both, b, trans), trans, lower=True, unit_diagonal=True)
    return np.take(x, np.argsort(order), 0)


def _fill_bands(l_and_u: tuple[int, int], ab: Value) -> Any:
    """Return the matrix of which ``ab`` has the diagonals as rows."""
    below, above = l_and_u
    n = ab.shape[1]
    i, j = np.indices((n, n))
    inside = (j - i <= above) & (i - j <= below)
    return np.where(inside, ab[np.where(inside, above + i - j, 0), j], np.zeros((), ab.dtype))


def solve_banded(
    l_and_u: tuple[int, int], ab: TensorLike, b: TensorLike, overwrite_ab: bool = False, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """Return the solution of ``a @ x = b`` for a matrix that is given by its diagonals."""
    return linalg.solve(_fill_bands(l_and_u, as_float(ab)), as_float(b))


def solveh_banded(
    ab: TensorLike, b: TensorLike, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """Return the solution of ``a @ x = b`` for a positive definite matrix that is given by half its diagonals."""
    ab = as_float(ab)
    width = ab.shape[0] - 1
    half = _fill_bands((width, 0) if lower else (0, width), ab)
    return linalg.solve(mirror_triangle(half, "L" if lower else "U"), as_float(b))


def solve_toeplitz(c_or_cr: TensorLike, b: TensorLike, check_finite: bool = True) -> Any:
    """Return the solution of ``toeplitz(c, r) @ x = b``."""
    return linalg.solve(toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr), as_float(b))


def solve_circulant(c: TensorLike, b: TensorLike) -> Any:
    """Return the solution of ``circulant(c) @ x = b``, for vectors."""
    return linalg.solve(circulant(c), as_float(b))


def solve_sylvester(a: TensorLike, b: TensorLike, q: TensorLike) -> Any:
    """Return the solution of ``a @ x + x @ b = q``."""
    a, b, q = as_float(a), as_float(b), as_float(q)
    n, m = q.shape
    system = np.kron(a, np.eye(m)) + np.kron(np.eye(n), np.transpose(b))
    return np.reshape(linalg.solve(system, np.reshape(q, -1)), (n, m))


def solve_continuous_lyapunov(a: TensorLike, q: TensorLike) -> Any:
    """Return the solution of ``a @ x + x @ aᴴ = q``."""
    a = as_float(a)
    return solve_sylvester(a, _conjugate_transpose(a), q)


solve_lyapunov = solve_continuous_lyapunov


def solve_discrete_lyapunov(a: TensorLike, q: TensorLike, method: str | None = None) -> Any:
    """Return the solution of ``a @ x @ aᴴ - x + q = 0``."""
    a, q = as_float(a), as_float(q)
    system = np.eye(q.size) - np.kron(a, np.conj(a) if a.dtype.kind == "c" else a)
    return np.reshape(linalg.solve(system, np.reshape(q, -1)), q.shape)


def lstsq(
    a: TensorLike, b: TensorLike, cond: float | None = None, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, lapack_driver: str | None = None,
) -> Any:  # fmt: skip
    """Return the least-squares solution, the residuals, the rank and the singular values."""
    return np.linalg.lstsq(as_float(a), as_float(b), rcond=cond)


# ---- decompositions


def cholesky(a: TensorLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the upper triangular factor, or the ``lower`` one; the other triangle is not read.

    >>> cholesky([[4.0, 2.0], [2.0, 5.0]])
    array([[2., 1.],
           [0., 2.]])
    """
    return linalg.cholesky(mirror_triangle(as_float(a), "L" if lower else "U"), not lower)


def qr(
    a: TensorLike, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full", pivoting: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """Return orthonormal columns and an upper triangular matrix whose product is ``a``."""
    a = as_float(a)
    if pivoting or mode == "raw":
        return make_fallback("linalg", "qr")(a, mode=mode, pivoting=pivoting)
    if mode == "r":
        return (linalg.qr(a, a.shape[-2] > a.shape[-1]).R,)
    q, r = linalg.qr(a, mode == "full")
    return q, r


def eigh(
    a: TensorLike, b: TensorLike | None = None, *, lower: bool = True, eigvals_only: bool = False, type: int = 1,
    subset_by_index: Sequence[int] | None = None, **options: object,
) -> Any:  # fmt: skip
    """Return the eigenvalues and eigenvectors of a symmetric matrix, or of ``a @ v = w * b @ v``."""
    if options.get("subset_by_value") is not None:
        raise NoRuleError("pb.scipy.linalg.eigh: subset_by_value is not differentiable here; use subset_by_index.")
    a = mirror_triangle(as_float(a), "L" if lower else "U")
    if b is None:
        w, v = linalg.eigh(a)
        v = v if eigvals_only else v * _match_signs(v, a, None, lower, type)
    else:
        factor = linalg.cholesky(mirror_triangle(as_float(b), "L" if lower else "U"))
        if type == 1:
            half = linalg.triangular_solve(factor, a)
            w, u = linalg.eigh(
                _symmetrize(_conjugate_transpose(linalg.triangular_solve(factor, _conjugate_transpose(half))))
            )
        else:
            w, u = linalg.eigh(_symmetrize(np.matmul(_conjugate_transpose(factor), np.matmul(a, factor))))
        v = np.matmul(factor, u) if type == 3 else linalg.triangular_solve(_conjugate_transpose(factor), u, lower=False)
        v = v if eigvals_only else v * _match_signs(v, a, b, lower, type)
    if subset_by_index is not None:
        low, high = subset_by_index
        w, v = w[..., low : high + 1], v[..., low : high + 1]
    return w if eigvals_only else (w, v)


def _match_signs(v: Value, a: Value, b: TensorLike | None, lower: bool, kind: int) -> Any:
    """Return 1 or -1 for each eigenvector, so that they point as SciPy's do."""

    def compare(v: Value, a: Value, *b: object) -> Any:
        if v.ndim > 2 or v.dtype.kind == "c":
            return np.ones(())
        try:
            _, theirs = load("linalg").eigh(a, *b, lower=lower, type=kind)
        except np.linalg.LinAlgError:  # of numbers by which shapes are found; a given matrix has been factored before
            return np.ones(v.shape[-1])
        return np.where(np.sum(v * theirs, axis=0) < 0, -1.0, 1.0)

    return call_unfollowed(compare, v, a, *([] if b is None else [as_float(b)]))


def _symmetrize(a: Value) -> Any:
    return (a + _conjugate_transpose(a)) / 2


def eigvalsh(a: TensorLike, b: TensorLike | None = None, *, lower: bool = True, **options: Any) -> Any:
    """Return the eigenvalues of a symmetric matrix, or of ``a @ v = w * b @ v``."""
    return eigh(a, b, lower=lower, eigvals_only=True, **options)


def eig(
    a: TensorLike, b: TensorLike | None = None, left: bool = False, right: bool = True, overwrite_a: bool = False,
    overwrite_b: bool = False, check_finite: bool = True, homogeneous_eigvals: bool = False,
) -> Any:  # fmt: skip
    """Return the eigenvalues and the eigenvectors to the right."""
    if left or homogeneous_eigvals:
        raise NoRuleError("pb.scipy.linalg.eig: only eigenvectors to the right are differentiable here.")
    a = as_float(a)
    w, v = linalg.eig(a if b is None else linalg.solve(as_float(b), a))
    return (w, v) if right else w


def eigvals(a: TensorLike, b: TensorLike | None = None, **options: object) -> Any:
    """Return the eigenvalues, as complex numbers."""
    a = as_float(a)
    return linalg.eigvals(a if b is None else linalg.solve(as_float(b), a))


def svd(
    a: TensorLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Any:  # fmt: skip
    """Return the singular value decomposition ``u, s, vh``."""
    result = linalg.svd(as_float(a), full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


def svdvals(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the singular values."""
    return linalg.svdvals(as_float(a))


def polar(a: TensorLike, side: str = "right") -> Any:
    """Return orthonormal columns and a positive semidefinite matrix whose product is ``a``."""
    u, s, vh = linalg.svd(as_float(a), False, True)
    unitary = np.matmul(u, vh)
    if side == "right":
        return unitary, np.matmul(_conjugate_transpose(vh) * s, vh)
    return unitary, np.matmul(u * s, _conjugate_transpose(u))


def orthogonal_procrustes(A: TensorLike, B: TensorLike, check_finite: bool = True) -> Any:
    """Return the orthogonal matrix that maps ``A`` closest to ``B``, and the scale."""
    u, s, vh = linalg.svd(np.matmul(np.transpose(as_float(B)), as_float(A)), False, True)
    return np.transpose(np.matmul(u, vh)), np.sum(s)


# ---- functions of matrices


def inv(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True, **options: object) -> Any:
    """Return the inverse."""
    return linalg.inv(as_float(a))


def det(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the determinant."""
    return linalg.det(as_float(a))


def pinv(
    a: TensorLike, *, atol: float | None = None, rtol: float | None = None, return_rank: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """Return the pseudo-inverse."""
    a = as_float(a)
    if atol:
        raise NoRuleError("pb.scipy.linalg.pinv: give rtol; atol is not differentiable here.")
    cut = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps) if rtol is None else rtol
    inverse = linalg.pinv(a, cut)
    return (inverse, linalg.matrix_rank(a, None)) if return_rank else inverse


def pinvh(a: TensorLike, atol: float | None = None, rtol: float | None = None, lower: bool = True, **_: object) -> Any:
    """Return the pseudo-inverse of a symmetric matrix, of which one triangle is read."""
    return pinv(mirror_triangle(as_float(a), "L" if lower else "U"), atol=atol, rtol=rtol)


def norm(
    a: TensorLike,
    ord: Any = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return a norm of a vector or of a matrix."""
    return np.linalg.norm(as_float(a), ord, axis, keepdims)


PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
WIDEST = 5.371920351148152  # the norm up to which the approximation of order 13 has all digits
MOST_SQUARINGS = 24


def expm(a: TensorLike) -> Any:
    """Return the matrix exponential, by a Padé approximation for ``a / 2**k`` that is squared k times.

    >>> expm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    a = as_float(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"scipy.linalg.expm: expected square matrices, got shape {a.shape}.")
    values = np.asarray(all_values(a))
    if not values.size and a.size:  # while a program is compiled, the size is not known
        norm = np.max(np.sum(np.abs(stop_gradient(a)), -2))
        count = np.ceil(np.log2(np.maximum(norm / WIDEST, 1.0)))
        steps = np.astype(count, np.int32)
        return fori_loop(
            0, steps, lambda _, x: np.matmul(x, x), _approximate_by_pade(a / 2.0**count), max_steps=MOST_SQUARINGS
        )
    size = float(np.max(np.sum(np.abs(values), -2), initial=0.0))
    if not np.isfinite(size):
        raise ArgumentError("scipy.linalg.expm: the matrix has numbers that are not finite.")
    count = max(0, int(np.ceil(np.log2(max(size, 1e-300) / WIDEST))))
    power = _approximate_by_pade(a / 2.0**count)
    for _ in range(count):
        power = np.matmul(power, power)
    return power


def _approximate_by_pade(a: Value) -> Any:
    c, one = PADE, np.eye(a.shape[-1], dtype=a.dtype)
    a2 = np.matmul(a, a)
    a4 = np.matmul(a2, a2)
    a6 = np.matmul(a2, a4)
    odd = np.matmul(a6, c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one
    odd = np.matmul(a, odd)
    even = np.matmul(a6, c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    return linalg.solve(even - odd, even + odd)


def _solve_plain(name: str, x0: Array, equation: Function, A: Value) -> Any:
    """Return SciPy's function of a traced matrix, differentiable by the equation that it solves."""
    compute = getattr(load("linalg"), name)
    values = all_values(A)  # none while a program is being compiled
    if not np.iscomplexobj(A) and not (values.size and np.iscomplexobj(compute(values))):
        return custom_root(equation, lambda f, x0, a: _as_real(name, compute(a)))(x0, A)

    def solve_parts(f: Function, x0: Value, parts: Value) -> Any:
        return _split(compute(_join(parts)) + 0j)

    def measure_parts(x: Value, parts: Value) -> Any:
        return _split(equation(_join(x), _join(parts)))

    return _join(custom_root(measure_parts, solve_parts)(_split(x0 + 0j), _split(A + 0j)))


def _as_real(name: str, z: Value) -> Any:
    """Return a result that is known to be real; in a compiled program a complex one is found too late."""
    if np.iscomplexobj(z) and np.any(np.abs(z.imag) > 1e-9 * (1 + np.abs(z.real))):
        raise NoRuleError(f"pb.scipy.linalg.{name}: the result is complex; call it outside of pb.compile.")
    return np.real(z)


def _split(z: Any) -> Any:
    return np.stack([np.real(z), np.imag(z)])


def _join(parts: Value) -> Any:
    return parts[0] + 1j * parts[1]


def sqrtm(A: TensorLike) -> Any:
    """Return the principal square root of a matrix, differentiable by its equation; a complex one if none is real."""
    A = as_float(A)
    if not is_traced(A):
        return make_fallback("linalg", "sqrtm")(A)
    return _solve_plain("sqrtm", np.eye(A.shape[-1]), lambda x, a: np.matmul(x, x) - a, A)


def logm(A: TensorLike) -> Any:
    """Return the principal logarithm of a matrix, differentiable by its equation; a complex one if none is real."""
    A = as_float(A)
    if not is_traced(A):
        return make_fallback("linalg", "logm")(A)
    return _solve_plain("logm", np.zeros(A.shape), lambda x, a: expm(x) - a, A)


def cosm(A: TensorLike) -> Any:
    """Return the cosine of a real matrix."""
    return np.real(expm(1j * as_float(A)))


def sinm(A: TensorLike) -> Any:
    """Return the sine of a real matrix."""
    return np.imag(expm(1j * as_float(A)))


def tanm(A: TensorLike) -> Any:
    """Return the tangent of a real matrix."""
    return linalg.solve(cosm(A), sinm(A))


def coshm(A: TensorLike) -> Any:
    """Return the hyperbolic cosine of a matrix."""
    A = as_float(A)
    return (expm(A) + expm(-A)) / 2


def sinhm(A: TensorLike) -> Any:
    """Return the hyperbolic sine of a matrix."""
    A = as_float(A)
    return (expm(A) - expm(-A)) / 2


def tanhm(A: TensorLike) -> Any:
    """Return the hyperbolic tangent of a matrix."""
    return linalg.solve(coshm(A), sinhm(A))


# ---- structured matrices


def toeplitz(c: TensorLike, r: TensorLike | None = None) -> Any:
    """Return the matrix with constant diagonals, of its first column and first row.

    >>> toeplitz([1.0, 2.0], [1.0, 3.0])
    array([[1., 3.],
           [2., 1.]])
    """
    c = np.reshape(as_operand(c), -1)
    r = (np.conj(c) if c.dtype.kind == "c" else c) if r is None else np.reshape(as_operand(r), -1)
    i, j = np.indices((c.shape[0], r.shape[0]))
    values = np.concatenate([r[:0:-1], c])
    return values[i - j + r.shape[0] - 1]


def circulant(c: TensorLike) -> Any:
    """Return the matrix whose columns are ``c``, rolled by one more each."""
    c = np.reshape(as_operand(c), -1)
    n = c.shape[0]
    i, j = np.indices((n, n))
    return c[(i - j) % n]


def hankel(c: TensorLike, r: TensorLike | None = None) -> Any:
    """Return the matrix with constant antidiagonals, of its first column and last row."""
    c = np.reshape(as_operand(c), -1)
    r = np.zeros_like(c) if r is None else np.reshape(as_operand(r), -1)
    i, j = np.indices((c.shape[0], r.shape[0]))
    return np.concatenate([c, r[1:]])[i + j]


def companion(a: TensorLike) -> Any:
    """Return the companion matrix of a polynomial."""
    a = as_float(a)
    n = a.shape[0] - 1
    return np.concatenate([np.expand_dims(-a[1:] / a[0], 0), np.eye(n - 1, n)])


def leslie(f: TensorLike, s: TensorLike) -> Any:
    """Return a Leslie matrix: fecundities in the first row, survival rates below the diagonal."""
    f, s = as_float(f), as_float(s)
    n = f.shape[0]
    return np.concatenate([np.expand_dims(f, 0), np.expand_dims(s, 1) * np.eye(n - 1, n)])


def convolution_matrix(a: TensorLike, n: int, mode: str = "full") -> Any:
    """Return the matrix whose product with a vector of length ``n`` is the convolution with ``a``."""
    a = as_float(a)
    whole = toeplitz(np.concatenate([a, np.zeros(n - 1)]), np.concatenate([a[:1], np.zeros(n - 1)]))
    m = a.shape[0]
    if mode == "full":
        return whole
    start, size = ((min(m, n) - 1) // 2, max(m, n)) if mode == "same" else (min(m, n) - 1, max(m, n) - min(m, n) + 1)
    return whole[start : start + size]


def block_diag(*arrs: TensorLike) -> Any:
    """Return the matrix with these matrices along its diagonal.

    >>> block_diag([[1.0]], [[2.0, 3.0]])
    array([[1., 0., 0.],
           [0., 2., 3.]])
    """
    blocks = [np.atleast_2d(as_operand(a)) for a in arrs]
    width, before, rows = sum(b.shape[-1] for b in blocks), 0, []
    for block in blocks:
        rows.append(np.pad(block, ((0, 0), (before, width - before - block.shape[-1]))))
        before += block.shape[-1]
    return np.concatenate(rows)


def kron(a: TensorLike, b: TensorLike) -> Any:
    """Return the Kronecker product."""
    return np.kron(as_operand(a), as_operand(b))


def khatri_rao(a: TensorLike, b: TensorLike) -> Any:
    """Return the Kronecker products of the columns."""
    a, b = as_operand(a), as_operand(b)
    product = np.expand_dims(a, -2) * np.expand_dims(b, -3)
    return np.reshape(product, (*product.shape[:-3], -1, product.shape[-1]))


def fiedler(a: TensorLike) -> Any:
    """Return the matrix of absolute differences of numbers."""
    a = as_float(a)
    return np.abs(np.expand_dims(a, -1) - np.expand_dims(a, -2))
