"""grad, grads, value_and_grad, value_and_grads: types, dy, aux, unconnected inputs, errors, higher orders."""

from __future__ import annotations

import pickle
import re
from collections import OrderedDict, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from leaks import leaves_objects
from numpy.testing import assert_allclose, assert_array_equal

import pullback as pb
from pullback.errors import ArgumentError, DataError, GradientError, PullbackError, UnconnectedError

FAMILY = [pb.grad, pb.grads, pb.value_and_grad, pb.value_and_grads]
UNREACHED = re.escape(
    "Cannot compute gradient of y=f(x) with respect to x. "
    "Make sure that the f you passed encloses all operations that lead from x to y."
)


class Pair(NamedTuple):
    w: Any
    b: Any


@dataclass
class Layer:
    w: Any
    b: Any


def cube(x):
    """The third power."""
    return x * x * x


def product(x, y):
    return x * y


# ---- what is given and what is given back


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (pb.tensor([1.0, 2.0]), np.array([3, 12], np.float32)),
        (np.array([1.0, 2.0]), np.array([3.0, 12.0])),
        (np.array([1.0, 2.0], np.float32), np.array([3, 12], np.float32)),
        (np.float32(2.0), np.float32(12.0)),
        (np.array(2.0), np.float64(12.0)),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (np.array([1, 2]), np.array([3.0, 12.0])),
        (np.array([True, False]), np.array([3.0, 0.0])),
        (2.0, 12.0),
        (2, 12.0),
        ([1.0, 2.0], [3.0, 12.0]),
        ([[1, 2], [3, 4]], [[3.0, 12.0], [27.0, 48.0]]),
    ],
)
def test_grad_returns_type_and_dtype_of_input(x, expected):
    got = pb.grad(lambda x: cube(1.0 * x))(x)
    if isinstance(x, pb.Tensor):
        assert isinstance(got, pb.Tensor)
        got = got.numpy()
    elif isinstance(x, list | int | float):
        assert type(got) is type(expected)
    else:
        assert isinstance(got, np.ndarray | np.generic)
        assert got.dtype == expected.dtype
    assert_allclose(got, expected)


def test_grad_calls_f_with_tensors():
    for x in (1.0, [1.0, 2.0], np.ones(3), np.float32(1), pb.tensor(1.0)):
        seen = []
        pb.grad(lambda x, seen=seen: seen.append(x) or x * 2)(x)
        assert isinstance(seen[0], pb.Tensor)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda w, b: {"w": w, "b": b},
        lambda w, b: OrderedDict(w=w, b=b),
        lambda w, b: defaultdict(list, w=w, b=b),
        lambda w, b: [w, b],
        lambda w, b: (w, b),
        Pair,
        Layer,
        lambda w, b: {"layers": [(w,), {"b": [b]}]},
    ],
)
def test_grad_of_tree_keeps_structure(wrap):
    def leaves(t):
        if isinstance(t, Layer):
            return [t.w, t.b]
        if isinstance(t, dict) and "layers" in t:
            return [t["layers"][0][0], t["layers"][1]["b"][0]]
        return list(t.values()) if isinstance(t, dict) else list(t)

    tree = wrap(np.array([1.0, 2.0]), np.array(3.0))
    got = pb.grad(lambda t: (leaves(t)[0] * leaves(t)[1]).sum())(tree)
    assert type(got) is type(tree)
    w, b = leaves(got)
    assert_array_equal(w, [3.0, 3.0])
    assert_array_equal(b, 3.0)
    if isinstance(tree, defaultdict):
        assert got.default_factory is list


def test_grad_of_tree_keeps_type_of_each_leaf():
    tree = {"tensor": pb.tensor([1.0, 2.0]), "array": np.ones(2), "number": 2.0, "list": [1.0, 2.0]}
    got = pb.grad(lambda t: (t["tensor"] * t["array"] * t["number"] * t["list"]).sum())(tree)
    assert [type(g) for g in got.values()] == [pb.Tensor, np.ndarray, float, list]
    assert got["list"] == [2.0, 4.0]


def test_grad_nested_lists_of_numbers_are_one_tensor():
    seen = []
    pb.grad(lambda x: seen.append(x.shape) or x.sum())([[1, 2, 3], [4, 5, 6]])
    assert seen == [(2, 3)]


