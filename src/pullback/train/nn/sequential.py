"""Sequential models: one layer after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import check_keywords
from pullback.train.arguments import describe_given
from pullback.train.nn.graphs import check_host_layers, name_layers
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import UnknownShape, as_lengths_or_none
from pullback.train.nn.layers.general import Identity
from pullback.train.nn.layers.symbolic import SymbolicTensor
from pullback.train.nn.models import Model
from pullback.typing import Value


@check_keywords
class Sequential(Model):
    """A model that applies one layer after the other; ``sequential`` makes one."""

    def __init__(self, layers: Sequence[Layer | SymbolicTensor] = (), name: str = "", trainable: bool = True) -> None:
        super().__init__(name, trainable)
        self.stack: list[Layer] = []
        self._chain: list[SymbolicTensor] = []  # the input, and the output of each layer
        if isinstance(layers, Layer):
            raise ArgumentError(
                f"sequential: layers must be a list, got {type(layers).__name__}. Write sequential([layer])."
            )
        for layer in layers:
            self.add(layer)

    def add(self, layer: Layer | SymbolicTensor) -> None:
        """Add a layer at the end; before the first one, ``pb.input(shape)`` gives the shape of examples."""
        if isinstance(layer, SymbolicTensor) and layer.layer is None and not self.stack:
            self.input_shape = layer.shape
            return
        if not isinstance(layer, Layer):
            raise ArgumentError(f"{self.name}.add: expected a layer, got {describe_given(layer)}.")
        if any(layer is one for one in self.stack):
            raise ArgumentError(f"{self.name}.add: layer '{layer.name}' is in it already; use pb.model to share one.")
        name_layers([*self.stack, layer], self.name)  # raises an error for a duplicate name
        first, self._built = not self.stack, False
        self.stack.append(layer)
        if first and self.input_shape is None:
            self.input_shape = layer.input_shape
        if self.input_shape is not None:
            self.build_for([tuple(self.input_shape)])

    def pop(self) -> Layer:
        """Remove the last layer and return it.

        >>> model = pb.sequential([pb.layers.dense(3, input_shape=[2]), pb.layers.dense(1)])
        >>> model.pop().units, len(model.layers), model.outputs[0].shape
        (1, 1, (3,))
        """
        if not self.stack:
            raise ArgumentError(f"{self.name}.pop: there are no layers.")
        del self._chain[len(self.stack) :]
        layer = self.stack.pop()
        self._built = self._built and bool(self.stack)
        return layer

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """The symbolic input, in a list, once the shape of examples is known."""
        return self._get_chain()[:1]

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """The symbolic output, in a list, once the shape of examples is known."""
        return self._get_chain()[-1:]

    def _get_chain(self) -> list[SymbolicTensor]:
        if not self._chain:
            raise ArgumentError(f"{self.name} has no input yet. Give input_shape to its first layer, or call it once.")
        return self._chain

    def parts(self) -> Iterator[tuple[str, Any]]:
        yield from name_layers(self.iterate_parts(), self.name).items()

    def iterate_parts(self) -> Sequence[Layer]:
        stack: Sequence[Layer] = vars(self).get("stack", ())
        return stack

    def build(self, shape: Sequence[int | None]) -> None:
        if not self.stack:
            raise ShapeError(f"{self.name} has no layers yet; add some.")
        first = self.input_shape = as_lengths_or_none(f"{self.name}.build", shape)
        if not self._chain or self._chain[0].shape != first:
            self._chain = [SymbolicTensor(first, None, ())]
        for layer in self.stack[len(self._chain) - 1 :]:
            self._chain.append(SymbolicTensor.apply(layer, self._chain[-1:]))
        shapes: Any = (first,)
        self._built, self._shapes = True, shapes

    def output_shape(self, *shapes: UnknownShape, **settings: Any) -> Any:
        chain = self._chain
        is_known = not settings and self._built and chain and shapes == (chain[0].shape,)
        return chain[-1].shape if is_known else super().output_shape(*shapes, **settings)

    @property
    def output_names(self) -> list[str] | None:
        return list(name_layers(self.stack, self.name))[-1:] or None

    def check_inputs(self, *xs: Value) -> None:
        for first in self.stack[:1]:
            first.check_inputs(*xs)

    def call(self, x: Value) -> Any:
        for layer in self.stack:
            x = layer(x)
        return x

    def split_host_layers(self) -> tuple[Model, Model] | None:
        last = max(i + 1 for i, layer in enumerate(self.stack) if layer.runs_on_host())
        check_host_layers(self.name, self.stack[:last])
        return Sequential(self.stack[:last]), Sequential(self.stack[last:] or [Identity()])

    def get_config(self) -> dict[str, Any]:
        return {"layers": self.stack, "name": "" if self.numbered else self.name, "input_shape": self.input_shape}

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_chain": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._built and self.input_shape is not None:
            self.build(self.input_shape)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Sequential:
        model = cls(config["layers"], config["name"])
        if config["input_shape"] is not None:
            model.build_for([config["input_shape"]])
        return model


def sequential(layers: Sequence[Layer | SymbolicTensor] = (), name: str = "", trainable: bool = True) -> Sequential:
    """Return a model that applies one layer after the other.

    - layers: the layers; the first may be ``pb.input(shape)``.
    - name: the name of the model.
    - trainable: whether training changes its variables.

    >>> model = pb.sequential([pb.layers.dense(4, activation="relu", input_shape=[3]), pb.layers.dense(1)])
    >>> model(np.ones((2, 3))).shape
    (2, 1)
    """
    return Sequential(layers, name, trainable)
