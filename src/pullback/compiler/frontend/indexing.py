"""Lower gathers, scatters and indexing to rows of a matrix: positions become row indices.

Positions that are known while a function is traced (a captured array, the index of ``x[index]``) are checked then;
positions that the program computes are checked in every call, as they may be out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.frontend.host_ops import CoordinateCheck, PositionCheck
from pullback.compiler.ir.graph import Node, Pieces, Scatter, Shape, View, resolve_view
from pullback.compiler.ir.kinds import CAST, CONSTANT, PIECES, ROWS, SCAN, SCATTER, SPACED, TAKE, VIEW
from pullback.core.lowering import position
from pullback.core.op import REGISTRY
from pullback.numerics.axis_arguments import resolve_axis
from pullback.numerics.positions import Lines, find_lines

if TYPE_CHECKING:
    from pullback.compiler.frontend.trace import Trace

INT64 = np.dtype(np.int64)
MAX_NARROW = 4  # places of a last axis that are taken one by one

# ---- by row index


def take_rows(t: Trace, x: Any, at: Any, kept: int) -> Any:
    """Return the rows of ``x`` at these positions, counted over all axes but the last ``kept``, which form a row."""
    row = x.shape[len(x.shape) - kept :]
    x, at = t.as_node(x), t.as_node(at)
    return t.make_symbol(t.graph.add(TAKE, (x, at), (*at.shape, *row), x.dtype, row, t.find_line()))


def scatter_rows(t: Trace, x: Any, at: Any, shape: Shape, kept: int, combine: str = "add", start: float = 0) -> Any:
    """Return zeros of ``shape`` with the rows of ``x`` added at these positions, counted in the same way.

    Rows at one position are combined with ``start`` and with each other by ``combine``.
    """
    x, at = t.as_node(x), t.as_node(at)
    data = Scatter(shape[len(shape) - kept :], combine, start)
    return t.make_symbol(t.graph.add(SCATTER, (x, at), shape, x.dtype, data, t.find_line()))


def check_positions(t: Trace, op: Any, at: Any) -> Any:
    """Return positions checked by an op: at once if they are known, otherwise in every call."""
    node = source = t.as_node(at)
    if node.kind is CONSTANT:
        return t.as_symbol(np.asarray(op.perform([node.data], {})))
    while source.kind is VIEW or (source.kind is CAST and _holds_positions(source.dtype, op)):
        (source,) = source.args
    if isinstance(op, PositionCheck) and 0 < _find_axis_length(source) <= op.length:
        return t.make_symbol(t.cast(node, INT64))  # found along an axis that is not longer: no check is needed
    if t.checks is None or node.dtype == np.uint64 or not node.size or not op.is_checked_by_code:
        return t.add_host_op(op, [at], {})
    key = node.number, op
    if key not in t.checked:  # a gradient scatters to the positions that were gathered from
        t.checked[key], wrong = op.resolve(t, t.make_symbol(t.cast(node, INT64)))
        t.add_check(node, op, wrong)
    return t.checked[key]


def _find_axis_length(n: Node) -> int:
    """Return the length of the axis along which a node has positions; 0 for any other node."""
    if not n.kind.has_params or not n.args or not n.args[0].shape:
        return 0
    op, params = n.data
    if n.kind is ROWS:
        return n.args[0].shape[-1] if op.lower.symbol == "largest" else 0
    finds = isinstance(op.lower, position) if n.kind is SCAN else op is REGISTRY.get("argsort")
    axis = params.get("axis")
    return n.args[0].shape[axis] if finds and isinstance(axis, int) else 0


def _holds_positions(dtype: np.dtype[Any], op: Any) -> bool:
    """Return whether a dtype can hold all positions along an axis."""
    return isinstance(op, PositionCheck) and dtype.kind in "iu" and np.iinfo(dtype).max >= op.length - 1


def find_positions(shape: Shape, pick: Callable[[Any], Any]) -> tuple[Any, int]:
    """Return which elements of an array of this shape are picked, and how many of its last axes are picked whole.

    >>> find_positions((3, 4), lambda x: x[np.array([2, 0])])
    (array([2, 0]), 1)
    """
    if not shape:  # as of x[True]
        return np.zeros(np.shape(pick(np.zeros((), bool))), np.int64), 0
    places = np.indices(shape, sparse=True)
    found = sum(
        np.asarray(pick(np.broadcast_to(along, shape)), np.int64) * prod(shape[i + 1 :])
        for i, along in enumerate(places)
    )
    positions = np.asarray(found, np.int64)
    for kept in range(len(shape) - 1, 0, -1):
        rest = shape[len(shape) - kept :]
        block = prod(rest)
        if positions.ndim >= kept and positions.shape[positions.ndim - kept :] == rest and block:
            lines = positions.reshape(-1, block)
            if not np.any(lines[:, :1] % block) and np.array_equal(lines, lines[:, :1] + np.arange(block)):
                return lines[:, 0].reshape(positions.shape[: positions.ndim - kept]) // block, kept
    return positions, 0


# ---- a few places of a narrow last axis


def find_last_places(index: Any, shape: Shape) -> list[int] | None:
    """Return which places of a narrow last axis an index picks, if it does nothing else.

    >>> find_last_places((Ellipsis, [2, -3]), (5, 3))
    [2, 0]
    """
    parts = index if type(index) is tuple else (index,)
    if len(shape) < 2 or not parts or not isinstance(parts[-1], list | np.ndarray):
        return None
    at, length = np.asarray(parts[-1]), shape[-1]
    if not _keeps_axes(parts[:-1], len(shape) - 1) or at.dtype.kind not in "iu" or at.ndim != 1:
        return None
    is_narrow = 0 < at.size <= MAX_NARROW and length <= MAX_NARROW
    return [int(i) % length for i in at] if is_narrow and np.all((-length <= at) & (at < length)) else None


def _keeps_axes(parts: tuple[Any, ...], rank: int) -> bool:
    """Return whether parts of an index keep all of this number of axes as they are."""
    has_rest = any(part is Ellipsis for part in parts)
    is_whole = all(part is Ellipsis or (type(part) is slice and part == slice(None)) for part in parts)
    return is_whole and (has_rest or len(parts) == rank)


def take_last_places(t: Trace, x: Node, places: list[int]) -> Any:
    """Return some places of a last axis, each as a piece of its own."""
    return join_last_places(t, x, places, [*range(len(places))], (*x.shape[:-1], len(places)))


def put_last_places(t: Trace, x: Node, places: list[int], shape: Shape) -> Any:
    """Return zeros of ``shape`` with the elements along a last axis at these places, which are distinct."""
    return join_last_places(t, x, [*range(len(places))], places, shape)


def join_last_places(t: Trace, x: Node, taken: list[int], put: list[int], shape: Shape) -> Any:
    """Return zeros of ``shape`` in which the places ``taken`` of a last axis are those of ``put``."""
    pieces = [t.as_node(t.make_symbol(x)[..., i : i + 1]) for i in taken]
    starts = tuple((*(0,) * (len(shape) - 1), i) for i in put)
    return t.make_symbol(t.graph.add(PIECES, pieces, shape, x.dtype, Pieces(starts, 0.0), t.find_line()))


# ---- along one axis


def lower_gather(t: Trace, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return ``gather``, or ``scatter`` as its adjoint, along an axis; the axes before it are one."""
    x: Any
    at: Any
    x, at = map(t.as_symbol, args)
    shape = tuple(op.acts.shape(op.name, [x.shape, at.shape], params))
    scatters = op.lower.symbol == "scatter"
    whole = shape if scatters else x.shape
    if at.dtype.kind not in "iu":
        return t.add_host_op(op, args, params)
    axis = resolve_axis(len(whole), 0 if params["axis"] is None else params["axis"], op.name)
    batch = int(params["batch_dims"] or 0)
    batch = batch + len(at.shape) if batch < 0 else batch
    if (times := _count_repeats(t.as_node(at), whole[axis])) > 1:
        apart = (*whole[: axis + 1], times, *whole[axis + 1 :])
        if scatters:
            return np.sum(np.reshape(x, apart), axis=axis + 1, dtype=x.dtype)
        return np.reshape(np.broadcast_to(np.expand_dims(x, axis + 1), apart), shape)
    positions = check_positions(t, PositionCheck(op.name, whole[axis]), at)
    if (
        0 < batch == axis == len(whole) - 1
        and prod(at.shape[batch:]) == 1
        and (scatters or not resolve_view(t.as_node(x))[0].kind.is_leaf)
    ):
        rows = (*whole[:batch], 1)
        x = np.reshape(x, rows) if scatters else x
        return np.reshape(_select_one_of_each_row(t, x, np.reshape(positions, rows), whole, scatters), shape)
    kept, between = len(whole) - 1 - axis, axis - batch
    if axis:
        inner = at.shape[batch:]
        starts = np.arange(prod(whole[:axis])).reshape(whole[:axis] + (1,) * len(inner)) * whole[axis]
        positions = np.reshape(positions, at.shape[:batch] + (1,) * between + inner) + starts
    return scatter_rows(t, x, positions, whole, kept) if scatters else take_rows(t, x, positions, kept)


