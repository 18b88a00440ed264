"""Guard pages, for tests: a program that reads or writes past the end of an array is stopped.

With ``PULLBACK_CANARY=1`` every array of a program lies at the very end of a page, and the next page may not be
accessed.  The rest of its page, before the array, is filled with a pattern that is checked when the program is done.
The values between the steps of a program do not share memory then: each has pages of its own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compiler.target import LINE_BYTES
from pullback.errors import CompileError

PATTERN = 0xA5


class Guards:
    """Allocates arrays between guard pages if ``PULLBACK_CANARY`` is set, else plain ones."""

    def __init__(self) -> None:
        self.on = os.environ.get("PULLBACK_CANARY", "0") != "0" and hasattr(mmap, "MAP_ANONYMOUS")
        self.around: list[Any] = []  # what lies before and after arrays

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Return a new array, filled with NaN where the dtype has it."""
        if not self.on:
            return np.empty(shape, dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE + mmap.PAGESIZE
        whole = self._make_guarded(pages + mmap.PAGESIZE, [(pages - size, size)])
        return whole[pages - size : pages].view(dtype).reshape(shape)

    def arena(self, size: int, blocks: Sequence[tuple[int, int]]) -> Any:
        """Return memory for the arena; with guard pages, its blocks end where their pages do."""
        return self._make_guarded(size, blocks) if self.on and size else np.empty(size + LINE_BYTES, np.uint8)

    def _make_guarded(self, size: int, blocks: Sequence[tuple[int, int]]) -> Any:
        """Return pages with a guard page after each block, and a pattern outside the blocks."""
        whole = np.frombuffer(mmap.mmap(-1, size), np.uint8)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        begin = 0
        for offset, length in blocks:
            wall = -(-(offset + length) // mmap.PAGESIZE) * mmap.PAGESIZE
            whole[begin:wall] = PATTERN
            whole[offset : offset + length] = 0xFF
            self.around += [whole[begin:offset], whole[offset + length : wall]]
            begin = wall + mmap.PAGESIZE
            if protect(whole.ctypes.data + wall, mmap.PAGESIZE, 0):
                raise OSError(ctypes.get_errno(), "a page cannot be closed")
        return whole

    def copy(self, x: Any) -> Any:
        if not self.on:
            return x
        copy = self.empty(x.shape, x.dtype)
        copy[...] = x
        return copy

    def check(self) -> None:
        """Raise CompileError if anything was written before an array, or between its end and the guard page."""
        if any((near != PATTERN).any() for near in self.around):
            raise CompileError("a program wrote outside of an array: before its beginning, or just after its end.")
