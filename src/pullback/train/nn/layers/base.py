"""The base class of layers: arguments as fields, variables made for the first input shape, and a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field, fields
from inspect import signature
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, overload
from weakref import ref

import numpy as np

from pullback.core.convert import get_default_dtype, join_array
from pullback.core.suggestions import snake_case
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, find_variable, get_trace, watch_below
from pullback.errors import ArgumentError, CheckpointError, DataError, ShapeError
from pullback.names.answers import make_keyword_error
from pullback.numerics.dtypes import make_dtype
from pullback.train.dry_runs import dry_run, is_dry_run
from pullback.train.io.initial_values import check_room, take_initial_values
from pullback.train.io.saving import load_weights
from pullback.train.io.structure import Configurable
from pullback.train.loop.added_losses import add_loss
from pullback.train.loop.metrics.metric import Metric
from pullback.train.masks import Mask, get_first_mask, get_mask, has_masks, set_mask
from pullback.train.nn.constraints import ConstraintLike, constraint
from pullback.train.nn.initializers import InitializerLike, initializer
from pullback.train.nn.layers.checks import Checks, LayerError, UnknownShape, as_lengths_or_none
from pullback.train.nn.policies import as_layer_dtype
from pullback.train.nn.regularizers import RegularizerLike, regularizer
from pullback.typing import DType, Shape, TensorLike, Value

if TYPE_CHECKING:
    from pullback.train.nn.layers.symbolic import SymbolicTensor

NOT_PARTS = {  # attributes whose parts are counted elsewhere, or that are no parts
    "_activate", "_activity", "_added", "_calls", "_fixed", "_gate", "_initial_weights", "_penalized", "_states",
}  # fmt: skip
UNBUILT: tuple[Shape, ...] = ()
ARRAY_TYPES = (Tensor, np.ndarray)
NOTHING: Any = None
LENGTHS = 32, 96  # in place of unknown lengths: two, as what differs in the results is unknown too
LONG_LENGTHS = 512, 1536  # where those are too short
_name_counts: Counter[str] = Counter()  # how many layers of each kind were made: for default names

R_co = TypeVar("R_co", covariant=True)


class HasCall(Protocol[R_co]):
    """A layer whose ``call`` returns this: ``Any``, of most layers of the library, is every type."""

    @property
    def call(self) -> Callable[..., R_co]: ...


class CallContext(NamedTuple):
    """What the calls of layers inside a layer's call inherit."""

    training: bool
    losses: list[Any]  # of ``add_loss`` and activity regularizers


_context: ContextVar[CallContext | None] = ContextVar("layer_call", default=None)


