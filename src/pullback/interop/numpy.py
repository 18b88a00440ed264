"""NumPy's protocols ``__array_function__`` and ``__array_ufunc__``: the implementation of ``np.f(tensor)``.

A function is looked up once: it is an op, or a composition from the tables in ``numpy_*.py``, with NumPy's signature.
A NumPy function without an implementation here runs on constants, and where its results are integers or bools, which
have no gradient; otherwise it raises an error, so that no gradient is lost silently.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback import late_binding
from pullback.core.tensor import BY_KERNEL, NUMPY, UNARY, Tensor, is_foreign, strip
from pullback.core.writes import fit_result, write
from pullback.errors import ArgumentError
from pullback.interop import (
    numpy_elements,
    numpy_products,
    numpy_reductions,
    numpy_shapes,
    numpy_ufunc_methods,
    numpy_ufuncs,
    numpy_writes,
)
from pullback.interop.numpy_arguments import (
    TABLES,
    align_operands,
    has_inexact,
    is_traced,
    iterate_tensors,
    make_no_rule_error,
    run_without_rule,
    unwrap,
)
from pullback.interop.numpy_layout import arrange, has_order_of_kernel, has_other_order, keep_order
from pullback.interop.numpy_parameters import apply_parameters, convert_operands

if TYPE_CHECKING:
    from pullback.typing import Value

TABLES += [
    numpy_reductions.FUNCTIONS, numpy_shapes.FUNCTIONS, numpy_elements.FUNCTIONS, numpy_products.FUNCTIONS,
    numpy_ufuncs.FUNCTIONS, numpy_writes.FUNCTIONS,
]  # fmt: skip
ALIASES = {
    np.amax: np.max, np.amin: np.min, np.around: np.round,
    np.linalg.tensordot: np.tensordot, np.linalg.outer: np.outer, np.linalg.cross: np.cross,
    np.linalg.matrix_transpose: np.matrix_transpose,
}  # fmt: skip
# Defaults of the parameters of ufuncs.
USUAL = {"where": True, "casting": "same_kind", "order": "K", "subok": True, "dtype": None, "out": None}
WITHOUT_EFFECT = frozenset({"order", "casting", "subok"})  # on the elements of a result, for ufuncs
METHOD_PARAMETERS = ("axis", "keepdims", "dtype", "where", "initial")
INSTEAD = {
    "out": "A traced Tensor cannot be written into an array: use the result (x = x + t, not x += t), or make x a "
    "tensor by pb.zeros(shape, dtype).",
    "where": "Choose with np.where instead.",
    "dtype": "Convert with np.astype instead.",
    "initial": "Add it to the result instead.",
    "order": "Elements are in C order; transpose first.",
}
NOTHING = np._NoValue  # NumPy's default for a parameter that is not given
Names = Mapping[str, inspect.Parameter]


def get_qualified_name(function: Callable[..., Any]) -> str:
    """Return the name of a NumPy function with its module, for messages.

    >>> get_qualified_name(np.linalg.norm)
    'np.linalg.norm'
    """
    module = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"


# ---- without a rule


def call_without_rule(
    name: str, run: Callable[..., Any], args: Any, kwargs: Any, unknown: Any = (), out: Any = None
) -> Any:  # fmt: skip
    """Call a NumPy function on plain arrays; raise an error if that would lose a gradient.

    ``unknown`` are the given parameters that the function of this library does not take.
    """
    out = kwargs.get("out", out)
    if any(True for _ in iterate_tensors([out])):
        raise ArgumentError(f"{name}(out=): write the result into the tensor instead, as in x[...] = {name}(...).")
    followed = any(t.read().level and strip(t) is not t.read() for t in iterate_tensors((args, kwargs)))
    loses = out is not None and is_traced(args, kwargs) and any(map(has_inexact, out if type(out) is tuple else [out]))
    if (unknown and followed) or loses:
        unknown = unknown or ["out"]
        why = "".join(f" {INSTEAD[k]}" for k in unknown if k in INSTEAD)
        raise make_no_rule_error(f"{name}({', '.join(f'{k}=' for k in unknown)}) of a traced Tensor", why)
    return run_without_rule(name, run, args, kwargs) if out is None else run(*unwrap(args), **unwrap(kwargs))


# ---- functions


def call_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a NumPy function that is not in the table ``NUMPY`` yet, or has no rule."""
    call = find_call(func)
    if call is None:
        return call_without_rule(get_qualified_name(func), func, args, kwargs)
    adapted = adapt_signature(func, call)
    op = getattr(call, "op", None)
    if op is not None and has_order_of_kernel(op):
        NUMPY[func] = adapted
        if len(op.inputs) == 1 and not op.variadic:
            UNARY[func] = call
    else:
        NUMPY[func] = adapted = keep_order(func, adapted)
    return adapted(*args, **kwargs)


