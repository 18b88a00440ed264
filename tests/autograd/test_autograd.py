"""``pullback.autograd``: the interface of HIPS autograd, against closed forms and its own checks."""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

import numpy as onp  # noqa: ICN001
import pytest

import pullback as pb
import pullback.autograd.numpy as np
from pullback import autograd as ag
from pullback.autograd import differential_operators as operators
from pullback.autograd.builtins import DictBox, SequenceBox
from pullback.autograd.core import def_linear
from pullback.autograd.extend import Box, VSpace, defjvp, defvjp, defvjp_argnum, notrace_primitive, primitive, vspace
from pullback.autograd.misc.fixed_points import fixed_point
from pullback.autograd.misc.flatten import flatten
from pullback.autograd.misc.optimizers import adam, rmsprop, sgd
from pullback.autograd.numpy.numpy_boxes import ArrayBox
from pullback.autograd.numpy.numpy_vjps import (
    balanced_eq,
    match_complex,
    repeat_to_match_shape,
    replace_zero,
    unbroadcast_f,
)
from pullback.autograd.numpy.numpy_wrapper import metadata, wrap_namespace
from pullback.autograd.scipy.signal import convolve
from pullback.autograd.test_util import check_grads, combo_check
from pullback.autograd.tracer import getval, isbox, register_notrace
from pullback.autograd.util import func, quick_grad_check

X = onp.array([0.5, -1.5, 2.0])


def test_autograd_modules_are_imported_lazily() -> None:
    assert pb.autograd is ag


def test_autograd_gradient_of_containers() -> None:
    point = namedtuple("point", "a b")

    def f(p: Any, scale: float = 1.0) -> Any:
        return scale * np.sum(p["x"][0] * p["y"].a) + p["x"][1] ** 2

    given = {"x": [X, 3.0], "y": point(2.0, X)}
    found = ag.grad(f)(given, scale=2.0)
    assert onp.allclose(found["x"][0], 4.0)
    assert found["x"][1] == 6.0
    assert isinstance(found["y"], point)
    assert found["y"].a == pytest.approx(2 * X.sum())
    assert onp.array_equal(found["y"].b, onp.zeros(3))
    check_grads(f)(given)


def test_autograd_gradient_of_list_is_list() -> None:
    assert ag.grad(lambda x: x[0] * x[1:][0])([2.0, 3.0]) == [3.0, 2.0]


def test_autograd_complex_gradient_is_conjugate_of_pb_grad() -> None:
    z = onp.array(1.0 + 2.0j)
    assert ag.grad(lambda z: np.real(z * z))(z) == 2 * z
    assert pb.grad(lambda z: np.real(z * z))(z) == onp.conj(2 * z)
    assert ag.holomorphic_grad(lambda z: z**3)(z) == pytest.approx(3 * z**2)
    assert onp.allclose(ag.jacobian(lambda z: np.real(z * onp.array([1.0, 1j])))(z), [1.0, 1j])
    check_grads(lambda z: np.exp(z) * np.conj(z))(z)


def test_autograd_independent_output_warns_and_is_zero() -> None:
    with pytest.warns(UserWarning, match="independent"):
        assert ag.grad(lambda x: 1.0)(2.0) == 0.0


@pytest.mark.filterwarnings("ignore:Output seems")
@pytest.mark.parametrize("f", [lambda x: x, lambda x: 1j * np.sum(x), lambda x: [np.sum(x)], lambda x: np.all(x > 0)])
def test_autograd_grad_of_non_scalar_or_complex_output_raises(f: Any) -> None:
    with pytest.raises(TypeError, match="real scalar-output"):
        ag.grad(f)(X)


def test_autograd_differentiates_integers_as_floats() -> None:
    assert ag.grad(lambda x: x**2)(3) == 6.0
    with pytest.raises(TypeError, match="Can't differentiate"):
        ag.grad(lambda x: 1.0)("text")


