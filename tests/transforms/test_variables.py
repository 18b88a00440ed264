"""Variables, and variable_grads: derivatives by what changes."""

from __future__ import annotations

import copy
import gc
import pickle
from threading import Thread

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, DataError, GradientError, UnconnectedError, VariableError

# ---- variables


def test_a_variable_holds_a_copy_and_can_be_assigned_to():
    data = np.array([1.0, 2.0])
    v = pb.variable(data, name="v")
    data[0] = 9
    assert v.tolist() == [1, 2]
    assert v.assign([3, 4]) is v
    assert v.tolist() == [3, 4]
    assert v.assign_add([1, 1]).tolist() == [4, 5]
    assert v.assign_sub(1).tolist() == [3, 4]
    assert v.dtype == np.float64


def test_a_variable_computes_like_a_tensor():
    v = pb.variable([1.0, 2.0, 3.0])
    assert (v * v).tolist() == [1, 4, 9]
    assert (2 - v).tolist() == [1, 0, -1]
    assert np.exp(v).shape == (3,)
    assert v.sum().item() == 6
    assert (v.shape, v.ndim, v.size, len(v)) == ((3,), 1, 3, 3)
    assert v[1].item() == 2
    assert [float(x) for x in v] == [1, 2, 3]
    assert isinstance(v, pb.Variable)
    assert not isinstance(v * 1, pb.Variable)


def test_a_tensor_taken_before_assign_keeps_its_value():
    t = pb.tensor([1.0, 2.0])
    v = pb.variable(t)
    twice = v * 2
    v.assign([8.0, 9.0])
    assert (t.tolist(), twice.tolist(), v.tolist()) == ([1, 2], [2, 4], [8, 9])


def test_methods_make_variables():
    v = pb.tensor([1.0]).variable(False, "frozen")
    assert (v.name, v.trainable) == ("frozen", False)


def test_names_are_unique_among_the_living():
    first = pb.variable(1.0, name="same")
    with pytest.raises(
        VariableError, match=r"the name 'same' is taken by a live variable of shape \(\)\. Choose another"
    ):
        pb.variable([2.0], name="same")
    del first
    gc.collect()
    assert pb.variable(2.0, name="same").item() == 2
    names = {pb.variable(0.0).name for _ in range(5)}
    assert len(names) == 5


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0, 3.0], r"w\.assign: expected shape \(2,\), got shape \(3,\)"),
        (1.0, r"w\.assign: expected shape \(2,\), got shape \(\)"),
        (np.ones(2), r"w\.assign: expected dtype float32, got dtype float64\. Cast it first"),
        (np.ones(2, np.int32), r"w\.assign: expected dtype float32, got dtype int32"),
    ],
)
def test_assign_keeps_shape_and_dtype(value, message):
    w = pb.variable([1.0, 2.0], name="w")
    with pytest.raises(VariableError, match=message):
        w.assign(value)
    assert w.tolist() == [1, 2]