def test_grad_grads_value_and_grad_value_and_grads():
    x, y = np.float64(2), np.float64(5)
    assert pb.grad(cube)(x) == 12
    assert pb.grads(product)([x, y]) == [5, 2]
    assert pb.value_and_grad(cube)(x) == (8, 12)
    assert pb.value_and_grad(cube)(x)._fields == ("value", "grad")
    assert pb.value_and_grads(product)([x, y]) == (10, [5, 2])
    assert pb.value_and_grads(product)((x, y))._fields == ("value", "grads")


def test_grads_of_same_tensor_twice():
    x = pb.tensor(3.0)
    a, b = pb.grads(lambda a, b: a * a * b)([x, x])
    assert (float(a), float(b)) == (18.0, 9.0)


def test_grad_of_variable_input():
    v = pb.variable([2.0, 3.0])
    assert pb.grad(lambda x: x * x)(v).tolist() == [4.0, 6.0]


# ---- dy


def test_grad_without_dy_is_of_sum():
    assert_array_equal(pb.grad(cube)(np.array([1.0, 2.0])), pb.grad(lambda x: cube(x).sum())(np.array([1.0, 2.0])))


@pytest.mark.parametrize(
    "dy", [[10, 100], np.array([10, 100]), np.array([10.0, 100.0], np.float32), pb.tensor([10, 100])]
)
def test_dy_scales_elements_and_keeps_dtype(dy):
    for dtype in (np.float32, np.float64):
        got = pb.grad(lambda x: x * x)(np.array([1, 2], dtype), dy)
        assert got.dtype == dtype
        assert_array_equal(got, [20, 400])


def test_dy_number_for_scalar():
    assert pb.grad(lambda x: x * x)(3.0, 2) == 12.0
    assert pb.value_and_grad(lambda x: x * x)(3.0, dy=2.0) == (9.0, 12.0)
    assert pb.grads(product)([2.0, 3.0], 10) == [30.0, 20.0]


@pytest.mark.parametrize("dy", [1.0, np.ones((1, 2)), [1.0, 1.0, 1.0], pb.tensor([[1.0], [1.0]])])
@pytest.mark.parametrize("face", FAMILY)
def test_dy_of_wrong_shape_raises_before_backward_pass(face, dy):
    calls = []
    f = pb.custom_grad(lambda x, save: (x * 2, lambda dy, saved: calls.append(1) or dy))
    x = np.ones(2)
    with pytest.raises(GradientError, match=rf"{face.__name__}: dy has shape .*, but y = f\(x\) has shape \(2,\)"):
        face(f)([x] if face.__name__.endswith("s") else x, dy)
    assert not calls


def test_dy_of_complex_numbers_raises():
    with pytest.raises(GradientError, match=r"dy must be real numbers as y = f\(x\) is, got dtype complex"):
        pb.grad(cube)(np.ones(2), np.ones(2) * 1j)


# ---- aux


def test_has_aux_returns_aux_undifferentiated():
    f = lambda x: (cube(x), {"square": x * x, "note": "kept"})
    grad, aux = pb.grad(f, has_aux=True)(np.float64(2))
    assert grad == 12
    assert aux == {"square": 4, "note": "kept"}
    assert not isinstance(aux["square"], pb.Tensor)
    (value, aux), grad = pb.value_and_grad(f, has_aux=True)(pb.tensor(2.0))
    assert (float(value), float(grad), float(aux["square"])) == (8, 12, 4)
    assert pb.grads(lambda x, y: (x * y, 7), has_aux=True)([2.0, 3.0]) == ([3.0, 2.0], 7)
    assert pb.value_and_grads(lambda x, y: (x * y, 7), has_aux=True)([2.0, 3.0]) == ((6.0, 7), [3.0, 2.0])


@pytest.mark.parametrize("out", [lambda x: x, lambda x: (x, 1, 2)])
def test_grad_has_aux_without_pair_raises(out):
    with pytest.raises(GradientError, match=r"f must return \(y, aux\), got"):
        pb.grad(out, has_aux=True)(1.0)


def test_has_aux_of_inner_grad_is_differentiated():
    def f(x):
        grad, aux = pb.grad(lambda y: (y * y, y * x), has_aux=True)(x)
        return grad * aux  # 2x · x²

    assert pb.grad(f)(3.0) == 54.0


