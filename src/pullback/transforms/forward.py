"""Forward mode: ``jvp`` runs the function on dual numbers, through the ops' own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import hooks
from pullback.core.callers import MEANS, reveal
from pullback.core.convert import float_of, unwrap_constant
from pullback.core.interpreter import new_level
from pullback.core.tensor import PLAIN, Tensor, Wrapped
from pullback.core.writes import INPUT, freeze
from pullback.errors import ArgumentError
from pullback.transforms.argnums import BoundCall, call_by_all
from pullback.transforms.enclosing import DualLevel, scopes
from pullback.transforms.grad import as_leaf, copy_if_shared, detach_aux, kind_of_passed, split_aux
from pullback.transforms.leaves import Inputs, Outputs, finish_derivative

if TYPE_CHECKING:
    from pullback.typing import Value


class Dual(Wrapped):
    """A value and its tangent; ``None`` is a tangent of zero."""

    __slots__ = ()

    primal: Any = vars(Tensor)["value"]  # the slot of any tensor, so that a GradientTape can make it a handle
    tangent: Any = vars(Tensor)["via"]
    number: int = vars(Tensor)["y"]

    def __init__(self, number: int, primal: Value, tangent: Value | None) -> None:
        self.number, self.primal, self.tangent = number, primal, tangent

    def twin(self) -> Dual:
        copy = Dual(self.number, self.primal, self.tangent)
        if scopes():
            self._note(copy, (self,))
        return copy

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.primal.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        if not self.primal.shape and id(_getframe(1).f_code) in MEANS:
            raise AttributeError("dtype")
        dtype: np.dtype[Any] = self.primal.dtype
        return dtype

    @property
    def level(self) -> int:
        return self.number

    @property
    def has_derivative(self) -> bool:
        return self.tangent is not None

    has_tangent = True

    def beneath(self) -> Any:
        return self.primal

    def stop_following(self) -> Any:
        return self.primal

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        z, t = self._push(op, args, params)
        if type(z) is tuple:
            return self._make_several(z, t, args)
        dual = self._make(z, t)
        if scopes():
            self._note(dual, args)
        if hooks.blocks and t is not None and not op.custom and (observer := hooks.find("fix_tangent")) is not None:
            dual.tangent = observer.fix_tangent(dual, op, args, params)
        return dual

    def _push(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, Any]:
        """Return the result of an op and its tangent, None for zero; of an op with several results a tuple of each."""
        primals, tangents = self.split_operands(args)
        if op.custom and op.is_structured:
            z, t = op.push(primals, tangents)
            return tuple(z), tuple(t)
        if op.custom:
            pushed: tuple[Any, Any] = op.push_duals(self.number, args, primals, tangents, params)
            return pushed
        z = op.call(primals, params)
        return z, op.jvp(z, primals, tangents, params) if any(t is not None for t in tangents) else None

    def split_operands(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the operands of an op one level down, and their tangents, None for zero."""
        is_dual = [isinstance(a, Dual) and a.number == self.number for a in args]
        primals = [a.primal if on else a for a, on in zip(args, is_dual, strict=True)]
        return primals, [a.tangent if on else None for a, on in zip(args, is_dual, strict=True)]

    def _make_several(self, zs: tuple[Any, ...], ts: tuple[Any, ...] | None, args: tuple[Any, ...]) -> tuple[Dual, ...]:
        """Return the dual numbers of an op with several results."""
        several = tuple(self._make(*zt) for zt in zip(zs, ts or [None] * len(zs), strict=True))
        for dual in several if scopes() else ():
            self._note(dual, args)
        return several

    @staticmethod
    def _note(dual: Dual, args: tuple[Any, ...]) -> None:
        """Tell the functions with custom gradients that are running which inputs this was computed from."""
        for scope in scopes():
            scope.note_dual(dual, [a for a in args if isinstance(a, Tensor)])

    def _make(self, z: Value, t: Value | None) -> Dual:
        if t is not None and np.shape(t) != np.shape(z):
            t = np.broadcast_to(t, np.shape(z))
        return Dual(self.number, unwrap_constant(z), None if t is None else unwrap_constant(t))


