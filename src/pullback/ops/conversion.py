"""Copies and casts to other dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import elementwise1, keeps_shape
from pullback.core.calculus import linear, no_derivative, partials
from pullback.core.convert import as_dtype, join_array, unwrap_constant
from pullback.core.lowering import call, scalar
from pullback.core.op import alias, method, op
from pullback.core.tape import as_tensor
from pullback.core.tensor import ARRAYS, NUMPY
from pullback.core.writes import is_array, mark_as_array
from pullback.errors import ArgumentError
from pullback.numerics.dtypes import make_dtype

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import DType, TensorLike

__all__ = ["clone", "identity", "cast", "astype", "to_float", "to_int", "to_bool"]


@op(np.copy, acts=elementwise1, d=partials(1), run=lambda x: x.copy(), lower=scalar(lambda s, x: x))
def clone(x: TensorLike, /) -> Any:
    """Return a copy of a tensor, through which gradients pass.

    x: a tensor, an array or a number.

    >>> pb.grad(lambda x: pb.clone(x) * x)(3.0)
    6.0
    """


def _convert(x: Any, dtype: DType) -> Any:
    """Cast an array; complex numbers to a real dtype by their real part."""
    if x.dtype.kind == "c" and make_dtype(dtype).kind in "fiu":
        x = np.real(x)
    return x.astype(dtype)


@op(
    lambda x, dtype, source: _convert(x, dtype),
    acts=keeps_shape({"dtype": np.float64, "source": np.float64}),
    d=linear(lambda g, dtype, source: _convert(g, source)),
    lower=call("cast"),
)
def cast_to_float(x: TensorLike, /, dtype: DType, source: DType) -> Any:
    """Return ``cast`` to a float or complex dtype; ``source`` is the dtype that the cotangent gets.

    >>> cast_to_float(pb.tensor([1.5]), np.float64, np.float32).dtype
    dtype('float64')
    """


@op(
    lambda x, dtype: _convert(x, dtype),
    acts=keeps_shape({"dtype": np.int32}),
    d=no_derivative(),
    lower=call("cast"),
)
def cast_to_whole(x: TensorLike, /, dtype: DType) -> Any:
    """Return ``cast`` to integers or bools, which have no derivative.

    >>> cast_to_whole(pb.tensor([1.5]), np.int32)
    Tensor([1], dtype=int32)
    """


@method
def cast(x: TensorLike, dtype: DType) -> Any:
    """Return ``x`` in another dtype.  Between floats the gradient is cast back; integers and bools carry none.

    Complex numbers are cast to real dtypes by their real part.

    x: a tensor, an array or a number.
    dtype: the dtype to convert to.

    >>> pb.cast(pb.tensor([1.7, -1.7]), "int32")
    Tensor([1, -1], dtype=int32)
    """
    wanted = as_dtype(dtype, "cast")
    x = join_array(x) if isinstance(x, ARRAYS) else as_tensor(unwrap_constant(x, "cast"))
    if wanted.kind not in "fc":
        return cast_to_whole(x, wanted)
    return cast_to_float(x, wanted, x.dtype if x.dtype.kind in "fc" else wanted)


@method
def to_float(x: TensorLike) -> Any:
    """Return ``x`` as float32.

    >>> pb.tensor([True, False]).to_float()
    Tensor([1., 0.], dtype=float32)
    """
    return cast(x, np.float32)


@method
def to_int(x: TensorLike) -> Any:
    """Return ``x`` as int32, truncated towards 0.

    >>> pb.tensor([1.7]).to_int()
    Tensor([1], dtype=int32)
    """
    return cast(x, np.int32)


@method
def to_bool(x: TensorLike) -> Any:
    """Return where ``x`` is not 0.

    >>> pb.tensor([1.7, 0.0]).to_bool()
    Tensor([True, False], dtype=bool)
    """
    return cast(x, np.bool_)


# ---- other names

identity = alias("identity", clone)
astype = cast


def _astype_method(
    x: Tensor, dtype: DType, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """Return the elements in another dtype; ``casting`` says which conversions are allowed, as in NumPy.

    ``copy=False`` returns ``x`` itself where it has that dtype already.

    >>> pb.tensor([1.0, 2.5]).astype("int32")
    Tensor([1, 2], dtype=int32)
    """
    if casting != "unsafe" and not np.can_cast(x.dtype, dtype, casting):  # type: ignore[arg-type]
        raise ArgumentError(f"x.astype({dtype!r}): {x.dtype} cannot be cast to that by the rule {casting!r}.")
    if not copy and x.dtype == as_dtype(dtype, "astype"):
        return x
    result = cast(x, dtype)
    if not result.ndim:
        return mark_as_array(result) if is_array(x) else result
    return result if order == "K" else np.copy(result, order=order)  # type: ignore[call-overload]


def _copy_method(x: Tensor, order: str = "C") -> Any:
    """Return a copy, through which gradients pass.

    order: how it lies in memory, as in NumPy: "C", "F", "A" or "K".

    >>> pb.tensor([1.0, 2.5]).copy()
    Tensor([1., 2.5], dtype=float32)
    """
    if x.ndim > 1 and order != "C":
        return np.copy(x, order=order)  # type: ignore[call-overload]
    copy = clone(x)
    return mark_as_array(copy) if not copy.ndim and is_array(x) else copy


alias("astype", _astype_method)
alias("as_type", cast)
alias("copy", _copy_method)
alias("__pos__", lambda x: np.positive(x))  # in the order of x, unlike x.copy()
NUMPY[np.astype] = lambda x, dtype, /, *, copy=True, device=None: _astype_method(x, dtype, copy=copy)
