"""Diagonals for repeated labels of ``einsum``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Shape, moves
from pullback.core.calculus import linear
from pullback.core.lowering import view
from pullback.core.op import REGISTRY, op
from pullback.numerics.axis_arguments import LETTERS

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, TensorLike, Value

__all__: list[str] = []


def batch_diagonal(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch by one more label in front; ``shape`` gets one more length."""
    new = next(c for c in LETTERS if c not in params["equation"])
    more = {"shape": (args[0].shape[0], *params["shape"])} if "shape" in params else {}
    return op.call(args, {"equation": new + params["equation"].replace("->", f"->{new}"), **more})


def make_diagonal(x: Array, equation: str, shape: Shape) -> Any:
    z = np.zeros(shape, x.dtype)
    np.einsum(equation, z)[...] = x  # a view of the diagonal
    return z


def put_diagonal(base: Any, value: Any, equation: str) -> Any:
    """Return the base with other elements on its diagonal."""
    places = np.einsum(equation, np.arange(prod(base.shape)).reshape(base.shape))
    flat: Any = np.reshape(base, (-1,))
    written = REGISTRY["set_item"].function(flat, np.reshape(value, (-1,)), places.reshape(-1))
    return np.reshape(written, base.shape)


def diagonal_part_vjp(g: Value, x_shape: Shape, equation: str) -> Any:
    return diagonal_fill(g, equation, x_shape)


@op(
    lambda x, equation: np.einsum(equation, x),
    acts=moves(
        lambda s, equation: tuple(dict(zip(equation, s, strict=False))[c] for c in equation.split("->")[1]),
        [(((3, 3),), {"equation": "ii->i"}), (((2, 3, 2),), {"equation": "iji->ij"})],
        batch_diagonal,
    ),
    d=linear(diagonal_part_vjp),
    lower=view(put=put_diagonal),
)
def diagonal_part(x: TensorLike, /, equation: str) -> Any:
    """Return the elements whose indices agree along the axes that share a label.

    >>> diagonal_part(np.array([[1.0, 2.0], [3.0, 4.0]]), "ii->i")
    array([1., 4.])
    """


@op(
    make_diagonal,
    acts=moves(
        lambda s, equation, shape: shape,
        [(((3,),), {"equation": "ii->i", "shape": (3, 3)}), (((2, 3),), {"equation": "iji->ij", "shape": (2, 3, 2)})],
        batch_diagonal,
    ),
    d=linear(lambda g, equation: diagonal_part(g, equation)),
)
def diagonal_fill(x: TensorLike, /, equation: str, shape: Shape) -> Any:
    """Return zeros of ``shape`` with ``x`` on their diagonal: the adjoint of ``diagonal_part``.

    >>> diagonal_fill(np.array([1.0, 4.0]), "ii->i", (2, 2))
    array([[1., 0.],
           [0., 4.]])
    """
