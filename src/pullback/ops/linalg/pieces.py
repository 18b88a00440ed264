"""Shape rules, error messages and formulas that the linear algebra ops share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Acts, Sample, Shape, broadcast
from pullback.core.tensor import all_values
from pullback.errors import GradientError, MatrixError, ShapeError
from pullback.numerics.adjoints import H, T
from pullback.numerics.axis_arguments import format_shapes
from pullback.numerics.batching import batch_leading_axes

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Value

__all__: list[str] = []


# ---- shapes


def make_matrices(*shape: int) -> Any:
    """Return matrices for the generated tests: invertible, with eigenvalues and singular values well apart.

    >>> np.linalg.cond(make_matrices(3, 3)) < 10
    np.True_
    """
    m, n = shape[-2:]
    x = 0.8 * np.sin(np.arange(1.0, 1.0 + prod(shape)) ** 1.7).reshape(shape)
    return x + np.eye(m, n) * np.arange(2.0, 2.0 + n)


def make_positive_matrices(*shape: int) -> Any:
    """Return positive definite matrices for the generated tests, symmetric up to rounding errors."""
    x = make_matrices(*shape)
    return x @ T(x) + np.eye(shape[-1]) + 1e-3 * np.sin(x)


def make_complex_matrices(*shape: int) -> Any:
    """Return matrices for the generated tests, of complex numbers.

    >>> np.linalg.cond(make_complex_matrices(3, 3)) < 10
    np.True_
    """
    return make_matrices(*shape) + 0.5j * np.cos(np.arange(1.0, 1.0 + prod(shape)) ** 1.3).reshape(shape)


def make_complex_positive_matrices(*shape: int) -> Any:
    """Return complex positive definite matrices for the generated tests, Hermitian up to rounding errors."""
    x = make_complex_matrices(*shape)
    return x @ H(x) + np.eye(shape[-1]) + 1e-3 * np.sin(x)


class Matrices(Acts):
    """How an op of one matrix acts: ``out(m, n)`` are the last axes of its result; any axes may come before them."""

    def __init__(
        self, out: Callable[..., Sequence[int]], shapes: Sequence[Shape], square: bool = True,
        fill: Any = make_matrices, parameter_sets: Sequence[dict[str, Any]] = ({},),
        complex: Any = make_complex_matrices,
    ) -> None:  # fmt: skip
        self.out, self.shapes, self.square, self.fill, self.parameter_sets = out, shapes, square, fill, parameter_sets
        self.complex = complex  # makes complex matrices for one more sample; or None

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        (x,) = shapes
        if len(x) < 2:
            raise ShapeError(f"{name}: x must be a matrix, or several over its last two axes; got shape {x}.")
        *batch, m, n = x
        if self.square and m != n:
            raise ShapeError(f"{name}: x must be square over its last two axes; got shape {x}, {m} rows of {n}.")
        return (*batch, *self.out(m, n))

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        return batch_leading_axes(op, args, on, params)

    def samples(self) -> list[Sample]:
        samples: list[Sample] = [
            ((self.fill(*shape),), params) for params in self.parameter_sets for shape in self.shapes
        ]
        if self.complex is not None:
            samples += [
                ((self.complex(*shape),), self.parameter_sets[0])
                for shape in self.shapes
                if len(shape) == 3 or shape[0] == 4
            ]
        return samples


SQUARE: tuple[Shape, ...] = ((3, 3), (1, 1), (2, 3, 3), (0, 2, 2), (0, 0))
ANY: tuple[Shape, ...] = (*SQUARE, (4, 2), (2, 4), (2, 3, 2), (3, 0))
TALL: tuple[Shape, ...] = (*SQUARE, (4, 2), (2, 3, 2), (3, 0))
same_square = Matrices(lambda m, n: (m, n), SQUARE)


columns = broadcast("(m,m),(m,n)->(m,n)")


class Systems(Acts):
    """How an op of equations ``x @ z = y`` acts: ``y`` may be a vector; leading axes broadcast."""

    def __init__(self, parameter_sets: Sequence[dict[str, Any]] = ({},)) -> None:
        self.parameter_sets = parameter_sets

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        x, y = shapes
        if len(x) < 2 or x[-1] != x[-2]:
            raise ShapeError(f"{name}: x must be square over its last two axes; got shapes {format_shapes(shapes)}.")
        vector = len(y) == 1
        rows = y[-2:][0] if y else 0
        if not y or rows != x[-1]:
            raise ShapeError(
                f"{name}: x has {x[-1]} equations and y {rows} right sides; got shapes {format_shapes(shapes)}. "
                "A vector y has one number for each, a matrix one row."
            )
        try:
            batch = np.broadcast_shapes(x[:-2], y[:-2])
        except ValueError:
            raise ShapeError(f"{name}: the leading axes of shapes {format_shapes(shapes)} do not broadcast.") from None
        return (*batch, rows) if vector else (*batch, rows, y[-1])

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        x, y = args
        vector = np.ndim(y) - on[1] == 1
        z = columns.batch(op, [x, y[..., None] if vector else y], on, params)
        return z[..., 0] if vector else z

    def samples(self) -> list[Sample]:
        pairs: list[tuple[Shape, Shape]] = [
            ((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3, 1)), ((2, 1, 2, 2), (3, 2, 2)),
            ((2, 2), (3, 2, 4)), ((0, 2, 2), (2, 1)), ((0, 0), (0, 2)), ((1, 1), (1,)),
        ]  # fmt: skip
        samples: list[Sample] = [((make_matrices(*x), y), params) for params in self.parameter_sets for x, y in pairs]
        return samples + [
            ((make_complex_matrices(2, 3, 3), y), params) for params in self.parameter_sets for y in ((3,), (2, 3, 1))
        ]


# ---- errors


def explain_errors(name: str, run: Callable[..., Any], reason: str) -> Callable[..., Any]:
    """Return ``run`` such that NumPy's LinAlgError says the ``reason``; errors of shapes stay as they are."""

    def run_clearly(*args: object) -> Any:
        try:
            return run(*args)
        except np.linalg.LinAlgError as error:
            if isinstance(error, MatrixError) or "dimension" in str(error):
                raise
            shapes = format_shapes([a.shape for a in args if isinstance(a, np.ndarray)])
            raise MatrixError(f"{name}: {reason} (got shape {shapes}).") from None

    return run_clearly


