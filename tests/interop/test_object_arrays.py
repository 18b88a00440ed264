"""``np.array([x[0], x[1]])`` of traced numbers: an object array of tensors, right element by element, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from differences import gradient
from scipy.optimize import fsolve, least_squares

import pullback as pb
from pullback.errors import (
    ArgumentError,
    BatchedValueError,
    CapturedError,
    GradientError,
    PullbackError,
    TracedValueError,
)

X = np.array([0.5, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3) + 1


def write_elements(x: Any) -> Any:
    a = np.array([x[0], x[1], x[2]])
    a[1] = x[0] * 5
    a += 1
    a[0] *= x[2]
    return a**2


def fill_object_array(x: Any) -> Any:
    a = np.empty(3, dtype=object)
    a[0], a[1], a[2] = x[0], x[1] * 2, 3.0
    return a


# Programs that are also NumPy programs: the value is NumPy's, the gradient that of finite differences.
WORKS: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda x: np.array([x[0], x[1]]) * 2,
    "nested": lambda x: np.array([[x[0], 1.0], [2, x[1] * x[2]]]) @ np.array([3.0, 4.0]),
    "rank 0": lambda x: np.array(x[0]) * x[1] + np.asarray(x[2]),
    "of a loop": lambda x: np.array([v * 2 for v in x]),
    "sum": lambda x: np.sum([x[0], x[1] ** 2]),
    "mean": lambda x: np.mean([x[0], x[1] ** 2]),
    "mean over an axis": lambda x: np.mean(np.array([[x[0], x[1]], [x[1], x[2]]]), axis=0) ** 2,
    "var": lambda x: np.var([x[0], x[1] ** 2, 1.0]),
    "std": lambda x: np.std([x[0], x[1] ** 2, 1.0]),
    "method mean": lambda x: np.array([x[0], x[1] ** 2]).mean(),
    "average": lambda x: np.average([x[0], x[1] ** 2, x[2]], weights=[1, 2, 3.0]),
    "full": lambda x: np.full(3, x[0]) * x,
    "full matrix": lambda x: np.full((2, 3), x[0]) @ x,
    "asarray": lambda x: np.asarray([x[0], x[1]]) @ np.asarray([x[1], x[2]]),
    "stack": lambda x: np.stack([np.array([x[0], x[1]]), np.array([x[1], 3.0])]) * 2,
    "concatenate with a tensor": lambda x: np.concatenate([np.array([x[0], x[1]]), x]) ** 2,
    "concatenate with an array": lambda x: np.concatenate([np.array([x[0], x[1]]), np.ones(2)]) ** 2,
    "vstack": lambda x: np.vstack([np.array([x[0], x[1]]), x[1:], [1.0, x[2]]]) ** 2,
    "append": lambda x: np.append(np.array([x[0]]), x[1]) ** 2,
    "dot with a list": lambda x: np.dot(M, [x[0], x[1], x[0] * x[2]]) ** 2,
    "matmul on the right": lambda x: M @ np.array([x[0], x[1], x[0] * x[2]]),
    "matmul on the left": lambda x: np.array([x[0], x[1]]) @ M,
    "times a tensor": lambda x: np.array([x[0], x[1], x[0] * x[2]]) * x,
    "a tensor times": lambda x: x * np.array([x[0], x[1], x[0] * x[2]]),
    "a tensor @": lambda x: x @ np.array([x[0], x[1], x[0] * x[2]]),
    "powers": lambda x: 2.0 ** np.array([x[0], x[1]]) + np.array([x[0], x[1]]) ** 2,
    "division": lambda x: 1.0 / np.array([x[0], x[1]]) + np.array([x[1], x[2]]) % 0.7,
    "ufuncs": lambda x: np.sin(np.array([x[0], x[1]])) + np.exp(np.sqrt(np.array([x[0], x[1]]))),
    "ufuncs by another name": lambda x: np.exp2(np.array([x[0], x[1]])) + np.deg2rad(np.array([x[0], x[2]])),
    "binary ufuncs": lambda x: np.hypot(np.array([x[0], x[1]]), np.array([x[1], x[2]])),
    "rounding": lambda x: (np.floor(np.array([x[0], x[1] + 0.1])) + np.rint(np.array([x[0] + 0.1, x[1]]))) * x[2],
    "maximum": lambda x: np.maximum(np.array([x[0], x[1]]), 1.0) + np.absolute(np.array([-x[0], x[1]])),
    "comparisons": lambda x: np.where(np.array([x[0], x[1]]) > 1, np.array([x[0], x[1]]), 0.0) ** 2,
    "sign": lambda x: np.sign(np.array([x[0], x[1]])) * x[:2],
    "norm": lambda x: np.linalg.norm(np.array([x[0], x[1] * x[2]])),
    "norms of rows": lambda x: np.linalg.norm(np.array([[x[0], x[1]], [x[2], x[0] * x[2]]]), axis=1),
    "cross": lambda x: np.cross([x[0], x[1], x[2]], [1.0, 2.0, 3.0]) ** 2,
    "outer": lambda x: np.outer([x[0], x[1]], [x[2], 1.0]),
    "einsum": lambda x: np.einsum("ij,j->i", M, np.array([x[0], x[1] ** 2, x[2]])),
    "trapezoid": lambda x: np.trapezoid([x[0], x[1] ** 2, x[2]], [0.0, 1.0, 2.0]),
    "diff, cumsum, prod": lambda x: np.diff([x[0], x[1] ** 2]) * np.cumsum([x[0], x[1]]) * np.prod([x[0], x[1]]),
    "max, sort": lambda x: np.max([x[0], x[1]]) * np.sort([x[2], x[1], x[0]]) * np.arange(3),
    "polyval": lambda x: np.polyval([x[0], x[1]], 2.0),
    "views": lambda x: np.array([[x[0], 1.0], [2.0, x[1]]]).T[::-1] @ x[:2],
    "copy": lambda x: np.copy(np.array([x[0], x[1]])) ** 2,
    "writes": write_elements,
    "object array by hand": fill_object_array,
    "r_": lambda x: np.r_[x, 1.0, x[0]] ** 2,
    "r_ with a slice": lambda x: np.r_[0:3, x] ** 2,
    "c_": lambda x: np.c_[x, x**2],
    "vectorize": lambda x: np.vectorize(lambda v: v * v)(x),
    "frompyfunc": lambda x: np.frompyfunc(lambda v: v * v, 1, 1)(np.array([x[0], x[1]])),
}  # fmt: skip
BY_VALUE = {"maximum", "comparisons", "sign", "max, sort"}  # these need truth values, which vmap has not


def slope(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of the sum of ``f``, by central differences."""
    steps = np.eye(x.size) * 1e-6
    return np.array([np.sum(f(x + d)) - np.sum(f(x - d)) for d in steps]) / 2e-6


