"""Forward mode: ``jvp`` runs the function on dual numbers, through the ops' own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.convert import bare
from pullback.core.interpreter import new_level
from pullback.core.tensor import PLAIN, Tensor, Wrapped
from pullback.core.writes import INPUT, freeze
from pullback.errors import ArgumentError
from pullback.transforms.grad import as_leaf
from pullback.transforms.leaves import Inputs, Outputs, apart, settled

__all__ = ["jvp"]


class Dual(Wrapped):
    """A value and its tangent; ``None`` is a tangent of zero."""

    __slots__ = ()

    primal: Any = vars(Tensor)["value"]  # in the slots of any tensor: so a GradientTape can make it a handle of its own
    tangent: Any = vars(Tensor)["via"]
    number: Any = vars(Tensor)["y"]

    def __init__(self, number: int, primal: Any, tangent: Any) -> None:
        self.number, self.primal, self.tangent = number, primal, tangent

    def twin(self) -> Dual:
        return Dual(self.number, self.primal, self.tangent)

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.primal.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.primal.dtype
        return dtype

    @property
    def level(self) -> int:
        level: int = self.number
        return level

    def beneath(self) -> Any:
        return self.primal

    def stopped(self) -> Any:
        return self.primal

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        mine = [isinstance(a, Dual) and a.number == self.number for a in args]
        primals = [a.primal if on else a for a, on in zip(args, mine, strict=True)]
        tangents = [a.tangent if on else None for a, on in zip(args, mine, strict=True)]
        z = op.call(primals, params)
        t = op.jvp(z, primals, tangents, params) if any(t is not None for t in tangents) else None
        if op.custom and t is not None:
            op.check_tangents(t, self.number)
        if type(z) is tuple:  # an op with several results
            return tuple(self._made(*zt) for zt in zip(z, t or [None] * len(z), strict=True))
        return self._made(z, t)

    def _made(self, z: Any, t: Any) -> Dual:
        if t is not None and np.shape(t) != np.shape(z):
            t = np.broadcast_to(t, np.shape(z))
        return Dual(self.number, bare(z), None if t is None else bare(t))


PLAIN.add(Dual)


def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of ``f(*args)`` and its derivative in the direction of ``tangents``.

    Both are lists or tuples with one entry for each argument of ``f``, which may be trees; so may its result.

    >>> jvp(lambda x: x * x, [3.0], [1.0])
    (9.0, 6.0)
    >>> jvp(lambda p: (p["a"] * p["b"], p["a"]), [{"a": 2.0, "b": 5.0}], [{"a": 1.0, "b": 0.0}])
    ((10.0, 2.0), (5.0, 1.0))
    """
    if not callable(f):
        raise ArgumentError(f"jvp(f, args, tangents): f must be a function, got {type(f).__name__}.")
    for name, given in (("args", args), ("tangents", tangents)):
        if not isinstance(given, list | tuple):
            raise ArgumentError(
                f"jvp: {name} must be a list with one entry per input of f, got {type(given).__name__}."
            )
    if len(args) != len(tangents):
        raise ArgumentError(f"jvp: {len(args)} args but {len(tangents)} tangents; each input needs its own.")
    inputs = Inputs("jvp", args, [f"input {i + 1}" for i in range(len(args))])
    directions = inputs.directions(tangents, "tangent")
    number = new_level()
    duals = [freeze(Dual(number, x, t), INPUT) for x, t in zip(inputs.values, directions, strict=True)]
    out = Outputs("jvp", f(*inputs.filled(duals)), inputs.kind)
    pairs = [parted(z, number) for z in out.given]
    values = [apart(z, inputs.values) for z, _ in pairs]
    return out.given_back(values), out.given_back([settled(t, z, directions) for z, t in pairs])


def parted(z: Any, number: int) -> tuple[Any, Any]:
    """The value of a result and its tangent, None if it does not depend on what was moved."""
    z = z.read() if isinstance(z, Tensor) else z
    if isinstance(z, Dual) and z.number == number:
        return bare(z.primal), z.tangent
    return bare(as_leaf(z, "jvp")), None
