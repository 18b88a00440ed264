"""Several results of one step: a node that holds them all, and a small node that picks each.

The picks come after their bundle on the tape.  So in a backward pass every pick that was used has left its cotangent in
the bundle's list before the bundle itself is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.tape import FLOAT, Step, Tape, place
from pullback.core.tensor import Tensor

Back = Callable[[list[Any]], Sequence[Any]]


def place_all(tape: Tape, zs: Sequence[Any], nodes: Sequence[Any], back: Back) -> tuple[Any, ...]:
    """Put one step with the results ``zs`` on the tape, and return a tensor for each.

    ``back`` takes the cotangents of the results (``None`` for a result that was not used) and returns those of
    ``nodes``; a node that is ``None`` is not on the tape.
    """
    if len(zs) == 1:
        return (place(zs[0], tape.get_meta(zs[0]), ONE, nodes, back),)
    bundle = Tensor()
    bundle.meta, bundle.value, bundle.via, bundle.g = tape[FLOAT], len(zs), ALL, None
    bundle.x, bundle.y = nodes, back
    tape.push(bundle)
    return tuple(place(z, tape.get_meta(z), PICK, bundle, i) for i, z in enumerate(zs))


class Picked(list[Any]):
    """The cotangents of several results, None where there is none yet; ``+`` adds two such lists."""

    def __add__(self, other: Any) -> Any:
        for i, d in enumerate(other):
            if d is not None:
                self[i] = d
        return self


class CustomStep(Step):
    """A step whose cotangents are computed by a user's function, which is in the slot ``y`` of its nodes."""

    __slots__ = ()

    is_custom = True

    def cotangents(self, r: Tensor) -> list[Any]:
        return list(r.y([r.g]))


class BundleStep(CustomStep):
    """A custom step with several results."""

    __slots__ = ()

    def cotangents(self, r: Tensor) -> list[Any]:
        return list(r.y(r.g))


class PickStep(Step):
    """The step from several results to one of them, whose index is in the slot ``y``."""

    __slots__ = ()

    def cotangents(self, r: Tensor) -> list[Any]:
        picked = Picked([None] * r.x.value)
        picked[r.y] = r.g
        return [picked]


ONE, ALL, PICK = CustomStep(None, needs_z=False), BundleStep(None, needs_z=False), PickStep(None, needs_z=False)
