"""Merge nodes that one kernel computes: a product or a scatter and what it is added to, a product and its transpose.

The rules are tried while a graph is legalized: each is given a node and its legalized arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, compute_strides, transpose
from pullback.compiler.ir.kinds import CONSTANT, MAP, PRODUCT, SCATTER, VIEW
from pullback.compiler.ir.products import is_blas_ready, resolve_product
from pullback.compiler.target import Options

IsAlone = Callable[[Node], bool]  # whether a node has one user and is no output, so that no memory need hold it


class Merger:
    """Merges nodes of a graph that is copied, in order, to a new one."""

    def __init__(self, graph: Graph, options: Options) -> None:
        self.options = options
        self.users, self.wanted = graph.find_users(), {id(o) for o in graph.outputs}

    def merge(self, g: Graph, n: Node, args: list[Node]) -> Node | None:
        """Return the node that computes ``n`` together with one of its arguments; None if no rule fits."""
        is_multiplied = any(u.kind is PRODUCT for u in self.users[n.number])  # products take a transpose as it lies
        rules = RULES if is_multiplied else (_transpose_product, *RULES)
        candidates = (rule(g, n, args, self._is_alone, self.options) for rule in rules)
        return next((z for z in candidates if z is not None), None)

    def _is_alone(self, n: Node) -> bool:
        return len(self.users[n.number]) == 1 and id(n) not in self.wanted


def _is_map(n: Node, kernel: Callable[..., Any]) -> bool:
    """Return whether a node is the elementwise op of this kernel."""
    return n.kind is MAP and n.data[0].kernel is kernel


def _merge_addition(g: Graph, n: Node, args: list[Node], alone: IsAlone, options: Options) -> Node | None:
    """Return a product and the addition that alone uses it as one product with an addend."""
    if not _is_map(n, np.add) or args[0].dtype != args[1].dtype:
        return None
    for p, other, source in ((args[1], args[0], n.args[1]), (args[0], args[1], n.args[0])):
        fits = p.kind is PRODUCT and len(p.args) == 2 and alone(source) and other.shape == p.shape == n.shape
        if not fits or other.kind in (CONSTANT, VIEW):
            continue
        # Of a batch of small ones, each addend would be read by itself
        is_small = options.is_enabled("matrix products") and resolve_product(p).matrices.is_small
        if len(n.shape) == 2 if is_small else other.kind is PRODUCT:
            return g.add(PRODUCT, (*p.args, other), p.shape, p.dtype, None, n.line)
    return None


def _transpose_product(g: Graph, n: Node, args: list[Node], alone: IsAlone, options: Options) -> Node | None:
    """Return a product of which only the transpose is used as the product of the transposed matrices."""
    if n.kind is not VIEW or not _is_transposable_product(args[0]) or not alone(n.args[0]) or n.data.offset:
        return None
    *loop, rows, columns = compute_strides(args[0].shape)
    shape = (*args[0].shape[:-2], args[0].shape[-1], args[0].shape[-2])
    if n.shape != shape or n.data.strides != (*loop, columns, rows):
        return None
    a, b = args[0].args
    return g.add(PRODUCT, (transpose(g, b), transpose(g, a)), shape, n.dtype, None, n.line)


def _merge_scatter(g: Graph, n: Node, args: list[Node], alone: IsAlone, options: Options) -> Node | None:
    """Return a scatter into zeros and the addition that alone uses it as a scatter that adds to the other term."""
    if not _is_map(n, np.add) or args[0].dtype != args[1].dtype:
        return None
    for s, other, source in ((args[1], args[0], n.args[1]), (args[0], args[1], n.args[0])):
        adds = s.kind is SCATTER and len(s.args) == 2 and s.data.combine == "add"
        fits = adds and alone(source) and other.shape == s.shape == n.shape
        if fits and other.kind not in (CONSTANT, VIEW):
            return g.add(SCATTER, (*s.args, other), s.shape, s.dtype, s.data, n.line)
    return None


def _is_transposable_product(x: Node) -> bool:
    """Return whether a node is a product without an addend whose operands need no copy."""
    return x.kind is PRODUCT and len(x.args) == 2 and all(a.kind is not VIEW or is_blas_ready(a) for a in x.args)


RULES = (_merge_addition, _merge_scatter)
