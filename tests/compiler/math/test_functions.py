"""Every vector function: its error, special values, and the signs of zeros, at every width."""

from __future__ import annotations

import runpy
from inspect import getclosurevars
from pathlib import Path
from typing import Any

import lanes
import numpy as np
import pytest
from exhaustive import ALL
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.builder import Code, Value, constant
from pullback.compiler.math.functions import FUNCTIONS, VectorFunctions
from pullback.compiler.runtime.llvm import llvm_available
from pullback.compiler.target import MAX_ISA, get_target
from pullback.core.lowering import fold, scalar
from pullback.core.op import list_ops
from pullback.errors import CompileError

pytestmark = pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")
ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "accuracy.md"
FOUND = {
    cells[0].strip("`"): dict(zip(lanes.BOUND, map(float, cells[1:]), strict=True))
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
OWN_TESTS = (
    "select", "philox", "left_shift", "right_shift", "digamma", "erfc", "gammaln", "log_ndtr", "ndtr",
    "i0", "i0e", "i1", "i1e", "erfinv", "ndtri", "betaln", "polygamma",
)  # fmt: skip
FLOATS = [(dtype, width) for dtype, widths in lanes.WIDTHS.items() for width in widths]
INTEGERS = [(dtype, width) for dtype in ("i1", "i2", "i4", "i8", "u1", "u4", "u8", "b1") for width in (1, 16)]


def same(got: Any, want: Any) -> Any:
    """Return which elements are equal to the bit; all NaN are equal."""
    if want.dtype.kind != "f":
        return got == want
    return (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)


def numpys(name: str, *xs: Any) -> Any:
    with np.errstate(all="ignore"):
        if name == "floor_divide":  # of infinities as the Array API has it
            return pb.floor_div(*xs)
        return lanes.compute_exact(name, *xs).astype(xs[0].dtype) if name == "erf" else getattr(np, name)(*xs)


def show(bad: Any, *columns: Any) -> str:
    return str([tuple(c[i] for c in columns) for i in np.flatnonzero(bad)[:5]])


def test_accuracy_page_lists_every_function_within_bounds() -> None:
    assert sorted(FOUND) == sorted(lanes.ROUNDED)
    assert all(found[dtype] <= bound for found in FOUND.values() for dtype, bound in lanes.BOUND.items())


def test_accuracy_page_matches_script() -> None:
    script, page = runpy.run_path(str(ROOT / "script" / "accuracy_table.py")), PAGE.read_text("utf-8")
    assert page.startswith(script["HEAD"])
    assert page.endswith(script["FOOT"])


def test_every_function_of_lowerings_is_tested() -> None:
    formulas = [op.lower.emit for op in list_ops() if isinstance(op.lower, scalar | fold)]
    kernels = [k for formula in formulas for k in getclosurevars(formula).nonlocals.values() if isinstance(k, np.ufunc)]
    used = {name for formula in formulas for name in formula.__code__.co_names} | {k.__name__ for k in kernels}
    assert {"exp", "power", "floor_divide", "erf"} <= used
    functions = {name for name in used if isinstance(vars(np).get(name), np.ufunc) or name in FUNCTIONS}
    assert functions <= {*lanes.ROUNDED, *lanes.EXACT, *OWN_TESTS}


@pytest.mark.parametrize("dtype", lanes.BOUND)
@pytest.mark.parametrize("name", lanes.ROUNDED)
def test_errors_are_within_accuracy_page(name: str, dtype: str) -> None:
    if dtype == "f8" and not lanes.PRECISE:
        pytest.skip("long double has no more digits than double here")
    found, where = lanes.error(
        name, dtype, lanes.WIDTHS[dtype][-1], *lanes.arguments(name, dtype, n=4000 if ALL else 1500)
    )
    assert found <= (FOUND[name] if get_target().has_fma else lanes.BOUND)[dtype], where


@pytest.mark.parametrize("dtype", lanes.BOUND)
def test_errors_without_fma_are_within_bounds(dtype: str) -> None:
    if dtype == "f8" and not lanes.PRECISE:
        pytest.skip("long double has no more digits than double here")
    for name in lanes.ROUNDED:
        xs = lanes.arguments(name, dtype, n=400)
        found, where = lanes.error(name, dtype, 4, *xs, has_fma=False)
        assert found <= lanes.BOUND[dtype], (name, where)


@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_shifts_of_bools_have_no_vector_code(name: str) -> None:
    code = Code()
    x = constant(code, 1, "b1", 4)
    with pytest.raises(CompileError, match="for integers only"):
        getattr(VectorFunctions(code), name)(x, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "width"), FLOATS)
def test_every_vector_width_agrees(dtype: str, width: int) -> None:
    widest = lanes.WIDTHS[dtype][-1]
    for name in lanes.ROUNDED:
        xs = lanes.arguments(name, dtype, 1, 400)
        got, want = lanes.machine(dtype, width)(name, *xs), lanes.machine(dtype, widest)(name, *xs)
        bad = ~same(got, want)
        assert not bad.any(), (name, show(bad, *xs, got, want))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("has_fma", [True, False])
