"""Machine code for eager ops on large arrays: convolutions, pooling, scans and functions such as ``exp``.

The compiler imports this package, not the other way round: ``late_binding`` has ``compile_formula``,
``compile_function`` and ``compile_sum``, which import it when the first such op runs.  NumPy runs all other ops.

Machine code and NumPy round differently.  So which of them runs an op depends on shapes, dtypes and parameters alone,
and is decided once for each signature in a process: the same call gives the same numbers every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from pullback import late_binding
from pullback.core.context import bind
from pullback.core.tensor import BY_KERNEL, RAW
from pullback.settings import is_enabled

Program = Callable[..., Any]


class Elements(NamedTuple):
    """An elementwise function of arrays of any length in machine code."""

    run: Callable[..., int]  # ``run(*operands, out)`` returns whether a result is not finite
    least: int  # the number of elements from which on it is faster than NumPy


MAX_NUMPY_ELEMENTS = 8192  # up to this size NumPy runs an op that takes it several function calls
MAX_SIGNATURES = 512  # compiled in a process; beyond it NumPy runs new ones, as shapes seem to vary

_programs: dict[Any, Program | None] = {}
_functions: dict[Any, Elements | None] = {}
_sums: dict[str, Any] = {}  # by the dtype's character
_kernels: set[Any] = set()  # kernels of ops with one input that call several NumPy functions
_lock = RLock()
# NumPy's, which has no value by default
ERROR_STATE: Any = getattr(np._core.umath, "_extobj_contextvar", None)  # type: ignore[attr-defined]
_compiles: ContextVar[bool] = ContextVar("compiles", default=True)


def compile_nothing() -> AbstractContextManager[bool]:
    """Let NumPy run, in a ``with`` block, ops that are not compiled yet: for results of which only the shape matters.

    >>> with compile_nothing():
    ...     pb.conv2d(np.zeros((1, 32, 32, 8)), np.zeros((3, 3, 8, 8)), 1, "same").shape
    (1, 32, 32, 8)
    """
    return bind(_compiles, False)


def _is_compiled(dtype: np.dtype[Any]) -> bool:
    return dtype.char in "fd" and dtype.isnative


def _is_in_order(v: Any) -> bool:
    return bool(v.flags.c_contiguous and v.flags.aligned)


# ---- ops, compiled for each signature


def run_compiled_if(
    is_worthwhile: Callable[..., bool],
    kernel: Callable[..., Any],
    otherwise: Callable[..., Any] | None = None,
    is_finite: Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """Return a function that runs machine code if ``is_worthwhile(*args)``, and otherwise ``otherwise(*args)``.

    ``kernel`` is the kernel of an op, whose ``run`` this is, or a formula of arrays and parameters in NumPy functions,
    which is compiled as it stands.  It is the default of ``otherwise``.
    Where ``is_finite(z, *args)`` is false, NumPy computes the result again and gives its warnings.

    >>> run_compiled_if(lambda x: x.size > 1_000_000, np.negative)(np.ones(2))
    array([-1., -1.])
    """
    by_numpy = otherwise or kernel

    def run(*args: Any) -> Any:
        if not _is_compiled(args[0].dtype) or not is_worthwhile(*args):
            return by_numpy(*args)
        key = kernel, *[(a.shape, a.dtype) if type(a) is ndarray else a for a in args]
        try:
            program = _programs[key]
        except KeyError:
            program = _find_program(key)
        if program is None:
            return by_numpy(*args)
        z = program(*[a for a in args if type(a) is ndarray])
        return z if is_finite is None or is_finite(z, *args) else by_numpy(*args)

    return run


def _find_program(key: tuple[Any, ...]) -> Program | None:
    """Return the program that runs an op with this signature from now on; None if NumPy does."""
    with _lock:
        if key not in _programs and len(_programs) < MAX_SIGNATURES and _compiles.get():
            _programs[key] = _compile(*key) if is_enabled("eager kernels") else None
        return _programs.get(key)


def _compile(kernel: Callable[..., Any], *args: Any) -> Program | None:
    """Return a program for a kernel or formula; each of ``args`` is the signature of an array, or a parameter."""
    op = BY_KERNEL.get(kernel)
    count = sum(type(a) is tuple and len(a) == 2 and isinstance(a[1], np.dtype) for a in args)

    def run(*tensors: Any) -> Any:
        if op is None:
            return kernel(*tensors, *args[count:])
        return op.call([*tensors], dict(zip(op.params, args[count:], strict=True)))

    run.__name__ = kernel.__name__ if op is None else op.name
    return late_binding.compile_formula(run, [*args[:count]])


# ---- elementwise functions, compiled for arrays of any length

FUNCTIONS = frozenset({
    np.exp, np.log, np.sin, np.cos, np.tan, np.tanh, np.sinh, np.cosh, np.log1p, np.expm1, np.log2, np.log10,
    np.arctan, np.arcsin, np.arccos, np.arcsinh, np.arccosh, np.arctanh, np.cbrt, np.power, np.arctan2, np.logaddexp,
    np.logaddexp2, np.hypot,
})  # fmt: skip


def find_function(ufunc: Any, values: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Elements | None:
    """Return machine code for a NumPy function whose result has this shape and dtype; None if NumPy should run it."""
    # Not split into smaller functions: every op on big arrays calls this, and mostly NumPy runs the op.
    if (ufunc not in FUNCTIONS and ufunc not in _kernels) or not _is_compiled(dtype):
        return None
    repeated = []
    for v in values:
        once = not getattr(v, "shape", ())
        if not once and not (type(v) is ndarray and v.shape == shape and v.dtype == dtype and _is_in_order(v)):
            return None
        repeated.append(once)
    if ufunc is np.power and repeated[1] and values[1] == 2:
        return None  # NumPy computes a square as a product
    key = ufunc, dtype.char, *repeated
    return _functions[key] if key in _functions else _compile_function(key, dtype)


def _compile_function(key: tuple[Any, ...], dtype: np.dtype[Any]) -> Elements | None:
    """Return machine code for a NumPy function that is called for the first time; None if NumPy is to run it."""
    ufunc, _, *repeated = key
    with _lock:
        if key not in _functions and _compiles.get():
            compiles = is_enabled("eager kernels") and not all(repeated)
            _functions[key] = (
                late_binding.compile_function(BY_KERNEL[ufunc], dtype, tuple(repeated)) if compiles else None
            )
        return _functions.get(key)


def _has_error_state() -> bool:
    """Return whether ``np.errstate`` or ``np.seterr`` may be in effect; their settings take 2 µs to read."""
    return ERROR_STATE is None or ERROR_STATE.get(None) is not None


def run_function(function: Elements, ufunc: Any, values: Sequence[Any], out: Any) -> Any:
    """Write the result of a compiled NumPy function to ``out``, which must not be an operand; give NumPy's warnings."""
    odd = function.run(*[v if getattr(v, "shape", ()) else np.array(v, out.dtype) for v in values], out)
    if _has_error_state() and np.geterr()["under"] != "ignore":
        ufunc(*values)
    elif odd:
        at = ~np.isfinite(out)
        ufunc(*[v[at] if getattr(v, "shape", ()) else v for v in values])
    return out


