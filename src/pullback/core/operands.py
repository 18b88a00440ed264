"""Operands that are more than tensors, arrays and numbers: variables, lists, object arrays, other libraries' arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.callers import is_operator
from pullback.core.convert import as_array, bare
from pullback.core.interpreter import PLAIN_VALUES
from pullback.core.tape import ARRAYS, constant
from pullback.core.tensor import LATER, OBJECT, Tensor, is_foreign
from pullback.core.weak import WEAK_TYPES, Weak, weaken

if TYPE_CHECKING:
    from pullback.core.op import Op


def call_prepared(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Call an op with variables read, lists and object arrays made tensors, and weak tensors in their dtype."""
    if any(hasattr(a, "tocoo") for a in args):
        return LATER["sparse"](op, args)
    other = next((a for a in args if is_foreign(type(a))), None)
    if other is not None and is_operator():
        return _defer(op, args, other)
    dtypes = [a.dtype for a in args if isinstance(a, ARRAYS) and type(a) is not Weak and type(a) not in WEAK_TYPES]
    floats = {d for d in dtypes if d.kind == "f"}
    wide = np.result_type(*floats) if floats else None
    ready = [
        a.among(dtypes) if type(a) is Weak else a.read() if isinstance(a, Tensor) else _as_operand(op, a, i, wide)
        for i, a in enumerate(args)
    ]
    z = op.call(ready, params)
    alone = any(type(a) is Weak for a in args) and not any(d.kind in "fc" for d in dtypes)
    return weaken(z) if alone and "dtype" not in params else z


def _defer(op: Any, args: Sequence[Any], other: Any) -> Any:
    """Leave an operator to another library's array, as NumPy's own arrays do."""
    knows = type(other).__array_ufunc__ is not None and isinstance(op.kernel, np.ufunc)
    return op.kernel(*args) if knows else NotImplemented


def _as_operand(op: Any, a: Any, i: int, wide: Any) -> Any:
    """Return a list as a tensor of its neighbours' float dtype; whole numbers stay integers where positions are meant.

    Of another kind of array, whose signs may mean something else (``np.matrix``), the values in a plain one.
    """
    if type(a) in WEAK_TYPES:
        return a.item()
    if not isinstance(a, list | tuple):
        plain = type(a) in PLAIN_VALUES and getattr(a, "dtype", None) is not OBJECT
        return a if plain else bare(a, op.name)
    made = bare(a, op.name)
    if isinstance(made, Tensor):
        return made
    if wide is not None and made.dtype.kind == "f":
        made = as_array(a, wide, op.name)[()]
    if op.flows and not op.d.differentiable(i) and made.dtype.kind == "f" and np.all(made == np.floor(made)):
        made = np.array(a, np.int64)
    return constant(made)
