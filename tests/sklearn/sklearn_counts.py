"""Count the kinds of fitted estimators, and the calls of scikit-learn by namespace dispatch, that take tensors.

``python tests/sklearn/sklearn_counts.py`` prints the counts.  Right: the value is that of the estimator or of the plain
array, and the gradient that of finite differences.  Refused: an error of pullback or scikit-learn, and nothing else.
"""

# ruff: noqa: B008, E501  # lists

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn import cluster as clusters
from sklearn import (
    compose,
    covariance,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    isotonic,
    kernel_approximation,
    kernel_ridge,
    linear_model,
    metrics,
    mixture,
    multioutput,
    naive_bayes,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)

import pullback as pb
from pullback.sklearn.differentiable import find_methods

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.1 * RNG.normal(size=40)
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-1.0, 1.0])
AT = RNG.normal(size=(4, 3)) * 0.7
K = gaussian_process.kernels

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "LinearRegression": lambda: linear_model.LinearRegression().fit(X, Y),
    "Ridge, two targets": lambda: linear_model.Ridge().fit(X, np.stack([Y, -Y], 1)),
    "Lasso": lambda: linear_model.Lasso(0.01).fit(X, Y),
    "BayesianRidge": lambda: linear_model.BayesianRidge().fit(X, Y),
    "HuberRegressor": lambda: linear_model.HuberRegressor().fit(X, Y),
    "PoissonRegressor": lambda: linear_model.PoissonRegressor().fit(X, np.abs(Y)),
    "LogisticRegression, 2": lambda: linear_model.LogisticRegression().fit(X, TWO),
    "LogisticRegression, 3": lambda: linear_model.LogisticRegression().fit(X, THREE),
    "RidgeClassifier": lambda: linear_model.RidgeClassifier().fit(X, THREE),
    "SGDClassifier": lambda: linear_model.SGDClassifier(random_state=0).fit(X, THREE),
    "LinearSVC": lambda: svm.LinearSVC().fit(X, TWO),
    "PLSRegression": lambda: cross_decomposition.PLSRegression().fit(X, Y),
    "LDA": lambda: discriminant_analysis.LinearDiscriminantAnalysis().fit(X, THREE),
    "QDA": lambda: discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X, THREE),
    "SVR rbf": lambda: svm.SVR().fit(X, Y),
    "SVR poly": lambda: svm.SVR(kernel="poly").fit(X, Y),
    "SVC 2": lambda: svm.SVC().fit(X, TWO),
    "SVC 3": lambda: svm.SVC(kernel="sigmoid").fit(X, THREE),
    "SVC 3 ovo": lambda: svm.SVC(decision_function_shape="ovo").fit(X, THREE),
    "OneClassSVM": lambda: svm.OneClassSVM().fit(X),
    "KernelRidge": lambda: kernel_ridge.KernelRidge(kernel="rbf").fit(X, Y),
    "GaussianProcessRegressor": lambda: gaussian_process.GaussianProcessRegressor(
        K.ConstantKernel(2.0) * K.RBF(1.5) + K.WhiteKernel(0.1), optimizer=None, normalize_y=True
    ).fit(X, Y),
    "GaussianProcessRegressor Matern": lambda: gaussian_process.GaussianProcessRegressor(
        K.Matern(1.5, nu=2.5) + K.RationalQuadratic() * K.DotProduct() + K.ExpSineSquared(2.0, 3.0) ** 2,
        optimizer=None, alpha=0.1,
    ).fit(X, Y),
    "MLPRegressor": lambda: neural_network.MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", max_iter=30, random_state=0).fit(X, Y),
    "MLPClassifier, 2": lambda: neural_network.MLPClassifier(hidden_layer_sizes=(5,), activation="tanh", max_iter=30, random_state=0).fit(X, TWO),
    "MLPClassifier, 3": lambda: neural_network.MLPClassifier(hidden_layer_sizes=(5, 4), max_iter=30, random_state=0).fit(X, THREE),
    "PCA": lambda: decomposition.PCA(2, whiten=True).fit(X),
    "TruncatedSVD": lambda: decomposition.TruncatedSVD(2).fit(X),
    "FastICA": lambda: decomposition.FastICA(2, random_state=0).fit(X),
    "KernelPCA": lambda: decomposition.KernelPCA(2, kernel="rbf", gamma=0.5).fit(X),
    "Nystroem": lambda: kernel_approximation.Nystroem(n_components=5, random_state=0).fit(X),
    "RBFSampler": lambda: kernel_approximation.RBFSampler(n_components=5, random_state=0).fit(X),
    "StandardScaler": lambda: preprocessing.StandardScaler().fit(X),
    "MinMaxScaler": lambda: preprocessing.MinMaxScaler().fit(X),
    "MaxAbsScaler": lambda: preprocessing.MaxAbsScaler().fit(X),
    "RobustScaler": lambda: preprocessing.RobustScaler().fit(X),
    "Normalizer": lambda: preprocessing.Normalizer().fit(X),
    "PowerTransformer": lambda: preprocessing.PowerTransformer().fit(X),
    "PolynomialFeatures": lambda: preprocessing.PolynomialFeatures(3).fit(X),
    "SplineTransformer": lambda: preprocessing.SplineTransformer().fit(X),
    "IsotonicRegression": lambda: isotonic.IsotonicRegression(out_of_bounds="clip").fit(X[:, :1], Y),
    "KMeans": lambda: clusters.KMeans(3, n_init=1, random_state=0).fit(X),
    "GaussianNB": lambda: naive_bayes.GaussianNB().fit(X, THREE),
    "MultinomialNB": lambda: naive_bayes.MultinomialNB().fit(np.abs(X), THREE),
    "GaussianMixture full": lambda: mixture.GaussianMixture(2, random_state=0).fit(X),
    "GaussianMixture diag": lambda: mixture.GaussianMixture(2, covariance_type="diag", random_state=0).fit(X),
    "GaussianMixture tied": lambda: mixture.GaussianMixture(2, covariance_type="tied", random_state=0).fit(X),
    "GaussianMixture spherical": lambda: mixture.GaussianMixture(2, covariance_type="spherical", random_state=0).fit(X),
    "Pipeline": lambda: pipeline.make_pipeline(
        preprocessing.StandardScaler(), decomposition.PCA(2), linear_model.LogisticRegression()
    ).fit(X, THREE),
    "ColumnTransformer": lambda: compose.ColumnTransformer(
        [("a", preprocessing.StandardScaler(), [0, 2]), ("b", "passthrough", [1])]
    ).fit(X),
    "FeatureUnion": lambda: pipeline.make_union(preprocessing.StandardScaler(), decomposition.PCA(2)).fit(X),
    "VotingRegressor": lambda: ensemble.VotingRegressor(
        [("a", linear_model.Ridge()), ("b", svm.SVR())], weights=[1, 2]
    ).fit(X, Y),
    "VotingClassifier": lambda: ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())], voting="soft"
    ).fit(X, THREE),
    "StackingRegressor": lambda: ensemble.StackingRegressor(
        [("a", linear_model.Ridge()), ("b", svm.SVR())], linear_model.Ridge(), cv=2
    ).fit(X, Y),
    "StackingClassifier": lambda: ensemble.StackingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", svm.SVC())], linear_model.LogisticRegression(), cv=2
    ).fit(X, TWO),
    "MultiOutputRegressor": lambda: multioutput.MultiOutputRegressor(svm.SVR()).fit(X, np.stack([Y, -Y], 1)),
    "TransformedTargetRegressor": lambda: compose.TransformedTargetRegressor(
        linear_model.Ridge(), transformer=preprocessing.StandardScaler()
    ).fit(X, Y),
    # options
    "TweedieRegressor identity": lambda: linear_model.TweedieRegressor(power=0).fit(X, Y),
    "RidgeClassifier, 2": lambda: linear_model.RidgeClassifier().fit(X, TWO),
    "LDA eigen": lambda: discriminant_analysis.LinearDiscriminantAnalysis(solver="eigen").fit(X, THREE),
    "LDA lsqr": lambda: discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr").fit(X, TWO),
    "QDA, 2": lambda: discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X, TWO),
    "Nystroem laplacian": lambda: kernel_approximation.Nystroem(kernel="laplacian", n_components=5, random_state=0).fit(X),
    "KernelRidge, two targets": lambda: kernel_ridge.KernelRidge(kernel="polynomial").fit(X, np.stack([Y, -Y], 1)),
    "GaussianProcessRegressor Matern 1.5": lambda: gaussian_process.GaussianProcessRegressor(
        K.Matern(1.5, nu=1.5) + K.Matern(2.0, nu=0.5) * K.Matern([1.0, 2.0, 3.0], nu=np.inf), optimizer=None, alpha=0.1
    ).fit(X, Y),
    "FastICA without whitening": lambda: decomposition.FastICA(whiten=False, random_state=0).fit(X),
    "MinMaxScaler clip": lambda: preprocessing.MinMaxScaler(clip=True).fit(X / 3),
    "Normalizer l1": lambda: preprocessing.Normalizer("l1").fit(X),
    "Normalizer max": lambda: preprocessing.Normalizer("max").fit(X),
    "PowerTransformer box-cox": lambda: preprocessing.PowerTransformer("box-cox").fit(np.abs(X)),
    "SplineTransformer continue": lambda: preprocessing.SplineTransformer(
        degree=2, knots="quantile", extrapolation="continue", include_bias=False
    ).fit(X / 4),
    "SplineTransformer constant": lambda: preprocessing.SplineTransformer().fit(X / 4),
    "Pipeline passthrough": lambda: pipeline.Pipeline(
        [("a", "passthrough"), ("b", preprocessing.StandardScaler()), ("c", decomposition.PCA(2))]
    ).fit(X),
    "Pipeline of nothing": lambda: pipeline.Pipeline([("a", "passthrough")]).fit(X),
    "ColumnTransformer drop": lambda: compose.ColumnTransformer(
        [("a", preprocessing.StandardScaler(), [0]), ("b", "drop", [1])], remainder="passthrough"
    ).fit(X),
    "FeatureUnion weights": lambda: pipeline.FeatureUnion(
        [("a", preprocessing.StandardScaler()), ("b", "drop"), ("c", preprocessing.FunctionTransformer(np.tanh))],
        transformer_weights={"a": 2.0},
    ).fit(X),
    "FunctionTransformer": lambda: preprocessing.FunctionTransformer(np.clip, kw_args={"a_min": -0.5, "a_max": 0.5}).fit(X),
    "StackingClassifier passthrough": lambda: ensemble.StackingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", svm.SVC())], linear_model.LogisticRegression(), cv=2, passthrough=True
    ).fit(X, THREE),
    "TransformedTargetRegressor pipeline": lambda: compose.TransformedTargetRegressor(
        linear_model.Ridge(), transformer=pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2))
    ).fit(X, np.stack([Y, -(Y**2)], 1)),
}  # fmt: skip
POSITIVE = ("MultinomialNB", "PowerTransformer box-cox")
REFUSED: dict[str, Callable[[], Any]] = {
    "RandomForestRegressor": lambda: ensemble.RandomForestRegressor(3).fit(X, Y),
    "GradientBoostingRegressor": lambda: ensemble.GradientBoostingRegressor(n_estimators=3).fit(X, Y),
    "KNeighborsRegressor": lambda: sklearn.neighbors.KNeighborsRegressor().fit(X, Y),
}


