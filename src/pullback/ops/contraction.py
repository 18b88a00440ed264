"""Contractions: products summed over a shared axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.axes import Sample, Shape, broadcast, moves
from pullback.core.calculus import linear
from pullback.core.lowering import call, made_of
from pullback.core.op import REGISTRY, WEAK, alias, convert_operand, method, observable, op
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.adjoints import T
from pullback.numerics.axis_arguments import LETTERS, format_shapes, resolve_axes
from pullback.numerics.small_arrays import dot_fives, multiply_columns_by_rows

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, TensorLike, Value

__all__ = ["dot", "einsum", "inner", "mat_mul", "matmul", "outer", "outer_product", "tensordot", "vdot"]


class MatrixProduct(broadcast):
    """How a product of matrices acts; a vector is a row on the left and a column on the right, as in NumPy."""

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        a, b = shapes
        row, column = len(a) == 1, len(b) == 1
        padded = [(1, *a) if row else a, (*b, 1) if column else b]
        try:
            full = super().shape(name, padded, params)
        except ShapeError as error:
            raise ShapeError(str(error).replace(format_shapes(padded), format_shapes(shapes))) from None
        kept = full[:-2] if row else full[:-1]
        return kept if column else (*kept, full[-1])

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        (x, y), (many_x, many_y) = args, on
        row, column = np.ndim(x) - many_x == 1, np.ndim(y) - many_y == 1
        if many_x and not many_y and y.ndim <= 2:  # the rows of all examples in one product
            return np.reshape(
                multiply_matrices(np.reshape(x, (prod(x.shape[:-1]), x.shape[-1])), y), x.shape[:-1] + y.shape[1:]
            )
        if many_y and column and not many_x and x.ndim <= 2:
            return multiply_matrices(y, T(x) if x.ndim == 2 else x)
        x = x[..., None, :] if row else x
        y = y[..., None] if column else y
        z = super().batch(op, [x, y], on, params)
        z = z[..., 0] if column else z
        return z[..., 0] if row and column else z[..., 0, :] if row else z

    def samples(self) -> list[Sample]:
        vectors: list[Any] = [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((3,), (4, 3, 2)), ((4, 2, 3), (3,))]
        return [*super().samples(), *((shapes, {}) for shapes in (*vectors, ((2, 0), (0, 3))))]


def multiply_matrices(x: Value, y: Value) -> Any:
    """Return ``x @ y`` by ``dot``, which is faster for small matrices, or by a special case.

    For a matrix of one element ``dot`` scales by BLAS, which returns 0 where 0 times NaN or infinity should be NaN.
    """
    if type(x) is ndarray and type(y) is ndarray:
        if x.ndim == 2 and y.ndim == 2 and ((n := len(y)) > 1 or (x.size > 1 and y.size > 1)):
            return x.dot(y) if n != 5 else dot_fives(x, y)
        return _multiply_other_ranks(x, y)
    return np.matmul(x, y)


def _multiply_other_ranks(x: Array, y: Array) -> Any:
    """Return ``x @ y`` of arrays that are not both matrices, or have a length of 1."""
    if x.ndim + y.ndim == 3 and x.ndim and y.ndim and len(y) == 5:
        return dot_fives(x, y)
    if x.ndim == y.ndim == 3 and x.shape[2] == 1 and x.shape[0] == y.shape[0] and y.shape[1] == 1:
        return multiply_columns_by_rows(x[:, :, 0], y[:, 0])
    return np.matmul(x, y)


def sum_leading_axes(x: Value) -> Any:
    """Return the sum of vectors over all leading axes."""
    return np.sum(x, axis=tuple(range(x.ndim - 1))) if x.ndim > 1 else x


def pull_left_operand(g: Value, y: Value) -> Any:
    """Return the cotangent of ``x`` in ``x @ y``; the ranks show which operands were vectors."""
    if type(g) is ndarray and type(y) is ndarray and g.ndim == 2 and y.ndim == 2:
        if (n := g.shape[1]) > 1 or (g.size > 1 and y.size > 1):
            return g.dot(y.T) if n != 5 else dot_fives(g, y.T)
        return np.matmul(g, y.T)
    if y.ndim == 1:
        return g[..., None] * y
    if g.ndim < y.ndim:  # x was a vector
        if g.ndim == 1:
            return np.matmul(y, g)
        return sum_leading_axes(np.matmul(y, g[..., None])[..., 0])
    return np.matmul(g, T(y))


def pull_right_operand(g: Value, x: Value) -> Any:
    """Return the cotangent of ``y`` in ``x @ y``."""
    if type(g) is ndarray and type(x) is ndarray and g.ndim == 2 and x.ndim == 2:
        if (n := len(g)) > 1 or (g.size > 1 and x.size > 1):
            return x.T.dot(g) if n != 5 else dot_fives(x.T, g)
        return np.matmul(x.T, g)
    if x.ndim == 1:
        if type(g) is ndarray or not g.ndim:
            return g[..., None, :] * x[:, None] if g.ndim else g * x
        return np.matmul(x[:, None], g[..., None, :])
    if g.ndim < x.ndim:  # y was a vector
        return sum_leading_axes(np.matmul(g[..., None, :], x)[..., 0, :])
    return np.matmul(T(x), g)


@op(
    np.matmul,
    acts=MatrixProduct("(m,k),(k,n)->(m,n)"),
    d=linear(pull_left_operand, pull_right_operand),
    run=multiply_matrices,
    lower=call("gemm"),
)
def matmul(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the matrix product ``x @ y`` over the last two axes; leading axes broadcast, vectors are rows or columns.

    x: matrices along the last two axes, or a vector.
    y: the same.

    >>> pb.matmul(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """


@method
def mat_mul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """Return the matrix product over the last two axes, with either operand transposed first; leading axes broadcast.

    a: matrices, along the last two axes.
    b: matrices, along the last two axes.
    transpose_a: whether ``a`` is transposed first.
    transpose_b: whether ``b`` is transposed first.

    >>> pb.mat_mul(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]), transpose_a=True)
    array([[11.]])
    """
    if transpose_a:
        a = transpose_matrix(a, "a")
    if transpose_b:
        b = transpose_matrix(b, "b")
    return matmul(a, b)


def transpose_matrix(x: TensorLike, name: str) -> Any:
    x = convert_operand(x)
    if len(x.shape) < 2:
        raise ShapeError(
            f"mat_mul: {name} has shape {x.shape}; only a matrix can be transposed, drop transpose_{name}."
        )
    return T(x)


# ---- contraction over any axes


def as_operands(*xs: TensorLike) -> list[Value]:
    """Return the operands as arrays or tensors; Python numbers take the dtype of the others."""
    ready: list[Any] = [x if hasattr(x, "dtype") or type(x) in WEAK else convert_operand(x) for x in xs]
    dtypes = [x.dtype for x in ready if hasattr(x, "dtype")]
    if not dtypes or "O" in [d.char for d in dtypes]:
        return [convert_operand(x) for x in ready]
    if len(dtypes) == len(ready):
        return ready
    return [x if hasattr(x, "dtype") else np.asarray(x, np.result_type(x, *dtypes))[()] for x in ready]


@lru_cache(4096)
def plan_product(equation: str) -> tuple[Any, ...]:
    """Return the axis orders that make a contraction a matrix product, and the number of axes of each kind."""
    left, out = equation.split("->")
    a, b = left.split(",")
    both = [c for c in a if c in b]
    batch, summed = [c for c in both if c in out], [c for c in both if c not in out]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    letters = batch + rows + columns
    return (
        tuple(a.index(c) for c in batch + rows + summed),
        tuple(b.index(c) for c in batch + summed + columns),
        tuple(letters.index(c) for c in out),
        len(batch), len(rows), len(summed), len(columns),
    )  # fmt: skip