def test_autograd_differential_operators() -> None:
    A = onp.arange(9.0).reshape(3, 3)

    def f(x: Any) -> Any:
        return np.sum(np.sin(np.dot(A, x)))

    hess = ag.hessian(f)(X)
    assert onp.allclose(ag.make_hvp(f)(X)[0](X), hess @ X)
    assert onp.allclose(ag.hessian_vector_product(f)(X, X), hess @ X)
    assert onp.allclose(ag.vector_jacobian_product(lambda x: np.dot(A, x))(X, X), X @ A)
    assert onp.allclose(ag.make_jvp(lambda x: np.dot(A, x))(X)(X)[1], A @ X)
    assert onp.allclose(ag.make_jvp_reversemode(lambda x: np.dot(A, x))(X)(X), A @ X)
    assert onp.allclose(ag.make_ggnvp(lambda x: np.dot(A, x))(X)(X), A.T @ A @ X)
    assert onp.allclose(ag.grad(ag.checkpoint(f))(X), ag.grad(f)(X))
    assert ag.grad(f).__name__ == "grad_of_f_wrt_argnum_0"
    assert ag.multigrad_dict(lambda x, y=2.0: x * y)(3.0) == {"x": 2.0, "y": 3.0}


def test_primitive_is_called_with_plain_values() -> None:
    seen = []

    @primitive
    def cube(x: Any, scale: float) -> Any:
        seen.append(type(x))
        return scale * x**3

    defvjp(cube, lambda ans, x, scale: lambda g: 3 * g * scale * x**2, None)
    assert ag.grad(cube)(X[0], 2.0) == pytest.approx(6 * X[0] ** 2)
    assert ag.grad(ag.grad(cube))(X[0], 2.0) == pytest.approx(12 * X[0])
    assert seen
    assert not any(issubclass(t, pb.Tensor) for t in seen)
    check_grads(cube)(X, 2.0)  # forward mode is the transpose
    assert ag.grad(cube, 1)(X[0], 2.0) == 0.0


def test_primitive_under_vmap_and_compile() -> None:
    f = primitive(lambda x: onp.sum(x**2))
    defvjp(f, lambda ans, x: lambda g: 7 * g * x)  # not its gradient, which would show that the rule was passed over
    rows = onp.stack([X, 2 * X])
    onp.testing.assert_allclose(pb.vmap(f)(rows), onp.sum(rows**2, 1))
    onp.testing.assert_allclose(pb.vmap(pb.grad(f))(rows), 7 * rows)
    onp.testing.assert_allclose(pb.grad(lambda rows: onp.sum(pb.vmap(f)(rows)))(rows), 7 * rows)
    onp.testing.assert_allclose(pb.compile(f)(X), onp.sum(X**2))
    onp.testing.assert_allclose(pb.compile(pb.hessian(f))(X), 7 * onp.eye(3))


def test_primitive_with_tangent_only() -> None:
    square = primitive(lambda x: onp.asarray(x) ** 2)
    defjvp(square, lambda g, ans, x: 2 * g * x)
    check_grads(square)(X)
    double = primitive(lambda x, y: 2 * x + y)
    defjvp(double, lambda g, ans, x, y: 2 * g, lambda g, ans, x, y: g)
    check_grads(double, (0, 1))(X, X)


def test_primitive_of_complex_and_of_containers() -> None:
    times = primitive(lambda z: (2 + 1j) * z)
    defvjp(times, lambda ans, z: lambda g: g * (2 + 1j))
    check_grads(times, modes=["rev"])(X + 1j)
    total = primitive(lambda parts: parts["a"] + parts["b"][0])
    defvjp(total, lambda ans, parts: lambda g: {"b": [g * 1.0], "a": g})
    assert ag.grad(lambda x: total({"a": x, "b": [x]}))(3.0) == 2.0


