"""Every public function that is made of ops: its derivatives by differences, forward, reverse and of second order.

The ops themselves are checked in test_every_op.  ``test_every_composition_is_covered`` finds what is missing.
"""

from __future__ import annotations

import math
import runpy
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check import ops_cases
from differences import expect_derivatives

import pullback as pb
from pullback import fused, image, linalg, losses, random, signal, spectral
from pullback.core.op import list_ops

PUBLIC = runpy.run_path(str(Path(__file__).resolve().parents[2] / "script" / "ops_table.py"))["PUBLIC"]
SEED = 5
ids = np.array([2, 0, 2, 0, 0])
box = np.array([0, 1])
middle = np.array([[0.9, 0.1, 0.3, -0.1, 1.1, 0.2, 0.01, 0.02]])


def parts(*zs: Any) -> Any:
    """Results of any kind as one vector of real numbers."""
    rows = [r for z in zs for r in ((np.real(z), np.imag(z)) if z.dtype.kind == "c" else (z,))]
    return np.concatenate([np.reshape(r, -1) for r in rows])


def joined(f: Any) -> Any:
    """A function of the real and the imaginary part of its argument, from one of complex numbers."""
    return lambda re, im: f(pb.complex(re, im))


def well(x: Any) -> Any:
    """A matrix far from singular."""
    return x + 3 * np.eye(x.shape[-1])


def lstm(kernel: Any, bias: Any, data: Any, c: Any, h: Any) -> Any:
    return parts(*pb.basic_lstm_cell(1.0, kernel, bias, data, c, h))


def two_cells(kernel: Any, bias: Any, data: Any, c: Any, h: Any) -> Any:
    cell = lambda data, c, h: pb.basic_lstm_cell(0.5, kernel, bias, data, c, h)
    state = pb.multi_rnn_cell([cell, cell], data, [c, c * 2], [h, h * 3])
    return parts(*state.c, *state.h)