@pytest.mark.parametrize("name", WORKS)
def test_grad_of_object_array(name: str) -> None:
    f = WORKS[name]
    value, grad = pb.value_and_grad(f)(X)
    np.testing.assert_allclose(value, np.asarray(f(X), float), rtol=1e-12)
    np.testing.assert_allclose(grad, slope(f, X), atol=1e-6)


def by_jvp(f: Any) -> Any:
    return np.array([np.sum(pb.jvp(f, [X], [d])[1]) for d in np.eye(3)])


def by_variables(f: Any) -> Any:
    v = pb.variable(X)
    return pb.variable_grads(lambda: np.sum(f(v))).grads[v.name].numpy()


def by_tape(f: Any) -> Any:
    v = pb.variable(X)
    with pb.GradientTape() as tape:
        y = f(v)
    return tape.gradient(y, v).numpy()


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jvp": by_jvp,
    "vmap of grad": lambda f: pb.vmap(pb.grad(f))(np.stack([X, X]))[1],
    "grad of vmap": lambda f: pb.grad(lambda x: pb.vmap(f)(np.stack([x, x]))[0])(X),
    "compile": lambda f: pb.compile(pb.grad(f), backend="numpy")(X),
    "jacobian": lambda f: np.reshape(pb.jacobian(f)(X), (-1, 3)).sum(0),
    "vjp": lambda f: (lambda y, pull: pull(np.ones_like(y))[0])(*pb.vjp(f, X)),
    "variable_grads": by_variables,
    "GradientTape": by_tape,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", WORKS)
def test_transform_of_object_array(name: str, transform: str) -> None:
    f = WORKS[name]
    if name in BY_VALUE and transform in ("vmap of grad", "grad of vmap", "compile"):
        with pytest.raises(PullbackError):
            TRANSFORMS[transform](f)
    else:
        np.testing.assert_allclose(TRANSFORMS[transform](f), slope(f, X), atol=1e-6)


