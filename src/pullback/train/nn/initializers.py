"""Initializers of variables: functions of a shape and a dtype, by TensorFlow.js's names.

A ``seed`` gives the same numbers every time; without one they are drawn from the generator of ``pb.random.seed``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.core.convert import as_number, get_default_dtype
from pullback.core.suggestions import did_you_mean
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers
from pullback.numerics.dtypes import make_dtype
from pullback.ops import random
from pullback.train.arguments import describe_arguments, find_function
from pullback.train.io.structure import Configurable
from pullback.typing import DType, Shape

__all__ = [
    "Constant", "Identity", "Initializer", "Ones", "Orthogonal", "RandomNormal", "RandomUniform", "TruncatedNormal",
    "VarianceScaling", "Zeros", "constant", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity",
    "initializer", "lecun_normal", "lecun_uniform", "ones", "orthogonal", "random_normal", "random_uniform",
    "truncated_normal", "variance_scaling", "zeros",
]  # fmt: skip

InitializerLike = str | Callable[[Shape, Any], Any]  # a name, or a function of shape and dtype
Seed = int | np.random.Generator | None
TRUNCATED_STDDEV = 0.87962566103423978  # of a standard normal number that is truncated to [-2, 2]


@dataclass(frozen=True)
class Initializer(Configurable):
    """The base of initializers: arguments as fields, and ``values(shape, dtype)``.

    >>> pb.initializers.Initializer.__call__(pb.initializers.ones(), [2])
    array([1., 1.], dtype=float32)
    """

    def __call__(self, shape: Sequence[int], dtype: DType | None = None) -> Any:
        wanted = make_dtype(dtype or get_default_dtype())
        return np.asarray(self.values(tuple(shape), wanted), wanted)

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        """Return the initial values."""
        raise NotImplementedError(f"{type(self).__name__} has no values(shape, dtype).")


@dataclass(frozen=True)
class Zeros(Initializer):
    """Zeros.

    >>> pb.initializers.zeros()([2])
    array([0., 0.], dtype=float32)
    """

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        return np.zeros(shape, dtype)


@dataclass(frozen=True)
class Ones(Initializer):
    """Ones.

    >>> pb.initializers.ones()([2])
    array([1., 1.], dtype=float32)
    """

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        return np.ones(shape, dtype)


@dataclass(frozen=True)
class Constant(Initializer):
    """One number everywhere, or an array of the variable's shape.

    value: the number.

    >>> pb.initializers.constant(0.5)([2])
    array([0.5, 0.5], dtype=float32)
    """

    value: Any = 0.0

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        value = np.asarray(self.value, dtype)
        if value.shape not in ((), shape):
            raise ShapeError(f"initializers.constant: expected one number or shape {shape}, got {value.shape}.")
        return np.broadcast_to(value, shape).copy()


@dataclass(frozen=True)
class Identity(Initializer):
    """The identity matrix times ``gain``.

    >>> pb.initializers.identity()([2, 2])
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    gain: float = 1.0

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ShapeError(f"initializers.identity: expected a square matrix, got shape {shape}.")
        return self.gain * np.eye(shape[0], dtype=dtype)


@dataclass(frozen=True)
class RandomNormal(Initializer):
    """Normally distributed numbers.

    mean: the mean.
    stddev: the standard deviation.

    >>> pb.initializers.random_normal(stddev=0.1, seed=1)([2])
    array([-0.11290556, -0.00840177], dtype=float32)
    """

    mean: float = 0.0
    stddev: float = 0.05
    seed: Seed = None

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        return random.normal(shape, self.mean, self.stddev, dtype, self.seed)


@dataclass(frozen=True)
class TruncatedNormal(Initializer):
    """Normally distributed numbers, truncated at two standard deviations.

    mean: the mean.
    stddev: the standard deviation.

    >>> bool(np.all(np.abs(pb.initializers.truncated_normal(stddev=0.5)([100])) <= 1.0))
    True
    """

    mean: float = 0.0
    stddev: float = 0.05
    seed: Seed = None

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        return random.truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


@dataclass(frozen=True)
class RandomUniform(Initializer):
    """Uniformly distributed numbers between ``minval`` and ``maxval``.

    minval: the least number.
    maxval: the end of the range.

    >>> bool(np.all(np.abs(pb.initializers.random_uniform(-1.0, 1.0)([100])) <= 1.0))
    True
    """

    minval: float = -0.05
    maxval: float = 0.05
    seed: Seed = None

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        return random.uniform(shape, self.minval, self.maxval, dtype, self.seed)


