"""PyTorch as the library that runs a graph; the only module that imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compiler.backends.library import Ints, Library
from pullback.numerics.windows import Windows

# NumPy's names of functions that PyTorch calls otherwise.
NAMES = {
    "equal": "eq", "rint": "round", "invert": "bitwise_not", "power": "pow", "concatenate": "cat",
}  # fmt: skip
# Functions that take tensors alone, where a formula may have a number.
MIXING = frozenset({"maximum", "minimum", "logaddexp", "logaddexp2", "arctan2", "hypot", "fmod"})
REDUCTIONS = {"max": "amax", "min": "amin"}


class Torch(Library):
    """PyTorch's functions, op by op."""

    name = "torch"

    def __init__(self, device: Any = None) -> None:
        import torch

        super().__init__(device)
        self.torch, self.xp, self.special = torch, torch, torch.special

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(NAMES.get(name, name))
        if name not in MIXING:
            return found

        def call_with_tensors(*xs: Any) -> Any:  # of tensors and numbers
            like = next(x for x in xs if self.is_own(x))
            return found(*(x if self.is_own(x) else self.torch.full_like(like, x) for x in xs))

        return call_with_tensors

    def enter(self, x: Any) -> Any:
        x = np.ascontiguousarray(x).reshape(np.shape(x))
        return self.torch.from_numpy(x if x.flags.writeable else x.copy()).to(self.device)

    def leave(self, x: Any) -> Any:
        return x.detach().cpu().resolve_conj().resolve_neg().numpy()

    def is_own(self, x: Any) -> bool:
        return isinstance(x, self.torch.Tensor)

    def get_dtype(self, x: Any) -> np.dtype[Any]:
        return np.dtype(str(x.dtype).removeprefix("torch."))

    def _dtype(self, dtype: Any) -> Any:
        return getattr(self.torch, np.dtype(dtype).name)

    def prepare(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def call(values: Any) -> Any:
            with self.torch.no_grad():
                return run(values)

        return call

    def astype(self, x: Any, dtype: Any) -> Any:
        return x.to(self._dtype(dtype))

    def imag(self, x: Any) -> Any:
        return x.imag if x.is_complex() else self.torch.zeros_like(x)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        return self.torch.where(condition, x, y)

    def reduce(self, name: str, x: Any, axes: Ints) -> Any:
        if name == "sum":
            return x.sum(axes, dtype=x.dtype)
        if name in REDUCTIONS:
            return getattr(self.torch, REDUCTIONS[name])(x, axes)
        for axis in sorted(axes, reverse=True):
            x = x.prod(axis, dtype=x.dtype) if name == "prod" else getattr(x, name)(axis)
        return x

    def scan(self, name: str, x: Any, axis: int) -> Any:
        return getattr(self.torch, name)(x, axis, dtype=x.dtype)

    def full(self, shape: Ints, fill: Any, dtype: Any) -> Any:
        return self.torch.full(shape, fill, dtype=self._dtype(dtype), device=self.device)

    def add_at(self, x: Any, index: Any, y: Any) -> Any:
        return x.index_put_(index, y, accumulate=True)

    def permute(self, x: Any, order: Ints) -> Any:
        return x.permute(order)

    def sort_positions(self, x: Any, axis: int, descending: bool) -> Any:
        return self.torch.argsort(x, dim=axis, descending=descending, stable=True)

    def cbrt(self, x: Any) -> Any:
        root = self.torch.sign(x) * self.torch.abs(x) ** (1 / 3)
        better = root - (root - x / (root * root)) / 3  # one step of Newton's: the power is off by a few ulp
        return self.torch.where(self.torch.isfinite(better), better, root)

    def correlate(self, x: Any, filter: Any, windows: Windows) -> Any:
        functions, axes = self.torch.nn.functional, len(windows.size)
        pads = [
            pad
            for before, reach, length in zip(windows.before, windows.reach, x.shape[1:-1], strict=True)
            for pad in (reach - before - length, before)
        ]
        image = functions.pad(x.movedim(-1, 1), pads[::-1])
        kernel = filter.permute(-1, -2, *range(axes))
        convolve = getattr(functions, f"conv{axes}d")
        return convolve(image, kernel, stride=windows.strides, dilation=windows.dilations).movedim(1, -1)

    def pull_back(self, f: Callable[[Any], Any], x: Any, cotangent: Any) -> Any:
        """Return the cotangent of ``x`` for one of ``f(x)``."""
        return self.torch.func.vjp(f, x)[1](cotangent)[0]