# A name (and after a dash a variant): the function of what is differentiated, and the shapes of that.
CASES: dict[str, tuple[Any, ...]] = {
    "fill": (lambda v: pb.fill([2, 2], v), ()),
    "add_n": (lambda x, y, z: pb.add_n([x, y, z]), (2, 3), (2, 3), (2, 3)),
    "clip": (lambda x: pb.clip(x, 0.4, 1.1), (2, 3)),
    "bincount": (lambda w: pb.bincount(ids, w, 4), (5,)),
    "dense_bincount": (lambda w: pb.dense_bincount(np.stack([ids, ids]), w, 3), (2, 5)),
    "segment_sum": (lambda x: pb.segment_sum(x, [0, 0, 2, 2, 2]), (5, 2)),
    "segment_mean": (lambda x: pb.segment_mean(x, [0, 0, 2, 2, 2]), (5, 2)),
    "segment_prod": (lambda x: pb.segment_prod(x, [0, 0, 2, 2, 2]), (5, 2)),
    "segment_max": (lambda x: pb.segment_max(x, [0, 0, 2, 2, 2]), (5, 2)),
    "segment_min": (lambda x: pb.segment_min(x, [0, 0, 2, 2, 2]), (5, 2)),
    "unsorted_segment_mean": (lambda x: pb.unsorted_segment_mean(x, ids, 4), (5, 2)),
    "unsorted_segment_prod": (lambda x: pb.unsorted_segment_prod(x, ids, 4), (5, 2)),
    "sparse_to_dense": (lambda v, d: pb.sparse_to_dense([[0, 1], [2, 0]], v, [3, 2], d), (2,), ()),
    "sort": (lambda x: pb.sort(x, axis=0), (4, 2)),
    "sort-descending": (lambda x: pb.sort(x, descending=True), (2, 4)),
    "unique": (lambda x: pb.unique(x).values, (4,)),
    "setdiff1d": (lambda x: pb.setdiff1d(x, np.array([9.0])).values, (4,)),
    "intersect1d": (lambda x: pb.intersect1d(x, x), (4,)),
    "union1d": (lambda x, y: pb.union1d(x, y), (3,), (2,)),
    "setxor1d": (lambda x, y: pb.setxor1d(x, y), (3,), (2,)),
    "topk": (lambda x: pb.topk(x, 2).values, (2, 4)),
    "topk-unsorted": (lambda x: pb.topk(x, 3, sorted=False).values, (2, 4)),
    "gelu": (lambda x: pb.gelu(x), (2, 3)),
    "gelu-approximate": (lambda x: pb.gelu(x, approximate=True), (2, 3)),
    "silu": (lambda x: pb.silu(x), (2, 3)),
    "ensure_shape": (lambda x: pb.ensure_shape(x, [None, 3]), (2, 3)),
    "meshgrid": (lambda x, y: parts(*pb.meshgrid(x, y)), (3,), (2,)),
    "moments": (lambda x: parts(*pb.moments(x, 0)), (3, 2)),
    "norm": (lambda x: pb.norm(x), (3, 2)),
    "norm-1": (lambda x: pb.norm(x, 1, 1), (3, 2)),
    "norm-inf": (lambda x: pb.norm(x, math.inf, [0, 1]), (3, 2)),
    "dot": (lambda a, b: pb.dot(a, b), (2, 3), (3,)),
    "inner": (lambda a, b: pb.inner(a, b), (2, 3), (4, 3)),
    "outer": (lambda a, b: pb.outer(a, b), (2,), (3,)),
    "outer_product": (lambda a, b: pb.outer_product(a, b), (2,), (3,)),
    "vdot": (lambda a, b: pb.vdot(a, b), (2, 3), (2, 3)),
    "tensordot": (lambda a, b: pb.tensordot(a, b, [[1, 2], [0, 1]]), (2, 3, 2), (3, 2, 2)),
    "einsum": (lambda a, b, c: pb.einsum("ij,jk,k->i", a, b, c), (2, 3), (3, 2), (2,)),
    "einsum-diagonal": (lambda a: pb.einsum("iij->j", a), (2, 2, 3)),
    "mat_mul": (lambda a, b: pb.mat_mul(a, b, True, True), (3, 2), (4, 3)),
    "as1d": (lambda x: pb.as1d(x), (2, 3)),
    "as2d": (lambda x: pb.as2d(x, 3, 2), (6,)),
    "as3d": (lambda x: pb.as3d(x, 1, 3, 2), (6,)),
    "as4d": (lambda x: pb.as4d(x, 1, 3, 2, 1), (6,)),
    "as5d": (lambda x: pb.as5d(x, 1, 3, 2, 1, 1), (6,)),
    "as_scalar": (lambda x: pb.as_scalar(x), (1, 1)),
    "flatten": (lambda x: pb.flatten(x), (2, 3)),
    "ravel": (lambda x: pb.ravel(x), (2, 3)),
    "reshape_as": (lambda x: pb.reshape_as(x, np.ones((3, 2))), (2, 3)),
    "reverse1d": (lambda x: pb.reverse1d(x), (3,)),
    "reverse2d": (lambda x: pb.reverse2d(x, 1), (2, 3)),
    "reverse3d": (lambda x: pb.reverse3d(x, [0, 2]), (2, 3, 2)),
    "reverse4d": (lambda x: pb.reverse4d(x, [1]), (1, 3, 2, 2)),
    "concat1d": (lambda x, y: pb.concat1d([x, y]), (2,), (3,)),
    "concat2d": (lambda x, y: pb.concat2d([x, y], 1), (2, 1), (2, 3)),
    "concat3d": (lambda x, y: pb.concat3d([x, y], 2), (1, 2, 1), (1, 2, 3)),
    "concat4d": (lambda x, y: pb.concat4d([x, y], 3), (1, 1, 2, 1), (1, 1, 2, 3)),
    "slice": (lambda x: pb.slice(x, [1, 0], [2, -1]), (3, 2)),
    "slice1d": (lambda x: pb.slice1d(x, 1, 2), (4,)),
    "slice2d": (lambda x: pb.slice2d(x, [1, 0], [1, 2]), (3, 2)),
    "slice3d": (lambda x: pb.slice3d(x, [1, 0, 1], [1, 2, 1]), (3, 2, 2)),
    "slice4d": (lambda x: pb.slice4d(x, [0, 1, 0, 1], [1, 1, 2, 1]), (1, 3, 2, 2)),
    "split": (lambda x: parts(*pb.split(x, [1, 3], 1)), (2, 4)),
    "unstack": (lambda x: parts(*pb.unstack(x, 1)), (2, 3)),
    "strided_slice": (lambda x: pb.strided_slice(x, [3, 0], [0, 3], [-2, 2]), (4, 3)),
    "mirror_pad": (lambda x: pb.mirror_pad(x, [[1, 1], [2, 0]], "symmetric"), (2, 3)),
    "pad1d": (lambda x: pb.pad1d(x, [1, 2]), (3,)),
    "pad2d": (lambda x: pb.pad2d(x, [[1, 2], [0, 1]], 2.0), (2, 3)),
    "pad3d": (lambda x: pb.pad3d(x, [[1, 2], [0, 1], [1, 0]]), (2, 1, 2)),
    "pad4d": (lambda x: pb.pad4d(x, [[1, 2], [0, 1], [1, 0], [0, 0]]), (2, 1, 2, 1)),
    "boolean_mask": (lambda x: pb.boolean_mask(x, np.array([True, False, True])), (3, 2)),
    "repeat": (lambda x: pb.repeat(x, [1, 0, 2], 0), (3, 2)),
    "take": (lambda x: pb.take(x, [2, 0, 2], 0), (3, 2)),
    "take_along_axis": (lambda x: pb.take_along_axis(x, np.array([[1, 1], [0, 1]]), 1), (2, 2)),
    "conv1d": (lambda x, f: pb.conv1d(x, f, 2, "same"), (1, 5, 2), (3, 2, 2)),
    "conv2d": (lambda x, f: pb.conv2d(x, f, 1, "same", dilations=2), (1, 5, 4, 2), (2, 2, 2, 2)),
    "conv2d_transpose": (
        lambda x, f: pb.conv2d_transpose(x, f, [1, 4, 4, 2], 2, "same"), (1, 2, 2, 3), (3, 3, 2, 3),
    ),
    "conv3d": (lambda x, f: pb.conv3d(x, f, 1, "valid"), (1, 3, 3, 2, 1), (2, 2, 2, 1, 2)),
    "conv3d_transpose": (
        lambda x, f: pb.conv3d_transpose(x, f, [1, 2, 2, 2, 1], 1, "same"), (1, 2, 2, 2, 2), (2, 2, 1, 1, 2),
    ),
    "depthwise_conv2d": (lambda x, f: pb.depthwise_conv2d(x, f, 1, "same"), (1, 3, 3, 2), (2, 2, 2, 2)),
    "separable_conv2d": (
        lambda x, d, p: pb.separable_conv2d(x, d, p, 1, "valid"), (1, 3, 3, 2), (2, 2, 2, 1), (1, 1, 2, 3),
    ),
    "dilation2d": (lambda x, f: pb.dilation2d(x, f, 1, "same"), (1, 4, 3, 2), (2, 2, 2)),
    "max_pool": (lambda x: pb.max_pool(x, 2, 1, "same"), (1, 4, 3, 2)),
    "max_pool1d": (lambda x: pb.max_pool1d(x, 2, 2), (1, 4, 3)),
    "max_pool3d": (lambda x: pb.max_pool3d(x, 2, 1, "valid"), (1, 3, 3, 2, 1)),
    "max_pool_with_argmax": (lambda x: pb.max_pool_with_argmax(x, 2, 2).result, (1, 4, 4, 1)),
    "avg_pool": (lambda x: pb.avg_pool(x, 2, 1, "same"), (1, 4, 3, 2)),
    "avg_pool1d": (lambda x: pb.avg_pool1d(x, 2, 2), (1, 4, 3)),
    "avg_pool3d": (lambda x: pb.avg_pool3d(x, 2, 1, "same"), (1, 3, 3, 2, 1)),
    "pool": (lambda x: pb.pool(x, 2, "avg", "valid", 2), (1, 4, 4, 1)),
    "batch_norm": (lambda x, m, v, o, s: pb.batch_norm(x, m, v, o, s), (3, 2), (2,), (2,), (2,), (2,)),
    "batch_norm2d": (lambda x, m, v: pb.batch_norm2d(x, m, v), (3, 2), (2,), (2,)),
    "batch_norm3d": (lambda x, m, v: pb.batch_norm3d(x, m, v), (1, 3, 2), (2,), (2,)),
    "batch_norm4d": (lambda x, m, v: pb.batch_norm4d(x, m, v), (1, 1, 3, 2), (2,), (2,)),
    "layer_norm": (lambda x, o, s: pb.layer_norm(x, o, s), (2, 3), (3,), (3,)),
    "local_response_normalization": (lambda x: pb.local_response_normalization(x, 1, 1.5, 0.7, 0.6), (1, 2, 2, 4)),
    "dropout": (lambda x: pb.dropout(x, 0.5, seed=SEED), (2, 3)),
    "basic_lstm_cell": (lstm, (5, 8), (8,), (2, 3), (2, 2), (2, 2)),
    "multi_rnn_cell": (two_cells, (4, 8), (8,), (2, 2), (2, 2), (2, 2)),
    "moving_average": (lambda v, x, d: pb.moving_average(v, x, d * 0.5, 2), (3,), (3,), ()),
    "fused.mat_mul": (
        lambda a, b, bias: fused.mat_mul(a, b, bias=bias, activation="sigmoid"), (2, 3), (3, 2), (2,),
    ),
    "fused.mat_mul-prelu": (
        lambda a, b, w: fused.mat_mul(a - 1, b, activation="prelu", prelu_activation_weights=w), (2, 3), (3, 2), (2,),
    ),
    "fused.conv2d": (
        lambda x, f, b: fused.conv2d(x, f - 0.8, 1, "same", bias=b, activation="elu"), (1, 3, 3, 1), (2, 2, 1, 2), (2,),
    ),
    "fused.depthwise_conv2d": (
        lambda x, f, b: fused.depthwise_conv2d(x, f, bias=b, activation="leakyrelu"), (1, 3, 3, 2), (2, 2, 2, 1), (2,),
    ),
    "image.crop_and_resize": (
        lambda x, b: image.crop_and_resize(x, b * 0.5, box, [3, 2]), (2, 4, 5, 1), (2, 4),
    ),
    "image.crop_and_resize-nearest": (
        lambda x: image.crop_and_resize(x, [[0.1, 0.2, 0.9, 0.7]], [0], [3, 2], "nearest"), (1, 4, 5, 1),
    ),
    "image.flip_left_right": (lambda x: image.flip_left_right(x), (1, 2, 3, 1)),
    "image.grayscale_to_rgb": (lambda x: image.grayscale_to_rgb(x), (2, 2, 1)),
    "image.rgb_to_grayscale": (lambda x: image.rgb_to_grayscale(x), (2, 2, 3)),
    "image.rotate_with_offset": (lambda x: image.rotate_with_offset(x, 0.4, 0.5), (1, 4, 5, 2)),
    "image.transform": (
        lambda x, t: image.transform(x, t * 0.05 + middle, "bilinear", "reflect"), (2, 4, 3, 1), (1, 8),
    ),
    "image.transform-nearest": (lambda x: image.transform(x, middle, "nearest", "wrap"), (1, 4, 3, 1)),
    "image.non_max_suppression_with_score": (
        lambda b, s: image.non_max_suppression_with_score(
            b * np.array([0.1, 0.1, 1, 1]), s, 3, iou_threshold=1.0, soft_nms_sigma=0.5
        ).selected_scores, (3, 4), (3,),
    ),
    "linalg.trace": (lambda x: linalg.trace(x, 1), (2, 3, 3)),
    "linalg.eigh": (lambda x: parts(linalg.eigh(x + x.T).eigenvalues, abs(linalg.eigh(x + x.T).eigenvectors)), (3, 3)),
    "linalg.eig": (lambda x: parts(*map(abs, linalg.eig(well(x)))), (3, 3)),
    "linalg.gram_schmidt": (lambda x: linalg.gram_schmidt(well(x)), (3, 3)),
    "linalg.qr": (lambda x: parts(*linalg.qr(x + np.eye(4, 3))), (4, 3)),
    "linalg.qr-wide": (lambda x: parts(*linalg.qr(x + np.eye(2, 4))), (2, 4)),
    "linalg.svd": (lambda x: parts(*map(abs, linalg.svd(x))), (3, 2)),
    "linalg.lstsq": (lambda a, b: parts(*linalg.lstsq(a, b)[:2]), (4, 2), (4, 2)),
    "linalg.slogdet": (lambda x: linalg.slogdet(well(x)).logabsdet, (2, 3, 3)),
    "linalg.cond": (lambda x: linalg.cond(well(x)), (3, 3)),
    "linalg.matrix_norm": (lambda x: parts(*[linalg.matrix_norm(x, way) for way in ("fro", "nuc", 2, 1)]), (3, 2)),
    "linalg.matrix_power": (lambda x: parts(linalg.matrix_power(well(x), 3), linalg.matrix_power(well(x), -2)), (3, 3)),
    "linalg.multi_dot": (lambda a, b, c: linalg.multi_dot([a, b, c]), (2, 3), (3, 4), (4,)),
    "losses.absolute_difference": (lambda y, p, w: losses.absolute_difference(y, p, w), (2, 3), (2, 3), (2, 1)),
    "losses.compute_weighted_loss": (lambda x, w: losses.compute_weighted_loss(x, w, "mean"), (2, 3), (2, 3)),
    "losses.compute_weighted_loss-none": (lambda x, w: losses.compute_weighted_loss(x, w, "none"), (2, 3), ()),
    "losses.cosine_distance": (lambda y, p, w: losses.cosine_distance(y, p, 1, w), (2, 3), (2, 3), (2, 1)),
    "losses.hinge_loss": (lambda y, p, w: losses.hinge_loss(y, p, w, "sum"), (2, 3), (2, 3), (2, 3)),
    "losses.huber_loss": (lambda y, p, w: losses.huber_loss(y, p, w, 0.3, "mean"), (2, 3), (2, 3), (2, 3)),
    "losses.log_loss": (lambda y, p, w: losses.log_loss(y, p * 0.5, w), (2, 3), (2, 3), (2, 3)),
    "losses.mean_squared_error": (lambda y, p, w: losses.mean_squared_error(y, p, w), (2, 3), (2, 3), (2, 3)),
    "losses.sigmoid_cross_entropy": (
        lambda y, x, w: losses.sigmoid_cross_entropy(y, x, w, 0.1), (2, 3), (2, 3), (2, 3),
    ),
    "losses.softmax_cross_entropy": (
        lambda y, x, w: losses.softmax_cross_entropy(y, x, w, 0.1, "mean"), (2, 3), (2, 3), (2,),
    ),
    "losses.softmax_cross_entropy_with_logits": (
        lambda y, x: losses.softmax_cross_entropy_with_logits(y, x), (2, 3), (2, 3),
    ),
    "losses.sparse_softmax_cross_entropy": (
        lambda x, w: losses.sparse_softmax_cross_entropy(np.array([2, 0]), x, w), (2, 3), (2,),
    ),
    "losses.sparse_softmax_cross_entropy_with_logits": (
        lambda x: losses.sparse_softmax_cross_entropy_with_logits(np.array([2, 0]), x), (2, 3),
    ),
    "random.normal": (lambda m, s: random.normal([4, 3], m, s, np.float64, SEED), (3,), ()),
    "truncated_normal": (lambda m, s: pb.truncated_normal([4, 3], m, s, np.float64, SEED), (3,), ()),
    "random.uniform": (lambda a, b: random.uniform([4, 3], a, b + 2, np.float64, SEED), (3,), ()),
    "random.exponential": (lambda s: random.exponential([4, 3], s, np.float64, SEED), (3,)),
    "random.gamma": (lambda b: random.gamma([2, 3], 1.3, b, np.float64, SEED), (3,)),  # by alpha: in test_random
    "random.shuffle": (lambda x: random.shuffle(x, 0, SEED), (4, 2)),
    "signal.frame": (lambda x: signal.frame(x, 3, 2, True), (2, 6)),
    "signal.stft": (lambda x: signal.stft(x, 4, 2), (2, 8)),
    "spectral.hfft": (joined(lambda x: spectral.hfft(x)), (2, 4), (2, 4)),
    "spectral.ihfft": (lambda x: spectral.ihfft(x), (2, 4)),
    "spectral.fftn": (joined(lambda x: spectral.fftn(x)), (2, 3), (2, 3)),
    "spectral.ifftn": (joined(lambda x: spectral.ifftn(x, norm="ortho")), (2, 3), (2, 3)),
    "spectral.rfftn": (lambda x: spectral.rfftn(x, [4, 3], [0, 1]), (2, 3)),
    "spectral.irfftn": (joined(lambda x: spectral.irfftn(x)), (3, 3), (3, 3)),
    "spectral.fft2": (joined(lambda x: spectral.fft2(x)), (2, 3), (2, 3)),
    "spectral.ifft2": (joined(lambda x: spectral.ifft2(x)), (2, 3), (2, 3)),
    "spectral.rfft2": (lambda x: spectral.rfft2(x), (2, 4)),
    "spectral.irfft2": (joined(lambda x: spectral.irfft2(x)), (2, 3), (2, 3)),
    "spectral.fftshift": (lambda x: spectral.fftshift(x), (2, 3)),
    "spectral.ifftshift": (lambda x: spectral.ifftshift(x), (2, 3)),
}  # fmt: skip

