"""``vmap``: in_axes, out_axes, types of results, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pullback as pb
from pullback.errors import ArgumentError, BatchedValueError, DataError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("into", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("out", [0, 1, 2, -1, -2, -3])
def test_vmap_in_axes_and_out_axes(into: int, out: int) -> None:
    found = pb.vmap(lambda x: np.transpose(x) * 2, in_axes=into, out_axes=out)(X)
    assert_array_equal(found, np.stack([part.T * 2 for part in np.moveaxis(X, into, 0)], axis=out))


@pytest.mark.parametrize(
    ("axes", "args"),
    [
        ((0, None), ({"a": X, "b": X}, 2.0)),
        ([0, None], ({"a": X, "b": X}, 2.0)),
        (({"a": 0, "b": -1}, None), ({"a": X, "b": np.moveaxis(X, 0, -1)}, 2.0)),
        (({"b": None, "a": 0}, 0), ({"a": X, "b": X[0]}, np.full(2, 2.0))),
    ],
)
def test_vmap_in_axes_of_trees(axes: Any, args: Any) -> None:
    found = pb.vmap(lambda p, k: (p["a"] * k, {"sum": np.sum(p["b"])}), in_axes=axes)(*args)
    assert_array_equal(found[0], X * 2)
    assert found[1]["sum"].shape == (2,)


def test_vmap_out_axes_of_trees() -> None:
    made = pb.vmap(lambda x: {"a": x, "b": (x.T, np.float64(7))}, out_axes={"b": (-1, None), "a": 1})(X)
    assert (made["a"].shape, made["b"][0].shape, made["b"][1]) == ((3, 2, 4), (4, 3, 2), 7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vmap_python_number_result_has_dtype_of_examples(dtype: str) -> None:
    same, once = pb.vmap(lambda x: (0.1, 0.1), out_axes=(0, None))(np.ones(2, dtype))
    assert (same.dtype, once.dtype) == (dtype, dtype)
    assert_array_equal(same, np.full(2, 0.1, dtype))
    assert once == np.array(0.1, dtype)


def test_vmap_returns_type_of_input() -> None:
    assert pb.vmap(lambda x: x + 1)([1.0, 2.0]) == [2.0, 3.0]
    assert isinstance(pb.vmap(lambda x: x + 1)(pb.tensor([1.0, 2.0])), pb.Tensor)
    assert pb.vmap(lambda x: np.sum(x))(np.ones((0, 3))).shape == (0,)
    assert_array_equal(pb.vmap(lambda x, k: x * k)(np.ones(2), k=np.arange(2.0)), [0, 1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.vmap(3), ArgumentError, r"vmap\(f\): f must be a function, got int"),
        (lambda: pb.vmap(np.sin, np.ones(2)), ArgumentError, r"in_axes must be integers.*is vmap\(f\)\(x\)"),
        (lambda: pb.vmap(np.sin, in_axes=0.5), ArgumentError, "in_axes must be integers or None, .* got 0.5"),
        (lambda: pb.vmap(np.sin, out_axes=True), ArgumentError, "out_axes must be integers or None, .* got True"),
        (lambda: pb.vmap(np.sin, 3)(X), ShapeError, r"axis 3 of argument 1, which has shape \(2, 3, 4\)"),
        (lambda: pb.vmap(np.sin, -4)(X), ShapeError, "axis -4 of argument 1"),
        (lambda: pb.vmap(np.sin, 0, 3)(X), ShapeError, "out_axes names axis 3 of a result of rank 3; use -3 to 2"),
        (lambda: pb.vmap(np.add)(X, 2.0), ShapeError, r"axis 0 of argument 2, which has shape \(\); None means"),
        (lambda: pb.vmap(np.add, (0,))(X, X), ArgumentError, r"in_axes has 1 entries, \(0,\), .* given 2 arguments"),
        (lambda: pb.vmap(np.add, None)(X, X), ArgumentError, "no argument has examples"),
        (lambda: pb.vmap(np.sin, out_axes=None)(X), ArgumentError, "out_axes is None for a result that is different"),
        (lambda: pb.vmap(lambda p: p, ({"c": 0},))({"a": X}), ArgumentError, r"in_axes=\{'c': 0\} does not fit"),
        (
            lambda: pb.vmap(np.add)(np.ones(3), np.ones(4)),
            ShapeError, r"argument 1 has 3 examples along axis 0 .* argument 2 has 4",
        ),
        (
            lambda: pb.vmap(lambda p: p["a"])({"a": np.ones(3), "b": [np.ones(4), 1.0]}),
            ShapeError, r"axis 0 of \['b'\]\[1\] of argument 1, which has shape \(\)",
        ),
        (
            lambda: pb.vmap(lambda p: p["a"])({"a": np.ones(3), "b": np.ones(4)}),
            ShapeError, r"\['a'\] of argument 1 has 3 examples .* \['b'\] of argument 1 has 4",
        ),
        (
            lambda: pb.vmap(lambda x, k: x * k)(X, k=3.0),
            ShapeError, r"keyword arguments .* argument 'k' has shape \(\)\. Give .* by position, with None in in_axes",
        ),
        (lambda: pb.vmap(lambda x: x if x > 0 else -x)(np.ones(2)), BatchedValueError, r"bool\(\) .* use where\("),
        (lambda: pb.vmap(lambda x: max(x, 0.0))(np.ones(2)), BatchedValueError, r"bool\(\) .* 2 examples"),
        (lambda: pb.vmap(float)(np.ones(2)), BatchedValueError, r"float\(\) of a value that is different"),
        (lambda: pb.vmap(range)(np.ones(2, int)), BatchedValueError, "an index of a value that is different"),
        (lambda: pb.vmap(np.asarray)(np.ones((2, 3))), BatchedValueError, r"np.asarray\(\) of a value"),
    ],
)  # fmt: skip
def test_vmap_bad_arguments_raise(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_vmap_and_jvp_of_datetime_arrays_raise() -> None:
    dates = np.array(["2020-01-01"], "M8[D]")
    with pytest.raises(DataError, match="numbers or bools"):
        pb.vmap(lambda x: x)(dates)
    with pytest.raises(DataError, match="numbers or bools"):
        pb.jvp(lambda x: x, [dates], [dates])


def test_results_of_vmap_share_no_memory_with_arguments() -> None:
    x, w = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    same = lambda a, w: (a, a[1:], np.broadcast_to(a[0], (2,)), w, a * w)
    for in_axes, out_axes in ((0, None), 0), ((1, None), 1), ((1, None), 0):
        for z in pb.vmap(same, in_axes, out_axes)(x, w if in_axes[0] == 0 else w[:3]):
            z += 1.0
    np.testing.assert_array_equal(x, np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(w, np.arange(4.0))


@pytest.mark.parametrize("x", [np.ones((2, 3)), np.ones((2, 5, 3))])
def test_vmap_of_matmul_names_shapes_of_one_example(x: Any) -> None:
    shape = str(x.shape[1:]).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ShapeError, match=rf"matmul: got shapes {shape} and \(4, 4\)"):
        pb.vmap(lambda x: x @ np.ones((4, 4)))(x)


def test_vmap_repr_names_the_function() -> None:
    assert repr(pb.vmap(np.sin)) == "<vmap of sin>"
