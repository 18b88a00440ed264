"""Forward mode: ``jvp`` runs the function on dual numbers, through the ops' own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.convert import bare, float_of
from pullback.core.interpreter import new_level
from pullback.core.tensor import Wrapped

__all__ = ["jvp"]


class Dual(Wrapped):
    """A value and its tangent; ``None`` is a tangent of zero."""

    __slots__ = ("number", "primal", "tangent")

    primal: Any
    tangent: Any

    def __init__(self, number: int, primal: Any, tangent: Any) -> None:
        self.number, self.primal, self.tangent = number, primal, tangent

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
        return self.number

    def beneath(self) -> Any:
        return self.primal

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        mine = [isinstance(a, Dual) and a.number == self.number for a in args]
        primals = [a.primal if on else a for a, on in zip(args, mine, strict=True)]
        tangents = [a.tangent if on else None for a, on in zip(args, mine, strict=True)]
        z = op.call(primals, params)
        t = op.jvp(z, primals, tangents, params) if any(t is not None for t in tangents) else None
        if type(z) is tuple:  # an op with several results
            return tuple(self._made(*zt) for zt in zip(z, t or [None] * len(z), strict=True))
        return self._made(z, t)

    def _made(self, z: Any, t: Any) -> Dual:
        if t is not None and np.shape(t) != np.shape(z):
            t = np.broadcast_to(t, np.shape(z))
        return Dual(self.number, bare(z), None if t is None else bare(t))


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of ``f`` and its derivative in the direction of ``tangents``.

    >>> jvp(lambda x: x * x, [np.float64(3.0)], [np.float64(1.0)])
    (np.float64(9.0), np.float64(6.0))
    """
    number = new_level()
    z = f(*(Dual(number, bare(p), bare(t)) for p, t in zip(primals, tangents, strict=True)))
    if not (isinstance(z, Dual) and z.number == number):
        z = bare(z)
        return z, np.zeros(z.shape, float_of(z.dtype))[()]
    t = np.zeros(z.shape, z.dtype)[()] if z.tangent is None else z.tangent
    return bare(z.primal), bare(t)
