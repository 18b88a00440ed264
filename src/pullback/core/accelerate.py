"""Machine code for ops that are run one at a time, where they have much to do.

The compiler knows this package, not the other way round: ``load_compiler`` is set by the public face, and is called,
which imports the compiler, when the first such op is met.  NumPy runs an op that there is no machine code for.

Machine code and NumPy round sums differently.  So which of them runs an op depends on shapes, dtypes and parameters
alone, and is decided once for each signature in a process: the same call gives the same numbers every time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from numpy import ndarray

from pullback.core.tensor import BY_KERNEL
from pullback.settings import is_enabled

__all__ = ["run_compiled_if"]

# Takes an op, the shape and dtype of each input, and the parameters; gives a function of the inputs, or None.
CompileOp = Callable[[Any, list[tuple[Any, Any]], dict[str, Any]], Callable[..., Any] | None]
MOST = 512  # signatures that are compiled in a process; NumPy runs what comes after them, as shapes seem to vary
FLOATS = "fd"

load_compiler: Callable[[], CompileOp] | None = None
_programs: dict[Any, Callable[..., Any] | None] = {}
_lock = RLock()


def run_compiled_if(is_worthwhile: Callable[..., bool], kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``run`` of an op: machine code where ``is_worthwhile`` says so of its arguments, else ``kernel``.

    >>> import numpy as np
    >>> run_compiled_if(lambda x: x.size > 1_000_000, np.negative)(np.ones(2))
    array([-1., -1.])
    """

    def run(*args: Any) -> Any:
        if args[0].dtype.char not in FLOATS or not is_worthwhile(*args):
            return kernel(*args)
        key = kernel, *[(a.shape, a.dtype) if type(a) is ndarray else a for a in args]
        try:
            program = _programs[key]
        except KeyError:
            program = _find_program(key)
        return kernel(*args) if program is None else program(*[a for a in args if type(a) is ndarray])

    return run


def _find_program(key: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return what runs an op with this signature from now on: machine code, or None for NumPy."""
    with _lock:
        if key not in _programs and len(_programs) < MOST:
            _programs[key] = _compile(*key) if load_compiler is not None and is_enabled("eager kernels") else None
        return _programs.get(key)


def _compile(kernel: Callable[..., Any], *args: Any) -> Callable[..., Any] | None:
    assert load_compiler is not None
    op = BY_KERNEL[kernel]
    count = len(op.inputs)
    return load_compiler()(op, [*args[:count]], dict(zip(op.params, args[count:], strict=True)))
