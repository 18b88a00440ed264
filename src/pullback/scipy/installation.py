"""``pb.scipy.install()``: makes SciPy's own functions accept traced values; plain values go to the originals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

from pullback.errors import TracedValueError
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
from pullback.scipy.arguments import ORIGINALS, is_traced, load
from pullback.scipy.spatial import distance, transform

if TYPE_CHECKING:
    from pullback.typing import Function

MODULES: dict[str, Any] = {
    "fft": fft, "integrate": integrate, "interpolate": interpolate, "linalg": linalg, "ndimage": ndimage,
    "optimize": optimize, "signal": signal, "spatial.distance": distance,
    "spatial.transform": transform, "special": special, "stats": stats,
}  # fmt: skip
METHODS = (
    "cdf", "cov", "entropy", "isf", "logcdf", "logpdf", "logpmf", "logsf", "mean", "median", "nnlf", "pdf", "pmf",
    "ppf", "sf", "std", "var",
)  # fmt: skip
OF_FUNCTIONS = ("integrate", "optimize")  # modules whose functions take functions, which may use traced values
_replaced: list[tuple[Any, str, Any]] = []


def _replace(owner: object, name: str, new: object) -> None:
    _replaced.append((owner, name, owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)))
    setattr(owner, name, new)


def dispatch(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ours where an argument is traced, else the original."""

    @wraps(original, updated=())
    def call(*args: object, **kwargs: object) -> Any:
        return (ours if is_traced(args, kwargs) else original)(*args, **kwargs)

    return call


DEPTH = 4  # of functions within functions that are looked into


def find_captured(f: Function, depth: int = DEPTH) -> list[Any]:
    """Return the values that a function uses besides its arguments, and those of functions among them."""
    if isinstance(f, partial):
        return [*f.args, *f.keywords.values(), *find_captured(f.func, depth)]
    f = getattr(f, "__func__", f)
    code = getattr(f, "__code__", None)
    if not isinstance(code, CodeType) or not depth:
        return []
    cells = [cell.cell_contents for cell in f.__closure__ or () if _is_filled(cell)]
    names = {name for part in _list_codes(code) for name in part.co_names}
    values = [*cells, *(f.__globals__[name] for name in names if name in f.__globals__), *(f.__defaults__ or ())]
    return values + [v for inner in values if callable(inner) for v in find_captured(inner, depth - 1)]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _list_codes(code: CodeType) -> list[CodeType]:
    return [code, *(c for const in code.co_consts if isinstance(const, CodeType) for c in _list_codes(const))]


