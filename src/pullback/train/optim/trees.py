"""Trees of gradients and slots, matched to a tree of parameters: dicts by key, not by order; and trees made again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback.core.tree import get_branches, is_number_list, map_leaves
from pullback.errors import ArgumentError
from pullback.typing import Tree


def match_leaves(params: Tree, other: Tree, subject: str, where: str = "") -> list[tuple[Any, str]]:
    """Return the leaves of ``other`` in the order of those of ``params``, each with its path.

    >>> match_leaves({"w": 1.0, "b": (2.0, 3.0)}, {"b": (20.0, 30.0), "w": 10.0}, "grads")
    [(10.0, "['w']"), (20.0, "['b'][0]"), (30.0, "['b'][1]")]
    """
    if params is None:
        return []
    parts = None if is_number_list(params) else get_branches(params)
    if parts is None:
        return [(other, where)]
    rows: list[Any] | None
    if isinstance(params, dict):
        keys = list(params)
        same = isinstance(other, dict) and other.keys() == params.keys()
        rows = [other[key] for key in keys] if isinstance(other, dict) and same else None
    else:
        keys = list(range(len(parts[0])))
        its = None if isinstance(other, dict) else get_branches(other)
        rows = its[0] if its is not None and len(its[0]) == len(keys) else None
    if rows is None:
        raise ArgumentError(f"{subject}{where}: expected {_describe(params)} as in params, got {_describe(other)}.")
    return [
        leaf
        for key, param, row in zip(keys, parts[0], rows, strict=True)
        for leaf in match_leaves(param, row, subject, f"{where}[{key!r}]")
    ]


def rebuild_tree(tree: Tree, leaves: Iterable[Any]) -> Any:
    """Return a tree of the same structure with these leaves; a list of numbers is one leaf.

    >>> rebuild_tree({"w": 1.0, "b": [2.0, 3.0]}, [10.0, 20.0])
    {'w': 10.0, 'b': 20.0}
    """
    source = iter(leaves)
    return map_leaves(lambda _: next(source), tree, whole=is_number_list)


def _describe(tree: Tree) -> str:
    parts = get_branches(tree)
    if isinstance(tree, dict):
        return f"a dict of {', '.join(map(repr, tree)) or 'nothing'}"
    return type(tree).__name__ if parts is None else f"a {type(tree).__name__} of {len(parts[0])}"
