"""Transposed matrices whose rows are reduced: copied once, and right whatever follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

FUNCTIONS: dict[str, Any] = {
    "softmax": lambda x: pb.softmax(x.T),
    "softmax, turned back": lambda x: pb.softmax(x.T).T,
    "exp and its sum": lambda x: np.exp(x.T) + np.sum(np.exp(x.T), 1, keepdims=True),
    "batch": lambda x: pb.softmax(np.swapaxes(np.stack([x, 2.0 * x]), 1, 2)),
    "transpose": lambda x: x.T,
    "sum with it": lambda x: np.exp(x.T)[:, :60] + x[:91, :60],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_row_reductions_of_transposed_matrix(name: str, dtype: Any) -> None:
    f, x = FUNCTIONS[name], np.random.default_rng(0).normal(size=(130, 91)).astype(dtype)
    np.testing.assert_allclose(pb.compile(f)(x), f(x), rtol=1e-5 if dtype == "f4" else 1e-13, atol=1e-6)


def test_transposed_matrix_is_copied_only_if_read_twice() -> None:
    x = np.ones((130, 91))
    count = lambda f: len(pb.compile(f).lower(x).stages.module.described)
    assert count(lambda x: pb.softmax(x.T)) == 2
    assert count(lambda x: np.sum(pb.softmax(x.T) ** 2, 1)) == count(lambda x: np.exp(x.T)) == 1


def test_scan_gradient_sums_outer_products_by_one_matmul_after_loop() -> None:
    def f(w: Any, h: Any, xs: Any) -> Any:
        return np.sum(pb.scan(lambda h, x: (np.tanh(w @ h + x), None), h, xs)[0])

    rng = np.random.default_rng(0)
    w, h, xs = rng.normal(size=(24, 24)) / 5, rng.normal(size=24), rng.normal(size=(5, 24))
    gradients = pb.grad(f, argnums=0)
    compiled = pb.compile(gradients)
    np.testing.assert_allclose(compiled(w, h, xs), gradients(w, h, xs), rtol=1e-10, atol=1e-12)
    assert "product [24, 5] @ [5, 24]" in compiled.lower(w, h, xs).stages.module.described
