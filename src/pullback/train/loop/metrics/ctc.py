"""Connectionist temporal classification (CTC): labels of sequences whose alignment with the steps is unknown."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from pullback.core.composition import check_numbers
from pullback.core.convert import as_array, get_default_dtype
from pullback.errors import ArgumentError, ShapeError
from pullback.ops.activations import log_softmax
from pullback.train.arguments import as_whole_number
from pullback.transforms.control_flow import scan
from pullback.transforms.modifiers import stop_gradient
from pullback.typing import Array, TensorLike, Value

IMPOSSIBLE = -1e30  # the logarithm of a probability of 0 that keeps gradients finite


def ctc(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return minus the logarithm of the probability of each example's labels, as ``keras.losses.ctc`` does.

    y_true: labels as numbers of classes of shape ``(batch, labels)``; 0 is the blank, and pads labels at their end.
    y_pred: logits of shape ``(batch, steps, classes)``.

    >>> pb.metrics.ctc([[1, 2]], np.zeros((1, 3, 3), np.float32)).round(4)
    Tensor([1.6864], dtype=float32)
    """
    y, p = _check_shapes("ctc", "y_true", y_true, "y_pred", y_pred)
    return _compute_loss(y, p, np.sum((y != 0).astype(np.int32), axis=1), None, 0)


def ctc_loss(
    target: TensorLike, output: TensorLike, target_length: TensorLike, output_length: TensorLike, mask_index: int = 0
) -> Any:
    """Return minus the logarithm of the probability of each example's labels, as ``keras.ops.ctc_loss`` does.

    A probability of 0, of labels that do not fit into the steps, gives infinity, with gradients of 0.

    target: labels as numbers of classes, of shape ``(batch, labels)``.
    output: logits of shape ``(batch, steps, classes)``.
    target_length: how many labels each example has; those after them do not count.
    output_length: how many steps each example has.
    mask_index: the number of the blank.

    >>> pb.train.ctc_loss([[1, 2]], np.zeros((1, 4, 3), np.float32), [2], [3]).round(4)
    Tensor([1.6864], dtype=float32)
    """
    y, p = _check_shapes("ctc_loss", "target", target, "output", output)
    lengths = check_numbers("ctc_loss", "target_length", target_length)
    steps = check_numbers("ctc_loss", "output_length", output_length)
    blank = as_whole_number("ctc_loss", "mask_index", mask_index, 0)
    if lengths.shape != p.shape[:1] or steps.shape != p.shape[:1]:
        raise ShapeError(
            f"ctc_loss: target_length and output_length must have shape {p.shape[:1]}, one for each example, "
            f"got {lengths.shape} and {steps.shape}."
        )
    return _compute_loss(y, p, lengths, steps, blank)


def _check_shapes(name: str, labels: str, y: TensorLike, outputs: str, p: TensorLike) -> tuple[Any, Any]:
    """Return labels as integers, and logits as floats."""
    y, p = check_numbers(name, labels, y), check_numbers(name, outputs, p)
    if len(y.shape) != 2 or len(p.shape) != 3 or y.shape[0] != p.shape[0] or 0 in (*y.shape, *p.shape):
        raise ShapeError(
            f"{name}: expected {labels} of shape (batch, labels) and {outputs} of shape (batch, steps, classes), "
            f"got {y.shape} and {p.shape}."
        )
    p = p if p.dtype.kind == "f" else p.astype(get_default_dtype())
    return y.astype(np.int32), p.astype(np.float32) if p.dtype.itemsize < 4 else p


def _compute_loss(y: Value, p: Value, lengths: Value, steps: Value | None, blank: int) -> Any:
    """Return the loss from the probabilities of being at each label, or at a blank between two, after each step."""
    batch, count = y.shape
    blanks = np.full((batch, count + 1), blank, np.int32)
    places = np.reshape(np.stack([blanks[:, 1:], y], axis=-1), (batch, 2 * count))
    places = np.concatenate([places, blanks[:, :1]], axis=1)  # blank, label, blank, …, label, blank
    is_class = (np.expand_dims(places, -1) == np.arange(p.shape[2])).astype(p.dtype)
    scores = np.moveaxis(log_softmax(p) @ np.swapaxes(is_class, 1, 2), 1, 0)  # (steps, batch, places)
    differs = np.logical_and(places[:, 2:] != blank, places[:, 2:] != places[:, :-2])
    may_skip = np.concatenate([np.zeros((batch, 2), bool), differs], axis=1)
    never = np.full((batch, 2), IMPOSSIBLE, p.dtype)
    start = np.where(np.arange(2 * count + 1) < 2, scores[0], IMPOSSIBLE)

    def advance(before: Value, step: tuple[Value, Value]) -> tuple[Any, None]:
        score, is_on = step
        moved = np.concatenate([never[:, :1], before[:, :-1]], axis=1)
        skipped = np.where(may_skip, np.concatenate([never, before[:, :-2]], axis=1), IMPOSSIBLE)
        after = _add_in_logarithms(before, moved, skipped) + score
        return np.where(np.expand_dims(is_on, -1), after, before), None

    is_on = np.expand_dims(np.arange(1, p.shape[1]), -1) < (p.shape[1] if steps is None else np.expand_dims(steps, 0))
    is_on = np.broadcast_to(is_on, (p.shape[1] - 1, batch))
    last = scan(advance, start, (scores[1:], is_on))[0] if p.shape[1] > 1 else start
    at = np.arange(2 * count + 1)
    end: Any = 2 * lengths
    end = np.expand_dims(end, -1)
    is_end = np.logical_or(at == end, at == end - 1)
    total = _add_in_logarithms(*np.moveaxis(np.where(is_end, last, IMPOSSIBLE), -1, 0))
    return np.where(total < 0.5 * IMPOSSIBLE, np.inf, -total)


