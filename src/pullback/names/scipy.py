"""The names of SciPy that ``pb.scipy`` has: for messages, for ``pb.scipy.install`` and for the documentation."""

from __future__ import annotations

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "fft": (
        "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "idct", "idctn",
        "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2",
        "irfftn", "rfft", "rfft2", "rfftn",
    ),
    "integrate": (
        "cumulative_simpson", "cumulative_trapezoid", "dblquad", "fixed_quad", "odeint", "quad", "romb", "simpson",
        "solve_ivp", "trapezoid",
    ),
    "interpolate": (
        "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator",
        "RBFInterpolator", "RegularGridInterpolator", "interp1d", "interpn", "make_interp_spline", "pchip_interpolate",
        "splev",
    ),
    "linalg": (
        "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "coshm",
        "cosm", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm", "fiedler", "hankel", "inv", "khatri_rao", "kron",
        "leslie", "logm", "lstsq", "lu", "lu_factor", "lu_solve", "norm", "orthogonal_procrustes", "pinv", "pinvh",
        "polar", "qr", "sinhm", "sinm", "solve", "solve_banded", "solve_circulant", "solve_continuous_lyapunov",
        "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester", "solve_toeplitz", "solve_triangular",
        "solveh_banded", "sqrtm", "svd", "svdvals", "tanhm", "tanm", "toeplitz",
    ),
    "ndimage": (
        "affine_transform", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter",
        "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "laplace", "map_coordinates",
        "maximum_filter", "median_filter", "minimum_filter", "prewitt", "rank_filter", "shift", "sobel",
        "spline_filter", "spline_filter1d", "uniform_filter", "uniform_filter1d", "zoom",
    ),
    "optimize": (
        "bisect", "brenth", "brentq", "curve_fit", "fixed_point", "fsolve", "least_squares", "minimize",
        "minimize_scalar", "newton", "ridder", "root", "root_scalar", "rosen", "rosen_der", "rosen_hess",
        "rosen_hess_prod", "toms748",
    ),
    "signal": (
        "convolve", "convolve2d", "correlate", "correlate2d", "detrend", "fftconvolve", "filtfilt", "freqz_zpk",
        "hilbert", "lfilter", "lfilter_zi", "oaconvolve", "periodogram", "resample", "resample_poly", "savgol_filter",
        "sosfilt", "sosfiltfilt", "upfirdn", "welch",
    ),
    "spatial.distance": (
        "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
        "jensenshannon", "mahalanobis", "minkowski", "pdist", "seuclidean", "sqeuclidean", "squareform",
    ),
    "spatial.transform": ("Rotation",),
    "special": (
        "airy", "bdtr", "bdtrc", "bdtri", "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln",
        "binom", "boxcox", "boxcox1p", "cbrt", "chdtr", "chdtrc", "chdtri", "comb", "cosdg", "cosm1", "cotdg",
        "dawsn", "digamma", "diric", "ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1", "entr", "erf", "erfc",
        "erfcinv", "erfcx", "erfi", "erfinv", "eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre",
        "eval_hermite", "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre", "eval_sh_chebyt",
        "eval_sh_chebyu", "eval_sh_legendre", "exp1", "exp10", "exp2", "expi", "expit", "expm1", "expn", "exprel",
        "factorial", "factorial2", "fdtr", "fdtrc", "fdtri", "fresnel", "gamma", "gammainc", "gammaincc",
        "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc", "huber", "hyp0f1", "hyp1f1", "hyp2f1",
        "hyperu", "i0", "i0e", "i1", "i1e", "inv_boxcox", "inv_boxcox1p", "iv", "ive", "ivp", "j0", "j1", "jn", "jv",
        "jvp", "k0", "k0e", "k1", "k1e", "kl_div", "kn", "kv", "kve", "kvp", "lambertw", "log1p", "log_expit",
        "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp", "modstruve", "multigammaln", "nbdtr", "nbdtrc",
        "nbdtri", "ndtr", "ndtri", "ndtri_exp", "owens_t", "pdtr", "pdtrc", "pdtri", "perm", "poch", "polygamma",
        "powm1", "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "shichi", "sici", "sinc", "sindg", "softmax",
        "softplus", "spence", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "stdtr", "stdtrit",
        "struve", "tandg", "wofz", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "yvp", "zeta", "zetac",
    ),
    "stats": (
        "alexandergovern", "arcsine", "bartlett", "bernoulli", "beta", "betabinom", "binom", "boxcox", "boxcox_llf",
        "burr12", "cauchy", "chi", "chi2", "chisquare", "circmean", "circstd", "circvar", "describe",
        "differential_entropy", "directional_stats", "dirichlet", "energy_distance", "entropy", "erlang", "expon",
        "exponnorm", "f", "f_oneway", "fisk", "gamma", "gaussian_kde", "genextreme", "gennorm", "genpareto", "geom",
        "gmean", "gompertz", "gstd", "gumbel_l", "gumbel_r", "gzscore", "halfcauchy", "halfnorm", "hmean", "hypsecant",
        "invgamma", "invgauss", "iqr", "jarque_bera", "kstat", "kstatvar", "kurtosis", "kurtosistest", "laplace",
        "levene", "linregress", "lmoment", "logistic", "lognorm", "logser", "loguniform", "lomax", "maxwell",
        "median_abs_deviation", "moment", "multinomial", "multivariate_normal", "multivariate_t", "nakagami", "nbinom",
        "norm", "normaltest", "pareto", "pearsonr", "planck", "pmean", "poisson", "power_divergence", "powerlaw",
        "quantile", "rayleigh", "reciprocal", "sem", "sigmaclip", "skellam", "skew", "skewnorm", "skewtest", "t",
        "tmean", "triang", "trim_mean", "truncnorm", "tsem", "tstd", "ttest_1samp", "ttest_ind", "ttest_rel", "tvar",
        "uniform", "variation", "vonmises", "wasserstein_distance", "weibull_max", "weibull_min", "wishart",
        "yeojohnson", "yeojohnson_llf", "zmap", "zscore",
    ),
}  # fmt: skip
