"""The base class of layers: arguments as fields, variables made for the first input shape, and a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from math import inf
from typing import Any, ClassVar

import numpy as np

from pullback.core.convert import as_shape, get_default_dtype, join_array
from pullback.core.suggestions import snake_case
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, find_variable, watch_below
from pullback.errors import ArgumentError, DataError, ShapeError
from pullback.names.answers import keyword_error
from pullback.train.arguments import check_count
from pullback.train.io.saving import load_weights
from pullback.train.io.structure import Configurable
from pullback.train.nn.initializers import InitializerLike, initializer
from pullback.train.nn.regularizers import RegularizerLike, regularizer
from pullback.typing import DType, Shape, TensorLike, Value

__all__ = [
    "Layer", "LayerError", "SelectOutput", "SymbolicTensor", "check_choice", "check_counts", "check_shares", "input",
]  # fmt: skip

NOT_PARTS = ("_activate", "_fixed", "_gate", "_penalized")  # attributes whose parts are counted elsewhere
UNBUILT: tuple[Shape, ...] = ()
_name_counts: Counter[str] = Counter()  # how many layers of each kind were made: for default names


@dataclass(eq=False)
class Layer(Configurable):
    """The base class of layers; a layer of your own has its arguments as fields, ``build`` and ``call``.

    ``build(shape)`` makes the variables for inputs of this shape, without the batch; ``call(x)``, or
    ``call(x, training)``, is the function.  Variables and layers in its attributes are its parts.

    >>> from dataclasses import dataclass
    >>> @dataclass(eq=False)
    ... class Scale(pb.layers.Layer):
    ...     start: float = 1.0
    ...     def build(self, shape):
    ...         self.factor = self.weight("factor", shape, pb.initializers.constant(self.start))
    ...     def call(self, x):
    ...         return x * self.factor
    >>> scale = Scale(2.0, name="scale")
    >>> scale(np.ones((1, 3), np.float32))
    Tensor([[2., 2., 2.]], dtype=float32)
    >>> scale.variables
    [Variable([2., 2., 2.], dtype=float32, name='scale/factor')]
    """

    name: str = field(default="", kw_only=True)
    trainable: bool = field(default=True, kw_only=True)
    input_shape: Sequence[int] | None = field(default=None, kw_only=True)  # of one example

    whole = True  # in a tree it is a leaf, not a tree of its fields
    rank: ClassVar[int | None] = None  # of one example, if the layer takes only one
    several: ClassVar[bool] = False  # whether a list of arrays is several inputs
    _takes_training = False
    min_inputs: ClassVar[int] = 0  # of ``call``
    max_inputs: ClassVar[float] = inf
    _built = False
    _shapes = UNBUILT

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        takes = dict(list(signature(cls.call).parameters.items())[1:])
        cls._takes_training = takes.pop("training", None) is not None
        places = [p for p in takes.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        cls.min_inputs = sum(p.default is p.empty for p in places)
        cls.max_inputs = inf if any(p.kind is p.VAR_POSITIONAL for p in takes.values()) else len(places)

    def __post_init__(self) -> None:
        kind = self.kind
        if not isinstance(self.name, str):
            raise ArgumentError(f"{kind}: the name must be text, got {type(self.name).__name__}.")
        self.numbered = not self.name  # whether its name is by default: the kind and a number
        if self.numbered:
            _name_counts[kind] += 1
            self.name = f"{kind}_{_name_counts[kind]}"
        if self.input_shape is not None:
            self.input_shape = as_shape(f"{self.name}: input_shape", self.input_shape)

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if name == "trainable":
            self._freeze_variables()
            for _, part in self.parts():
                if isinstance(part, Layer):
                    part.trainable = bool(value)

    @property
    def kind(self) -> str:
        """The class name in snake case, with which default names begin: ``"conv2d"`` of a ``Conv2d``."""
        return snake_case(type(self).__name__)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the inputs it was built for, without the batch; empty before it is built."""
        return self._shapes

    # ---- for subclasses

    def build(self, *shapes: Any, **_: Any) -> None:
        """Make the variables for inputs of these shapes; a layer without variables does nothing."""

    def call(self, *xs: Any, **settings: Any) -> Any:
        """Return the output for inputs with the batch along the first axis."""
        raise NotImplementedError(f"{type(self).__name__} has no call(x).")

    def check_inputs(self, *xs: Value) -> None:
        """Raise an error for input values that it cannot take: compiled programs do not check values."""

    # ---- calls

    def __call__(self, *inputs: Any, training: bool = False, **unknown: Any) -> Any:
        for keyword in unknown:
            raise keyword_error(f"layer '{self.name}'", keyword, ["training"])
        inputs = self._unpack_inputs(inputs)
        if any(isinstance(x, SymbolicTensor) for x in inputs):
            return SymbolicTensor.apply(self, inputs).unpack()
        xs = [_as_input(x, self.name) for x in inputs]
        if not self._built:
            self.build_for([x.shape[1:] for x in xs])
        self._check_rank(xs[0].shape)
        try:
            call: Any = self.call
            return call(*xs, training=training) if self._takes_training else call(*xs)
        except ShapeError as error:
            if isinstance(error, LayerError):
                raise  # it names the innermost layer
            shapes = " and ".join(str(x.shape) for x in xs)
            raise LayerError(f"layer '{self.name}', given shape {shapes}: {error}") from error

    def _unpack_inputs(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inputs, also of one list of them; raise an error if there are too many or too few."""
        if self.several and len(inputs) == 1 and isinstance(inputs[0], list | tuple):
            inputs = tuple(inputs[0]) if all(isinstance(x, INPUT_TYPES) for x in inputs[0]) else inputs
        least, most = self.min_inputs, self.max_inputs
        if not least <= len(inputs) <= most:
            further = "" if least == most else " or more" if most == inf else f" to {most}"
            raise ArgumentError(f"layer '{self.name}': expected {least}{further} input(s), got {len(inputs)}.")
        return inputs

    def build_for(self, shapes: Sequence[Shape]) -> None:
        """Make the variables for inputs of these shapes, without the batch, unless they are made already."""
        if self._built:
            return
        self._check_rank((0, *shapes[0]))
        try:
            with watch_below(-1):  # initial values are not traced, even in a function that is being compiled
                self.build(*shapes)
        except LayerError:
            raise
        except ShapeError as error:
            raise LayerError(f"layer '{self.name}', given shape {shapes[0]} for each example: {error}") from error
        self._built = True
        self._shapes = tuple(tuple(shape) for shape in shapes)
        if not self.trainable:
            self.trainable = False  # freezes the new variables too

    def is_built(self) -> bool:
        """Return whether it and all its layers have their variables."""
        return self._built and all(part.is_built() for _, part in self.parts() if isinstance(part, Layer))

    def output_shape(self, *shapes: Shape) -> Any:
        """Return the output shape for an example of this shape, or those of several outputs, by running on zeros."""
        with np.errstate(all="ignore"):  # only the shape matters
            out = self(*[np.zeros((1, *shape), get_default_dtype()) for shape in shapes])
        return tuple(y.shape[1:] for y in out) if isinstance(out, tuple) else tuple(out.shape[1:])

    def _check_rank(self, shape: Shape) -> None:
        if self.rank is not None and len(shape) != self.rank + 1:
            raise LayerError(
                f"layer '{self.name}': expected rank {self.rank + 1}, the batch included, got shape "
                f"{('batch', *shape[1:])}. layers.reshape or flatten may help."
            )

    def weight(
        self,
        name: str,
        shape: Sequence[int],
        initial: InitializerLike,
        trainable: bool = True,
        dtype: DType | None = None,
        penalty: RegularizerLike | None = None,
    ) -> Variable:
        """Return a new variable of this layer, to be stored in an attribute; ``trainable=False`` is for statistics.

        ``penalty`` is a regularizer, whose value is added to the loss.
        """
        values = initializer(initial, f"{self.name}: {name}")(tuple(shape), dtype or get_default_dtype())
        v = Variable(values, trainable, _make_unique_name(f"{self.name}/{name}"))
        self.__dict__.setdefault("_fixed", []).extend(() if trainable else [v])
        if penalty is not None:
            self.__dict__.setdefault("_penalized", []).append((v, regularizer(penalty, f"{self.name}: {name}")))
        return v

    # ---- parts

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the variables and layers in its attributes, and in lists and dicts there, with their names."""
        for key, value in vars(self).items():
            if isinstance(value, PART_TYPES) and key not in NOT_PARTS:
                yield from _find_parts(key, value)

    def named_variables(self, where: str = "") -> dict[str, Variable]:
        """Return every variable by its path in this layer, as ``"dense_1/kernel"`` in a model: its name in files.

        >>> model = pb.sequential([pb.layers.dense(3), pb.layers.dense(1, use_bias=False)])
        >>> model.build([2])
        >>> {name: v.shape for name, v in model.named_variables().items()}
        {'dense_1/kernel': (2, 3), 'dense_1/bias': (3,), 'dense_2/kernel': (3, 1)}
        """
        found: dict[str, Variable] = {}
        seen: set[int] = set()
        for name, part in self.parts():
            own = {f"{where}{name}": part} if isinstance(part, Variable) else part.named_variables(f"{where}{name}/")
            for key, v in own.items():
                if id(v) in seen:
                    continue
                if key in found:
                    raise ArgumentError(
                        f"{self.name}: two variables would be called {key!r} in files. Give a layer another name."
                    )
                seen.add(id(v))
                found[key] = v
        return found

    @property
    def variables(self) -> list[Variable]:
        """All variables, also those that are not trained."""
        return list(self.named_variables().values())

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that training changes."""
        return [v for v in self.variables if v.trainable]

    def penalties(self) -> Any:
        """Return the sum of the regularizers' values, to be added to the loss; None if there are none.

        >>> layer = pb.layers.dense(2, kernel_initializer="ones", kernel_regularizer=pb.regularizers.l2(0.5))
        >>> y = layer(np.ones((1, 3), np.float32))
        >>> layer.penalties()
        Tensor(3., dtype=float32)
        """
        found = [cost(v) for v, cost in self.find_regularized(set())]
        return sum(found[1:], found[0]) if found else None

    def find_regularized(self, seen: set[int]) -> Iterator[tuple[Variable, Any]]:
        """Iterate over variables with their regularizers, of this layer and its parts; a shared layer counts once."""
        if id(self) not in seen:
            seen.add(id(self))
            yield from self.__dict__.get("_penalized", ())
            for _, part in self.parts():
                if isinstance(part, Layer):
                    yield from part.find_regularized(seen)

    def every_layer(self) -> Iterator[Layer]:
        """Iterate over this layer, its layers, and theirs."""
        yield self
        for _, part in self.parts():
            if isinstance(part, Layer):
                yield from part.every_layer()

    def generators(self) -> Iterator[np.random.Generator]:
        """Iterate over the random generators of layers with a seed, whose states checkpoints store."""
        yield from (x for x in vars(self).values() if isinstance(x, np.random.Generator))
        for _, part in self.parts():
            if isinstance(part, Layer):
                yield from part.generators()

    def get_weights(self) -> list[Any]:
        """Return the values of all variables, as Keras does.

        >>> layer = pb.layers.dense(2, kernel_initializer="ones", input_shape=[1])
        >>> layer.build_for([(1,)])
        >>> layer.get_weights()
        [array([[1., 1.]], dtype=float32), array([0., 0.], dtype=float32)]
        """
        return [np.array(v.numpy()) for v in self.variables]

    def set_weights(self, weights: Sequence[Any] | Mapping[str, Any]) -> None:
        """Set the values of all variables from a list, as ``get_weights`` returns it, or from a dict by path.

        >>> layer = pb.layers.dense(2, use_bias=False)
        >>> layer.build_for([(1,)])
        >>> layer.set_weights([np.array([[3.0, 4.0]])])
        >>> layer(np.ones((1, 1), np.float32))
        Tensor([[3., 4.]], dtype=float32)
        """
        load_weights(self.named_variables(), weights)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments it was made with."""
        config = super().get_config()
        return config | {"name": ""} if self.numbered else config

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        """Return a copy with variables of its own, which start with the same values."""
        for v in self.variables:
            if id(v) not in memo:
                memo[id(v)] = Variable(v.numpy(), v.trainable, _make_unique_name(v.name))
        made = memo[id(self)] = object.__new__(type(self))
        made.__setstate__(deepcopy(self.__getstate__(), memo))
        return made

    def _freeze_variables(self) -> None:
        """Set the variables' ``trainable`` to the layer's, except for those that are never trained."""
        fixed = {id(v) for v in self.__dict__.get("_fixed", ())}
        for _, part in self.parts():
            if isinstance(part, Variable) and id(part) not in fixed:
                part.trainable = self.trainable


class LayerError(ShapeError):
    """A shape does not fit a layer; the message names the layer."""


class SymbolicTensor:
    """An input or output of a layer in a functional model: a shape, without the batch, and no values."""

    def __init__(
        self, shape: Shape, layer: Layer | None, inputs: tuple[SymbolicTensor, ...], dtype: DType | None = None
    ) -> None:
        self.shape, self.layer, self.inputs, self.dtype = shape, layer, inputs, dtype

    @classmethod
    def apply(cls, layer: Layer, inputs: Sequence[Any]) -> SymbolicTensor:
        """Return the output of a layer for symbolic inputs; makes the layer's variables."""
        others = [type(x).__name__ for x in inputs if not isinstance(x, SymbolicTensor)]
        if others:
            raise ArgumentError(
                f"layer '{layer.name}': got a symbolic tensor together with {others[0]}. "
                "Make it an input of the model: pb.input(shape)."
            )
        shapes = [x.shape for x in inputs]
        layer.build_for(shapes)
        return cls(layer.output_shape(*shapes), layer, tuple(inputs))

    def unpack(self) -> Any:
        """Return itself; of several outputs, a tuple of one for each."""
        if not (self.shape and isinstance(self.shape[0], tuple)):
            return self
        return tuple(SymbolicTensor.apply(SelectOutput(i), [self]) for i in range(len(self.shape)))

    def __repr__(self) -> str:
        made = "input" if self.layer is None else self.layer.name
        return f"SymbolicTensor(shape={('batch', *self.shape)}, {made})"


PART_TYPES = (Variable, Layer, list, tuple, dict)  # what parts are, or may be in: a quick test of all attributes
INPUT_TYPES = (Tensor, np.ndarray, SymbolicTensor)


@dataclass(eq=False)
class SelectOutput(Layer):
    """Selects one of several outputs of a layer, in a functional model."""

    index: int
    several = True

    def call(self, *xs: Value) -> Any:
        return xs[self.index]

    def output_shape(self, *shapes: Shape) -> Any:
        return shapes[0][self.index]


def input(shape: Sequence[int], dtype: DType | None = None) -> SymbolicTensor:
    """Return an input of a functional model: arrays of examples of this shape.

    >>> x = pb.input([8])
    >>> pb.layers.dense(3)(x)
    SymbolicTensor(shape=('batch', 3), dense...)
    """
    return SymbolicTensor(as_shape("input: shape", shape), None, (), dtype)


def _find_parts(key: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Variable | Layer):
        yield key, value
    elif isinstance(value, list | tuple | dict):
        for inner, x in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _find_parts(f"{key}/{inner}", x)


def _as_input(x: TensorLike, name: str) -> Any:
    return join_array(x) if isinstance(x, Tensor | np.ndarray) else np.asarray(x, _find_dtype(x, name))


def _find_dtype(x: TensorLike, name: str) -> np.dtype[Any]:
    """Return the dtype of an input that is no array: floats get the default dtype."""
    kind = np.asarray(x).dtype
    if kind.kind not in "fiub":
        raise DataError(f"layer '{name}': expected numbers, got dtype {kind}.")
    return get_default_dtype() if kind.kind == "f" else kind


def _make_unique_name(name: str) -> str:
    """Return the name, or one with a number if a live variable has it: names are unique in the process."""
    number, free = 1, name
    while find_variable(free) is not None:
        number += 1
        free = f"{name}_{number}"
    return free


def check_counts(layer: Layer, *names: str) -> None:
    """Raise an error unless these arguments of a layer are positive whole numbers."""
    for name in names:
        check_count(layer.name, name, getattr(layer, name))


def check_choice(layer: Layer, name: str, *choices: str) -> None:
    """Raise an error unless an argument is among these; TensorFlow.js's spelling is converted."""
    value = getattr(layer, name)
    made = snake_case(value) if isinstance(value, str) else value
    if made not in choices:
        raise ArgumentError(f"{layer.name}: {name} must be {' or '.join(map(repr, choices))}, got {value!r}.")
    setattr(layer, name, made)


def check_shares(layer: Layer, *names: str) -> None:
    """Raise an error unless these arguments are numbers of 0 or more and less than 1."""
    for name in names:
        value = getattr(layer, name)
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < 1:
            raise ArgumentError(f"{layer.name}: {name} must be a number, at least 0 and less than 1, got {value!r}.")
