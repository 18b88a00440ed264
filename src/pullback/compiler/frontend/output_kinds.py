"""The kinds of outputs of a program: tensors, arrays, Python numbers or lists, as the uncompiled function returns them.

An op returns a tensor if an operand is a tensor or a list; a transform returns the kind that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.frontend.symbol import PYTHON, TENSOR, Symbol
from pullback.compiler.frontend.trace import Trace
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.kinds import INPUT
from pullback.core.tape import constant
from pullback.core.tensor import Tensor
from pullback.core.weak import Weak, weaken, weaken_value


def _make_tensor(v: Any) -> Any:
    return constant(v[()])


def _get_array(v: Any) -> Any:
    return v[()]


def _make_weak(v: Any) -> Any:
    return weaken_value(v[()])


def _make_weak_tensor(v: Any) -> Any:
    return weaken(constant(v[()]))


def _make_python(v: Any) -> Any:
    return v.tolist()


class OutputKinds:
    """The kinds of the outputs of one program.

    ``takes`` has the arguments that each output depends on, as bits; -1 if it depends on a tensor in any case.
    ``arrays`` has the converters of outputs that are not tensors: results of Python numbers alone are weak.
    ``floats``: whether each output is a Python float.
    """

    def __init__(self, trace: Trace, leaves: Sequence[Any], arguments: Sequence[Any], outputs: Sequence[Node]) -> None:
        self.lists = [isinstance(leaf[2], np.dtype) for leaf in leaves]
        self.numbers = sum(1 << i for i, leaf in enumerate(leaves) if leaf[2])  # Python's, as bits
        self.weak = [isinstance(x, Weak) for x in arguments]
        self.fixed: list[Any] = [self._find_fixed(x) for x in arguments]
        self.given_back = [n.number in trace.given_back for n in outputs]
        self.takes = self._find_arguments(trace, outputs)
        rows = zip(self.weak, self.takes, strict=True)
        self.arrays = [_make_weak if weak and not takes & ~self.numbers else _get_array for weak, takes in rows]
        pairs = zip(self.fixed, outputs, strict=True)
        self.floats = [fixed is _make_python and not n.shape and n.dtype == np.float64 for fixed, n in pairs]
        self.known: dict[int, list[Callable[[Any], Any]]] = {}

    def _find_fixed(self, x: Any) -> Any:
        """Return the converter of an output whose kind does not depend on the arguments; None if it does."""
        x = x.read() if isinstance(x, Tensor) else x
        if not isinstance(x, Symbol):
            return _make_tensor if isinstance(x, Tensor) else _get_array
        return _make_python if x.result_kind == PYTHON else None

    def _find_arguments(self, trace: Trace, outputs: Sequence[Node]) -> list[int]:
        """Return which arguments each output depends on, as bits; -1 if it depends on a tensor in any case."""
        held = 0 if not any(self.lists) else sum(1 << i for i, x in enumerate(self.lists) if x)
        every = (1 << len(self.lists)) - 1
        found: dict[int, int] = {}
        for n in trace.graph.nodes:
            bits = 0
            for a in n.args:
                bits |= found[a.number]
            if n.kind is INPUT:
                bits = 1 << n.data if n.data < len(self.lists) else -1
            is_weak = n.number in trace.weak_arrays and not bits & ~self.numbers
            if n.number in trace.tensors or is_weak or bits & held:
                bits = -1
            found[n.number] = bits
        # an output that depends on no argument was made from shapes: zeros_like(x)
        pairs = zip(outputs, self.given_back, strict=True)
        return [0 if is_given_back else found[n.number] or every for n, is_given_back in pairs]

    @property
    def are_quick(self) -> bool:
        """Whether all outputs are arrays or floats if no argument is a tensor."""
        rows = zip(self.fixed, self.takes, self.floats, strict=True)
        return (
            not any(self.lists)
            and _make_weak not in self.arrays
            and all(
                fixed is _get_array or is_float or (fixed is None and takes >= 0) for fixed, takes, is_float in rows
            )
        )

    def find_converters(self, kinds: Sequence[int]) -> list[Callable[[Any], Any]]:
        """Return the converter of each output, for arguments of these kinds."""
        tensors = sum(1 << i for i, kind in enumerate(kinds) if kind == TENSOR)
        found = self.known.get(tensors)
        if found is None:
            whole = _make_tensor if tensors or any(self.lists) else _get_array
            each = [_make_weak_tensor if weak else _make_tensor for weak in self.weak]
            rows = zip(self.fixed, self.takes, each, self.arrays, self.given_back, strict=True)
            found = self.known[tensors] = [
                fixed or (whole if is_given_back else tensor if takes < 0 or takes & tensors else array)
                for fixed, takes, tensor, array, is_given_back in rows
            ]
        return found
