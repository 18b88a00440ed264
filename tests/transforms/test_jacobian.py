"""``jacobian``, ``hessian`` and ``hvp``: against finite differences and closed forms, of trees, nested, complex."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from differences import slope

import pullback as pb
from pullback.errors import ArgumentError, GradientError, ShapeError

X = np.array([0.3, -1.2, 2.0])
MODES = ["auto", "forward", "reverse"]


@pb.custom_grad
def softplus(x: Any, save: Any) -> Any:
    """``log(1 + exp(x))`` with a gradient of its own."""
    e = np.exp(x)
    save([e])
    return np.log(1 + e), lambda dy, saved: dy * (1 - 1 / (1 + saved[0]))


def to_two(x: Any) -> Any:
    return pb.stack([np.sum(x * x), x[0] * np.sin(x[1])])


def to_matrix(x: Any) -> Any:
    return np.sin(x)[:, None] * x[None, :] ** 2


def cubic(x: Any) -> Any:
    return np.sum(x**3) * x[0] + np.prod(np.cos(x))


def by_differences(f: Any, x: Any) -> Any:
    columns = [slope(f, x, unit) for unit in np.eye(x.size).reshape(-1, *x.shape)]
    return np.stack(columns, axis=-1).reshape(np.shape(f(x)) + x.shape)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [to_two, to_matrix, np.sin, np.sum, np.cumsum, softplus, lambda x: x[[2, 0, 2, 1]]])
def test_jacobian_matches_finite_differences(f: Any, mode: str) -> None:
    J = pb.jacobian(f, mode)(X)
    np.testing.assert_allclose(J, by_differences(f, X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_jacobian_shapes_dtypes_and_types(mode: str) -> None:
    J = pb.jacobian(lambda x: np.sum(x, axis=0) * np.ones((4, 1), "f4"), mode)(np.ones((2, 3), "f4"))
    assert (J.shape, J.dtype) == ((4, 3, 2, 3), np.float32)
    assert pb.jacobian(lambda x: x * x, mode)(3.0) == 6.0
    assert pb.jacobian(lambda x: x * x, mode)([1.0, 2.0]) == [[2.0, 0.0], [0.0, 4.0]]
    of_tensor = pb.jacobian(lambda x: x * x, mode)(pb.tensor([1.0, 2.0]))
    assert isinstance(of_tensor, pb.Tensor)
    assert of_tensor.dtype == np.float32
    assert pb.jacobian(lambda n: n * 2.0, mode)(np.array([1, 2])).tolist() == [[2, 0], [0, 2]]
    assert pb.jacobian(lambda x: x[:0], mode)(X).shape == (0, 3)
    assert pb.jacobian(lambda x: np.sum(x), mode)(np.ones((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("mode", MODES)
def test_jacobian_of_trees(mode: str) -> None:
    def f(p: Any) -> Any:
        return {"y": p["a"] * p["b"], "z": (p["b"] ** 2, 5.0)}

    J = pb.jacobian(f, mode)({"a": np.array([1.0, 2.0]), "b": np.float64(3)})
    np.testing.assert_allclose(J["y"]["a"], 3 * np.eye(2))
    np.testing.assert_allclose(J["y"]["b"], [1, 2])
    np.testing.assert_allclose(J["z"][0]["a"], [0, 0])
    np.testing.assert_allclose(J["z"][0]["b"], 6)
    np.testing.assert_allclose(J["z"][1]["a"], [0, 0])


def test_hessian_and_hvp_of_trees() -> None:
    p = {"w": np.array([1.0, 2.0]), "b": 3.0}
    H = pb.hessian(lambda p: np.sum(p["w"] ** 3) * p["b"] ** 2)(p)
    np.testing.assert_allclose(H["w"]["w"], np.diag(6 * p["w"]) * 9)
    np.testing.assert_allclose(H["w"]["b"], 3 * p["w"] ** 2 * 6)
    np.testing.assert_allclose(H["b"]["w"], H["w"]["b"])
    np.testing.assert_allclose(H["b"]["b"], 2 * 9)
    v = {"w": np.array([0.5, -1.0]), "b": 2.0}
    moved = pb.hvp(lambda p: np.sum(p["w"] ** 3) * p["b"] ** 2, p, v)
    np.testing.assert_allclose(moved["w"], H["w"]["w"] @ v["w"] + H["w"]["b"] * v["b"])
    assert moved["b"] == pytest.approx(H["b"]["w"] @ v["w"] + H["b"]["b"] * v["b"])
    assert type(moved["b"]) is float


def test_hessian_and_hvp_match_finite_differences() -> None:
    H = pb.hessian(cubic)(X)
    np.testing.assert_allclose(H, by_differences(pb.grad(cubic), X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pb.hvp(cubic, X, X), H @ X)
    assert not pb.hessian(lambda x: np.sum(2 * x))(X).any()
    assert not pb.hvp(lambda x: np.sum(2 * x), X, X).any()
    assert pb.hessian(lambda x: x**3)(2.0) == 12.0
    assert pb.hessian(lambda x: np.sum(x**3))(X.astype("f4")).dtype == np.float32
    of_many = pb.hessian(lambda x: x**3)(X)  # of a result with axes: they come first
    np.testing.assert_allclose(np.einsum("iii->i", of_many), 6 * X)
    assert np.count_nonzero(of_many) == 3


def test_hessian_of_custom_grad() -> None:
    H = pb.hessian(lambda x: np.sum(softplus(x) ** 2))(X)
    s = 1 / (1 + np.exp(-X))
    np.testing.assert_allclose(H, np.diag(2 * s**2 + 2 * np.log1p(np.exp(X)) * s * (1 - s)))
    np.testing.assert_allclose(pb.hvp(lambda x: np.sum(softplus(x) ** 2), X, X), H @ X)


def test_hessian_of_wrong_custom_grad_is_not_symmetric() -> None:
    """Where the gradient is no gradient, its jacobian is not symmetric, and hvp is its product with a vector."""

    @pb.custom_grad
    def odd(x: Any, save: Any) -> Any:
        save([x])
        return np.sum(x), lambda dy, saved: dy * saved[0] * np.roll(saved[0], 1) ** 2

    H = pb.hessian(odd)(X)
    np.testing.assert_allclose(H, by_differences(lambda x: x * np.roll(x, 1) ** 2, X), atol=1e-8)
    assert not np.allclose(H, H.T)
    np.testing.assert_allclose(pb.hvp(odd, X, X), H @ X)


def test_jacobian_and_hessian_nested_in_vmap_and_grad() -> None:
    many = np.stack([X, X + 1, -X])
    each = np.stack([by_differences(to_two, x) for x in many])
    np.testing.assert_allclose(pb.vmap(pb.jacobian(to_two))(many), each, rtol=1e-6)
    np.testing.assert_allclose(pb.vmap(pb.jacobian(to_two, "forward"))(many), each, rtol=1e-6)
    J = pb.jacobian(pb.vmap(to_two))(many)  # examples do not depend on each other
    np.testing.assert_allclose(np.einsum("ijik->ijk", J), each, rtol=1e-6)
    assert np.count_nonzero(J) == np.count_nonzero(each)
    H = by_differences(pb.grad(cubic), X)
    np.testing.assert_allclose(pb.jacobian(pb.grad(cubic))(X), H, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pb.jacobian(pb.grad(cubic), "forward")(X), H, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pb.jacobian(pb.jacobian(cubic, "forward"), "forward")(X), H, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pb.vmap(pb.hessian(cubic))(many)[0], H, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pb.vmap(lambda v: pb.hvp(cubic, X, v))(np.eye(3)), H, rtol=1e-6, atol=1e-8)


def test_grad_and_jvp_of_hvp_and_jacobian() -> None:
    def inner(x: Any) -> Any:
        return np.sum(pb.hvp(cubic, x, np.ones(3)) ** 2) + np.sum(pb.jacobian(to_two)(x) ** 2)

    np.testing.assert_allclose(pb.grad(inner)(X), by_differences(inner, X), rtol=1e-5)
    dy = pb.jvp(inner, [X], [np.ones(3)])[1]
    np.testing.assert_allclose(dy, slope(inner, X, np.ones(3)), rtol=1e-5)
    third = pb.jacobian(pb.hessian(cubic))(X)
    np.testing.assert_allclose(third, by_differences(pb.hessian(cubic), X), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_captured_value_inside_grad_jvp_and_vmap(mode: str) -> None:
    jacobian = lambda w: pb.jacobian(lambda x: w * x**2, mode)(X)
    ws = np.array([1.0, 2.0])
    np.testing.assert_allclose(pb.grad(lambda w: np.sum(jacobian(w)))(2.0), 2 * X.sum())
    np.testing.assert_allclose(pb.jvp(jacobian, [2.0], [1.0])[1], np.diag(2 * X))
    np.testing.assert_allclose(pb.vmap(jacobian)(ws), ws[:, None, None] * np.diag(2 * X))
    wide = np.random.default_rng(0).normal(size=10_000)  # one direction at a time
    if mode == "reverse":
        rows = lambda w: pb.jacobian(lambda x: pb.stack([np.sum(w * x * x), np.sum(x * wide)]), mode)(wide)
        np.testing.assert_allclose(pb.vmap(rows)(ws)[1], [4 * wide, wide])
    else:
        columns = lambda w: pb.jacobian(lambda x: w * x[0] * wide + x[1], mode)(X[:2])
        np.testing.assert_allclose(pb.vmap(columns)(ws)[1], np.stack([2 * wide, np.ones_like(wide)], axis=1))


@pytest.mark.parametrize("sizes", [(6, 5, 2), (12, 11, 3), (3, 7, 20)])
def test_vmap_of_grad_gives_per_example_gradients(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    inputs, hidden, outputs = sizes
    params = {"w": rng.normal(size=(inputs, hidden)), "v": rng.normal(size=(hidden, outputs)), "b": np.zeros(outputs)}

    def slopes(x: Any) -> Any:
        return pb.grad(lambda p: pb.log_sum_exp(pb.relu(x @ p["w"]) @ p["v"] + p["b"], 0))(params)

    xs = rng.normal(size=(4, inputs))
    found, each = pb.vmap(slopes)(xs), [slopes(x) for x in xs]
    for name, d in found.items():
        np.testing.assert_allclose(d, np.stack([one[name] for one in each]), rtol=1e-12, atol=1e-14)


def test_jacobian_runs_f_once() -> None:
    for mode in MODES:
        runs: list[int] = []
        pb.jacobian(lambda x: (runs.append(1), np.sin(x))[1], mode)(np.ones(3))  # noqa: B023
        assert runs == [1]


@pytest.mark.parametrize("size", [300, 9000])  # many directions at a time, and one by one
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_big_inputs_uses_bounded_memory(size: int, mode: str) -> None:
    few = lambda x: np.exp(np.sin(x) * 2) + x

    def f(x: Any) -> Any:
        if mode == "forward":  # from few to many
            return few(np.reshape(x[:, None] * np.ones(size // 10), (size,)))
        return np.sum(np.reshape(few(x), (10, -1)), axis=1)

    x = np.random.default_rng(0).normal(size=10 if mode == "forward" else size)
    pb.jacobian(f, mode)(x)
    tracemalloc.start()
    J = pb.jacobian(f, mode)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * J.nbytes + 4_000_000
    slopes = np.exp(np.sin(x) * 2) * 2 * np.cos(x) + 1
    ones = np.ones((size // 10, 1)) if mode == "forward" else np.ones(size // 10)
    np.testing.assert_allclose(J, np.kron(np.eye(10), ones) * slopes)


def test_tape_jacobian_matches_jacobian() -> None:
    x = pb.tensor(X)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = softplus(to_matrix(x))
    np.testing.assert_allclose(tape.jacobian(y, x), pb.jacobian(lambda x: softplus(to_matrix(x)))(X), rtol=1e-12)


def test_jacobian_and_hessian_keep_name_and_pickle() -> None:
    J, H = pb.jacobian(cubic, "forward"), pb.hessian(cubic)
    assert J.__name__ == H.__name__ == "cubic"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(J))(X), J(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(H))(X), H(X))
    assert repr(J) == "<jacobian of cubic>"
    assert repr(H) == "<hessian of cubic>"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: pb.jacobian(3), ArgumentError, r"jacobian\(f\): f must be a function, got int"),
        (lambda: pb.hessian(3), ArgumentError, r"hessian\(f\): f must be a function, got int"),
        (
            lambda: pb.jacobian(np.add)(1.0, 2.0),
            ArgumentError,
            r"2 were given .* jacobian\(add, argnums=0\)\(x, y",
        ),
        (lambda: pb.hessian(np.add)(1.0, 2.0), ArgumentError, r"hessian\(add\)\(x\): .* one argument"),
        (lambda: pb.jacobian(cubic, "backward"), ArgumentError, "'auto', 'forward' or 'reverse', got 'backward'"),
        (lambda: pb.jacobian(lambda x: None)(1.0), GradientError, "jacobian: f must return something"),
        (lambda: pb.jacobian(lambda x: "a")(1.0), GradientError, "jacobian: f must return numbers.*got str"),
        (lambda: pb.hessian(lambda x: "a")(1.0), GradientError, "hessian: f must return numbers"),
        (lambda: pb.jacobian(cubic)(np.array(["a"])), GradientError, "only numbers have"),
        (lambda: pb.jacobian(np.conj)(np.ones(2) * 1j), GradientError, r"jacobian\(f\): .*not holomorphic"),
        (lambda: pb.hessian(np.real)(np.ones(2) * 1j), GradientError, "an input has complex numbers"),
        (lambda: pb.hessian(lambda x: x * 1j)(1.0), GradientError, "f returned complex numbers"),
        (lambda: pb.hvp(3, 1.0, 1.0), ArgumentError, "hvp.*must be a function, got int"),
        (lambda: pb.hvp(lambda x: "text", 1.0, 1.0), GradientError, r"hvp\(f\): f must return one tensor, got str"),
        (lambda: pb.hvp(np.sin, X, X), ShapeError, r"one number, got a tensor of shape \(3,\)"),
        (lambda: pb.hvp(cubic, X, np.ones(2)), ShapeError, r"has shape \(3,\), but its vector has shape \(2,\)"),
        (lambda: pb.hvp(lambda p: p["a"], {"a": 1.0}, {"b": 1.0}), ArgumentError, "keys 'a', but its vector"),
    ],
)
def test_jacobian_hessian_hvp_bad_arguments_raise(call: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        call()


# ---- complex numbers

Z = np.array([0.5 + 1.0j, -1.2 + 0.3j, 2.0 - 0.7j])


def by_parts(f: Any, x: Any) -> list[Any]:
    """Differences of ``f`` along the real axis of each element of ``x``, and along the imaginary one if it has one."""
    h, columns = 1e-6, []
    for one in (1, 1j) if x.dtype.kind == "c" else (1,):
        units = np.eye(x.size).reshape(-1, *x.shape) * one
        columns.append(np.stack([(f(x + h * u) - f(x - h * u)) / (2 * h) for u in units], -1))
    shape = np.shape(f(x)) + x.shape
    return [c.reshape(shape) for c in columns]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.exp(1j * x) * x[::-1],
        np.fft.rfft,
        lambda x: np.sum(x) * (1 + 2j),
        lambda x: x[:, None] * np.array([1j, 2.0]) + 0.0,
        lambda x: pb.stack([x * 1j, x * 1.0]) * np.exp(1j * x[0]),
    ],
)
def test_jacobian_of_complex_results_of_real_inputs(f: Any, mode: str) -> None:
    plain = lambda x: pb.stop_gradient(f(x)).numpy() if isinstance(f(x), pb.Tensor) else f(x)
    J = pb.jacobian(f, mode)(X)
    assert J.dtype == np.complex128
    np.testing.assert_allclose(J, by_parts(plain, X)[0], rtol=1e-6, atol=1e-8)
    assert pb.jacobian(f, mode)(X.astype("f4")).dtype == np.complex64


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "f", [np.abs, np.real, lambda z: np.sum(np.imag(z * z)), lambda z: np.abs(np.exp(z)) * np.real(z)]
)
def test_jacobian_of_real_results_of_complex_inputs(f: Any, mode: str) -> None:
    a, b = by_parts(f, Z)
    J = pb.jacobian(f, mode)(Z)
    np.testing.assert_allclose(J, a + 1j * b, rtol=1e-6, atol=1e-8)
    if J.ndim == 1:
        np.testing.assert_allclose(J, pb.grad(f)(Z))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [np.exp, lambda z: z * z[::-1], np.fft.fft, np.sum, lambda z: np.ones((2, 3)) @ z * 1j])
def test_jacobian_of_holomorphic_functions(f: Any, mode: str) -> None:
    J = pb.jacobian(f, mode)(Z)
    np.testing.assert_allclose(J, by_parts(f, Z)[0], rtol=1e-6, atol=1e-8)
    t = np.array([1.0, 2j, 1 - 1j])
    np.testing.assert_allclose(J @ t, pb.jvp(f, [Z], [t])[1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "f", [np.conj, lambda z: z * np.abs(z), lambda z: np.real(z) + 0j, lambda z: z + np.conj(z) * 1e-3]
)
def test_jacobian_of_non_holomorphic_function_raises(f: Any, mode: str) -> None:
    with pytest.raises(GradientError, match=r"not holomorphic.*lambda a, b: f\(a \+ 1j \* b\)"):
        pb.jacobian(f, mode)(Z)
    with pytest.raises(GradientError, match="not holomorphic"):
        pb.jacobian(f, mode)(Z.astype("c8"))
    a, b = by_parts(f, Z)
    of_parts = pb.jacobian(lambda a, b: f(a + 1j * b), mode, argnums=(0, 1))(Z.real, Z.imag)
    np.testing.assert_allclose(of_parts[0], a, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(of_parts[1], b, rtol=1e-6, atol=1e-8)


def test_complex_jacobian_in_vmap_and_compile() -> None:
    f = lambda x: np.exp(1j * x) * x[::-1]
    many = np.stack([X, X + 1])
    np.testing.assert_allclose(pb.vmap(pb.jacobian(f))(many), [pb.jacobian(f)(x) for x in many])
    np.testing.assert_allclose(pb.vmap(pb.jacobian(np.exp))(np.stack([Z, 2 * Z]))[1], pb.jacobian(np.exp)(2 * Z))
    np.testing.assert_allclose(pb.compile(pb.jacobian(f))(X), pb.jacobian(f)(X))
    with pytest.raises(GradientError, match="being compiled has no values"):
        pb.compile(pb.jacobian(np.exp))(Z)
    assert pb.jacobian(lambda z: np.ones(2) * 1j)(Z).tolist() == np.zeros((2, 3)).tolist()
    mixed = pb.jacobian(lambda p: p["x"] * p["z"])({"x": X, "z": Z})
    np.testing.assert_allclose(mixed["x"], np.diag(Z))
    np.testing.assert_allclose(mixed["z"], np.diag(X))
