"""scikit-learn: fitted estimators as functions of tensors, estimators of ours, and metrics by namespace dispatch.

``sklearn_counts.py`` has the lists and prints the counts; the usual run takes a sample of them.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback.errors import ArgumentError, NoRuleError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = X[:, 0] ** 2 - X[:, 1]


@pytest.fixture(scope="module")
def counts() -> Any:
    """Import scikit-learn only where its tests are run: it takes a second."""
    pytest.importorskip("sklearn.base")  # as "sklearn" Python finds this directory, too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import sklearn_counts
    return sklearn_counts


@pytest.mark.filterwarnings("ignore")
def test_fitted_estimators_values_and_gradients(counts: Any) -> None:
    results = {name: counts.judge_estimator(name) for name in counts.ESTIMATORS}
    assert {*results.values()} == {"right"}, results


@pytest.mark.parametrize("name", ["KMeans", "SplineTransformer", "PowerTransformer", "SVC 3"])
def test_fitted_estimators_compile(counts: Any, name: str) -> None:
    f = pb.sklearn.differentiable(counts.ESTIMATORS[name]())
    np.testing.assert_allclose(pb.compile(f)(counts.AT), f(counts.AT), rtol=1e-9, atol=1e-12)


def test_normalizer_keeps_rows_of_zeros(counts: Any) -> None:
    normalize = pb.sklearn.differentiable(counts.ESTIMATORS["Normalizer"]())
    value, slope = pb.value_and_grad(lambda X: np.sum(normalize(X)))(np.array([[0.0, 0.0], [3.0, 4.0]]))
    np.testing.assert_allclose(value, 1.4)
    np.testing.assert_allclose(slope, [[1.0, 1.0], [0.032, -0.024]])


def test_isotonic_regression_outside_of_data_is_nan_by_default(counts: Any) -> None:
    from sklearn.isotonic import IsotonicRegression

    fitted, at = IsotonicRegression().fit([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]), np.array([[-1.0], [1.5], [3.0]])
    np.testing.assert_allclose(pb.sklearn.differentiable(fitted)(at), fitted.predict(at))
    alone = IsotonicRegression().fit([1.0], [2.0])
    np.testing.assert_allclose(pb.sklearn.differentiable(alone)(at), alone.predict(at))


def test_constant_estimators_raise(counts: Any) -> None:
    for name in counts.REFUSED:
        with pytest.raises(NoRuleError, match="constant almost everywhere"):
            pb.sklearn.differentiable(counts.REFUSED[name]())


def test_differentiable_rejects_bad_arguments(counts: Any) -> None:
    fitted = counts.ESTIMATORS["LinearRegression"]()
    with pytest.raises(ArgumentError, match="no method 'transform' with a gradient; there is predict"):
        pb.sklearn.differentiable(fitted, "transform")
    with pytest.raises(ArgumentError, match="two axes"):
        pb.sklearn.differentiable(fitted)(np.ones(3))
    with pytest.raises(NoRuleError, match="has no rule"):
        pb.sklearn.differentiable(object())


def test_differentiable_rejects_options_without_rule(counts: Any) -> None:
    from sklearn import compose, ensemble, gaussian_process, linear_model, preprocessing, svm
    from sklearn.gaussian_process import kernels

    logistic = counts.ESTIMATORS["LogisticRegression, 3"]()
    logistic.multi_class = "ovr"  # an argument of versions before 1.8
    processes = [
        gaussian_process.GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)
        for kernel in (kernels.PairwiseKernel(), kernels.Matern(nu=0.7))
    ]
    votes = [("a", linear_model.LogisticRegression()), ("b", svm.SVC())]
    cases = [
        (logistic, "multi_class='ovr', solver='lbfgs' and 3 classes has no rule"),
        (processes[0], "the kernel PairwiseKernel has no rule; there are RBF, Matern"),
        (processes[1], "Matern with nu=0.7 has no rule; there are 0.5, 1.5, 2.5 and inf"),
        (svm.SVR(kernel="precomputed").fit(X @ X.T, Y), "the kernel 'precomputed' has no rule; there are linear, poly"),
        (preprocessing.SplineTransformer(extrapolation="periodic").fit(X), "extrapolation='periodic' has no rule"),
        (ensemble.VotingClassifier(votes).fit(X, Y > 0), "voting='hard' counts votes"),
        (compose.TransformedTargetRegressor(func=np.exp, inverse_func=np.log).fit(X, Y), "needs a scaler"),
    ]
    for fitted, message in cases:
        with pytest.raises(NoRuleError, match=message):
            pb.sklearn.differentiable(fitted)(X)


def test_subclass_with_own_predict_raises(counts: Any) -> None:
    class Own(type(counts.ESTIMATORS["LinearRegression"]())):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:
            return 2 * super().predict(X)

    with pytest.raises(NoRuleError, match="no method with a gradient"):
        pb.sklearn.differentiable(Own().fit(X, Y))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["PullbackRegressor", "PullbackClassifier"])
def test_sklearn_check_estimator_of_regressor_and_classifier(counts: Any, name: str) -> None:
    from sklearn.utils.estimator_checks import estimator_checks_generator

    checks = [*estimator_checks_generator(getattr(pb.sklearn, name)())]
    for estimator, check in sample(checks, 8):
        try:
            check(estimator)
        except Exception as error:
            if type(error).__name__ != "SkipTest":
                raise


def test_sklearn_regressor_with_custom_model(counts: Any) -> None:
    def network(p: Any, X: Any) -> Any:
        return np.tanh(X @ p["w"] + p["b"]) @ p["v"]

    def start(rng: Any, n_features: int, n_outputs: int) -> Any:
        return {"w": rng.normal(size=(n_features, 8)), "b": np.zeros(8), "v": rng.normal(size=8)}

    fitted = pb.sklearn.PullbackRegressor(network, start, random_state=0).fit(X, Y)
    assert fitted.score(X, Y) > 0.95
    one = X[:1]
    found = pb.grad(lambda t: fitted.predict(t)[0])(one)
    steps = 1e-6 * np.eye(2)[:, None, :]
    slopes = [(fitted.predict(one + s) - fitted.predict(one - s))[0] / 2e-6 for s in steps]
    assert np.allclose(found[0], slopes, rtol=1e-4)
    robust = pb.sklearn.PullbackRegressor(loss=lambda z, y: np.mean(np.sqrt(1 + (z - y) ** 2))).fit(X, X[:, 0])
    assert robust.score(X, X[:, 0]) > 0.9
    line = pb.sklearn.PullbackRegressor(lambda p, X: X @ p, np.ones(2), penalty=0.0).fit(X, X[:, 0] - X[:, 0].mean())
    np.testing.assert_allclose(line.params_, [X[:, 0].std(), 0.0], atol=1e-5)
    with pytest.raises(ArgumentError, match="needs params"):
        pb.sklearn.PullbackRegressor(network).fit(X, Y)


def test_sklearn_classifier_of_one_class_raises(counts: Any) -> None:
    with pytest.raises(ValueError, match="y must have at least two classes"):
        pb.sklearn.PullbackClassifier().fit(X, np.zeros(30))


@pytest.mark.filterwarnings("ignore")
def test_metrics_keep_gradients_unless_uninstalled(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", "1.9")  # older versions dispatch less
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # which scikit-learn asks for
    calls = counts.list_calls()
    results = {name: counts.judge_call(*calls[name]) for name in sample([*calls], 5)}
    wrong = {name: t for name, t in results.items() if t != "right" and not t.startswith("refused")}
    assert not wrong, wrong
    assert [*results.values()].count("right") > len(results) * 0.8, results
    metrics = sys.modules["sklearn.metrics._regression"]
    assert np.dtype(metrics.float) == np.dtype(float)
    assert isinstance(1.5, metrics.float)
    pb.sklearn.uninstall()
    try:
        assert counts.judge_call(*calls["mean_squared_error"]).startswith("refused: TracedValueError: float()")
    finally:
        pb.sklearn.install()
    assert counts.judge_call(*calls["mean_squared_error"]) == "right"
