"""Checks of arguments that the packages of training share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, cleandoc, signature, unwrap
from operator import index
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.errors import ArgumentError
from pullback.train.custom_objects import find_custom

Function = TypeVar("Function", bound=Callable[..., Any])
LINE = re.compile(r"^(- |)(\w+(?:, \w+)*): ", re.MULTILINE)  # of a docstring, about one argument or several


def accept_names(names: Mapping[str, str]) -> Callable[[Function], Function]:
    """Return a decorator of functions that also take other libraries' names of their arguments.

    >>> accept_names({"decay_steps": "steps"})(lambda steps: steps)(decay_steps=3)
    3
    """

    def decorate(function: Function) -> Function:
        parameters = set(signature(function).parameters)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(
                *args, **{key if key in parameters else names.get(key, key): x for key, x in kwargs.items()}
            )

        return call  # type: ignore[return-value]

    return decorate


def describe_given(x: object) -> str:
    """Return the type of an argument for messages; of a class, that it must be called.

    >>> describe_given(3), describe_given(dict)
    ('int', 'the class dict; call it: dict(...)')
    """
    return f"the class {x.__name__}; call it: {x.__name__}(...)" if isinstance(x, type) else type(x).__name__


def is_whole_number(value: object, least: int) -> bool:
    """Return whether a value is a whole number of ``least`` or more.

    >>> is_whole_number(3, 1), is_whole_number(0, 1), is_whole_number(True, 1)
    (True, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, int | np.integer) and bool(value >= least)


def check_count(subject: str, argument: str, value: object) -> None:
    """Raise an error unless an argument is a positive whole number."""
    if not is_whole_number(value, 1):
        raise ArgumentError(f"{subject}: {argument} must be a positive whole number, got {value!r}.")


def as_whole_number(subject: str, argument: str, value: SupportsIndex, least: int) -> int:
    """Return an argument as an integer; raise an error unless it is a whole number of ``least`` or more.

    >>> as_whole_number("batch", "batch_size", np.int64(3), 1)
    3
    """
    try:
        number = index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or number < least:
        raise ArgumentError(f"{subject}: {argument} must be an integer of {least} or more, got {value!r}.")
    return number


def find_function(
    identifier: object, table: Mapping[str, Callable[[], Any]], subject: str, kind: str, takes: str
) -> Any:
    """Return the function that a table has for a name, in any spelling; a function is returned unchanged.

    - subject: what it is for, named in errors.
    - kind: what the table has, such as "constraint"; ``pb.constraints`` is its module.
    - takes: the arguments of such a function, in words.

    >>> find_function("maxNorm", {"max_norm": lambda: 1.0}, "dense", "constraint", "the variable")
    1.0
    """
    if isinstance(identifier, str):
        if (custom := find_custom(identifier)) is not None:
            return custom() if isinstance(custom, type) else custom
        name = snake_case(identifier)
        if name not in table:
            raise ArgumentError(
                f"{subject}: there is no {kind} {identifier!r}; there are {', '.join(table)}."
                f"{did_you_mean(name, table)}"
            )
        return table[name]()
    if not callable(identifier):
        article = "an" if kind[0] in "aeiou" else "a"
        raise ArgumentError(
            f"{subject}: {article} {kind} is a name, one of pb.{kind}s, or a function of {takes}; "
            f"got {type(identifier).__name__}."
        )
    return identifier


def list_arguments(function: Callable[..., Any]) -> list[str]:
    """Return the names of a loss's or metric's arguments after labels and predictions.

    >>> list_arguments(lambda y_true, y_pred, delta: 0.0)
    ['delta']
    """
    return list(signature(function).parameters)[2:]


def bind_arguments(
    subject: str, function: Callable[..., Any], values: Sequence[Any], named: Mapping[str, Any], options: Sequence[str]
) -> dict[str, Any]:
    """Return the arguments of a loss's or metric's function by name, of those given by place and by name.

    - subject: the class that they were given to, named in errors.
    - options: names that the class takes besides, which errors list.
    """
    takes = list_arguments(function)
    unknown = [name for name in named if name not in takes]
    if len(values) > len(takes) or unknown:
        wrong = f"{len(values)} arguments" if len(values) > len(takes) else repr(unknown[0])
        raise ArgumentError(f"{subject}: it takes {', '.join([*takes, *options])}; got {wrong}.")
    return dict(zip(takes, values, strict=False)) | dict(named)


def describe_arguments(things: Iterable[Any], lines: Mapping[str, str]) -> None:
    """Add lines about arguments that many functions or classes have to those docstrings that do not describe them.

    A docstring has its lines about arguments in one paragraph, each beginning with the name; they are put in the order
    of the arguments.

    - things: the functions or classes.
    - lines: what an argument is, by its name.

    >>> def decay(rate, steps):
    ...     "Return a schedule.\\n\\nsteps: how many."
    >>> describe_arguments([decay], {"rate": "the learning rate."})
    >>> print(decay.__doc__)
    Return a schedule.
    <BLANKLINE>
    rate: the learning rate.
    steps: how many.
    """
    for thing in things:
        if thing.__doc__ is None:  # python -OO has no docstrings
            return
        head, prompt, example = cleandoc(thing.__doc__).partition(">>>")
        summary, *paragraphs = head.rstrip().split("\n\n")
        at = next((i for i, text in enumerate(paragraphs) if LINE.match(text)), len(paragraphs))
        paragraph, bullet = "".join(paragraphs[at : at + 1]), "- " if isinstance(thing, type) else ""
        paragraphs[at : at + 1] = [_add_lines(paragraph, bullet, _list_parameters(thing), lines)]
        thing.__doc__ = "\n\n".join(filter(None, [summary, *paragraphs, f"{prompt}{example}"]))


def _add_lines(paragraph: str, bullet: str, parameters: Sequence[str], lines: Mapping[str, str]) -> str:
    """Return a paragraph about arguments with the lines that it lacks, in the order of the parameters."""
    fields = LINE.split(paragraph)[1:]  # the bullet, the names and the text of each line
    texts = dict(zip(fields[1::3], fields[2::3], strict=True))
    described = {name for names in texts for name in names.split(", ")}
    texts |= {name: lines[name] for name in parameters if name in lines and name not in described}
    places = {name: i for i, name in enumerate(parameters)}
    ordered = sorted(texts, key=lambda names: places.get(names.partition(",")[0], len(places)))
    return "\n".join(f"{bullet}{names}: {texts[names].rstrip()}" for names in ordered)


def _list_parameters(thing: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a function or class: ``signature`` takes ten times as long."""
    function: Any = thing.__init__ if isinstance(thing, type) else thing  # type: ignore[misc]
    code = unwrap(function).__code__
    further = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + further]
    return names