def run_elements(kernel: Callable[[Any], Any], largest: int = MAX_NUMPY_ELEMENTS) -> Callable[[Any], Any]:
    """Return the ``run`` of an elementwise op of one input: machine code for many elements, otherwise ``kernel``.

    ``largest`` is the number of elements up to which NumPy runs it, or ``core.native`` by NumPy's loops.

    >>> run_elements(np.negative)(np.ones(2))
    array([-1., -1.])
    """

    def run(x: Any) -> Any:
        if type(x) is not ndarray or x.size <= largest:
            return kernel(x)
        try:
            function: Any = _functions[kernel, x.dtype.char, False]
        except KeyError:
            function = find_function(kernel, (x,), x.shape, x.dtype)
        if function is None or x.size < function.least or not x.dtype.isnative or not _is_in_order(x):
            return kernel(x)
        return run_function(function, kernel, (x,), np.empty(x.shape, x.dtype))

    _kernels.add(kernel)
    run.kernel, run.largest = kernel, largest  # type: ignore[attr-defined]
    return run


def run_pairs(kernel: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the ``run`` of a NumPy function of two arrays, or of one and a number, as ``run_elements`` does.

    >>> run_pairs(np.logaddexp)(np.zeros(2), 0.0)
    array([0.69314718, 0.69314718])
    """

    def run(x: Any, y: Any) -> Any:
        a, other = (x, y) if type(x) is ndarray and x.ndim else (y, x)
        if type(a) is not ndarray or a.size <= MAX_NUMPY_ELEMENTS:
            return kernel(x, y)
        is_weak = type(other) is float or type(other) is int  # has no dtype of its own
        function = None
        if is_weak or (isinstance(other, RAW) and other.dtype == a.dtype):
            function = find_function(kernel, (x, y), a.shape, a.dtype)
        if function is None or a.size < function.least:
            return kernel(x, y)
        return run_function(function, kernel, (x, y), np.empty(a.shape, a.dtype))

    run.kernel = kernel  # type: ignore[attr-defined]
    return run


# ---- sums


def sum_middle(x: Any, outer: int, count: int, inner: int) -> Any:
    """Return the sums over the middle axis of an array in C order that is read as ``(outer, count, inner)``.

    None if NumPy is to sum: where there is no machine code, and where a sum is not finite, of which NumPy warns.

    >>> z = sum_middle(np.arange(6.0), 1, 2, 3)
    >>> z is None or z.tolist() == [3.0, 5.0, 7.0]
    True
    """
    char = x.dtype.char
    if char not in _sums:
        with _lock:
            if char not in _sums and _compiles.get():
                _sums[char] = late_binding.compile_sum(np.dtype(char)) if is_enabled("eager kernels") else None
    run = _sums.get(char)
    if run is None or not x.dtype.isnative or not x.flags.aligned:
        return None
    z = np.empty(outer * inner, x.dtype)
    return z if run(x, z, outer, count, inner) else None


late_binding.sum_middle = sum_middle
