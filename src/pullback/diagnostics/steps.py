"""One step of the way back, operand by operand, for those who want to look at each part or change it.

``Tape.walk`` does the same without looking.  Here a step may be made strong: a cotangent of zero then gives zero,
whatever it is multiplied by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.core.axes import reduces
from pullback.core.bundle import ALL, ONE
from pullback.core.calculus import linear
from pullback.core.convert import bare
from pullback.core.fitting import fit
from pullback.core.interpreter import new_level
from pullback.core.tape import ARRAYS
from pullback.core.tensor import all_values
from pullback.numerics.adjoints import select, spread
from pullback.transforms.forward import Dual, parted
from pullback.transforms.linearity import is_linear

__all__: list[str] = []

# Steps that undo broadcasting, and the same ones without that.
LOOSE = {"both_fit": "both", "fit_x": "both", "fit_y": "both", "left_fit": "left", "right_fit": "right"}
Change = Callable[[Any], Any]


def parts(r: Any, strong: bool = False) -> Iterator[tuple[Any, Any]]:
    """What one node gives back: each operand that is on the tape with its part of the cotangent."""
    step = r.via.plain
    dx, rules = step.dx or getattr(step.back, "dx", None), getattr(step.back, "rules", None)
    if dx is not None:
        yield from _by_operand(r, _loose(step) if strong else step, dx, strong)
    elif rules is not None:
        nodes, values, live = r.x
        for i, (a, v, on, d) in enumerate(
            zip(nodes, values, live, rules(r.g, r.value, values, r.y, live), strict=True)
        ):
            if on and d is not None:
                if strong:

                    def again(g: Any, change: Change, i: int = i) -> Any:
                        return rules(g, r.value, [*map(change, values)], r.y, live)[i]

                    d = strengthened(step.op, d, r.g, v.shape, _named(step.op, r.y), again)
                yield a, fit(d, v)
    elif step is ONE or step is ALL:  # a gradient that the user gave
        gs = [r.g] if step is ONE else r.g
        ds = r.y(gs)
        if strong and not all(d is None or finite(d) for d in ds):
            ds = _strongly(r.y, gs)
        for a, d in zip(r.x, ds, strict=True):
            if a is not None and d is not None:
                yield a, d
    else:
        step.back(r)


def _by_operand(r: Any, step: Any, dx: Any, strong: bool) -> Iterator[tuple[Any, Any]]:
    x, two = r.x.value, step.dy is not None
    y = r.y.value if two else r.y
    for a, rule in ((r.x, step.dx or dx), (r.y, step.dy)) if two else ((r.x, step.dx or dx),):
        d = rule(r.g, r.value, x, y)
        if strong:

            def again(g: Any, change: Change, rule: Any = rule) -> Any:
                return rule(g, r.value, change(x), change(y))

            d = fit(strengthened(step.op, d, r.g, a.value.shape, _named(step.op, r.y), again), a.value)
        yield a, d


def _strongly(back: Any, gs: Any) -> list[Any]:
    """A gradient that the user gave is linear in the cotangents: it is its own derivative, in their direction.

    As a tangent a cotangent of zero stays zero through all that the gradient function does with it.  One that is not
    linear, such as a clipped one, is left as it is.
    """

    def rule(some: list[Any]) -> Any:
        source = iter(some)
        return back([g if g is None else next(source) for g in gs])

    if is_linear(rule, [g for g in gs if g is not None]) is False:
        return list(back(gs))
    number = new_level()
    duals = [g if g is None else Dual(number, np.ones_like(g), bare(g)) for g in gs]
    moved = [d if d is None else parted(d, number) for d in back(duals)]
    return [d if d is None else np.zeros_like(d[0]) if d[1] is None else bare(d[1]) for d in moved]


def operands(r: Any) -> list[Any]:
    """The values of the inputs of the op that made a node, in order; of some only shape and dtype are kept."""
    step, op = r.via.plain, r.via.plain.op
    if type(r.x) is tuple:
        return list(r.x[1])
    if op.form == 1:
        return [r.x.value]
    if step.dy is not None:
        return [r.x.value, r.y.value]
    crossed = step in (vars(op).get("right"), vars(op).get("right_fit"))
    return [r.y, r.x.value] if crossed else [r.x.value, r.y]


def _loose(step: Any) -> Any:
    """The same step with broadcasting still to be undone: zeros must be seen before they are summed up."""
    if getattr(step.op, "form", 0) != 2:
        return step
    known = vars(step.op)  # it is one of them, so they are written out
    return next((known[free] for fitted, free in LOOSE.items() if known.get(fitted) is step), step)


def _named(op: Any, params: Any) -> dict[str, Any]:
    return dict(zip(op.params, params, strict=True)) if type(params) is tuple and len(params) == len(op.params) else {}


def finite(d: Any) -> bool:
    """Whether there is surely neither NaN nor infinity in it, of all examples; nothing is sure while compiling.

    >>> finite(np.array([1.0, np.inf]))
    False
    """
    v = np.asarray(all_values(d))
    return v.dtype.kind not in "fc" or (bool(np.isfinite(v).all()) and v.size >= np.size(d))


def strengthened(op: Any, d: Any, g: Any, shape: Any, params: dict[str, Any], again: Any) -> Any:
    """``d``, which a rule made of ``g``, with 0 where only zeros of ``g`` went in.  ``again`` runs the rule anew."""
    if op is None or finite(d):
        return d
    if op.elementwise and np.shape(d) == np.shape(g):
        return select(g == 0, 0, d)
    if isinstance(op.d, linear) and (op.form == 2 or len(op.inputs) > 1):
        return products(d, g, again)
    if isinstance(op.acts, reduces) and np.shape(d) == tuple(shape):
        return select(spread(g == 0, shape, params.get("axis")), 0, d)
    return select(np.all(g == 0), 0, d)


def products(d: Any, g: Any, again: Any) -> Any:
    """Sums of products, without those of a zero of ``g`` and something that is not finite."""
    regular = again(g, _changed(lambda v: select(np.isfinite(v), v, 0)))
    touched = again(_indicator(g != 0, g), _changed(lambda v: _indicator(~np.isfinite(v), v)))
    return select(touched != 0, d, regular)


def _indicator(where: Any, x: Any) -> Any:
    return select(where, x.dtype.type(1), x.dtype.type(0))


def _changed(f: Change) -> Change:
    """``f`` of the floats; indices, parameters and what is not kept stay as they are."""
    return lambda v: f(v) if isinstance(v, ARRAYS) and v.dtype.kind in "fc" else v
