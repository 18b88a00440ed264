"""Programs of eager ops and their rules: the calls of NumPy's inner loops that a formula makes.

``trace_program`` runs a formula once on ``TracedValue`` objects, which record the ufuncs that it calls, and writes the
calls as a row of words (``PROGRAM`` and ``CALL`` of ``eager_records``), which the machine code runs.  A formula that
does anything else, such as to read a shape or to branch on a value, has no program; Python computes it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.runtime.abi.eager_records import CALL, OUT, REGISTERS
from pullback.compiler.runtime.abi.layout import read_half, read_word
from pullback.core.formula import UFUNCS

# Offsets, in bytes, of the fields of a ufunc object (``PyUFuncObject``).
UFUNC = {
    "inputs": 16,  # number of inputs
    "arguments": 24,  # number of inputs and outputs
    "loops": 32,  # address of an array of the addresses of its inner loops, one for each combination of dtypes
    "data": 40,  # address of an array of the data that each loop is called with
    "count": 48,  # number of loops
    "name": 56,  # address of its name
    "types": 64,  # address of the numbers of the dtypes of each loop's arguments
}
RECORDED = frozenset(UFUNCS.values())  # NumPy's own: those of other libraries may raise errors inside their loops
# NumPy computes its scalars by other code, with other numbers
OTHER_FOR_SCALARS = frozenset({np.power, np.remainder, np.floor_divide, np.fmod, np.divmod})


def is_ufunc_known(ufunc: Any) -> bool:
    """Return whether the fields of a ufunc are where ``UFUNC`` has them."""
    at = id(ufunc)
    counts = read_half(at + UFUNC["inputs"]), read_half(at + UFUNC["arguments"]), read_half(at + UFUNC["count"])
    if counts != (ufunc.nin, ufunc.nargs, ufunc.ntypes):
        return False
    return bool(ctypes.string_at(read_word(at + UFUNC["name"])) == ufunc.__name__.encode())


def find_loop(ufunc: Any, types: str) -> tuple[int, int] | None:
    """Return the addresses of the inner loop for some dtypes and of its data; None if there is none.

    ``types`` has the letters of the dtypes of the inputs and of the output.

    >>> find_loop(np.add, "dd?") is None
    True
    """
    at, wanted = id(ufunc), bytes(np.dtype(c).num for c in types)
    listed = ctypes.string_at(read_word(at + UFUNC["types"]), ufunc.ntypes * ufunc.nargs)
    for i in range(ufunc.ntypes):
        if listed[i * ufunc.nargs : (i + 1) * ufunc.nargs] == wanted:
            return read_word(read_word(at + UFUNC["loops"]) + 8 * i), read_word(read_word(at + UFUNC["data"]) + 8 * i)
    return None


class TracedValue:
    """Stands for an array while a formula is recorded: each ufunc called with it is appended to ``calls``."""

    size = 1

    def __init__(self, calls: list[tuple[Any, tuple[Any, ...]]], number: int, dtype: np.dtype[Any]) -> None:
        self.calls = calls
        self.number = number  # the position in ``calls`` of the call that it is the result of; -1 - i for input i
        self.dtype = dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: object) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature or ufunc not in RECORDED:
            raise TypeError("only plain calls of functions of elements can be recorded")
        operands = tuple(self._operand(a) for a in args)
        self.calls.append((ufunc, operands))
        return TracedValue(self.calls, len(self.calls) - 1, self.dtype)

    def _operand(self, a: Any) -> Any:
        """Return a traced value itself, and a number as an array without axes."""
        if isinstance(a, TracedValue):
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


def _define_operator(name: str, ufunc: Any) -> None:
    """Give ``TracedValue`` an operator and its reflected form."""
    setattr(TracedValue, f"__{name}__", lambda self, other: ufunc(self, other))
    setattr(TracedValue, f"__r{name}__", lambda self, other: ufunc(other, self))


for _name, _ufunc in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide}.items():
    _define_operator(_name, _ufunc)


def trace_program(formula: Callable[..., Any], inputs: Sequence[int | None], char: str) -> Any:
    """Return the program of a formula for one dtype, as an array of words; None if it has none.

    ``inputs`` has the register of each argument, None for an argument that is not an array.  The array has an attribute
    ``constants``, which keeps the constants that the program reads.
    """
    dtype = np.dtype(char)
    calls: list[tuple[Any, tuple[Any, ...]]] = []
    try:
        z = formula(*[None if i is None else TracedValue(calls, -1 - i, dtype) for i in inputs])
    except Exception:  # whatever a formula may raise when given something that is not an array
        return None
    if not isinstance(z, TracedValue):
        return None
    passes_first = z.number == -1 and not calls  # the formula returns its first argument unchanged
    return _assemble(calls, char) if passes_first or (z.number >= 0 and z.number == len(calls) - 1) else None


def _assemble(calls: list[tuple[Any, tuple[Any, ...]]], char: str) -> Any:
    """Return the words of a program whose last call gives the result; None if one has no loop or no free register."""
    loops = [find_loop(ufunc, char * (ufunc.nin + 1)) for ufunc, _ in calls]
    registers = _assign_registers(calls)
    if registers is None or any(not loop or not loop[0] for loop in loops) or any(u.nin > 2 for u, _ in calls):
        return None
    constants: list[Any] = []
    reads = 0 if calls else 1
    words: list[int] = []
    for i, (loop, (ufunc, operands)) in enumerate(zip(loops, calls, strict=True)):
        assert loop is not None
        where = []
        for a in operands:
            if not isinstance(a, TracedValue):
                constants.append(a)
                where.append(a.ctypes.data)
                continue
            where.append(registers[a.number])
            if a.number < 0:
                reads |= 1 << registers[a.number]
        words += [*loop, ufunc.nin, where[0], where[-1], registers[i]]
    assert len(words) == len(CALL) * len(calls)
    numbers = int(all(ufunc not in OTHER_FOR_SCALARS for ufunc, _ in calls))
    head = len(calls), numbers, reads  # in the order of PROGRAM
    program = (ctypes.c_int64 * (len(head) + len(words)))(*head, *words)
    program.constants = constants  # type: ignore[attr-defined]
    return program


def _assign_registers(calls: list[tuple[Any, tuple[Any, ...]]]) -> dict[int, int] | None:
    """Return the register of each input and result, by the number of its ``TracedValue``; None if there are too few.

    A register is free again after the last call that reads it, which may itself write to it.
    """
    last_read = {a.number: i for i, (_, operands) in enumerate(calls) for a in operands if isinstance(a, TracedValue)}
    registers = {-1 - i: i for i in range(OUT)}
    free = [*range(OUT + 1, REGISTERS)]
    for i, (_, operands) in enumerate(calls):
        results = [a.number for a in operands if isinstance(a, TracedValue) and a.number >= 0]
        free.extend({registers[n] for n in results if last_read[n] == i})
        if i == len(calls) - 1:
            registers[i] = OUT
        elif not free:
            return None
        else:
            registers[i] = free.pop()
    return registers
