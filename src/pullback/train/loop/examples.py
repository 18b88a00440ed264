"""Inputs, targets and weights as users give them, converted to tuples of arrays with examples along the first axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.core import tree
from pullback.core.convert import as_array, as_number
from pullback.core.suggestions import did_you_mean
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, DataError, ShapeError
from pullback.train.data.dataset import Dataset
from pullback.train.loop.model import TrainableModel
from pullback.train.loop.weights import compute_class_weights
from pullback.typing import Array, Shape, TensorLike

Arrays = tuple[Any, ...]  # of each input or output; a target or weight may be None
Examples = tuple[Arrays, Arrays, Arrays]  # inputs, targets, and weights or nothing
DataLike: TypeAlias = "TensorLike | Sequence[TensorLike] | Mapping[str, TensorLike]"  # one, or one for each
WeightLike: TypeAlias = "DataLike | None"
LARGE_ARRAY = 2**26  # bytes; floats of larger ones are cast batch by batch
TEXT_KINDS = "OSTU"  # of dtypes: objects, bytes, StringDType, text
TEXT_CURES = {  # by argument
    "x": " For columns of text see pb.layers.text_vectorization and string_lookup.",
    "y": " Give classes as whole numbers: np.unique(y, return_inverse=True)[1].",
    "sample_weight": "",
}
ClassWeight: TypeAlias = "Mapping[Any, Any] | Sequence[Any] | None"  # by class; of several outputs, one for each


def as_inputs(model: TrainableModel, dtype: np.dtype[Any], x: DataLike) -> Arrays:
    """Return the inputs as arrays; floats get the dtype of the model, those of a large array when they are read."""
    inputs = [x] if type(x) is np.ndarray else _list_parts(x, model.input_names, f"{model.name}: x")
    if isinstance(x, Mapping) and (missing := [name for name in model.input_names if x.get(name) is None]):
        raise ArgumentError(f"{model.name}: x: there is no array for {missing[0]!r}; there are {', '.join(x)}.")
    if len(inputs) > model.max_inputs:
        raise ShapeError(
            f"{model.name}: x is a list of {len(inputs)} arrays, one for each input, but the number of inputs is "
            f"{model.max_inputs}. If each array is one example: np.stack(x)."
        )
    takes_text = any(not _is_numeric(a) for a in inputs) and model.runs_on_host()
    xs = tuple([_as_array(a, dtype, model.name, "x", takes_text) for a in inputs])
    if any(a.ndim == 1 for a in xs) and len(xs) == len(model.shapes):
        xs = tuple(_add_feature_axis(a, shape, model.name) for a, shape in zip(xs, model.shapes, strict=True))
    _check_sizes(model.name, xs)
    model.check_inputs(*xs)
    return xs


def as_targets(
    name: str,
    outputs: Sequence[str],
    dtype: np.dtype[Any],
    y: DataLike | None,
    weight: WeightLike = None,
    class_weight: ClassWeight = None,
) -> tuple[Arrays, Arrays]:
    """Return the targets and the weights of the outputs as arrays; without weights these are empty."""
    targets = [y] if type(y) is np.ndarray else [] if y is None else _list_parts(y, outputs, f"{name}: y")
    ys = tuple([None if a is None else _as_array(a, dtype, name, "y") for a in targets])
    return ys, _as_weights(name, outputs, dtype, ys, weight, class_weight)


def join_examples(name: str, xs: Arrays, ys: Arrays, ws: Arrays) -> Examples:
    """Return inputs, targets and weights together; raise an error unless they have equally many examples."""
    _check_sizes(name, (*xs, *ys, *ws))
    return xs, ys, ws


def cast_examples(dtype: np.dtype[Any], examples: Examples) -> Examples:
    """Return a batch with floats of this dtype."""
    xs, ys, ws = (tuple([_cast(a, dtype) for a in part]) for part in examples)
    return xs, ys, ws


def _cast(a: Any, dtype: np.dtype[Any]) -> Any:
    return a.astype(dtype) if a is not None and a.dtype.kind == "f" and a.dtype != dtype else a


def flatten_examples(examples: Examples) -> Arrays:
    """Return the arrays of examples in a row: a dataset of them is quicker to read than one of tuples."""
    return tuple(a for part in examples for a in part if a is not None)


def make_grouping(examples: Examples) -> Callable[[Arrays], Examples]:
    """Return the function that makes a batch of ``flatten_examples`` inputs, targets and weights again."""
    xs, ys, ws = examples
    first, second = len(xs), len(xs) + len(ys)
    if all(a is not None for a in (*ys, *ws)):
        return lambda batch: (batch[:first], batch[first:second], batch[second:])

    def group(batch: Arrays) -> Examples:
        left = iter(batch)
        parts = [tuple(None if a is None else next(left) for a in part) for part in examples]
        return parts[0], parts[1], parts[2]

    return group


def needs_cast(dtype: np.dtype[Any], examples: Examples) -> bool:
    """Return whether some of the floats have another dtype than this."""
    return any(a is not None and a.dtype.kind == "f" and a.dtype != dtype for part in examples for a in part)


def _as_weights(
    name: str, outputs: Sequence[str], dtype: np.dtype[Any], ys: Arrays, weight: WeightLike, class_weight: ClassWeight
) -> Arrays:
    """Return the weights of each output's examples: sample weights times those of classes; empty if there are none."""
    if weight is None and class_weight is None:
        return ()
    parts: list[Any] = [None] * len(ys)
    if weight is not None:
        parts = _list_parts(weight, outputs, f"{name}: sample_weight")
        parts = parts * len(ys) if len(parts) == 1 else parts
    classes = _list_class_weights(class_weight, outputs, name)
    if len(parts) != len(ys) or len(classes) != len(ys):
        subject, count = ("sample_weight", len(parts)) if len(parts) != len(ys) else ("class_weight", len(classes))
        raise ArgumentError(f"{name}: {subject} has {count} parts, but the number of targets is {len(ys)}.")
    arrays = []
    for y, w, by_class in zip(ys, parts, classes, strict=True):
        array = None if w is None else _as_array(w, dtype, name, "sample_weight").astype(dtype, copy=False)
        if by_class is not None and y is not None:
            factors = compute_class_weights(name, y, by_class).astype(dtype)
            array = factors if array is None else array * factors.reshape(-1, *(1,) * (array.ndim - 1))
        arrays.append(array)
    return tuple(arrays)


