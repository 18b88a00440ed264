"""Compiled programs of one op or of one derivative rule, for arrays of fixed shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from warnings import warn

from pullback.compiler.frontend.trace import Trace
from pullback.compiler.pipeline import compile_graph
from pullback.compiler.runtime.llvm import InvalidCodeError, TranslatorError, llvm_available
from pullback.compiler.runtime.threads import choose_options
from pullback.compiler.target import get_target


def compile_formula(formula: Callable[..., Any], inputs: list[tuple[Any, Any]]) -> Callable[..., Any] | None:
    """Return a function of tensors as machine code for arrays of these shapes and dtypes; None if there is none.

    >>> import numpy as np
    >>> f = compile_formula(lambda x: np.exp(x) + 1, [((3,), np.dtype("f4"))])
    >>> f is None or f(np.zeros(3, "f4")).tolist() == [2.0, 2.0, 2.0]
    True
    """
    if not llvm_available():
        return None
    trace = Trace()
    trace.checks = []
    result = formula(*[trace.add_argument(shape, dtype, None) for shape, dtype in inputs])
    trace.graph.outputs = [trace.as_node(x) for x in (result, *trace.checks)]
    trace.finish()
    try:
        program = compile_graph(trace.graph, get_target(), choose_options(None))
    except TranslatorError:
        return None
    except InvalidCodeError as error:
        warn(f"{error} NumPy runs {formula.__name__} instead. Please report this.", RuntimeWarning, stacklevel=2)
        return None
    if program.host_ops:
        return None
    return lambda *arrays: program.run(*arrays)[0]
