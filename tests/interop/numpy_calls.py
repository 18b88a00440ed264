"""Calls of NumPy's public functions, methods and ufuncs, derived from NumPy itself, each judged by finite differences.

    python tests/interop/numpy_calls.py            # counts
    python tests/interop/numpy_calls.py --list     # and every call that is not right

Every public name is tried on arrays with the arguments below and with each keyword that its signature has; calls that
NumPy accepts and whose results are numbers are kept.  On traced tensors such a call is

- right: value and gradient are those of NumPy and of central differences;
- refused: an error of this library, which says so;
- broken: any other error;
- wrong: another value or gradient, without a word.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import pullback as pb
from pullback.errors import PullbackError

rng = np.random.default_rng(3)
V, W = rng.uniform(0.2, 0.9, 4), rng.uniform(1.1, 1.9, 4)
M, N = rng.uniform(0.2, 0.9, (3, 3)), rng.uniform(1.1, 1.9, (3, 3))
T = rng.permutation(np.linspace(0.203, 0.903, 24)).reshape(2, 3, 4)
MASK = np.array([[True, False, True], [True, True, False], [False, True, True]])
AT = np.array([2, 0, 1])

# Arguments, as users give them.  Floating arrays are what is differentiated.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "vector": (V,), "matrix": (M,), "rank 3": (T,), "two vectors": (V, W), "two matrices": (M, N),
    "matrix, vector": (M, V[:3]), "vector, number": (V, 0.7), "matrix, integer": (M, 1), "vector, integer": (V, 2),
    "list of vectors": ([V, W],), "list of matrices": ([M, N],), "tuple of vectors": ((V, W),),
    "matrix, axes": (M, (1, 0)), "matrix, positions": (M, AT), "positions, matrix": (AT, M), "matrix, mask": (M, MASK),
    "mask, matrix": (MASK, M), "mask, two matrices": (MASK, M, N), "positions, list": (AT, [V[:3], W[:3], V[1:]]),
    "matrix, positions, axis": (M, AT[:, None], 0), "matrix, positions, values": (M.copy(), AT, V[:3]),
    "three vectors": (V, np.sort(W), V), "three matrices": (M, M - 0.1, M + 0.1), "rank 3, two axes": (T, 0, 1),
    "vector, shape": (V, (2, 2)), "vector, wide shape": (V, (3, 4)), "matrix, repeats": (M, (2, 1)),
    "text, two matrices": ("ij,jk->ik", M, N), "text, matrix": ("ij->j", M), "number, number": (0.3, 0.8),
    "number": (0.6,), "vector, bins": (V, 3), "two vectors, integer": (V, W, 2), "vector, widths": (V, ((1, 2),)),
    "list, position": ([M, N], 1), "matrix, position, values": (M, 1, V[:3]),
    "matrix, mask, values": (M.copy(), MASK, V[:3]), "symmetric": (M @ M.T + np.eye(3),),
    "symmetric, vector": (M @ M.T + np.eye(3), V[:3]), "list of three matrices": ([M, N, M.T],),
    "vector, vector of 3": (V, W[:3]), "rank 3, rank 3": (T, T + 1),
}  # fmt: skip

# Arguments that only these functions take.
SPECIAL: dict[str, tuple[Any, ...]] = {
    "np.piecewise": (V, [V < 0.5, V >= 0.5], [np.sin, np.cos]), "np.select": ([MASK, ~MASK], [M, N]),
    "np.apply_along_axis": (np.cumsum, 0, M), "np.apply_over_axes": (np.sum, T, [0, 2]), "np.pad": (M, 1),
    "np.interp": (V + 1, np.sort(W), V), "np.choose": (AT % 2, [V[:3], W[:3]]), "np.insert": (V, 1, 0.5),
    "np.delete": (V, 1), "np.polyfit": (V, W, 1), "np.array_split": (V, 3), "np.linalg.multi_dot": ([M, N, M],),
    "np.tensordot": (M, N, 1), "np.rollaxis": (T, 2, 0), "np.histogram": (V, 3), "np.extract": (MASK, M),
    "ndarray.choose": (AT % 2, [V[:3], W[:3]]), "ndarray.conj": (V,), "ndarray.conjugate": (V,),
}  # fmt: skip

KEYWORDS: dict[str, tuple[Any, ...]] = {
    "axis": (0, -1, None, (0, 1)), "axes": ((1, 0), (0, 1)), "keepdims": (True,), "dtype": (np.float64, np.float32),
    "where": (MASK,), "initial": (0.5,), "ddof": (1,), "correction": (1,), "order": ("F", "C"),
    "mode": ("clip", "same", "valid", "reduced", "complete", "edge", "reflect"), "kind": ("stable",),
    "method": ("lower", "linear", "weibull"), "n": (2,), "k": (1, -1), "offset": (1,),
    "ord": (1, np.inf, "fro", "nuc"), "weights": (V, N), "bias": (True,), "rowvar": (False,), "side": ("right",),
    "norm": ("ortho", "forward"), "s": ((4, 4),), "dx": (0.5,), "x": (np.sort(W),), "prepend": (0.1,),
    "append": (0.2,), "left": (0.1,), "right": (0.3,), "period": (2.0,), "decimals": (1,), "to_end": (0.5,),
    "to_begin": (0.5,), "indexing": ("ij",), "sparse": (True,), "copy": (True, False), "increasing": (True,),
    "full": (True,), "deg": (2,), "w": (np.abs(V),), "cov": (True,), "density": (True,), "range": ((0.0, 2.0),),
    "edge_order": (2,), "optimize": (True,), "stable": (True,), "subok": (False,), "casting": ("same_kind",),
    "overwrite_input": (True,), "returned": (True,), "nan": (0.5,), "posinf": (3.0,), "shift": (1,), "source": (0,),
    "destination": (1,), "UPLO": ("U",), "hermitian": (True,), "compute_uv": (False,), "full_matrices": (False,),
    "rcond": (1e-9,), "upper": (True,), "rtol": (1e-6,), "return_index": (True,), "return_inverse": (True,),
    "return_counts": (True,), "discont": (2.0,), "q": (0.4, [0.2, 0.7]), "step": (1,), "axis1": (1,), "axis2": (0,),
    "mean": (np.full((1, 3), 0.5),), "device": ("cpu",), "fill_value": (0.3,), "shape": ((3, 3),), "repeats": (2,),
    "constant_values": (0.4,), "bins": (4,), "a_min": (0.3,), "a_max": (0.85,), "min": (0.3,), "max": (0.8,), "m": (2,),
    "r": (2,), "roots": (V,), "N": (3,), "scl": (2.0,), "tensor": (False,), "lbnd": (0.1,), "ddof_": (1,),
}  # fmt: skip

SKIPPED = {  # what is no function of arrays, or not one that a program differentiates
    "save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "test",
    "info", "show_config", "show_runtime", "get_include", "getbufsize", "setbufsize", "seterr", "geterr", "seterrcall",
    "geterrcall", "set_printoptions", "get_printoptions", "printoptions", "errstate", "array_repr", "array_str",
    "array2string", "format_float_positional", "format_float_scientific", "fromregex", "fromstring", "frombuffer",
    "from_dlpack", "binary_repr", "base_repr", "tofile", "dump", "dumps", "tolist", "tobytes", "setflags", "getfield",
    "newbyteorder", "byteswap", "resize", "empty", "empty_like", "add_docstring", "may_share_memory", "shares_memory",
    "vectorize", "frompyfunc", "nditer", "ndenumerate", "ndindex", "broadcast", "asmatrix", "matrix", "bmat",
    "recarray", "record", "chararray", "poly1d", "lookfor", "get_array_wrap", "result_type", "can_cast",
    "min_scalar_type", "common_type", "mintypecode", "isdtype", "issubdtype", "finfo", "iinfo", "dtype", "typename",
    "einsum_path", "nested_iters", "nextafter", "spacing", "as_strided", "isscalar", "ufunc", "fromiter",
    "fromfunction", "busday_count", "busday_offset", "is_busday", "datetime_as_string", "datetime_data", "ScalarType",
    "busdaycalendar", "set_numeric_ops", "require", "ndarray", "__dlpack__", "__dlpack_device__", "to_device",
}  # fmt: skip

# NumPy's own results are wrong on some CPUs: np.power.reduce([2.0, 3.0, 4.0]) is 16 with AVX-512.
WRONG_IN_NUMPY = {f"np.{name}.reduce" for name in ("arctan2", "atan2", "power", "pow", "float_power")}
STEPS = {"around", "round", "rint", "fix", "trunc", "floor", "ceil"}


class Call(NamedTuple):
    """A NumPy callable with arguments that NumPy accepts."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    what: str  # the kind of arguments and keywords, for the list

    def __str__(self) -> str:
        return f"{self.name}({self.what})"