class Symbolic:
    """The base of symbolic tensors, which a layer does not compute with but is applied to in a functional model."""

    shape: UnknownShape

    def apply_layer(self, layer: Layer, inputs: Sequence[Any], settings: dict[str, Any]) -> Any:
        """Return the symbolic output, or several, of a layer for inputs of which some are symbolic."""
        raise NotImplementedError(f"{type(self).__name__} has no apply_layer.")


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
    input_shape: Sequence[int | None] | None = field(default=None, kw_only=True)  # of one example
    batch_input_shape: Sequence[int | None] | None = field(default=None, kw_only=True)  # with the batch in front
    batch_size: int | None = field(default=None, kw_only=True)
    dtype: DType | None = field(default=None, kw_only=True)  # of variables; floats among inputs are cast to it
    weights: Any = field(default=None, kw_only=True)  # initial values of the variables
    activity_regularizer: RegularizerLike | None = field(default=None, kw_only=True)

    _internal: ClassVar[tuple[str, ...]] = (  # what dir() of a layer does not list
        "add_weight_by_arguments", "argument_checks", "build_for", "call_with_masks", "check_inputs",
        "collect_variables", "iterate_generators", "iterate_layers", "iterate_parts", "kind", "list_metrics",
        "list_structure", "max_inputs", "min_inputs", "mixes_examples", "numbered", "parts",
        "penalties", "rank", "register_call", "registered_name", "registry", "runs_on_host",
        "several", "shapes", "split_host_layers", "stack", "takes_list_of", "whole",
    )  # fmt: skip
    argument_checks: ClassVar[Checks] = ()  # of its own arguments
    _all_checks: ClassVar[Checks] = ()  # with those of base classes
    whole = True  # in a tree it is a leaf, not a tree of its fields
    rank: ClassVar[int | None] = None  # of one example, if the layer takes only one
    several: ClassVar[bool] = False  # whether a list of arrays is several inputs
    supports_masking = False  # whether the output has the mask of the input
    min_inputs: ClassVar[int] = 0  # of ``call``
    max_inputs: ClassVar[float] = inf
    _takes: ClassVar[frozenset[str]] = frozenset()  # the names of what ``call`` takes
    _packs: ClassVar[bool] = False  # whether a list of inputs goes to ``call`` as a list
    _counts_batch: ClassVar[bool] = False  # whether ``build`` takes shapes with the batch, as in Keras
    _built = False
    _shapes = UNBUILT
    _activity = NOTHING  # the activity regularizer
    _initial_weights = NOTHING
    _added = NOTHING  # the losses of the latest call

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # a dataclass would make one that shows all fields
        cls._all_checks = [check for part in reversed(cls.__mro__) for check in vars(part).get("argument_checks", ())]
        takes = dict(list(signature(cls.call).parameters.items())[1:])
        cls._takes = frozenset(takes)
        for name in ("training", "mask"):
            takes.pop(name, None)
        places = [p for p in takes.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        cls.min_inputs = sum(p.default is p.empty for p in places)
        cls.max_inputs = inf if any(p.kind is p.VAR_POSITIONAL for p in takes.values()) else len(places)
        cls._packs = not cls.several and not cls.__module__.startswith("pullback.")
        first = list(signature(cls.build).parameters)[1:2]
        cls._counts_batch = first == ["input_shape"]

    def __post_init__(self) -> None:
        kind = self.kind
        if not isinstance(self.name, str):
            raise ArgumentError(f"{kind}: the name must be text, got {type(self.name).__name__}.")
        self.numbered = not self.name  # whether its name is by default: the kind and a number
        if self.numbered:
            _name_counts[kind] += 1
            self.name = f"{kind}_{_name_counts[kind]}"
        if self.batch_input_shape is not None:
            self.batch_size, *self.input_shape = as_lengths_or_none(
                f"{self.name}: batch_input_shape", self.batch_input_shape
            )
        if self.input_shape is not None:
            self.input_shape = as_lengths_or_none(f"{self.name}: input_shape", self.input_shape)
        if self.dtype is not None:
            self.dtype = as_layer_dtype(self.dtype, self.name)
        if self.activity_regularizer is not None:
            self._activity = regularizer(self.activity_regularizer, f"{self.name}: activity_regularizer")
        for check, *arguments in self._all_checks:
            check(self, *arguments)

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if name == "trainable":
            self._freeze_variables()
            for layer in self._list_inner_layers():
                layer.trainable = bool(value)

    @property
    def kind(self) -> str:
        """The class name in snake case, with which default names begin: ``"conv2d"`` of a ``Conv2d``."""
        return snake_case(type(self).__name__)

    @property
    def variable_dtype(self) -> DType | None:
        """The dtype of its variables; None if it is the default."""
        return self.dtype

    @property
    def compute_dtype(self) -> str:
        """The dtype of its inputs and outputs, by name.

        >>> pb.layers.dense(1, dtype="float64").compute_dtype
        'float64'
        """
        return str(get_default_dtype() if self.dtype is None else self.dtype)

    @property
    def dtype_policy(self) -> str:
        """The name of its dtype: here the same as ``compute_dtype``."""
        return self.compute_dtype

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the inputs it was built for, without the batch; empty before it is built."""
        return self._shapes

    # ---- for subclasses

    def build(self, *shapes: Any, **_: Any) -> None:
        """Make the variables for inputs of these shapes; a layer without variables does nothing."""

    def call(self, *xs: Any, **settings: Any) -> Any:
        """Return the output for inputs with the batch along the first axis."""
        cure = "Rename forward to call" if hasattr(self, "forward") else "Define it: def call(self, x)"
        raise NotImplementedError(f"{type(self).__name__} has no method call(x). {cure}.")

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        """Return the mask of the output: that of the input, if the layer supports masks."""
        return get_first_mask(mask) if self.supports_masking else None

    def mixes_examples(self, training: bool) -> bool:
        """Return whether the output of an example may depend on others of the batch; of unknown classes it may."""
        return self._packs

    def runs_on_host(self) -> bool:
        """Return whether ``call`` is Python code on values, which may be text: it cannot be compiled."""
        return False

    def check_inputs(self, *xs: Value) -> None:
        """Raise an error for input values that it cannot take: compiled programs do not check values."""

    # ---- calls

    @overload
    def __call__(
        self,
        x: SymbolicTensor | Sequence[SymbolicTensor],
        *inputs: Any,
        training: bool | None = None,
        mask: Any = None,
        **settings: Any,
    ) -> SymbolicTensor: ...
    @overload
    def __call__(
        self: HasCall[Tensor],
        x: Tensor | Sequence[Tensor],
        *inputs: Any,
        training: bool | None = None,
        mask: Any = None,
        **settings: Any,
    ) -> Tensor: ...
    @overload
    def __call__(
        self: HasCall[R_co], *inputs: Any, training: bool | None = None, mask: Any = None, **settings: Any
    ) -> R_co: ...
    def __call__(self, *inputs: Any, training: bool | None = None, mask: Mask = None, **settings: Any) -> Any:
        if not inputs and "inputs" in settings:
            inputs = (settings.pop("inputs"),)
        inputs, packed = self._unpack_inputs(inputs)
        if settings:
            for keyword in settings.keys() - self._takes:
                raise make_keyword_error(f"layer '{self.name}'", keyword, ["training", "mask", *sorted(self._takes)])
        for x in (*inputs, mask, *settings.values()):
            if isinstance(x, Symbolic):
                named = {"training": training, "mask": mask}
                return x.apply_layer(self, inputs, settings | {k: x for k, x in named.items() if x is not None})
        xs = [_as_input(x, self) for x in inputs]
        for x in xs:
            if not x.ndim:
                raise LayerError(f"layer '{self.name}': expected an array with the batch along axis 0, got one number.")
        if not self._built:
            self.build_for([x.shape[1:] for x in xs])
        if xs and self.rank is not None:
            self._check_rank(xs[0].shape)
        masks = self._find_masks(inputs, mask) if mask is not None or has_masks() else None
        outer = _context.get()
        if training is None:
            training = outer is not None and outer.training
        if outer is not None and outer.training is training:
            context = outer
            y = self._call_with(xs, packed, masks, training, settings)
        else:
            context = CallContext(bool(training), [] if outer is None else outer.losses)
            token = _context.set(context)
            try:
                y = self._call_with(xs, packed, masks, context.training, settings)
            finally:
                _context.reset(token)
        if self._activity is not None:
            self._add_activity_losses(y, context)
        if outer is None and (context.losses or self._added):
            self._added = context.losses if get_trace() is None else None  # not of a program that is being compiled
        return y

    def _call_with(
        self, xs: list[Any], packed: bool, masks: list[Mask] | None, training: bool, settings: dict[str, Any]
    ) -> Any:
        """Return what ``call`` returns, with its mask set."""
        if "training" in self._takes:
            settings["training"] = training
        listed = self.several or packed
        if masks is not None:
            self._pass_masks(xs, masks, listed, settings)
        call: Any = self.call
        try:
            y = call(xs, **settings) if packed else call(*xs, **settings)
        except LayerError:
            raise  # it names the innermost layer
        except ShapeError as error:
            raise self._name_layer(error, xs) from error
        if y is None:
            raise LayerError(f"layer '{self.name}': call returned None, expected a tensor. Is a return missing?")
        if type(self).compute_mask is not Layer.compute_mask or (masks is not None and self.supports_masking):
            self._set_output_mask(y, xs if listed else xs[0], masks if listed or masks is None else masks[0])
        return y

    def _add_activity_losses(self, y: Any, context: CallContext) -> None:
        """Add the value of the activity regularizer for each example, as in Keras, of every output."""
        for out in _as_list(y):
            loss = self._activity(out) / max(out.shape[0], 1) if out.shape else self._activity(out)
            context.losses.append(loss)
            if not is_dry_run():
                add_loss(loss)

    def _name_layer(self, error: ShapeError, xs: list[Any]) -> LayerError:
        """Return an error of ``call`` as one that names the layer, and the shapes it is given and was built for."""
        shapes = " and ".join(str(x.shape) for x in xs)
        built = " and ".join(str(("batch", *shape)) for shape in self._shapes)
        expected = f", built for {built}" if len(self._shapes) == len(xs) else ""
        return LayerError(f"layer '{self.name}', given shape {shapes}{expected}: {error}")

    def _pass_masks(self, xs: list[Any], masks: list[Mask], listed: bool, settings: dict[str, Any]) -> None:
        """Set the masks of the inputs, and add them to the arguments of ``call`` if it takes them."""
        _set_masks(xs, masks)
        if "mask" in self._takes:
            settings["mask"] = masks if listed else masks[0]

    def _set_output_mask(self, y: Any, xs: Any, masks: Mask) -> None:
        found = self.compute_mask(xs, masks)
        for out, one in zip(_as_list(y), found if isinstance(found, list | tuple) else [found], strict=False):
            set_mask(out, one)

    def _find_masks(self, inputs: Sequence[Any], mask: Mask) -> list[Mask] | None:
        """Return the mask of each input, or None if there is no mask at all."""
        if mask is None:
            found = [get_mask(x) for x in inputs]
            return found if any(m is not None for m in found) else None
        found = list(mask) if isinstance(mask, list | tuple) and self._takes_masks_as_list(mask) else [mask]
        return [None if m is None else m if isinstance(m, Tensor) else np.asarray(m, bool) for m in found]

    def _takes_masks_as_list(self, masks: Sequence[Any]) -> bool:
        """Return whether a list is one mask for each input: not one mask written as nested lists."""
        return all(m is None or isinstance(m, np.ndarray | Tensor) for m in masks)

    def _unpack_inputs(self, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
        """Return the inputs, also of one list of them, and whether ``call`` takes them as a list."""
        packed = False
        if (self.several or self._packs) and len(inputs) == 1 and isinstance(inputs[0], list | tuple):
            listed = bool(inputs[0]) and all(isinstance(x, INPUT_TYPES) for x in inputs[0])
            packed = listed and not self.several and self.min_inputs <= 1
            inputs = tuple(inputs[0]) if listed else inputs
        least, most, count = self.min_inputs, self.max_inputs, 1 if packed else len(inputs)
        if not least <= count <= most:
            further = "" if least == most else " or more" if most == inf else f" to {most}"
            raise ArgumentError(f"layer '{self.name}': expected {least}{further} input(s), got {len(inputs)}.")
        return inputs, packed

    def takes_list_of(self, count: int) -> bool:
        """Return whether so many inputs go to ``call`` as one list: to that of a user's class with one parameter."""
        return self._packs and count > 1 and self.max_inputs == 1

    def build_for(self, shapes: Sequence[UnknownShape]) -> None:
        """Make the variables for inputs of these shapes, without the batch, unless they are made already."""
        if self._built:
            return
        if shapes:
            self._check_rank((0, *shapes[0]))
        try:
            with watch_below(-1):  # initial values are not traced, even in a function that is being compiled
                self._build_from(shapes)
        except LayerError:
            raise
        except ShapeError as error:
            raise LayerError(f"layer '{self.name}', given shape {shapes[0]} for each example: {error}") from error
        self._built = True
        stored: Any = tuple(tuple(shape) for shape in shapes)
        self._shapes = stored
        if self._initial_weights is not None:
            self.set_weights(self._initial_weights)
            self._initial_weights = None
        if not self.trainable:
            self.trainable = False  # freezes the new variables too

    def _build_from(self, shapes: Sequence[UnknownShape]) -> None:
        """Call ``build`` with shapes as its class takes them."""
        build: Any = self.build
        if self._counts_batch:
            shapes = [(self.batch_size, *shape) for shape in shapes]
        if self.takes_list_of(len(shapes)):
            build(list(shapes))
        else:
            build(*shapes)

    def is_built(self) -> bool:
        """Return whether it and all its layers have their variables."""
        return self._built and all(layer.is_built() for layer in self._list_inner_layers())

    def output_shape(self, *shapes: UnknownShape, **settings: Any) -> Any:
        """Return the output shape for an example of this shape, or those of several outputs, by running on zeros.

        Unknown lengths are None, in the result too.
        """
        if type(self).compute_output_shape is not Layer.compute_output_shape:
            return self._call_output_shape(shapes)
        if not any(n is None for shape in shapes for n in shape):
            return self._run_on_zeros(shapes, 1, settings)
        with suppress(ShapeError):  # too short for a window, perhaps
            return _mark_unknown(*(self._run_on_zeros(shapes, length, settings) for length in LENGTHS))
        return _mark_unknown(*(self._run_on_zeros(shapes, length, settings) for length in LONG_LENGTHS))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the output shape for an input shape, or a list of them, with the batch in front, as in Keras.

        input_shape: the shape with the batch in front, which may be None.

        >>> pb.layers.conv2d(8, 3).compute_output_shape((None, 10, 10, 3))
        (None, 8, 8, 8)
        """
        listed = bool(input_shape) and isinstance(input_shape[0], list | tuple)
        inputs = list(input_shape) if listed else [input_shape]
        self.build_for([tuple(shape[1:]) for shape in inputs])
        outputs = self.output_shape(*[tuple(shape[1:]) for shape in inputs])
        batch = inputs[0][0]
        if outputs and isinstance(outputs[0], tuple):
            return tuple((batch, *shape) for shape in outputs)
        return (batch, *outputs)

    def _call_output_shape(self, shapes: Sequence[UnknownShape]) -> Any:
        """Return the result of a subclass's own ``compute_output_shape``, without the batch."""
        inputs = [(None, *shape) for shape in shapes]
        outputs = self.compute_output_shape(inputs[0] if len(inputs) == 1 else inputs)
        if outputs and isinstance(outputs[0], list | tuple):
            return tuple(tuple(shape[1:]) for shape in outputs)
        return tuple(outputs[1:])

    def _run_on_zeros(self, shapes: Sequence[UnknownShape], length: int, settings: dict[str, Any]) -> Any:
        """Return the output shape, without the batch, by running on zeros with this length for unknown ones."""
        check_room(self, shapes)

        def make_zeros(shape: UnknownShape, dtype: Any = None) -> Any:
            lengths = [length if n is None else n for n in shape]
            return np.zeros((self.batch_size or 1, *lengths), dtype or get_default_dtype())

        def fill(x: Any) -> Any:
            return make_zeros(x.shape, getattr(x, "dtype", None)) if isinstance(x, Symbolic) else x

        inputs: Any = [make_zeros(shape) for shape in shapes]
        inputs = [inputs] if self.takes_list_of(len(inputs)) else inputs
        token = _context.set(CallContext(False, []))  # losses of this call do not count
        try:
            with dry_run(), np.errstate(all="ignore"):  # only the shape matters
                out = self(*inputs, **{key: fill(x) for key, x in settings.items()})
        finally:
            _context.reset(token)
        out = tuple(out.values()) if isinstance(out, dict) else out
        return tuple(y.shape[1:] for y in out) if isinstance(out, list | tuple) else tuple(out.shape[1:])

    def _check_rank(self, shape: UnknownShape) -> None:
        if self.rank is not None and len(shape) != self.rank + 1:
            cure = "layers.reshape or flatten may help"
            if len(shape) == self.rank:
                cure = f"Examples of one channel or feature have the shape {(*shape[1:], 1)}"
            raise LayerError(
                f"layer '{self.name}': expected rank {self.rank + 1}, the batch included, got shape "
                f"{('batch', *shape[1:])}. {cure}."
            )

    def weight(
        self,
        name: str,
        shape: Sequence[int],
        initial: InitializerLike,
        trainable: bool = True,
        dtype: DType | None = None,
        penalty: RegularizerLike | None = None,
        limit: ConstraintLike | None = None,
    ) -> Variable:
        """Return a new variable of this layer, to be stored in an attribute; ``trainable=False`` is for statistics.

        ``penalty`` is a regularizer, whose value is added to the loss; ``limit`` is a constraint.

        shape: the shape of the variable.
        initial: the initial values: a function of ``pb.initializers``, or its name.
        dtype: the dtype; that of the layer without it.
        """
        subject = f"{self.name}: {name}"
        if None in shape:
            raise ShapeError(f"{name} would have shape {tuple(shape)}: this length of the input must be known.")
        layer_dtype = self.variable_dtype
        wanted = make_dtype(dtype or (layer_dtype if layer_dtype is not None else get_default_dtype()))
        values = take_initial_values(f"{self.name}/{name}", shape, wanted)
        if values is None:
            values = initializer(initial, subject)(tuple(shape), wanted)
        v = Variable(values, trainable, make_unique_name(f"{self.name}/{name}"))
        self.__dict__.setdefault("_fixed", []).extend(() if trainable else [v])
        if penalty is not None:
            self.__dict__.setdefault("_penalized", []).append((v, regularizer(penalty, subject)))
        if limit is not None:
            v.constraint = constraint(limit, subject)
        return v

    def add_weight_by_arguments(self, name: str, shape: Sequence[int], prefix: str = "") -> Variable:
        """Return a new variable whose initializer, regularizer and constraint are the layer's arguments of this name.

        ``prefix`` is that of the arguments, if it is another one than the name.
        """
        prefix = prefix or name
        return self.weight(
            name,
            shape,
            getattr(self, f"{prefix}_initializer"),
            penalty=getattr(self, f"{prefix}_regularizer", None),
            limit=getattr(self, f"{prefix}_constraint", None),
        )

    def add_weight(
        self,
        name: str = "weight",
        shape: Sequence[int] = (),
        initializer: InitializerLike = "glorot_uniform",
        dtype: DType | None = None,
        trainable: bool = True,
        regularizer: RegularizerLike | None = None,
        constraint: ConstraintLike | None = None,
    ) -> Variable:
        """Return a new variable of this layer, to be stored in an attribute: ``weight`` by Keras's keywords.

        shape: the shape of the variable.
        initializer: the initial values: a function, or its name.
        dtype: the dtype; that of the layer without it.
        trainable: whether training changes it.
        regularizer: a term that is added to the loss.
        constraint: what is applied to it after each step.

        >>> layer = pb.layers.Layer(name="mine")
        >>> layer.add_weight(name="w", shape=(2,), initializer="ones")
        Variable([1., 1.], dtype=float32, name='mine/w')
        """
        return self.weight(name, shape, initializer, trainable, dtype, regularizer, constraint)

    def add_loss(self, loss: Any) -> None:
        """Add a number, computed in ``call``, to the loss of the model that is being called.

        loss: the number, a tensor.

        >>> class Spread(pb.layers.Layer):
        ...     def call(self, x):
        ...         self.add_loss(np.mean(x * x))
        ...         return x
        >>> layer = Spread()
        >>> y = layer(np.array([[1.0, 3.0]]))
        >>> layer.losses
        [np.float64(5.0)]
        """
        context = _context.get()
        if context is not None:
            context.losses.append(loss)
        if not is_dry_run():
            add_loss(loss)  # to the training step, if there is one

    # ---- parts

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the variables and layers in its attributes, and in lists and dicts there, with their names."""
        for key, value in vars(self).items():
            if type(value) not in SCALAR_TYPES and isinstance(value, PART_TYPES) and key not in NOT_PARTS:
                yield from _find_parts(key, value)

    def named_variables(self, where: str = "") -> dict[str, Variable]:
        """Return every variable by its path in this layer, as ``"dense_1/kernel"`` in a model: its name in files.

        where: a path that is put before each name.

        >>> model = pb.sequential([pb.layers.dense(3), pb.layers.dense(1, use_bias=False)])
        >>> model.build([2])
        >>> {name: v.shape for name, v in model.named_variables().items()}
        {'dense_1/kernel': (2, 3), 'dense_1/bias': (3,), 'dense_2/kernel': (3, 1)}
        """
        found: dict[str, Variable] = {}
        seen: set[int] = set()
        for name, part in self.parts():
            inner = {f"{where}{name}": part} if isinstance(part, Variable) else part.named_variables(f"{where}{name}/")
            for key, v in inner.items():
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
        found: dict[int, Variable] = {}
        self.collect_variables(found)
        return list(found.values())

    def collect_variables(self, found: dict[int, Variable]) -> None:
        """Add its variables, in the order of ``named_variables``, to a dict by their identities."""
        for part in self.iterate_parts():
            if isinstance(part, Variable):
                found.setdefault(id(part), part)
            else:
                part.collect_variables(found)

    def iterate_parts(self) -> Iterable[Any]:
        """Iterate over its variables and layers, in the order of ``parts`` but without their names."""
        return (part for _, part in self.parts())

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that training changes."""
        return [v for v in self.variables if v.trainable]

    @property
    def losses(self) -> list[Any]:
        """The values of regularizers, and those that the latest call added by ``add_loss``."""
        return [*self._compute_penalties(), *(self._added or ())]

    @property
    def metrics(self) -> list[Any]:
        """The metrics in its attributes; what ``call`` updates them with is in the history of ``fit``.

        >>> class Watch(pb.layers.Layer):
        ...     def __init__(self, **options):
        ...         super().__init__(**options)
        ...         self.size = pb.metrics.Mean(name="size")
        ...     def call(self, x):
        ...         self.size.update_state(np.abs(x))
        ...         return x
        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[1]), Watch()])
        >>> model.compile(pb.train.sgd(0.0), "mse")
        >>> model.fit(np.array([[1.0], [-3.0]]), np.zeros((2, 1)), verbose=0).history
        {'loss': [5.0], 'size': [2.0]}
        """
        return [x for x in vars(self).values() if isinstance(x, Metric)]

    def penalties(self) -> Any:
        """Return the sum of the regularizers' values, to be added to the loss; None if there are none.

        >>> layer = pb.layers.dense(2, kernel_initializer="ones", kernel_regularizer=pb.regularizers.l2(0.5))
        >>> y = layer(np.ones((1, 3), np.float32))
        >>> layer.penalties()
        Tensor(3., dtype=float32)
        """
        found = self._compute_penalties()
        return sum(found[1:], found[0]) if found else None

    def _compute_penalties(self) -> list[Any]:
        """Return the values of the regularizers of this layer and its parts; a shared layer counts once."""
        layers = {id(layer): layer for layer in self.iterate_layers()}.values()
        return [cost(v) for layer in layers for v, cost in vars(layer).get("_penalized", ())]

    def iterate_layers(self) -> Iterator[Layer]:
        """Iterate over this layer, its layers, and theirs."""
        yield self
        for layer in self._list_inner_layers():
            yield from layer.iterate_layers()

    def _list_inner_layers(self) -> list[Layer]:
        return [part for part in self.iterate_parts() if isinstance(part, Layer)]

    def list_structure(self) -> list[object]:
        """Return this layer, its layers and its variables, each followed by whether it is trained.

        Compiled steps are made anew when it has changed.
        """
        found: list[object] = [self, self.trainable]
        for value in self.__dict__.values():
            if type(value) not in SCALAR_TYPES and isinstance(value, PART_TYPES):
                _list_structure(value, found)
        return found

    def iterate_generators(self) -> Iterator[np.random.Generator]:
        """Iterate over the random generators of layers with a seed, whose states checkpoints store."""
        for layer in self.iterate_layers():
            yield from (x for x in vars(layer).values() if isinstance(x, np.random.Generator))

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

        weights: the arrays.

        >>> layer = pb.layers.dense(2, use_bias=False)
        >>> layer.build_for([(1,)])
        >>> layer.set_weights([np.array([[3.0, 4.0]])])
        >>> layer(np.ones((1, 1), np.float32))
        Tensor([[3., 4.]], dtype=float32)
        """
        named = self.named_variables()
        if isinstance(weights, list | tuple) and len(weights) != len(named):
            raise CheckpointError(
                f"{self.name}.set_weights: expected {len(named)} arrays ({', '.join(named)}), got {len(weights)}."
            )
        load_weights(named, weights)

    def __repr__(self) -> str:
        """Return the layer with the arguments that it was given, without its weights.

        >>> pb.layers.dense(3, activation="relu", name="hidden")
        Dense(units=3, activation='relu', name='hidden')
        """
        arguments = {f.name: getattr(self, f.name, f.default) for f in fields(self) if f.init and f.name != "weights"}
        defaults = {f.name: f.default for f in fields(self)}
        shown = [
            f"{k}={v!r}" for k, v in arguments.items() if k != "name" and not (v is defaults[k] or v == defaults[k])
        ]
        return f"{type(self).__name__}({', '.join([*shown, f'name={self.name!r}'])})"

    def count_params(self) -> int:
        """Return how many numbers its variables have.

        >>> pb.sequential([pb.layers.dense(3, input_shape=[4])]).count_params()
        15
        """
        return sum(v.size for v in self.variables)

    @property
    def trainable_weights(self) -> list[Variable]:
        """The variables that training changes; Keras's name of ``trainable_variables``."""
        return self.trainable_variables

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The variables that training does not change."""
        return [v for v in self.variables if not v.trainable]

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The variables that training does not change; Keras's name of ``non_trainable_variables``."""
        return self.non_trainable_variables

    @property
    def built(self) -> bool:
        """Whether it has its variables; layers in Keras's style may set it."""
        return self._built

    @built.setter
    def built(self, value: bool) -> None:
        self._built = bool(value)

    def reset_states(self) -> None:
        """Set the states of stateful recurrent layers to zero, in this layer and its parts."""
        for layer in self._list_inner_layers():
            layer.reset_states()

    def reset_state(self) -> None:
        """Set the states of stateful recurrent layers to zero; Keras's name of ``reset_states``."""
        self.reset_states()

    # ---- places in functional models

    def register_call(self, output: Any) -> None:
        """Remember the symbolic output of a call, as long as it exists."""
        calls = [one for one in self.__dict__.get("_calls", ()) if one() is not None]
        self.__dict__["_calls"] = [*calls, ref(output)]

    def _find_call(self) -> Any:
        calls = [output for one in self.__dict__.get("_calls", ()) if (output := one()) is not None]
        if not calls:
            raise ArgumentError(f"layer '{self.name}' was not applied to an input of a model yet: it has no output.")
        return calls[0]

    @property
    def output(self) -> Any:
        """The symbolic output in the model where it was applied first; a tuple if it has several."""
        return self._find_call().unpack()

    @property
    def input(self) -> Any:
        """The symbolic input in the model where it was applied first; a list if it has several."""
        inputs = self._find_call().inputs
        return inputs[0] if len(inputs) == 1 else list(inputs)

    # ---- files and copies

    def get_config(self) -> dict[str, Any]:
        """Return the arguments it was made with."""
        config = super().get_config() if _has_generated_init(type(self)) else self._collect_arguments()
        config.pop("weights", None)
        config = {key: x for key, x in config.items() if key not in BASE_FIELDS or x is not None}
        return config | {"name": ""} if self.numbered and "name" in config else config

    def _collect_arguments(self) -> dict[str, Any]:
        """Return the arguments of a class with an ``__init__`` of its own, from the attributes of the same names."""
        takes = list(signature(type(self)).parameters.values())
        named = [p for p in takes if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        missing = [p.name for p in named if p.default is p.empty and not hasattr(self, p.name)]
        if missing and type(self).get_config.__module__.startswith("pullback."):
            raise CheckpointError(
                f"save: {self.name}: what {type(self).__name__} was given for {missing[0]!r} is not known. Keep it in "
                "an attribute of that name, or write get_config; or write the variables alone: "
                "pb.train.save(path, model)."
            )
        found = {p.name: getattr(self, p.name) for p in named if hasattr(self, p.name)}
        if any(p.kind is p.VAR_KEYWORD for p in takes):
            found = {f.name: getattr(self, f.name) for f in fields(Layer)} | found
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in vars(self).items() if key not in ("_calls", "_added")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        """Return a copy with variables of its own, which start with the same values."""
        for v in self.variables:
            if id(v) not in memo:
                copy = memo[id(v)] = Variable(v.numpy(), v.trainable, make_unique_name(v.name))
                copy.constraint = v.constraint
        layer = memo[id(self)] = object.__new__(type(self))
        layer.__setstate__(deepcopy(self.__getstate__(), memo))
        return layer

    def _freeze_variables(self) -> None:
        """Set the variables' ``trainable`` to the layer's, except for those that are never trained."""
        fixed = {id(v) for v in self.__dict__.get("_fixed", ())}
        for _, part in self.parts():
            if isinstance(part, Variable) and id(part) not in fixed:
                part.trainable = self.trainable


def _get_weights(self: Layer) -> list[Variable]:
    """All variables, also those that are not trained."""
    return self.variables


def _set_weights(self: Layer, values: Sequence[Any] | None) -> None:
    self.__dict__["_initial_weights"] = values


Layer.weights = property(_get_weights, _set_weights)  # an argument by this name, and Keras's name of the variables
BASE_FIELDS = ("batch_input_shape", "batch_size", "dtype", "activity_regularizer")
PART_TYPES = (Variable, Layer, list, tuple, dict)  # what parts are, or may be in: a quick test of all attributes
INPUT_TYPES = (Tensor, np.ndarray, Symbolic)


def takes_output_shape(cls: Any) -> Any:
    """Let a layer class have an argument ``output_shape``, stored as ``wanted_shape``, beside the method."""
    cls.output_shape = Layer.output_shape
    set_attribute, get_config = cls.__setattr__, cls.get_config

    def store(self: Any, name: str, value: object) -> None:
        set_attribute(self, "wanted_shape" if name == "output_shape" else name, value)

    def list_arguments(self: Any) -> dict[str, Any]:
        config: dict[str, Any] = get_config(self)
        return config | {"output_shape": self.wanted_shape}

    cls.__setattr__, cls.get_config = store, list_arguments
    return cls


def _has_generated_init(cls: type) -> bool:
    """Return whether the constructor was generated from fields, so that all arguments are attributes."""
    owner = next(part for part in cls.__mro__ if "__init__" in vars(part))
    return "__dataclass_params__" in vars(owner)


def _set_masks(xs: Sequence[Any], masks: Sequence[Mask]) -> None:
    """Set the masks of inputs that have another one."""
    for x, mask in zip(xs, masks, strict=False):
        if mask is not None and get_mask(x) is not mask:
            set_mask(x, mask)


def _as_list(y: Any) -> list[Any]:
    return list(y) if isinstance(y, list | tuple) else [y]


def _mark_unknown(one: Any, other: Any) -> Any:
    """Return a shape, or several, with None for the lengths that differ."""
    if isinstance(one, tuple):
        return tuple(_mark_unknown(a, b) for a, b in zip(one, other, strict=True))
    return one if one == other else None


SCALAR_TYPES = frozenset((bool, int, float, str, type(None)))  # most attributes: a quicker test


def _list_structure(value: object, found: list[object]) -> None:
    if isinstance(value, Variable):
        found += value, value.trainable
    elif isinstance(value, Layer):
        found += value.list_structure()
    elif isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, PART_TYPES):
                _list_structure(part, found)


def _find_parts(key: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Variable | Layer):
        yield key, value
    elif isinstance(value, list | tuple | dict):
        for inner, x in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(x, PART_TYPES):
                yield from _find_parts(f"{key}/{inner}", x)


def _as_input(x: TensorLike, layer: Layer) -> Any:
    """Return an input as an array or a tensor; floats have the dtype of the layer, if it has one."""
    if isinstance(x, ARRAY_TYPES):
        array = join_array(x)
    elif layer.runs_on_host():
        return np.asarray(x)
    else:
        array = np.asarray(x, _find_dtype(x, layer.name))
    dtype: Any = layer.dtype
    if dtype is not None and array.dtype != dtype and array.dtype.kind == dtype.kind == "f":
        return array.astype(dtype)
    return array


def _find_dtype(x: TensorLike, name: str) -> np.dtype[Any]:
    """Return the dtype of an input that is no array: floats get the default dtype."""
    kind = np.asarray(x).dtype
    if kind.kind not in "fiub":
        raise DataError(f"layer '{name}': expected numbers, got dtype {kind}.")
    return get_default_dtype() if kind.kind == "f" else kind


def make_unique_name(name: str) -> str:
    """Return the name, or one with a number if a live variable has it: names are unique in the process."""
    number, free = 1, name
    while find_variable(free) is not None:
        number += 1
        free = f"{name}_{number}"
    return free
