"""Writes through ``ravel()`` of results: a view or a copy, by the order in which NumPy's result lies in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.random.default_rng(5).permutation(np.linspace(0.2, 0.9, 24))
MASK = np.array([[True, False, True], [False, True, True], [True, True, False], [False, False, True]])

MATRIX: dict[str, Callable[[Any], Any]] = {
    "sort": np.sort, "sort along 0": lambda m: np.sort(m, axis=0), "partition": lambda m: np.partition(m, 1),
    "pad": lambda m: np.pad(m, 1), "where": lambda m: np.where(MASK, m, 0.5), "copy": np.copy,
    "select": lambda m: np.select([MASK], [m]), "choose": lambda m: np.choose(MASK.astype(int), [m, m * 2]),
    "plus": lambda m: +m, "method copy": lambda m: m.copy(), "dot with number": lambda m: np.dot(m, 2.0),
    "zeros_like": np.zeros_like, "cumsum": lambda m: np.cumsum(m, axis=0), "accumulate": np.maximum.accumulate,
    "roll": lambda m: np.roll(m, 1), "concatenate": lambda m: np.concatenate([m, m]), "take": lambda m: m[[2, 0]],
    "stack": lambda m: np.stack([m, m]), "clip": lambda m: m.clip(0.3), "delete": lambda m: np.delete(m, 1, axis=0),
    "gradient": lambda m: np.gradient(m)[0], "cross": lambda m: np.cross(m, m[::-1]),
    "svd": lambda m: np.linalg.svd(m)[2], "outer": lambda m: np.add.outer(m, m),
    "order C": lambda m: np.exp(m, order="C"), "flipped": lambda m: np.sin(m[::-1, ::2]),
    "twice": lambda m: (m * 2).T + 1,
    "signbit": lambda m: np.signbit(m - 0.5) * 1.0, "copysign": lambda m: np.copysign(m, m - 0.5),
    "isclose": lambda m: np.isclose(m, 0.5, 0.2) * 1.0, "out": lambda m: np.exp(m, out=pb.zeros_like(m)),
}  # fmt: skip
CUBE: dict[str, Callable[[Any], Any]] = {
    "sum": lambda t: t.sum(axis=0), "max": lambda t: t.max(axis=-1, keepdims=True), "std": lambda t: np.std(t, axis=1),
    "copy in order A": lambda t: np.copy(np.moveaxis(t, 0, 1), order="A"),
    "copy of columns in order A": lambda t: np.copy(t.T, order="A"),
    "median": lambda t: np.median(t, axis=0), "cumprod": lambda t: np.cumprod(t, axis=1), "sort": np.sort,
    "qr": lambda t: np.linalg.qr(t)[0], "svd of stack": lambda t: np.linalg.svd(t)[2],
    "slice": lambda t: np.log(t[:, ::-1, :1]), "log_sum": lambda t: np.logaddexp.reduce(t, axis=0),
}  # fmt: skip


def compare(f: Callable[[Any], Any]) -> None:
    """Check that a function gives NumPy's values under every transform."""
    seen: list[Any] = []

    def note(x: Any) -> Any:
        z = f(x)
        seen.append(pb.stop_gradient(z))
        return z.sum()

    want = f(X)
    pb.grad(note, unconnected="zero")(X)
    found = [seen[0], pb.jvp(f, (X,), (X,))[0], pb.vmap(f)(np.stack([X, X]))[1], pb.compile(f)(X)]
    for got in found:
        np.testing.assert_allclose(got, want)


def write_flat(z: Any, view: Callable[[Any], Any]) -> Any:
    flat = view(z)
    flat[1:] = flat[1:] * 2.0 + 1.0
    return z * 1.0


@pytest.mark.parametrize("name", MATRIX)
def test_writes_through_ravel_of_results_of_transposed_matrix(name: str) -> None:
    compare(lambda x: write_flat(MATRIX[name](np.reshape(x[:12] * 1.0, (3, 4)).T), np.ravel))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("axes", [(2, 1, 0), (1, 0, 2), (0, 2, 1)])
@pytest.mark.parametrize("name", CUBE)
def test_writes_through_reshape_of_results_of_transposed_cube(name: str, axes: tuple[int, ...]) -> None:
    compare(lambda x: write_flat(CUBE[name](np.reshape(x * 1.0, (2, 3, 4)).transpose(axes)), lambda z: z.reshape(-1)))


IN_ORDER: dict[str, Callable[[Any], Any]] = {
    "qr": lambda m: np.linalg.qr(m)[1], "svd": lambda m: np.linalg.svd(m)[2], "cross": lambda m: np.cross(m, m[::-1]),
    "edge": lambda m: np.pad(m, 1, "edge"), "cross along 0": lambda m: np.cross(m.T, m.T[::-1], axis=0),
    "histogram": lambda m: np.histogram2d(m[:, 0], m[:, 1], 3, [[0.0, 1.0]] * 2)[0],
    "order F": lambda m: np.full_like(m, 0.5, order="F"), "reduce": lambda m: np.subtract.reduce(m, keepdims=True),
    "c_": lambda m: pb.stack(write_flat(np.c_[m.T, m.T], np.ravel)),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_ORDER)
def test_writes_through_ravel_of_results_of_matrix_in_order(name: str) -> None:
    compare(lambda x: write_flat(IN_ORDER[name](np.reshape(x[:12] * 1.0, (4, 3))), np.ravel))
