"""Derivatives of functions of one argument, which may be a container; the other modules use these."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.autograd.containers import align, as_leaf, conjugate, flatten, rebuild
from pullback.autograd.primitives import def_linear as def_linear
from pullback.autograd.primitives import defjvp as defjvp
from pullback.autograd.primitives import defjvp_argnum as defjvp_argnum
from pullback.autograd.primitives import defjvp_argnums as defjvp_argnums
from pullback.autograd.primitives import defvjp as defvjp
from pullback.autograd.primitives import defvjp_argnum as defvjp_argnum
from pullback.autograd.primitives import defvjp_argnums as defvjp_argnums
from pullback.autograd.primitives import primitive as primitive
from pullback.autograd.primitives import primitive_jvps as primitive_jvps
from pullback.autograd.primitives import primitive_vjps as primitive_vjps
from pullback.autograd.vector_spaces import VSpace as VSpace
from pullback.autograd.vector_spaces import vspace as vspace
from pullback.core.convert import join_array
from pullback.core.tensor import Tensor
from pullback.transforms.forward import jvp as push_tangents
from pullback.transforms.linear import vjp as record_vjp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Operand, Tree

INDEPENDENT = "Output seems independent of input."


class _TracedRun:
    """A function of one container as a function of its leaves, and the container that it returned last."""

    def __init__(self, fun: Callable[..., Any], x: Tree) -> None:
        self.fun, self.x = fun, x
        self.leaves = [as_leaf(leaf) for leaf in flatten(x)]
        self.result: Any = None
        self.depends = False

    def __call__(self, *leaves: Tree) -> tuple[Any, ...]:
        out = join_array(self.fun(rebuild(self.x, iter(leaves))))
        results = [np.bool_(z) if isinstance(z, bool) else join_array(z) for z in flatten(out)]
        level = max((t.level for t in leaves if isinstance(t, Tensor)), default=0)
        self.depends = any(isinstance(z, Tensor) and z.read().level >= level for z in results)
        # where the tensors stood there is nothing: the record keeps what it needs
        self.result = rebuild(out, iter([None] * len(results)))
        return tuple(results)

    def fill(self, results: Sequence[object]) -> Any:
        """Return results in the container that the function returned."""
        return rebuild(self.result, iter(results))


def make_vjp(fun: Callable[..., Any], x: Tree) -> tuple[Callable[[Any], Any], Any]:
    """Return the vector-Jacobian product of ``fun`` at ``x`` as a function, and the value.

    fun: a function of one argument.
    x: a number, an array, or a list, tuple or dict of them.

    >>> import numpy as np
    >>> vjp, value = make_vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> vjp(np.array([1.0, 10.0])), value
    (array([ 2., 40.]), array([1., 4.]))
    """
    run = _TracedRun(fun, x)
    if not run.leaves:
        warnings.warn(INDEPENDENT, stacklevel=2)
        return (lambda g: x), fun(x)
    values, pull = record_vjp(run, *run.leaves)
    if not run.depends:
        warnings.warn(INDEPENDENT, stacklevel=2)

    def vjp(g: Tree) -> Any:
        seeds = [_seed(s, z) for s, z in zip(align(run.result, g), values, strict=True)]
        return rebuild(x, map(conjugate, pull(tuple(seeds))))

    return vjp, run.fill(values)


def _seed(g: Operand, z: Operand) -> Any:
    """Return a cotangent in the shape of its value, in the convention of this library."""
    g = conjugate(g)
    if np.shape(g) != np.shape(z):
        g = np.broadcast_to(g, np.shape(z))
    return g if np.iscomplexobj(z) else np.real(g)


def make_jvp(fun: Callable[..., Any], x: Tree) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function from a tangent at ``x`` to the value of ``fun`` and its tangent.

    fun: a function of one argument.
    x: a number, an array, or a list, tuple or dict of them.

    >>> make_jvp(lambda x: x**2, 3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """

    def jvp(g: Tree) -> tuple[Any, Any]:
        run = _TracedRun(fun, x)
        if not run.leaves:
            warnings.warn(INDEPENDENT, stacklevel=2)
            value = fun(x)
            return value, vspace(value).zeros()
        values, tangents = push_tangents(run, run.leaves, align(x, g))
        if not run.depends:
            warnings.warn(INDEPENDENT, stacklevel=2)
        return run.fill(values), run.fill(tangents)

    return jvp
