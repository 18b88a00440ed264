"""From operators on functions of one argument to operators on functions of many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


DESCRIPTION = """    {op} of function {fun} with respect to argument number {argnum}. Takes the
    same arguments as {fun} but returns the {op}.
    """


def get_name(f: Callable[..., Any]) -> str:
    """Return the name of a function."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Callable[..., Any]) -> str:
    """Return the docstring of a function."""
    return getattr(f, "__doc__", "") or ""


def wraps(
    fun: Callable[..., Any], namestr: str = "{fun}", docstr: str = "{doc}", **words: object
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a function the name and the docstring of another."""

    def name(f: Callable[..., Any]) -> Callable[..., Any]:
        with suppress(AttributeError, KeyError, ValueError, IndexError):
            f.__name__ = namestr.format(fun=get_name(fun), **words)
            f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **words)
        return f

    return name


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator on functions of many arguments, from ``operator(f, x)`` on functions of one.

    What it returns takes ``argnum``, the number of an argument or several in a tuple or list.

    >>> @unary_to_nary
    ... def value_at(f, x):
    ...     return f(x)
    >>> value_at(lambda a, b: a - b, 1)(5.0, 2.0)
    3.0
    """

    @wraps(unary_operator)
    def nary_operator(
        fun: Callable[..., Any], argnum: int | Sequence[int] = 0, *operator_args: object, **operator_kwargs: object
    ) -> Any:
        if type(argnum) not in (int, tuple, list):
            raise TypeError(f"argnum must be an int, or a tuple or list of ints, got {argnum!r}.")

        @wraps(fun, "{op}_of_{fun}_wrt_argnum_{argnum}", DESCRIPTION, op=get_name(unary_operator), argnum=argnum)
        def nary_f(*args: object, **kwargs: object) -> Any:
            @wraps(fun)
            def unary_f(x: Any) -> Any:
                values = list(args)
                for i, part in [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x, strict=True):
                    values[i] = part
                return fun(*values, **kwargs)

            x = args[argnum] if isinstance(argnum, int) else tuple(args[i] for i in argnum)
            return unary_operator(unary_f, x, *operator_args, **operator_kwargs)

        return nary_f

    return nary_operator
