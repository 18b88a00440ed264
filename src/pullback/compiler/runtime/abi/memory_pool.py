"""A pool of memory for the results and arenas of compiled programs: what is freed is kept for the next call.

The system clears memory page by page before a process gets it, which takes longer than most programs take to fill it.
So the arrays of results have a memory handler of their own (NumPy's ``PyDataMem_Handler``), which NumPy calls to free
them: it puts their memory into the pool, from which the next results and arenas are taken.  Memory of the pool begins
at a cache line.  All functions here are called while the interpreter's lock is held.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.compiler.runtime.abi.code_writer import Writer
from pullback.compiler.runtime.abi.entry_records import OUTPUT
from pullback.compiler.runtime.abi.layout import ALIGNED, C_CONTIGUOUS, OFFSETS, OWNS_DATA, WRITEABLE
from pullback.settings import is_enabled

MOST = 256 * 1024 * 1024  # bytes that the pool keeps; when more would be freed into it, it is emptied
SMALLEST = 4096  # bytes of a result from the pool: NumPy allocates smaller ones quickly
HUGE_PAGES = 14  # MADV_HUGEPAGE, the advice to madvise on Linux
ABOUT, LISTS = 8, 512  # words about the pool, and heads of the lists of free memory, by size

STATE = (ctypes.c_int64 * (ABOUT + LISTS))()  # @pool in the code below; its first words are:
HAS = 0  # bytes that the pool has
LIMIT = 1  # bytes that it may have
LEAST = 2  # bytes of the smallest result that is taken from it
HANDLER = 3  # address of the capsule of the memory handler
ADVICE = 4  # the advice to madvise for large memory, 0 for none
CLEAR = 5  # address of ``pool_clear``
FUNCTIONS = ("pool_malloc", "pool_calloc", "pool_realloc", "pool_free", "pool_clear")
NAME = ctypes.create_string_buffer(b"mem_handler")  # the name that NumPy requires of the capsule


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )  # fmt: skip


@lru_cache(1)
def install_handler(addresses: tuple[int, ...]) -> None:
    """Set the pool up; ``addresses`` are those of ``FUNCTIONS``, whose code must stay as long as the process runs."""
    handler = Handler(b"pullback", 1, None, *addresses[:4])
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    capsule = new(ctypes.addressof(handler), ctypes.addressof(NAME), None)
    for x in (handler, NAME, capsule, STATE):  # arrays may outlast this module
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    on = is_enabled("memory pool")
    STATE[LIMIT], STATE[LEAST] = (MOST, SMALLEST) if on else (0, sys.maxsize)
    STATE[ADVICE] = HUGE_PAGES if sys.platform == "linux" and _wants_huge_pages() else 0
    STATE[HANDLER], STATE[CLEAR] = id(capsule), addresses[4]


def clear() -> None:
    """Return all memory in the pool to the system."""
    if STATE[CLEAR]:
        ctypes.PYFUNCTYPE(None)(STATE[CLEAR])()


def _wants_huge_pages() -> bool:
    """Return whether NumPy asks the system for huge pages, which users can switch off."""
    asked: Any = getattr(np._core.multiarray, "_get_madvise_hugepage", bool)  # type: ignore[attr-defined]
    return bool(asked())


# A piece of memory begins with a header: the address of the next piece in its list, and its size.  Sizes are rounded up
# to a multiple of an eighth of the power of two below, so that 512 lists are enough for all sizes.
HEADER = 64  # bytes, so that what follows begins at a cache line, too
LEAST_PIECE = 1024  # bytes of the smallest piece
LARGE_PIECE, HUGE_PAGE = 4 * 1024 * 1024, 2 * 1024 * 1024  # bytes: large pieces begin at a huge page
TRACKED = 389047  # the domain under which ``tracemalloc`` knows NumPy's arrays
DECLARED = f"""
@pool = external global [{ABOUT + LISTS} x i64]
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @PyTraceMalloc_Track(i32, i64, i64)
"""


def write_pool() -> str:
    """Return the functions of the pool as LLVM text."""
    return DECLARED + "".join(write() for write in WRITERS)


def _find_unit(w: Writer, size: str) -> str:
    """Return the logarithm of an eighth of the power of two below a size."""
    return w.let(f"sub i64 60, {w.call('i64', '@llvm.ctlz.i64', f'i64 {size}', 'i1 true')}")


def _write_list() -> str:
    """Return ``pool_list(size)``: the address of the head of the list for pieces of this size."""
    w = Writer("ptr", "pool_list", "i64 size")
    shift = _find_unit(w, "%size")
    place = w.let(f"add i64 {w.let(f'shl i64 {shift}, 3')}, {w.let(f'lshr i64 %size, {shift}')}")
    w.ret("ptr", w.at("@pool", place, "ptr"))
    return w.text()


def _write_allocate() -> str:
    """Return ``pool_allocate(need)``: memory of so many bytes, from the pool or the system; null if there is none."""
    w = Writer("ptr", "pool_allocate", "i64 need")
    more = w.let(f"add i64 %need, {HEADER}")
    least = w.select(w.compare("ult", more, LEAST_PIECE, "i64"), "i64", LEAST_PIECE, more)
    shift = _find_unit(w, least)
    rest = w.let(f"sub i64 {w.let(f'shl i64 1, {shift}')}, 1")
    units = w.let(f"lshr i64 {w.let(f'add i64 {least}, {rest}')}, {shift}")
    size = w.let(f"shl i64 {units}, {shift}")
    pieces = w.call("ptr", "@pool_list", f"i64 {size}")
    kept = w.load("ptr", pieces)
    w.jump_if(w.compare("eq", kept, "null"), "new")
    w.store("ptr", w.load("ptr", kept), pieces)
    w.set_word(w.let(f"sub i64 {w.word('@pool', HAS)}, {size}"), "@pool", HAS)
    w.ret("ptr", w.at(kept, HEADER))

    w.label("new")
    into, is_large = w.allocate("ptr"), w.compare("uge", size, LARGE_PIECE, "i64")
    align = w.select(is_large, "i64", HUGE_PAGE, HEADER)
    status = w.call("i32", "@posix_memalign", f"ptr {into}", f"i64 {align}", f"i64 {size}")
    w.require(w.compare("eq", status, 0, "i32"), "none")
    memory, advice = w.load("ptr", into), w.word("@pool", ADVICE)
    w.set_word(size, memory, 1)
    w.require(w.both(is_large, w.compare("ne", advice, 0, "i64")), "done")
    w.call("i32", "@madvise", f"ptr {memory}", f"i64 {size}", f"i32 {w.let(f'trunc i64 {advice} to i32')}")
    w.label("done", falls=True)
    w.ret("ptr", w.at(memory, HEADER))
    w.label("none")
    w.ret("ptr", "null")
    return w.text()


def _write_release() -> str:
    """Return ``pool_release(data)``, which puts memory of ``pool_allocate`` into the pool, or frees it."""
    w = Writer("void", "pool_release", "ptr data")
    w.require(w.compare("ne", "%data", "null"), "done")
    memory = w.at("%data", -HEADER)
    size, limit = w.word(memory, 1), w.word("@pool", LIMIT)
    total = w.let(f"add i64 {w.word('@pool', HAS)}, {size}")
    w.jump_if(w.compare("ule", total, limit, "i64"), "keep")
    w.require(w.compare("ule", size, limit, "i64"), "away")
    w.call_void("@pool_clear")
    w.label("keep", falls=True)
    w.set_word(w.let(f"add i64 {w.word('@pool', HAS)}, {size}"), "@pool", HAS)
    pieces = w.call("ptr", "@pool_list", f"i64 {size}")
    w.store("ptr", w.load("ptr", pieces), memory)
    w.store("ptr", memory, pieces)
    w.jump("done")
    w.label("away")
    w.call_void("@free", f"ptr {memory}")
    w.label("done", falls=True)
    w.ret_void()
    return w.text()


def _write_clear() -> str:
    """Return ``pool_clear()``, which frees all memory in the pool."""
    w = Writer("void", "pool_clear", internal=False)
    w.set_word(0, "@pool", HAS)
    pieces = w.at(w.at("@pool", ABOUT, "ptr"), w.loop("lists", str(LISTS)), "ptr")
    w.label("pieces", falls=True)
    memory = w.load("ptr", pieces)
    w.require(w.compare("ne", memory, "null"), "emptied")
    w.store("ptr", w.load("ptr", memory), pieces)
    w.call_void("@free", f"ptr {memory}")
    w.jump("pieces")
    w.label("emptied")
    w.end_loop("lists")
    w.ret_void()
    return w.text()


def _write_handler() -> str:
    """Return the functions of the memory handler: ``pool_malloc``, ``pool_calloc``, ``pool_realloc``, ``pool_free``."""
    malloc = Writer("ptr", "pool_malloc", "ptr context", "i64 size", internal=False)
    malloc.ret("ptr", malloc.call("ptr", "@pool_allocate", "i64 %size"))

    w = calloc = Writer("ptr", "pool_calloc", "ptr context", "i64 count", "i64 each", internal=False)
    size = w.let("mul i64 %count, %each")
    made = w.call("ptr", "@pool_allocate", f"i64 {size}")
    w.require(w.compare("ne", made, "null"), "done")
    w.call_void("@llvm.memset.p0.i64", f"ptr {made}", "i8 0", f"i64 {size}", "i1 false")
    w.label("done", falls=True)
    w.ret("ptr", made)

    w = realloc = Writer("ptr", "pool_realloc", "ptr context", "ptr data", "i64 size", internal=False)
    made = w.call("ptr", "@pool_allocate", "i64 %size")
    w.require(w.both(w.compare("ne", made, "null"), w.compare("ne", "%data", "null")), "done")
    old = w.let(f"sub i64 {w.word(w.at('%data', -HEADER), 1)}, {HEADER}")
    length = w.select(w.compare("ult", old, "%size", "i64"), "i64", old, "%size")
    w.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {made}", "ptr %data", f"i64 {length}", "i1 false")
    w.call_void("@pool_release", "ptr %data")
    w.label("done", falls=True)
    w.ret("ptr", made)

    free = Writer("void", "pool_free", "ptr context", "ptr data", "i64 size", internal=False)
    free.call_void("@pool_release", "ptr %data")
    free.ret_void()
    return "".join(function.text() for function in (malloc, calloc, realloc, free))


def _write_array() -> str:
    """Return ``pooled_array(about)``: a new array for a result, ``about`` which are words of a plan; null for an error.

    An array that is large enough has memory of the pool and the pool's handler.
    """
    w = Writer("ptr", "pooled_array", "ptr about")
    nbytes, dtype = w.word("%about", OUTPUT["bytes"]), w.word("%about", OUTPUT["dtype"], "ptr")
    rank, lengths = w.word("%about", OUTPUT["rank"]), w.at("%about", OUTPUT["shape"], "i64")
    memory, flags = w.allocate("ptr"), w.allocate("i32")
    w.store("ptr", "null", memory)
    w.store("i32", 0, flags)
    is_pooled = w.compare("sge", nbytes, w.word("@pool", LEAST), "i64")
    w.require(is_pooled, "make")
    taken = w.call("ptr", "@pool_allocate", f"i64 {nbytes}")
    w.require(w.compare("ne", taken, "null"), "none")
    w.store("ptr", taken, memory)
    w.store("i32", C_CONTIGUOUS | ALIGNED | WRITEABLE, flags)
    w.label("make", falls=True)
    w.call_void("@Py_IncRef", f"ptr {dtype}")
    data = w.load("ptr", memory)
    array = w.call(
        "ptr", "@PyArray_NewFromDescr", "ptr @ndarray", f"ptr {dtype}", f"i32 {w.let(f'trunc i64 {rank} to i32')}",
        f"ptr {lengths}", "ptr null", f"ptr {data}", f"i32 {w.load('i32', flags)}", "ptr null",
    )  # fmt: skip
    w.require(is_pooled, "done")
    w.require(w.compare("ne", array, "null"), "failed")
    handler = w.word("@pool", HANDLER, "ptr")
    w.call_void("@Py_IncRef", f"ptr {handler}")
    w.store("ptr", handler, array, OFFSETS["ARRAY_HANDLER"])
    owned = w.let(f"or i32 {w.load('i32', array, OFFSETS['ARRAY_FLAGS'])}, {OWNS_DATA}")
    w.store("i32", owned, array, OFFSETS["ARRAY_FLAGS"])
    address = w.let(f"ptrtoint ptr {data} to i64")
    w.call("i32", "@PyTraceMalloc_Track", f"i32 {TRACKED}", f"i64 {address}", f"i64 {nbytes}")
    w.jump("done")
    w.label("failed")
    w.call_void("@pool_release", f"ptr {data}")
    w.label("done", falls=True)
    w.ret("ptr", array)
    w.label("none")
    w.call("ptr", "@PyErr_NoMemory")
    w.ret("ptr", "null")
    return w.text()


WRITERS = (_write_list, _write_allocate, _write_release, _write_clear, _write_handler, _write_array)
