"""What is known of a result before it is computed: its dtype, its shape, and where its elements lie.

The ops and their kernels are asked, on something small.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Node, Shape, fingerprint
from pullback.compiler.ir.kinds import VIEW
from pullback.core.lowering import call, fold, pieces, position, scan, view
from pullback.errors import PullbackError

__all__ = ["NO_PARAMS", "Frozen", "example", "laid_out", "laid_out_at", "result_dtype", "result_like"]


class Frozen(dict[str, Any]):
    """Parameters that can be looked up."""

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__(params)
        self.told = fingerprint(params) if params else ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self.told == other.told


NO_PARAMS = Frozen({})


@lru_cache(4096)
def result_dtype(op: Any, dtypes: tuple[Any, ...], params: Frozen) -> Any:
    """The dtype of an op on arguments of these; None if there are complex numbers, for which there is no code."""
    dtype = _result_dtype(op, dtypes, params)
    return None if "c" in {dtype.kind, *(np.dtype(d).kind for d in dtypes)} else dtype


def _result_dtype(op: Any, dtypes: tuple[Any, ...], params: Frozen) -> np.dtype[Any]:
    """The dtype of an op on arguments of these: asked of the op itself, on one element each."""
    rank = 2 if isinstance(op.lower, call) and op.lower.symbol == "gemm" else 1 if isinstance(op.lower, fold) else 0
    values = [example(d, (1,) * rank) for d in dtypes]
    if isinstance(op.lower, view | pieces):
        common: np.dtype[Any] = np.result_type(*op.promote([example(d) for d in dtypes]))
        return common
    given = {**params, "axis": 0} if isinstance(op.lower, fold | scan | position) else dict(params)
    with np.errstate(all="ignore"):
        dtype: np.dtype[Any] = np.asarray(op.perform(values, given)).dtype
    return dtype


def example(d: Any, shape: Shape = (1,)) -> Any:
    return d(1) if isinstance(d, type) else np.ones(shape or (1,), d)


def laid_out(node: Node) -> tuple[Any, Node]:
    """An array of one byte per element laid out as the node is in memory, and the node whose memory that is."""
    if node.kind is not VIEW:
        return np.zeros(node.shape, np.int8), node
    base = node.args[0]
    flat = np.zeros(base.size, np.int8)
    return np.ndarray(node.shape, np.int8, flat, node.data.offset, node.data.strides), base


def laid_out_at(whole: Any, view: Node | None) -> int:
    """Where the memory begins in which ``laid_out`` laid an array out."""
    at: int = whole.__array_interface__["data"][0]
    return at if view is None else at - view.data.offset


def _diagonal(shape: Shape, dtype: Any) -> Any:
    """Matrices that can be inverted, and more: positive and symmetric."""
    if len(shape) < 2:
        return np.ones(shape, dtype)
    return np.broadcast_to(np.eye(*shape[-2:], dtype=dtype) * np.arange(1, shape[-1] + 1).astype(dtype), shape)


def result_like(op: Any, likes: tuple[Any, ...], values: list[Any], params: dict[str, Any]) -> Any:
    """Shape and dtype of the result, or a list of them: by running the kernel on numbers that it accepts."""
    for make in (np.ones, _diagonal, np.zeros):  # positions of 1 may be outside, those of 0 are not
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
