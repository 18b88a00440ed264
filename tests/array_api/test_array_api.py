"""The namespace of the Array API on tensors: a sample of what the official suite tests, and gradients through it."""

from __future__ import annotations

import copy
import inspect
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import pullback as pb
import pullback.array_api as xp
from pullback.errors import ArgumentError, IndexRangeError

# The names of version 2025.12, by the headings of the standard.
STANDARD = """
e inf nan newaxis pi
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros
zeros_like astype can_cast finfo iinfo isdtype result_type __array_namespace_info__
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder
round sign signbit sin sinh square sqrt subtract tan tanh trunc
take take_along_axis matmul matrix_transpose tensordot vecdot
broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze
stack tile unstack
argmax argmin count_nonzero nonzero searchsorted where isin unique_all unique_counts unique_inverse unique_values
argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any diff
"""
LINALG = """
cholesky cross det diagonal eigh eigvalsh eig eigvals inv matmul matrix_norm matrix_power matrix_rank matrix_transpose
outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
"""
FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"


def test_namespace_of_tensor_is_array_api_module() -> None:
    t = pb.tensor([1.0, 2.0])
    assert t.__array_namespace__() is pb.array_api is xp
    assert t.__array_namespace__(api_version="2024.12").__array_api_version__ == "2025.12"
    with pytest.raises(ArgumentError, match="api_version must be one of"):
        t.__array_namespace__(api_version="2019.12")


@pytest.mark.parametrize(("module", "names"), [(xp, STANDARD), (xp.linalg, LINALG), (xp.fft, FFT)])
def test_namespace_has_names_of_standard_with_docstrings(module: Any, names: str) -> None:
    for name in names.split():
        value = getattr(module, name)
        if isinstance(value, FunctionType):
            assert value.__doc__
            assert value.__name__ == name
            inspect.signature(value)


def test_dtypes_are_not_equal_to_none() -> None:
    info = xp.__array_namespace_info__()
    dtypes = info.dtypes()
    assert not any(dtype == None for dtype in dtypes.values())  # noqa: E711
    assert len(dtypes) == 13
    assert [*info.dtypes(kind="real floating")] == ["float32", "float64"]
    assert (info.default_device(), info.devices()) == ("cpu", ("cpu",))
    assert info.default_dtypes()["real floating"] is xp.float64
    assert info.capabilities()["boolean indexing"]
    with pytest.raises(ArgumentError, match="kind must be one of"):
        info.dtypes(kind="float")


def test_array_api_device_is_cpu() -> None:
    t = pb.tensor([1.0])
    assert t.device == "cpu"
    assert t.to_device("cpu") is t
    with pytest.raises(ArgumentError, match='all tensors are on the device "cpu"'):
        t.to_device("cuda")
    with pytest.raises(ArgumentError, match='zeros: device must be "cpu"'):
        xp.zeros(2, device="cuda")


# ---- values


def draw(dtype: str, shape: tuple[int, ...] = (3, 4)) -> Any:
    rng = np.random.default_rng(1)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    made = rng.integers(1, 9, shape)
    return made.astype(dtype) if np.dtype(dtype).kind in "iu" else (made / 8).astype(dtype)


