"""Arrays in files that are larger than memory: pages that were read are given back to the system."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from pullback.typing import Array

RELEASE_AFTER = 2**26  # bytes that may have been read in between
READ_AROUND = 2**16  # bytes that a system maps around one that is read


class MappedPages:
    """The pages of memory-mapped arrays that were read: they count as memory of the process until they are released."""

    def __init__(self, arrays: list[Any]) -> None:
        self._files = {id(file): file for array in arrays if (file := _find_file(array)) is not None}
        self._row = sum(max(a.nbytes // max(len(a), 1), READ_AROUND) for a in arrays if _find_file(a) is not None)
        self._read = 0

    def note(self, rows: int) -> None:
        """Note that so many rows were read; release all pages from time to time."""
        if not self._files:
            return
        self._read += rows * self._row
        if self._read >= RELEASE_AFTER:
            self._read = 0
            for file in self._files.values():
                file.madvise(mmap.MADV_DONTNEED)


def _find_file(array: Array) -> mmap.mmap | None:
    """Return the file that an array is mapped to; None for one in memory, or one whose changes are private."""
    base: Any = array
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    if base is None or base.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    file = vars(base).get("_mmap")
    return file if isinstance(file, mmap.mmap) else None
