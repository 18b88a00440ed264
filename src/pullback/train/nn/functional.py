"""Functional models: layers applied to inputs and to each other's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from pullback.errors import ArgumentError
from pullback.names.answers import check_keywords
from pullback.train.loop.callback import CallbackLike
from pullback.train.loop.examples import DataLike, take_every_named
from pullback.train.nn.graphs import (
    SymbolicTensors,
    check_host_layers,
    decode_settings,
    encode_settings,
    find_source,
    list_tensors,
    name_layers,
    name_tensors,
    run_steps,
    sort_layers,
    sort_steps,
)
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import UnknownShape
from pullback.train.nn.layers.symbolic import SymbolicTensor
from pullback.train.nn.models import Model
from pullback.typing import TensorLike, Value


@check_keywords
class Functional(Model):
    """A model defined by its inputs and outputs, symbolic tensors that layers were applied to; ``model`` makes one."""

    several = True

    def __init__(
        self, inputs: SymbolicTensors, outputs: SymbolicTensors, name: str = "", trainable: bool = True
    ) -> None:
        super().__init__(name)
        self._single = isinstance(outputs, SymbolicTensor)
        self._order: list[SymbolicTensor] = []  # each after its inputs
        self._inputs, self._input_keys = list_tensors(inputs)
        self._outputs, self._output_keys = list_tensors(outputs)
        for x in [*self._inputs, *self._outputs]:
            if not isinstance(x, SymbolicTensor):
                raise ArgumentError(
                    f"{self.name}: inputs and outputs are made by pb.input and by layers, got {type(x).__name__}."
                )
        self._order = sort_steps(self._inputs, self._outputs, self.name)
        self._layers = sort_layers(self._order, self._list_sorted_outputs())
        shapes: Any = tuple(p.shape for p in self._inputs)
        self._built, self._shapes = True, shapes
        if not trainable:
            self.trainable = False
        list(self.parts())  # raises an error for two layers of one name

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """The symbolic inputs."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """The symbolic outputs."""
        return list(self._outputs)

    @property
    def input(self) -> Any:
        """The symbolic input; a list if there are several, a dict if the model was made with one."""
        return super().input if self._input_keys is None else dict(zip(self._input_keys, self._inputs, strict=True))

    @property
    def output(self) -> Any:
        """The symbolic output; a list if there are several, a dict if the model was made with one."""
        return super().output if self._output_keys is None else dict(zip(self._output_keys, self._outputs, strict=True))

    def _list_sorted_outputs(self) -> list[SymbolicTensor]:
        """Return the outputs; those of a dict in the order of its keys, as Keras has them."""
        if self._output_keys is None:
            return self._outputs
        return [output for _, output in sorted(zip(self._output_keys, self._outputs, strict=True))]

    def parts(self) -> Iterator[tuple[str, Any]]:
        layers = {id(step.layer): step.layer for step in vars(self).get("_order", ()) if step.layer is not None}
        names = {id(layer): name for name, layer in name_layers(list(layers.values()), self.name).items()}
        for layer in self.iterate_parts():
            yield names[id(layer)], layer

    def iterate_parts(self) -> Sequence[Layer]:
        layers: Sequence[Layer] = vars(self).get("_layers", ())
        return layers

    @property
    def input_names(self) -> list[str]:
        if self._input_keys is not None:
            return list(self._input_keys)
        return [p.name or f"input_{i + 1}" for i, p in enumerate(self._inputs)]

    @property
    def output_names(self) -> list[str] | None:
        if self._output_keys is not None:
            return list(self._output_keys)
        names = {id(layer): name for name, layer in self.parts()}
        found: list[str] = []
        for output in self._outputs:
            name = "input" if output.layer is None else names[id(find_source(output).layer)]
            number, free = 0, name
            while free in found:  # a layer that makes several outputs
                number += 1
                free = f"{name}_{number}"
            found.append(free)
        return found

    def list_structure(self) -> list[object]:
        found: list[object] = [self, self.trainable]
        for step in self._order:
            if step.layer is not None:
                found += step.layer.list_structure()
        return found

    def check_inputs(self, *xs: Value) -> None:
        values = {id(p): x for p, x in zip(self._inputs, xs, strict=False)}
        for step in self._order:
            if step.layer is not None and all(id(p) in values for p in step.inputs):
                step.layer.check_inputs(*[values[id(p)] for p in step.inputs])

    def output_shape(self, *shapes: UnknownShape, **settings: Any) -> Any:
        if not settings and shapes == self._shapes:
            return self._outputs[0].shape if self._single else tuple(p.shape for p in self._outputs)
        return super().output_shape(*shapes, **settings)

    if not TYPE_CHECKING:  # the types are those of Model

        def __call__(self, *inputs: Any, **settings: Any) -> Any:
            out = super().__call__(*inputs, **settings)
            return out if self._output_keys is None else dict(zip(self._output_keys, out, strict=True))

    def _unpack_inputs(self, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs = tuple(take_every_named(inputs[0], self.input_names, f"{self.name}: inputs"))
        return super()._unpack_inputs(inputs)

    def call(self, *xs: Value) -> Any:
        if len(xs) != len(self._inputs):
            raise ArgumentError(f"{self.name}: expected {len(self._inputs)} inputs, got {len(xs)}.")
        values: dict[int, Any] = {id(p): x for p, x in zip(self._inputs, xs, strict=True)}
        run_steps(self._order, values)
        out = [values[id(p)] for p in self._outputs]
        return out[0] if self._single else tuple(out)

    def split_host_layers(self) -> tuple[Model, Model] | None:
        ends = [step for step in self._order if step.layer is not None and step.layer.runs_on_host()]
        front = sort_steps(self._inputs, ends, self.name)
        check_host_layers(self.name, [step.layer for step in front if step.layer is not None])
        done = {id(step) for step in front}
        rest = [step for step in self._order if id(step) not in done]
        used = [x for step in rest for x in step.sources] + self._outputs
        inputs = list({id(x): x for x in used if id(x) in done or x.layer is None}.values())
        return Functional(self._inputs, inputs), Functional(inputs, self._outputs[0] if self._single else self._outputs)

    def get_config(self) -> dict[str, Any]:
        every = [*self._inputs, *self._order]
        number = {id(p): i for i, p in enumerate(every)}
        layers = {id(layer): i for i, layer in enumerate(self.layers)}
        return {
            "layers": self.layers,
            "inputs": [p.shape for p in self._inputs],
            "names": [p.name for p in self._inputs],
            "steps": [[layers[id(p.layer)], [number[id(x)] for x in p.inputs]] for p in self._order],
            "settings": {str(i): encode_settings(p.settings, number) for i, p in enumerate(self._order) if p.settings},
            "outputs": [number[id(p)] for p in self._outputs],
            "single": self._single,
            "name": "" if self.numbered else self.name,
            **({} if self._input_keys is None else {"input_keys": self._input_keys}),
            **({} if self._output_keys is None else {"output_keys": self._output_keys}),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for step in self._order:
            if step.layer is not None:
                step.layer.register_call(step)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Functional:
        names = config.get("names") or [""] * len(config["inputs"])
        every = [SymbolicTensor(tuple(x), None, (), name=name) for x, name in zip(config["inputs"], names, strict=True)]
        inputs = list(every)
        settings = config.get("settings") or {}
        for i, (layer, given) in enumerate(config["steps"]):
            called = decode_settings(settings.get(str(i), {}), every)
            every.append(SymbolicTensor.apply(config["layers"][layer], [every[n] for n in given], called))
        outputs = [every[i] for i in config["outputs"]]
        given = name_tensors(inputs, config.get("input_keys"))
        made = outputs[0] if config["single"] else name_tensors(outputs, config.get("output_keys"))
        return cls(given, made, config["name"])


if TYPE_CHECKING:

    class SeveralOutputs(Functional):
        """A functional model that returns a tuple or a dict, to type checkers."""

        def __call__(self, *inputs: Any, training: bool | None = None, mask: Any = None, **settings: Any) -> Any: ...
        def apply(self, params: Mapping[str, Any], *inputs: TensorLike, training: bool = False) -> Any: ...
        def predict(
            self,
            x: Any,
            batch_size: int | None = None,
            verbose: int | str = 0,
            steps: int | None = None,
            callbacks: CallbackLike = (),
        ) -> Any: ...
        def predict_on_batch(self, x: DataLike) -> Any: ...


@overload
def model(
    inputs: SymbolicTensors, outputs: SymbolicTensor | Value, name: str = "", trainable: bool = True
) -> Functional: ...
@overload
def model(
    inputs: SymbolicTensors,
    outputs: Sequence[SymbolicTensor | Value] | Mapping[str, SymbolicTensor | Value],
    name: str = "",
    trainable: bool = True,
) -> SeveralOutputs: ...
def model(inputs: SymbolicTensors, outputs: Any, name: str = "", trainable: bool = True) -> Functional:
    """Return a model from inputs to outputs: layers applied to ``pb.input`` and to each other's outputs.

    - inputs: one input, a list of them, or a dict; by its keys, ``fit``, ``predict`` and calls take dicts of arrays.
    - outputs: one output, a list of them, or a dict; the model returns its results in the same form.
    - name: the name of the model.
    - trainable: whether training changes its variables.

    >>> x = pb.input([3])
    >>> h = pb.layers.dense(3, activation="tanh")(x)
    >>> both = pb.model(inputs=x, outputs=[pb.layers.dense(1)(h), pb.layers.dense(2)(h)])
    >>> [y.shape for y in both(np.ones((5, 3)))]
    [(5, 1), (5, 2)]
    """
    return Functional(inputs, outputs, name, trainable)