@pytest.mark.parametrize("change", ["assign_add", "assign_sub"])
def test_changes_keep_the_shape(change):
    w = pb.variable([1.0, 2.0], name="w")
    for bad in ([1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(VariableError, match=rf"w\.{change}: expected shape \(2,\), got shape"):
            getattr(w, change)(bad)


def test_bad_variables_are_refused():
    with pytest.raises(DataError, match="text"):
        pb.variable("abc")
    with pytest.raises(VariableError, match="expected numbers, got dtype complex128"):
        pb.variable(np.ones(2) * 1j)
    with pytest.raises(ArgumentError, match="the name must be text, got int"):
        pb.variable(1.0, name=3)


def test_copies_and_pickles():
    v = pb.variable([1.0, 2.0], trainable=False, name="kept")
    assert copy.copy(v) is v
    again = pickle.loads(pickle.dumps(v))
    assert isinstance(again, pb.Variable)
    assert (again.tolist(), again.trainable) == ([1, 2], False)
    assert again.name != "kept"  # the first one lives
    data = pickle.dumps(v)
    del v
    gc.collect()
    assert pickle.loads(data).name == "kept"


def test_texts():
    v = pb.variable([1.0, 2.0], name="shown")
    assert repr(v) == "Variable([1., 2.], dtype=float32, name='shown')"
    assert str(v) == "Tensor\n    [1, 2]"


def test_assigning_a_traced_tensor_is_refused():
    v = pb.variable(1.0)
    with pytest.raises(TypeError, match="would lose its gradient"):
        pb.grad(lambda x: v.assign(x) * x)(pb.tensor(2.0))


# ---- variable_grads


@pytest.fixture
def two():
    return pb.variable([1.0, 2.0], name="w"), pb.variable(3.0, name="b")


def test_value_and_gradients_by_name(two):
    w, b = two
    value, grads = pb.variable_grads(lambda: (w * w).sum() * b)
    assert value.item() == 15
    assert {k: g.tolist() for k, g in grads.items()} == {"w": [6, 12], "b": 5}
    assert all(isinstance(g, pb.Tensor) for g in grads.values())


def test_unconnected_trainable_variables_are_absent(two):
    w, b = two
    assert pb.variable_grads(lambda: (w * 2).sum()).grads.keys() == {"w"}
    assert pb.variable_grads(lambda: (b > 0, (w * 2).sum())[1]).grads.keys() == {"w"}


def test_a_list_of_variables(two):
    w, b = two
    f = lambda: (w * b).sum()
    assert pb.variable_grads(f, [b]).grads.keys() == {"b"}
    w.trainable = False
    assert pb.variable_grads(f).grads.keys() == {"b"}
    grads = pb.variable_grads(f, [w, b]).grads
    assert grads["w"] is None
    assert grads["b"].item() == 3


@pytest.mark.parametrize("wrong", [pb.tensor(1.0), "w", [1.0], 3])
def test_the_list_must_be_of_variables(two, wrong):
    with pytest.raises(ArgumentError, match="var_list must be a list of variables, got"):
        pb.variable_grads(lambda: two[1] * 2, wrong)


def test_f_must_be_a_function():
    with pytest.raises(ArgumentError, match=r"variable_grads\(f\): f must be a function, got Tensor"):
        pb.variable_grads(pb.tensor(1.0))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda w: w * 2, r"must return a scalar \(rank 0\), got rank 1, shape \(2,\)"),
        (lambda w: w[:1], r"must return a scalar \(rank 0\), got rank 1, shape \(1,\)"),
        (lambda w: None, "must return a tensor, a scalar, got None"),
        (lambda w: (w.sum(), w), "must return a tensor, a scalar, got tuple"),
    ],
)
def test_f_must_return_a_scalar(two, f, message):
    with pytest.raises(GradientError, match=message):
        pb.variable_grads(lambda: f(two[0]))


def test_nothing_trainable_is_an_error_with_the_count(two):
    with pytest.raises(UnconnectedError, match="f read 0 trainable variables"):
        pb.variable_grads(lambda: pb.tensor(1.0))
    two[1].trainable = False
    with pytest.raises(GradientError, match="var_list has no trainable variable among its 1"):
        pb.variable_grads(lambda: two[1] * 2, [two[1]])
    with pytest.raises(GradientError, match="var_list has no trainable variable among its 0"):
        pb.variable_grads(lambda: two[0].sum(), [])


def test_nothing_connected_is_an_error(two):
    w, b = two
    with pytest.raises(
        UnconnectedError, match=r"Cannot compute gradient of y=f\(\) with respect to any trainable variable"
    ):
        pb.variable_grads(lambda: (w.sum() > b) * 1.0)
    with pytest.raises(UnconnectedError, match=r"stop_gradient \(test_variables\.py"):
        pb.variable_grads(lambda: pb.stop_gradient(b * 2))


def test_a_variable_assigned_in_f_counts_from_then_on():
    w = pb.variable(2.0, name="w")

    def f():
        y = w * w
        w.assign(10.0)
        return y + w * w

    value, grads = pb.variable_grads(f)
    assert (value.item(), grads["w"].item()) == (104, 24)
    assert w.item() == 10


