"""Non-maximum suppression of boxes.  Indices carry no gradient; scores do."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import no_derivative
from pullback.core.composition import check_numbers
from pullback.core.convert import as_number, check_real
from pullback.core.op import observable, op
from pullback.core.tape import constant
from pullback.core.tensor import Tensor, strip
from pullback.errors import ArgumentError, BatchedValueError, ShapeError

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__ = [
    "PaddedSuppression", "ScoredSuppression", "non_max_suppression", "non_max_suppression_padded",
    "non_max_suppression_with_score",
]  # fmt: skip

Shape = tuple[int, ...]


def _measure_overlap(a: Value, b: Value) -> Any:
    """Return the intersection over union of boxes ``[y1, x1, y2, x2]`` along the last axis."""
    low_a, high_a = np.minimum(a[..., :2], a[..., 2:]), np.maximum(a[..., :2], a[..., 2:])
    low_b, high_b = np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:])
    sides = np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), 0)
    area_a, area_b, shared = (np.prod(s, axis=-1) for s in (high_a - low_a, high_b - low_b, sides))
    real = (strip(area_a) > 0) & (strip(area_b) > 0)
    return np.where(real, shared / np.where(real, area_a + area_b - shared, 1), 0)


def _infer_chosen_shape(
    boxes: Shape,
    scores: Shape,
    max_output_size: int,
    iou_threshold: float,
    score_threshold: float,
    sigma: float,
) -> Shape:
    name = "non_max_suppression"
    if len(boxes) != 2 or boxes[1] != 4 or scores != boxes[:1]:
        raise ShapeError(f"{name}: boxes must have shape (number, 4) and scores (number,), got {boxes} and {scores}.")
    if isinstance(max_output_size, bool) or not hasattr(max_output_size, "__index__") or max_output_size < 0:
        raise ArgumentError(f"{name}: max_output_size must be an integer >= 0, got {max_output_size!r}.")
    for argument, share in (("iou_threshold", iou_threshold), ("soft_nms_sigma", sigma)):
        as_number(name, argument, share, 0, 1)
    as_number(name, "score_threshold", score_threshold)
    return (min(int(max_output_size), boxes[0]),)


def _suppress(
    boxes: Array,
    scores: Array,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = -inf,
    sigma: float = 0.0,
) -> Any:
    (limit,) = _infer_chosen_shape(boxes.shape, scores.shape, max_output_size, iou_threshold, score_threshold, sigma)
    check_real("non_max_suppression", boxes, "boxes")
    check_real("non_max_suppression", scores, "scores")
    chosen = np.full(limit, -1, np.int32)
    boxes, scores = boxes.astype(float), scores.astype(float)  # thresholds are compared as they are, not rounded
    left = np.flatnonzero(scores > score_threshold)
    best = scores[left]
    for k in range(limit):
        if not left.size:
            break
        top = int(np.argmax(best))
        chosen[k] = left[top]
        shared = _measure_overlap(boxes[left], boxes[left[top]])
        if sigma:
            best = best * np.exp(-0.5 / sigma * shared * shared)
        stay = (shared < iou_threshold) & (best > score_threshold)
        stay[top] = False
        left, best = left[stay], best[stay]
    return chosen


@op(
    _suppress,
    acts=moves(
        _infer_chosen_shape,
        [
            ((np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3.0]]), (3,)), {"max_output_size": 3}),
            (((4, 4), (4,)), {"max_output_size": 2, "sigma": 0.5}), (((0, 4), (0,)), {"max_output_size": 2}),
        ],
    ),
    d=no_derivative(),
)  # fmt: skip
def suppression_indices(
    boxes: TensorLike,
    scores: TensorLike,
    /,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = -inf,
    sigma: float = 0.0,
) -> Any:
    """Return the indices of the boxes that stay, the best first, padded with -1 to ``max_output_size``.

    >>> suppression_indices(np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]), np.array([0.5, 0.7]), 2)
    array([ 1, -1], dtype=int32)
    """


def _choose_boxes(
    boxes: Any, scores: Any, max_output_size: int, iou_threshold: Any, score_threshold: Any, sigma: Any = 0.0
) -> Any:  # fmt: skip
    """Return the padded indices of the chosen boxes, without gradient."""
    iou_threshold = 0.5 if iou_threshold is None else iou_threshold
    score_threshold = -inf if score_threshold is None else score_threshold
    return strip(suppression_indices(boxes, scores, max_output_size, iou_threshold, score_threshold, sigma or 0.0))


def _drop_padding(name: str, chosen: Value) -> Any:
    """Return the indices without padding; an error under vmap, where lengths differ."""
    if isinstance(chosen, Tensor):
        raise BatchedValueError(
            f"{name}: how many boxes stay is different for each example of vmap, so the results have no one shape. "
            "Use non_max_suppression_padded with pad_to_max_output_size=True."
        )
    return chosen[chosen >= 0]


def _check_boxes(boxes: Any, scores: Any) -> tuple[Any, Any]:
    return check_numbers("non_max_suppression", "boxes", boxes), check_numbers("non_max_suppression", "scores", scores)


def _wrap_like(x: Any, result: Value) -> Any:
    return constant(result) if isinstance(x, Tensor) and not isinstance(result, Tensor) else result


@observable
def non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size: int, iou_threshold: float | None = 0.5,
    score_threshold: float | None = -inf,
) -> Any:  # fmt: skip
    """Return the indices of the boxes, best first, without those that overlap a better one by ``iou_threshold``.

    boxes: rows [y1, x1, y2, x2].
    scores: a number for each box.
    max_output_size: how many boxes are kept at most.
    iou_threshold: the overlap from which on a box is left out.
    score_threshold: boxes of a lower score are left out.

    >>> boxes = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]])
    >>> pb.image.non_max_suppression(boxes, np.array([0.6, 0.9, 0.3]), 3)
    array([1, 2], dtype=int32)
    """
    boxes, scores = _check_boxes(boxes, scores)
    chosen = _choose_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold)
    return _wrap_like(scores, _drop_padding("non_max_suppression", chosen))


class ScoredSuppression(NamedTuple):
    """The result of ``non_max_suppression_with_score``.

    >>> pb.image.non_max_suppression_with_score(np.ones((1, 4)), np.array([0.5]), 1).selected_scores
    array([0.5])
    """

    selected_indices: Any
    selected_scores: Any


@observable
def non_max_suppression_with_score(
    boxes: TensorLike, scores: TensorLike, max_output_size: int, iou_threshold: float | None = 0.5,
    score_threshold: float | None = -inf, soft_nms_sigma: float | None = 0.0,
) -> ScoredSuppression:  # fmt: skip
    """Return the indices of the boxes that stay, and their scores, which ``soft_nms_sigma`` lowers for overlaps.

    The scores carry gradients to ``scores`` and, if they are lowered, to ``boxes``.

    boxes: rows [y1, x1, y2, x2].
    scores: a number for each box.
    max_output_size: how many boxes are kept at most.
    iou_threshold: the overlap from which on a box is left out.
    score_threshold: boxes of a lower score are left out.
    soft_nms_sigma: above 0 overlapping boxes get lower scores instead of being left out.

    >>> boxes = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 1.0, 1.5]])
    >>> pb.image.non_max_suppression_with_score(boxes, np.array([0.9, 0.8]), 2, soft_nms_sigma=0.5).selected_scores
    array([0.9       , 0.71587145])
    """
    boxes, scores = _check_boxes(boxes, scores)
    chosen = _choose_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
    chosen = _drop_padding("non_max_suppression_with_score", chosen)
    values = np.take(scores, chosen, axis=0)
    if soft_nms_sigma and len(chosen) > 1:
        some = np.take(boxes, chosen, axis=0)
        shared = _measure_overlap(some[:, None], some[None])
        better = np.tri(len(chosen), k=-1, dtype=shared.dtype)
        values = values * np.exp(np.sum(shared * shared * better, axis=1) * (-0.5 / soft_nms_sigma))
    return ScoredSuppression(_wrap_like(values, chosen), values)


class PaddedSuppression(NamedTuple):
    """The result of ``non_max_suppression_padded``.

    >>> pb.image.non_max_suppression_padded(np.ones((1, 4)), np.array([0.5]), 1).valid_outputs
    np.int32(1)
    """

    selected_indices: Any
    valid_outputs: Any


@observable
def non_max_suppression_padded(
    boxes: TensorLike, scores: TensorLike, max_output_size: int, iou_threshold: float | None = 0.5,
    score_threshold: float | None = -inf, pad_to_max_output_size: bool = False,
) -> PaddedSuppression:  # fmt: skip
    """Return the indices of the boxes that stay, optionally padded with zeros, and their number.

    boxes: rows [y1, x1, y2, x2].
    scores: a number for each box.
    max_output_size: how many boxes are kept at most.
    iou_threshold: the overlap from which on a box is left out.
    score_threshold: boxes of a lower score are left out.
    pad_to_max_output_size: whether the result is filled up to ``max_output_size``.

    >>> boxes = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1]])
    >>> pb.image.non_max_suppression_padded(boxes, np.array([0.6, 0.9]), 2, pad_to_max_output_size=True)
    PaddedSuppression(selected_indices=array([1, 0], dtype=int32), valid_outputs=np.int32(1))
    """
    boxes, scores = _check_boxes(boxes, scores)
    chosen = _choose_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold)
    valid = chosen >= 0
    whole = np.where(valid, chosen, 0).astype(np.int32) if pad_to_max_output_size else None
    indices = _drop_padding("non_max_suppression_padded", chosen) if whole is None else whole
    return PaddedSuppression(_wrap_like(scores, indices), _wrap_like(scores, np.sum(valid).astype(np.int32)))
