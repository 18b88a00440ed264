"""Calls of SciPy's functions, and the judge that compares their gradients with finite differences.

A call is an expression; the names in it that ``VALUES`` has are differentiated.
"""

# ruff: noqa: E501  # a call stays on its line

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

import pullback as pb
from pullback.core.tensor import Tensor
from pullback.errors import PullbackError

RNG = np.random.default_rng(7)


def _spd(n: int) -> Any:
    a = RNG.normal(size=(n, n))
    return a @ a.T / n + np.eye(n)


VALUES: dict[str, Any] = {
    "x": RNG.uniform(0.5, 3, 5), "y": RNG.uniform(0.5, 3, 5), "p": RNG.uniform(0.1, 0.9, 5), "q": RNG.uniform(0.1, 0.9, 5),
    "z": RNG.normal(size=5), "a": np.array(1.7), "b": np.array(0.6), "d": np.array(3.4),
    "A": RNG.normal(size=(4, 4)) / 2 + 2 * np.eye(4), "S": _spd(4), "B": _spd(4), "u": RNG.normal(size=4),
    "R": RNG.normal(size=(5, 3)), "Q": RNG.normal(size=(6, 3)), "v": RNG.normal(size=12), "w": RNG.normal(size=12),
    "img": RNG.normal(size=(6, 7)), "ker": RNG.normal(size=(3, 3)), "C": RNG.normal(size=(2, 4)),
    "shares": np.array([0.2, 0.3, 0.1, 0.4]), "alpha": np.array([1.5, 2.5, 0.7, 1.1]),
    "times": np.array([0.31, 1.27, 2.44, 3.8]), "data": RNG.normal(size=6), "obs": RNG.normal(size=(3, 9)),
    "pos": RNG.uniform(0.5, 3, 9), "cplx": RNG.normal(size=6) + 1j * RNG.normal(size=6),
    "rot": np.array([0.3, -0.4, 0.5]), "quat": np.array([0.1, 0.2, 0.3, 0.9]), "vec": np.array([1.0, 2.0, 3.0]),
}  # fmt: skip
CONSTANTS: dict[str, Any] = {
    "n": np.array([0, 1, 2, 3, 5]), "grid": np.array([0.0, 0.5, 1.3, 2.0, 3.1, 4.0]), "np": np,
    "places": np.array([[0.5, 2.2, 4.4], [1.5, 3.3, 5.1]]),
}  # fmt: skip


def names_in(call: str) -> list[str]:
    return [name for name in VALUES if re.search(rf"(?<![\w.'\"]){name}(?![\w'\"=(])(?!\s*=[^=])", call)]


def project(result: Any) -> Any:
    """Return one number of everything in a result, with weights that differ."""
    count = 0

    def add(part: Any) -> Any:
        nonlocal count
        if part is None or isinstance(part, str | bool | np.bool_):
            return 0.0
        if isinstance(part, tuple | list):
            return sum((add(item) for item in part), 0.0)
        if isinstance(part, dict):
            return add(list(part.values()))
        part = part if isinstance(part, Tensor) else np.asarray(part)
        if part.dtype.kind in "iub":
            return 0.0
        weights = np.cos(1.0 + 0.7 * np.arange(count, count + part.size)).reshape(part.shape)
        count += part.size
        total = np.sum(np.real(part) * weights)
        return total + np.sum(np.imag(part) * weights[::-1]) if part.dtype.kind == "c" else total

    return add(result)


MODULES = ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "special", "stats")


def load_scipy() -> SimpleNamespace:
    """Return SciPy's modules."""
    return SimpleNamespace(
        **{name: import_module(f"scipy.{name}") for name in (*MODULES, "sparse")},
        distance=import_module("scipy.spatial.distance"), vq=import_module("scipy.cluster.vq"),
        Rotation=import_module("scipy.spatial.transform").Rotation,
    )  # fmt: skip


def load_ours() -> SimpleNamespace:
    """Return the modules of ``pb.scipy``, and SciPy's where there is none."""
    ours = {name: getattr(pb.scipy, name) for name in MODULES}
    return SimpleNamespace(
        **{
            **vars(load_scipy()),
            **ours,
            "distance": pb.scipy.spatial.distance,
            "Rotation": pb.scipy.spatial.transform.Rotation,
        }
    )


def run(call: str, modules: SimpleNamespace, values: dict[str, Any]) -> Any:
    return project(eval(parse(call), {**vars(modules), **CONSTANTS, **VALUES, **values}))


@cache
def parse(call: str) -> CodeType:
    return compile(call, "<call>", "eval")


def differentiate(f: Callable[[float], float]) -> float:
    """Return the derivative at 0, by central differences with three steps (Richardson's extrapolation)."""
    h = 2e-3
    first, second, third = ((f(k) - f(-k)) / (2 * k) for k in (h, h / 2, h / 4))
    return float((64 * third - 20 * second + first) / 45)