def find_call(func: Any) -> Any:
    """Return the composition or op that implements a NumPy function; None if there is none."""
    func = ALIASES.get(func, func)
    for table in TABLES:
        if func in table:
            return table[func]
    is_op = func in BY_KERNEL
    # np.linalg and np.fft, then rare ones
    if late_binding.load_numpy_module(func.__module__) or (not is_op and late_binding.load_ops()):
        return find_call(func)
    return BY_KERNEL[func].function if is_op else None


def adapt_signature(func: Callable[..., Any], call: Callable[..., Any]) -> Any:
    """Return ``call`` with the signature of ``func``; parameters that it does not take must have defaults."""
    ours = inspect.signature(call).parameters
    try:
        theirs = inspect.signature(func).parameters
    except ValueError:  # written in C, in older NumPy
        theirs = ours
    order = [n for n, p in theirs.items() if p.kind < p.VAR_POSITIONAL]
    inputs = [n for n, p in ours.items() if p.kind is p.POSITIONAL_ONLY]
    least = len(inputs)
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in theirs.values())
    takes_any = any(p.kind is p.VAR_KEYWORD for p in ours.values())
    takes = frozenset({*ours} - {*inputs})
    lead = count_common_parameters(ours, order, least)
    adapted = Adapted(func, call, theirs, order, least, takes, open_ended, takes_any)

    def stand_in(*args: object, **kwargs: object) -> Any:
        if not kwargs and least <= len(args) <= lead:
            return call(*args)
        if open_ended or least <= len(args) <= lead:
            for k, v in kwargs.items():
                if (k not in takes and not takes_any) or v is NOTHING:
                    break
            else:
                return call(*args, **kwargs)
        return adapted(*args, **kwargs)

    return stand_in


class Adapted(NamedTuple):
    """A NumPy function and ``call``, which implements it: for calls whose arguments must be matched by name."""

    func: Callable[..., Any]
    call: Callable[..., Any]
    theirs: Names
    order: list[str]  # NumPy's positional parameters
    inputs: int  # how many positional-only parameters ``call`` has
    takes: frozenset[str]  # its other parameters
    open_ended: bool  # whether NumPy's function takes any number of positional arguments
    takes_any: bool  # whether ``call`` takes any keyword

    def __call__(self, *args: object, **kwargs: object) -> Any:
        by_name = kwargs if self.open_ended else dict(zip(self.order, args, strict=False)) | kwargs
        first = list(args) if self.open_ended else [by_name.pop(n) for n in self.order[: self.inputs] if n in by_name]
        out = by_name.get("out")
        if isinstance(out, Tensor):
            return write_result(
                f"{get_qualified_name(self.func)}(out=x)", out, self(*first, **{**by_name, "out": None})
            )
        unknown = [k for k, v in by_name.items() if not self._is_taken(k) and not is_default(v, self.theirs.get(k))]
        taken = {k: v for k, v in by_name.items() if self._is_taken(k) and v is not NOTHING}
        if not unknown:
            return self.call(*first, **taken)
        result = apply_parameters(self.func, self.call, first, taken, {k: by_name[k] for k in unknown})
        if result is NotImplemented:
            return call_without_rule(get_qualified_name(self.func), self.func, args, kwargs, unknown, out)
        return result

    def _is_taken(self, keyword: str) -> bool:
        return self.takes_any or keyword in self.takes


def count_common_parameters(ours: Names, order: list[str], inputs: int) -> int:
    """Count the leading parameters that both signatures share; the names of inputs may differ."""
    n = 0
    for (name, p), other in zip(ours.items(), order, strict=False):
        if n >= inputs and (name != other or p.kind > p.POSITIONAL_OR_KEYWORD):
            break
        n += 1
    return n


def is_default(value: object, parameter: inspect.Parameter | None) -> bool:
    """Return whether a parameter has its default value."""
    if value is None or value is NOTHING:
        return True
    return is_same(value, parameter.default if parameter is not None else None)


def is_same(value: object, default: object) -> bool:
    return value is default or (isinstance(value, str | bool) and value == default)


# ---- ufuncs