# ---- paths


def test_unconnected_input_raises():
    for f in (lambda x: pb.tensor(1.0), lambda x: pb.tensor(2.0) * 3):
        with pytest.raises(UnconnectedError, match=UNREACHED):
            pb.grad(f)(2.0)
    with pytest.raises(UnconnectedError, match=UNREACHED + r" Not reached: y \(1 of 2 inputs\)\. .*unconnected='zero'"):
        pb.grads(lambda x, y: x * x)([2.0, 3.0])


def test_unconnected_error_names_op_and_line():
    with pytest.raises(UnconnectedError, match=r"The path was cut .*: stop_gradient \(test_grad\.py:\d+\)\."):
        pb.grad(lambda x: pb.stop_gradient(x) * 2)(2.0)
    with pytest.raises(UnconnectedError, match=r"greater \(test_grad\.py:\d+\)"):
        pb.grad(lambda x: (x > 0) * 1.0)(np.ones(3))


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: pb.grad(lambda p: p["w"] * 2)({"w": 1.0, "b": 2.0}), r"p\['b'\] \(1 of 2 inputs\)"),
        (
            lambda: pb.grad(lambda p: p["a"][0] * 1)({"a": [1.0, {"k": 2.0}], "c": 3.0}),
            r"p\['a'\]\[1\]\['k'\], p\['c'\] \(2 of 3",
        ),
        (lambda: pb.grad(lambda pair: pair.w * 2)(Pair(1.0, 2.0)), r"pair\.b"),
        (lambda: pb.grads(lambda x, p: x * 2)([1.0, {"w": 1.0}]), r"p\['w'\] \(1 of 2"),
        (lambda: pb.grad(lambda a, b, c: a * b, argnums=(0, 2))(1.0, 2.0, 3.0), r"c \(1 of 2"),
        (lambda: pb.grad(lambda a, **k: a * 1, argnames=("a", "k"))(1.0, k=2.0), r"k \(1 of 2"),
    ],
)
def test_unconnected_error_names_tree_key(call, names):
    with pytest.raises(UnconnectedError, match=f"Not reached: {names}"):
        call()


@pytest.mark.parametrize(("how", "expected"), [("zero", [4.0, 0.0]), ("none", [4.0, None])])
def test_unconnected_zero_or_none(how, expected):
    assert pb.grads(lambda x, y: x * x, unconnected=how)([2.0, 3.0]) == expected
    got = pb.grad(lambda x: pb.tensor(5.0), unconnected=how)(np.ones(2, np.float32))
    assert got is None if how == "none" else (got.dtype == np.float32 and got.tolist() == [0, 0])


def test_unconnected_zero_keeps_structure_and_value():
    value, grad = pb.value_and_grad(lambda t: pb.tensor(5.0), unconnected="zero")({"a": np.ones(2), "b": 1})
    assert value == 5
    assert grad["b"] == 0.0
    assert_array_equal(grad["a"], [0, 0])


def test_unconnected_of_unknown_option_raises():
    with pytest.raises(ArgumentError, match="unconnected must be 'raise', 'zero' or 'none', got 'zeros'"):
        pb.grad(cube, unconnected="zeros")


def test_grad_of_identity_and_unused_result():
    assert pb.grad(lambda x: x)(3.0) == 1.0

    def f(x):
        x * 100
        return x * x

    assert pb.grad(f)(3.0) == 6.0


# ---- bad input


@pytest.mark.parametrize("face", FAMILY)
@pytest.mark.parametrize("f", [5, "f", None, pb.tensor(1.0)])
def test_grad_of_non_function_raises_when_wrapping(face, f):
    with pytest.raises(ArgumentError, match=rf"{face.__name__}\(f\): f must be a function, got {type(f).__name__}"):
        face(f)


@pytest.mark.parametrize("out", [None, (1,), [1], "y", {"y": 1}])
def test_grad_of_non_tensor_result_raises(out):
    with pytest.raises(GradientError, match=r"return one tensor, got (None|tuple|list|str|dict).*(return|has_aux)"):
        pb.grad(lambda x: out)(1.0)


