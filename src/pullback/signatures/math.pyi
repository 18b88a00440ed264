"""The functions of ``pb.math``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, TensorLike, TensorOrNested
from typing import Any, overload

@overload
def confusion_matrix(labels: TensorOrNested, predictions: TensorLike, /, num_classes: int) -> Tensor:
    """Return how often each label (the row) was predicted as each class (the column)."""

@overload
def confusion_matrix(labels: TensorLike, predictions: TensorOrNested, /, num_classes: int) -> Tensor:
    """Return how often each label (the row) was predicted as each class (the column)."""

@overload
def confusion_matrix(labels: ArrayLike, predictions: ArrayLike, /, num_classes: int) -> Array: ...
