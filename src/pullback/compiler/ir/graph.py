"""A program as a graph of nodes, with every shape and dtype known.

Nodes are made by ``Graph.add``, which returns an existing node if it is equal: common subexpressions are computed once.
The kinds of nodes are defined in ``kinds``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.compiler.ir.kinds import CONSTANT, INPUT, MAP, PIECES, VIEW, Kind
from pullback.core import tree
from pullback.core.axes import together
from pullback.core.op import Op
from pullback.core.tensor import BY_KERNEL
from pullback.errors import CompileError
from pullback.numerics.dtypes import make_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Shape = tuple[int, ...]
LARGE_MATRIX = 4096  # elements of a matrix that does not stay in the first-level cache
LONG_SIDE = 4  # elements of the rows and columns of such a matrix
EXACT = frozenset({int, bool, str, type(None), Op})  # types whose equal values have the same fingerprint
SEQUENCES, ARRAYS = (tuple, list), (np.ndarray, np.generic)  # made once: they are looked up for every node


class View(NamedTuple):
    """The offset and strides of a view of an array in C order."""

    offset: int
    strides: tuple[int, ...]  # in elements


class Scatter(NamedTuple):
    """How rows are scattered: their shape, how rows at one position are combined, and the initial value."""

    row: Shape
    combine: str = "add"  # or "maximum", "minimum"
    start: float = 0


class Pieces(NamedTuple):
    """The start of each argument in the result, and the fill value between them."""

    starts: tuple[tuple[int, ...], ...]
    fill: float


class Block(NamedTuple):
    """A block of elements of an array: where it begins, and its shape."""

    start: Shape
    shape: Shape


class Fold(NamedTuple):
    """A reduction by the lowering of ``op`` over ``axes``."""

    op: Any
    axes: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Node:
    """One value of the program."""

    kind: Kind
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
    def name(self) -> str:
        """The name of its op, or of its kind."""
        op = self.kind.get_op(self)
        name: str = self.kind.name if op is None else op.name
        return name

    def __repr__(self) -> str:
        return f"%{self.number}"

    def __str__(self) -> str:
        listed = ", ".join(map(repr, self.args))
        details = self.kind.describe(self)
        return f"{self!r} = {self.name}({listed}){details} : {self.dtype}{list(self.shape)}".replace("()", "", 1)


@dataclass
class Graph:
    """A program: nodes in an order in which they can be computed."""

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    known: dict[Any, Node] = field(default_factory=dict)
    # Values that are checked when a program has run, such as positions, each with the op that raises an error for wrong
    # ones.  The last output of a graph with checks is whether any of them is wrong.
    checks: list[tuple[Node, Any]] = field(default_factory=list)

    def add(
        self, kind: Kind, args: Sequence[Node], shape: Shape, dtype: DTypeLike, data: Any = None, line: str = ""
    ) -> Node:
        """Return a node with these properties: an existing one if there is one, else a new one."""
        key = None if kind is INPUT else (kind, tuple(map(id, args)), shape, dtype, make_data_key(kind, data))
        found = self.known.get(key) if key is not None else None
        if found is not None:
            return found
        node = Node(kind, tuple(args), tuple(shape), make_dtype(dtype), data, len(self.nodes), line)
        self.nodes.append(node)
        if key is not None:
            self.known[key] = node
        return node

    def add_input(self, shape: Shape, dtype: DTypeLike) -> Node:
        node = self.add(INPUT, (), shape, dtype, len(self.inputs))
        self.inputs.append(node)
        return node

    def add_constant(self, value: Any, dtype: DTypeLike | None = None) -> Node:
        if isinstance(value, np.ndarray) and value.size > 1 and not any(value.strides):  # one repeated number
            number = self.add_constant(value[(0,) * value.ndim], dtype)
            return self.add(VIEW, (number,), value.shape, number.dtype, View(0, (0,) * value.ndim))
        value = np.array(value, dtype, order="C")  # a copy: arrays are captured by value
        value.flags.writeable = False
        return self.add(CONSTANT, (), value.shape, value.dtype, value)

    def add_op(self, kernel: Callable[..., Any], *args: Node, dtype: DTypeLike | None = None, line: str = "") -> Node:
        """Add the elementwise op of a NumPy function, in the dtype of the first argument or in another one."""
        shape = together(*(a.shape for a in args))
        return self.add(MAP, args, shape, dtype or args[0].dtype, (BY_KERNEL[kernel], {}), line)

    def copy_node(self, n: Node, args: Sequence[Node]) -> Node:
        """Add a copy of a node of another graph, with arguments of this one."""
        return self.add(n.kind, args, n.shape, n.dtype, n.data, n.line)

    def rewrite(self, rule: Callable[[Graph, Node, list[Node]], Node | None]) -> Graph:
        """Return a new graph with ``rule(new, n, args)`` in the place of each node ``n``, which it copies if None.

        ``args`` are the arguments in the new graph.
        """
        new, new_nodes = self.copy_inputs()
        for n in self.nodes:
            if n.kind is not INPUT:
                args = [new_nodes[a.number] for a in n.args]
                new_nodes[n.number] = rule(new, n, args) or new.copy_node(n, args)
        new.outputs = [new_nodes[o.number] for o in self.outputs]
        return new

    def copy_inputs(self) -> tuple[Graph, dict[int, Node]]:
        """Return a new graph with the inputs of this one, and a dict from the numbers of old nodes to new nodes."""
        new = Graph()
        return new, {n.number: new.add_input(n.shape, n.dtype) for n in self.inputs}

    def find_users(self) -> dict[int, list[Node]]:
        """Return the users of each node, by its number."""
        found: dict[int, list[Node]] = {n.number: [] for n in self.nodes}
        for n in self.nodes:
            for a in n.args:
                found[a.number].append(n)
        return found

    def find_shared(self) -> frozenset[int]:
        """Return the numbers of nodes with several users, through views and pieces; being an output is a use, too."""
        users, count = self.find_users(), Counter(n.number for n in self.outputs)
        for n in reversed(self.nodes):
            count[n.number] += sum(count[u.number] if u.kind in (VIEW, PIECES) else 1 for u in users[n.number])
        return frozenset(number for number, uses in count.items() if uses > 1)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __str__(self) -> str:
        lines = [f"{n}   # {n.line}" if n.line else str(n) for n in self.nodes]
        return "\n".join([*lines, f"return {', '.join(map(repr, self.outputs))}"])

    def verify(self) -> None:
        """Raise CompileError if a value is used before it is computed, or a shape is wrong."""
        seen: set[int] = set()
        for place, n in enumerate(self.nodes):
            if n.number != place or any(id(a) not in seen for a in n.args):
                raise CompileError(f"the graph is not in order at {n}.")
            problem = n.kind.check(n)
            if problem:
                raise CompileError(f"the graph is wrong at {n}: {problem}")
            seen.add(id(n))
        if any(id(o) not in seen for o in self.outputs):
            raise CompileError("an output of the graph is not in it.")


def make_data_key(kind: Kind, data: Any) -> Any:
    """Return a hashable value that is equal only for equivalent data of nodes of one kind; quick for usual nodes."""
    if kind is MAP and not data[1]:
        return data[0]
    if kind is VIEW:
        return data  # it consists of integers only
    return (data.starts, fingerprint(data.fill)) if type(data) is Pieces else fingerprint(data)


def fingerprint(data: Any, otherwise: Callable[[Any], Any] | None = id) -> Any:
    """Return a hashable value that is equal only for equivalent data.

    Data without a hash is represented by ``otherwise(data)``, by default its identity; if that is None, it raises.

    >>> fingerprint([0.0, {1}]) == fingerprint([-0.0, {1}])
    False
    """
    kind = type(data)
    if kind in EXACT:
        return (kind, data)
    if kind is View:
        return data  # it consists of integers only
    if isinstance(data, SEQUENCES):
        return (kind, *[fingerprint(x, otherwise) for x in data])
    if isinstance(data, dict):
        return (kind, *[(k, fingerprint(v, otherwise)) for k, v in data.items()])
    if kind is slice:
        return ("slice", fingerprint((data.start, data.stop, data.step), otherwise))
    if isinstance(data, ARRAYS):
        return ("array", data.shape, data.dtype, data.tobytes())
    if isinstance(data, float):
        return ("float", data.hex())  # 0.0 and -0.0 are not the same
    if isinstance(data, set):
        return ("set", frozenset(data))
    return _fingerprint_object(data, otherwise)


def _fingerprint_object(data: Any, otherwise: Callable[[Any], Any] | None) -> Any:
    """Return the fingerprint of a dataclass, of a container that users registered, or of something with a hash."""
    kind = type(data)
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None and not getattr(kind, "whole", False):
        return (kind, *[fingerprint(getattr(data, f, None), otherwise) for f in fields])
    node = tree.find_node_type(kind)
    if node is not None:
        return (kind, fingerprint([node.fixed(data), node.children(data)], otherwise))
    try:
        hash(data)
    except TypeError:
        if otherwise is None:
            raise
        return ("unhashable", otherwise(data))
    return (kind, data)


@lru_cache(4096)
def compute_strides(shape: Shape) -> tuple[int, ...]:
    """Return the strides, in elements, of an array in C order.

    >>> compute_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def is_in_order(shape: Shape, view: View) -> bool:
    """Return whether a view is a reshape: the same elements in the same order.

    >>> is_in_order((2, 3), View(0, (3, 1))), is_in_order((3, 2), View(0, (1, 3)))
    (True, False)
    """
    natural = compute_strides(shape)
    same = (a == b or length == 1 for a, b, length in zip(view.strides, natural, shape, strict=True))
    return view.offset == 0 and all(same)


