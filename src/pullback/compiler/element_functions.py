"""Functions of the elements of large arrays, for eager code; ``core.accelerate`` decides when they are used."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.builder import code_of
from pullback.compiler.codegen.elements import PART_ELEMENTS, emit_elements
from pullback.compiler.runtime.abi.layout import choose_address
from pullback.compiler.runtime.disk_cache import default_cache
from pullback.compiler.runtime.llvm import TranslatorError, get_code, llvm_available
from pullback.compiler.runtime.threads import get_pool, is_supported
from pullback.compiler.target import get_cpu_features, get_target

if TYPE_CHECKING:
    from pullback.core.op import Op

__all__ = ["compile_function"]

# The functions for which NumPy's own machine code, which it has for AVX-512, is slower than that of the compiler.
FASTER_ON_AVX512 = frozenset({np.exp, np.sin, np.cos, np.arctan2, np.logaddexp, np.logaddexp2, np.hypot})
SLOW_ON_AVX512 = frozenset({np.sin, np.cos})  # of float64, which NumPy has no machine code of AVX-512 for
MIN_ON_AVX512 = 1 << 16  # elements from which on the others are faster
AVX2 = 32  # bytes of its vectors


@lru_cache(1)
def _has_own_avx512() -> bool:
    """Return whether NumPy has functions in machine code for AVX-512, and may use them."""
    return "AVX512_SKX" in get_cpu_features()


def compile_function(op: Op, dtype: Any, repeated: tuple[bool, ...]) -> Callable[..., bool] | None:
    """Return a function ``(*operands, out)`` of arrays of any length, which returns whether a result is not finite.

    ``repeated``: which operands are single numbers.  None if there is no such function that is faster than NumPy's.

    >>> from pullback.core.op import REGISTRY
    >>> f, z = compile_function(REGISTRY["exp"], np.dtype("f8"), (False,)), np.ones(2)
    >>> f is None or (f(np.array([0.0, np.inf]), z) and z.tolist() == [1.0, np.inf])
    True
    """
    target = get_target()
    if not llvm_available() or target.vector_bytes < AVX2 or not target.has_fma:
        return None  # where it was not measured
    if isinstance(op.kernel, np.ufunc) and _has_own_avx512() and op.kernel not in FASTER_ON_AVX512:
        return None
    shared = is_supported()
    try:
        text, longest_block = emit_elements(op, code_of(dtype), repeated, target, shared)
        imports = {"parallel": get_pool()["parallel"]} if shared else {}
        code, _ = get_code(text, ["run"], imports, default_cache(), longest_block=longest_block)
    except TranslatorError:
        return None
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.addresses["run"])
    words = ctypes.c_int64 * (len(repeated) + 3)

    find_data = choose_address()

    def call(*arrays: Any) -> bool:
        n = arrays[-1].size
        context = words(*map(find_data, arrays), n, 0)
        run(ctypes.addressof(context), -(-n // PART_ELEMENTS))
        return bool(context[-1])

    is_slow = not isinstance(op.kernel, np.ufunc) or (dtype.char == "d" and op.kernel in SLOW_ON_AVX512)
    call.least = MIN_ON_AVX512 if _has_own_avx512() and not is_slow else 0  # type: ignore[attr-defined]
    call.code = code  # type: ignore[attr-defined]  # whose memory has the code
    return call
