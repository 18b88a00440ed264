"""A program as a graph: what is computed from what, with every shape and dtype known.

input       what the program is given; ``data`` is its place among the inputs
constant    an array or a number that the program holds; ``data`` is the array
map         one element from one element of each argument, which broadcast; ``data`` is (op, params)
cast        the same numbers in another dtype
fold        a running value over ``data.axes``, which vanish; ``data`` is a Fold
view        the elements of its argument elsewhere: ``data`` is a View of the argument's elements laid out in order
pieces      its arguments at their places in a larger array, ``data.fill`` elsewhere; later ones lie on earlier ones
take        rows of its first argument, at the positions along its axis 0 that the second one holds
scatter     zeros with the rows of its first argument added at the positions that the second one holds
spaced      zeros in which its argument lies as ``data``, a View of them
scan        a running value along an axis, or where along it an extreme is; ``data`` is (op, params)
product     the matrix product of the last two axes, the others being the same in both, ``data`` times if that is said;
            a third argument is added
windows     something done to every window of an image; ``data`` says what, and writes it
opaque      the op's own kernel; ``data`` is (op, params)
part        one of the results of an opaque op that has several; ``data`` is its place

A node is made by ``Graph.add``, which gives the same node for the same question: common parts are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pullback.core.op import Op
from pullback.errors import CompileError

Shape = tuple[int, ...]
EXACT = frozenset({int, bool, str, type(None), Op})  # equal only if they are the same, given that their types are


class View(NamedTuple):
    """Where the elements of a view are, in an array whose elements lie in order."""

    offset: int
    strides: tuple[int, ...]  # in elements


class Pieces(NamedTuple):
    """Where each argument begins in the result, and what is between them."""

    starts: tuple[tuple[int, ...], ...]
    fill: float


class Fold(NamedTuple):
    """A reduction by the lowering of ``op`` over ``axes``."""

    op: Any
    axes: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Node:
    """One value of the program."""

    kind: str
    args: tuple[Node, ...]
    shape: Shape
    dtype: np.dtype[Any]
    data: Any
    number: int
    line: str = ""

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides that NumPy's array would have in its place, up to what lies between the elements of a view."""
        if self.kind == "view":
            return cast("tuple[int, ...]", self.data.strides)
        if self.kind in ("map", "cast"):  # a ufunc lays out its result as its operands are
            whole = [_like(a) for a in self.args if a.shape == self.shape]
            if whole and self.shape and self.size:
                return np.nditer([*whole, None], op_dtypes=[np.int8] * (len(whole) + 1)).operands[-1].strides
        return contiguous(self.shape)

    @property
    def name(self) -> str:
        """What is done, in a word."""
        if self.kind in ("map", "opaque", "scan"):
            name: str = self.data[0].name
            return name
        return self.data.op.name if self.kind == "fold" else self.kind

    def __repr__(self) -> str:
        return f"%{self.number}"

    def __str__(self) -> str:
        how = {
            "input": lambda: f" {self.data}", "constant": lambda: f" {_shown(self.data)}",
            "fold": lambda: f" over {list(self.data.axes)}", "part": lambda: f" {self.data}",
            "view": lambda: f" from {self.data.offset} by {list(self.data.strides)}",
            "opaque": lambda: " by its NumPy kernel" + _params(self.data[1]), "map": lambda: _params(self.data[1]),
            "scan": lambda: _params(self.data[1]),
        }.get(self.kind, lambda: "")()  # fmt: skip
        given = ", ".join(map(repr, self.args))
        return f"{self!r} = {self.name}({given}){how} : {self.dtype}{list(self.shape)}".replace("()", "", 1)


def _like(node: Node) -> Any:
    """An array without memory of its own that has the shape and the strides of a node."""
    return as_strided(np.zeros(1, np.int8), node.shape, node.strides)


def _shown(value: Any) -> str:
    return f"{value.item()!r}" if value.size == 1 else f"of {value.size} numbers"


