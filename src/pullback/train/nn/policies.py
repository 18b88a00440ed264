"""Dtype policies: the dtype of new layers, by Keras's names; mixed precision is refused, as it gains nothing here."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.convert import get_default_dtype, set_default_dtype
from pullback.errors import ArgumentError
from pullback.typing import DType

__all__ = ["as_layer_dtype", "global_policy", "set_global_policy"]

NO_BFLOAT16 = "NumPy has no bfloat16."
MIXED = (
    "mixed precision pays where hardware multiplies float16: NumPy on a CPU casts to float32 and back, and a training "
    "step took 2 to 4 times as long with as much memory or more, as both copies are kept for the gradients. Use "
    "float32; for less memory pb.checkpoint, or smaller batches with gradient_accumulation_steps. "
    "dtype='float16' with pb.train.loss_scale_optimizer stores and computes everything in float16, slowly."
)


def as_layer_dtype(given: Any, what: str) -> np.dtype[Any]:
    """Return the dtype of a layer's variables from a dtype or the name of a policy.

    >>> as_layer_dtype("float64", "dense")
    dtype('float64')
    """
    name = getattr(given, "name", given)
    if isinstance(name, str) and name.startswith("mixed_"):
        raise ArgumentError(f"{what}: {name!r}: {NO_BFLOAT16 + ' ' if 'bfloat' in name else ''}{MIXED}")
    if name == "bfloat16":
        raise ArgumentError(f"{what}: {NO_BFLOAT16} There are float16, float32 and float64.")
    try:
        made: np.dtype[Any] = np.dtype(given)
    except TypeError:
        raise ArgumentError(f"{what}: dtype must be one of NumPy's, as 'float32', got {given!r}.") from None
    return made


def set_global_policy(policy: DType) -> None:
    """Choose the dtype of new layers and of Python numbers, as Keras's ``set_global_policy`` does.

    - policy: "float16", "float32" or "float64"; "mixed_float16" and "mixed_bfloat16" are refused.

    >>> pb.train.set_global_policy("float32")
    >>> pb.train.global_policy()
    'float32'
    >>> pb.train.set_global_policy("mixed_float16")
    Traceback (most recent call last):
    ...
    pullback.errors.ArgumentError: set_global_policy: 'mixed_float16': mixed precision pays where hardware...
    """
    set_default_dtype(as_layer_dtype(policy, "set_global_policy"))


def global_policy() -> str:
    """Return the name of the dtype of new layers.

    >>> pb.train.global_policy()
    'float32'
    """
    return str(get_default_dtype())
