"""Preprocessing layers: from raw numbers and text to inputs of other layers; some learn from data by ``adapt``."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from pullback.core.convert import get_default_dtype
from pullback.core.tensor import Tensor, strip
from pullback.core.variable import get_trace
from pullback.errors import ArgumentError, CompileError, DataError, ShapeError
from pullback.numerics.axis_arguments import resolve_axes
from pullback.numerics.hashes import compute_farm_hash, compute_sip_hash
from pullback.train.data.dataset import Dataset
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import UnknownShape, check_choice, check_counts, check_numbers_below
from pullback.typing import Array, Shape, TensorLike, Value

__all__ = [
    "CategoryEncoding", "Discretization", "Hashing", "IntegerLookup", "Normalization", "Rescaling", "StringLookup",
    "TextVectorization",
]  # fmt: skip

Batches: TypeAlias = "TensorLike | Dataset | Iterable[TensorLike]"  # an array, or an iterable of arrays
MODES = ("int", "one_hot", "multi_hot", "count")
EPSILON = 1e-7  # as in Keras
PUNCTUATION = re.compile(r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']')


def _iterate_batches(data: Batches) -> Iterator[Array]:
    """Iterate over the arrays of a dataset or another iterable; an array, or a list of numbers or texts, is one."""
    if (
        isinstance(data, np.ndarray | Tensor | str)
        or not isinstance(data, Iterable)
        or (isinstance(data, list | tuple) and not isinstance(data[0] if data else None, np.ndarray | Tensor))
    ):
        yield np.asarray(data)
    else:
        for batch in data:
            yield np.asarray(batch[0] if isinstance(batch, tuple) else batch)


def encode_classes(x: Value, mode: str, depth: int, weights: Value | None = None) -> Any:
    """Return class numbers as they are, or as vectors of this length: one-hot, multi-hot or counts.

    Numbers below 0 count for nothing.

    >>> encode_classes(np.array([[0, 2, 2]]), "count", 3)
    array([[1., 0., 2.]], dtype=float32)
    """
    if mode == "int":
        return x
    if mode == "one_hot" and x.ndim > 1 and x.shape[-1] == 1:
        x = x[..., 0]
    hot = np.equal(np.expand_dims(x, -1), np.arange(depth)).astype(get_default_dtype())
    if mode == "one_hot":
        return hot
    if weights is not None:
        hot = hot * np.expand_dims(weights, -1).astype(hot.dtype)
    axis = -2 if x.ndim > 0 else -1
    return np.max(hot, axis=axis, initial=0.0) if mode == "multi_hot" else np.sum(hot, axis=axis)


def find_encoded_shape(shape: UnknownShape, mode: str, depth: int) -> UnknownShape:
    """Return the shape of an example that ``encode_classes`` makes of one of this shape.

    >>> find_encoded_shape((None,), "count", 3), find_encoded_shape((5,), "one_hot", 3)
    ((3,), (5, 3))
    """
    if mode == "int":
        return shape
    if mode == "one_hot":
        return (*(shape[:-1] if shape and shape[-1] == 1 else shape), depth)
    return (*shape[:-1], depth)


# ---- numbers


@dataclass(eq=False)
class Rescaling(Layer):
    """``x * scale + offset``.

    - scale: the factor, or one for each channel.
    - offset: what is added, or one for each channel.

    >>> pb.layers.rescaling(1 / 4)(np.array([[0, 1, 4]]))
    array([[0.  , 0.25, 1.  ]], dtype=float32)
    """

    scale: float | Sequence[float]
    offset: float | Sequence[float] = 0.0
    supports_masking = True

    def call(self, x: Value) -> Any:
        dtype = x.dtype if x.dtype.kind == "f" else get_default_dtype()
        scale, offset = (np.asarray(n, dtype) for n in (self.scale, self.offset))
        return x.astype(dtype) * scale + offset


@dataclass(eq=False)
class Normalization(Layer):
    """Shifts and scales features to mean 0 and variance 1; ``adapt`` finds both in data.

    - axis: the axes whose elements have a mean of their own; None for one mean of everything.
    - mean, variance: given, in place of ``adapt``.
    - invert: whether the inverse is applied: from normalized numbers back.

    >>> layer = pb.layers.normalization()
    >>> layer.adapt(np.array([[1.0, 10.0], [3.0, 30.0]], np.float32))
    >>> layer(np.array([[1.0, 30.0]], np.float32))
    Tensor([[-1., 1.]], dtype=float32)
    """

    axis: int | Sequence[int] | None = -1
    mean: Any = None
    variance: Any = None
    invert: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.mean is None) != (self.variance is None):
            raise ArgumentError(f"{self.name}: give both mean and variance, or neither and call adapt.")

    def build(self, shape: Shape) -> None:
        axes: tuple[int, ...] = () if self.axis is None else resolve_axes(len(shape) + 1, self.axis, self.name)
        if 0 in axes:
            raise ArgumentError(f"{self.name}: axis 0 is the batch; take axes of the examples.")
        self._kept = tuple(sorted(axes))
        if self.mean is None:
            size = tuple(shape[i - 1] for i in self._kept)
            self.adapted_mean = self.weight("mean", size, "zeros", trainable=False)
            self.adapted_variance = self.weight("variance", size, "ones", trainable=False)
            self.count = self.weight("count", (), "zeros", trainable=False, dtype=np.int64)

    def adapt(self, data: Batches) -> None:
        """Find mean and variance of the features in data.

        - data: an array, a Dataset of batches, or another iterable of batches.
        """
        if self.mean is not None:
            raise ArgumentError(f"{self.name}.adapt: mean and variance were given already.")
        count, total, squares = 0, np.zeros(()), np.zeros(())
        shift: Any = None
        for batch in _iterate_batches(data):
            batch = batch[:, None] if batch.ndim == 1 else batch
            self.build_for([batch.shape[1:]])
            rest = tuple(i for i in range(batch.ndim) if i not in self._kept)
            x = batch.astype(np.float64)
            shift = x.mean(axis=rest, keepdims=True) if shift is None else shift  # avoids cancellation
            x = x - shift
            total, squares = total + x.sum(axis=rest), squares + (x * x).sum(axis=rest)
            count += math.prod(batch.shape[i] for i in rest)
        if not count:
            raise DataError(f"{self.name}.adapt: there is no data.")
        mean = total / count
        dtype = self.adapted_mean.dtype
        self.adapted_mean.assign(np.asarray(mean + np.reshape(shift, mean.shape), dtype))
        self.adapted_variance.assign(np.asarray(squares / count - mean * mean, dtype))
        self.count.assign(np.int64(count))

    def call(self, x: Value) -> Any:
        dtype = x.dtype if x.dtype.kind == "f" else get_default_dtype()
        shape = tuple(n if i in self._kept else 1 for i, n in enumerate(x.shape))
        if self.mean is None:
            mean, variance = np.reshape(self.adapted_mean, shape), np.reshape(self.adapted_variance, shape)
        else:
            mean, variance = (np.broadcast_to(np.asarray(n, dtype), shape) for n in (self.mean, self.variance))
        scale = np.maximum(np.sqrt(variance), EPSILON)
        return x.astype(dtype) * scale + mean if self.invert else (x.astype(dtype) - mean) / scale


@dataclass(eq=False)
class Discretization(Layer):
    """The number of the bin that each element is in; ``adapt`` finds bins with about equally many elements.

    - bin_boundaries: where a new bin begins, in increasing order.
    - num_bins: in place of the boundaries: how many bins ``adapt`` makes.
    - epsilon: the precision of ``adapt``.
    - output_mode: "int", or vectors of bins: "one_hot", "multi_hot" or "count".

    >>> pb.layers.discretization([0.0, 1.0, 2.0])(np.array([[-1.5, 1.0, 3.4]]))
    array([[0, 2, 3]])
    """

    bin_boundaries: Sequence[float] | None = None
    num_bins: int | None = None
    epsilon: float = 0.01
    output_mode: str = "int"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "output_mode", *MODES)
        if (self.bin_boundaries is None) == (self.num_bins is None):
            raise ArgumentError(f"{self.name}: give either bin_boundaries, or num_bins and call adapt.")
        if self.num_bins is not None:
            check_counts(self, "num_bins")
        self._boundaries = None if self.bin_boundaries is None else sorted(float(n) for n in self.bin_boundaries)

    def adapt(self, data: Batches) -> None:
        """Find boundaries between bins with about equally many elements of the data.

        - data: an array, a Dataset of batches, or another iterable of batches.
        """
        if self.num_bins is None:
            raise ArgumentError(f"{self.name}.adapt: bin_boundaries were given already.")
        summary = np.zeros((2, 0))
        for batch in _iterate_batches(data):
            summary = np.concatenate([summary, _summarize(batch, self.epsilon)], axis=1)
            summary = _compress(summary[:, np.argsort(summary[0], kind="stable")], self.epsilon)
        if not summary.size:
            raise DataError(f"{self.name}.adapt: there is no data.")
        self._boundaries = _compress(summary, 1.0 / self.num_bins)[0, :-1].tolist()

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        adapted = self.num_bins is not None and self._boundaries is not None
        return config | {"bin_boundaries": self._boundaries, "num_bins": None} if adapted else config

    def call(self, x: Value) -> Any:
        if self._boundaries is None:
            raise ArgumentError(f"{self.name}: call adapt(data) first: there are no boundaries yet.")
        passed = np.greater_equal(np.expand_dims(strip(x), -1), np.asarray(self._boundaries, np.float32))
        places = np.sum(passed.astype(np.int64), axis=-1)
        return encode_classes(places, self.output_mode, len(self._boundaries) + 1)


def _summarize(x: Array, epsilon: float) -> Array:
    """Return a sample of the sorted elements, and how many each stands for."""
    ordered = np.sort(np.ravel(x).astype(np.float32))
    step = max(ordered.size * epsilon, 1)
    chosen = ordered[int(step - 1) :: int(step)]
    return np.stack([chosen, np.full_like(chosen, step)])


def _compress(summary: Array, epsilon: float) -> Array:
    """Return a summary with about ``1 / epsilon`` elements."""
    if summary.shape[1] * epsilon < 1:
        return summary
    shares = epsilon + np.arange(0.0, 1.0, epsilon)
    totals = summary[1].cumsum()
    bins = np.interp(shares, totals / totals[-1], summary[0])
    counts = np.interp(shares, totals / totals[-1], totals)
    return np.stack([bins, np.diff(counts, prepend=0.0)]).astype(np.float32)


@dataclass(eq=False)
class CategoryEncoding(Layer):
    """Class numbers as vectors.

    - num_tokens: the number of classes.
    - output_mode: "multi_hot" or "count" for one vector of each example, "one_hot" for one of each number.

    Called with ``count_weights``, counts are weighted.

    >>> pb.layers.category_encoding(4, "count")(np.array([[0, 2, 2]]))
    array([[1., 0., 2., 0.]], dtype=float32)
    """

    num_tokens: int
    output_mode: str = "multi_hot"
    argument_checks = ((check_counts, "num_tokens"), (check_choice, "output_mode", "multi_hot", "one_hot", "count"))

    def check_inputs(self, *xs: Value) -> None:
        check_numbers_below(self, xs[0], self.num_tokens)

    def call(self, x: Value, *, count_weights: Value | None = None) -> Any:
        self.check_inputs(x)
        if count_weights is not None and self.output_mode != "count":
            raise ArgumentError(f"{self.name}: count_weights are for output_mode='count'.")
        return encode_classes(strip(x), self.output_mode, self.num_tokens, count_weights)


# ---- text


class HostLayer(Layer):
    """The base of layers whose ``call`` is Python code on values, text among them: ``fit`` runs them before a step."""

    def runs_on_host(self) -> bool:
        return True

    def read_values(self, x: Value) -> Array:
        """Return the input as an array; raise an error while a function is being compiled."""
        if isinstance(x, Tensor) and get_trace() is not None:
            raise CompileError(
                f"layer '{self.name}': it looks values up in Python and cannot be compiled. Put it in front of a "
                "sequential or functional model, whose fit runs it before the compiled step; apply it to the data; or "
                "compile the model with eager=True."
            )
        return np.asarray(strip(x))


@dataclass(eq=False)
class Hashing(HostLayer):
    """The number of a bin for each text or integer, by a hash: no vocabulary is needed.

    The hash is FarmHash, with a salt SipHash: bins are Keras's.

    - num_bins: the number of bins.
    - mask_value: the element that stands for padding, which gets bin 0.
    - salt: a number, or two, that make other bins.
    - output_mode: "int", or vectors of bins: "one_hot", "multi_hot" or "count".

    >>> pb.layers.hashing(10)(np.array([["a"], ["b"], ["a"]])).ravel()
    array([9, 2, 9])
    """

    num_bins: int
    mask_value: Any = None
    salt: int | Sequence[int] | None = None
    output_mode: str = "int"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "num_bins")
        check_choice(self, "output_mode", *MODES)
        salt = self.salt
        key = salt if salt is None or isinstance(salt, list | tuple) else (salt, salt)
        if key is not None and (len(key) != 2 or not all(isinstance(n, int) for n in key)):
            raise ArgumentError(f"{self.name}: salt must be a whole number, or two, got {salt!r}.")
        self._key = None if key is None else (int(key[0]), int(key[1]))

    def _find_bin(self, token: object) -> int:
        if self.mask_value is not None and str(token) == str(self.mask_value):
            return 0
        first = 0 if self.mask_value is None else 1
        text = token if isinstance(token, bytes) else str(token).encode()
        found = compute_farm_hash(text) if self._key is None else compute_sip_hash(text, self._key)
        return first + found % max(self.num_bins - first, 1)

    def call(self, x: Value) -> Any:
        tokens = self.read_values(x)
        places = np.array([self._find_bin(token) for token in tokens.ravel().tolist()], np.int64)
        return encode_classes(places.reshape(tokens.shape), self.output_mode, self.num_bins)

    def output_shape(self, *shapes: UnknownShape, **_: Any) -> Any:
        return find_encoded_shape(shapes[0], self.output_mode, self.num_bins)


@dataclass(eq=False)
class Lookup(HostLayer):
    """The base of layers that map tokens to their numbers in a vocabulary, which is given or learnt by ``adapt``."""

    max_tokens: int | None = None
    num_oov_indices: int = 1
    mask_token: Any = None
    oov_token: Any = "[UNK]"
    vocabulary: Any = None
    idf_weights: Sequence[float] | None = None
    invert: bool = field(default=False, kw_only=True)
    output_mode: str = field(default="int", kw_only=True)
    pad_to_max_tokens: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "output_mode", *MODES, "tf_idf")
        if self.max_tokens is not None:
            check_counts(self, "max_tokens")
        if self.invert and self.output_mode != "int":
            raise ArgumentError(f"{self.name}: invert needs output_mode='int', got {self.output_mode!r}.")
        if self.pad_to_max_tokens and self.max_tokens is None:
            raise ArgumentError(f"{self.name}: pad_to_max_tokens needs max_tokens.")
        self._tokens: list[Any] = []
        self._weights: list[float] = []
        if self.vocabulary is not None:
            self.set_vocabulary(self.vocabulary, self.idf_weights)

    def as_token(self, token: Any) -> Any:
        """Return a token as the vocabulary has it."""
        raise NotImplementedError(f"{type(self).__name__} has no as_token(token).")

    def _count_special(self) -> int:
        return self.num_oov_indices + (self.mask_token is not None and self.output_mode == "int")

    def set_vocabulary(self, vocabulary: Any, idf_weights: Sequence[float] | None = None) -> None:
        """Set the vocabulary: a list of tokens, or a file with one in each line.

        - vocabulary: the tokens, with or without the special ones in front.
        - idf_weights: for ``output_mode="tf_idf"``, the weight of each token.
        """
        if isinstance(vocabulary, str | os.PathLike):
            with open(vocabulary, encoding="utf-8") as file:
                vocabulary = [line.rstrip("\n") for line in file]
        tokens = [self.as_token(token) for token in np.asarray(vocabulary).ravel().tolist()]
        weights = [float(n) for n in idf_weights or ()]
        special = self._list_special()
        if tokens[: len(special)] == special:
            tokens, weights = tokens[len(special) :], weights[len(special) :]
        if twice := [token for token, count in Counter(tokens).items() if count > 1]:
            raise ArgumentError(f"{self.name}: the vocabulary has {twice[0]!r} twice.")
        if self.max_tokens is not None and len(tokens) + len(special) > self.max_tokens:
            raise ArgumentError(f"{self.name}: {len(tokens)} tokens are more than max_tokens={self.max_tokens}.")
        if self.output_mode == "tf_idf" and len(weights) != len(tokens):
            raise ArgumentError(f"{self.name}: output_mode='tf_idf' needs idf_weights, one for each token.")
        self._tokens, self._weights = tokens, weights
        self._index = {token: i + len(special) for i, token in enumerate(tokens)}

    def _list_special(self) -> list[Any]:
        masked = self.mask_token is not None and self.output_mode == "int"
        return ([self.mask_token] if masked else []) + [self.oov_token] * self.num_oov_indices

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """Return the tokens in the order of their numbers.

        - include_special_tokens: whether those for padding and unknown tokens are in front.
        """
        return (self._list_special() if include_special_tokens else []) + list(self._tokens)

    def vocabulary_size(self) -> int:
        """Return how many numbers there are, special ones included."""
        return len(self._list_special()) + len(self._tokens)

    def adapt(self, data: Batches) -> None:
        """Learn the vocabulary: the tokens of the data, the most frequent ones first.

        - data: texts or integers: an array, a list, a Dataset of batches, or another iterable of batches.
        """
        if self.vocabulary is not None:
            raise ArgumentError(f"{self.name}.adapt: the vocabulary was given already.")
        documents: list[list[Any]] = []
        for batch in _iterate_batches(data):
            rows = batch.reshape(-1, 1) if batch.ndim < 2 else batch.reshape(len(batch), -1)
            documents += [[self.as_token(token) for token in row.tolist()] for row in rows]
        self.learn(documents)

    def learn(self, documents: Sequence[Sequence[Any]]) -> None:
        """Learn the vocabulary from lists of tokens."""
        counts = Counter(token for document in documents for token in document)
        for special in (self.mask_token, self.oov_token):
            counts.pop(special, None)
        ordered = sorted(counts, key=lambda token: (counts[token], token), reverse=True)
        if self.max_tokens is not None:
            ordered = ordered[: self.max_tokens - self._count_special()]
        held = Counter(token for document in documents for token in set(document))
        weights = [math.log(1 + len(documents) / (1 + held[token])) for token in ordered]
        self.set_vocabulary(ordered or [], weights)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return config | {"vocabulary": self._tokens or None, "idf_weights": self._weights or None}

    def find_numbers(self, tokens: Sequence[Any]) -> list[int]:
        """Return the number of each token; -1 for padding that counts for nothing."""
        found = []
        for given in tokens:
            token = self.as_token(given)
            if self.mask_token is not None and token == self.mask_token:
                found.append(0 if self.output_mode == "int" else -1)
            elif token in self._index:
                found.append(self._index[token])
            else:
                found.append(self._find_unknown(token))
        return found

    def _find_unknown(self, token: Any) -> int:
        if not self.num_oov_indices:
            raise DataError(f"{self.name}: {token!r} is not in the vocabulary, and num_oov_indices is 0.")
        first = self._count_special() - self.num_oov_indices
        if self.num_oov_indices == 1:
            return first
        if isinstance(token, int):
            return first + token % self.num_oov_indices
        return first + compute_farm_hash(str(token).encode()) % self.num_oov_indices

    def count_columns(self) -> int:
        """Return the length of the vectors of all modes but "int"."""
        return self.max_tokens if self.pad_to_max_tokens and self.max_tokens else self.vocabulary_size()

    def output_shape(self, *shapes: UnknownShape, **_: Any) -> Any:
        return find_encoded_shape(shapes[0], self.output_mode, self.count_columns())

    def encode(self, numbers: Array) -> Any:
        """Return numbers of tokens as ``output_mode`` says."""
        depth = self.count_columns()
        if self.output_mode != "tf_idf":
            return encode_classes(numbers, self.output_mode, depth)
        mean = sum(self._weights) / max(len(self._weights), 1)
        front = [mean] * len(self._list_special())
        weights = np.zeros(depth, get_default_dtype())
        weights[: len(front) + len(self._weights)] = front + self._weights
        return encode_classes(numbers, "count", depth) * weights

    def call(self, x: Value) -> Any:
        if not self._tokens:
            raise ArgumentError(f"{self.name}: there is no vocabulary yet: give vocabulary, or call adapt(data).")
        tokens = self.read_values(x)
        if self.invert:
            names = self.get_vocabulary()
            texts = [names[i] if 0 <= i < len(names) else self.oov_token for i in tokens.ravel().astype(int).tolist()]
            return np.array(texts).reshape(tokens.shape)
        numbers = np.array(self.find_numbers(tokens.ravel().tolist()), np.int64).reshape(tokens.shape)
        return self.encode(numbers)


@dataclass(eq=False)
class StringLookup(Lookup):
    """Maps texts to their numbers in a vocabulary, which is given or learnt by ``adapt``.

    - vocabulary: the texts, or a file with one in each line.
    - invert: whether numbers are mapped to texts.
    - output_mode: "int", or vectors: "one_hot", "multi_hot", "count" or "tf_idf".

    >>> layer = pb.layers.string_lookup(vocabulary=["a", "b"])
    >>> layer(np.array([["b", "z", "a"]]))
    array([[2, 0, 1]])
    """

    def as_token(self, token: Any) -> str:
        return token.decode() if isinstance(token, bytes) else str(token)


@dataclass(eq=False)
class IntegerLookup(Lookup):
    """Maps integers to their numbers in a vocabulary, which is given or learnt by ``adapt``.

    - vocabulary: the integers.
    - invert: whether numbers are mapped to integers.
    - output_mode: "int", or vectors: "one_hot", "multi_hot", "count" or "tf_idf".

    >>> layer = pb.layers.integer_lookup(vocabulary=[12, 36])
    >>> layer(np.array([[36, 7, 12]]))
    array([[2, 0, 1]])
    """

    oov_token: Any = -1

    def as_token(self, token: Any) -> int:
        return int(token)


@dataclass(eq=False)
class TextVectorization(HostLayer):
    """Texts as numbers of their words: standardizes, splits, and looks words up in a vocabulary.

    - max_tokens: the largest size of the vocabulary, with 0 for padding and 1 for unknown words.
    - standardize: "lower_and_strip_punctuation", "lower", "strip_punctuation", None, or a function of a text.
    - split: "whitespace", "character", None, or a function from a text to a list.
    - ngrams: an n, to add groups of up to so many words, or a list of lengths of groups.
    - output_mode: "int", or vectors: "multi_hot", "count" or "tf_idf".
    - output_sequence_length: with "int", the length to which sequences are cut or padded.
    - vocabulary: the words, in place of ``adapt``.
    - idf_weights: for "tf_idf", the weight of each word.

    >>> layer = pb.layers.text_vectorization(output_sequence_length=4)
    >>> layer.adapt(["The cat sat.", "The dog!"])
    >>> layer.get_vocabulary()
    ['', '[UNK]', 'the', 'sat', 'dog', 'cat']
    >>> layer(["the dog ran"])
    array([[2, 4, 1, 0]])
    """

    max_tokens: int | None = None
    standardize: str | Callable[[str], str] | None = "lower_and_strip_punctuation"
    split: str | Callable[[str], list[str]] | None = "whitespace"
    ngrams: int | Sequence[int] | None = None
    output_mode: str = "int"
    output_sequence_length: int | None = None
    pad_to_max_tokens: bool = False
    vocabulary: Any = None
    idf_weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.standardize, str):
            check_choice(self, "standardize", "lower_and_strip_punctuation", "lower", "strip_punctuation")
        if isinstance(self.split, str):
            check_choice(self, "split", "whitespace", "character")
        if self.output_sequence_length is not None:
            check_counts(self, "output_sequence_length")
        self._lookup = StringLookup(
            self.max_tokens, mask_token="", vocabulary=self.vocabulary, idf_weights=self.idf_weights,
            output_mode=self.output_mode, pad_to_max_tokens=self.pad_to_max_tokens, name=f"{self.name}_lookup",
        )  # fmt: skip

    def adapt(self, data: Batches) -> None:
        """Learn the vocabulary: the words of the texts, the most frequent ones first.

        - data: texts: an array, a list, a Dataset of batches, or another iterable of batches.
        """
        texts = [text for batch in _iterate_batches(data) for text in batch.ravel().tolist()]
        self._lookup.learn([self.find_words(text) for text in texts])

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """Return the words in the order of their numbers.

        - include_special_tokens: whether those for padding and unknown words are in front.
        """
        return self._lookup.get_vocabulary(include_special_tokens)

    def set_vocabulary(self, vocabulary: Any, idf_weights: Sequence[float] | None = None) -> None:
        """Set the vocabulary: a list of words, or a file with one in each line.

        - vocabulary: the words.
        - idf_weights: for "tf_idf", the weight of each word.
        """
        self._lookup.set_vocabulary(vocabulary, idf_weights)

    def vocabulary_size(self) -> int:
        """Return how many numbers there are, special ones included."""
        return self._lookup.vocabulary_size()

    def get_config(self) -> dict[str, Any]:
        learnt = {"vocabulary": self._lookup.get_config()["vocabulary"]}
        return super().get_config() | learnt | {"idf_weights": self._lookup.get_config()["idf_weights"]}

    def output_shape(self, *shapes: UnknownShape, **_: Any) -> Any:
        if self.output_mode != "int":
            return (self._lookup.count_columns(),)
        return shapes[0] if self._keeps_shape() else (self.output_sequence_length,)

    def _keeps_shape(self) -> bool:
        """Return whether there is one number for each text: texts are not split."""
        whole = self.split is None and self.ngrams is None and self.output_sequence_length is None
        return whole and self.output_mode == "int"

    def find_words(self, text: Any) -> list[str]:
        """Return the words of a text, and groups of them with ``ngrams``."""
        text = text.decode() if isinstance(text, bytes) else str(text)
        if callable(self.standardize):
            text = self.standardize(text)
        elif self.standardize is not None:
            text = text.lower() if "lower" in self.standardize else text
            text = PUNCTUATION.sub("", text) if "strip_punctuation" in self.standardize else text
        split = self.split
        words = list(split(text)) if callable(split) else self._split_by_name(text)
        if self.ngrams is None:
            return words
        sizes = range(1, self.ngrams + 1) if isinstance(self.ngrams, int) else self.ngrams
        return [" ".join(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1)]

    def _split_by_name(self, text: str) -> list[str]:
        return text.split() if self.split == "whitespace" else list(text) if self.split == "character" else [text]

    def call(self, x: Value) -> Any:
        texts = self.read_values(x)
        if texts.ndim > 1 and texts.shape[-1] != 1:
            raise ShapeError(f"expected texts along one axis, or a last axis of length 1, got shape {texts.shape}.")
        rows = [self._lookup.find_numbers(self.find_words(text)) for text in texts.ravel().tolist()]
        cut = self.output_sequence_length if self.output_mode == "int" else None
        length = max((len(row) for row in rows), default=0) if cut is None else cut
        filler = 0 if self.output_mode == "int" else -1
        numbers = np.full((len(rows), length), filler, np.int64)
        for i, row in enumerate(rows):
            numbers[i, : len(row[:length])] = row[:length]
        if self._keeps_shape():
            numbers = numbers.reshape(texts.shape)  # one number for each text, as in Keras
        return self._lookup.encode(numbers)
