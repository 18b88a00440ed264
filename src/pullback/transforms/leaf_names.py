"""Names of arguments, and of the leaves of trees among them, for error messages and reports."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.core import tree
from pullback.core.tensor import ARRAYS


def name_all_leaves(name: str, x: object) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree, ``None`` included, each with the expression that selects it (``x['w'][0]``)."""
    parts = tree.get_branches(x)
    if parts is None:
        yield name, x
        return
    for key, branch in zip(list_keys(x, len(parts[0])), parts[0], strict=True):
        yield from name_all_leaves(name + key, branch)


def is_leaf(x: object) -> bool:
    """Return whether ``x`` is one tensor and no tree: an array, a number, or a list of numbers only."""
    return isinstance(x, ARRAYS) or (x is not None and tree.is_tensor_data(x))


def name_leaves(name: str, x: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree, each with the expression that selects it; a list of numbers is one leaf."""
    parts = None if x is None or is_leaf(x) or tree.is_number_list(x) else tree.get_branches(x)
    if parts is None:
        if x is not None:
            yield name, x
        return
    for key, branch in zip(list_keys(x, len(parts[0])), parts[0], strict=True):
        if not tree.is_text(branch):
            yield from name_leaves(name + key, branch)


def list_names(names: Sequence[str], xs: Sequence[Any]) -> list[str]:
    """Return the expressions that select the leaves of several arguments."""
    found = []
    for name, x in zip(names, xs, strict=True):
        found += [name] if x is None else [path for path, _ in name_leaves(name, x)]
    return found


def name_input(error: Exception, face: str, names: Sequence[str], xs: Sequence[Any], i: int) -> Exception:
    """Return an error about the leaf ``i`` of the arguments, with its name."""
    found = list_names(names, xs)
    which = f" (input {i + 1} of {len(found)})" if len(found) > 1 else ""
    return type(error)(f"{face}: argument {found[i]}{which}: {str(error).removeprefix(f'{face}: ')}")


def list_keys(x: object, count: int) -> list[str]:
    """Return the expressions that select the branches of a tree."""
    if isinstance(x, dict):
        return [f"[{k!r}]" for k in x]
    node = tree.find_node_type(type(x))
    if node is not None:
        return node.names(x)
    fields = getattr(x, "_fields", None) or [k for k, f in getattr(x, "__dataclass_fields__", {}).items() if f.init]
    return [f".{k}" for k in fields] or [f"[{i}]" for i in range(count)]


def list_parameter_names(f: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first ``count`` positional parameters."""
    names: list[str] = []
    try:
        for p in inspect.signature(f).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
            elif p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD:
                names.append(p.name)
    except (TypeError, ValueError):  # no signature to be had
        pass
    return [*names, *(f"input {i + 1}" for i in range(len(names), count))][:count]
