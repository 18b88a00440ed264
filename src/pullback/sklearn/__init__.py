"""scikit-learn: fitted estimators as differentiable functions, and estimators that are fitted by gradients."""

from pullback.interop.sklearn_metrics import install as install
from pullback.interop.sklearn_metrics import uninstall as uninstall
from pullback.sklearn.differentiable import differentiable as differentiable
from pullback.sklearn.estimators import PullbackClassifier as PullbackClassifier
from pullback.sklearn.estimators import PullbackRegressor as PullbackRegressor

__all__ = ["PullbackClassifier", "PullbackRegressor", "differentiable", "install", "uninstall"]


def __dir__() -> list[str]:
    return sorted(__all__)
