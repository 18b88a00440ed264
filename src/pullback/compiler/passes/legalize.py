"""Legalize a graph: every node has machine code, or is a host op that NumPy runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.builder import TYPES, code_of
from pullback.compiler.ir.graph import (
    Fold,
    Graph,
    Node,
    View,
    compose_views,
    compute_strides,
    is_number,
    is_transposed,
    reshape,
    resolve_view,
    squeeze,
    strip_reshape,
    take_view,
    transpose,
)
from pullback.compiler.ir.kinds import (
    CONSTANT,
    FOLD,
    JOIN,
    MAP,
    OPAQUE,
    PART,
    PRODUCT,
    RESULT,
    SCATTER,
    SPLIT,
    STRUCTURES,
    VIEW,
    Kind,
)
from pullback.compiler.ir.products import resolve_product
from pullback.compiler.ir.structured import Structure
from pullback.compiler.math.functions import FUNCTIONS
from pullback.compiler.passes.lay_out_rows import lay_out_rows
from pullback.compiler.passes.matrices import lower_matrices, multiply_triangle
from pullback.compiler.passes.merge import Merger
from pullback.compiler.passes.pieces import separate_pieces
from pullback.compiler.passes.simplify import remove_dead_nodes
from pullback.compiler.passes.split_complex import split_complex
from pullback.compiler.passes.stack import stack_pieces
from pullback.compiler.passes.windows import lower_windows
from pullback.compiler.target import Options, Target
from pullback.core.lowering import matrices, scalar, windows
from pullback.core.tensor import BY_KERNEL

PRODUCTS = ("f4", "f8")


def legalize(graph: Graph, target: Target, options: Options) -> Graph:
    """Return an equivalent graph whose nodes have machine code or are host ops."""
    graph = split_complex(graph, options)
    merger = Merger(graph, options)
    new = graph.rewrite(lambda g, n, args: merger.merge(g, n, args) or _legalize_node(g, n, args, target, options))
    return stack_pieces(lay_out_rows(remove_dead_nodes(separate_pieces(remove_dead_nodes(new)))))


class Support(NamedTuple):
    """What decides whether a node has machine code."""

    has_types: bool  # all dtypes of the node and its arguments have machine code
    target: Target
    options: Options


def _legalize_node(g: Graph, n: Node, args: list[Node], target: Target, options: Options) -> Node:
    """Return a node that has machine code or runs on the host."""
    if not n.size:  # there is nothing to compute
        return g.add_constant(np.zeros(n.shape, n.dtype))
    support = Support(all(code_of(x.dtype) in TYPES for x in (n, *args)), target, options)
    return LEGALIZE.get(n.kind, _legalize_by_types)(g, n, args, support)


def _run_on_host(g: Graph, n: Node, args: list[Node]) -> Node:
    """Return the host op for a node: its own op where it has one, else the NumPy code of its kind."""
    return g.add(OPAQUE, args, n.shape, n.dtype, n.data if n.kind.has_params else (KindOp(n), {}), n.line)


def _legalize_opaque(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    lower = getattr(n.data[0], "lower", None)
    if isinstance(lower, windows):
        return lower_windows(g, n, args, support.options) or g.copy_node(n, args)
    if isinstance(lower, matrices) and support.has_types and support.target.has_blas:
        return lower_matrices(g, n, args) or g.copy_node(n, args)
    return g.copy_node(n, args)


def _legalize_fold(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    if support.has_types:
        return _arrange_fold(g, n, args[0])
    op, axes = n.data
    settings = {**op.params, "axis": axes, "keepdims": False}
    return g.add(OPAQUE, args, n.shape, n.dtype, (op, {k: settings[k] for k in op.params}), n.line)


def _legalize_product(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    if support.has_types and code_of(n.dtype) in PRODUCTS:
        return multiply_triangle(g, n, *args) or _arrange_product(g, n, args, support.options)
    return g.add(OPAQUE, args, n.shape, n.dtype, (BY_KERNEL[np.matmul], {}), n.line)


def _legalize_map(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    return (
        g.copy_node(n, args) if support.has_types and _has_code(n, args, support.options) else _run_on_host(g, n, args)
    )


def _legalize_view(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    (x,) = args
    if support.has_types and (base := strip_reshape(x)) is not x:
        return take_view(g, base, n.shape, n.data, n.line)  # another shape of another shape
    composed = compose_views(n.shape, n.data, x) if support.has_types and x.kind is VIEW else None
    if composed is not None:
        return take_view(g, x.args[0], n.shape, composed, n.line)
    return _legalize_by_types(g, n, args, support)


def _legalize_scatter(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    return _run_on_host(g, n, args) if n.dtype == bool else _legalize_by_types(g, n, args, support)


def _legalize_by_types(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    return g.copy_node(n, args) if support.has_types else _run_on_host(g, n, args)


def _legalize_structure(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    """Return a loop or branches with legalized bodies; a host op if these contain host ops."""
    data = n.data.replace_bodies([legalize(body, support.target, support.options) for body in n.data.bodies])
    likes = [*data.operand_likes, *data.result_likes]
    has_types = support.has_types and all(code_of(dtype) in TYPES for _, dtype in likes)
    if not has_types or any(m.kind.runs_on_host for body in data.bodies for m in body.nodes):
        return g.add(OPAQUE, args, n.shape, n.dtype, (HostStructure(n.data), {}), n.line)
    for body in data.bodies:
        _separate_outputs(body, data.find_stacks())
    return g.add(n.kind, args, n.shape, n.dtype, data, n.line)


def _separate_outputs(body: Graph, stacks: Collection[int]) -> None:
    """Give each output of a body memory of its own, except those in ``stacks``."""
    seen: set[int] = set()
    for i, o in enumerate(body.outputs):
        if i in stacks:
            continue
        if o.kind.is_leaf or id(o) in seen:
            o = Node(VIEW, (o,), o.shape, o.dtype, View(0, compute_strides(o.shape)), len(body.nodes), o.line)
            body.nodes.append(o)
            body.outputs[i] = o
        seen.add(id(o))


def _legalize_result(g: Graph, n: Node, args: list[Node], support: Support) -> Node:
    return g.add(PART if args[0].kind is OPAQUE else RESULT, args, n.shape, n.dtype, n.data, n.line)


# Rules of kinds for which dtypes alone do not decide, of a graph, a node, its new arguments, and what is supported.
LEGALIZE: dict[Kind, Callable[[Graph, Node, list[Node], Support], Node]] = {
    OPAQUE: _legalize_opaque, FOLD: _legalize_fold, PRODUCT: _legalize_product, MAP: _legalize_map,
    VIEW: _legalize_view, SCATTER: _legalize_scatter, RESULT: _legalize_result,
    **dict.fromkeys(STRUCTURES, _legalize_structure),
    **dict.fromkeys((CONSTANT, PART, SPLIT, JOIN), lambda g, n, args, _: g.copy_node(n, args)),
}  # fmt: skip


class HostStructure:
    """A loop or branches whose bodies contain host ops, as an op that Python runs."""

    variadic = False

    def __init__(self, data: Structure) -> None:
        self.data, self.name = data, type(data).__name__.lower()
        self.programs: dict[int, Any] = {}  # the programs of the bodies

    def compile_bodies(self, compile_graph: Callable[[Graph], Any]) -> None:
        """Compile the bodies, whose host ops are called between segments of machine code."""
        self.programs = {id(body): compile_graph(body) for body in self.data.bodies}

    def perform(self, values: Any, params: Any) -> Any:
        run = (lambda body, inputs: self.programs[id(body)](inputs)) if self.programs else None
        return tuple(self.data.run([np.asarray(v) for v in values], run))


class KindOp:
    """A node without an op of its own, as an op that NumPy runs."""

    variadic = False

    def __init__(self, n: Node) -> None:
        self.node, self.name = n, n.kind.name

    def perform(self, values: Any, params: Any) -> Any:
        return self.node.kind.evaluate(self.node, *values)


def _has_code(n: Node, args: list[Node], options: Options) -> bool:
    lower: scalar = n.data[0].lower
    if (lower.draws and not options.is_enabled("compiled draws")) or (
        lower.function and lower.function not in FUNCTIONS
    ):
        return False
    return lower.fits([code_of(a.dtype) for a in args], [a.data.item() if is_number(a) else None for a in args])


def _arrange_fold(g: Graph, n: Node, x: Node) -> Node:
    """Return a reduction over any axes as reductions over leading or trailing ones."""
    if not x.size:
        return g.add_constant(np.full(n.shape, n.data.op.lower.start, n.dtype))
    axes = [a for a in n.data.axes if x.shape[a] != 1]
    if not axes:
        return reshape(g, _add_zero(g, n, x), n.shape)
    inner = tuple(i for i, length in enumerate(x.shape) if length != 1)
    trailing = [a for a, b in zip(reversed(inner), reversed(axes), strict=False) if a == b]
    leading = len(axes) == sum(a == b for a, b in zip(inner, axes, strict=False))
    if leading or len(trailing) == len(axes):
        return g.add(FOLD, (x,), n.shape, n.dtype, Fold(n.data.op, n.data.axes), n.line)
    return _fold_trailing(g, n, x, trailing) if trailing else _fold_middle(g, n, x)


def _fold_trailing(g: Graph, n: Node, x: Node, trailing: list[int]) -> Node:
    """Return the nodes of a reduction in two steps: first over the trailing axes, then over the other reduced axes."""
    kept = tuple(length for i, length in enumerate(x.shape) if i not in trailing)
    x = g.add(FOLD, (x,), kept, n.dtype, Fold(n.data.op, tuple(sorted(trailing))), n.line)
    axes = [a - sum(t < a for t in trailing) for a in n.data.axes if a not in trailing]
    return _arrange_fold(g, Node(FOLD, (), n.shape, n.dtype, Fold(n.data.op, tuple(axes)), 0, n.line), x)


def _fold_middle(g: Graph, n: Node, x: Node) -> Node:
    """Return a reduction over axes in the middle as one over the last axes of a transposed view."""
    order = [i for i in range(len(x.shape)) if i not in n.data.axes] + list(n.data.axes)
    base, offset, steps = resolve_view(x)
    turned = g.add(
        VIEW, (base,), tuple(x.shape[i] for i in order), x.dtype, View(offset, tuple(steps[i] for i in order)), n.line
    )
    last = tuple(range(len(order) - len(n.data.axes), len(order)))
    return g.add(FOLD, (turned,), n.shape, n.dtype, Fold(n.data.op, last), n.line)


def _add_zero(g: Graph, n: Node, x: Node) -> Node:
    """Return ``x`` plus 0 for a sum over axes of length 1: the sum of -0 is 0."""
    if n.data.op.kernel is not np.sum or n.dtype.kind != "f":
        return x
    return g.add_op(np.add, x, g.add_constant(0.0, n.dtype), line=n.line)


def _arrange_product(g: Graph, n: Node, args: list[Node], options: Options) -> Node:
    """Return a product with one row or column as a multiplication and a sum, which fuse with other nodes."""
    a, b = args
    if not n.size or not a.size:
        return g.add_constant(np.zeros(n.shape, n.dtype))
    if a.shape[-1] == 1:
        return g.add_op(np.multiply, a, b, line=n.line)
    product = g.add(PRODUCT, args, n.shape, n.dtype, None, n.line)
    is_batch = len(n.shape) > 2 and n.shape[-2:] != (1, 1)
    if is_batch and options.is_enabled("matrix products") and resolve_product(product).matrices.is_tiny:
        return product
    return _arrange_vector_product(g, n, product)


def _arrange_vector_product(g: Graph, n: Node, product: Node) -> Node:
    """Return a matrix-vector product as a multiplication and a sum along contiguous rows; other products unchanged."""
    a, b = product.args
    if b.shape[-1] == 1 and len(a.shape) == 2 and is_transposed(a) and a.shape[0] <= a.shape[1]:
        return _sum_along(g, n, transpose(g, a), b, 0)
    if a.shape[-2] == 1 and is_transposed(b) and resolve_product(product).matrices.m == 1:
        return _sum_along(g, n, a, transpose(g, b), len(b.shape) - 1)
    if b.shape[-1] == 1:
        return _sum_along(g, n, a, transpose(g, b), len(a.shape) - 1)
    if a.shape[-2] == 1 and len(squeeze(n.shape)) == 1:
        return _sum_along(g, n, transpose(g, a), b, len(b.shape) - 2)
    return product


def _sum_along(g: Graph, n: Node, x: Node, y: Node, axis: int) -> Node:
    """Return the product ``n`` as the sum of ``x * y`` along an axis."""
    both = g.add_op(np.multiply, x, y, line=n.line)
    kept = both.shape[:axis] + both.shape[axis + 1 :]
    fold = Node(FOLD, (), kept, n.dtype, Fold(BY_KERNEL[np.sum], (axis,)), 0, n.line)
    return reshape(g, _arrange_fold(g, fold, both), n.shape)
