"""A product with several users is the same rounded number for all of them, whatever loops they are in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.target import MAX_ISA
from pullback.core import tree

PROGRAMS = {
    "maximum": lambda w, x: np.sqrt(np.max(w * x, -1, keepdims=True) - w * x),
    "minimum": lambda w, x: np.sqrt(w * x - np.min(w * x, -1, keepdims=True)),
    "square": lambda w, x: np.sqrt(np.max(x**2, -1, keepdims=True) - x**2),
    "elementwise": lambda w, x: np.sqrt(np.maximum(w * x, 0.5) - w * x),
    "pieces": lambda w, x: np.sqrt(np.max(np.append(w * x, w * x)) - np.append(w * x, x * w)),
    "output": lambda w, x: (w * x, np.sqrt(w * x - np.min(w * x, -1, keepdims=True))),
    "softmax": lambda w, x: pb.softmax(1e30 * w * x),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_product_is_rounded_before_every_use(name: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    random, f = np.random.default_rng(0), PROGRAMS[name]
    for shape, dtype in [((50,), "f8"), ((6, 300), "f4")]:
        w, x = (random.normal(size=shape).astype(dtype) for _ in range(2))
        for found, expected in zip(tree.leaves(pb.compile(f)(w, x)), tree.leaves(f(w, x)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_product_in_compiled_loop_is_rounded_before_every_use() -> None:
    random = np.random.default_rng(0)
    xs = random.normal(size=40)

    def step(total: Any, x: Any) -> Any:
        product = x * total
        gap = np.sqrt(np.maximum(product, -0.1) - product)
        return 0.9 * total + gap, gap

    total, gaps = pb.compile(lambda xs: pb.scan(step, 1.1, xs))(xs)
    expected = pb.scan(step, 1.1, xs)
    np.testing.assert_allclose(gaps, expected[1], rtol=1e-10)
    np.testing.assert_allclose(total, expected[0], rtol=1e-10)
