"""Which weight of a file belongs to which variable: by the names of layers and weights, never by shape alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pullback.core.suggestions import did_you_mean
from pullback.core.variable import Variable
from pullback.train.io.saving import assign_all, report_mismatch
from pullback.train.io.structure import is_kind
from pullback.typing import Array

DIRECTIONS = {"layer": "forward_", "forward_layer": "forward_", "backward": "backward_", "backward_layer": "backward_"}

CELL = "RNNCell_"  # before the number of a cell among several, in TensorFlow.js

OTHER_NAMES = {"depthwise_kernel": "kernel"}  # of weights in Keras 3


class WeightPlace(NamedTuple):
    """A variable with the names of the layers that it is in, from the outermost, and its own name."""

    layers: tuple[tuple[str, ...], ...]  # for each level the names that it may have
    name: str
    variable: Variable

    @property
    def path(self) -> str:
        """The names as a path, for messages."""
        return "/".join([*(names[0] for names in self.layers), self.name])


def find_places(layer: Any) -> list[WeightPlace]:
    """Return the place of every variable of a layer or model; one that is shared is listed once."""
    return list(_iterate_places(layer, (), set()))


def _iterate_places(layer: Any, above: tuple[tuple[str, ...], ...], seen: set[int]) -> Iterator[WeightPlace]:
    for key, part in layer.parts():
        if isinstance(part, Variable):
            if id(part) not in seen:
                seen.add(id(part))
                yield WeightPlace(above, key.rpartition("/")[2], part)
        else:
            yield from _iterate_places(part, (*above, name_part(layer, key, part)), seen)


def name_part(layer: Any, key: str, part: Any) -> tuple[str, ...]:
    """Return the names that a file may have for a layer inside another one."""
    if is_kind(layer, "Model"):
        return (key,)
    if is_kind(layer, "Bidirectional") and key in DIRECTIONS:
        base_name = layer.layer.name.removeprefix("forward_")
        return (f"{DIRECTIONS[key]}{base_name}", f"{DIRECTIONS[key]}{layer.layer.name}")
    inner = key.rpartition("/")[2]
    if is_kind(layer, "StackedRnnCells"):
        return (part.name.rpartition("/")[2], f"{CELL}{inner}", inner)
    return tuple(dict.fromkeys([part.name.rpartition("/")[2], inner]))


# ---- match


def match_by_name(places: Sequence[WeightPlace], names: Sequence[str], where: str) -> dict[str, Variable]:
    """Return the variable of each weight, by the names of its layers; of equally good ones in the order of the file.

    >>> model = pb.sequential([pb.layers.dense(1, name="a"), pb.layers.dense(1, name="b")])
    >>> model.build([2])
    >>> found = match_by_name(find_places(model), ["b/kernel", "b/bias", "m/a/kernel:0", "m/a/bias:0"], "model.json")
    >>> found["m/a/bias:0"] is model.get_layer("a").bias
    True
    """
    by_name: dict[str, list[int]] = {}
    for i, place in enumerate(places):
        for known in {place.name, OTHER_NAMES.get(place.name, place.name)}:
            by_name.setdefault(known, []).append(i)
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        best = _find_best(places, by_name, _split_name(name))
        if not best:
            report_mismatch(
                f"load: {where} has ",
                f"a weight {name!r}, for which the model has no variable."
                f"{did_you_mean(name, [place.path for place in places])}",
            )
            continue
        groups.setdefault(best, []).append(name)
    found: dict[str, Variable] = {}
    for chosen, weights in groups.items():
        if len(chosen) != len(weights):
            report_mismatch(
                f"load: {where}: ",
                f"{', '.join(weights)} may be {' or '.join(places[i].path for i in chosen)}. "
                "Give the layers names of their own.",
            )
            continue
        found |= {name: places[i].variable for name, i in zip(weights, chosen, strict=True)}
    return found


def match_in_order(places: Sequence[WeightPlace], names: Sequence[str]) -> dict[str, Variable]:
    """Return the variable of each weight of one layer, in Keras's order: trainable ones, then the others."""
    ordered = sorted((place.variable for place in places), key=lambda v: not v.trainable)
    return dict(zip(names, ordered, strict=True))


def _split_name(name: str) -> list[str]:
    """Return the parts of a weight's name, without the number of the output that TensorFlow adds."""
    return re.sub(r":\d+$", "", name).split("/")


def _find_best(places: Sequence[WeightPlace], by_name: Mapping[str, list[int]], parts: list[str]) -> tuple[int, ...]:
    """Return the places whose layers are named best in a weight's name; none if no layer is."""
    base_name = re.sub(r"_\d+$", "", parts[-1])
    listed = by_name.get(parts[-1]) or by_name.get(base_name, [])
    scores = {i: _score(places[i], parts[:-1]) for i in listed}
    best = max(scores.values(), default=(False, 0))
    return tuple(i for i in listed if scores[i] == best and best[1])


def _score(place: WeightPlace, parts: list[str]) -> tuple[bool, int]:
    """Return whether the innermost layer is named, and how many layers are, in their order."""
    at, count = 0, 0
    for names in place.layers:
        hits = [parts.index(name, at) for name in names if name in parts[at:]]
        if hits:
            at, count = min(hits) + 1, count + 1
    return any(name in parts for name in place.layers[-1]) if place.layers else False, count


def check_complete(places: Sequence[WeightPlace], found: Mapping[str, Variable], where: str) -> None:
    """Report variables that a file has no weights for."""
    taken = {id(v) for v in found.values()}
    if missing := [place.path for place in places if id(place.variable) not in taken]:
        report_mismatch(f"load: {where} has ", f"no weights for {', '.join(missing)}.")


def assign_matches(found: Mapping[str, Variable], values: Mapping[str, Array], where: str) -> None:
    """Assign all weights to their variables, if every shape and dtype fits; otherwise none."""
    assign_all(f"load: {where}", dict(values), dict(found), casts=True)
