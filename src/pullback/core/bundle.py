"""Several results of one step: a node that holds them all, and a small node that picks each.

The picks come after their bundle on the tape.  So on the way back every pick that was used has left its cotangent in
the bundle's list before the bundle itself is met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.tape import FLOAT, Step, Tape, add_cotangent, place
from pullback.core.tensor import Tensor

__all__ = ["place_all"]

Back = Callable[[list[Any]], Sequence[Any]]


def place_all(tape: Tape, zs: Sequence[Any], nodes: Sequence[Any], back: Back) -> tuple[Any, ...]:
    """Put one step with the results ``zs`` on the tape, and give a tensor for each.

    ``back`` takes the cotangents of the results, ``None`` for one that was not used, and gives those of ``nodes``;
    a node that is ``None`` is not on the tape.
    """
    if len(zs) == 1:
        return (place(zs[0], tape.meta_of(zs[0]), ONE, nodes, back),)
    bundle = Tensor()
    bundle.meta, bundle.value, bundle.via, bundle.g = tape[FLOAT], len(zs), ALL, None
    bundle.x, bundle.y = nodes, back
    tape.push(bundle)
    return tuple(place(z, tape.meta_of(z), PICK, bundle, i) for i, z in enumerate(zs))


def _spread(nodes: Sequence[Any], back: Back, gs: list[Any]) -> None:
    for node, d in zip(nodes, back(gs), strict=True):
        if node is not None and d is not None:
            add_cotangent(node, d)


def _back_pick(r: Tensor) -> None:
    bundle = r.x
    if bundle.g is None:
        bundle.g = [None] * bundle.value
    bundle.g[r.y] = r.g


ONE = Step(None, None, back=lambda r: _spread(r.x, r.y, [r.g]), needs_z=False)
ALL = Step(None, None, back=lambda r: _spread(r.x, r.y, r.g), needs_z=False)
PICK = Step(None, None, back=_back_pick, needs_z=False)
