"""Cotangents that are one number, over and over, are no arrays while a function is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

LOSSES = {
    "sum": lambda x: np.sum(x),
    "mean of absolute values": lambda x: np.mean(np.abs(x)),
    "slice": lambda x: np.mean(x[:, ::2]),
    "product": lambda x: np.sum(x @ np.eye(60, 3, dtype=x.dtype)),
    "concatenate": lambda x: np.sum(np.concatenate([x, x])),
    "running sum": lambda x: np.mean(np.cumsum(x, 0)),
    "mean of rows": lambda x: np.sum(np.mean(x, axis=1)),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_constant_cotangent_is_not_traced_as_an_array(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(50, 60)).astype(dtype)
    slope = pb.compile(pb.grad(LOSSES[name]))
    found, expected = slope(x), pb.grad(LOSSES[name])(x)
    assert (type(found), found.dtype) == (type(expected), expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "f4" else 1e-12)
    assert largest_constant(slope, x) <= 60 * 3


def largest_constant(f: Any, *args: Any) -> int:
    return max(n.size for n in f.lower(*args).stages.traced if n.name == "constant")
