"""Machine code for ops that are run one at a time, where they have much to do.

The compiler imports this package, not the other way round: ``pullback/__init__.py`` sets ``compile_op`` and
``compile_function``, which import the compiler when the first such op runs.  NumPy runs the other ops.

Machine code and NumPy round differently.  So which of them runs an op depends on shapes, dtypes and parameters alone,
and is decided once for each signature in a process: the same call gives the same numbers every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy import ndarray

from pullback.core.tensor import BY_KERNEL
from pullback.settings import is_enabled

__all__ = ["MAX_NUMPY_ELEMENTS", "find_function", "run_compiled_if", "run_elements", "run_function"]

Program = Callable[..., Any]


MAX_NUMPY_ELEMENTS = 8192  # elements, up to which an op of several NumPy functions is run by them
MAX_SIGNATURES = 512  # compiled in a process; NumPy runs what comes after them, as shapes seem to vary

# Gives a function of arrays, for an op, the shape and dtype of each input, and parameters; None if there is none.
compile_op: Callable[[Any, list[tuple[Any, Any]], dict[str, Any]], Program | None] | None = None
# Gives a function of operands, arrays of any length or single numbers, and of an array for the result, which tells
# whether an element of it is not finite; for an op, a dtype, and which operands are single numbers.  From ``least``
# elements on, an attribute of it, it is faster than NumPy.
compile_function: Callable[[Any, Any, tuple[bool, ...]], Program | None] | None = None
_programs: dict[Any, Program | None] = {}
_functions: dict[Any, Program | None] = {}
_kernels: set[Any] = set()  # of ops of one input that several NumPy functions compute
_lock = RLock()


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
    """Return the ``run`` of an op: machine code if ``is_worthwhile`` of its arguments, else ``otherwise``.

    ``kernel`` is that of the op; without ``otherwise`` it takes the op's arguments itself.
    A result that is not ``is_finite(z, *args)`` is computed once more by NumPy, which warns of it.

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
    """Return what runs an op with this signature from now on: machine code, or None for NumPy."""
    with _lock:
        if key not in _programs and len(_programs) < MAX_SIGNATURES:
            _programs[key] = _compile(*key) if is_enabled("eager kernels") else None
        return _programs.get(key)


def _compile(kernel: Callable[..., Any], *args: Any) -> Program | None:
    op = BY_KERNEL[kernel]
    count = len(op.inputs)
    params = dict(zip(op.params, args[count:], strict=True))
    return None if compile_op is None else compile_op(op, [*args[:count]], params)


# ---- functions of elements, compiled for arrays of any length

FUNCTIONS = frozenset({
    np.exp, np.log, np.sin, np.cos, np.tan, np.tanh, np.sinh, np.cosh, np.log1p, np.expm1, np.log2, np.log10,
    np.arctan, np.arcsin, np.arccos, np.arcsinh, np.arccosh, np.arctanh, np.cbrt, np.power, np.arctan2, np.logaddexp,
    np.logaddexp2, np.hypot,
})  # fmt: skip


def find_function(ufunc: Any, values: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Program | None:
    """Return machine code for a NumPy function whose result has this shape and dtype; None if NumPy is to run it."""
    # In one piece: every op on big arrays runs through it, mostly to find that NumPy runs it.
    if (ufunc not in FUNCTIONS and ufunc not in _kernels) or not _is_compiled(dtype) or compile_function is None:
        return None
    repeated = []
    for v in values:
        once = not getattr(v, "shape", ())
        if not once and not (type(v) is ndarray and v.shape == shape and v.dtype == dtype and _is_in_order(v)):
            return None
        repeated.append(once)
    if ufunc is np.power and repeated[1] and values[1] == 2:
        return None  # which NumPy computes as a product
    key = ufunc, dtype.char, *repeated
    try:
        return _functions[key]
    except KeyError:
        pass
    with _lock:
        if key not in _functions:
            compiles = is_enabled("eager kernels") and not all(repeated)
            _functions[key] = compile_function(BY_KERNEL[ufunc], dtype, tuple(repeated)) if compiles else None
        return _functions[key]


def run_function(function: Program, ufunc: Any, values: Sequence[Any], out: Any) -> Any:
    """Write the result of machine code for a NumPy function to ``out``, which is no operand, with NumPy's warnings."""
    odd = function(*[v if getattr(v, "shape", ()) else np.array(v, out.dtype) for v in values], out)
    if np.geterr()["under"] != "ignore":
        ufunc(*values)
    elif odd:
        at = ~np.isfinite(out)
        ufunc(*[v[at] if getattr(v, "shape", ()) else v for v in values])
    return out


def run_elements(kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the ``run`` of an op of one input, elementwise: machine code for many elements, else ``kernel``.

    >>> run_elements(np.negative)(np.ones(2))
    array([-1., -1.])
    """

    def run(x: Any) -> Any:
        if type(x) is not ndarray or x.size <= MAX_NUMPY_ELEMENTS:
            return kernel(x)
        try:
            function: Any = _functions[kernel, x.dtype.char, False]
        except KeyError:
            function = find_function(kernel, (x,), x.shape, x.dtype)
        if function is None or x.size < function.least or not x.dtype.isnative or not _is_in_order(x):
            return kernel(x)
        return run_function(function, kernel, (x,), np.empty(x.shape, x.dtype))

    _kernels.add(kernel)
    run.kernel = kernel  # type: ignore[attr-defined]
    return run
