"""Weights by PyTorch's names: which parameters of a module a layer has, and how their axes and gates are ordered.

A state dict has ``fc.weight`` where a layer here has ``fc/kernel``; a rule for each kind of layer says what its
variables are in PyTorch, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from pullback.core.suggestions import did_you_mean
from pullback.core.variable import Variable
from pullback.errors import ArgumentError, CheckpointError
from pullback.train.io.saving import StrPath, load, save
from pullback.train.io.structure import is_kind
from pullback.typing import Array, Shape

ModuleMap = Mapping[str, str] | str  # from modules of PyTorch to layers here; "torch" for equal names
Arrays = dict[str, Array]
SAME = "torch"
IGNORED = ("num_batches_tracked",)  # counts of PyTorch that change nothing here


class Rule(NamedTuple):
    """What a variable of a layer is in PyTorch: names of parameters, and conversions in both directions."""

    variable: str  # its path in the layer
    names: tuple[str, ...]
    read: Callable[..., Array]  # from the parameters to the value
    write: Callable[[Array], tuple[Array, ...]]  # from the value to the parameters


# ---- conversions


def _keep(variable: str, name: str) -> Rule:
    return Rule(variable, (name,), lambda x: x, lambda x: (x,))


def _permute(variable: str, name: str, order: tuple[int, ...]) -> Rule:
    """Return the rule of a value whose axes are in another order in PyTorch: ``order`` makes them ours."""
    back = tuple(int(i) for i in np.argsort(order))
    return Rule(variable, (name,), lambda x: np.transpose(x, order), lambda x: (np.transpose(x, back),))


def _describe_dense(layer: Any) -> list[Rule]:
    return [_permute("kernel", "weight", (1, 0)), _keep("bias", "bias")]


def _describe_convolution(layer: Any) -> list[Rule]:
    axes = len(layer.kernel.shape) - 2
    return [_permute("kernel", "weight", (*range(2, axes + 2), 1, 0)), _keep("bias", "bias")]


def _describe_depthwise(layer: Any) -> list[Rule]:
    shape = layer.depthwise_kernel.shape
    *size, channels, depth = shape
    axes = len(size)

    def read(x: Array) -> Array:
        return np.moveaxis(x.reshape(channels, depth, *size), (0, 1), (-2, -1))

    def write(x: Array) -> tuple[Array, ...]:
        return (np.moveaxis(x, (axes, axes + 1), (0, 1)).reshape(channels * depth, 1, *size),)

    return [Rule("depthwise_kernel", ("weight",), read, write), _keep("bias", "bias")]


def _describe_normalization(layer: Any) -> list[Rule]:
    moving = [_keep("moving_mean", "running_mean"), _keep("moving_variance", "running_var")]
    return [_keep("gamma", "weight"), _keep("beta", "bias"), *moving]


def _describe_embedding(layer: Any) -> list[Rule]:
    return [_keep("embeddings", "weight")]


def _describe_scale(layer: Any) -> list[Rule]:
    return [_keep("scale", "weight")]


def _describe_prelu(layer: Any) -> list[Rule]:
    shape = layer.alpha.shape
    return [Rule("alpha", ("weight",), lambda x: x.reshape(shape), lambda x: (x.reshape(-1),))]


def _is_gru(layer: Any) -> bool:
    return is_kind(layer, "Gru") or is_kind(layer, "GruCell")


def _describe_cells(layer: Any) -> list[Rule]:
    """Return the rules of a layer of recurrent cells: those of stacked ones are the layers of one module."""
    stacked = getattr(layer.cell, "cells", None)
    cells = {"cell/": layer.cell} if stacked is None else {f"cell/cells/{i}/": one for i, one in enumerate(stacked)}
    if unknown := [cell for cell in cells.values() if not hasattr(cell, "gates")]:
        raise CheckpointError(f"{layer.name}: PyTorch has no recurrent layer of {type(unknown[0]).__name__} cells.")
    return [
        rule for i, (inside, cell) in enumerate(cells.items()) for rule in _describe_recurrent(cell, f"_l{i}", inside)
    ]


def _describe_recurrent(layer: Any, end: str = "_l0", inside: str = "") -> list[Rule]:
    """Return the rules of a recurrent layer; gates of a GRU are reset, update, new in PyTorch, update first here."""
    order = (1, 0, 2) if _is_gru(layer) else tuple(range(layer.gates))
    units = layer.units
    if _is_gru(layer) and not layer.reset_after:
        raise CheckpointError(f"{layer.name}: PyTorch's GRU is one with reset_after=True; make the layer with that.")

    def swap(x: Array) -> Array:
        parts = np.split(x, [units * i for i in range(1, len(order))], -1)
        return np.concatenate([parts[i] for i in order], -1)

    def matrix(name: str, torch_name: str) -> Rule:
        return Rule(f"{inside}{name}", (f"{torch_name}{end}",), lambda x: swap(x.T), lambda x: (swap(x).T,))

    names = (f"bias_ih{end}", f"bias_hh{end}")
    if _is_gru(layer):
        bias = Rule(
            f"{inside}bias", names, lambda a, b: np.stack([swap(a), swap(b)]), lambda x: (swap(x[0]), swap(x[1]))
        )
    else:
        bias = Rule(f"{inside}bias", names, lambda a, b: swap(a) + swap(b), lambda x: (swap(x), np.zeros_like(x)))
    return [matrix("kernel", "weight_ih"), matrix("recurrent_kernel", "weight_hh"), bias]


def _describe_bidirectional(layer: Any) -> list[Rule]:
    backward = next(key for key, part in layer.parts() if part is not layer.layer)
    reverse = _describe_recurrent(layer.layer, "_l0_reverse", f"{backward}/")
    return [*_describe_recurrent(layer.layer, "_l0", "layer/"), *reverse]


def _describe_attention(layer: Any) -> list[Rule]:
    """Return the rules of multi-head attention: PyTorch has the three projections of the inputs in one matrix."""
    heads, small = layer.num_heads, layer.key_dim
    rules = []
    for i, name in enumerate(("query", "key", "value")):

        def read_matrix(x: Array, i: int = i) -> Array:
            part = np.split(x, 3)[i]
            return part.T.reshape(part.shape[1], heads, small)

        def read_bias(x: Array, i: int = i) -> Array:
            return np.split(x, 3)[i].reshape(heads, small)

        rules.append(Rule(f"{name}/kernel", ("in_proj_weight",), read_matrix, _flatten_heads))
        rules.append(Rule(f"{name}/bias", ("in_proj_bias",), read_bias, lambda x: (x.reshape(-1),)))

    def read_out(x: Array) -> Array:
        return x.T.reshape(heads, small, x.shape[0])

    def write_out(x: Array) -> tuple[Array, ...]:
        return (x.reshape(-1, x.shape[-1]).T,)

    last = Rule("attention_output/kernel", ("out_proj.weight",), read_out, write_out)
    return [*rules, last, _keep("attention_output/bias", "out_proj.bias")]


def _flatten_heads(x: Array) -> tuple[Array, ...]:
    return (x.reshape(x.shape[0], -1).T,)


DESCRIPTIONS: tuple[tuple[str, Callable[[Any], list[Rule]]], ...] = (  # by class, the first that fits
    ("Dense", _describe_dense),
    ("DepthwiseConv1d", _describe_depthwise),
    ("DepthwiseConv2d", _describe_depthwise),
    ("Conv1dTranspose", _describe_convolution),
    ("Conv2dTranspose", _describe_convolution),
    ("Conv3dTranspose", _describe_convolution),
    ("FullConvolution", _describe_convolution),
    ("BatchNormalization", _describe_normalization),
    ("LayerNormalization", _describe_normalization),
    ("GroupNormalization", _describe_normalization),
    ("RmsNormalization", _describe_scale),
    ("Prelu", _describe_prelu),
    ("Embedding", _describe_embedding),
    ("Bidirectional", _describe_bidirectional),
    ("Rnn", _describe_cells),
    ("RecurrentLayer", _describe_recurrent),
    ("MultiHeadAttention", _describe_attention),
)


def find_rules(layer: Any) -> list[Rule]:
    """Return the rules of those variables that a layer has."""
    variables = layer.named_variables()
    for kind, describe in DESCRIPTIONS:
        if _is_known_kind(layer, kind):
            rules = [rule for rule in describe(layer) if rule.variable in variables]
            if unmapped := sorted(set(variables) - {rule.variable for rule in rules}):
                raise CheckpointError(f"{layer.name}: {', '.join(unmapped)} has no name in PyTorch that is known here.")
            return rules
    raise CheckpointError(f"{layer.name} is a {type(layer).__name__}, whose weights have no names in PyTorch here.")


def _is_known_kind(layer: Any, kind: str) -> bool:
    return kind in {one.__name__ for one in type(layer).__mro__}


# ---- models


def _iterate_modules(model: Any, modules: ModuleMap) -> Iterator[tuple[str, Any]]:
    """Iterate over modules of PyTorch with the layers here that have their weights."""
    layers = dict(_iterate_layers(model, ""))
    if isinstance(modules, str):
        if modules != SAME:
            raise ArgumentError(f"map must be {SAME!r} or a dict from modules of PyTorch to layers, got {modules!r}.")
        yield from ((path.replace("/", "."), layer) for path, layer in layers.items())
        return
    for module, path in modules.items():
        if path not in layers:
            raise ArgumentError(
                f"map: {model.name} has no layer {path!r} with weights; it has {', '.join(layers)}."
                f"{did_you_mean(path, layers)}"
            )
        yield module, layers[path]


def _iterate_layers(model: Any, above: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the layers with weights, by their paths; models inside are entered."""
    for name, part in model.parts():
        if isinstance(part, Variable):
            continue
        if is_kind(part, "Model"):
            yield from _iterate_layers(part, f"{above}{name}/")
        elif part.variables:
            yield f"{above}{name}", part