def contract_arrays(x: Any, y: Any, equation: str) -> Any:
    """Contract two arrays by one matrix product, or by multiplication where nothing is summed."""
    order_x, order_y, order, batch, rows, summed, columns = plan_product(equation)
    if batch and summed and not rows and not columns:
        return np.einsum(equation, x, y)  # many short scalar products
    x, y = x.transpose(order_x), y.transpose(order_y)
    head, middle, tail = x.shape[:batch], x.shape[batch : batch + rows], y.shape[batch + summed :]
    if y.shape[:batch] != head or x.shape[batch + rows :] != y.shape[batch : batch + summed]:
        raise ShapeError(f"contract: the lengths of an axis of '{equation}' differ.")
    if summed:
        m, k, n = prod(middle), prod(x.shape[batch + rows :]), prod(tail)
        z = multiply_matrices(x.reshape(*head, m, k), y.reshape(*head, k, n)).reshape(head + middle + tail)
    else:
        z = x.reshape(head + middle + (1,) * columns) * y.reshape(head + (1,) * rows + tail)
    return z.transpose(order)


@lru_cache(4096)
def find_adjoint_equations(equation: str) -> tuple[str, str]:
    """Return the equations of the two adjoints.

    >>> find_adjoint_equations("ij,jk->ik")
    ('ik,jk->ij', 'ij,ik->jk')
    """
    left, out = equation.split("->")
    a, b = left.split(",")
    return f"{out},{b}->{a}", f"{a},{out}->{b}"


def compose_contraction(x: Value, y: Value, equation: str) -> Any:
    """Contract two tensors by other ops, for the compiler."""
    order_x, order_y, order, batch, rows, summed, columns = plan_product(equation)
    if batch and summed and not rows and not columns:
        both = np.transpose(x, order_x) * np.transpose(y, order_y)
        z = np.sum(both, axis=tuple(range(batch, batch + summed)))
        return np.transpose(z if z.dtype == both.dtype else np.astype(z, both.dtype), order)
    return contract_arrays(x, y, equation)


def contract_operands(x: Value, y: Value, equation: str) -> Any:
    """Contract two operands, without the op for plain arrays."""
    return (contract_arrays if type(x) is ndarray and type(y) is ndarray else contract)(x, y, equation)


def infer_contracted_shape(x: Shape, y: Shape, equation: str) -> Shape:
    left, out = equation.split("->")
    size: dict[str, int] = {}
    for label, n in zip(left.replace(",", ""), (*x, *y), strict=True):
        if size.setdefault(label, n) != n:
            both = f"{size[label]} and {n}"
            raise ShapeError(f"contract: shapes {x} and {y} do not fit '{equation}': '{label}' is {both}.")
    return tuple(size[label] for label in out)


