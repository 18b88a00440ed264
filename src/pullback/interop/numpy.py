"""NumPy's protocols: what ``np.f(tensor)`` does.

A function is looked up once.  It is one of ours under NumPy's signature (an op, or a composition from the tables of the
neighbouring files), or it has no rule.  Without a rule it still runs on constants, and wherever its results are
integers or truth values, which carry no gradient; otherwise it is refused.  Nothing loses a gradient in silence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import BY_KERNEL, LATER, NUMPY, Tensor, is_foreign, strip
from pullback.core.writes import fit_result, write
from pullback.errors import ArgumentError
from pullback.interop import (
    numpy_elements,
    numpy_fft,
    numpy_linalg,
    numpy_products,
    numpy_reductions,
    numpy_shapes,
    numpy_ufuncs,
)
from pullback.interop.numpy_arguments import align_operands, is_traced, no_rule_error, run_without_rule, tensors, unwrap
from pullback.ops import special

if TYPE_CHECKING:
    from pullback.typing import Value

__all__: list[str] = []

TABLES: tuple[Mapping[Any, Any], ...] = (
    numpy_reductions.FUNCTIONS, numpy_shapes.FUNCTIONS, numpy_elements.FUNCTIONS, numpy_products.FUNCTIONS,
    numpy_linalg.FUNCTIONS, numpy_ufuncs.FUNCTIONS, numpy_fft.FUNCTIONS,
)  # fmt: skip
ALIASES = {
    np.amax: np.max, np.amin: np.min, np.around: np.round,
    np.linalg.tensordot: np.tensordot, np.linalg.outer: np.outer, np.linalg.cross: np.cross,
    np.linalg.matrix_transpose: np.matrix_transpose,
}  # fmt: skip
IN_PLACE = frozenset({np.fill_diagonal, np.put, np.copyto, np.place, np.putmask, np.put_along_axis})
# Parameters of ufuncs that say nothing new.
USUAL = {"where": True, "casting": "same_kind", "order": "K", "subok": True, "dtype": None, "out": None}
INSTEAD = {
    "out": "A traced Tensor cannot be written into an array: use the result (x = x * t, not x *= t).",
    "where": "Choose with np.where instead.",
    "dtype": "Convert with np.astype instead.",
    "initial": "Add it to the result instead.",
    "order": "Elements are in C order; transpose first.",
}
NOTHING = np._NoValue  # how NumPy writes that a parameter is not given
Names = Mapping[str, inspect.Parameter]


def qualified_name(function: Callable[..., Any]) -> str:
    """
    >>> qualified_name(np.linalg.norm)
    'np.linalg.norm'
    """
    module = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"


# ---- without a rule


def call_without_rule(
    name: str, run: Callable[..., Any], args: Any, kwargs: Any, unknown: Any = (), out: Any = None
) -> Any:  # fmt: skip
    """The function on plain arrays, unless that loses a gradient.  ``unknown`` are parameters that our own has not."""
    out = kwargs.get("out", out)
    if any(True for _ in tensors([out])):
        raise ArgumentError(f"{name}(out=): write the result into the tensor instead, as in x[...] = {name}(...).")
    followed = any(t.read().level and strip(t) is not t.read() for t in tensors((args, kwargs)))
    if (unknown and followed) or (out is not None and is_traced(args, kwargs)):
        unknown = unknown or ["out"]
        why = "".join(f" {INSTEAD[k]}" for k in unknown if k in INSTEAD)
        raise no_rule_error(f"{name}({', '.join(f'{k}=' for k in unknown)}) of a traced Tensor", why)
    return run_without_rule(name, run, args, kwargs) if out is None else run(*unwrap(args), **unwrap(kwargs))


def in_place_error(name: str) -> ArgumentError:
    return ArgumentError(
        f"{name} changes an array in place in a way that a gradient cannot follow. "
        "Write x[i] = v or x += v into a Tensor instead, or make a new one with np.where or np.concatenate."
    )


# ---- functions


def call_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that is met for the first time, or that has no rule."""
    if func in IN_PLACE:
        raise in_place_error(qualified_name(func))
    call = find_call(func)
    if call is None:
        return call_without_rule(qualified_name(func), func, args, kwargs)
    NUMPY[func] = made = adapt_signature(func, call)
    return made(*args, **kwargs)


def find_call(func: Any) -> Any:
    """What stands for a NumPy function here: a composition, or the op with this kernel."""
    func = ALIASES.get(func, func)
    for table in TABLES:
        if func in table:
            return table[func]
    return BY_KERNEL[func].function if func in BY_KERNEL else None


