"""Errors about missing names and keywords, with the name in this library from the table or by similarity."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dis import opmap
from functools import partial, wraps
from importlib import import_module
from inspect import CO_VARKEYWORDS, Parameter, signature
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np

from pullback.errors import ArgumentError, MissingImportError, MissingNameError
from pullback.names.table import (
    FUNCTIONS,
    FUNCTIONS_OF_FUNCTIONS,
    FURTHER,
    INSTANCES,
    KEYWORDS,
    METHODS,
    MODULES,
    UNNEEDED_KEYWORDS,
)

if TYPE_CHECKING:
    from pullback.typing import TensorLike

Thing = TypeVar("Thing")

_IMPORT_FROM = opmap["IMPORT_FROM"]
IMPORTED_LATER: dict[str, dict[str, str]] = {}  # public module -> its names that are imported when used, and from where
_classes: set[type] = set()  # those whose methods check their keywords
_TABLE = {name: answer for names in FUNCTIONS.values() for name, answer in names.items()} | FURTHER


def _normalize(name: str) -> str:
    """Return a name in lower case without underscores, to compare spellings."""
    return name.replace("_", "").lower()


def _find_nearest(name: str, names: Iterable[str], cutoff: float = 0.7) -> list[str]:
    """Return at most three names that are most similar to this one."""
    by_lower = {other.lower(): other for other in names}
    find = import_module("difflib").get_close_matches  # only errors need it, and it takes time to import
    return [by_lower[near] for near in find(name.lower(), by_lower, 3, cutoff)]


def _join_names(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


# ---- names in modules


def make_name_error(module: str, name: str) -> MissingNameError | MissingImportError:
    """Return the error for a missing attribute of a public module, such as ``"pb.train"``, in the caller's caller.

    The explanation is computed when the message is read: most lookups are probes by ``hasattr``.  In
    ``from module import name`` it is an ImportError: Python replaces an AttributeError by a bare one.
    """
    caller = sys._getframe(2)
    if caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM:
        message = f"cannot import name '{name}' from '{MODULES[module]}'"
        return MissingImportError(f"{message}. {_explain_name(module, name)}", name=MODULES[module])
    message = f"module '{MODULES[module]}' has no attribute '{name}'"
    if name.startswith("_"):  # looked up by Python, IPython, pickle and the like
        return MissingNameError(message)
    return MissingNameError(message, partial(_explain_name, module, name))


def _explain_name(module: str, name: str) -> str:
    inside = module.partition(".")[2]
    listed = _TABLE.get(f"{inside}.{name}") or _TABLE.get(name)
    if listed:
        return f"{module}.{name} is {listed}."
    public, normalized = _list_public_names(), _normalize(name.removesuffix("Async"))  # nothing is a promise here
    spelt = [(n, other) for other in (module, *public) for n in public[other] if _normalize(n) == normalized]
    for n, other in sorted(spelt, key=lambda pair: (pair[1] != module, pair[0] != name, pair[0] != pair[0].lower())):
        return f"{module}.{name} is {other}.{n}."
    for there, answer in _TABLE.items():
        if _normalize(there) == normalized:
            return f"{module}.{name} is {answer}."
    if callable(getattr(np, name, None)):
        return f"{module}.{name} is np.{name}: NumPy's functions take tensors where they have a derivative."
    for other in (module, *public):
        if near := _find_nearest(name, public[other], 0.7 if other == module else 0.8):
            return f"Did you mean {_join_names(f'{other}.{n}' for n in near)}?"
    return f"dir({module}) lists its names."


def _list_public_names() -> dict[str, list[str]]:
    """Return the names in every public module; imports those that are not yet imported."""
    return {module: _list_module_names(import_module(path)) for module, path in MODULES.items()}


def _list_module_names(module: ModuleType) -> list[str]:
    """Return the names that a module is for: its ``__all__``, or what it has beside its own submodules."""
    space = vars(module)
    if isinstance(space.get("__dir__"), FunctionType):
        return dir(module)
    return [n for n in space.get("__all__") or sorted(space) if not n.startswith("_") and _is_exported(space.get(n))]


def _is_exported(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__ in MODULES.values()
    return type(value).__module__ != "__future__"


def install_answers(*modules: str) -> None:
    """Make public modules explain missing names, and their functions and classes explain unknown keywords."""
    for name in modules:
        module = sys.modules[MODULES[name]]
        namespace = vars(module)
        if name in IMPORTED_LATER:
            namespace["__all__"] = [*namespace["__all__"], *IMPORTED_LATER[name]]
        namespace.setdefault("__getattr__", partial(_find_name, name))
        namespace.setdefault("__dir__", partial(_list_module_names, module))
        for attribute in _list_module_names(module):
            if _is_own(namespace.get(attribute)):
                home = module.__name__ if name in ("pb", "pb.train") else ""  # the others define their functions
                namespace[attribute] = check_keywords(namespace[attribute], home, attribute)


def _is_own(thing: object) -> bool:
    return (getattr(thing, "__module__", None) or "").partition(".")[0] == "pullback"


def _find_name(module: str, name: str) -> Any:
    """Return what a public module has under a name, imported now; raise an error if it has no such name."""
    path = IMPORTED_LATER.get(module, {}).get(name)
    if path is None:
        raise make_name_error(module, name)
    home, found = sys.modules[MODULES[module]], import_module(path)
    value = found if path.endswith(f".{name}") else check_keywords(getattr(found, name), home.__name__, name)
    setattr(home, name, value)
    return value


# ---- names of methods


class _MissingMethod:
    """A descriptor under the name that a method has in another library: getting it raises an AttributeError."""

    def __init__(self, name: str, answer: str) -> None:
        self.name, self.answer = name, answer

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise MissingNameError(f"'{owner.__name__}' object has no attribute '{self.name}'. {self.answer}")


class _MissingSlot(_MissingMethod):
    """A missing method of a class with slots: setting it raises too, which else would give a less helpful error."""

    def __set__(self, instance: Any, value: Any) -> NoReturn:
        self.__get__(instance, type(instance))


def _install_missing_methods(cls: type) -> None:
    """Put a descriptor on a class for each name that its methods have in other libraries.

    A ``__getattr__`` would need no descriptors, but would make every attribute of the class slower to get.
    """
    known = next((part.__name__ for part in cls.__mro__ if part.__name__ in METHODS), None)
    if known is None:
        return
    x = INSTANCES[known]
    answers = {_to_camel_case(name): f"{x}.{name}" for name in vars(cls) if name[0] != "_"}
    if cls.__name__ == known:
        answers |= {_to_snake_case(name): answer for name, answer in METHODS[known].items()} | METHODS[known]
        _register_completion(cls)
    kind = _MissingSlot if hasattr(cls, "__slots__") else _MissingMethod
    for name in answers.keys() - {*dir(cls)}:
        setattr(cls, name, kind(name, f"{x}.{name} is {answers[name]}."))


def list_attributes(self: object) -> list[str]:
    """Return the public attributes of an instance: not descriptors of missing methods, nor what the engine stores."""
    parts = type(self).__mro__
    hidden = {n for part in parts for n in vars(part).get("_internal", ())}
    missing = {n for part in parts for n, value in vars(part).items() if isinstance(value, _MissingMethod)}
    return [n for n in object.__dir__(self) if not n.startswith("_") and n not in hidden and n not in missing]


def _register_completion(cls: type) -> None:
    """Make IPython, if it runs, complete what ``dir(x)`` lists; by itself it adds every attribute of the class."""
    generics = sys.modules.get("IPython.utils.generics")
    if generics is not None:
        generics.complete_object.register(cls, lambda x, found: dir(x))


def _to_snake_case(name: str) -> str:
    """Return the spelling of a name here: ``data_sync`` for ``dataSync``."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _to_camel_case(name: str) -> str:
    """Return the spelling of a name in TensorFlow.js: ``toFloat`` for ``to_float``, ``as1D`` for ``as1d``."""
    first, *rest = name.split("_")
    if name[-2:-1].isdigit() and name[-1] == "d":
        return name[:-1] + "D"
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


