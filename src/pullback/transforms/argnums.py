"""``argnums`` and ``argnames``: choose the arguments of ``f`` to differentiate by, and call ``f`` with all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from inspect import Parameter, Signature, signature
from types import DynamicClassAttribute
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback import late_binding
from pullback.core.suggestions import did_you_mean
from pullback.errors import ArgumentError
from pullback.transforms.leaf_names import list_parameter_names
from pullback.transforms.signatures import check_function

if TYPE_CHECKING:
    from pullback.typing import ArgNames, ArgNums, Operand

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
DEFAULTS = (None, False, "raise", "auto")  # of options, which a notebook does not show


class Cotangent(Parameter):
    """The parameter ``dy`` that a gradient function has beside those of ``f``."""


def signature_of(f: Any) -> Signature | None:
    """Return the signature of ``f``, or None; the ``dy`` that gradient functions add is left out."""
    if isinstance(f, np.ufunc):  # the parameter out= is no input
        return Signature([Parameter(f"x{i + 1}", Parameter.POSITIONAL_ONLY) for i in range(f.nin)])
    try:
        found = signature(f)
    except (TypeError, ValueError):
        return None
    return found.replace(parameters=[p for p in found.parameters.values() if not isinstance(p, Cotangent)])


class Chosen(NamedTuple):
    """One argument to differentiate by: its position and its name, as far as they are known."""

    label: str  # how the user chose it
    number: int | None
    name: str | None


class ArgumentSelection:
    """The arguments chosen by ``argnums`` and ``argnames``, checked against the signature of ``f``."""

    def __init__(self, face: str, f: Callable[..., Any], argnums: ArgNums, argnames: ArgNames) -> None:
        self.face = face
        numbers = [] if argnums is None else _list_choices(face, "argnums", argnums, (int, np.integer), "an integer")
        names = [] if argnames is None else _list_choices(face, "argnames", argnames, str, "a name")
        self.one = (argnames is None and numbers == (argnums,)) or (argnums is None and names == (argnames,))
        taken = signature_of(f)
        self.chosen = [
            *(self._choose_by_number(int(i), taken) for i in numbers),
            *(self._choose_by_name(name, taken) for name in names),
        ]
        self._check_distinct([(c.number, c.name) for c in self.chosen])

    def _choose_by_number(self, i: int, taken: Signature | None) -> Chosen:
        label = f"argnums={i}"
        if taken is None:
            return Chosen(label, i, None)
        parameters = list(taken.parameters.values())
        ordered = [p for p in parameters if p.kind in POSITIONAL]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            if not 0 <= i < len(ordered):  # one of *args, or counted from the end of what is given
                return Chosen(label, i, None)
        elif not -len(ordered) <= i < len(ordered):
            named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
            others = f" Choose {' or '.join(named)} by argnames." if named else ""
            raise ArgumentError(
                f"{self.face}: {label} is out of range, f takes {len(ordered)} arguments by position "
                f"({', '.join(p.name for p in ordered)}).{others}"
            )
        i %= len(ordered)
        return Chosen(label, i, ordered[i].name if ordered[i].kind is Parameter.POSITIONAL_OR_KEYWORD else None)

    def _choose_by_name(self, name: str, taken: Signature | None) -> Chosen:
        label = f"argnames={name!r}"
        if taken is None:
            return Chosen(label, None, name)
        parameters = list(taken.parameters.values())
        ordered = [p.name for p in parameters if p.kind in POSITIONAL]
        named = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL and p.kind is not p.VAR_KEYWORD]
        if name in named:
            by_keyword = taken.parameters[name].kind is not Parameter.POSITIONAL_ONLY
            return Chosen(label, ordered.index(name) if name in ordered else None, name if by_keyword else None)
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            hint = did_you_mean(name, named)
            raise ArgumentError(
                f"{self.face}: argnames has {name!r}, which is no argument of f; it takes {', '.join(named)}.{hint}"
            )
        return Chosen(label, None, name)

    def _check_distinct(self, places: Sequence[Any]) -> None:
        if len({*places}) < len(places):
            labels = ", ".join(c.label for c in self.chosen)
            raise ArgumentError(f"{self.face}: an argument is chosen more than once ({labels}).")

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundCall:
        """Return the call ``f(*args, **kwargs)`` as a function of the chosen arguments."""
        places = [self._place(c, args, kwargs) for c in self.chosen]
        self._check_distinct(places)
        return BoundCall(f, args, kwargs, places)

    def _place(self, c: Chosen, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | str:
        if c.number is not None:
            i = c.number + len(args) if c.number < 0 else c.number
            if 0 <= i < len(args):
                return i
        if c.name is not None and c.name in kwargs:
            return c.name
        subject = f"{c.name!r} ({c.label})" if c.name is not None else c.label
        received = f"{len(args)} by position" + (f" and {', '.join(kwargs)} by keyword" if kwargs else "")
        raise ArgumentError(
            f"{self.face}: the argument {subject} to differentiate by was not given; got {received}. "
            "Give it in the call, even where f has a default."
        )

    def pack(self, ds: Sequence[Any]) -> Any:
        """Return the derivative itself if one argument was chosen by a single number or name, else a tuple."""
        return ds[0] if self.one else tuple(ds)


class BoundCall:
    """One call of ``f`` as a function of the arguments to differentiate by; the others are fixed."""

    has_aux = False  # whether f returns (y, aux)

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], places: Sequence[int | str]
    ) -> None:
        self.f, self.args, self.kwargs, self.places = f, args, kwargs, places
        # the arguments to differentiate by
        self.xs = tuple(args[p] if isinstance(p, int) else kwargs[p] for p in places)

    @property
    def other_arguments(self) -> Sequence[Any]:
        """The arguments of ``f`` that are not differentiated by."""
        return [
            *(a for i, a in enumerate(self.args) if i not in self.places),
            *(a for k, a in self.kwargs.items() if k not in self.places),
        ]

    @property
    def names(self) -> list[str]:
        """The names, in the signature of ``f``, of the arguments to differentiate by."""
        ordered = list_parameter_names(self.f, len(self.args))
        return [ordered[p] if isinstance(p, int) else p for p in self.places]

    def __call__(self, *xs: object) -> Any:
        args, kwargs = list(self.args), dict(self.kwargs)
        for place, x in zip(self.places, xs, strict=True):
            if isinstance(place, int):
                args[place] = x
            else:
                kwargs[place] = x
        return self.f(*args, **kwargs)


class WholeCall(BoundCall):
    """A call that is differentiated by all its positional arguments."""

    other_arguments = ()

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.f, self.xs = f, args

    @property
    def names(self) -> list[str]:
        return list_parameter_names(self.f, len(self.xs))

    def __call__(self, *xs: Any) -> Any:
        return self.f(*xs)


def call_by_all(
    face: str, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argnums: ArgNums, argnames: Any
) -> tuple[BoundCall, ArgumentSelection | None]:
    """Return the call ``f(*args, **kwargs)``, differentiated by all of ``args`` unless some arguments are chosen."""
    check_function(f"{face}: f", f)
    if argnums is None and argnames is None:
        args = tuple(args)
        return BoundCall(f, args, kwargs, range(len(args))) if kwargs else WholeCall(f, args), None
    selection = ArgumentSelection(face, f, argnums, argnames)
    return selection.call(f, tuple(args), kwargs), selection


def _list_choices(face: str, subject: str, given: object, kinds: Any, one: str) -> Sequence[Any]:
    """Return ``argnums`` or ``argnames`` as a list; a single number or name need not be in a list."""
    found = given if isinstance(given, list | tuple) else (given,)
    if any(not isinstance(x, kinds) or isinstance(x, bool) for x in found):
        is_name = subject == "argnums" and isinstance(given, str)
        hint = f" Names go to argnames={given!r}." if is_name else point_hint(face, given)
        raise ArgumentError(f"{face}: {subject} must be {one} or a tuple of them, got {given!r}.{hint}")
    if not found:
        raise ArgumentError(f"{face}: {subject} is empty, so there is nothing to differentiate by.")
    return found


def point_hint(face: str, given: object) -> str:
    """Return a hint for messages about a wrong option: it was perhaps meant as the argument of ``f``."""
    return "" if isinstance(given, str | bool) else f" The derivative at a point is {face}(f)(x)."


class Derivative:
    """A function that computes derivatives of ``f``; it has the name and docstring of ``f``, and pickles if ``f`` does.

    Without ``argnums`` and ``argnames`` it differentiates by the one argument that it is given by position.
    """

    face = ""
    has_dy = False  # whether it takes dy=, the cotangent of the result
    argnums: Any = None
    argnames: Any = None
    selection: ArgumentSelection | None = None
    __wrapped__: Callable[..., Any]

    def __init__(self, f: Callable[..., Any], argnums: ArgNums = None, argnames: ArgNames = None) -> None:
        check_function(f"{self.face}(f): f", f)
        self.__wrapped__ = f
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.__qualname__ = getattr(f, "__qualname__", self.__name__)
        self.__doc__ = getattr(f, "__doc__", None)
        if argnums is not None or argnames is not None:
            self.argnums, self.argnames = argnums, argnames
            self.selection = ArgumentSelection(self.face, f, argnums, argnames)

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments with which the transform was called, besides ``f``."""
        return {"argnums": self.argnums, "argnames": self.argnames}

    def __dir__(self) -> list[str]:
        return sorted(self.options())

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.__wrapped__, self.options())

    def __repr__(self) -> str:
        return f"<{self.face} of {self.__name__}>"

    def _repr_html_(self) -> str:
        settings = [f"{name}={value!r}" for name, value in self.options().items() if value not in DEFAULTS]
        title = f"{self.face} of {self.__name__}{signature_of(self.__wrapped__) or ''}"
        return late_binding.render_frame(title, settings)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundCall:
        """Return the call of ``f`` with these arguments, as a function of those to differentiate by."""
        if self.selection is not None:
            return self.selection.call(self.__wrapped__, args, kwargs)
        if len(args) > 1:
            raise self._make_count_error(args)
        if args and not kwargs:
            return WholeCall(self.__wrapped__, args)
        place: int | str = 0
        if not args:
            (place,) = list_parameter_names(self.__wrapped__, 1)
            if place not in kwargs:
                raise ArgumentError(f"{self.face}(f)(x): the argument to differentiate by, {place}, was not given.")
        return BoundCall(self.__wrapped__, args, kwargs, [place])

    def pack(self, ds: Sequence[Any]) -> Any:
        return ds[0] if self.selection is None else self.selection.pack(ds)

    def _make_count_error(self, args: tuple[Any, ...]) -> ArgumentError:
        name = self.__name__ if self.__name__.isidentifier() else "f"
        call = f"{self.face}({name})(x{', dy=None' * self.has_dy})"
        subject = f"{name}{_describe_parameters(self.__wrapped__)}"
        if self.takes_one:
            return ArgumentError(f"{call}: {subject} takes one argument, but {len(args)} were given by position.")
        return ArgumentError(
            f"{call}: {subject} may take more than one argument, and {len(args)} were given by position. "
            f"Write {self.face}({name}, argnums=0)(x, y, ...) to differentiate by the first and pass the others on"
            f"{', and dy= for the cotangent' * self.has_dy}."
        )

    def split_dy(self, args: tuple[Any, ...], dy: Operand | None) -> tuple[tuple[Any, ...], Any]:
        """Return the arguments for ``f`` and the cotangent, which may be the second argument if ``f`` takes one."""
        if self.selection is None and len(args) == 2 and self.takes_one:
            if dy is not None:
                raise ArgumentError(f"{self.face}(f)(x, dy): dy was given twice, by position and by keyword.")
            return args[:1], args[1]
        if dy is not None:
            self.check_dy(len(args))
        return args, dy

    def check_dy(self, count: int) -> None:
        """Raise ArgumentError if ``dy=`` may be meant for ``f``, which got ``count`` positional arguments."""
        if self.names_dy and "dy" not in list_parameter_names(self.__wrapped__, count):
            raise ArgumentError(
                f"{self.face}(f)(..., dy=...): f{_describe_parameters(self.__wrapped__)} has an argument named dy of "
                "its own, so it is not clear which is meant. Give that of f by position, or differentiate a function "
                "that calls it otherwise: lambda x, d: f(x, dy=d)."
            )

    @cached_property
    def takes_one(self) -> bool:
        """Whether ``f`` takes exactly one argument by position."""
        taken = signature_of(self.__wrapped__)
        kinds = [] if taken is None else [p.kind for p in taken.parameters.values()]
        return sum(k in POSITIONAL for k in kinds) == 1 and Parameter.VAR_POSITIONAL not in kinds

    @cached_property
    def names_dy(self) -> bool:
        """Whether an argument of ``f`` itself is named ``dy``."""
        taken = signature_of(self.__wrapped__)
        return taken is not None and "dy" in taken.parameters

    @DynamicClassAttribute
    def __signature__(self) -> Signature:
        """Return what can be given: the arguments of ``f`` (by position only where some are chosen) and ``dy``."""
        taken = signature_of(self.__wrapped__)
        if taken is None:
            raise AttributeError("__signature__")
        parameters = list(taken.parameters.values())
        if self.selection is None:
            parameters = _keep_first_positional(parameters)
        if self.has_dy and not self.names_dy:
            alone = self.selection is None and self.takes_one
            kind = Parameter.POSITIONAL_OR_KEYWORD if alone else Parameter.KEYWORD_ONLY
            dy = Cotangent("dy", kind, default=None)
            at = next((i for i, p in enumerate(parameters) if p.kind > kind), len(parameters))
            parameters.insert(at, dy)
        return Signature(parameters)


def _rebuild(cls: Any, f: Callable[..., Any], options: dict[str, Any]) -> Any:
    return cls(f, **options)


def _keep_first_positional(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return the first parameter, and those of the others that can be given by keyword."""
    found: list[Parameter] = []
    for i, p in enumerate(parameters):
        if p.kind is p.VAR_POSITIONAL:
            found += [] if i else [Parameter(p.name, Parameter.POSITIONAL_ONLY)]
        elif p.kind is p.POSITIONAL_OR_KEYWORD and i:
            found.append(p.replace(kind=Parameter.KEYWORD_ONLY))
        elif p.kind is not p.POSITIONAL_ONLY or not i:
            found.append(p)
    return sorted(found, key=lambda p: p.kind)


def _describe_parameters(f: object) -> str:
    """Return the names in the signature of ``f``, for messages; nothing where they are not known."""
    taken = signature_of(f)
    stars: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    return "" if taken is None else f"({', '.join(stars.get(p.kind, '') + p.name for p in taken.parameters.values())})"
