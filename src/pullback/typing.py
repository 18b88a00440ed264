"""The types of what goes in and out: users annotate with them, and so does the library.

``from pullback.typing import TensorLike`` costs nothing at run time: those that mention ``Tensor`` are strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from types import EllipsisType

    from numpy.typing import DTypeLike

    from pullback.core.tensor import Tensor
    from pullback.train.nn.layers.symbolic import SymbolicTensor

__all__ = [
    "ArgNames", "ArgNums", "Array", "ArrayLike", "ArrayOrNumber", "Axis", "DType", "Function",
    "Index", "Lengths", "Nested", "Number", "Operand", "Padding", "Params", "PythonNumber", "Seed",
    "Shape", "ShapeLike", "SupportsArray", "TensorLike", "TensorOrNested", "Tree", "Value",
]  # fmt: skip


class SupportsArray(Protocol):
    """What NumPy can make an array of: arrays and NumPy's scalars, and the containers of other libraries.

    To a type checker a tensor is none of them: what it declares takes no dtype.
    """

    def __array__(self, dtype: Any = ..., /) -> np.ndarray[Any, Any]: ...


Array: TypeAlias = np.ndarray[Any, Any]
Number: TypeAlias = complex  # and so float, int and bool
PythonNumber: TypeAlias = (
    bool | Any
)  # a bool, int, float or complex of unknown kind: every number may be declared of it
ArrayLike: TypeAlias = SupportsArray | complex  # an op of these gives an array
ArrayOrNumber: TypeAlias = Array | complex
Nested: TypeAlias = list[Any] | tuple[Any, ...]  # nested lists of numbers, which become a Tensor
Value: TypeAlias = "Tensor | Array"  # what ops compute with
Operand: TypeAlias = "Tensor | Array | complex"  # the same, and numbers
TensorOrNested: TypeAlias = "Tensor | SymbolicTensor | Nested"  # an op of these gives a Tensor
TensorLike: TypeAlias = "Tensor | SymbolicTensor | ArrayLike | Nested"  # whatever a tensor can be made of
Shape: TypeAlias = tuple[int, ...]
ShapeLike: TypeAlias = "int | Sequence[int] | Array"
ArgNums: TypeAlias = int | Sequence[int] | None  # which arguments to differentiate by, by number
ArgNames: TypeAlias = str | Sequence[str] | None  # the same by name
Axis: TypeAlias = int | Sequence[int] | None  # one axis, several, or all
Lengths: TypeAlias = "int | Sequence[int] | Array"  # one number for all axes, or one for each
Padding: TypeAlias = str | int | Sequence[Any]  # "same", "valid", or how much
Seed: TypeAlias = "int | np.random.Generator | Value | None"
Index: TypeAlias = "int | slice | EllipsisType | Value | list[Any] | tuple[Any, ...] | None"  # what stands in x[…]
Tree: TypeAlias = object  # dicts, lists, tuples, named tuples and dataclasses of tensors
Function: TypeAlias = Callable[..., Any]
Params: TypeAlias = Mapping[str, Any]  # the parameters of an op beside its inputs
DType: TypeAlias = "DTypeLike | None"
