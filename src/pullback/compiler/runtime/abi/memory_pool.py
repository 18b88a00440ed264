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


# A piece of memory begins with a header of 64 bytes: the address of the next piece in its list, and its size.  Sizes
# are rounded up to a multiple of an eighth of the power of two below, so that 512 lists are enough for all sizes.
CODE = """
@pool = external global [520 x i64]
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @PyTraceMalloc_Track(i32, i64, i64)

define internal ptr @pool_list(i64 %size) {
  %zeros = call i64 @llvm.ctlz.i64(i64 %size, i1 true)
  %shift = sub i64 60, %zeros
  %units = lshr i64 %size, %shift
  %octave = shl i64 %shift, 3
  %place = add i64 %octave, %units
  %list = getelementptr ptr, ptr @pool, i64 %place
  ret ptr %list
}

define internal ptr @pool_take(i64 %need) {
start:
  %into = alloca ptr
  %more = add i64 %need, 64
  %small = icmp ult i64 %more, 1024
  %least = select i1 %small, i64 1024, i64 %more
  %zeros = call i64 @llvm.ctlz.i64(i64 %least, i1 true)
  %shift = sub i64 60, %zeros
  %unit = shl i64 1, %shift
  %rest = sub i64 %unit, 1
  %over = add i64 %least, %rest
  %units = lshr i64 %over, %shift
  %size = shl i64 %units, %shift
  %list = call ptr @pool_list(i64 %size)
  %kept = load ptr, ptr %list
  %empty = icmp eq ptr %kept, null
  br i1 %empty, label %new, label %pop
pop:
  %next = pointer %kept 0
  store ptr %next, ptr %list
  %has = word @pool 0
  %left = sub i64 %has, %size
  store i64 %left, ptr %has.a
  %again = at %kept 64
  ret ptr %again
new:
  %large = icmp uge i64 %size, 4194304
  %align = select i1 %large, i64 2097152, i64 64
  %status = call i32 @posix_memalign(ptr %into, i64 %align, i64 %size)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %none, label %made
none:
  ret ptr null
made:
  %memory = load ptr, ptr %into
  %size.to = at %memory 8
  store i64 %size, ptr %size.to
  %advice = word @pool 4
  %advised = icmp ne i64 %advice, 0
  %advises = and i1 %large, %advised
  br i1 %advises, label %advise, label %done
advise:
  %advice.32 = trunc i64 %advice to i32
  %ignored = call i32 @madvise(ptr %memory, i64 %size, i32 %advice.32)
  br label %done
done:
  %data = at %memory 64
  ret ptr %data
}

define internal void @pool_give(ptr %data) {
start:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %look
look:
  %memory = at %data -64
  %size = word %memory 1
  %limit = word @pool 1
  %has = word @pool 0
  %sum = add i64 %has, %size
  %fits = icmp ule i64 %sum, %limit
  br i1 %fits, label %keep, label %crowded
crowded:
  %fits.alone = icmp ule i64 %size, %limit
  br i1 %fits.alone, label %room, label %away
away:
  call void @free(ptr %memory)
  ret void
room:
  call void @pool_clear()
  br label %keep
keep:
  %had = word @pool 0
  %now = add i64 %had, %size
  store i64 %now, ptr %had.a
  %list = call ptr @pool_list(i64 %size)
  %first = load ptr, ptr %list
  store ptr %first, ptr %memory
  store ptr %memory, ptr %list
  ret void
done:
  ret void
}

define void @pool_clear() {
start:
  store i64 0, ptr @pool
  br label %lists
lists:
  %i = phi i64 [8, %start], [%i.next, %emptied]
  %more = icmp ult i64 %i, 520
  br i1 %more, label %each, label %done
each:
  %memory = pointer @pool %i
  %empty = icmp eq ptr %memory, null
  br i1 %empty, label %emptied, label %drop
drop:
  %next = pointer %memory 0
  store ptr %next, ptr %memory.a
  call void @free(ptr %memory)
  br label %each
emptied:
  %i.next = add i64 %i, 1
  br label %lists
done:
  ret void
}

define ptr @pool_malloc(ptr %context, i64 %size) {
  %made = call ptr @pool_take(i64 %size)
  ret ptr %made
}

define ptr @pool_calloc(ptr %context, i64 %count, i64 %each) {
start:
  %size = mul i64 %count, %each
  %made = call ptr @pool_take(i64 %size)
  %none = icmp eq ptr %made, null
  br i1 %none, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %size, i1 false)
  br label %done
done:
  ret ptr %made
}

define ptr @pool_realloc(ptr %context, ptr %data, i64 %size) {
start:
  %made = call ptr @pool_take(i64 %size)
  %none = icmp eq ptr %made, null
  %first = icmp eq ptr %data, null
  %done.now = or i1 %none, %first
  br i1 %done.now, label %done, label %copy
copy:
  %memory = at %data -64
  %whole = word %memory 1
  %old = sub i64 %whole, 64
  %shorter = icmp ult i64 %old, %size
  %length = select i1 %shorter, i64 %old, i64 %size
  call void @llvm.memcpy.p0.p0.i64(ptr %made, ptr %data, i64 %length, i1 false)
  call void @pool_give(ptr %data)
  br label %done
done:
  ret ptr %made
}

define void @pool_free(ptr %context, ptr %data, i64 %size) {
  call void @pool_give(ptr %data)
  ret void
}

define internal ptr @pooled_array(ptr %about) {
start:
  %dtype = pointer %about 3
  %rank = word %about 4
  %rank.32 = trunc i64 %rank to i32
  %lengths = getelementptr i64, ptr %about, i64 5
  %bytes = word %about 2
  %least = word @pool 2
  %of.pool = icmp sge i64 %bytes, %least
  br i1 %of.pool, label %take, label %make
take:
  %taken = call ptr @pool_take(i64 %bytes)
  %none = icmp eq ptr %taken, null
  br i1 %none, label %no.memory, label %make
no.memory:
  %raised = call ptr @PyErr_NoMemory()
  ret ptr null
make:
  %data = phi ptr [null, %start], [%taken, %take]
  %flags = phi i32 [0, %start], [1281, %take]
  call void @Py_IncRef(ptr %dtype)
  %array = call ptr @PyArray_NewFromDescr(ptr @ndarray, ptr %dtype, i32 %rank.32, ptr %lengths,
    ptr null, ptr %data, i32 %flags, ptr null)
  br i1 %of.pool, label %own, label %done
own:
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %back, label %owned
back:
  call void @pool_give(ptr %data)
  br label %done
owned:
  %handler = pointer @pool 3
  call void @Py_IncRef(ptr %handler)
  %handler.to = at %array ARRAY_HANDLER
  store ptr %handler, ptr %handler.to
  %bits = field i32 %array ARRAY_FLAGS
  %owns = or i32 %bits, 4
  store i32 %owns, ptr %bits.a
  %address = ptrtoint ptr %data to i64
  %traced = call i32 @PyTraceMalloc_Track(i32 389047, i64 %address, i64 %bytes)
  br label %done
done:
  ret ptr %array
}
"""