@pytest.mark.parametrize("f", [lambda x: np.array([x[0], x[1] * x[2]]), lambda x: np.array([x[0], 1.0])])
def test_compiled_object_array_matches_eager(f: Any) -> None:
    np.testing.assert_allclose(pb.compile(f)(X), f(X))
    np.testing.assert_allclose(pb.compile(pb.grad(f))(X), pb.grad(f)(X))


def test_second_derivative_of_object_array() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.array([x[0] ** 3, x[0] * x[1] ** 2]))

    np.testing.assert_allclose(pb.hessian(f)(X[:2]), [[6 * 0.5, 2 * 2.0], [2 * 2.0, 2 * 0.5]])


def test_ops_of_object_arrays_and_lists() -> None:
    for f in (
        lambda x: pb.sum(np.array([x[0], x[1] ** 2])),
        lambda x: pb.sum([x[0], x[1] ** 2]),
        lambda x: pb.stack([np.array([x[0], x[1] ** 2])]),
        lambda x: pb.matmul(np.array([[x[0], x[1] ** 2]]), np.ones((2, 1))),
        lambda x: pb.dot(np.array([x[0], x[1] ** 2]), [1.0, 1.0]),
    ):
        np.testing.assert_allclose(pb.grad(f)(X), [1, 2 * X[1], 0])


def test_ops_of_mixed_object_arrays() -> None:
    def f(x: Any) -> Any:
        return pb.logaddexp(pb.sin(np.array([x[0], 1.0])), np.array([0.0, x[1]]))

    np.testing.assert_allclose(
        pb.grad(f)(X), slope(lambda x: np.logaddexp(np.sin(np.array([x[0], 1.0])), np.array([0.0, x[1]])), X), atol=1e-6
    )


def test_object_array_keeps_float32() -> None:
    x = pb.tensor([1.0, 2.0])
    made = []
    assert pb.grad(lambda x: made.append(pb.sin(np.array([x[0], 0.5]))) or made[0])(x).dtype == np.float32
    assert made[0].dtype == np.float32


def test_grad_by_an_object_array() -> None:
    def f(x: Any) -> Any:
        return pb.grad(lambda y: pb.sum(y**3))(np.array([x[0], x[1] * 2]))

    np.testing.assert_allclose(pb.grad(f)(X), [6 * 0.5, 6 * 4.0 * 2, 0])


def test_object_array_of_variables_of_rank_0() -> None:
    v, w = pb.variable(2.0), pb.variable(3.0)
    with pb.GradientTape() as tape:
        y = np.prod(np.array([v, w, v]))
    assert [d.item() for d in tape.gradient(y, [v, w])] == [12.0, 4.0]
    grads = pb.variable_grads(lambda: pb.sum(np.array([v, w]) ** 2)).grads
    assert [grads[v.name].item(), grads[w.name].item()] == [4.0, 6.0]
    assert np.array([v, w]).dtype == np.float32  # nothing follows them here


def test_tape_gradient_of_object_array_with_output_gradients() -> None:
    v = pb.variable(X)
    with pb.GradientTape(persistent=True) as tape:
        y = np.array([v[0] ** 2, v[1], 1.0])
    np.testing.assert_allclose(tape.gradient(y, v, [3.0, 5.0, 7.0]).numpy(), [3.0, 5.0, 0.0])
    with pytest.raises(GradientError, match=r"output_gradients has shape \(2,\), but its target has shape \(3,\)"):
        tape.gradient(y, v, np.ones(2))
    with pytest.raises(ArgumentError, match=r"one tensor, got ndarray. Join its numbers .* pb.stack"):
        tape.jacobian(y, v)


def test_custom_gradient_of_object_array() -> None:
    double = pb.custom_gradient(lambda x: (x * 2.0, lambda dy: dy * 20.0))
    np.testing.assert_allclose(pb.grad(lambda x: double(np.array([x[0], x[1]])))(X), [20.0, 20.0, 0.0])


def test_array_of_constant_tensors() -> None:
    t = pb.tensor([1.0, 2.0])
    assert np.array([t[0], t[1]]).dtype == np.float32
    assert np.mean([t[0], t[1]]) == 1.5


# ---- what else takes, or is given, an object array


def two(x: Any) -> Any:
    return np.array([x[0], x[1]])


