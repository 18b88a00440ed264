"""Pictures: by TensorFlow.js's answers, and by finite differences where it has no gradients."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from differences import expect_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, UnconnectedError

RNG = np.random.default_rng(11)
IMAGE = RNG.normal(size=(2, 4, 5, 2))
ANSWERS = [
    json.loads(line) for line in (Path(__file__).parent / "data" / "image.jsonl").read_text("utf-8").splitlines()
]


def given(x: Any) -> Any:
    return np.array(x["values"], x["dtype"]).reshape(x["shape"]) if isinstance(x, dict) else x


@pytest.mark.parametrize("case", ANSWERS, ids=[f"{n}-{case['op']}" for n, case in enumerate(ANSWERS)])
def test_image_values_match_tensorflow_js(case: Any) -> None:
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", case["op"]).lower().split(".")[1]
    args = [given(x) for x in case["args"]]
    for wrap in (lambda x: x, pb.tensor):
        got = getattr(pb.image, name)(*[wrap(x) if isinstance(x, np.ndarray) else x for x in args])
        got = got if isinstance(got, tuple) else (got,)
        for z, want in zip(got, map(given, case["want"]), strict=True):
            assert isinstance(z, pb.Tensor) == (wrap is pb.tensor)
            assert (z.shape, z.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(np.asarray(z), want, rtol=2e-5, atol=2e-5)


# ------------------------------------------------------------------ resizing

WAYS = [(False, False), (True, False), (False, True)]
resizes = pytest.mark.parametrize("resize", [pb.image.resize_bilinear, pb.image.resize_nearest_neighbor])


@resizes
@pytest.mark.parametrize(("align", "half"), WAYS)
@pytest.mark.parametrize("size", [(8, 3), (1, 1), (4, 10), (2, 5), (3, 17)])
def test_resize_gradient_is_adjoint(resize: Any, align: bool, half: bool, size: Any) -> None:
    f = lambda x: resize(x, size, align, half)
    forth = np.stack([f(row.reshape(1, 4, 5, 1)).ravel() for row in np.eye(20)])
    back = np.stack([pb.grad(f)(IMAGE[:1, :, :, :1], dy.reshape(1, *size, 1)).ravel() for dy in np.eye(np.prod(size))])
    np.testing.assert_allclose(forth, back.T, atol=1e-15)
    np.testing.assert_allclose(forth.sum(axis=0), 1, atol=1e-14)  # of a picture all of one colour nothing changes
    np.testing.assert_allclose(f(IMAGE)[1, :, :, 1].ravel(), IMAGE[1, :, :, 1].ravel() @ forth, atol=1e-14)
    np.testing.assert_array_equal(f(IMAGE[0]), f(IMAGE)[0])


def test_resize_integers() -> None:
    x = np.arange(4, dtype=np.int32).reshape(2, 2, 1)
    assert pb.image.resize_bilinear(x, [3, 3]).dtype == np.float32
    assert pb.image.resize_nearest_neighbor(x, [3, 3]).dtype == np.int32
    assert pb.image.resize_bilinear(x, [2, 2]).dtype == np.float32


@resizes
@pytest.mark.parametrize("half", [False, True])
def test_resize_large_pictures(resize: Any, half: bool) -> None:
    """Tiles of a small picture, doubled, are tiles of the small one doubled."""
    small, dy = RNG.normal(size=(1, 16, 16, 3)).astype(np.float32), RNG.normal(size=(1, 32, 32, 3)).astype(np.float32)
    f = lambda x: resize(x, [2 * n for n in x.shape[1:3]], False, half)
    many = lambda x: np.tile(x, (40, 1, 1, 1))
    np.testing.assert_array_equal(f(many(small)), many(f(small)))
    np.testing.assert_allclose(pb.grad(f)(many(small), many(dy)), many(pb.grad(f)(small, dy)), atol=1e-5)


@resizes
def test_resize_infinite_pixel(resize: Any) -> None:
    x = RNG.normal(size=(1, 6, 6, 16))
    x[0, 2, 2, 3] = np.inf
    dy = np.ones((1, 12, 12, 16))
    dy[0, 4, 4, 3] = np.inf
    with np.errstate(invalid="ignore"):
        z, back = resize(x, [12, 12]), pb.grad(lambda x: resize(x, [12, 12]))(x, dy)
    assert np.isfinite(np.delete(z, range(2, 7), axis=1)).all()
    assert not np.isfinite(z[0, 4, 4, 3])
    assert np.isfinite(np.delete(back, [2, 3], axis=1)).all()
    assert not np.isfinite(back[0, 2, 2, 3])


# ------------------------------------------------------------------ cut out

BOXES = np.array([[0.1, 0.2, 0.83, 0.97], [-0.31, 0.04, 1.3, 0.43], [0.9, 0.7, 0.15, 0.13]])
WHICH = np.array([1, 0, 1])


@pytest.mark.parametrize("size", [(3, 2), (1, 4), (1, 1)])
def test_crop_and_resize_gradients(size: Any) -> None:
    w = RNG.normal(size=(3, *size, 2))
    crop = lambda image, boxes: np.sum(pb.image.crop_and_resize(image, boxes, WHICH, size, "bilinear", 0.5) ** 2 * w)
    expect_derivatives(lambda x: crop(x, BOXES), IMAGE)
    expect_derivatives(lambda b: crop(IMAGE, b), BOXES)


def test_crop_nearest_gradient_of_boxes_is_zero() -> None:
    f = lambda image, boxes: np.sum(pb.image.crop_and_resize(image, boxes, WHICH, [3, 3], "nearest", 0.5) ** 2)
    by_boxes = pb.grad(lambda b: f(IMAGE, b))(BOXES)
    np.testing.assert_array_equal(by_boxes, np.zeros((3, 4)))
    expect_derivatives(lambda x: f(x, BOXES), IMAGE)


def test_crop_of_whole_picture_is_exact() -> None:
    for n in range(2, 30):  # no border is stepped over by a rounding error
        image = RNG.normal(size=(1, n, 3, 1)).astype(np.float32)
        box = np.array([[0, 0, 1, 1]], np.float32)
        for method in ("bilinear", "nearest"):
            assert (pb.image.crop_and_resize(image, box, [0], [n, 3], method, 9.0) == image).all()
            assert (pb.image.crop_and_resize(image, box, [0], [2 * n + 1, 50], method, 9.0) < 9).all()


def test_crop_slope_at_pixel_is_one_sided() -> None:
    image = np.array([1.0, 3.0, 4.0]).reshape(1, 1, 3, 1)
    slope = lambda at: pb.grad(
        lambda x: pb.image.crop_and_resize(image, np.stack([0.0, x, 0.0, x])[None], [0], [1, 1])
    )(at)
    assert [slope(at) for at in (0.0, 0.25, 0.5, 1.0)] == [4, 4, 2, 2]


# ------------------------------------------------------------------ warped

TRANSFORM = np.array([[0.9, 0.2, 0.31, -0.17, 1.1, 0.23, 0.01, -0.02], [1.3, -0.4, -1.2, 0.3, 0.7, 1.33, 0.0, 0.03]])
TRANSFORM += RNG.normal(size=(2, 8)) * 0.01  # no place is exactly a pixel, where the slope changes


@pytest.mark.parametrize("fill_mode", ["constant", "reflect", "wrap", "nearest"])
@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_transform_gradients(fill_mode: str, interpolation: str) -> None:
    w = RNG.normal(size=(2, 3, 6, 2))
    f = lambda image, t: np.sum(pb.image.transform(image, t, interpolation, fill_mode, 0.5, [3, 6]) ** 2 * w)
    expect_derivatives(lambda x: f(x, TRANSFORM), IMAGE)
    expect_derivatives(lambda x: f(x, TRANSFORM[:1]), IMAGE)
    if interpolation == "bilinear":
        expect_derivatives(lambda t: f(IMAGE, t), TRANSFORM)
        expect_derivatives(lambda t: f(IMAGE, t), TRANSFORM[1:])
    else:
        np.testing.assert_array_equal(pb.grad(lambda t: f(IMAGE, t))(TRANSFORM), np.zeros((2, 8)))


def test_transform_of_batch() -> None:
    whole = pb.image.transform(IMAGE, TRANSFORM, "bilinear", "reflect")
    for n in range(2):
        alone = pb.image.transform(IMAGE[n : n + 1], TRANSFORM[n : n + 1], "bilinear", "reflect")
        np.testing.assert_array_equal(whole[n : n + 1], alone)


def test_transform_fill_value() -> None:
    t = np.array([[1.0, 0, 0, 0, 1, 0, -1, 0]])
    for interpolation in ("nearest", "bilinear"):
        z = pb.image.transform(np.ones((1, 2, 3, 1)), t, interpolation, "constant", 7.0)
        assert z[0, :, 1, 0].tolist() == [7, 7]


def test_rotate_and_flip_gradients() -> None:
    w = RNG.normal(size=IMAGE.shape)
    expect_derivatives(lambda x: np.sum(pb.image.rotate_with_offset(x, 0.7, 0.3, [0.4, 0.6]) ** 2 * w), IMAGE)
    expect_derivatives(lambda x: np.sum(pb.image.flip_left_right(x) ** 2 * w), IMAGE)


def test_rotate_by_quarter_turn() -> None:
    x = RNG.normal(size=(2, 5, 5, 3))
    np.testing.assert_array_equal(pb.image.rotate_with_offset(x, np.pi / 2, center=0.4), np.rot90(x, 1, (1, 2)))


def test_rotate_fill_is_opaque() -> None:
    corner = pb.image.rotate_with_offset(np.ones((1, 9, 9, 4)), np.pi / 4, [0.1, 0.2, 0.3])[0, 0, 0]
    assert corner.tolist() == [0.1, 0.2, 0.3, 255]


# ------------------------------------------------------------------ colours


def test_colour_gradients() -> None:
    x = RNG.normal(size=(2, 4, 3))
    np.testing.assert_allclose(pb.image.rgb_to_grayscale(x)[..., 0], x @ [0.2989, 0.5870, 0.1140])
    expect_derivatives(lambda x: np.sum(pb.image.rgb_to_grayscale(x) ** 2), x)
    expect_derivatives(lambda x: np.sum(pb.image.grayscale_to_rgb(x[..., :1]) ** 2), x)
    assert pb.image.rgb_to_grayscale(np.full((1, 3), 100)).tolist() == [[99]]  # cut off, as TensorFlow.js does
    assert pb.image.rgb_to_grayscale(x.astype(np.float32)).dtype == np.float32


def test_otsu_threshold() -> None:
    x = np.concatenate([RNG.integers(10, 30, 50), RNG.integers(180, 220, 40)])
    z = pb.image.threshold(x.reshape(9, 10, 1), "otsu")
    np.testing.assert_array_equal(z.ravel() == 255, x > 100)
    assert (pb.image.threshold(np.full((2, 2, 1), 9.0), "otsu") == 255).all()
    with pytest.raises(UnconnectedError, match="threshold"):
        pb.grad(lambda x: pb.image.threshold(x) * 1.0)(np.ones((1, 1, 1)))


# ------------------------------------------------------------------ boxes


def test_non_max_suppression_score_gradients() -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0.55, 1, 1.5], [0, 2, 1, 3], [0.4, 0.3, 1.9, 1.8], [0, 0.01, 1, 1.01]])
    scores = np.array([0.9, 0.8, 0.3, 0.75, 0.7])
    w = np.array([1.0, 2.0, 3.0, 4.0])
    for sigma, order in ((0.0, [0, 1, 3, 2]), (0.5, [0, 3, 1, 2])):
        f = lambda b, s, sigma=sigma: pb.image.non_max_suppression_with_score(b, s, 4, 0.6, soft_nms_sigma=sigma)
        assert f(boxes, scores).selected_indices.tolist() == order
        expect_derivatives(lambda s, f=f: np.sum(f(boxes, s).selected_scores ** 2 * w), scores)
    away = np.random.default_rng(3).normal(size=(5, 4)) * 0.01  # from the kinks where edges of boxes are equal
    expect_derivatives(lambda b: np.sum(f(b, scores).selected_scores ** 2 * w), boxes + away)
    with pytest.raises(UnconnectedError, match="suppression_indices"):
        pb.grad(lambda s: pb.image.non_max_suppression(boxes, s, 4) * 1.0)(scores)


# ------------------------------------------------------------------ refusals

ONE = np.ones((1, 2, 2, 1))
BOX = np.array([[0.0, 0.0, 1.0, 1.0]])
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "rank": (
        lambda: pb.image.resize_bilinear(ONE[0, 0], [2, 2]),
        ShapeError,
        r"images must have rank 3 or 4.*\(2, 1\)",
    ),
    "size": (lambda: pb.image.resize_bilinear(ONE, [2]), ArgumentError, r"two integers \[height, width\], got \[2\]"),
    "number": (lambda: pb.image.resize_nearest_neighbor(ONE, 2), ArgumentError, "size must be two integers"),
    "half": (lambda: pb.image.resize_bilinear(ONE, [2.5, 1]), ArgumentError, "size must be two integers"),
    "nothing": (lambda: pb.image.resize_bilinear(ONE, [0, 2]), ShapeError, r"must be >= 1.*size \[0, 2\]"),
    "of nothing": (lambda: pb.image.resize_bilinear(ONE[:, :0], [2, 2]), ShapeError, r"images of shape \(1, 0, 2, 1\)"),
    "both": (lambda: pb.image.resize_bilinear(ONE, [2, 2], True, True), ArgumentError, "exclude each other"),
    "image": (
        lambda: pb.image.crop_and_resize(ONE[0], BOX, [0], [1, 1]),
        ShapeError,
        r"image must have rank 4, got shape \(2",
    ),
    "boxes": (
        lambda: pb.image.crop_and_resize(ONE, BOX[0], [0], [1, 1]),
        ShapeError,
        r"boxes must have shape \(number, 4\)",
    ),
    "box_ind": (
        lambda: pb.image.crop_and_resize(ONE, BOX, [0, 0], [1, 1]),
        ShapeError,
        r"box_ind must have \(1,\), got \(2,\)",
    ),
    "outside": (
        lambda: pb.image.crop_and_resize(ONE, BOX, [1], [1, 1]),
        ArgumentError,
        r"box_ind must be from 0 to 0,.*\[1",
    ),
    "crop_size": (
        lambda: pb.image.crop_and_resize(ONE, BOX, [0], [0, 1]),
        ArgumentError,
        r"crop_size must be .*got \[0, 1\]",
    ),
    "method": (
        lambda: pb.image.crop_and_resize(ONE, BOX, [0], [1, 1], "cubic"),
        ArgumentError,
        "method must be .*got 'cubic'",
    ),
    "transforms": (
        lambda: pb.image.transform(ONE, BOX),
        ShapeError,
        r"must have shape \(1, 8\) or \(1, 8\), got \(1, 4\)",
    ),
    "interpolation": (
        lambda: pb.image.transform(ONE, TRANSFORM[:1], "area"),
        ArgumentError,
        "interpolation must be .*'area'",
    ),
    "fill_mode": (
        lambda: pb.image.transform(ONE, TRANSFORM[:1], None, "edge"),
        ArgumentError,
        "fill_mode must be .*'edge'",
    ),
    "output_shape": (
        lambda: pb.image.transform(ONE, TRANSFORM[:1], output_shape=[2]),
        ArgumentError,
        r"output_shape must be .*\[height, width\], got \[2\]",
    ),
    "center": (lambda: pb.image.rotate_with_offset(ONE, 1.0, 0, [1, 2, 3]), ArgumentError, r"a number or \[x, y\]"),
    "fill": (
        lambda: pb.image.rotate_with_offset(ONE, 1.0, [1, 2]),
        ShapeError,
        "fill_value must be a number or 1 of them",
    ),
    "mirror": (lambda: pb.image.flip_left_right(ONE[0]), ShapeError, "flip_left_right: image must have rank 4"),
    "grey": (lambda: pb.image.grayscale_to_rgb(np.ones((2, 3))), ShapeError, r"a last axis of length 1, got \(2, 3\)"),
    "colours": (lambda: pb.image.rgb_to_grayscale(ONE), ShapeError, r"a last axis of length 3, got \(1, 2, 2, 1\)"),
    "threshold": (lambda: pb.image.threshold(ONE), ShapeError, r"\(height, width, 3\), got \(1, 2, 2, 1\)"),
    "threshold method": (
        lambda: pb.image.threshold(ONE[0], "mean"),
        ArgumentError,
        "must be 'binary' or 'otsu', got 'mean'",
    ),
    "dark": (lambda: pb.image.threshold(-ONE[0], "otsu"), ArgumentError, "must be from 0 to 255, got -1"),
    "scores": (lambda: pb.image.non_max_suppression(BOX, np.ones(2), 1), ShapeError, r"got \(1, 4\) and \(2,\)"),
    "output": (
        lambda: pb.image.non_max_suppression(BOX, [1.0], -1),
        ArgumentError,
        "max_output_size must be an integer >= 0",
    ),
    "iou": (
        lambda: pb.image.non_max_suppression(BOX, [1.0], 1, 1.5),
        ArgumentError,
        "iou_threshold must be a number from 0 to 1, got 1.5",
    ),
    "sigma": (
        lambda: pb.image.non_max_suppression_with_score(BOX, [1.0], 1, soft_nms_sigma=2),
        ArgumentError,
        "soft_nms_sigma must be a number from 0 to 1, got 2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_image_bad_input_raises(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
