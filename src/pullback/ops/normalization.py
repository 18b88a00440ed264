"""Normalization over a batch, a layer or neighbouring channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.composition import check_numbers
from pullback.core.convert import as_number
from pullback.core.op import method
from pullback.core.tensor import Tensor
from pullback.errors import ShapeError
from pullback.numerics.axis_arguments import is_broadcastable, resolve_axes

if TYPE_CHECKING:
    from pullback.typing import Axis, Operand, TensorLike, Value

__all__ = [
    "batch_norm", "batch_norm2d", "batch_norm3d", "batch_norm4d", "layer_norm", "local_response_normalization",
]  # fmt: skip


def _normalize(x: Value, mean: Operand, variance: Value, offset: Any, scale: Any, epsilon: float) -> Any:
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + offset``, with as few passes over ``x`` as possible."""
    spread = np.sqrt(variance + epsilon)
    apart: Any = x - mean
    z = apart / spread if scale is None else apart * (scale / spread)
    return z if offset is None else z + offset


def _batch_norm(
    name: str, ranks: tuple[int, ...], x: Any, mean: Any, variance: Any, offset: Any, scale: Any, epsilon: Any
) -> Any:  # fmt: skip
    x = check_numbers(name, "x", x)
    if ranks and x.ndim not in ranks:
        raise ShapeError(f"{name}: x must have rank {ranks[0]}, got shape {x.shape}.")
    operands = {"mean": mean, "variance": variance, "offset": offset, "scale": scale}
    found: dict[str, Any] = {k: None if v is None else check_numbers(name, k, v) for k, v in operands.items()}
    for argument, value in found.items():
        if value is None and argument in ("mean", "variance"):
            raise ShapeError(f"{name}: {argument} must be given; moments(x) computes mean and variance.")
        if value is not None and not (is_broadcastable(value.shape, x.shape) and value.ndim == found["mean"].ndim):
            raise ShapeError(
                f"{name}: {argument} has shape {value.shape}; for x of shape {x.shape} and mean of shape "
                f"{found['mean'].shape} it must have the rank of mean and broadcast to x, as {x.shape[-1:]} does."
            )
    return _normalize(x, **found, epsilon=0.001 if epsilon is None else _check_epsilon(name, epsilon))


def _check_epsilon(name: str, epsilon: Any) -> Any:
    """Return the number that is added to the variance; it may be a tensor."""
    return epsilon if isinstance(epsilon, Tensor) else as_number(name, "variance_epsilon", epsilon, 0)


