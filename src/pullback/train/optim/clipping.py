"""Gradient clipping: by value, by the norm of each gradient, by the norm of all together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pullback.core import tree
from pullback.core.convert import as_number
from pullback.core.rowsparse import RowSparse, make_rows
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.transforms.grad import as_leaf, convert_back, kind_of
from pullback.typing import TensorLike, Tree, Value

Grads = TypeVar("Grads")  # a tree of gradients

__all__ = ["clip_global_norm", "clip_norms", "clip_values", "global_norm"]


def clip_values(grads: Grads, limit: float) -> Grads:
    """Return the gradients with every element clipped to ``[-limit, limit]``.

    grads: a list or dict of gradients.
    limit: the largest absolute value.

    >>> pb.train.clip_values({"w": np.array([0.5, -7.0])}, 1.0)
    {'w': array([ 0.5, -1. ])}
    """
    check_limit("clip_values", limit)
    clipped: Grads = _clip_tree(grads, "clip_values", lambda gs: clip_each_value(gs, limit))
    return clipped


def clip_norms(grads: Grads, limit: float) -> Grads:
    """Return the gradients, each scaled down if its own norm is more than ``limit``.

    grads: a list or dict of gradients.
    limit: the largest norm of each.

    >>> pb.train.clip_norms({"w": np.array([3.0, 4.0]), "b": np.array([0.5])}, 1.0)
    {'w': array([0.6, 0.8]), 'b': array([0.5])}
    """
    check_limit("clip_norms", limit)
    clipped: Grads = _clip_tree(grads, "clip_norms", lambda gs: clip_each_norm(gs, limit))
    return clipped


def clip_global_norm(grads: Grads, limit: float) -> Grads:
    """Return the gradients, all scaled by one factor if their joint norm is more than ``limit``.

    The direction stays the same.

    grads: a list or dict of gradients.
    limit: the largest norm of all together.

    >>> pb.train.clip_global_norm({"w": np.array([3.0, 0.0]), "b": np.array([4.0])}, 1.0)
    {'w': array([0.6, 0. ]), 'b': array([0.8])}
    """
    check_limit("clip_global_norm", limit)
    clipped: Grads = _clip_tree(grads, "clip_global_norm", lambda gs: clip_joint_norm(gs, limit))
    return clipped


def global_norm(grads: Tree) -> Any:
    """Return the joint norm of all gradients of a tree, in float64 so that it does not overflow.

    grads: a list or dict of gradients.

    >>> pb.train.global_norm({"w": np.array([3.0, 0.0]), "b": np.array([4.0])})
    np.float64(5.0)
    """
    return compute_norm(_collect_values(grads, "global_norm"))


def check_limit(name: str, limit: float) -> float:
    """Return a limit; raise an error unless it is a number more than 0."""
    if as_number(name, "the limit", limit, 0) == 0:
        raise ArgumentError(f"{name}: the limit must be more than 0, got {limit!r}.")
    return float(limit)


# ---- lists of arrays, for optimizers


def clip_each_value(gs: Sequence[Any], limit: float) -> list[Any]:
    return [np.clip(g, -limit, limit) for g in gs]


def clip_each_norm(gs: Sequence[Any], limit: float) -> list[Any]:
    return [_scale_down(g, compute_norm([g]), limit) for g in gs]


def clip_joint_norm(gs: Sequence[Any], limit: float) -> list[Any]:
    together = compute_norm(gs)
    return [_scale_down(g, together, limit) for g in gs]


def compute_norm(gs: Sequence[Any]) -> Any:
    return np.sqrt(sum((np.sum(np.square(g.astype(np.float64))) for g in gs), np.float64(0.0)))


def _scale_down(g: Value, length: Value, limit: float) -> Any:
    return g * (limit / np.maximum(length, limit)).astype(g.dtype)


# ---- trees


def _collect_values(grads: Tree, name: str) -> list[Any]:
    out: list[Any] = []

    def collect(g: TensorLike | RowSparse) -> None:
        g = _sum_rows(g)
        out.append(as_value(g.values if isinstance(g, RowSparse) else g, name))

    tree.map_leaves(collect, grads, whole=tree.is_number_list)
    return out


def _clip_tree(grads: Tree, name: str, clip: Callable[[Sequence[Any]], list[Any]]) -> Any:
    grads = tree.map_leaves(_sum_rows, grads, whole=tree.is_number_list)
    clipped = iter(clip(_collect_values(grads, name)))

    def convert(g: TensorLike | RowSparse) -> Any:
        if isinstance(g, RowSparse):
            return make_rows(g.indices, convert_back(next(clipped), kind_of(g.values)), g.shape, True)
        return convert_back(next(clipped), kind_of(g))

    return tree.map_leaves(convert, grads, whole=tree.is_number_list)


def _sum_rows(g: TensorLike | RowSparse) -> Any:
    """Return a gradient; a row-sparse one with each row once, so that its values can be clipped."""
    if not isinstance(g, RowSparse):
        return g
    return g.to_dense() if g.is_symbolic else g.coalesce()


def as_value(x: TensorLike, name: str) -> Any:
    """Return an array or NumPy scalar, or the tensor itself if a transform traces it."""
    t = as_leaf(x, name)
    return t.value if isinstance(t, Tensor) and not t.level else t
