"""ONNX files: every layer and many functions give in onnxruntime what they give here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layer_cases import list_layers, make_model, predict

import pullback as pb
from pullback.errors import CompileError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
P = np.abs(X) + np.float32(0.5)
W = RNG.normal(size=(4, 5)).astype(np.float32)
IMAGE = RNG.normal(size=(2, 6, 6, 2)).astype(np.float32)
FILTER = RNG.normal(size=(3, 3, 2, 4)).astype(np.float32)
N = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
FAR = np.array([-np.inf, np.inf, -np.inf, np.inf, -np.inf], np.float32)
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "expm1": (np.expm1, X * np.float32(1e-3)),
    "log1p": (np.log1p, P * np.float32(1e-3)),
    "powers": (lambda x: x**2.5 + np.cbrt(x) + np.log2(x) + np.sqrt(x) + np.reciprocal(x), P),
    "trigonometry": (lambda x: np.sin(x) * np.cos(x) + np.arcsinh(x) + np.tanh(x) + np.arctan(x), X),
    "activations": (lambda x: pb.gelu(x) + pb.selu(x) + pb.softplus(x) + pb.silu(x) + pb.log_softmax(x), X),
    "logarithms": (lambda x: (np.logaddexp(x, x[::-1]), np.log10(x), np.exp2(x)), P),
    "logaddexp of infinities": (lambda x: np.logaddexp(x, x[::-1]), FAR),
    "hypot": (lambda x: np.hypot(x, x[::-1]) / x[::-1], np.array([1e30, 3e-30, 2.0, 4e-30, 2e30], np.float32)),
    "hypot of infinities": (lambda x: np.hypot(x, x[::-1]), np.array([np.nan, 0.0, 0.0, -np.inf], np.float32)),
    "rounding": (lambda x: np.floor(x) + np.rint(x * 3) + np.mod(x, 0.7) + np.fmod(x, -0.3) + x // 0.7, X),
    "remainders of infinities": (lambda x: np.mod(np.array([2.0, -2.0, 0.0, -1.0, 1.0], np.float32), x), FAR),
    "whole numbers": (lambda x: (x * 3).astype(np.int32) // 2, X),
    "integers": (lambda n: (n // -3, n % 3, n % -3, np.fmod(n, 3), np.bitwise_xor(n, 5), n != 2, np.cumsum(n, 0)), N),
    "unsigned integers": (lambda n: (np.argmin(n, 1), np.argmax(n), np.max(n, 0)), np.abs(N).astype(np.uint8)),
    "comparisons": (lambda x: np.where((x > 0) & ~(x < 0.5) | (x == 1), x, np.clip(x, -0.5, 0.5)), X),
    "reductions": (lambda x: (np.mean(x, 1), np.var(x, 0), x.max(1), np.argmax(x, 1), np.argmin(x, 0), np.prod(x)), X),
    "truth": (lambda x: (np.all(x > -9, axis=0), np.any(x > 1), np.max(x > 0, 0), np.min(x > 0, 1)), X),
    "places of truth": (lambda x: (np.argmax(x > 0, 1), np.argmin(x > 0, 0)), X),
    "sums": (lambda x: np.cumsum(x, 1) + pb.logsumexp(x, 1)[:, None], X),
    "products": (lambda x: (x @ W, np.einsum("ij,ik->jk", x, x), np.outer(x[0], x[1])), X),
    "views": (lambda x: (x.T, x[::-1, 1:3], x[:, None] * x[None], np.roll(x, 1, 1), np.tile(x, (2, 2)), x[1:, ::2]), X),
    "joins": (lambda x: (np.concatenate([x, x * 2], 1), np.stack([x, x + 1]), np.pad(x, 1, constant_values=3.0)), X),
    "rows": (lambda x: (x[np.array([2, 0, 0])], np.sort(x, 1), pb.one_hot(np.argmax(x, 1), 4)), X),
    "descending order": (lambda x: pb.argsort(x, 0, descending=True), np.tile(X, (4, 1))),
    "convolution": (lambda x: pb.conv2d(x, FILTER, 2, "same"), IMAGE),
    "pooling": (lambda x: (pb.max_pool(x, 2, 2, "same"), pb.avg_pool(x, 3, 2, "same")), IMAGE),
    "resizing": (lambda x: pb.image.resize_bilinear(x, [9, 9]), IMAGE),
    "scan": (lambda x: pb.scan(lambda c, v: (c * 0.5 + v, c * v), np.zeros(4, np.float32), x), X),
    "gradient": (pb.grad(lambda x: np.sum(np.tanh(x @ W) ** 2)), X),
    "gradient of a repeated row": (pb.grad(lambda x: np.sum(x[np.array([2, 0, 0])] ** 2)), X),
    "gradient of a slice": (pb.grad(lambda x: np.sum(x[::2, 1::2] ** 2)), X),
    "gradient of a convolution": (pb.grad(lambda x: np.sum(pb.conv2d(x, FILTER, 2, "same") ** 2)), IMAGE),
    "gradient of a filter": (pb.grad(lambda w: np.sum(pb.conv2d(IMAGE, w, 2, "same") ** 2)), FILTER),
    "depthwise filter": (pb.grad(lambda w: np.mean(pb.depthwise_conv2d(IMAGE, w, 1, "same") ** 2)), FILTER),
    "gradient of max_pool": (pb.grad(lambda x: np.sum(pb.max_pool(x, 3, 2, "same") ** 2)), IMAGE),
    "gradient of avg_pool": (pb.grad(lambda x: np.sum(pb.avg_pool(x, 3, 1, "same") ** 2)), IMAGE),
}


def run(path: Path, inputs: list[Any]) -> list[Any]:
    """Return what onnxruntime computes; leave its log alone."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given: list[Any] = session.run(None, {x.name: value for x, value in zip(session.get_inputs(), inputs, strict=True)})
    return given


