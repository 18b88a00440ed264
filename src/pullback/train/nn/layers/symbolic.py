"""Symbolic tensors: inputs of functional models, outputs of layers for them, and functions applied to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pullback.core.interpreter import dispatch
from pullback.core.op import find_op
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.errors import ArgumentError, CheckpointError
from pullback.interop.numpy import find_call
from pullback.numerics.dtypes import make_dtype
from pullback.train.nn.layers.base import Layer, Symbolic
from pullback.train.nn.layers.checks import UnknownShape, as_lengths_or_none
from pullback.typing import Array, Axis, DType, Value

__all__ = ["InputLayer", "input"]


class SymbolicTensor(Symbolic, NDArrayOperatorsMixin):
    """An input or output of a layer in a functional model: a shape, without the batch, and no values.

    Operators, indexing, NumPy's functions and the ops of ``pb`` apply to it; their axis 0 is the batch.

    >>> x = pb.input([3])
    >>> np.tanh(x) * 2.0 + x
    SymbolicTensor(shape=('batch', 3), apply_function...)
    >>> pb.concat([x, x], axis=1).shape, x[:, 0].shape
    ((6,), ())
    """

    def __init__(
        self,
        shape: UnknownShape,
        layer: Layer | None,
        inputs: tuple[SymbolicTensor, ...],
        dtype: DType | None = None,
        settings: dict[str, Any] | None = None,
        name: str = "",
    ) -> None:
        self.shape, self.layer, self.inputs, self.dtype = shape, layer, inputs, dtype
        self.settings, self.name = settings or {}, name

    @classmethod
    def apply(cls, layer: Layer, inputs: Sequence[Any], settings: dict[str, Any] | None = None) -> SymbolicTensor:
        """Return the output of a layer for symbolic inputs; makes the layer's variables."""
        settings = settings or {}
        others = [type(x).__name__ for x in inputs if not isinstance(x, SymbolicTensor)]
        if others:
            raise ArgumentError(
                f"layer '{layer.name}': got a symbolic tensor together with {others[0]}. "
                "Make it an input of the model: pb.input(shape)."
            )
        shapes = [x.shape for x in inputs]
        layer.build_for(shapes)
        output = cls(layer.output_shape(*shapes, **settings), layer, tuple(inputs), settings=settings)
        layer.register_call(output)
        return output

    def apply_layer(self, layer: Layer, inputs: Sequence[Any], settings: dict[str, Any]) -> Any:
        return self.apply(layer, inputs, settings).unpack()

    def unpack(self) -> Any:
        """Return itself; of several outputs, a tuple of one for each."""
        if not (self.shape and isinstance(self.shape[0], tuple)):
            return self
        return tuple(SymbolicTensor.apply(SelectOutput(i), [self]) for i in range(len(self.shape)))

    @property
    def sources(self) -> list[SymbolicTensor]:
        """The symbolic tensors that it is computed from: the inputs, and those among the settings."""
        return [*self.inputs, *(x for x in self.settings.values() if isinstance(x, SymbolicTensor))]

    @property
    def ndim(self) -> int:
        """The number of axes, the batch included."""
        return len(self.shape) + 1

    # ---- functions of symbolic tensors

    if TYPE_CHECKING:  # functions of NumPy take it; what they and ops return is a tensor or an array to type checkers

        def __array__(self) -> Array: ...
        def __add__(self, other: Any, /) -> SymbolicTensor: ...
        def __radd__(self, other: Any, /) -> SymbolicTensor: ...
        def __sub__(self, other: Any, /) -> SymbolicTensor: ...
        def __rsub__(self, other: Any, /) -> SymbolicTensor: ...
        def __mul__(self, other: Any, /) -> SymbolicTensor: ...
        def __rmul__(self, other: Any, /) -> SymbolicTensor: ...
        def __truediv__(self, other: Any, /) -> SymbolicTensor: ...
        def __rtruediv__(self, other: Any, /) -> SymbolicTensor: ...
        def __pow__(self, other: Any, /) -> SymbolicTensor: ...
        def __matmul__(self, other: Any, /) -> SymbolicTensor: ...
        def __neg__(self) -> SymbolicTensor: ...

    __hash__ = object.__hash__
    __eq__ = object.__eq__  # np.equal compares elements

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: object, **kwargs: object) -> Any:
        if method != "__call__" or "out" in kwargs:
            raise ArgumentError(f"np.{ufunc.__name__}.{method} and out= do not apply to a symbolic tensor.")
        return _apply_function(f"np.{ufunc.__name__}", args, kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        home = function.__module__.removeprefix("numpy").removeprefix(".")
        return _apply_function(f"np.{home + '.' if home else ''}{function.__name__}", args, kwargs)

    def apply_op(self, name: str, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return the symbolic result of an op of ``pb``."""
        return _apply_function(f"pb.{name}", args, params)

    def __getitem__(self, index: object) -> SymbolicTensor:
        selected: SymbolicTensor = _apply_function("getitem", (self, index), {})
        return selected

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentError("a symbolic tensor cannot be iterated over: the batch has no length yet.")

    def reshape(self, *shape: Any) -> Any:
        """Return it in another shape, whose first length is that of the batch, or -1."""
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
        return np.reshape(self, tuple(lengths))

    def astype(self, dtype: DType) -> Any:
        """Return it with elements of another dtype."""
        wanted = make_dtype(dtype)
        return _apply_function("astype", (self, str(wanted)), {})

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """Return the sum along axes; axis 0 is the batch."""
        return np.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """Return the mean along axes; axis 0 is the batch."""
        return np.mean(self, axis=axis, keepdims=keepdims)

    def __repr__(self) -> str:
        source = "input" if self.layer is None else self.layer.name
        return f"SymbolicTensor(shape={('batch', *self.shape)}, {source})"


@dataclass(eq=False)
class SelectOutput(Layer):
    """Selects one of several outputs of a layer, in a functional model."""

    index: int
    several = True

    def call(self, *xs: Value) -> Any:
        return xs[self.index]

    def output_shape(self, *shapes: Any, **_: Any) -> Any:
        return shapes[0][self.index]


@dataclass(eq=False)
class ApplyFunction(Layer):
    """A function of NumPy, an op of ``pb`` or an index, applied to symbolic tensors; operators make such layers."""

    function: str
    arguments: Any = ()  # with ``{"input": i}`` in place of inputs
    keywords: dict[str, Any] = field(default_factory=dict)
    several = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._run = _find_function(self.function)

    def call(self, *xs: Value) -> Any:
        return self._run(*_decode(self.arguments, xs), **_decode(self.keywords, xs))

    def get_config(self) -> dict[str, Any]:
        return {"function": self.function, "arguments": list(self.arguments), "keywords": self.keywords, "name": ""}

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in super().__getstate__().items() if key != "_run"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._run = _find_function(self.function)


def _find_function(name: str) -> Callable[..., Any]:
    """Return the function of a name such as ``"np.tanh"``, ``"pb.relu"``, ``"getitem"`` or ``"astype"``."""
    home, _, path = name.partition(".")
    if name == "getitem":
        return getitem
    if name == "astype":
        return lambda x, dtype: x.astype(dtype)
    if home == "pb" and (op := find_op(path)) is not None:
        return lambda *args, **params: dispatch(op, args, params)
    found: Any = np if home == "np" else None
    for part in path.split("."):
        found = None if part.startswith("_") else getattr(found, part, None)
    if not isinstance(found, np.ufunc) and (not callable(found) or find_call(found) is None):
        # a file may name any function of NumPy, also one that writes files or loads libraries
        raise CheckpointError(f"there is no function {name!r} for symbolic tensors.")
    function: Callable[..., Any] = found
    return function


def _apply_function(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the symbolic result of a function of arguments among which are symbolic tensors."""
    inputs: list[SymbolicTensor] = []
    layer = ApplyFunction(name, _encode(list(args), inputs), _encode(kwargs, inputs))
    return SymbolicTensor.apply(layer, inputs).unpack()


def _encode(x: Any, inputs: list[SymbolicTensor]) -> Any:
    """Return an argument as data that a file can hold; symbolic tensors are added to ``inputs``."""
    if isinstance(x, SymbolicTensor):
        inputs.append(x)
        return {"input": len(inputs) - 1}
    if isinstance(x, slice):
        return {"slice": [_encode(n, inputs) for n in (x.start, x.stop, x.step)]}
    if x is Ellipsis:
        return {"ellipsis": True}
    if isinstance(x, Variable):
        raise ArgumentError(f"variable '{x.name}' is used outside a layer. Make a layer of your own with it.")
    if isinstance(x, Tensor):
        return np.asarray(x)
    if isinstance(x, dict):
        return {key: _encode(item, inputs) for key, item in x.items()}
    if isinstance(x, list | tuple):
        items = [_encode(item, inputs) for item in x]
        return items if isinstance(x, list) else tuple(items)
    return x


def _decode(x: Any, xs: Sequence[Value]) -> Any:
    """Return an argument with the inputs in their places."""
    if isinstance(x, dict):
        if "input" in x:
            return xs[x["input"]]
        if "slice" in x:
            return slice(*_decode(x["slice"], xs))
        if "ellipsis" in x:
            return Ellipsis
        return {key: _decode(item, xs) for key, item in x.items()}
    if isinstance(x, list | tuple):
        items = [_decode(item, xs) for item in x]
        return items if isinstance(x, list) else tuple(items)
    return x


@dataclass(eq=False)
class InputLayer(Layer):
    """The input of a sequential model, as a layer of its own: the identity.

    - shape: the shape of one example; ``input_shape`` is the same.
    - batch_shape: the shape with the batch in front; ``batch_input_shape`` is the same.
    - sparse: only False: arrays are dense.

    >>> model = pb.sequential([pb.layers.input_layer(input_shape=[3]), pb.layers.dense(2)])
    >>> model.outputs[0].shape
    (2,)
    """

    shape: Sequence[int | None] | None = None
    batch_shape: Sequence[int | None] | None = None
    sparse: bool = False
    supports_masking = True

    def __post_init__(self) -> None:
        if self.sparse:
            raise ArgumentError("input_layer: sparse=True is not known here: arrays are dense.")
        if self.shape is not None:
            self.input_shape, self.shape = self.shape, None
        if self.batch_shape is not None:
            self.batch_input_shape, self.batch_shape = self.batch_shape, None
        super().__post_init__()

    def call(self, x: Value) -> Any:
        return x


def input(
    shape: Sequence[int | None] | None = None,
    dtype: DType | None = None,
    name: str = "",
    batch_size: int | None = None,
    batch_shape: Sequence[int | None] | None = None,
    sparse: bool = False,
) -> SymbolicTensor:
    """Return an input of a functional model: arrays of examples of this shape.

    - shape: the shape of one example; None is an unknown length.
    - dtype: the dtype of the values.
    - name: the name of the input, by which ``fit`` takes a dict.
    - batch_size: accepted as in other libraries, without effect: batches may have any size.
    - batch_shape: the shape with the batch in front, in place of ``shape``.
    - sparse: only False: arrays are dense.

    >>> x = pb.input([8])
    >>> pb.layers.dense(3)(x)
    SymbolicTensor(shape=('batch', 3), dense...)
    >>> pb.layers.conv1d(4, 3)(pb.input([None, 2]))
    SymbolicTensor(shape=('batch', None, 4), conv1d...)
    """
    if (shape is None) == (batch_shape is None):
        raise ArgumentError("input: give either shape, of one example, or batch_shape, with the batch in front.")
    if sparse:
        raise ArgumentError("input: sparse=True is not known here: arrays are dense.")
    lengths: Any = shape if batch_shape is None else list(batch_shape)[1:]
    return SymbolicTensor(as_lengths_or_none("input: shape", lengths), None, (), dtype, name=name)
