"""Small functions that autograd's users import from ``autograd.util``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pullback.autograd.test_util import check_grads

if TYPE_CHECKING:
    from pullback.typing import Function


def subvals(x: Sequence[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return a tuple with other values in some places.

    >>> subvals((1, 2, 3), [(0, 5)])
    (5, 2, 3)
    """
    values = list(x)
    for i, value in ivs:
        values[i] = value
    return tuple(values)


def subval(x: Sequence[Any], i: int, v: object) -> tuple[Any, ...]:
    """Return a tuple with another value in one place.

    >>> subval((1, 2, 3), 0, 5)
    (5, 2, 3)
    """
    return subvals(x, [(i, v)])


def func(f: Function) -> Any:
    """Return the function itself; it was needed for methods in Python 2."""
    return f


def quick_grad_check(
    fun: Callable[..., Any],
    arg0: Any,
    extra_args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    **_: object,
) -> None:
    """Compare a gradient with finite differences; an old spelling of ``check_grads``."""
    warnings.warn("quick_grad_check is deprecated: use test_util.check_grads.", stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