# ---- deriving


def list_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield NumPy's public functions and ufuncs, methods of ufuncs, and methods of arrays, with their names."""
    poly = np.polynomial
    modules = [
        ("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft), ("np.polynomial.polynomial", poly.polynomial),
        ("np.polynomial.chebyshev", poly.chebyshev), ("np.polynomial.legendre", poly.legendre),
        ("np.lib.stride_tricks", np.lib.stride_tricks), ("np.lib.scimath", np.lib.scimath),
    ]  # fmt: skip
    for prefix, module in modules:
        for name in sorted(dir(module)):
            found = getattr(module, name)
            if name.startswith("_") or name in SKIPPED or not callable(found) or isinstance(found, type):
                continue
            yield f"{prefix}.{name}", found
            if isinstance(found, np.ufunc) and prefix == "np":
                for method in ("reduce", "accumulate", "outer"):
                    if found.nin == 2 and found.nout == 1:
                        yield f"{prefix}.{name}.{method}", getattr(found, method)
    for name in sorted(dir(np.ndarray)):
        if not name.startswith("__") and name not in SKIPPED:
            yield f"ndarray.{name}", make_method(name)
    yield "np.r_", lambda *args: np.r_[args]
    yield "np.c_", lambda *args: np.c_[args]
    for name in (
        "__getitem__",
        "__add__",
        "__rsub__",
        "__pow__",
        "__matmul__",
        "__neg__",
        "__abs__",
        "__divmod__",
        "__iadd__",
        "__imul__",
    ):
        yield f"ndarray.{name}", make_method(name)


def make_method(name: str) -> Callable[..., Any]:
    """Return a function that calls a method of its first argument or reads an attribute; in place, it gives that."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(x, name)
        if not callable(found):
            if args or kwargs:
                raise TypeError(name)
            return found
        made = found(*args, **kwargs)
        return x if made is None else made

    call.__signature__ = _signature_of(getattr(np.ndarray, name))  # type: ignore[attr-defined]
    return call


def _signature_of(function: Any) -> Any:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


UFUNC_KEYWORDS = ("dtype", "where", "out", "casting", "order", "subok")
METHOD_KEYWORDS = {
    "sum": "axis dtype keepdims initial where", "mean": "axis dtype keepdims where", "std": "axis ddof keepdims where",
    "var": "axis ddof keepdims where", "max": "axis keepdims initial where", "min": "axis keepdims initial where",
    "prod": "axis dtype keepdims initial where", "cumsum": "axis dtype", "cumprod": "axis dtype", "sort": "axis kind",
    "argsort": "axis kind", "argmax": "axis keepdims", "argmin": "axis keepdims", "ptp": "axis keepdims",
    "round": "decimals", "trace": "offset dtype", "ravel": "order", "reshape": "order copy", "flatten": "order",
    "astype": "order casting copy", "squeeze": "axis", "diagonal": "offset", "take": "axis mode", "repeat": "axis",
    "clip": "min max", "all": "axis keepdims where", "any": "axis keepdims where", "partition": "axis",
    "argpartition": "axis", "compress": "axis", "swapaxes": "", "searchsorted": "side",
}  # fmt: skip
REDUCE_KEYWORDS = ("axis", "dtype", "keepdims", "initial", "where")
FROM_METHODS = {
    "ndarray.astype": (np.float32,),
    "ndarray.reshape": ((-1,),),
    "ndarray.view": (),
    "ndarray.fill": (0.5,),
    "ndarray.item": (1,),
}


def list_keywords(name: str, function: Any) -> list[str]:
    """Return the keywords of a callable that the table has values for."""
    last = name.rsplit(".", 1)[-1]
    if isinstance(function, np.ufunc):
        return [*UFUNC_KEYWORDS]
    if last in ("reduce", "accumulate"):
        return [*REDUCE_KEYWORDS]
    if name.startswith("ndarray."):
        return METHOD_KEYWORDS.get(last, "").split()
    signature = getattr(function, "__signature__", None) or _signature_of(function)
    return [k for k in (signature.parameters if signature else ()) if k in KEYWORDS or k == "out"]


def derive_calls(only: str = "", one_of: int = 1, first: int = 0) -> list[Call]:
    """Return all calls that NumPy accepts on plain arrays and that give numbers; of one of so many names."""
    made: dict[Any, Call] = {}
    for name, function in [*list_functions()][first::one_of]:
        if only not in name or name in WRONG_IN_NUMPY:
            continue
        own = {"its own arguments": SPECIAL[name]} if name in SPECIAL else {}
        keywords = list_keywords(name, function)
        for kind, args in (ARGUMENTS | own).items():
            if kind.startswith("symmetric") and "linalg" not in name:  # equal elements, between which sorting chooses
                continue
            if name in FROM_METHODS:
                args = (*args[:1], *FROM_METHODS[name])
            if any(map(is_list_of_arrays, args)) and not is_dispatched(function, args):
                continue  # NumPy makes one array of such a list, whatever is in it
            variants: list[dict[str, Any]] = [{}]
            base = _try(function, args, {})
            variants += [{k: v} for k in keywords if k != "out" for v in KEYWORDS[k]]
            if "axis" in keywords:
                more = [k for k in ("keepdims", "where", "initial", "ddof") if k in keywords]
                variants += [{"axis": 0, k: v} for k in more for v in KEYWORDS[k]]
            if "out" in keywords and isinstance(base, np.ndarray) and base.dtype.kind == "f":
                variants += [{"out": "like the result"}]
            if isinstance(function, np.ufunc):  # without out=, elements that where= leaves out are undefined
                variants = [{**v, "out": "like the result"} if "where" in v else v for v in variants]
            if isinstance(function, np.ufunc) and len(args) > function.nin:
                continue  # the last ones would be written to
            for kwargs in variants:
                result = _try(function, args, _place_out(kwargs, base))
                if result is None:
                    continue
                what = kind + "".join(f", {k}={_show(v)}" for k, v in kwargs.items())
                made[name, what] = Call(name, function, args, _place_out(kwargs, base), what)
    return [*made.values()]


class DispatchedError(Exception):
    """NumPy gave a call to one of its arguments."""


class Probe:
    """Stands for an array and records which calls NumPy dispatches to it."""

    shape, ndim, dtype = (3,), 1, np.dtype(float)

    def __array_function__(self, *args: Any) -> Any:
        raise DispatchedError

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise DispatchedError


def is_list_of_arrays(x: Any) -> bool:
    return isinstance(x, list | tuple) and bool(x) and isinstance(x[0], np.ndarray)


def is_dispatched(function: Any, args: Any) -> bool:
    """Return whether NumPy leaves a call to the arrays in its arguments."""

    def replace(x: Any) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            return Probe()
        return type(x)(map(replace, x)) if isinstance(x, list | tuple) else x

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*replace(args))
    except DispatchedError:
        return True
    except Exception:
        return False
    return False


def _show(v: Any) -> str:
    return "array" if isinstance(v, np.ndarray) else getattr(v, "__name__", str(v))


def _place_out(kwargs: dict[str, Any], base: Any) -> dict[str, Any]:
    return {k: np.full_like(base, 0.25) if k == "out" else v for k, v in kwargs.items()}


def _copy(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy()
    return type(x)(map(_copy, x)) if isinstance(x, list | tuple) else x


def _try(function: Any, args: Any, kwargs: Any) -> Any:
    """Return the numbers that NumPy gives for a call, None if it refuses it or gives none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*_copy(args), **{k: _copy(v) for k, v in kwargs.items()})
        numbers = list(iterate_numbers(result))
    except Exception:
        return None
    if not numbers or not all(np.all(np.isfinite(n)) for n in numbers):
        return None
    return result