def test_primitive_without_rule_raises() -> None:
    f = primitive(lambda x, y: x * y)
    with pytest.raises(NotImplementedError, match="not defined"):
        ag.grad(f)(1.0, 2.0)
    defvjp(f, lambda ans, x, y: lambda g: g * y)
    with pytest.raises(NotImplementedError, match="argnum 1"):
        ag.grad(f, 1)(1.0, 2.0)
    with pytest.raises(TypeError, match="Bad VJP"):
        defvjp(f, "same")  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="no primitive"):
        defvjp(onp.sin, lambda ans, x: lambda g: g)
    assert ag.grad(onp.sin)(0.5) == pytest.approx(onp.cos(0.5))


def test_autograd_helpers_for_writing_vjp_rules() -> None:
    scaled = primitive(lambda x, y: x * y)
    defvjp(
        scaled,
        lambda ans, x, y: unbroadcast_f(x, lambda g: g * y),
        lambda ans, x, y: unbroadcast_f(y, lambda g: match_complex(y, g * x)),
    )
    x, y = onp.arange(1.0, 4.0)[:, None], onp.array([2.0, 5.0])
    by_x, by_y = ag.grad(lambda x, y: np.sum(scaled(x, y) ** 2), (0, 1))(x, y)
    onp.testing.assert_allclose(by_x, 2 * x * onp.sum(y**2))
    onp.testing.assert_allclose(by_y, 2 * y * onp.sum(x**2))
    g, count = repeat_to_match_shape(onp.ones(3), (3, 2), float, -1, False)
    assert g.shape == (3, 2)
    assert count == 2
    assert onp.array_equal(replace_zero(onp.array([0.0, 3.0]), 1.0), [1.0, 3.0])
    assert onp.array_equal(balanced_eq(onp.ones(1), onp.ones(1), onp.ones(1)), [0.5])
    names: dict[str, object] = {}
    wrap_namespace({"sin": onp.sin, "__name__": "numpy"}, names)
    assert names == {"sin": onp.sin}


def test_autograd_traced_values_are_boxes() -> None:
    def f(p: Any) -> Any:
        assert isinstance(p, DictBox)
        assert isinstance(p["x"], ArrayBox)
        assert isinstance([p["x"]], SequenceBox)
        assert not isinstance([1.0], SequenceBox)
        assert type(p["x"]._value) is onp.ndarray
        assert metadata(p["x"]) == ((2,), 1, onp.dtype(float), False)
        inner = ag.grad(lambda y: np.sum(p["x"] * y * isinstance(y._value, ArrayBox)))(p["x"])
        return np.sum(inner + p["x"])

    assert onp.array_equal(ag.grad(f)({"x": onp.ones(2)})["x"], [2.0, 2.0])


def test_stack_takes_iterables_of_traced_numbers() -> None:
    def f(x: Any) -> Any:
        rows = np.stack(x[i] * x for i in range(2))  # type: ignore[call-overload]
        more = np.concatenate([[x[0], 3.0], x])
        return np.sum(rows**2) + np.sum(np.vstack(map(np.sin, [x, x]))) + np.sum(more**3)  # type: ignore[call-overload]

    x = onp.array([0.3, 0.7])
    numeric = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * onp.eye(2)]
    onp.testing.assert_allclose(ag.grad(f)(x), numeric, rtol=1e-6)


def test_complex_rule_for_real_argument_gives_real_part() -> None:
    f = primitive(lambda x: x * (1 + 2j))
    defvjp(f, lambda ans, x: lambda g: g * (1 + 2j))
    assert ag.grad(lambda x: np.real(f(x)) + 3 * np.imag(f(x)))(2.0) == pytest.approx(7.0)


def test_tangent_of_integer_result_is_ignored() -> None:
    pair = primitive(lambda x: (x**2, onp.arange(2)))
    defjvp(pair, lambda g, ans, x: (2 * x * g, onp.zeros(5)))
    assert ag.make_jvp(lambda x: np.sum(pair(x)[0]))(onp.array([1.0, 2.0]))(onp.ones(2))[1] == 6.0


