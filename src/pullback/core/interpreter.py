"""Who performs an op: the argument of the highest level.

Every transform in progress has a level, later ones higher.  Arguments of lower levels are constants to it, kept as
they are, so whatever a lower transform must see happens when the op is performed one level down.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from pullback.core.tensor import Tensor

_levels = count(1)
new_level = _levels.__next__


def latest_level() -> int:
    """The level of the transform that was begun last, in any thread."""
    return int(repr(_levels)[6:-1]) - 1  # a count says where it is only in its text


def dispatch(op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Perform ``op`` on anything: tensors of any level, variables, arrays, numbers, lists."""
    top, level, settled = None, -1, True
    for a in args:
        if isinstance(a, Tensor):
            if a.refers:  # a variable: what it holds, for whoever is watching
                settled = False
            else:
                its = a.level
                if its > level:
                    top, level = a, its
                if not its and not a.meta.raw:  # its inner tape is closed: what it holds
                    settled = False
        elif isinstance(a, list | tuple):
            settled = False
    if not settled:  # from the start: what was read may go the quick way
        return op.settled(args, params)
    if top is None:
        return op.perform(args, params)
    return top.interpret(op, tuple(args), params)


def level_of(x: Any) -> int:
    """The level of a tensor; arrays and numbers are of level 0."""
    return x.read().level if isinstance(x, Tensor) else 0
