"""Bad input: an error of ours that names the function and the argument, what was expected and what was given."""

from __future__ import annotations

import inspect
import runpy
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import fused, image, linalg, losses, random, signal, spectral
from pullback.errors import ArgumentError, DataError, MatrixError, PullbackError, ShapeError

PUBLIC = runpy.run_path(str(Path(__file__).resolve().parents[2] / "script" / "ops_table.py"))["PUBLIC"]


def A(*shape: int) -> Any:
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 7


def W(*numbers: Any) -> Any:
    return np.array(numbers)


X, F, T = A(1, 4, 4, 1), A(2, 2, 1, 1), np.array(["a", "b"])
Call, Lstm = Any, (A(5, 8), A(8), A(1, 3), A(1, 2), A(1, 2))

REFUSED: list[tuple[Call, type[Exception], str]] = [
    # ---- windows
    (lambda: pb.conv2d(A(4, 4), F), ShapeError, r"conv2d: x must have rank 4.*\(4, 4\)"),
    (lambda: pb.conv2d(A(1, 4, 4, 2), F), ShapeError, r"conv2d: x has 2 channels but filter, of shape \(2, 2, 1, 1\)"),
    (lambda: pb.conv2d(X, F, 0), ArgumentError, "conv2d: strides must be a positive integer.*got 0"),
    (lambda: pb.conv2d(X, F, -1), ArgumentError, "conv2d: strides must be a positive integer.*got -1"),
    (lambda: pb.conv2d(X, F, nan), ArgumentError, "conv2d: strides must be a positive integer.*got nan"),
    (lambda: pb.conv2d(X, F, [1, 2, 3]), ArgumentError, r"conv2d: strides .*got \(1, 2, 3\)"),
    (lambda: pb.conv2d(X, F, dilations=0), ArgumentError, "conv2d: dilations must be a positive integer.*got 0"),
    (lambda: pb.conv2d(X, A(3, 3, 1, 1), dilations=2), ShapeError, r"conv2d: a window of \(5, 5\) does not fit"),
    (lambda: pb.conv2d(None, F), DataError, "conv2d: x: expected numbers.*got NoneType"),
    (lambda: pb.conv2d(X, T), DataError, "conv2d: filter must be numbers, got text"),
    (lambda: pb.separable_conv2d(X, F, None), DataError, "separable_conv2d: pointwise_filter: expected numbers"),
    (lambda: pb.dilation2d(X, A(2, 2, 3)), ShapeError, "dilation2d: x has 1 channels, so filter must have shape"),
    (lambda: pb.max_pool(X, 5), ShapeError, r"max_pool: a window of \(5, 5\) does not fit into \(4, 4\)"),
    (lambda: pb.max_pool(X, 0), ArgumentError, "max_pool: filter_size must be a positive integer.*got 0"),
    (lambda: pb.avg_pool(None, 2), DataError, "avg_pool: x: expected numbers"),
    (lambda: fused.conv2d(X, F, bias=A(3, 3)), ShapeError, r"fused.conv2d: bias of shape \(3, 3\) must broadcast"),
    (lambda: fused.mat_mul(A(2, 3), A(3, 2), bias=A(3)), ShapeError, r"bias of shape \(3,\) .* of shape \(2, 2\)"),
    (lambda: fused.mat_mul(A(2, 3), A(2, 3)), ShapeError, r"fused.mat_mul: got shapes \(2, 3\) and \(2, 3\)"),
    (lambda: fused.mat_mul(A(2, 3), A(3, 2), activation=[1]), ArgumentError, r"activation must be one of .*got \[1\]"),
    # ---- normalisation, cells
    (lambda: pb.batch_norm(A(3, 2), T, A(2)), DataError, "batch_norm: mean must be numbers, got text"),
    (lambda: pb.batch_norm(A(3, 2), A(2), A(2), variance_epsilon=-1), ArgumentError, "variance_epsilon .*or more.*-1"),
    (lambda: pb.layer_norm(A(3, 2), A(3)), ShapeError, r"layer_norm: offset of shape \(3,\) must .*\(3, 2\)"),
    (lambda: pb.layer_norm(A(3, 2), None, A(4, 3, 2)), ShapeError, r"layer_norm: scale of shape \(4, 3, 2\)"),
    (lambda: pb.layer_norm(A(3, 2), variance_epsilon="a"), ArgumentError, "variance_epsilon must be a number.*'a'"),
    (lambda: pb.layer_norm(np.ones((3, 0))), ShapeError, r"layer_norm: there is nothing .* shape \(3, 0\)"),
    (lambda: pb.layer_norm(A(3, 2), axis=2), ShapeError, "layer_norm: axis 2 is out of range for rank 2"),
    (lambda: pb.local_response_normalization(X, nan), ArgumentError, "depth_radius must be a number, got nan"),
    (lambda: pb.local_response_normalization(X, 1, "a"), ArgumentError, "bias must be a number, got 'a'"),
    (lambda: pb.moments(A(2), 3), ShapeError, "moments: axis 3 is out of range for rank 1"),
    (lambda: pb.basic_lstm_cell("a", *Lstm), DataError, "basic_lstm_cell: forget_bias: expected numbers, got text"),
    (lambda: pb.basic_lstm_cell(A(3), *Lstm), ShapeError, r"forget_bias must have shape .*\(1, 2\).*got \(3,\)"),
    (lambda: pb.multi_rnn_cell(None, 1.0, [1.0], [1.0]), ArgumentError, "lstm_cells must be a list, got NoneType"),
    (lambda: pb.multi_rnn_cell([5], 1.0, [1.0], [1.0]), ArgumentError, r"returns the pair \(c, h\), got 5"),
    (lambda: pb.multi_rnn_cell([lambda *a: 1], 1.0, [1.0], [1.0]), ArgumentError, "which returned int"),
    (lambda: pb.moving_average(A(2), A(2), None, 1), ArgumentError, "moving_average: decay must be a number, got None"),
    (lambda: pb.moving_average(A(2), A(2), 0.5, 0), ArgumentError, "moving_average: step must be .* 1 or more, got 0"),
    (lambda: pb.moving_average(A(2), A(2), 1.0, 1), ArgumentError, "decay must not be 1"),
    # ---- images
    (lambda: image.resize_bilinear(X, [None, 2]), ArgumentError, r"size must be two integers .*got \[None, 2\]"),
    (lambda: image.resize_bilinear(X, [nan, 2]), ArgumentError, r"size must be two integers"),
    (lambda: image.crop_and_resize(X, A(1, 4), ["a"], [2, 2]), DataError, "box_ind: expected numbers, got text"),
    (lambda: image.crop_and_resize(X, A(1, 4), W(nan), [2, 2]), ArgumentError, "box_ind must be from 0 to 0.*nan"),
    (lambda: image.crop_and_resize(X, A(1, 4), W(0), [1.5, 2]), ArgumentError, r"crop_size must be two integers >= 1"),
    (lambda: image.crop_and_resize(X, A(1, 4), W(0), ["a", 2]), ArgumentError, r"crop_size .*got \['a', 2\]"),
    (lambda: image.crop_and_resize(X[:, :0], A(1, 4), W(0), [1, 2]), ShapeError, r"nothing to cut out of .*\(1, 0"),
    (lambda: image.rotate_with_offset(X, inf), ArgumentError, "radians must be a number from .*got inf"),
    (lambda: image.rotate_with_offset(X, None), ArgumentError, "rotate_with_offset: radians must be a number"),
    (lambda: image.rotate_with_offset(X, 1.0, 0, "a"), DataError, "rotate_with_offset: center: expected numbers"),
    (lambda: image.rotate_with_offset(X, 1.0, 0, [1, 2, 3]), ArgumentError, r"center must be a number or \[x, y\]"),
    (lambda: image.transform(X, A(1, 8), output_shape=[0, 2]), ArgumentError, r"output_shape must be .*got \[0, 2\]"),
    (lambda: image.transform(X, A(1, 8), output_shape=3), ArgumentError, r"output_shape must be two integers .*got 3"),
    (lambda: image.transform(X, A(1, 8), fill_value="a"), ArgumentError, "transform: fill_value must be a number"),
    (lambda: image.threshold(X[0], thresh_value=2), ArgumentError, "thresh_value must be a number from 0 to 1, got 2"),
    (lambda: image.non_max_suppression(None, A(2), 1), DataError, "non_max_suppression: boxes: expected numbers"),
    (lambda: image.non_max_suppression(A(2, 4), A(2), 1, "a"), ArgumentError, "iou_threshold must be a number .*'a'"),
    (lambda: image.non_max_suppression(A(2, 4), A(2), 1, 0.5, "a"), ArgumentError, "score_threshold must be a number"),
    # ---- losses
    (lambda: losses.absolute_difference(None, A(2)), DataError, "absolute_difference: labels: expected numbers"),
    (lambda: losses.absolute_difference(A(2), T), DataError, "predictions must be numbers, got text"),
    (lambda: losses.absolute_difference(A(2), A(2), "a"), DataError, "absolute_difference: weights: expected numbers"),
    (lambda: losses.absolute_difference(A(2), A(2), None, [1]), ArgumentError, r"reduction must be one of .*got \[1\]"),
    (lambda: losses.huber_loss(A(2), A(2), None, "a"), ArgumentError, "huber_loss: delta must be a number, got 'a'"),
    (lambda: losses.log_loss(A(2), A(2), None, -1.0), ArgumentError, "log_loss: epsilon must be a number of 0 or more"),
    (lambda: losses.sigmoid_cross_entropy(A(2), A(2), None, nan), ArgumentError, "label_smoothing .* 0 to 1, got nan"),
    (lambda: losses.softmax_cross_entropy(A(2, 0), A(2, 0)), ShapeError, r"one class at least .*\(2, 0\)"),
    (lambda: losses.sparse_softmax_cross_entropy(W(0, 3), A(2, 3)), ShapeError, "label 3 is not one of the 3 classes"),
    (lambda: losses.sparse_softmax_cross_entropy(W(0, -1), A(2, 3)), ShapeError, "label -1 is not one of the 3"),
    (lambda: losses.sparse_softmax_cross_entropy([[0], [1, 2]], A(2, 3)), DataError, "labels: the nested lists are"),
    (lambda: losses.sparse_softmax_cross_entropy(W(nan, 1), A(2, 3)), ArgumentError, "labels must be integers, got"),
    (lambda: losses.sparse_softmax_cross_entropy(W(0, 1), None), DataError, "logits: expected numbers"),
    (lambda: losses.compute_weighted_loss("a"), DataError, "compute_weighted_loss: losses: expected numbers, got text"),
    # ---- linear algebra
    (lambda: linalg.qr(None), DataError, "qr: x: expected numbers"),
    (lambda: linalg.inv(np.zeros((2, 2))), MatrixError, "inv: a matrix is singular"),
    (lambda: linalg.solve(np.zeros((2, 2)), A(2)), MatrixError, "solve: a matrix is singular"),
    (lambda: linalg.cholesky(-np.eye(2)), MatrixError, "cholesky: .*positive definite"),
    (lambda: linalg.det(A(2, 3)), ShapeError, r"det: x must be square .*\(2, 3\)"),
    (lambda: linalg.matrix_power(np.zeros((2, 2)), -1), MatrixError, "matrix_power: a matrix is singular"),
    (lambda: linalg.cond(A(2, 3), 1), ShapeError, r"cond: x must be square .*\(2, 3\)"),
    (lambda: linalg.cond(A(2, 2), "x"), ArgumentError, "cond: p must be .*got 'x'"),
    (lambda: linalg.multi_dot(None), ArgumentError, "multi_dot: arrays must be a list .*got NoneType"),
    (lambda: linalg.trace(A(2)), ShapeError, r"trace: x must be a matrix.*\(2,\)"),
    (lambda: linalg.trace(A(2, 2), 1.5), ArgumentError, "trace: the diagonal must be an integer.*1.5"),
    (lambda: linalg.diag_part(A(2, 2), "a"), ArgumentError, "diag_part: the diagonal must be an integer.*'a'"),
    (lambda: linalg.diag_embed(A(2), 0, [3]), ArgumentError, r"diag_embed: shape must be \[rows, columns\], got \[3\]"),
    (lambda: linalg.pinv(A(2, 2), -1), ArgumentError, "pinv: rtol must be a number of 0 or more, got -1"),
    (lambda: linalg.lstsq(A(3, 2), A(3), "a"), ArgumentError, "lstsq: rcond must be a number of 0 or more, got 'a'"),
    (lambda: linalg.lstsq(np.full((3, 2), nan), A(3)), MatrixError, "lstsq: the iteration did not converge"),
    (lambda: linalg.triangular_solve(A(2, 2), A(2), "x"), ArgumentError, "lower must be True or False, got 'x'"),
    (lambda: linalg.triangular_solve(A(2, 2), A(2), True, 7), ArgumentError, "trans must be True or False, got 7"),
    (lambda: linalg.gram_schmidt([A(2), None]), DataError, r"gram_schmidt: xs\[1\]: expected numbers"),
    # ---- positions
    (lambda: pb.gather(A(3), W(3)), ShapeError, "gather: the index 3 is out of range for axis 0 of length 3"),
    (lambda: pb.gather(A(3), W(0.5)), ArgumentError, "gather: indices must be integers, got float64"),
    (lambda: pb.scatter_nd(W([3]), A(1), [3]), ShapeError, "scatter_nd: .*3.* out of range"),
    (lambda: pb.one_hot(W(nan), 2), ArgumentError, "one_hot: indices must be integers, got float64"),
    (lambda: pb.one_hot(W(0), 0), ArgumentError, "one_hot: depth must be at least 1, got 0"),
    (lambda: pb.one_hot(W(0), 2.5), ArgumentError, "one_hot: depth must be .*got 2.5"),
    (lambda: pb.topk(A(3), 1.5), ShapeError, r"topk: k must be at most .*k=1.5 for shape \(3,\)"),
    (lambda: pb.topk(A(3), 4), ShapeError, r"topk: k must be at most the length .*k=4 for shape \(3,\)"),
    (lambda: pb.repeat(A(3), -1), ArgumentError, "repeat: repeats must be an integer >= 0.*got -1"),
    (lambda: pb.repeat(A(3), W(1, 2)), ArgumentError, "repeat: repeats .*one for each of the 3 elements"),
    (lambda: pb.repeat(A(3), 1.5), ArgumentError, "repeat: repeats .*got 1.5"),
    (lambda: pb.boolean_mask(A(3), W(True, False, True), 2), ShapeError, "boolean_mask: axis 2 is out of range"),
    (lambda: pb.unsorted_segment_sum(A(3), W(0, nan, 1), 2), ArgumentError, "segment_ids must be integers, got"),
    (lambda: pb.unsorted_segment_sum(A(3), ["a", "b", "c"], 2), PullbackError, "unsorted_segment_sum: expected"),
    (lambda: pb.unsorted_segment_mean(A(3), W(0, 1, 1), -2), ArgumentError, "unsorted_segment_mean: num_segments .*-2"),
    (lambda: pb.segment_sum(A(3), W(1, 0, 1)), ArgumentError, "segment_sum: segment_ids must be sorted"),
    (lambda: pb.bincount(W(1, 2), "a", 3), DataError, "bincount: weights: expected numbers, got text"),
    (lambda: pb.sparse_to_dense([[5]], A(1), [2]), ShapeError, r"sparse_indices \[5\] are outside .*\(2,\)"),
    (lambda: pb.sparse_to_dense(["a"], A(1), [2]), DataError, "sparse_indices: expected numbers, got text"),
    (lambda: pb.sparse_to_dense([0], A(1), [2], A(2)), ShapeError, r"default_value must be one number.*\(2,\)"),
    (lambda: pb.math.confusion_matrix(W(0, 2), W(0, 1), 2), ArgumentError, "labels must be from 0 to 1 .*got 2"),
    (lambda: pb.lower_bound(A(2, 3), A(3, 2)), ShapeError, "lower_bound: sorted_sequence has shape"),
    (lambda: pb.union1d(A(2), T), DataError, "union1d: y must be numbers, got text"),
    (lambda: pb.setdiff1d(None, A(2)), DataError, "setdiff1d: x: expected numbers"),
    # ---- shapes
    (lambda: pb.ensure_shape(A(2), None), ArgumentError, "ensure_shape: shape must be a list of lengths.*got None"),
    (lambda: pb.meshgrid(A(2), None), DataError, r"meshgrid: xs\[1\]: expected numbers"),
    (lambda: pb.batch_to_space_nd(A(4, 1), [1.5], [[0, 0]]), ArgumentError, r"block_shape must be a list of integers"),
    (lambda: pb.pad(A(2), [[1.5, 1]]), ArgumentError, r"pad: paddings must be a pair .*got \[\[1.5, 1\]\]"),
    (lambda: pb.slice(A(4), [0.5], [1]), ArgumentError, r"slice: begin must be integers, got \[0.5\]"),
    (lambda: pb.split(A(4), "a"), ArgumentError, "split: num_or_size_splits must be integers, got 'a'"),
    (lambda: pb.split(None, 2), DataError, "split: expected numbers"),
    (lambda: pb.strided_slice(A(4), [0, 0], [4, 4]), ShapeError, r"strided_slice: x has shape \(4,\).*name 2 axes"),
    (lambda: pb.concat(None), ArgumentError, "concat: tensors must be a list of tensors, got NoneType"),
    (lambda: pb.concat1d(5), ArgumentError, "concat1d: tensors must be a list of tensors, got int"),
    (lambda: pb.fill([2], A(3)), ShapeError, r"fill: value must be one number, got shape \(3,\)"),
    (lambda: pb.range(0, inf), ArgumentError, "range: stop must be finite, got inf"),
    (lambda: pb.linspace(0, 1, 1.5), ArgumentError, "linspace: num must be 0 or more, got 1.5"),
    (lambda: pb.zeros([[1], [2, 3]]), ArgumentError, "zeros: shape must be integers of 0 or more"),
    (lambda: pb.cast(A(2), T), ArgumentError, "cast: .* is not a dtype"),
    (lambda: pb.dot(None, None), DataError, "expected numbers.*got NoneType"),
    (lambda: pb.sum(T), DataError, "sum: expected numbers or bools, got <U1"),
    # ---- signals
    (lambda: signal.frame(None, 2, 1), DataError, "frame: signal: expected numbers"),
    (lambda: signal.frame(A(3), 2, 2, True, "a"), ArgumentError, "frame: pad_value must be a number, got 'a'"),
    (lambda: signal.stft(A(4) * 1j, 2, 1), ShapeError, "stft: signal must be real numbers .*got complex128"),
    (lambda: signal.stft(3.0, 2, 1), ShapeError, r"stft: signal must be real numbers along an axis.*shape \(\)"),
    (lambda: signal.stft(A(4), 2, 1, 2, 5), ArgumentError, "stft: window_fn must be a function .*got 5"),
    (lambda: signal.stft(A(4), 2, 1, 2, lambda n: A(3)), ShapeError, r"window_fn\(2\) must have .*\(2,\), got \(3,\)"),
    (lambda: spectral.fftn(A(2, 2), 3), ArgumentError, "fftn: s must be a list of integers, got 3"),
    (lambda: spectral.fftn(A(2, 2), None, 0), ArgumentError, "fftn: axes must be a list of integers, got 0"),
    (lambda: spectral.fft2(A(2)), ShapeError, "fft2: axis -2 is out of range for rank 1"),
    (lambda: spectral.ihfft(A(3) * 1j), ArgumentError, "ihfft: the input must be real numbers"),
    # ---- chance
    (lambda: random.normal([2], "a"), DataError, "normal: mean: expected numbers, got text"),
    (lambda: random.normal([2], 0, None), DataError, "normal: std_dev: expected numbers"),
    (lambda: random.normal([2], dtype="bool"), ArgumentError, "normal: dtype must be of numbers, got bool"),
    (lambda: random.uniform_int([2], 0, inf), ArgumentError, "minval must be less than maxval, got 0 and inf"),
    (lambda: random.uniform_int([2], 0, 300, "uint8"), ArgumentError, "uint8 does not hold all"),
    (lambda: random.poisson([2], 1e30), ArgumentError, r"poisson: lam must be at most 9e\+18, got 1e\+30"),
    (lambda: random.categorical("a", 1), DataError, "categorical: logits: expected numbers, got text"),
    (lambda: pb.dropout(A(3), "a"), ArgumentError, "dropout: rate must be a number, got 'a'"),
    (lambda: pb.dropout(A(3), 0.5, 3), ArgumentError, "dropout: noise_shape must be a list of lengths or None, got 3"),
    (lambda: pb.rand([2], 5), ArgumentError, "rand: rand_function must be a function .*got 5"),
    (lambda: pb.rand([2], lambda: "a"), ArgumentError, r"rand: rand_function\(\) must be a number, got 'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[message[:50] for _, _, message in REFUSED])
def test_bad_input_raises(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, PullbackError)


NOT_NUMBERS = {"None": None, "text": "text", "an object": object(), "a dict": {}, "ragged": [[1], [2, 3]], "len": len}
RANDOM_SHAPE = {"random_standard_normal", "random.standard_normal", "random.random_standard_normal"}  # None is one


@pytest.mark.parametrize("name", PUBLIC)
def test_non_numeric_input_raises_for_every_op(name: str) -> None:
    """In every argument that must be given; never with an error from deep inside."""
    parameters = inspect.signature(PUBLIC[name]).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    for what, bad in NOT_NUMBERS.items() if required else ():
        if what == "ragged" and required[0].name == "tensors":
            continue  # a list of tensors
        if bad is None and name in RANDOM_SHAPE:
            continue
        with pytest.raises(PullbackError):
            PUBLIC[name](*[bad] * len(required))