def test_wrong_shape_from_rule_raises() -> None:
    f = primitive(lambda x: onp.sum(x))
    defvjp(f, lambda ans, x: lambda g: g)
    with pytest.raises(pb.errors.CustomGradientError, match="shape"):
        ag.grad(f)(X)


def test_autograd_deprecated_spellings() -> None:
    f = primitive(lambda x, y: x * y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f.defvjp(lambda g, ans, vs, gvs, x, y: y * g)
        f.defgrad(lambda ans, x, y: lambda g: x * g, argnum=1)
    assert ag.grad(f, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    with pytest.warns(UserWarning, match="deprecated"):
        f.defvjp_is_zero([0])
    assert ag.grad(f)(2.0, 3.0) == 0.0


def test_autograd_tracer_internals_raise_with_replacement() -> None:
    with pytest.raises(ImportError, match=r"pb\.trace"):
        from pullback.autograd.tracer import Node  # noqa: F401
    with pytest.raises(TypeError, match="register_node"):
        type("MyBox", (Box,), {})


def test_autograd_extend_boxes() -> None:
    def f(x: Any) -> Any:
        assert isbox(x)
        assert isinstance(x, Box)
        assert not isbox(getval(x))
        assert ag.isinstance(x, onp.ndarray)
        assert ag.type([x]) is list
        assert notrace_primitive(lambda v: type(v))(x) is onp.ndarray
        return np.sum(np.array([[x, x], [x * 2, x]]))

    assert onp.array_equal(ag.grad(f)(X), onp.full(3, 5.0))


def test_own_vector_space_is_registered() -> None:
    class Mine:
        pass

    class MySpace(VSpace):
        def zeros(self) -> Any:
            return 0

    MySpace.register(Mine)
    assert vspace(Mine()).zeros() == 0
    assert vspace((1.0, {"a": X})).size == 4


def test_fixed_point_and_its_second_derivative() -> None:
    def sqrt(a: Any) -> Any:
        return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: onp.abs(x - y), 1e-12)

    assert ag.grad(sqrt)(2.0) == pytest.approx(0.5 / onp.sqrt(2.0))
    assert ag.grad(ag.grad(sqrt))(2.0) == pytest.approx(-0.25 * 2.0**-1.5)


def test_autograd_flatten_is_differentiable() -> None:
    value = {"b": (X, 2.0), "a": [onp.ones((2, 2))]}
    vector, unflatten = flatten(value)
    assert vector.shape == (8,)
    assert onp.array_equal(unflatten(vector)["b"][0], X)
    assert onp.allclose(ag.grad(lambda v: np.sum(unflatten(v)["b"][0] ** 2))(vector), [0] * 4 + [*(2 * X)] + [0])


def test_convolve_over_chosen_axes() -> None:
    rng = onp.random.default_rng(0)
    images, filters = rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(3, 4, 3, 2))

    def f(a: Any, b: Any, mode: str) -> Any:
        return convolve(a, b, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode=mode)

    combo_check(f, (0, 1), modes=["rev"], order=1)([images], [filters], mode=["full", "valid", "same"])
    one = sum(onp.convolve(images[1, c, :, 2], filters[c, 2, :, 0], "valid") for c in range(3))
    picked = convolve(images[..., 2], filters[..., 0], axes=([2], [2]), dot_axes=([1], [0]), mode="valid")
    assert onp.allclose(picked[1, 2], one)


def test_where_keeps_python_numbers() -> None:
    assert type(np.where(True, 1, 2)) is int
    assert np.where([True, False], [1, 2], y=[3, 4]) == [1, 4]
    assert np.where(X > 0, X, 0.0).dtype == float


def test_autograd_rules_by_argnum() -> None:
    add = primitive(lambda *xs: sum(xs))
    defvjp_argnum(add, lambda argnum, ans, args, kwargs: lambda g: g * 1.0)
    assert ag.grad(lambda x: add(x, 2.0, x))(1.0) == 2.0