FACES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "stop_gradient": (lambda x: pb.stop_gradient(two(x)) * x[:2], [0.5, 2.0, 0.0]),
    "scale_gradient": (lambda x: pb.scale_gradient(two(x), 3.0), [3.0, 3.0, 0.0]),
    "clip_gradient": (lambda x: pb.clip_gradient(two(x), -0.5, 0.5), [0.5, 0.5, 0.0]),
    "clip_gradient_norm": (lambda x: pb.clip_gradient_norm(two(x), 1.0), [0.5**0.5, 0.5**0.5, 0.0]),
    "reverse_gradient": (lambda x: pb.reverse_gradient(two(x)), [-1.0, -1.0, 0.0]),
    "grad_pass_through": (lambda x: pb.grad_pass_through(np.floor)(two(x)), [1.0, 1.0, 0.0]),
    "recompute_grad": (pb.recompute_grad(lambda x: two(x) ** 2), [1.0, 4.0, 0.0]),
    "custom_gradient": (
        pb.custom_gradient(lambda x: (two(x), lambda dy: np.array([dy[0] * 10.0, dy[1] * 20.0, 0.0]))),
        [10.0, 20.0, 0.0],
    ),
    "cast": (lambda x: pb.cast(two(x), "float32"), [1.0, 1.0, 0.0]),
    "add_n": (lambda x: pb.add_n([two(x), x[:2]]), [2.0, 2.0, 0.0]),
    "layer": (lambda x: pb.layers.dense(2, kernel_initializer="ones")(np.array([[x[0], x[1]]])), [2.0, 2.0, 0.0]),
}


@pytest.mark.parametrize("name", FACES)
def test_object_array_as_argument(name: str) -> None:
    f, expected = FACES[name]
    np.testing.assert_allclose(pb.grad(f)(X), expected, rtol=1e-6)
    np.testing.assert_allclose(pb.vmap(pb.grad(f))(np.stack([X, X]))[1], expected, rtol=1e-6)


def test_tap_gradient_of_object_array() -> None:
    seen: list[Any] = []
    pb.grad(lambda x: pb.tap_gradient(two(x), seen.append))(X)
    np.testing.assert_array_equal(seen[0].numpy(), [1.0, 1.0])


def test_captured_object_array_is_reported() -> None:
    def f(x: Any) -> Any:
        kept = two(x)
        return pb.custom_gradient(lambda y: (y * kept, lambda dy: dy))(x[:2])

    with pytest.raises(CapturedError):
        pb.grad(f)(X)


def test_custom_root_of_equations_in_an_object_array() -> None:
    def equations(x: Any, p: Any) -> Any:
        return np.array([x[0] + x[1] - p[0], x[0] * x[1] - p[1]])

    root = pb.custom_root(equations, lambda f, x0, p: fsolve(f, x0, args=(p,)))
    jacobian = pb.jacobian(lambda p: root(np.array([1.0, 3.0]), p))(np.array([5.0, 6.0]))
    np.testing.assert_allclose(jacobian, [[-2.0, 1.0], [3.0, -1.0]])
    point = pb.custom_fixed_point(lambda x, p: np.array([np.cos(x[1]) * p, 0.5 * np.sin(x[0])]))
    step = [np.sum(point(np.array([0.1, 0.1]), p)) for p in (0.5 - 1e-6, 0.5 + 1e-6)]
    slope_of_point = pb.grad(lambda p: np.sum(point(np.array([0.1, 0.1]), p)))(0.5)
    np.testing.assert_allclose(slope_of_point, np.diff(step)[0] / 2e-6, rtol=1e-6)


def test_diagnostics_of_object_array() -> None:
    f = WORKS["nested"]
    pb.check_grads(f, [X])
    assert "No NaN" in str(pb.diagnose(f)(X))
    assert "x: connected" in str(pb.explain(f)(X))
    with pb.debug_nans(), pb.strong_zero():
        np.testing.assert_allclose(pb.grad(f)(X), slope(f, X), atol=1e-6)


def test_other_derivatives_of_object_array() -> None:
    f = WORKS["writes"]
    np.testing.assert_allclose(pb.hvp(lambda x: np.sum(f(x)), X, X), pb.hessian(lambda x: np.sum(f(x)))(X) @ X)
    np.testing.assert_allclose(pb.sparse_jacobian(f)(X).toarray(), pb.jacobian(f)(X))
    np.testing.assert_allclose(pb.linearize(f, X)[1](X), pb.jacobian(f)(X) @ X)