def _take_closures(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ours where an argument, or what a function among them uses, is traced."""

    @wraps(original, updated=())
    def call(*args: object, **kwargs: object) -> Any:
        captured = [v for a in (*args, *kwargs.values()) if callable(a) for v in find_captured(a)]
        if is_traced(args, kwargs, captured):
            return ours(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        except (TracedValueError, SystemError) as error:  # of a value that is not seen: an attribute, say
            if isinstance(error, SystemError) and not isinstance(error.__cause__, TracedValueError):  # not of C code
                raise
            return ours(*args, **kwargs)

    return call


class Choosing(type):
    """The class of classes that make an object of ours where an argument is traced, else one of the original."""

    original: Any
    ours: Any

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        return (cls.ours if is_traced(args, kwargs) else cls.original)(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (cls.original, cls.ours))

    def __getattr__(cls, name: str) -> Any:
        original, ours = getattr(cls.original, name), getattr(cls.ours, name, None)
        return dispatch(original, ours) if callable(original) and ours is not None else original


def _choose(module: str, original: Any, ours: Any) -> Any:
    if isinstance(original, type):
        return Choosing(original.__name__, (), {"original": original, "ours": ours, "__doc__": original.__doc__})
    return (_take_closures if module in OF_FUNCTIONS else dispatch)(original, ours)


def install() -> Installed:
    """Make SciPy's public functions take traced values: by ``pb.scipy``, where an argument is traced.

    With plain arguments they call SciPy's own.  Names that were imported before, as by ``from scipy.linalg import
    expm``, are not replaced, except methods of distributions.  ``uninstall`` undoes it, and so does the end of a
    ``with pb.scipy.install():`` block.

    >>> import scipy.linalg
    >>> with pb.scipy.install():
    ...     round(pb.grad(lambda x: np.trace(scipy.linalg.expm(x * np.eye(2))))(0.0), 6)
    2.0
    """
    if not _replaced:
        _install_distributions()
        _install_instances()
        for module, ours in MODULES.items():
            load(module)  # an error that names what is missing, if it is
            theirs = import_module(f"scipy.{module}")
            for name in ours.NAMES:
                if hasattr(theirs, name):
                    ORIGINALS[module, name] = original = getattr(theirs, name)
                    _replace(theirs, name, _choose(module, original, getattr(ours, name)))
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
        for method in (*METHODS, "__call__"):
            if method in kind.__dict__ and callable(getattr(type(ours), method, None)):
                _replace_bound(kind, method, getattr(ours, method))


def _replace_method(owner: type, name: str) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        if is_traced(args, kwargs) and self.name in stats.DISTRIBUTIONS:
            return getattr(stats.DISTRIBUTIONS[self.name], name)(*args, **kwargs)
        return original(self, *args, **kwargs)

    if name not in owner.__dict__:
        owner = next(base for base in owner.__mro__ if name in base.__dict__)
        if any(o is owner and n == name for o, n, _ in _replaced):
            return
    _replace(owner, name, method)


def _replace_bound(kind: type, name: str, ours: Function) -> None:
    original = kind.__dict__[name]

    @wraps(original)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        return ours(*args, **kwargs) if is_traced(args, kwargs) else original(self, *args, **kwargs)

    _replace(kind, name, method)


def _install_instances() -> None:
    """Let interpolators and densities that were made of plain data take traced places."""
    theirs = load("interpolate")
    rebuild: dict[tuple[Any, str], Callable[[Any], Any]] = {
        (theirs.PPoly, "__call__"): lambda s: interpolate.PPoly(s.c, s.x, s.extrapolate, s.axis),
        (theirs.BSpline, "__call__"): lambda s: interpolate.BSpline(s.t, s.c, s.k, s.extrapolate, s.axis),
        (theirs.interp1d, "__call__"): lambda s: interpolate.interp1d(
            s.x, s.y, s._kind, s.axis, True, s.bounds_error, s.fill_value, True
        ),
        (theirs.RegularGridInterpolator, "__call__"): lambda s: interpolate.RegularGridInterpolator(
            s.grid, s.values, s.method, s.bounds_error, s.fill_value
        ),
    }
    for name in ("__call__", "evaluate", "logpdf", "pdf"):
        rebuild[load("stats").gaussian_kde, name] = lambda s: stats.gaussian_kde(s.dataset, float(s.factor), s.weights)
    for (kind, name), make in rebuild.items():
        owner = next(base for base in kind.__mro__ if name in base.__dict__)
        _replace(owner, name, _rebuild_if_traced(owner.__dict__[name], kind, name, make))


def _rebuild_if_traced(original: Function, kind: type, name: str, make: Callable[[Any], Any]) -> Any:
    @wraps(original)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        if isinstance(self, kind) and is_traced(args, kwargs):
            return getattr(make(self), name)(*args, **kwargs)
        return original(self, *args, **kwargs)

    return method


def uninstall() -> None:
    """Restore SciPy's own functions.

    >>> pb.scipy.uninstall()
    """
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)
    ORIGINALS.clear()


def is_installed() -> bool:
    """Return whether SciPy's functions take traced values.

    >>> pb.scipy.is_installed()
    False
    """
    return bool(_replaced)


class Installed:
    """The context manager that ``install`` returns; it uninstalls at its end."""

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        uninstall()