def test_scipy_under_the_names_of_autograd() -> None:
    pytest.importorskip("scipy.special")
    import pullback.autograd.scipy.stats.norm as norm
    from pullback.autograd.scipy.special import expit, logsumexp

    check_grads(lambda x: norm.logpdf(x, 0.5, 2.0) + expit(x))(X)
    check_grads(logsumexp)(X)


def test_operators_of_other_packages_are_made_with_make_vjp() -> None:
    @operators.unary_to_nary
    def value_and_slopes(fun: Any, x: Any) -> Any:
        vjp, value = operators._make_vjp(fun, x)
        return value, vjp(operators.vspace(value).ones())

    value, slopes = value_and_slopes(lambda x, y: x**2 * y, 0)(np.array([1.0, 2.0]), 3.0)
    onp.testing.assert_array_equal(value, [3.0, 12.0])
    onp.testing.assert_array_equal(slopes, [6.0, 12.0])


def test_autograd_where_with_traced_lists_and_positions() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where([True, False], [x[0], 2.0], x[1:]) ** 2)

    onp.testing.assert_allclose(ag.grad(f)(X), [2 * X[0], X[1] * 0, 2 * X[2]])
    assert onp.array_equal(np.where(X > 0)[0], [0, 2])
    with pytest.raises(ValueError, match="either both or neither of x and y"):
        np.where(X > 0, X)


def test_primitive_without_derivative_by_container() -> None:
    f = primitive(lambda parts, x: parts["a"] * x)
    defvjp(f, None, lambda ans, parts, x: lambda g: g * parts["a"])
    assert ag.grad(lambda x: f({"a": x}, x))(3.0) == 3.0
    wrong = primitive(lambda parts: parts[0])
    defvjp(wrong, lambda ans, parts: lambda g: [g, g])
    with pytest.raises(TypeError, match=r"a list of 1 was expected, got \["):
        ag.grad(lambda x: wrong([x]))(3.0)


def test_autograd_derivatives_by_nothing() -> None:
    with pytest.warns(UserWarning, match="independent"):
        pull, value = ag.make_vjp(lambda p: 2.0)([])
    assert (pull(1.0), value) == ([], 2.0)
    with pytest.warns(UserWarning, match="independent"):
        assert ag.make_jvp(lambda p: 2.0)(())(()) == (2.0, 0.0)
    with pytest.warns(UserWarning, match="independent"):
        assert ag.make_jvp(lambda x: 2.0)(1.0)(1.0) == (2.0, 0.0)


def test_autograd_vjp_broadcasts_cotangent() -> None:
    onp.testing.assert_allclose(ag.make_vjp(lambda x: x**2)(X)[0](3.0), 6 * X)


def test_autograd_operators_reject_other_arguments() -> None:
    with pytest.raises(TypeError, match="real-output"):
        ag.elementwise_grad(lambda x: x * 1j)(X)
    with pytest.warns(UserWarning, match="not complex"):
        assert ag.holomorphic_grad(lambda z: z**2)(3.0) == 6.0
    with pytest.raises(TypeError, match=r"argnum must be an int, or a tuple or list of ints, got 1\.0"):
        ag.grad(lambda x: x, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"modes must be from 'fwd' and 'rev', got \['back'\]"):
        check_grads(np.sum, modes=["back"])(X)
    with pytest.raises(NotImplementedError, match="notrace_primitive"):
        register_notrace(None, np.sum)
    with pytest.raises(NotImplementedError, match="axis1=-1, axis2=-2 only"):
        np.make_diagonal(X)
    with pytest.raises(TypeError, match="Can't find vector space for value text"):
        vspace("text")


