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
from pullback.errors import ArgumentError, MissingPackageError

if TYPE_CHECKING:
    from pullback.typing import Value

__all__: list[str] = []


@cache
def _import_scipy() -> Any:
    """Import ``scipy.special`` and register its ufuncs, so that they take tensors."""
    try:
        import scipy.special
    except ImportError:
        raise MissingPackageError(
            "pb.special needs SciPy, which is not installed. Install it with: pip install 'pullback[scipy]'"
        ) from None
    for kernel, its in [*BY_KERNEL.items()]:
        if isinstance(kernel, Through):
            BY_KERNEL[getattr(scipy.special, kernel.name)] = its
    return scipy.special


def find_op(ufunc: Callable[..., Any]) -> Any:
    """Return the op for a ufunc of SciPy, or None."""
    if "scipy.special" in sys.modules:
        _import_scipy()
    return BY_KERNEL.get(ufunc)


class Through:
    """A SciPy function, looked up by name at the first call, that keeps the dtype of its arguments."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Value) -> Any:
        values = unwrap_scratch(args)
        floats = [v.dtype for v in values if hasattr(v, "dtype") and v.dtype.kind in "fc"]
        kind = np.result_type(*floats or [np.float64], *[v for v in values if type(v) is complex])
        if not floats:  # SciPy computes with the shortest float that holds these integers
            values = [v.astype(np.float64) if hasattr(v, "dtype") else v for v in values]
        z = getattr(_import_scipy(), self.name)(*values)
        return z if z.dtype == kind else z.astype(kind)


class Real(Through):
    """One that refuses complex numbers: SciPy does not know it of them, or there is no rule for its derivative."""

    def __call__(self, *args: Value) -> Any:
        for x in args:
            check_real(self.name, x)
        return super().__call__(*args)


class OfOrder(Through):
    """One whose first argument is an order, which is real also where ``x`` is complex."""

    def __call__(self, *args: Any) -> Any:
        order, x = args
        if getattr(order, "dtype", None) is not None and order.dtype.kind == "c":
            if np.any(order.imag):
                raise ArgumentError(f"{self.name}: the order must be real, got dtype {order.dtype}.")
            order = order.real  # it was made complex together with x
        return super().__call__(order, x)