def resolve_view(x: Node) -> tuple[Node, int, tuple[int, ...]]:
    """Return the node whose memory holds the elements of ``x``, the offset of the first one in it, and the strides."""
    return (x.args[0], x.data.offset, x.data.strides) if x.kind is VIEW else (x, 0, compute_strides(x.shape))


def make_bytes_like(node: Node) -> tuple[Any, Node]:
    """Return an array of bytes with the strides of a node, and the node whose memory it is in."""
    if node.kind is not VIEW:
        return np.zeros(node.shape, np.int8), node
    base = node.args[0]
    flat = np.zeros(base.size, np.int8)
    return np.ndarray(node.shape, np.int8, flat, node.data.offset, node.data.strides), base


def find_start(whole: Any, view: Node | None) -> int:
    """Return the address at which the memory of an array from ``make_bytes_like`` begins."""
    at: int = whole.__array_interface__["data"][0]
    return at if view is None else at - view.data.offset


def rebase_view(place: tuple[Node, int, tuple[int, ...]], x: Node, view: View) -> tuple[Node, View]:
    """Return a view of ``x`` as a view of the node whose memory holds ``x``; as a view of ``x`` if that is impossible.

    ``place`` is the result of ``resolve_view(x)``.
    """
    base, offset, strides = place
    if is_in_order(x.shape, View(0, strides)):
        return base, View(offset + view.offset, view.strides)
    return x, view


