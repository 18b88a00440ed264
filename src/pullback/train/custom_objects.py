"""Classes and functions of the user's by the names that files of models have for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, TypeVar

from pullback.core.context import bind
from pullback.errors import ArgumentError

Thing = TypeVar("Thing", bound=Callable[..., Any])
_scope: ContextVar[Mapping[str, Any]] = ContextVar("custom_objects", default={})  # noqa: B039
_registered: dict[str, Any] = {}


@contextmanager
def custom_object_scope(custom_objects: Mapping[str, Any] | None) -> Iterator[None]:
    """Let names in files, and those given to layers and ``compile``, mean these classes and functions in a block.

    - custom_objects: classes and functions by name; a scope inside another adds to it.

    >>> with pb.train.custom_object_scope({"double": lambda x: 2 * x}):
    ...     layer = pb.layers.activation("double")
    >>> layer(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    added = {} if custom_objects is None else custom_objects
    if not isinstance(added, Mapping):
        raise ArgumentError(f"custom_objects: expected a dict of classes and functions, got {type(added).__name__}.")
    if wrong := [name for name, one in added.items() if not callable(one)]:
        raise ArgumentError(f"custom_objects: {wrong[0]!r} is neither a class nor a function.")
    with bind(_scope, {**_scope.get(), **added}):
        yield


def register_serializable(package: str = "Custom", name: str | None = None) -> Callable[[Thing], Thing]:
    """Return a decorator that gives a class or function a name by which files have it, and find it.

    - package: what stands before the name, so that those of several packages differ.
    - name: the name; that of the class or function without it.

    >>> @pb.train.register_serializable("shop")
    ... def double(x):
    ...     return 2 * x
    >>> pb.layers.activation("shop>double")(np.array([1.0]))
    array([2.])
    """

    def register(thing: Thing) -> Thing:
        _registered[f"{package}>{name or thing.__name__}"] = thing
        return thing

    return register


def find_custom(name: object) -> Any:
    """Return the class or function that a name means in this scope, or that was registered by it; None if none."""
    if not isinstance(name, str):
        return None
    scope, bare_name = _scope.get(), name.rpartition(">")[2]
    return scope.get(name) or scope.get(bare_name) or _registered.get(name)


def name_custom(thing: Any) -> str | None:
    """Return the name by which a file has a function or class: the registered one, or its own; a lambda has none.

    >>> name_custom(lambda x: x), name_custom(np.clip)
    (None, None)
    """
    for name, registered in _registered.items():
        if registered is thing:
            return name
    is_named = isinstance(thing, FunctionType) and thing.__name__.isidentifier()
    package = (thing.__module__ or "").partition(".")[0] if is_named else ""  # a function of exec may have no module
    return thing.__name__ if is_named and package not in ("pullback", "numpy") else None
