"""Estimators with scikit-learn's interface that are fitted by gradients: any model, any loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pullback.core import tree
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.transforms.grad import value_and_grad

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pullback.typing import Array, ArrayLike, Function, Nested, Seed, TensorLike, Tree, Value


def apply_linear(params: Mapping[str, Value], X: TensorLike) -> Any:
    """Return the linear model of rows: ``X @ w + b``."""
    w: Any = params["w"]
    product: Any = X @ w
    return product + params["b"]


def compute_squared_error(outputs: Value, y: Array) -> Any:
    """Return the mean of the squared differences."""
    return np.mean((outputs - y) ** 2)


def cross_entropy(outputs: Value, y: Array) -> Any:
    """Return the mean of minus the logarithm of the softmax at the right class."""
    z = outputs - np.max(outputs, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - z[np.arange(len(y)), y])


def _ravel(params: Tree) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers of a tree in one vector, and the function from such a vector to the tree."""
    leaves = [np.asarray(leaf, float) for leaf in tree.leaves(params)]
    ends = np.cumsum([leaf.size for leaf in leaves])

    def restore(vector: Value) -> Any:
        parts = [np.reshape(vector[e - x.size : e], x.shape) for e, x in zip(ends, leaves, strict=True)]
        return tree.replace_leaves(params, parts)

    return np.concatenate([np.ravel(leaf) for leaf in leaves]), restore


class _Fitted(BaseEstimator):  # type: ignore[misc]
    """The base of both estimators: fits the parameters and runs the model."""

    def __init__(
        self,
        model: Function | None = None,
        params: Tree = None,
        loss: Function | None = None,
        *,
        penalty: float = 1e-4,
        max_iter: int = 500,
        tol: float = 1e-8,
        random_state: Seed = None,
    ) -> None:
        self.model = model
        self.params = params
        self.loss = loss
        self.penalty = penalty
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _start(self, n_outputs: int) -> Any:
        """Return the parameters to begin with."""
        if self.model is None:
            width = () if n_outputs == 0 else (n_outputs,)
            return {"w": np.zeros((self.n_features_in_, *width)), "b": np.zeros(width)}
        if self.params is None:
            raise ArgumentError(
                f"{type(self).__name__}: a model needs params, a tree of numbers to begin with, or a function "
                "params(random_state, n_features, n_outputs) that makes one."
            )
        if callable(self.params):
            return self.params(check_random_state(self.random_state), self.n_features_in_, n_outputs)
        return self.params

    def _fit_params(self, X: Array, y: Array, n_outputs: int, loss: Callable[[Any, Any], Any]) -> None:
        from scipy.optimize import minimize

        run = apply_linear if self.model is None else self.model
        center, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 1e-12 * (1.0 + np.abs(center)), scale, 1.0)
        self._center, self._scale = center, scale
        rows = (X - center) / scale
        start, restore = _ravel(self._start(n_outputs))

        def measure(vector: Value) -> Any:
            return loss(run(restore(vector), rows), y) + 0.5 * self.penalty * np.sum(vector**2)

        both = value_and_grad(measure)
        options = {"maxiter": self.max_iter, "ftol": self.tol, "gtol": self.tol}
        found = minimize(lambda v: tuple(both(v)), start, jac=True, method="L-BFGS-B", options=options)
        self.params_ = restore(found.x)
        self.n_iter_ = max(1, int(found.nit))
        self.loss_ = float(found.fun)

    def _run(self, X: TensorLike) -> Any:
        check_is_fitted(self)
        if not isinstance(X, Tensor):
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        run = apply_linear if self.model is None else self.model
        return run(self.params_, (X - self._center) / self._scale)


class PullbackRegressor(RegressorMixin, _Fitted):  # type: ignore[misc]
    """A regressor with scikit-learn's interface: any model and any loss, fitted by gradients (L-BFGS).

    model: a function ``model(params, X)`` of a tree of parameters and rows, which are standardized; linear if None.
    params: the tree to begin with, or a function ``params(random_state, n_features, n_outputs)``, where n_outputs is 0
        for one target in a vector.
    loss: a function ``loss(outputs, y)``; the mean squared error if None.
    penalty: what the sum of the squared parameters is multiplied by, halved, and added to the loss.
    max_iter: the largest number of steps of L-BFGS.
    tol: the change of the loss, and the largest gradient, at which to stop.
    random_state: given to ``params``.

    ``predict`` takes tensors, too, and has a gradient then.

    >>> import numpy as np, pullback as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = pb.sklearn.PullbackRegressor(penalty=0.0).fit(X, 2 * X[:, 0] + 1)
    >>> print(np.round(fitted.predict(np.array([[10.0]])), 3))
    [21.]
    """

    def fit(self, X: Any, y: ArrayLike | Nested) -> PullbackRegressor:
        """Fit the parameters to rows and their targets."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        y = np.asarray(y, float)
        self._fit_params(X, y, 0 if y.ndim == 1 else y.shape[1], self.loss or compute_squared_error)
        return self

    def predict(self, X: TensorLike) -> Any:
        """Return the outputs of the model for rows."""
        return self._run(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class PullbackClassifier(ClassifierMixin, _Fitted):  # type: ignore[misc]
    """A classifier with scikit-learn's interface: any model and any loss, fitted by gradients (L-BFGS).

    model: a function ``model(params, X)`` that returns a score for each row and class; linear if None.
    params: the tree to begin with, or a function ``params(random_state, n_features, n_classes)``.
    loss: a function ``loss(scores, numbers of the classes)``; the cross-entropy of the softmax if None.
    penalty: what the sum of the squared parameters is multiplied by, halved, and added to the loss.
    max_iter: the largest number of steps of L-BFGS.
    tol: the change of the loss, and the largest gradient, at which to stop.
    random_state: given to ``params``.

    ``predict_proba`` takes tensors, too, and has a gradient then.

    >>> import numpy as np, pullback as pb
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> fitted = pb.sklearn.PullbackClassifier().fit(X, ["low", "low", "high", "high"])
    >>> fitted.predict(np.array([[-3.0], [3.0]])).tolist()
    ['low', 'high']
    """

    def fit(self, X: Any, y: ArrayLike | Nested) -> PullbackClassifier:
        """Fit the parameters to rows and their classes."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("PullbackClassifier: y must have at least two classes, got one class only.")
        self._fit_params(X, numbers, len(self.classes_), self.loss or cross_entropy)
        return self

    def predict_proba(self, X: TensorLike) -> Any:
        """Return the probability of each class for rows."""
        z = self._run(X)
        e = np.exp(z - np.max(z, axis=1, keepdims=True))
        return e / np.sum(e, axis=1, keepdims=True)

    def predict(self, X: TensorLike) -> Any:
        """Return the most probable class for rows."""
        numbers = np.argmax(np.asarray(self.predict_proba(X)), axis=1)
        return self.classes_[numbers]