# No derivative, or none by what they are given: made from shapes, whole numbers, truth values, positions.
WITHOUT = {
    "array", "asarray",
    "tensor", "eye", "linspace", "ones", "range", "scalar", "tensor1d", "tensor2d", "tensor3d", "tensor4d", "tensor5d",
    "tensor6d", "zeros", "to_bool", "to_int", "lower_bound", "upper_bound", "multinomial", "rand",
    "random.standard_normal", "random.uniform_int", "random.seed", "random.bernoulli", "random.poisson",
    "random.categorical", "random.permutation", "image.non_max_suppression", "image.non_max_suppression_padded",
    "signal.hann_window", "signal.hamming_window", "random.get_state", "random.set_state",
}  # fmt: skip
NARROWING = {"cast", "to_float"}  # differences of float32 say little; tested below
OPS = {id(op.function) for op in list_ops()}


def of_one_vector(name: str) -> tuple[Any, Any]:
    """A scalar function of one vector that holds all that is differentiated, and such a vector.

    It has squares in it, so that what is linear has a second derivative too.
    """
    f, *shapes = CASES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    sizes = [math.prod(shape) for shape in shapes]
    point = rng.uniform(0.3, 1.3, sum(sizes))
    ends = np.cumsum(sizes)

    def values(v: Any) -> Any:
        given = [np.reshape(v[end - n : end], shape) for end, n, shape in zip(ends, sizes, shapes, strict=True)]
        z = parts(f(*given))
        return z + z * z

    weights = rng.normal(size=np.shape(values(point)))
    return lambda v: np.sum(values(v) * weights), point


