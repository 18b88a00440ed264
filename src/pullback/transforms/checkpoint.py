"""Less memory for more time: a function whose intermediate results are not kept, but computed again on the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import tree
from pullback.core.convert import bare
from pullback.core.interpreter import new_level
from pullback.core.memory import node_of
from pullback.core.tape import Tape, add_cotangent
from pullback.core.variable import Recorder, Variable, Watcher, watching
from pullback.transforms.captured import captured
from pullback.transforms.custom import Call, Customized
from pullback.transforms.customop import Run
from pullback.transforms.forward import Dual

__all__ = ["checkpoint", "recompute_grad"]


class Pinned(Watcher):
    """Gives each variable as it was when the function first ran, as a leaf of the tape of the second run."""

    def __init__(self, tape: Tape, held: dict[int, Any]) -> None:
        super().__init__(tape)
        self.pins = {v: tape.leaf(value) for v, value in held.items()}

    def seen(self, v: Variable, value: Any) -> Any:
        return self.pins.get(id(v), value)


class RecomputedCall(Call):
    """One call of a function that is run again on the way back."""

    follows = True

    def run(self, values: Sequence[Any]) -> Run:
        self.structure, read = self.performed(values)
        return self._returning(self.checked(self.structure, values, read), values, read)

    def traced(self, values: Sequence[Any]) -> Run:
        if not self.below(values):
            return self.run(values)
        with watching(Recorder()) as recorder:  # the lowest level runs it; here nothing is kept
            zs = self.apply(values)
        return self._returning(zs, values, [v for v in recorder.read.values() if v.trainable])

    def _returning(self, zs: tuple[Any, ...], values: Sequence[Any], read: list[Variable]) -> Run:
        held = {id(v): v.read() for v in read}

        def back(dys: list[Any]) -> list[Any]:
            tape = Tape.open()
            try:
                return self._pulled(tape, values, held, dys)
            finally:
                tape.close()

        return Run(zs, back, read)

    def _pulled(self, tape: Tape, values: Sequence[Any], held: dict[int, Any], dys: list[Any]) -> list[Any]:
        leaves = [tape.leaf(v) if v.dtype.kind in "fiubc" else v for v in values]
        with watching(Pinned(tape, held)) as pinned:
            _seed(tape, tree.leaves(self.body(leaves)), dys)
        tape.walk()
        return [node_of(t).g if tape.holds(t) else None for t in [*leaves, *pinned.pins.values()]]

    def lost(self, ds: Sequence[Any], level: int) -> Exception:
        return captured(self.name, "the function", [self.f], level - 1, self.kwargs, ())

    def jvp(self, z: Any, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        number = new_level()
        duals = [p if t is None else Dual(number, bare(p), t) for p, t in zip(primals, tangents, strict=True)]
        out = tree.leaves(self.body(duals))
        return [r.tangent if isinstance(r, Dual) and r.number == number else None for r in out]


def _seed(tape: Tape, results: list[Any], dys: list[Any]) -> None:
    """A function of its own, so that no local holds a big tensor, and so its buffer, while the tape is walked."""
    for z, dy in zip(results, dys, strict=True):
        if tape.holds(z):
            add_cotangent(node_of(z), dy)


class Recomputed(Customized):
    """What ``recompute_grad`` makes."""

    face = "recompute_grad"
    call = RecomputedCall


def recompute_grad(f: Callable[..., Any]) -> Any:
    """``f`` with the same value and gradient, of which only the inputs are kept: the rest is computed again.

    >>> import pullback as pb
    >>> pb.grad(pb.recompute_grad(lambda x: pb.square(pb.square(x))))(2.0)
    32.0
    """
    return Recomputed(f)


checkpoint = recompute_grad
