"""The methods and attributes of NumPy's arrays, on tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pullback.core.op import alias
from pullback.core.tensor import Tensor
from pullback.core.writes import is_numpy_number, write
from pullback.errors import ArgumentError
from pullback.numerics.dtypes import make_dtype
from pullback.ops.sorting import argsort

if TYPE_CHECKING:
    from pullback.typing import DType, TensorLike


def _call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls the NumPy function of this name with the tensor as its first argument."""

    def method(x: Tensor, *args: object, **kwargs: object) -> Any:
        return function(x, *args, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = f"As ``np.{function.__name__}(x, ...)``."
    return method


def _compress(x: Tensor, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the elements along ``axis`` for which the condition is true.

    >>> pb.tensor([1.0, 2.0, 3.0]).compress([True, False, True])
    Tensor([1., 3.], dtype=float32)
    """
    return np.compress(condition, x, axis=axis, out=out)


def _partition(x: Tensor, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
    """Partition in place, so that the ``kth`` element is the one of the sorted array.

    >>> x = pb.tensor([3.0, 1.0, 2.0])
    >>> x.partition(0)
    >>> x[0]
    Tensor(1., dtype=float32)
    """
    write(x, lambda old: np.partition(old, kth, axis), "x.partition()")


def _argsort(
    x: Any, axis: int | None = -1, descending: bool = False, *, kind: str | None = None, stable: bool | None = None
) -> Any:
    """Return the positions that sort the elements along ``axis``; equal ones stay in order, whatever ``kind`` is.

    >>> pb.tensor([3.0, 1.0, 2.0]).argsort(kind="stable")
    Tensor([1, 2, 0], dtype=int64)
    """
    return argsort(np.reshape(x, -1), 0, descending) if axis is None else argsort(x, axis, descending)


def _put(x: Any, indices: Any, values: TensorLike, mode: Any = "raise") -> None:
    """Write values to positions in the flattened array.

    >>> x = pb.tensor([1.0, 2.0, 3.0])
    >>> x.put([0, 2], 9.0)
    >>> x
    Tensor([9., 2., 9.], dtype=float32)
    """
    np.put(x, indices, values, mode=mode)


def _view(x: Tensor, dtype: DType = None, type: Any = None) -> Any:
    """Return a view of all elements; their bytes cannot be read as another dtype.

    >>> x = pb.tensor([1.0, 2.0])
    >>> x.view()[0] = 5.0
    >>> x
    Tensor([5., 2.], dtype=float32)
    """
    is_dtype = dtype is None or (not isinstance(dtype, list | tuple | int) and make_dtype(dtype) == x.dtype)
    if type is not None or not is_dtype:
        raise ArgumentError(
            f"x.view({dtype!r}): the bytes of a tensor cannot be read in another way. x.reshape(shape) is another "
            "shape, x.astype(dtype) converts to another dtype."
        )
    return x[()] if not x.ndim and is_numpy_number(x) else x[...]


def _tobytes(x: Tensor, order: Literal["K", "A", "C", "F"] = "C") -> bytes:
    """Return the bytes of all elements, in the order of C or of Fortran.

    >>> pb.tensor([1.0], "float32").tobytes()
    b'\\x00\\x00\\x80?'
    """
    return x.numpy().tobytes(order)


def _conj(x: Tensor, out: Any = None) -> Any:
    """Return the complex conjugate of each element; of real numbers ``x`` itself, as in NumPy.

    >>> pb.tensor([1.0 + 2.0j]).conj()
    Tensor([1.-2.j], dtype=complex64)
    """
    return np.conjugate(x, out=out) if out is not None or x.dtype.kind == "c" else x


class Flat:
    """The flattened elements, for reading and writing: ``x.flat``.

    >>> x = pb.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.flat[1:3] = 0.0
    >>> x.flat[3], len(x.flat)
    (Tensor(4., dtype=float32), 4)
    """

    def __init__(self, base: Any) -> None:
        self.base = base

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return np.copy(np.reshape(self.base, -1))[index]

    def __setitem__(self, index: Any, value: TensorLike) -> None:
        np.put(self.base, np.arange(len(self))[index], value)


def _set_flat(x: Any, value: TensorLike) -> None:
    """Write the values into all elements, one after the other, again from the first where there are too few."""
    np.put(x, np.arange(x.size), value)


_METHODS: dict[str, Callable[..., Any]] = {
    "argsort": _argsort, "compress": _compress, "partition": _partition, "put": _put, "view": _view,
    "tobytes": _tobytes, "trace": _call(np.trace), "diagonal": _call(np.diagonal),
    "argpartition": _call(np.argpartition),
    "nonzero": _call(np.nonzero), "choose": _call(np.choose), "conj": _conj, "conjugate": _conj, "dot": _call(np.dot),
}  # fmt: skip
for _name, _method in _METHODS.items():
    alias(_name, _method)
# NumPy calls methods of these names on the elements of object arrays.
for _ufunc in (np.deg2rad, np.degrees, np.exp2, np.fabs, np.positive, np.rad2deg, np.radians, np.rint, np.trunc):
    alias(_ufunc.__name__, _call(_ufunc))
for _name, _read in {
    "flat": Flat, "itemsize": lambda x: x.dtype.itemsize, "nbytes": lambda x: x.size * x.dtype.itemsize,
}.items():  # fmt: skip
    setattr(Tensor, _name, property(_read, _set_flat if _name == "flat" else None))