def batch_contraction(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch a contraction by one more label in front."""
    equation = params["equation"]
    new = next(c for c in LETTERS if c not in equation)
    a, b, out = equation.replace("->", ",").split(",")
    return contract_operands(args[0], args[1], f"{new * on[0]}{a},{new * on[1]}{b}->{new}{out}")


@op(
    contract_arrays,
    acts=moves(
        infer_contracted_shape,
        [
            (((2, 3), (3, 4)), {"equation": "ij,jk->ik"}),
            (((2, 3), (4, 2)), {"equation": "ij,ki->kj"}),
            (((3, 2, 4), (3, 4, 2)), {"equation": "bij,bjk->kbi"}),
            (((3, 2), (3, 2)), {"equation": "bi,bi->b"}),
            (((2, 3), (3, 2)), {"equation": "ij,ji->"}),
            (((2,), (3,)), {"equation": "i,j->ji"}),
            (((), (3,)), {"equation": ",j->j"}),
            (((2, 0), (0, 3)), {"equation": "ij,jk->ik"}),
        ],
        batch_contraction,
    ),
    d=linear(
        lambda g, y, equation: contract_operands(g, y, find_adjoint_equations(equation)[0]),
        lambda g, x, equation: contract_operands(x, g, find_adjoint_equations(equation)[1]),
    ),
    lower=made_of(compose_contraction),
)
def contract(x: TensorLike, y: TensorLike, /, equation: str) -> Any:
    """Return a pairwise ``einsum``: every label is in at least two of the three terms (operands and result).

    >>> contract(np.ones((2, 3)), np.ones((3, 4)), "ij,jk->ki").shape
    (4, 2)
    """


@method
def tensordot(a: TensorLike, b: TensorLike, axes: int | Sequence[Any] = 2) -> Any:
    """Return products summed over the last ``axes`` axes of ``a`` and the first of ``b``, or over two lists of axes.

    >>> pb.tensordot(np.ones((2, 3, 4)), np.ones((3, 4, 5))).shape
    (2, 5)
    >>> pb.tensordot(np.ones((2, 3)), np.ones((4, 2)), ([0], [1])).shape
    (3, 4)
    """
    a, b = as_operands(a, b)
    n, m = len(a.shape), len(b.shape)
    if isinstance(axes, int | np.integer):
        if not 0 <= axes <= min(n, m):
            raise ShapeError(f"tensordot: axes={axes} with shapes {a.shape} and {b.shape}; both need that many axes.")
        axes = range(n - axes, n), range(axes)
    try:
        of_a, of_b = ((i,) if isinstance(i, int | np.integer) else tuple(i) for i in axes)
    except (TypeError, ValueError):
        raise ArgumentError(f"tensordot: axes must be a number or two lists of axes, got {axes!r}.") from None
    equation = write_tensordot_equation(n, m, of_a, of_b)
    if [a.shape[i] for i in of_a] != [b.shape[j] for j in of_b]:
        raise ShapeError(f"tensordot: axes {of_a} of shape {a.shape} do not match axes {of_b} of shape {b.shape}.")
    return contract(a, b, equation)


@lru_cache(4096)
def write_tensordot_equation(n: int, m: int, of_a: tuple[int, ...], of_b: tuple[int, ...]) -> str:
    """Return the equation of a tensordot.

    >>> write_tensordot_equation(2, 2, (0,), (1,))
    'ab,ca->bc'
    """
    if len(resolve_axes(n, of_a, "tensordot: axes of a")) != len(resolve_axes(m, of_b, "tensordot: axes of b")):
        raise ShapeError(f"tensordot: as many axes of a as of b are needed, got {of_a} and {of_b}.")
    left, right = LETTERS[:n], list(LETTERS[n : n + m])
    # the axes that are summed over get the letter they have in a
    for i, j in zip(of_a, of_b, strict=True):
        right[j] = left[i]
    return f"{left},{''.join(right)}->{''.join(c for c in (*left, *right) if (c in left) != (c in right))}"


@method
def dot(a: TensorLike, b: TensorLike) -> Any:
    """Return the product of vectors, matrices or scalars; in general over ``a``'s last axis and ``b``'s last but one.

    >>> pb.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.float64(11.0)
    """
    a, b = as_operands(a, b)
    n, m = len(a.shape), len(b.shape)
    if not n or not m:
        return a * b
    inside = b.shape[-2 if m > 1 else 0]
    if a.shape[-1] != inside:
        raise ShapeError(
            f"dot: shapes {a.shape} and {b.shape}; the inner lengths {a.shape[-1]} and {inside} must agree."
        )
    return matmul(a, b) if m < 3 else tensordot(a, b, (-1, -2))


@method
def inner(a: TensorLike, b: TensorLike) -> Any:
    """Return the product over the last axis of both.

    a: an array.
    b: an array with the same last axis.

    >>> pb.inner(np.ones((2, 3)), np.ones((4, 3))).shape
    (2, 4)
    """
    a, b = as_operands(a, b)
    if not a.shape or not b.shape:
        return a * b
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"inner: shapes {a.shape} and {b.shape}; the last lengths must agree.")
    return tensordot(a, b, (-1, -1))


@method
def vdot(a: TensorLike, b: TensorLike) -> Any:
    """Return the sum of the products of all elements of ``a``, conjugated if they are complex, with those of ``b``.

    >>> pb.vdot(np.ones((2, 3)), np.ones(6))
    np.float64(6.0)
    """
    a, b = as_operands(a, b)
    if prod(a.shape) != prod(b.shape):
        raise ShapeError(f"vdot: shapes {a.shape} and {b.shape} have different numbers of elements.")
    a = np.conjugate(a) if a.dtype.kind == "c" else a
    return matmul(np.reshape(a, (-1,)), np.reshape(b, (-1,)))


@method
def outer_product(a: TensorLike, b: TensorLike) -> Any:
    """Return every element of ``a`` times every element of ``b``, as a matrix.

    >>> pb.outer_product(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    a, b = as_operands(a, b)
    return np.reshape(a, (-1, 1)) * np.reshape(b, (1, -1))


outer = alias("outer", outer_product)


# ---- einsum


@lru_cache(4096)
def parse_equation(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Return the labels of each operand and of the result, with letters for ellipses.

    >>> parse_equation("...ij,jk", (3, 2))
    (('aij', 'jk'), 'aik')
    """
    text = equation.replace(" ", "")
    left, arrow, out = text.partition("->")
    terms = left.split(",")
    widths = count_ellipsis_axes(equation, terms, out, ranks)
    most = max(widths)
    dots = "".join(c for c in LETTERS if c not in text)[:most]
    terms = [term.replace("...", dots[most - width :]) for term, width in zip(terms, widths, strict=True)]
    joined = "".join(terms)
    if not arrow:
        out = dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))
    elif most and "..." not in out:
        raise ArgumentError(f"einsum: the result of '{equation}' needs '...' for the axes that are not named.")
    out = out.replace("...", dots)
    if len(set(out)) != len(out) or not set(out) <= set(joined):
        raise ArgumentError(f"einsum: the result '{out}' of '{equation}' repeats a label, or has one of no operand.")
    return tuple(terms), out


def count_ellipsis_axes(equation: str, terms: list[str], out: str, ranks: tuple[int, ...]) -> list[int]:
    """Return how many axes the ellipsis of each operand stands for; the terms are checked."""
    if len(terms) != len(ranks):
        raise ArgumentError(f"einsum: '{equation}' is for {len(terms)} operands, got {len(ranks)}.")
    for term in (*terms, out):
        if not set(term.replace("...", "", 1)) <= set(LETTERS):
            raise ArgumentError(f"einsum: '{term}' in '{equation}'; a term is letters, with one '...' at most.")
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for i, (term, rank, width) in enumerate(zip(terms, ranks, widths, strict=True)):
        if width < 0 or (width and "..." not in term):
            raise ShapeError(f"einsum: operand {i + 1} of '{equation}' is '{term}', but has rank {rank}.")
    return widths


def find_label_lengths(equation: str, terms: Sequence[str], shapes: Sequence[Shape]) -> dict[str, int]:
    """Return the length of each label; a length of 1 broadcasts."""
    size: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        own = dict(zip(term, shape, strict=True))
        for label, n in zip(term, shape, strict=True):
            known = size.get(label, 1)
            if own[label] != n or (n != known and 1 not in (n, known)):
                both = f"{own[label] if own[label] != n else known} and {n}"
                raise ShapeError(
                    f"einsum: shapes {format_shapes(shapes)} do not fit '{equation}': '{label}' is {both}."
                )
            size[label] = n if known == 1 else known
    return size


def reduce_operand(x: Value, term: str, want: str) -> Any:
    """Take the diagonal of repeated labels, sum over labels not in ``want``, and transpose to its order."""
    if term == want:
        return x
    once = "".join(dict.fromkeys(term))
    if once != term:
        x = REGISTRY["diagonal_part"].function(x, f"{term}->{once}")
    gone = tuple(i for i, label in enumerate(once) if label not in want)
    if gone:
        x = np.sum(x, axis=gone)
    left = "".join(label for label in once if label in want)
    return x if left == want else np.transpose(x, tuple(left.index(label) for label in want))


@observable
def einsum(equation: str, *operands: TensorLike) -> Any:
    """Return products summed over labelled axes: labels that are not in the result are summed over.

    Repeated labels take a diagonal, ``...`` stands for any axes, and without ``->`` the result has the labels that
    occur once, in alphabetical order.

    equation: the axes as letters, as in NumPy: ``"ij,jk->ik"``.
    operands: the arrays.

    >>> pb.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((3, 4))).shape
    (2, 4)
    >>> pb.einsum("ii", np.eye(3))
    np.float64(3.0)
    """
    if not isinstance(equation, str):
        raise ArgumentError(f"einsum(equation, *operands): the equation must be text, got {type(equation).__name__}.")
    xs = as_operands(*operands)
    first, pairs, last = plan_einsum(equation, tuple(x.shape for x in xs))
    for i, (shape, term, want) in enumerate(first):
        x = xs[i] if shape == xs[i].shape else np.reshape(xs[i], shape)
        xs[i] = reduce_operand(x, term, want)
    for i, j, step in pairs:
        xs.append(contract(xs[i], xs[j], step))
    return reduce_operand(xs[-1], *last)


@lru_cache(4096)
def plan_einsum(equation: str, shapes: tuple[Shape, ...]) -> tuple[list[Any], list[Any], tuple[str, str]]:
    """Return the plan of an ``einsum``: reductions of the operands, pairs to multiply, and the final step.

    >>> plan_einsum("ij,jk,kl", ((2, 3), (3, 4), (4, 1)))[1]
    [(1, 2, 'jk,kl->jl'), (0, 3, 'ij,jl->il')]
    """
    terms, out = parse_equation(equation, tuple(map(len, shapes)))
    size = find_label_lengths(equation, terms, shapes)
    # broadcast axes of length 1 are dropped
    named = [[(c, n) for c, n in zip(*pair, strict=True) if n == size[c]] for pair in zip(terms, shapes, strict=True)]
    short = ["".join(c for c, _ in names) for names in named]
    live = []  # the operands yet to be multiplied: number and labels
    first = []
    for i, term in enumerate(short):
        elsewhere = out + "".join(short[:i] + short[i + 1 :])
        live.append((i, "".join(c for c in dict.fromkeys(term) if c in elsewhere)))
        first.append((tuple(n for _, n in named[i]), term, live[i][1]))
    pairs, last = plan_pairs(live, out, size)
    return first, pairs, (last, out)


def plan_pairs(live: list[tuple[int, str]], out: str, size: dict[str, int]) -> tuple[list[Any], str]:
    """Return the pairwise products of operands, given by number and labels, and the labels of the last result."""
    pairs: list[Any] = []
    count = len(live)
    for group in order_products([term for _, term in live], out, size):
        chosen = [live[i] for i in group]
        live = [pair for pair in live if pair not in chosen]
        while len(chosen) > 1:
            (i, a), (j, b), *chosen = chosen
            after = out + "".join(term for _, term in (*live, *chosen))
            new = "".join(c for c in dict.fromkeys(a + b) if c in after)
            new = out if set(new) == set(out) else new
            pairs.append((i, j, f"{a},{b}->{new}"))
            chosen.insert(0, (count + len(pairs) - 1, new))
        live += chosen
    return pairs, live[0][1]


MAX_OPTIMAL = 5  # operands of which all orders of multiplication are tried


def order_products(terms: list[str], out: str, size: dict[str, int]) -> list[Any]:
    """Return the order of pairwise products with the fewest multiplications; for many operands, approximately."""
    if len(terms) < 3:
        return [range(len(terms))]
    stand_ins = [np.broadcast_to(np.empty(()), [size[c] for c in term]) for term in terms]
    search = "optimal" if len(terms) <= MAX_OPTIMAL else "greedy"
    path, _ = np.einsum_path(f"{','.join(terms)}->{out}", *stand_ins, optimize=search)
    return path[1:]