CASES: dict[str, Any] = {
    "sum": lambda xp, x: [xp.sum(x, axis=0), xp.sum(x, axis=(0, 1), keepdims=True)],
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True),
    "prod": lambda xp, x: xp.prod(x, axis=-1),
    "max": lambda xp, x: [xp.max(x, axis=1), xp.argmax(x), xp.argmin(x, axis=0, keepdims=True)],
    "arithmetic": lambda xp, x: [x + x, x * 2, xp.subtract(x, x), xp.square(x), xp.pow(x, x), x // x, x % x],
    "comparison": lambda xp, x: [x > 2, xp.equal(x, x), xp.not_equal(x, 1), xp.isfinite(x), xp.signbit(x)],
    "round": lambda xp, x: [xp.round(x), xp.floor(x), xp.ceil(x), xp.trunc(x), xp.sign(x)],
    "clip": lambda xp, x: [xp.clip(x, 2, 5), xp.clip(x, max=3), xp.minimum(x, 2), xp.maximum(3, x)],
    "moved": lambda xp, x: [xp.flip(x), xp.roll(x, 1, axis=0), xp.tile(x, (2, 1)), xp.repeat(x, 2, axis=1), x.mT, x.T],
    "joined": lambda xp, x: [xp.concat([x, x], axis=None), xp.stack([x, x], axis=1), *xp.unstack(x)],
    "shaped": lambda xp, x: [xp.reshape(x, (-1, 2)), xp.expand_dims(x, axis=0), xp.permute_dims(x, (1, 0))],
    "sorted": lambda xp, x: [xp.sort(x, axis=0), xp.argsort(x, axis=1, stable=True)],
    "chosen": lambda xp, x: [xp.where(x > 3, x, 1), xp.take(x, xp.asarray([0, 2]), axis=1), xp.diff(x, axis=1)],
    "sets": lambda xp, x: [*xp.unique_all(x), xp.isin(x, x[:1, :]), xp.count_nonzero(x, axis=0)],
    "products": lambda xp, x: [xp.matmul(x, x.T), xp.vecdot(x, x), xp.tensordot(x, x, axes=((0, 1), (0, 1)))],
    "grids": lambda xp, x: [*xp.meshgrid(x[0], x[:, 0]), *xp.meshgrid(x[0], x[1], x[2], indexing="ij")],
    "broadcast": lambda xp, x: [*xp.broadcast_arrays(x[:1], x[:, :1]), xp.broadcast_to(x[0], (2, 4))],
    "filled": lambda xp, x: [xp.full_like(x, 3), xp.ones_like(x), xp.full(2, x[0, 0]), xp.full(2, x[0, 1], dtype="f")],
    "positions": lambda xp, x: [*xp.nonzero(x > 3), *xp.unique_inverse(x), xp.moveaxis(x, 0, 1)],
    "cumulative_prod": lambda xp, x: [xp.cumulative_prod(x[0]), xp.cumulative_prod(x, axis=0, include_initial=True)],
    "triangles": lambda xp, x: [xp.tril(x), xp.triu(x, k=1), xp.linalg.diagonal(x), xp.linalg.trace(x)],
}  # fmt: skip
FLOATS: dict[str, Any] = {
    "functions": lambda xp, x: [f(x) for f in (xp.exp, xp.log, xp.sqrt, xp.sin, xp.atan, xp.tanh, xp.expm1, xp.log2)],
    "statistics": lambda xp, x: [xp.mean(x, axis=0), xp.var(x, correction=1), xp.std(x, axis=1)],
    "norms": lambda xp, x: [xp.linalg.vector_norm(x, axis=1, ord=3), xp.linalg.matrix_norm(x, ord="nuc")],
    "decompositions": lambda xp, x: [*xp.linalg.qr(x.T), xp.linalg.svdvals(x), xp.linalg.pinv(x)],
    "fourier": lambda xp, x: [xp.fft.rfft(x), xp.fft.fftn(x), xp.fft.irfft(xp.fft.rfft(x), n=4)],
    "shifted": lambda xp, x: [xp.fft.fftshift(x), xp.fft.ifftshift(x, axes=1), xp.fft.fftshift(x, axes=(0,))],
    "square matrices": lambda xp, x: [xp.linalg.matrix_power(x[:, :3], 3), *xp.linalg.slogdet(x[:, :3])],
    "symmetric matrices": lambda xp, x: [*xp.linalg.eigh(x.T @ x), xp.linalg.matrix_rank(x.T @ x)],
    "vectors": lambda xp, x: [xp.linalg.cross(x.T, x.T[::-1]), xp.linalg.outer(x[0], x[:, 1])],
    "of two": lambda xp, x: [f(x, -x) for f in (xp.hypot, xp.atan2, xp.copysign, xp.logaddexp, xp.nextafter)],
}  # fmt: skip
CHOSEN = [(name, dtype) for name in CASES for dtype in ("int8", "uint16", "int64", "float32", "float64")]
CHOSEN += [(name, dtype) for name in FLOATS for dtype in ("float32", "float64")]


