"""argnums, argnames, keyword arguments and dy of grad, jacobian, hessian, hvp, jvp, vjp and linearize."""

from __future__ import annotations

import functools
import inspect
import operator
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose

import pullback as pb
from pullback.errors import ArgumentError

W, X, Y = np.array([0.5, -1.0]), np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]]), np.array([1.0, 0.0, 2.0])


def loss(w: Any, x: Any, y: Any, power: Any = 2) -> Any:
    return np.sum((x @ w - y) ** power)


def slope(w: Any, x: Any = X, y: Any = Y) -> Any:
    return 2 * x.T @ (x @ w - y)


def square(x: Any) -> Any:
    return x * x


def scale(x: Any, t: Any = 1.0) -> Any:
    return x * t**2


def with_dy(x: Any, dy: Any) -> Any:
    return x * x * dy


def keyword_only(x: Any, *, t: Any) -> Any:
    return x * t**2


def positional_only(x: Any, y: Any, /) -> Any:
    return x * y**2


def multiply_starred(*xs: Any) -> Any:
    return xs[0] * xs[-1] ** 2


class Model:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, w: Any, x: Any) -> Any:
        return self.factor * w**2 * x

    def method(self, w: Any, x: Any) -> Any:
        return self(w, x)


# ---- without argnums: one argument, dy, keywords


def test_keyword_arguments_are_passed_to_f() -> None:
    assert pb.grad(scale)(2.0, t=10.0) == 100.0
    assert pb.value_and_grad(scale)(2.0, t=10.0) == (200.0, 100.0)
    assert pb.grads(keyword_only)([2.0], t=10.0) == [100.0]
    assert pb.value_and_grads(keyword_only)([2.0], t=3.0) == (18.0, [9.0])
    assert_allclose(pb.grad(loss)(W, x=X, y=Y), slope(W))
    assert pb.jacobian(scale)(2.0, t=3.0) == 9.0
    assert pb.hessian(lambda x, n=1: x**n)(2.0, n=3) == 12.0
    assert pb.hvp(lambda x, n=1: x**n, 2.0, 1.0, n=3) == 12.0
    assert pb.vjp(scale, 2.0, t=3.0)[1](1.0) == (9.0,)
    assert pb.linearize(scale, 2.0, t=3.0)[1](1.0) == 9.0
    assert pb.jvp(scale, [2.0], [1.0], t=3.0) == (18.0, 9.0)


def test_differentiated_argument_by_keyword() -> None:
    assert pb.grad(lambda w: w * w)(w=3.0) == 6.0
    assert pb.grad(loss, argnums=0)(w=W, x=X, y=Y).tolist() == slope(W).tolist()
    with pytest.raises(ArgumentError, match=r"grad\(f\)\(x\): the argument to differentiate by, w, was not given"):
        pb.grad(lambda w: w * w)()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * x,
        np.square,
        pb.square,
        lambda x, *, n=2: x**n,
        functools.partial(lambda x, n: x**n, n=2),
        pb.custom_grad(lambda x, save: (x * x, lambda dy, saved: 2 * x * dy)),
        pb.compile(lambda x: x * x),
    ],
)
def test_second_positional_argument_is_dy_if_f_takes_one_argument(f: Any) -> None:
    assert pb.grad(f)(3.0, 10.0) == 60.0
    assert pb.value_and_grad(f)(3.0, 10.0) == (9.0, 60.0)


@pytest.mark.parametrize(
    "f",
    [
        scale,
        loss,
        multiply_starred,
        lambda x, seen=0: x * x,
        np.vectorize(lambda x: x * x),
        max,
        np.add,
        pb.sum,
        Model(2.0),
        Model(2.0).method,
        functools.partial(loss, x=X, y=Y, power=2).func,
        functools.partial(loss, W),
    ],
)
def test_second_positional_argument_raises_if_f_takes_several(f: Any) -> None:
    for face in (pb.grad, pb.value_and_grad):
        with pytest.raises(ArgumentError, match=r"2 were given by position.*argnums=0.*dy="):
            face(f)(2.0, 10.0)
    with pytest.raises(ArgumentError, match=r"2 were given by position.*jacobian\(\w+, argnums=0\)\(x, y"):
        pb.jacobian(f)(2.0, 10.0)


