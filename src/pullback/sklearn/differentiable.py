"""Fitted estimators of scikit-learn as functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ArgumentError, NoRuleError
from pullback.sklearn.rules import CONSTANT, RULES

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


PREFERRED = ("predict_proba", "transform", "score_samples", "decision_function", "predict")


def differentiable(estimator: BaseEstimator, method: str | None = None) -> Callable[[Any], Any]:
    """Return a method of a fitted estimator as a differentiable function.

    estimator: fitted; linear models, discriminant analysis, support vector machines, Gaussian processes, multilayer
        perceptrons, naive Bayes, mixtures, decompositions, scalers and features, and pipelines, unions, votes and
        stacks of them.  Trees, forests and nearest neighbours are refused: they are constant almost everywhere.
    method: "predict", "predict_proba", "decision_function", "transform" or "score_samples".  The default is the smooth
        one: predict_proba or decision_function of a classifier, predict of a regressor, otherwise transform.

    The fitted parameters are constants: gradients are with respect to the rows that are passed to the function.

    >>> import numpy as np, pullback as pb
    >>> from sklearn.linear_model import LinearRegression
    >>> fitted = LinearRegression().fit(np.array([[0.0], [1.0]]), np.array([1.0, 3.0]))
    >>> pb.grad(lambda X: np.sum(pb.sklearn.differentiable(fitted)(X)))(np.array([[5.0]]))
    array([[2.]])
    """
    methods = find_methods(estimator)
    if method is None:
        is_regressor = getattr(estimator, "_estimator_type", "") == "regressor" or "predict_proba" not in methods
        smooth = [m for m in PREFERRED if m in methods]
        if not smooth:
            raise NoRuleError(f"sklearn.differentiable: {_find_name(estimator)} has no method with a gradient.")
        method = "predict" if is_regressor and "predict" in methods and "transform" not in methods else smooth[0]
    if method not in methods:
        raise ArgumentError(
            f"sklearn.differentiable: {_find_name(estimator)} has no method {method!r} with a gradient; there "
            f"{'is' if len(methods) == 1 else 'are'} {', '.join(sorted(methods)) or 'none'}."
        )
    call = methods[method]

    def apply(X: Any) -> Any:
        X = X if hasattr(X, "ndim") and hasattr(X, "__array_function__") else np.asarray(X, float)
        if X.ndim != 2:
            raise ArgumentError(f"{_find_name(estimator)}.{method}: X must have two axes, got shape {X.shape}.")
        return call(X)

    apply.__name__ = f"{_find_name(estimator)}_{method}"
    return apply


def find_methods(estimator: BaseEstimator) -> dict[str, Callable[[Any], Any]]:
    """Return the methods of an estimator that have a gradient, as functions of tensors."""
    kind = type(estimator)
    for known in (t for t in kind.__mro__ if t.__module__.startswith("sklearn.")):
        if known.__name__ in RULES:
            methods = RULES[known.__name__](estimator, find_methods)
            return {m: f for m, f in methods.items() if hasattr(estimator, m) and _is_inherited(kind, known, m)}
        if known.__name__ in CONSTANT:
            raise NoRuleError(
                f"sklearn.differentiable: {_find_name(estimator)} is constant almost everywhere, so its gradient is 0 "
                "wherever it exists. Use a smooth estimator."
            )
    raise NoRuleError(
        f"sklearn.differentiable: {_find_name(estimator)} has no rule. There are rules for {', '.join(sorted(RULES))}."
    )


def _is_inherited(kind: type, known: type, method: str) -> bool:
    """Return whether a class has the method of scikit-learn's class, and not one of its own."""
    return kind.__module__.startswith("sklearn.") or getattr(kind, method, None) is getattr(known, method, None)


def _find_name(estimator: BaseEstimator) -> str:
    return type(estimator).__name__
