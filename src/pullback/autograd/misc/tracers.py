"""A function that is traced once and run again from the trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pullback.autograd.wrap_util import wraps
from pullback.compiler.api import compile


def const_graph(fun: Callable[..., Any], *args: object, **kwargs: object) -> Callable[..., Any]:
    """Return ``fun`` with some arguments given, which is traced once for each shape of the others.

    fun: a function of arrays, whose path does not depend on their values.
    args, kwargs: what is given to it at every call.

    >>> const_graph(lambda a, x: a * x, 2.0)(3.0)
    6.0
    """
    return wraps(fun)(compile(partial(fun, *args, **kwargs)))