def test_too_many_positional_arguments_error_suggests_argnums() -> None:
    with pytest.raises(
        ArgumentError,
        match=r"loss\(w, x, y, power\) may take.*3 were given.*grad\(loss, argnums=0\)",
    ):
        pb.grad(loss)(W, X, Y)
    with pytest.raises(ArgumentError, match=r"grads\(f\)\(xs, dy=None\): 3 arguments .*grads\(f\)\(\[x, y, z\]\)"):
        pb.grads(loss)(W, X, Y)
    with pytest.raises(ArgumentError, match=r"jacobian\(f\)\(x\): f\(x\) takes one argument, but 2 were given"):
        pb.jacobian(lambda x: x * x)(1.0, 2.0)
    with pytest.raises(ArgumentError, match=r"grad\(f\)\(x, dy=None\): f\(x\) takes one argument, but 3 were given"):
        pb.grad(lambda x: x * x)(1.0, 2.0, 3.0)
    with pytest.raises(ArgumentError, match=r"dy was given twice"):
        pb.grad(lambda x: x * x)(1.0, 2.0, dy=2.0)


def test_dy_by_keyword() -> None:
    assert pb.grad(scale)(2.0, dy=10.0) == 10.0
    assert pb.grad(scale, argnums=(0, 1))(2.0, 3.0, dy=10.0) == (90.0, 120.0)
    assert_allclose(pb.grad(loss, argnums=0)(W, X, Y, dy=3.0), 3 * slope(W))


def test_f_with_parameter_named_dy() -> None:
    assert pb.grad(with_dy, argnums=0)(3.0, 5.0) == 30.0
    assert pb.grad(with_dy, argnums=0)(3.0, 5.0, dy=10.0) == 300.0
    assert pb.grads(with_dy)([3.0, 5.0], dy=10.0) == [300.0, 90.0]
    assert pb.grad(lambda dy: dy * dy)(3.0, dy=10.0) == 60.0
    for call in (lambda: pb.grad(with_dy)(3.0, dy=5.0), lambda: pb.grads(with_dy)([3.0], dy=5.0)):
        with pytest.raises(ArgumentError, match=r"f\(x, dy\) has an argument named dy of its own.*by position"):
            call()
    assert pb.jacobian(with_dy)(3.0, dy=5.0) == 30.0  # has no dy of its own


# ---- argnums and argnames


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"argnums": 0}, 9.0),
        ({"argnums": 1}, 12.0),
        ({"argnums": -1}, 12.0),
        ({"argnums": (0, 1)}, (9.0, 12.0)),
        ({"argnums": [1, 0]}, (12.0, 9.0)),
        ({"argnums": (1,)}, (12.0,)),
        ({"argnums": np.int64(1)}, 12.0),
        ({"argnames": "t"}, 12.0),
        ({"argnames": ("t", "x")}, (12.0, 9.0)),
        ({"argnums": 1, "argnames": "x"}, (12.0, 9.0)),
    ],
)
def test_argnums_and_argnames(how: Any, expected: Any) -> None:
    assert pb.grad(scale, **how)(2.0, 3.0) == expected
    assert pb.grad(scale, **how)(2.0, t=3.0) == expected
    assert pb.grad(scale, **how)(x=2.0, t=3.0) == expected
    assert pb.value_and_grad(scale, **how)(2.0, 3.0) == (18.0, expected)
    assert pb.jacobian(scale, **how)(2.0, 3.0) == expected
    assert pb.vjp(scale, 2.0, 3.0, **how)[1](1.0) == expected
    assert pb.vmap(pb.grad(scale, **how))(np.array([2.0]), np.array([3.0])) == expected
    assert pb.compile(pb.grad(scale, **how))(2.0, 3.0) == expected


def test_argnums_by_position() -> None:
    assert pb.grad(scale, 1)(2.0, 3.0) == 12.0
    assert pb.value_and_grad(scale, (0, 1))(2.0, 3.0).grad == (9.0, 12.0)
    assert pb.hessian(scale, 1)(2.0, 3.0) == 4.0
    with pytest.raises(ArgumentError, match=r"mode must be .*, got 0\. Write argnums=0 to choose arguments"):
        pb.jacobian(scale, 0)  # type: ignore[arg-type]


