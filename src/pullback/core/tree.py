"""Trees of values: dicts, lists, tuples, named tuples and dataclasses are structure, everything else is a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pullback.core.tensor import Tensor

if TYPE_CHECKING:
    from pullback.typing import Tree


def is_tensor_data(tree: Tree) -> bool:
    """Return whether nested lists hold numbers only, so that they are one tensor and not a tree.

    >>> is_tensor_data([[1, 2], [3, 4]]), is_tensor_data([{"w": 1.0}]), is_tensor_data([])
    (True, False, True)
    """
    if type(tree) is list:
        return all(map(is_tensor_data, tree))
    return tree is None or (isinstance(tree, int | float | complex) and not isinstance(tree, Tensor))


def branches(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """Return the children of a node and how to put others in their place; None for a leaf."""
    t = type(tree)
    if t is list:
        return tree, list
    if isinstance(tree, tuple):
        return list(tree), (lambda new: t(*new)) if hasattr(tree, "_fields") else t
    if isinstance(tree, dict):
        keys = list(tree)
        return list(tree.values()), lambda new: _like_dict(tree, zip(keys, new, strict=True))
    if isinstance(tree, list):
        return list(tree), t
    fields = getattr(t, "__dataclass_fields__", None)
    if fields is not None and not isinstance(tree, Tensor) and not getattr(t, "whole", False):  # a layer is no tree
        names = [f for f in fields if fields[f].init]
        return [getattr(tree, f) for f in names], lambda new: t(**dict(zip(names, new, strict=True)))
    return None


def _like_dict(tree: Any, items: Any) -> Any:
    if type(tree) is dict:
        return dict(items)
    made = tree.copy()  # keeps a defaultdict's factory, an OrderedDict's kind
    made.update(items)
    return made


def leaves(tree: Tree) -> list[Any]:
    """Return the leaves from left to right; ``None`` is an empty place.

    >>> leaves({"a": 1, "b": [2, (3, None)]})
    [1, 2, 3]
    """
    if tree is None:
        return []
    parts = branches(tree)
    if parts is None:
        return [tree]
    return [leaf for branch in parts[0] for leaf in leaves(branch)]


def is_number_list(tree: Tree) -> bool:
    """Return whether a part of a tree is a list of numbers only, and so one tensor; an empty list is structure.

    >>> is_number_list([[1, 2], [3, 4]]), is_number_list([]), is_number_list((1, 2))
    (True, False, False)
    """
    return type(tree) is list and bool(tree) and is_tensor_data(tree)


def map_leaves(f: Callable[..., Any], tree: Tree, *others: object, whole: Callable[[Any], bool] | None = None) -> Any:
    """Return the tree with ``f`` of each leaf.

    Further trees must have the same structure and give ``f`` more arguments.

    A part of which ``whole`` is true is a leaf.

    >>> map_leaves(lambda x: x + 1, {"a": 1, "b": [2, (3,)]})
    {'a': 2, 'b': [3, (4,)]}
    """
    if tree is None:
        return None
    parts = None if whole is not None and whole(tree) else branches(tree)
    if parts is None:
        return f(tree, *others)
    more = []
    for other in others:
        its = branches(other)
        if its is None or len(its[0]) != len(parts[0]):
            raise ValueError(f"trees differ: {type(tree).__name__} of {len(parts[0])} against {other!r}")
        more.append(its[0])
    return parts[1]([map_leaves(f, *row, whole=whole) for row in zip(parts[0], *more, strict=True)])


def replace_leaves(tree: Tree, new: list[Any]) -> Any:
    """Return the same tree with the leaves of ``new`` in order.

    >>> replace_leaves({"a": 1, "b": [2, (3,)]}, [4, 5, 6])
    {'a': 4, 'b': [5, (6,)]}
    """
    source = iter(new)
    return map_leaves(lambda _: next(source), tree)