def judge(call: str, modules: SimpleNamespace, plain: SimpleNamespace) -> tuple[str, str]:
    """Return "right", "refused" or "wrong", and what was found.

    ``plain`` has SciPy's own functions, whose values and finite differences decide.
    """
    names = names_in(call)
    ways = {name: np.random.default_rng(len(name) + 3).normal(size=VALUES[name].shape) for name in names}

    def along(h: float) -> float:
        return float(run(call, plain, {k: VALUES[k] + h * ways[k] for k in names}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, slope = along(0.0), differentiate(along)
        try:
            got, grads = pb.value_and_grad(lambda v: run(call, modules, v), unconnected="zero")(
                {k: VALUES[k] for k in names}
            )
        except PullbackError as error:
            return "refused", f"{type(error).__name__}: {error}"
        except Exception as error:
            return "refused", f"(not ours) {type(error).__name__}: {error}"
    found = float(sum(np.sum(np.real(np.conj(grads[k]) * ways[k])) for k in names))
    if not np.isclose(got, value, rtol=1e-7, atol=1e-9):
        return "wrong", f"value {got!r}, SciPy's {value!r}"
    if not np.isclose(found, slope, rtol=3e-5, atol=1e-6):
        return "wrong", f"derivative {found!r}, by differences {slope!r}"
    return "right", ""


SPECIAL1 = [
    "erf",
    "erfc",
    "erfcx",
    "erfi",
    "expm1",
    "log1p",
    "cbrt",
    "exp2",
    "exp10",
    "gammaln",
    "gamma",
    "loggamma",
    "digamma",
    "psi",
    "rgamma",
    "ndtr",
    "log_ndtr",
    "expit",
    "log_expit",
    "entr",
    "exprel",
    "j0",
    "j1",
    "y0",
    "y1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "expi",
    "exp1",
    "dawsn",
    "spence",
    "cosm1",
    "sindg",
    "cosdg",
    "tandg",
    "cotdg",
    "sici",
    "shichi",
    "fresnel",
    "airy",
    "sinc",
    "lambertw",
    "wofz",
    "softplus",
]
SHARES1 = ["erfinv", "erfcinv", "ndtri", "logit", "ellipk", "ellipe", "ellipkm1"]
SPECIAL2 = [
    "beta",
    "betaln",
    "xlogy",
    "xlog1py",
    "rel_entr",
    "kl_div",
    "gammainc",
    "gammaincc",
    "chdtr",
    "chdtrc",
    "stdtr",
    "owens_t",
    "binom",
    "poch",
    "powm1",
    "boxcox",
    "boxcox1p",
    "inv_boxcox",
    "inv_boxcox1p",
    "huber",
    "pseudo_huber",
]
ORDERS = [
    "jv",
    "yv",
    "yn",
    "iv",
    "ive",
    "kv",
    "kve",
    "struve",
    "eval_legendre",
    "eval_chebyt",
    "eval_hermite",
    "pdtr",
    "jvp",
]

FIRST = [
    *[f"special.{f}(x)" for f in SPECIAL1], *[f"special.{f}(p)" for f in SHARES1],
    *[f"special.{f}(x, y)" for f in SPECIAL2], *[f"special.{f}(n, x)" for f in ORDERS],
    "special.betainc(x, y, p)", "special.betaincc(x, y, p)", "special.betaincinv(x, y, p)", "special.gammaincinv(x, p)",
    "special.gammainccinv(x, p)", "special.chdtri(x, p)", "special.fdtr(x, y, p)", "special.fdtrc(x, y, p)",
    "special.fdtri(x, y, p)", "special.stdtrit(x, p)", "special.bdtr(n, 8, p)", "special.nbdtr(n, 8, p)",
    "special.gdtr(x, y, p)", "special.ellipkinc(p, q)", "special.ellipeinc(p, q)", "special.hyp1f1(2.0, 3.0, x)",
    "special.hyp2f1(1.0, 2.0, 3.5, p)", "special.expn(2, x)", "special.zeta(3.0, x)", "special.polygamma(2, x)",
    "special.multigammaln(d, 3)", "special.logsumexp(z)", "special.logsumexp(R, axis=1)", "special.softmax(z)",
    "special.softmax(R, axis=0)", "special.log_softmax(z)", "special.ndtri_exp(-x)", "special.radian(x, y, p)",
    *[f"fft.{f}(v)" for f in ["fft", "ifft", "rfft", "hfft", "ihfft", "dct", "idct", "dst", "idst", "fftn", "ifftn", "rfftn", "fftshift"]],
    "fft.fft(cplx)", "fft.ifft(cplx)", "fft.irfft(cplx)", "fft.fft2(img)", "fft.ifft2(img)", "fft.rfft2(img)",
    "fft.irfftn(fft.rfftn(img))", "fft.dct(v, type=1)", "fft.dct(v, type=3, norm='ortho')", "fft.dct(v, type=4)",
    "fft.dst(v, type=1)", "fft.dst(v, type=3)", "fft.dctn(img)", "fft.idctn(img, norm='ortho')", "fft.dstn(img)",
    "fft.hfft2(img)", "fft.fft(v, n=16, norm='ortho')", "fft.ifftshift(v)",
    *[f"stats.{f}(pos)" for f in ["gmean", "hmean", "skew", "kurtosis", "zscore", "moment", "variation", "sem", "entropy", "kstat", "iqr"]],
    "stats.pmean(pos, 3)", "stats.describe(pos).variance", "stats.median_abs_deviation(pos)", "stats.trim_mean(pos, 0.2)",
    "stats.moment(pos, 3)", "stats.zmap(pos, obs[0])", "stats.tmean(pos)", "stats.tvar(pos)", "stats.tstd(pos)",
    "stats.tsem(pos)", "stats.gstd(pos)", "stats.circmean(pos)", "stats.circvar(pos)", "stats.circstd(pos)",
    "stats.kurtosis(pos, bias=False)", "stats.skew(pos, bias=False)", "stats.pearsonr(v, w)[0]", "stats.kstatvar(pos)",
    "stats.entropy(shares, alpha)", "stats.boxcox_llf(a, pos)", "stats.yeojohnson_llf(a, v)",
    "stats.differential_entropy(v)", "stats.chisquare(x, f_exp=x[::-1]).statistic", "stats.power_divergence(x, y * x.sum() / y.sum()).statistic",
    "stats.ttest_ind(v, pos).statistic", "stats.ttest_1samp(v, a).statistic", "stats.ttest_rel(v, w).statistic",
    "stats.normaltest(v).statistic", "stats.skewtest(v).statistic", "stats.kurtosistest(v).statistic",
    "stats.jarque_bera(v).statistic", "stats.f_oneway(v, pos).statistic", "stats.bartlett(v, pos).statistic",
    "stats.levene(v, pos).statistic", "stats.gzscore(pos)", "stats.lmoment(v)", "stats.directional_stats(R).mean_direction",
    "stats.quantile(pos, 0.3)", "stats.sigmaclip(pos).clipped", "stats.alexandergovern(v, pos).statistic",
    "integrate.trapezoid(v)", "integrate.trapezoid(w, x=np.cumsum(np.exp(v)))", "integrate.cumulative_trapezoid(v)",
    "integrate.cumulative_trapezoid(v, dx=a, initial=0)", "integrate.romb(z)", "integrate.cumulative_simpson(v)",
    "integrate.simpson(v)", "integrate.simpson(pos, dx=a)",
    "linalg.block_diag(A, S)", "linalg.orthogonal_procrustes(A, S)", "linalg.fiedler(u)",
    *[f"Rotation.from_rotvec(rot).{m}()" for m in ["as_matrix", "as_quat", "as_rotvec", "as_mrp", "magnitude"]],
    "Rotation.from_rotvec(rot).as_euler('xyz')", "Rotation.from_rotvec(rot).apply(vec)", "Rotation.from_quat(quat).as_matrix()",
    "Rotation.from_quat(quat).inv().as_rotvec()", "Rotation.from_euler('zyx', rot).as_quat()", "Rotation.from_mrp(rot).as_matrix()",
    "(Rotation.from_rotvec(rot) * Rotation.from_quat(quat)).as_matrix()",
    "optimize.rosen(v)", "optimize.rosen_der(v)", "optimize.rosen_hess(v)", "optimize.rosen_hess_prod(v, w)",
    "interpolate.RBFInterpolator(np.arange(12.0)[:, None], v)(times[:, None])",
    "signal.windows.general_hamming(7, a)", "signal.savgol_coeffs(5, 2) @ z", "signal.detrend(v)", "signal.hilbert(v)",
    "signal.convolve(v, z)", "signal.fftconvolve(img, ker)", "signal.oaconvolve(v, z)", "signal.freqz_zpk(p, q, a)[1]",
    "vq.whiten(obs)",
]  # fmt: skip

# ---- what only pb.scipy can do

LOC = "loc=z, scale=y"
CONTINUOUS = {
    "norm": "", "t": "x + 2, ", "chi2": "x, ", "f": "x, y + 4, ", "beta": "x, y, ", "gamma": "x, ", "expon": "", "lognorm": "y, ",
    "laplace": "", "logistic": "", "cauchy": "", "uniform": "", "weibull_min": "x, ", "pareto": "x + 2, ", "invgamma": "x + 2, ",
    "halfnorm": "", "halfcauchy": "", "gumbel_r": "", "gumbel_l": "", "rayleigh": "", "maxwell": "", "chi": "x, ",
    "triang": "p, ", "truncnorm": "-x, y, ", "loguniform": "p, y + 1, ", "powerlaw": "x, ", "fisk": "x + 2, ", "lomax": "x + 2, ",
    "genpareto": "p / 4, ", "genextreme": "p / 4, ", "weibull_max": "x, ", "invgauss": "x, ", "gompertz": "x, ",
    "hypsecant": "", "vonmises": "x, ", "skewnorm": "x, ", "exponnorm": "x, ", "nakagami": "x, ", "gennorm": "x + 1, ",
    "arcsine": "", "burr12": "x, y, ", "erlang": "2 * n + 1, ",
}  # fmt: skip
NO_SHARES = ("vonmises",)
NO_QUANTILES = ("vonmises", "invgauss", "skewnorm", "exponnorm", "gennorm")
NO_MOMENTS = (
    "cauchy", "halfcauchy", "vonmises", "genextreme", "gompertz", "nakagami", "burr12", "truncnorm", "invgauss",
)  # fmt: skip
NO_ENTROPY = (
    "f", "truncnorm", "genextreme", "gompertz", "nakagami", "burr12", "arcsine", "chi", "invgauss", "skewnorm", "exponnorm",
    "triang", "erlang",
)  # fmt: skip


def _distributions() -> list[str]:
    made = []
    for name, shapes in CONTINUOUS.items():
        inside = "0.3 * z" if name in ("norm", "t", "laplace", "logistic", "cauchy", "gumbel_r", "gumbel_l", "hypsecant",
                                       "vonmises", "skewnorm", "exponnorm", "gennorm", "genextreme") else "p"  # fmt: skip
        inside = {"pareto": "x + 1", "loguniform": "p + 0.9", "weibull_max": "-p", "truncnorm": "0.2 * z"}.get(
            name, inside
        )
        at = f"({inside}) * y + z, {shapes}{LOC}"
        methods = ["pdf", "logpdf"] + ([] if name in NO_SHARES else ["cdf", "sf", "logcdf", "logsf"])
        made += [f"stats.{name}.{m}({at})" for m in methods]
        if name not in NO_QUANTILES:
            made += [f"stats.{name}.{m}(q, {shapes}{LOC})" for m in ("ppf", "isf")]
        if name not in NO_MOMENTS:
            made += [f"stats.{name}.{m}({shapes}{LOC})" for m in ("mean", "var", "std")]
        if name not in NO_ENTROPY:
            made.append(f"stats.{name}.entropy({shapes}{LOC})")
    counts = {
        "poisson": "x", "binom": "8, p", "bernoulli": "p", "nbinom": "x, p", "geom": "p", "planck": "p", "logser": "p",
        "betabinom": "8, x, y", "skellam": "x, y",
    }  # fmt: skip
    for name, shapes in counts.items():
        at = "n + 1" if name in ("geom", "logser") else "n % 2" if name == "bernoulli" else "n"
        made += [f"stats.{name}.{m}({at}, {shapes})" for m in ("pmf", "logpmf")] + [f"stats.{name}.mean({shapes})"]
        if name not in ("logser", "betabinom", "skellam"):
            # of 0.3, where both are below 1
            made += [f"stats.{name}.{m}({at if name != 'bernoulli' else '0 * n'}, {shapes})" for m in ("cdf", "sf")]
        if name != "logser":
            made.append(f"stats.{name}.var({shapes})")
    return made


# Options and orders of arguments that are less usual.
OPTIONS = [
    "integrate.quad(lambda t: np.sqrt(t + a), 2, b)[0]", "integrate.quad(lambda t: np.exp(a * t), b, b)[0]",
    "integrate.quad(lambda t: np.exp(-a * t), np.inf, b)[0]", "integrate.quad(lambda t: np.exp(a * t), b, -np.inf)[0]",
    "integrate.quad(lambda t: np.sqrt(t + a), 2, 0, points=[1.0, 5.0])[0]", "integrate.dblquad(lambda y, x: a * x * y, 0, 1, b, 0)[0]",
    "integrate.solve_ivp(lambda t, y: -a * y, (1, b), u, rtol=1e-9, atol=1e-10).y[:, -1]",
    "integrate.odeint(lambda t, y: -a * y, u, [1.0, 0.3, 0.0], tfirst=True, rtol=1e-10, atol=1e-10)",
    "optimize.toms748(lambda t: t**3 - a, 0, 5, (), 2)", "optimize.brentq(lambda t: t**3 - a, 5, 0)",
    "signal.resample_poly(v, 3, 2, padtype='line')", "signal.resample_poly(v, 3, 2, padtype='mean')",
    "signal.upfirdn([1.0, 2.0, 1.0], v, 2, 3, mode='symmetric')", "signal.welch(v, nperseg=5, nfft=9, scaling='spectrum', return_onesided=False)",
    "signal.freqz_zpk(p, q, a, worN=16, whole=True, fs=3.0)", "signal.freqz_zpk(p, q, a, worN=times * 0.3)",
    "interpolate.RBFInterpolator(R, x)(Q)", "interpolate.RBFInterpolator(R, x, kernel='gaussian', epsilon=a)(Q)",
    "interpolate.RBFInterpolator(R, x, kernel='linear', smoothing=b)(Q)", "interpolate.RBFInterpolator(Q, Q, kernel='cubic')(R)",
    "interpolate.RBFInterpolator(R, x, kernel='inverse_quadratic', epsilon=1.3)(R)", "interpolate.RBFInterpolator(R, x, degree=-1)(Q)",
    "stats.ttest_ind(v, pos, alternative='less')[:2]", "stats.ttest_1samp(v, a, alternative='less').pvalue",
    "stats.ttest_rel(v, w, alternative='greater').pvalue", "stats.skew(R, axis=1, keepdims=True)", "stats.skew(v, 0, False, 'propagate')",
    "stats.zscore(v, nan_policy='propagate')", "stats.variation(pos, 0, 'propagate', 1)", "stats.levene(v, pos, center='mean')[:2]",
    "stats.kurtosistest(v, alternative='greater').pvalue",
    "stats.skewtest(v, alternative='less').pvalue", "stats.normaltest(v)[:2]", "stats.jarque_bera(v)[:2]", "stats.bartlett(v, pos, x)[:2]",
    "stats.lmoment(v, 3, standardize=False)", "stats.lmoment(R, order=[1, 3], axis=0)", "stats.describe(R)[2:]", "stats.kstatvar(pos, 1)",
    "stats.describe(R, axis=1, ddof=0, bias=False)[1:3]", "stats.sigmaclip(pos, 1.3, 1.3)[:3]",
    "Rotation.from_euler('xyz', R).apply(Q[:5], inverse=True)", "Rotation.from_euler('ZXZ', rot).as_euler('YXZ', degrees=True)",
    "(Rotation.from_rotvec(rot) ** 0.5).as_rotvec(degrees=True)", "Rotation.from_matrix(Rotation.from_rotvec(rot).as_matrix()).as_quat()",
    "Rotation.from_quat(quat).as_quat(canonical=True)",
    # Fourier transforms, integrals
    "fft.ihfft2(img)", "fft.ihfftn(img, norm='ortho')", "fft.dst(v, type=4)", "fft.dct(cplx)", "fft.dst(cplx, type=3)",
    "integrate.trapezoid(img, x=np.cumsum(np.exp(img), 0), axis=0)", "integrate.simpson(C[:, 0], x=np.cumsum(np.exp(C[:, 1])))",
    # splines of few points, other kinds of places
    "interpolate.CubicSpline(grid, data).derivative(-1)(times)", "interpolate.CubicSpline(grid, data).antiderivative(-1)(times)",
    "interpolate.CubicSpline(grid[:2], data[:2])(times)", "interpolate.CubicSpline(np.cumsum(x)[:3], z[:3])(times)",
    "interpolate.CubicSpline(grid[:2], data[:2], bc_type=('not-a-knot', 'natural'))(times)",
    "interpolate.CubicSpline(grid[:2], np.stack([data[0], data[0]]), bc_type='periodic')(times)",
    "interpolate.PchipInterpolator(grid[:2], data[:2])(times)", "interpolate.Akima1DInterpolator(grid[:2], data[:2])(times[:1])",
    "interpolate.BSpline(np.arange(10.0), data, 3).derivative(2)(times[:3] + 3)", "interpolate.BSpline(np.arange(10.0), data, 3).derivative(-1)(times[:3] + 3)",
    "interpolate.BSpline(np.arange(10.0), np.stack([data, data**2]), 3, axis=1).antiderivative(2)(times[:3] + 3)",
    "interpolate.BSpline(np.arange(10.0), data, 3, 'periodic').antiderivative()(times[:3] + 3)", "interpolate.BSpline(np.arange(10.0), data, 3).antiderivative(-1)(times[:3] + 3)",
    "interpolate.interp1d(grid, data, kind='zero')(times)", "interpolate.interp1d(grid, data, kind='slinear')(times)",
    "interpolate.RegularGridInterpolator((np.arange(6.0), np.arange(7.0)), img)((a + 0.2, times))",
    "interpolate.RegularGridInterpolator((np.arange(6.0), np.arange(7.0)), img)(vec[:2] + 0.3)", "interpolate.RegularGridInterpolator((grid,), data)(times)",
    "interpolate.RBFInterpolator(np.arange(12.0)[:, None], v, kernel='gaussian', epsilon=b)(times[:, None])",
    # linear algebra, images, signals
    "linalg.solve(A, u, assume_a='her')", "np.abs(linalg.eigh(S + 1j * (A - A.T))[1])", "linalg.pinv(R, rtol=1e-5)",
    "ndimage.map_coordinates(img, places, order=0)", "ndimage.affine_transform(img, 1 + 0.13 * vec[:2], order=1, mode='nearest')",
    "ndimage.affine_transform(img, np.concatenate([np.eye(2) + 0.1 * C[:, :2], C[:, 2:3]], 1), order=1)",
    "signal.convolve(z, v, mode='valid')", "signal.fftconvolve(ker, img, mode='valid')", "signal.fftconvolve(a, b)", "signal.fftconvolve(cplx, v)",
    "signal.correlate2d(img, ker, mode='same', boundary='wrap')", "signal.correlate2d(img, ker[:2, :2], mode='same', boundary='symm')",
    "signal.lfilter(p[:1], y[:1], np.tile(v, 100))", "signal.filtfilt([0.4, 0.2], [1.0, -0.3], v, padtype='constant')",
    "signal.filtfilt([0.4, 0.2], [1.0, -0.3], v, padtype=None)", "signal.periodogram(v, nfft=8, window='hann')[1]",
    "signal.periodogram(img, nfft=4, axis=0)[1]", "signal.welch(v, window=np.arange(1.0, 7.0))[1]", "signal.welch(v, window=[1.0, 2.0, 3.0, 2.0])[1]",
    "signal.welch(v, nperseg=6, detrend=lambda part: part - part[..., :1])[1]",
    # distances, rotations
    "distance.minkowski(x, z, np.inf)", "distance.cdist(R, Q, lambda s, t, k: k * np.sum((s - t) ** 2), k=a)", "distance.pdist(R, lambda s, t: np.sum((s - t) ** 2) ** 1.5)",
    "distance.squareform(distance.squareform(data))", "Rotation.from_quat(np.stack([quat, quat[::-1]]))[1].as_rotvec()",
    "(Rotation.identity() * Rotation.from_rotvec(rot)).as_matrix()", "(Rotation.from_rotvec(rot) * Rotation.identity(2)).as_matrix()",
    # special functions
    "special.polygamma(np.array([0, 1, 2, 0, 3]), x)", "special.comb(x + 3, 2.0, repetition=True)", "special.diric(x, 4)", "special.diric(10 * z, 3)",
    "special.diric(2 * np.pi * n + 1e-5 * z, 4)", "special.spherical_yn(n, -x)",
    *[f"special.spherical_{kind}n(n, x, derivative=True)" for kind in "jyik"],
    # distributions
    "stats.gamma.median(x, loc=z, scale=y)", "stats.gamma.nnlf((d, 0.0, a), pos)", "stats.gamma(x, scale=y).var()", "stats.poisson(x).pmf(n)", "stats.poisson(x).std()",
    "stats.bernoulli.entropy(p)", "stats.poisson.logcdf(n, x)", "stats.poisson.logsf(n, x)",
    "stats.multivariate_normal.logpdf(x, cov=a)", "stats.multivariate_normal.logpdf(a, cov=b)", "stats.multivariate_normal.logpdf(C, cov=S)",
    "stats.multivariate_normal.logpdf(u, u**2, np.exp(u))", "stats.multivariate_normal.logpdf(u, u**2, a)",
    "stats.multivariate_normal.logpdf(np.array([1.0, 1.0]) * a, np.array([0.5, 0.5]) * b, np.ones((2, 2)), allow_singular=True)",
    "stats.multivariate_t.pdf(u, 0 * u, S, df=d)", "stats.dirichlet.logpdf(shares[:3] / (shares.sum() + 0.3), alpha)", "stats.dirichlet.pdf(shares / shares.sum(), alpha)",
    "stats.dirichlet.cov(alpha)", "stats.multinomial.pmf(np.array([1, 0, 2, 3]), 6, shares / shares.sum())", "stats.multinomial.cov(6, shares / shares.sum())",
    "stats.wishart.pdf(S, d + 3, B)", "stats.gaussian_kde(pos, 'silverman')(x)", "stats.gaussian_kde(pos, bw_method=a)(x)", "stats.gaussian_kde(pos, lambda k: 2.0 / k.n)(x)",
    # summaries and tests
    *[f"stats.power_divergence(x, y * x.sum() / y.sum(), lambda_='{m}').statistic" for m in ("neyman", "cressie-read", "mod-log-likelihood")],
    "stats.hmean(pos, weights=obs[0] ** 2)", "stats.gmean(pos, weights=obs[0] ** 2)", "stats.median_abs_deviation(pos, scale='normal')",
    *[f"stats.kstat(pos, {n})" for n in (1, 3, 4)], "stats.differential_entropy(pos)", "stats.differential_entropy(pos, base=2)",
    "stats.ttest_1samp(obs, a, axis=1, keepdims=True)[:2]", "stats.normaltest(v, keepdims=True)[:2]",
    # solvers with derivatives that are given
    "optimize.minimize(lambda s: np.sum((s - u) ** 4 + a * s**2), 0 * u, jac=lambda s: 4 * (s - u) ** 3 + 2 * a * s, method='trust-exact', hess=lambda s: np.diag(12 * (s - u) ** 2 + 2 * a), tol=1e-12).x",
    "optimize.minimize(lambda s: np.sum((s - u) ** 4 + a * s**2), 0 * u, jac=lambda s: 4 * (s - u) ** 3 + 2 * a * s, method='trust-ncg', hessp=lambda s, p: (12 * (s - u) ** 2 + 2 * a) * p, tol=1e-12).x",
    "optimize.least_squares(lambda s, k: s**3 + s - k, np.zeros(4), args=(u,), jac=lambda s, k: np.diag(3 * s**2 + 1), xtol=1e-15, ftol=1e-15, gtol=1e-15).x",
    "optimize.root_scalar(lambda s: s**2 - a, x0=1.0, method='halley', fprime=lambda s: 2 * s, fprime2=lambda s: 2.0).root",
    "optimize.curve_fit(lambda t, k, m: k * t + m, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], data)[0]",
    # limits that touch the solution without holding it
    "optimize.minimize(lambda s: (s[0] - a) ** 2 + s[1] ** 2, np.array([0.1, 0.5]), method='SLSQP', constraints={'type': 'ineq', 'fun': lambda s: s[1]}, tol=1e-14).x",
    "optimize.minimize(lambda s: (s[0] - a) ** 2 + s[1] ** 2, np.array([0.1, 0.5]), bounds=optimize.Bounds([-np.inf, 0.0], np.inf), method='L-BFGS-B', tol=1e-14).x",
]  # fmt: skip
if not hasattr(import_module("scipy.stats"), "lmoment"):  # which are newer than the oldest SciPy
    OPTIONS = [call for call in OPTIONS if "lmoment" not in call]
SECOND = [
    *_distributions(), *OPTIONS,
    "stats.norm(z, y).logpdf(x)", "stats.gamma(x, scale=y).cdf(p)", "stats.norm.interval(0.9, loc=z, scale=y)",
    "stats.multivariate_normal.logpdf(u, 0 * u, S)", "stats.multivariate_normal.pdf(C, u, S)",
    "stats.multivariate_normal.entropy(u, S)", "stats.multivariate_normal(u, S).logpdf(C)",
    "stats.multivariate_t.logpdf(u, 0 * u, S, df=d)", "stats.dirichlet.logpdf(shares / shares.sum(), alpha)",
    "stats.dirichlet.mean(alpha)", "stats.dirichlet.var(alpha)", "stats.dirichlet.entropy(alpha)",
    "stats.multinomial.logpmf(np.array([1, 0, 2, 3]), 6, shares / shares.sum())", "stats.wishart.logpdf(S, d + 3, B)",
    "stats.gaussian_kde(pos)(x)", "stats.gaussian_kde(obs)(R.T)", "stats.gaussian_kde(pos).logpdf(x)",
    "stats.gaussian_kde(z, weights=x)(y)", "stats.wasserstein_distance(v, pos)", "stats.energy_distance(v, pos)",
    "stats.linregress(v, w)[:5]", "stats.ttest_ind(v, pos).pvalue", "stats.ttest_ind(v, pos, equal_var=False).pvalue",
    "stats.ttest_1samp(v, a).pvalue", "stats.pearsonr(v, w)[1]", "stats.boxcox(pos, a)", "stats.yeojohnson(v, a)",
    # linear algebra
    "linalg.solve(A, u)", "linalg.solve(S, u, assume_a='pos')", "linalg.solve(S, u, assume_a='sym')",
    "linalg.solve(A, S, transposed=True)", "linalg.solve(A, u, assume_a='upper triangular')",
    "linalg.solve(S, u, lower=True, assume_a='pos')",
    "linalg.solve_triangular(A, u)", "linalg.solve_triangular(A, u, lower=True)", "linalg.solve_triangular(A, S, trans=1)",
    "linalg.solve_triangular(A, u, lower=True, trans='T', unit_diagonal=True)", "linalg.cholesky(S)",
    "linalg.cholesky(S, lower=True)", "linalg.cho_solve((linalg.cholesky(S), False), u)", "linalg.cho_solve((linalg.cholesky(S, lower=True), True), A)",
    "linalg.cho_solve(linalg.cho_factor(S), u)", "linalg.cho_solve(linalg.cho_factor(S, lower=True), A)",
    "linalg.lu(A)[1:]", "linalg.lu(A, permute_l=True)", "linalg.lu(R)[1:]", "linalg.lu_solve(linalg.lu_factor(A), u)",
    "linalg.lu_solve(linalg.lu_factor(A), S, trans=1)", "linalg.lu_factor(A)[0]", "linalg.qr(R, mode='economic')",
    "linalg.qr(A)", "linalg.qr(A, mode='r')", "linalg.expm(A)", "linalg.expm(4 * A)", "linalg.sqrtm(S)", "linalg.sqrtm(S @ B + 2 * np.eye(4))",
    "np.abs(linalg.sqrtm(B - 2 * np.eye(4)))", "np.abs(linalg.logm(B - 2 * np.eye(4)))", "linalg.logm(S)", "linalg.sinm(A)", "linalg.cosm(A)", "linalg.tanm(A / 4)", "linalg.sinhm(A)", "linalg.coshm(A)", "linalg.tanhm(A / 4)",
    "linalg.solve_sylvester(A, S, B)", "linalg.solve_continuous_lyapunov(A, S)", "linalg.solve_discrete_lyapunov(A / 4, S)",
    "linalg.solve_banded((0, 1), np.exp(C), u)", "linalg.solve_banded((1, 1), np.exp(R.T), z)",
    "linalg.solveh_banded(np.exp(C) * np.array([[0.2], [3.0]]), u)", "linalg.solveh_banded(np.exp(C) * np.array([[3.0], [0.2]]), u, lower=True)",
    "linalg.toeplitz(u)", "linalg.toeplitz(u, z)", "linalg.circulant(u)", "linalg.hankel(u)", "linalg.hankel(u, z)",
    "linalg.solve_toeplitz(np.array([4.0, 1.0, 0.5, 0.2]) + 0.1 * u, alpha)", "linalg.solve_circulant(alpha + np.array([4.0, 0, 0, 0]), u)",
    "linalg.companion(u)", "linalg.leslie(u, vec)", "linalg.convolution_matrix(u, 6)", "linalg.convolution_matrix(u, 6, mode='same')",
    "linalg.block_diag(A, R)", "linalg.khatri_rao(A, C)", "linalg.eigvalsh(S)", "linalg.eigh(S)[0]", "np.abs(linalg.eigh(S)[1])",
    "linalg.eigh(S, B)", "linalg.eigvalsh(S, B)", "linalg.eigh(S, B, type=2)[0]", "linalg.eigh(S, subset_by_index=[1, 2])[0]",
    "linalg.svdvals(R)", "linalg.svd(R, full_matrices=False)[1]", "linalg.svd(R, compute_uv=False)", "np.abs(linalg.svd(R, full_matrices=False)[0])",
    "np.sort(np.real(linalg.eigvals(A)))", "np.sort(np.abs(linalg.eig(A)[0]))", "linalg.norm(A)", "linalg.norm(u, 1)", "linalg.norm(A, 2)", "linalg.norm(A, 'nuc')",
    "linalg.pinv(R)", "linalg.pinvh(S)", "linalg.inv(A)", "linalg.det(A)", "linalg.lstsq(R, z)[0]", "linalg.polar(A)", "linalg.polar(A, side='left')",
    # signals
    "signal.convolve(v, z)", "signal.convolve(v, z, mode='same')", "signal.convolve(v, z, mode='valid')", "signal.convolve(img, ker)",
    "signal.correlate(v, z)", "signal.correlate(v, z, mode='same')", "signal.correlate(z, v, mode='valid')", "signal.correlate(img, ker, mode='valid')",
    "signal.fftconvolve(img, ker, mode='same')", "signal.fftconvolve(img, ker[:1], axes=1)", "signal.convolve2d(img, ker)", "signal.convolve2d(img, ker, mode='same', boundary='symm')",
    "signal.convolve2d(img, ker, mode='same', boundary='wrap')", "signal.correlate2d(img, ker, mode='same')", "signal.correlate2d(img, ker, boundary='fill', fillvalue=1.5)",
    "signal.lfilter(z, np.array([1.0, -0.4, 0.2]), v)", "signal.lfilter([1.0, 0.3], np.array([2.0, 0.5]) + 0.1 * C[0, :2], v)", "signal.lfilter(u, [1.0], img, axis=0)",
    "signal.lfilter([1.0, 0.3, 0.1], [1.0, 0.5, 0.1], v, zi=C[0, :2])", "signal.lfilter_zi(np.array([1.0, 0.3, 0.2]) + 0.1 * vec, [1.0, -0.5, 0.1])",
    "signal.filtfilt([0.4, 0.2], [1.0, -0.3], v)", "signal.filtfilt(p[:2], np.array([1.0, -0.3]), v, padtype='even')", "signal.sosfilt(np.array([[1.0, 0.2, 0.1, 1.0, -0.3, 0.2], [1.0, 0.0, 0.1, 1.0, 0.1, 0.0]]) + a * np.array([[0.0, 0.2, 0.1, 0.0, 0.1, 0.2]]), v)",
    "signal.sosfiltfilt(np.array([[1.0, 0.2, 0.1, 1.0, -0.3, 0.2]]), img, axis=1, padlen=3)", "signal.savgol_filter(v, 5, 2)", "signal.savgol_filter(img, 3, 1, deriv=1, axis=0, mode='nearest')",
    "signal.savgol_filter(v, 5, 2, mode='constant', cval=1.0)", "signal.detrend(v)", "signal.detrend(img, axis=0, type='constant')", "signal.hilbert(v)", "signal.hilbert(img, axis=0)",
    "signal.periodogram(v)[1]", "signal.periodogram(v, fs=3.0, window='hann', scaling='spectrum')[1]", "signal.welch(v, nperseg=6)[1]", "signal.welch(img, nperseg=4, axis=1, detrend='linear')[1]",
    "signal.welch(v, nperseg=6, return_onesided=False)[1]", "signal.resample(v, 7)", "signal.resample_poly(v, 3, 2)", "signal.upfirdn([1.0, 0.5], v, 2)",
    # images
    *[f"ndimage.convolve(img, ker, mode='{m}')" for m in ("reflect", "mirror", "nearest", "wrap", "constant")],
    "ndimage.convolve(img, ker[:2], origin=(0, 1))", "ndimage.correlate(img, ker, mode='constant', cval=1.5)", "ndimage.correlate1d(img, vec, axis=0)", "ndimage.convolve1d(img, u, mode='wrap')",
    "ndimage.gaussian_filter(img, a)", "ndimage.gaussian_filter(img, 1.0, order=(1, 2))", "ndimage.gaussian_filter1d(img, b, axis=0, order=1)", "ndimage.gaussian_laplace(img, 0.8)",
    "ndimage.gaussian_gradient_magnitude(img, 0.8)", "ndimage.uniform_filter(img, 3)", "ndimage.uniform_filter1d(img, 4, mode='nearest')", "ndimage.laplace(img)", "ndimage.sobel(img)", "ndimage.prewitt(img, axis=0)",
    "ndimage.map_coordinates(img, places + 0.1 * C[:, :3], order=1)", "ndimage.map_coordinates(img, places + 0.1 * C[:, :3], order=3)", "ndimage.map_coordinates(img, places + 0.1 * C[:, :3], order=2, mode='mirror')",
    "ndimage.map_coordinates(img, places * 2 + 0.1 * C[:, :3], order=1, mode='nearest')", "ndimage.map_coordinates(img, places * 2 + 0.1 * C[:, :3], order=3, mode='reflect')",
    "ndimage.map_coordinates(img, places * 2 + 0.1 * C[:, :3], order=3, mode='grid-wrap')", "ndimage.map_coordinates(img, places * 2 + 0.1 * C[:, :3], order=3, mode='constant', cval=0.5)",
    "ndimage.shift(img, (0.5, -1.2))", "ndimage.shift(img, 1.0, order=1, mode='nearest')", "ndimage.zoom(img, 2)", "ndimage.zoom(img, (0.5, 1.5), order=1)", "ndimage.spline_filter(img)", "ndimage.spline_filter1d(img, axis=0)",
    "ndimage.affine_transform(img, np.eye(2) + 0.1 * C[:, :2], offset=vec[:2] * 0.2, order=1)", "ndimage.affine_transform(img, np.eye(2) + 0.1 * C[:, :2], order=3, mode='mirror')",
    "ndimage.maximum_filter(img, 3)", "ndimage.minimum_filter(img, (2, 3), mode='nearest')", "ndimage.median_filter(img, 3)", "ndimage.rank_filter(img, -2, footprint=np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]))", "ndimage.center_of_mass(np.exp(img))",
    "stats.chisquare(x).pvalue", "stats.power_divergence(x, lambda_='log-likelihood').statistic", "stats.f_oneway(v, pos).pvalue", "stats.tvar(pos, (0.6, 2.9))", "stats.tsem(pos, (0.6, 2.9))",
    # distances
    *[f"distance.cdist(R, Q, '{m}')" for m in ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "canberra", "braycurtis", "seuclidean", "mahalanobis"]],
    "distance.cdist(R, Q, 'minkowski', p=3)", "distance.cdist(np.exp(R), np.exp(Q), 'jensenshannon')", "distance.pdist(R)", "distance.pdist(R, 'cosine')", "distance.pdist(Q, 'mahalanobis')", "distance.pdist(Q, 'seuclidean')",
    "distance.squareform(distance.pdist(R))", "distance.squareform(data)", "distance.euclidean(x, y)", "distance.minkowski(x, y, 3)", "distance.jensenshannon(x, y)", "distance.mahalanobis(u, alpha, S)", "distance.cosine(x, y)",
    "distance.cityblock(x, z)", "distance.canberra(x, z)", "distance.correlation(x, z)", "distance.braycurtis(x, y)", "distance.chebyshev(x, z)", "distance.sqeuclidean(x, z)", "distance.seuclidean(x, z, y)",
    # integrals
    "integrate.simpson(v, x=np.cumsum(np.exp(w)))", "integrate.simpson(img, x=grid, axis=0)", "integrate.trapezoid(img, x=grid, axis=0)", "integrate.quad(lambda t: np.exp(-a * t * t), 0.0, b)[0]",
    "integrate.quad(lambda t, k: np.cos(k * t), b, a, args=(d,))[0]", "integrate.quad(lambda t: np.exp(-a * t * t), -np.inf, np.inf)[0]", "integrate.quad(lambda t: np.exp(-a * t), b, np.inf)[0]", "integrate.quad(lambda t: np.exp(a * t), -np.inf, b)[0]",
    "integrate.quad(lambda t: np.sqrt(t) * a, 0, b)[0]", "integrate.dblquad(lambda y, x: a * x * y, 0.0, b, 0.0, lambda x: x)[0]", "integrate.fixed_quad(lambda t: np.exp(-a * t), b, 2.0)[0]",
    "integrate.solve_ivp(lambda t, s: np.array([s[1], -a * s[0]]), (0.0, 2.0), C[:, 0], rtol=1e-9, atol=1e-9).y[:, -1]",
    "integrate.solve_ivp(lambda t, s, k: -k * s, (0.0, 1.5), u, t_eval=[0.3, 1.0], args=(a,), rtol=1e-10, atol=1e-10).y",
    "integrate.solve_ivp(lambda t, s: -a * s + np.sin(t), (0.0, b), u, method='DOP853', rtol=1e-10, atol=1e-10).y[:, -1]",
    "integrate.solve_ivp(lambda t, s: -a * s, (0.0, 1.0), u, method='RK23', t_eval=[0.5, 1.0], rtol=1e-7, atol=1e-9).y",
    "integrate.solve_ivp(lambda t, s: -a * s, (0.0, 1.0), u, method='DOP853', t_eval=[0.35, 1.0], rtol=1e-9, atol=1e-9).y",
    "integrate.solve_ivp(lambda t, s: -a * s, (0.0, 1.0), u, method='LSODA', rtol=1e-10, atol=1e-12).y[:, -1]", "integrate.solve_ivp(lambda t, s: -a * s, (0.0, 1.0), u, method='Radau', rtol=1e-9, atol=1e-12).y[:, -1]",
    "integrate.odeint(lambda s, t: -a * s, u, [0.0, 0.5, 1.0], rtol=1e-11, atol=1e-12)[-1]",
    # interpolation
    *[f"interpolate.CubicSpline(grid, data, bc_type='{m}')(times)" for m in ("not-a-knot", "natural", "clamped")], "interpolate.CubicSpline(grid, np.concatenate([data[:5], data[:1]]), bc_type='periodic')(times + 2)",
    "interpolate.CubicSpline(grid, data, bc_type=((1, 0.5), (2, 1.0)))(times)", "interpolate.CubicSpline(np.cumsum(x), z)(x + 1)", "interpolate.CubicSpline(grid, np.stack([data, data**2], 1))(times)", "interpolate.CubicSpline(grid, data)(times, 1)",
    "interpolate.CubicSpline(grid, data).integrate(b, a)", "interpolate.CubicSpline(grid, data).derivative()(times)", "interpolate.CubicSpline(grid, data).antiderivative()(times)", "interpolate.CubicSpline(grid, np.stack([data, data**2]), axis=1)(times)",
    "interpolate.PchipInterpolator(grid, data)(times)", "interpolate.PchipInterpolator(np.cumsum(x), z)(x + 1)", "interpolate.Akima1DInterpolator(grid, data)(times)", "interpolate.CubicHermiteSpline(grid, data, data**2)(times)", "interpolate.pchip_interpolate(grid, data, times)",
    "interpolate.interp1d(grid, data)(times)", "interpolate.interp1d(np.cumsum(x), z, fill_value='extrapolate')(y)", "interpolate.interp1d(grid, data, kind='cubic')(times)", "interpolate.interp1d(grid, data, kind='quadratic')(times)",
    "interpolate.interp1d(grid, data, kind='nearest')(times)", "interpolate.interp1d(grid, data, kind='previous')(times)", "interpolate.interp1d(grid, data, kind='next')(times)", "interpolate.interp1d(grid, np.stack([data, data**2]))(times)", "interpolate.interp1d(grid, data, bounds_error=False, fill_value=(1.0, 2.0))(times * 2)",
    "interpolate.make_interp_spline(grid, data)(times)", "interpolate.make_interp_spline(grid, data, k=2)(times)", "interpolate.make_interp_spline(grid, data, bc_type='natural')(times, 1)", "interpolate.BSpline(np.arange(10.0), data, 3)(times + 3)", "interpolate.BSpline(np.arange(10.0), data, 3)(times + 3, 1)",
    "interpolate.BSpline(np.arange(10.0), data, 3).integrate(3.2, 4 + b)", "interpolate.splev(times + 3, (np.arange(10.0), data, 3))", "interpolate.PPoly(C, np.arange(5.0))(times)",
    "interpolate.RegularGridInterpolator((np.arange(6.0), np.arange(7.0)), img)((places + 0.1 * C[:, :3]).T)", "interpolate.RegularGridInterpolator((np.arange(6.0), np.arange(7.0)), img, method='nearest')(places.T)", "interpolate.interpn((np.arange(6.0), np.arange(7.0)), img, (places + 0.1 * C[:, :3]).T)",
    "interpolate.RegularGridInterpolator((np.arange(6.0), np.arange(7.0)), img, bounds_error=False, fill_value=0.5)((2 * places + 0.1 * C[:, :3]).T)",
    # solvers
    "optimize.minimize(lambda s: np.sum((s - u) ** 4 + a * s**2), 0 * u, tol=1e-12).x", "optimize.minimize(lambda s, k: np.sum((s - k) ** 2 + s**4), np.zeros(4), args=(u,), method='BFGS', tol=1e-12).x",
    "optimize.minimize(lambda s: (s[0] - a) ** 2 + (s[1] - b) ** 2 + s[0] * s[1] / 3, np.array([0.1, 0.1]), bounds=[(0, 1), (None, None)], method='L-BFGS-B', tol=1e-14, options={'ftol': 1e-16, 'gtol': 1e-12}).x",
    "optimize.least_squares(lambda s: np.array([s[0] - a, s[1] - b * s[0], s[0] * s[1] - 1.0]), np.array([1.0, 1.0]), xtol=1e-15, ftol=1e-15, gtol=1e-15).x", "optimize.least_squares(lambda s, k: s**3 + s - k, np.zeros(4), args=(u,), xtol=1e-15, ftol=1e-15, gtol=1e-15).x",
    "optimize.least_squares(lambda s, k: s - k, np.zeros(4), args=(alpha,), loss='soft_l1', xtol=1e-15, ftol=1e-15, gtol=1e-15).x",
    "optimize.root(lambda s: s**3 + s - u, np.zeros(4), tol=1e-13).x", "optimize.fsolve(lambda s: s**3 + s - u, np.zeros(4), xtol=1e-13)", "optimize.brentq(lambda s: s**3 + a * s - 2, 0, 3)", "optimize.bisect(lambda s, k: s**3 + k * s - 2, 0, 3, args=(a,), xtol=1e-13)",
    "optimize.root_scalar(lambda s: s**2 - a, bracket=[0, 4], xtol=1e-14).root", "optimize.newton(lambda s, k: s**2 - k, 1.0, args=(a,), tol=1e-13)", "optimize.fixed_point(lambda s: np.cos(a * s), 0.5, xtol=1e-13)", "optimize.toms748(lambda s: s**3 + a * s - 2, 0, 3)",
    "optimize.minimize_scalar(lambda s: s**4 + (s - a) ** 2 + b * s, tol=1e-14).fun", "optimize.curve_fit(lambda t, k, m: k * t + m, np.arange(6.0), data)[0]", "optimize.curve_fit(lambda t, k, m: k * t + m, np.arange(6.0), data, jac=lambda t, k, m: np.stack([t, 1 + 0 * t], 1))[1]",
    "optimize.curve_fit(lambda t, k, m: k * t + m, np.arange(6.0), data, sigma=np.exp(data))[0]",
    # sparse
    "sparse.csr_array(CONST) @ u", "u @ sparse.csr_array(CONST)", "sparse.csc_array(CONST).dot(u)", "sparse.csr_matrix(CONST) * u", "sparse.coo_array(CONST) @ A", "A @ sparse.csr_array(CONST)",
]  # fmt: skip
CONSTANTS["CONST"] = np.diag([1.0, 2.0, 0.0, 3.0]) + np.diag([0.5, 0.0, -1.0], 1)
