"""Functions and classes that distinguish traced values from plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pullback.autograd.primitives import primitive as primitive
from pullback.autograd.wrap_util import wraps
from pullback.core import tree
from pullback.core.tensor import Tensor, concrete

if TYPE_CHECKING:
    from pullback.typing import Function

REFUSED = {
    "Node": "there are no nodes of autograd's: pb.trace(f, x) shows the recorded program",
    "VJPNode": "there are no nodes of autograd's: pb.trace(f, x) shows the recorded program",
    "JVPNode": "there are no nodes of autograd's: pb.trace(f, x) shows the recorded program",
    "trace": "there are no nodes of autograd's: pb.trace(f, x) shows the recorded program",
    "new_box": "a value is traced by a transform only",
    "trace_stack": "levels of nesting are part of the tensors",
    "SparseObject": "gradients of indexing are dense arrays",
    "sparse_add": "gradients of indexing are dense arrays",
}


def refuse_name(module: str, name: str) -> Exception:
    """Return the error for a name of autograd's that has no meaning here."""
    if name in REFUSED:
        return ImportError(f"{module}.{name} is part of autograd's own engine: {REFUSED[name]}.")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def __getattr__(name: str) -> object:
    raise refuse_name(__name__, name)


def isbox(x: object) -> bool:
    """Return whether a transform follows a value.

    >>> import numpy as np
    >>> isbox(np.ones(2))
    False
    """
    return isinstance(x, Tensor) and bool(x.read().level)


def getval(x: object) -> Any:
    """Return the plain value of a traced one, or of each in a container.

    >>> getval(3.0)
    3.0
    """
    if isinstance(x, Tensor):
        return concrete(x)
    return tree.map_leaves(getval, x) if any(isinstance(leaf, Tensor) for leaf in tree.leaves(x)) else x


class BoxType(type):
    """The type of classes whose instances are the traced values."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isbox(instance)


class Box(metaclass=BoxType):
    """The class of traced values for ``isinstance``; it cannot be subclassed here."""

    def __init_subclass__(cls) -> None:
        raise TypeError(
            f"{cls.__name__}: autograd's Box cannot be subclassed here. A class of one's own is differentiated as a "
            "tree of its parts: pb.register_node(cls, flatten, unflatten)."
        )


def notrace_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is called with plain values and has no derivative.

    f_raw: a function of values, whose result is passed on as it is.
    """

    @wraps(f_raw)
    def call_plain(*args: object, **kwargs: object) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    return call_plain


def register_notrace(trace_type: object, primitive_fun: Function) -> None:
    """Refuse: a primitive without derivative is made by ``notrace_primitive``."""
    raise NotImplementedError("register_notrace: make the function with notrace_primitive(f), which has no derivative.")
