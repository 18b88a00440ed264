"""The estimated cost of a node per element; the unit is a cheap vector instruction with its loads and stores."""

from __future__ import annotations

from pullback.compiler.builder import code_of
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import MAP
from pullback.compiler.ir.params import NO_PARAMS, FrozenParams
from pullback.compiler.math.cost import count_instructions
from pullback.core.lowering import scalar

PER_UNIT = 4  # instructions of a long computation that take as long as one with its loads and stores


def estimate_cost(n: Node) -> int:
    """Return the estimated cost of a node per vector; 1 for the cheapest."""
    return max(1, (count_node_instructions(n) + PER_UNIT // 2) // PER_UNIT)


def count_node_instructions(n: Node) -> int:
    """Return the weighted number of instructions of a node per vector; 1 for a node that is no scalar op."""
    if n.kind is not MAP or not isinstance(n.data[0].lower, scalar):
        return 1
    op, params = n.data
    frozen = FrozenParams(params) if params else NO_PARAMS
    dtypes = tuple([code_of(a.dtype) for a in n.args])
    constants = tuple([a.data.item() if is_number(a) else None for a in n.args])
    return count_instructions(op, dtypes, code_of(n.dtype), frozen, constants) or 0


def is_minor(n: Node) -> bool:
    """Return whether what uses a node takes far longer than the node itself."""
    return n.kind is MAP and isinstance(n.data[0].lower, scalar) and n.data[0].lower.is_minor