def load_torch_weights(path: StrPath, model: Any, modules: ModuleMap) -> None:
    """Load a state dict in a safetensors file into a model; it must have exactly the model's variables."""
    load_state(load(path), model, modules)


def load_state(state: Mapping[str, Array], model: Any, modules: ModuleMap) -> None:
    """Load a state dict into a model, if everything fits; otherwise nothing is assigned."""
    found: list[tuple[Variable, Array]] = []
    read: set[str] = set()
    for module, layer in _iterate_modules(model, modules):
        variables = layer.named_variables()
        for rule in find_rules(layer):
            names = [f"{module}.{name}" if module else name for name in rule.names]
            target = variables[rule.variable]
            found.append((target, _read_parameter(state, rule, names, target.shape, f"{layer.name}/{rule.variable}")))
            read.update(names)
    _check_complete(state, read, model, {id(v) for v, _ in found})
    for v, value in found:
        v.assign(np.ascontiguousarray(value, v.dtype))


def _read_parameter(state: Mapping[str, Array], rule: Rule, names: list[str], shape: Shape, where: str) -> Array:
    """Return the value of a variable from the tensors of a state dict that a rule combines."""
    if missing := next((name for name in names if name not in state), None):
        raise CheckpointError(f"load_weights: the file has no {missing!r} for {where}.{did_you_mean(missing, state)}")
    value = _convert(rule, [np.asarray(state[name]) for name in names], names)
    if value.shape != shape:
        raise CheckpointError(
            f"load_weights: {names[0]} is of shape {state[names[0]].shape}, which gives {value.shape}; "
            f"{where} has {shape}."
        )
    return value


