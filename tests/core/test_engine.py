"""The engine through the public API: nesting, captured and escaped tensors, exceptions, memory, dtypes, ownership."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
from differences import slope

import pullback as pb
from pullback.errors import GradientError, PullbackError, TracedValueError, UnconnectedError

RNG = np.random.default_rng(0)
X, W, V = RNG.uniform(0.3, 1.2, 5), RNG.uniform(0.3, 1.2, 5), RNG.normal(size=5)
BIG = RNG.uniform(0.3, 1.2, 280_000)  # big enough for the ways of big arrays as float32 too
GROWTH = 15_000  # bytes that bookkeeping of Python and NumPy may take over many calls


def f(x: Any) -> Any:
    return np.sum(np.tanh(x * W) * x + np.exp(x) / (1.0 + x**2))


def xexp(x: Any) -> Any:
    return x * np.exp(x)


def close(a: Any, b: Any, tol: float = 1e-6) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


# ------------------------------------------------------------------ nesting


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_grad_of_grad_up_to_order_4(order: int) -> None:
    g: Any = xexp
    for _ in range(order):
        g = pb.grad(g)
    assert g(0.5) == pytest.approx((0.5 + order) * np.exp(0.5))
    close(g(X), (X + order) * np.exp(X))


@pytest.mark.parametrize(
    ("g", "want"),
    [
        (lambda x: x * pb.grad(lambda y: x * y)(x), 6.0),
        (lambda x: x * pb.grad(lambda y: x + y)(1.0), 1.0),
        (lambda x: x * pb.jvp(lambda y: x * y, [x], [1.0])[1], 6.0),
        (lambda x: x * pb.grad(lambda y: y * pb.grad(lambda z: x * y * z)(y))(x), 54.0),
        (lambda x: pb.grad(lambda y: x * x * y)(2.0) + pb.grad(lambda y: x * y * y)(1.0), 8.0),
        (lambda x: pb.grad(lambda y: pb.grad(lambda z: z * z * y * x)(y) * x)(x), 108.0),
    ],
)
def test_no_perturbation_confusion_in_nested_grad(g: Any, want: float) -> None:
    assert pb.grad(g)(3.0) == pytest.approx(want)
    assert pb.jvp(g, [3.0], [1.0])[1] == pytest.approx(want)


def test_no_perturbation_confusion_in_nested_jvp() -> None:
    assert pb.jvp(lambda x: x * pb.jvp(lambda y: x + y, [1.0], [1.0])[1], [1.0], [1.0])[1] == pytest.approx(1.0)


def test_jvp_of_constant_function() -> None:
    value, tangent = pb.jvp(lambda x: np.float32(3.0), [X], [V])
    assert (value, tangent, tangent.dtype) == (3.0, 0.0, np.float32)


def test_second_derivatives_by_all_nestings_of_grad_and_jvp() -> None:
    want = slope(pb.grad(f), X, V)
    close(pb.grad(lambda x: np.sum(pb.grad(f)(x) * V))(X), want, 1e-5)
    close(pb.jvp(pb.grad(f), [X], [V])[1], want, 1e-5)
    close(pb.grad(lambda x: pb.jvp(f, [x], [V])[1])(X), want, 1e-5)
    close(pb.jvp(lambda x: pb.jvp(f, [x], [V])[1], [X], [V])[1], want @ V, 1e-5)


def test_third_derivatives_by_all_nestings_of_grad_and_jvp() -> None:
    cubic = lambda x: np.sum(xexp(x) * W)
    want = W * V * V * (X + 3) * np.exp(X)
    along = lambda g: lambda x: pb.jvp(g, [x], [V])[1]
    back = lambda g: lambda x: np.sum(pb.grad(g)(x) * V)
    for a in (along, back):
        for b in (along, back):
            close(pb.grad(a(b(cubic)))(X), want)
            close(a(b(along(cubic)))(X), want @ V)


@pytest.mark.parametrize("x", [X, BIG])
def test_inner_grad_captures_outer_tensor(x: Any) -> None:
    """The inner gradient is a function of what it captures."""
    g = lambda w: np.sum(pb.grad(lambda u: np.sum(u * u * np.tanh(w)))(x))
    close(pb.grad(g)(x), 2 * x / np.cosh(x) ** 2)
    h = lambda w: np.sum(pb.grad(lambda u: np.sum(u * w + w * w))(w))
    close(pb.grad(h)(x), np.ones_like(x))


def test_jvp_captures_outer_tensor_of_grad() -> None:
    close(pb.grad(lambda w: pb.jvp(lambda x: np.sum(x * x * w), [X], [V])[1])(W), 2 * X * V)


def test_grad_of_product_of_two_inner_grads() -> None:
    g = lambda x: pb.grad(np.sin)(x) * pb.grad(np.exp)(x)
    close(pb.grad(g)(X), np.exp(X) * (np.cos(X) - np.sin(X)))


def test_grad_with_traced_dy() -> None:
    g = lambda dy: np.sum(pb.grad(np.tanh)(X, dy) * V)
    close(pb.grad(g)(W), V * (1 - np.tanh(X) ** 2))


# ------------------------------------------------------------------ escaped tensors


@pytest.mark.parametrize("x", [X, BIG, X[0]])
def test_escaped_tensor_is_constant(x: Any) -> None:
    kept: list[Any] = []
    pb.grad(lambda x: kept.append(x * 2.0) or np.sum(x * x))(x)
    (e,) = kept
    close(e.numpy(), 2 * x)
    close(pb.grad(lambda x: np.sum(x * e))(x), 2 * x)
    close((e * 3.0 + e).numpy(), 8 * x)
    with pytest.raises(UnconnectedError):
        pb.grad(lambda x: np.sum(e))(x)


@pytest.mark.parametrize("x", [X, BIG, X[0]])
def test_tensor_escaped_from_inner_grad_is_traced_by_outer(x: Any) -> None:
    def g(x: Any) -> Any:
        kept: list[Any] = []
        pb.grad(lambda y: kept.append(y * y) or np.sum(y))(x)
        return np.sum(kept[0] * x)

    close(pb.grad(g)(x), 3 * x**2)
    close(pb.jvp(g, [x], [np.ones_like(x)])[1], np.sum(3 * x**2))


def test_return_tensor_escaped_from_inner_grad() -> None:
    def g(x: Any) -> Any:
        kept: list[Any] = []
        pb.grad(lambda y: kept.append(np.sum(y * y)) or kept[0])(x)
        return kept[0]

    close(pb.grad(g)(X), 2 * X)


def test_escaped_input_is_constant() -> None:
    kept: list[Any] = []
    pb.grad(lambda x: kept.append(x) or np.sum(x * x))(X)
    close(pb.grad(lambda x: np.sum(x * kept[0]))(W), X)


def test_escaped_tensor_does_not_keep_graph_alive() -> None:
    """The one kept is the last of 50 big ones; the others are free."""
    kept: list[Any] = []

    def g(x: Any) -> Any:
        for _ in range(50):
            x = np.sin(x)
        kept.append(x)
        return np.sum(x)

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        pb.grad(g)(np.ones(10_000))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used < 5 * 80_000


# ------------------------------------------------------------------ ends


class MidwayError(Exception):
    pass


def raise_midway(x: Any) -> Any:
    y = np.tanh(x * x)
    raise MidwayError(y.shape)


@pytest.mark.parametrize("x", [X, BIG])
@pytest.mark.parametrize(
    "bad",
    [
        lambda x: pb.grad(raise_midway)(x),
        lambda x: pb.grad(lambda y: np.sum(y) * pb.grad(raise_midway)(y))(x),
        lambda x: pb.jvp(raise_midway, [x], [x]),
        lambda x: pb.grad(lambda y: np.sum(y * y), unconnected="raise")(x, np.ones(3)),
        lambda x: pb.grad(lambda y: np.sum(y * y) * float(np.sum(y)))(x),
        lambda x: pb.grad(lambda y: y + np.ones(7))(x),
        lambda x: pb.grads(lambda y, z: np.sum(y * y))([x, x]),
    ],
)
def test_grad_works_after_exception(bad: Any, x: Any) -> None:
    with pytest.raises((MidwayError, PullbackError)):
        bad(x)
    close(pb.grad(lambda x: np.sum(x * x * x))(x), 3 * x * x)
    close(pb.grad(f)(X) @ V, slope(f, X, V))


def test_catch_exception_of_inner_grad() -> None:
    def g(x: Any) -> Any:
        try:
            pb.grad(raise_midway)(x)
        except MidwayError:
            return np.sum(x * x)

    close(pb.grad(g)(X), 2 * X)


def test_chain_of_20_000_ops() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20_000):
            x = x * 1.0001
        return x

    assert pb.grad(chain)(1.0) == pytest.approx(1.0001**20_000)
    close(pb.grad(lambda x: np.sum(chain(x)))(X), np.full(5, 1.0001**20_000))


@pytest.mark.parametrize(
    "call",
    [
        lambda: pb.grad(f)(X),
        lambda: pb.value_and_grads(lambda x, w: np.sum(np.tanh(x @ w)))([np.ones((3, 4)), np.ones((4, 2))]),
        lambda: pb.grad(lambda x: np.sum(np.tanh(x * x) + x))(BIG),
        lambda: pb.grad(pb.grad(xexp))(0.5),
        lambda: pb.jvp(pb.grad(f), [X], [V]),
        lambda: pb.grad(lambda t: np.sum(t["a"] * t["b"][0]))({"a": X, "b": [W]}),
        lambda: pb.grad(lambda x: np.sum(np.max(x[1:], axis=0) * x[0]))(np.outer(X, W)),
    ],
)
def test_no_reference_cycles(call: Any) -> None:
    for _ in range(4):  # the fourth call with a large array builds the functions of its ops, once
        call()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            call()
        assert gc.collect() == 0
    finally:
        gc.enable()


def measure_growth(call: Any, times: int) -> int:
    """Return how many bytes stay after many calls; a first round fills caches."""
    for _ in range(min(times, 200)):
        call()
    tracemalloc.start()
    try:
        for _ in range(20):  # buffers from before, which are not counted, are exchanged for others
            call()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(times):
            call()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("call", "times"),
    [
        (lambda: pb.grad(lambda x: x * x + x)(3.0), 600),
        (lambda: pb.grad(lambda x: np.sum(np.tanh(x * W)))(X), 500),
        (lambda: pb.grad(pb.grad(xexp))(0.5), 500),
        (lambda: pb.jvp(xexp, [0.5], [1.0]), 500),
        (lambda: pb.grad(lambda x: np.sum(np.tanh(x * x)))(BIG), 50),
    ],
)
def test_memory_does_not_grow_over_calls(call: Any, times: int) -> None:
    assert measure_growth(call, times) < GROWTH


def test_memory_does_not_grow_over_calls_that_raise() -> None:
    def call() -> None:
        for g in (pb.grad(raise_midway), pb.grad(lambda x: x.nothing), pb.grads(lambda x: np.ones(3) * x)):
            with pytest.raises((MidwayError, AttributeError, PullbackError)):
                g(X)

    assert measure_growth(call, 300) < GROWTH


def test_memory_does_not_grow_over_new_shapes_and_constants() -> None:
    turn = iter(range(10**9))

    def call() -> None:
        n = next(turn)
        pb.grad(lambda x: np.sum(x * (n + 0.5)))(np.ones(n % 1_000))

    for _ in range(2_000):  # the caches are full
        call()
    assert measure_growth(call, 4_000) < 600_000


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, bool])
def test_gradient_dtype_of_integer_input(dtype: Any) -> None:
    x = np.array([1, 0, 3]).astype(dtype)
    for factor, width in ((np.float32(2.5), np.float32), (np.float64(2.5), np.float64)):
        d = pb.grad(lambda x, factor=factor: x * factor)(x)
        assert d.dtype == width
        close(d, [2.5] * 3)
    assert pb.grad(lambda x: x * 2.5)(pb.tensor(x)).dtype == np.float32  # as in TensorFlow.js
    d = pb.grad(lambda x: np.sum(x * x))(np.array([1, 2, 3]))
    assert d.dtype == np.float32
    close(d, [2, 4, 6])


@pytest.mark.parametrize("x", [np.float32(0.7), X.astype("f4"), BIG.astype("f4")])
def test_gradient_of_float32_with_mixed_operands_is_float32(x: Any) -> None:
    operands = [2, 2.5, True, np.float32(1.5), np.int64(3), np.bool_(True), np.arange(1, 2), pb.tensor(3)]
    for c in operands:
        value, d = pb.value_and_grad(lambda x, c=c: np.sum(x * c + c * x - x / c + c - x))(x)
        assert (value.dtype, d.dtype) == (np.float32, np.float32)
    mixed = pb.value_and_grad(lambda x: np.sum(x * W[0] * np.ones(1)))(x)
    assert mixed.grad.dtype == np.float32


@pytest.mark.parametrize("c", [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 3, -2.5, True, 0, 2**60])
@pytest.mark.parametrize("x", [0.5, np.float64(0.5), X, BIG, X.astype("f4")])
def test_python_numbers_as_constants(c: Any, x: Any) -> None:
    for _ in range(2):  # the second time from the cache of constants
        for g in (lambda x: x * c, lambda x: c * x):
            d = np.asarray(pb.grad(g)(x))
            np.testing.assert_array_equal(d, np.full(np.shape(x), c, d.dtype))
            np.testing.assert_array_equal(np.signbit(d), np.full(np.shape(x), np.signbit(float(c))))


def test_negative_zero_constant_keeps_sign() -> None:
    signs = [bool(np.signbit(pb.grad(lambda x, c=c: x * c)(2.0))) for c in (0.0, -0.0, 0.0, 0, -0.0)]
    assert signs == [False, True, False, False, True]


@pytest.mark.parametrize("wrap", [np.asarray, pb.tensor], ids=["array", "tensor"])
@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ("f4", "i4", "f4"), ("i8", "f4", "f4"), ("b1", "f4", "f4"), ("f2", "i8", "f2"), ("f4", "f8", "f8"),
        ("i4", "i8", "i8"), ("f8", "i4", "f8"), ("u1", "f2", "f2"), ("i4", "b1", "i4"), ("f4", "f2", "f4"),
    ],
)  # fmt: skip
def test_integer_operand_does_not_widen_float(a: str, b: str, want: str, wrap: Any) -> None:
    x, y = wrap(np.ones(3, a)), wrap(np.ones(3, b))
    for z in (pb.add(x, y), pb.mul(y, x), pb.mul(x, wrap(np.ones((), b)))):
        assert z.dtype == np.dtype(want)


@pytest.mark.parametrize("c", [1, 1.0, True, 1.5, np.float64(1.5), np.float32(1.5), np.int8(2), np.bool_(True)])
@pytest.mark.parametrize("x", [np.float64(0.7), X])
def test_constant_operands_of_every_type_on_both_sides(c: Any, x: Any) -> None:
    k = float(c)
    close(pb.grad(lambda x: (x + c) * (c + x) - (x - c) * (c - x))(x), 4 * x)
    close(pb.grad(lambda x: x / c + c / x)(x), 1 / k - k / x**2)
    close(pb.grad(lambda x: x**c + c**x)(x), k * x ** (k - 1) + k**x * np.log(k))


@pytest.mark.parametrize("wrap", [np.asarray, pb.tensor, lambda c: c[0]], ids=["array", "tensor", "number"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1", "b1"])
@pytest.mark.parametrize("f", [lambda x, c: x * c - x / c, lambda x, c: c * x - c / x, np.maximum, lambda x, c: c @ x])
def test_dtypes_and_gradients_beside_constants_on_no_tape(f: Any, dtype: str, wrap: Any) -> None:
    x, c = np.array([0.5, 2.0, 3.0], "f4"), np.array([1, 2, 5]).astype(dtype)
    given = wrap(c)
    if f(np.ones(3), np.ones(3)).ndim == 0 and np.ndim(given) == 0:
        given = wrap(c) * np.ones(3, dtype)  # a product of matrices takes no number
    as_floats = np.asarray(given) if dtype == "f8" else np.asarray(given).astype("f4")
    want = pb.value_and_grad(lambda x: np.sum(f(x, x * 0 + as_floats)))(x.astype(as_floats.dtype))
    seen = []
    value, grad = pb.value_and_grad(lambda x: np.sum(seen.append(f(x, given)) or seen[0]))(x)
    assert seen[0].dtype == value.dtype == as_floats.dtype
    assert grad.dtype == "f4"
    close(value, want.value)
    close(grad, want.grad)


# ------------------------------------------------------------------ the caller's own


def check_no_shared_memory(*arrays: Any) -> None:
    for i, a in enumerate(arrays):
        assert a.ndim == 0 or a.flags.writeable
        for b in arrays[i + 1 :]:
            assert not np.shares_memory(a, b)


@pytest.mark.parametrize("n", [5, 80_000])
@pytest.mark.parametrize(
    "g",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: np.reshape(a, (-1, 1)) + np.reshape(b, (-1, 1)),
        lambda a, b: a[::-1] + b[:],
        lambda a, b: np.exp(a) + np.exp(b),
        lambda a, b: np.sum(a) + np.sum(b),
        lambda a, b: (a + b) + (b + a),
        lambda a, b: np.broadcast_to(a, (2, *a.shape)) * b,
    ],
)
def test_gradients_share_no_memory(g: Any, n: int) -> None:
    a, b = RNG.normal(size=(2, n))
    dy = np.ones(g(pb.tensor(a), pb.tensor(b)).shape)
    value, (da, db) = pb.value_and_grads(g)([a, b], dy)
    again = pb.grads(g)([a, b], dy)
    check_no_shared_memory(a, b, dy, np.asarray(value), da, db, *again)
    assert np.all(dy == 1)


@pytest.mark.parametrize("n", [5, 80_000])
@pytest.mark.parametrize("g", [lambda x: x, lambda x: np.reshape(x, (1, -1)), lambda x: x[1:], lambda x: x + 0.0])
def test_values_and_aux_share_no_memory_with_input(g: Any, n: int) -> None:
    x = RNG.normal(size=n)
    value, d = pb.value_and_grad(g)(x)
    check_no_shared_memory(x, value, d)
    _, aux = pb.grad(lambda x: (np.sum(x), g(x)), has_aux=True)(x)
    check_no_shared_memory(x, aux)


@pytest.mark.parametrize("x", [X, BIG])
def test_results_unchanged_by_later_write_to_input(x: Any) -> None:
    x, w = x.copy(), x.copy()
    results = [pb.grad(lambda x: np.sum(x * w))(x), *pb.grads(lambda a, b: a * b)([x, w])]
    results += [pb.value_and_grad(lambda x: x + w)(x).value, pb.grad(lambda x: x)(x, w)]
    before = [r.copy() for r in results]
    x[:] = w[:] = np.nan
    for a, b in zip(results, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_grads_with_same_array_as_two_inputs() -> None:
    a, b = pb.grads(lambda a, b: np.sum(a * a + b))([X, X])
    close(a, 2 * X)
    close(b, np.ones(5))


def test_gradient_type_matches_input_type() -> None:
    assert type(pb.grad(f)(X)) is np.ndarray
    assert type(pb.grad(xexp)(3.0)) is float
    assert type(pb.grad(xexp)(np.float64(3.0))) is np.float64
    assert type(pb.grad(xexp)([1.0, 2.0])) is list
    out = pb.grad(f)(pb.tensor(X))
    assert isinstance(out, pb.Tensor)
    close(out.numpy(), pb.grad(f)(X))


def test_conversion_of_traced_tensor_raises() -> None:
    for leak in (float, int, np.float32, lambda x: x.numpy(), lambda x: x.item(), lambda x: x.tolist()):
        with pytest.raises(TracedValueError, match="would lose its gradient"):
            pb.grad(lambda x, leak=leak: leak(np.sum(x)) * np.sum(x))(X)
        with pytest.raises(TracedValueError, match="would lose its gradient"):
            pb.jvp(lambda x, leak=leak: leak(np.sum(x)) * np.sum(x), [X], [V])


def test_python_control_flow_on_traced_values() -> None:
    def g(x: Any) -> Any:
        while x < 10:
            x = x * x
        return x if x > 50 else -x

    assert pb.grad(g)(3.0) == 4 * 27.0
    assert pb.grad(g)(4.0) == -8.0


def test_grad_rejects_result_that_is_not_one_tensor() -> None:
    for bad in (lambda x: None, lambda x: (x, x), lambda x: "text", lambda x: 3.0):
        with pytest.raises(GradientError, match="f must return one tensor"):
            pb.grad(bad)(1.0)
