"""The functions of ``pb.image``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from collections.abc import Sequence
from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, ShapeLike, TensorLike, TensorOrNested, Value
from typing import Any, Generic, NamedTuple, TypeVar, overload

V = TypeVar("V")

class PaddedSuppression(NamedTuple, Generic[V]):
    """The result of ``non_max_suppression_padded``."""

    selected_indices: V
    valid_outputs: V

class ScoredSuppression(NamedTuple, Generic[V]):
    """The result of ``non_max_suppression_with_score``."""

    selected_indices: V
    selected_scores: V

@overload
def crop_and_resize(
    image: TensorOrNested,
    boxes: TensorLike,
    box_ind: TensorLike,
    crop_size: Sequence[int] | Array,
    method: str | None = "bilinear",
    extrapolation_value: float | None = 0,
) -> Tensor:
    """Return boxes ``[y1, x1, y2, x2]``, in fractions of the image ``box_ind``, cropped and resized to ``crop_size``."""

@overload
def crop_and_resize(
    image: TensorLike,
    boxes: TensorOrNested,
    box_ind: TensorLike,
    crop_size: Sequence[int] | Array,
    method: str | None = "bilinear",
    extrapolation_value: float | None = 0,
) -> Tensor:
    """Return boxes ``[y1, x1, y2, x2]``, in fractions of the image ``box_ind``, cropped and resized to ``crop_size``."""

@overload
def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorOrNested,
    crop_size: Sequence[int] | Array,
    method: str | None = "bilinear",
    extrapolation_value: float | None = 0,
) -> Tensor:
    """Return boxes ``[y1, x1, y2, x2]``, in fractions of the image ``box_ind``, cropped and resized to ``crop_size``."""

@overload
def crop_and_resize(
    image: ArrayLike,
    boxes: ArrayLike,
    box_ind: ArrayLike,
    crop_size: Sequence[int] | Array,
    method: str | None = "bilinear",
    extrapolation_value: float | None = 0,
) -> Array: ...
@overload
def flip_left_right(image: TensorOrNested) -> Tensor:
    """Return images flipped horizontally."""

@overload
def flip_left_right(image: ArrayLike) -> Array: ...
@overload
def grayscale_to_rgb(image: TensorOrNested) -> Tensor:
    """Return grayscale images as RGB images with three equal channels."""

@overload
def grayscale_to_rgb(image: ArrayLike) -> Array: ...
@overload
def non_max_suppression(
    boxes: TensorOrNested,
    scores: TensorLike,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
) -> Tensor:
    """Return the indices of the boxes, best first, without those that overlap a better one by ``iou_threshold``."""

@overload
def non_max_suppression(
    boxes: TensorLike,
    scores: TensorOrNested,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
) -> Tensor:
    """Return the indices of the boxes, best first, without those that overlap a better one by ``iou_threshold``."""

@overload
def non_max_suppression(
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
) -> Array: ...
@overload
def non_max_suppression_padded(
    boxes: TensorOrNested,
    scores: TensorLike,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
    pad_to_max_output_size: bool = False,
) -> PaddedSuppression[Tensor]:
    """Return the indices of the boxes that stay, optionally padded with zeros, and their number."""

@overload
def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorOrNested,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
    pad_to_max_output_size: bool = False,
) -> PaddedSuppression[Tensor]:
    """Return the indices of the boxes that stay, optionally padded with zeros, and their number."""

@overload
def non_max_suppression_padded(
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
    pad_to_max_output_size: bool = False,
) -> PaddedSuppression[Array]: ...
@overload
def non_max_suppression_with_score(
    boxes: TensorOrNested,
    scores: TensorLike,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
    soft_nms_sigma: float | None = 0.0,
) -> ScoredSuppression[Tensor]:
    """Return the indices of the boxes that stay, and their scores, which ``soft_nms_sigma`` lowers for overlaps."""

@overload
def non_max_suppression_with_score(
    boxes: TensorLike,
    scores: TensorOrNested,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
    soft_nms_sigma: float | None = 0.0,
) -> ScoredSuppression[Tensor]:
    """Return the indices of the boxes that stay, and their scores, which ``soft_nms_sigma`` lowers for overlaps."""

@overload
def non_max_suppression_with_score(
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_size: int,
    iou_threshold: float | None = 0.5,
    score_threshold: float | None = ...,
    soft_nms_sigma: float | None = 0.0,
) -> ScoredSuppression[Array]: ...
@overload
def resize_bilinear(
    images: TensorOrNested,
    /,
    size: Sequence[int] | Array,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Return images resized to ``size`` [height, width] by bilinear interpolation."""

@overload
def resize_bilinear(
    images: ArrayLike, /, size: Sequence[int] | Array, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array: ...
@overload
def resize_nearest_neighbor(
    images: TensorOrNested,
    /,
    size: Sequence[int] | Array,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Return images resized to ``size`` [height, width] by nearest-neighbour interpolation."""

@overload
def resize_nearest_neighbor(
    images: ArrayLike, /, size: Sequence[int] | Array, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array: ...
@overload
def rgb_to_grayscale(image: TensorOrNested) -> Tensor:
    """Return RGB images as grayscale images; integers stay integers."""

@overload
def rgb_to_grayscale(image: ArrayLike) -> Array: ...
@overload
def rotate_with_offset(
    image: TensorOrNested,
    radians: float | Value,
    fill_value: float | Sequence[float] | None = 0,
    center: float | Sequence[float] | None = 0.5,
) -> Tensor:
    """Return images rotated by ``radians`` around ``center``, one fraction of both sides or two, ``[x, y]``."""

@overload
def rotate_with_offset(
    image: ArrayLike,
    radians: float | Value,
    fill_value: float | Sequence[float] | None = 0,
    center: float | Sequence[float] | None = 0.5,
) -> Array: ...
@overload
def threshold(
    image: TensorOrNested, /, method: str = "binary", inverted: bool = False, thresh_value: float = 0.5
) -> Tensor:
    """Return 255 where an image (values 0 to 255) is brighter than the threshold, and 0 elsewhere, or the inverse."""

@overload
def threshold(
    image: ArrayLike, /, method: str = "binary", inverted: bool = False, thresh_value: float = 0.5
) -> Array: ...
@overload
def transform(
    image: TensorOrNested,
    transforms: TensorLike,
    interpolation: str | None = "nearest",
    fill_mode: str | None = "constant",
    fill_value: float | None = 0,
    output_shape: ShapeLike | None = None,
) -> Tensor:
    """Return images under a projective transform."""

@overload
def transform(
    image: TensorLike,
    transforms: TensorOrNested,
    interpolation: str | None = "nearest",
    fill_mode: str | None = "constant",
    fill_value: float | None = 0,
    output_shape: ShapeLike | None = None,
) -> Tensor:
    """Return images under a projective transform."""

@overload
def transform(
    image: ArrayLike,
    transforms: ArrayLike,
    interpolation: str | None = "nearest",
    fill_mode: str | None = "constant",
    fill_value: float | None = 0,
    output_shape: ShapeLike | None = None,
) -> Array: ...
