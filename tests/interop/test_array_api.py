"""The namespace of the Array API on tensors."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError


def test_namespace_of_tensor_is_array_api_module() -> None:
    t = pb.tensor([1.0, 2.0])
    assert t.__array_namespace__() is pb.array_api
    assert t.__array_namespace__(api_version="2024.12").__array_api_version__ == "2025.12"
    with pytest.raises(ArgumentError, match="api_version must be one of"):
        t.__array_namespace__(api_version="2019.12")


def test_device_is_cpu() -> None:
    t = pb.tensor([1.0])
    assert t.device == "cpu"
    assert t.to_device("cpu") is t
    with pytest.raises(ArgumentError, match='all tensors are on the device "cpu"'):
        t.to_device("cuda")


def test_namespace_keeps_gradients() -> None:
    xp = pb.array_api

    def f(x: pb.Tensor) -> pb.Tensor:
        y = xp.sort(xp.multiply(x, x), descending=True)
        return xp.sum(y * xp.arange(3.0)) + xp.linalg.vector_norm(xp.concat([x, x]))

    x = np.array([1.0, -3.0, 2.0])
    n = np.sqrt(2 * np.sum(x * x))
    np.testing.assert_allclose(pb.grad(f)(x), 2 * x * [2.0, 0.0, 1.0] + 2 * x / n)
