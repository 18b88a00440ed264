"""Layers that merge several inputs, ``layer(x, y)`` or ``layer([x, y])``: sums, products, concatenation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from pullback.core.suggestions import snake_case
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.axis_arguments import resolve_axis
from pullback.ops import elementwise, joining
from pullback.train.masks import Mask, expand_mask
from pullback.train.nn.layers.base import INPUT_TYPES, Layer
from pullback.train.nn.regularizers import scale_to_length_1
from pullback.typing import Value

__all__ = ["Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract"]


class MergeLayer(Layer):
    """The base of layers with several inputs; a step of the output is masked where it is in all inputs."""

    several = True

    def __new__(cls, *args: Any, **_: Any) -> MergeLayer:
        if args and isinstance(args[0], list | tuple) and any(isinstance(x, INPUT_TYPES) for x in args[0]):
            name = snake_case(cls.__name__)
            raise ArgumentError(
                f"{name}: pb.layers.{name}() makes a layer, which is then applied: pb.layers.{name}()([x, y])."
            )
        return super().__new__(cls)

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        if mask is None or any(m is None for m in mask) or len(mask) < len(inputs):
            return None
        return reduce(np.logical_or, mask)


@dataclass(eq=False)
class Add(MergeLayer):
    """The sum of its inputs.

    >>> pb.layers.add()(np.array([[1.0]]), np.array([[2.0]]))
    array([[3.]])
    """

    def call(self, x: Value, y: Value, *others: Value) -> Any:
        return reduce(elementwise.add, _align_ranks(x, y, *others))


@dataclass(eq=False)
class Subtract(MergeLayer):
    """The first input minus the second.

    >>> pb.layers.subtract()(np.array([[1.0]]), np.array([[2.0]]))
    array([[-1.]])
    """

    def call(self, x: Value, y: Value) -> Any:
        return elementwise.sub(*_align_ranks(x, y))


@dataclass(eq=False)
class Multiply(MergeLayer):
    """The product of its inputs; masked steps of an input are left out of it.

    >>> pb.layers.multiply()(np.array([[3.0]]), np.array([[2.0]]))
    array([[6.]])
    """

    def call(self, x: Value, y: Value, *others: Value, mask: Mask = None) -> Any:
        inputs = _align_ranks(x, y, *others)
        if mask is None:
            return reduce(elementwise.mul, inputs)
        full = _expand_masks(inputs, mask)
        factors = [a if m is None else np.where(m, a, np.ones_like(a)) for a, m in zip(inputs, full, strict=True)]
        product = reduce(elementwise.mul, factors)
        if any(m is None for m in full):
            return product
        return np.where(reduce(np.logical_or, full), product, np.zeros_like(product))


@dataclass(eq=False)
class Average(MergeLayer):
    """The mean of its inputs.

    >>> pb.layers.average()(np.array([[1.0]]), np.array([[2.0]]))
    array([[1.5]])
    """

    def call(self, x: Value, y: Value, *others: Value) -> Any:
        return reduce(elementwise.add, _align_ranks(x, y, *others)) / (2 + len(others))


@dataclass(eq=False)
class Maximum(MergeLayer):
    """The elementwise maximum of its inputs; masked steps of an input are left out of it.

    >>> pb.layers.maximum()(np.array([[1.0, 5.0]]), np.array([[2.0, 3.0]]))
    array([[2., 5.]])
    """

    def call(self, x: Value, y: Value, *others: Value, mask: Mask = None) -> Any:
        return _merge_unmasked(elementwise.maximum, _align_ranks(x, y, *others), mask)


@dataclass(eq=False)
class Minimum(MergeLayer):
    """The elementwise minimum of its inputs; masked steps of an input are left out of it.

    >>> pb.layers.minimum()(np.array([[1.0, 5.0]]), np.array([[2.0, 3.0]]))
    array([[1., 3.]])
    """

    def call(self, x: Value, y: Value, *others: Value, mask: Mask = None) -> Any:
        return _merge_unmasked(elementwise.minimum, _align_ranks(x, y, *others), mask)


@dataclass(eq=False)
class Concatenate(MergeLayer):
    """Its inputs concatenated along ``axis``.

    - axis: the axis; 0 is the batch.

    >>> pb.layers.concatenate()(np.ones((5, 2)), np.ones((5, 3))).shape
    (5, 5)
    """

    axis: int = -1

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        if mask is None or all(m is None for m in mask):
            return None
        axis = resolve_axis(inputs[0].ndim, self.axis, "concatenate")
        full = [_expand_mask(x, m) for x, m in zip(inputs, mask, strict=True)]
        return np.any(joining.concat(full, axis), axis=-1)

    def call(self, x: Value, y: Value, *others: Value) -> Any:
        return joining.concat([x, y, *others], self.axis)


@dataclass(eq=False)
class Dot(MergeLayer):
    """The dot product of two inputs along an axis of each.

    - axes: one axis for both inputs, or one for each; 0 is the batch.
    - normalize: whether both are scaled to length 1 first: the result is then the cosine similarity.

    >>> pb.layers.dot(-1)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    axes: int | Sequence[int]
    normalize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = self.axes
        pair = tuple(axes) if isinstance(axes, list | tuple) else (axes, axes)
        if len(pair) != 2 or not all(isinstance(i, int) and not isinstance(i, bool) and i for i in pair):
            raise ArgumentError(f"{self.name}: axes must be one or two axes, not that of the batch, got {axes!r}.")
        self._axes = pair

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return None

    def call(self, x: Value, y: Value) -> Any:
        if x.ndim < 2 or y.ndim < 2:
            raise ShapeError("expected at least rank 2, the batch included.")
        i, j = resolve_axis(x.ndim, self._axes[0], "dot"), resolve_axis(y.ndim, self._axes[1], "dot")
        if x.shape[i] != y.shape[j]:
            raise ShapeError(
                f"the lengths {x.shape[i]} along axis {i} and {y.shape[j]} along axis {j} must be the same."
            )
        a: Any = scale_to_length_1(x, i) if self.normalize else x
        b: Any = scale_to_length_1(y, j) if self.normalize else y
        a, b = np.moveaxis(a, i, -1), np.moveaxis(b, j, -1)
        rest, others = a.shape[1:-1], b.shape[1:-1]
        a = np.reshape(a, (a.shape[0], int(np.prod(rest)), a.shape[-1]))
        b = np.reshape(b, (b.shape[0], int(np.prod(others)), b.shape[-1]))
        return np.reshape(a @ np.swapaxes(b, 1, 2), (x.shape[0], *(rest + others or (1,))))