@pytest.mark.parametrize("optimizer", [sgd, rmsprop, adam])
def test_autograd_optimizers_call_back_with_containers(optimizer: Any) -> None:
    seen: list[Any] = []
    start = {"w": onp.array([1.0, -2.0]), "b": 3.0}
    found = optimizer(lambda p, i: {"w": 2 * p["w"], "b": 2 * p["b"]}, start, lambda *given: seen.append(given), 2)
    assert [i for _, i, _ in seen] == [0, 1]
    assert all(onp.array_equal(g["w"], 2 * p["w"]) and g["b"] == 2 * p["b"] for p, _, g in seen)
    assert onp.array_equal(seen[0][0]["w"], start["w"])
    assert abs(found["b"]) < 3.0


def test_linearized_primitive() -> None:
    cube = primitive(lambda x: x**3)
    defvjp(cube, lambda ans, x: lambda g: 3 * g * x**2)
    onp.testing.assert_allclose(pb.linearize(cube, X)[1](X), 3 * X**3)


def test_integer_gradient_of_rule_is_float() -> None:
    f = primitive(lambda x: onp.sum(x))
    defvjp(f, lambda ans, x: lambda g: onp.ones(3, int))
    found = ag.grad(f)(X)
    assert onp.array_equal(found, onp.ones(3))
    assert found.dtype == float


def test_tangent_rules_for_some_arguments() -> None:
    f = primitive(lambda x, y, z: x * y + z)
    defjvp(f, "same", None)
    push = lambda g, argnum: ag.make_jvp(f, argnum)(2.0, 3.0, 0.0)(g)[1]
    assert push(5.0, 0) == 15.0
    assert push(5.0, 1) == 0.0
    with pytest.raises(NotImplementedError, match="wrt argnum 2 not defined"):
        push(5.0, 2)
    product = primitive(lambda x, y: x * y)
    def_linear(product)
    check_grads(product, (0, 1), modes=["fwd"])(X, X)
    for linear in (product, f):
        with pytest.raises(NotImplementedError, match="wrt argnum 0 not defined: its tangent is the function itself"):
            ag.grad(lambda x, linear=linear: np.sum(linear(x, 2.0, *[3.0] * (linear is f))))(X)
    defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x)
    check_grads(product, (0, 1))(X, X)


def test_autograd_convolve_of_bad_arguments_raises() -> None:
    with pytest.raises(ValueError, match="mode must be 'full', 'valid' or 'same', got 'all'"):
        convolve(X, X, mode="all")
    with pytest.raises(ValueError, match="larger than the other along all"):
        convolve(onp.ones((2, 3)), onp.ones((3, 2)), mode="valid")


def test_autograd_util_old_spellings() -> None:
    assert func(onp.sin) is onp.sin
    with pytest.warns(UserWarning, match="check_grads"):
        quick_grad_check(lambda x, k, p: np.sum(x**p) * k, X, (2.0,), {"p": 3})
    with pytest.warns(UserWarning, match="check_grads"), pytest.raises(AssertionError):
        quick_grad_check(lambda x: np.sum(x * getval(x)), X)


def test_vector_space_without_elements_refuses() -> None:
    space = VSpace(None)
    for call in (space.zeros, space.ones, space.randn, space.standard_basis, lambda: space.inner_prod(1.0, 1.0)):
        with pytest.raises(NotImplementedError, match=r"VSpace_\{\}"):
            call()


def test_vector_spaces_of_complex_numbers_and_containers() -> None:
    space = vspace(X + 1j)
    assert (space.size, space.ndim) == (6, 1)
    assert onp.array_equal(space.ones(), onp.full(3, 1 + 1j))
    both = vspace({"a": X, "b": (2.0, 1j)})
    assert onp.array_equal(both.zeros()["a"], onp.zeros(3))
    basis = [*both.standard_basis()]
    assert len(basis) == both.size == 6
    gram = [[both.inner_prod(x, y) for x in basis] for y in basis]
    assert onp.array_equal(gram, onp.eye(6))


def test_repeat_to_match_shape_of_number() -> None:
    assert repeat_to_match_shape(2.0, (), float, None, False) == (2.0, 1)