def _count_repeats(at: Node, length: int) -> int:
    """Return how often constant positions name each place of an axis, one place after the other; 0 for other ones."""
    if at.kind is not CONSTANT or len(at.shape) != 1 or not length or at.size % length:
        return 0
    places = np.reshape(at.data, (length, -1))
    return places.shape[1] if np.array_equal(places, np.broadcast_to(np.arange(length)[:, None], places.shape)) else 0


def _select_one_of_each_row(t: Trace, x: Any, at: Any, whole: Shape, scatters: bool) -> Any:
    """Return one element of each row, or with ``scatters`` rows with one element, selected by comparing positions.

    Unlike a gather, such a selection fuses with other ops along the rows.
    """
    order = list(range(len(whole))) if scatters else _sort_axes(t.as_node(x))
    x, at = (np.transpose(y, order) for y in (x, at))
    axis = order.index(len(whole) - 1)
    small = np.int32 if whole[-1] < 2**31 else np.int64  # as wide as the elements, so that both fill the same lanes
    numbers = np.arange(whole[-1], dtype=small).reshape([-1 if i == axis else 1 for i in range(len(whole))])
    here, nothing = np.astype(at, small) == numbers, np.zeros((), x.dtype)
    if scatters:
        return np.where(here, x + nothing, nothing)  # 0 and -0 are 0
    if x.dtype.kind == "f":  # the largest of it and nothing: 0 would change a -0
        z = np.max(np.where(here, x, np.full((), -np.inf, x.dtype)), axis=axis, keepdims=True)
    else:
        z = np.astype(np.sum(np.where(here, x, nothing), axis=axis, keepdims=True), x.dtype)
    return np.transpose(z, np.argsort(order))


