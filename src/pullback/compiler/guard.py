"""Memory with a wall behind it, for tests: a program that reads or writes past the end of an array is stopped there.

With ``PULLBACK_CANARY=1`` every array of a program lies at the very end of a page, and the next page may not be
touched.  What lies before it on its page is filled with a pattern, which is looked at when the program is done.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np

from pullback.errors import CompileError

__all__ = ["Guards"]

PATTERN = 0xA5


class Guards:
    """Arrays between walls, if these are asked for; plain ones if not."""

    def __init__(self) -> None:
        self.on = os.environ.get("PULLBACK_CANARY", "0") != "0" and hasattr(mmap, "MAP_ANONYMOUS")
        self.fronts: list[Any] = []

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array; what is in it is not a number, where there can be something that is not."""
        if not self.on:
            return np.empty(shape, dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE + mmap.PAGESIZE
        memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
        whole = np.frombuffer(memory, np.uint8)
        whole[:pages] = PATTERN
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if protect(whole.ctypes.data + pages, mmap.PAGESIZE, 0):
            raise OSError(ctypes.get_errno(), "a page cannot be closed")
        whole[pages - size : pages] = 0xFF
        self.fronts.append(whole[: pages - size])
        return whole[pages - size : pages].view(dtype).reshape(shape)

    def copy(self, x: Any) -> Any:
        if not self.on:
            return x
        made = self.empty(x.shape, x.dtype)
        made[...] = x
        return made

    def check(self) -> None:
        """Refuse what was written before the beginning of an array."""
        for front in self.fronts:
            if (front != PATTERN).any():
                raise CompileError("a program wrote before the beginning of an array.")