def _params(params: dict[str, Any]) -> str:
    return "".join(f" {k}={v!r:.40}" for k, v in params.items())


@dataclass
class Graph:
    """Nodes in an order in which they can be computed."""

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    known: dict[Any, Node] = field(default_factory=dict)

    def add(self, kind: str, args: Sequence[Node], shape: Shape, dtype: Any, data: Any = None, line: str = "") -> Node:
        """The node for this question: the one there is, or a new one."""
        key = None if kind == "input" else (kind, tuple(map(id, args)), shape, dtype, fingerprint(data))
        found = self.known.get(key) if key is not None else None
        if found is not None:
            return found
        node = Node(kind, tuple(args), tuple(shape), np.dtype(dtype), data, len(self.nodes), line)
        self.nodes.append(node)
        if key is not None:
            self.known[key] = node
        return node

    def input(self, shape: Shape, dtype: Any) -> Node:
        node = self.add("input", (), shape, dtype, len(self.inputs))
        self.inputs.append(node)
        return node

    def constant(self, value: Any, dtype: Any = None) -> Node:
        if isinstance(value, np.ndarray) and value.size > 1 and not any(value.strides):  # one number, over and over
            number = self.constant(value[(0,) * value.ndim], dtype)
            return self.add("view", (number,), value.shape, number.dtype, View(0, (0,) * value.ndim))
        value = np.array(value, dtype, order="C")  # a copy: what is captured is captured by value
        value.flags.writeable = False
        return self.add("constant", (), value.shape, value.dtype, value)

    def users(self) -> dict[int, list[Node]]:
        """For the number of each node those that take it, and for outputs too where they go."""
        found: dict[int, list[Node]] = {n.number: [] for n in self.nodes}
        for n in self.nodes:
            for a in n.args:
                found[a.number].append(n)
        return found

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __str__(self) -> str:
        lines = [f"{n}   # {n.line}" if n.line else str(n) for n in self.nodes]
        return "\n".join([*lines, f"return {', '.join(map(repr, self.outputs))}"])

    def verify(self) -> None:
        """Refuse a graph that no program could be: a value used before it is made, a shape that cannot be."""
        seen: set[int] = set()
        for place, n in enumerate(self.nodes):
            if n.number != place or any(id(a) not in seen for a in n.args):
                raise CompileError(f"the graph is not in order at {n}.")
            problem = CHECKS[n.kind](n)
            if problem:
                raise CompileError(f"the graph is wrong at {n}: {problem}")
            seen.add(id(n))
        if any(id(o) not in seen for o in self.outputs):
            raise CompileError("an output of the graph is not in it.")


def fingerprint(data: Any, otherwise: Any = id) -> Any:
    """Something hashable that is equal only for what does the same.

    What has no hash is told by ``otherwise``, its identity; without that it is refused.

    >>> fingerprint([0.0, {1}]) == fingerprint([-0.0, {1}])
    False
    """
    kind = type(data)
    if kind in EXACT:
        return (kind, data)
    if kind is View:
        return data  # of whole numbers
    if isinstance(data, np.ndarray | np.generic):
        return ("array", data.shape, str(data.dtype), data.tobytes())
    if isinstance(data, dict):
        return (kind, *[(k, fingerprint(v, otherwise)) for k, v in data.items()])
    if isinstance(data, tuple | list):
        return (kind, *[fingerprint(x, otherwise) for x in data])
    if isinstance(data, float):
        return ("float", data.hex())  # 0.0 and -0.0 are not the same
    if isinstance(data, slice):
        return ("slice", fingerprint((data.start, data.stop, data.step), otherwise))
    if isinstance(data, set):
        return ("set", frozenset(data))
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None and not getattr(kind, "whole", False):
        return (kind, *[fingerprint(getattr(data, f, None), otherwise) for f in fields])
    try:
        hash(data)
    except TypeError:
        if otherwise is None:
            raise
        return ("this one", otherwise(data))
    return (kind, data)