SINGULAR = "a matrix is singular, so it has no inverse; try pb.linalg.pinv, or add a little to the diagonal"
UNSOLVED = "a matrix is singular, so there is not one solution; try pb.linalg.lstsq, or add a little to the diagonal"
MIN_SAVED = 48  # rows of matrices whose decomposition is kept for the rule, though its values differ in the last digit
DIVERGED = "the iteration did not converge; look for NaN or infinity in x"


# ---- pieces of rules


def symmetrize(x: Value) -> Any:
    """Return the mean of a matrix and its transpose, of complex numbers conjugated.

    >>> symmetrize(np.array([[1.0, 2.0], [4.0, 5.0]]))
    array([[1., 3.],
           [3., 5.]])
    """
    x = x if x.dtype.kind in "fc" else x.astype(float)  # sums of small integers overflow
    return (x + H(x)) * np.array(0.5, np.finfo(x.dtype).dtype)


def is_complex(x: Value) -> bool:
    return bool(x.dtype.kind == "c")


def take_real_part(x: Value) -> Any:
    """Return the real part of numbers that are real, of whichever dtype.

    >>> take_real_part(np.array([1 + 0j, 2]))
    array([1., 2.])
    """
    return np.real(x) if is_complex(x) else x


def make_imaginary(x: Value) -> Any:
    """Return ``1j`` times real numbers, or 0 for a real dtype."""
    return x * np.array(1j, np.result_type(x.dtype, np.complex64))


def check_phase(name: str, turned: Value, g: Value) -> None:
    """Raise an error for a function that depends on the phases of complex vectors, which are arbitrary.

    ``turned`` is how much the function changes when each vector turns, ``g`` the cotangent of all of them.
    """
    by, size = np.abs(all_values(turned)), np.abs(all_values(g))
    if by.size and by.max() > np.finfo(by.dtype).eps ** 0.4 * max(size.max(), 1.0):
        raise GradientError(
            f"{name}: of complex matrices each vector may be multiplied by any number of absolute value 1, and the "
            "function that is differentiated depends on which one it was. Take what does not, such as abs(v), "
            "v @ v.conj().T, or vectors divided by one of their elements."
        )


MAX_CACHED_ROWS = 128  # of a matrix that is made once; larger ones would fill the memory


def cache_small(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a number of rows that remembers the matrices it made, if they are small."""
    cached = lru_cache(256)(make)
    return lambda n, *more: (cached if n <= MAX_CACHED_ROWS else make)(n, *more)


@cache_small
def make_identity(n: int, dtype: np.dtype[Any]) -> Any:
    return np.eye(n, dtype=dtype)


@cache_small
def make_triangle(n: int, k: int, dtype: np.dtype[Any]) -> Any:
    """Return ones on and under the k-th diagonal."""
    return np.tri(n, n, k, dtype=dtype)


@cache_small
def mask_triangle(n: int, lower: bool) -> Any:
    """Return where a matrix has its lower or upper triangle, with the diagonal."""
    return np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T


def make_diagonal_matrix(x: Value) -> Any:
    """Return vectors as diagonal matrices.

    >>> make_diagonal_matrix(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    return x[..., None] * make_identity(x.shape[-1], x.dtype)


def take_diagonal_row(x: Value) -> Any:
    """Return the diagonal of square matrices, as a matrix of one row.

    >>> take_diagonal_row(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 4.]])
    """
    return np.sum(x * make_identity(x.shape[-1], x.dtype), axis=-2, keepdims=True)


# Where a derivative does not exist it is infinite or NaN, without a warning, as it may not be used.
unwarned = np.errstate(divide="ignore", invalid="ignore")


def divide_or_zero(x: Value, y: Value) -> Any:
    """Return ``x / y``, and 0 for 0 / 0, so that unused derivatives stay 0.

    >>> divide_or_zero(np.array([0.0, 3.0]), np.array([0.0, 2.0]))
    array([0. , 1.5])
    """
    both: Any = (y == 0) & (x == 0)
    return x / (y + both)


def divide_by_gaps(x: Value, gaps: Value) -> Any:
    """Return the off-diagonal elements ``x[i, j] / gaps[i, j]``; infinite or NaN where two values coincide.

    >>> divide_by_gaps(np.array([[5.0, 2.0], [0.0, 5.0]]), np.array([[0.0, 4.0], [-4.0, 0.0]]))
    array([[ 0. ,  0.5],
           [-0. ,  0. ]])
    """
    return divide_or_zero(x - x * make_identity(x.shape[-1], x.dtype), gaps)


def subtract_pairs(w: Value) -> Any:
    """Return ``w[j] - w[i]`` for all pairs.

    >>> subtract_pairs(np.array([1.0, 4.0]))
    array([[ 0.,  3.],
           [-3.,  0.]])
    """
    return w[..., None, :] - w[..., :, None]
