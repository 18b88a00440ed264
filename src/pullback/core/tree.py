"""Trees (pytrees): nested dicts, lists, tuples, named tuples and dataclasses, whose leaves are arrays and other values.

Other mappings, namespaces, attrs classes, pydantic models and registered classes are structure too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import ndarray

from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError

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


def get_branches(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """Return the children of a node and a function that makes the same node from other children; None for a leaf."""
    t = type(tree)
    if t is list:
        return tree, list
    if t is ndarray or isinstance(tree, Tensor):  # the usual leaves
        return None
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
    node = find_node_type(t)
    return None if node is None else (node.children(tree), lambda new: node.rebuild(tree, new))


def _like_dict(tree: Any, items: Any) -> Any:
    if type(tree) is dict:
        return dict(items)
    result = copy(tree)  # keeps its class, a defaultdict's factory
    for key, value in items:
        result[key] = value
    return result


# ---- other classes that are structure


class NodeType(NamedTuple):
    """How the instances of a class are nodes of a tree."""

    children: Callable[[Any], list[Any]]
    rebuild: Callable[[Any, list[Any]], Any]  # a node like another one, with these children
    names: Callable[[Any], list[str]]  # the Python text that selects each child, after that of the node
    fixed: Callable[[Any], Any]  # what else a node is made of


REGISTERED: dict[type, NodeType] = {}


def find_node_type(t: type) -> NodeType | None:
    """Return how the instances of a class are nodes; None for a class of leaves."""
    return REGISTERED.get(t) or _find_known(t)


@lru_cache(1024)
def _find_known(t: type) -> NodeType | None:
    if issubclass(t, Mapping):
        return NodeType(lambda x: [*x.values()], _like_mapping, lambda x: [f"[{k!r}]" for k in x], lambda x: tuple(x))
    if issubclass(t, SimpleNamespace):
        paths = lambda x: [f".{name}" for name in vars(x)]  # noqa: E731
        return NodeType(lambda x: [*vars(x).values()], _like_namespace, paths, lambda x: tuple(vars(x)))
    if getattr(t, "whole", False):
        return None
    if hasattr(t, "__attrs_attrs__"):
        return _by_fields(tuple(a.name for a in t.__attrs_attrs__))
    fields = getattr(t, "model_fields", None)
    if isinstance(fields, dict) and hasattr(t, "model_copy"):
        return _by_fields(tuple(fields))
    return None


def _like_mapping(tree: Any, new: list[Any]) -> Any:
    result, items = None, dict(zip(tree, new, strict=True))
    try:
        result = type(tree)(items)
    except Exception as error:
        raise _unbuilt_error(type(tree), error) from error
    if type(result) is not type(tree) or [*result] != [*tree]:
        raise _unbuilt_error(type(tree), "it has other keys then")
    return result


def _unbuilt_error(t: type, error: object) -> ArgumentError:
    return ArgumentError(
        f"a {t.__name__} cannot be made of a dict of its items ({error}). Give a dict, or say how it is made: "
        f"pb.register_node({t.__name__}, flatten, unflatten)."
    )


def _like_namespace(tree: Any, new: list[Any]) -> Any:
    result = copy(tree)
    vars(result).update(zip(vars(tree), new, strict=True))
    return result


def _by_fields(names: tuple[str, ...]) -> NodeType:
    """Return the node type of objects whose children are these attributes; validators are not run on tensors."""

    def rebuild(tree: Any, new: list[Any]) -> Any:
        if hasattr(tree, "model_copy"):
            return tree.model_copy(update=dict(zip(names, new, strict=True)))
        result = copy(tree)
        for name, value in zip(names, new, strict=True):
            object.__setattr__(result, name, value)
        return result

    paths = [f".{name}" for name in names]
    return NodeType(lambda tree: [getattr(tree, name) for name in names], rebuild, lambda _: paths, lambda _: names)


def register_node(
    cls: Any,
    flatten: Callable[[Any], tuple[Any, Any]],
    unflatten: Callable[[Any, Any], Any],
) -> Any:
    """Register a class as a node of trees: its children are differentiated, batched and compiled.

    cls: the class; subclasses must be registered separately.
    flatten: a function from an instance to ``(children, aux)``: its tensors, numbers or trees, and other data.
    unflatten: a function from ``(aux, children)`` to an instance.

    >>> import pullback as pb
    >>> class Line:
    ...     def __init__(self, slope, name):
    ...         self.slope, self.name = slope, name
    >>> _ = pb.register_node(Line, lambda x: ([x.slope], x.name), lambda name, children: Line(*children, name))
    >>> pb.grad(lambda line: line.slope**2)(Line(3.0, "a")).slope
    6.0
    """
    if not isinstance(cls, type) or issubclass(cls, Tensor | list | tuple | dict):
        raise ArgumentError(f"register_node: cls must be a class that is no tensor, list, tuple or dict, got {cls!r}.")
    for name, function in (("flatten", flatten), ("unflatten", unflatten)):
        if not callable(function):
            raise ArgumentError(f"register_node: {name} must be a function, got {type(function).__name__}.")

    def take_apart(tree: Any) -> tuple[list[Any], Any]:
        out: Any = flatten(tree)
        if not isinstance(out, tuple) or len(out) != 2:
            raise ArgumentError(
                f"register_node({cls.__name__}): flatten must return (children, aux), got {type(out).__name__}."
            )
        return [*out[0]], out[1]

    REGISTERED[cls] = NodeType(
        lambda tree: take_apart(tree)[0],
        lambda tree, new: unflatten(take_apart(tree)[1], new),
        lambda tree: [f"[{i}]" for i in range(len(take_apart(tree)[0]))],
        lambda tree: take_apart(tree)[1],
    )
    return cls


def leaves(tree: Tree) -> list[Any]:
    """Return the leaves from left to right; ``None`` is no leaf.

    >>> leaves({"a": 1, "b": [2, (3, None)]})
    [1, 2, 3]
    """
    if tree is None:
        return []
    parts = get_branches(tree)
    if parts is None:
        return [tree]
    return [leaf for branch in parts[0] for leaf in leaves(branch)]


def is_number_list(tree: Tree) -> bool:
    """Return whether a part of a tree is a list of numbers only, and so one tensor; an empty list is structure.

    >>> is_number_list([[1, 2], [3, 4]]), is_number_list([]), is_number_list((1, 2))
    (True, False, False)
    """
    return type(tree) is list and bool(tree) and is_tensor_data(tree)


def is_text(x: object) -> bool:
    """Return whether ``x`` is text, which transforms leave unchanged in trees."""
    return isinstance(x, str | bytes)


def map_numbers(f: Callable[[Any], Any], tree: Tree) -> Any:
    """Return the tree with ``f`` of each leaf, where a list that contains only numbers is one leaf; text is kept.

    >>> map_numbers(lambda x: 0, {"w": [1.0, 2.0], "name": "adam", "b": (3.0, None)})
    {'w': 0, 'name': 'adam', 'b': (0, None)}
    """
    if is_tensor_data(tree) or is_text(tree):
        return f(tree)
    return _map_inside(f, tree)


def _map_inside(f: Callable[[Any], Any], tree: Any) -> Any:
    """Return a branch of a tree with ``f`` of each leaf."""
    # The usual cases first, and no keywords: a gradient by a dict of two arrays takes 12 µs, by ``map_leaves`` 20.
    t = type(tree)
    if t is ndarray or t is Tensor:
        return f(tree)
    if t is dict:
        return {key: _map_inside(f, branch) for key, branch in tree.items()}
    if tree is None or is_text(tree):
        return tree
    parts = None if is_number_list(tree) else get_branches(tree)
    return f(tree) if parts is None else parts[1]([_map_inside(f, branch) for branch in parts[0]])


def map_leaves(f: Callable[..., Any], tree: Tree, *others: object, whole: Callable[[Any], bool] | None = None) -> Any:
    """Return the tree with ``f`` of each leaf.

    Further trees must have the same structure; their leaves are further arguments of ``f``.
    A subtree for which ``whole`` returns true is a leaf.

    >>> map_leaves(lambda x: x + 1, {"a": 1, "b": [2, (3,)]})
    {'a': 2, 'b': [3, (4,)]}
    """
    if tree is None:
        return None
    parts = None if whole is not None and whole(tree) else get_branches(tree)
    if parts is None:
        return f(tree, *others)
    more = []
    for other in others:
        other_branches = get_branches(other)
        if other_branches is None or len(other_branches[0]) != len(parts[0]):
            raise ValueError(f"trees differ: {type(tree).__name__} of {len(parts[0])} against {other!r}")
        more.append(other_branches[0])
    return parts[1]([map_leaves(f, *row, whole=whole) for row in zip(parts[0], *more, strict=True)])


def make_builder(tree: Tree, is_hole: Callable[[Any], bool]) -> Callable[[Iterator[Any]], Any]:
    """Return a function that fills the holes of a tree with the items of an iterator, for many calls.

    >>> build = make_builder({"a": 0, "b": [0, (1,)]}, lambda leaf: leaf == 0)
    >>> build(iter([4, 5]))
    {'a': 4, 'b': [5, (1,)]}
    """
    parts = None if tree is None else get_branches(tree)
    if parts is None:
        return next if is_hole(tree) else lambda _: tree
    builders, join = [make_builder(part, is_hole) for part in parts[0]], parts[1]
    return lambda source: join([build(source) for build in builders])


def replace_leaves(tree: Tree, new: list[Any]) -> Any:
    """Return the same tree with the leaves of ``new`` in order.

    >>> replace_leaves({"a": 1, "b": [2, (3,)]}, [4, 5, 6])
    {'a': 4, 'b': [5, (6,)]}
    """
    source = iter(new)
    return map_leaves(lambda _: next(source), tree)