def test_grad_of_plain_number_error_suggests_unconnected():
    for plain in (0.0, np.float64(0.0), np.zeros(2)):
        with pytest.raises(GradientError, match=r"does not depend on the inputs.*unconnected='zero'"):
            pb.grad(lambda x, plain=plain: x if x < 0 else plain)(1.0)


def test_grad_of_several_results_error_suggests_has_aux():
    with pytest.raises(GradientError, match=r"got tuple\. .*has_aux=True"):
        pb.grad(lambda x: (x, x))(1.0)


@pytest.mark.parametrize("face", [pb.grads, pb.value_and_grads])
def test_grads_of_empty_or_missing_list_raises(face):
    with pytest.raises(ArgumentError, match="xs must be a list of inputs, got Tensor"):
        face(cube)(pb.tensor(1.0))
    with pytest.raises(GradientError, match="the list of inputs is empty"):
        face(lambda: pb.tensor(1.0))([])
    with pytest.raises(ArgumentError, match="xs must be a list of inputs, got NoneType"):
        face(cube)()


def test_grad_of_text_objects_and_ragged_lists_raises():
    with pytest.raises(DataError, match="text"):
        pb.grad(cube)("abc")
    with pytest.raises(DataError, match="got object"):
        pb.grad(cube)(object())
    with pytest.raises(DataError, match="ragged"):
        pb.grad(cube)([[1, 2], [3]])
    with pytest.raises(GradientError, match="<U1 has no gradient"):
        pb.grad(cube)(np.array(["a"]))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: pb.grads(product)([1.0, object()]),
            r"grads: argument y \(input 2 of 2\): .*, got object",
        ),
        (
            lambda: pb.grads(product)([1.0, {"a": [object()]}]),
            r"argument y\['a'\]\[0\] \(.*\): .*, got object",
        ),
        (
            lambda: pb.value_and_grads(product)(["abc", 1.0]),
            r"value_and_grads: argument x \(input 1 of 2\): .* text",
        ),
        (
            lambda: pb.grad(cube)({"w": 1.0, "n": None, "s": object()}),
            r"grad: argument x\['s'\] \(input 2 of 2\): .* object",
        ),
        (lambda: pb.grad(product, argnums=1)(1.0, object()), r"grad: argument y: expected .*, got object"),
        (lambda: pb.grads(product)([1.0, None]), r"grads: argument y \(input 2 of 2\): expected .*, got NoneType"),
    ],
)
def test_grad_of_non_numeric_input_error_names_argument(call, says):
    with pytest.raises(DataError, match=says):
        call()


def test_grads_of_text_array_error_names_argument():
    with pytest.raises(GradientError, match=r"grads: argument y \(input 2 of 2\): .* dtype <U1 has no gradient"):
        pb.grads(product)([1.0, np.array(["a"])])


@pytest.mark.parametrize("convert", [float, int, np.float64, lambda x: x.numpy(), lambda x: x.item(), pickle.dumps])
def test_converting_traced_tensor_to_python_value_raises(convert):
    with pytest.raises(TypeError, match=r"would lose its gradient.*stop_gradient"):
        pb.grad(lambda x: x * convert(x))(2.0)


def test_bool_of_traced_tensor_in_python_branch():
    f = lambda x: x * x if x > 0 else -x
    assert [pb.grad(f)(3.0), pb.grad(f)(-3.0)] == [6.0, -1.0]


# ---- higher order


def test_grad_up_to_fourth_order():
    f = lambda x: x**5
    expected = [80.0, 160.0, 240.0, 240.0]
    for order, value in enumerate(expected, 1):
        g = f
        for _ in range(order):
            g = pb.grad(g)
        assert g(2.0) == pytest.approx(value)


def test_nested_grad_has_no_perturbation_confusion():
    assert pb.grad(lambda x: x * pb.grad(lambda y: x * y)(x))(3.0) == 6.0
    assert pb.grad(lambda x: x * pb.grad(lambda y: x + y)(1.0))(5.0) == 1.0
    assert pb.grad(lambda x: pb.grad(lambda y: x * y * y)(x))(3.0) == 12.0  # d/dx 2x·x
    assert pb.grad(lambda x: pb.grad(lambda y: pb.grad(lambda z: x * y * z)(y))(x))(4.0) == 1.0