def add_view(g: Graph, x: Node, shape: Shape, view: View, line: str) -> Node:
    """Return a view of a node as a view of the node's own base where possible; the base itself if it is equal to it."""
    base, view = rebase_view(resolve_view(x), x, view)
    if base.shape == shape and is_in_order(shape, view):
        return base
    composed = compose_views(shape, view, base) if base.kind is VIEW else None
    if composed is not None:
        (base,), view = base.args, composed
    return g.add(VIEW, (base,), shape, base.dtype, view, line)


def take_view(g: Graph, x: Node, shape: Shape, view: View, line: str) -> Node:
    """Return a view of a node, or the node itself if the view is all of it, in order."""
    if x.shape == shape and is_in_order(shape, view):
        return x
    return g.add(VIEW, (x,), shape, x.dtype, view, line)


def broadcast(g: Graph, x: Node, shape: Shape, line: str) -> Node:
    """Return a node broadcast to a shape."""
    base, offset, steps = resolve_view(x)
    repeated = (0 if length == 1 else step for length, step in zip(x.shape, steps, strict=True))
    return take_view(g, base, shape, View(offset, ((0,) * (len(shape) - len(x.shape)) + (*repeated,))), line)


def compose_views(shape: Shape, view: View, x: Node) -> View | None:
    """Return a view of the view ``x`` as a view of its base; None where an axis of it spans several axes of ``x``.

    >>> x = Node(VIEW, (), (3, 2), np.dtype(float), View(0, (1, 3)), 0)
    >>> compose_views((2,), View(1, (2,)), x)
    View(offset=3, strides=(1,))
    """
    units = compute_strides(x.shape)
    start = [int(i) for i in np.unravel_index(view.offset, x.shape)]
    left = [*range(len(units))]
    strides = []
    for length, step in zip(shape, view.strides, strict=True):
        if length == 1 or step == 0:
            strides.append(0)
            continue
        along = (
            k for k in left if step % units[k] == 0 and 0 <= start[k] + (length - 1) * (step // units[k]) < x.shape[k]
        )
        axis = next(along, None)
        if axis is None:
            return None
        left.remove(axis)
        strides.append(step // units[axis] * x.data.strides[axis])
    return View(x.data.offset + sum(i * s for i, s in zip(start, x.data.strides, strict=True)), tuple(strides))


def find_rows(x: Node, row: Shape) -> tuple[Node, int, tuple[int, ...]]:
    """Return the node whose memory holds the rows of ``x``, their offset in it, and the strides of the leading axes.

    If the rows are not contiguous in memory, the node is ``x`` itself, which must be copied.
    """
    base, offset, strides = resolve_view(x)
    count = len(x.shape) - len(row)
    if is_in_order(row, View(0, strides[count:])):
        return base, offset, strides[:count]
    return x, 0, compute_strides(x.shape)[:count]


def find_contiguous(x: Node) -> tuple[Node, int]:
    """Return the node whose memory holds all elements of ``x`` in C order, and their offset; else ``x`` itself."""
    base, offset, _ = find_rows(x, x.shape)
    return base, offset


@lru_cache(4096)
def squeeze(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without its axes of length 1."""
    return tuple(n for n in shape if n != 1)


def is_number(node: Node) -> bool:
    """Return whether a node is a constant of one element."""
    return node.kind is CONSTANT and node.size == 1


def is_transposed(x: Node) -> bool:
    """Return whether a matrix is a transposed view."""
    return x.kind is VIEW and x.data.strides[-2] == 1 and x.data.strides[-1] >= x.shape[-2] > 1


def is_large_transposed(x: Node) -> bool:
    """Return whether a large view has far-apart neighbours along its rows, and contiguous ones along its columns."""
    if x.kind is not VIEW or len(x.shape) < 2 or x.size < LARGE_MATRIX or min(x.shape[-2:]) < LONG_SIDE:
        return False
    strides: tuple[int, ...] = x.data.strides
    return strides[-1] > 1 and strides[-2] == 1


def transpose(g: Graph, x: Node) -> Node:
    """Return a node with its last two axes exchanged."""
    base, offset, steps = resolve_view(x)
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    if base is x and 1 in x.shape[-2:]:  # a row as a column is the same elements in the same order
        return reshape(g, x, shape)
    return take_view(g, base, shape, View(offset, (*steps[:-2], steps[-1], steps[-2])), x.line)


def reshape(g: Graph, x: Node, shape: tuple[int, ...]) -> Node:
    """Return a node with the same elements in another shape."""
    x = strip_reshape(x)
    return x if x.shape == shape else g.add(VIEW, (x,), shape, x.dtype, View(0, compute_strides(shape)), x.line)


def strip_reshape(x: Node) -> Node:
    """Return the node that a node is a reshape of; itself if it is none."""
    return x.args[0] if x.kind is VIEW and is_in_order(x.shape, x.data) and x.args[0].size == x.size else x
