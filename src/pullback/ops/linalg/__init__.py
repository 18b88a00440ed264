"""Linear algebra: ``pb.linalg``.  Matrices are the last two axes; axes before them are a batch."""

from pullback.names.answers import install_answers as _install_answers
from pullback.ops.linalg.decompositions import QR, SVD, gram_schmidt, qr, svd, svdvals
from pullback.ops.linalg.eigenvalues import Eig, Eigh, eig, eigh, eigvals, eigvalsh
from pullback.ops.linalg.measures import cond, matrix_norm, matrix_rank
from pullback.ops.linalg.products import matrix_power, multi_dot
from pullback.ops.linalg.solving import LeastSquares, SlogDet, det, inv, lstsq, pinv, slogdet, solve
from pullback.ops.linalg.structure import band_part, diag, diag_embed, diag_part, tensor_diag_part, trace
from pullback.ops.linalg.triangular import cholesky, triangular_solve

__all__ = [
    "QR", "SVD", "Eig", "Eigh", "LeastSquares", "SlogDet",
    "band_part", "diag", "diag_embed", "diag_part", "tensor_diag_part", "trace",
    "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "gram_schmidt", "qr", "svd", "svdvals",
    "det", "inv", "lstsq", "pinv", "slogdet", "solve", "triangular_solve",
    "cond", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot",
]  # fmt: skip

_install_answers("pb.linalg")
