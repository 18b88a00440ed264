"""Dtypes: compiled code gives the dtypes and values of eager code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback.core.op import list_ops
from pullback.errors import IntegerRangeError

BACKENDS = pytest.mark.parametrize("backend", ["auto", "numpy"])
ALIKE = ["bool", "uint8", "int32", "int64", "float16", "float32"]
MIXED = [("bool", "float32"), ("uint8", "float16"), ("int64", "float32"), ("float32", "float64"), ("uint8", "int8")]
LOOSE = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4, "uint8": 1e-6, "int8": 1e-6, "bool": 1e-6}


def cast(x: Any, dtype: str) -> Any:
    return x > np.median(x) if dtype == "bool" else (np.abs(x) * 2).astype(dtype)


def attempt(f: Any, args: Any) -> Any:
    """Results with their dtypes, or the kind of error."""
    try:
        made = f(*args)
    except Exception as error:
        return type(error).__name__
    return [np.asarray(z) for z in (made if isinstance(made, tuple | list) else [made])]


OPS = [op for op in list_ops() if not op.name.startswith("gamma_")]  # whose iterations take only floats


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_op_dtypes_match_eager(op: Any) -> None:
    inputs, params = op.acts.samples()[0]
    random = np.random.default_rng(0)
    floats = [i for i, x in enumerate(inputs) if isinstance(x, tuple | list) or x.dtype.kind == "f"]
    drawn = [random.uniform(*op.domain, size=x) if isinstance(x, tuple | list) else x for x in inputs]
    dtypes = [(d,) * len(floats) for d in ALIKE]
    if len(floats) == 2:
        dtypes += [*MIXED, *((b, a) for a, b in MIXED)]
    for k, chosen in enumerate(sample(dtypes, 2, first=len(op.name) % 2)):
        xs = [np.asarray(x) for x in drawn]
        for i, d in zip(floats, chosen, strict=True):
            xs[i] = cast(xs[i], d)
        f = lambda *args: op.call(list(args), params)
        for args in sample((xs, [pb.tensor(x) for x in xs]), 2, first=k % 2):
            want, got = attempt(f, args), attempt(pb.compile(f, backend="numpy"), args)
            if isinstance(want, str) or isinstance(got, str):
                assert isinstance(want, str) == isinstance(got, str), (chosen, want, got)
                continue
            assert [z.dtype for z in got] == [z.dtype for z in want], chosen
            for a, b in zip(got, want, strict=True):
                loose = max([LOOSE.get(d, 1e-9) for d in (str(b.dtype), *chosen)])
                np.testing.assert_allclose(a, b, rtol=loose, atol=loose, err_msg=str(chosen))


# ------------------------------------------------------------------ hard points


@BACKENDS
@pytest.mark.parametrize("f", [np.mean, np.average, pb.mean, np.var, np.std, lambda x: np.mean(x, 0, keepdims=True)])
def test_float16_mean_and_variance_near_overflow(f: Any, backend: str) -> None:
    large = np.full((100, 2), 60000.0, np.float16)
    for x in (large, np.linspace(-1, 1, 200).astype(np.float16).reshape(100, 2) * 200):
        with np.errstate(all="ignore"):
            want, got = f(pb.tensor(x)), pb.compile(f, backend=backend)(x)
        assert got.dtype == want.dtype == np.float16
        np.testing.assert_array_equal(got, want)


@BACKENDS
def test_power_dtype_of_bools_and_integers(backend: str) -> None:
    for x in (np.array([False, True]), np.array([2, 3], np.int32), np.array([2, 3], np.uint8)):
        for f in (
            lambda x: x**2, lambda x: x**3, lambda x: x**2.0, lambda x: x**3.0, lambda x: x**0.5, np.square,
            lambda x: x**x,
        ):  # fmt: skip
            want = f(x)
            for got in (f(pb.tensor(x)).numpy(), pb.compile(f, backend=backend)(x)):
                if want.dtype != np.float16:  # floats of 16 bits for bools and bytes are made longer
                    assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=1e-3)


@BACKENDS
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x // -3, lambda x: x + -3, lambda x: -3 * x, lambda x: x % -3, lambda x: x - 300, lambda x: x & 300,
        lambda x: np.maximum(x, -1), lambda x: -3 // x,
    ],
)  # fmt: skip
def test_python_integer_out_of_range_of_unsigned_array(f: Any, backend: str) -> None:
    x = np.array([7, 8], np.uint8)
    message = r"\w+: Python integer -?\d+ out of bounds for uint8\. .* cast that first, as in x\.astype\('int64'\)"
    with pytest.raises(IntegerRangeError, match=message):
        f(pb.tensor(x))
    with pytest.raises(IntegerRangeError, match=message):
        pb.compile(f, backend=backend)(x)
    with pytest.raises(OverflowError):
        f(pb.tensor(x))


@BACKENDS
def test_traced_integer_out_of_range_of_unsigned_array(backend: str) -> None:
    f = pb.compile(lambda x, n: x // n, backend=backend)
    np.testing.assert_array_equal(f(np.array([7, 8], np.uint8), 3), [2, 2])
    with pytest.raises(IntegerRangeError, match="Python integer -3 out of bounds for uint8"):
        f(np.array([7, 8], np.uint8), -3)


BIG = 2**63
PYTHON_INTEGERS = {
    "double": (lambda x: x * 2, [BIG // 2 - 1, BIG // 2, -BIG // 2, -BIG // 2 - 1]),
    "times factor of 2**63 - 1": (lambda x: x * ((BIG - 1) // 49), [49, 50, -49, -50]),
    "add": (lambda x: x + x, [BIG // 2 - 1, BIG // 2]),
    "subtract": (lambda x: x - 2, [2 - BIG, 1 - BIG]),
    "negate": (lambda x: -x, [BIG - 1, 1 - BIG, -BIG]),
    "absolute": (abs, [BIG - 1, -BIG]),
    "cube": (lambda x: x**3, [2**21 - 1, 2**21, -(2**21)]),
    "power": (lambda x: x**x, [15, 16]),
    "divide": (lambda x: x // -1, [BIG - 1, -BIG]),
    "divide by": (lambda x: 7 // x, [3, -3, 0]),
    "remainder": (lambda x: (BIG - 1) % x, [3, -3, BIG - 2, 0]),
    "with an array": (lambda x: (x * 4) * np.ones(2), [5, BIG // 2]),
}


@BACKENDS
@pytest.mark.parametrize("name", PYTHON_INTEGERS)
def test_python_integers_are_exact_or_raise(name: str, backend: str) -> None:
    f, numbers = PYTHON_INTEGERS[name]
    compiled = pb.compile(f, backend=backend)
    for x in numbers:
        try:
            wanted = f(x)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError, match=r"integer division or modulo by zero \(test_dtypes.py:\d+\)"):
                compiled(x)
            continue
        if np.max(np.abs(wanted)) > BIG or np.max(wanted) == BIG:
            with pytest.raises(IntegerRangeError, match="a result of Python integers has more than 64 bits"):
                compiled(x)
        else:
            np.testing.assert_array_equal(compiled(x), wanted)


@BACKENDS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zero", [np.array([False]), np.array([0.0])])
def test_zero_times_nan_in_products_of_one_element(zero: Any, dtype: Any, backend: str) -> None:
    y = np.full((1, 17), np.nan, dtype)
    f = lambda x, y: (np.tensordot(x, y, 1), np.tensordot(y.T, x, 1), np.einsum("i,ij->j", x, y), x[None] @ y)
    with np.errstate(all="ignore"):
        for z in (*f(pb.tensor(zero), pb.tensor(y)), *pb.compile(f, backend=backend)(zero, y)):
            assert np.isnan(np.asarray(z)).all()
        for g in (pb.grad, lambda f: pb.compile(pb.grad(f), backend=backend)):
            assert np.isnan(g(lambda w: pb.sum(w @ y * 0.0))(np.ones((1, 1), dtype))).all()


@BACKENDS
def test_segment_mean_of_integers_is_float64(backend: str) -> None:
    ids = np.array([0, 1, 0])
    f = lambda x: pb.unsorted_segment_mean(x, ids, 2)
    for x in (np.array([1, 2, 4]), np.array([1, 2, 4], np.uint8), np.array([True, False, False])):
        for z in (f(x), f(pb.tensor(x)).numpy(), pb.compile(f, backend=backend)(x)):
            assert z.dtype == np.float64
            np.testing.assert_array_equal(z, f(x))


@BACKENDS
def test_compiled_concat_stack_of_integers_and_float32_is_float32(backend: str) -> None:
    x, y = np.arange(2), np.ones(2, np.float32)
    for f in (lambda x, y: pb.concat([x, y]), lambda x, y: pb.stack([y, x])):
        assert f(pb.tensor(x), pb.tensor(y)).dtype == pb.compile(f, backend=backend)(x, y).dtype == np.float32
