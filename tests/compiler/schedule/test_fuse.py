"""Fusion: kernels are not too large for LLVM, and equal in unrolled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.ir.kinds import MAP

pytest.importorskip("llvmlite")


def integrate(y: Any, k: Any, steps: int) -> Any:
    """Runge-Kutta's method of fourth order."""
    slope = lambda y: -k * y + np.sin(y)
    for _ in range(steps):
        a = slope(y)
        b = slope(y + 0.025 * a)
        c = slope(y + 0.025 * b)
        y = y + 0.05 / 6 * (a + 2 * b + 2 * c + slope(y + 0.05 * c))
    return np.sum(y * y)


def count_characters(steps: int) -> int:
    x = np.linspace(-1.0, 1.0, 50)
    f = pb.compile(pb.grads(lambda y, k: integrate(y, k, steps)), backend="llvm")
    return len(f.lower([x, x]).stages.module.text)


def test_code_of_unrolled_loop_does_not_grow_with_its_steps() -> None:
    assert count_characters(40) < 1.5 * count_characters(20)


def test_unrolled_loop_of_many_kernels() -> None:
    f = pb.grads(lambda y, k: integrate(y, k, 15))
    x = np.linspace(-1.0, 1.0, 50)
    for a, b in zip(pb.compile(f, backend="llvm")([x, x]), f([x, x]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_many_reductions_of_one_array() -> None:
    f = lambda x: sum(np.sum(x[i : i + 6] ** 2) * i for i in range(80))
    x = np.linspace(0.0, 1.0, 90)
    np.testing.assert_allclose(pb.compile(f, backend="llvm")(x), f(x), rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 8])
def test_sum_of_outer_products_allocates_no_matrix_per_term(steps: int) -> None:
    def f(a: Any, v: Any) -> Any:
        for _ in range(steps):
            v = a @ v
            v = v / np.sqrt(np.sum(v * v))
        return v @ (a @ v)

    rng = np.random.default_rng(0)
    given = [rng.standard_normal((300, 300)), rng.standard_normal(300)]
    gradients = pb.compile(pb.grads(f), backend="llvm")
    for made, expected in zip(gradients(given), pb.grads(f)(given), strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert gradients.lower(given).temporaries < given[0].nbytes


@pytest.mark.parametrize(
    ("rows", "columns", "dtype"), [(21, 50, "f8"), (13, 2500, "f8"), (11, 3500, "f4"), (3, 5000, "f8")]
)
def test_repeated_matrix_vector_products_share_one_kernel(rows: int, columns: int, dtype: str) -> None:
    loss = lambda w, x, y: np.mean(np.logaddexp(0, x @ w) - y * (x @ w)) + np.mean((x @ w - y) ** 2)
    f = pb.value_and_grad(loss, argnums=0)
    rng = np.random.default_rng(0)
    w, x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((columns,), (rows, columns), (rows,)))
    compiled = pb.compile(f, backend="llvm")
    for made, expected in zip(compiled(w, x, y), f(w, x, y), strict=True):
        np.testing.assert_allclose(made, expected, 1e-3 if dtype == "f4" else 1e-10, 1e-4 if dtype == "f4" else 1e-12)
    assert len([k for k in compiled.lower(w, x, y).kernels if f"[{rows}, {columns}]" in k]) == 1


@pytest.mark.parametrize(
    ("f", "is_virtual"),
    [
        (np.negative, True), (np.floor, True), (np.square, True), (lambda x: 2.0 - x, True), (lambda x: x * 2.0, True),
        (lambda x: x / 3.0, False), (np.sqrt, False), (np.exp, False), (lambda x: x + x[::-1], False),
    ],
)  # fmt: skip
def test_value_of_one_instruction_is_recomputed_at_each_use(f: Any, is_virtual: bool) -> None:
    def use_twice(x: Any) -> Any:
        y = f(x)
        return y * y.sum()

    stages = pb.compile(use_twice, backend="llvm").lower(np.linspace(0.5, 2.0, 100)).stages
    made = next(n for n in stages.legalized.nodes if n.kind is MAP)
    assert (made.number in stages.fused.virtual) == is_virtual
