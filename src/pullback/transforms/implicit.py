"""Implicit differentiation: solutions of equations, differentiated by the equation and not through the solver.

A solver of ``F(x, p) = 0`` gives a number ``x`` whose dependence on ``p`` is not recorded.  A step towards the root,
``x - A⁻¹ F(x, p)``, with ``A`` the derivative of ``F`` by ``x`` there, taken as a constant, does not move it, but has
the derivative by the implicit function theorem.  A second step makes the second derivative right as well, and so
on: as many steps as there are transforms in progress.  So every order, both modes, ``vmap``, variables and captured
tensors come from the ops in ``F``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core import tree
from pullback.core.convert import join_array
from pullback.core.tape import as_tensor
from pullback.core.tensor import ARRAYS, RAW, Tensor, call_unfollowed, concrete, iterate_levels
from pullback.core.variable import watch_below
from pullback.errors import ArgumentError, BatchedValueError, ConvergenceError, MatrixError, ShapeError
from pullback.transforms.arguments import HERE, Arguments, mark, restore_marked
from pullback.transforms.batch import vmap
from pullback.transforms.captured import line_of, make_capture_error
from pullback.transforms.forward import Dual, jvp
from pullback.transforms.grad import as_leaf, convert_back, kind_of
from pullback.transforms.modifiers import stop_gradient
from pullback.transforms.signatures import check_function

if TYPE_CHECKING:
    from pullback.typing import Array, ArrayOrNumber, Operand, Value

MAX_STEPS = 1000  # of the plain iteration to a fixed point


class Unknowns:
    """The unknowns of an equation, an array or a tree of them, and their layout in one vector."""

    def __init__(self, x0: object, dtype: np.dtype[Any]) -> None:
        self.tree, self.dtype = tree.map_leaves(lambda leaf: HERE, x0), dtype
        self.shapes: list[tuple[int, ...]] = [leaf.shape for leaf in tree.leaves(x0)]
        self.sizes = [prod(shape) for shape in self.shapes]
        self.single = self.tree is HERE

    def join(self, x: object) -> Any:
        """Return the vector of all numbers in a tree."""
        return np.concatenate([np.reshape(leaf, (-1,)) for leaf in tree.leaves(x)])

    def split(self, vector: Value) -> Any:
        """Return the tree of the numbers in a vector."""
        ends = np.cumsum(self.sizes).tolist()
        parts = [vector[end - size : end] for end, size in zip(ends, self.sizes, strict=True)]
        return tree.replace_leaves(self.tree, [np.reshape(p, s) for p, s in zip(parts, self.shapes, strict=True)])

    def fits(self, x: object) -> bool:
        """Return whether a tree has as many numbers as there are unknowns."""
        return [prod(np.shape(leaf)) for leaf in tree.leaves(x)] == self.sizes

    def __str__(self) -> str:
        return f"shape {self.shapes[0]}" if self.single else f"shapes {self.shapes}"


class Implicit:
    """A function that returns the solution of an equation; it pickles if ``f`` and ``solve`` do."""

    face = ""

    def __init__(self, f: Callable[..., Any], solve: Callable[..., Any]) -> None:
        for name, function in (("f", f), ("solve", solve)):
            check_function(f"{self.face}(f, solve): {name}", function)
        self.f, self.solve = f, solve

    def __dir__(self) -> list[str]:
        return ["f", "solve"]

    @property
    def name(self) -> str:
        return f"{self.face}({getattr(self.f, '__name__', type(self.f).__name__)})"

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def residual(self, x: Value, y: Value) -> Any:
        """Return the residual, zero at the solution, from the vectors of ``x`` and of ``f(x, *params)``."""
        raise NotImplementedError

    def __call__(self, x0: object, *params: object) -> Any:
        arguments = Arguments([x0, *map(mark, params)])
        start = arguments.tree[0]
        dtypes = [leaf.dtype for leaf in arguments.flat if leaf.dtype.kind in "fc"]
        unknowns = Unknowns(start, np.result_type(*dtypes) if dtypes else np.dtype(float))
        if unknowns.dtype.kind == "c":
            raise ArgumentError(
                f"{self.name}: complex numbers are not supported; solve for the real and the imaginary part."
            )
        count = len(unknowns.shapes)
        values = [*map(stop_gradient, arguments.flat[:count]), *arguments.flat[count:]]
        with watch_below(0):
            vector = call_unfollowed(lambda *plain: self._run_solver(unknowns, arguments, plain), *values)
        if sum(unknowns.sizes):
            vector = self._attach_derivative(unknowns, arguments, values, vector)
        kind = max(kind_of(leaf) for leaf in tree.leaves([x0, *params]))
        return tree.map_leaves(
            lambda x: convert_back(x[()] if isinstance(x, ndarray) else x, kind), unknowns.split(vector)
        )

    # ---- the solution

    def _run_solver(self, unknowns: Unknowns, arguments: Arguments, plain: Sequence[Any]) -> Any:
        """Return the vector that ``solve`` finds; all it is given are plain arrays."""
        start, *params = tree.map_leaves(concrete, restore_marked(arguments.fill(plain)))
        start = tree.map_leaves(lambda x: x.astype(unknowns.dtype, copy=False), start)

        def f(x: ArrayOrNumber, *params: object) -> Any:
            if not unknowns.single:
                return tree.map_leaves(self._as_array, self.f(_as_tensors(x), *map(_as_tensors, params)))
            shaped = np.reshape(np.asarray(x), unknowns.shapes[0]) if unknowns.fits(x) else x
            y = self._as_array(self.f(_as_tensors(shaped), *map(_as_tensors, params)))
            return np.reshape(y, np.shape(x))[()] if unknowns.fits(y) and unknowns.fits(x) else y

        found = self.solve(f, start, *params)
        if getattr(found, "success", True) is False or getattr(found, "converged", True) is False:
            message = getattr(found, "message", None) or getattr(found, "flag", "")
            raise ConvergenceError(
                f"{self.name}: solve reports that it did not converge: {' '.join(str(message).split())} "
                f"If that is near enough, return the solution alone ({line_of(self.solve)})."
            )
        if not hasattr(found, "__array__") and unknowns.single:  # a result object of SciPy's root or root_scalar
            found = getattr(found, "x", getattr(found, "root", found))
        found = tree.map_leaves(_as_arrays, found, whole=tree.is_number_list)
        if not unknowns.fits(found):
            got = [np.shape(leaf) for leaf in tree.leaves(found)]
            raise ShapeError(
                f"{self.name}: solve must return a solution like x0, {unknowns}, got {got} ({line_of(self.solve)})."
            )
        return unknowns.join(found).astype(unknowns.dtype, copy=False)

    def _as_array(self, y: Value) -> Any:
        try:
            return _as_arrays(y)
        except BatchedValueError:
            raise make_capture_error(self.name, "f", [self.f], 0, {}, ()) from None

    # ---- its derivatives

    def _attach_derivative(self, unknowns: Unknowns, arguments: Arguments, values: Sequence[Any], x: Value) -> Any:
        """Return the solution vector with its derivative by the parameters."""
        inverse, step, steps = None, 0, 1
        while step < steps:
            rest = self._compute_residual(unknowns, arguments, values, x)
            if inverse is None:
                steps = len({*_list_differentiating(rest)})
                if not steps:
                    break
                inverse = self._invert_slope(unknowns, arguments, values, x)
            x = x - np.matmul(inverse, rest - stop_gradient(rest))
            step += 1
        return x

    def _compute_residual(self, unknowns: Unknowns, arguments: Arguments, values: Sequence[Any], x: Value) -> Any:
        _, *params = restore_marked(arguments.fill(values))
        y = self.f(_as_tensors(unknowns.split(x)), *params)
        y = tree.map_leaves(
            lambda part: part if isinstance(part, Tensor) else _as_arrays(part), tree.map_leaves(join_array, y)
        )
        if not unknowns.fits(y):
            got = [np.shape(leaf) for leaf in tree.leaves(y)]
            raise ShapeError(
                f"{self.name}: f must return as many numbers as x has, {unknowns}, got {got} ({line_of(self.f)})."
            )
        return self.residual(x, unknowns.join(y))

    def _invert_slope(self, unknowns: Unknowns, arguments: Arguments, values: Sequence[Any], x: Value) -> Any:
        """Return the inverse of the derivative of the residual by ``x``, as a constant."""
        fixed = [stop_gradient(v) for v in values]
        columns = vmap(
            lambda t: jvp(lambda x: self._compute_residual(unknowns, arguments, fixed, x), [x], [t])[1], 0, -1
        )
        return call_unfollowed(self._invert, stop_gradient(columns(np.eye(sum(unknowns.sizes), dtype=unknowns.dtype))))

    def _invert(self, a: Array) -> Any:
        try:
            inverse = np.linalg.inv(a)
        except np.linalg.LinAlgError:
            inverse = np.full_like(a, np.inf)
        with np.errstate(all="ignore"):
            size = float(np.abs(a).sum(0).max() * np.abs(inverse).sum(0).max())
        if not size * np.finfo(a.dtype).eps < 1:
            raise MatrixError(
                f"{self.name}: the derivative of the equation by x, a matrix of shape {a.shape}, is singular at the "
                "solution, so a small change of the parameters may move it any distance and it has no derivative. "
                f"Is it a double root, or are there more unknowns than equations ({line_of(self.f)})?"
            )
        return inverse


def _as_arrays(x: Operand) -> Any:
    """Return tensors and numbers as arrays."""
    return concrete(join_array(x)) if isinstance(x, ARRAYS) else as_leaf(x, "custom_root")


def _as_tensors(x: Any) -> Any:
    return tree.map_leaves(lambda leaf: as_tensor(leaf) if isinstance(leaf, RAW) else leaf, x)


def _list_differentiating(x: Any) -> Iterator[int]:
    """Yield the levels of all transforms that differentiate ``x``."""
    for t in iterate_levels(x):
        if t.differentiates:
            yield t.level
        if isinstance(t, Dual):
            yield from _list_differentiating(t.tangent)


class Root(Implicit):
    """The function that ``custom_root`` returns."""

    face = "custom_root"

    def residual(self, x: Value, y: Value) -> Any:
        return y


class FixedPoint(Implicit):
    """The function that ``custom_fixed_point`` returns."""

    face = "custom_fixed_point"

    def residual(self, x: Value, y: Value) -> Any:
        return x - y


def custom_root(f: Callable[..., Any], solve: Callable[..., Any]) -> Root:
    """Return ``root(x0, *params)``: the solution of ``f(x, *params) = 0`` that ``solve`` finds, differentiable.

    ``solve(f, x0, *params)`` is anything that returns the solution: a function of SciPy's, or a loop.  It is given
    plain arrays, and an ``f`` that takes and returns plain arrays, so it need not be differentiable.  The derivatives
    by ``params``, of any order and in both modes, follow from ``f`` by the implicit function theorem; there is none by
    ``x0``.  Under ``vmap``, ``solve`` is called for each example.  ``x0`` and the parameters may be trees.  The
    derivative of ``f`` by ``x`` is a dense matrix, so ``x`` should not have more than a few thousand numbers.

    >>> import pullback as pb
    >>> def bisect(f, x0, a):
    ...     low, high = 0.0, 10.0
    ...     for _ in range(60):
    ...         middle = (low + high) / 2
    ...         low, high = (middle, high) if f(middle, a) < 0 else (low, middle)
    ...     return middle
    >>> root = pb.custom_root(lambda x, a: x * x - a, bisect)
    >>> round(root(1.0, 4.0), 6)
    2.0
    >>> round(pb.grad(lambda a: root(1.0, a))(4.0), 6), round(pb.grad(pb.grad(lambda a: root(1.0, a)))(4.0), 6)
    (0.25, -0.03125)
    """
    return Root(f, solve)


def custom_fixed_point(f: Callable[..., Any], solve: Callable[..., Any] | None = None) -> FixedPoint:
    """Return ``point(x0, *params)``: the solution of ``x = f(x, *params)`` that ``solve`` finds, differentiable.

    Everything else is as in ``custom_root``.  Without ``solve``, ``f`` is applied until ``x`` no longer changes.

    >>> import pullback as pb
    >>> point = pb.custom_fixed_point(lambda x, a: (x + a / x) / 2)  # Heron's way to the square root
    >>> round(point(1.0, 9.0), 6), round(pb.grad(lambda a: point(1.0, a))(9.0), 6)
    (3.0, 0.166667)
    """
    return FixedPoint(f, iterate if solve is None else solve)


def iterate(f: Callable[..., Any], x: Array, *params: object) -> Any:
    """Return the fixed point of ``f`` from ``x`` on: apply ``f`` until steps are as small as rounding errors."""
    face = "custom_fixed_point"
    for _ in range(MAX_STEPS):
        y = f(x, *params)
        pairs = list(zip(tree.leaves(x), tree.leaves(y), strict=True))
        moved = max(float(np.max(np.abs(b - a), initial=0)) for a, b in pairs)
        scale = max(1.0, *(float(np.max(np.abs(b), initial=0)) for _, b in pairs))
        if not np.isfinite(moved):
            raise ConvergenceError(f"{face}: the iteration reached NaN or infinity. Give another x0, or a solve.")
        x = y
        if moved <= 16 * float(np.finfo(pairs[0][1].dtype).eps) * scale:
            return x
    raise ConvergenceError(
        f"{face}: after {MAX_STEPS} steps x still moves by {moved:.3g}. "
        "Give an f that contracts, another x0, or a solve."
    )