@pytest.mark.parametrize("name", CASES)
def test_composition_derivatives(name: str) -> None:
    f, point = of_one_vector(name)
    assert np.abs(pb.grad(f)(point)).max() > 0.01, "a gradient of zeros shows nothing"
    expect_derivatives(f, point)


def test_every_composition_is_covered() -> None:
    known = (
        {id(PUBLIC[name.split("-")[0]]) for name in CASES} | {id(PUBLIC[name]) for name in WITHOUT | NARROWING} | OPS
    )
    missing = [name for name, function in PUBLIC.items() if id(function) not in known]
    assert not missing, f"neither in CASES nor in WITHOUT: {missing}"
    assert not WITHOUT - PUBLIC.keys()


def refused_there() -> set[str]:
    """What TensorFlow.js could not differentiate in the recorded cases, though differences find a slope."""
    found = set()
    for case in ops_cases():
        slopes = case.get("fd", {}).get("grads") or []
        for there, by_differences in zip(case.get("grads", []), slopes, strict=False):
            if "error" in there and by_differences and any(by_differences.get("values", [])):
                found.add(case["py_op"])
    return found


@pytest.mark.parametrize("name", sorted(refused_there()))
def test_ops_that_tensorflow_js_cannot_differentiate_have_derivatives(name: str) -> None:
    op = getattr(PUBLIC[name], "op", None)
    assert op.flows if op is not None else name in {case.split("-")[0] for case in CASES}


@pytest.mark.parametrize("name", ["to_bool", "to_int"])
def test_integers_have_no_gradient(name: str) -> None:
    with pytest.raises(pb.errors.UnconnectedError):
        pb.grad(PUBLIC[name])(np.array([0.5, 1.5]))


@pytest.mark.parametrize("f", [pb.to_float, lambda x: pb.cast(x, "float32")])
def test_gradient_dtype_of_cast_composition(f: Any) -> None:
    d = pb.grad(lambda x: f(x) * f(x))(np.array([0.5, 1.5]))
    assert d.dtype == np.float64
    np.testing.assert_array_equal(d, [1.0, 3.0])
    assert pb.grad(pb.grad(lambda x: f(x) * f(x)))(0.5) == 2.0
