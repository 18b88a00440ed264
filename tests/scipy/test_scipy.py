"""SciPy's routines compute with plain numbers: on traced ones they say what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from pullback.errors import (
    ArgumentError,
    ConvergenceError,
    MatrixError,
    NoRuleError,
    PullbackError,
    ShapeError,
    TracedValueError,
)

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


GRID = np.arange(4.0)
M = np.array([[2.0, 0.5, 0.1], [0.3, 1.5, 0.2], [0.1, 0.4, 3.0]])
IMAGE = np.cos(np.arange(30.0)).reshape(5, 6)
CUBIC = interpolate.BSpline(np.arange(8.0), GRID**2, 3)

# Options that only SciPy has: plain values go to it, and traced ones are refused.
ONLY_PLAIN: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "comb exact": (lambda s, x: s.special.comb(x, 2, exact=True), 5),
    "perm exact": (lambda s, x: s.special.perm(x, 2, exact=True), 5),
    "factorial exact": (lambda s, x: s.special.factorial(x, exact=True), 5),
    "factorial2": (lambda s, x: s.special.factorial2(x), 7),
    "qr pivoting": (lambda s, x: s.linalg.qr(x, pivoting=True)[1], M),
    "splev ext": (lambda s, x: s.interpolate.splev(x, (CUBIC.t, CUBIC.c, 3), ext=1), np.array([2.5, 9.0])),
    "map_coordinates order 4": (lambda s, x: s.ndimage.map_coordinates(x, [[1.2], [2.3]], order=4), IMAGE),
    "center_of_mass labels": (lambda s, x: s.ndimage.center_of_mass(x, np.indices((5, 6))[0] > 1), IMAGE),
    "filtfilt gust": (lambda s, x: s.signal.filtfilt([0.4, 0.2], [1.0, -0.3], x, method="gust"), IMAGE[0]),
    "sosfilt zi": (lambda s, x: s.signal.sosfilt([[1.0, 0.2, 0.1, 1.0, -0.3, 0.2]], x, zi=[[0.1, 0.2]])[1], IMAGE[0]),
    "resample t": (lambda s, x: s.signal.resample(x, 4, np.arange(6.0))[1] + s.signal.resample(x, 4), IMAGE[0]),
    "boxcox": (lambda s, x: s.stats.boxcox(x)[0], np.array([1.0, 2.0, 4.0, 7.0])),
    "yeojohnson": (lambda s, x: s.stats.yeojohnson(x)[0], np.array([-1.0, 2.0, 4.0, 7.0])),
    "fsolve full_output": (lambda s, x: s.optimize.fsolve(lambda z, a: z**2 - a, 1.0, x, full_output=True)[0], 2.0),
    "quad weight": (lambda s, x: s.integrate.quad(lambda t: t, x, 2.0, weight="cos", wvar=3.0)[0], 0.5),
    "norm.rvs": (lambda s, x: s.stats.norm.rvs(x, 1.0, 3, random_state=0), 0.5),
    "poisson.ppf": (lambda s, x: s.stats.poisson.ppf(x, 2.0), np.array([0.2, 0.7])),
    "dirichlet.rvs": (lambda s, x: s.stats.dirichlet.rvs(x, 2, random_state=0), np.array([1.0, 2.0])),
    "frozen norm.rvs": (lambda s, x: s.stats.norm(x, 1.0).rvs(3, random_state=0), 0.5),
    "frozen gamma.support": (lambda s, x: s.stats.gamma(x, loc=2.0).support(), 0.5),
}


@pytest.mark.parametrize("name", ONLY_PLAIN)
def test_options_of_scipy_without_derivative(name: str) -> None:
    call, x = ONLY_PLAIN[name]
    np.testing.assert_allclose(call(pb.scipy, x), call(scipy, x))
    np.testing.assert_allclose(call(pb.scipy, pb.tensor(x) if isinstance(x, np.ndarray) else x), call(scipy, x))
    with pytest.raises(NoRuleError, match="differentiable"):
        pb.grad(lambda x: np.sum(call(pb.scipy, x)))(np.asarray(x, float))


def test_scipy_functions_of_plain_matrices() -> None:
    np.testing.assert_allclose(pb.scipy.linalg.sqrtm(M), linalg.sqrtm(M))
    np.testing.assert_allclose(pb.scipy.linalg.logm(M), linalg.logm(M))
    np.testing.assert_allclose(pb.scipy.linalg.kron(M, X[None]), np.kron(M, X[None]))
    slopes = pb.grad(lambda x: np.sum(pb.scipy.linalg.kron(M, x[None]) ** 2))(X)
    np.testing.assert_allclose(slopes, 2 * X * np.sum(M**2))
    np.testing.assert_allclose(pb.scipy.optimize.fixed_point(np.cos, 0.5), optimize.fixed_point(np.cos, 0.5))


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "dct type": (lambda s: s.fft.dct(X, type=5), ArgumentError, "type must be 1, 2, 3 or 4, .* got 5 and None"),
    "dct type 1 of one number": (lambda s: s.fft.dct(X[:1], type=1), ArgumentError, "needs at least two numbers"),
    "dct of a number": (lambda s: s.fft.dct(2.0), ShapeError, "scipy.fft.dct: expected at least one axis"),
    "odeint options": (
        lambda s: s.integrate.odeint(lambda y, t: -y, X, GRID, full_output=True), ArgumentError, r"\['full_output'\]",
    ),
    "PPoly shapes": (lambda s: s.interpolate.PPoly(M, GRID[:3]), ShapeError, r"shape \(3, 3\) for .* \(3,\)"),
    "CubicSpline shapes": (lambda s: s.interpolate.CubicSpline(GRID, X), ShapeError, r"got shapes \(4,\) and \(2,\)"),
    "CubicSpline order": (lambda s: s.interpolate.CubicSpline(-GRID, GRID), ArgumentError, "strictly increasing"),
    "CubicSpline ends": (
        lambda s: s.interpolate.CubicSpline(GRID, GRID, bc_type="free"), ArgumentError, "unknown bc_type 'free'",
    ),
    "Akima method": (
        lambda s: s.interpolate.Akima1DInterpolator(GRID, GRID, method="makima"), NoRuleError, "method='makima' is not",
    ),
    "make_interp_spline ends": (
        lambda s: s.interpolate.make_interp_spline(GRID, GRID, bc_type=([(1, 0)], [(1, 0)])), NoRuleError, "by name",
    ),
    "interp1d kind": (lambda s: s.interpolate.interp1d(GRID, GRID, kind="odd"), ArgumentError, "unknown kind 'odd'"),
    "interp1d outside": (lambda s: s.interpolate.interp1d(GRID, GRID)(9.0), ArgumentError, "outside the data"),
    "grid method": (
        lambda s: s.interpolate.RegularGridInterpolator((GRID,), GRID, "cubic"), NoRuleError, "method='cubic' is not",
    ),
    "grid axes": (
        lambda s: s.interpolate.RegularGridInterpolator((GRID,), GRID)(M), ShapeError, "3 numbers for a grid of 1 axes",
    ),
    "grid outside": (
        lambda s: s.interpolate.RegularGridInterpolator((GRID,), GRID)([9.0]), ArgumentError, "outside the grid",
    ),
    "RBF neighbors": (lambda s: s.interpolate.RBFInterpolator(M, GRID[:3], 2), NoRuleError, "neighbors is not"),
    "RBF kernel": (
        lambda s: s.interpolate.RBFInterpolator(M, GRID[:3], kernel="k"), ArgumentError, "kernel must be one of .* 'k'",
    ),
    "RBF epsilon": (
        lambda s: s.interpolate.RBFInterpolator(M, X, kernel="gaussian"), ArgumentError, "'gaussian' needs epsilon",
    ),
    "RBF shapes": (lambda s: s.interpolate.RBFInterpolator(M, X), ShapeError, r"shape \(2,\) at .* \(3, 3\)"),
    "RBF places": (
        lambda s: s.interpolate.RBFInterpolator(M, GRID[:3], degree=0)(X), ShapeError, r"shape \(2,\) for data at",
    ),
    "solve assume_a": (lambda s: s.linalg.solve(M, GRID[:3], assume_a="odd"), ArgumentError, "unknown assume_a='odd'"),
    "solve_triangular trans": (
        lambda s: s.linalg.solve_triangular(M, GRID[:3], trans=3), ArgumentError, "trans must be 0, 1 or 2, .* got 3",
    ),
    "lu of a vector": (lambda s: s.linalg.lu(X), ShapeError, r"expected a matrix, got shape \(2,\)"),
    "lu_factor": (lambda s: s.linalg.lu_factor(M[:2]), ShapeError, r"square matrix, got shape \(2, 3\)"),
    "eigh subset": (lambda s: s.linalg.eigh(M, subset_by_value=[0, 1]), NoRuleError, "use subset_by_index"),
    "eig left": (lambda s: s.linalg.eig(M, left=True), NoRuleError, "only eigenvectors to the right"),
    "pinv atol": (lambda s: s.linalg.pinv(M, atol=0.1), NoRuleError, "give rtol"),
    "expm shape": (lambda s: s.linalg.expm(M[:2]), ShapeError, r"square matrices, got shape \(2, 3\)"),
    "expm of NaN": (lambda s: s.linalg.expm(M * np.nan), ArgumentError, "numbers that are not finite"),
    "ndimage weights": (lambda s: s.ndimage.correlate(IMAGE, X), ShapeError, "image of 2 axes, but weights of 1"),
    "map_coordinates rows": (
        lambda s: s.ndimage.map_coordinates(IMAGE, M), ShapeError, r"must have 2 rows, got shape \(3, 3\)",
    ),
    "shift cval": (lambda s: s.ndimage.shift(IMAGE, 1.0, cval=2.0), NoRuleError, "ndimage.shift: only cval=0"),
    "filter size": (lambda s: s.ndimage.maximum_filter(IMAGE), ArgumentError, "give the size of a filter"),
    "convolve mode": (lambda s: s.signal.fftconvolve(X, X, "all"), ArgumentError, "mode must be 'full', .* got 'all'"),
    "convolve valid": (
        lambda s: s.signal.fftconvolve(M[:2], M[:, :2], "valid"), ShapeError, "one must be as long along each axis",
    ),
    "convolve axes": (lambda s: s.signal.fftconvolve(M, X), ShapeError, "got 2 and 1 axes"),
    "filtfilt padtype": (
        lambda s: s.signal.filtfilt(X, X, np.arange(9.0), padtype="p"), ArgumentError, "padtype must be .* got 'p'",
    ),
    "filtfilt padlen": (lambda s: s.signal.filtfilt(X, X, GRID), ShapeError, "longer than padlen, 6; got 4"),
    "long axis": (lambda s: s.signal.resample(np.zeros(20_001), 3), ArgumentError, "length 20001 is too long"),
    "metric": (lambda s: s.spatial.distance.cdist(M, M, "dice"), ArgumentError, "metric 'dice' is not differentiable"),
    "cdist shapes": (lambda s: s.spatial.distance.cdist(M, M[:, :2]), ShapeError, r"\(3, 3\) and \(3, 2\)"),
    "pdist shape": (lambda s: s.spatial.distance.pdist(X), ShapeError, r"expected a matrix, got shape \(2,\)"),
    "squareform": (lambda s: s.spatial.distance.squareform(X), ShapeError, r"n \(n - 1\) / 2 elements .* got 2"),
    "too many parameters": (lambda s: s.stats.norm.pdf(0, 1, 2, 3), ArgumentError, "expected loc, scale; got 3"),
    "unknown parameter": (
        lambda s: s.stats.gamma.pdf(1.0, b=2.0), ArgumentError, r"scale; unknown: \['b'\], missing: \['a'\]",
    ),
    "continuous formula": (lambda s: s.stats.vonmises.ppf(0.3, 2.0), NoRuleError, "vonmises.ppf has no"),
    "discrete cdf": (lambda s: s.stats.betabinom.cdf(1, 8, 2.0, 3.0), NoRuleError, "betabinom.cdf has no"),
    "discrete sf": (lambda s: s.stats.betabinom.sf(1, 8, 2.0, 3.0), NoRuleError, "betabinom.sf has no"),
    "discrete moment": (lambda s: s.stats.logser.var(0.3), NoRuleError, "logser.var has no"),
    "singular covariance": (
        lambda s: s.stats.multivariate_normal.logpdf(X, X, -np.eye(2), allow_singular=True), MatrixError, "negative",
    ),
    "dirichlet shape": (
        lambda s: s.stats.dirichlet.logpdf(X, GRID + 1), ShapeError, "alpha has 4 elements, .* or one less, got 2",
    ),
    "wishart shape": (lambda s: s.stats.wishart.logpdf(X, 3, M), NoRuleError, r"got shapes \(2,\) and \(3, 3\)"),
    "kde bandwidth": (lambda s: s.stats.gaussian_kde(GRID, "wide"), ArgumentError, "'silverman', got 'wide'"),
    "alternative": (
        lambda s: s.stats.ttest_1samp(GRID, 0.0, alternative="more"), ArgumentError, "alternative must .* 'more'",
    ),
    "skewtest": (lambda s: s.stats.skewtest(GRID), ArgumentError, "8 numbers or more, got 4"),
    "kurtosistest": (lambda s: s.stats.kurtosistest(GRID), ArgumentError, "5 numbers or more, got 4"),
    "bartlett": (lambda s: s.stats.bartlett(GRID), ArgumentError, "bartlett: expected two samples or more, got 1"),
    "levene": (lambda s: s.stats.levene(GRID, X, center="top"), ArgumentError, "center must be .* got 'top'"),
    "kstat": (lambda s: s.stats.kstat(GRID, 5), ArgumentError, "n must be 1, 2, 3 or 4, got 5"),
    "kstatvar": (lambda s: s.stats.kstatvar(GRID, 3), ArgumentError, "n must be 1 or 2, got 3"),
    "lmoment": (lambda s: s.stats.lmoment(X, order=3), ArgumentError, "the number of values, 2, got 3"),
    "quantile method": (lambda s: s.stats.quantile(X, 0.5, method="m"), ArgumentError, "method must be .* got 'm'"),
    "quantile shape": (lambda s: s.stats.quantile(M, X / 9), ArgumentError, r"\(2,\) for x of shape \(3, 3\)"),
    "directional_stats": (lambda s: s.stats.directional_stats(X), ArgumentError, r"two axes or more, got shape \(2,\)"),
    "differential_entropy": (lambda s: s.stats.differential_entropy(X), ArgumentError, "too few values, 2"),
    "least_squares loss": (
        lambda s: s.optimize.least_squares(lambda x: x, X, loss="l3"), ArgumentError, r"one of \['arctan'.* got 'l3'",
    ),
    "curve_fit": (
        lambda s: s.optimize.curve_fit(lambda x, *p: x, GRID, GRID), ArgumentError, "number of parameters cannot be",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_of_scipy_functions_raise(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call(pb.scipy)


# Arguments without a derivative, which would be lost.
CONSTANTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cumulative_simpson dx": (lambda x: pb.scipy.integrate.cumulative_simpson(GRID, dx=x[0]), "only y has"),
    "quad weight": (
        lambda x: pb.scipy.integrate.quad(lambda t: t * x[0], 0, 1, weight="cos", wvar=1.0)[0], "weight, wvar is not",
    ),
    "solve_ivp dense_output": (
        lambda x: pb.scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), x, dense_output=True).y, "dense_output are not",
    ),
    "BSpline knots": (lambda x: pb.scipy.interpolate.BSpline(x, [1.0], 0)(2.5), "knots are constants"),
    "make_interp_spline x": (lambda x: pb.scipy.interpolate.make_interp_spline(x, x, 1)(2.5), "x is a constant"),
    "map_coordinates nearest": (
        lambda x: pb.scipy.ndimage.map_coordinates(x, [[0.5]], order=3, mode="nearest"), "order must be 0 or 1, got 3",
    ),
    "shift": (lambda x: pb.scipy.ndimage.shift(IMAGE, x), "use map_coordinates"),
    "planck.entropy": (lambda x: pb.scipy.stats.planck(x).entropy(), "planck.entropy has no differentiable formula"),
    "frozen norm.expect": (lambda x: pb.scipy.stats.norm(x).expect(), "norm.expect is not differentiable here"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANTS)
def test_scipy_arguments_without_derivative_raise(name: str) -> None:
    call, message = CONSTANTS[name]
    with pytest.raises(NoRuleError, match=message):
        pb.grad(lambda x: np.sum(call(x)))(X)


def test_solve_ivp_of_solution_that_ends_raises() -> None:
    with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match="step size is less than spacing"):
        pb.grad(lambda y: pb.scipy.integrate.solve_ivp(lambda t, y: y**2, (0, 2), y, t_eval=[1.0, 2.0]).y[0, 0])(X)


def test_solve_ivp_with_too_many_steps_to_differentiate_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.scipy.integrate.MOST_STEPS", 3)
    with pytest.raises(ConvergenceError, match=r"\d+ steps of RK45 are too many to differentiate; at most 3"):
        pb.grad(lambda y: pb.scipy.integrate.solve_ivp(lambda t, y: -y, (0, 2), y, t_eval=[1.0]).y[0, 0])(X)


@pytest.mark.filterwarnings("ignore:Matrix is singular")  # of the matrix of ones by which shapes are found
def test_compiled_sqrtm_of_matrix_with_complex_root_raises() -> None:
    with pytest.raises(NoRuleError, match=r"sqrtm: the result is complex; call it outside of pb\.compile"):
        pb.compile(pb.scipy.linalg.sqrtm)(-np.diag(X))


def test_solve_of_banded_matrices_reads_the_band() -> None:
    solve = pb.scipy.linalg.solve
    b = GRID[:3]
    np.testing.assert_allclose(solve(M, b, assume_a="diagonal"), b / np.diag(M))
    np.testing.assert_allclose(solve(M, b, assume_a="tridiagonal"), np.linalg.solve(M * (M != 0.1), b))
    np.testing.assert_allclose(
        pb.grad(lambda m: np.sum(solve(m, b, assume_a="diagonal")))(M), np.diag(-b / np.diag(M) ** 2)
    )


def test_discrete_distribution_is_constant_in_its_points() -> None:
    found = pb.grad(lambda x: np.sum(pb.scipy.stats.poisson.logpmf(x, 2 * x)))(X)
    np.testing.assert_allclose(found, 2 * (X / (2 * X) - 1))


def test_attributes_of_scipy_objects() -> None:
    rotation = pb.scipy.spatial.transform.Rotation.from_rotvec(np.ones(3))
    assert pb.scipy.stats.gamma.a == stats.gamma.a
    for made in (pb.scipy.stats.norm(0.0, 1.0), pb.scipy.stats.norm, pb.scipy.stats.poisson, rotation):
        with pytest.raises(AttributeError, match="_unknown"):
            _ = made._unknown


ROTATIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "quaternion": (lambda r: r(X), r"four numbers, got shape \(2,\)"),
    "matrix shape": (lambda r: r.from_matrix(X), r"3 × 3 matrices, got shape \(2,\)"),
    "matrix": (lambda r: r.from_matrix(2 * np.eye(3)), "not orthogonal with determinant 1 .* off by 3.0e"),
    "angles": (lambda r: r.from_euler("xyz", X), r"'xyz' needs 3 angles, got shape \(2,\)"),
    "two axes": (lambda r: r.from_rotvec(np.ones(3)).as_euler("xy"), "expected three axes, got 'xy'"),
    "axes": (lambda r: r.from_euler("xw", X), "one to three of 'xyz', or of 'XYZ', got 'xw'"),
    "repeated axes": (lambda r: r.from_euler("xx", X), "must differ, got 'xx'"),
    "vectors": (lambda r: r.from_rotvec(X), r"from_rotvec: expected vectors of three numbers, got shape \(2,\)"),
    "unknown method": (lambda r: r.from_rotvec(np.ones(3)).reduce(), "reduce is not known here"),
}


@pytest.mark.parametrize("name", ROTATIONS)
def test_bad_arguments_of_rotation_raise(name: str) -> None:
    call, message = ROTATIONS[name]
    with pytest.raises(ArgumentError, match=message):
        call(pb.scipy.spatial.transform.Rotation)


def test_rotations_mix_with_those_of_scipy() -> None:
    ours, v = pb.scipy.spatial.transform.Rotation, np.array([0.3, -0.4, 0.5])
    one, other = Rotation.from_rotvec(v), Rotation.from_rotvec([[0.1, 0.2, 0.3], [1.0, 0.0, 0.2]])
    np.testing.assert_allclose((ours.from_rotvec(v) * other).as_matrix(), (one * other).as_matrix())
    np.testing.assert_allclose((other * ours.from_rotvec(v)).as_matrix(), (other * one).as_matrix())
    several = ours.from_rotvec(other.as_rotvec())
    assert len(several) == 2
    assert not several.single
    with pytest.raises(TypeError, match="Single rotation has no len"):
        len(several[0])


def test_compiled_rotation_from_matrix() -> None:
    matrix = Rotation.from_rotvec([0.3, -0.4, 0.5]).as_matrix()
    found = pb.compile(lambda m: pb.scipy.spatial.transform.Rotation.from_matrix(m).as_rotvec())(matrix)
    np.testing.assert_allclose(found, [0.3, -0.4, 0.5])


class Holder:
    """An object that holds a value where no function shows it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def residual(self, z: Any) -> Any:
        return z**2 - self.value


