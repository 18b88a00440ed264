"""Row-sparse gradients, of tables (embeddings) of which few rows are used: the indices of these rows and their values.

In the backward pass, a leaf that collects rows has a ``RowSum`` as its cotangent.  Ops that pick rows add theirs to it;
any other cotangent is added as an array, which makes the sum an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray
from numpy.lib.mixins import NDArrayOperatorsMixin

from pullback import late_binding
from pullback.core.convert import as_shape, as_value
from pullback.core.memory import is_sole
from pullback.core.tensor import Tensor, read_sizes, strip
from pullback.errors import ArgumentError, IndexRangeError, ShapeError
from pullback.numerics.rows import add_rows

if TYPE_CHECKING:
    from pullback.typing import Array, Index, Shape, TensorLike, Value

LINEAR = frozenset({np.multiply, np.divide, np.negative, np.positive})  # valid for repeated rows


class RowSparse(NDArrayOperatorsMixin):
    """An array that is zero except for some rows: the gradient of a table of which few rows were read.

    ``indices`` are the indices of the rows, a vector of integers; a row may occur several times, and its values are
    then added.  ``values`` are the rows, of shape ``(len(indices), *shape[1:])``; ``shape`` is that of the whole array.

    Sums, and functions that map zero to zero, return a ``RowSparse``; all others return a dense array.

    >>> import numpy as np, pullback as pb
    >>> g = pb.RowSparse([2, 0, 2], np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), (4, 2))
    >>> np.asarray(g * 0.5)
    array([[1., 1.],
           [0., 0.],
           [2., 2.],
           [0., 0.]])
    >>> table = pb.variable(np.ones((1000, 2)), name="table")
    >>> _, grads = pb.variable_grads(lambda: pb.gather(table, [7, 7]).sum(), sparse=True)
    >>> grads["table"].coalesce()
    RowSparse(indices=[7], values=Tensor([[2., 2.]], dtype=float64), shape=(1000, 2))
    """

    __slots__ = ("_distinct", "indices", "shape", "values")

    def __init__(self, indices: TensorLike, values: TensorLike, shape: Shape) -> None:
        shape = as_shape("RowSparse", shape)
        at, values = strip(indices), values if isinstance(values, Tensor) else np.asarray(as_value(values))
        at = at if isinstance(at, Tensor) else np.asarray(at)
        if not shape:
            raise ShapeError("RowSparse: shape must have an axis of rows, got ().")
        if at.ndim != 1 or (at.dtype.kind not in "iu" and at.size):
            raise ArgumentError(f"RowSparse: indices must be a vector of integers, got {at.dtype} of shape {at.shape}.")
        if values.shape != (*at.shape, *shape[1:]):
            raise ShapeError(
                f"RowSparse: values have shape {values.shape}; for {at.size} indices and shape {shape} they must have "
                f"{(*at.shape, *shape[1:])}."
            )
        if not isinstance(at, Tensor):
            wrong = at[(at >= shape[0]) | (at < -shape[0])]
            if wrong.size:
                raise IndexRangeError(f"RowSparse: the index {wrong[0]} is out of range for {shape[0]} rows.")
            at = from_front(at, shape[0])
        self._fill(at, values, shape, False)

    def _fill(self, indices: Value, values: Value, shape: tuple[int, ...], distinct: bool) -> None:
        self.indices, self.values, self.shape, self._distinct = indices, values, shape, distinct

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        dtype: np.dtype[Any] = self.values.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def is_symbolic(self) -> bool:
        """Whether the rows are not known yet: a program is being compiled, or they differ between examples."""
        return isinstance(self.indices, Tensor)

    # ---- in other forms

    def to_dense(self) -> Any:
        """Return the whole array, zeros included: a tensor if ``values`` is one.

        >>> import numpy as np, pullback as pb
        >>> pb.RowSparse([1, 1], np.array([2.0, 3.0]), (3,)).to_dense()
        array([0., 5., 0.])
        """
        if isinstance(self.values, Tensor) or self.is_symbolic:
            return late_binding.scatter_add(self.values, self.indices, self.shape)
        dense = np.zeros(self.shape, self.dtype)
        if self.values.size:
            add_rows(dense, self.indices, self.values, True)
        return dense

    def numpy(self) -> Any:
        """Return the whole array as a NumPy array.

        >>> import pullback as pb
        >>> pb.RowSparse([1], pb.tensor([2.0]), (3,)).numpy()
        array([0., 2., 0.], dtype=float32)
        """
        return np.array(self.to_dense())

    def with_values(self, values: Any) -> RowSparse:
        """Return the same rows with other values, of the same shape.

        values: the new values of the rows.
        """
        return make_rows(self.indices, values, self.shape, self._distinct)

    def coalesce(self) -> RowSparse:
        """Return the same array with every row once, in order: values of repeated rows are added.

        >>> import numpy as np, pullback as pb
        >>> pb.RowSparse([2, 0, 2], np.array([1.0, 2.0, 3.0]), (4,)).coalesce()
        RowSparse(indices=[0, 2], values=array([2., 4.]), shape=(4,))
        """
        if self._distinct:
            return self
        order, first = sort_rows(read_sizes("RowSparse.coalesce", self.indices))
        firsts = order[first]
        rows = self.indices[firsts]
        if isinstance(self.values, Tensor):
            sums = late_binding.scatter_add(self.values, group_rows(self.indices, 0), (len(rows), *self.shape[1:]))
        else:
            sums = self.values.take(firsts, 0)
            again = ~first
            if len(rows) < len(order):
                add_rows(sums, np.cumsum(first)[again] - 1, self.values.take(order[again], 0))
        return make_rows(rows, sums, self.shape, True)

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("a RowSparse has no array of its own: np.asarray makes one.")
        return np.asarray(self.to_dense(), dtype)

    def __reduce__(self) -> Any:
        return RowSparse, (self.indices, self.values, self.shape)

    def __repr__(self) -> str:
        at = (
            self.indices
            if self.is_symbolic
            else np.array2string(np.asarray(self.indices), separator=", ", threshold=20)
        )
        return f"RowSparse(indices={at}, values={self.values!r}, shape={self.shape})"

    # ---- arithmetic

    def __array_ufunc__(self, ufunc: Any, method: str, *args: object, **kwargs: object) -> Any:
        if "out" in kwargs or method == "at":
            raise ArgumentError(
                f"np.{ufunc.__name__}: a RowSparse is not changed in place. Take the result, as in g = g * 0.5, or "
                "make an array of it with g.to_dense()."
            )
        if method == "__call__" and not kwargs and ufunc.nout == 1:
            rows = _apply(ufunc, args)
            if rows is not None:
                return rows
        dense = [a.to_dense() if isinstance(a, RowSparse) else a for a in args]
        return getattr(ufunc, method)(*dense, **kwargs)

    def __bool__(self) -> bool:
        return bool(np.asarray(self))


def make_rows(indices: Value, values: Value, shape: tuple[int, ...], distinct: bool = False) -> RowSparse:
    """Return a ``RowSparse`` without checking that indices and values fit.

    ``distinct``: no row occurs twice and all are in order.
    """
    rows = RowSparse.__new__(RowSparse)
    rows._fill(indices, values, shape, distinct)
    return rows


def sort_rows(indices: Array) -> tuple[Any, Any]:
    """Return the order that sorts indices, none of them negative, and a mask of the first of equal ones.

    >>> sort_rows(np.array([2, 0, 2]))
    (array([1, 0, 2]), array([ True,  True, False]))
    """
    bits = len(indices).bit_length()
    if indices.max(initial=0) < 2 ** (62 - bits):  # one number for row and position: quicker sorted than by argsort
        keys = (indices.astype(np.int64) << bits) | np.arange(len(indices))
        keys.sort()
        order, at = keys & ((1 << bits) - 1), keys >> bits
    else:
        order = np.argsort(indices, kind="stable")
        at = indices[order]
    first = np.ones(len(at), bool)
    np.not_equal(at[1:], at[:-1], out=first[1:])
    return order, first


def group_rows(indices: Value, length: int) -> Any:
    """Return for each index the number of its group; indices of the same row, from either end, are one group.

    >>> group_rows(np.array([7, 1, -3, 7]), 10)
    array([1, 0, 1, 1])
    """
    order, first = sort_rows(from_front(indices, length))
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(first) - 1
    return groups


def from_front(indices: Value, length: int) -> Any:
    """Return positions along an axis of this length, counted from the front.

    >>> from_front(np.array([-1, 2], np.int8), 1000)
    array([999,   2])
    """
    at = indices.astype(np.intp)
    return np.where(at < 0, at + length, at)


def _apply(ufunc: Callable[..., Any], args: tuple[Any, ...]) -> RowSparse | None:
    """Return the rows of an elementwise function that maps zero to zero; None if the result must be dense."""
    rows = [a for a in args if isinstance(a, RowSparse)]
    if ufunc in (np.add, np.subtract) and len(rows) == 2 and rows[0].shape == rows[1].shape:
        x, y = rows
        return _join([(x.indices, x.values), (y.indices, y.values if ufunc is np.add else -y.values)], x.shape)
    if len(rows) != 1 or not all(a is rows[0] or _is_number(a) for a in args):
        return None
    x = rows[0]
    if not _keeps_zero(ufunc, args, x):
        return None
    x = x if x.is_symbolic else x.coalesce()
    values = ufunc(*(x.values if isinstance(a, RowSparse) else a for a in args))
    return x.with_values(values)


def _is_number(a: Any) -> bool:
    """Return whether an operand has no axes and is not traced."""
    return not isinstance(a, RowSparse) and not np.ndim(a) and not (isinstance(a, Tensor) and a.level)


def _keeps_zero(ufunc: Callable[..., Any], args: tuple[Any, ...], x: RowSparse) -> bool:
    """Return whether a function maps zero rows to zero; while tracing this is known for linear functions only."""
    with np.errstate(all="ignore"):
        at_zero = np.asarray(ufunc(*(np.zeros((), x.dtype)[()] if a is x else a for a in args)))
    return bool(at_zero.dtype.kind == x.dtype.kind and at_zero == 0) and (not x.is_symbolic or ufunc in LINEAR)


def _join(parts: list[tuple[Any, Any]], shape: tuple[int, ...]) -> RowSparse:
    if len(parts) == 1:
        return make_rows(*parts[0], shape)
    return make_rows(np.concatenate([at for at, _ in parts]), np.concatenate([rows for _, rows in parts]), shape)


class RowSum:
    """The cotangent of a leaf during a backward pass while only rows have been added to it."""

    __slots__ = ("dtype", "parts", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self.parts: list[tuple[Any, Any]] = []

    def add(self, indices: Value, values: Value) -> None:
        """Add these rows."""
        if not isinstance(indices, Tensor):
            indices = from_front(indices, self.shape[0])
        self.parts.append((indices, values if values.dtype == self.dtype else values.astype(self.dtype)))

    def __add__(self, dense: Value) -> Any:
        """Return the sum with a cotangent that is an array, as an array."""
        if not self.parts:
            return dense
        rows = self.total()
        if type(dense) is not ndarray or isinstance(rows.values, Tensor) or rows.is_symbolic:
            return dense + rows.to_dense()
        total = np.array(dense, order="C")
        add_rows(total, rows.indices, rows.values)
        return total

    def total(self) -> Any:
        """Return all rows; None if none were added."""
        return _join(self.parts, self.shape) if self.parts else None


def collect_rows(leaf: Tensor) -> None:
    """Let a leaf of a tape collect the rows that are picked from it, in the coming backward pass."""
    if leaf.g is None:
        leaf.g = RowSum(leaf.shape, leaf.dtype)


def add_rows_picked(back: Any, rows: Any) -> Any:
    """Return the ``back`` of an op of several inputs that picks rows of its first.

    ``rows(g, z, values, params)`` returns them.

    They are added to a ``RowSum``, or to an array without other references; otherwise ``back`` is run.
    """

    def add_picked(r: Any) -> None:
        (x, *_), values, _ = r.x
        e, x.g = x.g, None
        own = type(e) is ndarray and is_sole(e) and e.base is None
        own = own and not any(isinstance(v, Tensor) for v in (r.g, *values))
        part = rows(r.g, r.value, values, r.y) if own or type(e) is RowSum else None
        x.g = e
        if part is None:
            back(r)
        elif own:
            add_rows(e, *part)
        else:
            e.add(*part)

    return add_picked


# ---- the rows of x to which a cotangent g of picked elements belongs, as (indices, values); None if not whole rows


def rows_of_gather(g: Value, x_shape: tuple[int, ...], indices: Value, axis: int, batch_dims: int) -> Any:
    """Return the rows that ``gather`` picked.

    >>> rows_of_gather(np.ones((1, 2, 3)), (5, 3), np.array([[4, 0]]), 0, 0)
    (array([4, 0]), array([[1., 1., 1.],
           [1., 1., 1.]]))
    """
    if batch_dims or axis not in (0, None, -len(x_shape)):
        return None
    return np.reshape(indices, -1), np.reshape(g, (np.size(indices), *x_shape[1:]))


def rows_of_index(g: Array, x_shape: tuple[int, ...], index: Index) -> Any:
    """Return the rows that ``x[index]`` picked, where the index names whole rows by integers or a mask.

    >>> rows_of_index(np.ones(3), (5, 3), -1)
    (array([-1]), array([[1., 1., 1.]]))
    """
    first, *others = index if type(index) is tuple and index else (index,)
    if not x_shape or not all(i is Ellipsis or (isinstance(i, slice) and i == slice(None)) for i in others):
        return None
    if isinstance(first, np.ndarray) and first.dtype.kind == "b":
        return rows_of_gather(g, x_shape, np.flatnonzero(first), 0, 0) if first.ndim == 1 else None
    if isinstance(first, np.ndarray) or type(first) is int:
        return rows_of_gather(g, x_shape, np.asarray(first), 0, 0)
    return None