def call_ufunc(ufunc: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc that has no op, or with parameters or lists, or one of its methods."""
    if any(is_foreign(type(a)) for a in (*args, *(kwargs.get("out") or ()))):
        return NotImplemented
    name, function = _get_method(ufunc, method)
    if method == "at":
        return numpy_writes.write_at(ufunc, *args)
    if is_writable(out := kwargs.get("out")):
        return write_results(name, function, args, kwargs)
    args = convert_lists(args)
    if method == "__call__" and kwargs.get("dtype") is not None and out is None:
        kwargs = dict(kwargs)
        args = convert_operands(name, args, kwargs.pop("dtype"), kwargs.get("casting", "same_kind"))
    call, takes = find_ufunc_call(ufunc, method)
    known, unknown = _sort_keywords(kwargs, takes)
    if call is None or unknown:
        return call_without_rule(name, function, args, kwargs, unknown)
    z = call(*args, **known)
    is_ordered = kwargs.get("order", "K") != "K" or (method != "__call__" and has_other_order(args))
    return arrange(z, function, args, kwargs) if is_ordered else z


def _sort_keywords(kwargs: dict[str, Any], takes: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the keywords to pass on, and the names of those that have an effect and cannot be passed on."""
    changed = {k: v for k, v in kwargs.items() if k not in USUAL or not is_same(v, USUAL[k])}
    unknown = [k for k in changed if k not in takes and k not in WITHOUT_EFFECT]
    return {k: v for k, v in changed.items() if k in takes}, unknown


def _get_method(ufunc: Any, method: str) -> tuple[str, Any]:
    """Return the name of a method of a ufunc, as users write it, and the method."""
    name = f"np.{ufunc.__name__}"
    return (name, ufunc) if method == "__call__" else (f"{name}.{method}", getattr(ufunc, method))


def find_ufunc_op(ufunc: Any) -> Any:
    """Return the op for a ufunc of NumPy's or SciPy's, None if there is none."""
    op = BY_KERNEL.get(ufunc)
    return late_binding.find_scipy_op(ufunc) if op is None and "scipy.special" in sys.modules else op


def find_ufunc_call(ufunc: Any, method: str) -> tuple[Any, tuple[str, ...]]:
    """Return the function that implements a ufunc or one of its methods, None if there is none, and its parameters."""
    if method != "__call__":
        return getattr(numpy_ufunc_methods, method, lambda _: None)(ufunc), METHOD_PARAMETERS
    op = find_ufunc_op(ufunc)
    call = op.function if op is not None else numpy_ufuncs.CALLS.get(ufunc)
    if call is None and "scipy.special" in sys.modules:
        call = late_binding.find_special_function(ufunc)
    return call, numpy_ufuncs.TAKES.get(ufunc, ())


def is_writable(out: tuple[Any, ...] | None) -> bool:
    """Return whether results can be written into ``out=`` here: into tensors, or arrays of objects."""
    return out is not None and all(o is None or isinstance(o, Tensor) or o.dtype.kind == "O" for o in out)


def write_results(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc and write the results into the tensors ``out=``, where ``where=`` is true."""
    outs = kwargs["out"]
    masked = isinstance(function, np.ufunc) and "where" in kwargs
    chosen = kwargs["where"] if masked else True
    if chosen is not True:
        args = tuple(replace_skipped(function, a, chosen) for a in args)
    found = function(*args, **{k: v for k, v in kwargs.items() if k != "out" and not (k == "where" and masked)})
    results = found if isinstance(found, tuple) else (found,)
    given = tuple(
        new
        if out is None
        else write_result(f"{name}(out=x)", out, new if chosen is True else np.where(chosen, new, out))
        for out, new in zip(outs, results, strict=True)
    )
    return given if isinstance(found, tuple) else given[0]


def replace_skipped(ufunc: Callable[..., Any], x: Any, chosen: Any) -> Any:
    """Return an operand with another number where ``where=`` is false: one at which the ufunc has a derivative."""
    if not isinstance(x, Tensor) or x.dtype.kind not in "fc":
        return x
    op = find_ufunc_op(ufunc)
    return np.where(chosen, x, 0.8 if op is None else op.regular_point)


def write_result(subject: str, out: Value, new: Value) -> Any:
    """Write a result into ``out``, a tensor or an array of objects, and return it."""
    if not isinstance(out, Tensor):
        out[...] = np.array(new, object)
        return out
    write(out, lambda _: fit_result(out, new, subject), subject)
    return out


def convert_lists(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with lists as arrays and numbers as they are; in a ufunc an ``np.matrix`` is an array."""
    if any(isinstance(a, np.matrix) for a in args):
        args = tuple(np.asarray(a) if isinstance(a, np.matrix) else a for a in args)
    if not any(isinstance(a, list | tuple) for a in args):
        return args
    operands = align_operands(args)
    return tuple(b if isinstance(a, list | tuple) else a for a, b in zip(args, operands, strict=True))
