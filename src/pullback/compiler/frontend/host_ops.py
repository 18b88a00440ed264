"""Host ops that are made while tracing: NumPy functions, and checks of positions and of Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.op import REGISTRY
from pullback.errors import IndexRangeError, IntegerRangeError

if TYPE_CHECKING:
    from pullback.compiler.frontend.trace import Trace


class HostOp:
    """The base of host ops, which are equal if they are of one class and have equal keys."""

    variadic = False

    def __init__(self, name: str, key: Any) -> None:
        self.name, self.key = name, key

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostOp) and type(other) is type(self) and other.key == self.key


class HostFunction(HostOp):
    """A function of plain arrays that carries no gradient, as an op."""

    elementwise = makes_views = False

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__(getattr(f, "__name__", "function"), f)
        self.f = f

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        return self.f(*values)


class OnHost(HostOp):
    """An op with machine code that NumPy runs nevertheless, because it may have to raise an error."""

    def __init__(self, op: Any) -> None:
        super().__init__(op.name, op)
        self.op = op

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        return self.op.perform(values, params)


class RerunCheck:
    """A check after which NumPy runs the program again, to raise the right error or return the right results."""

    variadic = False
    may_pass = True

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        return values[0]


class RangeCheck:
    """A check whether a result of Python integers has more than 64 bits; then it raises IntegerRangeError."""

    variadic = False

    def __init__(self, name: str) -> None:
        self.name = name  # of the op

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        if values[0]:
            raise IntegerRangeError(
                f"{self.name}: a result of Python integers has more than 64 bits, which a compiled function computes "
                "with. Give it a float, or name the argument in static_argnums, so that Python computes the result."
            )
        return values[0]


class DivisorCheck:
    """A check whether a Python integer is divided by zero; then it raises the error that Python raises."""

    variadic = False

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        if values[0]:
            raise ZeroDivisionError("integer division or modulo by zero")
        return values[0]


class PositionCheck(HostOp):
    """An op that checks positions along an axis and returns them as non-negative ones."""

    def __init__(self, name: str, length: int) -> None:
        super().__init__(f"positions of {name}", length)
        self.length = length

    @property
    def is_checked_by_code(self) -> bool:
        return self.length > 0

    def resolve(self, t: Trace, at: Any) -> tuple[Any, Any]:
        """Return symbols of non-negative positions, with 0 for those out of range, and of a mask of the latter."""
        params = {"length": self.length}
        return t.perform(REGISTRY["resolve_position"], [at], params), t.perform(
            REGISTRY["is_position_wrong"], [at], params
        )

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        at = np.asarray(values[0], np.int64)
        if at.size and at.view(np.uint64).max() < self.length:  # negative numbers become large ones
            return at
        if at.size and not -self.length <= at.min() <= at.max() < self.length:
            wrong = next(i for i in at.ravel().tolist() if not -self.length <= i < self.length)
            raise IndexRangeError(f"{self.name}: {wrong} is out of range for an axis of length {self.length}.")
        return np.where(at < 0, at + self.length, at)


class CoordinateCheck(HostOp):
    """An op that checks positions in several axes and returns them as flat ones."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__(f"positions of {name}", shape)
        self.shape = shape

    @property
    def is_checked_by_code(self) -> bool:
        return min(self.shape) > 0

    def resolve(self, t: Trace, at: Any) -> tuple[Any, Any]:
        """Return symbols of flat positions, and of a mask of those out of range, whose flat positions are arbitrary."""
        each = [PositionCheck(self.name, n).resolve(t, at[..., k]) for k, n in enumerate(self.shape)]
        (flat, wrong), *others = each
        for n, (along, outside) in zip(self.shape[1:], others, strict=True):
            flat, wrong = flat * n + along, wrong | outside
        return flat, wrong

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        each = [
            PositionCheck(self.name.removeprefix("positions of "), n).perform([values[0][..., k]], {})
            for k, n in enumerate(self.shape)
        ]
        return np.ravel_multi_index(each, self.shape) if len(each) > 1 else each[0]


@lru_cache
def make_integer_cast(dtype: Any) -> HostFunction:
    """Return an op that casts a Python integer to a dtype, and raises IntegerRangeError if it does not fit.

    >>> make_integer_cast(np.dtype(np.uint8)).perform([np.int64(-3)], {})
    Traceback (most recent call last):
    ...
    pullback.errors.IntegerRangeError: a compiled function: Python integer -3 out of bounds for uint8. ...
    """

    def cast(x: Any) -> Any:
        try:
            return np.asarray(int(x), dtype)[()]
        except OverflowError as error:
            raise IntegerRangeError.of("a compiled function", error) from None

    return HostFunction(cast)
