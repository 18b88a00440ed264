"""SciPy's routines compute with plain numbers: on traced ones they say what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy
from scipy import fft as scipy_fft
from scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats
from scipy.spatial import distance
from scipy.spatial.transform import Rotation

import pullback as pb
from pullback.errors import ArgumentError, NoRuleError, PullbackError, TracedValueError

X = np.array([2.0, 3.0])

CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "brentq": (lambda x: optimize.brentq(lambda z: z**2 - x[0], 0, 5), "scipy.optimize.brentq"),
    "bisect": (lambda x: optimize.bisect(lambda z: z**2 - x[0], 0, 5), "scipy.optimize.bisect"),
    "fsolve": (lambda x: optimize.fsolve(lambda z: z**2 - x[:1], [1.0])[0], "scipy.optimize.fsolve"),
    "root": (lambda x: optimize.root(lambda z: z**2 - x[:1], [1.0]).x[0], "scipy.optimize.root"),
    "minimize": (lambda x: optimize.minimize(lambda z: np.sum((z - x) ** 2), X).fun, "scipy.optimize.minimize"),
    "quad": (lambda x: integrate.quad(lambda z: z**2 * x[0], 0, 1)[0], "scipy.integrate.quad"),
    "odeint": (lambda x: integrate.odeint(lambda y, t: -y * x[:1], [1.0], [0, 1.0])[-1, 0], "scipy.integrate.odeint"),
    "solve_ivp": (
        lambda x: integrate.solve_ivp(lambda t, y: -y * x[0], (0, 1), [1.0]).y[0, -1],
        "scipy.integrate.solve_ivp",
    ),
    "expm": (lambda x: linalg.expm(np.outer(x, x)), "scipy.linalg.expm"),
    "gaussian_filter": (lambda x: ndimage.gaussian_filter(x, 1.0), "scipy.ndimage.gaussian_filter"),
    "norm.cdf": (lambda x: stats.norm.cdf(x), "scipy.stats.norm.cdf"),
    "CubicSpline": (lambda x: interpolate.CubicSpline([0.0, 1.0], x), "scipy.interpolate.CubicSpline"),
    "cdist": (lambda x: distance.cdist(x[None], x[None]), "scipy.spatial.distance.cdist"),
    "skew": (lambda x: stats.skew(x), "scipy.stats.skew"),
    "lfilter": (lambda x: signal.lfilter([1.0], [1.0, 0.5], x), "scipy.signal.lfilter"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_scipy_solver_of_traced_values_raises(name: str) -> None:
    f, function = CALLS[name]
    message = f"pb.{function}, which is differentiable"
    with pytest.raises(TypeError, match=message) as caught:
        pb.grad(f)(X)
    assert isinstance(caught.value, PullbackError)


def test_brentq_inside_custom_root() -> None:
    root = pb.custom_root(lambda z, a: z**2 - a, lambda f, z0, a: optimize.brentq(f, 0, 5, args=(a,)))
    np.testing.assert_allclose(pb.grad(lambda a: root(1.0, a))(2.0), 0.5 / np.sqrt(2.0))


def test_scipy_solver_error_after_refused_conversion_suggests_replacement() -> None:
    calls = 0

    def residual(z: float, x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:  # C code goes on with the refusal set, and then anything may fail
            raise AttributeError("'numpy.float64' object has no attribute 'shape'")
        return z**2 - x[0]

    with pytest.raises(TypeError, match=r"pb\.scipy\.optimize\.brentq"):
        pb.grad(lambda x: x[0] * optimize.brentq(residual, 0, 5, args=(x,)))(X)
    assert calls > 1


def test_scipy_ufuncs_of_traced_values() -> None:
    np.testing.assert_allclose(pb.grad(lambda x: special.erf(x))(X), 2 / np.sqrt(np.pi) * np.exp(-X * X))
    np.testing.assert_allclose(pb.grad(lambda x: special.zeta(3.0, x))(X), -3 * special.zeta(4.0, X))
    np.testing.assert_allclose(
        pb.grad(lambda x: special.gammainc(x, 2.0))(X), slope(lambda h: special.gammainc(X + h, 2.0))
    )


def slope(f: Callable[[float], Any]) -> Any:
    h = 1e-3
    return (8 * (f(h / 2) - f(-h / 2)) - (f(h) - f(-h))) / (6 * h)


@pytest.mark.parametrize("a", [2e-3, 0.3, 5.0, 3e4])
def test_gammainc_betainc_gradient_by_shape(a: float) -> None:
    """Where most of an integral is nearer to an end than floats reach, and where a peak is narrow."""
    x = np.array([0.05, 0.7, 1.0, 1.3]) * a
    h = 1e-3 * min(a, np.sqrt(a))

    def slope_by(f: Callable[[float], Any]) -> Any:
        first, second = ((f(a + k) - f(a - k)) / (2 * k) for k in (h, h / 2))
        return (4 * second - first) / 3

    found = pb.jacobian(lambda a: special.gammainc(a, x))(a)
    np.testing.assert_allclose(found, slope_by(lambda a: special.gammainc(a, x)), rtol=1e-5, atol=1e-9 / a)
    share = np.array([0.3, 0.6, 0.9, 0.999])
    for i, f in enumerate((lambda a: special.betainc(a, 1.7, share), lambda a: special.betainc(0.4, a, 1 - share))):
        np.testing.assert_allclose(pb.jacobian(f)(a), slope_by(f), rtol=1e-5, atol=1e-9 / a, err_msg=str(i))


def test_gammainc_betainc_gradient_by_shape_is_zero_at_ends() -> None:
    assert pb.grad(lambda a: special.gammainc(a, 0.0))(1.5) == 0
    assert pb.grad(lambda a: special.betainc(a, 2.0, np.array([0.0, 1.0])))(1.5) == 0


@pytest.mark.parametrize(("name", "size"), [("correlate", np.ones((3, 3))), ("maximum_filter", 3)])
def test_ndimage_filter_of_unknown_mode_raises(name: str, size: Any) -> None:
    with pytest.raises(pb.errors.ArgumentError, match="unknown mode 'mirrored', expected one of 'reflect'"):
        getattr(pb.scipy.ndimage, name)(pb.tensor(np.ones((4, 4))), size, mode="mirrored")


def test_ndimage_filter_writes_to_output() -> None:
    x, output = np.eye(4), np.zeros((4, 4))
    assert pb.scipy.ndimage.gaussian_filter(x, 1.0, output=output) is output
    np.testing.assert_allclose(output, ndimage.gaussian_filter(x, 1.0))
    assert pb.scipy.ndimage.sobel(x, output=np.float32).dtype == np.float32
    with pytest.raises(NoRuleError, match="gaussian_filter: a result that is written to output= would lose"):
        pb.grad(lambda x: pb.scipy.ndimage.gaussian_filter(x, 1.0, output=output).sum())(x)


def test_special_function_without_derivative_in_an_argument_raises() -> None:
    with pytest.raises(TypeError, match="yv has no derivative in its argument number 1"):
        pb.grad(lambda v: special.yv(v, 2.0))(0.5)


@pytest.mark.parametrize("name", ["dct", "idst", "fft", "hfft"])
def test_scipy_fft_takes_tensors(name: str) -> None:
    transform = getattr(scipy_fft, name)
    np.testing.assert_allclose(
        pb.grad(lambda x: np.sum(np.real(transform(x)) * [1.0, 2.0]))(X),
        [np.sum(np.real(transform(e)) * [1.0, 2.0]) for e in np.eye(2)],
    )
    assert isinstance(transform(X), np.ndarray)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.dia_array])
def test_products_with_sparse_arrays(kind: Any) -> None:
    dense = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    A = kind(dense)
    for f, g in [(lambda x: A @ x, lambda x: dense @ x), (lambda x: x @ A.T, lambda x: x @ dense.T)]:
        np.testing.assert_array_equal(pb.grad(lambda x, f=f: f(x) ** 2)(X), pb.grad(lambda x, g=g: g(x) ** 2)(X))
    assert isinstance(A @ pb.tensor(X), pb.Tensor)
    np.testing.assert_array_equal(pb.vmap(lambda x: A @ x)(np.eye(2)), dense.T)
    with pytest.raises(ValueError, match="shape"):
        A @ pb.tensor([1.0, 2.0, 3.0])


def test_sum_of_sparse_array_and_tensor_raises() -> None:
    with pytest.raises(TypeError, match="only products"):
        pb.tensor(np.eye(2)) + sparse.csr_array(np.eye(2))


EDGES: dict[str, tuple[Callable[[Any, Any], Any], float]] = {  # of the support, at poles, at the middle
    "rgamma": (lambda s, x: s.special.rgamma(x), -2.0),
    "poch": (lambda s, x: s.special.poch(x, 3.5), -1.0),
    "poch, a polynomial": (lambda s, x: s.special.poch(x, 2.0), -10.0),
    "binom by n": (lambda s, x: s.special.binom(x, 2.0), 0.0),
    "binom by k": (lambda s, x: s.special.binom(1.0, x), 3.0),
    "perm": (lambda s, x: s.special.perm(2.0, x), -1.5),
    "spherical_jn": (lambda s, x: s.special.spherical_jn(1, x), 0.0),
    "spherical_in": (lambda s, x: s.special.spherical_in(2, x), -1.3),
    "laplace.cdf": (lambda s, x: s.stats.laplace.cdf(x), 0.0),
    "lognorm.pdf": (lambda s, x: s.stats.lognorm.pdf(0.0, x), 0.8),
    "gamma.pdf": (lambda s, x: s.stats.gamma.pdf(0.0, 1.7, scale=x), 1.3),
    "genextreme.sf": (lambda s, x: s.stats.genextreme.sf(5.0, 0.2, scale=x), 1.0),
    "invgauss.logsf": (lambda s, x: s.stats.invgauss.logsf(30.0, x), 0.8),
    "invgauss.logcdf": (lambda s, x: s.stats.invgauss.logcdf(1e-6, x), 0.8),
}


@pytest.mark.parametrize("name", EDGES)
def test_scipy_derivatives_at_domain_edges(name: str) -> None:
    f, x = EDGES[name]
    theirs = SimpleNamespace(special=special, stats=stats)
    value, slope = pb.value_and_grad(lambda x: f(pb.scipy, x), unconnected="zero")(x)
    h = 1e-5
    expected = (f(theirs, x + h) - f(theirs, x - h)) / (2 * h)
    if not np.isfinite(expected):
        pytest.skip("this version of SciPy has no value on one side")
    np.testing.assert_allclose(value, f(theirs, x), rtol=1e-9)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


def test_generalized_eigenvalues_compiled() -> None:
    a, b = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, 0.2], [0.2, 3.0]])
    found = pb.compile(lambda a, b: pb.scipy.linalg.eigh(a, b)[1])(a, b)
    np.testing.assert_allclose(found, linalg.eigh(a, b)[1], rtol=1e-9)


def test_lfilter_of_long_signal_matches_scipy() -> None:
    b, a, x = np.array([0.3, 0.4]), np.array([1.1, -0.3, 0.1]), np.sin(np.arange(600.0) ** 2)
    state = np.array([0.2, -0.1])
    found, end = pb.scipy.signal.lfilter(b, a, x, zi=state)
    expected, expected_end = signal.lfilter(b, a, x, zi=state)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(end, expected_end, rtol=1e-9)
    slopes = pb.grad(lambda a: np.sum(pb.scipy.signal.lfilter(b, a, x) ** 2))(a)
    way, h = np.array([0.3, -1.0, 0.7]), 1e-6
    by_differences = [np.sum(signal.lfilter(b, a + s * way, x) ** 2) / (2 * s) for s in (h, -h)]
    np.testing.assert_allclose(np.sum(slopes * way), sum(by_differences), rtol=1e-5)


def test_unsupported_scipy_options_raise_by_name() -> None:
    data = np.array([1.0, 4.0, 2.0, 8.0, 5.0, 7.0, 3.0, 9.0])
    with pytest.raises(ArgumentError, match=r"pb\.scipy\.stats\.skew: nan_policy='omit' is not known"):
        pb.grad(lambda x: pb.scipy.stats.skew(x, nan_policy="omit"))(data)
    assert pb.scipy.stats.skew(np.append(data, np.nan), nan_policy="omit") == stats.skew(data)


NONLINEAR: dict[str, dict[str, Any]] = {"resample_poly": {"padtype": "median"}, "upfirdn": {"cval": 1.5}}


@pytest.mark.parametrize("name", NONLINEAR)
def test_filters_with_padding_that_is_not_linear(name: str) -> None:
    args = (X, 3, 2) if name == "resample_poly" else ([1.0, 2.0, 1.0], X, 2)
    ours, theirs = (getattr(module, name) for module in (pb.scipy.signal, signal))
    np.testing.assert_allclose(ours(*args, **NONLINEAR[name]), theirs(*args, **NONLINEAR[name]))
    with pytest.raises(NoRuleError, match=name):
        pb.grad(lambda x: np.sum(ours(*(x if a is X else a for a in args), **NONLINEAR[name])))(X)


def test_welch_without_derivative_takes_all_arguments() -> None:
    x = np.cos(np.arange(24.0)).reshape(12, 2)
    options: dict[str, Any] = {"nperseg": 6, "noverlap": 2, "scaling": "spectrum", "axis": 0, "average": "median"}
    np.testing.assert_allclose(pb.scipy.signal.welch(x, **options)[1], signal.welch(x, **options)[1])


def test_euler_angles_in_gimbal_lock_raise() -> None:
    with pytest.raises(ArgumentError, match="gimbal lock"):
        pb.scipy.spatial.transform.Rotation.from_euler("xyz", [0.1, np.pi / 2, 0.2]).as_euler("xyz")


def test_rotvec_derivative_at_zero_rotation() -> None:
    rotation = pb.scipy.spatial.transform.Rotation
    np.testing.assert_allclose(pb.jacobian(lambda v: rotation.from_rotvec(v).as_rotvec())(np.zeros(3)), np.eye(3))


@pytest.mark.skipif(np.lib.NumpyVersion(scipy.__version__) < "1.17.0", reason="older versions of SciPy have it in C")
def test_scipy_rotation_of_tensor_error_names_replacement() -> None:
    with pytest.raises(TracedValueError, match=r"Use pb\.scipy\.spatial\.transform\.Rotation\.from_rotvec"):
        pb.grad(lambda v: Rotation.from_rotvec(v).as_quat()[0])(np.ones(3))