# ---- refused


def write_into_zeros(x: Any) -> Any:
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i] * 2
    return out.sum()


def write_row_into_zeros(x: Any) -> Any:
    out = np.zeros((2, 3))
    out[1] = x
    return out.sum()


def write_slice_into_zeros(x: Any) -> Any:
    out = np.zeros(3)
    out[1:2] += x[0]
    return out.sum()


@pytest.mark.parametrize("f", [write_into_zeros, write_row_into_zeros])
@pytest.mark.parametrize("transform", [pb.grad, pb.jacobian, lambda f: lambda x: pb.jvp(f, [x], [x]), pb.compile])
def test_write_into_numpy_array_raises(f: Any, transform: Any) -> None:
    with pytest.raises(TypeError, match=r'out\[...\] = x at test_object_arrays.py:\d+.*pb.zeros\(shape, "float64"\)'):
        transform(f)(X)


def test_write_into_numpy_array_raises_in_other_transforms() -> None:
    with pytest.raises(BatchedValueError, match=r"out\[...\] = x at .*pb.zeros"):
        pb.vmap(write_into_zeros)(np.stack([X, X]))
    v = pb.variable(X)
    with pytest.raises(TracedValueError, match=r"out\[...\] = x at .*pb.zeros"):
        pb.variable_grads(lambda: write_into_zeros(v) + np.sum(v))
    with pytest.raises(TracedValueError, match=r"out\[...\] = x at .*pb.zeros"), pb.GradientTape():
        write_into_zeros(v)
    with pytest.raises(PullbackError, match=r"np\.add"):
        pb.grad(write_slice_into_zeros)(X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_write_into_pb_zeros(dtype: str) -> None:
    def f(x: Any) -> Any:
        out = pb.zeros(3, dtype)
        for i in range(3):
            out[i] = x[i] ** 2
        return out

    value, grad = pb.value_and_grad(f)(X)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, X**2, rtol=1e-6)
    np.testing.assert_allclose(grad, 2 * X, rtol=1e-6)
    np.testing.assert_allclose(pb.grad(lambda x: f(x) * pb.zeros_like(x) + f(x))(X), 2 * X, rtol=1e-6)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "astype": (lambda x: np.array([x[0], x[1]]).astype(float), r"float\(\) of a traced tensor of shape"),
    "dtype": (lambda x: np.array([x[0], x[1]], dtype=float), "np.array without a dtype"),
    "asarray with a dtype": (lambda x: np.asarray(np.array([x[0]]), dtype=float), "would lose its gradient"),
    "np.float64": (lambda x: np.float64(x[0]), "would lose its gradient"),
    "float": (lambda x: float(np.array([x[0]])[0]), "would lose its gradient"),
    "fromiter": (lambda x: np.fromiter(x, float), "would lose its gradient"),
    "array of rows": (lambda x: np.array([x, x]), "np.stack joins arrays"),
    "sum of rows": (lambda x: np.sum([x, x]), r"in NumPy's sum.*pb.stack"),
    "a ufunc of a mixed array": (lambda x: np.sin(np.array([x[0], 1.0])), r"no callable sin method.*pb.stack\(array\)"),
    "a ufunc of two mixed arrays": (
        lambda x: np.hypot(np.array([x[0], 1.0]), np.array([1.0, x[1]])),
        r"'float' object has no attribute 'hypot'.*pb.stack\(array\)",
    ),
    "a ufunc without a loop": (lambda x: np.logaddexp(np.array([x[0]]), 1.0), "'logaddexp' not supported.*pb.stack"),
    "solve": (lambda x: np.linalg.solve(np.array([[x[0]]]), np.ones(1)), "'solve1?'.*pb.stack"),
    "interp": (lambda x: np.interp(np.array([x[0]]), X, X), "from dtype.*pb.stack"),
    "gradient": (lambda x: np.gradient(np.array([x[0], x[1]])), "in NumPy's gradient.*pb.stack"),
    "cov": (lambda x: np.cov(np.array([[x[0], x[1]], [1.0, 2.0]])), "NumPy, in cov.*pb.stack"),
}  # fmt: skip


@pytest.mark.parametrize("transform", [pb.grad, pb.jacobian, lambda f: lambda x: pb.jvp(f, [x], [x])])
@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_function_of_object_array_raises(name: str, transform: Any) -> None:
    f, message = REFUSED[name]
    with pytest.raises(TypeError, match=message) as caught:
        transform(f)(X)
    assert isinstance(caught.value, PullbackError)


