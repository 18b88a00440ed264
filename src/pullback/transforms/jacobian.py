"""All derivatives at once: ``jacobian``, ``hessian``, and ``hvp``, a hessian times a vector without the hessian."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any

import numpy as np

from pullback.core.convert import float_of
from pullback.core.interpreter import new_level
from pullback.core.tape import Tape
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, GradientError, ShapeError
from pullback.transforms.directions import unit_pulls
from pullback.transforms.grad import directionless, given_back, grad
from pullback.transforms.leaves import settled
from pullback.transforms.linear import Linear, Record

__all__ = ["hessian", "hvp", "jacobian"]

MODES = ("auto", "forward", "reverse")


@contextmanager
def opened() -> Iterator[Tape]:
    """A tape for this block only."""
    tape = Tape.open()
    try:
        yield tape
    finally:
        tape.close()


class Jacobian:
    """What ``jacobian`` makes: keeps the name and docstring of ``f``, and pickles when ``f`` does."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]
    face = "jacobian"

    def __init__(self, f: Callable[..., Any], mode: str = "auto") -> None:
        if not callable(f):
            raise ArgumentError(f"{self.face}(f): f must be a function, got {type(f).__name__}.")
        if mode not in MODES:
            raise ArgumentError(f"{self.face}: mode must be 'auto', 'forward' or 'reverse', got {mode!r}.")
        self.mode = mode
        self.__name__ = self.__qualname__ = type(f).__name__
        update_wrapper(self, f)

    def __reduce__(self) -> Any:
        return type(self), (self.__wrapped__, self.mode)

    def __repr__(self) -> str:
        return f"<{self.face} of {self.__name__}>"

    def __call__(self, x: Any, *more: Any) -> Any:
        if more:
            raise ArgumentError(
                f"{self.face}(f)(x): f is differentiated by one argument, which may be a tree, got {1 + len(more)}. "
                f"Write {self.face}(lambda xs: f(*xs))((x, y)), or bind those that are not differentiated by."
            )
        number = new_level()  # lower than the tapes', whose steps see many cotangents as one
        with opened() as tape:
            made = Linear(self.face, self.__wrapped__, (x,), tape)
            check_real(self.face, made)
            blocks = self._blocks(made, number)
        inputs = made.inputs
        rows = [[given_back(d, inputs.kind) for d in row] for row in blocks]
        return made.outputs.placed([inputs.filled(row)[0] for row in rows])

    def _blocks(self, made: Linear, number: int) -> list[list[Any]]:
        """For each result a list with the block of each input."""
        record, xs, ys = made.record, made.inputs.values, made.record.values
        forward = self.mode == "forward" or (self.mode == "auto" and _total(xs) < _total(ys))
        if not forward:
            pulled = [of_result(record, k, number) for k in range(len(ys))]
            return [[_block(pulled[i][j], y, x, False) for j, x in enumerate(xs)] for i, y in enumerate(ys)]
        with opened() as tape:
            transposed = record.transposed(tape)
            pushed = [of_result(transposed, k, number) for k in range(len(xs))]
        return [[_block(pushed[j][i], y, x, True) for j, x in enumerate(xs)] for i, y in enumerate(ys)]


def _total(values: Sequence[Any]) -> int:
    return sum(int(v.size) for v in values)


def _block(d: Any, y: Any, x: Any, pushed: bool) -> Any:
    """The derivatives of one result by one input, which came in one direction after the other."""
    shape = y.shape + x.shape
    dtype = float_of(x.dtype)
    if d is None:
        return np.zeros(shape, dtype)[()]
    if pushed and x.shape:
        d = np.moveaxis(d, 0, -1)
    if d.shape != shape:
        d = np.reshape(d, shape)
    return d if d.dtype == dtype and not isinstance(d, np.ndarray) else settled(d, x)


def check_real(face: str, made: Linear) -> None:
    """Complex numbers have no jacobian: they are not larger or smaller than others, nor one direction."""
    for y in made.record.values:
        if y.dtype.kind == "c":
            raise GradientError(directionless(f"{face}(f): f returned", y.dtype, "in vjp"))
    for x in made.inputs.values:
        if x.dtype.kind == "c":
            raise GradientError(
                f"{face}(f): an input has complex numbers ({x.dtype}). Differentiate by their real and imaginary "
                "parts, or use vjp."
            )


def of_result(record: Record, k: int, number: int) -> Sequence[Any]:
    """Every unit vector of the result ``k`` pulled back to each input; None where nothing comes back."""
    value, count = record.values[k], len(record.leaves)
    if record.results[k] is None:
        return [None] * count
    return unit_pulls(record.only(k), value.shape, float_of(value.dtype), record.widest, number, count)


def jacobian(f: Callable[..., Any], mode: str = "auto") -> Jacobian:
    """``f(x)`` to ``J(x)``: the derivative of every element of the result by every element of ``x``.

    Its shape is that of the result followed by that of ``x``; where they are trees, it is a tree like the result of
    trees like ``x``.  ``mode`` is ``"forward"`` (a pass for each element of ``x``), ``"reverse"`` (one for each element
    of the result) or ``"auto"``, which is whichever are fewer.  All passes are made at once.

    >>> import numpy as np, pullback as pb
    >>> pb.jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> pb.jacobian(lambda p: p["a"] * p["b"])({"a": 2.0, "b": np.array([3.0, 4.0])})["a"]
    array([3., 4.])
    """
    return Jacobian(f, mode)


class Hessian(Jacobian):
    """What ``hessian`` makes."""

    face = "hessian"

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__(f)
        self.gradient = Jacobian(f, "reverse")
        self.gradient.face = self.face
        self.of_gradient = Jacobian(self.gradient, "reverse")
        self.of_gradient.face = self.face

    def __reduce__(self) -> Any:
        return type(self), (self.__wrapped__,)

    def __call__(self, x: Any, *more: Any) -> Any:
        return self.of_gradient(x, *more)


def hessian(f: Callable[..., Any]) -> Hessian:
    """``f(x)`` to ``H(x)``: its second derivatives, by every pair of elements of ``x``.

    Of a result of rank 0 the shape is that of ``x``, twice; a tree ``x`` gives a tree of trees.

    >>> import numpy as np, pullback as pb
    >>> pb.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    return Hessian(f)


def hvp(f: Callable[..., Any], x: Any, v: Any) -> Any:
    """The hessian of ``f`` at ``x`` times ``v``, which is built like ``x``, at the cost of a few gradients.

    >>> import numpy as np, pullback as pb
    >>> pb.hvp(lambda x: pb.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([  6., 120.])
    """
    if not callable(f):
        raise ArgumentError(f"hvp(f, x, v): f must be a function, got {type(f).__name__}.")

    def scalar(x: Any) -> Any:
        y = f(x)
        if isinstance(y, Tensor) and y.shape:
            raise ShapeError(f"hvp: f must return one number, got a tensor of shape {y.shape}. Sum it, or use vjp.")
        return y

    with opened() as tape, opened() as second:
        gradient = grad(scalar, unconnected="zero")
        gradient.face = "hvp"
        made = Linear("hvp", gradient, (x,), tape)
        inputs = made.inputs
        tangents = inputs.directions((v,), "vector")
        moved = made.record.transposed(second).back(tangents)
        found = [settled(d, value, tangents) for d, value in zip(moved, inputs.values, strict=True)]
    return inputs.given_back(found)[0]
