"""Fuse nodes into kernels: a kernel is one loop nest, with one pass over its elements or a few over each row.

The axes of a kernel are those of its largest values, without axes of length 1; the leading ones, up to ``split``, count
its rows.  A value of a kernel has a level: it is computed for every element (``FULL``) or once for each row (``ROW``).
A fold (reduction) over the trailing axes gives a value for each row, which later passes over the same row may use while
the row is in the cache.  A fold over all axes, or over the leading ones, is known only after the kernel (``AFTER``).

A ``Use`` of a value has an offset and strides, in elements, along the axes of the kernel.  A node of the kernel can use
a value of the same kernel without loading it only if these strides are those by which the kernel computes the value
(``Kernel.find_strides``).  Cheap values are not stored but computed at each use: they are virtual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import (
    Graph,
    Node,
    compute_strides,
    find_contiguous,
    find_rows,
    is_large_transposed,
    is_number,
    resolve_view,
    squeeze,
)
from pullback.compiler.ir.kinds import (
    FOLD,
    FOURIER,
    INPUT,
    JOIN,
    MATRICES,
    PIECES,
    PRODUCT,
    SCATTER,
    STACK,
    STRUCTURES,
    TAKE,
    VIEW,
    Kind,
)  # fmt: skip
from pullback.compiler.ir.matrices import find_matrix
from pullback.compiler.ir.products import find_operand
from pullback.compiler.schedule.cost import count_node_instructions, estimate_cost
from pullback.compiler.schedule.order import order_by_needs
from pullback.errors import CompileError

FULL, ROW, AFTER = "full", "row", "after"
RECENT_KERNELS = 4  # newest kernels that a node may join, besides those that compute its arguments
MAX_RECOMPUTED_COST = 4  # cost of a value that is computed at each use rather than stored
MAX_DEPTH = 160  # length of a chain of values that depend on each other in a kernel: the emitter recurses along it
MAX_KERNEL_COST = 600  # LLVM takes too long for more, and loads and stores are a small part of the run time then
LONG_PROGRAM_COST = 500  # a program of more is most likely an unrolled loop, whose small kernels are more often equal
MAX_SHORT_KERNEL_COST = 40  # cost of a kernel of such a program
MAX_CACHED_ELEMENTS = 2**16  # elements of arrays that stay in the cache from one kernel to the next
MAX_FOLDS = 24  # reductions of a kernel: each needs a register or more
MAX_SPREAD_NODES = 24  # nodes that compute a large array from vectors, such as a sum of outer products
MIN_SPREAD_RATIO = 64  # elements of such an array for each element of a vector
MAX_VIRTUAL_DEPTH = 16  # the same as MAX_DEPTH for values that are computed at each use


class Use(NamedTuple):
    """A use of a value in a kernel: the offset of its first element, and a stride for each axis of the kernel."""

    node: Node
    offset: int
    strides: tuple[int, ...]


class Kernel:
    """Nodes that are computed together in one loop nest."""

    def __init__(self, number: int, axes: tuple[int, ...]) -> None:
        self.number, self.axes = number, axes
        self.split: int | None = None
        self.nodes: list[Node] = []
        self.levels: dict[int, str] = {}
        self.before = 0  # a bit set of the kernels that must run before
        self.cost = 0  # the cost of all its nodes
        self.folds = 0

    def can_add(self, n: Node, cost: int, is_long: bool) -> bool:
        """Return whether a node of this cost may be added; ``is_long``: the program exceeds LONG_PROGRAM_COST."""
        heaviest = MAX_SHORT_KERNEL_COST if is_long and prod(self.axes) <= MAX_CACHED_ELEMENTS else MAX_KERNEL_COST
        return self.cost + cost <= heaviest and (n.kind is not FOLD or self.folds < MAX_FOLDS)

    @property
    def name(self) -> str:
        """A description: the shape of its loops, and its ops."""
        rows = f" by rows of {list(self.axes[self.split :])}" if self.split else ""
        return f"kernel {list(self.axes)}{rows}: {', '.join(n.name for n in self.nodes)}"

    def find_strides(self, node: Node) -> tuple[int, ...]:
        """Return the strides, along the axes of the kernel, by which it computes a value, or stores a stack."""
        if node.kind is STACK:
            return tuple(node.shape[-1] * step for step in compute_strides(self.axes))
        if self.levels[node.number] == FULL:
            return compute_strides(self.axes)
        split = self.split or 0
        return compute_strides(self.axes[:split]) + (0,) * (len(self.axes) - split)

    def makes(self, use: Use) -> bool:
        """Return whether this kernel computes the elements of a use, so that they need not be loaded."""
        level = self.levels.get(use.node.number) if use.node.kind is not STACK else None
        return level in (FULL, ROW) and use.offset == 0 and use.strides == self.find_strides(use.node)


class Fused(NamedTuple):
    """A program as kernels and calls, in order."""

    steps: tuple[Kernel | Node, ...]  # a node is a call
    stored: frozenset[int]  # numbers of the nodes whose values are stored in memory
    virtual: frozenset[int]  # numbers of the nodes that are computed at each use
    shared: frozenset[int]  # numbers of the nodes with several users, all of which must see the same number

    def __str__(self) -> str:
        return "\n".join(s.name if isinstance(s, Kernel) else f"{s!r} = {s.name}" for s in self.steps)


def use_node(node: Node, shape: tuple[int, ...]) -> Use:
    """Return the use of a node that is broadcast to ``shape``, whose axes of length 1 are left out."""
    base, offset, strides = resolve_view(node)
    return Use(base, offset, _broadcast_strides(node.shape, strides, shape))


@lru_cache(4096)
def _broadcast_strides(own: tuple[int, ...], strides: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    repeated = tuple(0 if n == 1 else s for n, s in zip(own, strides, strict=True))
    aligned = (0,) * (len(shape) - len(repeated)) + repeated
    return tuple(s for s, n in zip(aligned, shape, strict=True) if n != 1)


def find_loop_shape(n: Node) -> tuple[int, ...]:
    """Return the shape of the loops that compute a node."""
    return n.args[0].shape if n.kind is FOLD else n.shape[:-1] if n.kind is STACK else n.shape


def use_argument(use: Use, arg: Node) -> Use:
    """Return the use of an argument of ``use.node`` that the elements of ``use`` are computed from."""
    node = use.node
    lengths = squeeze(node.shape)
    units = compute_strides(lengths)
    inner = use_node(arg, node.shape)
    by_unit = dict(zip(units, inner.strides, strict=True))
    return Use(inner.node, inner.offset, tuple(by_unit[s] if s else 0 for s in use.strides))


def locate_pieces(n: Node) -> list[Use]:
    """Return the uses of the arguments of a node of pieces, along the axes of the result."""
    uses = []
    for a, start in zip(n.args, n.data.starts, strict=True):
        base, offset, strides = resolve_view(a)
        offset -= sum(s * at for s, at in zip(strides, start, strict=True))
        uses.append(Use(base, offset, tuple(s for s, length in zip(strides, n.shape, strict=True) if length != 1)))
    return uses


def locate_rows(n: Node) -> list[Use]:
    """Return the uses of the arguments of a node that takes rows: of the positions, and of the rows."""
    (x, offset), at = find_contiguous(n.args[0]), n.args[1]
    before, after = squeeze(at.shape), squeeze(n.data)
    return [
        Use(at, 0, compute_strides(before) + (0,) * len(after)),
        Use(x, offset, (0,) * len(before) + compute_strides(after)),
    ]


# Kinds that need no copy of some views: the node whose memory holds an argument, of the node and the argument.
STORED_BASES: dict[Kind, Callable[[Node, Node], Node]] = {
    PRODUCT: lambda n, x: find_operand(x)[0],
    MATRICES: lambda n, x: find_matrix(n)[0] if x is n.args[0] else x,
    SCATTER: lambda n, x: find_rows(x, n.data.row)[0] if x is n.args[0] else x,
    TAKE: lambda n, x: find_contiguous(x)[0] if x is n.args[0] else x,
    **dict.fromkeys((FOURIER, JOIN, *STRUCTURES), lambda n, x: find_contiguous(x)[0]),
}


def find_stored_base(user: Node, x: Node) -> Node:
    """Return the node whose memory is read for an argument: the base of a view, if ``user`` can read the view."""
    if user.kind in STORED_BASES:
        return STORED_BASES[user.kind](user, x)
    return x if user.kind.needs_contiguous or x.kind is not VIEW else x.args[0]


# Kinds that read memory in a kernel, element by element: where.
READS: dict[Kind, Callable[[Node], list[Use]]] = {PIECES: locate_pieces, TAKE: locate_rows}


class Fusion:
    """Builds the kernels of a graph, node by node."""

    def __init__(
        self, graph: Graph, rematerialized: frozenset[int] = frozenset(), later_pieces: frozenset[int] = frozenset()
    ) -> None:
        self.graph, self.users = graph, graph.find_users()
        self.rematerialized, self.later_pieces = rematerialized, later_pieces  # numbers of nodes
        self.wanted = {o.number for o in graph.outputs}
        self.kernels: list[Kernel] = []
        self.calls: list[tuple[Node, int]] = []  # each with a bit set of the kernels that must run before
        self.home: dict[int, Kernel] = {}
        self.before: dict[int, int] = {}  # by call: a bit set of the kernels that must run before
        self.needed = 0  # a bit set of the kernels that another kernel or call needs
        self.known_needs: dict[int, list[Use]] = {}  # results of ``list_needs``, by node
        self.depth: dict[int, int] = {}  # by node: the length of the longest chain of values that lead to it
        self.virtual: set[int] = set()
        self.is_long = sum(estimate_cost(n) for n in graph.nodes if n.kind.fuses) > LONG_PROGRAM_COST
        for n in graph.nodes:
            depth = 1 + max((self.depth.get(a.number, 0) for a in n.args), default=0)
            if depth <= MAX_VIRTUAL_DEPTH and self._is_virtual(n):
                self.virtual.add(n.number)
                self.depth[n.number] = depth

    def _is_virtual(self, n: Node) -> bool:
        """Return whether a node is computed at each use: it is cheap, and used by elementwise nodes only."""
        if not n.kind.is_elementwise or n.number in self.wanted:
            return False
        if any(u.kind.reads_memory and not self._is_spread(n, u) for u in self.users[n.number]):
            return False
        if n.number in self.rematerialized or (n.dtype == bool and estimate_cost(n) <= MAX_RECOMPUTED_COST):
            return True
        return count_node_instructions(n) <= 1 and sum(not is_number(a) for a in n.args) <= 1  # it reads one array

    def _is_spread(self, n: Node, view: Node) -> bool:
        """Return whether a view only adds axes to a value that is computed from inputs, for elementwise nodes."""
        if view.kind is not VIEW or view.number in self.wanted or view.data.offset:
            return False
        if any(a.kind is not INPUT and not is_number(a) for a in n.args):  # else a kernel computes it once for each row
            return False
        is_same = tuple(s for s, length in zip(view.data.strides, view.shape, strict=True) if s and length != 1)
        elementwise = all(u.kind.fuses and not u.kind.reads_memory for u in self.users[view.number])
        return elementwise and is_same == compute_strides(squeeze(n.shape))

    def list_stored_uses(self, use: Use) -> Iterator[Use]:
        """Yield the uses of stored or computed nodes that a use needs, through nodes that are computed at each use."""
        node = use.node
        if is_number(node):
            return
        if node.number in self.virtual:
            for arg in node.args:
                yield from self.list_stored_uses(use_argument(use, arg))
        else:
            yield use

    def list_needs(self, n: Node) -> list[Use]:
        """Return the uses that a node needs, along its own axes, or for a fold along those of its argument."""
        if n.number not in self.known_needs:
            if n.kind in READS:
                self.known_needs[n.number] = READS[n.kind](n)
            else:
                shape = find_loop_shape(n)
                self.known_needs[n.number] = [u for a in n.args for u in self.list_stored_uses(use_node(a, shape))]
        return self.known_needs[n.number]

    def run(self) -> Fused:
        """Return the kernels and calls of the graph."""
        for n in self.graph.nodes:
            if n.kind.fuses and n.number not in self.virtual:
                self._add_node(n)
            elif n.kind.is_call:
                self._add_call(n)
            elif n.kind is VIEW and self._must_be_laid_out(n):
                self._add_node(n)
        return Fused(self._order_steps(), self._find_stored(), frozenset(self.virtual), self.graph.find_shared())

    def _must_be_laid_out(self, n: Node) -> bool:
        """Return whether a view must be copied to C order for one of its users."""
        users = self.users[n.number]
        return n.number in self.wanted or any(find_stored_base(u, n) is n for u in users if u.kind.reads_memory)

    def _add_call(self, n: Node) -> None:
        """Add a node that is a call of its own."""
        mask = 0
        for a in n.args:
            mask |= self._find_kernels_before(find_stored_base(n, a))
        self.before[n.number] = mask
        self.needed |= mask
        self.calls.append((n, mask))

    def _find_kernels_before(self, node: Node) -> int:
        """Return a bit set of the kernels that must run before a node's value is known."""
        if node.number in self.home:
            k = self.home[node.number]
            return k.before | 1 << k.number
        return self.before.get(node.number, 0)

    def _add_node(self, n: Node) -> None:
        """Add a node to the first kernel that can compute it, or to a new one."""
        needs = [Use(n.args[0], n.data.offset, use_node(n, n.shape).strides)] if n.kind is VIEW else self.list_needs(n)
        axes = squeeze(find_loop_shape(n))
        own_depth = 1 + max((self.depth[a.number] for a in n.args if a.number in self.virtual), default=0)
        cost = estimate_cost(n)
        for k in self._list_candidates(n, needs):
            fits = self._find_depth(needs, k) + own_depth <= MAX_DEPTH and k.can_add(n, cost, self.is_long)
            level = self._find_level(n, k, axes, needs) if fits else ""
            if level and not self._needs_other_after(needs, k):
                break
        else:
            k = Kernel(len(self.kernels), axes)
            self.kernels.append(k)
            level = self._find_level(n, k, axes, needs)
        self.depth[n.number] = self._find_depth(needs, k) + own_depth
        # nothing joins it: the copy is a kernel by itself
        k.cost += MAX_KERNEL_COST if is_large_transposed(n) else cost
        k.folds += n.kind is FOLD
        mask = 0
        for u in needs:
            mask |= self._find_kernels_before(u.node)
        self._join(n, k, level, mask)

    def _list_candidates(self, n: Node, needs: list[Use]) -> list[Kernel]:
        """Return the kernels that a node may join: those that compute what it needs, and the newest; latest first."""
        near = [self.home[u.node.number] for u in needs if u.node.number in self.home]
        near.sort(key=lambda k: -k.number)
        recent = self.kernels[: -RECENT_KERNELS - 1 : -1]
        return (
            [k for k in recent if k not in near]
            if n.number in self.later_pieces
            else list(dict.fromkeys([*near, *recent]))
        )

    def _needs_other_after(self, needs: list[Use], k: Kernel) -> bool:
        """Return whether a node needs another kernel that must run after ``k``, so that it cannot be part of ``k``."""
        return any(
            self._find_kernels_before(u.node) >> k.number & 1 for u in needs if self.home.get(u.node.number) is not k
        )

    def _find_depth(self, needs: list[Use], k: Kernel) -> int:
        """Return the length of the longest chain of values of a kernel that leads to these uses."""
        return max((self.depth[u.node.number] for u in needs if self.home.get(u.node.number) is k), default=0)

    def _join(self, n: Node, k: Kernel, level: str, mask: int) -> None:
        """Add a node to a kernel at a level; ``mask`` is a bit set of the kernels that must run before it."""
        if n.kind is FOLD and level != FULL and k.axes == squeeze(n.args[0].shape):
            folded = self._list_folded_axes(n)
            if 0 < len(folded) < len(k.axes):
                k.split = folded[0] if level == ROW else len(folded)
        k.nodes.append(n)
        k.levels[n.number] = level
        self.home[n.number] = k
        new = mask & ~(1 << k.number) & ~k.before
        if not new:
            return
        k.before |= new
        self.needed |= new
        if self.needed >> k.number & 1:
            for other in self.kernels:
                if other.before >> k.number & 1:
                    other.before |= k.before
            for number, before in self.before.items():
                if before >> k.number & 1:
                    self.before[number] = before | k.before

    def _list_folded_axes(self, n: Node) -> list[int]:
        """Return the axes that a node reduces, counted without those of length 1."""
        shape = n.args[0].shape
        kept = [i for i, length in enumerate(shape) if length != 1]
        return [kept.index(a) for a in n.data.axes if shape[a] != 1]

    def _find_level(self, n: Node, k: Kernel, axes: tuple[int, ...], needs: list[Use]) -> str:
        """Return the level at which a kernel could compute a node; an empty string if it cannot."""
        row = n.kind.is_elementwise and axes != k.axes and _are_row_axes(k, axes)
        if (axes != k.axes and not row) or (n.kind is TAKE and self._takes_from(n, k)):
            return ""
        missing = (0,) * (len(k.axes) - len(axes))
        inner = [u for u in needs if u.node.number in k.levels]
        if any(not k.makes(u._replace(strides=u.strides + missing)) for u in inner):
            return ""
        if row:
            levels = {k.levels[u.node.number] for u in inner}
            return ROW if levels and FULL not in levels else ""
        return self._find_fold_level(n, k, len(axes)) if n.kind is FOLD else FULL

    def _takes_from(self, n: Node, k: Kernel) -> bool:
        """Return whether a kernel computes the rows that a node takes, or their positions: both must be in memory."""
        return find_contiguous(n.args[0])[0].number in k.levels or k.levels.get(n.args[1].number) == ROW

    def _find_fold_level(self, n: Node, k: Kernel, rank: int) -> str:
        """Return the level at which a kernel with ``rank`` axes could compute a fold; an empty string if it cannot."""
        folded = self._list_folded_axes(n)
        if not folded:
            raise CompileError(f"the graph is wrong at {n}: a fold over axes of length 1 is no fold.")
        trailing, leading = [*range(rank - len(folded), rank)], [*range(len(folded))]
        if folded == leading == trailing:
            return AFTER
        if folded == trailing:
            return ROW if k.split in (None, folded[0]) else ""
        return AFTER if folded == leading and k.split in (None, len(folded)) else ""

    def _find_stored(self) -> frozenset[int]:
        """Return the numbers of the nodes that are stored: outputs, and what other kernels or calls use."""
        stored = set(self.wanted)
        for n, _ in self.calls:
            stored.add(n.number)
            stored.update(find_stored_base(n, a).number for a in n.args)
        for k in self.kernels:
            for n in k.nodes:
                if n.kind is VIEW:
                    stored.update((n.number, n.args[0].number))
                    continue
                for u in self.list_needs(n):
                    if self.home.get(u.node.number) is not k:
                        stored.add(u.node.number)
        return frozenset(stored)

    def _order_steps(self) -> tuple[Kernel | Node, ...]:
        """Return kernels and calls, each after what it needs, otherwise in the order of the program."""
        steps: list[Kernel | Node] = [*self.kernels, *(n for n, _ in self.calls)]
        places = [s.nodes[-1].number if isinstance(s, Kernel) else s.number for s in steps]
        maker = {n.number: i for i, k in enumerate(self.kernels) for n in k.nodes}
        maker.update({n.number: i + len(self.kernels) for i, (n, _) in enumerate(self.calls)})
        needs = [{maker[n.number] for n in self._list_read(s) if n.number in maker} - {i} for i, s in enumerate(steps)]
        return tuple(steps[i] for i in order_by_needs(places, needs))

    def _list_read(self, step: Kernel | Node) -> list[Node]:
        """Return the nodes of other steps that a step reads."""
        if isinstance(step, Kernel):
            return [
                u.node
                for n in step.nodes
                for u in (self.list_needs(n) if n.kind is not VIEW else [use_node(n, n.shape)])
            ]
        return [find_stored_base(step, a) for a in step.args]


