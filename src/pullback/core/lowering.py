"""How an op compiles: data that the compiler reads.  In formulas ``s`` has NumPy's scalar functions, and ``s.select``.

scalar(lambda s, x, y: x * y)         one element of the output from one element of each input: fuses
fold(lambda s, acc, x: acc + x, 0)    a running value over the reduced axes: ends a fused loop
view()                                the kernel returns a view of its input: no element is computed
made_of(lambda x, axis: ...)          a composition in plain NumPy, which is compiled instead
pieces(lambda shapes, axis: ...)      the inputs side by side (concatenation): the index of each in the result
scan(lambda s, acc, x: acc + x, 0)    a running value along an axis
position("gt")                        the index of the first largest or smallest element along an axis
rows("largest", np.int32)             a function of every row of its arguments, by this name
matrices("cholesky")                  a factorization of, or equations with, the matrices over the last two axes
windows("convolve")                   something done to every window of an image, by this name
call("gemm")                          a library routine
opaque()                              run the NumPy kernel between compiled pieces

Without one, a ufunc of NumPy's is the scalar function of the same name, and any other kernel is opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class scalar:
    """``draws``: the op draws random numbers, by a generator that other array libraries do not have.

    ``is_minor``: what uses the results takes far longer than the op, so that kernels with it are short, not quick.
    ``fits(dtypes, numbers)``: whether machine code exists for arguments of these dtypes, such as ``"f4"``, and values,
    which are None for all but known numbers.  ``function``: the name of the function of machine code that the op is, if
    the op has no formula of its own.
    """

    def __init__(
        self,
        emit: Callable[..., Any],
        draws: bool = False,
        is_minor: bool = False,
        fits: Callable[[Sequence[str], Sequence[Any]], bool] = lambda dtypes, numbers: True,
        function: str = "",
    ) -> None:
        self.emit, self.draws, self.is_minor, self.fits, self.function = emit, draws, is_minor, fits, function


class fold:
    """There is machine code for all dtypes that the compiler has."""

    def __init__(self, emit: Callable[..., Any], start: float) -> None:
        self.emit, self.start = emit, start


class view:
    """``put(base, value, **params)`` returns the base with a value written into its view; None for a read-only view.

    By default every element of the base is in the view once, and the op's own adjoint maps the value to the base.
    ``is_view(**params)``: whether NumPy returns a view and not a copy; ``by_layout``: whether this also depends on the
    layout of the elements in memory.  ``is_array(**params)``: whether a result without axes is an array, not a number.
    """

    def __init__(
        self,
        put: Callable[..., Any] | str | None = "adjoint",
        is_view: Callable[..., bool] = lambda **params: True,
        by_layout: bool = False,
        is_array: Callable[..., bool] = lambda **params: True,
    ) -> None:
        self.put, self.is_view, self.by_layout, self.is_array = put, is_view, by_layout, is_array


class made_of:
    def __init__(self, formula: Callable[..., Any]) -> None:
        self.formula = formula


class pieces:
    """``fill`` is the number between the pieces, or the name of the parameter that has it."""

    def __init__(self, places: Callable[..., Any], fill: float | str = 0) -> None:
        self.places, self.fill = places, fill


class scan:
    """Each value is computed from the previous one and an element of each input.

    The first value is the last input's first element, or ``start`` if the op's parameter ``exclusive`` is True.
    ``regroups``: partial results may be computed separately and combined, as those of sums.
    """

    def __init__(self, emit: Callable[..., Any], start: float, regroups: bool = False) -> None:
        self.emit, self.start, self.regroups = emit, start, regroups


class position:
    """``word`` is the comparison of a better element with the best one so far: ``gt`` or ``lt``."""

    def __init__(self, word: str) -> None:
        self.word = word


class rows:
    """``dtype`` is that of the result; ``fits(shapes, **params)``: whether machine code exists for these arguments."""

    def __init__(self, symbol: str, dtype: Any, fits: Callable[..., bool] = lambda shapes, **params: True) -> None:
        self.symbol, self.dtype, self.fits = symbol, dtype, fits


class matrices:
    """``fails``: the kernel treats some matrices, such as singular ones, in another way or raises for them.

    Machine code gives NaN for these, and NumPy runs the program again.
    """

    def __init__(self, symbol: str, fails: bool = True) -> None:
        self.symbol, self.fails = symbol, fails


class windows:
    def __init__(self, symbol: str) -> None:
        self.symbol = symbol


class call:
    def __init__(self, symbol: str) -> None:
        self.symbol = symbol


class opaque:
    pass


def lower_kernel(kernel: Callable[..., Any]) -> scalar | opaque:
    """Return how an op without ``lower`` compiles: as the function of its name if it is a ufunc, else not at all."""
    if isinstance(kernel, np.ufunc) and getattr(np, kernel.__name__, None) is kernel:
        return scalar(lambda s, *xs: getattr(s, kernel.__name__)(*xs), function=kernel.__name__)
    return opaque()


Lowering = scalar | fold | view | made_of | pieces | scan | position | rows | matrices | windows | call | opaque
