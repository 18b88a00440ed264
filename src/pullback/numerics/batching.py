"""Batching rules that several ops share: each runs an op on many examples at once.

``batch(op, args, on, params)``: an argument that is ``on`` has the examples along its axis 0, the others are the same
for all examples; the result has the examples along its axis 0.  An argument may be a tensor, so a rule is plain NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.numerics.axis_arguments import shift_axes

if TYPE_CHECKING:
    from pullback.core.op import Op

Shape = tuple[int, ...]


def batch_one_by_one(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Run the op on each example in a loop, which works for every op."""
    n = count_examples(args, on)
    each = [op.call_example(i, args, on, params) for i in range(n)]
    if not n:  # without examples, the result of zeros gives shape and dtype
        blank = [np.zeros(a.shape[1:], a.dtype) if b else a for a, b in zip(args, on, strict=True)]
        return join_results(lambda *rows: np.stack(rows)[:0], [op.call(blank, params)])
    return join_results(lambda *rows: np.stack(rows), each)


def batch_leading_axes(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch an op of one input that takes any leading axes: the examples are one more of them."""
    return op.call(args, params)


def batch_by_folding(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch an op whose inputs and result have a batch axis first: the examples are folded into it.

    ``shape``, where it is a parameter, is that of the result.
    """
    many = broadcast_examples(args, on)
    n, batch = many[0].shape[:2]
    if "shape" in params:
        params = {**params, "shape": (n * batch, *params["shape"][1:])}
    z = op.call([np.reshape(a, (n * batch, *a.shape[2:])) for a in many], params)
    return np.reshape(z, (n, batch, *z.shape[1:]))


def batch_aligned_axes(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch an op of several inputs with common leading axes: the examples are one more of them."""
    return op.call(broadcast_examples(args, on), params)


def batch_along_axis(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch an op that works along ``axis`` of all its inputs, which have the same rank."""
    many = broadcast_examples(args, on)
    return op.call(many, {**params, "axis": shift_axes(np.ndim(many[0]) - 1, params["axis"], op.name)})


def batch_axis_parameters(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch an op of one input whose parameters are all axes: each is shifted by one."""
    rank = np.ndim(args[0]) - 1
    return op.call(args, {name: shift_axes(rank, axis, op.name) for name, axis in params.items()})


def batch_shape_parameter(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch an op of one input that only changes the shape."""
    return np.reshape(args[0], _infer_batched_shape(op, args[0], params))


def batch_broadcast(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch an op that broadcasts to a ``shape``: axes are aligned from the last."""
    (x,) = args
    wanted = _infer_batched_shape(op, x, params)
    return op.call([np.reshape(x, (x.shape[0], *(1,) * (len(wanted) - x.ndim), *x.shape[1:]))], {"shape": wanted})


def _infer_batched_shape(op: Any, x: Any, params: Mapping[str, Any]) -> Shape:
    return (x.shape[0], *op.run_guarded(lambda: op.acts.shape(op.name, [x.shape[1:]], params), [x], params))


def join_results(join: Callable[..., Any], each: Sequence[Any]) -> Any:
    """Stack the results of all examples; of an op with several results, each of them."""
    return tuple(join(*rows) for rows in zip(*each, strict=True)) if type(each[0]) is tuple else join(*each)


def count_examples(args: Sequence[Any], on: Sequence[bool]) -> int:
    """Return the number of examples."""
    return next(int(a.shape[0]) for a, b in zip(args, on, strict=True) if b)


def broadcast_examples(args: Sequence[Any], on: Sequence[bool]) -> list[Any]:
    """Return all arguments with the examples along axis 0; those without are broadcast.

    >>> [a.shape for a in broadcast_examples([np.ones((2, 3)), np.ones(4)], [True, False])]
    [(2, 3), (2, 4)]
    """
    n = count_examples(args, on)
    if any(type(a) in (bool, int, float, complex) for a in args):  # Python's numbers do not widen arrays
        kind = np.result_type(*(a if type(a) in (bool, int, float, complex) else a.dtype for a in args))
        args = [a if b or hasattr(a, "dtype") else np.asarray(a, kind) for a, b in zip(args, on, strict=True)]
    return [a if b else np.broadcast_to(a, (n, *np.shape(a))) for a, b in zip(args, on, strict=True)]