def test_argnums_of_parameter_kinds() -> None:
    assert pb.grad(keyword_only, argnames="t")(2.0, t=3.0) == 12.0
    assert pb.grad(positional_only, argnums=1)(2.0, 3.0) == 12.0
    assert pb.grad(positional_only, argnames="y")(2.0, 3.0) == 12.0
    assert pb.grad(multiply_starred, argnums=-1)(2.0, 7.0, 3.0) == 12.0
    assert pb.grad(multiply_starred, argnums=(0, 2))(2.0, 7.0, 3.0) == (9.0, 12.0)
    assert pb.grad(lambda **kw: kw["a"] * kw["b"], argnames="b")(a=2.0, b=3.0) == 2.0
    assert pb.grad(Model(2.0), argnums=1)(3.0, 4.0) == 18.0
    assert pb.grad(Model(2.0).method, argnames="x")(3.0, 4.0) == 18.0
    assert pb.grad(functools.partial(scale, 2.0), argnums=0)(3.0) == 12.0
    assert pb.grad(functools.partial(scale, t=3.0), argnames="t")(2.0, t=1.0) == 4.0
    assert pb.grad(np.multiply, argnums=1)(2.0, 3.0) == 2.0
    assert pb.grad(operator.mul, argnums=1)(2.0, 3.0) == 2.0
    assert pb.grad(max, argnums=0)(2.0, 1.0) == 1.0


def test_other_arguments_are_passed_unchanged() -> None:
    seen = []

    def f(w: Any, *rest: Any, **named: Any) -> Any:
        seen.extend([*rest, *named.values()])
        return w * 2.0

    given = (np.ones(2), [1, 2], "text", None, {"a": object()}, pb.tensor(1.0))
    assert pb.grad(f, argnums=0)(3.0, *given, key=(given,)) == 2.0
    assert all(a is b for a, b in zip(seen, [*given], strict=False))


def test_argnums_of_tree_arguments() -> None:
    params = {"w": W, "b": 0.5}
    g = pb.grad(lambda p, x, y: np.sum((x @ p["w"] + p["b"] - y) ** 2), argnums=0)(params, X, Y)
    r = X @ W + 0.5 - Y
    assert_allclose(g["w"], 2 * X.T @ r)
    assert g["b"] == pytest.approx(2 * r.sum())
    (a, b), c = pb.grad(lambda p, q: p[0] * p[1] * q, argnums=(0, 1))((2.0, 3.0), 5.0)
    assert (a, b, c) == (15.0, 10.0, 6.0)


def test_value_type_follows_all_arguments() -> None:
    value, grad = pb.value_and_grad(lambda w, x: w * x, argnums=0)(2.0, np.ones(3))
    assert isinstance(value, np.ndarray)
    assert grad == 3.0
    value, grad = pb.value_and_grad(lambda w, x: w * x, argnums=0)(2.0, pb.tensor([1.0, 2.0]))
    assert isinstance(value, pb.Tensor)
    assert type(grad) is float
    assert isinstance(pb.jacobian(lambda w, x: w * x, argnums=0)(2.0, np.ones(3)), np.ndarray)


@pytest.mark.parametrize("face", [pb.grad, pb.value_and_grad, pb.jacobian, pb.hessian, pb.sparse_jacobian])
@pytest.mark.parametrize(
    ("f", "how", "says"),
    [
        (scale, {"argnums": 2}, r"argnums=2 is out of range, f takes 2 arguments by position \(x, t\)"),
        (scale, {"argnums": -3}, r"argnums=-3 is out of range"),
        (keyword_only, {"argnums": 1}, r"out of range, f takes 1 .* Choose t by argnames"),
        (scale, {"argnums": (0, 0)}, r"chosen more than once \(argnums=0, argnums=0\)"),
        (scale, {"argnums": (0, -2)}, r"chosen more than once"),
        (scale, {"argnums": 0, "argnames": "x"}, r"chosen more than once \(argnums=0, argnames='x'\)"),
        (scale, {"argnames": "s"}, r"argnames has 's', which is no argument of f; it takes x, t"),
        (loss, {"argnames": "pwoer"}, r"Did you mean 'power'\?"),
        (multiply_starred, {"argnames": "xs"}, r"argnames has 'xs', which is no argument"),
        (scale, {"argnums": ()}, r"argnums is empty"),
        (scale, {"argnames": []}, r"argnames is empty"),
        (scale, {"argnums": 1.0}, r"argnums must be an integer or a tuple of them, got 1\.0"),
        (scale, {"argnums": True}, r"argnums must be an integer"),
        (scale, {"argnums": "x"}, r"argnums must be an integer or a tuple of them, got 'x'\. Names go to argnames='x'"),
        (scale, {"argnames": 0}, r"argnames must be a name or a tuple of them, got 0"),
    ],
)
def test_bad_argnums_raise_when_wrapping(face: Any, f: Any, how: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=f"{face.__name__}: .*{says}"):
        face(f, **how)


