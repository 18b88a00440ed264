"""Checks that results are finite: a call whose result is not is run again under a monitor, for the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.rowsparse import RowSparse
from pullback.core.tensor import ARRAYS, all_values
from pullback.diagnostics.backward_steps import is_finite
from pullback.diagnostics.monitor import Monitor
from pullback.diagnostics.monitored_run import MonitoredResult, is_number
from pullback.diagnostics.nan_report import NanReport
from pullback.errors import NanError
from pullback.transforms.grad import as_leaf
from pullback.transforms.leaf_names import name_leaves
from pullback.transforms.leaves import map_whole


class UserNames:
    """The user's names of a function and its arguments; a list of names is for an argument that is a list of inputs."""

    def __init__(self, function: str = "", arguments: Sequence[Any] = (), results: Sequence[str] = ()) -> None:
        self.function, self.arguments, self.results = function, arguments, results


Naming = Callable[[tuple[Any, ...]], UserNames]


def name_nothing(args: tuple[Any, ...]) -> UserNames:
    return UserNames()


def check_finite(
    call: Callable[..., Any],
    rerun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    naming: Naming = name_nothing,
) -> Any:
    """Return the result of ``call``; raise an error if it is not finite, with a report of running ``rerun``."""
    with np.errstate(all="ignore"):
        out = call(*args, **kwargs)
        if are_finite(out):
            return out
        raise NanError(report_origin(rerun, args, kwargs, naming(args)))


def check_new(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], naming: Naming, lifts: Callable[..., Any]
) -> Any:
    """Return the result of ``call``; raise an error if it has a NaN, or an infinity while its arguments have none."""
    with np.errstate(all="ignore"):
        out = call(*args, **kwargs)
        if are_finite(out) or not (_has_nan(out) or are_finite((args, kwargs))):
            return out
        raise NanError(report_origin(call, args, kwargs, naming(args), lifts))


def are_finite(out: Any) -> bool:
    return all(is_finite(v) for v in map(_get_stored, tree.leaves(out)) if isinstance(v, (*ARRAYS, float)))


def _has_nan(out: Any) -> bool:
    leaves = [np.asarray(all_values(v)) for v in map(_get_stored, tree.leaves(out)) if isinstance(v, (*ARRAYS, float))]
    return any(v.dtype.kind in "fc" and bool(np.isnan(v).any()) for v in leaves)


def _get_stored(leaf: Any) -> Any:
    """Return the stored elements of a sparse array; anything else unchanged."""
    if isinstance(leaf, RowSparse):
        return leaf.values
    return leaf.data if hasattr(leaf, "nnz") else leaf


def report_origin(
    call: Any, args: Any, kwargs: Any, names: UserNames | None = None, lifts: Callable[[Any], bool] = is_number
) -> NanReport | str:
    """Return the report of a second run.  ``lifts``: which arguments are monitored."""
    monitor, names = Monitor(), names or UserNames()

    def lift(x: object, label: str) -> Any:
        if not lifts(x):
            return x
        watched = monitor.lift(as_leaf(x, "debug_nans"))
        if monitor.watches(watched):
            watched.note.label = label
        return watched

    def lift_all(a: Any, name: Any) -> Any:
        if type(a) in (list, tuple) and type(name) is list:  # a list of inputs, also if they are plain numbers
            return type(a)(lift_all(x, n) for x, n in zip(a, name, strict=True))
        labels = iter([label for label, _ in name_leaves(name, a)])
        return map_whole(lambda x: lift(x, next(labels, "")), a)

    lifted = [lift_all(a, _name_argument(names, i, a, lifts)) for i, a in enumerate(args)]
    out = monitor.run(call, *lifted, **kwargs)
    leaves = tree.leaves(out)
    called = names.results if len(names.results) == len(leaves) else ["the result"] * len(leaves)
    results = [MonitoredResult(name, v, monitor.note_of(v)) for name, v in zip(called, leaves, strict=True)]
    report = NanReport(results, monitor.notes, names.function)
    return report or "Not finite: the result; but a second run, to find out why, gave finite numbers."


def _name_argument(names: UserNames, i: int, a: Any, lifts: Callable[[Any], bool]) -> Any:
    """Return the name of an argument; a list of names for a list of inputs."""
    name = names.arguments[i] if i < len(names.arguments) else ""
    if type(a) not in (list, tuple) or type(name) is list or lifts is not is_number:
        return name
    return [f"{name}[{k}]" if name else "" for k in range(len(a))]
