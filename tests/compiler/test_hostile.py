"""Edge cases of ``compile``: dtypes, empty axes, random draws, variables and arguments match eager code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, SymbolValueError, VariableError

R = np.random.default_rng(5)
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "auto"])
SMALL = R.normal(size=4)


def same(f: Any, *args: Any, backend: str = "auto", rtol: float = 1e-6) -> None:
    """Values, dtypes, shapes, kinds, signs of zero and errors of the compiled function are those of the function."""
    compiled = pb.compile(f, backend=backend)
    with np.errstate(all="ignore"):
        try:
            want = pb.core.tree.leaves(f(*args))
        except (ShapeError, ArgumentError, OverflowError) as error:
            for _ in range(2):
                with pytest.raises(type(error)):
                    compiled(*args)
            return
        for _ in range(2):
            got = pb.core.tree.leaves(compiled(*args))
            assert [isinstance(z, pb.Tensor) or type(z) for z in got] == [
                isinstance(z, pb.Tensor) or type(z) for z in want
            ]
            for a, b in zip(map(np.asarray, got), map(np.asarray, want), strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-300)
                if b.dtype.kind == "f":
                    np.testing.assert_array_equal(np.signbit(a[b == 0]), np.signbit(b[b == 0]))


# ------------------------------------------------------------------ dtypes


@pytest.mark.sampled(2)
@BACKENDS
@pytest.mark.parametrize("to", ["bool", "int8", "uint8", "uint16", "int32", "uint32", "int64", "uint64", "float16"])
@pytest.mark.parametrize("of", ["float32", "float64", "int64"])
def test_casts_wrap_as_in_numpy(of: str, to: str, backend: str) -> None:
    x = np.array([0.0, -0.0, 1.9, -1.9, 100.5, -100.5, 255.0] * 3, of)
    same(lambda x: pb.cast(x + x, to), pb.tensor(x), backend=backend)


@pytest.mark.sampled(3)
@BACKENDS
@pytest.mark.parametrize(
    ("kind", "number"),
    [("uint8", -3), ("uint8", 300), ("int8", 128), ("uint64", -1), ("float16", 2), ("complex64", 2.5), ("float32", 1j)],
)
@pytest.mark.parametrize(
    "f", [lambda x, n: x == n, lambda x, n: x < n, lambda x, n: n > x, lambda x, n: x + n, lambda x, n: n * x]
)
def test_python_number_out_of_range_of_dtype(f: Any, kind: str, number: Any, backend: str) -> None:
    x = pb.tensor(np.arange(5).astype(kind))
    same(f, x, number, backend=backend)
    same(lambda x: f(x, number), x, backend=backend)


@BACKENDS
def test_comparison_dtype_promotion(backend: str) -> None:
    big = np.array([2**11 + 1, 2**53 + 1, -(2**63), 2**63 - 1])
    with np.errstate(over="ignore"):
        short = big.astype(np.float16)
    for other in (short, big.astype(np.float32), np.array([0, 1, 2**63, 2**63], np.uint64)):
        same(lambda x, y: (x == y, x < y, x >= y), pb.tensor(big), pb.tensor(other), backend=backend)


@BACKENDS
def test_arithmetic_of_python_numbers_does_not_widen_dtype(backend: str) -> None:
    x = SMALL.astype(np.float32)
    same(lambda x, r: x * (r * 2) + (r - 1) / 3 + r**2 - abs(-r), x, 0.3, backend=backend)
    same(lambda x, n: x * (n // 2) * (n % 3), x, 7, backend=backend)
    same(lambda x, n: np.sort(x) * n, x, 2**70, backend=backend)
    same(lambda x, r: pb.where(x > r, x, r), x, 0.3, backend=backend)


# ------------------------------------------------------------------ folds, views, products


@pytest.mark.sampled(6)
@BACKENDS
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "log_sum_exp", "var"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((1,), 0), ((3, 1), 1), ((5, 1, 6, 1), (1, 3)), ((3, 4), 1)],
)
def test_reductions_over_axes_of_length_zero_and_one(name: str, shape: Any, axis: Any, backend: str) -> None:
    fold = getattr(pb, name)
    with np.errstate(all="ignore"):
        for x in (np.full(shape, -0.0), R.normal(size=shape), np.full(shape, 3, np.uint8)):
            if name in ("sum", "mean") and x.dtype.kind == "f" and x.size == 1:
                continue  # eager code takes a dot product there, which keeps -0
            if name in ("mean", "var") and not x.size:
                continue  # NumPy warns
            same(lambda x: fold(x, axis), pb.tensor(x), backend=backend)
            same(lambda x: fold(x, axis, keepdims=True) - fold(x * x, axis, keepdims=True), pb.tensor(x) + 0.5)


def test_sum_of_broadcast_negative_zero() -> None:
    same(lambda x: pb.sum(pb.broadcast_to(x, (3, 4)), 0), pb.tensor(np.full(4, -0.0)))


@BACKENDS
@pytest.mark.parametrize("index", [[0, -1, 0], [True, False, True], ([0, 1], [2, -3]), [-4], [3]], ids=str)
def test_same_constant_index_in_two_compilations(index: Any, backend: str) -> None:
    x = pb.tensor(R.normal(size=(3, 5)))
    same(lambda x: x[index], x, backend=backend)
    same(lambda x: (x * x)[index], x, backend=backend)  # the same index in another compilation


@BACKENDS
@pytest.mark.parametrize(
    ("a", "b"), [((3, 4), (5, 6)), ((4,), (5,)), ((2, 3, 4), (3, 4, 5)), ((), (3,)), ((1, 1), (1, 1)), ((3, 0), (0, 5))]
)
def test_matmul_shape_errors_match_eager(a: Any, b: Any, backend: str) -> None:
    same(lambda x, y: x @ y, pb.tensor(np.ones(a)), pb.tensor(np.ones(b)), backend=backend)


def test_reduction_of_product_over_axis_of_length_one() -> None:
    same(lambda x: x - pb.sum(x * x, 1) * 2.0, pb.tensor(R.normal(size=(1, 1))))
    same(lambda x: pb.var(x * x, 0) + pb.var(x[::-1], 0), pb.tensor(R.normal(size=(1, 5))))


# ------------------------------------------------------------------ chance

DRAWS: dict[str, Any] = {
    "normal": lambda x: x + pb.random.normal([9]),
    "captured": lambda x: pb.random.standard_normal([9]),
    "two": lambda x: pb.random.normal([9]) - 2 * pb.random.normal([9]),
    "parameters": lambda x: pb.random.uniform([9], -x, x) + pb.random.bernoulli([9], x / 2),
    "whole": lambda x: pb.random.poisson([9], 9 * x) + pb.random.uniform_int([9], 0, 99),
    "dropout": lambda x: pb.dropout(x, 0.5),
    "gradient": pb.grad(lambda x: pb.sum(pb.random.gamma([9], x) + x * pb.random.exponential([9]))),
    "shuffle": lambda x: pb.random.shuffle(np.cumsum(x)),
    "examples": pb.vmap(lambda x: pb.random.bernoulli([9], x / 2)),
    "examples of constants": lambda x: x + pb.vmap(lambda p: pb.random.bernoulli([9], p))(np.full(9, 0.5)),
}


@pytest.mark.sampled(2)
@BACKENDS
@pytest.mark.parametrize("name", DRAWS)
def test_random_draws_match_eager_order(name: str, backend: str) -> None:
    draw = DRAWS[name]
    f = pb.compile(draw, backend=backend)
    x = np.full(9, 0.9)
    pb.random.seed(3)
    want = [np.asarray(draw(x)) for _ in range(3)]
    pb.random.seed(3)
    got = [np.asarray(f(x)) for _ in range(3)]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)  # sums may cancel
    assert not np.array_equal(got[1], got[2])
    assert len(f.programs) == 1


@BACKENDS
def test_random_seeds(backend: str) -> None:
    x = np.zeros(5)
    same(lambda x: x + pb.random.normal([5], seed=3), pb.tensor(x), backend=backend)
    same(lambda x, seed: x + pb.random.normal([5], seed=seed), pb.tensor(x), 3, backend=backend)
    generator, other = np.random.default_rng(1), np.random.default_rng(1)
    f = pb.compile(lambda x: x + pb.random.normal([5], dtype="float64", seed=generator), backend=backend)
    np.testing.assert_allclose([f(x), f(x)], [pb.random.normal([5], dtype="float64", seed=other).numpy() for _ in "ab"])
    calls = pb.compile(lambda x: x + pb.rand([5], np.random.default_rng(1).random), backend=backend)
    assert not np.array_equal(calls(x), calls(x))


@BACKENDS
def test_dropout_rate_as_argument(backend: str) -> None:
    f = pb.compile(lambda x, rate: pb.dropout(x, rate), backend=backend)
    kept = f(np.ones(1000, np.float32), 0.5)
    assert kept.dtype == np.float32
    assert {*kept.tolist()} == {0.0, 2.0}
    assert {*f(np.ones(1000, np.float32), 0.0).tolist()} == {1.0}


# ------------------------------------------------------------------ transforms and variables around


def test_transforms_of_tensor_captured_by_compiled_function() -> None:
    f = lambda y: pb.sum(pb.compile(lambda x: x * y)(SMALL))
    np.testing.assert_allclose(pb.grad(f)(SMALL), SMALL)
    np.testing.assert_allclose(pb.jvp(f, [SMALL], [SMALL])[1], np.sum(SMALL**2))
    np.testing.assert_allclose(pb.vmap(f)(np.ones((2, 4))), [np.sum(SMALL)] * 2)
    np.testing.assert_allclose(pb.compile(f)(SMALL), np.sum(SMALL**2))


def test_variable_gradients_through_compiled_function() -> None:
    start = SMALL.astype(np.float32)
    w = pb.variable(start)
    loss = pb.compile(lambda x: pb.sum(w * w * x))
    ones = np.ones(4, np.float32)
    for _ in range(2):  # the second call takes the quick way
        loss(ones)
        np.testing.assert_allclose(pb.variable_grads(lambda: loss(ones)).grads[w.name], 2 * start, rtol=1e-6)
    with pb.GradientTape() as tape:
        value = loss(ones)
    np.testing.assert_allclose(tape.gradient(value, w), 2 * start, rtol=1e-6)

    @pb.compile
    def outer(x: Any) -> Any:
        w.assign(w * 2)
        return loss(np.ones(4, np.float32)) + pb.sum(x) * 0

    np.testing.assert_allclose(outer(ones), np.sum(4 * start**2), rtol=1e-6)
    np.testing.assert_allclose(outer(ones), np.sum(16 * start**2), rtol=1e-6)


def test_gradient_tape_watches_argument() -> None:
    def f(x: Any) -> Any:
        with pb.GradientTape() as tape:
            tape.watch(x)
            y = pb.sum(x**3)
        return tape.gradient(y, x), x * 2

    same(f, pb.tensor(SMALL))


@pytest.mark.parametrize("delta", [1.5, 2, np.full(2, 1.5), np.full(2, 3, np.int64), [1.0, 2.0]], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_assign_add_keeps_variable_dtype(dtype: Any, delta: Any) -> None:
    v, w = (pb.variable(np.arange(2).astype(dtype)) for _ in range(2))
    if dtype is np.int32 and np.asarray(delta).dtype.kind == "f":  # NumPy refuses it too
        for change in (lambda: v.assign_add(delta), pb.compile(lambda: v.assign_add(delta))):
            with pytest.raises(VariableError, match="the variable is int32, got float64"):
                change()
        return
    pb.compile(lambda d: v.assign_add(d))(delta)
    w.assign_add(delta)
    np.testing.assert_array_equal(v.numpy(), w.numpy())
    pb.compile(lambda: v.assign_sub(delta))()
    w.assign_sub(delta)
    np.testing.assert_array_equal(v.numpy(), w.numpy())
    n = pb.variable(0.0)
    pb.compile(lambda x: n.assign(x))(2.5)
    assert n.numpy() == 2.5


# ------------------------------------------------------------------ arguments


@dataclass
class Box:
    a: Any
    b: Any = None


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @pb.compile
    def run(self, x: Any) -> Any:
        return x * self.scale


def test_compiled_method_and_dataclass_argument() -> None:
    np.testing.assert_allclose(Model(3.0).run(SMALL), 3 * SMALL)
    np.testing.assert_allclose(Model(4.0).run(SMALL), 4 * SMALL)
    f = pb.compile(lambda box: Box(box.a * 2, box.b))
    for shift in range(3):
        got = f(Box(SMALL + shift, "b"))
        np.testing.assert_allclose(got.a, 2 * (SMALL + shift))
        assert got.b == "b"
    assert len(f.programs) == 1


@pytest.mark.parametrize(
    "static", [{"static_argnums": 1}, {"static_argnums": -1}, {"static_argnames": "n"}, {"static_argnames": ["n"]}]
)
def test_static_argnums_and_static_argnames(static: Any) -> None:
    f = pb.compile(lambda x, n: x * len(n), **static)
    for n in ([1, 2], {"a": 1}, "four"):
        np.testing.assert_allclose(f(SMALL, n), SMALL * len(n))
        np.testing.assert_allclose(f(SMALL, n=n), SMALL * len(n))
    grown = {1, 2}
    f(SMALL, grown)
    grown.add(3)
    np.testing.assert_allclose(f(SMALL, grown), SMALL * 3)


def test_static_argument_errors() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(ArgumentError, match=r"argument 2 .* not hashable .* Give its class a __hash__"):
        pb.compile(lambda x, n: x, static_argnums=1)(SMALL, Unhashable())
    with pytest.raises(ArgumentError, match="static_argnames has 'm', which is no argument"):
        pb.compile(lambda x, n: x, static_argnames="m")
    with pytest.raises(ArgumentError, match=r"static_argnums must be an integer .*, got 'n'"):
        pb.compile(lambda x, n: x, static_argnums="n")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x if x > 0 else -x, r"bool\(\) of .*: only shapes and dtypes are known then. Choose with where"),
        (lambda x: math.sqrt(x), r"float\(\) of .* Stay with pullback or NumPy functions \(np.sin for math.sin"),
        (lambda x: x.item(), r"item\(\) of .* Stay with .* \(x itself for x.item\(\)\), or name the argument"),
        (lambda x: np.zeros(x.astype(int)), r"a length of a shape is a traced number, as n in np.zeros\(n\)"),
    ],
    ids=["bool", "float", "item", "length of a shape"],
)
def test_value_while_tracing_error_gives_advice(f: Any, message: str) -> None:
    with pytest.raises(SymbolValueError, match=message):
        pb.compile(f)(2.0)


def test_leaked_traced_tensor_error() -> None:
    left: list[Any] = []
    pb.compile(lambda x: (left.append(x * 2), x)[1])(SMALL)
    for use in (lambda: left[0] + 1, lambda: pb.compile(lambda y: y + left[0])(SMALL)):
        with pytest.raises(SymbolValueError, match=r"add \(test_hostile.py:\d+\) was given a tensor that is left over"):
            use()
    with pytest.raises(SymbolValueError, match="unique: how many elements there are in the result depends on"):
        pb.compile(lambda x: pb.unique(x).values)(SMALL)


def test_error_while_tracing_restores_variables() -> None:
    w, wrong = pb.variable([1.0, 2.0]), [True]

    @pb.compile
    def f(x: Any) -> Any:
        w.assign(w * 2)
        if wrong:
            raise RuntimeError("not yet")
        return w + x

    with pytest.raises(RuntimeError, match="not yet"):
        f(np.ones(2, np.float32))
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])
    wrong.clear()
    np.testing.assert_array_equal(f(np.ones(2, np.float32)), [3.0, 5.0])
    np.testing.assert_array_equal(w.numpy(), [2.0, 4.0])


@BACKENDS
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.bool_, np.float16])
def test_take_along_axis_of_one_element_per_row(dtype: Any, backend: str) -> None:
    x = np.array([[-0.0, 1, 2], [3, np.nan, -0.0], [1, 2, np.inf], [-np.inf, 0, 0], [1, 2, -0.0]])
    x = (x if np.dtype(dtype).kind == "f" else np.nan_to_num(x, posinf=9, neginf=3)).astype(dtype)
    at = np.array([[0], [1], [2], [0], [-1]])
    same(lambda x, at: np.take_along_axis(x, at, 1), pb.tensor(x), pb.tensor(at), backend=backend)
    same(lambda x, at: np.take_along_axis(x, at, 1), pb.tensor(x), pb.tensor(at + 1), backend=backend)
    if np.dtype(dtype).kind == "f":
        zeros = np.full((5, 1), -0.0, dtype)
        same(pb.grad(lambda x: pb.sum(np.take_along_axis(x, at, 1) * zeros)), pb.tensor(x), backend=backend)


@BACKENDS
def test_numpy_functions_without_compile_rule(backend: str) -> None:
    x = pb.tensor(SMALL)
    some = np.array([True, False, True, True])
    same(lambda x: (np.sum(x, dtype=np.float32), np.sum(x, where=some), np.max(x, initial=9.0)), x, backend=backend)
    with pytest.raises(SymbolValueError, match=r"np.nonzero in a function that is being compiled"):
        pb.compile(np.nonzero, backend=backend)(SMALL)


def test_argument_with_array_protocol() -> None:
    class Foreign:
        def __init__(self, values: Any) -> None:
            self.values = values

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.asarray(self.values, dtype)

    f = pb.compile(lambda x: x * 2)
    for shift in range(3):
        np.testing.assert_allclose(f(Foreign(SMALL + shift)), 2 * (SMALL + shift))
    assert len(f.programs) == 1


@pytest.mark.parametrize(
    "f", [lambda x: (y for y in x), lambda x: {"a": map(pb.sin, x)}, lambda x: [enumerate(x)], lambda x: (yield x)]
)
def test_compiled_function_that_returns_an_iterator_raises(f: Any) -> None:
    with pytest.raises(ArgumentError, match=r"f returned a \w+, which would run after f was traced. Return a list"):
        pb.compile(f)(np.ones(3))


@pytest.mark.parametrize("place", [2, -3])
def test_static_argnums_beyond_the_arguments_raise(place: int) -> None:
    with pytest.raises(
        ArgumentError, match=rf"static_argnums has {place}, but the function takes 2 arguments by position"
    ):
        pb.compile(lambda x, n: x * n, static_argnums=place)
