"""The methods of fitted estimators in plain NumPy: for each class name a function that returns a dict of methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import NoRuleError
from pullback.sklearn.kernels import compute_distances, find_kernel, process_kernel

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from pullback.typing import Array, Value

Methods = dict[str, Callable[[Any], Any]]
Find = Callable[[Any], Methods]
Rule = Callable[[Any, Find], Methods]


# ---- functions of scores


def sigmoid(z: Value) -> Any:
    """Return 1 / (1 + exp(-z)) without overflow."""
    half: Any = 0.5 * z
    return 0.5 * (1.0 + np.tanh(half))


def softmax(z: Value) -> Any:
    """Return the exponentials of each row divided by their sum."""
    e = np.exp(z - np.max(z, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def log_sum_exp(z: Value) -> Any:
    """Return the logarithm of the sum of the exponentials of each row."""
    largest = np.max(z, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(z - largest), axis=1)) + largest[:, 0]


def two_columns(p: Value) -> Any:
    """Return the probabilities of two classes from those of the second."""
    rest: Any = 1.0 - p
    return np.stack([rest, p], axis=1)


def flat_if_one(z: Value) -> Any:
    """Return a table of one column as a vector."""
    return z[:, 0] if z.shape[1] == 1 else z


def softmax_methods(scores: Callable[[Any], Any]) -> Methods:
    """Return the methods of a classifier whose probabilities are the softmax of scores."""

    def log_proba(X: Value) -> Any:
        z = scores(X)
        return z - log_sum_exp(z)[:, None]

    return {"predict_proba": lambda X: softmax(scores(X)), "predict_log_proba": log_proba}


# ---- linear models


def linear(e: BaseEstimator, find: Find) -> Methods:
    def predict(X: Value) -> Any:
        z = X @ np.atleast_2d(e.coef_).T + e.intercept_
        return z[:, 0] if np.ndim(e.coef_) == 1 else z

    return {"predict": predict}


def exponential_link(e: BaseEstimator, find: Find) -> Methods:
    link = getattr(e, "link", "log")
    if link == "identity" or (link == "auto" and getattr(e, "power", 1) <= 0):
        return linear(e, find)
    return {"predict": lambda X: np.exp(X @ e.coef_ + e.intercept_)}


def linear_scores(e: BaseEstimator, find: Find) -> Methods:
    return {"decision_function": lambda X: flat_if_one(X @ np.atleast_2d(e.coef_).T + e.intercept_)}


def logistic(e: BaseEstimator, find: Find) -> Methods:
    scores = linear_scores(e, find)["decision_function"]
    has_two, asked = len(e.classes_) == 2, getattr(e, "multi_class", "")  # an argument of versions before 1.8
    if asked == ("multinomial" if has_two else "ovr") or (not has_two and e.solver == "liblinear"):
        raise NoRuleError(
            f"sklearn.differentiable: {type(e).__name__} with multi_class={asked!r}, solver={e.solver!r} and "
            f"{len(e.classes_)} classes has no rule."
        )
    if has_two:
        proba: Any = lambda X: two_columns(sigmoid(scores(X)))  # noqa: E731
    else:
        proba = lambda X: softmax(scores(X))  # noqa: E731
    return {"decision_function": scores, "predict_proba": proba, "predict_log_proba": lambda X: np.log(proba(X))}


def partial_least_squares(e: BaseEstimator, find: Find) -> Methods:
    def predict(X: Value) -> Any:
        z = ((X - e._x_mean) / e._x_std) @ (e.coef_ * e._x_std).T + e.intercept_
        return z[:, 0] if getattr(e, "_predict_1d", False) else z

    return {"predict": predict, "transform": lambda X: ((X - e._x_mean) / e._x_std) @ e.x_rotations_}


def linear_discriminants(e: BaseEstimator, find: Find) -> Methods:
    def transform(X: Value) -> Any:
        centered = X - e.xbar_ if e.solver == "svd" else X
        return (centered @ e.scalings_)[:, : e._max_components]

    return {**logistic(e, find), **({} if e.solver == "lsqr" else {"transform": transform})}


def quadratic_discriminants(e: BaseEstimator, find: Find) -> Methods:
    def scores(X: Value) -> Any:
        columns = []
        for mean, rotation, scaling, prior in zip(e.means_, e.rotations_, e.scalings_, e.priors_, strict=True):
            whitened = (X - mean) @ (rotation * scaling**-0.5)
            columns.append(-0.5 * (np.sum(whitened**2, axis=1) + np.sum(np.log(scaling))) + np.log(prior))
        return np.stack(columns, axis=1)

    def decide(X: Value) -> Any:
        z = scores(X)
        return z[:, 1] - z[:, 0] if z.shape[1] == 2 else z

    return {**softmax_methods(scores), "decision_function": decide}


def gaussian_bayes(e: BaseEstimator, find: Find) -> Methods:
    def scores(X: Value) -> Any:
        squares = (X[:, None, :] - e.theta_[None]) ** 2 / e.var_[None]
        return np.log(e.class_prior_) - 0.5 * (np.sum(np.log(2 * np.pi * e.var_), axis=1) + np.sum(squares, axis=2))

    return softmax_methods(scores)


def multinomial_bayes(e: BaseEstimator, find: Find) -> Methods:
    return softmax_methods(lambda X: X @ e.feature_log_prob_.T + e.class_log_prior_)


# ---- kernels


def support_vectors(e: BaseEstimator) -> Callable[[Any], Any]:
    kernel = find_kernel(e.kernel, getattr(e, "_gamma", 1.0), e.degree, e.coef0)
    return lambda X: kernel(X, e.support_vectors_)


def support_regression(e: BaseEstimator, find: Find) -> Methods:
    kernel = support_vectors(e)
    return {"predict": lambda X: kernel(X) @ e.dual_coef_[0] + e.intercept_}


def support_scores(e: BaseEstimator, find: Find) -> Methods:
    kernel = support_vectors(e)
    return {"decision_function": lambda X: kernel(X) @ e.dual_coef_[0] + e.intercept_}


def support_classes(e: BaseEstimator, find: Find) -> Methods:
    if len(e.classes_) == 2:
        return support_scores(e, find)
    kernel, count = support_vectors(e), len(e.classes_)
    ends = np.concatenate([[0], np.cumsum(e.n_support_)])
    spans = [slice(a, b) for a, b in pairwise(ends)]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]

    def one_against_one(X: Value) -> Any:
        K = kernel(X)
        return np.stack(
            [
                K[:, spans[i]] @ e.dual_coef_[j - 1, spans[i]] + K[:, spans[j]] @ e.dual_coef_[i, spans[j]] + b
                for (i, j), b in zip(pairs, e.intercept_, strict=True)
            ],
            axis=1,
        )

    def decide(X: Value) -> Any:
        scores = one_against_one(X)
        if e.decision_function_shape == "ovo":
            return scores
        sums: list[Any] = [0.0] * count
        votes: list[Any] = [0.0] * count
        for k, (i, j) in enumerate(pairs):
            z, wins = scores[:, k], np.where(scores[:, k] > 0, 1.0, 0.0)
            sums[i], sums[j] = sums[i] + z, sums[j] - z
            votes[i], votes[j] = votes[i] + wins, votes[j] + 1.0 - wins
        return np.stack([v + s / (3.0 * (np.abs(s) + 1.0)) for v, s in zip(votes, sums, strict=True)], axis=1)

    return {"decision_function": decide}


def kernel_ridge(e: BaseEstimator, find: Find) -> Methods:
    gamma = 1.0 / e.X_fit_.shape[1] if e.gamma is None else e.gamma
    kernel = find_kernel(e.kernel, gamma, e.degree, e.coef0)
    return {"predict": lambda X: kernel(X, e.X_fit_) @ e.dual_coef_}


def gaussian_process(e: BaseEstimator, find: Find) -> Methods:
    return {
        "predict": lambda X: e._y_train_std * (process_kernel(e.kernel_, X, e.X_train_) @ e.alpha_) + e._y_train_mean
    }


# ---- neural networks

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda z: z, "tanh": np.tanh, "relu": lambda z: np.maximum(z, 0.0), "logistic": sigmoid,
    "softmax": softmax,
}  # fmt: skip


def perceptron_output(e: BaseEstimator) -> Callable[[Any], Any]:
    def run(X: Value) -> Any:
        for i, (w, b) in enumerate(zip(e.coefs_, e.intercepts_, strict=True)):
            X = X @ w + b
            X = ACTIVATIONS[e.activation if i < len(e.coefs_) - 1 else e.out_activation_](X)
        return X

    return run


def perceptron_regression(e: BaseEstimator, find: Find) -> Methods:
    run = perceptron_output(e)
    return {"predict": lambda X: flat_if_one(run(X))}


def perceptron_classes(e: BaseEstimator, find: Find) -> Methods:
    run = perceptron_output(e)

    def proba(X: Value) -> Any:
        p = run(X)
        return two_columns(p[:, 0]) if p.shape[1] == 1 else p

    return {"predict_proba": proba, "predict_log_proba": lambda X: np.log(proba(X))}


# ---- decompositions


def principal_components(e: BaseEstimator, find: Find) -> Methods:
    scale = np.sqrt(e.explained_variance_) if e.whiten else 1.0
    return {
        "transform": lambda X: (X - e.mean_) @ e.components_.T / scale,
        "inverse_transform": lambda Z: (Z * scale) @ e.components_ + e.mean_,
    }


def projection(e: BaseEstimator, find: Find) -> Methods:
    return {"transform": lambda X: X @ e.components_.T}


def independent_components(e: BaseEstimator, find: Find) -> Methods:
    return {"transform": lambda X: (X - getattr(e, "mean_", 0.0)) @ e.components_.T}


def kernel_components(e: BaseEstimator, find: Find) -> Methods:
    kernel = find_kernel(e.kernel, getattr(e, "gamma_", e.gamma), e.degree, e.coef0)
    kept = e.eigenvalues_ > 0
    scaled = np.zeros_like(e.eigenvectors_)
    scaled[:, kept] = e.eigenvectors_[:, kept] / np.sqrt(e.eigenvalues_[kept])
    rows, whole = e._centerer.K_fit_rows_, e._centerer.K_fit_all_

    def transform(X: Value) -> Any:
        K = kernel(X, e.X_fit_)
        return (K - rows - np.mean(K, axis=1, keepdims=True) + whole) @ scaled

    return {"transform": transform}


def nystroem_kernel(e: BaseEstimator, find: Find) -> Methods:
    gamma = 1.0 / e.components_.shape[1] if e.gamma is None else e.gamma
    kernel = find_kernel(e.kernel, gamma, e.degree if e.degree is not None else 3, 1 if e.coef0 is None else e.coef0)
    return {"transform": lambda X: kernel(X, e.components_) @ e.normalization_.T}


def fourier_features(e: BaseEstimator, find: Find) -> Methods:
    scale = np.sqrt(2.0 / e.n_components)
    return {"transform": lambda X: scale * np.cos(X @ e.random_weights_ + e.random_offset_)}


# ---- scalers and features


def standard_scaler(e: BaseEstimator, find: Find) -> Methods:
    mean, scale = (e.mean_ if e.with_mean else 0.0), (e.scale_ if e.with_std else 1.0)
    return {"transform": lambda X: (X - mean) / scale, "inverse_transform": lambda Z: Z * scale + mean}


def min_max_scaler(e: BaseEstimator, find: Find) -> Methods:
    def transform(X: Value) -> Any:
        Z = X * e.scale_ + e.min_
        return np.clip(Z, *e.feature_range) if e.clip else Z

    return {"transform": transform, "inverse_transform": lambda Z: (Z - e.min_) / e.scale_}


def max_abs_scaler(e: BaseEstimator, find: Find) -> Methods:
    return {"transform": lambda X: X / e.scale_, "inverse_transform": lambda Z: Z * e.scale_}


def robust_scaler(e: BaseEstimator, find: Find) -> Methods:
    center, scale = (e.center_ if e.with_centering else 0.0), (e.scale_ if e.with_scaling else 1.0)
    return {"transform": lambda X: (X - center) / scale, "inverse_transform": lambda Z: Z * scale + center}


def normalizer(e: BaseEstimator, find: Find) -> Methods:
    norms: dict[str, Callable[[Any], Any]] = {
        "l2": lambda X: np.sqrt(np.sum(X**2, axis=1, keepdims=True)),
        "l1": lambda X: np.sum(np.abs(X), axis=1, keepdims=True),
        "max": lambda X: np.max(np.abs(X), axis=1, keepdims=True),
    }

    def transform(X: Value) -> Any:
        empty = np.all(X == 0, axis=1, keepdims=True)  # a row of zeros stays as it is
        return X / np.where(empty, 1.0, norms[e.norm](np.where(empty, 1.0, X)))

    return {"transform": transform}


def power_transformer(e: BaseEstimator, find: Find) -> Methods:
    def yeo_johnson(x: Value, power: float) -> Any:
        positive = x >= 0
        up, down = np.where(positive, x, 0.0), np.where(positive, 0.0, x)
        high = np.log1p(up) if power == 0 else ((up + 1.0) ** power - 1.0) / power
        low = -np.log1p(-down) if power == 2 else -((1.0 - down) ** (2.0 - power) - 1.0) / (2.0 - power)
        return np.where(positive, high, low)

    def box_cox(x: Value, power: float) -> Any:
        return np.log(x) if power == 0 else (x**power - 1.0) / power

    by = {"yeo-johnson": yeo_johnson, "box-cox": box_cox}[e.method]

    def transform(X: Value) -> Any:
        Z = np.stack([by(X[:, i], power) for i, power in enumerate(e.lambdas_)], axis=1)
        return standard_scaler(e._scaler, find)["transform"](Z) if e.standardize else Z

    return {"transform": transform}


def polynomial_features(e: BaseEstimator, find: Find) -> Methods:
    def transform(X: Value) -> Any:
        columns = []
        for powers in e.powers_:
            column = np.ones(len(X))
            for i in np.repeat(np.arange(len(powers)), powers):
                column = column * X[:, i]
            columns.append(column)
        return np.stack(columns, axis=1)

    return {"transform": transform}


def spline_features(e: BaseEstimator, find: Find) -> Methods:
    if e.extrapolation not in ("constant", "error", "continue"):
        raise NoRuleError(
            f"sklearn.differentiable: SplineTransformer with extrapolation={e.extrapolation!r} has no rule; there are "
            "'constant', 'error' and 'continue'."
        )

    def transform(X: Value) -> Any:
        blocks = []
        for i, spline in enumerate(e.bsplines_):
            first, last = spline.t[spline.k], spline.t[-spline.k - 1]
            x = np.clip(X[:, i], first, last) if e.extrapolation == "constant" else X[:, i]
            blocks.append(_spline_basis(spline.t, spline.k, x) @ spline.c)
        features = np.concatenate(blocks, axis=1)
        if e.include_bias:
            return features
        width = e.bsplines_[0].c.shape[1]
        return features[:, [j for j in range(features.shape[1]) if (j + 1) % width]]

    return {"transform": transform}


def _spline_basis(knots: Array, degree: int, x: Value) -> Any:
    """Return the B-splines of a degree at each point, by the recursion of Cox and de Boor."""
    ends = np.full(degree + 1, np.inf)  # the first and the last interval go on outside
    columns: list[Any] = [
        np.where((x >= low) & (x < high), 1.0, 0.0)
        for low, high in pairwise([*-ends, *knots[degree + 1 : -degree - 1], *ends])
    ]
    for d in range(1, degree + 1):
        raised = []
        for i in range(len(columns) - 1):
            left, right = knots[i + d] - knots[i], knots[i + d + 1] - knots[i + 1]
            rising = (x - knots[i]) / left * columns[i] if left > 0 else 0.0
            falling = (knots[i + d + 1] - x) / right * columns[i + 1] if right > 0 else 0.0
            raised.append(rising + falling + np.zeros(len(x)))
        columns = raised
    return np.stack(columns, axis=1)


def isotonic(e: BaseEstimator, find: Find) -> Methods:
    def predict(X: Value) -> Any:
        x = X[:, 0]
        y = np.interp(x, e.X_thresholds_, e.y_thresholds_)
        if e.out_of_bounds == "clip" or len(e.X_thresholds_) == 1:
            return y
        return np.where((x >= e.X_min_) & (x <= e.X_max_), y, np.nan)

    return {"predict": predict}


# ---- clusters and mixtures


def cluster_distances(e: BaseEstimator, find: Find) -> Methods:
    return {"transform": lambda X: compute_distances(X, e.cluster_centers_)}


def gaussian_mixture(e: BaseEstimator, find: Find) -> Methods:
    def scores(X: Value) -> Any:
        columns = []
        for k, (mean, weight) in enumerate(zip(e.means_, e.weights_, strict=True)):
            chol: Any = e.precisions_cholesky_ if e.covariance_type == "tied" else e.precisions_cholesky_[k]
            if e.covariance_type in ("full", "tied"):
                z, log_det = (X - mean) @ chol, np.sum(np.log(np.diag(chol)))
            else:
                z, log_det = (X - mean) * chol, np.sum(np.log(chol * np.ones(X.shape[1])))
            columns.append(np.log(weight) + log_det - 0.5 * (np.sum(z**2, axis=1) + X.shape[1] * np.log(2 * np.pi)))
        return np.stack(columns, axis=1)

    return {**softmax_methods(scores), "score_samples": lambda X: log_sum_exp(scores(X))}


# ---- made of other estimators


def pipeline(e: BaseEstimator, find: Find) -> Methods:
    steps = [find(step) for _, step in e.steps if step not in ("passthrough", None)]
    if not steps:
        return {"transform": lambda X: X, "inverse_transform": lambda Z: Z}
    *firsts, last = steps

    def behind(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(X: Value) -> Any:
            for first in firsts:
                X = first["transform"](X)
            return method(X)

        return run

    def invert(Z: Value) -> Any:
        for step in reversed(steps):
            Z = step["inverse_transform"](Z)
        return Z

    methods = {name: behind(method) for name, method in last.items() if name != "inverse_transform"}
    return {**methods, **({"inverse_transform": invert} if all("inverse_transform" in step for step in steps) else {})}


def join_columns(blocks: Sequence[Any]) -> Any:
    """Return tables beside each other."""
    return np.concatenate([b if b.ndim == 2 else b[:, None] for b in blocks], axis=1)


def column_transformer(e: BaseEstimator, find: Find) -> Methods:
    parts: list[tuple[Callable[[Any], Any], Any]] = []
    for name, step, _ in e.transformers_:
        columns = e._transformer_to_input_indices[name]
        if step != "drop" and len(columns):
            is_kept = step == "passthrough" or (type(step).__name__ == "FunctionTransformer" and step.func is None)
            parts.append(((lambda X: X) if is_kept else find(step)["transform"], columns))
    return {"transform": lambda X: join_columns([transform(X[:, columns]) for transform, columns in parts])}


def feature_union(e: BaseEstimator, find: Find) -> Methods:
    weights = e.transformer_weights or {}
    parts = [(find(t)["transform"], weights.get(name, 1.0)) for name, t in e.transformer_list if t != "drop"]
    return {"transform": lambda X: join_columns([transform(X) * weight for transform, weight in parts])}


def function_transformer(e: BaseEstimator, find: Find) -> Methods:
    return {"transform": lambda X: X if e.func is None else e.func(X, **(e.kw_args or {}))}


def _weigh(e: BaseEstimator, parts: Sequence[Any]) -> Any:
    weights = np.ones(len(parts)) if e._weights_not_none is None else np.asarray(e._weights_not_none)
    total = sum(w * part for w, part in zip(weights, parts, strict=True))
    return total / np.sum(weights)


def average_regressors(e: BaseEstimator, find: Find) -> Methods:
    parts = [find(one)["predict"] for one in e.estimators_]
    return {
        "predict": lambda X: _weigh(e, [predict(X) for predict in parts]),
        "transform": lambda X: np.stack([predict(X) for predict in parts], axis=1),
    }


def average_classifiers(e: BaseEstimator, find: Find) -> Methods:
    if e.voting != "soft":
        raise NoRuleError("sklearn.differentiable: VotingClassifier with voting='hard' counts votes: no gradient.")
    parts = [find(one)["predict_proba"] for one in e.estimators_]
    return {"predict_proba": lambda X: _weigh(e, [proba(X) for proba in parts])}


def stack_estimators(e: BaseEstimator, find: Find) -> Methods:
    parts = [find(one)[method] for one, method in zip(e.estimators_, e.stack_method_, strict=True)]

    def transform(X: Value) -> Any:
        blocks = []
        for part, method in zip(parts, e.stack_method_, strict=True):
            block = part(X)
            blocks.append(block[:, 1:] if method == "predict_proba" and len(e.classes_) == 2 else block)
        return join_columns([*blocks, X] if e.passthrough else blocks)

    last = find(e.final_estimator_)
    behind = {name: (lambda X, method=method: method(transform(X))) for name, method in last.items()}
    return {**behind, "transform": transform}


def several_outputs(e: BaseEstimator, find: Find) -> Methods:
    parts = [find(one)["predict"] for one in e.estimators_]
    return {"predict": lambda X: np.stack([predict(X) for predict in parts], axis=1)}


def target_transform(e: BaseEstimator, find: Find) -> Methods:
    regress, back = find(e.regressor_)["predict"], find(e.transformer_).get("inverse_transform")
    if back is None:
        raise NoRuleError(
            "sklearn.differentiable: TransformedTargetRegressor needs a scaler, whose inverse has a rule."
        )

    def predict(X: Value) -> Any:
        z = regress(X)
        out = back(z if z.ndim == 2 else z[:, None])
        return out[:, 0] if e._training_dim == 1 else out

    return {"predict": predict}


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("LinearModel", "SGDRegressor", "LinearSVR", "HuberRegressor", "QuantileRegressor",
         "TheilSenRegressor", "PassiveAggressiveRegressor"), linear,
    ),
    **dict.fromkeys(("PoissonRegressor", "GammaRegressor", "TweedieRegressor"), exponential_link),
    **dict.fromkeys(
        ("LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "Perceptron", "SGDClassifier",
         "PassiveAggressiveClassifier"), linear_scores,
    ),
    "LogisticRegression": logistic, "PLSRegression": partial_least_squares,
    "LinearDiscriminantAnalysis": linear_discriminants, "QuadraticDiscriminantAnalysis": quadratic_discriminants,
    "GaussianNB": gaussian_bayes, "MultinomialNB": multinomial_bayes,
    **dict.fromkeys(("SVR", "NuSVR"), support_regression), **dict.fromkeys(("SVC", "NuSVC"), support_classes),
    "OneClassSVM": support_scores, "KernelRidge": kernel_ridge, "GaussianProcessRegressor": gaussian_process,
    "MLPRegressor": perceptron_regression, "MLPClassifier": perceptron_classes,
    **dict.fromkeys(("PCA", "IncrementalPCA"), principal_components), "TruncatedSVD": projection,
    "FastICA": independent_components, "KernelPCA": kernel_components, "Nystroem": nystroem_kernel,
    "RBFSampler": fourier_features,
    "StandardScaler": standard_scaler, "MinMaxScaler": min_max_scaler, "MaxAbsScaler": max_abs_scaler,
    "RobustScaler": robust_scaler, "Normalizer": normalizer, "PowerTransformer": power_transformer,
    "PolynomialFeatures": polynomial_features, "SplineTransformer": spline_features, "IsotonicRegression": isotonic,
    **dict.fromkeys(("KMeans", "MiniBatchKMeans"), cluster_distances),
    "GaussianMixture": gaussian_mixture,
    "Pipeline": pipeline, "ColumnTransformer": column_transformer, "FeatureUnion": feature_union,
    "FunctionTransformer": function_transformer, "VotingRegressor": average_regressors,
    "VotingClassifier": average_classifiers,
    **dict.fromkeys(("StackingRegressor", "StackingClassifier"), stack_estimators),
    "MultiOutputRegressor": several_outputs, "TransformedTargetRegressor": target_transform,
}  # fmt: skip

# Constant almost everywhere: trees, and votes of neighbours.
CONSTANT = frozenset(
    (
        "BaseDecisionTree", "BaseForest", "BaseGradientBoosting", "BaseHistGradientBoosting", "BaseWeightBoosting",
        "KNeighborsClassifier", "KNeighborsRegressor", "RadiusNeighborsClassifier", "RadiusNeighborsRegressor",
        "IsolationForest", "DummyClassifier", "DummyRegressor", "KBinsDiscretizer", "Binarizer", "OneHotEncoder",
        "OrdinalEncoder",
    )
)  # fmt: skip
