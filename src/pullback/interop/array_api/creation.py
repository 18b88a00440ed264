"""Creation of arrays by the names of the Array API: the default dtypes are NumPy's, float64 and int64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pullback.core.convert import as_array, as_dtype, has_tensors, join_tensors
from pullback.core.tape import as_tensor, constant
from pullback.core.tensor import Tensor, concrete
from pullback.errors import ArgumentError
from pullback.interop import dlpack
from pullback.interop.array_api.arguments import as_operand, as_result, call, check_device

if TYPE_CHECKING:
    from pullback.typing import DType, Number, ShapeLike, TensorLike, Value


def asarray(obj: TensorLike, /, *, dtype: DType = None, device: object = None, copy: bool | None = None) -> Tensor:
    """Return a tensor with these values.

    obj: a tensor, which keeps its gradient, an array, a number, or nested lists of numbers or tensors.
    dtype: the dtype; without it that of the array, and bool, int64, float64 or complex128 for Python's numbers.
    device: ``"cpu"`` or None.
    copy: ``True`` for a copy of its own, ``False`` for an error where one is needed.
    """
    check_device("asarray", device)
    if isinstance(obj, Tensor):
        result: Any = obj
    else:
        result = as_tensor(join_tensors(obj)) if has_tensors(obj) else constant(_as_values(obj, dtype, copy))
    shared = isinstance(obj, Tensor) or hasattr(obj, "__array__") or hasattr(obj, "__array_interface__")
    needs_copy = (dtype is not None and result.dtype != dtype) or not (shared or _has_buffer(obj))
    if copy is False and needs_copy:
        raise ArgumentError(f"asarray: copy=False, but {type(obj).__name__} must be copied; leave copy=None.")
    if dtype is not None and result.dtype != dtype:
        return result.astype(as_dtype(dtype, "asarray"))  # type: ignore[no-any-return]
    return np.copy(result) if copy and isinstance(obj, Tensor) else result  # type: ignore[return-value]


def _has_buffer(obj: object) -> bool:
    try:
        memoryview(obj)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _as_values(obj: Any, dtype: DType, copy: bool | None) -> Any:
    """Return an array of what is no tensor."""
    if hasattr(obj, "__array__"):
        array = as_array(obj, None, "asarray")
        return np.array(array) if copy else array
    try:
        if not _has_buffer(obj):
            array = np.array(obj, dtype)  # at once: integers beyond int64 would become floats
        else:
            array = np.array(obj) if copy else np.asarray(obj)
    except ValueError as error:
        raise ArgumentError(f"asarray: {error}") from None
    if array.dtype.kind not in "fiubc":
        raise ArgumentError(f"asarray: expected numbers, got {type(obj).__name__} of dtype {array.dtype}.")
    return array


def from_dlpack(x: Any, /, *, device: object = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array, by DLPack.

    x: an array in memory that the CPU reads.
    device: ``"cpu"`` or None.
    copy: ``True`` for a copy of its own.
    """
    check_device("from_dlpack", device)
    return dlpack.from_dlpack(x, copy=copy)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType = None, device: object = None
) -> Tensor:
    """Return numbers from ``start`` to ``stop``, which is not included.

    start: the first number; the end if ``stop`` is None, and the first is then 0.
    stop: the end.
    step: the distance of numbers.
    dtype: the dtype; without it int64 where all three are integers, else float64.
    device: ``"cpu"`` or None.
    """
    check_device("arange", device)
    start, stop = (0, start) if stop is None else (start, stop)
    return constant(np.arange(concrete(start), concrete(stop), concrete(step), dtype=dtype))


def linspace(
    start: Number,
    stop: Number,
    /,
    num: int,
    *,
    dtype: DType = None,
    device: object = None,
    endpoint: bool = True,
) -> Tensor:
    """Return ``num`` evenly spaced numbers.

    start: the first number.
    stop: the last number.
    num: how many.
    dtype: the dtype; without it float64 or complex128.
    device: ``"cpu"`` or None.
    endpoint: whether ``stop`` is among them.
    """
    check_device("linspace", device)
    result: Tensor = as_result(np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype))
    return result


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType = None, device: object = None) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    n_rows: the number of rows.
    n_cols: the number of columns; as many as rows if None.
    k: which diagonal; above the main one if positive.
    dtype: the dtype, float64 without it.
    device: ``"cpu"`` or None.
    """
    check_device("eye", device)
    return constant(np.eye(n_rows, n_cols, k, dtype=dtype))


def empty(shape: ShapeLike, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor whose values are yet to be written.

    shape: the length of every axis.
    dtype: the dtype, float64 without it.
    device: ``"cpu"`` or None.
    """
    check_device("empty", device)
    return constant(np.empty(concrete(shape), dtype=dtype))


def full(shape: ShapeLike, fill_value: Any, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor with one value everywhere.

    shape: the length of every axis.
    fill_value: the value.
    dtype: the dtype; without it that of the value: bool, int64, float64 or complex128 for Python's.
    device: ``"cpu"`` or None.
    """
    check_device("full", device)
    if isinstance(fill_value, Tensor):
        value = fill_value if dtype is None else fill_value.astype(dtype)
        return np.copy(np.broadcast_to(value, concrete(shape)))  # type: ignore[return-value]
    return constant(np.full(concrete(shape), fill_value, dtype=dtype))


def ones(shape: ShapeLike, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor of ones.

    shape: the length of every axis.
    dtype: the dtype, float64 without it.
    device: ``"cpu"`` or None.
    """
    check_device("ones", device)
    return constant(np.ones(concrete(shape), dtype=dtype))


def zeros(shape: ShapeLike, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor of zeros.

    shape: the length of every axis.
    dtype: the dtype, float64 without it.
    device: ``"cpu"`` or None.
    """
    check_device("zeros", device)
    return constant(np.zeros(concrete(shape), dtype=dtype))


def empty_like(x: Value, /, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor of the same shape whose values are yet to be written.

    x: the array.
    dtype: the dtype, that of ``x`` without it.
    device: ``"cpu"`` or None.
    """
    return zeros_like(x, dtype=dtype, device=device)


def full_like(x: Value, /, fill_value: Any, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor of the same shape with one value everywhere.

    x: the array.
    fill_value: the value.
    dtype: the dtype, that of ``x`` without it.
    device: ``"cpu"`` or None.
    """
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def ones_like(x: Value, /, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor of ones of the same shape.

    x: the array.
    dtype: the dtype, that of ``x`` without it.
    device: ``"cpu"`` or None.
    """
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: Value, /, *, dtype: DType = None, device: object = None) -> Tensor:
    """Return a tensor of zeros of the same shape.

    x: the array.
    dtype: the dtype, that of ``x`` without it.
    device: ``"cpu"`` or None.
    """
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def meshgrid(*arrays: Value, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Return the coordinates of the points of a grid, one tensor for each axis.

    arrays: the coordinates along each axis, of one dtype.
    indexing: "xy" where the second axis of the results is that of the first array, "ij" where the first is.
    """
    results: tuple[Tensor, ...] = as_result(np.meshgrid(*map(as_operand, arrays), indexing=indexing)) if arrays else ()
    return results


def tril(x: Value, /, *, k: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    x: the matrices.
    k: which diagonal; above the main one if positive.
    """
    return call(np.tril, x, k=k)


def triu(x: Value, /, *, k: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    x: the matrices.
    k: which diagonal; above the main one if positive.
    """
    return call(np.triu, x, k=k)
