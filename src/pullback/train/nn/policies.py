"""Dtype policies: the dtype of new layers, by Keras's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.convert import get_default_dtype, set_default_dtype
from pullback.errors import ArgumentError
from pullback.typing import DType

REFUSED = {
    "bfloat16": "NumPy has no bfloat16",
    "mixed_bfloat16": "NumPy has no bfloat16",
    "mixed_float16": "a CPU gains nothing by mixed precision: steps take 1.4 to 1.6 times as long as in float32",
}


def as_layer_dtype(dtype: Any, subject: str) -> np.dtype[Any]:
    """Return the dtype of a layer's variables, inputs and outputs.

    >>> as_layer_dtype("float64", "dense")
    dtype('float64')
    """
    name = getattr(dtype, "name", dtype)
    if isinstance(name, str) and name in REFUSED:
        raise ArgumentError(f"{subject}: {name!r}: {REFUSED[name]}. There are float16, float32 and float64.")
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise ArgumentError(f"{subject}: dtype must be one of NumPy's, as 'float32', got {dtype!r}.") from None
    return found


def set_global_policy(policy: DType) -> None:
    """Choose the dtype of new layers and of Python numbers, as Keras's ``set_global_policy`` does.

    - policy: "float16", "float32" or "float64".  Mixed precision is refused, as a CPU gains nothing by it.

    >>> pb.train.set_global_policy("float64")
    >>> pb.layers.dense(1)(np.array([[1.0, 2.0]])).dtype
    dtype('float64')
    >>> pb.train.set_global_policy("float32")
    """
    set_default_dtype(as_layer_dtype(policy, "set_global_policy"))


def global_policy() -> str:
    """Return the name of the policy of new layers.

    >>> pb.train.global_policy()
    'float32'
    """
    return str(get_default_dtype())