PLAIN.add(Dual)


def jvp(
    f: Callable[..., Any],
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    argnums: Any = None,
    argnames: Any = None,
    has_aux: bool = False,
    **kwargs: object,
) -> tuple[Any, ...]:
    """Return the value of ``f(*args, **kwargs)`` and its derivative in the direction of ``tangents``.

    ``args`` and ``tangents`` are lists or tuples with one entry for each argument of ``f``, which may be trees; so may
    its result.
    ``argnums`` and ``argnames`` choose the arguments that move: ``tangents`` has one entry for each of those.
    ``has_aux=True``: ``f`` returns ``(y, aux)`` and the result is ``(y, tangent, aux)``.

    >>> import pullback as pb
    >>> pb.jvp(lambda x: x * x, [3.0], [1.0])
    (9.0, 6.0)
    >>> pb.jvp(lambda p: (p["a"] * p["b"], p["a"]), [{"a": 2.0, "b": 5.0}], [{"a": 1.0, "b": 0.0}])
    ((10.0, 2.0), (5.0, 1.0))
    >>> pb.jvp(lambda x, n: x**n, [2.0, 3], [1.0], argnums=0)
    (8.0, 12.0)
    """
    for name, values in (("args", args), ("tangents", tangents)):
        if not isinstance(values, list | tuple):
            raise ArgumentError(
                f"jvp: {name} must be a list with one entry per input of f, got {type(values).__name__}. "
                "For one input it is jvp(f, [x], [v])."
            )
    call, _ = call_by_all("jvp(f, args, tangents)", f, args, kwargs, argnums, argnames)
    call.has_aux = has_aux
    if len(call.xs) != len(tangents):
        raise ArgumentError(
            f"jvp: {len(call.xs)} args but {len(tangents)} tangents; each argument to differentiate by needs one. "
            "argnums says which arguments these are."
        )
    y, moved, aux = push_once(call.xs, tangents, call)
    return (y, moved, aux) if has_aux else (y, moved)


def push_once(xs: Sequence[Any], tangents: Sequence[Any], call: BoundCall) -> tuple[Any, Any, Any]:
    """Return the value of a call, its tangent, and aux."""
    if hooks.blocks and (observer := hooks.find("run_call")) is not None:
        observed: tuple[Any, Any, Any] = observer.run_call("jvp", push_once, xs, tangents, call)
        return observed
    inputs = Inputs("jvp", xs, call)
    directions = inputs.directions(tangents, "tangent")
    number = new_level()
    duals = [freeze(Dual(number, x, t), INPUT) for x, t in zip(inputs.values, directions, strict=True)]
    kind = max(inputs.kind, kind_of_passed(call))
    try:
        y, aux = call(*inputs.fill(duals)), None
    except Exception as error:
        reveal(error)
        raise
    if call.has_aux:
        y, aux = split_aux("jvp", y)
        aux = detach_aux(aux, DualLevel(number), inputs.values, kind)
    out = Outputs("jvp", y, kind)
    pairs = [split_dual(z, number) for z in out.given]
    values = [copy_if_shared(z, inputs.values) for z, _ in pairs]
    moved = [finish_derivative(t, z.shape, float_of(z.dtype), directions) for z, t in pairs]
    return out.convert_back(values), out.convert_back(moved), aux


def split_dual(z: Value, number: int) -> tuple[Any, Any]:
    """Return the value of a result and its tangent, None if it does not depend on the inputs with tangents."""
    z = z.read() if isinstance(z, Tensor) else z
    if isinstance(z, Dual) and z.number == number:
        return unwrap_constant(z.primal), z.tangent
    return unwrap_constant(as_leaf(z, "jvp")), None