def _list_class_weights(class_weight: ClassWeight, outputs: Sequence[str], name: str) -> list[Any]:
    """Return the weights by class of each output; a dict by class is for a single output."""
    if class_weight is None:
        return [None] * len(outputs)
    if isinstance(class_weight, Mapping) and class_weight and all(isinstance(key, str) for key in class_weight):
        return _list_parts(class_weight, outputs, f"{name}: class_weight")
    if isinstance(class_weight, list | tuple) and all(one is None or isinstance(one, Mapping) for one in class_weight):
        return list(class_weight)
    if len(outputs) > 1:
        raise ArgumentError(
            f"{name}: class_weight of a model with several outputs is a dict by output, or a list: "
            f"{{{outputs[0]!r}: {class_weight!r}}}."
        )
    return [class_weight]


def _check_sizes(name: str, arrays: Arrays) -> None:
    sizes = {len(a) for a in arrays if a is not None}
    if len(sizes) > 1:
        shapes = ", ".join(str(a.shape) for a in arrays if a is not None)
        raise ShapeError(
            f"{name}: inputs and targets (and weights) must have the same number of examples, got shapes {shapes}."
        )


def as_parts(batch: object, subject: str) -> tuple[Any, Any, Any]:
    """Return inputs, targets and weights of a batch: a pair, a triple with weights, or ``{"xs": …, "ys": …}``."""
    if isinstance(batch, dict) and batch.keys() == {"xs", "ys"}:
        return batch["xs"], batch["ys"], None
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise DataError(
            f"{subject}: expected pairs of inputs and targets, or triples with weights, got {type(batch).__name__}."
        )
    weight = batch[2] if len(batch) == 3 else None
    return batch[0], batch[1], None if isinstance(weight, tuple) and not weight else weight


def is_stream(x: object) -> bool:
    """Return whether ``x`` is not an array, or several, but something that gives batches.

    >>> is_stream(iter([1])), is_stream([[1.0], [2.0]]), is_stream(np.zeros(3))
    (True, False, False)
    """
    if isinstance(x, Dataset | Iterator):
        return True
    is_data = isinstance(x, np.ndarray | Tensor | list | tuple | Mapping | str) or hasattr(x, "__array__")
    return isinstance(x, Iterable) and not is_data


def split_examples(examples: Examples, share: float, name: str) -> tuple[Examples, Examples]:
    """Return the first examples, to train on, and the last ``share`` of them, to validate with."""
    at = _find_split(len(examples[0][0]), share, name)
    return _cut(examples, slice(None, at)), _cut(examples, slice(at, None))


