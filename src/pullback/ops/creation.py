"""Create tensors: from values, constants and ranges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import keeps_shape
from pullback.core.calculus import linear, rule
from pullback.core.convert import as_array, as_dtype, as_shape, get_default_dtype, join_tensors
from pullback.core.lowering import made_of
from pullback.core.op import op
from pullback.core.tape import constant as _constant
from pullback.core.tensor import Tensor, concrete
from pullback.core.writes import mark_as_array
from pullback.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from pullback.typing import Array, DType, Number, ShapeLike, TensorLike, Value

__all__ = [
    "array", "asarray", "constant", "eye", "fill", "full_like", "linspace", "ones", "ones_like", "range", "scalar",
    "tensor", "tensor1d", "tensor2d", "tensor3d", "tensor4d", "tensor5d", "tensor6d", "zeros", "zeros_like",
]  # fmt: skip


# ---- from values


def tensor(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor with these values: numbers, nested lists, or an array, which is copied.

    Python numbers become float32 (see ``default_dtype``), an array keeps its dtype.

    values: numbers, nested lists of them, or an array.
    shape: the shape; without it, that of the values.
    dtype: the dtype of the result.

    >>> tensor([1, 2, 3, 4], [2, 2])
    Tensor([[1., 2.], [3., 4.]], dtype=float32)
    >>> tensor([1, 2], dtype="int32")
    Tensor([1, 2], dtype=int32)
    """
    return _make_tensor("tensor", values, shape, dtype)


constant = tensor


def _make_tensor(name: str, values: TensorLike, shape: Any, dtype: DType, rank: int | None = None) -> Tensor:
    if isinstance(shape, str | type | np.dtype):  # the dtype, without a shape before it
        shape, dtype = None, shape
    array = as_array(values, dtype, name)
    if hasattr(values, "__array__") and not isinstance(values, Tensor):  # the owner of the array may change it
        array = np.array(array)
    if shape is not None:
        wanted = as_shape(name, shape)
        if math.prod(wanted) != array.size:
            n = math.prod(wanted)
            raise ShapeError(f"{name}: the given shape {wanted} has {n} values, but there are {array.size}.")
        if array.ndim > 1 and array.shape != wanted:
            raise ShapeError(f"{name}: the values have shape {array.shape}, which is not the given shape {wanted}.")
        array = array.reshape(wanted)
    if rank is not None and array.ndim != rank:
        advice = " Give a flat list with a shape, or values nested to that depth." if rank else ""
        raise ShapeError(f"{name}: expected values of rank {rank}, got shape {array.shape}.{advice}")
    return _constant(array)


def asarray(values: TensorLike, dtype: DType = None) -> Tensor:
    """Return a tensor of these values; a tensor is returned unchanged, so that gradients pass through.

    values: a tensor, an array, numbers, or nested lists of numbers or tensors.
    dtype: the dtype; without it that of the array, and the default one for Python's numbers.

    >>> asarray([1, 2])
    Tensor([1., 2.], dtype=float32)
    >>> pb.grad(lambda x: (asarray([x, 2 * x]) * asarray(x)).sum())(3.0)
    18.0
    """
    array = values if isinstance(values, Tensor) else join_tensors(values)
    if not isinstance(array, Tensor):
        return _make_tensor("asarray", array, None, dtype)
    return array if dtype is None or array.dtype == as_dtype(dtype, "asarray") else array.astype(dtype)


def array(values: TensorLike, dtype: DType = None) -> Tensor:
    """Return a new tensor with a copy of these values, through which gradients pass.

    values: a tensor, an array, numbers, or nested lists of numbers or tensors.
    dtype: the dtype; without it that of the array, and the default one for Python's numbers.

    >>> x = pb.tensor([1.0, 2.0])
    >>> y = array(x)
    >>> y[0] = 9.0
    >>> x.tolist(), y.tolist()
    ([1.0, 2.0], [9.0, 2.0])
    """
    tensor = asarray(values, dtype)
    return mark_as_array(tensor if tensor is not values else np.copy(tensor))  # type: ignore[return-value]


