"""Trainings as lists of names and arguments, for Keras and for this library: data, weights and how they are run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

Find = Callable[[str, str], Any]  # from a kind ("layers", "losses", …) and Keras's name


def values(shape: Any, k: float = 0.0, scale: float = 1.0) -> Any:
    return (np.sin(np.arange(int(np.prod(shape))) * 0.7 + k + 0.3) * scale).reshape(shape).astype("float32")


def make_arguments(find: Find, given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of a layer; regularizers, constraints and inner layers are pairs of a name and arguments."""
    kinds = {"regularizer": "regularizers", "constraint": "constraints", "layer": "layers"}
    made = {}
    for key, x in given.items():
        kind = kinds.get(key.rpartition("_")[2])
        made[key] = make(find, kind, x) if kind and isinstance(x, list) else x
    return made


def make(find: Find, kind: str, given: Any) -> Any:
    """Return an object from its name and arguments; a name alone stays a name."""
    return find(kind, given[0])(**make_arguments(find, given[1])) if isinstance(given, list) else given


def make_data(case: dict[str, Any]) -> tuple[Any, Any]:
    """Return ten examples; sequences end in zeros."""
    shape, units, is_on = case["shape"], case["units"], np.arange(case["shape"][0]) < np.arange(10)[:, None] % 3 + 2
    if case["kind"] == "tok":
        tokens = (np.arange(10 * shape[0]).reshape(10, -1) * 3 + np.arange(10)[:, None]) % 6 + 1
        x = np.where(is_on, tokens, 0).astype("int32")
    else:
        x = values((10, *shape))
        x = np.where(is_on[..., None], x, 0).astype("float32") if case["kind"] == "seq" else x
    k = np.arange(10) * 7 % 5 % 3
    labels = {"bin": (k[:, None] % 2).astype("float32"), "onehot": np.eye(3, dtype="float32")[k], "class": k[:, None]}
    return x, labels[case["y"]] if case["y"] in labels else np.abs(values((10, units), 2.0)) + np.float32(0.2)


def run_fit(case: dict[str, Any], find: Find, model: Any, names: list[str]) -> dict[str, Any]:
    """Train a model that is built; return the history, the result of evaluate and a sum of predictions."""
    model.set_weights([
        np.abs(values(w.shape, 10 + i, 0.5)) + np.float32(0.5) if "variance" in name
        else values(w.shape, 10 + i, 0.5) + np.float32(0.1)
        for i, (w, name) in enumerate(zip(model.get_weights(), names, strict=True))
    ])  # fmt: skip
    settings, how = case["compile"], dict(case["fit"])
    name, options = settings["optimizer"]
    options = {**options, "learning_rate": make(find, "schedules", options["learning_rate"])}
    metrics = {
        key: [make(find, "metrics", m) for m in settings.get(key, [])] for key in ("metrics", "weighted_metrics")
    }
    model.compile(find("optimizers", name)(**options), loss=make(find, "losses", settings["loss"]), **metrics)
    x, y = make_data(case)
    if how.pop("sample_weight", None):
        how["sample_weight"] = (np.arange(10) / 4 + 0.1).astype("float32")
    if "class_weight" in how:
        how["class_weight"] = {int(k): w for k, w in how["class_weight"].items()}
    callbacks = [make(find, "callbacks", c) for c in case.get("callbacks", [])]
    history = model.fit(x, y, verbose=0, callbacks=callbacks, **how).history
    p = np.asarray(model.predict(x, batch_size=4, verbose=0), np.float64).ravel()
    return {
        # Keras numbers the metrics of a program; ReduceLROnPlateau adds the rate there
        "history": {
            re.sub(r"_\d+$", "", key): [float(v) for v in history[key]] for key in history if key != "learning_rate"
        },
        "predictions": float(p @ np.cos(np.arange(p.size))),
    }
