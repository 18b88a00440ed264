"""Indexing: ``x[i]`` and ``x[i] = v``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import getitem as _getitem
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.accelerate import run_compiled_if
from pullback.core.axes import moves
from pullback.core.calculus import linear, rule
from pullback.core.callers import is_shuffling
from pullback.core.lowering import call, pieces, view
from pullback.core.op import REGISTRY, alias, convert_operand, method, op
from pullback.core.rowsparse import rows_of_index
from pullback.core.selection import find_selection, select, write_selection
from pullback.core.tape import constant
from pullback.core.tensor import RAW, Tensor, read_sizes, strip
from pullback.core.writes import find_base_links, is_numpy_number, link_view, mark_as_array, note_view, write
from pullback.errors import ArgumentError, IndexRangeError, ShapeError
from pullback.numerics.axis_arguments import resolve_axis
from pullback.numerics.batching import broadcast_examples, count_examples
from pullback.numerics.positions import are_separated, find_lines, index_each, is_advanced, pick_lines
from pullback.numerics.rows import MIN_COMPILED, add_rows, is_worth_compiling, mark_last_positions, scatter_rows

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Axis, Index, Shape, ShapeLike, TensorLike, Value

__all__ = ["boolean_mask"]

ALL = slice(None)
EMPTY = np.empty(0, np.intp)
BASIC = (int, slice, type(None), type(...))
BASIC_TYPES = frozenset(BASIC)
PICKING = frozenset((int, slice, type(None)))  # of these x[index] without axes is a number


def _is_basic(index: Any) -> bool:
    """Return whether NumPy gives a view for an index, and not a copy."""
    t = type(index)
    if t is not tuple:
        return t in BASIC_TYPES or (isinstance(index, BASIC) and t is not bool)
    for i in index:  # noqa: SIM110  # a generator is slow, and each index in a backward pass is checked
        if type(i) not in BASIC_TYPES and (not isinstance(i, BASIC) or type(i) is bool):
            return False
    return True


def _has_ellipsis(index: Index) -> bool:
    """Return whether NumPy gives an array without axes for an index, and not a number."""
    return index is ... or (type(index) is tuple and any(i is ... for i in index))


def _is_mask(i: Index) -> bool:
    return type(i) is ndarray and i.dtype.kind == "b"


def _is_surely_unique(index: Index) -> bool:
    """Return whether the index surely names no element twice."""
    if _is_basic(index) or _is_mask(index):
        return True
    return type(index) is tuple and sum(map(_is_mask, index)) == 1 and all(_is_mask(i) or _is_basic(i) for i in index)


def normalize_index(index: Index) -> Any:
    """Return an index with arrays instead of lists and tensors, since positions have no gradient.

    Only positions that differ between the examples of ``vmap`` stay tensors.  Arrays are copied, because the caller may
    change them before the gradient is computed.
    """
    return tuple([_normalize_part(i) for i in index]) if type(index) is tuple else _normalize_part(index)


def _normalize_part(i: Any) -> Any:
    if type(i) is bool:
        return np.asarray(i)  # a mask without axes, and no integer
    if isinstance(i, BASIC):
        return i
    if isinstance(i, list):
        parts = [_normalize_part(j) for j in i]
        i = np.stack(parts) if any(isinstance(j, Tensor) for j in parts) else np.array(parts) if i else EMPTY
    elif type(i) is ndarray:
        i = i.copy()
    elif isinstance(i, Tensor) and i.dtype.kind in "fc":
        raise IndexRangeError(
            f"x[i]: i must be an integer, got a tensor of {i.dtype}. An int becomes one where a function is "
            "differentiated by it: choose the arguments to differentiate by, pb.grad(f, argnums=0)."
        )
    i = strip(i)
    return i if isinstance(i, Tensor) else int(i) if getattr(i, "ndim", None) == 0 and i.dtype.kind in "iu" else i


def _infer_shape(s: tuple[int, ...], index: Index) -> tuple[int, ...]:
    shape: tuple[int, ...] = np.broadcast_to(np.True_, s)[index].shape
    return shape


def _pick(x: Array, index: Index) -> Any:
    z = x[index]
    return z if z.shape else z[()]  # x[..., 0] has no axes and is no number


def _scatter(g: Array, shape: Shape, index: Index) -> Any:
    e = np.zeros(shape, g.dtype)
    if _is_surely_unique(index):
        e[index] = g
    else:
        _add_advanced(e, g, index, True)
    return e


def _add_at(acc: Any, g: Any, index: Any) -> None:
    if _is_basic(index):
        part = acc[index]
        if type(part) is ndarray:
            np.add(part, g, part)  # "acc[index] += g" would copy the part onto itself
        else:
            acc[index] = part + g
    else:
        _add_advanced(acc, g, index, False)


def _add_advanced(acc: Any, g: Any, index: Any, fresh: bool) -> None:
    if type(index) is ndarray and index.dtype.kind in "iu" and type(g) is ndarray:
        add_rows(acc, index, g, fresh)
    elif g.size * 8 > acc.size and acc.flags.c_contiguous:  # elements by number are quicker than by several indices
        np.add.at(acc.reshape(-1), np.arange(acc.size).reshape(acc.shape)[index].ravel(), g.ravel())
    else:
        np.add.at(acc, index, g)


_scatter_rows = run_compiled_if(is_worth_compiling, scatter_rows)


def _pull_getitem(g: Value, x_shape: tuple[int, ...], index: Index) -> Any:
    if type(g) is ndarray and _is_basic(index):  # the usual case, with fewer calls
        e = np.zeros(x_shape, g.dtype)
        e[index] = g
        return e
    if type(g) is ndarray and type(index) is ndarray and index.dtype.kind == "i" and g.size >= MIN_COMPILED:
        return _scatter_rows(g, index, x_shape, 0, 0)
    return _scatter(g, x_shape, index) if isinstance(g, RAW) else scatter(g, x_shape, index)


def _put(base: Value, value: Value, index: Index) -> Any:
    return set_item(base, value, index)


@op(
    _getitem,
    acts=moves(
        _infer_shape,
        [
            (((3, 4),), {"index": (slice(1, None), 2)}), (((4,),), {"index": np.array([0, 0, 3])}),
            (((),), {"index": ()}), (((0, 3),), {"index": slice(2)}),
            (((2, 3, 4),), {"index": (..., None, slice(None, None, -2))}), (((4,),), {"index": (..., -1)}),
            (((3, 5),), {"index": np.array([2, 0, 2, -1])}), (((3, 4),), {"index": np.eye(3, 4) > 0}),
            (((3, 4, 2),), {"index": (np.array([0, 2, 0]), slice(None), np.array([1, 1, 1]))}),
            (((3, 4),), {"index": (slice(None), np.array([[1, 1], [3, 0]]))}), (((3,),), {"index": np.empty(0, int)}),
        ],
        lambda op, args, on, params: op.call(args, {"index": index_each(params["index"], len(args[0]))}),
    ),
    d=linear(_pull_getitem, into=_add_at, rows=rows_of_index),
    run=_pick,
    lower=view(put=_put, is_view=_is_basic, is_array=_has_ellipsis),
)  # fmt: skip
def getitem(x: TensorLike, /, index: Index) -> Any:
    """Return ``x[index]``: integers, slices, ``None``, ``...``, arrays of integers, and masks.

    >>> getitem(np.array([1.0, 2.0]), 1)
    np.float64(2.0)
    """


def _getitem_method(x: Tensor, index: Index) -> Any:
    t = type(index)
    if t is int or t is slice:
        return getitem(x, index)
    if t is tuple:
        for i in index:  # type: ignore[union-attr]
            if type(i) not in PICKING:
                break
        else:
            return getitem(x, index)
    if isinstance(index, Tensor) and index.level and index.ndim and index.dtype.kind in "iu":
        return x.gather(index)  # positions that another transform follows
    given = index
    index = normalize_index(given)
    if _is_batched(index):
        found = find_selection(index, x.ndim)
        return _view_each(x, index, given) if found is None else select(_slice_unless_whole(x, found[0]), *found[1:])
    z = getitem(x, index)
    if not z.shape:
        return _link_element(z, x, index)
    return np.copy(z) if _has_array_number(given) else z


def _link_element(z: Tensor, x: Tensor, index: Index) -> Any:
    """Return an element ``z = x[index]`` as NumPy has it: a number, or an array without axes, a view of an array."""
    if not x.ndim and _has_ellipsis(index) and is_numpy_number(x):
        return mark_as_array(z)
    return note_view(z, x, REGISTRY["getitem"], {"index": index})  # x[0, ...] is a view without axes


def _has_array_number(index: Index) -> bool:
    """Return whether an index has an integer array without axes, for which NumPy gives a copy, not a view."""
    return any(type(i) is ndarray and not i.ndim for i in (index if type(index) is tuple else (index,)))


alias("__getitem__", _getitem_method)


# ---- positions that are different for each example of vmap: they are inputs of ops


def _is_batched(index: Index) -> bool:
    if type(index) is tuple:
        return any(isinstance(i, Tensor) for i in index)
    return isinstance(index, Tensor)


def _replace_masks(index: TensorLike) -> tuple[Any, ...]:
    """Return the parts of an index with integer arrays in place of masks."""
    made: list[Any] = []
    for i in index if type(index) is tuple else (index,):
        if isinstance(i, ndarray | Tensor) and i.dtype.kind == "b":
            made.extend(np.nonzero(read_sizes("x[mask]", i, "Keep all elements: np.where(mask, x, 0), or")))
        else:
            made.append(i)
    return tuple(made)


def _slice_unless_whole(x: Tensor, index: tuple[Any, ...]) -> Any:
    """Return ``x[index]``; ``x`` itself if the index keeps all of it."""
    return x if all(i == ALL for i in index) else getitem(x, index)


def _view_each(x: Tensor, index: Any, given: Any) -> Any:
    """Index batched examples; where each position is one number, the result is a view of ``x``, as it is in NumPy."""
    z = _pick_each(x, index)
    parts = index if type(index) is tuple else (index,)
    if not z.shape or not all(_is_basic(i) or (isinstance(i, Tensor) and _is_number(i)) for i in parts):
        return z
    first = tuple(0 if isinstance(i, Tensor) else i for i in parts)

    def derive(base: Any) -> Any:
        return _pick_each(base, index) if isinstance(base, Tensor) else base[first]  # every position has this layout

    link_view(z, x, derive, lambda base, value: _set_each(base, value, index), {"index": given})
    if type(z) is Tensor and z.level:
        z.meta.note(z)
    return z


def _is_number(i: Tensor) -> bool:
    return not i.shape and i.dtype.kind in "iu"


def _pick_each(x: Any, index: Any) -> Any:
    """Index batched examples: slices first, then arrays by ops that take indices as inputs."""
    parts = _replace_masks(index)
    whole = _expand_ellipsis(parts, x)
    places = [k for k, i in enumerate(whole) if is_advanced(i)]
    cut = tuple(ALL if is_advanced(i) else i for i in whole)
    y = x if all(i == ALL for i in cut) else getitem(x, cut)
    if len(places) == 1:
        return y.gather(whole[places[0]], places[0])
    picked = [whole[k] for k in places]
    y = np.moveaxis(y, places, range(len(places)))
    lines = find_lines(picked, y.shape)
    z = y.gather_nd(np.stack(np.broadcast_arrays(*picked), -1)) if lines is None else pick_lines(y, lines)
    if are_separated(parts):
        return z
    rank = max(map(np.ndim, picked))
    return np.moveaxis(z, range(rank), range(places[0], places[0] + rank))


def _expand_ellipsis(parts: tuple[Any, ...], x: Any) -> list[Any]:
    """Return an index with a part for each axis of ``x`` that it does not add."""
    rest = x.ndim - sum(i is not None and i is not Ellipsis for i in parts)
    if rest < 0:
        raise ShapeError(f"x[...]: x has shape {x.shape}, and the index names {x.ndim - rest} axes.")
    if not any(i is Ellipsis for i in parts):
        parts = (*parts, ...)
    whole: list[Any] = []
    for i in parts:
        whole.extend([ALL] * rest if i is Ellipsis else [i])
    return whole


def _set_each(x: Tensor, y: Value, index: Any) -> Any:
    """Set elements of batched examples; the flat positions come from NumPy's indexing of element numbers."""
    y = y.astype(x.dtype)
    size = prod(x.shape)
    numbers = _pick_each(constant(np.arange(size).reshape(x.shape)), index)
    if y.ndim > numbers.ndim:
        y = np.reshape(y, y.shape[y.ndim - numbers.ndim :])
    flat: Any = np.reshape(x, (size,))
    flat = flat.tensor_scatter_update(np.expand_dims(numbers, -1), np.broadcast_to(y, numbers.shape))
    return np.reshape(flat, x.shape)


