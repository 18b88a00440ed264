"""What a file can say of an object: its kind and its arguments, as JSON.  No code is in it, and none is run by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from pullback.errors import CheckpointError

__all__ = ["Made", "built", "described"]

PLAIN = (bool, int, float, str, type(None))


class Made:
    """What is made of arguments that are its fields, and can be made again of them."""

    kinds: ClassVar[dict[str, type[Made]]] = {}  # by the names of the classes: those of a program are found too
    known_as: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        other = Made.kinds.get(cls.__name__)  # a class of yours does not take the place of one of ours
        taken = other is not None and other.__module__ != cls.__module__
        cls.known_as = f"{cls.__module__}.{cls.__name__}" if taken else cls.__name__
        Made.kinds[cls.known_as] = cls

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """The same made again."""
        return cls(**config)


def described(x: Any, where: str, seen: dict[int, tuple[int, Any]] | None = None) -> Any:
    """``x`` as JSON can say it; ``where`` is for the error if it cannot.

    What was ``seen`` before, such as a layer that is used in two places, is told of by its number.

    >>> described(pb.initializers.constant(0.5), "dense_1")
    {'kind': 'Constant', 'config': {'value': 0.5}}
    >>> described((1, 2.0), "dense_1")
    {'tuple': [1, 2.0]}
    """
    seen = {} if seen is None else seen
    if isinstance(x, PLAIN):
        return x
    if isinstance(x, np.generic | np.ndarray):
        return {"array": x.tolist(), "dtype": str(x.dtype)}
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return str(np.dtype(x))
    if isinstance(x, tuple | list):
        inside = [described(one, where, seen) for one in x]
        return inside if isinstance(x, list) else {"tuple": inside}
    if isinstance(x, dict):
        return {"dict": {str(key): described(one, f"{where}: {key}", seen) for key, one in x.items()}}
    if isinstance(x, Made):
        if id(x) in seen:
            return {"same": seen[id(x)][0]}
        name = getattr(x, "name", where)
        config = {key: described(one, f"{name}: {key}", seen) for key, one in x.get_config().items()}
        seen[id(x)] = len(seen), x
        return {"kind": x.known_as, "config": config}
    if (made := getattr(x, "made", None)) is not None:
        return {"call": made[0].__name__, "arguments": [described(one, where, seen) for one in made[1]]}
    raise CheckpointError(
        f"save: {where} is {x!r}, which a file cannot hold: it holds numbers, and names of what pullback has. "
        "Use a name, or a layer class of your own; or write the variables alone: pb.train.save(path, model)."
    )


def built(said: Any, where: str, makers: Mapping[str, Callable[..., Any]], before: list[Any] | None = None) -> Any:
    """What ``described`` told of; ``makers`` are the functions that may be called.

    >>> built({"kind": "Constant", "config": {"value": 0.5}}, "model.safetensors", {})
    Constant(value=0.5)
    """
    before = [] if before is None else before  # what was made, in the order of ``described``
    if isinstance(said, list):
        return [built(one, where, makers, before) for one in said]
    if not isinstance(said, dict):
        return said
    if "array" in said:
        return np.array(said["array"], said["dtype"])[()]
    if "tuple" in said:
        return tuple(built(one, where, makers, before) for one in said["tuple"])
    if "dict" in said:
        return {key: built(one, where, makers, before) for key, one in said["dict"].items()}
    if "call" in said and said["call"] in makers:
        return makers[said["call"]](*[built(one, where, makers, before) for one in said["arguments"]])
    if "same" in said:
        return before[said["same"]]
    kind = Made.kinds.get(said.get("kind", ""))
    if kind is None:
        raise CheckpointError(
            f"load_model: {where} has a {said.get('kind') or said.get('call')!r}, which is not known here. Import, or "
            "define, its class before."
        )
    made = kind.from_config({key: built(one, where, makers, before) for key, one in said["config"].items()})
    before.append(made)
    return made
