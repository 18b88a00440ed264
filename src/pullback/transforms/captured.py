"""Captured values: the names of traced tensors and variables that a function uses without being given them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pullback.core.interpreter import level_of
from pullback.core.source import find_user_line
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.errors import CapturedError

MAX_DEPTH = 4  # levels of functions, containers and objects that are searched


def line_of(f: Callable[..., Any]) -> str:
    """Return where a function is defined, as ``file.py:12``; the line of the user's call if that is not known."""
    while isinstance(f, partial):
        f = f.func
    code = getattr(f, "__code__", None) or getattr(vars(type(f)).get("__call__"), "__code__", None)
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}" if code else find_user_line()


def make_capture_error(
    face: str, where: str, functions: Iterable[Any], above: int, known: dict[str, Any], read: Sequence[Any]
) -> Exception:
    """Return the error for a result of a higher level than ``above``, with the names of the captured tensors."""
    functions = list(functions)
    names = {f"the variable '{v.name}'": None for v in read if level_of(v) > above}
    for name, held in [*known.items(), *(pair for f in functions for pair in iterate_names(f))]:
        for path, t in _iterate_tensors(name, held, MAX_DEPTH, set()):
            if level_of(t) > above:
                names[f"the variable '{t.name}'" if isinstance(t, Variable) else f"the traced tensor '{path}'"] = None
    subject = " and ".join(names) or "a traced tensor"
    return CapturedError(
        f"{face}: {where} uses {subject}, not one of its inputs, so its gradient would be lost. "
        f"Pass it as an input, or use stop_gradient on it ({line_of(functions[-1])})."
    )


VARIABLES = "Give grad_func a parameter 'variables' and let it return (input_grads, variable_grads), pass"


def make_variable_error(
    face: str, variables: Sequence[Variable], f: Callable[..., Any], cure: str = VARIABLES
) -> Exception:
    """Return the error for trainable variables that a gradient function does not take."""
    names = " and ".join(f"the variable '{v.name}'" for v in variables)
    return CapturedError(
        f"{face}: the body uses {names}, not one of its inputs, so its gradient would be lost. "
        f"{cure} it as an input, or use stop_gradient on it ({line_of(f)})."
    )


def iterate_names(f: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names a function finds outside itself, and what they stand for."""
    if isinstance(f, partial):
        yield from iterate_names(f.func)
        yield from ((f"argument {i}", a) for i, a in enumerate(f.args))
        yield from f.keywords.items()
        return
    if isinstance(f, MethodType):
        yield "self", f.__self__
        f = f.__func__
    if not isinstance(f, FunctionType):
        return
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
    names = f.__code__.co_varnames
    yield from zip(names[f.__code__.co_argcount - len(f.__defaults__ or ()) :], f.__defaults__ or (), strict=False)
    for name in dict.fromkeys(_global_names(f.__code__)):
        if name in f.__globals__:
            yield name, f.__globals__[name]


def _global_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _global_names(inner)


def _iterate_tensors(name: str, held: object, depth: int, seen: set[int]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in what a name stands for, each with its path."""
    if isinstance(held, Tensor):
        yield name, held
    if isinstance(held, Tensor | ModuleType | type) or not depth or id(held) in seen:
        return
    seen.add(id(held))
    if isinstance(held, FunctionType | MethodType | partial):
        inner = list(iterate_names(held))
    elif isinstance(held, dict):
        inner = [(f"{name}[{k!r}]", v) for k, v in held.items()]
    elif isinstance(held, list | tuple):
        inner = [(f"{name}[{i}]", v) for i, v in enumerate(held)]
    else:
        inner = [(f"{name}.{k}", v) for k, v in getattr(held, "__dict__", {}).items()]
    for path, v in inner:
        yield from _iterate_tensors(path, v, depth - 1, seen)