@method
def batch_norm(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Any:
    """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``.

    x: a tensor, an array or a number.
    mean: the mean of each channel.
    variance: the variance of each channel.
    offset: what is added at the end.
    scale: what the normalized values are multiplied by.
    variance_epsilon: what is added to the variance.

    >>> batch_norm(np.array([[1.0], [3.0]]), np.array([2.0]), np.array([1.0]), variance_epsilon=0.0).ravel()
    array([-1.,  1.])
    """
    return _batch_norm("batch_norm", (), x, mean, variance, offset, scale, variance_epsilon)


@method
def batch_norm2d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Any:
    """Return ``batch_norm`` of a tensor of rank 2.

    x: a tensor, an array or a number.
    mean: the mean of each channel.
    variance: the variance of each channel.
    offset: what is added at the end.
    scale: what the normalized values are multiplied by.
    variance_epsilon: what is added to the variance.

    >>> batch_norm2d(np.ones((1, 2)), np.ones(2), np.ones(2), np.array([5.0, 6.0]))
    array([[5., 6.]])
    """
    return _batch_norm("batch_norm2d", (2,), x, mean, variance, offset, scale, variance_epsilon)


@method
def batch_norm3d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Any:
    """Return ``batch_norm`` of a tensor of rank 3.

    x: a tensor, an array or a number.
    mean: the mean of each channel.
    variance: the variance of each channel.
    offset: what is added at the end.
    scale: what the normalized values are multiplied by.
    variance_epsilon: what is added to the variance.

    >>> batch_norm3d(np.ones((1, 1, 2)), np.ones(2), np.ones(2)).shape
    (1, 1, 2)
    """
    return _batch_norm("batch_norm3d", (3,), x, mean, variance, offset, scale, variance_epsilon)


@method
def batch_norm4d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Any:
    """Return ``batch_norm`` of a tensor of rank 4.

    x: a tensor, an array or a number.
    mean: the mean of each channel.
    variance: the variance of each channel.
    offset: what is added at the end.
    scale: what the normalized values are multiplied by.
    variance_epsilon: what is added to the variance.

    >>> batch_norm4d(np.ones((1, 1, 1, 2)), np.ones(2), np.ones(2)).shape
    (1, 1, 1, 2)
    """
    return _batch_norm("batch_norm4d", (4,), x, mean, variance, offset, scale, variance_epsilon)


@method
def layer_norm(
    x: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    axis: Axis = -1,
    variance_epsilon: float | Value | None = 1e-5,
) -> Any:
    """Return ``x`` normalized to mean 0 and variance 1 over ``axis``, times ``scale``, plus ``offset``.

    x: a tensor, an array or a number.
    offset: what is added at the end.
    scale: what the normalized values are multiplied by.
    axis: the axes over which mean and variance are taken.
    variance_epsilon: what is added to the variance.

    >>> layer_norm(np.array([[1.0, 3.0], [10.0, 30.0]]), variance_epsilon=0.0)
    array([[-1.,  1.],
           [-1.,  1.]])
    """
    name = "layer_norm"
    x = check_numbers(name, "x", x)
    axes = resolve_axes(x.ndim, axis, name)
    if not x.ndim or 0 in (x.shape[i] for i in axes):
        raise ShapeError(f"{name}: there is nothing to normalise over axis {axis} of x, which has shape {x.shape}.")
    for argument, value in {"offset": offset, "scale": scale}.items():
        shape = x.shape if value is None else check_numbers(name, argument, value).shape
        if not is_broadcastable(shape, x.shape):
            raise ShapeError(f"{name}: {argument} of shape {shape} must broadcast to x, which has shape {x.shape}.")
    epsilon = 1e-5 if variance_epsilon is None else _check_epsilon(name, variance_epsilon)
    centred = x - np.mean(x, axis=axes, keepdims=True)
    variance = np.mean(centred * centred, axis=axes, keepdims=True)
    return _normalize(centred, 0.0, variance, offset, scale, epsilon)


@method
def local_response_normalization(
    x: TensorLike,
    depth_radius: float | None = 5,
    bias: float | Value | None = 1,
    alpha: float | Value | None = 1,
    beta: float | Value | None = 0.5,
) -> Any:
    """Return ``x`` divided by ``(bias + alpha * s) ** beta``, ``s`` the sum of squares of the channels around each one.

    x: a tensor, an array or a number.
    depth_radius: the number of channels on each side that are summed.
    bias: what is added to the sum of squares.
    alpha: what the sum of squares is multiplied by.
    beta: the exponent.

    >>> local_response_normalization(np.array([[[[1.0, 1.0]]]]), 1, 2.0).ravel()
    array([0.5, 0.5])
    """
    name = "local_response_normalization"
    x = check_numbers(name, "x", x)
    if x.ndim not in (3, 4):
        raise ShapeError(f"{name}: x must have rank 4, or 3 without a batch, got shape {x.shape}.")
    radius = as_number(name, "depth_radius", 5 if depth_radius is None else depth_radius)
    if not float(radius).is_integer() or radius < 0:
        raise ShapeError(f"{name}: depth_radius must be an integer >= 0, got {depth_radius!r}.")
    settings = {"bias": (bias, 1), "alpha": (alpha, 1), "beta": (beta, 0.5)}
    bias, alpha, beta = (
        v if isinstance(v, Tensor) else as_number(name, k, usual if v is None else v)
        for k, (v, usual) in settings.items()
    )
    channels = np.arange(x.shape[-1])
    near = np.abs(channels[:, None] - channels) <= radius
    dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
    x = x.astype(dtype)
    squares: Any = x * x
    return x * (np.matmul(squares, near.astype(dtype)) * alpha + bias) ** -beta
