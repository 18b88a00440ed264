"""Special functions: SciPy's values, derivatives at the hard points, and the lazy import of SciPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback as pb
from pullback.errors import ArgumentError, MissingPackageError, NoRuleError

UNARY = [
    "digamma", "entr", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi", "expit", "gamma", "gammaln", "i0", "i0e",
    "i1", "i1e", "j0", "j1", "log_expit", "log_ndtr", "logit", "ndtr", "ndtri",
]  # fmt: skip
BINARY = ["beta", "betaln", "iv", "ive", "jv", "kl_div", "polygamma", "rel_entr", "xlog1py", "xlogy", "zeta"]
X = np.array([[0.1, 0.25, 0.5], [0.75, 0.8, 0.9]])


def test_every_special_function_is_covered() -> None:
    assert {*UNARY, *BINARY, "lgamma", "psi"} == {*pb.special.__all__}
    assert pb.special.lgamma is pb.special.gammaln
    assert pb.special.psi is pb.special.digamma


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values_match_scipy(name: str, dtype: Any) -> None:
    f, reference = getattr(pb.special, name), getattr(scipy.special, name)
    args = [X.astype(dtype)] if name in UNARY else [np.array([2, 3, 2]), X.astype(dtype)]
    wide = [np.asarray(a, float) for a in args]
    got = f(*args)
    assert isinstance(got, np.ndarray)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, reference(*wide), rtol=1e-13 if dtype is np.float64 else 2e-5)
    assert isinstance(f(*[float(a.flat[0]) for a in wide]), np.floating)
    tensor = f(*[pb.tensor(a) for a in args])
    assert isinstance(tensor, pb.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), got)


def test_scipy_functions_of_tensors() -> None:
    x = np.array([1.5, 2.5])
    np.testing.assert_array_equal(pb.grad(lambda x: scipy.special.gammaln(x))(x), scipy.special.digamma(x))
    np.testing.assert_allclose(pb.grad(lambda x: scipy.special.xlogy(2.0, x))(x), 2 / x)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_gammaln_higher_orders(order: int) -> None:
    x, f = np.array([0.3, 2.0, 11.0]), pb.special.gammaln
    for _ in range(order):
        f = pb.grad(f)
    np.testing.assert_allclose(f(x), scipy.special.polygamma(order - 1, x), rtol=1e-12)


@pytest.mark.parametrize("name", ["i1", "j1", "iv", "jv"])
def test_bessel_functions_at_zero(name: str) -> None:
    f = getattr(pb.special, name)
    of = (lambda x: f(1, x)) if name.endswith("v") else f
    assert pb.grad(of)(0.0) == 0.5
    third = pb.grad(pb.grad(pb.grad(of)))(0.0)
    np.testing.assert_allclose(third, 0.375 if name[0] == "i" else -0.375)


def test_products_with_a_logarithm_at_zero() -> None:
    x, y = np.array([0.0, 0.0, 2.0]), np.array([0.0, 0.5, 3.0])
    dx, dy = pb.grads(pb.special.xlogy)([x, y])
    np.testing.assert_allclose(dx, [0, np.log(0.5), np.log(3)])
    np.testing.assert_allclose(dy, [0, 0, 2 / 3])
    dx, dy = pb.grads(pb.special.xlog1py)([x, y - 1])
    np.testing.assert_allclose(dx, [0, np.log(0.5), np.log(3)])
    np.testing.assert_allclose(dy, [0, 0, 2 / 3])


def test_special_gradients_at_extreme_arguments() -> None:
    x = np.array([-40.0, -10.0, 0.0, 10.0])
    np.testing.assert_allclose(
        pb.grad(pb.special.log_ndtr)(x), np.exp(-x * x / 2 - scipy.special.log_ndtr(x)) / np.sqrt(2 * np.pi), rtol=1e-10
    )
    assert abs(pb.grad(pb.special.log_ndtr)(-40.0) / 40.025 - 1) < 1e-4  # it grows like -x
    np.testing.assert_allclose(pb.grad(pb.special.log_expit)(np.array([-800.0, 800.0])), [1, 0])
    q = np.array([1e-12, 0.5])
    slope = pb.grad(pb.special.ndtri)(q) * pb.grad(pb.special.ndtr)(scipy.special.ndtri(q))
    np.testing.assert_allclose(slope, 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "argument"), [("iv", "v"), ("ive", "v"), ("jv", "v"), ("polygamma", "n"), ("zeta", "x")]
)
def test_special_function_without_derivative_raises(name: str, argument: str) -> None:
    with pytest.raises(NoRuleError, match=f"{name} has no derivative in {argument} here"):
        pb.grad(lambda v: getattr(pb.special, name)(v, 1.5))(2.0)


def test_special_functions_without_scipy_raise() -> None:
    program = (
        "import sys; sys.modules['scipy'] = sys.modules['scipy.special'] = None\n"
        "import pullback as pb\n"
        "try: pb.special.gammaln(2.0)\n"
        "except ImportError as error: print(type(error).__name__, error)\n"
        "print(pb.grad(lambda a: pb.random.gamma([2], a, seed=1))(2.0) > 0)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    message, drawn = run.stdout.splitlines()
    assert message.startswith(MissingPackageError.__name__)
    assert message.endswith("pip install 'pullback[scipy]'")
    assert drawn == "True"


def test_scipy_is_imported_lazily() -> None:
    program = "import sys, pullback; print('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


# ---- complex numbers

Z = np.array([0.7 + 0.4j, -1.2 + 0.3j, 2.0 - 0.5j])
OF_COMPLEX = {
    "gamma": lambda s, z: s.gamma(z), "erfc": lambda s, z: s.erfc(z), "erfcx": lambda s, z: s.erfcx(z),
    "ndtr": lambda s, z: s.ndtr(z), "log_ndtr": lambda s, z: s.log_ndtr(z), "expi": lambda s, z: s.expi(z),
    "exp1": lambda s, z: s.exp1(z), "xlogy": lambda s, z: s.xlogy(z * z, z), "xlog1py": lambda s, z: s.xlog1py(z, z),
    "iv": lambda s, z: s.iv(1, z), "jv": lambda s, z: s.jv(2, z), "jv of a real order": lambda s, z: s.jv(0.5, z),
    "xlogy of a Python number": lambda s, z: s.xlogy(np.real(z), 2j) + z,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_arguments_keep_their_imaginary_part(name: str) -> None:
    f, t, h = OF_COMPLEX[name], np.array([1 + 2j, -0.5j, 0.3 - 1j]), 1e-6
    value = f(pb.special, Z)
    np.testing.assert_allclose(value, f(scipy.special, Z), rtol=1e-13)
    assert f(pb.special, pb.tensor(Z.astype(np.complex64))).dtype == np.complex64
    slope = (f(scipy.special, Z + h * t) - f(scipy.special, Z - h * t)) / (2 * h)
    for g in (lambda z: f(pb.special, z), pb.compile(lambda z: f(pb.special, z))):
        np.testing.assert_allclose(pb.jvp(g, [Z], [t])[1], slope, rtol=1e-6)
        dy = np.array([0.3 - 0.2j, 1.0, 2j])
        np.testing.assert_allclose(np.vdot(pb.grad(g)(Z, dy), t).real, np.vdot(dy, slope).real, rtol=1e-6)


@pytest.mark.parametrize("name", ["gammaln", "j0", "i1e", "expit", "entr", "erfinv", "ndtri"])
def test_complex_arguments_without_rule_raise(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name}: expected real numbers, got dtype complex128"):
        getattr(pb.special, name)(Z)
    with pytest.raises(ArgumentError, match="polygamma: expected real numbers"):
        pb.grad(pb.special.digamma)(Z, Z)
    with pytest.raises(ArgumentError, match="jv: the order must be real"):
        pb.special.jv(Z, Z)
    with pytest.raises(ArgumentError, match=r"erf: expected real numbers; of complex ones use 1 - pb\.special\.erfc"):
        pb.erf(np.zeros(500) + 1j)


DEPTH = """
import sys, pullback as pb
def watch(frame, event, arg):
    global depth, deepest
    depth += {"call": 1, "return": -1}.get(event, 0)
    deepest = max(deepest, depth)
