"""Attention layers and positional encodings, for sequences (batch, steps, features)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ops import activations, random
from pullback.train.nn.initializers import InitializerLike, initializer
from pullback.train.nn.layers.base import Layer, check_counts, check_shares
from pullback.train.nn.layers.dense import RandomLayer
from pullback.typing import Shape, Value

__all__ = ["Attention", "MultiHeadAttention", "PositionalEncoding"]

MASKED_SCORE = -1e9  # added to masked scores, as in Keras


def _compute_weights(scores: Value, causal: bool) -> Any:
    """Return the attention weights of scores; if causal, later keys have weight 0."""
    if causal:
        queries, keys = scores.shape[-2:]
        scores = scores + np.triu(np.full((queries, keys), MASKED_SCORE, scores.dtype), 1)
    return activations.softmax(scores)


def _check_shapes(query: Value, value: Value, key: Value) -> None:
    if not query.ndim == value.ndim == key.ndim == 3:
        raise ShapeError("query, value and key must have rank 3: (batch, steps, features).")
    if value.shape[1] != key.shape[1] or not query.shape[0] == value.shape[0] == key.shape[0]:
        raise ShapeError("query, value and key must have the same batch, and value as many steps as key.")


@dataclass(eq=False)
class Attention(RandomLayer):
    """Dot-product attention: ``softmax(query @ key.T) @ value``.

    Inputs are query, value and, if it is not value, key: ``layer(query, value, key)`` or in a list.

    >>> x = np.array([[[0.0], [1.0]]])
    >>> pb.layers.attention()(x, x).round(3)
    array([[[0.5  ],
            [0.731]]])
    """

    use_scale: bool = False
    dropout: float = 0.0
    causal: bool = False
    rank = 2
    several = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self, "dropout")

    def build(self, *_: Shape) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (), "ones")

    def call(self, query: Value, value: Value, key: Value | None = None, training: bool = False) -> Any:
        key = value if key is None else key
        _check_shapes(query, value, key)
        if query.shape[-1] != key.shape[-1]:
            raise ShapeError(f"query has {query.shape[-1]} features and key {key.shape[-1]}; they must be the same.")
        scores = query @ np.swapaxes(key, 1, 2)
        weights = _compute_weights(scores * self.scale if self.use_scale else scores, self.causal)
        if training and self.dropout:
            weights = random.dropout(weights, self.dropout, seed=self._generator)
        return weights @ value


@dataclass(eq=False)
class HeadProjection(Layer):
    """A dense layer to or from several heads, with weights in Keras's shapes; used by ``multi_head_attention``."""

    shape_in: Shape
    shape_out: Shape
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"

    def build(self, *_: Shape) -> None:
        flat = math.prod(self.shape_in), math.prod(self.shape_out)
        begin = initializer(self.kernel_initializer, f"{self.name}: kernel")
        shape = (*self.shape_in, *self.shape_out)
        self.kernel = self.weight("kernel", shape, lambda s, dtype: np.reshape(begin(flat, dtype), s))
        if self.use_bias:
            self.bias = self.weight("bias", self.shape_out, self.bias_initializer)

    def call(self, x: Value) -> Any:
        batch, steps = x.shape[:2]
        rows, columns = math.prod(self.shape_in), math.prod(self.shape_out)
        y = np.reshape(x, (batch, steps, rows)) @ np.reshape(self.kernel, (rows, columns))
        y = np.reshape(y, (batch, steps, *self.shape_out))
        return y + self.bias if self.use_bias else y


@dataclass(eq=False)
class MultiHeadAttention(RandomLayer):
    """Multi-head attention: each head projects query, value and key by its own weights; the results are projected back.

    Inputs are query, value (default: query) and key (default: value).  With ``causal`` no step sees a later one;
    ``return_attention_scores`` returns the attention weights of each head, too.

    >>> x = np.ones((2, 5, 8), np.float32)
    >>> layer = pb.layers.multi_head_attention(num_heads=2, key_dim=4, causal=True)
    >>> layer(x).shape
    (2, 5, 8)
    >>> layer.query.kernel.shape
    (8, 2, 4)
    """

    num_heads: int
    key_dim: int
    value_dim: Any = None
    dropout: float = 0.0
    use_bias: bool = True
    output_dim: Any = None
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    causal: bool = False
    return_attention_scores: bool = False
    rank = 2
    several = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("value_dim", "output_dim") if getattr(self, name) is not None]
        check_counts(self, "num_heads", "key_dim", *given)
        check_shares(self, "dropout")

    def build(self, query: Shape, value: Shape | None = None, key: Shape | None = None) -> None:
        value = query if value is None else value
        key = value if key is None else key
        small, wide = (self.num_heads, self.key_dim), (self.num_heads, self.value_dim or self.key_dim)
        self.query = self._make_projection("query", query[-1:], small)
        self.key = self._make_projection("key", key[-1:], small)
        self.value = self._make_projection("value", value[-1:], wide)
        self.attention_output = self._make_projection("attention_output", wide, (self.output_dim or query[-1],))

    def _make_projection(self, name: str, shape_in: Shape, shape_out: Shape) -> HeadProjection:
        begins = self.kernel_initializer, self.bias_initializer
        heads = HeadProjection(shape_in, shape_out, self.use_bias, *begins, name=f"{self.name}/{name}")
        heads.build_for([shape_in])
        return heads

    def call(self, query: Value, value: Value | None = None, key: Value | None = None, training: bool = False) -> Any:
        value = query if value is None else value
        key = value if key is None else key
        _check_shapes(query, value, key)
        q, k, v = self.query(query), self.key(key), self.value(value)  # (batch, steps, heads, features)
        scores = np.swapaxes(q, 1, 2) @ np.transpose(k, (0, 2, 3, 1)) / math.sqrt(self.key_dim)
        weights = _compute_weights(scores, self.causal)
        seen = random.dropout(weights, self.dropout, seed=self._generator) if training and self.dropout else weights
        y = self.attention_output(np.swapaxes(seen @ np.swapaxes(v, 1, 2), 1, 2))
        return (y, weights) if self.return_attention_scores else y


@dataclass(eq=False)
class PositionalEncoding(Layer):
    """Adds positions to sequences, as sines and cosines of increasing wavelengths.

    >>> pb.layers.positional_encoding()(np.zeros((1, 2, 4))).round(3)
    array([[[0.   , 1.   , 0.   , 1.   ],
            [0.841, 0.54 , 0.01 , 1.   ]]])
    """

    max_wavelength: float = 10000.0
    rank = 2

    def call(self, x: Value) -> Any:
        steps, features = x.shape[1:]
        half = (features + 1) // 2
        waves = self.max_wavelength ** (-np.arange(half) / half)
        angles = np.arange(steps)[:, None] * waves
        table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(steps, 2 * half)[:, :features]
        return x + table.astype(x.dtype)
