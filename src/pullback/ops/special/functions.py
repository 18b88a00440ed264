"""Special functions by SciPy's names: ops, rows of the table of derivatives, and compositions of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.convert import join_array
from pullback.core.op import REGISTRY
from pullback.core.tensor import Tensor
from pullback.ops.special import slopes as slopes  # fills the table
from pullback.ops.special.family import SLOPES
from pullback.ops.special.family import call_function as call
from pullback.ops.special.lazy_scipy import find_name

if TYPE_CHECKING:
    from pullback.typing import TensorLike, Value

__all__: list[str] = []


def _make_several(name: str, count: int) -> Callable[[Any], Any]:
    def all_results(x: TensorLike) -> Any:
        return tuple(call(f"{name}:{i}", x) for i in range(count))

    return all_results


def _wofz(z: Value) -> Any:
    if _find_dtype(z).kind == "c":
        return call("wofz", z)
    return np.exp(-(z * z)) + (2j / math.sqrt(math.pi)) * call("dawsn", z)


def _lambertw(z: Value, k: Any = 0, tol: float = 1e-8) -> Any:
    """Return the ``k``-th branch of the solution of ``w * exp(w) = z``: complex, as in SciPy."""
    k, tol = (v.item() if isinstance(v, np.ndarray | np.generic) and v.size == 1 else v for v in (k, tol))
    return call("_lambertw", z.astype(np.result_type(_find_dtype(z), np.complex64)), k, tol)


def _find_dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


SLOPES["_lambertw"] = (lambda z, x, k, tol: z / (x * (1 + z)), None, None)

COMPOSITIONS: dict[str, Callable[..., Any]] = {
    "wofz": _wofz, "_lambertw": _lambertw,
    "sici": _make_several("sici", 2), "shichi": _make_several("shichi", 2), "fresnel": _make_several("fresnel", 2),
    "airy": _make_several("airy", 4),
    "cbrt": np.cbrt, "expm1": np.expm1, "log1p": np.log1p,
    "erf": lambda x: REGISTRY["erf"].function(x) if _find_dtype(x).kind != "c" else 1 - call("erfc", x),
    "_zeta": lambda x, q: call("zeta", x, q), "psi": lambda x: call("digamma", x),
    "_riemann_zeta": lambda x: call("zeta", x, np.ones_like(x)),
    "zetac": lambda x: call("zeta", x, np.ones_like(x)) - 1,
    "jn": lambda v, x: call("jv", v, x),
    "eval_sh_legendre": lambda n, x: call("eval_legendre", n, 2 * x - 1),
    "eval_sh_chebyt": lambda n, x: call("eval_chebyt", n, 2 * x - 1),
    "eval_sh_chebyu": lambda n, x: call("eval_chebyu", n, 2 * x - 1),
}  # fmt: skip


@cache
def get_function(name: str) -> Callable[..., Any] | None:
    """Return the differentiable function with this name in ``scipy.special``, None if there is none.

    >>> get_function("erfi")(0.0), get_function("mathieu_a")
    (np.float64(0.0), None)
    """
    if name in COMPOSITIONS:
        return partial(_call_joined, COMPOSITIONS[name])
    if name in SLOPES:
        return partial(_call_joined, partial(call, name))
    op = REGISTRY.get(name)
    if op is not None and op.function.__module__ == "pullback.ops.special":
        return op.function
    return None


def find_special_function(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the differentiable function for a ufunc of SciPy's, None if there is none or for other ufuncs."""
    name = find_name(ufunc)
    return get_function(name) if name else None


def _call_joined(function: Callable[..., Any], *args: object) -> Any:
    return function(*(a if isinstance(a, Tensor | float | int) else join_array(a) for a in args))