def adapt_signature(func: Callable[..., Any], call: Callable[..., Any]) -> Any:
    """``call`` with NumPy's parameters: by position or name, those it does not know left at their defaults."""
    ours = inspect.signature(call).parameters
    try:
        theirs = inspect.signature(func).parameters
    except ValueError:  # written in C, in older NumPy
        theirs = ours
    order = [n for n, p in theirs.items() if p.kind < p.VAR_POSITIONAL]
    inputs = [n for n, p in ours.items() if p.kind is p.POSITIONAL_ONLY]
    least = len(inputs)
    takes = frozenset({*ours} - {*inputs})
    open_ended = {p.kind for p in theirs.values()} & {inspect.Parameter.VAR_POSITIONAL}
    more = any(p.kind is p.VAR_KEYWORD for p in ours.values())
    lead = count_common_parameters(ours, order, least)

    def stand_in(*args: object, **kwargs: object) -> Any:
        if open_ended or least <= len(args) <= lead:
            for k, v in kwargs.items():
                if (k not in takes and not more) or v is NOTHING:
                    break
            else:
                return call(*args, **kwargs)
        by_name = kwargs if open_ended else dict(zip(order, args, strict=False)) | kwargs
        first = list(args) if open_ended else [by_name.pop(n) for n in order[:least] if n in by_name]
        out = by_name.get("out")
        if isinstance(out, Tensor):
            return write_result(f"{qualified_name(func)}(out=x)", out, stand_in(*first, **{**by_name, "out": None}))
        unknown = [k for k, v in by_name.items() if k not in takes and not more and not is_default(v, theirs.get(k))]
        if unknown:
            return call_without_rule(qualified_name(func), func, args, kwargs, unknown, by_name.get("out"))
        return call(*first, **{k: v for k, v in by_name.items() if (k in takes or more) and v is not NOTHING})

    return stand_in


def count_common_parameters(ours: Names, order: list[str], inputs: int) -> int:
    """How many leading parameters mean the same; the names of inputs do not matter."""
    n = 0
    for (name, p), other in zip(ours.items(), order, strict=False):
        if n >= inputs and (name != other or p.kind > p.POSITIONAL_OR_KEYWORD):
            break
        n += 1
    return n


def is_default(value: object, parameter: inspect.Parameter | None) -> bool:
    """Whether a parameter has its default value."""
    if value is None or value is NOTHING:
        return True
    return is_same(value, parameter.default if parameter is not None else None)


def is_same(value: object, default: object) -> bool:
    return value is default or (isinstance(value, str | bool) and value == default)


# ---- ufuncs


def call_ufunc(ufunc: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc without an op, with parameters, with lists, or one of its methods."""
    if any(is_foreign(type(a)) for a in (*args, *(kwargs.get("out") or ()))):
        return NotImplemented
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if method == "at":
        raise in_place_error(name)
    out = kwargs.get("out")
    if out is not None and all(o is None or isinstance(o, Tensor) for o in out):
        return write_results(name, ufunc if method == "__call__" else getattr(ufunc, method), args, kwargs)
    args = lists_to_arrays(args)
    call: Any
    said = {k: v for k, v in kwargs.items() if k not in USUAL or not is_same(v, USUAL[k])}
    if method == "__call__":
        op = BY_KERNEL.get(ufunc) or special.find_op(ufunc)
        call = op.function if op is not None else numpy_ufuncs.CALLS.get(ufunc)
        takes = numpy_ufuncs.TAKES.get(ufunc, ())
    else:
        call = getattr(numpy_ufuncs, method, lambda _: None)(ufunc)
        takes = ("axis", "keepdims")
    unknown = [k for k in said if k not in takes]
    if call is None or unknown:
        return call_without_rule(name, getattr(ufunc, method), args, kwargs, unknown)
    return call(*args, **said)


def write_results(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc with ``out=`` tensors: the results are written into them, where ``where=`` says so."""
    outs = kwargs["out"]
    masked = isinstance(function, np.ufunc) and "where" in kwargs
    chosen = kwargs["where"] if masked else True
    made = function(*args, **{k: v for k, v in kwargs.items() if k != "out" and not (k == "where" and masked)})
    results = made if isinstance(made, tuple) else (made,)
    given = tuple(
        new
        if out is None
        else write_result(f"{name}(out=x)", out, new if chosen is True else np.where(chosen, new, out))
        for out, new in zip(outs, results, strict=True)
    )
    return given if isinstance(made, tuple) else given[0]


def write_result(what: str, out: Value, new: Value) -> Any:
    """Write a result into the tensor ``out``, and return that."""
    write(out, lambda _: fit_result(out, new, what), what)
    return out


def lists_to_arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Lists become arrays; numbers stay, as ops know how to take them."""
    if not any(isinstance(a, list | tuple) for a in args):
        return args
    made = align_operands(args)
    return tuple(b if isinstance(a, list | tuple) else a for a, b in zip(args, made, strict=True))


LATER["function"] = call_function
LATER["ufunc"] = call_ufunc
