"""The memory layout of CPython's and NumPy's objects that machine code reads, and the check that it holds here."""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

# Offsets of fields from the beginning of an object, in bytes; the text of the native entry has these names in it.
OFFSETS = {
    "TYPE": 8,
    "SIZE": 16,  # the length of a list, tuple or dict
    "LIST_ITEMS": 24,  # a pointer to the items
    "TUPLE_ITEMS": tuple.__basicsize__,  # the items themselves
    "BYTES_DATA": 32,
    "NUMBER": 16,  # the value of a Python float or of a NumPy scalar
    "ARRAY_DATA": 16,
    "ARRAY_RANK": 24,
    "ARRAY_SHAPE": 32,
    "ARRAY_STRIDES": 40,
    "ARRAY_BASE": 48,
    "ARRAY_DTYPE": 56,
    "ARRAY_FLAGS": 64,
    "ARRAY_HANDLER": 88,  # the capsule of its memory handler
    "DTYPE_ORDER": 26,
    "DTYPE_NUMBER": 28,
}

C_CONTIGUOUS, F_CONTIGUOUS, OWNS_DATA, ALIGNED, WRITEABLE = 1, 2, 4, 256, 1024  # NumPy's flags of arrays


class Method(ctypes.Structure):
    """CPython's record of a built-in function (``PyMethodDef``)."""

    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


LOWEST = 1 << 16  # the lowest address that a process has
TUPLE_HAS_HASH = tuple.__basicsize__ > 24  # from Python 3.14 on, a tuple stores its hash in the word before the items


@lru_cache(1)
def numpy_functions() -> Any:
    """Return the table of addresses of NumPy's C API."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))  # type: ignore[attr-defined]


@lru_cache(1)
def is_layout_known() -> bool:
    """Return whether machine code may read objects directly; warn if an object has an unexpected layout."""
    if sys.implementation.name != "cpython" or sys.platform == "win32" or not _has_gil():
        return False  # not supported: nothing to warn of
    mismatch = find_mismatch()
    if mismatch is not None:
        warnings.warn(
            f"Python {sys.version.split()[0]} with NumPy {np.__version__} does not have {mismatch} where it should be: "
            "compiled programs are called through ctypes, which is right but slower.",
            RuntimeWarning,
            stacklevel=2,
        )
    return mismatch is None


def choose_address() -> Callable[[Any], int]:
    """Return the function that gives the address of an array's elements."""
    return read_address if is_layout_known() else get_address


def get_address(a: Any) -> int:
    """Return the address of an array's elements, as NumPy tells it."""
    return int(a.ctypes.data)


def read_address(a: Any) -> int:
    """Return the address of an array's elements, read from the array object's memory: in a fifth of NumPy's time."""
    return ctypes.c_int64.from_address(id(a) + OFFSETS["ARRAY_DATA"]).value


def _has_gil() -> bool:
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def find_mismatch() -> str | None:
    """Return the name of a field that is not where ``OFFSETS`` has it in some examples; None if all are."""
    sizes = object.__basicsize__, bytes.__basicsize__, list.__basicsize__, tuple.__basicsize__
    if sizes not in ((16, 33, 40, 24), (16, 33, 40, 32)):  # before anything is read at an address
        return f"an object, bytes, list or tuple of {sizes} bytes"
    if np.ndarray.__basicsize__ < 96:
        return f"an array of 96 bytes, but of {np.ndarray.__basicsize__},"
    if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return "an address of 8 bytes, the lowest first,"
    arrays = np.zeros((2, 3)), np.zeros((4, 5, 6), "f4").T, np.zeros(3, ">i8"), np.zeros(()), np.zeros(9, bool)[::2]
    fields = (found for x in arrays for found in _examine_array(x))
    return next((name for name, found in chain(fields, _examine_containers()) if not found), None)


def read_word(place: int) -> int:
    """Return the 64-bit integer at an address."""
    return ctypes.c_int64.from_address(place).value


def read_half(place: int) -> int:
    """Return the 32-bit integer at an address."""
    return ctypes.c_int32.from_address(place).value


def _has_words(place: int, words: tuple[int, ...]) -> bool:
    """Return whether these words are at an address; False, without reading, for what cannot be an address."""
    return not words or (
        place > LOWEST and place % 8 == 0 and all(read_word(place + 8 * i) == n for i, n in enumerate(words))
    )


def _get_handler() -> int:
    """Return the address of the memory handler that new arrays have now."""
    return id(ctypes.PYFUNCTYPE(ctypes.py_object)(numpy_functions()[305])())


def _examine_array(x: Any) -> Iterator[tuple[str, bool]]:
    """Yield the fields of an array, and whether each is where it is expected; one that is not is the last."""
    at, dtype = id(x), id(x.dtype)
    yield "the type of an array", read_word(at + OFFSETS["TYPE"]) == id(np.ndarray) == numpy_functions()[2]
    yield "the memory of an array", read_word(at + OFFSETS["ARRAY_DATA"]) == x.ctypes.data
    yield "the rank of an array", read_half(at + OFFSETS["ARRAY_RANK"]) == x.ndim
    yield "the dtype of an array", read_word(at + OFFSETS["ARRAY_DTYPE"]) == dtype
    yield "the flags of an array", read_half(at + OFFSETS["ARRAY_FLAGS"]) == x.flags.num
    yield "the shape of an array", _has_words(read_word(at + OFFSETS["ARRAY_SHAPE"]), x.shape)
    yield "the strides of an array", _has_words(read_word(at + OFFSETS["ARRAY_STRIDES"]), x.strides)
    yield "the base of an array", read_word(at + OFFSETS["ARRAY_BASE"]) == (0 if x.base is None else id(x.base))
    yield (
        "the memory handler of an array",
        read_word(at + OFFSETS["ARRAY_HANDLER"]) == (_get_handler() if x.flags.owndata else 0),
    )
    order = chr(ctypes.c_uint8.from_address(dtype + OFFSETS["DTYPE_ORDER"]).value)
    yield "the byte order of a dtype", order == x.dtype.byteorder
    yield "the number of a dtype", read_half(dtype + OFFSETS["DTYPE_NUMBER"]) == x.dtype.num


def _examine_containers() -> Iterator[tuple[str, bool]]:
    """Yield the fields of lists, tuples, dicts, bytes and numbers, and whether each is where it is expected."""
    first, second, some_bytes, single, number = object(), object(), b"pullback", np.float32(2.5), 1.5
    a_list, a_tuple, a_dict = [first, second, first], (first, second), {1: first, 2: second}
    sizes = [(a_list, 3), (a_tuple, 2), (a_dict, 2)]
    yield "the length of a container", all(read_word(id(x) + OFFSETS["SIZE"]) == n for x, n in sizes)
    yield "the items of a tuple", _has_words(id(a_tuple) + OFFSETS["TUPLE_ITEMS"], (id(first), id(second)))
    yield "the items of a list", _has_words(read_word(id(a_list) + OFFSETS["LIST_ITEMS"]), (*map(id, a_list),))
    yield "the contents of bytes", ctypes.string_at(id(some_bytes) + OFFSETS["BYTES_DATA"], 8) == some_bytes
    yield "the value of a float", ctypes.c_double.from_address(id(number) + OFFSETS["NUMBER"]).value == number
    yield "the value of a NumPy scalar", ctypes.c_float.from_address(id(single) + OFFSETS["NUMBER"]).value == single
