"""Dense layers, activations, reshaping, dropout, noise and embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.core.convert import as_number
from pullback.core.tensor import all_values, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import gathering, random
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.base import Layer, LayerError, check_counts, check_shares
from pullback.train.nn.regularizers import RegularizerLike
from pullback.typing import Shape, Value

__all__ = [
    "Activation", "Dense", "Dropout", "Embedding", "Flatten", "GaussianNoise", "Permute", "RepeatVector", "Reshape",
]  # fmt: skip


@dataclass(eq=False)
class Dense(Layer):
    """``activation(x @ kernel + bias)``, along the last axis.

    >>> layer = pb.layers.dense(2, activation="relu", kernel_initializer="ones")
    >>> layer(np.array([[1.0, 2.0], [-3.0, 1.0]], np.float32))
    Tensor([[3., 3.], [0., 0.]], dtype=float32)
    """

    units: int
    activation: ActivationLike = None
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    kernel_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "units")
        self._activate = find_activation(self.activation, self.name)

    def build(self, shape: Shape) -> None:
        if not shape:
            raise ShapeError("there is no axis of features; layers.reshape([1]) makes one.")
        size = (shape[-1], self.units)
        self.kernel = self.weight("kernel", size, self.kernel_initializer, penalty=self.kernel_regularizer)
        if self.use_bias:
            self.bias = self.weight("bias", (self.units,), self.bias_initializer, penalty=self.bias_regularizer)

    def call(self, x: Value) -> Any:
        y = x @ self.kernel
        return self._activate(y + self.bias if self.use_bias else y)


@dataclass(eq=False)
class Activation(Layer):
    """An activation function, by its name or itself.

    >>> pb.layers.activation("relu")(np.array([[-1.0, 2.0]]))
    array([[0., 2.]])
    """

    activation: ActivationLike

    def __post_init__(self) -> None:
        super().__post_init__()
        self._activate = find_activation(self.activation, self.name)

    def call(self, x: Value) -> Any:
        return self._activate(x)


@dataclass(eq=False)
class Flatten(Layer):
    """Flattens every example.

    >>> pb.layers.flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def call(self, x: Value) -> Any:
        return np.reshape(x, (x.shape[0], math.prod(x.shape[1:])))


@dataclass(eq=False)
class Reshape(Layer):
    """Reshapes every example; one length may be -1, which is inferred.

    >>> pb.layers.reshape([2, -1])(np.ones((5, 6))).shape
    (5, 2, 3)
    """

    target_shape: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.target_shape
        lengths = given if isinstance(given, list | tuple) else [given]
        whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= -1 for n in lengths)
        if not whole or list(lengths).count(-1) > 1:
            raise ArgumentError(f"{self.name}: target_shape must be lengths, of which one may be -1, got {given!r}.")
        self.target_shape = tuple(int(n) for n in lengths)

    def call(self, x: Value) -> Any:
        size, known = math.prod(x.shape[1:]), math.prod(n for n in self.target_shape if n != -1)
        rest = size // known if known else 0
        shape = tuple(rest if n == -1 else n for n in self.target_shape)
        if math.prod(shape) != size:
            raise ShapeError(f"{size} numbers do not fill the shape {self.target_shape}.")
        return np.reshape(x, (x.shape[0], *shape))


@dataclass(eq=False)
class Permute(Layer):
    """Transposes the axes of every example; the first is 1, as in Keras.

    >>> pb.layers.permute([2, 1])(np.ones((5, 3, 4))).shape
    (5, 4, 3)
    """

    dims: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.dims
        if not isinstance(given, list | tuple) or sorted(given) != list(range(1, len(given) + 1)):
            raise ArgumentError(f"{self.name}: dims must be each of 1, 2, ... once, got {given!r}.")
        self.dims = tuple(given)

    def call(self, x: Value) -> Any:
        if x.ndim != len(self.dims) + 1:
            raise ShapeError(f"expected rank {len(self.dims) + 1}, the batch included, for dims {self.dims}.")
        return np.transpose(x, (0, *self.dims))


@dataclass(eq=False)
class RepeatVector(Layer):
    """Repeats every example ``n`` times along a new axis: a sequence from one vector.

    >>> pb.layers.repeat_vector(3)(np.ones((2, 5))).shape
    (2, 3, 5)
    """

    n: int
    rank = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "n")

    def call(self, x: Value) -> Any:
        return np.broadcast_to(np.expand_dims(x, 1), (x.shape[0], self.n, x.shape[1]))


@dataclass(eq=False)
class RandomLayer(Layer):
    """The base of layers that draw random numbers: with a seed, from a generator of their own that advances."""

    seed: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        seed = self.seed
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
        if not (seed is None or whole or isinstance(seed, np.random.Generator)):
            raise ArgumentError(f"{self.name}: seed must be a whole number of 0 or more, or None, got {seed!r}.")
        self._generator = None if seed is None else np.random.default_rng(seed)


@dataclass(eq=False)
class Dropout(RandomLayer):
    """In training, sets a share ``rate`` of the inputs to zero and scales the others up; otherwise the identity.

    ``noise_shape`` is 1 along axes that are dropped together; None means the input's own length.

    >>> pb.layers.dropout(0.5)(np.ones((1, 3)))
    array([[1., 1., 1.]])
    """

    rate: float
    noise_shape: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self, "rate")

    def call(self, x: Value, training: bool = False) -> Any:
        return random.dropout(x, self.rate, self.noise_shape, self._generator) if training and self.rate else x


@dataclass(eq=False)
class GaussianNoise(RandomLayer):
    """In training, adds normal noise of this standard deviation; otherwise the identity.

    >>> pb.layers.gaussian_noise(0.5)(np.ones((1, 3)))
    array([[1., 1., 1.]])
    """

    stddev: float

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number(self.name, "stddev", self.stddev, 0)

    def call(self, x: Value, training: bool = False) -> Any:
        return x + random.normal(x.shape, 0.0, self.stddev, x.dtype, self._generator) if training else x


@dataclass(eq=False)
class Embedding(Layer):
    """Maps each integer from 0 to ``input_dim - 1`` to a row of a learned table.

    >>> layer = pb.layers.embedding(3, 2, embeddings_initializer=pb.initializers.constant([[0, 1], [2, 3], [4, 5]]))
    >>> layer(np.array([[2, 0]]))
    Tensor([[[4., 5.], [0., 1.]]], dtype=float32)
    """

    input_dim: int
    output_dim: int
    embeddings_initializer: InitializerLike = "random_uniform"
    embeddings_regularizer: RegularizerLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "input_dim", "output_dim")

    def build(self, shape: Shape) -> None:
        size = (self.input_dim, self.output_dim)
        self.embeddings = self.weight(
            "embeddings", size, self.embeddings_initializer, penalty=self.embeddings_regularizer
        )

    def check_inputs(self, *xs: Value) -> None:
        known: Any = np.ravel(all_values(xs[0]))
        wrong = known[(np.floor(known) != known) | (known < 0) | (known >= self.input_dim)]
        if wrong.size:
            raise LayerError(
                f"layer '{self.name}', given shape {xs[0].shape}: expected whole numbers from 0 to "
                f"{self.input_dim - 1}, got {wrong[0]}."
            )

    def call(self, x: Value) -> Any:
        self.check_inputs(x)
        places = strip(x)
        return gathering.gather(self.embeddings, places if places.dtype.kind in "iu" else places.astype(np.int32))
