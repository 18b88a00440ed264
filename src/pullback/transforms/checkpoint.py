"""Checkpointing: functions whose intermediate results are not kept, but computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pullback.core import tree
from pullback.core.convert import unwrap_constant
from pullback.core.hooks import observe_calls
from pullback.core.interpreter import new_level
from pullback.core.memory import BufferPool, Large, node_of
from pullback.core.tape import Tape
from pullback.core.tensor import ARRAYS
from pullback.core.variable import HeldValues, Recorder, Variable, Watcher, watch_below, watch_variables
from pullback.transforms.arguments import Arguments, AsIs, mark, restore_marked
from pullback.transforms.captured import make_capture_error
from pullback.transforms.custom import Customized
from pullback.transforms.custom_call import CustomCall
from pullback.transforms.custom_op import Back, BodyRun
from pullback.transforms.forward import Dual
from pullback.transforms.session import open_tape, pull

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor

MAX_KEPT_INPUTS = 12  # inputs of a chain of calls that are kept in any case


class Noted(Recorder):
    """Records which variables are read, and the value of each when it was first read."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[int, Any] = {}

    def on_read(self, v: Variable, value: Tensor) -> Any:
        self.first.setdefault(id(v), value)
        return super().on_read(v, value)

    @property
    def trainable(self) -> list[Variable]:
        return [v for v in self.read.values() if v.trainable]


class Pinned(Watcher):
    """Makes variables read as in the first run of the function, trainable ones as leaves of the second run's tape."""

    def __init__(self, tape: Tape, noted: Noted) -> None:
        super().__init__(tape)
        self.pins = {id(v): tape.make_leaf(noted.first[id(v)]) for v in noted.trainable}
        self.fixed = noted.first

    def on_read(self, v: Variable, value: Tensor) -> Any:
        return self.pins.get(id(v), self.fixed.get(id(v), value))


class Rematerialize:
    """The backward pass of one call: runs the function again on its inputs, which may have to be computed again, too.

    In a chain of n wrapped functions, each of which takes the large result of the one before, only about the square
    root of n inputs are kept, at equal distances; the others are computed again in the backward pass.
    """

    previous: Rematerialize | None = None
    at = number = 0  # which input is the result of the previous call; the number of calls before this one
    stride = 1
    dropped = False

    def __init__(self, call: RecomputedCall, values: Sequence[Any], noted: Noted) -> None:
        self.call, self.values, self.noted = call, list(values), noted

    def __call__(self, dys: list[Any]) -> list[Any]:
        try:
            with open_tape() as tape:
                for m in tape.values():
                    if type(m.pool) is BufferPool:
                        m.pool.wanted = 0  # keep no buffers on account of earlier calls on the tape
                return self.call.pull_back(tape, self._recover_values(), self.noted, dys)
        finally:
            if self.dropped:
                self.drop()

    def follow(self, previous: Rematerialize, at: int) -> None:
        """Record that input ``at`` is the result of the previous call, and drop inputs that need not be kept."""
        self.previous, self.at, self.number, self.stride = previous, at, previous.number + 1, previous.stride
        if self.number > self.stride * (4 * self.stride + MAX_KEPT_INPUTS):
            self.stride *= 2
            link: Rematerialize | None = previous
            while link is not None and link.previous is not None:
                link.drop_unless(self.stride)
                link = link.previous
        self.drop_unless(self.stride)

    def drop_unless(self, stride: int) -> None:
        if self.number % stride:
            self.drop()

    def drop(self) -> None:
        self.values[self.at], self.dropped = None, True

    def _recover_values(self) -> list[Any]:
        path, link = [], self
        while link.previous is not None and link.values[link.at] is None:
            path.append(link)
            link = link.previous
        for later in reversed(path):
            later.values[later.at] = link._result()
            link = later
        return self.values

    def _result(self) -> Any:
        with watch_below(0), watch_variables(HeldValues(self.noted.first)):
            return unwrap_constant(tree.leaves(self.call.body(self.values))[0])


