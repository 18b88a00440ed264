"""pandas and xarray beside tensors: their operators are left to ours, or ours to theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import PullbackError

W = np.array([2.0, 3.0])


def grad(f: Any) -> Any:
    return pb.grad(f)(W)


# ---- the same protocols, by small classes


class Frame:
    """As pandas: leaves its operators to what has a higher priority."""

    __pandas_priority__ = 4000
    __array_ufunc__ = np.ndarray.__array_ufunc__

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __mul__(self, other: Any) -> Any:
        if getattr(other, "__pandas_priority__", 0) > self.__pandas_priority__:
            return NotImplemented
        raise AssertionError("not left to the tensor")

    __rmul__ = __mul__


class Labelled:
    """As xarray: performs operators itself, on whatever array it holds."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return Labelled(getattr(ufunc, method)(*(a.data if isinstance(a, Labelled) else a for a in args), **kwargs))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.data)

    def __mul__(self, other: Any) -> Any:
        return Labelled(self.data * other)


def test_operators_with_pandas_priority() -> None:
    frame = Frame([1.0, 5.0])
    np.testing.assert_allclose(grad(lambda w: pb.sum(frame * w)), [1.0, 5.0])
    np.testing.assert_allclose(grad(lambda w: pb.sum(w * frame)), [1.0, 5.0])
    np.testing.assert_allclose(grad(lambda w: pb.sum(frame * w[0])), [6.0, 0.0])
    np.testing.assert_allclose(grad(lambda w: pb.dot(frame, w)), [1.0, 5.0])
    np.testing.assert_allclose(grad(lambda w: np.dot(frame, w)), [1.0, 5.0])


def test_operators_with_foreign_ufuncs() -> None:
    labelled = Labelled(np.array([1.0, 5.0]))
    for f in (lambda w: labelled * w, lambda w: w * labelled, lambda w: np.multiply(w, labelled)):
        made: list[Any] = []
        np.testing.assert_allclose(grad(lambda w, f=f, made=made: made.append(f(w)) or pb.sum(made[0])), [1.0, 5.0])
        assert type(made[0]) is Labelled
    np.testing.assert_allclose(grad(lambda w: pb.sum(labelled) * w[0]), [6.0, 0.0])


def test_xarray_does_not_see_tensor_variable_method() -> None:
    t = pb.tensor([1.0, 2.0])
    space: dict[str, Any] = {}
    find = "def find(x): return getattr(x, 'variable', x)"
    exec(compile(find, str(Path("site-packages", "xarray", "core.py")), "exec"), space)
    assert space["find"](t) is t
    assert t.variable(False, "frozen").trainable is False


def test_helper_ops_are_not_tensor_methods() -> None:
    names = {n for n in dir(pb.Tensor) if not n.startswith("_")}
    helpers = "getitem set_item scatter contract cast_to_float eigh_rows give_to_largest diagonal_part gamma_draw"
    assert not names & {*helpers.split()}


# ---- the libraries themselves, where they are installed


def test_pandas_on_either_side() -> None:
    pd = pytest.importorskip("pandas")
    df = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    for f, expected in (
        (lambda w: pb.sum(df["a"] * w[0]), [6.0, 0.0]),
        (lambda w: pb.sum(w[0] * df["a"]), [6.0, 0.0]),
        (lambda w: pb.sum(df["a"].iloc[:2] * w), [1.0, 2.0]),
        (lambda w: pb.sum(df * w), [6.0, 15.0]),
        (lambda w: pb.sum(w * df), [6.0, 15.0]),
        (lambda w: pb.sum(df @ w), [6.0, 15.0]),
        (lambda w: pb.sum(df.dot(w)), [6.0, 15.0]),
        (lambda w: pb.sum(w @ df.T), [6.0, 15.0]),
        (lambda w: pb.sum((df["a"] - w[0]) ** 2 * df["b"]), [-4.0, 0.0]),
        (lambda w: pb.sum(np.multiply(df["a"].iloc[:2], w)), [1.0, 2.0]),
    ):
        np.testing.assert_allclose(grad(f), expected)


def test_xarray_on_either_side() -> None:
    xr = pytest.importorskip("xarray")
    da = xr.DataArray(np.array([1.0, 2.0]), dims="t", coords={"t": [0, 1]})
    for f, expected in (
        (lambda w: pb.sum((da * w[0]).data), [3.0, 0.0]),
        (lambda w: (w[0] * da).sum().data, [3.0, 0.0]),
        (lambda w: pb.sum(da * w), [1.0, 2.0]),
        (lambda w: pb.sum(w * da), [1.0, 2.0]),
        (lambda w: pb.sum((xr.Dataset({"v": da}) * w[0])["v"].data), [3.0, 0.0]),
    ):
        np.testing.assert_allclose(grad(f), expected)
    rolled = grad(lambda w: (xr.DataArray(w * 1.0, dims="t").rolling(t=2).mean()[1] ** 2).data)
    np.testing.assert_allclose(rolled, [rolled[0], rolled[0]])
    with pytest.raises(PullbackError):
        grad(lambda w: float((da * w[0]).sum()))


def test_compiled_function_that_returns_container_of_traced_numbers() -> None:
    made = pb.compile(lambda w: Frame(np.array([w[0], w[1] * 2])))(W)
    np.testing.assert_array_equal(made, [2, 6])
    np.testing.assert_array_equal(pb.compile(lambda w: Labelled(np.array([1.0, 5.0])) * w)(W), [2, 15])
    frame = Frame([1.0, 5.0])
    assert pb.compile(lambda w: (w, frame))(W)[1] is frame