def listed(x: Any) -> list[Any]:
    return [*x] if isinstance(x, list | tuple) else [x]


def check_like_numpy(name: str, dtype: str, got: list[Any]) -> None:
    want = listed({**CASES, **FLOATS}[name](np, draw(dtype)))
    assert len(got) == len(want)
    for ours, numpys in zip(got, want, strict=True):
        assert isinstance(ours, pb.Tensor)
        assert (ours.shape, ours.dtype) == (np.shape(numpys), np.asarray(numpys).dtype)
        values = np.asarray(pb.stop_gradient(ours))
        np.testing.assert_allclose(values, numpys, 1e-5 if "32" in dtype else 1e-12, 1e-6 if "32" in dtype else 1e-12)


@pytest.mark.parametrize(("name", "dtype"), CHOSEN)
def test_array_api_functions_match_numpy(name: str, dtype: str) -> None:
    check_like_numpy(name, dtype, listed({**CASES, **FLOATS}[name](xp, xp.asarray(draw(dtype)))))


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, d in CHOSEN if d.startswith("float")])
def test_array_api_functions_of_traced_tensors_match_numpy(name: str, dtype: str) -> None:
    def f(x: Any) -> Any:
        check_like_numpy(name, dtype, listed({**CASES, **FLOATS}[name](xp, x)))
        return xp.sum(x)

    pb.grad(f)(draw(dtype))