def fuse(graph: Graph) -> Fused:
    """Return the kernels and calls of a legalized graph."""
    first = Fusion(graph).run()
    rematerialized = RematerializedValues(graph, first).run()
    later_pieces = find_later_pieces(graph, first)
    if not rematerialized and not later_pieces:
        return first
    return Fusion(graph, frozenset(rematerialized), frozenset(later_pieces)).run()


def find_later_pieces(graph: Graph, fused: Fused) -> set[int]:
    """Return the PIECES nodes that need not be stored: kernels that read them could read their arguments."""
    users, wanted, found = graph.find_users(), {o.number for o in graph.outputs}, set()
    for n in graph.nodes:
        if n.kind is not PIECES or n.number not in fused.stored or n.number in wanted:
            continue
        is_fused = all(u.kind.fuses and not u.kind.reads_memory for u in users[n.number])
        if is_fused and all(u.node.kind is INPUT or u.node.number in fused.stored for u in locate_pieces(n)):
            found.add(n.number)
    return found


class RematerializedValues:
    """Finds stored values that are better computed again, from other stored values, where they are used."""

    def __init__(self, graph: Graph, fused: Fused) -> None:
        self.graph, self.fused, self.users = graph, fused, graph.find_users()
        self.wanted = {o.number for o in graph.outputs}
        self.chosen: set[int] = set()  # numbers of the nodes that are computed again
        self.until: dict[int, int] = {}  # by stored value: the last node that needs it
        for n in reversed(graph.nodes):
            self.until[n.number] = max((self._find_last_use(u) for u in self.users[n.number]), default=n.number)

    def _find_last_use(self, u: Node) -> int:
        passed_on = u.kind is VIEW or u.number in self.fused.virtual or u.number in self.chosen
        return self.until[u.number] if passed_on else u.number

    def run(self) -> set[int]:
        """Return the numbers of the nodes that are better computed again."""
        for n in self.graph.nodes:
            if n.number in self.fused.stored and n.number not in self.wanted and n.number not in self.fused.virtual:
                self._choose(n)
        return self.chosen

    def _is_cheap(self, n: Node) -> bool:
        """Return whether a node is elementwise and cheap enough to be computed again at each use."""
        elementwise = n.kind.is_elementwise and estimate_cost(n) <= 1
        return elementwise and not any(u.kind.reads_memory for u in self.users[n.number])

    def _find_cone(self, n: Node) -> tuple[set[int], dict[int, Node]]:
        """Return the cheap nodes that compute a value, and the stored nodes that these read; empty if too many."""
        cone: set[int] = set()
        sources: dict[int, Node] = {}
        waiting = [n]
        while waiting and len(cone) <= MAX_RECOMPUTED_COST and len(sources) <= 2:
            m = waiting.pop()
            if is_number(m) or m.number in cone:
                continue
            if m is not n and (m.kind is INPUT or m.number in self.fused.stored):
                sources[m.number] = m
            elif not self._is_cheap(m):
                return set(), {}
            else:
                cone.add(m.number)
                waiting += m.args
        fits = 0 < len(sources) <= 2 and len(cone) <= MAX_RECOMPUTED_COST
        return (cone, sources) if fits and all(x.shape == n.shape for x in sources.values()) else (set(), {})

    def _find_spread(self, n: Node) -> set[int]:
        """Return the cheap nodes that compute a large array from much smaller ones; empty if other arrays are read.

        The gradient by a matrix that several vectors are multiplied with is such an array, a sum of outer products:
        stored, it would be read and written once for each term.
        """
        cone: set[int] = set()
        waiting = [n]
        most = MAX_SPREAD_NODES if len(self.users[n.number]) == 1 else MAX_RECOMPUTED_COST
        while waiting:
            m = waiting.pop()
            is_single = m is n or m.number in self.chosen or len(self.users[m.number]) == 1
            if not is_single or m.shape != n.shape or not self._is_cheap(m) or m.number in self.wanted:
                return set()
            cone.add(m.number)
            if len(cone) > most:
                return set()
            waiting += [a for a in m.args if MIN_SPREAD_RATIO * resolve_view(a)[0].size > n.size]
        return cone

    def _choose(self, n: Node) -> None:
        """Mark a value to be computed at each use, if that takes less memory than storing it."""
        if n.size > MAX_CACHED_ELEMENTS and (spread := self._find_spread(n)):
            self.chosen |= spread
            return
        cone, sources = self._find_cone(n)
        if not sources or self.chosen & sources.keys():
            return
        end, start = self.until[n.number], max(sources)  # it could be computed when the last of them is known
        kept = 0  # bytes times steps for which the sources would have to be kept longer
        for x in sources.values():
            others = (self._find_last_use(u) for u in self.users[x.number] if u.number not in cone)
            kept += x.nbytes * max(end - max(start, *others, 0), 0) if x.kind is not INPUT else 0
        if kept <= n.nbytes * (end - start) // len(sources):
            self.chosen |= cone
            self.until.update({number: max(self.until[number], end) for number in sources})


def _are_row_axes(k: Kernel, axes: tuple[int, ...]) -> bool:
    """Return whether these are the axes that count a kernel's rows."""
    return k.split is not None and axes == k.axes[: k.split]