def slope(f: Callable[[Any], Any], x: Any, v: Any) -> float:
    """Return the derivative of the weighted sum of ``f`` in a direction, by finite differences."""
    up, down = (np.asarray(f(x + s * 1e-6 * v), float) for s in (1, -1))
    return float(np.sum(weigh(up) * (up - down)) / 2e-6)


def weigh(z: Any) -> Any:
    return np.cos(np.arange(z.size)).reshape(z.shape)


def compare(traced: Callable[[Any], Any], plain: Callable[[Any], Any], x: Any) -> str:
    """Return "right", "wrong", or "refused" with the reason."""
    v = np.random.default_rng(1).normal(size=x.shape)
    expected = np.asarray(plain(x), float)
    try:
        value = np.asarray(traced(x), float)
        found = pb.grad(lambda t: np.sum(weigh(expected) * traced(t)))(x)
    except Exception as error:
        return f"refused: {type(error).__name__}: {str(error)[:110]}"
    if not np.all(np.isfinite(found)):
        return "refused: NaN in the gradient"
    if value.shape != expected.shape or not np.allclose(value, expected, rtol=1e-6, atol=1e-8):
        return "wrong value"
    return "right" if np.allclose(np.sum(found * v), slope(plain, x, v), rtol=1e-4, atol=1e-6) else "wrong gradient"