def test_gradients_have_the_dtype_of_their_variable():
    a, b = pb.variable(np.ones(2), name="a"), pb.variable(np.array([1, 2]), name="b")
    grads = pb.variable_grads(lambda: (a * b).sum()).grads
    assert (grads["a"].dtype, grads["b"].dtype) == (np.float64, np.float32)


def test_gradients_are_arrays_of_their_own():
    v = pb.variable(np.ones(3), name="v")
    x = np.full(3, 5.0)
    grad = pb.variable_grads(lambda: (v * x).sum()).grads["v"]
    x[:] = 0
    assert grad.tolist() == [5, 5, 5]


def test_big_variables():
    v = pb.variable(np.ones(80_000), name="v")
    assert set(pb.variable_grads(lambda: (v * v * 3).sum()).grads["v"].tolist()) == {6.0}


def test_variables_are_constants_to_grad():
    v = pb.variable(3.0)
    g = pb.grad(lambda x: x * v)
    assert g(1.0) == 3
    v.assign(7.0)
    assert g(1.0) == 7


def test_nesting():
    v, w = pb.variable(2.0, name="v"), pb.variable(5.0, name="w")
    # d/dv (d/dv v³ w) = 6 v w;  d/dw (d/dv v³ w) = 3 v²
    inner = lambda: pb.variable_grads(lambda: v * v * v * w, [v]).grads["v"]
    grads = pb.variable_grads(inner).grads
    assert (grads["v"].item(), grads["w"].item()) == (60, 12)
    assert pb.variable_grads(lambda: pb.grad(lambda x: x * x * v)(pb.tensor(3.0))).grads["v"].item() == 6
    assert pb.grad(lambda x: pb.variable_grads(lambda: x * x * v).grads["v"])(3.0) == 6
    third = lambda: pb.variable_grads(inner, [v]).grads["v"]
    assert pb.variable_grads(third, [v]).grads["v"].item() == 30


def test_an_exception_stops_the_watching():
    v = pb.variable(2.0, name="v")

    def broken():
        v * 2
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        pb.variable_grads(broken)
    assert float(v * 2) == 4  # not traced


def test_another_thread_is_not_watched():
    v = pb.variable(2.0, name="v")
    seen = []

    def f():
        other = Thread(target=lambda: seen.append(float(v * 3)))  # float() of a traced tensor would raise
        other.start()
        other.join()
        return v * v

    assert pb.variable_grads(f).grads["v"].item() == 4
    assert seen == [6]


def test_has_aux_gives_the_value_and_what_f_returned_beside_it():
    v = pb.variable([1.0, 2.0], name="v")
    (value, aux), grads = pb.variable_grads(lambda: (np.sum(v * v), {"v": v * 3, "note": "kept"}), has_aux=True)
    assert value.item() == 5.0
    assert grads["v"].tolist() == [2.0, 4.0]
    assert aux["v"].tolist() == [3.0, 6.0]
    assert aux["note"] == "kept"
    with pytest.raises(GradientError, match=r"variable_grads\(f, has_aux=True\): f must return \(y, aux\), got Tensor"):
        pb.variable_grads(lambda: np.sum(v * v), has_aux=True)


def test_errors_say_which_entry_and_how_many_variables():
    a, b = pb.variable(1.0, trainable=False, name="frozen_a"), pb.variable(1.0, trainable=False, name="frozen_b")
    with pytest.raises(GradientError, match=r"var_list has no trainable variable among its 2 \(frozen_a, frozen_b\)"):
        pb.variable_grads(lambda: a * b, [a, b])
    with pytest.raises(GradientError, match=r"var_list has no trainable variable among its 0; .*"):
        pb.variable_grads(lambda: a * b, [])
    with pytest.raises(ArgumentError, match=r"var_list must be a list of variables, got float as var_list\[1\] of 2"):
        pb.variable_grads(lambda: a * b, [a, 1.0])
    with pytest.raises(
        UnconnectedError, match=r"read 0 trainable variables.*It read 2 that are .*: frozen_a, frozen_b"
    ):
        pb.variable_grads(lambda: a * b)
