"""CuPy as the library that runs a graph, on a GPU; the only module that imports it."""

from __future__ import annotations

from typing import Any

from pullback.compiler.backends.library import Library


class Cupy(Library):
    """CuPy's functions, op by op: they have NumPy's names."""

    name = "cupy"

    def __init__(self, device: Any = None) -> None:
        import cupy
        import cupyx.scipy.special

        super().__init__(device)
        self.xp, self.special = cupy, cupyx.scipy.special

    def enter(self, x: Any) -> Any:
        with self.xp.cuda.Device(self.device or 0):
            return self.xp.asarray(x)

    def leave(self, x: Any) -> Any:
        return self.xp.asnumpy(x)