def split_rows(data: Any, share: float, name: str) -> tuple[Any, Any]:
    """Return the first rows of a tree of arrays, and the last ``share`` of them."""
    arrays = tree.map_leaves(np.asarray, data, whole=tree.is_number_list)
    at = _find_split(len(tree.leaves(arrays)[0]), share, name)
    return tree.map_leaves(lambda a: a[:at], arrays), tree.map_leaves(lambda a: a[at:], arrays)


def _find_split(n: int, share: float, name: str) -> int:
    """Return how many of ``n`` examples are left to train on."""
    if not 0 <= as_number("fit", "validation_split", share) < 1:
        raise ArgumentError(f"{name}.fit: validation_split must be a share between 0 and 1, got {share!r}.")
    at = int(round(n * (1 - share), 6))  # 0.7 of 90 is 62.99999999999999
    if at in (0, n):
        raise ArgumentError(f"{name}.fit: validation_split={share} of {n} examples leaves none on one side.")
    return at


def _cut(examples: Examples, at: slice) -> Examples:
    xs, ys, ws = (tuple(None if a is None else a[at] for a in part) for part in examples)
    return xs, ys, ws


def _list_parts(data: DataLike, names: Sequence[str], subject: str) -> list[Any]:
    """Return the arrays of a dict by name, of a tuple, or of a list of arrays; anything else is one array."""
    if isinstance(data, Mapping):
        return take_named(data, names, subject)
    if isinstance(data, tuple) or (isinstance(data, list) and data and _is_array(data[0])):
        return list(data)
    return [data]


def take_named(values: Mapping[str, Any], names: Sequence[str], subject: str) -> list[Any]:
    """Return the values of a dict in the order of these names, None for one without; refuse other names."""
    for name in values:
        if name not in names:
            raise ArgumentError(
                f"{subject}: there is no {name!r}; there are {', '.join(names)}.{did_you_mean(name, names)}"
            )
    return [values.get(name) for name in names]


def take_every_named(values: Mapping[str, Any], names: Sequence[str], subject: str) -> list[Any]:
    """Return the values of a dict in the order of these names; refuse other names, and one without a value."""
    found = take_named(values, names, subject)
    if missing := [name for name, x in zip(names, found, strict=True) if x is None]:
        raise ArgumentError(f"{subject}: there is no array for {missing[0]!r}; there are {', '.join(values)}.")
    return found


def _is_array(x: object) -> bool:
    return x is None or isinstance(x, np.ndarray | Tensor) or (hasattr(x, "__array__") and hasattr(x, "shape"))


def _is_numeric(x: object) -> bool:
    return isinstance(x, Tensor) or (isinstance(x, np.ndarray) and x.dtype.kind not in TEXT_KINDS)


def _as_array(x: TensorLike, dtype: np.dtype[Any], name: str, argument: str, takes_text: bool = False) -> Array:
    if takes_text and not isinstance(x, np.ndarray | Tensor):
        x = np.asarray(x)
    try:
        array = x if isinstance(x, np.ndarray) else np.asarray(as_array(x, subject=f"{name}: {argument}"))
    except DataError as error:
        raise DataError(f"{error}{TEXT_CURES[argument] * str(error).endswith('got text.')}") from None
    if not array.ndim:
        raise ShapeError(f"{name}: {argument}: expected an array of examples, got one number.")
    kind = array.dtype.kind
    if kind not in "fiubc" and not (takes_text and kind in TEXT_KINDS):
        raise DataError(f"{name}: {argument}: expected numbers, got dtype {array.dtype}.{TEXT_CURES[argument]}")
    is_read_later = isinstance(x, np.memmap) or array.nbytes > LARGE_ARRAY
    return array.astype(dtype) if kind == "f" and array.dtype != dtype and not is_read_later else array


def _add_feature_axis(x: Array, shape: Shape, name: str) -> Array:
    """Return numbers as examples of one feature, as TensorFlow.js does; refuse a single example without a batch."""
    if x.ndim > 1 or not shape:
        return x
    if shape == (1,):
        return x.reshape(-1, 1)
    hint = " For one example: x[None]; for a dataset: dataset.batch(32)." if x.shape == shape else ""
    raise ShapeError(f"{name}: expected examples of shape {shape}, the batch in front, got shape {x.shape}.{hint}")