def test_special_values_match_array_api_standard() -> None:
    inf = np.inf
    x, y = xp.asarray([inf, -inf, 5.0, -5.0, inf]), xp.asarray([2.0, 2.0, -inf, inf, inf])
    with np.errstate(invalid="ignore"):
        got = np.asarray(x // y)
    np.testing.assert_array_equal(got, [inf, -inf, -0.0, -0.0, np.nan])
    assert np.signbit(got[2:4]).all()
    got = np.asarray(xp.expm1(xp.asarray([complex(inf, 0), complex(-inf, inf), complex(-0.0, 0.0)])))
    np.testing.assert_array_equal(got, [inf, -1, 0])
    assert not np.signbit(got[2].real)
    np.testing.assert_array_equal(np.asarray(xp.tanh(xp.asarray([complex(inf, 7e153), complex(-inf, 1)]))), [1, -1])


def test_created_arrays_match_numpy() -> None:
    for got, want in (
        (xp.linspace(0, 1, 5, dtype=xp.float32), np.linspace(0, 1, 5, dtype=np.float32)),
        (xp.linspace(0, 2j, 4, endpoint=False), np.linspace(0, 2j, 4, endpoint=False)),
        (xp.full((2, 3), 7), np.full((2, 3), 7)),
        (xp.full(2, True), np.full(2, True)),
        (xp.fft.fftfreq(5, d=0.5), np.fft.fftfreq(5, 0.5)),
        (xp.fft.rfftfreq(6, dtype=xp.float32), np.fft.rfftfreq(6).astype(np.float32)),
    ):
        assert isinstance(got, pb.Tensor)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert xp.meshgrid() == xp.broadcast_arrays() == ()
    np.testing.assert_array_equal(pb.grad(lambda x: xp.sum(xp.full((2, 3), x[1]) * 2))(np.ones(2)), [0.0, 12.0])


def test_data_type_functions_of_array_api() -> None:
    assert xp.can_cast(xp.int8, xp.int16)
    assert not xp.can_cast(xp.asarray([1.0]), xp.float32)
    limits = xp.iinfo(xp.asarray([1], dtype=xp.int16))
    assert (limits.bits, limits.max, limits.min, limits.dtype) == (16, 2**15 - 1, -(2**15), np.int16)
    assert xp.isdtype(xp.float32, xp.float32)
    assert not xp.isdtype(xp.float32, (xp.float64, "integral"))
    with pytest.raises(ArgumentError, match=r"isdtype: kind must be one of bool, .*got 'floating'"):
        xp.isdtype(xp.float32, "floating")
    with pytest.raises(ArgumentError, match="complex128 to float64 drops the imaginary part"):
        xp.astype(xp.asarray(1j), xp.float64)
    assert xp.add(1, 2.5).tolist() == 3.5


@pytest.mark.parametrize("matrix", [[[2.0, 1.0], [1.0, 3.0]], [[0.0, -1.0], [1.0, 0.0]]], ids=["real", "complex"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvalues_of_real_matrices_are_complex(matrix: list[list[float]], dtype: str) -> None:
    x = xp.asarray(np.array(matrix, dtype))
    wanted = np.result_type(dtype, np.complex64)
    values, vectors = xp.linalg.eig(x)
    assert values.dtype == vectors.dtype == xp.linalg.eigvals(x).dtype == wanted
    np.testing.assert_allclose(xp.linalg.eigvals(x), np.linalg.eigvals(np.array(matrix)), 1e-6)
    np.testing.assert_allclose(np.asarray(x @ vectors), np.asarray(vectors * values), atol=1e-6)


def test_tanh_of_finite_complex_numbers() -> None:
    x = np.array([0.5 + 1j, -2.0 - 0.25j])
    np.testing.assert_allclose(xp.tanh(xp.asarray(x)), np.tanh(x))


def test_unique_values_keep_each_nan_and_gradients() -> None:
    assert np.isnan(np.asarray(xp.unique_values(xp.asarray([np.nan, 1.0, np.nan])))).sum() == 2
    weights = np.array([1.0, 10.0, 100.0])
    found = pb.grad(lambda x: xp.sum(xp.unique_values(x) * weights))(np.array([3.0, 1.0, 3.0, 2.0]))
    np.testing.assert_array_equal(found, [100.0, 1.0, 0.0, 10.0])


def test_sort_descending_is_stable() -> None:
    x = xp.asarray([1, 3, 3, 2, 3])
    np.testing.assert_array_equal(xp.argsort(x, descending=True), [1, 2, 4, 3, 0])
    np.testing.assert_array_equal(xp.sort(x, descending=True), [3, 3, 3, 2, 1])


def test_broadcast_shapes_with_unknown_lengths() -> None:
    assert xp.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert xp.broadcast_shapes((None, 1), (1, 3)) == (None, 3)
    with pytest.raises(ValueError, match="do not broadcast together"):
        xp.broadcast_shapes((2,), (3,))


def test_asarray_copies_and_keeps_gradients() -> None:
    t = pb.tensor([1.0, 2.0])
    assert xp.asarray(t) is xp.asarray(t, copy=False) is t
    made = xp.asarray(t, copy=True)
    made[0] = 9.0
    assert t.tolist() == [1.0, 2.0]
    assert xp.asarray([2**63, 1], dtype=xp.uint64).tolist() == [2**63, 1]
    assert (xp.asarray(1).dtype, xp.asarray([1.0]).dtype, xp.asarray(1j).dtype) == (np.int64, np.float64, np.complex128)
    data = bytearray(b"\x01\x02")
    shared, copied = xp.asarray(data, copy=False), xp.asarray(data, copy=True)
    data[0] = 7
    assert (shared.tolist(), copied.tolist(), shared.dtype) == ([7, 2], [1, 2], np.uint8)
    assert xp.asarray(t, dtype=xp.float32).dtype == np.float32
    assert xp.asarray(np.array([1, 2]), dtype=xp.float32).dtype == np.float32
    with pytest.raises(ArgumentError, match="must be copied"):
        xp.asarray([1.0], copy=False)
    with pytest.raises(ArgumentError, match="asarray: setting an array element with a sequence"):
        xp.asarray([[1.0], [1.0, 2.0]])
    with pytest.raises(ArgumentError, match="expected numbers"):
        xp.asarray(["a"])
    found = pb.grad(lambda x: xp.sum(xp.asarray([x[0], x[1] * 2]) ** 2))(np.array([3.0, 4.0]))
    np.testing.assert_array_equal(found, [6.0, 32.0])


def test_reshape_copy_false_error() -> None:
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert xp.reshape(x, (4,), copy=False).shape == (4,)
    with pytest.raises(ArgumentError, match="needs a copy"):
        xp.reshape(x.T, (4,), copy=False)
    made = xp.reshape(x, (4,), copy=True)
    made[0] = 9.0
    assert x[0, 0].item() == 1.0


def test_index_out_of_range_is_index_error() -> None:
    t = pb.tensor([1.0, 2.0])
    for call in (lambda: t[2], lambda: xp.expand_dims(t, axis=5), lambda: xp.sum(t, axis=1), lambda: np.take(t, 9)):
        with pytest.raises(IndexError) as caught:
            call()
        assert isinstance(caught.value, IndexRangeError)


def test_namespace_has_names_used_by_xarray_and_sklearn() -> None:
    x = np.array([[1.0, 5.0, 2.0], [4.0, 3.0, 9.0]])
    windows = xp.lib.stride_tricks.sliding_window_view
    for f in (
        lambda t: xp.median(t, axis=1, keepdims=True),
        lambda t: xp.quantile(t, 0.3, axis=0),
        lambda t: xp.pad(t, ((1, 0), (0, 2)), mode="reflect"),
        lambda t: xp.einsum("ij,kj->ik", t, t),
        lambda t: xp.gradient(t, 0.5, axis=1),
        lambda t: xp.transpose(t, (1, 0)) ** 2,
        lambda t: windows(t, 2, axis=1) ** 2,
    ):
        pb.check_grads(f, [x])
    assert isinstance(xp.median(x), pb.Tensor)


def test_namespace_keeps_gradients() -> None:
    def f(x: pb.Tensor) -> pb.Tensor:
        y = xp.sort(xp.multiply(x, x), descending=True)
        return xp.sum(y * xp.arange(3.0)) + xp.linalg.vector_norm(xp.concat([x, x]))

    x = np.array([1.0, -3.0, 2.0])
    n = np.sqrt(2 * np.sum(x * x))
    np.testing.assert_allclose(pb.grad(f)(x), 2 * x * [2.0, 0.0, 1.0] + 2 * x / n)


def test_namespace_under_vmap_and_compile() -> None:
    def f(x: pb.Tensor) -> pb.Tensor:
        space = x.__array_namespace__()
        return space.sum(space.where(x > 0, space.exp(x), space.zeros_like(x))) + space.max(x)

    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    want = [f(pb.tensor(row)).item() for row in x]
    np.testing.assert_allclose(pb.vmap(f)(x), want)
    np.testing.assert_allclose([pb.compile(f)(row) for row in x], want)


# ---- operators and copies


def test_shifts_of_integers() -> None:
    x = pb.tensor(np.array([1, 2, -5]))
    assert ((x << 2).tolist(), (x >> 1).tolist(), (1 << xp.abs(x)).tolist()) == ([4, 8, -20], [0, 1, -3], [2, 4, 32])
    x <<= 1
    assert x.tolist() == [2, 4, -10]


def test_nextafter_has_gradient_of_its_argument() -> None:
    assert pb.grad(lambda x: np.nextafter(x, 5.0) * x)(3.0) == pytest.approx(6.0)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_share_no_memory_and_keep_gradient(duplicate: Any) -> None:
    t = pb.tensor([1.0, 2.0])
    made = duplicate(t)
    made[0] = 9.0
    assert (t.tolist(), made.tolist()) == ([1.0, 2.0], [9.0, 2.0])

    def f(x: Any) -> Any:
        y = x * 1
        z = duplicate(y)
        z[0] = 0.0
        return (y * z).sum()

    np.testing.assert_array_equal(pb.grad(f)(np.array([3.0, 4.0])), [0.0, 8.0])
    v = pb.variable([1.0], trainable=False)
    again = duplicate(v)
    again.assign([2.0])
    assert (v.tolist(), again.tolist(), again.trainable) == ([1.0], [2.0], False)
    assert again.name != v.name


def test_dlpack_shares_memory_where_no_copy_is_allowed() -> None:
    t = pb.tensor([1.0, 2.0])
    shared = np.from_dlpack(t, copy=False)
    assert np.shares_memory(shared, np.asarray(t))
    assert not shared.flags.writeable
    assert not np.shares_memory(np.from_dlpack(t), np.asarray(t))
    assert xp.from_dlpack(np.array([1.0]), device="cpu").tolist() == [1.0]
