"""Compiled programs of one op, for arrays of fixed shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from warnings import warn

from pullback.compiler.frontend.trace import Trace
from pullback.compiler.pipeline import compile_graph
from pullback.compiler.runtime.llvm import InvalidCodeError, TranslatorError, llvm_available
from pullback.compiler.runtime.threads import choose_options
from pullback.compiler.target import get_target

if TYPE_CHECKING:
    from pullback.core.op import Op

__all__ = ["compile_op"]


def compile_op(op: Op, inputs: list[tuple[Any, Any]], params: dict[str, Any]) -> Callable[..., Any] | None:
    """Return a function of arrays of these shapes and dtypes that runs an op by machine code; None if there is none.

    >>> import numpy as np
    >>> from pullback.core.op import REGISTRY
    >>> compile_op(REGISTRY["exp"], [((3,), np.dtype("f4"))], {}) is None or llvm_available()
    True
    """
    if not llvm_available():
        return None
    trace = Trace()
    trace.checks = []
    result = trace.perform(op, [trace.add_argument(shape, dtype, None) for shape, dtype in inputs], params)
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