def _sort_axes(x: Node) -> list[int]:
    """Return the axes of a node in the order in which its elements lie in memory."""
    _, _, steps = resolve_view(x)
    return sorted(range(len(steps)), key=lambda axis: -abs(steps[axis]))


# ---- along lines, as in x[np.arange(n), i]


def find_constant_lines(index: Any, shape: Shape) -> Lines | None:
    """Return an index of constant arrays and slices of whole axes as positions along lines; None for another index."""
    parts = list(index) if type(index) is tuple else [index]
    while parts and (parts[-1] is ... or (isinstance(parts[-1], slice) and parts[-1] == slice(None))):
        parts.pop()
    arrays = all(isinstance(i, np.ndarray) and i.dtype.kind in "iu" for i in parts)
    return find_lines(parts, shape) if arrays and len(parts) > 1 else None


def put_along_lines(t: Trace, x: Any, shape: Shape, lines: Lines) -> Any:
    """Return zeros of ``shape`` with ``x`` added at positions along lines: the adjoint of ``pick_lines``."""
    count, order = len(lines.rows), (*lines.rows, lines.axis)
    front = np.moveaxis(x, lines.front, range(count))
    lengths = (*(shape[a] for a in order), *(n for a, n in enumerate(shape) if a not in order))
    z = t.perform(
        REGISTRY["scatter_add"], [front, lines.positions], {"shape": lengths, "axis": count, "batch_dims": count}
    )
    return np.moveaxis(z, range(count + 1), order)


