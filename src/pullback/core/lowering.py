"""How an op compiles.  Data and formulas only; ``s`` has NumPy's names for scalar functions, and ``s.select``.

scalar(lambda s, x, y: x * y)         one element of the output from one element of each input: fuses
fold(lambda s, acc, x: acc + x, 0)    a running value over the reduced axes: ends a fused loop
call("gemm")                          a library routine
opaque()                              run the NumPy kernel between compiled pieces (the default)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class scalar:
    def __init__(self, emit: Callable[..., Any]) -> None:
        self.emit = emit


class fold:
    def __init__(self, emit: Callable[..., Any], start: float) -> None:
        self.emit, self.start = emit, start


class call:
    def __init__(self, symbol: str) -> None:
        self.symbol = symbol


class opaque:
    pass


Lowering = scalar | fold | call | opaque