@op(
    _scatter,
    acts=moves(
        lambda s, shape, index: shape,
        [
            (((2,),), {"shape": (4,), "index": slice(1, 3)}),
            (((3, 5),), {"shape": (3, 5), "index": np.array([2, 0, 2])}),
            (((3,),), {"shape": (3, 4), "index": (np.array([0, 2, 0]), np.array([1, 1, 1]))}),
            (((3,),), {"shape": (3, 4), "index": np.eye(3, 4) > 0}), (((),), {"shape": (3,), "index": 1}),
            (((0,),), {"shape": (3,), "index": slice(0)}), (((),), {"shape": (), "index": ()}),
        ],
        lambda op, args, on, params: op.call(
            args,
            {"shape": (len(args[0]), *params["shape"]), "index": index_each(params["index"], len(args[0]))},
        ),
    ),
    d=linear(lambda g, index: getitem(g, index)),
    lower=pieces(lambda shapes, shape, index: [index]),
)  # fmt: skip
def scatter(x: TensorLike, /, shape: ShapeLike, index: Index) -> Any:
    """Return zeros of ``shape`` with ``x`` added at ``index``: the adjoint of indexing.

    >>> scatter(np.array([1.0]), (3,), slice(1, 2))
    array([0., 1., 0.])
    """


