"""The scale of the loss, so that gradients in float16 neither vanish nor overflow: fixed, or dynamic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.rowsparse import RowSparse
from pullback.core.variable import get_trace
from pullback.train.optim.slots import Slot
from pullback.typing import Value

LOSS_SCALE, FINITE_STEPS = "loss_scale", "finite_steps"  # in state_dict


class LossScale:
    """A factor of the loss, by which gradients are divided again.

    A dynamic one is doubled after ``growth_steps`` steps with finite gradients, and halved where gradients are not
    finite: such a step is skipped.
    """

    def __init__(self, factor: float, growth_steps: int | None) -> None:
        self.factor, self.growth_steps = factor, growth_steps
        self.is_dynamic = growth_steps is not None
        self.is_used = self.is_dynamic or factor != 1.0
        self.current = Slot(np.float64(factor), LOSS_SCALE)
        self.finite_steps = Slot(np.int64(0), FINITE_STEPS)

    def get(self) -> Any:
        """Return the factor now; in a program that is being compiled, what the program reads."""
        if not self.is_dynamic:
            return self.factor
        return self.current.read() if get_trace() is not None else float(self.current.held.value)

    def scale(self, loss: Any) -> Any:
        """Return the loss times the factor, at least in float32."""
        factor, dtype = self.get(), np.promote_types(loss.dtype, np.float32)
        return loss.astype(dtype) * (factor if isinstance(factor, float) else factor.astype(dtype))

    def unscale(self, g: Any) -> Any:
        """Return a gradient divided by the factor, at least in float32."""
        factor, dtype = 1.0 / self.get(), np.promote_types(g.dtype, np.float32)
        wide = (
            g
            if g.dtype == dtype
            else g.with_values(g.values.astype(dtype))
            if isinstance(g, RowSparse)
            else g.astype(dtype)
        )
        return wide * (factor if isinstance(factor, float) else factor.astype(dtype))

    def update(self, finite: Any) -> None:
        """Count a step whose gradients were finite or not; traced if ``finite`` is."""
        if get_trace() is None:
            grows = finite and int(self.finite_steps.held.value) == (self.growth_steps or 0) - 1
            change = 2.0 if grows else 1.0 if finite else 0.5
            self.current.hold(np.float64(self.current.held.value * change))
            count = int(self.finite_steps.held.value) + 1
            self.finite_steps.hold(np.int64(count if finite and not grows else 0))
            return
        count = self.finite_steps.read() + 1
        grows = count == self.growth_steps
        scale = self.current.read()
        self.current.assign(np.where(finite, np.where(grows, scale * 2.0, scale), scale * 0.5))
        self.finite_steps.assign(np.where(finite & ~grows, count, 0).astype(np.int64))


def are_finite(grads: Sequence[Value | RowSparse]) -> Any:
    """Return whether all elements of all gradients are finite; a tensor if they are tensors.

    >>> are_finite([np.ones(2), np.array([1.0, np.inf])])
    False
    """
    found: Any = True
    for g in grads:
        one = np.all(np.isfinite(g.values if isinstance(g, RowSparse) else g))
        found = one if found is True else found & one
    return bool(found) if isinstance(found, np.bool_ | bool) else found
