"""The functions of ``pb.random``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Mapping
from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, DType, Seed, ShapeLike, TensorLike, TensorOrNested
from typing import Any, overload

def bernoulli(shape: ShapeLike | None = None, p: TensorLike = 0.5, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Return 1 with probability ``p``, else 0."""

def categorical(logits: TensorLike, num_samples: int, dtype: DType = "int32", seed: Seed = None) -> Tensor:
    """Return classes drawn with the probabilities ``softmax(logits)`` over the last axis, ``num_samples`` per row."""

@overload
def dropout(x: TensorOrNested, rate: float, noise_shape: ShapeLike | None = None, seed: Seed = None) -> Tensor:
    """Return ``x`` with a fraction ``rate`` of its elements set to 0, and the others scaled by ``1 / (1 - rate)``."""

@overload
def dropout(x: ArrayLike, rate: float, noise_shape: ShapeLike | None = None, seed: Seed = None) -> Array: ...
def exponential(
    shape: ShapeLike | None = None, scale: TensorLike = 1.0, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Return exponentially distributed numbers of mean ``scale``, differentiable in it."""

def gamma(
    shape: ShapeLike | None = None,
    alpha: TensorLike = 1.0,
    beta: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return gamma distributed numbers of shape ``alpha`` and rate ``beta``, differentiable in both, to any order."""

def get_state() -> dict[str, Tensor]:
    """Return the state of the generator of the process, as numbers and text, for ``set_state``."""

def multinomial(logits: TensorLike, num_samples: int, seed: Seed = None, normalized: bool = False) -> Tensor:
    """Return ``categorical`` by its name in TensorFlow.js; with ``normalized`` the logits are probabilities."""

def normal(
    shape: ShapeLike | None = None,
    mean: TensorLike = 0.0,
    std_dev: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return normally distributed numbers, differentiable in ``mean`` and ``std_dev``, which may be tensors."""

def permutation(n: int, seed: Seed = None) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order."""

def poisson(shape: ShapeLike | None = None, lam: TensorLike = 1.0, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Return Poisson distributed integers of mean ``lam``."""

def rand(shape: ShapeLike, rand_function: Callable[[], float], dtype: DType = None) -> Tensor:
    """Return a tensor of numbers from calls of a function."""

def seed(seed: Seed = None) -> None:
    """Seed the generator of the process."""

def set_state(state: Mapping[str, Any]) -> None:
    """Set the state of the generator to one from ``get_state``."""

@overload
def shuffle(x: TensorOrNested, axis: int = 0, seed: Seed = None) -> Tensor:
    """Return ``x`` with its slices along ``axis`` in random order, differentiable in ``x``."""

@overload
def shuffle(x: ArrayLike, axis: int = 0, seed: Seed = None) -> Array: ...
def standard_normal(shape: ShapeLike, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Return normally distributed numbers of mean 0 and standard deviation 1."""

def truncated_normal(
    shape: ShapeLike | None = None,
    mean: TensorLike = 0.0,
    std_dev: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return normally distributed numbers within two standard deviations of the mean; others are drawn again."""

def uniform(
    shape: ShapeLike | None = None,
    minval: TensorLike = 0.0,
    maxval: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return numbers uniformly distributed between ``minval`` and ``maxval``, differentiable in both."""

def uniform_int(
    shape: ShapeLike, minval: TensorLike, maxval: TensorLike, dtype: DType = "int32", seed: Seed = None
) -> Tensor:
    """Return integers uniformly distributed from ``minval`` to ``maxval - 1``."""

random_gamma = gamma
random_normal = normal
random_standard_normal = standard_normal
random_uniform = uniform
random_uniform_int = uniform_int
