"""Dtype policies: the dtype of new layers, by Keras's names, and mixed precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core.convert import get_default_dtype, set_default_dtype
from pullback.errors import ArgumentError
from pullback.typing import DType

__all__ = [
    "MASTER_DTYPE", "as_layer_dtypes", "find_mixed_policy", "global_policy", "set_global_policy",
    "without_mixed_policy",
]  # fmt: skip

MIXED = "mixed_float16"
MASTER_DTYPE = np.dtype(np.float32)  # of variables with mixed precision
NO_BFLOAT16 = "NumPy has no bfloat16. There are float16, float32, float64 and 'mixed_float16'."
_global_policy: str | None = None  # "mixed_float16", or None if the policy is the default dtype


def as_layer_dtypes(given: Any, what: str) -> tuple[np.dtype[Any], np.dtype[Any] | None]:
    """Return the dtype of a layer's variables, and the one it computes in if that is narrower, from a dtype or policy.

    >>> as_layer_dtypes("float64", "dense")
    (dtype('float64'), None)
    >>> as_layer_dtypes("mixed_float16", "dense")
    (dtype('float32'), dtype('float16'))
    """
    name = getattr(given, "name", given)
    if isinstance(name, str) and name == MIXED:
        return MASTER_DTYPE, np.dtype(np.float16)
    if name in ("bfloat16", "mixed_bfloat16"):
        raise ArgumentError(f"{what}: {name!r}: {NO_BFLOAT16}")
    try:
        return np.dtype(given), None
    except TypeError:
        raise ArgumentError(f"{what}: dtype must be one of NumPy's, as 'float32', got {given!r}.") from None


def set_global_policy(policy: DType) -> None:
    """Choose the dtype of new layers and of Python numbers, as Keras's ``set_global_policy`` does.

    - policy: "float16", "float32", "float64", or "mixed_float16": variables in float32, from which layers compute in
      float16.  That is for programs and files that were written for a GPU: on a CPU it is slower than float32.

    >>> pb.train.set_global_policy("mixed_float16")
    >>> layer = pb.layers.dense(1, kernel_initializer="ones")
    >>> layer(np.array([[1.0, 2.0]]))
    Tensor([[3.]], dtype=float16)
    >>> layer.variables[0].dtype
    dtype('float32')
    >>> pb.train.set_global_policy("float32")
    """
    global _global_policy
    dtype, narrow = as_layer_dtypes(policy, "set_global_policy")
    set_default_dtype(dtype)
    _global_policy = None if narrow is None else MIXED


def global_policy() -> str:
    """Return the name of the policy of new layers.

    >>> pb.train.global_policy()
    'float32'
    """
    return find_mixed_policy() or str(get_default_dtype())


def find_mixed_policy() -> str | None:
    """Return the global policy if it is one of mixed precision; None if it is a dtype.

    >>> find_mixed_policy() is None
    True
    """
    return _global_policy


@contextmanager
def without_mixed_policy() -> Iterator[None]:
    """Make layers in this block without the global policy: the layers of a file have their own."""
    global _global_policy
    before, _global_policy = _global_policy, None
    try:
        yield
    finally:
        _global_policy = before
