"""How an array library evaluates each kind of node; a kind or op that is missing here is run by NumPy on the host."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from pullback.compiler.backends.library import Library, locate_elements
from pullback.compiler.backends.ops import evaluate_scalar, find_op
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.kinds import (
    CAST,
    FOLD,
    MAP,
    OPAQUE,
    PART,
    PIECES,
    PRODUCT,
    SCAN,
    SCATTER,
    SPACED,
    TAKE,
    VIEW,
    Kind,
)  # fmt: skip

__all__ = ["find_evaluator"]

Evaluate = Callable[..., Any]


def _cast(lib: Library, n: Node) -> Evaluate:
    return lambda x: lib.astype(x, n.dtype)


def _fold(lib: Library, n: Node) -> Evaluate:
    return lambda x: lib.reduce(n.data.op.name, x, n.data.axes)


def _view(lib: Library, n: Node) -> Evaluate:
    return lambda x: lib.view(x, n.shape, n.data.offset, n.data.strides)


def _pieces(lib: Library, n: Node) -> Evaluate:
    places = [
        tuple(slice(s, s + length) for s, length in zip(start, a.shape, strict=True))
        for a, start in zip(n.args, n.data.starts, strict=True)
    ]

    def run(*xs: Any) -> Any:
        z = lib.full(n.shape, n.data.fill, n.dtype)
        for place, x in zip(places, xs, strict=True):
            z = lib.put(z, place, x)
        return z

    return run


def _take(lib: Library, n: Node) -> Evaluate:
    table = (n.args[0].size // prod(n.data), *n.data)
    return lambda x, rows: lib.take(lib.reshape(x, table), rows)


def _scatter(lib: Library, n: Node) -> Evaluate:
    table = (n.size // prod(n.data), *n.data)
    return lambda x, rows: lib.reshape(lib.add_at(lib.full(table, 0, n.dtype), (rows,), x), n.shape)


def _spaced(lib: Library, n: Node) -> Evaluate:
    places = locate_elements(n.size, n.args[0].shape, n.data.offset, n.data.strides)

    def run(x: Any) -> Any:
        return lib.reshape(lib.put(lib.full((n.size,), 0, n.dtype), (lib.enter(places),), x), n.shape)

    return run


def _product(lib: Library, n: Node) -> Evaluate:
    def run(a: Any, b: Any, *added: Any) -> Any:
        z = lib.matmul(a, b)
        z = z if n.data is None else z * n.data
        return z + added[0] if added else z

    return run


def _part(lib: Library, n: Node) -> Evaluate:
    return lambda parts: parts[n.data]


KINDS: dict[Kind, Callable[[Library, Node], Evaluate | None]] = {
    MAP: evaluate_scalar, CAST: _cast, FOLD: _fold, VIEW: _view, PIECES: _pieces, TAKE: _take, SCATTER: _scatter,
    SPACED: _spaced, SCAN: find_op, PRODUCT: _product, OPAQUE: find_op, PART: _part,
}  # fmt: skip


def find_evaluator(lib: Library, n: Node) -> Evaluate | None:
    """Return a function of the library's arrays that evaluates a node; None if there is none."""
    if not n.size:  # of nothing, which some functions refuse
        return lambda *xs: lib.full(n.shape, 0, n.dtype)
    return KINDS[n.kind](lib, n) if n.kind in KINDS else None
