"""Programs of one op, for eager code; ``core.accelerate`` decides when they are used."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from warnings import warn

import numpy as np

from pullback.compiler.builder import code_of
from pullback.compiler.codegen.elements import PART, emit_elements
from pullback.compiler.runtime.disk_cache import default_cache
from pullback.compiler.runtime.llvm import InvalidCodeError, TranslatorError, get_library, llvm_available
from pullback.compiler.runtime.threads import choose_options, get_pool, is_supported
from pullback.compiler.target import get_cpu_features, get_target

__all__ = ["compile_function", "compile_op"]

# The functions for which NumPy's own machine code, which it has for AVX-512, is slower than that of the compiler.
FASTER_ON_AVX512 = frozenset({np.exp, np.sin, np.cos, np.arctan2, np.logaddexp, np.logaddexp2, np.hypot})
AVX2 = 32  # bytes of its vectors


def compile_op(op: Any, inputs: list[tuple[Any, Any]], params: dict[str, Any]) -> Callable[..., Any] | None:
    """Return a function of arrays of these shapes and dtypes that runs an op by machine code; None if there is none.

    >>> from pullback.core.op import REGISTRY
    >>> compile_op(REGISTRY["exp"], [((3,), np.dtype("f4"))], {}) is None or llvm_available()
    True
    """
    if not llvm_available():
        return None
    # Imported here: functions of elements need neither, and are there in half the time.
    from pullback.compiler.frontend.trace import Trace
    from pullback.compiler.pipeline import compile_graph

    trace = Trace()
    trace.checks = []
    result = trace.perform(op, [trace.given(shape, dtype, None) for shape, dtype in inputs], params)
    trace.graph.outputs = [trace.node(x) for x in (result, *trace.checks)]
    trace.finished = True
    try:
        program = compile_graph(trace.graph, get_target(), choose_options(None))
    except TranslatorError:
        return None
    except InvalidCodeError as error:
        warn(f"{error} NumPy runs {op.name} instead. Please report this.", RuntimeWarning, stacklevel=2)
        return None
    if program.host_ops:
        return None
    return lambda *arrays: program.run(*arrays)[0]


@lru_cache(1)
def _has_own_avx512() -> bool:
    """Return whether NumPy has functions in machine code for AVX-512, and may use them."""
    return "AVX512_SKX" in get_cpu_features()


def compile_function(op: Any, dtype: Any, repeated: tuple[bool, ...]) -> Callable[..., bool] | None:
    """Return a function ``(*operands, out)`` of arrays of any length, which tells whether a result is not finite.

    ``repeated`` says which operands are single numbers.  None if there is no such function that is faster than NumPy's.

    >>> from pullback.core.op import REGISTRY
    >>> f, z = compile_function(REGISTRY["exp"], np.dtype("f8"), (False,)), np.ones(2)
    >>> f is None or (f(np.array([0.0, np.inf]), z) and z.tolist() == [1.0, np.inf])
    True
    """
    target = get_target()
    if not llvm_available() or target.vector_bytes < AVX2 or not target.has_fma:
        return None  # where it was not measured
    if _has_own_avx512() and op.kernel not in FASTER_ON_AVX512:
        return None
    shared = is_supported()
    try:
        text = emit_elements(op, code_of(dtype), repeated, target, shared)
        imports = {"parallel": get_pool()["parallel"]} if shared else {}
        library, _ = get_library(text, ["run"], imports, default_cache())
    except TranslatorError:
        return None
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.addresses["run"])
    words = ctypes.c_int64 * (len(repeated) + 3)

    def call(*arrays: Any) -> bool:
        n = arrays[-1].size
        context = words(*[a.ctypes.data for a in arrays], n, 0)
        run(ctypes.addressof(context), -(-n // PART))
        return bool(context[-1])

    call.library = library  # type: ignore[attr-defined]  # whose memory has the code
    return call
