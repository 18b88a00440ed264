"""Functions that return their input, but change its cotangent in the backward pass.

Each is an op, so at higher orders the changed gradient is what is differentiated, and cotangents of that pass are
changed as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import tree
from pullback.core.calculus import add_terms
from pullback.core.convert import join_array, unwrap_constant
from pullback.core.interpreter import level_of
from pullback.core.tape import constant
from pullback.core.tensor import ARRAYS, RAW, Tensor, stop_following
from pullback.core.variable import Variable, call_with_values, watch_below
from pullback.core.writes import make_alias
from pullback.errors import ArgumentError, CustomGradientError, ShapeError
from pullback.numerics.axis_arguments import is_broadcastable
from pullback.transforms.captured import line_of, make_capture_error
from pullback.transforms.custom import Customized
from pullback.transforms.custom_call import NestedCall
from pullback.transforms.custom_op import BodyRun, CustomOp
from pullback.transforms.leaf_names import is_leaf
from pullback.transforms.signatures import check_function

if TYPE_CHECKING:
    from pullback.typing import Array, ArrayOrNumber, Value


def stop_gradient(x: Value) -> Any:
    """Return ``x`` as a constant: no gradient passes through it.

    ``x`` is a tensor, an array or a number, or a tree of them; what is not a number in a tree is returned unchanged.

    >>> import pullback as pb
    >>> pb.grad(lambda x: pb.stop_gradient(x) * x)(3.0)
    3.0
    >>> pb.grad(lambda p: pb.stop_gradient(p)["w"] * p["w"])({"w": 3.0})
    {'w': 3.0}
    """
    if isinstance(x, (Tensor, *RAW)):
        return _stop(x)
    if is_leaf(x) or tree.get_branches(x) is None:
        return constant(x)
    return tree.map_leaves(_stop, x)


def _stop(x: Any) -> Any:
    x = join_array(x)
    if not isinstance(x, Tensor):
        return x
    if isinstance(x, Variable):
        with watch_below(inf, above=0):  # observers that record which variables are read do not record this read
            x = x.read()
    x = stop_following(x)
    return make_alias(x) if level_of(x) else constant(x.value if isinstance(x, Tensor) else x)


class PassedCall(NestedCall):
    """One call of a function whose gradient is that of the identity."""

    def body(self, values: Sequence[Any]) -> Any:
        return super().body(values), _return_cotangents

    def gradient(
        self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Callable[..., Any], read: list[Variable]
    ) -> BodyRun:
        expected, got = ([v.shape for v in group] for group in (values, zs))
        if expected != got:
            raise CustomGradientError(
                f"{self.name}: gradients pass through, so f must return what has the shapes of its inputs: "
                f"expected {expected}, got {got} ({line_of(self.f)})."
            )
        return super().gradient(values, zs, grad_func, read)


def _return_cotangents(*dys: Tensor, variables: list[Any] | None = None) -> Any:
    return dys if variables is None else (dys, [None] * len(variables))


class PassedThrough(Customized):
    """The function that ``grad_pass_through`` returns."""

    face = "grad_pass_through"
    call = PassedCall


def grad_pass_through(f: Callable[..., Any]) -> Any:
    """Return ``f`` with its value and the gradient of the identity.

    >>> import pullback as pb
    >>> pb.value_and_grad(pb.grad_pass_through(lambda x: pb.floor(x)))(2.7)
    ValueAndGrad(value=2.0, grad=1.0)
    """
    return PassedThrough(f)


class StraightThrough(PassedThrough):
    """The function that ``straight_through`` returns."""

    face = "straight_through"


def straight_through(f: Callable[..., Any]) -> Any:
    """Return ``f`` with the derivative of the identity: the straight-through estimator.

    The same as ``grad_pass_through``, TensorFlow's name for it.  Results have the shapes of the inputs.

    >>> import numpy as np, pullback as pb
    >>> pb.value_and_grad(lambda x: pb.straight_through(np.round)(x) * 3)(1.7)
    ValueAndGrad(value=6.0, grad=3.0)
    """
    return StraightThrough(f)


# ---- the value as it is, and the cotangent changed


class Modified(CustomOp):
    """The identity, with the backward rule ``change(dys, settings)``.

    The settings are inputs, too, with no gradient: so they may be traced, or one for each example of ``vmap``.
    """

    def __init__(self, name: str, change: Callable[..., Sequence[Any]], count: int, linear: bool) -> None:
        super().__init__(name)
        self.change, self.count, self.states_jvp = change, count, not linear

    def run(self, values: Sequence[Any]) -> BodyRun:
        settings = values[self.count :]

        def back(dys: list[Any]) -> list[Any]:
            ds = [unwrap_constant(d) for d in self.change(dys, settings)]
            same = [d if d.dtype == dy.dtype else d.astype(dy.dtype) for d, dy in zip(ds, dys, strict=True)]
            return [*same, *(None for _ in settings)]

        return BodyRun(tuple(values[: self.count]), back)

    def jvp(
        self, z: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        if not self.states_jvp:
            return super().jvp(z, primals, tangents, params)
        return tangents[: self.count]  # a rule that has no transpose: tangents are not changed

    def make_lost_error(self, ds: Sequence[Any], level: int) -> Exception:
        return make_capture_error(self.name, "the change of the gradient", [self.change], level - 1, {}, ())


def _modify(
    name: str, x: object, change: Callable[..., Any], settings: Sequence[Any] = (), linear: bool = False
) -> Any:
    """Return ``x``, an array or a tree of them, with the cotangents of its floats changed."""
    x = tree.map_leaves(join_array, x)
    leaves = tree.leaves(x)
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, ARRAYS) and leaf.dtype.kind in "fc"]
    for i in at:
        for setting in settings:
            if not is_broadcastable(setting.shape, leaves[i].shape):
                raise ShapeError(
                    f"{name}: an array of shape {setting.shape} does not broadcast to the shape {leaves[i].shape} of x."
                )
    zs = Modified(name, change, len(at), linear).apply([*(leaves[i] for i in at), *settings])
    for i, z in zip(at, zs, strict=False):
        if level_of(z):
            leaves[i] = z
    return tree.replace_leaves(x, leaves)


def _check_setting(face: str, name: str, value: object) -> Any:
    """Return a number, or an array of them, by which gradients are changed."""
    if isinstance(value, int | float) and not isinstance(value, bool | Tensor):
        return np.float64(value)
    value = join_array(value)
    if not isinstance(value, ARRAYS) or value.dtype.kind not in "fiu":
        got = f"dtype {value.dtype}" if isinstance(value, ARRAYS) else type(value).__name__
        raise ArgumentError(f"{face}: {name} must be a number or an array of them, got {got}.")
    return unwrap_constant(value)


def _is_comparable(x: Any, y: Any) -> bool:
    """Return whether two settings can be compared here and now."""
    return not level_of(x) and not level_of(y)


def scale_gradient(x: object, factor: object) -> Any:
    """Return ``x``, whose cotangent is multiplied by ``factor``.

    ``x`` may be a tree.  ``factor`` is a number, or an array that broadcasts to the shape of ``x``.  In forward mode
    tangents are multiplied too: the transpose of the backward rule.

    >>> import pullback as pb
    >>> pb.value_and_grad(lambda x: pb.scale_gradient(x, 0.1) ** 2)(3.0)
    ValueAndGrad(value=9.0, grad=0.6000000000000001)
    """
    return _scale("scale_gradient", x, _check_setting("scale_gradient", "factor", factor))


def reverse_gradient(x: Value, factor: float = 1.0) -> Any:
    """Return ``x``, whose cotangent is multiplied by ``-factor``: for training against an adversary.

    x: a tensor, an array or a number.
    factor: what the gradient is multiplied by, besides -1.

    >>> import pullback as pb
    >>> pb.value_and_grad(lambda x: pb.reverse_gradient(x) ** 2)(3.0)
    ValueAndGrad(value=9.0, grad=-6.0)
    """
    return _scale("reverse_gradient", x, -_check_setting("reverse_gradient", "factor", factor))


def _scale(name: str, x: object, factor: Value) -> Any:
    return _modify(name, x, lambda dys, settings: [dy * settings[0] for dy in dys], [factor], linear=True)


def clip_gradient(x: Value, low: ArrayOrNumber | None, high: ArrayOrNumber | None) -> Any:
    """Return ``x``, whose cotangent is clipped to lie between ``low`` and ``high``.

    ``None`` is no limit on that side.  ``x`` may be a tree.  There is no transpose of this, so tangents of forward mode
    pass as they are.

    >>> import numpy as np, pullback as pb
    >>> pb.grad(lambda x: pb.sum(pb.clip_gradient(x, -1.0, 1.0) ** 2))(np.array([0.1, 5.0, -5.0]))
    array([ 0.2,  1. , -1. ])
    """
    low, high = (
        np.float64(none) if bound is None else _check_setting("clip_gradient", name, bound)
        for name, bound, none in (("low", low, -inf), ("high", high, inf))
    )
    if _is_comparable(low, high) and not np.all(low <= high):
        raise ArgumentError(f"clip_gradient: low must not be above high, got low={low} and high={high}.")
    x = tree.map_leaves(join_array, x)
    if any(isinstance(leaf, ARRAYS) and leaf.dtype.kind == "c" for leaf in tree.leaves(x)):
        raise ArgumentError("clip_gradient: complex numbers have no order; use clip_gradient_norm.")
    return _modify("clip_gradient", x, lambda dys, settings: [np.clip(dy, *settings) for dy in dys], [low, high])


def clip_gradient_norm(x: Any, limit: Any) -> Any:
    """Return ``x``, whose cotangent is scaled down to the norm ``limit`` where its norm is larger.

    Of a tree it is the norm of everything together; inside ``vmap`` that of each example by itself.  Tangents of
    forward mode pass as they are.

    >>> import numpy as np, pullback as pb
    >>> pb.grad(lambda x: pb.sum(pb.clip_gradient_norm(x, 1.0) ** 2))(np.array([1.5, 2.0]))
    array([0.6, 0.8])
    """
    limit = _check_setting("clip_gradient_norm", "limit", limit)
    if limit.shape:
        raise ShapeError(f"clip_gradient_norm: limit must be one number, got shape {limit.shape}.")
    if _is_comparable(limit, limit) and not limit >= 0:
        raise ArgumentError(f"clip_gradient_norm: limit must be 0 or more, got {limit}.")
    return _modify("clip_gradient_norm", x, _clip_norm, [limit])


def _clip_norm(dys: Sequence[Any], settings: Sequence[Any]) -> list[Any]:
    """Return cotangents scaled to a norm, computed relative to the largest element so that no square overflows.

    The second ``where`` keeps the infinite derivative of a root at 0 out of elements that are not scaled.
    """
    (limit,) = settings
    largest: Any = 0.0
    for dy in dys:
        if dy.size:
            largest = np.maximum(largest, np.max(np.abs(stop_gradient(dy))))
    unit = np.where((largest > 0) & (largest < inf), largest, 1.0)
    parts = [dy / unit for dy in dys]
    square = add_terms([np.sum(np.real(part * np.conjugate(part))) for part in parts])
    above = np.sqrt(stop_gradient(square)) > limit / unit
    share = limit / np.sqrt(np.where(above, square, 1.0))
    return [np.where(above, part * share, dy) for part, dy in zip(parts, dys, strict=True)]


def tap_gradient(x: object, callback: Callable[[Any], Any]) -> Any:
    """Return ``x``; in every backward pass ``callback`` is called with its cotangent.

    It gets a tensor with plain values, or a tree of them if ``x`` is one; what it returns is not used.  Inside ``vmap``
    it is called for each example, and in a compiled function on every run.  For second derivatives it is called once
    more; in forward mode it is not called.

    >>> import pullback as pb
    >>> seen = []
    >>> pb.grad(lambda x: pb.tap_gradient(x * 2, seen.append) ** 2)(3.0)
    24.0
    >>> seen
    [Tensor(12., dtype=float64)]
    """
    check_function("tap_gradient: callback", callback)
    x = tree.map_leaves(join_array, x)
    form = tree.map_leaves(lambda leaf: leaf.dtype.kind if isinstance(leaf, ARRAYS) else "", x)

    def show(*plain: Array) -> None:
        source = iter(plain)
        callback(tree.map_leaves(lambda kind: constant(next(source)) if kind and kind in "fc" else None, form))

    def change(dys: Sequence[Any], settings: Sequence[Any]) -> Sequence[Any]:
        if dys:
            call_with_values(show, *dys)
        return dys

    return _modify("tap_gradient", x, change)
