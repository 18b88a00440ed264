"""Conversion to arrays: dtype and shape of numbers, lists and arrays, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core.convert import as_array, as_dtype, as_value
from pullback.errors import ArgumentError, DataError

ROWS = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3.0, "float32", ()),
        (3, "float32", ()),
        (True, "bool", ()),
        ([1, 2.5], "float32", (2,)),
        ([True, False], "bool", (2,)),
        ([True, 2], "float32", (2,)),
        ([[1, 2], [3, 4]], "float32", (2, 2)),
        ((1, (2)), "float32", (2,)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        (range(3), "float32", (3,)),
        ([1, None, 3], "float32", (3,)),
        (1j, "complex64", ()),
        ([np.float64(1.0), 2], "float64", (2,)),
        ([1, np.float64(2.0)], "float64", (2,)),
        ([[1.0], [np.float16(2)]], "float16", (2, 1)),
        ([np.ones(2), [1, 2]], "float64", (2, 2)),
        (np.ones(2), "float64", (2,)),
        (np.ones((2, 1), "i4"), "int32", (2, 1)),
        (np.float64(1.0), "float64", ()),
        (np.int16(1), "int16", ()),
        (np.zeros((0, 3), "f2"), "float16", (0, 3)),
    ],
)
def test_tensor_dtype_and_shape(data: Any, dtype: str, shape: Any) -> None:
    made = as_array(data)
    assert (made.dtype, made.shape) == (np.dtype(dtype), shape)
    t = pb.tensor(data)
    assert (t.dtype, t.shape) == (np.dtype(dtype), shape)


def test_as_array_converts_none_to_zero() -> None:
    np.testing.assert_array_equal(as_array([[1, None], [None, 4]]), [[1, 0], [0, 4]])


@pytest.mark.parametrize("layout", [ROWS.T, ROWS[:, ::-1], np.asfortranarray(ROWS), np.broadcast_to(ROWS[0], (4, 3))])
def test_tensor_of_noncontiguous_array(layout: Any) -> None:
    np.testing.assert_array_equal(pb.tensor(layout).numpy(), layout)


def test_objects_with_array_protocol() -> None:
    class Other:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return ROWS

    np.testing.assert_array_equal(pb.tensor(Other()).numpy(), ROWS)
    np.testing.assert_array_equal(pb.add(Other(), 1.0), ROWS + 1)


class Foreign:
    """An array of another library: it has a dtype and signs of its own."""

    dtype = "foreign"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.arange(4.0).reshape(2, 2)

    def __rmul__(self, other: Any) -> Any:
        raise AssertionError("must not be called")


@pytest.mark.parametrize("make", [lambda x: x.view(np.recarray), np.ma.array, lambda _: Foreign()])
def test_array_subclasses_and_foreign_arrays_in_ops(make: Any) -> None:
    x, values = np.ones((2, 2)), np.arange(4.0).reshape(2, 2)
    other = make(values)  # the sign * of a matrix would be a product of matrices
    value, grad = pb.value_and_grad(lambda x: (pb.mul(x, other) * x).sum())(x)
    assert type(value) is np.float64
    assert type(grad) is np.ndarray
    np.testing.assert_array_equal(grad, 2 * values)
    np.testing.assert_array_equal(pb.jvp(lambda x: pb.mul(x, other), [x], [x])[1], values)
    twice = pb.grad(lambda x: pb.grad(lambda x: pb.mul(x * x, other).sum())(x).sum())(x)
    np.testing.assert_array_equal(twice, 2 * values)
    assert type(pb.mul(x, other)) is type(pb.sin(other)) is np.ndarray


@pytest.mark.parametrize(
    "bad", [np.array([1, "a"], object), np.ones(2, "m8[s]"), np.ma.array([1.0, 2.0], mask=[False, True])]
)
def test_grad_rejects_object_timedelta_and_masked_arrays(bad: Any) -> None:
    with pytest.raises(DataError, match=r"mul: expected numbers or bools, got|mul: got an array with masked elements"):
        pb.grad(lambda x: (x * bad).sum())(np.ones(2))


def test_tensor_compared_with_none() -> None:
    x, y = pb.tensor([1.0, 2.0]), pb.variable(3.0)
    assert [None].count(x) == [None].count(y) == 0  # compared with ==
    assert (x == None) is (y == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711


def test_as_value_of_scalar_is_numpy_scalar() -> None:
    for x in (3.0, np.array(3.0), np.float32(3), pb.tensor(3.0)):
        assert isinstance(as_value(x), np.generic)


@pytest.mark.parametrize(
    "data",
    ["a", b"a", ["a"], [1, "a"], object(), [object()], {"a": 1}, {1, 2}, len, Decimal(1), Fraction(1, 2)],
)
def test_as_array_rejects_non_numeric_data(data: Any) -> None:
    with pytest.raises(DataError, match="thing: expected numbers"):
        as_array(data, subject="thing")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1, 2], [3]], "found lengths 2 and 1 at depth 1"),
        ([[1], [[2]]], "ragged"),
        ([1, [2]], "found lengths a number and 1 at depth 1"),
        ([[[1, 2]], [[1, 2], [3, 4]]], "found lengths 1 and 2 at depth 1"),
        ([np.ones(2), np.ones(3)], "found lengths 2 and 3 at depth 1"),
        ([[], [1]], "found lengths 0 and 1 at depth 1"),
    ],
)
def test_ragged_lists_raise(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_array(data)


def test_list_of_traced_tensors_as_operand() -> None:
    assert pb.grad(lambda x: pb.mul([x, [1.0, x][1]], [3.0, x]))(2.0) == 7.0


@pytest.mark.parametrize(
    ("given", "want"), [("int32", "i4"), (np.float64, "f8"), ("bool", "?"), (float, "f8"), ("string", "U")]
)
def test_as_dtype(given: Any, want: str) -> None:
    assert as_dtype(given) == np.dtype(want)


@pytest.mark.parametrize("bad", ["no such", "M8[D]", object, 3])
def test_as_dtype_rejects_unsupported_dtypes(bad: Any) -> None:
    with pytest.raises(ArgumentError):
        as_dtype(bad)


def test_set_default_dtype() -> None:
    assert pb.get_default_dtype() == np.float32
    with pb.default_dtype("float64"):
        assert pb.tensor([1.0]).dtype == np.float64
        assert pb.tensor([True]).dtype == bool
        with pb.default_dtype(np.float16):
            assert pb.tensor(1.0).dtype == np.float16
        assert pb.get_default_dtype() == np.float64
    with pytest.raises(ZeroDivisionError), pb.default_dtype("float64"):
        1 / 0
    assert pb.tensor([1.0]).dtype == np.float32


def test_process_default_dtype() -> None:
    pb.set_default_dtype("float64")
    try:
        assert pb.tensor([1.0]).dtype == np.float64
        with pb.default_dtype("float32"):
            assert pb.tensor([1.0]).dtype == np.float32
    finally:
        pb.set_default_dtype("float32")
    assert pb.tensor([1.0]).dtype == np.float32


@pytest.mark.parametrize("bad", ["int32", bool, "complex64"])
def test_default_dtype_must_be_float(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="must be a float"):
        pb.set_default_dtype(bad)
    with pytest.raises(ArgumentError, match="must be a float"), pb.default_dtype(bad):
        pass


def test_tensor_as_python_container_and_number() -> None:
    x = pb.tensor([[5.0, -2.0], [7.0, 1.5]])
    assert x.rank == x.ndim == 2
    assert 7.0 in x
    assert 8.0 not in x
    for got, wanted in zip(divmod(x, 2.0), divmod(x.numpy(), 2.0), strict=True):
        np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(divmod(9.0, x), divmod(9.0, x.numpy()), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert [10, 20, 30][pb.tensor(2, dtype="int32")] == 30
    with pytest.raises(pb.errors.ArgumentError, match=r"only an integer tensor can be an index, got float32 of shape"):
        [10, 20][pb.tensor(1.0)]
    assert x.__dlpack_device__() == np.ones(1).__dlpack_device__()
