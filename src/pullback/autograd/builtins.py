"""Python's containers and type checks, as autograd has them: here tensors are in plain lists, tuples and dicts."""

from __future__ import annotations

import builtins
from typing import Any

from pullback.autograd.tracer import getval, isbox
from pullback.core import tree
from pullback.core.tensor import Tensor

dict = builtins.dict
list = builtins.list
tuple = builtins.tuple  # type: ignore[type-arg]


class _HasTraced(builtins.type):
    """The type of classes whose instances are containers of some kinds with traced values in them."""

    kinds: builtins.tuple[builtins.type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        return builtins.isinstance(instance, cls.kinds) and any(map(isbox, tree.leaves(instance)))


class SequenceBox(metaclass=_HasTraced):
    """The class of lists and tuples with traced values in them, for ``isinstance``."""

    kinds = (builtins.list, builtins.tuple)


class DictBox(metaclass=_HasTraced):
    """The class of dicts with traced values in them, for ``isinstance``."""

    kinds = (builtins.dict,)


def isinstance(x: object, kinds: Any) -> bool:
    """Return whether the plain value of ``x`` is of one of these types.

    x: any value; a traced tensor counts as the array or number that it stands for.
    kinds: a type or a tuple of types.

    >>> import numpy as np
    >>> isinstance([1.0], (list, tuple)), isinstance(np.ones(2), np.ndarray)
    (True, True)
    """
    return builtins.isinstance(getval(x) if builtins.isinstance(x, Tensor) else x, kinds)


def type(x: object) -> builtins.type:
    """Return the type of the plain value of ``x``.

    x: any value; a traced tensor counts as the array or number that it stands for.

    >>> type((1.0, 2.0))
    <class 'tuple'>
    """
    return builtins.type(getval(x) if builtins.isinstance(x, Tensor) else x)
