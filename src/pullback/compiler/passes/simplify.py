"""Simplify a graph: no pass changes a result, not even a NaN, an infinity or the sign of a zero.

Nodes are added to a new graph, in order, by a rule for each kind: constants are folded, casts that undo each other are
removed, a sum over a broadcast axis becomes a product.  Nodes that no output depends on are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.ir.graph import (
    Block,
    Fold,
    Graph,
    Node,
    Pieces,
    Shape,
    View,
    broadcast,
    compute_strides,
    is_in_order,
    reshape,
    resolve_view,
    take_view,
)
from pullback.compiler.ir.kinds import CAST, CONSTANT, FOLD, INPUT, MAP, OPAQUE, PIECES, PRODUCT, VIEW, Kind
from pullback.compiler.passes.forward_writes import forward_writes
from pullback.compiler.passes.loop_nodes import simplify_loops
from pullback.compiler.passes.merge_padded_sums import PaddedSum, find_padded_sums, list_blocks
from pullback.compiler.passes.spaced import pad_spaced
from pullback.core.axes import together
from pullback.core.tensor import BY_KERNEL

MAX_FOLDED_ELEMENTS = 1024  # of constants that are computed at compile time
VALUES = {"eigvals": "eig_rows", "eigvalsh": "eigh_rows", "svdvals": "svd_rows"}  # with the ops that give vectors too
MAX_LOOK_THROUGH = 8  # depth to which the operands of an expression are examined


def simplify(graph: Graph) -> Graph:
    """Return an equivalent graph with fewer and cheaper nodes."""
    return simplify_structures(simplify_nodes(graph))


def simplify_nodes(graph: Graph) -> Graph:
    """Return an equivalent graph with fewer and cheaper nodes, loops and branches as they are."""
    return remove_dead_nodes(_rebuild(pad_spaced(forward_writes(graph))))


def simplify_structures(graph: Graph) -> Graph:
    """Return an equivalent graph with simplified loops and branches."""
    if not any(n.kind.has_bodies for n in graph.nodes):
        return graph
    return remove_dead_nodes(_rebuild(remove_dead_nodes(simplify_loops(graph, simplify))))


def _rebuild(graph: Graph) -> Graph:
    """Return the graph with every node simplified, and with the sums and reductions of several nodes rewritten."""
    new, new_nodes = graph.copy_inputs()
    sums, factored, reduced = find_padded_sums(graph), _find_factored(graph), _find_reduced_views(graph)
    sums_of: dict[int, list[int]] = {}  # by the number of a padded array: the numbers of the sums with its blocks
    totals: dict[tuple[int, Block], Node] = {}  # of the blocks so far
    absorbed: set[int] = set()
    for number, whole in sums.items():
        absorbed |= whole.absorbed
        for p in whole.padded:
            sums_of.setdefault(p.number, []).append(number)
    for n in graph.nodes:
        if n.number in sums:
            new_nodes[n.number] = _merge_padded_sum(new, n, sums[n.number], new_nodes, totals)
        elif n.number in factored:
            new_nodes[n.number] = _take_values(new, n, factored[n.number], new_nodes)
        elif n.kind is not INPUT:
            if n.number not in absorbed:
                x = _simplify_node(new, n, tuple([new_nodes[a.number] for a in n.args]))
                new_nodes[n.number] = x if n.number in reduced else _move_transposition(new, x)
            for number in sums_of.get(n.number, ()):
                _add_blocks(new, n, [new_nodes[a.number] for a in n.args], number, totals)
    new.outputs = [new_nodes[o.number] for o in graph.outputs]
    return new


def _find_reduced_views(graph: Graph) -> set[int]:
    """Return the views that only reductions read, of arrays with other uses: such a view costs next to nothing."""
    users, wanted = graph.find_users(), {o.number for o in graph.outputs}
    views = [n for n in graph.nodes if n.kind is VIEW and n.number not in wanted and len(users[n.args[0].number]) > 1]
    return {n.number for n in views if all(u.kind is FOLD for u in users[n.number])}


def _find_factored(graph: Graph) -> dict[int, Node]:
    """Return the nodes of eigenvalues or singular values of matrices whose vectors are computed too.

    A gradient needs the vectors; LAPACK returns the values with them, so they are not computed twice.
    """
    whole = {(n.name, n.args[0].number): n for n in graph.nodes if n.kind is OPAQUE and n.name in VALUES.values()}
    if not whole:
        return {}
    values = [n for n in graph.nodes if n.kind is OPAQUE and n.name in VALUES]
    found = {n.number: whole.get((VALUES[n.name], n.args[0].number)) for n in values}
    return {n.number: z for n in values if (z := found[n.number]) is not None and z.dtype == n.dtype}


def _take_values(g: Graph, n: Node, whole: Node, new_nodes: dict[int, Node]) -> Node:
    """Return a view of the singular values or eigenvalues in the result of a factorization.

    They are one row of it: the row below the left vectors of ``svd``, the first row otherwise.
    """
    z = g.add(OPAQUE, [new_nodes[whole.args[0].number]], whole.shape, whole.dtype, whole.data, whole.line)
    *before, rows, columns = compute_strides(z.shape)
    row = whole.args[0].shape[-2] if n.name == "svdvals" else 0
    return g.add(VIEW, (z,), n.shape, n.dtype, View(row * rows, (*before, columns)), n.line)


def _add_blocks(g: Graph, n: Node, blocks: list[Node], number: int, totals: dict[tuple[int, Block], Node]) -> None:
    """Add the blocks of a padded array to the totals at their places in a sum, here: it may be a step of a loop."""
    for x, place in zip(blocks, list_blocks(n), strict=True):
        total = totals.get((number, place))
        totals[number, place] = x if total is None else _apply(g, x, np.add, total, x)


def _merge_padded_sum(
    g: Graph, n: Node, whole: PaddedSum, new_nodes: dict[int, Node], totals: dict[tuple[int, Block], Node]
) -> Node:
    terms = [new_nodes[other.number] for other in whole.others]
    for group in whole.groups:
        starts, args = tuple(place.start for place in group), tuple(totals[n.number, place] for place in group)
        one = _simplify_node(g, Node(PIECES, (), n.shape, n.dtype, Pieces(starts, 0.0), 0, n.line), args)
        terms.append(one)
    if whole.adds_zeros:  # once: a sum with 0 is not -0
        terms[-1] = _apply(g, n, np.add, terms[-1], g.add_constant(0.0, n.dtype))
    return reduce(lambda x, y: _apply(g, n, np.add, x, y), terms)


def _simplify_node(g: Graph, n: Node, args: tuple[Node, ...]) -> Node:
    if n.kind.propagates_constants:
        for a in args:
            if a.kind is not CONSTANT:
                break
        else:
            if n.size <= MAX_FOLDED_ELEMENTS:
                return g.add_constant(_evaluate(n, [a.data for a in args]))
    rule = RULES.get(n.kind)
    simpler = rule(g, n, args) if rule is not None else None
    return simpler or g.copy_node(n, args)


def _evaluate(n: Node, values: list[Any]) -> Any:
    """Return the value of a node whose arguments are constants, in its own shape and dtype."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(n.kind.evaluate(n, *values), n.shape).astype(n.dtype, copy=False)


