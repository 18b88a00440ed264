"""Lazy import of SciPy's special functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.convert import check_real
from pullback.core.memory import unwrap_scratch
from pullback.core.tensor import BY_KERNEL
from pullback.errors import ArgumentError
from pullback.names.packages import import_package
from pullback.numerics.gammas import polygamma

if TYPE_CHECKING:
    from pullback.typing import Value

__all__: list[str] = []

UFUNCS = {"zeta": "_zeta"}  # functions whose ufunc has another name
WHOLE = {"eval_hermite", "eval_hermitenorm"}  # functions that take whole numbers alone as their order

SERIES_ORDERS = (1, 2, 3)  # of polygamma: compared with exact values, as precise as SciPy
MIN_SERIES_ELEMENTS = 512


@cache
def _import_scipy() -> Any:
    """Import ``scipy.special`` and register its ufuncs, so that they take tensors."""
    special = import_package("scipy.special", "pb.special needs SciPy", "pullback[scipy]")
    for kernel, op in [*BY_KERNEL.items()]:
        if isinstance(kernel, Through):
            BY_KERNEL[_get_ufunc(special, kernel.name)] = op
    return special


def _get_ufunc(module: Any, name: str) -> Any:
    """Return a ufunc of SciPy's; with SCIPY_ARRAY_API=1 the public function is not the ufunc."""
    return getattr(module._ufuncs, UFUNCS.get(name, name), None) or getattr(module, name)


def find_scipy_op(ufunc: Callable[..., Any]) -> Any:
    """Return the op for a ufunc of SciPy, or None."""
    if "scipy.special" in sys.modules:
        _import_scipy()
    return BY_KERNEL.get(ufunc)


def find_name(ufunc: np.ufunc) -> str:
    """Return the name of a ufunc of SciPy's, empty for others."""
    if "scipy.special" not in sys.modules:
        return ""
    name = ufunc.__name__
    return name if getattr(_import_scipy()._ufuncs, name, None) is ufunc else ""


class Through:
    """A SciPy function, looked up by name at the first call, that keeps the dtype of its arguments.

    ``"airy:1"`` is the second result of ``airy``.
    """

    keeps_dtype = True  # so that the dtype of a result is known without SciPy

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Value) -> Any:
        values = unwrap_scratch(args)
        floats = [v.dtype for v in values if hasattr(v, "dtype") and v.dtype.kind in "fc"]
        kind = np.result_type(*floats or [np.float64], *[v for v in values if type(v) is complex])
        if not floats:  # SciPy computes with the shortest float that holds these integers
            values = [v.astype(np.float64) if hasattr(v, "dtype") else v for v in values]
        name, _, result = self.name.partition(":")
        if name in WHOLE:
            values = [np.asarray(values[0]).astype(int), *values[1:]]
        z = _get_ufunc(_import_scipy(), name)(*values)
        if result:
            z = z[int(result)]
        return z if z.dtype == kind else z.astype(kind)


class RealFunction(Through):
    """A SciPy function that refuses complex numbers: SciPy does, or there is no rule for its derivative."""

    def __call__(self, *args: Value) -> Any:
        for x in args:
            check_real(self.name, x)
        return super().__call__(*args)


class Polygamma(RealFunction):
    """SciPy's polygamma; the series of ``numerics.gammas`` take a tenth of the time for many positive numbers."""

    def __call__(self, *args: Value) -> Any:
        n, x = unwrap_scratch(args)
        if type(x) is not np.ndarray or x.size < MIN_SERIES_ELEMENTS or x.dtype.char not in "fd":
            return super().__call__(*args)
        order = np.asarray(n)
        if order.shape or order.dtype.kind not in "iu" or int(order) not in SERIES_ORDERS or not np.all(x > 0):
            return super().__call__(*args)
        with np.errstate(all="ignore"):
            return polygamma(int(order), x).astype(x.dtype, copy=False)


class OfOrder(Through):
    """A SciPy function whose first argument is an order, which is real also where ``x`` is complex."""

    def __call__(self, *args: Any) -> Any:
        order, x = args
        if getattr(order, "dtype", None) is not None and order.dtype.kind == "c":
            if np.any(order.imag):
                raise ArgumentError(f"{self.name}: the order must be real, got dtype {order.dtype}.")
            order = order.real  # it was made complex together with x
        return super().__call__(order, x)