def test_grad_mixed_derivative():
    f = lambda x, y: x * x * x * y * y
    assert pb.grad(lambda y: pb.grad(lambda x: f(x, y))(2.0))(3.0) == 72.0


def test_grad_of_grad_hessian_vector_product():
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    f = lambda x: (x * (a @ x)).sum()
    v = np.array([1.0, -1.0])
    assert_allclose(pb.grad(lambda x: (pb.grad(f)(x) * v).sum())(np.ones(2)), 2 * a @ v)


def test_dy_of_inner_grad_is_differentiated():
    assert pb.grad(lambda d: pb.grad(lambda x: x * x)(3.0, d))(pb.tensor(5.0)).item() == 6.0


def test_grad_of_value_escaped_from_inner_grad():
    def f(x):
        kept = []
        pb.grad(lambda y: kept.append(y * x) or y * y)(x)
        return kept[0]  # x · x

    assert pb.grad(f)(3.0) == 6.0
    assert pb.grad(lambda x: pb.stop_gradient(f(x)) * x)(3.0) == 9.0


# ---- the engine stays clean


def test_grad_after_exception_in_f():
    kept = []

    def broken(x):
        kept.append(x * 2)
        raise RuntimeError("boom")

    for _ in range(3):
        with pytest.raises(RuntimeError, match="boom"):
            pb.grad(broken)(np.ones(2))
        with pytest.raises(RuntimeError, match="boom"):
            pb.grad(pb.grad(broken))(np.ones(2))
    assert kept[0].tolist() == [2.0, 2.0]  # a constant now
    assert pb.grad(cube)(2.0) == 12.0
    assert pb.grad(lambda x: (kept[0] * x).sum())(np.ones(2)).tolist() == [2.0, 2.0]


def test_grad_does_not_leak_objects():
    def misuse():
        with pytest.raises(PullbackError):
            pb.grad(lambda x: (x, x))(2.0)
        with pytest.raises(GradientError):
            pb.grad(cube)(np.ones(2), 1.0)
        pb.grad(pb.grad(cube))(2.0)

    assert not leaves_objects(misuse, times=50, limit=50)


def test_grad_results_do_not_alias_inputs():
    x, dy = np.ones(3), np.full(3, 2.0)
    got = pb.grad(lambda x: x)(x, dy)
    got += 1
    assert_array_equal(dy, [2, 2, 2])
    a, b = pb.grads(lambda a, b: a + b)([x, np.ones(3)], dy)
    a += 1
    assert_array_equal(b, [2, 2, 2])
    assert_array_equal(dy, [2, 2, 2])
    c = pb.grad(lambda t: (t * x).sum())(np.ones(3))
    c += 1
    assert_array_equal(x, [1, 1, 1])
    whole = pb.grad(lambda t: t.sum())(np.ones(3))
    whole[0] = 5  # not a read-only view of one number
    assert_array_equal(whole, [5, 1, 1])


def test_grad_in_eight_threads():
    def work(n):
        for _ in range(50):
            x = np.full(3, float(n))
            assert_allclose(pb.grad(lambda x: (x**n).sum())(x), n * float(n) ** (n - 1))
            assert_allclose(pb.grad(pb.grad(lambda x: x**3 * n))(float(n)), 6.0 * n * n)
        return n

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(1, 9))) == list(range(1, 9))


@pytest.mark.parametrize("face", FAMILY)
def test_grad_keeps_name_and_docstring_and_pickles(face):
    g = face(cube)
    assert (g.__name__, g.__doc__, g.__wrapped__) == ("cube", "The third power.", cube)
    again = pickle.loads(pickle.dumps(face(cube, has_aux=True, unconnected="zero")))
    assert (type(again), again.__wrapped__, again.has_aux, again.unconnected) == (type(g), cube, True, "zero")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(face(lambda x: x))


# ---- integers


