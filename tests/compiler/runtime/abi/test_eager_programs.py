"""Formulas of eager ops as programs of inner loops: which are recorded, and which are left to Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

from pullback.compiler.runtime.abi.eager_programs import is_ufunc_known, trace_program
from pullback.compiler.runtime.abi.layout import is_layout_known

pytestmark = pytest.mark.skipif(not is_layout_known(), reason="machine code does not read objects here")
UNRECORDED: dict[str, Callable[[Any, Any], Any]] = {
    "chooses": lambda x, y: x or y,
    "compares": lambda x, y: np.where(x > y, x, y),
    "takes an array": lambda x, y: x * np.ones(3),
    "takes another dtype": lambda x, y: x * np.float16(2.0),
    "returns a number": lambda x, y: 2.0,
    "returns its second operand": lambda x, y: y,
    "has no loop for floats": lambda x, y: np.bitwise_and(x, y),
    "sums": lambda x, y: np.sum(x),
    "has too many results at once": lambda x, y: reduce(np.add, [np.sin(x * float(i)) for i in range(40)]),
}


@pytest.mark.parametrize("char", ["f", "d"])
@pytest.mark.parametrize("name", UNRECORDED)
def test_native_ops_leave_unsupported_formula_to_python(name: str, char: str) -> None:
    assert trace_program(UNRECORDED[name], [0, 1], char) is None


@pytest.mark.parametrize("char", ["f", "d"])
@pytest.mark.parametrize("f", [lambda x, y: x * y + 2.0, lambda x, y: -np.exp(x) / (1 - y), lambda x, y: x])
def test_native_ops_record_formula_of_elementwise_functions(f: Any, char: str) -> None:
    assert trace_program(f, [0, 1], char) is not None


def test_is_ufunc_known_checks_layout_of_ufunc() -> None:
    class Other:
        nin, nargs, ntypes, __name__ = 7, 7, 7, "other"

    assert is_ufunc_known(np.add)
    assert not is_ufunc_known(Other)
