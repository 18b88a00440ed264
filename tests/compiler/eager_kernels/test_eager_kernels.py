"""Eager ops with much to do, by machine code: the numbers of NumPy's kernels, and the same ones in every call."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.eager_kernels import elements, single_ops, sums
from pullback.compiler.runtime.llvm import InvalidCodeError, TranslatorError
from pullback.compiler.target import get_target
from pullback.core import accelerate
from pullback.core.op import find_op
from pullback.settings import MECHANISMS, SAFE

random = np.random.default_rng(0)
IMAGES = random.normal(size=(4, 24, 24, 16)).astype("f4")
FILTER = random.normal(size=(3, 3, 16, 24)).astype("f4")
TABLE = random.normal(size=(50, 64)).astype("f4")
BIG = TABLE.repeat(30, 0)
ROWS = random.integers(0, 50, 1000)
BY_CHANNEL = random.normal(size=(3, 3, 16, 1)).astype("f4")


@pytest.fixture(autouse=True)
def forget_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test decide anew who runs what."""
    monkeypatch.setattr(accelerate, "_programs", {})
    monkeypatch.setattr(accelerate, "_functions", {})
    monkeypatch.setattr(accelerate, "_sums", {})
    for variable in (SAFE, *MECHANISMS.values()):
        monkeypatch.delenv(variable, raising=False)


