"""Trees as vectors, and Jacobians as linear operators, for the solvers of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from pullback.core import tree as trees
from pullback.core.convert import as_array
from pullback.core.tensor import Tensor
from pullback.errors import ShapeError
from pullback.names.packages import import_package
from pullback.transforms.linear import linearize, vjp
from pullback.transforms.signatures import check_function

T = TypeVar("T")  # a tree


def _as_leaf(x: Any) -> Any:
    if isinstance(x, Tensor | np.ndarray | np.generic):
        return x
    return as_array(x, None, "ravel_tree")


def ravel_tree(tree: T) -> tuple[Any, Callable[[Any], T]]:
    """Return the vector of all numbers in a tree, and a function that makes the tree of such a vector.

    tree: dicts, lists, tuples and dataclasses of arrays, tensors and numbers; or one of these.

    The vector has the dtype that all leaves promote to; the function gives each leaf its own dtype and shape back, and
    both are differentiable.

    >>> import numpy as np, pullback as pb
    >>> vector, unravel = pb.ravel_tree({"w": np.ones((2, 2)), "b": np.zeros(1)})
    >>> vector
    array([1., 1., 1., 1., 0.])
    >>> unravel(2 * vector)["w"]
    array([[2., 2.],
           [2., 2.]])
    """
    leaves = trees.map_leaves(_as_leaf, tree, whole=trees.is_number_list)
    flat = trees.leaves(leaves)
    shapes, dtypes = [leaf.shape for leaf in flat], [leaf.dtype for leaf in flat]
    sizes = [prod(shape) for shape in shapes]
    kind = np.result_type(*dtypes) if dtypes else np.dtype(float)
    parts = [
        np.astype(np.reshape(leaf, (-1,)), kind) if leaf.dtype != kind else np.reshape(leaf, (-1,)) for leaf in flat
    ]

    def unravel(vector: Any) -> T:
        if np.shape(vector) != (sum(sizes),):
            raise ShapeError(f"unravel: expected a vector of {sum(sizes)} numbers, got shape {np.shape(vector)}.")
        ends = np.cumsum(sizes).tolist()
        new = [
            _restore(vector[end - size : end], shape, dtype)
            for end, size, shape, dtype in zip(ends, sizes, shapes, dtypes, strict=True)
        ]
        rebuilt: T = trees.replace_leaves(leaves, new)
        return rebuilt

    return (np.concatenate(parts) if parts else np.zeros(0)), unravel


def _restore(part: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    leaf = np.reshape(part, shape)
    leaf = leaf[()] if not shape and type(leaf) is np.ndarray else leaf  # a number, not an array without axes
    return leaf if leaf.dtype == dtype or dtype.kind not in "fc" else np.astype(leaf, dtype)


def linear_operator(f: Callable[..., Any], x: Any) -> Any:
    """Return the Jacobian of ``f`` at ``x`` as a ``LinearOperator`` of SciPy's, whose matrix is never made.

    f: takes ``x`` and returns an array; both may be trees, which are vectors to the operator, as by ``ravel_tree``.
    x: where the Jacobian is taken.

    A product with a vector is one forward pass, one with the transpose is one backward pass.

    >>> import numpy as np, pullback as pb
    >>> J = pb.linear_operator(lambda x: x**2, np.array([1.0, 2.0]))
    >>> J @ np.array([1.0, 1.0]), J.T @ np.array([1.0, 0.0])
    (array([2., 4.]), array([2., 0.]))
    """
    linalg = import_package("scipy.sparse.linalg", "pb.linear_operator needs SciPy", "pullback[scipy]")
    check_function("linear_operator(f, x): f", f)
    start, unravel = ravel_tree(x)
    if start.dtype.kind not in "fc":
        start = np.astype(start, np.float64)

    def flat(vector: Any) -> Any:
        return ravel_tree(f(unravel(vector)))[0]

    y, push = linearize(flat, start)
    _, pull = vjp(flat, start)

    def multiply(v: Any) -> Any:
        return np.asarray(push(np.reshape(np.asarray(v, start.dtype), start.shape)))

    def multiply_adjoint(u: Any) -> Any:
        (cotangent,) = pull(np.conj(np.reshape(np.asarray(u, y.dtype), y.shape)))
        return np.conj(np.asarray(cotangent))

    return linalg.LinearOperator((y.shape[0], start.shape[0]), matvec=multiply, rmatvec=multiply_adjoint, dtype=y.dtype)
