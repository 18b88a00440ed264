"""Convolutions with 3 × 3 taps by transformed tiles match those that are computed tap by tap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.threads import has_threads
from pullback.compiler.target import MAX_ISA, list_isa_names

CLOSE = {"f4": 2e-6, "f8": 2e-15}
SPACES = [
    ((1, 23, 22), "same"),
    ((5, 42, 40), "valid"),
    ((3, 16, 17), 2),
    ((1, 2, 260), "same"),
    ((1, 25, 24), "uneven"),
]
PADS = {"uneven": ((0, 2), (2, 1))}


def draw(*shape: int, dtype: str) -> Any:
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


def convolve(x: Any, w: Any, pad: Any) -> Any:
    """Return the convolution and its two gradients."""
    pad = PADS.get(pad, pad)
    loss = lambda x, w: np.sum(np.sin(pb.conv2d(x, w, 1, pad)))
    return pb.conv2d(x, w, 1, pad), *pb.grads(loss)([x, w])


def weigh(x: Any, w: Any) -> Any:
    """Return a sum of the results with different weights, which are linear in the filter."""
    z = pb.conv2d(x, w, 1, "same")
    return np.sum(z * np.linspace(-1, 2, z.size, dtype=z.dtype).reshape(z.shape))


def check_tiled(x: Any, w: Any, pad: Any = "same", **options: Any) -> Any:
    """Check compiled results against float64 by NumPy's products, and return them."""
    compiled = pb.compile(lambda x, w: convolve(x, w, pad), backend="llvm", **options)
    is_even = not any(n % 2 for n in pb.conv2d(x[:1], w, 1, PADS.get(pad, pad)).shape[1:3])
    assert sum("transformed tiles" in line for line in compiled.lower(x, w).kernels) == 2 + is_even
    with np.errstate(invalid="ignore"):
        found, due = compiled(x, w), convolve(x.astype("f8"), w.astype("f8"), pad)
    for z, wanted in zip(found, due, strict=True):
        finite = np.isfinite(wanted)
        scale = np.abs(wanted[finite]).max()
        np.testing.assert_allclose(z, wanted, rtol=0, atol=x.shape[-1] * CLOSE[x.dtype.str[1:]] * scale)
    return found


@pytest.fixture(autouse=True)
def eager_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_EAGER_KERNELS", "0")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("space", "pad"), SPACES, ids=str)
def test_winograd_geometries(space: tuple[int, ...], pad: Any, dtype: str) -> None:
    check_tiled(draw(*space, 64, dtype=dtype), draw(3, 3, 64, 64, dtype=dtype) / 24, pad, cache=False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", list_isa_names())
@pytest.mark.parametrize("channels", [(16, 48), (80, 32)])
def test_winograd_instruction_sets(isa: str, channels: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    few, many = channels
    check_tiled(draw(2, 38, 36, few, dtype="f4"), draw(3, 3, few, many, dtype="f4") / 20)


@pytest.mark.parametrize("f", [lambda x, w: pb.conv2d(x, w, 1, "same"), pb.grad(weigh, argnums=1)], ids=["z", "dw"])
def test_winograd_of_infinities_and_nan(f: Any) -> None:
    compiled, w = pb.compile(f, backend="llvm"), draw(3, 3, 48, 48, dtype="f4") / 24
    for number in (np.inf, -np.inf, np.nan, 3e38):
        for where in ((0, 0, 0), (1, 11, 5), (1, 21, 19)):
            x = draw(2, 22, 20, 48, dtype="f4")
            x[*where, 7] = number
            with np.errstate(invalid="ignore", over="ignore"):
                np.testing.assert_allclose(compiled(x, w), f(x, w), rtol=1e-4, atol=1e-3)


@pytest.mark.skipif(not has_threads(), reason="no threads on this platform")
def test_winograd_does_not_depend_on_threads() -> None:
    x, w = draw(5, 20, 18, 64, dtype="f4"), draw(3, 3, 64, 64, dtype="f4") / 24
    one, two = (check_tiled(x, w, threads=n) for n in (1, 3))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_winograd_switched_off_uses_direct_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_WINOGRAD", "0")
    f = pb.compile(lambda x, w: pb.conv2d(x, w, 1, "same"), backend="llvm")
    x, w = draw(1, 32, 32, 64, dtype="f4"), draw(3, 3, 64, 64, dtype="f4")
    assert not any("transformed" in line for line in f.lower(x, w).kernels)