# ---- one constructor for each kind that can be simplified


def _simplify_constant(g: Graph, n: Node, args: tuple[Node, ...]) -> Node | None:
    """Return a constant whose elements are all equal as a view of one number."""
    flat = n.data.reshape(-1)
    if n.size < 2 or flat[:1].tobytes() * n.size != flat.tobytes():
        return g.add_constant(n.data)
    return broadcast(g, g.add_constant(flat[0]), n.shape, n.line)


def _find_repeated_number(a: Node) -> Node:
    """Return the constant that a node repeats, or the node itself if it repeats none."""
    if a.kind is not VIEW or a.args[0].kind is not CONSTANT or a.args[0].size != 1:
        return a
    return a.args[0] if len(a.args[0].shape) <= len(a.shape) else a  # a number in place of [[number]] has fewer axes


def _simplify_map(g: Graph, n: Node, args: tuple[Node, ...]) -> Node | None:
    bare = tuple(map(_find_repeated_number, args))
    if bare != args and (node := _compute_from_numbers(g, n, bare)) is not None:
        return node
    kernel = n.data[0].kernel
    if kernel is np.negative and args[0].kind is MAP and args[0].data[0].kernel is np.negative:
        return args[0].args[0]
    if kernel is np.copy:
        return args[0]
    if kernel is np.power and n.dtype.kind == "f" and _is_number(args[1], 0.0):  # of NaN too
        return broadcast(g, g.add_constant(1.0, n.dtype), n.shape, n.line)
    return _repeat_after(g, n, args) or (_drop_neutral(n, args, kernel) if len(args) == 2 else None)