class RecomputedCall(CustomCall):
    """One call of a function that is run again in the backward pass."""

    follows = True
    ran = False

    def body(self, values: Sequence[Any]) -> Any:
        again, self.ran = self.ran, True
        filled = self.arguments.fill(values)
        if self.arguments.has_no_tree:
            return self.f(*filled)
        *args, named = restore_marked(filled, again)
        return self.f(*args, **named)

    def run(self, values: Sequence[Any]) -> BodyRun:
        with watch_variables(Noted()) as noted:
            self.structure = self.body(values)
        return BodyRun(self.results_in(self.structure), Rematerialize(self, values, noted), noted.trainable)

    def run_traced(self, values: Sequence[Any]) -> BodyRun:
        if not self.below(values):
            return self.run_checked(values)
        with watch_variables(Noted()) as noted:  # the lowest level runs it; here nothing is kept
            zs = self.apply(values)
        noted.first = {k: v.read() for k, v in noted.read.items()}  # as this level sees them, and not the lowest
        return BodyRun(zs, Rematerialize(self, values, noted), noted.trainable)

    def record(self, tape: Tape, args: Sequence[Any], values: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        zs = super().record(tape, args, values, params)
        if len(zs) == 1 and type(zs[0]) is Large:
            again = _find_rematerialize(zs[0])
            links = [(_find_rematerialize(a), i) for i, a in enumerate(args) if type(a) is Large and tape.holds(a)]
            chained = [(link, i) for link, i in links if link is not None]
            if again is not None and chained:
                again.follow(*chained[0])
        return zs

    def pull_back(self, tape: Tape, values: Sequence[Any], noted: Noted, dys: list[Any]) -> list[Any]:
        leaves = [tape.make_leaf(v) if v.dtype.kind in "fiubc" else v for v in values]
        with watch_variables(Pinned(tape, noted)) as pinned:
            results = [unwrap_constant(z) for z in tree.leaves(self.body(leaves))]
        return pull(tape, results, dys, [*leaves, *pinned.pins.values()])

    def make_lost_error(self, ds: Sequence[Any], level: int) -> Exception:
        return make_capture_error(self.name, "the function", [self.f], level - 1, {}, ())

    def transposable(self, back: Back, xs: Sequence[Any], zs: Sequence[Any], dys: list[Any]) -> Sequence[Any]:
        return back(dys)  # the steps inside are looked at one by one

    def jvp(
        self, z: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        number = new_level()
        duals = [
            p if t is None else Dual(number, unwrap_constant(p), t) for p, t in zip(primals, tangents, strict=True)
        ]
        out = [unwrap_constant(z) for z in tree.leaves(self.body(duals))]
        return [r.tangent if isinstance(r, Dual) and r.number == number else None for r in out]


def _find_rematerialize(t: Tensor) -> Rematerialize | None:
    """Return the backward pass of the wrapped call that a large tensor is the only result of, or None."""
    back = getattr(getattr(node_of(t), "y", None), "back", None)
    return back if isinstance(back, Rematerialize) else None


class Recomputed(Customized):
    """The function that ``recompute_grad`` returns."""

    face = "recompute_grad"
    call = RecomputedCall

    @observe_calls("function")
    def __call__(self, *args: object, **kwargs: object) -> Any:
        if not kwargs and all(isinstance(a, ARRAYS) for a in args):
            return self.outcome(Arguments(args), {})
        named = tree.map_leaves(lambda leaf: leaf if isinstance(leaf, ARRAYS) else AsIs(leaf), kwargs)
        return self.outcome(Arguments([*map(mark, args), named]), {})


def recompute_grad(f: Callable[..., Any]) -> Any:
    """Return ``f`` with gradient checkpointing: only its inputs are kept, the rest is computed again.

    Intermediate results are not held in memory until the backward pass, where ``f`` runs a second time.  Of a chain of
    100 layers in 10 parts, each of them wrapped, 10 inputs are kept and the results inside one part at a time:

    >>> import numpy as np, pullback as pb
    >>> def part(x, layers=10):
    ...     for _ in range(layers):
    ...         x = pb.sin(x) * x + 1
    ...     return x
    >>> def chain(x, part):
    ...     for _ in range(10):
    ...         x = part(x)
    ...     return pb.sum(x)
    >>> x = np.linspace(0, 1, 5)
    >>> again = pb.recompute_grad(part)
    >>> np.allclose(pb.grad(lambda x: chain(x, again))(x), pb.grad(lambda x: chain(x, part))(x))
    True

    If each of many layers on big arrays is wrapped by itself, not even all their inputs are kept, but about the square
    root of as many, a few times.  Wrapped functions nest: each half of a chain wrapped, and each half of that, keeps as
    many arrays as the logarithm of its length.  Any order, forward mode and ``vmap`` work as without it.

    Arguments and results may be trees; arrays in keyword arguments are inputs too.  Whole numbers, text and the like
    are passed on as they are.  Variables have, on the second run, the values of the first.  Random ops draw the same
    again if they have a seed, or a ``numpy.random.Generator`` that is an argument of ``f``; with neither they draw
    anew, and the gradient is not that of the value.
    """
    return Recomputed(f)


checkpoint = recompute_grad