def _add_in_logarithms(*terms: Value) -> Any:
    """Return the logarithm of a sum of numbers from their logarithms."""
    most: Any = terms[0]
    for x in terms[1:]:
        most = np.maximum(most, x)
    most = stop_gradient(most)
    return most + np.log(sum(np.exp(x - most) for x in terms))


def ctc_decode(
    inputs: TensorLike,
    sequence_lengths: TensorLike,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int = 0,
) -> tuple[Array, Array]:
    """Return likely labels of each example and their scores, as ``keras.ops.ctc_decode`` does.

    Labels have the shape ``(paths, batch, steps)``, -1 after their end.  Scores of "greedy" are minus the sum of the
    largest logits, of shape ``(batch, 1)``; those of "beam_search" are logarithms of probabilities, ``(batch, paths)``.

    inputs: logits of shape ``(batch, steps, classes)``.
    sequence_lengths: how many steps each example has.
    strategy: "greedy": the largest logit of each step, or "beam_search".
    beam_width: how many prefixes a beam search keeps.
    top_paths: how many of the most likely labels a beam search returns.
    merge_repeated: whether equal labels of steps after one another are one, with "greedy".
    mask_index: the number of the blank.

    >>> labels, scores = pb.train.ctc_decode(np.eye(3)[[[1, 1, 0, 1, 2]]], [5])
    >>> labels.tolist(), scores.tolist()
    ([[[1, 1, 2, -1, -1]]], [[-5.0]])
    """
    x = np.asarray(as_array(inputs, subject="ctc_decode: inputs"))
    lengths = np.asarray(as_array(sequence_lengths, subject="ctc_decode: sequence_lengths")).astype(np.int64)
    if x.ndim != 3 or lengths.shape != x.shape[:1]:
        raise ShapeError(
            "ctc_decode: expected inputs of shape (batch, steps, classes) and sequence_lengths of shape (batch,), "
            f"got {x.shape} and {lengths.shape}."
        )
    blank = as_whole_number("ctc_decode", "mask_index", mask_index, 0)
    if strategy == "greedy":
        return _decode_greedily(x, lengths, merge_repeated, blank)
    if strategy != "beam_search":
        raise ArgumentError(f"ctc_decode: strategy must be 'greedy' or 'beam_search', got {strategy!r}.")
    width = as_whole_number("ctc_decode", "beam_width", beam_width, 1)
    paths = as_whole_number("ctc_decode", "top_paths", top_paths, 1)
    labels = np.full((paths, *x.shape[:2]), -1, np.int32)
    scores = np.full((len(x), paths), -np.inf, x.dtype)
    for i, (logits, length) in enumerate(zip(x, lengths, strict=True)):
        found = _search_beam(np.asarray(log_softmax(logits[:length])), width, blank)
        for k, (path, score) in enumerate(found[:paths]):
            labels[k, i, : len(path)], scores[i, k] = path, score
    return labels, scores


def _decode_greedily(x: Array, lengths: Array, merge_repeated: bool, blank: int) -> tuple[Array, Array]:
    is_on = np.arange(x.shape[1]) < lengths[:, None]
    best = np.where(is_on, np.argmax(x, axis=-1), blank)
    keep = best != blank
    if merge_repeated:
        keep[:, 1:] &= best[:, 1:] != best[:, :-1]
    labels = np.full(best.shape, -1, np.int32)
    for row, found, is_kept in zip(labels, best, keep, strict=True):
        row[: is_kept.sum()] = found[is_kept]
    return labels[None], -np.sum(np.where(is_on, np.max(x, axis=-1), 0), axis=1, keepdims=True)


def _search_beam(scores: Array, width: int, blank: int) -> list[tuple[tuple[int, ...], float]]:
    """Return labels with the logarithms of their probabilities, the most likely first."""
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, -np.inf)}  # of paths that end in a blank, or not
    for step in scores.astype(np.float64):
        extended: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [-np.inf, -np.inf])
        for path, (in_blank, in_label) in beams.items():
            both = np.logaddexp(in_blank, in_label)
            for label, score in enumerate(step):
                if label == blank:
                    extended[path][0] = np.logaddexp(extended[path][0], both + score)
                    continue
                is_repeated = bool(path) and path[-1] == label
                longer = extended[(*path, label)]
                longer[1] = np.logaddexp(longer[1], (in_blank if is_repeated else both) + score)
                if is_repeated:
                    extended[path][1] = np.logaddexp(extended[path][1], in_label + score)
        ranked = sorted(extended.items(), key=lambda one: -float(np.logaddexp(one[1][0], one[1][1])))
        beams = {path: (a, b) for path, (a, b) in ranked[:width]}
    return [(path, float(np.logaddexp(a, b))) for path, (a, b) in beams.items()]
