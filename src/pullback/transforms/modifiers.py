"""Changing what flows back through a function, and leaving its value as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.variable import Variable
from pullback.errors import CustomGradientError
from pullback.transforms.captured import line_of
from pullback.transforms.custom import Customized, NestedCall
from pullback.transforms.customop import Run

__all__ = ["grad_pass_through"]


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
