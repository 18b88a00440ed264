"""Chance: seeds, moments, gradients through the draw, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import gammainc, gammaincinv

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, UnconnectedError

N = 20_000
DRAWS: dict[str, Any] = {
    "normal": lambda shape, **k: pb.random.normal(shape, 1.0, 2.0, **k),
    "standard_normal": pb.random.standard_normal,
    "truncated_normal": lambda shape, **k: pb.random.truncated_normal(shape, 1.0, 2.0, **k),
    "uniform": lambda shape, **k: pb.random.uniform(shape, -1.0, 3.0, **k),
    "exponential": lambda shape, **k: pb.random.exponential(shape, 2.0, **k),
    "gamma": lambda shape, **k: pb.random.gamma(shape, 3.0, 2.0, **k),
    "bernoulli": lambda shape, **k: pb.random.bernoulli(shape, 0.3, **k),
    "poisson": lambda shape, **k: pb.random.poisson(shape, 4.0, **k),
    "uniform_int": lambda shape, **k: pb.random.uniform_int(shape, 2, 6, **k),
}
CUT = 0.7737413  # the variance of a normal distribution cut at two standard deviations
MOMENTS = {
    "normal": (1, 4), "standard_normal": (0, 1), "truncated_normal": (1, 4 * CUT), "uniform": (1, 16 / 12),
    "exponential": (2, 4), "gamma": (1.5, 0.75), "bernoulli": (0.3, 0.21), "poisson": (4, 4),
    "uniform_int": (3.5, 1.25),
}  # fmt: skip
every_draw = pytest.mark.parametrize("name", list(DRAWS))


@every_draw
def test_seed_repeats_draws(name: str) -> None:
    draw = DRAWS[name]
    first = draw([3, 50], seed=5).numpy()
    np.testing.assert_array_equal(draw([3, 50], seed=5).numpy(), first)
    assert not np.array_equal(draw([3, 50], seed=6).numpy(), first)
    assert not np.array_equal(draw([3, 50], seed=-5).numpy(), first)
    generator = np.random.default_rng(1)
    one, two = draw([50], seed=generator).numpy(), draw([50], seed=generator).numpy()
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(draw([50], seed=np.random.default_rng(1)).numpy(), one)
    np.testing.assert_array_equal(draw([50], seed=1).numpy(), one)
    pb.random.seed(9)
    one, two = draw([50]).numpy(), draw([50]).numpy()
    assert not np.array_equal(one, two)
    pb.random.seed(9)
    np.testing.assert_array_equal(draw([50]).numpy(), one)
    pb.random.seed()
    assert not np.array_equal(draw([50]).numpy(), one)


@every_draw
def test_random_shapes_and_dtypes(name: str) -> None:
    draw = DRAWS[name]
    for shape in ([], [3], (2, 0), [2, 3], 4):
        z = draw(shape, seed=1)
        assert isinstance(z, pb.Tensor)
        assert z.shape == tuple(np.atleast_1d(shape).astype(int))
        assert z.dtype == (np.int32 if name == "uniform_int" else np.float32)
    assert draw([2], dtype="float64").dtype == np.float64
    if name != "gamma":
        assert draw([2], dtype="int32").dtype == np.int32


@every_draw
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_mean_and_variance(name: str, dtype: str) -> None:
    z = DRAWS[name]([N], dtype=dtype, seed=2).numpy().astype(float)
    mean, variance = MOMENTS[name]
    assert abs(z.mean() - mean) < 5 * np.sqrt(variance / N)
    assert abs(z.var() / variance - 1) < 0.1


def test_random_bounds() -> None:
    assert np.abs(pb.random.truncated_normal([N], seed=1).numpy()).max() <= 2
    z = pb.random.uniform([N], 2, 5, seed=1).numpy()
    assert z.min() >= 2
    assert z.max() < 5
    assert {*pb.random.uniform_int([200], 2, 5, seed=1).tolist()} == {2, 3, 4}
    assert {*pb.random.uniform([200], 2, 5, "int32", seed=1).tolist()} == {2, 3, 4}


# ------------------------------------------------------------------ gradients


@pytest.mark.parametrize(
    ("draw", "point", "scale"),
    [
        (pb.random.normal, [1.0, 2.0], lambda z, m, s: [1, (z - m) / s]),
        (pb.random.truncated_normal, [1.0, 2.0], lambda z, m, s: [1, (z - m) / s]),
        (pb.random.uniform, [1.0, 3.0], lambda z, a, b: [(b - z) / (b - a), (z - a) / (b - a)]),
        (pb.random.exponential, [2.0], lambda z, s: [z / s]),
    ],
)
def test_random_gradients_of_location_and_scale(draw: Any, point: Any, scale: Any) -> None:
    f = lambda *p: draw([4], *p, dtype="float64", seed=3)
    z = f(*point).numpy()
    w = np.arange(1.0, 5.0)
    for got, want in zip(pb.grads(f)(point, w), scale(z, *point), strict=True):
        np.testing.assert_allclose(got, np.sum(want * w))


def test_random_array_parameters() -> None:
    mean = np.array([[0.0], [100.0]], np.float32)
    z = pb.random.normal([2, 3], mean, [1.0, 1.0, 0.0], seed=1)
    assert z.dtype == np.float32
    np.testing.assert_array_equal(z.numpy()[:, 2], [0, 100])
    g = pb.grad(lambda mean: pb.random.normal([2, 3], mean, 2.0, seed=1))(mean)
    np.testing.assert_array_equal(g, [[3], [3]])
    assert g.dtype == np.float32
    assert pb.random.normal(None, mean, np.ones(3, np.float32)).shape == (2, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_gradient_of_shape_parameter(dtype: Any) -> None:
    alpha = np.array([0.05, 0.5, 1.0, 3.0, 20.0, 500.0], dtype)
    f = lambda alpha: pb.random.gamma([5, 6], alpha, seed=4)
    z = f(alpha).numpy().astype(float)
    a = alpha.astype(float)
    share, h = gammainc(a, z), 1e-4 * a
    q = [gammaincinv(a + n * h, share) for n in (-2, -1, 1, 2)]
    want = (8 * (q[2] - q[1]) - (q[3] - q[0])) / (12 * h)
    got = pb.grad(f)(alpha)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want.sum(0), rtol=1e-7 if dtype is np.float64 else 1e-3)


def test_gamma_second_order_and_rate() -> None:
    f = lambda alpha: pb.sum(pb.random.gamma([20], alpha, seed=4))
    a, h = np.float64(2.5), 1e-5
    share = gammainc(a, pb.random.gamma([20], a, dtype="float64", seed=4).numpy())
    first = lambda a: np.sum((gammaincinv(a + 1e-3, share) - gammaincinv(a - 1e-3, share)) / 2e-3)
    np.testing.assert_allclose(pb.grad(f)(a), first(a), rtol=1e-6)
    second = pb.grad(pb.grad(f))(a)
    np.testing.assert_allclose(second, (first(a + 1e-2) - first(a - 1e-2)) / 2e-2, rtol=1e-3)
    np.testing.assert_allclose(pb.jvp(pb.grad(f), [a], [1.0])[1], second, rtol=1e-10)
    rate = lambda b: pb.sum(pb.random.gamma([20], a, b, dtype="float64", seed=4))
    np.testing.assert_allclose(pb.grad(rate)(2.0), (rate(2 + h).item() - rate(2 - h).item()) / (2 * h), rtol=1e-8)


def test_random_gradient_of_mean_is_unbiased() -> None:
    alpha = np.full(N, 0.7)
    assert abs(pb.grad(lambda a: pb.random.gamma(None, a, seed=1))(alpha).mean() - 1) < 0.03


def test_gamma_small_shape_parameter() -> None:
    value, g = pb.value_and_grad(lambda a: pb.random.gamma([200], a, seed=1))(np.float32(1e-3))
    assert np.isfinite(g)
    assert (value.numpy() if isinstance(value, pb.Tensor) else value).min() > 0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: pb.random.bernoulli([3], x), lambda x: pb.random.poisson([3], x),
        lambda x: pb.random.categorical(pb.stack([x, x]), 3) * 1.0, lambda x: pb.random.uniform_int([2], x, 5) * 1.0,
    ],
)  # fmt: skip
def test_integer_draws_have_no_gradient(f: Any) -> None:
    with pytest.raises(UnconnectedError, match=r"bernoulli|poisson|categorical|uniform_int"):
        pb.grad(f)(0.5)


# ------------------------------------------------------------------ classes


def test_categorical_frequencies() -> None:
    p = np.array([[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
    with np.errstate(divide="ignore"):
        logits = np.log(p) + 7
    for z in (
        pb.random.categorical(logits, N, seed=1), pb.multinomial(logits, N, 1), pb.multinomial(p * 3, N, 1, True),
    ):  # fmt: skip
        assert (z.shape, z.dtype) == ((2, N), np.int32)
        shares = np.stack([np.bincount(row, minlength=3) / N for row in z.numpy()])
        np.testing.assert_allclose(shares, p, atol=0.02)
        assert shares[1, 0] == 0
    assert pb.multinomial(logits[0], 4).shape == (4,)
    assert pb.random.categorical(np.zeros((2, 3, 5)), 4, "int64").shape == (2, 3, 4)
    assert pb.random.categorical(np.zeros((0, 5)), 4).shape == (0, 4)


# ------------------------------------------------------------------ of tensors


def test_shuffle_and_permutation() -> None:
    x = np.arange(12.0).reshape(3, 4)
    y = pb.random.shuffle(x, 1, seed=2)
    assert not np.array_equal(y, x)
    np.testing.assert_array_equal(np.sort(y, 1), x)
    w = np.arange(12.0).reshape(3, 4) ** 2
    g = pb.grad(lambda x: pb.random.shuffle(x, 1, seed=2))(x, w)
    np.testing.assert_array_equal(g[:, y[0].astype(int)], w)
    assert sorted(pb.random.permutation(7, seed=1).tolist()) == list(range(7))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dropout(dtype: Any) -> None:
    x = np.ones((50, 40), dtype)
    y = pb.dropout(x, 0.25, seed=1)
    assert y.dtype == dtype
    assert {*np.unique(y).tolist()} == {0.0, float(dtype(1) / dtype(0.75))}
    assert abs(np.count_nonzero(y) / x.size - 0.75) < 0.05
    np.testing.assert_array_equal(pb.grad(lambda x: pb.dropout(x, 0.25, seed=1))(x), y)
    np.testing.assert_array_equal(pb.tensor(x).dropout(0.25, seed=1).numpy(), y)
    for noise_shape in ([50, 1], [None, 1], [1, 40], [40]):
        y = pb.dropout(x, 0.5, noise_shape, seed=1)
        shared = 1 if noise_shape[-1] == 1 else 0
        assert np.all(y == np.take(y, [0], shared))
        assert 0 < np.count_nonzero(y) < x.size
    assert pb.dropout([1.0, 2.0], 0).tolist() == [1, 2]
    np.testing.assert_array_equal(pb.grad(lambda x: pb.dropout(x, 0))(x), np.ones_like(x))


def test_tensorflow_js_names() -> None:
    assert pb.random_normal([2], 0, 1, "float32", 1).tolist() == pb.random.normal([2], seed=1).tolist()
    assert pb.random_gamma([2], 2.0, 1.0, "float32", 1).tolist() == pb.random.gamma([2], 2.0, seed=1).tolist()
    assert pb.random_standard_normal([2]).shape == pb.truncated_normal([2]).shape == (2,)
    assert pb.random_uniform([2], 3, 4, "float32", 1).tolist() == pb.random.uniform([2], 3, 4, seed=1).tolist()
    assert pb.random_uniform_int([2], 3, 4, seed=1).tolist() == [3, 3]
    numbers = iter(range(4))
    assert pb.rand([2, 2], lambda: next(numbers), "int32").tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.random.normal([2], seed="x"), ArgumentError, "normal: seed must be None, an integer or a numpy"),
        (lambda: pb.random.normal([2], seed=True), ArgumentError, "got True"),
        (lambda: pb.random.normal([2], seed=1.5), ArgumentError, "got 1.5"),
        (lambda: pb.random.seed(np.inf), ArgumentError, "seed: seed must be None, an integer or a numpy.* got inf"),
        (lambda: pb.random.normal([-2]), ArgumentError, r"normal: shape must be integers of 0 or more, got \[-2\]"),
        (lambda: pb.random.normal([2], np.ones(3)), ShapeError,
         r"normal: mean of shape \(3,\), std_dev of shape \(\) must broadcast to the shape \(2,\) of the result"),
        (lambda: pb.random.normal(None, np.ones(3), np.ones(2)), ShapeError, "must broadcast to one shape"),
        (lambda: pb.random.gamma([2], 0.0), ArgumentError, "gamma: alpha must be above 0, got 0"),
        (lambda: pb.random.gamma([2], 1.0, -1.0), ArgumentError, "gamma: beta must be above 0, got -1"),
        (lambda: pb.random.gamma([2], 1.0, dtype="int32"), ArgumentError, "dtype must be a float, got int32"),
        (lambda: pb.random.exponential([2], -1.0), ArgumentError, "scale must be at least 0, got -1"),
        (lambda: pb.random.bernoulli([2], 1.5), ArgumentError, "p must be between 0 and 1, got 1.5"),
        (lambda: pb.random.bernoulli([2], np.nan), ArgumentError, "got nan"),
        (lambda: pb.random.poisson([2], -1.0), ArgumentError, "lam must be at least 0, got -1"),
        (lambda: pb.random.uniform_int([2], 5, 5), ArgumentError, "minval must be less than maxval, got 5 and 5"),
        (lambda: pb.random.categorical(1.0, 2), ShapeError, r"a last axis of at least one class, got shape \(\)"),
        (lambda: pb.random.categorical([-np.inf, -np.inf], 2), ArgumentError, "a largest one that is finite"),
        (lambda: pb.random.categorical([0.0, 1.0], -2), ArgumentError, "categorical: num_samples"),
        (lambda: pb.multinomial([0.0, 0.0], 2, normalized=True), ArgumentError, "must not all be 0"),
        (lambda: pb.multinomial([-1.0, 2.0], 2, normalized=True), ArgumentError, "a probability must be at least 0"),
        (lambda: pb.random.shuffle(np.ones(3), 1), ShapeError, "axis 1 is out of range"),
        (lambda: pb.dropout(np.ones(3), 1.0), ArgumentError, "rate must be at least 0 and less than 1, got 1.0"),
        (lambda: pb.dropout(np.ones(3, int), 0.5), ArgumentError, "x must be of a float dtype, got int64"),
        (lambda: pb.dropout(np.ones((2, 3)), 0.5, [2]), ShapeError, r"noise_shape \[2\] must broadcast .* \(2, 3\)"),
    ],
)  # fmt: skip
def test_random_bad_input_raises(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_set_state_of_another_generator_repeats_draws() -> None:
    before = pb.random.get_state()
    state = np.random.default_rng(3).bit_generator.state
    pb.random.set_state(state)
    one = pb.random.normal([50]).numpy()
    pb.random.set_state(state)
    np.testing.assert_array_equal(pb.random.normal([50]).numpy(), one)
    pb.random.set_state(before)
    two = pb.random.normal([50]).numpy()
    assert not np.array_equal(one, two)
    pb.random.set_state(before)
    np.testing.assert_array_equal(pb.random.normal([50]).numpy(), two)


def test_set_state_rejects_states_that_get_state_does_not_give() -> None:
    state = pb.random.get_state()
    far = {**state, "state": {**state["state"], "counter": [0, 1, 0, 0]}}
    for wrong in (far, {**state, "has_uint32": 1}, {"bit_generator": "MT19937"}, 7):
        with pytest.raises(ArgumentError, match="set_state: expected what get_state gave"):
            pb.random.set_state(wrong)
    assert pb.random.get_state() == state


@pytest.mark.parametrize("count", [2**15 - 1, 2**15, 40_001])
def test_bernoulli_of_many_numbers_equals_smaller_draws(count: int) -> None:
    expected = np.random.default_rng(5).random(count) < 0.3
    for seed in (5, np.random.default_rng(5)):
        np.testing.assert_array_equal(pb.random.bernoulli([count], 0.3, seed=seed).numpy() != 0, expected)
    pb.random.seed(8)
    many, after = pb.random.bernoulli([count], 0.3).numpy(), pb.random.uniform([4]).numpy()
    pb.random.seed(8)
    few = [pb.random.bernoulli([n], 0.3).numpy() for n in (1000, count - 1000)]
    np.testing.assert_array_equal(many, np.concatenate(few))
    np.testing.assert_array_equal(after, pb.random.uniform([4]).numpy())