def judge_estimator(name: str) -> str:
    """Compare every method of a fitted estimator that has a rule."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {**ESTIMATORS, **REFUSED}[name]()
    x = np.abs(AT) if name in POSITIVE else AT[:, :1] if name == "IsotonicRegression" else AT
    try:
        methods = [*find_methods(fitted)]
    except Exception as error:
        return f"refused: {type(error).__name__}: {str(error)[:110]}"
    for method in methods:
        f, at = pb.sklearn.differentiable(fitted, method), fitted.transform(x) if method == "inverse_transform" else x
        results = compare(f, getattr(fitted, method), at)
        if results != "right":
            return f"{method} {results}"
        if not np.allclose(pb.vmap(f)(at[None])[0], f(at)):
            return f"{method} wrong under vmap"
    return "right"


def list_calls() -> dict[str, tuple[Callable[[Any], Any], Any]]:
    """Return calls of scikit-learn that dispatch by the namespace of their arrays, each with its argument."""
    y, p = np.abs(Y[:8]) + 0.5, np.abs(Y[8:16]) + 0.3
    soft = RNG.random((6, 3)) + 0.1
    soft /= soft.sum(1, keepdims=True)
    labels, small = np.array([0, 1, 2, 1, 0, 2]), X[:6]
    calls: dict[str, tuple[Callable[[Any], Any], Any]] = {}
    for name in ("mean_squared_error", "mean_absolute_error", "root_mean_squared_error", "max_error", "r2_score",
                 "explained_variance_score", "mean_squared_log_error", "root_mean_squared_log_error",
                 "mean_absolute_percentage_error", "mean_poisson_deviance", "mean_gamma_deviance", "median_absolute_error",
                 "mean_pinball_loss", "d2_tweedie_score", "d2_absolute_error_score", "d2_pinball_score"):  # fmt: skip
        calls[name] = (lambda t, f=getattr(metrics, name): f(_like(t, y), t)), p
        calls[f"{name} by y_true"] = (lambda t, f=getattr(metrics, name): f(t, _like(t, p))), y
    for power in (0, 1.5, 2):
        calls[f"mean_tweedie_deviance {power}"] = (
            (lambda t, q=power: metrics.mean_tweedie_deviance(_like(t, y), t, power=q)),
            p,
        )
    calls["mean_squared_error weights"] = (
        (lambda t: metrics.mean_squared_error(_like(t, y), t, sample_weight=_like(t, p))),
        p,
    )
    calls["log_loss"] = (lambda t: metrics.log_loss(_like(t, labels), t)), soft
    calls["brier_score_loss"] = (lambda t: metrics.brier_score_loss(_like(t, (labels > 0) * 1), t)), soft[:, 0]
    pairs = metrics.pairwise
    for name in ("euclidean_distances", "cosine_similarity", "cosine_distances", "linear_kernel", "polynomial_kernel",
                 "rbf_kernel", "sigmoid_kernel", "laplacian_kernel", "chi2_kernel", "additive_chi2_kernel",
                 "manhattan_distances", "paired_euclidean_distances", "paired_cosine_distances",
                 "paired_manhattan_distances", "pairwise_kernels", "pairwise_distances"):  # fmt: skip
        f = getattr(pairs, name)
        calls[name] = (lambda t, f=f: f(t, _like(t, np.abs(small)))), np.abs(X[6:12]) + 0.1
    scalers = {
        "StandardScaler": preprocessing.StandardScaler, "MinMaxScaler": preprocessing.MinMaxScaler,
        "MaxAbsScaler": preprocessing.MaxAbsScaler, "PolynomialFeatures": preprocessing.PolynomialFeatures,
        "Normalizer": preprocessing.Normalizer, "KernelCenterer": preprocessing.KernelCenterer,
        "Ridge": None, "PCA": lambda: decomposition.PCA(2, svd_solver="full"),
        "PCA covariance": lambda: decomposition.PCA(2, svd_solver="covariance_eigh"),
    }  # fmt: skip
    for name, make in scalers.items():
        if make is not None:
            calls[f"{name}.fit_transform"] = (
                (lambda t, m=make: m().fit_transform(t)),
                X[:6, :] if name != "KernelCenterer" else X[:3],
            )
    calls["Ridge by X"] = (lambda t: linear_model.Ridge(solver="svd").fit(t, _like(t, Y[:8])).coef_), X[:8]
    calls["Ridge by y"] = (lambda t: linear_model.Ridge(solver="svd").fit(_like(t, X[:8]), t).coef_), Y[:8]
    calls["LDA"] = (
        (lambda t: discriminant_analysis.LinearDiscriminantAnalysis().fit(t, _like(t, TWO[:20])).decision_function(t)),
        X[:20],
    )
    calls["GaussianMixture"] = (
        (lambda t: mixture.GaussianMixture(2, init_params="random", random_state=0, max_iter=3, tol=0).fit(t).means_),
        X[:20],
    )
    calls["empirical_covariance"] = (lambda t: covariance.empirical_covariance(t)), X[:6]
    for name in ("normalize", "scale", "minmax_scale", "maxabs_scale"):
        calls[name] = (lambda t, f=getattr(preprocessing, name): f(t)), X[:6]
    return calls


def _like(t: Any, x: Any) -> Any:
    return pb.tensor(x) if isinstance(t, pb.Tensor) else x


def judge_call(call: Callable[[Any], Any], x: Any) -> str:
    """Compare a call of scikit-learn with namespace dispatch."""

    def run(t: Any) -> Any:
        if not isinstance(t, pb.Tensor):
            return call(t)
        with sklearn.config_context(array_api_dispatch=True):
            return call(t)

    return compare(lambda t: run(pb.tensor(t) if isinstance(t, np.ndarray) else t), call, x)


def print_counts(title: str, results: dict[str, str]) -> None:
    counts = Counter(
        t.split(":")[0].split(" ")[-1] if t == "right" or "refused" in t else "wrong" for t in results.values()
    )
    print(f"{title}: {counts['right']} of {len(results)} right, {counts['refused']} refused, {counts['wrong']} wrong")
    for name, t in results.items():
        if t != "right":
            print(f"  {name}: {t}")


if __name__ == "__main__":
    if os.environ.get("SCIPY_ARRAY_API") != "1":  # without which scikit-learn does not dispatch
        sys.exit(subprocess.call([sys.executable, *sys.argv], env={**os.environ, "SCIPY_ARRAY_API": "1"}))
    warnings.simplefilter("ignore")
    print_counts("differentiable", {name: judge_estimator(name) for name in [*ESTIMATORS, *REFUSED]})
    if "--calls" in sys.argv or len(sys.argv) == 1:
        print_counts("namespace dispatch", {name: judge_call(*given) for name, given in list_calls().items()})
