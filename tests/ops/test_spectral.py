"""Fourier transforms (their gradients are in test_every_op and, against PyTorch and JAX, in test_complex)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

rng = np.random.default_rng(2)
X = rng.normal(size=(3, 4, 5))
Z = X + 1j * rng.normal(size=X.shape)

ONE: list[dict[str, Any]] = [{}, {"n": 3}, {"n": 8, "axis": 0}, {"axis": -2, "norm": "ortho"}, {"norm": "forward"}]
SEVERAL: list[dict[str, Any]] = [
    {}, {"axes": (0, 2)}, {"s": (3, 6)} | {"axes": (-1, 0)}, {"axes": (1,), "norm": "ortho"}, {"axes": [2, 1]},
]  # fmt: skip
TWO: list[dict[str, Any]] = [{}, {"axes": (0, 1)}, {"s": (3, 6), "norm": "forward"}]
CALLS = [
    (name, way)
    for names, ways in (
        ("fft ifft rfft irfft hfft ihfft", ONE),
        ("fftn ifftn rfftn irfftn", SEVERAL),
        ("fft2 ifft2 rfft2 irfft2", TWO),
        ("fftshift ifftshift", [{}, {"axes": 1}, {"axes": (0, 2)}]),
    )
    for name in names.split()
    for way in ways
]


@pytest.mark.parametrize(("name", "way"), CALLS, ids=lambda x: str(x))
def test_fft_values_match_numpy(name: str, way: dict[str, Any]) -> None:
    ours, theirs = getattr(pb.spectral, name), getattr(np.fft, name)
    only_real = name.startswith(("rfft", "ihfft"))
    for x in (X, X.astype(np.float32)) if only_real else (X, Z, Z.astype(np.complex64)):
        want = theirs(x, **way)
        got = ours(x, **way)
        assert isinstance(got, np.ndarray)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12 if x.itemsize > 8 or x.dtype == float else 1e-4, atol=1e-5)
        for call in (ours, theirs):  # NumPy's own name finds them too
            tensor = call(pb.tensor(x), **way)
            assert isinstance(tensor, pb.Tensor)
            np.testing.assert_allclose(tensor.numpy(), got, rtol=1e-12)


@pytest.mark.parametrize(("name", "way"), CALLS, ids=lambda x: str(x))
def test_fft_gradient_is_adjoint(name: str, way: dict[str, Any]) -> None:
    f = lambda x: getattr(np.fft, name)(x, **way)
    x = X if name.startswith(("rfft", "ihfft")) else Z
    y = f(x)
    dy = rng.normal(size=y.shape) + (1j * rng.normal(size=y.shape) if np.iscomplexobj(y) else 0)
    np.testing.assert_allclose(np.vdot(pb.grad(f)(x, dy), x).real, np.vdot(dy, y).real, rtol=1e-10)


def test_gradient_of_fft_energy_follows_parseval() -> None:
    energy = lambda x: np.sum(np.abs(pb.spectral.fft(x, norm="ortho")) ** 2)
    np.testing.assert_allclose(pb.grad(energy)(Z), 2 * Z)
    np.testing.assert_allclose(pb.grad(energy)(X), 2 * X)
    assert pb.grad(energy)(X).dtype == float


def test_inverse_fft_roundtrip() -> None:
    for n in (4, 5):
        x = X[0, 0, :n]
        back = lambda x, n=n: np.sum(pb.spectral.irfft(pb.spectral.rfft(x), n) * np.arange(n))
        np.testing.assert_allclose(pb.grad(back)(x), np.arange(n), atol=1e-12)


def test_fft_accepts_argument_order_of_tfjs() -> None:
    x = pb.tensor([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(pb.spectral.rfft(x, 4).numpy(), np.fft.rfft([[1, 2, 3]], 4), rtol=1e-6)
    assert pb.spectral.rfft(x).dtype == np.complex64
    assert pb.spectral.fft([1.0, 2.0]).tolist() == [3, -1]


REFUSED: dict[str, Any] = {
    "scalar": (lambda: pb.spectral.fft(1.0), ShapeError, "fft: a scalar has no axis to transform along"),
    "axis": (lambda: pb.spectral.ifft(X, axis=3), ShapeError, "ifft: axis 3 is out of range for rank 3; use -3 to 2"),
    "kind of axis": (lambda: pb.spectral.fft(X, axis=1.5), ArgumentError, "fft: axis must be an integer, got 1.5"),
    "length": (
        lambda: pb.spectral.rfft(pb.tensor(X), 0), ArgumentError,
        r"rfft: the length n must be a positive integer, got 0 for shape \(3, 4, 5\)",
    ),
    "empty": (lambda: pb.spectral.fft(np.ones((2, 0))), ArgumentError, r"positive integer, got 0 for shape \(2, 0\)"),
    "one bin": (lambda: pb.spectral.irfft(np.ones(1)), ArgumentError, r"irfft: the length n must be .*got 0"),
    "norm": (lambda: pb.spectral.fft(X, norm="other"), ArgumentError, "norm must be 'backward', .*got 'other'"),
    "norm of hfft": (lambda: pb.spectral.hfft(X, norm="other"), ArgumentError, "hfft: norm must be 'backward'"),
    "complex": (
        lambda: pb.spectral.rfft(Z), ArgumentError, "rfft: the input must be real numbers, got dtype complex128"
    ),
    "lengths": (lambda: pb.spectral.fftn(X, (2, 3), (0,)), ArgumentError, "s has 2 lengths, but there are 1 axes"),
    "no axes": (lambda: pb.spectral.rfftn(1.0), ArgumentError, r"rfftn: no axis to transform along, for shape \(\)"),
    "axis twice": (lambda: pb.spectral.fft2(X, axes=(0, -3)), ShapeError, "fft2: an axis is named twice"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_spectral_bad_input_raises(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_fft_of_float32_matches_numpy(name: str) -> None:
    random = np.random.default_rng(0)
    for shape, n, axis in (((6, 8), None, -1), ((6, 8), 5, 0), ((2, 3, 9), 16, 1), ((1, 7), None, 0)):
        for dtype in ("f4", "c8"):
            x = (random.normal(size=shape) + (1j * random.normal(size=shape) if dtype == "c8" else 0)).astype(dtype)
            if (name, dtype) == ("rfft", "c8") or (name == "irfft" and n is None and x.shape[axis] == 1):
                continue
            for norm in (None, "forward"):
                z, wanted = getattr(pb.spectral, name)(x, n, axis, norm), getattr(np.fft, name)(x, n, axis, norm)
                assert z.dtype == wanted.dtype
                np.testing.assert_allclose(z, wanted, atol=1e-6 * abs(wanted).max())


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_single_precision_transforms_without_eager_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = (X if name == "rfft" else Z).astype(np.float32 if name == "rfft" else np.complex64)
    kept = getattr(np.fft, name)(pb.tensor(x), axis=1)
    monkeypatch.setenv("PULLBACK_EAGER_KERNELS", "0")
    found = getattr(np.fft, name)(pb.tensor(x), axis=1)
    assert found.dtype == kept.dtype
    np.testing.assert_allclose(found, kept, 1e-5, 1e-6)
    np.testing.assert_allclose(found, getattr(np.fft, name)(x, axis=1), 1e-5, 1e-6)