def test_user_errors_with_object_arrays_are_unchanged() -> None:
    class OwnError(ValueError):
        pass

    def f(x: Any) -> Any:
        try:
            return float(x[0])
        except TypeError as error:
            raise OwnError("mine") from error

    with pytest.raises(OwnError, match="mine"):
        pb.grad(f)(X)
    with pytest.raises(AttributeError, match=r"^module 'numpy' has no attribute 'sinn'"):
        pb.grad(lambda x: getattr(np, "sinn")(x))(X)  # noqa: B009


# ---- programs


def test_lotka_volterra_by_runge_kutta() -> None:
    def rates(y: Any, p: Any) -> Any:
        prey, predators = y
        return np.array([p[0] * prey - p[1] * prey * predators, p[2] * prey * predators - p[3] * predators])

    def end(p: Any) -> Any:
        y, h = np.array([10.0, 5.0]), 0.05
        for _ in range(40):
            k1 = rates(y, p)
            k2 = rates(y + h / 2 * k1, p)
            k3 = rates(y + h / 2 * k2, p)
            k4 = rates(y + h * k3, p)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return np.sum(y**2)

    p = np.array([1.1, 0.4, 0.1, 0.4])
    value, grad = pb.value_and_grad(end)(p)
    np.testing.assert_allclose(value, end(p))
    np.testing.assert_allclose(grad, slope(end, p), rtol=1e-6)
    np.testing.assert_allclose(pb.compile(pb.grad(end), backend="numpy")(p), grad)


def test_least_squares_with_the_jacobian_of_residuals() -> None:
    def residuals(x: Any) -> Any:
        return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    jacobian = pb.jacobian(residuals)
    np.testing.assert_allclose(jacobian(np.array([2.0, 3.0])), [[-40.0, 10.0], [-1.0, 0.0]])
    found = least_squares(residuals, [-1.2, 1.0], jac=jacobian)
    np.testing.assert_allclose(found.x, [1.0, 1.0])


def test_has_aux_of_object_array() -> None:
    _, aux = pb.grad(lambda x: (x.sum(), {"parts": np.array([x[0], x[1] * 2])}), has_aux=True)(X)
    assert aux["parts"].dtype == np.float64
    np.testing.assert_array_equal(aux["parts"], [0.5, 4.0])


def test_compiled_function_called_with_an_object_array() -> None:
    square = pb.compile(lambda y: y**2)
    square(np.ones(2))
    np.testing.assert_allclose(pb.grad(lambda x: pb.sum(square(np.array([x[0], x[1]]))))(X), [1.0, 4.0, 0.0])


def test_nanmean_of_traced_numbers() -> None:
    for mean in (np.nanmean, np.nanvar, np.nanstd):
        grad = pb.grad(lambda x, mean=mean: mean([x[0], x[1] ** 2, 5.0]))(X)
        np.testing.assert_allclose(grad, slope(lambda x, mean=mean: mean([x[0], x[1] ** 2, 5.0]), X), atol=1e-6)


def test_series_of_numpy_with_traced_coefficients_and_points() -> None:
    series = np.polynomial
    c = np.array([0.7, -1.3, 2.1])

    def f(x: Any) -> Any:
        p = series.Polynomial(x)
        q = p.deriv() * p + series.Polynomial([1.0, 2.0])
        cheb = series.chebyshev.chebval(np.array([0.2, 0.3]), x)
        grid = series.polynomial.polyval2d(x[0], 0.4, np.outer(x, x))
        quotient = series.polynomial.polydiv(x, [1.0, 2.0])[0]
        return q(x).sum() + p.integ()(0.5) + cheb[0] * cheb[1] + grid + quotient.sum()

    np.testing.assert_allclose(pb.grad(f)(c), gradient(f, c), rtol=1e-6)


def test_in_place_operators_of_object_arrays_with_tensors() -> None:
    def f(x: Any) -> Any:
        o = np.array([x[0], x[1], 2.0])
        o -= x * 2.0
        o[1:] *= x[:2]
        return (o * x).sum()

    c = np.array([0.7, -1.3, 2.1])
    np.testing.assert_allclose(pb.grad(f)(c), gradient(f, c), rtol=1e-6)