def check(path: Path, f: Any, inputs: list[Any], expected: list[Any]) -> None:
    pytest.importorskip("onnx")
    pb.save_onnx(f, path, *inputs)
    for y, wanted in zip(run(path, inputs), expected, strict=True):
        assert (y.dtype, y.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(y, wanted, rtol=2e-5, atol=2e-6)


LAYERS = [name for name in list_layers() if name != "MelSpectrogram"]  # its spectra are complex, which ONNX has not


@pytest.mark.parametrize("name", LAYERS)
def test_save_onnx_of_layers_equals_onnxruntime(tmp_path: Path, name: str) -> None:
    model, inputs = make_model(name)
    check(tmp_path / "model.onnx", model, inputs, predict(model, inputs))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_save_onnx_of_functions_equals_onnxruntime(tmp_path: Path, name: str) -> None:
    f, x = FUNCTIONS[name]
    made = f(x)
    check(tmp_path / "f.onnx", f, [x], [np.asarray(y) for y in (made if isinstance(made, tuple) else (made,))])


def test_onnx_export_rejects_complex_spectra(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model, inputs = make_model("MelSpectrogram")
    with pytest.raises(CompileError, match="cannot be written to an ONNX file"):
        pb.save_onnx(model, tmp_path / "model.onnx", *inputs)


def test_onnx_export_names_unsupported_op(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(CompileError, match="fft cannot be written to an ONNX"):
        pb.save_onnx(lambda x: np.abs(np.fft.rfft(x)), tmp_path / "f.onnx", X)
    with pytest.raises(CompileError, match="save_onnx: cumprod cannot be written to an ONNX"):
        pb.save_onnx(lambda x: np.cumprod(x, 1), tmp_path / "f.onnx", X)
    with pytest.raises(CompileError, match=r"save_onnx: np\.argsort cannot be written to an ONNX"):
        pb.save_onnx(lambda x: np.argsort(x, 1), tmp_path / "f.onnx", X)
    with pytest.raises(CompileError, match="branches that depend on values"):
        pb.save_onnx(lambda x: pb.cond(np.sum(x) > 0, lambda z: z, lambda z: -z, x), tmp_path / "f.onnx", X)
    v = pb.variable(0.0, name="onnx_counter")
    with pytest.raises(CompileError, match="draws random numbers"):
        pb.save_onnx(lambda x: x + pb.random.uniform((3,)), tmp_path / "x.onnx", np.zeros(3, np.float32))
    with pytest.raises(CompileError, match="assigns onnx_counter"):
        pb.save_onnx(lambda x: v.assign_add(1.0) * x, tmp_path / "f.onnx", X)
    assert not list(tmp_path.iterdir())