# ---- assignment


KEEPS = {"b": "b", "i": "biu", "u": "biu", "f": "biuf"}  # casts within a kind, which keep the gradient


def _check_kind(x: Value, y: Value) -> None:
    if y.dtype.kind not in KEEPS.get(x.dtype.kind, y.dtype.kind):
        raise ArgumentError(f"x[...] = value: x holds {x.dtype} and cannot hold {y.dtype}; cast x first.")


def _set(x: Array, y: Array, index: Index) -> Any:
    _check_kind(x, y)
    z = np.array(x)
    try:
        z[index] = y
    except ValueError:
        raise ShapeError(
            f"x[...] = value: x[...] has shape {_infer_shape(x.shape, index)}, to which a value of shape {y.shape} "
            "does not broadcast."
        ) from None
    return z


def _pull_old_values(g: Value, index: Index) -> Any:
    """Return the cotangent of the old values: 0 at ``index``."""
    if type(g) is ndarray:
        e = g.copy()
        e[index] = 0
        return e
    return set_item(g, np.zeros((), g.dtype)[()], index)


def _pull_assigned_values(g: Value, x_shape: tuple[int, ...], y_shape: tuple[int, ...], index: Index) -> Any:
    """Return the cotangent of the new values, which is 0 for values that are overwritten by later ones."""
    part = getitem(g, index)
    if not _is_surely_unique(index):
        size = int(np.prod(x_shape))
        part = part * mark_last_positions(np.arange(size).reshape(x_shape)[index], size).astype(g.dtype)
    extra = len(y_shape) - len(part.shape)
    return np.reshape(part, (1,) * extra + part.shape) if extra > 0 else part


