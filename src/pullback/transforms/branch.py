"""A branch or step under ``vmap`` that only some examples take: it is run for all, and gives the others no gradient.

Its derivative may be infinite or NaN for the others, and 0 times that is NaN.  So the gradient of every value from
outside, operand or captured, is held back where the example does not take the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import hooks
from pullback.core.op import perform_observed
from pullback.core.tensor import Tensor, iterate_levels, stop_following
from pullback.transforms.batch import is_batched
from pullback.transforms.structured import hold_back_gradient


class Branch(hooks.Observer):
    """The ops of one run of a branch; ``taken`` says for each example whether it takes the branch."""

    events = frozenset({"capture"})
    ops = None

    def __init__(self, taken: Any) -> None:
        self.taken = stop_following(taken)
        self.own: dict[int, Any] = {}  # the tensors that it made, by id; kept, so that ids stay their own
        self.held: dict[int, tuple[Any, Any, Any]] = {}  # from outside: tensor, value, gated tensor
        found = hooks.find("capture")
        self.outer = found if isinstance(found, Branch) else None

    def hold(self, x: Any) -> Any:
        """Return a value with its gradient held back; what the branch made itself as it is."""
        if not isinstance(x, Tensor) or not x.level or x.dtype.kind not in "fc" or id(x) in self.own:
            return x
        x = x.read()
        if id(x) not in self.held or self.held[id(x)][1] is not x.value:  # it may have been written to
            outside = x if self.outer is None else self.outer.hold(x)
            self.held[id(x)] = x, x.value, hold_back_gradient(self.taken, outside)
        return self.held[id(x)][2]

    def capture(self, args: Sequence[Any]) -> list[Any]:
        with hooks.observe(without=Branch):
            held = [self.hold(a) for a in args]
        for x in held:
            for beneath in iterate_levels(x):  # on which the op is performed, too
                self.own[id(beneath)] = beneath
        return held

    def perform(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        with hooks.observe(without=Branch):
            # A shared matrix stays one matrix: it is not copied for each example, but the product is held back.
            shared = [not op.elementwise and isinstance(a, Tensor) and a.level and not is_batched(a) for a in args]
            z = perform_observed(op, [a if on else self.hold(a) for a, on in zip(args, shared, strict=True)], params)
            z = self.hold(z) if any(shared) else z
        return self.keep(z)

    def keep(self, z: Any) -> Any:
        """Note that the branch made these values; return them."""
        for result in z if type(z) is tuple else (z,):
            if isinstance(result, Tensor):
                self.own[id(result)] = result
                if self.outer is not None:
                    self.outer.keep(result)
        return z


def run_for_some(taken: Any, f: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Return ``f(*operands)``, without a gradient for examples of ``vmap`` for which ``taken`` is false."""
    branch = Branch(taken)
    with hooks.observe(branch):
        return f(*operands)
