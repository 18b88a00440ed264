"""Machine code for small eager ops and for the backward pass, used once a process has recorded enough nodes.

The compiler imports this package, not the other way round: ``late_binding.load_native_ops`` returns a machine or None.
Machine code that is in the disk cache is loaded early; it is compiled only for a process that records many nodes.
Every function has a version in Python, which is used where machine code finds unusual operands.
"""

from __future__ import annotations

import sys
import warnings
from threading import RLock
from typing import Any

from pullback import late_binding
from pullback.settings import is_enabled

NODES_TO_LOAD = 1000  # nodes in backward passes until machine code is looked up in the disk cache
NODES_TO_COMPILE = 10000  # the same until it is compiled

machine: Any = None  # with ``walk(nodes)``, ``make_op(op)`` and ``describe_step(step)``
built: list[Any] = []  # ops whose functions were built already, which are built again to use the machine
_counts = {"seen": 0, "next": NODES_TO_LOAD}
_loaded: list[Any] = []  # the machine, which stays when it is stopped: tensors may refer to it
_lock = RLock()


def count_nodes(count: int) -> None:
    """Count the nodes of a backward pass, until there are enough to look for machine code."""
    _counts["seen"] += count
    if _counts["seen"] >= _counts["next"]:
        start(_counts["seen"] >= NODES_TO_COMPILE)


def start(compiles: bool = True) -> bool:
    """Use machine code from now on, if there is any for this interpreter; return whether it is used."""
    global machine
    with _lock:
        if machine is not None:
            return True
        _counts["next"] = sys.maxsize if compiles else NODES_TO_COMPILE
        if not (compiles or _loaded or is_enabled("disk cache")):  # nowhere to look it up
            return False
        if not _loaded and is_enabled("native ops") and (found := _load(compiles)) is not None:
            _loaded.append(found)
        if not _loaded:
            return False
        machine = _loaded[0]
        for op in [*built]:
            op.build_native()
        return True


def _load(compiles: bool) -> Any:
    """Return the machine; None, with a warning, if it cannot be made: gradients are then computed in Python.

    With ``compiles`` it is compiled if it is not in the disk cache.
    """
    try:
        return late_binding.load_native_ops(compiles)
    except (OSError, RuntimeError, ValueError) as error:
        warnings.warn(
            f"small ops are run in Python, which is right but slower: their machine code could not be made ({error}).",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def stop() -> None:
    """Run everything in Python again."""
    global machine
    with _lock:
        machine = None
        for op in [*built]:
            op.build_native()


def give_nothing(*args: object) -> None:
    """Return None, as the machine code of an op that is observed: Python performs the op."""
