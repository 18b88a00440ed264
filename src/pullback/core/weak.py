"""Tensors that are floats because of Python's numbers alone, and do not widen what they meet: ``(x > 0) * 0.5``."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.tensor import PLAIN, Tensor, Wrapped


class Weak(Wrapped):
    """A float64 tensor that takes the dtype of the floats it is computed with, as a Python number does.

    >>> import pullback as pb
    >>> x = pb.tensor([1.0, -2.0])
    >>> signs = pb.where(x > 0, 1.0, -1.0)
    >>> (signs * x).dtype, (signs * np.array([1.0, -2.0])).dtype
    (dtype('float32'), dtype('float64'))
    """

    __slots__ = ()

    refers = True
    held: Any = vars(Tensor)["value"]

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.held.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.held.dtype
        return dtype

    @property
    def level(self) -> int:
        level: int = self.held.level
        return level

    def read(self) -> Tensor:
        held: Tensor = self.held.read()
        return held

    def among(self, dtypes: list[Any]) -> Any:
        """The tensor to compute with, beside values of these dtypes."""
        held: Any = self.read()
        floats = [np.finfo(d).dtype for d in dtypes if d.kind in "fc"]
        wanted = np.result_type(*floats) if floats else held.dtype
        return held if held.dtype == wanted else np.astype(held, wanted)

    def __setitem__(self, index: Any, value: Any) -> None:
        held: Any = self.read()
        held[index] = value
        self.held = held

    def __repr__(self) -> str:
        return repr(self.held)


PLAIN.add(Weak)


def weaken(z: Any) -> Any:
    """A result that was computed from nothing but Python's floats, integers and weak tensors, as a weak tensor.

    One that is differentiated, because the integers are, is left as it is: transforms tell their own tensors by type.
    """
    weak = isinstance(z, Tensor) and not z.refers and not z.has_derivative and z.dtype.kind == "f"
    return Weak(z) if weak else z


def is_weak(op: Any, args: Any) -> bool:
    """Whether the result is float because of Python's floats alone: beside them are only integers and bools.

    Of ``where`` the condition does not count.
    """
    if not op.elementwise:
        return False
    kinds = [_kind(a) for a in args]
    mixed = [kind for kind, mixes in zip(kinds, op.mixing, strict=False) if mixes]
    return float in mixed and not {*mixed} - WHOLE - NUMBERS and not {*kinds} <= NUMBERS


NUMBERS, WHOLE = {float, int, bool}, {"i", "u", "b"}


def _kind(a: Any) -> Any:
    """The type of a Python number, which a symbol of ``compile`` may stand for; of anything else the kind of dtype."""
    if type(a) in NUMBERS:
        return type(a)
    return getattr(a, "weak", None) or getattr(getattr(a, "dtype", None), "kind", None)
