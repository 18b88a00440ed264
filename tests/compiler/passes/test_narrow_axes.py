"""Arrays of pairs with two to four coordinates: compiled as eager, whatever uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.llvm import llvm_available

pytestmark = pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")


def pairs(x: Any) -> Any:
    return x[:, None, :] - x[None, :, :]


def energy(x: Any) -> Any:
    apart = pairs(x)
    return np.sum(1.0 / np.sqrt(np.sum(apart * apart, -1) + 0.1))


def scaled(x: Any) -> Any:
    apart = (pairs(x) - 0.5) / np.exp(x[0] * 0.1)
    return np.sum(np.exp(-np.sum(apart**2, -1)) * np.sum(apart, (1, 2))[:, None])


def shared(x: Any) -> Any:
    apart = pairs(x)
    return np.sum(np.sqrt(np.sum(apart**2, -1) + 1.0)) + np.sum(np.sum(np.sin(apart), 0) ** 2)


def largest(x: Any) -> Any:
    apart = pairs(x)
    return np.sum(np.max(apart, 2) * np.sum(apart**2, -1))


def between(x: Any) -> Any:
    return np.sum(np.sqrt(np.sum((x[:, None] - x[:20] * 2.0) ** 2, -1) + 0.1))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [energy, scaled, shared, largest, between])
@pytest.mark.parametrize(("coordinates", "dtype"), [(2, "f8"), (3, "f4"), (4, "f8"), (7, "f4")])
def test_pairwise_distance_gradients_match_eager(
    f: Callable[..., Any], coordinates: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    x = np.random.default_rng(3).normal(size=(37, coordinates)).astype(dtype)
    value, slope = pb.compile(pb.value_and_grad(f), backend="llvm")(x)
    expected = pb.value_and_grad(f)(x.astype("f8"))
    close = 1e-4 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(value, expected[0], close)
    np.testing.assert_allclose(slope, expected[1], close, close * np.abs(expected[1]).max())


def test_pairwise_differences_as_outputs() -> None:
    x = np.random.default_rng(3).normal(size=(40, 3))
    f = lambda x: (pairs(x), np.sum(pairs(x) ** 2, -1))
    for found, expected in zip(pb.compile(f, backend="llvm")(x), f(x), strict=True):
        np.testing.assert_allclose(found, expected, 1e-12)


def test_pairwise_distance_gradient_allocates_no_pairs() -> None:
    x = np.random.default_rng(3).normal(size=(200, 7))
    assert pb.compile(pb.value_and_grad(energy), backend="llvm").lower(x).temporaries < 200 * 200 * 8


def test_sum_of_negative_zeros_over_narrow_axis_is_positive_zero() -> None:
    x = np.full((20, 3), -0.0)
    found = pb.compile(lambda x, y: np.sum(x[:, None] * y, -1), backend="llvm")(x, np.ones((20, 3)))
    assert not np.signbit(found).any()


def lengths(x: Any, y: Any) -> Any:
    stacked = np.stack([x, y * x, np.tanh(y)], -1)
    return np.sum(stacked**2) + np.sum(np.sqrt(np.sum(stacked * stacked, -1) + 1.0))


def turned(x: Any, y: Any) -> Any:
    stacked = np.stack([np.cos(x) * y, np.sin(x) * y], -1)
    return np.sum(np.exp(stacked * 0.1) * np.array([1.0, -0.5], stacked.dtype)) + np.sum(stacked[..., 0] * x)


def reversed_places(x: Any, y: Any) -> Any:
    return np.sum(np.stack([x, y], -1)[..., ::-1] * np.stack([y, y], -1) ** 3)


@pytest.mark.parametrize("f", [lengths, turned, reversed_places])
@pytest.mark.parametrize("shape", [(37,), (3, 21)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_stack_along_last_axis_gradients(f: Callable[..., Any], shape: tuple[int, ...], dtype: str) -> None:
    x, y = np.random.default_rng(3).normal(size=(2, *shape)).astype(dtype)
    value, slopes = pb.compile(pb.value_and_grad(f, argnums=(0, 1)), backend="llvm")(x, y)
    expected, exact = pb.value_and_grad(f, argnums=(0, 1))(x.astype("f8"), y.astype("f8"))
    close = 1e-4 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(value, expected, close)
    for slope, right in zip(slopes, exact, strict=True):
        np.testing.assert_allclose(slope, right, close, close * np.abs(right).max())


def test_stack_along_last_axis_with_columns_as_outputs() -> None:
    x, y = np.random.default_rng(3).normal(size=(2, 40))

    def f(x: Any, y: Any) -> Any:
        stacked = np.stack([x, y], -1)
        return stacked[:, 0], stacked[:, 1] * 2.0, np.sum(stacked * stacked), np.sum(stacked, 0)

    for got, expected in zip(pb.compile(f, backend="llvm")(x, y), f(x, y), strict=True):
        np.testing.assert_allclose(got, expected, 1e-12)


NARROW: dict[str, Callable[[Any], Any]] = {
    "centred points": lambda x: np.sum((x - np.mean(x, 0)) ** 2, -1),
    "directions": lambda x: x / np.sqrt(np.sum(x * x, -1, keepdims=True) + 0.1),
    "softmax": lambda x: np.exp(x - np.max(x, -1, keepdims=True)) / np.sum(np.exp(x), -1, keepdims=True),
    "weights": lambda x: np.sin(x * x[0]) + x[:1] ** 2,
    "standardized columns": lambda x: (x - x.mean(0)) / x.std(0),
    "largest less smallest": lambda x: (np.max(x, 1) - np.min(x, 1)) ** 2,
    "exchanged columns": lambda x: np.stack([x[:, 1], x[:, 0]], -1) * np.sum(x, 1)[:, None],
    "sum and elements": lambda x: np.tanh(x) * np.sum(x, axis=-1)[:, None] + x**2,
    "integers": lambda x: x * np.sum(np.floor(x).astype("i4"), -1)[:, None].astype(x.dtype),
    "bools": lambda x: np.where(x > np.mean(x, 0), x, np.any(x > 1, -1)[:, None]),
    "negative zeros": lambda x: np.sum(-0.0 * np.abs(x), -1) + np.max(-0.0 * np.abs(x), -1),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize(("shape", "dtype"), [((37, 3), "f8"), ((16, 2), "f4"), ((101, 7), "f8")])
def test_narrow_last_axis_gradients(
    name: str, shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULLBACK_CANARY", "1")
    x, f = np.random.default_rng(3).normal(size=shape).astype(dtype), NARROW[name]
    close = 1e-4 if dtype == "f4" else 1e-11
    found, due = pb.compile(f, backend="llvm")(x), f(x)
    np.testing.assert_allclose(found, due, close, close)
    assert found.dtype == due.dtype
    assert np.array_equal(np.signbit(found), np.signbit(due)) or dtype == "f4"
    gradient = pb.grad(lambda x: np.sum(f(x) ** 3))
    due = gradient(x)
    np.testing.assert_allclose(pb.compile(gradient, backend="llvm")(x), due, close, close * np.abs(due).max())


def test_reductions_of_images_over_narrow_axis_with_nan() -> None:
    image = np.random.default_rng(3).normal(size=(5, 20, 3))
    image[2, 7, 1] = np.nan
    f = lambda x: (np.max(x, -1), np.sum(x, -1), np.mean(x, (0, 1)), x * np.array([1.0, 2.0, 3.0]), np.sum(x, 1))
    for found, due in zip(pb.compile(f)(image), f(image), strict=True):
        np.testing.assert_allclose(found, due, 1e-12)