@pytest.mark.parametrize("face", [pb.grad, pb.value_and_grad, pb.jacobian, pb.hessian])
@pytest.mark.parametrize("x", [2.0, np.ones(3), pb.tensor([1.0])])
def test_passing_x_as_argnums_raises(face: Any, x: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"The derivative at a point is {face.__name__}\(f\)\(x\)\."):
        face(square, x)


@pytest.mark.parametrize(
    "face",
    [pb.grad, pb.grads, pb.value_and_grad, pb.value_and_grads, pb.jacobian, pb.hessian, pb.sparse_jacobian, pb.compile],
)
def test_passing_several_inputs_when_wrapping_raises(face: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"returns one that takes the arguments: {face.__name__}\(f\)\("):
        face(square, np.ones(3), np.ones(3))


def test_jvp_of_inputs_not_in_lists_raises() -> None:
    with pytest.raises(ArgumentError, match=r"For one input it is jvp\(f, \[x\], \[v\]\)"):
        pb.jvp(square, np.ones(3), np.ones(3))


def test_missing_chosen_argument_raises() -> None:
    with pytest.raises(
        ArgumentError, match=r"grad: the argument 't' \(argnums=-1\) .* was not given; got 1 by position"
    ):
        pb.grad(scale, argnums=-1)(2.0)
    with pytest.raises(ArgumentError, match=r"argnums=3 to differentiate by was not given; got 2 by position"):
        pb.grad(multiply_starred, argnums=3)(1.0, 2.0)
    with pytest.raises(ArgumentError, match=r"'b' \(argnames='b'\).*got 0 by position and a by keyword"):
        pb.grad(lambda **kw: kw["a"], argnames="b")(a=1.0)
    with pytest.raises(ArgumentError, match="chosen more than once"):
        pb.grad(multiply_starred, argnums=(0, -2))(1.0, 2.0)


# ---- the other transforms


def test_hessian_argnums() -> None:
    f = lambda x, y: x**2 * y**3
    assert pb.hessian(f, argnums=1)(2.0, 3.0) == 72.0
    assert pb.hessian(f, argnums=(0, 1))(2.0, 3.0) == ((54.0, 108.0), (108.0, 72.0))
    assert_allclose(pb.hessian(loss, argnums=0)(W, X, Y), 2 * X.T @ X)
    with pytest.raises(ArgumentError, match=r"hessian: the argument 'y'"):
        pb.hessian(f, argnums=1)(2.0)


def test_hvp_argnums() -> None:
    v = np.array([1.0, -2.0])
    assert_allclose(pb.hvp(loss, (W, X, Y), v, argnums=0), 2 * X.T @ X @ v)
    assert_allclose(pb.hvp(loss, (W,), v, argnums=0, x=X, y=Y), 2 * X.T @ X @ v)
    assert pb.hvp(lambda x, y: x**2 * y**3, (2.0, 3.0), (1.0, 10.0), argnums=(0, 1)) == (1134.0, 828.0)
    with pytest.raises(ArgumentError, match=r"args must be a list of the arguments of f, got ndarray"):
        pb.hvp(loss, W, v, argnums=0)
    with pytest.raises(ArgumentError, match=r"v must be a tuple of 2, one entry for each chosen argument"):
        pb.hvp(lambda x, y: x * y, (2.0, 3.0), 1.0, argnums=(0, 1))


def test_jvp_and_linearize_argnums() -> None:
    assert pb.jvp(lambda x, n: x**n, [2.0, 3], [1.0], argnums=0) == (8.0, 12.0)
    assert pb.jvp(keyword_only, [2.0], [1.0], argnames="t", t=3.0) == (18.0, 12.0)
    assert pb.jvp(scale, [2.0, 3.0], [10.0, 1.0], argnums=(1, 0)) == (18.0, 129.0)
    y, push = pb.linearize(scale, 2.0, 3.0, argnums=1)
    assert (y, push(1.0)) == (18.0, 12.0)
    with pytest.raises(ArgumentError, match=r"jvp: 1 args but 2 tangents.*argnums says which"):
        pb.jvp(scale, [2.0, 3.0], [1.0, 1.0], argnums=0)


