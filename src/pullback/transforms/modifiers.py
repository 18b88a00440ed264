"""What flows back, changed, and the value left as it is: nothing at all, or everything as it came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from pullback.core.tape import RAW, TAPED, as_tensor, constant
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, watched_below
from pullback.errors import CustomGradientError
from pullback.transforms.captured import line_of
from pullback.transforms.custom import Customized, NestedCall
from pullback.transforms.customop import Run

__all__ = ["grad_pass_through", "stop_gradient"]


def stop_gradient(x: Any) -> Any:
    """The value of ``x``, which no transform follows any further.

    >>> import pullback as pb
    >>> pb.grad(lambda x: pb.stop_gradient(x) * x)(3.0)
    3.0
    """
    if not isinstance(x, Tensor):
        return x if isinstance(x, RAW) else constant(x)
    if isinstance(x, Variable):
        with watched_below(inf, above=0):  # those who only note what is read do not count this
            x = x.read()
    while isinstance(x, Tensor) and (x.level or isinstance(x.beneath(), Tensor)):
        if type(x) in TAPED and x.level:
            x.meta.tape.cut("stop_gradient")
        x = x.beneath()
    return as_tensor(x)


class PassedCall(NestedCall):
    """One call of a function that gradients pass as if it were not there."""

    def body(self, values: Sequence[Any]) -> Any:
        return super().body(values), _as_they_came

    def gradient(self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Any, read: list[Variable]) -> Run:
        given, got = ([v.shape for v in group] for group in (values, zs))
        if given != got:
            raise CustomGradientError(
                f"{self.name}: gradients pass through, so f must return what has the shapes of its inputs: "
                f"expected {given}, got {got} ({line_of(self.f)})."
            )
        return super().gradient(values, zs, grad_func, read)


def _as_they_came(*dys: Any, variables: Any = None) -> Any:
    return dys if variables is None else (dys, [None] * len(variables))


class PassedThrough(Customized):
    """What ``grad_pass_through`` makes."""

    face = "grad_pass_through"
    call = PassedCall


def grad_pass_through(f: Callable[..., Any]) -> Any:
    """``f`` with its value and the gradient of the identity.

    >>> import pullback as pb
    >>> pb.value_and_grad(pb.grad_pass_through(lambda x: pb.floor(x)))(2.7)
    ValueAndGrad(value=2.0, grad=1.0)
    """
    return PassedThrough(f)
