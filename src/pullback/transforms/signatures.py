"""Users' functions: whether they are any, and whether they take the optional ``save``, ``saved`` and ``variables``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from pullback.errors import ArgumentError

BY_KEYWORD, BY_POSITION, NOT_AT_ALL = "keyword", "position", ""
POSITIONAL_ONLY, EITHER = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
VAR_POSITIONAL, VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
VARARGS, VARKEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


def check_function(subject: str, f: object) -> None:
    """Raise ArgumentError unless ``f`` can be called; ``subject`` names it, as ``grad(f): f``."""
    if not callable(f):
        raise ArgumentError(f"{subject} must be a function, got {type(f).__name__}.")


class Parameter(NamedTuple):
    name: str
    kind: Any
    optional: bool


# Keyed by the code of a function: gradient functions are new objects in every call.
_known: dict[int, tuple[CodeType, int, list[Parameter]]] = {}
MAX_SIGNATURES = 1000  # entries of the cache


def list_parameters(f: Callable[..., Any]) -> list[Parameter] | None:
    """Return the parameters of a function, a method, a ``partial`` or an object with ``__call__``.

    The result is None if they are not known.
    """
    if type(f) is FunctionType and not f.__dict__:
        code, known = f.__code__, _known.get(id(f.__code__))
        if known is None or known[0] is not code or known[1] != len(f.__defaults__ or ()):
            if len(_known) > MAX_SIGNATURES:
                _known.clear()
            known = _known[id(code)] = code, len(f.__defaults__ or ()), _list_code_parameters(f)
        return known[2]
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    return [Parameter(p.name, p.kind, p.default is not p.empty) for p in found]


def _list_code_parameters(f: FunctionType) -> list[Parameter]:
    """Return the parameters of a plain function, ten times as quickly as ``inspect``."""
    code, count = f.__code__, f.__code__.co_argcount
    names, required = code.co_varnames, count - len(f.__defaults__ or ())
    found = [
        Parameter(names[i], POSITIONAL_ONLY if i < code.co_posonlyargcount else EITHER, i >= required)
        for i in range(count)
    ]
    at, optional = count + code.co_kwonlyargcount, f.__kwdefaults__ or {}
    found += [Parameter(name, KEYWORD_ONLY, name in optional) for name in names[count:at]]
    for flag, kind in ((VARARGS, VAR_POSITIONAL), (VARKEYWORDS, VAR_KEYWORD)):
        if code.co_flags & flag:
            found.append(Parameter(names[at], kind, True))
            at += 1
    return found


def find_passing(f: Callable[..., Any], name: str, count: int, keywords: Collection[str] = ()) -> str:
    """Return how ``f`` takes the argument ``name`` after ``given`` positional ones: by keyword, by position, or not.

    It takes it if it has a parameter of that name, or needs more positional arguments than are given.

    >>> find_passing(lambda x, save: x, "save", 1), find_passing(lambda x, s: x, "save", 1)
    ('keyword', 'position')
    >>> find_passing(lambda x, k=2.0: x, "save", 1), find_passing(lambda *xs: xs, "save", 3)
    ('', '')
    """
    known = list_parameters(f)
    if known is None:
        return BY_POSITION
    named = next((p for p in known if p.name == name), None)
    if named is not None and named.kind in (EITHER, KEYWORD_ONLY):
        return BY_KEYWORD
    return BY_POSITION if len(list_required(known, keywords)) > count else NOT_AT_ALL


def list_required(known: list[Parameter], keywords: Collection[str] = ()) -> list[str]:
    """Return the names of the positional parameters without a default, and not among those given by keyword."""
    return [p.name for p in known if p.kind in (POSITIONAL_ONLY, EITHER) and not p.optional and p.name not in keywords]


def takes_separately(f: Callable[..., Any], count: int, apart_from: Collection[str]) -> bool:
    """Return whether ``f`` has a parameter for each of ``count`` arguments, beside those of the names ``apart_from``.

    >>> takes_separately(lambda d1, d2, saved: d1, 2, ["saved"]), takes_separately(lambda dy, saved: dy, 2, ["saved"])
    (True, False)
    """
    known = list_parameters(f) or []
    several = any(p.kind is VAR_POSITIONAL for p in known)
    return several or len(list_required(known, apart_from)) >= count


def accepts(f: Callable[..., Any], name: str) -> bool:
    """Return whether ``f`` may be given the keyword ``name``.

    >>> accepts(lambda dy, variables=None: dy, "variables"), accepts(lambda dy: dy, "variables")
    (True, False)
    """
    known = list_parameters(f)
    if known is None:
        return True
    return any(p.kind is VAR_KEYWORD or (p.name == name and p.kind is not POSITIONAL_ONLY) for p in known)