# ---- keyword arguments


def check_keywords(thing: Thing, home: str = "", name: str = "") -> Thing:
    """Wrap a public function so that it explains unknown keywords; of a class, wrap the methods in place.

    The functions of ops are not wrapped: their generated text has the check.  ``home`` and ``name``: the module and the
    name by which pickle finds the wrapped function in any process.
    """
    if isinstance(thing, type):
        if not issubclass(thing, BaseException | tuple):
            for part in thing.__mro__:
                _check_methods(part)
        return thing
    if not isinstance(thing, FunctionType) or hasattr(thing, "op") or not _takes_keywords(thing):
        return thing
    if "checked" not in vars(thing):
        wrapped = _wrap(thing)
        wrapped.__qualname__ += ".checked"  # by which pickle finds it if it has no public name
        thing.checked = wrapped.checked = wrapped  # type: ignore[attr-defined]
    public = vars(thing)["checked"]
    if home and getattr(sys.modules[public.__module__], public.__name__, None) is not public:
        public.__module__, public.__qualname__ = home, name
    return cast("Thing", public)


def _takes_keywords(function: FunctionType) -> bool:
    """Return whether a function takes more than one argument; a single one is hardly ever given by keyword."""
    inner: Any = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = inner.__code__
    return bool(code.co_argcount + code.co_kwonlyargcount > 1 or code.co_flags & CO_VARKEYWORDS)