@dataclass(frozen=True)
class Orthogonal(Initializer):
    """A matrix with orthogonal columns (or rows) of length ``gain``.

    gain: what the matrix is multiplied by.

    >>> q = pb.initializers.orthogonal(seed=1)([3, 2])
    >>> (q.T @ q).round(5) + 0.0
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    gain: float = 1.0
    seed: Seed = None

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        if len(shape) < 2:
            raise ShapeError(f"initializers.orthogonal: expected at least rank 2, got shape {shape}.")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        drawn = np.asarray(random.normal([max(rows, columns), min(rows, columns)], dtype=np.float64, seed=self.seed))
        q, r = np.linalg.qr(drawn)
        q = q * np.sign(np.diagonal(r))  # makes the distribution uniform over orthogonal matrices
        return self.gain * (q if rows >= columns else q.T).reshape(shape)


@dataclass(frozen=True)
class VarianceScaling(Initializer):
    """Numbers whose variance is ``scale`` divided by the number of inputs, of outputs, or the mean of both.

    scale: what the variance is multiplied by.
    mode: ``"fan_in"``, ``"fan_out"`` or ``"fan_avg"``.
    distribution: ``"normal"``, which is ``"truncated_normal"``, ``"untruncated_normal"`` or ``"uniform"``.

    >>> pb.initializers.variance_scaling(2.0, "fan_in", "normal")
    VarianceScaling(scale=2.0, mode='fan_in', distribution='normal', seed=None)
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "normal"
    seed: Seed = None

    def __post_init__(self) -> None:
        as_number("initializers.variance_scaling", "scale", self.scale, 0)
        for name, given, known in (
            ("mode", self.mode, ("fan_in", "fan_out", "fan_avg")),
            ("distribution", self.distribution, ("normal", "truncated_normal", "untruncated_normal", "uniform")),
        ):
            if given not in known:
                choices = ", ".join(known)
                raise ArgumentError(
                    f"initializers.variance_scaling: {name} must be one of {choices}, got {given!r}."
                    f"{did_you_mean(given, known)}"
                )

    def values(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        fans = _compute_fans(shape)
        variance = self.scale / max(1.0, fans[("fan_in", "fan_out", "fan_avg").index(self.mode)])
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return random.uniform(shape, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return random.normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        return random.truncated_normal(shape, 0.0, math.sqrt(variance) / TRUNCATED_STDDEV, dtype, self.seed)


def _compute_fans(shape: Shape) -> tuple[float, float, float]:
    """Return fan-in, fan-out and their mean; for filters, times the size of the window."""
    if len(shape) < 2:
        inputs = outputs = math.prod(shape)
    else:
        window = math.prod(shape[:-2])
        inputs, outputs = window * shape[-2], window * shape[-1]
    return inputs, outputs, (inputs + outputs) / 2


def glorot_uniform(seed: Seed = None) -> VarianceScaling:
    """Return uniform numbers that keep the variance forward and backward: for ``tanh``, ``sigmoid``, ``softmax``.

    >>> float(np.abs(pb.initializers.glorot_uniform()([3, 3])).max()) <= 1.0
    True
    """
    return VarianceScaling(1.0, "fan_avg", "uniform", seed)


def glorot_normal(seed: Seed = None) -> VarianceScaling:
    """Return normal numbers that keep the variance forward and backward.

    >>> pb.initializers.glorot_normal()([3, 3]).shape
    (3, 3)
    """
    return VarianceScaling(1.0, "fan_avg", "normal", seed)


def he_uniform(seed: Seed = None) -> VarianceScaling:
    """Return uniform numbers that keep the variance through ``relu``.

    >>> pb.initializers.he_uniform()([3, 3]).shape
    (3, 3)
    """
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def he_normal(seed: Seed = None) -> VarianceScaling:
    """Return normal numbers that keep the variance through ``relu``.

    >>> pb.initializers.he_normal()([3, 3]).shape
    (3, 3)
    """
    return VarianceScaling(2.0, "fan_in", "normal", seed)


def lecun_uniform(seed: Seed = None) -> VarianceScaling:
    """Return uniform numbers that keep the variance forward: for ``selu``.

    >>> pb.initializers.lecun_uniform()([3, 3]).shape
    (3, 3)
    """
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def lecun_normal(seed: Seed = None) -> VarianceScaling:
    """Return normal numbers that keep the variance forward: for ``selu``.

    >>> pb.initializers.lecun_normal()([3, 3]).shape
    (3, 3)
    """
    return VarianceScaling(1.0, "fan_in", "normal", seed)


zeros, ones, constant, identity, orthogonal = Zeros, Ones, Constant, Identity, Orthogonal
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling = VarianceScaling
BY_NAME: dict[str, Callable[..., Initializer]] = {
    "zeros": zeros, "ones": ones, "constant": constant, "identity": identity, "orthogonal": orthogonal,
    "random_normal": random_normal, "random_uniform": random_uniform, "truncated_normal": truncated_normal,
    "variance_scaling": variance_scaling, "glorot_uniform": glorot_uniform, "glorot_normal": glorot_normal,
    "he_uniform": he_uniform, "he_normal": he_normal, "lecun_uniform": lecun_uniform, "lecun_normal": lecun_normal,
}  # fmt: skip


def initializer(identifier: InitializerLike, subject: str = "initializer") -> Callable[[Shape, Any], Any]:
    """Return the initializer of a name, TensorFlow.js's too; an initializer or any function of shape and dtype is kept.

    identifier: a name, an object or None.
    subject: what it is for, in errors.

    >>> pb.initializers.initializer("glorotUniform")
    VarianceScaling(scale=1.0, mode='fan_avg', distribution='uniform', seed=None)
    """
    found: Callable[[Shape, Any], Any] = find_function(identifier, BY_NAME, subject, "initializer", "shape and dtype")
    return found


describe_arguments(
    [globals()[name] for name in __all__],
    {"seed": "a number that makes the draw repeatable; without it, that of ``pb.random.seed``."},
)
install_answers("pb.initializers")