@pytest.mark.parametrize("x", [np.array([1, 2]), np.array([3, 4], np.uint8), np.array([True, False]), np.int32(3)])
def test_grad_of_integer_array_has_dtype_of_value(x):
    wide, narrow = (lambda x: x / 3.0), (lambda x: pb.cast(x, "float32") / 3)
    for f, dtype in ((wide, np.float64), (narrow, np.float32)):
        assert pb.grad(f)(x).dtype == dtype
        assert pb.vjp(f, x)[1](np.ones(x.shape))[0].dtype == dtype
        assert pb.jacobian(f)(x).dtype == dtype
        assert pb.jacobian(f, "forward")(x).dtype == dtype
        assert pb.compile(pb.grad(f))(x).dtype == dtype
    assert np.all(pb.grad(wide)(x) == 1 / 3)
    assert pb.grad(lambda x: pb.tensor(np.float64(1.0)), unconnected="zero")(x).dtype == np.float64
    assert pb.jvp(wide, [x], [np.full(x.shape, 0.1)])[1].dtype == np.float64


def test_second_derivative_of_integer_array_has_dtype_of_value():
    x = np.array([1, 2])
    f = lambda x: np.sum((x / 3.0) ** 3)
    exact = np.diag(6 * (x / 3.0) / 9)
    assert_allclose(pb.hessian(f)(x), exact, rtol=1e-15)
    assert_allclose(pb.hvp(f, x, np.ones(2)), exact.sum(1), rtol=1e-15)
    assert_allclose(pb.sparse_jacobian(pb.grad(f))(x).toarray(), exact, rtol=1e-15)


def test_grad_of_integer_tensor_is_float32():
    x = pb.tensor(np.array([1, 2]))
    f = lambda x: x / 3.0
    assert pb.grad(f)(x).dtype == np.float32
    assert pb.vjp(f, x)[1](np.ones(2))[0].dtype == np.float32
    assert pb.jacobian(f)(x).dtype == np.float32


# ---- stop_gradient


def test_stop_gradient_of_trees():
    def f(p):
        q = pb.stop_gradient(p)
        assert type(q) is type(p)
        return p["w"] * q["w"] + p["b"][0] * q["b"][0] * q["n"]

    got = pb.grad(f, unconnected="zero")({"w": 3.0, "b": [2.0, {}], "n": 5})
    assert got == {"w": 3.0, "b": [10.0, {}], "n": 0.0}


def test_stop_gradient_of_tuples_dataclasses_and_object_arrays():
    x = np.float64(3.0)
    assert pb.grad(lambda x: pb.stop_gradient((x, x * 2))[1] * x)(x) == 6
    assert pb.grad(lambda x: pb.stop_gradient(Pair(x, "text")).w * x)(x) == 3
    assert pb.grad(lambda x: pb.stop_gradient([x, {"a": Layer(x, None)}])[1]["a"].w * x)(x) == 3
    assert pb.jvp(lambda x: pb.stop_gradient([x])[0] * x, [2.0], [1.0]) == (4.0, 2.0)
    assert pb.vmap(pb.grad(lambda x: pb.stop_gradient({"x": x})["x"] * x))(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert pb.compile(pb.grad(lambda x: pb.stop_gradient({"x": x})["x"] * x))(3.0) == 3.0

    def of_objects(x):
        both = np.empty(2, object)
        both[0], both[1] = x, 2.0
        return pb.stop_gradient(both)[0] * pb.stop_gradient({"a": both})["a"][0] * x

    assert pb.grad(of_objects)(x) == 9
    kept = {"n": 1, "text": "a", "array": np.ones(2), "none": None}
    assert pb.stop_gradient(kept)["array"] is kept["array"]
    assert pb.stop_gradient({"n": 1, "none": None}) == {"n": 1, "none": None}
    with pytest.raises(DataError):
        pb.stop_gradient(object())


def test_stop_gradient_keeps_value_without_gradient():
    assert pb.grad(lambda x: pb.stop_gradient(x) * x)(3.0) == 3.0
    assert pb.grad(pb.grad(lambda x: pb.stop_gradient(x * x) * x, unconnected="zero"), unconnected="zero")(3.0) == 0.0
    assert pb.grad(lambda x: x * float(pb.stop_gradient(x)))(3.0) == 3.0
    assert pb.stop_gradient(np.ones(2)).tolist() == [1, 1]
    assert pb.stop_gradient(2.0).item() == 2.0


def test_has_aux_with_three_results_error_counts_them() -> None:
    with pytest.raises(GradientError, match=r"f must return \(y, aux\), got tuple of 3"):
        pb.grad(lambda x: (x, 1, 2), has_aux=True)(1.0)