for call in ("gammaln(x)", "polygamma(1, x)", "jv(1, x)", "iv(1, x)", "j0(x)", "beta(x, 2.0)"):
    f = eval(f"lambda x: pb.special.{call}")
    f(1.5)
    deepest = depth = 0
    sys.setprofile(watch)
    pb.grad(f)(1.5)
    sys.setprofile(None)
    assert deepest < 100, (call, deepest)
"""


def test_recursive_rules_compile_without_recursion() -> None:
    """In a process of its own, where no rule has been built before."""
    done = subprocess.run([sys.executable, "-c", DEPTH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["gammaln", "digamma", "erfc", "ndtr", "log_ndtr"])
def test_special_functions_of_many_elements_match_scipy(name: str, dtype: str) -> None:
    x = np.concatenate([np.linspace(-5.3, 20.0, 9000), [np.inf, np.nan, 0.0, -0.0, -2.0]]).astype(dtype)
    y = getattr(pb.special, name)(x)
    assert y.dtype == dtype
    bound = {"f4": 1e-6, "f8": 1e-12}[dtype]
    np.testing.assert_allclose(y, getattr(scipy.special, name)(x.astype("f8")), bound, bound)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_polygamma_of_many_elements_matches_scipy(n: int, dtype: str) -> None:
    x = np.concatenate([np.geomspace(1e-3, 1e5, 600), [np.inf]]).astype(dtype)
    for v in (x, np.append(x, x.dtype.type(np.nan)), np.append(x, x.dtype.type(-0.5))):
        y = pb.special.polygamma(n, v)
        assert y.dtype == dtype
        np.testing.assert_allclose(y, scipy.special.polygamma(n, v).astype(dtype), {"f4": 2e-7, "f8": 3e-15}[dtype])


@pytest.mark.parametrize("name", ["eval_chebyu", "eval_laguerre", "eval_legendre", "eval_chebyt"])
def test_gradients_of_orthogonal_polynomials(name: str) -> None:
    f, n = getattr(scipy.special, name), np.array([[0], [1], [4]])
    found = pb.grad(lambda x: np.sum(f(n, x)))(X[0])
    expected = np.sum(f(n, X[0] + 1e-6) - f(n, X[0] - 1e-6), 0) / 2e-6
    np.testing.assert_allclose(found, expected, 1e-7, 1e-9)


def test_wofz_of_complex_and_real_tensors() -> None:
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(scipy.special.wofz(pb.tensor(z)), scipy.special.wofz(z), 1e-14)
    np.testing.assert_allclose(scipy.special.wofz(pb.tensor(X)), scipy.special.wofz(X), 1e-14)
    found = pb.grad(lambda x: np.sum(np.abs(scipy.special.wofz(x + 0.5j)) ** 2))(X)
    sides = [np.abs(scipy.special.wofz(X + step + 0.5j)) ** 2 for step in (1e-6, -1e-6)]
    np.testing.assert_allclose(found, (sides[0] - sides[1]) / 2e-6, 1e-6, 1e-9)
