"""Print which of Keras's names of training are missing here, and which of their arguments.

Run with a Python that has Keras 3 and torch: ``KERAS_BACKEND=torch PYTHONPATH=src python script/missing_names.py``.
The lists are those of the installed package; nothing is typed here but what is left out on purpose.
"""

from __future__ import annotations

import inspect
from typing import Any

import keras  # type: ignore[import-not-found]

import pullback as pb

LEFT_OUT = {
    "losses": {"CTC"},
    "metrics": set(),
    "optimizers": {"MultiOptimizer", "LossScaleOptimizer", "Optimizer", "OptimizerMap"},
    "schedules": {"LearningRateSchedule"},
    "callbacks": {"OrbaxCheckpoint", "RemoteMonitor", "ProgbarLogger", "History"},
}
IGNORED = {"self", "kwargs", "args", "name", "dtype"}  # accepted everywhere, or without a meaning here


def spell(name: str) -> str:
    """Return a name without capitals and underscores."""
    return name.replace("_", "").lower()


def list_classes(module: Any) -> dict[str, type]:
    """Return the classes of a module by name."""
    return {name: one for name, one in vars(module).items() if inspect.isclass(one)}


def print_missing(title: str, theirs: dict[str, type], ours: Any) -> None:
    """Print how many of the names there are, and which are missing."""
    spelt = {spell(name): name for name in dir(ours)}
    missing = [name for name in theirs if spell(name) not in spelt]
    on_purpose = [name for name in missing if name in LEFT_OUT[title]]
    rest = [name for name in missing if name not in LEFT_OUT[title]]
    print(f"{title}: {len(theirs) - len(missing)} of {len(theirs)}; left out: {on_purpose}; missing: {rest}")


def print_missing_arguments(title: str, theirs: Any, ours: Any) -> None:
    """Print which arguments of a method are missing."""
    wanted = set(inspect.signature(theirs).parameters) - IGNORED
    have = set(inspect.signature(ours).parameters)
    print(f"{title}: {len(wanted & have)} of {len(wanted)} arguments; missing: {sorted(wanted - have)}")


if __name__ == "__main__":
    print_missing("losses", list_classes(keras.losses), pb.train.losses)
    print_missing("metrics", list_classes(keras.metrics), pb.metrics)
    print_missing("optimizers", list_classes(keras.optimizers), pb.train)
    print_missing("schedules", list_classes(keras.optimizers.schedules), pb.train)
    print_missing("callbacks", list_classes(keras.callbacks), pb.callbacks)
    for method in ("compile", "fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"):
        print_missing_arguments(method, getattr(keras.Model, method), getattr(pb.Model, method))
