"""Formulas of NumPy's functions as calls of their inner loops, for eager ops in machine code.

A kernel or a rule is run once on ``Traced`` values, which record the ufuncs that it calls.  A formula that does more
than that, such as to read a shape or to choose by a value, has no program; Python computes it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.runtime.abi.eager_code import CALL, OUT, REGISTERS
from pullback.core.formula import UFUNCS

__all__ = ["find_loop", "is_ufunc_known", "trace_program"]

# Where a ufunc has its numbers of arguments, its inner loops with their data, their number, its name and their types.
UFUNC = {"inputs": 16, "arguments": 24, "loops": 32, "data": 40, "count": 48, "name": 56, "types": 64}
OWN = frozenset(UFUNCS.values())  # those of other libraries may raise errors inside of their loops
UNLIKE = frozenset({np.power, np.remainder, np.floor_divide, np.fmod, np.divmod})  # of a number by other code


def _word(place: int) -> int:
    return ctypes.c_int64.from_address(place).value


def _half(place: int) -> int:
    return ctypes.c_int32.from_address(place).value


def is_ufunc_known(ufunc: Any) -> bool:
    """Return whether a ufunc has its inner loops where they are expected."""
    at = id(ufunc)
    counts = _half(at + UFUNC["inputs"]), _half(at + UFUNC["arguments"]), _half(at + UFUNC["count"])
    if counts != (ufunc.nin, ufunc.nargs, ufunc.ntypes):
        return False
    return bool(ctypes.string_at(_word(at + UFUNC["name"])) == ufunc.__name__.encode())


def find_loop(ufunc: Any, types: str) -> tuple[int, int] | None:
    """Return the address and the data of the inner loop for some dtypes, by their letters; None if there is none.

    >>> find_loop(np.add, "dd?") is None
    True
    """
    at, wanted = id(ufunc), bytes(np.dtype(c).num for c in types)
    listed = ctypes.string_at(_word(at + UFUNC["types"]), ufunc.ntypes * ufunc.nargs)
    for i in range(ufunc.ntypes):
        if listed[i * ufunc.nargs : (i + 1) * ufunc.nargs] == wanted:
            return _word(_word(at + UFUNC["loops"]) + 8 * i), _word(_word(at + UFUNC["data"]) + 8 * i)
    return None


class Traced:
    """Stands for an array of a few elements while a formula is recorded."""

    size = 1

    def __init__(self, calls: list[tuple[Any, tuple[Any, ...]]], number: int, dtype: np.dtype[Any]) -> None:
        self.calls, self.number, self.dtype = calls, number, dtype  # a negative number is that of an input

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: object) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature or ufunc not in OWN:
            raise TypeError("only plain calls of functions of elements can be recorded")
        operands = tuple(self._operand(a) for a in args)
        self.calls.append((ufunc, operands))
        return Traced(self.calls, len(self.calls) - 1, self.dtype)

    def _operand(self, a: Any) -> Any:
        if isinstance(a, Traced):
            return a
        if type(a) in (int, float) or (getattr(a, "dtype", None) == self.dtype and not a.shape):
            return np.array(a, self.dtype)
        raise TypeError("only numbers and operands can be recorded")

    def __array_function__(self, *args: object) -> Any:
        raise TypeError("only functions of elements can be recorded")

    def __neg__(self) -> Any:
        return np.negative(self)

    def __bool__(self) -> bool:
        raise TypeError("a formula that chooses is not recorded")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = None  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def _define_sign(name: str, ufunc: Any) -> None:
    setattr(Traced, f"__{name}__", lambda self, other: ufunc(self, other))
    setattr(Traced, f"__r{name}__", lambda self, other: ufunc(other, self))


for _name, _ufunc in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide}.items():
    _define_sign(_name, _ufunc)


def trace_program(formula: Callable[..., Any], inputs: Sequence[int | None], char: str) -> Any:
    """Return the program of a formula, whose arguments are in these registers, as a row of words; None if it has none.

    What it refers to is kept with it.
    """
    dtype = np.dtype(char)
    calls: list[tuple[Any, tuple[Any, ...]]] = []
    try:
        z = formula(*[None if i is None else Traced(calls, -1 - i, dtype) for i in inputs])
    except Exception:  # whatever a formula may raise when given something that is not an array
        return None
    if not isinstance(z, Traced) or (z.number < 0 and z.number != -1):
        return None
    return _assemble(calls, z, char)


def _assemble(calls: list[tuple[Any, tuple[Any, ...]]], z: Traced, char: str) -> Any:
    """Return the words of a program: each call of a loop with the registers of its operands and of its result."""
    last = {a.number: i for i, (_, operands) in enumerate(calls) for a in operands if isinstance(a, Traced)}
    if z.number >= 0 and z.number != len(calls) - 1:
        return None
    places: dict[int, int] = {-1 - i: i for i in range(OUT)}
    free, reads, constants, words = [*range(OUT + 1, REGISTERS)], 0, [], []
    for i, (ufunc, operands) in enumerate(calls):
        loop = find_loop(ufunc, char * (ufunc.nin + 1))
        if loop is None or loop[0] == 0 or ufunc.nin > 2:
            return None
        where = []
        for a in operands:
            if not isinstance(a, Traced):
                constants.append(a)
                where.append(a.ctypes.data)
                continue
            where.append(places[a.number])
            if a.number < 0:
                reads |= 1 << places[a.number]
        used = [a.number for a in operands if isinstance(a, Traced) and a.number >= 0]
        free.extend({places[n] for n in used if last[n] == i})
        if i == len(calls) - 1:
            places[i] = OUT
        elif not free:
            return None
        else:
            places[i] = free.pop()
        words += [*loop, ufunc.nin, where[0], where[-1], places[i]]
        assert len(CALL) == 6
    numbers = int(all(ufunc not in UNLIKE for ufunc, _ in calls))
    if not calls:
        reads = 1
    made = (ctypes.c_int64 * (3 + len(words)))(len(calls), numbers, reads, *words)
    made.constants = constants  # type: ignore[attr-defined]
    return made
