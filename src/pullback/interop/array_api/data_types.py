"""Dtypes of the Array API: their names, kinds, limits and promotion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.interop.array_api.arguments import as_operand, check_device
from pullback.numerics.dtypes import make_dtype

if TYPE_CHECKING:
    from pullback.typing import DType, Value

# The dtypes are NumPy's types, not instances of np.dtype: np.dtype("float64") == None is true.
SIGNED = {"int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64}
UNSIGNED = {"uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64}
REAL = {"float32": np.float32, "float64": np.float64}
COMPLEX = {"complex64": np.complex64, "complex128": np.complex128}
KINDS: dict[str, dict[str, Any]] = {
    "bool": {"bool": np.bool_}, "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": SIGNED | UNSIGNED,
    "real floating": REAL, "complex floating": COMPLEX, "numeric": SIGNED | UNSIGNED | REAL | COMPLEX,
}  # fmt: skip


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a floating dtype: the object that ``finfo`` returns."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerLimits:
    """The limits of an integer dtype: the object that ``iinfo`` returns."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _find_dtype(x: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = x.dtype if isinstance(x, Tensor | np.ndarray) else np.dtype(x)
    return dtype


def astype(x: Value, dtype: DType, /, *, copy: bool = True, device: object = None) -> Tensor:
    """Return the elements in another dtype.

    x: the array.
    dtype: the dtype to convert to.
    copy: ``False`` for the array itself where it has that dtype already.
    device: ``"cpu"`` or None.
    """
    check_device("astype", device)
    operand: Any = as_operand(x)
    wanted = make_dtype(dtype)
    if operand.dtype.kind == "c" and wanted.kind not in "cb":
        raise ArgumentError(f"astype: {operand.dtype} to {wanted} drops the imaginary part; call real(x) first.")
    if operand.dtype != wanted:
        return operand.astype(wanted)  # type: ignore[no-any-return]
    return np.copy(operand) if copy else operand  # type: ignore[return-value]


def can_cast(from_: DType | Value, to: DType, /) -> bool:
    """Return whether one dtype converts to another without loss, by the rules of promotion.

    from_: a dtype, or an array, whose dtype counts.
    to: the dtype to convert to.
    """
    return np.can_cast(_find_dtype(from_), to)  # type: ignore[arg-type]


def finfo(type: DType | Value, /) -> FloatLimits:
    """Return the limits of a floating dtype.

    type: a floating or complex dtype, or an array, whose dtype counts.
    """
    found = np.finfo(_find_dtype(type))
    eps, most, least, normal = (float(x) for x in (found.eps, found.max, found.min, found.smallest_normal))
    return FloatLimits(found.bits, eps, most, least, normal, np.dtype(found.dtype))


def iinfo(type: DType | Value, /) -> IntegerLimits:
    """Return the limits of an integer dtype.

    type: an integer dtype, or an array, whose dtype counts.
    """
    found = np.iinfo(_find_dtype(type))
    return IntegerLimits(found.bits, found.max, found.min, np.dtype(found.dtype))


def isdtype(dtype: DType, kind: DType | str | tuple[Any, ...]) -> bool:
    """Return whether a dtype is of a kind.

    dtype: the dtype.
    kind: a dtype, one of the kinds of the standard ("bool", "signed integer", "unsigned integer", "integral",
        "real floating", "complex floating", "numeric"), or several of them as a tuple.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    found = make_dtype(dtype)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ArgumentError(f"isdtype: kind must be one of {', '.join(KINDS)}, or a dtype, got {kind!r}.")
        return any(found == k for k in KINDS[kind].values())
    other = make_dtype(kind)
    return found == other


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype to which arrays, dtypes and Python numbers are promoted.

    arrays_and_dtypes: at least one array or dtype; numbers do not widen it, but a float makes integers floats.
    """
    operands = [x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes]
    return np.result_type(*operands)
