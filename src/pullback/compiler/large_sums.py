"""Sums of large arrays along one axis, for eager code; ``core.accelerate`` decides when they are used."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pullback.compiler.builder import code_of
from pullback.compiler.codegen.sums import emit_sums
from pullback.compiler.runtime.abi.layout import choose_address
from pullback.compiler.runtime.disk_cache import default_cache
from pullback.compiler.runtime.llvm import TranslatorError, get_code, llvm_available
from pullback.compiler.target import get_target

__all__ = ["compile_sum"]

AVX2 = 32  # bytes of its vectors


def compile_sum(dtype: Any) -> Callable[[Any, Any, int, int, int], bool] | None:
    """Return a function of an array, of an array for the result, and of three lengths; None if there is none.

    The array is in order, of the shape that the lengths give, and is summed over the axis in the middle.  The function
    returns whether all sums are finite.

    >>> import numpy as np
    >>> f, z = compile_sum(np.dtype("f8")), np.ones(3)
    >>> f is None or (f(np.arange(6.0), z, 1, 2, 3) and z.tolist() == [3.0, 5.0, 7.0])
    True
    """
    target = get_target()
    if not llvm_available() or target.vector_bytes < AVX2:
        return None  # where it was not measured
    try:
        code, _ = get_code(emit_sums(code_of(dtype), target), ["run"], {}, default_cache())
    except TranslatorError:
        return None
    code.keep()
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)(code.addresses["run"])

    def call(x: Any, z: Any, outer: int, count: int, inner: int) -> bool:
        return bool(run(find_data(x), find_data(z), outer, count, inner))

    find_data = choose_address()
    return call