def test_sparse_jacobian_and_hessian_argnums() -> None:
    def f(a: Any, x: Any) -> Any:
        return a * x[1:] * x[:-1]

    x = np.array([1.0, 2.0, 3.0])
    assert_allclose(pb.sparse_jacobian(f, argnums=1)(2.0, x).toarray(), [[4, 2, 0], [0, 6, 4]])
    assert_allclose(pb.sparse_jacobian(f, argnames="x")(3.0, x=x).toarray(), [[6, 3, 0], [0, 9, 6]])
    assert_allclose(pb.sparse_jacobian(lambda x, a: f(a, x))(x, a=2.0).toarray(), [[4, 2, 0], [0, 6, 4]])
    H = pb.sparse_hessian(lambda a, x: np.sum(f(a, x)), argnums=1)(2.0, x).toarray()
    assert_allclose(H, [[0, 2, 0], [2, 0, 2], [0, 2, 0]])
    with pytest.raises(ArgumentError, match=r"sparse_jacobian: one argument can be chosen, got 2; use jacobian"):
        pb.sparse_jacobian(f, argnums=(0, 1))


def test_argnums_in_nested_transforms() -> None:
    f = lambda x, y: x**2 * y**3
    assert pb.grad(pb.grad(f, argnums=0), argnums=1)(2.0, 3.0) == 108.0
    assert pb.grad(pb.grad(f, argnums=1), argnums=0)(2.0, 3.0) == 108.0
    assert pb.grad(pb.grad(lambda x: x**3))(2.0, 10.0) == 120.0  # dy of the outer one
    assert pb.grad(pb.vmap(pb.grad(lambda x: x**3)))(np.array([2.0]), dy=np.array([10.0])) == 120.0
    assert pb.jacobian(pb.grad(f, argnums=1), argnums=0)(2.0, 3.0) == 108.0
    assert pb.grad(pb.compile(f), argnums=1)(2.0, 3.0) == 108.0
    each = pb.vmap(pb.grad(loss, argnums=0), in_axes=(None, 0, 0))(W, X[:, None], Y[:, None])
    assert_allclose(each, [slope(W, x[None], y[None]) for x, y in zip(X, Y, strict=True)])
    step = pb.compile(pb.value_and_grad(loss, argnums=0))
    assert_allclose(step(W, X, Y).grad, slope(W))
    assert_allclose(step(W, x=X, y=Y).grad, slope(W))


def test_has_aux_with_argnums() -> None:
    f = lambda x, y: (x * y**2, {"y": y, "square": x * x})
    grad, aux = pb.grad(f, argnums=1, has_aux=True)(2.0, 3.0)
    assert (grad, aux) == (12.0, {"y": 3.0, "square": 4.0})
    (value, aux), grad = pb.value_and_grad(f, argnums=0, has_aux=True)(2.0, 3.0)
    assert (value, aux["square"], grad) == (18.0, 4.0, 9.0)


# ---- identity


@pytest.mark.parametrize("face", [pb.grad, pb.value_and_grad, pb.jacobian, pb.hessian, pb.sparse_jacobian])
def test_pickle_keeps_argnums(face: Any) -> None:
    g = face(scale, argnums=1)
    again = pickle.loads(pickle.dumps(g))
    assert (again.__wrapped__, again.argnums, again.__name__) == (scale, 1, "scale")
    if face is not pb.sparse_jacobian:
        assert again(2.0, 3.0) == g(2.0, 3.0)
    assert pickle.loads(pickle.dumps(face(scale, argnames="t"))).argnames == "t"


@pytest.mark.parametrize(
    ("g", "expected"),
    [
        (pb.grad(lambda x: x), "(x, dy=None)"),
        (pb.grad(lambda x, t=1.0: x), "(x, *, t=1.0, dy=None)"),
        (pb.grad(lambda x, t=1.0: x, argnums=0), "(x, t=1.0, *, dy=None)"),
        (pb.grad(lambda *xs, **named: xs, argnums=0), "(*xs, dy=None, **named)"),
        (pb.grad(lambda *xs, **named: xs), "(xs, /, *, dy=None, **named)"),
        (pb.grad(lambda x, dy: x, argnums=0), "(x, dy)"),
        (pb.grad(pb.grad(lambda x, y: x, argnums=0), argnums=0), "(x, y, *, dy=None)"),
        (pb.grads(lambda x, y, *, n=2: x), "(xs, /, dy=None, *, n=2)"),
        (pb.jacobian(lambda x, t: x, argnums=0), "(x, t)"),
        (pb.grad(pb.custom_grad(lambda x, save: x)), "(x, dy=None)"),
    ],
)
def test_signature_of_grad(g: Any, expected: str) -> None:
    assert str(inspect.signature(g)) == expected