def _wrap(function: Callable[..., Any]) -> Any:
    @wraps(function)
    def call_checked(*args: TensorLike, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs) if kwargs else function(*args)  # the latter creates no dict
        except TypeError as error:
            if kwargs and (unknown := _find_unknown(function, kwargs)):
                raise make_call_error(function, unknown) from None
            if args and _is_about_the_call(error) and (answer := _explain_arguments(function, args)):
                raise ArgumentError(f"{_get_display_name(function)}() {answer}.") from None
            raise

    return call_checked


def _is_about_the_call(error: TypeError) -> bool:
    """Return whether an error is about the arguments of this call, and not one of the user's code inside."""
    caught_at = error.__traceback__
    return isinstance(error, ArgumentError) or (caught_at is not None and caught_at.tb_next is None)


def _check_methods(cls: type) -> None:
    if cls in _classes or not _is_own(cls):
        return
    _classes.add(cls)
    engine = hasattr(cls, "__array_ufunc__")  # of tensors, only the methods that were put there by ops
    for name, method in list(vars(cls).items()):
        if not isinstance(method, FunctionType) or (name.startswith("_") and name != "__init__"):
            continue
        if method.__module__ != cls.__module__:
            setattr(cls, name, check_keywords(method))
        elif _takes_keywords(method) and (name == "__init__" or not engine):
            setattr(cls, name, _wrap(method))
    if not any("__dir__" in vars(part) for part in cls.__mro__[:-1]):  # other than that of object
        cls.__dir__ = list_attributes  # type: ignore[method-assign, assignment]
    _install_missing_methods(cls)


def _find_unknown(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> list[str]:
    """Return the keywords that a function does not take; with ``**options``, those that mean a missing argument."""
    takes = signature(function).parameters
    unknown = [name for name in kwargs if name not in takes]
    if any(p.kind is Parameter.VAR_KEYWORD for p in takes.values()):
        needs = [p.name for p in takes.values() if p.default is p.empty and p.name not in kwargs]
        return [name for name in unknown if _find_equivalents(name, needs)]
    return unknown


def _explain_arguments(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Return a sentence about positional arguments that do not fit; empty if there is nothing to say."""
    if settings := _format_settings(function, args[-1]):
        return f"takes its settings as keywords: {settings}"
    call = FUNCTIONS_OF_FUNCTIONS.get(_get_display_name(function))
    if call is None or len(args) <= _count_positional(function):
        return ""
    return f"takes a function, and returns one that takes the arguments: {call}"


def _count_positional(function: Callable[..., Any]) -> int:
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in signature(function).parameters.values())


def _format_settings(function: Callable[..., Any], given: TensorLike) -> str:
    """Return the keywords for a TensorFlow.js dict of settings, as text; empty if it is no such dict."""
    takes = [*signature(function).parameters]
    if not isinstance(given, dict) or not given or not all(isinstance(key, str) for key in given):
        return ""
    meant = [_find_equivalents(key, takes) for key in given]
    return ", ".join(f"{names[0]}=…" for names in meant) if all(meant) else ""


def make_call_error(function: Callable[..., Any], unknown: Iterable[str], needs: Iterable[str] = ()) -> ArgumentError:
    """Return the error for a call with unknown keywords or, if there are none, with missing arguments."""
    parameters = signature(function).parameters.values()
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    takes = [p.name for p in parameters if p.kind in kinds and p.name != "self"]
    for first in unknown:
        return make_keyword_error(_get_display_name(function), first, takes)
    return ArgumentError(
        f"{_get_display_name(function)}() missing a required positional argument: it needs {', '.join(needs)}."
    )


def _get_display_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class for an ``__init__``."""
    *_, owner, name = ["", *function.__qualname__.removesuffix(".checked").split(".")]
    return owner if name == "__init__" else name


def make_keyword_error(called: str, unknown: str, takes: Iterable[str]) -> ArgumentError:
    """Return the error for a keyword that is not among those that are taken."""
    return ArgumentError(
        f"{called}() got an unexpected keyword argument '{unknown}'. {_explain_keyword(unknown, [*takes])}"
    )


def _explain_keyword(unknown: str, takes: list[str]) -> str:
    if same := _find_equivalents(unknown, takes):
        return f"It is '{same[0]}' here."
    if unknown in UNNEEDED_KEYWORDS:
        return f"{UNNEEDED_KEYWORDS[unknown]}."
    if near := _find_nearest(unknown, takes):
        return f"Did you mean {_join_names(f'{n!r}' for n in near)}?"
    return f"It takes {', '.join(takes)}." if takes else "It takes none."


def _find_equivalents(name: str, takes: list[str]) -> list[str]:
    """Return the names in this library that a keyword of another one may mean, the likeliest first."""
    spelt = [other for other in takes if _normalize(other) == _normalize(name)]
    return spelt or [other for other in KEYWORDS.get(name, ()) if other in takes]
