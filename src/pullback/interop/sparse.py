"""Products of SciPy's sparse arrays and matrices with tensors: ``A @ t``, ``t @ A``, ``A.dot(t)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.op import Op, convert_operand
from pullback.errors import ArgumentError, ShapeError
from pullback.ops.segments import unsorted_segment_sum

if TYPE_CHECKING:
    from pullback.typing import Value


def is_sparse(x: object) -> bool:
    """Return whether this is a SciPy sparse array or matrix (or an object that behaves like one)."""
    return hasattr(x, "tocoo") and hasattr(x, "nnz")


def multiply_sparse(A: Any, x: Value) -> Any:
    """Return ``A @ x`` of a sparse ``A`` and a tensor, by the entries of ``A`` that are not zero.

    >>> import scipy.sparse
    >>> A = scipy.sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    >>> pb.grad(lambda x: (A @ x) ** 2)(np.array([1.0, 1.0]))
    array([22., 30.])
    """
    x = convert_operand(x)
    if len(A.shape) != 2 or x.ndim not in (1, 2) or x.shape[0] != A.shape[1]:
        raise ShapeError(f"matmul: got a sparse array of shape {A.shape} and a tensor of shape {x.shape}.")
    entries = A.tocoo()
    data = entries.data.astype(np.result_type(entries.data, x.dtype), copy=False)
    picked = x[entries.col] * (data if x.ndim == 1 else data[:, None])
    return unsorted_segment_sum(picked, entries.row.astype(np.int64), A.shape[0])


def call_with_sparse(op: Op, args: Sequence[Any]) -> Any:
    """Return the result of an op of a sparse array and a tensor; raise for all ops but products."""
    matrix = next(filter(is_sparse, args))
    is_product = op.name == "matmul" or (op.name == "mul" and type(matrix).__name__.endswith("_matrix"))
    if not is_product:
        raise ArgumentError(
            f"{op.name} of a sparse {type(matrix).__name__} and a tensor: only products, "
            "A @ t and t @ A, are differentiable. Use A.toarray() for other operations."
        )
    x, y = args
    return multiply_sparse(x, y) if is_sparse(x) else np.transpose(multiply_sparse(y.T, np.transpose(x)))
