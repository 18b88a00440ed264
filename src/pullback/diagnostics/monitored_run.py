"""One monitored run of a function: forward, and back from all results to all arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.convert import float_of, join_array
from pullback.core.tape import Tape
from pullback.core.tensor import ARRAYS, Tensor
from pullback.core.variable import Watcher, watch_variables
from pullback.diagnostics.monitor import Monitor, Note
from pullback.transforms.grad import as_leaf
from pullback.transforms.leaf_names import list_parameter_names, name_leaves
from pullback.transforms.leaves import list_whole_leaves, map_whole
from pullback.transforms.session import open_tape, pull
from pullback.transforms.signatures import check_function

if TYPE_CHECKING:
    from pullback.typing import ArrayOrNumber, Operand


class MonitoredResult:
    """A value or a gradient, its name, and the note of the op that made it."""

    __slots__ = ("name", "note", "value")

    def __init__(self, name: str, value: Operand | None, note: Note | None) -> None:
        self.name, self.value, self.note = name, value, note


class MonitoredRun:
    """One run of a function, with its inputs, values, gradients and steps."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], back: bool = True) -> None:
        self.f, self.args, self.back = f, args, back
        self.monitor = Monitor()
        self.inputs: list[MonitoredResult] = []
        self.values: list[MonitoredResult] = []
        self.gradients: list[MonitoredResult] = []
        self.nodes: list[tuple[Note | None, Any, list[Any]]] = []  # of each step its note, itself, what its rules use
        self.cuts: list[tuple[str, str, int]] = []  # where paths ended, as the tape remembers it
        self.monitor.run(self._run, kwargs)

    def _run(self, kwargs: dict[str, Any]) -> None:
        with open_tape() as tape:
            results, names, leaves = self._run_forward(tape, kwargs)
            self.inputs = [self._result(name, t) for name, t in zip(names, leaves, strict=True)]
            for given in self.inputs:
                if given.note is not None:
                    given.note.label = given.name
            of = [f"[{i}]" for i in range(len(results))] if len(results) > 1 else [""]
            self.values = [self._result(f"the value{k}", z) for k, z in zip(of, results, strict=False) if is_number(z)]
            self.nodes = [(self.monitor.note_of(r.value), r, self._list_kept(r)) for r in tape.list_steps()]
            if self.back:
                self._run_backward(tape, results, names, leaves)

    def _run_forward(self, tape: Tape, kwargs: dict[str, Any]) -> tuple[list[Any], list[str], list[Any]]:
        """Return the results of the function, and the names and leaves of its arguments and variables."""
        leaves: list[Any] = []

        def enter(x: ArrayOrNumber) -> Any:
            if not is_number(x):
                return x
            leaves.append(tape.make_leaf(as_leaf(x, "diagnostics")))
            return leaves[-1]

        args = [map_whole(enter, a) for a in self.args]
        names = [
            name
            for parameter, a in zip(list_parameter_names(self.f, len(self.args)), self.args, strict=True)
            for name, leaf in name_leaves(parameter, a)
            if is_number(leaf)
        ]
        with watch_variables(Watcher(tape)) as watcher:
            y = self.f(*args, **kwargs)
        for v, reads in watcher.leaves.values():
            leaves += [leaf for _, leaf in reads]
            names += [v.name] * len(reads)
        return [z.read() if isinstance(z, Tensor) else z for z in map(join_array, list_whole_leaves(y))], names, leaves

    def _run_backward(self, tape: Tape, results: list[Any], names: list[str], leaves: list[Any]) -> None:
        floats = [z for z in results if tape.holds(z) and z.dtype.kind in "fc"]
        found = pull(tape, floats, [np.ones(z.shape, float_of(z.dtype))[()] for z in floats], leaves)
        self.gradients = [self._result(f"the gradient of {name}", g) for name, g in zip(names, found, strict=True)]
        self.cuts = list(tape.cuts)

    def _result(self, name: str, z: Operand) -> MonitoredResult:
        return MonitoredResult(name, z, self.monitor.note_of(z))

    def _list_kept(self, r: Tensor) -> list[Any]:
        """Return the values that the rules of a step use."""
        step = r.via.original
        if step.op is None:  # a gradient that the user gave keeps what it will
            return []
        saved = [v for v, needed in zip(r.via.original.values(r), step.needs, strict=False) if needed]
        return [v for v in [*saved, *([r.value] if step.needs_z else [])] if isinstance(v, ARRAYS)]


def is_number(x: Any) -> bool:
    return isinstance(x, (*ARRAYS, int, float, complex, list)) or hasattr(x, "__array__")


class Examined:
    """A function that runs another one and reports: keeps its name."""

    face = ""

    def __init__(self, f: Callable[..., Any]) -> None:
        check_function(f"{self.face}(f): f", f)
        self.__wrapped__ = f
        self.__name__ = self.__qualname__ = getattr(f, "__name__", type(f).__name__)
        self.__doc__ = getattr(f, "__doc__", None)

    def __repr__(self) -> str:
        return f"<{self.face} of {self.__name__}>"