class Repeated(NamedTuple):
    """An array whose elements are repeated: a view of it, with a stride of 0 along some axes, in another shape."""

    base: Node
    shape: Shape
    view: View

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which elements are repeated."""
        return tuple(i for i, step in enumerate(self.view.strides) if not step and self.shape[i] > 1)


def _find_repeated(x: Node) -> Repeated | None:
    """Return what a node repeats, as ``np.repeat`` and ``np.tile`` do; None for other nodes."""
    first = x.args[0] if x.args else x
    if x.kind is VIEW and first.kind is VIEW and first.size == x.size and is_in_order(x.shape, x.data):
        found = Repeated(first.args[0], first.shape, first.data)
        return found if found.axes else None
    if x.kind is not PIECES or len(x.args) * first.size != x.size or any(a is not first for a in x.args):
        return None
    axis = next((i for i, (m, k) in enumerate(zip(x.shape, first.shape, strict=True)) if m != k), 0)
    starts = [(*(0,) * axis, i * first.shape[axis], *(0,) * (len(x.shape) - axis - 1)) for i in range(len(x.args))]
    if len(starts) == 1 or x.data.starts != tuple(starts):
        return None
    steps = compute_strides(first.shape)
    return Repeated(
        first, (*first.shape[:axis], len(starts), *first.shape[axis:]), View(0, (*steps[:axis], 0, *steps[axis:]))
    )


def _find_common_repetition(arrays: list[Node], shape: tuple[int, ...]) -> dict[Node, Repeated] | None:
    """Return the array that each array repeats; None if one repeats nothing, or if two repeat in different ways."""
    found = {a: repeated for a in arrays if a.shape == shape and (repeated := _find_repeated(a)) is not None}
    alike = {(a.kind, r.shape, r.axes) for a, r in found.items()}
    return found if len(alike) == 1 and len(found) == len(set(arrays)) else None


def _repeat_after(g: Graph, n: Node, args: tuple[Node, ...]) -> Node | None:
    """Return a function of elements that are all repeated in the same way as the repeated function of the elements."""
    arrays = [a for a in args if a.size > 1]
    found = _find_common_repetition(arrays, n.shape)
    if found is None:
        return None
    _, whole, _ = found[arrays[0]]
    keep = [i for i in range(len(whole)) if i not in found[arrays[0]].axes]
    shape = tuple(whole[i] for i in keep)

    def pick(a: Node) -> Node:
        base, _, view = found[a]
        return take_view(g, base, shape, View(view.offset, tuple(view.strides[i] for i in keep)), n.line)

    operands = tuple(reshape(g, a, ()) if a.size == 1 else pick(a) for a in args)
    node = _simplify_node(g, Node(n.kind, (), shape, n.dtype, n.data, 0, n.line), operands)
    if arrays[0].kind is PIECES:
        return g.add(PIECES, [node] * len(arrays[0].args), n.shape, n.dtype, arrays[0].data, n.line)
    steps = dict(zip(keep, compute_strides(shape), strict=True))
    view = View(0, tuple(steps.get(i, 0) for i in range(len(whole))))
    return reshape(g, g.add(VIEW, (node,), whole, n.dtype, view, n.line), n.shape)


def _compute_from_numbers(g: Graph, n: Node, bare: tuple[Node, ...]) -> Node | None:
    """Return a node with single constants as operands instead of views that repeat them; None if it would differ."""
    shape = together(*(a.shape for a in bare))
    like = Node(MAP, (), shape, n.dtype, n.data, 0, n.line)
    if shape == n.shape:
        return _simplify_node(g, like, bare)
    if all(a.kind is CONSTANT and a.size == 1 for a in bare):
        return broadcast(g, _simplify_node(g, like, bare), n.shape, n.line)
    return None


def _drop_neutral(n: Node, args: tuple[Node, ...], kernel: Callable[..., Any]) -> Node | None:
    """Return the other operand of ``x * 1``, ``1 * x``, ``x - 0`` and so on; None if neither operand is neutral."""
    neutral = NEUTRAL.get(kernel)
    if neutral is None:
        return None
    for x, number in (args, args[::-1]) if kernel is np.multiply else (args,):
        if x.shape == n.shape and x.dtype == n.dtype and _is_number(number, neutral):
            return x
    return None


# x - 0 is x, but x + 0 is not where x is -0
NEUTRAL: dict[Any, float] = {np.multiply: 1.0, np.divide: 1.0, np.subtract: 0.0, np.power: 1.0}


def _is_number(n: Node, value: float) -> bool:
    if n.kind is not CONSTANT or n.size != 1 or n.dtype.kind == "c":
        return False
    return bool(n.data.item() == value and not np.signbit(n.data.item()))


def _simplify_cast(g: Graph, n: Node, args: tuple[Node, ...]) -> Node | None:
    (x,) = args
    if x.dtype == n.dtype:
        return x
    if x.kind is CAST and np.can_cast(x.args[0].dtype, x.dtype, "safe") and x.args[0].dtype == n.dtype:
        return x.args[0]
    return _repeat_after(g, n, args)


def _simplify_view(g: Graph, n: Node, args: tuple[Node, ...]) -> Node | None:
    (x,) = args
    if x.shape == n.shape and is_in_order(n.shape, n.data):
        return x
    number = _find_repeated_number(x)
    if number.kind is CONSTANT and number.size == 1 and (number is not x or n.size > MAX_FOLDED_ELEMENTS):
        return g.add(VIEW, (number,), n.shape, n.dtype, View(0, (0,) * len(n.shape)), n.line)
    repeated = _find_repeated(x)
    return None if repeated is None else _pick_copy(n, x, repeated)


def _pick_copy(n: Node, x: Node, repeated: Repeated) -> Node | None:
    """Return the node that a view of repeated elements is equal to: one of the copies, or all of them; else None."""
    if x.kind is VIEW:
        return x.args[0] if repeated.shape == n.shape and is_in_order(n.shape, n.data) else None
    units = compute_strides(x.shape)
    places = [sum(u * at for u, at in zip(units, start, strict=True)) for start in x.data.starts]
    is_copy = n.shape == repeated.base.shape and n.data.offset in places and n.data.strides == units
    return repeated.base if is_copy else None


def _move_transposition(g: Graph, n: Node) -> Node:
    """Return the transpose of an expression of smaller arrays as the expression of their transposes; else the node."""
    if n.kind is not VIEW or not n.args[0].kind.is_elementwise:
        return n
    order = _find_permutation(n, n.args[0])
    return n if order is None else _permute(g, n.args[0], order) or n


def _find_permutation(n: Node, x: Node) -> tuple[int, ...] | None:
    """Return the axes of ``x`` in the order in which a view has them; None if it is another view."""
    if n.data.offset or n.size != x.size or len(n.shape) != len(x.shape):
        return None
    found: list[int] = []
    units = compute_strides(x.shape)
    for length, step in zip(n.shape, n.data.strides, strict=True):
        fits = (i for i, whole in enumerate(x.shape) if i not in found and whole == length)
        axis = next((i for i in fits if length == 1 or units[i] == step), None)
        if axis is None:
            return None
        found.append(axis)
    return tuple(found)


def _permute(g: Graph, x: Node, order: tuple[int, ...], depth: int = MAX_LOOK_THROUGH) -> Node | None:
    """Return an expression of smaller arrays with its axes in another order; None for any other node."""
    if not depth:
        return None
    rank = len(order)
    shape = (1,) * (rank - len(x.shape)) + x.shape
    permuted = tuple(shape[i] for i in order)
    if x.kind.is_elementwise and len(x.shape) == rank:
        args = _permute_args(g, x, order, depth - 1)
        return None if args is None else g.add(x.kind, args, permuted, x.dtype, x.data, x.line)
    if x.kind is CONSTANT and x.size <= MAX_FOLDED_ELEMENTS:
        return g.add_constant(np.transpose(x.data.reshape(shape), order)) if x.shape else x
    base, offset, steps = resolve_view(x)
    steps = (0,) * (rank - len(steps)) + steps
    return g.add(VIEW, (base,), permuted, x.dtype, View(offset, tuple(steps[i] for i in order)), x.line)


def _permute_args(g: Graph, x: Node, order: tuple[int, ...], depth: int) -> tuple[Node, ...] | None:
    """Return the arguments of an elementwise node with their axes in another order, if ``_permute`` can do each."""
    limit = x.size if x.kind is MAP else x.size + 1
    args = []
    for a in x.args:
        permuted = _permute(g, a, order, depth) if a.size < limit or a.kind.is_elementwise else None
        if permuted is None:
            return None
        args.append(permuted)
    return tuple(args)


def _simplify_fold(g: Graph, n: Node, args: tuple[Node, ...]) -> Node | None:
    """Return a sum of sums, of products or of repeated elements as one cheaper node; None for others."""
    (x,) = args
    is_sum = n.data.op.kernel is np.sum and n.dtype.kind == "f"
    if is_sum and len(n.data.axes) == len(x.shape) and (repeated := _find_repeated(x)) is not None:
        base, shape, view = repeated
        whole = g.add(VIEW, (base,), shape, x.dtype, view, n.line)
        return _fold(g, n, whole, tuple(range(len(shape))))
    if x.kind is PRODUCT:
        return _merge_sum_of_products(g, n, x)
    if x.kind is FOLD and x.data.op is n.data.op and n.data.op.kernel is np.sum and x.dtype == n.dtype:
        return _merge_folds(g, n, x)
    return _sum_repeated(g, n, x) if is_sum and x.kind is VIEW else None


def _fold(g: Graph, n: Node, x: Node, axes: tuple[int, ...]) -> Node:
    """Return the reduction of an array to the shape of a node, by the same op."""
    return _simplify_node(g, Node(FOLD, (), n.shape, n.dtype, Fold(n.data.op, axes), 0, n.line), (x,))


def _sum_repeated(g: Graph, n: Node, x: Node) -> Node | None:
    """Return a sum over axes along which a view repeats its elements as a product with their number."""
    repeated = [a for a in n.data.axes if x.data.strides[a] == 0 and x.shape[a] > 1]
    times = prod(x.shape[a] for a in repeated)
    if times == 1 or times >= 2**24:  # a count that float32 has
        return None
    keep = [i for i in range(len(x.shape)) if i not in repeated]
    shape = tuple(x.shape[i] for i in keep)
    view = View(x.data.offset, tuple(x.data.strides[i] for i in keep))
    inner = take_view(g, x.args[0], shape, view, n.line)
    axes = tuple(keep.index(a) for a in n.data.axes if a not in repeated)
    folded = _fold(g, n, inner, axes) if axes else inner
    many = _apply(g, n, np.multiply, folded, g.add_constant(times, n.dtype))
    return many if axes else _apply(g, n, np.add, many, g.add_constant(0.0, n.dtype))  # a sum of -0 is 0


def _merge_folds(g: Graph, n: Node, x: Node) -> Node:
    """Return a sum of sums as one over all axes."""
    (source,) = x.args
    kept = [i for i in range(len(source.shape)) if i not in x.data.axes]
    axes = tuple(sorted((*x.data.axes, *(kept[a] for a in n.data.axes))))
    return g.add(FOLD, (source,), n.shape, n.dtype, Fold(n.data.op, axes), n.line)


def _apply(g: Graph, n: Node, kernel: Callable[..., Any], x: Node, y: Node) -> Node:
    return _simplify_node(g, Node(MAP, (), n.shape, n.dtype, (BY_KERNEL[kernel], {}), 0, n.line), (x, y))


def _merge_sum_of_products(g: Graph, n: Node, x: Node) -> Node | None:
    """Return the sum of a batch of matrix products as one product: the batch axes join the contracted one."""
    loop = len(x.shape) - 2
    if n.data.op.kernel is not np.sum or n.data.axes != tuple(range(loop)) or not loop or n.dtype != x.dtype:
        return None
    (a, at_a, steps_a), (b, at_b, steps_b) = map(resolve_view, x.args)
    shape_a, shape_b = (arg.shape for arg in x.args)
    lengths = (*shape_a[:-2], shape_a[-1])
    kept = [i for i, length in enumerate(lengths) if length != 1] or [loop]
    along_a, along_b = ([steps[i] for i in kept] for steps in ((*steps_a[:-2], steps_a[-1]), steps_b[:-1]))
    if not all(_is_one_axis([lengths[i] for i in kept], along) for along in (along_a, along_b)):
        return None
    k = prod(lengths)
    left = g.add(VIEW, (a,), (shape_a[-2], k), n.dtype, View(at_a, (steps_a[-2], along_a[-1])), n.line)
    right = g.add(VIEW, (b,), (k, shape_b[-1]), n.dtype, View(at_b, (along_b[-1], steps_b[-1])), n.line)
    return g.add(PRODUCT, (left, right), n.shape, n.dtype, None, n.line)


def _is_one_axis(lengths: list[int], steps: list[int]) -> bool:
    """Return whether axes with these lengths and strides can be one axis."""
    return all(steps[i] == steps[i + 1] * lengths[i + 1] for i in range(len(lengths) - 1))


def _simplify_pieces(g: Graph, n: Node, args: tuple[Node, ...]) -> Node | None:
    """Return the last piece if it covers the whole result."""
    return args[-1] if args and args[-1].shape == n.shape and args[-1].dtype == n.dtype else None


RULES: dict[Kind, Any] = {
    CONSTANT: _simplify_constant,
    MAP: _simplify_map,
    CAST: _simplify_cast,
    VIEW: _simplify_view,
    FOLD: _simplify_fold,
    PIECES: _simplify_pieces,
}


# ---- dead code


def remove_dead_nodes(graph: Graph) -> Graph:
    """Remove the nodes that no output depends on, and number the others again."""
    wanted = {id(o) for o in graph.outputs} | {id(i) for i in graph.inputs}
    for n in reversed(graph.nodes):
        if id(n) in wanted:
            wanted.update(map(id, n.args))
    graph.nodes = [n for n in graph.nodes if id(n) in wanted]
    for place, n in enumerate(graph.nodes):
        n.number = place
    graph.known.clear()
    return graph
