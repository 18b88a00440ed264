"""The kinds of graph nodes: one record each, for all stages before code generation.

INPUT       an argument of the program; ``data`` is its place among the inputs
CONSTANT    an array or a number that the program holds; ``data`` is the array
MAP         one element from one element of each argument, which broadcast; ``data`` is (op, params)
CAST        the same numbers in another dtype
FOLD        a reduction over ``data.axes``, which are removed; ``data`` is a Fold
VIEW        a view of its argument: ``data`` is a View of the argument's elements in C order
PIECES      its arguments at their places in a larger array, ``data.fill`` elsewhere; later ones cover earlier ones
STACK       its arguments along a new, narrow last axis, stored by shuffled vectors; made when a graph is legalized
TAKE        rows of its first argument, at the positions in the second; ``data`` is the shape of a row, and positions
            count the rows over all leading axes
SCATTER     zeros, or a third argument, with the rows of its first argument added at the positions in the second,
            counted in the same way; ``data`` is a Scatter, which may keep the largest or smallest instead
SPACED      zeros in which a view, ``data``, holds its argument
ROWS        a function of every row of its arguments; ``data`` is (op, params), whose lowering has its name
SCAN        a running value along an axis, or the position of an extreme; ``data`` is (op, params)
SPLIT       the real parts of complex numbers and then the imaginary parts, along a new first axis
JOIN        complex numbers, from their real and imaginary parts
FOURIER     a Fourier transform of real and imaginary parts; ``data`` is a Fourier, the last argument has its factors
PRODUCT     the matrix product of the last two axes, the others being the same in both; a third argument is
            added
MATRICES    a factorization of the matrices over the last two axes, or equations with them; ``data`` is a Routine
WINDOWS     a function of every window of an image: a convolution, its gradient, or pooling; ``data`` says which, and is
            a Convolution, a Winograd, an Interleaved, a Pooling, or Examples of one of these
OPAQUE      a host op, run by its NumPy kernel; ``data`` is (op, params)
PART        one of the results of a host op that has several; ``data`` is its place
LOOP        a loop with a known number of steps: constants, the carry, and the inputs of all steps; ``data`` is a Loop
WHILE       a loop with a condition: constants and the carry; ``data`` is a While
SWITCH      branches: the index of the one that is taken, and its operands; ``data`` is a Switch
RESULT      one of the results of a loop or of branches; ``data`` is its place

What needs the code of a later stage, such as how a kind is emitted, is in a table of that stage, keyed by the record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

if TYPE_CHECKING:
    from pullback.compiler.ir.graph import Node, View


def _describe_nothing(n: Node) -> str:
    return ""


def _get_no_op(n: Node) -> Any:
    return None


def _count_elements(n: Node) -> int:
    return n.size


def _never(n: Node) -> bool:
    return False


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Kind:
    """The properties of all nodes of one kind."""

    name: str
    evaluate: Callable[..., Any]  # computes the value of a node from those of its arguments, by NumPy
    check: Callable[[Node], str]  # returns what is wrong with a node; empty for a valid one
    describe: Callable[[Node], str] = _describe_nothing  # returns what is printed besides its arguments
    get_op: Callable[[Node], Any] = _get_no_op  # the op of a node, None for a kind without
    cost: Callable[[Node], int] = _count_elements  # about how many vector instructions a call without bodies takes
    is_partwise: Callable[[Node], bool] = _never  # whether a node of complex numbers computes both parts separately
    is_leaf: bool = False  # an input or constant: its value exists before the program runs
    is_elementwise: bool = False  # an element depends on one element of each argument
    has_params: bool = False  # ``data`` is (op, params)
    fuses: bool = False  # it is computed in a loop kernel, together with others
    is_call: bool = False  # it is a step of its own: a library call, a function of its own, a host op
    runs_on_host: bool = False  # it is computed by NumPy, not by compiled code
    reads_memory: bool = False  # its arguments must be stored, not only computed in registers
    needs_contiguous: bool = False  # its arguments must be stored in C order: it takes no views
    has_bodies: bool = False  # it has graphs of its own: a loop, or branches
    propagates_constants: bool = False  # computed at compile time if its arguments are constants

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name.upper()  # pickled and copied by reference: kinds are compared by identity


# ---- values, by NumPy


def _evaluate_leaf(n: Node) -> Any:
    raise TypeError(f"the value of {n!r}, {n.kind.name}, is given, not computed")


def _evaluate_op(n: Node, *values: object) -> Any:
    op, params = n.data
    return op.perform([x[()] if not x.ndim else x for x in map(np.asarray, values)], params)


def _evaluate_cast(n: Node, x: Any) -> Any:
    return np.asarray(x).astype(n.dtype)


def _evaluate_fold(n: Node, x: Any) -> Any:
    op, axes = n.data
    settings = {**op.params, "axis": axes, "keepdims": False}
    return op.perform([x], {k: settings[k] for k in op.params})


def _evaluate_view(n: Node, x: Any) -> Any:
    flat, step = np.ascontiguousarray(x).reshape(-1)[n.data.offset :], n.dtype.itemsize
    return as_strided(flat, n.shape, [s * step for s in n.data.strides], writeable=False)


def _evaluate_pieces(n: Node, *values: Any) -> Any:
    z = np.full(n.shape, n.data.fill, n.dtype)
    for v, start in zip(values, n.data.starts, strict=True):
        z[tuple(slice(s, s + length) for s, length in zip(start, np.shape(v), strict=True))] = v
    return z


def _evaluate_take(n: Node, x: Any, rows: Any) -> Any:
    return np.reshape(x, (np.size(x) // prod(n.data), *n.data))[rows] if n.size else np.zeros(n.shape, n.dtype)


def _evaluate_scatter(n: Node, x: Any, rows: Any, *added: object) -> Any:
    z = np.array(added[0]) if added else np.full(n.shape, n.data.start, n.dtype)
    if n.size:
        getattr(np, n.data.combine).at(z.reshape(n.size // prod(n.data.row), *n.data.row), rows, x)
    return z


def _evaluate_spaced(n: Node, x: Any) -> Any:
    z, step = np.zeros(n.size, n.dtype), n.dtype.itemsize
    as_strided(z[n.data.offset :], np.shape(x), [s * step for s in n.data.strides])[...] = x
    return z.reshape(n.shape)


def _evaluate_product(n: Node, a: Any, b: Any, *added: object) -> Any:
    z = np.matmul(a, b)
    return z + added[0] if added else z


def _evaluate_code(n: Node, *values: object) -> Any:
    raise TypeError(f"{n.kind.name} is made for code generation, by passes after which NumPy runs no node")


def _evaluate_part(n: Node, values: Any) -> Any:
    return values[n.data]


def _evaluate_structure(n: Node, *values: object) -> Any:
    return n.data.run(values)


# ---- checks: what is wrong with a node, empty for a valid one


def _check_nothing(n: Node) -> str:
    return ""  # the trace decides on inputs, and NumPy on the results of host ops


def _check_map(n: Node) -> str:
    try:
        shape = np.broadcast_shapes(*(a.shape for a in n.args))
    except ValueError:
        return "its arguments do not broadcast."
    return "" if shape == n.shape else f"its arguments make {shape}."


def _check_fold(n: Node) -> str:
    (x,) = n.args
    left = tuple(length for i, length in enumerate(x.shape) if i not in n.data.axes)
    return "" if left == n.shape else f"folding {x.shape} leaves {left}."


def _check_view(n: Node) -> str:
    return _check_extent(n.shape, n.data, n.args[0].size)


def _check_extent(shape: tuple[int, ...], view: View, size: int) -> str:
    """Return what is wrong with a view of this shape of ``size`` elements."""
    reach = [(length - 1) * step for length, step in zip(shape, view.strides, strict=True)]
    low, high = view.offset + sum(min(r, 0) for r in reach), view.offset + sum(max(r, 0) for r in reach)
    inside = 0 in shape or 0 <= low <= high < size
    return "" if inside else f"it reaches from {low} to {high} in {size} elements."


def _check_product(n: Node) -> str:
    a, b, *more = (x.shape for x in n.args)
    if any(shape != n.shape for shape in more):
        return f"what is added must have its shape, not {more[0]}."
    fits = len(a) == len(b) > 1 and a[:-2] == b[:-2] and a[-1] == b[-2]
    return "" if fits and n.shape == (*a[:-1], b[-1]) else f"{a} @ {b} is not {n.shape}."


def _check_pieces(n: Node) -> str:
    for a, start in zip(n.args, n.data.starts, strict=True):
        ends = [s + length for s, length in zip(start, a.shape, strict=True)]
        if min(start, default=0) < 0 or any(e > whole for e, whole in zip(ends, n.shape, strict=True)):
            return f"{a.shape} at {start} does not lie in it."
    return ""


def _check_stack(n: Node) -> str:
    fits = len(n.args) == n.shape[-1] and all(a.shape == n.shape[:-1] for a in n.args)
    return "" if fits else f"{[a.shape for a in n.args]} are not stacked to {n.shape}."


def _check_take(n: Node) -> str:
    x, rows = n.args
    fits = rows.shape + n.data == n.shape and rows.dtype == np.int64 and has_rows(x, n.data)
    return "" if fits else f"{x.shape} at {rows}."


def _check_scatter(n: Node) -> str:
    x, rows, *added = n.args
    fits = rows.shape + n.data.row == x.shape and rows.dtype == np.int64 and has_rows(n, n.data.row)
    return "" if fits and all(a.shape == n.shape for a in added) else f"{x.shape} at {rows}."


def has_rows(x: Node, row: tuple[int, ...]) -> bool:
    """Return whether the elements of a node are whole rows of a shape."""
    return not x.size or x.size % prod(row) == 0


def _check_spaced(n: Node) -> str:
    return _check_extent(n.args[0].shape, n.data, n.size)


def _check_scan(n: Node) -> str:
    return "" if n.shape == tuple(n.data[0].acts.shape(n.name, [a.shape for a in n.args], n.data[1])) else "its shape."


def _check_split(n: Node) -> str:
    return "" if n.shape == (2, *n.args[0].shape) else "two parts have one more axis."


def _check_join(n: Node) -> str:
    return "" if all(a.shape == n.shape for a in n.args) else "its parts have other shapes."


def _check_fourier(n: Node) -> str:
    (x, *_), data = n.args, n.data
    one = (*x.shape[: data.axis], data.out, *x.shape[data.axis + 1 :])
    shape = one if data.is_real else (2, *one)
    return "" if n.shape == shape else f"the transform of {x.shape} is {shape}."


def _check_matrices(n: Node) -> str:
    shape = n.data.find_shape([a.shape for a in n.args])
    return "" if n.shape == shape else f"{n.data} makes {shape}."


def _check_windows(n: Node) -> str:
    return "" if n.shape == n.data.result_shape else f"{n.data.description} makes {n.data.result_shape}."


def _check_part(n: Node) -> str:
    return "" if n.args[0].kind is OPAQUE else f"{n.args[0]} is no host op."


def _check_result(n: Node) -> str:
    (x,) = n.args
    likes = x.data.result_likes if x.kind.has_bodies else ()
    return "" if (n.shape, n.dtype) in likes[n.data : n.data + 1] else f"{x!r} has the results {likes}."


def _check_cast(n: Node) -> str:
    return "" if n.shape == n.args[0].shape else "a cast keeps the shape."


def _check_constant(n: Node) -> str:
    return "" if (n.data.shape, n.data.dtype) == (n.shape, n.dtype) else f"it holds {n.data.dtype}{n.data.shape}."


def _check_structure(n: Node) -> str:
    problem: str = n.data.check([(a.shape, a.dtype) for a in n.args])
    return problem


# ---- printing


def _describe_data(n: Node) -> str:
    return f" {n.data}"


def _describe_constant(n: Node) -> str:
    return f" {n.data.item()!r}" if n.data.size == 1 else f" of {n.data.size} numbers"


def _describe_params(n: Node) -> str:
    return "".join(f" {k}={v!r:.40}" for k, v in n.data[1].items())


def _describe_opaque(n: Node) -> str:
    return " by its NumPy kernel" + _describe_params(n)


def _describe_fold(n: Node) -> str:
    return f" over {list(n.data.axes)}"


def _describe_view(n: Node) -> str:
    return f" from {n.data.offset} by {list(n.data.strides)}"


def _get_op_of_params(n: Node) -> Any:
    return n.data[0]


def _get_op_of_fold(n: Node) -> Any:
    return n.data.op


# ---- costs, and what is computed by parts


def _count_multiplications(n: Node) -> int:
    return n.size * n.args[0].shape[-1] // 4  # about four to a vector


def _count_nothing(n: Node) -> int:
    return 0


def _always(n: Node) -> bool:
    return True


def _is_sum(n: Node) -> bool:
    return n.data.op.kernel is np.sum


def _is_running_sum(n: Node) -> bool:
    return bool(getattr(n.data[0].lower, "regroups", False)) and len(n.args) == 1


# ---- the kinds

INPUT = Kind("input", _evaluate_leaf, _check_nothing, _describe_data, is_leaf=True)
CONSTANT = Kind("constant", _evaluate_leaf, _check_constant, _describe_constant, is_leaf=True)
MAP = Kind(
    "map", _evaluate_op, _check_map, _describe_params, _get_op_of_params, is_elementwise=True, has_params=True,
    fuses=True, propagates_constants=True,
)  # fmt: skip
CAST = Kind(
    "cast", _evaluate_cast, _check_cast, is_elementwise=True, fuses=True, propagates_constants=True
)  # fmt: skip
FOLD = Kind("fold", _evaluate_fold, _check_fold, _describe_fold, _get_op_of_fold, is_partwise=_is_sum, fuses=True)
VIEW = Kind(
    "view", _evaluate_view, _check_view, _describe_view, is_partwise=_always, reads_memory=True,
    needs_contiguous=True,
)  # fmt: skip
PIECES = Kind(
    "pieces", _evaluate_pieces, _check_pieces, is_partwise=_always, fuses=True, reads_memory=True,
    propagates_constants=True,
)  # fmt: skip
STACK = Kind("stack", _evaluate_code, _check_stack, fuses=True)
TAKE = Kind(
    "take", _evaluate_take, _check_take, is_partwise=_always, fuses=True, reads_memory=True, needs_contiguous=True
)

_call = partial(Kind, is_call=True, reads_memory=True, needs_contiguous=True)
_call_of_op = partial(_call, describe=_describe_params, get_op=_get_op_of_params, has_params=True)
SCATTER = _call("scatter", _evaluate_scatter, _check_scatter, is_partwise=_always)
SPACED = _call("spaced", _evaluate_spaced, _check_spaced, is_partwise=_always)
SCAN = _call_of_op(
    "scan", _evaluate_op, _check_scan, cost=lambda n: n.args[0].size, is_partwise=_is_running_sum
)  # fmt: skip
ROWS = _call_of_op("rows", _evaluate_op, _check_scan)
SPLIT = _call("split", _evaluate_code, _check_split)
JOIN = _call("join", _evaluate_code, _check_join)
FOURIER = _call("fourier", _evaluate_code, _check_fourier)
PRODUCT = _call("product", _evaluate_product, _check_product, cost=_count_multiplications, needs_contiguous=False)
MATRICES = _call("matrices", _evaluate_code, _check_matrices, _describe_data, cost=_count_multiplications)
WINDOWS = _call("windows", _evaluate_code, _check_windows, cost=lambda n: n.data.work // 4)
OPAQUE = _call_of_op("opaque", _evaluate_op, _check_nothing, describe=_describe_opaque, runs_on_host=True)
PART = _call("part", _evaluate_part, _check_part, _describe_data, runs_on_host=True, needs_contiguous=False)
STRUCTURES = LOOP, WHILE, SWITCH = tuple(
    _call(name, _evaluate_structure, _check_structure, _describe_data, has_bodies=True)
    for name in ("loop", "while", "switch")
)
RESULT = Kind("result", _evaluate_part, _check_result, _describe_data, cost=_count_nothing, is_call=True)

_ALL = (
    INPUT, CONSTANT, MAP, CAST, FOLD, VIEW, PIECES, STACK, TAKE, SCATTER, SPACED, SCAN, ROWS, SPLIT, JOIN, FOURIER,
    PRODUCT, MATRICES, WINDOWS, OPAQUE, PART, LOOP, WHILE, SWITCH, RESULT,
)  # fmt: skip
KINDS = {kind.name: kind for kind in _ALL}
