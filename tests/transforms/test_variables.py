"""Variables: assignment, names, in-place arithmetic; variable_grads."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
from threading import Thread

import numpy as np
import pytest

import pullback as pb
from pullback.errors import (
    ArgumentError,
    BatchedValueError,
    DataError,
    GradientError,
    UnconnectedError,
    VariableError,
)

# ---- variables


def test_variable_copies_data_and_assigns():
    data = np.array([1.0, 2.0])
    v = pb.variable(data, name="v")
    data[0] = 9
    assert v.tolist() == [1, 2]
    assert v.assign([3, 4]) is v
    assert v.tolist() == [3, 4]
    assert v.assign_add([1, 1]).tolist() == [4, 5]
    assert v.assign_sub(1).tolist() == [3, 4]
    assert v.dtype == np.float64


def test_variable_arithmetic_and_indexing():
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


def test_tensor_computed_before_assign_keeps_value():
    t = pb.tensor([1.0, 2.0])
    v = pb.variable(t)
    twice = v * 2
    v.assign([8.0, 9.0])
    assert (t.tolist(), twice.tolist(), v.tolist()) == ([1, 2], [2, 4], [8, 9])


def test_tensor_variable_method():
    v = pb.tensor([1.0]).variable(False, "frozen")
    assert (v.name, v.trainable) == ("frozen", False)


def test_variable_name_reuse():
    def cell():
        w = pb.variable([1.0, 2.0], name="cell/w")
        return w, pb.variable_grads(lambda: (w * w).sum()).grads["cell/w"].tolist()

    kept, first = cell()
    again, second = cell()
    assert first == second == [2, 4]
    assert kept.name == again.name == "cell/w"
    pb.train.sgd(0.5).minimize(lambda: (kept * kept).sum())  # by the variable, though another has its name
    assert (kept.tolist(), again.tolist()) == ([0, 0], [1, 2])
    grads = pb.variable_grads(lambda: (kept + 1.0).sum()).grads
    grads["cell/w"] = grads["cell/w"] * 3.0
    pb.train.sgd(1.0).apply_gradients(grads)  # which know their variables
    assert (kept.tolist(), again.tolist()) == ([-3, -3], [1, 2])
    assert type(pickle.loads(pickle.dumps(grads))) is type(copy.copy(grads)) is dict
    assert len({pb.variable(0.0).name for _ in range(5)}) == 5


def test_duplicate_variable_names_raise(tmp_path):
    first, second = pb.variable(1.0, name="same"), pb.variable([2.0], name="same")
    message = (
        r": two variables are named 'same', of shape \(\) made at test_variables\.py:\d+ and of shape \(1,\) made at "
        r"test_variables\.py:\d+; it needs names that tell them apart\. Give one another name"
    )
    optimizer = pb.train.adam(0.1)
    optimizer.minimize(lambda: first * 1.0 * second.sum())
    for what, call in {
        "variable_grads": lambda: pb.variable_grads(lambda: first * 1.0 * second.sum()),
        "save": lambda: pb.train.save(tmp_path / "two", [first, second]),
        "sgd": lambda: pb.train.sgd(0.1).apply_gradients({"same": pb.tensor(1.0)}),
        r"adam\.state_dict": optimizer.state_dict,
        r"adam\.load_state_dict": lambda: optimizer.load_state_dict({}),
    }.items():
        with pytest.raises(VariableError, match=what + message):
            call()
    frozen = pb.variable(1.0, trainable=False, name="same")
    with pytest.raises(VariableError, match="variable_grads: two variables are named 'same'"):
        pb.variable_grads(lambda: first * frozen, [first, frozen])
    assert pb.variable_grads(lambda: first * 2.0).grads["same"].item() == 2  # only one is there
    pb.train.save(tmp_path / "by_place", {"a": first, "b": second})
    optimizer.apply_gradients({first: pb.tensor(1.0)})


def test_variable_name_returns_to_older_variable_after_deletion():
    older = pb.variable(3.0, name="ages")
    newer = pb.variable(4.0, name="ages")
    assert newer.item() == 4
    del newer
    gc.collect()
    pb.train.sgd(1.0).apply_gradients({"ages": pb.tensor(1.0)})
    assert older.item() == 2


IN_PLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul,
}  # fmt: skip


@pytest.mark.parametrize("sign", IN_PLACE)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_variable_in_place_arithmetic_assigns(sign, compiled):
    start, by = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([[0.5, 3.0], [2.0, 1.0]], np.float32)
    v = pb.variable(start)
    alias = v

    def step(by):
        nonlocal v
        v = IN_PLACE[sign](v, by)
        return v * 1.0

    (pb.compile(step) if compiled else step)(by)
    assert v is alias
    np.testing.assert_allclose(alias.numpy(), IN_PLACE[sign](start.copy(), by), rtol=1e-6)
    assert alias.dtype == np.float32


def test_variable_gradient_descent_with_isub():
    w, b = pb.variable([0.0, 0.0], name="descent/w"), pb.variable(0.0, name="descent/b")
    x, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "float32"), np.array([1.0, 2.0, 3.0], "float32")
    for _ in range(200):
        grads = pb.variable_grads(lambda: pb.mean((x @ w + b - y) ** 2)).grads
        for v in (w, b):
            v -= 0.5 * grads[v.name]
    np.testing.assert_allclose(w.numpy(), [1, 2], atol=1e-2)


def test_variable_in_place_arithmetic_casts_like_numpy():
    v, n = pb.variable([1.0, 2.0], name="narrow"), pb.variable([1, 2], name="whole", dtype="int32")
    v += np.array([0.1, 0.2])
    v *= np.float64(2)
    v += 1
    v -= np.array([1, 1])
    assert v.dtype == np.float32
    n += 3
    n *= np.array([2, 2])
    assert (n.dtype, n.tolist()) == (np.int32, [8, 10])
    with pytest.raises(VariableError, match=r"whole \+=: the variable is int32, got float64\. Cast it first"):
        n += 0.5
    with pytest.raises(VariableError, match=r"whole\.assign_sub: the variable is int32, got float32\. Cast it first"):
        n.assign_sub(pb.tensor([0.5, 0.5]))
    with pytest.raises(VariableError, match=r"whole /=: the variable is int32, and the result would be float64"):
        n /= 2
    with pytest.raises(VariableError, match=r"whole \*\*=: .*negative integer powers"):
        n **= -1
    with pytest.raises(VariableError, match=r"narrow \+=: expected shape \(2,\), got shape \(3,\)"):
        v += [1.0, 2.0, 3.0]
    assert n.tolist() == [8, 10]


def test_variable_in_place_arithmetic_under_transforms():
    v = pb.variable(2.0, name="counted")

    def f(x):
        nonlocal v
        v += 1.0
        return x * v

    assert pb.grad(f)(1.0) == 3
    assert pb.variable_grads(lambda: f(5.0)).grads["counted"].item() == 5
    assert v.item() == 4
    with pytest.raises(TypeError, match=r"counted \*=.* would lose its gradient"):
        pb.grad(lambda x: operator.imul(v, x) * x)(pb.tensor(2.0))
    with pytest.raises(BatchedValueError, match=r"counted -=: the value is different for each example of vmap"):
        pb.vmap(lambda x: operator.isub(v, x))(np.ones(3))
    program = pb.compile(lambda d: operator.iadd(v, d) * 1.0)
    assert [float(program(1.0)), float(program(np.float64(2.0)))] == [5, 7]
    assert v.item() == 7


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0, 3.0], r"w\.assign: expected shape \(2,\), got shape \(3,\)"),
        (1.0, r"w\.assign: expected shape \(2,\), got shape \(\)"),
        (np.ones(2), r"w\.assign: expected dtype float32, got dtype float64\. Cast it first"),
        (np.ones(2, np.int32), r"w\.assign: expected dtype float32, got dtype int32"),
    ],
)
def test_assign_of_other_shape_or_dtype_raises(value, message):
    w = pb.variable([1.0, 2.0], name="w")
    with pytest.raises(VariableError, match=message):
        w.assign(value)
    assert w.tolist() == [1, 2]


@pytest.mark.parametrize("change", ["assign_add", "assign_sub"])
def test_assign_add_and_assign_sub_of_other_shape_raise(change):
    w = pb.variable([1.0, 2.0], name="w")
    for bad in ([1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(VariableError, match=rf"w\.{change}: expected shape \(2,\), got shape"):
            getattr(w, change)(bad)


def test_variable_bad_arguments_raise():
    with pytest.raises(DataError, match="text"):
        pb.variable("abc")
    with pytest.raises(VariableError, match="expected numbers, got dtype complex128"):
        pb.variable(np.ones(2) * 1j)
    with pytest.raises(ArgumentError, match="the name must be text, got int"):
        pb.variable(1.0, name=3)


def test_variable_copy_and_pickle():
    v = pb.variable([1.0, 2.0], trainable=False, name="kept")
    twin = copy.copy(v)
    twin.assign([3.0, 4.0])
    assert (v.tolist(), twin.tolist(), twin.trainable) == ([1, 2], [3, 4], False)
    again = pickle.loads(pickle.dumps(v))
    assert isinstance(again, pb.Variable)
    assert (again.tolist(), again.trainable) == ([1, 2], False)
    assert again.name != "kept"  # the first one lives
    data = pickle.dumps(v)
    del v
    gc.collect()
    assert pickle.loads(data).name == "kept"


def test_variable_repr_and_str():
    v = pb.variable([1.0, 2.0], name="shown")
    assert repr(v) == "Variable([1., 2.], dtype=float32, name='shown')"
    assert str(v) == "Tensor\n    [1, 2]"


def test_assign_of_traced_tensor_raises():
    v = pb.variable(1.0)
    with pytest.raises(TypeError, match="would lose its gradient"):
        pb.grad(lambda x: v.assign(x) * x)(pb.tensor(2.0))


# ---- variable_grads


@pytest.fixture
def two():
    return pb.variable([1.0, 2.0], name="w"), pb.variable(3.0, name="b")


def test_variable_grads_value_and_gradients_by_name(two):
    w, b = two
    value, grads = pb.variable_grads(lambda: (w * w).sum() * b)
    assert value.item() == 15
    assert {k: g.tolist() for k, g in grads.items()} == {"w": [6, 12], "b": 5}
    assert all(isinstance(g, pb.Tensor) for g in grads.values())


def test_variable_grads_omits_unconnected_variables(two):
    w, b = two
    assert pb.variable_grads(lambda: (w * 2).sum()).grads.keys() == {"w"}
    assert pb.variable_grads(lambda: (b > 0, (w * 2).sum())[1]).grads.keys() == {"w"}


def test_variable_grads_var_list(two):
    w, b = two
    f = lambda: (w * b).sum()
    assert pb.variable_grads(f, [b]).grads.keys() == {"b"}
    w.trainable = False
    assert pb.variable_grads(f).grads.keys() == {"b"}
    grads = pb.variable_grads(f, [w, b]).grads
    assert grads["w"] is None
    assert grads["b"].item() == 3


@pytest.mark.parametrize("wrong", [pb.tensor(1.0), "w", [1.0], 3])
def test_variable_grads_bad_var_list_raises(two, wrong):
    with pytest.raises(ArgumentError, match="var_list must be a list of variables, got"):
        pb.variable_grads(lambda: two[1] * 2, wrong)


def test_minimize_positional_return_cost_error(two):
    with pytest.raises(ArgumentError, match=r"got bool. Write minimize\(f, return_cost=True\)"):
        pb.train.sgd(0.1).minimize(lambda: two[1] * 2, True)


def test_variable_grads_of_non_function_raises():
    with pytest.raises(ArgumentError, match=r"variable_grads\(f\): f must be a function, got Tensor"):
        pb.variable_grads(pb.tensor(1.0))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda w: w * 2, r"must return a scalar \(rank 0\), got rank 1, shape \(2,\)"),
        (lambda w: w[:1], r"must return a scalar \(rank 0\), got rank 1, shape \(1,\)"),
        (lambda w: None, r"must return a scalar tensor, got None. Is a return missing\?"),
        (lambda w: (w.sum(), w), "must return a scalar tensor, got tuple"),
    ],
)
def test_variable_grads_of_non_scalar_raises(two, f, message):
    with pytest.raises(GradientError, match=message):
        pb.variable_grads(lambda: f(two[0]))


def test_variable_grads_of_the_variable_itself():
    v = pb.variable(3.0, name="v")
    value, grads = pb.variable_grads(lambda: v)
    assert (value.item(), grads["v"].item()) == (3.0, 1.0)
    (value, aux), grads = pb.variable_grads(lambda: (v, "note"), has_aux=True)
    assert (value.item(), aux, grads["v"].item()) == (3.0, "note", 1.0)
    with pytest.raises(
        GradientError, match=r"minimize\(f\): f must return a scalar \(rank 0\), got rank 1, shape \(2,\)"
    ):
        pb.train.sgd(0.1).minimize(lambda: pb.variable([1.0, 2.0]))


def test_variable_grads_without_trainable_variables_raises(two):
    with pytest.raises(UnconnectedError, match=r"f read 0 trainable variables.*Make the parameters by pb.variable"):
        pb.variable_grads(lambda: pb.tensor(1.0))
    with pytest.raises(GradientError, match=r"got float64. It read no variable. Make the parameters by pb.variable"):
        pb.variable_grads(lambda: np.float64(1.0))
    two[1].trainable = False
    with pytest.raises(GradientError, match="var_list has no trainable variable among its 1"):
        pb.variable_grads(lambda: two[1] * 2, [two[1]])
    with pytest.raises(GradientError, match="var_list has no trainable variable among its 0"):
        pb.variable_grads(lambda: two[0].sum(), [])


def test_variable_grads_without_connected_variables_raises(two):
    w, b = two
    with pytest.raises(
        UnconnectedError, match=r"Cannot compute gradient of y=f\(\) with respect to any trainable variable"
    ):
        pb.variable_grads(lambda: (w.sum() > b) * 1.0)
    with pytest.raises(UnconnectedError, match=r"stop_gradient \(test_variables\.py"):
        pb.variable_grads(lambda: pb.stop_gradient(b * 2))


def test_variable_grads_of_variable_assigned_in_f():
    w = pb.variable(2.0, name="w")

    def f():
        y = w * w
        w.assign(10.0)
        return y + w * w

    value, grads = pb.variable_grads(f)
    assert (value.item(), grads["w"].item()) == (104, 24)
    assert w.item() == 10


def test_variable_grads_have_dtype_of_variable():
    a, b = pb.variable(np.ones(2), name="a"), pb.variable(np.array([1, 2]), name="b")
    grads = pb.variable_grads(lambda: (a * b).sum()).grads
    assert (grads["a"].dtype, grads["b"].dtype) == (np.float64, np.float32)


def test_variable_grads_do_not_alias_inputs():
    v = pb.variable(np.ones(3), name="v")
    x = np.full(3, 5.0)
    grad = pb.variable_grads(lambda: (v * x).sum()).grads["v"]
    x[:] = 0
    assert grad.tolist() == [5, 5, 5]


def test_variable_grads_big_arrays():
    v = pb.variable(np.ones(80_000), name="v")
    assert set(pb.variable_grads(lambda: (v * v * 3).sum()).grads["v"].tolist()) == {6.0}


def test_variable_is_constant_in_grad():
    v = pb.variable(3.0)
    g = pb.grad(lambda x: x * v)
    assert g(1.0) == 3
    v.assign(7.0)
    assert g(1.0) == 7


def test_variable_grads_nested():
    v, w = pb.variable(2.0, name="v"), pb.variable(5.0, name="w")
    # d/dv (d/dv v³ w) = 6 v w;  d/dw (d/dv v³ w) = 3 v²
    inner = lambda: pb.variable_grads(lambda: v * v * v * w, [v]).grads["v"]
    grads = pb.variable_grads(inner).grads
    assert (grads["v"].item(), grads["w"].item()) == (60, 12)
    assert pb.variable_grads(lambda: pb.grad(lambda x: x * x * v)(pb.tensor(3.0))).grads["v"].item() == 6
    assert pb.grad(lambda x: pb.variable_grads(lambda: x * x * v).grads["v"])(3.0) == 6
    third = lambda: pb.variable_grads(inner, [v]).grads["v"]
    assert pb.variable_grads(third, [v]).grads["v"].item() == 30


def test_variable_is_not_watched_after_exception():
    v = pb.variable(2.0, name="v")

    def broken():
        v * 2
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        pb.variable_grads(broken)
    assert float(v * 2) == 4  # not traced


def test_variable_is_not_watched_in_other_thread():
    v = pb.variable(2.0, name="v")
    seen = []

    def f():
        other = Thread(target=lambda: seen.append(float(v * 3)))  # float() of a traced tensor would raise
        other.start()
        other.join()
        return v * v

    assert pb.variable_grads(f).grads["v"].item() == 4
    assert seen == [6]


def test_variable_grads_has_aux():
    v = pb.variable([1.0, 2.0], name="v")
    (value, aux), grads = pb.variable_grads(lambda: (np.sum(v * v), {"v": v * 3, "note": "kept"}), has_aux=True)
    assert value.item() == 5.0
    assert grads["v"].tolist() == [2.0, 4.0]
    assert aux["v"].tolist() == [3.0, 6.0]
    assert aux["note"] == "kept"
    with pytest.raises(GradientError, match=r"variable_grads\(f, has_aux=True\): f must return \(y, aux\), got Tensor"):
        pb.variable_grads(lambda: np.sum(v * v), has_aux=True)


def test_variable_grads_errors_name_variables_and_entries():
    a, b = pb.variable(1.0, trainable=False, name="frozen_a"), pb.variable(1.0, trainable=False, name="frozen_b")
    with pytest.raises(GradientError, match=r"var_list has no trainable variable among its 2 \(frozen_a, frozen_b\)"):
        pb.variable_grads(lambda: a * b, [a, b])
    with pytest.raises(GradientError, match=r"var_list has no trainable variable among its 0; .*"):
        pb.variable_grads(lambda: a * b, [])
    with pytest.raises(ArgumentError, match=r"var_list must be a list of variables, got float as var_list\[1\] of 2"):
        pb.variable_grads(lambda: a * b, [a, 1.0])
    with pytest.raises(
        UnconnectedError, match=r"read 0 trainable variables.*It read 2 that are .*: frozen_a, frozen_b. Set v"
    ):
        pb.variable_grads(lambda: a * b)