def _set_all(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    """Batch an assignment, with the axes of the values aligned to those of the indexed place."""
    (x, y), index = args, params["index"]
    n, due = count_examples(args, on), len(_infer_shape(x.shape[on[0] :], index))
    x = broadcast_examples([x, y], [on[0], on[1]])[0]
    if on[1]:
        own = y.shape[1:]
        y = np.reshape(y, (n, *(1,) * (due - len(own)), *own[max(len(own) - due, 0) :]))
    return op.call([x, y], {"index": index_each(index, n)})


def _set_jvp(dx: Value, dy: Value, index: Index) -> Any:
    return set_item(dx, dy, index)


@op(
    _set,
    acts=moves(
        lambda s, t, index: s,
        [
            (((4,), ()), {"index": 1}), (((3, 4), (4,)), {"index": slice(1, None)}),
            (((3, 4), (1, 3, 2)), {"index": (..., [0, 2])}),
            (((4,), (3,)), {"index": np.array([0, 2, 0])}), (((3, 4), (3,)), {"index": np.eye(3, 4) > 0}),
            (((0, 2), (2,)), {"index": slice(None)}), (((), ()), {"index": ()}),
        ],
        _set_all,
    ),
    d=rule(_pull_old_values, _pull_assigned_values, jvp=_set_jvp),
    lower=call("set"),
)  # fmt: skip
def set_item(x: TensorLike, y: TensorLike, /, index: Index) -> Any:
    """Return a copy of ``x`` with ``y`` assigned at ``index``.

    >>> set_item(np.array([1.0, 2.0, 3.0]), 9.0, 1)
    array([1., 9., 3.])
    """


def _setitem_method(x: Tensor, index: Index, value: TensorLike) -> None:
    given = index
    index = normalize_index(given)
    if isinstance(value, Tensor) and (links := _find_basic_view(value, x)) is not None:
        if _is_view_at(links, index, given):
            return  # the second half of x[index] += y: the view has been written to
        if is_shuffling():
            raise ArgumentError(
                "shuffle(x) of a tensor with several axes: NumPy swaps x[i] and x[j], which are views of x. "
                "Write x = x[rng.permutation(len(x))], or x[...] = x[rng.permutation(len(x))] in place."
            )
    value = convert_operand(value)
    _check_kind(x, value)
    found = find_selection(index, x.ndim) if _is_batched(index) else None
    if found is not None:
        write_selection(_slice_unless_whole(x, found[0]), value, *found[1:])
        return
    put = _set_each if _is_batched(index) else set_item
    if isinstance(value, Tensor) and _is_whole(index) and x.level and value.level:  # no NaN from what is overwritten
        write(x, lambda old: put(old.embed(np.zeros(old.shape, old.dtype)), value, index))
    else:
        write(x, lambda old: put(old, value, index))


def _is_whole(index: Index) -> bool:
    """Return whether an index is ``...`` or ``:``, of one axis or several."""
    parts = index if type(index) is tuple else (index,)
    return all(i is ... or (type(i) is slice and i == slice(None)) for i in parts)


def _find_basic_view(value: Tensor, x: Tensor) -> Any:
    """Return the links of a tensor that one op made as a view of ``x``; None for others."""
    links = find_base_links(value)
    return None if links is None or links.params is None or links.base is not x.read() else links


def _is_view_at(links: Any, index: Index, given: Index) -> bool:
    """Return whether the view of these links is ``x[given]`` itself; ``index`` is the same, normalized."""
    known = links.params.get("index")
    return known is given or (_is_basic(index) and _is_basic(known) and links.params == {"index": index})


alias("__setitem__", _setitem_method)


def _fill(x: Tensor, value: TensorLike) -> None:
    """Write one number into all elements, as the method of NumPy's arrays does.

    >>> x = pb.tensor([1.0, 2.0])
    >>> x.fill(3.0)
    >>> x
    Tensor([3., 3.], dtype=float32)
    """
    if not x.ndim and is_numpy_number(x):
        raise ArgumentError("x.fill(value): x is a number, which NumPy leaves as it is. Write x = value instead.")
    x[...] = value


alias("fill", _fill)


@method
def boolean_mask(x: TensorLike, mask: TensorLike, axis: Axis = None) -> Any:
    """Return the elements of ``x`` where ``mask`` is true; the mask's first axis is aligned with ``axis`` of ``x``.

    >>> boolean_mask(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))
    array([1., 3.])
    """
    x, mask = convert_operand(x), strip(mask)
    mask = mask if isinstance(mask, Tensor) else np.asarray(mask)
    at = resolve_axis(x.ndim, axis, "boolean_mask") if axis is not None and x.ndim else 0
    if mask.dtype.kind != "b" or not mask.ndim:
        raise ArgumentError(
            f"boolean_mask: mask must be bools of rank 1 or more, got {mask.dtype} of shape {mask.shape}."
        )
    if x.shape[at : at + mask.ndim] != mask.shape:
        raise ShapeError(
            f"boolean_mask: x has shape {x.shape} and mask has shape {mask.shape}; from axis {at} on they must agree."
        )
    return x[(ALL,) * at + (mask,)]
