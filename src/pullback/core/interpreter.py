"""Dispatch: an op is performed by its argument of the highest level.

Every transform in progress has a level, later ones higher.  Arguments of lower levels are constants for it and stay
tensors, so a lower transform sees them when the op is performed one level down.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from numpy import float32, float64, generic, ndarray

from pullback import late_binding
from pullback.core.memory import Large
from pullback.core.tensor import OBJECT, Tensor
from pullback.core.weak import WEAK_TYPES, Weak, are_numbers, is_weak, weaken, weaken_value

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Value

# types that NumPy computes with directly, besides its other scalars
PLAIN_VALUES = frozenset({ndarray, float64, float32, float, int, bool, complex})

new_level = count(1).__next__


def dispatch(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Perform ``op`` on anything: tensors of any level, variables, arrays, numbers, lists."""
    # Not split: with the loop in a function of its own, variable + array takes 1.03 times as long (1.5 µs).
    top, level, is_plain, is_read, is_watched = None, -1, True, True, False
    for a in args:
        if isinstance(a, Tensor):
            if a.refers:  # a variable: the value it holds, or the tensor of a tape that watches it
                is_read = False
                if type(a) is Weak:  # which takes the dtype of the others
                    is_plain = False
            else:
                own_level = a.level
                if own_level > level:
                    top, level = a, own_level
                if type(a) is Large and a.meta.pool is None:
                    is_watched = True
                if not own_level and not a.meta.raw:  # its inner tape is closed: what it holds
                    is_read = False
        elif type(a) is ndarray:
            if a.dtype is OBJECT:  # which NumPy makes of traced numbers
                is_plain = False
        elif type(a) not in PLAIN_VALUES and (type(a) in WEAK_TYPES or not isinstance(a, generic)):
            is_plain = False  # lists, weak numbers, and arrays of other libraries
    if not is_plain:
        return op.prepare_call(args, params)
    if not is_read:  # from the start: what was read may go the quick way
        return op.call([a.read() if isinstance(a, Tensor) else a for a in args], params)
    if is_watched and not op.makes_views:  # a tensor that a GradientTape watches stands for its node: the quick way
        nodes = [_get_node(a) for a in args]
        if not any(type(a) is Large for a in nodes):
            return op.call(nodes, params)
    if top is None:
        z = op.perform(args, params)
        return weaken_value(z) if are_numbers(args) else z
    z = top.interpret(op, tuple(args), params)
    if op.makes_views:
        return late_binding.note_view(z, args[0], op, params)
    numbers = top.stands_for_numbers or op.chooses or type(args[-1]) is float or type(args[0]) is float
    return weaken(z) if numbers and is_weak(op, args) else z


def _get_node(a: Any) -> Any:
    """Return the node that a watched tensor stands for, unless it was written to; anything else as it is."""
    return a.x if type(a) is Large and a.meta.pool is None and a.value is a.x.value else a


def level_of(x: Value | None) -> int:
    """Return the level of a tensor; arrays and numbers are of level 0."""
    if type(x) is Tensor:  # without calls: a custom gradient comes here a dozen times
        m = x.meta
        level: int = m.tape.level
        if level or m.raw:
            return level
    return x.read().level if isinstance(x, Tensor) else 0
