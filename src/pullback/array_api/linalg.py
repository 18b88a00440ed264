"""Linear algebra of the Array API: ``xp.linalg``."""

# ruff: noqa: I001  # one import
# fmt: off
from pullback.interop.array_api.linear_algebra import (
    cholesky as cholesky, cross as cross, det as det, diagonal as diagonal, eig as eig, eigh as eigh,
    eigvals as eigvals, eigvalsh as eigvalsh, inv as inv, matmul as matmul, matrix_norm as matrix_norm,
    matrix_power as matrix_power, matrix_rank as matrix_rank, matrix_transpose as matrix_transpose, outer as outer,
    pinv as pinv, qr as qr, slogdet as slogdet, solve as solve, svd as svd, svdvals as svdvals,
    tensordot as tensordot, trace as trace, vecdot as vecdot, vector_norm as vector_norm,
)
# fmt: on


def __dir__() -> list[str]:
    return sorted(name for name in globals() if not name.startswith("_"))
