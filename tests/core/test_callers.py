"""What the caller's frame shows, and what happens where Python or NumPy are not as assumed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import callers, tensor
from pullback.errors import ArgumentError, TracedValueError


@pytest.fixture
def renumbered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An interpreter whose operators are another instruction."""
    monkeypatch.setattr(callers, "_BINARY", -3)
    callers.are_instructions_known.cache_clear()
    yield
    callers.are_instructions_known.cache_clear()


@pytest.mark.parametrize(
    ("table", "value"),
    [("_BINARY", -3), ("_COMPARE", -3), ("_REMAINDERS", set()), ("_IN_PLACE", set()), ("_WRITES", set())],
)
def test_caller_check_finds_renumbered_bytecode_instructions(
    table: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callers.find_misread_instruction() is None
    monkeypatch.setattr(callers, table, value)
    assert callers.find_misread_instruction() is not None


@pytest.mark.usefixtures("renumbered")
def test_unknown_bytecode_instructions_warn_once_and_percent_format_raises() -> None:
    def f(x: Any) -> Any:
        "%.3f" % x  # noqa: UP031
        return x * x

    with (
        pytest.warns(RuntimeWarning, match=r"other instructions than expected for x \* y: text % x"),
        pytest.raises(TracedValueError),
    ):
        pb.grad(f)(2.0)
    with pytest.raises(TracedValueError):
        pb.grad(f)(2.0)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.usefixtures("renumbered")
def test_unknown_bytecode_instructions_and_product_with_matrix_raises() -> None:
    with pytest.raises(ArgumentError, match=r"np\.asarray\(matrix\)"):
        np.matrix(np.eye(2)) * pb.tensor(np.ones((2, 2)))


def test_mean_of_traced_numbers_raises_if_private_numpy_function_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    mean = lambda x: np.mean([x[0] * 2.0, x[1]])
    np.testing.assert_array_equal(pb.grad(mean)(np.ones(2)), [1.0, 0.5])
    monkeypatch.setattr(tensor, "MEANS", frozenset())
    with pytest.raises(TracedValueError):
        pb.grad(mean)(np.ones(2))


def test_polynomial_series_with_renamed_arguments_raise() -> None:
    file = Path(np.__file__).parent / "polynomial" / "polynomial.py"
    space: dict[str, Any] = {}
    exec(compile("def polyval(points, c, tensor=True):\n    return c[0] + points", str(file), "exec"), space)
    with pytest.raises(ArgumentError, match=r"polyval of NumPy .* has no argument x"):
        space["polyval"](pb.tensor([1.0, 2.0]), np.ones((2, 2)))


def test_bytecode_instructions_of_this_interpreter_are_known() -> None:
    assert callers.are_instructions_known(), sys.version
