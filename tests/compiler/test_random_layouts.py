"""Random programs whose writes depend on the order of axes in memory: every transform gives NumPy's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

SHAPE = (3, 4)
FIXED = np.asfortranarray(np.arange(12.0).reshape(SHAPE) / 7)
LAYOUTS: dict[str, Any] = {
    "C": np.ascontiguousarray, "Fortran": np.asfortranarray, "gaps": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "reversed": lambda x: x[::-1].copy()[::-1], "axes exchanged": lambda x: x.swapaxes(0, 1).copy().swapaxes(0, 1),
}  # fmt: skip
STEPS: list[Any] = [
    lambda v: v * 1.5, lambda v: v.T, lambda v: np.sin(v), lambda v: np.real(v * (1 + 2j)), lambda v: np.copy(v),
    lambda v: v.copy(), lambda v: np.rot90(v), lambda v: v[::-1], lambda v: np.where(v > 0, v, -v),
    lambda v: v + (FIXED if v.shape == SHAPE else FIXED.T), lambda v: v @ np.eye(v.shape[1]),
    lambda v: np.concatenate([v[1:], v[:1]]), lambda v: np.cumsum(v, 0), lambda v: np.imag(v * 1j).T.T,
]  # fmt: skip
FLAT: list[Any] = [
    lambda v: v.ravel(), lambda v: v.reshape(-1), lambda v: v.T.ravel(), lambda v: v.ravel("F"),
    lambda v: np.reshape(v.T, (2, 6))[1],
]  # fmt: skip


def draw_program(seed: int) -> Any:
    """Return a function of a matrix that writes into flattened results, some of which are views in NumPy."""
    random = np.random.default_rng(seed)
    choices = [(int(random.integers(4)), *map(int, random.integers(100, size=2))) for _ in range(random.integers(3, 9))]

    def f(x: Any) -> Any:
        v = x * 1.0
        seen = [v]
        for kind, which, at in choices:
            if kind < 2:
                v = STEPS[which % len(STEPS)](v)
            elif kind == 2:
                v = v * 1.0
                FLAT[which % len(FLAT)](v)[at % 2 :: 2] = 0.25 * kind + at
            else:
                v = v + 0.0
                v.T[at % v.shape[1]] *= -1.5
            seen.append(v)
        return [s * 1.0 for s in seen]

    return f


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_of_every_memory_layout_match_numpy(seed: int, layout: str) -> None:
    x = LAYOUTS[layout](np.random.default_rng(seed).normal(size=SHAPE))
    for case in range(seed * 10, seed * 10 + 10):
        f = draw_program(case)
        total = lambda x: (sum(np.sum(np.sin(v)) for v in f(x)), f(x))  # noqa: B023
        wanted = f(x)
        transformed = [f(pb.tensor(x)), pb.value_and_grad(total, has_aux=True)(x)[0][1], pb.jvp(f, [x], [x])[0]]
        if case % 10 == 9:  # compiling takes longer
            transformed.append(pb.compile(f)(x))
            transformed.append(pb.compile(lambda x: pb.value_and_grad(total, has_aux=True)(x)[0][1])(x))  # noqa: B023
        for found in transformed:
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=f"program {case}")
