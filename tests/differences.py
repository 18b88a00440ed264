"""Derivatives by central differences, and a check of derivatives against them."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb


def slope(f: Any, x: Any, v: Any, h: float = 1e-5) -> Any:
    """Return the derivative of ``f`` at ``x`` in the direction ``v``.

    >>> round(slope(lambda x: x**3, 2.0, 1.0), 6)
    12.0
    """
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


def gradient(f: Any, x: Any) -> Any:
    """Return the derivative of ``f``, which takes a tensor and gives a scalar, by every element of the array ``x``.

    >>> gradient(lambda x: (x * x).sum(), np.array([1.0, 2.0])).round(6)
    array([2., 4.])
    """
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[i] = 1
        out[i] = slope(lambda x: f(pb.tensor(x)).item(), x, unit, 1e-6)
    return out


def expect_derivatives(f: Any, x: Any, order: int = 2) -> None:
    """Compare the gradient, the jvp, and derivatives up to the given order with finite differences."""
    v, w = np.random.default_rng(order).normal(size=(2, *x.shape))
    found, want = pb.grad(f)(x), slope(f, x, v)
    assert found.shape == x.shape
    np.testing.assert_allclose(np.sum(found * v), want, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(pb.jvp(f, [x], [v])[1], want, rtol=1e-5, atol=1e-7)
    if order > 1:
        expect_derivatives(lambda x: np.sum(pb.grad(f)(x) * w), x, order - 1)