# ---- what is wrong with a node; nothing, for a good one


def _check_map(n: Node) -> str:
    try:
        shape = np.broadcast_shapes(*(a.shape for a in n.args))
    except ValueError:
        return "its arguments do not broadcast."
    return "" if shape == n.shape else f"its arguments make {shape}."


def _check_fold(n: Node) -> str:
    (x,) = n.args
    left = tuple(length for i, length in enumerate(x.shape) if i not in n.data.axes)
    return "" if left == n.shape else f"folding {x.shape} leaves {left}."


def _check_view(n: Node) -> str:
    reach = [(length - 1) * step for length, step in zip(n.shape, n.data.strides, strict=True)]
    low, high = n.data.offset + sum(min(r, 0) for r in reach), n.data.offset + sum(max(r, 0) for r in reach)
    inside = not n.size or 0 <= low <= high < n.args[0].size
    return "" if inside else f"it reaches from {low} to {high} in {n.args[0].size} elements."


def _check_product(n: Node) -> str:
    a, b, *more = (x.shape for x in n.args)
    if any(shape != n.shape for shape in more):
        return f"what is added must have its shape, not {more[0]}."
    fits = len(a) == len(b) > 1 and a[:-2] == b[:-2] and a[-1] == b[-2]
    return "" if fits and n.shape == (*a[:-1], b[-1]) else f"{a} @ {b} is not {n.shape}."


def _check_pieces(n: Node) -> str:
    for a, start in zip(n.args, n.data.starts, strict=True):
        ends = [s + length for s, length in zip(start, a.shape, strict=True)]
        if min(start, default=0) < 0 or any(e > whole for e, whole in zip(ends, n.shape, strict=True)):
            return f"{a.shape} at {start} does not lie in it."
    return ""


def _check_take(n: Node) -> str:
    x, rows = n.args
    return "" if rows.shape + x.shape[1:] == n.shape and rows.dtype == np.int64 else f"{x.shape} at {rows}."


def _check_scatter(n: Node) -> str:
    x, rows = n.args
    return "" if rows.shape + n.shape[1:] == x.shape and rows.dtype == np.int64 else f"{x.shape} at {rows}."


def _check_spaced(n: Node) -> str:
    (x,) = n.args
    return _check_view(Node("view", (n,), x.shape, n.dtype, n.data, 0))


def _check_scan(n: Node) -> str:
    return "" if n.shape == tuple(n.data[0].acts.shape(n.name, [a.shape for a in n.args], n.data[1])) else "its shape."


def _check_cast(n: Node) -> str:
    return "" if n.shape == n.args[0].shape else "a cast keeps the shape."


def _check_constant(n: Node) -> str:
    return "" if (n.data.shape, n.data.dtype) == (n.shape, n.dtype) else f"it holds {n.data.dtype}{n.data.shape}."


CHECKS: dict[str, Any] = {
    "input": lambda n: "", "constant": _check_constant, "map": _check_map, "cast": _check_cast, "fold": _check_fold,
    "view": _check_view, "pieces": _check_pieces, "take": _check_take, "scatter": _check_scatter,
    "spaced": _check_spaced, "scan": _check_scan, "product": _check_product, "windows": lambda n: "",
    "opaque": lambda n: "", "part": lambda n: "",
}  # fmt: skip


@lru_cache(4096)
def contiguous(shape: Shape) -> tuple[int, ...]:
    """The strides, in elements, of an array whose elements lie in order.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def in_order(shape: Shape, view: View) -> bool:
    """Whether a view is merely another shape for the same elements in the same order.

    >>> in_order((2, 3), View(0, (3, 1))), in_order((3, 2), View(0, (1, 3)))
    (True, False)
    """
    natural = contiguous(shape)
    same = (a == b or length == 1 for a, b, length in zip(view.strides, natural, shape, strict=True))
    return view.offset == 0 and all(same)