def test_signature_of_grad_if_f_has_none() -> None:
    with pytest.raises(ValueError, match="no signature"):
        inspect.signature(pb.grad(max))
    assert "f" in inspect.signature(type(pb.grad(scale))).parameters


# ---- SciPy


def test_scipy_minimize_with_args() -> None:
    exact = np.linalg.lstsq(X, Y, rcond=None)[0]
    found = scipy.optimize.minimize(loss, np.zeros(2), args=(X, Y), jac=pb.grad(loss, argnums=0))
    assert_allclose(found.x, exact, atol=1e-6)
    found = scipy.optimize.minimize(pb.value_and_grad(loss, argnums=0), np.zeros(2), args=(X, Y), jac=True)
    assert_allclose(found.x, exact, atol=1e-6)
    found = scipy.optimize.minimize(
        loss,
        np.zeros(2),
        args=(X, Y),
        method="trust-exact",
        jac=pb.grad(loss, argnums=0),
        hess=pb.hessian(loss, argnums=0),
    )
    assert_allclose(found.x, exact, atol=1e-6)
    found = scipy.optimize.minimize(
        loss,
        np.zeros(2),
        args=(X, Y),
        method="Newton-CG",
        jac=pb.grad(loss, argnums=0),
        hessp=lambda w, v, *rest: pb.hvp(loss, (w, *rest), v, argnums=0),
    )
    assert_allclose(found.x, exact, atol=1e-5)


def test_scipy_least_squares_with_args_and_kwargs() -> None:
    def residuals(p: Any, t: Any, y: Any, offset: Any = 0.0) -> Any:
        return p[0] * np.exp(-p[1] * t) + offset - y

    t = np.linspace(0, 2, 9)
    y = 3 * np.exp(-0.7 * t) + 1.0
    found = scipy.optimize.least_squares(
        residuals, [1.0, 1.0], jac=pb.jacobian(residuals, argnums=0), args=(t, y), kwargs={"offset": 1.0}
    )
    assert_allclose(found.x, [3.0, 0.7], rtol=1e-6)


class Opaque:
    """A callable whose parameters are not known."""

    __signature__ = "unknown"

    def __init__(self, f: Any) -> None:
        self.f = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)


def test_argnames_of_function_without_signature() -> None:
    f = Opaque(lambda x, y: np.sum(x * y**2))
    assert pb.grad(f, argnames="y")(np.ones(3), y=2.0) == 12.0
    assert_allclose(pb.grad(f, argnums=0)(np.ones(3), 2.0), [4.0, 4.0, 4.0])


def test_custom_gradient_of_functions_without_signature() -> None:
    f = Opaque(lambda x: (np.sum(x * x), Opaque(lambda dy: dy * np.array([5.0, 7.0]))))
    assert_allclose(pb.grad(pb.custom_gradient(f))(np.ones(2)), [5.0, 7.0])
    f = Opaque(lambda x, save: {"value": np.sum(x * x), "grad_func": lambda dy, saved: dy * np.array([5.0, 7.0])})
    assert_allclose(pb.grad(pb.custom_grad(f))(np.ones(2)), [5.0, 7.0])
    with pytest.raises(pb.errors.CustomGradientError, match="the gradient of 'input 1' must have its shape"):
        pb.grad(pb.custom_gradient(Opaque(lambda x: (np.sum(x), lambda dy: dy))))(np.ones(2))


def test_custom_gradient_of_variables_by_function_without_signature() -> None:
    v = pb.variable([1.0, 2.0])
    back = Opaque(lambda dy, variables: (dy * np.ones(2), [np.full(2, 5.0) for _ in variables]))
    f = pb.custom_gradient(lambda x: (np.sum(x * v), back))
    assert_allclose(pb.variable_grads(lambda: f(np.ones(2))).grads[v.name], [5.0, 5.0])
