"""``pb.image``: differentiable operations on images, in batches of shape (batch, height, width, channels)."""

# ruff: noqa: I001
from __future__ import annotations

from pullback.names.answers import install_answers as _install_answers
from pullback.ops.image.boxes import (
    PaddedSuppression, ScoredSuppression, non_max_suppression, non_max_suppression_padded,
    non_max_suppression_with_score,
)  # fmt: skip
from pullback.ops.image.colours import grayscale_to_rgb, rgb_to_grayscale, threshold
from pullback.ops.image.resizing import resize_bilinear, resize_nearest_neighbor
from pullback.ops.image.warping import crop_and_resize, flip_left_right, rotate_with_offset, transform

__all__ = [
    "PaddedSuppression", "ScoredSuppression", "crop_and_resize", "flip_left_right", "grayscale_to_rgb",
    "non_max_suppression", "non_max_suppression_padded", "non_max_suppression_with_score", "resize_bilinear",
    "resize_nearest_neighbor", "rgb_to_grayscale", "rotate_with_offset", "threshold", "transform",
]  # fmt: skip

_install_answers("pb.image")
