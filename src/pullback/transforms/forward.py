"""Forward mode: ``jvp`` runs the function on dual numbers, through the ops' own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.convert import bare, float_of
from pullback.core.interpreter import new_level
from pullback.core.tensor import Wrapped
from pullback.errors import ArgumentError, ShapeError
from pullback.transforms.grad import as_leaf, given_back, kind_of

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
    """The value of ``f(*primals)`` and its derivative in the direction of ``tangents``.

    >>> jvp(lambda x: x * x, [3.0], [1.0])
    (9.0, 6.0)
    """
    if not callable(f):
        raise ArgumentError(f"jvp(f, primals, tangents): f must be a function, got {type(f).__name__}.")
    number = new_level()
    z = f(*(Dual(number, p, t) for p, t in _directions(primals, tangents)))
    kind = max([kind_of(p) for p in primals], default=0)
    if isinstance(z, Dual) and z.number == number:
        z, t = bare(z.primal), z.tangent
    else:
        z, t = bare(z, "jvp"), None
    t = np.zeros(z.shape, float_of(z.dtype))[()] if t is None else bare(t)
    return given_back(z, kind), given_back(t, kind)


def _directions(primals: Any, tangents: Any) -> list[tuple[Any, Any]]:
    """Each input with its tangent, which must be alike."""
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, list | tuple):
            raise ArgumentError(
                f"jvp: {name} must be a list with one entry per input of f, got {type(given).__name__}."
            )
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp: {len(primals)} primals but {len(tangents)} tangents; each input needs its own.")
    made = []
    for i, (p, t) in enumerate(zip(primals, tangents, strict=True)):
        p, t = bare(as_leaf(p, "jvp")), bare(as_leaf(t, "jvp"))
        if p.shape != t.shape:
            raise ShapeError(f"jvp: input {i + 1} has shape {p.shape}, but its tangent has shape {t.shape}.")
        wanted = float_of(p.dtype)
        made.append((p, t if t.dtype == wanted else np.astype(t, wanted)))
    return made
