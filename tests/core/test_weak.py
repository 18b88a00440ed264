"""Weak dtypes: floats from Python numbers alone, as in ``where(x > 0, 1.0, 0.1)``, do not widen float32."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.array([1.0, -2.0, 3.0])


def write_into_weak(t: Any) -> Any:
    a = pb.where(t > 0, 1.0, 0.1)
    a[0] = 2.0
    return a * t


# programs of a tensor, and the factor that they multiply it by
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "left": (lambda t: pb.where(t > 0, 1.0, 0.1) * t, [1, 0.1, 1]),
    "right": (lambda t: t * pb.where(t > 0, 1.0, 0.1), [1, 0.1, 1]),
    "numpy": (lambda t: np.where(t > 0, 1.0, 0.1) * t, [1, 0.1, 1]),
    "a float and an integer": (lambda t: t * pb.where(t > 0, 1, 0.1), [1, 0.1, 1]),
    "nested": (lambda t: pb.where(t > 2, 1.0, pb.where(t > 0, 0.3, 0.1)) * t, [0.3, 0.1, 1]),
    "select": (lambda t: np.select([t > 2, t > 0], [1.0, 0.3], 0.1) * t, [0.3, 0.1, 1]),
    "arithmetic": (lambda t: (pb.where(t > 0, 1.0, 0.1) * 2 - 0.1) * t, [1.9, 0.1, 1.9]),
    "functions": (lambda t: np.exp(-pb.where(t > 0, 1.0, 0.1)) * t, np.exp([-1, -0.1, -1])),
    "sum": (lambda t: pb.where(t > 0, 1.0, 0.1).sum() * t, [2.1] * 3),
    "element": (lambda t: pb.where(t > 0, 1.0, 0.1)[1] * t, [0.1] * 3),
    "integers beside it": (lambda t: pb.where(t > 0, 1.0, 0.1) * np.arange(3) * t, [0, 0.1, 2]),
    "write": (write_into_weak, [2, 0.1, 1]),
    "bools times a float": (lambda t: (t > 0) * 0.1 * t, [0.1, 0, 0.1]),
    "a float minus bools": (lambda t: (1.1 - (t > 0)) * t, [0.1, 1.1, 0.1]),
    "integers times a float": (lambda t: pb.tensor(np.arange(3)) * 0.1 * t, [0, 0.1, 0.2]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_weak_float_programs_keep_dtype_and_precision(name: str, dtype: Any) -> None:
    f, factor = PROGRAMS[name]
    x = X.astype(dtype)
    many = np.stack([x, x])
    for value, expected in (
        (f(pb.tensor(x)).numpy(), factor * X),
        (pb.value_and_grad(f)(x).value, factor * X),
        (pb.grad(f)(x), factor),
        (pb.jvp(f, [x], [np.ones_like(x)])[1], factor),
        (pb.vmap(f)(many)[1], factor * X),
        (pb.vmap(pb.grad(f))(many)[1], factor),
        (pb.compile(f, backend="numpy")(x), factor * X),
        (pb.compile(pb.grad(f), backend="numpy")(x), factor),
    ):
        assert value.dtype == dtype
        np.testing.assert_allclose(value, expected, rtol=4 * np.finfo(dtype).eps)


FUNCTIONS_OF_NUMBERS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module in (pb, pb.special, pb.math, pb.losses)
    for name in dir(module)
    if inspect.isfunction(getattr(module, name))
    and inspect.unwrap(getattr(module, name)).__module__.startswith("pullback.ops")
    and not name.startswith("_")
    and name not in ("dropout", "truncated_normal", "multinomial")
}


def _results_of_numbers(f: Any) -> list[Any]:
    """Return the float results of a function, of one to three Python numbers; none if it does not take them."""
    found: list[Any] = []
    for args in ((0.3,), (0.3, 0.2), (0.3, 0.2, 0.1), (1,), (1, 2), ([0.3, 0.2],), (0.3, (2,))):
        with np.errstate(all="ignore"), suppress(Exception):
            made = f(*args)
            found += made if isinstance(made, list | tuple) else [made]
    return [r for r in found if isinstance(r, pb.Tensor | np.ndarray | np.generic) and r.dtype.kind in "fc"]


@pytest.mark.parametrize("name", FUNCTIONS_OF_NUMBERS)
def test_result_of_python_numbers_does_not_widen_float32(name: str) -> None:
    for result in _results_of_numbers(FUNCTIONS_OF_NUMBERS[name]):
        if result.dtype == np.float32 or name in ("pullback.complex", "losses.hinge_loss"):
            continue
        x = np.ones(result.shape, np.float32)
        for z in (pb.tensor(x) * result, result * pb.tensor(x), np.asarray(x) * result, pb.add(result, x)):
            assert z.dtype in (np.float32, np.complex64)
        assert (pb.tensor(x.astype(float)) * result).dtype in (np.float64, np.complex128)


def test_result_of_python_numbers_is_weak_numpy_scalar() -> None:
    z = pb.maximum(1.0, 2.0)
    assert isinstance(z, np.float64)
    assert repr(z) == "np.float64(2.0)"
    assert repr(pb.add(1, 2)) == "np.int64(3)"
    assert repr(pickle.loads(pickle.dumps(z)) * np.float32(1)) == "np.float32(2.0)"
    assert (-z + 1.0) * np.float32(1) == np.float32(-1)
    assert (np.exp(z) * np.float32(1)).dtype == np.float32
    assert (np.sum(z) * np.ones(1, "float32")).dtype == np.float32
    assert pb.grad(lambda x: x * z)(2.0) == 2.0
    assert pb.grad(lambda x: x * z)(np.float32(2.0)).dtype == np.float32


def test_assign_result_of_python_numbers_to_float32_variable() -> None:
    v = pb.variable([0.0])
    v.assign(pb.stack([0.5]))
    v.assign_add(pb.stack([1.0]))
    assert v.numpy() == [1.5]
    w = pb.variable(0.0)
    w.assign(pb.maximum(0.5, 0.2))
    assert w.dtype == np.float32


def test_weak_tensor_alone_is_float64() -> None:
    made = pb.where(pb.tensor(X) > 0, 1.0, 0.1)
    assert made.dtype == made.numpy().dtype == np.float64
    assert isinstance(made, pb.Tensor)
    assert repr(made) == "Tensor([1., 0.1, 1.], dtype=float64)"
    assert np.astype(made, "float64").dtype == (np.astype(made, "float64") * pb.tensor([1.0] * 3)).dtype == np.float64


def test_assign_weak_tensor_to_float32_variable() -> None:
    v = pb.variable([0.0, 0.0, 0.0])
    v.assign(pb.where(pb.tensor(X) > 0, 1.0, 0.1))
    assert v.dtype == np.float32
    assert v.assign_add(pb.where(pb.tensor(X) > 0, 1.0, 0.1)).numpy()[0] == 2.0


def test_weak_tensor_times_complex64() -> None:
    z = pb.tensor(np.array([1j, 2j, 3j], np.complex64))
    assert (z * pb.where(pb.tensor(X) > 0, 1.0, 0.1)).dtype == np.complex64


def test_compiled_weak_dtypes_match_eager() -> None:
    t = np.float32([1.0, -2.0])
    for f in (
        lambda t, a: pb.where(t > 0, a, 0.1) * t,
        lambda t, a: (t > 0) * a * t,
        lambda t, a: pb.maximum(a, 0.5) * t,
        lambda t, a: np.maximum(a, 0.5) * t,
        lambda t, a: pb.stack([a, 0.5]) * t,
        lambda t, a: pb.sum(pb.stack([a, 0.5])) * t,
        lambda t, a: pb.div(2, 3) * t * a,
    ):
        eager, compiled = f(pb.tensor(t), 0.3), pb.compile(f, backend="numpy")(pb.tensor(t), 0.3)
        assert eager.dtype == compiled.dtype
        np.testing.assert_array_equal(eager.numpy(), compiled.numpy())


def test_weak_result_of_jvp_vmap_and_compile() -> None:
    value, tangent = pb.jvp(lambda x: pb.where(x > 0, 1.0, 0.1), [X], [X])
    assert type(value) is type(tangent) is np.ndarray
    np.testing.assert_array_equal(tangent, 0.0)
    np.testing.assert_array_equal(pb.vmap(lambda x: pb.where(x > 0, 1.0, 0.1))(X), value)
    np.testing.assert_array_equal(pb.compile(lambda x: pb.where(x > 0, 1.0, 0.1), backend="numpy")(X), value)


def test_derivatives_of_integer_input_times_python_float() -> None:
    n = np.array([1, 2])

    def f(n: Any) -> Any:
        return n * 2.0

    np.testing.assert_array_equal(pb.grad(f)(n), [2.0, 2.0])
    np.testing.assert_array_equal(pb.jvp(f, [n], [np.array([1.0, 0.0])])[1], [2.0, 0.0])
    np.testing.assert_array_equal(pb.jvp(pb.vmap(f), [n], [np.array([1.0, 0.0])])[1], [2.0, 0.0])
    np.testing.assert_array_equal(pb.vmap(pb.grad(f))(n), [2.0, 2.0])
    np.testing.assert_array_equal(pb.grad(pb.recompute_grad(f))(n), [2.0, 2.0])
    np.testing.assert_array_equal(pb.jacobian(f)(n), [[2.0, 0.0], [0.0, 2.0]])


def test_gradient_tape_watches_weak_tensor() -> None:
    w = pb.where(pb.tensor(X) > 0, 1.0, 0.1)
    with pb.GradientTape() as tape:
        tape.watch(w)
        y = w * w
    np.testing.assert_allclose(tape.gradient(y, w).numpy(), [2.0, 0.2, 2.0])
