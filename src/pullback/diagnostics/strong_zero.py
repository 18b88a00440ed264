"""``strong_zero``: in derivatives, zero times NaN or infinity is zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import hooks
from pullback.core.calculus import add_terms, linear
from pullback.diagnostics.backward_steps import is_finite, sum_products
from pullback.diagnostics.pass_observers import PassObserver
from pullback.numerics.adjoints import select
from pullback.transforms.forward import Dual

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Shape, Value


@contextmanager
def strong_zero() -> Iterator[None]:
    """In this block and thread, let a zero cotangent or tangent give zero even if it is multiplied by NaN or infinity.

    A derivative that is NaN or infinite then does not affect a gradient that does not depend on it: the branch that
    ``where`` did not select has a gradient of zero, without a second ``where`` inside.  This holds for derivatives of
    any order that are computed in the block.

    >>> import numpy as np, pullback as pb
    >>> f = lambda x: pb.where(x > 0, pb.sqrt(x), 0.0)
    >>> with np.errstate(all="ignore"):
    ...     pb.grad(f)(np.array([0.0, 4.0]))
    array([ nan, 0.25])
    >>> with pb.strong_zero():
    ...     pb.grad(f)(np.array([0.0, 4.0]))
    array([0.  , 0.25])
    """
    with hooks.observe(StrongZero(), without=StrongZero), np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        yield


class StrongZero(PassObserver):
    """Makes cotangents and tangents of zero give zero."""

    events = PassObserver.events | {"fix_tangent"}
    is_strong = True

    def cache_key(self) -> Any:
        return "strong zero"

    def fix_tangent(self, result: Dual, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return result.tangent if is_finite(result.tangent) else _recompute_tangent(op, args, params, result)


def _recompute_tangent(op: Op, args: tuple[Any, ...], params: dict[str, Any], result: Dual) -> Any:
    """Return the tangent recomputed input by input, without products of zero tangents and non-finite derivatives."""
    primals, tangents = result.split_operands(args)
    terms = []
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue

        def push(t: Array, change: Callable[..., Any], i: int = i) -> Any:
            at = [p if j == i else change(p) for j, p in enumerate(primals)]
            return op.jvp(result.primal, at, [t if j == i else None for j in range(len(at))], params)

        t = push(tangent, lambda p: p)
        if t is not None:
            terms.append(t if is_finite(t) else _strengthen_tangent(op, t, tangent, result.shape, push))
    return np.broadcast_to(add_terms(terms), result.shape) if terms else None


def _strengthen_tangent(op: Op, t: Value, tangent: Array, shape: Shape, push: Callable[..., Any]) -> Any:
    if op.elementwise:
        return select(np.broadcast_to(tangent == 0, shape), 0, np.broadcast_to(t, shape))
    if isinstance(op.d, linear) and len(op.inputs) > 1:
        return sum_products(t, tangent, push)
    return select(np.all(tangent == 0), 0, t)
