"""The state of optimizers as Keras lists it: the step number, the learning rate, and the slots in Keras's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.variable import Variable
from pullback.train.optim.step import ITERATIONS, RATE, Optimizer
from pullback.typing import Array

__all__ = ["list_state", "load_state"]

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
UNKNOWN = ("use_ema", "gradient_accumulation_steps", "dynamic_growth_steps")  # with these there are further slots


def _list_groups(optimizer: Optimizer) -> list[tuple[str, ...]] | None:
    """Return the slots in Keras's order; None if it has others."""
    config, name = optimizer.get_config(), optimizer.name
    if name not in GROUPS or any(config.get(key) for key in UNKNOWN):
        return None
    groups = list(GROUPS[name])
    if name in ("sgd", "rmsprop") and config.get("momentum"):
        groups.append(("momentum",))
    if config.get("centered"):
        groups.append(("mg",))
    if config.get("amsgrad"):
        groups.append(("vhat",))
    return groups


def _list_slots(groups: Sequence[tuple[str, ...]], variables: Sequence[Variable]) -> list[tuple[Variable, str]]:
    return [(v, slot) for group in groups for v in variables for slot in group]


def list_state(optimizer: Optimizer | None, variables: Sequence[Variable]) -> list[tuple[str, Array]]:
    """Return names and arrays of an optimizer's state for these variables; empty if Keras has no such state."""
    groups = None if optimizer is None else _list_groups(optimizer)
    if optimizer is None or groups is None or callable(optimizer.get_config()[RATE]):
        return []
    optimizer.slots(variables)  # makes those that are missing
    state, rate = optimizer.state_dict(), optimizer.learning_rate
    # momentum of TensorFlow.js is a sum of gradients, that of Keras one of steps
    factor = np.float32(-rate) if optimizer.name == "momentum" else None
    found: list[tuple[str, Array]] = [("iteration", np.array(state[ITERATIONS])), (RATE, np.array(rate, np.float32))]
    for v, slot in _list_slots(groups, variables):
        x = state[f"{v.name}/{slot}"]
        if x.shape != v.shape:  # not every variable has this slot
            continue
        found.append((f"{v.name.replace('/', '_')}_{SPELLINGS.get(slot, slot)}", x if factor is None else x * factor))
    if optimizer.name == "nadam" and variables:
        found.append(("u_product", state[f"{variables[0].name}/product"]))
    return found


def load_state(optimizer: Optimizer, values: Sequence[Array], variables: Sequence[Variable]) -> None:
    """Load arrays that Keras listed into an optimizer; nothing is changed if they are not those of its slots."""
    groups = _list_groups(optimizer)
    if groups is None or len(values) < 1 or values[0].size != 1:
        return
    optimizer.slots(variables)  # makes those that are missing
    state: dict[str, Any] = optimizer.state_dict() | {ITERATIONS: int(values[0].ravel()[0])}
    slots = [(v, slot) for v, slot in _list_slots(groups, variables) if state[f"{v.name}/{slot}"].shape == v.shape]
    first = 1 if callable(optimizer.get_config()[RATE]) else 2
    last = 1 if optimizer.name == "nadam" else 0
    shapes = [x.shape for x in values[first : len(values) - last]]
    if shapes != [v.shape for v, _ in slots]:
        return
    for (v, slot), x in zip(slots, values[first:], strict=False):
        state[f"{v.name}/{slot}"] = np.asarray(x, v.dtype)
    for v in variables if last else ():
        state[f"{v.name}/product"] = np.asarray(values[-1], v.dtype).reshape(())
    optimizer.load_state_dict(state, list(variables))
