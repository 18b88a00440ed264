"""Layers that look where they like: attention of queries to keys (batch, steps, features), and where each step is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import ShapeError
from pullback.ops import activations, random
from pullback.train.nn.initializers import initializer
from pullback.train.nn.layers.base import Layer, positive, share
from pullback.train.nn.layers.dense import Chance

__all__ = ["Attention", "MultiHeadAttention", "PositionalEncoding"]

FAR = -1e9  # what is added to a score that must not count, as in Keras


def _weights(scores: Any, causal: bool) -> Any:
    """How much each key counts for each query; for a causal one, none that comes later."""
    if causal:
        queries, keys = scores.shape[-2:]
        scores = scores + np.triu(np.full((queries, keys), FAR, scores.dtype), 1)
    return activations.softmax(scores)


def _check(query: Any, value: Any, key: Any) -> None:
    if not query.ndim == value.ndim == key.ndim == 3:
        raise ShapeError("query, value and key must have rank 3: (batch, steps, features).")
    if value.shape[1] != key.shape[1] or not query.shape[0] == value.shape[0] == key.shape[0]:
        raise ShapeError("query, value and key must have the same batch, and value as many steps as key.")


@dataclass(eq=False)
class Attention(Chance):
    """Means of ``value``, by how well a query fits each key: ``softmax(query @ key.T) @ value``.

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
        share(self, "dropout")

    def build(self, *_: Any) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (), "ones")

    def call(self, query: Any, value: Any, key: Any = None, training: bool = False) -> Any:
        key = value if key is None else key
        _check(query, value, key)
        if query.shape[-1] != key.shape[-1]:
            raise ShapeError(f"query has {query.shape[-1]} features and key {key.shape[-1]}; they must be the same.")
        scores = query @ np.swapaxes(key, 1, 2)
        weights = _weights(scores * self.scale if self.use_scale else scores, self.causal)
        if training and self.dropout:
            weights = random.dropout(weights, self.dropout, seed=self._generator)
        return weights @ value


@dataclass(eq=False)
class Heads(Layer):
    """A dense layer to or from several heads, with weights in Keras's shapes; part of ``multi_head_attention``."""

    shape_in: Any
    shape_out: Any
    use_bias: bool = True
    kernel_initializer: Any = "glorot_uniform"
    bias_initializer: Any = "zeros"

    def build(self, *_: Any) -> None:
        flat = math.prod(self.shape_in), math.prod(self.shape_out)
        begin = initializer(self.kernel_initializer, f"{self.name}: kernel")
        shape = (*self.shape_in, *self.shape_out)
        self.kernel = self.weight("kernel", shape, lambda s, dtype: np.reshape(begin(flat, dtype), s))
        if self.use_bias:
            self.bias = self.weight("bias", self.shape_out, self.bias_initializer)

    def call(self, x: Any) -> Any:
        batch, steps = x.shape[:2]
        rows, columns = math.prod(self.shape_in), math.prod(self.shape_out)
        y = np.reshape(x, (batch, steps, rows)) @ np.reshape(self.kernel, (rows, columns))
        y = np.reshape(y, (batch, steps, *self.shape_out))
        return y + self.bias if self.use_bias else y


@dataclass(eq=False)
class MultiHeadAttention(Chance):
    """Attention by several heads at once, each with its own view of query, value and key, and a mixture of them.

    Inputs are query, value (or query) and key (or value).  A ``causal`` one sees no later step;
    ``return_attention_scores`` gives how much each head looked where, too.

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
    kernel_initializer: Any = "glorot_uniform"
    bias_initializer: Any = "zeros"
    causal: bool = False
    return_attention_scores: bool = False
    rank = 2
    several = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("value_dim", "output_dim") if getattr(self, name) is not None]
        positive(self, "num_heads", "key_dim", *given)
        share(self, "dropout")

    def build(self, query: Any, value: Any = None, key: Any = None) -> None:
        value = query if value is None else value
        key = value if key is None else key
        small, wide = (self.num_heads, self.key_dim), (self.num_heads, self.value_dim or self.key_dim)
        self.query = self._heads("query", query[-1:], small)
        self.key = self._heads("key", key[-1:], small)
        self.value = self._heads("value", value[-1:], wide)
        self.attention_output = self._heads("attention_output", wide, (self.output_dim or query[-1],))

    def _heads(self, name: str, shape_in: Any, shape_out: Any) -> Heads:
        begins = self.kernel_initializer, self.bias_initializer
        heads = Heads(shape_in, shape_out, self.use_bias, *begins, name=f"{self.name}/{name}")
        heads.build_for([shape_in])
        return heads

    def call(self, query: Any, value: Any = None, key: Any = None, training: bool = False) -> Any:
        value = query if value is None else value
        key = value if key is None else key
        _check(query, value, key)
        q, k, v = self.query(query), self.key(key), self.value(value)  # (batch, steps, heads, features)
        scores = np.swapaxes(q, 1, 2) @ np.transpose(k, (0, 2, 3, 1)) / math.sqrt(self.key_dim)
        weights = _weights(scores, self.causal)
        seen = random.dropout(weights, self.dropout, seed=self._generator) if training and self.dropout else weights
        y = self.attention_output(np.swapaxes(seen @ np.swapaxes(v, 1, 2), 1, 2))
        return (y, weights) if self.return_attention_scores else y


@dataclass(eq=False)
class PositionalEncoding(Layer):
    """Sequences with where each step is added to it: sines and cosines of longer and longer waves.

    >>> pb.layers.positional_encoding()(np.zeros((1, 2, 4))).round(3)
    array([[[0.   , 1.   , 0.   , 1.   ],
            [0.841, 0.54 , 0.01 , 1.   ]]])
    """

    max_wavelength: float = 10000.0
    rank = 2

    def call(self, x: Any) -> Any:
        steps, features = x.shape[1:]
        half = (features + 1) // 2
        waves = self.max_wavelength ** (-np.arange(half) / half)
        angles = np.arange(steps)[:, None] * waves
        table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(steps, 2 * half)[:, :features]
        return x + table.astype(x.dtype)
