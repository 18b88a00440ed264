"""``install``: SciPy's own names take traced values; with plain ones they are what they were."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any

from pullback.scipy import (
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    special,
    stats,
)
from pullback.scipy.arguments import is_traced, load
from pullback.scipy.spatial import distance

__all__ = ["install", "is_installed", "uninstall"]

MODULES: dict[str, Any] = {
    "fft": fft, "integrate": integrate, "interpolate": interpolate, "linalg": linalg, "ndimage": ndimage,
    "optimize": optimize, "signal": signal, "spatial.distance": distance, "special": special, "stats": stats,
}  # fmt: skip
METHODS = (
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logpmf", "logsf", "mean", "median", "pdf", "pmf", "ppf", "sf", "std",
    "var",
)  # fmt: skip
OF_FUNCTIONS = ("integrate", "optimize")  # modules whose functions take functions, which may use traced values
_replaced: list[tuple[Any, str, Any]] = []


def _replace(owner: Any, name: str, new: Any) -> None:
    _replaced.append((owner, name, owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)))
    setattr(owner, name, new)


def dispatch(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ours where an argument is traced, else the original."""

    @wraps(original, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return (ours if is_traced(args, kwargs) else original)(*args, **kwargs)

    return call


def _take_closures(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ours where an argument, or a function among them, has a traced value in it."""

    @wraps(original, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        captured = [c.cell_contents for a in (*args, *kwargs.values()) for c in getattr(a, "__closure__", None) or ()]
        return (ours if is_traced(args, kwargs, captured) else original)(*args, **kwargs)

    return call


def install() -> Installed:
    """Make SciPy's public functions take traced values: by ``pb.scipy``, where an argument is traced.

    With plain arguments they are SciPy's own.  Names that were imported before, as in ``from scipy.linalg import
    expm``, stay what they were, but for methods of distributions.  Undone by ``uninstall``; as a context manager, at
    its end.

    >>> import scipy.linalg
    >>> with pb.scipy.install():
    ...     pb.grad(lambda x: np.trace(scipy.linalg.expm(x * np.eye(2))))(0.0)
    2.0
    """
    if not _replaced:
        for module, ours in MODULES.items():
            theirs = load(module)
            for name in ours.NAMES:
                if hasattr(theirs, name):
                    wrap = _take_closures if module in OF_FUNCTIONS else dispatch
                    _replace(theirs, name, wrap(getattr(theirs, name), getattr(ours, name)))
        _install_distributions()
        _install_polynomials()
    return Installed()


def _install_distributions() -> None:
    scipy_stats = load("stats")
    for owner in (scipy_stats.rv_continuous, scipy_stats.rv_discrete):
        for name in METHODS:
            if name in owner.__dict__ or hasattr(owner, name):
                _replace_method(owner, name)
    for name in stats.VECTORS:
        kind = type(getattr(scipy_stats, name))
        ours = getattr(stats, name)
        for method in METHODS:
            if method in kind.__dict__ and callable(getattr(type(ours), method, None)):
                _replace_bound(kind, method, getattr(ours, method))


def _replace_method(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced(args, kwargs) and self.name in stats.DISTRIBUTIONS:
            return getattr(stats.DISTRIBUTIONS[self.name], name)(*args, **kwargs)
        return original(self, *args, **kwargs)

    if name not in owner.__dict__:
        owner = next(base for base in owner.__mro__ if name in base.__dict__)
        if any(o is owner and n == name for o, n, _ in _replaced):
            return
    _replace(owner, name, method)


def _replace_bound(kind: Any, name: str, ours: Any) -> None:
    original = kind.__dict__[name]

    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs) if is_traced(args, kwargs) else original(self, *args, **kwargs)

    _replace(kind, name, method)


def _install_polynomials() -> None:
    """Let interpolators that were made of plain data take traced places."""
    theirs = load("interpolate")
    module = next(base for base in theirs.PPoly.__mro__ if "__call__" in base.__dict__)
    original = module.__dict__["__call__"]
    polynomial, spline = theirs.PPoly, theirs.BSpline

    @wraps(original)
    def evaluate(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        if is_traced(x) and isinstance(self, polynomial):
            return interpolate.PPoly(self.c, self.x, self.extrapolate, self.axis)(x, nu, extrapolate)
        return original(self, x, nu, extrapolate)

    _replace(module, "__call__", evaluate)
    of_spline = spline.__dict__["__call__"]

    @wraps(of_spline)
    def evaluate_spline(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        if is_traced(x):
            return interpolate.BSpline(self.t, self.c, self.k, self.extrapolate, self.axis)(x, nu, extrapolate)
        return of_spline(self, x, nu, extrapolate)

    _replace(spline, "__call__", evaluate_spline)


def uninstall() -> None:
    """Give SciPy's names back what they were.

    >>> pb.scipy.uninstall()
    """
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)


def is_installed() -> bool:
    """Return whether SciPy's functions take traced values.

    >>> pb.scipy.is_installed()
    False
    """
    return bool(_replaced)


class Installed:
    """What ``install`` returns: a context that undoes it at its end."""

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        uninstall()
