"""Attention layers and positions, for sequences (batch, steps, features)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.axis_arguments import resolve_axes
from pullback.ops import activations, random
from pullback.train.masks import Mask
from pullback.train.nn.constraints import ConstraintLike
from pullback.train.nn.initializers import InitializerLike, initializer
from pullback.train.nn.layers.activations import find_activation
from pullback.train.nn.layers.base import Layer, takes_output_shape
from pullback.train.nn.layers.checks import check_choice, check_counts, check_shares
from pullback.train.nn.layers.noise import RandomLayer
from pullback.train.nn.regularizers import RegularizerLike
from pullback.typing import Shape, Value

__all__ = [
    "AdditiveAttention", "Attention", "GroupQueryAttention", "MultiHeadAttention", "PositionEmbedding",
    "PositionalEncoding",
]  # fmt: skip

MASKED_SCORE = -1e9  # of masked scores, as in Keras


def make_causal_mask(queries: int, keys: int) -> Any:
    """Return a mask in which no query sees a later key.

    >>> make_causal_mask(2, 2)
    array([[ True, False],
           [ True,  True]])
    """
    return np.tri(queries, keys, dtype=bool)


def _join_masks(*masks: Mask) -> Mask:
    """Return where all of these masks are True; None if there are none."""
    found: Any = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else np.logical_and(found, mask)
    return found


def _as_mask(mask: Mask) -> Mask:
    return None if mask is None else np.asarray(mask, bool) if isinstance(mask, list | np.ndarray) else mask


def _get_given(masks: Sequence[Mask] | None, i: int) -> Mask:
    return masks[i] if masks is not None and i < len(masks) else None


def _check_shapes(query: Value, value: Value, key: Value, rank: int | None = None) -> None:
    """Check that inputs belong together; of every rank from 3 on, unless one is given."""
    ranks = {query.ndim, value.ndim, key.ndim}
    if rank is not None and ranks != {rank}:
        raise ShapeError(f"query, value and key must have rank {rank}: (batch, steps, features).")
    if len(ranks) > 1 or query.ndim < 3:
        raise ShapeError("query, value and key must have the same rank, 3 or more: (batch, steps, features).")
    if value.shape[:-1] != key.shape[:-1] or query.shape[0] != value.shape[0]:
        raise ShapeError("query, value and key must have the same batch, and value as many steps as key.")


# ---- one head


@dataclass(eq=False)
class Attention(RandomLayer):
    """Dot-product attention: ``softmax(query @ key.T) @ value``.

    Inputs are query, value and, if it is not value, key: ``layer(query, value, key)`` or in a list.  Called with
    ``use_causal_mask=True`` no step sees a later one; with ``return_attention_scores=True`` it returns the weights too.
    ``mask`` is a list: of the query, whose masked steps give zeros, and of the value.

    - use_scale: whether scores are multiplied by a learned number.
    - dropout: the fraction of the weights that is dropped in training.
    - causal: the same as ``use_causal_mask`` at every call.
    - score_mode: "dot", or "concat": ``sum(tanh(query + key))``.

    >>> x = np.array([[[0.0], [1.0]]])
    >>> pb.layers.attention()(x, x).round(3)
    array([[[0.5  ],
            [0.731]]])
    """

    use_scale: bool = False
    dropout: float = 0.0
    causal: bool = False
    score_mode: str = field(default="dot", kw_only=True)

    rank = 2
    several = True
    argument_checks = ((check_shares, "dropout"), (check_choice, "score_mode", "dot", "concat"))

    def build(self, *shapes: Shape) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (), "ones")
        if self.score_mode == "concat":
            self.concat_score_weight = self.weight("concat_score_weight", (), "ones")

    def compute_scores(self, query: Value, key: Value) -> Any:
        """Return a score for each query and key."""
        if self.score_mode == "dot":
            scores = query @ np.swapaxes(key, 1, 2)
            return scores * self.scale if self.use_scale else scores
        both = np.expand_dims(query, 2) + np.expand_dims(key, 1)
        return np.sum(np.tanh(both * self.scale if self.use_scale else both), axis=-1) * self.concat_score_weight

    def call(
        self,
        query: Value,
        value: Value,
        key: Value | None = None,
        *,
        mask: Mask = None,
        training: bool = False,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        key = value if key is None else key
        _check_shapes(query, value, key, 3)
        if query.shape[-1] != key.shape[-1]:
            raise ShapeError(f"query has {query.shape[-1]} features and key {key.shape[-1]}; they must be the same.")
        scores = self.compute_scores(query, key)
        seen, kept = _get_given(mask, 1), _get_given(mask, 0)
        causal = make_causal_mask(*scores.shape[-2:]) if use_causal_mask or self.causal else None
        allowed = _join_masks(None if seen is None else np.expand_dims(seen, 1), causal)
        if allowed is not None:
            scores = np.where(allowed, scores, scores + MASKED_SCORE)
        weights = activations.softmax(scores)
        if training and self.dropout:
            weights = random.dropout(weights, self.dropout, seed=self._generator)
        y = weights @ value
        if kept is not None:
            y = y * np.expand_dims(kept, -1).astype(y.dtype)
        return (y, weights) if return_attention_scores else y


@dataclass(eq=False)
class AdditiveAttention(Attention):
    """Additive attention: scores are ``sum(scale * tanh(query + key))`` with a learned ``scale``.

    Inputs and settings of a call are those of ``attention``.

    - use_scale: whether there is a learned factor for each feature.
    - dropout: the fraction of the weights that is dropped in training.
    - causal: whether a step sees only those up to itself.
    - score_mode: accepted as in Keras; the score is always ``sum(tanh(query + key))``.

    >>> x = np.ones((2, 5, 3), np.float32)
    >>> pb.layers.additive_attention()(x, x).shape
    (2, 5, 3)
    """

    use_scale: bool = True

    def build(self, *shapes: Shape) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (shapes[0][-1],), "glorot_uniform")

    def compute_scores(self, query: Value, key: Value) -> Any:
        y = np.tanh(np.expand_dims(query, 2) + np.expand_dims(key, 1))
        return np.sum(y * self.scale if self.use_scale else y, axis=-1)


# ---- several heads


@dataclass(eq=False)
class HeadProjection(Layer):
    """A dense layer to or from several heads, with weights in Keras's shapes; used by ``multi_head_attention``."""

    shape_in: Shape
    shape_out: Shape
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    kernel_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None
    kernel_constraint: ConstraintLike | None = None
    bias_constraint: ConstraintLike | None = None
    activation: str | None = None

    def build(self, *_: Shape) -> None:
        self._activate = find_activation(self.activation, self.name)
        flat = math.prod(self.shape_in), math.prod(self.shape_out)
        begin = initializer(self.kernel_initializer, f"{self.name}: kernel")
        shape = (*self.shape_in, *self.shape_out)
        self.kernel = self.weight(
            "kernel",
            shape,
            lambda s, dtype: np.reshape(begin(flat, dtype), s),
            penalty=self.kernel_regularizer,
            limit=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight_by_arguments("bias", self.shape_out)

    def call(self, x: Value) -> Any:
        front = x.shape[: x.ndim - len(self.shape_in)]
        rows, columns = math.prod(self.shape_in), math.prod(self.shape_out)
        y = np.reshape(x, (*front, rows)) @ np.reshape(self.kernel, (rows, columns))
        y = np.reshape(y, (*front, *self.shape_out))
        return self._activate(y + self.bias if self.use_bias else y)


@dataclass(eq=False)
class HeadedAttention(RandomLayer):
    """The base of attention with several heads: each projects query, value and key by its own weights."""

    kernel_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    bias_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    kernel_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    bias_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    use_gate: bool = field(default=False, kw_only=True)
    sliding_window: int | None = field(default=None, kw_only=True)
    flash_attention: bool | None = field(default=None, kw_only=True)  # accepted, as Keras has it

    several = True
    dropout = 0.0
    causal = False
    return_attention_scores = False
    size = 1

    def make_projection(self, name: str, shape_in: Shape, shape_out: Shape, activation: str | None = None) -> Any:
        """Return a new part of this layer that projects the last axes."""
        arguments: Any = self
        heads = HeadProjection(
            shape_in, shape_out, arguments.use_bias, arguments.kernel_initializer, arguments.bias_initializer,
            self.kernel_regularizer, self.bias_regularizer, self.kernel_constraint, self.bias_constraint, activation,
            name=f"{self.name}/{name}", dtype=self.variable_dtype, activity_regularizer=self.activity_regularizer,
        )  # fmt: skip
        heads.build_for([shape_in])
        return heads

    def build_projections(
        self,
        shapes: Sequence[Shape],
        query_heads: Shape,
        key_heads: Shape,
        value_heads: Shape,
        out_heads: Shape,
        out: Shape,
    ) -> None:
        """Make the projections of query, key and value to their heads, and of the heads' outputs to the output."""
        query, value, key = (*shapes, *[shapes[-1]] * (3 - len(shapes)))
        self.query = self.make_projection("query", query[-1:], query_heads)
        self.key = self.make_projection("key", key[-1:], key_heads)
        if self.use_gate:
            self.gate = self.make_projection("gate", query[-1:], out_heads, "sigmoid")
        self.value = self.make_projection("value", value[-1:], value_heads)
        self.attention_output = self.make_projection("attention_output", out_heads, out)

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return _get_given(mask, 0)

    def attend(
        self, q: Value, k: Value, v: Value, allowed: Mask, axes: tuple[int, ...], training: bool, scored: bool
    ) -> tuple[Any, Any]:
        """Return the heads' outputs and weights, of arrays (batch, …, heads, features), along these axes."""
        scores = _bring_forward(q, axes) @ np.swapaxes(_bring_forward(k, axes), -1, -2) * (1.0 / math.sqrt(self.size))
        if allowed is not None:
            scores = np.where(allowed, scores, MASKED_SCORE)
        weights = activations.softmax(scores)
        if allowed is not None and (scored or self.dropout):
            weights = weights * np.broadcast_to(allowed, weights.shape).astype(weights.dtype)  # if none is allowed
        seen = weights
        if training and self.dropout:
            seen = random.dropout(weights, self.dropout, seed=self._generator)
        out = seen @ _bring_forward(v, axes)
        return _put_back(out, q.shape[:-1] + v.shape[-1:], axes), weights

    def find_allowed(self, shape: tuple[int, int], masks: Sequence[Mask], attention_mask: Mask, causal: bool) -> Mask:
        """Return which query sees which key, or None if all do."""
        queries, keys = shape
        by_query, *by_key = (_as_mask(m) for m in masks)
        window = self.sliding_window
        near = None if window is None else np.abs(np.arange(queries)[:, None] - np.arange(keys)) < window
        return _join_masks(
            None if by_query is None else np.expand_dims(by_query, -1),
            *[None if m is None else np.expand_dims(m, -2) for m in by_key],
            make_causal_mask(queries, keys) if causal else None,
            near,
            _as_mask(attention_mask),
        )

    def find_axes(self, rank: int) -> tuple[int, ...]:
        """Return the axes of inputs of this rank over which is attended: all but the batch and the features."""
        return tuple(range(1, rank - 1))

    def share_heads(self, x: Value) -> Any:
        """Return a projected key or value, (batch, …, heads, features), with as many heads as the query."""
        return x

    def call(
        self,
        query: Value,
        value: Value | None = None,
        key: Value | None = None,
        *,
        mask: Mask = None,
        query_mask: Mask = None,
        value_mask: Mask = None,
        key_mask: Mask = None,
        attention_mask: Mask = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
        training: bool = False,
    ) -> Any:
        masks = _choose_masks(mask, [query_mask, value_mask, key_mask], value is None, key is None)
        value = query if value is None else value
        key = value if key is None else key
        _check_shapes(query, value, key)
        axes = self.find_axes(query.ndim)
        shape = math.prod(query.shape[i] for i in axes), math.prod(key.shape[i] for i in axes)
        if attention_mask is not None and len(axes) > 1:
            attention_mask = np.reshape(attention_mask, (-1, *shape))
        allowed = self.find_allowed(shape, masks, attention_mask, use_causal_mask or self.causal)
        q, k, v = self.query(query), self.key(key), self.value(value)  # (batch, …, heads, features)
        k, v = self.share_heads(k), self.share_heads(v)
        scored = return_attention_scores or self.return_attention_scores
        out, weights = self.attend(q, k, v, _spread(allowed, q.ndim - len(axes) + 1), axes, training, scored)
        if len(axes) > 1:
            lengths = [x.shape[i] for x in (query, key) for i in axes]
            weights = np.reshape(weights, (*weights.shape[:-2], *lengths))
        y = self.attention_output(out * self.gate(query) if self.use_gate else out)
        return (y, weights) if scored else y


def _choose_masks(inputs: Sequence[Mask] | None, given: list[Mask], is_self: bool, is_keyless: bool) -> list[Mask]:
    """Return the masks of query, value and key: the arguments that were given, else those of the inputs.

    With ``is_self`` the value is the query, with ``is_keyless`` the key is the value, whose mask serves for both.
    """
    masks = [_get_given(inputs, i) for i in range(3)]
    if is_self:
        masks[1] = masks[0]
    if is_keyless:
        masks[2] = None
    return [theirs if mask is None else mask for mask, theirs in zip(given, masks, strict=True)]


def _bring_forward(x: Value, axes: tuple[int, ...]) -> Any:
    """Return (batch, …, heads, features) as (batch, the other axes, heads, all of ``axes`` as one, features)."""
    others = [i for i in range(1, x.ndim - 2) if i not in axes]
    turned = np.transpose(x, (0, *others, x.ndim - 2, *axes, x.ndim - 1))
    front = turned.shape[: 2 + len(others)]
    return turned if len(axes) == 1 else np.reshape(turned, (*front, math.prod(x.shape[i] for i in axes), x.shape[-1]))


def _put_back(x: Value, shape: Shape, axes: tuple[int, ...]) -> Any:
    """Return the inverse of ``_bring_forward`` for an array of this shape."""
    others = [i for i in range(1, len(shape) - 2) if i not in axes]
    order = (0, *others, len(shape) - 2, *axes, len(shape) - 1)
    apart = x if len(axes) == 1 else np.reshape(x, [shape[i] for i in order])
    return np.transpose(apart, [order.index(i) for i in range(len(shape))])


@takes_output_shape
@dataclass(eq=False)
class MultiHeadAttention(HeadedAttention):
    """Multi-head attention: each head projects query, value and key by its own weights; the results are projected back.

    Inputs are query, value (default: query) and key (default: value).  Called with ``use_causal_mask=True`` no step
    sees a later one, with ``attention_mask``, of (batch, queries, keys), only where it is True, and with
    ``return_attention_scores=True`` it returns the weights of each head, too.  Masked keys and values are not seen.

    - num_heads: the number of heads.
    - key_dim, value_dim: the features of a head; values have as many as keys by default.
    - dropout: the fraction of the weights that is dropped in training.
    - use_bias: whether projections have a bias.
    - output_dim, output_shape: the features of the output; by default as many as the query has.
    - causal, return_attention_scores: settings of a call, for every call.
    - attention_axes: the axes over which is attended, for inputs with more than one axis of steps.
    - kernel_initializer: the initial values of the kernels of the projections.
    - bias_initializer: those of their biases.

    >>> x = np.ones((2, 5, 8), np.float32)
    >>> layer = pb.layers.multi_head_attention(num_heads=2, key_dim=4, causal=True)
    >>> layer(x).shape
    (2, 5, 8)
    >>> layer.query.kernel.shape
    (8, 2, 4)
    """

    num_heads: int
    key_dim: int
    value_dim: int | None = None
    dropout: float = 0.0
    use_bias: bool = True
    output_dim: int | None = None
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    causal: bool = False
    return_attention_scores: bool = False
    output_shape: Any = field(default=None, kw_only=True)
    attention_axes: Sequence[int] | int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        optional = [name for name in ("value_dim", "output_dim", "sliding_window") if getattr(self, name) is not None]
        check_counts(self, "num_heads", "key_dim", *optional)
        check_shares(self, "dropout")
        self._activity = None  # as in Keras, it is that of the projections
        self.size = self.key_dim

    def build(self, *shapes: Shape) -> None:
        small, wide = (self.num_heads, self.key_dim), (self.num_heads, self.value_dim or self.key_dim)
        output_shape: Any = self.wanted_shape  # type: ignore[attr-defined]
        wanted = output_shape or self.output_dim or shapes[0][-1]
        out = tuple(wanted) if isinstance(wanted, list | tuple) else (wanted,)
        self.build_projections(shapes, small, small, wide, wide, out)

    def find_axes(self, rank: int) -> tuple[int, ...]:
        axes: Any = self.attention_axes
        if axes is None:
            return super().find_axes(rank)
        if {0, rank - 1} & set(resolve_axes(rank, axes, self.name)):
            raise ArgumentError(f"{self.name}: attention_axes must be from 1 to {rank - 2}, got {axes!r}.")
        return tuple(axis % rank for axis in (axes if isinstance(axes, list | tuple) else [axes]))


def _spread(allowed: Mask, rank: int) -> Mask:
    """Return a mask of (batch, queries, keys) with axes for what is between: heads and others."""
    if allowed is None or allowed.ndim in (2, rank):
        return allowed
    between = (1,) * (rank - allowed.ndim)
    return np.reshape(allowed, (allowed.shape[0], *between, *allowed.shape[1:]))


@dataclass(eq=False)
class GroupQueryAttention(HeadedAttention):
    """Attention in which several heads of the query share the key and the value of one head.

    Inputs and settings of a call are those of ``multi_head_attention``.

    - head_dim: the features of a head.
    - num_query_heads: the number of heads.
    - num_key_value_heads: the number of heads of key and value, which divides it.
    - dropout: the fraction of the weights that is dropped in training.
    - use_bias: whether projections have a bias.
    - kernel_initializer: the initial values of the kernels of the projections.
    - bias_initializer: those of their biases.

    >>> layer = pb.layers.group_query_attention(head_dim=4, num_query_heads=4, num_key_value_heads=2)
    >>> layer(np.ones((2, 5, 8), np.float32)).shape, layer.key.kernel.shape
    ((2, 5, 8), (8, 2, 4))
    """

    head_dim: int
    num_query_heads: int
    num_key_value_heads: int
    dropout: float = 0.0
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"

    rank = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "head_dim", "num_query_heads", "num_key_value_heads")
        check_shares(self, "dropout")
        if self.num_query_heads % self.num_key_value_heads:
            raise ArgumentError(
                f"{self.name}: num_query_heads={self.num_query_heads} is not a multiple of "
                f"num_key_value_heads={self.num_key_value_heads}."
            )
        self.size = self.head_dim

    def build(self, *shapes: Shape) -> None:
        many, few = (self.num_query_heads, self.head_dim), (self.num_key_value_heads, self.head_dim)
        self.build_projections(shapes, many, few, few, many, shapes[0][-1:])

    def share_heads(self, x: Value) -> Any:
        return np.repeat(x, self.num_query_heads // self.num_key_value_heads, axis=2)


# ---- positions


@dataclass(eq=False)
class PositionalEncoding(Layer):
    """Adds positions to sequences, as sines and cosines of increasing wavelengths.

    - max_wavelength: the longest wavelength.

    >>> pb.layers.positional_encoding()(np.zeros((1, 2, 4))).round(3)
    array([[[0.   , 1.   , 0.   , 1.   ],
            [0.841, 0.54 , 0.01 , 1.   ]]])
    """

    max_wavelength: float = 10000.0
    rank = 2
    supports_masking = True

    def call(self, x: Value) -> Any:
        steps, features = x.shape[1:]
        half = (features + 1) // 2
        waves = self.max_wavelength ** (-np.arange(half) / half)
        angles = np.arange(steps)[:, None] * waves
        table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(steps, 2 * half)[:, :features]
        return x + table.astype(x.dtype)


@dataclass(eq=False)
class PositionEmbedding(Layer):
    """A learned vector for each position, in the shape of the input: ``x + layer(x)`` adds positions to sequences.

    - sequence_length: the largest number of steps.

    >>> layer = pb.layers.position_embedding(10)
    >>> layer(np.ones((2, 5, 3))).shape, layer.embeddings.shape
    ((2, 5, 3), (10, 3))
    """

    sequence_length: int
    embeddings_initializer: InitializerLike = "glorot_uniform"
    embeddings_regularizer: RegularizerLike | None = None
    embeddings_constraint: ConstraintLike | None = None
    rank = 2
    supports_masking = True
    argument_checks = ((check_counts, "sequence_length"),)

    def build(self, shape: Shape) -> None:
        self.embeddings = self.add_weight_by_arguments("embeddings", (self.sequence_length, shape[-1]))

    def call(self, x: Value) -> Any:
        if x.shape[1] > self.sequence_length:
            raise ShapeError(f"{x.shape[1]} steps are more than sequence_length={self.sequence_length}.")
        if x.shape[-1] != self.embeddings.shape[-1]:
            raise ShapeError(f"expected {self.embeddings.shape[-1]} features, got {x.shape[-1]}.")
        return np.broadcast_to(np.expand_dims(self.embeddings[: x.shape[1]], 0), x.shape)
