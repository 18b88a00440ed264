"""Infer dtype and shape of results, by running ops on arrays of ones."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.ir.graph import Shape
from pullback.compiler.ir.params import FrozenParams
from pullback.core.lowering import call, fold, pieces, position, scan, view
from pullback.errors import PullbackError

if TYPE_CHECKING:
    from pullback.core.op import Op

MAX_RUN_ELEMENTS = 4096  # of arguments: running an op on more takes noticeable time


@lru_cache(4096)
def infer_dtype(op: Op, dtypes: tuple[Any, ...], params: FrozenParams) -> np.dtype[Any]:
    """Return the dtype of an op on arguments of these dtypes; it is run on one element of each if it has no rule."""
    inexact: set[np.dtype[Any]] = {np.dtype(d) for d in dtypes if d is not float and np.dtype(d).kind in "fc"}
    if len(inexact) == 1 and getattr(op.kernel, "keeps_dtype", False) and all(d.kind == "f" for d in inexact):
        return inexact.pop()
    rank = 2 if isinstance(op.lower, call) and op.lower.symbol == "gemm" else 1 if isinstance(op.lower, fold) else 0
    values = [make_example(d, (1,) * rank) for d in dtypes]
    if isinstance(op.lower, view | pieces):
        common: np.dtype[Any] = np.result_type(*op.promote([make_example(d) for d in dtypes]))
        return common
    settings = {**params, "axis": 0} if isinstance(op.lower, fold | scan | position) else dict(params)
    with np.errstate(all="ignore"):
        dtype: np.dtype[Any] = np.asarray(op.perform(values, settings)).dtype
    return dtype


def make_example(d: Any, shape: Shape = (1,)) -> Any:
    """Return ones of a dtype; for the type of a Python number, the number 1."""
    return d(1) if isinstance(d, type) else np.ones(shape or (1,), d)


def _make_diagonal(shape: Shape, dtype: Any) -> Any:
    """Return symmetric positive matrices, which any decomposition accepts."""
    if len(shape) < 2:
        return np.ones(shape, dtype)
    return np.broadcast_to(np.eye(*shape[-2:], dtype=dtype) * np.arange(1, shape[-1] + 1).astype(dtype), shape)


def _infer_from_shapes(op: Op, likes: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Return the shape of a result by the op's own rule, and its dtype by running the op on small arrays.

    The arrays have at most 2 elements along each axis; the result is None if the op does not accept them.
    """
    try:
        shape = tuple(op.acts.shape(op.name, [shape for shape, _ in likes], params))
        with np.errstate(all="ignore"):
            out = op.perform([np.ones([min(n, 2) for n in lengths], dtype) for lengths, dtype in likes], params)
    except Exception:  # a kernel may be the user's; errors about the arguments are raised when it runs on them
        return None
    return (shape, out.dtype) if isinstance(out, np.ndarray) and len(shape) == out.ndim else None


def infer_result(op: Op, likes: tuple[Any, ...], values: list[Any], params: dict[str, Any]) -> Any:
    """Return shape and dtype of a result, or a list of them, by running the op on values that it accepts."""
    if sum(prod(shape) for shape, _ in likes) > MAX_RUN_ELEMENTS and all(v is None for v in values):
        found = _infer_from_shapes(op, likes, params)
        if found is not None:
            return found
    for make in (np.ones, _make_diagonal, np.zeros):  # positions of 1 may be out of range, those of 0 are not
        xs = [make(*like)[()] if v is None else v[()] for like, v in zip(likes, values, strict=True)]
        try:
            with np.errstate(all="ignore"):
                out = op.perform(xs, params)
            break
        except PullbackError:
            if make is np.zeros:
                raise
    if type(out) is tuple:
        return [(np.shape(z), z.dtype) for z in out]
    return np.shape(out), out.dtype