def _align_ranks(*inputs: Value) -> list[Any]:
    """Return the inputs with equally many axes: those with fewer get axes of length 1 after the batch."""
    rank = max(x.ndim for x in inputs)
    return [x if x.ndim == rank else np.reshape(x, (x.shape[0], *(1,) * (rank - x.ndim), *x.shape[1:])) for x in inputs]


def _expand_masks(inputs: Sequence[Any], mask: Any) -> list[Any]:
    """Return the masks with the shapes of their inputs, None for an input without."""
    masks = [*mask, *[None] * (len(inputs) - len(mask))]
    return [None if m is None else _expand_mask(x, m) for x, m in zip(inputs, masks, strict=True)]


def _merge_unmasked(merge: Callable[[Any, Any], Any], inputs: list[Any], mask: Mask) -> Any:
    """Return the inputs merged pair by pair, each without its masked steps; where all are masked, the first."""
    if mask is None:
        return reduce(merge, inputs)
    (out, seen), *others = zip(inputs, _expand_masks(inputs, mask), strict=True)
    for given, own in others:
        x = given if own is None else np.where(own, given, out)
        out = merge(out if seen is None else np.where(seen, out, x), x)
        seen = None if own is None or seen is None else np.logical_or(seen, own)
    return out


def _expand_mask(x: Value, mask: Mask) -> Any:
    """Return a mask with the shape of its input; everything counts if there is none."""
    if mask is None:
        return np.ones(x.shape, bool)
    return np.broadcast_to(expand_mask(mask, x.ndim), x.shape)