NUMBERS = (np.ndarray, np.generic, float, int, complex, pb.Tensor)


def kind_of(x: Any) -> str:
    return np.dtype(getattr(x, "dtype", float)).kind


def iterate_numbers(result: Any) -> Iterator[Any]:
    """Yield the arrays in a result."""
    if isinstance(result, np.ndarray) and result.dtype.kind == "O":  # traced numbers, which any op joins
        result = pb.asarray(result)
    if isinstance(result, list | tuple):
        for item in result:
            yield from iterate_numbers(item)
    elif isinstance(result, NUMBERS) and kind_of(result) in "biufc":
        yield result
    elif hasattr(result, "coef"):
        yield result.coef
    elif result is not None and not isinstance(result, str | bytes | dict | set | np.dtype):
        raise TypeError(type(result).__name__)


# ---- judging


def judge(call: Call) -> tuple[str, str]:
    """Return "right", "refused", "broken", "wrong" or "no gradient" for a call, and why."""
    places: list[np.ndarray[Any, Any]] = []

    def collect(x: Any) -> Any:
        at = len(places)
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            places.append(x)
            return lambda found: found[at]
        if isinstance(x, list | tuple):
            parts = [collect(item) for item in x]
            return lambda found: type(x)(part(found) for part in parts)
        if type(x) is float:
            places.append(np.array(x))
            return lambda found: found[at]
        return lambda found: _copy(x)

    pick = collect(call.args)
    more = {k: v for k, v in call.kwargs.items() if not (isinstance(v, np.ndarray) and k == "out")}
    has_out = "out" in call.kwargs

    def run(found: list[Any], traced: bool) -> list[Any]:
        found = [f * 1.0 for f in found]  # what is written to is no input
        kwargs = dict(more)
        if has_out:
            kwargs["out"] = pb.tensor(call.kwargs["out"].copy()) if traced else call.kwargs["out"].copy()
        return list(iterate_numbers(call.function(*pick(found), **kwargs)))

    if not places:
        return "skipped", "nothing to differentiate"
    try:
        plain = run(places, False)
    except Exception:  # a single number in place of an array of no axes
        return "skipped", "harness"
    weights = [np.asarray(np.random.default_rng(i).uniform(0.5, 1.5, np.shape(v))) for i, v in enumerate(plain)]

    def total(results: list[Any]) -> Any:
        s: Any = 0.0
        for w, v in zip(weights, results, strict=True):
            if kind_of(v) == "c":
                s = s + np.sum(w * np.real(v)) + 0.7 * np.sum(w * np.imag(v))
            elif kind_of(v) == "f":
                s = s + np.sum(w * v)
        return s

    is_step = call.name.rsplit(".", 1)[-1] in STEPS  # a step may be within the distance of the differences
    expected = [
        np.zeros(p.shape) if is_step else _differentiate(lambda *xs: total(run([*xs], False)), places, i)
        for i, p in enumerate(places)
    ]
    single = more.get("dtype") is np.float32 or any(np.asarray(v).dtype.char in "fFe" for v in plain)
    rtol = 3e-2 if single else 1e-4
    found: list[Any] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values: list[Any] = []

            def traced(*xs: Any) -> Any:
                results = run(list(xs), True)
                values[:] = [np.asarray(pb.stop_gradient(r) if isinstance(r, pb.Tensor) else r) for r in results]
                return total(results) + sum(np.sum(0.0 * x) for x in xs)

            found = pb.grads(traced, unconnected="zero")(places)
    except PullbackError as error:
        return "refused", str(error).splitlines()[0]
    except Exception as error:
        return "broken", f"{type(error).__name__}: {error}".splitlines()[0]
    if len(values) != len(plain):
        return "wrong", f"{len(values)} results, not {len(plain)}"
    for got, want in zip(values, plain, strict=True):
        if np.shape(got) != np.shape(want):
            return "wrong", f"shape {np.shape(got)}, not {np.shape(want)}"
        if not np.allclose(got, want, rtol=1e-5, atol=1e-6):
            return "wrong", "value"
    if not all(np.isfinite(e).all() for e in expected):
        return "skipped", "no derivative here"
    for got, want in zip(found, expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
        if not np.allclose(got, want, rtol=rtol, atol=rtol * scale):
            return "wrong", f"gradient {np.asarray(got).ravel()[:4]}, not {want.ravel()[:4]}"
    return ("right", "") if any(np.any(e) for e in expected) else ("no gradient", "")


def _differentiate(f: Any, places: list[Any], i: int) -> Any:
    h, x = 1e-4, places[i]
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at] += h
        down[at] -= h
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                out[at] = (f(*places[:i], up, *places[i + 1 :]) - f(*places[:i], down, *places[i + 1 :])) / (2 * h)
            except Exception:
                out[at] = np.nan
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every call that is not right")
    parser.add_argument("--only", default="", help="names that contain this")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    functions: dict[str, Counter[str]] = {}
    for call in derive_calls(given.only):
        verdict, why = judge(call)
        counts[verdict] += 1
        functions.setdefault(call.name, Counter())[verdict] += 1
        if given.list and verdict not in ("right", "no gradient", "skipped"):
            print(f"{verdict:8} {call}: {why}")
    print(", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())), "of", sum(counts.values()), "calls")
    whole = sum(not (c["refused"] or c["broken"] or c["wrong"]) for c in functions.values())
    print(f"{whole} of {len(functions)} names without a call that is refused, broken or wrong")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
