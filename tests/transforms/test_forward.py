"""jvp: types of inputs and results, trees, errors.  The generated tests check the numbers, op by op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, GradientError, ShapeError


def cube(x: Any) -> Any:
    return x * x * x


@pytest.mark.parametrize("x", [2.0, np.float32(2), np.array([1.0, 2.0]), np.array([1.0, 2.0], "f4"), [1.0, 2.0]])
def test_jvp_returns_type_of_input(x: Any) -> None:
    y, dy = pb.jvp(cube, [x], [x])
    assert type(y) is type(dy) is type(x)
    np.testing.assert_allclose(dy, 3 * np.asarray(x) ** 3)
    assert np.asarray(dy).dtype == np.asarray(x).dtype


def test_jvp_of_tensors_returns_tensors() -> None:
    y, dy = pb.jvp(cube, [pb.tensor([1.0, 2.0])], [pb.tensor([1.0, 1.0])])
    assert isinstance(y, pb.Tensor)
    assert dy.tolist() == [3.0, 12.0]


def test_jvp_tangent_has_dtype_of_input() -> None:
    assert pb.jvp(cube, [np.float32(2)], [np.float64(1)])[1].dtype == np.float32
    y, dy = pb.jvp(lambda n: n * 2.0, [np.array([1, 2])], [np.array([1.0, 0.0])])
    np.testing.assert_allclose(dy, [2.0, 0.0])
    assert y.dtype.kind == "f"


def test_jvp_of_constant_is_zero() -> None:
    y, dy = pb.jvp(lambda x: pb.tensor([5.0]), [np.ones(2)], [np.ones(2)])
    assert (y.tolist(), dy.tolist()) == ([5.0], [0.0])


def test_jvp_trees() -> None:
    def f(p: Any, x: Any) -> Any:
        return {"product": p["w"] * x, "more": (np.sum(x), [p["b"], 5.0])}

    primals = {"w": np.array([1.0, 2.0]), "b": 3.0}, np.array([5.0, 6.0])
    tangents = {"b": 1.0, "w": np.array([1.0, 0.0])}, np.array([0.0, 1.0])
    y, dy = pb.jvp(f, primals, tangents)
    assert y["product"].tolist() == [5, 12]
    assert dy["product"].tolist() == [5, 2]
    assert y["more"] == (11.0, [3.0, 5.0])
    assert dy["more"] == (1.0, [1.0, 0.0])
    assert pb.jvp(lambda x: (x, x * x), (3.0,), (2.0,)) == ((3.0, 9.0), (2.0, 12.0))


def test_jvp_list_of_numbers_is_one_tensor() -> None:
    assert pb.jvp(lambda x: x * x, ([1.0, 2.0],), ([1.0, 1.0],)) == ([1.0, 4.0], [2.0, 4.0])


def test_jvp_results_do_not_alias_inputs() -> None:
    x, t = np.ones(2), np.ones(2)
    y, dy = pb.jvp(lambda x: x, [x], [t])
    y[0] = dy[0] = 7
    assert x.tolist() == t.tolist() == [1, 1]


def test_jvp_inside_vmap_grad_and_jvp() -> None:
    x = np.array([0.5, 2.0])
    slopes = pb.vmap(lambda t: pb.jvp(cube, [x], [t])[1])(np.eye(2))
    np.testing.assert_allclose(slopes, np.diag(3 * x**2))
    second = pb.grad(lambda x: np.sum(pb.jvp(cube, [x], [np.ones(2)])[1]))(x)
    np.testing.assert_allclose(second, 6 * x)
    third = pb.jvp(lambda x: pb.jvp(pb.grad(cube), [x], [np.ones(2)])[1], [x], [np.ones(2)])[1]
    np.testing.assert_allclose(third, [6, 6])


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: pb.jvp(lambda x: None, [1.0], [1.0]), GradientError, "something to differentiate, got None"),
        (lambda: pb.jvp(cube, [np.array(["a"])], [1.0]), GradientError, "only numbers have"),
        (lambda: pb.jvp(cube, [{"a": 1.0}], [{"b": 1.0}]), ArgumentError, "input 1 is a dict with the keys 'a', but"),
        (lambda: pb.jvp(cube, [(1.0, 2.0)], [(1.0,)]), ArgumentError, "input 1 is a tuple of 2, but.*a tuple of 1"),
        (lambda: pb.jvp(cube, [1.0], [{"a": 1.0}]), ArgumentError, "input 1 is one tensor, but its tangent is dict"),
        (lambda: pb.jvp(cube, [1.0], [1j]), GradientError, "tangent of input 1 must be real"),
        (lambda: pb.jvp(3, [1.0], [1.0]), ArgumentError, "f must be a function, got int"),
        (lambda: pb.jvp(cube, 1.0, [1.0]), ArgumentError, "args must be a list"),
        (lambda: pb.jvp(cube, [1.0], [1.0, 2.0]), ArgumentError, "1 args but 2 tangents"),
        (lambda: pb.jvp(cube, [np.ones(2)], [np.ones(3)]), ShapeError, r"input 1 has shape \(2,\).*\(3,\)"),
    ],
)
def test_jvp_bad_arguments_raise(call: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize("f", [lambda x: x / 0, lambda x: np.divide(x, 0.0), lambda x: pb.div(x, 0)])
def test_tangent_of_division_by_zero_is_infinite(f: Any) -> None:
    x = np.array([1.0, -2.0], np.float32)
    with np.errstate(divide="ignore"):
        value, tangent = pb.jvp(f, [x], [x])
    assert tangent.dtype == np.float32
    np.testing.assert_array_equal(value, [np.inf, -np.inf])
    np.testing.assert_array_equal(tangent, [np.inf, -np.inf])
