"""Connectionist temporal classification: against sums over all paths, and numbers of Keras 3.15."""

from __future__ import annotations

import re
from itertools import groupby, product

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, DataError, ShapeError

LOGITS = (np.sin(np.arange(2 * 5 * 3) * 1.3) * 2).reshape(2, 5, 3).astype(np.float32)
LABELS = np.array([[1, 1, 0], [2, 1, 2]])


def probability(labels, logits, blank=0):
    """Return the sum of the probabilities of all paths that give these labels."""
    shares = np.exp(logits.astype(float))
    shares /= shares.sum(-1, keepdims=True)
    total = 0.0
    for path in product(range(shares.shape[1]), repeat=len(shares)):
        if [k for k, _ in groupby(path) if k != blank] == list(labels):
            total += np.prod(shares[np.arange(len(path)), path])
    return total


@pytest.mark.parametrize("compiled", [False, True])
def test_ctc_is_minus_logarithm_of_sum_over_all_paths(compiled):
    expected = [-np.log(probability(y[y > 0], p)) for y, p in zip(LABELS, LOGITS, strict=True)]
    run = pb.compile(pb.metrics.ctc) if compiled else pb.metrics.ctc
    np.testing.assert_allclose(run(LABELS, LOGITS), expected, rtol=1e-5)
    np.testing.assert_allclose(expected, [3.6379197, 1.9229045], rtol=1e-5)  # keras.losses.ctc
    loss = pb.train.losses.CTC(reduction="sum")
    np.testing.assert_allclose(loss(LABELS, LOGITS), np.sum(expected), rtol=1e-5)


def test_ctc_loss_with_lengths_and_another_blank():
    made = pb.train.ctc_loss([[0, 1, 9], [1, 0, 1]], LOGITS, [2, 3], [4, 5], mask_index=2)
    expected = [-np.log(probability(y, p, 2)) for y, p in (([0, 1], LOGITS[0, :4]), ([1, 0, 1], LOGITS[1]))]
    np.testing.assert_allclose(made, expected, rtol=1e-5)


def test_gradient_of_ctc_agrees_with_differences():
    logits = LOGITS.astype(np.float64)
    pb.check_grads(lambda p: np.sum(pb.metrics.ctc(LABELS, p)), [logits], order=1)
    pb.check_grads(lambda p: np.sum(pb.metrics.ctc(LABELS[:1], p)), [logits[:1, :4]])


def test_ctc_of_labels_that_do_not_fit_is_infinite_with_zero_gradient():
    short = LOGITS[:1, :2]
    assert pb.metrics.ctc([[1, 1]], short).tolist() == [np.inf]
    assert not np.any(pb.grad(lambda p: np.sum(pb.metrics.ctc([[1, 1]], p)))(short))


def test_fit_by_name_learns_labels_and_decodes_them():
    x = np.eye(6, dtype=np.float32)[None]
    model = pb.sequential([pb.layers.dense(3, input_shape=[6, 6])])
    model.compile(pb.train.adam(0.3), "ctc")
    history = model.fit(x, np.array([[1, 2, 2]]), epochs=40, verbose=0).history["loss"]
    assert history[-1] < 0.1 < history[0]
    labels, scores = pb.train.ctc_decode(model.predict(x), [6], "beam_search", top_paths=2)
    assert labels[0, 0].tolist() == [1, 2, 2, -1, -1, -1]
    assert scores[0, 0] == pytest.approx(-history[-1], abs=0.05)
    with pytest.raises(DataError, match="labels must be 0 to 2"):
        model.fit(x, np.array([[1, 3, 2]]), verbose=0)


def test_ctc_beam_search_finds_most_likely_labels():
    paths = [tuple(y) for n in range(4) for y in product((1, 2), repeat=n)]
    expected = sorted(((probability(y, LOGITS[1, :4]), y) for y in paths), reverse=True)[:3]
    labels, scores = pb.train.ctc_decode(LOGITS[1:], [4], strategy="beam_search", top_paths=3)
    assert [tuple(k for k in y if k >= 0) for y in labels[:, 0].tolist()] == [y for _, y in expected]
    np.testing.assert_allclose(scores[0], np.log([p for p, _ in expected]), rtol=1e-5)


def test_ctc_greedy_decoding_merges_repeated_labels():
    logits = np.eye(3)[[[1, 1, 0, 1, 2, 2], [2, 2, 1, 1, 1, 1]]]
    labels, scores = pb.train.ctc_decode(logits, [6, 2])
    assert labels.tolist() == [[[1, 1, 2, -1, -1, -1], [2, -1, -1, -1, -1, -1]]]
    assert scores.tolist() == [[-6.0], [-2.0]]
    every, _ = pb.train.ctc_decode(logits, [6, 2], merge_repeated=False)
    assert every.tolist() == [[[1, 1, 1, 2, 2, -1], [2, 2, -1, -1, -1, -1]]]


def test_arguments_of_ctc_are_checked():
    with pytest.raises(ShapeError, match=re.escape("expected y_true of shape (batch, labels) and y_pred of shape")):
        pb.metrics.ctc([1, 2], LOGITS)
    with pytest.raises(ShapeError, match="must have shape"):
        pb.train.ctc_loss(LABELS, LOGITS, [1], [5, 5])
    with pytest.raises(ArgumentError, match="strategy must be 'greedy' or 'beam_search', got 'beam'"):
        pb.train.ctc_decode(LOGITS, [5, 5], strategy="beam")
    with pytest.raises(ShapeError, match="sequence_lengths of shape"):
        pb.train.ctc_decode(LOGITS, [5])
