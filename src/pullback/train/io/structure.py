"""Objects as JSON: their class and constructor arguments; files contain no code, and loading them runs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from pullback.errors import CheckpointError
from pullback.train.custom_objects import find_custom, name_custom

JSON_SCALARS = (bool, int, float, str, type(None))


class Configurable:
    """An object whose constructor arguments are its fields, so that it can be written to a file and made again."""

    registry: ClassVar[dict[str, type[Configurable]]] = {}  # all subclasses by name, the user's too
    registered_name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        other = Configurable.registry.get(cls.__name__)  # a user's class does not replace one of the library
        taken = other is not None and other.__module__ != cls.__module__
        cls.registered_name = f"{cls.__module__}.{cls.__name__}" if taken else cls.__name__
        Configurable.registry[cls.registered_name] = cls

    def get_config(self) -> dict[str, Any]:
        """Return the arguments it was made with."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """Return an object made with these arguments.

        config: the arguments by name, as ``get_config`` returns them.
        """
        return cls(**config)


def is_kind(x: object, name: str) -> bool:
    """Return whether an object is of the class of this name, or one that derives from it.

    >>> is_kind(pb.initializers.ones(), "Initializer")
    True
    """
    return isinstance(x, Configurable.registry.get(name, ()))  # of a class that is not imported there are no objects


def describe(x: Any, where: str, seen: dict[int, tuple[int, Any]] | None = None) -> Any:
    """Return an object as JSON data; ``where`` names it in the error if that is not possible.

    An object that was ``seen`` before, such as a layer used twice, is referred to by its number.

    >>> describe(pb.initializers.constant(0.5), "dense_1")
    {'kind': 'Constant', 'config': {'value': 0.5}}
    >>> describe((1, 2.0), "dense_1")
    {'tuple': [1, 2.0]}
    """
    seen = {} if seen is None else seen
    if isinstance(x, JSON_SCALARS):
        return x
    if isinstance(x, np.generic | np.ndarray):
        return {"array": x.tolist(), "dtype": str(x.dtype)}
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return str(np.dtype(x))
    if isinstance(x, tuple | list):
        items = [describe(item, where, seen) for item in x]
        return items if isinstance(x, list) else {"tuple": items}
    if isinstance(x, dict):
        return {"dict": {str(key): describe(item, f"{where}: {key}", seen) for key, item in x.items()}}
    if isinstance(x, Configurable):
        return _describe_configurable(x, where, seen)
    if (constructor := getattr(x, "constructor", None)) is not None:
        return {"call": constructor[0].__name__, "arguments": [describe(item, where, seen) for item in constructor[1]]}
    if (name := name_custom(x)) is not None:
        return {"function": name}
    raise CheckpointError(
        f"save: {where} is {x!r}, which a file cannot hold: it holds numbers, and names of functions and classes. "
        "Give the function a name, or use a layer class of your own; or write the variables alone: "
        "pb.train.save(path, model)."
    )


def _describe_configurable(x: Configurable, where: str, seen: dict[int, tuple[int, Any]]) -> dict[str, Any]:
    if id(x) in seen:
        return {"same": seen[id(x)][0]}
    name = getattr(x, "name", where)
    config = {key: describe(item, f"{name}: {key}", seen) for key, item in x.get_config().items()}
    seen[id(x)] = len(seen), x
    return {"kind": x.registered_name, "config": config}


def find_function(name: str, where: str) -> Any:
    """Return the function of the user's that a file has by its name; raise an error if it is not known."""
    found = find_custom(name)
    if found is None:
        raise CheckpointError(
            f"load: {where} has a function {name!r}, which is not known here. Give it: custom_objects={{{name!r}: …}}; "
            "or register it: pb.train.register_serializable()."
        )
    return found


def rebuild(data: Any, where: str, makers: Mapping[str, Callable[..., Any]], before: list[Any] | None = None) -> Any:
    """Return the object that ``describe`` described; ``makers`` are the functions that may be called.

    >>> rebuild({"kind": "Constant", "config": {"value": 0.5}}, "model.safetensors", {})
    Constant(value=0.5)
    """
    before = [] if before is None else before  # the objects made so far, in the order of ``describe``
    if isinstance(data, list):
        return [rebuild(item, where, makers, before) for item in data]
    if not isinstance(data, dict):
        return data
    if "array" in data:
        return np.array(data["array"], data["dtype"])[()]
    if "tuple" in data:
        return tuple(rebuild(data["tuple"], where, makers, before))
    if "dict" in data:
        return {key: rebuild(item, where, makers, before) for key, item in data["dict"].items()}
    if "call" in data and data["call"] in makers:
        return makers[data["call"]](*rebuild(data["arguments"], where, makers, before))
    if "same" in data:
        return before[data["same"]]
    if "function" in data:
        return find_function(data["function"], where)
    kind = _find_class(data, where)
    result = kind.from_config({key: rebuild(item, where, makers, before) for key, item in data["config"].items()})
    before.append(result)
    return result


def _find_class(data: dict[str, Any], where: str) -> Any:
    """Return the class of an object that a file describes; raise an error if it is not known."""
    custom = find_custom(data.get("kind"))
    kind = custom if custom is not None else Configurable.registry.get(data.get("kind", ""))
    if kind is None:
        raise CheckpointError(
            f"load_model: {where} has a {data.get('kind') or data.get('call')!r}, which is not known here. Import, or "
            "define, its class before, or give it in custom_objects={...}."
        )
    return kind
