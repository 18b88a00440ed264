"""Complex numbers: the gradient is the direction of steepest ascent, as in PyTorch and TensorFlow."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, GradientError, ShapeError

CASES = json.loads((Path(__file__).parent / "data" / "complex.json").read_text("utf-8"))
W = np.cos(np.arange(6.0)).reshape(2, 3) + 1j * np.sin(np.arange(6.0) ** 2).reshape(2, 3)

rng = np.random.default_rng(0)
Z, A = (rng.uniform(0.5, 1.5, (3, 3)) * np.exp(1j * rng.uniform(-1, 1, (3, 3))) for _ in range(2))
X = rng.uniform(0.5, 1.5, (3, 3))


def array(parts: Any) -> Any:
    """Complex numbers are stored as their real parts and their imaginary parts."""
    made = np.array(parts)
    return made[0] + 1j * made[1] if made.ndim == 3 else made


def close(got: Any, want: Any, rtol: float = 1e-6, atol: float = 1e-7) -> None:
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=atol)


@pytest.mark.parametrize("case", CASES, ids=[f"{case['f']}-{np.ndim(case['z'])}" for case in CASES])
def test_complex_gradients_match_pytorch_and_jax(case: dict[str, Any]) -> None:
    f = eval(f"lambda np, z: {case['f']}")
    z = array(case["z"])
    value, grad = pb.value_and_grad(lambda z: f(np, z))(z)
    close(value, case["value"], 1e-9)
    close(grad, array(case["grad"]), 1e-8, 1e-9)
    assert grad.dtype == z.dtype
    second = pb.grad(lambda z: np.sum(np.real(pb.grad(lambda z: f(np, z))(z) * W)))(z)
    close(second, array(case["second"]), 1e-7, 1e-8)


# ------------------------------------------------------------------ every other op, by its one rule


def replaced(z: Any) -> Any:
    y = z * 1
    y[0] = y[1] * y[1]
    return y


OF_ONE = (
    "neg square cube sqrt rsqrt reciprocal exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan "
    "asinh acosh atanh sigmoid sum mean prod cumsum cumprod transpose abs sign real imag conj angle norm var std clone"
)
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(pb, name) for name in OF_ONE.split()},
    "with real numbers": lambda z: X * z + z / X - X / z,
    "with complex numbers": lambda z: A * z + z / A - A / z,
    "with Python's": lambda z: (z * 2.5j + 1 - 3 / z) ** 2,
    "broadcast": lambda z: z[0] * A + A[0] * z,
    "power": lambda z: z**A + z**X + z ** (1 + 2j) + z**-1.5,
    "exponent": lambda z: A**z + 2.0**z,
    "quotient": lambda z: pb.div_no_nan(A, z),
    "squared_difference": lambda z: pb.squared_difference(z, A),
    "matmul": lambda z: z @ A + A @ z + X @ z,
    "matrix and vector": lambda z: A @ z[0] + z[1] @ z,
    "dot": lambda z: np.dot(z, z),
    "vdot": lambda z: np.vdot(z, A * z),
    "vecdot": lambda z: np.vecdot(z, A * z),
    "vecmat": lambda z: np.vecmat(z[0], z),
    "inner": lambda z: np.inner(z, A),
    "outer": lambda z: np.outer(z[0], z[1]),
    "einsum": lambda z: np.einsum("ij,kj->ik", z, np.conj(z)),
    "tensordot": lambda z: np.tensordot(z, A, 1),
    "trace": np.trace,
    "kron": lambda z: np.kron(z, A),
    "cov": np.cov,
    "corrcoef": np.corrcoef,
    "take": lambda z: np.take(z, [0, 0, 2], axis=0),
    "index": lambda z: z[:, [0, 0]] * z[1:2].T,
    "assignment": replaced,
    "concatenate": lambda z: np.concatenate([z, X, A]),
    "stack": lambda z: np.stack([z, z * A]),
    "pad, roll, tile": lambda z: np.tile(np.roll(np.pad(z, 1), 1), 2),
    "where": lambda z: np.where(X > 1, z, X),
    "norms": lambda z: pb.norm(z, 1) + pb.norm(z, 3) + pb.norm(z, np.inf) + np.linalg.norm(z[0]),
    "cast": lambda z: pb.cast(z, "complex128") * pb.cast(z, "float64") + pb.cast(np.real(z), "complex128"),
    "complex": lambda z: pb.complex(np.real(z), pb.abs(z)),
    "recomputed": pb.recompute_grad(lambda z: z * np.abs(z)),
    "windows": lambda z: pb.signal.frame(z, 2, 1),
}


def along(f: Any, z: Any, t: Any, h: float = 1e-6) -> Any:
    return (np.asarray(f(z + h * t)) - np.asarray(f(z - h * t))) / (2 * h)


def random(like: Any) -> Any:
    draw = np.random.default_rng(1)
    x = draw.normal(size=np.shape(like))
    return x + 1j * draw.normal(size=x.shape) if np.iscomplexobj(like) else x


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_complex_derivatives_in_both_modes_to_second_order(f: Any) -> None:
    t, w, value = random(Z), random(A) - A, np.asarray(f(Z))
    np.testing.assert_allclose(f(pb.tensor(Z)).numpy(), value, rtol=1e-12)
    want, dy = along(f, Z, t), random(value)
    close(pb.jvp(f, [Z], [t])[1], want)
    close(np.vdot(pb.grad(f)(Z, dy=dy), t).real, np.vdot(dy, want).real)
    first = lambda z: np.sum(np.real(pb.grad(f)(z, dy=dy) * w))
    close(np.vdot(pb.grad(first, unconnected="zero")(Z), t).real, along(first, Z, t), 1e-5, 1e-6)
    close(pb.jvp(first, [Z], [t])[1], along(first, Z, t), 1e-5, 1e-6)


def test_real_input_has_real_gradient() -> None:
    f = lambda x: np.sum(np.abs(x * A + np.exp(x * 1j)))
    grad = pb.grad(f)(X)
    assert grad.dtype == np.float64
    close(np.sum(grad * X), along(f, X, X))
    narrow = pb.grad(lambda x: np.sum(np.abs(x * A)))(X.astype(np.float32))
    assert narrow.dtype == np.float32
    x, z = pb.grads(lambda x, z: np.real(x * z))([2.0, 3 + 4j])
    assert (x, z) == (3.0, 2 + 0j)
    assert (type(x), type(z)) == (float, complex)


def test_complex_gradients_of_numbers_lists_dicts_and_tensors() -> None:
    square = lambda z: np.sum(np.abs(z) ** 2)
    assert pb.grad(square)(3 + 4j) == 6 + 8j
    assert pb.grad(square)([1j, 2.0]) == [2j, 4 + 0j]
    assert pb.grad(lambda p: square(p["a"]))({"a": 1j}) == {"a": 2j}
    grad = pb.grad(square)(pb.tensor([1j, 2.0]))
    assert isinstance(grad, pb.Tensor)
    assert grad.dtype == np.complex64
    np.testing.assert_array_equal(grad.numpy(), [2j, 4])
    assert pb.grad(lambda z: pb.real(z))(np.complex64(1j)).dtype == np.complex64
    assert pb.grad(lambda z: z * z)(Z, X).dtype == np.complex128


def test_python_complex_numbers_are_weak_and_exact() -> None:
    assert (pb.tensor([1.0]) * 0.1j).dtype == np.complex64
    assert (pb.tensor([1j]) * 0.1j).dtype == np.complex64
    assert (0.1j * pb.tensor(np.ones(1))).tolist() == [0.1j]
    assert (pb.tensor([1j]) * np.array([3])).dtype == np.complex64  # integers widen nothing
    assert pb.add(1j, 2) == 2 + 1j


def test_complex_large_arrays() -> None:
    x = np.linspace(-1, 1, 100_000)
    f = lambda x: np.sum(np.abs(pb.complex(x, x * x)))
    close(pb.grad(f)(x)[::999], pb.grad(f)(x[::999]), 1e-12)
    z = x + 1j
    g = lambda z: np.sum(np.real(z * z) * np.abs(z)) + np.sum(np.imag(z * pb.conj(z) * 1j))
    for _ in range(2):
        close(pb.grad(g)(z)[::999], pb.grad(g)(z[::999]), 1e-12)
    h = lambda x: np.sum(np.abs(np.exp(1j * (x * x))) + np.real(np.conj(x)) + np.angle(x * 1j) * x)
    close(pb.grad(h)(x + 2)[::999], pb.grad(h)(x[::999] + 2), 1e-9)


# ------------------------------------------------------------------ the direction to begin with


def test_complex_result_without_dy_raises() -> None:
    with pytest.raises(GradientError, match=r"grad: y = f\(x\) has complex numbers \(complex128\).*pb\.abs.*or.* dy"):
        pb.grad(lambda z: z * z)(Z)
    close(pb.grad(lambda z: z * z)(Z, A), np.conj(2 * Z) * A, 1e-12)
    close(pb.grad(lambda x: x * 1j)(X, A), np.imag(A), 1e-12)
    close(pb.grad(lambda z: z * z)(Z, pb.tensor(X)), np.conj(2 * Z) * X, 1e-12)


def test_gradient_tape_of_complex_tensors() -> None:
    z = pb.tensor(Z)
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = z * z
        size = pb.abs(z)
    np.testing.assert_allclose(tape.gradient(size, z).numpy(), Z / np.abs(Z))
    np.testing.assert_allclose(tape.gradient(y, z, A).numpy(), np.conj(2 * Z) * A)
    jacobian = tape.jacobian(size, z).numpy()
    np.testing.assert_allclose(np.einsum("ijij->ij", jacobian), Z / np.abs(Z))
    with pytest.raises(GradientError, match=r"its target has complex numbers.*output_gradients"):
        tape.gradient(y, z)
    with pytest.raises(GradientError, match=r"must be real numbers as its target is, got dtype complex128"):
        tape.gradient(size, z, A)
    np.testing.assert_allclose(np.einsum("ijij->ij", tape.jacobian(y, z).numpy()), 2 * Z)


def test_custom_gradient_of_complex_numbers() -> None:
    @pb.custom_gradient
    def square(z: Any) -> Any:
        return z * z, lambda dy: dy * np.conj(2 * z)

    close(pb.grad(square)(Z, A), np.conj(2 * Z) * A, 1e-12)
    close(pb.jvp(square, [Z], [A])[1], 2 * Z * A, 1e-12)


# ------------------------------------------------------------------ edges


@pytest.mark.parametrize("f", [pb.abs, pb.angle, lambda z: pb.real(pb.sign(z))])
def test_abs_and_angle_derivative_at_zero(f: Any) -> None:
    assert pb.grad(f)(0j) == 0 == pb.grad(lambda z: pb.norm(np.stack([z, f(z)])))(0j)
    assert pb.grad(lambda z: np.real(pb.grad(f)(z)), unconnected="zero")(0j) == 0


def test_complex_functions_of_real_numbers() -> None:
    x = np.array([-1.0, 2.0])
    for f, value, slope in ((pb.real, x, 1), (pb.conj, x, 1), (pb.imag, 0 * x, 0), (pb.angle, [np.pi, 0], 0)):
        np.testing.assert_array_equal(f(x), value)
        np.testing.assert_array_equal(pb.grad(f)(x), [slope, slope])
    assert pb.angle(np.float32(-1)).dtype == np.float32


def test_numpy_complex_functions() -> None:
    assert pb.conjugate is pb.conj
    z = pb.tensor(Z)
    for f in (np.real, np.imag, np.conj, np.angle, np.abs, lambda z: np.angle(z, deg=True), np.iscomplex, np.isreal):
        np.testing.assert_allclose(f(z).numpy(), f(Z), rtol=1e-14)
    close(pb.grad(lambda z: np.angle(z, deg=True))(Z), np.degrees(1) * 1j * Z / np.abs(Z) ** 2, 1e-12)


def test_complex_dtypes() -> None:
    ones, ints = np.ones(2, np.float32), np.array([3, 4])
    assert pb.complex(ones, ones).dtype == pb.complex(ones, ints).dtype == pb.complex(ints, ints).dtype == np.complex64
    assert pb.complex(ones, np.ones(2)).dtype == pb.complex(1.0, 2.0).dtype == np.complex128
    assert pb.complex([1.0], [2.0]).tolist() == [1 + 2j]
    assert pb.cast(pb.tensor([1 + 2j, 3.7j]), "int32").tolist() == [1, 0]
    assert pb.cast(pb.tensor([2j, 0]), "bool").tolist() == [True, False]


def test_complex_of_bad_parts_raises() -> None:
    with pytest.raises(ArgumentError, match="complex: imag must be real numbers, got dtype complex128"):
        pb.complex(np.ones(2), np.ones(2) * 1j)
    with pytest.raises(ShapeError, match=r"complex: shapes \(2,\) and \(3,\) do not broadcast"):
        pb.complex(np.ones(2), np.ones(3))
    with pytest.raises(ArgumentError, match="log_sum_exp: expected real numbers, got dtype complex128"):
        pb.log_sum_exp(Z)


def test_elementwise_numpy_functions_keep_or_reject_imaginary_parts() -> None:
    for f in (np.sinc, np.exp2, lambda z: np.float_power(z, 2.0), np.nan_to_num):
        np.testing.assert_allclose(f(pb.tensor(Z)).numpy(), f(Z), rtol=1e-13)
    with pytest.raises(ArgumentError, match=r"np\.heaviside: expected real numbers, got dtype complex128"):
        np.heaviside(pb.tensor(Z), 0.5)
    with pytest.raises(ArgumentError, match=r"np\.interp: expected real numbers for x, got dtype complex128"):
        np.interp(pb.tensor(Z), [0.0, 1.0], [0.0, 1.0])
    with pytest.raises(ArgumentError, match="hypot: expected real numbers, got dtype complex128"):
        pb.hypot(Z, Z)
    with pytest.raises(ArgumentError, match="sigmoid_cross_entropy_with_logits: expected real numbers for logits"):
        pb.losses.sigmoid_cross_entropy_with_logits(X, Z)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_gradients_of_complex_arrays_and_numbers_on_either_side(dtype: str) -> None:
    x = np.exp(1j * np.arange(1.0, 5.0)).astype(dtype)

    def f(z: Any) -> Any:
        z = 2.0 * z - 1j / z + z * (0.5 - 2j) + (2 - 1j) * z + 3 - z / (1 + 1j) + (1j - z) * z
        return np.sum(np.real(z * np.conj(z)) + np.absolute(np.exp(z)))

    g, step = pb.grad(f)(x), 1e-6
    assert g.dtype == dtype
    wide = x.astype("c16")
    for k in range(len(x)):
        for direction in (1, 1j):
            by = step * direction * np.eye(len(x))[k]
            slope = (f(wide + by) - f(wide - by)) / (2 * step)
            np.testing.assert_allclose(np.real(np.conj(g[k]) * direction), slope, rtol=1e-4 if dtype == "c8" else 1e-7)


OPERANDS = {
    "complex array": np.exp(1j * np.arange(1.0, 4.0)) * 1.5,
    "complex row": np.exp(1j * np.arange(2.0, 5.0))[None],
    "complex number": 0.5 - 2j,
    "real array": np.array([0.7, -1.2, 2.0]),
    "real number": 1.5,
}


@pytest.mark.parametrize("f", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.parametrize("left", OPERANDS)
@pytest.mark.parametrize("right", OPERANDS)
def test_gradients_of_complex_and_real_arrays_and_numbers_on_either_side(left: str, right: str, f: Any) -> None:
    values = [np.asarray(OPERANDS[left]), np.asarray(OPERANDS[right])]

    def measure(x: Any, y: Any) -> Any:
        z = f(x, y)
        return np.sum(np.real(z * z) + 3 * np.imag(z) * np.real(z * (1 - 0.5j)))

    def slope(k: int, by: Any) -> Any:
        ahead, behind = ([v + s * by * (i == k) for i, v in enumerate(values)] for s in (1e-5, -1e-5))
        return (measure(*ahead) - measure(*behind)) / 2e-5

    def check(k: int, g: Any) -> None:
        v = values[k]
        assert g.shape == v.shape
        assert g.dtype == v.dtype
        for at in np.ndindex(v.shape):
            for direction in (1.0, 1j) if v.dtype.kind == "c" else (1.0,):
                by = np.zeros_like(v)
                by[at] = direction
                np.testing.assert_allclose(np.real(np.conj(g[at]) * direction), slope(k, by), rtol=1e-7, atol=1e-8)

    for k, g in enumerate(pb.grad(measure, (0, 1))(*values)):  # both on the tape
        check(k, np.asarray(g))
    check(0, np.asarray(pb.grad(lambda x: measure(x, OPERANDS[right]))(values[0])))
    check(1, np.asarray(pb.grad(lambda y: measure(OPERANDS[left], y))(values[1])))


def test_complex_arrays_are_constants_while_a_tape_is_paused() -> None:
    x = pb.tensor(np.array([1 + 2j, 3 - 1j]))
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            factor = y * y * 2.0
        z = pb.sum(pb.real(y * factor))
    value = np.array(factor.numpy()) * 2 * x.numpy()
    np.testing.assert_allclose(np.asarray(tape.gradient(z, x).numpy()), np.conj(value))