def test_installed_solvers_find_values_that_functions_use() -> None:
    def in_closure(x: Any) -> Any:
        if x is None:
            unset = 1.0

        def residual(z: Any) -> Any:
            return z**2 - x + (unset if z is None else 0.0)

        return optimize.brentq(residual, 0, 5)

    ways: dict[str, Callable[[Any], Any]] = {
        "closure": in_closure,
        "partial": lambda x: optimize.brentq(partial(lambda a, z: z**2 - a, x), 0, 5),
        "keyword": lambda x: optimize.brentq(partial(lambda z, a: z**2 - a, a=x), 0, 5),
        "method": lambda x: optimize.brentq(Holder(x).residual, 0, 5),
    }
    with pb.scipy.install():
        for name, f in ways.items():
            np.testing.assert_allclose(pb.grad(f)(2.0), 0.5 / np.sqrt(2.0), err_msg=name)
        area = pb.grad(lambda x: integrate.quad(Holder(x).residual, 0, 3)[0])(2.0)
        np.testing.assert_allclose(area, -3.0)


def test_installed_objects_of_plain_data_take_traced_places() -> None:
    spline, density = interpolate.CubicSpline(GRID, GRID**3), stats.gaussian_kde(GRID)
    at = np.array([0.3, 1.7])
    with pb.scipy.install():
        assert isinstance(spline, interpolate.CubicSpline)
        assert isinstance(pb.scipy.interpolate.CubicSpline(GRID, GRID), interpolate.CubicSpline)
        assert not isinstance(at, interpolate.CubicSpline)
        np.testing.assert_allclose(pb.grad(lambda x: np.sum(spline(x)))(at), 3 * at**2)
        found = pb.grad(lambda x: np.sum(density.logpdf(x)))(at)
    np.testing.assert_allclose(found, slope(lambda h: density.logpdf(at + h)), rtol=1e-6)


def test_installed_solvers_of_plain_functions() -> None:
    def fail(z: float) -> float:
        raise SystemError("of the function")

    with pb.scipy.install():
        np.testing.assert_allclose(np.cos(optimize.fixed_point(np.cos, 0.5)), optimize.fixed_point(np.cos, 0.5))
        with pytest.raises(SystemError, match="of the function"):
            optimize.brentq(fail, 0, 5)


def test_object_array_of_traced_numbers_without_derivative_raises() -> None:
    with pytest.raises(NoRuleError, match=r"scipy\.special\.factorial2 has no differentiable version"):
        pb.grad(lambda x: pb.scipy.special.factorial2(np.array([x[0], x[1]], object)))(X)