def scalar(value: TensorLike, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 0.

    value: the number.
    dtype: the dtype of the result.

    >>> scalar(3.5)
    Tensor(3.5, dtype=float32)
    """
    return _make_tensor("scalar", value, None, dtype, 0)


def tensor1d(values: TensorLike, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 1.

    values: numbers, nested lists of them, or an array.
    dtype: the dtype of the result.

    >>> tensor1d([1, 2, 3])
    Tensor([1., 2., 3.], dtype=float32)
    """
    return _make_tensor("tensor1d", values, None, dtype, 1)


def tensor2d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 2, from nested lists, or from a flat one and its shape.

    values: numbers, nested lists of them, or an array.
    shape: the shape of the result.
    dtype: the dtype of the result.

    >>> tensor2d([1, 2, 3, 4], [2, 2])
    Tensor([[1., 2.], [3., 4.]], dtype=float32)
    """
    return _make_tensor("tensor2d", values, shape, dtype, 2)


def tensor3d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 3.

    values: numbers, nested lists of them, or an array.
    shape: the shape of the result.
    dtype: the dtype of the result.

    >>> tensor3d([1, 2], [1, 2, 1]).shape
    (1, 2, 1)
    """
    return _make_tensor("tensor3d", values, shape, dtype, 3)


def tensor4d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 4.

    values: numbers, nested lists of them, or an array.
    shape: the shape of the result.
    dtype: the dtype of the result.

    >>> tensor4d([1, 2], [1, 2, 1, 1]).shape
    (1, 2, 1, 1)
    """
    return _make_tensor("tensor4d", values, shape, dtype, 4)


def tensor5d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 5.

    values: numbers, nested lists of them, or an array.
    shape: the shape of the result.
    dtype: the dtype of the result.

    >>> tensor5d([1, 2], [1, 2, 1, 1, 1]).shape
    (1, 2, 1, 1, 1)
    """
    return _make_tensor("tensor5d", values, shape, dtype, 5)


def tensor6d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 6.

    values: numbers, nested lists of them, or an array.
    shape: the shape of the result.
    dtype: the dtype of the result.

    >>> tensor6d([1, 2], [1, 2, 1, 1, 1, 1]).shape
    (1, 2, 1, 1, 1, 1)
    """
    return _make_tensor("tensor6d", values, shape, dtype, 6)


# ---- constants


def _choose_dtype(name: str, dtype: DType) -> np.dtype[Any]:
    return get_default_dtype() if dtype is None else as_dtype(dtype, name)


def zeros(shape: ShapeLike, dtype: DType = None) -> Tensor:
    """Return zeros.

    shape: the shape of the result.
    dtype: the dtype of the result.

    >>> zeros([2])
    Tensor([0., 0.], dtype=float32)
    """
    return mark_as_array(_constant(np.zeros(as_shape("zeros", shape), _choose_dtype("zeros", dtype))))


def ones(shape: ShapeLike, dtype: DType = None) -> Tensor:
    """Return ones.

    shape: the shape of the result.
    dtype: the dtype of the result.

    >>> ones([2], "int32")
    Tensor([1, 1], dtype=int32)
    """
    return mark_as_array(_constant(np.ones(as_shape("ones", shape), _choose_dtype("ones", dtype))))


def fill(shape: ShapeLike, value: TensorLike, dtype: DType = None) -> Any:
    """Return a tensor with one value everywhere.

    shape: the shape of the result.
    value: the number.
    dtype: the dtype of the result.

    >>> fill([2, 2], 3)
    Tensor([[3., 3.], [3., 3.]], dtype=float32)
    """
    wanted = as_shape("fill", shape)
    if isinstance(value, Tensor) and dtype is None:
        return np.broadcast_to(value, wanted)
    one = as_array(value, dtype, "fill")
    if one.ndim:
        raise ShapeError(f"fill: value must be one number, got shape {one.shape}; broadcast_to repeats an array.")
    return mark_as_array(_constant(np.full(wanted, one)))


def _make_filling_kernel(x: Tensor, value: float, dtype: DType, name: str) -> Any:
    """Return the kernel that fills the shape of ``x`` with a number."""
    one = np.full((), value, x.dtype if dtype is None else as_dtype(dtype, name))
    return np.broadcast_to(one, x.shape)


@op(
    np.zeros_like,
    acts=keeps_shape({}),
    d=linear(lambda g: np.zeros_like(g)),
    run=lambda x, dtype=None: np.zeros_like(x, None if dtype is None else as_dtype(dtype, "zeros_like")),
    lower=made_of(lambda x, dtype: _make_filling_kernel(x, 0, dtype, "zeros_like")),
)
def zeros_like(x: TensorLike, /, dtype: DType = None) -> Any:
    """Return zeros in the shape of ``x``.

    x: a tensor, an array or a number.
    dtype: the dtype of the result.

    >>> zeros_like(np.array([1.0, 2.0]))
    array([0., 0.])
    """


@op(
    np.ones_like,
    acts=keeps_shape({}),
    d=rule(lambda g: np.zeros_like(g), jvp=lambda dx: np.zeros_like(dx)),
    run=lambda x, dtype=None: np.ones_like(x, None if dtype is None else as_dtype(dtype, "ones_like")),
    lower=made_of(lambda x, dtype: _make_filling_kernel(x, 1, dtype, "ones_like")),
)
def ones_like(x: TensorLike, /, dtype: DType = None) -> Any:
    """Return ones in the shape of ``x``.

    x: a tensor, an array or a number.
    dtype: the dtype of the result.

    >>> ones_like(np.array([1.0, 2.0]))
    array([1., 1.])
    """


@op(
    np.full_like,
    acts=keeps_shape({"fill_value": 2.5}, {"fill_value": 1}),
    d=rule(lambda g: np.zeros_like(g), jvp=lambda dx: np.zeros_like(dx)),
    run=lambda x, fill_value, dtype=None: np.full_like(
        x, fill_value, None if dtype is None else as_dtype(dtype, "full_like")
    ),
    lower=made_of(lambda x, fill_value, dtype: _make_filling_kernel(x, fill_value, dtype, "full_like")),
)
def full_like(x: TensorLike, /, fill_value: Number, dtype: DType = None) -> Any:
    """Return one value everywhere, in the shape of ``x``.

    x: a tensor, an array or a number.
    fill_value: the number.
    dtype: the dtype of the result.

    >>> full_like(np.array([1.0, 2.0]), 7)
    array([7., 7.])
    """


# ---- ranges


def range(
    start: TensorLike, stop: TensorLike | None = None, step: float | Value | None = 1, dtype: DType = None
) -> Tensor:
    """Return numbers from ``start`` to ``stop``, which is not included; descending if ``stop < start`` without a step.

    start: the first number.
    stop: the end, which is not included.
    step: the distance between two numbers.
    dtype: the dtype of the result.

    >>> range(0, 1, 0.25)
    Tensor([0., 0.25, 0.5, 0.75], dtype=float32)
    >>> range(3, 0)
    Tensor([3., 2., 1.], dtype=float32)
    """
    start, stop = (0, start) if stop is None else (start, stop)
    a, b, by = (
        _check_number("range", name, n)
        for name, n in (("start", start), ("stop", stop), ("step", 1 if step is None else step))
    )
    if not by:
        raise ArgumentError("range: cannot have a step of 0.")
    if by == 1 and b < a:
        by = -1
    numbers = a + by * np.arange(max(0, math.ceil((b - a) / by)), dtype=np.float64)
    return _constant(numbers.astype(_choose_dtype("range", dtype)))


def _check_number(name: str, argument: str, value: Any) -> Any:
    number = concrete(value)
    if not isinstance(number, int | float | np.number):
        raise ArgumentError(f"{name}: {argument} must be a number, got {type(value).__name__}.")
    if not np.isfinite(number):
        raise ArgumentError(f"{name}: {argument} must be finite, got {number}.")
    return number


def linspace(start: TensorLike, stop: TensorLike, num: float | Array = 50, dtype: DType = None) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, both included.

    start: the first number.
    stop: the last number.
    num: how many numbers.
    dtype: the dtype of the result.

    >>> linspace(0, 1, 5)
    Tensor([0., 0.25, 0.5, 0.75, 1.], dtype=float32)
    """
    if isinstance(num, bool) or not isinstance(num, int | float | np.number) or num < 0 or num != int(num):
        raise ArgumentError(f"linspace: num must be 0 or more, got {num!r}.")
    a, b = _check_number("linspace", "start", start), _check_number("linspace", "stop", stop)
    return _constant(np.linspace(a, b, int(num)).astype(_choose_dtype("linspace", dtype)))


def eye(
    num_rows: int, num_columns: int | None = None, batch_shape: ShapeLike | None = None, dtype: DType = None
) -> Tensor:
    """Return ones on the diagonal, zeros elsewhere; repeated over ``batch_shape``.

    num_rows: how many rows.
    num_columns: how many columns; as many as rows if it is not given.
    batch_shape: the axes in front of the matrix.
    dtype: the dtype of the result.

    >>> eye(2)
    Tensor([[1., 0.], [0., 1.]], dtype=float32)
    """
    rows, columns = as_shape("eye", [num_rows, num_rows if num_columns is None else num_columns])
    matrix = np.eye(rows, columns, dtype=_choose_dtype("eye", dtype))
    return _constant(np.tile(matrix, (*as_shape("eye", batch_shape), 1, 1)) if batch_shape is not None else matrix)