@pytest.mark.parametrize("dtype", lanes.BOUND)
@pytest.mark.parametrize("name", lanes.ROUNDED)
def test_special_values_match_numpy(name: str, dtype: str, has_fma: bool) -> None:
    xs = lanes.arguments(name, dtype, 2)
    width = lanes.WIDTHS[dtype][-1] if has_fma else 4
    got, want = lanes.machine(dtype, width, has_fma)(name, *xs), numpys(name, *xs)
    special = ~np.isfinite(want) | (want == 0) | ~np.isfinite(got) | (got == 0)
    edge = np.isinf(got) != np.isinf(want)  # at the largest number the last place decides
    edge &= np.maximum(np.abs(np.nan_to_num(got)), np.abs(np.nan_to_num(want))) == np.finfo(dtype).max
    tiny = (np.abs(got) <= 2 * np.finfo(dtype).smallest_subnormal) & (np.signbit(got) == np.signbit(want))
    bad = special & ~same(got, want) & ~edge & ~(tiny & (np.abs(want) <= 2 * np.finfo(dtype).smallest_subnormal))
    assert not bad.any(), show(bad, *xs, got, want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "width"), FLOATS)
def test_exact_functions_match_numpy(dtype: str, width: int) -> None:
    with_and_without_fma = (True, False) if width == 4 else (True,)
    for name in lanes.machine(dtype, width).functions:
        for has_fma in with_and_without_fma if name in lanes.EXACT else ():
            xs = lanes.arguments(name, dtype, 3, 1000)
            got, want = lanes.machine(dtype, width, has_fma)(name, *xs), numpys(name, *xs)
            bad = ~same(got, want)
            assert not bad.any(), (name, show(bad, *xs, got, want))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "width"), INTEGERS)
def test_integer_functions_match_numpy(dtype: str, width: int) -> None:
    x, y = lanes.wholes(dtype)
    for name in lanes.machine(dtype, width).functions:
        xs = (x, y)[: lanes.arity(name)]
        got, want = lanes.machine(dtype, width)(name, *xs), numpys(name, *xs)
        assert got.dtype == want.dtype
        assert not (got != want).any(), (name, show(got != want, *xs, got, want))


@pytest.mark.parametrize("dtype", lanes.BOUND)
def test_vector_lanes_are_independent(dtype: str) -> None:
    width = lanes.WIDTHS[dtype][-1]
    usual = np.linspace(0.3, 0.9, width).astype(dtype)
    for name in lanes.ROUNDED:
        alone = lanes.machine(dtype, width)(name, *[usual] * lanes.arity(name))
        for rare in (np.nan, np.inf, -1e300, 0.0):
            xs = usual.copy()
            with np.errstate(all="ignore"):
                xs[1] = rare
            beside = lanes.machine(dtype, width)(name, *[xs] * lanes.arity(name))
            assert same(np.delete(beside, 1), np.delete(alone, 1)).all(), (name, rare)


@pytest.mark.parametrize(
    ("exponent", "dtype"),
    [(2, "f4"), (3, "f8"), (4, "f8"), (6, "f4"), (8, "f4"), (0, "f8"), (np.inf, "f4"), (np.nan, "f8"), (2.5, "f4")]
    + [(exponent, dtype) for exponent in (-0.5, 1.5, -1, -2, 7, 64, -3, -64) for dtype in lanes.BOUND],
)
def test_power_with_constant_exponent(exponent: float, dtype: str) -> None:
    made = lanes.Machine(dtype, 4, {"it": (lambda s, x: s.power(x, exponent), 1)})
    x = lanes.points(dtype, 500)
    got, want = made("it", x), lanes.compute_exact("power", x, np.full_like(x, exponent))
    assert lanes.ulps(got, want).max() <= lanes.BOUND[dtype]
    assert (np.signbit(got) == np.signbit(want))[(got == 0) & (want == 0)].all()


@pytest.mark.parametrize("dtype", lanes.BOUND)
def test_power_half_is_sqrt(dtype: str) -> None:
    made = lanes.Machine(dtype, 4, {"it": (lambda s, x: s.power(x, 0.5), 1)})
    x = lanes.points(dtype, 500)
    assert same(made("it", x), numpys("sqrt", x)).all()


def test_integer_powers() -> None:
    made = lanes.Machine("i4", 4, {"it": (lambda s, x: s.power(x, 3), 1)})
    x = np.arange(-5, 7, dtype=np.int32)
    assert (made("it", x) == x**3).all()
    code = Code()
    with pytest.raises(CompileError, match="powers of integers"):
        VectorFunctions(code).power(Value(code, "%x", "i4", 4), Value(code, "%y", "i4", 4))