def run_by_numpy(f: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a function while machine code is switched off."""
    with monkeypatch.context() as patch:
        patch.setenv("PULLBACK_EAGER_KERNELS", "0")
        patch.setattr(accelerate, "_programs", {})
        patch.setattr(accelerate, "_functions", {})
        patch.setattr(accelerate, "_sums", {})
        return f()


def gradients(f: Callable[..., Any], *args: Any) -> Callable[[], list[Any]]:
    """Return a function that gives the value and the gradients of a program of two arrays."""

    def weighted(*xs: Any) -> Any:
        z = f(*xs)
        return pb.sum(z * np.cos(np.arange(z.size, dtype=z.dtype)).reshape(z.shape))

    def run() -> list[Any]:
        value, found = pb.value_and_grads(weighted)(list(args))
        return [f(*args), value, *found]

    return run


PROGRAMS = {
    "conv2d same": gradients(lambda x, w: pb.conv2d(x, w, 1, "same"), IMAGES, FILTER),
    "conv2d strided": gradients(lambda x, w: pb.conv2d(x, w, 2, "same"), IMAGES, FILTER),
    "conv2d dilated": gradients(lambda x, w: pb.conv2d(x, w, 1, "valid", dilations=2), IMAGES, FILTER),
    "conv2d float64": gradients(lambda x, w: pb.conv2d(x, w), IMAGES.astype("f8"), FILTER.astype("f8")),
    "conv2d channels first": gradients(
        lambda x, w: pb.conv2d(x, w, 1, "same", data_format="NCHW"), IMAGES.transpose(0, 3, 1, 2), FILTER
    ),
    "conv2d sliced": gradients(lambda x, w: pb.conv2d(x, w, 1, 1), IMAGES[:, ::2, 1:], FILTER[::-1]),
    "depthwise_conv2d": gradients(lambda x, w: pb.depthwise_conv2d(x, w, 1, "same"), IMAGES, BY_CHANNEL),
    "gather": gradients(lambda x: pb.gather(x, ROWS), TABLE),
    "rows by index": gradients(lambda x: x[ROWS - 50], TABLE),
    "unsorted_segment_sum": gradients(lambda x: pb.unsorted_segment_sum(x, ROWS - 1, 40), TABLE[ROWS]),
    "max_pool": gradients(lambda x: pb.max_pool(x, 3, 2, "same"), IMAGES),
    "avg_pool": gradients(lambda x: pb.avg_pool(x, 3, 2, "same"), IMAGES),
    "cumsum": gradients(lambda x: pb.cumsum(x, -1), TABLE.repeat(3, 0)),
    "cumsum backwards": gradients(lambda x: pb.cumsum(x, 0, True, True), TABLE.repeat(3, 0).astype("f8")),
    "cumprod": gradients(lambda x: pb.cumprod(np.cos(x), 1), TABLE.repeat(3, 0)),
    "softmax": gradients(lambda x: pb.softmax(x, axis=1), BIG.reshape(100, 60, 16)),
    "log_softmax": gradients(lambda x: pb.log_softmax(x, axis=1), BIG.reshape(100, 60, 16)),
    "log_sum_exp": gradients(pb.log_sum_exp, BIG.astype("f8")),
    "log_sum_exp of rows": gradients(lambda x: pb.log_sum_exp(x, -1, keepdims=True), BIG),
    "huber_loss": gradients(lambda x: pb.losses.huber_loss(np.zeros_like(BIG), x, delta=0.5), BIG),
    "relu": gradients(pb.relu, BIG),
    "topk": gradients(lambda x: pb.topk(x, 5).values, TABLE.repeat(3, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_eager_kernels_match_numpy_and_are_deterministic(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = PROGRAMS[name](), PROGRAMS[name]()
    assert accelerate._programs
    expected = run_by_numpy(PROGRAMS[name], monkeypatch)
    for x, y, z in zip(first, again, expected, strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(x, z, rtol=1e-4, atol=1e-4 * np.max(np.abs(z)))


@pytest.mark.parametrize("kind", ["nan", "inf", "ties"])
def test_max_pool_of_nan_inf_and_ties_equals_numpy(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = IMAGES.copy()
    x.flat[::7] = {"nan": np.nan, "inf": -np.inf, "ties": 0.5}[kind]
    if kind == "ties":
        x = np.round(x)
    run = gradients(lambda x: pb.max_pool(x, 2, 2), x)
    for got, want in zip(run(), run_by_numpy(run, monkeypatch), strict=True):
        np.testing.assert_array_equal(got, want)  # NaN is equal to NaN here


@pytest.mark.parametrize("kind", ["nan", "inf", "ties"])
def test_topk_of_nan_inf_and_ties_equals_numpy(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = TABLE.repeat(3, 0)
    x.flat[::7] = {"nan": np.nan, "inf": -np.inf, "ties": 0.5}[kind]
    if kind == "ties":
        x = np.round(x)
    want = run_by_numpy(lambda: pb.topk(x, 9).indices, monkeypatch)
    np.testing.assert_array_equal(pb.topk(x, 9).indices, want)


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (pb.cumsum, np.full(9000, 1e37, "f4"), "overflow"),
        (pb.cumprod, np.full(9000, 2.0), "overflow"),
        (pb.softmax, np.full((300, 300), -np.inf), "invalid"),
        (pb.log_softmax, np.full((300, 300), -np.inf), "invalid"),
    ],
)
def test_non_finite_results_warn_as_numpy_does(f: Callable[..., Any], x: Any, message: str) -> None:
    with pytest.warns(RuntimeWarning, match=message):
        z = f(x)
    assert not np.isfinite(z[-1]).any()


def test_conv2d_value_is_same_with_and_without_gradient() -> None:
    f = lambda x: pb.sum(pb.conv2d(x, FILTER))
    assert float(f(IMAGES)) == float(pb.value_and_grad(f)(IMAGES).value)


def test_window_kernels_do_not_depend_on_number_of_threads() -> None:
    before, found = pb.get_num_threads(), []
    try:
        for n in (1, 2):
            pb.set_num_threads(n)
            found.append(PROGRAMS["conv2d same"]())
    finally:
        pb.set_num_threads(before)
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


def test_small_and_integer_images_run_by_numpy() -> None:
    pb.conv2d(IMAGES[:1, :6, :6], FILTER)
    pb.max_pool(IMAGES.astype("i4"), 2, 2)
    assert not accelerate._programs


def test_signatures_beyond_limit_run_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerate, "MAX_SIGNATURES", 1)
    for size in (2, 3):
        want = run_by_numpy(lambda: pb.max_pool(IMAGES, size), monkeypatch)  # noqa: B023
        np.testing.assert_array_equal(pb.max_pool(IMAGES, size), want)
    assert len(accelerate._programs) == 1


def test_large_images_run_by_numpy_without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_ops, "llvm_available", lambda: False)
    got = pb.conv2d(IMAGES, FILTER)
    np.testing.assert_array_equal(got, run_by_numpy(lambda: pb.conv2d(IMAGES, FILTER), monkeypatch))


def fail_to_translate(*args: Any, **kwargs: Any) -> Any:
    raise TranslatorError("no LLVM")


@pytest.mark.usefixtures("every_function")
def test_ops_run_by_numpy_if_code_cannot_be_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_ops, "compile_graph", fail_to_translate)
    for module in (elements, sums):
        monkeypatch.setattr(module, "get_code", fail_to_translate)
    for f in (lambda: pb.conv2d(IMAGES, FILTER), lambda: pb.tanh(BIG), lambda: pb.sum(BIG, axis=0)):
        np.testing.assert_array_equal(f(), run_by_numpy(f, monkeypatch))


def test_invalid_code_of_op_warns_and_numpy_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise InvalidCodeError("the code of a program is invalid.")

    monkeypatch.setattr(single_ops, "compile_graph", fail)
    with pytest.warns(RuntimeWarning, match=r"is invalid\. NumPy runs .* instead\. Please report this"):
        found = pb.conv2d(IMAGES, FILTER)
    np.testing.assert_array_equal(found, run_by_numpy(lambda: pb.conv2d(IMAGES, FILTER), monkeypatch))


# ---- functions of elements


@pytest.mark.usefixtures("every_function")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("f", [pb.sin, pb.cos, pb.exp, pb.tanh, pb.log1p, pb.cosh])
def test_function_and_gradient_of_9000_elements(f: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = random.uniform(0.1, 3.0, 9000).astype(dtype)
    run = lambda: (f(x), pb.grad(f)(x))
    found = run()
    target = get_target()
    assert any(accelerate._functions.values()) == (target.vector_bytes >= elements.AVX2 and target.has_fma)
    for got, again, want in zip(found, run(), run_by_numpy(run, monkeypatch), strict=True):
        np.testing.assert_array_equal(got, again)
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)
    byte_swapped = x.astype(x.dtype.newbyteorder())
    np.testing.assert_array_equal(f(byte_swapped), f(np.array(byte_swapped)))


COUNT = 140_003  # elements: large in float32 and float64, and no whole number of vectors
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, 1e-310, 1e30, -1e30, 700.0, 0.5, -0.5, 3.0]


@pytest.fixture
def every_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let machine code run all functions, as where NumPy has none of its own for the CPU."""
    monkeypatch.setattr(elements, "has_numpy_avx512", lambda: False)


def compute_value(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the value of a function of a tensor that a gradient follows; the function itself is not differentiated."""
    found = []
    pb.grad(lambda x: (found.append(pb.stop_gradient(f(x))), x)[1])(x)
    return np.asarray(found[0])


@pytest.mark.usefixtures("every_function")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ufunc", sorted(accelerate.FUNCTIONS, key=lambda u: u.__name__))
def test_function_of_large_array_matches_numpy(ufunc: np.ufunc, dtype: str) -> None:
    low, high = (1.0, 9.0) if ufunc is np.arccosh else (0.01, 0.99)
    x = random.uniform(low, high, COUNT).astype(dtype)
    x[-len(SPECIAL) :] = x[: len(SPECIAL)] = SPECIAL
    f = ufunc if ufunc.nin == 1 else lambda x: ufunc(x, x * -0.5)
    with np.errstate(all="ignore"):
        got, again = compute_value(f, x), compute_value(f, x)
        want = f(x)
    np.testing.assert_array_equal(got, again)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    np.testing.assert_allclose(got, want, rtol=8 * float(np.finfo(dtype).eps), atol=float(np.finfo(dtype).tiny))
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["elu", "log_sigmoid", "selu", "sigmoid", "softplus"])
@pytest.mark.parametrize("count", [accelerate.MAX_NUMPY_ELEMENTS + 3, COUNT])
def test_activation_of_many_elements_matches_numpy(name: str, dtype: str, count: int) -> None:
    f = getattr(pb, name)
    x = (random.normal(size=count) * 3).astype(dtype)
    x[-len(SPECIAL) :] = SPECIAL
    with np.errstate(all="ignore"):
        want = f.op.kernel(x)
        for got in (f(x), f(x), compute_value(f, x)):
            np.testing.assert_allclose(got, want, rtol=16 * float(np.finfo(dtype).eps), atol=np.finfo(dtype).tiny)


@pytest.mark.usefixtures("every_function")
def test_function_with_a_number_as_operand() -> None:
    x = random.uniform(0.1, 2, COUNT)
    np.testing.assert_allclose(compute_value(lambda x: x**2.5, x), x**2.5, rtol=1e-15)
    np.testing.assert_allclose(compute_value(lambda x: np.arctan2(x, 2.0), x), np.arctan2(x, 2.0), rtol=1e-15)
    np.testing.assert_allclose(compute_value(lambda x: np.arctan2(2.0, x), x), np.arctan2(2.0, x), rtol=1e-15)


@pytest.mark.usefixtures("every_function")
def test_eager_kernel_gives_same_bits_without_known_array_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    x, op, results = np.linspace(-3.0, 3.0, 20_001), find_op("sigmoid"), []
    for is_known in (True, False):
        monkeypatch.setattr(elements, "is_layout_known", lambda is_known=is_known: is_known)
        function = elements.compile_function(op, x.dtype, (False,))
        if function is None:
            pytest.skip("NumPy runs it here")
        results.append(np.empty_like(x))
        assert not function.run(x, results[-1])
        assert function.run(np.array([np.nan, 0.0]), np.empty(2))
    assert results[0].tobytes() == results[1].tobytes()


def test_eager_kernels_of_unaligned_swapped_strided_and_broadcast_arrays() -> None:
    x = random.normal(size=(2, COUNT))
    unaligned = np.empty(8 * COUNT + 1, np.uint8)[1:].view("f8")
    unaligned[:] = x[0]
    for given in (unaligned, x[0].astype(">f8"), x.T[:, 0], np.broadcast_to(x[0, :1], COUNT)):
        np.testing.assert_allclose(compute_value(np.exp, given), np.exp(given), rtol=1e-15)


def test_convolution_of_swapped_bytes() -> None:
    np.testing.assert_allclose(pb.conv2d(IMAGES.astype(">f4"), FILTER), pb.conv2d(IMAGES, FILTER), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("every_function")
def test_square_of_large_array_is_exact() -> None:
    x = random.normal(size=COUNT).astype("f4")
    np.testing.assert_array_equal(compute_value(lambda x: np.power(x, 2), x), x * x)


@pytest.mark.usefixtures("every_function")
def test_functions_of_temporaries_and_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    x = random.uniform(-1, 1, (140, 1003))
    run = gradients(lambda x: np.sin(np.exp(np.tanh(x) + np.log1p(x * x)) * x) + np.cos(x) * np.sin(x), x)
    expected = run_by_numpy(run, monkeypatch)
    for got, want in zip(run(), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("every_function")
def test_elementwise_kernels_do_not_depend_on_number_of_threads() -> None:
    x, before, found = random.normal(size=COUNT), pb.get_num_threads(), []
    try:
        for n in (1, 2):
            pb.set_num_threads(n)
            found.append(compute_value(lambda x: np.exp(np.sin(x)), x))
    finally:
        pb.set_num_threads(before)
    np.testing.assert_array_equal(*found)


@pytest.mark.usefixtures("every_function")
def test_functions_of_large_arrays_warn_as_numpy_does() -> None:
    x = np.ones(COUNT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compute_value(np.log, x)
        compute_value(np.exp, np.where(x > 0, -np.inf, 0.0))
    x[-1] = 0.0
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        compute_value(np.log, x)
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp"):
        compute_value(np.exp, x * 1000.0)
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid value encountered in log"):
        compute_value(np.log, x - 2.0)
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow encountered in exp"):
        compute_value(np.exp, x * -1000.0)


def test_small_arrays_import_no_compiler() -> None:
    program = (
        "import sys, numpy as np, pullback as pb\n"
        "pb.grad(lambda x: np.sum(np.exp(x)))(np.ones(1000)), pb.conv2d(np.ones((1, 8, 8, 1)), np.ones((3, 3, 1, 1)))\n"
        "print([name for name in sys.modules if 'llvmlite' in name or name.startswith('pullback.compiler')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- sums


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((40_003,), None), ((40, 1021), 1), ((400, 101), -1), ((5000, 7), 0), ((12, 1000, 3), 1),
        ((30, 40, 97), (0, 1)), ((30, 40, 97), (1, 2)),
        ((9, 700, 33), 1), ((3, 33, 500), 2), ((2, 1100, 80), [1]), ((300, 3, 97), (0, 2)),
    ],
)  # fmt: skip
def test_sum_of_many_elements_is_exact_to_a_few_roundings(shape: Any, axis: Any, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for keepdims in (False, True):
        z = pb.sum(x, axis, keepdims)
        axes = tuple(axis) if isinstance(axis, list) else axis
        wanted = np.sum(x.astype(np.longdouble), axis=axes, keepdims=keepdims)
        scale = np.sum(abs(x.astype(np.longdouble)), axis=axes, keepdims=keepdims)
        assert z.dtype == dtype
        assert z.shape == wanted.shape
        assert np.all(abs(z - wanted) <= 8 * np.finfo(dtype).eps * scale)


def test_sum_of_many_elements_treats_zeros_nan_and_overflow_as_numpy() -> None:
    for x in (np.full(40_000, -0.0), np.full((400, 100), -0.0), np.full((5000, 7), -0.0)):
        assert str(pb.sum(x, 0)) == str(np.sum(x, 0))
    assert np.isnan(pb.sum(np.where(np.arange(40_000) == 7, np.nan, 1.0)))
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert np.isinf(pb.sum(np.full((400, 100), 1e307), 0)).all()


@pytest.mark.usefixtures("every_function")
@pytest.mark.parametrize("ufunc", [np.logaddexp, np.logaddexp2, np.arctan2, np.hypot])
def test_binary_functions_of_medium_arrays_match_small_ones(ufunc: Any) -> None:
    x, y = random.normal(size=(2, 10_001))
    f = pb.value_and_grads(lambda x, y: pb.sum(ufunc(x, y)))
    small = [f([x[i : i + 100], y[i : i + 100]]).grads for i in range(0, x.size, 100)]
    for got, parts in zip(f([x, y]).grads, zip(*small, strict=True), strict=True):
        np.testing.assert_allclose(got, np.concatenate(parts), rtol=1e-12, atol=1e-14)
    for operands in [(x, 2.0), (2, x), (x, y[:1]), (x.astype("f4"), np.float64(2)), (x[::2], y[::2]), (x, x)]:
        got, wanted = ufunc(*[pb.tensor(v) if np.ndim(v) else v for v in operands]).numpy(), ufunc(*operands)
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