def _check_complete(state: Iterable[str], read: set[str], model: Any, assigned: set[int]) -> None:
    """Check that every tensor of the file was read, and that every variable of the model has a value."""
    left = sorted(name for name in state if name not in read and name.rpartition(".")[2] not in IGNORED)
    missing = [place for place, v in model.named_variables().items() if id(v) not in assigned]
    named = {"file": left, "model": missing}
    parts = [f"{', '.join(names)} of the {owner}" for owner, names in named.items() if names]
    if parts:
        raise CheckpointError(
            f"load_weights: {' and '.join(parts)}: no counterpart was found, so nothing was assigned. "
            "Give map= a module for each layer."
        )


def _convert(rule: Rule, values: list[Array], names: list[str]) -> Array:
    try:
        return rule.read(*values)
    except (ValueError, IndexError) as error:
        shapes = " and ".join(str(x.shape) for x in values)
        raise CheckpointError(f"load_weights: {' and '.join(names)} of shape {shapes} does not fit: {error}.") from None


def save_torch_weights(path: StrPath, model: Any, modules: ModuleMap) -> None:
    """Write the variables of a model as a state dict of PyTorch in a safetensors file."""
    save(path, collect_state(model, modules))


def collect_state(model: Any, modules: ModuleMap) -> Arrays:
    """Return the variables of a model as a state dict of PyTorch."""
    state: dict[str, list[Array]] = {}
    met: set[int] = set()
    for module, layer in _iterate_modules(model, modules):
        variables = layer.named_variables()
        for rule in find_rules(layer):
            v = variables[rule.variable]
            met.add(id(v))
            for name, value in zip(rule.names, rule.write(np.asarray(v.numpy())), strict=True):
                state.setdefault(f"{module}.{name}" if module else name, []).append(value)
    if missing := [place for place, v in model.named_variables().items() if id(v) not in met]:
        raise CheckpointError(f"save_weights: {', '.join(missing)} has no module in map=.")
    return {name: np.ascontiguousarray(np.concatenate(parts)) for name, parts in state.items()}