@pytest.mark.parametrize("bound", [0.0, -1.5, np.inf])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_maximum_minimum_with_constant_bound(name: str, bound: float) -> None:
    made = lanes.Machine("f4", 16, {"it": (lambda s, x: getattr(s, name)(x, bound), 1)})
    x = lanes.points("f4", 200)
    assert same(made("it", x), getattr(np, name)(x, np.full_like(x, bound))).all()


def test_select_of_numbers_has_dtype_of_comparison() -> None:
    code = Code()
    s, x = VectorFunctions(code), Value(code, "%x", "f4", 4)
    assert s.select(s.greater(x, 0), 1, -1).dtype == "f4"


def test_sin_and_cos_share_argument_reduction() -> None:
    one, both = Code(), Code()
    VectorFunctions(one).sin(Value(one, "%x", "f8", 8))
    s, x = VectorFunctions(both), Value(both, "%x", "f8", 8)
    s.sin(x), s.cos(x)
    assert len(both.lines) < 1.4 * len(one.lines)
    both.begin("elsewhere")
    assert not both.shared


def test_constant_number_is_rounded_to_dtype() -> None:
    code = Code()
    assert constant(code, 0.1, "f4", 8).number == np.float32(0.1)
    assert constant(code, 7, "i8", 1).number == 7
    assert constant(code, True, "b1", 4).number == 1
    assert Value(code, "%x", "f8", 4).number is None


def test_missing_machine_code_errors() -> None:
    code = Code()
    with pytest.raises(CompileError, match="no machine code for spherical_bessel"):
        VectorFunctions(code).spherical_bessel
    with pytest.raises(CompileError, match="for floats only"):
        VectorFunctions(code).exp(Value(code, "%x", "i4", 4))
    with pytest.raises(CompileError, match="integers and bools only"):
        VectorFunctions(code).bitwise_and(Value(code, "%x", "f4", 4), 1)
    with pytest.raises(CompileError, match="division of bools"):
        VectorFunctions(code).remainder(Value(code, "%x", "b1", 4), Value(code, "%y", "b1", 4))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", ["sigmoid", "log_sigmoid", "softplus", "elu", "selu", "relu", "leaky_relu", "step", "sign"]
)
def test_compiled_activations_match_eager(name: str, dtype: Any) -> None:
    x = lanes.points(np.dtype(dtype).str[1:], 300)
    op = getattr(pb, name)
    with np.errstate(all="ignore"):
        want = op(x)
    got = pb.compile(op)(x)
    apart = lanes.ulps(got, want.astype(np.float64 if dtype is np.float32 else np.longdouble))
    signs = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    assert not signs.any(), show(signs, x, got, want)
    assert apart.max() <= 4, show(apart > 4, x, got, want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exp_of_masked_scores_is_zero_and_small_results_are_subnormal(
    isa: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    ends = {"f4": (-104.5, -85.0), "f8": (-746.0, -705.0)}[dtype]
    info = np.finfo(dtype)
    x = np.concatenate([np.linspace(*ends, 2000), [-np.inf, -1e9, -1e30, float(info.min), 0.0, np.nan]]).astype(dtype)
    found, expected = pb.compile(np.exp, backend="llvm")(x), np.exp(x.astype("f8")).astype(dtype)
    np.testing.assert_allclose(found, expected, 4 * info.eps, float(info.smallest_subnormal))
    np.testing.assert_array_equal(found[-6:-2], 0.0)


@pytest.mark.parametrize("f", [np.left_shift, np.right_shift])
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u2", "u8"])
def test_shift_beyond_word_size(f: Any, dtype: str) -> None:
    x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 77, 5, 6] * 5, dtype)
    y = np.array([*range(8), 15, 16, 31, 32, 33, 63, 64, 65, 100, *range(18)], dtype)
    y = y if dtype[0] == "u" else np.where(y == 100, -1, y).astype(dtype)
    compiled = pb.compile(f, backend="llvm")
    np.testing.assert_array_equal(compiled(x, y), f(x, y), strict=True)
    assert not [k for k in compiled.lower(x, y).kernels if "NumPy" in k]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "i8", "u1"])
def test_differences_and_products_with_numbers_have_the_signs_of_numpy(dtype: str) -> None:
    least = np.iinfo(dtype).min if dtype[0] in "iu" else -0.0
    number = np.dtype(dtype).type

    def differences(x: Any) -> Any:
        return x - number(0), x - number(least), number(0) - x, x - number(3)

    def products(x: Any) -> Any:
        y = x * number(3)
        return -(x * number(0)), -x * number(2), -(-x * number(3)), -y, y, number(3) * -x

    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e300] if dtype[0] == "f" else [least, np.iinfo(dtype).max]
    with np.errstate(all="ignore"):
        x = np.array([*special, *range(40)]).astype(dtype)
        want = [*differences(x), *products(x)]
    for got, expected in zip(pb.compile(lambda x: (*differences(x), *products(x)))(x), want, strict=True):
        assert same(got, expected).all(), show(~same(got, expected), x, got, expected)
