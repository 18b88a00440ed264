"""Forward mode: what goes in and out, and what is refused.  The generated tests check the numbers, op by op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError


def cube(x: Any) -> Any:
    return x * x * x


@pytest.mark.parametrize("x", [2.0, np.float32(2), np.array([1.0, 2.0]), np.array([1.0, 2.0], "f4"), [1.0, 2.0]])
def test_gives_back_what_was_given(x: Any) -> None:
    y, dy = pb.jvp(cube, [x], [x])
    assert type(y) is type(dy) is type(x)
    np.testing.assert_allclose(dy, 3 * np.asarray(x) ** 3)
    assert np.asarray(dy).dtype == np.asarray(x).dtype


def test_tensors_for_tensors() -> None:
    y, dy = pb.jvp(cube, [pb.tensor([1.0, 2.0])], [pb.tensor([1.0, 1.0])])
    assert isinstance(y, pb.Tensor)
    assert dy.tolist() == [3.0, 12.0]


def test_a_tangent_has_the_dtype_of_its_input() -> None:
    assert pb.jvp(cube, [np.float32(2)], [np.float64(1)])[1].dtype == np.float32
    y, dy = pb.jvp(lambda n: n * 2.0, [np.array([1, 2])], [np.array([1.0, 0.0])])
    np.testing.assert_allclose(dy, [2.0, 0.0])
    assert y.dtype.kind == "f"


def test_what_does_not_depend_has_no_slope() -> None:
    y, dy = pb.jvp(lambda x: pb.tensor([5.0]), [np.ones(2)], [np.ones(2)])
    assert (y.tolist(), dy.tolist()) == ([5.0], [0.0])


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: pb.jvp(3, [1.0], [1.0]), ArgumentError, "f must be a function, got int"),
        (lambda: pb.jvp(cube, 1.0, [1.0]), ArgumentError, "primals must be a list"),
        (lambda: pb.jvp(cube, [1.0], [1.0, 2.0]), ArgumentError, "1 primals but 2 tangents"),
        (lambda: pb.jvp(cube, [np.ones(2)], [np.ones(3)]), ShapeError, r"input 1 has shape \(2,\).*\(3,\)"),
    ],
)
def test_refusals(call: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        call()
