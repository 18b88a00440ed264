"""One step of a backward pass, operand by operand, for observers that read or change each cotangent.

``Tape.walk`` does the same without observers.  A step can be made strong: a cotangent of zero then gives zero, even if
it is multiplied by NaN or infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import reduces
from pullback.core.bundle import ONE
from pullback.core.calculus import linear
from pullback.core.convert import unwrap_constant
from pullback.core.fitting import fit
from pullback.core.interpreter import new_level
from pullback.core.tape import copy_node
from pullback.core.tensor import ARRAYS, all_values
from pullback.numerics.adjoints import select, spread
from pullback.transforms.forward import Dual, split_dual
from pullback.transforms.gates import open_gate
from pullback.transforms.linearity import is_linear

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Shape, TensorLike, Value

Change = Callable[[Any], Any]


def list_cotangents(r: Any, strong: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield each operand of a node that is on the tape with its part of the cotangent."""
    step = r.via.original
    ds = compute_strong_cotangents(r, step.loose) if strong else step.cotangents(r)
    for a, d in zip(step.operands(r), ds, strict=True):
        if a is not None and d is not None:
            yield a, d


def compute_strong_cotangents(r: Any, step: Any) -> list[Any]:
    """Return the cotangents of the inputs of a step, where zeros of ``r.g`` give zero.

    ``step`` does not sum over broadcast axes.
    """
    ds = step.cotangents(r)
    if step.is_custom:
        is_known = all(d is None or is_finite(d) for d in ds)
        return ds if is_known else _strengthen_custom(r.y, [r.g] if step is ONE else r.g)
    if step.op is None:
        return list(ds)
    params = _name_params(step.op, r.y)

    def finish(i: int, d: Any, value: Array) -> Any:
        def again(g: Any, change: Change) -> Any:
            return step.cotangents(copy_node(r, g, r.value, lambda _, v: change(v)))[i]

        return fit(strengthen(step.op, d, r.g, value.shape, params, again), value)

    return [None if d is None else finish(i, d, v) for i, (d, v) in enumerate(zip(ds, step.values(r), strict=True))]


def _strengthen_custom(back: Callable[..., Any], gs: list[Any]) -> list[Any]:
    """Return the cotangents of a linear custom gradient: the derivative of its function in the direction of ``gs``.

    As tangents, zeros of the cotangent stay zero through the gradient function.  The cotangents of a gradient function
    that is not linear, such as one that clips, are returned unchanged.
    """

    def pull(gs: list[Any]) -> list[Any]:
        return [open_gate(d) for d in back(gs)]

    def rule(some: list[Any]) -> Any:
        source = iter(some)
        return pull([g if g is None else next(source) for g in gs])

    if is_linear(rule, [g for g in gs if g is not None]) is False:
        return pull(gs)
    number = new_level()
    duals = [g if g is None else Dual(number, np.ones_like(g), unwrap_constant(g)) for g in gs]
    moved = [d if d is None else split_dual(d, number) for d in pull(duals)]
    return [d if d is None else np.zeros_like(d[0]) if d[1] is None else unwrap_constant(d[1]) for d in moved]


def _name_params(op: Op, params: TensorLike | None) -> dict[str, Any]:
    return dict(zip(op.params, params, strict=True)) if type(params) is tuple and len(params) == len(op.params) else {}


def is_finite(d: Any) -> bool:
    """Return whether no example has a NaN or infinity; False while a program is compiled, when values are unknown.

    >>> is_finite(np.array([1.0, np.inf]))
    False
    """
    v = np.asarray(all_values(d))
    return v.dtype.kind not in "fc" or (bool(np.isfinite(v).all()) and v.size >= np.size(d))


def strengthen(op: Any, d: Any, g: Value, shape: Shape, params: dict[str, Any], again: Callable[..., Any]) -> Any:
    """Return the result ``d`` of a rule, with 0 where it depends on zeros of ``g`` only; ``again`` runs it again."""
    if op is None or is_finite(d):
        return d
    if op.elementwise and np.shape(d) == np.shape(g):
        return select(g == 0, 0, d)
    if isinstance(op.d, linear) and (op.arity == 2 or len(op.inputs) > 1):
        return sum_products(d, g, again)
    if isinstance(op.acts, reduces) and np.shape(d) == tuple(shape):
        return select(spread(g == 0, shape, params.get("axis")), 0, d)
    return select(np.all(g == 0), 0, d)


def sum_products(d: Any, g: Value, again: Callable[..., Any]) -> Any:
    """Return sums of products, without products of a zero of ``g`` and a number that is not finite."""
    regular = again(g, _change_floats(lambda v: select(np.isfinite(v), v, 0)))
    touched = again(_make_indicator(g != 0, g), _change_floats(lambda v: _make_indicator(~np.isfinite(v), v)))
    return select(touched != 0, d, regular)


def _make_indicator(where: Value, x: Value) -> Any:
    return select(where, x.dtype.type(1), x.dtype.type(0))


def _change_floats(f: Change) -> Change:
    """Return ``f`` applied to floats only; indices, parameters and values that are not saved are left unchanged."""
    return lambda v: f(v) if isinstance(v, ARRAYS) and v.dtype.kind in "fc" else v