# ---- by coordinates


def lower_gather_nd(t: Trace, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return ``gather_nd``, or ``scatter_nd`` as its adjoint."""
    scatters = op.lower.symbol == "put at"
    at, x = (t.as_symbol(a) for a in (args if scatters else reversed(args)))
    shape = tuple(op.acts.shape(op.name, [np.shape(a) for a in args], params))
    whole = shape if scatters else x.shape
    if at.dtype.kind not in "iu" or not at.size or not at.shape[-1]:
        return t.add_host_op(op, args, params)
    depth = at.shape[-1]
    coordinates = check_positions(t, CoordinateCheck(op.name, whole[:depth]), at)
    kept = len(whole) - depth
    return scatter_rows(t, x, coordinates, whole, kept) if scatters else take_rows(t, x, coordinates, kept)


# ---- by segment


def lower_segments(t: Trace, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the sum of each segment, or its adjoint, or the largest or smallest element.

    Rows that are in no segment are added to one more segment, which is left out.  Single numbers become the neutral
    element in the first segment instead, so that the adjoint of the sum has the same positions.
    """
    x: Any
    ids: Any
    x, ids = map(t.as_symbol, args)
    shape = tuple(op.acts.shape(op.name, [x.shape, ids.shape], params))
    many = x.shape[0] if op.lower.symbol == "spread" else shape[0]
    is_rare = x.dtype == bool or (x.dtype.kind == "c" and op.lower.symbol not in ("segments", "spread"))
    if ids.dtype.kind not in "iu" or ids.dtype == np.uint64 or is_rare or not (many and x.size):
        return t.add_host_op(op, args, params)
    ids = np.astype(ids, np.int64)
    inside = (ids >= 0) & (ids < many)
    if op.lower.symbol == "spread":
        kept = len(x.shape) - 1
        found = take_rows(t, x, np.where(inside, ids, 0), kept)
        return np.where(np.reshape(inside, ids.shape + (1,) * kept), found, np.zeros((), x.dtype))
    combine = COMBINATIONS[op.lower.symbol]
    start = _find_identity(combine, x.dtype)
    if len(shape) == 1:
        masked = np.where(inside, x, np.asarray(start, x.dtype))
        rows = scatter_rows(t, masked, np.where(inside, ids, 0), shape, 0, combine, start)
    else:
        at = np.where(inside, ids, many)
        rows = scatter_rows(t, x, at, (many + 1, *shape[1:]), len(shape) - 1, combine, start)[:many]
    if combine == "add" or x.dtype.kind != "f":
        return rows
    # Members are counted, because an infinity may also be the extreme of a segment with members.
    members = scatter_rows(t, np.astype(inside, np.int32), np.where(inside, ids, 0), (many,), 0)
    limits = np.finfo(x.dtype)
    empty = np.asarray(limits.min if combine == "maximum" else limits.max, x.dtype)
    return np.where(np.reshape(members == 0, (many,) + (1,) * (len(shape) - 1)), empty, rows)


COMBINATIONS = {"segments": "add", "largest of segments": "maximum", "smallest of segments": "minimum"}


def _find_identity(combine: str, dtype: np.dtype[Any]) -> float:
    """Return the neutral element of a combination."""
    if combine == "add":
        return 0
    if dtype.kind == "f":
        return -inf if combine == "maximum" else inf
    limits = np.iinfo(dtype)
    return int(limits.min if combine == "maximum" else limits.max)


# ---- by an index of integers and slices


def find_block(index: Any, shape: Shape) -> Any:
    """Return the start of a basic index, the shape of the picked block, and that shape without axes picked by a number.

    None if the index does not pick a block: if it skips elements, or is an advanced index.
    """
    parts = list(index) if type(index) is tuple else [index]
    if any(not (isinstance(i, int | slice) or i is None or i is ...) for i in parts):
        return None
    parts = _expand_ellipsis(parts, len(shape))
    start, block, thin, lengths = [], [], [], iter(shape)
    for i in parts:
        if i is None:
            thin.append(1)
            continue
        length = next(lengths)
        first, stop, step = (i, i + 1, 1) if isinstance(i, int) else i.indices(length)
        if isinstance(i, int) and i < 0:
            first, stop = i + length, i + length + 1
        if step != 1:
            return None
        start.append(first)
        block.append(max(stop - first, 0))
        if not isinstance(i, int):
            thin.append(block[-1])
    return tuple(start), tuple(block), tuple(thin)


def _expand_ellipsis(parts: list[Any], rank: int) -> list[Any]:
    """Return the parts of a basic index with a slice for every axis that it leaves out."""
    named = sum(i is not ... and i is not None for i in parts)
    at = next((n for n, i in enumerate(parts) if i is ...), len(parts))
    return [*parts[:at], *[slice(None)] * (rank - named), *parts[at + 1 :]]


def lower_assignment(t: Trace, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return a copy of ``x`` with ``y`` at an index that names no element twice."""
    x: Any
    y: Any
    x, y = map(t.as_symbol, args)
    index, shape = params["index"], x.shape
    due = np.broadcast_to(np.True_, shape)[index].shape
    if len(y.shape) > len(due) and prod(y.shape[: len(y.shape) - len(due)]) == 1:
        y = np.reshape(y, y.shape[len(y.shape) - len(due) :])
    fits = len(y.shape) <= len(due) and all(n in (1, m) for n, m in zip(y.shape[::-1], due[::-1], strict=False))
    if not (fits and prod(due) and np.can_cast(y.dtype, x.dtype, "same_kind")) or "c" in (x.dtype.kind, y.dtype.kind):
        return t.add_host_op(op, args, params)
    found = find_block(index, shape)
    if found is not None:
        start, block, _ = found
        data = Pieces(((0,) * len(shape), start), 0)
        parts = (t.as_node(x), t.reshape_node(t.broadcast_node(t.as_node(y, x.dtype), due), block))
        return t.make_symbol(t.graph.add(PIECES, parts, shape, x.dtype, data, t.find_line()))
    y = np.broadcast_to(np.astype(y, x.dtype), due)
    here = np.zeros(shape, bool)
    here[index] = True
    if np.count_nonzero(here) != prod(due):
        return t.add_host_op(op, args, params)  # an element may be named twice: the last value stays
    return place_elements(t, y, x, shape, index)


def place_elements(t: Trace, x: Any, otherwise: Any, shape: Shape, index: Any) -> Any:
    """Return ``x`` at an index that names no element twice, and ``otherwise`` elsewhere."""
    at = np.zeros(shape, np.int64)
    at[index] = np.arange(1, prod(x.shape) + 1).reshape(x.shape)
    return np.where(at > 0, take_rows(t, x, np.maximum(at - 1, 0), 0), otherwise)


def place_view(t: Trace, x: Node, shape: Shape, index: Any) -> Any:
    """Return zeros of ``shape`` with ``x`` at a basic index, which picks a view; None for an advanced index."""
    whole = np.zeros(shape, np.int8)
    there = whole[index]
    if not np.may_share_memory(there, whole):
        return None
    begin = there.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return space_out(t, x, shape, View(begin, there.strides), there.shape)


def space_out(t: Trace, x: Node, shape: Shape, view: View, lengths: Shape) -> Any:
    """Return zeros of ``shape`` with ``x`` written to a view of them."""
    repeated = t.as_node(np.reshape(np.broadcast_to(t.make_symbol(x), lengths), lengths))
    return t.make_symbol(t.graph.add(SPACED, (repeated,), shape, x.dtype, view, t.find_line()))
