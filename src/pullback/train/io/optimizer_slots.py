"""The state of optimizers as Keras lists it: the step number, the learning rate, and the slots in Keras's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from warnings import warn

import numpy as np

from pullback.core.variable import Variable
from pullback.train.optim.loss_scale import FINITE_STEPS, LOSS_SCALE
from pullback.train.optim.step import ACCUMULATOR, AVERAGE, ITERATIONS, RATE, Optimizer
from pullback.typing import Array

PAIR: list[tuple[str, ...]] = [("m", "v")]
# Slots of one group alternate from variable to variable; groups follow each other.
GROUPS: dict[str, list[tuple[str, ...]]] = {
    "adam": PAIR, "adamw": PAIR, "adamax": PAIR, "lamb": PAIR, "muon": PAIR, "nadam": PAIR, "lion": [("m",)],
    "adagrad": [("accumulator",)], "adadelta": [("accum_grad", "accum_var")], "ftrl": [("accumulator", "linear")],
    "sgd": [], "momentum": [("momentum",)], "rmsprop": [("rms",)],
}  # fmt: skip
SPELLINGS = {
    "m": "momentum", "v": "velocity", "vhat": "velocity_hat", "rms": "velocity", "mg": "average_gradient",
    "accum_grad": "accumulated_grad", "accum_var": "accumulated_delta_var",
}  # fmt: skip
# Keras's LossScaleOptimizer lists its own state before that of the optimizer inside it: a step number and a learning
# rate, which stay 0, the steps with finite gradients in a row, and the scale.
OUTER_COUNT = 4


def _list_groups(optimizer: Optimizer) -> list[tuple[str, ...]] | None:
    """Return the slots in Keras's order; None if it has others."""
    config, name = optimizer.get_config(), optimizer.name
    if name not in GROUPS or (name == "momentum" and callable(config[RATE])):
        return None
    groups: list[tuple[str, ...]] = [(AVERAGE,)] if optimizer.keeps_average else []
    if not optimizer.is_compilable:
        groups.append((ACCUMULATOR,))
    groups += GROUPS[name]
    if name in ("sgd", "rmsprop") and config.get("momentum"):
        groups.append(("momentum",))
    if config.get("centered"):
        groups.append(("mg",))
    if config.get("amsgrad"):
        groups.append(("vhat",))
    return groups


def _list_slots(
    groups: Sequence[tuple[str, ...]], variables: Sequence[Variable], state: Mapping[str, Any]
) -> list[tuple[Variable, str]]:
    """Return variables with the names of the slots that they have: not every variable has every slot."""
    found = [(v, slot) for group in groups for v in variables for slot in group]
    return [(v, slot) for v, slot in found if state[f"{v.name}/{slot}"].shape == v.shape]


def list_state(optimizer: Optimizer | None, variables: Sequence[Variable]) -> list[tuple[str, Array]]:
    """Return names and arrays of an optimizer's state for these variables; empty if Keras has no such state."""
    groups = None if optimizer is None else _list_groups(optimizer)
    if optimizer is None:
        return []
    if groups is None:
        if optimizer.iterations:
            warn(f"save: the state of {optimizer.name} is left out, as Keras has another.", stacklevel=7)
        return []
    optimizer.slots(variables)  # makes those that are missing
    state, rate = optimizer.state_dict(), optimizer.learning_rate
    found: list[tuple[str, Array]] = [("iteration", np.array(state[ITERATIONS]))]
    if not callable(optimizer.get_config()[RATE]):
        found.append((RATE, np.array(rate, np.float32)))
    if optimizer.loss_scale.is_dynamic:
        finite, scale = np.array(state[FINITE_STEPS]), np.array(state[LOSS_SCALE], np.float32)
        counters = [("iteration", np.array(0)), (RATE, np.array(0, np.float32))]
        found = [*counters, ("step_counter", finite), ("dynamic_scale", scale), *found]
    for v, slot in _list_slots(groups, variables, state):
        x = state[f"{v.name}/{slot}"]
        if optimizer.name == slot == "momentum":  # of TensorFlow.js: a sum of gradients, that of Keras one of steps
            x = x * np.float32(-rate)
        found.append((f"{v.name.replace('/', '_')}_{SPELLINGS.get(slot, slot)}", x))
    if optimizer.name == "nadam" and variables:
        found.append(("u_product", state[f"{variables[0].name}/product"]))
    return found


def load_state(optimizer: Optimizer, values: Sequence[Array], variables: Sequence[Variable]) -> bool:
    """Load arrays that Keras listed into an optimizer; return False, and change nothing, if they are not its slots."""
    groups, scale = _list_groups(optimizer), values[:OUTER_COUNT] if optimizer.loss_scale.is_dynamic else []
    own = values[len(scale) :]
    if any(x.size != 1 for x in (*scale, *own[:1])) or not values:
        return False
    if not own or groups is None:
        return not own or bool(own[0] == 0)  # Keras makes its state at the first step
    optimizer.slots(variables)  # makes those that are missing
    state: dict[str, Any] = optimizer.state_dict() | {ITERATIONS: int(own[0].item())}
    if scale:
        state |= {FINITE_STEPS: int(scale[2].item()), LOSS_SCALE: float(scale[3].item())}
    slots = _list_slots(groups, variables, state)
    first = 2 - callable(optimizer.get_config()[RATE])  # the step number, and the learning rate if it is a number
    last = int(optimizer.name == "nadam")  # its product of momenta
    shapes = [x.shape for x in own[first : len(own) - last]]
    if shapes != [v.shape for v, _ in slots]:
        return bool(own[0] == 0)
    for (v, slot), x in zip(slots, own[first:], strict=False):
        state[f"{v.name}/{slot}"] = np.asarray(x, v.dtype)
    if last:
        state |= {f"{v.name}/product": np.asarray(own[-1], v.dtype).reshape(()) for v in variables}
    optimizer.load_state_dict(state, list(variables))
    return True
