"""Convert the operands of an op: variables, lists, object arrays, weak numbers and other libraries' arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import late_binding
from pullback.core.callers import is_in_place, is_operator
from pullback.core.convert import as_array, unwrap_constant
from pullback.core.interpreter import PLAIN_VALUES
from pullback.core.tape import constant
from pullback.core.tensor import ARRAYS, BY_KERNEL, OBJECT, Tensor, is_foreign
from pullback.core.weak import WEAK_TYPES, Weak, weaken
from pullback.errors import ArgumentError

if TYPE_CHECKING:
    from pullback.core.op import Op


def call_prepared(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Call an op after reading variables and converting lists, object arrays and weak tensors."""
    if any(hasattr(a, "tocoo") for a in args):
        return late_binding.call_with_sparse(op, args)
    symbolic = next((a for a in args if hasattr(type(a), "apply_op")), None)
    if symbolic is not None:  # of a functional model, which applies the op to values later
        return symbolic.apply_op(op.name, args, params)
    other = next((a for a in args if is_foreign(type(a))), None)
    if other is not None and is_operator():
        return _defer(op, args, other)
    if op.kernel in MATRIX_SIGNS and any(isinstance(a, np.matrix) for a in args) and not is_in_place():
        op = _matrix_op(op, args)
    return _call_converted(op, args, params)


def _call_converted(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Call an op with its operands as tensors and arrays; the result of weak numbers alone is weak."""
    dtypes = [a.dtype for a in args if isinstance(a, ARRAYS) and type(a) is not Weak and type(a) not in WEAK_TYPES]
    z = op.call(_prepare_operands(op, args, dtypes), params)
    is_weak = any(type(a) is Weak for a in args) and not any(d.kind in "fc" for d in dtypes)
    return weaken(z) if is_weak and "dtype" not in params else z


def _prepare_operands(op: Op, args: Sequence[Any], dtypes: list[Any]) -> list[Any]:
    """Return operands as tensors and arrays; weak numbers and lists take the dtype of the others (``dtypes``)."""
    floats = {d for d in dtypes if d.kind == "f"}
    wide = np.result_type(*floats) if floats else None
    return [
        a.among(dtypes) if type(a) is Weak else a.read() if isinstance(a, Tensor) else _as_operand(op, a, i, wide)
        for i, a in enumerate(args)
    ]


def _defer(op: Any, args: Sequence[Any], other: Any) -> Any:
    """Leave an operator to another library's array, as NumPy's own arrays do."""
    knows = type(other).__array_ufunc__ is not None and isinstance(op.kernel, np.ufunc)
    return op.kernel(*args) if knows else NotImplemented


MATRIX_SIGNS = frozenset({np.multiply, np.power})  # operators that mean matrix products for an np.matrix


def _matrix_op(op: Op, args: Sequence[Any]) -> Op:
    """Return the op that an operator stands for if an operand is an ``np.matrix``: ``*`` is the matrix product."""
    ranks = [np.ndim(a) for a in args]
    if op.kernel is np.multiply and 0 in ranks:
        return op
    if op.kernel is np.multiply and ranks == [2, 2] and is_operator():
        product: Op = BY_KERNEL[np.matmul]
        return product
    raise ArgumentError(
        f"{op.name}: an np.matrix beside a tensor ({ranks[0]} and {ranks[1]} axes) may mean elements or matrices. "
        "Give np.asarray(matrix), and write @ for the product of matrices."
    )


def _as_operand(op: Any, a: Any, i: int, wide: Any) -> Any:
    """Return a list as a tensor with the float dtype of the other operands; positions stay integers.

    A subclass of ndarray whose operators differ (``np.matrix``) becomes a plain array.
    """
    if type(a) in WEAK_TYPES:
        return a.item()
    if not isinstance(a, list | tuple):
        plain = type(a) in PLAIN_VALUES and getattr(a, "dtype", None) is not OBJECT
        return a if plain else unwrap_constant(a, op.name)
    value = unwrap_constant(a, op.name)
    if isinstance(value, Tensor):
        return value
    if wide is not None and value.dtype.kind == "f":
        value = as_array(a, wide, op.name)[()]
    if op.flows and not op.d.differentiable(i) and value.dtype.kind == "f" and np.all(value == np.floor(value)):
        value = np.array(a, np.int64)
    return constant(value)
