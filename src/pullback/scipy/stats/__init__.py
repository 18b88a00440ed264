"""``scipy.stats``: distributions and summaries, differentiable by data and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pullback.names.scipy import FUNCTIONS
from pullback.scipy.arguments import as_float, list_functions, make_fallback, take_scipy_arguments
from pullback.scipy.special import call
from pullback.scipy.stats import hypotheses, summaries
from pullback.scipy.stats.multivariate import dirichlet as dirichlet
from pullback.scipy.stats.multivariate import gaussian_kde as gaussian_kde
from pullback.scipy.stats.multivariate import multinomial as multinomial
from pullback.scipy.stats.multivariate import multivariate_normal as multivariate_normal
from pullback.scipy.stats.multivariate import multivariate_t as multivariate_t
from pullback.scipy.stats.multivariate import wishart as wishart
from pullback.scipy.stats.table import CONTINUOUS, DISCRETE

if TYPE_CHECKING:
    from pullback.typing import Function, TensorLike

DISTRIBUTIONS: dict[str, Any] = {**CONTINUOUS, **DISCRETE, "reciprocal": CONTINUOUS["loguniform"]}
VECTORS = ("dirichlet", "multinomial", "multivariate_normal", "multivariate_t", "wishart")
NAMES = tuple(n for n in FUNCTIONS["stats"] if n not in DISTRIBUTIONS and n not in VECTORS)


def __getattr__(name: str) -> Any:
    if name in DISTRIBUTIONS:
        return DISTRIBUTIONS[name]
    if name in NAMES:
        home = summaries if hasattr(summaries, name) else hypotheses
        return take_scipy_arguments("stats", name, getattr(home, name))
    if name.startswith("_"):
        raise AttributeError(name)
    return make_fallback("stats", name)


def __dir__() -> list[str]:
    return list_functions("stats")


def boxcox(
    x: TensorLike, lmbda: TensorLike | None = None, alpha: float | None = None, optimizer: Function | None = None
) -> Any:
    """Return the Box-Cox transform with a given ``lmbda``; one that is to be found needs plain data."""
    if lmbda is None:
        return make_fallback("stats", "boxcox")(x, None, alpha, optimizer)
    return call("boxcox", as_float(x), as_float(lmbda))


def yeojohnson(x: TensorLike, lmbda: TensorLike | None = None) -> Any:
    """Return the Yeo-Johnson transform with a given ``lmbda``; one that is to be found needs plain data."""
    if lmbda is None:
        return make_fallback("stats", "yeojohnson")(x)
    return summaries.transform_yeojohnson(as_float(x), as_float(lmbda))
